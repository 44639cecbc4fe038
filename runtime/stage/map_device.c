/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_map_device(): a map with a function that queues work on a device,
 * and gives its result before the work has run.
 *
 * Happy path:  a batch is extracted on the one worker of the stage -> the
 *              stream of the device is made to wait for its event -> the
 *              function queues work there -> an event is recorded after it,
 *              and goes with the result. stream/event_work.c keeps the arrays
 *              until it is complete.
 *
 * Failures:    the event of a batch, a vendor call, the function. Work that the
 *              function has queued by then is waited for as if it had
 *              succeeded.
 *
 * Batches of the CPU have no queue: this is a plain map for them.
 *
 * Clauses: EV-01, EV-04. */
#include <errno.h>

#include "base/memory.h"
#include "base/unreachable.h"
#include "device/driver_gate.h"
#include "stream/event_work.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "stream/window.h"
#include "uvarrow/arrow.h"
#include "uvarrow/stages.h"

/* The ctx of the map. */
struct map_device {
    struct uva_device_map options; /* owns its ctx */
    struct uva__rt *rt;            /* borrows: the stream outlives its maps */
    struct uva__devices *devices;  /* uses */
};

/* ---- one batch ---------------------------------------------------------- */

/* Returns how the event of the batch has failed, or 0: on some platforms, work
 * that is queued after such an event never runs. A user's table may expect the
 * device thread. */
static int event_check(const struct uva__backend *backend,
                       const struct uva_device_event *in,
                       struct uva_error *error)
{
    struct uva_error why = {0};
    int code = EAGAIN;

    if (in->sync_event != NULL &&
        (backend->built_in || backend->ops->query_on_loop))
        code = uva__backend_query(backend, in, &why);
    if (code == 0 || code == EAGAIN)
        return 0;
    *error = why;
    return code;
}

/* Has the device's table ready. */
static int batch_check(struct map_device *m, const struct uva_device_event *in,
                       struct uva__backend **out, struct uva_error *error)
{
    int code = uva__devices_load(m->devices, in->device_type, error);

    if (code != 0)
        return code;
    *out = uva__devices_backend(m->devices, in->device_type);
    if ((*out)->ops->record == NULL)
        return uva_error_set(error, ENOTSUP,
                             "uva_stream_map_device: %s: events cannot be "
                             "recorded",
                             (*out)->ops->name);
    return event_check(*out, in, error);
}

/* Takes the work, which keeps the input until the event is complete. */
static int batch_record(struct map_device *m, struct uva__event_work *work,
                        struct ArrowDeviceArray *out, struct uva_error *error)
{
    const int code =
        uva__event_work_record(work, m->options.device_stream, error);

    if (!uva__rt_job_begin(m->rt))
        UVA__UNREACHABLE("the batch is extracted in a job");
    if (code != 0) {
        uva__event_work_keep(work, out);
        return code;
    }
    if (out->array.release != NULL)
        uva__event_work_give(work, out);
    uva__event_work_await(work);
    return 0;
}

/* Takes the work. The function may have queued something before it failed. */
static int batch_queue(struct map_device *m, struct uva_batch *in,
                       struct ArrowDeviceArray *out,
                       struct uva__event_work *work, struct uva_error *error)
{
    const struct uva_device_queue queue = {
        .device_type = in->data.device_type,
        .device_id = in->data.device_id,
        .device_stream = m->options.device_stream,
    };
    struct uva_error why = {0};
    int code = m->options.batch(m->options.ctx, in, out, &queue, error);
    int recorded;

    if (code != 0)
        out->array.release = NULL;
    if (out->device_type == 0) {
        out->device_type = queue.device_type;
        out->device_id = queue.device_id;
    }
    if (in->data.array.release != NULL)
        uva_array_move(&in->data, &work->kept);
    recorded = batch_record(m, work, out, &why);
    if (code == 0 && recorded != 0)
        *error = why;
    return code != 0 ? code : recorded;
}

/* Makes the work before the function is called, which can fail for no lack of
 * memory after that. The context of the stream is current. */
static int batch_run(struct map_device *m, struct uva_batch *in,
                     struct ArrowDeviceArray *out,
                     const struct uva__backend *backend,
                     struct uva_error *error)
{
    const struct uva_device_event event = {
        in->data.device_type, in->data.device_id, in->data.sync_event};
    struct uva__event_work *work;
    int code;

    uva__devices_use(m->devices);
    code = uva__event_work_new(m->rt, m->devices, &in->data, &work, error);
    if (code != 0)
        return code;
    code = uva__event_work_prepare(work, error);
    if (code == 0 && event.sync_event != NULL)
        code = uva__backend_chain(backend, &event, m->options.device_stream,
                                  error);
    if (code == 0)
        return batch_queue(m, in, out, work, error);
    uva__event_work_free(work);
    return code;
}

static int batch_map(struct map_device *m, struct uva_batch *in,
                     struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct uva_device_event event = {
        in->data.device_type, in->data.device_id, in->data.sync_event};
    const struct uva__vendor_info *info;
    struct uva__backend *backend;
    struct uva__stream_scope scope;
    int code = batch_check(m, &event, &backend, error);

    if (code != 0)
        return code;
    info = backend->vendor_info;
    if (info == NULL || info->enter == NULL)
        return batch_run(m, in, out, backend, error);
    code = info->enter(backend->state, event.device_id,
                       m->options.device_stream, &scope, error);
    if (code != 0)
        return code;
    code = batch_run(m, in, out, backend, error);
    info->leave(backend->state, &scope);
    return code;
}

/* The function is part of one use of the driver. */
static int map_device_batch(void *ctx, struct uva_batch *in,
                            struct ArrowDeviceArray *out,
                            struct uva_error *error)
{
    struct map_device *m = ctx;
    int code;

    if (in->data.device_type == ARROW_DEVICE_CPU)
        return m->options.batch(m->options.ctx, in, out, NULL, error);
    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = batch_map(m, in, out, error);
    uva__driver_gate_leave();
    return code;
}

/* ---- life --------------------------------------------------------------- */

static int map_device_schema(void *ctx, const struct ArrowSchema *in,
                             struct ArrowSchema *out, struct uva_error *error)
{
    const struct uva_device_map *options = &((struct map_device *)ctx)->options;

    return options->schema(options->ctx, in, out, error);
}

static void map_device_free(void *ctx)
{
    struct map_device *m = ctx;
    struct uva__devices *devices = m->devices;

    if (m->options.free_ctx != NULL)
        m->options.free_ctx(m->options.ctx);
    uva__memory_free(&m->rt->allocator, m, sizeof(*m));
    uva__devices_quit(devices);
}

static int devices_begin(struct uva__rt *rt, struct uva__devices **out,
                         struct uva_error *error)
{
    int code = uva__rt_devices_use(rt, out);

    if (code == 0) {
        code = uva__device_thread_start(&(*out)->device_thread);
        if (code != 0)
            uva__devices_quit(*out);
    }
    return code == 0 ? 0
                     : uva_error_set(error, code,
                                     "map_device: no thread or memory for "
                                     "devices");
}

/* Makes the ctx, which takes the ctx of the options. A default stream belongs
 * to the context which is current here. */
static int map_device_make(struct uva_stream *stream,
                           const struct uva_device_map *options,
                           struct map_device **out)
{
    struct uva__rt *rt = stream->rt;
    struct uva__devices *devices;
    struct uva_error why = {0};
    struct map_device *m;
    int code = devices_begin(rt, &devices, &why);

    if (code != 0)
        return uva__stream_fail(stream, code, "%s", why.message);
    code = uva__devices_check_stream(devices, options->device_stream, &why);
    m = uva__memory_new(&rt->allocator, sizeof(*m));
    if (code == 0 && m == NULL)
        code = uva_error_set(&why, ENOMEM, "no memory for a map");
    if (code != 0) {
        uva__memory_free(&rt->allocator, m, sizeof(*m));
        uva__devices_quit(devices);
        return uva__stream_fail(stream, code, "%s", why.message);
    }
    *m = (struct map_device){*options, rt, devices};
    *out = m;
    return 0;
}

int uva_stream_map_device(struct uva_stream *stream,
                          const struct uva_device_map *options)
{
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_device_map), UVA__OPTIONS_CTX(uva_device_map),
        UVA__OPTIONS_WINDOW(uva_device_map),
        UVA__OPTIONS_NEED(uva_device_map, batch)};
    struct uva__window window;
    struct map_device *m = NULL;
    int code = uva__options_accept(&kind, stream, options, &window);

    if (code != 0)
        return code;
    code = map_device_make(stream, options, &m);
    if (code != 0) {
        uva__options_free_ctx(&kind, options);
        return code;
    }
    code = uva_stream_map(stream,
                          &(struct uva_map){.batch = map_device_batch,
                                            .schema = options->schema != NULL
                                                          ? map_device_schema
                                                          : NULL,
                                            .free_ctx = map_device_free,
                                            .ctx = m});
    if (code != 0)
        return code;
    return uva_stream_parallel(
        stream,
        &(struct uva_parallel){.workers = 1, .window = options->window});
}
