/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the fields of a body and the parameters of a path or query. Pure: any thread. */
#include "server/http/http_private.h"

#include "model/names.h"
#include "wire/http/target.h"

#include <inttypes.h>

enum esk_err eski_out_of_memory(struct esk_error *error) {
    return esk_fail(error, ESK_ERR_UNAVAILABLE,
                    "the broker's memory for requests is in use; try again");
}

enum esk_err eski_body_object(const struct esk_json_value *body, struct esk_error *error) {
    return body->type == ESK_JSON_OBJECT
               ? ESK_OK
               : esk_fail(error, ESK_ERR_INVALID, "the body must be an object, not %s",
                          esk_json_type_name(body->type));
}

enum esk_err eski_field_missing(const char *name, struct esk_error *error) {
    return esk_fail(error, ESK_ERR_INVALID, "%s is required", name);
}

enum esk_err eski_field_text(const char *name, const struct esk_json_value *value,
                             struct esk_slice *text, struct esk_error *error) {
    if (value->type != ESK_JSON_STRING) {
        return esk_fail(error, ESK_ERR_INVALID, "%s must be a string, not %s", name,
                        esk_json_type_name(value->type));
    }
    *text = value->string;
    return ESK_OK;
}

static enum esk_err out_of_range(const char *name, int64_t low, int64_t high,
                                 struct esk_error *error) {
    return esk_fail(error, ESK_ERR_INVALID, "%s must be an integer from %" PRId64 " to %" PRId64,
                    name, low, high);
}

enum esk_err eski_field_integer(const char *name, const struct esk_json_value *value, int64_t low,
                                int64_t high, int64_t *number, struct esk_error *error) {
    if (value->type != ESK_JSON_INT64 && value->type != ESK_JSON_UINT64 &&
        value->type != ESK_JSON_REAL) {
        return esk_fail(error, ESK_ERR_INVALID, "%s must be an integer, not %s", name,
                        esk_json_type_name(value->type));
    }
    if (!esk_json_int64(value, number) || *number < low || *number > high) {
        return out_of_range(name, low, high, error);
    }
    return ESK_OK;
}

/* --- queries --- */

static bool read_number(struct esk_slice text, int64_t *number) {
    bool is_negative = text.size > 0 && *text.data == '-';
    size_t i = is_negative;
    uint64_t value = 0;
    if (i == text.size) {
        return false;
    }
    for (; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(text.data[i] - '0'), &value) ||
            value > INT64_MAX) {
            return false;
        }
    }
    *number = is_negative ? -(int64_t)value : (int64_t)value;
    return true;
}

static enum esk_err take(struct eski_parameter *parameter, struct esk_slice value,
                         struct esk_error *error) {
    if (parameter->is_given) {
        return esk_fail(error, ESK_ERR_INVALID, "%s is given twice", parameter->name);
    }
    parameter->is_given = true;
    if (parameter->is_text) {
        parameter->text = value;
        return ESK_OK;
    }
    if (!read_number(value, &parameter->number) || parameter->number < parameter->low ||
        parameter->number > parameter->high) {
        return out_of_range(parameter->name, parameter->low, parameter->high, error);
    }
    return ESK_OK;
}

enum esk_err eski_query_read(struct eski_request *request, struct eski_parameter *parameters,
                             size_t count, struct esk_error *error) {
    struct esk_slice query = request->query;
    struct esk_slice name;
    struct esk_slice value;
    while (esk_http_query_next(&query, &name, &value)) {
        if (!esk_http_query_decode(name, &request->arena, &name) ||
            !esk_http_query_decode(value, &request->arena, &value)) {
            return esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the query");
        }
        for (size_t i = 0; i < count; i++) {
            if (name.size == strlen(parameters[i].name) &&
                memcmp(name.data, parameters[i].name, name.size) == 0) {
                enum esk_err err = take(&parameters[i], value, error);
                if (err) {
                    return err;
                }
                break;
            }
        }
    }
    return ESK_OK;
}

/* --- paths --- */

static enum esk_err decode_parameter(struct eski_request *request, struct esk_error *error) {
    struct esk_slice *parameter = &request->parameters[0];
    if (!esk_http_percent_decode(*parameter, &request->arena, parameter)) {
        return esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the path");
    }
    return ESK_OK;
}

enum esk_err eski_topic_parameter(struct eski_request *request, struct esk_error *error) {
    enum esk_err err = decode_parameter(request, error);
    return err ? err : esk_topic_name_check(request->parameters[0], error);
}

enum esk_err eski_group_parameter(struct eski_request *request, struct esk_error *error) {
    enum esk_err err = decode_parameter(request, error);
    return err ? err : esk_id_check(request->parameters[0], "group", error);
}

enum esk_err eski_keep(struct eski_request *request, struct esk_slice *text,
                       struct esk_error *error) {
    if (request->strings_stay) {
        return ESK_OK;
    }
    uint8_t *copy = esk_arena_alloc(&request->arena, text->size);
    if (!copy) {
        return eski_out_of_memory(error);
    }
    memcpy(copy, text->data, text->size);
    *text = esk_slice(copy, text->size);
    return ESK_OK;
}
