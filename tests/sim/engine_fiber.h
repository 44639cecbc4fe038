/* SPDX-License-Identifier: Apache-2.0 */
/* Stacks to run functions on, and going from one to another. Who goes when is
 * the engine's. */
#ifndef SIM_ENGINE_FIBER_H
#define SIM_ENGINE_FIBER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A place to go back to: a fiber's, or that of the thread itself. */
struct sim_context {
    void *pointer;      /* x86-64: its stack pointer; else a ucontext_t; owns */
    void (*body)(void); /* where it begins */
    const void *bottom; /* of its stack, for AddressSanitizer */
    size_t size;
    void *fake; /* AddressSanitizer's own stack for it */
};

/* A stack with a page without access under it. */
struct sim_stack {
    char *bottom;
    size_t size;
};

/* Makes one, for good; makes one fit for use, whatever has become of who was
 * on it. */
struct sim_stack *sim_stack_new(void);
void sim_stack_clean(const struct sim_stack *stack);

/* Makes `context` one that begins in `body`, which never returns. */
void sim_context_init(struct sim_context *context,
                      const struct sim_stack *stack, void (*body)(void));

/* Goes from one to the other; returns when somebody comes back. */
void sim_context_switch(struct sim_context *from, struct sim_context *to,
                        bool for_ever);

/* What lies on the stack of one that was left, registers and all: how many
 * words, and where; 0 where that is not known. A word is read by the other, as
 * it may be none that belongs to any variable. */
size_t sim_context_stack(const struct sim_context *context,
                         const uint64_t **at);
uint64_t sim_context_word(const uint64_t *at);

#endif
