/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of names, and UTF-8 by ranges of lead and continuation bytes (Unicode, table 3-7). */
#include "model/names.h"

#include "model/limits.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Bytes of ASCII that `at` begins with, whole steps only. */
static inline size_t ascii_run(const uint8_t *at, size_t size) {
    size_t i = 0;
#ifdef __SSE2__
    for (; i + 32 <= size; i += 32) {
        __m128i low = _mm_loadu_si128((const __m128i *)(const void *)(at + i));
        __m128i high = _mm_loadu_si128((const __m128i *)(const void *)(at + i + 16));
        if (_mm_movemask_epi8(_mm_or_si128(low, high))) {
            break;
        }
    }
#endif
    for (; i + 8 <= size; i += 8) {
        uint64_t word;
        memcpy(&word, at + i, sizeof(word));
        if (word & 0x8080808080808080u) {
            break;
        }
    }
    return i;
}

static inline bool is_between(uint8_t byte, uint8_t low, uint8_t high) {
    return (uint8_t)(byte - low) <= (uint8_t)(high - low);
}

/* Size of the character that `at` begins with, 0 when it is not valid. */
static inline size_t character_size(const uint8_t *at, size_t left) {
    uint8_t lead = at[0];
    if (lead < 0x80) {
        return 1;
    }
    if (is_between(lead, 0xc2, 0xdf)) {
        return left >= 2 && is_between(at[1], 0x80, 0xbf) ? 2 : 0;
    }
    if (is_between(lead, 0xe0, 0xef)) {
        uint8_t low = lead == 0xe0 ? 0xa0 : 0x80;  /* nothing overlong */
        uint8_t high = lead == 0xed ? 0x9f : 0xbf; /* no surrogates */
        return left >= 3 && is_between(at[1], low, high) && is_between(at[2], 0x80, 0xbf) ? 3 : 0;
    }
    if (is_between(lead, 0xf0, 0xf4)) {
        uint8_t low = lead == 0xf0 ? 0x90 : 0x80;
        uint8_t high = lead == 0xf4 ? 0x8f : 0xbf; /* nothing above U+10FFFF */
        return left >= 4 && is_between(at[1], low, high) && is_between(at[2], 0x80, 0xbf) &&
                       is_between(at[3], 0x80, 0xbf)
                   ? 4
                   : 0;
    }
    return 0;
}

size_t esk_utf8_valid_size(struct esk_slice bytes) {
    size_t i = 0;
    while (i < bytes.size) {
        if (bytes.data[i] < 0x80) {
            i += ascii_run(bytes.data + i, bytes.size - i);
            while (i < bytes.size && bytes.data[i] < 0x80) {
                i++;
            }
            continue;
        }
        size_t size = character_size(bytes.data + i, bytes.size - i);
        if (size == 0) {
            break;
        }
        i += size;
    }
    return i;
}

bool esk_utf8_valid(struct esk_slice bytes) {
    return esk_utf8_valid_size(bytes) == bytes.size;
}

static bool is_topic_character(uint8_t c) {
    return is_between(c, 'a', 'z') || is_between(c, 'A', 'Z') || is_between(c, '0', '9') ||
           c == '.' || c == '-' || c == '_';
}

enum esk_err esk_topic_name_check(struct esk_slice name, struct esk_error *error) {
    if (name.size == 0 || name.size > ESK_TOPIC_NAME_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "topic name must have 1 to %d characters, not %zu",
                        ESK_TOPIC_NAME_BYTES_MAX, name.size);
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!is_topic_character(name.data[i])) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "topic name may have letters, digits, '.', '-' and '_' only");
        }
    }
    if (name.data[0] == '.' && (name.size == 1 || (name.size == 2 && name.data[1] == '.'))) {
        return esk_fail(error, ESK_ERR_INVALID, "topic name may not be '.' or '..'");
    }
    return ESK_OK;
}

enum esk_err esk_subject_check(struct esk_slice name, struct esk_error *error) {
    if (name.size == 0 || name.size > ESK_SUBJECT_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "subject must have 1 to %d characters, not %zu",
                        ESK_SUBJECT_BYTES_MAX, name.size);
    }
    for (size_t i = 0; i < name.size; i++) {
        if (!is_topic_character(name.data[i])) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "subject may have letters, digits, '.', '-' and '_' only");
        }
    }
    return ESK_OK;
}

enum esk_err esk_id_check(struct esk_slice id, const char *what, struct esk_error *error) {
    if (id.size == 0 || id.size > ESK_ID_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_INVALID, "%s must have 1 to %d bytes, not %zu", what,
                        ESK_ID_BYTES_MAX, id.size);
    }
    size_t plain = 0; /* nearly all of them are no more than that */
    while (plain < id.size && id.data[plain] >= 0x20 && id.data[plain] < 0x7f) {
        plain++;
    }
    if (plain == id.size) {
        return ESK_OK;
    }
    if (!esk_utf8_valid(id)) {
        return esk_fail(error, ESK_ERR_INVALID, "%s is not UTF-8", what);
    }
    for (size_t i = plain; i < id.size; i++) {
        uint8_t c = id.data[i];
        bool c1 = c == 0xc2 && id.data[i + 1] < 0xa0; /* valid UTF-8: a second byte follows */
        if (c < 0x20 || c == 0x7f || c1) {
            return esk_fail(error, ESK_ERR_INVALID, "%s may not have control characters", what);
        }
    }
    return ESK_OK;
}
