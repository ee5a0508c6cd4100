/* SPDX-License-Identifier: Apache-2.0 */
/* Names that users give, and UTF-8. Pure; any thread. Checks answer ESK_ERR_INVALID with a text
 * that can be shown to the client as it is. */
#ifndef ESK_MODEL_NAMES_H
#define ESK_MODEL_NAMES_H

#include "base/bytes.h"
#include "base/error.h"

/* A topic's name: 1 to 200 of A-Z a-z 0-9 . - _, but not "." or "..". error may be NULL. */
enum esk_err esk_topic_name_check(struct esk_slice name, struct esk_error *error);

/* A subject of the schema registry: 1 to 255 of a topic's characters. error may be NULL. */
enum esk_err esk_subject_check(struct esk_slice name, struct esk_error *error);

/* An id of a group or a producer: 1 to 200 bytes of UTF-8 without control characters (U+0000 to
 * U+001F, U+007F to U+009F). `what` begins the text: "group", "producer_id". error may be NULL. */
enum esk_err esk_id_check(struct esk_slice id, const char *what, struct esk_error *error);

/* Strict UTF-8 (RFC 3629): no surrogates, nothing overlong, nothing above U+10FFFF. Runs of ASCII
 * go 32 bytes at a time. */
bool esk_utf8_valid(struct esk_slice bytes);

/* Bytes of the longest valid beginning: bytes.size when all is valid. */
size_t esk_utf8_valid_size(struct esk_slice bytes);

#endif
