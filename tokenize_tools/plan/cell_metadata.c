/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/cell_metadata.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_text.h"

/* ---- Print ---- */

cell_plan_text cell_metadata_plan(const cell_metadata *m)
{
    cell_plan_text text;
    snprintf(text.s, sizeof text.s,
             ", \"plan\": {\"hash\": \"%016" PRIx64 "\", \"cell\": %" PRIu64
             ", \"origin\": \"%016" PRIx64 "\"}",
             m->hash, m->cell, m->origin);
    return text;
}

/* The member `counts` as text. */
typedef struct counts_text {
    char s[32 + CELL_MAX_COUNTS * (CELL_COUNT_NAME_BYTES + 32)];
} counts_text;

static counts_text print_counts(const cell_counts *counts)
{
    counts_text text;
    size_t n = (size_t)snprintf(text.s, sizeof text.s, ", \"counts\": {");
    for (size_t i = 0; i < counts->n; i++)
        n += (size_t)snprintf(text.s + n, sizeof text.s - n, "%s\"%s\": %" PRIu64, i ? ", " : "",
                              counts->list[i].name, counts->list[i].value);
    snprintf(text.s + n, sizeof text.s - n, "}");
    return text;
}

char *cell_metadata_join(const char *head, size_t head_bytes, const cell_counts *sum,
                         size_t *n_bytes)
{
    const counts_text counts = print_counts(sum);
    const size_t room = head_bytes + sizeof counts.s + sizeof "}";
    char *json = malloc(room);
    if (!json)
        return NULL;
    memcpy(json, head, head_bytes);
    *n_bytes = head_bytes + (size_t)snprintf(json + head_bytes, room - head_bytes, "%s}", counts.s);
    return json;
}

/* ---- Read ---- */

/* Copies a value and ends it with a 0, which the metadata may lack. A value that is longer than
 * print_counts prints becomes empty. */
static counts_text copy_value(json_text_span value)
{
    counts_text text = {.s = ""};
    if (value.n_bytes < sizeof text.s)
        memcpy(text.s, value.text, value.n_bytes);
    return text;
}

/* Parses what print_counts has written. */
static bool read_counts(json_text_span object, cell_counts *counts)
{
    const counts_text text = copy_value(object);
    const char *at = text.s + 1;
    if (text.s[0] != '{')
        return false;
    while (*at == '"') {
        cell_count *count = &counts->list[counts->n];
        const size_t n_name = strcspn(at + 1, "\"\\");
        char *end;
        if (counts->n++ == CELL_MAX_COUNTS || n_name >= sizeof count->name ||
            strncmp(at + 1 + n_name, "\": ", 3) != 0)
            return false;
        memcpy(count->name, at + 1, n_name);
        count->value = strtoull(at + n_name + 4, &end, 10);
        at = end + strspn(end, ", ");
    }
    return true;
}

static uint64_t read_hash(json_text_span object, const char *key)
{
    json_text_span value;
    return json_text_find(object, key, &value) ? strtoull(copy_value(value).s + 1, NULL, 16) : 0;
}

/* What was read is right if printing it gives the end of the text again. */
bool cell_metadata_read(cell_metadata *m, const char *json, size_t n_bytes)
{
    const json_text_span object = {json, n_bytes};
    json_text_span counts_value, plan_value, cell;
    *m = (cell_metadata){.hash = 0};
    if (!json_text_check_object(object, NULL) || !json_text_find(object, "counts", &counts_value) ||
        !json_text_find(object, "plan", &plan_value) || !read_counts(counts_value, &m->counts))
        return false;
    m->hash = read_hash(plan_value, "hash");
    m->origin = read_hash(plan_value, "origin");
    if (json_text_find(plan_value, "cell", &cell))
        m->cell = strtoull(copy_value(cell).s, NULL, 10);
    const counts_text counts = print_counts(&m->counts);
    const cell_plan_text plan = cell_metadata_plan(m);
    const size_t n_counts = strlen(counts.s), n_plan = strlen(plan.s);
    if (n_bytes < n_counts + n_plan + 1)
        return false;
    m->head_bytes = n_bytes - 1 - n_plan - n_counts;
    return memcmp(json + m->head_bytes, counts.s, n_counts) == 0 &&
           memcmp(json + m->head_bytes + n_counts, plan.s, n_plan) == 0 && json[n_bytes - 1] == '}';
}

bool cell_counts_add(cell_counts *sum, const cell_counts *more)
{
    if (sum->n == 0) {
        *sum = *more;
        return true;
    }
    if (sum->n != more->n)
        return false;
    for (size_t i = 0; i < sum->n; i++) {
        cell_count *to = &sum->list[i];
        const cell_count *from = &more->list[i];
        if (strcmp(to->name, from->name) != 0 || from->value > UINT64_MAX - to->value)
            return false;
        to->value += from->value;
    }
    return true;
}

uint64_t cell_counts_value(const cell_counts *counts, const char *name)
{
    for (size_t i = 0; i < counts->n; i++) {
        if (strcmp(counts->list[i].name, name) == 0)
            return counts->list[i].value;
    }
    return 0;
}
