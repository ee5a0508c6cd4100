/* SPDX-License-Identifier: Apache-2.0 */
/* Members of consumer groups, groups as a whole, and the reset of commits. */
#include "server/http/access_private.h"
#include "server/http/http_private.h"

#include "model/limits.h"
#include "model/names.h"

#include <inttypes.h>
#include <stdio.h>

#define ROW_BYTES_MAX 512 /* of a partition in an assignment */

static struct eski_request *request_of(struct esk_member_operation *operation) {
    return ESK_CONTAINER(operation, struct eski_request, member);
}

static void clean_member(struct eski_request *request) {
    esk_member_operation_fini(&request->member);
}

static void start(struct eski_request *request,
                  void (*call)(struct esk_broker_shard *shard,
                               struct esk_member_operation *operation),
                  void (*done)(struct esk_member_operation *operation, enum esk_err err)) {
    request->member.group = request->parameters[0];
    request->member.owner = request->caller.owner;
    request->member.admin = request->caller.admin;
    request->member.done = done;
    call(request->shard->broker, &request->member);
}

/* --- what a member has --- */

static bool fill_assignment(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_member_operation *member = &request->member;
    if (request->position == 0) {
        esk_buffer_format(out, "{\"member_id\":\"%s\",\"generation\":%" PRIu64 ",\"assignment\":[",
                          member->member, member->generation);
    }
    while (request->position < member->partition_count) {
        if (out->size + ROW_BYTES_MAX > ESKI_FILL_BYTES) {
            return false;
        }
        size_t i = request->position++;
        /* topics are ASCII without anything to escape */
        esk_buffer_format(out, "%s{\"topic\":\"%s\",\"partition\":%" PRIu32 "}", i == 0 ? "" : ",",
                          member->partitions[i].topic, member->partitions[i].partition);
    }
    esk_buffer_append_text(out, "]}");
    return true;
}

static void assigned(struct esk_member_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    request->clean = clean_member;
    eski_respond_fill(request, fill_assignment);
}

/* --- join --- */

static enum esk_err read_topics(struct eski_request *request, const struct esk_json_value *body,
                                struct esk_error *error) {
    struct esk_json_value value;
    if (!esk_json_find(body, "topics", &value)) {
        return eski_field_missing("topics", error);
    }
    size_t count = esk_json_count(&value);
    if (value.type != ESK_JSON_ARRAY || count < 1 || count > ESK_MEMBER_TOPICS_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "topics must be an array of 1 to %d names",
                        ESK_MEMBER_TOPICS_MAX);
    }
    struct esk_slice *topics = esk_arena_alloc_array(&request->arena, count, sizeof(*topics));
    if (topics == NULL) {
        return eski_out_of_memory(error);
    }
    struct esk_json_iterator iterator = esk_json_each(&value);
    struct esk_json_value element;
    for (size_t i = 0; i < count && esk_json_next_element(&iterator, &element); i++) {
        char name[24];
        snprintf(name, sizeof(name), "topics[%zu]", i);
        enum esk_err err = eski_field_text(name, &element, &topics[i], error);
        err = err ? err : esk_topic_name_check(topics[i], error);
        err = err ? err : eski_keep(request, &topics[i], error);
        if (err) {
            return err;
        }
    }
    request->member.topics = topics;
    request->member.topic_count = (uint32_t)count;
    return ESK_OK;
}

static enum esk_err read_member(struct eski_request *request, const struct esk_json_value *body,
                                bool is_required, struct esk_error *error) {
    struct esk_json_value value;
    bool given = esk_json_find(body, "member_id", &value);
    if (!is_required && (!given || value.type == ESK_JSON_NULL)) {
        return ESK_OK;
    }
    if (!given) {
        return eski_field_missing("member_id", error);
    }
    enum esk_err err = eski_field_text("member_id", &value, &request->member.member_id, error);
    return err ? err : eski_keep(request, &request->member.member_id, error);
}

enum esk_err eski_group_join_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    enum esk_err err = eski_group_parameter(request, error);
    err = err ? err : eski_body_object(body, error);
    err = err ? err : read_topics(request, body, error);
    return err ? err : read_member(request, body, false, error);
}

void eski_group_join_run(struct eski_request *request) {
    for (uint32_t i = 0; i < request->member.topic_count; i++) {
        if (!eski_may(request, ESK_ACTION_READ, request->member.topics[i])) {
            return;
        }
    }
    start(request, esk_broker_group_join, assigned);
}

/* --- heartbeat --- */

enum esk_err eski_group_heartbeat_read(struct eski_request *request,
                                       const struct esk_json_value *body, struct esk_error *error) {
    struct esk_json_value value;
    int64_t generation = 0;
    enum esk_err err = eski_group_parameter(request, error);
    err = err ? err : eski_body_object(body, error);
    err = err ? err : read_member(request, body, true, error);
    if (err == ESK_OK && !esk_json_find(body, "generation", &value)) {
        err = eski_field_missing("generation", error);
    }
    if (err == ESK_OK) {
        err = eski_field_integer("generation", &value, 0, INT64_MAX, &generation, error);
    }
    request->member.known_generation = (uint64_t)generation;
    return err;
}

static void beaten(struct esk_member_operation *operation, enum esk_err err) {
    static const char *const texts[] = {
        [ESK_MEMBER_OK] = "ok",
        [ESK_MEMBER_REBALANCE_REQUIRED] = "rebalance_required",
        [ESK_MEMBER_UNKNOWN] = "unknown_member",
    };
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "status");
    esk_json_write_text(&writer, texts[operation->status]);
    if (operation->status != ESK_MEMBER_UNKNOWN) {
        esk_json_write_key(&writer, "generation");
        esk_json_write_uint64(&writer, operation->generation);
    }
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_group_heartbeat_run(struct eski_request *request) {
    start(request, esk_broker_group_heartbeat, beaten);
}

/* --- leave, assignment, delete --- */

static void emptied(struct esk_member_operation *operation, enum esk_err err) {
    struct eski_request *request = request_of(operation);
    if (err) {
        eski_fail(request, err, &operation->error);
        return;
    }
    eski_respond_empty(request);
}

enum esk_err eski_group_leave_read(struct eski_request *request, const struct esk_json_value *body,
                                   struct esk_error *error) {
    enum esk_err err = eski_group_parameter(request, error);
    err = err ? err : eski_body_object(body, error);
    return err ? err : read_member(request, body, true, error);
}

void eski_group_leave_run(struct eski_request *request) {
    start(request, esk_broker_group_leave, emptied);
}

enum esk_err eski_group_assignment_read(struct eski_request *request,
                                        const struct esk_json_value *body,
                                        struct esk_error *error) {
    (void)body;
    struct eski_parameter parameters[] = {{.name = "member_id", .is_text = true}};
    enum esk_err err = eski_group_parameter(request, error);
    err = err ? err : eski_query_read(request, parameters, 1, error);
    if (err == ESK_OK && !parameters[0].is_given) {
        err = eski_field_missing("member_id", error);
    }
    request->member.member_id = parameters[0].text;
    return err;
}

void eski_group_assignment_run(struct eski_request *request) {
    start(request, esk_broker_group_assignment, assigned);
}

enum esk_err eski_group_delete_read(struct eski_request *request, const struct esk_json_value *body,
                                    struct esk_error *error) {
    (void)body;
    return eski_group_parameter(request, error);
}

void eski_group_delete_run(struct eski_request *request) {
    start(request, esk_broker_group_delete, emptied);
}

/* --- list --- */

enum esk_err eski_group_list_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static void clean_listing(struct eski_request *request) {
    esk_group_listing_fini(&request->listing);
}

/* With those of its topics that the caller may read. */
static void write_group(struct esk_buffer *out, const struct esk_group_view *view,
                        const struct esk_caller *caller) {
    struct esk_json_writer writer = esk_json_writer(out);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "group");
    esk_json_write_string(&writer, esk_slice(view->name, view->name_size));
    esk_json_write_key(&writer, "members");
    esk_json_write_uint64(&writer, view->members);
    esk_json_write_key(&writer, "generation");
    esk_json_write_uint64(&writer, view->generation);
    esk_json_write_key(&writer, "topics");
    esk_json_open_array(&writer);
    for (uint32_t i = 0; i < view->topic_count; i++) {
        if (esk_caller_may(caller, ESK_ACTION_READ, esk_slice_text(view->topics[i]))) {
            esk_json_write_text(&writer, view->topics[i]);
        }
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
}

static bool fill_groups(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_group_listing *listing = &request->listing;
    if (request->position == 0) {
        esk_buffer_append_text(out, "{\"groups\":[");
    }
    while (request->position < listing->count) {
        if (out->size > ESKI_FILL_BYTES / 2) {
            return false;
        }
        if (request->position > 0) {
            esk_buffer_append_text(out, ",");
        }
        write_group(out, &listing->groups[request->position++], &request->caller);
    }
    esk_buffer_append_text(out, "]}");
    return true;
}

static void listed(struct esk_group_listing *listing, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(listing, struct eski_request, listing);
    if (err) {
        eski_fail(request, err, &listing->error);
        return;
    }
    request->clean = clean_listing;
    eski_respond_fill(request, fill_groups);
}

void eski_group_list_run(struct eski_request *request) {
    request->listing.owner = request->caller.owner;
    request->listing.admin = request->caller.admin;
    request->listing.done = listed;
    esk_broker_group_list(request->shard->broker, &request->listing);
}

/* --- reset of commits --- */

enum esk_err eski_reset_offsets_read(struct eski_request *request,
                                     const struct esk_json_value *body, struct esk_error *error) {
    struct esk_json_value value;
    struct esk_slice *topic = &request->reset.topic;
    enum esk_err err = eski_body_object(body, error);
    if (err == ESK_OK && !esk_json_find(body, "topic", &value)) {
        err = eski_field_missing("topic", error);
    }
    err = err ? err : eski_field_text("topic", &value, topic, error);
    err = err ? err : esk_topic_name_check(*topic, error);
    return err ? err : eski_keep(request, topic, error);
}

static void moved(struct esk_offset_reset *reset, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(reset, struct eski_request, reset);
    if (err) {
        eski_fail(request, err, &reset->error);
        return;
    }
    struct esk_json_writer writer = eski_respond_begin(request);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "topic");
    esk_json_write_string(&writer, reset->topic);
    esk_json_write_key(&writer, "groups");
    esk_json_write_uint64(&writer, reset->groups);
    esk_json_close_object(&writer);
    eski_respond(request, 200);
}

void eski_reset_offsets_run(struct eski_request *request) {
    request->target = request->reset.topic;
    request->reset.done = moved;
    esk_broker_offset_reset(request->shard->broker, &request->reset);
}
