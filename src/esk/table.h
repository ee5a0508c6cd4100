/* SPDX-License-Identifier: Apache-2.0 */
/* Tables for people: columns as wide as their longest cell, two spaces apart, numbers to the right.
 * Pure. */
#ifndef ESK_ESK_TABLE_H
#define ESK_ESK_TABLE_H

#include "base/memory.h"

#define ESK_TABLE_COLUMNS_MAX 12

struct esk_table {
    uint32_t columns;
    bool is_number[ESK_TABLE_COLUMNS_MAX];
    struct esk_buffer text; /* all cells one behind the other */
    size_t *ends;           /* where each cell ends in text; owned */
    size_t count;
    size_t capacity;
};

/* The heads; one that begins with '>' is of numbers. Ends with NULL. */
void esk_table_init(struct esk_table *table, const char *const *heads);
void esk_table_fini(struct esk_table *table);

/* Cells come row by row. Control characters in them are printed as '?'. */
void esk_table_text(struct esk_table *table, struct esk_slice text);
void esk_table_number(struct esk_table *table, uint64_t number);

void esk_table_print(const struct esk_table *table, struct esk_buffer *out);

#endif
