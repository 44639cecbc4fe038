/* SPDX-License-Identifier: Apache-2.0 */
/* Sandboxes: how processes end in them, and which objects remain. */
#define _GNU_SOURCE
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tck/sandbox.h"

enum { LONG_MS = 60000, TEXT = 64 };

static struct uva__sandbox sandbox;
static char text[TEXT];

/* Opens a sandbox and waits until it has ended; its output is in `text`. */
static void lock_up(void (*fn)(void *ctx), void *ctx, int64_t limit_ms)
{
    ck_assert_int_eq(uva__sandbox_open(&sandbox, fn, ctx, limit_ms), 0);
    ck_assert_int_eq(uva__sandbox_wait(&sandbox, 1), 0);
    uva__sandbox_fini(&sandbox, text, sizeof(text));
    ck_assert_int_eq(uva__sandbox_wait(&sandbox, 1), -1);
}

/* ---- ends --------------------------------------------------------------- */

static void nothing(void *ctx)
{
    (void)ctx;
}

static void leave(void *ctx)
{
    _exit(*(int *)ctx);
}

static void crash(void *ctx)
{
    (void)ctx;
    (void)signal(SIGABRT, SIG_DFL);
    abort();
}

static void hang(void *ctx)
{
    (void)ctx;
    for (;;)
        (void)pause();
}

START_TEST(who_comes_back_has_ended_well)
{
    lock_up(nothing, NULL, LONG_MS);
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_EXITED);
    ck_assert_int_eq(sandbox.code, 0);
    ck_assert_str_eq(text, "");
}
END_TEST

START_TEST(who_leaves_has_a_code)
{
    int code = 7;

    lock_up(leave, &code, LONG_MS);
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_EXITED);
    ck_assert_int_eq(sandbox.code, 7);
}
END_TEST

START_TEST(who_crashes_has_a_signal)
{
    lock_up(crash, NULL, LONG_MS);
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_CRASHED);
    ck_assert_int_eq(sandbox.code, SIGABRT);
}
END_TEST

START_TEST(who_hangs_is_ended)
{
    lock_up(hang, NULL, 1);
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_HUNG);
    ck_assert_int_ge(sandbox.took_ms, 1);
}
END_TEST

START_TEST(a_jail_that_is_given_up_is_ended)
{
    pid_t pid;

    ck_assert_int_eq(uva__sandbox_open(&sandbox, hang, NULL, LONG_MS), 0);
    pid = sandbox.pid;
    uva__sandbox_fini(&sandbox, text, sizeof(text));
    ck_assert_int_eq(sandbox.end, UVA__SANDBOX_HUNG);
    ck_assert_int_eq(waitpid(pid, NULL, 0), -1);
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* ---- child processes ---------------------------------------------------- */

/* A child process that outlives the function and holds the pipe. */
static void bear_child(void *ctx)
{
    (void)ctx;
    if (fork() == 0)
        hang(NULL);
}

START_TEST(its_children_go_with_it)
{
    int ends[2];
    char byte;

    ck_assert_int_eq(pipe(ends), 0);
    ck_assert_int_eq(uva__sandbox_open(&sandbox, bear_child, NULL, 50), 0);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(uva__sandbox_wait(&sandbox, 1), 0);
    uva__sandbox_fini(&sandbox, text, sizeof(text));
    ck_assert_int_eq(read(ends[0], &byte, 1), 0); /* all copies are closed */
    ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

static void wait_for_end(void *ctx)
{
    const int *ends = ctx;
    char byte;

    (void)close(ends[1]);
    (void)!read(ends[0], &byte, 1);
}

START_TEST(whichever_is_over_first_is_given)
{
    struct uva__sandbox sandboxes[3] = {{0}};
    int ends[2];

    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(
        uva__sandbox_open(&sandboxes[0], wait_for_end, ends, LONG_MS), 0);
    ck_assert_int_eq(uva__sandbox_open(&sandboxes[2], nothing, NULL, LONG_MS),
                     0);
    ck_assert_int_eq(uva__sandbox_wait(sandboxes, 3), 2);
    ck_assert_int_eq(close(ends[1]), 0);
    ck_assert_int_eq(uva__sandbox_wait(sandboxes, 3), 0);
    ck_assert_int_eq(uva__sandbox_wait(sandboxes, 3), -1);
    for (int i = 0; i < 3; i++)
        uva__sandbox_fini(&sandboxes[i], text, sizeof(text));
    ck_assert_int_eq(close(ends[0]), 0);
}
END_TEST

/* ---- output ------------------------------------------------------------- */

static void say(void *ctx)
{
    (void)!write(STDOUT_FILENO, ctx, strlen(ctx));
    (void)!write(STDERR_FILENO, "!\0\033\n", 4);
}

START_TEST(what_it_prints_is_caught_and_cleaned)
{
    lock_up(say, (char[]){"hello"}, LONG_MS);
    ck_assert_str_eq(text, "hello!??\n");
}
END_TEST

START_TEST(of_much_output_the_end_is_told)
{
    char much[4 * TEXT];

    memset(much, 'x', sizeof(much));
    much[sizeof(much) - 1] = '\0';
    lock_up(say, much, LONG_MS);
    ck_assert_int_eq((int)strlen(text), TEXT - 1);
    ck_assert_str_eq(text + TEXT - 6, "x!??\n");
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("sandbox");
    TCase *all = tcase_create("sandboxes");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(all, who_comes_back_has_ended_well);
    tcase_add_test(all, who_leaves_has_a_code);
    tcase_add_test(all, who_crashes_has_a_signal);
    tcase_add_test(all, who_hangs_is_ended);
    tcase_add_test(all, a_jail_that_is_given_up_is_ended);
    tcase_add_test(all, its_children_go_with_it);
    tcase_add_test(all, whichever_is_over_first_is_given);
    tcase_add_test(all, what_it_prints_is_caught_and_cleaned);
    tcase_add_test(all, of_much_output_the_end_is_told);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
