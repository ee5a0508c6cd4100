/* SPDX-License-Identifier: Apache-2.0 */
/* Handshake, frame heads, error texts. Lengths are judged as soon as they are there, before what
 * they measure is waited for. */
#include "wire/es01/protocol.h"

#include "base/assert.h"

#include <inttypes.h>
#include <stdio.h>

/* Whether the bytes so far are those of the magic. */
static bool begins_with_magic(struct esk_slice bytes) {
    size_t size = bytes.size < ESK_ES01_MAGIC_BYTES ? bytes.size : ESK_ES01_MAGIC_BYTES;
    return size == 0 || memcmp(bytes.data, ESK_ES01_MAGIC, size) == 0;
}

/* --- handshake --- */

enum esk_err esk_es01_hello_parse(struct esk_slice bytes, struct esk_es01_hello *hello,
                                  size_t *size, struct esk_error *error) {
    if (!begins_with_magic(bytes)) {
        return esk_fail(error, ESK_ERR_INVALID, "the handshake does not begin with ES01");
    }
    if (bytes.size < ESK_ES01_HELLO_HEAD_BYTES) {
        return ESK_ERR_AGAIN;
    }
    hello->features = esk_load_u32(bytes.data + 4);
    uint32_t token_bytes = esk_load_u32(bytes.data + 8);
    if (token_bytes > ESK_TOKEN_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_TOO_LARGE,
                        "token_len is %" PRIu32 "; a token has at most %d bytes", token_bytes,
                        ESK_TOKEN_BYTES_MAX);
    }
    if (bytes.size - ESK_ES01_HELLO_HEAD_BYTES < token_bytes) {
        return ESK_ERR_AGAIN;
    }
    hello->token = esk_slice(bytes.data + ESK_ES01_HELLO_HEAD_BYTES, token_bytes);
    *size = ESK_ES01_HELLO_HEAD_BYTES + token_bytes;
    return ESK_OK;
}

size_t esk_es01_hello_write(const struct esk_es01_hello *hello,
                            uint8_t out[ESK_ES01_HELLO_BYTES_MAX]) {
    ESK_ASSERT(hello->token.size <= ESK_TOKEN_BYTES_MAX);
    memcpy(out, ESK_ES01_MAGIC, ESK_ES01_MAGIC_BYTES);
    esk_store_u32(out + 4, hello->features);
    esk_store_u32(out + 8, (uint32_t)hello->token.size);
    if (hello->token.size) {
        memcpy(out + ESK_ES01_HELLO_HEAD_BYTES, hello->token.data, hello->token.size);
    }
    return ESK_ES01_HELLO_HEAD_BYTES + hello->token.size;
}

enum esk_err esk_es01_welcome_parse(struct esk_slice bytes, struct esk_es01_welcome *welcome,
                                    size_t *size, struct esk_error *error) {
    if (!begins_with_magic(bytes)) {
        return esk_fail(error, ESK_ERR_INVALID, "the broker's answer does not begin with ES01");
    }
    if (bytes.size < ESK_ES01_WELCOME_HEAD_BYTES) {
        return ESK_ERR_AGAIN;
    }
    welcome->status = bytes.data[4];
    welcome->features = esk_load_u32(bytes.data + 5);
    uint32_t message_bytes = esk_load_u32(bytes.data + 9);
    if (message_bytes > ESK_ES01_MESSAGE_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_TOO_LARGE, "msg_len is %" PRIu32, message_bytes);
    }
    if (bytes.size - ESK_ES01_WELCOME_HEAD_BYTES < message_bytes) {
        return ESK_ERR_AGAIN;
    }
    welcome->message = esk_slice(bytes.data + ESK_ES01_WELCOME_HEAD_BYTES, message_bytes);
    *size = ESK_ES01_WELCOME_HEAD_BYTES + message_bytes;
    return ESK_OK;
}

size_t esk_es01_welcome_write(const struct esk_es01_welcome *welcome, uint8_t *out) {
    memcpy(out, ESK_ES01_MAGIC, ESK_ES01_MAGIC_BYTES);
    out[4] = welcome->status;
    esk_store_u32(out + 5, welcome->features);
    esk_store_u32(out + 9, (uint32_t)welcome->message.size);
    if (welcome->message.size) {
        memcpy(out + ESK_ES01_WELCOME_HEAD_BYTES, welcome->message.data, welcome->message.size);
    }
    return ESK_ES01_WELCOME_HEAD_BYTES + welcome->message.size;
}

/* --- frames --- */

enum esk_err esk_es01_frame_parse(struct esk_slice bytes, uint64_t length_max,
                                  struct esk_es01_frame *frame, struct esk_error *error) {
    if (bytes.size < ESK_ES01_LENGTH_BYTES) {
        return ESK_ERR_AGAIN;
    }
    frame->length = esk_load_u32(bytes.data);
    frame->request_id = bytes.size >= 8 ? esk_load_u32(bytes.data + 4) : 0;
    if (frame->length < ESK_ES01_LENGTH_MIN) {
        frame->request_id = 0; /* what stands there is not one */
        return esk_fail(error, ESK_ERR_INVALID, "length is %" PRIu32 "; it must be at least %d",
                        frame->length, ESK_ES01_LENGTH_MIN);
    }
    if (frame->length > length_max) {
        return esk_fail(error, ESK_ERR_TOO_LARGE,
                        "length is %" PRIu32 "; a frame may have %" PRIu64
                        " bytes, --max-request-body-bytes and 64 KiB",
                        frame->length, length_max);
    }
    if (bytes.size < ESK_ES01_FRAME_HEAD_BYTES) {
        return ESK_ERR_AGAIN;
    }
    frame->opcode = bytes.data[8];
    return ESK_OK;
}

/* --- errors --- */

/* Whether `text` is the phrase, or the phrase and then something that is not part of its last word.
 */
static bool begins_with_phrase(struct esk_slice text, const char *phrase) {
    size_t size = strlen(phrase);
    if (text.size < size || memcmp(text.data, phrase, size) != 0) {
        return false;
    }
    return text.size == size || text.data[size] == ':' || text.data[size] == ' ' ||
           text.data[size] == ',';
}

size_t esk_es01_error_write(enum esk_err code, const char *text,
                            uint8_t out[ESK_ES01_ERROR_BYTES_MAX]) {
    const char *phrase = esk_err_phrase(code);
    char *at = (char *)out;
    int size;
    if (*text == '\0') {
        size = snprintf(at, ESK_ES01_ERROR_BYTES_MAX, "%s", phrase);
    } else if (begins_with_phrase(esk_slice_text(text), phrase)) {
        size = snprintf(at, ESK_ES01_ERROR_BYTES_MAX, "%s", text);
    } else {
        size = snprintf(at, ESK_ES01_ERROR_BYTES_MAX, "%s: %s", phrase, text);
    }
    return size < ESK_ES01_ERROR_BYTES_MAX ? (size_t)size : ESK_ES01_ERROR_BYTES_MAX - 1;
}

enum esk_err esk_es01_error_code(struct esk_slice text) {
    enum esk_err found = ESK_ERR_INTERNAL;
    size_t longest = 0;
    for (int code = 1; code < ESK_ERR_COUNT; code++) {
        const char *phrase = esk_err_phrase((enum esk_err)code);
        if (strlen(phrase) > longest && begins_with_phrase(text, phrase)) {
            longest = strlen(phrase);
            found = (enum esk_err)code;
        }
    }
    return found;
}
