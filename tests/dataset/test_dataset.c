/* SPDX-License-Identifier: Apache-2.0 */
/* Opening and reading datasets, one and several, through the public header. */
#include "support/check.h"
#include "support/must.h"

#include "tokmap_writer.h"

/* n_documents documents; document d holds d % 7 tokens, token t of the dataset has id t % 1000. */
static void make(const char *prefix, uint64_t n_documents, uint64_t vocab_size)
{
    tokmap_error err;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = vocab_size, .has_eod = 1, .eod_id = 999};
    tokmap_writer *w = must_begin(prefix, &options);
    uint32_t id = 0;
    for (uint64_t d = 0; d < n_documents; d++) {
        for (uint64_t i = 0; i < d % 7; i++) {
            CHECK_INT(tokmap_writer_append(w, &id, 1, &err), TOKMAP_OK);
            id = (id + 1) % 1000;
        }
        CHECK_INT(tokmap_writer_end_document(w, &err), TOKMAP_OK);
    }
    CHECK_INT(tokmap_writer_end_input(w, "one", 1, 2, &err), TOKMAP_OK);
    must_finish(w);
}

TEST(prefix_index_and_token_file_open_the_same_dataset)
{
    make(check_path("a.b"), 10, 1000);
    static const char *const names[] = {"a.b", "a.b.tmi", "a.b.bin"};
    for (int i = 0; i < 3; i++) {
        tokmap_dataset *ds = must_open(check_path(names[i]));
        const tokmap_dataset_info info = must_info(ds);
        CHECK_STR(info.index_path, check_path("a.b.tmi"));
        CHECK_STR(info.token_path, check_path("a.b.bin"));
        tokmap_dataset_close(ds);
    }
}

TEST(a_file_beside_the_index_is_not_taken_for_its_tokens)
{
    make(check_path("x"), 10, 1000);
    tokmap_dataset *ds = (tokmap_dataset *)1;
    tokmap_error err;
    CHECK_INT(tokmap_dataset_open(&ds, check_path("x.npy"), &err), TOKMAP_ERR_MISMATCH);
    CHECK(ds == NULL);
    CHECK(strstr(err.text, "x.npy") && strstr(err.text, "x.bin"));
}

TEST(an_index_that_is_opened_alone_opens_its_tokens_later)
{
    make(check_path("i"), 1000, 1000);
    tokmap_dataset *ds;
    tokmap_error err;
    const void *view;
    uint16_t copy[10];
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    CHECK_INT(rename(check_path("i.bin"), check_path("away")), 0);
    CHECK_INT(tokmap_dataset_open(&ds, check_path("i"), &err), TOKMAP_ERR_IO);
    CHECK_INT(tokmap_dataset_open_index(&ds, check_path("i"), &err), TOKMAP_OK);
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.n_tokens, 2997); /* 142 times 0+1+...+6, and then 0+...+5 */
    CHECK_EQ(info.token_file_bytes, 2 * 2997);
    CHECK_STR(info.token_path, check_path("i.bin"));
    CHECK_INT(tokmap_dataset_tokens(ds, 0, 10, &view), TOKMAP_ERR_IO);
    CHECK_INT(tokmap_dataset_read(ds, 0, 10, copy, &err), TOKMAP_ERR_IO);
    CHECK_SAYS(err.text, "i.bin: cannot open: No such file");
    CHECK_INT(tokmap_dataset_verify(ds, NULL, &report, &err), TOKMAP_ERR_IO);
    CHECK_EQ(report.n_damages, 1);
    CHECK_INT(rename(check_path("away"), check_path("i.bin")), 0);
    CHECK_INT(tokmap_dataset_tokens(ds, 1000, 10, &view), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_read(ds, 1000, 10, copy, &err), TOKMAP_OK);
    CHECK(memcmp(view, copy, sizeof copy) == 0);
    CHECK_INT(tokmap_dataset_verify(ds, NULL, NULL, &err), TOKMAP_OK);
    tokmap_dataset_close(ds);
}

TEST(tokens_and_reads_keep_to_the_range)
{
    make(check_path("r"), 1000, 1000);
    tokmap_dataset *ds = must_open(check_path("r"));
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.n_tokens, 2997);
    const void *view;
    uint16_t copy[2997];
    tokmap_error err;
    CHECK_INT(tokmap_dataset_tokens(ds, 0, 2997, &view), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_read(ds, 0, 2997, copy, &err), TOKMAP_OK);
    CHECK(memcmp(view, copy, sizeof copy) == 0);
    for (int i = 0; i < 2997; i++)
        CHECK_EQ(copy[i], i % 1000);
    CHECK_INT(tokmap_dataset_tokens(ds, 2997, 0, &view), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_tokens(ds, 2997, 1, &view), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_tokens(ds, 1, UINT64_MAX, &view), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_read(ds, 2996, 2, copy, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_document doc;
    CHECK_INT(tokmap_dataset_document(ds, 1000, &doc), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_find_document(ds, 2997, &doc), TOKMAP_ERR_ARGUMENT);
    tokmap_input_info input = TOKMAP_INIT(tokmap_input_info);
    CHECK_INT(tokmap_dataset_get_input(ds, 0, &input), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_get_input(ds, 1, &input), TOKMAP_ERR_ARGUMENT);
    CHECK(input.name_bytes == 3 && memcmp(input.name, "one", 3) == 0);
    CHECK_EQ(input.n_documents, 1000);
    tokmap_dataset_close(ds);
}

TEST(a_caller_without_macros_gets_the_same_structs)
{
    tokmap_dataset_info info;
    const tokmap_dataset_info wanted = TOKMAP_INIT(tokmap_dataset_info);
    const uint8_t *bytes = (const uint8_t *)&info;
    memset(&info, 0xaa, sizeof info);
    tokmap_struct_init(&info, sizeof info);
    CHECK_EQ(info.struct_size, wanted.struct_size);
    for (size_t i = sizeof info.struct_size; i < sizeof info; i++)
        CHECK_EQ(bytes[i], 0);
    memset(&info, 0xaa, sizeof info);
    tokmap_struct_init(&info, 16);
    CHECK_EQ(info.struct_size, 16);
    CHECK_EQ(info.n_tokens, 0);
    CHECK_EQ(info.n_documents, 0xaaaaaaaaaaaaaaaa);
    tokmap_struct_init(&info, 4);
    CHECK_EQ(info.struct_size, 16);
    tokmap_struct_init(NULL, 16);
    CHECK_EQ(tokmap_version_number(), TOKMAP_VERSION_NUMBER);
    CHECK_EQ(TOKMAP_VERSION_NUMBER,
             TOKMAP_VERSION_MAJOR * 1000000 + TOKMAP_VERSION_MINOR * 1000 + TOKMAP_VERSION_PATCH);
}

TEST(a_path_of_a_list_may_not_be_null)
{
    const char *const paths[2] = {"a", NULL};
    uint8_t chosen[2];
    tokmap_error err;
    CHECK_REFUSED(tokmap_dataset_choose_paths(paths, 2, chosen, &err), TOKMAP_ERR_ARGUMENT, err,
                  "path 1 is NULL");
}

TEST(a_caller_built_against_an_older_header_gets_what_it_knows)
{
    make(check_path("o"), 3, 1000);
    tokmap_dataset *ds = must_open(check_path("o"));
    tokmap_dataset_info info;
    memset(&info, 0xaa, sizeof info);
    info.struct_size = offsetof(tokmap_dataset_info, vocab_size);
    CHECK_INT(tokmap_dataset_get_info(ds, &info), TOKMAP_OK);
    CHECK_EQ(info.n_documents, 3);
    CHECK_EQ(info.vocab_size, 0xaaaaaaaaaaaaaaaa);
    info.struct_size = 0;
    CHECK_INT(tokmap_dataset_get_info(ds, &info), TOKMAP_ERR_ARGUMENT);
    tokmap_dataset_close(ds);
}

TEST(a_caller_built_against_a_newer_header_gets_zeros_for_the_rest)
{
    struct {
        tokmap_dataset_info known;
        uint8_t more[24];
    } info;
    make(check_path("n"), 3, 1000);
    tokmap_dataset *ds = must_open(check_path("n"));
    memset(&info, 0xaa, sizeof info);
    info.known.struct_size = sizeof info;
    CHECK_INT(tokmap_dataset_get_info(ds, &info.known), TOKMAP_OK);
    CHECK_EQ(info.known.struct_size, sizeof info);
    CHECK_EQ(info.known.n_documents, 3);
    for (size_t i = 0; i < sizeof info.more; i++)
        CHECK_INT(info.more[i], 0);
    tokmap_dataset_close(ds);
}

TEST(same_content_has_the_same_id_and_other_boundaries_another)
{
    make(check_path("i1"), 100, 1000);
    make(check_path("i2"), 100, 50257); /* the vocabulary is not content */
    make(check_path("i3"), 99, 1000);
    make(check_path("i4"), 100, 70000); /* nor is the width of a token */
    tokmap_dataset_info info[4];
    for (int i = 0; i < 4; i++) {
        char name[] = "i1";
        name[1] = (char)('1' + i);
        tokmap_dataset *ds = must_open(check_path(name));
        info[i].struct_size = sizeof info[i];
        tokmap_dataset_get_info(ds, &info[i]);
        tokmap_dataset_close(ds);
    }
    CHECK(memcmp(info[0].dataset_id, info[1].dataset_id, 16) == 0);
    CHECK_EQ(info[3].token_bytes, 4);
    CHECK(memcmp(info[0].dataset_id, info[3].dataset_id, 16) == 0);
    CHECK(memcmp(info[0].dataset_id, info[2].dataset_id, 16) != 0);
}

TEST(every_status_has_its_own_words)
{
    for (int a = TOKMAP_ERR_STOPPED; a <= TOKMAP_END; a++) {
        CHECK(strcmp(tokmap_status_text(a), tokmap_status_text(99)) != 0);
        for (int b = TOKMAP_ERR_STOPPED; b < a; b++)
            CHECK(strcmp(tokmap_status_text(a), tokmap_status_text(b)) != 0);
    }
}

TEST(close_takes_null)
{
    tokmap_dataset_close(NULL);
    tokmap_writer_close(NULL);
}
