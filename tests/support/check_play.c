/* SPDX-License-Identifier: Apache-2.0 */
/* Short functions for the tests of the check of a handler. */
#include "support/check_play.h"

#include <check.h>
#include <string.h>

struct check_fixture play;

void play_setup(void)
{
    check_fixture_init(&play, NULL);
}

void play_teardown(void)
{
    check_fixture_fini(&play);
    ck_assert_int_eq(check_fixture_live(), 0);
    ck_assert_int_eq(atomic_load(&play.freed), 1);
}

void play_again(const struct uva_check *options)
{
    check_fixture_fini(&play);
    check_fixture_init(&play, options);
}

void play_again_within(const struct uva__check_times *times)
{
    check_fixture_fini(&play);
    check_fixture_init_within(&play, times);
}

void play_expect(const char *breaches)
{
    ck_assert_str_eq(check_fixture_breaches(&play), breaches);
}

void play_expect_at_last(const char *breaches)
{
    uva_schema_release(&play.schema);
    (void)check_fixture_conclude(&play);
    play_expect(breaches);
}

void play_begin(void)
{
    ck_assert_int_eq(check_fixture_schema(&play), 0);
}

void play_tasks(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(check_fixture_task(&play), 0);
}

void play_task(void)
{
    (void)check_fixture_task(&play);
}

void play_the_end(void)
{
    (void)check_fixture_end(&play);
}

void play_release(void)
{
    check_fixture_release(&play);
}

void play_end(void)
{
    ck_assert_int_eq(check_fixture_end(&play), 0);
    play_release();
}

void play_request(int64_t n)
{
    play.peer->request(play.peer, n);
}

void play_cancel(void)
{
    play.peer->cancel(play.peer);
}

/* A function pointer may not be cast to void *, so it is passed in a struct. */
struct command {
    void (*fn)(void);
};

static void *command_main(void *arg)
{
    struct command *command = arg;

    command->fn();
    return NULL;
}

void play_elsewhere(void (*fn)(void))
{
    struct command command = {fn};
    pthread_t thread;

    ck_assert_int_eq(pthread_create(&thread, NULL, command_main, &command), 0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}

/* Moves the schema and requests `n`; no request for 0. */
static int take_schema(struct check_fixture *s, struct ArrowSchema *schema,
                       int64_t n)
{
    uva_schema_release(&s->schema);
    uva_schema_move(schema, &s->schema);
    s->peer = s->inner.producer;
    if (n != 0)
        play_request(n);
    return 0;
}

int play_request_none(struct check_fixture *s, struct ArrowSchema *schema)
{
    return take_schema(s, schema, 0);
}

int play_request_two(struct check_fixture *s, struct ArrowSchema *schema)
{
    return take_schema(s, schema, 2);
}

int play_refuse_task(struct check_fixture *s, struct ArrowAsyncTask *task)
{
    (void)s;
    uva_task_discard(task);
    return EIO;
}
