/* SPDX-License-Identifier: Apache-2.0 */
/* The way back from JSON to bytes: takes the object that json_out prints. Unknown keys are refused,
 * missing ones take the defaults of the definitions. */
#ifndef ESK_ATLAS_JSON_IN_H
#define ESK_ATLAS_JSON_IN_H

#include "atlas/frame.h"
#include "base/memory.h"
#include "wire/json/document.h"

/* Appends the message that `root` (of `document`) stands for: input->message and version are used,
 * its bytes are not. ESK_ERR_INVALID: the text names the key. */
enum esk_err esk_atlas_from_json(const struct esk_atlas_input *input,
                                 const struct esk_json_value *root, struct esk_buffer *output,
                                 struct esk_error *error);

/* A base64 string of JSON, into the arena; null gives data NULL. false: it is not that. */
bool eski_json_bytes(const struct esk_json_value *value, struct esk_arena *arena,
                     struct esk_slice *bytes);

/* Appends the batches of {"batches":[…]}; only batches v2 are written. */
enum esk_err eski_batches_from_json(const struct esk_json_value *body, struct esk_arena *arena,
                                    struct esk_buffer *output, struct esk_error *error);

#endif
