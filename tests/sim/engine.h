/* SPDX-License-Identifier: Apache-2.0 */
/* Fibers on one thread under a scheduler that a seed decides, with store
 * buffers: what one fiber stores with release order may be seen by the others
 * late, in order, as on x86. Every access to a shared word is a point where
 * another fiber may go on. */
#ifndef SIM_ENGINE_H
#define SIM_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* How the next fiber is chosen. */
enum sim_scheduler {
    SIM_UNIFORM,   /* each as likely */
    SIM_PCT,       /* by priorities that change at `depth` random steps */
    SIM_TOLD,      /* as `told` says */
    SIM_EXHAUSTIVE /* every choice; see sim_next() */
};

struct sim_plan {
    enum sim_scheduler scheduler;
    uint64_t seed;
    int depth;     /* of PCT */
    int64_t steps; /* the schedule is cut there; 0: 1,000,000 */
    bool buffers;  /* store buffers on */

    /* SIM_TOLD: pairs of bytes: for how long the one goes on that does, and how
     * many are passed over to find the next. Behind them, and where one cannot
     * go on, the next is next. */
    const unsigned char *told; /* borrows */
    size_t told_size;

    /* SIM_EXHAUSTIVE: all memory that fibers share. What follows a state seen
     * before is not gone through again. NULL: every schedule to its end. */
    const void *memory;
    size_t memory_size;
};

/* How a schedule ended. */
enum sim_end {
    SIM_DONE,     /* every fiber returned */
    SIM_DEADLOCK, /* those left wait for one another */
    SIM_CUT,      /* too many steps */
    SIM_FAILED,   /* a fiber called sim_fail() */
    SIM_SEEN      /* goes on as an earlier one did; see `memory` */
};

/* Runs one schedule: calls `first` as the first fiber; it spawns the others.
 * Fibers that have not returned at its end are left where they are. */
enum sim_end sim_run(const struct sim_plan *plan, void (*first)(void *arg),
                     void *arg);

/* After a SIM_EXHAUSTIVE run: whether there is one more to do. */
bool sim_next(void);

/* Forgets a SIM_EXHAUSTIVE search that was left before its end. */
void sim_restart(void);

/* Of the last schedule: its steps, and a number that its choices decide. */
int64_t sim_steps(void);
uint64_t sim_fingerprint(void);

/* Of the last schedule: its last steps, one a line. */
void sim_print_trail(FILE *file);

/* ---- inside a fiber ----------------------------------------------------- */

/* Starts a fiber; returns its number. `name` is static. */
int sim_spawn(const char *name, void (*body)(void *arg), void *arg);
int sim_self(void); /* -1 outside of a run */
bool sim_is_over(int fiber);

/* Lets others go on. sim_breathe() does not when SIM_EXHAUSTIVE: it is for
 * places where that makes a difference only to who has forgotten a lock. */
void sim_point(void);
void sim_breathe(void);

/* Waits until `is_ready(arg)`, which must have no effect. */
void sim_wait(bool (*is_ready)(void *arg), void *arg);

/* The same, or until the clock reads `until_ns`; false then. The clock stands
 * still while any fiber can go on without it. */
bool sim_wait_until(bool (*is_ready)(void *arg), void *arg, uint64_t until_ns);
uint64_t sim_now_ns(void);

/* A choice of the scheduler's: 0 to n - 1. */
uint64_t sim_choose(uint64_t n);

/* True one time in n; never when SIM_EXHAUSTIVE. */
bool sim_luck(uint64_t n);

/* Leaves a line in the trail; `text` is static. */
void sim_note(const char *text, uint64_t value);

/* Ends the schedule as failed; the text says of what. Does not return. */
_Noreturn void sim_fail(const char *format, ...)
    __attribute__((format(printf, 1, 2)));
const char *sim_failure(void); /* of a deadlock: who waits; else "" */

/* ---- shared words ------------------------------------------------------- */

/* Accesses with acquire, release or both; a store goes through the buffer, a
 * read-modify-write empties it first. `size` is 1, 2, 4 or 8. Outside of a run
 * they are plain. */
uint64_t sim_load(const void *word, size_t size);
void sim_store(void *word, size_t size, uint64_t value);
uint64_t sim_exchange(void *word, size_t size, uint64_t value);
uint64_t sim_add(void *word, size_t size, uint64_t n);
uint64_t sim_or(void *word, size_t size, uint64_t bits);
uint64_t sim_and(void *word, size_t size, uint64_t bits);
bool sim_cas(void *word, size_t size, uint64_t *expected, uint64_t value);

/* Empties the buffer of the fiber, as a system call would. */
void sim_flush(void);

/* What may be wrong with a word, to see whether that is found. */
enum sim_defect {
    SIM_SOUND,
    SIM_SPLIT, /* what reads and writes it does so one after the other */
    SIM_PEEK   /* an exchange for what is there already is a load */
};

/* Gives a word a defect, from now on; there is one at a time, and none for
 * NULL. */
void sim_spoil(const void *word, enum sim_defect defect);

#endif
