/* SPDX-License-Identifier: Apache-2.0 */
/* Words for the tests of the check of a handler. */
#include "support/check_play.h"

#include <check.h>
#include <string.h>

struct check_scene play;

void play_setup(void)
{
    check_scene_init(&play, NULL);
}

void play_teardown(void)
{
    check_scene_fini(&play);
    ck_assert_int_eq(check_scene_live(), 0);
    ck_assert_int_eq(atomic_load(&play.freed), 1);
}

void play_again(const struct uva_check *options)
{
    check_scene_fini(&play);
    check_scene_init(&play, options);
}

void play_told(const char *story)
{
    ck_assert_str_eq(check_scene_story(&play), story);
}

void play_told_at_last(const char *story)
{
    uva_schema_release(&play.schema);
    (void)check_scene_conclude(&play);
    play_told(story);
}

void play_begin(void)
{
    ck_assert_int_eq(check_scene_schema(&play), 0);
}

void play_tasks(int count)
{
    for (int i = 0; i < count; i++)
        ck_assert_int_eq(check_scene_task(&play), 0);
}

void play_task(void)
{
    (void)check_scene_task(&play);
}

void play_the_end(void)
{
    (void)check_scene_end(&play);
}

void play_release(void)
{
    check_scene_release(&play);
}

void play_end(void)
{
    ck_assert_int_eq(check_scene_end(&play), 0);
    play_release();
}

void play_ask(int64_t n)
{
    play.peer->request(play.peer, n);
}

void play_cancel(void)
{
    play.peer->cancel(play.peer);
}

/* A function may not be passed as a plain pointer. */
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
