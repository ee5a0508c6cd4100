/* SPDX-License-Identifier: Apache-2.0 */
/* A topic's settings as people write them, KEY=VALUE, made a JSON object for the broker. Pure. */
#ifndef ESK_ESK_TOPIC_SETTINGS_H
#define ESK_ESK_TOPIC_SETTINGS_H

#include "base/error.h"
#include "wire/json/writer.h"

/* Writes an object with the settings. ESK_ERR_INVALID: the text says which one is wrong and what is
 * allowed; what was written then is meaningless. */
enum esk_err esk_topic_settings_write(struct esk_json_writer *writer, const char *const *settings,
                                      uint32_t count, struct esk_error *error);

#endif
