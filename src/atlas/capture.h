/* SPDX-License-Identifier: Apache-2.0 */
/* Captured traffic: pcap and pcapng files, their TCP streams reassembled, requests told apart from
 * responses and paired by correlation id. Nothing is copied but one frame at a time. */
#ifndef ESK_ATLAS_CAPTURE_H
#define ESK_ATLAS_CAPTURE_H

#include "atlas/frame.h"

#define ESK_CAPTURE_FRAME_BYTES_MAX (32U << 20) /* larger frames of a capture are skipped */

struct esk_capture_visitor {
    void *context;
    void (*message)(void *context, const struct esk_atlas_input *input);
    /* What else there is to say: a connection begins, or (problem) something could not be read. */
    void (*note)(void *context, const char *text, bool problem);
};

/* Whether the bytes begin as a pcap or pcapng file. */
bool esk_capture_is(struct esk_slice bytes);
/* Each request followed by its response, connection by connection. */
void esk_capture_walk(struct esk_slice bytes, const struct esk_capture_visitor *visitor);
/* Requests that lie one behind the other. */
void esk_capture_requests(struct esk_slice bytes, const struct esk_capture_visitor *visitor);

#endif
