/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of files or of standard input, one after the other, without holding back a slow input.
 * One owner. */
#ifndef ESK_ESK_LINES_H
#define ESK_ESK_LINES_H

#include "base/error.h"
#include "base/memory.h"

#define ESK_LINE_BYTES_MAX (16 * 1024 * 1024) /* above any record that a broker takes */

struct esk_lines {
    const char *const *paths; /* borrowed */
    uint32_t path_count;
    uint32_t path_index; /* of the next file */
    int fd;              /* -1: none open */
    bool fd_ended;
    struct esk_buffer buffer;
    size_t begin;    /* of the line that is next */
    size_t scanned;  /* up to here there is no line end */
    uint64_t number; /* of the last line, in its file; from 1 */
};

enum esk_lines_state {
    ESK_LINES_LINE,
    ESK_LINES_WAIT, /* a read would block now */
    ESK_LINES_END,
    ESK_LINES_FAILED,
};

/* No paths: standard input; so is a path of "-". */
void esk_lines_init(struct esk_lines *lines, const char *const *paths, uint32_t path_count);
void esk_lines_fini(struct esk_lines *lines);

/* The next line without its line feed, valid until the next call. blocks: never gives
 * ESK_LINES_WAIT. A last line without a line feed counts. */
enum esk_lines_state esk_lines_next(struct esk_lines *lines, bool blocks, struct esk_slice *line,
                                    struct esk_error *error);

/* The file of the last line, as people call it. */
const char *esk_lines_name(const struct esk_lines *lines);

#endif
