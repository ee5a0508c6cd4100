/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/tree.h"
#include "atlas/row.h"

#include <string.h>

#define COLUMNS 4 /* that are padded: name, type, value, range */
#define COLUMN_GAP 2
#define COLUMN_CHARS_MAX 400 /* wider cells push the rest of their own row only */

struct tree {
    const struct esk_atlas_input *input;
    struct esk_atlas_sink *sink; /* NULL in the measuring walk */
    size_t value_chars_max;
    size_t widths[COLUMNS];
    struct esk_buffer cells[COLUMNS];
};

static size_t characters(const struct esk_buffer *text) {
    size_t count = 0;
    for (size_t i = 0; i < text->size; i++)
        count += (text->data[i] & 0xc0) != 0x80;
    return count;
}

/* Connectors: an ancestor below the root that has later siblings leaves a bar. */
static void put_connectors(const struct esk_kafka_node *node, struct esk_buffer *text) {
    if (node->parent == NULL)
        return;
    put_connectors(node->parent, text);
    if (node->parent->parent != NULL)
        esk_buffer_append_text(text, node->parent->last ? "    " : "|   ");
}

static void make_cells(struct tree *tree, const struct esk_kafka_node *node) {
    for (unsigned i = 0; i < COLUMNS; i++)
        tree->cells[i].size = 0;
    put_connectors(node, &tree->cells[0]);
    if (node->parent != NULL)
        esk_buffer_append_text(&tree->cells[0], "+-- ");
    esk_atlas_row_name(tree->input, node, &tree->cells[0]);
    esk_atlas_row_type(tree->input, node, &tree->cells[1]);
    esk_atlas_row_value(tree->input, node, tree->value_chars_max, &tree->cells[2]);
    esk_buffer_format(&tree->cells[3], "[%s0x%04zx, %zuB]", node->inflated ? "+" : "",
                      node->position, node->size);
}

/* `count` more than the gap between columns. */
static void put_spaces(struct esk_atlas_sink *sink, size_t count) {
    static const char spaces[] = "                                ";
    for (count += COLUMN_GAP; count > 0;) {
        size_t part = count < sizeof(spaces) - 1 ? count : sizeof(spaces) - 1;
        esk_atlas_put(sink, spaces, part);
        count -= part;
    }
}

static void print_row(struct tree *tree, const char *about) {
    char line_end[ESK_ATLAS_ABOUT_CHARS + 1];
    unsigned last = about[0] ? COLUMNS : 3; /* the range is never empty */
    for (unsigned i = 0; i < COLUMNS; i++) {
        esk_atlas_put(tree->sink, tree->cells[i].data, tree->cells[i].size);
        size_t width = characters(&tree->cells[i]);
        if (i < last)
            put_spaces(tree->sink, width < tree->widths[i] ? tree->widths[i] - width : 0);
    }
    if (strlen(about) > ESK_ATLAS_ABOUT_CHARS) {
        memcpy(line_end, about, ESK_ATLAS_ABOUT_CHARS - 3);
        strcpy(line_end + ESK_ATLAS_ABOUT_CHARS - 3, "...");
        about = line_end;
    }
    esk_atlas_text(tree->sink, about);
    esk_atlas_put(tree->sink, "\n", 1);
}

static void on_row(void *context, const struct esk_kafka_node *node) {
    struct tree *tree = context;
    char scratch[64];
    make_cells(tree, node);
    if (tree->sink != NULL) {
        print_row(tree, esk_atlas_row_about(tree->input, node, scratch));
        return;
    }
    for (unsigned i = 0; i < COLUMNS; i++) {
        size_t width = characters(&tree->cells[i]);
        if (width > tree->widths[i])
            tree->widths[i] = width < COLUMN_CHARS_MAX ? width : COLUMN_CHARS_MAX;
    }
}

bool esk_atlas_tree(const struct esk_atlas_input *input, size_t value_chars_max,
                    struct esk_atlas_sink *sink, struct esk_atlas_problem *problem) {
    struct tree tree = {.input = input, .value_chars_max = value_chars_max};
    for (unsigned i = 0; i < COLUMNS; i++)
        esk_buffer_init(&tree.cells[i]);
    struct esk_kafka_visitor visitor = {
        .context = &tree, .measure = true, .open = on_row, .value = on_row};
    esk_atlas_walk(input, &visitor, problem);
    tree.sink = sink;
    bool good = esk_atlas_walk(input, &visitor, problem);
    for (unsigned i = 0; i < COLUMNS; i++)
        esk_buffer_fini(&tree.cells[i]);
    return good;
}

struct warnings {
    const char *prefix;
    struct esk_atlas_sink *sink;
    size_t count;
};

static void on_warning(void *context, const struct esk_kafka_node *parent,
                       const struct esk_kafka_field *field, size_t position, const char *text) {
    struct warnings *warnings = context;
    char path[ESK_KAFKA_PROBLEM_BYTES];
    esk_kafka_path(parent, field, path, sizeof(path));
    esk_atlas_format(warnings->sink, "%soffset 0x%04zx: %s%s%s\n", warnings->prefix, position, path,
                     path[0] ? ": " : "", text);
    warnings->count++;
}

size_t esk_atlas_warnings(const struct esk_atlas_input *input, const char *prefix,
                          struct esk_atlas_sink *sink) {
    struct warnings warnings = {prefix, sink, 0};
    struct esk_kafka_visitor visitor = {.context = &warnings, .warn = on_warning};
    esk_atlas_walk(input, &visitor, NULL);
    return warnings.count;
}
