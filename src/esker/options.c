/* SPDX-License-Identifier: Apache-2.0 */
/* Collects the options from their sources, the first source that has one deciding: the command line
 * is read first, then the environment, the file, the defaults, and what is set stays. */
#include "esker/options.h"

#include "base/assert.h"
#include "esker/options_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX 65536 /* of --config; see options.h */

enum esk_option eski_option_find(struct esk_slice name) {
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        if (esk_slice_equal(name, esk_slice_text(esk_option_table[i].name))) {
            return (enum esk_option)i;
        }
    }
    return (enum esk_option)ESK_OPTION_COUNT;
}

/* Checks a value and keeps it. `where` is how the message names option and source. */
static enum esk_err set_value(struct esk_options *options, enum esk_option option, const char *text,
                              const char *where, struct esk_error *error) {
    struct esk_option_value *value = &options->values[option];
    uint64_t number = 0;
    enum esk_err err = eski_option_read(&esk_option_table[option], text, &number, error);
    if (err != ESK_OK) {
        esk_wrap(error, "%s '%.100s'", where, text);
        return err;
    }
    /* A source is read only when those before it gave nothing: what is there is of the same one. */
    bool adds = esk_option_table[option].type == ESK_OPTION_TYPE_ORIGIN && value->text;
    char *kept = adds ? esk_text_format("%s %s", value->text, text) : esk_text_copy(text);
    free(value->text);
    value->text = kept;
    value->number = number;
    return ESK_OK;
}

static enum esk_err unknown(const char *where, struct esk_slice name, struct esk_error *error) {
    enum esk_option nearest = eski_option_nearest(name);
    int size = name.size > 100 ? 100 : (int)name.size;
    if ((unsigned)nearest == ESK_OPTION_COUNT) {
        return esk_fail(error, ESK_ERR_INVALID, "%s%.*s: unknown option; esker --help lists all",
                        where, size, (const char *)name.data);
    }
    return esk_fail(error, ESK_ERR_INVALID,
                    "%s%.*s: unknown option, perhaps %s is meant; esker --help lists all", where,
                    size, (const char *)name.data, esk_option_table[nearest].name);
}

/* One argument that begins with --, and the next one, which it may take: then *took is true. */
static enum esk_err read_argument(struct esk_options *options, const char *argument,
                                  const char *next, bool *took, struct esk_error *error) {
    const char *name = argument + 2;
    const char *equals = strchr(name, '=');
    struct esk_slice key = esk_slice(name, equals ? (size_t)(equals - name) : strlen(name));
    enum esk_option option = eski_option_find(key);
    *took = false;
    if ((unsigned)option == ESK_OPTION_COUNT) {
        return unknown("--", key, error);
    }
    const struct esk_option_description *description = &esk_option_table[option];
    char where[64];
    snprintf(where, sizeof(where), "--%s", description->name);
    if (description->type == ESK_OPTION_TYPE_FLAG) {
        options->values[option].number = 1;
        return equals ? esk_fail(error, ESK_ERR_INVALID, "%s: it takes no value", where) : ESK_OK;
    }
    const char *value = equals ? equals + 1 : next;
    if (!value || (!equals && strncmp(value, "--", 2) == 0)) {
        return esk_fail(error, ESK_ERR_INVALID, "%s: its value is missing: %s", where,
                        description->value);
    }
    *took = !equals;
    return set_value(options, option, value, where, error);
}

static enum esk_err read_command_line(struct esk_options *options, int argc, char *const *argv,
                                      struct esk_error *error) {
    for (int i = 1; i < argc; i++) {
        bool took;
        if (strcmp(argv[i], "-h") == 0) {
            options->values[ESK_OPTION_HELP].number = 1;
            continue;
        }
        if (strncmp(argv[i], "--", 2) != 0 || argv[i][2] == '\0') {
            return argv[i][0] == '-'
                       ? unknown("", esk_slice_text(argv[i]), error)
                       : esk_fail(error, ESK_ERR_INVALID,
                                  "'%.100s': esker takes options only; esker --help lists them",
                                  argv[i]);
        }
        const char *next = i + 1 < argc ? argv[i + 1] : NULL;
        enum esk_err err = read_argument(options, argv[i], next, &took, error);
        if (err != ESK_OK) {
            return err;
        }
        i += took;
    }
    return ESK_OK;
}

static const char *find_variable(char *const *environment, const char *name) {
    size_t size = strlen(name);
    for (; *environment; environment++) {
        if (strncmp(*environment, name, size) == 0 && (*environment)[size] == '=') {
            return *environment + size + 1;
        }
    }
    return NULL;
}

static enum esk_err read_environment(struct esk_options *options, char *const *environment,
                                     struct esk_error *error) {
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        const struct esk_option_description *description = &esk_option_table[i];
        if (options->values[i].text || description->sources < ESK_OPTION_ENVIRONMENT) {
            continue;
        }
        const char *value = find_variable(environment, description->environment);
        if (!value || *value == '\0') {
            continue;
        }
        enum esk_err err =
            set_value(options, (enum esk_option)i, value, description->environment, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

/* The text without spaces at its ends; writes into it. */
static char *trim(char *text) {
    text += strspn(text, " \t");
    size_t size = strlen(text);
    while (size > 0 && strchr(" \t\r", text[size - 1])) {
        size--;
    }
    text[size] = '\0';
    return text;
}

/* A line of the file; given[option] is the line that gave it before, or 0. */
static enum esk_err read_line(struct esk_options *options, char *line, unsigned number,
                              const char *path, unsigned *given, struct esk_error *error) {
    line = trim(line);
    if (*line == '\0' || *line == '#') {
        return ESK_OK;
    }
    char where[256];
    snprintf(where, sizeof(where), "%.200s:%u: ", path, number);
    char *equals = strchr(line, '=');
    if (!equals) {
        return esk_fail(error, ESK_ERR_INVALID, "%sthe line has no '=': name = value is expected",
                        where);
    }
    *equals = '\0';
    const char *name = trim(line);
    enum esk_option option = eski_option_find(esk_slice_text(name));
    if ((unsigned)option == ESK_OPTION_COUNT) {
        return unknown(where, esk_slice_text(name), error);
    }
    if (esk_option_table[option].sources < ESK_OPTION_FILE) {
        return esk_fail(error, ESK_ERR_INVALID, "%s%s: not for the file", where, name);
    }
    if (given[option]) {
        return esk_fail(error, ESK_ERR_INVALID, "%s%s: given in line %u already", where, name,
                        given[option]);
    }
    given[option] = number;
    const char *value = trim(equals + 1);
    if (strstr(value, " #") || strstr(value, "\t#")) {
        return esk_fail(error, ESK_ERR_INVALID, "%s%s: a comment needs a line of its own", where,
                        name);
    }
    bool set = options->values[option].text;
    struct esk_options checked = {0};
    size_t used = strlen(where);
    snprintf(where + used, sizeof(where) - used, "%s", name);
    enum esk_err err = set_value(set ? &checked : options, option, value, where, error);
    esk_options_fini(&checked); /* a value that is overruled is checked all the same */
    return err;
}

static enum esk_err load_file(const char *path, char *text, size_t *size, struct esk_error *error) {
    FILE *file = fopen(path, "re");
    if (!file) {
        return esk_fail_errno(error, ESK_ERR_INVALID, errno, "--config %.200s", path);
    }
    errno = 0;
    *size = fread(text, 1, FILE_BYTES_MAX + 1, file);
    int number = ferror(file) ? errno : 0;
    fclose(file);
    if (number != 0) {
        return esk_fail_errno(error, ESK_ERR_INVALID, number, "--config %.200s", path);
    }
    if (*size > FILE_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "--config %.200s: larger than %d bytes", path,
                        FILE_BYTES_MAX);
    }
    text[*size] = '\0';
    if (memchr(text, '\0', *size)) {
        return esk_fail(error, ESK_ERR_INVALID, "--config %.200s: it has a NUL byte", path);
    }
    return ESK_OK;
}

static enum esk_err read_file(struct esk_options *options, struct esk_error *error) {
    const char *path = options->values[ESK_OPTION_CONFIG].text;
    if (!path) {
        return ESK_OK;
    }
    char *text = esk_alloc(FILE_BYTES_MAX + 2);
    size_t size = 0;
    enum esk_err err = load_file(path, text, &size, error);
    unsigned given[ESK_OPTION_COUNT] = {0};
    char *rest = text;
    for (unsigned number = 1; err == ESK_OK && rest; number++) {
        err = read_line(options, strsep(&rest, "\n"), number, path, given, error);
    }
    free(text);
    return err;
}

static void set_defaults(struct esk_options *options) {
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        const char *text = esk_option_table[i].default_text;
        if (!options->values[i].text && text) {
            enum esk_err err = set_value(options, (enum esk_option)i, text, "", NULL);
            ESK_ASSERT(err == ESK_OK);
        }
    }
}

enum esk_err esk_options_parse(struct esk_options *options, int argc, char *const *argv,
                               char *const *environment, struct esk_error *error) {
    memset(options, 0, sizeof(*options));
    enum esk_err err = read_command_line(options, argc, argv, error);
    if (err == ESK_OK) {
        err = read_environment(options, environment, error);
    }
    if (err == ESK_OK) {
        err = read_file(options, error);
    }
    if (err == ESK_OK) {
        set_defaults(options);
    }
    return err;
}

void esk_options_fini(struct esk_options *options) {
    for (unsigned i = 0; i < ESK_OPTION_COUNT; i++) {
        free(options->values[i].text);
        options->values[i].text = NULL;
    }
}
