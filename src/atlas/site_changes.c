/* SPDX-License-Identifier: Apache-2.0 */
/* What a version has that the one before has not, and the reverse, found by comparing layouts. */
#include "atlas/site_private.h"

#include <stdio.h>
#include <string.h>

struct changes {
    struct esk_atlas_sink *sink;
    unsigned count;
};

#define PATH_BYTES 256

static unsigned op_count(const struct esk_kafka_layout *layout) {
    return (unsigned)layout->plain_count + layout->tagged_count;
}

static const struct esk_kafka_op *same_field(const struct esk_kafka_layout *layout,
                                             const struct esk_kafka_field *field) {
    for (unsigned i = 0; i < op_count(layout); i++)
        if (layout->ops[i].field == field)
            return &layout->ops[i];
    return NULL;
}

static void item(struct changes *c, const char *what, const char *path, const char *name,
                 const char *more) {
    if (c->count++ == 0)
        esk_atlas_text(c->sink, "<ul class=\"changes\">\n");
    esk_atlas_text(c->sink, "<li>");
    esk_atlas_text(c->sink, what);
    esk_atlas_text(c->sink, " <code>");
    esk_atlas_html(c->sink, path);
    esk_atlas_html(c->sink, name);
    esk_atlas_text(c->sink, "</code>");
    esk_atlas_text(c->sink, more);
    esk_atlas_text(c->sink, "</li>\n");
}

static void compare(struct changes *c, const struct esk_kafka_layout *before,
                    const struct esk_kafka_layout *after, const char *path) {
    for (unsigned i = 0; i < op_count(before); i++)
        if (same_field(after, before->ops[i].field) == NULL)
            item(c, "gone:", path, before->ops[i].field->name, "");
    for (unsigned i = 0; i < op_count(after); i++) {
        const struct esk_kafka_op *now = &after->ops[i];
        const struct esk_kafka_op *old = same_field(before, now->field);
        if (old == NULL) {
            item(c, "new:", path, now->field->name,
                 now->flags & ESK_KAFKA_TAGGED ? ", a tagged field" : "");
            continue;
        }
        if ((now->flags ^ old->flags) & ESK_KAFKA_NULLABLE)
            item(c, now->flags & ESK_KAFKA_NULLABLE ? "may be null now:" : "no longer null:", path,
                 now->field->name, "");
        if ((now->flags ^ old->flags) & ESK_KAFKA_TAGGED)
            item(c, "moved into the tagged fields:", path, now->field->name, "");
        if (now->layout != NULL && now->layout != old->layout) {
            char below[PATH_BYTES];
            bool array = now->kind != ESK_KAFKA_STRUCT;
            snprintf(below, sizeof(below), "%.200s%.40s%s.", path, now->field->name,
                     array ? "[]" : "");
            compare(c, old->layout, now->layout, below);
        }
    }
}

void eski_site_changes(const struct esk_kafka_message *message, int16_t version,
                       struct esk_atlas_sink *sink) {
    if (version == message->version_min)
        return;
    const struct esk_kafka_layout *before = esk_kafka_layout_of(message, (int16_t)(version - 1));
    const struct esk_kafka_layout *after = esk_kafka_layout_of(message, version);
    struct changes changes = {sink, 0};
    esk_atlas_format(sink, "<h3>changes since v%d</h3>\n", version - 1);
    if (before->flexible != after->flexible)
        item(&changes, "flexible from here on:", "", "tagged_fields",
             " end each struct, lengths are compact");
    compare(&changes, before, after, "");
    esk_atlas_text(sink,
                   changes.count > 0 ? "</ul>\n" : "<p>The bytes are laid out the same.</p>\n");
}
