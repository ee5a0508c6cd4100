/* SPDX-License-Identifier: Apache-2.0 */
/* The edit distance is computed one row of its table at a time. */
#include "base/command_line.h"

#include "base/checked.h"

#include <stdio.h>
#include <string.h>

#define WIDTH 100 /* columns of a line, as far as words allow */
#define WORD_BYTES 40

/* --- numbers --- */

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit no_units[] = {{"", 1}, {NULL, 0}};
static const struct unit size_units[] = {
    {"", 1},           {"kB", 1000},      {"MB", 1000000},   {"GB", 1000000000},
    {"KiB", 1u << 10}, {"MiB", 1u << 20}, {"GiB", 1u << 30}, {NULL, 0},
};
static const struct unit duration_units[] = {
    {"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}, {NULL, 0},
};
static const struct unit *const units_of[] = {no_units, size_units, duration_units};

bool esk_quantity_read(const char *text, enum esk_quantity quantity, uint64_t *number) {
    const char *at = text;
    uint64_t value = 0;
    for (; *at >= '0' && *at <= '9'; at++) {
        if (ESK_MULTIPLY_OVERFLOWS(value, 10, &value) ||
            ESK_ADD_OVERFLOWS(value, (uint64_t)(*at - '0'), &value)) {
            return false;
        }
    }
    if (at == text) {
        return false;
    }
    at += strspn(at, " ");
    for (const struct unit *unit = units_of[quantity]; unit->name; unit++) {
        if (strcmp(at, unit->name) == 0) {
            return !ESK_MULTIPLY_OVERFLOWS(value, unit->factor, number);
        }
    }
    return false;
}

/* --- mistyped words --- */

static unsigned least(unsigned a, unsigned b, unsigned c) {
    unsigned smaller = a < b ? a : b;
    return smaller < c ? smaller : c;
}

unsigned esk_unlike(struct esk_slice word, const char *known) {
    size_t size = strlen(known);
    if (word.size == 0 || word.size > WORD_BYTES || size > WORD_BYTES) {
        return UINT32_MAX;
    }
    if (word.size > 1 && size > word.size && memcmp(known, word.data, word.size) == 0) {
        return 1;
    }
    unsigned row[WORD_BYTES + 1];
    for (unsigned k = 0; k <= size; k++) {
        row[k] = k;
    }
    for (unsigned i = 0; i < word.size; i++) {
        unsigned diagonal = row[0];
        row[0] = i + 1;
        for (size_t k = 0; k < size; k++) {
            unsigned changed = diagonal + (word.data[i] != (uint8_t)known[k]);
            diagonal = row[k + 1];
            row[k + 1] = least(row[k] + 1, diagonal + 1, changed);
        }
    }
    return row[size];
}

/* --- help --- */

void esk_help_words(struct esk_buffer *out, const char *text, size_t indent, size_t *column) {
    while (*text) {
        size_t size = strcspn(text, " ");
        if (*column + 1 + size > WIDTH && *column > indent) {
            esk_buffer_format(out, "\n%*s", (int)indent, "");
            *column = indent;
        } else if (*column > indent) {
            esk_buffer_append_text(out, " ");
            *column += 1;
        }
        esk_buffer_append(out, text, size);
        *column += size;
        text += size + strspn(text + size, " ");
    }
}

void esk_help_meaning(struct esk_buffer *out, size_t line, size_t indent,
                      const struct esk_help_meaning *meaning) {
    size_t column = out->size - line;
    if (column + 2 > indent) {
        esk_buffer_append_text(out, "\n");
        column = 0;
    }
    esk_buffer_format(out, "%*s", (int)(indent - column), "");
    column = indent;
    esk_help_words(out, meaning->help, indent, &column);
    char range[160] = "";
    if (meaning->min_text) {
        snprintf(range, sizeof(range), "(%s to %s; default: %s)", meaning->min_text,
                 meaning->max_text, meaning->default_text);
    } else if (meaning->default_text) {
        snprintf(range, sizeof(range), "(default: %s)", meaning->default_text);
    }
    esk_help_words(out, range, indent, &column);
    esk_help_words(out, meaning->note ? meaning->note : "", indent, &column);
    esk_buffer_append_text(out, "\n");
}
