/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow C++ as a peer, for what pyarrow does not have: streams of devices, and
 * the asynchronous interface in both roles. Python calls these by name. */
#include <arrow/api.h>
#include <arrow/c/bridge.h>
#include <arrow/io/file.h>
#include <arrow/ipc/api.h>
#include <arrow/util/async_generator.h>
#include <arrow/util/thread_pool.h>

#include <cstring>

namespace
{

struct Arrival {
    ArrowAsyncDeviceStreamHandler handler{};
    std::shared_ptr<arrow::internal::ThreadPool> threads =
        *arrow::internal::ThreadPool::MakeEternal(2);
    arrow::Future<arrow::AsyncRecordBatchGenerator> opened;
};

int told(const arrow::Status &status, char *text, int room)
{
    if (status.ok())
        return 0;
    std::strncpy(text, status.ToString().c_str(), room - 1);
    text[room - 1] = 0;
    return 1;
}

arrow::Status send(const char *path, ArrowAsyncDeviceStreamHandler *handler)
{
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::ReadableFile::Open(path));
    ARROW_ASSIGN_OR_RAISE(auto reader,
                          arrow::ipc::RecordBatchStreamReader::Open(file));
    ARROW_ASSIGN_OR_RAISE(auto batches, reader->ToRecordBatches());

    (void)arrow::ExportAsyncRecordBatchReader(
        reader->schema(), arrow::MakeVectorGenerator(std::move(batches)),
        arrow::DeviceAllocationType::kCPU, handler);
    return arrow::Status::OK();
}

arrow::Status store(Arrival &arrival, const char *path)
{
    ARROW_ASSIGN_OR_RAISE(auto from, arrival.opened.result());
    ARROW_ASSIGN_OR_RAISE(auto file, arrow::io::FileOutputStream::Open(path));
    ARROW_ASSIGN_OR_RAISE(auto writer,
                          arrow::ipc::MakeStreamWriter(file, from.schema));

    for (;;) {
        const auto next = from.generator(); /* has the result */

        ARROW_ASSIGN_OR_RAISE(const auto got, next.result());
        if (!got.batch)
            return writer->Close();
        ARROW_RETURN_NOT_OK(writer->WriteRecordBatch(*got.batch));
    }
}

arrow::Status pass(ArrowDeviceArrayStream *in, ArrowDeviceArrayStream *out)
{
    ARROW_ASSIGN_OR_RAISE(auto reader,
                          arrow::ImportDeviceRecordBatchReader(in));
    return arrow::ExportDeviceRecordBatchReader(reader, out);
}

} // namespace

extern "C" {

/* Sends the batches of a file to a handler, as a foreign producer. */
int peer_start(const char *path, ArrowAsyncDeviceStreamHandler *handler, void *)
{
    return send(path, handler).ok() ? 0 : 5;
}

/* Makes a handler, which lives as long as the process, as Arrow does not say
 * when it may be freed. */
ArrowAsyncDeviceStreamHandler *peer_handler(uint64_t queue)
{
    auto *arrival = new Arrival;

    arrival->opened = arrow::CreateAsyncDeviceStreamHandler(
        &arrival->handler, arrival->threads.get(), queue);
    return &arrival->handler;
}

/* Writes what arrives at a handler to a file. */
int peer_arrived(ArrowAsyncDeviceStreamHandler *handler, int64_t,
                 const char *path, char *text, int room)
{
    return told(store(*reinterpret_cast<Arrival *>(handler), path), text, room);
}

/* Takes a stream of a device, and gives its batches as another one. */
int peer_pass_device(ArrowDeviceArrayStream *in, ArrowDeviceArrayStream *out,
                     char *text, int room)
{
    return told(pass(in, out), text, room);
}
}
