/* SPDX-License-Identifier: Apache-2.0 */
/* The schema registry: subjects, each with versions of which a new one must be able to read what
 * the one before it wrote. Reads are of this shard's copy of the catalogue; the bytes of a schema
 * never change and stay while the broker runs, so views may be kept. Operations as in broker.h. */
#ifndef ESK_BROKER_SCHEMAS_H
#define ESK_BROKER_SCHEMAS_H

#include "broker/changes.h"
#include "schema/schema.h"

struct esk_schema_view {
    uint32_t id;
    uint32_t version;
    enum esk_schema_type type;
    struct esk_slice subject;
    struct esk_slice text;
};

/* false: no such id, or there is no such version; version 0: the newest. */
bool esk_broker_schema_find(const struct esk_broker_shard *shard, uint32_t id,
                            struct esk_schema_view *view);
bool esk_broker_schema_version(const struct esk_broker_shard *shard, struct esk_slice subject,
                               uint32_t version, struct esk_schema_view *view);
/* Ids and versions count from 1 to these; 0: an unknown subject. */
uint32_t esk_broker_schema_count(const struct esk_broker_shard *shard);
uint32_t esk_broker_schema_version_count(const struct esk_broker_shard *shard,
                                         struct esk_slice subject);
/* Subjects sorted by name. */
void esk_broker_subject_each(const struct esk_broker_shard *shard,
                             void (*visit)(void *context, struct esk_slice subject), void *context);

struct esk_schema_operation {
    struct esk_slice subject;
    enum esk_schema_type type;
    struct esk_slice text;
    bool any_version; /* register: the same schema as an older version gives that one's id, too */
    uint32_t against; /* check: the version to compare with; 0: the newest */
    void (*done)(struct esk_schema_operation *operation, enum esk_err err);
    /* out */
    uint32_t id;
    uint32_t version;
    struct esk_error error;
    /* internal */
    struct esk_broker_shard *shard;
    struct esk_mail mail;
    struct esk_change change;
    struct esk_buffer canonical;
    uint64_t fingerprint;
    int kind;
    enum esk_err err;
    const struct esk_schema **candidates; /* that may be the same */
    uint32_t candidate_count;
    const struct esk_schema *match;
    const struct esk_schema *older; /* to compare with; NULL: none */
    bool is_stale;
};

/* Adds a version, unless the schema is the newest one already; done when it is durable and every
 * shard sees it. ESK_ERR_INVALID: no such schema. ESK_ERR_CONFLICT: it can't read what the newest
 * version wrote. ESK_ERR_TOO_LARGE, ESK_ERR_NO_SPACE: over the registry's bounds. */
void esk_broker_schema_register(struct esk_broker_shard *shard,
                                struct esk_schema_operation *operation);
/* The version that is the same schema. ESK_ERR_NOT_FOUND: none. */
void esk_broker_schema_look_up(struct esk_broker_shard *shard,
                               struct esk_schema_operation *operation);
/* Whether it could be registered. ESK_ERR_CONFLICT: no, and why; ESK_ERR_NOT_FOUND: no such
 * version; ESK_ERR_INVALID. */
void esk_broker_schema_check(struct esk_broker_shard *shard,
                             struct esk_schema_operation *operation);

#endif
