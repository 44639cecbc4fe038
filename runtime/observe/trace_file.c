/* SPDX-License-Identifier: Apache-2.0 */
/* Writes trace events to a file, from its own thread.
 *
 * Happy path:  a thread of a stream copies its event into the ring; ten times a
 *              second, or when the ring is half full, the writer turns its
 * content into text, and writes that.
 *
 * Failures: opening, which is reported to the runtime; a later write, which is
 * reported once on standard error and ends the writing. Events for which the
 * ring has no room are counted, and the count is written where they are
 * missing.
 *
 * On close:    with the last runtime, or when the process exits, the writer
 *              writes the rest and ends. The file is a complete array after
 *              each write, because each one replaces the bracket at the end. */
#define _GNU_SOURCE
#include "observe/trace_file.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parker.h"
#include "base/platform.h"
#include "base/thread.h"
#include "observe/trace_json.h"

enum { PAUSE_MS = 100 };

static const char TAIL[] = "\n]\n";
enum { TAIL_SIZE = sizeof(TAIL) - 1 };

/* An open file. */
struct trace_file {
    struct uva__trace_ring ring; /* events not written so far */
    struct uva__parker writer;   /* where the thread sleeps */
    struct uva__atomic64 stop;   /* 1: the thread must end */
    pthread_t thread;            /* the writer */
    int fd;                      /* owns */
    int failed;                  /* errno of a write; no more is written */
    uint64_t lost;               /* events for which a mark was written */
    struct uva__trace_json json;
};

/* A runtime that writes to it. Streams are numbered in each runtime. */
struct trace_user {
    struct trace_file *file; /* borrows */
    uint64_t id_base;        /* added to the numbers of its streams */
};

/* The process's part of it. The environment is one for all runtimes. */
static struct {
    pthread_mutex_t mutex;   /* taken to open and close, not for an event */
    struct trace_file *file; /* owns; NULL: no runtime uses it */
    int users;               /* runtimes */
    uint64_t users_ever;     /* gives them numbers */
    bool stopped;            /* the process exits: the writer has ended */
    bool has_hooks;          /* for the exit, and for a fork */
    int64_t end;             /* size of the last file without its tail */
    int64_t origin_ns;       /* its time 0 */
    char path[PATH_MAX];     /* its path */
} process = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static _Thread_local int32_t thread_number; /* 0: not known */

/* ---- events ------------------------------------------------------------- */

static int32_t thread_self(void)
{
    if (thread_number == 0)
        thread_number = uva__platform_thread_number();
    return thread_number;
}

/* Copies a name to `to`, of `size` bytes: it may end before it is written. */
static void record_name(char *to, size_t size, const char *name)
{
    to[size - 1] = '\0';
    (void)memccpy(to, name, '\0', size - 1);
}

static void trace_file_event(void *ctx, const struct uva_trace_event *event)
{
    const struct trace_user *user = ctx;
    struct uva__trace_ring *ring = &user->file->ring;
    uint64_t position;
    struct uva__trace_slot *slot = uva__trace_ring_claim(ring, &position);
    struct uva__trace_record *record;

    if (slot == NULL)
        return;
    record = &slot->record;
    memcpy(&record->event, event, offsetof(struct uva_trace_event, reserved));
    record->event.stream_id += user->id_base;
    record->event.from_id += user->id_base;
    record->thread = thread_self();
    record_name(record->stage, sizeof(record->stage), event->stage_name);
    record->stream[0] = '\0';
    if (event->stream != NULL)
        record_name(record->stream, sizeof(record->stream), event->stream);
    uva__trace_ring_publish(slot, position);
    if (position % (UVA__TRACE_RING_SIZE / 2) == 0)
        uva__parker_unpark(&user->file->writer);
}

/* ---- the writer --------------------------------------------------------- */

/* Writes the text over the tail of the file, and a new tail after it. */
static void trace_file_write(struct trace_file *file)
{
    struct uva__trace_json *json = &file->json;
    const size_t size = json->size;

    json->size = 0;
    if (file->failed != 0 || size == 0)
        return;
    memcpy(json->text + size, TAIL, TAIL_SIZE);
    file->failed = uva__platform_write_file(file->fd, json->text,
                                            size + TAIL_SIZE, process.end);
    if (file->failed == 0)
        process.end += (int64_t)size;
    else
        (void)fprintf(stderr,
                      "uvarrow: warn: the trace %s ends here, it cannot be "
                      "written: %s\n",
                      process.path, strerror(file->failed));
}

static void trace_file_count_lost(struct trace_file *file, int64_t at_ns)
{
    const uint64_t lost = uva__atomic64_load(&file->ring.lost);

    if (lost == file->lost)
        return;
    uva__trace_json_put_lost(&file->json, lost - file->lost, at_ns);
    file->lost = lost;
}

/* Writes the present content of the ring. */
static void trace_file_drain(struct trace_file *file)
{
    const struct uva__trace_record *record;

    while ((record = uva__trace_ring_peek(&file->ring)) != NULL) {
        uva__trace_json_put(&file->json, record);
        uva__trace_ring_drop(&file->ring);
        if (uva__trace_json_is_full(&file->json))
            trace_file_write(file);
    }
    trace_file_count_lost(file, (int64_t)uva__clock_ns());
    trace_file_write(file);
}

static void *trace_file_run(void *arg)
{
    struct trace_file *file = arg;
    bool stop = false;
    uint32_t seen;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    uva__platform_name_thread("uva-trace");
    while (!stop) {
        seen = uva__parker_prepare(&file->writer);
        stop = uva__atomic64_load(&file->stop) != 0;
        if (!stop)
            (void)uva__futex_wait(&file->writer.wake, seen, PAUSE_MS);
        uva__parker_finish(&file->writer);
        trace_file_drain(file);
    }
    return NULL;
}

/* ---- open and close ----------------------------------------------------- */

/* Whether the file is as this process has left it. */
static bool is_continued(const char *path, int64_t size_bytes)
{
    return process.end != 0 && strcmp(process.path, path) == 0 &&
           size_bytes == process.end + TAIL_SIZE;
}

static int trace_file_new(const char *path, struct trace_file **out)
{
    struct trace_file *file = calloc(1, sizeof(*file));
    int64_t size_bytes;
    int code;

    if (file == NULL)
        return ENOMEM;
    code = uva__platform_open_file(path, &file->fd, &size_bytes);
    if (code != 0)
        goto fail_file;
    uva__trace_ring_init(&file->ring);
    file->json.pid = uva__platform_process();
    if (!is_continued(path, size_bytes)) {
        code = uva__platform_empty_file(file->fd);
        (void)snprintf(process.path, sizeof(process.path), "%s", path);
        process.end = 0;
        process.origin_ns = (int64_t)uva__clock_ns();
        uva__trace_json_begin(&file->json);
    }
    file->json.origin_ns = process.origin_ns;
    if (code == 0)
        code = uva__platform_start_thread(&file->thread, trace_file_run, file);
    if (code != 0)
        goto fail_fd;
    process.stopped = false;
    *out = file;
    return 0;

fail_fd:
    uva__platform_close_file(file->fd);
fail_file:
    free(file);
    return code;
}

static void trace_file_stop(struct trace_file *file)
{
    if (process.stopped)
        return;
    process.stopped = true;
    uva__atomic64_store(&file->stop, 1);
    uva__parker_unpark(&file->writer);
    (void)pthread_join(file->thread, NULL);
}

/* A program may exit without having closed its runtimes. */
static void process_exits(void)
{
    (void)pthread_mutex_lock(&process.mutex);
    if (process.file != NULL)
        trace_file_stop(process.file);
    (void)pthread_mutex_unlock(&process.mutex);
}

/* A forked child has no writer. The runtimes of its parent work no more there,
 * but may still report an event, so the ring stays. A runtime that the child
 * opens begins anew; its parent holds the lock on the file. */
static void process_forked(void)
{
    if (process.file != NULL)
        uva__platform_close_file(process.file->fd);
    memset(&process, 0, sizeof(process));
    process.mutex = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    process.has_hooks = true;
    thread_number = 0;
}

static void process_add_hooks(void)
{
    if (process.has_hooks)
        return;
    process.has_hooks = true;
    uva__platform_on_exit(process_exits);
    uva__platform_on_fork(NULL, NULL, process_forked);
}

int uva__trace_file_open(const char *path, struct uva_trace *out)
{
    struct trace_user *user = calloc(1, sizeof(*user));
    int code = 0;

    if (user == NULL)
        return ENOMEM;
    (void)pthread_mutex_lock(&process.mutex);
    if (process.file == NULL)
        code = trace_file_new(path, &process.file);
    if (code == 0) {
        process_add_hooks();
        process.users++;
        user->file = process.file;
        user->id_base = process.users_ever++ << UVA__TRACE_JSON_ID_BITS;
        *out = (struct uva_trace){.event = trace_file_event, .ctx = user};
    }
    (void)pthread_mutex_unlock(&process.mutex);
    if (code != 0)
        free(user);
    return code;
}

void uva__trace_file_release(struct uva_trace *trace)
{
    struct trace_file *file;

    free(trace->ctx);
    (void)pthread_mutex_lock(&process.mutex);
    file = process.file;
    if (--process.users == 0) {
        trace_file_stop(file);
        uva__platform_close_file(file->fd);
        free(file);
        process.file = NULL;
    }
    (void)pthread_mutex_unlock(&process.mutex);
}
