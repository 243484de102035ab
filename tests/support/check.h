/* check.h - the little that a test program needs; include it in one file of the program, once.
 *
 *     TEST(open_refuses_a_folder)
 *     {
 *         CHECK_INT(tokmap_dataset_open(&ds, check_dir(), &err), TOKMAP_ERR_NOT_A_DATASET);
 *     }
 *
 * There is no main to write. `test_x` runs all tests in their order, `test_x NAME...` only these. A
 * failed check ends its test, by longjmp: do not check in threads; in a forked child it ends the
 * child with status 1. Exit status: 0 all passed, 1 some failed, 77 all skipped. */
#ifndef TOKMAP_CHECK_H
#define TOKMAP_CHECK_H

#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TEST(name)                                                                                 \
    static void test_##name(void);                                                                 \
    __attribute__((constructor)) static void check_add_##name(void)                                \
    {                                                                                              \
        check_add(#name, test_##name);                                                             \
    }                                                                                              \
    static void test_##name(void)

#define CHECK(cond) ((cond) ? (void)0 : CHECK_FAIL("%s", #cond))
#define CHECK_EQ(a, b) check_eq(__FILE__, __LINE__, #a, (a), (b))   /* unsigned 64 bits */
#define CHECK_INT(a, b) check_int(__FILE__, __LINE__, #a, (a), (b)) /* signed: status, exit code */
#define CHECK_STR(a, b) check_str(__FILE__, __LINE__, #a, (a), (b))
#define CHECK_FAIL(...) check_end('F', __FILE__, __LINE__, __VA_ARGS__)
#define SKIP(...) check_end('s', __FILE__, __LINE__, __VA_ARGS__)

enum {
    CHECK_MAX_TESTS = 256
};
static struct {
    const char *names[CHECK_MAX_TESTS];
    void (*tests[CHECK_MAX_TESTS])(void);
    int n_tests, n_failed, n_skipped;
    pid_t pid;
    jmp_buf end;
    char outcome, why[1024], dir[512];
} check;

__attribute__((unused)) static void check_add(const char *name, void (*test)(void))
{
    if (check.n_tests == CHECK_MAX_TESTS)
        abort();
    check.names[check.n_tests] = name;
    check.tests[check.n_tests++] = test;
}

__attribute__((noreturn, format(printf, 4, 5))) static void
check_end(char outcome, const char *file, int line, const char *format, ...)
{
    const char *slash = strrchr(file, '/');
    int n = 0;
    if (outcome == 'F')
        n = snprintf(check.why, sizeof check.why, "%s:%d: ", slash ? slash + 1 : file, line);
    va_list args;
    va_start(args, format);
    vsnprintf(check.why + n, sizeof check.why - (size_t)n, format, args);
    va_end(args);
    if (getpid() != check.pid) {
        fprintf(stderr, "in a child: %s\n", check.why);
        _exit(1);
    }
    check.outcome = outcome;
    longjmp(check.end, 1);
}

__attribute__((unused)) static void check_eq(const char *file, int line, const char *what,
                                             uint64_t a, uint64_t b)
{
    if (a != b)
        check_end('F', file, line, "%s is %" PRIu64 ", not %" PRIu64, what, a, b);
}

__attribute__((unused)) static void check_int(const char *file, int line, const char *what,
                                              int64_t a, int64_t b)
{
    if (a != b)
        check_end('F', file, line, "%s is %" PRId64 ", not %" PRId64, what, a, b);
}

__attribute__((unused)) static void check_str(const char *file, int line, const char *what,
                                              const char *a, const char *b)
{
    if (!a || !b || strcmp(a, b) != 0)
        check_end('F', file, line, "%s is \"%s\", not \"%s\"", what, a ? a : "(NULL)",
                  b ? b : "(NULL)");
}

/* `make test` asks for the long variants; sanitizer builds are slow and map a lot of memory. */
__attribute__((unused)) static bool check_long(void)
{
    return getenv("TOKMAP_LONG") != NULL;
}

__attribute__((unused)) static bool check_sanitized(void)
{
    return getenv("TOKMAP_SANITIZED") != NULL;
}

static int check_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

/* A folder of this test alone, empty at first, removed after it. */
__attribute__((unused)) static const char *check_dir(void)
{
    const char *tmp = getenv("TMPDIR");
    if (check.dir[0])
        return check.dir;
    snprintf(check.dir, sizeof check.dir, "%s/tokmap_test_XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(check.dir)) {
        perror(check.dir);
        exit(1);
    }
    return check.dir;
}

/* check_dir()/name. The text is good for the next 15 calls. */
__attribute__((unused)) static const char *check_path(const char *name)
{
    static char paths[16][1024];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", check_dir(), name);
    return path;
}

static void check_run(int i)
{
    check.outcome = 'o';
    if (setjmp(check.end) == 0)
        check.tests[i]();
    if (check.dir[0])
        nftw(check.dir, check_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    check.dir[0] = 0;
    for (char *c = check.why; *c; c++) /* one line per test is the protocol */
        *c = *c == '\n' ? ' ' : *c;
    if (check.outcome == 'o')
        printf("ok %s\n", check.names[i]);
    else
        printf("%s %s: %s\n", check.outcome == 'F' ? "FAIL" : "skip", check.names[i], check.why);
    check.n_failed += check.outcome == 'F';
    check.n_skipped += check.outcome == 's';
}

int main(int argc, char **argv)
{
    int n_run = 0;
    check.pid = getpid();
    setvbuf(stdout, NULL, _IOLBF, 0); /* a forked child must not print our lines again */
    for (int i = 0; i < check.n_tests; i++) {
        bool wanted = argc == 1;
        for (int k = 1; k < argc; k++)
            wanted |= strcmp(argv[k], check.names[i]) == 0;
        if (wanted)
            check_run(i);
        n_run += wanted;
    }
    if (n_run == 0)
        printf("FAIL none: there is no test of that name\n");
    return n_run == 0 || check.n_failed ? 1 : check.n_skipped == n_run ? 77 : 0;
}

#endif /* TOKMAP_CHECK_H */
