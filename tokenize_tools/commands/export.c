/* export.c - `tokmap export`: the same tokens in the files of another program. Tokens are
 * never converted: either their file is shared, or its bytes are copied. */
#include <getopt.h>
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "commands/commands.h"
#include "commands/open_failure.h"
#include "foreign/export_megatron.h"
#include "text/json_text.h"
#include "text/little_endian.h"
#include "system/output_file.h"
#include "cli/paths.h"
#include "system/protected.h"

static const char help[] =
    "Usage: tokmap export --to FORMAT P -o Q [OPTION]...\n"
    "\n"
    "Writes the dataset P in the form of another program. Tokens keep their ids, their width and\n"
    "their order; none is converted, added or moved. It does not check the tokens: run tokmap "
    "verify\n"
    "first.\n"
    "\n"
    "Formats:\n"
    "  megatron  Q.bin and Q.idx, one sequence for each document. Where Q is P, only P.idx\n"
    "  llmc      Q.bin with llm.c's header. llm.c expects the end-of-text token before each\n"
    "            document\n"
    "  raw       Q.bin with the tokens and nothing else\n"
    "\n"
    "Where the token file of P holds nothing but tokens, megatron and raw share it: by a hard\n"
    "link, else by a reflink, else by a copy. A hard link is the same file under a second name: "
    "do\n"
    "not write into it.\n"
    "\n"
    "Options:\n"
    "      --to FORMAT       one of the above\n"
    "  -o, --output Q        prefix of the new files\n"
    "      --shard-tokens N  llmc: write Q_000001.bin, Q_000002.bin, ... of N tokens each [one "
    "file,\n"
    "                        which can hold 2147483647 tokens]\n"
    "  -f, --force           replace files that already exist, and remove the shards that\n"
    "                        follow on the last one\n"
    "      --json            print the result as a JSON object\n"
    "  -q, --quiet           no progress and no result line\n"
    "  -h, --help            print this and exit\n"
    "\n"
    "Examples:\n"
    "  tokmap export --to megatron data/train -o data/train\n"
    "  tokmap export --to llmc data/train -o shards/train --shard-tokens 100M\n";

enum {
    OPT_TO = 256,
    OPT_SHARD_TOKENS,
    OPT_JSON
};

static const struct option options[] = {{"to", required_argument, NULL, OPT_TO},
                                        {"output", required_argument, NULL, 'o'},
                                        {"shard-tokens", required_argument, NULL, OPT_SHARD_TOKENS},
                                        {"force", no_argument, NULL, 'f'},
                                        {"json", no_argument, NULL, OPT_JSON},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* llm.c counts tokens in an int32. */
#define LLMC_MAX_TOKENS 2147483647u
#define LLMC_HEADER_BYTES 1024
#define LLMC_MAX_SHARDS 999999

typedef struct export_job {
    const char *to, *input, *output;
    char prefix[PATH_PREFIX_BYTES]; /* of the output */
    uint64_t shard_tokens;
    bool force, json, quiet, help;
    tokmap_dataset *ds;
    tokmap_dataset_info info;
    output_source tokens;
    file_facts tokens_facts;
    cli_progress progress;
    /* What was written, to tell the user once all is done. */
    bool has_bin, has_idx;
    output_way way;    /* how the tokens came into the .bin */
    uint64_t n_shards; /* 0: not in shards */
} export_job;

/* ---- Sharing the token file ---- */

/* With --force: what must not be replaced all the same. */
static int check_replaceable(const export_job *job, const char *prefix)
{
    char path[4096 + 8];
    snprintf(path, sizeof path, "%s.bin", prefix);
    if (!file_name_exists(path))
        return CLI_OK;
    if (file_is(path, job->tokens_facts.id))
        return cli_error(CLI_EXISTS,
                         "%s: is the token file of the dataset itself: choose another -o", path);
    snprintf(path, sizeof path, "%s.tmi", prefix);
    if (file_name_exists(path)) {
        return cli_error(
            CLI_EXISTS, "%s: the files there are a tokmap dataset: choose another -o, or remove it",
            path);
    }
    return CLI_OK;
}

static int remove_file(const char *path)
{
    const int error = output_try_remove(path);
    return error ? cli_error(cli_errno_exit_code(error), "%s: cannot remove: %s", path,
                             strerror(error))
                 : CLI_OK;
}

/* Tokens from byte 0 of a new file, placed. On failure the caller abandons out. */
static int export_tokens(export_job *job, output_file *out)
{
    uint64_t offset = job->info.token_offset;
    int code;
    if (offset == 0) {
        code = output_share(out, &job->tokens, &job->way);
    } else {
        code = output_begin(out);
        if (code == CLI_OK)
            code = output_copy(out, &job->tokens, offset, job->info.token_file_bytes - offset);
        if (code == CLI_OK)
            code = output_place(out);
    }
    job->has_bin = true;
    return code;
}

/* ---- raw ---- */

static int export_raw(export_job *job)
{
    output_file out;
    int code = check_replaceable(job, job->prefix);
    if (code == CLI_OK)
        code = output_name(&out, job->prefix, ".bin", job->force);
    if (code != CLI_OK)
        return code;
    code = export_tokens(job, &out);
    if (code != CLI_OK)
        output_abandon(&out);
    output_close(&out);
    return code;
}

/* ---- Megatron ---- */

static int check_megatron(const export_job *job)
{
    const tokmap_dataset_info *info = &job->info;
    if (info->n_documents == 0 && info->n_tokens > 0) {
        return cli_error(CLI_DATASET,
                         "%s: its document borders are not known, and Megatron's index is made of "
                         "them",
                         info->index_path);
    }
    if (info->token_bytes == 4 && info->largest_id > INT32_MAX) {
        return cli_error(CLI_DATASET, "%s: its largest id is %u; Megatron reads ids below 2^31",
                         info->index_path, info->largest_id);
    }
    return CLI_OK;
}

/* Both outputs have names; bin has none when it would be the dataset's own file. */
static int write_megatron(export_job *job, output_file *bin, output_file *idx)
{
    bool has_bin = bin->path[0] == 0;
    int code = output_begin(idx);
    if (code == CLI_OK)
        code = write_megatron_index(idx, job->ds);
    if (code != CLI_OK || has_bin)
        return code == CLI_OK ? output_place(idx) : code;
    /* An old index must not stand beside new tokens, not even for a moment. */
    code = job->force ? remove_file(idx->path) : CLI_OK;
    if (code == CLI_OK)
        code = export_tokens(job, bin);
    return code == CLI_OK ? output_place(idx) : code;
}

static int export_megatron(export_job *job)
{
    output_file bin = {.fd = -1}, idx = {.fd = -1};
    char path[4096 + 8];
    snprintf(path, sizeof path, "%s.bin", job->prefix);
    bool has_bin = job->info.token_offset == 0 && file_is(path, job->tokens_facts.id);
    int code = check_megatron(job);
    if (code == CLI_OK && !has_bin)
        code = check_replaceable(job, job->prefix);
    if (code == CLI_OK && !has_bin)
        code = output_name(&bin, job->prefix, ".bin", job->force);
    if (code == CLI_OK)
        code = output_name(&idx, job->prefix, ".idx", job->force);
    if (code == CLI_OK)
        code = write_megatron(job, &bin, &idx);
    if (code != CLI_OK) {
        output_abandon(&idx);
        output_abandon(&bin);
    }
    job->has_idx = true;
    output_close(&idx);
    output_close(&bin);
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
    if (code == CLI_OK)
        code = output_copy(out, &job->tokens, job->info.token_offset + first * token_bytes,
                           n_tokens * token_bytes);
    return code == CLI_OK ? output_place(out) : code;
}

static int name_shard(const export_job *job, uint64_t shard, output_file *out)
{
    char prefix[4096];
    int n = snprintf(prefix, sizeof prefix, "%s_%06llu", job->prefix, (unsigned long long)shard);
    if (n < 0 || (size_t)n >= sizeof prefix)
        return cli_error(CLI_USAGE, "%.200s...: the path is too long", job->prefix);
    int code = check_replaceable(job, prefix);
    return code == CLI_OK ? output_name(out, prefix, ".bin", job->force) : code;
}

static int write_shards(export_job *job, uint64_t n_shards, uint64_t *n_written)
{
    for (uint64_t i = 0; i < n_shards; i++) {
        output_file out = {.fd = -1};
        uint64_t first = i * job->shard_tokens, left = job->info.n_tokens - first;
        uint64_t n_tokens = left < job->shard_tokens ? left : job->shard_tokens;
        int code = name_shard(job, i + 1, &out);
        if (code == CLI_OK)
            code = write_llmc(job, &out, first, n_tokens);
        if (code != CLI_OK) {
            output_abandon(&out);
            return code;
        }
        output_close(&out);
        (*n_written)++;
    }
    return CLI_OK;
}

/* Files Q_n.bin that follow directly on the last shard would be taken for shards. */
static int count_successors(const export_job *job, uint64_t n_shards, uint64_t *n_successors)
{
    output_file out;
    for (*n_successors = 0;; (*n_successors)++) {
        int code = name_shard(job, n_shards + *n_successors + 1, &out);
        if (code != CLI_OK || !file_name_exists(out.path))
            return code;
    }
}

/* The last one first: what a killed export leaves still follows directly. */
static int remove_successors(const export_job *job, uint64_t n_shards, uint64_t n_successors)
{
    output_file out;
    for (uint64_t i = n_successors; i > 0; i--) {
        int code = name_shard(job, n_shards + i, &out);
        if (code == CLI_OK)
            code = remove_file(out.path);
        if (code != CLI_OK)
            return code;
    }
    return CLI_OK;
}

static int check_shard_names(const export_job *job, uint64_t n_shards, uint64_t *n_successors)
{
    output_file out;
    for (uint64_t i = 0; i < n_shards; i++) {
        int code = name_shard(job, i + 1, &out);
        if (code != CLI_OK)
            return code;
    }
    return count_successors(job, n_shards, n_successors);
}

static void remove_shards(const export_job *job, uint64_t n_shards)
{
    for (uint64_t i = 0; i < n_shards; i++) {
        char path[4096 + 32];
        snprintf(path, sizeof path, "%s_%06llu.bin", job->prefix, (unsigned long long)i + 1);
        output_try_remove(path);
    }
}

static int export_shards(export_job *job)
{
    uint64_t n_tokens = job->info.n_tokens, n_written = 0, n_successors;
    uint64_t n_shards = n_tokens / job->shard_tokens + (n_tokens % job->shard_tokens != 0);
    n_shards = n_shards == 0 ? 1 : n_shards;
    if (n_shards > LLMC_MAX_SHARDS)
        return cli_usage("--shard-tokens %llu makes %llu files; at most %d",
                         (unsigned long long)job->shard_tokens, (unsigned long long)n_shards,
                         LLMC_MAX_SHARDS);
    int code = check_shard_names(job, n_shards, &n_successors);
    if (code != CLI_OK)
        return code;
    code = write_shards(job, n_shards, &n_written);
    if (code != CLI_OK) {
        remove_shards(job, n_written);
        return code;
    }
    job->n_shards = n_shards;
    job->has_bin = true;
    return remove_successors(job, n_shards, n_successors);
}

static int export_llmc(export_job *job)
{
    if (job->shard_tokens != 0)
        return export_shards(job);
    if (job->info.n_tokens > LLMC_MAX_TOKENS)
        return cli_usage("%s has %s tokens and an llm.c file holds at most 2,147,483,647: give "
                         "--shard-tokens N",
                         job->info.index_path, cli_count(job->info.n_tokens).s);
    output_file out;
    int code = check_replaceable(job, job->prefix);
    if (code == CLI_OK)
        code = output_name(&out, job->prefix, ".bin", job->force);
    if (code != CLI_OK)
        return code;
    code = write_llmc(job, &out, 0, job->info.n_tokens);
    if (code != CLI_OK)
        output_abandon(&out);
    job->has_bin = true;
    output_close(&out);
    return code;
}

/* ---- Result ---- */

static void print_lines(const export_job *job)
{
    const tokmap_dataset_info *info = &job->info;
    size_t n_prefix = strlen(job->prefix);
    static const char *const ways[] = {[OUTPUT_HARD_LINK] = "a hard link to the dataset's file",
                                       [OUTPUT_REFLINK] = "a reflink of the dataset's file",
                                       [OUTPUT_COPY] = "copied"};
    if (job->has_bin) {
        cli_print_plain(stdout, job->prefix, n_prefix);
        if (job->n_shards)
            printf("_000001.bin to _%06llu", (unsigned long long)job->n_shards);
        printf(".bin: %s (u%u), %s\n", cli_count_of(info->n_tokens, "token").s,
               8 * info->token_bytes, ways[job->way]);
    }
    if (job->has_idx) {
        cli_print_plain(stdout, job->prefix, n_prefix);
        printf(".idx: Megatron index, %s\n", cli_count_of(info->n_documents, "document").s);
    }
}

static void print_json_file(const export_job *job, const char *comma, const char *suffix)
{
    char path[4096];
    int n = snprintf(path, sizeof path, "%s%s", job->prefix, suffix);
    fputs(comma, stdout);
    json_text_print_string(stdout, path, (size_t)n);
}

static void print_json(const export_job *job)
{
    static const char *const ways[] = {[OUTPUT_HARD_LINK] = "\"hard link\"",
                                       [OUTPUT_REFLINK] = "\"reflink\"",
                                       [OUTPUT_COPY] = "\"copy\""};
    const char *comma = "";
    printf("{\"schema_version\": 1, \"format\": \"%s\", \"files\": [", job->to);
    for (uint64_t i = 1; i <= job->n_shards; i++, comma = ", ") {
        char suffix[32];
        snprintf(suffix, sizeof suffix, "_%06llu.bin", (unsigned long long)i);
        print_json_file(job, comma, suffix);
    }
    if (job->has_bin && !job->n_shards) {
        print_json_file(job, comma, ".bin");
        comma = ", ";
    }
    if (job->has_idx)
        print_json_file(job, comma, ".idx");
    printf("], \"way\": %s, \"n_tokens\": %llu, \"n_documents\": %llu}\n",
           job->has_bin ? ways[job->way] : "null", (unsigned long long)job->info.n_tokens,
           (unsigned long long)job->info.n_documents);
}

/* ---- Command line ---- */

static const struct {
    const char *name;
    int (*run)(export_job *job);
} formats[] = {{"megatron", export_megatron}, {"llmc", export_llmc}, {"raw", export_raw}};

static int parse_option(int option, char **argv, export_job *job)
{
    switch (option) {
    case OPT_TO:
        job->to = optarg;
        return CLI_OK;
    case 'o':
        job->output = optarg;
        return CLI_OK;
    case OPT_SHARD_TOKENS:
        if (!cli_parse_u64(optarg, &job->shard_tokens) || job->shard_tokens < 1 ||
            job->shard_tokens > LLMC_MAX_TOKENS)
            return cli_usage("--shard-tokens %s: not a number from 1 to %u", optarg,
                             LLMC_MAX_TOKENS);
        return CLI_OK;
    case 'f':
        job->force = true;
        return CLI_OK;
    case OPT_JSON:
        job->json = true;
        return CLI_OK;
    case 'q':
        job->quiet = true;
        return CLI_OK;
    case 'h':
        job->help = true;
        return CLI_OK;
    default:
        return cli_bad_option(option, argv);
    }
}

static int parse_command_line(int argc, char **argv, export_job *job)
{
    int option;
    opterr = 0;
    while ((option = getopt_long(argc, argv, ":o:fqh", options, NULL)) != -1) {
        int code = parse_option(option, argv, job);
        if (code != CLI_OK)
            return code;
    }
    if (job->help)
        return CLI_OK;
    if (optind == argc)
        return cli_usage("no dataset given");
    if (optind + 1 < argc)
        return cli_usage("only one dataset can be exported, and '%s' is the second",
                         argv[optind + 1]);
    if (!*job->to)
        return cli_usage("--to is missing: megatron, llmc or raw");
    if (!*job->output)
        return cli_usage("-o is missing: the prefix of the new files");
    if (job->shard_tokens != 0 && strcmp(job->to, "llmc") != 0)
        return cli_usage("--shard-tokens is for --to llmc");
    job->input = argv[optind];
    int code = path_check_all(argv + optind, 1);
    return code == CLI_OK ? path_output_prefix(job->prefix, job->output, ".idx") : code;
}

/* The dataset was checked against the size of its token file at open: hold on to that very file. */
static int open_tokens(export_job *job)
{
    const char *path = job->info.token_path;
    const int error = file_open(path, &job->tokens.fd, &job->tokens_facts);
    job->tokens.path = path;
    job->tokens.progress = &job->progress;
    job->tokens.n_to_copy = job->info.n_tokens * job->info.token_bytes;
    if (error)
        return cli_error(cli_errno_exit_code(error), "%s: cannot open: %s", path, strerror(error));
    if (job->tokens_facts.n_bytes != job->info.token_file_bytes)
        return cli_error(CLI_DATASET, "%s: changed its size just now", path);
    return CLI_OK;
}

static int run_export(export_job *job)
{
    tokmap_error err;
    int (*run)(export_job *) = NULL;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (strcmp(job->to, formats[i].name) == 0)
            run = formats[i].run;
    if (!run)
        return cli_usage("--to %s: must be megatron, llmc or raw", job->to);
    if (tokmap_dataset_open(&job->ds, job->input, &err) != TOKMAP_OK)
        return open_failure(job->input, &err);
    job->info = (tokmap_dataset_info){.struct_size = sizeof job->info};
    tokmap_dataset_get_info(job->ds, &job->info);
    cli_progress_begin(&job->progress, "export", job->quiet);
    int code = open_tokens(job);
    if (code == CLI_OK)
        code = path_protect_name(job->info.index_path, "an input");
    if (code == CLI_OK)
        code = path_protect(&job->tokens_facts, "an input");
    if (code == CLI_OK)
        code = run(job);
    if (code == CLI_OK)
        cli_progress_end(&job->progress, job->tokens.n_copied);
    if (code == CLI_OK && job->json)
        print_json(job);
    else if (code == CLI_OK && !job->quiet)
        print_lines(job);
    file_close(job->tokens.fd);
    tokmap_dataset_close(job->ds);
    return code;
}

int export_command(int argc, char **argv)
{
    export_job job = {.way = OUTPUT_COPY, .to = "", .output = "", .tokens.fd = -1};
    int code = parse_command_line(argc, argv, &job);
    if (code != CLI_OK)
        return code;
    if (job.help)
        return cli_help(help);
    code = run_export(&job);
    int finish = cli_finish();
    return code != CLI_OK ? code : finish;
}
