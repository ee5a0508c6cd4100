/* SPDX-License-Identifier: Apache-2.0 */
/* Percent-encoding (RFC 3986, 2.1) and the query form of HTML; see target.h. */
#include "wire/http/target.h"

static int hex_digit(uint8_t byte) {
    if (byte >= '0' && byte <= '9') {
        return byte - '0';
    }
    byte |= 0x20;
    return byte >= 'a' && byte <= 'f' ? byte - 'a' + 10 : -1;
}

static bool decode(struct esk_slice encoded, bool plus_is_space, struct esk_arena *arena,
                   struct esk_slice *decoded) {
    *decoded = encoded;
    if (!memchr(encoded.data, '%', encoded.size) &&
        !(plus_is_space && memchr(encoded.data, '+', encoded.size))) {
        return true;
    }
    uint8_t *copy = esk_arena_alloc(arena, encoded.size);
    if (!copy) {
        return false;
    }
    size_t size = 0;
    for (size_t i = 0; i < encoded.size; i++) {
        uint8_t byte = encoded.data[i];
        if (byte == '%') {
            int high = i + 2 < encoded.size ? hex_digit(encoded.data[i + 1]) : -1;
            int low = i + 2 < encoded.size ? hex_digit(encoded.data[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            byte = (uint8_t)(high * 16 + low);
            i += 2;
        } else if (byte == '+' && plus_is_space) {
            byte = ' ';
        }
        copy[size++] = byte;
    }
    *decoded = esk_slice(copy, size);
    return true;
}

bool esk_http_percent_decode(struct esk_slice encoded, struct esk_arena *arena,
                             struct esk_slice *decoded) {
    return decode(encoded, false, arena, decoded);
}

bool esk_http_query_decode(struct esk_slice encoded, struct esk_arena *arena,
                           struct esk_slice *decoded) {
    return decode(encoded, true, arena, decoded);
}

bool esk_http_query_next(struct esk_slice *query, struct esk_slice *name, struct esk_slice *value) {
    while (query->size) {
        const uint8_t *and = memchr(query->data, '&', query->size);
        size_t size = and? (size_t)(and-query->data) : query->size;
        const uint8_t *piece = query->data;
        size_t taken = and? size + 1 : size;
        query->data += taken;
        query->size -= taken;
        if (size == 0) {
            continue;
        }
        const uint8_t *equals = memchr(piece, '=', size);
        size_t name_size = equals ? (size_t)(equals - piece) : size;
        *name = esk_slice(piece, name_size);
        *value = equals ? esk_slice(equals + 1, size - name_size - 1) : esk_slice(piece + size, 0);
        return true;
    }
    return false;
}
