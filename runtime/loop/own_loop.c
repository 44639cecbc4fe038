/* SPDX-License-Identifier: Apache-2.0 */
/* libuv opens a descriptor for the system's events, a second one for them in
 * some versions, one to be woken, and a pipe for signals; the first loop of a
 * process opens one more pipe, and no failure of that is reported. */
#include "loop/own_loop.h"

#include "base/platform.h"

#define DESCRIPTORS 7
_Static_assert(DESCRIPTORS <= UVA__DESCRIPTORS_TRIED, "all are tried");

int uva__own_loop_init(uv_loop_t *loop)
{
    const int code = uva__platform_try_descriptors();

    return code != 0 ? code : -uv_loop_init(loop);
}
