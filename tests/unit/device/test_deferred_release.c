/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays that are kept until the workers are gone. */
#include <check.h>
#include <stdlib.h>

#include "device/registry.h"
#include "support/check_suite.h"
#include "support/fake_source.h"

static struct uva__deferred_release *kept_new(struct fake_source *fake,
                                              int64_t k)
{
    struct uva__deferred_release *kept = calloc(1, sizeof(*kept));

    fake_source_batch(fake, k, &kept->array);
    return kept;
}

START_TEST(what_is_kept_is_released_at_the_end)
{
    struct uva__deferred_releases deferred_releases = {0};
    struct fake_source fake;

    fake_source_init(&fake, 3);
    for (int k = 0; k < 3; k++)
        uva__deferred_releases_take(&deferred_releases, kept_new(&fake, k));
    ck_assert_int_eq(atomic_load(&fake.live), 3);
    uva__deferred_releases_end(&deferred_releases);
    ck_assert_int_eq(atomic_load(&fake.live), 0);
    ck_assert_ptr_null(deferred_releases.first);
    fake_source_fini(&fake);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("arrays");

    tcase_add_test(tc, what_is_kept_is_released_at_the_end);
    return suite_main("device kept", NULL, NULL, tc, NULL);
}
