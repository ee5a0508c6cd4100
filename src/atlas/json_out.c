/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/json_out.h"
#include "wire/kafka/codec.h"

#include <stdio.h>
#include <string.h>

struct printer {
    const struct esk_atlas_input *input;
    struct esk_atlas_sink *sink;
    unsigned muted;     /* > 0: inside a tagged field that is left out */
    bool tags_repeated; /* some struct has a known tag twice: only its last one counts */
};

static const char *json_name(const struct esk_kafka_node *node) {
    return node->field->json_name;
}

/* --- tagged sections --- */

struct last_of_tag {
    const struct esk_kafka_node *section;
    uint32_t tag;
    size_t position;
};

static bool belongs_to(const struct esk_kafka_node *tag) {
    return tag->parent != NULL && tag->parent->parent == NULL;
}

static void remember_last(void *context, const struct esk_kafka_node *node) {
    struct last_of_tag *last = context;
    if (node->part == ESK_KAFKA_PART_TAG && belongs_to(node) && node->index == last->tag)
        last->position = node->position;
}

/* Walks a section again by itself, its node as the root. */
static void walk_section(const struct printer *p, const struct esk_kafka_node *section,
                         const struct esk_kafka_visitor *visitor) {
    struct esk_kafka_scan scan;
    const struct esk_slice all = p->input->bytes;
    esk_kafka_scan_init(
        &scan, esk_slice(all.data + section->position, all.size - section->position), visitor);
    scan.shallow_records = true;
    esk_kafka_scan_tags(&scan, section->layout, NULL);
    esk_kafka_scan_fini(&scan);
}

static bool repeated_later(const struct printer *p, const struct esk_kafka_node *tag) {
    if (!p->tags_repeated)
        return false;
    struct last_of_tag last = {tag->parent, (uint32_t)tag->index, 0};
    struct esk_kafka_visitor visitor = {.context = &last, .open = remember_last};
    walk_section(p, tag->parent, &visitor);
    return tag->parent->position + last.position != tag->position;
}

/* Whether a known tag carries its default, judged by its bytes. */
static bool carries_default(const struct printer *p, const struct esk_kafka_node *tag) {
    struct esk_buffer standard;
    struct esk_kafka_scan scan;
    esk_buffer_init(&standard);
    esk_kafka_encode_default(tag->op, tag->parent->layout, &standard);
    esk_kafka_scan_init(&scan, esk_slice(p->input->bytes.data + tag->position, tag->size), NULL);
    size_t skip = 0;
    for (unsigned varints = 0; varints < 2; skip++) /* its number and its size */
        varints += scan.start[skip] < 0x80;
    bool same = esk_slice_equal(esk_slice(scan.start + skip, tag->size - skip),
                                esk_buffer_slice(&standard));
    esk_kafka_scan_fini(&scan);
    esk_buffer_fini(&standard);
    return same;
}

struct unknown {
    struct esk_atlas_sink *sink;
    bool any;
};

static void print_unknown(void *context, const struct esk_kafka_node *node) {
    struct unknown *unknown = context;
    if (node->part != ESK_KAFKA_PART_UNKNOWN || !belongs_to(node->parent))
        return;
    if (!unknown->any) {
        esk_atlas_json_key(unknown->sink, "unknownTaggedFields");
        esk_atlas_json_open(unknown->sink, '[');
        unknown->any = true;
    }
    esk_atlas_json_open(unknown->sink, '{');
    esk_atlas_json_key(unknown->sink, "tag");
    esk_atlas_json_int(unknown->sink, node->integer);
    esk_atlas_json_key(unknown->sink, "data");
    esk_atlas_json_base64(unknown->sink, node->bytes);
    esk_atlas_json_close(unknown->sink, '}');
}

static void print_unknown_tags(const struct printer *p, const struct esk_kafka_node *section) {
    struct unknown unknown = {p->sink, false};
    struct esk_kafka_visitor visitor = {
        .context = &unknown, .opaque_records = true, .value = print_unknown};
    walk_section(p, section, &visitor);
    if (unknown.any)
        esk_atlas_json_close(p->sink, ']');
}

/* --- values --- */

static void print_scalar(struct esk_atlas_sink *sink, const struct esk_kafka_node *node) {
    char uuid[ESK_ATLAS_UUID_CHARS + 1];
    switch (node->kind) {
    case ESK_KAFKA_BOOL:
        esk_atlas_json_word(sink, node->integer ? "true" : "false");
        break;
    case ESK_KAFKA_FLOAT64:
        esk_atlas_json_real(sink, node->real);
        break;
    case ESK_KAFKA_UUID:
        esk_atlas_uuid_text(node->bytes, uuid);
        esk_atlas_json_string(sink, esk_slice_text(uuid));
        break;
    case ESK_KAFKA_STRING:
    case ESK_KAFKA_COMPACT_STRING:
        esk_atlas_json_string(sink, node->bytes);
        break;
    case ESK_KAFKA_BYTES:
    case ESK_KAFKA_COMPACT_BYTES:
    case ESK_KAFKA_RECORDS:
    case ESK_KAFKA_COMPACT_RECORDS:
        esk_atlas_json_base64(sink, node->bytes);
        break;
    default:
        esk_atlas_json_int(sink, node->integer);
        break;
    }
}

static void on_value(void *context, const struct esk_kafka_node *node) {
    struct printer *p = context;
    if (p->muted > 0)
        return;
    switch (node->part) {
    case ESK_KAFKA_PART_FIELD:
        esk_atlas_json_key(p->sink, json_name(node));
        print_scalar(p->sink, node);
        break;
    case ESK_KAFKA_PART_ELEMENT:
        print_scalar(p->sink, node);
        break;
    case ESK_KAFKA_PART_LENGTH:
        if (node->parent->part == ESK_KAFKA_PART_TAGS)
            break;
        if (node->integer < 0)
            esk_atlas_json_word(p->sink, "null");
        else
            esk_atlas_json_open(p->sink, '[');
        break;
    case ESK_KAFKA_PART_PRESENT:
        if (node->parent->null)
            esk_atlas_json_word(p->sink, "null");
        else
            esk_atlas_json_open(p->sink, '{');
        break;
    default:
        break;
    }
}

static void on_open(void *context, const struct esk_kafka_node *node) {
    struct printer *p = context;
    if (p->muted > 0) {
        p->muted++;
        return;
    }
    switch (node->part) {
    case ESK_KAFKA_PART_RPC_HEADER:
        esk_atlas_json_key(p->sink, "header");
        esk_atlas_json_open(p->sink, '{');
        break;
    case ESK_KAFKA_PART_BODY:
        esk_atlas_json_key(p->sink, "body");
        esk_atlas_json_open(p->sink, '{');
        break;
    case ESK_KAFKA_PART_FIELD:
        esk_atlas_json_key(p->sink, json_name(node));
        if (node->kind == ESK_KAFKA_STRUCT && !node->nullable)
            esk_atlas_json_open(p->sink, '{');
        break;
    case ESK_KAFKA_PART_ELEMENT:
        esk_atlas_json_open(p->sink, '{');
        break;
    case ESK_KAFKA_PART_TAG:
        if (node->op == NULL || carries_default(p, node) || repeated_later(p, node))
            p->muted = 1;
        break;
    default:
        break;
    }
}

static void on_close(void *context, const struct esk_kafka_node *node) {
    struct printer *p = context;
    if (p->muted > 0) {
        p->muted--;
        return;
    }
    switch (node->part) {
    case ESK_KAFKA_PART_RPC_HEADER:
    case ESK_KAFKA_PART_BODY:
    case ESK_KAFKA_PART_ELEMENT:
        esk_atlas_json_close(p->sink, '}');
        break;
    case ESK_KAFKA_PART_FIELD:
        if (!node->null)
            esk_atlas_json_close(p->sink, node->kind == ESK_KAFKA_STRUCT ? '}' : ']');
        break;
    case ESK_KAFKA_PART_TAGS:
        print_unknown_tags(p, node);
        break;
    default:
        break;
    }
}

/* --- the line --- */

struct check {
    size_t warnings;
    bool tags_repeated;
};

static void count_warning(void *context, const struct esk_kafka_node *parent,
                          const struct esk_kafka_field *field, size_t position, const char *text) {
    struct check *check = context;
    (void)parent;
    (void)field;
    (void)position;
    check->warnings++;
    check->tags_repeated |= strncmp(text, "a tag that", 10) == 0 || strncmp(text, "tags ", 5) == 0;
}

static void print_warning(void *context, const struct esk_kafka_node *parent,
                          const struct esk_kafka_field *field, size_t position, const char *text) {
    char path[ESK_KAFKA_PROBLEM_BYTES];
    char line[ESK_KAFKA_PROBLEM_BYTES + 160];
    esk_kafka_path(parent, field, path, sizeof(path));
    snprintf(line, sizeof(line), "%s%s%s (offset %zu)", path, path[0] ? ": " : "", text, position);
    esk_atlas_json_string(context, esk_slice_text(line));
}

void esk_atlas_json_problem(const struct esk_atlas_problem *problem, struct esk_atlas_sink *sink) {
    sink->comma = false;
    esk_atlas_json_open(sink, '{');
    esk_atlas_json_key(sink, "ok");
    esk_atlas_json_word(sink, "false");
    esk_atlas_json_key(sink, "error");
    esk_atlas_json_string(sink, esk_slice_text(problem->text));
    esk_atlas_json_key(sink, "offset");
    esk_atlas_json_int(sink, (int64_t)problem->offset);
    esk_atlas_json_close(sink, '}');
    esk_atlas_text(sink, "\n");
}

bool esk_atlas_json_line(const struct esk_atlas_input *input, struct esk_atlas_sink *sink) {
    struct check check = {0, false};
    struct esk_kafka_visitor checker = {.context = &check, .warn = count_warning};
    struct esk_atlas_problem problem;
    if (!esk_atlas_walk(input, &checker, &problem)) {
        esk_atlas_json_problem(&problem, sink);
        return false;
    }
    struct printer printer = {input, sink, 0, check.tags_repeated};
    struct esk_kafka_visitor visitor = {.context = &printer,
                                        .measure = true,
                                        .opaque_records = true,
                                        .open = on_open,
                                        .close = on_close,
                                        .value = on_value};
    sink->comma = false;
    esk_atlas_json_open(sink, '{');
    esk_atlas_json_key(sink, "ok");
    esk_atlas_json_word(sink, "true");
    if (input->message == NULL) {
        esk_atlas_json_key(sink, "body");
        eski_json_batches(input, sink);
    } else {
        esk_atlas_walk(input, &visitor, &problem);
    }
    if (check.warnings > 0 ||
        (input->message != NULL && input->message->type <= ESK_KAFKA_RESPONSE)) {
        struct esk_kafka_visitor warner = {.context = sink, .warn = print_warning};
        esk_atlas_json_key(sink, "warnings");
        esk_atlas_json_open(sink, '[');
        if (check.warnings > 0)
            esk_atlas_walk(input, &warner, &problem);
        esk_atlas_json_close(sink, ']');
    }
    esk_atlas_json_close(sink, '}');
    esk_atlas_text(sink, "\n");
    return true;
}
