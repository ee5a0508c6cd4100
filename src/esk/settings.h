/* SPDX-License-Identifier: Apache-2.0 */
/* How the broker is reached: each setting from the command line, else its environment variable,
 * else the profile, else the default. A profile is a section of a file:
 *
 *     [production]
 *     server = https://broker.example:9000
 *     key = esk_...
 *     ca = /etc/esker/ca.pem
 *
 * The file is ESK_PROFILES, else esk/profiles below XDG_CONFIG_HOME, else ~/.config/esk/profiles.
 * The section is --profile, else ESK_PROFILE, else `default`, which need not be there. */
#ifndef ESK_ESK_SETTINGS_H
#define ESK_ESK_SETTINGS_H

#include "esk/arguments.h"

struct esk_settings {
    const char *server;        /* never NULL; so are the texts of what has a default */
    const char *binary_server; /* NULL: none was given; so the following */
    const char *key;
    const char *ca;
    const char *cert;
    const char *cert_key;
    bool insecure;
    uint64_t timeout_ms;
    char *file; /* what texts point into; owned */
};

/* Texts are borrowed from the arguments and the environment. ESK_ERR_INVALID, ESK_ERR_NOT_FOUND:
 * the text says what is wrong, and with which file and line. To be freed in either case. */
enum esk_err esk_settings_init(struct esk_settings *settings, const struct esk_arguments *arguments,
                               struct esk_error *error);
void esk_settings_fini(struct esk_settings *settings);

#endif
