/* SPDX-License-Identifier: Apache-2.0 */
/* A context is six registers and a stack pointer on x86-64, and a ucontext
 * elsewhere. */
#define _GNU_SOURCE
#include "sim/engine_fiber.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { STACK_SIZE = 256 * 1024 };

/* ---- AddressSanitizer --------------------------------------------------- */

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN 1
#endif
#endif

#ifdef FIBER_ASAN
void __sanitizer_start_switch_fiber(void **save, const void *bottom,
                                    size_t size);
void __sanitizer_finish_switch_fiber(void *saved, const void **bottom,
                                     size_t *size);
void __asan_unpoison_memory_region(const volatile void *begin, size_t size);
const char *__asan_default_options(void);

/* Disables fake stacks, which abandoned fibers would leak. */
const char *__asan_default_options(void)
{
    return "detect_stack_use_after_return=0";
}
#endif

/* ---- stacks ------------------------------------------------------------- */

struct sim_stack *sim_stack_new(void)
{
    const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    struct sim_stack *stack = malloc(sizeof(*stack));
    char *base = mmap(NULL, guard + STACK_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (stack == NULL || base == MAP_FAILED ||
        mprotect(base, guard, PROT_NONE) != 0) {
        perror("sim: stack");
        abort();
    }
    *stack = (struct sim_stack){.bottom = base + guard, .size = STACK_SIZE};
    return stack;
}

void sim_stack_clean(const struct sim_stack *stack)
{
#ifdef FIBER_ASAN
    __asan_unpoison_memory_region(stack->bottom, stack->size);
#endif
    (void)stack;
}

/* ---- switching ---------------------------------------------------------- */

static struct sim_context *leaving, *entering; /* borrows: ends of a switch */

/* Runs first on the stack that was switched to. */
static void context_arrived(void)
{
#ifdef FIBER_ASAN
    __sanitizer_finish_switch_fiber(entering->fake, &leaving->bottom,
                                    &leaving->size);
#endif
}

#if defined(__x86_64__) && !defined(SIM_UCONTEXT)

void sim_fiber_switch(void **save, void *to);

__asm__(".text\n"
        ".globl sim_fiber_switch\n"
        ".hidden sim_fiber_switch\n"
        ".type sim_fiber_switch, @function\n"
        "sim_fiber_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_fiber_switch, . - sim_fiber_switch\n");

static void context_begin(void)
{
    context_arrived();
    entering->body();
    abort();
}

/* Prepares a new stack as a switch leaves it: six registers, and the return
 * address. The zero above it ends a debugger's backtrace. */
void sim_context_init(struct sim_context *context,
                      const struct sim_stack *stack, void (*body)(void))
{
    void **top = (void **)(void *)(stack->bottom + stack->size);

    memset(top - 8, 0, 8 * sizeof(*top));
    top[-2] = (void *)(uintptr_t)context_begin;
    *context = (struct sim_context){.pointer = top - 8,
                                    .body = body,
                                    .bottom = stack->bottom,
                                    .size = stack->size};
}

static void context_go(struct sim_context *from, struct sim_context *to)
{
    sim_fiber_switch(&from->pointer, to->pointer);
}

size_t sim_context_stack(const struct sim_context *context, const uint64_t **at)
{
    const char *top = (const char *)context->bottom + context->size;

    *at = context->pointer;
    return (size_t)(top - (const char *)context->pointer) / sizeof(**at);
}

#else /* ucontext for other machines */

static void context_begin(void)
{
    context_arrived();
    entering->body();
    abort();
}

static ucontext_t *context_room(struct sim_context *context)
{
    if (context->pointer == NULL)
        context->pointer = calloc(1, sizeof(ucontext_t));
    if (context->pointer == NULL)
        abort();
    return context->pointer;
}

void sim_context_init(struct sim_context *context,
                      const struct sim_stack *stack, void (*body)(void))
{
    ucontext_t *room = context_room(context);

    *context = (struct sim_context){.pointer = room,
                                    .body = body,
                                    .bottom = stack->bottom,
                                    .size = stack->size};
    if (getcontext(room) != 0)
        abort();
    room->uc_stack.ss_sp = stack->bottom;
    room->uc_stack.ss_size = stack->size;
    makecontext(room, context_begin, 0);
}

static void context_go(struct sim_context *from, struct sim_context *to)
{
    if (swapcontext(context_room(from), to->pointer) != 0)
        abort();
}

size_t sim_context_stack(const struct sim_context *context, const uint64_t **at)
{
    (void)context;
    *at = NULL;
    return 0;
}

#endif

#ifdef FIBER_ASAN
__attribute__((no_sanitize_address))
#endif
uint64_t
sim_context_word(const uint64_t *at)
{
    return *at;
}

void sim_context_switch(struct sim_context *from, struct sim_context *to,
                        bool for_ever)
{
    leaving = from;
    entering = to;
#ifdef FIBER_ASAN
    __sanitizer_start_switch_fiber(for_ever ? NULL : &from->fake, to->bottom,
                                   to->size);
#endif
    (void)for_ever;
    context_go(from, to);
    context_arrived();
}
