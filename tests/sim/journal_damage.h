/* SPDX-License-Identifier: Apache-2.0 */
/* Bit rot and misdirected writes in a journal at rest. Damage below what a surviving frame vouches
 * for must be refused, naming file and position; above it, it looks like a torn tail. */
#ifndef ESK_SIM_JOURNAL_DAMAGE_H
#define ESK_SIM_JOURNAL_DAMAGE_H

#include "run.h"

struct jd_damage {
    bool done;
    bool refused;      /* a start must refuse; else it must cut */
    bool may_refuse;   /* above, but at the head of its file: either */
    char file[64];     /* its name */
    uint64_t position; /* of the frame, or 0 for a header */
    bool names_position;
    struct sim_inode *inode;
    uint8_t *before; /* the device's and the media's bytes, to repair it */
    uint64_t at, size;
    uint64_t truncated_from; /* 0: not truncated */
};

/* Picks a frame or a header of the journal in folder and damages it; done stays false when there
 * is nothing to damage. below: what must be refused. */
void jd_damage_do(struct sim_run *run, const char *folder, bool below, struct jd_damage *damage);
void jd_damage_repair(struct jd_damage *damage);

#endif
