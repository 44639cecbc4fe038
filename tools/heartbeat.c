/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  start -> (beat)* -> stop.
 * Failures: none. On cancel and close: stop may be called at any time; the last
 * gap is counted. */
#include "heartbeat.h"

#include <assert.h>
#include <string.h>

#define BEAT_MS ((uint64_t)1)
#define BEAT_NS (BEAT_MS * 1000000)

/* ---- classes ------------------------------------------------------------ */

/* The histogram has eight classes for each power of two. */
static unsigned class_of(uint64_t value)
{
    unsigned power = 0;

    if (value < 8)
        return (unsigned)value;
    while (value >> power >= 16)
        power++;
    return 8 * power + (unsigned)(value >> power);
}

/* The largest value of a class. */
static uint64_t class_top(unsigned class)
{
    const unsigned power = class / 8 - 1;

    if (class < 16)
        return class;
    return ((uint64_t)(class - 8 * power + 1) << power) - 1;
}

/* ---- beats -------------------------------------------------------------- */

static void heartbeat_count(struct uva__heartbeat *heart)
{
    const uint64_t now = uv_hrtime();
    const uint64_t gap = now - heart->last_ns;
    const uint64_t late = gap > BEAT_NS ? gap - BEAT_NS : 0;

    assert(class_of(late) < UVA__HEARTBEAT_CLASSES);
    heart->last_ns = now;
    heart->beats++;
    heart->counts[class_of(late)]++;
    if (late > heart->max_ns)
        heart->max_ns = late;
}

static void heartbeat_beat(uv_timer_t *timer)
{
    heartbeat_count(timer->data);
}

void uva__heartbeat_start(struct uva__heartbeat *heart, uv_loop_t *loop)
{
    memset(heart, 0, sizeof(*heart));
    (void)uv_timer_init(loop, &heart->timer);
    heart->timer.data = heart;
    uv_update_time(loop);
    (void)uv_timer_start(&heart->timer, heartbeat_beat, BEAT_MS, BEAT_MS);
    heart->last_ns = uv_hrtime();
}

void uva__heartbeat_stop(struct uva__heartbeat *heart)
{
    if (uv_is_closing((uv_handle_t *)&heart->timer))
        return;
    heartbeat_count(heart);
    uv_close((uv_handle_t *)&heart->timer, NULL);
}

uint64_t uva__heartbeat_quantile_ns(const struct uva__heartbeat *heart,
                                    double share)
{
    const double wanted = share * (double)heart->beats;
    uint64_t seen = 0;
    unsigned class;

    assert(share >= 0 && share <= 1);
    for (class = 0; class < UVA__HEARTBEAT_CLASSES; class ++) {
        seen += heart->counts[class];
        if (seen > 0 && (double)seen >= wanted)
            break;
    }
    return class_top(class) < heart->max_ns ? class_top(class) : heart->max_ns;
}
