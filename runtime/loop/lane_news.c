/* SPDX-License-Identifier: Apache-2.0 */
/* The loop's part when jobs of its runtime wait for a thread that cannot be
 * had, when threads are written off, and when a lane stands. exec/pool.c
 * decides which threads those are.
 *
 * Happy path:  no thread can be created, or a given-up thread may return
 *              soon -> the workers post the wake-up -> a timer -> the workers
 *              look for threads again, and post the wake-up again if they find
 *              none.
 *
 * On close:    no attempt is made or logged once the loop detaches; jobs
 *              that still wait run on the threads that exist. */
#include "base/time_limits.h"
#include "loop/runtime_impl.h"

static void lane_retry_due(struct uva__timer *timer)
{
    struct uva_runtime *runtime =
        uva__container_of(timer, struct uva_runtime, lane_timer);

    uva__lane_retry(&runtime->rt->jobs);
}

static bool lane_news_on_wakeup(struct uva__wakeup *wakeup)
{
    struct uva__rt *rt = uva__container_of(wakeup, struct uva__rt, lanes);
    struct uva_runtime *runtime = rt->loop.runtime;
    const unsigned news = uva__lane_take_news(&rt->jobs);

    if (news & UVA__NEWS_WRITTEN_OFF)
        uva__rt_log(rt, UVA_LOG_INFO, NULL, NULL,
                    "thread written off: the call that it is in was cancelled "
                    "and does not return, and other work waits");
    if (news & UVA__NEWS_FULL)
        uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL,
                    "new sources wait: as many threads as may be are in calls "
                    "that were cancelled and do not return");
    if (news & UVA__NEWS_STANDS)
        uva__rt_log(rt, UVA_LOG_WARN, NULL, NULL,
                    "streams wait for a thread: all blocking threads are in "
                    "calls, and for a second none has returned; raise "
                    "`blocking_threads` of the workers (in Python: `threads` "
                    "of configure())");
    if (news & UVA__NEWS_RETRY && !runtime->lane_timer.running)
        uva__timer_start(rt, &runtime->lane_timer, UVA__LIMIT_RETRY_MS);
    return false;
}

static const struct uva__wakeup_ops lane_news_ops = {lane_news_on_wakeup, NULL};

void uva__lane_news_init(struct uva_runtime *runtime)
{
    runtime->rt->lanes.ops = &lane_news_ops;
    runtime->lane_timer.fire = lane_retry_due;
}
