/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  an event is made -> armed for some watches -> a driver picks it:
 *              complete -> the callbacks of all armed watches are called.
 *
 * The drivers process the work of a stream in order, such as copies and
 * recorded events, and all other events in any order. */
#include "sim/device_peer.h"

#include <errno.h>
#include <string.h>

#include "device/event_wait.h"
#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/gpu_peer.h"
#include "sim/peers.h"

enum fate {
    FATE_SOON,
    FATE_NOW,     /* complete from the start */
    FATE_SLOW,    /* completes after some milliseconds */
    FATE_FAILS,   /* fails soon */
    FATE_LIES,    /* fails soon, but callbacks report success */
    FATE_UNARMED, /* it cannot be armed */
    FATE_STUCK    /* pending for longer than any timeout */
};

#define A_MS_NS UINT64_C(1000000)
/* The library looks at an event again so long after it has armed a callback. */
#define LOOK_NS  (20 * A_MS_NS)
#define STUCK_NS (1200 * A_MS_NS)

enum { TABLES = 8 };

/* A watch to call back; the watch may be freed by then. */
struct armed {
    struct armed *next; /* next one for the same event or in the late list */
    struct uva_watch *watch; /* holds a reference, until called back */
    struct loaded *loaded;   /* table that armed it */
    bool notified, settled;
};

struct device_event {
    struct device_event *handle;     /* itself: a vendor's handle */
    struct device_event *next;       /* next event that waits for a driver */
    struct expectation *expectation; /* or NULL */
    int64_t ordinal;
    enum fate fate;
    int state;                    /* -1: pending */
    uint64_t due_ns;              /* not complete before this time */
    bool meets_look;              /* it then completes at once */
    struct device_stream *stream; /* of which it is work; or NULL */
    struct uva_device_copy copy;  /* to run on completion; size 0: no copy */
    device_call_fn *call;         /* to be called then; or NULL */
    void *call_arg;
    bool waits;                 /* its failure is also the failure of later
                                   work */
    struct device_event *after; /* holds: event before it; or NULL */
    struct device_event *read;  /* holds: event of the array read; or NULL */
    struct armed *armed;        /* owns */
    int requested;              /* calls about it in progress */
    int reads;                  /* queued work that reads its array */
    int chained;                /* streams that wait for it */
    bool gone;                  /* it must not be queried any more */
    int holds;
};

/* A loaded device table; its place is not reused. */
struct loaded {
    int device_thread; /* the fiber that loaded it */
    bool live;         /* not unloaded */
    int unsettled;     /* watches armed and called back, but not settled */
};

static struct {
    ArrowDeviceType type;
    bool is_vendors; /* `ops` has the features of the library's own table */
    struct uva_device_ops ops;
    struct device_event *first;      /* wait for a driver, the oldest first */
    int drivers;                     /* driver fibers */
    struct device_event *late_calls; /* own: made only at the end */
    struct armed *late;              /* watches called back only at the end */
    bool faulty;                     /* events fail or get stuck */
    bool lazy;                       /* some callbacks come only at the end */
    bool shy;                        /* arm requests a poll first */
    bool inside;                     /* callbacks run inside arm */
    int load_code;
    bool load_stuck;
    bool over; /* no more late callbacks */
    struct loaded tables[TABLES];
    int tables_used;
    struct device_stream queue;
} device;

/* ---- drawing ------------------------------------------------------------ */

static int table_load(void *ctx, const char *path, void **state,
                      struct uva_error *error);
static void table_unload(void *state);
static int table_query(void *state, const struct uva_device_event *event,
                       struct uva_error *error);
static int table_arm(void *state, const struct uva_device_event *event,
                     struct uva_watch *watch, struct uva_error *error);
static void table_settle(void *state, struct uva_watch *watch);
static int table_copy(void *state, const struct uva_device_copy *copy,
                      void **event_out, struct uva_error *error);
static int table_record(void *state, const struct uva_device_event *at,
                        void *device_stream, void **event_out,
                        struct uva_error *error);
static int table_stream_wait(void *state, const struct uva_device_event *event,
                             void *device_stream, struct uva_error *error);
static void table_event_free(void *state, void *event);
static void *table_alloc(void *state, ArrowDeviceType device_type,
                         int64_t device_id, size_t size_bytes);
static void table_dealloc(void *state, ArrowDeviceType device_type,
                          int64_t device_id, void *memory);

static void table_draw_own(struct uva_device_ops *ops)
{
    *ops = (struct uva_device_ops){.version = UVA_DEVICE_OPS_VERSION,
                                   .name = "simulated",
                                   .load = table_load,
                                   .unload = table_unload,
                                   .query = table_query};
    ops->query_on_loop = peers_chance(1, 2);
    ops->host_readable = peers_chance(1, 2);
    if (peers_chance(3, 4)) {
        ops->arm = table_arm;
        ops->settle = peers_chance(7, 8) ? table_settle : NULL;
    }
    if (peers_chance(1, 2))
        ops->stream_wait = table_stream_wait;
    if (peers_chance(1, 2)) {
        ops->copy = table_copy;
        ops->alloc = table_alloc;
        ops->dealloc = table_dealloc;
    }
    if (peers_chance(2, 3))
        ops->record = table_record;
    ops->event_free = table_event_free;
}

/* The features of vendor tables: see UVA__GPU_OPS. */
static void table_draw_vendor(struct uva_device_ops *ops)
{
    const bool pinned = gpu_type_is_pinned();

    *ops = (struct uva_device_ops){.name = "of a vendor",
                                   .host_readable = pinned,
                                   .arm = gpu_calls_back() ? table_arm : NULL,
                                   .copy = pinned ? NULL : table_copy,
                                   .record = table_record,
                                   .stream_wait = table_stream_wait};
}

static void table_draw(bool faulty)
{
    device.type = ARROW_DEVICE_EXT_DEV;
    device.is_vendors = peers_chance(1, 3);
    if (device.is_vendors) {
        device.type = gpu_draw(faulty);
        table_draw_vendor(&device.ops);
    } else {
        table_draw_own(&device.ops);
    }
}

static void device_note(void)
{
    expectation_note("a device of type %d: %s%s%s%s%s%s%s%s", (int)device.type,
                     device.ops.arm != NULL ? "calls back" : "polls",
                     device.ops.query_on_loop ? ", on the loop" : "",
                     device.ops.host_readable ? ", readable" : "",
                     device.ops.copy != NULL ? ", copies" : "",
                     device.ops.record != NULL ? ", records" : "",
                     device.lazy ? ", lazy" : "", device.shy ? ", shy" : "",
                     device.faulty ? ", faulty" : "");
}

void device_begin(bool faulty)
{
    memset(&device, 0, sizeof(device));
    gpu_begin();
    table_draw(faulty);
    device.faulty = faulty;
    device.lazy = device.ops.arm != NULL && peers_chance(1, 4);
    device.shy =
        device.is_vendors || (device.ops.arm != NULL && peers_chance(1, 8));
    device.inside = peers_chance(1, 3);
    if (faulty && !device.is_vendors && peers_chance(1, 40))
        device.load_code = device_fault();
    device.load_stuck = faulty && peers_chance(1, 40);
    device_note();
}

void device_register(struct uva_runtime *runtime)
{
    int code;

    if (device.is_vendors)
        return;
    code = uva_device_register(runtime, ARROW_DEVICE_EXT_DEV, &device.ops,
                               &device, NULL);
    if (code != 0 && code != EBUSY && !arena_has_failed())
        sim_fail("register: %s", uva_error_name(code));
}

ArrowDeviceType device_own_type(void)
{
    return device.type;
}

int device_fault(void)
{
    return device.is_vendors ? EIO : EREMOTEIO;
}

bool device_can_copy(void)
{
    return device.ops.copy != NULL;
}

bool device_can_transfer(void)
{
    return device.ops.copy != NULL || device.ops.host_readable;
}

bool device_can_record(void)
{
    return device.ops.record != NULL;
}

bool device_can_chain(void)
{
    return device.ops.stream_wait != NULL;
}

bool device_takes_time(void)
{
    return device.ops.arm == NULL || device.ops.copy != NULL || device.lazy ||
           device.shy || device.faulty;
}

bool device_is_faulty(void)
{
    return device.faulty;
}

bool device_fails(void)
{
    return device.load_code != 0;
}

bool device_is_stuck(void)
{
    return device.load_stuck;
}

/* ---- events ------------------------------------------------------------- */

/* Finds an event by the value that an array has. A vendor's is in a separate
 * place. */
static struct device_event *event_at(const void *sync_event)
{
    return sync_event != NULL ? *(struct device_event *const *)sync_event
                              : NULL;
}

static void event_release(struct device_event *event)
{
    if (event == NULL || --event->holds > 0)
        return;
    if (event->armed != NULL)
        sim_fail("an event is gone that somebody waits for");
    arena_free(event);
}

static void stream_free_gone(struct device_stream *stream)
{
    if (stream->gone && stream->left == 0)
        arena_free(stream);
}

static struct device_event *event_hold(struct device_event *event)
{
    if (event != NULL)
        event->holds++;
    return event;
}

/* The batch may be lost or late, and the chain may end or wait at it. */
static void event_spoil(const struct device_event *event)
{
    struct expectation *expectation = event->expectation;

    expectation->excuses |= EXCUSE_EVENT;
    expectation->bad[event->ordinal] = true;
}

static enum fate fate_draw(const struct expectation *expectation)
{
    if (!device.faulty || expectation == NULL || peers_chance(3, 4))
        return peers_chance(1, 4) ? FATE_NOW : FATE_SOON;
    return (enum fate)(FATE_SLOW + sim_choose(5));
}

/* A vendor's table calls back only for events that were polled for a while. */
static bool event_outlasts_polls(const struct device_event *event)
{
    return device.is_vendors && event->expectation != NULL &&
           event->fate == FATE_SOON && peers_chance(1, 3);
}

static void event_draw(struct device_event *event)
{
    event->fate = fate_draw(event->expectation);
    if (event->fate == FATE_LIES && !device.ops.query_on_loop)
        event->fate = FATE_FAILS; /* a wrong success could not be detected */
    if (event->fate == FATE_NOW && event->stream != NULL)
        event->fate = FATE_SOON;
    if (event->fate >= FATE_FAILS)
        event_spoil(event);
    if (event->fate == FATE_SLOW || event_outlasts_polls(event))
        event->due_ns = sim_now_ns() + A_MS_NS * sim_choose(60);
    if (event->fate == FATE_STUCK)
        event->due_ns = sim_now_ns() + STUCK_NS;
}

static void driver(void *arg);

static bool peer_is_unblocked(void *arg)
{
    (void)arg;
    return peers_are_unblocked();
}

/* Starts more drivers if there is work for them. */
static void event_queue(struct device_event *event)
{
    struct device_event **last = &device.first;

    event->holds++;
    if (event->stream != NULL)
        event->stream->left++;
    while (*last != NULL)
        last = &(*last)->next;
    *last = event;
    if (device.drivers >= 2 || (device.drivers == 1 && !peers_chance(1, 4)))
        return;
    device.drivers++;
    peers_spawn("driver of a device", driver, NULL);
}

static struct device_event *event_new(struct expectation *expectation,
                                      int64_t ordinal,
                                      struct device_stream *stream)
{
    struct device_event *event = arena_new(sizeof(*event), "an event");

    event->handle = event;
    event->expectation = expectation;
    event->ordinal = ordinal;
    event->stream = stream;
    event->state = -1;
    event->holds = 1;
    event_draw(event);
    if (event->fate == FATE_NOW)
        event->state = 0;
    return event;
}

struct device_event *device_event_new(struct expectation *expectation,
                                      int64_t ordinal)
{
    struct device_event *event = event_new(expectation, ordinal, NULL);

    if (event->state < 0)
        event_queue(event);
    return event;
}

static void event_end_use(struct device_event *event, const char *how)
{
    sim_flush();
    if (event->gone)
        sim_fail("%s, twice", how);
    if (event->requested > 0)
        sim_fail("%s while somebody asks after its event", how);
    if (event->reads > 0)
        sim_fail("%s while the device reads it", how);
    event->gone = true;
    event_release(event);
}

void device_event_release(void *sync_event)
{
    event_end_use(event_at(sync_event), "an array is released");
}

int device_event_state(const void *sync_event)
{
    return event_at(sync_event)->state;
}

bool device_event_is_chained(const void *sync_event)
{
    return event_at(sync_event)->chained > 0;
}

/* ---- the driver --------------------------------------------------------- */

static bool event_may_end(const struct device_event *event)
{
    if (event->due_ns > sim_now_ns() && !peers_are_unblocked())
        return false;
    return event->after == NULL || event->after->state >= 0;
}

/* Whether all work before it in its stream is done. */
static bool event_is_next(const struct device_event *event)
{
    const struct device_event *e = device.first;

    if (event->stream == NULL)
        return true;
    while (e->stream != event->stream)
        e = e->next;
    return e == event && !event->stream->busy;
}

/* Returns the place of an event that may complete, or NULL: the first after
 * skipping `skip` events, or the last. */
static struct device_event **event_find(uint64_t skip)
{
    struct device_event **at, **found = NULL;

    for (at = &device.first; *at != NULL; at = &(*at)->next) {
        if (!event_may_end(*at) || !event_is_next(*at))
            continue;
        found = at;
        if (skip-- == 0)
            break;
    }
    return found;
}

static bool driver_may_go_on(void *arg)
{
    (void)arg;
    return device.first == NULL || event_find(0) != NULL;
}

static void armed_free(struct armed *armed)
{
    if (armed->notified && armed->settled)
        arena_free(armed);
}

static void armed_note_notified(struct armed *armed)
{
    armed->notified = true;
    if (!armed->settled)
        armed->loaded->unsettled++;
    armed_free(armed);
}

static void armed_notify(struct armed *armed, int code)
{
    struct uva_watch *watch = armed->watch;

    expectation_note("device: notifies a watch: %s", uva_error_name(code));
    armed->watch = NULL;
    if (!armed->loaded->live || device.ops.settle == NULL)
        armed->settled = true;
    if (!uva__event_wait_notify(watch, code, code != 0 ? 700 : 0, "simulated"))
        armed->settled = true; /* the thread that would settle it has ended */
    sim_flush();
    armed_note_notified(armed);
}

static void armed_notify_all(struct armed *armed, int code)
{
    struct armed *next;

    for (; armed != NULL; armed = next) {
        next = armed->next;
        if (device.lazy && !device.over && peers_chance(1, 3)) {
            armed->next = device.late;
            device.late = armed;
            continue;
        }
        peers_dawdle();
        armed_notify(armed, code);
    }
}

static int event_outcome(const struct device_event *event)
{
    if (event->after != NULL && event->after->state != 0)
        return event->after->state;
    if (event->stream != NULL && event->stream->code != 0)
        return event->stream->code;
    return event->fate == FATE_FAILS || event->fate == FATE_LIES
               ? device_fault()
               : 0;
}

/* The work of a stream is done. Work after a wait finds the same as the wait,
 * up to an event or a call. */
static void stream_go_on(struct device_stream *stream,
                         const struct device_event *event)
{
    if (event->waits)
        stream->code = event->state;
    else if (event->copy.size_bytes == 0)
        stream->code = 0;
    stream->busy = false;
    stream->left--;
    stream_free_gone(stream);
}

static void event_call(struct device_event *event)
{
    if (event->call == NULL)
        return;
    if (device.lazy && !device.over && peers_chance(1, 3)) {
        event->next = device.late_calls;
        device.late_calls = event_hold(event);
        return;
    }
    event->call(event->call_arg, event->state);
    sim_flush();
}

/* Copies run only now, so that memory that was freed too early is found. */
static void event_happen(struct device_event *event)
{
    const int code = event_outcome(event);
    struct armed *armed = event->armed;

    expectation_note("device: an event is over: %s", uva_error_name(code));
    if (code == 0 && event->copy.size_bytes > 0)
        memcpy(event->copy.target, event->copy.source, event->copy.size_bytes);
    if (event->read != NULL)
        event->read->reads--;
    event->armed = NULL;
    event->state = code;
    event_call(event);
    if (event->stream != NULL)
        stream_go_on(event->stream, event);
    armed_notify_all(armed, event->fate == FATE_LIES ? 0 : code);
    event_release(event->after);
    event_release(event->read);
    event->after = event->read = NULL;
    event_release(event);
}

/* Returns when the first event that waits for the clock is due. */
static uint64_t events_due(void)
{
    uint64_t due_ns = UINT64_MAX;

    for (const struct device_event *e = device.first; e != NULL; e = e->next)
        if (e->due_ns > sim_now_ns() && e->due_ns < due_ns)
            due_ns = e->due_ns;
    return due_ns;
}

static struct device_event *event_take(void)
{
    struct device_event **at = event_find(sim_choose(3)), *event;

    if (at == NULL)
        return NULL;
    event = *at;
    *at = event->next;
    event->next = NULL;
    if (event->stream != NULL)
        event->stream->busy = true;
    return event;
}

/* Usually takes longer than arming does. */
static void driver_dawdle(void)
{
    for (uint64_t steps = sim_choose(2) * sim_choose(100); steps > 0; steps--)
        sim_point();
    peers_dawdle();
}

static void driver(void *arg)
{
    struct device_event *event;

    for (;;) {
        (void)sim_wait_until(driver_may_go_on, arg, events_due());
        if (device.first == NULL)
            break;
        event = event_take();
        if (event == NULL)
            continue;
        if (event->meets_look)
            peers_dawdle();
        else
            driver_dawdle();
        event_happen(event);
    }
    device.drivers--;
}

/* ---- the table ---------------------------------------------------------- */

static struct loaded *table_enter(void *state, bool device_thread,
                                  const char *what)
{
    struct loaded *table = state;

    sim_flush();
    if (table < device.tables || table >= device.tables + device.tables_used ||
        !table->live)
        sim_fail("%s after unload", what);
    if (device_thread && table->device_thread != sim_self())
        sim_fail("%s on another thread than the device thread", what);
    return table;
}

void device_load_await(void)
{
    if (device.load_stuck)
        sim_wait(peer_is_unblocked, NULL);
}

static int table_load(void *ctx, const char *path, void **state,
                      struct uva_error *error)
{
    struct loaded *table = &device.tables[device.tables_used];

    (void)ctx;
    (void)path;
    expectation_note("device: load");
    if (device.tables_used++ == TABLES)
        sim_fail("a table is loaded again and again");
    peers_dawdle();
    device_load_await();
    if (device.load_code != 0)
        return uva_error_set(error, device.load_code, "no device");
    *table = (struct loaded){.device_thread = sim_self(), .live = true};
    *state = table;
    return 0;
}

static void table_unload(void *state)
{
    struct loaded *table = table_enter(state, true, "unload");

    expectation_note("device: unload");
    if (table->unsettled != 0)
        sim_fail("%d watches were not settled", table->unsettled);
    peers_dawdle();
    table->live = false;
}

static struct device_event *event_enter(const struct uva_device_event *given,
                                        const char *what)
{
    struct device_event *event = event_at(given->sync_event);

    if (given->device_type != ARROW_DEVICE_EXT_DEV || given->device_id != 0)
        sim_fail("%s of an event of another device", what);
    if (event->gone)
        sim_fail("%s of an event whose array is released", what);
    event->requested++;
    sim_point();
    return event;
}

static int table_query(void *state, const struct uva_device_event *given,
                       struct uva_error *error)
{
    struct device_event *event;
    int is;

    (void)table_enter(state, !device.ops.query_on_loop, "query");
    event = event_enter(given, "query");
    is = event->state;
    sim_point();
    event->requested--;
    if (is > 0)
        (void)uva_error_set(error, is, "an event has failed");
    return is < 0 ? EAGAIN : is;
}

static struct armed *armed_new(struct loaded *table, struct uva_watch *watch)
{
    struct armed *armed = arena_new(sizeof(*armed), "an armed watch");

    armed->watch = watch;
    armed->loaded = table;
    uva_watch_slots(watch)[0] = armed;
    return armed;
}

/* An event may end just when the library looks at it, so that the callback and
 * the poll meet. The clock alone seldom lets them. */
static void event_meet_look(struct device_event *event)
{
    if (device.faulty && event->expectation != NULL && event->armed == NULL &&
        event->fate <= FATE_SLOW && peers_chance(1, 2)) {
        event->due_ns = sim_now_ns() + LOOK_NS;
        event->meets_look = true;
    }
}

/* The event may be complete already: vendors then call back inside arm, or
 * return that. */
static int event_arm(struct device_event *event, struct loaded *table,
                     struct uva_watch *watch)
{
    struct armed *armed;

    if (event->state == 0 && !device.inside)
        return 0;
    armed = armed_new(table, watch);
    if (event->state < 0) {
        event_meet_look(event);
        armed->next = event->armed;
        event->armed = armed;
        sim_point();
    } else {
        armed_notify(armed, event->fate == FATE_LIES ? 0 : event->state);
    }
    return EINPROGRESS;
}

static int table_arm(void *state, const struct uva_device_event *given,
                     struct uva_watch *watch, struct uva_error *error)
{
    struct loaded *table = table_enter(state, true, "arm");
    struct device_event *event = event_enter(given, "arm");
    void **slots = uva_watch_slots(watch);
    int code = EAGAIN;

    expectation_note("device: arm");
    if (event->fate == FATE_UNARMED)
        code = uva_error_set(error, device_fault(), "no room for a callback");
    else if (!device.shy || slots[1] != NULL)
        code = event_arm(event, table, watch);
    else
        slots[1] = &device;
    event->requested--;
    return code;
}

static void table_settle(void *state, struct uva_watch *watch)
{
    struct loaded *table = table_enter(state, true, "settle");
    struct armed *armed = uva_watch_slots(watch)[0];

    expectation_note("device: settle");
    if (armed == NULL || armed->settled)
        sim_fail("a watch is settled twice, or was never armed");
    uva_watch_slots(watch)[0] = NULL;
    armed->settled = true;
    if (armed->notified)
        table->unsettled--;
    armed_free(armed);
}

static int table_stream_wait(void *state, const struct uva_device_event *given,
                             void *device_stream, struct uva_error *error)
{
    struct device_event *event;

    (void)error;
    (void)table_enter(state, false, "stream_wait");
    if (device_stream != device_queue())
        sim_fail("another stream is made to wait");
    event = event_enter(given, "stream_wait");
    event->chained++;
    event->requested--;
    return 0;
}

/* ---- work in order ------------------------------------------------------ */

void *device_queue(void)
{
    return &device.queue;
}

void device_read(const void *sync_event)
{
    struct device_event *event = event_at(sync_event), *work;

    if (device.ops.record == NULL || device.load_code != 0 || event == NULL)
        return; /* its completion could not be observed */
    work = event_new(NULL, 0, &device.queue);
    work->read = event_hold(event);
    event->reads++;
    event_queue(work);
    event_release(work);
}

/* Never fails itself: failures come from the events of batches. */
static int table_copy(void *state, const struct uva_device_copy *copy,
                      void **event_out, struct uva_error *error)
{
    struct device_event *after = event_at(copy->after.sync_event), *event;

    (void)error;
    (void)table_enter(state, true, "copy");
    if (after != NULL)
        (void)event_enter(&copy->after, "copy");
    event = event_new(after != NULL ? after->expectation : NULL,
                      after != NULL ? after->ordinal : 0, &device.queue);
    event->copy = *copy;
    event->after = event_hold(after);
    if (after != NULL)
        after->requested--;
    if (after != NULL && after->copy.size_bytes == 0) {
        event->read = event_hold(after);
        after->reads++;
    }
    event_queue(event);
    if (event_out == NULL)
        event_release(event);
    else
        *event_out = event;
    return 0;
}

static int table_record(void *state, const struct uva_device_event *at,
                        void *device_stream, void **event_out,
                        struct uva_error *error)
{
    const struct device_place *place = device_stream;
    struct device_event *event;

    (void)error;
    (void)table_enter(state, false, "record");
    if (at->device_type != ARROW_DEVICE_EXT_DEV)
        sim_fail("record on another device");
    event = device_stream == device_queue()
                ? event_new(NULL, 0, &device.queue)
                : event_new(place->expectation, place->ordinal, &device.queue);
    event_queue(event);
    *event_out = event;
    return 0;
}

static void table_event_free(void *state, void *event)
{
    (void)table_enter(state, false, "event_free");
    event_end_use(event_at(event), "an event is freed");
}

static void *table_alloc(void *state, ArrowDeviceType device_type,
                         int64_t device_id, size_t size_bytes)
{
    (void)table_enter(state, true, "alloc");
    (void)device_id;
    if (device_type != ARROW_DEVICE_EXT_DEV)
        sim_fail("memory of another device");
    return arena_new(size_bytes, "memory of the device");
}

static void table_dealloc(void *state, ArrowDeviceType device_type,
                          int64_t device_id, void *memory)
{
    (void)table_enter(state, true, "dealloc");
    (void)device_type;
    (void)device_id;
    arena_free(memory);
}

/* ---- streams of a vendor's driver --------------------------------------- */

struct device_event *device_event_blank(void)
{
    struct device_event *event = event_new(NULL, 0, NULL);

    event->state = 0;
    return event;
}

int device_event_query(struct device_event *event)
{
    if (event->gone)
        sim_fail("an event is queried that is gone");
    event->requested++;
    sim_point();
    event->requested--;
    return event->state;
}

void device_event_destroy(struct device_event *event)
{
    event_end_use(event, "an event is destroyed");
}

struct device_stream *device_stream_new(void)
{
    return arena_new(sizeof(struct device_stream), "a stream");
}

void device_stream_end(struct device_stream *stream)
{
    stream->gone = true;
    stream_free_gone(stream);
}

static bool stream_is_idle(void *arg)
{
    return ((const struct device_stream *)arg)->left == 0;
}

void device_stream_await(struct device_stream *stream)
{
    sim_wait(stream_is_idle, stream);
}

/* Adds work; the caller's reference to `work` goes to the stream. */
static void stream_add(struct device_stream *stream, struct device_event *work)
{
    if (stream->gone)
        sim_fail("work for a stream that is destroyed");
    work->stream = stream;
    work->state = -1;
    work->fate = work->fate == FATE_NOW ? FATE_SOON : work->fate;
    event_queue(work);
    event_release(work);
}

/* A handle that is no stream is the place of a batch. */
void device_stream_record(struct device_stream *stream,
                          struct device_event *event)
{
    const struct device_place *place = (const void *)stream;

    if (event->state < 0)
        sim_fail("an event is recorded again while it is pending");
    if (stream->is_place) {
        event->expectation = place->expectation;
        event->ordinal = place->ordinal;
        event->stream = &device.queue;
        event_draw(event);
        stream = &device.queue;
    }
    stream_add(stream, event_hold(event));
    stream->read = NULL;
}

/* Later work may read the array of the event. */
void device_stream_wait(struct device_stream *stream,
                        struct device_event *event)
{
    struct device_event *work;

    if (event->gone)
        sim_fail("a stream waits for an event that is gone");
    if (stream == &device.queue) {
        event->chained++;
        return;
    }
    work = event_new(NULL, 0, stream);
    work->waits = true;
    work->after = event_hold(event);
    stream->read = event->expectation != NULL ? event : NULL;
    stream_add(stream, work);
}

void device_stream_copy(struct device_stream *stream, void *target,
                        const void *source, size_t size_bytes)
{
    struct device_event *work = event_new(NULL, 0, stream);

    work->copy = (struct uva_device_copy){
        .target = target, .source = source, .size_bytes = size_bytes};
    work->read = event_hold(stream->read);
    if (work->read != NULL)
        work->read->reads++;
    stream_add(stream, work);
}

void device_stream_call(struct device_stream *stream, device_call_fn *call,
                        void *arg)
{
    struct device_event *work = event_new(NULL, 0, stream);

    work->call = call;
    work->call_arg = arg;
    stream_add(stream, work);
}

/* ---- the end ------------------------------------------------------------ */

/* Runs independently: a device thread may be ending. */
static void late_teller(void *arg)
{
    struct device_event *event;
    struct armed *late;

    (void)arg;
    while ((event = device.late_calls) != NULL) {
        device.late_calls = event->next;
        peers_dawdle();
        event->call(event->call_arg, event->state);
        event_release(event);
    }
    while ((late = device.late) != NULL) {
        device.late = late->next;
        peers_dawdle();
        armed_notify(late, 0);
    }
}

void device_end(void)
{
    device.over = true;
    if (device.late != NULL || device.late_calls != NULL)
        peers_spawn("late teller of a device", late_teller, NULL);
}

void device_check(void)
{
    gpu_check();
    if (device.first != NULL || device.late != NULL ||
        device.late_calls != NULL)
        sim_fail("something is left to be done by the device");
    for (int i = 0; i < device.tables_used; i++)
        if (device.tables[i].live)
            sim_fail("a table was never unloaded");
}
