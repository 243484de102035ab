/* SPDX-License-Identifier: Apache-2.0 */
/* test_live_damage - files that shrink, fail or are damaged while a dataset is in use: an error
 * with file and offset instead of a signal, and verify tells exactly which tokens and documents
 * are touched. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "support/check.h"

#include "support/bad_days.h"
#include "support/must.h"
#include "base/base.h"
#include "base/le.h"
#include "support/faults.h"
#include "format/format.h"
#include "base/hash.h"
#include "system/platform.h"

/* Five blocks and a bit, documents of many lengths, some empty, some longer than a block. */
enum {
    N_DOCUMENTS = 3000,
    N_TOKENS = 5 * TOKMAP_I_BLOCK_BYTES / 2 + 777,
    N_BLOCKS = 6,
    BLOCK_TOKENS = TOKMAP_I_BLOCK_BYTES / 2
};

static uint64_t ends[N_DOCUMENTS];
static char prefix[600];
static tokmap_dataset *ds;
static tokmap_error err;

static const char *file(const char *suffix)
{
    return with_suffix(prefix, suffix);
}

static void make_ends(void)
{
    uint64_t end = 0;
    for (uint32_t d = 0; d < N_DOCUMENTS; d++) {
        const uint64_t mixed = (d + 1) * UINT64_C(0x9E3779B97F4A7C15) >> 40;
        end += d % 7 == 3 ? 0 : d == 500 ? 2 * BLOCK_TOKENS + 5 : mixed % (1 + mixed % 900);
        if (d == 300) /* an end that is a block's end, and empty documents on it */
            end = BLOCK_TOKENS;
        if (d > 300 && d < 304)
            end = ends[300];
        ends[d] = MIN(end, N_TOKENS);
    }
    ends[N_DOCUMENTS - 1] = N_TOKENS;
}

static void store_dataset(void)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 5000, .eod_id = TOKMAP_NO_ID};
    make_ends();
    snprintf(prefix, sizeof prefix, "%s", check_path("p"));
    tokmap_writer *w = must_begin(prefix, &options);
    uint32_t *ids = malloc(sizeof *ids * N_TOKENS);
    CHECK(ids != NULL);
    for (uint32_t i = 0; i < N_TOKENS; i++)
        ids[i] = (uint32_t)(i * UINT64_C(0x9E3779B97F4A7C15) >> 40) % 5000;
    for (uint32_t d = 0; d < N_DOCUMENTS; d++) {
        const uint64_t first = d == 0 ? 0 : ends[d - 1];
        CHECK_INT(tokmap_writer_append(w, ids + first, ends[d] - first, NULL), TOKMAP_OK);
        CHECK_INT(tokmap_writer_end_document(w, NULL), TOKMAP_OK);
    }
    free(ids);
    must_finish(w);
}

static void start(void)
{
    store_dataset();
    ds = must_open(prefix);
}

/* ---- What verify says ---- */

enum {
    MAX_DAMAGES = 40
};

static struct findings {
    tokmap_damage damages[MAX_DAMAGES];
    size_t n;
    tokmap_verify_report report;
    tokmap_status status;
    const char *shorten; /* a file to cut to shorten_to when half is done */
    off_t shorten_to;
    bool all_done; /* by the last call for progress */
} found;

static void note_damage(void *context, const tokmap_damage *damage)
{
    (void)context;
    if (found.n < MAX_DAMAGES)
        found.damages[found.n++] = *damage;
}

static int shorten_on_the_way(void *context, uint64_t done, uint64_t total)
{
    (void)context;
    found.all_done = done == total;
    if (found.shorten && done > total / 2 && truncate(found.shorten, found.shorten_to) == 0)
        found.shorten = NULL;
    return 0;
}

static void verify(uint32_t n_threads)
{
    const tokmap_verify_options options = {.struct_size = sizeof options,
                                           .n_threads = n_threads,
                                           .on_damage = note_damage,
                                           .on_progress = shorten_on_the_way};
    found.n = 0;
    found.report = (tokmap_verify_report)TOKMAP_INIT(tokmap_verify_report);
    found.status = tokmap_dataset_verify(ds, &options, &found.report, &err);
    CHECK_EQ(found.n, found.report.n_damages);
    CHECK(found.all_done || found.status);
}

/* The documents with a token in the block, found the slow way. */
static void naive_documents(uint64_t block, uint64_t *first, uint64_t *n)
{
    const uint64_t from = block * BLOCK_TOKENS, to = MIN(from + BLOCK_TOKENS, N_TOKENS);
    *first = *n = 0;
    for (uint64_t d = 0; d < N_DOCUMENTS; d++) {
        const uint64_t start = d == 0 ? 0 : ends[d - 1];
        if (start == ends[d] || ends[d] <= from || start >= to)
            continue;
        if (*n == 0)
            *first = d;
        *n = d - *first + 1;
    }
}

static void expect_block(const tokmap_damage *d, tokmap_damage_kind kind, uint64_t block)
{
    uint64_t first, n;
    naive_documents(block, &first, &n);
    CHECK_INT(d->kind, kind);
    CHECK_EQ(d->block_index, block);
    CHECK_EQ(d->first_token, block * BLOCK_TOKENS);
    CHECK_EQ(d->n_tokens, MIN(N_TOKENS - d->first_token, BLOCK_TOKENS));
    CHECK_EQ(d->first_byte, block * TOKMAP_I_BLOCK_BYTES);
    CHECK_EQ(d->n_bytes, d->n_tokens * 2);
    CHECK_EQ(d->first_document, first);
    CHECK_EQ(d->n_documents, n);
    CHECK_SAYS(d->error.text, "p.bin: block ");
}

static void damage_byte(const char *path, uint64_t at)
{
    uint8_t byte;
    const int fd = open(path, O_RDWR);
    CHECK_INT(pread(fd, &byte, 1, (off_t)at), 1);
    byte ^= 0x10;
    CHECK_INT(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

static void expect_bad_blocks(unsigned bad, uint32_t n_threads)
{
    verify(n_threads);
    CHECK_INT(found.status, bad ? TOKMAP_ERR_CORRUPT : TOKMAP_OK);
    CHECK_EQ(found.report.n_blocks, N_BLOCKS);
    CHECK_EQ(found.report.n_blocks_checked, N_BLOCKS);
    size_t n = 0;
    for (unsigned block = 0; block < N_BLOCKS; block++) {
        if (!(bad >> block & 1))
            continue;
        CHECK(n < found.n);
        expect_block(&found.damages[n], TOKMAP_DAMAGE_BLOCK, block);
        CHECK_EQ(found.damages[n].error.file_offset, (uint64_t)block * TOKMAP_I_BLOCK_BYTES);
        n++;
    }
    CHECK_EQ(found.n, n);
    if (bad)
        CHECK_STR(err.text, found.damages[0].error.text);
}

TEST(verify_names_every_damaged_block_with_its_documents)
{
    start();
    unsigned was_bad = 0;
    for (unsigned bad = 0; bad < 1u << N_BLOCKS; bad += check_sanitized() ? 7 : 1) {
        for (unsigned block = 0; block < N_BLOCKS; block++)
            if ((bad ^ was_bad) >> block & 1)
                damage_byte(file(".bin"), block * TOKMAP_I_BLOCK_BYTES + 100);
        was_bad = bad;
        expect_bad_blocks(bad, bad % 3 == 0 ? 1 : bad % 3 == 1 ? 2 : 8);
    }
    for (uint32_t n_threads = 1; n_threads <= 8; n_threads *= 2)
        expect_bad_blocks(was_bad, n_threads);
    tokmap_dataset_close(ds);
}

/* ---- Files that shrink ---- */

TEST(as_many_threads_verify_as_the_header_says)
{
    start();
    tokmap_verify_options options = {.struct_size = sizeof options, .n_threads = 64};
    CHECK_INT(tokmap_dataset_verify(ds, &options, NULL, &err), TOKMAP_OK);
    options.n_threads++;
    CHECK_INT(tokmap_dataset_verify(ds, &options, NULL, &err), TOKMAP_ERR_ARGUMENT);
    CHECK_SAYS(err.text, "n_threads is 65");
    tokmap_dataset_close(ds);
}

/* Threads of this process while verify reads blocks: the others wait until its own thread, which
 * begins last, reads one too, or until each block has a thread. */
static struct {
    pthread_t main;
    dev_t device;
    ino_t inode; /* of the token file */
    atomic_uint n_reading, n_threads;
} crowd;

static unsigned count_threads(void)
{
    DIR *d = opendir("/proc/self/task");
    unsigned n = 0;
    for (const struct dirent *e; d && (e = readdir(d));)
        n += e->d_name[0] != '.';
    if (d)
        closedir(d);
    return n;
}

static int gather_threads(int fd, uint64_t offset, size_t n_bytes)
{
    struct stat s;
    (void)offset, (void)n_bytes;
    if (fstat(fd, &s) != 0 || s.st_ino != crowd.inode || s.st_dev != crowd.device)
        return 0;
    if (++crowd.n_reading >= N_BLOCKS || pthread_equal(pthread_self(), crowd.main)) {
        unsigned none = 0;
        atomic_compare_exchange_strong(&crowd.n_threads, &none, count_threads());
    }
    while (crowd.n_threads == 0)
        usleep(100);
    return 0;
}

static void expect_threads(uint32_t n_threads, uint32_t wanted)
{
    const unsigned before = count_threads(); /* a sanitizer may have one */
    crowd.n_reading = crowd.n_threads = 0;
    fault.pread_hook = gather_threads;
    verify(n_threads);
    fault.pread_hook = NULL;
    CHECK_INT(found.status, TOKMAP_OK);
    const unsigned n = crowd.n_threads - before + 1;
    if (n < MIN(wanted, N_BLOCKS) || n > wanted)
        CHECK_FAIL("%u threads for n_threads = %u", n, n_threads);
}

TEST(verify_has_the_threads_that_were_asked_for)
{
    struct stat s;
    start();
    CHECK_INT(stat(file(".bin"), &s), 0);
    crowd.main = pthread_self();
    crowd.device = s.st_dev;
    crowd.inode = s.st_ino;
    for (uint32_t n = 1; n <= N_BLOCKS; n++)
        expect_threads(n, n);
    expect_threads(0, MIN(tokmap_i_n_processors(), 16));
    tokmap_dataset_close(ds);
}

TEST(a_token_file_cut_while_verify_runs_is_an_error)
{
    for (uint32_t n_threads = 1; n_threads <= 8; n_threads *= 2) {
        start();
        found.shorten = file(".bin");
        found.shorten_to = 5 * TOKMAP_I_BLOCK_BYTES + 11; /* the last block is read late or never */
        verify(n_threads);
        found.shorten = NULL;
        if (n_threads == 1) {
            CHECK_INT(found.status, TOKMAP_ERR_IO);
            CHECK_EQ(found.n, 1);
            expect_block(&found.damages[0], TOKMAP_DAMAGE_UNREADABLE, 5);
            CHECK_EQ(err.file_offset, 5 * TOKMAP_I_BLOCK_BYTES + 11);
            CHECK_INT(err.sys_errno, 0);
        }
        CHECK(found.status == TOKMAP_OK ||
              found.status == TOKMAP_ERR_IO); /* it may be read in time */
        verify(n_threads);
        CHECK_INT(found.status, TOKMAP_ERR_IO);
        tokmap_dataset_close(ds);
        unlink(file(".tmi"));
        unlink(file(".bin"));
    }
}

TEST(an_index_cut_while_verify_runs_is_an_error)
{
    start();
    found.shorten = file(".tmi");
    found.shorten_to = 1000;
    verify(1);
    CHECK_INT(found.status, TOKMAP_ERR_IO);
    CHECK_INT(found.damages[0].kind, TOKMAP_DAMAGE_UNREADABLE);
    CHECK_EQ(err.file_offset, 1000);
    CHECK_SAYS(err.text, "p.tmi");
    tokmap_dataset_close(ds);
}

TEST(an_index_cut_or_gone_before_verify_is_refused)
{
    start();
    CHECK_INT(truncate(file(".tmi"), 1000), 0);
    verify(1);
    CHECK_REFUSED(found.status, TOKMAP_ERR_IO, err, "p.tmi");
    unlink(file(".tmi"));
    verify(1);
    CHECK_INT(found.status, TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, ENOENT);
    tokmap_dataset_close(ds);
}

TEST(reading_a_token_file_that_was_cut_names_the_place)
{
    static uint16_t tokens[N_TOKENS];
    start();
    CHECK_INT(truncate(file(".bin"), 2001), 0);
    CHECK_INT(tokmap_dataset_read(ds, 0, 1000, tokens, &err), TOKMAP_OK);
    CHECK_INT(tokmap_dataset_read(ds, 900, 101, tokens, &err), TOKMAP_ERR_IO);
    CHECK_INT(err.status, TOKMAP_ERR_IO);
    CHECK_EQ(err.file_offset, 2001);
    CHECK_SAYS(err.text, "p.bin");
    CHECK_INT(tokmap_dataset_read(ds, 5000, N_TOKENS - 5000, tokens, &err), TOKMAP_ERR_IO);
    CHECK_EQ(err.file_offset, 2001); /* where the file ends, not where the read begins */
    CHECK_SAYS(err.text, "ends at byte 2001");
    tokmap_dataset_close(ds);
}

/* ---- A failing disk ---- */

static uint64_t bad_inode, bad_from, bad_to; /* bytes that cannot be read, and of which file */

static int fail_bad_range(int fd, uint64_t offset, size_t n_bytes)
{
    struct stat st;
    const bool hit = fstat(fd, &st) == 0 && st.st_ino == bad_inode && offset < bad_to &&
                     offset + n_bytes > bad_from;
    return hit ? EIO : 0;
}

static void break_disk(const char *path, uint64_t from, uint64_t to)
{
    struct stat st;
    CHECK_INT(stat(path, &st), 0);
    bad_inode = st.st_ino;
    bad_from = from;
    bad_to = to;
    fault.pread_hook = fail_bad_range;
}

TEST(verify_names_unreadable_blocks_and_goes_on)
{
    start();
    damage_byte(file(".bin"), 4 * TOKMAP_I_BLOCK_BYTES);
    for (uint32_t n_threads = 1; n_threads <= 8; n_threads *= 2) {
        break_disk(file(".bin"), TOKMAP_I_BLOCK_BYTES, 3 * TOKMAP_I_BLOCK_BYTES);
        verify(n_threads);
        fault.pread_hook = NULL;
        CHECK_INT(found.status, TOKMAP_ERR_CORRUPT);
        CHECK_EQ(found.n, 3);
        expect_block(&found.damages[0], TOKMAP_DAMAGE_UNREADABLE, 1);
        expect_block(&found.damages[1], TOKMAP_DAMAGE_UNREADABLE, 2);
        expect_block(&found.damages[2], TOKMAP_DAMAGE_BLOCK, 4);
        CHECK_INT(found.damages[1].error.status, TOKMAP_ERR_IO);
        CHECK_INT(found.damages[1].error.sys_errno, EIO);
        CHECK_EQ(found.damages[1].error.file_offset, 2 * TOKMAP_I_BLOCK_BYTES);
    }
    tokmap_dataset_close(ds);
}

/* In the index, each byte range in turn; bad blocks whose documents are not known have none. */
TEST(verify_survives_unreadable_places_of_the_index)
{
    start();
    damage_byte(file(".bin"), 3 * TOKMAP_I_BLOCK_BYTES);
    const file_bytes index = file_load(file(".tmi"));
    const size_t n_index_bytes = index.n_bytes;
    free(index.data);
    size_t n_found = 0;
    for (uint64_t at = 0; at < n_index_bytes; at += 64) {
        break_disk(file(".tmi"), at, at + 64);
        verify(2);
        fault.pread_hook = NULL;
        CHECK(found.status == TOKMAP_ERR_CORRUPT || found.status == TOKMAP_ERR_IO);
        for (size_t i = 0; i < found.n; i++) {
            n_found += found.damages[i].kind == TOKMAP_DAMAGE_BLOCK;
            CHECK(found.damages[i].first_document + found.damages[i].n_documents <= N_DOCUMENTS);
            CHECK(found.damages[i].kind != TOKMAP_DAMAGE_BLOCK ||
                  found.damages[i].block_index == 3);
        }
    }
    CHECK(n_found > n_index_bytes / 64 / 2); /* without block checksums it cannot be found */
    tokmap_dataset_close(ds);
}

static uint64_t n_reads, n_good_reads;

static int fail_late(int fd, uint64_t offset, size_t n_bytes)
{
    return fail_bad_range(fd, offset, n_bytes) && ++n_reads > n_good_reads ? EIO : 0;
}

TEST(documents_that_become_unreadable_between_two_passes_are_not_reported)
{
    start();
    damage_byte(file(".bin"), 3 * TOKMAP_I_BLOCK_BYTES);
    for (n_good_reads = 0; n_good_reads < 12; n_good_reads++) {
        break_disk(file(".tmi"), 0, UINT64_MAX);
        n_reads = 0;
        fault.pread_hook = fail_late;
        verify(1);
        fault.pread_hook = NULL;
        CHECK(found.status == TOKMAP_ERR_CORRUPT || found.status == TOKMAP_ERR_IO);
        for (size_t i = 0; i < found.n; i++)
            CHECK(found.damages[i].first_document + found.damages[i].n_documents <= N_DOCUMENTS &&
                  found.damages[i].n_documents <= N_DOCUMENTS);
    }
    tokmap_dataset_close(ds);
}

TEST(reading_names_the_place_that_cannot_be_read)
{
    static uint16_t tokens[N_TOKENS];
    start();
    break_disk(file(".bin"), 4000, 4001);
    CHECK_INT(tokmap_dataset_read(ds, 2000, 9, tokens, &err), TOKMAP_ERR_IO);
    fault.pread_hook = NULL;
    CHECK_INT(err.sys_errno, EIO);
    CHECK_EQ(err.file_offset, 4000);
    CHECK_SAYS(err.text, "p.bin");
    CHECK_INT(tokmap_dataset_read(ds, 2000, 9, tokens, &err), TOKMAP_OK);
    tokmap_dataset_close(ds);
}

TEST(merging_stops_at_what_cannot_be_read_or_is_damaged)
{
    const tokmap_writer_options options = {
        .struct_size = sizeof options, .vocab_size = 5000, .eod_id = TOKMAP_NO_ID};
    const char *out = check_path("out");
    start();
    tokmap_writer *w = must_begin(out, &options);
    break_disk(file(".bin"), 2 * TOKMAP_I_BLOCK_BYTES, 3 * TOKMAP_I_BLOCK_BYTES);
    CHECK_INT(tokmap_writer_append_dataset(w, ds, &err), TOKMAP_ERR_IO);
    fault.pread_hook = NULL;
    CHECK_EQ(err.file_offset, 2 * TOKMAP_I_BLOCK_BYTES);
    CHECK_SAYS(err.text, "p.bin");
    CHECK_INT(tokmap_writer_finish(w, &err), TOKMAP_ERR_IO); /* and stays so */
    tokmap_writer_close(w);
    w = must_begin(out, &options);
    damage_byte(file(".bin"), 4 * TOKMAP_I_BLOCK_BYTES + 5);
    CHECK_INT(tokmap_writer_append_dataset(w, ds, &err), TOKMAP_ERR_CORRUPT);
    CHECK_EQ(err.file_offset, 4 * TOKMAP_I_BLOCK_BYTES);
    tokmap_writer_close(w);
    CHECK(is_absent(out) && !has_partials(out) && !file_is_there(with_suffix(out, ".bin")));
    tokmap_dataset_close(ds);
}

/* ---- Damaged index with a damaged block: documents of the block where they are known ---- */

/* Documents that break their rules while all checksums fit, from `group` on. */
static void break_documents(size_t group)
{
    file_bytes index = file_load(file(".tmi"));
    CHECK(index.data != NULL);
    uint8_t *entry = index.data + 256;
    const uint64_t offset = le_get64(entry + 8), size = le_get64(entry + 16);
    le_put32(index.data + offset + 256 * group + 4, 0xfffffffe);
    le_put64(entry + 24, tokmap_i_checksum(index.data + offset, (size_t)size));
    le_put64(index.data + 240, tokmap_i_checksum(index.data + 256, 128));
    le_put64(index.data + 248, tokmap_i_checksum(index.data, 248));
    CHECK(file_store(file(".tmi"), index.data, index.n_bytes));
    free(index.data);
}

TEST(bad_blocks_beside_bad_documents_name_no_documents_that_are_not_known)
{
    for (size_t group = 0; group < N_DOCUMENTS / 64; group += check_sanitized() ? 5 : 1) {
        store_dataset();
        break_documents(group);
        for (unsigned block = 0; block < N_BLOCKS; block++)
            damage_byte(file(".bin"), block * TOKMAP_I_BLOCK_BYTES + 100);
        ds = must_open(prefix);
        verify(2);
        CHECK_INT(found.status, TOKMAP_ERR_CORRUPT);
        CHECK_EQ(found.n, N_BLOCKS + 1);
        CHECK_INT(found.damages[0].kind, TOKMAP_DAMAGE_CONTENT);
        for (size_t i = 1; i < found.n; i++) {
            uint64_t first, n;
            naive_documents(found.damages[i].block_index, &first, &n);
            const bool known =
                found.damages[i].first_document == first && found.damages[i].n_documents == n;
            const bool none =
                found.damages[i].first_document == 0 && found.damages[i].n_documents == 0;
            CHECK(known || none);
            CHECK(known || i > 1 || group <= 300 / 64); /* where block 0 ends */
        }
        tokmap_dataset_close(ds);
        unlink(file(".tmi"));
        unlink(file(".bin"));
    }
}

/* ---- Replaced while being opened ---- */

static const shape *replacement;

static void replace_now(const char *path)
{
    if (!strstr(path, "p.bin"))
        return;
    fault.open_hook = NULL;
    must_store(replacement, check_path("p"));
}

static void open_while_replaced(const shape *by)
{
    must_store(&SHAPE_TINY, check_path("p"));
    replacement = by;
    fault.open_hook = replace_now;
    const tokmap_status status = tokmap_dataset_open(&ds, check_path("p"), &err);
    CHECK(fault.open_hook == NULL);
    CHECK_INT(status, TOKMAP_OK);
    CHECK(compare_content(by, ds) == NULL);
    tokmap_dataset_close(ds);
}

TEST(an_index_is_never_opened_with_the_tokens_of_its_successor)
{
    shape same_size = SHAPE_TINY;
    same_size.seed = 1;
    open_while_replaced(&same_size);
    open_while_replaced(&SHAPE_WIDE_IDS);
}

/* What a writer that fails at the end of replacing looks like: its tokens have the name for a
 * moment. */
static void give_the_name_back(void)
{
    CHECK_INT(rename(check_path("p.bin"), check_path("new.bin")), 0);
    CHECK_INT(rename(check_path("old.bin"), check_path("p.bin")), 0);
}

static void lend_the_name(const char *path)
{
    if (!strstr(path, "p.bin"))
        return;
    CHECK_INT(rename(check_path("p.bin"), check_path("old.bin")), 0);
    CHECK_INT(rename(check_path("new.bin"), check_path("p.bin")), 0);
    fault.open_hook = NULL;
    fault.meanwhile = give_the_name_back;
    fault_arm(FAULT_MEANWHILE, FAULT_STAT, 0, 1); /* before the names are checked */
}

TEST(tokens_that_had_the_name_only_for_a_moment_are_not_used)
{
    shape same_size = SHAPE_TINY;
    same_size.seed = 1;
    must_store(&SHAPE_TINY, check_path("p"));
    must_store(&same_size, check_path("new"));
    fault.open_hook = lend_the_name;
    const tokmap_status status = tokmap_dataset_open(&ds, check_path("p"), &err);
    CHECK(fault_disarm());
    CHECK_INT(status, TOKMAP_OK);
    CHECK(compare_content(&SHAPE_TINY, ds) == NULL);
    tokmap_dataset_close(ds);
}

/* ---- Samples ---- */

typedef struct part {
    double fraction;
    uint64_t seed;
} part;

static tokmap_verify_report verify_part(const part *p)
{
    const tokmap_verify_options options = {
        .struct_size = sizeof options, .fraction = p->fraction, .seed = p->seed, .n_threads = 2};
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    const tokmap_status status = tokmap_dataset_verify(ds, &options, &report, NULL);
    CHECK(status == TOKMAP_OK || status == TOKMAP_ERR_CORRUPT);
    return report;
}

TEST(a_fraction_reads_its_share_of_blocks_and_the_whole_index)
{
    start();
    uint64_t n_checked = 0;
    const part none = {1e-15, 3}, all = {1, 3}, bad = {1.5, 0}, negative = {-0.5, 0};
    CHECK_EQ(verify_part(&none).n_blocks_checked, 1);
    CHECK_EQ(verify_part(&all).n_blocks_checked, N_BLOCKS);
    for (uint64_t seed = 0; seed < 100; seed++) {
        const part half = {0.5, seed};
        const tokmap_verify_report report = verify_part(&half);
        CHECK_EQ(report.n_blocks, N_BLOCKS);
        CHECK_EQ(report.n_blocks_checked, verify_part(&half).n_blocks_checked);
        n_checked += report.n_blocks_checked;
    }
    CHECK(n_checked > 100 + 5 * 30 && n_checked < 100 + 5 * 70);
    const tokmap_verify_options too_much = {.struct_size = sizeof too_much,
                                            .fraction = bad.fraction};
    const tokmap_verify_options below = {.struct_size = sizeof below,
                                         .fraction = negative.fraction};
    CHECK_INT(tokmap_dataset_verify(ds, &too_much, NULL, NULL), TOKMAP_ERR_ARGUMENT);
    CHECK_INT(tokmap_dataset_verify(ds, &below, NULL, NULL), TOKMAP_ERR_ARGUMENT);
    tokmap_dataset_close(ds);
}

static int stop_at_half(void *context, uint64_t n_done, uint64_t n_total)
{
    (void)context;
    return 2 * n_done > n_total;
}

static void count_block(void *context, const tokmap_damage *damage)
{
    CHECK_EQ(damage->block_index, 0);
    CHECK_EQ(damage->n_documents, 0); /* not known yet */
    ++*(uint64_t *)context;
}

TEST(what_was_found_before_a_stop_is_reported)
{
    uint64_t n_calls = 0;
    start();
    damage_byte(file(".bin"), 5);
    const tokmap_verify_options options = {.struct_size = sizeof options,
                                           .n_threads = 1,
                                           .context = &n_calls,
                                           .on_progress = stop_at_half,
                                           .on_damage = count_block};
    tokmap_verify_report report = TOKMAP_INIT(tokmap_verify_report);
    CHECK_INT(tokmap_dataset_verify(ds, &options, &report, &err), TOKMAP_ERR_STOPPED);
    CHECK(report.n_blocks_checked > 0 && report.n_blocks_checked < N_BLOCKS);
    CHECK(n_calls == 1 && report.n_damages == 1);
    tokmap_dataset_close(ds);
}

TEST(a_fraction_finds_damage_in_the_index_and_in_its_blocks_alone)
{
    start();
    const part first_only = {1e-15, 3};
    damage_byte(file(".bin"), 3 * TOKMAP_I_BLOCK_BYTES);
    CHECK_EQ(verify_part(&first_only).n_damages, 0);
    damage_byte(file(".bin"), 5);
    CHECK_EQ(verify_part(&first_only).n_damages, 1);
    damage_byte(file(".tmi"), 400);
    CHECK_EQ(verify_part(&first_only).n_damages, 2);
    tokmap_dataset_close(ds);
}
