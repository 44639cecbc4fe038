/* SPDX-License-Identifier: Apache-2.0 */
/* A runtime that its host turns after posts, as on systems where a loop has no
 * descriptor. test_hosting.c tests the other ways to host one. */
#include <check.h>
#include <pthread.h>
#include <sched.h>

#include "support/check_suite.h"
#include "support/hosting_fixture.h"

static struct hosting_fixture h;

static void set_up(void)
{
    hosting_init(&h);
}

static void tear_down(void)
{
    hosting_fini(&h);
}

/* A host without descriptors: a thread that turns the runtime after each post.
 */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t posted;
    int wanted;  /* posts since the last turn */
    int most;    /* the maximum of `wanted` */
    int posts;   /* posts in total */
    bool inside; /* a post was made on the loop thread */
    pthread_t loop_thread;
} host = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .posted = PTHREAD_COND_INITIALIZER};

static void host_post(void *ctx)
{
    ck_assert_ptr_eq(ctx, &host);
    pthread_mutex_lock(&host.lock);
    host.posts++;
    host.wanted++;
    if (host.wanted > host.most)
        host.most = host.wanted;
    host.inside =
        host.inside || pthread_equal(host.loop_thread, pthread_self());
    pthread_cond_signal(&host.posted);
    pthread_mutex_unlock(&host.lock);
}

static void open_posted(void)
{
    host.posts = host.wanted = host.most = 0;
    host.inside = false;
    host.loop_thread = pthread_self();
    ck_assert_int_eq(
        uva_runtime_open_turned(host_post, &host, NULL, &h.rt, NULL), 0);
}

/* Waits for a post, and turns the runtime. */
static bool host_turn(void)
{
    pthread_mutex_lock(&host.lock);
    while (host.wanted == 0)
        pthread_cond_wait(&host.posted, &host.lock);
    host.wanted = 0;
    pthread_mutex_unlock(&host.lock);
    return uva_runtime_turn(h.rt);
}

START_TEST(a_post_for_each_turn_is_all_a_host_needs)
{
    open_posted();
    hosting_start_stream(&h);
    while (atomic_load(&h.consumer.done) == 0)
        ck_assert(host_turn());
    hosting_completed(&h);
    ck_assert(pthread_equal(h.consumer.thread, pthread_self()));
    await_count(&h.fake.freed, 1);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (host_turn())
        ;
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    ck_assert_int_eq(host.most, 1);
    ck_assert(!host.inside);
}
END_TEST

START_TEST(an_idle_runtime_posts_nothing)
{
    int posts;

    open_posted();
    ck_assert_int_eq(uva_runtime_post(h.rt, hosting_on_closed, &h), 0);
    while (atomic_load(&h.closings) == 0)
        ck_assert(host_turn());
    posts = host.posts;
    ck_assert_int_ge(posts, 1);
    for (int i = 0; i < 100; i++) /* time for a post that must not happen */
        (void)sched_yield();
    pthread_mutex_lock(&host.lock);
    ck_assert_int_le(host.posts, posts + 1);
    pthread_mutex_unlock(&host.lock);
    atomic_store(&h.closings, 0);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (host_turn())
        ;
}
END_TEST

START_TEST(timers_are_posted_too)
{
    h.fake.gate_at = 0;
    open_posted();
    hosting_start_stream(&h);
    while (atomic_load(&h.consumer.schemas) == 0)
        ck_assert(host_turn());
    fake_source_await(&h.fake);
    ck_assert_int_eq(uva_runtime_close(h.rt, 50, hosting_on_closed, &h), 0);
    while (host_turn())
        ;
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    await_count(&h.fake.freed, 1);
}
END_TEST

/* The last thing that happens is the end of a time limit. */
START_TEST(a_close_that_leaves_a_call_behind_is_posted_to_its_end)
{
    open_posted();
    hosting_start_stuck(&h);
    while (atomic_load(&h.consumer.schemas) == 0)
        ck_assert(host_turn());
    fake_source_await(&h.fake);
    ck_assert_int_eq(uva_runtime_close(h.rt, 0, hosting_on_closed, &h), 0);
    while (host_turn())
        ;
    ck_assert_int_eq(atomic_load(&h.closings), 1);
    ck_assert_int_eq(h.consumer.outcome.end, UVA_END_CANCELLED);
    fake_source_open_gate(&h.fake);
    await_count(&h.fake.freed, 1);
}
END_TEST

START_TEST(turns_that_nobody_asked_for_do_no_harm)
{
    for (int i = 0; i < 300; i++) {
        open_posted();
        ck_assert_int_eq(uva_runtime_close(h.rt, 0, NULL, NULL), 0);
        while (uva_runtime_turn(h.rt))
            ;
    }
    ck_assert(!host.inside);
}
END_TEST

int main(void)
{
    return suite_main(
        "posted host", set_up, tear_down,
        suite_tests("posts", a_post_for_each_turn_is_all_a_host_needs,
                    an_idle_runtime_posts_nothing, timers_are_posted_too,
                    a_close_that_leaves_a_call_behind_is_posted_to_its_end,
                    turns_that_nobody_asked_for_do_no_harm, NULL),
        NULL);
}
