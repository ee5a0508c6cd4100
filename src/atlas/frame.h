/* SPDX-License-Identifier: Apache-2.0 */
/* What is around a message: the frame's size and the header of a request or response, the prefix of
 * a stored record, or nothing around bare batches. Walks all of it with one visitor. Pure. */
#ifndef ESK_ATLAS_FRAME_H
#define ESK_ATLAS_FRAME_H

#include "wire/kafka/scan.h"

struct esk_atlas_input {
    const struct esk_kafka_message *message; /* NULL: bare batches or message sets */
    int16_t version;
    struct esk_slice bytes;
};

struct esk_atlas_problem {
    size_t offset;                           /* from the first byte of the input */
    char text[ESK_KAFKA_PROBLEM_BYTES + 80]; /* "Fetch request v12: Topics[0]...: expected ..." */
};

/* Walks the input; its root node has part ESK_KAFKA_PART_ROOT. false: not such a message; the
 * problem (may be NULL) says what was expected where. Bytes behind the body are a warning. */
bool esk_atlas_walk(const struct esk_atlas_input *input, const struct esk_kafka_visitor *visitor,
                    struct esk_atlas_problem *problem);

/* The message that `type` ("request", "response" or "data"), a name and a version mean; a bare
 * batch is data named RecordBatch (version 2) or MessageSet (0 and 1). Names of APIs are without
 * Request and Response; either form is taken. false: the problem says what is wrong. */
bool esk_atlas_input_named(struct esk_atlas_input *input, const char *type, const char *name,
                           int version, struct esk_atlas_problem *problem);

/* "Fetch request v12", "OffsetCommitKey v0", "RecordBatch v2". */
void esk_atlas_input_title(const struct esk_atlas_input *input, char *text, size_t size);

#endif
