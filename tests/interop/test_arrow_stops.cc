/* SPDX-License-Identifier: Apache-2.0 */
/* Streams between Arrow and Arrow are stopped before each of their batches, by
 * every party that can: the batches until then are right, both sides end, and
 * no object is left. */
#include <arrow/c/bridge.h>

#include <cerrno>

#include "arrow_peer.hpp"

namespace
{

using namespace interop;

constexpr int BATCHES = 12;
constexpr size_t STOPS = 8; /* before batch 0 to 7 */
constexpr int FROMS = static_cast<int>(From::END);
constexpr int TOS = static_cast<int>(To::END);
constexpr int ROUTES = FROMS * TOS;

From from_of(int route)
{
    return static_cast<From>(route / TOS);
}

To to_of(int route)
{
    return static_cast<To>(route % TOS);
}

bool is_driven(To to)
{
    return to == To::DRIVE || to == To::DRIVE_ON_WORKER;
}

/* Once its reader is gone, Arrow's handler waits for an end, but makes no more
 * requests. So all batches of a stream with an end must be requested before. */
Delivery stopped(int route, Stop stop, size_t at, bool endless)
{
    Feed feed{numbers(BATCHES)};
    World world;

    feed.endless = endless;
    return carry(world, stream_from(world, from_of(route), feed), to_of(route),
                 {stop, at, endless ? 0 : BATCHES + 1});
}

void check_rows(const Delivery &got)
{
    const Batches sent = numbers(BATCHES);
    Batches all;

    while (all.size() < got.batches.size())
        all.insert(all.end(), sent.begin(), sent.end());
    check_begins(all, got.batches);
}

/* Checks Arrow's status after a cancel: the code and text of the stream.
 * Blocking streams only keep a few codes. */
void check_cancelled(const Delivery &got, To to)
{
    const auto detail =
        std::dynamic_pointer_cast<arrow::AsyncErrorDetail>(got.status.detail());

    if (to == To::EACH || is_driven(to)) {
        ck_assert_int_eq(got.ending.end, UVA_END_CANCELLED);
        ck_assert_int_eq(got.ending.code, ENOSPC);
        check_text(got.ending.message, "seen enough");
    }
    if (is_driven(to)) {
        ck_assert_ptr_nonnull(detail.get());
        ck_assert_int_eq(detail->code(), ENOSPC);
        check_text(detail->ToString(), "seen enough");
    } else if (to != To::EACH) {
        ck_assert(got.status.IsIOError());
        check_text(got.status.message(), "seen enough");
    }
}

START_TEST(a_cancel_before_any_batch_ends_it)
{
    for (size_t k = 0; k < STOPS; k++) {
        const Delivery got = stopped(_i, Stop::CANCEL, k, true);

        check_rows(got);
        ck_assert_uint_ge(got.batches.size(), k);
        check_cancelled(got, to_of(_i));
        if (to_of(_i) == To::EACH)
            ck_assert_uint_eq(got.batches.size(), k);
    }
}
END_TEST

/* Arrow's handler waits for an end; a cancel provides it. */
START_TEST(a_reader_may_leave_before_any_batch)
{
    for (size_t k = 0; k < STOPS; k++) {
        const Delivery got = stopped(_i, Stop::RESCUE, k, true);

        check_rows(got);
        ck_assert_uint_eq(got.batches.size(), k);
        if (to_of(_i) == To::EACH) {
            ck_assert_int_eq(got.ending.end, UVA_END_CANCELLED);
            ck_assert_int_eq(got.ending.code, ECANCELED);
        }
    }
}
END_TEST

/* A stream that ends provides the end that Arrow's handler waits for. One with
 * tasks that may fail does not, because they might still be extracted, until a
 * timeout (G-17) or a cancel. */
START_TEST(a_reader_may_leave_a_stream_that_ends)
{
    const From from = from_of(_i);

    if (is_driven(to_of(_i)) && (from == From::READY || from == From::POOLED))
        return;
    for (size_t k = 0; k < STOPS; k++) {
        const Delivery got = stopped(_i, Stop::LEAVE, k, false);

        check_rows(got);
        ck_assert_uint_eq(got.batches.size(), k);
        if (is_driven(to_of(_i)))
            ck_assert_int_eq(got.ending.end, UVA_END_COMPLETE);
    }
}
END_TEST

START_TEST(a_drop_before_any_batch_is_silent)
{
    for (size_t k = 0; k < STOPS; k++) {
        const Delivery got = stopped(_i, Stop::DROP, k, true);

        check_rows(got);
        ck_assert_uint_ge(got.batches.size(), k);
        ck_assert(!got.ending.done);
        if (to_of(_i) == To::EACH)
            ck_assert_uint_eq(got.batches.size(), k);
        else
            ck_assert(!got.status.ok());
    }
}
END_TEST

/* The runtime is closed first, with everything that runs on it. */
START_TEST(a_closed_runtime_ends_it)
{
    Feed feed{numbers(BATCHES)};

    feed.endless = true;
    for (int from = 1; from < FROMS; from++) {
        World world;
        uva_stream *stream = stream_from(world, static_cast<From>(from), feed);
        uva_consumer consumer{};
        Ending ending;

        consumer.on_batch = [](void *, uva_batch *) { return 0; };
        consumer.on_done = Ending::on_done;
        consumer.ctx = &ending;
        ck_assert_int_eq(uva_stream_for_each(stream, &consumer, nullptr), 0);
        uva_stream_release(stream);
        for (int turn = 0; turn < _i; turn++)
            uv_run(&world.loop, UV_RUN_ONCE);
        world.close();
        world.until([&ending] { return ending.done; });

        ck_assert_int_eq(ending.end, UVA_END_CANCELLED);
    }
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_stops");
    TCase *tcase = new_case(suite, "arrow_stops");

    tcase_add_loop_test(tcase, a_cancel_before_any_batch_ends_it, 0, ROUTES);
    tcase_add_loop_test(tcase, a_reader_may_leave_before_any_batch, 0, ROUTES);
    tcase_add_loop_test(tcase, a_reader_may_leave_a_stream_that_ends, 0,
                        ROUTES);
    tcase_add_loop_test(tcase, a_drop_before_any_batch_is_silent, 0, ROUTES);
    tcase_add_loop_test(tcase, a_closed_runtime_ends_it, 0, STOPS);
    return run_suite(suite);
}
