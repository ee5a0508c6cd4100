/* SPDX-License-Identifier: Apache-2.0 */
#include "atlas/sink.h"
#include "wire/json/base64.h"
#include "wire/kafka/utf8.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES (64 << 10)
#define BASE64_PIECE_BYTES (3 << 14) /* a multiple of 3, so that pieces join */

void esk_atlas_sink_init(struct esk_atlas_sink *sink, FILE *file) {
    esk_buffer_init(&sink->buffer);
    sink->file = file;
    sink->comma = false;
}

void esk_atlas_sink_flush(struct esk_atlas_sink *sink) {
    if (sink->file == NULL)
        return;
    if (sink->buffer.size > 0)
        fwrite(sink->buffer.data, 1, sink->buffer.size, sink->file);
    sink->buffer.size = 0;
}

void esk_atlas_sink_fini(struct esk_atlas_sink *sink) {
    esk_atlas_sink_flush(sink);
    esk_buffer_fini(&sink->buffer);
}

void esk_atlas_put(struct esk_atlas_sink *sink, const void *bytes, size_t size) {
    if (sink->file != NULL && size > FLUSH_BYTES) { /* no detour for large ones */
        esk_atlas_sink_flush(sink);
        fwrite(bytes, 1, size, sink->file);
        return;
    }
    esk_buffer_append(&sink->buffer, bytes, size);
    if (sink->buffer.size > FLUSH_BYTES)
        esk_atlas_sink_flush(sink);
}

void esk_atlas_text(struct esk_atlas_sink *sink, const char *text) {
    esk_atlas_put(sink, text, strlen(text));
}

void esk_atlas_format(struct esk_atlas_sink *sink, const char *format, ...) {
    char text[1024];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (size > 0)
        esk_atlas_put(sink, text, (size_t)size < sizeof(text) ? (size_t)size : sizeof(text) - 1);
}

void esk_atlas_html_bytes(struct esk_atlas_sink *sink, struct esk_slice text) {
    for (size_t i = 0; i < text.size; i++) {
        switch (text.data[i]) {
        case '&':
            esk_atlas_text(sink, "&amp;");
            break;
        case '<':
            esk_atlas_text(sink, "&lt;");
            break;
        case '>':
            esk_atlas_text(sink, "&gt;");
            break;
        case '"':
            esk_atlas_text(sink, "&quot;");
            break;
        default:
            esk_atlas_put(sink, text.data + i, 1);
            break;
        }
    }
}

void esk_atlas_html(struct esk_atlas_sink *sink, const char *text) {
    esk_atlas_html_bytes(sink, esk_slice_text(text));
}

static void separate(struct esk_atlas_sink *sink) {
    if (sink->comma)
        esk_atlas_put(sink, ",", 1);
    sink->comma = true;
}

void esk_atlas_json_key(struct esk_atlas_sink *sink, const char *key) {
    esk_atlas_json_string(sink, esk_slice_text(key));
    esk_atlas_put(sink, ":", 1);
    sink->comma = false;
}

void esk_atlas_json_word(struct esk_atlas_sink *sink, const char *word) {
    separate(sink);
    esk_atlas_text(sink, word);
}

void esk_atlas_json_string(struct esk_atlas_sink *sink, struct esk_slice text) {
    if (text.data == NULL) {
        esk_atlas_json_word(sink, "null");
        return;
    }
    separate(sink);
    esk_atlas_put(sink, "\"", 1);
    const uint8_t *end = text.data + text.size;
    const uint8_t *plain = text.data; /* start of what can be copied as it is */
    for (const uint8_t *at = text.data; at < end;) {
        unsigned skip = 1;
        unsigned length = esk_utf8_length(at, end, &skip);
        if (length > 1 || (length == 1 && *at >= 0x20 && *at != '"' && *at != '\\')) {
            at += length;
            continue;
        }
        esk_atlas_put(sink, plain, (size_t)(at - plain));
        if (length == 0)
            esk_atlas_text(sink, "\xef\xbf\xbd");
        else if (*at == '"' || *at == '\\')
            esk_atlas_format(sink, "\\%c", *at);
        else
            esk_atlas_format(sink, "\\u%04x", *at);
        at += skip;
        plain = at;
    }
    esk_atlas_put(sink, plain, (size_t)(end - plain));
    esk_atlas_put(sink, "\"", 1);
}

void esk_atlas_json_base64(struct esk_atlas_sink *sink, struct esk_slice bytes) {
    if (bytes.data == NULL) {
        esk_atlas_json_word(sink, "null");
        return;
    }
    separate(sink);
    esk_atlas_put(sink, "\"", 1);
    while (bytes.size > 0) {
        size_t size = bytes.size < BASE64_PIECE_BYTES ? bytes.size : BASE64_PIECE_BYTES;
        size_t text_size = esk_base64_encoded_size(size);
        esk_base64_encode(esk_slice(bytes.data, size), esk_buffer_grow(&sink->buffer, text_size));
        sink->buffer.size += text_size;
        if (sink->buffer.size > FLUSH_BYTES)
            esk_atlas_sink_flush(sink);
        bytes = esk_slice(bytes.data + size, bytes.size - size);
    }
    esk_atlas_put(sink, "\"", 1);
}

void esk_atlas_json_int(struct esk_atlas_sink *sink, int64_t number) {
    separate(sink);
    esk_atlas_format(sink, "%lld", (long long)number);
}

void esk_atlas_real_text(double number, char text[32]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, 32, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    if (strpbrk(text, ".en") == NULL)
        strcat(text, ".0");
}

void esk_atlas_json_real(struct esk_atlas_sink *sink, double number) {
    char text[32];
    if (isnan(number) || isinf(number)) {
        esk_atlas_json_string(sink, esk_slice_text(isnan(number) ? "NaN"
                                                   : number > 0  ? "Infinity"
                                                                 : "-Infinity"));
        return;
    }
    esk_atlas_real_text(number, text);
    esk_atlas_json_word(sink, text);
}

void esk_atlas_json_open(struct esk_atlas_sink *sink, char bracket) {
    separate(sink);
    esk_atlas_put(sink, &bracket, 1);
    sink->comma = false;
}

void esk_atlas_json_close(struct esk_atlas_sink *sink, char bracket) {
    esk_atlas_put(sink, &bracket, 1);
    sink->comma = true;
}

static const char uuid_alphabet[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void esk_atlas_uuid_text(struct esk_slice uuid, char text[ESK_ATLAS_UUID_CHARS + 1]) {
    unsigned bits = 0;
    unsigned count = 0;
    size_t length = 0;
    for (size_t i = 0; i < uuid.size; i++) {
        bits = bits << 8 | uuid.data[i];
        for (count += 8; count >= 6; count -= 6)
            text[length++] = uuid_alphabet[bits >> (count - 6) & 63];
        bits &= (1U << count) - 1;
    }
    text[length++] = uuid_alphabet[bits << (6 - count) & 63];
    text[length] = '\0';
}

bool esk_atlas_uuid_parse(struct esk_slice text, uint8_t uuid[16]) {
    if (text.size != ESK_ATLAS_UUID_CHARS)
        return false;
    unsigned bits = 0;
    unsigned count = 0;
    size_t length = 0;
    for (size_t i = 0; i < text.size; i++) {
        const char *digit = text.data[i] ? strchr(uuid_alphabet, text.data[i]) : NULL;
        if (digit == NULL)
            return false;
        bits = (bits << 6 | (unsigned)(digit - uuid_alphabet)) & 0xffff;
        count += 6;
        if (count >= 8) {
            count -= 8;
            uuid[length++] = (uint8_t)(bits >> count);
        }
    }
    return (bits & ((1U << count) - 1)) == 0;
}
