/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the end of a head, refuses at once what parsers are known to disagree on (bare CR or LF,
 * NUL, folded lines, odd spaces), lets llhttp check tokens and versions, then judges the headers
 * that say where the body ends. A head is parsed once, when it is whole: every span that llhttp
 * reports is whole, too. */
#include "wire/http/head.h"

#include "base/assert.h"

#include <llhttp.h>
#include <strings.h>

/* Whether any byte is one that no part of a head may hold: NUL, CR, LF. The caller passes a line
 * without its CRLF. */
static bool line_is_clean(const uint8_t *line, size_t size) {
    return !memchr(line, '\r', size) && !memchr(line, '\0', size);
}

/* Goes over the lines from *scanned on. ESK_OK: *end is behind the empty line. */
static enum esk_err find_end(struct esk_slice input, size_t *scanned, size_t *end,
                             struct esk_error *error) {
    size_t bound = input.size < ESK_HTTP_HEAD_BYTES_MAX ? input.size : ESK_HTTP_HEAD_BYTES_MAX;
    bool empty_before = true; /* nothing but empty lines so far */
    for (size_t i = 0; i < *scanned && empty_before; i++) {
        empty_before = input.data[i] == '\r' || input.data[i] == '\n';
    }
    while (*scanned < bound) {
        const uint8_t *line = input.data + *scanned;
        const uint8_t *feed = memchr(line, '\n', bound - *scanned);
        if (!feed) {
            break;
        }
        size_t size = (size_t)(feed - line);
        if (size == 0 || line[size - 1] != '\r' || !line_is_clean(line, size - 1)) {
            return esk_fail(error, ESK_ERR_INVALID,
                            "malformed request: a line must end in CRLF and hold no CR, LF or NUL");
        }
        *scanned += size + 1;
        if (size == 1 && !empty_before) {
            *end = *scanned;
            return ESK_OK;
        }
        if (size > 1) {
            if (*line == ' ' || *line == '\t') {
                return esk_fail(error, ESK_ERR_INVALID,
                                "malformed request: a line begins with white space");
            }
            empty_before = false;
        }
    }
    if (input.size >= ESK_HTTP_HEAD_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_HEADERS_TOO_LARGE,
                        "request line and headers are over %d bytes", ESK_HTTP_HEAD_BYTES_MAX);
    }
    return ESK_ERR_AGAIN;
}

/* --- llhttp --- */

struct parsing {
    struct esk_http_head *head;
    struct esk_slice target;
    bool complete;
    bool too_many;
    bool broken_span;
    bool keep_alive;
};

static int on_url(llhttp_t *parser, const char *at, size_t size) {
    struct parsing *parsing = parser->data;
    parsing->broken_span |= parsing->target.size != 0;
    parsing->target = esk_slice(at, size);
    return 0;
}

static int on_header_field(llhttp_t *parser, const char *at, size_t size) {
    struct parsing *parsing = parser->data;
    struct esk_http_head *head = parsing->head;
    if (head->header_count == ESK_HTTP_HEADERS_MAX) {
        parsing->too_many = true;
        return -1;
    }
    head->headers[head->header_count++] =
        (struct esk_http_header){esk_slice(at, size), esk_slice(at + size, 0)};
    return 0;
}

static int on_header_value(llhttp_t *parser, const char *at, size_t size) {
    struct parsing *parsing = parser->data;
    struct esk_http_head *head = parsing->head;
    if (head->header_count == 0) {
        return -1;
    }
    struct esk_slice *value = &head->headers[head->header_count - 1].value;
    parsing->broken_span |= value->size != 0;
    while (size && (*at == ' ' || *at == '\t')) {
        at++;
        size--;
    }
    while (size && (at[size - 1] == ' ' || at[size - 1] == '\t')) {
        size--;
    }
    *value = esk_slice(at, size);
    return 0;
}

static int on_headers_complete(llhttp_t *parser) {
    struct parsing *parsing = parser->data;
    parsing->complete = true;
    parsing->keep_alive = llhttp_should_keep_alive(parser);
    return 0;
}

static const llhttp_settings_t head_settings = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
};

static enum esk_http_method method_of(uint8_t method) {
    switch (method) {
    case HTTP_GET:
        return ESK_HTTP_GET;
    case HTTP_HEAD:
        return ESK_HTTP_HEAD;
    case HTTP_POST:
        return ESK_HTTP_POST;
    case HTTP_PUT:
        return ESK_HTTP_PUT;
    case HTTP_DELETE:
        return ESK_HTTP_DELETE;
    case HTTP_OPTIONS:
        return ESK_HTTP_OPTIONS;
    default:
        return ESK_HTTP_OTHER;
    }
}

static enum esk_err parse_with_llhttp(struct esk_slice bytes, struct parsing *parsing,
                                      struct esk_error *error) {
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &head_settings);
    parser.data = parsing;
    (void)llhttp_execute(&parser, (const char *)bytes.data, bytes.size);
    if (parsing->too_many) {
        return esk_fail(error, ESK_ERR_HEADERS_TOO_LARGE, "more than %d headers",
                        ESK_HTTP_HEADERS_MAX);
    }
    if (!parsing->complete) {
        const char *reason = llhttp_get_error_reason(&parser);
        return esk_fail(error, ESK_ERR_INVALID, "malformed request: %s",
                        reason && *reason ? reason : "not HTTP/1.1");
    }
    if (parser.http_major != 1 || parser.http_minor > 1 || parsing->broken_span) {
        return esk_fail(error, ESK_ERR_INVALID, "malformed request: not HTTP/1.0 or HTTP/1.1");
    }
    parsing->head->method = method_of(parser.method);
    parsing->head->is_http_1_0 = parser.http_minor == 0;
    parsing->head->keep_alive = parsing->keep_alive;
    return ESK_OK;
}

/* --- judging --- */

static bool is_text(struct esk_slice bytes, const char *lower_case) {
    size_t size = strlen(lower_case);
    return bytes.size == size && strncasecmp((const char *)bytes.data, lower_case, size) == 0;
}

static enum esk_err read_length(struct esk_slice value, uint64_t *length, struct esk_error *error) {
    *length = 0;
    bool valid = value.size > 0 && value.size <= 18; /* 18 digits fit into 64 bits */
    for (size_t i = 0; i < value.size && valid; i++) {
        valid = value.data[i] >= '0' && value.data[i] <= '9';
        *length = *length * 10 + (uint64_t)(value.data[i] - '0');
    }
    return valid ? ESK_OK
                 : esk_fail(error, ESK_ERR_INVALID, "malformed request: bad Content-Length");
}

static enum esk_err judge_headers(struct esk_http_head *head, struct esk_error *error) {
    unsigned hosts = 0;
    unsigned lengths = 0;
    unsigned codings = 0;
    for (uint32_t i = 0; i < head->header_count; i++) {
        const struct esk_http_header *header = &head->headers[i];
        if (header->name.size == 0) {
            return esk_fail(error, ESK_ERR_INVALID, "malformed request: a header without a name");
        }
        if (is_text(header->name, "host")) {
            hosts++;
        } else if (is_text(header->name, "content-length")) {
            lengths++;
            enum esk_err err = read_length(header->value, &head->content_length, error);
            if (err) {
                return err;
            }
        } else if (is_text(header->name, "transfer-encoding")) {
            codings++;
            if (!is_text(header->value, "chunked")) {
                return esk_fail(error, ESK_ERR_INVALID,
                                "malformed request: the only transfer coding is chunked");
            }
        } else if (is_text(header->name, "expect")) {
            if (!is_text(header->value, "100-continue")) {
                return esk_fail(error, ESK_ERR_INVALID, "the only Expect is 100-continue");
            }
            head->expects_continue = !head->is_http_1_0;
        }
    }
    if (hosts > 1 || (hosts == 0 && !head->is_http_1_0)) {
        return esk_fail(error, ESK_ERR_INVALID, "malformed request: not exactly one Host");
    }
    if (lengths + codings > 1 || (codings && head->is_http_1_0)) {
        return esk_fail(error, ESK_ERR_INVALID,
                        "malformed request: its length is given twice, or not as HTTP/1.0 can");
    }
    head->is_chunked = codings == 1;
    return ESK_OK;
}

/* A target is "/path?query", or the same behind "http://host". */
static enum esk_err split_target(struct esk_slice target, struct esk_http_head *head,
                                 struct esk_error *error) {
    const char *scheme = "http://";
    size_t scheme_size = strlen(scheme);
    if (target.size > scheme_size &&
        strncasecmp((const char *)target.data, scheme, scheme_size) == 0) {
        const uint8_t *slash = memchr(target.data + scheme_size, '/', target.size - scheme_size);
        size_t skip = slash ? (size_t)(slash - target.data) : target.size;
        target = esk_slice(target.data + skip, target.size - skip);
    }
    if (target.size == 0 || *target.data != '/') {
        return esk_fail(error, ESK_ERR_INVALID, "malformed request: the target is not a path");
    }
    const uint8_t *mark = memchr(target.data, '?', target.size);
    size_t path_size = mark ? (size_t)(mark - target.data) : target.size;
    head->path = esk_slice(target.data, path_size);
    head->query = mark ? esk_slice(mark + 1, target.size - path_size - 1) : esk_slice(NULL, 0);
    return ESK_OK;
}

enum esk_err esk_http_head_parse(struct esk_slice input, size_t *scanned,
                                 struct esk_http_head *head, struct esk_error *error) {
    head->size = 0;
    enum esk_err err = find_end(input, scanned, &head->size, error);
    if (err) {
        return err;
    }
    head->content_length = 0;
    head->header_count = 0;
    head->expects_continue = false;
    struct parsing parsing = {.head = head};
    err = parse_with_llhttp(esk_slice(input.data, head->size), &parsing, error);
    if (err) {
        return err;
    }
    /* One space before the target, one behind it: llhttp takes more. A CRLF and more follow. */
    const uint8_t *behind = parsing.target.data + parsing.target.size;
    if (parsing.target.size == 0 || parsing.target.data < input.data + 2 ||
        parsing.target.data[-2] == ' ' || behind[0] != ' ' || behind[1] != 'H') {
        return esk_fail(error, ESK_ERR_INVALID, "malformed request: bad request line");
    }
    err = split_target(parsing.target, head, error);
    return err ? err : judge_headers(head, error);
}

struct esk_slice esk_http_header_find(const struct esk_http_head *head, const char *name) {
    for (uint32_t i = 0; i < head->header_count; i++) {
        if (is_text(head->headers[i].name, name)) {
            return head->headers[i].value;
        }
    }
    return esk_slice(NULL, 0);
}
