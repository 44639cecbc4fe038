/* SPDX-License-Identifier: Apache-2.0 */
/* Record batches with a column of every type that Arrow C++ has, flat and
 * nested, and checks by Arrow whether two of them are equal. */
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

/* Returns the value, or fails the test. */
template <typename T> T value_of(arrow::Result<T> result)
{
    ck_assert_arrow(result.status());
    return std::move(result).ValueUnsafe();
}

/* One column of each flat type. */
arrow::ArrayVector flat_columns();

/* Those columns, and each of them in every kind of list, map, struct, union,
 * dictionary and run; and some of these nested again. */
arrow::ArrayVector all_columns();

/* Adds metadata to the batch and to its fields, with NULs in it. */
Batch batch_of(const arrow::ArrayVector &columns);

/* Batches with all columns: whole, in slices, without rows, and with nulls
 * only. Made by the first call. */
const Batches &every_type();

/* `count` batches in which a number identifies the rows: for tests of the
 * stream rather than of its data. */
Batches numbers(int count);

/* Batches with rows but no columns. */
Batches no_columns();

/* Checks that everything sent has arrived, and is equal. */
void check_equal(const Batches &sent, const Batches &got);

/* Checks that the batches that have arrived are equal to the beginning of the
 * sent ones. */
void check_begins(const Batches &sent, const Batches &got);

} // namespace interop

#endif
