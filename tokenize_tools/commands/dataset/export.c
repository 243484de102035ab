/* SPDX-License-Identifier: Apache-2.0 */
/* export.c - tokmap export: writes the same tokens for another program. Tokens are never converted:
 * their file is shared, or its bytes are copied. */
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/options.h"
#include "commands/dataset/dataset_commands.h"
#include "datasets/each.h"
#include "datasets/beside.h"
#include "foreign/megatron_index.h"
#include "system/platform.h"
#include "cli/json_out.h"
#include "base/le.h"
#include "system/output_file.h"
#include "cli/paths.h"
#include "system/protected.h"

/* llm.c counts tokens in an int32. */
#define LLMC_MAX_TOKENS 2147483647u
#define LLMC_HEADER_BYTES 1024
#define LLMC_MAX_SHARDS 999999

typedef enum export_format {
    EXPORT_MEGATRON,
    EXPORT_LLMC,
    EXPORT_RAW
} export_format;

static const cli_word formats[] = {
    {"megatron", EXPORT_MEGATRON,
     "Q.bin and Q.idx, with one sequence for each document; if Q is P, only P.idx"},
    {"llmc", EXPORT_LLMC,
     "Q.bin with llm.c's header; llm.c expects the end-of-text token before each document"},
    {"raw", EXPORT_RAW, "Q.bin, with nothing but the tokens"},
    {NULL},
};

static const cli_word span_words[] = {
    {"refuse", 0, "an error"},
    {"drop", 1,
     "keep these tokens, and train on them: on prompts, and on the filler of redacted documents"},
    {NULL},
};

typedef struct export_job {
    export_format to;
    const char *output;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    uint64_t shard_tokens;
    uint32_t drop_spans;
    bool force, json, quiet;
    bool goes_on; /* an export in shards was killed, and has left the partial file of the first */
    const tokmap_dataset *ds;
    tokmap_dataset_info info;
    output_source tokens;
    file_facts tokens_facts;
    cli_progress progress;
    /* What was written, for the result at the end. */
    bool only_index;   /* the index of Megatron, beside the dataset's own file */
    output_way way;    /* how the tokens got into the .bin */
    uint64_t n_shards; /* 0: not in shards */
} export_job;

/* ---- Copying tokens ---- */

#define PIECE_BYTES (1 << 20)

/* Copies tokens of a joined dataset, from all its files. */
static int copy_segments(export_job *job, output_file *out, uint64_t first, uint64_t n_tokens)
{
    uint8_t *buffer = malloc(PIECE_BYTES);
    tokmap_error err;
    int code = buffer ? CLI_OK : cli_no_memory();
    while (code == CLI_OK && n_tokens > 0) {
        const uint64_t most = PIECE_BYTES / job->info.token_bytes;
        const uint64_t n = n_tokens < most ? n_tokens : most;
        const size_t n_bytes = (size_t)n * job->info.token_bytes;
        code = tokmap_dataset_read(job->ds, first, n, buffer, &err) == TOKMAP_OK
                   ? output_write(out, buffer, n_bytes)
                   : cli_fail(&err);
        first += n;
        n_tokens -= n;
        job->tokens.n_copied += n_bytes;
        cli_progress_update(&job->progress, job->tokens.n_copied, job->tokens.n_to_copy);
    }
    cli_progress_clear(&job->progress);
    free(buffer);
    return code;
}

static int copy_tokens(export_job *job, output_file *out, uint64_t first, uint64_t n_tokens)
{
    const uint32_t token_bytes = job->info.token_bytes;
    if (cli_is_joined(&job->info))
        return copy_segments(job, out, first, n_tokens);
    return output_copy(out, &job->tokens, job->info.token_offset + first * token_bytes,
                       n_tokens * token_bytes);
}

/* ---- Sharing the token file ---- */

/* Whether the path is the token file of the dataset. A joined dataset has no such file. */
static bool is_own_file(const export_job *job, const char *path)
{
    return !cli_is_joined(&job->info) && file_is(path, job->tokens_facts.id);
}

/* Returns the path of a shard, or with 0 of the only file. */
static path_text output_path(const export_job *job, uint64_t shard, const char *suffix)
{
    char number[64] = "";
    if (shard)
        snprintf(number, sizeof number, "_%06" PRIu64 "%s", shard, suffix);
    return path_of(job->prefix, shard ? number : suffix);
}

/* Refuses what even --force must not replace. */
static int name_bin(const export_job *job, uint64_t shard, output_file *out)
{
    const path_text prefix = output_path(job, shard, ""), bin = path_of(prefix.s, ".bin");
    if (is_own_file(job, bin.s))
        return cli_error(CLI_EXISTS,
                         "%s: is the token file of the dataset itself; choose another -o", bin.s);
    if (file_name_exists(bin.s) && file_suffix_exists(prefix.s, ".tmi"))
        return cli_error(CLI_EXISTS,
                         "%s.tmi: belongs to a tokmap dataset; choose another -o, or remove the "
                         "dataset",
                         prefix.s);
    return output_name(out, prefix.s, ".bin", job->force);
}

/* Writes the tokens from byte 0 on and gives the file its name. After a failure the caller abandons
 * `out`. */
static int export_tokens(export_job *job, output_file *out)
{
    int code;
    if (job->info.token_offset == 0 && !cli_is_joined(&job->info)) {
        code = output_share(out, &job->tokens, &job->way);
    } else {
        code = output_begin(out);
        if (code == CLI_OK)
            code = copy_tokens(job, out, 0, job->info.n_tokens);
        if (code == CLI_OK)
            code = output_place(out);
    }
    return code;
}

/* ---- raw ---- */

static int export_raw(export_job *job)
{
    output_file out = {.fd = -1};
    const path_text path = path_of(job->prefix, ".bin");
    if (job->force && job->info.token_offset == 0 && is_own_file(job, path.s) &&
        job->tokens_facts.n_names > 1 && !file_is_same_name(path.s, job->tokens.path)) {
        job->way = OUTPUT_HARD_LINK; /* from an earlier export */
        return CLI_OK;
    }
    int code = name_bin(job, 0, &out);
    if (code == CLI_OK)
        code = export_tokens(job, &out);
    if (code != CLI_OK)
        output_abandon(&out);
    return code;
}

/* ---- Megatron ---- */

/* Writes both outputs, which are named (output_name); `bin` only if the tokens are written. */
static int write_megatron(export_job *job, output_file *bin, output_file *idx)
{
    int code = output_begin(idx);
    if (code == CLI_OK)
        code = megatron_index_write(idx, job->ds, false);
    if (code != CLI_OK || job->only_index)
        return code == CLI_OK ? output_place(idx) : code;
    /* An old index must never be beside new tokens, not even for a moment. */
    code = job->force ? output_remove(idx->path) : CLI_OK;
    if (code == CLI_OK)
        code = export_tokens(job, bin);
    return code == CLI_OK ? output_place(idx) : code;
}

static int export_megatron(export_job *job)
{
    output_file bin = {.fd = -1}, idx = {.fd = -1};
    const tokmap_dataset_info *info = &job->info;
    if (info->n_documents == 0 && info->n_tokens > 0)
        return cli_error(CLI_DATASET,
                         "%s: its document boundaries are not known, and Megatron's index "
                         "requires them",
                         info->index_path);
    if (info->token_bytes == 4 && info->largest_id > INT32_MAX)
        return cli_error(CLI_DATASET, "%s: its largest id is %u; Megatron reads ids below 2^31",
                         info->index_path, info->largest_id);
    job->only_index = info->token_offset == 0 && is_own_file(job, path_of(job->prefix, ".bin").s);
    int code = job->only_index ? CLI_OK : name_bin(job, 0, &bin);
    if (code == CLI_OK)
        code = output_name(&idx, job->prefix, ".idx", job->force);
    if (code == CLI_OK)
        code = write_megatron(job, &bin, &idx);
    if (code != CLI_OK) {
        output_abandon(&idx);
        output_abandon(&bin);
    }
    return code;
}

/* ---- llm.c ---- */

static int write_llmc(export_job *job, output_file *out, uint64_t first, uint64_t n_tokens)
{
    uint8_t header[LLMC_HEADER_BYTES] = {0};
    uint32_t token_bytes = job->info.token_bytes;
    le_put(header, token_bytes == 2 ? 20240520 : 20240801, 4);
    le_put(header + 4, token_bytes == 2 ? 1 : 7, 4);
    le_put(header + 8, n_tokens, 4);
    int code = output_begin(out);
    if (code == CLI_OK)
        code = output_write(out, header, sizeof header);
    return code == CLI_OK ? copy_tokens(job, out, first, n_tokens) : code;
}

static int export_file(export_job *job)
{
    output_file out = {.fd = -1};
    int code = name_bin(job, 0, &out);
    if (code == CLI_OK)
        code = write_llmc(job, &out, 0, job->info.n_tokens);
    if (code == CLI_OK)
        code = output_place(&out);
    if (code != CLI_OK)
        output_abandon(&out);
    return code;
}

/* ---- llm.c in shards ----
 *
 * Readers take all files Q_*.bin for the set. So the shards keep their partial names until all are
 * complete, and the first one gets its name last: a set without it is not complete. Its lock is
 * held all the time. */

static uint64_t shard_size(const export_job *job, uint64_t shard)
{
    const uint64_t left = job->info.n_tokens - (shard - 1) * job->shard_tokens;
    return left < job->shard_tokens ? left : job->shard_tokens;
}

/* Whether a run that was killed may have named this shard; its bytes are compared later. */
static bool is_left_over(const export_job *job, uint64_t shard, const char *path)
{
    file_facts facts;
    return job->goes_on && shard > 1 && file_describe_name(path, &facts) == 0 &&
           facts.n_bytes == LLMC_HEADER_BYTES + shard_size(job, shard) * job->info.token_bytes;
}

static int name_shard(export_job *job, uint64_t shard, output_file *out)
{
    const bool force = job->force;
    job->force = force || (shard <= job->n_shards &&
                           is_left_over(job, shard, output_path(job, shard, ".bin").s));
    const int code = name_bin(job, shard, out);
    out->replace = job->force = force;
    return code;
}

static int write_shard(export_job *job, uint64_t shard, output_file *out)
{
    const int code = name_shard(job, shard, out);
    return code == CLI_OK
               ? write_llmc(job, out, (shard - 1) * job->shard_tokens, shard_size(job, shard))
               : code;
}

/* Gives the name to a shard that is complete. */
static int place_shard(export_job *job, uint64_t shard)
{
    output_file out;
    const int code = name_shard(job, shard, &out);
    if (code != CLI_OK)
        return code;
    return job->goes_on && file_is_copy(out.path, out.partial) ? output_remove(out.partial)
                                                               : output_give_name(&out);
}

/* Gives the names to all shards, and removes those of an older set up to `end`. */
static int place_shards(export_job *job, output_file *first, uint64_t end, uint64_t *n_placed)
{
    int code = job->force ? output_remove(first->path) : CLI_OK;
    if (code == CLI_OK && job->force)
        code = output_flush_folder(first->path);
    for (uint64_t i = 2; i <= job->n_shards && code == CLI_OK; i++) {
        code = place_shard(job, i);
        *n_placed += code == CLI_OK;
    }
    /* The last shard first, so that after a kill the shards that are left still follow directly. */
    for (uint64_t i = end - 1; i > job->n_shards && code == CLI_OK; i--)
        code = output_remove(output_path(job, i, ".bin").s);
    if (code == CLI_OK)
        code = output_flush_folder(first->path);
    return code == CLI_OK ? output_place(first) : code;
}

static int export_shards(export_job *job)
{
    output_file first = {.fd = -1}, out;
    const uint64_t n_tokens = job->info.n_tokens;
    const uint64_t n_shards = n_tokens / job->shard_tokens + (n_tokens % job->shard_tokens != 0);
    uint64_t end = 2, n_written = 1, n_placed = 1;
    job->n_shards = n_shards == 0 ? 1 : n_shards;
    if (n_shards > LLMC_MAX_SHARDS)
        return cli_usage("--shard-tokens %" PRIu64 " makes %" PRIu64 " files; the limit is %d",
                         job->shard_tokens, n_shards, LLMC_MAX_SHARDS);
    int code = name_shard(job, 1, &first);
    job->goes_on = code == CLI_OK && !job->force && file_name_exists(first.partial);
    /* Files Q_n.bin that directly follow the last shard would be taken for shards. */
    if (code == CLI_OK)
        code = name_shard(job, end, &out);
    while (code == CLI_OK && (end <= job->n_shards || file_name_exists(out.path)))
        code = name_shard(job, ++end, &out);
    if (code == CLI_OK)
        code = write_shard(job, 1, &first);
    for (; code == CLI_OK && n_written < job->n_shards; n_written++) {
        code = write_shard(job, n_written + 1, &out);
        if (code == CLI_OK)
            code = output_finish(&out);
        if (code != CLI_OK)
            output_close(&out);
    }
    if (code == CLI_OK)
        code = place_shards(job, &first, end, &n_placed);
    if (code == CLI_OK)
        return CLI_OK;
    for (uint64_t i = 2; i <= n_written; i++)
        output_try_remove(output_path(job, i, i <= n_placed ? ".bin" : ".bin.partial").s);
    if (job->goes_on) /* shards of the earlier run may have their names */
        output_keep(&first);
    output_abandon(&first);
    return code;
}

static int export_llmc(export_job *job)
{
    if (job->shard_tokens != 0)
        return export_shards(job);
    if (job->info.n_tokens > LLMC_MAX_TOKENS)
        return cli_usage("%s has %s tokens, but an llm.c file holds at most 2,147,483,647; "
                         "use --shard-tokens N",
                         job->info.index_path, cli_count(job->info.n_tokens).s);
    return export_file(job);
}

/* ---- Result ---- */

static void print_lines(const export_job *job)
{
    const tokmap_dataset_info *info = &job->info;
    size_t n_prefix = strlen(job->prefix);
    static const char *const ways[] = {[OUTPUT_HARD_LINK] = "a hard link to the dataset's file",
                                       [OUTPUT_REFLINK] = "a reflink of the dataset's file",
                                       [OUTPUT_COPY] = "copied"};
    if (!job->only_index) {
        cli_print_plain(stdout, job->prefix, n_prefix);
        if (job->n_shards)
            printf("_000001.bin to _%06" PRIu64, job->n_shards);
        printf(".bin: %s (u%u), %s\n", cli_count_of(info->n_tokens, "token").s,
               8 * info->token_bytes, ways[job->way]);
    }
    if (job->to == EXPORT_MEGATRON) {
        cli_print_plain(stdout, job->prefix, n_prefix);
        printf(".idx: Megatron index, %s\n", cli_count_of(info->n_documents, "document").s);
    }
}

static void print_json(const export_job *job)
{
    static const char *const ways[] = {
        [OUTPUT_HARD_LINK] = "hard link", [OUTPUT_REFLINK] = "reflink", [OUTPUT_COPY] = "copy"};
    json_out o = json_out_begin_result(stdout);
    json_out_string(&o, "format", cli_word_name(formats, job->to));
    json_out_begin(&o, "files", '[');
    for (uint64_t i = job->n_shards ? 1 : 0; i <= job->n_shards && !job->only_index; i++)
        json_out_string(&o, NULL, output_path(job, i, ".bin").s);
    if (job->to == EXPORT_MEGATRON)
        json_out_string(&o, NULL, output_path(job, 0, ".idx").s);
    json_out_end(&o, ']');
    json_out_string(&o, "way", job->only_index ? NULL : ways[job->way]);
    json_out_number(&o, "n_tokens", job->info.n_tokens);
    json_out_number(&o, "n_documents", job->info.n_documents);
    puts("}");
}

/* ---- Command line ---- */

static int (*const exporters[])(export_job *job) = {
    [EXPORT_MEGATRON] = export_megatron,
    [EXPORT_LLMC] = export_llmc,
    [EXPORT_RAW] = export_raw,
};

/* Opens the token file, whose size tokmap_dataset_open has checked. */
static int open_tokens(export_job *job)
{
    const char *path = cli_tokens_name(&job->info);
    job->tokens.path = path;
    job->tokens.progress = &job->progress;
    job->tokens.n_to_copy = job->info.n_tokens * job->info.token_bytes;
    if (cli_is_joined(&job->info))
        return CLI_OK;
    const int error = file_open(path, &job->tokens.fd, &job->tokens_facts);
    if (error)
        return cli_fail_errno(path, "open", error);
    if (job->tokens_facts.n_bytes != job->info.token_file_bytes)
        return cli_error(CLI_DATASET, "%s: its size changed after it was opened", path);
    return CLI_OK;
}

static int check_options(void *options, const input_list *names)
{
    export_job *job = options;
    (void)names;
    if (job->shard_tokens != 0 && job->to != EXPORT_LLMC)
        return cli_usage("--shard-tokens works only with --to llmc");
    return path_output_prefix(job->prefix, job->output, ".idx");
}

static int export_dataset(void *options, const char *name, const tokmap_dataset *ds)
{
    export_job *job = options;
    (void)name;
    job->ds = ds;
    job->info = cli_dataset_info(ds);
    cli_progress_begin(&job->progress, "export", job->quiet);
    int code = open_tokens(job);
    if (code == CLI_OK && job->info.n_spans && !job->drop_spans)
        code = cli_error(CLI_DATASET,
                         "%s: has tokens whose labels never count (spans: prompts, or redacted "
                         "documents), which this format cannot express; with --spans drop, they "
                         "are exported and trained on like all others",
                         job->info.index_path);
    if (code == CLI_OK)
        code = path_protect_dataset(job->ds);
    if (code == CLI_OK)
        code = exporters[job->to](job);
    if (code == CLI_OK) {
        beside_note_left_out(ds, job->quiet);
        cli_progress_end(&job->progress, job->tokens.n_copied);
    }
    if (code == CLI_OK && job->info.n_spans)
        cli_warn("%s: its %s of tokens whose labels never count are trained on in this format: "
                 "prompts, and the filler of redacted documents",
                 job->info.index_path, cli_count_of(job->info.n_spans, "span").s);
    if (code == CLI_OK && job->json)
        print_json(job);
    else if (code == CLI_OK && !job->quiet)
        print_lines(job);
    tokmap_i_file_close(job->tokens.fd);
    return code;
}

#define TARGET(field) offsetof(export_job, field)
static const cli_option option_table[] = {
    {"to", 0, CLI_WORD, TARGET(to), "FORMAT", .help = "the format to write", .words = formats,
     .is_required = true},
    {"output", 'o', CLI_TEXT, TARGET(output), "Q", .help = "prefix of the new files",
     .is_required = true},
    {"shard-tokens", 0, CLI_NUMBER, TARGET(shard_tokens), "N",
     .help = "for llmc: write Q_000001.bin, Q_000002.bin, ... with N tokens each [one file, which "
             "can hold 2147483647 tokens]",
     .lowest = 1, .highest = LLMC_MAX_TOKENS},
    {"spans", 0, CLI_WORD, TARGET(drop_spans), "WORD",
     .help = "how to write tokens whose labels never count [refuse]", .words = span_words},
    {"force", 'f', CLI_FLAG, TARGET(force),
     .help = "replace files that already exist, and remove old shards that follow the last new "
             "one"},
    OUTPUT_NO_LOCK_ROW,
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as a JSON object"},
    {"quiet", 'q', CLI_FLAG, TARGET(quiet), .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap export [OPTION]... --to FORMAT P -o Q",
    .about =
        "Writes the dataset P in the format of another program. Tokens keep their ids, their width "
        "and their order; none is added. The tokens are not checked: run 'tokmap verify' first.\n\n"
        "If the token file of P contains nothing but tokens, megatron and raw share it: as a hard "
        "link, or else a reflink, or else a copy. A hard link is the same file under a second "
        "name: do not write to it.",
    .options = option_table,
    .examples = "  tokmap export --to megatron data/train -o data/train\n"
                "  tokmap export --to llmc data/train -o shards/train --shard-tokens 100M\n",
    .operand = "dataset",
    .n_least = 1,
    .n_most = 1,
};

int export_command(int argc, char **argv)
{
    export_job job = {.way = OUTPUT_COPY, .tokens.fd = -1};
    const each_command command = {&manual, &job, dataset_names_take_one, .check = check_options,
                                  .work = export_dataset};
    return each_run(&command, argc, argv);
}
