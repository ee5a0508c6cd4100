/* SPDX-License-Identifier: Apache-2.0 */
/* A recursive descent over the grammar of RFC 8259, at most ESK_JSON_DEPTH_MAX deep. A rule that
 * fails records the first fault and returns false; nothing goes on after that. */
#include "wire/json/validate.h"

#include "base/assert.h"
#include "base/memory.h"
#include "model/limits.h"
#include "model/names.h"

#include <math.h>
#include <stdlib.h>

struct scan {
    const uint8_t *start;
    const uint8_t *at;
    const uint8_t *end;
    struct esk_json_fault *fault;
};

static bool fault_at(struct scan *scan, const uint8_t *at, const char *reason) {
    scan->fault->position = (size_t)(at - scan->start);
    scan->fault->reason = at == scan->end ? "unexpected end" : reason;
    return false;
}

static bool is_digit(const struct scan *scan, const uint8_t *at) {
    return at < scan->end && *at >= '0' && *at <= '9';
}

static void skip_space(struct scan *scan) {
    while (scan->at < scan->end &&
           (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r')) {
        scan->at++;
    }
}

static bool is_next(const struct scan *scan, char c) {
    return scan->at < scan->end && *scan->at == (uint8_t)c;
}

static bool word(struct scan *scan, const char *letters) {
    for (const char *c = letters; *c; c++, scan->at++) {
        if (!is_next(scan, *c)) {
            return fault_at(scan, scan->at, "expected a value");
        }
    }
    return true;
}

/* Whether the digits from `start` on are beyond int64 and uint64, or beyond a double. */
static bool out_of_range(const uint8_t *start, const uint8_t *end, bool integer) {
    if (integer) {
        bool negative = *start == '-';
        uint64_t limit = negative ? (uint64_t)INT64_MAX + 1 : UINT64_MAX;
        uint64_t value = 0;
        for (const uint8_t *at = start + negative; at < end; at++) {
            if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
                __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value)) {
                return true;
            }
        }
        return value > limit;
    }
    size_t size = (size_t)(end - start);
    char *copy = esk_alloc(size + 1);
    memcpy(copy, start, size);
    copy[size] = '\0';
    bool infinite = isinf(strtod(copy, NULL));
    free(copy);
    return infinite;
}

static bool digits(struct scan *scan) {
    if (!is_digit(scan, scan->at)) {
        return fault_at(scan, scan->at, "expected a digit");
    }
    while (is_digit(scan, scan->at)) {
        scan->at++;
    }
    return true;
}

static bool number(struct scan *scan) {
    const uint8_t *start = scan->at;
    bool integer = true;
    scan->at += is_next(scan, '-');
    if (is_next(scan, '0')) {
        scan->at++;
        if (is_digit(scan, scan->at)) {
            return fault_at(scan, scan->at, "a number may not begin with 0");
        }
    } else if (!digits(scan)) {
        return false;
    }
    if (is_next(scan, '.')) {
        scan->at++;
        integer = false;
        if (!digits(scan)) {
            return false;
        }
    }
    if (is_next(scan, 'e') || is_next(scan, 'E')) {
        scan->at++;
        integer = false;
        scan->at += is_next(scan, '+') || is_next(scan, '-');
        if (!digits(scan)) {
            return false;
        }
    }
    return out_of_range(start, scan->at, integer) ? fault_at(scan, start, "number out of range")
                                                  : true;
}

/* Four hex digits; false when there are fewer. */
static bool hex(struct scan *scan, uint32_t *value) {
    *value = 0;
    for (int i = 0; i < 4; i++, scan->at++) {
        uint8_t c = scan->at < scan->end ? *scan->at : 0;
        uint8_t lower = c | 0x20;
        if (c >= '0' && c <= '9') {
            *value = *value << 4 | (uint32_t)(c - '0');
        } else if (lower >= 'a' && lower <= 'f') {
            *value = *value << 4 | (uint32_t)(lower - 'a' + 10);
        } else {
            return fault_at(scan, scan->at, "expected four hex digits");
        }
    }
    return true;
}

/* Behind a backslash. */
static bool escape(struct scan *scan) {
    const uint8_t *start = scan->at - 1;
    uint8_t c = scan->at < scan->end ? *scan->at : 0;
    if (c != 'u') {
        if (c == 0 || !strchr("\"\\/bfnrt", c)) {
            return fault_at(scan, scan->at, "unknown escape");
        }
        scan->at++;
        return true;
    }
    scan->at++;
    uint32_t unit;
    if (!hex(scan, &unit)) {
        return false;
    }
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        return fault_at(scan, start, "lone surrogate");
    }
    if (unit >= 0xd800 && unit <= 0xdbff) {
        uint32_t low;
        if (scan->end - scan->at < 2 || scan->at[0] != '\\' || scan->at[1] != 'u') {
            return fault_at(scan, start, "lone surrogate");
        }
        scan->at += 2;
        if (!hex(scan, &low)) {
            return false;
        }
        if (low < 0xdc00 || low > 0xdfff) {
            return fault_at(scan, start, "lone surrogate");
        }
    }
    return true;
}

static bool string(struct scan *scan) {
    scan->at++;
    for (;;) {
        if (scan->at == scan->end) {
            return fault_at(scan, scan->at, "");
        }
        uint8_t c = *scan->at;
        if (c < 0x20) {
            return fault_at(scan, scan->at, "control character in a string");
        }
        scan->at++;
        if (c == '"') {
            return true;
        }
        if (c == '\\' && !escape(scan)) {
            return false;
        }
    }
}

static bool value(struct scan *scan, int depth);

static bool array(struct scan *scan, int depth) {
    scan->at++;
    skip_space(scan);
    if (is_next(scan, ']')) {
        scan->at++;
        return true;
    }
    for (;;) {
        if (!value(scan, depth)) {
            return false;
        }
        if (is_next(scan, ']')) {
            scan->at++;
            return true;
        }
        if (!is_next(scan, ',')) {
            return fault_at(scan, scan->at, "expected ',' or ']'");
        }
        scan->at++;
    }
}

static bool object(struct scan *scan, int depth) {
    scan->at++;
    skip_space(scan);
    if (is_next(scan, '}')) {
        scan->at++;
        return true;
    }
    for (;;) {
        skip_space(scan);
        if (!is_next(scan, '"')) {
            return fault_at(scan, scan->at, "expected a key in quotes");
        }
        if (!string(scan)) {
            return false;
        }
        skip_space(scan);
        if (!is_next(scan, ':')) {
            return fault_at(scan, scan->at, "expected ':'");
        }
        scan->at++;
        if (!value(scan, depth)) {
            return false;
        }
        if (is_next(scan, '}')) {
            scan->at++;
            return true;
        }
        if (!is_next(scan, ',')) {
            return fault_at(scan, scan->at, "expected ',' or '}'");
        }
        scan->at++;
    }
}

/* A value with the space around it. */
static bool value(struct scan *scan, int depth) {
    skip_space(scan);
    bool nested = is_next(scan, '[') || is_next(scan, '{');
    if (nested && depth == ESK_JSON_DEPTH_MAX) {
        return fault_at(scan, scan->at, "nesting over 64 levels");
    }
    bool valid;
    if (scan->at == scan->end) {
        return fault_at(scan, scan->at, "");
    }
    switch (*scan->at) {
    case '{':
        valid = object(scan, depth + 1);
        break;
    case '[':
        valid = array(scan, depth + 1);
        break;
    case '"':
        valid = string(scan);
        break;
    case 't':
        valid = word(scan, "true");
        break;
    case 'f':
        valid = word(scan, "false");
        break;
    case 'n':
        valid = word(scan, "null");
        break;
    default:
        if (*scan->at != '-' && !is_digit(scan, scan->at)) {
            return fault_at(scan, scan->at, "expected a value");
        }
        valid = number(scan);
    }
    skip_space(scan);
    return valid;
}

bool esk_json_validate(struct esk_slice text, struct esk_json_fault *fault) {
    struct esk_reader bytes = esk_reader(text);
    struct scan scan = {bytes.start, bytes.at, bytes.end, fault};
    bool valid = value(&scan, 0);
    if (valid && scan.at < scan.end) {
        valid = fault_at(&scan, scan.at, "text behind the document");
    }
    /* Bytes beyond ASCII are legal only in strings, so the earlier of the two faults is the one. */
    size_t text_size = esk_utf8_valid_size(text);
    if (text_size < text.size && (valid || text_size < fault->position)) {
        *fault = (struct esk_json_fault){text_size, "not UTF-8"};
        return false;
    }
    return valid;
}

size_t esk_json_string_position(struct esk_slice text, size_t number_wanted) {
    struct esk_json_fault unused;
    struct scan scan = {text.data, text.data, text.data + text.size, &unused};
    for (size_t i = 0; scan.at < scan.end;) {
        if (!is_next(&scan, '"')) {
            scan.at++;
            continue;
        }
        size_t position = (size_t)(scan.at - scan.start);
        if (i++ == number_wanted) {
            return position;
        }
        ESK_ASSERT(string(&scan));
    }
    return text.size;
}
