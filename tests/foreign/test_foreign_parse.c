/* SPDX-License-Identifier: Apache-2.0 */
/* test_foreign_parse.c - the decoders of foreign files on bytes in memory: edge values and long
 * tables. test_foreign.py tests the rest on files. */
#include "support/check.h"
#include "foreign/foreign_memory.h"

static failure why;

static void put_number(uint8_t *p, uint64_t value, int n_bytes)
{
    for (int i = 0; i < n_bytes; i++)
        p[i] = (uint8_t)(value >> (8 * i));
}

/* ---- Megatron ---- */

/* Two sequences of 2 and 3 tokens, each of them a document; u16. */
enum {
    IDX_BYTES = 34 + 2 * 12 + 3 * 8,
    BIN_BYTES = 10
};

static void make_idx(uint8_t *idx)
{
    static const uint64_t starts[] = {0, 4}, indices[] = {0, 1, 2};
    memcpy(idx, (const uint8_t[9]){"MMIDIDX"}, 9);
    put_number(idx + 9, 1, 8);
    idx[17] = 8;
    put_number(idx + 18, 2, 8);
    put_number(idx + 26, 3, 8);
    put_number(idx + 34, 2, 4);
    put_number(idx + 38, 3, 4);
    for (int i = 0; i < 2; i++)
        put_number(idx + 42 + 8 * i, starts[i], 8);
    for (int i = 0; i < 3; i++)
        put_number(idx + 58 + 8 * i, indices[i], 8);
}

static bool read_idx(const uint8_t *idx, size_t n_bytes, uint64_t bin_bytes,
                     foreign_counter *counter)
{
    foreign_memory memory;
    foreign_layout layout;
    foreign_sink sink = {foreign_counter_add, counter};
    *counter = (foreign_counter){0};
    foreign_memory_init(&memory, idx, n_bytes, n_bytes);
    const foreign_bytes bin = {.size = bin_bytes};
    const foreign_files files = {.tokens = &bin, .table = &memory.bytes};
    return foreign_megatron.decode(&layout, &files, &why) &&
           foreign_megatron.documents(&layout, &memory.bytes, &sink, &why);
}

TEST(megatron_documents_cover_the_bin)
{
    uint8_t idx[IDX_BYTES];
    foreign_counter counter;
    make_idx(idx);
    CHECK(read_idx(idx, sizeof idx, BIN_BYTES, &counter));
    CHECK_EQ(counter.n_documents, 2);
    CHECK_EQ(counter.n_tokens, 5);
    CHECK_EQ(counter.last, 3);
}

TEST(megatron_edge_values_in_every_field_are_refused)
{
    static const uint64_t edges[] = {3,          4,          5,          1u << 31,  UINT32_MAX,
                                     1ULL << 32, 1ULL << 61, 1ULL << 63, UINT64_MAX};
    static const struct {
        int offset, n_bytes;
    } fields[] = {{9, 8},  {18, 8}, {26, 8}, {34, 4}, {38, 4}, {42, 8},
                  {50, 8}, {58, 8}, {66, 8}, {74, 8}, {17, 1}};
    int n_tried = 0;
    for (size_t f = 0; f < sizeof fields / sizeof *fields; f++) {
        for (size_t e = 0; e < sizeof edges / sizeof *edges; e++) {
            uint8_t idx[IDX_BYTES], same[IDX_BYTES];
            foreign_counter counter;
            make_idx(idx);
            make_idx(same);
            put_number(idx + fields[f].offset, edges[e], fields[f].n_bytes);
            if (memcmp(idx, same, sizeof idx) == 0)
                continue;
            n_tried++;
            if (read_idx(idx, sizeof idx, BIN_BYTES, &counter))
                CHECK_FAIL("field at %d with %" PRIu64 " was taken", fields[f].offset, edges[e]);
        }
    }
    CHECK(n_tried > 90);
}

TEST(megatron_tables_longer_than_the_buffer_are_read_whole)
{
    enum {
        N = 5000
    };
    size_t n_bytes = 34 + N * 12 + (N + 1) * 8;
    uint8_t *idx = calloc(1, n_bytes);
    foreign_counter counter;
    CHECK(idx != NULL);
    make_idx(idx);
    put_number(idx + 18, N, 8);
    put_number(idx + 26, N + 1, 8);
    uint64_t start = 0;
    for (int i = 0; i < N; i++) {
        put_number(idx + 34 + 4 * i, (uint64_t)i % 7, 4);
        put_number(idx + 34 + 4 * N + 8 * i, start, 8);
        put_number(idx + 34 + 12 * N + 8 * (i + 1), (uint64_t)i + 1, 8);
        start += 2 * ((uint64_t)i % 7);
    }
    put_number(idx + 34 + 12 * N, 0, 8);
    bool ok = read_idx(idx, n_bytes, start, &counter);
    bool too_long = read_idx(idx, n_bytes, start + 2, &counter);
    free(idx);
    CHECK(ok);
    CHECK(!too_long);
    CHECK_SAYS(why.text, "sequences end at byte");
    CHECK_EQ(counter.n_documents, N);
}

/* ---- NumPy ---- */

/* Version 1.0 with this literal followed by n_tokens of token_bytes. */
static bool read_npy(const char *literal, uint64_t data_bytes, foreign_layout *layout)
{
    uint8_t file[1024] = "\x93NUMPY\1";
    foreign_memory memory;
    size_t n_padded = (10 + strlen(literal) + 63) / 64 * 64 - 10;
    memset(file + 10, ' ', n_padded);
    for (size_t i = 0; literal[i]; i++)
        file[10 + i] = (uint8_t)literal[i];
    put_number(file + 8, n_padded, 2);
    foreign_memory_init(&memory, file, sizeof file, 10 + n_padded + data_bytes);
    return foreign_numpy.decode(layout, &(foreign_files){.tokens = &memory.bytes}, &why);
}

TEST(numpy_headers_that_are_taken)
{
    static const struct {
        const char *literal;
        uint64_t data_bytes, n_tokens;
    } cases[] = {
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (3,), }\n", 6, 3},
        {"{'descr': '<u4', 'fortran_order': True, 'shape': (3,)}\n", 12, 3},
        {"{\"shape\":(3L,),\"fortran_order\":False,\"descr\":\"<i4\"}", 12, 3},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (0,), }", 0, 0},
        {"{'descr': '<u2', 'fortran_order': False, 'shape': (4611686018427387904,), }", 1ULL << 63,
         1ULL << 62},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        foreign_layout layout;
        if (!read_npy(cases[i].literal, cases[i].data_bytes, &layout))
            CHECK_FAIL("%s: %s", cases[i].literal, why.text);
        CHECK_EQ(layout.n_tokens, cases[i].n_tokens);
        CHECK_EQ(layout.token_offset % 64, 0);
        CHECK_INT(layout.is_signed, strstr(cases[i].literal, "i4") != NULL);
    }
}

TEST(numpy_header_longer_than_the_file_is_refused)
{
    uint8_t file[16] = "\x93NUMPY\2";
    foreign_memory memory;
    foreign_layout layout;
    static const uint32_t lengths[] = {5, 16384, 16385, 1u << 31, UINT32_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        put_number(file + 8, lengths[i], 4);
        foreign_memory_init(&memory, file, sizeof file, sizeof file);
        CHECK(!foreign_numpy.decode(&layout, &(foreign_files){.tokens = &memory.bytes}, &why));
    }
    file[6] = 4;
    CHECK(!foreign_numpy.decode(&layout, &(foreign_files){.tokens = &memory.bytes}, &why));
    CHECK_SAYS(why.text, "version 4.0");
}

/* ---- OLMo's table ---- */

static bool read_csv(const char *text, uint64_t n_tokens, foreign_counter *counter)
{
    foreign_csv csv = {.n_tokens = n_tokens};
    foreign_sink sink = {foreign_counter_add, counter};
    *counter = (foreign_counter){0};
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        n = strcspn(text, "\n");
        if (!foreign_csv_line(&csv, text, n, &sink, &why))
            return false;
    }
    return foreign_csv_end(&csv, &why);
}

TEST(csv_rows_that_cover_the_tokens)
{
    foreign_counter counter;
    CHECK(read_csv("0,2\n2,2\n2,5\n", 5, &counter));
    CHECK_EQ(counter.n_documents, 3);
    CHECK(read_csv("0,2,\"x, \"\"y\"\"\n3,4\",z\r\n2,5,,", 5, &counter));
    CHECK_EQ(counter.n_documents, 2);
    CHECK_EQ(counter.last, 3);
    CHECK(read_csv("", 0, &counter));
}

TEST(csv_rows_that_do_not_are_refused)
{
    static const char *const cases[] = {"0,2\n3,5\n",
                                        "0,3\n2,5\n",
                                        "1,5\n",
                                        "0,6\n",
                                        "0,2\n",
                                        "0,3\n3,2\n2,5\n",
                                        "start,end\n0,5\n",
                                        "0\n",
                                        "0,\n",
                                        ",5\n",
                                        "0,5,\"open\n",
                                        "0,18446744073709551621\n",
                                        "-0,5\n",
                                        "\"0\",5\n",
                                        ""};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        foreign_counter counter;
        if (read_csv(cases[i], 5, &counter))
            CHECK_FAIL("\"%s\" was taken", cases[i]);
        CHECK_SAYS(why.text, ".csv.gz");
    }
}

/* ---- Recognising, scanning ---- */

TEST(recognises_files_by_their_first_bytes)
{
    static const struct {
        const char *head;
        size_t n_head;
        const char *kind;
    } cases[] = {
        {"\x28\xb5\x2f\xfd", 4, "zstd"}, {"\x1f\x8b\x08\x00", 4, "gzip"},
        {"PAR1", 4, "Parquet"},          {"\x89TMI\r\n\x1a\n", 8, "tokmap index"},
        {"\x93NUMPY", 6, "NumPy"},       {"MMIDIDX\0\0", 9, "Megatron"},
        {"TNTIDX\0\0", 8, "fairseq"},    {"PK\3\4", 4, "zip"},
        {"LITPKDS", 7, "lit-gpt"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t head[FOREIGN_HEAD_BYTES] = {0};
        memcpy(head, cases[i].head, cases[i].n_head);
        const char *kind = foreign_other_kind(head, sizeof head, 4096);
        CHECK(kind != NULL && strstr(kind, cases[i].kind) != NULL);
        CHECK(foreign_other_kind(head, cases[i].n_head - 1, 4096) == NULL);
    }
    /* The tokens 35615, 65288: the first two bytes of gzip alone do not make a gzip file. */
    CHECK(foreign_other_kind((const uint8_t *)"\x1f\x8b\x08\xff", 4, 4) == NULL);
}

TEST(scan_finds_the_same_boundaries_in_every_position)
{
    enum {
        N = 200
    };
    for (uint32_t token_bytes = 2; token_bytes <= 4; token_bytes += 2) {
        for (int at = 0; at < N; at++) {
            uint16_t u16[N];
            uint32_t u32[N];
            for (int i = 0; i < N; i++)
                u16[i] = (uint16_t)(u32[i] = i == at ? 7 : 8);
            for (int begins = 0; begins < 2; begins++) {
                foreign_layout layout = {.token_bytes = token_bytes, .boundary_id = 7};
                layout.boundaries = begins ? FOREIGN_BOUNDARIES_BEGIN : FOREIGN_BOUNDARIES_END;
                foreign_counter counter = {0};
                foreign_sink sink = {foreign_counter_add, &counter};
                foreign_scan scan;
                foreign_scan_begin(&scan, &layout);
                CHECK(foreign_scan_feed(&scan, token_bytes == 2 ? (void *)u16 : (void *)u32, N,
                                        &sink, &why));
                CHECK(foreign_scan_end(&scan, &sink));
                int last = begins ? N - at : N - 1 - at;
                bool is_cut = begins ? at > 0 : last > 0;
                CHECK_EQ(counter.n_documents, is_cut ? 2 : 1);
                CHECK_EQ(counter.last, is_cut ? (uint64_t)last : N);
                CHECK_EQ(counter.n_tokens, N);
            }
        }
    }
}

TEST(scan_names_the_place_of_a_negative_id)
{
    enum {
        N = 200
    };
    uint32_t ids[N] = {0};
    foreign_layout layout = {.token_bytes = 4, .is_signed = true, .token_offset = 128};
    foreign_sink sink = {foreign_counter_add, NULL};
    for (int at = 0; at < N; at++) {
        char place[64];
        foreign_scan scan;
        memset(ids, 0, sizeof ids);
        ids[at] = UINT32_MAX - 4;
        foreign_scan_begin(&scan, &layout);
        CHECK(!foreign_scan_feed(&scan, ids, N, &sink, &why));
        snprintf(place, sizeof place, "id -5 at token %d (byte %d)", at, 128 + 4 * at);
        CHECK_SAYS(why.text, place);
        layout.is_signed = false;
        foreign_scan_begin(&scan, &layout);
        CHECK(foreign_scan_feed(&scan, ids, N, &sink, &why));
        layout.is_signed = true;
    }
}
