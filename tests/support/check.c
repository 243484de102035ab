/* SPDX-License-Identifier: Apache-2.0 */
#include "support/check.h"

#include <ftw.h>
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>

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

void check_add(const char *name, void (*test)(void))
{
    if (check.n_tests == CHECK_MAX_TESTS)
        abort();
    check.names[check.n_tests] = name;
    check.tests[check.n_tests++] = test;
}

void check_end(char outcome, const char *file, int line, const char *format, ...)
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

void check_eq(const char *file, int line, const char *what, uint64_t a, uint64_t b)
{
    if (a != b)
        check_end('F', file, line, "%s is %" PRIu64 ", not %" PRIu64, what, a, b);
}

void check_int(const char *file, int line, const char *what, int64_t a, int64_t b)
{
    if (a != b)
        check_end('F', file, line, "%s is %" PRId64 ", not %" PRId64, what, a, b);
}

void check_str(const char *file, int line, const char *what, const char *a, const char *b)
{
    if (!a || !b || strcmp(a, b) != 0)
        check_end('F', file, line, "%s is \"%s\", not \"%s\"", what, a ? a : "(NULL)",
                  b ? b : "(NULL)");
}

void check_no_problem(const char *file, int line, const char *problem)
{
    if (problem)
        check_end('F', file, line, "%s", problem);
}

void check_says(const char *file, int line, const char *text, const char *part)
{
    if (!strstr(text, part))
        check_end('F', file, line, "\"%s\" does not say \"%s\"", text, part);
}

bool check_part(void (*part)(void *), void *context)
{
    jmp_buf end;
    volatile bool passed = false;
    memcpy(&end, &check.end, sizeof end);
    if (setjmp(check.end) == 0) {
        part(context);
        passed = true;
    }
    memcpy(&check.end, &end, sizeof end);
    return passed;
}

const char *check_why(void)
{
    return check.why;
}

bool check_large(void)
{
    return getenv("TOKMAP_LONG") != NULL;
}

bool check_long(void)
{
    const char *how_long = getenv("TOKMAP_LONG");
    return how_long && strcmp(how_long, "all") == 0;
}

bool check_sanitized(void)
{
    return getenv("TOKMAP_SANITIZED") != NULL;
}

bool check_emulated(void)
{
    return check_sanitized() && strcmp(getenv("TOKMAP_SANITIZED"), "qemu") == 0;
}

uint32_t check_bits(void)
{
    static uint64_t state = 1;
    state = state * 6364136223846793005 + 1442695040888963407;
    return (uint32_t)(state >> 33 ^ state >> 48 << 16);
}

uint32_t check_below(uint32_t n)
{
    return (uint32_t)((uint64_t)check_bits() * n >> 32);
}

bool check_one_in(uint32_t n)
{
    return check_below(n) == 0;
}

uint64_t check_mix(uint64_t a, uint64_t b)
{
    uint64_t x = (a + 1) * UINT64_C(0x9E3779B97F4A7C15) ^ (b + 7) * UINT64_C(0xD1B54A32D192ED03);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static int check_remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

const char *check_dir(void)
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

const char *check_path(const char *name)
{
    static char paths[16][1024];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", check_dir(), name);
    return path;
}

void check_remove(const char *folder)
{
    nftw(folder, check_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

static void check_run(int i)
{
    check.outcome = 'o';
    if (setjmp(check.end) == 0)
        check.tests[i]();
    if (check.dir[0])
        check_remove(check.dir);
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
    setlocale(LC_ALL, "");            /* of LC_ALL: tests/base/test_locale.py */
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
