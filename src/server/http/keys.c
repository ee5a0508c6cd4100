/* SPDX-License-Identifier: Apache-2.0 */
/* Keys: create, list, revoke. */
#include "server/http/http_private.h"

#include "wire/http/target.h"

#include <inttypes.h>

/* --- create --- */

/* null is no quota, 0 to the broker. */
static enum esk_err read_quota(const struct esk_json_value *body, const char *name, uint64_t *quota,
                               struct esk_error *error) {
    struct esk_json_value value;
    int64_t number;
    if (!esk_json_find(body, name, &value) || value.type == ESK_JSON_NULL) {
        return ESK_OK;
    }
    enum esk_err err = eski_field_integer(name, &value, 1, INT64_MAX, &number, error);
    *quota = err ? 0 : (uint64_t)number;
    return err;
}

static enum esk_err read_replaces(const struct esk_json_value *body, uint64_t *replaces,
                                  struct esk_error *error) {
    struct esk_json_value value;
    struct esk_slice text;
    if (!esk_json_find(body, "replaces", &value) || value.type == ESK_JSON_NULL) {
        return ESK_OK;
    }
    enum esk_err err = eski_field_text("replaces", &value, &text, error);
    if (err == ESK_OK && !esk_key_id_parse(text, replaces)) {
        err = esk_fail(error, ESK_ERR_INVALID,
                       "replaces must be a key_id, such as k_1f2e3d4c5b6a7988");
    }
    return err;
}

static enum esk_err read_acl(struct eski_request *request, const struct esk_json_value *object,
                             uint32_t index, struct esk_grant *grant, struct esk_error *error) {
    struct esk_json_value action;
    struct esk_json_value prefix;
    if (object->type != ESK_JSON_OBJECT) {
        return esk_fail(error, ESK_ERR_INVALID, "acls[%" PRIu32 "] must be an object, not %s",
                        index, esk_json_type_name(object->type));
    }
    if (!esk_json_find(object, "action", &action) || action.type != ESK_JSON_STRING ||
        !esk_action_parse(action.string, &grant->action)) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "acls[%" PRIu32 "].action must be read, write or admin", index);
    }
    if (!esk_json_find(object, "topic_prefix", &prefix) || prefix.type != ESK_JSON_STRING) {
        return esk_fail(error, ESK_ERR_INVALID, "acls[%" PRIu32 "].topic_prefix must be a string",
                        index);
    }
    grant->prefix = prefix.string;
    return eski_keep(request, &grant->prefix, error);
}

static enum esk_err read_acls(struct eski_request *request, const struct esk_json_value *array,
                              struct esk_error *error) {
    struct esk_key_creation *creation = &request->key_creation;
    if (array->type != ESK_JSON_ARRAY) {
        return esk_fail(error, ESK_ERR_INVALID, "acls must be an array, not %s",
                        esk_json_type_name(array->type));
    }
    struct esk_grant *grants =
        esk_arena_alloc_array(&request->arena, ESK_KEY_GRANTS_MAX, sizeof *grants);
    if (!grants) {
        return eski_out_of_memory(error);
    }
    struct esk_json_iterator iterator = esk_json_each(array);
    struct esk_json_value element;
    while (esk_json_next_element(&iterator, &element)) {
        if (creation->grant_count == ESK_KEY_GRANTS_MAX) {
            return esk_fail(error, ESK_ERR_INVALID, "acls must have 1 to %d rules",
                            ESK_KEY_GRANTS_MAX);
        }
        uint32_t index = creation->grant_count++;
        enum esk_err err = read_acl(request, &element, index, &grants[index], error);
        if (err) {
            return err;
        }
    }
    creation->grants = grants;
    return ESK_OK;
}

enum esk_err eski_key_create_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    struct esk_key_creation *creation = &request->key_creation;
    struct esk_json_value value;
    enum esk_err err = eski_body_object(body, error);
    if (err == ESK_OK && !esk_json_find(body, "name", &value)) {
        err = eski_field_missing("name", error);
    }
    if (err == ESK_OK) {
        err = eski_field_text("name", &value, &creation->name, error);
    }
    if (err == ESK_OK) {
        err = eski_keep(request, &creation->name, error);
    }
    if (err == ESK_OK && !esk_json_find(body, "acls", &value)) {
        err = eski_field_missing("acls", error);
    }
    if (err == ESK_OK) {
        err = read_acls(request, &value, error);
    }
    if (err == ESK_OK) {
        err = read_quota(body, "produce_bytes_per_sec", &creation->produce_bytes_per_sec, error);
    }
    if (err == ESK_OK) {
        err = read_quota(body, "consume_bytes_per_sec", &creation->consume_bytes_per_sec, error);
    }
    if (err == ESK_OK) {
        err = read_replaces(body, &creation->replaces, error);
    }
    return err ? err : esk_key_creation_check(creation, error);
}

static void write_id(struct esk_json_writer *writer, const char *name, uint64_t id) {
    char text[ESK_KEY_ID_BYTES];
    esk_key_id_format(id, text);
    esk_json_write_key(writer, name);
    esk_json_write_text(writer, text);
}

static void write_quota(struct esk_json_writer *writer, const char *name, uint64_t quota) {
    esk_json_write_key(writer, name);
    if (quota) {
        esk_json_write_uint64(writer, quota);
    } else {
        esk_json_write_null(writer);
    }
}

/* All but the end, so that a secret may follow. */
static void write_key(struct esk_json_writer *writer, const struct esk_key_description *key) {
    esk_json_open_object(writer);
    write_id(writer, "key_id", key->id);
    esk_json_write_key(writer, "name");
    esk_json_write_string(writer, key->name);
    esk_json_write_key(writer, "acls");
    esk_json_open_array(writer);
    for (uint32_t i = 0; i < key->grant_count; i++) {
        esk_json_open_object(writer);
        esk_json_write_key(writer, "action");
        esk_json_write_text(writer, esk_action_name(key->grants[i].action));
        esk_json_write_key(writer, "topic_prefix");
        esk_json_write_string(writer, key->grants[i].prefix);
        esk_json_close_object(writer);
    }
    esk_json_close_array(writer);
    write_quota(writer, "produce_bytes_per_sec", key->produce_bytes_per_sec);
    write_quota(writer, "consume_bytes_per_sec", key->consume_bytes_per_sec);
    if (key->replaces) {
        write_id(writer, "replaces", key->replaces);
    }
    esk_json_write_key(writer, "created_ms");
    esk_json_write_int64(writer, key->created_ms);
}

/* The secret stays nowhere. */
static void wipe(struct eski_request *request) {
    esk_secret_wipe(request->key_creation.secret, sizeof request->key_creation.secret);
    if (request->text.size) {
        esk_secret_wipe(request->text.data, request->text.size);
    }
}

static void created(struct esk_key_creation *creation, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(creation, struct eski_request, key_creation);
    if (err) {
        eski_fail(request, err, &creation->error);
        return;
    }
    const struct esk_key_description key = {
        .id = creation->key_id,
        .replaces = creation->replaces,
        .created_ms = creation->created_ms,
        .produce_bytes_per_sec = creation->produce_bytes_per_sec,
        .consume_bytes_per_sec = creation->consume_bytes_per_sec,
        .name = creation->name,
        .grants = creation->grants,
        .grant_count = creation->grant_count,
    };
    char *id = esk_arena_alloc(&request->arena, ESK_KEY_ID_BYTES);
    if (id) {
        esk_key_id_format(creation->key_id, id);
        request->target = esk_slice_text(id);
    }
    request->clean = wipe;
    struct esk_json_writer writer = eski_respond_begin(request);
    write_key(&writer, &key);
    esk_json_write_key(&writer, "secret");
    esk_json_write_text(&writer, creation->secret);
    esk_json_close_object(&writer);
    eski_respond(request, 201);
}

void eski_key_create_run(struct eski_request *request) {
    request->target = request->key_creation.name;
    request->key_creation.done = created;
    esk_broker_key_create(request->shard->broker, &request->key_creation);
}

/* --- list --- */

enum esk_err eski_key_list_read(struct eski_request *request, const struct esk_json_value *body,
                                struct esk_error *error) {
    (void)request;
    (void)body;
    (void)error;
    return ESK_OK;
}

/* An upper bound of what a key needs. */
static size_t bound_of(const struct esk_key_description *key) {
    size_t size = 512 + 6 * key->name.size;
    for (uint32_t i = 0; i < key->grant_count; i++) {
        size += 64 + key->grants[i].prefix.size;
    }
    return size;
}

static bool fill_keys(struct eski_request *request, struct esk_buffer *out) {
    const struct esk_key_list *list = &request->key_list;
    struct esk_json_writer writer = esk_json_writer(out);
    if (request->position == 0) {
        esk_json_open_object(&writer);
        esk_json_write_key(&writer, "keys");
        esk_json_open_array(&writer);
    }
    writer.comma = request->position > 0;
    while (request->position < list->count) {
        const struct esk_key_description *key = &list->keys[request->position]->about;
        if (out->size + bound_of(key) > ESKI_FILL_BYTES) {
            return false;
        }
        request->position++;
        write_key(&writer, key);
        esk_json_close_object(&writer);
    }
    esk_json_close_array(&writer);
    esk_json_close_object(&writer);
    return true;
}

static void clean_list(struct eski_request *request) {
    esk_key_list_fini(&request->key_list);
}

void eski_key_list_run(struct eski_request *request) {
    esk_broker_key_list(request->shard->broker, &request->key_list);
    request->clean = clean_list;
    eski_respond_fill(request, fill_keys);
}

/* --- revoke --- */

enum esk_err eski_key_revoke_read(struct eski_request *request, const struct esk_json_value *body,
                                  struct esk_error *error) {
    (void)body;
    struct esk_slice id;
    if (!esk_http_percent_decode(request->parameters[0], &request->arena, &id) ||
        !esk_key_id_parse(id, &request->key_revocation.key_id)) {
        return esk_fail(error, ESK_ERR_NOT_FOUND, "no such key: a key_id is k_ and 16 digits");
    }
    return ESK_OK;
}

static void revoked(struct esk_key_revocation *revocation, enum esk_err err) {
    struct eski_request *request = ESK_CONTAINER(revocation, struct eski_request, key_revocation);
    if (err) {
        eski_fail(request, err, &revocation->error);
        return;
    }
    eski_respond_empty(request);
}

void eski_key_revoke_run(struct eski_request *request) {
    request->target = request->parameters[0];
    request->key_revocation.done = revoked;
    esk_broker_key_revoke(request->shard->broker, &request->key_revocation);
}
