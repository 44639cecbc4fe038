/* SPDX-License-Identifier: Apache-2.0 */
/* A program that uses both libraries, although their archives contain some
 * functions twice: opens a runtime with its own thread, and lists cases of the
 * suite. */
#include <stdio.h>

#include <uvarrow/tck.h>
#include <uvarrow/uvarrow.h>

static void count(void *ctx, const struct uva_tck_result *result)
{
    (void)result;
    ++*(int *)ctx;
}

int main(void)
{
    struct uva_error error = {0};
    struct uva_runtime *runtime = NULL;
    int cases = 0;
    const struct uva_tck what = {
        .filter = "AP-06", .on_result = count, .ctx = &cases};

    if (uva_runtime_open(NULL, NULL, &runtime, &error) != 0 ||
        uva_tck_list(&what, &error) != 0) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    return uva_runtime_join(runtime, UVA_FOREVER) != 0 || cases == 0;
}
