/* SPDX-License-Identifier: Apache-2.0 */
/* One codec for every Kafka message in every version, driven by the tables of wire/kafka/schema.h.
 *
 * Decoding takes and refuses exactly what Kafka's own classes do: bools other than 0 and 1, lengths
 * below -1 for null, long-winded varints, unordered or repeated tags and wrong sizes of known tags
 * pass. Strings, bytes and records are not copied and not looked into. Pure; any thread. */
#ifndef ESK_WIRE_KAFKA_CODEC_H
#define ESK_WIRE_KAFKA_CODEC_H

#include "base/error.h"
#include "base/memory.h"
#include "wire/kafka/schema.h"

/* Reads a struct of this layout from the start of `bytes`. *body borrows from `bytes`; it and its
 * arrays lie in the arena, whose limit bounds what a hostile message can take. *used gets the bytes
 * read. ESK_ERR_CORRUPT: not such a message; the text names the field path and the position.
 * ESK_ERR_TOO_LARGE: the arena's limit. error may be NULL. */
enum esk_err esk_kafka_decode(const struct esk_kafka_layout *layout, struct esk_slice bytes,
                              struct esk_arena *arena, const void **body, size_t *used,
                              struct esk_error *error);

/* The same for a message in a version that it has; the text also names API and version. */
enum esk_err esk_kafka_decode_message(const struct esk_kafka_message *message, int16_t version,
                                      struct esk_slice bytes, struct esk_arena *arena,
                                      const void **body, size_t *used, struct esk_error *error);

/* Appends a body in this layout. Tagged members at their default are left out, members that the
 * version lacks are not written. ESK_ERR_INVALID: a null where none is allowed, a length beyond its
 * prefix, or unknown tags that are not ascending or are known; nothing is appended then. error may
 * be NULL. */
enum esk_err esk_kafka_encode(const struct esk_kafka_layout *layout, const void *body,
                              struct esk_buffer *output, struct esk_error *error);

/* Appends the default of one member as it would be written in a tagged field. */
void esk_kafka_encode_default(const struct esk_kafka_op *op, const struct esk_kafka_layout *owner,
                              struct esk_buffer *output);

/* The bytes that esk_kafka_encode would append; 0 for a body that it would refuse. */
size_t esk_kafka_size(const struct esk_kafka_layout *layout, const void *body);

/* A piece of an encoded message: bytes of the buffer, or borrowed records. */
struct esk_kafka_piece {
    const uint8_t *borrowed; /* NULL: the next `size` bytes of the buffer */
    size_t size;
};
struct esk_kafka_pieces {
    struct esk_buffer bytes;  /* all but the borrowed records */
    struct esk_buffer pieces; /* of struct esk_kafka_piece */
    size_t cut_bytes;         /* records of at least this many bytes are borrowed, not copied */
    size_t size;              /* of the whole message */
};
void esk_kafka_pieces_init(struct esk_kafka_pieces *pieces, size_t cut_bytes);
void esk_kafka_pieces_fini(struct esk_kafka_pieces *pieces);
void esk_kafka_pieces_reset(struct esk_kafka_pieces *pieces); /* keeps its memory */
/* As esk_kafka_encode, but records are handed on as they lie, for a gathering write. */
enum esk_err esk_kafka_encode_pieces(const struct esk_kafka_layout *layout, const void *body,
                                     struct esk_kafka_pieces *pieces, struct esk_error *error);

/* Whether a tagged or other member of `body` is at its default. */
bool esk_kafka_is_default(const struct esk_kafka_op *op, const struct esk_kafka_layout *owner,
                          const void *body);

#endif
