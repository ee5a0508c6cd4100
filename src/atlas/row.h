/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of one row of an object tree: name, type, value and description of a scanned node. The
 * tree, the site and the byte grid all take them from here. */
#ifndef ESK_ATLAS_ROW_H
#define ESK_ATLAS_ROW_H

#include "atlas/frame.h"
#include "base/memory.h"

#define ESK_ATLAS_VALUE_CHARS 48             /* longer values are cut */
#define ESK_ATLAS_VALUE_CHARS_FULL (4 << 20) /* with --full; what is longer is cut all the same */
#define ESK_ATLAS_ABOUT_CHARS 78             /* longer descriptions are cut to 75 and "..." */

/* "BrokerId", "[0]", "length", "tagged_fields"; appended. */
void esk_atlas_row_name(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                        struct esk_buffer *text);
/* "int32", "compact_nullable_string", "struct"; appended, may be nothing. */
void esk_atlas_row_type(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                        struct esk_buffer *text);
/* `= "orders" (int16 len=6)`; appended, may be nothing. */
void esk_atlas_row_value(const struct esk_atlas_input *input, const struct esk_kafka_node *node,
                         size_t chars_max, struct esk_buffer *text);
/* The whole description, or "". `scratch` holds those that are made up. */
const char *esk_atlas_row_about(const struct esk_atlas_input *input,
                                const struct esk_kafka_node *node, char scratch[64]);

#endif
