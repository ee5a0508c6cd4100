/* SPDX-License-Identifier: Apache-2.0 */
/* The options of esker: definitions/options.toml says which there are. Values come from the command
 * line, else the environment, else the file that --config names, else the default.
 *
 * The file holds one option a line, `name = value`, the name without dashes; spaces around both do
 * not count, blank lines and lines that begin with # are skipped, and so no value begins or ends
 * with a space. It is at most 64 KiB. An empty environment variable counts as not set. */
#ifndef ESK_ESKER_OPTIONS_H
#define ESK_ESKER_OPTIONS_H

#include "base/error.h"
#include "base/memory.h"
#include "esker/option_table.h"

struct esk_option_value {
    char *text; /* as given, or the default; NULL: automatic, or a flag; owned */
    uint64_t
        number; /* of the types that have one: bytes, milliseconds, index; 1: the flag is set */
};

struct esk_options {
    struct esk_option_value values[ESK_OPTION_COUNT];
};

/* argv[0] is skipped; environment as environ(7). ESK_ERR_INVALID: the text says which option, where
 * it was given, why it is wrong and what is allowed. The options are to be freed in either case. */
enum esk_err esk_options_parse(struct esk_options *options, int argc, char *const *argv,
                               char *const *environment, struct esk_error *error);
void esk_options_fini(struct esk_options *options);

/* What --help and --version show. */
void esk_options_help(struct esk_buffer *out);
void esk_options_version(struct esk_buffer *out);

#endif
