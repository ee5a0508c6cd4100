/* SPDX-License-Identifier: Apache-2.0 */
/* Response heads, put together without printf: small requests are answered by the hundred thousand.
 */
#include "wire/http/response.h"

#include "base/assert.h"

#include <string.h>

const char *esk_http_reason(int status) {
    switch (status) {
    case 200:
        return "OK";
    case 201:
        return "Created";
    case 204:
        return "No Content";
    case 308:
        return "Permanent Redirect";
    case 400:
        return "Bad Request";
    case 401:
        return "Unauthorized";
    case 403:
        return "Forbidden";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 408:
        return "Request Timeout";
    case 409:
        return "Conflict";
    case 413:
        return "Content Too Large";
    case 422:
        return "Unprocessable Content";
    case 429:
        return "Too Many Requests";
    case 431:
        return "Request Header Fields Too Large";
    case 500:
        return "Internal Server Error";
    case 503:
        return "Service Unavailable";
    case 507:
        return "Insufficient Storage";
    default:
        return "Unknown";
    }
}

static uint8_t *put(uint8_t *at, const char *text) {
    size_t size = strlen(text);
    memcpy(at, text, size);
    return at + size;
}

/* Pages of the listed origins may read the answer. */
static uint8_t *put_cors(uint8_t *at, const struct esk_http_response *response) {
    ESK_ASSERT(strlen(response->cors_origin) <= ESK_HTTP_ORIGIN_BYTES_MAX);
    at = put(at, "\r\nAccess-Control-Allow-Origin: ");
    at = put(at, response->cors_origin);
    if (!response->is_preflight) {
        return put(at, "\r\nAccess-Control-Expose-Headers: Retry-After");
    }
    at = put(at, "\r\nAccess-Control-Allow-Methods: GET, POST, PUT, DELETE");
    return put(at, "\r\nAccess-Control-Allow-Headers: Content-Type, Authorization, X-Es-Key, "
                   "Last-Event-ID\r\nAccess-Control-Max-Age: 600");
}

static uint8_t *put_number(uint8_t *at, uint64_t value) {
    uint8_t digits[20];
    size_t count = 0;
    do {
        digits[count++] = (uint8_t)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count) {
        *at++ = digits[--count];
    }
    return at;
}

size_t esk_http_response_head(const struct esk_http_response *response,
                              uint8_t head[ESK_HTTP_RESPONSE_HEAD_BYTES_MAX]) {
    ESK_ASSERT(!response->allow || strlen(response->allow) <= 128);
    uint8_t *at = head;
    if (response->status == 200) {
        at = put(at, "HTTP/1.1 200 OK");
    } else {
        at = put(at, "HTTP/1.1 ");
        at = put_number(at, (uint64_t)response->status);
        *at++ = ' ';
        at = put(at, esk_http_reason(response->status));
    }
    if (response->content_type) {
        at = put(at, "\r\nContent-Type: ");
        at = put(at, response->content_type);
    }
    if (response->is_chunked) {
        at = put(at, "\r\nTransfer-Encoding: chunked");
    } else if (response->has_length) {
        at = put(at, "\r\nContent-Length: ");
        at = put_number(at, response->content_length);
    }
    if (response->allow) {
        at = put(at, "\r\nAllow: ");
        at = put(at, response->allow);
    }
    if (response->retry_after_s) {
        at = put(at, "\r\nRetry-After: ");
        at = put_number(at, response->retry_after_s);
    }
    if (response->asks_for_key) {
        at = put(at, "\r\nWWW-Authenticate: Bearer");
    }
    if (response->varies) {
        at = put(at, "\r\nVary: Origin");
    }
    if (response->cors_origin) {
        at = put_cors(at, response);
    }
    if (response->more) {
        ESK_ASSERT(strlen(response->more) <= ESK_HTTP_MORE_BYTES_MAX);
        at = put(at, response->more);
    }
    if (response->closes) {
        at = put(at, "\r\nConnection: close");
    } else if (response->keeps_alive) {
        at = put(at, "\r\nConnection: keep-alive");
    }
    at = put(at, "\r\n\r\n");
    return (size_t)(at - head);
}

size_t esk_http_chunk_head(uint32_t size, uint8_t head[ESK_HTTP_CHUNK_HEAD_BYTES_MAX]) {
    static const char digits[] = "0123456789abcdef";
    unsigned shift = 28;
    while (shift && size >> shift == 0) {
        shift -= 4;
    }
    size_t at = 0;
    for (;; shift -= 4) {
        head[at++] = (uint8_t)digits[(size >> shift) & 15];
        if (shift == 0) {
            break;
        }
    }
    head[at++] = '\r';
    head[at++] = '\n';
    return at;
}
