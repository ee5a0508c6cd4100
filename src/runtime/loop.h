/* SPDX-License-Identifier: Apache-2.0 */
/* A shard's loop: one thread with one libuv loop, a mailbox and timers.
 *
 * A turn is: timers that are due, then I/O callbacks, then mails. Mails to the loop itself run
 * behind all that arrived before them and behind the I/O callbacks of the turn, so whatever was
 * read or arrived meanwhile shares, say, one journal commit. A turn runs a bounded number of timers
 * and mails and goes on in the next one; I/O callbacks bound themselves with esk_loop_turn_spent:
 * past it they post a mail to their loop and go on when that runs.
 *
 * Life cycle: create, start (or run in a thread of the caller's), stop, join, destroy. All handles
 * that others put on the libuv loop must be closed, and their callbacks have run, before stop. */
#ifndef ESK_RUNTIME_LOOP_H
#define ESK_RUNTIME_LOOP_H

#include "observe/metrics.h"
#include "platform/executor.h"

struct uv_loop_s;

/* A turn's callbacks should leave work to the next turn from here on, nanoseconds: a quarter of the
 * 2 ms that a turn may take at most. */
#define ESK_LOOP_TURN_NS 500000

/* name: of its thread, up to 15 bytes are kept. */
struct esk_loop *esk_loop_create(const char *name);
/* Not while it runs. Mails that have not run are forgotten: their memory is their senders'. */
void esk_loop_destroy(struct esk_loop *loop);

/* Runs the loop in a thread of its own, until stop; signals are blocked there. */
void esk_loop_start(struct esk_loop *loop);
void esk_loop_join(struct esk_loop *loop); /* waits for the end of that thread */
/* Runs the loop in the calling thread until stop. */
void esk_loop_run(struct esk_loop *loop);
/* Any thread, once: the loop ends after the turn in which it learns of it, after all mails that
 * this thread has posted before. */
void esk_loop_stop(struct esk_loop *loop);

/* For the owners of sockets. The loop's thread only, or before it runs. */
struct uv_loop_s *esk_loop_uv(struct esk_loop *loop);

/* Whether this turn has taken ESK_LOOP_TURN_NS of wall time. The loop's thread only. */
bool esk_loop_turn_spent(struct esk_loop *loop);

/* The longest turn so far in nanoseconds of the thread's CPU time, for observe/exposition.h. */
const struct esk_counter *esk_loop_turn_max_ns(const struct esk_loop *loop);
/* The same since the last esk_loop_turn_reset, which any thread may call after reading it. */
const struct esk_counter *esk_loop_turn_recent_max_ns(const struct esk_loop *loop);
void esk_loop_turn_reset(struct esk_loop *loop);

#endif
