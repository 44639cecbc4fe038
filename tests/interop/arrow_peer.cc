/* SPDX-License-Identifier: Apache-2.0 */
/* Sources own the batches that they send, through free_ctx. A reader without a
 * loop runs on a separate thread, which wakes the loop when it is done. */
#include "arrow_peer.hpp"

#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/key_value_metadata.h>
#include <arrow/util/thread_pool.h>

#include <sched.h>

#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <utility>

namespace interop
{

/* Number of arrays of an endless source: more than any reader reads ahead. */
constexpr size_t NEARLY_ENDLESS = 400;

/* Tasks given to Arrow and not extracted before the runtime was closed. */
std::atomic<int64_t> tasks_lost = 0;

/* ---- the loop ----------------------------------------------------------- */

World::World(bool checked)
{
    uva_runtime_options options{};

    options.check = checked;
    if (checked) /* ignores known deviations of Arrow */
        options.log.write = [](void *, const uva_log_record *) {};
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(uv_async_init(&loop, &awake, [](uv_async_t *) {}), 0);
    uv_prepare_init(&loop, &prepare);
    ck_assert_int_eq(uva_runtime_open(&loop, &options, &runtime, nullptr), 0);
}

void World::close()
{
    const auto closed = [](void *ctx) {
        auto *world = static_cast<World *>(ctx);
        uv_close(reinterpret_cast<uv_handle_t *>(&world->awake), nullptr);
        uv_close(reinterpret_cast<uv_handle_t *>(&world->prepare), nullptr);
    };

    if (runtime != nullptr)
        ck_assert_int_eq(uva_runtime_close(runtime, 0, closed, this), 0);
    runtime = nullptr;
}

World::~World()
{
    uva_runtime_stats stats{};

    if (runtime != nullptr)
        uva_runtime_get_stats(runtime, &stats);
    tasks_lost += stats.tasks_held;
    close();
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}

void World::until(const std::function<bool()> &is_over)
{
    /* A turn from an idle handle may end it, after which libuv would wait. */
    prepare.data = const_cast<std::function<bool()> *>(&is_over);
    uv_prepare_start(&prepare, [](uv_prepare_t *self) {
        if ((*static_cast<std::function<bool()> *>(self->data))())
            uv_stop(self->loop);
    });
    while (!is_over())
        uv_run(&loop, UV_RUN_ONCE);
    uv_prepare_stop(&prepare);
}

void World::wake()
{
    uv_async_send(&awake);
}

void Ending::on_done(void *ctx, const uva_outcome *outcome)
{
    auto *ending = static_cast<Ending *>(ctx);
    size_t size = 0;

    ck_assert(!ending->done);
    ending->done = true;
    ending->end = outcome->end;
    ending->code = outcome->error.code;
    ending->message = outcome->error.message;
    ck_assert_int_eq(uva_metadata_size(outcome->metadata, &size), 0);
    if (size > 0)
        ending->metadata.assign(outcome->metadata, size);
}

/* ---- Arrow sends -------------------------------------------------------- */

std::shared_ptr<arrow::Schema> Feed::schema() const
{
    return reader ? reader->schema() : batches[0]->schema();
}

arrow::Result<Batch> Feed::batch(size_t k) const
{
    if (reader)
        return reader->Next();
    if (endless)
        return batches[k % batches.size()];
    if (k < batches.size())
        return batches[k];
    if (!end.ok())
        return end;
    return nullptr;
}

namespace
{

/* Stands between Arrow's producer and a handler. Arrow frees its producer
 * before it reports the end (LC-13, in test_arrow_deviations.cc), when a
 * request may be in flight. So no batch is passed on any more once Arrow gets
 * the end. */
class ProducerGuard
{
    using Handler = ArrowAsyncDeviceStreamHandler;

  public:
    Handler *in_front_of(Handler *inner)
    {
        inner_ = inner;
        return &shown_;
    }

    /* Waits for the calls in flight, but for those below this one: Arrow also
     * reads the next batch inside a request. */
    void end()
    {
        std::unique_lock<std::mutex> held(lock_);

        over_ = true;
        left_.wait(held, [this] { return inside_ == depth; });
    }

  private:
    static thread_local int depth; /* calls that this thread is inside of */

    Handler *inner_ = nullptr;
    Handler shown_ = {on_schema, on_next_task, on_error,
                      release,   nullptr,      this};
    ArrowAsyncProducer *source_ = nullptr; /* Arrow's producer */
    ArrowAsyncProducer producer_{};        /* the object that the handler
                                              gets */
    std::mutex lock_; /* guards the rest, which `left_` is about */
    std::condition_variable left_;
    int inside_ = 0;
    bool over_ = false;

    static Handler *inner(const Handler *self)
    {
        return static_cast<ProducerGuard *>(self->private_data)->inner_;
    }

    static int on_schema(Handler *self, ArrowSchema *schema)
    {
        auto *guard = static_cast<ProducerGuard *>(self->private_data);

        guard->source_ = self->producer;
        guard->producer_ = *self->producer;
        guard->producer_.request = request;
        guard->producer_.cancel = cancel;
        guard->producer_.private_data = guard;
        guard->inner_->producer = &guard->producer_;
        return guard->inner_->on_schema(guard->inner_, schema);
    }

    static int on_next_task(Handler *self, ArrowAsyncTask *task,
                            const char *metadata)
    {
        return inner(self)->on_next_task(inner(self), task, metadata);
    }

    static void on_error(Handler *self, int code, const char *message,
                         const char *metadata)
    {
        inner(self)->on_error(inner(self), code, message, metadata);
    }

    static void release(Handler *self)
    {
        inner(self)->release(inner(self));
    }

    template <typename Call> void pass_on(Call call)
    {
        {
            const std::lock_guard<std::mutex> held(lock_);

            if (over_)
                return;
            inside_++;
        }
        depth++;
        call(source_);
        depth--;
        const std::lock_guard<std::mutex> held(lock_);
        inside_--;
        left_.notify_all();
    }

    static void request(ArrowAsyncProducer *self, int64_t n)
    {
        static_cast<ProducerGuard *>(self->private_data)
            ->pass_on([n](ArrowAsyncProducer *source) {
                source->request(source, n);
            });
    }

    static void cancel(ArrowAsyncProducer *self)
    {
        static_cast<ProducerGuard *>(self->private_data)
            ->pass_on(
                [](ArrowAsyncProducer *source) { source->cancel(source); });
    }
};

thread_local int ProducerGuard::depth = 0;

/* The ctx of a stream from Arrow's asynchronous exporter. */
struct Sender {
    Feed feed;
    bool pooled;
    std::atomic<size_t> next = 0;
    ProducerGuard guard{};

    arrow::Result<Batch> next_batch()
    {
        arrow::Result<Batch> batch = feed.batch(next++);

        if (!batch.ok() || *batch == nullptr)
            guard.end();
        return batch;
    }

    arrow::Future<Batch> ask()
    {
        if (!pooled)
            return arrow::Future<Batch>::MakeFinished(next_batch());
        return arrow::DeferNotOk(arrow::internal::GetCpuThreadPool()->Submit(
            [this] { return next_batch(); }));
    }

    /* Returns when the stream is over, as Arrow does. */
    static int start(void *ctx, ArrowAsyncDeviceStreamHandler *handler,
                     uva_error *)
    {
        auto *sender = static_cast<Sender *>(ctx);

        handler = sender->feed.tap ? sender->feed.tap(handler)
                                   : sender->guard.in_front_of(handler);
        arrow::ExportAsyncRecordBatchReader(
            sender->feed.schema(), [sender] { return sender->ask(); },
            arrow::DeviceAllocationType::kCPU, handler)
            .Wait();
        return 0;
    }

    static void free_ctx(void *ctx)
    {
        delete static_cast<Sender *>(ctx);
    }
};

uva_stream *stream_from_async(World &world, bool pooled, const Feed &feed)
{
    uva_async_source source{};

    source.start = Sender::start;
    source.free_ctx = Sender::free_ctx;
    source.ctx = new Sender{feed, pooled};
    source.on_loop = feed.on_loop;
    source.window.batches = feed.window;
    return uva_stream_from_async(world.runtime, &source);
}

uva_stream *stream_from_arrays(World &world, const Feed &feed)
{
    const size_t count = feed.endless ? NEARLY_ENDLESS : feed.batches.size();
    std::vector<ArrowDeviceArray> arrays(count);
    ArrowSchema schema;

    ck_assert_arrow(arrow::ExportSchema(*feed.batches[0]->schema(), &schema));
    for (size_t i = 0; i < count; i++)
        ck_assert_arrow(arrow::ExportDeviceRecordBatch(*value_of(feed.batch(i)),
                                                       nullptr, &arrays[i]));
    return uva_stream_from_arrays(world.runtime, &schema, arrays.data(),
                                  arrays.size());
}

class FeedReader : public arrow::RecordBatchReader
{
  public:
    explicit FeedReader(Feed feed) : feed_(std::move(feed))
    {
    }

    std::shared_ptr<arrow::Schema> schema() const override
    {
        return feed_.schema();
    }

    arrow::Status ReadNext(Batch *out) override
    {
        return feed_.batch(next_++).Value(out);
    }

  private:
    Feed feed_;
    size_t next_ = 0;
};

std::shared_ptr<arrow::RecordBatchReader> reader_of(const Feed &feed)
{
    return feed.reader ? feed.reader : std::make_shared<FeedReader>(feed);
}

uva_stream *stream_from_reader(World &world, From from, const Feed &feed)
{
    uva_arrow_source how{};
    ArrowArrayStream plain;
    ArrowDeviceArrayStream device;

    how.window.batches = feed.window;
    how.on_loop = from == From::QUICK_READER;
    if (from == From::READER) {
        ck_assert_arrow(
            arrow::ExportRecordBatchReader(reader_of(feed), &plain));
        return uva_stream_from_arrow_stream(world.runtime, &plain, &how);
    }
    ck_assert_arrow(
        arrow::ExportDeviceRecordBatchReader(reader_of(feed), &device));
    return uva_stream_from_device_stream(world.runtime, &device, &how);
}

} // namespace

uva_stream *stream_from(World &world, From from, const Feed &feed)
{
    switch (from) {
    case From::ARRAYS:
        return stream_from_arrays(world, feed);
    case From::READY:
        return stream_from_async(world, false, feed);
    case From::POOLED:
        return stream_from_async(world, true, feed);
    default:
        return stream_from_reader(world, from, feed);
    }
}

/* ---- Arrow receives ----------------------------------------------------- */

namespace
{

/* One run: its input, how far it reads, and the result. */
struct Run {
    World &world;
    uva_stream *stream; /* holds a reference, until dropped */
    Plan plan;
    Delivery to{};
    std::atomic<bool> reached = false; /* a thread has read up to `plan.at` */
    std::atomic<bool> over = false;    /* no more reads will follow */

    bool is_there() const
    {
        return plan.stop != Stop::NEVER && to.batches.size() == plan.at;
    }

    bool leaves() const
    {
        return plan.stop == Stop::LEAVE || plan.stop == Stop::RESCUE;
    }

    void cancel()
    {
        uva_stream_cancel(stream, ENOSPC, "seen enough");
    }

    void drop()
    {
        uva_stream_drop(stream);
        stream = nullptr;
    }

    /* Returns whether the thread may read on; called before each read. */
    bool goes_on()
    {
        if (!is_there())
            return true;
        if (plan.stop == Stop::CANCEL)
            cancel();
        reached = true;
        world.wake();
        while (plan.stop == Stop::DROP && reached) /* waits at that batch */
            sched_yield();
        return !leaves();
    }

    /* Runs on the loop once the thread has got there. */
    void react()
    {
        if (!reached)
            return;
        if (plan.stop == Stop::RESCUE)
            cancel();
        if (plan.stop == Stop::DROP)
            drop();
        reached = false;
    }

    void end()
    {
        over = true;
        world.wake();
    }
};

/* ---- by for_each -------------------------------------------------------- */

int each_on_schema(void *ctx, const uva_stream_info *info)
{
    ArrowSchema schema;

    ck_assert_int_eq(uva_schema_copy(info->schema, &schema), 0);
    auto *run = static_cast<Run *>(ctx);
    run->to.schema = value_of(arrow::ImportSchema(&schema));
    return run->is_there() && run->leaves() ? ECANCELED : 0;
}

void each_stop(Run *run)
{
    if (run->plan.stop == Stop::CANCEL)
        run->cancel();
    if (run->plan.stop == Stop::DROP) {
        run->drop();
        run->over = true;
    }
}

/* The batch at which the count reaches `plan.at` is the last one read. */
int each_on_batch(void *ctx, uva_batch *batch)
{
    auto *run = static_cast<Run *>(ctx);

    ck_assert(!run->over);
    run->to.batches.push_back(
        value_of(arrow::ImportDeviceRecordBatch(&batch->data, run->to.schema)));
    if (!run->is_there())
        return 0;
    each_stop(run);
    return run->leaves() ? ECANCELED : 0;
}

void each_on_done(void *ctx, const uva_outcome *outcome)
{
    auto *run = static_cast<Run *>(ctx);

    ck_assert(!run->over);
    Ending::on_done(&run->to.ending, outcome);
    run->over = true;
}

void run_each(Run &run)
{
    uva_consumer consumer{};

    consumer.on_schema = each_on_schema;
    consumer.on_batch = each_on_batch;
    consumer.on_done = each_on_done;
    consumer.ctx = &run;
    ck_assert_int_eq(uva_stream_for_each(run.stream, &consumer, nullptr), 0);
    if (run.is_there())
        each_stop(&run);
    run.world.until([&run] { return run.over.load(); });
}

/* ---- by Arrow's handler ------------------------------------------------- */

void read_async(Run *run, arrow::Future<arrow::AsyncRecordBatchGenerator> from)
{
    const auto &opened = from.result();

    run->to.status = opened.status();
    if (opened.ok())
        run->to.schema = opened->schema;
    while (run->to.status.ok() && run->goes_on()) {
        auto got = opened->generator().result();

        run->to.status = got.status();
        if (!got.ok() || !got->batch)
            break;
        run->to.batches.push_back(got->batch);
        run->to.metadata.push_back(got->custom_metadata);
    }
    from = {}; /* waits until the stream is over: it cannot cancel */
    run->end();
}

void run_drive(Run &run, bool on_worker)
{
    auto *handler = &run.world.handlers.emplace_back();
    uva_drive how{};
    const uint64_t queue = run.plan.window > 0 ? run.plan.window : 5;
    std::thread reader(
        read_async, &run,
        arrow::CreateAsyncDeviceStreamHandler(
            handler, arrow::internal::GetCpuThreadPool(), queue));

    if (run.plan.tap)
        handler = run.plan.tap(handler);
    how.on_done = Ending::on_done;
    how.ctx = &run.to.ending;
    how.on_worker = on_worker;
    ck_assert_int_eq(uva_stream_drive(run.stream, handler, &how, nullptr), 0);
    run.world.until([&run] {
        run.react();
        return run.over && (run.to.ending.done || run.stream == nullptr);
    });
    reader.join();
}

/* ---- by Arrow's readers of blocking streams ----------------------------- */

void read_blocking(Run *run, std::shared_ptr<arrow::RecordBatchReader> from)
{
    run->to.schema = from->schema();
    while (run->goes_on()) {
        Batch batch;

        run->to.status = from->ReadNext(&batch);
        if (!run->to.status.ok() || !batch)
            break;
        run->to.batches.push_back(batch);
    }
    from.reset();
    run->end();
}

/* Importing gets the schema, which blocks until the loop runs, so it is done on
 * the thread, too. */
template <typename Stream>
void read_exported(Run *run, Stream *stream,
                   arrow::Result<std::shared_ptr<arrow::RecordBatchReader>> (
                       *import)(Stream *))
{
    auto from = import(stream);

    run->to.status = from.status();
    if (from.ok())
        read_blocking(run, std::move(from).ValueUnsafe());
    else
        run->end();
}

void run_blocking(Run &run)
{
    uva_window window{};
    ArrowArrayStream out;

    window.batches = run.plan.window;
    ck_assert_int_eq(
        uva_stream_to_arrow_stream(run.stream, &window, &out, nullptr), 0);
    std::thread reader(read_exported<ArrowArrayStream>, &run, &out,
                       arrow::ImportRecordBatchReader);
    run.world.until([&run] {
        run.react();
        return run.over.load();
    });
    reader.join();
}

void run_device_blocking(Run &run)
{
    uva_window window{};
    ArrowDeviceArrayStream out;

    window.batches = run.plan.window;
    ck_assert_int_eq(
        uva_stream_to_device_stream(run.stream, &window, &out, nullptr), 0);
    std::thread reader(
        read_exported<ArrowDeviceArrayStream>, &run, &out,
        +[](ArrowDeviceArrayStream *stream) {
            return arrow::ImportDeviceRecordBatchReader(stream);
        });
    run.world.until([&run] {
        run.react();
        return run.over.load();
    });
    reader.join();
}

} // namespace

Delivery carry(World &world, uva_stream *stream, To to, const Plan &plan)
{
    Run run{world, stream, plan};

    switch (to) {
    case To::EACH:
        run_each(run);
        break;
    case To::DRIVE:
    case To::DRIVE_ON_WORKER:
        run_drive(run, to == To::DRIVE_ON_WORKER);
        break;
    case To::BLOCKING:
        run_blocking(run);
        break;
    default:
        run_device_blocking(run);
    }
    uva_stream_release(run.stream);
    return std::move(run.to);
}

std::shared_ptr<arrow::RecordBatchReader> reader_on(uva_stream *stream)
{
    ArrowDeviceArrayStream out;

    ck_assert_int_eq(
        uva_stream_to_device_stream(stream, nullptr, &out, nullptr), 0);
    uva_stream_release(stream);
    return value_of(arrow::ImportDeviceRecordBatchReader(&out));
}

/* ---- the program -------------------------------------------------------- */

namespace
{

/* Arrow's number of threads on every machine. Its reader occupies one while it
 * waits for a task, and a source that makes batches needs another. With one
 * thread, Arrow's default on one processor, they deadlock. */
constexpr int THREADS = 4;

int64_t bytes_before;

void set_out()
{
    ck_assert_arrow(arrow::SetCpuThreadPoolCapacity(THREADS));
    bytes_before = arrow::default_memory_pool()->bytes_allocated();
}

/* Other threads may still be freeing memory. If some is never freed, the time
 * limit of the case reports it. */
void await_bytes()
{
    arrow::internal::GetCpuThreadPool()->WaitForIdle();
    while (arrow::default_memory_pool()->bytes_allocated() != bytes_before)
        sched_yield();
}

} // namespace

TCase *new_case(Suite *suite, const char *name)
{
    TCase *tcase = tcase_create(name);

    tcase_add_checked_fixture(tcase, set_out, await_bytes);
    suite_add_tcase(suite, tcase);
    return tcase;
}

int run_suite(Suite *suite)
{
    SRunner *runner = srunner_create(suite);

    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

} // namespace interop

/* If an error arrives, Arrow's handler loses its queued tasks, and itself with
 * them. The data of such a task is freed, but the task is not, so leaks
 * cannot be checked at exit. LeakSanitizer calls this. */
extern "C" int __lsan_is_turned_off()
{
    return interop::tasks_lost > 0;
}
