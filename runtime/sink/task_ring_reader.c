/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  a batch is wanted -> (waits) -> a task is taken, more are
 * requested when few are left, the task is extracted -> end.
 *
 * What can fail:
 * - the stream: reported behind the tasks before that, and then by every call;
 * - an extraction: the stream's own report is waited for, since each extraction
 * of ours that fails is followed by an on_error or, late, by a release.
 *
 * On cancel and close: the loop takes the tasks in the ring, one by one, while
 * the reader may do so too: each of them goes to one of the two.
 *
 * A reader does not spin before it sleeps: it cannot know whether the loop is
 * on another CPU, and if it is not, spinning costs ten times what it can save.
 */
#include "sink/task_ring_reader.h"

#include <errno.h>
#include <string.h>

#include "uvarrow/arrow.h"

/* Wakes the loop for what the reader has noted. */
static void user_post(struct uva__outlet *o)
{
    uva__hub_post(o->stream->hub, &o->stream->node);
}

/* ---- waiting ------------------------------------------------------------- */

static int user_say(struct uva__outlet *o, int code, const char *text)
{
    o->reader.text = text;
    return code;
}

static int user_check_alive(struct uva__outlet *o)
{
    return uva__hub_is_alive(o->stream->hub)
               ? 0
               : user_say(o, EPERM,
                          "a forked child cannot read its parent's streams");
}

/* Once the runtime has closed, no wake-up can come. */
static int user_check_thread(struct uva__outlet *o)
{
    const struct uva__hub *hub = o->stream->hub;

    if (!uva__hub_must_not_wait(hub) || uva__hub_is_shut(hub))
        return 0;
    return user_say(o, EDEADLK,
                    "to_blocking: this would wait on a thread that others "
                    "wait for: that of a loop, or a compute worker; read the "
                    "stream on another one");
}

/* Reads `news` before `tail`: so with the end, all tasks before it are seen. A
 * cancel sets its bit before it empties the ring: so an empty ring is not taken
 * for the end. */
static uint64_t user_look(const struct uva__outlet *o)
{
    const uint64_t news = uva__word_load(&o->news);

    return uva__word_load(&o->tail) != uva__word_load(&o->head)
               ? news | UVA__NEWS_TASK
               : news | (uva__word_load(&o->news) & UVA__NEWS_CANCELLED);
}

/* The ring has drained below its byte limit: resumes the producer. */
static void user_tell_hunger(struct uva__outlet *o, uint64_t news)
{
    if (!(news & UVA__NEWS_TASK) && uva__word_exchange(&o->held, 0) != 0)
        user_post(o);
}

/* Waits for one of the bits in `wanted`; returns all bits that are set. */
static uint64_t user_await(struct uva__outlet *o, uint64_t wanted)
{
    uint64_t news = user_look(o);
    uint32_t seen;

    if (news & wanted)
        return news;
    uva__lane_wait_begin();
    for (;;) {
        seen = uva__sleeper_begin(&o->sleeper);
        news = user_look(o);
        if (news & wanted)
            break;
        user_tell_hunger(o, news);
        uva__sleeper_sleep(&o->sleeper, seen);
    }
    uva__sleeper_end(&o->sleeper);
    uva__lane_wait_end();
    return news;
}

/* ---- taking -------------------------------------------------------------- */

/* Has more batches requested once few of those requested are outstanding. */
static void user_refill(struct uva__outlet *o, uint64_t taken)
{
    const uint64_t left = o->reader.asked - taken;
    const uint64_t room = (uint64_t)o->window.batches - left;

    if (left > (uint64_t)o->window.refill)
        return;
    o->reader.asked += room;
    uva__word_add(&o->wanted, room);
    user_post(o);
}

/* Takes the task at the head; false if the loop has taken it meanwhile, or is
 * about to take all. */
static bool user_take(struct uva__outlet *o, uint64_t news,
                      struct ArrowAsyncTask *out)
{
    uint64_t head = uva__word_load(&o->head);
    struct uva__outlet_place place;

    if (head == uva__word_load(&o->tail))
        return false;
    place = o->ring[head & o->ring_mask];
    *out = place.task;
    if (!uva__word_cas(&o->head, &head, head + 1))
        return false;
    uva__word_store(&o->eaten,
                    uva__word_peek(&o->eaten) + (uint64_t)place.bytes);
    if (uva__word_load(&o->news) & UVA__NEWS_CANCELLED) {
        uva_task_discard(out); /* tasks before it may have been discarded */
        return false;
    }
    if (!(news & UVA__NEWS_END))
        user_refill(o, head + 1);
    return true;
}

/* Stores how the stream ended, which all later calls return (G-66), and lets
 * the stream be done. Tasks that are still in the ring are not used: the stream
 * failed at an earlier task. */
static int user_conclude(struct uva__outlet *o, uint64_t news)
{
    struct ArrowAsyncTask task;

    if (!o->reader.told) {
        o->reader.told = true;
        o->reader.code = news & UVA__NEWS_BAD ? o->failure.code : 0;
        while (user_look(o) & UVA__NEWS_TASK)
            if (user_take(o, UVA__NEWS_END, &task))
                uva_task_discard(&task);
        uva__word_exchange(&o->finished, 1);
        user_post(o);
    }
    return user_say(o, o->reader.code,
                    o->reader.code != 0 ? uva__failure_message(&o->failure)
                                        : NULL);
}

/* Only the stream has, or will have, more of the error than its code. */
static int user_extraction_failed(struct uva__outlet *o, int code)
{
    const uint64_t news = user_await(o, UVA__NEWS_BAD | UVA__NEWS_RELEASED);

    if (news & UVA__NEWS_BAD)
        return user_conclude(o, news);
    return uva__user_side_refuse(o, code, strerror(code));
}

static int user_extract(struct uva__outlet *o, struct ArrowDeviceArray *out)
{
    struct ArrowAsyncTask task;
    uint64_t news;
    int code;

    do {
        news = user_await(o, UVA__NEWS_TASK | UVA__NEWS_END | UVA__NEWS_BAD);
        if (!(news & UVA__NEWS_TASK))
            return user_conclude(o, news);
    } while (!user_take(o, news, &task));
    code = uva_task_extract(&task, out);
    return code == 0 ? user_say(o, 0, NULL) : user_extraction_failed(o, code);
}

int uva__user_side_next(struct uva__outlet *o, struct ArrowDeviceArray *out)
{
    int code = user_check_alive(o);

    out->array.release = NULL;
    if (code == 0)
        code = user_check_thread(o);
    if (code == 0)
        code = o->reader.told ? user_conclude(o, 0) : user_extract(o, out);
    if (out->array.release != NULL)
        return code;
    memset(out, 0, sizeof(*out)); /* G-67 */
    out->device_type = o->device_type;
    return code;
}

int uva__user_side_schema(struct uva__outlet *o, struct ArrowSchema *out)
{
    const uint64_t wanted = UVA__NEWS_SCHEMA | UVA__NEWS_BAD;
    int code = user_check_alive(o);
    uint64_t news;

    memset(out, 0, sizeof(*out));
    if (code != 0)
        return code;
    news = user_look(o);
    if (!(news & wanted)) {
        code = user_check_thread(o);
        if (code != 0)
            return code;
        news = user_await(o, wanted);
    }
    if (!(news & UVA__NEWS_SCHEMA))
        return user_conclude(o, news);
    code = uva_schema_copy(o->stream->loop.info.schema, out);
    return user_say(o, code, code == 0 ? NULL : strerror(code));
}

int uva__user_side_refuse(struct uva__outlet *o, int code, const char *text)
{
    uva_stream_cancel(o->stream, code, text);
    return user_conclude(o, user_await(o, UVA__NEWS_BAD));
}

const char *uva__user_side_text(const struct uva__outlet *o)
{
    return o->reader.text;
}
