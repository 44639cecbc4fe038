/* SPDX-License-Identifier: Apache-2.0 */
/* The ctx of the trace of a runtime: it is freed once, after the last event,
 * and only if the runtime was opened. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static struct {
    atomic_long events;
    atomic_int freed;
    atomic_bool late; /* an event came after that */
} seen;

static void on_event(void *ctx, const struct uva_trace_event *event)
{
    ck_assert_ptr_eq(ctx, &seen);
    ck_assert_ptr_nonnull(event->name);
    atomic_fetch_add(&seen.events, 1);
    if (atomic_load(&seen.freed) > 0)
        atomic_store(&seen.late, true);
}

static void on_free(void *ctx)
{
    ck_assert_ptr_eq(ctx, &seen);
    atomic_fetch_add(&seen.freed, 1);
}

static const struct uva_trace trace = {
    .event = on_event, .free_ctx = on_free, .ctx = &seen};

static void set_up(void)
{
    memset(&seen, 0, sizeof(seen));
}

START_TEST(it_is_freed_after_the_last_event)
{
    fixture_open_with(&f, 3, &(struct uva_runtime_options){.trace = trace});
    f.stream = fixture_blocking(&f);
    ck_assert_int_eq(fixture_run(&f), 0);
    ck_assert_int_gt(atomic_load(&seen.events), 0);
    ck_assert_int_eq(atomic_load(&seen.freed), 0);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&seen.freed), 1);
    ck_assert(!atomic_load(&seen.late));
}
END_TEST

/* Without a function there are no events, and still a ctx. */
START_TEST(it_is_freed_without_a_function_too)
{
    const struct uva_runtime_options options = {
        .trace = {.free_ctx = on_free, .ctx = &seen}};

    fixture_open_with(&f, 1, &options);
    fixture_close(&f);
    ck_assert_int_eq(atomic_load(&seen.freed), 1);
}
END_TEST

START_TEST(a_runtime_that_is_not_opened_leaves_it)
{
    struct uva_runtime_options options = {.trace = trace, .turn_us = -1};
    struct uva_runtime *runtime = NULL;
    struct faulty_allocator memory;
    int code = ENOMEM;

    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, NULL), EINVAL);
    options.turn_us = 0;
    options.allocator = faulty_allocator_table(&memory);
    for (long k = 1; code != 0; k++) {
        faulty_allocator_init(&memory, k);
        code = uva_runtime_open(NULL, &options, &runtime, NULL);
        ck_assert_int_eq(atomic_load(&seen.freed), 0);
    }
    ck_assert_int_eq(uva_runtime_join(runtime, 0), 0);
    while (atomic_load(&seen.freed) == 0)
        (void)sched_yield();
}
END_TEST

START_TEST(reserved_members_are_checked)
{
    struct uva_runtime_options options = {.trace = {.reserved = {NULL, &f}}};
    struct uva_runtime *runtime = NULL;
    struct uva_error error;

    ck_assert_int_eq(uva_runtime_open(NULL, &options, &runtime, &error),
                     EINVAL);
    text_contains(error.message, "trace");
}
END_TEST

int main(void)
{
    return suite_main("trace_ctx", set_up, NULL,
                      suite_tests("trace_ctx", it_is_freed_after_the_last_event,
                                  it_is_freed_without_a_function_too,
                                  a_runtime_that_is_not_opened_leaves_it,
                                  reserved_members_are_checked, NULL),
                      NULL);
}
