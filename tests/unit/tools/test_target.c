/* SPDX-License-Identifier: Apache-2.0 */
/* The file that an output ends in, where the system has no files without a
 * name: this program has no /proc. tests/integration/test_query_output.py has
 * all else. */
#include "target.h"

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check_suite.h"

static char folder[] = UVA_TEST_BUILD "/test_target.XXXXXX";
static char path[sizeof(folder) + 20];
static struct uva__guard guard;
static struct uva__target target;
static bool refuses_rename;

int __wrap_access(const char *name, int mode);
int __real_access(const char *name, int mode);
int __wrap_rename(const char *from, const char *to);
int __real_rename(const char *from, const char *to);

int __wrap_access(const char *name, int mode)
{
    return strcmp(name, "/proc/self/fd") == 0 ? -1 : __real_access(name, mode);
}

int __wrap_rename(const char *from, const char *to)
{
    if (!refuses_rename)
        return __real_rename(from, to);
    errno = EBUSY; /* as for the mount point of a container */
    return -1;
}

static void file_write(const char *text)
{
    FILE *file = fopen(path, "we");

    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static void file_expect(const char *text)
{
    char seen[100] = "";
    FILE *file = fopen(path, "re");

    ck_assert_ptr_nonnull(file);
    (void)fread(seen, 1, sizeof(seen) - 1, file);
    ck_assert_str_eq(seen, text);
    ck_assert_int_eq(fclose(file), 0);
}

static int folder_count(void)
{
    DIR *files = opendir(folder);
    int count = 0;

    ck_assert_ptr_nonnull(files);
    while (readdir(files) != NULL)
        count++;
    ck_assert_int_eq(closedir(files), 0);
    return count - 2; /* "." and ".." */
}

static void set_up(void)
{
    refuses_rename = false;
    (void)strcpy(folder + sizeof(folder) - 7, "XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(folder));
    (void)snprintf(path, sizeof(path), "%s/out.csv", folder);
    ck_assert_int_eq(uva__guard_open(&guard, 1000, 0, true, NULL), 0);
}

static void tear_down(void)
{
    uva__guard_close(&guard);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(folder), 0);
}

static int target_open(struct uva_error *error)
{
    const struct uva__options options = {.output = path};

    return uva__target_open(&target, &options, &guard, error);
}

static void target_begin(void)
{
    file_write("old");
    ck_assert_int_eq(chmod(path, 0640), 0);
    ck_assert_int_eq(target_open(NULL), 0);
    ck_assert_int_eq(write(target.fd, "new", 3), 3);
    ck_assert_str_eq(guard.path, target.fresh);
    ck_assert_int_eq(folder_count(), 2);
    file_expect("old");
}

START_TEST(a_new_file_with_a_name_replaces_the_old_one)
{
    struct stat about;

    target_begin();
    ck_assert_int_eq(uva__target_keep(&target, NULL), 0);
    file_expect("new");
    ck_assert_int_eq(stat(path, &about), 0);
    ck_assert_int_eq(about.st_mode & 07777, 0640);
    ck_assert_int_eq(folder_count(), 1);
    ck_assert_ptr_null(guard.path);
}
END_TEST

START_TEST(a_new_file_that_is_dropped_is_removed)
{
    target_begin();
    uva__target_drop(&target);
    file_expect("old");
    ck_assert_int_eq(folder_count(), 1);
    ck_assert_ptr_null(guard.path);
}
END_TEST

START_TEST(a_name_that_is_taken_is_left_alone)
{
    char taken[sizeof(path) + 40];

    (void)snprintf(taken, sizeof(taken), "%s/.uvarrow-%ld-0", folder,
                   (long)getpid());
    ck_assert_int_eq(symlink("/nowhere", taken), 0);
    ck_assert_int_eq(target_open(NULL), 0);
    ck_assert_str_ne(target.fresh, taken);
    ck_assert_int_eq(uva__target_keep(&target, NULL), 0);
    file_expect("");
    ck_assert_int_eq(unlink(taken), 0);
    ck_assert_int_eq(folder_count(), 1);
}
END_TEST

START_TEST(a_file_that_cannot_be_replaced_is_as_it_was)
{
    struct uva_error error = {0};

    target_begin();
    refuses_rename = true;
    ck_assert_int_eq(uva__target_keep(&target, &error), EBUSY);
    ck_assert_ptr_nonnull(strstr(error.message, "--in-place"));
    file_expect("old");
    ck_assert_int_eq(folder_count(), 1);
}
END_TEST

START_TEST(the_guard_removes_what_is_not_closed)
{
    int status = 0;

#ifdef __SANITIZE_THREAD__ /* it ends a forked child that starts a thread */
    return;
#endif
    target_begin();
    if (fork() == 0) { /* loops do not survive a fork: its own guard */
        struct uva__guard own;

        if (uva__guard_open(&own, 0, 0, false, NULL) != 0)
            _exit(1);
        uva__guard_remove(&own, target.fresh);
        (void)raise(SIGTERM);
        for (;;)
            (void)pause();
    }
    ck_assert_int_gt(wait(&status), 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 128 + SIGTERM);
    ck_assert_int_eq(folder_count(), 1);
    file_expect("old");
    uva__target_drop(&target);
}
END_TEST

int main(void)
{
    TCase *files = tcase_create("files");

    tcase_add_test(files, a_new_file_with_a_name_replaces_the_old_one);
    tcase_add_test(files, a_new_file_that_is_dropped_is_removed);
    tcase_add_test(files, a_name_that_is_taken_is_left_alone);
    tcase_add_test(files, a_file_that_cannot_be_replaced_is_as_it_was);
    tcase_add_test(files, the_guard_removes_what_is_not_closed);
    return suite_main("target", set_up, tear_down, files, NULL);
}
