/* SPDX-License-Identifier: Apache-2.0 */
/* One counter for the whole process, as it exits as a whole.
 *
 * Happy path:  threads enter and leave -> the process exits: the gate closes,
 *              before the exit handlers of the drivers that were loaded.
 *
 * Failures:    a call does not return within the limit; then the process exits
 *              nevertheless. */
#include "device/driver_gate.h"

#include <assert.h>
#include <errno.h>

#include "arrow/device_traits.h"
#include "base/inflight.h"
#include "base/platform.h"
#include "base/time_limits.h"
#include "uvarrow/arrow.h"

static struct uva__inflight inside;  /* threads that use drivers */
static struct uva__futex empty;      /* raised when the last one leaves */
static struct uva__atomic64 watched; /* bits: uses that are watched */

static _Thread_local int depth; /* of the pairs that this thread is in */

bool uva__driver_gate_enter(void)
{
    if (depth == 0 && !uva__inflight_enter(&inside))
        return false;
    depth++;
    return true;
}

void uva__driver_gate_leave(void)
{
    if (--depth == 0 && uva__inflight_leave(&inside) == UVA__INFLIGHT_DRAINED)
        uva__futex_raise(&empty);
}

int uva__driver_gate_refuse(struct uva_error *error)
{
    return uva_error_set(error, ESHUTDOWN,
                         "the process exits: no driver is used any more");
}

/* A program function inside a pair may itself call exit(): that thread does not
 * come back. */
void uva__driver_gate_close(void)
{
    uint32_t seen = uva__futex_now(&empty);
    bool in_time = true;

    if (uva__inflight_is_closed(&inside))
        return;
    (void)uva__inflight_close(&inside);
    if (depth > 0)
        (void)uva__inflight_leave(&inside);
    while (in_time && !uva__inflight_is_drained(&inside)) {
        in_time = uva__futex_wait(&empty, seen, UVA__LIMIT_EXIT_MS);
        seen = uva__futex_now(&empty);
    }
}

/* The child of a fork lacks the threads, and may exit, too. */
static void gate_forked(void)
{
    uva__atomic64_store(&inside.word, 0);
    depth = 0;
}

void uva__driver_gate_watch(ArrowDeviceType device_type,
                            enum uva__driver_use use)
{
    const uint64_t bit = (uint64_t)1
                         << (UVA__DRIVER_USES * (device_type - 1) + (int)use);
    uint64_t before;

    static_assert(UVA__DRIVER_USES * (UVA__DEVICE_TYPES - 1) <= 64,
                  "too few bits");
    if ((uva__atomic64_load(&watched) & bit) != 0)
        return;
    before = uva__atomic64_or(&watched, bit);
    if (before == 0)
        uva__platform_on_fork(NULL, NULL, gate_forked);
    if ((before & bit) == 0)
        uva__platform_on_exit(uva__driver_gate_close);
}

void uva__driver_gate_release(struct ArrowDeviceArray *array)
{
    if (array->array.release == NULL || !uva__driver_gate_enter())
        return;
    uva_array_release(array);
    uva__driver_gate_leave();
}
