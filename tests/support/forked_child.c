/* SPDX-License-Identifier: Apache-2.0 */
/* The child exits without the handlers of its parent's process, because those
 * would flush and free the parent's objects. It writes the counts of a coverage
 * build first. */
#include "support/forked_child.h"

#include <check.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_SECONDS = 30 };

#ifdef UVA_COVERAGE
void __gcov_dump(void);
#else
static void __gcov_dump(void)
{
}
#endif

void forked_child_run(int (*run)(void *ctx), void *ctx)
{
    const pid_t child = fork();
    int status, wrong;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)alarm(CHILD_SECONDS);
        wrong = run(ctx);
        __gcov_dump();
        _exit(wrong);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert_msg(WIFEXITED(status), "the child died of signal %d",
                  WTERMSIG(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
