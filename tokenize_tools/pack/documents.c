/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/documents.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "formats/marked_text.h"
#include "base/value_bytes.h"
#include "tokenizer/file/special_place.h"

typedef struct packed_document {
    const uint8_t *text;
    size_t n_bytes;
    const corpus_record *at;
} packed_document;

/* ---- Documents that are left out ---- */

#define MAX_PRINTED 10 /* messages about documents of an input */

bool pack_said_add(pack_said *said, uint64_t of)
{
    if (of != said->input)
        *said = (pack_said){.input = of};
    return said->n++ < MAX_PRINTED;
}

/* Says why the document cannot be packed. */
static void describe_special(const pack_documents *d, const packed_document *doc, char reason[512])
{
    const pack_options *o = d->parts->options;
    special_place place = {.at = 0};
    if (o->input.list) {
        snprintf(reason, 512, "%s",
                 o->specials == SPECIALS_ERROR
                     ? "a special token is in its text, or the tokenizer changes the text"
                     : "the tokenizer changes its text, so the part of a token is not known");
        return;
    }
    if (o->specials == SPECIALS_ERROR)
        place = special_place_find(d->parts->tokenizer->tokenizer, doc->text, doc->n_bytes);
    if (place.name[0])
        snprintf(reason, 512, "byte %" PRIu64 ": the special token %s is in its text",
                 (uint64_t)place.at, place.name);
    else
        snprintf(reason, 512, TOKENIZE_TOO_LONG_TEXT);
}

static int leave_out(pack_documents *d, const packed_document *doc, pack_skipped *skipped,
                     pack_error *err)
{
    char reason[512], text[900];
    const char *name = d->parts->inputs->names[d->at->input];
    const bool prints = pack_said_add(&d->said, d->at->input) && !d->parts->options->quiet;
    describe_special(d, doc, reason);
    snprintf(text, sizeof text, "%.300s: document %" PRIu64 ": %s", name,
             d->at->input_documents + 1, reason);
    if (!skipped)
        return pack_error_set(err, CLI_INPUT, "%s", text);
    d->at->special_documents++;
    d->at->special_bytes += doc->at->n_bytes;
    if (prints) {
        cli_progress_clear(d->progress);
        cli_warn("%s", text);
    }
    return pack_skipped_add(skipped, &(skipped_document){name, *doc->at, reason, strlen(reason)},
                            err);
}

/* ---- Documents that stay ---- */

/* Returns the role of tokens that have a mark. */
static tokmap_span_role role_of(uint32_t mark)
{
    const uint32_t number = (mark & ~MARKED_TOKEN) >> MARKED_ROLE_SHIFT; /* from 1 */
    const tokmap_span_role first =
        mark & MARKED_TOKEN ? TOKMAP_SPAN_UNCOUNTED : TOKMAP_SPAN_COUNTED;
    return number == 0 ? TOKMAP_SPAN_PROMPT : (tokmap_span_role)(first + number - 1);
}

/* Takes the marks from the ids, and makes spans of them. bits: of an id, which are its mark. */
static int add_spans(pack_output *out, uint32_t *ids, size_t n_ids, uint32_t bits, pack_error *err)
{
    tokmap_error why;
    for (size_t i = 0, begin = 0; i < n_ids; i++) {
        const uint32_t mark = ids[i] & bits;
        const bool goes_on = i + 1 < n_ids && (ids[i + 1] & bits) == mark;
        const tokmap_span span = {begin, i + 1 - begin, role_of(mark)};
        ids[i] &= ~bits;
        if (mark && !goes_on && tokmap_writer_add_span(out->writer, &span, &why) != TOKMAP_OK)
            return pack_error_from_writer(err, &why);
        if (!goes_on)
            begin = i + 1;
    }
    return CLI_OK;
}

/* An error in the values of a document is one of its input. */
static int add_values(const pack_documents *d, const pack_output *out, const tokmap_value *values,
                      pack_error *err)
{
    const uint32_t n = (uint32_t)d->parts->options->input.n_kept;
    tokmap_error why;
    if (n == 0 || tokmap_writer_add_meta(out->writer, values, n, &why) == TOKMAP_OK)
        return CLI_OK;
    if (why.status != TOKMAP_ERR_ARGUMENT)
        return pack_error_from_writer(err, &why);
    const size_t n_file = why.file_bytes ? why.file_bytes + strlen(": ") : 0; /* of this run */
    pack_error_set(err, CLI_INPUT,
                   "%.200s: --meta: %s; documents are counted in the dataset, and %" PRIu64
                   " of this input are before it; leave the column out of --meta, or pack this "
                   "input into another dataset",
                   d->parts->inputs->names[d->at->input], why.text + n_file,
                   d->at->input_documents);
    err->start_over = true;
    return CLI_INPUT;
}

/* The documents of a job whose ends follow each other, and which go to one output. */
typedef struct document_run {
    const pack_job *job;
    /* In batch.ends. At most one if there are marks or values, or ids that are not stored. */
    size_t first, n;
    const tokmap_value *values;
} document_run;

static size_t tokens_before(const pack_job *job, size_t end)
{
    return end ? job->ends[end - 1].n_tokens : 0;
}

static int write_run(pack_documents *d, const document_run *run, pack_error *err)
{
    const pack_job *job = run->job;
    pack_output *out = &d->outputs->list[job->ends[run->first].output];
    const size_t before = tokens_before(job, run->first);
    const size_t n_ids = tokens_before(job, run->first + run->n) - before;
    void *ids = job->tokens + before * job->token_bytes;
    tokmap_error why;
    tokmap_status status = TOKMAP_OK;
    if (d->parts->options->input.list &&
        add_spans(out, ids, n_ids, pack_marks_bits(d->parts->options), err) != CLI_OK)
        return err->exit_code;
    if (!job->is_stored)
        status = tokmap_writer_append(out->writer, ids, n_ids, &why);
    if (status == TOKMAP_OK && add_values(d, out, run->values, err) != CLI_OK)
        return err->exit_code;
    if (status == TOKMAP_OK)
        status = job->is_stored
                     ? tokmap_writer_append_documents(out->writer, ids, n_ids,
                                                      job->lengths + run->first, run->n, &why)
                     : tokmap_writer_end_document(out->writer, &why);
    if (status != TOKMAP_OK)
        return pack_error_from_writer(err, &why);
    out->tokens += n_ids;
    out->documents += run->n;
    d->at->tokens += n_ids;
    d->at->documents += run->n;
    return CLI_OK;
}

/* ---- Inputs ---- */

/* end: of an input that was read to its end; NULL: its size and checksum are not known. */
static int end_input(pack_documents *d, const corpus_end *end, pack_error *err)
{
    const uint64_t stored_bytes = end ? end->stored_bytes : 0;
    const uint64_t checksum = end ? end->checksum : 0;
    const char *name = d->parts->inputs->names[d->at->input];
    for (size_t i = 0; i < d->outputs->n; i++) {
        tokmap_error why;
        if (tokmap_writer_end_input(d->outputs->list[i].writer, name, stored_bytes, checksum,
                                    &why) != TOKMAP_OK)
            return pack_error_from_writer(err, &why);
    }
    if (end)
        pack_fields_end_input(d->fields, end);
    if (end && end->n_repaired > 0)
        input_group_add(&d->repaired, name);
    d->n_repaired += end ? end->n_repaired : 0;
    d->at->input++;
    d->at->input_documents = 0;
    if (d->parts->inputs->versions[d->at->input - 1].known)
        d->at->file_bytes += stored_bytes;
    return CLI_OK;
}

/* ---- Jobs ---- */

static size_t text_before(const pack_job *job, size_t end)
{
    return end ? job->batch.ends[end - 1].at : 0;
}

static bool is_special(const pack_documents *d, const pack_job *job, size_t end)
{
    return d->next_special < job->n_specials && job->specials[d->next_special] == end;
}

/* How many documents can be written at once, from the one that ends at ends[first] on: all of one
 * output, up to one that is left out, the end of an input, or the document that reaches a limit. */
static size_t run_length(const pack_documents *d, const pack_job *job, size_t first)
{
    const pack_options *o = d->parts->options;
    uint64_t tokens = d->at->tokens, documents = d->at->documents;
    size_t i = first;
    if (!job->is_stored || o->input.n_kept > 0)
        return 1;
    do {
        tokens += job->lengths[i++];
        documents++;
    } while (i < job->batch.n_ends && !job->batch.ends[i].input && !is_special(d, job, i) &&
             job->ends[i].output == job->ends[first].output && documents < o->limit_documents &&
             tokens < o->limit_tokens);
    return i - first;
}

/* Takes the documents that end at ends[first] and later, which are at least one. */
static int take_documents(pack_documents *d, const pack_job *job, size_t first,
                          pack_skipped *skipped, size_t *n, pack_error *err)
{
    const corpus_batch *b = &job->batch;
    tokmap_value values[FIELD_LIST_MAX];
    int code;
    *n = 1;
    if (b->values)
        d->next_values +=
            value_bytes_get(b->values + d->next_values, values, d->parts->options->input.n_kept);
    if (b->values)
        pack_fields_see(d->fields, values, d->at->documents);
    if (is_special(d, job, first)) {
        d->next_special++;
        const size_t from = text_before(job, first);
        code = leave_out(d,
                         &(packed_document){.text = b->text + from,
                                            .n_bytes = b->ends[first].at - from,
                                            .at = &b->ends[first].record},
                         skipped, err);
    } else {
        *n = run_length(d, job, first);
        code = write_run(d, &(document_run){job, first, *n, values}, err);
    }
    d->at->input_documents += *n;
    d->at->text_bytes += text_before(job, first + *n) - text_before(job, first);
    return code;
}

int pack_documents_take(pack_documents *d, const pack_job *job, pack_skipped *skipped,
                        size_t *n_ends, pack_error *err)
{
    const pack_options *o = d->parts->options;
    const corpus_batch *b = &job->batch;
    *n_ends = 0;
    d->next_special = d->next_values = 0;
    for (size_t i = 0, n; i < b->n_ends; i += n) {
        const corpus_end *end = &b->ends[i];
        n = 1;
        int code =
            end->input ? end_input(d, end, err) : take_documents(d, job, i, skipped, &n, err);
        if (code != CLI_OK)
            return code;
        if (!end->input &&
            (d->at->documents >= o->limit_documents || d->at->tokens >= o->limit_tokens)) {
            *n_ends = i + n;
            d->at->specials_seen += job->ends[i + n - 1].specials_seen;
            return end_input(d, NULL, err);
        }
    }
    d->at->specials_seen += job->specials_seen;
    return CLI_OK;
}
