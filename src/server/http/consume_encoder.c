/* SPDX-License-Identifier: Apache-2.0 */
/* The answer to a consume as a sequence of tokens: a state machine makes one token after the other,
 * and each is written as far as there is room. Nothing of a record is written before all of it is
 * known to be text. */
#include "server/http/consume_encoder_private.h"

#include "base/assert.h"
#include "model/names.h"
#include "wire/json/base64.h"
#include "wire/json/writer.h"

#include <inttypes.h>
#include <stdlib.h>

#define CHECK_BYTES_PER_CALL (256 * 1024) /* of UTF-8: at most 0.3 ms where little is ASCII */
#define HEADERS_COMPARED_MAX 16           /* more than that are grouped through a map */

enum step {
    STEP_NEXT,  /* the next record; its bracket comes with it, an error may come before */
    STEP_CHECK, /* that it is text */
    STEP_KEY,
    STEP_VALUE_LABEL,
    STEP_VALUE,
    STEP_HEADERS,
    STEP_HEADER_NAME,
    STEP_HEADER_COLON,
    STEP_HEADER_VALUE,
    STEP_HEADER_REST, /* more values of that name, or the next name */
    STEP_RECORD_END,
    STEP_TAIL,
    STEP_END,
};

void eski_consume_encoder_init(struct eski_consume_encoder *encoder,
                               const struct esk_consume *consume, bool is_base64) {
    memset(encoder, 0, sizeof *encoder);
    esk_consume_walk_begin(&encoder->walk, consume);
    encoder->is_base64 = is_base64;
    encoder->is_first_record = true;
}

void eski_consume_encoder_fini(struct eski_consume_encoder *encoder) {
    esk_consume_walk_end(&encoder->walk);
    free(encoder->headers);
    encoder->headers = NULL;
}

/* --- text --- */

/* Groups of three bytes as far as they fit; the last group with its padding. */
static size_t put_base64(const uint8_t *bytes, size_t size, uint8_t **at, const uint8_t *end) {
    size_t most = (size_t)(end - *at) / 4 * 3;
    size_t taken = size <= most ? size : most;
    esk_base64_encode(esk_slice(bytes, taken), *at);
    *at += esk_base64_encoded_size(taken);
    return taken;
}

/* --- tokens --- */

static void set_token(struct eski_consume_encoder *encoder, int kind, struct esk_slice bytes) {
    encoder->token = kind;
    encoder->token_bytes = bytes;
    encoder->token_position = 0;
    encoder->is_token_open = false;
}

static void set_literal(struct eski_consume_encoder *encoder, const char *text) {
    set_token(encoder, ESKI_TOKEN_LITERAL, esk_slice_text(text));
}

/* A key, value or header value; NULL is null. */
static void set_value(struct eski_consume_encoder *encoder, struct esk_slice bytes) {
    if (!bytes.data) {
        set_literal(encoder, "null");
    } else {
        set_token(encoder, encoder->is_base64 ? ESKI_TOKEN_BASE64 : ESKI_TOKEN_STRING, bytes);
    }
}

/* Writes what fits of the token; true when it is all out. */
static bool write_token(struct eski_consume_encoder *encoder, uint8_t **at, const uint8_t *end) {
    const uint8_t *bytes = encoder->token_bytes.data + encoder->token_position;
    size_t left = encoder->token_bytes.size - encoder->token_position;
    size_t room = (size_t)(end - *at);
    if (encoder->token == ESKI_TOKEN_LITERAL) {
        size_t size = left < room ? left : room;
        memcpy(*at, bytes, size);
        *at += size;
        encoder->token_position += size;
        return size == left;
    }
    if (room < 16) {
        return false;
    }
    if (!encoder->is_token_open) {
        *(*at)++ = '"';
        encoder->is_token_open = true;
    }
    size_t taken = encoder->token == ESKI_TOKEN_STRING
                       ? esk_json_escape(esk_slice(bytes, left), at, end - 1)
                       : put_base64(bytes, left, at, end - 1);
    encoder->token_position += taken;
    if (taken < left) {
        return false;
    }
    *(*at)++ = '"';
    return true;
}

/* --- records --- */

static enum esk_err read_headers(struct eski_consume_encoder *encoder, struct esk_error *error) {
    encoder->header_count = 0;
    struct esk_record record = encoder->walk.record;
    struct esk_record_header header;
    while (esk_record_header_next(&record, &header)) {
        if (encoder->header_count == encoder->header_capacity) {
            encoder->header_capacity = encoder->header_capacity ? encoder->header_capacity * 2 : 8;
            encoder->headers = esk_realloc(encoder->headers, (size_t)encoder->header_capacity *
                                                                 sizeof *encoder->headers);
        }
        encoder->headers[encoder->header_count++] = (struct eski_consume_header){
            .name = header.name, .value = header.value, .is_first = true};
    }
    if (record.headers.failed) {
        return esk_fail(error, ESK_ERR_CORRUPT, "malformed headers at offset %" PRIu64,
                        encoder->walk.record_offset);
    }
    return ESK_OK;
}

static void chain(struct eski_consume_encoder *encoder, uint32_t last, uint32_t first,
                  uint32_t next) {
    encoder->headers[last].next = next;
    encoder->headers[first].is_repeated = true;
    encoder->headers[next].is_first = false;
}

/* Chains headers of equal names, each to the one before it. */
static void group_headers(struct eski_consume_encoder *encoder) {
    struct eski_consume_header *headers = encoder->headers;
    uint32_t count = encoder->header_count;
    if (count <= HEADERS_COMPARED_MAX) {
        for (uint32_t i = 0; i < count; i++) {
            uint32_t last = i;
            for (uint32_t j = i + 1; headers[i].is_first && j < count; j++) {
                if (headers[j].is_first && esk_slice_equal(headers[i].name, headers[j].name)) {
                    chain(encoder, last, i, j);
                    last = j;
                }
            }
        }
        return;
    }
    /* From the end: the map knows for each name the first one seen so far. */
    struct esk_map map;
    esk_map_init(&map);
    for (uint32_t i = count; i-- > 0;) {
        struct eski_consume_header *later = esk_map_put(&map, headers[i].name, &headers[i]);
        if (later) {
            chain(encoder, i, i, (uint32_t)(later - headers));
        }
    }
    esk_map_fini(&map);
}

/* Goes to the next record that the limits allow; *found false: the answer ends here. */
static enum esk_err next_record(struct eski_consume_encoder *encoder, bool *found,
                                struct esk_error *error) {
    enum esk_err err = esk_consume_walk_next(&encoder->walk, found, error);
    return err || !*found ? err : read_headers(encoder, error);
}

/* --- checking --- */

/* Checks `text` from *passed on, which counts over all texts of a record; *budget bounds the bytes.
 * false: not UTF-8. */
static bool check_text(struct esk_slice text, uint64_t checked, uint64_t *passed, size_t *budget) {
    if (checked >= *passed + text.size) {
        *passed += text.size; /* in an earlier call */
        return true;
    }
    size_t skip = checked > *passed ? (size_t)(checked - *passed) : 0;
    size_t left = text.size - skip;
    size_t size = left < *budget ? left : *budget;
    size_t valid = esk_utf8_valid_size(esk_slice(text.data + skip, size));
    /* A character that the budget cuts is looked at again; it is at most three bytes here. */
    if (valid < size && (size == left || size - valid > 3)) {
        return false;
    }
    *passed += skip + valid;
    *budget = valid < left ? 0 : *budget - size;
    return true;
}

/* ESK_OK: all of the record is text; ESK_ERR_AGAIN: go on in the next call; ESK_ERR_NOT_TEXT. */
static enum esk_err check_record(struct eski_consume_encoder *encoder) {
    if (encoder->is_base64) {
        /* Header names stay names, whatever the encoding: they must be text, too. */
        for (uint32_t i = 0; i < encoder->header_count; i++) {
            if (!esk_utf8_valid(encoder->headers[i].name)) {
                return ESK_ERR_NOT_TEXT;
            }
        }
        return ESK_OK;
    }
    size_t budget = CHECK_BYTES_PER_CALL;
    uint64_t passed = 0;
    bool valid = check_text(encoder->walk.record.key, encoder->checked, &passed, &budget);
    if (valid && budget) {
        valid = check_text(encoder->walk.record.value, encoder->checked, &passed, &budget);
    }
    for (uint32_t i = 0; valid && budget && i < encoder->header_count; i++) {
        valid = check_text(encoder->headers[i].name, encoder->checked, &passed, &budget);
        if (valid && budget) {
            valid = check_text(encoder->headers[i].value, encoder->checked, &passed, &budget);
        }
    }
    encoder->checked = passed;
    return !valid ? ESK_ERR_NOT_TEXT : budget ? ESK_OK : ESK_ERR_AGAIN;
}

/* --- the state machine --- */

static char *put_text(char *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

static char *put_number(char *at, uint64_t number) {
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    while (count) {
        *at++ = digits[--count];
    }
    return at;
}

static char *put_head(struct eski_consume_encoder *encoder) {
    return put_text(encoder->literal, encoder->is_first_record ? "{\"records\":[" : "");
}

static void set_built_literal(struct eski_consume_encoder *encoder, const char *end) {
    size_t size = (size_t)(end - encoder->literal);
    ESK_ASSERT(size <= sizeof encoder->literal);
    set_token(encoder, ESKI_TOKEN_LITERAL, esk_slice(encoder->literal, size));
}

static char *begin_bracket(struct eski_consume_encoder *encoder) {
    if (encoder->is_stream) {
        char *at = put_number(put_text(encoder->literal, "id: "), encoder->walk.record_offset + 1);
        return put_text(at, "\ndata: {\"partition\":");
    }
    return put_text(put_head(encoder),
                    encoder->is_first_record ? "{\"partition\":" : ",{\"partition\":");
}

static void begin_record(struct eski_consume_encoder *encoder) {
    int64_t timestamp_ms = esk_record_timestamp_ms(&encoder->walk.batch, &encoder->walk.record);
    char *at = begin_bracket(encoder);
    at = put_number(at, encoder->walk.consume->partition);
    at = put_text(at, ",\"offset\":");
    at = put_number(at, encoder->walk.record_offset);
    at = put_text(at, timestamp_ms < 0 ? ",\"timestamp_ms\":-" : ",\"timestamp_ms\":");
    at = put_number(at, timestamp_ms < 0 ? 0 - (uint64_t)timestamp_ms : (uint64_t)timestamp_ms);
    set_built_literal(encoder, put_text(at, ",\"key\":"));
    encoder->is_first_record = false;
    encoder->record_bytes += esk_record_size(&encoder->walk.record);
}

static enum esk_err step_next(struct eski_consume_encoder *encoder, struct esk_error *error) {
    bool found;
    enum esk_err err = next_record(encoder, &found, error);
    if (err) {
        return err;
    }
    encoder->checked = 0;
    encoder->step = found ? STEP_CHECK : STEP_TAIL;
    return ESK_OK;
}

static enum esk_err step_check(struct eski_consume_encoder *encoder, struct esk_error *error) {
    enum esk_err err = check_record(encoder);
    if (err == ESK_ERR_AGAIN) {
        return err;
    }
    if (err) {
        if (encoder->is_first_record) {
            return esk_fail(error, ESK_ERR_NOT_TEXT,
                            "the record at offset %" PRIu64 " is not UTF-8; %s",
                            encoder->walk.record_offset,
                            encoder->is_base64 ? "its header names cannot be shown"
                                               : "read it with encoding=base64");
        }
        encoder->step = STEP_TAIL; /* the next read begins with it */
        return ESK_OK;
    }
    begin_record(encoder);
    encoder->step = STEP_KEY;
    return ESK_OK;
}

static void step_header_name(struct eski_consume_encoder *encoder) {
    while (encoder->header < encoder->header_count && !encoder->headers[encoder->header].is_first) {
        encoder->header++;
    }
    if (encoder->header == encoder->header_count) {
        set_literal(encoder, "}");
        encoder->step = STEP_RECORD_END;
        return;
    }
    encoder->header_value = encoder->header;
    set_token(encoder, ESKI_TOKEN_STRING, encoder->headers[encoder->header].name);
    encoder->step = STEP_HEADER_COLON;
}

static void step_header_rest(struct eski_consume_encoder *encoder) {
    struct eski_consume_header *headers = encoder->headers;
    uint32_t next = headers[encoder->header_value].next;
    if (next) {
        encoder->header_value = next;
        set_literal(encoder, ",");
        encoder->step = STEP_HEADER_VALUE;
        return;
    }
    bool was_repeated = headers[encoder->header].is_repeated;
    do {
        encoder->header++;
    } while (encoder->header < encoder->header_count && !headers[encoder->header].is_first);
    bool has_more = encoder->header < encoder->header_count;
    set_literal(encoder, was_repeated ? (has_more ? "]," : "]") : (has_more ? "," : ""));
    encoder->step = STEP_HEADER_NAME;
}

static void step_tail(struct eski_consume_encoder *encoder) {
    encoder->step = STEP_END;
    if (encoder->is_stream) {
        return;
    }
    char *at = put_text(put_head(encoder), "],\"next_offset\":");
    at = put_text(put_number(at, encoder->walk.next_offset), ",\"high_watermark\":");
    set_built_literal(encoder,
                      put_text(put_number(at, encoder->walk.consume->high_watermark), "}"));
}

/* Makes the next token, or only takes a step. */
static enum esk_err next_step(struct eski_consume_encoder *encoder, struct esk_error *error) {
    switch ((enum step)encoder->step) {
    case STEP_NEXT:
        return step_next(encoder, error);
    case STEP_CHECK:
        return step_check(encoder, error);
    case STEP_KEY:
        set_value(encoder, encoder->walk.record.key);
        encoder->step = STEP_VALUE_LABEL;
        break;
    case STEP_VALUE_LABEL:
        set_literal(encoder, ",\"value\":");
        encoder->step = STEP_VALUE;
        break;
    case STEP_VALUE:
        set_value(encoder, encoder->walk.record.value);
        encoder->step = encoder->header_count ? STEP_HEADERS : STEP_RECORD_END;
        break;
    case STEP_HEADERS:
        group_headers(encoder);
        encoder->header = 0;
        set_literal(encoder, ",\"headers\":{");
        encoder->step = STEP_HEADER_NAME;
        break;
    case STEP_HEADER_NAME:
        step_header_name(encoder);
        break;
    case STEP_HEADER_COLON:
        set_literal(encoder, encoder->headers[encoder->header].is_repeated ? ":[" : ":");
        encoder->step = STEP_HEADER_VALUE;
        break;
    case STEP_HEADER_VALUE:
        set_value(encoder, encoder->headers[encoder->header_value].value);
        encoder->step = STEP_HEADER_REST;
        break;
    case STEP_HEADER_REST:
        step_header_rest(encoder);
        break;
    case STEP_RECORD_END:
        set_literal(encoder, encoder->is_stream ? "}\n\n" : "}");
        encoder->step = STEP_NEXT;
        break;
    case STEP_TAIL:
        step_tail(encoder);
        break;
    case STEP_END:
        break;
    }
    return ESK_OK;
}

enum esk_err eski_consume_encode(struct eski_consume_encoder *encoder, size_t room,
                                 struct esk_buffer *out, struct esk_error *error) {
    uint8_t *start = esk_buffer_grow(out, room);
    uint8_t *at = start;
    const uint8_t *end = start + room;
    enum esk_err err = ESK_OK;
    while (err == ESK_OK) {
        if (encoder->token != ESKI_TOKEN_NONE) {
            if (!write_token(encoder, &at, end)) {
                err = ESK_ERR_AGAIN;
                break;
            }
            encoder->token = ESKI_TOKEN_NONE;
        }
        if (encoder->step == STEP_END) {
            break;
        }
        err = next_step(encoder, error);
    }
    out->size += (size_t)(at - start);
    return err;
}

bool eski_consume_encoder_is_within(const struct eski_consume_encoder *encoder) {
    return encoder->token != ESKI_TOKEN_NONE ||
           (encoder->step >= STEP_KEY && encoder->step <= STEP_RECORD_END);
}
