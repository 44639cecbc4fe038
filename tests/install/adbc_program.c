/* SPDX-License-Identifier: Apache-2.0 */
/* Names no driver, to check that the library beside the runtime can be linked.
 */
#include <stdio.h>
#include <uv.h>
#include <uvarrow/adbc.h>
#include <uvarrow/uvarrow.h>

int main(void)
{
    struct uva_adbc_pool *pool = NULL;
    struct uva_runtime *runtime;
    struct uva_error error;
    int code;

    if (uva_runtime_open(uv_default_loop(), NULL, &runtime, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    code = uva_adbc_pool_new(runtime, NULL, &pool, &error);
    (void)uva_runtime_close(runtime, 0, NULL, NULL);
    (void)uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return code == EINVAL && uva_version() == UVA_VERSION_HEX ? 0 : 1;
}
