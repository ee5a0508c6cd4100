/* SPDX-License-Identifier: Apache-2.0 */
/* The schema registry in Esker's own form; confluent.c has the routes of Confluent's clients. A
 * schema is shown in one way by both, as `id`, `subject`, `version`, `type`, `schemaType` and the
 * text as it was sent. */
#include "server/http/schemas_private.h"

#include "model/names.h"
#include "wire/http/target.h"

#define LISTED_PER_PIECE 2000 /* looked at, whether shown or not */

static struct eski_request *request_of(struct esk_schema_operation *operation) {
    return ESK_CONTAINER(operation, struct eski_request, schema.operation);
}

enum esk_err eski_subject_parameter(struct eski_request *request, struct esk_error *error) {
    struct esk_slice *subject = &request->parameters[0];
    if (!esk_http_percent_decode(*subject, &request->arena, subject)) {
        return esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the path");
    }
    request->schema.operation.subject = *subject;
    return esk_subject_check(*subject, error);
}

/* --- register --- */

enum esk_err eski_schema_create_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    struct esk_schema_operation *operation = &request->schema.operation;
    static const char *const names[] = {"subject", "type", "schema"};
    struct esk_slice type;
    struct esk_slice *const texts[] = {&operation->subject, &type, &operation->text};
    struct esk_json_value value;
    enum esk_err err = eski_body_object(body, error);
    for (size_t i = 0; err == ESK_OK && i < 3; i++) {
        err = esk_json_find(body, names[i], &value)
                  ? eski_field_text(names[i], &value, texts[i], error)
                  : eski_field_missing(names[i], error);
    }
    if (err == ESK_OK) {
        err = esk_subject_check(operation->subject, error);
    }
    if (err == ESK_OK && !esk_schema_type_from_name(type, &operation->type)) {
        err = esk_fail(error, ESK_ERR_INVALID, "type must be json_schema, avro or protobuf");
    }
    if (err == ESK_OK) {
        err = eski_keep(request, &operation->subject, error);
    }
    return err ? err : eski_keep(request, &operation->text, error);
}

static void registered(struct esk_schema_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        /* Incompatible is a fault of what was sent, here. */
        eski_fail(request, err == ESK_ERR_CONFLICT ? ESK_ERR_INVALID : err, &operation->error);
        return;
    }
    eski_respond_id(request);
}

void eski_schema_create_run(struct eski_request *request) {
    request->target = request->schema.operation.subject;
    request->schema.operation.done = registered;
    esk_broker_schema_register(request->shard->broker, &request->schema.operation);
}

void eski_respond_id(struct eski_request *request) {
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "id");
    esk_json_write_uint64(&writer, request->schema.operation.id);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

/* --- list --- */

enum esk_err eski_schema_list_read(struct eski_request *request, const struct esk_json_value *body,
                                   struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static void write_labels(struct esk_json_writer *writer, const struct esk_schema_view *view) {
    esk_json_write_key(writer, "id");
    esk_json_write_uint64(writer, view->id);
    esk_json_write_key(writer, "subject");
    esk_json_write_string(writer, view->subject);
    esk_json_write_key(writer, "version");
    esk_json_write_uint64(writer, view->version);
    esk_json_write_key(writer, "type");
    esk_json_write_text(writer, esk_schema_type_name(view->type));
}

static bool fill_list(struct eski_request *request, struct esk_buffer *out) {
    struct esk_json_writer writer = esk_json_writer(out);
    uint32_t count = esk_broker_schema_count(request->shard->broker);
    if (request->position == 0 && !request->schema.has_begun) {
        request->schema.has_begun = true;
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "schemas");
        esk_json_open_array(&writer);
    }
    writer.comma = request->schema.shown > 0;
    for (unsigned looked = 0; request->position < count; looked++) {
        struct esk_schema_view view;
        if (looked == LISTED_PER_PIECE || out->size + 512 > ESKI_FILL_BYTES) {
            return false;
        }
        request->position++;
        if (!esk_broker_schema_find(request->shard->broker, (uint32_t)request->position, &view) ||
            !esk_caller_may(&request->caller, ESK_ACTION_READ, view.subject)) {
            continue;
        }
        request->schema.shown++;
        esk_json_open_object(&writer);
        write_labels(&writer, &view);
        esk_json_close_object(&writer);
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    return true;
}

void eski_schema_list_run(struct eski_request *request) {
    eski_respond_fill(request, fill_list);
}

/* --- one --- */

/* The text may be large: a piece of the answer holds some of it. */
static bool fill_schema(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_schema_view *view = &request->schema.view;
    struct esk_json_writer writer = esk_json_writer(out);
    if (!request->schema.has_begun) {
        request->schema.has_begun = true;
        esk_json_open_object(&writer);
        write_labels(&writer, view);
        esk_json_write_key(&writer, "schemaType");
        esk_json_write_text(&writer, esk_schema_type_label(view->type));
        esk_json_write_key(&writer, "schema");
        esk_buffer_u8(out, '"');
    }
    size_t left = view->text.size - request->position;
    uint8_t *start = esk_buffer_grow(out, ESKI_FILL_BYTES);
    uint8_t *at = start;
    request->position += esk_json_escape(esk_slice(view->text.data + request->position, left), &at,
                                         start + ESKI_FILL_BYTES - 1024);
    out->size += (size_t)(at - start);
    if (request->position < view->text.size) {
        return false;
    }
    esk_buffer_append_text(out, "\"}");
    return true;
}

void eski_respond_schema(struct eski_request *request) {
    eski_respond_fill(request, fill_schema);
}

/* An id or version: digits only. */
bool eski_schema_number(struct esk_slice text, uint32_t *number) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < '0' || text.data[i] > '9' || value > UINT32_MAX) {
            return false;
        }
        value = value * 10 + (uint64_t)(text.data[i] - '0');
    }
    *number = (uint32_t)value;
    return text.size > 0 && value > 0 && value <= INT32_MAX;
}

enum esk_err eski_schema_get_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)body;
    return eski_schema_number(request->parameters[0], &request->schema.number)
               ? ESK_OK
               : esk_fail(error, ESK_ERR_INVALID, "id must be an integer from 1 to %d", INT32_MAX);
}

void eski_schema_get_run(struct eski_request *request) {
    struct esk_schema_view *view = &request->schema.view;
    /* An id says nothing of its subject: one that may not be read is like one that is not there. */
    if (esk_broker_schema_find(request->shard->broker, request->schema.number, view) &&
        esk_caller_may(&request->caller, ESK_ACTION_READ, view->subject)) {
        eski_respond_schema(request);
    } else {
        eski_registry_fail(request, 404, 40403, "schema %u does not exist", request->schema.number);
    }
}
