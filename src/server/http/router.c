/* SPDX-License-Identifier: Apache-2.0 */
/* Which route a method and a path mean. The table is short and looked through in order. */
#include "server/http/http_private.h"

#include "base/assert.h"

#include <stdio.h>

static bool matches(const struct eski_route *route, const struct esk_slice *segments,
                    unsigned count, struct esk_slice *parameters) {
    if (route->segment_count != count) {
        return false;
    }
    unsigned parameter = 0;
    for (unsigned i = 0; i < count; i++) {
        const char *literal = route->segments[i];
        if (!literal) {
            parameters[parameter++] = segments[i];
        } else if (strlen(literal) != segments[i].size ||
                   memcmp(literal, segments[i].data, segments[i].size) != 0) {
            return false;
        }
    }
    return true;
}

/* "GET, HEAD, DELETE": the methods of all routes with this path. */
static const char *allowed(const struct esk_slice *segments, unsigned count,
                           struct esk_arena *arena) {
    static const char *const names[] = {"GET, HEAD", NULL, "POST", "PUT", "DELETE"};
    struct esk_slice ignored[ESKI_ROUTE_PARAMETERS_MAX];
    char text[64];
    size_t size = 0;
    for (enum esk_http_method method = ESK_HTTP_GET; method <= ESK_HTTP_DELETE; method++) {
        for (size_t i = 0; i < ESKI_ROUTE_COUNT; i++) {
            if (eski_routes[i].method == method &&
                matches(&eski_routes[i], segments, count, ignored)) {
                int more = snprintf(text + size, sizeof text - size, "%s%s", size ? ", " : "",
                                    names[method]);
                size += (size_t)more;
                ESK_ASSERT(size < sizeof text);
                break;
            }
        }
    }
    return size ? esk_arena_text(arena, esk_slice(text, size)) : NULL;
}

const struct eski_route *eski_router_find(enum esk_http_method method, struct esk_slice path,
                                          struct esk_slice parameters[ESKI_ROUTE_PARAMETERS_MAX],
                                          struct esk_arena *arena, const char **allow) {
    *allow = NULL;
    struct esk_slice segments[ESKI_ROUTE_SEGMENTS_MAX];
    unsigned count = 0;
    const uint8_t *end = path.data + path.size;
    for (const uint8_t *at = path.data + 1;; at++) {
        const uint8_t *slash = memchr(at, '/', (size_t)(end - at));
        if (count == ESKI_ROUTE_SEGMENTS_MAX) {
            return NULL;
        }
        segments[count++] = esk_slice(at, (size_t)((slash ? slash : end) - at));
        if (!slash) {
            break;
        }
        at = slash;
    }
    if (method == ESK_HTTP_HEAD) {
        method = ESK_HTTP_GET;
    }
    for (size_t i = 0; i < ESKI_ROUTE_COUNT; i++) {
        if (eski_routes[i].method == method &&
            matches(&eski_routes[i], segments, count, parameters)) {
            return &eski_routes[i];
        }
    }
    *allow = allowed(segments, count, arena);
    return NULL;
}
