/* SPDX-License-Identifier: Apache-2.0 */
/* esk key create, list, revoke. */
#include "esk/commands.h"
#include "esk/listing.h"

#include <stdlib.h>

/* ACTION:PREFIX, such as write:orders. */
static int write_rule(struct esk_json_writer *writer, const char *text) {
    const char *colon = strchr(text, ':');
    if (!colon || colon == text || colon[1] == '\0') {
        return esk_complain(ESK_EXIT_USAGE,
                            "--allow '%s': allowed is ACTION:PREFIX, such as read:orders, "
                            "write:orders. or admin:*",
                            text);
    }
    char *action = esk_text_format("%.*s", (int)(colon - text), text);
    esk_json_open_object(writer);
    esk_json_write_key(writer, "action");
    esk_json_write_text(writer, action);
    esk_json_write_key(writer, "topic_prefix");
    esk_json_write_text(writer, colon + 1);
    esk_json_close_object(writer);
    free(action);
    return ESK_EXIT_DONE;
}

static void write_rate(struct esk_json_writer *writer, const struct esk_arguments *arguments,
                       const char *option, const char *field) {
    if (esk_arguments_given(arguments, option)) {
        esk_json_write_key(writer, field);
        esk_json_write_uint64(writer, esk_arguments_number(arguments, option));
    }
}

static int write_body(const struct esk_arguments *arguments, struct esk_buffer *body) {
    const struct esk_tool_value *rules = esk_arguments_value(arguments, "allow");
    struct esk_json_writer writer = esk_json_writer(body);
    int code = rules->count ? ESK_EXIT_DONE
                            : esk_complain(ESK_EXIT_USAGE, "--allow: a key needs at least one rule "
                                                           "(ACTION:PREFIX)");
    esk_json_open_object(&writer);
    esk_json_write_key(&writer, "name");
    esk_json_write_text(&writer, arguments->arguments[0]);
    esk_json_write_key(&writer, "acls");
    esk_json_open_array(&writer);
    for (uint32_t i = 0; i < rules->count && code == ESK_EXIT_DONE; i++) {
        code = write_rule(&writer, rules->texts[i]);
    }
    esk_json_close_array(&writer);
    write_rate(&writer, arguments, "produce-rate", "produce_bytes_per_sec");
    write_rate(&writer, arguments, "consume-rate", "consume_bytes_per_sec");
    if (esk_arguments_given(arguments, "replaces")) {
        esk_json_write_key(&writer, "replaces");
        esk_json_write_text(&writer, esk_arguments_text(arguments, "replaces"));
    }
    esk_json_close_object(&writer);
    return code;
}

int esk_key_create(struct esk_session *session) {
    struct esk_buffer body;
    struct esk_json_value root;
    esk_buffer_init(&body);
    int code = write_body(session->arguments, &body);
    if (code == ESK_EXIT_DONE) {
        code = esk_session_call(session, "POST", "/admin/keys", esk_buffer_slice(&body), &root);
    }
    esk_buffer_fini(&body);
    if (code != ESK_EXIT_DONE || session->is_json) {
        return code == ESK_EXIT_DONE ? esk_session_print_answer(session) : code;
    }
    struct esk_slice id = esk_json_field_text(&root, "key_id");
    struct esk_slice secret = esk_json_field_text(&root, "secret");
    esk_buffer_append_text(&session->out, "key id  ");
    esk_buffer_append(&session->out, id.data, id.size);
    esk_buffer_append_text(&session->out, "\nsecret  ");
    esk_buffer_append(&session->out, secret.data, secret.size);
    esk_buffer_append_text(&session->out, "\nThe secret is shown this once only.\n");
    return esk_session_flush(session);
}

int esk_key_list(struct esk_session *session) {
    static const struct esk_column columns[] = {
        {"KEY", "key_id", false},
        {"NAME", "name", false},
        {"RULES", "acls", false},
        {">PRODUCE B/S", "produce_bytes_per_sec", false},
        {">CONSUME B/S", "consume_bytes_per_sec", false},
        {"CREATED", "created_ms", true},
        {0},
    };
    return esk_listing_get(session, "/admin/keys", "keys", columns);
}

int esk_key_revoke(struct esk_session *session) {
    const struct esk_arguments *arguments = session->arguments;
    int code = ESK_EXIT_DONE;
    for (uint32_t i = 0; i < arguments->count && code == ESK_EXIT_DONE; i++) {
        char *path = esk_path("/admin/keys/", arguments->arguments[i], "");
        code = esk_listing_do(session, "DELETE", path, esk_slice(NULL, 0), "%s revoked",
                              arguments->arguments[i]);
        free(path);
    }
    return code;
}
