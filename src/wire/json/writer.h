/* SPDX-License-Identifier: Apache-2.0 */
/* JSON out, appended to a buffer without spaces. Commas come by themselves; that opens and closes
 * match, and that keys stand only in objects, is the caller's to keep. One owner, no threads. */
#ifndef ESK_WIRE_JSON_WRITER_H
#define ESK_WIRE_JSON_WRITER_H

#include "base/memory.h"

struct esk_json_writer {
    struct esk_buffer *buffer; /* borrowed */
    bool comma;                /* before the next value or key */
};

/* Appends to what the buffer has. */
struct esk_json_writer esk_json_writer(struct esk_buffer *buffer);

void esk_json_open_object(struct esk_json_writer *writer);
void esk_json_close_object(struct esk_json_writer *writer);
void esk_json_open_array(struct esk_json_writer *writer);
void esk_json_close_array(struct esk_json_writer *writer);

/* A key that needs no escapes, such as a literal. */
void esk_json_write_plain_key(struct esk_json_writer *writer, const char *key, size_t size);
static inline void esk_json_write_key(struct esk_json_writer *writer, const char *key) {
    esk_json_write_plain_key(writer, key, strlen(key));
}
/* Any key; valid UTF-8. */
void esk_json_write_key_bytes(struct esk_json_writer *writer, struct esk_slice key);

/* A string of valid UTF-8 (the caller has checked: esk_utf8_valid), escaped as needed; data NULL
 * writes null. */
void esk_json_write_string(struct esk_json_writer *writer, struct esk_slice text);
/* A string of any bytes that is meant for people, such as an error's text: what is not UTF-8
 * becomes U+FFFD. */
void esk_json_write_text(struct esk_json_writer *writer, const char *text);
/* A string of the bytes in base64; data NULL writes null. */
void esk_json_write_base64(struct esk_json_writer *writer, struct esk_slice bytes);
void esk_json_write_int64(struct esk_json_writer *writer, int64_t number);
void esk_json_write_uint64(struct esk_json_writer *writer, uint64_t number);
void esk_json_write_bool(struct esk_json_writer *writer, bool truth);
void esk_json_write_null(struct esk_json_writer *writer);
/* Writes what fits before `end` of text, which is valid UTF-8, escaped and without quotes, and
 * moves *at behind it; returns the bytes of text that were taken. For answers made in pieces. */
size_t esk_json_escape(struct esk_slice text, uint8_t **at, const uint8_t *end);

/* A value that is JSON already. */
void esk_json_write_raw(struct esk_json_writer *writer, struct esk_slice json);

#endif
