/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/report.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "pack/look.h"
#include "plan/cell_metadata.h"
#include "system/files.h"
#include "system/process.h"
#include "text/json_text.h"
#include "tokenizer/choice/tokenizer_choice.h"

/* ---- Notes ---- */

void pack_report_notes(const pack_report *r)
{
    static const char *const fate[] = {
        [SPECIALS_TEXT] = "packed as plain text; --specials match makes them their ids",
        [SPECIALS_MATCH] = "packed as their ids",
        [SPECIALS_ERROR] = "left out with their documents",
        [SPECIALS_DROP] = "left out",
    };
    const corpus_counts *c = &r->counts->corpus;
    uint64_t n_skipped = pack_counts_skipped(r->counts);
    pack_kinds_note(r->parts);
    uint64_t n_specials = r->counts->packed.specials_seen;
    if (n_skipped && r->bad_documents)
        cli_warn("%s left out; they are in %s", cli_count_of(n_skipped, "bad document").s,
                 r->bad_documents);
    else if (n_skipped)
        cli_warn("%s left out", cli_count_of(n_skipped, "bad document").s);
    if (c->filtered_documents)
        cli_warn("%s left out by --where", cli_count_of(c->filtered_documents, "document").s);
    if (c->null_documents)
        cli_warn("%s without a text left out", cli_count_of(c->null_documents, "record").s);
    if (c->replacements)
        cli_warn("not UTF-8: %s in %s, replaced by U+FFFD",
                 cli_count_of(c->replacements, "place").s,
                 cli_count_of(c->repaired_documents, "document").s);
    if (n_specials)
        cli_warn("%s written in the text: %s", cli_count_of(n_specials, "special token").s,
                 fate[r->parts->options->specials]);
}

/* ---- JSON ---- */

typedef struct json_object {
    FILE *out;
    bool begun; /* it has a member already */
} json_object;

static json_object begin_object(FILE *out)
{
    putc('{', out);
    return (json_object){out, false};
}

static void put_key(json_object *o, const char *key)
{
    fprintf(o->out, "%s\"%s\": ", o->begun ? ", " : "", key);
    o->begun = true;
}

static void put_string(json_object *o, const char *key, const char *value)
{
    put_key(o, key);
    if (value)
        json_text_print_string(o->out, value, strlen(value));
    else
        fputs("null", o->out);
}

static void put_number(json_object *o, const char *key, uint64_t value)
{
    put_key(o, key);
    fprintf(o->out, "%" PRIu64, value);
}

/* A number, or null if there is none. */
static void put_optional(json_object *o, const char *key, uint64_t value, uint64_t none)
{
    put_key(o, key);
    if (value == none)
        fputs("null", o->out);
    else
        fprintf(o->out, "%" PRIu64, value);
}

static void put_hash(json_object *o, const char *key, uint64_t hash)
{
    put_key(o, key);
    fprintf(o->out, "\"%016" PRIx64 "\"", hash);
}

static void put_tokenizer(json_object *in, const tokenizer_file *t)
{
    put_key(in, "tokenizer");
    json_object o = begin_object(in->out);
    put_string(&o, "name", t->name);
    if (t->from_file) {
        put_hash(&o, "file_xxh3", t->file_xxh3);
        if (t->merges_xxh3)
            put_hash(&o, "merges_xxh3", t->merges_xxh3);
        if (t->specials_xxh3)
            put_hash(&o, "specials_xxh3", t->specials_xxh3);
        put_string(&o, "family", tokenizer_get_info(t->tokenizer)->family);
        put_string(&o, "pattern", t->pattern);
        put_string(&o, "unicode", tokenizer_get_info(t->tokenizer)->unicode);
    }
    putc('}', o.out);
}

static void put_splits(json_object *in, const pack_options *options)
{
    put_key(in, "splits");
    json_object o = begin_object(in->out);
    for (size_t i = 0; i < options->n_splits; i++) {
        put_key(&o, options->splits[i].name);
        fprintf(o.out, "%.10g", options->splits[i].fraction);
    }
    putc('}', o.out);
}

/* Options that decide what is in the dataset. */
static void put_options(json_object *in, const pack_parts *parts)
{
    const pack_options *options = parts->options;
    put_key(in, "options");
    json_object o = begin_object(in->out);
    put_string(&o, "format", cli_word_name(pack_formats, options->format));
    put_string(&o, "field", options->field);
    put_key(&o, "separator");
    if (options->separator)
        json_text_print_string(o.out, options->separator, options->separator_bytes);
    else
        fputs("null", o.out);
    for (size_t i = 0; i < options->n_skipped; i++) {
        if (i == 0)
            put_key(&o, "skip_input");
        fputs(i ? ", " : "[", o.out);
        json_text_print_string(o.out, options->skipped[i], strlen(options->skipped[i]));
        fputs(i + 1 == options->n_skipped ? "]" : "", o.out);
    }
    if (options->meta)
        put_string(&o, "meta", options->meta);
    if (options->where_text)
        put_string(&o, "where", options->where_text);
    put_string(&o, "utf8", cli_word_name(pack_utf8_words, options->utf8));
    put_string(&o, "on_error", cli_word_name(pack_on_error_words, options->on_error));
    put_string(&o, "specials", cli_word_name(tokenizer_specials_words, options->specials));
    put_optional(&o, "eod", parts->tokens->eod_id, MODEL_NO_ID);
    put_optional(&o, "bos", parts->tokens->bos_id, MODEL_NO_ID);
    put_optional(&o, "limit_documents", options->limit_documents, PACK_NO_LIMIT);
    put_optional(&o, "limit_tokens", options->limit_tokens, PACK_NO_LIMIT);
    put_splits(&o, options);
    putc('}', o.out);
}

/* Of a cell they are not counted. */
static void put_formats(json_object *in, const pack_kinds *kinds)
{
    put_key(in, "formats");
    json_object o = begin_object(in->out);
    for (size_t i = 0; i < PACK_N_KINDS; i++) {
        if (kinds->n[i])
            put_number(&o, pack_kind_name(i), kinds->n[i]);
    }
    putc('}', o.out);
}

/* What was left out or changed, for all outputs together. */
static void put_care(json_object *o, const pack_counts *counts)
{
    const corpus_counts *c = &counts->corpus;
    put_number(o, "records", c->records);
    put_number(o, "filtered_documents", c->filtered_documents);
    put_number(o, "null_documents", c->null_documents);
    put_number(o, "empty_documents", c->empty_documents);
    put_number(o, "bad_documents", pack_counts_skipped(counts));
    put_number(o, "bad_bytes", c->bad_bytes);
    put_number(o, "repaired_documents", c->repaired_documents);
    put_number(o, "replacements", c->replacements);
    put_number(o, "specials_in_text", counts->packed.specials_seen);
}

/* ---- Metadata ---- */

char *pack_report_metadata(const pack_report *r, size_t which, size_t *n_bytes)
{
    memory_file json;
    FILE *out = memory_file_open(&json);
    if (!out)
        return NULL;
    const pack_split *split = r->outputs->list[which].split;
    char text[64];
    json_object o = begin_object(out);
    snprintf(text, sizeof text, "tokmap %s", tokmap_version());
    put_string(&o, "created_by", text);
    put_tokenizer(&o, r->parts->tokenizer);
    put_options(&o, r->parts);
    if (split)
        put_string(&o, "split", split->name);
    put_key(&o, "counts");
    json_object counts = begin_object(out);
    put_care(&counts, r->counts);
    putc('}', out);
    const pack_cell *cell = r->parts->cell;
    if (cell)
        cell_metadata_print_plan(out, &(cell_metadata){.hash = cell->plan_hash,
                                                       .cell = cell->number,
                                                       .bad_xxh3 = r->bad_xxh3});
    putc('}', out);
    memory_file_close(out, &json);
    *n_bytes = json.n_bytes;
    return json.text;
}

/* ---- Report ---- */

static void put_input(FILE *out, const tokmap_input_info *entry)
{
    json_object o = begin_object(out);
    put_key(&o, "name");
    json_text_print_string(out, entry->name, entry->name_bytes);
    put_optional(&o, "input_bytes", entry->input_bytes, 0);
    put_number(&o, "n_documents", entry->n_documents);
    put_number(&o, "n_tokens", entry->n_tokens);
    putc('}', out);
}

static void put_dataset(FILE *out, const tokmap_dataset *ds)
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    json_object o = begin_object(out);
    put_string(&o, "index_file", info.index_path);
    put_string(&o, "token_file", info.token_path);
    put_number(&o, "token_bytes", info.token_bytes);
    put_number(&o, "n_tokens", info.n_tokens);
    put_number(&o, "n_documents", info.n_documents);
    put_string(&o, "dataset_id", cli_hex(info.dataset_id).s);
    put_key(&o, "inputs");
    putc('[', out);
    for (uint64_t i = 0; i < info.n_inputs; i++) {
        tokmap_input_info entry = TOKMAP_INIT(tokmap_input_info);
        if (tokmap_dataset_get_input(ds, i, &entry) != TOKMAP_OK)
            break; /* damaged right after it was written */
        fputs(i ? ", " : "", out);
        put_input(out, &entry);
    }
    fputs("]}", out);
}

static int put_datasets(json_object *o, const pack_outputs *outputs)
{
    put_key(o, "datasets");
    putc('[', o->out);
    for (size_t i = 0; i < outputs->n; i++) {
        tokmap_dataset *ds;
        tokmap_error err;
        if (tokmap_dataset_open(&ds, outputs->list[i].index_path, &err) != TOKMAP_OK)
            return cli_fail(&err);
        fputs(i ? ", " : "", o->out);
        put_dataset(o->out, ds);
        tokmap_dataset_close(ds);
    }
    putc(']', o->out);
    return CLI_OK;
}

static void put_work(json_object *o, const pack_report *r)
{
    put_number(o, "threads", r->parts->options->n_threads);
    put_key(o, "resumed");
    fputs(r->resumed ? "true" : "false", o->out);
    put_key(o, "seconds");
    fprintf(o->out, "%.3f", r->seconds);
    put_number(o, "peak_memory_bytes", process_peak_bytes());
}

int pack_report_print(FILE *out, const pack_report *r)
{
    const corpus_counts *c = &r->counts->corpus;
    json_object o = begin_object(out);
    put_number(&o, "schema_version", 1);
    put_string(&o, "version", tokmap_version());
    put_tokenizer(&o, r->parts->tokenizer);
    put_options(&o, r->parts);
    if (!r->parts->cell)
        put_formats(&o, &r->parts->inputs->kinds);
    put_number(&o, "n_documents", r->counts->packed.documents);
    put_number(&o, "n_tokens", r->counts->packed.tokens);
    put_number(&o, "text_bytes", c->text_bytes);
    put_number(&o, "plain_bytes", c->plain_bytes);
    put_number(&o, "stored_bytes", c->stored_bytes);
    put_care(&o, r->counts);
    put_string(&o, "bad_documents_file", r->bad_documents);
    put_work(&o, r);
    int code = put_datasets(&o, r->outputs);
    putc('}', out);
    return code;
}

/* ---- The file of --report ---- */

int pack_report_begin(pack_report_file *file, const pack_options *options)
{
    const char *path = options->report;
    *file = (pack_report_file){.out.fd = -1};
    if (!path)
        return CLI_OK;
    if (!options->force && file_name_exists(path))
        return cli_error(CLI_EXISTS,
                         "%s: already exists; replace it with --force, or name another file with "
                         "--report",
                         path);
    int code = output_name(&file->out, path, "", options->force);
    if (code == CLI_OK)
        code = output_begin(&file->out);
    if (code != CLI_OK)
        return code;
    file->text_file = memory_file_open(&file->text);
    if (file->text_file)
        return CLI_OK;
    output_close(&file->out);
    return cli_no_memory();
}

int pack_report_end(pack_report_file *file, int code)
{
    if (!file->text_file)
        return code;
    putc('\n', file->text_file);
    if (!memory_file_close(file->text_file, &file->text))
        code = code == CLI_OK ? cli_no_memory() : code;
    if (code == CLI_OK)
        code = output_write(&file->out, file->text.text, file->text.n_bytes);
    if (code == CLI_OK)
        code = output_place(&file->out);
    output_close(&file->out);
    free(file->text.text);
    return code;
}
