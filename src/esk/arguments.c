/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a command line in two steps: which command it is, then its options and arguments. */
#include "esk/arguments.h"

#include "base/assert.h"
#include "base/checked.h"
#include "base/command_line.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool esk_number_read(const char *text, enum esk_tool_type type, uint64_t *number) {
    return esk_quantity_read(text,
                             type == ESK_TOOL_SIZE       ? ESK_QUANTITY_BYTES
                             : type == ESK_TOOL_DURATION ? ESK_QUANTITY_MS
                                                         : ESK_QUANTITY_COUNT,
                             number);
}

/* A duration may come without a unit, too. */
static bool read_seconds(const char *text, uint64_t *ms) {
    uint64_t seconds;
    return esk_quantity_read(text, ESK_QUANTITY_COUNT, &seconds) &&
           !ESK_MULTIPLY_OVERFLOWS(seconds, 1000, ms);
}

bool esk_command_is_of(const struct esk_tool_command *command, const char *word) {
    size_t size = strlen(word);
    return strncmp(command->name, word, size) == 0 &&
           (command->name[size] == '\0' || command->name[size] == ' ');
}

const struct esk_tool_command *esk_command_find(const char *first, const char *second) {
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT; i++) {
        const struct esk_tool_command *command = &esk_tool_commands[i];
        const char *space = strchr(command->name, ' ');
        if (esk_command_is_of(command, first) &&
            (!space || (second && strcmp(space + 1, second) == 0))) {
            return command;
        }
    }
    return NULL;
}

/* --- one option --- */

static const struct esk_tool_option *option_at(const struct esk_tool_command *command,
                                               unsigned index) {
    if (index < ESK_TOOL_GLOBAL_COUNT) {
        return &esk_tool_globals[index];
    }
    index -= ESK_TOOL_GLOBAL_COUNT;
    return command && index < command->option_count ? &command->options[index] : NULL;
}

const struct esk_tool_value *esk_arguments_value(const struct esk_arguments *arguments,
                                                 const char *name) {
    const struct esk_tool_option *option;
    for (unsigned i = 0; (option = option_at(arguments->command, i)); i++) {
        if (strcmp(option->name, name) == 0) {
            return &arguments->values[i];
        }
    }
    ESK_ASSERT(option); /* not in the table */
    return NULL;
}

static const char *wrong_value(const struct esk_tool_option *option, const char *text,
                               uint64_t *number) {
    switch (option->type) {
    case ESK_TOOL_INTEGER:
    case ESK_TOOL_SIZE:
    case ESK_TOOL_DURATION:
        if (!esk_number_read(text, option->type, number) &&
            (option->type != ESK_TOOL_DURATION || !read_seconds(text, number))) {
            return option->type == ESK_TOOL_INTEGER ? "not a whole number"
                   : option->type == ESK_TOOL_SIZE
                       ? "not a size (bytes, or kB MB GB KiB MiB GiB behind a whole number)"
                       : "not a duration (a whole number of seconds, or one with ms, s, m, h or d)";
        }
        return *number < option->min ? "too small" : *number > option->max ? "too large" : NULL;
    case ESK_TOOL_CHOICE:
        for (uint64_t i = 0; option->choices[i]; i++) {
            if (strcmp(text, option->choices[i]) == 0) {
                *number = i;
                return NULL;
            }
        }
        return "unknown";
    case ESK_TOOL_TEXT:
    case ESK_TOOL_FLAG:
        break;
    }
    return NULL;
}

static enum esk_err set_value(struct esk_tool_value *value, const struct esk_tool_option *option,
                              const char *text, struct esk_error *error) {
    const char *wrong = wrong_value(option, text, &value->number);
    if (wrong && option->min_text) {
        return esk_fail(error, ESK_ERR_INVALID, "--%s '%s': %s; allowed is %s to %s", option->name,
                        text, wrong, option->min_text, option->max_text);
    }
    if (wrong) {
        return esk_fail(error, ESK_ERR_INVALID, "--%s '%s': %s; allowed is %s", option->name, text,
                        wrong, option->value);
    }
    value->text = text;
    value->texts = esk_realloc(value->texts, (value->count + 1) * sizeof(*value->texts));
    value->texts[value->count++] = text;
    return ESK_OK;
}

/* `size` bytes of what was given, two dashes and a name, name the option. */
static const struct esk_tool_option *find(const struct esk_tool_command *command, const char *given,
                                          size_t size, unsigned *index) {
    const struct esk_tool_option *option;
    for (*index = 0; (option = option_at(command, *index)); ++*index) {
        if (strlen(option->name) == size - 2 && strncmp(option->name, given + 2, size - 2) == 0) {
            return option;
        }
    }
    return NULL;
}

static const struct esk_tool_option *find_letter(const struct esk_tool_command *command,
                                                 char letter, unsigned *index) {
    const struct esk_tool_option *option;
    for (*index = 0; (option = option_at(command, *index)); ++*index) {
        if (option->letter == letter) {
            return option;
        }
    }
    return NULL;
}

static enum esk_err unknown_option(const struct esk_tool_command *command, const char *given,
                                   size_t size, struct esk_error *error) {
    const struct esk_tool_option *option;
    const char *nearest = NULL;
    unsigned best = ESK_UNLIKE_MAX + 1;
    const char *name = command ? command->name : NULL;
    size_t dashes = strspn(given, "-");
    dashes = dashes < size ? dashes : size;
    size_t letters = size - dashes;
    for (unsigned i = 0; (option = option_at(command, i)); i++) {
        unsigned unlike = letters == 1 && given[dashes] == option->name[0]
                              ? 0
                              : esk_unlike(esk_slice(given + dashes, letters), option->name);
        if (unlike < best && unlike < letters) { /* some letter is the same */
            best = unlike;
            nearest = option->name;
        }
    }
    return esk_fail(
        error, ESK_ERR_INVALID, "%.*s: unknown option%s%s%s%s%s; esk %s%s--help shows them",
        (int)size, given, name ? " of esk " : "", name ? name : "", nearest ? ", perhaps --" : "",
        nearest ? nearest : "", nearest ? " is meant" : "", name ? name : "", name ? " " : "");
}

/* Sets an option that takes a value: what is attached to it, else the next argument. */
static enum esk_err take_value(struct esk_arguments *arguments,
                               const struct esk_tool_option *option, unsigned index,
                               const char *attached, int argc, char *const *argv, int *at,
                               struct esk_error *error) {
    if (!attached && *at + 1 >= argc) {
        return esk_fail(error, ESK_ERR_INVALID, "--%s: its value is missing (%s)", option->name,
                        option->value);
    }
    return set_value(&arguments->values[index], option, attached ? attached : argv[++*at], error);
}

static void set_flag(struct esk_arguments *arguments, unsigned index) {
    arguments->values[index].number = 1;
    arguments->values[index].count = 1;
}

/* Reads letters behind one dash: flags, and at the end perhaps one with a value, which may follow
 * at once or as the next argument. */
static enum esk_err read_letters(struct esk_arguments *arguments, int argc, char *const *argv,
                                 int *at, struct esk_error *error) {
    const char *given = argv[*at];
    for (const char *letter = given + 1; *letter; letter++) {
        unsigned index;
        const struct esk_tool_option *option = find_letter(arguments->command, *letter, &index);
        if (!option && letter == given + 1) {
            return unknown_option(arguments->command, given, strlen(given), error);
        }
        if (!option) {
            char alone[3] = {'-', *letter, '\0'};
            return unknown_option(arguments->command, alone, 2, error);
        }
        if (option->type != ESK_TOOL_FLAG) {
            return take_value(arguments, option, index, letter[1] ? letter + 1 : NULL, argc, argv,
                              at, error);
        }
        set_flag(arguments, index);
    }
    return ESK_OK;
}

/* Reads the option at argv[*at], and its value, which may be the next argument. */
static enum esk_err read_option(struct esk_arguments *arguments, int argc, char *const *argv,
                                int *at, struct esk_error *error) {
    const char *given = argv[*at];
    if (given[1] != '-') {
        return read_letters(arguments, argc, argv, at, error);
    }
    const char *equals = strchr(given, '=');
    size_t size = equals ? (size_t)(equals - given) : strlen(given);
    unsigned index;
    const struct esk_tool_option *option = find(arguments->command, given, size, &index);
    if (!option) {
        return unknown_option(arguments->command, given, size, error);
    }
    if (option->type == ESK_TOOL_FLAG) {
        set_flag(arguments, index);
        return equals ? esk_fail(error, ESK_ERR_INVALID, "--%s: it takes no value", option->name)
                      : ESK_OK;
    }
    return take_value(arguments, option, index, equals ? equals + 1 : NULL, argc, argv, at, error);
}

/* --- the whole line --- */

static bool is_option(const char *text) {
    return text[0] == '-' && text[1] != '\0';
}

/* The command's words are the first arguments that are neither options nor values of global ones;
 * a -- may stand before them. Sets which arguments of argv they are (0: none). Returns the first
 * word where it is no command yet, else NULL. */
static const char *find_command(struct esk_arguments *arguments, int argc, char *const *argv,
                                int words[2]) {
    unsigned found = 0;
    for (int i = 1; i < argc && found < 2; i++) {
        if (!is_option(argv[i])) {
            words[found++] = i;
            if (found == 1 && esk_command_find(argv[i], NULL)) {
                break;
            }
            continue;
        }
        unsigned index;
        const struct esk_tool_option *option =
            argv[i][1] == '-' ? find(NULL, argv[i], strlen(argv[i]), &index) : NULL;
        i += option && option->type != ESK_TOOL_FLAG;
    }
    if (found) {
        arguments->command = esk_command_find(argv[words[0]], found == 2 ? argv[words[1]] : NULL);
    }
    const char *first = found && !arguments->command ? argv[words[0]] : NULL;
    if (!arguments->command) {
        words[0] = words[1] = 0;
    }
    return first;
}

/* Fails with the words that make a command of the first one; what was wrong stays in error where
 * there are none. */
static enum esk_err complete(const char *first, struct esk_error *error) {
    char seconds[200] = "";
    size_t size = 0;
    for (unsigned i = 0; i < ESK_TOOL_COMMAND_COUNT && size < sizeof(seconds); i++) {
        const char *space = strchr(esk_tool_commands[i].name, ' ');
        if (space && esk_command_is_of(&esk_tool_commands[i], first)) {
            size += (size_t)snprintf(seconds + size, sizeof(seconds) - size, "%s%s",
                                     size ? ", " : "", space + 1);
        }
    }
    return size ? esk_fail(error, ESK_ERR_INVALID,
                           "behind %s comes one of: %s; esk help %s says what they do", first,
                           seconds, first)
                : ESK_ERR_INVALID;
}

static enum esk_err check_count(const struct esk_arguments *arguments, struct esk_error *error) {
    const struct esk_tool_command *command = arguments->command;
    if (!command || esk_arguments_number(arguments, "help") ||
        esk_arguments_number(arguments, "version")) {
        return ESK_OK;
    }
    bool few = arguments->count < command->arguments_min;
    if (few || arguments->count > command->arguments_max) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "too %s arguments; usage: esk %s%s%s; esk help %s says more",
                        few ? "few" : "many", command->name, *command->arguments ? " " : "",
                        command->arguments, command->name);
    }
    return ESK_OK;
}

static void set_defaults(struct esk_arguments *arguments) {
    const struct esk_tool_option *option;
    for (unsigned i = 0; (option = option_at(arguments->command, i)); i++) {
        struct esk_tool_value *value = &arguments->values[i];
        if (value->count == 0 && option->default_text) {
            value->text = option->default_text;
            const char *wrong = wrong_value(option, value->text, &value->number);
            ESK_ASSERT(!wrong);
        }
    }
}

enum esk_err esk_arguments_parse(struct esk_arguments *arguments, int argc, char *const *argv,
                                 struct esk_error *error) {
    memset(arguments, 0, sizeof(*arguments));
    int words[2] = {0};
    const char *first = find_command(arguments, argc, argv, words);
    if (arguments->command && arguments->command->passes_on) {
        arguments->passed_on = words[0];
        argc = words[0];
    }
    arguments->arguments = esk_alloc_zeroed((size_t)argc + 1, sizeof(*arguments->arguments));
    bool options_ended = false;
    for (int i = 1; i < argc; i++) {
        if (i == words[0] || i == words[1]) {
            continue;
        }
        if (!options_ended && strcmp(argv[i], "--") == 0) {
            options_ended = true;
        } else if (options_ended || !is_option(argv[i])) {
            arguments->arguments[arguments->count++] = argv[i];
        } else if (read_option(arguments, argc, argv, &i, error) != ESK_OK) {
            return first ? complete(first, error) : ESK_ERR_INVALID;
        }
    }
    set_defaults(arguments);
    return arguments->passed_on ? ESK_OK : check_count(arguments, error);
}

void esk_arguments_fini(struct esk_arguments *arguments) {
    for (unsigned i = 0; i < ESK_TOOL_OPTIONS_MAX; i++) {
        free(arguments->values[i].texts);
    }
    free(arguments->arguments);
    memset(arguments, 0, sizeof(*arguments));
}
