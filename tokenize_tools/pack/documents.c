/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/documents.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "corpus/marked_text.h"
#include "base/value_bytes.h"
#include "tokenizer/file/special_place.h"

struct pack_documents {
    const pack_parts *parts;
    const pack_options *o; /* of the parts */
    pack_outputs *outputs;
    cli_progress *progress;
    pack_position at;
    size_t next_special; /* in job->specials */
    size_t next_values;  /* in job->batch.values */
    uint64_t n_before;   /* text bytes of the current document, in earlier parts */
    uint64_t n_ids;      /* marked text: of the current document, that were written */
    bool may_drop;       /* a document may still be left out after it has begun */
    /* The beginning of a document that is held back: until its split is known or, with may_drop,
     * until it is known to have no special token. */
    id_buffer held;
    size_t n_head; /* bytes of its text in head; more than 0: held back */
    bool holding;
    uint8_t head[PACK_SPLIT_TEXT_BYTES];
};

/* A document, or the part of it that is in one job. */
typedef struct document_part {
    const uint8_t *text;
    size_t n_bytes;
    uint32_t *ids; /* NULL: none */
    size_t n_ids;
    bool special; /* its text contains a special token, and that is an error */
    bool last;
    const tokmap_value *values; /* with `last`, of the fields that are kept */
} document_part;

pack_documents *pack_documents_new(const pack_parts *parts, pack_outputs *outputs,
                                   cli_progress *progress)
{
    const pack_options *o = parts->options;
    pack_documents *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->parts = parts;
    d->o = o;
    d->outputs = outputs;
    d->progress = progress;
    d->may_drop = (o->specials == SPECIALS_ERROR || o->input.list == LIST_PARTS) &&
                  o->input.on_error != ON_ERROR_FAIL;
    return d;
}

void pack_documents_free(pack_documents *d)
{
    if (!d)
        return;
    id_buffer_free(&d->held);
    free(d);
}

bool pack_documents_may_checkpoint(const pack_documents *d)
{
    return !d->holding && !(d->at.open && d->o->input.list);
}

const pack_position *pack_documents_counts(const pack_documents *d)
{
    return &d->at;
}

void pack_documents_set_position(pack_documents *d, const pack_position *position,
                                 uint64_t n_before)
{
    d->at = *position;
    d->n_before = n_before;
}

/* ---- Documents that are left out ---- */

static void describe_special(const pack_documents *d, const document_part *part, char text[512])
{
    if (d->o->input.list) {
        snprintf(
            text, 512, "%.300s: document %" PRIu64 ": %s", d->parts->inputs->names[d->at.input],
            d->at.input_documents + 1,
            d->o->specials == SPECIALS_ERROR
                ? "a special token is in its text, or the tokenizer changes the text"
                : "the tokenizer changes its text, so nobody knows which tokens are whose part");
        return;
    }
    special_place place = {.at = 0};
    if (d->o->specials == SPECIALS_ERROR)
        place = special_place_find(d->parts->tokenizer->tokenizer, part->text, part->n_bytes);
    if (!place.name[0]) {
        snprintf(text, 512, "%.300s: document %" PRIu64 ": " TOKENIZE_TOO_LONG_TEXT,
                 d->parts->inputs->names[d->at.input], d->at.input_documents + 1);
        return;
    }
    snprintf(text, 512,
             "%.300s: document %" PRIu64 ": byte %" PRIu64 ": the special token %s is in its text",
             d->parts->inputs->names[d->at.input], d->at.input_documents + 1,
             d->n_before + place.at, place.name);
}

/* A document that an earlier run with --on-error fail wrote in part cannot be left out. */
static int drop_document(pack_documents *d, const document_part *part, pack_error *err)
{
    char text[512] = "";
    const bool refused = !d->may_drop || d->at.open,
               told = d->at.special_documents < 10 && !d->o->quiet;
    if (refused || told)
        describe_special(d, part, text);
    if (refused) {
        pack_error_set(err, CLI_INPUT, "%s%s", text,
                       d->may_drop ? ", and an earlier run packed the text before it" : "");
        err->start_over = d->may_drop;
        return CLI_INPUT;
    }
    d->at.dropped = 1;
    d->at.special_documents++;
    d->at.special_tokens += d->held.n;
    d->held.n = 0;
    d->holding = false;
    if (told) {
        cli_progress_clear(d->progress);
        cli_warn("%s", text);
    }
    return CLI_OK;
}

/* ---- Held back ---- */

static void fill_head(pack_documents *d, const document_part *part)
{
    size_t room = sizeof d->head - d->n_head;
    size_t n = part->n_bytes < room ? part->n_bytes : room;
    memcpy(d->head + d->n_head, part->text, n);
    d->n_head += n;
}

static int hold_back(pack_documents *d, const document_part *part, pack_error *err)
{
    uint64_t most = d->o->memory / sizeof(uint32_t);
    if (d->held.n + part->n_ids > most)
        return pack_error_set(err, CLI_INPUT,
                              "%.300s: document %" PRIu64
                              ": is too long to be searched for special tokens "
                              "before it is packed; raise --memory, or use --on-error fail",
                              d->parts->inputs->names[d->at.input], d->at.input_documents + 1);
    if (!d->holding)
        d->n_head = 0;
    d->holding = true;
    fill_head(d, part);
    if (!part->ids)
        return CLI_OK;
    if (!id_buffer_reserve(&d->held, part->n_ids))
        return pack_error_no_memory(err);
    memcpy(d->held.ids + d->held.n, part->ids, part->n_ids * sizeof *part->ids);
    d->held.n += part->n_ids;
    return CLI_OK;
}

/* ---- Documents that stay ---- */

/* Chooses the output of a document by the beginning of its text. */
static size_t choose_output(const pack_documents *d, const uint8_t *text, size_t n_bytes)
{
    const size_t n = n_bytes < sizeof d->head ? n_bytes : sizeof d->head;
    const uint64_t hash = d->o->n_splits > 0 ? XXH3_64bits(text, n) : 0;
    for (size_t i = 0; i < d->o->n_splits; i++) {
        if (hash < d->o->splits[i].below)
            return i + 1;
    }
    return 0;
}

/* Takes the marks from the ids, and makes spans of them. */
static int add_spans(pack_documents *d, uint32_t *ids, size_t n_ids, pack_error *err)
{
    pack_output *out = &d->outputs->list[d->at.output];
    tokmap_error why;
    for (size_t i = 0, begin = 0; i < n_ids; i++) {
        const bool marked = ids[i] & MARKED_TOKEN;
        const bool goes_on = marked && i + 1 < n_ids && ids[i + 1] & MARKED_TOKEN;
        const tokmap_span span = {d->n_ids + begin, i + 1 - begin, TOKMAP_SPAN_PROMPT};
        ids[i] &= ~MARKED_TOKEN;
        if (marked && !goes_on && tokmap_writer_add_span(out->writer, &span, &why) != TOKMAP_OK)
            return pack_error_from_writer(err, &why);
        if (!goes_on)
            begin = i + 1;
    }
    d->n_ids += n_ids;
    return CLI_OK;
}

static int append_ids(pack_documents *d, uint32_t *ids, size_t n_ids, pack_error *err)
{
    pack_output *out = &d->outputs->list[d->at.output];
    tokmap_error why;
    if (n_ids == 0)
        return CLI_OK;
    if (d->o->input.list && add_spans(d, ids, n_ids, err) != CLI_OK)
        return err->exit_code;
    if (tokmap_writer_append(out->writer, ids, n_ids, &why) != TOKMAP_OK)
        return pack_error_from_writer(err, &why);
    out->tokens += n_ids;
    d->at.tokens += n_ids;
    return CLI_OK;
}

/* An error in the values of a document is one of its input. */
static int add_values(const pack_documents *d, const tokmap_value *values, pack_error *err)
{
    const pack_output *out = &d->outputs->list[d->at.output];
    const uint32_t n = (uint32_t)d->o->input.n_kept;
    tokmap_error why;
    if (n == 0 || tokmap_writer_add_meta(out->writer, values, n, &why) == TOKMAP_OK)
        return CLI_OK;
    if (why.status != TOKMAP_ERR_ARGUMENT)
        return pack_error_from_writer(err, &why);
    /* The writer names a file of this run first: "P.tmv.partial: why". */
    const size_t n_prefix = strlen(out->prefix);
    const char *end =
        strncmp(why.text, out->prefix, n_prefix) == 0 ? strstr(why.text + n_prefix, ": ") : NULL;
    pack_error_set(err, CLI_INPUT,
                   "%.200s: --meta: %s; documents are counted in the dataset, and %" PRIu64
                   " of this input are before it; leave the column out of --meta, or pack this "
                   "input into another dataset",
                   d->parts->inputs->names[d->at.input], end ? end + 2 : why.text,
                   d->at.input_documents);
    err->start_over = true;
    return CLI_INPUT;
}

static int end_document(pack_documents *d, const tokmap_value *values, pack_error *err)
{
    pack_output *out = &d->outputs->list[d->at.output];
    tokmap_error why;
    if (add_values(d, values, err) != CLI_OK)
        return err->exit_code;
    if (tokmap_writer_end_document(out->writer, &why) != TOKMAP_OK)
        return pack_error_from_writer(err, &why);
    out->documents++;
    d->at.documents++;
    d->n_ids = 0;
    return CLI_OK;
}

static int write_part(pack_documents *d, const document_part *part, pack_error *err)
{
    if (!d->at.open && d->holding) {
        fill_head(d, part);
        d->at.output = choose_output(d, d->head, d->n_head);
    } else if (!d->at.open) {
        d->at.output = choose_output(d, part->text, part->n_bytes);
    }
    int code = d->holding ? append_ids(d, d->held.ids, d->held.n, err) : CLI_OK;
    d->holding = false;
    d->held.n = 0;
    if (code == CLI_OK)
        code = append_ids(d, part->ids, part->n_ids, err);
    d->at.open = 1;
    if (code == CLI_OK && part->last)
        code = end_document(d, part->values, err);
    return code;
}

static int take_part(pack_documents *d, const document_part *part, pack_error *err)
{
    const size_t n_head = (d->holding ? d->n_head : 0) + part->n_bytes;
    const bool is_known = d->at.open || part->last || /* which output it goes to */
                          (!d->may_drop && (d->o->n_splits == 0 || n_head >= sizeof d->head));
    int code = CLI_OK;
    if (part->special && !d->at.dropped)
        code = drop_document(d, part, err);
    if (code == CLI_OK && !d->at.dropped)
        code = is_known ? write_part(d, part, err) : hold_back(d, part, err);
    if (d->at.dropped)
        d->at.special_tokens += part->n_ids;
    d->n_before += part->n_bytes;
    if (code == CLI_OK && part->last) {
        d->at.input_documents++;
        d->at.text_bytes += d->n_before;
        d->at.open = d->at.dropped = d->at.output = 0;
        d->n_before = 0;
    }
    return code;
}

/* ---- Inputs ---- */

static int end_input(pack_documents *d, uint64_t stored_bytes, uint64_t checksum, pack_error *err)
{
    const char *name = d->parts->inputs->names[d->at.input];
    for (size_t i = 0; i < d->outputs->n; i++) {
        tokmap_error why;
        if (tokmap_writer_end_input(d->outputs->list[i].writer, name, stored_bytes, checksum,
                                    &why) != TOKMAP_OK)
            return pack_error_from_writer(err, &why);
    }
    d->at.input++;
    d->at.input_documents = 0;
    if (d->parts->inputs->versions[d->at.input - 1].known)
        d->at.file_bytes += stored_bytes;
    return CLI_OK;
}

/* ---- Jobs ---- */

/* The part of a document between the previous end and ends[end]; n_ends: the rest. */
static int take_text(pack_documents *d, const pack_job *job, size_t end, pack_error *err)
{
    const corpus_batch *b = &job->batch;
    bool last = end < b->n_ends;
    size_t text_from = end ? b->ends[end - 1].at : 0, text_to = last ? b->ends[end].at : b->n_bytes;
    size_t ids_from = end ? job->ends[end - 1].n_ids : 0,
           ids_to = last ? job->ends[end].n_ids : job->ids.n;
    if (!last && text_from == text_to)
        return CLI_OK;
    bool special = d->next_special < job->n_specials && job->specials[d->next_special] == end;
    d->next_special += special;
    tokmap_value values[FIELD_LIST_MAX];
    if (last && b->values)
        d->next_values += value_bytes_get(b->values + d->next_values, values, d->o->input.n_kept);
    document_part part = {
        .text = b->text + text_from,
        .n_bytes = text_to - text_from,
        .ids = ids_from < ids_to ? job->ids.ids + ids_from : NULL,
        .n_ids = ids_to - ids_from,
        .special = special,
        .last = last,
        .values = values,
    };
    return take_part(d, &part, err);
}

int pack_documents_take(pack_documents *d, const pack_job *job, size_t *n_ends, pack_error *err)
{
    const corpus_batch *b = &job->batch;
    *n_ends = 0;
    d->next_special = d->next_values = 0;
    for (size_t i = 0; i < b->n_ends; i++) {
        const corpus_end *end = &b->ends[i];
        int code = end->input ? end_input(d, end->stored_bytes, end->checksum, err)
                              : take_text(d, job, i, err);
        if (code != CLI_OK)
            return code;
        if (!end->input &&
            (d->at.documents >= d->o->limit_documents || d->at.tokens >= d->o->limit_tokens)) {
            *n_ends = i + 1;
            d->at.specials_seen += job->ends[i].specials_seen;
            /* The input was not read to its end: its size and checksum are not known. */
            return end_input(d, 0, 0, err);
        }
    }
    d->at.specials_seen += job->specials_seen;
    return take_text(d, job, b->n_ends, err);
}
