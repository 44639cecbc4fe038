/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a producer while a late call still holds it, and the schema
 * that a consumer leaves live. The tests replace uva__slots_take_producer() and
 * uva__slots_put_producer() at link time, to be between two steps of a thread.
 */
#include <check.h>
#include <errno.h>

#include "stream/producer.h"
#include "stream/slots.h"
#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static struct uva__producer *held; /* the producer that a late call holds */
static bool is_late;               /* such a call holds the next one */
static long put;                   /* how often that was put back */
static bool holds_what_is_put;     /* such a call holds the next one put back */

struct uva__producer *__wrap_uva__slots_take_producer(struct uva__rt *rt);
struct uva__producer *__real_uva__slots_take_producer(struct uva__rt *rt);
struct uva__producer *__wrap_uva__slots_take_producer(struct uva__rt *rt)
{
    struct uva__producer *taken = __real_uva__slots_take_producer(rt);

    if (!is_late)
        return taken;
    is_late = false;
    held = taken;
    uva__producer_acquire(held);
    return taken;
}

void __wrap_uva__slots_put_producer(struct uva__rt *rt,
                                    struct uva__producer *producer);
void __real_uva__slots_put_producer(struct uva__rt *rt,
                                    struct uva__producer *producer);
void __wrap_uva__slots_put_producer(struct uva__rt *rt,
                                    struct uva__producer *producer)
{
    if (holds_what_is_put) {
        held = producer;
        uva__producer_acquire(held);
        holds_what_is_put = false;
    }
    put += producer == held;
    __real_uva__slots_put_producer(rt, producer);
}

START_TEST(a_late_holder_of_its_memory_does_not_end_a_producer)
{
    fixture_open(&f, 5);
    is_late = true;
    f.stream = fixture_tasks(&f);
    fixture_start(&f);
    uva__producer_release(held); /* the late call returns */
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.taken, 5);
    fixture_close(&f);
}
END_TEST

/* The late call finds the last reference dropped and the memory in quarantine:
 * dropping its own must not put it there once more. */
START_TEST(a_late_holder_does_not_put_the_memory_back_twice)
{
    fixture_open(&f, 3);
    f.stream = fixture_tasks(&f);
    put = 0;
    holds_what_is_put = true;
    ck_assert_int_eq(fixture_run(&f), 0);
    fixture_release(&f);
    while (put == 0)
        loop_turn(&f.loop);
    for (int i = 0; i < 3; i++) {
        if (i > 0)
            uva__producer_acquire(held);
        uva__producer_release(held);
        ck_assert_int_eq(put, 1);
    }
    fixture_close(&f);
}
END_TEST

/* ---- schemas ------------------------------------------------------------ */

static int schemas; /* live */

static void schema_release(struct ArrowSchema *schema)
{
    schemas--;
    schema->release = NULL;
}

static int give_schema(void *ctx, struct ArrowSchema *out,
                       struct uva_error *error)
{
    (void)ctx;
    (void)error;
    *out = (struct ArrowSchema){
        .format = "+s", .name = "", .release = schema_release};
    schemas++;
    return 0;
}

static int give_end(void *ctx, void **item, const char **metadata,
                    struct uva_error *error)
{
    (void)ctx;
    (void)item;
    (void)metadata;
    (void)error;
    return 0;
}

static int extract_nothing(void *ctx, void *item, struct ArrowDeviceArray *out,
                           struct uva_error *error)
{
    (void)ctx;
    (void)item;
    (void)out;
    (void)error;
    return ENOSYS;
}

/* A handler that leaves its schema live, and returns the test's code. */
static int schema_code;
static int live_in_callback;
static bool released;

static int leave_schema(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowSchema *schema)
{
    if (schema_code == 0)
        self->producer->request(self->producer, 1);
    ck_assert(schema->release != NULL);
    live_in_callback = schemas;
    return schema_code;
}

static int take_nothing(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    (void)self;
    (void)metadata;
    ck_assert_ptr_null(task);
    ck_assert_int_eq(schemas, 0);
    return 0;
}

static void no_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)metadata;
    ck_abort_msg("on_error(%d, %s)", code, message);
}

static void note_release(struct ArrowAsyncDeviceStreamHandler *self)
{
    (void)self;
    ck_assert_int_eq(schemas, 0);
    released = true;
}

START_TEST(a_schema_that_a_handler_leaves_live_is_released)
{
    const struct uva_task_source source = {
        .schema = give_schema, .next = give_end, .extract = extract_nothing};
    struct ArrowAsyncDeviceStreamHandler handler = {.on_schema = leave_schema,
                                                    .on_next_task =
                                                        take_nothing,
                                                    .on_error = no_error,
                                                    .release = note_release};

    schema_code = _i == 0 ? 0 : EINVAL;
    schemas = live_in_callback = 0;
    released = false;
    fixture_open(&f, 0);
    f.stream = uva_stream_from_tasks(f.loop.runtime, &source);
    ck_assert_int_eq(uva_stream_drive(f.stream, &handler, NULL, NULL), 0);
    while (!released)
        loop_turn(&f.loop);
    ck_assert_int_eq(live_in_callback, 1);
    ck_assert_int_eq(schemas, 0);
    fixture_release(&f);
    fixture_close_counted(&f, 0, 0);
}
END_TEST

int main(void)
{
    TCase *schema = tcase_create("schemas");

    tcase_add_loop_test(schema, a_schema_that_a_handler_leaves_live_is_released,
                        0, 2);
    return suite_main(
        "producer", NULL, NULL,
        suite_tests("memory",
                    a_late_holder_of_its_memory_does_not_end_a_producer,
                    a_late_holder_does_not_put_the_memory_back_twice, NULL),
        schema, NULL);
}
