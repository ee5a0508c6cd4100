/* SPDX-License-Identifier: Apache-2.0 */
/* Clients of a simulated broker: each is a timer in one shard's loop that starts operations and
 * checks their answers against broker_model.h; and the scanner, which reads everything. */
#ifndef ESK_SIM_BROKER_CLIENTS_H
#define ESK_SIM_BROKER_CLIENTS_H

#include "broker_members.h"
#include "broker_model.h"
#include "broker_writers.h"

#define BC_SHARDS 3
#define BC_CLIENTS 8

enum bc_kind { BC_PRODUCER, BC_CONSUMER, BC_ADMIN, BC_COMMITTER, BC_MEMBER, BC_WRITER };

struct bs;
struct bc_client {
    struct bs *bs;
    enum bc_kind kind;
    uint32_t id; /* over all lives */
    struct esk_loop *loop;
    struct esk_broker_shard *shard;
    struct esk_timer timer;
    struct esk_mail start;
    uint64_t actions; /* left */
    unsigned in_flight, in_flight_max;
    struct bw_writer *writer;    /* a BC_WRITER's */
    struct bm_topic *committing; /* a committer's topic and partition, until its answer */
};

/* One life of the broker and what the model says of all of them. */
struct bs {
    struct sim_run *run;
    struct bm_model model;
    struct be_model members;
    struct bw_writer writers[BW_WRITERS];
    bool forgetful; /* producers go soon: then nobody relies on them */
    uint32_t client_ids;
    unsigned in_flight; /* operations without an answer */
    /* of this life */
    struct esk_broker_options options;
    struct esk_loop *loops[BC_SHARDS];
    struct esk_broker *broker;
    struct bc_client clients[BC_CLIENTS];
    size_t client_count;
    uint64_t delay_ns;
    bool damaged_segment;
    bool stopping, failed;
    unsigned counts[SIM_FAULT_COUNT]; /* of the world, when it began */
    struct esk_error error;
    /* scanner */
    struct esk_mail scan_mail;
    bool scanned;
    size_t scan_name, scan_group;
    uint32_t scan_partition;
    uint64_t scan_offset, scan_start;
    bool scan_begun;
};

/* Whether this answer is one that the client must live with now. */
bool bs_tolerates(const struct bs *bs, enum esk_err err, const struct bm_topic *topic);
unsigned bs_faults(const struct bs *bs, bool space);

/* In loop 0: reads every topic, partition and commit, and sets scanned. */
void bc_scan(struct bs *bs);
/* Notes which records the segments below folder hold, when a life is over: only durable entries go
 * there, so the next start must have them. */
void bc_note_segments(struct bs *bs, const struct sim_inode *folder);
/* Posts the client's first mail to its loop. */
void bc_client_start(struct bc_client *client);

/* Checks the batches that were read; *next is behind the last record. */
void bc_check_parts(struct bs *bs, struct bm_topic *topic, const struct esk_consume *consume,
                    uint64_t *next);

#endif
