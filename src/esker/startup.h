/* SPDX-License-Identifier: Apache-2.0 */
/* The broker process from options to exit code: platform, loops, broker, connection layer, doors,
 * in this order, and back. Runs in the main thread, after esk_stop_begin, until the end is asked
 * for. */
#ifndef ESK_ESKER_STARTUP_H
#define ESK_ESKER_STARTUP_H

#include "esker/options.h"
#include "observe/log.h"

/* Returns the process's exit code (esker/stop.h). What went wrong is in the log. */
int esk_startup_run(const struct esk_options *options, const struct esk_log *log);

#endif
