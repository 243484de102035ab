/* SPDX-License-Identifier: Apache-2.0 */
/* each.h - does something for each of many things at the same time, because each waits for a file
 * system. */
#pragma once

#include <stddef.h>

/* Calls work with each number from 0 to n - 1, from up to n_threads threads, which are at most 64,
 * and returns when all calls have. If threads cannot be started, there are fewer. */
void each_at_once(size_t n, size_t n_threads, void (*work)(void *context, size_t which),
                  void *context);
