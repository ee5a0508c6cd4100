/* SPDX-License-Identifier: Apache-2.0 */
/* The object tree of a message: five columns, a row per value, children below their parent. */
#ifndef ESK_ATLAS_TREE_H
#define ESK_ATLAS_TREE_H

#include "atlas/frame.h"
#include "atlas/sink.h"

/* Prints it. Two walks: one measures the columns, one prints, so memory stays bounded. Values are
 * cut at value_chars_max characters. On damage the rows up to it are printed and false returned;
 * the problem (not NULL) says what is wrong. */
bool esk_atlas_tree(const struct esk_atlas_input *input, size_t value_chars_max,
                    struct esk_atlas_sink *sink, struct esk_atlas_problem *problem);

/* Prints what Kafka tolerates in the input, a line each behind `prefix`; returns how many. */
size_t esk_atlas_warnings(const struct esk_atlas_input *input, const char *prefix,
                          struct esk_atlas_sink *sink);

#endif
