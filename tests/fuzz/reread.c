/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/reread.h"

#include <string.h>
#include <unistd.h>

#include "fuzz/fuzz.h"
#include "support/part_reading.h"

static bool same(const input_bytes *a, const input_bytes *b)
{
    return a->n_bytes == b->n_bytes &&
           (a->n_bytes == 0 || memcmp(a->bytes, b->bytes, a->n_bytes) == 0);
}

void reread_input(const uint8_t choice[REREAD_BYTES], const uint8_t *data, size_t size)
{
    static const size_t sizes[] = {4, 9, 50, 300, 2000, 1 << 15, 1 << 17, 1 << 20};
    static field_list fields;
    static where *kept;
    failure field_err;
    if (!fields.n_fields) {
        require(field_list_parse(&fields, "id,score,@row", &field_err));
        kept = where_compile("not id == 3 and not name == \"x\"", &fields, &field_err);
        require(kept != NULL);
    }
    corpus_options o = {
        .reader.format = (corpus_format)(choice[0] % CORPUS_N_FORMATS),
        .reader.utf8 = (corpus_utf8)((choice[0] >> 2) % 3),
        .reader.on_error = (corpus_on_error)(choice[0] >> 4 & 1),
        .reader.separator = choice[1] & 1 ? "--" : NULL,
        .reader.separator_bytes = choice[1] & 1 ? 2 : 0,
        .reader.window.read_ahead = choice[1] > 250,
        .reader.fields = choice[1] & 2 ? &fields : NULL,
        .reader.n_kept = choice[1] & 2 ? 3 : 0,
        .reader.where = (choice[1] & 6) == 6 ? kept : NULL,
        .reader.field = choice[1] & 8 ? "s.text" : NULL,
        .reader.columns = choice[1] & 16 ? "id,score,text" : NULL,
        .reader.page_memory = (size_t)1 << 22,
    };
    uint64_t random = choice[3];
    char name[64];
    const int fd = input_file(name, data, size);
    part_reading whole, small;
    require(part_reading_resume(&whole, name, &o, &random) == NULL);
    o.batch_bytes = sizes[choice[2] & 7];
    o.reader.window.read_bytes = choice[3] ? choice[3] : 4096;
    require(part_reading_resume(&small, name, &o, &random) == NULL);
    if (whole.result == 0 && small.result == 0)
        require(same(&whole.text, &small.text) && same(&whole.ends, &small.ends) &&
                same(&whole.values, &small.values) &&
                memcmp(&whole.counts, &small.counts, sizeof whole.counts) == 0);
    part_reading_free(&whole);
    part_reading_free(&small);
    close(fd);
}
