/* SPDX-License-Identifier: Apache-2.0 */
/* Every type of Arrow C++ passes through every kind of stream, from Arrow to
 * Arrow, and Arrow checks that it arrives equal: values, types and metadata.
 * This includes slices, empty batches and columns with nulls only. */
#include <arrow/c/bridge.h>

#include <cstring>
#include <set>

#include "arrow_peer.hpp"

namespace
{

using namespace interop;

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

/* Checks that both sides report success. */
void check_complete(const Delivery &got)
{
    ck_assert_arrow(got.status);
    ck_assert_int_eq(got.ending.end, UVA_END_COMPLETE);
    ck_assert_int_eq(got.ending.code, 0);
}

START_TEST(no_type_of_Arrow_is_left_out)
{
    std::set<arrow::Type::type> flat, lists;

    for (const auto &column : all_columns()) {
        flat.insert(column->type_id());
        if (column->type_id() == arrow::Type::LIST)
            lists.insert(column->type()->field(0)->type()->id());
    }
    ck_assert_uint_eq(flat.size(), arrow::Type::MAX_ID);
    ck_assert_uint_eq(lists.size(), arrow::Type::MAX_ID);
}
END_TEST

START_TEST(what_goes_in_comes_out_equal)
{
    const Batches &sent = every_type();
    World world;

    const Delivery got =
        carry(world, stream_from(world, from_of(_i), Feed{sent}), to_of(_i));

    check_complete(got);
    ck_assert(got.schema->Equals(*sent[0]->schema(), true));
    check_equal(sent, got.batches);
}
END_TEST

START_TEST(windows_of_one_batch_lose_nothing)
{
    const Batches sent = numbers(50);
    Feed feed{sent};
    World world;

    feed.window = 1;
    feed.on_loop = true;
    const Delivery got = carry(world, stream_from(world, from_of(_i), feed),
                               to_of(_i), {Stop::NEVER, 0, 1});

    check_complete(got);
    check_equal(sent, got.batches);
}
END_TEST

START_TEST(rows_without_columns_arrive)
{
    const Batches sent = no_columns();
    World world;

    const Delivery got =
        carry(world, stream_from(world, from_of(_i), Feed{sent}), to_of(_i));

    check_complete(got);
    check_equal(sent, got.batches);
}
END_TEST

/* A stream that ends at once still has a schema. */
class NoBatches : public arrow::RecordBatchReader
{
  public:
    std::shared_ptr<arrow::Schema> schema() const override
    {
        return numbers(1)[0]->schema();
    }

    arrow::Status ReadNext(Batch *out) override
    {
        out->reset();
        return arrow::Status::OK();
    }
};

START_TEST(a_stream_without_batches_has_a_schema)
{
    World world;
    ArrowArrayStream none;

    ck_assert_arrow(
        arrow::ExportRecordBatchReader(std::make_shared<NoBatches>(), &none));
    const Delivery got = carry(
        world, uva_stream_from_arrow_stream(world.runtime, &none, nullptr),
        static_cast<To>(_i));

    check_complete(got);
    ck_assert(got.schema->Equals(*numbers(1)[0]->schema()));
    ck_assert_uint_eq(got.batches.size(), 0);
}
END_TEST

/* Windows limit bytes: every type must have a known size, which must not exceed
 * the size of the buffers as Arrow counts them, including shared ones. */
START_TEST(the_size_of_every_type_is_known)
{
    for (const auto &column : all_columns()) {
        const Batch batch = batch_of({column});
        ArrowDeviceArray array;
        ArrowSchema schema;
        int64_t size = -1;

        ck_assert_arrow(
            arrow::ExportDeviceRecordBatch(*batch, nullptr, &array, &schema));
        ck_assert_msg(uva_array_size(&schema, &array, &size) == 0, "%s",
                      column->type()->ToString().c_str());
        ck_assert_int_ge(size, 0);
        uva_array_release(&array);
        uva_schema_release(&schema);
    }
}
END_TEST

/* Streams copy schemas: the copies must equal Arrow's. */
START_TEST(a_copied_schema_is_equal)
{
    const auto sent = batch_of(all_columns())->schema();
    ArrowSchema schema, copy;

    ck_assert_arrow(arrow::ExportSchema(*sent, &schema));
    ck_assert_int_eq(uva_schema_copy(&schema, &copy), 0);
    uva_schema_release(&schema);

    ck_assert(value_of(arrow::ImportSchema(&copy))->Equals(*sent, true));
}
END_TEST

/* Called once, before the cases fork. */
void make_columns()
{
    (void)every_type();
}

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_types");
    TCase *tcase = new_case(suite, "arrow_types");

    tcase_add_unchecked_fixture(tcase, make_columns, nullptr);
    tcase_add_test(tcase, no_type_of_Arrow_is_left_out);
    tcase_add_loop_test(tcase, what_goes_in_comes_out_equal, 0, ROUTES);
    tcase_add_loop_test(tcase, windows_of_one_batch_lose_nothing, 0, ROUTES);
    tcase_add_loop_test(tcase, rows_without_columns_arrive, 0, ROUTES);
    tcase_add_loop_test(tcase, a_stream_without_batches_has_a_schema, 0, TOS);
    tcase_add_test(tcase, the_size_of_every_type_is_known);
    tcase_add_test(tcase, a_copied_schema_is_equal);
    return run_suite(suite);
}
