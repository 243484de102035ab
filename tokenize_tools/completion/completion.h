/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - tokmap completion: prints the script with which a shell completes words. */
#pragma once

int completion_command(int argc, char **argv);
