/* SPDX-License-Identifier: Apache-2.0 */
/* fake_driver.h - a CUDA driver for tests, which does everything late.
 *
 * Streams are queues of operations; a policy decides when one is done. What a stage forgot to wait
 * for therefore shows as wrong data, and what the real driver would only mind sometimes is minded
 * always: calls without a context, memory that is not registered or taken after open, memory of
 * the host that is written while an operation reads it, work on a stream that is being captured.
 * The first breach is kept as text, since it may be found in any thread: fake_check() fails with
 * it. Device addresses are no addresses of the host, so who takes one for the other crashes. */
#pragma once

#include "stage/fake_driver_queue.h"

/* ---- Calls ---- */

int fake_wait_stream(tokmap_i_stream stream);
int fake_record(tokmap_i_event event, tokmap_i_stream stream);
int fake_copy_in(tokmap_i_address to, const void *from, size_t n_bytes, tokmap_i_stream stream);

extern const tokmap_i_driver fake_driver;

/* ---- For tests ---- */

/* A driver that nobody has used. */
void fake_begin(fake_policy policy, uint64_t seed);
void fake_check(void);
/* Nothing of the driver's is left but what the test took. */
void fake_check_leaks(void);
/* A stream of the caller's; NULL is the default stream. */
tokmap_i_stream fake_stream_open(int device);
int fake_number(tokmap_i_stream stream);
/* Queues a call of the test's, which is made with the mutex held. */
void fake_add_call(tokmap_i_stream stream, void (*call)(void *), void *context);
/* What is queued in `to` from here on comes after what is in `from` now. */
void fake_join(tokmap_i_stream from, tokmap_i_stream to);
bool fake_can_step(int k);
void fake_step(int k);
void fake_progress(uint32_t n);
tokmap_i_address fake_take(size_t n_bytes);
