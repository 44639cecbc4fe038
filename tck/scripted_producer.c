/* SPDX-License-Identifier: Apache-2.0 */
/* The words of a script, and the callbacks they make.
 *
 * Happy path:  the subject makes a consumer -> the words are played on the
 *              case's thread, on a thread of their own or on many -> the
 *              outcome is known, and all tasks, arrays and schemas have been
 *              returned.
 * Failures: the consumer; that is a breach or the verdict. On cancel: playing
 * continues; the script decides the next step.
 *
 * Memory that is lent for one call only (task, schema, strings) is overwritten
 * when the call returns, so that a consumer that kept a pointer runs into a
 * trap. The rules for the consumer's calls are in consumer_rules.h. */
#include "tck/scripted_producer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tck/checker.h"
#include "tck/consumer_rules.h"

enum { WORD = 24, BLOCK = 64 };

/* ---- tasks -------------------------------------------------------------- */

/* Replaces extract_data once the call that lent the task has returned. */
static int trap_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct uva__scripted_producer_task *task = self->private_data;

    (void)out;
    uva__case_run_breach(task->producer->run, "AT-13",
                         "the task struct was used after on_next_task");
    uva__case_run_fail(task->producer->run,
                       "AT-13: the task struct was used after on_next_task");
}

/* The release of what a failed extraction leaves behind. */
static void trap_release(struct ArrowArray *array)
{
    struct uva__scripted_producer_task *task = array->private_data;

    array->release = NULL;
    uva__case_run_breach(task->producer->run, "AT-22",
                         "the array of a failed extraction was released");
}

static void array_scribble(struct uva__scripted_producer_task *task,
                           struct ArrowDeviceArray *out)
{
    memset(out, 0xDD, sizeof(*out));
    out->array.release = trap_release;
    out->array.private_data = task;
}

static int task_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct uva__scripted_producer_task *task = self->private_data;
    struct uva__scripted_producer *producer = task->producer;

    uva__case_run_note(producer->run, "   extract(%" PRId64 ")%s",
                       task->ordinal, out == NULL ? " to NULL" : "");
    if (uva__atomic64_exchange(&task->spent, 1) != 0) {
        uva__case_run_breach(producer->run, "AT-03",
                             "task %" PRId64 " was extracted twice",
                             task->ordinal);
        return EINVAL;
    }
    (void)uva__atomic64_add(&producer->spent, 1);
    uva__case_run_changed(producer->run);
    if (task->broken && out != NULL)
        array_scribble(task, out);
    if (task->broken)
        return EIO;
    if (out == NULL)
        return 0;
    if (task->hollow)
        out->array.release = NULL;
    else
        uva__guarded_data_array(&producer->books, task->ordinal, task->kind,
                                out);
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

/* Writes a block that claims to have -1 pairs, or one with a key whose length
 * is the least number. */
static const char *block_smudge(char *to, bool in_key)
{
    const int32_t numbers[] = {in_key ? 1 : -1, INT32_MIN};

    memcpy(to, numbers, sizeof(numbers));
    return to;
}

/* ---- callbacks ---------------------------------------------------------- */

static void send_schema(struct uva__scripted_producer *producer, bool bare)
{
    struct ArrowSchema schema;
    int code;

    uva__guarded_data_schema(&producer->books, bare, &schema);
    uva__consumer_rules_enter(producer, 'S');
    code = producer->handler->on_schema(producer->handler, &schema);
    uva__consumer_rules_leave(producer, 'S', code);
    if (schema.release != NULL) {
        uva__case_run_breach(producer->run, "AH-06",
                             "on_schema returned and left its schema live");
        schema.release(&schema);
    }
    memset(&schema, 0xDD, sizeof(schema));
}

static void send_task(struct uva__scripted_producer *producer,
                      struct uva__scripted_producer_task *payload,
                      const char *metadata)
{
    struct ArrowAsyncTask task = {task_extract, payload};
    int code;

    (void)uva__atomic64_add(&producer->offered, 1);
    uva__case_run_changed(producer->run);
    uva__consumer_rules_enter(producer, 'T');
    code = producer->handler->on_next_task(producer->handler, &task, metadata);
    uva__consumer_rules_leave(producer, 'T', code);
    if (task.private_data != payload)
        uva__case_run_breach(producer->run, "AT-14",
                             "the task's private_data was changed");
    /* The consumer refused the task and did not extract it, so it is ours
     * again. Clauses:  LC-18. */
    if (code != 0 && uva__atomic64_exchange(&payload->spent, 1) == 0)
        (void)uva__atomic64_add(&producer->spent, 1);
    task = (struct ArrowAsyncTask){trap_extract, payload};
    uva__case_run_changed(producer->run);
}

static void send_end(struct uva__scripted_producer *producer)
{
    uva__consumer_rules_enter(producer, 'N');
    (void)producer->handler->on_next_task(producer->handler, NULL, NULL);
    uva__consumer_rules_leave(producer, 'N', 0);
}

static void send_error(struct uva__scripted_producer *producer,
                       const char *options)
{
    char text[BLOCK] = "the producer failed";
    char block[BLOCK] = "";
    const char *metadata = NULL;
    int code = EIO;

    if (options[0] == '-' && strcmp(options, "-tagged") == 0)
        metadata = block_write(block, "a\0b\0c", 5);
    else if (options[0] == '-' && strcmp(options, "-mute") != 0)
        code = atoi(options + 1);
    uva__consumer_rules_enter(producer, 'E');
    producer->handler->on_error(producer->handler, code,
                                strcmp(options, "-mute") == 0 ? NULL : text,
                                metadata);
    uva__consumer_rules_leave(producer, 'E', 0);
    memset(text, 0xDD, sizeof(text) - 1);
    memset(block, 0xDD, sizeof(block));
}

static void send_release(struct uva__scripted_producer *producer)
{
    uva__consumer_rules_enter(producer, 'R');
    producer->handler->release(producer->handler);
    uva__consumer_rules_leave(producer, 'R', 0);
}

/* ---- the producer object ------------------------------------------------ */

/* Argument of a wait. */
struct eagerness {
    struct uva__scripted_producer *producer;
    uint64_t offered;
};

static bool eagerness_is_over(void *ctx)
{
    struct eagerness *eagerness = ctx;

    return uva__atomic64_load(&eagerness->producer->offered) !=
           eagerness->offered;
}

static void object_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct uva__scripted_producer *producer = self->private_data;
    struct eagerness eagerness = {producer,
                                  uva__atomic64_load(&producer->offered)};
    const bool inside = uva__consumer_rules_request(producer, self, n);

    uva__case_run_changed(producer->run);
    if (producer->eager && !inside)
        (void)uva__case_run_quiet(producer->run, eagerness_is_over, &eagerness);
    uva__consumer_rules_back(producer);
}

static void object_cancel(struct ArrowAsyncProducer *self)
{
    struct uva__scripted_producer *producer = self->private_data;
    const bool fails = uva__consumer_rules_cancel(producer, self);

    if (fails) { /* on this stack. Clauses: AP-13. */
        uva__consumer_rules_back(producer);
        send_error(producer, "-125");
    }
    uva__consumer_rules_count_cancel(producer);
    if (producer->languid)
        (void)nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    if (!fails)
        uva__consumer_rules_back(producer);
}

/* ---- words -------------------------------------------------------------- */

static bool word_is(const char *word, const char *what)
{
    return strcmp(word, what) == 0;
}

static void word_task(struct uva__scripted_producer *producer, const char *word)
{
    const uint64_t ordinal = uva__atomic64_load(&producer->offered);
    struct uva__scripted_producer_task *task = &producer->tasks[ordinal];
    char block[BLOCK];
    const char *metadata = NULL;

    if (word_is(word, "bare") && !uva__consumer_rules_goes_on(producer))
        return;
    if (!uva__consumer_rules_may_offer(producer, word_is(word, "leftover")))
        return;
    *task = (struct uva__scripted_producer_task){
        .producer = producer,
        .ordinal = (int64_t)ordinal,
        .broken = word_is(word, "broken"),
        .hollow = word_is(word, "hollow"),
        .kind = word_is(word, "alien")    ? UVA__GUARDED_DATA_UNKNOWN_DEVICE
                : word_is(word, "sealed") ? UVA__GUARDED_DATA_SEALED
                : word_is(word, "future") ? UVA__GUARDED_DATA_FUTURE
                : word_is(word, "first")  ? UVA__GUARDED_DATA_FIRST
                : word_is(word, "bare")   ? UVA__GUARDED_DATA_BARE
                : word_is(word, "sliced") ? UVA__GUARDED_DATA_SLICED
                                          : UVA__GUARDED_DATA_PLAIN};
    if (word_is(word, "tagged"))
        metadata = block_write(block, "v\0v", 3);
    else if (strncmp(word, "smudged", 7) == 0)
        metadata = block_smudge(block, word_is(word, "smudged-key"));
    send_task(producer, task, metadata);
    memset(block, 0xDD, sizeof(block));
}

/* Makes the callback that a word stands for. */
static void word_send(struct uva__scripted_producer *producer, const char *word)
{
    if (strncmp(word, "schema", 6) == 0)
        send_schema(producer, word_is(word, "schema-bare"));
    else if (word_is(word, "end"))
        send_end(producer);
    else if (word_is(word, "end-bare")) {
        if (uva__consumer_rules_goes_on(producer))
            send_end(producer);
    } else if (strncmp(word, "error", 5) == 0)
        send_error(producer, word + 5);
    else if (word_is(word, "release"))
        send_release(producer);
    else
        word_task(producer, word);
}

/* A callback that a new thread makes. Lives as long as the process, because the
 * thread may hang. */
struct uva__sending {
    struct uva__scripted_producer *producer;
    const char *word;
    struct uva__atomic64 sent, passed;
};

static bool sending_is_sent(void *ctx)
{
    struct uva__sending *sending = ctx;

    return uva__atomic64_load(&sending->sent) != 0;
}

static bool sending_is_passed(void *ctx)
{
    struct uva__sending *sending = ctx;

    return uva__atomic64_load(&sending->passed) != 0;
}

static void *sending_thread(void *ctx)
{
    struct uva__sending *sending = ctx;
    struct uva__case_run *run = sending->producer->run;

    word_send(sending->producer, sending->word);
    uva__atomic64_store(&sending->sent, 1);
    uva__case_run_changed(run);
    (void)uva__case_run_soon(run, sending_is_passed, sending);
    return NULL;
}

static void sending_pass(struct uva__scripted_producer *producer)
{
    if (producer->last_sending != NULL)
        uva__atomic64_store(&producer->last_sending->passed, 1);
    producer->last_sending = NULL;
    uva__case_run_changed(producer->run);
}

/* Makes the callback on a new thread. The thread of the callback before lives
 * on meanwhile, because a thread that has ended leaves its pthread_t to the
 * next. */
static void word_bounce(struct uva__scripted_producer *producer,
                        const char *word)
{
    struct uva__sending *sending =
        uva__case_run_alloc(producer->run, sizeof(*sending));

    sending->producer = producer;
    sending->word = word;
    uva__case_run_thread(producer->run, sending_thread, sending);
    uva__case_run_await(producer->run, sending_is_sent, sending,
                        "the return of a call by another thread");
    sending_pass(producer);
    producer->last_sending = sending;
}

static void word_cancelled_error(struct uva__scripted_producer *producer)
{
    uva__consumer_rules_fail_cancel(producer);
    if (!uva__consumer_rules_has_failed_cancel(producer))
        send_error(producer, "-125");
}

static void word_play(struct uva__scripted_producer *producer, const char *word)
{
    const struct timespec pause = {.tv_nsec = 3000000};

    if (word_is(word, "bounce"))
        producer->bounces = true;
    else if (word_is(word, "slow"))
        producer->slow = true;
    else if (word_is(word, "eager"))
        producer->eager = true;
    else if (word_is(word, "languid"))
        producer->languid = true;
    else if (word_is(word, "unset"))
        producer->handler->producer = NULL;
    else if (word_is(word, "cancelled"))
        uva__case_run_await(producer->run, uva__consumer_rules_is_cancelled,
                            producer, "a cancel");
    else if (word_is(word, "cancelled-error"))
        word_cancelled_error(producer);
    else if (word_is(word, "listen"))
        uva__consumer_rules_listen(producer);
    else {
        if (producer->slow)
            (void)nanosleep(&pause, NULL);
        if (producer->bounces)
            word_bounce(producer, word);
        else
            word_send(producer, word);
    }
}

static void *scripted_producer_play(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;
    char word[WORD];

    while (*producer->rest != '\0') {
        const size_t size = strcspn(producer->rest, " *");
        long times = 1;

        memcpy(word, producer->rest, size);
        word[size] = '\0';
        producer->rest += size;
        if (*producer->rest == '*')
            times = strtol(producer->rest + 1, (char **)&producer->rest, 10);
        producer->rest += strspn(producer->rest, " ");
        if (word_is(word, "thread")) {
            uva__case_run_thread(producer->run, scripted_producer_play,
                                 producer);
            return NULL;
        }
        for (; times > 0; times--)
            word_play(producer, word);
    }
    sending_pass(producer);
    uva__atomic64_store(&producer->played, 1);
    uva__case_run_changed(producer->run);
    return NULL;
}

/* ---- a run -------------------------------------------------------------- */

static bool scripted_producer_is_played(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;

    return uva__atomic64_load(&producer->played) != 0;
}

static bool tasks_are_spent(void *ctx)
{
    struct uva__scripted_producer *producer = ctx;

    return uva__atomic64_load(&producer->spent) ==
           uva__atomic64_load(&producer->offered);
}

/* Argument of a wait. */
struct outcome_query {
    struct uva__scripted_producer *producer;
    struct uva_subject_outcome *outcome;
};

static bool outcome_is_known(void *ctx)
{
    struct outcome_query *outcome_query = ctx;
    struct uva__scripted_producer *producer = outcome_query->producer;
    int32_t code;

    memset(outcome_query->outcome, 0, sizeof(*outcome_query->outcome));
    outcome_query->outcome->tag_size = -1;
    code = producer->run->subject.outcome(producer->id, outcome_query->outcome);
    if (code != 0 && code != EAGAIN)
        uva__case_run_fail(producer->run, "uva_subject_report() returned %d",
                           (int)code);
    return code == 0;
}

/* The clauses that require the consumer to release its objects. */
static const char *const KEEPING[] = {"LC-02", "LC-22", "DA-16"};

/* Waits until everything offered and given has been returned. */
static void scripted_producer_settle(struct uva__scripted_producer *producer)
{
    struct uva__case_run *run = producer->run;

    if (!uva__case_run_soon_again(run, tasks_are_spent, producer)) {
        uva__case_run_breach(run, "AT-21", "tasks that waited were left");
        uva__case_run_breach(run, "AT-02",
                             "%" PRIu64 " of %" PRIu64 " tasks extracted",
                             uva__atomic64_load(&producer->spent),
                             uva__atomic64_load(&producer->offered));
    }
    if (uva__case_run_soon_again(run, uva__guarded_data_is_released,
                                 &producer->books))
        return;
    for (size_t i = 0; i < sizeof(KEEPING) / sizeof(*KEEPING); i++)
        uva__case_run_breach(run, KEEPING[i],
                             "%" PRIu64 " of %" PRIu64
                             " schemas and arrays released",
                             uva__atomic64_load(&producer->books.released),
                             uva__atomic64_load(&producer->books.given));
    if (uva__atomic64_load(&producer->books.unknown) != 0)
        uva__case_run_breach(run, "AB-15",
                             "an array on an unknown device was not released");
}

enum uva__script_result uva__scripted_producer_run(
    struct uva__scripted_producer *producer, struct uva__case_run *run,
    enum uva_subject_manner manner, int64_t k, const char *script,
    struct uva_subject_outcome *outcome)
{
    struct outcome_query outcome_query = {producer, outcome};
    struct ArrowAsyncDeviceStreamHandler *handler = NULL;
    bool known;
    int32_t code;

    *producer = (struct uva__scripted_producer){
        .run = run,
        .rest = script,
        .books = {.run = run},
        .object = {.device_type = ARROW_DEVICE_CPU,
                   .request = object_request,
                   .cancel = object_cancel,
                   .private_data = producer}};
    uva__case_run_note(run, "-- consume(manner %d, %" PRId64 "): %s%s",
                       (int)manner, k, script, run->checked ? ", checked" : "");
    code =
        uva__subject_consume(&run->subject, manner, k, &producer->id, &handler);
    if (!uva__case_run_can(run, code, manner == UVA_SUBJECT_TAKES_ALL,
                           "uva_subject_consume()"))
        return UVA__SCRIPT_UNSUPPORTED;
    uva__consumer_rules_set_handler(producer, handler);
    (void)scripted_producer_play(producer);
    uva__case_run_await(run, scripted_producer_is_played, producer,
                        "the end of a callback");
    known = uva__case_run_soon_again(run, outcome_is_known, &outcome_query);
    scripted_producer_settle(producer);
    return known ? UVA__SCRIPT_FINISHED : UVA__SCRIPT_HUNG;
}
