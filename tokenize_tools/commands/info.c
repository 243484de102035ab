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
#include "cli/paths.h"
#include "commands/commands.h"
#include "commands/dataset_list.h"
#include "commands/dataset_names.h"
#include "commands/open_failure.h"
#include "commands/values_text.h"
#include "system/process.h"
#include "text/json_text.h"
#include "tokmap.h"

/* ---- Segments ---- */

/* A line for each segment, under a heading; nothing if there are none. */
static void segments_print_table(const tokmap_dataset *ds, uint64_t n_segments)
{
    if (n_segments)
        printf("\n%25s %15s  %s\n", "tokens", "first byte", "token file");
    for (uint64_t i = 0; i < n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        char tokens[64];
        tokmap_dataset_get_segment(ds, i, &s);
        snprintf(tokens, sizeof tokens, "%" PRIu64 ":%" PRIu64, s.first_token,
                 s.first_token + s.n_tokens);
        printf("%25s %15" PRIu64 "  ", tokens, s.token_offset);
        cli_print_plain(stdout, s.path, s.path_bytes);
        putchar('\n');
    }
}

/* A JSON array of objects. */
static void segments_print_json(const tokmap_dataset *ds, uint64_t n_segments)
{
    putchar('[');
    for (uint64_t i = 0; i < n_segments; i++) {
        tokmap_segment_info s = TOKMAP_INIT(tokmap_segment_info);
        tokmap_dataset_get_segment(ds, i, &s);
        fputs(i ? ", {\"token_file\": " : "{\"token_file\": ", stdout);
        json_text_print_string(stdout, s.path, s.path_bytes);
        printf(", \"first_token\": %" PRIu64 ", \"n_tokens\": %" PRIu64
               ", \"token_offset\": %" PRIu64 "}",
               s.first_token, s.n_tokens, s.token_offset);
    }
    putchar(']');
}

typedef struct info_options {
    bool json, inputs, segments, no_lengths;
} info_options;

/* Bucket 0 holds length 0, bucket b the lengths 2^(b-1) to 2^b - 1. Lengths reach 2^48. */
#define N_BUCKETS 50

typedef struct length_table {
    uint64_t min, max;
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

static tokmap_status count_lengths(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                                   length_table *table, tokmap_error *err)
{
    *table = (length_table){.min = UINT64_MAX};
    for (uint64_t i = 0; i < info->n_documents; i++) {
        tokmap_document doc;
        tokmap_status status = tokmap_dataset_document(ds, i, &doc);
        if (status == TOKMAP_OK && bucket_of(doc.n_tokens) >= N_BUCKETS)
            status = TOKMAP_ERR_CORRUPT;
        if (status != TOKMAP_OK) {
            *err = (tokmap_error){.status = status};
            snprintf(err->text, sizeof err->text, "%.400s: damaged: the entry of document %" PRIu64,
                     info->index_path, i);
            return status;
        }
        unsigned bucket = bucket_of(doc.n_tokens);
        table->buckets[bucket].n_documents++;
        table->buckets[bucket].n_tokens += doc.n_tokens;
        table->min = doc.n_tokens < table->min ? doc.n_tokens : table->min;
        table->max = doc.n_tokens > table->max ? doc.n_tokens : table->max;
    }
    return TOKMAP_OK;
}

static double divide(uint64_t a, uint64_t b)
{
    return (double)a / (double)b;
}

static json_text_span get_metadata(const tokmap_dataset *ds)
{
    json_text_span metadata;
    metadata.text = tokmap_dataset_metadata(ds, &metadata.n_bytes);
    return metadata;
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

/* What `tokmap index` records for files whose documents are marked at their beginning. */
static void print_begin(const tokmap_dataset *ds)
{
    json_text_span metadata = get_metadata(ds), adopted, id;
    if (json_text_check_object(metadata, NULL) &&
        json_text_find(metadata, "adopted_from", &adopted) &&
        json_text_find(adopted, "documents_begin_with", &id)) {
        fputs(", documents begin with id ", stdout);
        json_text_print(stdout, id);
    }
    putchar('\n');
}

static void print_ids(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
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
    print_begin(ds);
}

static void print_documents(const tokmap_dataset_info *info)
{
    print_key("documents:");
    if (info->n_documents)
        printf("%s, %.1f tokens on average\n", cli_count(info->n_documents).s,
               divide(info->n_tokens, info->n_documents));
    else
        puts(info->n_tokens ? "boundaries not known" : "0");
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
    json_text_span metadata = get_metadata(ds), tokenizer, name;
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

/* Columns that are left for bars. */
static unsigned bar_room(unsigned used)
{
    unsigned columns = process_terminal_columns(stdout);
    columns = columns == 0 ? 80 : columns > 160 ? 160 : columns;
    return columns > used + 10 ? columns - used : 10;
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
    int used = printf("%17s %15s", range, cli_count(n).s);
    used += printf(" %19s", cli_count(table->buckets[bucket].n_tokens).s);
    unsigned room = bar_room((unsigned)used + 2);
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

static void print_input(const tokmap_input_info *input, bool size_known)
{
    char documents[64], tokens[64];
    snprintf(documents, sizeof documents, "%" PRIu64 ":%" PRIu64, input->first_document,
             input->first_document + input->n_documents);
    snprintf(tokens, sizeof tokens, "%" PRIu64 ":%" PRIu64, input->first_token,
             input->first_token + input->n_tokens);
    printf("%17s %25s %12s  ", documents, tokens,
           size_known ? cli_bytes(input->input_bytes).s : "-");
    cli_print_plain(stdout, input->name, input->name_bytes);
    putchar('\n');
}

static int refuse_input(const tokmap_dataset_info *info, tokmap_status status, uint64_t index)
{
    tokmap_error err = {.status = status};
    snprintf(err.text, sizeof err.text, "%.400s: damaged: the entry of input %" PRIu64,
             info->index_path, index);
    return cli_fail(&err);
}

static int print_inputs(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    if (info->n_inputs)
        printf("\n%17s %25s %12s  %s\n", "documents", "tokens", "size", "input");
    for (uint64_t i = 0; i < info->n_inputs; i++) {
        tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
        tokmap_status status = tokmap_dataset_get_input(ds, i, &input);
        if (status != TOKMAP_OK)
            return refuse_input(info, status, i);
        print_input(&input, input.input_bytes || input.input_checksum);
    }
    return CLI_OK;
}

static void print_columns(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    for (uint32_t i = 0; i < info->n_meta_columns; i++) {
        tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
        tokmap_dataset_get_meta_column(ds, i, &column);
        print_key(i ? "" : "values:");
        cli_print_plain(stdout, column.name, column.name_bytes);
        if (column.type == TOKMAP_VALUE_NULL) {
            puts(", no document has one");
            continue;
        }
        printf(", %s", values_type_name(column.type));
        if (column.code_bytes)
            printf(", %s different", cli_count(column.n_strings).s);
        if (column.n_nulls)
            printf(", missing in %s", cli_count_of(column.n_nulls, "document").s);
        putchar('\n');
    }
}

static int print_table(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                       const info_options *options)
{
    print_text_line("dataset id:", cli_hex(info->dataset_id).s);
    print_key("tokens:");
    printf("%s, %s\n", cli_count(info->n_tokens).s, info->token_bytes == 2 ? "u16" : "u32");
    print_documents(info);
    print_text_line("inputs:", cli_count(info->n_inputs).s);
    print_columns(ds, info);
    print_ids(ds, info);
    print_tokenizer(ds);
    print_files(info);
    print_key("format:");
    printf("version %" PRIu32 ", readable by version %" PRIu32 " and later\n", info->format_version,
           info->lowest_reader);
    if (info->n_documents && !options->no_lengths) {
        length_table table;
        tokmap_error err;
        if (count_lengths(ds, info, &table, &err) != TOKMAP_OK)
            return cli_fail(&err);
        print_lengths(&table);
    }
    if (options->segments)
        segments_print_table(ds, info->n_segments);
    return options->inputs ? print_inputs(ds, info) : CLI_OK;
}

/* ---- For programs ---- */

static void print_json_key(const char *key)
{
    printf(", \"%s\": ", key);
}

static void print_json_number(const char *key, uint64_t value)
{
    print_json_key(key);
    printf("%" PRIu64, value);
}

static void print_json_number_or_null(const char *key, uint64_t value, bool known)
{
    if (known) {
        print_json_number(key, value);
    } else {
        print_json_key(key);
        fputs("null", stdout);
    }
}

static void print_json_string(const char *key, const char *text)
{
    print_json_key(key);
    json_text_print_string(stdout, text, strlen(text));
}

static void print_json_header(const tokmap_dataset_info *info)
{
    fputs("{\"schema_version\": 1", stdout);
    print_json_string("dtype", info->token_bytes == 2 ? "u16" : "u32");
    print_json_number("n_tokens", info->n_tokens);
    print_json_number("n_documents", info->n_documents);
    print_json_number("n_inputs", info->n_inputs);
    print_json_number_or_null("vocab_size", info->vocab_size, info->vocab_size != 0);
    print_json_number("largest_id", info->largest_id);
    print_json_number_or_null("eod_id", info->eod_id, info->eod_id != TOKMAP_NO_ID);
    print_json_string("dataset_id", cli_hex(info->dataset_id).s);
    print_json_number("token_offset", info->token_offset);
    print_json_number("token_bytes", info->token_bytes);
    print_json_key("token_file");
    cli_print_token_file(info);
    print_json_number("token_file_bytes", info->token_file_bytes);
    print_json_string("index_file", info->index_path);
    print_json_number("index_bytes", info->index_bytes);
    print_json_number("format_version", info->format_version);
    print_json_number("lowest_reader", info->lowest_reader);
    print_json_key("bytes_per_document");
    if (info->n_documents)
        printf("%.4f", divide(info->documents_bytes, info->n_documents));
    else
        fputs("null", stdout);
}

static void print_json_lengths(const tokmap_dataset_info *info, const length_table *table)
{
    print_json_key("document_lengths");
    printf("{\"min\": %" PRIu64 ", \"max\": %" PRIu64 ", \"mean\": %.3f, \"histogram\": [",
           table->min, table->max, divide(info->n_tokens, info->n_documents));
    const char *comma = "";
    for (unsigned b = bucket_of(table->min); b <= bucket_of(table->max); b++, comma = ", ")
        printf("%s{\"from\": %" PRIu64 ", \"to\": %" PRIu64 ", \"documents\": %" PRIu64
               ", \"tokens\": %" PRIu64 "}",
               comma, bucket_first(b), bucket_last(b), table->buckets[b].n_documents,
               table->buckets[b].n_tokens);
    fputs("]}", stdout);
}

static int print_json_inputs(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    print_json_key("inputs");
    putchar('[');
    tokmap_status status = TOKMAP_OK;
    uint64_t i = 0;
    for (; i < info->n_inputs; i++) {
        tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
        status = tokmap_dataset_get_input(ds, i, &input);
        if (status != TOKMAP_OK)
            break;
        fputs(i ? ", {\"name\": " : "{\"name\": ", stdout);
        json_text_print_string(stdout, input.name, input.name_bytes);
        print_json_number("first_document", input.first_document);
        print_json_number("n_documents", input.n_documents);
        print_json_number("first_token", input.first_token);
        print_json_number("n_tokens", input.n_tokens);
        print_json_number_or_null("input_bytes", input.input_bytes,
                                  input.input_bytes || input.input_checksum);
        print_json_key("input_checksum");
        if (input.input_checksum)
            printf("\"%016" PRIx64 "\"", input.input_checksum);
        else
            fputs("null", stdout);
        putchar('}');
    }
    putchar(']');
    return status == TOKMAP_OK ? CLI_OK : refuse_input(info, status, i);
}

static void print_json_columns(const tokmap_dataset *ds, const tokmap_dataset_info *info)
{
    print_json_key("meta");
    putchar('[');
    for (uint32_t i = 0; i < info->n_meta_columns; i++) {
        tokmap_meta_column column = TOKMAP_INIT(tokmap_meta_column);
        tokmap_dataset_get_meta_column(ds, i, &column);
        fputs(i ? ", {\"name\": " : "{\"name\": ", stdout);
        json_text_print_string(stdout, column.name, column.name_bytes);
        print_json_string("type", values_type_name(column.type));
        print_json_number("n_nulls", column.n_nulls);
        print_json_number_or_null("n_distinct", column.n_strings, column.code_bytes != 0);
        putchar('}');
    }
    putchar(']');
}

static void print_json_metadata(const tokmap_dataset *ds)
{
    json_text_span metadata = get_metadata(ds);
    failure err;
    print_json_key("metadata");
    if (json_text_check_object(metadata, &err)) {
        json_text_print(stdout, metadata);
        return;
    }
    fail_at(&err, "byte %" PRIu64 ": ", err.place);
    fputs("null", stdout);
    print_json_string("metadata_error", err.text);
}

/* A damaged part of the dataset is null, and the object is still complete. */
static int print_json(const tokmap_dataset *ds, const tokmap_dataset_info *info,
                      const info_options *options)
{
    int code = CLI_OK;
    print_json_header(info);
    if (!options->no_lengths) {
        length_table table;
        tokmap_error err = {.status = TOKMAP_OK};
        if (info->n_documents && count_lengths(ds, info, &table, &err) == TOKMAP_OK)
            print_json_lengths(info, &table);
        else
            print_json_number_or_null("document_lengths", 0, false);
        if (err.status != TOKMAP_OK)
            code = cli_fail(&err);
    }
    int inputs_code = print_json_inputs(ds, info);
    code = code == CLI_OK ? inputs_code : code;
    print_json_columns(ds, info);
    print_json_key("segments");
    segments_print_json(ds, info->n_segments);
    print_json_metadata(ds);
    puts("}");
    return code;
}

/* ---- Command ---- */

/* Sets *shown when something was printed; tables are separated by an empty line. */
static int show_one(const char *path, const info_options *options, bool *shown)
{
    tokmap_dataset *ds;
    tokmap_error err;
    if (tokmap_dataset_open(&ds, path, &err) != TOKMAP_OK)
        return report_open_failure(path, &err);
    tokmap_dataset_info info = {.struct_size = sizeof info};
    tokmap_dataset_get_info(ds, &info);
    if (*shown && !options->json)
        putchar('\n');
    *shown = true;
    report_unfinished(path);
    int code = options->json ? print_json(ds, &info, options) : print_table(ds, &info, options);
    tokmap_dataset_close(ds);
    return code;
}

/* XXH3-128 of the dataset ids in order. */
static void print_list_id(uint8_t (*dataset_ids)[16], size_t n_datasets)
{
    uint8_t id[16];
    XXH128_canonicalFromHash((XXH128_canonical_t *)id, XXH3_128bits(dataset_ids, 16 * n_datasets));
    print_text_line("list id:", cli_hex(id).s);
}

static void print_total(const dataset_list *list, uint8_t (*dataset_ids)[16])
{
    tokmap_dataset_info info = {.struct_size = sizeof info};
    uint64_t n_tokens = 0, n_documents = 0;
    for (size_t i = 0; i < list->n; i++) {
        tokmap_dataset_get_info(list->datasets[i], &info);
        memcpy(dataset_ids[i], info.dataset_id, 16);
        n_tokens += info.n_tokens;
        n_documents += info.n_documents;
    }
    printf("\ntotal of %s datasets\n", cli_count(list->n).s);
    print_list_id(dataset_ids, list->n);
    print_key("tokens:");
    printf("%s, %s\n", cli_count(n_tokens).s, info.token_bytes == 2 ? "u16" : "u32");
    print_text_line("documents:", cli_count(n_documents).s);
}

static int show_total(char **paths, size_t n_paths)
{
    dataset_list list;
    uint8_t(*dataset_ids)[16] = calloc(n_paths, sizeof *dataset_ids);
    if (!dataset_ids)
        return cli_no_memory();
    int code = dataset_list_open(&list, paths, n_paths);
    if (code == CLI_OK)
        print_total(&list, dataset_ids);
    dataset_list_close(&list);
    free(dataset_ids);
    return code;
}

static int show_all(char **paths, size_t n_paths, const info_options *options)
{
    int code = CLI_OK;
    bool shown = false;
    for (size_t i = 0; i < n_paths; i++) {
        int one = show_one(paths[i], options, &shown);
        code = code == CLI_OK ? one : code;
    }
    if (code == CLI_OK && n_paths > 1 && !options->json)
        code = show_total(paths, n_paths);
    int finished = cli_finish();
    return code == CLI_OK ? finished : code;
}

#define TARGET(field) offsetof(info_options, field)
static const cli_option option_table[] = {
    {"json", 0, CLI_FLAG, TARGET(json),
     .help = "print a JSON object for each dataset, one per line"},
    {"inputs", 0, CLI_FLAG, TARGET(inputs),
     .help = "list the input files that the dataset was made from (--json always does)"},
    {"segments", 0, CLI_FLAG, TARGET(segments),
     .help = "list the token files of a joined dataset (--json always does)"},
    {"no-lengths", 0, CLI_FLAG, TARGET(no_lengths),
     .help = "leave out the document lengths, for which the whole index must be read"},
    {NULL},
};
#undef TARGET

static const cli_manual manual = {
    .usage = "tokmap info [OPTION]... P...",
    .about = "Shows what each dataset P contains. P may also be given as P.bin or P.tmi, or as a "
             "pattern such as 'data/*'. For several datasets, the total is shown too; "
             "it is an error if they do not fit together.",
    .options = option_table,
    .examples = "  tokmap info data/train\n"
                "  tokmap info --json data/*.tmi | jq .n_tokens\n",
    .operand = "dataset",
    .n_least = 1,
};

int info_command(int argc, char **argv)
{
    info_options options = {0};
    dataset_names names;
    int code = cli_parse_options(&manual, argc, argv, &options);
    if (code != CLI_GO_ON)
        return code;
    code = dataset_names_expand(&names, argv + optind, argc - optind);
    if (code == CLI_OK)
        code = show_all(names.paths, names.n, &options);
    dataset_names_free(&names);
    return code;
}
