/* SPDX-License-Identifier: Apache-2.0 */
#include "formats/parquet/parquet_list.h"

#include <string.h>

#include "base/array.h"
#include "formats/marked_text.h"

parquet_rows parquet_list_values(const parquet_footer *f, const parquet_element *column,
                                 parquet_rows rows, uint64_t *n_before)
{
    parquet_rows values = {0};
    *n_before = 0;
    if (column->max_repetition == 0)
        return rows;
    for (size_t i = 0; i < f->n_groups && f->groups[i].first_row < rows.end; i++) {
        const parquet_row_group *group = &f->groups[i];
        const parquet_rows of_group = parquet_values_of_group(f, column, i);
        values.end = of_group.end;
        if (group->first_row <= rows.begin) {
            values.begin = of_group.begin;
            *n_before = rows.begin - group->first_row;
        }
    }
    return values;
}

/* Keeps the value that was read last, unless it stands for a list without any. */
static bool keep_value(parquet_list *l, failure *err)
{
    const bool is_text = l->next.type == TOKMAP_VALUE_STRING;
    const size_t n_text = is_text ? l->next.text_bytes : 0;
    const int64_t number = is_text                              ? (int64_t)n_text
                           : l->next.type == TOKMAP_VALUE_INT64 ? l->next.integer
                                                                : STORED_LIST_NULL;
    const size_t n_bytes = sizeof number + n_text;
    if (l->next_definition < l->definition)
        return true;
    l->is_long |= n_bytes > l->most - l->n_bytes;
    if (l->is_long)
        return true;
    if (!array_reserve(&l->bytes, &l->capacity, l->n_bytes + n_bytes, 1))
        return fail_memory(err);
    memcpy(l->bytes + l->n_bytes, &number, sizeof number);
    if (n_text)
        memcpy(l->bytes + l->n_bytes + sizeof number, l->next.text, n_text);
    l->n_bytes += n_bytes;
    return true;
}

/* Whether the list that was read is the last one of its row group, but there are more rows. */
static bool is_short(const parquet_list *l)
{
    const parquet_page_place *page = &l->page;
    if (!l->begun)
        return false;
    const parquet_footer *f = &page->file->footer;
    const parquet_row_group *group = &f->groups[page->group];
    return l->column->n_values == parquet_values_of_group(f, page->column, page->group).end &&
           l->row + 1 != group->first_row + group->n_rows;
}

/* The first one behind the list. */
static void read_value(parquet_list *l)
{
    const parquet_column *c = l->column;
    l->ahead = is_short(l) ? -!fail(&l->err, PARQUET_OTHER_ROWS)
                           : parquet_column_next(l->column, &l->next, &l->err);
    l->begun = true;
    if (l->ahead <= 0)
        return;
    l->next_definition = c->definition;
    l->next_page = *c->page;
    l->next_checksum = c->checksum;
}

static int read_list(parquet_list *l, tokmap_value *value, failure *err)
{
    parquet_column *c = l->column;
    if (!l->begun)
        read_value(l);
    if (l->ahead < 0)
        *err = l->err;
    if (l->ahead <= 0)
        return l->ahead;
    const parquet_row_group *group = &l->next_page.file->footer.groups[l->next_page.group];
    if (c->repetition > 0 || l->row - group->first_row >= group->n_rows) {
        fail(err, PARQUET_OTHER_ROWS);
        return -1;
    }
    const bool is_null = l->next_definition + 1 < l->definition;
    uint64_t checksum;
    l->n_bytes = 0;
    l->is_long = false;
    do {
        if (!keep_value(l, err))
            return -1;
        /* The value after it may be of the next list, and on another page. */
        l->page = l->next_page;
        checksum = l->next_checksum;
        read_value(l);
    } while (l->ahead > 0 && c->repetition > 0 && l->next_page.group == l->page.group);
    l->row++;
    c->page = &l->page;
    c->checksum = checksum;
    if (parquet_page_end(&l->page) <= l->seen_bytes)
        l->seen = checksum;
    *value = (tokmap_value){0};
    if (!is_null)
        *value = (tokmap_value){.type = TOKMAP_VALUE_STRING,
                                .text = l->bytes ? (const char *)l->bytes : "",
                                .text_bytes = l->n_bytes};
    return 1;
}

int parquet_list_next(parquet_list *l, tokmap_value *value, failure *err)
{
    int result = 1;
    while (l->row < l->first && result > 0)
        result = read_list(l, value, err);
    return result > 0 ? read_list(l, value, err) : result;
}
