/* SPDX-License-Identifier: Apache-2.0 */
/* fit.c - tokbench fit: will this training wait for its data, here? */
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "base/real.h"
#include "cli/cli.h"
#include "cli/options.h"
#include "core/bench_file.h"
#include "core/work_folder.h"
#include "datasets/datasets.h"
#include "fit/fit.h"
#include "fit/fit_command.h"
#include "system/protected.h"

/* ---- Options ---- */

static int take_rate(void *line, const char *text)
{
    fit_options *o = line;
    char *end;
    double value = real_read(text, &end);
    const double factor = *end == 'k' ? 1e3 : *end == 'M' ? 1e6 : 1;
    end += factor > 1;
    if (*end || end == text || !(value * factor >= 1 && value * factor <= 1e12))
        return cli_usage("--tokens-per-second %s: must be a number above 0, such as 15000 or 15k",
                         text);
    o->tokens_per_second = value * factor;
    return CLI_OK;
}

static int take_step(void *line, const char *text)
{
    fit_options *o = line;
    char *end;
    o->step_ms = real_read(text, &end);
    return *end || end == text || !(o->step_ms >= 0.1 && o->step_ms <= 600000)
               ? cli_usage("--step-ms %s: must be a number from 0.1 to 600000", text)
               : CLI_OK;
}

static int take_outputs(void *line, const char *text)
{
    static const struct {
        const char *name;
        uint32_t part;
    } parts[] = {{"inputs", 0},
                 {"labels", 0},
                 {"position_ids", TOKMAP_ROW_POSITION_IDS},
                 {"document_ids", TOKMAP_ROW_DOCUMENT_IDS},
                 {"loss_mask", TOKMAP_ROW_LOSS_MASK},
                 {"cu_seqlens", TOKMAP_ROW_DOCUMENTS}};
    fit_options *o = line;
    o->has_inputs = o->has_labels = false;
    o->row_parts = 0;
    for (const char *at = text; *at;) {
        const size_t n = strcspn(at, ",");
        size_t i = 0;
        while (i < sizeof parts / sizeof *parts &&
               (strlen(parts[i].name) != n || strncmp(parts[i].name, at, n) != 0))
            i++;
        if (i == sizeof parts / sizeof *parts)
            return cli_usage(
                "--outputs %s: must be some of inputs, labels, position_ids, document_ids, "
                "loss_mask and cu_seqlens, with commas between them",
                text);
        o->has_inputs |= i == 0;
        o->has_labels |= i == 1;
        o->row_parts |= parts[i].part;
        at += n + (at[n] == ',');
    }
    return CLI_OK;
}

static const cli_word shuffles[] = {{"full", TOKMAP_SHUFFLE_FULL, NULL},
                                    {"block", TOKMAP_SHUFFLE_BLOCK, NULL},
                                    {"none", TOKMAP_SHUFFLE_NONE, NULL},
                                    {NULL, 0, NULL}};

#define TARGET(field) offsetof(fit_options, field)
static const cli_option option_table[] = {
    {"The training"},
    {"tokens-per-second", 0, CLI_CALL, 0, "N",
     .help = "tokens that each GPU takes in a second, such as 15000 or 15k; this or --step-ms is "
             "needed",
     .call = take_rate},
    {"step-ms", 0, CLI_CALL, 0, "N",
     .help = "the milliseconds of a step, that is of a batch of each GPU", .call = take_step},
    {"gpus", 0, CLI_NUMBER, TARGET(n_gpus), "N",
     .help = "ranks of this machine, each a process [1]", .lowest = 1, .highest = FIT_MOST_RANKS},
    {"n-ranks", 0, CLI_NUMBER, TARGET(n_ranks), "N",
     .help = "ranks of the whole run [those of this machine]", .lowest = 1, .highest = 1 << 24},
    {"sequence-length", 0, CLI_NUMBER, TARGET(length), "N", .help = "inputs of a row [4096]",
     .lowest = 1, .highest = 1 << 24},
    {"batch-rows", 0, CLI_NUMBER, TARGET(batch_rows), "N", .help = "rows of a batch of one GPU [8]",
     .lowest = 1, .highest = 1 << 20},
    {"outputs", 0, CLI_CALL, 0, "NAME,...",
     .help = "what a batch has: inputs, labels, position_ids, document_ids, loss_mask, cu_seqlens "
             "[inputs,labels]",
     .call = take_outputs},
    {"shuffle", 0, CLI_WORD, TARGET(shuffle), "WORD", .help = "as for the Loader [full]",
     .words = shuffles},
    {"where", 0, CLI_TEXT, TARGET(where), "EXPRESSION",
     .help = "only documents for which EXPRESSION holds: a view"},
    {"view", 0, CLI_TEXT, TARGET(view), "FILE", .help = "only the documents of this view file"},
    {"Data that are made"},
    {"dir", 0, CLI_TEXT, TARGET(dir), "DIR",
     .help = "make a dataset in this folder, and remove it at the end"},
    {"size", 0, CLI_NUMBER, TARGET(size), "SIZE", .help = "of that dataset, such as 8GiB [1GiB]",
     .lowest = 1 << 20, .highest = (uint64_t)1 << 44},
    {"The measurement"},
    {"seconds", 0, CLI_NUMBER, TARGET(seconds), "N",
     .help = "of steps: half with data that are not in memory, half with data that are [20]",
     .lowest = 2, .highest = 86400},
    {"json", 0, CLI_FLAG, TARGET(json), .help = "print the result as a JSON object"},
    {"html", 0, CLI_TEXT, TARGET(html), "FILE", .help = "also write a page with charts to FILE"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokbench fit P... --tokens-per-second N [OPTION]...\n"
             "       tokbench fit P... --step-ms N [OPTION]...\n"
             "       tokbench fit --dir DIR --tokens-per-second N [OPTION]...",
    .about = "Says whether a training on datasets P would wait for its data on this machine. It "
             "starts a process for each GPU of this machine, with the loader of a training, and "
             "sleeps for the time of a step between two batches. It changes nothing: it drops the "
             "files of P from the page cache before the first half.",
    .options = option_table,
    .notes =
        "A training is fed if its steps take at least 0.99 of the time (AU), from the ninth "
        "step on, with data that are not in memory. If it waits for data that are in memory, "
        "it waits. MLPerf Storage asks for 0.90, because it "
        "compares storage; a GPU that waits for one percent of the time is paid for nothing.\n\n"
        "Exit status: 0 fed, or only data in memory could be measured; 6 the training would "
        "wait; 1 something failed; 2 the command line is wrong; 3 and 4 as for tokmap.",
    .examples = "  tokbench fit data/train --gpus 8 --tokens-per-second 15k\n"
                "  tokbench fit data/train --gpus 8 --step-ms 180 --html fit.html\n"
                "  tokbench fit --dir /mnt/disk --size 64GiB --gpus 8 --step-ms 180\n",
    .operand = "dataset",
};

static int check(fit_options *o, int n_names)
{
    if ((o->tokens_per_second > 0) == (o->step_ms > 0))
        return cli_usage("give one of --tokens-per-second and --step-ms, such as "
                         "--tokens-per-second 15k: what a "
                         "GPU takes");
    if ((n_names > 0) == (o->dir != NULL))
        return cli_usage(n_names > 0 ? "--dir makes a dataset, in place of those that are named"
                                     : "no dataset named; --dir DIR makes one");
    if (!o->dir && cli_is_given("size"))
        return cli_usage("--size is for the dataset that --dir makes");
    if (o->where && o->view)
        return cli_usage("use only one of --where and --view");
    o->n_ranks = cli_is_given("n-ranks") ? o->n_ranks : o->n_gpus;
    if (o->n_ranks < o->n_gpus)
        return cli_usage("--n-ranks %llu: there are %llu on this machine",
                         (unsigned long long)o->n_ranks, (unsigned long long)o->n_gpus);
    const double tokens = (double)(o->batch_rows * o->length);
    if (o->step_ms > 0)
        o->tokens_per_second = tokens * 1e3 / o->step_ms;
    else
        o->step_ms = tokens * 1e3 / o->tokens_per_second;
    return CLI_OK;
}

/* ---- The measurement ---- */

static void measure(const fit_options *o, const fit_data *data, fit_result *r)
{
    const uint64_t memory = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const double half = (double)o->seconds / 2;
    const fit_phase paced = {.step_ms = o->step_ms, .seconds = half, .shuffle = o->shuffle};
    const fit_phase most = {.seconds = MIN(2, half), .shuffle = o->shuffle};
    r->cold = r->hot = paced;
    r->most = r->block = most;
    if (data->in_memory)
        r->no_cold = "the file system is in memory";
    else if (!fit_data_drop(data))
        r->no_cold = "the pages of the data cannot be dropped: another program maps them";
    r->cold.is_cold = r->most.is_cold = r->block.is_cold = !r->no_cold;
    if (!r->no_cold) {
        fit_run_phase(o, data, &r->cold);
        fit_data_drop(data);
        fit_run_phase(o, data, &r->most);
    }
    if (!r->no_cold && !fit_is_fed(r)) {
        r->block.shuffle = TOKMAP_SHUFFLE_BLOCK;
        if (o->shuffle != TOKMAP_SHUFFLE_BLOCK) {
            fit_data_drop(data);
            fit_run_phase(o, data, &r->block);
        }
        r->device_tokens_per_second = fit_data_device_rate(data, o->length);
    }
    if (!data->in_memory && data->n_bytes > memory / 2)
        r->no_hot = "the data are larger than half of the memory";
    else if (!fit_data_warm(data, MAX(half, 5)))
        r->no_hot = "the data could not be read into memory, or do not stay there";
    if (r->no_hot && r->no_cold)
        bench_fail("nothing can be measured: %s; in memory: %s", r->no_cold, r->no_hot);
    if (r->no_hot)
        return;
    fit_run_phase(o, data, &r->hot);
    if (r->no_cold)
        fit_run_phase(o, data, &r->most);
}

static int write_html(const fit_options *o, const fit_data *data, const fit_result *r,
                      output_file *file)
{
    char *text = NULL;
    size_t n_bytes = 0;
    FILE *out = open_memstream(&text, &n_bytes);
    if (out) {
        fit_print_html(o, data, r, out);
        fclose(out);
    }
    const int code = text ? bench_file_write(file, text, n_bytes) : cli_no_memory();
    free(text);
    return code;
}

/* Opens the page before the work, and never instead of the data. */
static int open_html(const fit_options *o, const fit_data *data, output_file *file)
{
    for (size_t i = 0; i < data->files.n_names; i++)
        if (path_protect_name(data->files.names[i], "the data"))
            return 1;
    return bench_file_open(file, o->html);
}

static int run(const fit_options *o, fit_data *data)
{
    fit_result r = {0};
    output_file html = {.fd = -1};
    int code = fit_data_find(data);
    if (code == CLI_OK && o->html)
        code = open_html(o, data, &html);
    if (code != CLI_OK)
        return code;
    measure(o, data, &r);
    if (o->json)
        fit_print_json(o, data, &r, stdout);
    else
        fit_print(o, data, &r, stdout);
    const bool fed = fit_is_fed(&r);
    code = o->html ? write_html(o, data, &r, &html) : CLI_OK;
    if (code == CLI_OK)
        code = cli_finish();
    fit_free(r.phases, 4);
    return code != CLI_OK ? code : fed ? FIT_OK : FIT_WAITS;
}

/* Makes the dataset in a folder of its own, which the caller empties. */
static int run_in_folder(void *context, const char *folder)
{
    const fit_options *o = context;
    fit_data data = {0};
    fit_data_make(&data, folder, o->size);
    const int code = run(o, &data);
    fit_data_free(&data);
    return code;
}

int fit_command(int argc, char **argv)
{
    fit_options o = {.n_gpus = 1,
                     .length = 4096,
                     .batch_rows = 8,
                     .seconds = 20,
                     .size = (uint64_t)1 << 30,
                     .has_inputs = true,
                     .has_labels = true};
    fit_data data = {0};
    int code = cli_parse_options(&manual, argc, argv, &o);
    if (code != CLI_GO_ON)
        return code;
    code = check(&o, argc - optind);
    if (code == CLI_OK && o.dir)
        return bench_run_in_folder(o.dir, run_in_folder, &o);
    if (code == CLI_OK)
        code = dataset_names_expand(&data.names, argv + optind, argc - optind, true);
    if (code == CLI_OK)
        code = run(&o, &data);
    fit_data_free(&data);
    if (o.json && code != CLI_OK && code != FIT_WAITS)
        cli_print_error();
    return code;
}
