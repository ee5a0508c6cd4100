/* SPDX-License-Identifier: Apache-2.0 */
/* Cells are kept as one text with the place where each ends; widths are found when printing. */
#include "esk/table.h"

#include "base/assert.h"

#include <stdio.h>
#include <stdlib.h>

void esk_table_init(struct esk_table *table, const char *const *heads) {
    memset(table, 0, sizeof(*table));
    esk_buffer_init(&table->text);
    while (heads[table->columns]) {
        table->columns++;
    }
    ESK_ASSERT(table->columns <= ESK_TABLE_COLUMNS_MAX);
    for (uint32_t i = 0; i < table->columns; i++) {
        table->is_number[i] = heads[i][0] == '>';
        esk_table_text(table, esk_slice_text(heads[i] + table->is_number[i]));
    }
}

void esk_table_fini(struct esk_table *table) {
    esk_buffer_fini(&table->text);
    free(table->ends);
}

void esk_table_text(struct esk_table *table, struct esk_slice text) {
    for (size_t i = 0; i < text.size; i++) {
        bool is_control = text.data[i] < 0x20 || text.data[i] == 0x7f;
        esk_buffer_u8(&table->text, is_control ? '?' : text.data[i]);
    }
    if (table->count == table->capacity) {
        table->capacity = table->capacity ? table->capacity * 2 : 64;
        table->ends = esk_realloc(table->ends, table->capacity * sizeof(*table->ends));
    }
    table->ends[table->count++] = table->text.size;
}

void esk_table_number(struct esk_table *table, uint64_t number) {
    char text[24];
    int size = snprintf(text, sizeof(text), "%llu", (unsigned long long)number);
    esk_table_text(table, esk_slice(text, (size_t)size));
}

static struct esk_slice cell(const struct esk_table *table, size_t index) {
    size_t begin = index ? table->ends[index - 1] : 0;
    return esk_slice(table->text.data + begin, table->ends[index] - begin);
}

/* Characters of UTF-8 text: a byte each that continues none. */
static size_t width_of(struct esk_slice text) {
    size_t width = 0;
    for (size_t i = 0; i < text.size; i++) {
        width += (text.data[i] & 0xc0) != 0x80;
    }
    return width;
}

void esk_table_print(const struct esk_table *table, struct esk_buffer *out) {
    ESK_ASSERT(table->count % table->columns == 0);
    size_t widths[ESK_TABLE_COLUMNS_MAX] = {0};
    for (size_t i = 0; i < table->count; i++) {
        size_t width = width_of(cell(table, i));
        if (width > widths[i % table->columns]) {
            widths[i % table->columns] = width;
        }
    }
    for (size_t i = 0; i < table->count; i++) {
        size_t column = i % table->columns;
        bool is_last = column + 1 == table->columns;
        struct esk_slice text = cell(table, i);
        int padding = (int)(widths[column] - width_of(text));
        if (table->is_number[column]) {
            esk_buffer_format(out, "%*s", padding, "");
        }
        esk_buffer_append(out, text.data, text.size);
        if (!table->is_number[column] && !is_last) {
            esk_buffer_format(out, "%*s", padding, "");
        }
        esk_buffer_append_text(out, is_last ? "\n" : "  ");
    }
}
