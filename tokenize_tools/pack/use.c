/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/use.h"

#include "base/base.h"
#include "cli/cli.h"
#include "system/platform_thread.h"
#include "system/work_thread.h"

/* If a stage was busy for so much of the time, the others waited for it. */
#define BUSY 0.9

void pack_use_count(pack_use *use, int sign)
{
    const uint64_t by = (uint64_t)(int64_t)sign; /* may wrap below 0, and comes right in the sum */
    const uint64_t read = work_thread_ns(WORK_READ), encode = work_thread_ns(WORK_ENCODE);
    const uint64_t decompress = work_thread_ns(WORK_DECOMPRESS);
    const uint64_t main = tokmap_i_thread_cpu_ns(), all = tokmap_i_cpu_ns();
    use->wall += by * tokmap_i_now_ns();
    use->read += by * read;
    use->decompress += by * decompress;
    use->encode += by * encode;
    use->main += by * main;
    use->flush += by * (all - MIN(all, read + decompress + encode + main));
}

static double share(uint64_t part, double of)
{
    return of > 0 ? (double)part / of : 0;
}

pack_limit pack_use_limit(const pack_use *u)
{
    const double wall = (double)u->wall;
    const uint64_t all = u->read + u->decompress + u->encode + u->main + u->flush;
    if (1 - share(u->main_waited, wall) >= BUSY)
        return LIMITED_BY_WRITE;
    if (1 - share(u->encoders_waited, wall * u->n_encoders) >= BUSY)
        return LIMITED_BY_ENCODE;
    /* With all processors in use, what uses the most of them is what a faster machine helps. */
    if (share(all, wall * u->n_processors) >= BUSY && u->encode >= u->read + u->decompress)
        return LIMITED_BY_ENCODE;
    if (2 * u->starved >= u->main_waited && u->starved > 0)
        return LIMITED_BY_MEMORY;
    const bool computes = share(u->read + u->decompress, (double)u->reading) >= BUSY / 2;
    return computes && u->decompress > u->read ? LIMITED_BY_DECOMPRESS : LIMITED_BY_READ;
}

double pack_use_rate(const pack_use *u, pack_limit limit)
{
    const uint64_t bytes = limit == LIMITED_BY_WRITE    ? u->token_bytes
                           : limit >= LIMITED_BY_ENCODE ? u->text_bytes
                                                        : u->stored_bytes;
    return share(bytes, (double)u->wall / 1e9);
}

void pack_use_note(const pack_use *u)
{
    static const struct {
        const char *what, *of, *then;
    } texts[] = {
        {"reading the inputs", "input", ""},
        {"decompressing one file after another", "input",
         "; files of up to 1 GB are decompressed at the same time"},
        {"encoding", "text", "; more threads (-j) on more processors make it faster"},
        {"writing the output", "tokens", ""},
        {"memory for inputs that are read at the same time", "text", ""},
    };
    const pack_limit limit = pack_use_limit(u);
    cli_warn("%s limited this run: %.0f MB/s of %s%s", texts[limit].what,
             pack_use_rate(u, limit) / 1e6, texts[limit].of, texts[limit].then);
}

void pack_use_print(const pack_use *u, json_out *o)
{
    static const char *const names[] = {"read", "decompress", "encode", "write", "memory"};
    const struct {
        const char *name;
        uint64_t ns;
    } threads[] = {{"read", u->read},
                   {"decompress", u->decompress},
                   {"encode", u->encode},
                   {"main", u->main},
                   {"flush", u->flush}};
    const pack_limit limit = pack_use_limit(u);
    json_out_begin(o, "cpu_seconds", '{');
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        json_out_print(o, threads[i].name, "%.3f", (double)threads[i].ns / 1e9);
    json_out_end(o, '}');
    json_out_string(o, "limited_by", names[limit]);
    json_out_print(o, "limit_bytes_per_second", "%.0f", pack_use_rate(u, limit));
    json_out_number(o, "spilled_bytes", u->spilled_bytes);
}
