/* SPDX-License-Identifier: Apache-2.0 */
/* What image.c shares with image_crash.c. */
#ifndef ESK_SIM_IMAGE_PRIVATE_H
#define ESK_SIM_IMAGE_PRIVATE_H

#include "image.h"

void simi_entries_set(struct sim_entries *entries, const char *name, struct sim_inode *inode);
void simi_change_apply(struct sim_inode *folder, const struct sim_change *change);
/* Whether it is about a file or a name that the earlier one was about. */
bool simi_change_depends(const struct sim_change *later, const struct sim_change *earlier);
void simi_inode_reserve(struct sim_inode *inode, uint64_t size); /* room in the arrays */

#endif
