/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of a producer that is used again while a late call still holds it.
 * The test replaces uva__slots_take_producer() at link time, to be between two
 * steps of a thread. */
#include <check.h>

#include "stream/producer.h"
#include "stream/slots.h"
#include "support/check_suite.h"
#include "support/fixture.h"

static struct fixture f;
static struct uva__producer *held; /* the one that a late call holds */
static bool is_late;               /* such a call holds the next one */

void *__wrap_uva__slots_take_producer(struct uva__rt *rt);
void *__real_uva__slots_take_producer(struct uva__rt *rt);
void *__wrap_uva__slots_take_producer(struct uva__rt *rt)
{
    struct uva__producer *taken = __real_uva__slots_take_producer(rt);

    if (!is_late)
        return taken;
    is_late = false;
    held = taken;
    uva__producer_acquire(held);
    return taken;
}

START_TEST(a_late_holder_of_its_memory_does_not_end_a_producer)
{
    fixture_open(&f, 5);
    is_late = true;
    f.stream = fixture_tasks(&f);
    fixture_start(&f);
    uva__producer_release(held); /* the late call returns */
    ck_assert_int_eq(fixture_await(&f), 0);
    ck_assert_int_eq(f.got.taken, 5);
    fixture_close(&f);
}
END_TEST

int main(void)
{
    return suite_main(
        "producer", NULL, NULL,
        suite_tests("memory",
                    a_late_holder_of_its_memory_does_not_end_a_producer, NULL),
        NULL);
}
