/* SPDX-License-Identifier: Apache-2.0 */
/* Sequences of producers against a naive model: the table of verdicts, retries of what is in
 * flight, windows through checkpoints and crashes, turns, forgetting, and the bytes on disk. */
#include "partition/shard_fixture.inc"

#include "partition/producers_private.h"

#include <stdlib.h>

#define ITEMS_MAX 8
#define PRODUCERS 5
#define SEQUENCES_MAX 4096

/* One produce of one partition, as the broker does it. */
struct produce {
    struct esk_sequences sequences;
    struct esk_sequence items[ITEMS_MAX];
    struct esk_submit submit;
    enum esk_sequence_verdict verdict;
    unsigned taken, done;
    enum esk_err err;
};

static void produce_done(struct esk_submit *submit, enum esk_err err) {
    struct produce *produce = ESK_CONTAINER(submit, struct produce, submit);
    produce->done++;
    produce->err = err;
}

/* A record's value names its producer and sequence. */
static uint64_t value_of(uint64_t producer, int64_t sequence) {
    return producer * 1000003 ^ (uint64_t)sequence * UINT64_C(0x9e3779b97f4a7c15);
}

static struct esk_block *batch_of(const struct produce *produce) {
    struct esk_batch_builder builder;
    esk_batch_builder_begin(&builder, 1700000000000, 64);
    for (uint32_t i = 0; i < produce->sequences.count; i++) {
        uint8_t value[8];
        esk_store_u64(value, value_of(produce->sequences.producer_id, produce->items[i].sequence));
        if (!produce->items[i].duplicate) {
            assert_int_equal(
                esk_batch_builder_add(&builder, esk_slice(NULL, 0), esk_slice(value, 8), NULL, 0),
                ESK_OK);
        }
    }
    struct esk_block *block = esk_batch_builder_finish(&builder);
    return esk_block_grow(block, block->size + ESK_SEQUENCE_TRAILER_BYTES);
}

static void go_on(struct produce *produce) {
    struct esk_sequences *sequences = &produce->sequences;
    produce->verdict = esk_sequences_judge(sequences);
    produce->submit = (struct esk_submit){.done = produce_done};
    if (produce->verdict != ESK_SEQUENCE_FITS) {
        esk_sequences_release(sequences);
        produce->done++;
    } else if (sequences->new_count == 0) {
        esk_sequences_await(sequences, &produce->submit);
    } else {
        produce->submit.kind = ESK_ENTRY_PRODUCER;
        produce->submit.strict = true;
        produce->submit.block = batch_of(produce);
        produce->submit.record_count = sequences->new_count;
        produce->submit.timestamp_ms = 1700000000000;
        produce->submit.sequences = sequences;
        esk_partition_submit(sequences->partition, &produce->submit);
    }
}

static void on_taken(struct esk_sequences *sequences, enum esk_err err) {
    struct produce *produce = ESK_CONTAINER(sequences, struct produce, sequences);
    produce->taken++;
    produce->err = err;
    if (err == ESK_OK) {
        go_on(produce);
    } else {
        produce->done++;
    }
}

static void begin(struct world *world, unsigned partition, struct produce *produce,
                  uint64_t producer, const int64_t *sequences, uint32_t count) {
    assert_true(count <= ITEMS_MAX);
    memset(produce, 0, sizeof(*produce));
    for (uint32_t i = 0; i < count; i++) {
        produce->items[i] = (struct esk_sequence){.sequence = sequences[i], .record = i};
    }
    produce->sequences = (struct esk_sequences){
        .producer_id = producer, .items = produce->items, .count = count, .taken = on_taken};
    if (esk_sequences_take(world->partitions[partition], &produce->sequences)) {
        go_on(produce);
    }
}

static uint64_t offset_of(const struct produce *produce, uint32_t item) {
    return produce->items[item].offset +
           (produce->items[item].here ? produce->submit.base_offset : 0);
}

/* One record; its verdict, and where it is. */
static enum esk_sequence_verdict one(struct world *world, uint64_t producer, int64_t sequence,
                                     bool *duplicate, uint64_t *offset) {
    struct produce produce;
    begin(world, 0, &produce, producer, &sequence, 1);
    run_all(world);
    assert_int_equal(produce.done, 1);
    assert_int_equal(produce.err, ESK_OK);
    *duplicate = produce.items[0].duplicate;
    *offset = offset_of(&produce, 0);
    return produce.verdict;
}

static void expect_new(struct world *world, uint64_t producer, int64_t sequence, uint64_t at) {
    bool duplicate;
    uint64_t offset;
    assert_int_equal(one(world, producer, sequence, &duplicate, &offset), ESK_SEQUENCE_FITS);
    assert_false(duplicate);
    assert_int_equal(offset, at);
}

static void expect_duplicate(struct world *world, uint64_t producer, int64_t sequence,
                             uint64_t at) {
    bool duplicate;
    uint64_t offset;
    assert_int_equal(one(world, producer, sequence, &duplicate, &offset), ESK_SEQUENCE_FITS);
    assert_true(duplicate);
    assert_int_equal(offset, at);
}

static void expect_verdict(struct world *world, uint64_t producer, int64_t sequence,
                           enum esk_sequence_verdict verdict) {
    bool duplicate;
    uint64_t offset;
    uint64_t before = world->partitions[0]->next_offset;
    assert_int_equal(one(world, producer, sequence, &duplicate, &offset), verdict);
    assert_int_equal(world->partitions[0]->next_offset, before);
}

static int setup(void **state) {
    *state = world_create(false);
    assert_int_equal(world_start(*state), ESK_OK);
    return 0;
}

static int teardown(void **state) {
    world_destroy(*state);
    return 0;
}

/* --- the table --- */

static void next_is_written_a_retry_is_not_others_are_refused(void **state) {
    struct world *world = *state;
    expect_new(world, 7, 42, 0); /* the first one of an unknown producer may be any */
    expect_new(world, 7, 43, 1);
    expect_duplicate(world, 7, 42, 0);
    expect_verdict(world, 7, 45, ESK_SEQUENCE_GAP);
    expect_verdict(world, 7, 41, ESK_SEQUENCE_TOO_LOW); /* never accepted */
    expect_new(world, 8, 0, 2);                         /* another producer */
    expect_new(world, 7, 44, 3);
    expect_duplicate(world, 7, 44, 3);
    expect_duplicate(world, 7, 43, 1);
    for (int64_t sequence = 45; sequence < 200; sequence++) {
        expect_new(world, 7, sequence, (uint64_t)sequence - 41);
    }
    expect_duplicate(world, 7, 72, 31); /* the 128 last ones: 72 to 199 */
    expect_verdict(world, 7, 71, ESK_SEQUENCE_TOO_LOW);
}

static void a_request_is_judged_in_order_and_as_a_whole(void **state) {
    struct world *world = *state;
    struct produce produce;
    const int64_t mixed[] = {5, 6, 5, 7, 6};
    begin(world, 0, &produce, 7, mixed, 5);
    run_all(world);
    assert_int_equal(produce.sequences.new_count, 3);
    assert_int_equal(offset_of(&produce, 2), 0);
    assert_true(produce.items[2].duplicate);
    assert_int_equal(offset_of(&produce, 3), 2);
    assert_int_equal(offset_of(&produce, 4), 1);
    const int64_t retried[] = {7, 8, 6, 9};
    begin(world, 0, &produce, 7, retried, 4);
    run_all(world);
    assert_int_equal(produce.sequences.new_count, 2);
    assert_int_equal(offset_of(&produce, 0), 2);
    assert_int_equal(offset_of(&produce, 1), 3);
    assert_int_equal(offset_of(&produce, 2), 1);
    assert_int_equal(offset_of(&produce, 3), 4);
    const int64_t skipping[] = {10, 12};
    begin(world, 0, &produce, 7, skipping, 2);
    run_all(world);
    assert_int_equal(produce.verdict, ESK_SEQUENCE_GAP);
    assert_int_equal(produce.sequences.failed, 1);
    assert_int_equal(produce.sequences.expected, 11);
    expect_new(world, 7, 10, 5); /* nothing of it was written */
}

static void sequences_end_at_the_top_without_wrapping(void **state) {
    struct world *world = *state;
    expect_new(world, 7, INT64_MAX - 1, 0);
    expect_new(world, 7, INT64_MAX, 1);
    expect_duplicate(world, 7, INT64_MAX, 1);
    expect_verdict(world, 7, 0, ESK_SEQUENCE_TOO_LOW);
    assert_int_equal(world_crash(world), ESK_OK);
    expect_duplicate(world, 7, INT64_MAX - 1, 0);
    world_stop(world);
    assert_int_equal(world_start(world), ESK_OK);
    expect_duplicate(world, 7, INT64_MAX, 1);
    expect_verdict(world, 7, 0, ESK_SEQUENCE_TOO_LOW);
}

/* --- in flight --- */

static void a_retry_of_a_record_in_flight_waits_for_it(void **state) {
    struct world *world = *state;
    struct produce first, retry, more;
    const int64_t sequences[] = {0, 1};
    begin(world, 0, &first, 7, sequences, 2);
    begin(world, 0, &retry, 7, sequences, 2);
    const int64_t mixed[] = {1, 2};
    begin(world, 0, &more, 7, mixed, 2);
    while (first.done == 0) {
        assert_int_equal(retry.done + more.done, 0);
        bool ran = run_one(&world->loop);
        for (unsigned i = 0; i < world->worker_count; i++) {
            ran |= run_one(&world->workers[i]);
        }
        assert_true(ran);
    }
    run_all(world);
    assert_int_equal(retry.done, 1);
    assert_int_equal(retry.err, ESK_OK);
    assert_int_equal(offset_of(&retry, 0), 0);
    assert_int_equal(offset_of(&retry, 1), 1);
    assert_int_equal(more.done, 1);
    assert_int_equal(offset_of(&more, 0), 1);
    assert_int_equal(offset_of(&more, 1), 2);
    assert_int_equal(world->partitions[0]->next_offset, 3);
}

static void removal_done(struct esk_partition_removal *removal) {
    removal->count = 0;
}

static void turns_are_taken_in_order_and_end_with_the_partition(void **state) {
    struct world *world = *state;
    struct produce holder = {.sequences = {.producer_id = 7, .taken = on_taken}};
    struct produce second, third, other, waiting;
    const int64_t sequences[] = {0, 1};
    assert_true(esk_sequences_take(world->partitions[0], &holder.sequences));
    begin(world, 0, &second, 7, sequences, 1);
    begin(world, 0, &third, 7, sequences + 1, 1);
    begin(world, 0, &other, 8, sequences, 1);
    run_all(world);
    assert_int_equal(second.done + third.done, 0);
    assert_int_equal(other.done, 1);
    esk_sequences_release(&holder.sequences);
    run_all(world);
    assert_int_equal(second.done, 1);
    assert_int_equal(third.done, 1);
    assert_int_equal(offset_of(&third, 0), offset_of(&second, 0) + 1);
    assert_true(esk_sequences_take(world->partitions[0], &holder.sequences));
    begin(world, 0, &waiting, 7, sequences + 1, 1);
    const uint64_t group = FIRST_GROUP;
    struct esk_partition_removal removal = {.group_ids = &group, .count = 1, .done = removal_done};
    esk_shard_remove_partitions(world->shard, &removal);
    run_all(world);
    assert_int_equal(waiting.taken, 1);
    assert_int_equal(waiting.err, ESK_ERR_NOT_FOUND);
    esk_sequences_release(&holder.sequences); /* the partition's memory goes with it */
    assert_int_equal(removal.count, 0);
}

static void an_unknown_producer_needs_memory(void **state) {
    struct world *world = *state;
    world->options.producer_bytes_max = 2000;
    world_stop(world);
    assert_int_equal(world_start(world), ESK_OK);
    uint64_t producer = 0;
    bool duplicate;
    uint64_t offset;
    while (one(world, producer, 0, &duplicate, &offset) == ESK_SEQUENCE_FITS) {
        producer++;
    }
    assert_true(producer > 3 && producer < 20);
    expect_verdict(world, producer, 0, ESK_SEQUENCE_FULL);
    expect_new(world, 0, 1, producer); /* a known one goes on */
    size_t budget = 2;
    assert_true(esk_shard_forget_producer(world->shard, 1, &budget));
    assert_true(esk_shard_forget_producer(world->shard, 2, &budget));
    assert_false(esk_shard_forget_producer(world->shard, 0, &budget));
    expect_new(world, producer, 5, producer + 1);
}

static void a_forgotten_producer_is_unknown(void **state) {
    struct world *world = *state;
    struct produce flying;
    const int64_t sequence = 5;
    struct esk_producer_view views[4];
    expect_new(world, 7, 0, 0);
    begin(world, 1, &flying, 7, &sequence, 1);
    run_all(world);
    assert_int_equal(esk_shard_producer_views(world->shard, 7, 0, views, 4), 2);
    assert_int_equal(views[1].group_id, FIRST_GROUP + 1);
    assert_int_equal(views[1].last_sequence, 5);
    assert_int_equal(esk_shard_producer_views(world->shard, 7, 1, views, 4), 1);
    assert_int_equal(esk_shard_producer_views(world->shard, 8, 0, views, 4), 0);
    const int64_t next = 1;
    begin(world, 0, &flying, 7, &next, 1);
    size_t budget = 1;
    assert_false(esk_shard_forget_producer(world->shard, 7, &budget));
    budget = 1000;
    assert_true(esk_shard_forget_producer(world->shard, 7, &budget)); /* one is in flight */
    assert_int_equal(budget, 999);
    run_all(world);
    assert_int_equal(flying.done, 1);
    assert_int_equal(esk_shard_producer_views(world->shard, 7, 0, views, 4), 0);
    assert_int_equal(world->shard->producer_bytes, 0);
    expect_new(world, 7, 100, 2);
}

/* --- against a model --- */

struct model {
    int64_t next[PRODUCERS]; /* -1: unknown */
    int64_t first[PRODUCERS];
    uint64_t offsets[PRODUCERS][SEQUENCES_MAX];
    uint64_t count; /* of records */
    uint64_t values[PRODUCERS * SEQUENCES_MAX];
};

/* What the table says of one record, where next is as the request has it. */
static enum esk_sequence_verdict model_judge(const struct model *model, unsigned producer,
                                             int64_t next, int64_t sequence, bool *duplicate) {
    *duplicate = next >= 0 && sequence < next;
    if (next < 0 || sequence == next) {
        return ESK_SEQUENCE_FITS;
    }
    if (sequence > next) {
        return ESK_SEQUENCE_GAP;
    }
    return next - sequence > 128 || sequence < model->first[producer] ? ESK_SEQUENCE_TOO_LOW
                                                                      : ESK_SEQUENCE_FITS;
}

struct expected {
    struct produce produce;
    enum esk_sequence_verdict verdict;
    uint32_t count;
    uint64_t offsets[ITEMS_MAX];
    bool duplicates[ITEMS_MAX];
};

static void begin_random(struct world *world, struct model *model, struct expected *expected) {
    unsigned producer = (unsigned)rand() % PRODUCERS;
    int64_t sequences[ITEMS_MAX];
    int64_t start = model->next[producer] < 0 ? rand() % 50 : model->next[producer];
    expected->count = 1 + (uint32_t)rand() % ITEMS_MAX;
    if (rand() % 3 == 0) {
        start -= rand() % 10 == 0 ? rand() % 140 : rand() % 12;
    }
    for (uint32_t i = 0; i < expected->count; i++) {
        sequences[i] = start + i - (rand() % 8 == 0 ? rand() % 4 : 0);
        sequences[i] += rand() % 60 == 0;
        sequences[i] = sequences[i] < 0 ? 0 : sequences[i];
    }
    int64_t next = model->next[producer];
    int64_t first = model->first[producer];
    uint64_t count = model->count;
    expected->verdict = ESK_SEQUENCE_FITS;
    for (uint32_t i = 0; i < expected->count && expected->verdict == ESK_SEQUENCE_FITS; i++) {
        if (next < 0) {
            model->first[producer] = sequences[i];
        }
        expected->verdict =
            model_judge(model, producer, next, sequences[i], &expected->duplicates[i]);
        if (expected->verdict == ESK_SEQUENCE_FITS && !expected->duplicates[i]) {
            model->values[count] = value_of(producer, sequences[i]);
            model->offsets[producer][sequences[i]] = count++;
            next = sequences[i] + 1;
        }
        expected->offsets[i] = model->offsets[producer][sequences[i]];
    }
    if (expected->verdict == ESK_SEQUENCE_FITS) {
        model->next[producer] = next;
        model->count = count;
    } else {
        model->first[producer] = first;
    }
    begin(world, 0, &expected->produce, producer, sequences, expected->count);
}

static void check(const struct expected *expected) {
    assert_int_equal(expected->produce.done, 1);
    assert_int_equal(expected->produce.err, ESK_OK);
    assert_int_equal(expected->produce.verdict, expected->verdict);
    for (uint32_t i = 0; i < expected->count && expected->verdict == ESK_SEQUENCE_FITS; i++) {
        assert_int_equal(expected->produce.items[i].duplicate, expected->duplicates[i]);
        assert_int_equal(offset_of(&expected->produce, i), expected->offsets[i]);
    }
}

/* Every record once, in its place. */
static void check_log(struct world *world, const struct model *model) {
    uint64_t at = 0;
    while (at < model->count) {
        struct reading reading;
        read_begin(world, 0, &reading, at, 20000, 0);
        run_all(world);
        assert_int_equal(reading.err, ESK_OK);
        assert_int_equal(reading.read.high_watermark, model->count);
        for (uint32_t i = 0; i < reading.read.part_count; i++) {
            const struct esk_read_part *part = &reading.read.parts[i];
            for (uint32_t position = 0; position < part->size;) {
                struct esk_batch_header header;
                struct esk_record record;
                struct esk_slice batch =
                    esk_slice(part->block->data + part->position + position, part->size - position);
                assert_int_equal(esk_batch_parse(batch, &header, NULL), ESK_OK);
                assert_true(esk_batch_crc_valid(batch.data, &header));
                struct esk_record_iterator iterator =
                    esk_record_iterator(esk_slice(batch.data + ESK_BATCH_HEADER_BYTES,
                                                  header.size_bytes - ESK_BATCH_HEADER_BYTES),
                                        header.record_count);
                for (at = (uint64_t)header.base_offset; esk_record_next(&iterator, &record); at++) {
                    assert_true(at < model->count);
                    assert_true(esk_load_u64(record.value.data) == model->values[at]);
                }
                assert_false(iterator.failed);
                position += header.size_bytes;
            }
        }
        esk_read_release(&reading.read);
    }
}

static void random_sequences_are_as_the_model_has_them(void **state) {
    struct world *world = *state;
    static struct model model;
    static struct expected flying[6];
    for (unsigned seed = 1; seed <= 12; seed++) {
        srand(seed);
        memset(&model, 0, sizeof(model));
        for (unsigned i = 0; i < PRODUCERS; i++) {
            model.next[i] = -1;
        }
        for (int step = 0; step < 400; step++) {
            unsigned count = 1 + (unsigned)rand() % 6;
            for (unsigned i = 0; i < count; i++) {
                begin_random(world, &model, &flying[i]);
            }
            run_all(world);
            for (unsigned i = 0; i < count; i++) {
                check(&flying[i]);
            }
            if (rand() % 20 == 0) {
                advance(world, (uint64_t)(rand() % 3) * 1000000000); /* maybe a checkpoint */
            } else if (rand() % 50 == 0) {
                world_stop(world);
                assert_int_equal(world_start(world), ESK_OK);
            } else if (rand() % 30 == 0) {
                assert_int_equal(world_crash(world), ESK_OK);
            }
        }
        check_log(world, &model);
        world_destroy(world);
        *state = world = world_create(false);
        assert_int_equal(world_start(world), ESK_OK);
    }
}

static void checkpoint_told(struct esk_journal_append *append) {
    (void)append;
}

/* A checkpoint whose windows are of a later entry than itself: what is in flight is encoded while
 * it goes on. */
static void windows_may_be_later_than_their_checkpoint(void **state) {
    struct world *world = *state;
    struct esk_partition *partition = world->partitions[0];
    for (int64_t sequence = 0; sequence < 300; sequence++) {
        expect_new(world, 7, sequence, (uint64_t)sequence);
    }
    struct eski_move *move = eski_move_create(partition, 1u << 20, true);
    assert_non_null(move);
    expect_new(world, 7, 300, 300);
    expect_new(world, 8, 0, 301);
    assert_true(eski_move_encode(move, SIZE_MAX));
    assert_int_equal(eski_move_execute(move), ESK_OK);
    bool checkpoint;
    struct esk_group_state group_state;
    struct esk_error error;
    assert_int_equal(eski_move_finish(move, &checkpoint, &group_state, &error), ESK_OK);
    assert_true(checkpoint && group_state.checkpoint.snapshot_index > 0);
    assert_true(group_state.checkpoint.next_offset == 300);
    eski_move_destroy(move);
    eski_partition_let_go(partition);
    struct esk_journal_append append = {.group_id = FIRST_GROUP,
                                        .state = &group_state,
                                        .strict = true,
                                        .persisted = checkpoint_told,
                                        .durable = checkpoint_told};
    esk_journal_append(world->shard->journal, &append);
    run_all(world);
    assert_int_equal(world_crash(world), ESK_OK);
    assert_int_equal(world->partitions[0]->checkpoint.next_offset, 300);
    expect_duplicate(world, 7, 300, 300);
    expect_duplicate(world, 8, 0, 301);
    expect_verdict(world, 7, 172, ESK_SEQUENCE_TOO_LOW);
    expect_new(world, 7, 301, 302);
}

/* --- bytes --- */

static size_t golden(const char *name, uint8_t bytes[512]) {
    char line[1200];
    size_t size = 0;
    FILE *file = fopen("tests/golden/producers-v1.txt", "r");
    assert_non_null(file);
    while (size == 0 && fgets(line, sizeof(line), file) != NULL) {
        size_t length = strlen(name);
        unsigned byte;
        if (strncmp(line, name, length) == 0 && line[length] == ' ') {
            for (const char *at = line + length + 1; sscanf(at, "%2x", &byte) == 1; at += 2) {
                bytes[size++] = (uint8_t)byte;
            }
        }
    }
    fclose(file);
    assert_true(size > 0);
    return size;
}

static void trailer_and_snapshot_have_their_golden_bytes(void **state) {
    struct world *world = *state;
    struct esk_partition *partition = world->partitions[0];
    uint8_t bytes[512];
    struct esk_block *block = esk_block_create(ESK_SEQUENCE_TRAILER_BYTES);
    const struct eski_trailer trailer = {1004, 42};
    size_t size = golden("trailer", bytes);
    eski_trailer_write(block, &trailer);
    assert_int_equal(size, ESK_SEQUENCE_TRAILER_BYTES);
    assert_memory_equal(block->data, bytes, size);
    esk_block_release(block);
    size = golden("windows", bytes);
    assert_int_equal(eski_windows_decode(partition, esk_slice(bytes, size), &world->error), ESK_OK);
    uint64_t offset;
    struct eski_producer *producer = eski_producer_find(partition, 1004);
    assert_int_equal(producer->next, 44);
    assert_int_equal(producer->applied_index, 9);
    assert_true(eski_producer_offset(producer, 43, &offset));
    assert_int_equal(offset, 5);
    struct esk_buffer buffer;
    esk_buffer_init(&buffer);
    eski_window_encode(&buffer, producer);
    producer = eski_producer_find(partition, 1005);
    assert_true(producer->next == UINT64_C(1) << 63);
    eski_window_encode(&buffer, producer);
    assert_int_equal(buffer.size, size);
    assert_memory_equal(buffer.data, bytes, size);
    esk_buffer_fini(&buffer);
    eski_producers_fini(partition);
    eski_producers_init(partition);
}

static void forget_all(struct esk_partition *partition) {
    eski_producers_fini(partition);
    eski_producers_init(partition);
}

static void malformed_bytes_are_refused(void **state) {
    struct world *world = *state;
    struct esk_partition *partition = world->partitions[0];
    uint8_t bytes[512];
    size_t size = golden("windows", bytes);
    struct eski_trailer trailer;
    for (size_t shorter = 1; shorter < size; shorter++) {
        struct esk_block *copy = esk_block_copy(esk_slice(bytes, shorter));
        bool whole = shorter == 66; /* the first window alone */
        assert_int_equal(
            eski_windows_decode(partition, esk_slice(copy->data, shorter), &world->error) == ESK_OK,
            whole);
        forget_all(partition);
        esk_block_release(copy);
    }
    for (size_t i = 0; i < size; i++) { /* any byte: refused or loaded, never worse */
        for (unsigned value = 0; value < 256; value += 15) {
            uint8_t before = bytes[i];
            bytes[i] = (uint8_t)value;
            (void)eski_windows_decode(partition, esk_slice(bytes, size), &world->error);
            forget_all(partition);
            bytes[i] = before;
        }
    }
    size = golden("trailer", bytes);
    assert_int_equal(eski_trailer_read(esk_slice(bytes, size), 0, 1, &trailer, NULL), ESK_OK);
    for (size_t shorter = 0; shorter < size; shorter++) {
        assert_int_equal(eski_trailer_read(esk_slice(bytes, shorter), 0, 1, &trailer, NULL),
                         ESK_ERR_CORRUPT);
    }
    assert_int_equal(eski_trailer_read(esk_slice(bytes, size + 1), 0, 1, &trailer, NULL),
                     ESK_ERR_CORRUPT);
    memset(bytes + 9, 0x7f, 1);
    memset(bytes + 10, 0xff, 7);
    assert_int_equal(eski_trailer_read(esk_slice(bytes, size), 0, 1, &trailer, NULL), ESK_OK);
    assert_int_equal(eski_trailer_read(esk_slice(bytes, size), 0, 2, &trailer, NULL),
                     ESK_ERR_CORRUPT); /* the second one would wrap */
    bytes[0] = 2;
    assert_int_equal(eski_trailer_read(esk_slice(bytes, size), 0, 1, &trailer, NULL),
                     ESK_ERR_VERSION);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(next_is_written_a_retry_is_not_others_are_refused, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_request_is_judged_in_order_and_as_a_whole, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(sequences_end_at_the_top_without_wrapping, setup, teardown),
        cmocka_unit_test_setup_teardown(a_retry_of_a_record_in_flight_waits_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(turns_are_taken_in_order_and_end_with_the_partition, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(an_unknown_producer_needs_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(a_forgotten_producer_is_unknown, setup, teardown),
        cmocka_unit_test_setup_teardown(random_sequences_are_as_the_model_has_them, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(windows_may_be_later_than_their_checkpoint, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(trailer_and_snapshot_have_their_golden_bytes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(malformed_bytes_are_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
