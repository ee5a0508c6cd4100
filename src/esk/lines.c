/* SPDX-License-Identifier: Apache-2.0 */
/* One buffer, filled by read(2); poll(2) tells whether a read would wait. */
#include "esk/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#define READ_BYTES (256 * 1024)

void esk_lines_init(struct esk_lines *lines, const char *const *paths, uint32_t path_count) {
    static const char *const standard_input[] = {"-"};
    memset(lines, 0, sizeof(*lines));
    lines->paths = path_count ? paths : standard_input;
    lines->path_count = path_count ? path_count : 1;
    lines->fd = -1;
    esk_buffer_init(&lines->buffer);
}

static void close_file(struct esk_lines *lines) {
    if (lines->fd > STDIN_FILENO) {
        close(lines->fd);
    }
    lines->fd = -1;
}

void esk_lines_fini(struct esk_lines *lines) {
    close_file(lines);
    esk_buffer_fini(&lines->buffer);
}

static enum esk_err open_next(struct esk_lines *lines, struct esk_error *error) {
    const char *path = lines->paths[lines->path_index];
    lines->fd = strcmp(path, "-") == 0 ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC);
    if (lines->fd < 0) {
        return esk_fail_errno(error, ESK_ERR_IO, errno, "%s", path);
    }
    lines->path_index++;
    lines->number = 0;
    lines->fd_ended = false;
    return ESK_OK;
}

static bool would_wait(int fd) {
    struct pollfd poller = {.fd = fd, .events = POLLIN};
    return poll(&poller, 1, 0) == 0;
}

/* Reads once behind what is there, after moving that to the front. */
static enum esk_err fill(struct esk_lines *lines, struct esk_error *error) {
    struct esk_buffer *buffer = &lines->buffer;
    if (lines->begin) {
        memmove(buffer->data, buffer->data + lines->begin, buffer->size - lines->begin);
        buffer->size -= lines->begin;
        lines->scanned -= lines->begin;
        lines->begin = 0;
    }
    if (buffer->size > ESK_LINE_BYTES_MAX) {
        return esk_fail(error, ESK_ERR_TOO_LARGE, "%s: a line is over %d bytes",
                        lines->paths[lines->path_index - 1], ESK_LINE_BYTES_MAX);
    }
    uint8_t *room = esk_buffer_grow(buffer, READ_BYTES);
    ssize_t count;
    do {
        count = read(lines->fd, room, READ_BYTES);
    } while (count < 0 && errno == EINTR);
    if (count < 0) {
        return esk_fail_errno(error, ESK_ERR_IO, errno, "%s", lines->paths[lines->path_index - 1]);
    }
    buffer->size += (size_t)count;
    lines->fd_ended = count == 0;
    return ESK_OK;
}

/* Takes a line of the buffer; false: there is no whole one. */
static bool take(struct esk_lines *lines, struct esk_slice *line) {
    struct esk_buffer *buffer = &lines->buffer;
    size_t left = buffer->size - lines->scanned;
    const uint8_t *end = left ? memchr(buffer->data + lines->scanned, '\n', left) : NULL;
    if (!end && !(lines->fd_ended && buffer->size > lines->begin)) {
        lines->scanned = buffer->size;
        return false;
    }
    size_t stop = end ? (size_t)(end - buffer->data) : buffer->size;
    *line = esk_slice(buffer->data + lines->begin, stop - lines->begin);
    lines->begin = lines->scanned = stop + (end != NULL);
    lines->number++;
    return true;
}

enum esk_lines_state esk_lines_next(struct esk_lines *lines, bool blocks, struct esk_slice *line,
                                    struct esk_error *error) {
    for (;;) {
        if (lines->fd < 0) {
            if (lines->path_index == lines->path_count) {
                return ESK_LINES_END;
            }
            if (open_next(lines, error) != ESK_OK) {
                return ESK_LINES_FAILED;
            }
        }
        if (take(lines, line)) {
            return ESK_LINES_LINE;
        }
        if (lines->fd_ended) {
            close_file(lines);
            continue;
        }
        if (!blocks && would_wait(lines->fd)) {
            return ESK_LINES_WAIT;
        }
        if (fill(lines, error) != ESK_OK) {
            return ESK_LINES_FAILED;
        }
    }
}

const char *esk_lines_name(const struct esk_lines *lines) {
    const char *path = lines->path_index ? lines->paths[lines->path_index - 1] : "-";
    return strcmp(path, "-") == 0 ? "standard input" : path;
}
