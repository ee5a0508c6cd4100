/* SPDX-License-Identifier: Apache-2.0 */
#include "coroutine.h"

#include "base/assert.h"
#include "base/memory.h"

#include <stdlib.h>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif
#if defined(__SANITIZE_THREAD__)
#define SIM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#endif
#endif

#ifdef SIM_ASAN
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif
#ifdef SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#ifdef SIM_ASAN
/* What an abandoned coroutine had allocated is nobody's. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) {
    return "detect_leaks=0";
}
#endif

#define STACK_BYTES                                                                                \
    (512 * 1024) /* the sanitizers' frames are large; untouched pages cost nothing */
#define GUARD_BYTES 4096

struct sim_stack {
    struct sim_stack *next;
    uint8_t *memory;
};

static struct sim_stack *free_stacks;
static ucontext_t scheduler;
static struct sim_coroutine *current;
static const void *scheduler_stack;
static size_t scheduler_stack_bytes;
static void *scheduler_fiber;

static struct sim_stack *stack_take(void) {
    struct sim_stack *stack = free_stacks;
    if (stack) {
        free_stacks = stack->next;
        return stack;
    }
    stack = esk_alloc(sizeof(*stack));
    stack->memory = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    ESK_ASSERT(stack->memory != MAP_FAILED);
    ESK_ASSERT(mprotect(stack->memory, GUARD_BYTES, PROT_NONE) == 0);
    return stack;
}

static void switch_begin(void **fake_stack, const void *bottom, size_t size, void *fiber) {
#ifdef SIM_ASAN
    __sanitizer_start_switch_fiber(fake_stack, bottom, size);
#else
    (void)fake_stack, (void)bottom, (void)size;
#endif
#ifdef SIM_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#else
    (void)fiber;
#endif
}

static void switch_end(void *fake_stack, const void **bottom, size_t *size) {
#ifdef SIM_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, bottom, size);
#else
    (void)fake_stack, (void)bottom, (void)size;
#endif
}

static void enter(void) {
    switch_end(NULL, &scheduler_stack, &scheduler_stack_bytes);
    struct sim_coroutine *self = current;
    self->run(self->argument);
    self->done = true;
    switch_begin(NULL, scheduler_stack, scheduler_stack_bytes, scheduler_fiber);
    setcontext(&scheduler);
}

void sim_coroutine_start(struct sim_coroutine *coroutine, void (*run)(void *), void *argument) {
    *coroutine = (struct sim_coroutine){.run = run, .argument = argument, .stack = stack_take()};
    ESK_ASSERT(getcontext(&coroutine->context) == 0);
    coroutine->context.uc_stack.ss_sp = coroutine->stack->memory + GUARD_BYTES;
    coroutine->context.uc_stack.ss_size = STACK_BYTES;
    coroutine->context.uc_link = NULL;
    makecontext(&coroutine->context, enter, 0);
#ifdef SIM_TSAN
    coroutine->fiber = __tsan_create_fiber(0);
#endif
}

void sim_coroutine_resume(struct sim_coroutine *coroutine) {
    ESK_ASSERT(!current && !coroutine->done);
    void *fake_stack = NULL;
#ifdef SIM_TSAN
    scheduler_fiber = __tsan_get_current_fiber();
#endif
    current = coroutine;
    switch_begin(&fake_stack, coroutine->stack->memory + GUARD_BYTES, STACK_BYTES,
                 coroutine->fiber);
    swapcontext(&scheduler, &coroutine->context);
    switch_end(fake_stack, NULL, NULL);
    current = NULL;
}

void sim_coroutine_yield(void) {
    struct sim_coroutine *self = current;
    ESK_ASSERT(self);
    switch_begin(&self->fake_stack, scheduler_stack, scheduler_stack_bytes, scheduler_fiber);
    swapcontext(&self->context, &scheduler);
    switch_end(self->fake_stack, &scheduler_stack, &scheduler_stack_bytes);
}

bool sim_coroutine_inside(void) {
    return current != NULL;
}

void sim_coroutine_abandon(struct sim_coroutine *coroutine) {
    ESK_ASSERT(current != coroutine);
#ifdef SIM_ASAN
    __asan_unpoison_memory_region(coroutine->stack->memory + GUARD_BYTES, STACK_BYTES);
#endif
#ifdef SIM_TSAN
    __tsan_destroy_fiber(coroutine->fiber);
#endif
    coroutine->stack->next = free_stacks;
    free_stacks = coroutine->stack;
    coroutine->stack = NULL;
}
