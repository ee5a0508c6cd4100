/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the profile into a copy of the file, cut into texts where it stands. */
#include "esk/settings.h"

#include "base/assert.h"
#include "base/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define FILE_BYTES_MAX (1024 * 1024)
#define DEFAULT_SECTION "default"

static const struct setting {
    const char *name;     /* of the option, and in the file */
    const char *variable; /* NULL: none */
} known[] = {
    {"server", "ESK_SERVER"}, {"binary-server", "ESK_BINARY_SERVER"},
    {"key", "ESK_KEY"},       {"ca", "ESK_CA"},
    {"cert", NULL},           {"cert-key", NULL},
    {"insecure", NULL},       {"timeout", NULL},
};
#define KNOWN_COUNT (sizeof(known) / sizeof(*known))

struct profile {
    const char *path;
    const char *section;
    const char *values[KNOWN_COUNT]; /* NULL: not there */
    bool is_found;
};

static const char *variable(const char *name) {
    const char *value = name ? getenv(name) : NULL;
    return value && *value ? value : NULL;
}

/* --- the file --- */

static char *trim(char *text) {
    char *end = text + strlen(text);
    while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) {
        *--end = '\0';
    }
    return text + strspn(text, " \t");
}

static enum esk_err refuse(const struct profile *profile, unsigned line, struct esk_error *error,
                           const char *problem, const char *what) {
    return esk_fail(error, ESK_ERR_INVALID, "%s, line %u: %s%s", profile->path, line, problem,
                    what);
}

static enum esk_err read_pair(struct profile *profile, char *text, unsigned line,
                              struct esk_error *error) {
    char *equals = strchr(text, '=');
    if (!equals) {
        return refuse(profile, line, error, "allowed are [SECTION] and NAME = VALUE", "");
    }
    *equals = '\0';
    char *name = trim(text);
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strcmp(known[i].name, name) == 0) {
            profile->values[i] = trim(equals + 1);
            return ESK_OK;
        }
    }
    return refuse(profile, line, error,
                  "allowed are server, binary-server, key, ca, cert, cert-key, insecure and "
                  "timeout, not ",
                  name);
}

static enum esk_err read_lines(struct profile *profile, char *text, struct esk_error *error) {
    bool is_here = false;
    enum esk_err err = ESK_OK;
    for (unsigned line = 1; *text && err == ESK_OK; line++) {
        size_t size = strcspn(text, "\n");
        char *next = text + size + (text[size] == '\n');
        text[size] = '\0';
        text = trim(text);
        size_t length = strlen(text);
        if (*text == '[') {
            if (text[length - 1] != ']') {
                return refuse(profile, line, error, "a [ has no ]", "");
            }
            text[length - 1] = '\0';
            is_here = strcmp(trim(text + 1), profile->section) == 0;
            profile->is_found |= is_here;
        } else if (is_here && *text && *text != '#' && *text != ';') {
            err = read_pair(profile, text, line, error);
        }
        text = next;
    }
    return err;
}

static char *default_path(void) {
    const char *folder = variable("XDG_CONFIG_HOME");
    if (folder) {
        return esk_text_format("%s/esk/profiles", folder);
    }
    folder = variable("HOME");
    return folder ? esk_text_format("%s/.config/esk/profiles", folder) : NULL;
}

/* The file's text, owned; NULL: there is none, or *err says why not. */
static char *read_file(const char *path, enum esk_err *err, struct esk_error *error) {
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) {
        return NULL;
    }
    char *text = esk_alloc(FILE_BYTES_MAX + 1);
    size_t size = fread(text, 1, FILE_BYTES_MAX + 1, file);
    int number = ferror(file) ? errno : size > FILE_BYTES_MAX ? EFBIG : 0;
    fclose(file);
    if (number) {
        *err = esk_fail_errno(error, ESK_ERR_INVALID, number, "%s", path);
        free(text);
        return NULL;
    }
    text[size] = '\0';
    return text;
}

static enum esk_err read_profile(struct profile *profile, const struct esk_arguments *arguments,
                                 char **file, struct esk_error *error) {
    enum esk_err err = ESK_OK;
    const char *named = esk_arguments_text(arguments, "profile");
    named = named ? named : variable("ESK_PROFILE");
    profile->section = named ? named : DEFAULT_SECTION;
    char *owned = variable("ESK_PROFILES") ? NULL : default_path();
    profile->path = owned ? owned : variable("ESK_PROFILES");
    *file = read_file(profile->path, &err, error);
    if (*file) {
        err = read_lines(profile, *file, error);
    }
    if (err == ESK_OK && named && !profile->is_found) {
        err = esk_fail(error, ESK_ERR_NOT_FOUND, "--profile '%s': %s has no [%s]", named,
                       profile->path ? profile->path : "there is no file, and so it", named);
    }
    free(owned);
    return err;
}

/* --- all of it --- */

/* The setting's text; NULL: none. */
static const char *find(const struct profile *profile, const struct esk_arguments *arguments,
                        const char *name) {
    for (size_t i = 0; i < KNOWN_COUNT; i++) {
        if (strcmp(known[i].name, name) != 0) {
            continue;
        }
        const struct esk_tool_value *value = esk_arguments_value(arguments, name);
        const char *from_environment = variable(known[i].variable);
        return value->count         ? value->text
               : from_environment   ? from_environment
               : profile->values[i] ? profile->values[i]
                                    : value->text;
    }
    ESK_ASSERT(!name); /* not in the table */
    return NULL;
}

static bool has_port(const char *address) {
    const char *colon = strrchr(address, ':');
    return colon && colon[1] && colon[1 + strspn(colon + 1, "0123456789")] == '\0';
}

enum esk_err esk_settings_init(struct esk_settings *settings, const struct esk_arguments *arguments,
                               struct esk_error *error) {
    struct profile profile = {0};
    memset(settings, 0, sizeof(*settings));
    enum esk_err err = read_profile(&profile, arguments, &settings->file, error);
    if (err != ESK_OK) {
        return err;
    }
    settings->server = find(&profile, arguments, "server");
    settings->binary_server = find(&profile, arguments, "binary-server");
    settings->key = find(&profile, arguments, "key");
    settings->ca = find(&profile, arguments, "ca");
    settings->cert = find(&profile, arguments, "cert");
    settings->cert_key = find(&profile, arguments, "cert-key");
    settings->timeout_ms = esk_arguments_number(arguments, "timeout");
    const char *timeout = find(&profile, arguments, "timeout");
    if (!esk_arguments_given(arguments, "timeout") && timeout &&
        (!esk_number_read(timeout, ESK_TOOL_DURATION, &settings->timeout_ms) ||
         settings->timeout_ms == 0 || settings->timeout_ms > 3600000)) {
        return esk_fail(error, ESK_ERR_INVALID, "timeout '%s' of the profile: allowed is 1ms to 1h",
                        timeout);
    }
    const char *insecure = find(&profile, arguments, "insecure");
    settings->insecure = esk_arguments_number(arguments, "insecure") != 0 ||
                         (insecure && strcmp(insecure, "true") == 0);
    if (settings->key && strpbrk(settings->key, "\r\n")) {
        return esk_fail(error, ESK_ERR_INVALID, "--key: it has a line end in it");
    }
    if (settings->binary_server && !has_port(settings->binary_server)) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "--binary-server '%s': allowed is HOST:PORT, such as 127.0.0.1:9001",
                        settings->binary_server);
    }
    if (!settings->cert != !settings->cert_key) {
        return esk_fail(error, ESK_ERR_INVALID, "--cert and --cert-key go together");
    }
    return ESK_OK;
}

void esk_settings_fini(struct esk_settings *settings) {
    free(settings->file);
    memset(settings, 0, sizeof(*settings));
}
