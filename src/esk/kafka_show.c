/* SPDX-License-Identifier: Apache-2.0 */
/* `esk kafka show`: one API, or one message of another kind, in one version. */
#include "atlas/json_out.h"
#include "atlas/page.h"
#include "atlas/row.h"
#include "atlas/smallest.h"
#include "atlas/tree.h"
#include "esk/kafka_private.h"

#include <string.h>

enum form { FORM_ALL, FORM_HEX, FORM_JSON, FORM_SCHEMA };

struct show {
    const char *name;
    int version; /* -1: the highest stable one */
    bool request;
    bool response;
    bool removed;
    enum form form;
};

/* A number for a name is the key of an API. */
static void find_key(struct show *show) {
    size_t count;
    int key;
    const struct esk_kafka_message *messages = esk_kafka_messages(&count);
    if (!eski_kafka_number(show->name, &key))
        return;
    for (size_t i = 0; i < count; i++) {
        if (messages[i].type == ESK_KAFKA_REQUEST && messages[i].api_key == key) {
            show->name = messages[i].api_name;
            return;
        }
    }
}

static int parse(int argc, char **argv, struct show *show) {
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--version") == 0) {
            if (++i == argc || !eski_kafka_number(argv[i], &show->version))
                return eski_kafka_misuse("show: --version needs a number");
        } else if (strcmp(argv[i], "--request") == 0) {
            show->response = false;
        } else if (strcmp(argv[i], "--response") == 0) {
            show->request = false;
        } else if (strcmp(argv[i], "--removed") == 0) {
            show->removed = true;
        } else if (strcmp(argv[i], "--hex") == 0) {
            show->form = FORM_HEX;
        } else if (strcmp(argv[i], "--json") == 0) {
            show->form = FORM_JSON;
        } else if (strcmp(argv[i], "--schema") == 0) {
            show->form = FORM_SCHEMA;
        } else if (argv[i][0] == '-' || show->name != NULL) {
            return eski_kafka_misuse("show: unknown argument %s", argv[i]);
        } else {
            show->name = argv[i];
        }
    }
    if (show->name == NULL)
        return eski_kafka_misuse("show: the name or the key of an API is needed");
    find_key(show);
    if (!show->request && !show->response)
        return eski_kafka_misuse("show: either --request or --response");
    return 0;
}

/* The message of a type that has the version asked for; removed ones when asked for, or when only
 * they have the name or the version. */
static const struct esk_kafka_message *pick(const struct show *show,
                                            enum esk_kafka_message_type type) {
    const struct esk_kafka_message *now = esk_kafka_api_find(show->name, type, false);
    const struct esk_kafka_message *old = esk_kafka_api_find(show->name, type, true);
    if (now == NULL || (old != NULL && show->removed && show->version < 0))
        return old;
    if (old != NULL && show->version >= 0 && esk_kafka_has_version(old, show->version))
        return old;
    return now;
}

static void show_one(const struct esk_kafka_message *message, int16_t version, enum form form,
                     struct esk_atlas_sink *sink) {
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    esk_atlas_smallest(message, version, &bytes);
    struct esk_atlas_input input = {message, version, esk_buffer_slice(&bytes)};
    struct esk_atlas_problem problem;
    if (form == FORM_SCHEMA) {
        esk_atlas_text(sink, message->schema);
    } else if (form == FORM_HEX) {
        for (size_t i = 0; i < bytes.size; i++)
            esk_atlas_format(sink, "%02x", bytes.data[i]);
        esk_atlas_text(sink, "\n");
    } else if (form == FORM_JSON) {
        esk_atlas_json_line(&input, sink);
    } else {
        esk_atlas_caption(message, version, bytes.size, sink);
        esk_atlas_text(sink, "\n\n");
        esk_atlas_layout_text(input.bytes, sink);
        esk_atlas_text(sink, "\nobject tree\n\n");
        esk_atlas_tree(&input, ESK_ATLAS_VALUE_CHARS, sink, &problem);
    }
    esk_buffer_fini(&bytes);
}

static int show_data(const struct show *show) {
    const struct esk_kafka_message *message =
        esk_kafka_message_named(show->name, (int16_t)show->version);
    if (message == NULL || message->type <= ESK_KAFKA_HEADER)
        return eski_kafka_misuse("show: there is no API or data named %s", show->name);
    int version = show->version < 0 ? message->version_stable : show->version;
    if (!esk_kafka_has_version(message, version))
        return eski_kafka_misuse("show: %s has no version %d", show->name, version);
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, stdout);
    show_one(message, (int16_t)version, show->form, &sink);
    esk_atlas_sink_fini(&sink);
    return 0;
}

int eski_kafka_show(int argc, char **argv) {
    struct show show = {.version = -1, .request = true, .response = true};
    int status = parse(argc, argv, &show);
    if (status != 0)
        return status;
    struct esk_atlas_page page = {pick(&show, ESK_KAFKA_REQUEST), pick(&show, ESK_KAFKA_RESPONSE),
                                  0, 0};
    if (page.request == NULL)
        return show_data(&show);
    int version = show.version < 0 ? page.request->version_stable : show.version;
    if (!esk_kafka_has_version(page.request, version))
        return eski_kafka_misuse("show: %s has no version %d", show.name, version);
    page.request_version = page.response_version = (int16_t)version;
    struct esk_atlas_sink sink;
    esk_atlas_sink_init(&sink, stdout);
    if (show.form == FORM_ALL) {
        esk_atlas_format(&sink, "%s\n\n", page.request->api_name);
        esk_atlas_facts(&page, &sink);
        esk_atlas_text(&sink, "\n");
        esk_atlas_introduction(page.request, page.request_version, &sink);
    }
    const struct esk_kafka_message *sides[] = {show.request ? page.request : NULL,
                                               show.response ? page.response : NULL};
    for (unsigned i = 0; i < 2; i++) {
        if (sides[i] == NULL)
            continue;
        if (show.form == FORM_ALL)
            esk_atlas_text(&sink, i == 0 ? "\nRequest\n\n" : "\nResponse\n\n");
        show_one(sides[i], (int16_t)version, show.form, &sink);
    }
    esk_atlas_sink_fini(&sink);
    return 0;
}
