/* SPDX-License-Identifier: Apache-2.0 */
/* Databases without waiting: any ADBC driver, on an event loop. A library of
 * its own, libuvarrow-adbc, which uvarrow.h does not include. Objects of
 * <arrow-adbc/adbc.h> and of the ADBC driver manager can be passed as they are;
 * without that header, adbc_abi.h declares them.
 *
 * Everything a driver does (load, connect, prepare, execute, fetch, release)
 * runs on blocking workers. A cancel calls the driver's own cancel. A driver's
 * error arrives as an errno with its text; its status, SQLSTATE, vendor code
 * and details are in the metadata of the outcome, under the keys adbc.status,
 * adbc.sqlstate, adbc.vendor_code and adbc.detail.NAME. See docs/adbc.md. */
#ifndef UVARROW_ADBC_H
#define UVARROW_ADBC_H

#include "uvarrow/adbc_abi.h"
#include "uvarrow/base.h"
#include "uvarrow/runtime.h"
#include "uvarrow/stream.h"

#ifdef __cplusplus
extern "C" {
#endif

/** How a statement becomes a stream. */
struct uva_adbc_source {
    /* called after the statement was released, on any thread: gives back the
     * connection. NULL: no callback */
    void (*free_ctx)(void *ctx);
    void *ctx;                /* owns, through free_ctx */
    struct uva_window window; /* read ahead of demand */
    void *reserved[4];
};

/** Creates a stream of the result of a statement that is ready to be executed:
 * its SQL or plan is set, and its parameters are bound. It is executed when the
 * stream starts. Takes `statement`, which reads as zeroed afterwards; a worker
 * releases it after its result. Its connection must outlive it: see free_ctx.
 * Its `private_driver` must be set, to a struct AdbcDriver of ADBC 1.1 in which
 * functions that the driver lacks are NULL; otherwise the error is EINVAL, and
 * the statement stays as it is. `options` may be NULL.
 *
 * The metadata of uva_stream_info has adbc.rows_affected if the driver reports
 * a number. A statement without a result gives a stream without columns and
 * rows. Returns the stream, never NULL, with one reference for the caller.
 * Thread: any. */
UVA_API UVA_MUST_CHECK struct uva_stream *
uva_stream_from_adbc(struct uva_runtime *runtime,
                     struct AdbcStatement *statement,
                     const struct uva_adbc_source *options);

/** Executes a statement for a handler of Arrow's asynchronous interface: an
 * asynchronous execute for every synchronous driver. The metadata of the
 * handler's producer is that of the stream that uva_stream_from_adbc() creates.
 * Returns 0: takes `statement`, `options->ctx` and `handler`, and calls the
 * release of the handler exactly once. Otherwise they are untouched: as
 * uva_stream_drive().
 * Thread: any. */
UVA_API UVA_MUST_CHECK int
uva_adbc_execute(struct uva_runtime *runtime, struct AdbcStatement *statement,
                 struct ArrowAsyncDeviceStreamHandler *handler,
                 const struct uva_adbc_source *options,
                 struct uva_error *error);

#ifdef __cplusplus
}
#endif

#endif
