/* SPDX-License-Identifier: Apache-2.0 */
#include "system/threads.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <time.h>

#define SECOND_NS 1000000000u
/* The default stack size is that of the program (ulimit -s), which may be too little, or too much
 * for many threads in a limited address space. */
#define STACK_BYTES ((size_t)2 << 20)

static int create(thread *t, void *(*work)(void *), void *context)
{
    pthread_attr_t attr;
    int error = pthread_attr_init(&attr);
    if (error)
        return error;
    pthread_attr_setstacksize(&attr, STACK_BYTES);
    error = pthread_create(t, &attr, work, context);
    pthread_attr_destroy(&attr);
    return error;
}

/* A new thread inherits the signal mask of the thread that starts it. */
int thread_start(thread *t, void *(*work)(void *), void *context)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    const int error = create(t, work, context);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void thread_join(thread t)
{
    pthread_join(t, NULL);
}

void thread_sleep_ms(unsigned ms)
{
    const struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};
    nanosleep(&time, NULL);
}

void mutex_init(mutex *m)
{
    pthread_mutex_init(m, NULL);
}

void mutex_free(mutex *m)
{
    pthread_mutex_destroy(m);
}

void mutex_lock(mutex *m)
{
    pthread_mutex_lock(m);
}

void mutex_unlock(mutex *m)
{
    pthread_mutex_unlock(m);
}

void condition_init(condition *c)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(c, &attr);
    pthread_condattr_destroy(&attr);
}

void condition_free(condition *c)
{
    pthread_cond_destroy(c);
}

void condition_wait(condition *c, mutex *m)
{
    pthread_cond_wait(c, m);
}

bool condition_wait_until(condition *c, mutex *m, uint64_t until_ns)
{
    const struct timespec until = {(time_t)(until_ns / SECOND_NS), (long)(until_ns % SECOND_NS)};
    return pthread_cond_timedwait(c, m, &until) != ETIMEDOUT;
}

void condition_signal(condition *c)
{
    pthread_cond_signal(c);
}

void condition_broadcast(condition *c)
{
    pthread_cond_broadcast(c);
}

uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * SECOND_NS + (uint64_t)t.tv_nsec;
}
