/* SPDX-License-Identifier: Apache-2.0 */
/* The language of .proto files, proto2, proto3 and editions: a recursive descent, at most
 * ESKI_PROTO_DEPTH_MAX messages deep. Options, services, extensions and imports are passed over:
 * they do not change how a message of this file looks on the wire. */
#include "schema/protobuf_tokens_private.h"

/* --- messages --- */

static enum esk_err parse_body(struct eski_proto_parser *parser,
                               struct eski_proto_message *message);

static enum esk_err take_type(struct eski_proto_parser *parser, struct eski_proto_type *type) {
    struct esk_slice word;
    enum esk_err err = eski_token_take_word(parser, "a type", &word);
    if (err == ESK_OK && !eski_proto_scalar(word, &type->kind)) {
        type->kind = ESKI_PROTO_MESSAGE; /* or an enum: seen when names are resolved */
        type->name = word;
    }
    return err;
}

static enum esk_err take_map(struct eski_proto_parser *parser, struct eski_proto_field *field) {
    field->label = ESKI_PROTO_REPEATED;
    enum esk_err err = eski_token_expect(parser, "<");
    if (err == ESK_OK) {
        err = take_type(parser, &field->key);
    }
    if (err == ESK_OK) {
        err = eski_token_expect(parser, ",");
    }
    if (err == ESK_OK) {
        err = take_type(parser, &field->value);
    }
    field->type.kind = ESKI_PROTO_MAP;
    return err ? err : eski_token_expect(parser, ">");
}

/* The rest of a field from its name on. A group has a body, which is a message of its own. */
static enum esk_err finish_field(struct eski_proto_parser *parser,
                                 struct eski_proto_message *message,
                                 struct eski_proto_field *field) {
    uint64_t number = 0;
    enum esk_err err = eski_token_take_name(parser, "a field's name", &field->name);
    if (err == ESK_OK) {
        err = eski_token_expect(parser, "=");
    }
    if (err == ESK_OK) {
        err = eski_token_take_number(parser, &number);
    }
    field->number = number > UINT32_MAX ? UINT32_MAX : (uint32_t)number;
    if (err == ESK_OK && eski_token_is(parser, "[")) {
        err = eski_token_skip_brackets(parser);
    }
    if (err == ESK_OK && field->type.kind == ESKI_PROTO_GROUP) {
        field->type.name = field->name;
        struct eski_proto_message *group =
            eski_proto_add_message(parser->file, message, field->name, parser->error);
        return group == NULL ? parser->error->code : parse_body(parser, group);
    }
    return err ? err : eski_token_expect(parser, ";");
}

static enum esk_err parse_field(struct eski_proto_parser *parser,
                                struct eski_proto_message *message,
                                const struct eski_proto_oneof *oneof) {
    struct eski_proto_field *field = eski_proto_add_field(parser->file, message, parser->error);
    enum esk_err err = ESK_OK;
    if (field == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    field->oneof = oneof;
    if (eski_token_is(parser, "optional")) {
        err = eski_token_advance(parser);
    } else if (eski_token_is(parser, "required")) {
        field->label = ESKI_PROTO_REQUIRED;
        err = eski_token_advance(parser);
    } else if (eski_token_is(parser, "repeated")) {
        field->label = ESKI_PROTO_REPEATED;
        err = eski_token_advance(parser);
    }
    if (err == ESK_OK && eski_token_is(parser, "map")) {
        err = eski_token_advance(parser);
        if (err == ESK_OK) {
            err = take_map(parser, field);
        }
    } else if (err == ESK_OK && eski_token_is(parser, "group")) {
        field->type.kind = ESKI_PROTO_GROUP;
        err = eski_token_advance(parser);
    } else if (err == ESK_OK) {
        err = take_type(parser, &field->type);
    }
    return err ? err : finish_field(parser, message, field);
}

static enum esk_err parse_oneof(struct eski_proto_parser *parser,
                                struct eski_proto_message *message) {
    struct esk_slice name;
    enum esk_err err = eski_token_advance(parser);
    if (err == ESK_OK) {
        err = eski_token_take_name(parser, "a oneof's name", &name);
    }
    if (err == ESK_OK) {
        err = eski_token_expect(parser, "{");
    }
    if (err) {
        return err;
    }
    struct eski_proto_oneof *oneof =
        eski_proto_add_oneof(parser->file, message, name, parser->error);
    if (oneof == NULL) {
        return parser->error->code;
    }
    while (err == ESK_OK && !eski_token_is(parser, "}")) {
        if (eski_token_is(parser, "option")) {
            err = eski_token_skip_statement(parser);
        } else if (eski_token_is(parser, ";")) {
            err = eski_token_advance(parser);
        } else {
            err = parse_field(parser, message, oneof);
        }
    }
    return err ? err : eski_token_advance(parser);
}

/* `reserved 2, 9 to 11, 40 to max;` or `reserved "a", "b";` */
static enum esk_err parse_reserved(struct eski_proto_parser *parser,
                                   struct eski_proto_message *message) {
    enum esk_err err;
    do {
        uint64_t first = 0;
        uint64_t last = 0;
        struct esk_slice name = esk_slice(NULL, 0);
        err = eski_token_advance(parser); /* the word, or a comma */
        if (err == ESK_OK && parser->kind == ESKI_TOKEN_TEXT) {
            name = esk_slice(parser->token.data + 1, parser->token.size - 2);
            err = eski_token_advance(parser);
        } else if (err == ESK_OK && parser->kind == ESKI_TOKEN_WORD) {
            err = eski_token_take_name(parser, "a name", &name);
        } else if (err == ESK_OK) {
            err = eski_token_take_number(parser, &first);
            last = first;
        }
        if (err == ESK_OK && first > 0 && eski_token_is(parser, "to")) {
            err = eski_token_advance(parser);
            if (err == ESK_OK && eski_token_is(parser, "max")) {
                last = ESKI_PROTO_NUMBER_MAX;
                err = eski_token_advance(parser);
            } else if (err == ESK_OK) {
                err = eski_token_take_number(parser, &last);
            }
        }
        if (err == ESK_OK && name.size == 0 &&
            (first < 1 || last < first || last > ESKI_PROTO_NUMBER_MAX)) {
            err = eski_token_refuse(parser, "reserved: not a range of field numbers");
        }
        if (err == ESK_OK) {
            err = eski_proto_reserve(parser->file, message, name, (uint32_t)first, (uint32_t)last,
                                     parser->error);
        }
    } while (err == ESK_OK && eski_token_is(parser, ","));
    return err ? err : eski_token_expect(parser, ";");
}

static enum esk_err parse_enum(struct eski_proto_parser *parser,
                               struct eski_proto_message *parent) {
    struct esk_slice name;
    enum esk_err err = eski_token_advance(parser);
    if (err == ESK_OK) {
        err = eski_token_take_name(parser, "an enum's name", &name);
    }
    if (err == ESK_OK) {
        err = eski_proto_add_enum(parser->file, parent, name, parser->error);
    }
    if (err == ESK_OK) {
        err = eski_token_expect(parser, "{");
    }
    while (err == ESK_OK && !eski_token_is(parser, "}")) {
        err = eski_token_is(parser, ";") ? eski_token_advance(parser)
                                         : eski_token_skip_statement(parser);
    }
    return err ? err : eski_token_advance(parser);
}

static enum esk_err parse_message(struct eski_proto_parser *parser,
                                  struct eski_proto_message *parent) {
    struct esk_slice name;
    enum esk_err err = eski_token_advance(parser);
    if (err == ESK_OK) {
        err = eski_token_take_name(parser, "a message's name", &name);
    }
    if (err) {
        return err;
    }
    struct eski_proto_message *message =
        eski_proto_add_message(parser->file, parent, name, parser->error);
    return message == NULL ? parser->error->code : parse_body(parser, message);
}

static enum esk_err parse_member(struct eski_proto_parser *parser,
                                 struct eski_proto_message *message) {
    if (eski_token_is(parser, ";")) {
        return eski_token_advance(parser);
    }
    if (eski_token_is(parser, "message")) {
        return parse_message(parser, message);
    }
    if (eski_token_is(parser, "enum")) {
        return parse_enum(parser, message);
    }
    if (eski_token_is(parser, "oneof")) {
        return parse_oneof(parser, message);
    }
    if (eski_token_is(parser, "reserved")) {
        return parse_reserved(parser, message);
    }
    if (eski_token_is(parser, "extend")) {
        return eski_token_skip_block(parser);
    }
    if (eski_token_is(parser, "option") || eski_token_is(parser, "extensions")) {
        return eski_token_skip_statement(parser);
    }
    return parse_field(parser, message, NULL);
}

static enum esk_err parse_body(struct eski_proto_parser *parser,
                               struct eski_proto_message *message) {
    if (parser->depth == ESKI_PROTO_DEPTH_MAX) {
        return eski_token_refuse(parser, "messages nest more than %d deep", ESKI_PROTO_DEPTH_MAX);
    }
    parser->depth++;
    enum esk_err err = eski_token_expect(parser, "{");
    while (err == ESK_OK && !eski_token_is(parser, "}")) {
        err = parse_member(parser, message);
    }
    parser->depth--;
    return err ? err : eski_token_advance(parser);
}

/* --- the file --- */

static enum esk_err parse_syntax(struct eski_proto_parser *parser) {
    enum esk_err err = eski_token_advance(parser);
    if (err == ESK_OK) {
        err = eski_token_expect(parser, "=");
    }
    if (err == ESK_OK && parser->kind != ESKI_TOKEN_TEXT) {
        return eski_token_unexpected(parser, "a string");
    }
    parser->file->is_proto3 = err == ESK_OK && parser->token.size == 8 &&
                              memcmp(parser->token.data + 1, "proto3", 6) == 0;
    if (err == ESK_OK) {
        err = eski_token_advance(parser);
    }
    return err ? err : eski_token_expect(parser, ";");
}

static enum esk_err parse_top(struct eski_proto_parser *parser) {
    if (eski_token_is(parser, ";")) {
        return eski_token_advance(parser);
    }
    if (eski_token_is(parser, "syntax") || eski_token_is(parser, "edition")) {
        return parse_syntax(parser);
    }
    if (eski_token_is(parser, "package")) {
        enum esk_err err = eski_token_advance(parser);
        if (err == ESK_OK) {
            err = eski_token_take_word(parser, "a package's name", &parser->file->package);
        }
        return err ? err : eski_token_expect(parser, ";");
    }
    if (eski_token_is(parser, "message")) {
        return parse_message(parser, NULL);
    }
    if (eski_token_is(parser, "enum")) {
        return parse_enum(parser, NULL);
    }
    if (eski_token_is(parser, "service") || eski_token_is(parser, "extend")) {
        return eski_token_skip_block(parser);
    }
    if (eski_token_is(parser, "import") || eski_token_is(parser, "option")) {
        return eski_token_skip_statement(parser);
    }
    return eski_token_unexpected(parser, "message, enum, package or the like");
}

enum esk_err eski_proto_parse_text(struct eski_proto_file *file, struct esk_slice text,
                                   struct esk_buffer *canonical, struct esk_error *error) {
    struct esk_error own;
    struct eski_proto_parser parser = {.file = file,
                                       .canonical = canonical,
                                       .error = error != NULL ? error : &own,
                                       .at = text.data,
                                       .end = text.data + text.size,
                                       .line = 1};
    enum esk_err err = eski_token_advance(&parser);
    while (err == ESK_OK && parser.kind != ESKI_TOKEN_END) {
        err = parse_top(&parser);
    }
    return err;
}
