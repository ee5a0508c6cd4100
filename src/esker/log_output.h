/* SPDX-License-Identifier: Apache-2.0 */
/* The broker's log: lines on stderr, each in one write, with the system's time. */
#ifndef ESK_ESKER_LOG_OUTPUT_H
#define ESK_ESKER_LOG_OUTPUT_H

#include "observe/log.h"

struct esk_log esk_log_to_stderr(enum esk_log_level level, bool json);

#endif
