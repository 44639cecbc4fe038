/* SPDX-License-Identifier: Apache-2.0 */
/* Columns are written as JSON, a few rows each, and extended by concatenating
 * slices of them, which produces offsets, bitmaps that begin within a byte, and
 * views of many buffers. */
#include "arrow_columns.hpp"

#include <arrow/array/concatenate.h>
#include <arrow/extension/bool8.h>
#include <arrow/extension/uuid.h>
#include <arrow/extension_type.h>
#include <arrow/json/from_string.h>
#include <arrow/util/key_value_metadata.h>

#include <string>
#include <utility>

namespace interop
{

namespace
{

using arrow::Array;
using arrow::ArrayVector;
using ArrayPtr = std::shared_ptr<Array>;
using TypePtr = std::shared_ptr<arrow::DataType>;

constexpr int64_t GROWN = 60; /* rows of a flat column */
constexpr int64_t ROWS = 20;  /* rows of a batch */

/* ---- an extension type -------------------------------------------------- */

class RgbType : public arrow::ExtensionType
{
  public:
    RgbType() : ExtensionType(arrow::fixed_size_binary(3))
    {
    }

    std::string extension_name() const override
    {
        return "uvarrow.rgb";
    }

    bool ExtensionEquals(const ExtensionType &other) const override
    {
        return other.extension_name() == extension_name();
    }

    ArrayPtr MakeArray(std::shared_ptr<arrow::ArrayData> data) const override
    {
        return std::make_shared<arrow::ExtensionArray>(std::move(data));
    }

    arrow::Result<TypePtr> Deserialize(TypePtr,
                                       const std::string &) const override
    {
        return std::make_shared<RgbType>();
    }

    std::string Serialize() const override
    {
        return "linear";
    }
};

TypePtr rgb()
{
    auto type = std::make_shared<RgbType>();

    if (arrow::GetExtensionType(type->extension_name()) == nullptr)
        ck_assert_arrow(arrow::RegisterExtensionType(type));
    return type;
}

/* ---- flat columns ------------------------------------------------------- */

struct Column {
    TypePtr type;
    const char *values;
};

#define LONG_TEXT "one that is too long to be held in a view"

std::vector<Column> numeric_columns()
{
    using namespace arrow;

    return {
        {boolean(), "[true, null, false, true, false]"},
        {int8(), "[1, null, -128, 127]"},
        {uint8(), "[1, null, 255]"},
        {int16(), "[1, null, -32768]"},
        {uint16(), "[1, null, 65535]"},
        {int32(), "[1, null, -2147483648]"},
        {uint32(), "[1, null, 4294967295]"},
        {int64(), "[1, null, -3, 9007199254740993]"},
        {uint64(), "[1, null, 18446744073709551615]"},
        {int64(), "[1, 2, 3]"}, /* no bitmap */
        {float16(), "[0.5, null, -2]"},
        {float32(), "[0.5, null, -1e30]"},
        {float64(), "[0.5, null, -1e300, 0]"},
        {decimal32(7, 2), R"(["1.00", null, "-22222.22"])"},
        {decimal64(15, 3), R"(["1.000", null, "-222222222222.222"])"},
        {decimal128(38, 2), R"(["1.00", null, "-22.22", "0.01"])"},
        {decimal256(70, 5), R"(["1.00000", null, "-0.00001"])"},
    };
}

std::vector<Column> text_columns()
{
    using namespace arrow;

    return {
        {utf8(), R"(["a", "", null, "wörter", "ccc"])"},
        {large_utf8(), R"([null, "b", "c", ""])"},
        {binary(), R"(["x", null, "yy", ""])"},
        {large_binary(), R"(["", "x", null, "yy"])"},
        {utf8_view(), R"(["short", ")" LONG_TEXT R"(", null, ""])"},
        {binary_view(), R"([")" LONG_TEXT R"(", null, "short"])"},
        {fixed_size_binary(3), R"(["abc", null, "def", "ghi"])"},
        {fixed_size_binary(0), R"(["", null, ""])"},
    };
}

std::vector<Column> time_columns()
{
    using namespace arrow;

    return {
        {date32(), "[0, null, -719162]"},
        {date64(), "[86400000, null, 0]"},
        {time32(TimeUnit::SECOND), "[1, null, 86399]"},
        {time32(TimeUnit::MILLI), "[1, null, 86399999]"},
        {time64(TimeUnit::MICRO), "[1, null]"},
        {time64(TimeUnit::NANO), "[1, null]"},
        {timestamp(TimeUnit::SECOND), "[0, 1, null, -1]"},
        {timestamp(TimeUnit::MILLI, "UTC"), "[0, 1, null, -1]"},
        {timestamp(TimeUnit::MICRO, "Europe/Berlin"), "[0, 1, null]"},
        {timestamp(TimeUnit::NANO, "-05:30"), "[0, 1, null]"},
        {duration(TimeUnit::SECOND), "[0, null, -1]"},
        {duration(TimeUnit::NANO), "[0, null, -1]"},
        {month_interval(), "[0, null, -1]"},
        {day_time_interval(), "[[1, 2], null, [-1, 0]]"},
        {month_day_nano_interval(), "[[1, 2, 3], null, [-1, 0, 9]]"},
    };
}

std::vector<Column> odd_columns()
{
    using namespace arrow;
    const FieldVector fields = {field("i", int32()), field("s", utf8())};

    return {
        {null(), "[null, null]"},
        {dense_union(fields, {4, 5}), R"([[4, 1], [5, "two"], [4, null]])"},
        {sparse_union(fields, {4, 5}), R"([[4, 1], [5, "two"], [4, null]])"},
        {dictionary(int8(), utf8()), R"(["a", "b", null, "a"])"},
        {dictionary(uint64(), float64(), true), "[1, null, 2]"},
        {struct_({}), "[{}, null, {}]"},
    };
}

ArrayPtr array_of(const TypePtr &type, const char *values)
{
    return value_of(arrow::json::ArrayFromJSONString(type, values));
}

/* Concatenates slices of `small` up to GROWN rows. */
ArrayPtr grown(const ArrayPtr &small)
{
    ArrayVector pieces;
    int64_t rows = 0;

    for (int64_t i = 0; rows < GROWN; i++) {
        const int64_t at = i % small->length();

        pieces.push_back(small->Slice(at, GROWN - rows));
        rows += pieces.back()->length();
    }
    return value_of(arrow::Concatenate(pieces));
}

ArrayPtr extension_of(const TypePtr &type)
{
    const auto &storage =
        dynamic_cast<const arrow::ExtensionType &>(*type).storage_type();
    const char *values = storage->id() == arrow::Type::INT8
                             ? "[1, null, 0]"
                             : R"(["0123456789abcdef", null])";

    if (type->Equals(*rgb()))
        values = R"(["rgb", null, "bgr"])";
    return arrow::ExtensionType::WrapArray(type,
                                           grown(array_of(storage, values)));
}

/* ---- nested columns ----------------------------------------------------- */

/* Every third row is null, every fourth is empty. */
std::string list_ends(bool sizes)
{
    std::string text = "[";
    int64_t at = 0;

    for (int64_t row = 0; row < ROWS; row++) {
        const int64_t size = row % 4 == 0 ? 0 : 3;

        text += row > 0 ? ", " : "";
        text += row % 3 == 2 ? "null" : std::to_string(sizes ? size : at);
        at += size;
    }
    return text + (sizes ? "]" : ", " + std::to_string(at) + "]");
}

/* `count` numbers: first, first + step... */
ArrayPtr series(const TypePtr &type, int64_t count, int64_t first, int64_t step)
{
    std::string text = "[" + std::to_string(first);

    for (int64_t i = 1; i < count; i++)
        text += ", " + std::to_string(first + i * step);
    return array_of(type, (text + "]").c_str());
}

/* The views are in reverse order and overlap. */
ArrayVector lists_of(const ArrayPtr &inner)
{
    using namespace arrow;
    const std::string ends = list_ends(false), sizes = list_ends(true);
    const auto ends32 = array_of(int32(), ends.c_str()),
               ends64 = array_of(int64(), ends.c_str());

    return {
        value_of(ListArray::FromArrays(*ends32, *inner)),
        value_of(LargeListArray::FromArrays(*ends64, *inner)),
        value_of(ListViewArray::FromArrays(*series(int32(), ROWS, 2 * ROWS, -2),
                                           *array_of(int32(), sizes.c_str()),
                                           *inner)),
        value_of(LargeListViewArray::FromArrays(
            *series(int64(), ROWS, 2 * ROWS, -2),
            *array_of(int64(), sizes.c_str()), *inner)),
        value_of(FixedSizeListArray::FromArrays(inner->Slice(0, 3 * ROWS), 3)),
        value_of(MapArray::FromArrays(
            ends32, grown(array_of(utf8(), R"(["k", "l", ""])")), inner)),
    };
}

ArrayVector unions_of(const ArrayPtr &inner)
{
    using namespace arrow;
    const auto other = grown(array_of(utf8(), R"(["u", null])"));
    const auto ids = grown(array_of(int8(), "[0, 1, 1]"));

    return {
        value_of(SparseUnionArray::Make(*ids, {inner, other})),
        value_of(DenseUnionArray::Make(*ids, *series(int32(), GROWN, 0, 1),
                                       {inner, other})),
    };
}

/* Cuts rows [13, 33) out of an array of GROWN rows. */
ArrayPtr cut(const ArrayPtr &array)
{
    return array->length() > ROWS ? array->Slice(13, ROWS) : array;
}

/* `inner` has GROWN rows, and so have most of the results. */
ArrayVector nests_of(const ArrayPtr &inner)
{
    using namespace arrow;
    ArrayVector nests = lists_of(inner);
    const ArrayVector unions = unions_of(inner);
    const auto ends = series(int32(), GROWN, 2, 2);
    const auto places = grown(array_of(int16(), "[3, null, 59, 0]"));

    nests.insert(nests.end(), unions.begin(), unions.end());
    nests.push_back(value_of(
        StructArray::Make({inner, inner},
                          {field("a", inner->type()),
                           field("b", inner->type(), true,
                                 key_value_metadata({"of"}, {"a child"}))},
                          places->null_bitmap())));
    nests.push_back(value_of(DictionaryArray::FromArrays(places, inner)));
    if (inner->type_id() != Type::RUN_END_ENCODED)
        nests.push_back(
            value_of(RunEndEncodedArray::Make(2 * GROWN, ends, inner)));
    return nests;
}

void append(ArrayVector *to, const ArrayVector &more)
{
    to->insert(to->end(), more.begin(), more.end());
}

} // namespace

/* ---- columns ------------------------------------------------------------ */

ArrayVector flat_columns()
{
    ArrayVector columns;

    for (const auto &some :
         {numeric_columns(), text_columns(), time_columns(), odd_columns()})
        for (const Column &column : some)
            columns.push_back(grown(array_of(column.type, column.values)));
    for (const TypePtr &type :
         {rgb(), arrow::extension::uuid(), arrow::extension::bool8()})
        columns.push_back(extension_of(type));
    return columns;
}

ArrayVector all_columns()
{
    const ArrayVector flat = flat_columns();
    ArrayVector columns = flat;

    for (const ArrayPtr &inner : flat)
        append(&columns, nests_of(inner));
    for (const ArrayPtr &nest :
         nests_of(grown(array_of(arrow::utf8(), R"(["x", null])"))))
        append(&columns, nests_of(grown(nest)));
    return columns;
}

/* ---- batches ------------------------------------------------------------ */

Batch batch_of(const ArrayVector &columns)
{
    const std::string nul("a\0b", 3);
    arrow::FieldVector fields;
    ArrayVector rows;

    for (const ArrayPtr &column : columns) {
        const std::string number = std::to_string(fields.size());

        rows.push_back(cut(column));
        fields.push_back(arrow::field(
            number, column->type(), true,
            arrow::key_value_metadata({"number", nul}, {number, nul})));
    }
    return arrow::RecordBatch::Make(
        arrow::schema(fields, arrow::key_value_metadata({"key", "", nul},
                                                        {"wört", "", nul})),
        ROWS, rows);
}

/* Returns the columns of `batch` with nulls only; without columns that contain
 * runs, because Arrow makes invalid nulls of them. */
Batch nulls_like(const Batch &batch, int64_t rows)
{
    ArrayVector columns;

    for (const ArrayPtr &column : batch->columns()) {
        const size_t runs = column->type()->ToString().find("run_end_encoded");
        const bool has_runs = runs != std::string::npos && runs > 0;

        columns.push_back(
            has_runs ? column->Slice(0, rows)
                     : value_of(arrow::MakeArrayOfNull(column->type(), rows)));
    }
    return arrow::RecordBatch::Make(batch->schema(), rows, columns);
}

/* Leaves out slices without rows: Arrow then considers its own views too
 * short. */
const Batches &every_type()
{
    static const Batch whole = batch_of(all_columns());
    static const Batches batches = {
        whole,
        nulls_like(whole, 0),
        whole->Slice(1, 1),
        whole->Slice(7),
        nulls_like(whole, 9),
        whole->Slice(3, 11)->Slice(2, 5),
        nulls_like(whole, 0),
        whole->Slice(0, 8),
    };

    return batches;
}

Batches numbers(int count)
{
    Batches all;

    for (int i = 0; i < count; i++) {
        const auto column = series(arrow::int64(), 1 + i % 3, i, 1000);

        all.push_back(arrow::RecordBatch::Make(
            arrow::schema({arrow::field("n", arrow::int64())}),
            column->length(), {column}));
    }
    return all;
}

Batches no_columns()
{
    const auto schema = arrow::schema({});

    return {arrow::RecordBatch::Make(schema, 5, ArrayVector{}),
            arrow::RecordBatch::Make(schema, 0, ArrayVector{})};
}

/* ---- equality ----------------------------------------------------------- */

namespace
{

/* Reports the first column that is not equal. */
void check_same(const arrow::RecordBatch &sent, const arrow::RecordBatch &got)
{
    ck_assert_arrow(got.ValidateFull());
    ck_assert_msg(sent.schema()->Equals(*got.schema(), true), "%s\n%s",
                  sent.schema()->ToString(true).c_str(),
                  got.schema()->ToString(true).c_str());
    if (sent.Equals(got, true))
        return;
    for (int i = 0; i < sent.num_columns(); i++)
        ck_assert_msg(sent.column(i)->Equals(*got.column(i)), "%s:\n%s\n%s",
                      sent.column(i)->type()->ToString().c_str(),
                      sent.column(i)->ToString().c_str(),
                      got.column(i)->ToString().c_str());
    ck_abort_msg("the batches are not equal");
}

} // namespace

void check_begins(const Batches &sent, const Batches &got)
{
    ck_assert_uint_ge(sent.size(), got.size());
    for (size_t i = 0; i < got.size(); i++)
        check_same(*sent[i], *got[i]);
}

void check_equal(const Batches &sent, const Batches &got)
{
    ck_assert_uint_eq(sent.size(), got.size());
    check_begins(sent, got);
}

} // namespace interop
