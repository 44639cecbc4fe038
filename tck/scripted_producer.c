/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a script, and the callbacks they make.
 *
 * Happy path:  the subject makes a consumer -> the words are played on the
 *              case's thread, on a thread of their own or on many -> the
 *              outcome is known, and all tasks, arrays and schemas have been
 *              returned.
 * What can fail: the consumer; that is a breach or the verdict.
 * On cancel:   playing continues; the script decides what follows.
 *
 * What is lent for one call only (task, schema, strings) is overwritten when
 * the call returns, so that a consumer that kept a pointer runs into a trap.
 * The rules for what the consumer may do, and when, are in warden.h. */
#include "tck/scripted_producer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tck/checker.h"
#include "tck/thread_barrier.h"
#include "tck/consumer_rules.h"

enum { WORD = 24, BLOCK = 64 };

/* ---- tasks -------------------------------------------------------------- */

/* Replaces extract_data once the call that lent the task has returned. */
static int trap_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct uva__feeder_task *task = self->private_data;

    (void)out;
    uva__trial_breach(task->feeder->trial, "AT-13",
                      "the task struct was used after on_next_task");
    uva__trial_fail(task->feeder->trial,
                    "AT-13: the task struct was used after on_next_task");
}

static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct uva__feeder_task *task = self->private_data;
    struct uva__feeder *feeder = task->feeder;

    uva__trial_note(feeder->trial, "   extract(%" PRId64 ")%s", task->ordinal,
                    out == NULL ? " to NULL" : "");
    if (uva__word_exchange(&task->spent, 1) != 0) {
        uva__trial_breach(feeder->trial, "AT-03",
                          "task %" PRId64 " was extracted twice",
                          task->ordinal);
        return EINVAL;
    }
    (void)uva__word_add(&feeder->spent, 1);
    uva__trial_changed(feeder->trial);
    if (task->broken)
        return EIO;
    if (out == NULL)
        return 0;
    if (task->hollow)
        out->array.release = NULL;
    else
        uva__ration_array(&feeder->books, task->ordinal, task->kind, out);
    return 0;
}

/* ---- metadata ----------------------------------------------------------- */

/* Writes a block with one pair, at an odd address. */
static const char *block_write(char *to, const char *value, int32_t size)
{
    const int32_t numbers[] = {1, 3};

    to += ((uintptr_t)to & 1) == 0;
    memcpy(to, numbers, sizeof(numbers));
    memcpy(to + 8, "tck", 3);
    memcpy(to + 11, &size, sizeof(size));
    memcpy(to + 15, value, (size_t)size);
    return to;
}

/* Writes a block that claims to have -1 pairs. */
static const char *block_smudge(char *to)
{
    const int32_t none = -1;

    memcpy(to, &none, sizeof(none));
    return to;
}

/* ---- callbacks ---------------------------------------------------------- */

static void say_schema(struct uva__feeder *feeder)
{
    struct ArrowSchema schema;
    int code;

    uva__ration_schema(&feeder->books, &schema);
    uva__warden_enter(feeder, 'S');
    code = feeder->handler->on_schema(feeder->handler, &schema);
    uva__warden_leave(feeder, 'S', code);
    if (schema.release != NULL) {
        uva__trial_breach(feeder->trial, "AH-06",
                          "on_schema returned and left its schema live");
        schema.release(&schema);
    }
    memset(&schema, 0xDD, sizeof(schema));
}

static void say_task(struct uva__feeder *feeder,
                     struct uva__feeder_task *payload, const char *metadata)
{
    struct ArrowAsyncTask task = {task_extract, payload};
    int code;

    (void)uva__word_add(&feeder->offered, 1);
    uva__trial_changed(feeder->trial);
    uva__warden_enter(feeder, 'T');
    code = feeder->handler->on_next_task(feeder->handler, &task, metadata);
    uva__warden_leave(feeder, 'T', code);
    if (task.private_data != payload)
        uva__trial_breach(feeder->trial, "AT-14",
                          "the task's private_data was changed");
    /* The consumer refused the task and did not extract it, so it is ours
     * again. Clause: LC-18. */
    if (code != 0 && uva__word_exchange(&payload->spent, 1) == 0)
        (void)uva__word_add(&feeder->spent, 1);
    task = (struct ArrowAsyncTask){trap_extract, payload};
    uva__trial_changed(feeder->trial);
}

static void say_end(struct uva__feeder *feeder)
{
    uva__warden_enter(feeder, 'N');
    (void)feeder->handler->on_next_task(feeder->handler, NULL, NULL);
    uva__warden_leave(feeder, 'N', 0);
}

static void say_error(struct uva__feeder *feeder, const char *how)
{
    char text[BLOCK] = "the feeder failed";
    char block[BLOCK] = "";
    const char *metadata = NULL;
    int code = EIO;

    if (how[0] == '-' && strcmp(how, "-tagged") == 0)
        metadata = block_write(block, "a\0b\0c", 5);
    else if (how[0] == '-' && strcmp(how, "-mute") != 0)
        code = atoi(how + 1);
    uva__warden_enter(feeder, 'E');
    feeder->handler->on_error(feeder->handler, code,
                              strcmp(how, "-mute") == 0 ? NULL : text,
                              metadata);
    uva__warden_leave(feeder, 'E', 0);
    memset(text, 0xDD, sizeof(text) - 1);
    memset(block, 0xDD, sizeof(block));
}

static void say_release(struct uva__feeder *feeder)
{
    uva__warden_enter(feeder, 'R');
    feeder->handler->release(feeder->handler);
    uva__warden_leave(feeder, 'R', 0);
}

/* ---- the producer object ------------------------------------------------ */

/* Argument of a wait. */
struct eagerness {
    struct uva__feeder *feeder;
    uint64_t offered;
};

static bool eagerness_is_over(void *ctx)
{
    struct eagerness *eagerness = ctx;

    return uva__word_load(&eagerness->feeder->offered) != eagerness->offered;
}

static void object_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct uva__feeder *feeder = self->private_data;
    struct eagerness eagerness = {feeder, uva__word_load(&feeder->offered)};
    const bool inside = uva__warden_request(feeder, self, n);

    uva__trial_changed(feeder->trial);
    if (feeder->eager && !inside)
        (void)uva__trial_quiet(feeder->trial, eagerness_is_over, &eagerness);
    uva__warden_back(feeder);
}

static void object_cancel(struct ArrowAsyncProducer *self)
{
    struct uva__feeder *feeder = self->private_data;

    uva__warden_cancel(feeder, self);
    uva__trial_changed(feeder->trial);
    uva__warden_back(feeder);
}

/* ---- words -------------------------------------------------------------- */

static bool word_is(const char *word, const char *what)
{
    return strcmp(word, what) == 0;
}

static void word_task(struct uva__feeder *feeder, const char *word)
{
    const uint64_t ordinal = uva__word_load(&feeder->offered);
    struct uva__feeder_task *task = &feeder->tasks[ordinal];
    char block[BLOCK];
    const char *metadata = NULL;

    if (!uva__warden_may_offer(feeder, word_is(word, "leftover")))
        return;
    *task = (struct uva__feeder_task){
        .feeder = feeder,
        .ordinal = (int64_t)ordinal,
        .broken = word_is(word, "broken"),
        .hollow = word_is(word, "hollow"),
        .kind = word_is(word, "alien")    ? UVA__RATION_ALIEN
                : word_is(word, "future") ? UVA__RATION_FUTURE
                : word_is(word, "first")  ? UVA__RATION_FIRST
                                          : UVA__RATION_PLAIN};
    if (word_is(word, "tagged"))
        metadata = block_write(block, "v\0v", 3);
    else if (word_is(word, "smudged"))
        metadata = block_smudge(block);
    say_task(feeder, task, metadata);
    memset(block, 0xDD, sizeof(block));
}

/* Makes the callback that a word stands for. */
static void word_say(struct uva__feeder *feeder, const char *word)
{
    if (word_is(word, "schema"))
        say_schema(feeder);
    else if (word_is(word, "end"))
        say_end(feeder);
    else if (strncmp(word, "error", 5) == 0)
        say_error(feeder, word + 5);
    else if (word_is(word, "release"))
        say_release(feeder);
    else
        word_task(feeder, word);
}

/* A callback that a new thread makes. */
struct saying {
    struct uva__feeder *feeder;
    const char *word;
};

static void saying_run(void *ctx)
{
    struct saying *saying = ctx;

    word_say(saying->feeder, saying->word);
}

static void word_play(struct uva__feeder *feeder, const char *word)
{
    const struct timespec pause = {.tv_nsec = 3000000};
    struct saying saying = {feeder, word};

    if (word_is(word, "bounce"))
        feeder->bounces = true;
    else if (word_is(word, "slow"))
        feeder->slow = true;
    else if (word_is(word, "eager"))
        feeder->eager = true;
    else if (word_is(word, "cancelled"))
        uva__trial_await(feeder->trial, uva__warden_is_cancelled, feeder,
                         "a cancel");
    else if (word_is(word, "listen"))
        uva__warden_listen(feeder);
    else {
        if (feeder->slow)
            (void)nanosleep(&pause, NULL);
        if (feeder->bounces)
            uva__crowd_run(feeder->trial, 1, saying_run, &saying);
        else
            word_say(feeder, word);
    }
}

static void *feeder_play(void *ctx)
{
    struct uva__feeder *feeder = ctx;
    char word[WORD];

    while (*feeder->rest != '\0') {
        const size_t size = strcspn(feeder->rest, " *");
        long times = 1;

        memcpy(word, feeder->rest, size);
        word[size] = '\0';
        feeder->rest += size;
        if (*feeder->rest == '*')
            times = strtol(feeder->rest + 1, (char **)&feeder->rest, 10);
        feeder->rest += strspn(feeder->rest, " ");
        if (word_is(word, "thread")) {
            feeder->threaded = true;
            uva__trial_thread(feeder->trial, feeder_play, feeder);
            return NULL;
        }
        for (; times > 0; times--)
            word_play(feeder, word);
    }
    uva__word_store(&feeder->played, 1);
    uva__trial_changed(feeder->trial);
    return NULL;
}

/* ---- a run -------------------------------------------------------------- */

static bool feeder_is_played(void *ctx)
{
    struct uva__feeder *feeder = ctx;

    return uva__word_load(&feeder->played) != 0;
}

static bool tasks_are_spent(void *ctx)
{
    struct uva__feeder *feeder = ctx;

    return uva__word_load(&feeder->spent) == uva__word_load(&feeder->offered);
}

/* Argument of a wait. */
struct asking {
    struct uva__feeder *feeder;
    struct uva_subject_outcome *outcome;
};

static bool outcome_is_known(void *ctx)
{
    struct asking *asking = ctx;
    struct uva__feeder *feeder = asking->feeder;
    int32_t code;

    memset(asking->outcome, 0, sizeof(*asking->outcome));
    asking->outcome->tag_size = -1;
    code = feeder->trial->subject.outcome(feeder->id, asking->outcome);
    if (code != 0 && code != EAGAIN)
        uva__trial_fail(feeder->trial, "uva_subject_report() returned %d",
                        (int)code);
    return code == 0;
}

/* Waits for what the consumer must do after the script. The first wait that
 * fails uses up the full time limit; later ones get a short one only, because
 * the case may be about something else. */
static bool feeder_awaits(struct uva__feeder *feeder, uva__trial_fn *fn,
                          void *ctx)
{
    struct uva__trial *trial = feeder->trial;

    if (trial->let_down)
        return !uva__trial_quiet(trial, fn, ctx);
    trial->let_down = !uva__trial_soon(trial, fn, ctx);
    return !trial->let_down;
}

/* The clauses that require the consumer to release what it was given. */
static const char *const KEEPING[] = {"LC-02", "LC-22", "DA-16"};

/* Waits until everything offered and given has been returned. */
static void feeder_settle(struct uva__feeder *feeder)
{
    struct uva__trial *trial = feeder->trial;
    const bool hasty = trial->let_down; /* late things may still arrive, so they
                                           are no breach */

    if (!feeder_awaits(feeder, tasks_are_spent, feeder) && !hasty) {
        uva__trial_breach(trial, "AT-21", "tasks that waited were left");
        uva__trial_breach(
            trial, "AT-02", "%" PRIu64 " of %" PRIu64 " tasks extracted",
            uva__word_load(&feeder->spent), uva__word_load(&feeder->offered));
    }
    if (feeder_awaits(feeder, uva__rations_are_back, &feeder->books) || hasty)
        return;
    for (size_t i = 0; i < sizeof(KEEPING) / sizeof(*KEEPING); i++)
        uva__trial_breach(trial, KEEPING[i],
                          "%" PRIu64 " of %" PRIu64
                          " schemas and arrays released",
                          uva__word_load(&feeder->books.released),
                          uva__word_load(&feeder->books.given));
}

enum uva__fed uva__feeder_run(struct uva__feeder *feeder,
                              struct uva__trial *trial,
                              enum uva_subject_manner manner, int64_t k,
                              const char *script,
                              struct uva_subject_outcome *outcome)
{
    struct asking asking = {feeder, outcome};
    struct ArrowAsyncDeviceStreamHandler *handler = NULL;
    const bool hasty = trial->let_down;
    bool known;
    int32_t code;

    *feeder = (struct uva__feeder){.trial = trial,
                                   .rest = script,
                                   .books = {.trial = trial},
                                   .object = {.device_type = ARROW_DEVICE_CPU,
                                              .request = object_request,
                                              .cancel = object_cancel,
                                              .private_data = feeder}};
    uva__trial_note(trial, "-- consume(manner %d, %" PRId64 "): %s%s",
                    (int)manner, k, script, trial->checked ? ", checked" : "");
    code = trial->subject.consume((int32_t)manner, k, &feeder->id, &handler);
    if (!uva__trial_can(trial, code, manner == UVA_SUBJECT_TAKES_ALL,
                        "uva_subject_consume()"))
        return UVA__FED_NOTHING;
    uva__warden_meet(feeder, handler);
    (void)feeder_play(feeder);
    uva__trial_await(trial, feeder_is_played, feeder, "the end of a callback");
    known = feeder_awaits(feeder, outcome_is_known, &asking);
    feeder_settle(feeder);
    return known ? UVA__FED_WELL : hasty ? UVA__FED_NOTHING : UVA__FED_FOR_EVER;
}
