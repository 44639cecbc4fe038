/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of the suite in which a system call fails: each reports the failure, and
 * leaves no memory, no file and no process. */
#define _GNU_SOURCE
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "uvarrow/tck.h"

/* ---- failing system calls ----------------------------------------------- */

static long fail_at; /* number of the call, from 1; 0: no failure */
static long asked;   /* calls so far; a child process counts on its own */
static long live;    /* blocks of memory */
static long left;    /* blocks left after a run */

static bool refuses(int code)
{
    if (++asked != fail_at)
        return false;
    errno = code;
    return true;
}

static void *count_block(void *block)
{
    live += block != NULL;
    return block;
}

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
char *__real_realpath(const char *path, char *resolved);
char *__wrap_realpath(const char *path, char *resolved);
void __real_free(void *block);
void __wrap_free(void *block);
void *__real_mmap(void *at, size_t size, int prot, int flags, int fd, off_t o);
void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t o);
int __real_munmap(void *at, size_t size);
int __wrap_munmap(void *at, size_t size);
FILE *__real_tmpfile(void);
FILE *__wrap_tmpfile(void);
FILE *__real_fopen(const char *path, const char *mode);
FILE *__wrap_fopen(const char *path, const char *mode);
int __real_pipe2(int ends[2], int flags);
int __wrap_pipe2(int ends[2], int flags);
pid_t __real_fork(void);
pid_t __wrap_fork(void);

void *__wrap_calloc(size_t count, size_t size)
{
    return refuses(ENOMEM) ? NULL : count_block(__real_calloc(count, size));
}

char *__wrap_strdup(const char *text)
{
    return refuses(ENOMEM) ? NULL : count_block(__real_strdup(text));
}

char *__wrap_realpath(const char *path, char *resolved)
{
    return refuses(ENOMEM) ? NULL
                           : count_block(__real_realpath(path, resolved));
}

void __wrap_free(void *block)
{
    live -= block != NULL;
    __real_free(block);
}

void *__wrap_mmap(void *at, size_t size, int prot, int flags, int fd, off_t o)
{
    if (refuses(ENOMEM))
        return MAP_FAILED;
    live++;
    return __real_mmap(at, size, prot, flags, fd, o);
}

int __wrap_munmap(void *at, size_t size)
{
    live--;
    return __real_munmap(at, size);
}

FILE *__wrap_tmpfile(void)
{
    return refuses(EMFILE) ? NULL : __real_tmpfile();
}

FILE *__wrap_fopen(const char *path, const char *mode)
{
    return refuses(EMFILE) ? NULL : __real_fopen(path, mode);
}

int __wrap_pipe2(int ends[2], int flags)
{
    return refuses(EMFILE) ? -1 : __real_pipe2(ends, flags);
}

pid_t __wrap_fork(void)
{
    return refuses(EAGAIN) ? -1 : __real_fork();
}

/* ---- a run -------------------------------------------------------------- */

static int count_files(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = 0;

    ck_assert_ptr_nonnull(folder);
    while (readdir(folder) != NULL)
        count++;
    ck_assert_int_eq(closedir(folder), 0);
    return count;
}

static bool has_no_child(void)
{
    return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* Runs a short case, with all files written. */
static int run(struct uva_tck_tally *tally, struct uva_error *error)
{
    const struct uva_tck what = {.file = UVA_TEST_BUILD
                                 "/examples/libexample_tck_producer.so",
                                 .filter = "AB-17",
                                 .tap = "/dev/null",
                                 .junit = "/dev/null"};
    int code;

    ck_assert_int_eq(setenv("UVA_TCK_JOBS", "2", 1), 0);
    asked = live = 0;
    code = uva_tck_run(&what, tally, error);
    left = live;
    return code;
}

START_TEST(whatever_the_system_refuses_is_said_and_nothing_is_left)
{
    const int files = count_files();
    struct uva_tck_tally tally;
    struct uva_error error;
    int code, refused = 0;

    for (fail_at = 1; fail_at == 1 || asked >= fail_at - 1; fail_at++) {
        memset(&error, 0, sizeof(error));
        code = run(&tally, &error);
        ck_assert_int_eq(left, 0);
        ck_assert_int_eq(count_files(), files);
        ck_assert(has_no_child());
        ck_assert_int_eq(error.code, code);
        ck_assert_int_eq(error.message[0] != '\0', code != 0);
        ck_assert(code == 0 || code == ENOMEM || code == EMFILE ||
                  code == EAGAIN);
        refused += code != 0;
    }
    ck_assert_int_ge(refused, 8);
}
END_TEST

START_TEST(where_nothing_is_refused_the_case_holds)
{
    struct uva_tck_tally tally;
    struct uva_error error = {0};

    fail_at = 0;
    ck_assert_int_eq(run(&tally, &error), 0);
    ck_assert_int_eq(tally.held, 1);
    ck_assert_int_eq(tally.required_broken, 0);
    ck_assert_int_eq(left, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("runner");
    TCase *all = tcase_create("a run");
    SRunner *runner = srunner_create(suite);
    int failed;

    tcase_add_test(all, where_nothing_is_refused_the_case_holds);
    tcase_add_test(all,
                   whatever_the_system_refuses_is_said_and_nothing_is_left);
    suite_add_tcase(suite, all);
    srunner_run_all(runner, CK_ENV);
    failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
