/* SPDX-License-Identifier: Apache-2.0 */
/* What the two passes of recovery share. */
#ifndef ESK_JOURNAL_RECOVERY_PRIVATE_H
#define ESK_JOURNAL_RECOVERY_PRIVATE_H

#include "journal/journal_private.h"

/* Takes an intact frame's records into the groups. */
enum esk_err eski_recovery_take_frame(struct esk_journal_recovery *recovery, struct eski_file *file,
                                      const struct eski_frame_header *header, const uint8_t *frame,
                                      struct esk_error *error);
/* Puts the groups with a state in order of id. */
void eski_recovery_sort(struct esk_journal_recovery *recovery);

#endif
