/* SPDX-License-Identifier: Apache-2.0 */
/* What the command lines of the programs share: numbers with units, words that were mistyped, and
 * the lines of help texts. Pure. */
#ifndef ESK_BASE_COMMAND_LINE_H
#define ESK_BASE_COMMAND_LINE_H

#include "base/memory.h"

enum esk_quantity {
    ESK_QUANTITY_COUNT, /* no unit */
    ESK_QUANTITY_BYTES, /* none, kB MB GB (1000), KiB MiB GiB (1024) */
    ESK_QUANTITY_MS,    /* ms s m h d */
};

/* Digits, then perhaps spaces and a unit; the number is in bytes or milliseconds. False: neither
 * that nor within 64 bits. */
bool esk_quantity_read(const char *text, enum esk_quantity quantity, uint64_t *number);

#define ESK_UNLIKE_MAX 2 /* up to here one word may be meant for the other */
/* How many letters to insert, drop or change to make one word of the other; 1 when `known` begins
 * with two letters or more that are all of the word; UINT32_MAX for an empty one, or when either
 * has more than 40 bytes. */
unsigned esk_unlike(struct esk_slice word, const char *known);

/* Appends words, in lines of at most 100 columns that begin at `indent`; *column is where the line
 * stands. */
void esk_help_words(struct esk_buffer *out, const char *text, size_t indent, size_t *column);

/* An option's meaning; but for the first, each may be NULL. */
struct esk_help_meaning {
    const char *help;
    const char *min_text;
    const char *max_text;
    const char *default_text;
    const char *note;
};
/* Appends it from column `indent` on and ends the line, which began at byte `line` of out with the
 * option's name. */
void esk_help_meaning(struct esk_buffer *out, size_t line, size_t indent,
                      const struct esk_help_meaning *meaning);

#endif
