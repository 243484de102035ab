/* SPDX-License-Identifier: Apache-2.0 */
/* threads.h - threads, mutexes, conditions and the clock, for the commands. */
#ifndef TOKMAP_THREADS_H
#define TOKMAP_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef pthread_t thread;
typedef pthread_mutex_t mutex;
typedef pthread_cond_t condition;

/* Returns 0 or an errno value. The thread has 2 MiB of stack, and no signal is delivered to it. */
int thread_start(thread *t, void *(*work)(void *), void *context);
void thread_join(thread t);
void thread_sleep_ms(unsigned ms);

void mutex_init(mutex *m);
void mutex_free(mutex *m);
void mutex_lock(mutex *m);
void mutex_unlock(mutex *m);

void condition_init(condition *c);
void condition_free(condition *c);
/* May return without a signal: check the condition again. */
void condition_wait(condition *c, mutex *m);
/* The same, at most until clock_ns() is until_ns: false: the time is up. */
bool condition_wait_until(condition *c, mutex *m, uint64_t until_ns);
void condition_signal(condition *c);
void condition_broadcast(condition *c);

/* The time of a monotonic clock. */
uint64_t clock_ns(void);

#endif /* TOKMAP_THREADS_H */
