/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream, an ArrowDeviceArrayStream, put to the test: this file lets
 * the test suite open it. Yours may be in any language, and need not use
 * uvarrow.
 *
 *     uvarrow tck libexample_tck_stream.so
 */
#include "tck_rows.h"
#include "uvarrow/tck.h"

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         struct ArrowDeviceArrayStream *out)
{
    struct uva_stream *s = tck_stream(plan, batches, at);
    int code;

    if (s == NULL)
        return UVA_SUBJECT_CANNOT; /* cases of this plan are skipped */
    code = uva_stream_to_device_stream(s, NULL, out, NULL);
    uva_stream_release(s); /* `out` keeps it */
    return code;
}
