/* SPDX-License-Identifier: Apache-2.0 */
/* html.c - a page with the charts of a measurement. It needs nothing from elsewhere. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "cli/cli.h"
#include "fit/fit.h"

enum {
    WIDTH = 640,
    HEIGHT = 150,
    BINS = 40,
    DECADES = 8 /* of waits: from 0.1 us to 10 s */
};

static const char head[] =
    "<!doctype html><html lang=en><meta charset=utf-8>"
    "<meta name=viewport content='width=device-width'><title>tokbench fit</title><style>"
    ":root{--text:#1b1f24;--soft:#6a737d;--line:#d0d7de;--cold:#0969da;--hot:#bf5700;--page:#fff}"
    "@media(prefers-color-scheme:dark){:root{--text:#e6edf3;--soft:#8b949e;--line:#3d444d;"
    "--cold:#58a6ff;--hot:#f0883e;--page:#0d1117}}"
    "body{background:var(--page);color:var(--text);font:15px/1.5 system-ui,sans-serif;"
    "max-width:44em;margin:2em auto;padding:0 1em}svg{width:100%;height:auto;margin:.3em 0 1em}"
    "svg text{fill:var(--soft);font-size:12px}pre{overflow-x:auto;font-size:13px;line-height:1.4}"
    "h1{font-size:1.3em}h2{font-size:1em;margin:1.5em 0 .2em}.cold{fill:var(--cold)}"
    ".hot{fill:var(--hot)}.axis{stroke:var(--line)}.key:before{content:'';display:inline-block;"
    "width:.8em;height:.8em;margin-right:.4em}.key{margin-right:1em;color:var(--soft)}"
    ".k1:before{background:var(--cold)}.k2:before{background:var(--hot)}</style>";

static void print_text(FILE *out, const char *s)
{
    for (; *s; s++)
        if (*s == '<' || *s == '&' || *s == '>')
            fprintf(out, "&#%d;", *s);
        else
            putc(*s, out);
}

static void begin_chart(FILE *out, const char *title, int height)
{
    fprintf(out, "<h2>%s</h2><svg viewBox='0 0 %d %d' role=img aria-label='%s'>", title, WIDTH,
            height + 20, title);
}

/* ---- How long waits are ---- */

/* Counts the waits of each bin of a logarithmic scale, as shares of all. Returns the largest. */
static double count_waits(const fit_phase *p, double *bins)
{
    static const double step = 1.584893192461114; /* 10^(DECADES / BINS) */
    double most = 0, end = 0.1;
    size_t at = 0; /* waits are sorted */
    for (int i = 0; i < BINS; i++) {
        const size_t first = at;
        end *= step;
        while (at < p->n_waits && (p->waits[at] < end || i == BINS - 1))
            at++;
        bins[i] = (double)(at - first) / (double)MAX(p->n_waits, 1);
        most = MAX(most, bins[i]);
    }
    return most;
}

static void print_histogram(const fit_result *r, FILE *out)
{
    static const char *const marks[DECADES] = {"0.1 us", "1 us",  "10 us",  "100 us",
                                               "1 ms",   "10 ms", "100 ms", "1 s"};
    double bins[2][BINS] = {{0}}, most = 0;
    const fit_phase *const phases[] = {&r->cold, &r->hot};
    for (int k = 0; k < 2; k++)
        if (phases[k]->was_run)
            most = MAX(most, count_waits(phases[k], bins[k]));
    begin_chart(out, "How long a step waits for its batch", HEIGHT);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < BINS; i++) {
            const double height = most > 0 ? bins[k][i] / most * (HEIGHT - 10) : 0;
            if (height > 0)
                fprintf(out,
                        "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f><title>%.1f %% of the "
                        "steps</title></rect>",
                        k ? "hot" : "cold", (i + 0.08 + 0.42 * k) * WIDTH / BINS, HEIGHT - height,
                        0.4 * WIDTH / BINS, height, 100 * bins[k][i]);
        }
    fprintf(out, "<line class=axis x1=0 x2=%d y1=%d y2=%d />", WIDTH, HEIGHT, HEIGHT);
    for (int i = 0; i < DECADES; i++)
        fprintf(out, "<text x=%d y=%d>%s</text>", i * WIDTH / DECADES, HEIGHT + 15, marks[i]);
    fputs("</svg>", out);
}

/* ---- When waits come ---- */

static void print_times(const fit_result *r, FILE *out)
{
    double most = 1;
    const fit_phase *const phases[] = {&r->cold, &r->hot};
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < FIT_TIMES && phases[k]->was_run; i++)
            most = MAX(most, phases[k]->longest[i]);
    begin_chart(out, "The longest wait, from the beginning to the end", HEIGHT);
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < FIT_TIMES && phases[k]->was_run; i++) {
            const double height = phases[k]->longest[i] / most * (HEIGHT - 10);
            fprintf(out, "<rect class=%s x=%.1f y=%.1f width=%.1f height=%.1f />",
                    k ? "hot" : "cold", (i + 0.5 * k) * WIDTH / FIT_TIMES, HEIGHT - height,
                    0.45 * WIDTH / FIT_TIMES, height);
        }
    fprintf(out, "<line class=axis x1=0 x2=%d y1=%d y2=%d />", WIDTH, HEIGHT, HEIGHT);
    fprintf(out,
            "<text x=0 y=%d>0 s</text><text x=%d y=%d text-anchor=end>%.3g s; the highest bar is "
            "%.3g ms</text></svg>",
            HEIGHT + 15, WIDTH, HEIGHT + 15, phases[!r->cold.was_run]->seconds, most / 1e3);
}

/* ---- Rates ---- */

static void print_rates(const fit_options *o, const fit_result *r, FILE *out)
{
    const struct {
        const char *name;
        double rate;
    } rates[] = {{"needed", fit_needed(o)},
                 {r->cold.was_run ? "the loader, cold data" : "the loader, data in memory",
                  r->most.tokens_per_second},
                 {"the loader with block shuffle", r->block.tokens_per_second},
                 {"the device, rows at random", r->device_tokens_per_second}};
    double most = 0;
    int n_rows = 0, row = 0;
    enum {
        N_RATES = sizeof rates / sizeof *rates,
        ROW = 26
    };
    for (int i = 0; i < N_RATES; i++) {
        most = MAX(most, rates[i].rate);
        n_rows += rates[i].rate > 0;
    }
    begin_chart(out, "Tokens in a second", n_rows * ROW);
    for (int i = 0; i < N_RATES; i++) {
        if (rates[i].rate <= 0)
            continue;
        fprintf(out,
                "<text x=0 y=%d>%s</text><rect class=%s x=220 y=%d width=%.1f height=16 /><text "
                "x=%.1f y=%d>%s</text>",
                row * ROW + 14, rates[i].name, i == 0 ? "hot" : "cold", row * ROW + 2,
                rates[i].rate / most * (WIDTH - 300), rates[i].rate / most * (WIDTH - 300) + 226,
                row * ROW + 14, bench_short(rates[i].rate, "").s);
        row++;
    }
    fputs("</svg>", out);
}

void fit_print_html(const fit_options *o, const fit_data *data, const fit_result *r, FILE *out)
{
    char verdict[640], *text = NULL;
    size_t n_bytes;
    FILE *screen = open_memstream(&text, &n_bytes);
    if (screen) {
        fit_print(o, data, r, screen);
        fclose(screen);
    }
    fit_describe(o, r, verdict, sizeof verdict);
    fprintf(out, "%s<h1>", head);
    print_text(out, verdict);
    fputs("</h1><p><span class='key k1'>data that are not in memory</span>"
          "<span class='key k2'>data in memory</span></p>",
          out);
    print_histogram(r, out);
    print_times(r, out);
    print_rates(o, r, out);
    fputs("<h2>All figures</h2><pre>", out);
    if (text)
        print_text(out, text);
    else
        bench_fail("out of memory");
    free(text);
    fputs("</pre></html>\n", out);
}
