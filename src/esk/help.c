/* SPDX-License-Identifier: Apache-2.0 */
/* Help texts in lines of at most 100 columns. */
#include "esk/help.h"

#include "base/command_line.h"
#include "esk/arguments.h"

#include <string.h>

#define COMMAND_COLUMN 24 /* where a command's summary begins */
#define OPTION_COLUMN 30  /* where an option's meaning begins */

static void append_paragraphs(struct esk_buffer *out, const char *text) {
    char line[1024];
    while (*text) {
        size_t size = strcspn(text, "\n");
        size_t kept = size < sizeof(line) ? size : sizeof(line) - 1;
        memcpy(line, text, kept);
        line[kept] = '\0';
        size_t column = 0;
        esk_help_words(out, line, 0, &column);
        esk_buffer_append_text(out, "\n");
        text += size + (text[size] == '\n');
    }
}

static void append_option(struct esk_buffer *out, const struct esk_tool_option *option) {
    size_t line = out->size;
    if (option->letter) {
        esk_buffer_format(out, "  -%c, --%s", option->letter, option->name);
    } else {
        esk_buffer_format(out, "      --%s", option->name);
    }
    if (option->value) {
        esk_buffer_format(out, " %s", option->value);
    }
    const struct esk_help_meaning meaning = {option->help, option->min_text, option->max_text,
                                             option->default_meaning,
                                             option->repeats ? "(may be repeated)" : NULL};
    esk_help_meaning(out, line, OPTION_COLUMN, &meaning);
}

static void append_globals(struct esk_buffer *out) {
    esk_buffer_append_text(out, "\nOptions of every command:\n");
    for (unsigned i = 0; i < ESK_TOOL_GLOBAL_COUNT; i++) {
        append_option(out, &esk_tool_globals[i]);
    }
}

static void append_summary(struct esk_buffer *out, const struct esk_tool_command *command) {
    esk_buffer_format(out, "  %-*s", COMMAND_COLUMN - 2, command->name);
    size_t column = COMMAND_COLUMN;
    esk_help_words(out, command->summary, COMMAND_COLUMN, &column);
    esk_buffer_append_text(out, "\n");
}

bool esk_help_group(const char *word, struct esk_buffer *out) {
    bool found = false;
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        const struct esk_tool_command *command = &esk_tool_commands[i];
        if (esk_command_is_of(command, word)) {
            if (!found) {
                esk_buffer_format(out, "Usage: esk %s COMMAND ...\n\n", word);
            }
            append_summary(out, command);
            found = true;
        }
    }
    if (found) {
        esk_buffer_append_text(out, "\nesk help COMMAND shows what one takes.\n");
    }
    return found;
}

void esk_help_all(struct esk_buffer *out) {
    esk_buffer_append_text(out, "Usage: esk COMMAND [--option VALUE]... [ARGUMENT]...\n\n"
                                "The command-line tool of Esker, an event-streaming log.\n\n");
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        append_summary(out, &esk_tool_commands[i]);
    }
    append_globals(out);
    esk_buffer_append_text(
        out, "\nesk help COMMAND shows what one takes. Times: 500ms 10s 5m 1h 7d. Sizes: bytes, or "
             "a number with\nkB MB GB KiB MiB GiB.\n\n"
             "Exit codes: 0 done, 1 the broker failed or answered with an error, 2 the command "
             "line is wrong.\n");
}

void esk_help_command(const struct esk_tool_command *command, struct esk_buffer *out) {
    esk_buffer_format(out, "Usage: esk %s%s%s%s\n\n%s\n", command->name,
                      command->option_count ? " [--option VALUE]..." : "",
                      *command->arguments ? " " : "", command->arguments, command->summary);
    append_paragraphs(out, command->detail);
    if (command->option_count) {
        esk_buffer_append_text(out, "\nOptions:\n");
    }
    for (unsigned i = 0; i < command->option_count; i++) {
        append_option(out, &command->options[i]);
    }
    append_globals(out);
    esk_buffer_append_text(out, "\nExamples:\n");
    for (unsigned i = 0; command->examples[i]; i++) {
        esk_buffer_format(out, "  %s\n", command->examples[i]);
    }
}
