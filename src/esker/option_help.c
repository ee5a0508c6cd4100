/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --help, from the table of options, and which option a mistyped name may mean. */
#include "esker/options_private.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 100      /* columns of a line, as far as words allow */
#define HELP_COLUMN 34 /* where the meaning begins */
#define NAME_BYTES 64  /* longer names are like none */
#define DISTANCE_MAX 3 /* edits up to which a name counts as mistyped */

/* The edits (a letter added, dropped or changed) that make one name of the other. */
static unsigned edit_distance(struct esk_slice a, const char *b) {
    unsigned row[NAME_BYTES + 1];
    size_t columns = strlen(b);
    for (unsigned i = 0; i <= columns; i++) {
        row[i] = i;
    }
    for (size_t i = 0; i < a.size; i++) {
        unsigned diagonal = row[0]++;
        for (size_t k = 0; k < columns; k++) {
            unsigned changed = diagonal + (a.data[i] != (uint8_t)b[k]);
            unsigned shorter = row[k] + 1 < row[k + 1] + 1 ? row[k] + 1 : row[k + 1] + 1;
            diagonal = row[k + 1];
            row[k + 1] = changed < shorter ? changed : shorter;
        }
    }
    return row[columns];
}

enum esk_option eski_option_nearest(struct esk_slice name) {
    while (name.size > 0 && name.data[0] == '-') {
        name.data++;
        name.size--;
    }
    enum esk_option nearest = (enum esk_option)ESK_OPTION_COUNT;
    if (name.size == 0 || name.size > NAME_BYTES) {
        return nearest;
    }
    unsigned best = DISTANCE_MAX + 1;
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        const char *known = esk_option_table[i].name;
        bool begins = strncmp(known, (const char *)name.data, name.size) == 0;
        unsigned distance = begins ? 1 : edit_distance(name, known);
        if (distance < best && distance < strlen(known)) {
            best = distance;
            nearest = (enum esk_option)i;
        }
    }
    return nearest;
}

/* Appends words, in lines that begin at HELP_COLUMN; *column is where the line stands. */
static void append_words(struct esk_buffer *out, const char *text, size_t *column) {
    while (*text) {
        size_t size = strcspn(text, " ");
        if (*column + 1 + size > WIDTH) {
            esk_buffer_format(out, "\n%*s", HELP_COLUMN, "");
            *column = HELP_COLUMN;
        } else if (*column > HELP_COLUMN) {
            esk_buffer_append_text(out, " ");
            *column += 1;
        }
        esk_buffer_append(out, text, size);
        *column += size;
        text += size + strspn(text + size, " ");
    }
}

static void append_option(struct esk_buffer *out, const struct esk_option_description *option) {
    size_t before = out->size;
    esk_buffer_format(out, "  --%s", option->name);
    if (option->value) {
        esk_buffer_format(out, " %s", option->value);
    }
    size_t column = out->size - before;
    if (column + 2 > HELP_COLUMN) {
        esk_buffer_append_text(out, "\n");
        column = 0;
    }
    esk_buffer_format(out, "%*s", (int)(HELP_COLUMN - column), "");
    column = HELP_COLUMN;
    append_words(out, option->help, &column);
    char range[160] = "";
    if (option->min_text) {
        snprintf(range, sizeof(range), "(%s to %s; default: %s)", option->min_text,
                 option->max_text, option->default_meaning);
    } else if (option->default_meaning) {
        snprintf(range, sizeof(range), "(default: %s)", option->default_meaning);
    }
    append_words(out, range, &column);
    esk_buffer_append_text(out, "\n");
}

void esk_options_help(struct esk_buffer *out) {
    esk_buffer_append_text(
        out,
        "Usage: esker [--option VALUE | --option=VALUE]...\n\n"
        "The broker of Esker, an event-streaming log.\n\n"
        "Each option is also an environment variable (--data-dir is ESKER_DATA_DIR) and a line of "
        "the\n"
        "file that --config names (data-dir = /var/lib/esker). The command line goes before the\n"
        "environment, that before the file. Times: 500ms 10s 5m 1h 7d. Sizes: bytes, or a number "
        "with\n"
        "kB MB GB KiB MiB GiB.\n");
    const char *group = "";
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        const struct esk_option_description *option = &esk_option_table[i];
        if (strcmp(group, option->group) != 0) {
            group = option->group;
            esk_buffer_format(out, "\n%s\n", group);
        }
        append_option(out, option);
    }
    esk_buffer_append_text(out,
                           "\nExit codes: 0 after a clean stop, 1 after a failure, 2 for a wrong "
                           "option.\n");
}

void esk_options_version(struct esk_buffer *out) {
#ifdef ESK_TEST_HOOKS
    esk_buffer_append_text(out, "esker " ESK_VERSION ", with test hooks\n");
#else
    esk_buffer_append_text(out, "esker " ESK_VERSION "\n");
#endif
}
