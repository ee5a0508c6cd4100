/* SPDX-License-Identifier: Apache-2.0 */
/* Every limit of the product in one place. Where it says "default", an option changes it; the
 * others are fixed. Sources: the API page (spec), docs/product.md (product), docs/architecture.md
 * (architecture), the Kafka protocol guide (kafka). */
#ifndef ESK_MODEL_LIMITS_H
#define ESK_MODEL_LIMITS_H

#define ESK_KIB 1024
#define ESK_MIB (1024 * 1024)

/* Topics. */
#define ESK_TOPIC_NAME_BYTES_MAX 200                /* spec, Topics */
#define ESK_TOPIC_PARTITIONS_MAX 10000              /* spec, Topics */
#define ESK_SEGMENT_BYTES_DEFAULT (64 * ESK_MIB)    /* product, Config */
#define ESK_SEGMENT_BYTES_MIN 4096                  /* product, Config */
#define ESK_SEGMENT_BYTES_MAX (1024 * ESK_MIB)      /* product, Config */
#define ESK_RETENTION_MS_DEFAULT 604800000          /* product, Config: 7 days */
#define ESK_TOMBSTONE_RETENTION_MS_DEFAULT 86400000 /* product, Config: 1 day */

/* Names. */
#define ESK_ID_BYTES_MAX 200      /* product, Names: groups and producers, from 1 */
#define ESK_SUBJECT_BYTES_MAX 255 /* product, Names */

/* Requests. */
#define ESK_BODY_BYTES_MAX_DEFAULT (10 * ESK_MIB)  /* spec, Conventions; also after inflating */
#define ESK_RECORD_BYTES_MAX_DEFAULT (8 * ESK_MIB) /* spec, Conventions; key + value + headers */
#define ESK_FRAME_BYTES_OVER_BODY (64 * ESK_KIB)   /* product, binary page: a frame beyond a body */
#define ESK_TOKEN_BYTES_MAX 1024                   /* spec, Handshake */
#define ESK_JSON_DEPTH_MAX 64                      /* product, Form */
/* Larger documents go to a helper: 64 KiB of {"value":""} already hold a loop for 0.8 ms. */
#define ESK_JSON_LOOP_BYTES_MAX (64 * ESK_KIB)
#define ESK_CONNECTION_REQUESTS_MAX 32 /* spec, Binary protocol: at once */

/* Reads. */
#define ESK_FETCH_RECORDS_DEFAULT 100             /* spec, Consume: when nothing is asked */
#define ESK_FETCH_RECORDS_MAX_DEFAULT 10000       /* spec, Consume */
#define ESK_FETCH_BYTES_DEFAULT ESK_MIB           /* spec, Consume: when nothing is asked */
#define ESK_FETCH_BYTES_MAX_DEFAULT (8 * ESK_MIB) /* spec, Consume */
#define ESK_FETCH_WAIT_MS_MAX 30000               /* product, Consume */

/* Groups and producers. */
#define ESK_OFFSET_PARTITIONS 16         /* architecture 6: of the internal topic, by group name */
#define ESK_MEMBER_TOPICS_MAX 100        /* product, Join */
#define ESK_GROUP_MEMBERS_MAX 2000       /* of one group; its rebalance is one entry */
#define ESK_GROUP_PARTITIONS_MAX 2000000 /* likewise: of all topics that its members read */
#define ESK_PRODUCERS_PER_KEY_MAX 10000  /* spec, Idempotent producers */
#define ESK_SEQUENCE_WINDOW 128          /* spec, Idempotent producers: retries recognised */
#define ESK_PRODUCER_IDLE_MS_MAX 604800000 /* spec, Idempotent producers: 7 days */
#define ESK_PRODUCER_ID_BLOCK 1000         /* product, The Kafka door */

/* Batches. A batch is at most a frame; what it inflates to is bounded by the body limit. */
#define ESK_BATCH_BYTES_MAX 2147483647 /* kafka: its length is an int32 */

#endif
