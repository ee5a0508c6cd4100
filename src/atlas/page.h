/* SPDX-License-Identifier: Apache-2.0 */
/* What the reference says of one API in one version: facts, introduction, layout, tree, schema. */
#ifndef ESK_ATLAS_PAGE_H
#define ESK_ATLAS_PAGE_H

#include "atlas/sink.h"
#include "base/error.h"
#include "wire/kafka/schema.h"

/* A request and its response; versions to show of each. */
struct esk_atlas_page {
    const struct esk_kafka_message *request;
    const struct esk_kafka_message *response;
    int16_t request_version;
    int16_t response_version;
};

/* "0", "3-13": the versions of a message. */
void esk_atlas_versions(const struct esk_kafka_message *message, char text[16]);
/* "req v2, resp v1" */
void esk_atlas_headers(const struct esk_atlas_page *page, char text[48]);
/* The facts of an API as `label: value` lines. */
void esk_atlas_facts(const struct esk_atlas_page *page, struct esk_atlas_sink *sink);
/* What the instance is and how structs end, a paragraph. */
void esk_atlas_introduction(const struct esk_kafka_message *message, int16_t version,
                            struct esk_atlas_sink *sink);
/* "FetchRequest v12, request header v2, 74 bytes on the wire" */
void esk_atlas_caption(const struct esk_kafka_message *message, int16_t version, size_t size,
                       struct esk_atlas_sink *sink);
/* The bytes, 16 a row, with a head line, as text. */
void esk_atlas_layout_text(struct esk_slice bytes, struct esk_atlas_sink *sink);

/* Calls `visit` for every API by ascending key, removed versions (if asked for) behind current
 * ones, until one fails. */
enum esk_err esk_atlas_each_api(bool removed,
                                enum esk_err (*visit)(void *context,
                                                      const struct esk_kafka_message *request,
                                                      const struct esk_kafka_message *response,
                                                      struct esk_error *error),
                                void *context, struct esk_error *error);

/* The Kafka releases that speak some version of these, "3.9", "4.0", with a separator. */
void esk_atlas_releases(const struct esk_kafka_message *request, const char *separator,
                        struct esk_atlas_sink *sink);

/* The JSON array, or a table for people, of all APIs; removed: also the versions that 4.0 removed.
 */
void esk_atlas_list_json(bool removed, struct esk_atlas_sink *sink);
void esk_atlas_list_text(bool removed, struct esk_atlas_sink *sink);

#endif
