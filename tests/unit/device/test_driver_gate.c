/* SPDX-License-Identifier: Apache-2.0 */
/* The gate in front of drivers: which calls it lets in, and which calls its
 * close waits for. Each case needs a separate process. */
#include "device/driver_gate.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/time_limits.h"
#include "support/check_suite.h"

static atomic_bool inside, stay, closed;

START_TEST(nothing_is_let_in_once_it_has_closed)
{
    struct uva_error error;

    ck_assert(uva__driver_gate_enter());
    ck_assert(uva__driver_gate_enter()); /* it nests */
    uva__driver_gate_leave();
    uva__driver_gate_leave();
    uva__driver_gate_close();
    ck_assert(!uva__driver_gate_enter());
    uva__driver_gate_close();
    ck_assert(!uva__driver_gate_enter());
    ck_assert_int_eq(uva__driver_gate_refuse(&error), ESHUTDOWN);
    ck_assert_ptr_nonnull(strstr(error.message, "the process exits"));
}
END_TEST

static void *use_main(void *arg)
{
    (void)arg;
    ck_assert(uva__driver_gate_enter());
    atomic_store(&inside, true);
    while (atomic_load(&stay))
        (void)sched_yield();
    ck_assert(uva__driver_gate_enter()); /* part of a call that has begun */
    uva__driver_gate_leave();
    ck_assert(!atomic_load(&closed));
    uva__driver_gate_leave();
    return NULL;
}

static void *close_main(void *arg)
{
    (void)arg;
    uva__driver_gate_close();
    atomic_store(&closed, true);
    return NULL;
}

static pthread_t use_begin(void)
{
    pthread_t thread;

    atomic_store(&stay, true);
    ck_assert_int_eq(pthread_create(&thread, NULL, use_main, NULL), 0);
    while (!atomic_load(&inside))
        (void)sched_yield();
    return thread;
}

START_TEST(what_has_begun_is_waited_for)
{
    const pthread_t user = use_begin();
    pthread_t closer;

    ck_assert_int_eq(pthread_create(&closer, NULL, close_main, NULL), 0);
    while (uva__driver_gate_enter()) {
        uva__driver_gate_leave();
        (void)sched_yield();
    }
    atomic_store(&stay, false);
    ck_assert_int_eq(pthread_join(user, NULL), 0);
    ck_assert_int_eq(pthread_join(closer, NULL), 0);
    ck_assert(atomic_load(&closed));
}
END_TEST

START_TEST(what_hangs_is_waited_for_until_the_limit)
{
    const pthread_t user = use_begin();
    const uint64_t from = uva__clock_ns();

    uva__driver_gate_close();
    ck_assert_uint_ge(uva__clock_ns() - from,
                      (uint64_t)UVA__LIMIT_EXIT_MS * 1000000);
    atomic_store(&stay, false);
    ck_assert_int_eq(pthread_join(user, NULL), 0);
}
END_TEST

/* Otherwise this takes the limit of the case, twice. */
START_TEST(a_thread_that_exits_inside_does_not_wait_for_itself)
{
    ck_assert(uva__driver_gate_enter());
    ck_assert(uva__driver_gate_enter());
    (void)alarm(1);
    uva__driver_gate_close();
    (void)alarm(0);
    ck_assert(uva__driver_gate_enter());
}
END_TEST

static void exit_after_the_gate(void)
{
    _exit(uva__driver_gate_enter() ? 4 : 5);
}

/* Returns the status of a child that exits. */
static int child_status(void (*before)(void))
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        (void)alarm(1); /* no use of the parent's is waited for */
        if (before != NULL)
            before();
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void watch_nothing(void)
{
    (void)atexit(exit_after_the_gate);
}

static void watch_driver(void)
{
    (void)atexit(exit_after_the_gate); /* registered while it was loaded */
    uva__driver_gate_watch(ARROW_DEVICE_CUDA, UVA__DRIVER_LOADED);
    uva__driver_gate_watch(ARROW_DEVICE_CUDA, UVA__DRIVER_LOADED);
}

START_TEST(an_exit_closes_it_before_the_handlers_of_the_driver)
{
    ck_assert_int_eq(child_status(watch_nothing), 4);
    ck_assert_int_eq(child_status(watch_driver), 5);
}
END_TEST

static void driver_registers_late(void)
{
    uva__driver_gate_watch(ARROW_DEVICE_CUDA, UVA__DRIVER_LOADED);
    (void)atexit(exit_after_the_gate);
    uva__driver_gate_watch(ARROW_DEVICE_CUDA, UVA__DRIVER_GAVE_MEMORY);
}

START_TEST(a_handler_that_is_registered_with_memory_is_late_too)
{
    ck_assert_int_eq(child_status(driver_registers_late), 5);
}
END_TEST

START_TEST(a_child_of_a_fork_has_no_use_of_its_parents)
{
    pthread_t user;

    uva__driver_gate_watch(ARROW_DEVICE_CUDA, UVA__DRIVER_LOADED);
    user = use_begin();
    ck_assert_int_eq(child_status(NULL), 0);
    atomic_store(&stay, false);
    ck_assert_int_eq(pthread_join(user, NULL), 0);
}
END_TEST

static void array_release(struct ArrowArray *array)
{
    atomic_store(&closed, true);
    array->release = NULL;
}

START_TEST(an_array_is_released_unless_the_process_exits)
{
    struct ArrowDeviceArray array = {.array.release = array_release};

    uva__driver_gate_release(&array);
    ck_assert(array.array.release == NULL);
    ck_assert(atomic_exchange(&closed, false));
    uva__driver_gate_release(&array);
    array.array.release = array_release;
    uva__driver_gate_close();
    uva__driver_gate_release(&array);
    ck_assert(array.array.release != NULL);
    ck_assert(!atomic_load(&closed));
}
END_TEST

int main(void)
{
    return suite_main(
        "driver gate", NULL, NULL,
        suite_tests("gate", nothing_is_let_in_once_it_has_closed,
                    what_has_begun_is_waited_for,
                    what_hangs_is_waited_for_until_the_limit,
                    a_thread_that_exits_inside_does_not_wait_for_itself,
                    an_exit_closes_it_before_the_handlers_of_the_driver,
                    a_handler_that_is_registered_with_memory_is_late_too,
                    a_child_of_a_fork_has_no_use_of_its_parents,
                    an_array_is_released_unless_the_process_exits, NULL),
        NULL);
}
