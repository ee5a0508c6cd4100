/* SPDX-License-Identifier: Apache-2.0 */
/* What the broker must give back: topics, records and commits. Everything that was answered is
 * there, once, in order, unmodified; what was sent and not answered may be there or not, but whole,
 * and once a start did not have it, it never comes back; nothing else is there. */
#ifndef ESK_SIM_BROKER_MODEL_H
#define ESK_SIM_BROKER_MODEL_H

#include "run.h"

#include "broker/broker.h"
#include "model/record_batch.h"

#define BM_NAMES 4
#define BM_PARTITIONS 4
#define BM_GROUPS 2
#define BM_RECORDS 6 /* of a request */

/* One record that was sent. Its bytes follow from request, index and size. */
struct bm_record {
    uint32_t size;     /* of the value */
    int32_t asked;     /* partition, or ESK_PARTITION_ANY */
    int64_t offset;    /* where it was seen or answered; -1: nowhere yet */
    int32_t partition; /* likewise */
    bool dead;         /* a start did not have it */
    bool in_segment;   /* a segment had it when the last life ended */
};

struct bm_request {
    uint64_t id; /* from 1, in order of sending */
    uint32_t client;
    struct bm_topic *topic;
    uint32_t count;
    struct bm_record records[BM_RECORDS];
    bool answered; /* with success */
    bool strict;   /* and then on disk, under every flush setting */
};

struct bm_place {
    struct bm_request *request; /* NULL: not seen yet */
    uint32_t index;
    bool answered;
    bool gone;     /* compacted away: a scan did not find it */
    uint32_t scan; /* that saw it last */
};

struct bm_log {
    struct bm_place *places; /* by offset */
    size_t count, capacity;
    uint64_t durable;      /* what was there at the last start */
    uint64_t strict_end;   /* behind the last one that was on disk when it was answered */
    uint64_t answered_end; /* behind the last offset that was answered, or seen as committed */
    uint64_t start;
};

struct bm_commit {
    bool known;
    uint64_t offset;
    bool pending; /* sent, not answered */
    uint64_t pending_offset;
};

/* One topic from its creation to its deletion; a name may have several, one after the other. */
struct bm_topic {
    char name[16];
    uint32_t partitions;
    bool created;           /* answered, or seen by a start */
    bool deleting, deleted; /* sent; answered, or seen by a start */
    struct esk_topic_config config;
    bool config_pending;
    struct esk_topic_config_change change;
    bool retains;    /* never had a limit: start offset 0 */
    bool compacts;   /* at some time: records may go that a newer one of their key is behind */
    uint32_t keys;   /* different ones in it */
    bool tombstones; /* some records have no value */
    struct bm_log logs[BM_PARTITIONS];
    struct bm_commit commits[BM_GROUPS][BM_PARTITIONS];
};

struct bm_model {
    struct sim_run *run;
    struct bm_topic *names[BM_NAMES]; /* the newest of each; NULL: never was one */
    struct bm_request **requests;     /* by id - 1 */
    size_t count, capacity;
    bool unsynced; /* a relaxed life ended in a crash: its last records may be in the cache alone */
    bool loose;    /* and that was lost */
    uint32_t scan; /* number of the last one */
    unsigned compactions; /* that were done when it came to a partition */
};

struct bm_request *bm_request_create(struct bm_model *model, struct bm_topic *topic,
                                     uint32_t client);
/* The value of a record, size bytes, and its key: eight bytes, or none. */
#define BM_VALUE_MIN 12
void bm_value(const struct bm_request *request, uint32_t index, uint8_t *bytes);
struct esk_slice bm_key(const struct bm_request *request, uint32_t index, uint8_t *space);
/* Whether the record has no value: then a header has the first BM_VALUE_MIN bytes of it. */
bool bm_is_tombstone(const struct bm_request *request, uint32_t index);

/* The request was answered. */
void bm_answered(struct bm_model *model, struct bm_request *request);
void bm_answered_record(struct bm_model *model, struct bm_request *request, uint32_t index);
/* A record was read. */
void bm_seen(struct bm_model *model, struct bm_topic *topic, uint32_t partition, uint64_t offset,
             const struct esk_record *record);
/* A partition was read from start to end right after a start: what it does not have is gone. */
void bm_scanned(struct bm_model *model, struct bm_topic *topic, uint32_t partition, uint64_t start,
                uint64_t end);
/* Behind bm_scanned of all: requests of the lives before are settled. */
void bm_settle(struct bm_model *model);

#endif
