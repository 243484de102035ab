/* SPDX-License-Identifier: Apache-2.0 */
/* each.h - does something for each of many things at the same time, because each waits for a file
 * system. */
#pragma once

#include <stddef.h>

/* Calls work with each number from 0 to n - 1, from up to 64 threads, and returns when all calls
 * have. If threads cannot be started, there are fewer. */
void each_at_once(size_t n, void (*work)(void *context, size_t which), void *context);
