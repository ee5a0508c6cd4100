/* SPDX-License-Identifier: Apache-2.0 */
/* The tables behind the codec, generated from definitions/kafka: facts of each message and field,
 * and for each version a layout, the exact list of what lies on the wire. All of it is constant
 * data; any thread. */
#ifndef ESK_WIRE_KAFKA_SCHEMA_H
#define ESK_WIRE_KAFKA_SCHEMA_H

#include "wire/kafka/types.h"

/* How a value lies on the wire. "Compact" lengths are uvarints of length plus one, 0 for null. */
enum esk_kafka_kind {
    ESK_KAFKA_BOOL,
    ESK_KAFKA_INT8,
    ESK_KAFKA_INT16,
    ESK_KAFKA_UINT16,
    ESK_KAFKA_INT32,
    ESK_KAFKA_UINT32,
    ESK_KAFKA_INT64,
    ESK_KAFKA_FLOAT64,
    ESK_KAFKA_UUID,
    ESK_KAFKA_STRING,
    ESK_KAFKA_COMPACT_STRING,
    ESK_KAFKA_BYTES,
    ESK_KAFKA_COMPACT_BYTES,
    ESK_KAFKA_RECORDS,
    ESK_KAFKA_COMPACT_RECORDS,
    ESK_KAFKA_ARRAY,
    ESK_KAFKA_COMPACT_ARRAY,
    ESK_KAFKA_STRUCT,
};

#define ESK_KAFKA_NULLABLE 1 /* null is allowed on the wire */
#define ESK_KAFKA_TAGGED 2   /* lies in the tagged section */
#define ESK_KAFKA_POINTER 4  /* a struct behind a pointer, since some version may have null */

struct esk_kafka_field {
    const char *name;       /* "BrokerId" */
    const char *json_name;  /* "brokerId" */
    const char *snake_name; /* "broker_id" */
    const char *about;
    const char *default_text; /* NULL: none stated */
    const char *entity_type;  /* NULL: none stated */
};

struct esk_kafka_op {
    uint8_t kind;    /* enum esk_kafka_kind */
    uint8_t element; /* that of an array's elements */
    uint8_t flags;
    uint8_t tag;
    uint16_t offset; /* of the member in the C struct, bytes */
    uint16_t size;   /* of the member, bytes */
    uint16_t stride; /* of an array's elements in memory, bytes */
    const struct esk_kafka_field *field;
    const struct esk_kafka_layout *layout; /* of the struct, or of the array's struct elements */
};

struct esk_kafka_layout {
    const struct esk_kafka_op *ops; /* plain fields in wire order, then tagged ones by tag */
    uint16_t plain_count;
    uint16_t tagged_count;
    bool flexible;         /* ends in a tagged section */
    bool partial;          /* some members are not always on the wire and take their defaults */
    uint32_t other_tags;   /* a bit per tag that only other versions have; it is refused here */
    uint32_t tags_offset;  /* of unknown_tags in the C struct, bytes; 0 when not flexible */
    uint32_t tagged_begin; /* where the members of tagged fields lie in the C struct, bytes, */
    uint32_t tagged_end;   /* perhaps with others between them */
    uint32_t struct_bytes;
    const void *defaults; /* a C struct with every member at its default */
    const char *name;
};

enum esk_kafka_message_type {
    ESK_KAFKA_REQUEST,
    ESK_KAFKA_RESPONSE,
    ESK_KAFKA_HEADER,
    ESK_KAFKA_DATA,
    ESK_KAFKA_COORDINATOR_KEY,   /* on disk behind its api_key as int16 */
    ESK_KAFKA_COORDINATOR_VALUE, /* on disk behind its version as int16 */
};

#define ESK_KAFKA_LISTENERS_MAX 4 /* zkBroker, broker, controller; NULL behind the last */

struct esk_kafka_message {
    const char *name;     /* "FetchRequest" */
    const char *api_name; /* "Fetch"; the name itself for data */
    enum esk_kafka_message_type type;
    bool removed;    /* only in releases before 4.0 */
    int16_t api_key; /* -1: none */
    int16_t version_min;
    int16_t version_max;
    int16_t version_stable;    /* highest one that is not marked unstable */
    int16_t flexible_min;      /* -1: never flexible */
    const char *flexible_text; /* "9+", "none" */
    const char *valid_text;    /* "3-13" */
    const char *listeners[ESK_KAFKA_LISTENERS_MAX];
    const struct esk_kafka_layout *const *layouts; /* by version - version_min */
    const char *schema;                            /* the definition's own text */
};

struct esk_kafka_error {
    int16_t code;
    const char *name;
    bool retriable;
    const char *about;
};

/* Versions of one request that a release of Kafka speaks. */
struct esk_kafka_span {
    int16_t api_key;
    int16_t version_min;
    int16_t version_max;
};

struct esk_kafka_release {
    const char *name; /* "4.4" */
    const struct esk_kafka_span *spans;
    uint32_t span_count;
};

extern const struct esk_kafka_field *const esk_kafka_batch_fields;  /* in wire order */
extern const struct esk_kafka_field *const esk_kafka_record_fields; /* then the header's two */
extern const struct esk_kafka_field *const esk_kafka_message_set_fields;

/* Every message: those of 4.4.0 first, then removed ones. */
const struct esk_kafka_message *esk_kafka_messages(size_t *count);
/* By the definition's name, or NULL; removed ones only when nothing else has the version. */
const struct esk_kafka_message *esk_kafka_message_named(const char *name, int16_t version);
/* A request or response by key and version, removed ones too; NULL: no such version. */
const struct esk_kafka_message *esk_kafka_message_find(enum esk_kafka_message_type type,
                                                       int16_t api_key, int16_t version);
/* A request or response by its API's name, any case; removed: only or never removed ones. */
const struct esk_kafka_message *esk_kafka_api_find(const char *api_name,
                                                   enum esk_kafka_message_type type, bool removed);
static inline bool esk_kafka_has_version(const struct esk_kafka_message *message, int32_t version) {
    return version >= message->version_min && version <= message->version_max;
}
static inline const struct esk_kafka_layout *
esk_kafka_layout_of(const struct esk_kafka_message *message, int16_t version) {
    return message->layouts[version - message->version_min];
}
/* Layout of the header that goes with a request or response, and its version. ClientId is never
 * compact; ApiVersions responses always have header v0; ControlledShutdown v0 requests lack
 * ClientId (header v0). */
const struct esk_kafka_layout *esk_kafka_header_layout(const struct esk_kafka_message *message,
                                                       int16_t version, int16_t *header_version);
/* Releases of Kafka from 3.5 on, ascending. */
const struct esk_kafka_release *esk_kafka_releases(size_t *count);
const struct esk_kafka_error *esk_kafka_errors(size_t *count);  /* by code, from -1 */
const struct esk_kafka_error *esk_kafka_error_of(int16_t code); /* NULL: unknown */

#endif
