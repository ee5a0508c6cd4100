/* SPDX-License-Identifier: Apache-2.0 */
/* The line protocol of `esk kafka decode --lines` and `encode --lines`, for programs. */
#ifndef ESK_ATLAS_LINES_H
#define ESK_ATLAS_LINES_H

#include "atlas/sink.h"
#include "wire/json/document.h"

/* Answers `request|response|data NAME VERSION HEX`, whose memory is overwritten, with a JSON line.
 * Returns whether it was decoded. */
bool esk_atlas_decode_line(char *line, size_t size, struct esk_atlas_sink *sink);

/* Answers `request|response|data NAME VERSION JSON` with hex or `error: …`. ESK_JSON_PADDING bytes
 * behind the line can be read and written. Returns whether it was encoded. */
bool esk_atlas_encode_line(char *line, size_t size, struct esk_json_document *document,
                           struct esk_atlas_sink *sink);

/* Turns hex digits into bytes in place, skipping white space; false: *bad is the byte that the
 * first wrong digit belongs to. */
bool esk_atlas_unhex(char *text, size_t size, size_t *bytes, size_t *bad);

#endif
