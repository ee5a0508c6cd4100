/* SPDX-License-Identifier: Apache-2.0 */
/* The language of .proto files, proto2, proto3 and editions: tokens, then a recursive descent, at
 * most ESKI_PROTO_DEPTH_MAX messages deep. Options, services, extensions and imports are passed
 * over: they do not change how a message of this file looks on the wire. */
#include "schema/protobuf_private.h"

#include <stdarg.h>
#include <stdio.h>

enum token_kind { END, WORD, NUMBER, TEXT, SIGN }; /* WORD: a name, with dots in it */

struct parser {
    struct eski_proto_file *file;
    struct esk_buffer *canonical; /* NULL: not wanted */
    struct esk_error *error;
    const uint8_t *at, *end;
    unsigned line;
    enum token_kind kind; /* of the present token */
    struct esk_slice token;
    unsigned depth;
};

static enum esk_err refuse(const struct parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
static enum esk_err refuse(const struct parser *parser, const char *format, ...) {
    char text[300];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    return esk_fail(parser->error, ESK_ERR_INVALID, "schema, line %u: %s", parser->line, text);
}

/* --- tokens --- */

static bool is_letter(uint8_t c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

static bool is_digit(uint8_t c) {
    return c >= '0' && c <= '9';
}

/* Over white space and comments; false: a comment does not end. */
static bool skip_space(struct parser *parser) {
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

static enum esk_err scan_text(struct parser *parser) {
    const uint8_t *at = parser->at;
    uint8_t quote = *at++;
    while (at < parser->end && *at != quote && *at != '\n') {
        at += *at == '\\' && parser->end - at > 1 ? 2 : 1;
    }
    if (at >= parser->end || *at != quote) {
        return refuse(parser, "a string does not end");
    }
    parser->at = at + 1;
    return ESK_OK;
}

/* Reads the next token. */
static enum esk_err advance(struct parser *parser) {
    enum esk_err err = ESK_OK;
    if (!skip_space(parser)) {
        return refuse(parser, "a comment does not end");
    }
    const uint8_t *start = parser->at;
    if (start == parser->end) {
        parser->kind = END;
        parser->token = esk_slice("", 0);
        return ESK_OK;
    }
    uint8_t c = *start;
    if (is_letter(c) || (c == '.' && parser->end - start > 1 && is_letter(start[1]))) {
        parser->kind = WORD;
        while (parser->at < parser->end &&
               (is_letter(*parser->at) || is_digit(*parser->at) || *parser->at == '.')) {
            parser->at++;
        }
    } else if (is_digit(c)) {
        parser->kind = NUMBER;
        while (parser->at < parser->end &&
               (is_letter(*parser->at) || is_digit(*parser->at) || *parser->at == '.')) {
            parser->at++;
        }
    } else if (c == '"' || c == '\'') {
        parser->kind = TEXT;
        err = scan_text(parser);
    } else if (c > ' ' && c < 0x7f) {
        parser->kind = SIGN;
        parser->at++;
    } else {
        err = refuse(parser, "unexpected byte 0x%02x", c);
    }
    parser->token = esk_slice(start, (size_t)(parser->at - start));
    if (err == ESK_OK && parser->canonical != NULL) {
        esk_buffer_append(parser->canonical, parser->token.data, parser->token.size);
        esk_buffer_u8(parser->canonical, ' ');
    }
    return err;
}

static bool is(const struct parser *parser, const char *text) {
    return (parser->kind == WORD || parser->kind == SIGN) &&
           esk_slice_equal(parser->token, esk_slice_text(text));
}

static enum esk_err unexpected(const struct parser *parser, const char *wanted) {
    return parser->kind == END ? refuse(parser, "it ends where %s should be", wanted)
                               : refuse(parser, "'%.*s' where %s should be",
                                        parser->token.size > 60 ? 60 : (int)parser->token.size,
                                        (const char *)parser->token.data, wanted);
}

static enum esk_err expect(struct parser *parser, const char *sign) {
    return is(parser, sign) ? advance(parser) : unexpected(parser, sign);
}

static enum esk_err take_word(struct parser *parser, const char *wanted, struct esk_slice *word) {
    if (parser->kind != WORD) {
        return unexpected(parser, wanted);
    }
    *word = parser->token;
    return advance(parser);
}

/* A name without dots. */
static enum esk_err take_name(struct parser *parser, const char *wanted, struct esk_slice *name) {
    if (parser->kind == WORD && memchr(parser->token.data, '.', parser->token.size) != NULL) {
        return unexpected(parser, wanted);
    }
    return take_word(parser, wanted, name);
}

/* Decimal, octal or hexadecimal. */
static enum esk_err take_number(struct parser *parser, uint64_t *number) {
    struct esk_slice token = parser->token;
    unsigned base = 10;
    size_t i = 0;
    if (parser->kind != NUMBER) {
        return unexpected(parser, "a number");
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
            return unexpected(parser, "an integer");
        }
        *number = *number * base + digit;
    }
    return advance(parser);
}

/* Past the end of what begins here: the bracket that closes this one. */
static enum esk_err skip_brackets(struct parser *parser) {
    enum esk_err err = ESK_OK;
    size_t open = 0;
    do {
        if (parser->kind == END) {
            return unexpected(parser, "a closing bracket");
        }
        if (is(parser, "{") || is(parser, "[") || is(parser, "(")) {
            open++;
        } else if (is(parser, "}") || is(parser, "]") || is(parser, ")")) {
            open--;
        }
        err = advance(parser);
    } while (err == ESK_OK && open > 0);
    return err;
}

/* To and with the next ';' outside of brackets. */
static enum esk_err skip_statement(struct parser *parser) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && !is(parser, ";")) {
        if (parser->kind == END || is(parser, "}")) {
            return unexpected(parser, ";");
        }
        err = is(parser, "{") || is(parser, "[") || is(parser, "(") ? skip_brackets(parser)
                                                                    : advance(parser);
    }
    return err ? err : advance(parser);
}

/* `service X { ... }`, `extend X { ... }`. */
static enum esk_err skip_block(struct parser *parser) {
    enum esk_err err = ESK_OK;
    while (err == ESK_OK && !is(parser, "{")) {
        if (parser->kind != WORD) {
            return unexpected(parser, "{");
        }
        err = advance(parser);
    }
    return err ? err : skip_brackets(parser);
}

/* --- messages --- */

static enum esk_err parse_body(struct parser *parser, struct eski_proto_message *message);

static enum esk_err take_type(struct parser *parser, struct eski_proto_type *type) {
    struct esk_slice word;
    enum esk_err err = take_word(parser, "a type", &word);
    if (err == ESK_OK && !eski_proto_scalar(word, &type->kind)) {
        type->kind = ESKI_PROTO_MESSAGE; /* or an enum: seen when names are resolved */
        type->name = word;
    }
    return err;
}

static enum esk_err take_map(struct parser *parser, struct eski_proto_field *field) {
    field->label = ESKI_PROTO_REPEATED;
    enum esk_err err = expect(parser, "<");
    if (err == ESK_OK) {
        err = take_type(parser, &field->key);
    }
    if (err == ESK_OK) {
        err = expect(parser, ",");
    }
    if (err == ESK_OK) {
        err = take_type(parser, &field->value);
    }
    field->type.kind = ESKI_PROTO_MAP;
    return err ? err : expect(parser, ">");
}

/* The rest of a field from its name on. A group has a body, which is a message of its own. */
static enum esk_err finish_field(struct parser *parser, struct eski_proto_message *message,
                                 struct eski_proto_field *field) {
    uint64_t number = 0;
    enum esk_err err = take_name(parser, "a field's name", &field->name);
    if (err == ESK_OK) {
        err = expect(parser, "=");
    }
    if (err == ESK_OK) {
        err = take_number(parser, &number);
    }
    field->number = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    if (err == ESK_OK && is(parser, "[")) {
        err = skip_brackets(parser);
    }
    if (err == ESK_OK && field->type.kind == ESKI_PROTO_GROUP) {
        field->type.name = field->name;
        struct eski_proto_message *group =
            eski_proto_add_message(parser->file, message, field->name, parser->error);
        return group == NULL ? parser->error->code : parse_body(parser, group);
    }
    return err ? err : expect(parser, ";");
}

static enum esk_err parse_field(struct parser *parser, struct eski_proto_message *message,
                                const struct eski_proto_oneof *oneof) {
    struct eski_proto_field *field = eski_proto_add_field(parser->file, message, parser->error);
    enum esk_err err = ESK_OK;
    if (field == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    field->oneof = oneof;
    if (is(parser, "optional")) {
        err = advance(parser);
    } else if (is(parser, "required")) {
        field->label = ESKI_PROTO_REQUIRED;
        err = advance(parser);
    } else if (is(parser, "repeated")) {
        field->label = ESKI_PROTO_REPEATED;
        err = advance(parser);
    }
    if (err == ESK_OK && is(parser, "map")) {
        err = advance(parser);
        if (err == ESK_OK) {
            err = take_map(parser, field);
        }
    } else if (err == ESK_OK && is(parser, "group")) {
        field->type.kind = ESKI_PROTO_GROUP;
        err = advance(parser);
    } else if (err == ESK_OK) {
        err = take_type(parser, &field->type);
    }
    return err ? err : finish_field(parser, message, field);
}

static enum esk_err parse_oneof(struct parser *parser, struct eski_proto_message *message) {
    struct esk_slice name;
    enum esk_err err = advance(parser);
    if (err == ESK_OK) {
        err = take_name(parser, "a oneof's name", &name);
    }
    if (err == ESK_OK) {
        err = expect(parser, "{");
    }
    if (err) {
        return err;
    }
    struct eski_proto_oneof *oneof =
        eski_proto_add_oneof(parser->file, message, name, parser->error);
    if (oneof == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    while (err == ESK_OK && !is(parser, "}")) {
        if (is(parser, "option")) {
            err = skip_statement(parser);
        } else if (is(parser, ";")) {
            err = advance(parser);
        } else {
            err = parse_field(parser, message, oneof);
        }
    }
    return err ? err : advance(parser);
}

/* `reserved 2, 9 to 11, 40 to max;` or `reserved "a", "b";` */
static enum esk_err parse_reserved(struct parser *parser, struct eski_proto_message *message) {
    enum esk_err err;
    do {
        uint64_t first = 0;
        uint64_t last = 0;
        struct esk_slice name = esk_slice(NULL, 0);
        err = advance(parser); /* the word, or a comma */
        if (err == ESK_OK && parser->kind == TEXT) {
            name = esk_slice(parser->token.data + 1, parser->token.size - 2);
            err = advance(parser);
        } else if (err == ESK_OK && parser->kind == WORD) {
            err = take_name(parser, "a name", &name);
        } else if (err == ESK_OK) {
            err = take_number(parser, &first);
            last = first;
        }
        if (err == ESK_OK && first > 0 && is(parser, "to")) {
            err = advance(parser);
            if (err == ESK_OK && is(parser, "max")) {
                last = ESKI_PROTO_NUMBER_MAX;
                err = advance(parser);
            } else if (err == ESK_OK) {
                err = take_number(parser, &last);
            }
        }
        if (err == ESK_OK && name.size == 0 &&
            (first < 1 || last < first || last > ESKI_PROTO_NUMBER_MAX)) {
            err = refuse(parser, "reserved: not a range of field numbers");
        }
        if (err == ESK_OK) {
            err = eski_proto_reserve(parser->file, message, name, (uint32_t)first, (uint32_t)last,
                                     parser->error);
        }
    } while (err == ESK_OK && is(parser, ","));
    return err ? err : expect(parser, ";");
}

static enum esk_err parse_enum(struct parser *parser, struct eski_proto_message *parent) {
    struct esk_slice name;
    enum esk_err err = advance(parser);
    if (err == ESK_OK) {
        err = take_name(parser, "an enum's name", &name);
    }
    if (err == ESK_OK) {
        err = eski_proto_add_enum(parser->file, parent, name, parser->error);
    }
    if (err == ESK_OK) {
        err = expect(parser, "{");
    }
    while (err == ESK_OK && !is(parser, "}")) {
        err = is(parser, ";") ? advance(parser) : skip_statement(parser);
    }
    return err ? err : advance(parser);
}

static enum esk_err parse_message(struct parser *parser, struct eski_proto_message *parent) {
    struct esk_slice name;
    enum esk_err err = advance(parser);
    if (err == ESK_OK) {
        err = take_name(parser, "a message's name", &name);
    }
    if (err) {
        return err;
    }
    struct eski_proto_message *message =
        eski_proto_add_message(parser->file, parent, name, parser->error);
    return message == NULL ? parser->error->code : parse_body(parser, message);
}

static enum esk_err parse_member(struct parser *parser, struct eski_proto_message *message) {
    if (is(parser, ";")) {
        return advance(parser);
    }
    if (is(parser, "message")) {
        return parse_message(parser, message);
    }
    if (is(parser, "enum")) {
        return parse_enum(parser, message);
    }
    if (is(parser, "oneof")) {
        return parse_oneof(parser, message);
    }
    if (is(parser, "reserved")) {
        return parse_reserved(parser, message);
    }
    if (is(parser, "extend")) {
        return skip_block(parser);
    }
    if (is(parser, "option") || is(parser, "extensions")) {
        return skip_statement(parser);
    }
    return parse_field(parser, message, NULL);
}

static enum esk_err parse_body(struct parser *parser, struct eski_proto_message *message) {
    if (parser->depth == ESKI_PROTO_DEPTH_MAX) {
        return refuse(parser, "messages nest more than %d deep", ESKI_PROTO_DEPTH_MAX);
    }
    parser->depth++;
    enum esk_err err = expect(parser, "{");
    while (err == ESK_OK && !is(parser, "}")) {
        err = parse_member(parser, message);
    }
    parser->depth--;
    return err ? err : advance(parser);
}

/* --- the file --- */

static enum esk_err parse_syntax(struct parser *parser) {
    enum esk_err err = advance(parser);
    if (err == ESK_OK) {
        err = expect(parser, "=");
    }
    if (err == ESK_OK && parser->kind != TEXT) {
        return unexpected(parser, "a string");
    }
    parser->file->is_proto3 = err == ESK_OK && parser->token.size == 8 &&
                              memcmp(parser->token.data + 1, "proto3", 6) == 0;
    if (err == ESK_OK) {
        err = advance(parser);
    }
    return err ? err : expect(parser, ";");
}

static enum esk_err parse_top(struct parser *parser) {
    if (is(parser, ";")) {
        return advance(parser);
    }
    if (is(parser, "syntax") || is(parser, "edition")) {
        return parse_syntax(parser);
    }
    if (is(parser, "package")) {
        enum esk_err err = advance(parser);
        if (err == ESK_OK) {
            err = take_word(parser, "a package's name", &parser->file->package);
        }
        return err ? err : expect(parser, ";");
    }
    if (is(parser, "message")) {
        return parse_message(parser, NULL);
    }
    if (is(parser, "enum")) {
        return parse_enum(parser, NULL);
    }
    if (is(parser, "service") || is(parser, "extend")) {
        return skip_block(parser);
    }
    if (is(parser, "import") || is(parser, "option")) {
        return skip_statement(parser);
    }
    return unexpected(parser, "message, enum, package or the like");
}

enum esk_err eski_proto_parse_text(struct eski_proto_file *file, struct esk_slice text,
                                   struct esk_buffer *canonical, struct esk_error *error) {
    struct esk_error own;
    struct parser parser = {.file = file,
                            .canonical = canonical,
                            .error = error != NULL ? error : &own,
                            .at = text.data,
                            .end = text.data + text.size,
                            .line = 1};
    enum esk_err err = advance(&parser);
    while (err == ESK_OK && parser.kind != END) {
        err = parse_top(&parser);
    }
    return err;
}
