/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow C++ as a peer: its producer is read by a stream, a stream is driven
 * into its consumer, and both with a stream in between. Columns are of many
 * types, sliced too, and Arrow itself says whether they arrived equal. */
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/json/from_string.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>
#include <check.h>
#include <uv.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "uvarrow/uvarrow.h"

namespace
{

using Batch = std::shared_ptr<arrow::RecordBatch>;
using Batches = std::vector<Batch>;

constexpr int BATCHES = 20;

#define ck_assert_arrow(status)                                                \
    do {                                                                       \
        const arrow::Status status_ = (status);                                \
        ck_assert_msg(status_.ok(), "%s", status_.ToString().c_str());         \
    } while (0)

/* ---- what is sent ------------------------------------------------------- */

/* A column of four rows. */
struct Column {
    std::shared_ptr<arrow::DataType> type;
    const char *values;
};

std::vector<Column> columns()
{
    using namespace arrow;

    return {
        {int64(), "[1, null, -3, 4]"},
        {uint8(), "[1, 2, 255, 0]"},
        {boolean(), "[true, null, false, true]"},
        {float64(), "[0.5, -1e300, null, 0]"},
        {utf8(), R"(["a", "", null, "wörter"])"},
        {large_utf8(), R"([null, "b", "c", ""])"},
        {binary(), R"(["x", null, "yy", ""])"},
        {utf8_view(), R"(["short", "one that is too long to be inline",
                          null, ""])"},
        {fixed_size_binary(3), R"(["abc", null, "def", "ghi"])"},
        {decimal128(10, 2), R"(["1.00", null, "-22.22", "0.01"])"},
        {timestamp(TimeUnit::MICRO, "UTC"), "[0, 1, null, -1]"},
        {list(int32()), "[[1, 2], [], null, [null, 3]]"},
        {list_view(utf8()), R"([["a"], null, [], ["b", null]])"},
        {fixed_size_list(int16(), 2), "[[1, 2], null, [3, null], [4, 5]]"},
        {struct_({field("a", int8()), field("b", list(utf8()))}),
         R"([{"a": 1, "b": ["x"]}, null, {"a": null, "b": null},
             {"a": 2, "b": []}])"},
        {map(utf8(), int32()), R"([[["k", 1]], null, [], [["l", null]]])"},
        {dictionary(int8(), utf8()), R"(["a", "b", null, "a"])"},
        {dense_union({field("i", int32()), field("s", utf8())}, {4, 5}),
         R"([[4, 1], [5, "two"], [4, null], [5, ""]])"},
        {null(), "[null, null, null, null]"},
    };
}

std::shared_ptr<arrow::Array> array_of(const Column &column)
{
    auto array = arrow::json::ArrayFromJSONString(column.type, column.values);

    ck_assert_arrow(array.status());
    return *array;
}

/* Four rows in three runs; there is no JSON for that. */
std::shared_ptr<arrow::Array> runs()
{
    auto array = arrow::RunEndEncodedArray::Make(
        4, array_of({arrow::int32(), "[2, 3, 4]"}),
        array_of({arrow::utf8(), R"(["r", null, "s"])"}));

    ck_assert_arrow(array.status());
    return *array;
}

Batch whole_batch()
{
    arrow::FieldVector fields;
    arrow::ArrayVector arrays = {runs()};

    for (const Column &column : columns())
        arrays.push_back(array_of(column));
    for (const auto &array : arrays)
        fields.push_back(
            arrow::field(std::to_string(fields.size()), array->type()));
    return arrow::RecordBatch::Make(
        arrow::schema(fields, arrow::key_value_metadata({"key"}, {"value"})), 4,
        arrays);
}

/* Slices of one batch, of 0 to 4 rows, with and without an offset. Not without
 * a row and with an offset: Arrow then finds its own views too short. */
Batches all_batches()
{
    const Batch whole = whole_batch();
    Batches all;

    for (int i = 0; i < BATCHES; i++)
        all.push_back(whole->Slice(i % 5 == 0 ? 0 : i % 4, i % 5));
    return all;
}

/* What arrived is what was sent, and no less of it. */
void check_equal(const Batches &sent, const Batches &got)
{
    ck_assert_uint_eq(sent.size(), got.size());
    for (size_t i = 0; i < sent.size(); i++) {
        ck_assert_arrow(got[i]->ValidateFull());
        ck_assert_msg(sent[i]->Equals(*got[i], true), "batch %zu:\n%s\n%s", i,
                      sent[i]->ToString().c_str(), got[i]->ToString().c_str());
    }
}

/* ---- the loop ----------------------------------------------------------- */

/* A handle of its own keeps the loop waiting: a stream does not, once only
 * extraction by Arrow's threads is awaited. */
struct World {
    uv_loop_t loop;
    uv_async_t awake;
    uva_runtime *runtime = nullptr;

    World()
    {
        ck_assert_int_eq(uv_loop_init(&loop), 0);
        ck_assert_int_eq(uv_async_init(&loop, &awake, nullptr), 0);
        ck_assert_int_eq(uva_runtime_open(&loop, nullptr, &runtime, nullptr),
                         0);
    }

    ~World()
    {
        uv_close(reinterpret_cast<uv_handle_t *>(&awake), nullptr);
        ck_assert_int_eq(uva_runtime_close(runtime, 0, nullptr, nullptr), 0);
        uv_run(&loop, UV_RUN_DEFAULT);
        ck_assert_int_eq(uv_loop_close(&loop), 0);
    }
};

/* The end of a stream, as the loop hears of it. */
struct Ending {
    bool done = false;
    uva_end end = UVA_END_COMPLETE;
    int code = 0;
    std::string message;

    static void on_done(void *ctx, const uva_outcome *outcome)
    {
        auto *ending = static_cast<Ending *>(ctx);

        ending->done = true;
        ending->end = outcome->end;
        ending->code = outcome->error.code;
        ending->message = outcome->error.message;
    }

    void await(World &world) const
    {
        while (!done)
            uv_run(&world.loop, UV_RUN_ONCE);
    }
};

/* ---- Arrow sends -------------------------------------------------------- */

/* What Arrow's producer is to send. Outlives it. */
struct Sender {
    Batches batches;
    bool pooled = false; /* batches are made on Arrow's threads */
    bool fails = false;  /* after the last of them */
    size_t next = 0;

    arrow::Result<Batch> make()
    {
        if (next < batches.size())
            return batches[next++];
        if (fails)
            return arrow::Status::IOError("the disk is full");
        return nullptr;
    }

    arrow::Future<Batch> ask()
    {
        if (!pooled)
            return arrow::Future<Batch>::MakeFinished(make());
        return arrow::DeferNotOk(arrow::internal::GetCpuThreadPool()->Submit(
            [this] { return make(); }));
    }

    /* Comes back when the stream is over: so does Arrow (Q-17). */
    static int start(void *ctx, ArrowAsyncDeviceStreamHandler *handler,
                     uva_error *)
    {
        auto *sender = static_cast<Sender *>(ctx);

        arrow::ExportAsyncRecordBatchReader(
            sender->batches[0]->schema(), [sender] { return sender->ask(); },
            arrow::DeviceAllocationType::kCPU, handler)
            .Wait();
        return 0;
    }

    uva_stream *stream(World &world, int way)
    {
        uva_async_source source{};

        pooled = way & 1;
        source.start = start;
        source.ctx = this;
        source.cheap = way & 2;
        source.window.batches = way & 4 ? 1 : 0;
        return uva_stream_from_async(world.runtime, &source);
    }
};

constexpr int WAYS = 8;

/* Moves what a stream delivers into Arrow. */
struct Collector {
    Batches batches;
    Ending ending;

    static int on_batch(void *ctx, uva_batch *batch)
    {
        ArrowSchema schema;

        ck_assert_int_eq(uva_schema_copy(batch->schema, &schema), 0);
        auto got = arrow::ImportDeviceRecordBatch(&batch->data, &schema);
        ck_assert_arrow(got.status());
        static_cast<Collector *>(ctx)->batches.push_back(*got);
        return 0;
    }

    static void on_done(void *ctx, const uva_outcome *outcome)
    {
        Ending::on_done(&static_cast<Collector *>(ctx)->ending, outcome);
    }

    void collect(World &world, uva_stream *stream)
    {
        uva_consumer consumer{};

        consumer.on_batch = on_batch;
        consumer.on_done = on_done;
        consumer.ctx = this;
        ck_assert_int_eq(uva_stream_for_each(stream, &consumer, nullptr), 0);
        ending.await(world);
        uva_stream_release(stream);
    }
};

/* ---- Arrow receives ----------------------------------------------------- */

/* A stream of ours, of arrays that Arrow exported. */
uva_stream *stream_of(World &world, const Batches &batches)
{
    std::vector<ArrowDeviceArray> arrays(batches.size());
    ArrowSchema schema;

    ck_assert_arrow(arrow::ExportSchema(*batches[0]->schema(), &schema));
    for (size_t i = 0; i < batches.size(); i++)
        ck_assert_arrow(
            arrow::ExportDeviceRecordBatch(*batches[i], nullptr, &arrays[i]));
    return uva_stream_from_arrays(world.runtime, &schema, arrays.data(),
                                  arrays.size());
}

/* Arrow's consumer, read by a thread. */
struct Receiver {
    ArrowAsyncDeviceStreamHandler handler{};
    Batches batches;
    arrow::Status status;
    Ending ending;

    void read(arrow::Future<arrow::AsyncRecordBatchGenerator> opened)
    {
        const auto &from = opened.result();

        status = from.status();
        while (status.ok()) {
            auto got = from->generator().result();

            status = got.status();
            if (!status.ok() || !got->batch)
                return;
            batches.push_back(got->batch);
        }
    }

    void receive(World &world, uva_stream *stream, bool on_worker)
    {
        uva_drive how{};
        std::thread reader(&Receiver::read, this,
                           arrow::CreateAsyncDeviceStreamHandler(
                               &handler, arrow::internal::GetCpuThreadPool()));

        how.on_done = Ending::on_done;
        how.ctx = &ending;
        how.on_worker = on_worker;
        ck_assert_int_eq(uva_stream_drive(stream, &handler, &how, nullptr), 0);
        ending.await(world);
        uva_stream_release(stream);
        reader.join();
    }
};

/* ---- cases -------------------------------------------------------------- */

START_TEST(what_arrow_sends_arrives_equal)
{
    World world;
    Sender sender{all_batches()};
    Collector collector;

    collector.collect(world, sender.stream(world, _i));

    ck_assert_int_eq(collector.ending.end, UVA_END_COMPLETE);
    check_equal(sender.batches, collector.batches);
}
END_TEST

START_TEST(an_error_of_arrow_comes_behind_its_batches)
{
    World world;
    Sender sender{all_batches()};
    Collector collector;

    sender.fails = true;
    collector.collect(world, sender.stream(world, _i));

    ck_assert_int_eq(collector.ending.end, UVA_END_FAILED);
    ck_assert_int_eq(collector.ending.code, EINVAL); /* Arrow knows no other */
    ck_assert_str_eq(collector.ending.message.c_str(), "the disk is full");
    check_equal(sender.batches, collector.batches);
}
END_TEST

START_TEST(what_arrow_receives_is_equal)
{
    World world;
    const Batches sent = all_batches();
    Receiver receiver;

    receiver.receive(world, stream_of(world, sent), _i);

    ck_assert_arrow(receiver.status);
    ck_assert_int_eq(receiver.ending.end, UVA_END_COMPLETE);
    check_equal(sent, receiver.batches);
}
END_TEST

START_TEST(from_arrow_to_arrow_all_stays_equal)
{
    World world;
    Sender sender{all_batches()};
    Receiver receiver;

    receiver.receive(world, sender.stream(world, _i), false);

    ck_assert_arrow(receiver.status);
    ck_assert_int_eq(receiver.ending.end, UVA_END_COMPLETE);
    check_equal(sender.batches, receiver.batches);
}
END_TEST

/* How many of its batches Arrow still hands out depends on when the error
 * comes (Q-10). */
START_TEST(an_error_passes_from_arrow_to_arrow)
{
    World world;
    Sender sender{all_batches()};
    Receiver receiver;

    sender.fails = true;
    receiver.receive(world, sender.stream(world, _i), false);

    ck_assert_int_eq(receiver.ending.end, UVA_END_FAILED);
    const auto detail = std::dynamic_pointer_cast<arrow::AsyncErrorDetail>(
        receiver.status.detail());
    ck_assert_ptr_nonnull(detail.get());
    const std::string text = detail->ToString();
    ck_assert_int_eq(detail->code(), EINVAL);
    ck_assert_str_eq(text.c_str(), "the disk is full");
}
END_TEST

START_TEST(a_stream_without_batches_is_empty_for_arrow)
{
    World world;
    ArrowSchema schema;
    Receiver receiver;

    ck_assert_arrow(arrow::ExportSchema(*whole_batch()->schema(), &schema));
    receiver.receive(
        world, uva_stream_from_arrays(world.runtime, &schema, nullptr, 0), _i);

    ck_assert_arrow(receiver.status);
    ck_assert_uint_eq(receiver.batches.size(), 0);
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_peer");
    TCase *tcase = tcase_create("arrow_peer");
    SRunner *runner = srunner_create(suite);

    suite_add_tcase(suite, tcase);
    tcase_add_loop_test(tcase, what_arrow_sends_arrives_equal, 0, WAYS);
    tcase_add_loop_test(tcase, an_error_of_arrow_comes_behind_its_batches, 0,
                        WAYS);
    tcase_add_loop_test(tcase, what_arrow_receives_is_equal, 0, 2);
    tcase_add_loop_test(tcase, from_arrow_to_arrow_all_stays_equal, 0, WAYS);
    tcase_add_loop_test(tcase, an_error_passes_from_arrow_to_arrow, 0, WAYS);
    tcase_add_loop_test(tcase, a_stream_without_batches_is_empty_for_arrow, 0,
                        2);
    srunner_run_all(runner, CK_NORMAL);
    const int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
