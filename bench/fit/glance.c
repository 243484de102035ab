/* SPDX-License-Identifier: Apache-2.0 */
/* glance.c - tokbench without arguments: a screen about this machine, in less than a minute. */
#include <stdlib.h>

#include "base/base.h"
#include "cli/cli.h"
#include "core/work_folder.h"
#include "fit/fit.h"
#include "fit/fit_command.h"

enum {
    DATA_BYTES = 256 << 20,
    BATCH_TOKENS = 8 * 4096,
    ROWS_BYTES = 64 << 20,
    BAR = 20
};
/* Eight GPUs that train a model of a billion parameters or more. */
static const double TAKEN_A_SECOND = 8 * 15000;
static const double SHORT_US = 10000; /* for a first batch */

static const fit_options training = {.n_gpus = 1,
                                     .n_ranks = 1,
                                     .length = 4096,
                                     .batch_rows = 8,
                                     .step_ms = 20,
                                     .tokens_per_second = BATCH_TOKENS * 50,
                                     .has_inputs = true,
                                     .has_labels = true};

/* Returns the tokens in a second that a plain loop widens to inputs and labels, from memory that is
 * in no cache. */
static double widened_tokens_per_second(void)
{
    const size_t n_all = ROWS_BYTES / sizeof(uint16_t);
    uint16_t *from = bench_memory(ROWS_BYTES + sizeof *from);
    int64_t *inputs = bench_memory(2 * BATCH_TOKENS * sizeof *inputs);
    const uint64_t start = tokmap_i_now_ns();
    uint64_t n = 0;
    for (; bench_ns_since(start) < 5e8; n += BATCH_TOKENS) {
        const uint16_t *ids = from + n % n_all;
        int64_t *labels = inputs + BATCH_TOKENS;
        for (size_t i = 0; i < BATCH_TOKENS; i++) {
            inputs[i] = ids[i];
            labels[i] = ids[i + 1];
        }
        bench_keep((uint64_t)inputs[n % BATCH_TOKENS]);
    }
    const double rate = (double)n * 1e9 / bench_ns_since(start);
    free(from);
    free(inputs);
    return rate;
}

/* Prints a line: how much of a limit was reached, and which page has more. */
static void print_line(const char *name, double share, const char *page, const char *text)
{
    const int n = (int)(MIN(MAX(share, 0), 1) * BAR + 0.5);
    const char *word = share >= 0.9   ? "at its limit"
                       : share >= 0.6 ? "near its limit"
                       : share >= 0.3 ? "below its limit"
                                      : "far below";
    printf("  %-12s %.*s%.*s  %-26s tokbench %s\n  %-12s %s\n", name, n, "####################",
           BAR - n, "....................", word, page, "", text);
}

static void print(const fit_result *r, double widened)
{
    char text[160];
    const fit_phase *paced = r->cold.was_run ? &r->cold : &r->hot;
    const double given = r->most.tokens_per_second, device = r->device_tokens_per_second;
    const double taken = r->hot.cpu_us_per_token * TAKEN_A_SECOND / 1e6;
    const cli_text p99 = fit_time(bench_percentile(paced->waits, paced->n_waits, 990));
    snprintf(text, sizeof text, "%s of batches from memory; a plain loop widens %s",
             bench_short(r->block.tokens_per_second, " tokens/s").s,
             bench_short(widened, " tokens/s").s);
    print_line("memory", r->block.tokens_per_second / widened, "load", text);
    snprintf(text, sizeof text, "for 8 GPUs that take 15k tokens/s each: %.2g %% of one processor",
             100 * taken);
    print_line("processor", 1 - taken, "load", text);
    if (r->cold.was_run && device > 0) {
        snprintf(text, sizeof text, "%s of cold rows at random; the device: %s",
                 bench_short(given, " tokens/s").s, bench_short(device, " tokens/s").s);
        print_line("device", given / device, "cold", text);
    } else {
        printf("  %-12s not measured: %s\n", "device",
               r->no_cold ? r->no_cold : "its file system cannot read past the page cache");
    }
    snprintf(text, sizeof text, "%s from opening; up to %s is not noticed",
             fit_time(paced->first_batch_ms * 1e3).s, fit_time(SHORT_US).s);
    print_line("first batch", SHORT_US / (paced->first_batch_ms * 1e3), "start", text);
    snprintf(text, sizeof text, "steps of %s are %.2f %% of the time; p99 of their waits: %s",
             fit_time(training.step_ms * 1e3).s, 100 * paced->utilisation, p99.s);
    print_line("waits", 1 - 10 * (1 - paced->utilisation), "stall", text);
}

/* The phase `block` is that in memory without pauses. */
static void measure(const fit_data *data, fit_result *r)
{
    const fit_phase paced = {.step_ms = training.step_ms, .seconds = 6};
    const fit_phase most = {.seconds = 2};
    r->cold = r->hot = paced;
    r->most = r->block = most;
    if (data->in_memory)
        r->no_cold = "the folder is in memory";
    else if (!fit_data_drop(data))
        r->no_cold = "the pages of the data cannot be dropped";
    r->cold.is_cold = r->most.is_cold = !r->no_cold;
    if (!r->no_cold) {
        fit_run_phase(&training, data, &r->cold);
        fit_data_drop(data);
        fit_run_phase(&training, data, &r->most);
        r->device_tokens_per_second = fit_data_device_rate(data, training.length);
    }
    if (!fit_data_warm(data, 60))
        bench_fail("the data could not be read in a minute");
    fit_run_phase(&training, data, &r->hot);
    fit_run_phase(&training, data, &r->block);
}

static int run_in_folder(void *context, const char *folder)
{
    const char *dir = context;
    fit_data data = {0};
    fit_result r = {0};
    const bench_times before = bench_read_times();
    fit_data_make(&data, folder, DATA_BYTES);
    int code = fit_data_find(&data);
    if (code != CLI_OK)
        return code;
    measure(&data, &r);
    const double widened = widened_tokens_per_second();
    const bench_times after = bench_read_times();
    printf("This machine, with %s of tokens in %s: rows of 4096, batches of 8, full shuffle.\n"
           "At the right: what has more.\n\n",
           cli_bytes(DATA_BYTES).s, dir);
    print(&r, widened);
    const double others = MAX(after.others - before.others, 0) / MAX(after.all - before.all, 1);
    printf("\nOther programs took %.0f %% of the processors' time meanwhile%s.\n"
           "Whether your data feed your GPUs:\n"
           "  tokbench fit data/train --gpus 8 --tokens-per-second 15k\n",
           100 * others, others > 0.1 ? ", so figures may be too low" : "");
    fit_free(r.phases, 4);
    fit_data_free(&data);
    return cli_finish();
}

int fit_glance(void)
{
    const char *named = getenv("TMPDIR"), *dir = named && *named ? named : "/tmp";
    bench_ignore_io();
    cli_warn("half a minute, and 256 MiB in %s; 'tokbench --help' says what else there is", dir);
    return bench_run_in_folder(dir, run_in_folder, (void *)dir);
}
