/* SPDX-License-Identifier: Apache-2.0 */
/* Which stage limited a run, and what is said of it. */
#include "support/check.h"

#include <fcntl.h>

#include "pack/use.h"

#define S(seconds) ((uint64_t)((seconds)*1e9))

/* 20 seconds of four encoders on four processors. */
static pack_use use_of(double encoders_waited, double main_waited)
{
    return (pack_use){.wall = S(20),
                      .main_waited = S(main_waited),
                      .encoders_waited = S(encoders_waited),
                      .encode = S(80 - encoders_waited),
                      .main = S(20 - main_waited),
                      .n_encoders = 4,
                      .n_processors = 4,
                      .stored_bytes = 2000000000,
                      .text_bytes = 8000000000,
                      .token_bytes = 4000000000};
}

static void expect_note(const pack_use *u, const char *wanted)
{
    char text[256];
    const int saved = dup(STDERR_FILENO);
    const int fd = open(check_path("stderr"), O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    pack_use_note(u);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    const ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    close(saved);
    CHECK(strstr(text, wanted) != NULL);
}

TEST(the_stage_that_the_others_waited_for)
{
    pack_use u = use_of(4, 15);
    expect_note(&u, "encoding limited this run: 400 MB/s of text; more threads (-j) on more "
                    "processors make it faster\n");
    u = use_of(60, 1);
    expect_note(&u, "writing the output limited this run: 200 MB/s of tokens\n");
    u = use_of(60, 19); /* one file */
    u.reading = S(20);
    u.decompress = S(19);
    u.read = S(6);
    expect_note(&u, "decompressing one file after another limited this run: 100 MB/s of input; "
                    "files of up to 1 GB are decompressed at the same time\n");
    u.reading = S(500); /* many that are far away */
    CHECK_INT(pack_use_limit(&u), LIMITED_BY_READ);
    expect_note(&u, "reading the inputs limited this run: 100 MB/s of input\n");
    u.starved = S(10);
    CHECK_INT(pack_use_limit(&u), LIMITED_BY_MEMORY);
    u.starved = S(9);
    CHECK_INT(pack_use_limit(&u), LIMITED_BY_READ);
}

TEST(where_processors_are_all_in_use_it_is_what_uses_them)
{
    pack_use u = use_of(40, 19);
    u.n_processors = 2;
    u.read = S(4);
    CHECK_INT(pack_use_limit(&u), LIMITED_BY_ENCODE);
    u.read = S(41); /* readers want more of them than encoders */
    u.reading = S(60);
    CHECK_INT(pack_use_limit(&u), LIMITED_BY_READ);
}

TEST(a_run_without_time_is_limited_by_something)
{
    const pack_use u = {.n_encoders = 1, .n_processors = 1};
    CHECK(pack_use_rate(&u, pack_use_limit(&u)) == 0);
}

TEST(what_was_used_is_counted_from_the_beginning)
{
    pack_use u = {0};
    pack_use_count(&u, -1);
    volatile double x = 1;
    for (int i = 0; i < 3000000; i++)
        x = x * 1.0000001;
    pack_use_count(&u, 1);
    CHECK(u.main > 0 && u.main <= u.wall + 50000000 && u.read == 0 && u.encode == 0);
}
