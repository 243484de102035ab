/* SPDX-License-Identifier: Apache-2.0 */
/* test_edge_values - each field of an index in turn gets the values at which programs stumble.
 * Every checksum and the dataset id are made to fit, so that only the value itself is wrong:
 * open or verify refuses it, or it does no harm. */
#include <fcntl.h>
#include <sys/stat.h>

#include "support/check.h"

#include "support/bad_days.h"
#include "support/joined.h"
#include "support/must.h"
#include "base/base.h"
#include "base/le.h"
#include "format/format.h"
#include "base/hash.h"
#include "writer/sections.h"

/* ---- Fields ---- */

typedef struct field {
    const char *name;
    size_t offset, width;
} field;

enum {
    TABLE = 256,
    MAX_FIELDS = 2000,
    MAX_FITTED_BYTES = 1 << 20
};

static const field HEADER_FIELDS[] = {
    {"magic", 0, 8},
    {"byte_order", 8, 4},
    {"format_version", 12, 2},
    {"lowest_reader", 14, 2},
    {"must_understand", 16, 4},
    {"may_ignore", 20, 4},
    {"header_bytes", 24, 4},
    {"n_sections", 28, 4},
    {"index_bytes", 32, 8},
    {"dataset_id", 40, 8},
    {"dataset_id", 48, 8},
    {"n_tokens", 56, 8},
    {"n_documents", 64, 8},
    {"token_offset", 72, 8},
    {"token_bytes", 80, 4},
    {"largest_id", 84, 4},
    {"vocab_size", 88, 8},
    {"eod_id", 96, 4},
    {"reserved", 100, 4},
    {"token_suffix", 104, 8},
    {"token_suffix", 112, 8},
    {"tokens_hash", 120, 8},
    {"tokens_hash", 128, 8},
    {"documents_hash", 136, 8},
    {"documents_hash", 144, 8},
    {"reserved", 152, 8},
    {"reserved", 160, 8},
    {"reserved", 168, 8},
    {"ignorable", 176, 8},
    {"ignorable", 200, 8},
    {"ignorable", 232, 8},
    {"table_checksum", 240, 8},
    {"header_checksum", 248, 8},
};

typedef struct field_list {
    field fields[MAX_FIELDS];
    size_t n;
} field_list;

static void add_run(field_list *l, const char *name, size_t offset, size_t width, size_t n)
{
    for (size_t i = 0; i < n && l->n < MAX_FIELDS; i++)
        l->fields[l->n++] = (field){name, offset + i * width, width};
}

static size_t section_at(const uint8_t *index, unsigned section)
{
    return (size_t)le_get64(index + TABLE + 32 * (size_t)section + 8);
}

/* Of the directory of columns, and the numbers, codes and offsets behind it. */
static void list_value_fields(const uint8_t *index, size_t values, field_list *l)
{
    const uint32_t n_columns = le_get32(index + values);
    const size_t end = values + (size_t)le_get64(index + TABLE + 4 * 32 + 16);
    add_run(l, "n_columns, names_bytes", values, 4, 2);
    add_run(l, "directory checksum", values + 8, 8, 1);
    for (uint32_t i = 0; i < n_columns; i++) {
        const size_t entry = values + 16 + 48 * (size_t)i;
        add_run(l, "type, code_bytes", entry, 4, 2);
        add_run(l, "column entry", entry + 8, 8, 5);
    }
    const size_t parts = values + 16 + 48 * n_columns + le_get32(index + values + 4);
    add_run(l, "part of a column", (parts + 7) / 8 * 8, 8, (end - parts) / 8 - 1);
}

static void list_segment_fields(const uint8_t *index, size_t segments, field_list *l)
{
    add_run(l, "n_segments", segments, 8, 1);
    add_run(l, "segment entry", segments + 8, 8, 3 * (size_t)le_get64(index + segments));
}

/* Of the table of a flat dataset without values, and inside the sections of a sound index. */
static void list_section_fields(const uint8_t *index, field_list *l)
{
    for (size_t at = TABLE; at < TABLE + 4 * 32; at += 32) {
        add_run(l, "kind, flags", at, 4, 2);
        add_run(l, "offset, size, checksum of a section", at + 8, 8, 3);
    }
    const size_t n_documents = (size_t)le_get64(index + 64);
    const size_t documents = section_at(index, 0), n_groups = (n_documents + 63) / 64;
    const size_t documents_end = documents + (size_t)le_get64(index + TABLE + 16);
    add_run(l, "document end", documents, 4, 64 * n_groups);
    add_run(l, "wide index", documents, 8, n_groups ? 1 : 0);
    const size_t levels = documents + 256 * n_groups;
    add_run(l, "level entry or wide end", levels, 8, (documents_end - levels) / 8);
    const size_t n_blocks = (size_t)le_get64(index + TABLE + 32 + 16) / 8;
    add_run(l, "block checksum", section_at(index, 1), 8, n_blocks < 3 ? n_blocks : 3);
    const size_t inputs = section_at(index, 2);
    add_run(l, "n_inputs", inputs, 8, 1);
    add_run(l, "input entry", inputs + 8, 8, 5 * (size_t)le_get64(index + inputs));
    if (le_get32(index + 28) > 4 && le_get32(index + TABLE + 4 * 32) == 5)
        list_value_fields(index, section_at(index, 4), l);
    const unsigned last = le_get32(index + 28) - 1;
    if (le_get32(index + TABLE + 32 * (size_t)last) == 6)
        list_segment_fields(index, section_at(index, last), l);
}

/* ---- Values, put in and made to fit ---- */

static uint64_t get_field(const uint8_t *index, const field *f)
{
    const uint8_t *p = index + f->offset;
    return f->width == 2 ? le_get16(p) : f->width == 4 ? le_get32(p) : le_get64(p);
}

static void put_field(uint8_t *index, const field *f, uint64_t value)
{
    uint8_t *p = index + f->offset;
    if (f->width == 2)
        le_put16(p, (uint16_t)value);
    else if (f->width == 4)
        le_put32(p, (uint32_t)value);
    else
        le_put64(p, value);
}

/* The checksum of the directory of columns. */
static void fix_up_directory(uint8_t *index, size_t n_bytes, const field *f, uint64_t value)
{
    const uint64_t values = le_get64(index + TABLE + 4 * 32 + 8);
    if (values >= n_bytes - 16)
        return;
    put_field(index, f, value);
    const uint64_t directory_bytes =
        48 * (uint64_t)le_get32(index + values) + le_get32(index + values + 4);
    if (directory_bytes <= n_bytes - values - 16)
        le_put64(index + values + 8,
                 tokmap_i_checksum(index + values + 16, (size_t)directory_bytes));
    put_field(index, f, value);
}

/* Checksums and id as docs/FORMAT.md has them, but for the one that is the field under test. */
static void fix_up(uint8_t *index, size_t n_bytes, const field *f, uint64_t value)
{
    const uint32_t n_sections = le_get32(index + 28);
    if (n_sections == 5 && le_get32(index + TABLE + 4 * 32) == 5)
        fix_up_directory(index, n_bytes, f, value);
    const bool table_fits = n_sections >= 2 && n_sections <= (n_bytes - TABLE) / 32;
    for (uint32_t i = 0; table_fits && i < n_sections && i < 32; i++) {
        uint8_t *entry = index + TABLE + 32 * (size_t)i;
        const uint64_t offset = le_get64(entry + 8), size = le_get64(entry + 16);
        if (offset <= n_bytes && size <= n_bytes - offset)
            le_put64(entry + 24, tokmap_i_checksum(index + offset, (size_t)size));
        put_field(index, f, value);
    }
    if (table_fits) {
        uint8_t record[48];
        memcpy(record, index + 56, 16);
        memcpy(record + 16, index + 120, 32);
        tokmap_i_id128(record, sizeof record, index + 40);
        put_field(index, f, value);
        le_put64(index + 240, tokmap_i_checksum(index + TABLE, 32 * (size_t)n_sections));
        put_field(index, f, value);
    }
    le_put64(index + 248, tokmap_i_checksum(index, 248));
    put_field(index, f, value);
}

typedef struct edges {
    const char *prefix, *token_path;
    file_bytes index;
    off_t token_file_bytes;
    bool whole_tokens; /* verify and append all tokens; else only the first block */
    bool joined;       /* a segment may then ask for another size of a token file */
    uint64_t n_by_open, n_by_verify, n_harmless;
} edges;

static void judge_opened(edges *e, tokmap_dataset *ds, const char *what)
{
    const tokmap_verify_options options = {
        .struct_size = sizeof options, .n_threads = 1, .fraction = e->whole_tokens ? 1 : 1e-12};
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    const char *problem = probe(ds);
    const tokmap_status status = tokmap_dataset_verify(ds, &options, &report, NULL);
    if (!problem && !status)
        problem = probe_sound(ds);
    if (problem)
        CHECK_FAIL("%s: %s", what, problem);
    const bool missing = e->joined && status == TOKMAP_ERR_IO; /* a name was cut elsewhere */
    if (status && ((status != TOKMAP_ERR_CORRUPT && !missing) || report.n_damages == 0))
        CHECK_FAIL("%s: verify says %d", what, (int)status);
    *(status ? &e->n_by_verify : &e->n_harmless) += 1;
    if (!e->whole_tokens)
        return;
    const tokmap_writer_options wide = {
        .struct_size = sizeof wide, .vocab_size = 65536, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w = must_begin(check_path("appended"), &wide);
    tokmap_writer_append_dataset(w, ds, NULL);
    tokmap_writer_close(w);
}

static void judge(edges *e, const char *what)
{
    tokmap_dataset *ds = NULL;
    tokmap_error err;
    const tokmap_status status = tokmap_dataset_open(&ds, e->prefix, &err);
    if (!status) {
        judge_opened(e, ds, what);
    } else if (status == TOKMAP_ERR_CORRUPT || status == TOKMAP_ERR_VERSION ||
               status == TOKMAP_ERR_NOT_A_DATASET ||
               (status == TOKMAP_ERR_IO && err.sys_errno == 2)) {
        e->n_by_open++; /* ENOENT: another suffix means a token file that is not there */
    } else {
        CHECK_FAIL("%s: open says %d: %s", what, (int)status, err.text);
    }
    tokmap_dataset_close(ds);
}

/* Both files get the sizes that the header now claims, where these are small. */
static void fit_files(const edges *e, const uint8_t *index)
{
    const uint64_t index_bytes = le_get64(index + 32), n_tokens = le_get64(index + 56);
    const uint64_t token_offset = le_get64(index + 72), token_bytes = le_get32(index + 80);
    if (index_bytes <= MAX_FITTED_BYTES)
        CHECK_INT(truncate(with_suffix(e->prefix, ".tmi"), (off_t)index_bytes), 0);
    if (n_tokens <= MAX_FITTED_BYTES && token_offset <= MAX_FITTED_BYTES && token_bytes <= 8)
        CHECK_INT(truncate(e->token_path, (off_t)(token_offset + n_tokens * token_bytes)), 0);
}

static void try_value(edges *e, const field *f, uint64_t value)
{
    char what[120];
    uint8_t *index = malloc(e->index.n_bytes + 1);
    CHECK(index != NULL);
    memcpy(index, e->index.data, e->index.n_bytes);
    const uint64_t was = get_field(index, f);
    put_field(index, f, value);
    const uint64_t is = get_field(index, f);
    snprintf(what, sizeof what, "%s at byte %zu: %" PRIu64, f->name, f->offset, is);
    if (is != was) {
        fix_up(index, e->index.n_bytes, f, value);
        CHECK(file_store(with_suffix(e->prefix, ".tmi"), index, e->index.n_bytes));
        judge(e, what);
        if (e->whole_tokens && !e->joined && f->offset < TABLE) {
            fit_files(e, index);
            judge(e, what);
            CHECK_INT(truncate(e->token_path, e->token_file_bytes), 0);
        }
    }
    free(index);
}

static void try_fields(edges *e, const field *fields, size_t n_fields)
{
    for (size_t i = 0; i < n_fields; i++) {
        const uint64_t was = get_field(e->index.data, &fields[i]);
        const uint64_t values[] = {0,          1,          1ull << 31, UINT32_MAX, 1ull << 32,
                                   1ull << 63, UINT64_MAX, was - 1,    was + 1};
        for (size_t k = 0; k < sizeof values / sizeof values[0]; k++)
            try_value(e, &fields[i], values[k]);
    }
}

static void report(const edges *e, const char *name)
{
    printf("note %s: %" PRIu64 " values: %" PRIu64 " refused by open, %" PRIu64
           " by verify, %" PRIu64 " harmless\n",
           name, e->n_by_open + e->n_by_verify + e->n_harmless, e->n_by_open, e->n_by_verify,
           e->n_harmless);
    CHECK(e->n_by_open + e->n_by_verify > 0);
}

static edges edges_of(const shape *s)
{
    edges e = {.prefix = check_path("p"), .whole_tokens = true};
    struct stat st;
    must_store(s, e.prefix);
    e.token_path = strdup(shape_token_path(s, e.prefix));
    e.prefix = strdup(e.prefix);
    e.index = file_load(with_suffix(e.prefix, ".tmi"));
    CHECK(e.index.data != NULL);
    CHECK_INT(stat(e.token_path, &st), 0);
    e.token_file_bytes = st.st_size;
    return e;
}

static void edges_free(edges *e)
{
    free((char *)e->token_path);
    free((char *)e->prefix);
    free(e->index.data);
}

static void try_all(edges *e, const char *name)
{
    static field_list list;
    list.n = 0;
    list_section_fields(e->index.data, &list);
    try_fields(e, HEADER_FIELDS, sizeof HEADER_FIELDS / sizeof HEADER_FIELDS[0]);
    try_fields(e, list.fields, list.n);
    report(e, name);
    edges_free(e);
}

TEST(untouched_fields_fixed_up_are_sound)
{
    for (unsigned i = 0; i < N_SMALL_SHAPES; i++) {
        edges e = edges_of(SMALL_SHAPES[i]);
        const field same = {"magic", 0, 8};
        uint8_t *index = malloc(e.index.n_bytes + 1);
        CHECK(index != NULL);
        memcpy(index, e.index.data, e.index.n_bytes);
        memset(index + 40, 1, 16); /* what the fix-up must restore */
        memset(index + 240, 1, 16);
        fix_up(index, e.index.n_bytes, &same, get_field(index, &same));
        CHECK(memcmp(index, e.index.data, e.index.n_bytes) == 0);
        free(index);
        unlink(with_suffix(e.prefix, ".tmi"));
        unlink(e.token_path);
        edges_free(&e);
    }
}

/* The token files stay as they are, so what a segment says of them must fit. */
static void try_joined(void)
{
    static const joined_part parts[] = {{"one.bin", 100, 0}, {"two.bin", 1, 8}, {"three", 29, 4}};
    edges e = edges_of(&SHAPE_WIDE_IDS);
    const char *joined = strdup(check_path("joined"));
    joined_store(e.prefix, joined, parts, 3);
    free((char *)e.prefix);
    free(e.index.data);
    e.prefix = joined;
    e.joined = true;
    e.index = file_load(with_suffix(joined, ".tmi"));
    CHECK(e.index.data != NULL);
    try_all(&e, "joined");
}

/* ---- Wide groups: more than 2^32 tokens, in a file that is one hole ---- */

enum {
    WIDE_DOCUMENTS = 130
};
#define WIDE_TOKENS ((1ull << 32) + 300)

static void store_wide_dataset(const char *prefix)
{
    const uint64_t n_bytes = 2 * WIDE_TOKENS, block = TOKMAP_I_BLOCK_BYTES;
    const int fd = open(with_suffix(prefix, ".bin"), O_WRONLY | O_CREAT, 0666);
    if (fd < 0 || ftruncate(fd, (off_t)n_bytes))
        SKIP("no file of 8 GiB, even sparse");
    close(fd);
    uint8_t *zeros = calloc(1, block);
    CHECK(zeros != NULL);
    tokmap_i_index_writer *w = NULL;
    const int index_fd = open(with_suffix(prefix, ".tmi"), O_RDWR | O_CREAT | O_TRUNC, 0666);
    CHECK_INT(tokmap_i_index_writer_open(&w, "index", index_fd, NULL), TOKMAP_OK);
    for (uint64_t d = 0; d < WIDE_DOCUMENTS; d++) /* the first group is wide */
        CHECK_INT(
            tokmap_i_index_writer_document(w, WIDE_TOKENS - WIDE_DOCUMENTS + d + (d > 1), NULL),
            TOKMAP_OK);
    for (uint64_t at = 0; at < n_bytes; at += block) {
        const size_t n = (size_t)MIN(block, n_bytes - at);
        CHECK_INT(tokmap_i_index_writer_block(w, tokmap_i_checksum(zeros, n), NULL), TOKMAP_OK);
    }
    free(zeros);
    tokmap_i_header h = {.n_tokens = WIDE_TOKENS,
                         .token_bytes = 2,
                         .vocab_size = 10,
                         .eod_id = TOKMAP_NO_ID,
                         .token_suffix = ".bin"};
    CHECK_INT(tokmap_i_index_writer_finish(w, &h, "{}", 2, NULL), TOKMAP_OK);
    tokmap_i_index_writer_close(w);
}

/* Of each run of fields the ends and some between; all where there is time. */
static size_t thin_out(field_list *l)
{
    size_t n = 0;
    for (size_t i = 0; i < l->n; i++)
        if (i % 16 < 2 || i % 64 == 63 || i > l->n - 10 || (check_long() && !check_sanitized()))
            l->fields[n++] = l->fields[i];
    return n;
}

TEST(values_are_refused_or_harmless)
{
    static const shape *const all[] = {&SHAPE_WIDE_IDS, &SHAPE_ADOPTED, &SHAPE_EMPTY,
                                       &SHAPE_NO_DOCUMENTS, &SHAPE_VALUES};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        edges e = edges_of(all[i]);
        try_all(&e, all[i]->name);
        remove_dataset(check_path("p"));
    }
    try_joined();
}

TEST(values_of_wide_groups_are_refused_or_harmless)
{
    static field_list list;
    list.n = 0;
    const char *prefix = check_path("wide");
    store_wide_dataset(prefix);
    edges e = {.prefix = prefix, .index = file_load(with_suffix(prefix, ".tmi"))};
    CHECK(e.index.data != NULL);
    tokmap_dataset *ds = must_open(prefix);
    judge_opened(&e, ds, "untouched");
    tokmap_dataset_close(ds);
    CHECK_EQ(e.n_harmless, 1);
    list_section_fields(e.index.data, &list);
    const size_t n = thin_out(&list);
    try_fields(&e, list.fields, n);
    report(&e, "wide groups");
    free(e.index.data);
}
