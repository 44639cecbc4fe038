/* SPDX-License-Identifier: Apache-2.0 */
/* A process that forks while it pushes: the child may not push, and the parent
 * goes on. Other acts of a child are in test_fork.c. */
#include <check.h>
#include <errno.h>

#include "support/check_suite.h"
#include "support/forked_child.h"
#include "support/push_fixture.h"
#include "uvarrow/arrow.h"

static struct push_fixture p;

static void tear_down(void)
{
    push_close(&p);
}

static int child_push(void *ctx)
{
    struct ArrowDeviceArray array;
    int push, schema;

    (void)ctx;
    batch_make(&array, 1);
    push = uva_pusher_push(p.pusher, &array, NULL, UVA_FOREVER);
    schema = uva_pusher_set_schema(p.pusher, NULL);
    uva_pusher_close(p.pusher, NULL, NULL);
    return push == EPERM && schema == EPERM && !uva_array_is_live(&array) &&
                   p.freed == 0
               ? 0
               : 1;
}

START_TEST(a_forked_child_may_not_push)
{
    push_open(&p, 0, 0);
    forked_child_run(child_push, NULL);
    ck_assert_int_eq(push_batch(&p, 1, 0), 0);
}
END_TEST

int main(void)
{
    return suite_main("pusher_fork", NULL, tear_down,
                      suite_tests("fork", a_forked_child_may_not_push, NULL),
                      NULL);
}
