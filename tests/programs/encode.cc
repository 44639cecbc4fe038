// SPDX-License-Identifier: Apache-2.0
// The classes of uvarrow.hpp for output and input: a batch as JSON lines, a
// stream as the parts of Arrow IPC, one that is written to a file as CSV, and
// streams that read Arrow IPC again, from a file and from a socket.
#include "uvarrow/uvarrow.hpp"

#include <cassert>
#include <cstdio>
#include <cstring>
#include <string>
#include <sys/socket.h>
#include <uv.h>

#include "support/world.h"

static uva::arrow_stream rows()
{
    uva::arrow_stream made;
    const int code = db_scan("flights.db", made.out());

    assert(code == 0);
    return made;
}

static std::string text_of(const uva::part &part)
{
    std::string text;

    for (size_t i = 0; i < part->count; i++)
        text.append(part->buffers[i].base, part->buffers[i].len);
    assert(static_cast<int64_t>(text.size()) == part->bytes);
    return text;
}

// Encodes the first batch, as a part that owns it.
static uva::part first_batch()
{
    uva::arrow_stream source = rows();
    uva::part part;
    uva::schema of;
    uva::cpu_array from;
    uva::array batch;
    uva_error error{};
    uva_encode options{};
    int code = source->get_schema(source.get(), of.out());

    assert(code == 0);
    code = source->get_next(source.get(), from.out());
    assert(code == 0 && from);
    uva_array_from_cpu(from.get(), batch.out());
    options.format = UVA_FORMAT_JSON;
    code = uva_array_encode(of.get(), batch.get(), 1, &options, part.out(),
                            &error);
    assert(code == 0 && !batch); // taken
    return part;
}

// Encodes a stream, and returns the bytes of its parts.
static int64_t encode_all()
{
    uva::arrow_stream source = rows();
    uva::runtime rt;
    int64_t bytes = 0, rows_seen = 0;
    bool complete = false;
    int code = rt.open(uv_default_loop());

    assert(code == 0);
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), source.get());
    s.encode();
    code = s.for_each(
        [&](uva_batch &batch) {
            uva::part part;
            const int taken = part.take(batch);

            if (taken == 0) {
                bytes += part->bytes;
                rows_seen += part->rows;
            }
            return taken;
        },
        [&](const uva_outcome &outcome) {
            complete = outcome.end == UVA_END_COMPLETE;
        });
    assert(code == 0);
    s.release();
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    assert(complete && rows_seen == DB_BATCHES * DB_ROWS);
    return bytes;
}

static void encode()
{
    uva::part part = first_batch(), other;
    const std::string text = text_of(part);
    size_t lines = 0;

    for (const char c : text)
        lines += c == '\n';
    assert(lines == DB_ROWS && text.compare(0, 2, "{\"") == 0);
    other = std::move(part);
    assert(text_of(other) == text && part->bytes == 0);
    assert(encode_all() > DB_BATCHES * DB_ROWS * 8);
}

static void on_done(void *ctx, const uva_outcome *outcome, int64_t bytes)
{
    assert(outcome->end == UVA_END_COMPLETE);
    *static_cast<int64_t *>(ctx) = bytes;
}

static void write_all()
{
    std::FILE *file = std::tmpfile();
    uva::arrow_stream source = rows();
    uva::runtime rt;
    int64_t bytes = 0;
    uva_error error{};
    uva_write options{};

    assert(file != nullptr);
    options.encode.format = UVA_FORMAT_CSV;
    options.on_done = on_done;
    options.ctx = &bytes;
    int code = rt.open(uv_default_loop(), {}, &error);
    assert(code == 0);
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), source.get());
    code = s.write(nullptr, options, &error);
    assert(code == EINVAL); // no socket
    code = s.write_file(fileno(file), options, &error);
    assert(code == 0);
    s.release(); // a started stream runs to its end
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    assert(bytes > DB_BATCHES * DB_ROWS);
    std::fseek(file, 0, SEEK_END);
    assert(std::ftell(file) == bytes);
    std::fclose(file);
}

// Counts the rows of a stream, and runs the loop until it has ended.
static int64_t count(uva::stream s)
{
    int64_t rows_seen = 0;
    bool complete = false;
    uva_error error{};
    const int code = s.for_each(
        [&](uva_batch &batch) {
            rows_seen += batch.data.array.length;
            return 0;
        },
        [&](const uva_outcome &outcome) {
            complete = outcome.end == UVA_END_COMPLETE;
        },
        &error);

    assert(code == 0);
    s.release();
    while (!complete)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    return rows_seen;
}

static void read_file()
{
    std::FILE *file = std::tmpfile();
    uva::arrow_stream source = rows();
    uva::runtime rt;
    int64_t bytes = 0;
    uva_write options{};

    options.encode.format = UVA_FORMAT_ARROW_FILE;
    options.on_done = on_done;
    options.ctx = &bytes;
    int code = rt.open(uv_default_loop());
    assert(code == 0);
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), source.get());
    code = s.write_file(fileno(file), options);
    assert(code == 0);
    s.release();
    while (bytes == 0)
        uv_run(uv_default_loop(), UV_RUN_ONCE);
    std::rewind(file);
    uva::options<uva_ipc_source> from;
    from.set(&uva_ipc_source::fd, fileno(file));
    assert(count(uva::stream::from_file(rt.get(), nullptr, from)) ==
           DB_BATCHES * DB_ROWS);
    const auto path = "/proc/self/fd/" + std::to_string(fileno(file));
    assert(count(uva::stream::from_file(rt.get(), path.c_str())) ==
           DB_BATCHES * DB_ROWS);
    uva_error error{};
    from.set(&uva_ipc_source::fd, -1);
    s = uva::stream::from_file(rt.get(), nullptr, from);
    code = s.for_each([](uva_batch &) { return 0; }, [](const uva_outcome &) {},
                      &error);
    assert(code == EBADF);
    std::fclose(file);
}

static void on_released(void *ctx, uv_stream_s *socket)
{
    ++*static_cast<int *>(ctx);
    uv_close(reinterpret_cast<uv_handle_t *>(socket), nullptr);
}

static void read_socket()
{
    uva::arrow_stream source = rows();
    uva::runtime rt;
    uv_pipe_t ends[2];
    int pair[2], released = 0;
    int64_t bytes = 0;
    uva_write written{};
    uva_ipc_source read{};

    int code = socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC,
                          0, pair);
    assert(code == 0);
    for (int i = 0; i < 2; i++) {
        uv_pipe_init(uv_default_loop(), &ends[i], 0);
        code = uv_pipe_open(&ends[i], pair[i]);
        assert(code == 0);
    }
    written.on_done = on_done;
    written.ctx = &bytes;
    read.on_released = on_released;
    read.ctx = &released;
    code = rt.open(uv_default_loop());
    assert(code == 0);
    uva::stream s = uva::stream::from_arrow_stream(rt.get(), source.get());
    code = s.write(reinterpret_cast<uv_stream_t *>(&ends[0]), written);
    assert(code == 0);
    s.release();
    assert(count(uva::stream::from_socket(
               rt.get(), reinterpret_cast<uv_stream_t *>(&ends[1]), read)) ==
           DB_BATCHES * DB_ROWS);
    assert(released == 1);
    uv_close(reinterpret_cast<uv_handle_t *>(&ends[0]), nullptr);
    rt.reset();
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    assert(bytes > 0);
}

int main()
{
    encode();
    write_all();
    read_file();
    read_socket();
    uv_run(uv_default_loop(), UV_RUN_DEFAULT);
    return 0;
}
