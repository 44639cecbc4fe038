/* SPDX-License-Identifier: Apache-2.0 */
/* One function for each word of a script. The producer's own methods count the
 * calls to it, so that the counts do not depend on the library's. */
#include "support/hostile_producer.h"

#include <assert.h>
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "support/printed_layout.h"
#include "uvarrow/arrow.h"

enum { FLOOD = 100000 };

/* On this thread's stack: calls of methods, callbacks, and how many batches the
 * innermost callback has requested. */
static _Thread_local int methods_below, calls_below, asked;

/* The allocated object, large enough for either layout. */
union object {
    struct ArrowAsyncProducer released;
    struct printed_producer printed;
};

struct item {
    struct hostile_producer *peer;
    int64_t ordinal;
    char kind;
};

/* ---- waiting ------------------------------------------------------------ */

static void take(struct hostile_producer *p)
{
    pthread_mutex_lock(&p->lock);
}

static void drop(struct hostile_producer *p)
{
    pthread_cond_broadcast(&p->changed);
    pthread_mutex_unlock(&p->lock);
}

static void gate_pass(struct hostile_producer *p)
{
    take(p);
    p->now.at_gate++;
    pthread_cond_broadcast(&p->changed);
    while (!p->now.open)
        pthread_cond_wait(&p->changed, &p->lock);
    p->now.at_gate--;
    drop(p);
}

void hostile_producer_open_gate(struct hostile_producer *p)
{
    take(p);
    p->now.open = true;
    drop(p);
}

void hostile_producer_await_gate(struct hostile_producer *p, int n)
{
    take(p);
    while (p->now.at_gate < n)
        pthread_cond_wait(&p->changed, &p->lock);
    drop(p);
}

void hostile_producer_await_calm(struct hostile_producer *p)
{
    take(p);
    while (p->now.inside > 0)
        pthread_cond_wait(&p->changed, &p->lock);
    drop(p);
}

/* Surrounds each function of the peer: free_ctx must run after the last one. */
static void function_begin(struct hostile_producer *p)
{
    atomic_fetch_add(&p->running, 1);
    if (atomic_load(&p->freed) > 0)
        atomic_fetch_add(&p->faults, 1);
}

static void function_end(struct hostile_producer *p)
{
    atomic_fetch_sub(&p->running, 1);
}

static void note_thread(struct hostile_producer *p)
{
    if (pthread_equal(pthread_self(), p->loop))
        atomic_fetch_add(&p->calls_on_loop, 1);
}

/* ---- callbacks ---------------------------------------------------------- */

static void call_begin(struct hostile_producer *p)
{
    if (p->request != HOSTILE_OVERLAPS)
        pthread_mutex_lock(&p->serial);
    calls_below++;
    asked = 0;
}

/* Once the stream has ended, no other thread may be inside a method. */
static void call_end(struct hostile_producer *p, bool sink)
{
    calls_below--;
    take(p);
    p->now.back++;
    p->ended = p->ended || sink;
    if (p->ended && p->now.inside + p->now.cancelling > methods_below &&
        p->request != HOSTILE_BLOCKS)
        atomic_fetch_add(&p->faults, 1);
    drop(p);
    if (p->request != HOSTILE_OVERLAPS)
        pthread_mutex_unlock(&p->serial);
}

static void call_schema(struct hostile_producer *p, struct ArrowSchema *schema,
                        bool alone)
{
    call_begin(p);
    p->handler->producer = alone ? NULL : p->object;
    atomic_store(&p->schema_answer, p->handler->on_schema(p->handler, schema));
    call_end(p, false);
}

static void call_task(struct hostile_producer *p, struct ArrowAsyncTask *task,
                      const char *metadata)
{
    call_begin(p);
    if (p->handler->on_next_task(p->handler, task, metadata) != 0 &&
        task != NULL)
        atomic_fetch_add(&p->refusals, 1);
    call_end(p, task == NULL);
    if (task != NULL)
        memset(task, 0x5a, sizeof(*task)); /* AT-13 */
}

static void call_error(struct hostile_producer *p, int code, const char *text,
                       const char *metadata)
{
    char message[64] = "";

    strcat(message, text);
    call_begin(p);
    p->handler->on_error(p->handler, code, message, metadata);
    call_end(p, true);
    memset(message, 0x5a, sizeof(message));
}

static void call_release(struct hostile_producer *p)
{
    call_begin(p);
    p->release(p->handler);
    call_end(p, true);
}

/* ---- tasks -------------------------------------------------------------- */

static int extract_made(struct hostile_producer *p, struct item *item,
                        struct ArrowDeviceArray *out)
{
    if (item->kind == 'b' || item->kind == 'n') {
        out->array.release = (void (*)(struct ArrowArray *))abort; /* AT-22 */
        return item->kind == 'b' ? EIO : -EIO;
    }
    if (item->kind == 'e')
        return 0; /* leaves `out` unchanged */
    fake_source_batch(&p->data, item->ordinal, out);
    if (item->kind == 'c')
        out->array.n_buffers = 3;
    if (item->kind == 'a')
        out->device_type = ARROW_DEVICE_CUDA_HOST;
    return 0;
}

static int item_extract(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    struct item *item = self->private_data;
    struct hostile_producer *p = item->peer;
    int code;

    if (!p->on_loop)
        note_thread(p);
    out->device_id = 0; /* */
    function_begin(p);
    if (item->kind == 's')
        gate_pass(p);
    if (item->kind == 'x') {
        call_error(p, EIO, "extraction failed", NULL);
        call_release(p);
    }
    code = extract_made(p, item, out);
    free(item);
    function_end(p);
    atomic_fetch_add(&p->spent, 1);
    return code;
}

static void offer(struct hostile_producer *p, char kind, const char *metadata)
{
    struct ArrowAsyncTask task = {.extract_data = item_extract};
    struct item *item = malloc(sizeof(*item));

    item->peer = p;
    item->kind = kind;
    take(p);
    item->ordinal = p->now.next++;
    drop(p);
    task.private_data = item;
    atomic_fetch_add(&p->offered, 1);
    call_task(p, &task, metadata);
}

static void offer_on_thread(struct hostile_producer *p);

/* ---- methods ------------------------------------------------------------ */

static void raise_to(atomic_long *most, long n)
{
    long seen = atomic_load(most);

    while (seen < n && !atomic_compare_exchange_weak(most, &seen, n))
        ;
}

/* Returns how many callbacks have returned. */
static int64_t request_begin(struct hostile_producer *p, int64_t n)
{
    int64_t back;

    note_thread(p);
    function_begin(p);
    methods_below++;
    if (calls_below > 0)
        raise_to(&p->most, ++asked);
    take(p);
    if (n < 1 || p->ended)
        atomic_fetch_add(&p->faults, 1);
    raise_to(&p->together, ++p->now.inside);
    back = p->now.back;
    drop(p);
    return back;
}

static void request_end(struct hostile_producer *p)
{
    function_end(p);
    methods_below--;
    take(p);
    p->now.inside--;
    drop(p);
}

static void request_count(struct hostile_producer *p, int64_t n)
{
    atomic_fetch_add(&p->credits, n);
    take(p);
    p->now.credit += n;
    drop(p);
}

static void request_block(struct hostile_producer *p, int64_t back)
{
    if (calls_below > 0)
        return;
    take(p);
    while (p->now.back == back)
        pthread_cond_wait(&p->changed, &p->lock);
    drop(p);
}

static void request_act(struct hostile_producer *p, int64_t n, int64_t back)
{
    switch (p->request) {
    case HOSTILE_DELIVERS:
        for (; n > 0; n--)
            offer(p, 't', NULL);
        break;
    case HOSTILE_ENDS:
        call_task(p, NULL, NULL);
        call_release(p);
        break;
    case HOSTILE_OVERLAPS:
        offer_on_thread(p);
        break;
    case HOSTILE_DAWDLES:
        if (calls_below == 0)
            gate_pass(p);
        break;
    case HOSTILE_BLOCKS:
        request_block(p, back);
        break;
    default:
        break;
    }
}

static void request(struct hostile_producer *p, int64_t n)
{
    long number = atomic_fetch_add(&p->requests, 1) + 1;
    int64_t back = request_begin(p, n);
    const int before = asked;

    if (p->request != HOSTILE_IGNORES)
        request_count(p, n);
    if (p->request_at == 0 || p->request_at == number)
        request_act(p, n, back);
    asked = before;
    request_end(p);
}

static void cancel(struct hostile_producer *p)
{
    note_thread(p);
    function_begin(p);
    methods_below++;
    take(p);
    p->now.cancelling++;
    if (p->ended)
        atomic_fetch_add(&p->faults, 1);
    drop(p);
    atomic_fetch_add(&p->cancels, 1);
    if (p->cancel == HOSTILE_REPORTS || p->cancel == HOSTILE_RELEASES)
        call_error(p, ECANCELED, "cancelled", NULL);
    if (p->cancel == HOSTILE_RELEASES)
        call_release(p);
    take(p);
    p->now.cancelled = true;
    drop(p);
    if (p->cancel == HOSTILE_HANGS)
        gate_pass(p);
    function_end(p);
    methods_below--;
    take(p);
    p->now.cancelling--;
    drop(p);
}

static void released_request(struct ArrowAsyncProducer *self, int64_t n)
{
    request(self->private_data, n);
}

static void released_cancel(struct ArrowAsyncProducer *self)
{
    cancel(self->private_data);
}

static void printed_request(struct printed_producer *self, int64_t n)
{
    request(self->private_data, n);
}

static void printed_cancel(struct printed_producer *self)
{
    cancel(self->private_data);
}

static void object_make(struct hostile_producer *p)
{
    union object *object = malloc(sizeof(*object));

    memset(object, 0x5a, sizeof(*object));
    if (p->printed)
        object->printed = (struct printed_producer){
            .device_type = p->device_type,
            .request = printed_request,
            .cancel = printed_cancel,
            .additional_metadata = p->about,
            .private_data = p,
        };
    else
        object->released = (struct ArrowAsyncProducer){
            .device_type = p->device_type,
            .request = released_request,
            .cancel = released_cancel,
            .additional_metadata = p->about,
            .private_data = p,
        };
    p->object = object;
}

/* ---- words -------------------------------------------------------------- */

static void say_schema(struct hostile_producer *p)
{
    struct ArrowSchema schema;

    fake_source_schema(&p->data, &schema);
    call_schema(p, &schema, false);
    ck_assert(schema.release == NULL); /* AH-06 */
}

static void say_schema_none(struct hostile_producer *p)
{
    call_schema(p, NULL, false);
}

static void say_schema_dead(struct hostile_producer *p)
{
    struct ArrowSchema schema = {.format = NULL};

    call_schema(p, &schema, false);
}

static void say_schema_alone(struct hostile_producer *p)
{
    struct ArrowSchema schema;

    fake_source_schema(&p->data, &schema);
    call_schema(p, &schema, true);
    ck_assert(schema.release == NULL);
}

static void say_task(struct hostile_producer *p)
{
    take(p);
    while (p->now.credit == 0 && !p->now.cancelled &&
           atomic_load(&p->schema_answer) == 0)
        pthread_cond_wait(&p->changed, &p->lock);
    p->now.credit -= p->now.credit > 0;
    drop(p);
    offer(p, 't', NULL);
}

static void say_push(struct hostile_producer *p)
{
    offer(p, 't', NULL);
}

static void say_broken(struct hostile_producer *p)
{
    offer(p, 'b', NULL);
}

static void say_negative(struct hostile_producer *p)
{
    offer(p, 'n', NULL);
}

static void say_empty(struct hostile_producer *p)
{
    offer(p, 'e', NULL);
}

static void say_crooked(struct hostile_producer *p)
{
    offer(p, 'c', NULL);
}

static void say_alien(struct hostile_producer *p)
{
    offer(p, 'a', NULL);
}

static void say_slow(struct hostile_producer *p)
{
    offer(p, 's', NULL);
}

static void say_ending(struct hostile_producer *p)
{
    offer(p, 'x', NULL);
}

static void say_hollow(struct hostile_producer *p)
{
    struct ArrowAsyncTask task = {.extract_data = NULL};

    call_task(p, &task, NULL);
}

/* Returns the block {"k": "v"}, or a block with -1 pairs. */
static const char *metadata(bool sound)
{
    static _Thread_local char block[64];
    static const struct uva_pair pair[] = {{.key = "k", .value = "v"}, {0}};
    const int32_t bad = -1;
    size_t size = sizeof(block);

    ck_assert_int_eq(uva_metadata_encode(pair, block, &size), 0);
    if (!sound)
        memcpy(block, &bad, sizeof(bad));
    return block;
}

static void say_tagged(struct hostile_producer *p)
{
    offer(p, 't', metadata(true));
}

static void say_smudged(struct hostile_producer *p)
{
    offer(p, 't', metadata(false));
}

static void say_end(struct hostile_producer *p)
{
    call_task(p, NULL, NULL);
}

static void say_error(struct hostile_producer *p)
{
    call_error(p, EIO, "the disk is on fire", NULL);
}

static void say_error_0(struct hostile_producer *p)
{
    call_error(p, 0, "the disk is on fire", NULL);
}

static void say_error_negative(struct hostile_producer *p)
{
    call_error(p, -EIO, "the disk is on fire", NULL);
}

static void say_error_aborted(struct hostile_producer *p)
{
    call_error(p, ECONNABORTED, "the cable is cut", NULL);
}

static void say_error_tagged(struct hostile_producer *p)
{
    call_error(p, EIO, "the disk is on fire", metadata(true));
}

static void say_error_smudged(struct hostile_producer *p)
{
    call_error(p, EIO, "the disk is on fire", metadata(false));
}

static void say_copy(struct hostile_producer *p)
{
    p->copy = *p->handler;
    p->handler = &p->copy;
}

static void say_poison(struct hostile_producer *p)
{
    p->handler->producer = (struct ArrowAsyncProducer *)(uintptr_t)0x5a5a5a5a;
}

static void say_free(struct hostile_producer *p)
{
    free(p->object);
    p->object = NULL;
}

static void say_asked(struct hostile_producer *p)
{
    take(p);
    while (p->now.credit == 0)
        pthread_cond_wait(&p->changed, &p->lock);
    drop(p);
}

static void say_watch(struct hostile_producer *p)
{
    hostile_producer_await_gate(p, 1);
}

static void say_cancelled(struct hostile_producer *p)
{
    take(p);
    while (!p->now.cancelled)
        pthread_cond_wait(&p->changed, &p->lock);
    drop(p);
}

static bool is_cancelled(struct hostile_producer *p)
{
    bool cancelled;

    take(p);
    cancelled = p->now.cancelled;
    drop(p);
    return cancelled;
}

static void say_flood(struct hostile_producer *p)
{
    int i;

    for (i = 0; i < FLOOD && !is_cancelled(p); i++)
        say_push(p);
}

static const struct {
    const char *name;
    void (*say)(struct hostile_producer *p);
} WORDS[] = {
    {"schema", say_schema},
    {"schema-none", say_schema_none},
    {"schema-dead", say_schema_dead},
    {"schema-alone", say_schema_alone},
    {"task", say_task},
    {"push", say_push},
    {"broken", say_broken},
    {"negative", say_negative},
    {"empty", say_empty},
    {"crooked", say_crooked},
    {"alien", say_alien},
    {"slow", say_slow},
    {"ending", say_ending},
    {"hollow", say_hollow},
    {"tagged", say_tagged},
    {"smudged", say_smudged},
    {"end", say_end},
    {"error", say_error},
    {"error-0", say_error_0},
    {"error-negative", say_error_negative},
    {"error-aborted", say_error_aborted},
    {"error-tagged", say_error_tagged},
    {"error-smudged", say_error_smudged},
    {"release", call_release},
    {"copy", say_copy},
    {"poison", say_poison},
    {"free", say_free},
    {"gate", gate_pass},
    {"watch", say_watch},
    {"asked", say_asked},
    {"cancelled", say_cancelled},
    {"flood", say_flood},
};

static void say(struct hostile_producer *p, const char *word, size_t size)
{
    size_t i;

    for (i = 0; i < sizeof(WORDS) / sizeof(WORDS[0]); i++)
        if (strlen(WORDS[i].name) == size &&
            memcmp(WORDS[i].name, word, size) == 0) {
            WORDS[i].say(p);
            return;
        }
    ck_abort_msg("no such word: %s", word);
}

/* Plays from p->rest on, up to "thread". Returns true at the script's end. */
static bool play(struct hostile_producer *p)
{
    const char *word;
    size_t size;
    long times;

    for (;;) {
        word = p->rest + strspn(p->rest, " ");
        size = strcspn(word, " *");
        if (size == 0)
            return true;
        times = word[size] == '*' ? strtol(word + size + 1, NULL, 10) : 1;
        p->rest = word + strcspn(word, " ");
        if (size == 6 && memcmp(word, "thread", size) == 0)
            return false;
        for (; times > 0; times--)
            say(p, word, size);
    }
}

static void play_out(struct hostile_producer *p)
{
    ck_assert(play(p));
    say_free(p);
    atomic_fetch_add(&p->played, 1);
}

/* The loop thread would wait here in vain. */
static void await_play(struct hostile_producer *p)
{
    while (atomic_load(&p->held) && !pthread_equal(pthread_self(), p->loop))
        (void)sched_yield();
}

static void *thread_main(void *ctx)
{
    await_play(ctx);
    play_out(ctx);
    return NULL;
}

static void *offer_main(void *ctx)
{
    say_push(ctx);
    return NULL;
}

static void offer_on_thread(struct hostile_producer *p)
{
    pthread_t other;

    ck_assert_int_eq(pthread_create(&other, NULL, offer_main, p), 0);
    pthread_join(other, NULL);
}

/* ---- as a source -------------------------------------------------------- */

static int start(void *ctx, struct ArrowAsyncDeviceStreamHandler *handler,
                 struct uva_error *error)
{
    struct hostile_producer *p = ctx;

    note_thread(p);
    function_begin(p);
    p->handler = handler;
    p->release = handler->release;
    object_make(p);
    await_play(p);
    if (play(p)) {
        say_free(p);
        atomic_fetch_add(&p->played, 1);
    } else {
        p->threaded = true;
        ck_assert_int_eq(pthread_create(&p->thread, NULL, thread_main, p), 0);
    }
    function_end(p);
    return p->start_text != NULL
               ? uva_error_set(error, p->start_code, "%s", p->start_text)
               : p->start_code;
}

/* The interrupt that opens the gate returns after all other calls. */
static void interrupt(void *ctx)
{
    struct hostile_producer *p = ctx;

    note_thread(p);
    function_begin(p);
    if (atomic_fetch_add(&p->interrupts, 1) + 1 == p->interrupt_at) {
        hostile_producer_open_gate(p);
        while (atomic_load(&p->running) > 1)
            (void)sched_yield();
    }
    function_end(p);
}

static void free_ctx(void *ctx)
{
    struct hostile_producer *p = ctx;

    if (atomic_load(&p->running) > 0)
        atomic_fetch_add(&p->faults, 1);
    atomic_fetch_add(&p->freed, 1);
}

struct uva_async_source hostile_producer_source(struct hostile_producer *p)
{
    return (struct uva_async_source){
        .start = start,
        .free_ctx = free_ctx,
        .ctx = p,
        .window = {.batches = p->window},
        .on_loop = p->on_loop,
        .printed_layout = p->printed,
        .interrupt = p->interrupt_at > 0 ? interrupt : NULL,
    };
}

/* Callbacks run one after the other, or nested on one stack. */
static void serial_init(struct hostile_producer *p)
{
    pthread_mutexattr_t nested;

    pthread_mutexattr_init(&nested);
    pthread_mutexattr_settype(&nested, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&p->serial, &nested);
    pthread_mutexattr_destroy(&nested);
}

void hostile_producer_init(struct hostile_producer *p, const char *script)
{
    memset(p, 0, sizeof(*p));
    serial_init(p);
    p->script = p->rest = script;
    p->device_type = ARROW_DEVICE_CPU;
    p->loop = pthread_self();
    fake_source_init(&p->data, 0);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->changed, NULL);
}

void hostile_producer_fini(struct hostile_producer *p)
{
    if (p->threaded)
        pthread_join(p->thread, NULL);
    ck_assert_int_eq(atomic_load(&p->freed), 1);
    ck_assert_int_eq(atomic_load(&p->offered), atomic_load(&p->spent));
    ck_assert_int_eq(atomic_load(&p->data.live), 0);
    ck_assert_int_eq(atomic_load(&p->refusals), 0);
    ck_assert_int_eq(atomic_load(&p->faults), 0);
    ck_assert_int_eq(atomic_load(&p->calls_on_loop), 0);
    ck_assert_int_le(atomic_load(&p->most), 1);
    ck_assert_int_le(atomic_load(&p->together), 1);
    ck_assert_int_le(atomic_load(&p->cancels), 1);
    fake_source_fini(&p->data);
    pthread_cond_destroy(&p->changed);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->serial);
}
