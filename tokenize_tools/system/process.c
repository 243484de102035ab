/* SPDX-License-Identifier: Apache-2.0 */
#include "system/process.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

bool process_begin(void)
{
    /* A process may be started without descriptors 0, 1 or 2. The next file that is opened would
     * take their place, and messages would be written into it. The replacements of 0 and 1 fail
     * when they are used. */
    static const int modes[] = {O_WRONLY, O_RDONLY, O_RDWR};
    for (int fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", modes[fd]) < 0)
            return false;
    }
    /* Each dataset of a list holds a descriptor; the usual soft limit is 1024. */
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
    signal(SIGXFSZ, SIG_IGN);
    return true;
}

/* Atomic, because the signal may arrive in another thread than the one that reads it. */
static atomic_int interrupted;

static void on_signal(int number)
{
    interrupted = number;
}

void process_catch_interrupts(void)
{
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    for (size_t i = 0; i < sizeof signals / sizeof *signals; i++) {
        struct sigaction old;
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(signals[i], &action, NULL);
    }
}

bool process_is_interrupted(void)
{
    return interrupted != 0;
}

int process_folder(char *path, size_t n_bytes)
{
    return getcwd(path, n_bytes)
               ? CLI_OK
               : cli_error(cli_errno_exit_code(errno), "the current folder: %s", strerror(errno));
}

int process_make_absolute(const char **path, char *absolute, size_t n_bytes)
{
    if (!*path || **path == '/')
        return CLI_OK;
    const int code = process_folder(absolute, n_bytes);
    if (code != CLI_OK)
        return code;
    const size_t n = strlen(absolute);
    if (n + 1 + strlen(*path) >= n_bytes)
        return cli_usage("%s: the path is too long", *path);
    snprintf(absolute + n, n_bytes - n, "/%s", *path);
    *path = absolute;
    return CLI_OK;
}

int process_enter_folder(const char *path)
{
    return chdir(path) == 0 ? 0 : errno;
}

int process_replace(const char *path, const char *const *arguments)
{
    execv(path, (char *const *)arguments); /* which does not change them */
    return errno;
}

int process_start(process_child *child, const char *path, const char *const *arguments)
{
    int ends[2];
    pid_t id = 0;
    posix_spawn_file_actions_t actions;
    *child = (process_child){0};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return errno;
    int error = posix_spawn_file_actions_init(&actions);
    if (!error) {
        error = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
        if (!error) /* which does not change the arguments */
            error = posix_spawn(&id, path, &actions, NULL, (char *const *)arguments, environ);
        posix_spawn_file_actions_destroy(&actions);
    }
    close(ends[1]);
    child->id = id;
    child->output = error ? NULL : fdopen(ends[0], "r");
    if (child->output)
        return 0;
    close(ends[0]);
    return error ? error : errno;
}

int process_end(process_child *child)
{
    int status = 0;
    fclose(child->output);
    while (waitpid(child->id, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void process_prepare_threads(void)
{
#ifdef M_ARENA_MAX
    mallopt(M_ARENA_MAX, 1);
#endif
    if (sched_getscheduler(0) == SCHED_OTHER) /* keeps what the user has chosen */
        sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
}

uint64_t process_peak_bytes(void)
{
    /* Not ru_maxrss, in which the memory of the program that called exec counts too. */
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    uint64_t kib = 0;
    while (status && kib == 0 && fgets(line, sizeof line, status))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtoull(line + 6, NULL, 10);
    if (status)
        fclose(status);
    return kib * 1024;
}

bool process_is_terminal(FILE *file)
{
    return isatty(fileno(file)) == 1;
}

unsigned process_terminal_columns(FILE *out)
{
    struct winsize size = {0};
    return ioctl(fileno(out), TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}
