/* SPDX-License-Identifier: Apache-2.0 */
/* The tokens of .proto files, and what is passed over. Every function that reads ends on the token
 * behind what it read. */
#ifndef ESK_SCHEMA_PROTOBUF_TOKENS_PRIVATE_H
#define ESK_SCHEMA_PROTOBUF_TOKENS_PRIVATE_H

#include "schema/protobuf_private.h"

enum eski_token_kind {
    ESKI_TOKEN_END,
    ESKI_TOKEN_WORD,
    ESKI_TOKEN_NUMBER,
    ESKI_TOKEN_TEXT,
    ESKI_TOKEN_SIGN
}; /* a word is a name, with dots in it */

struct eski_proto_parser {
    struct eski_proto_file *file;
    struct esk_buffer *canonical; /* NULL: not wanted */
    struct esk_error *error;
    const uint8_t *at, *end;
    unsigned line;
    enum eski_token_kind kind; /* of the present token */
    struct esk_slice token;
    unsigned depth;
};

/* ESK_ERR_INVALID, with the line. */
enum esk_err eski_token_refuse(const struct eski_proto_parser *parser, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Reads the next token. */
enum esk_err eski_token_advance(struct eski_proto_parser *parser);
/* Whether the present one is this word or sign. */
bool eski_token_is(const struct eski_proto_parser *parser, const char *text);
/* ESK_ERR_INVALID: something else should be here. */
enum esk_err eski_token_unexpected(const struct eski_proto_parser *parser, const char *wanted);
enum esk_err eski_token_expect(struct eski_proto_parser *parser, const char *sign);
enum esk_err eski_token_take_word(struct eski_proto_parser *parser, const char *wanted,
                                  struct esk_slice *word);
/* A name without dots. */
enum esk_err eski_token_take_name(struct eski_proto_parser *parser, const char *wanted,
                                  struct esk_slice *name);
/* Decimal, octal or hexadecimal, a little above 32 bits at most. */
enum esk_err eski_token_take_number(struct eski_proto_parser *parser, uint64_t *number);
/* Past the bracket that closes this one. */
enum esk_err eski_token_skip_brackets(struct eski_proto_parser *parser);
/* To and with the next ';' outside of brackets. */
enum esk_err eski_token_skip_statement(struct eski_proto_parser *parser);
/* `service X { ... }`, `extend X { ... }`. */
enum esk_err eski_token_skip_block(struct eski_proto_parser *parser);

#endif
