/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks to run functions on, and switches between them. The engine decides
 * when to switch. */
#ifndef SIM_ENGINE_FIBER_H
#define SIM_ENGINE_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A suspended context: a fiber's or the thread's own. */
struct sim_context {
    void *pointer;      /* x86-64: stack pointer; otherwise owns a ucontext_t */
    void (*body)(void); /* where it starts */
    const void *bottom; /* its stack's bottom, for AddressSanitizer */
    size_t size;
    void *fake; /* its fake stack in AddressSanitizer */
};

/* A stack with a guard page below it. */
struct sim_stack {
    char *bottom;
    size_t size;
};

/* The first makes a stack that is never freed; the second makes one usable
 * again, even if a fiber was abandoned on it. */
struct sim_stack *sim_stack_new(void);
void sim_stack_clean(const struct sim_stack *stack);

/* Makes `context` start in `body`, which never returns. */
void sim_context_init(struct sim_context *context,
                      const struct sim_stack *stack, void (*body)(void));

/* Switches from one context to another; returns when it is switched back to. */
void sim_context_switch(struct sim_context *from, struct sim_context *to,
                        bool for_ever);

/* The stack content of a suspended context, including registers: number of
 * words and address; 0 if unknown. The second function reads a word, which need
 * not belong to any variable. */
size_t sim_context_stack(const struct sim_context *context,
                         const uint64_t **at);
uint64_t sim_context_word(const uint64_t *at);

#endif
