/* SPDX-License-Identifier: Apache-2.0 */
/* Committed offsets of consumer groups. */
#include "server/http/access_private.h"

#include "model/names.h"

#include <inttypes.h>

/* --- commit --- */

static enum esk_err read_number(const struct esk_json_value *body, const char *name, int64_t high,
                                int64_t *number, struct esk_error *error) {
    struct esk_json_value value;
    if (!esk_json_find(body, name, &value)) {
        return eski_field_missing(name, error);
    }
    return eski_field_integer(name, &value, 0, high, number, error);
}

enum esk_err eski_commit_read(struct eski_request *request, const struct esk_json_value *body,
                              struct esk_error *error) {
    struct esk_offset_commit *commit = &request->commit;
    struct esk_json_value value;
    int64_t partition = 0;
    int64_t offset = 0;
    enum esk_err err = eski_group_parameter(request, error);
    if (err == ESK_OK) {
        err = eski_body_object(body, error);
    }
    if (err == ESK_OK && !esk_json_find(body, "topic", &value)) {
        err = eski_field_missing("topic", error);
    }
    if (err == ESK_OK) {
        err = eski_field_text("topic", &value, &commit->topic, error);
    }
    if (err == ESK_OK) {
        err = esk_topic_name_check(commit->topic, error);
    }
    if (err == ESK_OK) {
        err = read_number(body, "partition", INT32_MAX, &partition, error);
    }
    if (err == ESK_OK) {
        err = read_number(body, "offset", INT64_MAX, &offset, error);
    }
    commit->partition = (uint32_t)partition;
    commit->offset = (uint64_t)offset;
    return err ? err : eski_keep(request, &commit->topic, error);
}

static void committed(struct esk_offset_commit *commit, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(commit, struct eski_request, commit);
    if (err) {
        eski_fail(request, err, &commit->error);
        return;
    }
    eski_respond_empty(request);
}

void eski_commit_run(struct eski_request *request) {
    if (!eski_may(request, ESK_ACTION_READ, request->commit.topic)) {
        return;
    }
    request->commit.group = request->parameters[0];
    request->commit.owner = request->caller.owner;
    request->commit.admin = request->caller.admin;
    request->commit.done = committed;
    esk_broker_offset_commit(request->shard->broker, &request->commit);
}

/* --- offsets --- */

enum esk_err eski_offsets_read(struct eski_request *request, const struct esk_json_value *body,
                               struct esk_error *error) {
    (void)body;
    return eski_group_parameter(request, error);
}

static void clean(struct eski_request *request) {
    esk_offset_fetch_fini(&request->fetch);
}

/* {"offsets":{"orders":{"0":1}}}, in pieces of some partitions. */
static bool fill_offsets(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_offset_fetch *fetch = &request->fetch;
    if (request->position == 0) {
        esk_buffer_append_text(out, "{\"offsets\":{");
    }
    while (request->position < fetch->count) {
        if (out->size + 512 > ESKI_FILL_BYTES) {
            return false;
        }
        size_t i = request->position++;
        const struct esk_offset_view *view = &fetch->offsets[i];
        bool is_new = i == 0 || strcmp(view->topic, fetch->offsets[i - 1].topic) != 0;
        if (is_new) { /* topics are ASCII without anything to escape */
            esk_buffer_format(out, "%s\"%s\":{", i == 0 ? "" : "},", view->topic);
        }
        esk_buffer_format(out, "%s\"%" PRIu32 "\":%" PRIu64, is_new ? "" : ",", view->partition,
                          view->offset);
    }
    esk_buffer_append_text(out, fetch->count ? "}}}" : "}}");
    return true;
}

static void fetched(struct esk_offset_fetch *fetch, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(fetch, struct eski_request, fetch);
    if (err) {
        eski_fail(request, err, &fetch->error);
        return;
    }
    request->clean = clean;
    eski_respond_fill(request, fill_offsets);
}

void eski_offsets_run(struct eski_request *request) {
    request->fetch.group = request->parameters[0];
    request->fetch.owner = request->caller.owner;
    request->fetch.admin = request->caller.admin;
    request->fetch.caller = &request->caller;
    request->fetch.done = fetched;
    esk_broker_offset_fetch(request->shard->broker, &request->fetch);
}
