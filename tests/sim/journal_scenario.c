/* SPDX-License-Identifier: Apache-2.0 */
/* The journal alone: groups that append entries, store states, cut off and forget, over several
 * lives of the process that end in kills, power losses, failures and stops. What each recovery
 * gives is compared with journal_model.h. */
#include "journal_damage.h"
#include "journal_model.h"

#include "base/memory.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define FOLDER "data/journal-0"

struct js;
struct js_append {
    struct esk_journal_append append;
    struct js *js;
    struct jm_op *op;
    size_t index; /* of op */
    uint8_t *payload;
};

struct js_group {
    bool live, forgotten;
    uint64_t next_index, term;
    uint64_t applied; /* of the last state appended */
    uint64_t durable_index;
    size_t cut_op; /* entries appended before this may be cut off */
};

struct js {
    struct sim_run *run;
    struct jm_model model;
    struct js_group groups[JM_GROUPS];
    uint64_t payloads;
    struct jd_damage damage;
    /* of this life */
    struct esk_journal_options options;
    struct esk_journal_metrics metrics;
    struct esk_loop *loop;
    struct esk_journal *journal;
    struct esk_mail start;
    struct esk_timer timer;
    unsigned counts[SIM_FAULT_COUNT]; /* of the world, when it began */
    uint64_t actions;
    uint64_t delay_ns;        /* between two bursts of them, mostly below this */
    struct js_append **order; /* all that calls back */
    size_t order_count, order_capacity, persisted, durable;
    bool untold; /* a write-back failed in an earlier life, and no sync was told */
    bool started, closing, stopped, broken;
    bool recovered; /* and compared: a damaged tail that was cut is no longer known */
    enum esk_err start_err;
    struct esk_error error;
};

/* Faults of this life that end a process, or with space also those that keep one from starting. */
static unsigned faults_fired(const struct js *js, bool space) {
    static const enum sim_fault kinds[] = {
        SIM_FAULT_READ,       SIM_FAULT_WRITE,  SIM_FAULT_SYNC,      SIM_FAULT_SYNC_NO_SPACE,
        SIM_FAULT_WRITE_BACK, SIM_FAULT_FOLDER, SIM_FAULT_DISK_FULL, SIM_FAULT_WRITE_NO_SPACE};
    unsigned count = 0;
    for (size_t i = 0; i < (space ? 8 : 6); i++) {
        count += js->run->world.counts[SIM_COUNT_FAULTS + kinds[i]] - js->counts[kinds[i]];
    }
    return count;
}

/* Whether the disk was full in this life. */
static bool full(const struct js *js) {
    return faults_fired(js, true) > faults_fired(js, false);
}

/* --- callbacks --- */

static void on_persisted(struct esk_journal_append *append) {
    struct js_append *own = ESK_CONTAINER(append, struct js_append, append);
    struct js *js = own->js;
    if (js->broken || js->persisted >= js->order_count || js->order[js->persisted] != own) {
        sim_run_fail(js->run, "append %zu persisted %s", own->index,
                     js->broken ? "after the journal failed" : "out of order");
        return;
    }
    if (js->persisted > 0 && append->position <= js->order[js->persisted - 1]->append.position) {
        sim_run_fail(js->run, "position %" PRIu64 " does not grow", append->position);
    }
    js->persisted++;
    js->model.persisted = own->index + 1;
}

static void on_durable(struct esk_journal_append *append) {
    struct js_append *own = ESK_CONTAINER(append, struct js_append, append);
    struct js *js = own->js;
    if (js->broken || js->durable >= js->persisted || js->order[js->durable] != own) {
        sim_run_fail(js->run, "append %zu durable %s", own->index,
                     js->broken ? "after the journal failed" : "out of order");
        return;
    }
    js->durable++;
    js->model.durable = own->index + 1;
    struct js_group *group = &js->groups[own->op->group_id - 1];
    if (own->op->kind == JM_ENTRY && own->index >= group->cut_op) {
        group->durable_index = own->op->entry.index;
    }
}

static void on_failed(void *context, const struct esk_error *error) {
    struct js *js = context;
    sim_trace(&js->run->world, "journal failed", error->text, 0, 0);
    if (js->broken) {
        sim_run_fail(js->run, "the journal fails twice");
    }
    if (faults_fired(js, false) == 0) {
        sim_run_fail(js->run, "the journal fails by itself: %s", error->text);
    }
    js->broken = js->stopped = true;
}

static void on_room(void *context) {
    struct js *js = context;
    enum esk_err err;
    if (!esk_journal_has_room(js->journal, &err)) {
        sim_run_fail(js->run, "room was announced, but there is none");
    }
}

static void on_closed(void *context) {
    struct js *js = context;
    if (js->durable == js->order_count) {
        js->model.persisted = js->model.durable = js->model.count;
    } else if (!full(js)) {
        sim_run_fail(js->run, "closed with %zu of %zu appends durable", js->durable,
                     js->order_count);
    }
    js->run->world.counts[SIM_COUNT_CLEAN_STOP]++;
    js->stopped = true;
}

/* --- actions --- */

static struct js_append *append_create(struct js *js, uint64_t group_id) {
    struct js_append *own = esk_alloc_zeroed(1, sizeof(*own));
    own->js = js;
    own->op = jm_model_add(&js->model);
    own->op->group_id = group_id;
    own->index = js->model.count - 1;
    own->append.group_id = group_id;
    own->append.strict = sim_one_in(&js->run->random, 4);
    own->append.persisted = on_persisted;
    own->append.durable = on_durable;
    if (js->order_count == js->order_capacity) {
        js->order_capacity = js->order_capacity * 2 + 64;
        js->order = esk_realloc(js->order, js->order_capacity * sizeof(struct js_append *));
    }
    js->order[js->order_count++] = own;
    return own;
}

static void append_entry(struct js *js, uint64_t group_id, uint64_t index) {
    struct js_group *group = &js->groups[group_id - 1];
    struct sim_random *random = &js->run->random;
    struct js_append *own = append_create(js, group_id);
    struct jm_entry *entry = &own->op->entry;
    own->op->kind = JM_ENTRY;
    if (index < group->next_index) {
        group->cut_op = own->index;
        group->durable_index = index - 1 < group->durable_index ? index - 1 : group->durable_index;
    }
    uint64_t size = sim_scaled(random, sim_one_in(random, 30) ? 20000 : 600) - 1;
    *entry = (struct jm_entry){index, group->term, ++js->payloads, (uint32_t)size,
                               (uint8_t)sim_between(random, ESK_ENTRY_TERM, ESK_ENTRY_OFFSETS)};
    group->next_index = index + 1;
    own->payload = esk_alloc(entry->size);
    jm_payload(entry->payload, own->payload, entry->size);
    own->append.entry = (struct esk_entry){entry->index, entry->term, entry->kind,
                                           esk_slice(own->payload, entry->size)};
    own->append.records = (uint32_t)sim_scaled(random, 10);
    sim_trace(&js->run->world, "append", "", group_id, index);
    esk_journal_append(js->journal, &own->append);
}

static struct esk_group_state make_state(struct js *js, uint64_t group_id, uint64_t applied) {
    struct js_group *group = &js->groups[group_id - 1];
    struct sim_random *random = &js->run->random;
    struct esk_group_state state = {.group_id = group_id, .term = group->term, .voted_for = 1};
    state.configuration = (struct esk_configuration){1, {1}};
    group->applied = applied;
    state.checkpoint = (struct esk_checkpoint){
        .applied_index = applied,
        .applied_term = group->term,
        .next_offset = sim_scaled(random, 1000000),
        .log_start_offset = sim_scaled(random, 1000),
        .segment_offset = sim_scaled(random, 1000000),
        .segment_bytes = sim_scaled(random, 4096),
        .segment_limit_bytes = sim_scaled(random, 4096),
        .segment_timestamp_ms = (int64_t)sim_scaled(random, 1000) - 2,
        .snapshot_index = sim_below(random, 3),
    };
    return state;
}

static void append_state(struct js *js, uint64_t group_id, uint64_t applied) {
    struct js_append *own = append_create(js, group_id);
    own->op->kind = JM_STATE;
    own->op->state = make_state(js, group_id, applied);
    own->append.state = &own->op->state;
    sim_trace(&js->run->world, "state", "", group_id, applied);
    esk_journal_append(js->journal, &own->append);
}

static void act(struct js *js) {
    struct sim_random *random = &js->run->random;
    uint64_t group_id = sim_between(random, 1, JM_GROUPS);
    struct js_group *group = &js->groups[group_id - 1];
    uint64_t what = sim_below(random, 100);
    enum esk_err why;
    if (group->forgotten) {
        return;
    }
    if (!group->live) {
        *group = (struct js_group){.live = true, .next_index = 1, .term = 1};
        append_state(js, group_id, 0);
    } else if (what < 15 || (!esk_journal_has_room(js->journal, &why) && what < 70)) {
        if (group->durable_index >= group->applied) {
            append_state(js, group_id,
                         sim_one_in(random, 3)
                             ? sim_between(random, group->applied, group->durable_index)
                             : group->durable_index);
        }
    } else if (!esk_journal_has_room(js->journal, &why)) {
        return;
    } else if (what < 18 && group->next_index > group->applied + 1) {
        group->term++;
        append_state(js, group_id, group->applied);
        append_entry(js, group_id, sim_between(random, group->applied + 1, group->next_index - 1));
    } else if (what == 18 && sim_one_in(random, 4)) {
        group->live = false;
        group->forgotten = true;
        struct jm_op *op = jm_model_add(&js->model);
        op->kind = JM_FORGET;
        op->group_id = group_id;
        esk_journal_forget(js->journal, group_id);
    } else {
        append_entry(js, group_id, group->next_index);
    }
}

static void tick(struct esk_timer *timer) {
    struct js *js = ESK_CONTAINER(timer, struct js, timer);
    struct sim_random *random = &js->run->random;
    if (js->stopped) {
        return;
    }
    if (js->actions == 0) {
        js->closing = true;
        esk_journal_close(js->journal, on_closed, js);
        return;
    }
    uint64_t burst = sim_between(random, 1, 5);
    for (uint64_t i = 0; i < burst && js->actions; i++, js->actions--) {
        act(js);
    }
    uint64_t delay = sim_scaled(random, sim_one_in(random, 50) ? 10 * SIM_S : js->delay_ns);
    esk_timer_start(js->loop, timer, esk_loop_now_ns(js->loop) + delay);
}

static void start(struct esk_mail *mail) {
    struct js *js = ESK_CONTAINER(mail, struct js, start);
    js->timer = (struct esk_timer){.run = tick};
    tick(&js->timer);
}

/* --- a life --- */

struct replay {
    struct js *js;
    struct jm_image image;
    uint64_t last_op; /* for the order over groups: payload numbers grow with appends */
};

static enum esk_err on_entry(void *context, uint64_t group_id, const struct esk_entry *entry,
                             struct esk_error *error) {
    struct replay *replay = context;
    struct sim_run *run = replay->js->run;
    struct jm_group *group = &replay->image.groups[group_id - 1];
    if (group_id == 0 || group_id > JM_GROUPS || !group->known) {
        return esk_fail(error, ESK_ERR_CORRUPT, "entry of group %" PRIu64, group_id);
    }
    uint64_t last = group->count ? group->entries[group->count - 1].index
                                 : group->state.checkpoint.applied_index;
    if (entry->index != last + 1) {
        sim_run_fail(run, "group %" PRIu64 ": entry %" PRIu64 " follows %" PRIu64, group_id,
                     entry->index, last);
    }
    struct jm_op op = {.kind = JM_ENTRY, .group_id = group_id};
    op.entry =
        (struct jm_entry){entry->index, entry->term, 0, (uint32_t)entry->payload.size, entry->kind};
    /* Which one it is: the model's with this index and term. */
    const struct jm_model *model = &replay->js->model;
    const struct jm_group *base = &model->base.groups[group_id - 1];
    for (size_t i = 0; i < base->count; i++) {
        if (base->entries[i].index == entry->index && base->entries[i].term == entry->term) {
            op.entry.payload = base->entries[i].payload;
        }
    }
    for (size_t i = 0; i < model->count; i++) {
        const struct jm_op *own = model->ops[i];
        if (own->kind == JM_ENTRY && own->group_id == group_id &&
            own->entry.index == entry->index && own->entry.term == entry->term) {
            op.entry.payload = own->entry.payload;
        }
    }
    uint8_t *bytes = esk_alloc(op.entry.size);
    jm_payload(op.entry.payload, bytes, op.entry.size);
    bool same = op.entry.size == 0 || memcmp(bytes, entry->payload.data, op.entry.size) == 0;
    free(bytes);
    if (!op.entry.payload || !same) {
        sim_run_fail(run, "group %" PRIu64 ": entry %" PRIu64 " of term %" PRIu64 " was %s",
                     group_id, entry->index, entry->term,
                     op.entry.payload ? "changed" : "never appended");
    }
    if (op.entry.payload <= replay->last_op) {
        sim_run_fail(run, "group %" PRIu64 ": entry %" PRIu64 " is replayed out of order", group_id,
                     entry->index);
    }
    replay->last_op = op.entry.payload;
    jm_image_apply(&replay->image, &op);
    return ESK_OK;
}

static enum esk_err recover(struct js *js, struct esk_journal_recovery **recovery) {
    enum esk_err err = esk_journal_recover(&js->options, recovery, &js->error);
    if (err) {
        return err;
    }
    struct replay replay = {.js = js};
    for (size_t i = 0; i < esk_journal_recovery_count(*recovery); i++) {
        const struct esk_group_state *state = esk_journal_recovery_state(*recovery, i);
        if (state->group_id == 0 || state->group_id > JM_GROUPS) {
            sim_run_fail(js->run, "recovery knows a group %" PRIu64, state->group_id);
            return ESK_ERR_INTERNAL;
        }
        replay.image.groups[state->group_id - 1].known = true;
        replay.image.groups[state->group_id - 1].state = *state;
    }
    err = esk_journal_recovery_replay(*recovery, UINT64_MAX, on_entry, &replay, &js->error);
    if (err == ESK_OK && !js->run->failed) {
        jm_model_accept(js->run, &js->model, &replay.image);
    }
    jm_image_free(&replay.image);
    return err;
}

/* Where each group stands after a recovery, with its term raised. */
static void resume(struct js *js, struct jm_op *open) {
    open->kind = JM_OPEN;
    for (uint64_t id = 1; id <= JM_GROUPS; id++) {
        const struct jm_group *base = &js->model.base.groups[id - 1];
        struct js_group *group = &js->groups[id - 1];
        if (!base->known) {
            group->live = false;
            continue;
        }
        if (sim_one_in(&js->run->random, 100)) { /* not kept: forgotten by the open */
            group->live = false;
            group->forgotten = true;
            continue;
        }
        group->live = true;
        group->term = base->state.term + 1;
        group->applied = base->state.checkpoint.applied_index;
        group->next_index =
            base->count ? base->entries[base->count - 1].index + 1 : group->applied + 1;
        group->durable_index = group->next_index - 1;
        group->cut_op = 0;
        open->states[open->state_count] = base->state;
        open->states[open->state_count++].term = group->term;
    }
}

static void process(void *argument) {
    struct js *js = argument;
    struct esk_journal_recovery *recovery = NULL;
    struct esk_platform *platform = &js->run->world.platform;
    enum esk_err err = esk_folder_make(platform, "data", &js->error);
    err = err ? err : esk_folder_sync(platform, "", &js->error);
    err = err ? err : recover(js, &recovery);
    if (!err && !js->run->failed) {
        struct jm_op *open = jm_model_add(&js->model);
        js->recovered = true;
        resume(js, open);
        err = esk_journal_open(&js->options, &recovery, open->states, open->state_count,
                               &js->journal, &js->error);
    }
    js->start_err = err;
    if (err || js->run->failed) {
        if (recovery) {
            esk_journal_recovery_destroy(recovery);
        }
        js->stopped = true;
        return;
    }
    js->model.persisted = js->model.durable = js->model.count;
    js->started = true;
    js->start = (struct esk_mail){.run = start};
    esk_post(&js->loop->executor, &js->start);
}

static bool ended(void *context) {
    struct js *js = context;
    return js->stopped || js->run->failed;
}

static void check_refusal(struct js *js) {
    struct sim_run *run = js->run;
    struct jd_damage *damage = &js->damage;
    if (js->started || run->failed) {
        if (damage->refused && js->started) {
            sim_run_fail(run, "%s is damaged at %" PRIu64 ", and the journal starts", damage->file,
                         damage->position);
        }
        return;
    }
    if (faults_fired(js, true) > 0 || js->untold) {
        return; /* a sync of the start may have met an error, from the life before too */
    }
    if (!damage->done || !(damage->refused || damage->may_refuse)) {
        sim_run_fail(run, "the journal does not start: %s", js->error.text);
        return;
    }
    char position[32];
    snprintf(position, sizeof(position), "at %" PRIu64, damage->position);
    if (js->start_err != ESK_ERR_CORRUPT ||
        (damage->names_position &&
         !(strstr(js->error.text, damage->file) && strstr(js->error.text, position)) &&
         !strstr(js->error.text, "at 4096"))) {
        sim_run_fail(run, "%s is damaged at %" PRIu64 ", but the journal says: %s", damage->file,
                     damage->position, js->error.text);
    }
}

static void life(struct js *js, bool calm) {
    struct sim_run *run = js->run;
    struct sim_random *random = &run->random;
    js->started = js->closing = js->stopped = js->broken = js->recovered = false;
    js->order_count = js->persisted = js->durable = 0;
    js->journal = NULL;
    js->actions = sim_between(random, 1, 300);
    js->delay_ns = 20 * SIM_US << sim_between(random, 0, 7);
    memcpy(js->counts, run->world.counts + SIM_COUNT_FAULTS, sizeof(js->counts));
    js->untold = sim_image_untold(&run->world.image);
    js->loop = sim_loop_create(&run->world, "loop");
    js->options = (struct esk_journal_options){
        .platform = &run->world.platform,
        .loop = js->loop,
        .folder = FOLDER,
        .file_bytes = 32768 << sim_below(random, 2),
        .held_bytes_max = sim_between(random, 200000, 400000),
        .frame_bytes_max = (uint32_t)sim_between(random, 4096, 16384),
        .writes_max = sim_one_in(random, 5) ? 1 : 2,
        .flush_every_records = sim_one_in(random, 3) ? (uint32_t)sim_below(random, 20) : 1,
        .flush_interval_ms = (uint32_t)sim_scaled(random, 1000),
        .log = &run->log,
        .metrics = &js->metrics,
        .failed = on_failed,
        .room = on_room,
        .context = js,
    };
    if (!calm) {
        sim_run_plan_faults(run);
        if (run->world.direct_refused && sim_one_in(random, 2)) {
            run->world.faults[SIM_FAULT_SYNC] = sim_scaled(random, 100); /* of two at once */
        }
        uint64_t point = sim_between(random, 1, 50 + js->actions * 5);
        run->world.crash_at = sim_one_in(random, 4) ? 0 : run->world.points + point;
    }
    sim_thread_start(&run->world, "main", process, js);
    enum sim_outcome outcome = sim_world_run(&run->world, ended, js);
    if (outcome == SIM_IDLE || outcome == SIM_STUCK) {
        sim_run_fail(run, "%s: %zu of %zu appends durable%s",
                     outcome == SIM_IDLE ? "nothing moves any more" : "no end", js->durable,
                     js->order_count, js->closing ? ", closing" : "");
    }
    if (outcome != SIM_CRASHED) {
        check_refusal(js);
    }
    if (js->damage.done) {
        bool refused = !js->recovered;
        if (refused && (js->damage.refused || js->damage.may_refuse)) {
            jd_damage_repair(&js->damage);
            js->model.all_may_be_lost = false;
        }
        js->damage = (struct jd_damage){0};
    }
    bool power_loss = sim_one_in(random, 2);
    js->model.persisted_may_be_lost |= power_loss || faults_fired(js, false) > 0;
    sim_trace(&run->world, "life ends", js->error.text, js->model.durable, js->model.count);
    sim_world_end(&run->world, power_loss);
}

void sim_journal_scenario(struct sim_run *run) {
    struct js *js = esk_alloc_zeroed(1, sizeof(*js));
    js->run = run;
    run->world.direct_refused = sim_one_in(&run->random, 2);
    uint64_t lives = sim_between(&run->random, 2, 8);
    for (uint64_t i = 0; i < lives && !run->failed; i++) {
        if (js->model.durable > 0 && !js->model.all_may_be_lost && sim_one_in(&run->random, 6)) {
            bool below = !sim_one_in(&run->random, 4);
            jd_damage_do(run, FOLDER, below, &js->damage);
            js->model.all_may_be_lost |= js->damage.done && !below;
        }
        life(js, false);
    }
    for (uint64_t i = 0; i < 2 && !run->failed; i++) {
        life(js, true);
    }
}
