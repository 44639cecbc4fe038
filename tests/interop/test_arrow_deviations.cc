/* SPDX-License-Identifier: Apache-2.0 */
/* The rules that Arrow C++ is known to break, one by one: first a check that it
 * breaks them when called by hand, in a child process if it does not survive
 * that; then a check that uvarrow works with it nevertheless. If a first half
 * fails with a newer Arrow, Arrow has fixed the fault. */
#include <arrow/c/bridge.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <list>
#include <thread>

#include "arrow_peer.hpp"
#include "handler_spy.hpp"

namespace
{

using namespace interop;

/* Whether a use of freed memory is certain to end the process. */
constexpr bool IS_SANITIZED = sizeof(UVA_TEST_SANITIZE) > 1;

/* ---- Arrow's producer, called by hand ----------------------------------- */

/* A handler that follows its settings, right or wrong. */
struct Probe {
    ArrowAsyncDeviceStreamHandler handler{schema,  task,    error,
                                          release, planted, this};
    int64_t wants = 100;       /* number to request in on_schema */
    int schema_code = 0;       /* returned by on_schema */
    int task_code = 0;         /* returned by on_next_task */
    bool extracts = true;      /* extracts each task */
    int cancel_at = -1;        /* task to cancel in; -1: never */
    bool touches_dead = false; /* requests at the end */
    std::string transcript;
    std::string text; /* text of the error */
    int code = 0;
    int extracted = -1; /* result of the last extraction */
    int dirty = 0;
    int tasks = 0;
    const void *producer = nullptr; /* as seen in the first callback */

    static inline ArrowAsyncProducer *const planted =
        reinterpret_cast<ArrowAsyncProducer *>(0x5a5a5a5a5a5a5a5a);

    static Probe *of(ArrowAsyncDeviceStreamHandler *self)
    {
        return static_cast<Probe *>(self->private_data);
    }

    void record(const char *what)
    {
        transcript += (transcript.empty() ? "" : " ") + std::string(what);
    }

    static int schema(ArrowAsyncDeviceStreamHandler *self, ArrowSchema *schema)
    {
        Probe *p = of(self);

        p->record("schema");
        schema->release(schema);
        if (p->schema_code == 0)
            self->producer->request(self->producer, p->wants);
        return p->schema_code;
    }

    static int task(ArrowAsyncDeviceStreamHandler *self, ArrowAsyncTask *task,
                    const char *)
    {
        Probe *p = of(self);

        p->record(task != nullptr ? "task" : "end");
        if (task == nullptr && p->touches_dead)
            self->producer->request(self->producer, 1);
        if (task == nullptr)
            return 0;
        if (p->extracts)
            p->extract(task);
        if (p->cancel_at == p->tasks++)
            self->producer->cancel(self->producer);
        return p->task_code;
    }

    void extract(ArrowAsyncTask *task)
    {
        ArrowDeviceArray out;

        std::memset(&out, 0xab, sizeof(out));
        out.array.release = nullptr;
        extracted = task->extract_data(task, &out);
        for (const int64_t word : out.reserved)
            dirty += word != 0;
        if (out.array.release != nullptr)
            out.array.release(&out.array);
    }

    static void error(ArrowAsyncDeviceStreamHandler *self, int code,
                      const char *message, const char *)
    {
        Probe *p = of(self);

        p->record("error");
        p->producer = self->producer;
        p->code = code;
        p->text = message;
    }

    static void release(ArrowAsyncDeviceStreamHandler *self)
    {
        of(self)->record("release");
    }

    void run(const Batches &batches)
    {
        run(batches, numbers(1)[0]->schema());
    }

    void run(const Batches &batches, std::shared_ptr<arrow::Schema> schema)
    {
        size_t next = 0;

        arrow::ExportAsyncRecordBatchReader(
            std::move(schema),
            [&] {
                return arrow::Future<Batch>::MakeFinished(
                    next < batches.size() ? batches[next++] : nullptr);
            },
            arrow::DeviceAllocationType::kCPU, &handler)
            .Wait();
    }
};

/* Returns whether a child process that runs `what` ends normally. */
bool survives(const std::function<void()> &what)
{
    const pid_t child = fork();
    int status = 0;

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        (void)freopen("/dev/null", "w", stderr);
        what();
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Makes `good` valid batches, followed by some that cannot be exported, because
 * one has a column more than the schema. */
Batches spoiled(int good)
{
    Batches batches = numbers(good + 1);
    const Batch last = batches.back();

    batches.back() = arrow::RecordBatch::Make(
        last->schema(), last->num_rows(), {last->column(0), last->column(0)});
    return batches;
}

/* ---- a consumer --------------------------------------------------------- */

/* Returns the given codes, and records the end. */
struct Consumer {
    int schema_code = 0;
    int batch_code = 0;
    int batch_at = -1; /* the batch that gets `batch_code` */
    int batches = 0;
    int dirty = 0;
    Ending ending;

    static int on_schema(void *ctx, const uva_stream_info *)
    {
        return static_cast<Consumer *>(ctx)->schema_code;
    }

    static int on_batch(void *ctx, uva_batch *batch)
    {
        auto *c = static_cast<Consumer *>(ctx);

        for (const int64_t word : batch->data.reserved)
            c->dirty += word != 0;
        return c->batches++ == c->batch_at ? c->batch_code : 0;
    }

    static void on_done(void *ctx, const uva_outcome *outcome)
    {
        Ending::on_done(&static_cast<Consumer *>(ctx)->ending, outcome);
    }

    void read(World &world, uva_stream *stream)
    {
        uva_consumer how{};

        how.on_schema = on_schema;
        how.on_batch = on_batch;
        how.on_done = on_done;
        how.ctx = this;
        ck_assert_int_eq(uva_stream_for_each(stream, &how, nullptr), 0);
        world.until([this] { return ending.done; });
        uva_stream_release(stream);
    }
};

Tap tapped(HandlerSpy &spy)
{
    return
        [&spy](ArrowAsyncDeviceStreamHandler *inner) { return spy.tap(inner); };
}

Feed spied(const Batches &batches, HandlerSpy &spy)
{
    Feed feed{batches};

    feed.tap = tapped(spy);
    return feed;
}

/* For a consumer that stops. The batches do not end: Arrow frees its producer
 * before it reports the end (LC13), which a cancel from another thread would
 * meet. */
Feed spied_endless(const Batches &batches, HandlerSpy &spy)
{
    Feed feed = spied(batches, spy);

    feed.endless = true;
    return feed;
}

/* Returns whether these were the last callbacks, ignoring extractions. */
bool ends_with(std::string transcript, const std::string &words)
{
    for (const char *word : {" nodata", " data"})
        for (size_t at; (at = transcript.find(word)) != std::string::npos;)
            transcript.erase(at, std::strlen(word));
    return transcript.size() >= words.size() &&
           transcript.compare(transcript.size() - words.size(), words.size(),
                              words) == 0;
}

/* ---- Arrow's producer --------------------------------------------------- */

START_TEST(Q01_an_error_behind_a_refused_schema)
{
    Probe refuses, empty;

    refuses.schema_code = empty.schema_code = EINVAL;
    refuses.run(numbers(3));
    empty.run({});
    check_text(refuses.transcript, "schema error release");
    check_text(empty.transcript, "schema end release");

    for (const int batches : {1, 3}) {
        HandlerSpy spy;
        Consumer consumer;
        {
            World world;
            consumer.schema_code = EPERM;
            consumer.read(world,
                          stream_from(world, From::READY,
                                      spied_endless(numbers(batches), spy)));
        }
        ck_assert_int_eq(consumer.ending.end, UVA_END_REJECTED);
        ck_assert_int_eq(consumer.ending.code, EPERM);
        ck_assert_int_eq(spy.refused, 0);
        ck_assert(ends_with(spy.transcript, "release"));
    }
}
END_TEST

START_TEST(Q02_an_error_behind_a_refused_task)
{
    Probe probe;

    probe.task_code = EIO;
    probe.extracts = false;
    probe.run(numbers(3));
    check_text(probe.transcript, "schema task error release");
    ck_assert_int_eq(probe.code, EINVAL);

    for (int at = 0; at < 5; at++) {
        HandlerSpy spy;
        Consumer consumer;
        {
            World world;
            consumer.batch_code = EIO;
            consumer.batch_at = at;
            consumer.read(world, stream_from(world, From::READY,
                                             spied_endless(numbers(9), spy)));
        }
        ck_assert_int_eq(consumer.ending.end, UVA_END_REJECTED);
        ck_assert_int_eq(consumer.ending.code, EIO);
        ck_assert_int_eq(consumer.batches, at + 1);
        ck_assert_int_eq(spy.refused, 0); /* never for a task */
    }
}
END_TEST

START_TEST(Q03_an_error_behind_a_cancel)
{
    Probe probe;

    probe.cancel_at = 0;
    probe.run(numbers(3));
    check_text(probe.transcript, "schema task error release");
    check_text(probe.text, "Consumer requested cancellation");

    for (size_t at = 1; at < 6; at++) {
        HandlerSpy spy;
        Delivery got;
        {
            World world;
            got = carry(
                world,
                stream_from(world, From::READY, spied_endless(numbers(3), spy)),
                To::EACH, {Stop::CANCEL, at});
        }
        ck_assert_int_eq(spy.cancels, 1);
        ck_assert(ends_with(spy.transcript, "error release"));
        ck_assert_int_eq(got.ending.end, UVA_END_CANCELLED);
        check_text(got.ending.message, "seen enough");
    }
}
END_TEST

/* The case Q02_... shows how uvarrow avoids this: it never refuses a task. */
START_TEST(Q04_a_task_that_is_extracted_and_refused_is_freed_twice)
{
    ck_assert(!survives([] {
        Probe probe;

        probe.task_code = EIO;
        probe.run(numbers(3));
    }));
}
END_TEST

START_TEST(Q05_a_negative_request_opens_the_flood)
{
    Probe probe;
    HandlerSpy spy;

    probe.wants = -1;
    probe.run(numbers(20));
    ck_assert_int_eq(probe.tasks, 20);

    Feed feed = spied(numbers(50), spy);
    feed.window = 4;
    {
        World world;
        carry(world, stream_from(world, From::READY, feed), To::EACH);
    }
    ck_assert_int_ge(spy.least, 1);
    ck_assert_int_ge(spy.most, 1);
    ck_assert_int_le(spy.most, 4);
}
END_TEST

/* The checker fills them beforehand, but does not pass them on either. */
START_TEST(Q06_reserved_bytes_are_left_as_they_were)
{
    Probe probe;

    probe.run(numbers(3));
    ck_assert_int_gt(probe.dirty, 0);

    for (const From from :
         {From::READY, From::POOLED, From::DEVICE_READER, From::QUICK_READER}) {
        Consumer consumer;
        World world(_i);

        consumer.read(world, stream_from(world, from, {numbers(9)}));
        ck_assert_int_eq(consumer.batches, 9);
        ck_assert_int_eq(consumer.dirty, 0);
    }
}
END_TEST

START_TEST(Q07_an_early_error_comes_without_a_producer)
{
    Probe probe;
    uva_async_source source{};
    Consumer consumer;
    World world;

    probe.run({}, nullptr);
    check_text(probe.transcript, "error release");
    ck_assert_ptr_eq(probe.producer, Probe::planted);

    source.start = [](void *, ArrowAsyncDeviceStreamHandler *handler,
                      uva_error *) {
        handler->producer = Probe::planted;
        (void)arrow::ExportAsyncRecordBatchReader(
            nullptr, arrow::MakeEmptyGenerator<Batch>(),
            arrow::DeviceAllocationType::kCPU, handler);
        return 0;
    };
    consumer.read(world, uva_stream_from_async(world.runtime, &source));
    ck_assert_int_eq(consumer.ending.end, UVA_END_FAILED);
    ck_assert_int_eq(consumer.ending.code, EINVAL);
}
END_TEST

/* Arrow occupies the thread that started it, and the loop continues. */
START_TEST(Q17_a_stream_keeps_the_thread_that_starts_it)
{
    struct Starter {
        World *world;
        bool on_loop = true;
        std::atomic<bool> inside = false;
        std::atomic<bool> seen = false;
    };
    uva_async_source source{};
    Consumer consumer;
    World world;
    Starter starter{&world};

    source.start = [](void *ctx, ArrowAsyncDeviceStreamHandler *handler,
                      uva_error *) {
        auto *s = static_cast<Starter *>(ctx);
        const Batches sent = numbers(3);
        size_t next = 0;

        s->on_loop = uva_runtime_on_loop(s->world->runtime);
        s->inside = true;
        s->world->wake();
        arrow::ExportAsyncRecordBatchReader(
            sent[0]->schema(),
            [&] {
                while (!s->seen) /* the loop is free */
                    sched_yield();
                return arrow::Future<Batch>::MakeFinished(
                    next < sent.size() ? sent[next++] : nullptr);
            },
            arrow::DeviceAllocationType::kCPU, handler)
            .Wait();
        return 0;
    };
    source.ctx = &starter;
    uva_stream *stream = uva_stream_from_async(world.runtime, &source);
    uva_stream_acquire(stream);
    std::thread watcher([&] {
        while (!starter.inside)
            sched_yield();
        ck_assert_int_eq(
            uva_runtime_post(
                world.runtime,
                [](void *ctx) { static_cast<Starter *>(ctx)->seen = true; },
                &starter),
            0);
    });

    consumer.read(world, stream);
    watcher.join();
    uva_stream_release(stream);
    ck_assert(!starter.on_loop);
    ck_assert_int_eq(consumer.batches, 3);
}
END_TEST

START_TEST(Q18_what_is_not_exported_counts_as_success)
{
    Probe probe;

    probe.run(spoiled(0));
    ck_assert_int_eq(probe.extracted, 0);

    for (const int good : {0, 3}) {
        World world;
        Feed feed{spoiled(good)};

        feed.on_loop = _i;
        const Delivery got =
            carry(world, stream_from(world, From::READY, feed), To::EACH);

        ck_assert_int_eq(got.ending.end, UVA_END_FAILED);
        ck_assert_int_eq(got.ending.code, EPROTO);
        ck_assert_uint_eq(got.batches.size(), static_cast<size_t>(good));
    }
}
END_TEST

/* Arrow frees its producer before it reports the end. */
START_TEST(LC13_the_producer_is_gone_before_the_end)
{
    const bool is_alive = survives([] {
        Probe probe;

        probe.touches_dead = true;
        probe.run(numbers(3));
    });
    ck_assert(!is_alive || !IS_SANITIZED);

    for (int at = -1; at < 4; at++) {
        HandlerSpy spy;
        Consumer consumer;
        {
            World world;
            consumer.batch_at = at;
            consumer.batch_code = ECANCELED;
            consumer.read(world,
                          stream_from(world, From::READY,
                                      at < 0 ? spied(numbers(4), spy)
                                             : spied_endless(numbers(4), spy)));
        }
        ck_assert_int_eq(spy.late, 0);
    }
}
END_TEST

/* Each stream blocks one thread, and some of Arrow's: there are more streams
 * than threads in its pool. */
START_TEST(P26_many_streams_at_once_do_not_lock_each_other)
{
    constexpr int STREAMS = 24;
    std::list<Consumer> consumers(STREAMS);
    World world;

    for (Consumer &consumer : consumers) {
        uva_stream *stream = stream_from(world, From::POOLED, {numbers(6)});
        uva_consumer how{};

        how.on_batch = Consumer::on_batch;
        how.on_done = Consumer::on_done;
        how.ctx = &consumer;
        ck_assert_int_eq(uva_stream_for_each(stream, &how, nullptr), 0);
        uva_stream_release(stream);
    }
    for (Consumer &consumer : consumers) {
        world.until([&consumer] { return consumer.ending.done; });
        ck_assert_int_eq(consumer.ending.end, UVA_END_COMPLETE);
        ck_assert_int_eq(consumer.batches, 6);
    }
}
END_TEST

/* ---- Arrow's consumer --------------------------------------------------- */

using Opened = arrow::Future<arrow::AsyncRecordBatchGenerator>;

/* Makes Arrow's handler, without reading from it. */
Opened new_handler(ArrowAsyncDeviceStreamHandler *handler, uint64_t queue = 5)
{
    std::memset(handler, 0x5a, sizeof(*handler));
    return arrow::CreateAsyncDeviceStreamHandler(
        handler, arrow::internal::GetCpuThreadPool(), queue);
}

Ending drive(World &world, uva_stream *stream,
             ArrowAsyncDeviceStreamHandler *handler)
{
    uva_drive how{};
    Ending ending;

    how.on_done = Ending::on_done;
    how.ctx = &ending;
    ck_assert_int_eq(uva_stream_drive(stream, handler, &how, nullptr), 0);
    world.until([&ending] { return ending.done; });
    return ending;
}

/* It requests more for each batch that is read, although the stream is over and
 * the handler released. */
START_TEST(Q08_requests_behind_the_release)
{
    const Batches sent = numbers(5);
    ArrowAsyncDeviceStreamHandler handler;
    uva_runtime_stats stats;
    Batches got;
    World world;
    Opened opened = new_handler(&handler, 8);
    uva_stream *stream = stream_from(world, From::ARRAYS, {sent});

    const Ending ending = drive(world, stream, &handler);
    ck_assert_int_eq(ending.end, UVA_END_COMPLETE);
    for (;;) {
        auto next = value_of(opened.result()).generator().result();
        if (!value_of(next).batch)
            break;
        got.push_back(next->batch);
    }
    uva_runtime_get_stats(world.runtime, &stats);
    uva_stream_release(stream);

    check_equal(sent, got);
    ck_assert_int_gt(stats.late_calls, 0);
}
END_TEST

/* Arrow would wait for ever if on_error did not follow. */
START_TEST(Q09_an_error_follows_a_failed_extraction)
{
    HandlerSpy spy;
    Plan plan;
    Delivery got;

    plan.tap = tapped(spy);
    {
        World world;
        Feed feed{spoiled(3)};
        got = carry(world, stream_from(world, From::READY, feed), To::DRIVE,
                    plan);
    }
    ck_assert(spy.transcript.find("nodata") != std::string::npos);
    ck_assert(ends_with(spy.transcript, "error release"));
    ck_assert(!got.status.ok());
    ck_assert_int_eq(got.ending.code, EPROTO);
}
END_TEST

/* Tasks that Arrow never extracts are freed with the runtime, or by their
 * owner. */
START_TEST(Q10_tasks_before_an_error_are_never_extracted)
{
    const bool by_owner = _i;
    const int64_t before = arrow::default_memory_pool()->bytes_allocated();
    ArrowAsyncDeviceStreamHandler handler;
    uva_runtime_stats stats;
    uva_pusher *pusher;
    uva_error error{};
    ArrowSchema schema;
    ArrowDeviceArray array;
    World world;
    uva_stream *stream =
        uva_stream_from_pusher(world.runtime, nullptr, &pusher);

    {
        const Batches sent = numbers(4);
        Opened opened = new_handler(&handler);

        ck_assert_arrow(arrow::ExportSchema(*sent[0]->schema(), &schema));
        ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
        for (const Batch &batch : sent) {
            ck_assert_arrow(
                arrow::ExportDeviceRecordBatch(*batch, nullptr, &array));
            ck_assert_int_eq(uva_pusher_push(pusher, &array, nullptr, 0), 0);
        }
        uva_error_set(&error, EIO, "gone");
        uva_pusher_close(pusher, &error, nullptr);
        drive(world, stream, &handler);
        ck_assert(!value_of(opened.result()).generator().result().ok());
    }
    uva_runtime_get_stats(world.runtime, &stats);
    ck_assert_int_ge(stats.tasks_held, 3);
    ck_assert_int_gt(arrow::default_memory_pool()->bytes_allocated(), before);
    if (by_owner) {
        uva_stream_drop(stream);
        while (arrow::default_memory_pool()->bytes_allocated() != before)
            uv_run(&world.loop, UV_RUN_NOWAIT);
    } else {
        uva_stream_release(stream);
    }
}
END_TEST

/* Arrow would wait for ever for an end. */
START_TEST(Q12_there_is_an_end_before_each_release)
{
    const Stop stop = _i == 0 ? Stop::NEVER : Stop::CANCEL;
    HandlerSpy spy;
    Plan plan{stop, 2};

    plan.tap = tapped(spy);
    {
        World world;
        Feed feed{numbers(3)};
        feed.endless = _i == 1;
        if (_i == 2)
            feed.end = arrow::Status::IOError("the disk is full");
        carry(world, stream_from(world, From::READER, feed), To::DRIVE, plan);
    }
    const std::string end =
        spy.transcript.find(" end") != std::string::npos ? " end" : " error";
    const size_t at = spy.transcript.find(end);
    ck_assert(at != std::string::npos);
    ck_assert_uint_lt(at, spy.transcript.find("release"));
}
END_TEST

START_TEST(Q19_all_bytes_of_an_extracted_struct_are_written)
{
    for (const From from : {From::ARRAYS, From::READY, From::READER}) {
        HandlerSpy spy;
        Plan plan;

        plan.tap = tapped(spy);
        {
            World world;
            const Delivery got = carry(
                world, stream_from(world, from, {numbers(9)}), To::DRIVE, plan);
            ck_assert_uint_eq(got.batches.size(), 9);
        }
        ck_assert_int_eq(spy.dirty, 0);
    }
}
END_TEST

/* Its handler arrives with garbage as its producer, and keeps its `release`
 * after the call. The spy's handler is freed then, and not accessed. */
START_TEST(Q21_a_handler_is_neither_clean_nor_cleared)
{
    ArrowAsyncDeviceStreamHandler handler;
    {
        World world;
        Opened opened = new_handler(&handler, 8);
        HandlerSpy spy;
        uva_stream *stream = stream_from(world, From::ARRAYS, {numbers(3)});

        ck_assert_ptr_eq(handler.producer, Probe::planted);
        drive(world, stream, spy.tap(&handler));
        ck_assert_ptr_nonnull(reinterpret_cast<void *>(handler.release));
        while (value_of(value_of(opened.result()).generator().result()).batch)
            ;
        uva_stream_release(stream);
        world.close();
        uv_run(&world.loop, UV_RUN_DEFAULT);
    }
}
END_TEST

/* Arrow refuses the task without extracting or keeping it. */
START_TEST(Q22_bad_metadata_loses_the_task)
{
    HandlerSpy spy;
    Plan plan;
    Delivery got;

    plan.tap = tapped(spy);
    spy.garble = true;
    {
        World world;
        got = carry(world, stream_from(world, From::ARRAYS, {numbers(3)}),
                    To::DRIVE, plan);
    }
    ck_assert_int_eq(spy.refused, 1);
    ck_assert(spy.transcript.find("data") == std::string::npos);
    ck_assert_int_eq(got.ending.end, UVA_END_REJECTED);
    ck_assert_int_eq(got.ending.code, EINVAL);
}
END_TEST

/* With a queue of size 0 it requests 0, which is reported as an error. */
START_TEST(C02_a_request_for_nothing_is_an_error)
{
    ArrowAsyncDeviceStreamHandler handler;
    World world;
    Opened opened = new_handler(&handler, 0);
    uva_stream *stream = stream_from(world, From::ARRAYS, {numbers(3)});

    const Ending ending = drive(world, stream, &handler);
    uva_stream_release(stream);

    ck_assert_int_eq(ending.end, UVA_END_FAILED);
    ck_assert_int_eq(ending.code, EINVAL);
    ck_assert(!value_of(opened.result()).generator().result().ok());
}
END_TEST

/* Declares text and sends numbers. */
class LyingReader : public arrow::RecordBatchReader
{
  public:
    std::shared_ptr<arrow::Schema> schema() const override
    {
        return arrow::schema({arrow::field("n", arrow::utf8())});
    }

    arrow::Status ReadNext(Batch *out) override
    {
        *out = left_-- > 0 ? numbers(1)[0] : nullptr;
        return arrow::Status::OK();
    }

  private:
    int left_ = 4;
};

/* Arrow's producer sends data that does not fit its schema, and its consumer
 * does not report that the import failed: only its reader sees the end. */
START_TEST(C14_a_failed_import_is_not_told)
{
    Feed feed{};
    HandlerSpy spy;
    Plan plan;
    Delivery got;

    feed.reader = std::make_shared<LyingReader>();
    plan.tap = tapped(spy);
    {
        World world;
        uva_stream *stream = stream_from(world, From::READY, feed);
        feed = {};
        got = carry(world, stream, To::DRIVE, plan);
    }
    ck_assert(!got.status.ok());
    ck_assert_uint_eq(got.batches.size(), 0);
    ck_assert_int_eq(spy.cancels, 0);
    ck_assert(ends_with(spy.transcript, "release"));
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_deviations");
    TCase *producer = new_case(suite, "producer");
    TCase *consumer = new_case(suite, "consumer");

    tcase_add_test(producer, Q01_an_error_behind_a_refused_schema);
    tcase_add_test(producer, Q02_an_error_behind_a_refused_task);
    tcase_add_test(producer, Q03_an_error_behind_a_cancel);
    tcase_add_test(producer,
                   Q04_a_task_that_is_extracted_and_refused_is_freed_twice);
    tcase_add_test(producer, Q05_a_negative_request_opens_the_flood);
    tcase_add_loop_test(producer, Q06_reserved_bytes_are_left_as_they_were, 0,
                        2);
    tcase_add_test(producer, Q07_an_early_error_comes_without_a_producer);
    tcase_add_test(producer, Q17_a_stream_keeps_the_thread_that_starts_it);
    tcase_add_loop_test(producer, Q18_what_is_not_exported_counts_as_success, 0,
                        2);
    tcase_add_test(producer, LC13_the_producer_is_gone_before_the_end);
    tcase_add_test(producer, P26_many_streams_at_once_do_not_lock_each_other);
    tcase_add_test(consumer, Q08_requests_behind_the_release);
    tcase_add_test(consumer, Q09_an_error_follows_a_failed_extraction);
    tcase_add_loop_test(consumer, Q10_tasks_before_an_error_are_never_extracted,
                        0, 2);
    tcase_add_loop_test(consumer, Q12_there_is_an_end_before_each_release, 0,
                        3);
    tcase_add_test(consumer, Q19_all_bytes_of_an_extracted_struct_are_written);
    tcase_add_test(consumer, Q21_a_handler_is_neither_clean_nor_cleared);
    tcase_add_test(consumer, Q22_bad_metadata_loses_the_task);
    tcase_add_test(consumer, C02_a_request_for_nothing_is_an_error);
    tcase_add_test(consumer, C14_a_failed_import_is_not_told);
    return run_suite(suite);
}
