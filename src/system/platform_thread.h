/* SPDX-License-Identifier: Apache-2.0 */
/* platform_thread.h - threads, locks, and the clock. */
#pragma once

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef pthread_t tokmap_i_thread;
typedef pthread_mutex_t tokmap_i_mutex;
typedef pthread_cond_t tokmap_i_condition;
typedef pthread_once_t tokmap_i_once; /* initialized with TOKMAP_I_ONCE */
#define TOKMAP_I_ONCE PTHREAD_ONCE_INIT

/* Starts a thread. Returns 0 or an errno value. The thread has 2 MiB of stack, and no signal is
 * delivered to it. */
int tokmap_i_thread_start(tokmap_i_thread *t, void *(*work)(void *), void *context);

/* Names the calling thread, for those who look at the process; at most 15 characters. */
void tokmap_i_thread_name(const char *name);

void tokmap_i_condition_init(tokmap_i_condition *c);
/* Waits at most until tokmap_i_now_ns() is until_ns. Returns false when the time is up. */
bool tokmap_i_condition_wait_until(tokmap_i_condition *c, tokmap_i_mutex *m, uint64_t until_ns);

/* Calls of POSIX under our names. */
#define tokmap_i_thread_join(t) pthread_join(t, NULL)
#define tokmap_i_mutex_init(m) pthread_mutex_init(m, NULL)
#define tokmap_i_mutex_free(m) pthread_mutex_destroy(m)
#define tokmap_i_mutex_lock(m) pthread_mutex_lock(m)
#define tokmap_i_mutex_unlock(m) pthread_mutex_unlock(m)
#define tokmap_i_condition_free(c) pthread_cond_destroy(c)
/* Waits for a signal. May return without one: check the condition again. */
#define tokmap_i_condition_wait(c, m) pthread_cond_wait(c, m)
#define tokmap_i_condition_signal(c) pthread_cond_signal(c)
#define tokmap_i_condition_broadcast(c) pthread_cond_broadcast(c)
/* Runs `work` in the first call; all other calls wait until it is done. */
#define tokmap_i_run_once(once, work) pthread_once(once, work)

/* Reads a monotonic clock. */
uint64_t tokmap_i_now_ns(void);
/* The time that all threads of the process have used processors. */
uint64_t tokmap_i_cpu_ns(void);
/* The time that the calling thread has used a processor. */
uint64_t tokmap_i_thread_cpu_ns(void);
void tokmap_i_sleep_ns(uint64_t ns);
