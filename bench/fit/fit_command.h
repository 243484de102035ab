/* SPDX-License-Identifier: Apache-2.0 */
/* fit_command.h - `tokbench fit`, `tokbench file-system`, and `tokbench` without
 * arguments. */
#pragma once

int fit_command(int argc, char **argv);
int fit_glance(void);
int file_system_command(int argc, char **argv);
