/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/report.h"

#include <stdio.h>
#include <stdlib.h>

#include "cli/cli.h"
#include "formats/role_names.h"
#include "request/look.h"
#include "plan/cell_metadata.h"
#include "system/process.h"
#include "tokenizer/choice/tokenizer_choice.h"

/* ---- Notes ---- */

/* What limits a shorter run is of no interest. */
#define LONG_NS UINT64_C(10000000000)

/* The names of inputs with U+FFFD in place of bytes, with the one in which a limit was reached. */
static void name_repaired(const pack_work *w, char names[INPUT_GROUP_BYTES])
{
    input_group group = w->documents.repaired;
    const uint64_t n_before = w->from.checkpoint ? w->from.note.place.counts.repaired_documents : 0;
    if (w->at.limited && w->at.place.counts.repaired_documents > n_before + w->documents.n_repaired)
        input_group_add(&group, w->parts->inputs->names[w->at.position.input - 1]);
    input_group_text(&group, names);
}

void pack_report_notes(const pack_work *w)
{
    static const char *const fate[] = {
        [SPECIALS_TEXT] = "packed as plain text; --specials match makes them their ids",
        [SPECIALS_MATCH] = "packed as their ids",
        [SPECIALS_ERROR] = "left out with their documents",
        [SPECIALS_DROP] = "left out",
    };
    const corpus_counts *c = &w->at.place.counts;
    char names[INPUT_GROUP_BYTES];
    uint64_t n_skipped = pack_note_n_bad(&w->at);
    pack_kinds_note(w->parts->inputs, w->parts->options);
    uint64_t n_specials = w->at.position.specials_seen;
    pack_fields_note(&w->fields);
    if (n_skipped)
        cli_warn("%s left out%s", cli_count_of(n_skipped, "bad document").s,
                 w->parts->options->report ? "; the report lists them" : "");
    if (w->parts->options->memory_is_short)
        cli_warn("each thread had --memory %.0fM, because this process may use little memory",
                 (double)w->parts->options->memory / 1e6);
    if (w->use.memory_for_documents)
        cli_warn("long documents waited for memory: --memory %.0fM lets all threads encode them",
                 (double)w->use.memory_for_documents / 1e6 + 1);
    if (w->use.memory_for_inputs)
        cli_warn("inputs waited for memory while others were read: --memory %.0fM lets them be "
                 "read at the same time",
                 (double)w->use.memory_for_inputs / 1e6 + 1);
    if (c->filtered_documents)
        cli_warn("%s left out by --where", cli_count_of(c->filtered_documents, "document").s);
    if (c->null_documents)
        cli_warn("%s without a text left out", cli_count_of(c->null_documents, "record").s);
    name_repaired(w, names);
    if (c->replacements)
        cli_warn("not UTF-8: %s in %s, replaced by U+FFFD%s%s",
                 cli_count_of(c->replacements, "place").s,
                 cli_count_of(c->repaired_documents, "document").s, *names ? ": " : "", names);
    if (n_specials)
        cli_warn("%s written in the text: %s", cli_count_of(n_specials, "special token").s,
                 fate[w->parts->options->specials]);
    if (w->use.wall >= LONG_NS && w->use.text_bytes > 0)
        pack_use_note(&w->use);
}

/* ---- JSON ---- */

static void put_tokenizer(json_out *o, const tokenizer_file *t)
{
    json_out_print(o, "tokenizer", "%.*s", (int)t->metadata_bytes, t->metadata);
}

static void put_list(json_out *o, const char *name, const char *const *list, size_t n)
{
    if (n == 0)
        return;
    json_out_begin(o, name, '[');
    for (size_t i = 0; i < n; i++)
        json_out_string(o, NULL, list[i]);
    json_out_end(o, ']');
}

/* Prints the names of roles, NULL or NAME,..., as docs/FORMAT.md, section 3.9, has them. */
static void put_roles(json_out *o, const char *roles)
{
    const char *name;
    size_t n_bytes;
    if (!roles)
        return;
    json_out_begin(o, "roles", '[');
    while (role_names_next(&roles, &name, &n_bytes))
        json_out_text(o, NULL, name, n_bytes);
    json_out_end(o, ']');
}

/* Prints the options that decide what is in the dataset. */
static void put_options(json_out *o, const pack_parts *parts)
{
    const pack_options *options = parts->options;
    const pack_tokens *tokens = parts->tokens;
    json_out_begin(o, "options", '{');
    json_out_string(o, "format", cli_word_name(pack_formats, options->input.format));
    json_out_string(o,
                    options->tokens  ? "tokens"
                    : options->parts ? "parts"
                                     : "field",
                    options->input.field);
    if (options->labels)
        json_out_string(o, "labels", options->labels);
    if (options->loss_mask)
        json_out_string(o, "loss_mask", options->loss_mask);
    json_out_text(o, "separator", options->separator, options->input.separator_bytes);
    put_list(o, "skip_input", options->skipped, options->n_skipped);
    put_list(o, "include", options->filter.include.list, options->filter.include.n);
    put_list(o, "exclude", options->filter.exclude.list, options->filter.exclude.n);
    if (options->skip_unsuitable)
        json_out_bool(o, "skip_unsuitable", true);
    if (options->meta)
        json_out_string(o, "meta", options->meta);
    if (options->where_text)
        json_out_string(o, "where", options->where_text);
    json_out_string(o, "utf8", cli_word_name(pack_utf8_words, options->input.utf8));
    json_out_string(o, "on_error", cli_word_name(pack_on_error_words, options->input.on_error));
    json_out_string(o, "specials", cli_word_name(tokenizer_specials_words, options->specials));
    json_out_known(o, "eod", tokens->eod_id, tokens->eod_id != MODEL_NO_ID);
    json_out_known(o, "bos", tokens->bos_id, tokens->bos_id != MODEL_NO_ID);
    if (options->also)
        json_out_string(o, "also", cli_word_name(pack_also_words, options->also));
    json_out_known(o, "limit_documents", options->limit_documents,
                   options->limit_documents != PACK_NO_LIMIT);
    json_out_known(o, "limit_tokens", options->limit_tokens,
                   options->limit_tokens != PACK_NO_LIMIT);
    json_out_begin(o, "splits", '{');
    for (size_t i = 0; i < options->n_splits; i++)
        json_out_print(o, options->splits[i].name, "%.10g", options->splits[i].fraction);
    json_out_end(o, '}');
    json_out_end(o, '}');
}

/* Prints the counts of what was left out or changed, for all outputs together. */
static void put_counts(json_out *o, const pack_work *w)
{
    const corpus_counts *c = &w->at.place.counts;
    json_out_number(o, "records", c->records);
    json_out_number(o, "filtered_documents", c->filtered_documents);
    json_out_number(o, "null_documents", c->null_documents);
    json_out_number(o, "empty_documents", c->empty_documents);
    json_out_number(o, "bad_documents", pack_note_n_bad(&w->at));
    json_out_number(o, "bad_bytes", c->bad_bytes + w->at.position.special_bytes);
    json_out_number(o, "repaired_documents", c->repaired_documents);
    json_out_number(o, "replacements", c->replacements);
    json_out_number(o, "specials_in_text", w->at.position.specials_seen);
}

char *pack_report_metadata(const pack_work *w, size_t which, size_t *n_bytes)
{
    memory_file json;
    json_out o = {.out = memory_file_open(&json)};
    if (!o.out)
        return NULL;
    const pack_split *split = w->outputs.list[which].split;
    json_out_begin(&o, NULL, '{');
    json_out_print(&o, "created_by", "\"tokmap %s\"", tokmap_version());
    if (!w->parts->options->vocab_size) /* else it is not known who made the tokens */
        put_tokenizer(&o, w->parts->tokenizer);
    put_options(&o, w->parts);
    put_roles(&o, w->parts->options->input.roles);
    if (split)
        json_out_string(&o, "split", split->name);
    json_out_begin(&o, "counts", '{');
    put_counts(&o, w);
    json_out_end(&o, '}');
    const pack_cell *cell = w->parts->cell;
    if (cell) {
        const cell_metadata m = {.hash = cell->hash, .cell = cell->number, .origin = cell->origin};
        fputs(cell_metadata_plan(&m).s, o.out);
    }
    json_out_end(&o, '}');
    memory_file_close(o.out, &json);
    *n_bytes = json.n_bytes;
    return json.text;
}

/* ---- Report ---- */

static void put_dataset(json_out *o, const tokmap_dataset *ds)
{
    const tokmap_dataset_info info = cli_dataset_info(ds);
    json_out_begin(o, NULL, '{');
    json_out_string(o, "index_file", info.index_path);
    json_out_string(o, "token_file", info.token_path);
    json_out_number(o, "token_bytes", info.token_bytes);
    json_out_number(o, "n_tokens", info.n_tokens);
    json_out_number(o, "n_documents", info.n_documents);
    json_out_string(o, "dataset_id", cli_hex(info.dataset_id).s);
    json_out_begin(o, "inputs", '[');
    for (uint64_t i = 0; i < info.n_inputs; i++) {
        tokmap_input_info entry = TOKMAP_INIT(tokmap_input_info);
        if (tokmap_dataset_get_input(ds, i, &entry) != TOKMAP_OK)
            break; /* damaged right after it was written */
        json_out_begin(o, NULL, '{');
        json_out_text(o, "name", entry.name, entry.name_bytes);
        json_out_known(o, "input_bytes", entry.input_bytes, entry.input_bytes != 0);
        json_out_number(o, "n_documents", entry.n_documents);
        json_out_number(o, "n_tokens", entry.n_tokens);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_end(o, '}');
}

int pack_report_print(json_out *o, const pack_work *w)
{
    const corpus_counts *c = &w->at.place.counts;
    const pack_position *packed = &w->at.position;
    const size_t *kinds = w->parts->inputs->kinds;
    int code = CLI_OK;
    json_out_begin(o, NULL, '{');
    json_out_number(o, "schema_version", 1);
    json_out_string(o, "version", tokmap_version());
    put_tokenizer(o, w->parts->tokenizer);
    put_options(o, w->parts);
    if (!w->parts->cell) { /* not counted for a cell */
        json_out_begin(o, "formats", '{');
        for (size_t i = 0; i < CORPUS_N_FORMATS; i++) {
            if (kinds[i])
                json_out_number(o, pack_kind_name(i), kinds[i]);
        }
        json_out_end(o, '}');
        unsuitable_print_counts(&w->parts->inputs->unsuitable, o);
        unsuitable_print_files(&w->parts->inputs->unsuitable, o);
    }
    json_out_number(o, "n_documents", packed->documents);
    json_out_number(o, "n_tokens", packed->tokens);
    json_out_number(o, "text_bytes", c->text_bytes);
    json_out_number(o, "plain_bytes", c->plain_bytes);
    json_out_number(o, "stored_bytes", c->stored_bytes);
    put_counts(o, w);
    json_out_number(o, "n_threads", w->parts->options->n_threads);
    pack_use_print(&w->use, o);
    json_out_bool(o, "resumed", w->from.checkpoint > 0);
    json_out_number(o, "n_resumed_documents",
                    w->from.checkpoint > 0 ? w->from.note.position.documents : 0);
    json_out_print(o, "seconds", "%.3f", (double)cli_progress_ns(&w->progress) / 1e9);
    json_out_number(o, "peak_memory_bytes", process_peak_bytes());
    json_out_begin(o, "datasets", '[');
    for (size_t i = 0; i < w->outputs.n && code == CLI_OK; i++) {
        tokmap_dataset *ds;
        tokmap_error err;
        if (tokmap_dataset_open(&ds, w->outputs.list[i].index_path, &err) != TOKMAP_OK) {
            code = cli_fail(&err);
            continue;
        }
        put_dataset(o, ds);
        tokmap_dataset_close(ds);
    }
    json_out_end(o, ']');
    code = cli_first_failure(code, pack_skipped_print(w->skipped, o));
    json_out_end(o, '}');
    return code;
}

/* ---- The file of --report ---- */

int pack_report_begin(pack_report_file *file, const pack_options *options)
{
    const char *path = options->report;
    *file = (pack_report_file){.out.fd = -1};
    if (!path)
        return CLI_OK;
    int code = output_name(&file->out, path, "", options->force);
    if (code == CLI_OK)
        code = output_begin(&file->out);
    if (code != CLI_OK)
        return code;
    file->json.out = memory_file_open(&file->text);
    if (file->json.out)
        return CLI_OK;
    output_close(&file->out);
    return cli_no_memory();
}

int pack_report_end(pack_report_file *file, int code)
{
    if (!file->json.out)
        return code;
    const bool packed = code == CLI_OK;
    putc('\n', file->json.out);
    if (!memory_file_close(file->json.out, &file->text))
        code = code == CLI_OK ? cli_no_memory() : code;
    if (code == CLI_OK)
        code = output_write(&file->out, file->text.text, file->text.n_bytes);
    if (code == CLI_OK)
        code = output_place(&file->out);
    if (packed && code != CLI_OK)
        cli_warn("the dataset is complete, and only the report is missing: to have it, pack again "
                 "with --force");
    output_close(&file->out);
    free(file->text.text);
    return code;
}
