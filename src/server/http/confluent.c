/* SPDX-License-Identifier: Apache-2.0 */
/* The routes of Confluent's schema registry that its clients call, over the same subjects. Their
 * errors carry `error_code` and `message` besides `error`. A schema that a subject has already, in
 * whatever version, is that version: programs that were built with an older schema go on. */
#include "server/http/schemas_private.h"

#include "wire/http/target.h"

#include <stdarg.h>
#include <stdio.h>

#define CODE_SUBJECT 40401
#define CODE_VERSION 40402
#define CODE_SCHEMA 40403
#define CODE_INVALID_SCHEMA 42201
#define CODE_INVALID_VERSION 42202

/* --- errors --- */

bool eski_registry_speaks(const struct eski_route *route) {
    switch (route->operation) {
    case ESKI_OPERATION_SCHEMA_BY_ID:
    case ESKI_OPERATION_SUBJECT_LIST:
    case ESKI_OPERATION_SUBJECT_VERSIONS:
    case ESKI_OPERATION_SUBJECT_VERSION:
    case ESKI_OPERATION_SUBJECT_REGISTER:
    case ESKI_OPERATION_SUBJECT_LOOK_UP:
    case ESKI_OPERATION_COMPATIBILITY:
    case ESKI_OPERATION_REGISTRY_CONFIG:
    case ESKI_OPERATION_SUBJECT_CONFIG:
        return true;
    default:
        return false;
    }
}

void eski_registry_write_error(struct esk_json_writer *writer, int code, const char *text) {
    esk_json_write_key(writer, "error_code");
    esk_json_write_int64(writer, code);
    esk_json_write_key(writer, "message");
    esk_json_write_text(writer, text);
}

void eski_registry_fail(struct eski_request *request, int status, int code, const char *format,
                        ...) {
    char text[ESK_ERROR_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "error");
    esk_json_write_text(&writer, text);
    if (eski_registry_speaks(request->route)) {
        eski_registry_write_error(&writer, code, text);
    }
    esk_json_close_object(&writer);
    eski_respond(request, status);
}

static void unknown_subject(struct eski_request *request) {
    struct esk_slice name = request->schema.operation.subject;
    eski_registry_fail(request, 404, CODE_SUBJECT, "subject '%.*s' does not exist", (int)name.size,
                       (const char *)name.data);
}

static void fail_operation(struct esk_schema_operation *operation, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(operation, struct eski_request, schema.operation);
    const char *text = operation->error.text;
    if (err == ESK_ERR_CONFLICT) {
        eski_registry_fail(request, 409, 409, "%s", text);
    } else if (err == ESK_ERR_INVALID) {
        eski_registry_fail(request, 422, CODE_INVALID_SCHEMA, "%s", text);
    } else if (err == ESK_ERR_NOT_FOUND) {
        bool is_known =
            esk_broker_schema_version_count(request->shard->broker, operation->subject) > 0;
        int code =
            request->route->operation == ESKI_OPERATION_COMPATIBILITY ? CODE_VERSION : CODE_SCHEMA;
        if (!is_known) {
            unknown_subject(request);
        } else {
            eski_registry_fail(request, 404, code, "%s", text);
        }
    } else {
        eski_fail(request, err, &operation->error);
    }
}

/* --- bodies --- */

/* {"schema":"...","schemaType":"AVRO","references":[]}; imports of a .proto file need not be
 * known. */
static enum esk_err read_body(struct eski_request *request, const struct esk_json_value *body,
                              struct esk_error *error) {
    struct esk_schema_operation *operation = &request->schema.operation;
    struct esk_json_value value;
    struct esk_slice label;
    operation->type = ESK_SCHEMA_AVRO;
    enum esk_err err = eski_subject_parameter(request, error);
    if (err == ESK_OK) {
        err = eski_body_object(body, error);
    }
    if (err == ESK_OK) {
        err = esk_json_find(body, "schema", &value)
                  ? eski_field_text("schema", &value, &operation->text, error)
                  : eski_field_missing("schema", error);
    }
    if (err == ESK_OK && esk_json_find(body, "schemaType", &value) && value.type != ESK_JSON_NULL) {
        err = eski_field_text("schemaType", &value, &label, error);
        if (err == ESK_OK && !esk_schema_type_from_label(label, &operation->type)) {
            err = esk_fail(error, ESK_ERR_INVALID, "schemaType must be AVRO, JSON or PROTOBUF");
        }
    }
    if (err == ESK_OK && operation->type != ESK_SCHEMA_PROTOBUF &&
        esk_json_find(body, "references", &value) && esk_json_count(&value) > 0) {
        err = esk_fail(error, ESK_ERR_INVALID, "references to other subjects are not supported");
    }
    return err ? err : eski_keep(request, &operation->text, error);
}

/* --- register and look up --- */

enum esk_err eski_subject_register_read(struct eski_request *request,
                                        const struct esk_json_value *body,
                                        struct esk_error *error) {
    return read_body(request, body, error);
}

static void registered(struct esk_schema_operation *operation, enum esk_err err) {
    if (err) {
        fail_operation(operation, err);
        return;
    }
    eski_respond_id(ESK_CONTAINER(operation, struct eski_request, schema.operation));
}

void eski_subject_register_run(struct eski_request *request) {
    request->schema.operation.any_version = true;
    request->schema.operation.done = registered;
    esk_broker_schema_register(request->shard->broker, &request->schema.operation);
}

enum esk_err eski_subject_look_up_read(struct eski_request *request,
                                       const struct esk_json_value *body, struct esk_error *error) {
    return read_body(request, body, error);
}

static void looked_up(struct esk_schema_operation *operation, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(operation, struct eski_request, schema.operation);
    if (err) {
        fail_operation(operation, err);
        return;
    }
    (void)esk_broker_schema_find(request->shard->broker, operation->id, &request->schema.view);
    eski_respond_schema(request);
}

void eski_subject_look_up_run(struct eski_request *request) {
    struct esk_broker_shard *broker = request->shard->broker;
    if (esk_broker_schema_version_count(broker, request->schema.operation.subject) == 0) {
        unknown_subject(request);
        return;
    }
    request->schema.operation.done = looked_up;
    esk_broker_schema_look_up(broker, &request->schema.operation);
}

/* --- compatibility --- */

/* "latest" or "-1" is 0. */
static enum esk_err version_parameter(struct eski_request *request, struct esk_error *error) {
    struct esk_slice text;
    if (!esk_http_percent_decode(request->parameters[1], &request->arena, &text)) {
        return esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the path");
    }
    if (esk_slice_equal(text, esk_slice_text("latest")) ||
        esk_slice_equal(text, esk_slice_text("-1"))) {
        request->schema.number = 0;
        return ESK_OK;
    }
    return eski_schema_number(text, &request->schema.number)
               ? ESK_OK
               : esk_fail(error, ESK_ERR_INVALID, "version must be latest, or from 1 to %d",
                          INT32_MAX);
}

enum esk_err eski_compatibility_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    enum esk_err err = read_body(request, body, error);
    return err ? err : version_parameter(request, error);
}

static void checked(struct esk_schema_operation *operation, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(operation, struct eski_request, schema.operation);
    if (err && err != ESK_ERR_CONFLICT) {
        fail_operation(operation, err);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "is_compatible");
    esk_json_write_bool(&writer, err == ESK_OK);
    if (err) {
        esk_json_write_key(&writer, "messages");
        esk_json_open_array(&writer);
        esk_json_write_text(&writer, operation->error.text);
        esk_json_close_array(&writer);
    }
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_compatibility_run(struct eski_request *request) {
    request->schema.operation.against = request->schema.number;
    request->schema.operation.done = checked;
    esk_broker_schema_check(request->shard->broker, &request->schema.operation);
}

/* --- reads --- */

enum esk_err eski_schema_by_id_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    return eski_schema_get_read(request, body, error);
}

void eski_schema_by_id_run(struct eski_request *request) {
    eski_schema_get_run(request);
}

enum esk_err eski_schema_types_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

void eski_schema_types_run(struct eski_request *request) {
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_array(&writer);
    esk_json_write_text(&writer, "JSON");
    esk_json_write_text(&writer, "PROTOBUF");
    esk_json_write_text(&writer, "AVRO");
    esk_json_close_array(&writer);
    eski_respond(request, 200);
}

enum esk_err eski_subject_list_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

struct listing {
    struct esk_json_writer writer;
    const struct esk_caller *caller;
};

static void list_subject(void *context, struct esk_slice subject) {
    struct listing *listing = context;
    if (esk_caller_may(listing->caller, ESK_ACTION_READ, subject)) {
        esk_json_write_string(&listing->writer, subject);
    }
}

void eski_subject_list_run(struct eski_request *request) {
    struct listing listing = {eski_respond_begin(request), &request->caller};
    esk_json_open_array(&listing.writer);
    esk_broker_subject_each(request->shard->broker, list_subject, &listing);
    esk_json_close_array(&listing.writer);
    eski_respond(request, 200);
}

enum esk_err eski_subject_versions_read(struct eski_request *request,
                                        const struct esk_json_value *body,
                                        struct esk_error *error) {
    (void)body;
    return eski_subject_parameter(request, error);
}

void eski_subject_versions_run(struct eski_request *request) {
    uint32_t count =
        esk_broker_schema_version_count(request->shard->broker, request->schema.operation.subject);
    if (count == 0) {
        unknown_subject(request);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_array(&writer);
    for (uint32_t version = 1; version <= count; version++) {
        esk_json_write_uint64(&writer, version);
    }
    esk_json_close_array(&writer);
    eski_respond(request, 200);
}

enum esk_err eski_subject_version_read(struct eski_request *request,
                                       const struct esk_json_value *body, struct esk_error *error) {
    (void)body;
    enum esk_err err = eski_subject_parameter(request, error);
    return err ? err : version_parameter(request, error);
}

void eski_subject_version_run(struct eski_request *request) {
    struct esk_broker_shard *broker = request->shard->broker;
    struct esk_slice subject = request->schema.operation.subject;
    if (esk_broker_schema_version(broker, subject, request->schema.number, &request->schema.view)) {
        eski_respond_schema(request);
    } else if (esk_broker_schema_version_count(broker, subject) == 0) {
        unknown_subject(request);
    } else {
        eski_registry_fail(request, 404, CODE_VERSION, "subject '%.*s' has no version %u",
                           (int)subject.size, (const char *)subject.data, request->schema.number);
    }
}

/* --- config --- */

enum esk_err eski_registry_config_read(struct eski_request *request,
                                       const struct esk_json_value *body, struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

void eski_registry_config_run(struct eski_request *request) {
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "compatibilityLevel");
    esk_json_write_text(&writer, "BACKWARD");
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

enum esk_err eski_subject_config_read(struct eski_request *request,
                                      const struct esk_json_value *body, struct esk_error *error) {
    (void)body;
    return eski_subject_parameter(request, error);
}

void eski_subject_config_run(struct eski_request *request) {
    eski_registry_config_run(request);
}
