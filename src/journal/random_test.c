/* SPDX-License-Identifier: Apache-2.0 */
/* Random runs against a model: appends, replacements, states, checkpoints and forgotten groups, in
 * which flushers and the helper run in any order and power is cut at any moment. After each cut
 * everything that was told durable is there, in order, and nothing that was never appended. */
#include "journal/fixture.inc"

#define GROUPS 5
#define ENTRIES_MAX 2000
#define SEEDS 150

/* A group as its owner knows it. */
struct model {
    uint64_t last_index;    /* appended */
    uint64_t durable_index; /* told */
    uint64_t applied_index; /* of the newest checkpoint appended */
    uint64_t term;
    uint64_t durable_term;
    uint64_t terms[ENTRIES_MAX]; /* of each entry appended, by index */
};

static struct fixture f;
static struct model models[GROUPS + 1];
static uint64_t seed;

static uint64_t random_below(uint64_t bound) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % bound;
}

static void told_durable(struct esk_journal_append *append) {
    struct entry *entry = ESK_CONTAINER(append, struct entry, append);
    struct model *model = &models[append->group_id];
    on_durable(append);
    if (append->state) {
        model->durable_term = append->state->term;
    } else {
        assert_true(append->entry.index == model->durable_index + 1);
        model->durable_index = append->entry.index;
    }
    esk_list_remove(&entry->link);
    free(entry);
}

static void random_entry(uint64_t group) {
    struct model *model = &models[group];
    enum esk_err err;
    if (!esk_journal_has_room(f.journal, &err) || model->last_index + 1 >= ENTRIES_MAX) {
        return;
    }
    static uint8_t payload[20000];
    size_t size = random_below(8) == 0 ? random_below(sizeof(payload)) : random_below(200);
    struct entry *entry = entry_create(&f, group);
    entry->append.durable = told_durable;
    entry->append.entry = (struct esk_entry){++model->last_index, model->term, ESK_ENTRY_BATCH,
                                             esk_slice(payload, size)};
    model->terms[model->last_index] = model->term;
    esk_journal_append(f.journal, &entry->append);
}

static void random_state(uint64_t group) {
    struct model *model = &models[group];
    uint64_t below = model->durable_index - model->applied_index + 1;
    model->applied_index += random_below(3) == 0 ? below - 1 : random_below(below);
    struct entry *entry = append_state(&f, group, model->term, model->applied_index);
    entry->append.durable = told_durable;
}

static void random_step(void) {
    uint64_t group = 1 + random_below(GROUPS);
    switch (random_below(8)) {
    case 0:
    case 1:
    case 2:
        random_entry(group);
        break;
    case 3:
        if (random_below(2) == 0) {
            random_state(group);
        }
        break;
    case 4:
        if (random_below(20) == 0) {
            advance(&f.fake, random_below(30000000));
        }
        break;
    case 5:
        run_one(&f.fake.loop);
        break;
    default:
        run_one(&f.fake.workers[random_below(f.fake.worker_count)]);
    }
}

static enum esk_err check_entry(void *context, uint64_t group_id, const struct esk_entry *entry,
                                struct esk_error *error) {
    struct model *model = &models[group_id];
    (void)context;
    (void)error;
    assert_true(entry->index <= model->last_index);
    assert_int_equal(entry->term, model->terms[entry->index]);
    model->applied_index = entry->index; /* of what recovery handed out */
    return ESK_OK;
}

static enum esk_err count_entry(void *context, uint64_t group_id, const struct esk_entry *entry,
                                struct esk_error *error) {
    (void)error;
    assert_int_equal(entry->index, models[group_id].last_index - *(uint64_t *)context + 1);
    --*(uint64_t *)context;
    return ESK_OK;
}

/* One group alone gives the same entries as all of them did. */
static void check_alone(uint64_t group, uint64_t checkpoint) {
    uint64_t left = models[group].last_index - checkpoint;
    enum esk_err err = esk_journal_recovery_replay(f.recovery, group, count_entry, &left, &f.error);
    assert_int_equal(err, ESK_OK);
    assert_int_equal(left, 0);
}

/* Recovers, compares, and starts every group in a new term. */
static void recover_and_check(void) {
    struct esk_group_state states[GROUPS];
    if (try_recover(&f) != ESK_OK) {
        fail_msg("%s", f.error.text);
    }
    for (uint64_t group = 1; group <= GROUPS; group++) {
        const struct esk_group_state *state = esk_journal_recovery_find(f.recovery, group);
        struct model *model = &models[group];
        if (!state) {
            assert_int_equal(model->durable_term, 0);
            states[group - 1] = (struct esk_group_state){.group_id = group};
        } else {
            states[group - 1] = *state;
        }
        assert_true(states[group - 1].term >= model->durable_term);
        assert_true(states[group - 1].term <= model->term);
        model->applied_index = states[group - 1].checkpoint.applied_index;
    }
    if (esk_journal_recovery_replay(f.recovery, UINT64_MAX, check_entry, NULL, &f.error) !=
        ESK_OK) {
        fail_msg("%s", f.error.text);
    }
    for (uint64_t group = 1; group <= GROUPS; group++) {
        struct model *model = &models[group];
        assert_true(model->applied_index >= model->durable_index); /* nothing told is lost */
        model->last_index = model->durable_index = model->applied_index;
        model->term++;
        states[group - 1].term = model->durable_term = model->term;
        model->applied_index = states[group - 1].checkpoint.applied_index;
        check_alone(group, model->applied_index);
    }
    fixture_open_recovered(&f, states, GROUPS);
}

static void forget_entries(void) {
    while (!esk_list_empty(&f.entries)) {
        struct entry *entry = ESK_CONTAINER(f.entries.next, struct entry, link);
        esk_list_remove(&entry->link);
        free(entry);
    }
}

static void run_seed(uint64_t number) {
    seed = number * 7919 + 1;
    memset(models, 0, sizeof(models));
    fixture_init(&f);
    f.options.flush_every_records = random_below(3) == 0 ? 4 : 1;
    f.options.writes_max = 1 + (unsigned)random_below(3);
    f.options.file_bytes = (4u + (unsigned)random_below(12)) * ESKI_BLOCK_BYTES;
    f.options.held_bytes_max = 6 * f.options.file_bytes;
    f.fake.direct_refused = random_below(4) == 0;
    recover_and_check();
    for (int round = 0; round < 6; round++) {
        for (uint64_t step = random_below(800); step > 0; step--) {
            random_step();
        }
        if (random_below(4) == 0) {
            fixture_close(&f);
        } else {
            fixture_crash(&f);
        }
        forget_entries();
        recover_and_check();
        assert_true(f.failed == ESK_OK);
    }
    assert_true(count_files(&f, "") < 40);
    fixture_fini(&f);
}

static void random_runs_lose_and_invent_nothing(void **unused) {
    (void)unused;
    for (uint64_t number = 1; number <= SEEDS; number++) {
        run_seed(number);
    }
}

int main(int argc, char **argv) {
    if (argc == 2) { /* one seed */
        run_seed(strtoull(argv[1], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(random_runs_lose_and_invent_nothing)};
    return cmocka_run_group_tests_name("random", tests, NULL, NULL);
}
