/* SPDX-License-Identifier: Apache-2.0 */
/* Fields and parameters of requests: part of http_private.h, which includes it. */
#ifndef ESK_SERVER_HTTP_FIELDS_PRIVATE_H
#define ESK_SERVER_HTTP_FIELDS_PRIVATE_H

#include "server/http/http_private.h"

/* fields.c: all of them ESK_ERR_INVALID with a text that names the field. */
enum esk_err eski_field_text(const char *name, const struct esk_json_value *value,
                             struct esk_slice *text, struct esk_error *error);
/* An integer from low to high. */
enum esk_err eski_field_integer(const char *name, const struct esk_json_value *value, int64_t low,
                                int64_t high, int64_t *number, struct esk_error *error);
enum esk_err eski_field_missing(const char *name, struct esk_error *error);
enum esk_err eski_body_object(const struct esk_json_value *body, struct esk_error *error);
/* Parameters of a query, decoded; those that are not asked for are passed over. */
struct eski_parameter {
    const char *name;
    bool is_text;
    int64_t low, high; /* of a number */
    bool is_given;
    int64_t number;
    struct esk_slice text;
};
enum esk_err eski_query_read(struct eski_request *request, struct eski_parameter *parameters,
                             size_t count, struct esk_error *error);
/* A parameter of the path, checked as a name of a topic or group. */
enum esk_err eski_topic_parameter(struct eski_request *request, struct esk_error *error);
enum esk_err eski_group_parameter(struct eski_request *request, struct esk_error *error);
/* The arena's copy, unless the string stays anyway. NULL only over the arena's limit. */
enum esk_err eski_keep(struct eski_request *request, struct esk_slice *text,
                       struct esk_error *error);
enum esk_err eski_out_of_memory(struct esk_error *error);

/* topics.c */
void eski_write_config(struct esk_json_writer *writer, const struct esk_topic_config *config);

#endif
