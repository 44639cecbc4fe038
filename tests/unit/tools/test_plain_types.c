/* SPDX-License-Identifier: Apache-2.0 */
/* The cast to plain types without memory: each allocation fails once, and the
 * schema that was made before is released. */
#include "plain_types.h"
#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/loop_fixture.h"
#include "support/plain_tree.h"
#include "support/recording_consumer.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

#include <check.h>
#include <errno.h>

/* The copies of schemas that were made and not released. */
static int copies;
static void (*release)(struct ArrowSchema *schema);

static void copy_release(struct ArrowSchema *schema)
{
    copies--;
    schema->release = release;
    release(schema);
}

int __real_uva_schema_copy(const struct ArrowSchema *schema,
                           struct ArrowSchema *out);
int __wrap_uva_schema_copy(const struct ArrowSchema *schema,
                           struct ArrowSchema *out);
int __wrap_uva_schema_copy(const struct ArrowSchema *schema,
                           struct ArrowSchema *out)
{
    const int code = __real_uva_schema_copy(schema, out);

    if (code != 0)
        return code;
    copies++;
    release = out->release;
    out->release = copy_release;
    return 0;
}

/* Casts a stream whose `n`-th allocation by the cast fails; 0: none. */
static void cast(struct recording_consumer *consumer, int n)
{
    struct loop_fixture loop;
    struct ArrowSchema schema;
    struct uva_stream *stream;

    release = NULL;
    recording_init(consumer);
    loop_open(&loop);
    plain_schema(&schema, "+s", "", 2);
    plain_schema(schema.children[0], "vu", "view", 0);
    plain_schema(schema.children[1], "i", "number", 0);
    stream = uva_stream_from_arrays(loop.runtime, &schema, NULL, 0);
    ck_assert_int_eq(uva__plain_types(stream), 0);
    recording_consume(consumer, stream); /* the schema comes with a turn */
    faulty_libc_fail(n);
    recording_await_done(consumer, &loop);
    loop_close(&loop);
}

START_TEST(each_allocation_may_fail)
{
    struct recording_consumer consumer;
    int copied = 0;

    for (int n = 1; n < 100; n++) {
        cast(&consumer, n);
        ck_assert_int_eq(copies, 0);
        ck_assert_int_eq(plain_live(), 0);
        if (!faulty_libc_stop()) /* there are not so many */
            break;
        ck_assert_int_eq(consumer.outcome.end, UVA_END_FAILED);
        ck_assert_int_eq(consumer.outcome.error.code, ENOMEM);
        copied += release != NULL;
    }
    ck_assert_int_eq(consumer.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_ge(copied, 1); /* some failed after the copy */
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("plain types");

    suite_add(tc, each_allocation_may_fail, NULL);
    return suite_main("plain_types", NULL, NULL, tc, NULL);
}
