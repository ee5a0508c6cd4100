/* SPDX-License-Identifier: Apache-2.0 */
/* The writer. Strings are copied 16 bytes at a time, each block looked at for what needs an escape
 * while it is copied; an escape costs a step, so plain text runs at memory speed. */
#include "wire/json/writer.h"

#include "model/names.h"
#include "wire/json/base64.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define BLOCK_BYTES 16
#define ESCAPE_BYTES_MAX 6 /* \u001f */
#define NUMBER_BYTES_MAX 20

struct esk_json_writer esk_json_writer(struct esk_buffer *buffer) {
    return (struct esk_json_writer){buffer, false};
}

/* Room for `size` bytes behind the comma that may be due. */
static inline uint8_t *begin(struct esk_json_writer *writer, size_t size) {
    uint8_t *at = esk_buffer_grow(writer->buffer, size + 1);
    if (writer->comma) {
        *at++ = ',';
    }
    return at;
}

static inline void end(struct esk_json_writer *writer, const uint8_t *at, bool comma) {
    writer->buffer->size = (size_t)(at - writer->buffer->data);
    writer->comma = comma;
}

static void mark(struct esk_json_writer *writer, char c, bool comma) {
    uint8_t *at = begin(writer, 1);
    *at++ = (uint8_t)c;
    end(writer, at, comma);
}

void esk_json_open_object(struct esk_json_writer *writer) {
    mark(writer, '{', false);
}

void esk_json_open_array(struct esk_json_writer *writer) {
    mark(writer, '[', false);
}

void esk_json_close_object(struct esk_json_writer *writer) {
    writer->comma = false;
    mark(writer, '}', true);
}

void esk_json_close_array(struct esk_json_writer *writer) {
    writer->comma = false;
    mark(writer, ']', true);
}

void esk_json_write_plain_key(struct esk_json_writer *writer, const char *key, size_t size) {
    uint8_t *at = begin(writer, size + 3);
    *at++ = '"';
    memcpy(at, key, size);
    at += size;
    *at++ = '"';
    *at++ = ':';
    end(writer, at, false);
}

static uint8_t *store_escape(uint8_t *at, uint8_t c) {
    static const char hex[] = "0123456789abcdef";
    static const char short_forms[32] = {
        ['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    *at++ = '\\';
    if (c >= 32) {
        *at++ = c;
    } else if (short_forms[c]) {
        *at++ = (uint8_t)short_forms[c];
    } else {
        memcpy(at, "u00", 3);
        at[3] = (uint8_t)hex[c >> 4];
        at[4] = (uint8_t)hex[c & 15];
        at += 5;
    }
    return at;
}

static inline bool needs_escape(uint8_t c) {
    return c < 32 || c == '"' || c == '\\';
}

/* Copies up to the first byte that needs an escape (bytes behind it may be copied too); returns how
 * many count. */
static inline size_t copy_plain(uint8_t *to, const uint8_t *from, size_t size) {
    size_t i = 0;
#ifdef __SSE2__
    for (; i + BLOCK_BYTES <= size; i += BLOCK_BYTES) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        _mm_storeu_si128((__m128i *)(void *)(to + i), block);
        /* At most 31, unsigned: the smaller of it and 31 is itself. */
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8(31)), block);
        __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
        __m128i slash = _mm_cmpeq_epi8(block, _mm_set1_epi8('\\'));
        int mask = _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, slash)));
        if (mask) {
            return i + (size_t)__builtin_ctz((unsigned)mask);
        }
    }
#endif
    while (i < size && !needs_escape(from[i])) {
        to[i] = from[i];
        i++;
    }
    return i;
}

/* Appends text escaped, without quotes. */
static void append_escaped(struct esk_buffer *buffer, struct esk_slice text) {
    const uint8_t *from = text.data;
    size_t left = text.size;
    for (;;) {
        uint8_t *at = esk_buffer_grow(buffer, left + ESCAPE_BYTES_MAX);
        size_t copied = copy_plain(at, from, left);
        at += copied;
        from += copied;
        left -= copied;
        if (left > 0) {
            at = store_escape(at, *from++);
            left--;
        }
        buffer->size = (size_t)(at - buffer->data);
        if (left == 0) {
            return;
        }
    }
}

size_t esk_json_escape(struct esk_slice text, uint8_t **at, const uint8_t *end_of_room) {
    const uint8_t *from = text.data;
    size_t left = text.size;
    uint8_t *to = *at;
    for (;;) {
        size_t room = (size_t)(end_of_room - to);
        size_t size = left < room ? left : room;
        size_t copied = copy_plain(to, from, size);
        to += copied;
        from += copied;
        left -= copied;
        if (copied == size || room - copied < ESCAPE_BYTES_MAX) {
            break;
        }
        to = store_escape(to, *from++);
        left--;
    }
    *at = to;
    return text.size - left;
}

static void quoted(struct esk_json_writer *writer, struct esk_slice text) {
    uint8_t *at = begin(writer, 1);
    *at++ = '"';
    end(writer, at, true);
    append_escaped(writer->buffer, text);
    *esk_buffer_grow(writer->buffer, 1) = '"';
    writer->buffer->size++;
}

void esk_json_write_key_bytes(struct esk_json_writer *writer, struct esk_slice key) {
    quoted(writer, key);
    esk_buffer_u8(writer->buffer, ':');
    writer->comma = false;
}

void esk_json_write_string(struct esk_json_writer *writer, struct esk_slice text) {
    if (text.data) {
        quoted(writer, text);
    } else {
        esk_json_write_null(writer);
    }
}

void esk_json_write_text(struct esk_json_writer *writer, const char *text) {
    struct esk_slice rest = esk_slice_text(text);
    uint8_t *at = begin(writer, 1);
    *at++ = '"';
    end(writer, at, true);
    while (rest.size > 0) {
        size_t valid = esk_utf8_valid_size(rest);
        append_escaped(writer->buffer, esk_slice(rest.data, valid));
        if (valid < rest.size) {
            esk_buffer_append(writer->buffer, "\xef\xbf\xbd", 3);
            valid++;
        }
        rest = esk_slice(rest.data + valid, rest.size - valid);
    }
    esk_buffer_u8(writer->buffer, '"');
}

void esk_json_write_base64(struct esk_json_writer *writer, struct esk_slice bytes) {
    if (!bytes.data) {
        esk_json_write_null(writer);
        return;
    }
    size_t size = esk_base64_encoded_size(bytes.size);
    uint8_t *at = begin(writer, size + 2);
    *at++ = '"';
    esk_base64_encode(bytes, at);
    at += size;
    *at++ = '"';
    end(writer, at, true);
}

/* Digits from the back, two at a time; returns the first. */
static uint8_t *digits_before(uint8_t *end_of_digits, uint64_t number) {
    uint8_t *at = end_of_digits;
    while (number >= 100) {
        uint64_t rest = number / 100;
        unsigned pair = (unsigned)(number - rest * 100);
        *--at = (uint8_t)('0' + pair % 10);
        *--at = (uint8_t)('0' + pair / 10);
        number = rest;
    }
    if (number >= 10) {
        *--at = (uint8_t)('0' + number % 10);
        number /= 10;
    }
    *--at = (uint8_t)('0' + number);
    return at;
}

void esk_json_write_uint64(struct esk_json_writer *writer, uint64_t number) {
    uint8_t digits[NUMBER_BYTES_MAX];
    uint8_t *first = digits_before(digits + sizeof(digits), number);
    size_t size = (size_t)(digits + sizeof(digits) - first);
    uint8_t *at = begin(writer, NUMBER_BYTES_MAX);
    memcpy(at, first, size);
    end(writer, at + size, true);
}

void esk_json_write_int64(struct esk_json_writer *writer, int64_t number) {
    if (number >= 0) {
        esk_json_write_uint64(writer, (uint64_t)number);
        return;
    }
    mark(writer, '-', false);
    esk_json_write_uint64(writer, ~(uint64_t)number + 1);
}

void esk_json_write_bool(struct esk_json_writer *writer, bool truth) {
    esk_json_write_raw(writer, truth ? esk_slice("true", 4) : esk_slice("false", 5));
}

void esk_json_write_null(struct esk_json_writer *writer) {
    esk_json_write_raw(writer, esk_slice("null", 4));
}

void esk_json_write_raw(struct esk_json_writer *writer, struct esk_slice json) {
    uint8_t *at = begin(writer, json.size);
    if (json.size) {
        memcpy(at, json.data, json.size);
    }
    end(writer, at + json.size, true);
}
