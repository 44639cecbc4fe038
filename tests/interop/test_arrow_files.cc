/* SPDX-License-Identifier: Apache-2.0 */
/* Files that Arrow reads and writes, with a stream in between: the first
 * flights of a year, from CSV and Parquet, to CSV and Parquet. Faults of a file
 * are reported with Arrow's text. */
#include <arrow/compute/initialize.h>
#include <arrow/csv/api.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <parquet/arrow/reader.h>
#include <parquet/arrow/writer.h>

#include <cerrno>
#include <cstring>
#include <thread>

#include "arrow_peer.hpp"

namespace
{

using namespace interop;
using Reader = std::shared_ptr<arrow::RecordBatchReader>;

constexpr int TOS = static_cast<int>(To::END);
constexpr int64_t FLIGHTS = 60000;
/* made by make_flights.py, with the same rows */
const char CSV[] = UVA_TEST_FOLDER "flights.csv";
const char PARQUET[] = UVA_TEST_FOLDER "flights.parquet";

/* ---- Arrow's own readers ------------------------------------------------ */

Reader csv_reader(std::shared_ptr<arrow::io::InputStream> from)
{
    return value_of(arrow::csv::StreamingReader::Make(
        arrow::io::default_io_context(), std::move(from),
        arrow::csv::ReadOptions::Defaults(),
        arrow::csv::ParseOptions::Defaults(),
        arrow::csv::ConvertOptions::Defaults()));
}

Reader read_csv()
{
    return csv_reader(value_of(arrow::io::ReadableFile::Open(CSV)));
}

/* A reader that owns the file it reads. */
class ParquetReader : public arrow::RecordBatchReader
{
  public:
    explicit ParquetReader(std::shared_ptr<arrow::io::RandomAccessFile> from)
    {
        parquet::arrow::FileReaderBuilder builder;
        parquet::ArrowReaderProperties how;

        how.set_batch_size(4000);
        ck_assert_arrow(builder.Open(std::move(from)));
        file_ = value_of(builder.properties(how)->Build());
        reader_ = value_of(file_->GetRecordBatchReader());
    }

    std::shared_ptr<arrow::Schema> schema() const override
    {
        return reader_->schema();
    }

    arrow::Status ReadNext(Batch *out) override
    {
        return reader_->ReadNext(out);
    }

  private:
    std::unique_ptr<parquet::arrow::FileReader> file_;
    std::unique_ptr<arrow::RecordBatchReader> reader_;
};

Reader read_parquet()
{
    return std::make_shared<ParquetReader>(
        value_of(arrow::io::ReadableFile::Open(PARQUET)));
}

/* ---- Arrow's own writers ------------------------------------------------ */

void write_parquet(const Reader &from, const char *path)
{
    auto to = value_of(arrow::io::FileOutputStream::Open(path));
    auto writer = value_of(parquet::arrow::FileWriter::Open(
        *from->schema(), arrow::default_memory_pool(), to));

    for (;;) {
        const Batch batch = value_of(from->Next());

        if (!batch)
            break;
        ck_assert_arrow(writer->WriteRecordBatch(*batch));
    }
    ck_assert_arrow(writer->Close());
    ck_assert_arrow(to->Close());
}

std::shared_ptr<arrow::Buffer> csv_of(const Reader &from)
{
    auto to = value_of(arrow::io::BufferOutputStream::Create());

    ck_assert_arrow(arrow::csv::WriteCSV(
        from, arrow::csv::WriteOptions::Defaults(), to.get()));
    return value_of(to->Finish());
}

/* ---- reading ------------------------------------------------------------ */

void check_rows(const std::shared_ptr<arrow::Table> &sent, const Delivery &got)
{
    const auto table =
        value_of(arrow::Table::FromRecordBatches(got.schema, got.batches));

    ck_assert_arrow(got.status);
    ck_assert_int_eq(sent->num_rows(), FLIGHTS);
    ck_assert_arrow(table->ValidateFull());
    ck_assert(sent->Equals(*table));
}

/* Returns the way in; each is tried with each way out. */
From from_of(int i)
{
    static const From FROMS[] = {From::READER, From::DEVICE_READER,
                                 From::QUICK_READER, From::READY, From::POOLED};

    return FROMS[i % 5];
}

Delivery streamed(int i, Reader reader)
{
    Feed feed{};
    World world;

    feed.reader = std::move(reader);
    return carry(world, stream_from(world, from_of(i), feed),
                 static_cast<To>(i % TOS));
}

START_TEST(flights_from_csv_arrive)
{
    check_rows(value_of(read_csv()->ToTable()), streamed(_i, read_csv()));
}
END_TEST

START_TEST(flights_from_parquet_arrive)
{
    check_rows(value_of(read_parquet()->ToTable()),
               streamed(_i + 2 * (_i % 5), read_parquet()));
}
END_TEST

/* ---- writing ------------------------------------------------------------ */

/* Runs `write` at the end of a stream, on a thread, until it is done. */
void write_streamed(Reader reader,
                    const std::function<void(const Reader &)> &write)
{
    Feed feed{};
    World world;
    std::atomic<bool> over = false;

    feed.reader = std::move(reader);
    uva_stream *stream = stream_from(world, From::READER, feed);
    feed = {};
    std::thread writer([&] {
        write(reader_on(stream));
        over = true;
        world.wake();
    });
    world.until([&over] { return over.load(); });
    writer.join();
}

START_TEST(a_stream_is_written_to_parquet)
{
    const char path[] = UVA_TEST_FOLDER "streamed.parquet";

    write_streamed(read_csv(), [&path](const Reader &reader) {
        write_parquet(reader, path);
    });

    const auto sent = value_of(read_parquet()->ToTable());
    ParquetReader written(value_of(arrow::io::ReadableFile::Open(path)));
    ck_assert(value_of(written.ToTable())->Equals(*sent));
}
END_TEST

START_TEST(a_stream_is_written_to_csv)
{
    std::shared_ptr<arrow::Buffer> written;

    write_streamed(read_parquet(), [&written](const Reader &reader) {
        written = csv_of(reader);
    });

    ck_assert(written->Equals(*csv_of(read_parquet())));
}
END_TEST

/* ---- stopped early ------------------------------------------------------ */

START_TEST(a_file_is_let_go_of_in_the_midst)
{
    for (const auto &read : {read_csv, read_parquet})
        for (size_t at = 1; at < 4; at++) {
            Feed feed{};
            World world;

            feed.reader = read();
            uva_stream *stream = stream_from(world, from_of(_i), feed);
            feed = {};
            const Delivery got =
                carry(world, stream, To::EACH, {Stop::CANCEL, at});

            ck_assert_uint_eq(got.batches.size(), at);
            ck_assert_int_eq(got.ending.end, UVA_END_CANCELLED);
        }
}
END_TEST

/* ---- faults of a file --------------------------------------------------- */

std::shared_ptr<arrow::Buffer> bytes_of(const char *path)
{
    auto file = value_of(arrow::io::ReadableFile::Open(path));
    auto bytes = value_of(arrow::AllocateBuffer(value_of(file->GetSize())));

    ck_assert_int_eq(value_of(file->Read(bytes->size(), bytes->mutable_data())),
                     bytes->size());
    return bytes;
}

/* Returns the error text of a failing reader of Arrow without a stream, and the
 * number of rows before it. */
std::string fault_of(const Reader &reader, int64_t *rows)
{
    for (*rows = 0;;) {
        const auto batch = reader->Next();

        if (!batch.ok())
            return batch.status().ToString();
        ck_assert_msg(*batch != nullptr, "nothing is wrong");
        *rows += (*batch)->num_rows();
    }
}

void check_fault(const std::function<Reader()> &read)
{
    int64_t expected, rows = 0;
    const std::string text = fault_of(read(), &expected);
    Feed feed{};
    World world;

    feed.reader = read();
    uva_stream *stream = stream_from(world, From::READER, feed);
    feed = {};
    const Delivery got = carry(world, stream, To::EACH);

    for (const Batch &batch : got.batches)
        rows += batch->num_rows();
    ck_assert_int_eq(rows, expected);
    ck_assert_int_eq(got.ending.end, UVA_END_FAILED);
    check_text(got.ending.message, "arrow_stream: " + text);
}

START_TEST(a_line_that_is_none_fails_behind_the_rows_before_it)
{
    std::string text = bytes_of(CSV)->ToString();

    text.insert(text.find('\n', text.size() / 2) + 1, "too,few\n");
    const auto bytes = arrow::Buffer::FromString(std::move(text));
    check_fault([&bytes] {
        return csv_reader(std::make_shared<arrow::io::BufferReader>(bytes));
    });
}
END_TEST

START_TEST(a_spoiled_page_fails_in_the_words_of_parquet)
{
    std::string text = bytes_of(PARQUET)->ToString();

    std::memset(text.data() + text.size() / 2, 0xff, text.size() / 4);
    const auto bytes = arrow::Buffer::FromString(std::move(text));
    check_fault([&bytes] {
        return std::make_shared<ParquetReader>(
            std::make_shared<arrow::io::BufferReader>(bytes));
    });
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_files");
    TCase *tcase = new_case(suite, "arrow_files");

    if (!arrow::compute::Initialize().ok())
        return EXIT_FAILURE;
    tcase_add_loop_test(tcase, flights_from_csv_arrive, 0, 5);
    tcase_add_loop_test(tcase, flights_from_parquet_arrive, 0, 5);
    tcase_add_test(tcase, a_stream_is_written_to_parquet);
    tcase_add_test(tcase, a_stream_is_written_to_csv);
    tcase_add_loop_test(tcase, a_file_is_let_go_of_in_the_midst, 0, 5);
    tcase_add_test(tcase, a_line_that_is_none_fails_behind_the_rows_before_it);
    tcase_add_test(tcase, a_spoiled_page_fails_in_the_words_of_parquet);
    return run_suite(suite);
}
