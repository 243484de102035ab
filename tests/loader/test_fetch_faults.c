/* SPDX-License-Identifier: Apache-2.0 */
/* test_fetch_faults - reading ahead when files shrink, disks fail and systems refuse: an error with
 * file and offset, or a refusal at open that names the reason; never a signal, a hang or a wrong
 * token; and once the trouble is over, the same step. */
#include "support/check.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/io_uring.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include "support/faults.h"
#include "loader/fetch_case.h"
#include "support/must.h"

/* ---- In front of the system: madvise, and the reads that are put into an io_uring ---- */

static struct {
    atomic_int madvise_errno, n_madvise; /* fails so often */
    atomic_int enter_errno, n_enter;     /* handing reads over fails so often */
    atomic_int read_errno, n_read;       /* reads fail so often; below 0: by another way */
    atomic_int shorten;                  /* reads stop after so many bytes */
    atomic_int n_changed;
} trouble;

/* Of the ring that was made last, as the kernel shares it. */
static struct {
    struct io_uring_params p;
    uint8_t *ring;
    struct io_uring_sqe *entries;
} seen;

static long real_syscall(long number, const long a[6])
{
    static long (*next)(long, ...);
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "syscall");
    return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static bool one_of(atomic_int *n)
{
    int left = atomic_load(n);
    while (left > 0)
        if (atomic_compare_exchange_weak(n, &left, left - 1))
            return true;
    return false;
}

/* A request that does nothing but give the result that is wanted; since Linux 6.10. */
static void make_fail(struct io_uring_sqe *entry, int error)
{
    const uint64_t id = entry->user_data;
    memset(entry, 0, sizeof *entry);
    entry->opcode = IORING_OP_NOP;
    entry->rw_flags = 1; /* IORING_NOP_INJECT_RESULT */
    entry->len = (uint32_t)-error;
    entry->user_data = id;
}

static void change_reads(uint32_t n)
{
    const uint32_t tail = *(volatile uint32_t *)(seen.ring + seen.p.sq_off.tail);
    for (uint32_t i = tail - n; i != tail; i++) {
        struct io_uring_sqe *entry = &seen.entries[i & (seen.p.sq_entries - 1)];
        const uint32_t most = (uint32_t)atomic_load(&trouble.shorten);
        if (entry->opcode == IORING_OP_READ && one_of(&trouble.n_read)) {
            make_fail(entry, trouble.read_errno);
            trouble.n_changed++;
        } else if (most > 0 && entry->len > most) {
            entry->len = most;
            trouble.n_changed++;
        }
    }
}

static void see_ring(int fd, const struct io_uring_params *p)
{
    const size_t n_bytes = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    const size_t n_entries_bytes = p->sq_entries * sizeof *seen.entries;
    long a[] = {0, (long)n_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING};
    if (seen.ring)
        munmap(seen.ring, n_bytes);
    if (seen.entries)
        munmap(seen.entries, n_entries_bytes);
    seen.p = *p;
    seen.ring = (uint8_t *)real_syscall(SYS_mmap, a); /* no fault strikes here */
    a[1] = (long)n_entries_bytes;
    a[5] = (long)IORING_OFF_SQES;
    seen.entries = (struct io_uring_sqe *)real_syscall(SYS_mmap, a);
}

/* Takes six arguments, as libc does, whether so many were given or not. */
__attribute__((no_sanitize("address"))) long syscall(long number, ...)
{
    long a[6];
    va_list args;
    va_start(args, number);
    for (int i = 0; i < 6; i++)
        a[i] = va_arg(args, long);
    va_end(args);
    if (number == SYS_io_uring_enter && one_of(&trouble.n_enter)) {
        trouble.n_changed++;
        errno = trouble.enter_errno;
        return -1;
    }
    if (number == SYS_io_uring_enter && a[1] > 0)
        change_reads((uint32_t)a[1]);
    const long result = real_syscall(number, a);
    if (number == SYS_io_uring_setup && result >= 0)
        see_ring((int)result, (const struct io_uring_params *)a[1]);
    return result;
}

int madvise(void *at, size_t n_bytes, int advice)
{
    if (advice == MADV_POPULATE_READ && one_of(&trouble.n_madvise)) {
        trouble.n_changed++;
        errno = trouble.madvise_errno;
        return -1;
    }
    return (int)syscall(SYS_madvise, at, n_bytes, advice);
}

/* ---- Steps that fail, and then do not ---- */

enum {
    N_TOKENS = 30011,
    FOR_EVER = INT32_MAX
};

static void add_all(fetch_case *c)
{
    ahead_add(c, N_TOKENS, 2);
    ahead_add(c, N_TOKENS, 4);
    ahead_add_adopted(c, N_TOKENS, 130);
    c->max_tokens = 1100;
}

/* Steps until one fails; what comes before it is right, unless it is in a map that was cut. */
static uint64_t go_until_error(fetch_case *c, tokmap_i_fetch *f, uint64_t i, bool compare,
                               tokmap_error *err)
{
    for (uint64_t end = i + 200; i < end; i++) {
        const tokmap_i_fetch_row *rows;
        if (tokmap_i_fetch_next(f, &rows, err))
            return i;
        if (compare)
            ahead_compare(c, rows, 9, i * 9);
    }
    CHECK_FAIL("no step failed");
}

static void expect_steps(fetch_case *c, tokmap_i_fetch *f, uint64_t i, uint64_t n)
{
    for (const uint64_t end = i + n; i < end; i++)
        ahead_expect(c, f, 9, i * 9);
}

/* ---- Files that are cut ---- */

static void put_back(const char *path, file_bytes *whole)
{
    CHECK(file_store(path, whole->data, whole->n_bytes));
    free(whole->data);
}

static void survives_files_that_are_cut(tokmap_io kind)
{
    static const size_t sizes[] = {0, 1, 511, 4096, 20000, 40001, 2 * N_TOKENS - 1};
    fetch_case c = {.seed = 1};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, kind);
    for (size_t k = 0; k < 2 * sizeof sizes / sizeof *sizes; k++) {
        const size_t size = sizes[k / 2];
        const uint32_t dataset = k % 2 ? 2 : 0;
        tokmap_error err = {0};
        tokmap_i_fetch_restart(f, 0, 9, 9);
        expect_steps(&c, f, 0, 3);
        const char *path = ahead_path(dataset, dataset == 2 ? ".ds" : ".bin");
        file_bytes whole = file_cut(path, size);
        const bool compare = kind != TOKMAP_IO_POPULATE;
        const uint64_t i = go_until_error(&c, f, 3, compare, &err);
        CHECK_INT(err.status, TOKMAP_ERR_IO);
        CHECK_INT(err.sys_errno, 0);
        CHECK_EQ(err.file_offset, size);
        CHECK_SAYS(err.text, dataset == 2 ? "d2.ds" : "d0.bin");
        CHECK_SAYS(err.text, "shortened");
        CHECK_INT(tokmap_i_fetch_next(f, &(const tokmap_i_fetch_row *){0}, &err), TOKMAP_ERR_IO);
        put_back(path, &whole);
        expect_steps(&c, f, i, 20);
    }
    ahead_end(&c, f);
}
EACH_KIND(survives_files_that_are_cut)

/* The last page of the file is there, and zeros behind the cut: they are no tokens. Nearly every
 * row is cut in its middle. */
static void serves_no_zeros_behind_a_cut(tokmap_io kind)
{
    fetch_case c = {.seed = 2, .max_tokens = 1100, .from = 8001, .to = 9101};
    ahead_add(&c, N_TOKENS, 2);
    tokmap_i_fetch *f = ahead_begin(&c, kind);
    const char *path = ahead_path(0, ".bin");
    file_bytes whole = file_cut(path, 2 * 9100 - 1);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    tokmap_error err = {0};
    CHECK(go_until_error(&c, f, 0, true, &err) < 9);
    CHECK_INT(err.sys_errno, 0);
    CHECK_EQ(err.file_offset, 2 * 9100 - 1);
    put_back(path, &whole);
    ahead_end(&c, f);
}
EACH_KIND(serves_no_zeros_behind_a_cut)

/* ---- Disks that fail ---- */

static atomic_uint bad_from, bad_to, n_bad;
static atomic_int bad_errno = EIO;

static int fail_bad_bytes(int fd, uint64_t offset, size_t n_bytes)
{
    (void)fd;
    const bool hit = offset < bad_to && offset + n_bytes > bad_from;
    n_bad += hit;
    return hit ? bad_errno : 0;
}

static void break_disk(unsigned from, unsigned to)
{
    bad_from = from;
    bad_to = to;
}

/* The step fails for as long as the disk does, and the error names the place. */
static void expect_bad_disk(fetch_case *c, tokmap_i_fetch *f, int sys_errno)
{
    tokmap_error err = {0};
    const uint64_t i = go_until_error(c, f, 3, true, &err);
    CHECK_INT(err.status, TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, sys_errno);
    CHECK(err.file_offset > 0 && strstr(err.text, "cannot") != NULL);
    CHECK(strstr(err.text, "/d0.bin") || strstr(err.text, "/d1.bin") || strstr(err.text, "/d2.ds"));
    for (int k = 0; k < 3; k++)
        CHECK_INT(tokmap_i_fetch_next(f, &(const tokmap_i_fetch_row *){0}, &err), TOKMAP_ERR_IO);
    break_disk(0, 0);
    trouble.n_madvise = trouble.n_read = trouble.n_enter = 0;
    expect_steps(c, f, i, 20);
}

TEST(read_names_the_byte_that_cannot_be_read)
{
    fetch_case c = {.seed = 3};
    add_all(&c);
    fault.pread_hook = fail_bad_bytes; /* before there is a thread that reads */
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_READ);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    expect_steps(&c, f, 0, 3);
    break_disk(30000, 40000);
    expect_bad_disk(&c, f, EIO);
    tokmap_i_fetch_close(f, false);
    fault.pread_hook = NULL;
    ahead_close(&c);
}

TEST(populate_names_the_byte_that_cannot_be_read)
{
    static const int errors[] = {EFAULT, EHWPOISON, EIO, ENOMEM, EINVAL, EPERM, ENOSYS};
    fetch_case c = {.seed = 3};
    add_all(&c);
    fault.pread_hook = fail_bad_bytes; /* before there is a thread that reads */
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_POPULATE);
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
        tokmap_i_fetch_restart(f, 0, 9, 9);
        expect_steps(&c, f, 0, 3);
        break_disk(30000, 40000);
        trouble.madvise_errno = errors[k];
        trouble.n_madvise = FOR_EVER;
        tokmap_error err = {0};
        uint64_t i = 3;
        if (k >= 4) { /* an old system, or a sandbox: all that pread can read is handed out */
            i = go_until_error(&c, f, i, true, &err);
            CHECK_INT(err.sys_errno, EIO);
            CHECK(err.file_offset >= 28000 && err.file_offset < 40000);
            break_disk(0, 0);
            expect_steps(&c, f, i, 20);
            trouble.n_madvise = 0;
            continue;
        }
        break_disk(0, 0); /* read it can be, but not mapped */
        expect_bad_disk(&c, f, errors[k]);
        break_disk(30000, 40000);
        tokmap_i_fetch_restart(f, 27, 9, 9);
        trouble.n_madvise = FOR_EVER;
        (void)go_until_error(&c, f, 3, true, &err);
        break_disk(0, 0);
        trouble.n_madvise = 0;
    }
    tokmap_i_fetch_close(f, false);
    fault.pread_hook = NULL;
    ahead_close(&c);
}

TEST(populate_is_not_stopped_by_what_passes)
{
    fetch_case c = {.seed = 3};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_POPULATE);
    for (uint64_t i = 0; i < 50; i++) {
        trouble.madvise_errno = i % 2 ? EAGAIN : EINTR;
        trouble.n_madvise = 1;
        ahead_expect(&c, f, 9, i * 9);
    }
    trouble.n_madvise = 0;
    CHECK(trouble.n_changed > 0);
    ahead_end(&c, f);
}

TEST(read_goes_on_after_short_and_interrupted_reads)
{
    fetch_case c = {.seed = 4};
    add_all(&c);
    const tokmap_i_fetch_options o = ahead_options(&c, TOKMAP_IO_READ);
    tokmap_i_fetch *f = ahead_fetch(&o);
    fault_arm(FAULT_SHORT, FAULT_PREAD, 0, 1);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    expect_steps(&c, f, 0, 20);
    tokmap_i_fetch_close(f, false);
    CHECK(fault_disarm());
    ahead_close(&c);
}

/* A file system that answers EINTR each time, and takes a while for it. */
TEST(reads_that_are_always_interrupted_are_an_error_soon)
{
    static const tokmap_io ways[] = {TOKMAP_IO_READ, TOKMAP_IO_POPULATE};
    fetch_case c = {.seed = 3};
    add_all(&c);
    fault.pread_hook = fail_bad_bytes; /* before there is a thread that reads */
    for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
        tokmap_i_fetch *f = ahead_begin(&c, ways[k]);
        bad_errno = EINTR;
        trouble.madvise_errno = EINTR;
        trouble.n_madvise = ways[k] == TOKMAP_IO_POPULATE ? FOR_EVER : 0;
        break_disk(0, UINT32_MAX);
        n_bad = 0;
        tokmap_i_fetch_restart(f, 0, 9, 9);
        tokmap_error err = {0};
        const tokmap_i_fetch_row *rows;
        CHECK_INT(tokmap_i_fetch_next(f, &rows, &err), TOKMAP_ERR_IO);
        CHECK_INT(err.sys_errno, EINTR);
        CHECK(n_bad < 5000);
        trouble.n_madvise = 0;
        break_disk(0, 0);
        bad_errno = EIO;
        tokmap_i_fetch_close(f, false);
    }
    fault.pread_hook = NULL;
    ahead_close(&c);
}

/* ---- io_uring: what may come back ---- */

/* Whether this kernel gives the results that are asked for. */
static void need_injection(fetch_case *c)
{
    tokmap_i_fetch_options o = ahead_options(c, TOKMAP_IO_DIRECT);
    tokmap_i_fetch_close(ahead_fetch(&o), false);
    tokmap_i_fetch *f = NULL;
    tokmap_error err;
    trouble.read_errno = EBADMSG;
    trouble.n_read = 1;
    const tokmap_status status = tokmap_i_fetch_open(&f, &o, &err);
    trouble.n_read = 0;
    CHECK_INT(status, TOKMAP_ERR_UNSUPPORTED);
    CHECK(f == NULL);
    if (err.sys_errno != EBADMSG) {
        ahead_close(c);
        SKIP("this kernel has no requests that fail at will (Linux 6.10 has)");
    }
}

TEST(direct_names_the_byte_that_cannot_be_read)
{
    static const int errors[] = {EIO, ESTALE, EINVAL, EOPNOTSUPP};
    fetch_case c = {.seed = 5};
    add_all(&c);
    need_injection(&c);
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_DIRECT);
    for (size_t k = 0; k < sizeof errors / sizeof *errors; k++) {
        tokmap_i_fetch_restart(f, 0, 9, 9);
        expect_steps(&c, f, 0, 3);
        trouble.read_errno = errors[k];
        trouble.n_read = FOR_EVER;
        expect_bad_disk(&c, f, errors[k]);
    }
    ahead_end(&c, f);
}

/* One read of many fails: read ahead, its step is tried again before anybody hears of it. */
TEST(direct_is_not_stopped_by_what_passes)
{
    static const int errors[] = {EIO, EAGAIN, EINTR, ENOMEM};
    fetch_case c = {.seed = 6};
    add_all(&c);
    need_injection(&c);
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_DIRECT);
    for (uint64_t i = 0; i < 200; i++) {
        const tokmap_i_fetch_row *rows;
        const bool asked_again = i % 4 != 0;
        tokmap_error err;
        trouble.read_errno = errors[i % 4];
        trouble.n_read = i % 4 == 0 ? 1 : 20;
        if (!tokmap_i_fetch_next(f, &rows, &err)) {
            ahead_compare(&c, rows, 9, i * 9);
            continue;
        }
        CHECK(!asked_again || err.sys_errno == EIO);
        trouble.n_read = 0;
        ahead_expect(&c, f, 9, i * 9);
    }
    trouble.n_read = 0;
    CHECK(trouble.n_changed > 0);
    ahead_end(&c, f);
}

TEST(direct_goes_on_after_short_reads)
{
    fetch_case c = {.seed = 7};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_DIRECT);
    trouble.n_changed = 0;
    trouble.shorten = 4096;
    tokmap_i_fetch_restart(f, 0, 9, 9);
    expect_steps(&c, f, 0, 40);
    trouble.shorten = 0;
    CHECK(trouble.n_changed > 0);
    expect_steps(&c, f, 40, 20);
    ahead_end(&c, f);
}

/* Submitting reads fails: briefly, without effect; permanently, with an error. */
TEST(direct_survives_a_system_that_takes_no_reads)
{
    static const int errors[] = {EAGAIN, EBUSY, ENOMEM, EINTR, EPERM};
    fetch_case c = {.seed = 8};
    add_all(&c);
    tokmap_i_fetch *f = ahead_begin(&c, TOKMAP_IO_DIRECT);
    uint64_t i = 0;
    for (size_t k = 0; k < 4; k++) {
        trouble.enter_errno = errors[k];
        trouble.n_enter = 5;
        expect_steps(&c, f, i, 10);
        i += 10;
    }
    tokmap_error err = {0};
    trouble.enter_errno = EPERM;
    trouble.n_enter = FOR_EVER;
    i = go_until_error(&c, f, i, true, &err);
    CHECK_INT(err.status, TOKMAP_ERR_IO);
    CHECK_INT(err.sys_errno, EPERM);
    trouble.n_enter = 0;
    expect_steps(&c, f, i, 20);
    trouble.n_enter = FOR_EVER;
    tokmap_i_fetch_restart(f, 0, 9, 9);
    tokmap_i_fetch_close(f, false); /* and that does not stop it from ending */
    trouble.n_enter = 0;
    ahead_close(&c);
}

/* ---- Systems that refuse: in a child, which is rid of them when it ends ---- */

static void refuse_calls(const int *numbers, int n, int error)
{
    struct sock_filter code[16];
    unsigned short at = 0;
    code[at++] =
        (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (int i = 0; i < n; i++) {
        code[at++] =
            (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], 0, 1);
        code[at++] =
            (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)error);
    }
    code[at++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    const struct sock_fprog program = {at, code};
    CHECK_INT(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
        _exit(77);
}

static void in_a_child(void (*work)(fetch_case *c), fetch_case *c)
{
    const pid_t child = fork();
    if (child == 0) {
        work(c);
        ahead_close(c);
        _exit(0);
    }
    const int status = must_exit(child);
    ahead_close(c);
    if (status == 77)
        SKIP("this machine allows no seccomp filter");
    CHECK_INT(status, 0);
}

static void need_direct(fetch_case *c)
{
    const tokmap_i_fetch_options o = ahead_options(c, TOKMAP_IO_DIRECT);
    tokmap_i_fetch_close(ahead_fetch(&o), false);
}

static void with_the_usual(void (*work)(fetch_case *c), bool direct)
{
    fetch_case c = {.seed = 9};
    add_all(&c);
    if (direct)
        need_direct(&c);
    in_a_child(work, &c);
}

static void expect_refusal(fetch_case *c, tokmap_io kind, int sys_errno, const char *reason)
{
    tokmap_i_fetch_options o = ahead_options(c, kind);
    tokmap_i_fetch *f = (tokmap_i_fetch *)c;
    tokmap_error err = {0};
    CHECK_INT(tokmap_i_fetch_open(&f, &o, &err), TOKMAP_ERR_UNSUPPORTED);
    CHECK(f == NULL);
    CHECK_INT(err.sys_errno, sys_errno);
    CHECK_SAYS(err.text, reason);
}

static void expect_working(fetch_case *c, tokmap_io kind)
{
    tokmap_i_fetch_options o = ahead_options(c, kind);
    tokmap_i_fetch *f = NULL;
    tokmap_error err;
    CHECK_OK(tokmap_i_fetch_open(&f, &o, &err), err);
    tokmap_i_fetch_restart(f, 0, 9, 9);
    expect_steps(c, f, 0, 10);
    tokmap_i_fetch_close(f, false);
}

static void with_uring_refused(fetch_case *c)
{
    const int number = SYS_io_uring_setup;
    refuse_calls(&number, 1, EPERM);
    expect_refusal(c, TOKMAP_IO_DIRECT, EPERM, "io_uring");
    expect_working(c, TOKMAP_IO_POPULATE);
    expect_working(c, TOKMAP_IO_READ);
}

TEST(direct_is_refused_where_io_uring_is)
{
    with_the_usual(with_uring_refused, true);
}

static void with_enter_refused(fetch_case *c)
{
    const int number = SYS_io_uring_enter;
    refuse_calls(&number, 1, EPERM);
    expect_refusal(c, TOKMAP_IO_DIRECT, EPERM, "cannot be read by io_uring");
}

TEST(direct_is_refused_where_io_uring_takes_no_reads)
{
    with_the_usual(with_enter_refused, true);
}

static void with_enter_refused_later(fetch_case *c)
{
    const int number = SYS_io_uring_enter;
    tokmap_i_fetch_options o = ahead_options(c, TOKMAP_IO_DIRECT);
    tokmap_i_fetch *f = NULL;
    const tokmap_i_fetch_row *rows;
    CHECK_INT(tokmap_i_fetch_open(&f, &o, NULL), TOKMAP_OK);
    refuse_calls(&number, 1, EPERM); /* of this thread, not of that which reads */
    tokmap_i_fetch_restart(f, 0, 9, 9);
    expect_steps(c, f, 0, 10);
    CHECK_INT(tokmap_i_fetch_next(f, &rows, NULL), TOKMAP_OK);
    tokmap_i_fetch_close(f, false);
}

TEST(direct_reads_in_its_own_thread_alone)
{
    with_the_usual(with_enter_refused_later, true);
}

static void with_threads_refused(fetch_case *c)
{
    const int numbers[] = {SYS_clone, SYS_clone3};
    refuse_calls(numbers, 2, EAGAIN);
    for (int kind = TOKMAP_IO_DIRECT; kind <= TOKMAP_IO_READ; kind++) {
        const tokmap_i_fetch_options o = ahead_options(c, (tokmap_io)kind);
        tokmap_i_fetch *f = NULL;
        tokmap_error err = {0};
        const tokmap_status status = tokmap_i_fetch_open(&f, &o, &err);
        CHECK(f == NULL);
        if (kind == TOKMAP_IO_DIRECT && status == TOKMAP_ERR_UNSUPPORTED)
            continue; /* before it came to a thread */
        CHECK_INT(status, TOKMAP_ERR_IO);
        CHECK_INT(err.sys_errno, EAGAIN);
        CHECK_SAYS(err.text, "TOKMAP_IO_MAP");
    }
}

TEST(no_thread_is_an_error_of_the_system_and_not_of_the_kind)
{
    with_the_usual(with_threads_refused, false);
}

static void with_few_descriptors(fetch_case *c)
{
    const struct rlimit limit = {16, 16};
    CHECK_INT(setrlimit(RLIMIT_NOFILE, &limit), 0);
    expect_refusal(c, TOKMAP_IO_DIRECT, EMFILE, "cannot be read past the page cache");
    expect_working(c, TOKMAP_IO_POPULATE);
    expect_working(c, TOKMAP_IO_READ);
}

TEST(direct_is_refused_where_descriptors_run_out)
{
    fetch_case c = {.seed = 10, .max_tokens = 200};
    for (uint32_t i = 0; i < 20; i++)
        ahead_add(&c, 300, 2);
    need_direct(&c);
    in_a_child(with_few_descriptors, &c);
}

/* Limits as a container has them, for a user without rights of his own. */
static void with_little_locked_memory(fetch_case *c)
{
    const struct rlimit limit = {64 << 10, 64 << 10};
    tokmap_i_fetch_options o = ahead_options(c, TOKMAP_IO_DIRECT);
    tokmap_i_fetch *f = NULL;
    tokmap_error err;
    CHECK_INT(setrlimit(RLIMIT_MEMLOCK, &limit), 0);
    for (uint32_t i = 0; i < 20; i++) {
        const tokmap_status status = tokmap_i_fetch_open(&f, &o, &err);
        CHECK(!status || status == TOKMAP_ERR_UNSUPPORTED); /* before Linux 5.12 rings count */
        if (status)
            continue;
        tokmap_i_fetch_restart(f, 0, 9, 9);
        expect_steps(c, f, 0, 3);
        tokmap_i_fetch_close(f, false);
    }
    expect_working(c, TOKMAP_IO_POPULATE);
}

TEST(little_locked_memory_is_enough)
{
    with_the_usual(with_little_locked_memory, true);
}

TEST(direct_is_refused_where_files_cannot_be_opened_for_it)
{
    fetch_case c = {.seed = 9};
    add_all(&c);
    need_direct(&c);
    for (uint64_t nth = 1; nth <= 3; nth++) {
        fault_arm(FAULT_ONCE, FAULT_OPEN, EINVAL, nth);
        expect_refusal(&c, TOKMAP_IO_DIRECT, EINVAL, nth == 3 ? "d2.ds" : "cannot be read");
        CHECK(fault_disarm());
    }
    ahead_close(&c);
}

/* ---- No memory ---- */

static void leaves_nothing_when_memory_runs_out(tokmap_io kind)
{
    fetch_case c = {.seed = 9};
    add_all(&c);
    tokmap_i_fetch_options o = ahead_options(&c, kind);
    tokmap_i_fetch_close(ahead_fetch(&o), false);
    const unsigned calls = FAULT_MMAP | (FAULT_MEMORY_WORKS ? FAULT_MEMORY : 0);
    uint64_t nth = 1;
    for (bool struck = true; struck; nth++) {
        tokmap_i_fetch *f = NULL;
        tokmap_error err;
        fault_n_live = 0;
        fault_arm(FAULT_ONCE, calls, ENOMEM, nth);
        const tokmap_status status = tokmap_i_fetch_open(&f, &o, &err);
        struck = fault.n_fired > 0;
        CHECK(!status || status == TOKMAP_ERR_MEMORY || status == TOKMAP_ERR_UNSUPPORTED);
        CHECK((status == TOKMAP_OK) == (f != NULL));
        if (f) {
            fault.calls = 0; /* the thread reads it once it has steps to read */
            tokmap_i_fetch_restart(f, 0, 9, 9);
            expect_steps(&c, f, 0, 3);
        }
        tokmap_i_fetch_close(f, false);
        fault_disarm();
        CHECK_EQ((uint64_t)fault_n_live, 0);
    }
    CHECK(nth > 2 || !FAULT_MEMORY_WORKS);
    ahead_close(&c);
}
EACH_KIND(leaves_nothing_when_memory_runs_out)
