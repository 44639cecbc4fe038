/* SPDX-License-Identifier: Apache-2.0 */
/* The smallest program that uses an installed uvarrow: opens a runtime on its
 * own uv loop and closes it. Built by tests/install/run in all documented ways.
 */
#include <stdio.h>
#include <uv.h>

#include <uvarrow/uvarrow.h>

int main(void)
{
    struct uva_runtime *runtime = NULL;
    struct uva_error error = {0};
    uv_loop_t loop;
    int code;

    if (uva_version() != UVA_VERSION_HEX || uv_loop_init(&loop) != 0)
        return 1;
    code = uva_runtime_open(&loop, NULL, &runtime, &error);
    if (code != 0) {
        fprintf(stderr, "%s: %s\n", uva_error_name(code), error.message);
        return 1;
    }
    uva_runtime_close(runtime, 0, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : 1;
}
