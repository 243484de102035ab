/* SPDX-License-Identifier: Apache-2.0 */
/* info.c - tokmap info: what a dataset contains, as text and as JSON. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <xxhash.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "commands/dataset/info_card.h"
#include "datasets/each.h"
#include "datasets/beside.h"
#include "datasets/lanes.h"
#include "datasets/values.h"
#include "system/process.h"
#include "cli/json_out.h"
#include "base/json_text.h"
#include "tokmap.h"

typedef struct info_options {
    const char *where;
    uint64_t n_wanted; /* tokens of a run; 0: not said */
    bool json, card, inputs, segments, no_lengths;
    bool has_printed; /* a dataset was printed */
} info_options;

/* Bucket 0 holds length 0, bucket b the lengths 2^(b-1) to 2^b - 1. Lengths reach 2^48. */
#define N_BUCKETS 50

typedef struct length_table {
    uint64_t min, max, n_documents, n_tokens, n_redacted, redacted_tokens;
    struct {
        uint64_t n_documents, n_tokens;
    } buckets[N_BUCKETS];
} length_table;

static unsigned bucket_of(uint64_t length)
{
    return length ? 64u - (unsigned)__builtin_clzll(length) : 0;
}

static uint64_t bucket_first(unsigned bucket)
{
    return bucket ? UINT64_C(1) << (bucket - 1) : 0;
}

static uint64_t bucket_last(unsigned bucket)
{
    return bucket ? (UINT64_C(1) << bucket) - 1 : 0;
}

/* Counts the documents by length; kept: only these, or NULL. Returns an exit code, and prints the
 * error. */
static int count_lengths(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                         const uint64_t *kept, length_table *table)
{
    *table = (length_table){.min = UINT64_MAX};
    for (uint64_t i = 0; i < info->n_documents; i++) {
        if (kept && !values_is_kept(kept, i))
            continue;
        tokmap_document doc;
        tokmap_span span = {.role = TOKMAP_SPAN_PROMPT};
        size_t n;
        tokmap_status status = tokmap_dataset_document(ds, i, &doc);
        if (status == TOKMAP_OK && bucket_of(doc.n_tokens) >= N_BUCKETS)
            status = TOKMAP_ERR_CORRUPT;
        if (status == TOKMAP_OK && info->n_spans)
            status = tokmap_dataset_get_spans(ds, doc.first_token, doc.n_tokens, &span, 1, &n);
        if (status != TOKMAP_OK)
            return cli_error(CLI_DATASET, "%.400s: damaged: the entry%s of document %" PRIu64,
                             info->index_path, info->n_spans ? " or the spans" : "", i);
        if (span.role == TOKMAP_SPAN_REDACTED || span.role == TOKMAP_SPAN_REDACTED_PROMPT) {
            table->n_redacted++;
            table->redacted_tokens += doc.n_tokens;
        }
        unsigned bucket = bucket_of(doc.n_tokens);
        table->n_documents++;
        table->n_tokens += doc.n_tokens;
        table->buckets[bucket].n_documents++;
        table->buckets[bucket].n_tokens += doc.n_tokens;
        table->min = doc.n_tokens < table->min ? doc.n_tokens : table->min;
        table->max = doc.n_tokens > table->max ? doc.n_tokens : table->max;
    }
    return CLI_OK;
}

static double divide(uint64_t a, uint64_t b)
{
    return (double)a / (double)b;
}

static const char *dtype_name(const tokmap_dataset_info *info)
{
    return info->token_bytes == 2 ? "u16" : "u32";
}

/* ---- For people ---- */

static void print_key(const char *key)
{
    printf("%-18s", key);
}

static void print_text_line(const char *key, const char *text)
{
    print_key(key);
    cli_print_plain(stdout, text, strlen(text));
    putchar('\n');
}

static void print_ids(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    json_text_span adopted, id;
    print_key("vocabulary:");
    if (info->vocab_size)
        printf("%s ids", cli_count(info->vocab_size).s);
    else
        fputs("size not known", stdout);
    if (info->n_tokens)
        printf(", the largest in use is %" PRIu32, info->largest_id);
    putchar('\n');
    print_key("end of document:");
    if (info->eod_id != TOKMAP_NO_ID)
        printf("id %" PRIu32, info->eod_id);
    else
        fputs("no id", stdout);
    /* What `tokmap index` records for files whose documents are marked at their beginning. */
    if (dataset_metadata_find(ds, "adopted_from", &adopted) &&
        json_text_find(adopted, "documents_begin_with", &id)) {
        fputs(", documents begin with id ", stdout);
        json_text_print(stdout, id);
    }
    putchar('\n');
}

static void print_files(const tokmap_dataset_info *info)
{
    if (cli_is_joined(info)) {
        print_key("segments:");
        fputs(cli_count_of(info->n_segments, "token file").s, stdout);
    } else {
        print_key("token file:");
        cli_print_plain(stdout, info->token_path, strlen(info->token_path));
    }
    printf(", %s", cli_bytes(info->token_file_bytes).s);
    if (info->token_offset)
        printf(", tokens start at byte %s", cli_count(info->token_offset).s);
    putchar('\n');
    print_key("index file:");
    cli_print_plain(stdout, info->index_path, strlen(info->index_path));
    printf(", %s", cli_bytes(info->index_bytes).s);
    if (info->n_documents)
        printf(", %.2f bytes for each document", divide(info->documents_bytes, info->n_documents));
    putchar('\n');
}

static void print_tokenizer(const tokmap_dataset *ds)
{
    json_text_span metadata = dataset_metadata(ds), tokenizer, name;
    failure err;
    print_key("tokenizer:");
    if (!json_text_check_object(metadata, &err)) {
        printf("not known: the metadata is not JSON (byte %" PRIu64 ": %s)\n", err.place, err.text);
        return;
    }
    if (!json_text_find(metadata, "tokenizer", &tokenizer)) {
        puts("not known");
        return;
    }
    if (json_text_find(tokenizer, "name", &name) && name.n_bytes > 2 && name.text[0] == '"')
        cli_print_plain(stdout, name.text + 1, name.n_bytes - 2);
    else
        json_text_print(stdout, tokenizer);
    putchar('\n');
}

static void print_redacted(const tokmap_dataset *ds, const length_table *table)
{
    json_text_span from;
    if (table->n_redacted == 0)
        return;
    print_key("redacted:");
    printf("%s, %s", cli_count_of(table->n_redacted, "document").s,
           cli_count_of(table->redacted_tokens, "token").s);
    if (dataset_metadata_find(ds, "redacted_from", &from)) {
        fputs(", from ", stdout);
        json_text_print(stdout, from);
    }
    putchar('\n');
}

static void print_bucket(const length_table *table, unsigned bucket, uint64_t most)
{
    char range[2 * sizeof(cli_text)];
    if (bucket < 2)
        snprintf(range, sizeof range, "%s", cli_count(bucket_first(bucket)).s);
    else
        snprintf(range, sizeof range, "%s-%s", cli_count(bucket_first(bucket)).s,
                 cli_count(bucket_last(bucket)).s);
    uint64_t n = table->buckets[bucket].n_documents;
    unsigned used = (unsigned)printf("%17s %15s", range, cli_count(n).s) + 2;
    used += (unsigned)printf(" %19s", cli_count(table->buckets[bucket].n_tokens).s);
    unsigned columns = process_terminal_columns(stdout);
    columns = columns == 0 ? 80 : columns > 160 ? 160 : columns;
    const unsigned room = columns > used + 10 ? columns - used : 10;
    /* At least one mark for a bucket that is not empty. */
    unsigned marks = n ? 1 + (unsigned)((double)(room - 1) * divide(n, most)) : 0;
    fputs(marks ? " " : "", stdout);
    for (unsigned i = 0; i < marks; i++)
        putchar('#');
    putchar('\n');
}

static void print_lengths(const length_table *table)
{
    uint64_t most = 0;
    printf("\n%17s %15s %19s\n", "document length", "documents", "tokens");
    for (unsigned b = bucket_of(table->min); b <= bucket_of(table->max); b++)
        most = table->buckets[b].n_documents > most ? table->buckets[b].n_documents : most;
    for (unsigned b = bucket_of(table->min); b <= bucket_of(table->max); b++)
        print_bucket(table, b, most);
}

/* Formats "12:34". */
static cli_text format_range(uint64_t first, uint64_t n)
{
    cli_text text;
    snprintf(text.s, sizeof text.s, "%" PRIu64 ":%" PRIu64, first, first + n);
    return text;
}

static void print_segments(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    if (info->n_segments)
        printf("\n%25s %15s  %s\n", "tokens", "first byte", "token file");
    for (uint64_t i = 0; i < info->n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &s);
        printf("%25s %15" PRIu64 "  ", format_range(s.first_token, s.n_tokens).s, s.token_offset);
        cli_print_plain(stdout, s.path, s.path_bytes);
        putchar('\n');
    }
}

/* Whether the size of an input is known; false if it was a pipe. */
static bool has_size(const tokmap_input_info *entry)
{
    return entry->input_bytes || entry->input_checksum;
}

static int refuse_input(const tokmap_dataset_info *info, uint64_t index)
{
    return cli_error(CLI_DATASET, "%.400s: damaged: the entry of input %" PRIu64, info->index_path,
                     index);
}

static int print_inputs(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    if (info->n_inputs)
        printf("\n%17s %25s %12s  %s\n", "documents", "tokens", "size", "input");
    for (uint64_t i = 0; i < info->n_inputs; i++) {
        tokmap_input_info entry = TOKMAP_INIT(tokmap_input_info);
        if (tokmap_dataset_get_input(ds, i, &entry) != TOKMAP_OK)
            return refuse_input(info, i);
        printf("%17s %25s %12s  ", format_range(entry.first_document, entry.n_documents).s,
               format_range(entry.first_token, entry.n_tokens).s,
               has_size(&entry) ? cli_bytes(entry.input_bytes).s : "-");
        cli_print_plain(stdout, entry.name, entry.name_bytes);
        putchar('\n');
    }
    return CLI_OK;
}

/* What a dataset has beside its tokens. */
typedef struct info_values {
    const value_columns *columns;
    const lane_list *lanes;
} info_values;

static void print_columns(const value_columns *columns)
{
    for (size_t i = 0; i < columns->n; i++) {
        const tokmap_meta_column *column = &columns->info[i];
        print_key(i ? "" : "values:");
        cli_print_plain(stdout, column->name, column->name_bytes);
        if (column->type == TOKMAP_VALUE_NULL)
            fputs(", no document has one", stdout);
        else
            printf(", %s", values_type_name(column->type));
        if (column->code_bytes)
            printf(", %s different", cli_count(column->n_strings).s);
        if (column->n_nulls && column->type != TOKMAP_VALUE_NULL)
            printf(", missing in %s", cli_count_of(column->n_nulls, "document").s);
        puts(column->path ? ", late" : "");
    }
}

static void print_lanes(const lane_list *lanes)
{
    for (size_t i = 0; i < lanes->n; i++) {
        const tokmap_lane_info *lane = &lanes->info[i];
        print_key(i ? "" : "lanes:");
        printf("%s, ", lane->name);
        if (lane->count > 1)
            printf("%s ", cli_count(lane->count).s);
        printf("%s for each token as %s, ", lanes_type_name(lane->type),
               lane->goes_with == TOKMAP_WITH_INPUT ? "an input" : "a label");
        if (lane->path)
            printf("from byte %" PRIu64 "\n", lane->offset);
        else
            puts("beside the token files");
    }
}

static void print_epochs(uint64_t n_tokens, uint64_t n_wanted)
{
    if (n_wanted == 0 || n_tokens == 0)
        return;
    print_key("epochs:");
    printf("%.2f for %s\n", divide(n_wanted, n_tokens), cli_count_of(n_wanted, "token").s);
}

static void print_kept(const length_table *table, const tokmap_dataset_info *info)
{
    print_key("kept by --where:");
    printf("%s (%.2f%%), ", cli_count_of(table->n_documents, "document").s,
           100 * divide(table->n_documents, info->n_documents));
    printf("%s (%.2f%%)\n", cli_count_of(table->n_tokens, "token").s,
           info->n_tokens ? 100 * divide(table->n_tokens, info->n_tokens) : 0);
}

static void print_spans(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    const bool has_roles = dataset_has_roles(ds);
    json_text_span roles;
    if (info->n_spans == 0)
        return;
    print_key("spans:");
    printf("%s of tokens %s", cli_count(info->n_spans).s,
           has_roles ? "that have a role" : "whose labels never count");
    if (info->spans_hash)
        printf(", hash %016" PRIx64 "\n", info->spans_hash);
    else
        puts(has_roles ? "" : ", all redacted");
    if (!dataset_metadata_find(ds, "roles", &roles))
        return;
    print_key("roles:");
    json_text_print(stdout, roles);
    putchar('\n');
}

static int print_table(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                       const info_values *values, const uint64_t *kept, const info_options *options)
{
    print_text_line("dataset id:", cli_hex(info->dataset_id).s);
    print_key("tokens:");
    printf("%s, %s\n", cli_count(info->n_tokens).s, dtype_name(info));
    print_key("documents:");
    if (info->n_documents)
        printf("%s, %.1f tokens on average\n", cli_count(info->n_documents).s,
               divide(info->n_tokens, info->n_documents));
    else
        puts(info->n_tokens ? "boundaries not known" : "0");
    if (!kept)
        print_epochs(info->n_tokens, options->n_wanted);
    print_text_line("inputs:", cli_count(info->n_inputs).s);
    print_columns(values->columns);
    print_lanes(values->lanes);
    print_spans(ds, info);
    print_ids(ds, info);
    print_tokenizer(ds);
    print_files(info);
    print_key("format:");
    printf("version %" PRIu32 ", readable by version %" PRIu32 " and later\n", info->format_version,
           info->lowest_reader);
    if (info->n_documents && (!options->no_lengths || kept)) {
        length_table table;
        const int code = count_lengths(ds, info, kept, &table);
        if (code != CLI_OK)
            return code;
        print_redacted(ds, &table);
        if (kept) {
            print_kept(&table, info);
            print_epochs(table.n_tokens, options->n_wanted);
        }
        if (!options->no_lengths && table.n_documents > 0)
            print_lengths(&table);
    }
    if (options->segments)
        print_segments(ds, info);
    return options->inputs ? print_inputs(ds, info) : CLI_OK;
}

/* ---- For programs ---- */

static void put_lengths(json_out *o, const length_table *table)
{
    json_out_begin(o, "document_lengths", '{');
    json_out_number(o, "min", table->min);
    json_out_number(o, "max", table->max);
    json_out_print(o, "mean", "%.3f", divide(table->n_tokens, table->n_documents));
    json_out_begin(o, "histogram", '[');
    for (unsigned b = bucket_of(table->min); b <= bucket_of(table->max); b++) {
        json_out_begin(o, NULL, '{');
        json_out_number(o, "from", bucket_first(b));
        json_out_number(o, "to", bucket_last(b));
        json_out_number(o, "n_documents", table->buckets[b].n_documents);
        json_out_number(o, "n_tokens", table->buckets[b].n_tokens);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    json_out_end(o, '}');
    json_out_number(o, "n_redacted_documents", table->n_redacted);
    json_out_number(o, "n_redacted_tokens", table->redacted_tokens);
}

static int put_inputs(json_out *o, const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    int code = CLI_OK;
    json_out_begin(o, "inputs", '[');
    for (uint64_t i = 0; i < info->n_inputs; i++) {
        tokmap_input_info entry = TOKMAP_INIT(tokmap_input_info);
        if (tokmap_dataset_get_input(ds, i, &entry) != TOKMAP_OK) {
            code = refuse_input(info, i);
            break;
        }
        json_out_begin(o, NULL, '{');
        json_out_text(o, "name", entry.name, entry.name_bytes);
        json_out_number(o, "first_document", entry.first_document);
        json_out_number(o, "n_documents", entry.n_documents);
        json_out_number(o, "first_token", entry.first_token);
        json_out_number(o, "n_tokens", entry.n_tokens);
        json_out_known(o, "input_bytes", entry.input_bytes, has_size(&entry));
        if (entry.input_checksum)
            json_out_hash(o, "input_checksum", entry.input_checksum);
        else
            json_out_string(o, "input_checksum", NULL);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
    return code;
}

static void put_columns(json_out *o, const value_columns *columns)
{
    json_out_begin(o, "meta", '[');
    for (size_t i = 0; i < columns->n; i++) {
        const tokmap_meta_column *column = &columns->info[i];
        json_out_begin(o, NULL, '{');
        json_out_text(o, "name", column->name, column->name_bytes);
        json_out_string(o, "type", values_type_name(column->type));
        json_out_number(o, "n_nulls", column->n_nulls);
        json_out_known(o, "n_distinct", column->n_strings, column->code_bytes != 0);
        json_out_bool(o, "late", column->path != NULL);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

static void put_segments(json_out *o, const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    json_out_begin(o, "segments", '[');
    for (uint64_t i = 0; i < info->n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &s);
        json_out_begin(o, NULL, '{');
        json_out_text(o, "token_file", s.path, s.path_bytes);
        json_out_number(o, "first_token", s.first_token);
        json_out_number(o, "n_tokens", s.n_tokens);
        json_out_number(o, "token_offset", s.token_offset);
        json_out_end(o, '}');
    }
    json_out_end(o, ']');
}

/* Prints an object. A damaged part of the dataset becomes null, and the object is still
 * complete. */
static int print_json(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                      const info_values *values, const uint64_t *kept, const info_options *options)
{
    json_out o = json_out_begin_result(stdout);
    int code = CLI_OK;
    json_out_string(&o, "dtype", dtype_name(info));
    json_out_number(&o, "n_tokens", info->n_tokens);
    json_out_number(&o, "n_documents", info->n_documents);
    json_out_number(&o, "n_inputs", info->n_inputs);
    json_out_known(&o, "vocab_size", info->vocab_size, info->vocab_size != 0);
    json_out_number(&o, "largest_id", info->largest_id);
    json_out_known(&o, "eod_id", info->eod_id, info->eod_id != TOKMAP_NO_ID);
    json_out_string(&o, "dataset_id", cli_hex(info->dataset_id).s);
    json_out_number(&o, "token_offset", info->token_offset);
    json_out_number(&o, "token_bytes", info->token_bytes);
    json_out_string(&o, "token_file", info->token_path);
    json_out_number(&o, "token_file_bytes", info->token_file_bytes);
    json_out_string(&o, "index_file", info->index_path);
    json_out_number(&o, "index_bytes", info->index_bytes);
    json_out_number(&o, "format_version", info->format_version);
    json_out_number(&o, "lowest_reader", info->lowest_reader);
    if (info->n_documents)
        json_out_print(&o, "bytes_per_document", "%.4f",
                       divide(info->documents_bytes, info->n_documents));
    else
        json_out_string(&o, "bytes_per_document", NULL);
    uint64_t n_counted = info->n_tokens;
    if (!options->no_lengths || kept) {
        length_table table;
        code = count_lengths(ds, info, kept, &table);
        if (kept) {
            n_counted = table.n_tokens;
            json_out_begin(&o, "kept", '{');
            json_out_number(&o, "n_documents", table.n_documents);
            json_out_number(&o, "n_tokens", table.n_tokens);
            json_out_end(&o, '}');
        }
        if (table.n_documents && code == CLI_OK && !options->no_lengths)
            put_lengths(&o, &table);
        else if (!options->no_lengths)
            json_out_string(&o, "document_lengths", NULL);
    }
    if (options->n_wanted && n_counted > 0 && code == CLI_OK)
        json_out_print(&o, "epochs", "%.6g", divide(options->n_wanted, n_counted));
    code = cli_first_failure(code, put_inputs(&o, ds, info));
    put_columns(&o, values->columns);
    lanes_put(&o, values->lanes);
    json_out_number(&o, "n_spans", info->n_spans);
    if (info->n_spans)
        json_out_hash(&o, "spans_hash", info->spans_hash);
    put_segments(&o, ds, info);
    json_text_span metadata = dataset_metadata(ds);
    failure why;
    if (json_text_check_object(metadata, &why)) {
        json_out_key(&o, "metadata");
        json_text_print(stdout, metadata);
    } else {
        fail_at(&why, "byte %" PRIu64 ": ", why.place);
        json_out_string(&o, "metadata", NULL);
        json_out_string(&o, "metadata_error", why.text);
    }
    puts("}");
    return code;
}

/* ---- Command ---- */

/* Shows one dataset; tables are separated by an empty line. */
static int show_one(void *command_options, const char *path, const tokmap_dataset *ds)
{
    info_options *options = command_options;
    const tokmap_dataset_info info = cli_dataset_info(ds);
    value_columns columns = {0};
    lane_list lanes = {0};
    const info_values values = {&columns, &lanes};
    uint64_t *kept = NULL;
    if (options->has_printed && !options->json)
        putchar('\n');
    options->has_printed = true;
    report_unfinished(path);
    beside_report_unused(ds);
    int code = values_open_all(&columns, ds, false);
    code = cli_first_failure(code, lanes_open_all(&lanes, ds));
    if (options->where)
        code = cli_first_failure(code, values_select(ds, options->where, &kept));
    if (options->card)
        info_card_print(&(info_card){ds, &columns, &lanes});
    else if (code == CLI_OK || !options->where)
        code = cli_first_failure(
            code, (options->json ? print_json : print_table)(ds, &info, &values, kept, options));
    values_close_all(&columns);
    lanes_close_all(&lanes);
    free(kept);
    return code;
}

/* Shows the sums over all datasets. The list id is the XXH3-128 of the dataset ids in order. */
static int show_total(void *options, const input_list *names)
{
    if (names->n_names < 2 || ((info_options *)options)->json)
        return CLI_OK;
    dataset_list list;
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    uint64_t n_tokens = 0, n_documents = 0;
    uint8_t id[16], (*ids)[16] = calloc(names->n_names, sizeof *ids);
    if (!ids)
        return cli_no_memory();
    int code = dataset_list_open(&list, names);
    for (size_t i = 0; i < list.n; i++) {
        info = cli_dataset_info(list.datasets[i]);
        memcpy(ids[i], info.dataset_id, sizeof id);
        n_tokens += info.n_tokens;
        n_documents += info.n_documents;
    }
    if (code == CLI_OK) {
        XXH128_canonicalFromHash((XXH128_canonical_t *)id, XXH3_128bits(ids, list.n * sizeof id));
        printf("\ntotal of %s datasets\n", cli_count(list.n).s);
        print_text_line("list id:", cli_hex(id).s);
        print_key("tokens:");
        printf("%s, %s\n", cli_count(n_tokens).s, dtype_name(&info));
        print_text_line("documents:", cli_count(n_documents).s);
    }
    dataset_list_close(&list);
    free(ids);
    return code;
}

static int check_names(void *command_options, const input_list *names)
{
    const info_options *options = command_options;
    static const char *const allowed[] = {"card", NULL};
    if (!options->card)
        return CLI_OK;
    if (cli_find_other(allowed))
        return cli_usage("--card does not go with --%s", cli_find_other(allowed));
    return names->n_names == 1 ? CLI_OK : cli_usage("--card takes one dataset");
}

#define TARGET(field) offsetof(info_options, field)
static const cli_option option_table[] = {
    {"json", 0, CLI_FLAG, TARGET(json),
     .help = "print a JSON object for each dataset, one per line"},
    {"card", 0, CLI_FLAG, TARGET(card),
     .help = "print a dataset card, the text of README.md for a repository of the Hugging Face "
             "Hub: tokens, documents, tokenizer, columns, and how to copy, open and check the "
             "dataset"},
    {"inputs", 0, CLI_FLAG, TARGET(inputs),
     .help = "list the input files that the dataset was made from (--json always does)"},
    {"segments", 0, CLI_FLAG, TARGET(segments),
     .help = "list the token files of a joined dataset (--json always does)"},
    {"where", 0, CLI_TEXT, TARGET(where), "EXPRESSION",
     .help = "count only the documents for whose values EXPRESSION holds, as in 'tokmap pack "
             "--where': how many there are, their tokens and their lengths"},
    {"tokens", 0, CLI_NUMBER, TARGET(n_wanted), "N",
     .help = "show how many epochs a run of N tokens is, such as 300G; with --where, epochs of "
             "these documents",
     .lowest = 1},
    {"no-lengths", 0, CLI_FLAG, TARGET(no_lengths),
     .help = "leave out the document lengths, for which the whole index must be read"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap info [OPTION]... P...",
    .about = "Shows what each dataset P contains. P may also be given as P.bin or P.tmi, or as a "
             "pattern such as 'data/*'. For several datasets, the total is shown too; "
             "it is an error if they do not fit together.",
    .options = option_table,
    .examples = "  tokmap info data/train\n"
                "  tokmap info --json data/*.tmi | jq .n_tokens\n"
                "  tokmap info --card data/train >data/README.md\n"
                "  tokmap info data/scored --where 'quality >= 3' --tokens 300G\n",
    .operand = "dataset",
    .n_least = 1,
};

int info_command(int argc, char **argv)
{
    info_options options = {0};
    const each_command command = {
        &manual,          &options,         dataset_names_expand, .check = check_names,
        .work = show_one, .end = show_total};
    return each_run(&command, argc, argv);
}
