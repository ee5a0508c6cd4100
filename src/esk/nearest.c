/* SPDX-License-Identifier: Apache-2.0 */
/* The edit distance, one row of its table at a time. */
#include "esk/nearest.h"

#define WORD_BYTES 40

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
