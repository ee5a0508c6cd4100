/* SPDX-License-Identifier: Apache-2.0 */
/* A state machine over whatever pieces the socket gives: lines are gathered until they are whole,
 * body bytes are taken as they are. */
#include "esk/http_answer.h"

#include <string.h>
#include <strings.h>

void esk_http_answer_init(struct esk_http_answer *answer, bool keeps_body) {
    memset(answer, 0, sizeof(*answer));
    esk_buffer_init(&answer->text);
    esk_buffer_init(&answer->body);
    answer->keeps_body = keeps_body;
}

void esk_http_answer_fini(struct esk_http_answer *answer) {
    esk_buffer_fini(&answer->text);
    esk_buffer_fini(&answer->body);
}

void esk_http_answer_begin(struct esk_http_answer *answer) {
    answer->state = ESK_HTTP_ANSWER_HEAD;
    answer->status = 0;
    answer->left = answer->body_bytes = 0;
    answer->text.size = answer->body.size = answer->tail_size = 0;
}

static enum esk_err refuse(struct esk_error *error, const char *reason) {
    return esk_fail(error, ESK_ERR_CORRUPT, "the server's answer is no HTTP/1.1: %s", reason);
}

/* --- the head --- */

static bool is_named(struct esk_slice line, const char *name, struct esk_slice *value) {
    size_t size = strlen(name);
    if (line.size <= size || line.data[size] != ':' ||
        strncasecmp((const char *)line.data, name, size) != 0) {
        return false;
    }
    const uint8_t *begin = line.data + size + 1;
    const uint8_t *end = line.data + line.size;
    while (begin < end && (*begin == ' ' || *begin == '\t')) {
        begin++;
    }
    while (end > begin && (end[-1] == ' ' || end[-1] == '\t')) {
        end--;
    }
    *value = esk_slice(begin, (size_t)(end - begin));
    return true;
}

static bool is_text(struct esk_slice value, const char *text) {
    return value.size == strlen(text) &&
           strncasecmp((const char *)value.data, text, value.size) == 0;
}

/* Digits of a base; false: anything else, or too large for any body. */
static bool read_number(struct esk_slice text, unsigned base, uint64_t *number) {
    *number = 0;
    for (size_t i = 0; i < text.size; i++) {
        uint8_t c = text.data[i];
        unsigned digit = 99;
        if (c >= '0' && c <= '9') {
            digit = (unsigned)(c - '0');
        } else if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') {
            digit = (unsigned)((c | 0x20) - 'a') + 10;
        }
        if (digit >= base || *number > ESK_HTTP_ANSWER_BODY_BYTES_MAX) {
            return false;
        }
        *number = *number * base + digit;
    }
    return text.size > 0;
}

static enum esk_err read_header(struct esk_http_answer *answer, struct esk_slice line,
                                struct esk_error *error) {
    struct esk_slice value;
    if (is_named(line, "content-length", &value)) {
        if (answer->has_length || !read_number(value, 10, &answer->left)) {
            return refuse(error, "its Content-Length");
        }
        answer->has_length = true;
    } else if (is_named(line, "transfer-encoding", &value)) {
        if (answer->is_chunked || !is_text(value, "chunked")) {
            return refuse(error, "its Transfer-Encoding");
        }
        answer->is_chunked = true;
    } else if (is_named(line, "connection", &value)) {
        answer->keeps_alive = !is_text(value, "close");
    } else if (!memchr(line.data, ':', line.size) || line.data[0] == ' ' || line.data[0] == '\t') {
        return refuse(error, "a header line");
    }
    return ESK_OK;
}

static enum esk_err read_status(struct esk_http_answer *answer, struct esk_slice line,
                                struct esk_error *error) {
    uint64_t status = 0;
    if (line.size < 12 || memcmp(line.data, "HTTP/1.", 7) != 0 || line.data[8] != ' ' ||
        !read_number(esk_slice(line.data + 9, 3), 10, &status) || status < 100 ||
        (line.size > 12 && line.data[12] != ' ')) {
        return refuse(error, "its first line");
    }
    answer->status = (int)status;
    answer->keeps_alive = line.data[7] != '0';
    answer->is_chunked = answer->has_length = false;
    answer->left = 0;
    return ESK_OK;
}

/* The head is whole: what comes now? */
static enum esk_err begin_body(struct esk_http_answer *answer, struct esk_error *error) {
    if (answer->is_chunked && answer->has_length) {
        return refuse(error, "both Content-Length and Transfer-Encoding");
    }
    if (answer->left > ESK_HTTP_ANSWER_BODY_BYTES_MAX) {
        return refuse(error, "its body is too large");
    }
    if (answer->status < 200) {
        answer->state = ESK_HTTP_ANSWER_HEAD; /* an interim answer */
    } else if (answer->status == 204 || answer->status == 304) {
        answer->state = ESK_HTTP_ANSWER_DONE;
    } else if (answer->is_chunked) {
        answer->state = ESK_HTTP_ANSWER_CHUNK_HEAD;
    } else if (answer->has_length) {
        answer->state = answer->left ? ESK_HTTP_ANSWER_LENGTH : ESK_HTTP_ANSWER_DONE;
    } else {
        answer->keeps_alive = false;
        answer->state = ESK_HTTP_ANSWER_TO_END;
    }
    return ESK_OK;
}

static enum esk_err read_head(struct esk_http_answer *answer, struct esk_slice head,
                              struct esk_error *error) {
    const uint8_t *at = head.data;
    const uint8_t *end = head.data + head.size - 2; /* the empty line */
    enum esk_err err = ESK_OK;
    for (bool is_first = true; err == ESK_OK && at < end; is_first = false) {
        const uint8_t *line_end = memmem(at, (size_t)(end - at), "\r\n", 2);
        if (!line_end) {
            return refuse(error, "a header line");
        }
        struct esk_slice line = esk_slice(at, (size_t)(line_end - at));
        err = is_first ? read_status(answer, line, error) : read_header(answer, line, error);
        at = line_end + 2;
    }
    return err != ESK_OK         ? err
           : answer->status == 0 ? refuse(error, "its first line")
                                 : begin_body(answer, error);
}

/* --- the body --- */

static void keep_tail(struct esk_http_answer *answer, const uint8_t *bytes, size_t size) {
    if (size >= sizeof(answer->tail)) {
        memcpy(answer->tail, bytes + size - sizeof(answer->tail), sizeof(answer->tail));
        answer->tail_size = sizeof(answer->tail);
        return;
    }
    size_t kept = answer->tail_size;
    if (kept + size > sizeof(answer->tail)) {
        size_t dropped = kept + size - sizeof(answer->tail);
        memmove(answer->tail, answer->tail + dropped, kept - dropped);
        kept -= dropped;
    }
    memcpy(answer->tail + kept, bytes, size);
    answer->tail_size = kept + size;
}

static enum esk_err take_body(struct esk_http_answer *answer, struct esk_slice input,
                              size_t *consumed, struct esk_error *error) {
    bool is_bounded = answer->state != ESK_HTTP_ANSWER_TO_END;
    size_t size = input.size;
    if (is_bounded && size > answer->left) {
        size = (size_t)answer->left;
    }
    answer->body_bytes += size;
    if (answer->body_bytes > ESK_HTTP_ANSWER_BODY_BYTES_MAX) {
        return refuse(error, "its body is too large");
    }
    if (answer->keeps_body) {
        esk_buffer_append(&answer->body, input.data, size);
    } else {
        keep_tail(answer, input.data, size);
    }
    *consumed += size;
    if (is_bounded) {
        answer->left -= size;
        if (answer->left == 0) {
            answer->state = answer->state == ESK_HTTP_ANSWER_LENGTH ? ESK_HTTP_ANSWER_DONE
                                                                    : ESK_HTTP_ANSWER_CHUNK_END;
        }
    }
    return ESK_OK;
}

/* A line of a chunked body, with its CRLF. */
static enum esk_err read_chunk_line(struct esk_http_answer *answer, struct esk_slice line,
                                    struct esk_error *error) {
    line.size -= 2;
    if (answer->state == ESK_HTTP_ANSWER_CHUNK_END) {
        answer->state = ESK_HTTP_ANSWER_CHUNK_HEAD;
        return line.size ? refuse(error, "a chunk's end") : ESK_OK;
    }
    if (answer->state == ESK_HTTP_ANSWER_TRAILER) {
        answer->state = line.size ? ESK_HTTP_ANSWER_TRAILER : ESK_HTTP_ANSWER_DONE;
        return ESK_OK;
    }
    const uint8_t *extension = memchr(line.data, ';', line.size);
    if (extension) {
        line.size = (size_t)(extension - line.data);
    }
    if (!read_number(line, 16, &answer->left)) {
        return refuse(error, "a chunk's size");
    }
    answer->state = answer->left ? ESK_HTTP_ANSWER_CHUNK : ESK_HTTP_ANSWER_TRAILER;
    return ESK_OK;
}

/* Gathers the head or a line up to its end mark, without a copy when the input has all of it. */
static enum esk_err take_text(struct esk_http_answer *answer, struct esk_slice input,
                              size_t *consumed, struct esk_error *error) {
    bool is_head = answer->state == ESK_HTTP_ANSWER_HEAD;
    const char *mark = is_head ? "\r\n\r\n" : "\r\n";
    size_t mark_size = strlen(mark);
    struct esk_slice text = input;
    size_t before = answer->text.size;
    if (before) {
        esk_buffer_append(&answer->text, input.data, input.size);
        text = esk_buffer_slice(&answer->text);
    }
    size_t from = before > mark_size ? before - mark_size : 0;
    const uint8_t *end = memmem(text.data + from, text.size - from, mark, mark_size);
    size_t size = end ? (size_t)(end - text.data) + mark_size : text.size;
    if (size > ESK_HTTP_ANSWER_HEAD_BYTES_MAX) {
        return refuse(error, "its head is too large");
    }
    if (!end) {
        if (!before) {
            esk_buffer_append(&answer->text, input.data, input.size);
        }
        *consumed += input.size;
        return ESK_OK;
    }
    *consumed += size - before;
    enum esk_err err = is_head ? read_head(answer, esk_slice(text.data, size), error)
                               : read_chunk_line(answer, esk_slice(text.data, size), error);
    answer->text.size = 0;
    return err;
}

enum esk_err esk_http_answer_feed(struct esk_http_answer *answer, struct esk_slice input,
                                  size_t *consumed, struct esk_error *error) {
    *consumed = 0;
    while (answer->state != ESK_HTTP_ANSWER_DONE) {
        if (*consumed == input.size) {
            return ESK_ERR_AGAIN;
        }
        struct esk_slice rest = esk_slice(input.data + *consumed, input.size - *consumed);
        bool is_body = answer->state == ESK_HTTP_ANSWER_LENGTH ||
                       answer->state == ESK_HTTP_ANSWER_TO_END ||
                       answer->state == ESK_HTTP_ANSWER_CHUNK;
        enum esk_err err = is_body ? take_body(answer, rest, consumed, error)
                                   : take_text(answer, rest, consumed, error);
        if (err != ESK_OK) {
            return err;
        }
    }
    return ESK_OK;
}

enum esk_err esk_http_answer_end(struct esk_http_answer *answer, struct esk_error *error) {
    if (answer->state != ESK_HTTP_ANSWER_TO_END) {
        return esk_fail(error, ESK_ERR_UNAVAILABLE, "the server closed the connection");
    }
    answer->state = ESK_HTTP_ANSWER_DONE;
    return ESK_OK;
}
