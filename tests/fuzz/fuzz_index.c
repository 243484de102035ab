/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_index.c - any bytes as an index: decoding and all lookups stay inside them, and what is
 * found lies inside the dataset.
 *
 * The first byte decides: 0 takes the rest as it is; 1 makes all checksums fit first; 2 makes
 * sizes and offsets fit as well; 3 takes the rest as a documents section alone, 4 as an inputs
 * section, 5 as a section of values, 6 as a section of segments, 7 as one of spans. */
#include "fuzz/fuzz.h"
#include "base/base.h"
#include "base/le.h"
#include "format/document_index.h"
#include "format/format.h"
#include "base/hash.h"
#include "format/input_table.h"
#include "format/meta_section.h"
#include "format/segments_section.h"
#include "format/spans_section.h"
#include "support/exact_copy.h"

enum {
    TABLE = 256,
    ENTRY = 32,
    MAX_SECTIONS = 6,
    HEAD_BYTES = TABLE + MAX_SECTIONS * ENTRY,
    MAX_LOOKUPS = 300
};

/* ---- Making an index of arbitrary bytes ---- */

/* The header of a joined dataset names no token file. */
static void fit_joined(uint8_t *index)
{
    le_put64(index + 72, 0);
    memset(index + 104, 0, 16);
    memcpy(index + 104, ".bin", 4);
}

/* Four to six sections one behind the other, of the sizes that the table asks for as far as there
 * is room. The two lowest bits of their number say whether there are values, and segments. */
static void fit_places(uint8_t *index, size_t n_bytes)
{
    static const uint8_t start[16] = {0x89, 'T', 'M', 'I', '\r', '\n', 0x1a, '\n',
                                      4,    3,   2,   1,   1,    0,    1};
    const bool values = index[28] & 1, segments = index[28] & 2;
    const uint32_t n_sections = 4 + (uint32_t)values + (uint32_t)segments;
    memcpy(index, start, sizeof start);
    le_put32(index + 16, 0);
    le_put32(index + 24, TABLE);
    le_put32(index + 28, n_sections);
    le_put64(index + 32, n_bytes);
    size_t at = (size_t)round_up(TABLE + n_sections * ENTRY, 64);
    for (uint32_t i = 0; i < n_sections; i++) {
        uint8_t *entry = index + TABLE + ENTRY * (size_t)i;
        const size_t room = n_bytes - MIN(at, n_bytes);
        const size_t size = i == n_sections - 1 ? room : le_get16(entry + 16) % (room + 1);
        const uint32_t kind = segments && i == n_sections - 1 ? 6 : i + 1;
        le_put32(entry, kind);
        le_put32(entry + 4, kind != 5);
        le_put64(entry + 8, at);
        le_put64(entry + 16, size);
        at = (size_t)round_up(at + size, 64);
    }
    if (segments)
        fit_joined(index);
}

static void fit_checksums(uint8_t *index, size_t n_bytes)
{
    const uint32_t n_sections = le_get32(index + 28);
    if (n_sections >= 2 && n_sections <= (n_bytes - TABLE) / ENTRY) {
        for (uint32_t i = 0; i < n_sections; i++) {
            uint8_t *entry = index + TABLE + ENTRY * (size_t)i;
            const uint64_t offset = le_get64(entry + 8), size = le_get64(entry + 16);
            if (offset <= n_bytes && size <= n_bytes - offset)
                le_put64(entry + 24, tokmap_i_checksum(index + offset, (size_t)size));
        }
        uint8_t record[48];
        memcpy(record, index + 56, 16);
        memcpy(record + 16, index + 120, 32);
        tokmap_i_id128(record, sizeof record, index + 40);
        le_put64(index + 240, tokmap_i_checksum(index + TABLE, (size_t)n_sections * ENTRY));
    }
    le_put64(index + 248, tokmap_i_checksum(index, 248));
}

/* ---- Looking at it ---- */

static void require_inside(const tokmap_i_documents *docs, const tokmap_document *d)
{
    require(d->index < docs->n_documents && d->first_token <= docs->n_tokens &&
            d->n_tokens <= docs->n_tokens - d->first_token);
}

static void look_up(const tokmap_i_documents *docs, uint64_t token, bool sound)
{
    tokmap_document found, same;
    const tokmap_status status = tokmap_i_documents_find(docs, NULL, token, &found);
    require(status == TOKMAP_OK || (status == TOKMAP_ERR_CORRUPT && !sound));
    if (status)
        return;
    require_inside(docs, &found);
    require(token >= found.first_token && token - found.first_token < found.n_tokens);
    require(tokmap_i_documents_get(docs, NULL, found.index, &same) == TOKMAP_OK);
    require(same.first_token == found.first_token && same.n_tokens == found.n_tokens);
}

/* All that verify checks, in the simplest way. */
static bool documents_sound(const tokmap_i_documents *docs)
{
    const tokmap_i_documents_layout *l = &docs->layout;
    uint64_t next_start = 0, n_wide = 0;
    for (uint64_t group = 0; group < l->n_groups; group++) {
        tokmap_i_group g = {.record = docs->bytes + group * TOKMAP_I_GROUP_BYTES};
        g.start = le_get64(docs->bytes + l->level_offset[0] + 8 * group);
        g.n_documents = (uint32_t)MIN(docs->n_documents - 64 * group, 64);
        if (tokmap_i_group_is_wide(g.record) && n_wide < docs->n_wide) {
            g.wide = docs->bytes + l->wide_offset + n_wide * TOKMAP_I_WIDE_BYTES;
            g.wide_index = n_wide++;
        }
        if (tokmap_i_group_check(&g, &next_start) || next_start > docs->n_tokens)
            return false;
    }
    for (uint32_t level = 0; level < l->n_levels; level++) {
        for (uint64_t i = 0; i < round_up(l->level_entries[level], 16); i++) {
            const uint64_t is = le_get64(docs->bytes + l->level_offset[level] + 8 * i);
            uint64_t wanted = UINT64_MAX;
            if (i < l->level_entries[level])
                wanted =
                    level == 0 ? is : le_get64(docs->bytes + l->level_offset[level - 1] + 128 * i);
            if (is != wanted)
                return false;
        }
    }
    return docs->n_documents > 0 && next_start == docs->n_tokens && n_wide == docs->n_wide;
}

static void look_at_documents(const tokmap_i_documents *docs)
{
    if (docs->n_documents == 0)
        return;
    const bool sound = documents_sound(docs);
    const uint64_t stride = docs->n_documents / MAX_LOOKUPS + 1;
    tokmap_document d;
    for (uint64_t i = 0; i < docs->n_documents; i += stride) {
        const tokmap_status status = tokmap_i_documents_get(docs, NULL, i, &d);
        require(status == TOKMAP_OK || (status == TOKMAP_ERR_CORRUPT && !sound));
        if (status)
            continue;
        require(d.index == i);
        require_inside(docs, &d);
        if (d.first_token < docs->n_tokens)
            look_up(docs, d.first_token, sound);
        if (d.n_tokens > 0)
            look_up(docs, d.first_token + d.n_tokens - 1, sound);
    }
    for (uint64_t i = 0; docs->n_tokens > 0 && i < 20; i++)
        look_up(docs, (docs->n_tokens - 1) / 19 * i, sound);
}

static void look_at_inputs(const tokmap_i_inputs *table)
{
    const bool sound = tokmap_i_inputs_check(table) == NULL;
    uint64_t end_document = 0, end_token = 0, sum = 0;
    for (uint64_t i = 0; i < table->n_inputs; i++) {
        tokmap_input_info input;
        const tokmap_status status = tokmap_i_inputs_get(table, i, &input);
        require(status == TOKMAP_OK || (status == TOKMAP_ERR_CORRUPT && !sound));
        if (status)
            continue;
        require(input.first_document <= table->n_documents &&
                input.n_documents <= table->n_documents - input.first_document);
        require(input.first_token <= table->n_tokens &&
                input.n_tokens <= table->n_tokens - input.first_token);
        require(!sound || (input.first_document == end_document && input.first_token == end_token));
        end_document = input.first_document + input.n_documents;
        end_token = input.first_token + input.n_tokens;
        for (size_t k = 0; k < input.name_bytes; k++)
            sum += (uint8_t)input.name[k];
    }
    require(!sound || table->n_inputs == 0 ||
            (end_document == table->n_documents && end_token == table->n_tokens));
    require(sum <= UINT64_MAX / 2);
}

/* ---- Values ---- */

static bool fit_directory(uint8_t *section, size_t n_bytes)
{
    const uint64_t n = n_bytes < 16 ? 0 : tokmap_i_meta_directory_bytes(section);
    if (n == 0 || n > n_bytes)
        return false;
    le_put64(section + 8, tokmap_i_checksum(section + 16, (size_t)n - 16));
    return true;
}

static void look_at_column(const tokmap_i_meta *meta, uint32_t i)
{
    const uint64_t stride = meta->n_documents / MAX_LOOKUPS + 1;
    const tokmap_value_type type = tokmap_i_meta_value_type(&meta->columns[i]);
    uint64_t sum = 0;
    for (uint64_t d = 0; d < meta->n_documents; d += stride) {
        tokmap_value v;
        const tokmap_status status = tokmap_i_meta_get(meta, i, d, &v);
        require(status == TOKMAP_OK || status == TOKMAP_ERR_CORRUPT);
        if (status)
            continue;
        require(v.type == TOKMAP_VALUE_NULL || v.type == type);
        require(v.type != TOKMAP_VALUE_STRING || v.text_bytes <= TOKMAP_I_MAX_META_STRING);
        for (size_t k = 0; v.type == TOKMAP_VALUE_STRING && k < v.text_bytes; k++)
            sum += (uint8_t)v.text[k];
    }
    require(sum <= UINT64_MAX / 2);
}

/* What decodes is encoded to the same bytes, and no value lies outside. */
static void look_at_values(const uint8_t *section, uint64_t n_bytes, uint64_t n_documents)
{
    static tokmap_i_meta meta;
    static uint8_t again[TOKMAP_I_META_DIRECTORY_BYTES];
    meta =
        (tokmap_i_meta){.n_documents = n_documents, .section_bytes = n_bytes, .section = section};
    const uint64_t n = tokmap_i_meta_directory_bytes(section);
    if (n == 0 || n > n_bytes || tokmap_i_meta_decode(section, &meta))
        return;
    require(tokmap_i_meta_encode(&meta, again) == n && memcmp(again, section, (size_t)n) == 0);
    for (uint32_t i = 0; i < meta.n_columns; i++)
        look_at_column(&meta, i);
}

/* ---- Segments ---- */

/* The rules of docs/FORMAT.md section 3.8, in the simplest way. */
static bool segments_sound(const tokmap_i_segments *s)
{
    const uint64_t n = le_get64(s->bytes);
    if (n > 1 << 20 || 8 + 24 * n > s->n_bytes)
        return false;
    const uint8_t *names = s->bytes + 8 + 24 * n;
    const uint64_t names_bytes = s->n_bytes - 8 - 24 * n;
    uint64_t token = 0, name = 0;
    for (uint64_t i = 0; i < n; i++) {
        const uint8_t *e = s->bytes + 8 + 24 * i;
        const uint64_t end = le_get64(e), offset = le_get64(e + 8), name_end = le_get64(e + 16);
        if (end <= token || offset > 1 << 30 || offset % s->token_bytes || name_end <= name ||
            name_end > names_bytes || name_end - name > 4096 || names[name] == '/')
            return false;
        for (; name < name_end; name++)
            if (names[name] == 0)
                return false;
        token = end;
    }
    return token == s->n_tokens && name == names_bytes;
}

static void look_at_segments(const uint8_t *section, uint64_t n_bytes, uint64_t n_tokens,
                             uint32_t token_bytes)
{
    tokmap_i_segments s = {
        .bytes = section, .n_bytes = n_bytes, .n_tokens = n_tokens, .token_bytes = token_bytes};
    uint64_t at = 0, token = 0, sum = 0;
    const char *problem = tokmap_i_segments_check(&s, &at);
    require((problem == NULL) == segments_sound(&s) && at <= n_bytes);
    for (uint64_t i = 0; !problem && i < s.n_segments; i++) {
        const tokmap_i_segment one = tokmap_i_segments_get(&s, i);
        require(one.first_token == token && one.n_tokens > 0);
        token += one.n_tokens;
        for (size_t k = 0; k < one.name_bytes; k++)
            sum += (uint8_t)one.name[k];
    }
    require(problem || token == n_tokens);
    require(sum <= UINT64_MAX / 2);
}

/* ---- Spans ---- */

/* The spans in the order of the section; false: they do not ascend, or there are too many. */
static bool list_spans(const tokmap_i_spans *s, tokmap_span *all, uint32_t *n)
{
    tokmap_i_span_cursor c = {.spans = s};
    uint64_t end = 0;
    tokmap_status status = tokmap_i_spans_seek(&c, 0);
    for (*n = 0; !status && *n < MAX_LOOKUPS; ++*n) {
        tokmap_span *one = &all[*n];
        status = tokmap_i_spans_next(&c, one);
        require(status == TOKMAP_OK || status == TOKMAP_END || status == TOKMAP_ERR_CORRUPT);
        if (status)
            break;
        require(one->n_tokens > 0 && one->first_token >> 32 < s->n_pages &&
                (one->first_token + one->n_tokens - 1) >> 32 == one->first_token >> 32);
        if (one->first_token < end)
            return false;
        end = one->first_token + one->n_tokens;
    }
    return status == TOKMAP_END;
}

static void look_at_spans(const uint8_t *section, uint64_t n_bytes, uint64_t n_tokens)
{
    static tokmap_span all[MAX_LOOKUPS];
    uint8_t again[TOKMAP_I_SPANS_HEAD_BYTES];
    tokmap_i_spans s;
    uint32_t n;
    if (tokmap_i_spans_decode(section, n_bytes, n_tokens, &s))
        return;
    s.bytes = section;
    tokmap_i_spans_encode(&s, again);
    require(memcmp(again, section, sizeof again) == 0);
    const bool sound = list_spans(&s, all, &n) && n == s.n_spans;
    for (uint32_t i = 0; i < 40; i++) {
        const uint64_t token = i % 2 && n > 0
                                   ? all[i % n].first_token + i / 20 * all[i % n].n_tokens
                                   : n_tokens / 40 * i;
        tokmap_i_span_cursor c = {.spans = &s};
        tokmap_span found = {0};
        tokmap_status status = tokmap_i_spans_seek(&c, token);
        if (!status)
            status = tokmap_i_spans_next(&c, &found);
        if (!sound)
            continue;
        uint32_t k = 0;
        while (k < n && all[k].first_token + all[k].n_tokens <= token)
            k++;
        require(status == (k < n ? TOKMAP_OK : TOKMAP_END));
        require(k == n || (found.first_token == all[k].first_token &&
                           found.n_tokens == all[k].n_tokens && found.role == all[k].role));
    }
}

/* The number of tokens first; then the section. */
static void look_at_spans_alone(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 8 + TOKMAP_I_SPANS_HEAD_BYTES)
        return;
    uint8_t *section = exact_copy(data + 8, n_bytes - 8);
    look_at_spans(section, n_bytes - 8, le_get64(data) % (TOKMAP_I_MAX_TOKENS + 1));
    free(section);
}

static void look_at_sections(const uint8_t *index, const tokmap_i_header *h)
{
    const tokmap_i_section *documents = tokmap_i_section_find(h, TOKMAP_I_DOCUMENTS);
    const tokmap_i_section *inputs = tokmap_i_section_find(h, TOKMAP_I_INPUTS);
    tokmap_i_documents docs;
    tokmap_i_documents_view(&docs, index + documents->offset, documents->n_bytes, h->n_documents,
                            h->n_tokens);
    look_at_documents(&docs);
    const tokmap_i_inputs table = {index + inputs->offset, inputs->n_bytes,
                                   le_get64(index + inputs->offset), h->n_documents, h->n_tokens};
    if (tokmap_i_inputs_fit(table.n_inputs, table.n_bytes))
        look_at_inputs(&table);
    const tokmap_i_section *values = tokmap_i_section_find(h, TOKMAP_I_META);
    if (values)
        look_at_values(index + values->offset, values->n_bytes, h->n_documents);
    const tokmap_i_section *segments = tokmap_i_section_find(h, TOKMAP_I_SEGMENTS);
    if (segments)
        look_at_segments(index + segments->offset, segments->n_bytes, h->n_tokens, h->token_bytes);
    const tokmap_i_section *spans = tokmap_i_section_find(h, TOKMAP_I_SPANS);
    if (spans)
        look_at_spans(index + spans->offset, spans->n_bytes, h->n_tokens);
}

static void look_at_index(const uint8_t *index, size_t n_bytes)
{
    const tokmap_i_index_file file = {"fuzz", n_bytes};
    tokmap_i_header h;
    tokmap_error err = {0};
    tokmap_status status = tokmap_i_header_decode(index, MIN(n_bytes, TABLE), &file, &h, &err);
    if (!status)
        status = tokmap_i_table_decode(index + TABLE, &file, &h, &err);
    require(status == err.status && (!status || err.text[0]));
    require(status == TOKMAP_OK || status == TOKMAP_ERR_NOT_A_DATASET ||
            status == TOKMAP_ERR_VERSION || status == TOKMAP_ERR_CORRUPT);
    require(err.file_offset <= n_bytes || err.file_offset <= HEAD_BYTES);
    if (!status)
        look_at_sections(index, &h);
}

/* ---- Sections alone ---- */

/* Counts first; then the section, cut or filled up with zeros to the next valid size. */
static void look_at_documents_alone(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 10)
        return;
    const uint64_t n_documents = le_get16(data) % 3000 + 1;
    const uint64_t n_tokens = le_get64(data + 2) % (TOKMAP_I_MAX_TOKENS + 1);
    data += 10;
    n_bytes -= 10;
    tokmap_i_documents_layout layout;
    tokmap_i_documents_layout_of(n_documents, &layout);
    uint64_t size = layout.wide_offset;
    if (n_bytes > size)
        size += MIN((n_bytes - size) / TOKMAP_I_WIDE_BYTES, layout.n_groups) * TOKMAP_I_WIDE_BYTES;
    require(tokmap_i_documents_size_valid(n_documents, size));
    uint8_t *section = calloc(1, (size_t)size);
    require(section != NULL);
    memcpy(section, data, MIN(size, n_bytes));
    tokmap_i_documents docs;
    tokmap_i_documents_view(&docs, section, size, n_documents, n_tokens);
    look_at_documents(&docs);
    free(section);
}

static void look_at_inputs_alone(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 20)
        return;
    tokmap_i_inputs table = {NULL, n_bytes - 12, le_get64(data + 12), le_get32(data), 0};
    table.n_tokens = le_get64(data + 4) % (TOKMAP_I_MAX_TOKENS + 1);
    uint8_t *section = exact_copy(data + 12, (size_t)table.n_bytes);
    table.bytes = section;
    if (tokmap_i_inputs_fit(table.n_inputs, table.n_bytes))
        look_at_inputs(&table);
    free(section);
}

/* The number of documents first; then the section. */
static void look_at_values_alone(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 2 + 16)
        return;
    uint8_t *section = exact_copy(data + 2, n_bytes - 2);
    if (fit_directory(section, n_bytes - 2))
        look_at_values(section, n_bytes - 2, le_get16(data));
    free(section);
}

/* The number of tokens and their width first; then the section. */
static void look_at_segments_alone(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes < 9 + 8)
        return;
    uint8_t *section = exact_copy(data + 9, n_bytes - 9);
    look_at_segments(section, n_bytes - 9, le_get64(data) % (TOKMAP_I_MAX_TOKENS + 1),
                     data[8] & 1 ? 2 : 4);
    free(section);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n_bytes)
{
    if (n_bytes == 0)
        return 0;
    const uint8_t mode = data[0] % 8;
    data++;
    n_bytes--;
    if (mode == 3)
        look_at_documents_alone(data, n_bytes);
    if (mode == 4)
        look_at_inputs_alone(data, n_bytes);
    if (mode == 5)
        look_at_values_alone(data, n_bytes);
    if (mode == 6)
        look_at_segments_alone(data, n_bytes);
    if (mode == 7)
        look_at_spans_alone(data, n_bytes);
    if (mode >= 3)
        return 0;
    uint8_t *index = exact_copy(data, n_bytes);
    if (mode == 2 && n_bytes >= HEAD_BYTES)
        fit_places(index, n_bytes);
    if (mode == 2 && n_bytes >= HEAD_BYTES && le_get32(index + TABLE + 4 * ENTRY) == 5) {
        const uint64_t values = le_get64(index + TABLE + 4 * ENTRY + 8);
        if (values < n_bytes)
            fit_directory(index + values, n_bytes - (size_t)values);
    }
    if (mode >= 1 && n_bytes >= TABLE)
        fit_checksums(index, n_bytes);
    look_at_index(index, n_bytes);
    free(index);
    return 0;
}
