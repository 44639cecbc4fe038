/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that uses an installed uvarrow-tck: lists the cases for
 * one clause. It does not link libuv. */
#include <stdio.h>

#include <uvarrow/tck.h>

static void count(void *ctx, const struct uva_tck_result *result)
{
    (void)result;
    ++*(int *)ctx;
}

int main(void)
{
    struct uva_error error = {0};
    int cases = 0;
    const struct uva_tck what = {
        .filter = "AP-06", .on_result = count, .ctx = &cases};

    if (uva_tck_list(&what, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return cases > 0 ? 0 : 1;
}
