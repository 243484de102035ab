/* SPDX-License-Identifier: Apache-2.0 */
/* test_tokenizer_library.c - libtokmap_tokenizer: its ids are those of one encoder, however
 * many threads there are; errors name the first wrong text; and what a caller may do wrong. */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>

#include "tokenizer/load_model.h"

#include "support/faults.h"
#include "support/must.h"
#include "tokenizer/library/library.h"
#include "tokmap_tokenizer.h"

/* ---- Tokenizers ---- */

static void write_file(const char *name, const blob *b)
{
    CHECK(file_store(check_path(name), b->data, b->n_bytes));
}

static void put_rank(blob *b, const char *token, size_t n_bytes, unsigned rank)
{
    put_base64(b, (const uint8_t *)token, n_bytes);
    put_text(b, " %u\n", rank);
}

/* Byte-level BPE with few merges. */
static void write_ranks(void)
{
    static const char *const merged[] = {"th", "he", "the", " t", " the", "in", "aa", "aaaa", " a"};
    blob b = {0};
    for (unsigned i = 0; i < 256; i++) {
        const char byte = (char)i;
        put_rank(&b, &byte, 1, i);
    }
    for (unsigned i = 0; i < N_ELEMENTS(merged); i++)
        put_rank(&b, merged[i], strlen(merged[i]), 256 + i);
    write_file("ranks.tiktoken", &b);
    blob_free(&b);
    put_text(&b, "{\"<|end|>\": 300, \"<|endoftext|>\": 301}");
    write_file("specials.json", &b);
    blob_free(&b);
}

static void write_words(void)
{
    blob b = {0};
    put_text(&b,
             "{\"added_tokens\": [], \"normalizer\": null, \"decoder\": {\"type\": \"WordPiece\", "
             "\"prefix\": \"##\", \"cleanup\": false}, "
             "\"pre_tokenizer\": {\"type\": \"Whitespace\"}, "
             "\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"[U]\", "
             "\"continuing_subword_prefix\": \"##\", \"max_input_chars_per_word\": 9, "
             "\"vocab\": {\"[U]\": 0, \"the\": 1, \"t\": 2, \"##h\": 3, \"a\": 4, \"##a\": 5}}}");
    write_file("words.json", &b);
    blob_free(&b);
}

/* One sum of scores over the whole text, so its parts have to be encoded in order. */
static void write_unigram(void)
{
    blob b = {0};
    put_text(&b,
             "{\"added_tokens\": [], \"normalizer\": null, \"pre_tokenizer\": null, \"decoder\": "
             "null, \"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [[\"<unk>\", 0], "
             "[\"a\", -1.1], [\"aa\", -2.2], [\"t\", -1.3], [\"h\", -1.7], [\"th\", -3], "
             "[\" \", -0.3], [\" the\", -2.9], [\"e\", -1]]}}");
    write_file("unigram.json", &b);
    blob_free(&b);
}

/* With NFC, a blank before the text and U+2581 for blanks: BPE over characters. */
static void write_marks(void)
{
    blob b = {0};
    put_text(&b, "{\"added_tokens\": [], \"pre_tokenizer\": null, \"normalizer\": {\"type\": "
                 "\"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": \"Prepend\", "
                 "\"prepend\": \"" MARK "\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": "
                 "\" \"}, \"content\": \"" MARK "\"}]}, \"decoder\": {\"type\": \"Sequence\", "
                 "\"decoders\": [{\"type\": \"ByteFallback\"}, {\"type\": \"Metaspace\", "
                 "\"replacement\": \"" MARK "\"}]}, \"model\": {\"type\": \"BPE\", "
                 "\"byte_fallback\": true, \"unk_token\": \"<unk>\", \"merges\": [\"t h\", "
                 "\"th e\", \"" MARK " the\", \"a a\"], \"vocab\": {");
    for (unsigned i = 0; i < 256; i++)
        put_text(&b, "\"<0x%02X>\": %u, ", i, i);
    put_text(&b,
             "\"<unk>\": 256, \"" MARK "\": 257, \"t\": 258, \"h\": 259, \"e\": 260, \"a\": 261, "
             "\"th\": 262, \"the\": 263, \"" MARK "the\": 264, \"aa\": 265}}}");
    write_file("marks.json", &b);
    blob_free(&b);
}

typedef struct family {
    const char *name, *pattern, *specials;
} family;

static const family families[] = {
    {"bytes", NULL, NULL},      {"ranks.tiktoken", "gpt2:any", "specials.json"},
    {"words.json", NULL, NULL}, {"unigram.json", NULL, NULL},
    {"marks.json", NULL, NULL},
};

static tokmap_tokenizer *open_family(const family *f)
{
    tokmap_tokenizer *t;
    tokmap_error error;
    tokmap_tokenizer_options options = TOKMAP_INIT(tokmap_tokenizer_options);
    options.pattern = f->pattern;
    options.specials_file = f->specials ? check_path(f->specials) : NULL;
    write_ranks();
    write_words();
    write_unigram();
    write_marks();
    const char *path = strcmp(f->name, "bytes") == 0 ? f->name : check_path(f->name);
    if (tokmap_tokenizer_open(&t, path, &options, &error))
        CHECK_FAIL("%s: %s", f->name, error.text);
    return t;
}

/* ---- Texts ---- */

static tokmap_text random_text(size_t n_bytes)
{
    static const char *const parts[] = {"the ", "a",      "aaaa",   " in ", "\n", "th",
                                        "12 ",  "\u00e9", "\u4e00", ".",    "t "};
    blob b = {0};
    while (b.n_bytes < n_bytes) {
        const char *part = parts[check_below(N_ELEMENTS(parts))];
        put(&b, part, strlen(part));
    }
    return (tokmap_text){(const char *)b.data, b.n_bytes};
}

enum {
    N_TEXTS = 400
};

/* Short, empty and long ones. */
static void make_texts(tokmap_text texts[N_TEXTS])
{
    for (size_t i = 0; i < N_TEXTS; i++)
        texts[i] = random_text(i % 7 == 0 ? 0 : check_below(3000));
    free((void *)(uintptr_t)texts[100].bytes);
    texts[100] = random_text(11 * JOB_BYTES + 17);
    free((void *)(uintptr_t)texts[101].bytes);
    texts[101] = random_text(JOB_BYTES + 1);
    free((void *)(uintptr_t)texts[N_TEXTS - 1].bytes);
    texts[N_TEXTS - 1] = random_text(3 * JOB_BYTES);
}

static void free_texts(tokmap_text *texts, size_t n)
{
    for (size_t i = 0; i < n; i++)
        free((void *)(uintptr_t)texts[i].bytes);
}

static tokmap_encode_options options_of(const tokmap_text *texts, size_t n, uint32_t n_threads)
{
    return (tokmap_encode_options){.struct_size = sizeof(tokmap_encode_options),
                                   .texts = texts,
                                   .n_texts = n,
                                   .text_stride = sizeof *texts,
                                   .n_threads = n_threads};
}

static void free_encoding(tokmap_encoding *e)
{
    tokmap_encoding_free(e);
    CHECK(!e->ids && !e->offsets && !e->token_offsets && e->n_ids == 0);
    CHECK_EQ(e->struct_size, sizeof *e);
}

/* ---- Ids ---- */

static void expect_ranges(const tokmap_tokenizer *t, const encoded_text *text,
                          const tokmap_byte_range *ranges)
{
    byte_range *want = calloc(text->n_ids + 1, sizeof *want);
    size_t place;
    CHECK(want != NULL);
    CHECK(!tokenizer_find_ranges(t->file.tokenizer, text, want, &place));
    CHECK(text->n_ids == 0 || memcmp(ranges, want, text->n_ids * sizeof *want) == 0);
    free(want);
}

/* Each text in one piece. ranges: of all ids, to compare with, if they were asked for. */
static void encode_plainly(const tokmap_tokenizer *t, const tokmap_encode_options *o,
                           id_buffer *ids, int64_t *offsets, const tokmap_byte_range *ranges)
{
    const encoder_options options = {.specials = (specials_policy)o->specials};
    encoder *e = encoder_new(t->file.tokenizer, &options);
    CHECK(e != NULL);
    offsets[0] = 0;
    for (size_t i = 0; i < o->n_texts; i++) {
        uint8_t *copy = calloc(o->texts[i].n_bytes + TEXT_PADDING, 1);
        CHECK(copy != NULL);
        if (o->texts[i].n_bytes)
            memcpy(copy, o->texts[i].bytes, o->texts[i].n_bytes);
        CHECK(encoder_encode(e, copy, o->texts[i].n_bytes, ids) == TOKENIZE_OK);
        offsets[i + 1] = (int64_t)ids->n;
        const size_t first = (size_t)offsets[i];
        const encoded_text text = {.text = copy,
                                   .n_bytes = o->texts[i].n_bytes,
                                   .drop_specials = o->specials == TOKMAP_SPECIALS_DROP,
                                   .take_specials = o->specials == TOKMAP_SPECIALS_MATCH,
                                   .ids = ids->ids ? ids->ids + first : NULL,
                                   .n_ids = ids->n - first};
        if (o->token_offsets)
            expect_ranges(t, &text, ranges + first);
        free(copy);
    }
    encoder_free(e);
}

static void expect_plain_ids(tokmap_tokenizer *t, const tokmap_encode_options *o)
{
    id_buffer want = {0};
    tokmap_error error;
    int64_t *offsets = malloc((o->n_texts + 1) * sizeof *offsets);
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    CHECK(offsets != NULL);
    CHECK_INT(tokmap_tokenizer_encode(t, o, &e, &error), TOKMAP_OK);
    encode_plainly(t, o, &want, offsets, e.token_offsets);
    CHECK_EQ(e.n_ids, want.n);
    CHECK(memcmp(e.offsets, offsets, (o->n_texts + 1) * sizeof *offsets) == 0);
    CHECK(want.n == 0 || memcmp(e.ids, want.ids, want.n * sizeof *want.ids) == 0);
    free_encoding(&e);
    id_buffer_free(&want);
    free(offsets);
}

TEST(ids_do_not_depend_on_threads)
{
    static tokmap_text texts[N_TEXTS];
    make_texts(texts);
    for (size_t f = 0; f < N_ELEMENTS(families); f++) {
        tokmap_tokenizer *t = open_family(&families[f]);
        for (uint32_t n_threads = 0; n_threads < 5; n_threads += check_sanitized() ? 3 : 1) {
            tokmap_encode_options o = options_of(texts, N_TEXTS, n_threads);
            o.specials = (tokmap_specials)(n_threads % 2);
            o.token_offsets = !tokenizer_get_info(t->file.tokenizer)->no_ranges;
            CHECK_INT(o.token_offsets, f != 2 && f != 3);
            expect_plain_ids(t, &o);
        }
        tokmap_tokenizer_close(t);
    }
    free_texts(texts, N_TEXTS);
}

TEST(no_texts_and_empty_texts)
{
    const tokmap_text texts[] = {{NULL, 0}, {"", 0}};
    tokmap_tokenizer *t = open_family(&families[1]);
    for (size_t n = 0; n <= 2; n++) {
        tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
        const tokmap_encode_options o = options_of(n ? texts : NULL, n, 0);
        CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
        CHECK(e.n_ids == 0 && e.ids && e.offsets && e.offsets[0] == 0 && e.offsets[n] == 0);
        free_encoding(&e);
    }
    tokmap_tokenizer_close(t);
}

/* The first text has four bytes for each id, the second one; memory is taken for as many as in the
 * call before. */
TEST(more_ids_than_expected_find_room)
{
    enum {
        N_BYTES = 40 * (128 << 10)
    };
    char *bytes = malloc(N_BYTES);
    CHECK(bytes != NULL);
    tokmap_tokenizer *t = open_family(&families[1]);
    for (uint32_t n_threads = 1; n_threads <= 3; n_threads++) {
        tokmap_text text = {bytes, N_BYTES};
        const tokmap_encode_options o = options_of(&text, 1, n_threads);
        for (size_t k = 0; k < 2; k++) {
            for (size_t i = 0; i < N_BYTES; i++)
                bytes[i] = i % 60 == 0 ? ' ' : k == 0 ? 'a' : 'b';
            expect_plain_ids(t, &o);
        }
    }
    tokmap_tokenizer_close(t);
    free(bytes);
}

TEST(texts_may_be_inside_larger_structs)
{
    const struct {
        tokmap_text text;
        uint64_t other;
    } documents[] = {{{"the", 3}, 1}, {{"a", 1}, 2}};
    tokmap_tokenizer *t = open_family(&families[1]);
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    tokmap_encode_options o = options_of(&documents[0].text, 2, 0);
    o.text_stride = sizeof *documents;
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
    CHECK(e.n_ids == 2 && e.ids[0] == 258 && e.ids[1] == 'a' && e.offsets[1] == 1);
    free_encoding(&e);
    tokmap_tokenizer_close(t);
}

/* ---- Threads and processes ---- */

typedef struct encoding_thread {
    pthread_t thread;
    tokmap_tokenizer *t;
    const tokmap_encode_options *o;
    uint64_t n_ids, sum;
} encoding_thread;

static void *encode_often(void *arg)
{
    encoding_thread *own = arg;
    for (int i = 0; i < 10; i++) {
        tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
        if (tokmap_tokenizer_encode(own->t, own->o, &e, NULL))
            return NULL;
        own->n_ids = e.n_ids;
        own->sum = 0;
        for (uint64_t k = 0; k < e.n_ids; k++)
            own->sum = own->sum * 31 + e.ids[k];
        free_encoding(&e);
    }
    return NULL;
}

TEST(threads_share_a_tokenizer)
{
    encoding_thread threads[4];
    tokmap_text texts[3] = {random_text(3 * JOB_BYTES), random_text(100), random_text(0)};
    const tokmap_encode_options o = options_of(texts, 3, 2);
    for (size_t f = 1; f < N_ELEMENTS(families); f += 2) {
        tokmap_tokenizer *t = open_family(&families[f]);
        for (size_t i = 0; i < 4; i++) {
            threads[i] = (encoding_thread){.t = t, .o = &o};
            CHECK_INT(pthread_create(&threads[i].thread, NULL, encode_often, &threads[i]), 0);
        }
        for (size_t i = 0; i < 4; i++)
            pthread_join(threads[i].thread, NULL);
        for (size_t i = 0; i < 4; i++)
            CHECK(threads[i].n_ids > 0 && threads[i].sum == threads[0].sum);
        tokmap_tokenizer_close(t);
    }
    free_texts(texts, 3);
}

TEST(a_child_process_goes_on_while_threads_of_the_parent_encode)
{
    if (check_sanitized())
        SKIP("a sanitizer's threads do not survive a fork");
    tokmap_text text = random_text(2 * JOB_BYTES);
    const tokmap_encode_options o = options_of(&text, 1, 2);
    tokmap_tokenizer *t = open_family(&families[1]);
    encoding_thread other = {.t = t, .o = &o};
    CHECK_INT(pthread_create(&other.thread, NULL, encode_often, &other), 0);
    for (int i = 0; i < 20; i++) {
        const pid_t child = fork();
        if (child == 0) {
            tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
            _exit(tokmap_tokenizer_encode(t, &o, &e, NULL) == TOKMAP_OK && e.n_ids > 0 ? 0 : 1);
        }
        must_end(child);
    }
    pthread_join(other.thread, NULL);
    tokmap_tokenizer_close(t);
    free_texts(&text, 1);
}

/* ---- Wrong texts ---- */

static void expect_wrong(tokmap_tokenizer *t, const tokmap_encode_options *o, tokmap_status status,
                         const char *text)
{
    tokmap_encoding e = {.struct_size = sizeof e, .n_ids = 7};
    tokmap_error error;
    CHECK_INT(tokmap_tokenizer_encode(t, o, &e, &error), status);
    CHECK_STR(error.text, text);
    CHECK(error.status == status && !e.ids && e.n_ids == 0 && !e.offsets);
}

TEST(the_first_text_that_is_not_utf8_is_named)
{
    static tokmap_text texts[N_TEXTS];
    make_texts(texts);
    char *later = (char *)(uintptr_t)texts[N_TEXTS - 1].bytes;
    char *first = (char *)(uintptr_t)texts[100].bytes;
    const size_t at = 7 * JOB_BYTES + 5;
    later[9] = (char)0xC0;
    size_t wrong = at; /* the start of the character that is destroyed */
    while ((first[wrong] & 0xC0) == 0x80)
        wrong--;
    first[at] = (char)0xFF;
    tokmap_tokenizer *t = open_family(&families[2]);
    for (uint32_t n_threads = 0; n_threads < 5; n_threads++) {
        char text[100];
        const tokmap_encode_options o = options_of(texts, N_TEXTS, n_threads);
        snprintf(text, sizeof text, "byte %zu of text number 100 is not valid UTF-8", wrong);
        expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, text);
    }
    tokmap_tokenizer_close(t);
    t = open_family(&families[1]); /* takes bytes */
    const tokmap_encode_options o = options_of(texts, N_TEXTS, 2);
    expect_plain_ids(t, &o);
    tokmap_tokenizer_close(t);
    free_texts(texts, N_TEXTS);
}

TEST(an_incomplete_character_at_the_end_is_refused)
{
    const tokmap_text texts[] = {{"a", 1}, {"aa\xe4\xb8", 4}, {"\x80", 1}};
    tokmap_tokenizer *t = open_family(&families[3]);
    const tokmap_encode_options o = options_of(texts, 3, 0);
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "byte 2 of text number 1 is not valid UTF-8");
    tokmap_tokenizer_close(t);
}

TEST(specials_are_text_matched_refused_or_dropped)
{
    const tokmap_text texts[] = {{"a", 1}, {"the<|end|>a", 11}};
    tokmap_tokenizer *t = open_family(&families[1]);
    tokmap_encode_options o = options_of(texts, 2, 0);
    static const uint64_t n_ids[] = {
        [TOKMAP_SPECIALS_TEXT] = 10, [TOKMAP_SPECIALS_MATCH] = 4, [TOKMAP_SPECIALS_DROP] = 3};
    for (int k = 0; k < 4; k++) {
        o.specials = (tokmap_specials)k;
        if (k == TOKMAP_SPECIALS_ERROR) {
            expect_wrong(t, &o, TOKMAP_ERR_MISMATCH,
                         "byte 3 of text number 1 begins the special token <|end|>");
            continue;
        }
        tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
        CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
        CHECK_EQ(e.n_ids, n_ids[k]);
        free_encoding(&e);
        expect_plain_ids(t, &o);
    }
    tokmap_tokenizer_close(t);
}

TEST(offsets_of_tokens)
{
    static const tokmap_text texts[] = {{"the<|end|>a\xc3\xa9", 13}, {" the", 4}};
    static const tokmap_byte_range want[][10] = {
        {{0, 3}, {3, 10}, {10, 11}, {11, 12}, {12, 13}, {0, 4}},
        {{0, 3}, {10, 11}, {11, 12}, {12, 13}, {0, 4}},
        /* The first U+2581 is not in the text. */
        {{0, 3}, {3, 4}, {4, 5}, {5, 6}, {6, 7}, {7, 8}, {8, 9}, {9, 10}, {10, 11}, {11, 12}}};
    for (size_t i = 0; i < 3; i++) {
        tokmap_tokenizer *t = open_family(&families[i == 2 ? 4 : 1]);
        tokmap_encode_options o = options_of(texts, 2, 0);
        tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
        o.specials = i == 1 ? TOKMAP_SPECIALS_DROP : TOKMAP_SPECIALS_MATCH;
        o.token_offsets = 1;
        CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
        CHECK(memcmp(e.token_offsets, want[i],
                     (i == 0   ? 6
                      : i == 1 ? 5
                               : 10) *
                         sizeof **want) == 0);
        const tokmap_byte_range *last = &e.token_offsets[e.n_ids - 1];
        CHECK(last->begin == 0 && last->end == 4);
        CHECK(i < 2 || (last[-1].begin == 0 && last[-1].end == 0 && last[-2].end == 13));
        free_encoding(&e);
        tokmap_tokenizer_close(t);
    }
}

TEST(texts_and_tokenizers_without_offsets_are_named)
{
    const tokmap_text texts[] = {{"a \xc3\xa9", 4}, {"a e\xcc\x81", 5}};
    tokmap_encode_options o = options_of(texts, 2, 0);
    o.token_offsets = 1;
    tokmap_tokenizer *t = open_family(&families[4]);
    expect_wrong(t, &o, TOKMAP_ERR_UNSUPPORTED,
                 "cannot give offsets: byte 2 of text number 1: its tokens do not spell the text");
    tokmap_encoding older = {.struct_size = offsetof(tokmap_encoding, token_offsets)};
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &older, NULL), TOKMAP_ERR_ARGUMENT);
    o.token_offsets = 0;
    o.n_texts = 0;
    older.token_offsets = (tokmap_byte_range *)&o; /* is not the caller's */
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &older, NULL), TOKMAP_OK);
    tokmap_encoding_free(&older);
    CHECK(!older.ids && older.token_offsets == (tokmap_byte_range *)&o);
    o.token_offsets = 1;
    o.n_texts = 2;
    tokmap_tokenizer_close(t);
    t = open_family(&families[2]);
    tokmap_error error;
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, &error), TOKMAP_ERR_UNSUPPORTED);
    CHECK(strstr(error.text, "cannot give offsets: its tokens are not written as in the text"));
    o.token_offsets = 2;
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "token_offsets is 2: must be 0 or 1");
    tokmap_tokenizer_close(t);
}

TEST(a_text_that_a_normalizer_makes_too_long_is_named)
{
    static char many[600];
    blob b = {0};
    memset(many, 'a', sizeof many);
    put_text(&b,
             "{\"added_tokens\": [], \"normalizer\": {\"type\": \"Replace\", \"pattern\": "
             "{\"String\": \"a\"}, \"content\": \"%02000d\"}, ",
             0);
    put_text(&b,
             "\"model\": {\"type\": \"WordLevel\", \"unk_token\": \"[U]\", \"vocab\": {\"[U]\": 0, "
             "\"the\": 1}}, \"pre_tokenizer\": {\"type\": \"Whitespace\"}}");
    write_file("grows.json", &b);
    blob_free(&b);
    const family own = {"grows.json", NULL, NULL};
    tokmap_tokenizer *t = open_family(&own);
    const tokmap_text texts[] = {{"the", 3}, {many, 100}, {many, sizeof many}};
    tokmap_encode_options o = options_of(texts, 3, 0);
    expect_wrong(t, &o, TOKMAP_ERR_UNSUPPORTED,
                 "text number 2: the normalizer of the tokenizer makes more than 64 bytes of each "
                 "byte of it, and 1 MiB, or more than 4 GiB in all");
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    o.n_texts = 2;
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
    CHECK(e.n_ids == 2 && e.ids[0] == 1 && e.ids[1] == 0);
    free_encoding(&e);
    tokmap_tokenizer_close(t);
}

static size_t allocated_bytes(void)
{
    const struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* U+FDFA becomes 18 characters. */
TEST(a_long_text_leaves_no_buffers)
{
    blob b = {0};
    if (check_sanitized())
        SKIP("a sanitizer allocates in its own way");
    put_text(&b, "{\"added_tokens\": [], \"normalizer\": {\"type\": \"Sequence\", \"normalizers\": "
                 "[{\"type\": \"NFKD\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \"x\"}, "
                 "\"content\": \"yy\"}]}, \"model\": {\"type\": \"WordLevel\", \"unk_token\": "
                 "\"[U]\", \"vocab\": {\"[U]\": 0}}, \"pre_tokenizer\": {\"type\": "
                 "\"Whitespace\"}}");
    write_file("long.json", &b);
    blob_free(&b);
    const family own = {"long.json", NULL, NULL};
    tokmap_tokenizer *t = open_family(&own);
    enum {
        N_BYTES = 3 << 20
    };
    char *text = malloc(N_BYTES);
    for (size_t i = 0; i < N_BYTES; i++)
        text[i] = "\xEF\xB7\xBA"[i % 3];
    for (unsigned long_one = 0; long_one < 2; long_one++) {
        const size_t before = allocated_bytes();
        const tokmap_text texts[] = {{text, long_one ? N_BYTES : 30}};
        tokmap_encode_options o = options_of(texts, 1, 0);
        tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
        CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
        CHECK(e.n_ids > 0);
        free_encoding(&e);
        const size_t after = allocated_bytes();
        if (long_one && after > before + (6 << 20))
            CHECK_FAIL("%zu bytes are kept", after - before);
    }
    free(text);
    tokmap_tokenizer_close(t);
}

TEST(wrong_options_are_refused)
{
    const tokmap_text text = {"a", 1}, null = {NULL, 1};
    tokmap_tokenizer *t = open_family(&families[0]);
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    tokmap_encode_options o = options_of(&text, 1, 0);
    o.struct_size = 0;
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT,
                 "tokmap_encode_options: struct_size is 0: set it to its sizeof");
    o = options_of(&text, 1, 0);
    o.text_stride = 0;
    expect_wrong(
        t, &o, TOKMAP_ERR_ARGUMENT,
        "stride of tokmap_text is 0: begin with the initializer of the options, or set it to "
        "sizeof(tokmap_text)");
    o = options_of(&text, 1, 1025);
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "n_threads is 1025: at most 1024");
    const tokmap_text too_long = {"a", ((size_t)2 << 30) + 1};
    o = options_of(&too_long, 1, 0);
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT,
                 "text number 0 has 2147483649 bytes: at most 2147483648");
    const tokmap_text longest[] = {{"a", (size_t)2 << 30}, null};
    o = options_of(longest, 2, 0);
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "text number 1 is NULL");
    o = options_of(&text, 1, 0);
    o.specials = (tokmap_specials)4;
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "specials is 4: no such value");
    o = options_of(NULL, 1, 0);
    o.text_stride = sizeof text;
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "texts is NULL");
    o = options_of(&null, 1, 0);
    expect_wrong(t, &o, TOKMAP_ERR_ARGUMENT, "text number 0 is NULL");
    expect_wrong(t, NULL, TOKMAP_ERR_ARGUMENT, "tokmap_encode_options is NULL");
    o = options_of(&text, 1, 0);
    expect_wrong(NULL, &o, TOKMAP_ERR_ARGUMENT, "the tokenizer is NULL");
    CHECK_INT(tokmap_tokenizer_encode(t, &o, NULL, NULL), TOKMAP_ERR_ARGUMENT);
    e.struct_size = 3;
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_tokenizer_close(t);
    tokmap_tokenizer_close(NULL);
    tokmap_memory_free(NULL);
    tokmap_encoding_free(NULL);
}

/* ---- Info and decode ---- */

TEST(info_and_tokens)
{
    tokmap_text text;
    tokmap_tokenizer *t = open_family(&families[1]);
    tokmap_tokenizer_info info = TOKMAP_INIT(tokmap_tokenizer_info);
    CHECK_INT(tokmap_tokenizer_get_info(t, &info), TOKMAP_OK);
    CHECK_EQ(info.vocab_size, 302);
    CHECK(info.eod_id == 301 && info.eod_is_guess == 1 && !info.eod_reason);
    CHECK(info.bos_id == TOKMAP_NO_ID && info.takes_bytes && info.decodes);
    CHECK_STR(info.bos_reason,
              "the tokenizer ranks.tiktoken does not say which token begins a document");
    CHECK_STR(info.family, "byte-level BPE");
    CHECK_INT(tokmap_tokenizer_token(t, 258, &text), TOKMAP_OK);
    CHECK(text.n_bytes == 3 && memcmp(text.bytes, "the", 3) == 0);
    CHECK_INT(tokmap_tokenizer_token(t, 299, &text), TOKMAP_ERR_ARGUMENT);
    CHECK(!text.bytes && text.n_bytes == 0);
    CHECK_EQ(tokmap_tokenizer_find(t, "<|end|>", 7), 300);
    CHECK_EQ(tokmap_tokenizer_find(t, " the", 4), 260);
    CHECK_EQ(tokmap_tokenizer_find(t, "xyz", 3), TOKMAP_NO_ID);
    info.struct_size = 0;
    CHECK_INT(tokmap_tokenizer_get_info(t, &info), TOKMAP_ERR_ARGUMENT);
    CHECK_STR(tokmap_tokenizer_version(), TOKMAP_VERSION_TEXT);
    tokmap_tokenizer_close(t);
}

TEST(several_ends_of_documents_are_none)
{
    blob b = {0};
    put_text(&b, "{\"eos_token_id\": [260, 301]}");
    write_file("generation_config.json", &b);
    blob_free(&b);
    put_text(&b,
             "{\"added_tokens\": [], \"model\": {\"type\": \"WordLevel\", \"unk_token\": \"[U]\", "
             "\"vocab\": {\"[U]\": 0, \"the\": 260, \"a\": 301}}, "
             "\"pre_tokenizer\": {\"type\": \"Whitespace\"}}");
    write_file("tokenizer.json", &b);
    blob_free(&b);
    const family own = {"tokenizer.json", NULL, NULL};
    tokmap_tokenizer_info info = TOKMAP_INIT(tokmap_tokenizer_info);
    tokmap_tokenizer *t = open_family(&own);
    CHECK_INT(tokmap_tokenizer_get_info(t, &info), TOKMAP_OK);
    CHECK_EQ(info.eod_id, TOKMAP_NO_ID);
    CHECK_STR(info.eod_reason,
              "tokenizer.json: more than one token may be the one that ends a document: "
              "\"the\" (260, generation_config.json) and \"a\" (301, generation_config.json)");
    tokmap_tokenizer_close(t);
    put_text(&b, "{\"eos_token_id\": [260, 7]}");
    write_file("generation_config.json", &b);
    blob_free(&b);
    t = open_family(&own);
    CHECK_INT(tokmap_tokenizer_get_info(t, &info), TOKMAP_OK);
    CHECK(info.eod_id == TOKMAP_NO_ID && strstr(info.eod_reason, "no such token"));
    tokmap_tokenizer_close(t);
}

TEST(ids_become_text_again)
{
    tokmap_error error;
    tokmap_text out, text = random_text(5000);
    tokmap_tokenizer *t = open_family(&families[1]);
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    const tokmap_encode_options o = options_of(&text, 1, 0);
    CHECK_INT(tokmap_tokenizer_encode(t, &o, &e, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_tokenizer_decode(t, e.ids, e.n_ids, &out, &error), TOKMAP_OK);
    CHECK(out.n_bytes == text.n_bytes && memcmp(out.bytes, text.bytes, text.n_bytes) == 0);
    CHECK(out.bytes[out.n_bytes] == '\0');
    tokmap_memory_free(out.bytes);
    e.ids[3] = 299;
    CHECK_INT(tokmap_tokenizer_decode(t, e.ids, e.n_ids, &out, &error), TOKMAP_ERR_ARGUMENT);
    CHECK_STR(error.text, "id number 3: the tokenizer ranks.tiktoken has no token with the id 299");
    CHECK(!out.bytes && out.n_bytes == 0);
    CHECK_INT(tokmap_tokenizer_decode(t, NULL, 0, &out, &error), TOKMAP_OK);
    CHECK(out.bytes && out.n_bytes == 0);
    tokmap_memory_free(out.bytes);
    CHECK_INT(tokmap_tokenizer_decode(t, NULL, 1, &out, &error), TOKMAP_ERR_ARGUMENT);
    free_encoding(&e);
    tokmap_tokenizer_close(t);
    free_texts(&text, 1);
}

/* ---- Open ---- */

static void expect_no_open(const char *path, const char *pattern, tokmap_status status,
                           const char *text)
{
    tokmap_error error;
    tokmap_tokenizer *t;
    tokmap_tokenizer_options options = TOKMAP_INIT(tokmap_tokenizer_options);
    options.pattern = pattern;
    CHECK_INT(tokmap_tokenizer_open(&t, path, &options, &error), status);
    CHECK(!t);
    CHECK_SAYS(error.text, text);
}

TEST(files_that_are_no_tokenizers_are_refused)
{
    tokmap_tokenizer *t;
    tokmap_error error;
    write_ranks();
    expect_no_open(check_path("none"), NULL, TOKMAP_ERR_IO, "none: No such file");
    CHECK_INT(tokmap_tokenizer_open(&t, check_path("none"), NULL, &error), TOKMAP_ERR_IO);
    CHECK_INT(error.sys_errno, ENOENT);
    CHECK(file_store(check_path("large.json"), "", 0));
    CHECK(truncate(check_path("large.json"), (1 << 30) + 1) == 0);
    expect_no_open(check_path("large.json"), NULL, TOKMAP_ERR_IO,
                   "large.json: is larger than 1 GiB");
    expect_no_open(check_dir(), NULL, TOKMAP_ERR_IO, ": is a folder without tokenizer.json");
    expect_no_open(check_path("ranks.tiktoken"), NULL, TOKMAP_ERR_UNSUPPORTED,
                   "this file has ranks but no pattern; name one with pattern (gpt2, ");
    expect_no_open(check_path("ranks.tiktoken"), "x", TOKMAP_ERR_UNSUPPORTED,
                   "ranks.tiktoken: pattern x is unknown; the names are gpt2, ");
    expect_no_open(check_path("specials.json"), NULL, TOKMAP_ERR_UNSUPPORTED, "specials.json: ");
    expect_no_open("bytes", "gpt2", TOKMAP_ERR_ARGUMENT,
                   "pattern works only with a tokenizer file");
    expect_no_open(NULL, NULL, TOKMAP_ERR_ARGUMENT, "path is NULL");
    CHECK_INT(tokmap_tokenizer_open(NULL, "bytes", NULL, NULL), TOKMAP_ERR_ARGUMENT);
}

/* ---- No memory ---- */

#if FAULT_MEMORY_WORKS
/* Open, encode, decode, close. Returns the status of what failed. */
static tokmap_status run_all(const family *f, const tokmap_encode_options *o)
{
    tokmap_text text = {0};
    tokmap_tokenizer *t;
    tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);
    tokmap_tokenizer_options options = TOKMAP_INIT(tokmap_tokenizer_options);
    options.pattern = f->pattern;
    tokmap_status status = tokmap_tokenizer_open(&t, check_path(f->name), &options, NULL);
    if (!status)
        status = tokmap_tokenizer_encode(t, o, &e, NULL);
    if (!status)
        status = tokmap_tokenizer_decode(t, e.ids, e.n_ids, &text, NULL);
    tokmap_memory_free(text.bytes);
    tokmap_encoding_free(&e);
    tokmap_tokenizer_close(t);
    return status;
}
#endif

TEST(memory_that_runs_out_is_an_error_and_nothing_is_lost)
{
#if FAULT_MEMORY_WORKS
    tokmap_text texts[3] = {random_text(2 * JOB_BYTES), random_text(100), random_text(0)};
    for (size_t k = 0; k < 4 * (N_ELEMENTS(families) - 1); k++) {
        if (!check_long() && (k % 4 == 1 || k % 4 == 2))
            continue;
        const family *f = &families[1 + k / 4];
        tokmap_encode_options o = options_of(texts, 3, 1 + (uint32_t)(k % 2));
        o.token_offsets = k / 4 == 0 || k / 4 == 3; /* the others have none */
        const fault_mode mode = k % 4 < 2 ? FAULT_FROM_THEN_ON : FAULT_ONCE;
        tokmap_tokenizer_close(open_family(f)); /* writes the files */
        bool fired = true;
        uint64_t n = 1;
        for (; fired; n += check_sanitized() ? 5 : 1) {
            const int64_t before = fault_n_live;
            fault_arm(mode, FAULT_MEMORY | FAULT_MMAP, ENOMEM, n);
            const tokmap_status status = run_all(f, &o);
            fired = fault_disarm();
            /* A fault may be harmless: a thread, or an advance, that is not needed. */
            if (status != TOKMAP_OK && (status != TOKMAP_ERR_MEMORY || !fired))
                CHECK_FAIL("%s, allocation %" PRIu64 ": status %d", f->name, n, (int)status);
            if (o.n_threads == 1) /* the C library keeps memory for threads */
                CHECK_INT(fault_n_live, before);
        }
        CHECK(n > 30);
    }
    free_texts(texts, 3);
#else
    SKIP("a sanitizer has its own memory");
#endif
}
