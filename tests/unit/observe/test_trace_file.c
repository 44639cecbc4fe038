/* SPDX-License-Identifier: Apache-2.0 */
/* The file of trace events: its content after a release, an exit, a fork or a
 * failure. Each test is a separate process. */
#define _GNU_SOURCE
#include "observe/trace_file.h"

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "observe/trace_ring.h"
#include "support/check_suite.h"

enum { THREADS = 4, EVENTS = 5000, FULL = (int)UVA__TRACE_RING_SIZE };

static char path[200];
static struct uva_trace trace;

/* ---- calls of the system that fail on request --------------------------- */

static _Atomic int fail_calloc; /* that many from now fails; 0: no failure */
static _Atomic int fail_thread, fail_fstat, fail_truncate;
static _Atomic int fail_lock;    /* errno of a lock; 0: no failure */
static _Atomic int fail_write;   /* errno of each write; 0: no failure */
static _Atomic int write_little; /* each write takes 10 bytes, or EINTR */
static _Atomic int hold_write;   /* the next write waits for `go_on` */
static sem_t in_write, go_on;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg);
int __real_fstat(int fd, struct stat *found);
int __wrap_fstat(int fd, struct stat *found);
int __real_ftruncate(int fd, off_t size);
int __wrap_ftruncate(int fd, off_t size);
ssize_t __real_pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at);

int __real_fcntl(int fd, int command, ...);
int __wrap_fcntl(int fd, int command, ...);

/* Only a lock is asked for here. */
int __wrap_fcntl(int fd, int command, ...)
{
    va_list args;
    void *lock;

    va_start(args, command);
    lock = va_arg(args, void *);
    va_end(args);
    errno = fail_lock;
    return fail_lock ? -1 : __real_fcntl(fd, command, lock);
}

void *__wrap_calloc(size_t n, size_t size)
{
    return fail_calloc > 0 && --fail_calloc == 0 ? NULL
                                                 : __real_calloc(n, size);
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr,
                          void *(*run)(void *), void *arg)
{
    return fail_thread ? EAGAIN : __real_pthread_create(thread, attr, run, arg);
}

int __wrap_fstat(int fd, struct stat *found)
{
    if (!fail_fstat)
        return __real_fstat(fd, found);
    errno = EIO;
    return -1;
}

int __wrap_ftruncate(int fd, off_t size)
{
    if (!fail_truncate)
        return __real_ftruncate(fd, size);
    errno = EIO;
    return -1;
}

ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at)
{
    if (hold_write) {
        hold_write = 0;
        (void)sem_post(&in_write);
        (void)sem_wait(&go_on);
    }
    errno = fail_write;
    if (fail_write)
        return -1;
    if (write_little && write_little++ % 2 == 0) {
        errno = EINTR;
        return -1;
    }
    return __real_pwrite(fd, data, write_little && size > 10 ? 10 : size, at);
}

/* ---- files -------------------------------------------------------------- */

static void set_up(void)
{
    (void)snprintf(path, sizeof(path), "%s/trace_file_%ld.json", UVA_TEST_BUILD,
                   (long)getpid());
    (void)sem_init(&in_write, 0, 0);
    (void)sem_init(&go_on, 0, 0);
}

static void tear_down(void)
{
    (void)unlink(path);
}

/* Everything in the file, to be freed; fails if it is no array as a whole. */
static char *file_read(void)
{
    FILE *file = fopen(path, "r");
    char *text;
    size_t size;

    ck_assert_ptr_nonnull(file);
    (void)fseek(file, 0, SEEK_END);
    size = (size_t)ftell(file);
    rewind(file);
    text = calloc(1, size + 1);
    ck_assert_uint_eq(fread(text, 1, size, file), size);
    (void)fclose(file);
    ck_assert_int_eq(strncmp(text, "[\n{", 3), 0);
    ck_assert_str_eq(text + size - 4, "}\n]\n");
    ck_assert_uint_eq(strlen(text), size);
    return text;
}

/* How often the file has a text. Not by strstr(), which the sanitizers make
 * read the whole rest each time. */
static int count(const char *what)
{
    char *text = file_read();
    const char *at;
    const size_t size = strlen(what);
    int found = 0;

    for (at = text; *at != '\0'; at++)
        found += *at == *what && strncmp(at, what, size) == 0;
    free(text);
    return found;
}

/* The name of the stage is not kept by the event. */
static void report(int64_t ordinal)
{
    char source[] = "source";

    trace.event(trace.ctx, &(struct uva_trace_event){.kind = UVA_TRACE_SPAN,
                                                     .name = "get_next",
                                                     .stage_name = source,
                                                     .stream = "flights",
                                                     .stream_id = 1,
                                                     .ordinal = ordinal,
                                                     .at_ns = 1000,
                                                     .end_ns = 2000});
    memset(source, 'x', sizeof(source) - 1);
}

static void open_file(void)
{
    ck_assert_int_eq(uva__trace_file_open(path, &trace), 0);
}

/* ---- the text of the file ----------------------------------------------- */

START_TEST(a_file_without_events_is_an_array)
{
    open_file();
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("process_labels"), 1);
}
END_TEST

START_TEST(a_release_writes_what_was_reported)
{
    open_file();
    report(5);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"stream\":\"flights #1\""), 1);
    ck_assert_int_eq(count("\"in\":\"source\""), 1);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

START_TEST(a_stream_without_a_name_has_its_number)
{
    open_file();
    trace.event(trace.ctx, &(struct uva_trace_event){.kind = UVA_TRACE_CANCEL,
                                                     .name = "cancel",
                                                     .stage_name = "source",
                                                     .stream_id = 8,
                                                     .ordinal = -1});
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"stream\":\"stream #8\""), 1);
}
END_TEST

static void *report_many(void *arg)
{
    int i;

    for (i = 0; i < EVENTS; i++)
        report(*(int *)arg * EVENTS + i);
    return NULL;
}

START_TEST(no_event_of_several_threads_is_lost)
{
    pthread_t threads[THREADS];
    int i, numbers[THREADS];

    open_file();
    for (i = 0; i < THREADS; i++) {
        numbers[i] = i;
        ck_assert_int_eq(
            pthread_create(&threads[i], NULL, report_many, &numbers[i]), 0);
    }
    for (i = 0; i < THREADS; i++)
        (void)pthread_join(threads[i], NULL);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"ph\":\"X\""), THREADS * EVENTS);
    ck_assert_int_eq(count("\"batch\":19999}}"), 1);
}
END_TEST

START_TEST(two_runtimes_share_the_file)
{
    struct uva_trace second;

    open_file();
    ck_assert_int_eq(uva__trace_file_open("/elsewhere.json", &second), 0);
    report(5);
    uva__trace_file_release(&trace);
    trace = second;
    report(6);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"flights #1\""), 1);
    ck_assert_int_eq(count("\"flights #2.1\""), 1);
}
END_TEST

START_TEST(a_later_runtime_goes_on_in_the_file)
{
    open_file();
    report(5);
    uva__trace_file_release(&trace);
    open_file();
    report(6);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("process_labels"), 1);
    ck_assert_int_eq(count("\"flights #1\""), 1);
    ck_assert_int_eq(count("\"flights #2.1\""), 1);
}
END_TEST

START_TEST(a_file_that_was_changed_begins_anew)
{
    open_file();
    report(5);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(truncate(path, 5), 0);
    open_file();
    report(6);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("process_labels"), 1);
    ck_assert_int_eq(count("\"batch\":6"), 1);
}
END_TEST

START_TEST(another_path_begins_anew)
{
    open_file();
    report(5);
    uva__trace_file_release(&trace);
    (void)unlink(path);
    path[strlen(path) - 1] = '_';
    open_file();
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"ph\":\"X\""), 0);
}
END_TEST

START_TEST(an_older_file_is_replaced)
{
    FILE *file = fopen(path, "w");

    (void)fputs("older and longer than what comes now, by far, as it needs "
                "more than what the beginning of the array has; so this "
                "must be a text of some length, which this is, surely ...",
                file);
    (void)fclose(file);
    open_file();
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("older"), 0);
}
END_TEST

/* ---- the end of a process ----------------------------------------------- */

/* Waits until the writer has begun the file, and sleeps or is about to: it then
 * holds no lock of the sanitizers, which a child of a fork would wait for. */
static void await_begin(void)
{
    struct stat found = {0};

    while (stat(path, &found) != 0 || found.st_size == 0)
        (void)sched_yield();
}

/* Runs `body` in a child that exits. */
static void in_child(void (*body)(void))
{
    const pid_t child = fork();
    int status;

    if (child == 0) {
        body();
        exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_int_eq(status, 0);
}

static void report_and_exit(void)
{
    open_file();
    report(5);
}

START_TEST(an_exit_writes_what_was_reported)
{
    in_child(report_and_exit);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

static void release_late(void)
{
    report(6);
    uva__trace_file_release(&trace);
}

static void release_after_the_end(void)
{
    (void)atexit(release_late); /* called after the file's */
    open_file();
    report(5);
}

START_TEST(a_release_may_follow_the_exit)
{
    in_child(release_after_the_end);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

static void report_late(void)
{
    report(7); /* the runtime of the parent: not written */
    if (uva__trace_file_open(path, &(struct uva_trace){0}) != EBUSY)
        _exit(1);
}

START_TEST(a_child_leaves_the_file_to_its_parent)
{
    open_file();
    report(5);
    await_begin();
    in_child(report_late);
    report(6);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"ph\":\"X\""), 2);
}
END_TEST

static struct uva_trace of_parent; /* as its runtime keeps it */

static void open_another(void)
{
    of_parent = trace;
    path[strlen(path) - 1] = '_';
    report_and_exit();
}

START_TEST(a_child_may_write_a_file_of_its_own)
{
#ifdef __SANITIZE_THREAD__ /* it ends a forked child that starts a thread */
    return;
#endif
    open_file();
    await_begin();
    in_child(open_another);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"ph\":\"X\""), 0);
    path[strlen(path) - 1] = '_';
    ck_assert_int_eq(count("\"ph\":\"X\""), 1);
}
END_TEST

START_TEST(a_fork_after_the_release_does_no_harm)
{
    open_file();
    uva__trace_file_release(&trace);
    in_child(report_and_exit);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

/* A pipe with a reader can be opened, but cannot be written anywhere but at
 * its end. */
static void pipe_is_no_regular_file(void)
{
    int reader;

    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    ck_assert_int_eq(uva__trace_file_open(path, &trace), EINVAL);
    (void)close(reader);
    ck_assert_int_eq(unlink(path), 0);
}

START_TEST(what_cannot_be_opened_is_reported)
{
    int i;

    ck_assert_int_eq(uva__trace_file_open("/no/such/folder/x.json", &trace),
                     ENOENT);
    pipe_is_no_regular_file();
    ck_assert_int_eq(uva__trace_file_open(UVA_TEST_BUILD, &trace), EISDIR);
    for (i = 1; i <= 2; i++) {
        fail_calloc = i;
        ck_assert_int_eq(uva__trace_file_open(path, &trace), ENOMEM);
    }
    fail_thread = 1;
    ck_assert_int_eq(uva__trace_file_open(path, &trace), ENOMEM);
    fail_thread = 0;
    fail_fstat = 1;
    ck_assert_int_eq(uva__trace_file_open(path, &trace), EIO);
    fail_fstat = 0;
    fail_truncate = 1;
    ck_assert_int_eq(uva__trace_file_open(path, &trace), EIO);
    fail_truncate = 0;
    report_and_exit();
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

START_TEST(a_file_system_without_locks_will_do)
{
    fail_lock = EACCES;
    ck_assert_int_eq(uva__trace_file_open(path, &trace), EBUSY);
    fail_lock = ENOLCK;
    report_and_exit();
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"batch\":5"), 1);
}
END_TEST

START_TEST(a_write_may_take_several_calls)
{
    open_file();
    write_little = 1;
    report(5);
    report(6);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"ph\":\"X\""), 2);
}
END_TEST

/* Standard error of the process goes to `path`. */
static void fail_to_write(void)
{
    int i;

    (void)freopen(path, "w", stderr);
    path[strlen(path) - 1] = '_';
    open_file();
    fail_write = ENOSPC;
    for (i = 0; i < 2000; i++)
        report(i);
}

START_TEST(a_full_disk_is_reported_once)
{
    char line[400] = "";
    FILE *file;

    in_child(fail_to_write);
    file = fopen(path, "r");
    ck_assert_ptr_nonnull(fgets(line, sizeof(line), file));
    ck_assert_ptr_nonnull(strstr(line, "uvarrow: warn: the trace "));
    ck_assert_ptr_nonnull(strstr(line, "No space left on device"));
    ck_assert_ptr_null(fgets(line, sizeof(line), file));
    (void)fclose(file);
}
END_TEST

START_TEST(what_has_no_room_is_counted)
{
    int i;

    open_file();
    hold_write = 1;
    report(0);
    (void)sem_wait(&in_write); /* the ring is empty, or holds that event */
    for (i = 0; i < FULL + 10; i++)
        report(i);
    (void)sem_post(&go_on);
    uva__trace_file_release(&trace);
    ck_assert_int_eq(count("\"events lost\""), 1);
    ck_assert_int_ge(count("\"ph\":\"X\""), FULL);
    ck_assert_int_le(count("\"ph\":\"X\""), FULL + 1);
}
END_TEST

int main(void)
{
    return suite_main(
        "trace_file", set_up, tear_down,
        suite_tests("written", a_file_without_events_is_an_array,
                    a_release_writes_what_was_reported,
                    a_stream_without_a_name_has_its_number,
                    no_event_of_several_threads_is_lost,
                    two_runtimes_share_the_file,
                    a_later_runtime_goes_on_in_the_file,
                    a_file_that_was_changed_begins_anew,
                    another_path_begins_anew, an_older_file_is_replaced, NULL),
        suite_tests("ends", an_exit_writes_what_was_reported,
                    a_release_may_follow_the_exit,
                    a_child_leaves_the_file_to_its_parent,
                    a_child_may_write_a_file_of_its_own,
                    a_fork_after_the_release_does_no_harm, NULL),
        suite_tests(
            "failures", what_cannot_be_opened_is_reported,
            a_file_system_without_locks_will_do, a_write_may_take_several_calls,
            a_full_disk_is_reported_once, what_has_no_room_is_counted, NULL),
        NULL);
}
