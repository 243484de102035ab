/* SPDX-License-Identifier: Apache-2.0 */
/* The last line of progress: on a terminal where one was drawn, and nowhere else. */
#include "support/check.h"

#include <fcntl.h>

#include "cli/cli.h"
#include "system/platform_thread.h"

/* What cli_progress_end says of 3 MiB in two seconds. */
static const char *said_at_the_end(cli_progress *p)
{
    static char text[256];
    const char *path = check_path("stderr");
    int saved = dup(STDERR_FILENO), fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(saved >= 0 && fd >= 0 && dup2(fd, STDERR_FILENO) >= 0);
    p->started_ns -= 2000000000u;
    cli_progress_end(p, 3 << 20);
    fflush(stderr);
    dup2(saved, STDERR_FILENO);
    ssize_t n = pread(fd, text, sizeof text - 1, 0);
    text[n > 0 ? n : 0] = '\0';
    close(fd);
    close(saved);
    return text;
}

TEST(the_last_line_has_size_time_and_rate)
{
    cli_progress p;
    const char *said;
    do {
        cli_progress_begin(&p, "verify", false);
        p.on_terminal = true;
        said = said_at_the_end(&p);
    } while (tokmap_i_now_ns() - p.started_ns >=
             2050000000u); /* the machine stalled: 2.1 s is right */
    CHECK_STR(said, "\rverify: 3.0 MiB in 2.0 s, 1.5 MiB/s\033[K\n");
}

TEST(no_last_line_where_none_was_drawn)
{
    cli_progress p;
    cli_progress_begin(&p, "verify", true);
    p.on_terminal = true;
    CHECK_STR(said_at_the_end(&p), "");
    cli_progress_begin(&p, "verify", false);
    p.on_terminal = false;
    CHECK_STR(said_at_the_end(&p), "");
    cli_progress_begin(&p, "verify", false);
    p.on_terminal = true;
    p.last_ns -= 2000000000u; /* said_at_the_end takes the same from started_ns */
    CHECK_STR(said_at_the_end(&p), "");
}
