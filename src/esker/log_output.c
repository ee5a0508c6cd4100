/* SPDX-License-Identifier: Apache-2.0 */
/* A line that cannot be written is lost: there is nowhere to say so. */
#include "esker/log_output.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

static int64_t wall_ms(void *context) {
    (void)context;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void write_line(void *context, const char *line, size_t size) {
    (void)context;
    while (size > 0) {
        ssize_t written = write(STDERR_FILENO, line, size);
        if (written < 0 && errno == EINTR) {
            continue;
        }
        if (written <= 0) {
            return;
        }
        line += written;
        size -= (size_t)written;
    }
}

struct esk_log esk_log_to_stderr(enum esk_log_level level, bool json) {
    return (struct esk_log){.level = level, .json = json, .wall_ms = wall_ms, .write = write_line};
}
