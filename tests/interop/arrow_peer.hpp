/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow C++ before and after a stream: every way from its batches into a
 * stream, and every way from a stream into its batches. */
#ifndef INTEROP_ARROW_PEER_HPP
#define INTEROP_ARROW_PEER_HPP

#include <uv.h>

#include <functional>
#include <list>
#include <string>

#include "arrow_columns.hpp"
#include "uvarrow/uvarrow.h"

namespace interop
{

/* ---- the loop ----------------------------------------------------------- */

/* A loop with a runtime. A separate handle keeps the loop alive, because a
 * stream does not once it only waits for extraction by Arrow's threads. */
struct World {
    uv_loop_t loop;
    uv_async_t awake;
    uv_prepare_t prepare;           /* runs before until() waits */
    uva_runtime *runtime = nullptr; /* until it is closed */
    /* of Arrow; the release of a dropped stream's handler is not reported */
    std::list<ArrowAsyncDeviceStreamHandler> handlers;

    explicit World(bool checked = false); /* with the checker on every hop */
    World(const World &) = delete;
    ~World(); /* closes everything and waits for that */

    void close(); /* closes the runtime; ~World() does the rest */

    void until(const std::function<bool()> &is_over);
    void wake(); /* makes until() check again; any thread */
};

/* The end of a stream, as reported on the loop. */
struct Ending {
    bool done = false;
    uva_end end = UVA_END_COMPLETE;
    int code = 0;
    std::string message;
    std::string metadata; /* the complete block */

    static void on_done(void *ctx, const uva_outcome *outcome);
};

/* ---- Arrow sends -------------------------------------------------------- */

/* The ways from batches of Arrow into a stream. */
enum class From {
    ARRAYS,        /* exported one by one, into uva_stream_from_arrays() */
    READY,         /* ExportAsyncRecordBatchReader(), of ready batches */
    POOLED,        /* as READY, of batches made on Arrow's threads */
    READER,        /* ExportRecordBatchReader() */
    DEVICE_READER, /* ExportDeviceRecordBatchReader() */
    QUICK_READER,  /* ExportDeviceRecordBatchReader(), on the loop thread */
    END
};

/* Puts a handler in front of another one, and returns the one to call. */
using Tap = std::function<ArrowAsyncDeviceStreamHandler *(
    ArrowAsyncDeviceStreamHandler *)>;

/* The input: these batches, and then the error, if it is one. */
struct Feed {
    Batches batches;
    arrow::Status end{};
    int32_t window = 0;   /* size in batches; 0: the default */
    bool on_loop = false; /* READY and POOLED: extraction on the loop thread */
    bool endless = false; /* repeats the batches for ever */
    /* sent instead of the batches; or NULL */
    std::shared_ptr<arrow::RecordBatchReader> reader{};
    Tap tap{}; /* READY and POOLED: between Arrow and uvarrow; or empty */

    std::shared_ptr<arrow::Schema> schema() const;
    arrow::Result<Batch> batch(size_t k) const;
};

/* ARRAYS cannot fail, end only after many batches if endless, and have no
 * reader. */
uva_stream *stream_from(World &world, From from, const Feed &feed);

/* ---- Arrow receives ----------------------------------------------------- */

/* The ways from a stream into batches of Arrow. */
enum class To {
    EACH,            /* for_each, imported one by one */
    DRIVE,           /* CreateAsyncDeviceStreamHandler(), called by the loop */
    DRIVE_ON_WORKER, /* CreateAsyncDeviceStreamHandler(), called by a worker */
    BLOCKING,        /* ImportRecordBatchReader() */
    DEVICE_BLOCKING, /* ImportDeviceRecordBatchReader() */
    END
};

/* The stop of the stream once `at` batches were read. */
enum class Stop {
    NEVER,
    CANCEL, /* uva_stream_cancel(), with ENOSPC and "seen enough" */
    LEAVE,  /* the reader stops: ECANCELED from a callback, or a release */
    RESCUE, /* LEAVE, then CANCEL: Arrow's handler waits for an end */
    DROP    /* uva_stream_drop(), while the reader continues */
};

struct Plan {
    Stop stop = Stop::NEVER;
    size_t at = 0;
    int32_t window =
        0;     /* size in batches of to_device_stream, of Arrow's queue */
    Tap tap{}; /* DRIVE..: between uvarrow and Arrow; or empty */
};

/* The batches that arrived, and how the stream ended, as reported by Arrow and
 * by uvarrow. */
struct Delivery {
    std::shared_ptr<arrow::Schema> schema;
    Batches batches;
    std::vector<std::shared_ptr<const arrow::KeyValueMetadata>> metadata;
    arrow::Status status{}; /* Arrow's; for EACH always OK */
    Ending ending{};        /* for EACH, DRIVE..; not for a dropped stream */
};

/* Reads `stream` to the end, or until it is stopped, and releases it. */
Delivery carry(World &world, uva_stream *stream, To to, const Plan &plan = {});

/* Returns a reader of Arrow at the end of `stream`, which it takes. */
std::shared_ptr<arrow::RecordBatchReader> reader_on(uva_stream *stream);

/* ---- the program -------------------------------------------------------- */

/* Makes test cases, each of which must leave no object in Arrow's memory. */
TCase *new_case(Suite *suite, const char *name);

/* Runs it; returns the exit code of main(). */
int run_suite(Suite *suite);

} // namespace interop

#endif
