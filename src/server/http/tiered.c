/* SPDX-License-Identifier: Apache-2.0 */
/* GET /admin/tiered/:topic/:partition: segments in cold storage. There is none yet, so the list is
 * empty; whether the partition exists is told. */
#include "server/http/http_private.h"

#include "wire/http/target.h"

#include <inttypes.h>

enum esk_err eski_tiered_read(struct eski_request *request, const struct esk_json_value *body,
                              struct esk_error *error) {
    (void)body;
    enum esk_err err = eski_topic_parameter(request, error);
    struct esk_slice text = esk_slice(NULL, 0);
    if (err == ESK_OK && !esk_http_percent_decode(request->parameters[1], &request->arena, &text)) {
        return esk_fail(error, ESK_ERR_INVALID, "bad percent-encoding in the path");
    }
    uint64_t number = 0;
    bool is_number = text.size > 0;
    for (size_t i = 0; is_number && i < text.size; i++) {
        is_number = text.data[i] >= '0' && text.data[i] <= '9' && number <= INT32_MAX;
        number = number * 10 + (uint64_t)(text.data[i] - '0');
    }
    if (err == ESK_OK && (!is_number || number > INT32_MAX)) {
        return esk_fail(error, ESK_ERR_INVALID, "partition must be an integer from 0 to %d",
                        INT32_MAX);
    }
    request->tiered.partition = (uint32_t)number;
    return err;
}

void eski_tiered_run(struct eski_request *request) {
    struct esk_topic_view view;
    struct esk_slice name = request->parameters[0];
    uint32_t partition = request->tiered.partition;
    if (!esk_broker_topic_find(request->shard->broker, name, &view)) {
        eski_fail_text(request, ESK_ERR_NOT_FOUND, "topic '%.*s' does not exist", (int)name.size,
                       (const char *)name.data);
        return;
    }
    if (partition >= view.partition_count) {
        eski_fail_text(request, ESK_ERR_NOT_FOUND, "topic '%.*s' has no partition %" PRIu32,
                       (int)name.size, (const char *)name.data, partition);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "topic");
    esk_json_write_string(&writer, name);
    esk_json_write_key(&writer, "partition");
    esk_json_write_uint64(&writer, partition);
    esk_json_write_key(&writer, "segments");
    esk_json_open_array(&writer);
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}
