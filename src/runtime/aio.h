/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that a loop's own thread hands to the kernel: Linux's native AIO, of files that are open
 * for direct access. Such a write ends without a thread that waits for it, which saves a small
 * durable write two wake-ups. io_uring would do as well, but containers commonly forbid it. All
 * functions: the loop's thread. */
#ifndef ESK_RUNTIME_AIO_H
#define ESK_RUNTIME_AIO_H

#include "platform/file.h"

struct eski_aio {
    unsigned long context; /* the kernel's; 0: it gave none, no write begins */
    int event_fd;          /* counts what has ended; the loop's */
    unsigned out;
    bool is_refused; /* the file system or device has no such writes */
};

/* Where the kernel gives no context (a limit, a filter), no write ever begins. */
void eski_aio_init(struct eski_aio *aio, int event_fd);
void eski_aio_fini(struct eski_aio *aio); /* none is out */

/* Begins to write write->bytes to fd; false: not now, or not here. */
bool eski_aio_write(struct eski_aio *aio, int fd, struct esk_write *write);
/* Tells eski_file_write_ended of those that have ended, then posts their mails. */
void eski_aio_reap(struct eski_aio *aio);

#endif
