/* SPDX-License-Identifier: Apache-2.0 */
/* Answering: part of http_private.h, which includes it. */
#ifndef ESK_SERVER_HTTP_ANSWERS_PRIVATE_H
#define ESK_SERVER_HTTP_ANSWERS_PRIVATE_H

#include "server/http/http_private.h"

/* An answer in one piece: open the writer, write one value, send it. */
struct esk_json_writer eski_respond_begin(struct eski_request *request);
void eski_respond(struct eski_request *request, int status);
void eski_respond_empty(struct eski_request *request); /* {} */
void eski_respond_fill(struct eski_request *request, eski_fill fill);
/* The text is the client's to see, unless the code is an internal one. */
void eski_fail(struct eski_request *request, enum esk_err err, const struct esk_error *error);
void eski_fail_text(struct eski_request *request, enum esk_err err, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Logs an internal error under a new id; `visible` gets what the client is told. */
void eski_log_internal(struct eski_request *request, enum esk_err err, const char *text,
                       char visible[40]);
/* Sends the next piece; true when the answer is complete. */
bool eski_answer_continue(struct eski_request *request);

/* confluent.c: routes whose errors carry more fields */
bool eski_registry_speaks(const struct eski_route *route);
void eski_registry_write_error(struct esk_json_writer *writer, int code, const char *text);

#endif
