/* SPDX-License-Identifier: Apache-2.0 */
/* A stage with results that are given inside begin, by a few fibers in any
 * order, or by the cancel. A result given after the end of the stream, or of
 * its runtime, must be released, and free_ctx must follow the last one. */
#include "sim/async_stage.h"

#include <errno.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/engine.h"
#include "sim/peers.h"
#include "uvarrow/arrow.h"
#include "uvarrow/uvarrow.h"

/* A batch that was begun. */
struct answer {
    struct answer *next; /* owns: the batch begun before it */
    struct uva_reply *reply;
    struct ArrowDeviceArray batch; /* owns */
    bool fails;
};

struct answers {
    struct answer *queue; /* owns: batches that no fiber has taken */
    int64_t bad;          /* the batch that fails; or -1 */
    int32_t at_once;
    int32_t under_way; /* begun and not given */
    int fibers;        /* that give */
    bool freed;        /* free_ctx was called */
};

static void answers_free(struct answers *answers)
{
    if (answers->freed && answers->fibers == 0)
        arena_free(answers);
}

/* ---- giving ------------------------------------------------------------- */

/* Takes a batch that no fiber has taken: the batch of `reply`, or any; NULL if
 * there is none. */
static struct answer *answer_take(struct answers *answers,
                                  const struct uva_reply *reply)
{
    struct answer **at = &answers->queue, *answer;

    while (*at != NULL &&
           (reply != NULL ? (*at)->reply != reply
                          : (*at)->next != NULL && peers_chance(1, 2)))
        at = &(*at)->next;
    answer = *at;
    if (answer != NULL)
        *at = answer->next;
    return answer;
}

/* `answers` may be gone afterwards. */
static void answer_give(struct answers *answers, struct answer *answer)
{
    struct uva_error error;

    answers->under_way--;
    if (answer->fails) {
        uva_array_release(&answer->batch);
        (void)uva_error_set(&error, EDOM, "a bad batch");
        uva_reply_give(answer->reply, NULL, &error);
    } else {
        uva_reply_give(answer->reply, &answer->batch, NULL);
    }
    arena_free(answer);
}

static bool answers_are_due(void *arg)
{
    const struct answers *answers = arg;

    return answers->queue != NULL || answers->freed;
}

static void answerer(void *arg)
{
    struct answers *answers = arg;
    struct answer *answer;

    for (;;) {
        sim_wait(answers_are_due, answers);
        if (answers->freed)
            break;
        answer = answer_take(answers, NULL);
        peers_dawdle();
        expectation_note("a result is given");
        answer_give(answers, answer);
    }
    answers->fibers--;
    answers_free(answers);
}

/* ---- the library's calls ------------------------------------------------ */

static int stage_begin(void *ctx, struct uva_batch *in, struct uva_reply *reply)
{
    struct answers *answers = ctx;
    const bool bad = batches_ordinal(&in->data.array) == answers->bad;
    struct answer *answer;

    expectation_note("a result is begun for batch %lld",
                     (long long)batches_ordinal(&in->data.array));
    if (answers->freed)
        sim_fail("begin after free_ctx");
    if (answers->under_way >= answers->at_once)
        sim_fail("more than %d results are under way", answers->at_once);
    peers_dawdle();
    if (bad && peers_chance(1, 2))
        return EDOM;
    answer = arena_new(sizeof(*answer), "an answer");
    batches_add_hop(&in->data.array);
    uva_array_move(&in->data, &answer->batch);
    answer->reply = reply;
    answer->fails = bad;
    answers->under_way++;
    if (peers_chance(1, 3)) {
        answer_give(answers, answer);
        return 0;
    }
    expectation_note("a result will come");
    answer->next = answers->queue;
    answers->queue = answer;
    return 0;
}

static void stage_cancel(void *ctx, struct uva_reply *reply)
{
    struct answers *answers = ctx;
    struct answer *answer;

    expectation_note("a result is not wanted any more");
    if (answers->freed)
        sim_fail("cancel after free_ctx");
    answer = peers_chance(1, 2) ? answer_take(answers, reply) : NULL;
    if (answer != NULL)
        answer_give(answers, answer);
}

static void stage_free(void *ctx)
{
    struct answers *answers = ctx;

    if (answers->freed || answers->under_way != 0)
        sim_fail("free_ctx before the last result");
    answers->freed = true;
    answers_free(answers);
}

void async_add_stage(struct uva_stream *stream, struct expectation *expectation)
{
    struct answers *answers = arena_new(sizeof(*answers), "answers");
    const struct uva_async_map options = {
        .begin = stage_begin,
        .cancel = peers_chance(1, 2) ? stage_cancel : NULL,
        .free_ctx = stage_free,
        .ctx = answers,
        .at_once = 1 + (int32_t)sim_choose(4),
        .unordered = peers_chance(1, 3),
        .window = peers_window()};

    answers->at_once = options.at_once;
    answers->bad = -1;
    answers->fibers = 1 + (int)sim_choose(2);
    if (expectation->total > 0 && peers_chance(1, 10)) {
        answers->bad = (int64_t)sim_choose((uint64_t)expectation->total);
        expectation->excuses |= EXCUSE_MAP;
    }
    expectation->hops++;
    expectation->unordered = expectation->unordered || options.unordered;
    expectation_note("chain %d: map_async, %d at once%s, %d fibers, bad at "
                     "%lld, window %d",
                     expectation->number, options.at_once,
                     options.unordered ? ", unordered" : "", answers->fibers,
                     (long long)answers->bad, options.window.batches);
    for (int i = answers->fibers; i > 0; i--)
        peers_spawn("answerer", answerer, answers);
    (void)uva_stream_map_async(stream, &options);
}
