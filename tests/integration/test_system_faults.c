/* SPDX-License-Identifier: Apache-2.0 */
/* A system without descriptors, threads or memory, and a system that interrupts
 * calls. The calls named below are wrapped at link time (CMakeLists.txt), and
 * one fails when a test requires it. Opening a runtime then fails with the
 * system's code and leaves no object open; an interrupted call is repeated. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <unistd.h>
#include <uv.h>

#include "base/platform.h"
#include "check/checker_host.h"
#include "loop/loop.h"
#include "support/check_suite.h"
#include "support/faulty_allocator.h"
#include "uvarrow/runtime.h"

/* ---- the system --------------------------------------------------------- */

static _Atomic(const char *) fault; /* the call that fails; or NULL */
static atomic_int spared;           /* this many calls succeed before that */
static atomic_int faults;           /* how often it has failed */
static atomic_int times;            /* how often it must fail */

static void let_fail(const char *call, int after)
{
    atomic_store(&spared, after);
    atomic_store(&faults, 0);
    times = 1;
    fault = call;
}

static bool fails(const char *call)
{
    const char *broken = atomic_load(&fault);

    if (broken == NULL || strcmp(broken, call) != 0 ||
        atomic_fetch_sub(&spared, 1) > 0 || atomic_load(&faults) >= times)
        return false;
    atomic_fetch_add(&faults, 1);
    return true;
}

/* Returns the result of a failed system call. */
static int failing(int code)
{
    errno = code;
    return -1;
}

int __real_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags);
int __wrap_eventfd(unsigned value, int flags)
{
    return fails("eventfd") ? failing(EMFILE) : __real_eventfd(value, flags);
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    return fails("timerfd_create") ? failing(EMFILE)
                                   : __real_timerfd_create(clock, flags);
}

void *__real_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset);
void *__wrap_mmap(void *at, size_t size, int rights, int flags, int fd,
                  off_t offset)
{
    return fails("mmap") ? MAP_FAILED
                         : __real_mmap(at, size, rights, flags, fd, offset);
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how,
                          void *(*run)(void *), void *ctx)
{
    return fails("pthread_create")
               ? EAGAIN
               : __real_pthread_create(thread, how, run, ctx);
}

int __real_uv_loop_init(uv_loop_t *loop);
int __wrap_uv_loop_init(uv_loop_t *loop);
int __wrap_uv_loop_init(uv_loop_t *loop)
{
    return fails("uv_loop_init") ? UV_EMFILE : __real_uv_loop_init(loop);
}

int __real_uv_poll_init_socket(uv_loop_t *loop, uv_poll_t *poll,
                               uv_os_sock_t fd);
int __wrap_uv_poll_init_socket(uv_loop_t *loop, uv_poll_t *poll,
                               uv_os_sock_t fd);
int __wrap_uv_poll_init_socket(uv_loop_t *loop, uv_poll_t *poll,
                               uv_os_sock_t fd)
{
    return fails("uv_poll_init") ? UV_ENOMEM
                                 : __real_uv_poll_init_socket(loop, poll, fd);
}

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    if (fails("poll"))
        return failing(EINTR);
    if (!fails("poll in vain"))
        return __real_poll(fds, count, timeout_ms);
    for (nfds_t i = 0; i < count; i++)
        fds[i].revents = 0;
    return 0;
}

ssize_t __real_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size);
ssize_t __wrap_read(int fd, void *bytes, size_t size)
{
    return fails("read") ? failing(EAGAIN) : __real_read(fd, bytes, size);
}

ssize_t __real_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
ssize_t __wrap_write(int fd, const void *bytes, size_t size)
{
    if (!fails("write in vain"))
        return fails("write") ? failing(EINTR) : __real_write(fd, bytes, size);
    (void)__real_write(fd, bytes, size); /* the pending bytes suffice */
    return failing(EAGAIN);
}

int __real_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set);
int __wrap_sched_getaffinity(pid_t process, size_t size, cpu_set_t *set)
{
    return fails("count cores") ? failing(ENOSYS)
                                : __real_sched_getaffinity(process, size, set);
}

long __real_sysconf(int name);
long __wrap_sysconf(int name);
long __wrap_sysconf(int name)
{
    return fails("count cores") ? failing(EINVAL) : __real_sysconf(name);
}

static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int n = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL)
        n++;
    (void)closedir(folder);
    return n;
}

/* ---- a runtime, hosted in one of four ways ------------------------------ */

enum way { BY_LOOP, BY_THREAD, BY_TURNS, BY_POSTS, WAYS };

static struct faulty_allocator faulty;
static uv_loop_t loop; /* for BY_LOOP */
static struct uva_runtime *runtime;
static atomic_int posts; /* turns that were requested */

static void ask_for_turn(void *ctx)
{
    (void)ctx;
    atomic_fetch_add(&posts, 1);
}

static int open_runtime(enum way way, struct uva_error *error)
{
    const struct uva_runtime_options options = {
        .allocator = faulty_allocator_table(&faulty)};

    if (way >= BY_TURNS)
        return uva_runtime_open_turned(way == BY_POSTS ? ask_for_turn : NULL,
                                       NULL, &options, &runtime, error);
    return uva_runtime_open(way == BY_LOOP ? &loop : NULL, &options, &runtime,
                            error);
}

static void set_flag(void *ctx)
{
    atomic_store((atomic_bool *)ctx, true);
}

/* Turns the runtime until `flag` is set, or until it has closed. */
static void go_on(enum way way, const atomic_bool *flag)
{
    while (!atomic_load(flag)) {
        if (way == BY_LOOP)
            (void)uv_run(&loop, UV_RUN_NOWAIT);
        else if (way == BY_TURNS)
            (void)uva_runtime_turn(runtime);
        else if (way == BY_POSTS && atomic_exchange(&posts, 0) > 0)
            (void)uva_runtime_turn(runtime);
        (void)sched_yield();
    }
}

static void close_runtime(enum way way)
{
    atomic_bool gone;

    atomic_init(&gone, false);
    ck_assert_int_eq(uva_runtime_close(runtime, 0, set_flag, &gone), 0);
    go_on(way, &gone);
    if (way == BY_THREAD)
        ck_assert_int_eq(uva_runtime_join(runtime, UVA_FOREVER), 0);
}

static void set_up(void)
{
    faulty_allocator_init(&faulty, 0);
    atomic_store(&posts, 0);
    fault = NULL;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
}

static void tear_down(void)
{
    fault = NULL;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
}

/* ---- opening ------------------------------------------------------------ */

static const struct {
    const char *call;
    int code;
    int calls[WAYS]; /* calls that an opening makes */
} OPENING[] = {
    {"eventfd", EMFILE, {1, 1, 1, 2}},
    {"timerfd_create", EMFILE, {0, 0, 1, 1}},
    {"mmap", ENOMEM, {1, 1, 1, 1}},
    {"pthread_create", ENOMEM, {0, 1, 0, 1}},
    {"uv_loop_init", EMFILE, {0, 1, 1, 1}},
    {"uv_poll_init", ENOMEM, {1, 1, 2, 2}},
};

static void check_opening(const char *call, int code, enum way way, int calls)
{
    for (int after = 0; after <= calls; after++) {
        const int before = descriptors();
        struct uva_error error = {0};
        let_fail(call, after);
        ck_assert_int_eq(open_runtime(way, &error), after < calls ? code : 0);
        fault = NULL;
        ck_assert_int_eq(error.code, after < calls ? code : 0);
        ck_assert_int_eq(error.message[0] != '\0', after < calls);
        if (after == calls)
            close_runtime(way);
        (void)uv_run(&loop, UV_RUN_NOWAIT);
        ck_assert_int_eq(descriptors(), before);
        ck_assert_int_eq(faulty_allocator_live(&faulty), 0);
    }
}

START_TEST(a_runtime_that_cannot_be_opened_leaves_nothing_open)
{
    for (enum way way = BY_LOOP; way < WAYS; way++)
        check_opening(OPENING[_i].call, OPENING[_i].code, way,
                      OPENING[_i].calls[way]);
}
END_TEST

/* ---- running ------------------------------------------------------------ */

/* No wake-up is lost by calls that are interrupted or return no event. */
START_TEST(what_is_interrupted_goes_on)
{
    static const char *const calls[] = {"read", "write", "poll", "poll in vain",
                                        "write in vain"};

    for (enum way way = BY_LOOP; way < WAYS; way++) {
        atomic_bool called;
        atomic_init(&called, false);
        ck_assert_int_eq(open_runtime(way, NULL), 0);
        let_fail(calls[_i], 0);
        times = 3;
        ck_assert_int_eq(uva_runtime_post(runtime, set_flag, &called), 0);
        go_on(way, &called);
        close_runtime(way);
        fault = NULL;
    }
}
END_TEST

START_TEST(cores_are_counted_in_another_way)
{
    const int32_t cores = uva__platform_cores();

    let_fail("count cores", 0);
    ck_assert_int_ge(uva__platform_cores(), cores);
    ck_assert_int_eq(atomic_load(&faults), 1);
}
END_TEST

static void keep_self(void *ctx)
{
    *(pthread_t *)ctx = pthread_self();
}

START_TEST(without_a_thread_to_bounce_to_a_callback_runs_right_here)
{
    pthread_t where;

    let_fail("pthread_create", 0);
    uva__checker_host_run(keep_self, &where);
    ck_assert(pthread_equal(where, pthread_self()));
    uva__checker_host_run(keep_self, &where);
    ck_assert(!pthread_equal(where, pthread_self()));
}
END_TEST

/* The core that the system does not count still exists. */
START_TEST(there_is_at_least_one_core)
{
    let_fail("count cores", 0);
    times = 2;
    ck_assert_int_eq(uva__platform_cores(), 1);
}
END_TEST

/* The watcher's end is a second write, after the wake-up by the close. */
START_TEST(a_watcher_is_ended_whatever_becomes_of_the_write)
{
    static const char *const calls[] = {"write", "write in vain"};

    ck_assert_int_eq(open_runtime(BY_POSTS, NULL), 0);
    let_fail(calls[_i], 1);
    close_runtime(BY_POSTS);
    ck_assert_int_eq(atomic_load(&faults), 1);
}
END_TEST

static void ring(struct uva__timer *timer)
{
    (void)timer;
    atomic_fetch_add(&posts, 1);
}

/* A turn does not read the clock: setting its time anew silences it. */
START_TEST(a_clock_that_has_nothing_to_say_loses_no_timer)
{
    struct uva__timer timer = {.fire = ring};
    struct pollfd turn = {.events = POLLIN};

    ck_assert_int_eq(open_runtime(BY_TURNS, NULL), 0);
    (void)uva_runtime_turn(runtime);
    for (int ms = 1; ms == 1 || atomic_exchange(&posts, 0) > 0; ms *= 2) {
        uva__timer_start(uva__loop_rt(runtime), &timer, ms);
        (void)uva_runtime_turn(runtime); /* until it ends before that */
    }
    turn.fd = uva_runtime_fd(runtime);
    ck_assert_int_eq(poll(&turn, 1, -1), 1);
    let_fail("read", 0);
    while (atomic_load(&posts) == 0)
        (void)uva_runtime_turn(runtime);
    ck_assert_int_eq(atomic_load(&faults), 0);
    close_runtime(BY_TURNS);
}
END_TEST

/* Otherwise its host would turn it again and again. */
START_TEST(a_turn_that_cannot_look_at_the_descriptor_is_not_due)
{
    ck_assert_int_eq(open_runtime(BY_TURNS, NULL), 0);
    while (uva_runtime_turn(runtime) != UVA_TURN_IDLE)
        continue;
    (void)uva_runtime_loop(runtime); /* from now on turns look at it */
    let_fail("poll", 0);
    ck_assert_int_eq(uva_runtime_turn(runtime), UVA_TURN_IDLE);
    ck_assert_int_eq(atomic_load(&faults), 1);
    close_runtime(BY_TURNS);
}
END_TEST

int main(void)
{
    TCase *tcase = suite_tests(
        "system", cores_are_counted_in_another_way, there_is_at_least_one_core,
        without_a_thread_to_bounce_to_a_callback_runs_right_here,
        a_clock_that_has_nothing_to_say_loses_no_timer,
        a_turn_that_cannot_look_at_the_descriptor_is_not_due, NULL);
    tcase_add_loop_test(tcase,
                        a_runtime_that_cannot_be_opened_leaves_nothing_open, 0,
                        sizeof(OPENING) / sizeof(OPENING[0]));
    tcase_add_loop_test(tcase, what_is_interrupted_goes_on, 0, 5);
    tcase_add_loop_test(tcase, a_watcher_is_ended_whatever_becomes_of_the_write,
                        0, 2);
    return suite_main("system_faults", set_up, tear_down, tcase, NULL);
}
