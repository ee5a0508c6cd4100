/* SPDX-License-Identifier: Apache-2.0 */
/* The text of --help, from the table of options, and which option a mistyped name may mean. */
#include "base/command_line.h"
#include "esker/options_private.h"

#include <string.h>

#define HELP_COLUMN 34 /* where the meaning begins */
#define DISTANCE_MAX 3 /* edits up to which a name counts as mistyped */

enum esk_option eski_option_nearest(struct esk_slice name) {
    while (name.size > 0 && name.data[0] == '-') {
        name.data++;
        name.size--;
    }
    enum esk_option nearest = (enum esk_option)ESK_OPTION_COUNT;
    unsigned best = DISTANCE_MAX + 1;
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        const char *known = esk_option_table[i].name;
        unsigned distance = esk_unlike(name, known);
        if (distance < best && distance < strlen(known)) {
            best = distance;
            nearest = (enum esk_option)i;
        }
    }
    return nearest;
}

static void append_option(struct esk_buffer *out, const struct esk_option_description *option) {
    size_t line = out->size;
    esk_buffer_format(out, "  --%s", option->name);
    if (option->value) {
        esk_buffer_format(out, " %s", option->value);
    }
    const struct esk_help_meaning meaning = {option->help, option->min_text, option->max_text,
                                             option->default_meaning, NULL};
    esk_help_meaning(out, line, HELP_COLUMN, &meaning);
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
