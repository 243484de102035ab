/* SPDX-License-Identifier: Apache-2.0 */
/* hub.h - names of files in repositories of the Hugging Face Hub, which the Python package finds in
 * the Hub's cache: hf://datasets/OWNER/NAME[@REVISION][/PATTERN] for inputs, and
 * hf://OWNER/NAME[@REVISION] for a tokenizer. */
#pragma once

#include <stdbool.h>

#include "input/input_list.h"

/* Whether the name begins with hf:// and there is no such file. */
bool hub_is_name(const char *name);

typedef struct hub_request {
    const char *name;
    bool is_tokenizer; /* else a dataset */
    bool download;     /* fetch what the cache lacks; else nothing uses the network */
} hub_request;

/* Appends the paths of the files in natural order, or that of the tokenizer file. They are in a
 * folder of the cache whose name is that of a commit. Reports which commit it is. False: *err says
 * why. */
bool hub_find(input_list *list, const hub_request *request, failure *err);
