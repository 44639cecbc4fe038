/* SPDX-License-Identifier: Apache-2.0 */
/* Checks our headers with a struct ArrowAsyncProducer that another header has
 * defined before: the released one and the printed one (AB-09, G-03). Compiled,
 * not run, by tests/abi/run, with the other header in front, and with
 * UVA_ABI_EXPECT 0 or 1: whether that has the printed one. */
#include "uvarrow/uvarrow.h"

#ifdef __cplusplus
static_assert(UVA_ABI_IS_PRINTED == UVA_ABI_EXPECT, "the layout is known");
#else
_Static_assert(UVA_ABI_IS_PRINTED == UVA_ABI_EXPECT, "the layout is known");
#endif

struct uva_stream *uva_abi_make(struct uva_runtime *runtime);
struct uva_stream *uva_abi_make(struct uva_runtime *runtime)
{
    return uva_stream_from_async(runtime, NULL);
}

int uva_abi_check(struct ArrowAsyncDeviceStreamHandler *handler);
int uva_abi_check(struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct ArrowAsyncDeviceStreamHandler *out;

    return uva_check_handler(handler, NULL, &out, NULL);
}
