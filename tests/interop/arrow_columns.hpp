/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches with a column of every type that Arrow C++ has, flat and one
 * inside the other, and the say of Arrow whether two of them are equal. */
#ifndef INTEROP_ARROW_COLUMNS_HPP
#define INTEROP_ARROW_COLUMNS_HPP

#include <arrow/api.h>
#include <check.h>

#include <memory>
#include <string>
#include <vector>

#define ck_assert_arrow(status)                                                \
    do {                                                                       \
        const arrow::Status status_ = (status);                                \
        ck_assert_msg(status_.ok(), "%s", status_.ToString().c_str());         \
    } while (0)

namespace interop
{

inline void check_text(const std::string &got, const std::string &expected)
{
    ck_assert_msg(got == expected, "'%s' is not '%s'", got.c_str(),
                  expected.c_str());
}

using Batch = std::shared_ptr<arrow::RecordBatch>;
using Batches = std::vector<Batch>;

/* The value, or the end of the test. */
template <typename T> T value_of(arrow::Result<T> result)
{
    ck_assert_arrow(result.status());
    return std::move(result).ValueUnsafe();
}

/* One column of each type, alone. */
arrow::ArrayVector flat_columns();

/* Those, and each of them in every kind of list, map, struct, union,
 * dictionary and run; and some of these in each other again. */
arrow::ArrayVector all_columns();

/* With metadata of its own and of its fields, NULs in it. */
Batch batch_of(const arrow::ArrayVector &columns);

/* All columns: whole, in slices, without a row, and with nothing but nulls.
 * Made by the first call. */
const Batches &every_type();

/* The same number of batches, in which a number tells the rows apart: for what
 * is about the stream and not about its data. */
Batches numbers(int count);

/* Rows without a column. */
Batches no_columns();

/* What arrived is what was sent, and all of it. */
void check_equal(const Batches &sent, const Batches &got);

/* What arrived is what was sent, as far as it goes. */
void check_begins(const Batches &sent, const Batches &got);

} // namespace interop

#endif
