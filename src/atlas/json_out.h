/* SPDX-License-Identifier: Apache-2.0 */
/* A message as one line of JSON, in the form of Kafka's request log. Memory is bounded: the input
 * is walked once to check it, again to print it, and a third time if there is something to warn of.
 */
#ifndef ESK_ATLAS_JSON_OUT_H
#define ESK_ATLAS_JSON_OUT_H

#include "atlas/frame.h"
#include "atlas/sink.h"

/* {"ok":true,"header":{…},"body":{…},"warnings":[…]} or {"ok":false,"error":"…","offset":N}, and a
 * line end. Data has no header, and warnings only where there are any. Returns ok. */
bool esk_atlas_json_line(const struct esk_atlas_input *input, struct esk_atlas_sink *sink);

/* The line of a failure. */
void esk_atlas_json_problem(const struct esk_atlas_problem *problem, struct esk_atlas_sink *sink);

/* Prints {"batches":[…]} of bare records that were checked before. */
void eski_json_batches(const struct esk_atlas_input *input, struct esk_atlas_sink *sink);

#endif
