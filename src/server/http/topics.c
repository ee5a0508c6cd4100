/* SPDX-License-Identifier: Apache-2.0 */
/* Topics: create, list, describe, config, delete. */
#include "server/http/http_private.h"

#include "model/limits.h"
#include "model/names.h"

#include <stdlib.h>

/* --- config --- */

static void write_limit(struct esk_json_writer *writer, int64_t value) {
    if (value == ESK_UNLIMITED) {
        esk_json_write_null(writer);
    } else {
        esk_json_write_int64(writer, value);
    }
}

void eski_write_config(struct esk_json_writer *writer, const struct esk_topic_config *config) {
    esk_json_open_object(writer);
    esk_json_write_key(writer, "retention_ms");
    write_limit(writer, config->retention_ms);
    esk_json_write_key(writer, "retention_bytes");
    write_limit(writer, config->retention_bytes);
    esk_json_write_key(writer, "cleanup_policy");
    esk_json_write_text(writer, esk_cleanup_policy_text(config->cleanup_policy));
    esk_json_write_key(writer, "segment_bytes");
    esk_json_write_uint64(writer, config->segment_bytes);
    esk_json_write_key(writer, "tombstone_retention_ms");
    esk_json_write_int64(writer, config->tombstone_retention_ms);
    esk_json_write_key(writer, "partitioner");
    esk_json_write_text(writer, esk_partitioner_name(config->partitioner));
    esk_json_close_object(writer);
}

/* null and -1 are unlimited. */
static enum esk_err read_limit(const char *name, const struct esk_json_value *value, int64_t *limit,
                               struct esk_error *error) {
    if (value->type == ESK_JSON_NULL) {
        *limit = ESK_UNLIMITED;
        return ESK_OK;
    }
    return eski_field_integer(name, value, ESK_UNLIMITED, INT64_MAX, limit, error);
}

static enum esk_err read_config_field(struct esk_slice key, const struct esk_json_value *value,
                                      struct esk_topic_config_change *change,
                                      struct esk_error *error) {
    struct esk_topic_config *values = &change->values;
    struct esk_slice text;
    int64_t number;
    enum esk_err err = ESK_OK;
    if (esk_slice_equal(key, esk_slice_text("retention_ms"))) {
        change->retention_ms = true;
        err = read_limit("retention_ms", value, &values->retention_ms, error);
    } else if (esk_slice_equal(key, esk_slice_text("retention_bytes"))) {
        change->retention_bytes = true;
        err = read_limit("retention_bytes", value, &values->retention_bytes, error);
    } else if (esk_slice_equal(key, esk_slice_text("cleanup_policy"))) {
        change->cleanup_policy = true;
        err = eski_field_text("cleanup_policy", value, &text, error);
        if (err == ESK_OK && !esk_cleanup_policy_parse(text, &values->cleanup_policy)) {
            err = esk_fail(error, ESK_ERR_INVALID,
                           "cleanup_policy must be delete, compact or compact,delete");
        }
    } else if (esk_slice_equal(key, esk_slice_text("segment_bytes"))) {
        change->segment_bytes = true;
        err = eski_field_integer("segment_bytes", value, ESK_SEGMENT_BYTES_MIN,
                                 ESK_SEGMENT_BYTES_MAX, &number, error);
        values->segment_bytes = err ? 0 : (uint32_t)number;
    } else if (esk_slice_equal(key, esk_slice_text("tombstone_retention_ms"))) {
        change->tombstone_retention_ms = true;
        err = eski_field_integer("tombstone_retention_ms", value, 0, INT64_MAX,
                                 &values->tombstone_retention_ms, error);
    } else if (esk_slice_equal(key, esk_slice_text("partitioner"))) {
        change->partitioner = true;
        err = eski_field_text("partitioner", value, &text, error);
        if (err == ESK_OK && !esk_partitioner_from_name(text, &values->partitioner)) {
            err = esk_fail(error, ESK_ERR_INVALID, "partitioner must be fnv1a or murmur2");
        }
    }
    return err;
}

static enum esk_err read_config(const struct esk_json_value *object,
                                struct esk_topic_config_change *change, struct esk_error *error) {
    struct esk_json_iterator iterator = esk_json_each(object);
    struct esk_slice key;
    struct esk_json_value value;
    while (esk_json_next_field(&iterator, &key, &value)) {
        enum esk_err err = read_config_field(key, &value, change, error);
        if (err) {
            return err;
        }
    }
    return ESK_OK;
}

/* --- create --- */

enum esk_err eski_topic_create_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    struct esk_topic_operation *operation = &request->topic.operation;
    struct esk_json_value value;
    int64_t partitions = 1;
    enum esk_err err = eski_body_object(body, error);
    if (err == ESK_OK && !esk_json_find(body, "name", &value)) {
        err = eski_field_missing("name", error);
    }
    if (err == ESK_OK) {
        err = eski_field_text("name", &value, &operation->name, error);
    }
    if (err == ESK_OK) {
        err = esk_topic_name_check(operation->name, error);
    }
    if (err == ESK_OK && esk_json_find(body, "partitions", &value)) {
        err = eski_field_integer("partitions", &value, 1, ESK_TOPIC_PARTITIONS_MAX, &partitions,
                                 error);
    }
    if (err == ESK_OK && esk_json_find(body, "config", &value)) {
        if (value.type != ESK_JSON_OBJECT) {
            err = esk_fail(error, ESK_ERR_INVALID, "config must be an object, not %s",
                           esk_json_type_name(value.type));
        } else {
            err = read_config(&value, &request->topic.change, error);
        }
    }
    operation->partition_count = (uint32_t)partitions;
    return err ? err : eski_keep(request, &operation->name, error);
}

static struct eski_request *request_of(struct esk_topic_operation *operation) {
    return ESK_CONTAINER(operation, struct eski_request, topic.operation);
}

static void created(struct esk_topic_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "name");
    esk_json_write_string(&writer, operation->name);
    esk_json_write_key(&writer, "partitions");
    esk_json_write_uint64(&writer, operation->partition_count);
    esk_json_write_key(&writer, "config");
    eski_write_config(&writer, &operation->resolved);
    esk_json_close_object(&writer);
    eski_respond(request, 201);
}

void eski_topic_create_run(struct eski_request *request) {
    request->target = request->topic.operation.name;
    request->topic.operation.config = &request->topic.change;
    request->topic.operation.done = created;
    esk_broker_topic_create(request->shard->broker, &request->topic.operation);
}

/* --- list --- */

enum esk_err eski_topic_list_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

struct list {
    struct esk_json_writer writer;
    const struct esk_caller *caller;
};

static void list_topic(void *context, const struct esk_topic_view *view) {
    struct list *list = context;
    struct esk_json_writer *writer = &list->writer;
    if (!esk_caller_may(list->caller, ESK_ACTION_READ, view->name)) {
        return;
    }
    esk_json_open_object(writer);
    esk_json_write_key(writer, "name");
    esk_json_write_string(writer, view->name);
    esk_json_write_key(writer, "partitions");
    esk_json_write_uint64(writer, view->partition_count);
    esk_json_close_object(writer);
}

void eski_topic_list_run(struct eski_request *request) {
    struct list list = {eski_respond_begin(request), &request->caller};
    esk_json_open_object(&list.writer);
    esk_json_write_key(&list.writer, "topics");
    esk_json_open_array(&list.writer);
    esk_broker_topic_each(request->shard->broker, list_topic, &list);
    esk_json_close_array(&list.writer);
    esk_json_close_object(&list.writer);
    eski_respond(request, 200);
}

/* --- describe --- */

enum esk_err eski_topic_describe_read(struct eski_request *request,
                                      const struct esk_json_value *body, struct esk_error *error) {
    (void)body;
    return eski_topic_parameter(request, error);
}

static void free_description(struct eski_request *request) {
    free(request->description.partitions);
}

static void write_partition(struct esk_json_writer *writer, const struct esk_partition_view *view) {
    esk_json_open_object(writer);
    esk_json_write_key(writer, "partition");
    esk_json_write_uint64(writer, view->partition);
    esk_json_write_key(writer, "start_offset");
    esk_json_write_uint64(writer, view->start_offset);
    esk_json_write_key(writer, "high_watermark");
    esk_json_write_uint64(writer, view->high_watermark);
    esk_json_write_key(writer, "size_bytes");
    esk_json_write_uint64(writer, view->size_bytes);
    esk_json_write_key(writer, "segments");
    esk_json_write_uint64(writer, view->segments);
    esk_json_close_object(writer);
}

/* A topic may have 10,000 partitions: a piece of the answer holds some of them. */
static bool fill_description(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_topic_description *description = &request->description;
    struct esk_json_writer writer = esk_json_writer(out);
    if (request->position == 0) {
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "name");
        esk_json_write_string(&writer, description->name);
        esk_json_write_key(&writer, "partitions");
        esk_json_open_array(&writer);
    }
    writer.comma = request->position > 0;
    while (request->position < description->partition_count) {
        if (out->size + 256 > ESKI_FILL_BYTES) {
            return false;
        }
        write_partition(&writer, &description->partitions[request->position++]);
    }
    esk_json_close_array(&writer);
    esk_json_write_key(&writer, "config");
    eski_write_config(&writer, &description->config);
    esk_json_close_object(&writer);
    return true;
}

static void described(struct esk_topic_description *description, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(description, struct eski_request, description);
    if (err) {
        eski_fail(request, err, &description->error);
        return;
    }
    request->clean = free_description;
    eski_respond_fill(request, fill_description);
}

void eski_topic_describe_run(struct eski_request *request) {
    request->description.name = request->parameters[0];
    request->description.done = described;
    esk_broker_topic_describe(request->shard->broker, &request->description);
}

/* --- config --- */

enum esk_err eski_config_get_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)body;
    return eski_topic_parameter(request, error);
}

static void respond_config(struct eski_request *request, const struct esk_topic_config *config) {
    struct esk_json_writer writer = eski_respond_begin(request);
    eski_write_config(&writer, config);
    eski_respond(request, 200);
}

void eski_config_get_run(struct eski_request *request) {
    struct esk_topic_view view;
    struct esk_slice name = request->parameters[0];
    if (!esk_broker_topic_find(request->shard->broker, name, &view)) {
        eski_fail_text(request, ESK_ERR_NOT_FOUND, "topic '%.*s' does not exist", (int)name.size,
                       (const char *)name.data);
        return;
    }
    respond_config(request, &view.config);
}

enum esk_err eski_config_put_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    enum esk_err err = eski_topic_parameter(request, error);
    if (err == ESK_OK) {
        err = eski_body_object(body, error);
    }
    return err ? err : read_config(body, &request->topic.change, error);
}

static void configured(struct esk_topic_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    respond_config(request, &operation->resolved);
}

void eski_config_put_run(struct eski_request *request) {
    request->topic.operation.name = request->parameters[0];
    request->topic.operation.config = &request->topic.change;
    request->topic.operation.done = configured;
    esk_broker_topic_configure(request->shard->broker, &request->topic.operation);
}

/* --- delete --- */

enum esk_err eski_topic_delete_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    (void)body;
    return eski_topic_parameter(request, error);
}

static void deleted(struct esk_topic_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    eski_respond_empty(request);
}

void eski_topic_delete_run(struct eski_request *request) {
    request->topic.operation.name = request->parameters[0];
    request->topic.operation.done = deleted;
    esk_broker_topic_delete(request->shard->broker, &request->topic.operation);
}
