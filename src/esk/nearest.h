/* SPDX-License-Identifier: Apache-2.0 */
/* How unlike two words are, to guess what was meant. Pure. */
#ifndef ESK_ESK_NEAREST_H
#define ESK_ESK_NEAREST_H

#include "base/memory.h"

#define ESK_UNLIKE_MAX 2 /* up to here one word may be meant for the other */

/* How many letters to insert, drop or change; 1 when `known` begins with all of the word, and more
 * than ESK_UNLIKE_MAX when either is too long to look at. */
unsigned esk_unlike(struct esk_slice word, const char *known);

#endif
