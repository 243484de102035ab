/* SPDX-License-Identifier: Apache-2.0 */
#include "core/work_folder.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

void bench_empty_folder(const char *folder)
{
    DIR *open_folder = opendir(folder);
    for (struct dirent *entry; open_folder && (entry = readdir(open_folder)) != NULL;)
        unlinkat(dirfd(open_folder), entry->d_name, 0);
    if (open_folder)
        closedir(open_folder);
}

int bench_run_in_folder(const char *parent, int (*work)(void *context, const char *folder),
                        void *context)
{
    static const int passed_on[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    char folder[4096];
    sigset_t set, old_set;
    int status = 1 << 8, number; /* the status of a process that exits with 1 */
    snprintf(folder, sizeof folder, "%s/tokbench-XXXXXX", parent);
    if (!mkdtemp(folder))
        return cli_error(1, "%s: %s", folder, strerror(errno));
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
        sigaddset(&set, passed_on[i]);
    sigprocmask(SIG_BLOCK, &set, &old_set);
    const pid_t worker = fork();
    if (worker == 0) {
        sigprocmask(SIG_SETMASK, &old_set, NULL);
        exit(work(context, folder));
    }
    while (worker > 0 && waitpid(worker, &status, WNOHANG) == 0)
        if (sigwait(&set, &number) == 0 && number != SIGCHLD)
            kill(worker, number);
    sigprocmask(SIG_SETMASK, &old_set, NULL);
    bench_empty_folder(folder);
    rmdir(folder);
    return worker < 0 ? 1 : WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
