/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  an event is made -> armed for some watches -> a driver picks it:
 *              complete -> the callbacks of all armed watches are called.
 *
 * The driver processes copies and recorded events in order, and all others in
 * any order. */
#include "sim/device_peer.h"

#include <errno.h>
#include <string.h>

#include "device/event_wait.h"
#include "sim/arena.h"
#include "sim/engine.h"
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

#define A_MS_NS  UINT64_C(1000000)
#define STUCK_NS (1200 * A_MS_NS)

enum { TABLES = 8 };

/* A watch to call back; the watch may be freed by then. */
struct armed {
    struct armed *next; /* next one of the same event or of the late list */
    struct uva_watch *watch; /* holds a reference, until called back */
    struct loaded *loaded;   /* table that armed it */
    bool notified, settled;
};

struct device_event {
    struct device_event *next;       /* next event that waits for a driver */
    struct expectation *expectation; /* or NULL */
    int64_t ordinal;
    enum fate fate;
    int state;       /* -1: pending */
    uint64_t due_ns; /* not complete before this time */
    bool in_order;
    struct uva_device_copy copy; /* to run on completion; size 0: none */
    struct device_event *after;  /* holds: event before a copy; or NULL */
    struct device_event *read;   /* holds: event of the array read; or NULL */
    struct armed *armed;         /* owns */
    int requested;               /* calls about it in progress */
    int reads;                   /* queued work that reads its array */
    int chained;                 /* streams that wait for it */
    bool gone;                   /* it must not be queried any more */
    int holds;
};

/* A loaded device table; its place is not reused. */
struct loaded {
    int device_thread; /* the fiber that loaded it */
    bool live;         /* not unloaded */
    int unsettled;     /* watches armed and called back, but not settled */
};

static struct {
    struct uva_device_ops ops;
    struct device_event *first; /* wait for a driver, the oldest first */
    int drivers;                /* driver fibers */
    bool ordered;               /* a driver is processing an in-order event */
    struct armed *late;         /* watches called back only at the end */
    bool faulty;                /* events fail or get stuck */
    bool lazy;                  /* some callbacks come only at the end */
    bool shy;                   /* arm requests a poll first */
    bool inside;                /* callbacks run inside arm */
    int load_code;
    bool load_stuck;
    bool over; /* no more late callbacks */
    struct loaded tables[TABLES];
    int tables_used;
    char queue; /* its address identifies the queue */
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

static void table_draw(struct uva_device_ops *ops)
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

void device_begin(bool faulty)
{
    memset(&device, 0, sizeof(device));
    table_draw(&device.ops);
    device.faulty = faulty;
    device.lazy = device.ops.arm != NULL && peers_chance(1, 4);
    device.shy = device.ops.arm != NULL && peers_chance(1, 8);
    device.inside = peers_chance(1, 3);
    if (faulty && peers_chance(1, 40))
        device.load_code = DEVICE_FAULT;
    device.load_stuck = faulty && peers_chance(1, 40);
    expectation_note("a device: %s%s%s%s%s%s%s%s",
                     device.ops.arm != NULL ? "calls back" : "polls",
                     device.ops.query_on_loop ? ", on the loop" : "",
                     device.ops.host_readable ? ", readable" : "",
                     device.ops.copy != NULL ? ", copies" : "",
                     device.ops.record != NULL ? ", records" : "",
                     device.lazy ? ", lazy" : "", device.shy ? ", shy" : "",
                     faulty ? ", faulty" : "");
}

void device_register(struct uva_runtime *runtime)
{
    int code = uva_device_register(runtime, ARROW_DEVICE_EXT_DEV, &device.ops,
                                   &device, NULL);

    if (code != 0 && code != EBUSY && !arena_has_failed())
        sim_fail("register: %s", uva_error_name(code));
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

static void event_release(struct device_event *event)
{
    if (event == NULL || --event->holds > 0)
        return;
    if (event->armed != NULL)
        sim_fail("an event is gone that somebody waits for");
    arena_free(event);
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

static void event_draw(struct device_event *event)
{
    event->fate = fate_draw(event->expectation);
    if (event->fate == FATE_LIES && !device.ops.query_on_loop)
        event->fate = FATE_FAILS; /* a wrong success could not be detected */
    if (event->fate == FATE_NOW && event->in_order)
        event->fate = FATE_SOON;
    if (event->fate >= FATE_FAILS)
        event_spoil(event);
    if (event->fate == FATE_SLOW)
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
    while (*last != NULL)
        last = &(*last)->next;
    *last = event;
    if (device.drivers >= 2 || (device.drivers == 1 && !peers_chance(1, 4)))
        return;
    device.drivers++;
    peers_spawn("driver of a device", driver, NULL);
}

static struct device_event *event_new(struct expectation *expectation,
                                      int64_t ordinal, bool in_order)
{
    struct device_event *event = arena_new(sizeof(*event), "an event");

    event->expectation = expectation;
    event->ordinal = ordinal;
    event->in_order = in_order;
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
    struct device_event *event = event_new(expectation, ordinal, false);

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

void device_event_release(void *event)
{
    event_end_use(event, "an array is released");
}

int device_event_state(const struct device_event *event)
{
    return event->state;
}

bool device_event_is_chained(const struct device_event *event)
{
    return event->chained > 0;
}

/* ---- the driver --------------------------------------------------------- */

static bool event_may_end(const struct device_event *event)
{
    if (event->due_ns > sim_now_ns() && !peers_are_unblocked())
        return false;
    return event->after == NULL || event->after->state >= 0;
}

/* Returns the place of an event that may complete, or NULL: the first after
 * skipping `skip` events, or the last. */
static struct device_event **event_find(uint64_t skip)
{
    struct device_event **at, **found = NULL;
    bool in_order = !device.ordered; /* in-order events before it are done */

    for (at = &device.first; *at != NULL; at = &(*at)->next) {
        const bool may = event_may_end(*at) && (in_order || !(*at)->in_order);

        in_order = in_order && !(*at)->in_order;
        if (!may)
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
    return event->fate == FATE_FAILS || event->fate == FATE_LIES ? DEVICE_FAULT
                                                                 : 0;
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
    if (event->in_order)
        device.ordered = false;
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
    device.ordered = device.ordered || event->in_order;
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
    if (device.load_stuck)
        sim_wait(peer_is_unblocked, NULL);
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
    struct device_event *event = given->sync_event;

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
        code = uva_error_set(error, DEVICE_FAULT, "no room for a callback");
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

void device_read(struct device_event *event)
{
    struct device_event *work;

    if (device.ops.record == NULL || device.load_code != 0 || event == NULL)
        return; /* its completion could not be observed */
    work = event_new(NULL, 0, true);
    work->read = event_hold(event);
    event->reads++;
    event_queue(work);
    event_release(work);
}

/* Never fails itself: failures come from the events of batches. */
static int table_copy(void *state, const struct uva_device_copy *copy,
                      void **event_out, struct uva_error *error)
{
    struct device_event *after = copy->after.sync_event, *event;

    (void)error;
    (void)table_enter(state, true, "copy");
    if (after != NULL)
        (void)event_enter(&copy->after, "copy");
    event = event_new(after != NULL ? after->expectation : NULL,
                      after != NULL ? after->ordinal : 0, true);
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
                ? event_new(NULL, 0, true)
                : event_new(place->expectation, place->ordinal, true);
    event_queue(event);
    *event_out = event;
    return 0;
}

static void table_event_free(void *state, void *event)
{
    (void)table_enter(state, false, "event_free");
    event_end_use(event, "an event is freed");
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

/* ---- the end ------------------------------------------------------------ */

/* Runs independently: a device thread may be ending. */
static void late_teller(void *arg)
{
    struct armed *late;

    (void)arg;
    while ((late = device.late) != NULL) {
        device.late = late->next;
        peers_dawdle();
        armed_notify(late, 0);
    }
}

void device_end(void)
{
    device.over = true;
    if (device.late != NULL)
        peers_spawn("late teller of a device", late_teller, NULL);
}

void device_check(void)
{
    if (device.first != NULL || device.late != NULL)
        sim_fail("something is left to be done by the device");
    for (int i = 0; i < device.tables_used; i++)
        if (device.tables[i].live)
            sim_fail("a table was never unloaded");
}
