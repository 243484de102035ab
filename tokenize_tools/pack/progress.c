/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/progress.h"

#include <stdio.h>

#include "system/platform_thread.h"

uint64_t pack_counts_skipped(const pack_counts *counts)
{
    return counts->corpus.bad_documents + counts->packed.special_documents;
}

void pack_progress_begin(pack_progress *p, const pack_counts *from, uint64_t total_bytes,
                         bool quiet)
{
    cli_progress_begin(&p->line, "pack", quiet);
    p->text_bytes = 0;
    p->tokens = from->packed.tokens;
    p->stored_bytes = from->corpus.stored_bytes;
    p->total_bytes = total_bytes;
}

uint64_t pack_progress_ns(const pack_progress *p)
{
    return tokmap_i_now_ns() - p->line.started_ns;
}

static bool is_time(pack_progress *p)
{
    uint64_t now = tokmap_i_now_ns(), pause = p->line.on_terminal ? 200000000u : 10000000000u;
    if (!p->line.enabled || now - p->line.last_ns < pause)
        return false;
    p->line.last_ns = now;
    return true;
}

/* Formats " of 3.4 GiB (35%)" and ", 12 s left", if the sizes are known. */
static void draw_rest(const pack_progress *p, uint64_t done, double seconds, char total[96],
                      char left[64])
{
    double rate = (double)(done - p->stored_bytes) / seconds;
    total[0] = left[0] = '\0';
    if (p->total_bytes == 0)
        return;
    snprintf(total, 96, " of %s (%.0f%%)", cli_bytes(p->total_bytes).s,
             100.0 * (double)done / (double)p->total_bytes);
    if (rate > 0 && p->total_bytes >= done)
        snprintf(left, 64, ", %.0f s left", (double)(p->total_bytes - done) / rate);
}

void pack_progress_update(pack_progress *p, const pack_counts *now, uint64_t stored_bytes)
{
    if (!is_time(p))
        return;
    char total[96], left[64], skipped[64] = "";
    uint64_t n_skipped = pack_counts_skipped(now);
    double seconds = (double)pack_progress_ns(p) / 1e9;
    draw_rest(p, stored_bytes, seconds, total, left);
    if (n_skipped)
        snprintf(skipped, sizeof skipped, ", %s skipped", cli_count(n_skipped).s);
    cli_progress_draw(&p->line, "pack: %s%s, %.1f MB/s of text, %.2f M tokens/s%s%s",
                      cli_bytes(stored_bytes).s, total, (double)p->text_bytes / seconds / 1e6,
                      (double)(now->packed.tokens - p->tokens) / seconds / 1e6, left, skipped);
}

void pack_progress_end(pack_progress *p, const pack_counts *now)
{
    double seconds = (double)pack_progress_ns(p) / 1e9;
    if (cli_progress_is_shown(&p->line))
        fprintf(stderr, "\rpack: %s in %.1f s, %.1f MB/s of text, %.2f M tokens/s\033[K\n",
                cli_bytes(now->corpus.stored_bytes - p->stored_bytes).s, seconds,
                (double)p->text_bytes / seconds / 1e6,
                (double)(now->packed.tokens - p->tokens) / seconds / 1e6);
}

void pack_progress_clear(pack_progress *p)
{
    cli_progress_clear(&p->line);
}
