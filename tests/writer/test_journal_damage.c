/* SPDX-License-Identifier: Apache-2.0 */
/* test_journal_damage - a journal or partial files that were torn, flipped, mixed up or replaced by
 * something else: resuming ends with the bytes of one go, or is refused and touches nothing. */
#include "writer/journal_plans.h"
#include "support/must.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "support/faults.h" /* only so that nothing waits for the disk */
#include "base/hash.h"

/* An unfinished dataset whose journal is being ill-treated. */
typedef struct patient {
    files left, whole;
    file_bytes *journal; /* of left */
    uint32_t n_records;
    uint64_t ends[64]; /* of the records, in the journal */
} patient;

/* By the tables of docs/FORMAT.md section 9, and nothing of src/ but the checksum. */
static uint64_t field(const uint8_t *p, int n_bytes)
{
    uint64_t x = 0;
    for (int i = n_bytes - 1; i >= 0; i--)
        x = x << 8 | p[i];
    return x;
}

/* Returns where the next record starts. before: the record before it, or NULL. */
static uint64_t walk_record(const patient *pt, uint64_t at, const uint8_t *before)
{
    static const uint8_t magic[8] = {0x89, 'T', 'M', 'R', '\r', '\n', 0x1a, '\n'};
    const uint8_t *r = pt->journal->data + at, *header = pt->journal->data;
    const uint64_t width = field(header + 16, 4);
    CHECK(pt->journal->n_bytes - at >= 160 && memcmp(r, magic, 8) == 0);
    CHECK_EQ(field(r + 8, 8), before ? field(before + 152, 8) : field(header + 56, 8));
    CHECK_EQ(field(r + 76, 4), 0);
    CHECK_EQ(field(r + 152, 8), tokmap_i_checksum(r, 152));
#define NEW(offset) (field(r + (offset), 8) - (before ? field(before + (offset), 8) : 0))
    uint64_t n = field(r + 24, 8) % 64 * 8;
    n += NEW(40) * 512 + NEW(48) * 40 + NEW(56) + field(r + 68, 4);
#undef NEW
    n += (field(r + 16, 8) * width >> 20) * 8;
    n -= before ? (field(before + 16, 8) * width >> 20) * 8 : 0;
    n = (n + 7) / 8 * 8;
    CHECK(n <= pt->journal->n_bytes - at - 160);
    CHECK_EQ(field(r + 144, 8), tokmap_i_checksum(r + 160, (size_t)n));
    return at + 160 + n;
}

static void walk_journal(patient *pt)
{
    static const uint8_t start_of_all[16] = {0x89, 'T', 'M', 'J', '\r', '\n', 0x1a, '\n',
                                             4,    3,   2,   1,   2,    0,    0,    0};
    const uint8_t *header = pt->journal->data, *before = NULL;
    CHECK(pt->journal->n_bytes > 64 && memcmp(header, start_of_all, 16) == 0);
    CHECK_EQ(field(header + 56, 8), tokmap_i_checksum(header, 56));
    CHECK_EQ(field(header + 24, 8), SMALL.vocab_size);
    uint64_t at = 64;
    while (at < pt->journal->n_bytes && pt->n_records < 64) {
        const uint64_t next = walk_record(pt, at, before);
        before = header + at;
        at = pt->ends[pt->n_records++] = next;
    }
    CHECK_EQ(at, pt->journal->n_bytes);
}

static void admit(patient *pt)
{
    start();
    pt->whole = uninterrupted(&SMALL);
    pt->left = leave(&SMALL, 4, 17);
    pt->journal = &pt->left.f[4];
    pt->n_records = 0;
    walk_journal(pt);
    CHECK_EQ(pt->n_records, 4);
}

static void dismiss(patient *pt)
{
    free_files(&pt->left);
    free_files(&pt->whole);
}

/* With its files as they were and this journal. */
static tokmap_status resume_with(const patient *pt, file_bytes journal, run *r, tokmap_error *err)
{
    files all = pt->left;
    all.f[4] = journal;
    store_files(&all);
    const tokmap_status status = run_plan(r, err);
    if (status) {
        expect_files(&all, err->text); /* nothing was touched */
        return status;
    }
    expect_files(&pt->whole, "resumed");
    return TOKMAP_OK;
}

static run resume_last(void)
{
    return (run){.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_RESUME, .checkpoint_every = 7};
}

static uint64_t whole_records(const patient *pt, uint64_t n_bytes)
{
    uint64_t n = 0;
    while (n < pt->n_records && pt->ends[n] <= n_bytes)
        n++;
    return n;
}

TEST(a_journal_torn_at_any_byte_goes_on_from_its_last_whole_record)
{
    patient pt;
    admit(&pt);
    const size_t stride = check_sanitized() && !check_long() ? 7 : 1;
    for (size_t n = 0; n < pt.journal->n_bytes; n += stride) {
        tokmap_error err;
        run r = resume_last();
        if (resume_with(&pt, (file_bytes){pt.journal->data, n}, &r, &err))
            CHECK_FAIL("torn at byte %d: %s", (int)n, err.text);
        CHECK_EQ(r.resumed_from, whole_records(&pt, n));
    }
    dismiss(&pt);
}

/* A power cut may leave the length of the file and none of its last bytes. */
TEST(a_journal_that_ends_in_rubbish_goes_on_from_its_last_whole_record)
{
    patient pt;
    admit(&pt);
    const uint64_t last = pt.ends[pt.n_records - 2];
    file_bytes torn = {malloc(pt.journal->n_bytes + 100000), 0};
    CHECK(torn.data != NULL);
    for (uint64_t n = last; n <= pt.journal->n_bytes; n += n < last + 140 ? 1 : 37) {
        for (int kind = 0; kind < 4; kind++) {
            torn.n_bytes = kind < 2 ? pt.journal->n_bytes : pt.journal->n_bytes + 70001;
            memcpy(torn.data, pt.journal->data, n);
            for (size_t i = n; i < torn.n_bytes; i++)
                torn.data[i] = kind % 2 ? (uint8_t)check_mix(n, i) : 0;
            tokmap_error err;
            run r = resume_last();
            if (resume_with(&pt, torn, &r, &err))
                CHECK_FAIL("rubbish from byte %d: %s", (int)n, err.text);
            CHECK(r.resumed_from == pt.n_records || r.resumed_from == pt.n_records - 1);
            CHECK_EQ(r.resumed_from, whole_records(&pt, n));
        }
    }
    free(torn.data);
    dismiss(&pt);
}

/* A bit in the last record makes it a torn one; anywhere else it is told, and whoever says so can
 * go back to before it. */
static void flip(const patient *pt, size_t at, uint8_t bit)
{
    tokmap_error err;
    run r = resume_last();
    pt->journal->data[at] ^= bit;
    const uint64_t n_before = whole_records(pt, at);
    const bool in_last = n_before == pt->n_records - 1;
    const tokmap_status status = resume_with(pt, *pt->journal, &r, &err);
    if (status != (in_last ? TOKMAP_OK : TOKMAP_ERR_CORRUPT))
        CHECK_FAIL("byte %d: status %d: %s", (int)at, (int)status, err.text);
    if (status) {
        expect_refused((run){.plan = &SMALL, .replace = true}, TOKMAP_ERR_EXISTS, "can be resumed");
        r.resume_checkpoint = n_before + 1;
        expect_refused(r, TOKMAP_ERR_CORRUPT, "damaged");
        r.resume_checkpoint = n_before;
        if (n_before > 0 && resume_with(pt, *pt->journal, &r, &err))
            CHECK_FAIL("byte %d: %s", (int)at, err.text);
        CHECK_EQ(r.resumed_from, n_before);
    } else {
        CHECK_EQ(r.resumed_from, n_before);
    }
    pt->journal->data[at] ^= bit;
}

TEST(a_flipped_bit_in_the_journal_is_refused_or_harmless)
{
    patient pt;
    admit(&pt);
    const bool all = check_long() && !check_sanitized();
    const size_t stride = check_sanitized() ? 11 : 1;
    for (size_t at = 0; at < pt.journal->n_bytes; at += stride)
        for (unsigned bit = all ? 0 : check_mix(at, 3) % 8; bit < 8; bit += all ? 1 : 8)
            flip(&pt, at, (uint8_t)(1u << bit));
    dismiss(&pt);
}

TEST(a_damaged_journal_can_be_discarded)
{
    patient pt;
    admit(&pt);
    pt.journal->data[100] ^= 1;
    tokmap_error err;
    run r = {.plan = &SMALL, .unfinished = TOKMAP_UNFINISHED_DISCARD};
    CHECK_INT(resume_with(&pt, *pt.journal, &r, &err), TOKMAP_OK);
    CHECK_EQ(r.resumed_from, 0);
    store_files(&pt.left);
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, &err), TOKMAP_ERR_CORRUPT);
    CHECK(info.n_checkpoints == 0 && strstr(err.text, "damaged at byte 64"));
    pt.journal->data[100] ^= 1;
    pt.journal->data[pt.ends[1] + 90] ^= 1;
    store_files(&pt.left);
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, &err), TOKMAP_ERR_CORRUPT);
    CHECK_EQ(info.n_checkpoints, 2);
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 2, &info, NULL, &err), TOKMAP_OK);
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 3, &info, NULL, &err), TOKMAP_ERR_CORRUPT);
    dismiss(&pt);
}

TEST(records_that_stand_in_the_wrong_place_are_refused)
{
    patient pt;
    admit(&pt);
    tokmap_error err;
    run r = resume_last();
    file_bytes mixed = {malloc(2 * pt.journal->n_bytes), 0};
    CHECK(mixed.data != NULL);
    /* The second one missing. */
    memcpy(mixed.data, pt.journal->data, pt.ends[0]);
    memcpy(mixed.data + pt.ends[0], pt.journal->data + pt.ends[1],
           pt.journal->n_bytes - pt.ends[1]);
    mixed.n_bytes = pt.journal->n_bytes - (pt.ends[1] - pt.ends[0]);
    CHECK_INT(resume_with(&pt, mixed, &r, &err), TOKMAP_ERR_CORRUPT);
    /* The last one twice. */
    memcpy(mixed.data, pt.journal->data, pt.journal->n_bytes);
    memcpy(mixed.data + pt.journal->n_bytes, pt.journal->data + pt.ends[2],
           pt.journal->n_bytes - pt.ends[2]);
    mixed.n_bytes = 2 * pt.journal->n_bytes - pt.ends[2];
    CHECK_INT(resume_with(&pt, mixed, &r, &err), TOKMAP_ERR_CORRUPT);
    /* All but the header of another work that was begun alike. */
    files mine = pt.left;
    const plan other_plan = {
        .seed = 5, .n_steps = 23, .most_tokens = 300, .vocab_size = SMALL.vocab_size};
    files other = leave(&other_plan, 4, 17);
    mine.f[4] = other.f[4];
    store_files(&mine);
    expect_refused(r, TOKMAP_ERR_CORRUPT, "cannot be resumed");
    free_files(&other);
    free(mixed.data);
    dismiss(&pt);
}

/* However far after the damage the next head is. */
TEST(damage_in_front_of_a_large_note_is_told)
{
    static uint8_t note[TOKMAP_MAX_NOTE_BYTES];
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 9, .eod_id = TOKMAP_NO_ID, .resumable = 1};
    const char *path = check_path("p.tmj.partial");
    start();
    /* Scanned in pieces of 64 KiB, from 8 bytes after the damage on: around the first boundary. */
    for (size_t n = TOKMAP_MAX_NOTE_BYTES - 240; n <= TOKMAP_MAX_NOTE_BYTES; n += 8) {
        tokmap_error err;
        remove_all_of(prefix);
        tokmap_writer *w = must_begin(prefix, &options);
        CHECK_INT(tokmap_writer_checkpoint(w, note, n, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_writer_checkpoint(w, note, 3, NULL), TOKMAP_OK);
        tokmap_writer_close(w);
        file_bytes journal = file_load(path);
        journal.data[70] ^= 1;
        CHECK(file_store(path, journal.data, journal.n_bytes));
        free(journal.data);
        tokmap_checkpoint_info info = {.struct_size = sizeof info};
        CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, &err), TOKMAP_ERR_CORRUPT);
    }
}

static void put(uint8_t *p, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        p[i] = (uint8_t)(x >> (8 * i));
}

TEST(a_record_that_promises_more_than_the_file_holds_costs_no_memory)
{
    patient pt;
    admit(&pt);
    const struct rlimit little = {1u << 30, RLIM_INFINITY};
    struct rlimit was;
    tokmap_error err;
    run r = resume_last();
    file_bytes longer = {malloc(pt.journal->n_bytes + 160), pt.journal->n_bytes + 160};
    CHECK(longer.data != NULL);
    memcpy(longer.data, pt.journal->data, pt.journal->n_bytes);
    uint8_t *head = longer.data + pt.journal->n_bytes;
    const uint8_t *last = longer.data + pt.ends[pt.n_records - 2];
    memcpy(head, last, 160);
    put(head + 8, field(last + 152, 8));
    put(head + 16, UINT64_C(1) << 48); /* tokens, and so blocks: 2^33 bytes of checksums */
    put(head + 48, 1 << 24);           /* inputs */
    put(head + 56, UINT64_C(60) << 30);
    put(head + 152, tokmap_i_checksum(head, 152));
    CHECK(getrlimit(RLIMIT_AS, &was) == 0);
    if (!check_sanitized())
        CHECK(setrlimit(RLIMIT_AS, &little) == 0);
    const tokmap_status status = resume_with(&pt, longer, &r, &err);
    setrlimit(RLIMIT_AS, &was);
    CHECK_OK(status, err);
    CHECK_EQ(r.resumed_from, pt.n_records);
    free(longer.data);
    dismiss(&pt);
}

static void sign_header(const patient *pt)
{
    const uint64_t checksum = tokmap_i_checksum(pt->journal->data, 56);
    for (int i = 0; i < 8; i++)
        pt->journal->data[56 + i] = (uint8_t)(checksum >> (8 * i));
}

TEST(a_journal_of_tokens_that_cannot_be_is_refused)
{
    patient pt;
    admit(&pt);
    tokmap_error err;
    run r = resume_last();
    pt.journal->data[16] = 3; /* bytes of a token */
    sign_header(&pt);
    CHECK_INT(resume_with(&pt, *pt.journal, &r, &err), TOKMAP_ERR_CORRUPT);
    dismiss(&pt);
}

TEST(a_journal_of_a_later_version_is_left_alone)
{
    patient pt;
    admit(&pt);
    tokmap_error err;
    run r = resume_last();
    pt.journal->data[12] = 3;
    pt.journal->data[16] = 3; /* what this means then is not known */
    sign_header(&pt);
    CHECK_INT(resume_with(&pt, *pt.journal, &r, &err), TOKMAP_ERR_VERSION);
    expect_refused((run){.plan = &SMALL}, TOKMAP_ERR_EXISTS, "can be resumed");
    dismiss(&pt);
}

static void damage_file(const patient *pt, int which, size_t at, bool cut)
{
    files all = pt->left;
    file_bytes bad = {malloc(all.f[which].n_bytes + 1), all.f[which].n_bytes};
    CHECK(bad.data != NULL && at < bad.n_bytes);
    memcpy(bad.data, all.f[which].data, bad.n_bytes);
    bad.data[at] ^= 4;
    bad.n_bytes = cut ? at : bad.n_bytes;
    all.f[which] = bad;
    store_files(&all);
    expect_refused(resume_last(), TOKMAP_ERR_CORRUPT,
                   cut && which == 2
                       ? "shorter than its journal states: the unfinished dataset cannot "
                         "be resumed; discard it"
                       : "cannot be resumed; discard it");
    free(bad.data);
}

TEST(partial_files_that_do_not_hold_what_the_journal_says_are_refused)
{
    patient pt;
    admit(&pt);
    const uint8_t *last = pt.journal->data + pt.ends[2];
    const size_t token_bytes = (size_t)field(last + 16, 8) * 4;
    const size_t index_bytes = 448 + (size_t)(field(last + 24, 8) / 64) * 256;
    CHECK(token_bytes > 0 && index_bytes > 448);
    for (size_t at = 0; at < token_bytes; at += 509) {
        damage_file(&pt, 2, at, false);
        damage_file(&pt, 2, at, true);
    }
    damage_file(&pt, 2, token_bytes - 1, true);
    for (size_t at = 448; at < index_bytes; at += 13) {
        damage_file(&pt, 3, at, false);
        damage_file(&pt, 3, at, true);
    }
    damage_file(&pt, 3, index_bytes - 1, true);
    const size_t values_bytes = (size_t)field(last + 96, 8);
    CHECK(values_bytes > 1000 && values_bytes <= pt.left.f[7].n_bytes);
    for (size_t at = 0; at < values_bytes; at += 17) {
        damage_file(&pt, 7, at, false);
        damage_file(&pt, 7, at, true);
    }
    damage_file(&pt, 7, values_bytes - 1, true);
    /* Bytes after the checkpoint do not matter, nor the header that only finish writes. */
    tokmap_error err;
    run r = resume_last();
    for (size_t i = 0; i < 448; i++)
        pt.left.f[3].data[i] = (uint8_t)i;
    CHECK_INT(resume_with(&pt, *pt.journal, &r, &err), TOKMAP_OK);
    dismiss(&pt);
}

TEST(a_flipped_bit_in_any_block_is_found)
{
    start();
    const plan large = {
        .seed = 9, .n_steps = 12, .most_tokens = 900000, .vocab_size = SMALL.vocab_size};
    files left = leave(&large, 4, 9);
    const size_t n_bytes = left.f[2].n_bytes;
    CHECK(n_bytes > 3 << 20);
    /* The checkpoint was made one step before the end. */
    tokmap_checkpoint_info info = {.struct_size = sizeof info};
    CHECK_INT(tokmap_writer_get_checkpoint(prefix, 0, &info, NULL, NULL), TOKMAP_OK);
    for (size_t at = 0; at < info.n_tokens * 4; at += 300007) {
        left.f[2].data[at] ^= 1;
        store_files(&left);
        expect_refused((run){.plan = &large, .unfinished = TOKMAP_UNFINISHED_RESUME},
                       TOKMAP_ERR_CORRUPT, "cannot be resumed; discard it");
        left.f[2].data[at] ^= 1;
    }
    free_files(&left);
}

/* Flips a bit of the unfinished tokens, asks for a resume, and flips it back. */
static tokmap_status resume_with_flip(const tokmap_writer_options *options, uint64_t offset)
{
    tokmap_writer *w = NULL;
    uint8_t byte;
    const int fd = open(file_of(".bin.partial"), O_RDWR);
    CHECK(fd >= 0 && pread(fd, &byte, 1, (off_t)offset) == 1);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, (off_t)offset) == 1);
    const tokmap_status status = tokmap_writer_open(&w, prefix, options, NULL);
    tokmap_writer_close(w);
    byte ^= 1;
    CHECK(pwrite(fd, &byte, 1, (off_t)offset) == 1 && close(fd) == 0);
    return status;
}

TEST(of_more_than_a_gibibyte_the_last_one_is_checked_and_a_hundredth_of_the_rest)
{
    const uint64_t n_blocks = 1300, block_bytes = 1 << 20;
    tokmap_writer_options options = {.struct_size = sizeof options,
                                     .vocab_size = SMALL.vocab_size,
                                     .eod_id = TOKMAP_NO_ID,
                                     .resumable = 1};
    if (!check_large() || check_sanitized())
        SKIP("writes 1.3 GiB; make test does it");
    start();
    uint32_t *ids = calloc(block_bytes / 4, sizeof *ids);
    CHECK(ids != NULL);
    tokmap_writer *w = must_begin(prefix, &options);
    for (uint64_t i = 0; i < n_blocks; i++)
        CHECK_INT(tokmap_writer_append(w, ids, block_bytes / 4, NULL), TOKMAP_OK);
    CHECK_INT(tokmap_writer_checkpoint(w, NULL, 0, NULL), TOKMAP_OK);
    tokmap_writer_close(w);
    options.unfinished = TOKMAP_UNFINISHED_RESUME;
    const uint64_t n_before = n_blocks - 1024;
    static const uint64_t before[] = {0, 1, 2, 101, 102, 201, 275}; /* checkpoint 1: 1, 101, ... */
    for (size_t i = 0; i < sizeof before / sizeof *before; i++)
        CHECK_INT(resume_with_flip(&options, before[i] * block_bytes + i),
                  before[i] % 100 == 1 ? TOKMAP_ERR_CORRUPT : TOKMAP_OK);
    for (uint64_t i = n_before; i < n_blocks; i += 73)
        CHECK_INT(resume_with_flip(&options, i * block_bytes + 5), TOKMAP_ERR_CORRUPT);
    remove_all_of(prefix);
    free(ids);
}

TEST(odd_things_under_the_name_of_the_journal_are_errors)
{
    start();
    tokmap_error err;
    const char *path = check_path("p.tmj.partial");
    run r = resume_last();
    files left = leave(&SMALL, 4, 17);
    CHECK(unlink(path) == 0);
    CHECK(mkdir(path, 0777) == 0);
    CHECK_INT(run_plan(&r, &err), TOKMAP_ERR_IO);
    CHECK(rmdir(path) == 0 && mkfifo(path, 0666) == 0);
    CHECK_INT(run_plan(&r, &err), TOKMAP_ERR_IO);
    r.unfinished = TOKMAP_UNFINISHED_REFUSE;
    CHECK_INT(run_plan(&r, &err), TOKMAP_ERR_IO);
    CHECK(unlink(path) == 0 && symlink("elsewhere", path) == 0);
    r.unfinished = TOKMAP_UNFINISHED_RESUME;
    CHECK_INT(run_plan(&r, &err), TOKMAP_ERR_IO);
    free_files(&left);
}

TEST(a_second_name_of_a_file_is_an_error_that_names_it)
{
    static const char *const suffixes[] = {".bin.partial", ".tmv.partial", ".tmj.partial"};
    start();
    files left = leave(&SMALL, 4, 17);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        char wanted[64];
        snprintf(wanted, sizeof wanted, "p%s: has a second name", suffixes[i]);
        CHECK(link(file_of(suffixes[i]), check_path("second")) == 0);
        expect_refused(resume_last(), TOKMAP_ERR_EXISTS, wanted);
        CHECK(unlink(check_path("second")) == 0);
    }
    free_files(&left);
}
