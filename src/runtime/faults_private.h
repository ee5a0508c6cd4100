/* SPDX-License-Identifier: Apache-2.0 */
/* The rules of faults.h: parsed once, counted under a lock. */
#ifndef ESK_RUNTIME_FAULTS_PRIVATE_H
#define ESK_RUNTIME_FAULTS_PRIVATE_H

#include "base/error.h"

#include <pthread.h>
#include <stdint.h>

#define ESKI_FAULT_RULES_MAX 16

enum eski_fault_operation {
    ESKI_FAULT_OPEN,
    ESKI_FAULT_READ,
    ESKI_FAULT_WRITE,
    ESKI_FAULT_SYNC,
    ESKI_FAULT_TRUNCATE,
    ESKI_FAULT_ALLOCATE,
    ESKI_FAULT_LOCK,
    ESKI_FAULT_REMOVE,
    ESKI_FAULT_RENAME,
    ESKI_FAULT_FOLDER,
    ESKI_FAULT_OPERATION_COUNT,
};

/* What is to happen to a call: an errno value, 0 for nothing, or one of these. */
enum { ESKI_FAULT_SHORT = -1, ESKI_FAULT_LOST = -2, ESKI_FAULT_STALL = -3 };

struct eski_fault_rule {
    enum eski_fault_operation operation;
    uint64_t first; /* calls, counted from 1 */
    uint64_t last;
    uint64_t every;     /* 0: by first and last */
    char *while_exists; /* NULL: by count */
    int what;
    char *pattern;
    uint64_t calls; /* so far; guarded by the lock */
};

struct eski_fault_rules {
    pthread_mutex_t mutex;
    struct eski_fault_rule rules[ESKI_FAULT_RULES_MAX];
    size_t count;
};

enum esk_err eski_fault_rules_parse(struct eski_fault_rules *rules, const char *text,
                                    struct esk_error *error);
void eski_fault_rules_fini(struct eski_fault_rules *rules);
/* Counts the call and says what is to happen to it. Any thread. */
int eski_fault_decide(struct eski_fault_rules *rules, enum eski_fault_operation operation,
                      const char *path);

#endif
