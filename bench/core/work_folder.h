/* SPDX-License-Identifier: Apache-2.0 */
/* work_folder.h - work in a folder of its own, which is removed however the work ends. */
#pragma once

/* Makes a folder in `parent`, and calls `work` in a process of its own, so that gigabytes of test
 * data are removed also after a signal. Returns its result, or 1. */
int bench_run_in_folder(const char *parent, int (*work)(void *context, const char *folder),
                        void *context);
void bench_empty_folder(const char *folder);
