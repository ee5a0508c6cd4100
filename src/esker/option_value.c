/* SPDX-License-Identifier: Apache-2.0 */
/* What the text of an option's value means, by the option's type. */
#include "base/command_line.h"
#include "esker/options_private.h"

#include <arpa/inet.h>
#include <string.h>

#define ORIGIN_BYTES_MAX 300 /* ESK_HTTP_ORIGIN_BYTES_MAX */

static enum esk_err read_ranged(const struct esk_option_description *option, const char *text,
                                enum esk_quantity quantity, const char *kind, uint64_t *number,
                                struct esk_error *error) {
    uint64_t value = 0;
    const char *wrong = NULL;
    if (!esk_quantity_read(text, quantity, &value)) {
        wrong = kind;
    } else if (value < option->min) {
        wrong = "too small";
    } else if (value > option->max) {
        wrong = "too large";
    }
    if (wrong) {
        return esk_fail(error, ESK_ERR_INVALID, "%s; allowed is %s to %s", wrong, option->min_text,
                        option->max_text);
    }
    *number = value;
    return ESK_OK;
}

static bool is_address(const char *text) {
    const char *colon = strrchr(text, ':');
    uint64_t port = 0;
    if (!colon || colon == text || strlen(colon) > 6 ||
        !esk_quantity_read(colon + 1, ESK_QUANTITY_COUNT, &port) || port > 65535) {
        return false;
    }
    size_t size = (size_t)(colon - text);
    char host[256];
    if (size >= sizeof(host)) {
        return false;
    }
    memcpy(host, text, size);
    host[size] = '\0';
    if (host[0] != '[') {
        return strpbrk(host, ":[] \t") == NULL;
    }
    struct in6_addr parsed;
    host[size - 1] = '\0';
    return text[size - 1] == ']' && inet_pton(AF_INET6, host + 1, &parsed) == 1;
}

static enum esk_err read_choice(const struct esk_option_description *option, const char *text,
                                uint64_t *number, struct esk_error *error) {
    for (uint64_t i = 0; option->choices[i]; i++) {
        if (strcmp(text, option->choices[i]) == 0) {
            *number = i;
            return ESK_OK;
        }
    }
    return esk_fail(error, ESK_ERR_INVALID, "unknown; allowed is %s", option->value);
}

/* scheme://host[:port], as a browser sends it, and nothing behind it. */
static bool is_origin(const char *text, size_t size) {
    size_t scheme = 0;
    if (size > 7 && strncmp(text, "http://", 7) == 0) {
        scheme = 7;
    } else if (size > 8 && strncmp(text, "https://", 8) == 0) {
        scheme = 8;
    }
    if (scheme == 0 || size > ORIGIN_BYTES_MAX) {
        return false;
    }
    for (size_t i = scheme; i < size; i++) {
        if (text[i] <= ' ' || text[i] > '~' || strchr("/,*\"?#@\\", text[i]) ||
            (text[i] >= 'A' && text[i] <= 'Z')) {
            return false;
        }
    }
    return true;
}

static enum esk_err read_origins(const char *text, struct esk_error *error) {
    const char *at = text + strspn(text, " ");
    bool valid = *at != '\0';
    while (*at && valid) {
        size_t size = strcspn(at, " ");
        valid = is_origin(at, size);
        at += size + strspn(at + size, " ");
    }
    return valid ? ESK_OK
                 : esk_fail(error, ESK_ERR_INVALID,
                            "not an origin; allowed is http:// or https://, a host in small "
                            "letters and perhaps a port, such as https://ui.example:8443");
}

enum esk_err eski_option_read(const struct esk_option_description *option, const char *text,
                              uint64_t *number, struct esk_error *error) {
    switch (option->type) {
    case ESK_OPTION_TYPE_INTEGER:
        return read_ranged(option, text, ESK_QUANTITY_COUNT, "not a whole number", number, error);
    case ESK_OPTION_TYPE_SIZE:
        return read_ranged(option, text, ESK_QUANTITY_BYTES,
                           "not a size (bytes, or kB MB GB KiB MiB GiB behind a whole number)",
                           number, error);
    case ESK_OPTION_TYPE_DURATION:
        return read_ranged(option, text, ESK_QUANTITY_MS,
                           "not a duration (a whole number with ms, s, m, h or d)", number, error);
    case ESK_OPTION_TYPE_CHOICE:
        return read_choice(option, text, number, error);
    case ESK_OPTION_TYPE_ADDRESS:
        return is_address(text)
                   ? ESK_OK
                   : esk_fail(error, ESK_ERR_INVALID,
                              "not an address; allowed is %s, such as 127.0.0.1:9000 or "
                              "[::1]:9000, with a port from 0 to 65535",
                              option->value);
    case ESK_OPTION_TYPE_PATH:
        return *text ? ESK_OK : esk_fail(error, ESK_ERR_INVALID, "empty; allowed is a path");
    case ESK_OPTION_TYPE_ORIGIN:
        return read_origins(text, error);
    case ESK_OPTION_TYPE_FLAG:
        break;
    }
    return esk_fail(error, ESK_ERR_INVALID, "it takes no value");
}
