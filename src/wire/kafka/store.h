/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps bytes in the form of a codec without compressing them, so that any reader of the codec
 * gives them back. Pure; any thread. */
#ifndef ESK_WIRE_KAFKA_STORE_H
#define ESK_WIRE_KAFKA_STORE_H

#include "base/memory.h"
#include "model/codec.h"

/* Appends gzip (RFC 1952) with stored blocks, snappy in the framing of snappy-java with literals,
 * an LZ4 frame or a zstd frame (RFC 8878) with raw blocks; for none the bytes themselves. */
void esk_kafka_store(enum esk_codec codec, struct esk_slice bytes, struct esk_buffer *output);

#endif
