/* SPDX-License-Identifier: Apache-2.0 */
/* The same work with Arrow C++: its exporter of asynchronous readers drives the
 * handler written by hand and uvarrow, its importer consumes the producer
 * written by hand and uvarrow, and its exporter drives its importer. `window`
 * is the number of open requests, or the length of Arrow's queue. */
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <condition_variable>
#include <cstring>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "host.h"
#include "taker.h"

namespace
{

using Batch = std::shared_ptr<arrow::RecordBatch>;

/* ---- Arrow's side ------------------------------------------------------- */

std::shared_ptr<arrow::Schema> schema()
{
    ArrowSchema schema;

    batch_schema(&schema);
    return arrow::ImportSchema(&schema).ValueOrDie();
}

/* The same batches as batch_fill() gives, made once. */
std::vector<Batch> prebuilt()
{
    std::vector<Batch> batches;

    for (int64_t i = 0; i < BATCH_PLACES; i++) {
        ArrowDeviceArray array;

        batch_fill(&array, i);
        batches.push_back(
            arrow::ImportRecordBatch(&array.array, schema()).ValueOrDie());
    }
    return batches;
}

/* Gives `count` batches, each ready as soon as it is requested. */
arrow::AsyncGenerator<Batch> generator(int64_t count)
{
    static const std::vector<Batch> batches = prebuilt();

    return [count, next = std::make_shared<int64_t>(0)] {
        const int64_t i = (*next)++;

        return i < count ? arrow::Future<Batch>::MakeFinished(
                               batches[i & (BATCH_PLACES - 1)])
                         : arrow::AsyncGeneratorEnd<Batch>();
    };
}

void check(const arrow::Status &status)
{
    bench_check(status.ok(), status.ToString().c_str());
}

void produce(ArrowAsyncDeviceStreamHandler *handler, int64_t count)
{
    check(arrow::ExportAsyncRecordBatchReader(schema(), generator(count),
                                              arrow::DeviceAllocationType::kCPU,
                                              handler)
              .status());
}

/* Starts `producer` on a thread, consumes it with Arrow's handler and reads
 * everything; then it sets the future that the producer waits for. */
template <typename Producer>
void consume(Producer producer, int64_t window, int64_t count)
{
    ArrowAsyncDeviceStreamHandler handler{};
    auto *pool = arrow::internal::GetCpuThreadPool();
    auto future = arrow::CreateAsyncDeviceStreamHandler(
        &handler, pool, static_cast<uint64_t>(window));
    std::promise<void> all_read;
    std::thread thread([&] { producer(&handler, all_read.get_future()); });
    auto reader = future.result().ValueOrDie();
    int64_t seen = 0;

    for (;; seen++) {
        auto next = reader.generator().result();

        check(next.status());
        if (next->batch == nullptr)
            break;
        bench_check(next->batch->num_rows() == BATCH_ROWS, "rows");
    }
    bench_check(seen == count, "number of batches");
    all_read.set_value();
    thread.join();
    reader.generator = nullptr;
    pool->WaitForIdle();
}

/* ---- the producer by hand ----------------------------------------------- */

int plain_extract(ArrowAsyncTask *task, ArrowDeviceArray *out)
{
    if (out != nullptr)
        batch_fill(out, reinterpret_cast<intptr_t>(task->private_data));
    return 0;
}

/* Waits for requests on a condition variable. */
struct Plain {
    ArrowAsyncProducer abi{};
    std::mutex mutex;
    std::condition_variable has_batch;
    int64_t demand = 0;

    Plain()
    {
        abi.device_type = ARROW_DEVICE_CPU;
        abi.request = [](ArrowAsyncProducer *self, int64_t n) {
            static_cast<Plain *>(self->private_data)->request(n);
        };
        abi.cancel = [](ArrowAsyncProducer *) {};
        abi.private_data = this;
    }

    void request(int64_t n)
    {
        const std::lock_guard<std::mutex> lock(mutex);

        demand += n;
        if (demand == n)
            has_batch.notify_one();
    }

    int64_t take()
    {
        std::unique_lock<std::mutex> lock(mutex);

        has_batch.wait(lock, [this] { return demand > 0; });
        return std::exchange(demand, 0);
    }

    void run(ArrowAsyncDeviceStreamHandler *handler, int64_t count)
    {
        ArrowSchema schema;
        int64_t left = 0;

        handler->producer = &abi;
        batch_schema(&schema);
        bench_check(handler->on_schema(handler, &schema) == 0, "on_schema");
        for (int64_t i = 0; i < count; i++, left--) {
            ArrowAsyncTask task{plain_extract, reinterpret_cast<void *>(i)};

            if (left == 0)
                left = take();
            bench_check(handler->on_next_task(handler, &task, nullptr) == 0,
                        "on_next_task");
        }
        (void)handler->on_next_task(handler, nullptr, nullptr);
        handler->release(handler);
    }
};

/* ---- cases -------------------------------------------------------------- */

double run_producer(const bench_case *self, const bench_how *how)
{
    taker taker;
    double begun;

    taker_init(&taker, self->window);
    begun = bench_now_ns(how);
    produce(&taker.abi, how->batches);
    begun = bench_now_ns(how) - begun;
    tally_check(&taker.tally, how->batches);
    return begun;
}

double run_consumer(const bench_case *self, const bench_how *how)
{
    const double begun = bench_now_ns(how);
    Plain plain; /* outlives the handler, which calls it after its release */

    consume([&](auto *handler, auto) { plain.run(handler, how->batches); },
            self->window, how->batches);
    return bench_now_ns(how) - begun;
}

double run_both(const bench_case *self, const bench_how *how)
{
    const double begun = bench_now_ns(how);

    consume([&](auto *handler, auto) { produce(handler, how->batches); },
            self->window, how->batches);
    return bench_now_ns(how) - begun;
}

double run_into_uvarrow(const bench_case *self, const bench_how *how)
{
    int64_t count = how->batches;
    uva_async_source source{};
    tally tally{};
    host host;
    double begun;

    source.start = [](void *ctx, ArrowAsyncDeviceStreamHandler *handler,
                      uva_error *) {
        produce(handler, *static_cast<int64_t *>(ctx));
        return 0;
    };
    source.ctx = &count;
    source.on_loop = true;
    source.window.batches = self->window;
    host_open(&host, how, 0);
    begun = bench_now_ns(how);
    host_for_each(&host, uva_stream_from_async(host.runtime, &source), &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    return begun;
}

/* Runs on the calling thread. After release, Arrow still holds tasks, which it
 * can extract only while the runtime is open. */
void drive(ArrowAsyncDeviceStreamHandler *handler, const bench_how *how,
           std::future<void> all_read)
{
    uva_arrow_source source{};
    uva_drive drive{};
    input input;
    host host;

    source.on_loop = true;
    host_open(&host, how, 0);
    input_init(&input, how->batches);
    auto *stream =
        uva_stream_from_device_stream(host.runtime, &input.abi, &source);
    drive.on_done = host_on_done;
    drive.ctx = &host;
    host.open = 1;
    bench_check(uva_stream_drive(stream, handler, &drive, nullptr) == 0,
                "drive");
    uva_stream_release(stream);
    (void)host_run(&host);
    all_read.wait();
    host_close(&host);
}

double run_from_uvarrow(const bench_case *self, const bench_how *how)
{
    const double begun = bench_now_ns(how);

    consume([&](auto *handler,
                auto all_read) { drive(handler, how, std::move(all_read)); },
            self->window, how->batches);
    return bench_now_ns(how) - begun;
}

const bench_case cases[] = {
    {"arrow/64/producer", 50000, run_producer, 64, 0, 0},
    {"arrow/1/producer", 50000, run_producer, 1, 0, 0},
    {"arrow/64/consumer", 25000, run_consumer, 64, 0, 0},
    {"arrow/64/both", 25000, run_both, 64, 0, 0},
    {"arrow/64/producer-to-uvarrow", 25000, run_into_uvarrow, 64, 0, 0},
    {"arrow/64/uvarrow-to-consumer", 25000, run_from_uvarrow, 64, 0, 0},
};

} // namespace

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, std::size(cases));
}
