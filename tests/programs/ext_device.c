/* SPDX-License-Identifier: Apache-2.0 */
/* A program's own device: its events are counters in shared memory, which
 * another process increments after writing a column there. Two functions
 * register it. */
#define _GNU_SOURCE
#include <assert.h>
#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <uv.h>

#include "support/world.h"
#include "uvarrow/uvarrow.h"

enum { BATCHES = 8, ROWS = 100 };

struct fence {
    atomic_uint reached;
    unsigned wanted;
};

/* ---- the device --------------------------------------------------------- */

static int devices_load(void *ctx, const char *path, void **state,
                        struct uva_error *error)
{
    (void)path;
    (void)error;
    *state = ctx;
    return 0;
}

static int devices_query(void *state, const struct uva_device_event *event,
                         struct uva_error *error)
{
    struct fence *fence = event->sync_event;
    unsigned reached = atomic_load(&fence->reached);

    (void)state;
    if (reached == UINT32_MAX) {
        uva_error_set(error, EIO, "the other process has failed");
        error->vendor = "fence";
        error->vendor_code = 1;
        return EIO;
    }
    return reached >= fence->wanted ? 0 : EAGAIN;
}

static const struct uva_device_ops devices_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .query_on_loop = true,
    .host_readable = true,
    .name = "fence",
    .load = devices_load,
    .query = devices_query,
};

/* ---- shared memory ------------------------------------------------------ */

struct shared {
    struct fence fences[BATCHES];
    int64_t values[BATCHES][ROWS];
};

/* Runs in the other process: fills the columns, and fails at one column. */
static void shared_fill(struct shared *shared, int fails_at)
{
    for (int k = 0; k < BATCHES; k++) {
        if (k == fails_at) {
            atomic_store(&shared->fences[k].reached, UINT32_MAX);
            break;
        }
        for (int i = 0; i < ROWS; i++)
            shared->values[k][i] = k * ROWS + i;
        atomic_fetch_add(&shared->fences[k].reached, 1);
    }
    _exit(0);
}

/* Our batch around a column of the other process. */
struct frame {
    struct ArrowArray child;
    struct ArrowArray *children[1];
    const void *struct_buffers[1];
    const void *buffers[2];
    bool released;
};

struct scan {
    struct shared *shared;
    struct frame frames[BATCHES];
    int next;
};

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void frame_release(struct ArrowArray *array)
{
    ((struct frame *)array->private_data)->released = true;
    array->release = NULL;
}

static int scan_get_schema(struct ArrowDeviceArrayStream *self,
                           struct ArrowSchema *out)
{
    (void)self;
    return column_schema(out);
}

static int scan_get_next(struct ArrowDeviceArrayStream *self,
                         struct ArrowDeviceArray *out)
{
    struct scan *scan = self->private_data;
    const int k = scan->next++;
    struct frame *frame = &scan->frames[k];

    memset(out, 0, sizeof(*out));
    if (k >= BATCHES)
        return 0;
    frame->children[0] = &frame->child;
    frame->buffers[1] = scan->shared->values[k];
    frame->child = (struct ArrowArray){.length = ROWS,
                                       .n_buffers = 2,
                                       .buffers = frame->buffers,
                                       .release = child_release};
    out->array = (struct ArrowArray){.length = ROWS,
                                     .n_buffers = 1,
                                     .n_children = 1,
                                     .buffers = frame->struct_buffers,
                                     .children = frame->children,
                                     .release = frame_release,
                                     .private_data = frame};
    out->device_type = ARROW_DEVICE_EXT_DEV;
    out->sync_event = &scan->shared->fences[k];
    return 0;
}

static const char *scan_get_last_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return NULL;
}

static void scan_release(struct ArrowDeviceArrayStream *self)
{
    self->release = NULL;
}

/* ---- the program -------------------------------------------------------- */

struct report {
    int64_t rows; /* each is checked to be the next number */
    struct uva_outcome outcome;
};

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const int64_t *values = column_values(&batch->data.array);
    struct report *report = ctx;

    for (int64_t i = 0; i < batch->data.array.length; i++)
        assert(values[i] == report->rows++);
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    ((struct report *)ctx)->outcome = *outcome;
}

static struct report run(struct scan *scan)
{
    uv_loop_t *loop = uv_default_loop();
    struct ArrowDeviceArrayStream source = {.device_type = ARROW_DEVICE_EXT_DEV,
                                            .get_schema = scan_get_schema,
                                            .get_next = scan_get_next,
                                            .get_last_error =
                                                scan_get_last_error,
                                            .release = scan_release,
                                            .private_data = scan};
    struct report report = {0};
    struct uva_runtime *rt;
    struct uva_stream *s;
    struct uva_error error;

    assert(uva_runtime_open(loop, NULL, &rt, &error) == 0);
    assert(uva_device_register(rt, ARROW_DEVICE_EXT_DEV, &devices_ops, NULL,
                               &error) == 0);
    s = uva_stream_from_device_stream(rt, &source, NULL);
    assert(uva_stream_ready(s, &(struct uva_ready){.timeout_ms = 20000}) == 0);
    assert(uva_stream_for_each(s,
                               &(struct uva_consumer){.on_batch = on_batch,
                                                      .on_done = on_done,
                                                      .ctx = &report},
                               &error) == 0);
    uva_stream_release(s);
    uv_run(loop, UV_RUN_DEFAULT);
    assert(uva_runtime_close(rt, 0, NULL, NULL) == 0);
    uv_run(loop, UV_RUN_DEFAULT);
    return report;
}

/* The other process, which fails at a batch, or never (-1). */
struct other {
    struct shared *shared;
    pid_t pid;
};

static struct other other_start(int fails_at)
{
    struct other other;

    other.shared = mmap(NULL, sizeof(*other.shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert(other.shared != MAP_FAILED);
    for (int k = 0; k < BATCHES; k++)
        other.shared->fences[k].wanted = 1;
    other.pid = fork();
    assert(other.pid >= 0);
    if (other.pid == 0)
        shared_fill(other.shared, fails_at);
    return other;
}

static struct report other_run(struct other *other)
{
    struct scan scan = {.shared = other->shared};
    struct report report = run(&scan);

    world_await_release();
    for (int k = 0; k < BATCHES && k < scan.next; k++)
        assert(scan.frames[k].released);
    assert(waitpid(other->pid, NULL, 0) == other->pid);
    assert(munmap(other->shared, sizeof(*other->shared)) == 0);
    return report;
}

int main(void)
{
    struct other well = other_start(-1), ill = other_start(5);
    struct report report = other_run(&well);

    assert(report.outcome.end == UVA_END_COMPLETE);
    assert(report.rows == (int64_t)BATCHES * ROWS);

    report = other_run(&ill);
    assert(report.outcome.end == UVA_END_FAILED);
    assert(report.outcome.error.code == EIO);
    assert(strcmp(report.outcome.error.vendor, "fence") == 0);
    assert(report.outcome.error.vendor_code == 1);
    assert(report.rows == 5 * ROWS);
    return uv_loop_close(uv_default_loop());
}
