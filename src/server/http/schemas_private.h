/* SPDX-License-Identifier: Apache-2.0 */
/* What the registry's two forms share. */
#ifndef ESK_SERVER_HTTP_SCHEMAS_PRIVATE_H
#define ESK_SERVER_HTTP_SCHEMAS_PRIVATE_H

#include "server/http/access_private.h"
#include "server/http/http_private.h"

/* schemas.c */
/* The path's first parameter, checked; it becomes the operation's subject, too. */
enum esk_err eski_subject_parameter(struct eski_request *request, struct esk_error *error);
bool eski_schema_number(struct esk_slice text, uint32_t *number); /* from 1 to 2^31-1 */
void eski_respond_id(struct eski_request *request);               /* the operation's: {"id":1} */
void eski_respond_schema(struct eski_request *request);           /* request->schema.view */

/* confluent.c */
/* An error with a status and an error_code of the registry protocol. */
void eski_registry_fail(struct eski_request *request, int status, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif
