/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "formats/parquet/parquet_list.h"
#include "formats/parquet/parquet_reader.h"
#include "system/files.h"
#include "system/input_file.h"
#include "system/platform.h"

#define DEFAULT_MEMORY ((uint64_t)64 << 20)
#define LEAST_MEMORY ((uint64_t)4 << 20)

enum {
    MARKS = FIELD_LIST_MAX /* the column of marks comes after those of fields */
};

typedef struct parquet_reader {
    reader base;
    parquet_file file;
    input_part part;     /* to be read; {0}: all */
    parquet_rows rows;   /* that it has */
    input_prefix prefix; /* of an earlier run, to a byte of the file; 0 bytes: none */
    bool check_version;
    bool (*reserve)(void *context, uint64_t n_bytes); /* of the source */
    void *reserve_context;
    uint64_t reserved;              /* for pages */
    const parquet_element *element; /* of the text, or with fields_only of the first field */
    parquet_column *column;         /* NULL: not opened at `row` yet */
    struct {
        const parquet_element *element; /* NULL: FIELD_ROW */
        parquet_column *column;         /* NULL: that of the text */
    } fields[MARKS + 1];
    parquet_list list, marks; /* of `column` and the column of marks, if they have lists */

    uint64_t row, offset; /* of the current row if `at_hand`, else of the next one */
    bool at_hand;
    size_t n_bytes; /* of its text */

    uint64_t page_offset; /* of the page that was begun last; 0: none */
    uint64_t stored_end;  /* up to which the file was read, in its pages of texts */
    uint64_t counted;     /* of the column's checksum, by the earlier run */
    parquet_scan cuts;    /* for places to cut, once one was asked for */
} parquet_reader;

/* ---- Open, close ---- */

bool parquet_is_magic(int fd, int *sys_errno)
{
    /* The first byte of a page header or of the footer follows, unless the file was cut or the
     * column is encrypted. */
    static const char magic[] = "PAR1\x15";
    uint8_t head[sizeof magic - 1] = {0}, tail[PARQUET_HEAD_BYTES] = {0};
    file_facts facts;
    size_t n_read = 0;
    *sys_errno = file_describe_open(fd, &facts);
    if (*sys_errno || facts.kind != FILE_REGULAR)
        return false;
    *sys_errno = tokmap_i_file_read(fd, head, sizeof head, 0, &n_read);
    if (n_read < PARQUET_HEAD_BYTES || memcmp(head, magic, PARQUET_HEAD_BYTES) != 0)
        return false;
    if (memcmp(head, magic, n_read) == 0)
        return true;
    *sys_errno =
        tokmap_i_file_read(fd, tail, sizeof tail, facts.n_bytes - sizeof tail, &(size_t){0});
    return memcmp(tail, magic, sizeof tail) == 0;
}

static void close_columns(parquet_reader *r)
{
    parquet_column_close(r->column);
    r->column = NULL;
    r->reserved = r->file.n_bytes - r->file.data_end;
    for (size_t i = 0; i <= MARKS; i++) {
        parquet_column_close(r->fields[i].column);
        r->fields[i].column = NULL;
    }
}

static void close_parquet(reader *base)
{
    parquet_reader *r = (parquet_reader *)base;
    close_columns(r);
    free(r->list.bytes);
    free(r->marks.bytes);
    parquet_scan_free(&r->cuts);
    parquet_file_close(&r->file);
    input_file_close(base->fd);
}

static bool choose_columns(parquet_reader *r, failure *err)
{
    const parquet_footer *f = &r->file.footer;
    const field_list *fields = r->base.options->fields;
    tokmap_value_type types[FIELD_LIST_MAX];
    const reader_options *o = r->base.options;
    const bool is_parts = o->list == LIST_PARTS;
    const char *marks = o->marks ? fields->names[fields->n_fields - 1] : o->field;
    r->element = o->fields_only ? NULL
                 : o->list      ? parquet_list_column(f, o->field, is_parts ? "text" : NULL,
                                                      &r->list.definition, err)
                                : parquet_text_column(f, corpus_field(o), err);
    if (r->element && (o->marks || is_parts))
        r->fields[MARKS].element =
            parquet_list_column(f, marks, is_parts ? "train" : NULL, &r->marks.definition, err);
    if ((!r->element && !o->fields_only) || (!r->fields[MARKS].element && (o->marks || is_parts)))
        return false;
    const bool is_truth = o->list && r->element && r->element->type == PARQUET_BOOLEAN;
    if (is_truth || (o->list && r->element && r->element->kind == PARQUET_TIME))
        return fail(err, "the column \"%.100s\" has lists of %s, which are not token ids", o->field,
                    is_truth ? "booleans" : "dates or times");
    if (o->marks && r->fields[MARKS].element->kind == PARQUET_TIME)
        return fail(err, "the column \"%.100s\" has lists of dates or times", marks);
    for (size_t i = 0; fields && i < fields->n_fields; i++) {
        types[i] = TOKMAP_VALUE_INT64;
        if (strcmp(fields->names[i], FIELD_ROW) == 0 || (o->marks && i == fields->n_fields - 1))
            continue;
        const parquet_element *e = parquet_value_column(f, fields->names[i], err);
        if (!e && err->kind && reader_may_lack(&r->base, i)) {
            types[i] = TOKMAP_VALUE_NULL;
            continue;
        }
        if (!e)
            return false;
        r->fields[i].element = e;
        r->element = r->element ? r->element : e;
        if (e->type == PARQUET_BYTE_ARRAY && e->kind != PARQUET_DECIMAL)
            types[i] = TOKMAP_VALUE_STRING;
        else if (parquet_is_null(f, e))
            types[i] = TOKMAP_VALUE_NULL;
        else if (e->time)
            types[i] = WHERE_TIME;
    }
    if (fields && !r->element)
        return fail(err, "none of the fields is a column");
    return reader_check_where(r->base.options, types, err);
}

static parquet_column *open_column(parquet_reader *r, const parquet_element *e, parquet_list *l,
                                   const parquet_column_options *options, failure *err)
{
    uint64_t n_before;
    const parquet_rows rows =
        parquet_list_values(&r->file.footer, e, (parquet_rows){r->row, r->rows.end}, &n_before);
    parquet_column *c = parquet_column_open(&r->file, e, rows, options, err);
    if (e->max_repetition > 0)
        *l = (parquet_list){.column = c,
                            .definition = l->definition,
                            .row = r->row - n_before,
                            .first = r->row,
                            .most = 2 * r->base.options->max_document,
                            .seen_bytes = r->prefix.n_bytes,
                            .bytes = l->bytes,
                            .capacity = l->capacity};
    return c;
}

static bool grow(void *context, uint64_t n_bytes)
{
    parquet_reader *r = context;
    r->reserved += n_bytes;
    return !r->reserve || r->reserve(r->reserve_context, r->reserved);
}

/* Counts the memory of the footer. */
static bool take_footer(parquet_reader *r, failure *err)
{
    return grow(r, r->file.n_bytes - r->file.data_end) ||
           fail_system(err, ECANCELED, "cannot read");
}

/* The columns of fields share the memory. */
static bool open_columns(parquet_reader *r, failure *err)
{
    const reader_options *o = r->base.options;
    parquet_column_options options = {
        .memory_bytes = o->page_memory ? o->page_memory : DEFAULT_MEMORY,
        .grow = grow,
        .context = r,
    };
    options.memory_option = o->memory_option ? o->memory_option : options.memory_bytes;
    r->column = open_column(r, r->element, &r->list, &options, err);
    bool ok = r->column != NULL;
    const size_t n_fields = o->fields ? o->fields->n_fields : 0;
    const uint64_t share = options.memory_bytes / 2 / (n_fields ? n_fields : 1) + 1;
    const uint64_t memory = share > LEAST_MEMORY ? share : LEAST_MEMORY;
    /* Their share grows with --memory, but it has a least size. */
    options.memory_option =
        (uint64_t)((double)options.memory_option * (double)memory / (double)share);
    options.memory_bytes = memory;
    for (size_t i = 0; ok && i <= MARKS; i++) {
        if (!r->fields[i].element || (i < MARKS && r->fields[i].element == r->element))
            continue;
        parquet_column *column = open_column(r, r->fields[i].element, &r->marks, &options, err);
        r->fields[i].column = column;
        ok = column != NULL;
    }
    return ok;
}

/* ---- Stored bytes ---- */

/* Whether the checksum is to be added to that of the parts before it. */
static bool continues_file(const parquet_reader *r)
{
    return r->part.joined && r->part.begin.offset > 0;
}

/* Where the part ends in the file. */
static uint64_t end_of_part(const parquet_reader *r)
{
    return r->part.has_end ? r->part.end.offset : r->file.n_bytes;
}

static bool stopped(const parquet_reader *r, failure *err)
{
    if (!input_stop_raised(r->base.stop_fd))
        return false;
    *err = (failure){.status = ECANCELED, .text = "stopped"};
    return true;
}

/* Finds the pages of the part in the column of texts or lists. */
static void begin_scan(const parquet_reader *r, parquet_scan *scan)
{
    parquet_scan_begin(scan, &r->file, r->element,
                       parquet_list_values(&r->file.footer, r->element, r->rows, &(uint64_t){0}));
}

/* Adds up the pages of the text that an earlier run read. 0: there is no page that ends there. */
static int sum_pages(const parquet_reader *r, parquet_scan *scan, uint64_t *sum, failure *err)
{
    uint64_t dictionary = 0, checksum = 0;
    parquet_page_place page;
    for (;;) {
        const int found = stopped(r, err) ? -1 : parquet_scan_next(scan, &page, err);
        if (found < 0 || (found > 0 && !parquet_page_checksum(&page, &checksum, err)))
            return -1;
        if (found == 0)
            return r->prefix.n_bytes == end_of_part(r);
        if (parquet_page_is_dictionary(&page)) {
            dictionary = checksum;
            continue;
        }
        *sum += checksum + dictionary;
        dictionary = 0;
        if (parquet_page_end(&page) == r->prefix.n_bytes)
            return 1;
    }
}

/* What an earlier run counted must still be there: the footer, and the pages of the text. */
static bool check_prefix(const parquet_reader *r, failure *err)
{
    parquet_scan scan;
    uint64_t sum = r->file.footer_checksum;
    int result = 1;
    if (r->prefix.n_bytes > 0) {
        begin_scan(r, &scan);
        result = sum_pages(r, &scan, &sum, err);
        parquet_scan_free(&scan);
    }
    if (result < 0)
        return false;
    return (result > 0 && sum == r->prefix.checksum) ||
           fail_changed(err, "has changed: its footer or pages are not the ones that were packed");
}

/* Counts the page of the current row when it is begun. After a resume, the earlier run may have
 * counted the first page with its dictionary, or the pages before it with their dictionary. */
static bool count_page(parquet_reader *r, failure *err)
{
    const parquet_page_place *page = r->column->page;
    const uint64_t end = parquet_page_end(page), begin = r->part.begin.offset;
    const bool is_list = r->base.options->list;
    if (r->page_offset == 0 && !is_list && r->row == r->rows.begin && begin &&
        page->offset != begin)
        return fail_changed(err, "has changed: the page of its first row is at another place");
    if (is_list) {
        r->counted = r->list.seen;
    } else if (r->page_offset == 0 && continues_file(r) && page->page > 0) {
        r->counted = r->column->dictionary_checksum; /* by the part before */
    } else if (r->page_offset == 0 && r->prefix.n_bytes > 0) {
        if (r->prefix.n_bytes == end)
            r->counted = r->column->checksum;
        else if (page->end_before == r->prefix.n_bytes)
            r->counted = r->column->dictionary_checksum;
        else if (page->end_before)
            return fail_changed(err, "has changed: its pages are not the ones that were packed");
    }
    r->page_offset = page->offset;
    r->stored_end = end;
    return true;
}

static input_prefix stored_of_parquet(const reader *base)
{
    const parquet_reader *r = (const parquet_reader *)base;
    const uint64_t before = r->prefix.n_bytes   ? r->prefix.checksum
                            : continues_file(r) ? 0
                                                : r->file.footer_checksum;
    const uint64_t pages = r->column ? r->column->checksum : 0;
    return (input_prefix){.n_bytes = r->stored_end - r->part.begin.offset,
                          .checksum = before + pages - r->counted};
}

/* ---- Rows ---- */

static bool finish_input(parquet_reader *r, failure *err)
{
    if (r->row > r->rows.end)
        return fail_changed(err, "has changed: no page begins where the part ends");
    if (r->row < r->rows.end)
        return fail(err, PARQUET_OTHER_ROWS);
    if (r->check_version && !input_version_check(&r->file.version, r->file.fd, err))
        return false;
    if (!r->part.joined || !r->part.has_end) /* else it is a place to resume at */
        r->stored_end = end_of_part(r);
    return true;
}

static reader_result read_row(parquet_reader *r, document *d, failure *err)
{
    const reader *base = &r->base;
    tokmap_value value, marks = {0};
    if (r->at_hand) {
        r->row++;
        r->offset += r->n_bytes;
        r->at_hand = false;
    }
    if (!r->column && !open_columns(r, err))
        return READER_FAILED;
    const bool is_list = base->options->list;
    const int result = is_list ? parquet_list_next(&r->list, &value, err)
                               : parquet_column_next(r->column, &value, err);
    if (result >= 0 && r->fields[MARKS].element) {
        const int marked = parquet_list_next(&r->marks, &marks, err);
        if (marked < 0 || (marked != result && !fail(err, PARQUET_OTHER_ROWS)))
            return READER_FAILED;
    }
    if (result <= 0)
        return result == 0 && finish_input(r, err) ? READER_END : READER_FAILED;
    const bool begins = r->column->page->offset != r->page_offset;
    if (begins && (stopped(r, err) || !count_page(r, err)))
        return READER_FAILED;
    for (size_t i = 0; base->options->fields && i < base->options->fields->n_fields; i++) {
        if (r->fields[i].element == r->element)
            base->values[i] = value;
        else if (r->fields[i].element &&
                 parquet_column_next(r->fields[i].column, &base->values[i], err) <= 0)
            return READER_FAILED;
    }
    if (base->options->fields_only) /* it is not a text */
        value = (tokmap_value){0};
    if (value.type != TOKMAP_VALUE_NULL && value.type != TOKMAP_VALUE_STRING)
        return fail(err, "damaged: a text is a number, in a column without values");
    r->at_hand = true;
    r->n_bytes = value.text_bytes;
    *d = (document){.text = (const uint8_t *)value.text,
                    .n_bytes = r->n_bytes,
                    .offset = r->offset,
                    .line = r->row,
                    .record_bytes = r->n_bytes,
                    .is_stored = is_list,
                    .values = base->values,
                    .marks = marks};
    if (is_list && (r->list.is_long || r->marks.is_long))
        return reader_refuse_long(base, d);
    return value.type == TOKMAP_VALUE_NULL ? READER_NULL : READER_DOCUMENT;
}

/* A file that was written to while it is read looks damaged. */
static reader_result next_row(reader *base, document *d, failure *err)
{
    parquet_reader *r = (parquet_reader *)base;
    failure changed = {0};
    const reader_result result = read_row(r, d, err);
    if (result == READER_FAILED && r->check_version && err->status == FAILURE_CONTENT &&
        !input_version_check(&r->file.version, r->file.fd, &changed))
        *err = changed;
    return result;
}

/* Goes there at once: row groups and pages before it are found by the footer and by headers. */
static int seek_row(reader *base, reader_place to, uint64_t max_bytes, failure *err)
{
    (void)max_bytes;
    parquet_reader *r = (parquet_reader *)base;
    if (to.line < r->rows.begin || to.line > r->rows.end) {
        fail_changed(err, "has changed: rows that an earlier run read are missing");
        return -1;
    }
    close_columns(r);
    r->row = to.line;
    r->offset = to.offset;
    r->at_hand = false;
    return 1;
}

static reader_place place_of_parquet(const reader *base)
{
    const parquet_reader *r = (const parquet_reader *)base;
    return (reader_place){.offset = r->offset + (r->at_hand ? r->n_bytes : 0),
                          .line = r->row + r->at_hand,
                          .n_records = r->row + r->at_hand - r->rows.begin};
}

/* ---- What it is ---- */

static void describe_row(const reader *base, reader_place place, uint64_t offset, char *text,
                         size_t text_bytes)
{
    const parquet_reader *r = (const parquet_reader *)base;
    const parquet_page_place *page = r->column ? r->column->page : NULL;
    char row[280];
    snprintf(row, sizeof row, "%.150s: row %" PRIu64, r->file.name, place.line);
    if (page && !r->base.options->list && place.line >= page->first_row &&
        place.line - page->first_row < page->header.n_values)
        parquet_row_describe(page, place.line, row, sizeof row);
    if (r->base.options->fields_only)
        snprintf(text, text_bytes, "%s", row);
    else
        snprintf(text, text_bytes, "%s: byte %" PRIu64 " of the text", row,
                 offset > place.offset ? offset - place.offset : 0);
}

static void summarize_parquet(const reader *base, reader_summary *summary)
{
    const parquet_reader *r = (const parquet_reader *)base;
    const parquet_footer *f = &r->file.footer;
    const uint32_t levels = 1u << PARQUET_ENCODING_RLE | 1u << PARQUET_ENCODING_BIT_PACKED;
    uint32_t encodings = 0;
    for (size_t i = 0; i < f->n_groups; i++)
        encodings |= parquet_chunk_of(f, i, r->element)->encodings;
    if (f->n_groups)
        snprintf(summary->codec, sizeof summary->codec, "%s",
                 parquet_codec_name(parquet_chunk_of(f, 0, r->element)->codec));
    parquet_encodings_text(encodings & ~levels, summary->encodings, sizeof summary->encodings);
    parquet_path(f, r->element, summary->column, sizeof summary->column);
    summary->n_groups = f->n_groups;
}

static void note_parquet(const reader *base)
{
    const parquet_reader *r = (const parquet_reader *)base;
    const field_list *fields = base->options->fields;
    const bool is_told = r->rows.begin == 0 || r->part.joined;
    for (size_t i = 0; fields && is_told && i < fields->n_fields; i++) {
        failure why;
        if (r->fields[i].element)
            reader_note_decimal(base, i, r->fields[i].element->scale);
        else if (base->lacking >> i & 1 &&
                 !parquet_value_column(&r->file.footer, fields->names[i], &why))
            reader_note_lacking(base, i, why.text);
    }
}

static bool list_parquet(reader *base, field_list *fields, failure *err)
{
    const parquet_footer *f = &((const parquet_reader *)base)->file.footer;
    for (size_t i = 1; i < f->n_elements; i++) {
        const parquet_element *e = &f->elements[i];
        if (e->depth == 1 && parquet_is_value(e) &&
            !field_list_add_key(fields, (const char *)e->name, e->name_bytes, err))
            return false;
    }
    return true;
}

/* ---- Parts ---- */

int parquet_reader_next_cut(reader *base, uint64_t at_least, corpus_cut *cut, failure *err)
{
    parquet_reader *r = (parquet_reader *)base;
    parquet_page_place page;
    int result;
    if (!r->cuts.next.file)
        begin_scan(r, &r->cuts);
    /* Which rows a page of lists begins with is known only at the start of a row group. */
    do
        result = parquet_scan_find(&r->cuts, at_least, &page, err);
    while (result > 0 && (page.first_row == 0 || (r->base.options->list && page.page > 0)));
    if (result > 0)
        *cut =
            (corpus_cut){.offset = page.offset,
                         .row = r->base.options->list ? r->file.footer.groups[page.group].first_row
                                                      : page.first_row};
    return result;
}

/* Finds the rows that are read. */
static bool begin_part(parquet_reader *r, const input_part *part, failure *err)
{
    const uint64_t n_rows = r->file.footer.n_rows;
    if (part)
        r->part = *part;
    r->rows = (parquet_rows){.begin = r->part.begin.row,
                             .end = r->part.has_end ? r->part.end.row : n_rows};
    if (r->rows.begin > r->rows.end || r->rows.end > n_rows)
        return fail_changed(err, "has changed: the rows to be read are missing");
    r->row = r->rows.begin;
    r->base.n_in_all = r->rows.end - r->rows.begin;
    r->stored_end = r->part.begin.offset + r->prefix.n_bytes;
    if (r->prefix.n_bytes)
        r->prefix.n_bytes = r->stored_end;
    return true;
}

static bool open_parquet(reader *base, failure *err)
{
    parquet_reader *r = (parquet_reader *)base;
    const input_source *source = base->source;
    base->format = CORPUS_PARQUET;
    r->prefix = source->prefix;
    r->reserve = source->reserve;
    r->reserve_context = source->reserve_context;
    r->check_version = source->version && source->version->known;
    return parquet_file_open(&r->file, source->path, base->fd, err) && take_footer(r, err) &&
           choose_columns(r, err) && begin_part(r, source->part, err) &&
           ((!source->prefix.checksum && !source->prefix.n_bytes) || check_prefix(r, err));
}

const reader_kind parquet_reader_kind = {
    .reader_bytes = sizeof(parquet_reader),
    .open = open_parquet,
    .close = close_parquet,
    .next = next_row,
    .seek = seek_row,
    .where = place_of_parquet,
    .stored = stored_of_parquet,
    .describe = describe_row,
    .summarize = summarize_parquet,
    .note_fields = note_parquet,
    .has_columns = true,
    .lacking = reader_lacking_columns,
    .list_fields = list_parquet,
};
