/* SPDX-License-Identifier: Apache-2.0 */
/* One API's page: facts, and for each version of request and response the bytes and the tree. */
#include "atlas/row.h"
#include "atlas/site_private.h"
#include "atlas/smallest.h"

#include <stdlib.h>
#include <string.h>

#define ROW_BYTES 16

struct version {
    const struct esk_atlas_input *input;
    struct esk_atlas_sink *sink;
    char prefix[12]; /* of ids: q or s, and the version */
    char *kinds;     /* a letter per byte, as in atlas.css */
    struct esk_buffer text;
};

/* Which of the seven kinds of bytes a value is. */
static char kind_of(const struct esk_atlas_input *input, const struct esk_kafka_node *node) {
    if (node->part == ESK_KAFKA_PART_TAGS)
        return 't';
    for (; node != NULL; node = node->parent) {
        switch (node->part) {
        case ESK_KAFKA_PART_RECORD:
            return 'r';
        case ESK_KAFKA_PART_BATCH:
            return 'b';
        case ESK_KAFKA_PART_RPC_HEADER:
            return 'h';
        case ESK_KAFKA_PART_FRAME:
            return 'f';
        case ESK_KAFKA_PART_TAG:
            return 't';
        default:
            break;
        }
    }
    return input->message->type == ESK_KAFKA_RESPONSE ? 's' : 'q';
}

static void on_kind(void *context, const struct esk_kafka_node *node) {
    struct version *v = context;
    memset(v->kinds + node->position, kind_of(v->input, node), node->size);
}

static void put_bytes(struct version *v) {
    struct esk_slice bytes = v->input->bytes;
    struct esk_atlas_sink *sink = v->sink;
    struct esk_kafka_visitor visitor = {.context = v, .value = on_kind};
    esk_atlas_walk(v->input, &visitor, NULL);
    esk_atlas_format(sink,
                     "<h3>byte layout (%zu bytes, %d bytes per row)</h3>\n<div class=\"scroll "
                     "grid\" tabindex=\"0\" role=\"group\" aria-label=\"bytes of %s v%d; arrow "
                     "keys move\"><table class=\"bytes\"><thead><tr><td></td>",
                     bytes.size, ROW_BYTES, v->input->message->name, v->input->version);
    for (unsigned i = 0; i < ROW_BYTES; i++)
        esk_atlas_format(sink, "<th scope=\"col\">%X</th>", i);
    esk_atlas_text(sink, "</tr></thead><tbody>");
    for (size_t at = 0; at < bytes.size; at++) {
        if (at % ROW_BYTES == 0)
            esk_atlas_format(sink, "%s\n<tr><th scope=\"row\">%04zx</th>", at ? "</tr>" : "", at);
        esk_atlas_format(sink, "<td id=\"%s-%zx\" class=\"%c\">%02x</td>", v->prefix, at,
                         v->kinds[at], bytes.data[at]);
    }
    esk_atlas_text(sink, "</tr></tbody></table></div>\n<p class=\"where\" aria-live=\"polite\">"
                         "</p>\n");
}

static void put_connectors(struct esk_atlas_sink *sink, const struct esk_kafka_node *node) {
    if (node->parent == NULL)
        return;
    put_connectors(sink, node->parent);
    if (node->parent->parent != NULL)
        esk_atlas_text(sink, node->parent->last ? "    " : "|   ");
}

static void on_row(void *context, const struct esk_kafka_node *node) {
    struct version *v = context;
    char scratch[64];
    esk_atlas_format(v->sink, "<tr data-o=\"%zu\" data-s=\"%zu\"><th scope=\"row\">",
                     node->position, node->size);
    put_connectors(v->sink, node);
    if (node->parent != NULL)
        esk_atlas_text(v->sink, "+-- ");
    v->text.size = 0;
    esk_atlas_row_name(v->input, node, &v->text);
    esk_atlas_html_bytes(v->sink, esk_buffer_slice(&v->text));
    esk_atlas_text(v->sink, "</th><td>");
    v->text.size = 0;
    esk_atlas_row_type(v->input, node, &v->text);
    esk_atlas_html_bytes(v->sink, esk_buffer_slice(&v->text));
    esk_atlas_text(v->sink, "</td><td>");
    v->text.size = 0;
    esk_atlas_row_value(v->input, node, ESK_ATLAS_VALUE_CHARS, &v->text);
    esk_atlas_html_bytes(v->sink, esk_buffer_slice(&v->text));
    if (node->size > 0) {
        esk_atlas_format(v->sink, "</td><td><a href=\"#%s-%zx\">0x%04zx, %zuB</a></td><td>",
                         v->prefix, node->position, node->position, node->size);
    } else { /* a body without fields: it may lie behind the last byte */
        esk_atlas_format(v->sink, "</td><td>0x%04zx, 0B</td><td>", node->position);
    }
    esk_atlas_html(v->sink, esk_atlas_row_about(v->input, node, scratch));
    esk_atlas_text(v->sink, "</td></tr>\n");
}

static void put_tree(struct version *v) {
    struct esk_kafka_visitor visitor = {
        .context = v, .measure = true, .open = on_row, .value = on_row};
    esk_atlas_format(v->sink,
                     "<h3>object tree</h3>\n<div class=\"scroll\" tabindex=\"0\" role=\"group\" "
                     "aria-label=\"tree of %s v%d\"><table class=\"tree\"><thead><tr>"
                     "<th scope=\"col\">name</th><th scope=\"col\">type</th><th scope=\"col\">value"
                     "</th><th scope=\"col\">bytes</th><th scope=\"col\">description</th></tr>"
                     "</thead><tbody>\n",
                     v->input->message->name, v->input->version);
    esk_atlas_walk(v->input, &visitor, NULL);
    esk_atlas_text(v->sink, "</tbody></table></div>\n");
}

static void put_version(const struct esk_kafka_message *message, int16_t version, bool open,
                        struct esk_atlas_sink *sink) {
    struct esk_buffer bytes;
    esk_buffer_init(&bytes);
    esk_atlas_smallest(message, version, &bytes);
    struct esk_atlas_input input = {message, version, esk_buffer_slice(&bytes)};
    struct version v = {.input = &input, .sink = sink, .kinds = esk_alloc(bytes.size)};
    esk_buffer_init(&v.text);
    bool response = message->type == ESK_KAFKA_RESPONSE;
    snprintf(v.prefix, sizeof(v.prefix), "%c%d", response ? 's' : 'q', version);
    esk_atlas_format(sink, "<details class=\"version\" name=\"%s\"%s><summary>",
                     response ? "response" : "request", open ? " open" : "");
    esk_atlas_caption(message, version, bytes.size, sink);
    esk_atlas_text(sink, version > message->version_stable ? " (unstable)" : "");
    esk_atlas_format(sink, "</summary>\n<p id=\"%s\">", v.prefix);
    esk_atlas_introduction(message, version, sink);
    esk_atlas_text(sink, "</p>\n");
    eski_site_changes(message, version, sink);
    put_bytes(&v);
    put_tree(&v);
    esk_atlas_text(sink, "</details>\n");
    esk_buffer_fini(&v.text);
    esk_buffer_fini(&bytes);
    free(v.kinds);
}

static void put_message(const struct esk_kafka_message *message, struct esk_atlas_sink *sink) {
    bool response = message->type == ESK_KAFKA_RESPONSE;
    esk_atlas_format(sink,
                     "<section>\n<h2>%s</h2>\n<nav class=\"versions\" aria-label=\"versions "
                     "of the %s\">",
                     response ? "Response" : "Request", response ? "response" : "request");
    for (int version = message->version_min; version <= message->version_max; version++)
        esk_atlas_format(sink, "<a href=\"#%c%d\">v%d</a>\n", response ? 's' : 'q', version,
                         version);
    esk_atlas_text(sink, "</nav>\n");
    for (int version = message->version_max; version >= message->version_min; version--)
        put_version(message, (int16_t)version, version == message->version_stable, sink);
    esk_atlas_text(sink, "<h3>message schema</h3>\n<pre tabindex=\"0\">");
    esk_atlas_html(sink, message->schema);
    esk_atlas_text(sink, "</pre>\n</section>\n");
}

static void put_facts(const struct esk_atlas_page *page, struct esk_atlas_sink *sink) {
    struct esk_atlas_sink facts;
    esk_atlas_sink_init(&facts, NULL);
    esk_atlas_facts(page, &facts);
    esk_buffer_u8(&facts.buffer, '\0');
    esk_atlas_text(sink, "<dl class=\"facts\">\n");
    char *save = NULL;
    for (char *line = strtok_r((char *)facts.buffer.data, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        char *colon = strchr(line, ':');
        *colon = '\0';
        esk_atlas_text(sink, "<div><dt>");
        esk_atlas_html(sink, line);
        esk_atlas_text(sink, "</dt><dd>");
        esk_atlas_html(sink, colon + 2);
        esk_atlas_text(sink, "</dd></div>\n");
    }
    esk_atlas_text(sink, "</dl>\n");
    esk_atlas_sink_fini(&facts);
}

void eski_site_page(const struct esk_kafka_message *request,
                    const struct esk_kafka_message *response, struct esk_atlas_sink *sink) {
    static const struct {
        char letter;
        const char *name;
    } kinds[] = {{'f', "frame"},        {'h', "rpc header"}, {'q', "request body"},
                 {'b', "RecordBatch"},  {'r', "Record"},     {'s', "response body"},
                 {'t', "tagged_fields"}};
    struct esk_atlas_page page = {request, response, request->version_stable,
                                  response->version_stable};
    /* InitProducerId: only the request says which version is unstable. */
    if (page.response_version > page.request_version)
        page.response_version = page.request_version;
    char title[120];
    snprintf(title, sizeof(title), "%s: Kafka API %d", request->api_name, request->api_key);
    eski_site_head(sink, title, "atlas.js");
    esk_atlas_format(sink,
                     "<nav aria-label=\"site\"><a href=\"index.html\">All Kafka APIs</a></nav>\n"
                     "<main>\n<h1>%s</h1>\n",
                     request->api_name);
    if (request->removed)
        esk_atlas_text(sink, "<p>These versions were removed in Kafka 4.0; Kafka 3.9 was the last "
                             "to speak them.</p>\n");
    put_facts(&page, sink);
    esk_atlas_text(sink, "<p>Kafka releases that speak it: ");
    esk_atlas_releases(request, ", ", sink);
    esk_atlas_text(sink, "</p>\n<ul class=\"legend\" aria-label=\"kinds of bytes\">");
    for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        esk_atlas_format(sink, "<li class=\"%c\">%s</li>", kinds[i].letter, kinds[i].name);
    esk_atlas_text(sink, "</ul>\n");
    put_message(request, sink);
    put_message(response, sink);
    esk_atlas_text(sink, "</main>\n</body>\n</html>\n");
}
