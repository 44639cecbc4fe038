/* SPDX-License-Identifier: Apache-2.0 */
/* uva_group: streams that are cancelled together. A member stands for each
 * stream of the group. It holds no reference to its stream: while it is in the
 * group, the stream's memory is valid, since the stream takes it out before it
 * is freed.
 *
 * Happy path:  add -> the stream ends, and takes its member out -> the last one
 *              posts the wake-up -> the loop calls the user's function.
 *
 * Failures: a stream; with fail_together it cancels the group.
 *
 * On cancel:   each stream is cancelled, one after the other, without the lock.
 * On close:    of the runtime: its streams end, and unstarted ones
 *              count as ended. */
#include <errno.h>

#include "base/memory.h"
#include "loop/loop.h"
#include "stream/stream_impl.h"

struct member {
    struct uva__end_watch watch;
    struct uva_group *group;      /* counts */
    struct uva_stream *stream;    /* borrows */
    struct member *next, *before; /* borrow: its neighbours in the ring */
    bool cancelled;               /* its stream was */
};

struct uva_group {
    struct uva__rt *rt;        /* counts */
    struct uva__wakeup wakeup; /* posted by on_done, and when the last stream
                                  has ended; counted by the user, members,
                                  posts, and until on_done is over */
    bool fail_together;

    struct uva__lock lock;
    struct {
        struct member *members;  /* owns: a ring, in which the members that were
                                    not cancelled come first */
        bool is_cancelled;       /* the group was */
        struct uva__failure why; /* set once, with that */
        uva_call_fn *fn;         /* of on_done; NULL: not registered */
        void *ctx;               /* borrows: its argument */
    } locked;

    struct {                       /* the loop thread's alone */
        struct uva__hold_up close; /* held while `fn` is to be called */
        bool over;                 /* it was called */
        bool keeps_loop;           /* keeps the loop alive */
    } loop;
};

/* ---- life --------------------------------------------------------------- */

static void group_free(struct uva__wakeup *wakeup)
{
    struct uva_group *group =
        uva__container_of(wakeup, struct uva_group, wakeup);
    struct uva__rt *rt = group->rt;

    uva__failure_fini(&group->locked.why, &rt->allocator);
    uva__memory_free(&rt->allocator, group, sizeof(*group));
    uva__rt_release(rt);
}

static bool group_on_wakeup(struct uva__wakeup *wakeup);

int uva_group_new(struct uva_runtime *runtime, bool fail_together,
                  struct uva_group **out, struct uva_error *error)
{
    static const struct uva__wakeup_ops wakeup_ops = {group_on_wakeup,
                                                      group_free};
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva_group *group;

    if (rt == NULL || out == NULL)
        return uva_error_set(error, EINVAL, "group: the %s is NULL",
                             rt == NULL ? "runtime" : "result");
    if (!uva__rt_is_alive(rt))
        return uva_error_set(error, EPERM,
                             "a forked child cannot use its parent's runtime");
    group = uva__memory_new(&rt->allocator, sizeof(*group));
    if (group == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a group");
    group->rt = uva__rt_acquire(rt);
    group->fail_together = fail_together;
    uva__wakeup_init(&group->wakeup, &wakeup_ops, 1);
    *out = group;
    return 0;
}

void uva_group_release(struct uva_group *group)
{
    if (group != NULL && uva__rt_is_alive(group->rt))
        uva__wakeup_release(&group->wakeup);
}

/* ---- members ------------------------------------------------------------ */

static void member_link_locked(struct member *m)
{
    struct member **first = &m->group->locked.members;

    m->next = *first != NULL ? *first : m;
    m->before = *first != NULL ? (*first)->before : m;
    m->next->before = m;
    m->before->next = m;
    *first = m;
}

static void member_unlink_locked(struct member *m)
{
    struct member **first = &m->group->locked.members;

    m->before->next = m->next;
    m->next->before = m->before;
    if (*first == m)
        *first = m->next != m ? m->next : NULL;
}

/* The stream has ended: frees its member. */
static void member_end(struct member *m, const struct uva__failure *failure)
{
    struct uva_group *group = m->group;
    bool empty;

    uva__lock_take(&group->lock);
    member_unlink_locked(m);
    empty = group->locked.members == NULL;
    uva__lock_drop(&group->lock);
    uva__memory_free(&group->rt->allocator, m, sizeof(*m));
    if (failure != NULL && group->fail_together)
        uva_group_cancel(group, failure->code, uva__failure_message(failure));
    if (empty)
        uva__rt_wake(group->rt, &group->wakeup);
    uva__wakeup_release(&group->wakeup);
}

static void member_ended(struct uva__end_watch *watch,
                         const struct uva__failure *failure)
{
    member_end(uva__container_of(watch, struct member, watch), failure);
}

/* ---- cancel ------------------------------------------------------------- */

/* Counts a reference to the memory of a stream, unless it is being freed. */
static bool stream_try_hold(struct uva_stream *stream)
{
    uint64_t refs = uva__atomic64_load(&stream->wakeup.refs);

    while (refs != 0)
        if (uva__atomic64_cas(&stream->wakeup.refs, &refs, refs + 1))
            return true;
    return false;
}

/* Gives a stream that was not cancelled so far, with a reference to its memory;
 * NULL: there is none. */
static struct uva_stream *group_pop(struct uva_group *group)
{
    struct uva_stream *stream = NULL;
    struct member *m;

    uva__lock_take(&group->lock);
    while (stream == NULL && (m = group->locked.members) != NULL &&
           !m->cancelled) {
        m->cancelled = true;
        group->locked.members = m->next;
        if (stream_try_hold(m->stream))
            stream = m->stream;
    }
    uva__lock_drop(&group->lock);
    return stream;
}

static void group_cancel_all(struct uva_group *group)
{
    const struct uva__failure *why = &group->locked.why;
    struct uva_stream *stream;

    while ((stream = group_pop(group)) != NULL) {
        uva_stream_cancel(stream, why->code, uva__failure_message(why));
        uva__wakeup_release(&stream->wakeup);
    }
}

void uva_group_cancel(struct uva_group *group, int code, const char *reason)
{
    struct uva__failure why = {0};
    bool first;

    if (group == NULL || !uva__rt_is_alive(group->rt))
        return;
    uva__failure_format(&why, &group->rt->allocator,
                        code != 0 ? code : ECANCELED, "%s",
                        reason != NULL ? reason : "cancelled");
    uva__lock_take(&group->lock);
    first = !group->locked.is_cancelled;
    if (first)
        group->locked.why = why;
    group->locked.is_cancelled = true;
    uva__lock_drop(&group->lock);
    if (first)
        group_cancel_all(group);
    else
        uva__failure_fini(&why, &group->rt->allocator);
}

/* ---- adding a stream ---------------------------------------------------- */

static struct member *member_new(struct uva_group *group,
                                 struct uva_stream *stream)
{
    struct member *m = uva__memory_new(&group->rt->allocator, sizeof(*m));

    if (m == NULL)
        return NULL;
    m->watch.ended = member_ended;
    m->stream = stream;
    m->group = group;
    uva__wakeup_acquire(&group->wakeup);
    return m;
}

static int group_check(const struct uva_group *group,
                       const struct uva_stream *stream)
{
    if (group == NULL || stream == NULL)
        return EINVAL;
    if (!uva__rt_is_alive(group->rt))
        return EPERM;
    if (stream->rt == NULL)
        return uva_stream_status(stream, NULL);
    return stream->rt == group->rt ? 0 : EINVAL;
}

int uva_group_add(struct uva_group *group, struct uva_stream *stream)
{
    const int code = group_check(group, stream);
    struct member *m;
    bool is_cancelled;

    if (code != 0)
        return code;
    m = member_new(group, stream);
    if (m == NULL)
        return ENOMEM;
    uva__lock_take(&group->lock);
    member_link_locked(m);
    is_cancelled = group->locked.is_cancelled;
    uva__lock_drop(&group->lock);
    if (!uva__stream_watch_end(stream, &m->watch))
        member_end(m, uva__stream_failure(stream));
    else if (is_cancelled)
        group_cancel_all(group);
    return 0;
}

/* ---- the end ------------------------------------------------------------ */

/* All streams of the runtime have ended. */
static void group_close(struct uva__hold_up *hold_up)
{
    struct uva_group *group =
        uva__container_of(hold_up, struct uva_group, loop.close);

    uva__rt_wake(group->rt, &group->wakeup);
}

static const struct uva__hold_up_ops close_ops = {group_close, NULL};

static void group_wait(struct uva_group *group)
{
    uva__loop_keep(group->rt, &group->loop.keeps_loop);
    uva__rt_hold_up(group->rt, &group->loop.close, &close_ops);
    uva__rt_leave(group->rt); /* `close` holds up the close from now on */
}

/* Calls the user's function, which may release the group. */
static void group_report(struct uva_group *group)
{
    struct uva__rt *rt = group->rt;

    group->loop.over = true;
    uva__rt_drop_hold_up(rt, &group->loop.close);
    group->locked.fn(group->locked.ctx);
    uva__loop_unref(rt);
    uva__wakeup_release(&group->wakeup);
}

static bool group_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva_group *group =
        uva__container_of(wakeup, struct uva_group, wakeup);
    bool empty, registered;

    uva__lock_take(&group->lock);
    empty = group->locked.members == NULL;
    registered = group->locked.fn != NULL;
    uva__lock_drop(&group->lock);
    if (!registered || group->loop.over)
        return false;
    if (group->loop.close.state == UVA__HOLD_UP_FREE)
        group_wait(group);
    if (empty || group->loop.close.state == UVA__HOLD_UP_CLOSING)
        group_report(group);
    return false;
}

int uva_group_on_done(struct uva_group *group, uva_call_fn *fn, void *ctx)
{
    bool first;

    if (group == NULL || fn == NULL)
        return EINVAL;
    if (!uva__rt_is_alive(group->rt))
        return EPERM;
    if (!uva__rt_enter(group->rt))
        return ESHUTDOWN;
    uva__wakeup_acquire(&group->wakeup);
    uva__lock_take(&group->lock);
    first = group->locked.fn == NULL;
    if (first) {
        group->locked.fn = fn;
        group->locked.ctx = ctx;
    }
    uva__lock_drop(&group->lock);
    if (!first) {
        uva__rt_leave(group->rt);
        uva__wakeup_release(&group->wakeup);
        return EBUSY;
    }
    if (uva__rt_on_loop(group->rt))
        uva__loop_keep(group->rt, &group->loop.keeps_loop);
    uva__rt_wake(group->rt, &group->wakeup);
    return 0;
}
