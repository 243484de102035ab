/* SPDX-License-Identifier: Apache-2.0 */
#include "datasets/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_text.h"
#include "cli/cli.h"
#include "datasets/beside.h"

static int open_lane(lane_list *list, const tokmap_dataset *ds, const char *name)
{
    tokmap_error err;
    if (!array_grow(&list->lanes, list->n, sizeof *list->lanes) ||
        !array_grow(&list->info, list->n, sizeof *list->info))
        return cli_no_memory();
    if (tokmap_lane_open(&list->lanes[list->n], ds, name, &err) != TOKMAP_OK)
        return cli_fail(&err);
    list->info[list->n] = (tokmap_lane_info)TOKMAP_INIT(tokmap_lane_info);
    tokmap_lane_get_info(list->lanes[list->n], &list->info[list->n]);
    list->n++;
    return CLI_OK;
}

int lanes_open_all(lane_list *list, const tokmap_dataset *ds)
{
    input_list names;
    int code = beside_list(ds, BESIDE_LANES, &names);
    for (size_t i = 0; i < names.n_names; i++)
        code = cli_first_failure(code, open_lane(list, ds, names.names[i]));
    input_list_free(&names);
    return code;
}

void lanes_close_all(lane_list *list)
{
    for (size_t i = 0; i < list->n; i++)
        tokmap_lane_close(list->lanes[i]);
    free(list->lanes);
    free(list->info);
    *list = (lane_list){0};
}

const char *lanes_type_name(tokmap_lane_type type)
{
    static const char *const names[] = {"",         "uint8",   "int8",        "uint16",
                                        "int16",    "uint32",  "int32",       "float16",
                                        "bfloat16", "float32", "float8_e4m3", "float8_e5m2"};
    return names[type];
}

void lanes_put(json_out *o, const lane_list *list)
{
    json_out_begin(o, "lanes", '[');
    for (size_t i = 0; i < list->n; i++) {
        const tokmap_lane_info *lane = &list->info[i];
        const json_text_span about = {lane->about, strlen(lane->about)};
        json_out_begin(o, NULL, '{');
        json_out_string(o, "name", lane->name);
        json_out_string(o, "type", lanes_type_name(lane->type));
        json_out_number(o, "count", lane->count);
        json_out_string(o, "goes_with", lane->goes_with == TOKMAP_WITH_INPUT ? "input" : "label");
        json_out_string(o, "file", lane->path);
        json_out_known(o, "offset", lane->offset, lane->path != NULL);
        if (lane->path)
            json_out_hash(o, "hash", lane->hash);
        else
            json_out_string(o, "hash", NULL);
        if (json_text_check_object(about, NULL)) {
            json_out_key(o, "about");
            json_text_print(stdout, about);
        } else {
            json_out_string(o, "about", NULL);
        }
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

/* ---- Redacting ---- */

/* Whether the lane says that no value depends on the tokens of other documents. */
static bool is_within_documents(const tokmap_lane_info *lane)
{
    static const char within[] = "\"within documents\"";
    const json_text_span about = {lane->about, strlen(lane->about)};
    json_text_span attention;
    return json_text_check_object(about, NULL) && json_text_find(about, "attention", &attention) &&
           attention.n_bytes == strlen(within) &&
           memcmp(attention.text, within, strlen(within)) == 0;
}

int lanes_redact(const tokmap_dataset *ds, const tokmap_dataset *q, const uint64_t *documents,
                 uint64_t n_documents)
{
    lane_list list = {0};
    tokmap_error err;
    int code = lanes_open_all(&list, ds);
    for (size_t i = 0; i < list.n; i++) {
        const tokmap_lane_info *lane = &list.info[i];
        if (tokmap_lane_redact(list.lanes[i], q, documents, n_documents, &err) != TOKMAP_OK) {
            code = cli_first_failure(code, cli_fail(&err));
            continue;
        }
        if (!is_within_documents(lane))
            cli_warn(
                "%s: the lane '%s' does not say \"attention\": \"within documents\": numbers of "
                "tokens after a redacted document may depend on it",
                cli_dataset_info(q).index_path, lane->name);
    }
    lanes_close_all(&list);
    return code;
}
