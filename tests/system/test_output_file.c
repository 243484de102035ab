/* SPDX-License-Identifier: Apache-2.0 */
/* The files of export if flock and linkat behave in unusual ways. */
#include "support/check.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "support/bad_days.h"
#include "system/output_file.h"

/* 0: calls the real function. Replaces libc's for the whole program. */
static int flock_errno, linkat_errno;

int flock(int fd, int operation)
{
    if (flock_errno) {
        errno = flock_errno;
        return -1;
    }
    return (int)syscall(SYS_flock, fd, operation);
}

int linkat(int old_folder, const char *old, int new_folder, const char *new, int flags)
{
    if (linkat_errno) {
        errno = linkat_errno;
        return -1;
    }
    return (int)syscall(SYS_linkat, old_folder, old, new_folder, new, flags);
}

static void write_text(const char *path, const char *text)
{
    CHECK(file_store(path, text, strlen(text)));
}

static const char *text_of(const char *path)
{
    static char text[512];
    FILE *f = fopen(path, "r");
    if (!f)
        return "(absent)";
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

/* Runs `call`; returns its stderr. */
static const char *said(int (*call)(output_file *), output_file *out, int *code)
{
    const char *path = check_path("stderr");
    int saved = dup(STDERR_FILENO), fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    *code = call(out);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    close(fd);
    close(saved);
    return text_of(path);
}

static output_file name_output(bool replace)
{
    output_file out;
    CHECK_INT(output_name(&out, check_path("q"), ".bin", replace), CLI_OK);
    return out;
}

static int share(output_file *out)
{
    cli_progress progress;
    output_way way;
    output_source src = {.path = check_path("p.bin"), .progress = &progress};
    cli_progress_begin(&progress, "export", true);
    src.fd = open(src.path, O_RDONLY);
    int code = output_share(out, &src, &way);
    close(src.fd);
    return code;
}

TEST(only_a_lock_of_another_is_called_one)
{
    static const struct {
        int sys_errno, code;
        const char *says;
    } cases[] = {{EWOULDBLOCK, CLI_EXISTS, "another process is writing it"},
                 {ENOLCK, CLI_INPUT, "this file system has no locks"},
                 {ENOSYS, CLI_INPUT, "this file system has no locks"},
                 {EOPNOTSUPP, CLI_INPUT, "this file system has no locks"},
                 {EIO, CLI_AGAIN, "cannot write"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        output_file out = name_output(false);
        int code;
        flock_errno = cases[i].sys_errno;
        const char *text = said(output_begin, &out, &code);
        flock_errno = 0;
        CHECK_INT(code, cases[i].code);
        if (!strstr(text, cases[i].says))
            CHECK_FAIL("errno %d: it says %s", cases[i].sys_errno, text);
        CHECK_INT(out.fd, -1);
        CHECK_INT(file_is_there(out.partial), cases[i].sys_errno == EWOULDBLOCK);
        unlink(out.partial);
    }
}

TEST(an_output_that_cannot_be_made_is_called_by_its_own_name)
{
    output_file out;
    int code;
    write_text(check_path("p"), "no folder");
    CHECK_INT(output_name(&out, check_path("p/q"), ".bin", false), CLI_OK);
    const char *text = said(output_begin, &out, &code);
    CHECK_INT(code, CLI_INPUT);
    CHECK(strstr(text, "/p/q.bin: cannot write: Not a directory"));
}

TEST(the_old_output_stays_when_no_link_and_no_copy_can_be_made)
{
    output_file out = name_output(true);
    int code;
    write_text(check_path("p.bin"), "tokens");
    write_text(out.path, "old");
    linkat_errno = EXDEV;
    CHECK(mkdir(out.partial, 0700) == 0); /* nothing can be made under that name */
    said(share, &out, &code);
    linkat_errno = 0;
    CHECK(code != CLI_OK);
    output_abandon(&out);
    CHECK_STR(text_of(out.path), "old");
}

TEST(a_copy_replaces_the_old_output_where_no_link_can_be_made)
{
    output_file out = name_output(true);
    write_text(check_path("p.bin"), "tokens");
    write_text(out.path, "old");
    linkat_errno = EXDEV;
    CHECK_INT(share(&out), CLI_OK);
    linkat_errno = 0;
    CHECK_STR(text_of(out.path), "tokens");
    CHECK(!file_is_there(out.partial));
    output_close(&out);
}

TEST(a_link_takes_the_name_in_one_step_and_leaves_no_partial_file)
{
    write_text(check_path("p.bin"), "tokens");
    for (int round = 0; round < 3; round++) { /* the last one onto its own link */
        output_file out = name_output(true);
        if (round == 1) {
            CHECK(unlink(out.path) == 0);
            write_text(out.path, "old");
        }
        CHECK_INT(share(&out), CLI_OK);
        CHECK_STR(text_of(out.path), "tokens");
        CHECK(!file_is_there(out.partial));
        output_close(&out);
    }
}

TEST(a_link_never_replaces_unasked)
{
    output_file out = name_output(false);
    int code;
    write_text(check_path("p.bin"), "tokens");
    write_text(out.path, "made meanwhile");
    said(share, &out, &code);
    CHECK_INT(code, CLI_EXISTS);
    output_abandon(&out);
    CHECK_STR(text_of(out.path), "made meanwhile");
    CHECK(!file_is_there(out.partial));
}

TEST(a_partial_link_that_is_in_use_is_left_alone)
{
    output_file out = name_output(false);
    int code;
    write_text(check_path("p.bin"), "tokens");
    CHECK(link(check_path("p.bin"), out.partial) == 0);
    int fd = open(check_path("p.bin"), O_RDONLY);
    CHECK(flock(fd, LOCK_SH) == 0);
    said(share, &out, &code);
    CHECK_INT(code, CLI_EXISTS);
    CHECK(file_is_there(out.partial));
    close(fd);
    CHECK_INT(share(&out), CLI_OK); /* its maker has died */
    CHECK(!file_is_there(out.partial));
    output_close(&out);
}

TEST(copies_of_several_outputs_count_up_to_the_whole)
{
    cli_progress progress;
    output_source src = {.path = check_path("p.bin"), .progress = &progress, .n_to_copy = 6};
    write_text(src.path, "tokens");
    cli_progress_begin(&progress, "export", true);
    src.fd = open(src.path, O_RDONLY);
    for (uint64_t i = 0; i < 2; i++) {
        output_file out;
        CHECK_INT(output_name(&out, check_path(i ? "second" : "first"), ".bin", false), CLI_OK);
        CHECK_INT(output_begin(&out), CLI_OK);
        CHECK_INT(output_copy(&out, &src, 3 * i, 3), CLI_OK);
        CHECK_INT(output_place(&out), CLI_OK);
        CHECK_STR(text_of(out.path), i ? "ens" : "tok");
        CHECK_EQ(src.n_copied, 3 * (i + 1));
    }
    close(src.fd);
}
