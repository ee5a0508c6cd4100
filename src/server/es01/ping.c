/* SPDX-License-Identifier: Apache-2.0 */
/* Pings that are requests: what came goes back. A compressed one is inflated to see that it is gzip
 * and within the limit of bodies; what comes out is dropped, since the answer is what was sent. */
#include "server/es01/es01_private.h"

void eski_es01_ping_echo(struct eski_es01_request *request) {
    struct esk_buffer text = request->text;
    request->text = request->body;
    request->body = text;
    eski_es01_respond_text(request, true);
}

static void on_inflated(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    if (request->result != ESK_OK) {
        request->client->is_ending |= request->is_malformed;
        eski_es01_fail(request, request->result, request->error.text);
        return;
    }
    eski_es01_ping_echo(request);
}

static void on_helper(struct esk_mail *mail) {
    struct eski_es01_request *request = ESK_CONTAINER(mail, struct eski_es01_request, mail);
    request->result = eski_es01_inflate_rest(request, &request->error);
    esk_buffer_fini(&request->plain);
    eski_es01_request_back(request, on_inflated);
}

void eski_es01_ping_packed(struct eski_es01_request *request) {
    eski_es01_inflate_lend(request);
    request->state = ESKI_ES01_PREPARING;
    eski_es01_request_to_helper(request, on_helper);
}
