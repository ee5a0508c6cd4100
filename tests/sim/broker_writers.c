/* SPDX-License-Identifier: Apache-2.0 */
#include "broker_writers.h"

#include "broker_clients.h"

#include "base/list.h"
#include "base/memory.h"

#include "broker/producers.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define NEAR 14 /* of BM_RECORDS each: fewer than a window has */
#define PARTS 2 /* requests that one produce may be made of */

struct record {
    struct bm_request *request;
    uint32_t index;
    bool known; /* where it is, when it was sent */
    uint8_t key[8];
    struct esk_produce_header header;
    uint8_t *value;
};

struct produce {
    struct esk_produce produce;
    struct bc_client *client;
    struct bw_writer *writer; /* NULL: of a passing id */
    struct bm_topic *topic;
    char name[32];
    struct bw_request *parts[PARTS]; /* they stay in the line while in flight */
    size_t part_count;
    struct record records[PARTS * BM_RECORDS];
    struct esk_produce_record asked[PARTS * BM_RECORDS];
    uint32_t count;
};

static void begin(struct bc_client *client) {
    client->in_flight++;
    client->bs->in_flight++;
}

static void end(struct bc_client *client) {
    client->in_flight--;
    client->bs->in_flight--;
}

/* --- answers --- */

static bool refused_by_sequence(enum esk_err err) {
    return err == ESK_ERR_SEQUENCE_GAP || err == ESK_ERR_SEQUENCE_TOO_LOW;
}

static void refused(struct produce *own, enum esk_err err) {
    struct bs *bs = own->client->bs;
    bool by_sequence = refused_by_sequence(err);
    sim_trace(&bs->run->world, "refused", own->produce.error.text, err, own->client->id);
    bool forgotten = !own->writer && err == ESK_ERR_UNAVAILABLE;
    if (!by_sequence && !forgotten && !bs_tolerates(bs, err, own->topic)) {
        sim_run_fail(bs->run, "writer %s, %s: error %d: %s", own->name, own->topic->name, (int)err,
                     own->produce.error.text);
    }
    if (own->writer) {
        own->writer->failed = true;
        own->writer->explained |= !by_sequence;
        snprintf(own->writer->text, sizeof(own->writer->text), "%s", own->produce.error.text);
    }
}

static void answered(struct produce *own, uint32_t i) {
    struct bs *bs = own->client->bs;
    const struct esk_produce_record *answer = &own->asked[i];
    struct bm_request *request = own->records[i].request;
    struct bm_record *record = &request->records[own->records[i].index];
    int64_t offset = (int64_t)answer->written_offset;
    if (!own->writer && answer->duplicate) {
        record->dead = true; /* of one that had this sequence before */
        return;
    }
    if (answer->written_partition != (uint32_t)answer->partition ||
        (own->records[i].known && !answer->duplicate) ||
        (record->offset >= 0 && record->offset != offset)) {
        sim_run_fail(bs->run,
                     "%s/%u: record %" PRIu64 ".%u of writer %s is at %" PRId64
                     ", and is answered %" PRId64 "%s",
                     own->topic->name, answer->written_partition, request->id,
                     own->records[i].index, own->name, record->offset, offset,
                     answer->duplicate ? " as a duplicate" : "");
    } else if (record->offset < 0 && !own->topic->deleted) {
        record->partition = answer->partition;
        record->offset = offset;
        request->strict = true;
        if (own->writer) {
            own->writer->begun[answer->partition] = true;
        }
        bm_answered_record(&bs->model, request, own->records[i].index);
    }
}

static void settle_line(struct bs *bs, struct bw_writer *writer) {
    if (!writer->explained) {
        sim_run_fail(bs->run, "writer %d, %s, which sent all: %s", (int)(writer - bs->writers),
                     writer->topic->name, writer->text);
    }
    for (size_t i = 0; i < writer->count; i++) {
        writer->line[i].sent &= writer->line[i].request->answered;
    }
    writer->failed = writer->explained = false;
}

static void produced(struct esk_produce *base, enum esk_err err) {
    struct produce *own = ESK_CONTAINER(base, struct produce, produce);
    struct bs *bs = own->client->bs;
    end(own->client);
    if (err != ESK_OK) {
        refused(own, err);
    } else {
        sim_trace(&bs->run->world, "produced with sequences", own->name,
                  own->records[0].request->id, own->count);
    }
    for (uint32_t i = 0; i < own->count; i++) {
        if (err == ESK_OK) {
            answered(own, i);
        }
        free(own->records[i].value);
    }
    for (size_t i = 0; i < own->part_count; i++) {
        own->parts[i]->in_flight--;
        own->parts[i]->request->answered |= err == ESK_OK;
    }
    if (own->writer) {
        own->writer->in_flight--;
        own->writer->held = own->writer->held == own ? NULL : own->writer->held;
        if (own->writer->failed && own->writer->in_flight == 0) {
            settle_line(bs, own->writer); /* from the first one without an answer on, again */
        }
    }
    free(own);
}

/* --- sending --- */

static void add_record(struct produce *own, struct bm_request *request, uint32_t index,
                       uint64_t sequence) {
    struct record *record = &own->records[own->count];
    struct bm_record *model = &request->records[index];
    if (model->dead) { /* a start did not have it: so it is to be written */
        model->dead = false;
        model->offset = -1;
    }
    *record = (struct record){.request = request, .index = index, .known = model->offset >= 0};
    record->value = esk_alloc(model->size);
    bm_value(request, index, record->value);
    own->asked[own->count] = (struct esk_produce_record){
        .key = bm_key(request, index, record->key),
        .value = esk_slice(record->value, model->size),
        .partition = model->asked,
        .sequence = (int64_t)sequence,
    };
    if (bm_is_tombstone(request, index)) {
        record->header = (struct esk_produce_header){
            .name = esk_slice_text("id"), .value = esk_slice(record->value, BM_VALUE_MIN)};
        own->asked[own->count].value = esk_slice(model->size % 2 ? record->value : NULL, 0);
        own->asked[own->count].headers = &record->header;
        own->asked[own->count].header_count = 1;
    }
    own->count++;
}

static struct produce *produce_create(struct bc_client *client, struct bm_topic *topic) {
    struct produce *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    own->topic = topic;
    own->produce.topic = esk_slice_text(topic->name);
    own->produce.records = own->asked;
    own->produce.done = produced;
    return own;
}

static void send(struct produce *own) {
    own->produce.producer_id = esk_slice_text(own->name);
    own->produce.record_count = own->count;
    begin(own->client);
    sim_trace(&own->client->bs->run->world, "produce with sequences", own->name,
              own->records[0].request->id, own->count);
    for (uint32_t i = 0; i < own->count; i++) {
        sim_trace(&own->client->bs->run->world, "a sequence", own->name,
                  (uint64_t)own->asked[i].partition, (uint64_t)own->asked[i].sequence);
    }
    esk_broker_produce(own->client->shard, &own->produce);
    if (own->writer) {
        bool held = esk_broker_produce_waits(&own->produce);
        for (uint32_t i = 0; i < own->count; i++) { /* else a later one might be the first */
            held |= !own->writer->begun[own->asked[i].partition];
        }
        own->writer->held = held ? own : NULL;
    }
}

static void add_part(struct produce *own, struct bw_request *part) {
    own->parts[own->part_count++] = part;
    part->in_flight++;
    part->sent = true;
    for (uint32_t i = 0; i < part->request->count; i++) {
        add_record(own, part->request, i, part->sequences[i]);
    }
}

static struct bm_request *draw_request(struct bs *bs, uint32_t client, struct bm_topic *topic,
                                       uint32_t count) {
    struct bm_request *request = bm_request_create(&bs->model, topic, client);
    request->count = count;
    for (uint32_t i = 0; i < count; i++) {
        request->records[i] = (struct bm_record){
            .size = BM_VALUE_MIN + (uint32_t)sim_scaled(&bs->run->random, 400),
            .asked = (int32_t)sim_below(&bs->run->random, topic->partitions),
            .offset = -1,
        };
    }
    return request;
}

/* --- a writer --- */

/* The line's place of the first one that is to be sent, or its end. */
static size_t first_unsent(const struct bw_writer *writer) {
    size_t i = 0;
    while (i < writer->count && (writer->line[i].sent || writer->line[i].request->answered)) {
        i++;
    }
    return i;
}

static size_t count_pending(const struct bw_writer *writer) {
    size_t count = 0;
    for (size_t i = 0; i < writer->count; i++) {
        count += !writer->line[i].request->answered;
    }
    return count;
}

/* Room for one more; false: it has to wait. Only while nothing is in flight do places move. */
static bool make_place(struct bw_writer *writer) {
    if (writer->count < BW_LINE) {
        return count_pending(writer) < BW_PENDING;
    }
    if (writer->in_flight > 0 || count_pending(writer) >= BW_PENDING) {
        return false;
    }
    for (size_t i = 0; i < BW_LINE / 3; i++) {
        if (!writer->line[i].request->answered) {
            return false; /* old ones first: they are being sent */
        }
    }
    writer->count -= BW_LINE / 3;
    memmove(writer->line, writer->line + BW_LINE / 3, writer->count * sizeof(writer->line[0]));
    return true;
}

static struct bw_request *draw(struct bc_client *client, struct bw_writer *writer) {
    struct sim_random *random = &client->bs->run->random;
    struct bw_request *place = &writer->line[writer->count];
    *place = (struct bw_request){.request = draw_request(client->bs, client->id, writer->topic,
                                                         (uint32_t)sim_scaled(random, BM_RECORDS))};
    for (uint32_t i = 0; i < place->request->count; i++) {
        uint64_t *next = &writer->next[place->request->records[i].asked];
        place->sequences[i] = (*next)++;
    }
    writer->count++;
    return place;
}

static void begin_topic(struct bc_client *client, struct bw_writer *writer) {
    struct sim_random *random = &client->bs->run->random;
    struct bm_topic *topic = client->bs->model.names[sim_below(random, BM_NAMES)];
    if (writer->in_flight > 0 || !topic || !topic->created || topic->deleting) {
        return;
    }
    *writer = (struct bw_writer){.topic = topic, .number = writer->number + 1};
    for (size_t i = 0; i < BM_PARTITIONS; i++) { /* the first one may be any */
        writer->next[i] = sim_one_in(random, 2) ? 0 : sim_below(random, 1000);
        if (sim_one_in(random, 10)) {
            writer->next[i] = UINT64_C(1) << 62;
        }
    }
}

static void write_on(struct bc_client *client, struct bw_writer *writer) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    size_t at = first_unsent(writer);
    if (writer->held || writer->failed) {
        return;
    }
    if (at == writer->count && !sim_one_in(random, 4) && !make_place(writer)) {
        return;
    }
    struct produce *own = produce_create(client, writer->topic);
    own->writer = writer;
    snprintf(own->name, sizeof(own->name), "writer-%d-%u", (int)(writer - bs->writers),
             writer->number);
    bool again = at == writer->count && writer->count > 0 && sim_one_in(random, 4);
    if (writer->count > 0 && (again || sim_one_in(random, 4))) {      /* one of before */
        size_t low = writer->count > NEAR ? writer->count - NEAR : 0; /* in every window */
        size_t old = at > low ? (size_t)sim_between(random, low, at - 1) : at;
        old = old < writer->count ? old : writer->count - 1;
        add_part(own, &writer->line[old]);
        again |= at == old;
    }
    if (!again) {
        if (at == writer->count && !make_place(writer)) {
            again = own->count > 0;
        } else {
            add_part(own, at < writer->count ? &writer->line[at] : draw(client, writer));
        }
    }
    if (own->count == 0) {
        free(own);
        return;
    }
    writer->in_flight++;
    send(own);
}

/* --- ids that come and go --- */

struct removal {
    struct esk_producer_removal removal;
    struct bc_client *client;
    char name[32];
};

static void removed(struct esk_producer_removal *base, enum esk_err err) {
    struct removal *own = ESK_CONTAINER(base, struct removal, removal);
    struct bs *bs = own->client->bs;
    end(own->client);
    sim_trace(&bs->run->world, "forgotten", own->name, err, 0);
    if (err != ESK_OK && err != ESK_ERR_NOT_FOUND && !bs_tolerates(bs, err, NULL)) {
        sim_run_fail(bs->run, "forget %s: error %d: %s", own->name, (int)err, base->error.text);
    }
    free(own);
}

static void forget(struct bc_client *client, const char *name) {
    struct removal *own = esk_alloc_zeroed(1, sizeof(*own));
    own->client = client;
    snprintf(own->name, sizeof(own->name), "%s", name);
    own->removal.producer_id = esk_slice_text(own->name);
    own->removal.done = removed;
    begin(client);
    esk_broker_producer_remove(client->shard, &own->removal);
}

static void pass_by(struct bc_client *client) {
    struct bs *bs = client->bs;
    struct sim_random *random = &bs->run->random;
    struct bm_topic *topic = bs->model.names[sim_below(random, BM_NAMES)];
    char name[32];
    snprintf(name, sizeof(name), "passing-%d", (int)sim_below(random, 3));
    if (sim_one_in(random, 3)) {
        forget(client, name);
    } else if (topic && topic->created && !topic->deleting) {
        struct produce *own = produce_create(client, topic);
        memcpy(own->name, name, sizeof(own->name));
        /* Nobody holds back for its first use: its order is nobody's business. */
        add_record(own, draw_request(bs, ++bs->client_ids, topic, 1), 0, sim_below(random, 4));
        send(own);
    }
}

void bw_act(struct bc_client *client, struct bw_writer *writer) {
    struct sim_random *random = &client->bs->run->random;
    if (client->bs->forgetful || sim_one_in(random, 6)) {
        pass_by(client);
    } else if (!writer->topic || writer->topic->deleting) {
        begin_topic(client, writer);
    } else {
        write_on(client, writer);
    }
}

void bw_over(struct bw_writer *writers) {
    for (size_t w = 0; w < BW_WRITERS; w++) {
        struct bw_writer *writer = &writers[w];
        for (size_t i = 0; i < writer->count; i++) {
            writer->line[i].sent = false;
            writer->line[i].in_flight = 0;
        }
        writer->in_flight = 0;
        writer->failed = writer->explained = false;
        writer->held = NULL;
    }
}
