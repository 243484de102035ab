/* SPDX-License-Identifier: Apache-2.0 */
/* Spans of a writer: resumed, joined, and on the pages of their section; redacted documents. */
#include "base/base.h"
#include "dataset/dataset.h"
#include "support/check.h"
#include "tokmap_writer.h"
#include "writer/sections.h"

#include <fcntl.h>

enum {
    N_DOCUMENTS = 300,
    MAX_TOKENS = 20
};
#define PAGE (UINT64_C(1) << TOKMAP_I_SPANS_PAGE_BITS)

static uint32_t lengths[N_DOCUMENTS];
static bool masked[N_DOCUMENTS * MAX_TOKENS];

/* Documents from `first` on, some of which have spans. */
static void make_documents(void)
{
    for (uint32_t d = 0; d < N_DOCUMENTS; d++)
        lengths[d] = check_below(MAX_TOKENS);
    for (uint32_t t = 0; t < N_DOCUMENTS * MAX_TOKENS; t++)
        masked[t] = !check_one_in(3);
}

static tokmap_status write_document(tokmap_writer *w, uint32_t d, tokmap_error *err)
{
    const uint32_t ids[MAX_TOKENS] = {0};
    tokmap_status status = tokmap_writer_append(w, ids, lengths[d], err);
    for (uint32_t i = 0; i < lengths[d] && !status; i++) {
        const tokmap_span one = {i, 1, TOKMAP_SPAN_PROMPT}; /* those that touch become one */
        if (masked[d * MAX_TOKENS + i])
            status = tokmap_writer_add_span(w, &one, err);
    }
    return status ? status : tokmap_writer_end_document(w, err);
}

static void check_spans(const tokmap_dataset *ds, uint32_t n_documents)
{
    for (uint32_t d = 0; d < n_documents; d++) {
        tokmap_document at;
        tokmap_span spans[MAX_TOKENS];
        size_t n = 0, k = 0;
        CHECK_INT(tokmap_dataset_document(ds, d, &at), TOKMAP_OK);
        CHECK_INT(tokmap_dataset_get_spans(ds, at.first_token, at.n_tokens, spans, MAX_TOKENS, &n),
                  TOKMAP_OK);
        const bool *is_masked = masked + d % N_DOCUMENTS * MAX_TOKENS;
        for (uint32_t i = 0; i < at.n_tokens; i++) {
            if (!is_masked[i] || (i > 0 && is_masked[i - 1]))
                continue;
            uint32_t end = i;
            while (end < at.n_tokens && is_masked[end])
                end++;
            CHECK(k < n && spans[k].first_token == at.first_token + i &&
                  spans[k].n_tokens == end - i);
            k++;
        }
        CHECK_EQ(k, n);
    }
}

TEST(spans_are_resumed_and_joined)
{
    tokmap_writer_options o = {.struct_size = sizeof o,
                               .vocab_size = 10,
                               .has_spans = 1,
                               .unfinished = TOKMAP_UNFINISHED_RESUME};
    const char *path = check_path("p"), *joined = check_path("joined");
    tokmap_error err;
    make_documents();
    for (uint32_t d = 0, stop = 0; d < N_DOCUMENTS;) {
        tokmap_writer *w;
        CHECK_OK(tokmap_writer_open(&w, path, &o, &err), err);
        stop = d + 1 + check_below(100);
        stop = MIN(N_DOCUMENTS, stop);
        for (; d < stop; d++)
            CHECK_OK(write_document(w, d, &err), err);
        const tokmap_status status = d == N_DOCUMENTS ? tokmap_writer_finish(w, &err)
                                                      : tokmap_writer_checkpoint(w, NULL, 0, &err);
        CHECK_OK(status, err);
        for (uint32_t k = d; d < N_DOCUMENTS && k < MIN(d + 3, N_DOCUMENTS); k++)
            CHECK_OK(write_document(w, k, &err), err); /* they are lost */
        tokmap_writer_close(w);
    }
    tokmap_dataset *ds;
    tokmap_writer *w;
    CHECK_OK(tokmap_dataset_open(&ds, path, &err), err);
    CHECK_OK(tokmap_dataset_verify(ds, NULL, NULL, &err), err);
    check_spans(ds, N_DOCUMENTS);
    o.unfinished = TOKMAP_UNFINISHED_REFUSE;
    o.has_spans = 0;
    CHECK_OK(tokmap_writer_open_joined(&w, joined, &o, &err), err);
    for (int i = 0; i < 2; i++)
        CHECK_OK(tokmap_writer_join(w, ds, NULL, &err), err);
    CHECK_OK(tokmap_writer_finish(w, &err), err);
    tokmap_writer_close(w);
    tokmap_dataset_close(ds);
    CHECK_OK(tokmap_dataset_open(&ds, joined, &err), err);
    CHECK_OK(tokmap_dataset_verify(ds, NULL, NULL, &err), err);
    check_spans(ds, 2 * N_DOCUMENTS);
    CHECK_OK(tokmap_writer_open(&w, check_path("flat"), &o, &err), err);
    CHECK_OK(tokmap_writer_append_dataset(w, ds, &err), err);
    CHECK_OK(tokmap_writer_finish(w, &err), err);
    tokmap_writer_close(w);
    tokmap_dataset_close(ds);
    CHECK_OK(tokmap_dataset_open(&ds, check_path("flat"), &err), err);
    CHECK_OK(tokmap_dataset_verify(ds, NULL, NULL, &err), err);
    check_spans(ds, 2 * N_DOCUMENTS);
    tokmap_dataset_close(ds);
}

TEST(a_resume_without_spans_is_refused)
{
    tokmap_writer_options o = {
        .struct_size = sizeof o, .vocab_size = 10, .unfinished = TOKMAP_UNFINISHED_RESUME};
    const char *path = check_path("q");
    tokmap_writer *w;
    tokmap_error err;
    make_documents();
    CHECK_OK(tokmap_writer_open(&w, path, &o, &err), err);
    CHECK_OK(tokmap_writer_end_document(w, &err), err);
    CHECK_OK(tokmap_writer_checkpoint(w, NULL, 0, &err), err);
    tokmap_writer_close(w);
    o.has_spans = 1;
    CHECK_REFUSED(tokmap_writer_open(&w, path, &o, &err), TOKMAP_ERR_MISMATCH, err,
                  "without spans");
}

TEST(spans_that_break_a_rule_are_refused)
{
    static const tokmap_span wrong[][2] = {{{0, 2, 0}, {1, 1, 0}},
                                           {{0, 2, 0}, {4, 0, 0}},
                                           {{0, 2, 0}, {4, 1, (tokmap_span_role)255}},
                                           {{0, 2, 0}, {UINT64_MAX, 2, 0}},
                                           {{0, 2, 0}, {4, UINT64_MAX, 0}},
                                           {{0, 2, 0}, {4, 2, 0}}}; /* behind the end */
    const tokmap_writer_options o = {.struct_size = sizeof o, .vocab_size = 10, .replace = 1};
    const uint32_t ids[5] = {0};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tokmap_writer *w;
        tokmap_error err;
        CHECK_OK(tokmap_writer_open(&w, check_path("r"), &o, &err), err);
        CHECK_OK(tokmap_writer_append(w, ids, 5, &err), err);
        tokmap_status status = tokmap_writer_add_span(w, &wrong[i][0], &err);
        CHECK_OK(status, err);
        status = tokmap_writer_add_span(w, &wrong[i][1], &err);
        CHECK_INT(status ? status : tokmap_writer_end_document(w, &err), TOKMAP_ERR_ARGUMENT);
        CHECK_SAYS(err.text, "span");
        tokmap_writer_close(w);
    }
}

/* ---- Pages ---- */

/* The section that the writer makes of spans of documents of 2^32 tokens, about. */
/* Each reserved field alone is looked at. */
static void check_reserved(uint8_t *bytes, uint64_t n_bytes, uint64_t n_tokens)
{
    static const char why[] = "a reserved field of the spans is not zero";
    tokmap_i_spans spans;
    uint8_t head[TOKMAP_I_SPANS_HEAD_BYTES];
    memcpy(head, bytes, sizeof head);
    for (size_t i = 20; i < 24; i++) {
        bytes[i] = 1;
        CHECK_STR(tokmap_i_spans_decode(bytes, n_bytes, n_tokens, &spans), why);
        bytes[i] = 0;
    }
    bytes[17] = 1; /* a role above TOKMAP_I_OWN_ROLES */
    CHECK_STR(tokmap_i_spans_decode(bytes, n_bytes, n_tokens, &spans), why);
    memcpy(bytes, head, sizeof head);
}

TEST(spans_of_any_page_are_found)
{
    static const tokmap_span given[] = {{3, 2, 0},
                                        {PAGE - 1, 2, 0},             /* on two pages */
                                        {PAGE + 5, 3 * PAGE, 1},      /* on four */
                                        {6 * PAGE, PAGE, 2},          /* a whole one */
                                        {8 * PAGE + 1, PAGE - 1, 0}}; /* to the end of one */
    const uint64_t n_tokens = 9 * PAGE + 100;
    tokmap_error err;
    tokmap_i_index_writer *w;
    tokmap_i_header h = {.n_tokens = n_tokens, .token_bytes = 2, .token_suffix = ".bin"};
    const int fd = open(check_path("index"), O_RDWR | O_CREAT, 0666);
    CHECK_OK(tokmap_i_index_writer_open(&w, check_path("index"), fd, &err), err);
    w->has_spans = true;
    CHECK_OK(tokmap_i_index_writer_document(w, n_tokens, &err), err);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++)
        CHECK_OK(tokmap_i_index_writer_span(w, &given[i], &err), err);
    CHECK_OK(tokmap_i_index_writer_finish(w, &h, "{}", 2, &err), err);
    const tokmap_i_section *section = tokmap_i_section_find(&h, TOKMAP_I_SPANS);
    uint8_t *bytes = malloc(section->n_bytes);
    CHECK(pread(fd, bytes, section->n_bytes, (off_t)section->offset) == (ssize_t)section->n_bytes);
    tokmap_i_spans spans;
    CHECK(tokmap_i_spans_decode(bytes, section->n_bytes, n_tokens, &spans) == NULL);
    check_reserved(bytes, section->n_bytes, n_tokens);
    spans.bytes = bytes;
    CHECK_EQ(spans.n_spans, 1 + 2 + 4 + 1 + 1);
    for (size_t i = 0; i < sizeof given / sizeof *given; i++) {
        const uint64_t end = given[i].first_token + given[i].n_tokens;
        const uint64_t asked[] = {given[i].first_token, end - 1,
                                  given[i].first_token + given[i].n_tokens / 2};
        for (int k = 0; k < 3; k++) {
            tokmap_i_span_cursor c = {.spans = &spans};
            tokmap_span found;
            CHECK_INT(tokmap_i_spans_seek(&c, asked[k]), TOKMAP_OK);
            CHECK_INT(tokmap_i_spans_next(&c, &found), TOKMAP_OK);
            CHECK(found.role == given[i].role && found.first_token >= given[i].first_token &&
                  found.first_token <= asked[k] && asked[k] < found.first_token + found.n_tokens &&
                  found.first_token + found.n_tokens <= end);
        }
    }
    tokmap_i_span_cursor c = {.spans = &spans};
    tokmap_span found;
    CHECK_INT(tokmap_i_spans_seek(&c, n_tokens - 1), TOKMAP_OK);
    CHECK_INT(tokmap_i_spans_next(&c, &found), TOKMAP_END);
    free(bytes);
    tokmap_i_index_writer_close(w);
}

TEST(lists_of_documents_to_redact_are_checked)
{
    static const uint64_t twice[] = {3, 3}, down[] = {3, 2}, behind[] = {3, N_DOCUMENTS};
    const uint64_t *const wrong[] = {twice, down, behind};
    const tokmap_writer_options o = {.struct_size = sizeof o, .vocab_size = 10, .has_spans = 1};
    const char *path = check_path("r");
    tokmap_error err;
    tokmap_writer *w;
    tokmap_dataset *ds;
    make_documents();
    CHECK_OK(tokmap_writer_open(&w, path, &o, &err), err);
    for (uint32_t d = 0; d < N_DOCUMENTS; d++)
        CHECK_OK(write_document(w, d, &err), err);
    CHECK_OK(tokmap_writer_finish(w, &err), err);
    tokmap_writer_close(w);
    CHECK_OK(tokmap_dataset_open(&ds, path, &err), err);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        tokmap_redact_info info = TOKMAP_INIT(tokmap_redact_info);
        CHECK_OK(tokmap_writer_open(&w, check_path("q"), &o, &err), err);
        CHECK_INT(tokmap_writer_redact(w, ds, wrong[i], 2, &info, &err), TOKMAP_ERR_ARGUMENT);
        CHECK(strstr(err.text, "documents[1] is "));
        CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_ARGUMENT);
        tokmap_writer_close(w);
    }
    tokmap_redact_info info = TOKMAP_INIT(tokmap_redact_info);
    CHECK_OK(tokmap_writer_open(&w, check_path("q"), &o, &err), err);
    CHECK_OK(tokmap_writer_end_document(w, &err), err);
    CHECK_INT(tokmap_writer_redact(w, ds, twice, 1, &info, &err), TOKMAP_ERR_ARGUMENT);
    CHECK(strstr(err.text, "must be empty"));
    tokmap_writer_close(w);
    CHECK_OK(tokmap_writer_open(&w, check_path("q"), &o, &err), err);
    CHECK_OK(tokmap_writer_redact(w, ds, twice, 1, &info, &err), err);
    CHECK_INT(tokmap_writer_append(w, &(uint32_t){0}, 1, &err), TOKMAP_ERR_ARGUMENT);
    CHECK(strstr(err.text, "nothing after redact"));
    tokmap_writer_close(w);
    CHECK_OK(tokmap_writer_open_joined(&w, check_path("q"), &o, &err), err);
    CHECK_INT(tokmap_writer_redact(w, ds, twice, 1, &info, &err), TOKMAP_ERR_ARGUMENT);
    CHECK(strstr(err.text, "is for tokmap_writer_open"));
    tokmap_writer_close(w);
    tokmap_dataset_close(ds);
}
