/* SPDX-License-Identifier: Apache-2.0 */
/* The values of an atomic are numbered, and a view is a number for each atomic:
 * the oldest value that may be read. A lock is an atomic with one value, which
 * carries the view of the last holder. The values of a plain cell are its
 * accesses, and a fiber has to be at the newest.
 *
 * Memory holds the newest value. If it holds another one, the memory was
 * written directly, as by a function that prepares it, or was freed and used
 * again: then that is the only value, and every fiber sees it. */
#include "sim/engine_weak.h"

#include <assert.h>
#include <string.h>

#include "sim/engine.h"
#include "sim/engine_buffer.h"
#include "sim/engine_chooser.h"

/* For each atomic, by its index, the oldest value that may be read. */
struct view {
    uint32_t at[SIM_WEAK_WORDS];
};

struct value {
    uint64_t value;
    struct view view; /* the view of a fiber that acquires it */
};

struct word {
    const void *address;     /* borrows */
    uint32_t newest, oldest; /* the numbers of the values that are kept */
    struct value values[SIM_WEAK_VALUES]; /* by number, in a circle */
};

struct fiber_view {
    bool over;
    struct view view;
};

/* The only weak memory of the program. */
static struct {
    struct word words[SIM_WEAK_WORDS];
    int count; /* of the words */
    struct fiber_view fibers[SIM_WEAK_FIBERS];
    int fiber_count;
} weak;

void sim_weak_begin(void)
{
    weak.count = weak.fiber_count = 0;
}

/* ---- views -------------------------------------------------------------- */

static void view_join(struct view *view, const struct view *other)
{
    for (int i = 0; i < weak.count; i++) {
        if (view->at[i] < other->at[i])
            view->at[i] = other->at[i];
    }
}

/* How much older than the newest value those may be that `view` allows. */
static uint32_t view_age(const struct view *view, int index)
{
    const struct word *word = &weak.words[index];

    return word->newest -
           (view->at[index] > word->oldest ? view->at[index] : word->oldest);
}

void sim_weak_spawn(int fiber, int by)
{
    if (fiber >= SIM_WEAK_FIBERS)
        sim_fail("more than %d fibers in weak memory", (int)SIM_WEAK_FIBERS);
    assert(fiber == weak.fiber_count);
    weak.fiber_count++;
    memset(&weak.fibers[fiber], 0, sizeof(weak.fibers[fiber]));
    if (by >= 0)
        weak.fibers[fiber].view = weak.fibers[by].view;
}

void sim_weak_end(int fiber)
{
    weak.fibers[fiber].over = true;
}

void sim_weak_join(int fiber, int ended)
{
    view_join(&weak.fibers[fiber].view, &weak.fibers[ended].view);
}

/* ---- words -------------------------------------------------------------- */

static struct value *word_value(struct word *word, uint32_t number)
{
    return &word->values[number % SIM_WEAK_VALUES];
}

static void word_forget(struct word *word, uint64_t value)
{
    word->oldest = ++word->newest;
    memset(word_value(word, word->newest), 0, sizeof(struct value));
    word_value(word, word->newest)->value = value;
}

/* Returns the index of the word at the address. */
static int word_index(const void *address)
{
    struct word *word;

    for (int i = 0; i < weak.count; i++) {
        if (weak.words[i].address == address)
            return i;
    }
    if (weak.count == SIM_WEAK_WORDS)
        sim_fail("more than %d atomics in weak memory", (int)SIM_WEAK_WORDS);
    word = &weak.words[weak.count];
    word->address = address;
    word->newest = 0;
    for (int f = 0; f < weak.fiber_count; f++)
        weak.fibers[f].view.at[weak.count] = 0;
    for (int i = 0; i < weak.count; i++) {
        for (int k = 0; k < SIM_WEAK_VALUES; k++)
            weak.words[i].values[k].view.at[weak.count] = 0;
    }
    word_forget(word, 0);
    return weak.count++;
}

/* Returns the index of an atomic, and has its newest value be that in memory.
 */
static int atomic_index(const void *address, size_t size)
{
    const uint64_t value = sim_memory_read(address, size);
    const int index = word_index(address);
    struct word *word = &weak.words[index];

    if (word_value(word, word->newest)->value != value)
        word_forget(word, value);
    return index;
}

/* Drops values that no fiber can read any more. */
static void word_prune(int index)
{
    struct word *word = &weak.words[index];
    uint32_t most = 0, age;

    for (int f = 0; f < weak.fiber_count; f++) {
        age = weak.fibers[f].over ? 0 : view_age(&weak.fibers[f].view, index);
        if (age > most)
            most = age;
    }
    word->oldest = word->newest - most;
}

/* ---- atomics ------------------------------------------------------------ */

uint64_t sim_weak_choices(int fiber, const void *word, size_t size)
{
    const int index = atomic_index(word, size);

    return 1 + (uint64_t)view_age(&weak.fibers[fiber].view, index);
}

uint64_t sim_weak_read(int fiber, const void *word, size_t size, uint64_t age,
                       bool acquire)
{
    const int index = atomic_index(word, size);
    struct word *from = &weak.words[index];
    const uint32_t number = from->newest - (uint32_t)age;
    const struct value *value = word_value(from, number);
    struct view *view = &weak.fibers[fiber].view;

    if (view->at[index] < number)
        view->at[index] = number;
    if (acquire)
        view_join(view, &value->view);
    return value->value;
}

static void word_add(int fiber, int index, void *word, size_t size,
                     uint64_t value, const struct view *carried)
{
    struct word *to = &weak.words[index];
    struct value *newest;

    word_prune(index);
    to->newest++;
    if (to->newest - to->oldest == SIM_WEAK_VALUES)
        to->oldest++;
    weak.fibers[fiber].view.at[index] = to->newest;
    newest = word_value(to, to->newest);
    newest->view = *carried;
    newest->view.at[index] = to->newest;
    sim_memory_write(word, size, value);
    newest->value = sim_memory_read(word, size);
}

void sim_weak_store(int fiber, void *word, size_t size, uint64_t value,
                    bool release)
{
    const struct view nothing = {{0}};

    word_add(fiber, atomic_index(word, size), word, size, value,
             release ? &weak.fibers[fiber].view : &nothing);
}

void sim_weak_update(int fiber, void *word, size_t size, uint64_t value,
                     bool acquire, bool release)
{
    const int index = atomic_index(word, size);
    struct word *to = &weak.words[index];
    struct view carried = word_value(to, to->newest)->view;

    (void)sim_weak_read(fiber, word, size, 0, acquire);
    if (release)
        view_join(&carried, &weak.fibers[fiber].view);
    word_add(fiber, index, word, size, value, &carried);
}

/* ---- locks and plain cells ---------------------------------------------- */

void sim_weak_take(int fiber, const void *lock)
{
    struct word *word = &weak.words[word_index(lock)];

    view_join(&weak.fibers[fiber].view, &word_value(word, word->newest)->view);
}

void sim_weak_drop(int fiber, const void *lock)
{
    struct word *word = &weak.words[word_index(lock)];

    word_value(word, word->newest)->view = weak.fibers[fiber].view;
}

bool sim_weak_touch(int fiber, const void *cell)
{
    const int index = word_index(cell);
    struct word *word = &weak.words[index];

    if (view_age(&weak.fibers[fiber].view, index) != 0)
        return false;
    word->oldest = word->newest++;
    memset(word_value(word, word->newest), 0, sizeof(struct value));
    weak.fibers[fiber].view.at[index] = word->newest;
    return true;
}

/* ---- states ------------------------------------------------------------- */

/* Sums are used, because the order of the words depends on the schedule. Views
 * do not differ in an atomic when every fiber has seen its newest value. */
static uint64_t view_state(const struct view *view)
{
    uint64_t hash = 0;

    for (int i = 0; i < weak.count; i++) {
        const uint32_t age = view_age(view, i);

        if (age != 0)
            hash += sim_mix((uint64_t)(uintptr_t)weak.words[i].address, age);
    }
    return hash;
}

static uint64_t word_state(struct word *word)
{
    uint64_t hash = (uint64_t)(uintptr_t)word->address;

    for (uint32_t n = word->oldest; n != word->newest + 1; n++) {
        hash = sim_mix(hash, word_value(word, n)->value);
        hash = sim_mix(hash, view_state(&word_value(word, n)->view));
    }
    return hash;
}

uint64_t sim_weak_state(void)
{
    uint64_t hash = 0;

    for (int i = 0; i < weak.count; i++)
        word_prune(i);
    for (int i = 0; i < weak.count; i++)
        hash += word_state(&weak.words[i]);
    for (int f = 0; f < weak.fiber_count; f++)
        hash = sim_mix(hash, view_state(&weak.fibers[f].view));
    return hash;
}
