/* SPDX-License-Identifier: Apache-2.0 */
/* gzip of a frame's payload (spec, Handshake): one member of RFC 1952, nothing behind it. An empty
 * payload may stay empty.
 *
 * Inflating is done in steps, so that a broker sees the topic first, authorises, goes on later or
 * on another thread, and stops a bomb at its limit. One owner at a time. */
#ifndef ESK_WIRE_ES01_GZIP_H
#define ESK_WIRE_ES01_GZIP_H

#include "base/error.h"
#include "base/memory.h"

struct esk_es01_inflater; /* about 40 KiB while it is used; may be used for one payload after
                             another */
struct esk_es01_inflater *esk_es01_inflater_create(void);
void esk_es01_inflater_destroy(struct esk_es01_inflater *inflater); /* NULL does nothing */
void esk_es01_inflater_begin(struct esk_es01_inflater *inflater);   /* a new payload */

/* Goes on: takes *input from its front and appends to `output` until room_bytes more are there.
 * ESK_OK: the payload is whole; ESK_ERR_AGAIN: no more room, or no more input (input->size 0);
 * ESK_ERR_INVALID: not gzip, damaged, or bytes behind its end. */
enum esk_err esk_es01_inflate(struct esk_es01_inflater *inflater, struct esk_slice *input,
                              size_t room_bytes, struct esk_buffer *output,
                              struct esk_error *error);

struct esk_es01_deflater; /* about 270 KiB */
struct esk_es01_deflater *esk_es01_deflater_create(void);
void esk_es01_deflater_destroy(struct esk_es01_deflater *deflater); /* NULL does nothing */

/* Appends the input as one gzip member; small inputs are stored. Blocks while it computes: about
 * 10 ms for a MiB. */
void esk_es01_deflate(struct esk_es01_deflater *deflater, struct esk_slice input,
                      struct esk_buffer *output);
/* The same in pieces: append any number of them, then an empty one that says it is the last. */
void esk_es01_deflate_begin(struct esk_es01_deflater *deflater);
void esk_es01_deflate_more(struct esk_es01_deflater *deflater, struct esk_slice piece, bool is_last,
                           struct esk_buffer *output);

#endif
