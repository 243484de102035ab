/* SPDX-License-Identifier: Apache-2.0 */
/* test_order_of - which earlier ids of a redacted dataset a loader accepts, by what its metadata
 * says. tests/python/test_python_order_of.py compares the samples. */
#include "support/loader_corpus.h"
#include "support/must.h"

#define ONE "00112233445566778899aabbccddeeff"
#define TWO "ffffffffffffffffffffffffffffffff"

static const struct given {
    const char *metadata, *order_of;
    tokmap_status wanted;
} all[] = {
    {"{\"redacted_from\":[\"" ONE "\"]}", ONE, TOKMAP_OK},
    {"{\"redacted_from\" : [ \"" ONE "\" ,\n\"" TWO "\" ] , \"x\" : 1}", ONE, TOKMAP_OK},
    {"{\"x\": {\"redacted_from\": [\"" ONE "\"]}, \"redacted_from\": [\"" TWO "\"]}", TWO,
     TOKMAP_OK},
    {"{\"redacted_from\":[\"" ONE "\"]}", NULL, TOKMAP_OK},
    {"{\"redacted_from\":[\"" ONE "\"]}", TWO, TOKMAP_ERR_MISMATCH},
    {"{\"x\": {\"redacted_from\": [\"" ONE "\"]}}", ONE, TOKMAP_ERR_MISMATCH},
    {"{\"merged_from\":[\"" ONE "\"]}", ONE, TOKMAP_ERR_MISMATCH},
    {"{}", ONE, TOKMAP_ERR_MISMATCH},
    /* what is no JSON, or no id, names none */
    {"{\"redacted_from\":[\"" ONE, ONE, TOKMAP_ERR_MISMATCH},
    {"{\"redacted_from\":[\"" ONE "0\"]}", ONE, TOKMAP_ERR_MISMATCH},
    {"{\"redacted_from\":[\"0" ONE "\"]}", ONE, TOKMAP_ERR_MISMATCH},
    {"{\"redacted_from\":[\"00112233445566778899AABBCCDDEEFF\"]}", ONE, TOKMAP_ERR_MISMATCH},
    {"{\"redacted_from\":[\"" ONE "\"]}", "", TOKMAP_ERR_ARGUMENT},
    {"{\"redacted_from\":[\"" ONE "\"]}", "0011", TOKMAP_ERR_ARGUMENT},
    {"{\"redacted_from\":[\"" ONE "\"]}", ONE "0", TOKMAP_ERR_ARGUMENT},
    {"{\"redacted_from\":[\"" ONE "\"]}", "x0112233445566778899aabbccddeeff", TOKMAP_ERR_ARGUMENT},
};

static tokmap_dataset *make_as(const char *name, const char *metadata)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .token_bytes = 2, .replace = 1};
    const uint32_t ids[8] = {1, 2, 3};
    tokmap_writer *w = must_begin(check_path(name), &options);
    CHECK_INT(tokmap_writer_append(w, ids, 8, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_set_metadata(w, metadata, strlen(metadata), NULL), TOKMAP_OK);
    must_finish(w);
    return must_open(check_path(name));
}

static tokmap_dataset *make(const char *metadata)
{
    return make_as("q", metadata);
}

static tokmap_status open_with(tokmap_dataset *ds, const char *order_of, tokmap_loader **l,
                               tokmap_error *err)
{
    static tokmap_dataset *other;
    tokmap_dataset_close(other); /* of the loader before */
    other = make_as("other", "{}");
    tokmap_dataset *const both[2] = {other, ds};
    const char *const ids[2] = {NULL, order_of};
    const tokmap_loader_source source = {
        .datasets = both, .n_datasets = 2, .weight = 1, .order_of = ids};
    const tokmap_loader_options o = {LOADER_SIZES, .sources = &source, .n_sources = 1,
                                     .sequence_length = 3, .batch_rows = 1};
    return tokmap_loader_open(l, &o, err);
}

TEST(an_earlier_id_is_one_that_the_metadata_names)
{
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        tokmap_dataset *ds = make(all[i].metadata);
        tokmap_loader *l;
        tokmap_error err;
        const tokmap_status status = open_with(ds, all[i].order_of, &l, &err);
        if (status != all[i].wanted)
            CHECK_FAIL("case %zu: %d: %s", i, status, err.text);
        if (status) {
            CHECK_SAYS(err.text, "/q.tmi: order_of is");
            CHECK_SAYS(err.text, all[i].order_of);
        }
        tokmap_loader_close(l);
        tokmap_dataset_close(ds);
    }
}

TEST(its_own_id_changes_nothing)
{
    uint8_t states[2][TOKMAP_STATE_BYTES];
    tokmap_dataset *ds = make("{\"redacted_from\":[\"" ONE "\"]}");
    tokmap_dataset_info info = TOKMAP_INIT(tokmap_dataset_info);
    char own[33];
    CHECK_INT(tokmap_dataset_get_info(ds, &info), TOKMAP_OK);
    for (int i = 0; i < 16; i++)
        snprintf(own + (ptrdiff_t)2 * i, 3, "%02x", info.dataset_id[i]);
    for (int i = 0; i < 2; i++) {
        tokmap_loader *l;
        CHECK_INT(open_with(ds, i ? own : NULL, &l, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_save(l, states[i], NULL), TOKMAP_OK);
        tokmap_loader_close(l);
    }
    CHECK(memcmp(states[0], states[1], TOKMAP_STATE_BYTES) == 0);
    tokmap_dataset_close(ds);
}

enum {
    MOST_COPIES = 101
};

/* Opens a loader over the first copies of a dataset, each with this id or its own. */
static tokmap_loader *open_copies(tokmap_dataset *const *copies, uint32_t n, const char *id)
{
    const char *ids[MOST_COPIES];
    for (uint32_t d = 0; d < n; d++)
        ids[d] = id;
    const tokmap_loader_source source = {
        .datasets = copies, .n_datasets = n, .weight = 1, .order_of = ids};
    const tokmap_loader_options o = {LOADER_SIZES, .sources = &source, .n_sources = 1,
                                     .sequence_length = 3, .batch_rows = 1};
    return corpus_open_loader(&o);
}

TEST(a_state_of_an_earlier_id_says_so_for_any_number_of_datasets)
{
    tokmap_dataset *copies[MOST_COPIES];
    for (uint32_t d = 0; d < MOST_COPIES; d++) {
        char name[16];
        snprintf(name, sizeof name, "q%u", d);
        copies[d] = make_as(name, "{\"redacted_from\":[\"" ONE "\", \"" TWO "\"]}");
    }
    for (uint32_t n = 1; n <= 100; n += 33) {
        uint8_t state[TOKMAP_STATE_BYTES];
        tokmap_loader *then = open_copies(copies, n, ONE), *now = open_copies(copies, n, NULL);
        tokmap_error err;
        CHECK_INT(tokmap_loader_save(then, state, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_restore(now, state, &err), TOKMAP_ERR_MISMATCH);
        CHECK_SAYS(err.text, "state: its data were redacted, which changed their id: give "
                             "order_of=\"" ONE "\" to the source of ");
        CHECK(!strstr(err.text, " ... ")); /* nothing is left out in the middle */
        tokmap_loader_close(then);
        then = open_copies(copies, n + 1, ONE);
        CHECK_INT(tokmap_loader_save(then, state, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_loader_restore(now, state, &err), TOKMAP_ERR_MISMATCH);
        CHECK_SAYS(err.text, "state: saved with other datasets");
        tokmap_loader_close(then);
        tokmap_loader_close(now);
    }
    for (uint32_t d = 0; d < MOST_COPIES; d++)
        tokmap_dataset_close(copies[d]);
}
