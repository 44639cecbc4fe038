/* SPDX-License-Identifier: Apache-2.0 */
/* The fibers of a schedule, and the decision which of them runs next. */
#define _GNU_SOURCE
#include "sim/engine.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "sim/engine_buffer.h"
#include "sim/engine_chooser.h"
#include "sim/engine_fiber.h"
#include "sim/engine_locals.h"
#include "sim/engine_weak.h"

enum { FIBERS = SIM_ACTORS / 2, TRAIL = 512 };
enum { SIM_RUNNING = -1 }; /* not ended */

struct fiber {
    int number;
    const char *name; /* borrows */
    void (*body)(void *arg);
    void *arg;
    struct sim_context context;
    struct sim_stack *stack; /* owns; reused in all schedules */
    void *locals;            /* owns: thread-local variables */
    bool over;
    struct sim_buffer buffer;

    /* the condition it waits for; or NULL */
    bool (*is_ready)(void *arg);
    void *ready_arg;
    uint64_t until_ns;

    uint64_t seen; /* hash of all values returned to it */
};

struct trace {
    int fiber;
    const char *what;
    const void *word;
    uint64_t value;
};

/* The only engine of the program. */
static struct {
    struct sim_plan plan;
    struct sim_context main;
    void *locals; /* owns: thread-local variables of the program itself */
    int self;     /* -1: no fiber */
    int asking;   /* the fiber of the is_ready() being called, or -1 */
    bool leaving; /* that is_ready() ends the wait: its reads count */
    struct fiber *fibers[FIBERS]; /* owns; reused for all schedules */
    int count;                    /* fibers in this schedule */
    int live[FIBERS];             /* fibers that have not returned */
    int live_count;
    uint64_t now_ns;
    int last;        /* the fiber that ran last, or -1 */
    int preemptions; /* fibers that were interrupted */
    int64_t steps;
    int end; /* enum sim_end, or SIM_RUNNING */
    char failure[512];
    const void *spoiled; /* borrows */
    enum sim_defect defect;
    struct trace trail[TRAIL];
    uint64_t trail_count;
} engine = {.self = -1, .asking = -1};

/* ---- the trail ---------------------------------------------------------- */

static void trail_add(const char *what, const void *word, uint64_t value)
{
    engine.trail[engine.trail_count++ % TRAIL] =
        (struct trace){engine.self, what, word, value};
}

void sim_note(const char *text, uint64_t value)
{
    trail_add(text, NULL, value);
}

void sim_print_trail(FILE *file)
{
    const uint64_t n = engine.trail_count;

    for (uint64_t i = n > TRAIL ? n - TRAIL : 0; i < n; i++) {
        const struct trace *t = &engine.trail[i % TRAIL];

        (void)fprintf(file, "%-16s %-10s %p %#llx\n",
                      t->fiber < 0 ? "-" : engine.fibers[t->fiber]->name,
                      t->what, t->word, (unsigned long long)t->value);
    }
}

/* ---- switching ---------------------------------------------------------- */

static struct sim_context *engine_leave(void **locals)
{
    if (engine.self < 0) {
        *locals = engine.locals;
        return &engine.main;
    }
    *locals = engine.fibers[engine.self]->locals;
    return &engine.fibers[engine.self]->context;
}

/* Switches to `to`, a fiber, or -1 for the program. */
static void engine_switch(int to, bool for_ever)
{
    struct fiber *const next = to < 0 ? NULL : engine.fibers[to];
    const int error = errno;
    void *locals;
    struct sim_context *from = engine_leave(&locals);

    sim_locals_swap(locals, next == NULL ? engine.locals : next->locals);
    engine.self = to;
    sim_context_switch(from, next == NULL ? &engine.main : &next->context,
                       for_ever);
    errno = error;
}

static _Noreturn void engine_end(enum sim_end end)
{
    engine.end = end;
    engine_switch(-1, true);
    abort();
}

void sim_fail(const char *format, ...)
{
    va_list args;

    va_start(args, format);
    (void)vsnprintf(engine.failure, sizeof(engine.failure), format, args);
    va_end(args);
    if (engine.self < 0) {
        (void)fprintf(stderr, "sim: %s\n", engine.failure);
        abort();
    }
    engine_end(SIM_FAILED);
}

const char *sim_failure(void)
{
    return engine.failure;
}

/* ---- fibers that may run ------------------------------------------------ */

static bool fiber_is_ready(struct fiber *fiber)
{
    bool ready;

    if (fiber->is_ready == NULL)
        return true;
    engine.asking = fiber->number;
    ready = fiber->is_ready(fiber->ready_arg);
    engine.asking = -1;
    return ready || engine.now_ns >= fiber->until_ns;
}

/* If the fiber that ran last can go on, it is the first choice, and the only
 * one when no more fibers may be interrupted. Returns the number of choices. */
static int engine_bound(int *actors, int count)
{
    for (int i = 0; i < count; i++) {
        if (actors[i] != 2 * engine.last)
            continue;
        actors[i] = actors[0];
        actors[0] = 2 * engine.last;
        return engine.preemptions == engine.plan.preemptions ? 1 : count;
    }
    engine.last = -1;
    return count;
}

static int engine_actors(int *actors)
{
    int count = 0;

    for (int i = 0; i < engine.live_count; i++) {
        struct fiber *fiber = engine.fibers[engine.live[i]];

        if (fiber_is_ready(fiber))
            actors[count++] = 2 * fiber->number;
        if (fiber->buffer.count > 0)
            actors[count++] = 2 * fiber->number + 1;
    }
    return engine.plan.preemptions > 0 ? engine_bound(actors, count) : count;
}

static void engine_note_next(int fiber)
{
    if (engine.last >= 0 && engine.last != fiber)
        engine.preemptions++;
    engine.last = fiber;
}

/* No fiber can run: moves the clock to when the first one can. Returns false if
 * no actor ever can. */
static bool engine_pass_time(void)
{
    uint64_t first = UINT64_MAX;

    for (int i = 0; i < engine.live_count; i++) {
        if (engine.fibers[engine.live[i]]->until_ns < first)
            first = engine.fibers[engine.live[i]]->until_ns;
    }
    if (first == UINT64_MAX)
        return false;
    engine.now_ns = first;
    return true;
}

static void engine_name_waiters(void)
{
    size_t length = 0;

    for (int i = 0; i < engine.live_count; i++) {
        const struct fiber *fiber = engine.fibers[engine.live[i]];
        const int n = snprintf(
            engine.failure + length, sizeof(engine.failure) - length, "%s%s",
            length == 0 ? "these wait for one another: " : ", ", fiber->name);

        if (n < 0 || (size_t)n >= sizeof(engine.failure) - length)
            return;
        length += (size_t)n;
    }
}

/* ---- states ------------------------------------------------------------- */

/* Hashes the facts that determine the fiber's next steps: its wait and, where
 * it can be read, its stack; otherwise all values returned to it, from which
 * its state follows. */
static uint64_t fiber_state(const struct fiber *fiber)
{
    const uint64_t *at;
    const size_t count = sim_context_stack(&fiber->context, &at);
    uint64_t hash = fiber->over ? 1 : 2;

    if (fiber->over)
        return hash;
    hash = sim_mix(hash, fiber->until_ns);
    hash = sim_mix(hash, (uint64_t)(uintptr_t)fiber->is_ready);
    hash = sim_mix(hash, (uint64_t)(uintptr_t)fiber->ready_arg);
    if (count == 0)
        return sim_mix(hash, fiber->seen);
    for (size_t i = 0; i < count; i++)
        hash = sim_mix(hash, sim_context_word(at + i));
    return sim_mix_bytes(hash, fiber->locals, sim_locals_size());
}

static uint64_t engine_state(void)
{
    uint64_t hash = sim_mix(engine.now_ns, (uint64_t)engine.count);

    hash = sim_mix_bytes(hash, engine.plan.memory, engine.plan.memory_size);
    if (engine.plan.weak)
        hash = sim_mix(hash, sim_weak_state());
    if (engine.plan.preemptions > 0)
        hash = sim_mix(hash,
                       (uint64_t)(FIBERS * engine.preemptions + engine.last));
    for (int i = 0; i < engine.count; i++) {
        const struct fiber *fiber = engine.fibers[i];

        hash = sim_mix(hash, fiber_state(fiber));
        hash = sim_mix(hash, (uint64_t)fiber->buffer.count);
        for (int k = 0; k < fiber->buffer.count; k++) {
            const struct sim_stored *stored = &fiber->buffer.stores[k];

            hash = sim_mix(hash, (uint64_t)(uintptr_t)stored->word);
            hash = sim_mix(hash, stored->value);
        }
    }
    return hash;
}

static void engine_observe(uint64_t value)
{
    struct fiber *self = engine.fibers[engine.self];

    self->seen = sim_mix(self->seen, value);
}

/* ---- deciding ----------------------------------------------------------- */

static void engine_drain(struct fiber *fiber)
{
    const struct sim_stored stored = sim_buffer_drain(&fiber->buffer);
    const int self = engine.self;

    engine.self = fiber->number;
    trail_add("seen", stored.word, stored.value);
    engine.self = self;
}

/* Returns why no fiber can run. */
static enum sim_end engine_stop(void)
{
    if (engine.live_count == 0)
        return SIM_DONE;
    engine_name_waiters();
    return SIM_DEADLOCK;
}

/* Returns whether the schedule ends before any of `count` actors runs. */
static bool engine_ends(int count)
{
    if (count == 0)
        engine.end = engine_stop();
    else if (engine.steps++ >= engine.plan.steps)
        engine.end = SIM_CUT;
    else if (engine.plan.memory != NULL && sim_chooser_is_new() &&
             sim_chooser_was_here(engine_state()))
        engine.end = SIM_SEEN;
    return engine.end != SIM_RUNNING;
}

/* Returns the fiber that runs next; -1 at the end. */
static int engine_next(void)
{
    int actors[SIM_ACTORS], actor, count;

    for (;;) {
        count = engine_actors(actors);
        while (count == 0 && engine_pass_time())
            count = engine_actors(actors);
        if (engine_ends(count))
            return -1;
        actor = sim_chooser_actor(actors, count);
        if (actor % 2 == 0) {
            engine_note_next(actor / 2);
            return actor / 2;
        }
        engine_drain(engine.fibers[actor / 2]);
    }
}

/* States are compared by the content of stacks, so this clears dead values
 * below the caller's frame. */
static __attribute__((noinline)) void engine_wipe(void)
{
    volatile char dead[1024];

    memset((void *)(uintptr_t)dead, 0, sizeof(dead));
    __asm__ volatile("" ::"r"(dead) : "memory");
}

/* The fiber at a schedule point decides which one runs next. If stacks are
 * compared, all fibers must have been left for that, so the program decides. */
static void engine_pass(void)
{
    const int self = engine.self, error = errno;
    int next;

    if (engine.plan.memory != NULL) {
        engine_wipe();
        engine_switch(-1, false);
        return;
    }
    next = engine_next();
    errno = error;
    if (next != self)
        engine_switch(next, false);
}

void sim_point(void)
{
    if (engine.self < 0 || engine.asking >= 0)
        return;
    engine_pass();
    engine_observe(0);
}

void sim_breathe(void)
{
    if (engine.plan.scheduler != SIM_EXHAUSTIVE)
        sim_point();
}

/* A wait is about to end. Old values with which it would go on are not worth a
 * schedule: the fiber would only read again, and could read fewer old values
 * than before. */
static bool fiber_leaves(struct fiber *self)
{
    bool ready;

    engine.asking = self->number;
    engine.leaving = true;
    ready = self->is_ready(self->ready_arg);
    engine.leaving = false;
    engine.asking = -1;
    if (engine.plan.weak && !ready && engine.now_ns < self->until_ns)
        engine_end(SIM_SEEN);
    return ready;
}

bool sim_wait_until(bool (*is_ready)(void *arg), void *arg, uint64_t until_ns)
{
    struct fiber *self;
    bool ready;

    if (engine.self < 0) {
        if (!is_ready(arg))
            sim_fail("a wait outside of a run that no fiber can end");
        return true;
    }
    self = engine.fibers[engine.self];
    self->is_ready = is_ready;
    self->ready_arg = arg;
    self->until_ns = until_ns;
    engine_pass();
    ready = fiber_leaves(self);
    self->is_ready = NULL;
    self->ready_arg = NULL;
    self->until_ns = UINT64_MAX;
    engine_observe(ready);
    return ready;
}

void sim_wait(bool (*is_ready)(void *arg), void *arg)
{
    (void)sim_wait_until(is_ready, arg, UINT64_MAX);
}

uint64_t sim_now_ns(void)
{
    if (engine.self >= 0 && engine.asking < 0)
        engine_observe(engine.now_ns);
    return engine.now_ns;
}

void sim_pass_time(uint64_t now_ns)
{
    if (engine.now_ns >= now_ns)
        return;
    engine.now_ns = now_ns;
    sim_chooser_demote(2 * engine.self);
}

uint64_t sim_choose(uint64_t n)
{
    uint64_t number;

    assert(engine.self >= 0 && n > 0);
    number = sim_chooser_number(n);
    engine_observe(number);
    return number;
}

bool sim_luck(uint64_t n)
{
    return engine.self >= 0 && sim_chooser_luck(n);
}

/* ---- fibers ------------------------------------------------------------- */

int sim_self(void)
{
    return engine.asking >= 0 ? engine.asking : engine.self;
}

bool sim_is_over(int fiber)
{
    assert(fiber >= 0 && fiber < engine.count);
    if (engine.plan.weak && engine.fibers[fiber]->over &&
        (engine.asking < 0 || engine.leaving))
        sim_weak_join(sim_self(), fiber);
    return engine.fibers[fiber]->over;
}

static bool fiber_is_drained(void *arg)
{
    const struct fiber *fiber = arg;

    return fiber->buffer.count == 0;
}

static void fiber_forget(struct fiber *fiber)
{
    for (int i = 0; i < engine.live_count; i++) {
        if (engine.live[i] == fiber->number)
            engine.live[i] = engine.live[--engine.live_count];
    }
}

static _Noreturn void fiber_main(void)
{
    struct fiber *self = engine.fibers[engine.self];

    errno = 0;
    engine_observe(0);
    self->body(self->arg);
    sim_wait(fiber_is_drained, self);
    self->over = true;
    if (engine.plan.weak)
        sim_weak_end(self->number);
    fiber_forget(self);
    engine_switch(-1, true);
    abort();
}

/* Reuses the fibers of earlier schedules. */
static struct fiber *fiber_room(void)
{
    struct fiber **room = &engine.fibers[engine.count];

    if (engine.count == FIBERS)
        sim_fail("more than %d fibers", (int)FIBERS);
    if (*room == NULL) {
        *room = calloc(1, sizeof(**room));
        if (*room == NULL)
            abort();
        (*room)->stack = sim_stack_new();
        (*room)->locals = sim_locals_new();
    }
    sim_locals_reset((*room)->locals);
    return *room;
}

static struct fiber *fiber_new(const char *name, void (*body)(void *arg),
                               void *arg)
{
    struct fiber *fiber = fiber_room();

    fiber->number = engine.count++;
    fiber->name = name;
    fiber->body = body;
    fiber->arg = arg;
    sim_stack_clean(fiber->stack);
    fiber->over = false;
    fiber->buffer.count = 0;
    fiber->is_ready = NULL;
    fiber->ready_arg = NULL;
    fiber->until_ns = UINT64_MAX;
    fiber->seen = 0;
    if (engine.plan.weak)
        sim_weak_spawn(fiber->number, engine.self);
    sim_context_init(&fiber->context, fiber->stack, fiber_main);
    engine.live[engine.live_count++] = fiber->number;
    return fiber;
}

int sim_spawn(const char *name, void (*body)(void *arg), void *arg)
{
    const struct fiber *fiber;

    assert(engine.self >= 0);
    sim_flush();
    fiber = fiber_new(name, body, arg);
    sim_point();
    return fiber->number;
}

/* ---- schedules ---------------------------------------------------------- */

static void engine_reset(const struct sim_plan *plan)
{
    if (engine.locals == NULL)
        engine.locals = sim_locals_new();
    engine.plan = *plan;
    if (plan->steps == 0)
        engine.plan.steps = 1000000;
    engine.count = engine.live_count = 0;
    engine.now_ns = 0;
    engine.last = -1;
    engine.preemptions = 0;
    engine.steps = 0;
    engine.end = SIM_RUNNING;
    engine.failure[0] = '\0';
    engine.trail_count = 0;
    engine.asking = -1;
    engine.leaving = false;
    if (plan->weak)
        sim_weak_begin();
    sim_chooser_begin(&engine.plan);
}

enum sim_end sim_run(const struct sim_plan *plan, void (*first)(void *arg),
                     void *arg)
{
    int next;

    assert(engine.self < 0);
    engine_reset(plan);
    (void)fiber_new("first", first, arg);
    while (engine.end == SIM_RUNNING && (next = engine_next()) >= 0)
        engine_switch(next, false);
    return engine.end;
}

bool sim_next(void)
{
    return sim_chooser_next();
}

void sim_restart(void)
{
    sim_chooser_restart();
}

int64_t sim_steps(void)
{
    return engine.steps;
}

uint64_t sim_fingerprint(void)
{
    return sim_chooser_fingerprint();
}

/* ---- atomics ------------------------------------------------------------ */

void sim_flush(void)
{
    struct fiber *self;

    if (engine.self < 0)
        return;
    self = engine.fibers[engine.self];
    while (self->buffer.count > 0)
        engine_drain(self);
}

void sim_spoil(const void *word, enum sim_defect defect)
{
    engine.spoiled = word;
    engine.defect = word == NULL ? SIM_SOUND : defect;
}

static bool word_is(const void *word, enum sim_defect defect)
{
    return engine.spoiled == word && engine.defect == defect;
}

/* Reads any of the values that the fiber may read. */
static uint64_t weak_load(const void *word, size_t size, bool acquire)
{
    const int self = sim_self();
    const uint64_t age = sim_chooser_number(sim_weak_choices(self, word, size));

    return sim_weak_read(self, word, size, age,
                         acquire && !word_is(word, SIM_UNACQUIRED));
}

static uint64_t atomic_load(const void *word, size_t size, bool acquire)
{
    uint64_t value;

    if (engine.self < 0 && engine.asking < 0)
        return sim_memory_read(word, size);
    if (engine.asking < 0)
        engine_pass();
    if (engine.plan.weak && (engine.asking < 0 || engine.leaving))
        value = weak_load(word, size, acquire);
    else
        value = sim_buffer_read(&engine.fibers[sim_self()]->buffer, word, size);
    if (engine.asking >= 0)
        return value;
    engine_observe(value);
    trail_add("load", word, value);
    return value;
}

uint64_t sim_load(const void *word, size_t size)
{
    return atomic_load(word, size, true);
}

uint64_t sim_peek(const void *word, size_t size)
{
    return atomic_load(word, size, false);
}

void sim_store(void *word, size_t size, uint64_t value)
{
    struct sim_buffer *buffer;

    if (engine.self < 0) {
        sim_memory_write(word, size, value);
        return;
    }
    engine_pass();
    engine_observe(value);
    trail_add("store", word, value);
    if (engine.plan.weak) {
        sim_weak_store(engine.self, word, size, value,
                       !word_is(word, SIM_UNRELEASED));
        return;
    }
    if (!engine.plan.buffers) {
        sim_memory_write(word, size, value);
        return;
    }
    buffer = &engine.fibers[engine.self]->buffer;
    if (buffer->count == SIM_BUFFER_ROOM)
        engine_drain(engine.fibers[engine.self]);
    sim_buffer_add(buffer, word, size, value);
}

/* First half of a read-modify-write: returns the current value. */
static uint64_t atomic_begin(const void *word, size_t size)
{
    assert(engine.asking < 0);
    if (engine.self < 0)
        return sim_memory_read(word, size);
    if (word_is(word, SIM_SPLIT))
        return sim_load(word, size);
    engine_pass();
    sim_flush();
    return sim_memory_read(word, size);
}

/* Second half: stores the new value. */
static void atomic_end(const char *what, void *word, size_t size,
                       uint64_t before, uint64_t value)
{
    if (engine.self >= 0 && word_is(word, SIM_SPLIT)) {
        sim_store(word, size, value);
        return;
    }
    if (engine.self >= 0 && engine.plan.weak)
        sim_weak_update(engine.self, word, size, value,
                        !word_is(word, SIM_UNACQUIRED),
                        !word_is(word, SIM_UNRELEASED));
    else
        sim_memory_write(word, size, value);
    if (engine.self < 0)
        return;
    engine_observe(before);
    trail_add(what, word, value);
}

uint64_t sim_exchange(void *word, size_t size, uint64_t value)
{
    uint64_t before;

    if (word_is(word, SIM_PEEK) && sim_load(word, size) == value)
        return value;
    before = atomic_begin(word, size);
    atomic_end("exchange", word, size, before, value);
    return before;
}

uint64_t sim_add(void *word, size_t size, uint64_t n)
{
    const uint64_t before = atomic_begin(word, size);

    atomic_end("add", word, size, before, before + n);
    return before;
}

uint64_t sim_or(void *word, size_t size, uint64_t bits)
{
    uint64_t before;

    if (word_is(word, SIM_PEEK)) {
        before = sim_load(word, size);
        if ((before | bits) == before)
            return before;
    }
    before = atomic_begin(word, size);
    atomic_end("or", word, size, before, before | bits);
    return before;
}

uint64_t sim_and(void *word, size_t size, uint64_t bits)
{
    const uint64_t before = atomic_begin(word, size);

    atomic_end("and", word, size, before, before & bits);
    return before;
}

/* A compare-and-swap that fails is a load, and may read an old value. The
 * newest value is its first choice; an old value with which it would not fail
 * is not a choice. */
static bool weak_cas(void *word, size_t size, uint64_t *expected,
                     uint64_t value)
{
    uint64_t age, before;

    engine_pass();
    age = sim_chooser_number(sim_weak_choices(engine.self, word, size));
    before = sim_memory_read(word, size);
    if (age == 0 && before == *expected) {
        atomic_end("cas", word, size, before, value);
        return true;
    }
    before = sim_weak_read(engine.self, word, size, age,
                           !word_is(word, SIM_UNACQUIRED));
    if (before == *expected)
        engine_end(SIM_SEEN);
    engine_observe(before);
    trail_add("cas failed", word, before);
    *expected = before;
    return false;
}

bool sim_cas(void *word, size_t size, uint64_t *expected, uint64_t value)
{
    uint64_t before;
    bool equal;

    if (engine.plan.weak && engine.self >= 0 && !word_is(word, SIM_SPLIT))
        return weak_cas(word, size, expected, value);
    before = atomic_begin(word, size);
    equal = before == *expected;
    if (equal)
        atomic_end("cas", word, size, before, value);
    else if (engine.self >= 0 && !word_is(word, SIM_SPLIT))
        atomic_end("cas failed", word, size, before, before);
    *expected = before;
    return equal;
}

void sim_lock_taken(const void *lock)
{
    if (engine.plan.weak && engine.self >= 0 && !word_is(lock, SIM_UNACQUIRED))
        sim_weak_take(engine.self, lock);
}

void sim_lock_dropped(const void *lock)
{
    if (engine.plan.weak && engine.self >= 0 && !word_is(lock, SIM_UNRELEASED))
        sim_weak_drop(engine.self, lock);
}

void sim_plain(const void *cell)
{
    if (engine.plan.weak && engine.self >= 0 &&
        !sim_weak_touch(engine.self, cell))
        sim_fail("a data race");
}
