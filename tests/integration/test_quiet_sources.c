/* SPDX-License-Identifier: Apache-2.0 */
/* Sources without news hold more threads than the blocking lane has at first:
 * each of them is called nevertheless, and another stream is delayed by one
 * look at the lane, not until one of them returns. */
#include <check.h>
#include <pthread.h>
#include <stdatomic.h>

#include "support/check_suite.h"
#include "support/fixture.h"

enum { QUIET = 200 };

static struct fixture f;
static struct uva_stream *quiet[QUIET];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool has_news;
static atomic_int inside, ended;

/* ---- a source that waits in its first call --------------------------------
 */

static int get_schema(struct ArrowArrayStream *stream, struct ArrowSchema *out)
{
    (void)stream;
    batch_schema(out);
    return 0;
}

static int get_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    (void)stream;
    atomic_fetch_add(&inside, 1);
    loop_nudge(&f.loop);
    (void)pthread_mutex_lock(&lock);
    while (!has_news)
        (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
    atomic_fetch_sub(&inside, 1);
    out->release = NULL;
    return 0;
}

static const char *get_last_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return NULL;
}

static void release(struct ArrowArrayStream *stream)
{
    stream->release = NULL;
}

static void let_go(void)
{
    (void)pthread_mutex_lock(&lock);
    has_news = true;
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- streams of it --------------------------------------------------------
 */

static int on_batch(void *ctx, struct uva_batch *batch)
{
    (void)ctx;
    (void)batch;
    ck_abort_msg("there are no batches");
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    ck_assert_int_eq(outcome->end, UVA_END_COMPLETE);
    atomic_fetch_add(&ended, 1);
}

static void start_quiet(int i)
{
    const struct uva_consumer consumer = {.on_batch = on_batch,
                                          .on_done = on_done};
    struct ArrowArrayStream source = {.get_schema = get_schema,
                                      .get_next = get_next,
                                      .get_last_error = get_last_error,
                                      .release = release};

    quiet[i] = uva_stream_from_arrow_stream(f.loop.runtime, &source, NULL);
    ck_assert_int_eq(uva_stream_for_each(quiet[i], &consumer, NULL), 0);
}

static bool all_are_inside(void *ctx)
{
    (void)ctx;
    return atomic_load(&inside) == QUIET;
}

static bool all_have_ended(void *ctx)
{
    (void)ctx;
    return atomic_load(&ended) == QUIET;
}

START_TEST(they_do_not_stop_another_stream)
{
    fixture_open(&f, 3);
    for (int i = 0; i < QUIET; i++)
        start_quiet(i);
    loop_until(&f.loop, all_are_inside, NULL);
    f.stream = fixture_blocking(&f);
    fixture_start(&f);
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(atomic_load(&inside), QUIET);
    let_go();
    loop_until(&f.loop, all_have_ended, NULL);
    for (int i = 0; i < QUIET; i++)
        uva_stream_release(quiet[i]);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    TCase *tests = tcase_create("quiet_sources");

    suite_add(tests, they_do_not_stop_another_stream, NULL);
    return suite_main("quiet_sources", NULL, NULL, tests, NULL);
}
