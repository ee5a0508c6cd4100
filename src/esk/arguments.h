/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of esk, read by the table that definitions/esk.toml describes. Pure; texts are
 * borrowed from argv and the table. */
#ifndef ESK_ESK_ARGUMENTS_H
#define ESK_ESK_ARGUMENTS_H

#include "base/error.h"
#include "esk/command_table.h"

/* What was given for one option. */
struct esk_tool_value {
    const char *text;   /* the last one given, else the default; NULL: neither */
    uint64_t number;    /* of the types that have one; 1: the flag is set */
    const char **texts; /* all that were given, in their order; owned */
    uint32_t count;     /* how many; 0: the default counts */
};

struct esk_arguments {
    const struct esk_tool_command *command; /* NULL: none was named */
    const char **arguments;                 /* without the command's words; owned */
    uint32_t count;
    int passed_on; /* of a command that passes on: where in argv it stands */
    struct esk_tool_value values[ESK_TOOL_OPTIONS_MAX]; /* global ones first */
};

/* argv[0] is skipped. ESK_ERR_INVALID: the text says what is wrong and what is allowed; how many
 * arguments there must be is not checked when --help is set. To be freed in either case. A command
 * of two words of which only the first is there gives no command and that word as argument. */
enum esk_err esk_arguments_parse(struct esk_arguments *arguments, int argc, char *const *argv,
                                 struct esk_error *error);
void esk_arguments_fini(struct esk_arguments *arguments);

/* An option of the command or of all; the name must be in the table. */
const struct esk_tool_value *esk_arguments_value(const struct esk_arguments *arguments,
                                                 const char *name);
static inline const char *esk_arguments_text(const struct esk_arguments *arguments,
                                             const char *name) {
    return esk_arguments_value(arguments, name)->text;
}
static inline uint64_t esk_arguments_number(const struct esk_arguments *arguments,
                                            const char *name) {
    return esk_arguments_value(arguments, name)->number;
}
static inline bool esk_arguments_given(const struct esk_arguments *arguments, const char *name) {
    return esk_arguments_value(arguments, name)->count > 0;
}

/* Whether a command's name begins with that word. */
bool esk_command_is_of(const struct esk_tool_command *command, const char *word);
/* The command of those words (one, or two), or NULL. */
const struct esk_tool_command *esk_command_find(const char *first, const char *second);

/* Digits and perhaps a unit that the type knows; false: neither that nor within 64 bits. */
bool esk_number_read(const char *text, enum esk_tool_type type, uint64_t *number);

#endif
