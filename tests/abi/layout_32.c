/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the sizes of the Arrow C structs on 32-bit platforms (AB-11). They
 * depend on the alignment of int64_t: 4 bytes on i386 except on Windows, 8
 * elsewhere. Compiled, not run, by tests/abi/run. */
#include <stddef.h>

#include "uvarrow/arrow_abi.h"

#if defined(__i386__) && !defined(_WIN32)
#define BY_ALIGNMENT(four, eight) (four)
#else
#define BY_ALIGNMENT(four, eight) (eight)
#endif
#define SIZE(type, bytes)                                                      \
    _Static_assert(sizeof(struct type) == (bytes), #type " is not " #bytes)

_Static_assert(sizeof(void *) == 4, "not a 32-bit platform");
SIZE(ArrowSchema, BY_ALIGNMENT(44, 48));
SIZE(ArrowArray, BY_ALIGNMENT(60, 64));
SIZE(ArrowDeviceArray, BY_ALIGNMENT(100, 104));
SIZE(ArrowArrayStream, 20);
SIZE(ArrowDeviceArrayStream, 24);
SIZE(ArrowAsyncTask, 8);
SIZE(ArrowAsyncProducer, 20);
SIZE(ArrowAsyncDeviceStreamHandler, 24);
