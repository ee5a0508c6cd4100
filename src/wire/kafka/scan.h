/* SPDX-License-Identifier: Apache-2.0 */
/* Walks encoded messages and tells a visitor what it meets, byte by byte, without building
 * anything: memory does not grow with the message. It accepts exactly what esk_kafka_decode
 * accepts, and besides looks into records: batches, message sets, compressed ones too.
 *
 * A walk is made once to check (any visitor may be NULL) and again to print. Pure; any thread. */
#ifndef ESK_WIRE_KAFKA_SCAN_H
#define ESK_WIRE_KAFKA_SCAN_H

#include "base/error.h"
#include "base/memory.h"
#include "wire/kafka/schema.h"

#define ESK_KAFKA_INFLATED_BYTES_MAX (24U << 20) /* of one compressed batch; larger is refused */

enum esk_kafka_part {
    ESK_KAFKA_PART_FIELD,   /* a field of a message, header, batch or record */
    ESK_KAFKA_PART_ELEMENT, /* [i] of an array */
    ESK_KAFKA_PART_LENGTH,  /* the length before an array's elements or before records */
    ESK_KAFKA_PART_PRESENT, /* the marker before a nullable struct */
    ESK_KAFKA_PART_TAGS,    /* the tagged section of a struct; a leaf when it is empty */
    ESK_KAFKA_PART_TAG,     /* one tagged field: number, size and the field or its bytes */
    ESK_KAFKA_PART_TAG_ID,
    ESK_KAFKA_PART_TAG_SIZE,
    ESK_KAFKA_PART_UNKNOWN,  /* bytes of an unknown tagged field */
    ESK_KAFKA_PART_BATCH,    /* a batch of records */
    ESK_KAFKA_PART_RECORD,   /* a record in a batch */
    ESK_KAFKA_PART_HEADER,   /* a header of a record */
    ESK_KAFKA_PART_MESSAGE,  /* an entry of a message set v0 or v1 */
    ESK_KAFKA_PART_INFLATED, /* compressed records; children count from 0 in what they inflate to */
    ESK_KAFKA_PART_CONTROL,  /* key or value of a control record, decoded */
    ESK_KAFKA_PART_PARTIAL,  /* the beginning of a batch at the end of a fetch response */
    /* Around a message, from whoever walks frames. */
    ESK_KAFKA_PART_ROOT,
    ESK_KAFKA_PART_FRAME,
    ESK_KAFKA_PART_FRAME_SIZE,
    ESK_KAFKA_PART_RPC_HEADER,
    ESK_KAFKA_PART_BODY,
    ESK_KAFKA_PART_PREFIX,   /* the int16 before a stored record */
    ESK_KAFKA_PART_TRAILING, /* bytes behind the body */
};

/* Wire kinds that only occur in records, beyond enum esk_kafka_kind. */
enum esk_kafka_record_kind {
    ESK_KAFKA_UVARINT = ESK_KAFKA_STRUCT + 1,
    ESK_KAFKA_VARINT,
    ESK_KAFKA_VARLONG,
    ESK_KAFKA_VARINT_STRING,
    ESK_KAFKA_VARINT_BYTES,
    ESK_KAFKA_RAW, /* bytes without a length of their own */
};

struct esk_kafka_node {
    const struct esk_kafka_node *parent; /* NULL at the root */
    enum esk_kafka_part part;
    uint8_t kind; /* wire kind of a value */
    bool nullable;
    bool null;
    bool last;                             /* no sibling behind it */
    bool inflated;                         /* positions count in inflated records */
    const struct esk_kafka_field *field;   /* NULL: parts without one */
    const struct esk_kafka_op *op;         /* NULL: not from a layout */
    const struct esk_kafka_layout *layout; /* of the struct that a tagged section ends */
    int64_t index;                         /* of an element, record or batch */
    size_t position;
    size_t size;            /* of an opened node only when the visitor measures */
    int64_t integer;        /* numbers, bools, lengths (-1: null), tags */
    double real;            /* float64 */
    struct esk_slice bytes; /* strings, bytes, uuids, records, unknown tags */
};

struct esk_kafka_visitor {
    void *context;
    bool measure;        /* open() needs the size, at the price of a second look at the bytes */
    bool opaque_records; /* records are reported as one value and not looked into */
    void (*open)(void *context, const struct esk_kafka_node *node);
    void (*close)(void *context, const struct esk_kafka_node *node);
    void (*value)(void *context, const struct esk_kafka_node *node);
    /* What Kafka tolerates though no client of it writes it. */
    void (*warn)(void *context, const struct esk_kafka_node *parent,
                 const struct esk_kafka_field *field, size_t position, const char *text);
};

#define ESK_KAFKA_PROBLEM_BYTES 480

struct esk_kafka_scan {
    const uint8_t *start; /* positions count from here */
    const uint8_t *at;
    const uint8_t *end;
    const struct esk_kafka_visitor *visitor; /* NULL: only check */
    bool inflated;
    bool partial_batches; /* records may end inside a batch (fetch responses) */
    bool shallow_records; /* records are not checked, as the codec does */
    bool failed;
    size_t problem_position;
    char problem[ESK_KAFKA_PROBLEM_BYTES]; /* "Topics[0].Name: needs 7 bytes, 3 are left" */
    struct esk_buffer scratch;             /* inflated records */
};

void esk_kafka_scan_init(struct esk_kafka_scan *scan, struct esk_slice bytes,
                         const struct esk_kafka_visitor *visitor);
void esk_kafka_scan_fini(struct esk_kafka_scan *scan);

/* Walks the fields of a struct at scan->at; they are children of `parent` (may be NULL), the last
 * of them its last child. False: failed, problem and its position are set. */
bool esk_kafka_scan_struct(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                           const struct esk_kafka_node *parent);

/* Walks the tagged section of a struct of this layout. */
bool esk_kafka_scan_tags(struct esk_kafka_scan *scan, const struct esk_kafka_layout *layout,
                         const struct esk_kafka_node *parent);

/* Walks batches and message sets up to scan->end. */
bool esk_kafka_scan_records(struct esk_kafka_scan *scan, const struct esk_kafka_node *parent);

/* "Topics[0].Partitions[2].Records" of a field below parent, at most `size` bytes with its NUL. */
void esk_kafka_path(const struct esk_kafka_node *parent, const struct esk_kafka_field *field,
                    char *text, size_t size);

/* Sets the error of a decode that failed: the path and the position where `bytes` stop being a
 * struct of this layout. */
enum esk_err eski_scan_explain(const struct esk_kafka_layout *layout, struct esk_slice bytes,
                               struct esk_error *error);

#endif
