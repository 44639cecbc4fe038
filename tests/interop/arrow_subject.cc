/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow C++ as a subject of the test suite: its exporter of asynchronous
 * readers is the producer, its importer the handler, its exporter of readers
 * the blocking stream. This is only an adapter: whatever Arrow does, right or
 * wrong, passes through unchanged, and a plan that Arrow's interface cannot
 * express is refused.
 *
 * Built three times. In one build batches are ready when they are requested;
 * with ARROW_SUBJECT_POOLED they are made on Arrow's threads, and there is only
 * the producer; with ARROW_SUBJECT_UNQUEUED the handler's queue has no room. */
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "uvarrow/tck.h"

namespace
{

using Batch = std::shared_ptr<arrow::RecordBatch>;

std::atomic<int64_t> live{0}; /* columns that are referenced */
std::atomic<int64_t> made{0}; /* batches made in total */

/* ---- the data ----------------------------------------------------------- */

std::shared_ptr<arrow::Schema> schema()
{
    return arrow::schema({arrow::field("n", arrow::int64())});
}

/* Makes the values of batch k, counted until the last reference is dropped. */
std::shared_ptr<arrow::Array> column(int64_t k)
{
    std::vector<int64_t> values(UVA_SUBJECT_ROWS);

    std::iota(values.begin(), values.end(), k * UVA_SUBJECT_ROWS);
    auto held = arrow::Buffer::FromVector(std::move(values));
    auto *buffer = held.get();
    live++;
    return std::make_shared<arrow::Int64Array>(
        UVA_SUBJECT_ROWS, std::shared_ptr<arrow::Buffer>(
                              buffer, [held = std::move(held)](void *) mutable {
                                  held.reset();
                                  live--;
                              }));
}

/* Makes batch k. A batch that cannot be exported has more columns than its
 * schema; Arrow notices that when the task is extracted. */
Batch batch(int64_t k, bool can_be_exported)
{
    auto n = column(k);

    made++;
    return can_be_exported
               ? arrow::RecordBatch::Make(schema(), UVA_SUBJECT_ROWS, {n})
               : arrow::RecordBatch::Make(schema(), UVA_SUBJECT_ROWS, {n, n});
}

/* The source of batches. Called by one thread at a time. */
struct Source {
    int32_t plan;
    int64_t batches;
    int64_t at;
    int64_t next = 0;

    arrow::Result<Batch> make()
    {
        const int64_t k = next++;

        if (plan == UVA_SUBJECT_SLOW)
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
        if (plan != UVA_SUBJECT_ENDLESS && k >= batches) {
            if (plan == UVA_SUBJECT_FAILS)
                return arrow::Status::IOError("the source has failed");
            return nullptr;
        }
        return batch(k, plan != UVA_SUBJECT_TASK_FAILS || k != at);
    }
};

/* ---- producer ----------------------------------------------------------- */

/* Arrow cannot send metadata other than the schema's own, and cannot notify its
 * source of a cancel, so a cancel cannot fail. */
bool producer_can(int32_t plan)
{
    switch (plan) {
    case UVA_SUBJECT_WHOLE:
    case UVA_SUBJECT_ENDLESS:
    case UVA_SUBJECT_SLOW:
    case UVA_SUBJECT_FAILS:
    case UVA_SUBJECT_FAILS_FIRST:
    case UVA_SUBJECT_TASK_FAILS:
        return true;
    default:
        return false;
    }
}

arrow::Future<Batch> ask(const std::shared_ptr<Source> &source)
{
#ifdef ARROW_SUBJECT_POOLED
    return arrow::DeferNotOk(arrow::internal::GetCpuThreadPool()->Submit(
        [source] { return source->make(); }));
#else
    return arrow::Future<Batch>::MakeFinished(source->make());
#endif
}

} // namespace

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

/* Returns when the stream is over, as Arrow does. It fails before
 * on_schema only if it is given no schema, and then with EINVAL. */
int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            ArrowAsyncDeviceStreamHandler *handler)
{
    if (!producer_can(plan))
        return UVA_SUBJECT_CANNOT;
    auto source = std::make_shared<Source>(Source{plan, batches, at});
    (void)arrow::ExportAsyncRecordBatchReader(
        plan == UVA_SUBJECT_FAILS_FIRST ? nullptr : schema(),
        [source = std::move(source)] { return ask(source); },
        arrow::DeviceAllocationType::kCPU, handler);
    return 0;
}

/* Only the structs that Arrow exports use its default memory pool here: they
 * are counted as one. */
int32_t uva_subject_knows(int32_t what)
{
    return what == UVA_SUBJECT_PLANS     ? UVA_SUBJECT_TAGGED_FAILS
           : what == UVA_SUBJECT_MANNERS ? UVA_SUBJECT_TAKES_BARE
                                         : UVA_SUBJECT_CANNOT;
}

int64_t uva_subject_count(int32_t what)
{
    if (what == UVA_SUBJECT_MADE)
        return made;
    return live + (arrow::default_memory_pool()->bytes_allocated() > 0);
}

#ifndef ARROW_SUBJECT_POOLED

/* ---- handler ------------------------------------------------------------ */

namespace
{

/* How many batches the handler requests ahead; 5 is Arrow's default. */
#ifdef ARROW_SUBJECT_UNQUEUED
constexpr uint64_t queue_size = 0;
#else
constexpr uint64_t queue_size = 5;
#endif

/* Removes an int32 from the front of `from`; returns -1 if it is too short. */
int32_t take_size(std::string_view &from)
{
    int32_t size;

    if (from.size() < sizeof(size))
        return -1;
    std::memcpy(&size, from.data(), sizeof(size));
    from.remove_prefix(sizeof(size));
    return size;
}

/* Removes a string with its size from the front; returns "" if it is
 * truncated. */
std::string_view take_text(std::string_view &from)
{
    const int32_t size = take_size(from);

    if (size < 0 || static_cast<size_t>(size) > from.size()) {
        from = {};
        return {};
    }
    const std::string_view text = from.substr(0, static_cast<size_t>(size));
    from.remove_prefix(static_cast<size_t>(size));
    return text;
}

/* Finds the value of key "tck" by hand: AsyncErrorDetail::ErrorMetadata() is
 * declared, but missing in Arrow's library. */
std::string_view find_tag(std::string_view metadata)
{
    for (int32_t left = take_size(metadata); left > 0; left--) {
        const std::string_view key = take_text(metadata);
        const std::string_view value = take_text(metadata);

        if (key == "tck")
            return value;
    }
    return {};
}

using Outcome = struct uva_subject_outcome;

/* One consumer: Arrow's handler, read by a thread. Lives as long as the
 * process. Extracts on separate threads, so that one that hangs does not stop
 * the rest. */
struct Reader {
    std::shared_ptr<arrow::internal::ThreadPool> threads =
        *arrow::internal::ThreadPool::MakeEternal(2);
    ArrowAsyncDeviceStreamHandler handler{};
    Outcome outcome{};
    std::atomic<bool> over{false};

    void fail(const arrow::Status &status)
    {
        const auto *detail = dynamic_cast<const arrow::AsyncErrorDetail *>(
            status.detail().get());
        const std::string text = detail ? detail->ToString() : status.message();

        outcome.end = UVA_SUBJECT_FAILED;
        outcome.code = detail ? detail->code() : EINVAL;
        text.copy(outcome.message, sizeof(outcome.message) - 1);
        if (detail)
            record(find_tag(detail->ErrorMetadataString()));
    }

    void record(std::string_view tag)
    {
        tag.copy(outcome.tag, sizeof(outcome.tag));
        outcome.tag_size = static_cast<int64_t>(tag.size());
    }

    void take(const arrow::RecordBatchWithMetadata &got)
    {
        const arrow::RecordBatch &batch = *got.batch;
        const auto n = std::dynamic_pointer_cast<arrow::Int64Array>(
            batch.GetColumnByName("n"));

        outcome.batches++;
        outcome.rows += batch.num_rows();
        for (int64_t row = 0; n && row < n->length(); row++)
            outcome.sum += n->Value(row);
        if (got.custom_metadata && got.custom_metadata->Contains("tck"))
            record(*got.custom_metadata->Get("tck"));
    }

    void read_all(const arrow::AsyncRecordBatchGenerator &from)
    {
        for (;;) {
            const auto got = from.generator().result();

            if (!got.ok())
                return fail(got.status());
            if (!got->batch)
                return;
            take(*got);
        }
    }

    void run(arrow::Future<arrow::AsyncRecordBatchGenerator> opened)
    {
        const auto &from = opened.result();

        if (from.ok())
            read_all(*from);
        else
            fail(from.status());
        opened = {};
        over = true;
    }
};

} // namespace

/* Arrow's reader requests one more batch for each that it takes, cannot cancel
 * and cannot refuse. It extracts every task, on a thread of its executor. */
int32_t uva_subject_consume(int32_t manner, int64_t, int64_t *id,
                            ArrowAsyncDeviceStreamHandler **handler)
{
    if (manner != UVA_SUBJECT_TAKES_ALL && manner != UVA_SUBJECT_HOLDS &&
        manner != UVA_SUBJECT_TAKES_BARE)
        return UVA_SUBJECT_CANNOT;
    auto *reader = new Reader;
    std::thread(&Reader::run, reader,
                arrow::CreateAsyncDeviceStreamHandler(
                    &reader->handler, reader->threads.get(), queue_size))
        .detach();
    *id = reinterpret_cast<intptr_t>(reader);
    *handler = &reader->handler;
    return 0;
}

/* Arrow does not report the release of a handler, so the end of the reader
 * counts as the end. */
int32_t uva_subject_report(int64_t id, struct uva_subject_outcome *out)
{
    const auto *reader =
        reinterpret_cast<const Reader *>(static_cast<intptr_t>(id));

    if (!reader->over)
        return EAGAIN;
    *out = reader->outcome;
    return 0;
}

/* ---- blocking stream ---------------------------------------------------- */

namespace
{

class SourceReader : public arrow::RecordBatchReader
{
  public:
    explicit SourceReader(const Source &source) : source_(source)
    {
    }

    std::shared_ptr<arrow::Schema> schema() const override
    {
        return ::schema();
    }

    arrow::Status ReadNext(Batch *out) override
    {
        return source_.make().Value(out);
    }

  private:
    Source source_;
};

} // namespace

/* A reader of Arrow always has a schema, and has no tasks. */
int32_t uva_subject_open(int32_t plan, int64_t batches, int64_t at,
                         ArrowDeviceArrayStream *out)
{
    if (!producer_can(plan) || plan == UVA_SUBJECT_FAILS_FIRST ||
        plan == UVA_SUBJECT_TASK_FAILS)
        return UVA_SUBJECT_CANNOT;
    const auto status = arrow::ExportDeviceRecordBatchReader(
        std::make_shared<SourceReader>(Source{plan, batches, at}), out);
    return status.ok() ? 0 : EIO;
}

#endif
