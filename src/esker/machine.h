/* SPDX-License-Identifier: Apache-2.0 */
/* What this process may use of the machine: cores and memory, also by the limits of its cgroups
 * (versions 1 and 2, mounted at /sys/fs/cgroup), and the limits it may raise itself. */
#ifndef ESK_ESKER_MACHINE_H
#define ESK_ESKER_MACHINE_H

#include "observe/log.h"

struct esk_machine {
    unsigned cores; /* at least 1: the processors it may run on, or the CPU time it may use */
    uint64_t memory_bytes; /* of the machine, or of the tightest limit on the process */
};

/* root: put before the paths that are read, "" outside tests. What cannot be read limits nothing.
 */
void esk_machine_read(const char *root, struct esk_machine *machine);

/* Raises the limit of open files as far as it may, and tells the allocator to keep what a loaded
 * broker allocates and frees all the time. Before there are threads. */
void esk_machine_prepare(const struct esk_log *log);

#endif
