/* SPDX-License-Identifier: Apache-2.0 */
/* Blocks of 12 bytes and 16 characters with SSSE3, the rest one group at a time. */
#include "wire/json/base64.h"

#ifdef __SSSE3__
#include <tmmintrin.h>
#endif

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

#ifdef __SSSE3__

/* Where a vector is within low .. high, as signed bytes. */
static inline __m128i between(__m128i v, char low, char high) {
    return _mm_andnot_si128(
        _mm_or_si128(_mm_cmplt_epi8(v, _mm_set1_epi8(low)), _mm_cmpgt_epi8(v, _mm_set1_epi8(high))),
        _mm_set1_epi8(-1));
}

/* The first 12 bytes of a vector as 16 characters. */
static inline __m128i encode_block(__m128i bytes) {
    /* Each 32-bit lane gets a group of three bytes as b a c b, so that two multiplications shift
     * its four 6-bit parts into a byte each. */
    bytes =
        _mm_shuffle_epi8(bytes, _mm_setr_epi8(1, 0, 2, 1, 4, 3, 5, 4, 7, 6, 8, 7, 10, 9, 11, 10));
    __m128i outer = _mm_mulhi_epu16(_mm_and_si128(bytes, _mm_set1_epi32(0x0fc0fc00)),
                                    _mm_set1_epi32(0x04000040));
    __m128i inner = _mm_mullo_epi16(_mm_and_si128(bytes, _mm_set1_epi32(0x003f03f0)),
                                    _mm_set1_epi32(0x01000010));
    __m128i digits = _mm_or_si128(outer, inner);
    /* The class of a digit picks what is added: 0 a-z, 1-10 0-9, 11 +, 12 /, 13 A-Z. */
    __m128i class = _mm_subs_epu8(digits, _mm_set1_epi8(51));
    __m128i upper = _mm_cmpgt_epi8(_mm_set1_epi8(26), digits);
    class = _mm_or_si128(class, _mm_and_si128(upper, _mm_set1_epi8(13)));
    const char digit = '0' - 52;
    __m128i shifts = _mm_setr_epi8('a' - 26, digit, digit, digit, digit, digit, digit, digit, digit,
                                   digit, digit, '+' - 62, '/' - 63, 'A', 0, 0);
    return _mm_add_epi8(digits, _mm_shuffle_epi8(shifts, class));
}

/* 16 characters as 12 bytes; false when one is not of the alphabet. */
static inline bool decode_block(__m128i text, __m128i *bytes) {
    __m128i upper = between(text, 'A', 'Z');
    __m128i lower = between(text, 'a', 'z');
    __m128i digit = between(text, '0', '9');
    __m128i plus = _mm_cmpeq_epi8(text, _mm_set1_epi8('+'));
    __m128i slash = _mm_cmpeq_epi8(text, _mm_set1_epi8('/'));
    __m128i known =
        _mm_or_si128(_mm_or_si128(upper, lower), _mm_or_si128(digit, _mm_or_si128(plus, slash)));
    if (_mm_movemask_epi8(known) != 0xffff) {
        return false;
    }
    __m128i shift = _mm_or_si128(_mm_and_si128(upper, _mm_set1_epi8(-'A')),
                                 _mm_and_si128(lower, _mm_set1_epi8(26 - 'a')));
    shift = _mm_or_si128(shift, _mm_and_si128(digit, _mm_set1_epi8(52 - '0')));
    shift = _mm_or_si128(shift, _mm_and_si128(plus, _mm_set1_epi8(62 - '+')));
    shift = _mm_or_si128(shift, _mm_and_si128(slash, _mm_set1_epi8(63 - '/')));
    __m128i digits = _mm_add_epi8(text, shift);
    /* Pairs of 6 bits to 12, pairs of 12 to 24, then the three bytes of each lane in order. */
    __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi32(0x01400140));
    __m128i groups = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00011000));
    *bytes = _mm_shuffle_epi8(
        groups, _mm_setr_epi8(2, 1, 0, 6, 5, 4, 10, 9, 8, 14, 13, 12, -1, -1, -1, -1));
    return true;
}

#endif

void esk_base64_encode(struct esk_slice bytes, uint8_t *text) {
    const uint8_t *at = bytes.data;
    size_t left = bytes.size;
#ifdef __SSSE3__
    for (; left >= 16; at += 12, left -= 12, text += 16) { /* reads 16, uses 12 */
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)at);
        _mm_storeu_si128((__m128i *)(void *)text, encode_block(block));
    }
#endif
    for (; left >= 3; at += 3, left -= 3, text += 4) {
        text[0] = (uint8_t)alphabet[at[0] >> 2];
        text[1] = (uint8_t)alphabet[(at[0] & 3) << 4 | at[1] >> 4];
        text[2] = (uint8_t)alphabet[(at[1] & 15) << 2 | at[2] >> 6];
        text[3] = (uint8_t)alphabet[at[2] & 63];
    }
    if (left > 0) {
        uint8_t second = left == 2 ? at[1] : 0;
        text[0] = (uint8_t)alphabet[at[0] >> 2];
        text[1] = (uint8_t)alphabet[(at[0] & 3) << 4 | second >> 4];
        text[2] = left == 2 ? (uint8_t)alphabet[(second & 15) << 2] : '=';
        text[3] = '=';
    }
}

/* The value of a character; 64 or more: not of the alphabet. */
static inline uint32_t digit_of(uint8_t c) {
    if (c >= 'A' && c <= 'Z') {
        return (uint32_t)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (uint32_t)(c - 'a' + 26);
    }
    if (c >= '0' && c <= '9') {
        return (uint32_t)(c - '0' + 52);
    }
    return c == '+' ? 62 : c == '/' ? 63 : 64;
}

bool esk_base64_decode(struct esk_slice text, uint8_t *bytes, size_t *size) {
    if (text.size % 4 != 0) {
        return false;
    }
    const uint8_t *at = text.data;
    size_t left = text.size;
    uint8_t *out = bytes;
#ifdef __SSSE3__
    for (; left >= 24; at += 16, left -= 16, out += 12) { /* stores 16, of which 12 count */
        __m128i block;
        if (!decode_block(_mm_loadu_si128((const __m128i *)(const void *)at), &block)) {
            return false;
        }
        _mm_storeu_si128((__m128i *)(void *)out, block);
    }
#endif
    for (; left > 0; at += 4, left -= 4) {
        size_t padding = left > 4 ? 0 : (size_t)(at[3] == '=') + (at[3] == '=' && at[2] == '=');
        uint32_t third = padding > 1 ? 0 : digit_of(at[2]);
        uint32_t fourth = padding > 0 ? 0 : digit_of(at[3]);
        uint32_t first = digit_of(at[0]);
        uint32_t second = digit_of(at[1]);
        if ((first | second | third | fourth) >= 64) {
            return false;
        }
        uint32_t group = first << 18 | second << 12 | third << 6 | fourth;
        if (group & (padding == 2 ? 0xffffu : padding == 1 ? 0xffu : 0)) {
            return false;
        }
        *out++ = (uint8_t)(group >> 16);
        if (padding < 2) {
            *out++ = (uint8_t)(group >> 8);
        }
        if (padding < 1) {
            *out++ = (uint8_t)group;
        }
    }
    *size = (size_t)(out - bytes);
    return true;
}
