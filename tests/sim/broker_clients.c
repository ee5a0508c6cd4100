/* SPDX-License-Identifier: Apache-2.0 */
#include "broker_clients.h"

#include "base/list.h"
#include "base/memory.h"

#include "broker/cleaning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* --- what clients have in common --- */

static void again(struct bc_client *client) {
    struct bs *bs = client->bs;
    uint64_t now = esk_loop_now_ns(client->loop);
    esk_timer_start(client->loop, &client->timer, now + sim_scaled(&bs->run->random, bs->delay_ns));
}

static void begin(struct bc_client *client) {
    client->in_flight++;
    client->bs->in_flight++;
}

static void end(struct bc_client *client) {
    client->in_flight--;
    client->bs->in_flight--;
}

static void refused(struct bc_client *client, const char *what, const struct bm_topic *topic,
                    enum esk_err err, const struct esk_error *error) {
    sim_trace(&client->bs->run->world, "refused", what, err, client->id);
    if (!bs_tolerates(client->bs, err, topic)) {
        sim_run_fail(client->bs->run, "%s %s: error %d: %s", what, topic ? topic->name : "",
                     (int)err, error->text);
    }
}

/* A topic that was created and whose deletion was not asked for; NULL: none. */
static struct bm_topic *pick_topic(struct bs *bs) {
    struct bm_topic *topic = bs->model.names[sim_below(&bs->run->random, BM_NAMES)];
    return topic && topic->created && !topic->deleting ? topic : NULL;
}

static struct esk_slice name_of(const struct bm_topic *topic) {
    return esk_slice_text(topic->name);
}

/* --- produce --- */

struct produce {
    struct esk_produce produce;
    struct bc_client *client;
    struct bm_request *request;
    struct esk_produce_record records[BM_RECORDS];
    uint8_t keys[BM_RECORDS][8];
    struct esk_produce_header headers[BM_RECORDS];
    uint8_t *values[BM_RECORDS];
};

/* Where the answer says that a record is; false: it can't be there. */
static bool placed(struct produce *own, uint32_t i, uint32_t partition, uint64_t offset) {
    struct bm_record *record = &own->request->records[i];
    if (partition >= own->request->topic->partitions ||
        (record->offset >= 0 &&
         (record->offset != (int64_t)offset || record->partition != (int32_t)partition))) {
        sim_run_fail(own->client->bs->run, "request %" PRIu64 ".%u: answered %u/%" PRIu64,
                     own->request->id, i, partition, offset);
        return false;
    }
    record->partition = (int32_t)partition;
    record->offset = (int64_t)offset;
    return true;
}

/* What is told before all is known is as good as an answer. */
static void advanced(struct esk_produce *base) {
    struct produce *own = ESK_CONTAINER(base, struct produce, produce);
    struct esk_produce_run run;
    uint32_t i = 0;
    while (esk_produce_next_run(base, &run)) {
        for (uint32_t j = 0; j < run.count; j++, i++) {
            if (run.err == ESK_OK && !run.is_out && placed(own, i, run.partition, run.offset + j) &&
                !own->request->topic->deleted) {
                bm_answered_record(&own->client->bs->model, own->request, i);
            }
        }
    }
    sim_trace(&own->client->bs->run->world, "produced in part", own->request->topic->name,
              own->request->id, i);
}

static void produced(struct esk_produce *base, enum esk_err err) {
    struct produce *own = ESK_CONTAINER(base, struct produce, produce);
    struct bs *bs = own->client->bs;
    struct bm_topic *topic = own->request->topic;
    end(own->client);
    if (err != ESK_OK) {
        refused(own->client, "produce", topic, err, &base->error);
    } else {
        for (uint32_t i = 0; i < own->request->count; i++) {
            const struct esk_produce_record *answer = &own->records[i];
            if (answer->duplicate) {
                sim_run_fail(bs->run, "request %" PRIu64 ".%u: a duplicate", own->request->id, i);
            }
            if (!placed(own, i, answer->written_partition, answer->written_offset)) {
                return;
            }
        }
        sim_trace(&bs->run->world, "produced", topic->name, own->request->id,
                  own->records[0].written_offset);
        if (!topic->deleted) {
            bm_answered(&bs->model, own->request);
        }
    }
    for (uint32_t i = 0; i < own->request->count; i++) {
        free(own->values[i]);
    }
    free(own);
}

static void do_produce(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct bm_topic *topic = pick_topic(bs);
    if (!topic) {
        return;
    }
    struct produce *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->request = bm_request_create(&bs->model, topic, client->id);
    own->request->count = (uint32_t)sim_scaled(random, BM_RECORDS);
    for (uint32_t i = 0; i < own->request->count; i++) {
        struct bm_record *record = &own->request->records[i];
        uint64_t most = sim_one_in(random, 30) ? 9000 : 400;
        *record = (struct bm_record){.size = BM_VALUE_MIN + (uint32_t)sim_scaled(random, most),
                                     .asked = ESK_PARTITION_ANY,
                                     .offset = -1};
        if (sim_one_in(random, 2)) {
            record->asked = (int32_t)sim_below(random, topic->partitions);
        }
        own->values[i] = esk_alloc(record->size);
        bm_value(own->request, i, own->values[i]);
        own->records[i] = (struct esk_produce_record){
            .key = bm_key(own->request, i, own->keys[i]),
            .value = esk_slice(own->values[i], record->size),
            .partition = record->asked,
            .sequence = ESK_SEQUENCE_NONE,
        };
        if (bm_is_tombstone(own->request, i)) { /* null or empty */
            own->headers[i] = (struct esk_produce_header){
                .name = esk_slice_text("id"), .value = esk_slice(own->values[i], BM_VALUE_MIN)};
            own->records[i].value = esk_slice(record->size % 2 ? own->values[i] : NULL, 0);
            own->records[i].headers = &own->headers[i];
            own->records[i].header_count = 1;
        }
    }
    own->produce = (struct esk_produce){.topic = name_of(topic),
                                        .records = own->records,
                                        .record_count = own->request->count,
                                        .done = produced,
                                        .advanced = advanced};
    begin(client);
    sim_trace(&bs->run->world, "produce", topic->name, own->request->id, own->request->count);
    esk_broker_produce(client->shard, &own->produce);
}

/* --- consume --- */

struct consume {
    struct esk_consume consume;
    struct bc_client *client;
    struct bm_topic *topic;
    uint64_t least; /* what was answered before */
};

static void consumed(struct esk_consume *base, enum esk_err err) {
    struct consume *own = ESK_CONTAINER(base, struct consume, consume);
    struct bs *bs = own->client->bs;
    struct bm_log *log = &own->topic->logs[base->partition];
    end(own->client);
    if (err != ESK_OK) {
        refused(own->client, "consume", own->topic, err, &base->error);
    } else if (!own->topic->deleted) {
        uint64_t next;
        if (base->high_watermark < own->least || base->start_offset > base->high_watermark) {
            sim_run_fail(bs->run,
                         "%s/%u: from %" PRIu64 " to %" PRIu64 ", but %" PRIu64 " was answered",
                         own->topic->name, base->partition, base->start_offset,
                         base->high_watermark, own->least);
        }
        bc_check_parts(bs, own->topic, base, &next);
        if (base->high_watermark > log->answered_end) {
            log->answered_end = base->high_watermark;
        }
    }
    esk_consume_fini(base);
    free(own);
}

static void do_consume(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct bm_topic *topic = pick_topic(bs);
    if (!topic) {
        return;
    }
    struct consume *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->topic = topic;
    own->consume = (struct esk_consume){
        .topic = name_of(topic),
        .partition = (uint32_t)sim_below(random, topic->partitions),
        .records_max = (uint32_t)sim_scaled(random, 100),
        .bytes_max = sim_scaled(random, 20000),
        .wait_ms = sim_one_in(random, 4) ? (uint32_t)sim_scaled(random, 1000) : 0,
        .done = consumed,
    };
    const struct bm_log *log = &topic->logs[own->consume.partition];
    own->least = log->answered_end;
    own->consume.offset = sim_below(random, log->count + 3);
    begin(client);
    sim_trace(&bs->run->world, "consume", topic->name, own->consume.partition, own->consume.offset);
    esk_broker_consume(client->shard, &own->consume);
}

/* --- topics --- */

struct admin {
    struct esk_topic_operation operation;
    struct bc_client *client;
    struct bm_topic *topic;
    struct esk_topic_config_change change;
};

static void apply_change(struct bm_topic *topic, const struct esk_topic_config_change *change) {
    esk_topic_config_apply(&topic->config, change, false, NULL);
    topic->retains &= topic->config.retention_bytes == ESK_UNLIMITED &&
                      topic->config.retention_ms == ESK_UNLIMITED;
}

static void created(struct esk_topic_operation *operation, enum esk_err err) {
    struct admin *own = ESK_CONTAINER(operation, struct admin, operation);
    end(own->client);
    if (err == ESK_OK) {
        sim_trace(&own->client->bs->run->world, "created", own->topic->name, 0, 0);
        own->topic->created = true;
    } else {
        refused(own->client, "create", own->topic, err, &operation->error);
    }
    free(own);
}

static void configured(struct esk_topic_operation *operation, enum esk_err err) {
    struct admin *own = ESK_CONTAINER(operation, struct admin, operation);
    end(own->client);
    if (err == ESK_OK) {
        own->topic->config_pending = false;
        apply_change(own->topic, &own->change);
    } else { /* it may have come through */
        refused(own->client, "configure", own->topic, err, &operation->error);
    }
    free(own);
}

static void deleted(struct esk_topic_operation *operation, enum esk_err err) {
    struct admin *own = ESK_CONTAINER(operation, struct admin, operation);
    end(own->client);
    if (err == ESK_OK) {
        sim_trace(&own->client->bs->run->world, "deleted", own->topic->name, 0, 0);
        own->topic->deleted = true;
    } else {
        refused(own->client, "delete", NULL, err, &operation->error);
    }
    free(own);
}

static struct admin *admin_create(struct bc_client *client, struct bm_topic *topic) {
    struct admin *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->topic = topic;
    own->operation.name = name_of(topic);
    begin(client);
    return own;
}

static void draw_limits(struct bs *bs, struct esk_topic_config_change *change) {
    struct sim_random *random = &bs->run->random;
    change->retention_bytes = change->retention_ms = true;
    change->values.retention_bytes =
        sim_one_in(random, 2) ? (int64_t)sim_between(random, 1, 20000) : ESK_UNLIMITED;
    change->values.retention_ms =
        sim_one_in(random, 4) ? (int64_t)sim_scaled(random, 1000) : ESK_UNLIMITED;
}

static void draw_policy(struct bs *bs, struct bm_topic *topic,
                        struct esk_topic_config_change *change) {
    struct sim_random *random = &bs->run->random;
    change->cleanup_policy = change->tombstone_retention_ms = true;
    change->values.cleanup_policy =
        (uint8_t)(ESK_CLEANUP_COMPACT | (sim_one_in(random, 4) ? ESK_CLEANUP_DELETE : 0));
    change->values.tombstone_retention_ms =
        sim_one_in(random, 2) ? 0 : (int64_t)sim_scaled(random, 2000);
    topic->compacts = true;
}

static void do_create(struct bc_client *client, size_t index) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct bm_topic *topic = esk_alloc_zeroed(1, sizeof(*topic));
    bs->model.names[index] = topic;
    snprintf(topic->name, sizeof(topic->name), "topic-%zu", index);
    topic->partitions = (uint32_t)sim_between(random, 1, BM_PARTITIONS);
    struct admin *own = admin_create(client, topic);
    own->change.segment_bytes = true;
    own->change.values.segment_bytes = (uint32_t)sim_between(random, 4096, 16384);
    own->change.retention_ms = true;
    own->change.values.retention_ms = ESK_UNLIMITED;
    if (sim_one_in(random, 3)) {
        draw_limits(bs, &own->change);
    }
    if (sim_one_in(random, 2)) {
        draw_policy(bs, topic, &own->change);
    }
    topic->keys = sim_one_in(random, 2) ? 5 : 100;
    topic->tombstones = sim_one_in(random, 2);
    topic->retains = true;
    esk_topic_config_init(&topic->config);
    apply_change(topic, &own->change);
    own->operation.partition_count = topic->partitions;
    own->operation.config = &own->change;
    own->operation.done = created;
    sim_trace(&bs->run->world, "create", topic->name, topic->partitions, 0);
    esk_broker_topic_create(client->shard, &own->operation);
}

struct clean {
    struct esk_cleaning cleaning;
    struct bc_client *client;
};

static void cleaned(struct esk_cleaning *cleaning) {
    struct clean *own = ESK_CONTAINER(cleaning, struct clean, cleaning);
    end(own->client);
    sim_trace(&own->client->bs->run->world, "cleaned", "", cleaning->segments,
              cleaning->records_removed);
    free(own);
}

static void do_clean(struct bc_client *client) {
    struct clean *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->cleaning.done = cleaned;
    begin(client);
    sim_trace(&client->bs->run->world, "clean", "", 0, 0);
    if (sim_one_in(&client->bs->run->random, 3)) {
        esk_broker_run_retention(client->shard, &own->cleaning);
    } else {
        esk_broker_run_compaction(client->shard, &own->cleaning);
    }
}

static void do_admin(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    size_t index = (size_t)sim_below(random, BM_NAMES);
    struct bm_topic *topic = bs->model.names[index];
    if (!topic || topic->deleted) {
        do_create(client, index);
    } else if (!topic->created || topic->deleting || topic->config_pending) {
        return; /* its last operation has failed: what it did is known after the next start */
    } else if (sim_one_in(random, 4)) {
        topic->deleting = true;
        struct admin *own = admin_create(client, topic);
        own->operation.done = deleted;
        sim_trace(&bs->run->world, "delete", topic->name, 0, 0);
        esk_broker_topic_delete(client->shard, &own->operation);
    } else if (sim_one_in(random, 3)) {
        do_clean(client);
    } else if (sim_one_in(random, 2)) {
        struct admin *own = admin_create(client, topic);
        draw_limits(bs, &own->change);
        if (sim_one_in(random, 4)) {
            draw_policy(bs, topic, &own->change);
        }
        topic->config_pending = true;
        topic->change = own->change;
        topic->retains = false;
        own->operation.config = &own->change;
        own->operation.done = configured;
        sim_trace(&bs->run->world, "configure", topic->name, 0, 0);
        esk_broker_topic_configure(client->shard, &own->operation);
    }
}

/* --- commits --- */

struct commit {
    struct esk_offset_commit commit;
    struct bc_client *client;
    struct bm_topic *topic;
    struct bm_commit *known;
};

static const char *const group_names[BM_GROUPS] = {"analytics", "billing"};

static void committed(struct esk_offset_commit *base, enum esk_err err) {
    struct commit *own = ESK_CONTAINER(base, struct commit, commit);
    end(own->client);
    if (err == ESK_OK) {
        own->known->known = true;
        own->known->offset = base->offset;
        own->known->pending = false;
    } else {
        refused(own->client, "commit", own->topic, err, &base->error);
    }
    free(own);
}

static void do_commit(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct bm_topic *topic = pick_topic(bs);
    if (!topic) {
        return;
    }
    uint32_t partition = (uint32_t)sim_below(random, topic->partitions);
    uint32_t group = (uint32_t)sim_below(random, BM_GROUPS);
    struct bm_commit *known = &topic->commits[group][partition];
    if (known->pending) {
        return;
    }
    struct commit *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->topic = topic;
    own->known = known;
    own->commit = (struct esk_offset_commit){.group = esk_slice_text(group_names[group]),
                                             .topic = name_of(topic),
                                             .partition = partition,
                                             .offset = sim_scaled(random, 1000000),
                                             .done = committed};
    known->pending = true;
    known->pending_offset = own->commit.offset;
    begin(client);
    sim_trace(&bs->run->world, "commit", topic->name, partition, own->commit.offset);
    esk_broker_offset_commit(client->shard, &own->commit);
}

/* --- a client --- */

static void tick(struct esk_timer *timer) {
    struct bc_client *client = ESK_CONTAINER(timer, struct bc_client, timer);
    struct bs *bs = client->bs;
    if (bs->stopping || bs->failed || bs->run->failed || client->actions == 0) {
        return;
    }
    if (client->in_flight < client->in_flight_max) {
        client->actions--;
        switch (client->kind) {
        case BC_PRODUCER:
            do_produce(client);
            break;
        case BC_CONSUMER:
            do_consume(client);
            break;
        case BC_ADMIN:
            do_admin(client);
            break;
        case BC_COMMITTER:
            do_commit(client);
            break;
        case BC_MEMBER:
            be_act(client);
            break;
        case BC_WRITER:
            bw_act(client, client->writer);
            break;
        }
    }
    again(client);
}

static void start(struct esk_mail *mail) {
    struct bc_client *client = ESK_CONTAINER(mail, struct bc_client, start);
    client->timer = (struct esk_timer){.run = tick};
    again(client);
}

void bc_client_start(struct bc_client *client) {
    client->start = (struct esk_mail){.run = start};
    esk_post(&client->loop->executor, &client->start);
}
