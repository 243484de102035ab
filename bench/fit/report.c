/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - what a measurement says: a screen, the verdict, JSON. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "fit/fit.h"

static const double FED = 0.99; /* the least utilisation of a training that does not wait */

static const char *const ways[] = {"auto", "map", "direct", "populate", "read", "copy"};

bool fit_is_fed(const fit_result *r)
{
    const fit_phase *p = r->cold.was_run ? &r->cold : &r->hot; /* cold data are never better */
    return p->utilisation >= FED;
}

cli_text fit_time(double us)
{
    cli_text text;
    const char *unit = us < 999.5 ? "us" : us < 999500 ? "ms" : "s";
    const double value = us < 999.5 ? us : us < 999500 ? us / 1e3 : us / 1e6;
    snprintf(text.s, sizeof text.s, "%.3g %s", value, unit);
    return text;
}

/* Formats how many times as much one rate is as another one. */
static cli_text factor_of(double rate, double needed)
{
    cli_text text;
    const double factor = rate / needed;
    snprintf(text.s, sizeof text.s, factor < 9.95 ? "%.2g" : "%.0f", factor);
    return text;
}

static size_t add(char *text, size_t n_bytes, size_t n, const char *more)
{
    return n + (size_t)snprintf(text + MIN(n, n_bytes), n_bytes - MIN(n, n_bytes), "%s", more);
}

void fit_describe(const fit_options *o, const fit_result *r, char *text, size_t n_bytes)
{
    const double needed = fit_needed(o);
    const cli_text gpus = cli_count_of(o->n_gpus, "GPU");
    const char *take = o->n_gpus == 1 ? "takes" : "take";
    char more[256];
    size_t n;
    if (!r->cold.was_run && !fit_is_fed(r)) {
        snprintf(text, n_bytes,
                 "waits: %.1f %% of the time, although the data are in memory (%s); the loader "
                 "gives %s of what this needs",
                 100 * (1 - r->hot.utilisation), r->no_cold,
                 factor_of(r->most.tokens_per_second, needed).s);
        return;
    }
    if (!r->cold.was_run) {
        snprintf(text, n_bytes, "hot only: %s. In memory the loader gives %s times what %s %s",
                 r->no_cold, factor_of(r->most.tokens_per_second, needed).s, gpus.s, take);
        return;
    }
    if (fit_is_fed(r)) {
        snprintf(text, n_bytes, "fed: %s times what %s %s",
                 factor_of(r->most.tokens_per_second, needed).s, gpus.s, take);
        return;
    }
    snprintf(more, sizeof more,
             "waits: %.1f %% of the time; from cold data the loader gives %s of what this needs",
             100 * (1 - r->cold.utilisation), factor_of(r->most.tokens_per_second, needed).s);
    n = add(text, n_bytes, 0, more);
    if (r->device_tokens_per_second > 0) {
        snprintf(more, sizeof more, "; the device gives %s",
                 factor_of(r->device_tokens_per_second, needed).s);
        n = add(text, n_bytes, n, more);
    }
    if (r->block.was_run) {
        snprintf(more, sizeof more, "; block shuffle gives %s (measured)",
                 factor_of(r->block.tokens_per_second, needed).s);
        n = add(text, n_bytes, n, more);
    }
    if (r->hot.was_run && r->hot.utilisation < FED)
        add(text, n_bytes, n,
            "; it also waits if all data are in memory, so the processors are too slow");
}

/* ---- The screen ---- */

/* Prints a line of what the phases with pauses found. */
static void print_line(const fit_result *r, FILE *out, const char *name, cli_text cold,
                       cli_text hot)
{
    const cli_text none = {"-"};
    fprintf(out, "  %-26s%14s%14s\n", name, r->cold.was_run ? cold.s : none.s,
            r->hot.was_run ? hot.s : none.s);
}

static cli_text share_of(double share)
{
    cli_text text;
    snprintf(text.s, sizeof text.s, "%.4f", share);
    return text;
}

static void print_waits(const fit_result *r, FILE *out)
{
    static const struct {
        const char *name;
        size_t thousandths;
    } rows[] = {
        {"wait, p50", 500}, {"wait, p99", 990}, {"wait, p99.9", 999}, {"wait, longest", 1000}};
    const fit_phase *c = &r->cold, *h = &r->hot;
    fprintf(out, "  %-26s%14s%14s\n", "", "cold", "in memory");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        print_line(r, out, rows[i].name,
                   fit_time(bench_percentile(c->waits, c->n_waits, rows[i].thousandths)),
                   fit_time(bench_percentile(h->waits, h->n_waits, rows[i].thousandths)));
    print_line(r, out, "utilisation (AU)", share_of(c->utilisation), share_of(h->utilisation));
    print_line(r, out, "steps that count", cli_count(c->n_waits), cli_count(h->n_waits));
    print_line(r, out, "first batch", fit_time(c->first_batch_ms * 1e3),
               fit_time(h->first_batch_ms * 1e3));
    print_line(r, out, "processor, 10^6 tokens", fit_time(c->cpu_us_per_token * 1e6),
               fit_time(h->cpu_us_per_token * 1e6));
    print_line(r, out, "memory of a rank", cli_bytes(c->own_bytes), cli_bytes(h->own_bytes));
}

void fit_print(const fit_options *o, const fit_data *data, const fit_result *r, FILE *out)
{
    const double needed = fit_needed(o), width = data->token_bytes;
    const long n_processors = sysconf(_SC_NPROCESSORS_ONLN);
    const fit_phase *most = r->most.was_run ? &r->most : &r->hot;
    char verdict[640];
    fprintf(out, "%s%s: %s of tokens, %s\n", data->made ? data->made : data->names.names[0],
            data->names.n_names > 1 ? " and others" : "",
            cli_bytes((uint64_t)((double)data->n_tokens * width)).s,
            bench_short((double)data->n_tokens, " tokens").s);
    fprintf(out,
            "%s, each %s tokens/s: %" PRIu64 " rows of %" PRIu64 " in a step of %s, shuffle %s\n",
            cli_count_of(o->n_gpus, "GPU").s, cli_count((uint64_t)o->tokens_per_second).s,
            o->batch_rows, o->length, fit_time(o->step_ms * 1e3).s,
            o->shuffle == TOKMAP_SHUFFLE_FULL   ? "full"
            : o->shuffle == TOKMAP_SHUFFLE_NONE ? "none"
                                                : "block");
    fprintf(out, "  needed: %s, %s, %s\n", bench_short(needed, " tokens/s").s,
            bench_short(needed * width, "B/s").s,
            bench_short(needed / (double)o->length, " rows/s").s);
    fprintf(out, "  given:  %s from %s without pauses\n",
            bench_short(most->tokens_per_second, " tokens/s").s,
            r->cold.was_run ? "cold data" : "memory");
    print_waits(r, out);
    fprintf(out, "  read by %s: %s\n", ways[most->io], most->io_reason);
    if ((long)o->n_gpus > n_processors)
        fprintf(out,
                "  %" PRIu64 " ranks on %ld processors: %.0f %% of the waits is processor time\n",
                o->n_gpus, n_processors, 100 * (r->cold.was_run ? &r->cold : &r->hot)->processor);
    if (r->cold.was_run && !r->hot.was_run)
        fprintf(out, "  in memory: %s\n", r->no_hot);
    fit_describe(o, r, verdict, sizeof verdict);
    fprintf(out, "%s\n", verdict);
}

/* ---- JSON ---- */

static void print_phase(json_out *o, const char *key, const fit_phase *p)
{
    static const struct {
        const char *key;
        size_t thousandths;
    } waits[] = {
        {"wait_p50_us", 500}, {"wait_p99_us", 990}, {"wait_p999_us", 999}, {"wait_max_us", 1000}};
    if (!p->was_run) {
        json_out_string(o, key, NULL);
        return;
    }
    json_out_begin(o, key, '{');
    json_out_print(o, "tokens_per_second", "%.6g", p->tokens_per_second);
    json_out_number(o, "n_steps", p->n_waits);
    if (p->step_ms > 0)
        json_out_print(o, "utilisation", "%.6g", p->utilisation);
    for (size_t i = 0; i < sizeof waits / sizeof *waits; i++)
        json_out_print(o, waits[i].key, "%.6g",
                       bench_percentile(p->waits, p->n_waits, waits[i].thousandths));
    json_out_print(o, "wait_mean_us", "%.6g", p->waited / (double)MAX(p->n_waits, 1));
    json_out_print(o, "processor_share_of_waits", "%.4g", p->processor);
    json_out_print(o, "first_batch_ms", "%.6g", p->first_batch_ms);
    json_out_print(o, "cpu_us_per_million_tokens", "%.6g", p->cpu_us_per_token * 1e6);
    json_out_number(o, "memory_bytes", p->own_bytes);
    json_out_string(o, "io", ways[p->io]);
    json_out_string(o, "io_reason", p->io_reason);
    json_out_end(o, '}');
}

void fit_print_json(const fit_options *options, const fit_data *data, const fit_result *r,
                    FILE *out)
{
    json_out o = json_out_begin_result(out);
    const double needed = fit_needed(options);
    char verdict[640];
    fit_describe(options, r, verdict, sizeof verdict);
    json_out_string(&o, "kind", "fit");
    json_out_string(&o, "tokmap", tokmap_version());
    bench_json_machine(&o);
    json_out_string(&o, "verdict", !fit_is_fed(r) ? "waits" : r->cold.was_run ? "fed" : "hot only");
    json_out_string(&o, "text", verdict);
    json_out_begin(&o, "options", '{');
    json_out_number(&o, "gpus", options->n_gpus);
    json_out_number(&o, "n_ranks", options->n_ranks);
    json_out_print(&o, "tokens_per_second", "%.6g", options->tokens_per_second);
    json_out_print(&o, "step_ms", "%.6g", options->step_ms);
    json_out_number(&o, "sequence_length", options->length);
    json_out_number(&o, "batch_rows", options->batch_rows);
    json_out_end(&o, '}');
    json_out_begin(&o, "data", '{');
    json_out_number(&o, "n_tokens", data->n_tokens);
    json_out_number(&o, "token_bytes", data->token_bytes);
    json_out_number(&o, "n_bytes", data->n_bytes);
    json_out_end(&o, '}');
    json_out_print(&o, "needed_tokens_per_second", "%.6g", needed);
    if (r->device_tokens_per_second > 0)
        json_out_print(&o, "device_tokens_per_second", "%.6g", r->device_tokens_per_second);
    print_phase(&o, "cold", &r->cold);
    print_phase(&o, "hot", &r->hot);
    print_phase(&o, "without_pauses", &r->most);
    print_phase(&o, "block_shuffle", &r->block);
    fputs("}\n", out);
}
