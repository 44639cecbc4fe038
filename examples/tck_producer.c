/* SPDX-License-Identifier: Apache-2.0 */
/* A producer of Arrow's asynchronous interface, put to the test: this file lets
 * the test suite start it. Yours may be in any language, and need not use
 * uvarrow; this one is a stream that drives the handler of the suite.
 *
 *     uvarrow tck libexample_tck_producer.so
 */
#include "tck_rows.h"
#include "uvarrow/tck.h"

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* The process of a case ends without a call to us, so nothing is closed. */
int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            struct ArrowAsyncDeviceStreamHandler *handler)
{
    struct uva_stream *s = tck_stream(plan, batches, at);
    int code;

    if (s == NULL)
        return UVA_SUBJECT_CANNOT; /* cases of this plan are skipped */
    code = uva_stream_drive(s, handler, NULL, NULL);
    uva_stream_release(s); /* it runs to its end */
    return code;
}
