/* SPDX-License-Identifier: Apache-2.0 */
/* GET /raft: every group with its role, term, indexes and replicas. A single broker is the only
 * replica, and the leader, of each. */
#include "server/http/http_private.h"

#define GROUP_BYTES_MAX 700 /* of one row */

enum esk_err eski_raft_read(struct eski_request *request, const struct esk_json_value *body,
                            struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

static const char *role_name(enum esk_role role) {
    switch (role) {
    case ESK_ROLE_FOLLOWER:
        return "follower";
    case ESK_ROLE_CANDIDATE:
        return "candidate";
    case ESK_ROLE_LEADER:
        return "leader";
    }
    return "unknown";
}

static void write_number(struct esk_json_writer *writer, const char *key, uint64_t number) {
    esk_json_write_key(writer, key);
    esk_json_write_uint64(writer, number);
}

static void write_replicas(struct esk_json_writer *writer, uint32_t node, uint64_t match_index) {
    esk_json_write_key(writer, "replicas");
    esk_json_open_array(writer);
    esk_json_open_object(writer);
    write_number(writer, "node", node);
    esk_json_write_key(writer, "voter");
    esk_json_write_bool(writer, true);
    write_number(writer, "match_index", match_index);
    esk_json_close_object(writer);
    esk_json_close_array(writer);
}

static void write_group(struct esk_json_writer *writer, const struct esk_raft_group *group,
                        uint32_t node) {
    esk_json_open_object(writer);
    write_number(writer, "group_id", group->group_id);
    esk_json_write_key(writer, "topic");
    if (group->topic != NULL) {
        esk_json_write_text(writer, group->topic);
        write_number(writer, "partition", group->partition);
    } else {
        esk_json_write_null(writer);
        esk_json_write_key(writer, "partition");
        esk_json_write_null(writer);
    }
    esk_json_write_key(writer, "role");
    esk_json_write_text(writer, role_name(group->role));
    write_number(writer, "term", group->term);
    esk_json_write_key(writer, "leader");
    if (group->role == ESK_ROLE_LEADER) {
        esk_json_write_uint64(writer, node);
    } else {
        esk_json_write_null(writer);
    }
    write_number(writer, "last_index", group->last_index);
    write_number(writer, "commit_index", group->commit_index);
    write_number(writer, "applied_index", group->applied_index);
    write_replicas(writer, node, group->last_index);
    esk_json_close_object(writer);
}

static bool fill_raft(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_raft_listing *listing = &request->raft;
    struct esk_json_writer writer = esk_json_writer(out);
    if (request->position == 0) { /* the catalogue is there always, and first */
        esk_json_open_object(&writer);
        write_number(&writer, "node", listing->node);
        esk_json_write_key(&writer, "partitions");
        esk_json_open_array(&writer);
    }
    writer.comma = request->position > 0;
    while (request->position < listing->count) {
        if (out->size + GROUP_BYTES_MAX > ESKI_FILL_BYTES) {
            return false;
        }
        const struct esk_raft_group *group = &listing->groups[request->position++];
        if (group->is_there) {
            write_group(&writer, group, listing->node);
        }
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    return true;
}

static void clean(struct eski_request *request) {
    esk_raft_listing_fini(&request->raft);
}

static void listed(struct esk_raft_listing *listing) {
    struct eski_request *request = ESK_CONTAINER(listing, struct eski_request, raft);
    request->clean = clean;
    eski_respond_fill(request, fill_raft);
}

void eski_raft_run(struct eski_request *request) {
    request->raft.done = listed;
    esk_broker_raft(request->shard->broker, &request->raft);
}
