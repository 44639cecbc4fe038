/* SPDX-License-Identifier: Apache-2.0 */
/* The checks before every call of the fake libraries: whether the call may
 * proceed, the thread's current context, and faults that the test requested. */
#define _GNU_SOURCE
#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "devices/fake_control.h"
#include "devices/fake_gpu.h"

enum { STACK = 8 };

static atomic_int held, refused, sticky, capturing, spoiled;
static atomic_bool started;
static atomic_long counts[FAKE_WHATS], fail_at;
static atomic_int fail_code;
static struct fake_context primaries[FAKE_DEVICES] = {{.device = 0},
                                                      {.device = 1}};

static _Thread_local struct fake_context *contexts[STACK];
static _Thread_local int depth, capture_mode;
static _Thread_local bool calling_back, excused;

static atomic_bool exited;
static pthread_mutex_t one_lock = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

/* ---- modes -------------------------------------------------------------- */

bool fake_is(enum fake_mode mode)
{
    static const struct {
        enum fake_mode mode;
        const char *word;
    } modes[] = {{FAKE_PAGEABLE, "pageable"},
                 {FAKE_DESTROYS, "destroys"},
                 {FAKE_LOCKS, "locks"},
                 {FAKE_UNRECORDED, "unrecorded"},
                 {FAKE_EXITS, "exits"}};
    const char *words = getenv("UVA_FAKE_MODE");

    for (size_t i = 0; words != NULL && i < sizeof(modes) / sizeof(*modes); i++)
        if (modes[i].mode == mode)
            return strstr(words, modes[i].word) != NULL;
    return false;
}

int fake_lock(void)
{
    return fake_is(FAKE_LOCKS) ? pthread_mutex_lock(&one_lock) == 0 : 0;
}

void fake_unlock(const int *locked)
{
    if (*locked)
        (void)pthread_mutex_unlock(&one_lock);
}

void fake_exit(void)
{
    atomic_store(&exited, true);
}

/* ---- the control -------------------------------------------------------- */

FAKE_API void fakegpu_excuse(int on);
FAKE_API void fakegpu_fail(long n, int code);
FAKE_API void fakegpu_poison(int code);
FAKE_API void fakegpu_hold(int calls);
FAKE_API void fakegpu_refuse(int calls);

void fake_count(int what, int step)
{
    atomic_fetch_add(&counts[what], step);
}

long fakegpu_count(int what)
{
    return atomic_load(&counts[what]);
}

void fakegpu_excuse(int on)
{
    excused = on != 0;
}

void fakegpu_fail(long n, int code)
{
    atomic_store(&fail_code, code);
    atomic_store(&fail_at, n);
}

void fakegpu_poison(int code)
{
    if (code == 0) /* failed work must not be done later */
        fake_drain();
    atomic_store(&sticky, code);
    fake_wake();
}

void fakegpu_hold(int calls)
{
    atomic_store(&held, calls);
}

void fakegpu_refuse(int calls)
{
    atomic_store(&refused, calls);
}

void fake_hold(int call)
{
    const struct timespec pause = {0, 50000};

    if (excused || (atomic_load(&held) & call) == 0)
        return;
    fake_count(FAKE_HELD, 1);
    while (atomic_load(&held) & call)
        (void)nanosleep(&pause, NULL);
    fake_count(FAKE_HELD, -1);
}

void fake_fail(int code)
{
    atomic_store(&sticky, code);
}

int fake_sticky(void)
{
    return atomic_load(&sticky);
}

void fake_calls_back(bool on)
{
    calling_back = on;
}

/* ---- calls -------------------------------------------------------------- */

/* Returns whether the test makes this call fail. */
static bool call_fails(void)
{
    if (excused)
        return false;
    fake_count(FAKE_CALLS, 1);
    return atomic_load(&fail_at) > 0 && atomic_fetch_sub(&fail_at, 1) == 1;
}

static bool call_is_refused(unsigned needs)
{
    if (excused || (needs & (unsigned)atomic_load(&refused)) == 0)
        return false;
    fake_count(FAKE_REFUSED, 1);
    return true;
}

int fake_begin(unsigned needs)
{
    if (atomic_load(&exited)) {
        (void)fprintf(stderr, "a driver is called after it has exited\n");
        abort();
    }
    if (calling_back)
        fake_count(FAKE_BREACHES, 1);
    if (calling_back || call_is_refused(needs))
        return FAKE_NOT_PERMITTED;
    if (call_fails()) {
        if (needs & FAKE_REPORTS)
            fakegpu_poison(atomic_load(&fail_code));
        return atomic_load(&fail_code);
    }
    if (!atomic_load(&started))
        return FAKE_NOT_INITIALIZED;
    if ((needs & FAKE_UNSAFE) && atomic_load(&capturing) && capture_mode == 0) {
        atomic_store(&spoiled, 1);
        return FAKE_CAPTURE_UNSUPPORTED;
    }
    if ((needs & FAKE_INSIDE) && fake_current() == NULL)
        return FAKE_INVALID_CONTEXT;
    return atomic_load(&sticky);
}

int fake_init(void)
{
    if (getenv("UVA_FAKE_NO_DEVICE") != NULL)
        return FAKE_NO_DEVICE;
    atomic_store(&started, true);
    return 0;
}

/* ---- contexts ----------------------------------------------------------- */

struct fake_context *fake_primary(int device)
{
    return device >= 0 && device < FAKE_DEVICES ? &primaries[device] : NULL;
}

struct fake_context *fake_current(void)
{
    return contexts[depth];
}

static uintptr_t this_thread(void)
{
    return (uintptr_t)&depth;
}

/* A green context may be current on one thread at a time. */
static void green_enter(struct fake_context *context)
{
    uintptr_t holder = 0;

    if (context != NULL && context->primary != NULL &&
        !atomic_compare_exchange_strong(&context->holder, &holder,
                                        this_thread()) &&
        holder != this_thread())
        fake_count(FAKE_BREACHES, 1);
}

static void green_leave(struct fake_context *context)
{
    uintptr_t holder = this_thread();

    for (int i = 0; i <= depth; i++)
        if (contexts[i] == context)
            return;
    if (context != NULL && context->primary != NULL)
        (void)atomic_compare_exchange_strong(&context->holder, &holder, 0);
}

void fake_current_set(struct fake_context *context)
{
    struct fake_context *before = contexts[depth];

    contexts[depth] = context;
    green_leave(before);
    green_enter(context);
}

int fake_push(struct fake_context *context)
{
    if (context == NULL || depth + 1 == STACK)
        return FAKE_INVALID_CONTEXT;
    contexts[++depth] = context;
    green_enter(context);
    return 0;
}

struct fake_context *fake_pop(void)
{
    struct fake_context *before = contexts[depth];

    assert(depth > 0);
    depth--;
    green_leave(before);
    return before;
}

int fake_context_keep(struct fake_context *context, int step)
{
    const int kept = atomic_fetch_add(&context->kept, step) + step;

    fake_count(FAKE_KEPT, step);
    assert(kept >= 0);
    return kept;
}

/* ---- captures ----------------------------------------------------------- */

int fake_capture_mode(int mode)
{
    const int before = capture_mode;

    capture_mode = mode;
    return before;
}

int fake_capture_begin(void)
{
    atomic_store(&spoiled, 0);
    atomic_store(&capturing, 1);
    return 0;
}

int fake_capture_end(void)
{
    atomic_store(&capturing, 0);
    return atomic_load(&spoiled) ? FAKE_CAPTURE_INVALIDATED : 0;
}
