/* SPDX-License-Identifier: Apache-2.0 */
/* dry_run.c - pack_dry_run: a sample of the inputs, and an estimate. */
#include "pack/session.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "pack/job.h"
#include "request/look.h"
#include "plan/plan_file.h"
#include "cli/json_out.h"

#define MAX_SAMPLED 16
#define SAMPLE_BYTES ((size_t)1 << 20)
#define MAX_LISTED 20   /* of those that can be packed */
#define MAX_REFUSED 200 /* of those that cannot */

#define RATIO_BYTES ((size_t)8 << 20)
/* Stored bytes are read in blocks of 256 KiB, half of which on average is not yet decompressed. */
#define READ_AHEAD_BYTES ((uint64_t)128 << 10)

/* What was counted in the beginnings of some inputs. */
typedef struct input_sample {
    uint64_t inputs, documents, text_bytes, tokens;
    uint64_t ended;          /* inputs that were read to their end */
    corpus_counts counts;    /* filtered, bad and all records */
    uint64_t stored_bytes;   /* of these inputs as a whole */
    double estimated_tokens; /* in these inputs as a whole */
    uint64_t fields_found;   /* bits of the fields that some of the ended inputs has */
} input_sample;

/* ---- Sample ---- */

/* The ratio of stored to plain bytes, from the beginning of the input. */
static double stored_ratio(const char *name)
{
    failure err;
    static uint8_t plain[64 * 1024];
    uint64_t n_plain = 0;
    ssize_t n = 1;
    input *in = input_open(&(input_source){.path = name}, -1, &err);
    if (!in)
        return 1;
    while (n > 0 && n_plain < RATIO_BYTES) {
        n = input_read(in, plain, sizeof plain, &err);
        n_plain += n > 0 ? (uint64_t)n : 0;
    }
    uint64_t n_stored = input_stored(in).n_bytes;
    input_close(in);
    if (n != 0 && n_stored < n_plain && n_stored > READ_AHEAD_BYTES)
        n_stored -= READ_AHEAD_BYTES;
    else if (n != 0)
        n_stored = n_plain; /* not compressed */
    return n_plain ? (double)n_stored / (double)n_plain : 1;
}

/* Estimates the tokens in an input whose beginning was encoded to n_tokens. */
static double estimate_input(const pack_parts *parts, size_t which, const reader_summary *summary,
                             const corpus_place *sampled, uint64_t n_tokens)
{
    uint64_t n_plain = sampled->counts.plain_bytes;
    const uint64_t n_records = sampled->counts.records;
    if (summary->n_records != READER_UNKNOWN && n_records > 0)
        return (double)n_tokens / (double)n_records * (double)summary->n_records;
    if (n_plain < sampled->counts.text_bytes) /* the place is the start of a record batch */
        n_plain = sampled->counts.text_bytes;
    if (n_plain == 0)
        return 0;
    return (double)n_tokens / (double)n_plain *
           ((double)parts->inputs->versions[which].n_bytes /
            (*summary->codec ? stored_ratio(parts->inputs->names[which]) : 1));
}

static int sample_one(input_sample *s, const pack_parts *parts, pack_inputs *inputs, encoder *e,
                      size_t which)
{
    const reader_summary *summary = &inputs->seen[which].summary;
    failure err;
    pack_job job = {0};
    pack_marks marks = {parts};
    const corpus_batch *batch = &job.batch;
    corpus_options options = pack_corpus_options(parts);
    options.batch_bytes = options.reader.head_bytes = SAMPLE_BYTES;
    options.reader.note = parts->options->quiet ? NULL : pack_print_note;
    options.reader.context = (void *)parts;
    const char *const *name = parts->inputs->names + which;
    corpus *c = corpus_open(name, 1, &options, NULL, &err);
    int n = c ? corpus_read(c, &job.batch, &err) : -1, code = CLI_OK;
    if (n > 0 && batch->failed) /* after the documents before */
        n = corpus_read(c, &job.batch, &err);
    /* A text with a forbidden special token counts as no tokens; the run will report it. */
    if (n < 0)
        code = cli_failure_exit_code(&err) == CLI_INPUT
                   ? pack_inputs_keep_failure(inputs, which, &err)
                   : cli_print_failure(&err);
    else if (n > 0 && !pack_job_encode(&job, &marks, e))
        code = cli_no_memory();
    else if (n > 0 && batch->after.input == 0)
        corpus_note_fields(c);
    for (size_t i = 0; i < batch->n_ends; i++) {
        const corpus_end *end = &batch->ends[i];
        s->documents += !end->input;
        s->fields_found |= end->input && end->knows_fields ? ~end->lacking : 0;
    }
    s->inputs += n > 0;
    s->text_bytes += batch->n_bytes;
    s->tokens += job.n_tokens;
    s->ended += batch->after.input;
    s->counts.records += batch->after.counts.records;
    s->counts.filtered_documents += batch->after.counts.filtered_documents;
    s->counts.bad_documents += batch->after.counts.bad_documents;
    s->stored_bytes += parts->inputs->versions[which].n_bytes;
    s->estimated_tokens += estimate_input(parts, which, summary, &batch->after, job.n_tokens);
    corpus_close(c);
    pack_marks_free(&marks);
    pack_job_free(&job);
    return code;
}

static int take_sample(input_sample *s, const pack_parts *parts, pack_inputs *inputs)
{
    const encoder_options options = {.specials = parts->options->specials};
    const pack_inputs *in = parts->inputs;
    encoder *e = encoder_new(parts->tokenizer->tokenizer, &options);
    if (!e)
        return cli_no_memory();
    size_t n = in->n < MAX_SAMPLED ? in->n : MAX_SAMPLED;
    int code = CLI_OK;
    for (size_t i = 0; i < n && code == CLI_OK; i++) {
        size_t which = i * in->n / n;
        if (in->versions[which].known)
            code = sample_one(s, parts, inputs, e, which);
    }
    encoder_free(e);
    return code;
}

/* ---- Words ---- */

static void print_heading(const char *heading)
{
    printf("%-12s", heading);
}

static void print_outputs(const pack_parts *parts)
{
    const pack_options *o = parts->options;
    print_heading("output:");
    cli_print_plain(stdout, o->prefix, strlen(o->prefix));
    printf(" (u%u)\n", 8 * pack_token_bytes(parts->tokens, o));
    for (size_t i = 0; i < o->n_splits; i++) {
        const path_text prefix = plan_split_path(o->prefix, o->splits[i].name, "");
        print_heading("");
        cli_print_plain(stdout, prefix.s, strlen(prefix.s));
        printf(", %.10g%% of the documents\n", 100 * o->splits[i].fraction);
    }
}

static void print_tokenizer(const pack_parts *parts)
{
    const tokenizer_file *t = parts->tokenizer;
    const char *name = parts->options->vocab_size ? "not known" : t->name;
    const char *unicode = tokenizer_get_info(t->tokenizer)->unicode;
    print_heading("tokenizer:");
    cli_print_plain(stdout, name, strlen(name));
    if (t->from_file)
        printf(", %s", tokenizer_get_info(t->tokenizer)->family);
    if (unicode)
        printf(", Unicode %s", unicode);
    printf(", %s ids", cli_count(parts->tokens->vocab_size).s);
    if (parts->tokens->bos_id != MODEL_NO_ID)
        printf(", %" PRIu32 " begins a document", parts->tokens->bos_id);
    if (parts->tokens->eod_id != MODEL_NO_ID)
        printf(", %" PRIu32 " ends a document\n", parts->tokens->eod_id);
    else
        puts(", nothing ends a document");
}

/* "packed as parquet, snappy, PLAIN, 1,000 rows in 2 row groups, column text (the default)" */
static void print_packed(const pack_seen *seen, uint64_t n_bytes)
{
    const reader_summary *s = &seen->summary;
    printf(", %s%s", seen->format == CORPUS_AUTO ? "" : "packed as ", pack_kind_name(seen->format));
    if (*s->codec)
        printf(", %s", s->codec);
    if (*s->encodings)
        printf(", %s", s->encodings);
    if (s->n_records != READER_UNKNOWN)
        printf(", %s", cli_count_of(s->n_records, "row").s);
    if (s->n_groups)
        printf(" in %s", cli_count_of(s->n_groups, "row group").s);
    if (*s->column) {
        fputs(", column ", stdout);
        cli_print_plain(stdout, s->column, strlen(s->column));
        printf(" (%s)", s->why_column);
    }
    printf(", %s\n", cli_bytes(n_bytes).s);
}

static const char *verdict_of(const pack_seen *seen)
{
    return !seen->why ? "packed" : seen->is_unsuitable ? "unsuitable" : "needs";
}

/* Prints the verdict on an input. */
static void print_input(const pack_inputs *in, size_t which)
{
    const pack_seen *seen = &in->seen[which];
    print_heading("");
    cli_print_plain(stdout, in->names[which], strlen(in->names[which]));
    if (!in->versions[which].known) {
        puts(", can be read only once");
    } else if (seen->why) {
        printf(", %s: ", seen->is_unsuitable ? "unsuitable" : "needs a change");
        cli_print_plain(stdout, seen->why, strlen(seen->why));
        putchar('\n');
    } else {
        print_packed(seen, in->versions[which].n_bytes);
    }
}

static void print_left_out(const unsuitable_list *list)
{
    for (size_t i = 0; i < list->n && i < MAX_REFUSED && list->owns_names; i++) {
        print_heading("");
        cli_print_plain(stdout, list->files[i].name, strlen(list->files[i].name));
        printf(", left out: %s\n", list->files[i].kind);
    }
}

static void print_inputs(const pack_parts *parts)
{
    const pack_inputs *in = parts->inputs;
    char kinds[PACK_KINDS_BYTES];
    size_t n_packed = 0, n_refused = 0;
    pack_kinds_text(in, kinds);
    print_heading("inputs:");
    printf("%s%s%s%s", cli_count_of(in->n, "file").s, *kinds ? " (" : "", kinds, *kinds ? ")" : "");
    if (in->once)
        puts(", size not known");
    else
        printf(", %s\n", cli_bytes(in->total_bytes).s);
    for (size_t i = 0; i < in->n; i++) {
        const bool refused = in->seen[i].why != NULL;
        if (refused ? n_refused++ < MAX_REFUSED : n_packed++ < MAX_LISTED)
            print_input(in, i);
    }
    print_left_out(&in->unsuitable);
    if (n_packed > MAX_LISTED || n_refused > MAX_REFUSED) {
        const size_t n_more = (n_packed > MAX_LISTED ? n_packed - MAX_LISTED : 0) +
                              (n_refused > MAX_REFUSED ? n_refused - MAX_REFUSED : 0);
        print_heading("");
        printf("and %s more\n", cli_count(n_more).s);
    }
}

static double estimate_tokens(const input_sample *s, const pack_inputs *in)
{
    if (s->stored_bytes == 0)
        return 0;
    return s->estimated_tokens * ((double)in->total_bytes / (double)s->stored_bytes);
}

static void print_estimate(const input_sample *s, const pack_parts *parts)
{
    print_heading("measured:");
    const bool is_text = parts->options->input.list == LIST_NONE;
    printf("%s, %s", cli_count_of(s->inputs, "file").s, cli_count_of(s->documents, "document").s);
    if (is_text)
        printf(", %s of text", cli_bytes(s->text_bytes).s);
    if (is_text && s->tokens)
        printf(", %.2f bytes a token", (double)s->text_bytes / (double)s->tokens);
    putchar('\n');
    print_heading("estimate:");
    if (parts->inputs->once) {
        puts("not known");
        return;
    }
    double tokens = estimate_tokens(s, parts->inputs);
    uint64_t n_bytes = (uint64_t)(tokens * pack_token_bytes(parts->tokens, parts->options));
    printf("about %s, %s\n", cli_count_of((uint64_t)tokens, "token").s, cli_bytes(n_bytes).s);
}

/* Prints the members that say what an input is, which can be packed. */
static void put_seen(json_out *o, const pack_seen *seen, bool looked_at)
{
    const reader_summary *summary = &seen->summary;
    json_out_string(o, "format",
                    looked_at ? pack_kind_name(seen->format)
                              : cli_word_name(pack_formats, seen->format));
    if (*summary->codec)
        json_out_string(o, "codec", summary->codec);
    if (*summary->encodings)
        json_out_string(o, "encodings", summary->encodings);
    if (*summary->column)
        json_out_string(o, "column", summary->column);
    if (summary->why_column && *summary->why_column)
        json_out_string(o, "column_reason", summary->why_column);
    if (summary->n_records != READER_UNKNOWN)
        json_out_number(o, "n_records", summary->n_records);
    if (summary->n_groups)
        json_out_number(o, "n_row_groups", summary->n_groups);
}

static void put_inputs(json_out *o, const pack_inputs *in)
{
    json_out_begin(o, "inputs", '[');
    for (size_t i = 0; i < in->n; i++) {
        const pack_seen *seen = &in->seen[i];
        json_out_begin(o, NULL, '{');
        json_out_string(o, "name", in->names[i]);
        json_out_known(o, "input_bytes", in->versions[i].n_bytes, in->versions[i].known);
        json_out_string(o, "verdict", verdict_of(seen));
        if (seen->why)
            json_out_string(o, "why", seen->why);
        else
            put_seen(o, seen, in->versions[i].known);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

/* s: NULL if not all inputs can be packed. */
static void print_json(const input_sample *s, const pack_parts *parts)
{
    const pack_inputs *in = parts->inputs;
    json_out o = json_out_begin_result(stdout);
    json_out_string(&o, "output", parts->options->prefix);
    json_out_string(&o, "tokenizer", parts->tokenizer->name);
    json_out_number(&o, "vocab_size", parts->tokens->vocab_size);
    if (s) {
        json_out_begin(&o, "measured", '{');
        json_out_number(&o, "n_inputs", s->inputs);
        json_out_number(&o, "n_documents", s->documents);
        json_out_number(&o, "text_bytes", s->text_bytes);
        json_out_number(&o, "n_tokens", s->tokens);
        json_out_end(&o, '}');
    }
    if (!s || in->once)
        json_out_string(&o, "estimated_tokens", NULL);
    else
        json_out_print(&o, "estimated_tokens", "%.0f", estimate_tokens(s, in));
    unsuitable_print_counts(&in->unsuitable, &o);
    put_inputs(&o, in);
    puts("}");
}

int pack_dry_run_refused(const pack_parts *parts)
{
    if (parts->options->json) {
        print_json(NULL, parts);
    } else {
        print_outputs(parts);
        print_tokenizer(parts);
        print_inputs(parts);
    }
    const int code = cli_finish();
    return code == CLI_OK ? pack_inputs_refuse(parts->inputs, parts->options) : code;
}

/* What the run would find at its end, if the sample is all of the inputs. */
static int check_whole(const input_sample *s, const pack_options *o)
{
    if (corpus_kept_none(&s->counts))
        return cli_error(CLI_INPUT, CORPUS_KEPT_NONE, s->counts.records);
    for (size_t i = 0; i < o->input.n_kept && s->counts.records > 0; i++) {
        if (!(s->fields_found >> i & 1) && strcmp(o->fields.names[i], FIELD_ROW) != 0)
            return cli_error(CLI_INPUT, "--meta: no input has values of the field %s",
                             o->fields.names[i]);
    }
    return CLI_OK;
}

int pack_dry_run(const pack_parts *parts, pack_inputs *inputs)
{
    input_sample s = {0};
    int code = take_sample(&s, parts, inputs);
    if (code == CLI_OK && inputs->n_refused > 0)
        return pack_dry_run_refused(parts);
    if (code == CLI_OK && s.ended == parts->inputs->n)
        code = check_whole(&s, parts->options);
    if (code != CLI_OK)
        return code;
    if (parts->options->json) {
        print_json(&s, parts);
    } else {
        print_outputs(parts);
        print_tokenizer(parts);
        print_inputs(parts);
        print_estimate(&s, parts);
    }
    return cli_finish();
}
