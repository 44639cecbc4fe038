/* SPDX-License-Identifier: Apache-2.0 */
/* Runs fibers on one thread, with a scheduler that a seed controls and with
 * store buffers: as on x86, other fibers may see a release store late, but in
 * order. Or with weak memory, where reads may also give old values
 * (sim/engine_weak.h). Every access to an atomic is a point where another fiber
 * may continue. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the next fiber is chosen. */
enum sim_scheduler {
    SIM_UNIFORM,   /* each with the same probability */
    SIM_PCT,       /* by priorities that change at `depth` random steps */
    SIM_SCRIPTED,  /* as the given bytes decide */
    SIM_EXHAUSTIVE /* every possible choice; see sim_next() */
};

struct sim_plan {
    enum sim_scheduler scheduler;
    uint64_t seed;
    int depth;     /* for SIM_PCT */
    int64_t steps; /* the schedule is cut off there; 0: 1,000,000 */
    bool buffers;  /* simulate store buffers */
    bool weak;     /* simulate weak memory; without `buffers` */

    /* SIM_TOLD: pairs of bytes: for how long the current fiber runs, and how
     * many fibers are skipped to find the next. After the last pair, and when a
     * fiber cannot continue, the next one runs. */
    const unsigned char *script; /* borrows */
    size_t script_size;

    /* SIM_EXHAUSTIVE: how often a fiber is interrupted that could have gone on;
     * 0: at every point. */
    int preemptions;

    /* SIM_EXHAUSTIVE: all memory that the fibers share. Steps after a state
     * seen before are not explored again. NULL: every schedule runs to its end.
     */
    const void *memory;
    size_t memory_size;
};

/* How a schedule ended. */
enum sim_end {
    SIM_DONE,     /* every fiber returned */
    SIM_DEADLOCK, /* the remaining fibers wait for one another */
    SIM_CUT,      /* too many steps */
    SIM_FAILED,   /* a fiber called sim_fail() */
    SIM_SEEN      /* reached the state of an earlier schedule; see `memory` */
};

/* Runs one schedule: calls `first` as the first fiber, which spawns the rest.
 * Fibers that have not returned at its end are abandoned. */
enum sim_end sim_run(const struct sim_plan *plan, void (*first)(void *arg),
                     void *arg);

/* After a SIM_EXHAUSTIVE run: returns whether there is another schedule. */
bool sim_next(void);

/* Discards an unfinished SIM_EXHAUSTIVE search. */
void sim_restart(void);

/* The number of steps of the last schedule, and a hash of its choices. */
int64_t sim_steps(void);
uint64_t sim_fingerprint(void);

/* Prints the last steps of the last schedule, one on each line. */
void sim_print_trail(FILE *file);

/* ---- inside a fiber ----------------------------------------------------- */

/* Starts a fiber; returns its number. `name` is static. */
int sim_spawn(const char *name, void (*body)(void *arg), void *arg);
int sim_self(void); /* -1 outside of a run */

/* Whether a fiber has returned: then the caller sees its effects. */
bool sim_is_over(int fiber);

/* Let other fibers run. sim_breathe() has no effect if SIM_EXHAUSTIVE: it is
 * for places where other fibers only matter if the code lacks a lock. */
void sim_point(void);
void sim_breathe(void);

/* Waits until `is_ready(arg)`, which must have no side effect. In weak memory
 * the newest values end the wait; the fiber may then read older values, if they
 * would end the wait, too. */
void sim_wait(bool (*is_ready)(void *arg), void *arg);

/* As sim_wait(), but returns false when the clock reads `until_ns`. The clock
 * stands still while any fiber can run without it. */
bool sim_wait_until(bool (*is_ready)(void *arg), void *arg, uint64_t until_ns);
uint64_t sim_now_ns(void);

/* Moves the clock forward to `now_ns`, even if fibers can run. They go before
 * the caller from now on, or a fiber that is always busy would keep them from
 * running for hours of that clock. */
void sim_pass_time(uint64_t now_ns);

/* Returns a choice of the scheduler: 0 to n - 1. */
uint64_t sim_choose(uint64_t n);

/* Returns true once in n times; never if SIM_EXHAUSTIVE. */
bool sim_luck(uint64_t n);

/* Adds a line to the trail; `text` is static. */
void sim_note(const char *text, uint64_t value);

/* Ends the schedule as failed, with a text that describes the failure. Does not
 * return. */
_Noreturn void sim_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
const char *sim_failure(void); /* deadlock: the waiting fibers; otherwise "" */

/* ---- atomics ------------------------------------------------------------ */

/* Accesses with acquire, release or both, but for a peek, which is relaxed. A
 * store goes through the buffer; a read-modify-write flushes it first. `size`
 * is 1, 2, 4 or 8. Outside of a run they are plain. Weak memory takes these
 * orders as they are; x86 has no weaker ones. */
uint64_t sim_load(const void *word, size_t size);
uint64_t sim_peek(const void *word, size_t size);
void sim_store(void *word, size_t size, uint64_t value);
uint64_t sim_exchange(void *word, size_t size, uint64_t value);
uint64_t sim_add(void *word, size_t size, uint64_t n);
uint64_t sim_or(void *word, size_t size, uint64_t bits);
uint64_t sim_and(void *word, size_t size, uint64_t bits);
bool sim_cas(void *word, size_t size, uint64_t *expected, uint64_t value);

/* Flushes the fiber's store buffer, as a system call would. */
void sim_flush(void);

/* The caller has taken the lock in that word, or is about to drop it: it sees
 * the effects of earlier holders. */
void sim_lock_taken(const void *lock);
void sim_lock_dropped(const void *lock);

/* An access of plain memory that one fiber at a time may access. In weak memory
 * the schedule fails unless each earlier access happens before this one: that
 * is a data race. Elsewhere it has no effect. */
void sim_plain(const void *cell);

/* Defects of an atomic or lock, to test that they are found. The last two
 * weaken its orders, so that only weak memory shows them. */
enum sim_defect {
    SIM_SOUND,
    SIM_SPLIT,      /* a read-modify-write is not atomic */
    SIM_PEEK,       /* an exchange or or without a change is only a load */
    SIM_UNACQUIRED, /* no reader acquires */
    SIM_UNRELEASED  /* no writer releases */
};

/* Gives an atomic a defect from now on; one at a time; NULL: no defect. */
void sim_spoil(const void *word, enum sim_defect defect);

#endif
