/* SPDX-License-Identifier: Apache-2.0 */
/* The identity and the numbers of a stream: its label has the name, for the log
 * and the texts of errors, and a meter for each stage, which has the statistics
 * of uva_stream_get_stats() and the place where trace events come from. The
 * stream and its sources count the label, since either may outlive the other,
 * and any holder may read it.
 *
 * docs/architecture.md lists the calls of a stage (Statistics and the trace).
 */
#ifndef UVA_OBSERVE_LABEL_H
#define UVA_OBSERVE_LABEL_H

#include <stddef.h>

#include "base/clock.h"
#include "base/counter.h"
#include "loop/rt.h"
#include "uvarrow/stream.h"

struct uva__label;

/* ---- the meter of a stage ---------------------------------------------- */

/* Counters that the loop thread alone writes, which need no read-modify-write.
 */
struct uva__meter_loop {
    struct uva__counter requested; /* batches, in all; not of a map, as its
                                      source counts its requests */
    struct uva__counter batches;   /* passed on */
    struct uva__counter rows;      /* of them, as far as known then */
    struct uva__counter bytes;     /* of them */
    struct uva__counter dropped;   /* batches lost */
    struct uva__counter queued;    /* batches held now */
    struct uva__counter queued_bytes;
    struct uva__counter queued_max;
    struct uva__counter queued_bytes_max;
    struct uva__small_counter blocked; /* enum uva_waiting: its wait other than
                                          for its source and demand */
    struct uva__small_counter inside;  /* 1: in a user function */
    struct uva__small_counter paused;  /* 1: its consumer has paused it */
};

/* Counters that any thread writes. The first map of a producer counts the
 * batches for all its maps. */
struct uva__meter_shared {
    struct uva__small_counter jobs_waiting; /* for a worker thread */
    struct uva__small_counter jobs_running;
    struct uva__counter batches; /* counted at extraction */
    struct uva__counter rows;
    struct uva__counter bytes;
    struct uva__counter wakeups;
    struct uva__counter rows_expected; /* of a source, written once */
    struct uva__counter bytes_expected;
};

/* Times, in ns. The first two are written by the loop thread alone. */
struct uva__meter_times {
    struct uva__counter starved;
    struct uva__counter idle;
    struct uva__counter busy;
    struct uva__counter busy_max;
    struct uva__counter worker_wait;
};

/* Where trace events come from: a stage, or the consumer of a stream. */
struct uva__point {
    struct uva__atomic_ptr name; /* of the stage: static, or kept by the label;
                                    const char */
    struct uva__label *label;    /* borrows: it owns this */
    struct uva__rt *rt;          /* borrows: the label holds it */
    int32_t stage;               /* its number in the stream */
};

struct uva__meter {
    struct uva__point point;
    struct uva__small_counter sized; /* 1: `bytes` is counted */
    struct uva__small_counter over;  /* 1: its handler was released */
    struct uva__meter *source;      /* borrows: of a map, the meter of the stage
                                       with the batches that it changes */
    struct uva__meter_times *times; /* owns; NULL: times are not measured */
    struct uva__atomic_ptr next;    /* owns: of the stage that was added next */
    struct uva__atomic_ptr joined;  /* counts: labels of other streams that the
                                       stage takes in, a list */
    struct uva__atomic_ptr part;    /* borrows: the name of the stream before
                                       this stage, which takes in others, too;
                                       or NULL */
    struct uva__meter_loop loop;
    struct uva__meter_shared shared;
};

static inline void uva__point_set_name(struct uva__point *point,
                                       const char *name)
{
    uva__atomic_ptr_store(&point->name, (void *)(uintptr_t)name);
}

/* Whether events are to be reported. Thread: any. */
static inline bool uva__point_traces(const struct uva__point *point)
{
    return (point->rt->observed & UVA__OBSERVED_TRACE) != 0;
}

/* ---- events ------------------------------------------------------------- */

/* Begins a call of a source or of a user function: gives its time, or 0 if no
 * times are wanted. Thread: any. */
static inline uint64_t uva__span_begin(const struct uva__rt *rt)
{
    const unsigned timed = UVA__OBSERVED_MEASURE | UVA__OBSERVED_TRACE;

    return (rt->observed & timed) != 0 ? uva__clock_ns() : 0;
}

/* Ends a call whose time is wanted, on the same thread. Gives the time of the
 * end. */
uint64_t uva__span_end_timed(struct uva__meter *meter, const char *name,
                             int64_t ordinal, uint64_t since_ns);

/* The same, but `since_ns` is 0 if no times are wanted. `name` is static;
 * `ordinal` is the batch's, or -1. Gives the time of the end, or 0: a call that
 * follows at once may begin with it. */
static inline uint64_t uva__span_end(struct uva__meter *meter, const char *name,
                                     int64_t ordinal, uint64_t since_ns)
{
    return since_ns != 0 ? uva__span_end_timed(meter, name, ordinal, since_ns)
                         : 0;
}

/* The same for a call of a consumer, which has no statistics. */
void uva__point_span_end(const struct uva__point *point, const char *name,
                         int64_t ordinal, uint64_t since_ns);

/* The name of an instant. Thread: any. */
const char *uva__instant_name(enum uva_trace_kind kind);

/* Fills in the origin of an event; it borrows the texts. Thread: any. */
void uva__point_fill(const struct uva__point *point,
                     struct uva_trace_event *event);

/* Reports an instant. Thread: any. */
void uva__point_instant(const struct uva__point *point,
                        enum uva_trace_kind kind, int64_t value);

/* Reports that batch `ordinal` was made from batch `before` of the stream with
 * the label `from`. Thread: any. */
void uva__meter_link(const struct uva__meter *meter, int64_t ordinal,
                     const struct uva__label *from, int64_t before);

/* Reports a wait that began at `since_ns` (0: it was not timed), and has ended:
 * for a "worker" or a "device". Thread: any. */
void uva__meter_wait(const struct uva__meter *meter, const char *name,
                     int64_t ordinal, uint64_t since_ns);

/* ---- queues ------------------------------------------------------------- */

/* The stage holds `batches` with `bytes`. Thread: loop. */
void uva__meter_trace_held(const struct uva__meter *meter, int64_t batches,
                           int64_t bytes);
static inline void uva__meter_hold(struct uva__meter *meter, int64_t batches,
                                   int64_t bytes)
{
    struct uva__meter_loop *loop = &meter->loop;

    if (uva__point_traces(&meter->point) &&
        (batches != uva__counter_get(&loop->queued) ||
         bytes != uva__counter_get(&loop->queued_bytes)))
        uva__meter_trace_held(meter, batches, bytes);
    uva__counter_set(&loop->queued, batches);
    if (batches > uva__counter_get(&loop->queued_max))
        uva__counter_set(&loop->queued_max, batches);
    uva__counter_set(&loop->queued_bytes, bytes);
    if (bytes > uva__counter_get(&loop->queued_bytes_max))
        uva__counter_set(&loop->queued_bytes_max, bytes);
}

/* The source will give so many rows and bytes in all; 0 or less: unknown.
 * Thread: the one that reads it, once. */
static inline void uva__meter_expect(struct uva__meter *meter, int64_t rows,
                                     int64_t bytes)
{
    uva__counter_set(&meter->shared.rows_expected, rows > 0 ? rows : 0);
    uva__counter_set(&meter->shared.bytes_expected, bytes > 0 ? bytes : 0);
}

/* The stage is over, and empty. Thread: the last that uses it. */
void uva__meter_end(struct uva__meter *meter);

/* The stage's wait, other than for its source and demand: UVA_WAITING_WORKER,
 * _DEVICE, _MEMORY, or _NONE. Thread: loop. */
static inline void uva__meter_block(struct uva__meter *meter,
                                    enum uva_waiting blocked)
{
    uva__small_counter_set(&meter->loop.blocked, (int32_t)blocked);
}

/* Whether the loop thread is inside a user function. Thread: loop. */
static inline void uva__meter_enter(struct uva__meter *meter, bool inside)
{
    uva__small_counter_set(&meter->loop.inside, inside);
}

/* `n` batches were lost. Thread: loop. */
static inline void uva__meter_drop(struct uva__meter *meter, int64_t n)
{
    uva__counter_add(&meter->loop.dropped, n);
}

/* ---- jobs and wake-ups -------------------------------------------------- */

/* Submits a job of the stage, as uva__lane_submit() does, and notes the time in
 * `*submitted_ns`, if that is wanted. Thread: any. */
void uva__meter_submit(struct uva__meter *meter, enum uva_lane lane,
                       struct uva__job *job, uint64_t *submitted_ns);

/* A run of a job that was submitted so begins, on its thread; and it ends,
 * before the job is submitted again or another thread may use it. */
void uva__meter_run_begin(struct uva__meter *meter, uint64_t submitted_ns);
static inline void uva__meter_run_end(struct uva__meter *meter)
{
    uva__small_counter_add_shared(&meter->shared.jobs_running, -1);
}

/* A job that was submitted was taken back. Thread: any. */
static inline void uva__meter_take_back(struct uva__meter *meter)
{
    uva__small_counter_add_shared(&meter->shared.jobs_waiting, -1);
}

/* Counts and traces a wake-up that took a system call. Thread: any. */
void uva__meter_note_wakeup(struct uva__meter *meter);

/* Wakes the loop, as uva__rt_wake() does. Thread: any that has a reference to
 * the stage, which it keeps until this returns. */
static inline void uva__meter_wake(struct uva__meter *meter,
                                   struct uva__wakeup *wakeup)
{
    if (uva__rt_wake(meter->point.rt, wakeup))
        uva__meter_note_wakeup(meter);
}

/* As that, for every batch of a worker: see uva__rt_wake_outside(). */
static inline void uva__meter_wake_outside(struct uva__meter *meter,
                                           struct uva__wakeup *wakeup)
{
    if (uva__rt_wake_outside(meter->point.rt, wakeup))
        uva__meter_note_wakeup(meter);
}

/* ---- reading ------------------------------------------------------------ */

/* Fills in `out` but for `next` and `stream`. Thread: any that holds the label.
 */
void uva__meter_read(const struct uva__meter *meter,
                     struct uva_stage_stats *out);

/* ---- the label of a stream --------------------------------------------- */

/* A name, of the stream or of a source. Any thread may read it from the making
 * of the label on, so a name is never changed in place: a new one goes in front
 * of those before it. */
struct uva__label_name {
    struct uva__label_name *before; /* owns; may be NULL */
    char text[64];                  /* ended by a NUL */
};

struct uva__label {
    struct uva__rt *rt;        /* holds its memory */
    struct uva__atomic64 refs; /* the stream, its sources, checks on its hops */
    struct uva__atomic_ptr now;    /* owns: the name; may be NULL */
    struct uva__atomic_ptr part;   /* borrows: the name that it had when it took
                                      in other streams; or NULL */
    struct uva__label_name *kept;  /* owns: of its source; may be NULL */
    uint64_t id;                   /* number of the stream in its runtime */
    struct uva__atomic_ptr meters; /* owns: of its stages, the source first */
    struct uva__point consumer;    /* for trace events of the sink */
    struct uva__label *beside;     /* counts: in the list `joined` of a meter */
    bool shared;   /* its stages give batches to other streams too: the stages
                      above may run before the stream starts, and after it is
                      freed */
    uint32_t size; /* of its memory, with the bytes after it */
    struct uva__meter first; /* memory for the meter of the first stage */
};

/* Makes a label without a name, with one reference, and after it, for its
 * maker, `cleared` bytes and `more` that are not cleared: they are freed with
 * the label. NULL without memory. Thread: any. */
struct uva__label *uva__label_new(struct uva__rt *rt, size_t cleared,
                                  size_t more);

/* The memory after it, aligned as the label. Thread: any. */
static inline void *uva__label_behind(struct uva__label *label)
{
    return label + 1;
}

/* Counts references; the last release frees it. NULL is allowed. Thread: any.
 */
struct uva__label *uva__label_acquire(struct uva__label *label);
void uva__label_release(struct uva__label *label);

/* Sets the name: copies as many whole characters as fit. 0 or ENOMEM.
 * Thread: builder. */
UVA_MUST_CHECK int uva__label_set(struct uva__label *label, const char *name);

/* Keeps a copy of `name`, of as many whole characters as fit into 31 bytes, and
 * gives it: it lives as long as the label. NULL without memory. Thread:
 * builder.
 */
const char *uva__label_keep(struct uva__label *label, const char *name);

/* Adds the meter of a stage, after the present ones, which the label owns; of a
 * map of the stage with the meter `source`, unless that is NULL. NULL without
 * memory. Thread: builder. */
struct uva__meter *uva__label_add_meter(struct uva__label *label,
                                        const char *name,
                                        struct uva__meter *source);

/* Notes that the stage of `meter` takes in the stream with the label `other`,
 * to which it takes a reference; once for each label. Thread: builder. */
void uva__label_join(struct uva__meter *meter, struct uva__label *other);

/* The name, as long as the label lives; may be NULL. Thread: any. */
static inline const char *uva__label_text(const struct uva__label *label)
{
    const struct uva__label_name *name =
        label != NULL ? uva__atomic_ptr_load(&label->now) : NULL;

    return name != NULL ? name->text : NULL;
}

/* The name in front of its errors, as that, but NULL if it is the name of a
 * part. Thread: any. */
static inline const char *uva__label_whole(const struct uva__label *label)
{
    return label != NULL && uva__atomic_ptr_load(&label->now) !=
                                uva__atomic_ptr_load(&label->part)
               ? uva__label_text(label)
               : NULL;
}

/* Has the name belong to the part of the stream above the stage of `meter`,
 * which takes in others, too. Thread: builder. */
void uva__label_part(struct uva__label *label, struct uva__meter *meter);

#endif
