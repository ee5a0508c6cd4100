/* SPDX-License-Identifier: Apache-2.0 */
/* Native AIO by its system calls: glibc has no wrappers, and its own aio_write is a thread pool.
 * RWF_NOWAIT makes a write that would wait for a lock or a place in the device's queue end with
 * EAGAIN instead, so that the loop goes on. */
#include "runtime/aio.h"

#include "base/assert.h"
#include "base/list.h"
#include "runtime/runtime_private.h"

#include <errno.h>
#include <linux/aio_abi.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define EVENTS_MAX 32 /* out at once, of one loop: a journal has 4 writes at most */

void eski_aio_init(struct eski_aio *aio, int event_fd) {
    aio_context_t context = 0;
    *aio = (struct eski_aio){.event_fd = event_fd};
    if (syscall(SYS_io_setup, EVENTS_MAX, &context) == 0) {
        aio->context = context;
    }
}

void eski_aio_fini(struct eski_aio *aio) {
    ESK_ASSERT(aio->out == 0);
    if (aio->context) {
        (void)syscall(SYS_io_destroy, aio->context);
    }
}

bool eski_aio_write(struct eski_aio *aio, int fd, struct esk_write *write) {
    if (!aio->context || aio->is_refused || aio->out == EVENTS_MAX) {
        return false;
    }
    struct iocb call = {
        .aio_data = (uintptr_t)write,
        .aio_lio_opcode = IOCB_CMD_PWRITE,
        .aio_rw_flags = RWF_NOWAIT,
        .aio_fildes = (uint32_t)fd,
        .aio_buf = (uintptr_t)write->bytes.data,
        .aio_nbytes = write->bytes.size,
        .aio_offset = (int64_t)write->position,
        .aio_flags = IOCB_FLAG_RESFD,
        .aio_resfd = (uint32_t)aio->event_fd,
    };
    struct iocb *calls[] = {&call};
    bool begun = syscall(SYS_io_submit, aio->context, 1, calls) == 1;
    aio->out += begun;
    aio->is_refused = !begun && errno != EAGAIN;
    return begun;
}

void eski_aio_reap(struct eski_aio *aio) {
    struct io_event events[EVENTS_MAX];
    if (aio->out == 0) {
        return;
    }
    long count = syscall(SYS_io_getevents, aio->context, 0, EVENTS_MAX, events, NULL);
    for (long i = 0; i < count; i++) {
        struct esk_write *write = (struct esk_write *)(uintptr_t)events[i].data;
        aio->out--;
        aio->is_refused |= events[i].res == -EOPNOTSUPP;
        eski_file_write_ended(write, events[i].res);
        esk_post(&write->loop->executor, &write->mail);
    }
}
