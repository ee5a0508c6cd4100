/* SPDX-License-Identifier: Apache-2.0 */
/* Text on its way out: gathered in a buffer and handed to a file from time to time, so that output
 * of any length takes bounded memory. Without a file it all stays in the buffer. One owner. */
#ifndef ESK_ATLAS_SINK_H
#define ESK_ATLAS_SINK_H

#include "base/memory.h"

#include <stdio.h>

struct esk_atlas_sink {
    struct esk_buffer buffer;
    FILE *file; /* borrowed; NULL: keep everything */
    bool comma; /* JSON: one is due before the next value or key */
};

void esk_atlas_sink_init(struct esk_atlas_sink *sink, FILE *file);
void esk_atlas_sink_fini(struct esk_atlas_sink *sink); /* flushes first */
void esk_atlas_sink_flush(struct esk_atlas_sink *sink);

void esk_atlas_put(struct esk_atlas_sink *sink, const void *bytes, size_t size);
void esk_atlas_text(struct esk_atlas_sink *sink, const char *text);
void esk_atlas_format(struct esk_atlas_sink *sink, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Text with &, <, > and quotes escaped for HTML. */
void esk_atlas_html(struct esk_atlas_sink *sink, const char *text);
void esk_atlas_html_bytes(struct esk_atlas_sink *sink, struct esk_slice text);

/* JSON. Strings may be any bytes: what is not UTF-8 becomes U+FFFD, as Kafka reads it. */
void esk_atlas_json_key(struct esk_atlas_sink *sink, const char *key);
void esk_atlas_json_string(struct esk_atlas_sink *sink, struct esk_slice text);  /* NULL: null */
void esk_atlas_json_base64(struct esk_atlas_sink *sink, struct esk_slice bytes); /* NULL: null */
void esk_atlas_json_int(struct esk_atlas_sink *sink, int64_t number);
void esk_atlas_json_real(struct esk_atlas_sink *sink, double number);
void esk_atlas_json_word(struct esk_atlas_sink *sink, const char *word); /* true, false, null */
void esk_atlas_json_open(struct esk_atlas_sink *sink, char bracket);
void esk_atlas_json_close(struct esk_atlas_sink *sink, char bracket);

#define ESK_ATLAS_UUID_CHARS 22
/* Kafka's form of a uuid: base64 for URLs, without padding, 22 characters and a NUL. */
void esk_atlas_uuid_text(struct esk_slice uuid, char text[ESK_ATLAS_UUID_CHARS + 1]);
bool esk_atlas_uuid_parse(struct esk_slice text, uint8_t uuid[16]);

/* The shortest text that reads back as the same number, always with a point or an exponent. */
void esk_atlas_real_text(double number, char text[32]);

#endif
