/* SPDX-License-Identifier: Apache-2.0 */
/* What a journal must give back: the result of some first part of what was appended to it, at least
 * of all that it had called durable (or, where a process died and the disk did not, persisted). */
#ifndef ESK_SIM_JOURNAL_MODEL_H
#define ESK_SIM_JOURNAL_MODEL_H

#include "run.h"

#include "journal/journal.h"

#define JM_GROUPS 5
#define JM_ENTRIES_MAX 4096

struct jm_entry {
    uint64_t index, term;
    uint64_t payload; /* seed of its bytes; unique */
    uint32_t size;
    uint8_t kind;
};

struct jm_group {
    bool known;
    struct esk_group_state state;
    struct jm_entry *entries; /* above the checkpoint, ascending by index */
    size_t count, capacity;
};

struct jm_image {
    struct jm_group groups[JM_GROUPS]; /* group ids are 1 .. JM_GROUPS */
};

struct jm_op {
    enum { JM_ENTRY, JM_STATE, JM_FORGET, JM_OPEN } kind;
    uint64_t group_id;
    struct jm_entry entry;
    struct esk_group_state state;
    /* JM_OPEN */
    struct esk_group_state states[JM_GROUPS];
    size_t state_count;
};

struct jm_model {
    struct jm_image base; /* what recovery gave last */
    struct jm_op **ops;   /* since then, in order */
    size_t count, capacity;
    size_t persisted, durable;  /* of ops */
    bool persisted_may_be_lost; /* power went, or a write-back failed */
    bool all_may_be_lost;       /* damage above what any frame vouches for */
};

void jm_image_copy(struct jm_image *to, const struct jm_image *from);
void jm_image_free(struct jm_image *image);
void jm_image_apply(struct jm_image *image, const struct jm_op *op);
struct jm_op *jm_model_add(struct jm_model *model);
/* The bytes of an entry. */
void jm_payload(uint64_t seed, uint8_t *bytes, uint32_t size);
/* Whether recovered is what some allowed first part of ops gives; then it is the new base. */
bool jm_model_accept(struct sim_run *run, struct jm_model *model, const struct jm_image *recovered);

#endif
