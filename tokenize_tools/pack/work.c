/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/work.h"

#include <stdlib.h>
#include <string.h>

#include "pack/pipeline.h"
#include "system/platform_thread.h"
#include "system/process.h"

/* A checkpoint waits for the disk: at most this fraction of the time is spent on it. */
#define CHECKPOINT_SHARE 5
#define WAIT_MS 100
/* Text of a batch: large enough to make handing it over cheap, small enough for the caches. */
#define MAX_BATCH_BYTES ((uint64_t)1 << 20)

/* ---- The balance ---- */

/* Compares what was read with what was written, at each checkpoint and before any
 * output gets its name.
 *
 * The reader of an input, the corpus, the encoders, the packer and the writers each count what
 * passes them. A checkpoint stores these counts with the place, and a run that resumes continues
 * them. Data that is lost or duplicated between two of them shows as a difference.
 *
 * The reader counts records by its position, which is where a resumed run continues; the corpus
 * counts those that it has handed out or left out. Neither is computed from the other, so a
 * position after a record that was not handed out is never saved. */

static int compare_counts(const char *what, uint64_t in, uint64_t out, pack_error *err)
{
    if (in == out)
        return CLI_OK;
    pack_error_set(err, CLI_DATASET,
                   "%s: %s came in and %s went out: data was lost or duplicated, so nothing is "
                   "published; this is a bug in tokmap or an error of this machine's memory or "
                   "disk; please report it",
                   what, cli_count(in).s, cli_count(out).s);
    err->start_over = true;
    return CLI_DATASET;
}

int pack_work_check_balance(const pack_work *w, pack_error *err)
{
    const corpus_counts *read = &w->at.place.counts;
    const pack_position *packed = &w->at.position;
    const uint64_t n_left_out = read->bad_documents + packed->special_documents;
    uint64_t file_bytes = 0, n_documents = 0, n_tokens = 0;
    int code = CLI_OK;
    /* The input in which a limit was reached was not read to its end. */
    for (uint64_t i = 0; i + w->at.limited < packed->input; i++)
        file_bytes += w->parts->inputs->versions[i].n_bytes;
    for (size_t i = 0; i < w->outputs.n && code == CLI_OK; i++) {
        const pack_output *out = &w->outputs.list[i];
        n_documents += out->documents;
        n_tokens += out->tokens;
        if (!out->writer) /* it has its name already, and was compared when it was opened */
            continue;
        code = compare_counts("documents of an output", out->documents,
                              tokmap_writer_n_documents(out->writer), err);
        if (code == CLI_OK)
            code = compare_counts("tokens of an output", out->tokens,
                                  tokmap_writer_n_tokens(out->writer), err);
    }
    const struct {
        const char *what;
        uint64_t in, out;
    } pairs[] = {
        {"inputs", w->at.limited ? packed->input : w->at.place.input, packed->input},
        {"bytes of the input files", file_bytes, packed->file_bytes},
        {"records", read->records,
         read->documents + read->bad_documents + read->null_documents + read->filtered_documents},
        {"documents", read->documents, packed->documents + packed->special_documents},
        {"bytes of text", read->text_bytes, packed->text_bytes},
        {"tokens", w->at.encoded_tokens, packed->tokens},
        {"documents for the outputs", packed->documents, n_documents},
        {"documents that were left out", n_left_out,
         w->skipped ? w->skipped->n_documents : n_left_out},
        {"tokens for the outputs", packed->tokens, n_tokens},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs && code == CLI_OK; i++)
        code = compare_counts(pairs[i].what, pairs[i].in, pairs[i].out, err);
    return code;
}

/* ---- Progress ---- */

/* "12.3 MB/s of text, 4.56 M tokens/s" */
static void set_rates(pack_work *w)
{
    cli_text *text = &w->progress.rates;
    const double seconds = (double)cli_progress_ns(&w->progress) / 1e9;
    const uint64_t n_tokens = w->at.position.tokens - w->tokens_before;
    snprintf(text->s, sizeof text->s, "%.1f MB/s of text, %.2f M tokens/s",
             (double)w->text_bytes / seconds / 1e6, (double)n_tokens / seconds / 1e6);
}

/* Counts the bytes of all inputs, up to the place. */
static uint64_t stored_bytes(const corpus_place *place)
{
    return place->counts.stored_bytes + place->stored.n_bytes;
}

static void update_progress(pack_work *w)
{
    char *notes = w->progress.notes;
    const uint64_t n_skipped = pack_note_n_bad(&w->at);
    set_rates(w);
    if (n_skipped)
        snprintf(notes, sizeof w->progress.notes, ", %s skipped", cli_count(n_skipped).s);
    w->progress.seconds_left = pack_remaining_seconds(w->remaining, tokmap_i_now_ns());
    cli_progress_update(&w->progress, w->stored_bytes, w->parts->inputs->total_bytes);
}

void pack_work_print_end(pack_work *w)
{
    const uint64_t n_tokens = w->at.position.tokens - w->tokens_before;
    set_rates(w);
    snprintf(w->progress.notes, sizeof w->progress.notes, ", %.2f bytes a token",
             n_tokens ? (double)w->text_bytes / (double)n_tokens : 0);
    cli_progress_end(&w->progress, w->stored_bytes);
}

/* ---- Checkpoints ---- */

int pack_work_checkpoint(pack_work *w, bool finishing, pack_error *err)
{
    int code = pack_work_check_balance(w, err);
    if (code == CLI_OK)
        code = pack_skipped_sync(w->skipped, err);
    if (code != CLI_OK)
        return code;
    const uint64_t n_begun = w->at.place.input + corpus_place_is_begun(&w->at.place);
    pack_note note = w->at;
    note.fingerprint_hash = w->fingerprint.hash;
    note.done_hash = pack_fingerprint_hash(&w->fingerprint, note.place.input);
    note.begun_hash = pack_fingerprint_hash(&w->fingerprint, n_begun);
    note.on_error = (uint64_t)w->parts->options->input.on_error;
    note.max_document = w->parts->options->max_document;
    note.skipped = pack_skipped_now(w->skipped);
    note.finishing = finishing;
    for (size_t i = 0; i < w->outputs.n; i++) {
        note.tokens[i] = w->outputs.list[i].tokens;
        note.documents[i] = w->outputs.list[i].documents;
    }
    uint8_t *bytes = malloc(TOKMAP_MAX_NOTE_BYTES);
    if (!bytes)
        return pack_error_no_memory(err);
    bool first = !pack_outputs_keep(&w->outputs);
    size_t n_bytes = pack_note_encode(&note, first ? &w->fingerprint : NULL, bytes);
    for (size_t i = 0; i < w->outputs.n && code == CLI_OK; i++) {
        tokmap_error why;
        if (tokmap_writer_checkpoint(w->outputs.list[i].writer, bytes, n_bytes, &why) != TOKMAP_OK)
            code = pack_error_from_writer(err, &why);
    }
    free(bytes);
    return code;
}

bool pack_work_may_checkpoint(const pack_work *w)
{
    /* In the input at which an earlier run ended, only after the reader has come as far: only then
     * is the input known to be the same. */
    const corpus_place *before = &w->from.note.place;
    const bool is_known = w->from.checkpoint == 0 || w->at.place.input != before->input ||
                          w->at.place.stored.n_bytes >= before->stored.n_bytes;
    return is_known && w->consistent;
}

/* Makes a checkpoint if one is due and possible here. */
static int checkpoint_if_due(pack_work *w, pack_error *err)
{
    uint64_t now = cli_progress_ns(&w->progress);
    if (now < w->next_checkpoint_ns || !pack_work_may_checkpoint(w))
        return CLI_OK;
    if (w->parts->inputs->once) {
        if (!w->warned_once && !w->parts->options->quiet) {
            cli_progress_clear(&w->progress);
            cli_warn("%s can be read only once; if this run is interrupted, the next one has to "
                     "start over",
                     w->parts->inputs->once);
        }
        w->warned_once = true;
        return CLI_OK;
    }
    int code = pack_work_checkpoint(w, false, err);
    uint64_t after = cli_progress_ns(&w->progress), least = CHECKPOINT_SHARE * (after - now);
    bool often = w->checkpoint_ns == 0 || w->checkpoint_ns > least;
    w->next_checkpoint_ns = after + (often ? w->checkpoint_ns : least);
    return code;
}

/* ---- Messages ---- */

/* Prints the messages, and keeps the places of bad documents. */
static int take_items(pack_work *w, const pack_reports *r, size_t n_items, pack_error *err)
{
    int code = CLI_OK;
    for (size_t i = 0; i < n_items && code == CLI_OK; i++) {
        const pack_item *item = &r->items[i];
        const char *text = r->text + item->begin;
        if (item->is_lacking && item->field < w->parts->options->input.n_kept) {
            pack_fields_keep(&w->fields, item->field, text);
            continue;
        }
        if (!w->parts->options->quiet && (!item->is_bad || pack_said_add(&w->said, item->input))) {
            cli_progress_clear(&w->progress);
            cli_warn("%s", text);
        }
        const size_t n_before = item->n_place + 2; /* ": " */
        if (item->is_bad)
            code =
                pack_skipped_add(w->skipped,
                                 &(skipped_document){w->parts->inputs->names[item->input], item->at,
                                                     text + n_before, item->n_bytes - n_before},
                                 err);
    }
    return code;
}

/* ---- Jobs ---- */

static int take_job(pack_work *w, const pack_job *job, pack_error *err)
{
    const pack_reports *reports = &job->reports;
    if (reports->no_memory)
        return pack_error_no_memory(err);
    w->consistent = false;
    size_t enough = 0;
    int code = pack_documents_take(&w->documents, job, w->skipped, &enough, err);
    const pack_moment *last = enough ? &reports->moments[enough - 1] : NULL;
    const int taken = take_items(w, reports, last ? last->n_items : reports->n_items, err);
    if (code == CLI_OK)
        code = taken;
    if (code != CLI_OK)
        return code;
    w->at.place = job->batch.after;
    w->at.fields_seen = job->batch.fields_seen | w->fields.seen_before;
    if (stored_bytes(&w->at.place) >
        w->stored_bytes) /* a run that resumes reads some of them again */
        w->stored_bytes = stored_bytes(&w->at.place);
    w->text_bytes += job->batch.n_bytes;
    pack_remaining_reach(w->remaining, w->parts->inputs, w->at.place.input, w->stored_bytes,
                         job->batch.n_bytes);
    w->at.encoded_tokens += last ? job->ends[enough - 1].n_tokens : job->n_ids;
    w->at.limited = enough > 0;
    w->consistent = !w->at.limited && !job->batch.failed;
    if (!last)
        return checkpoint_if_due(w, err);
    w->at.place.counts = last->counts;
    return CLI_OK;
}

static int take_jobs(pack_work *w, pack_pipeline *p, pack_error *err)
{
    while (!w->at.limited) {
        pack_job *job;
        if (process_is_interrupted())
            return pack_error_set(err, CLI_AGAIN, "interrupted");
        int code = CLI_OK;
        switch (pack_pipeline_next(p, WAIT_MS, &job, err)) {
        case PACK_JOB:
            code = take_job(w, job, err);
            break;
        case PACK_NOTHING_YET:
            break;
        case PACK_END:
            return CLI_OK;
        case PACK_FAILED:
            return err->exit_code;
        }
        if (code != CLI_OK)
            return code;
        update_progress(w);
    }
    return CLI_OK;
}

/* ---- Begin and end ---- */

void pack_work_begin(pack_work *w)
{
    w->fields = (pack_fields){.options = w->parts->options,
                              .found = &w->at.fields_found,
                              .lacking = &w->at.fields_lacking,
                              .of_cell = w->parts->cell != NULL};
    w->documents =
        (pack_documents){w->parts, &w->outputs, &w->progress, &w->at.position, &w->fields};
    w->consistent = true;
    if (w->from.checkpoint > 0) {
        const pack_note *note = &w->from.note;
        w->at = *note;
        w->fields.seen_before = note->fields_seen;
        for (size_t i = 0; i < w->outputs.n; i++) {
            w->outputs.list[i].tokens = note->tokens[i];
            w->outputs.list[i].documents = note->documents[i];
        }
    }
    pack_use_count(&w->use, -1);
    const pack_cell *cell = w->parts->cell;
    snprintf(w->verb, sizeof w->verb, "pack");
    if (cell && cell->n_cells > 1)
        snprintf(w->verb, sizeof w->verb, "cell %zu/%zu", cell->which, cell->n_cells);
    cli_progress_begin(&w->progress, w->verb, w->parts->options->quiet);
    w->progress.left_for = cell && cell->n_cells > 1 ? " for the task" : NULL;
    w->progress.bytes_before = w->stored_bytes = stored_bytes(&w->at.place);
    w->remaining = w->parts->cell ? w->parts->cell->remaining : NULL;
    if (!w->remaining) {
        w->remaining = &w->own;
        pack_remaining_expect(&w->own, w->parts->inputs, w->stored_bytes);
    }
    pack_remaining_enter(w->remaining, w->stored_bytes);
    w->tokens_before = w->at.position.tokens;
}

/* The options to read all inputs with. */
static corpus_options reading(const pack_work *w, size_t batch_bytes)
{
    const pack_options *o = w->parts->options;
    const pack_inputs *inputs = w->parts->inputs;
    bool limited = o->limit_documents != PACK_NO_LIMIT || o->limit_tokens != PACK_NO_LIMIT;
    corpus_options options = pack_corpus_options(w->parts);
    reader_options *of_reader = &options.reader;
    of_reader->fixed |= w->parts->cell != NULL;
    of_reader->window.read_ahead = true;
    of_reader->report = of_reader->note = pack_reports_add_message;
    of_reader->missing = pack_reports_add_lacking;
    options.batch_bytes = batch_bytes;
    options.versions = inputs->versions;
    options.begin = inputs->begin;
    options.end = inputs->end;
    options.has_end = inputs->end.offset > 0;
    options.formats = inputs->formats;
    options.bad = pack_reports_add_bad;
    options.ended = limited ? pack_reports_add_moment : NULL;
    return options;
}

int pack_work_run(pack_work *w, pack_error *err)
{
    const uint64_t part = w->parts->options->memory / 64;
    const size_t batch_bytes = part < MAX_BATCH_BYTES ? part : MAX_BATCH_BYTES;
    const corpus_options all = reading(w, batch_bytes);
    const corpus_place from = w->at.place; /* the place moves on while it is used */
    const pack_pipeline_options options = {
        .parts = w->parts,
        .corpus = &all,
        .from = w->from.checkpoint ? &from : NULL,
    };
    w->checkpoint_ns = w->next_checkpoint_ns = w->parts->options->checkpoint_ms * 1000000;
    pack_pipeline *p = pack_pipeline_start(&options, err);
    int code = p ? take_jobs(w, p, err) : err->exit_code;
    pack_pipeline_close(p, &w->use);
    cli_progress_clear(&w->progress);
    return code;
}
