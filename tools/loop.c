/* SPDX-License-Identifier: Apache-2.0 */
/* The library has the trials. */
#include "loop.h"

#include "io/loop_threads.h"
#include "loop/own_loop.h"

int uva__loop_open(uv_loop_t *loop, struct uva_error *error)
{
    const int code = uva__own_loop_init(loop);

    return code == 0 ? 0
                     : uva_error_set(error, code, "no event loop: %s",
                                     uv_strerror(-code));
}

int uva__loop_threads(uv_loop_t *loop, struct uva_error *error)
{
    const int code = uva__loop_threads_start(loop);

    return code == 0
               ? 0
               : uva_error_set(error, code, "the system gives no threads: %s",
                               uv_strerror(-code));
}
