/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/reports.h"

#include <stdio.h>
#include <string.h>

#include "base/array.h"

static void add_item(pack_reports *now, const pack_item *item, const char *place,
                     const char *reason)
{
    const size_t n_place = strlen(place), n_reason = reason ? strlen(reason) + 2 : 0;
    const size_t n = n_place + n_reason + 1;
    if (!array_reserve(&now->text, &now->capacity, now->n_bytes + n, 1) ||
        !array_reserve(&now->items, &now->items_capacity, now->n_items + 1, sizeof *now->items)) {
        now->no_memory = true;
        return;
    }
    snprintf(now->text + now->n_bytes, n, "%s%s%s", place, reason ? ": " : "",
             reason ? reason : "");
    pack_item *added = &now->items[now->n_items++];
    *added = *item;
    added->begin = now->n_bytes;
    added->n_bytes = n - 1;
    added->n_place = n_place;
    now->n_bytes += n;
}

void pack_reports_add_message(void *context, const char *text)
{
    add_item(*(pack_reports **)context, &(pack_item){0}, text, NULL);
}

void pack_reports_add_lacking(void *context, size_t field, const char *text)
{
    add_item(*(pack_reports **)context, &(pack_item){.is_lacking = true, .field = field}, text,
             NULL);
}

void pack_reports_add_bad(void *context, const corpus_bad *bad)
{
    add_item(*(pack_reports **)context,
             &(pack_item){.is_bad = true, .input = bad->input, .at = bad->at}, bad->place,
             bad->reason);
}

void pack_reports_add_moment(void *context, const corpus_counts *counts)
{
    pack_reports *now = *(pack_reports **)context;
    if (array_reserve(&now->moments, &now->moments_capacity, now->n_moments + 1,
                      sizeof *now->moments))
        now->moments[now->n_moments++] = (pack_moment){*counts, now->n_items};
    else
        now->no_memory = true;
}
