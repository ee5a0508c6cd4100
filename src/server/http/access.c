/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, whether it may, and whether a browser's page may read the answer. Judged from the head
 * alone, before a body is collected. A refusal waits for a small body, so that the connection can
 * go on; a larger one ends it. */
#include "server/http/access_private.h"

#include "wire/http/target.h"
#include "wire/http/token.h"

#include <stdio.h>

#define BODY_BYTES_AWAITED (64 * 1024) /* of a refused request */

static void refuse(struct eski_request *request, enum esk_err err) {
    bool is_small = !request->expects_continue && !request->is_chunked &&
                    request->content_length <= BODY_BYTES_AWAITED;
    request->refusal = err;
    if (!is_small) {
        request->keep_alive = false;
        eski_fail(request, err, &request->error);
    }
}

/* --- keys --- */

bool eski_access_identify(struct eski_request *request, const struct esk_http_head *head) {
    struct esk_broker_shard *broker = request->shard->broker;
    struct esk_slice token = esk_slice(NULL, 0);
    enum esk_err err = ESK_OK;
    if (esk_broker_auth_required(broker)) {
        err = esk_http_token_find(head, &token, &request->error);
        if (err == ESK_OK && token.size == 0) {
            err = esk_fail(&request->error, ESK_ERR_UNAUTHENTICATED,
                           "a key is required: Authorization: Bearer KEY, or X-Es-Key: KEY");
        }
    }
    if (err == ESK_OK) {
        err = esk_broker_authenticate(broker, token, &request->caller, &request->error);
    }
    if (err) {
        refuse(request, err);
    }
    return err == ESK_OK;
}

bool eski_access_judge(struct eski_request *request) {
    struct esk_slice topic = esk_slice(NULL, 0);
    enum esk_err err = ESK_OK;
    enum eski_access access = request->route->access;
    if (access == ESKI_ACCESS_ADMIN) {
        err = esk_caller_check(&request->caller, ESK_ACTION_ADMIN, topic, &request->error);
    } else if (access == ESKI_ACCESS_READ || access == ESKI_ACCESS_WRITE) {
        /* What cannot be decoded is refused by the handler, if the key may do this at all. */
        if (!esk_http_percent_decode(request->parameters[0], &request->arena, &topic)) {
            topic = esk_slice(NULL, 0);
        }
        err = esk_caller_check(&request->caller,
                               access == ESKI_ACCESS_READ ? ESK_ACTION_READ : ESK_ACTION_WRITE,
                               topic, &request->error);
        if (err && eski_registry_speaks(request->route)) {
            err = esk_fail(&request->error, err, "the key has no grant to read this subject");
        }
    }
    if (err) {
        refuse(request, err);
    }
    return err == ESK_OK;
}

bool eski_may(struct eski_request *request, enum esk_action action, struct esk_slice topic) {
    struct esk_error error;
    enum esk_err err = esk_caller_check(&request->caller, action, topic, &error);
    if (err) {
        eski_fail(request, err, &error);
    }
    return err == ESK_OK;
}

static void on_revoked(struct esk_key_watch *watch) {
    esk_connection_wake(ESK_CONTAINER(watch, struct eski_request, watch)->connection);
}

void eski_watch_key(struct eski_request *request) {
    if (request->caller.key) {
        request->watch.revoked = on_revoked;
        esk_key_watch(request->caller.key, &request->watch);
    }
}

/* --- pages of other origins --- */

bool eski_cors_begin(struct eski_request *request, const struct esk_http_head *head) {
    const struct esk_http_options *options = &request->shard->http->options;
    if (options->cors_origin_count == 0) {
        return false;
    }
    struct esk_slice origin = esk_http_header_find(head, "origin");
    for (size_t i = 0; i < options->cors_origin_count && origin.size; i++) {
        if (esk_slice_equal(origin, esk_slice_text(options->cors_origins[i]))) {
            request->response.cors_origin = options->cors_origins[i];
            return head->method == ESK_HTTP_OPTIONS &&
                   esk_http_header_find(head, "access-control-request-method").data;
        }
    }
    return false;
}

void eski_cors_preflight(struct eski_request *request) {
    if (request->content_length || request->is_chunked) {
        request->keep_alive = false; /* a body that nobody expects */
    }
    request->response.is_preflight = true;
    (void)eski_respond_begin(request);
    eski_respond(request, 204);
}

/* --- the audit trail --- */

void eski_audit(struct eski_request *request) {
    const struct eski_route *route = request->route;
    if (!route || route->access != ESKI_ACCESS_ADMIN || route->method == ESK_HTTP_GET ||
        request->response.status == 401) {
        return;
    }
    const struct esk_caller *caller = &request->caller;
    struct esk_slice target = request->target.size ? request->target : request->path;
    char id[ESK_KEY_ID_BYTES] = "none";
    char name[256] = "";
    char on[256];
    if (caller->key) {
        struct esk_slice key_name = caller->key->about.name;
        esk_key_id_format(caller->key_id, id);
        (void)snprintf(name, sizeof name, "%.*s", (int)key_name.size, (const char *)key_name.data);
    }
    (void)snprintf(on, sizeof on, "%.*s", (int)(target.size < 255 ? target.size : 255),
                   (const char *)target.data);
    int status = request->response.status;
    ESK_LOG(request->shard->http->options.log, ESK_LOG_INFO, "audit",
            status < 400 ? "an administrative act" : "an administrative act was refused or failed",
            esk_field_text("key", id), esk_field_text("name", name),
            esk_field_text("operation", eski_operation_names[route->operation]),
            esk_field_text("target", on), esk_field_u64("status", (uint64_t)status));
}
