/* SPDX-License-Identifier: Apache-2.0 */
/* esk producer, raft, admin, and what lists or deletes groups. */
#include "esk/commands.h"
#include "esk/listing.h"

#include <stdlib.h>

int esk_group_list(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {"GROUP", "group", false},
        {">MEMBERS", "members", false},
        {">GENERATION", "generation", false},
        {"TOPICS", "topics", false},
        {0},
    };
    return esk_listing_get(session, "/groups", "groups", columns);
}

int esk_group_delete(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    int code = ESK_EXIT_DONE;
    for (uint32_t i = 0; i < arguments->count && code == ESK_EXIT_DONE; i++) {
        char *path = esk_path("/groups/", arguments->arguments[i], "");
        code = esk_listing_do(session, "DELETE", path, esk_slice(NULL, 0), "%s deleted",
                              arguments->arguments[i]);
        free(path);
    }
    return code;
}

int esk_producer_list(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {"PRODUCER", "producer_id", false},
        {">NUMBER", "numeric_id", false},
        {"KEY", "key_id", false},
        {"LAST USED", "last_used_ms", true},
        {"PARTITIONS", "partitions", false},
        {0},
    };
    return esk_listing_get(session, "/admin/producers", "producers", columns);
}

int esk_producer_forget(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    int code = ESK_EXIT_DONE;
    for (uint32_t i = 0; i < arguments->count && code == ESK_EXIT_DONE; i++) {
        char *path = esk_path("/admin/producers/", arguments->arguments[i], "");
        code = esk_listing_do(session, "DELETE", path, esk_slice(NULL, 0), "%s forgotten",
                              arguments->arguments[i]);
        free(path);
    }
    return code;
}

int esk_raft_list(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {">GROUP", "group_id", false},
        {"TOPIC", "topic", false},
        {">PARTITION", "partition", false},
        {"ROLE", "role", false},
        {">TERM", "term", false},
        {">LEADER", "leader", false},
        {">LAST", "last_index", false},
        {">COMMIT", "commit_index", false},
        {">APPLIED", "applied_index", false},
        {"REPLICAS", "replicas", false},
        {0},
    };
    return esk_listing_get(session, "/raft", "partitions", columns);
}

static int run_pass(struct esk_session *session, const char *path) {
    struct esk_json_value root;
    int code = esk_session_call(session, "POST", path, esk_slice("{}", 2), &root);
    return code == ESK_EXIT_DONE ? esk_listing_fields(session, &root) : code;
}

int esk_admin_run_retention(struct esk_session *session) {
    return run_pass(session, "/admin/run-retention");
}

int esk_admin_run_compaction(struct esk_session *session) {
    return run_pass(session, "/admin/run-compaction");
}

int esk_admin_reset_offsets(struct esk_session *session) {
    struct esk_buffer body;
    struct esk_json_value root;
    esk_buffer_init(&body);
    struct esk_json_writer writer = esk_json_writer(&body);
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "topic");
    esk_json_write_text(&writer, session->arguments->arguments[0]);
    esk_json_close_object(&writer);
    int code =
        esk_session_call(session, "POST", "/admin/reset-offsets", esk_buffer_slice(&body), &root);
    esk_buffer_fini(&body);
    return code == ESK_EXIT_DONE ? esk_listing_fields(session, &root) : code;
}

int esk_admin_tiered(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {">START", "start_offset", false}, {">END", "end_offset", false},
        {">BYTES", "size_bytes", false},   {"OBJECT", "object", false},
        {"UPLOADED", "uploaded_ms", true}, {0},
    };
    const char *const *arguments = session->arguments->arguments;
    char *before = esk_path("/admin/tiered/", arguments[0], "/");
    char *path = esk_path(before, arguments[1], "");
    int code = esk_listing_get(session, path, "segments", columns);
    free(path);
    free(before);
    return code;
}

/* --- the catalogue --- */

/* Adds "name": the list of that name in the answer, or with its text the answer's own. */
static int add_list(struct esk_session *session, struct esk_buffer *all, const char *path,
                    const char *name) {
    struct esk_json_value root;
    int code = esk_session_get(session, path, &root);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    /* The answer is {"name":[...]}: what stands between its braces goes on in ours. */
    const struct esk_buffer *body = &session->client.answer.body;
    struct esk_slice text = esk_slice(body->data, body->size);
    while (text.size && (text.data[text.size - 1] == '\n' || text.data[text.size - 1] == ' ')) {
        text.size--;
    }
    struct esk_json_value list;
    if (text.size < 2 || text.data[0] != '{' || !esk_json_find(&root, name, &list)) {
        return esk_complain(ESK_EXIT_FAILED, "the broker's answer to %s has no %s", path, name);
    }
    esk_buffer_append_text(all, all->size > 1 ? "," : "");
    esk_buffer_append(all, text.data + 1, text.size - 2);
    return ESK_EXIT_DONE;
}

/* Adds "topics": each as it is described. */
static int add_topics(struct esk_session *session, struct esk_buffer *all) {
    struct esk_json_value root;
    struct esk_json_value topics;
    struct esk_json_value topic;
    int code = esk_session_get(session, "/topics", &root);
    if (code != ESK_EXIT_DONE) {
        return code;
    }
    char **names = NULL;
    size_t count = 0;
    if (esk_json_find(&root, "topics", &topics)) {
        struct esk_json_iterator each = esk_json_each(&topics);
        while (topics.type == ESK_JSON_ARRAY && esk_json_next_element(&each, &topic)) {
            struct esk_slice name = esk_json_field_text(&topic, "name");
            names = esk_realloc(names, (count + 1) * sizeof(*names));
            names[count++] = esk_text_format("%.*s", (int)name.size, (const char *)name.data);
        }
    }
    esk_buffer_append_text(all, "\"topics\":[");
    for (size_t i = 0; i < count; i++) {
        char *path = esk_path("/topics/", names[i], "");
        if (code == ESK_EXIT_DONE) {
            code = esk_session_get(session, path, &root);
            const struct esk_buffer *body = &session->client.answer.body;
            esk_buffer_append_text(all, i ? "," : "");
            esk_buffer_append(all, body->data, body->size);
        }
        free(path);
        free(names[i]);
    }
    free(names);
    esk_buffer_append_text(all, "]");
    return code;
}

static void print_catalogue(struct esk_buffer *out, const struct esk_json_value *root) {
    static const struct esk_column topics[] = {
        {"TOPIC", "name", false}, {"CONFIG", "config", false}, {0}};
    static const struct esk_column keys[] = {
        {"KEY", "key_id", false}, {"NAME", "name", false}, {"RULES", "acls", false}, {0}};
    static const struct esk_column schemas[] = {{">SCHEMA", "id", false},
                                                {"SUBJECT", "subject", false},
                                                {">VERSION", "version", false},
                                                {"TYPE", "type", false},
                                                {0}};
    static const struct esk_column producers[] = {{"PRODUCER", "producer_id", false},
                                                  {">NUMBER", "numeric_id", false},
                                                  {"KEY", "key_id", false},
                                                  {0}};
    static const struct esk_column groups[] = {
        {"GROUP", "group", false}, {"TOPICS", "topics", false}, {0}};
    esk_listing_table(out, root, "topics", topics);
    esk_buffer_append_text(out, "\n");
    esk_listing_table(out, root, "keys", keys);
    esk_buffer_append_text(out, "\n");
    esk_listing_table(out, root, "schemas", schemas);
    esk_buffer_append_text(out, "\n");
    esk_listing_table(out, root, "producers", producers);
    esk_buffer_append_text(out, "\n");
    esk_listing_table(out, root, "groups", groups);
}

int esk_admin_catalogue(struct esk_session *session) {
    static const struct {
        const char *path;
        const char *name;
    } lists[] = {{"/admin/keys", "keys"},
                 {"/schemas", "schemas"},
                 {"/admin/producers", "producers"},
                 {"/groups", "groups"}};
    struct esk_buffer all;
    struct esk_json_value root;
    struct esk_error error;
    esk_buffer_init(&all);
    esk_buffer_append_text(&all, "{");
    int code = add_topics(session, &all);
    for (size_t i = 0; i < sizeof(lists) / sizeof(*lists) && code == ESK_EXIT_DONE; i++) {
        code = add_list(session, &all, lists[i].path, lists[i].name);
    }
    esk_buffer_append_text(&all, "}");
    memset(esk_buffer_grow(&all, ESK_JSON_PADDING), 0, ESK_JSON_PADDING);
    if (code == ESK_EXIT_DONE && esk_json_document_parse(session->document, esk_buffer_slice(&all),
                                                         &root, &error) != ESK_OK) {
        code = esk_complain(ESK_EXIT_FAILED, "the broker's answers: %s", error.text);
    }
    if (code == ESK_EXIT_DONE && session->is_json) {
        esk_buffer_append(&session->out, all.data, all.size);
        esk_buffer_append_text(&session->out, "\n");
    } else if (code == ESK_EXIT_DONE) {
        print_catalogue(&session->out, &root);
    }
    esk_buffer_fini(&all);
    return code == ESK_EXIT_DONE ? esk_session_flush(session) : code;
}
