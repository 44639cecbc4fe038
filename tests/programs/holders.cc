// SPDX-License-Identifier: Apache-2.0
// The classes of uvarrow.hpp: each owns an object of the C functions, and frees
// it as they require. Built as C++17 and as C++20, where options are designated
// initialisers.
#include "uvarrow/uvarrow.hpp"

#include <cassert>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <thread>
#include <uv.h>
#include <vector>

#include "support/world.h"

static uva::arrow_stream rows()
{
    uva::arrow_stream made;
    const int code = db_scan("flights.db", made.out());

    assert(code == 0);
    return made;
}

static uva::stream scan(const uva::runtime &rt)
{
    uva::arrow_stream source = rows();
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), source.get());

    assert(!source); // taken
    return s;
}

static int twice(uva_batch &in, ArrowDeviceArray &out)
{
    uva::cpu_array made;
    const int code = column_scale(&in.data.array, 2, made.out());

    if (code == 0)
        uva_array_from_cpu(made.get(), &out);
    return code;
}

static int c_twice(void *ctx, uva_batch *in, ArrowDeviceArray *out,
                   uva_error *error)
{
    (void)ctx;
    return uva::guard(error, [&] { return twice(*in, *out); });
}

static void run(void)
{
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

// Runs `s` to its end and returns the sum of its numbers.
static int64_t sum_of(uva::stream s)
{
    int64_t sum = 0;
    bool complete = false;
    uva::consumer add(
        [&](uva_batch &b) {
            for (int64_t i = 0; i < b.data.array.length; i++)
                sum += column_values(&b.data.array)[i];
            return 0;
        },
        [&](const uva_outcome &o) { complete = o.end == UVA_END_COMPLETE; });
    const int code = s.for_each(add);

    assert(code == 0);
    s.release(); // a started stream runs to its end
    run();
    assert(complete);
    return sum;
}

static constexpr int64_t ROWS = DB_BATCHES * DB_ROWS;
static constexpr int64_t SUM = ROWS * (ROWS - 1) / 2;

static void options_are_set_by_name(const uva::runtime &rt)
{
    const auto four =
        uva::options<uva_parallel>()
            .set(&uva_parallel::workers, 4)
            .set(&uva_parallel::window,
                 uva::options<uva_window>().set(&uva_window::batches, 8));
    uva::stream s = scan(rt);

    assert(four.workers == 4 && four.window.batches == 8 && !four.unordered);
    s.map(uva::options<uva_map>().set(&uva_map::batch, c_twice)).parallel(four);
    assert(sum_of(std::move(s)) == 2 * SUM);
#if __cplusplus >= 202002L
    uva::stream t = scan(rt);

    t.map({.batch = c_twice, .on_loop = true}).parallel({.workers = 2});
    assert(sum_of(std::move(t)) == 2 * SUM);
#endif
}

static void limits_of_time_fail_a_stream(const uva::runtime &rt)
{
    const auto soon = uva::options<uva_timeout>().set(&uva_timeout::open_ms, 1);
    const auto late =
        uva::options<uva_timeout>().set(&uva_timeout::total_ms, INT64_MAX);
    uva::pusher silent;
    uva::stream s = uva::stream::from_pusher(rt.get(), silent);
    uva::stream t = scan(rt);
    int ended = 0;
    uva::consumer keep([](uva_batch &) { return 0; },
                       [&](const uva_outcome &o) { ended = o.error.code; });
    const int code = s.timeout(late).timeout(soon).for_each(keep);

    assert(code == 0);
    run();
    assert(ended == ETIMEDOUT);
    silent.close();
    assert(sum_of(std::move(t.timeout(late))) == SUM);
}

// The first attempt throws, which gives up; the second stream goes on.
static void a_stream_that_failed_is_opened_again(const uva::runtime &rt)
{
    const auto fast =
        uva::options<uva_retry>().set(&uva_retry::delay_ms, int64_t{1});
    const auto held = std::make_shared<int>(0);
    int ended = -1;
    uva::consumer keep([](uva_batch &) { return 0; },
                       [&](const uva_outcome &o) { ended = o.error.code; });

    for (const bool throws : {true, false}) {
        uva::pusher broken;
        uva::stream s = uva::stream::from_pusher(rt.get(), broken);

        broken = uva::pusher(); // abandons the stream
        s.retry(
            [held, throws, &rt](const uva_outcome &failed, int, int64_t passed,
                                int64_t) {
                assert(failed.error.code == ECONNABORTED && passed == 0);
                if (throws)
                    throw std::runtime_error("no more");
                return scan(rt);
            },
            fast);
        const int code = s.for_each(keep);

        assert(code == 0);
        s.release();
        run();
        assert(ended == (throws ? ECONNABORTED : 0));
    }
    run();
    assert(held.use_count() == 1);
    uva::stream t = scan(rt);
    t.retry(uva_retry(fast)).throttle(uva::options<uva_throttle>());
    assert(t.for_each(keep) == EINVAL); // without a function, and a rate
    uva::stream u = scan(rt);
    u.throttle(uva::options<uva_throttle>().set(&uva_throttle::bytes_per_s,
                                                int64_t{1} << 40));
    assert(sum_of(std::move(u)) == SUM);
}

static void a_callable_is_freed_with_its_stream(const uva::runtime &rt)
{
    const auto held = std::make_shared<int>(0);
    const auto map = [held](uva_batch &in, ArrowDeviceArray &out) {
        return twice(in, out);
    };
    {
        uva::stream unstarted = scan(rt);

        unstarted.map(map);
        assert(held.use_count() > 2);
    }
    uva::stream s = scan(rt);
    s.map(map).map(map, true).limit_rows(2).set_name("twice");
    (void)sum_of(std::move(s));
    run();
    assert(held.use_count() == 2); // here and in `map`
}

static void replies_are_given_by_threads(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    std::vector<std::thread> threads;

    s.map_async(
        [&threads](uva_batch &in, uva::reply r) {
            uva::array out;

            const int code = twice(in, *out.out());
            assert(code == 0 && r && r.get() != nullptr);
            threads.emplace_back(
                [](uva::array result, uva::reply reply) {
                    reply.give(result.get());
                    assert(!reply);
                },
                std::move(out), std::move(r));
        },
        4);
    assert(sum_of(std::move(s)) == 2 * SUM);
    for (std::thread &thread : threads)
        thread.join();
}

// Runs `s`, which must fail with `code`.
static void fails_with(uva::stream s, int code)
{
    int got = 0;
    uva::consumer end([](uva_batch &) { return 0; },
                      [&](const uva_outcome &o) { got = o.error.code; });
    const int started = s.for_each(end);

    assert(started == 0);
    s.release();
    run();
    assert(got == code);
}

static void replies_that_are_lost_fail_the_stream(const uva::runtime &rt)
{
    uva::stream s = scan(rt), t = scan(rt), u = scan(rt), v = scan(rt);
    const auto held = std::make_shared<int>(0);

    s.map_async([held](uva_batch &, uva::reply) {}, 2, true);
    fails_with(std::move(s), ECONNABORTED);
    t.map_async(
        [held](uva_batch &, uva::reply &&) { throw std::runtime_error("no"); });
    fails_with(std::move(t), EIO);
    u.map_async([held](uva_batch &, uva::reply r) { r.give(nullptr); });
    assert(sum_of(std::move(u)) == 0);
    v.map_async(uva::options<uva_async_map>().set(
        &uva_async_map::begin,
        [](void *, uva_batch *, struct uva_reply *) { return EDOM; }));
    fails_with(std::move(v), EDOM);
    run();
    assert(held.use_count() == 1);
}

// A branch that is released unstarted leaves.
static void a_tee_gives_another_stream(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    uva::stream left = s.tee();
    uva::stream branch =
        s.tee(uva::options<uva_tee>().set(&uva_tee::slow, UVA_SLOW_WAIT));
    int64_t rows = 0;
    uva::consumer count(
        [&](uva_batch &b) {
            rows += b.data.array.length;
            return 0;
        },
        [](const uva_outcome &) {});
    const int code = branch.for_each(count);

    assert(code == 0);
    left.release();
    assert(sum_of(std::move(s)) == SUM);
    assert(rows == ROWS);
}

static void a_group_is_cancelled_and_done(const uva::runtime &rt)
{
    uva::group group;
    int code = group.open(rt.get(), true);
    bool ended = false, done = false;
    uva::consumer none(
        [](uva_batch &) { return 0; },
        [&](const uva_outcome &o) { ended = o.end == UVA_END_CANCELLED; });
    uva::stream s = scan(rt);

    code = code ? code : group.add(s);
    code = code ? code : s.for_each(none);
    code = code ? code
                : group.on_done([](void *ctx) { *(bool *)ctx = true; }, &done);
    assert(code == 0);
    group.cancel(ETIMEDOUT, "too late");
    run();
    assert(ended && done);
}

static void a_stream_is_looked_at(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    const uva::stream look(uva_stream_acquire(s.get()));
    uva_stage_stats stats[4];
    std::size_t count = 4;
    int64_t passed = 0;

    s.inspect(uva::options<uva_trace>()
                  .set(&uva_trace::event,
                       [](void *ctx, const uva_trace_event *event) {
                           *static_cast<int64_t *>(ctx) +=
                               event->kind == UVA_TRACE_BATCH;
                       })
                  .set(&uva_trace::ctx, &passed));
    (void)sum_of(std::move(s));
    run();
    const int code = look.get_stats(stats, &count);
    assert(code == 0 && count == 1 && stats[0].next == -1);
    assert(passed > 0 && stats[0].batches == passed);
}

// Each stage by its options, as in C.
static void stages_are_added_by_their_options(const uva::runtime &rt)
{
    const auto all =
        uva::options<uva_filter>()
            .set(&uva_filter::keep,
                 [](void *, const uva_batch *batch, std::uint8_t *bits,
                    uva_error *) {
                     std::memset(bits, 0xff,
                                 std::size_t(batch->data.array.length + 7) / 8);
                     return 0;
                 })
            .set(&uva_filter::on_loop, true);
    const auto same = uva::options<uva_transform>()
                          .set(&uva_transform::batch,
                               [](void *, uva_batch *in, uva_emit_fn *emit,
                                  void *emitter, uva_error *) {
                                   const int code = emit(emitter, in);
                                   return code == EAGAIN ? 0 : code;
                               })
                          .set(&uva_transform::on_loop, true);
    const auto through = uva::options<uva_device_map>().set(
        &uva_device_map::batch, [](void *, uva_batch *in, ArrowDeviceArray *out,
                                   const uva_device_queue *queue, uva_error *) {
            uva_array_move(&in->data, out);
            return queue == nullptr ? 0 : EINVAL; // batches of the CPU
        });
    const auto ten = uva::options<uva_rebatch>().set(&uva_rebatch::rows, 10);
    uva::stream s = scan(rt);

    s.filter(all).transform(same).map_device(through).rebatch(ten);
    s.set_priority(-1);
    s.merge(scan(rt)).concat(scan(rt)).merge(scan(rt),
                                             uva_merge{false, true, 1, {}, {}});
    assert(sum_of(std::move(s)) == 4 * SUM);
    uva::stream few = scan(rt);
    assert(sum_of(std::move(few.limit_rows(3).without_offsets())) == 0 + 1 + 2);
    uva::arrow_stream other = rows();
    uva::schema target;
    uva::stream equal = scan(rt);
    assert(other->get_schema(other.get(), target.out()) == 0);
    equal.cast(target.get());
    assert(!target); // taken
    assert(sum_of(std::move(equal)) == SUM);
    uva::stream none = scan(rt);
    none.merge(uva::stream());
    assert(none.status() == EINVAL);
}

static void batches_are_taken_or_collected(const uva::runtime &rt)
{
    uva::stream s = scan(rt), t = scan(rt);
    std::size_t rows = 0;
    struct reading {
        uva_stream *from;
        int64_t rows;

        static void ready(void *ctx)
        {
            auto *const self = static_cast<reading *>(ctx);
            uva_batch batch{};

            while (uva_stream_take(self->from, &batch, nullptr) == 0) {
                self->rows += batch.data.array.length;
                uva_array_release(&batch.data);
            }
        }
    } taken{s.get(), 0};
    int code = s.start_take(reading::ready, &taken);

    assert(code == 0);
    reading::ready(&taken);
    run();
    assert(taken.rows == ROWS);
    s.release();
    code = t.collect(
        0,
        [](void *ctx, const uva_stream_info *, ArrowDeviceArray *batches,
           size_t count, const uva_outcome *) {
            for (size_t i = 0; i < count; i++)
                *static_cast<std::size_t *>(ctx) += batches[i].array.length;
        },
        &rows);
    assert(code == 0);
    run();
    assert(rows == std::size_t{ROWS});
}

// The stream owns the callables, unless it could not be started.
static void callables_are_freed_behind_the_end(const uva::runtime &rt)
{
    const auto held = std::make_shared<int>(0);
    const auto batch = [held](uva_batch &) {
        ++*held;
        return 0;
    };
    const auto done = [held](const uva_outcome &) { *held = -*held; };
    uva::stream s = scan(rt), t = scan(rt);
    int code = s.for_each(batch, done);

    assert(code == 0 && s.for_each(batch, done) == EBUSY);
    run();
    assert(*held == -DB_BATCHES && held.use_count() == 3);
    code = t.for_each(batch, done);
    assert(code == 0 && !t.is_dropped() && t.get_runtime() == rt.get());
    const uva::stream look = t.acquire();
    t.drop();
    assert(look.is_dropped());
    run();
    assert(*held == -DB_BATCHES && held.use_count() == 3);
}

static void a_dropped_stream_calls_nothing(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    int batches = 0;
    {
        uva::consumer first(
            [&](uva_batch &) {
                batches++;
                s.drop(); // inside its own callback
                return 0;
            },
            [](const uva_outcome &) { assert(false); });
        const int code = s.for_each(first);

        assert(code == 0);
        run();
    }
    assert(batches == 1 && !s);
}

static void the_last_of_two_references_counts(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    uva::stream other = s.acquire();
    uva_stream *const raw = other.take(); // ours now
    uva::consumer keep([](uva_batch &) { return 0; },
                       [](const uva_outcome &) { assert(false); });

    assert(!other && raw == s.get());
    s.cancel(ETIMEDOUT, "too late");
    s.release();
    other = uva::stream(raw);
    assert(other.for_each(keep) == ETIMEDOUT);
}

static void an_exception_becomes_an_error(const uva::runtime &rt)
{
    uva::stream s = scan(rt);
    uva_error error{};
    bool rejected = false;

    s.map([](uva_batch &, ArrowDeviceArray &, uva_error &) -> int {
        throw std::runtime_error("no more");
    });
    uva::consumer keep([](uva_batch &) { return 0; },
                       [&](const uva_outcome &o) { error = o.error; });
    int code = s.for_each(keep);
    assert(code == 0);
    run();
    assert(error.code == EIO && std::strstr(error.message, "no more"));

    uva::stream t = scan(rt);
    uva::consumer reject([](uva_batch &) -> int { throw std::bad_alloc(); },
                         [&](const uva_outcome &o) {
                             rejected = o.end == UVA_END_REJECTED &&
                                        o.error.code == ENOMEM;
                         });
    code = t.for_each(reject);
    assert(code == 0);
    run();
    assert(rejected);
    assert(uva::guard(&error, []() -> int { throw 1; }) == EIO);
}

static void building_fails_at_the_start(const uva::runtime &rt)
{
    uva::arrow_stream none;
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), none.get());
    uva::consumer keep([](uva_batch &) { return 0; },
                       [](const uva_outcome &) { assert(false); });
    uva_error error{};

    assert(s.limit_rows(1).for_each(keep, &error) == EINVAL);
    assert(error.code == EINVAL && s.status() == EINVAL);
}

static void pushed_data_that_was_not_closed_failed(const uva::runtime &rt)
{
    uva::pusher pusher;
    uva::stream s = uva::stream::from_pusher(rt.get(), pusher);
    uva::schema schema;
    uva::cpu_array plain;
    uva::array batch;
    uva_error error{};
    int batches = 0;
    uva::consumer count(
        [&](uva_batch &) {
            batches++;
            return 0;
        },
        [&](const uva_outcome &o) { error = o.error; });
    int code = column_schema(schema.out());

    code = code ? code : column_count_up(0, 10, plain.out());
    code = code ? code : s.for_each(count);
    code = code ? code : pusher.set_schema(schema.get());
    uva_array_from_cpu(plain.get(), batch.out());
    code = code ? code : pusher.push(batch.get(), nullptr, 0);
    assert(code == 0 && !batch && !schema && !plain);
    {
        uva::pusher gone(std::move(pusher));
        assert(pusher.get() == nullptr);
    }
    run();
    assert(batches == 1 && error.code == ECONNABORTED);
}

static void pushed_data_that_was_closed_is_complete(const uva::runtime &rt)
{
    uva::pusher pusher;
    uva::stream s = uva::stream::from_pusher(rt.get(), pusher);
    uva::schema schema;
    int code = column_schema(schema.out());

    code = code ? code : pusher.set_schema(schema.get());
    assert(code == 0);
    pusher.close();
    assert(sum_of(std::move(s)) == 0);
}

static void arrays_move_and_are_released_once(void)
{
    uva::cpu_array plain;
    uva::array a, b;
    int code = column_count_up(0, 10, plain.out());

    assert(code == 0 && plain);
    uva_array_from_cpu(plain.get(), a.out());
    assert(a && !plain && a->array.length == 10);
    b = std::move(a);
    assert(b && !a && (*b.get()).array.length == 10);
    code = column_count_up(0, 5, plain.out());
    assert(code == 0);
    uva_array_from_cpu(plain.get(), b.out()); // releases the first
    assert(b->array.length == 5);
}

// A program's own class, freed by the stream.
struct counter {
    int64_t left;

    static int schema(void *, ArrowSchema *out, uva_error *)
    {
        return column_schema(out);
    }
    static int next(void *ctx, void **item, const char **, uva_error *)
    {
        auto *const self = static_cast<counter *>(ctx);

        if (self->left > 0)
            *item = new int64_t(--self->left);
        return 0;
    }
    static int extract(void *, void *item, ArrowDeviceArray *out, uva_error *)
    {
        const std::unique_ptr<int64_t> owned(static_cast<int64_t *>(item));
        uva::cpu_array made;
        int code = 0;

        if (out == nullptr)
            return 0;
        code = column_count_up(*owned, 1, made.out());
        if (code == 0)
            uva_array_from_cpu(made.get(), out);
        return code;
    }
};

static void a_ctx_is_deleted_by_its_stream(const uva::runtime &rt)
{
    uva::stream s = uva::stream::from_tasks(
        rt.get(), uva::options<uva_task_source>()
                      .set(&uva_task_source::schema, counter::schema)
                      .set(&uva_task_source::next, counter::next)
                      .set(&uva_task_source::extract, counter::extract)
                      .set(&uva_task_source::free_ctx, uva::delete_ctx<counter>)
                      .set(&uva_task_source::ctx, new counter{10}));

    assert(sum_of(std::move(s)) == 45);
}

static void a_runtime_is_drained(void)
{
    uva::runtime rt;
    int code = rt.open(uv_default_loop());
    bool drained = false;
    uva::consumer keep([](uva_batch &) { return 0; },
                       [](const uva_outcome &) {});

    assert(code == 0);
    uva::stream s = scan(rt);
    code = rt.drain(
        UVA_FOREVER, [](void *ctx) { *(bool *)ctx = true; }, &drained);
    assert(code == 0 && s.for_each(keep) == ESHUTDOWN);
    run();
    assert(drained);
    s.release();
    rt.reset();
    run();
}

static void a_runtime_with_a_thread_is_joined(void)
{
    struct threads {
        std::mutex lock;
        std::condition_variable ended;
        int alive = 0;

        static void count(void *ctx, int more)
        {
            auto *const self = static_cast<threads *>(ctx);
            const std::lock_guard<std::mutex> held(self->lock);

            self->alive += more;
            self->ended.notify_all();
        }
    } threads;
    uva::workers shared;
    uva::runtime rt;
    uva_error error{};
    uva::arrow_stream out;
    int code = shared.open(
        uva::options<uva_workers_options>()
            .set(&uva_workers_options::thread_begin,
                 [](void *ctx, uva_lane) { threads::count(ctx, 1); })
            .set(&uva_workers_options::thread_end,
                 [](void *ctx, uva_lane) { threads::count(ctx, -1); })
            .set(&uva_workers_options::ctx, &threads));

    assert(code == 0);
    code = rt.open(nullptr,
                   uva::options<uva_runtime_options>().set(
                       &uva_runtime_options::workers, shared.get()),
                   &error);
    assert(code == 0 && rt.open(nullptr, {}, &error) == EBUSY);
    code = scan(rt).to_arrow_stream(out.out(), {}, &error);
    assert(code == 0);
    int64_t read = 0;
    for (;;) {
        uva::cpu_array batch;

        code = out->get_next(out.get(), batch.out());
        assert(code == 0);
        if (!batch)
            break;
        read += batch->length;
    }
    assert(read == ROWS);
    out.out();
    rt = uva::runtime(); // closes and joins
    assert(!rt);
    code = rt.open(nullptr);
    assert(code == 0 && rt.close() == 0 && rt.join() == 0 && !rt);

    // Only the last reference to the workers ends their threads.
    shared = uva::workers();
    std::unique_lock<std::mutex> held(threads.lock);
    threads.ended.wait(held, [&] { return threads.alive == 0; });
}

static void a_runtime_without_a_thread_takes_its_turns(void)
{
    uva::runtime rt;
    const int code = rt.open_turned(nullptr, nullptr,
                                    uva::options<uva_runtime_options>().set(
                                        &uva_runtime_options::measure, true));
    uva::pusher endless;
    bool ended = false;
    uva::consumer keep(
        [](uva_batch &) { return 0; },
        [&](const uva_outcome &o) { ended = o.end == UVA_END_CANCELLED; });

    assert(code == 0);
    {
        uva::stream s = uva::stream::from_pusher(rt.get(), endless);
        const int started = s.for_each(keep);

        assert(started == 0);
    }
    assert(rt.turn());
    uva::runtime moved(std::move(rt));
    assert(!rt.turn() && moved);
    moved.reset();
    assert(ended && !moved);
}

int main()
{
    {
        uva::runtime rt;
        uva_error error{};
        const int code = rt.open(uv_default_loop(), {}, &error);

        assert(code == 0);
        options_are_set_by_name(rt);
        limits_of_time_fail_a_stream(rt);
        a_stream_that_failed_is_opened_again(rt);
        a_callable_is_freed_with_its_stream(rt);
        replies_are_given_by_threads(rt);
        replies_that_are_lost_fail_the_stream(rt);
        a_tee_gives_another_stream(rt);
        a_group_is_cancelled_and_done(rt);
        a_stream_is_looked_at(rt);
        stages_are_added_by_their_options(rt);
        batches_are_taken_or_collected(rt);
        callables_are_freed_behind_the_end(rt);
        a_dropped_stream_calls_nothing(rt);
        the_last_of_two_references_counts(rt);
        an_exception_becomes_an_error(rt);
        building_fails_at_the_start(rt);
        pushed_data_that_was_not_closed_failed(rt);
        pushed_data_that_was_closed_is_complete(rt);
        a_ctx_is_deleted_by_its_stream(rt);
    }
    run(); // ends the runtime
    arrays_move_and_are_released_once();
    a_runtime_is_drained();
    a_runtime_with_a_thread_is_joined();
    a_runtime_without_a_thread_takes_its_turns();
    world_await_release();
    return uv_loop_close(uv_default_loop());
}
