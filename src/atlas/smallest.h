/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest legal instance of a message: numbers 0 and bools false, strings and bytes empty,
 * one element per array, nullable structs present, tagged fields not written, and records one
 * empty batch of 61 bytes. Any thread. */
#ifndef ESK_ATLAS_SMALLEST_H
#define ESK_ATLAS_SMALLEST_H

#include "base/memory.h"
#include "wire/kafka/schema.h"

/* Appends it: a request or response with size prefix and header, a stored record with its prefix,
 * other data bare. The message has the version. */
void esk_atlas_smallest(const struct esk_kafka_message *message, int16_t version,
                        struct esk_buffer *output);

#endif
