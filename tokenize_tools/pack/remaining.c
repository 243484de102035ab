/* SPDX-License-Identifier: Apache-2.0 */
#include "pack/remaining.h"

#include <fnmatch.h>

#include "base/base.h"
#include "formats/wrong_file.h"
#include "system/platform_thread.h"

#define ENOUGH_BYTES ((uint64_t)1 << 18) /* to measure how much text a kind of file holds */
#define USUAL_DENSITY 3.5                /* of dense files, until it is measured */

static bool is_dense(const char *name)
{
    return wrong_name_is_compressed(name) || fnmatch("*.parquet", name, FNM_CASEFOLD) == 0;
}

/* Returns how many bytes of input i the cell packs. */
static uint64_t bytes_of(const pack_inputs *inputs, size_t i)
{
    uint64_t n =
        i + 1 == inputs->n && inputs->end.offset ? inputs->end.offset : inputs->versions[i].n_bytes;
    const uint64_t before = i == 0 ? inputs->begin.offset : 0;
    return n > before ? n - before : 0;
}

void pack_remaining_expect(pack_remaining *r, const pack_inputs *inputs, uint64_t stored)
{
    if (r->started_ns == 0)
        r->started_ns = tokmap_i_now_ns();
    for (size_t i = 0; i < inputs->n && inputs->total_bytes > 0; i++) {
        const uint64_t n = bytes_of(inputs, i), n_before = MIN(n, stored);
        r->kinds[is_dense(inputs->names[i])].total += n - n_before;
        stored -= n_before;
    }
}

void pack_remaining_enter(pack_remaining *r, uint64_t stored)
{
    r->which = 0;
    r->stored = stored;
}

void pack_remaining_reach(pack_remaining *r, const pack_inputs *inputs, uint64_t which,
                          uint64_t stored, uint64_t text_bytes)
{
    const uint64_t last = MIN(which, inputs->n - 1), n = MAX(stored, r->stored) - r->stored;
    const bool dense = is_dense(inputs->names[last]);
    r->kinds[dense].done += n;
    if (dense == is_dense(inputs->names[r->which])) { /* else n is of both kinds */
        r->kinds[dense].measured += n;
        r->kinds[dense].text += text_bytes;
    }
    r->which = last;
    r->stored += n;
}

double pack_remaining_seconds(const pack_remaining *r, uint64_t now_ns)
{
    double left = 0, done = 0;
    for (int k = 0; k < 2; k++) {
        const double total = (double)r->kinds[k].total, part = (double)r->kinds[k].done;
        const double density = r->kinds[k].measured > ENOUGH_BYTES
                                   ? (double)r->kinds[k].text / (double)r->kinds[k].measured
                               : k ? USUAL_DENSITY
                                   : 1;
        done += density * part;
        left += density * MAX(total - part, 0);
    }
    return done > 0 && r->kinds[0].total + r->kinds[1].total > 0
               ? left / done * (double)(now_ns - r->started_ns) / 1e9
               : -1;
}
