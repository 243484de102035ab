/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal - checkpoints and resuming: a resumed dataset is byte for byte the one that nobody
 * interrupted, and work that can be resumed is never lost by accident. (test_journal_damage has
 * what becomes of damaged files, test_journal_kill kills, power cuts and failing calls.) */
#include <fcntl.h>
#include <sys/stat.h>

#include "writer/journal_plans.h"
#include "support/must.h"

#include "support/faults.h" /* only so that nothing waits for the disk */
#include "writer/sections.h"

static void expect_refused_open(const tokmap_writer_options *options, tokmap_status wanted)
{
    tokmap_error err;
    tokmap_writer *w = (tokmap_writer *)prefix;
    const tokmap_status status = tokmap_writer_open(&w, prefix, options, &err);
    if (status != wanted || w != NULL)
        CHECK_FAIL("status %d: %s", (int)status, err.text);
}

static tokmap_checkpoint_info ask(uint64_t checkpoint)
{
    tokmap_error err;
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    CHECK_OK(tokmap_writer_get_checkpoint(prefix, checkpoint, &info, NULL, &err), err);
    return info;
}

/* ---- Resuming ---- */

static void interrupt_again_and_again(const plan *p, uint64_t random)
{
    files whole = uninterrupted(p);
    uint32_t at = 0;
    remove_all_of(prefix);
    for (uint64_t round = 0; at < p->n_steps; round++) {
        const uint64_t dice = check_mix(random, round);
        run r = {.plan = p,
                 .unfinished = TOKMAP_UNFINISHED_RESUME,
                 .checkpoint_every = 1 + dice % 5,
                 .stop_at = at + 1 + (uint32_t)(dice >> 20) % 9};
        at = r.stop_at;
        r.stop_at = at < p->n_steps ? at : 0;
        r = run_well(r);
        CHECK((r.resumed_from > 0) == (r.started_at > 0));
        at = r.started_at + 1 > at ? r.started_at + 1 : at;
    }
    expect_files(&whole, "interrupted");
    free_files(&whole);
}

TEST(a_dataset_resumed_many_times_is_that_of_one_go)
{
    start();
    const uint64_t n = check_long() ? 400 : 60;
    for (uint64_t seed = 0; seed < n; seed++) {
        const plan p = {.seed = seed,
                        .n_steps = 1 + (uint32_t)check_mix(seed, 5) % 40,
                        .most_tokens = 1 + (uint32_t)check_mix(seed, 6) % 3000,
                        .vocab_size = seed % 2 ? 65536 : 65537,
                        .n_columns = (uint32_t)(seed / 2 % 4)};
        interrupt_again_and_again(&p, seed);
    }
}

TEST(blocks_of_a_mebibyte_are_resumed_in_their_middle)
{
    start();
    const plan wide = {.seed = 7, .n_steps = 12, .most_tokens = 400000, .vocab_size = 1000000};
    const plan narrow = {.seed = 8, .n_steps = 12, .most_tokens = 900000, .vocab_size = 100};
    interrupt_again_and_again(&wide, 1);
    interrupt_again_and_again(&narrow, 2);
}

static void checkpoint_at_token(uint64_t n_tokens, uint64_t n_more)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = 60000,
                                           .has_eod = 1,
                                           .eod_id = 7,
                                           .unfinished = TOKMAP_UNFINISHED_RESUME};
    const shape s = {.vocab_size = 60000};
    tokmap_writer *w = must_begin(prefix, &options);
    CHECK_INT(shape_append(&s, w, 0, n_tokens, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_OK);
    CHECK_INT(shape_append(&s, w, 5, 100, NULL), TOKMAP_OK); /* forgotten */
    tokmap_writer_close(w);
    w = must_begin(prefix, &options);
    size_t n_bytes = 1;
    CHECK(tokmap_writer_note(w, &n_bytes) && n_bytes == 0);
    n_bytes = 5;
    CHECK(!tokmap_writer_note(NULL, &n_bytes) && n_bytes == 0);
    CHECK_INT(shape_append(&s, w, n_tokens, n_tokens + n_more, NULL), TOKMAP_OK);
    must_finish(w);
    const shape whole = {.name = "whole",
                         .vocab_size = 60000,
                         .n_tokens = (uint32_t)(n_tokens + n_more),
                         .metadata = "{}"};
    must_hold(&whole, prefix, "after a checkpoint");
    remove_all_of(prefix);
}

TEST(a_checkpoint_may_stand_at_the_very_boundary_of_a_block_or_a_write)
{
    start();
    static const uint64_t boundaries[] = {0, 524288, 1048576}; /* tokens of 2 bytes */
    for (size_t i = 0; i < sizeof boundaries / sizeof boundaries[0]; i++) {
        for (uint64_t n = boundaries[i] ? boundaries[i] - 1 : 0; n <= boundaries[i] + 1; n++) {
            checkpoint_at_token(n, 0);
            checkpoint_at_token(n, 1);
        }
        checkpoint_at_token(boundaries[i], 524288);
    }
}

TEST(every_checkpoint_can_be_gone_back_to)
{
    start();
    files whole = uninterrupted(&SMALL);
    files left = leave(&SMALL, 1, SMALL.n_steps - 1);
    const uint64_t n = ask(0).n_checkpoints;
    CHECK_EQ(n, SMALL.n_steps - 1);
    for (uint64_t k = 1; k <= n; k++) {
        store_files(&left);
        CHECK_EQ(ask(k).n_checkpoints, n);
        run r = {.plan = &SMALL,
                 .unfinished = TOKMAP_UNFINISHED_RESUME,
                 .resume_checkpoint = k,
                 .checkpoint_every = 3,
                 .stop_at = (uint32_t)k + 1};
        r = run_well(r);
        CHECK_EQ(r.resumed_from, k);
        CHECK_EQ(r.started_at, k);
        /* Later ones are gone, and new ones are counted from it. */
        CHECK_EQ(ask(0).n_checkpoints, k + ((k + 1) % 3 == 0));
        run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME});
        expect_files(&whole, "gone back");
    }
    free_files(&left);
    free_files(&whole);
}

static tokmap_writer *open_resuming(uint64_t resume_checkpoint)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = 1000,
                                           .eod_id = TOKMAP_NO_ID,
                                           .unfinished = TOKMAP_UNFINISHED_RESUME,
                                           .resume_checkpoint = resume_checkpoint};
    return must_begin(prefix, &options);
}

static void end_documents(tokmap_writer *w, int n)
{
    static const uint32_t ids[] = {5, 6, 7};
    for (int i = 0; i < n; i++) {
        CHECK_INT(tokmap_writer_append(w, ids, 3, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    }
}

static void expect_sound(uint64_t n_tokens, uint64_t n_documents)
{
    tokmap_dataset *ds = must_be_sound(prefix);
    const tokmap_dataset_info info = must_info(ds);
    tokmap_dataset_close(ds);
    CHECK_EQ(info.n_tokens, n_tokens);
    CHECK_EQ(info.n_documents, n_documents);
}

TEST(going_back_and_ending_earlier_leaves_nothing_of_the_rest)
{
    start();
    tokmap_writer *w = open_resuming(0);
    end_documents(w, 100);
    CHECK_INT(tokmap_writer_checkpoint(w, "a", 1, NULL), TOKMAP_OK);
    end_documents(w, 5000);
    CHECK_INT(tokmap_writer_checkpoint(w, "b", 1, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    w = open_resuming(1);
    size_t n_bytes;
    CHECK(memcmp(tokmap_writer_note(w, &n_bytes), "a", 1) == 0 && n_bytes == 1);
    end_documents(w, 30);
    must_finish(w);
    expect_sound(390, 130);
}

TEST(what_was_said_of_inputs_before_a_checkpoint_counts_after_it)
{
    start();
    tokmap_writer *w = open_resuming(0);
    end_documents(w, 70);
    CHECK_INT(tokmap_writer_end_input(w, "all", 1, 2, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    w = open_resuming(0);
    end_documents(w, 1); /* belongs to no input */
    CHECK_INT(tokmap_writer_finish(w, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    w = open_resuming(0);
    must_finish(w);
    expect_sound(210, 70);
    remove_all_of(prefix);

    static const uint32_t id = 3;
    w = open_resuming(0);
    CHECK_INT(tokmap_writer_append(w, &id, 1, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_input(w, "in the first document", 0, 0, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    w = open_resuming(0);
    CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_end_input(w, "the rest", 0, 0, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_finish(w, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
}

/* Merging two with a checkpoint between them: at once, or by two writers. */
static files merge(const char *input, bool interrupted)
{
    remove_all_of(prefix);
    tokmap_dataset *ds = must_open(input);
    tokmap_writer *w = open_resuming(0);
    CHECK_INT(tokmap_writer_append_dataset(w, ds, NULL), TOKMAP_OK);
    end_documents(w, 2);
    CHECK_INT(tokmap_writer_end_input(w, "own", 0, 0, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_OK);
    if (interrupted) {
        CHECK_INT(tokmap_writer_append_dataset(w, ds, NULL), TOKMAP_OK);
        tokmap_writer_close(w);
        w = open_resuming(0);
    }
    CHECK_INT(tokmap_writer_append_dataset(w, ds, NULL), TOKMAP_OK);
    must_finish(w);
    tokmap_dataset_close(ds);
    return load_files(prefix);
}

TEST(a_merge_goes_on_between_two_datasets)
{
    start();
    const shape input = {.name = "input",
                         .vocab_size = 1000,
                         .n_tokens = 600001,
                         .n_documents = 333,
                         .n_inputs = 2,
                         .metadata = "{}"};
    const char *path = check_path("input");
    must_store(&input, path);
    files at_once = merge(path, false);
    files resumed = merge(path, true);
    expect_files(&at_once, "merged");
    free_files(&at_once);
    free_files(&resumed);
}

/* ---- The index alone: more documents than anybody wants to write tokens for ---- */

static uint64_t end_of(uint64_t document, bool wide)
{
    return wide ? document * ((UINT64_C(1) << 26) + 12345)
                : document + check_mix(document, 0) % 3 + 3;
}

static void index_documents(tokmap_i_index_writer *w, uint64_t first, uint64_t end, bool wide)
{
    uint64_t last = w->last_end;
    for (uint64_t d = first; d < end; d++) {
        const uint64_t e = end_of(d, wide);
        last = e > last ? e : last;
        CHECK_INT(tokmap_i_index_writer_document(w, last, NULL), TOKMAP_OK);
    }
}

static void index_finish(tokmap_i_index_writer *w)
{
    tokmap_i_header header = {.token_bytes = 2, .eod_id = TOKMAP_NO_ID};
    strcpy(header.token_suffix, ".bin");
    header.n_tokens = w->last_end;
    CHECK_INT(tokmap_i_index_writer_finish(w, &header, "{}", 2, NULL), TOKMAP_OK);
    tokmap_i_index_writer_close(w);
}

/* What a journal would keep of a checkpoint. */
typedef struct kept {
    tokmap_i_checkpoint c;
    tokmap_i_record_parts parts;
    uint8_t *payload;
} kept;

static void keep(kept *k, tokmap_i_index_writer *w, const tokmap_i_checkpoint *before)
{
    const tokmap_i_journal_header header = {.token_bytes = 2};
    *k = (kept){0};
    CHECK_INT(tokmap_i_index_writer_save(w, &k->c, NULL), TOKMAP_OK);
    tokmap_i_record_measure(&header, before, &k->c, &k->parts);
    tokmap_i_index_writer_tails(w, &k->parts);
    uint8_t *p = k->payload = malloc(tokmap_i_record_payload_bytes(&k->parts) + 1);
    CHECK(p != NULL);
    for (int i = 0; i < TOKMAP_I_RECORD_PARTS; i++) {
        const size_t n_bytes = (size_t)k->parts.n_bytes[i];
        if (n_bytes > 0)
            memcpy(p, k->parts.data[i], n_bytes);
        k->parts.data[i] = p;
        p += n_bytes;
    }
}

/* A checkpoint every so many documents, and a new writer after each. */
static void index_in_parts(const char *path, uint64_t n, uint64_t part, bool wide)
{
    static const tokmap_i_checkpoint none;
    kept all[64];
    int n_parts = 0;
    for (uint64_t first = 0; first < n; first += part) {
        tokmap_i_index_writer *w = NULL;
        const int fd = open(path, O_RDWR | O_CREAT, 0666);
        CHECK_INT(tokmap_i_index_writer_open(&w, path, fd, NULL), TOKMAP_OK);
        for (int i = 0; i < n_parts; i++)
            CHECK_INT(tokmap_i_index_writer_restore(w, &all[i].c, &all[i].parts, NULL), TOKMAP_OK);
        const tokmap_i_checkpoint *last = n_parts > 0 ? &all[n_parts - 1].c : &none;
        if (n_parts > 0) {
            CHECK_INT(tokmap_i_index_writer_check(w, last->ends_checksum, NULL), TOKMAP_OK);
            CHECK_INT(tokmap_i_index_writer_cut(w, NULL), TOKMAP_OK);
        }
        const uint64_t end = first + part < n ? first + part : n;
        index_documents(w, first, end, wide);
        if (end == n) {
            index_finish(w);
            break;
        }
        keep(&all[n_parts++], w, last);
        index_documents(w, end, end + 200, wide); /* forgotten */
        tokmap_i_index_writer_close(w);
    }
    for (int i = 0; i < n_parts; i++)
        free(all[i].payload);
}

static void compare_index(uint64_t n, uint64_t part, bool wide)
{
    tokmap_i_index_writer *w = NULL;
    const char *one = check_path("one.tmi"), *parts = check_path("parts.tmi");
    const int fd = open(one, O_RDWR | O_CREAT | O_TRUNC, 0666);
    CHECK_INT(tokmap_i_index_writer_open(&w, one, fd, NULL), TOKMAP_OK);
    index_documents(w, 0, n, wide);
    index_finish(w);
    index_in_parts(parts, n, part, wide);
    CHECK(files_are_equal(one, parts));
    unlink(one);
    unlink(parts);
}

TEST(an_index_of_wide_groups_or_many_levels_is_resumed)
{
    static const uint64_t counts[] = {1, 63, 64, 65, 1024, 1025, 16384, 16385, 20000};
    start();
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        for (int wide = 0; wide <= 1; wide++) {
            compare_index(counts[i], counts[i] / 3 + 1, wide != 0);
            compare_index(counts[i], counts[i] / 40 + 1, wide != 0);
        }
    compare_index(300001, 100003, false);
}

TEST(the_answers_about_checkpoints_are_right)
{
    start();
    tokmap_error err;
    tokmap_checkpoint_info info = ask(0);
    CHECK_EQ(info.n_checkpoints, 0);
    files left = leave(&SMALL, 5, 17);
    static uint8_t note[TOKMAP_MAX_NOTE_BYTES];
    for (uint64_t k = 0; k <= 3; k++) {
        info.struct_size = sizeof info;
        CHECK_INT(tokmap_writer_get_checkpoint(prefix, k, &info, note, &err), TOKMAP_OK);
        CHECK_EQ(info.n_checkpoints, 3);
        CHECK_EQ(read_note(&SMALL, note, info.note_bytes), k == 0 ? 15 : 5 * k);
        CHECK_EQ(info.vocab_size, SMALL.vocab_size);
        CHECK_EQ(info.token_bytes, 4);
        CHECK_EQ(info.eod_id, TOKMAP_NO_ID);
        CHECK(info.n_tokens > 0 && info.n_documents > 0);
    }
    CHECK_INT(tokmap_writer_get_checkpoint(file_of(".bin"), 4, &info, note, &err),
              TOKMAP_ERR_ARGUMENT);
    CHECK_EQ(info.n_checkpoints, 3);
    struct { /* a caller that knows only the first number */
        size_t struct_size;
        uint64_t n_checkpoints;
        uint8_t untouched[64];
    } old = {.struct_size = 16, .untouched = {9}};
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, (tokmap_checkpoint_info *)&old, NULL, NULL),
              TOKMAP_OK);
    CHECK(old.struct_size == 16 && old.n_checkpoints == 3 && old.untouched[0] == 9);
    unlink(file_of(".bin.partial")); /* without its tokens a journal is worth nothing */
    CHECK_EQ(ask(0).n_checkpoints, 0);
    free_files(&left);
}

/* ---- Rules ---- */

TEST(without_a_checkpoint_nothing_is_kept)
{
    start();
    run_well((run){.plan = &SMALL, .stop_at = 20});
    run_well((run){.plan = &SMALL, .plain = true, .stop_at = 20});
    run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME, .stop_at = 20});
    CHECK(rmdir(check_dir()) == 0 && mkdir(check_dir(), 0777) == 0);
}

/* What a writer with these options is told instead of being opened. */
static tokmap_error told(tokmap_unfinished unfinished)
{
    tokmap_error said;
    tokmap_writer *w;
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = SMALL.vocab_size,
                                           .eod_id = TOKMAP_NO_ID,
                                           .unfinished = unfinished};
    tokmap_writer_open(&w, prefix, &options, &said);
    return said;
}

TEST(what_can_be_resumed_is_kept_until_somebody_says_discard)
{
    start();
    files left = leave(&SMALL, 5, 17);
    CHECK(left.f[2].data && left.f[3].data && left.f[4].data && !left.f[0].data && !left.f[1].data);
    const char *words = "can be resumed";
    CHECK_INT(told(TOKMAP_UNFINISHED_REFUSE).reason, TOKMAP_REASON_UNFINISHED);
    expect_refused((run){.plan = &SMALL}, TOKMAP_ERR_EXISTS, words);
    expect_refused((run){.plan = &SMALL, .plain = true}, TOKMAP_ERR_EXISTS, words);
    expect_refused((run){.plan = &SMALL, .replace = true}, TOKMAP_ERR_EXISTS, words);
    const tokmap_adopt_options adopt = {
        .struct_size = sizeof adopt, .token_bytes = 4, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w = NULL;
    tokmap_error err;
    CHECK(file_store(file_of(".ds"), "", 0));
    CHECK_INT(tokmap_writer_adopt(&w, file_of(".ds"), &adopt, &err), TOKMAP_ERR_EXISTS);
    CHECK(w == NULL && strstr(err.text, words));
    unlink(file_of(".ds"));
    expect_files(&left, "adopted beside");
    const run r = run_well(
        (run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_DISCARD, .checkpoint_every = 4});
    CHECK_EQ(r.started_at, 0);
    files whole = uninterrupted(&SMALL);
    expect_files(&whole, "started over");
    free_files(&whole);
    free_files(&left);
}

TEST(discarding_and_leaving_leaves_nothing)
{
    start();
    files left = leave(&SMALL, 5, 17);
    run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_DISCARD, .stop_at = 3});
    CHECK(rmdir(check_dir()) == 0 && mkdir(check_dir(), 0777) == 0);
    free_files(&left);
}

TEST(other_options_are_refused_and_nothing_is_touched)
{
    start();
    files left = leave(&SMALL, 5, 17);
    const run resume = {.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME};
    const tokmap_writer_options good = {.struct_size = sizeof good,
                                        .vocab_size = SMALL.vocab_size,
                                        .eod_id = TOKMAP_NO_ID,
                                        .unfinished = TOKMAP_UNFINISHED_RESUME};
    tokmap_writer_options bad = good;
    bad.vocab_size++;
    expect_refused_open(&bad, TOKMAP_ERR_MISMATCH);
    bad = good;
    bad.has_eod = 1;
    bad.eod_id = 3;
    expect_refused_open(&bad, TOKMAP_ERR_MISMATCH);
    bad = good;
    bad.vocab_size = 65536;
    expect_refused_open(&bad, TOKMAP_ERR_MISMATCH);
    bad = good;
    bad.unfinished = (tokmap_unfinished)3;
    expect_refused_open(&bad, TOKMAP_ERR_ARGUMENT);
    bad = good;
    bad.unfinished = TOKMAP_UNFINISHED_DISCARD;
    bad.resume_checkpoint = 1;
    expect_refused_open(&bad, TOKMAP_ERR_ARGUMENT);
    bad = good;
    bad.resume_checkpoint = 4;
    expect_refused_open(&bad, TOKMAP_ERR_ARGUMENT);
    expect_files(&left, "refused");
    files whole = uninterrupted(&SMALL);
    run_well(resume);
    expect_files(&whole, "resumed after all");
    remove_all_of(prefix);
    bad = good;
    bad.resume_checkpoint = 1; /* of nothing */
    expect_refused_open(&bad, TOKMAP_ERR_ARGUMENT);
    free_files(&whole);
    free_files(&left);
}

TEST(only_a_resumable_writer_makes_checkpoints_with_small_notes)
{
    start();
    static const uint8_t note[TOKMAP_MAX_NOTE_BYTES + 1] = {1};
    tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 10, .eod_id = TOKMAP_NO_ID};
    tokmap_writer *w = must_begin(prefix, &options);
    CHECK_INT(tokmap_writer_checkpoint(w, note, 1, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    options.resumable = 1;
    w = must_begin(prefix, &options);
    CHECK_INT(tokmap_writer_checkpoint(w, note, TOKMAP_MAX_NOTE_BYTES, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, note, sizeof note, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_writer_checkpoint(w, note, 1, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    CHECK_EQ(ask(0).n_checkpoints, 1);
    CHECK_EQ(ask(0).note_bytes, TOKMAP_MAX_NOTE_BYTES);
}

TEST(an_older_caller_without_these_options_writes_as_ever)
{
    start();
    const tokmap_writer_options options = {.struct_size =
                                               offsetof(tokmap_writer_options, resumable),
                                           .vocab_size = 10,
                                           .eod_id = TOKMAP_NO_ID,
                                           .resumable = 1,
                                           .unfinished = TOKMAP_UNFINISHED_DISCARD};
    tokmap_writer *w = must_begin(prefix, &options);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_writer_close(w);
    files left = leave(&SMALL, 5, 17);
    expect_refused_open(&options, TOKMAP_ERR_EXISTS);
    expect_files(&left, "refused");
    free_files(&left);
}

/* ---- The dataset that is replaced, and names ---- */

TEST(the_old_dataset_stays_until_the_resumed_one_is_complete)
{
    start();
    files whole = uninterrupted(&SMALL);
    remove_all_of(prefix);
    must_store(&SHAPE_TINY, prefix);
    run r = {.plan = &SMALL,
             .replace = true,
             .unfinished = TOKMAP_UNFINISHED_RESUME,
             .checkpoint_every = 2};
    for (r.stop_at = 5; r.stop_at < SMALL.n_steps; r.stop_at += 5) {
        run_well(r);
        CHECK_STR(shape_compare(&SHAPE_TINY, prefix) ? "changed" : "whole", "whole");
    }
    r.replace = false;
    expect_refused(r, TOKMAP_ERR_EXISTS, "already exists");
    r.replace = true;
    r.stop_at = 0;
    CHECK(run_well(r).resumed_from > 0);
    expect_files(&whole, "replaced");
    free_files(&whole);
}

/* As if a writer was killed after its last rename: partial names and the journal still exist. */
static void make_leftover(const files *left, const files *whole)
{
    store_files(whole);
    CHECK(link(file_of(".bin"), file_of(".bin.partial")) == 0);
    CHECK(link(file_of(".tmi"), file_of(".tmi.partial")) == 0);
    CHECK(file_store(file_of(".tmj.partial"), left->f[4].data, left->f[4].n_bytes));
}

TEST(a_dataset_that_was_complete_but_for_its_leftovers_is_recognised)
{
    start();
    files whole = uninterrupted(&SMALL);
    files left = leave(&SMALL, 5, 17);
    for (int replace = 0; replace <= 1; replace++) {
        make_leftover(&left, &whole);
        run r = {.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME, .replace = replace != 0};
        r = run_well(r);
        CHECK(r.complete);
        expect_files(&whole, "complete");
    }
    make_leftover(&left, &whole);
    tokmap_error err;
    run again = {.plan = &SMALL, .plain = true};
    CHECK_INT(run_plan(&again, &err), TOKMAP_ERR_EXISTS);
    again.replace = true;
    run_well(again);
    expect_files(&whole, "written again");
    free_files(&left);
    free_files(&whole);
}

/* As after a kill when all other names had been removed: nothing but P says that all is done. */
TEST(resuming_what_is_complete_says_so_and_changes_nothing)
{
    start();
    files left = leave(&SMALL, 5, 17);
    run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME});
    files whole = load_files(prefix);
    run r = run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME});
    CHECK(r.complete);
    expect_files(&whole, "resumed");
    CHECK(strstr(told(TOKMAP_UNFINISHED_RESUME).text, ": is complete"));
    expect_refused((run){.plan = &SMALL}, TOKMAP_ERR_EXISTS, "already exists");
    plan other = SMALL;
    other.vocab_size++;
    const run differs = {.plan = &other, .unfinished = TOKMAP_UNFINISHED_RESUME};
    expect_refused(differs, TOKMAP_ERR_EXISTS, "already exists");
    expect_files(&whole, "refused");
    store_files(&left); /* an unfinished one beside a foreign P of the same shape */
    CHECK(file_store(file_of(".bin"), whole.f[0].data, whole.f[0].n_bytes));
    CHECK(file_store(file_of(".tmi"), whole.f[1].data, whole.f[1].n_bytes));
    files both = load_files(prefix);
    const run resume = {.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME};
    expect_refused(resume, TOKMAP_ERR_EXISTS, "already exists");
    expect_files(&both, "beside an unfinished one");
    free_files(&both);
    free_files(&whole);
    free_files(&left);
}

TEST(a_journal_whose_files_are_gone_is_in_nobodys_way)
{
    start();
    files whole = uninterrupted(&SMALL);
    for (int mode = 0; mode < 4; mode++) {
        files left = leave(&SMALL, 5, 17);
        unlink(file_of(".bin.partial"));
        if (mode % 2)
            unlink(file_of(".tmi.partial"));
        const run r = run_well(
            (run){.plan = &SMALL,
                  .plain = mode < 2,
                  .unfinished = mode < 2 ? TOKMAP_UNFINISHED_REFUSE : TOKMAP_UNFINISHED_RESUME});
        CHECK_EQ(r.started_at, 0);
        expect_files(&whole, "started anew");
        free_files(&left);
    }
    free_files(&whole);
}

TEST(a_copy_by_hard_link_is_never_cut_off)
{
    start();
    static const char *const linked[] = {".bin.partial", ".tmi.partial", ".tmj.partial"};
    for (int i = 0; i < 3; i++) {
        files left = leave(&SMALL, 5, 17);
        const char *copy = check_path("copy");
        CHECK(link(file_of(linked[i]), copy) == 0);
        run r = {.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME, .resume_checkpoint = 1};
        CHECK(run_plan(&r, NULL) < 0);
        expect_files(&left, "linked");
        unlink(copy);
        run_well((run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME});
        free_files(&left);
    }
}
