/* SPDX-License-Identifier: Apache-2.0 */
/* file_system.c - tokbench file-system: what a folder gives to a loader and to pack, as a table
 * that can be sent to the project. It names no machine, user or path. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/options.h"
#include "cli/paths.h"
#include "core/work_folder.h"
#include "fit/fit.h"
#include "fit/fit_command.h"

enum {
    N_WAYS = 6,    /* tokmap_io */
    N_CALLS = 101, /* of each kind */
    FLUSHED_BYTES = 64 << 10
};

typedef struct options {
    const char *dir;
    uint64_t size;
    bool json;
} options;

/* Ways of reading, and two processes with `auto`. */
typedef struct readings {
    fit_phase phases[N_WAYS + 1][2][2]; /* by way, shuffle (full, block), and cold or hot */
} readings;

typedef struct kind {
    char name[64], mount[336]; /* its options */
} kind;

/* ---- Which file system ---- */

/* Whether the value of an option may be shown: a number, or one of an option that is known. */
static bool is_shown(const char *option, size_t n_name, size_t n_value)
{
    static const char *const known[] = {"vers",       "proto",       "sec",      "cache",
                                        "local_lock", "lookupcache", "nconnect", "fsc",
                                        "iocharset",  "errors",      "data",     "compress",
                                        "discard",    "commit",      "journal",  "space_cache"};
    const char *value = option + n_name + 1;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strlen(known[i]) == n_name && strncmp(known[i], option, n_name) == 0)
            return true;
    return strspn(value, "0123456789kKmMgG%") >= n_value;
}

/* Copies options without their values that may name a host, a user or a path. */
static void hide_places(char *to, size_t n_bytes, const char *from)
{
    size_t n = 0;
    while (*from) {
        const size_t n_name = strcspn(from, "=,;"), has_value = from[n_name] == '=';
        const size_t n_value = has_value ? strcspn(from + n_name, ",;") : 0;
        const bool hides = n_value > 0 && !is_shown(from, n_name, n_value - 1);
        const size_t n_all = n_name + n_value, end = from[n_all] ? 1 : 0;
        n += (size_t)snprintf(to + MIN(n, n_bytes - 1), n_bytes - MIN(n, n_bytes - 1), "%.*s%s%.*s",
                              (int)(hides ? n_name + 1 : n_all), from, hides ? "..." : "", (int)end,
                              from + n_all);
        from += n_all + end;
    }
}

/* Finds the mount of a device in a line of mountinfo, such as
 * "36 35 98:0 / /mnt rw,noatime - ext3 /dev/root rw,errors=continue". */
static bool take_mount(const char *line, const char *device, kind *k)
{
    char number[32], own[160], type[64], more[160], both[336];
    const char *after = strstr(line, " - ");
    if (!after || sscanf(line, "%*s %*s %31s %*s %*s %159s", number, own) != 2 ||
        strcmp(number, device) != 0 || sscanf(after, " - %63s %*s %159s", type, more) != 2)
        return false;
    snprintf(k->name, sizeof k->name, "%s", type);
    snprintf(both, sizeof both, "%s; %s", own, more);
    hide_places(k->mount, sizeof k->mount, both);
    return true;
}

static kind find_kind(const char *dir)
{
    kind k = {"unknown", ""};
    struct stat facts;
    char device[32], line[4096];
    FILE *mounts = stat(dir, &facts) == 0 ? fopen("/proc/self/mountinfo", "r") : NULL;
    if (!mounts)
        return k;
    snprintf(device, sizeof device, "%u:%u", (unsigned)(facts.st_dev >> 8 & 0xfff),
             (unsigned)(facts.st_dev & 0xff) | (unsigned)(facts.st_dev >> 12 & 0xfff00));
    while (fgets(line, sizeof line, mounts) && !take_mount(line, device, &k))
        ;
    fclose(mounts);
    return k;
}

/* ---- Reading ---- */

static void measure_way(const fit_data *data, readings *all, size_t way)
{
    static const uint32_t shuffles[] = {TOKMAP_SHUFFLE_FULL, TOKMAP_SHUFFLE_BLOCK};
    const fit_options training = {.n_gpus = way == N_WAYS ? 2 : 1,
                                  .n_ranks = way == N_WAYS ? 2 : 1,
                                  .length = 4096,
                                  .batch_rows = 8,
                                  .has_inputs = true,
                                  .has_labels = true};
    for (int s = 0; s < 2; s++) {
        for (int hot = 0; hot < 2; hot++) {
            fit_phase *p = &all->phases[way][s][hot];
            *p = (fit_phase){.seconds = hot ? 1 : 4,
                             .shuffle = shuffles[s],
                             .is_cold = !hot,
                             .asked_io = way == N_WAYS ? TOKMAP_IO_AUTO : (tokmap_io)way};
            if (hot && !fit_data_warm(data, 60))
                continue;
            if (hot || (!data->in_memory && fit_data_drop(data)))
                fit_run_phase(&training, data, p);
        }
    }
}

/* ---- Calls that pack and resume make ---- */

typedef struct call {
    const char *name;
    double us[N_CALLS];
    int error; /* errno, of the first that failed */
} call;

static call calls[] = {
    {.name = "open"}, {.name = "stat"}, {.name = "rename"}, {.name = "lock"}, {.name = "fsync"}};
enum {
    N_KINDS = sizeof calls / sizeof *calls
};

static void note(call *c, int i, uint64_t start, int result)
{
    if (result != 0 && c->error == 0)
        c->error = errno;
    c->us[i] = bench_ns_since(start) / 1e3;
}

/* Makes a round of calls on a file of the folder. */
static void make_round(const char *path, const char *other, int i)
{
    static const uint8_t bytes[FLUSHED_BYTES];
    struct stat facts;
    uint64_t start = tokmap_i_now_ns();
    const int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    note(&calls[0], i, start, fd < 0);
    if (fd < 0) {
        for (int k = 1; k < N_KINDS; k++)
            note(&calls[k], i, start, -1);
        return;
    }
    start = tokmap_i_now_ns();
    note(&calls[1], i, start, stat(path, &facts));
    start = tokmap_i_now_ns();
    note(&calls[2], i, start, rename(path, other) || rename(other, path));
    start = tokmap_i_now_ns();
    note(&calls[3], i, start, flock(fd, LOCK_EX | LOCK_NB) || flock(fd, LOCK_UN));
    errno = ENOSPC; /* if not all is written */
    const bool written = pwrite(fd, bytes, sizeof bytes, i * FLUSHED_BYTES) == sizeof bytes;
    start = tokmap_i_now_ns();
    note(&calls[4], i, start, written ? fsync(fd) : -1);
    close(fd);
}

static void measure_calls(const char *folder)
{
    const path_text path = path_of(folder, "/file"), other = path_of(folder, "/other");
    for (int i = 0; i < N_CALLS; i++)
        make_round(path.s, other.s, i);
    for (int k = 0; k < N_KINDS; k++)
        bench_sort(calls[k].us, N_CALLS);
    unlink(path.s);
}

/* ---- What is printed ---- */

static const char *const names[] = {
    "auto", "map", "direct", "populate", "read", "copy", "auto, two processes"};

/* Returns "-" where nothing was measured, or another way than the one that was asked for. */
static cli_text rate_of(const fit_phase *p)
{
    const cli_text none = {"-"};
    const bool other = p->asked_io != TOKMAP_IO_AUTO && p->io != p->asked_io;
    return p->was_run && !other ? bench_short(p->tokens_per_second, "") : none;
}

static void print_calls(FILE *out)
{
    for (int k = 0; k < N_KINDS; k++) {
        const call *c = &calls[k];
        if (c->error)
            fprintf(out, "  %-22s%s\n", c->name, strerror(c->error));
        else
            fprintf(out, "  %-22s%s (p99 %s)\n", c->name, fit_time(c->us[N_CALLS / 2]).s,
                    fit_time(bench_percentile(c->us, N_CALLS, 990)).s);
    }
}

static void print(const options *o, const kind *k, const readings *r, FILE *out)
{
    struct utsname system;
    uname(&system);
    fprintf(out, "%s (%s), Linux %s, %s, %ld processors, tokmap %s\n", k->name, k->mount,
            system.release, system.machine, sysconf(_SC_NPROCESSORS_ONLN), tokmap_version());
    fprintf(out, "tokens/s of %s, rows of 4096, batches of 8:\n\n", cli_bytes(o->size).s);
    fprintf(out, "  %-22s%14s%14s%14s%14s\n", "", "cold, full", "cold, block", "hot, full",
            "hot, block");
    for (size_t way = 0; way <= N_WAYS; way++) {
        const fit_phase(*p)[2] = r->phases[way];
        fprintf(out, "  %-22s%14s%14s%14s%14s\n", names[way], rate_of(&p[0][0]).s,
                rate_of(&p[1][0]).s, rate_of(&p[0][1]).s, rate_of(&p[1][1]).s);
    }
    const fit_phase *automatic = &r->phases[0][0][r->phases[0][0][0].was_run ? 0 : 1];
    fprintf(out, "\n  auto: %s\n\nMedians of %d calls:\n\n", automatic->io_reason, N_CALLS);
    print_calls(out);
}

static void print_json(const options *o, const kind *k, const readings *r, FILE *out)
{
    static const char *const columns[2][2] = {{"cold_full", "hot_full"},
                                              {"cold_block", "hot_block"}};
    char key[64];
    json_out j = json_out_begin_result(out);
    json_out_string(&j, "kind", "file-system");
    json_out_string(&j, "tokmap", tokmap_version());
    json_out_string(&j, "file_system", k->name);
    json_out_string(&j, "mount_options", k->mount);
    bench_json_machine(&j);
    json_out_number(&j, "n_bytes", o->size);
    json_out_begin(&j, "tokens_per_second", '{');
    for (size_t i = 0; i < (N_WAYS + 1) * 4; i++) {
        const fit_phase *p = &r->phases[i / 4][i / 2 % 2][i % 2];
        snprintf(key, sizeof key, "%s_%s", i / 4 == N_WAYS ? "two_processes" : names[i / 4],
                 columns[i / 2 % 2][i % 2]);
        if (rate_of(p).s[0] != '-')
            json_out_print(&j, key, "%.6g", p->tokens_per_second);
    }
    json_out_end(&j, '}');
    json_out_begin(&j, "calls_us", '{');
    for (int c = 0; c < N_KINDS; c++)
        if (!calls[c].error)
            json_out_print(&j, calls[c].name, "%.6g", calls[c].us[N_CALLS / 2]);
    json_out_end(&j, '}');
    fputs("}\n", out);
}

static int run_in_folder(void *context, const char *folder)
{
    static readings all;
    const options *o = context;
    fit_data data = {0};
    const kind k = find_kind(folder);
    fit_data_make(&data, folder, o->size);
    const int code = fit_data_find(&data);
    if (code != CLI_OK)
        return code;
    for (size_t way = 0; way <= N_WAYS; way++)
        measure_way(&data, &all, way);
    measure_calls(folder);
    if (o->json)
        print_json(o, &k, &all, stdout);
    else
        print(o, &k, &all, stdout);
    fit_free(**all.phases, (N_WAYS + 1) * 4);
    fit_data_free(&data);
    return cli_finish();
}

/* ---- The command line ---- */

static const cli_option option_table[] = {
    {"size", 0, CLI_NUMBER, offsetof(options, size), "SIZE",
     .help = "of the dataset that is made in DIR and removed at the end [512MiB]",
     .lowest = 4 << 20, .highest = (uint64_t)1 << 40},
    {"json", 0, CLI_FLAG, offsetof(options, json), .help = "print the result as a JSON object"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokbench file-system DIR [OPTION]...",
    .about = "Says what the file system of a folder gives to a loader, in every way of reading, "
             "with data that are in memory and data that are not, with both ways of shuffling; "
             "and how long the calls take that pack and resume make. It takes two or three "
             "minutes. The table names no host, user or path, so that you can send it to the "
             "project: docs/SHARED.md says where.",
    .options = option_table,
    .notes = "Exit status: 0 done; 1 something failed; 2 the command line is wrong.",
    .examples = "  tokbench file-system .\n  tokbench file-system /mnt/data --json > nfs.json\n",
    .operand = "DIR",
    .n_least = 1,
    .n_most = 1,
};

int file_system_command(int argc, char **argv)
{
    options o = {.size = 512 << 20};
    const int code = cli_parse_options(&manual, argc, argv, &o);
    if (code != CLI_GO_ON)
        return code;
    o.dir = argv[optind];
    bench_ignore_io();
    return bench_run_in_folder(o.dir, run_in_folder, &o);
}
