/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow C++ before a stream and behind it: every way from its batches into a
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

/* A loop and a runtime on it. A handle of its own keeps the loop waiting: a
 * stream does not, once only extraction by Arrow's threads is awaited. */
struct World {
    uv_loop_t loop;
    uv_async_t awake;
    uva_runtime *runtime = nullptr; /* until it is closed */
    /* of Arrow: of a stream dropped, nothing tells when it is released */
    std::list<ArrowAsyncDeviceStreamHandler> handlers;

    explicit World(bool checked = false); /* with the checker on every hop */
    World(const World &) = delete;
    ~World(); /* closes, and waits until all is closed */

    void close(); /* the runtime; ~World() does the rest */

    void until(const std::function<bool()> &is_over);
    void wake(); /* until() looks again; any thread */
};

/* The end of a stream, as the loop hears of it. */
struct Ending {
    bool done = false;
    uva_end end = UVA_END_COMPLETE;
    int code = 0;
    std::string message;
    std::string metadata; /* the block, whole */

    static void on_done(void *ctx, const uva_outcome *outcome);
};

/* ---- Arrow sends -------------------------------------------------------- */

/* The ways from batches of Arrow into a stream. */
enum class From {
    ARRAYS,        /* exported one by one, into uva_stream_from_arrays() */
    READY,         /* ExportAsyncRecordBatchReader(), what it sends is ready */
    POOLED,        /* the same, what it sends is made on Arrow's threads */
    READER,        /* ExportRecordBatchReader() */
    DEVICE_READER, /* ExportDeviceRecordBatchReader() */
    QUICK_READER,  /* the same, on the loop thread */
    END
};

/* Puts something before a handler, and returns what is to be called in its
 * stead. */
using Tap = std::function<ArrowAsyncDeviceStreamHandler *(
    ArrowAsyncDeviceStreamHandler *)>;

/* What is sent: these, and then an error, if it is one. */
struct Feed {
    Batches batches;
    arrow::Status end{};
    int32_t window = 0;   /* in batches; 0: the default */
    bool cheap = false;   /* READY and POOLED: extracted on the loop thread */
    bool endless = false; /* again from the first, for ever */
    /* what is sent instead; or NULL */
    std::shared_ptr<arrow::RecordBatchReader> reader{};
    Tap tap{}; /* READY and POOLED: between Arrow and uvarrow; or none */

    std::shared_ptr<arrow::Schema> schema() const;
    arrow::Result<Batch> batch(size_t k) const;
};

/* ARRAYS cannot fail, have an end, if a far one, and come from no reader. */
uva_stream *stream_from(World &world, From from, const Feed &feed);

/* ---- Arrow receives ----------------------------------------------------- */

/* The ways from a stream into batches of Arrow. */
enum class To {
    EACH,            /* for_each, imported one by one */
    DRIVE,           /* CreateAsyncDeviceStreamHandler(), called by the loop */
    DRIVE_ON_WORKER, /* the same, called by a worker */
    BLOCKING,        /* ImportRecordBatchReader() */
    DEVICE_BLOCKING, /* ImportDeviceRecordBatchReader() */
    END
};

/* What is done to the stream once `at` batches were read. */
enum class Stop {
    NEVER,
    CANCEL, /* uva_stream_cancel(), with ENOSPC and "seen enough" */
    LEAVE,  /* the reader goes: ECANCELED from a callback, or it lets go of what
               it reads from */
    RESCUE, /* the same, and then CANCEL: for Arrow's handler cannot cancel, and
               waits for an end */
    DROP    /* uva_stream_drop(), while the reader goes on */
};

struct Plan {
    Stop stop = Stop::NEVER;
    size_t at = 0;
    int32_t window = 0; /* in batches: of to_blocking, of Arrow's queue */
    Tap tap{};          /* DRIVE..: between uvarrow and Arrow; or none */
};

/* What arrived, and how it ended, as Arrow says and as uvarrow says. */
struct Delivery {
    std::shared_ptr<arrow::Schema> schema;
    Batches batches;
    std::vector<std::shared_ptr<const arrow::KeyValueMetadata>> metadata;
    arrow::Status status{}; /* Arrow's; of EACH: always OK */
    Ending ending{};        /* of EACH, DRIVE..; not of a dropped stream */
};

/* Reads `stream` to the end, or to where it is stopped, and releases it. */
Delivery carry(World &world, uva_stream *stream, To to, const Plan &plan = {});

/* A reader of Arrow on the end of `stream`, which it takes. */
std::shared_ptr<arrow::RecordBatchReader> reader_on(uva_stream *stream);

/* ---- the program -------------------------------------------------------- */

/* A suite of which each case is to leave nothing in Arrow's memory. */
TCase *new_case(Suite *suite, const char *name);

/* Runs it; what main() returns. */
int run_suite(Suite *suite);

} // namespace interop

#endif
