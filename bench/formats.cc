/* SPDX-License-Identifier: Apache-2.0 */
/* Batches as text, and out of a file of Arrow IPC, beside Arrow C++ at the same
 * work. A batch is like the demo's: 14 columns of integers and 5 of short
 * texts, with some nulls. Texts are written to nowhere; input and output are in
 * the cache of the machine, not on a disk. */
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/csv/writer.h>
#include <arrow/io/api.h>
#include <arrow/ipc/api.h>
#include <unistd.h>

#include <cstdio>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "host.h"
#include "uvarrow/arrow.h"
#include "uvarrow/io.h"

namespace
{

using Batch = std::shared_ptr<arrow::RecordBatch>;

enum { ROWS = 1024, NUMBERS = 14, TEXTS = 5 };

void check(const arrow::Status &status)
{
    bench_check(status.ok(), status.ToString().c_str());
}

template <typename Builder, typename Value>
std::shared_ptr<arrow::Array> column(Value value)
{
    Builder builder;

    for (int i = 0; i < ROWS; i++)
        check(i % 50 == 0 ? builder.AppendNull() : builder.Append(value(i)));
    return builder.Finish().ValueOrDie();
}

Batch make_batch()
{
    const int most[] = {2014, 13, 32, 2400, 2400, 100, 10000};
    const char *const texts[] = {"UA", "N14228", "EWR", "IAH",
                                 "2013-01-01T10:00:00Z"};
    std::vector<std::shared_ptr<arrow::Field>> fields;
    std::vector<std::shared_ptr<arrow::Array>> columns;

    for (int i = 0; i < NUMBERS; i++) {
        fields.push_back(
            arrow::field("number_" + std::to_string(i), arrow::int64()));
        columns.push_back(column<arrow::Int64Builder>([&](int row) {
            return row * 7919 % most[i % std::size(most)] - i % 2 * 20;
        }));
    }
    for (int i = 0; i < TEXTS; i++) {
        fields.push_back(
            arrow::field("text_" + std::to_string(i), arrow::utf8()));
        columns.push_back(
            column<arrow::StringBuilder>([&](int) { return texts[i]; }));
    }
    return arrow::RecordBatch::Make(arrow::schema(fields), ROWS, columns);
}

const Batch &batch()
{
    static const Batch made = make_batch();

    return made;
}

/* ---- text --------------------------------------------------------------- */

/* Batches that are encoded by one call. */
constexpr int64_t AT_ONCE = 16;

/* `window` is an enum uva_format. */
double run_encoder(const bench_case *self, const bench_how *how)
{
    ArrowSchema schema{};
    uva_encode options{};
    uva_part part{};
    double begun;

    check(arrow::ExportSchema(*batch()->schema(), &schema));
    options.format = static_cast<uva_format>(self->window);
    begun = bench_now_ns(how);
    for (int64_t i = 0; i < how->batches;) {
        ArrowDeviceArray arrays[AT_ONCE]{};
        int64_t n = 0;

        for (; n < AT_ONCE && i < how->batches; n++, i++) {
            ArrowArray cpu{};

            check(arrow::ExportRecordBatch(*batch(), &cpu));
            uva_array_from_cpu(&cpu, &arrays[n]);
        }
        bench_check(uva_array_encode(&schema, arrays, static_cast<size_t>(n),
                                     &options, &part, nullptr) == 0 &&
                        part.bytes > 80000 * n,
                    "batches");
        uva_part_release(&part);
    }
    begun = bench_now_ns(how) - begun;
    uva_schema_release(&schema);
    return begun;
}

double run_arrow_csv(const bench_case *, const bench_how *how)
{
    arrow::io::MockOutputStream sink;
    auto writer =
        arrow::csv::MakeCSVWriter(&sink, batch()->schema()).ValueOrDie();
    double begun = bench_now_ns(how);

    for (int64_t i = 0; i < how->batches; i++)
        check(writer->WriteRecordBatch(*batch()));
    begun = bench_now_ns(how) - begun;
    check(writer->Close());
    bench_check(sink.GetExtentBytesWritten() > 80000 * how->batches, "bytes");
    return begun;
}

/* ---- reading ------------------------------------------------------------ */

/* A stream of that many batches in a file without a name. Its descriptor is
 * the caller's. */
int make_file(int64_t count)
{
    FILE *file = std::tmpfile();
    int fd;

    bench_check(file != nullptr, "file");
    fd = dup(fileno(file));
    (void)std::fclose(file);
    auto sink = arrow::io::FileOutputStream::Open(dup(fd)).ValueOrDie();
    auto writer =
        arrow::ipc::MakeStreamWriter(sink, batch()->schema()).ValueOrDie();
    for (int64_t i = 0; i < count; i++)
        check(writer->WriteRecordBatch(*batch()));
    check(writer->Close());
    check(sink->Close());
    bench_check(lseek(fd, 0, SEEK_SET) == 0, "seek");
    return fd;
}

struct reader {
    struct host host;
    int64_t batches;
};

int on_batch(void *ctx, uva_batch *read)
{
    auto *reader = static_cast<struct reader *>(ctx);

    bench_check(read->data.array.length == ROWS, "rows");
    reader->batches++;
    return 0;
}

void on_done(void *ctx, const uva_outcome *outcome)
{
    host_on_done(&static_cast<struct reader *>(ctx)->host, outcome);
}

double run_stream_from_file(const bench_case *, const bench_how *how)
{
    const int fd = make_file(how->batches);
    struct reader reader {
    };
    uva_ipc_source source{};
    uva_consumer consumer{};
    double begun;

    source.fd = fd;
    host_open(&reader.host, how, 0);
    consumer.on_batch = on_batch;
    consumer.on_done = on_done;
    consumer.ctx = &reader;
    begun = bench_now_ns(how);
    auto *stream = uva_stream_from_file(reader.host.runtime, nullptr, &source);
    bench_check(uva_stream_for_each(stream, &consumer, nullptr) == 0, "start");
    reader.host.open++;
    uva_stream_release(stream);
    begun = host_run(&reader.host) - begun;
    host_close(&reader.host);
    (void)close(fd);
    bench_check(reader.batches == how->batches, "batches");
    return begun;
}

double run_arrow_reader(const bench_case *, const bench_how *how)
{
    const int fd = make_file(how->batches);
    double begun = bench_now_ns(how);
    auto file = arrow::io::ReadableFile::Open(fd).ValueOrDie();
    auto reader = arrow::ipc::RecordBatchStreamReader::Open(file).ValueOrDie();
    int64_t seen = 0;
    Batch read;

    for (check(reader->ReadNext(&read)); read != nullptr;
         check(reader->ReadNext(&read)), seen++)
        bench_check(read->num_rows() == ROWS, "rows");
    begun = bench_now_ns(how) - begun;
    check(file->Close());
    bench_check(seen == how->batches, "batches");
    return begun;
}

const bench_case cases[] = {
    {"formats/csv/uvarrow", 1000, run_encoder, UVA_FORMAT_CSV, 0, 0},
    {"formats/csv/arrow", 1000, run_arrow_csv, 0, 0, 0},
    {"formats/json/uvarrow", 1000, run_encoder, UVA_FORMAT_JSON, 0, 0},
    {"formats/read/uvarrow", 2000, run_stream_from_file, 0, 0, 0},
    {"formats/read/arrow", 2000, run_arrow_reader, 0, 0, 0},
};

} // namespace

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, std::size(cases));
}
