/* SPDX-License-Identifier: Apache-2.0 */
/* test_faults - each system call of writing, adopting, merging, joining,
 * redacting and reading in turn fails,
 * is interrupted, falls short or is the last one before the process is killed. Whatever happens, a
 * dataset is complete or absent, and the next writer can do its work. */
#include "support/check.h"

#include <sys/wait.h>

#include "support/bad_days.h"
#include "support/fault_sweeps.h"
#include "support/joined.h"
#include "support/must.h"

/* n_tokens of these two: see start. */
static shape NEW = {.name = "new",
                    .vocab_size = 60000,
                    .n_documents = 130,
                    .n_inputs = 2,
                    .metadata = "{\"a\": 1}",
                    .n_columns = SHAPE_MAX_COLUMNS};
/* More than the writer's buffer, so that some goes past the page cache. */
static shape LARGE = {.name = "large",
                      .vocab_size = 60000,
                      .n_tokens = 1100000,
                      .n_documents = 130,
                      .metadata = "{}"};
static shape FOREIGN = {.name = "foreign",
                        .vocab_size = 60000,
                        .n_documents = 130,
                        .n_inputs = 2,
                        .metadata = "{}",
                        .token_offset = 256,
                        .adopted_suffix = ".bin"};
/* Its only id is the filler, so it has the same tokens when it was redacted. */
static const shape SAME = {.name = "same",
                           .vocab_size = 1,
                           .n_tokens = 3000,
                           .n_documents = 130,
                           .n_inputs = 2,
                           .metadata = "{}"};

/* ---- Scenarios ---- */

static char prefix[600], input[600]; /* of the output, and of a dataset to merge or read */

struct scenario {
    void (*prepare)(void); /* makes the folder what it is before a run */
    tokmap_status (*run)(const scenario *s, tokmap_error *err);
    const shape *before, *after; /* the dataset before (NULL: none) and after success */
    bool replace;
};

static void prepare_empty(void)
{
    remove_dataset(prefix);
}

static void prepare_old(void)
{
    remove_dataset(prefix);
    must_store(&SHAPE_OLD, prefix);
}

static void prepare_foreign(void)
{
    remove_dataset(prefix);
    CHECK(shape_store_tokens(&FOREIGN, prefix));
}

static void prepare_old_foreign(void)
{
    prepare_foreign();
    must_store(&FOREIGN, prefix);
}

static void prepare_input(void)
{
    remove_dataset(prefix);
    if (!file_is_there(with_suffix(input, ".tmi")))
        must_store(&NEW, input);
}

static void prepare_reading(void)
{
    if (!file_is_there(with_suffix(prefix, ".tmi")))
        must_store(&NEW, prefix);
}

static tokmap_status run_write(const scenario *s, tokmap_error *err)
{
    return shape_write(s->after, prefix, s->replace, err);
}

static tokmap_status run_merge(const scenario *s, tokmap_error *err)
{
    (void)s;
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = NEW.vocab_size, .eod_id = TOKMAP_NO_ID};
    tokmap_dataset *ds = NULL;
    tokmap_writer *w = NULL;
    tokmap_status status = tokmap_dataset_open(&ds, input, err);
    if (!status)
        status = tokmap_writer_open(&w, prefix, &options, err);
    if (!status)
        status = tokmap_writer_append_dataset(w, ds, err);
    if (!status)
        status = tokmap_writer_set_metadata(w, NEW.metadata, strlen(NEW.metadata), err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    tokmap_dataset_close(ds);
    return status;
}

static tokmap_status run_join(const scenario *s, tokmap_error *err)
{
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = NEW.vocab_size,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = s->replace};
    tokmap_dataset *ds = NULL;
    tokmap_writer *w = NULL;
    tokmap_status status = tokmap_dataset_open_index(&ds, input, err);
    if (!status)
        status = tokmap_writer_open_joined(&w, prefix, &options, err);
    if (!status)
        status = tokmap_writer_join(w, ds, NULL, err);
    if (!status)
        status = tokmap_writer_set_metadata(w, NEW.metadata, strlen(NEW.metadata), err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    tokmap_dataset_close(ds);
    return status;
}

static void prepare_old_and_input(void)
{
    prepare_input();
    must_store(&SHAPE_OLD, prefix);
}

static void prepare_joined(void)
{
    prepare_input();
    CHECK_INT(run_join(&(scenario){.replace = false}, NULL), TOKMAP_OK);
}

static void prepare_redact(void)
{
    remove_dataset(prefix);
    if (!file_is_there(with_suffix(input, ".tmi")))
        must_store(&SAME, input);
}

static void prepare_redact_joined(void)
{
    char parts[700];
    snprintf(parts, sizeof parts, "%s-parts", input);
    remove_dataset(prefix);
    if (file_is_there(with_suffix(input, ".tmi")))
        return;
    must_store(&SAME, parts);
    joined_store_even(parts, input, "part", 1000);
}

/* Documents of the first and the last part. */
static tokmap_status run_redact(const scenario *s, tokmap_error *err)
{
    static const uint64_t documents[] = {0, 3, 4, 7, 128, 129};
    const tokmap_writer_options options = {.struct_size = sizeof options,
                                           .vocab_size = SAME.vocab_size,
                                           .eod_id = TOKMAP_NO_ID,
                                           .replace = s->replace};
    tokmap_redact_info info = TOKMAP_INIT(tokmap_redact_info);
    tokmap_dataset *ds = NULL;
    tokmap_writer *w = NULL;
    const bool armed = fault.armed;
    fault.armed = false; /* opening a joined one takes memory of the system */
    tokmap_status status = tokmap_dataset_open(&ds, input, err);
    fault.armed = armed;
    if (!status)
        status = (s->prepare == prepare_redact ? tokmap_writer_open : tokmap_writer_open_joined)(
            &w, prefix, &options, err);
    if (!status)
        status = tokmap_writer_redact(w, ds, documents, sizeof documents / 8, &info, err);
    if (!status && info.n_tokens == 0)
        status = TOKMAP_ERR_MISMATCH;
    if (!status)
        status = tokmap_writer_set_metadata(w, SAME.metadata, strlen(SAME.metadata), err);
    if (!status)
        status = tokmap_writer_finish(w, err);
    tokmap_writer_close(w);
    fault.armed = false;
    tokmap_dataset_close(ds);
    fault.armed = armed;
    return status;
}

static void prepare_old_and_redact_joined(void)
{
    prepare_redact_joined();
    must_store(&SHAPE_OLD, prefix);
}

static tokmap_status run_read(const scenario *s, tokmap_error *err)
{
    (void)s;
    tokmap_dataset *ds = NULL;
    uint16_t tokens[1000];
    tokmap_status status = tokmap_dataset_open(&ds, prefix, err);
    if (!status)
        status = verify_one_thread(ds, err);
    if (!status)
        status = tokmap_dataset_read(ds, 100, 1000, tokens, err);
    for (uint32_t i = 0; !status && i < 1000; i++)
        if (tokens[i] != shape_id(&NEW, 100 + i))
            status = TOKMAP_ERR_MISMATCH;
    tokmap_dataset_close(ds);
    return status;
}

static const scenario WRITE = {prepare_empty, run_write, NULL, &NEW};
static const scenario WRITE_LARGE = {prepare_empty, run_write, NULL, &LARGE};
static const scenario REPLACE = {prepare_old, run_write, &SHAPE_OLD, &NEW, .replace = true};
static const scenario ADOPT = {prepare_foreign, run_write, NULL, &FOREIGN};
static const scenario ADOPT_REPLACE = {prepare_old_foreign, run_write, &FOREIGN, &FOREIGN,
                                       .replace = true};
static const scenario MERGE = {prepare_input, run_merge, NULL, &NEW};
static const scenario JOIN = {prepare_input, run_join, NULL, &NEW};
static const scenario JOIN_REPLACE = {prepare_old_and_input, run_join, &SHAPE_OLD, &NEW,
                                      .replace = true};
static const scenario REPLACE_JOINED = {prepare_joined, run_write, &NEW, &SHAPE_OLD,
                                        .replace = true};
static const scenario REDACT = {prepare_redact, run_redact, NULL, &SAME};
static const scenario REDACT_JOINED = {prepare_redact_joined, run_redact, NULL, &SAME};
static const scenario REDACT_REPLACE = {prepare_old_and_redact_joined, run_redact, &SHAPE_OLD,
                                        &SAME, .replace = true};
static const scenario READ = {prepare_reading, run_read, &NEW, &NEW};

/* ---- What must hold after a run ---- */

/* After a failure: what was there before, perhaps still set aside. Only when the disk refuses
 * everything from then on, the new one may be there, complete, because it could not be removed. */
static void expect_old(const scenario *s, const char *what)
{
    const bool disk_is_gone = fault.mode == FAULT_FROM_THEN_ON;
    const bool may_be_new = disk_is_gone && fault.last_fired == FAULT_UNLINK;
    if (may_be_new && !shape_compare(s->after, prefix))
        return;
    if (!s->before && !is_absent(prefix))
        CHECK_FAIL("%s: there is something after a failure", what);
    if (s->before)
        must_hold(s->before, prefix, what);
}

static void expect_foreign_tokens_untouched(const scenario *s, const char *what)
{
    if (!s->after->adopted_suffix)
        return;
    const file_bytes was = shape_token_file(s->after);
    const bool same = file_holds(with_suffix(prefix, ".bin"), &was);
    free(was.data);
    if (!same)
        CHECK_FAIL("%s: the foreign token file was changed", what);
}

/* The same again, without faults: files left behind must not prevent it. */
static void expect_next_run_works(const scenario *s, const char *what)
{
    tokmap_error err;
    const bool complete = !s->before && !is_absent(prefix);
    const tokmap_status status = s->run(s, &err);
    if (status != (complete ? TOKMAP_ERR_EXISTS : TOKMAP_OK))
        CHECK_FAIL("%s: the next run: %s", what, err.text);
    must_hold(s->after, prefix, what);
    if (has_partials(prefix))
        CHECK_FAIL("%s: the next run leaves partial files", what);
}

/* Several blocks for what reads or writes tokens in its own way; sanitizers are too slow for it. */
static void start(bool large)
{
    NEW.n_tokens = FOREIGN.n_tokens = large && !check_sanitized() ? 530000 : 3000;
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    snprintf(input, sizeof input, "%s", check_path("input"));
}

bool run_once(const scenario *s, const sweep *sw, uint64_t n, const char *what)
{
    tokmap_error err = {0};
    s->prepare();
    const swept before = begin_swept(sw, n);
    const tokmap_status status = s->run(s, &err);
    const bool fired = end_swept(sw, &before, status, &err, what);
    const fault_call last = fault.last_fired;
    expect_foreign_tokens_untouched(s, what);
    if (status)
        expect_old(s, what);
    else
        must_hold(s->after, prefix, what);
    if (sw->mode != FAULT_FROM_THEN_ON && last != FAULT_UNLINK && has_partials(prefix))
        CHECK_FAIL("%s: partial files are left behind", what);
    if (status)
        expect_next_run_works(s, what);
    return fired;
}

static void sweep_modes(const scenario *s)
{
    start(s == &WRITE || s == &ADOPT);
    uint64_t n_runs = 0;
    for (size_t i = 0; i < N_SWEEPS; i++)
        if (!fault.missing || sweeps_of_calls[i].mode != FAULT_FROM_THEN_ON)
            n_runs += sweep_all(s, &sweeps_of_calls[i]);
    printf("note %" PRIu64 " faults\n", n_runs);
    CHECK(n_runs > 20);
}

/* For each of the scenarios, with files of its own. */
static void each(void (*check)(const scenario *), const scenario *const *all)
{
    for (; *all; all++) {
        check(*all);
        remove_dataset(prefix);
        remove_dataset(input);
    }
}

TEST(every_failing_call_is_survived)
{
    each(sweep_modes, (const scenario *[]){&WRITE, &WRITE_LARGE, &REPLACE, &ADOPT, &ADOPT_REPLACE,
                                           &MERGE, &JOIN, &JOIN_REPLACE, &REPLACE_JOINED, &REDACT,
                                           &REDACT_JOINED, &REDACT_REPLACE, &READ, NULL});
}

/* With a link for the tokens and a rename for the index, no second name of the tokens may stay. But
 * for a disk that fails for good: then named tokens without an index may be left, which can no
 * longer be told from somebody else's. */
TEST(every_failing_call_is_survived_without_hard_links)
{
    fault.missing = FAULT_LINK;
    each(sweep_modes, (const scenario *[]){&WRITE, &REPLACE, &ADOPT, &JOIN_REPLACE, NULL});
    fault.missing = 0;
}

TEST(a_call_that_is_always_interrupted_ends)
{
    const scenario *all[] = {&WRITE, &MERGE, &JOIN, &READ};
    unsigned n_fired = 0;
    start(false);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (unsigned call = 1; call <= FAULT_INTERRUPTIBLE; call *= 2) {
            const sweep sw = {FAULT_FROM_THEN_ON, call & FAULT_INTERRUPTIBLE, EINTR, false};
            n_fired += sw.calls && run_once(all[i], &sw, 1, "interrupted");
        }
    }
    CHECK(n_fired >= 10);
}

/* ---- Memory ---- */

static void sweep_memory(const scenario *s)
{
    if (!FAULT_MEMORY_WORKS)
        SKIP("memory cannot be made to fail under this sanitizer or C library");
    start(false);
    const uint64_t n = sweep_all(s, &sweeps_of_memory[0]) + sweep_all(s, &sweeps_of_memory[1]);
    printf("note %" PRIu64 " faults\n", n);
    CHECK(n >= 10);
}

TEST(every_lack_of_memory_is_survived)
{
    each(sweep_memory,
         (const scenario *[]){&WRITE, &ADOPT, &MERGE, &JOIN, &REDACT, &REDACT_JOINED, &READ, NULL});
}

/* ---- Kills at every call ---- */

/* False when the run came to its end before call n. */
static bool kill_at(const scenario *s, fault_mode mode, uint64_t n)
{
    char what[100];
    int exit_status;
    snprintf(what, sizeof what, "killed %s call %" PRIu64,
             mode == FAULT_KILL_BEFORE ? "before" : "after", n);
    s->prepare();
    const pid_t child = fork();
    if (child == 0) {
        fault_arm(mode, FAULT_ALL_FILE_CALLS, 0, n);
        _exit(s->run(s, NULL) ? 1 : 0);
    }
    CHECK(child > 0);
    CHECK_INT(waitpid(child, &exit_status, 0), child);
    expect_foreign_tokens_untouched(s, what);
    if (s->before && is_absent(prefix))
        CHECK_FAIL("%s: neither old nor new", what);
    if (!is_absent(prefix) && shape_compare(s->after, prefix))
        must_hold(s->before ? s->before : s->after, prefix, what);
    expect_next_run_works(s, what);
    if (WIFEXITED(exit_status))
        CHECK_INT(WEXITSTATUS(exit_status), 0);
    return WIFSIGNALED(exit_status);
}

static void kill_everywhere(const scenario *s)
{
    start(s == &WRITE);
    uint64_t n_kills = 0;
    for (fault_mode mode = FAULT_KILL_BEFORE; mode <= FAULT_KILL_AFTER; mode++)
        for (uint64_t n = 1; kill_at(s, mode, n); n++)
            n_kills++;
    printf("note %" PRIu64 " kills\n", n_kills);
    CHECK(n_kills > 10);
}

TEST(a_kill_at_every_call_is_survived)
{
    each(kill_everywhere, (const scenario *[]){&WRITE, &REPLACE, &ADOPT, &ADOPT_REPLACE, &MERGE,
                                               &JOIN, &JOIN_REPLACE, &REPLACE_JOINED, &REDACT,
                                               &REDACT_JOINED, &REDACT_REPLACE, NULL});
}

/* ---- Another writer at every call ---- */

static const shape *rival;
static bool rival_replaces;
static tokmap_status rival_status;

static void run_rival(void)
{
    const pid_t child = fork();
    if (child == 0)
        _exit(-(int)shape_write(rival, prefix, rival_replaces, NULL));
    rival_status = (tokmap_status)-must_exit(child);
}

static void expect_one_of_two(const char *what, tokmap_status status, const tokmap_error *err)
{
    if (status != TOKMAP_OK && status != TOKMAP_ERR_EXISTS && status != TOKMAP_ERR_LOCKED)
        CHECK_FAIL("%s: %s", what, err->text);
    if (rival_status != TOKMAP_OK && rival_status != TOKMAP_ERR_EXISTS &&
        rival_status != TOKMAP_ERR_LOCKED)
        CHECK_FAIL("%s: the other writer: %d", what, (int)rival_status);
    const bool ours = status == TOKMAP_OK, theirs = rival_status == TOKMAP_OK;
    if (!(ours || theirs) || (ours && theirs && !rival_replaces))
        CHECK_FAIL("%s: %d and %d", what, (int)status, (int)rival_status);
    if (!ours || (theirs && shape_compare(&NEW, prefix)))
        must_hold(rival, prefix, what);
    else
        must_hold(&NEW, prefix, what);
    if (has_partials(prefix))
        CHECK_FAIL("%s: partial files are left", what);
}

static uint64_t meet_rival_everywhere(const scenario *s, const shape *with, bool replace)
{
    uint64_t n = 1;
    char what[100];
    start(false);
    rival = with;
    rival_replaces = replace;
    fault.meanwhile = run_rival;
    for (bool fired = true; fired; n++) {
        tokmap_error err = {0};
        snprintf(what, sizeof what, "another writer before call %" PRIu64, n);
        s->prepare();
        rival_status = TOKMAP_ERR_LOCKED;
        fault_arm(FAULT_MEANWHILE, FAULT_ALL_FILE_CALLS, 0, n);
        const tokmap_status status = s->run(s, &err);
        fired = fault_disarm();
        expect_one_of_two(what, status, &err);
    }
    remove_dataset(prefix);
    return n - 2;
}

TEST(another_writer_at_any_call_harms_nobody)
{
    CHECK(meet_rival_everywhere(&WRITE, &SHAPE_OLD, false) > 10);
    CHECK(meet_rival_everywhere(&WRITE, &SHAPE_OLD, true) > 10);
    CHECK(meet_rival_everywhere(&REPLACE, &SHAPE_OLD, true) > 10);
    CHECK(meet_rival_everywhere(&JOIN, &SHAPE_OLD, false) > 10);
    CHECK(meet_rival_everywhere(&JOIN_REPLACE, &SHAPE_OLD, true) > 10);
}

TEST(another_writer_at_any_call_harms_nobody_without_hard_links)
{
    fault.missing = FAULT_LINK;
    CHECK(meet_rival_everywhere(&JOIN_REPLACE, &SHAPE_OLD, true) > 10);
    CHECK(meet_rival_everywhere(&WRITE, &SHAPE_OLD, false) > 10);
    CHECK(meet_rival_everywhere(&REPLACE, &SHAPE_OLD, true) > 10);
    fault.missing = 0;
}

/* ---- File systems that lack something ---- */

static void expect_works_without(unsigned calls, int errno_value, const scenario *s)
{
    start(false);
    remove_dataset(prefix);
    s->prepare();
    tokmap_error err = {0};
    fault_arm(FAULT_FROM_THEN_ON, calls, errno_value, 1);
    const tokmap_status status = s->run(s, &err);
    const bool fired = fault_disarm();
    CHECK(fired);
    CHECK_OK(status, err);
    must_hold(s->after, prefix, "without");
    CHECK(!has_partials(prefix));
}

TEST(a_file_system_without_in_place_copies_will_do)
{
    expect_works_without(FAULT_COPY, EXDEV, &MERGE);
    expect_works_without(FAULT_COPY, ENOSYS, &MERGE);
}

TEST(a_file_system_where_all_goes_through_the_page_cache_will_do)
{
    expect_works_without(FAULT_DIRECT, EINVAL, &WRITE_LARGE);
}

TEST(a_disk_with_larger_blocks_than_we_think_will_do)
{
    tokmap_error err;
    start(false);
    int n_good = 0, n_fired = 0;
    for (uint64_t n = 1; n <= 4; n++) {
        remove_dataset(prefix);
        fault_arm(FAULT_ONCE, FAULT_PWRITE, EINVAL, n);
        const tokmap_status status = run_write(&WRITE_LARGE, &err);
        n_fired += fault_disarm();
        n_good += status == TOKMAP_OK;
        if (status == TOKMAP_OK)
            must_hold(&LARGE, prefix, "larger blocks");
    }
    /* Only the one write that goes past the page cache is done again. */
    CHECK(n_fired >= 2);
    CHECK_INT(n_good, 1 + 4 - n_fired);
}

TEST(a_file_system_without_hard_links_will_do)
{
    expect_works_without(FAULT_LINK, EPERM, &WRITE);
    expect_works_without(FAULT_LINK, EPERM, &REPLACE);
    expect_works_without(FAULT_LINK, EPERM, &ADOPT);
    expect_works_without(FAULT_LINK, EPERM, &JOIN);
    expect_works_without(FAULT_LINK, EPERM, &JOIN_REPLACE);
}

TEST(a_file_system_without_links_and_careful_renames_will_do)
{
    expect_works_without(FAULT_LINK | FAULT_RENAMEAT2, EINVAL, &WRITE);
    expect_works_without(FAULT_LINK | FAULT_RENAMEAT2, EINVAL, &REPLACE);
    expect_works_without(FAULT_LINK | FAULT_RENAMEAT2, EINVAL, &ADOPT_REPLACE);
}

TEST(hard_links_that_stop_working_leave_nothing_behind)
{
    start(false);
    tokmap_error err = {0};
    fault_arm(FAULT_ONCE, FAULT_LINK, EMLINK, 2);
    const tokmap_status status = run_write(&WRITE, &err);
    CHECK(fault_disarm());
    CHECK_OK(status, err);
    must_hold(&NEW, prefix, "with one link");
    CHECK(!has_partials(prefix));
}
