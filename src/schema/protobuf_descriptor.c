/* SPDX-License-Identifier: Apache-2.0 */
/* A FileDescriptorProto, as protobuf's runtimes carry it with them. Field numbers are those of
 * descriptor.proto; what is not known is passed over. */
#include "schema/protobuf_private.h"

#define DEPTH_MAX ESKI_PROTO_DEPTH_MAX

/* A field of any message on the wire. */
struct item {
    uint64_t number;
    uint64_t value;         /* varint */
    struct esk_slice bytes; /* length-delimited */
};

static uint64_t read_varint(struct esk_reader *reader) {
    return esk_read_uvarint(reader);
}

/* false: the end, or it is malformed (reader->failed). */
static bool next_item(struct esk_reader *reader, struct item *item) {
    if (esk_reader_left(reader) == 0) {
        return false;
    }
    uint64_t tag = read_varint(reader);
    *item = (struct item){.number = tag >> 3};
    switch (tag & 7) {
    case 0:
        item->value = read_varint(reader);
        break;
    case 1:
        (void)esk_read_bytes(reader, 8);
        break;
    case 2:
        item->bytes = esk_read_bytes(reader, read_varint(reader));
        break;
    case 5:
        (void)esk_read_bytes(reader, 4);
        break;
    default:
        reader->failed = true;
        break;
    }
    return !reader->failed;
}

struct parser {
    struct eski_proto_file *file;
    struct esk_error *error;
};

static enum esk_err malformed(const struct parser *parser) {
    return esk_fail(parser->error, ESK_ERR_INVALID,
                    "schema: neither a .proto file nor a FileDescriptorProto in base64");
}

static bool is_name(struct esk_slice name) {
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
              (i > 0 && c >= '0' && c <= '9'))) {
            return false;
        }
    }
    return name.size > 0;
}

static bool is_dotted(struct esk_slice name) {
    for (size_t i = 0; i < name.size; i++) {
        uint8_t c = name.data[i];
        if (c != '.' && !is_name(esk_slice(&c, 1)) && (c < '0' || c > '9')) {
            return false;
        }
    }
    return true;
}

static struct esk_slice text_of(struct esk_slice bytes, uint64_t wanted) {
    struct esk_reader reader = esk_reader(bytes);
    struct item item;
    struct esk_slice found = esk_slice(NULL, 0);
    while (next_item(&reader, &item)) {
        if (item.number == wanted) {
            found = item.bytes;
        }
    }
    return found;
}

/* Oneofs are counted from 0 in the order of their declarations. */
static const struct eski_proto_oneof *nth_oneof(const struct eski_proto_message *message,
                                                uint64_t index) {
    const struct eski_proto_oneof *oneof = message->oneofs;
    while (oneof != NULL && index-- > 0) {
        oneof = oneof->next;
    }
    return oneof;
}

static enum esk_err parse_field(struct parser *parser, struct eski_proto_message *message,
                                struct esk_slice bytes) {
    struct eski_proto_field *field = eski_proto_add_field(parser->file, message, parser->error);
    struct esk_reader reader = esk_reader(bytes);
    struct item item;
    bool is_synthetic = false;
    if (field == NULL) {
        return ESK_ERR_TOO_LARGE;
    }
    while (next_item(&reader, &item)) {
        switch (item.number) {
        case 1:
            field->name = item.bytes;
            break;
        case 3:
            field->number = item.value > UINT32_MAX ? UINT32_MAX : (uint32_t)item.value;
            break;
        case 4:
            field->label = item.value == 2   ? ESKI_PROTO_REQUIRED
                           : item.value == 3 ? ESKI_PROTO_REPEATED
                                             : ESKI_PROTO_SINGULAR;
            break;
        case 5:
            field->type.kind = item.value < ESKI_PROTO_NAMED ? (enum eski_proto_kind)item.value : 0;
            break;
        case 6:
            field->type.name = item.bytes;
            break;
        case 9:
            field->oneof = nth_oneof(message, item.value);
            break;
        case 17: /* `optional` of proto3, which is told as a oneof of one */
            is_synthetic = item.value != 0;
            break;
        default:
            break;
        }
    }
    if (is_synthetic) {
        field->oneof = NULL;
    }
    if (field->type.kind == 0 && field->type.name.size > 0) {
        field->type.kind = ESKI_PROTO_MESSAGE;
    }
    bool is_named = field->type.kind == ESKI_PROTO_MESSAGE || field->type.kind == ESKI_PROTO_ENUM ||
                    field->type.kind == ESKI_PROTO_GROUP;
    if (!is_named) {
        field->type.name = esk_slice(NULL, 0);
    }
    return reader.failed || !is_name(field->name) || field->type.kind == 0 ||
                   (is_named && field->type.name.size == 0) || !is_dotted(field->type.name)
               ? malformed(parser)
               : ESK_OK;
}

static enum esk_err parse_reserved(struct parser *parser, struct eski_proto_message *message,
                                   struct esk_slice bytes) {
    struct esk_reader reader = esk_reader(bytes);
    struct item item;
    uint64_t first = 0;
    uint64_t end = 0;
    while (next_item(&reader, &item)) {
        *(item.number == 1 ? &first : &end) = item.value;
    }
    if (reader.failed || first < 1 || end <= first || end > (uint64_t)ESKI_PROTO_NUMBER_MAX + 1) {
        return malformed(parser);
    }
    return eski_proto_reserve(parser->file, message, esk_slice(NULL, 0), (uint32_t)first,
                              (uint32_t)(end - 1), parser->error);
}

static enum esk_err parse_message(struct parser *parser, struct eski_proto_message *parent,
                                  struct esk_slice bytes, unsigned depth);

static enum esk_err parse_member(struct parser *parser, struct eski_proto_message *message,
                                 const struct item *item, unsigned depth) {
    struct esk_reader options;
    struct item option;
    switch (item->number) {
    case 2:
        return parse_field(parser, message, item->bytes);
    case 3:
        return parse_message(parser, message, item->bytes, depth + 1);
    case 4: {
        struct esk_slice name = text_of(item->bytes, 1);
        return is_name(name) ? eski_proto_add_enum(parser->file, message, name, parser->error)
                             : malformed(parser);
    }
    case 7:
        options = esk_reader(item->bytes);
        while (next_item(&options, &option)) {
            message->is_map_entry |= option.number == 7 && option.value != 0;
        }
        return options.failed ? malformed(parser) : ESK_OK;
    case 9:
        return parse_reserved(parser, message, item->bytes);
    case 10:
        return is_name(item->bytes)
                   ? eski_proto_reserve(parser->file, message, item->bytes, 0, 0, parser->error)
                   : ESK_OK;
    default:
        return ESK_OK;
    }
}

static enum esk_err parse_message(struct parser *parser, struct eski_proto_message *parent,
                                  struct esk_slice bytes, unsigned depth) {
    struct esk_slice name = text_of(bytes, 1);
    struct item item;
    enum esk_err err = ESK_OK;
    if (depth > DEPTH_MAX || !is_name(name)) {
        return malformed(parser);
    }
    struct eski_proto_message *message =
        eski_proto_add_message(parser->file, parent, name, parser->error);
    if (message == NULL) {
        return parser->error->code;
    }
    struct esk_reader reader = esk_reader(bytes);
    while (err == ESK_OK && next_item(&reader, &item)) { /* fields refer to oneofs behind them */
        if (item.number == 8) {
            struct esk_slice oneof = text_of(item.bytes, 1);
            err = !is_name(oneof) ? malformed(parser)
                  : eski_proto_add_oneof(parser->file, message, oneof, parser->error) == NULL
                      ? parser->error->code
                      : ESK_OK;
        }
    }
    reader = esk_reader(bytes);
    while (err == ESK_OK && next_item(&reader, &item)) {
        err = parse_member(parser, message, &item, depth);
    }
    return err == ESK_OK && reader.failed ? malformed(parser) : err;
}

enum esk_err eski_proto_parse_descriptor(struct eski_proto_file *file, struct esk_slice bytes,
                                         struct esk_error *error) {
    struct esk_error own;
    struct parser parser = {file, error != NULL ? error : &own};
    struct esk_reader reader = esk_reader(bytes);
    struct item item;
    enum esk_err err = ESK_OK;
    size_t known = 0;
    while (err == ESK_OK && next_item(&reader, &item)) {
        if (item.number == 2) {
            file->package = item.bytes;
            err = is_dotted(item.bytes) ? ESK_OK : malformed(&parser);
        } else if (item.number == 4) {
            err = parse_message(&parser, NULL, item.bytes, 1);
        } else if (item.number == 5) {
            struct esk_slice name = text_of(item.bytes, 1);
            err = is_name(name) ? eski_proto_add_enum(file, NULL, name, parser.error)
                                : malformed(&parser);
        } else if (item.number == 12) {
            file->is_proto3 = esk_slice_equal(item.bytes, esk_slice_text("proto3"));
        }
        known += item.number >= 1 && item.number <= 14;
    }
    return err == ESK_OK && (reader.failed || known == 0) ? malformed(&parser) : err;
}
