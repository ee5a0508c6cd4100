/* SPDX-License-Identifier: Apache-2.0 */
/* Produce: the body to an array of records, and results back. Strings are copied once, from the
 * shard's parser into the request's arena; the batch builder copies them out of there. */
#include "server/http/http_private.h"

#include "wire/json/base64.h"

#include <inttypes.h>

/* Which record is read, for errors. */
struct place {
    struct eski_request *request;
    bool is_base64;
    uint32_t record;
    struct esk_error *error;
};

static enum esk_err wrong(const struct place *place, const char *field, const char *must,
                          enum esk_json_type type) {
    return esk_fail(place->error, ESK_ERR_INVALID, "records[%" PRIu32 "]%s must be %s, not %s",
                    place->record, field, must, esk_json_type_name(type));
}

/* A string, in base64 or not, that stays with the request. */
static enum esk_err read_bytes(const struct place *place, const char *field, struct esk_slice text,
                               struct esk_slice *bytes) {
    if (!place->is_base64) {
        *bytes = text;
        return eski_keep(place->request, bytes, place->error);
    }
    uint8_t *decoded = esk_arena_alloc(&place->request->arena, esk_base64_decoded_max(text.size));
    if (!decoded) {
        return eski_out_of_memory(place->error);
    }
    size_t size;
    if (!esk_base64_decode(text, decoded, &size)) {
        return esk_fail(place->error, ESK_ERR_INVALID, "records[%" PRIu32 "]%s is not base64",
                        place->record, field);
    }
    *bytes = esk_slice(decoded, size);
    return ESK_OK;
}

static enum esk_err read_nullable(const struct place *place, const char *field,
                                  const struct esk_json_value *value, struct esk_slice *bytes) {
    if (value->type == ESK_JSON_NULL) {
        *bytes = esk_slice(NULL, 0);
        return ESK_OK;
    }
    if (value->type != ESK_JSON_STRING) {
        return wrong(place, field, "a string or null", value->type);
    }
    return read_bytes(place, field, value->string, bytes);
}

/* --- headers --- */

/* How many headers an object stands for: an array is one for each of its elements. */
static size_t count_headers(const struct esk_json_value *object) {
    size_t count = 0;
    struct esk_json_iterator iterator = esk_json_each(object);
    struct esk_slice name;
    struct esk_json_value value;
    while (esk_json_next_field(&iterator, &name, &value)) {
        struct esk_json_iterator elements = esk_json_each(&value);
        struct esk_json_value element;
        if (value.type != ESK_JSON_ARRAY) {
            count++;
            continue;
        }
        while (esk_json_next_element(&elements, &element)) {
            count++;
        }
    }
    return count;
}

static enum esk_err add_header(const struct place *place, struct esk_produce_record *record,
                               struct esk_slice name, const struct esk_json_value *value) {
    struct esk_produce_header *headers = (struct esk_produce_header *)(uintptr_t)record->headers;
    struct esk_produce_header *header = &headers[record->header_count++];
    header->name = name;
    if (value->type != ESK_JSON_NULL && value->type != ESK_JSON_STRING) {
        return wrong(place, ".headers: each", "a string, null or an array of these", value->type);
    }
    return read_nullable(place, ".headers", value, &header->value);
}

static enum esk_err read_headers(const struct place *place, const struct esk_json_value *object,
                                 struct esk_produce_record *record) {
    if (object->type != ESK_JSON_OBJECT) {
        return wrong(place, ".headers", "an object", object->type);
    }
    size_t count = count_headers(object);
    if (!eski_request_take(place->request, count * sizeof *record->headers)) {
        return eski_out_of_memory(place->error);
    }
    record->headers = esk_arena_alloc_array(&place->request->arena, count, sizeof *record->headers);
    if (!record->headers) {
        return eski_out_of_memory(place->error);
    }
    struct esk_json_iterator iterator = esk_json_each(object);
    struct esk_slice name;
    struct esk_json_value value;
    while (esk_json_next_field(&iterator, &name, &value)) {
        enum esk_err err = eski_keep(place->request, &name, place->error);
        if (err == ESK_OK && value.type != ESK_JSON_ARRAY) {
            err = add_header(place, record, name, &value);
        }
        struct esk_json_iterator elements = esk_json_each(&value);
        struct esk_json_value element;
        while (err == ESK_OK && value.type == ESK_JSON_ARRAY &&
               esk_json_next_element(&elements, &element)) {
            err = add_header(place, record, name, &element);
        }
        if (err) {
            return err;
        }
    }
    return ESK_OK;
}

/* --- records --- */

static enum esk_err read_partition(const struct place *place, const struct esk_json_value *value,
                                   struct esk_produce_record *record) {
    int64_t number;
    if (!esk_json_int64(value, &number) || number < 0 || number > INT32_MAX) {
        return esk_fail(place->error, ESK_ERR_INVALID,
                        "records[%" PRIu32 "].partition must be an integer from 0 to %d",
                        place->record, INT32_MAX);
    }
    record->partition = (int32_t)number;
    return ESK_OK;
}

static enum esk_err read_sequence(const struct place *place, const struct esk_json_value *value,
                                  struct esk_produce_record *record) {
    if (!esk_json_int64(value, &record->sequence) || record->sequence < 0) {
        return esk_fail(place->error, ESK_ERR_INVALID,
                        "records[%" PRIu32 "].sequence must be an integer from 0 to %" PRId64,
                        place->record, INT64_MAX);
    }
    return ESK_OK;
}

static bool is_key(struct esk_slice key, const char *name, size_t size) {
    return key.size == size && memcmp(key.data, name, size) == 0;
}
#define IS_KEY(key, literal) is_key((key), (literal), sizeof(literal) - 1)

static enum esk_err read_record(const struct place *place, const struct esk_json_value *object,
                                struct esk_produce_record *record) {
    *record =
        (struct esk_produce_record){.partition = ESK_PARTITION_ANY, .sequence = ESK_SEQUENCE_NONE};
    if (object->type != ESK_JSON_OBJECT) {
        return wrong(place, "", "an object", object->type);
    }
    bool has_value = false;
    struct esk_json_iterator iterator = esk_json_each(object);
    struct esk_slice key;
    struct esk_json_value value;
    while (esk_json_next_field(&iterator, &key, &value)) {
        enum esk_err err = ESK_OK;
        if (IS_KEY(key, "value")) {
            has_value = true;
            err = read_nullable(place, ".value", &value, &record->value);
        } else if (value.type == ESK_JSON_NULL) {
            continue; /* what is optional is absent then */
        } else if (IS_KEY(key, "key")) {
            err = read_nullable(place, ".key", &value, &record->key);
        } else if (IS_KEY(key, "partition")) {
            err = read_partition(place, &value, record);
        } else if (IS_KEY(key, "headers")) {
            err = read_headers(place, &value, record);
        } else if (IS_KEY(key, "sequence")) {
            err = read_sequence(place, &value, record);
        }
        if (err) {
            return err;
        }
    }
    if (!has_value) {
        return esk_fail(place->error, ESK_ERR_INVALID, "records[%" PRIu32 "].value is required",
                        place->record);
    }
    return ESK_OK;
}

static enum esk_err read_records(struct place *place, const struct esk_json_value *array) {
    struct esk_produce *produce = &place->request->produce;
    if (array->type != ESK_JSON_ARRAY) {
        return esk_fail(place->error, ESK_ERR_INVALID, "records must be an array, not %s",
                        esk_json_type_name(array->type));
    }
    size_t count = 0;
    struct esk_json_value element;
    struct esk_json_iterator counter = esk_json_each(array);
    while (esk_json_next_element(&counter, &element)) {
        count++;
    }
    if (count > UINT32_MAX ||
        !eski_request_take(place->request, count * sizeof *produce->records)) {
        return eski_out_of_memory(place->error);
    }
    produce->records =
        esk_arena_alloc_array(&place->request->arena, count, sizeof *produce->records);
    if (!produce->records) {
        return eski_out_of_memory(place->error);
    }
    produce->record_count = (uint32_t)count;
    struct esk_json_iterator iterator = esk_json_each(array);
    for (place->record = 0; esk_json_next_element(&iterator, &element); place->record++) {
        enum esk_err err = read_record(place, &element, &produce->records[place->record]);
        if (err) {
            return err;
        }
    }
    return ESK_OK;
}

static enum esk_err read_encoding(const struct esk_json_value *value, bool *is_base64,
                                  struct esk_error *error) {
    struct esk_slice text;
    enum esk_err err = eski_field_text("encoding", value, &text, error);
    if (err) {
        return err;
    }
    *is_base64 = IS_KEY(text, "base64");
    if (!*is_base64 && !IS_KEY(text, "utf8")) {
        return esk_fail(error, ESK_ERR_INVALID, "encoding must be utf8 or base64");
    }
    return ESK_OK;
}

static enum esk_err read_producer_id(struct eski_request *request,
                                     const struct esk_json_value *value, struct esk_error *error) {
    struct esk_slice *id = &request->produce.producer_id;
    enum esk_err err = eski_field_text("producer_id", value, id, error);
    return err ? err : eski_keep(request, id, error);
}

/* An optional field; null is as good as absent. */
static bool find_given(const struct esk_json_value *body, const char *name,
                       struct esk_json_value *value) {
    return esk_json_find(body, name, value) && value->type != ESK_JSON_NULL;
}

enum esk_err eski_produce_read(struct eski_request *request, const struct esk_json_value *body,
                               struct esk_error *error) {
    struct place place = {.request = request, .error = error};
    struct esk_json_value value;
    enum esk_err err = eski_topic_parameter(request, error);
    if (err == ESK_OK) {
        err = eski_body_object(body, error);
    }
    if (err == ESK_OK && find_given(body, "producer_id", &value)) {
        err = read_producer_id(request, &value, error);
    }
    if (err == ESK_OK && find_given(body, "encoding", &value)) {
        err = read_encoding(&value, &place.is_base64, error);
    }
    if (err == ESK_OK && !esk_json_find(body, "records", &value)) {
        err = eski_field_missing("records", error);
    }
    return err ? err : read_records(&place, &value);
}

/* --- results --- */

static bool fill_results(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_produce *produce = &request->produce;
    struct esk_json_writer writer = esk_json_writer(out);
    if (request->position == 0) {
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "results");
        esk_json_open_array(&writer);
    }
    writer.comma = request->position > 0;
    while (request->position < produce->record_count) {
        if (out->size + 128 > ESKI_FILL_BYTES) {
            return false;
        }
        const struct esk_produce_record *record = &produce->records[request->position++];
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "partition");
        esk_json_write_uint64(&writer, record->written_partition);
        esk_json_write_key(&writer, "offset");
        esk_json_write_uint64(&writer, record->written_offset);
        if (record->duplicate) {
            esk_json_write_key(&writer, "duplicate");
            esk_json_write_bool(&writer, true);
        }
        esk_json_close_object(&writer);
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    return true;
}

static void produced(struct esk_produce *produce, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(produce, struct eski_request, produce);
    if (err) {
        request->response.retry_after_s = err == ESK_ERR_THROTTLED ? produce->retry_after_s : 0;
        eski_fail(request, err, &produce->error);
        return;
    }
    eski_respond_fill(request, fill_results);
}

void eski_produce_run(struct eski_request *request) {
    struct esk_produce *produce = &request->produce;
    produce->topic = request->parameters[0];
    produce->owner = request->caller.owner;
    produce->caller = &request->caller;
    struct esk_topic_view view;
    if (produce->record_count == 0 && produce->producer_id.data == NULL &&
        esk_broker_topic_find(request->shard->broker, produce->topic, &view)) {
        eski_respond_fill(request, fill_results); /* nothing to write */
        return;
    }
    produce->done = produced;
    esk_broker_produce(request->shard->broker, produce);
}
