/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of .proto files: names with dots in them, numbers, strings as they stand, single
 * signs. White space and comments separate them. */
#include "schema/protobuf_tokens_private.h"

#include <stdarg.h>
#include <stdio.h>

enum esk_err eski_token_refuse(const struct eski_proto_parser *parser, const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return esk_fail(parser->error, ESK_ERR_INVALID, "schema, line %u: %s", parser->line, text);
}

static bool is_letter(uint8_t c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Over white space and comments; false: a comment does not end. */
static bool skip_space(struct eski_proto_parser *parser) {
    const uint8_t *at = parser->at;
    while (at < parser->end) {
        if (*at == '\n') {
            parser->line++;
            at++;
        } else if (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\v' || *at == '\f') {
            at++;
        } else if (*at == '/' && parser->end - at > 1 && at[1] == '/') {
            while (at < parser->end && *at != '\n') {
                at++;
            }
        } else if (*at == '/' && parser->end - at > 1 && at[1] == '*') {
            for (at += 2; parser->end - at > 1 && !(at[0] == '*' && at[1] == '/'); at++) {
                parser->line += *at == '\n';
            }
            if (parser->end - at < 2) {
                return false;
            }
            at += 2;
        } else {
            break;
        }
    }
    parser->at = at;
    return true;
}

static enum esk_err scan_text(struct eski_proto_parser *parser) {
    const uint8_t *at = parser->at;
    uint8_t quote = *at++;
    while (at < parser->end && *at != quote && *at != '\n') {
        at += *at == '\\' && parser->end - at > 1 ? 2 : 1;
    }
    if (at >= parser->end || *at != quote) {
        return eski_token_refuse(parser, "a string does not end");
    }
    parser->at = at + 1;
    return ESK_OK;
}

/* Reads the next token. */
enum esk_err eski_token_advance(struct eski_proto_parser *parser) {
    enum esk_err err = ESK_OK;
    if (!skip_space(parser)) {
        return eski_token_refuse(parser, "a comment does not end");
    }
    const uint8_t *start = parser->at;
    if (start == parser->end) {
        parser->kind = ESKI_TOKEN_END;
        parser->token = esk_slice("", 0);
        return ESK_OK;
    }
    uint8_t c = *start;
    if (is_letter(c) || (c == '.' && parser->end - start > 1 && is_letter(start[1]))) {
        parser->kind = ESKI_TOKEN_WORD;
        while (parser->at < parser->end &&
               (is_letter(*parser->at) || is_digit(*parser->at) || *parser->at == '.')) {
            parser->at++;
        }
    } else if (is_digit(c)) {
        parser->kind = ESKI_TOKEN_NUMBER;
        while (parser->at < parser->end &&
               (is_letter(*parser->at) || is_digit(*parser->at) || *parser->at == '.')) {
            parser->at++;
        }
    } else if (c == '"' || c == '\'') {
        parser->kind = ESKI_TOKEN_TEXT;
        err = scan_text(parser);
    } else if (c > ' ' && c < 0x7f) {
        parser->kind = ESKI_TOKEN_SIGN;
        parser->at++;
    } else {
        err = eski_token_refuse(parser, "unexpected byte 0x%02x", c);
    }
    parser->token = esk_slice(start, (size_t)(parser->at - start));
    if (err == ESK_OK && parser->canonical != NULL) {
        esk_buffer_append(parser->canonical, parser->token.data, parser->token.size);
        esk_buffer_u8(parser->canonical, ' ');
    }
    return err;
}

bool eski_token_is(const struct eski_proto_parser *parser, const char *text) {
    return (parser->kind == ESKI_TOKEN_WORD || parser->kind == ESKI_TOKEN_SIGN) &&
           esk_slice_equal(parser->token, esk_slice_text(text));
}

enum esk_err eski_token_unexpected(const struct eski_proto_parser *parser, const char *wanted) {
    return parser->kind == ESKI_TOKEN_END
               ? eski_token_refuse(parser, "it ends where %s should be", wanted)
               : eski_token_refuse(parser, "'%.*s' where %s should be",
                                   parser->token.size > 60 ? 60 : (int)parser->token.size,
                                   (const char *)parser->token.data, wanted);
}

enum esk_err eski_token_expect(struct eski_proto_parser *parser, const char *sign) {
    return eski_token_is(parser, sign) ? eski_token_advance(parser)
                                       : eski_token_unexpected(parser, sign);
}

enum esk_err eski_token_take_word(struct eski_proto_parser *parser, const char *wanted,
                                  struct esk_slice *word) {
    if (parser->kind != ESKI_TOKEN_WORD) {
        return eski_token_unexpected(parser, wanted);
    }
    *word = parser->token;
    return eski_token_advance(parser);
}

/* A name without dots. */
enum esk_err eski_token_take_name(struct eski_proto_parser *parser, const char *wanted,
                                  struct esk_slice *name) {
    if (parser->kind == ESKI_TOKEN_WORD &&
        memchr(parser->token.data, '.', parser->token.size) != NULL) {
        return eski_token_unexpected(parser, wanted);
    }
    return eski_token_take_word(parser, wanted, name);
}

/* Decimal, octal or hexadecimal. */
enum esk_err eski_token_take_number(struct eski_proto_parser *parser, uint64_t *number) {
    struct esk_slice token = parser->token;
    unsigned base = 10;
    size_t i = 0;
    if (parser->kind != ESKI_TOKEN_NUMBER) {
        return eski_token_unexpected(parser, "a number");
    }
    if (token.size > 2 && token.data[0] == '0' && (token.data[1] | 0x20) == 'x') {
        base = 16;
        i = 2;
    } else if (token.size > 1 && token.data[0] == '0') {
        base = 8;
        i = 1;
    }
    *number = 0;
    for (; i < token.size; i++) {
        uint8_t c = token.data[i] | 0x20;
        unsigned digit = is_digit(token.data[i]) ? (unsigned)(token.data[i] - '0')
                         : c >= 'a' && c <= 'f'  ? (unsigned)(c - 'a' + 10)
                                                 : 16;
        if (digit >= base || *number > UINT32_MAX) {
            return eski_token_unexpected(parser, "an integer");
        }
        *number = *number * base + digit;
    }
    return eski_token_advance(parser);
}

/* Past the end of what begins here: the bracket that closes this one. */
enum esk_err eski_token_skip_brackets(struct eski_proto_parser *parser) {
    enum esk_err err = ESK_OK;
    size_t open = 0;
    do {
        if (parser->kind == ESKI_TOKEN_END) {
            return eski_token_unexpected(parser, "a closing bracket");
        }
        if (eski_token_is(parser, "{") || eski_token_is(parser, "[") ||
            eski_token_is(parser, "(")) {
            open++;
        } else if (eski_token_is(parser, "}") || eski_token_is(parser, "]") ||
                   eski_token_is(parser, ")")) {
            open--;
        }
        err = eski_token_advance(parser);
    } while (err == ESK_OK && open > 0);
    return err;
}

/* To and with the next ';' outside of brackets. */
enum esk_err eski_token_skip_statement(struct eski_proto_parser *parser) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && !eski_token_is(parser, ";")) {
        if (parser->kind == ESKI_TOKEN_END || eski_token_is(parser, "}")) {
            return eski_token_unexpected(parser, ";");
        }
        err = eski_token_is(parser, "{") || eski_token_is(parser, "[") || eski_token_is(parser, "(")
                  ? eski_token_skip_brackets(parser)
                  : eski_token_advance(parser);
    }
    return err ? err : eski_token_advance(parser);
}

/* `service X { ... }`, `extend X { ... }`. */
enum esk_err eski_token_skip_block(struct eski_proto_parser *parser) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && !eski_token_is(parser, "{")) {
        if (parser->kind != ESKI_TOKEN_WORD) {
            return eski_token_unexpected(parser, "{");
        }
        err = eski_token_advance(parser);
    }
    return err ? err : eski_token_skip_brackets(parser);
}
