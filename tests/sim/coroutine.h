/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines on ucontext, told to the address and the thread sanitizer. One thread, no nesting: the
 * scheduler resumes one, which runs until it yields or its function returns. An abandoned one is
 * never resumed; what lay on its stack is gone, what it had allocated leaks (a run is a process of
 * its own). Stacks are used again. */
#ifndef ESK_SIM_COROUTINE_H
#define ESK_SIM_COROUTINE_H

#include <stdbool.h>
#include <stddef.h>
#include <ucontext.h>

struct sim_coroutine {
    ucontext_t context;
    struct sim_stack *stack;
    void (*run)(void *argument);
    void *argument;
    bool done;
    void *fake_stack; /* the address sanitizer's */
    void *fiber;      /* the thread sanitizer's */
};

void sim_coroutine_start(struct sim_coroutine *coroutine, void (*run)(void *), void *argument);
/* From the scheduler only; done tells whether it has ended. */
void sim_coroutine_resume(struct sim_coroutine *coroutine);
/* From inside only. */
void sim_coroutine_yield(void);
bool sim_coroutine_inside(void);
/* Ended or not; not from inside of it. */
void sim_coroutine_abandon(struct sim_coroutine *coroutine);

#endif
