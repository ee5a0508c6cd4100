/* SPDX-License-Identifier: Apache-2.0 */
#include "journal_model.h"

#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>

void jm_image_free(struct jm_image *image) {
    for (size_t i = 0; i < JM_GROUPS; i++) {
        free(image->groups[i].entries);
    }
    memset(image, 0, sizeof(*image));
}

void jm_image_copy(struct jm_image *to, const struct jm_image *from) {
    *to = *from;
    for (size_t i = 0; i < JM_GROUPS; i++) {
        struct jm_group *group = &to->groups[i];
        group->capacity = group->count;
        group->entries = esk_alloc(group->count * sizeof(struct jm_entry));
        if (group->count) {
            memcpy(group->entries, from->groups[i].entries, group->count * sizeof(struct jm_entry));
        }
    }
}

static void group_forget(struct jm_group *group) {
    free(group->entries);
    *group = (struct jm_group){0};
}

static void group_store(struct jm_group *group, const struct esk_group_state *state) {
    group->known = true;
    group->state = *state;
    size_t kept = 0;
    for (size_t i = 0; i < group->count; i++) {
        if (group->entries[i].index > state->checkpoint.applied_index) {
            group->entries[kept++] = group->entries[i];
        }
    }
    group->count = kept;
}

static void group_enter(struct jm_group *group, const struct jm_entry *entry) {
    while (group->count && group->entries[group->count - 1].index >= entry->index) {
        group->count--;
    }
    if (group->count == group->capacity) {
        group->capacity = group->capacity * 2 + 16;
        group->entries = esk_realloc(group->entries, group->capacity * sizeof(*entry));
    }
    group->entries[group->count++] = *entry;
}

void jm_image_apply(struct jm_image *image, const struct jm_op *op) {
    if (op->kind == JM_OPEN) {
        for (uint64_t id = 1; id <= JM_GROUPS; id++) {
            const struct esk_group_state *state = NULL;
            for (size_t i = 0; i < op->state_count; i++) {
                state = op->states[i].group_id == id ? &op->states[i] : state;
            }
            if (state) {
                group_store(&image->groups[id - 1], state);
            } else {
                group_forget(&image->groups[id - 1]);
            }
        }
        return;
    }
    struct jm_group *group = &image->groups[op->group_id - 1];
    if (op->kind == JM_FORGET) {
        group_forget(group);
    } else if (op->kind == JM_STATE) {
        group_store(group, &op->state);
    } else {
        group_enter(group, &op->entry);
    }
}

struct jm_op *jm_model_add(struct jm_model *model) {
    if (model->count == model->capacity) {
        model->capacity = model->capacity * 2 + 64;
        model->ops = esk_realloc(model->ops, model->capacity * sizeof(struct jm_op *));
    }
    struct jm_op *op = esk_alloc_zeroed(1, sizeof(*op));
    model->ops[model->count++] = op;
    return op;
}

void jm_payload(uint64_t seed, uint8_t *bytes, uint32_t size) {
    struct sim_random random = sim_random_seed(seed, 77);
    uint64_t value = sim_random_u64(&random);
    for (uint32_t i = 0; i < size; i++) {
        if (i % 8 == 0) {
            value = sim_mix(value);
        }
        bytes[i] = (uint8_t)(value >> (i % 8 * 8));
    }
}

static bool same_state(const struct esk_group_state *a, const struct esk_group_state *b) {
    const struct esk_checkpoint *x = &a->checkpoint, *y = &b->checkpoint;
    return a->group_id == b->group_id && a->term == b->term && a->voted_for == b->voted_for &&
           a->configuration.count == b->configuration.count &&
           a->configuration.nodes[0] == b->configuration.nodes[0] &&
           x->applied_index == y->applied_index && x->applied_term == y->applied_term &&
           x->next_offset == y->next_offset && x->log_start_offset == y->log_start_offset &&
           x->segment_offset == y->segment_offset && x->segment_bytes == y->segment_bytes &&
           x->segment_limit_bytes == y->segment_limit_bytes &&
           x->segment_timestamp_ms == y->segment_timestamp_ms &&
           x->snapshot_index == y->snapshot_index;
}

/* The first group whose content differs, or 0. */
static uint64_t differs(const struct jm_image *a, const struct jm_image *b) {
    for (uint64_t id = 1; id <= JM_GROUPS; id++) {
        const struct jm_group *x = &a->groups[id - 1], *y = &b->groups[id - 1];
        if (x->known != y->known || (x->known && !same_state(&x->state, &y->state)) ||
            x->count != y->count) {
            return id;
        }
        for (size_t i = 0; i < x->count; i++) {
            const struct jm_entry *p = &x->entries[i], *q = &y->entries[i];
            if (p->index != q->index || p->term != q->term || p->payload != q->payload ||
                p->size != q->size || p->kind != q->kind) {
                return id;
            }
        }
    }
    return 0;
}

static void describe(const struct jm_group *group, char *text, size_t size) {
    const struct jm_entry *last = group->count ? &group->entries[group->count - 1] : NULL;
    snprintf(text, size, "%s, term %llu, applied %llu, %zu entries to %llu of term %llu",
             group->known ? "known" : "unknown", (unsigned long long)group->state.term,
             (unsigned long long)group->state.checkpoint.applied_index, group->count,
             last ? (unsigned long long)last->index : 0, last ? (unsigned long long)last->term : 0);
}

bool jm_model_accept(struct sim_run *run, struct jm_model *model,
                     const struct jm_image *recovered) {
    size_t least = model->persisted_may_be_lost ? model->durable : model->persisted;
    least = model->all_may_be_lost ? 0 : least;
    struct jm_image expected;
    jm_image_copy(&expected, &model->base);
    bool found = false;
    uint64_t wrong = 0;
    char is[160], should[160];
    size_t matched = 0;
    for (size_t i = 0; i <= model->count; i++) {
        uint64_t different = i >= least ? differs(recovered, &expected) : 0;
        if (i >= least && different == 0) {
            found = true;
            matched = i;
        } else if (i == least) {
            wrong = different;
            describe(&recovered->groups[wrong - 1], is, sizeof(is));
            describe(&expected.groups[wrong - 1], should, sizeof(should));
        }
        if (i < model->count) {
            jm_image_apply(&expected, model->ops[i]);
        }
    }
    jm_image_free(&expected);
    sim_trace(&run->world, "recovered ops", "", matched, model->count);
    if (!found) {
        sim_run_fail(run,
                     "recovery gives no first part of at least %zu of %zu appends; group %llu is "
                     "%s; durable is %s",
                     least, model->count, (unsigned long long)wrong, is, should);
        return false;
    }
    jm_image_free(&model->base);
    jm_image_copy(&model->base, recovered);
    model->count = model->persisted = model->durable = 0;
    model->persisted_may_be_lost = model->all_may_be_lost = false;
    return true;
}
