/* SPDX-License-Identifier: Apache-2.0 */
/* test_loader_tokenizers - datasets of different tokenizers are refused by name, unless an option
 * says that they may differ. */
#include "support/loader_corpus.h"
#include "support/must.h"

#define FILE_A "\"name\": \"a.json\", \"file_xxh3\": \"01\""
#define TOKENIZER(...)                                                                             \
    "{\"created_by\": \"tokenizer\", \"x\": {\"tokenizer\": 1}, \"tokenizer\": {" __VA_ARGS__ "}}"

/* Two datasets, and whether their ids may mean different things. */
static const struct pair {
    const char *metadata[2];
    uint64_t vocab_size[2];
    bool differ;
} pairs[] = {
    {{"{}", TOKENIZER("\"name\": \"bytes\"")}, {257, 50257}, false},
    {{TOKENIZER("\"name\": \"bytes\""), TOKENIZER("\"name\":\"bytes\" ")}, {257, 257}, false},
    {{TOKENIZER("\"name\": \"bytes\""), TOKENIZER("\"name\": \"words\"")}, {257, 257}, true},
    {{TOKENIZER("\"name\": \"bytes\""), TOKENIZER("\"name\": \"bytes\"")}, {257, 300}, true},
    {{TOKENIZER("\"name\": \"bytes\""), TOKENIZER("\"name\": \"bytes\"")}, {257, 0}, false},
    {{TOKENIZER("\"name\": \"bytes\""), TOKENIZER(FILE_A)}, {0, 0}, true},
    {{TOKENIZER(FILE_A),
      TOKENIZER("\"file_xxh3\" : \"01\", \"name\": \"moved\", \"unicode\": \"16\"")},
     {9, 9},
     false},
    {{TOKENIZER(FILE_A), TOKENIZER("\"name\": \"a.json\", \"file_xxh3\": \"02\"")}, {9, 9}, true},
    {{TOKENIZER(FILE_A), TOKENIZER(FILE_A ", \"merges_xxh3\": \"03\"")}, {9, 9}, true},
    {{TOKENIZER(FILE_A), TOKENIZER(FILE_A ", \"specials_xxh3\": \"03\"")}, {9, 9}, true},
    {{TOKENIZER(FILE_A ", \"pattern\": \"gpt2\""), TOKENIZER(FILE_A ", \"pattern\": \"o200k\"")},
     {9, 9},
     true},
    {{TOKENIZER(FILE_A), TOKENIZER(FILE_A ", \"x\": \"\\\", \\\"file_xxh3\\\": \\\"02\"")},
     {9, 9},
     false},
    /* what is no JSON names no tokenizer */
    {{"{\"tokenizer\": \"a", TOKENIZER(FILE_A)}, {9, 10}, false},
    {{"\"tokenizer\": 1}", TOKENIZER(FILE_A)}, {9, 10}, false},
    {{"{\"tokenizer\\", TOKENIZER(FILE_A)}, {9, 10}, false},
    {{"{\"tokenizer\": \"a\"}", "{\"tokenizer\": \"b\"}"}, {9, 9}, true},
};

static tokmap_dataset *make(const char *name, const char *metadata, uint64_t vocab_size)
{
    char path[600];
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = vocab_size, .token_bytes = 2, .replace = 1};
    const uint32_t ids[8] = {1, 2, 3};
    snprintf(path, sizeof path, "%s/%s", check_dir(), name);
    tokmap_writer *w = must_begin(path, &options);
    CHECK_INT(tokmap_writer_append(w, ids, 8, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_set_metadata(w, metadata, strlen(metadata), NULL), TOKMAP_OK);
    must_finish(w);
    return must_open(path);
}

/* As shards of one source, or as two sources. */
static tokmap_status open_both(tokmap_dataset *const *datasets, uint32_t n_sources, int32_t mixed,
                               tokmap_error *err)
{
    const tokmap_loader_source sources[2] = {
        {.datasets = datasets, .n_datasets = 3 - n_sources, .weight = 1},
        {.datasets = datasets + 1, .n_datasets = 1, .weight = 1}};
    const tokmap_loader_options o = {.struct_size = sizeof o,
                                     .sources = sources,
                                     .n_sources = n_sources,
                                     .source_stride = sizeof(tokmap_loader_source),
                                     .row_stride = sizeof(tokmap_row),
                                     .sequence_length = 3,
                                     .batch_rows = 1,
                                     .mixed_tokenizers = mixed};
    tokmap_loader *l;
    const tokmap_status status = tokmap_loader_open(&l, &o, err);
    tokmap_loader_close(l);
    return status;
}

TEST(datasets_of_different_tokenizers_are_refused_unless_they_may_differ)
{
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        tokmap_dataset *const datasets[2] = {
            make("a", pairs[i].metadata[0], pairs[i].vocab_size[0]),
            make("b", pairs[i].metadata[1], pairs[i].vocab_size[1])};
        tokmap_dataset *const both[2] = {datasets[0], datasets[1]};
        const tokmap_status wanted = pairs[i].differ ? TOKMAP_ERR_MISMATCH : TOKMAP_OK;
        tokmap_error err;
        if (tokmap_dataset_check_tokenizers(both, 2, &err) != wanted)
            CHECK_FAIL("pair %zu: %s", i, err.text);
        CHECK(!wanted || (strstr(err.text, "/a.tmi") && strstr(err.text, "/b.tmi")));
        for (uint32_t n_sources = 1; n_sources <= 2; n_sources++) {
            CHECK_INT(open_both(both, n_sources, 0, &err), wanted);
            CHECK(!wanted || strstr(err.text, "mixed_tokenizers"));
            CHECK_INT(open_both(both, n_sources, 1, &err), TOKMAP_OK);
        }
        tokmap_dataset_close(datasets[0]);
        tokmap_dataset_close(datasets[1]);
    }
}

TEST(what_cannot_be_compared_is_refused)
{
    tokmap_dataset *none[1] = {NULL};
    tokmap_error err;
    CHECK_INT(tokmap_dataset_check_tokenizers(NULL, 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_check_tokenizers(NULL, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_check_tokenizers(none, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(open_both(none, 1, 2, &err), TOKMAP_ERR_ARGUMENT);
}

/* 80 bytes, the first of which is the quotation mark. */
TEST(of_a_long_name_80_bytes_are_shown)
{
    char name[91], metadata[300], wanted[100];
    tokmap_error err;
    memset(name, 'a', 90);
    memcpy(name + 78, "bc", 3);
    snprintf(metadata, sizeof metadata, TOKENIZER("\"name\": \"%s\""), name);
    tokmap_dataset *a = make("a", metadata, 9);
    tokmap_dataset *b = make("b", TOKENIZER("\"name\": \"words\""), 9);
    tokmap_dataset *const both[] = {a, b};
    CHECK_INT(tokmap_dataset_check_tokenizers(both, 2, &err), TOKMAP_ERR_MISMATCH);
    snprintf(wanted, sizeof wanted, "\"%.79s", name);
    CHECK_SAYS(err.text, wanted);
    CHECK(strstr(err.text, "bc") == NULL);
    tokmap_dataset_close(a);
    tokmap_dataset_close(b);
}
