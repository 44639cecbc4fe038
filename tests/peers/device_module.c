/* SPDX-License-Identifier: Apache-2.0 */
/* For the tests of peers with streams of devices: a plain stream as one, and
 * one as a plain stream, through a runtime. */
#include "uvarrow/uvarrow.h"

/* Python calls these by name. */
int device_to(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              struct ArrowDeviceArrayStream *out);
int device_from(struct uva_runtime *runtime, struct ArrowDeviceArrayStream *in,
                struct ArrowArrayStream *out);

int device_to(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              struct ArrowDeviceArrayStream *out)
{
    struct uva_stream *stream = uva_stream_from_arrow_stream(runtime, in, NULL);
    const int code = uva_stream_to_device_stream(stream, NULL, out, NULL);

    uva_stream_release(stream);
    return code;
}

int device_from(struct uva_runtime *runtime, struct ArrowDeviceArrayStream *in,
                struct ArrowArrayStream *out)
{
    struct uva_stream *stream =
        uva_stream_from_device_stream(runtime, in, NULL);
    const int code = uva_stream_to_arrow_stream(stream, NULL, out, NULL);

    uva_stream_release(stream);
    return code;
}
