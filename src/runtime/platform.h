/* SPDX-License-Identifier: Apache-2.0 */
/* The real platform: files of the operating system, its clocks and random numbers, and threads.
 * One per process is enough; all its functions may be called by any thread, those that block
 * (files, pause) by workers only. Workers must be destroyed before the platform. */
#ifndef ESK_RUNTIME_PLATFORM_H
#define ESK_RUNTIME_PLATFORM_H

#include "platform/platform.h"

struct esk_platform *esk_runtime_platform_create(void);
void esk_runtime_platform_destroy(struct esk_platform *platform); /* NULL does nothing */

#endif
