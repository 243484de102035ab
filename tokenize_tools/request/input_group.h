/* SPDX-License-Identifier: Apache-2.0 */
/* input_group.h - inputs, or patterns, that one message names together. */
#pragma once

#include <stddef.h>

#include "request/options.h"

#define INPUT_GROUP_NAMED 3

typedef struct input_group {
    size_t n;
    const char *names[INPUT_GROUP_NAMED]; /* the first ones */
} input_group;

void input_group_add(input_group *group, const char *name);
#define INPUT_GROUP_BYTES 1024
/* "a.txt, b.txt, c.txt and 2 more" */
void input_group_text(const input_group *group, char text[INPUT_GROUP_BYTES]);
/* "a.txt, b.txt, c.txt and 2 more: what". Nothing if the group is empty, or with --quiet. */
void input_group_note(const pack_options *options, const input_group *group, const char *what);
