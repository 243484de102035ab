/* SPDX-License-Identifier: Apache-2.0 */
#include "system/platform_thread.h"

#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#define SECOND_NS 1000000000u
/* The stack of a thread. The default is that of the program (ulimit -s), which may be too little,
 * or too much for many threads in a limited address space. */
#define STACK_BYTES ((size_t)2 << 20)

/* A thread inherits the signal mask of the thread that starts it. So all signals are blocked before
 * the start, and the new thread never receives a signal of the program. */
int tokmap_i_thread_start(tokmap_i_thread *t, void *(*work)(void *), void *context)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error)
        return error;
    error = pthread_attr_init(&attr);
    if (!error) {
        pthread_attr_setstacksize(&attr, STACK_BYTES);
        error = pthread_create(t, &attr, work, context);
        pthread_attr_destroy(&attr);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void tokmap_i_thread_name(const char *name)
{
    prctl(PR_SET_NAME, name);
}

void tokmap_i_condition_init(tokmap_i_condition *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

bool tokmap_i_condition_wait_until(tokmap_i_condition *c, tokmap_i_mutex *m, uint64_t until_ns)
{
    const struct timespec until = {(time_t)(until_ns / SECOND_NS), (long)(until_ns % SECOND_NS)};
    return pthread_cond_timedwait(c, m, &until) != ETIMEDOUT;
}

static uint64_t read_clock(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}

uint64_t tokmap_i_now_ns(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

uint64_t tokmap_i_cpu_ns(void)
{
    return read_clock(CLOCK_PROCESS_CPUTIME_ID);
}

uint64_t tokmap_i_thread_cpu_ns(void)
{
    return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

void tokmap_i_sleep_ns(uint64_t ns)
{
    const struct timespec t = {(time_t)(ns / SECOND_NS), (long)(ns % SECOND_NS)};
    nanosleep(&t, NULL);
}
