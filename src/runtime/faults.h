/* SPDX-License-Identifier: Apache-2.0 */
/* Faults in the files of the real broker, for tests: a platform that passes every call on and lets
 * chosen ones fail. The program esker has it only when it is built with ESK_TEST_HOOKS; nothing
 * refers to it in a release build, so it is not linked there.
 *
 * The environment variable ESKER_FAULTS holds rules, separated by semicolons, the first that
 * matches a call decides:
 *
 *   OPERATION:WHEN:WHAT[:PATTERN]
 *
 *   OPERATION  open read write sync (also a wait for write-back) truncate allocate lock remove
 *              rename folder (make, sync, list)
 *   WHEN       N       the Nth call that operation and pattern match, counted from 1
 *              N-M     the Nth to the Mth      N-  from the Nth on
 *              %N      every Nth
 *              @FILE   as long as FILE exists
 *   WHAT       EIO ENOSPC EDQUOT EFBIG EROFS EACCES ENOENT EINVAL: the call fails so, doing nothing
 *              short   a write: half of it is written (whole 4 KiB blocks of a direct file)
 *              lost    a write, then EIO: half of it is written, and the call fails
 *              stall   a write: begins when the rule no longer hits, as @FILE does once it is gone
 *   PATTERN    the file's path, as fnmatch(3) without flags takes it; all files when there is none
 *
 *   ESKER_FAULTS='sync:3:EIO:*.segment;write:@/tmp/full:ENOSPC'
 *
 * Calls are counted over all threads. NOWAIT reads are not touched: a helper reads what they miss.
 */
#ifndef ESK_RUNTIME_FAULTS_H
#define ESK_RUNTIME_FAULTS_H

#include "platform/platform.h"

/* Wraps the platform by the rules. ESK_ERR_INVALID, and a text that says which rule and why, when
 * they do not parse. The inner platform is borrowed until esk_faults_destroy. */
enum esk_err esk_faults_create(struct esk_platform *inner, const char *rules,
                               struct esk_platform **faulty, struct esk_error *error);
void esk_faults_destroy(struct esk_platform *faulty); /* NULL does nothing */

#endif
