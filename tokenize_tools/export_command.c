/* export_command.c - `tokmap export`: the same tokens in the files of another program. Tokens are
 * never converted: either their file is shared, or its bytes are copied. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli.h"
#include "export_megatron.h"
#include "output_file.h"

static const char help[] =
    "Usage: tokmap export --to FORMAT P -o Q [OPTION]...\n"
    "\n"
    "Writes the dataset P in the form of another program. Tokens keep their ids, their width and\n"
    "their order; none is converted, added or moved.\n"
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
    "  -f, --force           replace files that are already there\n"
    "  -q, --quiet           print no progress\n"
    "  -h, --help            print this and exit\n"
    "\n"
    "Examples:\n"
    "  tokmap export --to megatron data/train -o data/train\n"
    "  tokmap export --to llmc data/train -o shards/train --shard-tokens 100M\n";

enum {
    OPT_TO = 256,
    OPT_SHARD_TOKENS
};

static const struct option options[] = {{"to", required_argument, NULL, OPT_TO},
                                        {"output", required_argument, NULL, 'o'},
                                        {"shard-tokens", required_argument, NULL, OPT_SHARD_TOKENS},
                                        {"force", no_argument, NULL, 'f'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};

/* llm.c counts tokens in an int32. */
#define LLMC_MAX_TOKENS 2147483647u
#define LLMC_HEADER_BYTES 1024
#define LLMC_MAX_SHARDS 999999

typedef struct export_job {
    const char *to, *input, *output;
    char prefix[4096]; /* output without .bin or .idx */
    uint64_t shard_tokens;
    bool force, quiet, help;
    tokmap_dataset *ds;
    tokmap_dataset_info info;
    output_source tokens;
    struct stat tokens_st;
    cli_progress progress;
} export_job;

/* ---- Sharing the token file ---- */

/* Whether path leads to the token file of P, by this or by another name. */
static bool is_token_file(const export_job *job, const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_dev == job->tokens_st.st_dev &&
           st.st_ino == job->tokens_st.st_ino;
}

/* With --force: what must not be replaced all the same. */
static int check_replaceable(const export_job *job, const char *prefix)
{
    char path[4096 + 8];
    struct stat st;
    snprintf(path, sizeof path, "%s.bin", prefix);
    if (lstat(path, &st) != 0)
        return CLI_OK;
    if (is_token_file(job, path))
        return cli_error(CLI_EXISTS,
                         "%s: is the token file of the dataset itself: choose another -o", path);
    snprintf(path, sizeof path, "%s.tmi", prefix);
    if (lstat(path, &st) == 0) {
        return cli_error(
            CLI_EXISTS, "%s: the files there are a tokmap dataset: choose another -o, or remove it",
            path);
    }
    return CLI_OK;
}

static void print_output(const export_job *job, const output_file *out, const char *way)
{
    cli_print_plain(stdout, out->path, strlen(out->path));
    printf(": %s tokens (u%u), %s\n", cli_count(job->info.n_tokens).s, 8 * job->info.token_bytes,
           way);
}

/* Tokens from byte 0 of a new file, placed. On failure the caller abandons out. *way_text is what
 * to tell the user once all is done. */
static int export_tokens(export_job *job, output_file *out, const char **way_text)
{
    static const char *const ways[] = {"a hard link to the dataset's file",
                                       "a reflink of the dataset's file", "copied"};
    output_way way = OUTPUT_COPY;
    uint64_t offset = job->info.token_offset;
    int code;
    if (offset == 0) {
        code = output_share(out, &job->tokens, &way);
    } else {
        code = output_begin(out);
        if (code == CLI_OK)
            code = output_copy(out, &job->tokens, offset, job->info.token_file_bytes - offset);
        if (code == CLI_OK)
            code = output_place(out);
    }
    *way_text = ways[way];
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
    const char *way;
    code = export_tokens(job, &out, &way);
    if (code == CLI_OK)
        print_output(job, &out, way);
    else
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
    const char *way;
    bool has_bin = bin->path[0] == 0;
    int code = output_begin(idx);
    if (code == CLI_OK)
        code = write_megatron_index(idx, job->ds);
    if (code != CLI_OK || has_bin)
        return code == CLI_OK ? output_place(idx) : code;
    /* An old index must not stand beside new tokens, not even for a moment. */
    if (job->force && unlink(idx->path) != 0 && errno != ENOENT)
        return cli_error(cli_errno_exit_code(errno), "%s: cannot remove: %s", idx->path,
                         strerror(errno));
    code = export_tokens(job, bin, &way);
    if (code == CLI_OK)
        code = output_place(idx);
    if (code == CLI_OK)
        print_output(job, bin, way);
    return code;
}

static int export_megatron(export_job *job)
{
    output_file bin = {.fd = -1}, idx = {.fd = -1};
    char path[4096 + 8];
    snprintf(path, sizeof path, "%s.bin", job->prefix);
    bool has_bin = job->info.token_offset == 0 && is_token_file(job, path);
    int code = check_megatron(job);
    if (code == CLI_OK && !has_bin)
        code = check_replaceable(job, job->prefix);
    if (code == CLI_OK && !has_bin)
        code = output_name(&bin, job->prefix, ".bin", job->force);
    if (code == CLI_OK)
        code = output_name(&idx, job->prefix, ".idx", job->force);
    if (code == CLI_OK)
        code = write_megatron(job, &bin, &idx);
    if (code == CLI_OK) {
        cli_print_plain(stdout, idx.path, strlen(idx.path));
        printf(": Megatron index, %s documents\n", cli_count(job->info.n_documents).s);
    } else {
        output_abandon(&idx);
        output_abandon(&bin);
    }
    output_close(&idx);
    output_close(&bin);
    return code;
}

/* ---- llm.c ---- */

static void put_le32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

static int write_llmc(export_job *job, output_file *out, uint64_t first, uint64_t n_tokens)
{
    uint8_t header[LLMC_HEADER_BYTES] = {0};
    uint32_t token_bytes = job->info.token_bytes;
    put_le32(header, token_bytes == 2 ? 20240520 : 20240801);
    put_le32(header + 4, token_bytes == 2 ? 1 : 7);
    put_le32(header + 8, (uint32_t)n_tokens);
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

static int export_shards(export_job *job)
{
    uint64_t n_tokens = job->info.n_tokens, n_written = 0;
    uint64_t n_shards = n_tokens / job->shard_tokens + (n_tokens % job->shard_tokens != 0);
    n_shards = n_shards == 0 ? 1 : n_shards;
    if (n_shards > LLMC_MAX_SHARDS)
        return cli_usage("--shard-tokens %llu makes %llu files; at most %d",
                         (unsigned long long)job->shard_tokens, (unsigned long long)n_shards,
                         LLMC_MAX_SHARDS);
    output_file out;
    for (uint64_t i = 0; i < n_shards; i++) {
        int code = name_shard(job, i + 1, &out);
        if (code != CLI_OK)
            return code;
    }
    int code = write_shards(job, n_shards, &n_written);
    if (code != CLI_OK) {
        for (uint64_t i = 0; i < n_written; i++) {
            char path[4096 + 32];
            snprintf(path, sizeof path, "%s_%06llu.bin", job->prefix, (unsigned long long)i + 1);
            unlink(path);
        }
        return code;
    }
    cli_print_plain(stdout, job->prefix, strlen(job->prefix));
    printf("_000001.bin to _%06llu.bin: %s tokens (u%u), copied\n", (unsigned long long)n_shards,
           cli_count(n_tokens).s, 8 * job->info.token_bytes);
    return CLI_OK;
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
    if (code == CLI_OK)
        print_output(job, &out, "copied");
    else
        output_abandon(&out);
    output_close(&out);
    return code;
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
        return cli_usage("which dataset P?");
    if (optind + 1 < argc)
        return cli_usage("one dataset at a time: what is '%s'?", argv[optind + 1]);
    if (!*job->to)
        return cli_usage("--to is missing: megatron, llmc or raw");
    if (!*job->output)
        return cli_usage("-o is missing: the prefix of the new files");
    if (job->shard_tokens != 0 && strcmp(job->to, "llmc") != 0)
        return cli_usage("--shard-tokens is for --to llmc");
    job->input = argv[optind];
    return CLI_OK;
}

/* Q.bin and Q.idx mean Q. */
static int set_prefix(export_job *job)
{
    size_t n = strlen(job->output);
    if (n > 4 &&
        (strcmp(job->output + n - 4, ".bin") == 0 || strcmp(job->output + n - 4, ".idx") == 0))
        n -= 4;
    if (n == 0 || job->output[n - 1] == '/')
        return cli_usage("-o %s: names no file", job->output);
    if (n >= sizeof job->prefix - 32)
        return cli_usage("-o: the path is too long");
    memcpy(job->prefix, job->output, n);
    job->prefix[n] = 0;
    return CLI_OK;
}

/* The dataset was checked against the size of its token file at open: hold on to that very file. */
static int open_tokens(export_job *job)
{
    const char *path = job->info.token_path;
    job->tokens.fd = open(path, O_RDONLY | O_CLOEXEC);
    job->tokens.path = path;
    job->tokens.progress = &job->progress;
    if (job->tokens.fd < 0 || fstat(job->tokens.fd, &job->tokens_st) != 0)
        return cli_error(cli_errno_exit_code(errno), "%s: cannot open: %s", path, strerror(errno));
    if ((uint64_t)job->tokens_st.st_size != job->info.token_file_bytes)
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
        return cli_usage("--to %s: there are megatron, llmc and raw", job->to);
    int code = set_prefix(job);
    if (code != CLI_OK)
        return code;
    if (tokmap_dataset_open(&job->ds, job->input, &err) != TOKMAP_OK)
        return cli_fail_open(job->input, &err);
    job->info = (tokmap_dataset_info){.struct_size = sizeof job->info};
    tokmap_dataset_get_info(job->ds, &job->info);
    cli_progress_begin(&job->progress, "export", job->quiet);
    code = open_tokens(job);
    if (code == CLI_OK)
        code = run(job);
    if (job->tokens.fd >= 0)
        close(job->tokens.fd);
    tokmap_dataset_close(job->ds);
    return code;
}

int export_command(int argc, char **argv)
{
    export_job job = {.to = "", .output = "", .tokens.fd = -1};
    int code = parse_command_line(argc, argv, &job);
    if (code != CLI_OK)
        return code;
    if (job.help)
        return cli_help(help);
    code = run_export(&job);
    int finish = cli_finish();
    return code != CLI_OK ? code : finish;
}
