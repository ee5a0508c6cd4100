/* SPDX-License-Identifier: Apache-2.0 */
/* Idempotent producers: list and forget. */
#include "server/http/http_private.h"

#include "model/names.h"
#include "wire/http/target.h"

#include <inttypes.h>

/* --- list --- */

enum esk_err eski_producer_list_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

/* The beginning of a producer, up to its first partition. */
static void write_producer(struct esk_json_writer *writer, const struct esk_producer_entry *entry) {
    char key_id[ESK_KEY_ID_BYTES];
    esk_json_open_object(writer);
    esk_json_write_key(writer, "producer_id");
    esk_json_write_text(writer, entry->producer_id);
    esk_json_write_key(writer, "numeric_id");
    esk_json_write_uint64(writer, entry->numeric_id);
    esk_json_write_key(writer, "key_id");
    if (entry->owner != 0) {
        esk_key_id_format(entry->owner, key_id);
        esk_json_write_text(writer, key_id);
    } else {
        esk_json_write_null(writer);
    }
    esk_json_write_key(writer, "last_used_ms");
    esk_json_write_int64(writer, entry->last_used_ms);
    esk_json_write_key(writer, "partitions");
    esk_json_open_array(writer);
}

static void write_partition(struct esk_json_writer *writer,
                            const struct esk_producer_partition *partition) {
    esk_json_open_object(writer);
    esk_json_write_key(writer, "topic");
    esk_json_write_text(writer, partition->topic);
    esk_json_write_key(writer, "partition");
    esk_json_write_uint64(writer, partition->partition);
    esk_json_write_key(writer, "last_sequence");
    esk_json_write_uint64(writer, partition->last_sequence);
    esk_json_close_object(writer);
}

/* In pieces of some partitions; the next one is request->position and the list's partition. */
static bool fill_producers(struct eski_request *request, struct esk_buffer *out) {
    struct esk_producer_list *list = &request->producer_list;
    size_t *at = &list->partition;
    struct esk_json_writer writer = esk_json_writer(out);
    if (request->position == 0 && *at == 0) {
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "producers");
        esk_json_open_array(&writer);
    }
    writer.comma = request->position > 0 && *at == 0;
    for (; request->position < list->count; request->position++) {
        const struct esk_producer_entry *entry = &list->producers[request->position];
        if (out->size + 2048 > ESKI_FILL_BYTES) { /* 200 bytes of a name, escaped, and the rest */
            return false;
        }
        if (*at == 0) {
            write_producer(&writer, entry);
        } else {
            writer.comma = true;
        }
        while (*at < entry->partition_count) {
            if (*at > 0 && out->size + 512 > ESKI_FILL_BYTES) {
                return false;
            }
            write_partition(&writer, &entry->partitions[(*at)++]);
        }
        *at = 0;
        esk_json_close_array(&writer);
        esk_json_close_object(&writer);
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    return true;
}

static void clean_list(struct eski_request *request) {
    esk_producer_list_fini(&request->producer_list);
}

static void listed(struct esk_producer_list *list, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(list, struct eski_request, producer_list);
    if (err) {
        eski_fail(request, err, &list->error);
        return;
    }
    request->clean = clean_list;
    eski_respond_fill(request, fill_producers);
}

void eski_producer_list_run(struct eski_request *request) {
    request->producer_list.done = listed;
    esk_broker_producer_list(request->shard->broker, &request->producer_list);
}

/* --- forget --- */

enum esk_err eski_producer_forget_read(struct eski_request *request,
                                       const struct esk_json_value *body, struct esk_error *error) {
    (void)body;
    struct esk_slice *id = &request->parameters[0];
    if (!esk_http_percent_decode(*id, &request->arena, id)) {
        return esk_fail(error, ESK_ERR_INVALID, "the path has a malformed percent sign");
    }
    return esk_id_check(*id, "producer_id", error);
}

static void forgotten(struct esk_producer_removal *removal, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(removal, struct eski_request, producer_removal);
    if (err) {
        eski_fail(request, err, &removal->error);
        return;
    }
    eski_respond_empty(request);
}

void eski_producer_forget_run(struct eski_request *request) {
    request->target = request->parameters[0];
    request->producer_removal.producer_id = request->parameters[0];
    request->producer_removal.done = forgotten;
    esk_broker_producer_remove(request->shard->broker, &request->producer_removal);
}
