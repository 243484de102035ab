/* SPDX-License-Identifier: Apache-2.0 */
/* lanes.h - the lanes of a dataset for commands. Functions that return int return CLI_OK, or an
 * exit code with a message. */
#pragma once

#include "cli/json_out.h"
#include "tokmap_writer.h"

/* All lanes of a dataset that can be read. Starts as {0}. */
typedef struct lane_list {
    tokmap_lane **lanes;
    tokmap_lane_info *info; /* of each */
    size_t n;
} lane_list;
/* Opens all lanes, and prints a message for each that cannot be opened. */
int lanes_open_all(lane_list *list, const tokmap_dataset *ds);
void lanes_close_all(lane_list *list);
/* Returns the name of a type, such as "float16". */
const char *lanes_type_name(tokmap_lane_type type);
/* Prints an array of objects with the key "lanes". */
void lanes_put(json_out *o, const lane_list *list);

/* Writes the lanes of `ds` for q, which is `ds` without these documents, and warns about what is
 * not certain to be free of them. */
int lanes_redact(const tokmap_dataset *ds, const tokmap_dataset *q, const uint64_t *documents,
                 uint64_t n_documents);
