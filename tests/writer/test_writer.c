/* SPDX-License-Identifier: Apache-2.0 */
/* The writer: its promises about names, adopting and merging. (fuzz_writer has its rules.) */
#include "support/check.h"

#include <sys/stat.h>

#include "support/bad_days.h"
#include "support/joined.h"
#include "support/must.h"

static const tokmap_writer_options plain = {
    .struct_size = sizeof plain, .vocab_size = 1000, .eod_id = TOKMAP_NO_ID};

static bool exists(const char *name)
{
    return file_is_there(check_path(name));
}

static void add(tokmap_writer *w, uint32_t n_tokens, uint32_t first_id)
{
    for (uint32_t i = 0; i < n_tokens; i++) {
        const uint32_t id = (first_id + i) % 1000;
        CHECK_INT(tokmap_writer_append(w, &id, 1, NULL), TOKMAP_OK);
    }
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
}

TEST(close_without_finish_leaves_nothing)
{
    tokmap_writer *w = must_begin(check_path("a"), &plain);
    add(w, 100, 0);
    CHECK(exists("a.bin.partial") && exists("a.tmi.partial") && !exists("a.tmi"));
    tokmap_writer_close(w);
    CHECK(rmdir(check_dir()) == 0);
    CHECK(mkdir(check_dir(), 0777) == 0);
}

TEST(what_is_there_is_refused_unless_it_may_be_replaced)
{
    tokmap_writer *w = must_begin(check_path("e"), &plain);
    add(w, 1, 0);
    must_finish(w);
    tokmap_error err;
    CHECK_INT(tokmap_writer_open(&w, check_path("e.bin"), &plain, &err), TOKMAP_ERR_EXISTS);
    CHECK(w == NULL && !exists("e.tmi.partial"));
    tokmap_writer_options replace = plain;
    replace.replace = 1;
    w = must_begin(check_path("e.tmi"), &replace);
    add(w, 2, 0);
    must_finish(w);
    tokmap_dataset *ds = must_be_sound(check_path("e"));
    const tokmap_dataset_info info = must_info(ds);
    CHECK_EQ(info.n_tokens, 2);
    tokmap_dataset_close(ds);
    CHECK(unlink(check_path("e.tmi")) == 0); /* now e.bin is a file that is not ours */
    CHECK_INT(tokmap_writer_open(&w, check_path("e"), &plain, &err), TOKMAP_ERR_EXISTS);
}

TEST(a_lock_file_with_a_second_name_loses_this_one_and_is_closed)
{
    const unsigned n_before = n_open_files();
    CHECK(file_store(check_path("other"), (const uint8_t *)"kept", 4));
    CHECK(link(check_path("other"), check_path("n.tmi.partial")) == 0);
    tokmap_writer *w = must_begin(check_path("n"), &plain);
    add(w, 3, 0);
    must_finish(w);
    CHECK_EQ(n_open_files(), n_before);
    file_bytes other = file_load(check_path("other"));
    CHECK(other.n_bytes == 4 && memcmp(other.data, "kept", 4) == 0);
    free(other.data);
}

TEST(the_vocabulary_decides_the_width_unless_told)
{
    static const struct {
        uint64_t vocab_size;
        uint32_t asked, width;
    } cases[] = {{65536, 0, 2},      {65537, 0, 4}, {1, 0, 2},
                 {1ull << 31, 0, 4}, {100, 4, 4},   {0, 2, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tokmap_writer_options options = {.struct_size = sizeof options,
                                         .vocab_size = cases[i].vocab_size,
                                         .eod_id = TOKMAP_NO_ID,
                                         .replace = 1,
                                         .token_bytes = cases[i].asked};
        tokmap_writer *w = must_begin(check_path("w"), &options);
        const uint32_t id = 0;
        CHECK_INT(tokmap_writer_append(w, &id, 1, NULL), TOKMAP_OK);
        must_finish(w);
        tokmap_dataset *ds = must_be_sound(check_path("w"));
        const tokmap_dataset_info info = must_info(ds);
        CHECK_EQ(info.token_bytes, cases[i].width);
        CHECK_EQ(info.vocab_size, cases[i].vocab_size);
        tokmap_dataset_close(ds);
    }
}

TEST(the_largest_id_of_two_bytes_may_end_documents)
{
    const tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 65536, .has_eod = 1, .eod_id = UINT16_MAX};
    tokmap_writer *w = must_begin(check_path("eod"), &o);
    CHECK_INT(tokmap_writer_append(w, &(const uint32_t){UINT16_MAX}, 1, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset *ds = must_be_sound(check_path("eod"));
    const tokmap_dataset_info info = must_info(ds);
    CHECK(info.token_bytes == 2 && info.eod_id == UINT16_MAX);
    tokmap_dataset_close(ds);
}

TEST(options_that_cannot_be_are_refused)
{
    const tokmap_writer_options bad[] = {
        {.struct_size = sizeof bad[0], .vocab_size = 0, .eod_id = TOKMAP_NO_ID},
        {.struct_size = sizeof bad[0], .vocab_size = (1ull << 31) + 1, .eod_id = TOKMAP_NO_ID},
        {.struct_size = sizeof bad[0], .vocab_size = 100, .has_eod = 1, .eod_id = 100},
        {.struct_size = sizeof bad[0],
         .vocab_size = 100,
         .has_eod = 1,
         .eod_id = 5,
         .token_bytes = 3},
        {.struct_size = sizeof bad[0], .has_eod = 1, .eod_id = 65536, .token_bytes = 2},
        {.struct_size = 4, .vocab_size = 100, .has_eod = 1, .eod_id = 5},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        tokmap_writer *w = NULL;
        CHECK_INT(tokmap_writer_open(&w, check_path("o"), &bad[i], NULL), TOKMAP_ERR_ARGUMENT);
        CHECK(w == NULL);
    }
    tokmap_writer *w = NULL;
    CHECK_INT(tokmap_writer_open(&w, check_path(""), &plain, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_writer_open(&w, ".bin", &plain, NULL), TOKMAP_OK); /* a prefix, if odd */
    tokmap_writer_close(w);
}

TEST(an_id_out_of_range_is_named_and_the_writer_stays_failed)
{
    tokmap_writer *w = must_begin(check_path("i"), &plain);
    add(w, 10, 0);
    const uint32_t ids[3] = {1, 999, 1000};
    tokmap_error err, again;
    CHECK_INT(tokmap_writer_append(w, ids, 3, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "token 12 (document 1) has id 1000");
    CHECK_INT(tokmap_writer_append(w, ids, 2, &again), TOKMAP_ERR_ARGUMENT);
    CHECK_STR(again.text, err.text);
    CHECK_INT(tokmap_writer_finish(w, &again), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    CHECK(!exists("i.bin") && !exists("i.tmi") && !exists("i.bin.partial"));
}

TEST(a_forked_child_cannot_write_to_the_files_of_its_parent)
{
    tokmap_writer *w = must_begin(check_path("f"), &plain);
    add(w, 3, 0);
    const pid_t child = fork();
    if (child == 0) {
        const uint32_t id = 1;
        int ok = tokmap_writer_append(w, &id, 1, NULL) == TOKMAP_ERR_FORKED;
        ok &= tokmap_writer_finish(w, NULL) == TOKMAP_ERR_FORKED;
        tokmap_writer_close(w);
        _exit(!ok);
    }
    must_end(child);
    must_finish(w);
}

TEST(after_finish_only_close_is_left)
{
    tokmap_writer *w = must_begin(check_path("f"), &plain);
    add(w, 3, 0);
    CHECK_INT(tokmap_writer_finish(w, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_writer_finish(w, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    tokmap_dataset_close(must_be_sound(check_path("f")));
    CHECK(!exists("f.tmi.partial") && !exists("f.bin.partial"));
}

TEST(same_calls_write_the_same_bytes_however_the_tokens_are_cut)
{
    enum {
        N = 1500000
    };
    uint32_t *ids = malloc(N * sizeof *ids);
    for (uint32_t i = 0; i < N; i++)
        ids[i] = i * 7 % 1000;
    uint8_t first_id[16];
    for (uint32_t step = 1; step <= N; step = step * 37 + 11) {
        tokmap_writer_options options = plain;
        options.replace = 1;
        tokmap_writer *w = must_begin(check_path("c"), &options);
        for (uint32_t done = 0; done < N; done += step) {
            const uint32_t n = step < N - done ? step : N - done;
            CHECK_INT(tokmap_writer_append(w, ids + done, n, NULL), TOKMAP_OK);
        }
        CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
        must_finish(w);
        tokmap_dataset *ds = must_be_sound(check_path("c"));
        const tokmap_dataset_info info = must_info(ds);
        if (step == 1)
            memcpy(first_id, info.dataset_id, 16);
        CHECK(memcmp(first_id, info.dataset_id, 16) == 0);
        tokmap_dataset_close(ds);
    }
    free(ids);
}

/* Writes documents of ids, one by one, or some at a time of which the first one was begun. */
static void write_documents(const char *name, const uint32_t *ids, const uint64_t *lengths,
                            size_t n_documents, uint32_t token_bytes, bool at_once)
{
    tokmap_writer_options options = plain;
    options.token_bytes = token_bytes;
    tokmap_writer *w = must_begin(check_path(name), &options);
    for (size_t d = 0, n; d < n_documents; d += n) {
        uint64_t part[300], n_tokens = 0;
        n = at_once ? 1 + check_below(300) : 1;
        if (n > n_documents - d)
            n = n_documents - d;
        for (size_t i = 0; i < n; i++)
            n_tokens += part[i] = lengths[d + i];
        const uint64_t begun = at_once ? check_below((uint32_t)part[0] + 1) : n_tokens;
        CHECK_INT(tokmap_writer_append(w, ids, begun, NULL), TOKMAP_OK);
        part[0] -= begun;
        ids += begun;
        n_tokens -= begun;
        if (!at_once) {
            CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
            continue;
        }
        void *tokens = malloc(n_tokens * token_bytes + 1);
        for (uint64_t i = 0; i < n_tokens && token_bytes == 2; i++)
            ((uint16_t *)tokens)[i] = (uint16_t)ids[i];
        if (token_bytes == 4)
            memcpy(tokens, ids, n_tokens * 4);
        CHECK_INT(tokmap_writer_append_documents(w, tokens, n_tokens, part, n, NULL), TOKMAP_OK);
        CHECK_EQ(tokmap_writer_n_documents(w), d + n);
        ids += n_tokens;
        free(tokens);
    }
    CHECK_INT(tokmap_writer_append_documents(w, NULL, 0, NULL, 0, NULL), TOKMAP_OK);
    must_finish(w);
}

TEST(documents_at_once_are_those_that_end_one_by_one)
{
    enum {
        N_DOCUMENTS = 4000
    };
    uint64_t lengths[N_DOCUMENTS], n_tokens = 0;
    for (size_t d = 0; d < N_DOCUMENTS; d++) /* a few are larger than what is written at once */
        n_tokens += lengths[d] = check_one_in(1500) ? 1200000 + check_below(9)
                                 : check_one_in(5)  ? 0
                                                    : check_below(900);
    uint32_t *ids = malloc((n_tokens + 1) * sizeof *ids);
    for (uint64_t i = 0; i < n_tokens; i++)
        ids[i] = check_below(1000);
    for (uint32_t token_bytes = 2; token_bytes <= 4; token_bytes += 2) {
        write_documents("one", ids, lengths, N_DOCUMENTS, token_bytes, false);
        write_documents("many", ids, lengths, N_DOCUMENTS, token_bytes, true);
        for (int k = 0; k < 2; k++) {
            file_bytes one = file_load(check_path(k ? "one.bin" : "one.tmi"));
            CHECK(file_holds(check_path(k ? "many.bin" : "many.tmi"), &one));
            free(one.data);
        }
        tokmap_dataset_close(must_be_sound(check_path("many")));
        CHECK(unlink(check_path("one.tmi")) == 0 && unlink(check_path("one.bin")) == 0);
        CHECK(unlink(check_path("many.tmi")) == 0 && unlink(check_path("many.bin")) == 0);
    }
    free(ids);
}

TEST(documents_at_once_that_cannot_be_are_refused)
{
    static const struct {
        uint16_t bad_id;
        size_t n_tokens, n_documents;
        const char *says;
    } cases[] = {{1000, 6, 3, "token 14 (document 3) has id 1000: must be below 1000"},
                 {5, 7, 3, "do not add up to n_tokens, which is 7"},
                 {5, 5, 3, "do not add up to n_tokens, which is 5"},
                 {5, 1, 0, "do not add up to n_tokens, which is 1"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tokmap_writer *w = must_begin(check_path("r"), &plain);
        add(w, 10, 0);
        const uint16_t tokens[7] = {1, 2, 3, 4, cases[i].bad_id, 6, 7};
        const uint64_t lengths[3] = {4, 0, 2};
        tokmap_error err;
        CHECK_INT(tokmap_writer_append_documents(w, tokens, cases[i].n_tokens, lengths,
                                                 cases[i].n_documents, &err),
                  TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, cases[i].says);
        CHECK_INT(tokmap_writer_finish(w, NULL), TOKMAP_ERR_ARGUMENT);
        tokmap_writer_close(w);
    }
    tokmap_writer *w = must_begin(check_path("r"), &plain);
    const uint64_t most[2] = {UINT64_MAX, 2}; /* whose sum would be 1 */
    CHECK_INT(tokmap_writer_append_documents(w, &(uint16_t){1}, 1, most, 2, NULL),
              TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
}

TEST(adopting_gives_the_id_of_the_same_content_written)
{
    tokmap_writer *w = must_begin(check_path("n"), &plain);
    add(w, 300, 0);
    add(w, 0, 0);
    add(w, 200, 300);
    must_finish(w);
    tokmap_dataset *ds = must_be_sound(check_path("n"));
    const tokmap_dataset_info native = must_info(ds);
    uint16_t file[512 + 500] = {0};
    CHECK_INT(tokmap_dataset_read(ds, 0, 500, file + 512, NULL), TOKMAP_OK);
    tokmap_dataset_close(ds);
    CHECK(file_store(check_path("h.shard"), file, sizeof file));

    const tokmap_adopt_options options = {.struct_size = sizeof options,
                                          .token_offset = 1024,
                                          .n_tokens = 500,
                                          .token_bytes = 2,
                                          .eod_id = TOKMAP_NO_ID};
    tokmap_error err;
    CHECK_OK(tokmap_writer_adopt(&w, check_path("h.shard"), &options, &err), err);
    const void *tokens;
    size_t n_tokens, n_seen = 0;
    tokmap_status status;
    while ((status = tokmap_writer_scan(w, &tokens, &n_tokens, &err)) == TOKMAP_OK)
        n_seen += n_tokens;
    CHECK_INT(status, TOKMAP_END);
    CHECK_EQ(n_seen, 500);
    CHECK_INT(tokmap_writer_add_document(w, 300, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_document(w, 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_document(w, 200, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_document(w, 1, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    CHECK(!exists("h.tmi"));

    CHECK_INT(tokmap_writer_adopt(&w, check_path("h.shard"), &options, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_ARGUMENT); /* nothing was scanned */
    tokmap_writer_close(w);
    w = must_adopt(check_path("h.shard"), &options);
    CHECK_INT(tokmap_writer_add_document(w, 300, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_document(w, 0, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_add_document(w, 200, &err), TOKMAP_OK);
    must_finish(w);
    ds = must_be_sound(check_path("h.shard"));
    const tokmap_dataset_info adopted = must_info(ds);
    CHECK(memcmp(native.dataset_id, adopted.dataset_id, 16) == 0);
    CHECK_STR(adopted.token_path, check_path("h.shard"));
    tokmap_dataset_close(ds);
}

TEST(adopting_refuses_wrong_sizes_names_and_ids)
{
    const uint16_t ids[4] = {1, 2, 3, 70};
    CHECK(file_store(check_path("s.bin"), ids, sizeof ids));
    CHECK(file_store(check_path("noname"), ids, sizeof ids));
    tokmap_adopt_options o = {
        .struct_size = sizeof o, .n_tokens = 4, .token_bytes = 2, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w;
    tokmap_error err;
    CHECK_INT(tokmap_writer_adopt(&w, check_path("noname"), &o, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_writer_adopt(&w, check_path("absent.bin"), &o, &err), TOKMAP_ERR_IO);
    CHECK(!exists("absent.tmi.partial"));
    o.n_tokens = 3;
    CHECK_INT(tokmap_writer_adopt(&w, check_path("s.bin"), &o, &err), TOKMAP_ERR_MISMATCH);
    o.n_tokens = 4;
    o.vocab_size = 70;
    CHECK_INT(tokmap_writer_adopt(&w, check_path("s.bin"), &o, &err), TOKMAP_OK);
    const void *tokens;
    size_t n_tokens;
    CHECK_INT(tokmap_writer_scan(w, &tokens, &n_tokens, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "token 3 has id 70");
    CHECK_EQ(err.file_offset, 6);
    tokmap_writer_close(w);
    CHECK(!exists("s.tmi") && !exists("s.tmi.partial") && exists("s.bin"));
}

/* v1.bin and v1.npy would share v1.tmi: whoever comes second must not take it from the first. */
TEST(the_index_of_another_token_file_is_never_replaced)
{
    tokmap_writer *w = must_begin(check_path("v1"), &plain);
    add(w, 4, 0);
    must_finish(w);
    const uint16_t ids[2] = {1, 2};
    CHECK(file_store(check_path("v1.npy"), ids, sizeof ids));
    const tokmap_adopt_options adopt = {.struct_size = sizeof adopt,
                                        .n_tokens = 2,
                                        .token_bytes = 2,
                                        .eod_id = TOKMAP_NO_ID,
                                        .replace = 1};
    tokmap_error err;
    CHECK_INT(tokmap_writer_adopt(&w, check_path("v1.npy"), &adopt, &err), TOKMAP_ERR_EXISTS);
    CHECK_SAYS(err.text, "v1.bin");
    tokmap_dataset_close(must_be_sound(check_path("v1")));
    CHECK(!exists("v1.tmi.partial") && !exists("v1.tmi.replaced"));

    CHECK(file_store(check_path("v2.npy"), ids, sizeof ids));
    must_finish(must_adopt(check_path("v2.npy"), &adopt));
    tokmap_writer_options replace = plain;
    replace.replace = 1;
    CHECK_INT(tokmap_writer_open(&w, check_path("v2"), &replace, &err), TOKMAP_ERR_EXISTS);
    CHECK(unlink(check_path("v2.npy")) == 0); /* then the index is not needed */
    w = must_begin(check_path("v2"), &replace);
    add(w, 4, 0);
    must_finish(w);
    tokmap_dataset_close(must_be_sound(check_path("v2")));
    CHECK(!exists("v2.tmi.replaced") && !exists("v2.bin.replaced"));
}

TEST(a_caller_that_sets_no_struct_size_is_told)
{
    tokmap_writer *w;
    tokmap_error err;
    tokmap_writer_options options = plain;
    options.struct_size = 0;
    CHECK_INT(tokmap_writer_open(&w, check_path("z"), &options, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "struct_size");
    w = must_begin(check_path("z"), &plain);
    must_finish(w);
    tokmap_dataset *ds = must_be_sound(check_path("z"));
    const tokmap_verify_options verify = {.fraction = 0.5};
    CHECK_INT(tokmap_dataset_verify(ds, &verify, NULL, &err), TOKMAP_ERR_ARGUMENT);
    tokmap_dataset_close(ds);
}

/* ---- Ids that are 0 ---- */

static uint32_t stored_eod(const tokmap_writer_options *options)
{
    must_finish(must_begin(check_path("zero"), options));
    tokmap_dataset *ds = must_open(check_path("zero"));
    const uint32_t eod_id = must_info(ds).eod_id;
    tokmap_dataset_close(ds);
    return eod_id;
}

/* As in GPT-NeoX, whose documents end with id 0. */
TEST(id_0_ends_documents_only_where_it_is_said)
{
    tokmap_writer *w;
    tokmap_error err;
    tokmap_writer_options o = {.struct_size = sizeof o, .vocab_size = 50277, .replace = 1};
    CHECK_EQ(stored_eod(&o), TOKMAP_NO_ID);
    o.has_eod = 1;
    CHECK_EQ(stored_eod(&o), 0);
    o.has_eod = 2;
    CHECK_INT(tokmap_writer_open(&w, check_path("zero"), &o, &err), TOKMAP_ERR_ARGUMENT);
    o.has_eod = 0;
    o.eod_id = 5;
    CHECK_INT(tokmap_writer_open(&w, check_path("zero"), &o, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "has_eod is 0");
    o.eod_id = TOKMAP_NO_ID;
    CHECK_EQ(stored_eod(&o), TOKMAP_NO_ID);
    o.has_eod = 1;
    CHECK_INT(tokmap_writer_open(&w, check_path("zero"), &o, &err), TOKMAP_ERR_ARGUMENT);
}
