/* SPDX-License-Identifier: Apache-2.0 */
/* Records gathered for one produce request, and its body. Text goes as it is; as soon as one key or
 * value is not UTF-8, the whole request goes in base64. Pure; one owner. */
#ifndef ESK_ESK_PRODUCE_REQUEST_H
#define ESK_ESK_PRODUCE_REQUEST_H

#include "base/memory.h"

struct esk_produce_record {
    size_t begin; /* of the key in bytes, with the value right behind it */
    size_t key_size;
    size_t value_size;
    bool has_key;
};

struct esk_produce_request {
    const char *const *headers; /* "NAME=VALUE" of every record; borrowed */
    uint32_t header_count;
    int64_t partition; /* -1: none is named */
    struct esk_buffer bytes;
    struct esk_produce_record *records; /* owned */
    size_t record_count;
    size_t record_capacity;
    bool is_text;
    struct esk_buffer body;
};

void esk_produce_request_init(struct esk_produce_request *request, const char *const *headers,
                              uint32_t header_count, int64_t partition);
void esk_produce_request_fini(struct esk_produce_request *request);

/* Copies a record; key data NULL: none. */
void esk_produce_request_add(struct esk_produce_request *request, struct esk_slice key,
                             struct esk_slice value);
/* The body with all records, which are kept; valid until the next call. */
struct esk_slice esk_produce_request_body(struct esk_produce_request *request);
void esk_produce_request_clear(struct esk_produce_request *request);

#endif
