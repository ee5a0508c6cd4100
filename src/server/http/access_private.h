/* SPDX-License-Identifier: Apache-2.0 */
/* Who asks, what it may, and which pages may read the answer. */
#ifndef ESK_SERVER_HTTP_ACCESS_PRIVATE_H
#define ESK_SERVER_HTTP_ACCESS_PRIVATE_H

#include "server/http/http_private.h"

/* Finds the caller; false: there is none, which is answered now or, by `refusal`, once the body has
 * come. */
bool eski_access_identify(struct eski_request *request, const struct esk_http_head *head);
/* Whether the caller may use the route; false likewise. */
bool eski_access_judge(struct eski_request *request);
/* For handlers whose topic is not in the path; false: it is answered. */
bool eski_may(struct eski_request *request, enum esk_action action, struct esk_slice topic);
/* From now on the connection is served when the key is revoked, which then ends the wait. */
void eski_watch_key(struct eski_request *request);
/* Names the origin in the answer, if it is listed; true: the request is a preflight of it. */
bool eski_cors_begin(struct eski_request *request, const struct esk_http_head *head);
void eski_cors_preflight(struct eski_request *request);
/* A line in the log, if it is an administrative act that is answered. */
void eski_audit(struct eski_request *request);

#endif
