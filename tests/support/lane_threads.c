/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the creation of threads fail, for lane_fixture.h, as glibc and musl
 * can. */
#define _GNU_SOURCE
#include <check.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "support/lane_fixture.h"

/* A default stack size beyond any address space makes pthread_create() fail.
 * musl cuts a stack that is too large to 8 MB, so that there it is all further
 * memory that is limited to 4 MB. */
static void limit_memory(bool is_limited)
{
#ifdef __GLIBC__
    (void)is_limited;
#else
    static struct rlimit before;
    struct rlimit limit;
    unsigned long pages;
    FILE *file;

    if (!is_limited) {
        ck_assert_int_eq(setrlimit(RLIMIT_AS, &before), 0);
        return;
    }
    file = fopen("/proc/self/statm", "r");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_eq(fscanf(file, "%lu", &pages), 1);
    ck_assert_int_eq(fclose(file), 0);
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &before), 0);
    limit = before;
    limit.rlim_cur = pages * (rlim_t)sysconf(_SC_PAGESIZE) + (4 << 20);
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
#endif
}

void lane_threads_run_out(bool out)
{
    static pthread_attr_t before;
    pthread_attr_t huge;

    limit_memory(out);
    if (!out) {
        ck_assert_int_eq(pthread_setattr_default_np(&before), 0);
        return;
    }
    ck_assert_int_eq(pthread_getattr_default_np(&before), 0);
    ck_assert_int_eq(pthread_getattr_default_np(&huge), 0);
    ck_assert_int_eq(pthread_attr_setstacksize(&huge, (size_t)1 << 47), 0);
    ck_assert_int_eq(pthread_setattr_default_np(&huge), 0);
    pthread_attr_destroy(&huge);
}
