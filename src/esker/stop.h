/* SPDX-License-Identifier: Apache-2.0 */
/* When the broker is to end: the first SIGTERM or SIGINT asks for it, a failure demands it, a
 * second signal ends the process at once (nothing acknowledged is lost by that). A thread of its
 * own waits for the signals, so they count at any time, also during a long start or stop.
 *
 * SIGHUP does not end the process: it asks to load again what can be (esk_stop_on_hangup).
 * SIGPIPE and SIGXFSZ are ignored: both show as errors of the writes that meet them. */
#ifndef ESK_ESKER_STOP_H
#define ESK_ESKER_STOP_H

#include "base/error.h"
#include "observe/log.h"

#include <stdbool.h>

/* Exit codes. */
#define ESK_EXIT_CLEAN 0
#define ESK_EXIT_FAILURE 1
#define ESK_EXIT_USAGE 2

/* After a failure the process gets so long to answer what is in flight, milliseconds; then it ends.
 */
#define ESK_STOP_FAILED_MS 5000

/* Once, before any other thread: they inherit the signals as blocked. The log is borrowed for ever.
 */
void esk_stop_begin(const struct esk_log *log);

/* The broker failed; any thread. The first failure counts. */
void esk_stop_fail(const struct esk_error *error);

/* What esk_stop_wait runs when SIGHUP came, in its thread; also for one that came before the wait,
 * once. The thread that waits. */
void esk_stop_on_hangup(void (*run)(void *context), void *context);

/* Waits until a signal or a failure asks for the end. True: a failure. */
bool esk_stop_wait(void);
/* Whether the end was asked for, by either. */
bool esk_stop_asked(void);

#endif
