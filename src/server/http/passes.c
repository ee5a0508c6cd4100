/* SPDX-License-Identifier: Apache-2.0 */
/* Cleaner passes on demand. */
#include "server/http/http_private.h"

static void write_number(struct esk_json_writer *writer, const char *name, uint64_t number) {
    esk_json_write_key(writer, name);
    esk_json_write_uint64(writer, number);
}

/* --- retention --- */

enum esk_err eski_run_retention_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static void retained(struct esk_cleaning *cleaning) {
    struct eski_request *request = ESK_CONTAINER(cleaning, struct eski_request, cleaning);
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    write_number(&writer, "segments_deleted", cleaning->segments);
    write_number(&writer, "bytes_freed", cleaning->bytes_freed);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_run_retention_run(struct eski_request *request) {
    request->cleaning.done = retained;
    esk_broker_run_retention(request->shard->broker, &request->cleaning);
}

/* --- compaction --- */

enum esk_err eski_run_compaction_read(struct eski_request *request,
                                      const struct esk_json_value *body, struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static void compacted(struct esk_cleaning *cleaning) {
    struct eski_request *request = ESK_CONTAINER(cleaning, struct eski_request, cleaning);
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    write_number(&writer, "segments_compacted", cleaning->segments);
    write_number(&writer, "records_removed", cleaning->records_removed);
    write_number(&writer, "bytes_freed", cleaning->bytes_freed);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_run_compaction_run(struct eski_request *request) {
    request->cleaning.done = compacted;
    esk_broker_run_compaction(request->shard->broker, &request->cleaning);
}
