/* SPDX-License-Identifier: Apache-2.0 */
/* Errors pass in both directions: uvarrow reports errors of Arrow, and Arrow
 * reports errors of uvarrow, with the same text, and with the same code if
 * Arrow keeps one. Earlier batches arrive. */
#include <arrow/c/bridge.h>

#include <cerrno>
#include <cstring>
#include <iterator>
#include <string>

#include "arrow_peer.hpp"

namespace
{

using namespace interop;

constexpr int FROMS = static_cast<int>(From::END) - 1; /* ARRAYS cannot fail */
constexpr int TOS = static_cast<int>(To::END);
constexpr int ROUTES = FROMS * TOS;

From from_of(int route)
{
    return static_cast<From>(1 + route / TOS);
}

To to_of(int route)
{
    return static_cast<To>(route % TOS);
}

bool is_async(From from)
{
    return from == From::READY || from == From::POOLED;
}

bool is_driven(To to)
{
    return to == To::DRIVE || to == To::DRIVE_ON_WORKER;
}

/* ---- from Arrow --------------------------------------------------------- */

/* A kind of error, and its remains: Arrow's asynchronous exporter turns all
 * into EINVAL, its readers know a few codes and add the name. */
struct Kind {
    arrow::Status status;
    int code;
    const char *text;
    const char *reader_text;
};

const Kind KINDS[] = {
    {arrow::Status::IOError("the disk is full"), EIO, "the disk is full",
     "IOError: the disk is full"},
    {arrow::Status::Invalid("no such thing"), EINVAL, "no such thing",
     "Invalid: no such thing"},
    {arrow::Status::OutOfMemory("none left"), ENOMEM, "none left",
     "Out of memory: none left"},
    {arrow::Status::NotImplemented("not yet"), ENOSYS, "not yet",
     "NotImplemented: not yet"},
    {arrow::Status::Cancelled("never mind"), EINVAL, "never mind",
     "Cancelled: never mind"},
    {arrow::Status::KeyError("wörter"), EINVAL, "wörter", "Key error: wörter"},
};

int code_of(const Kind &kind, From from)
{
    return is_async(from) ? EINVAL : kind.code;
}

/* A reader's source puts its name in front. */
std::string text_of(const Kind &kind, From from)
{
    if (is_async(from))
        return kind.text;
    return (from == From::READER ? "arrow_stream: " : "device_stream: ") +
           std::string(kind.reader_text);
}

void check_reported(const Delivery &got, int code, const std::string &text)
{
    ck_assert_int_eq(got.ending.end, UVA_END_FAILED);
    ck_assert_int_eq(got.ending.code, code);
    check_text(got.ending.message, text);
}

START_TEST(what_fails_in_Arrow_is_told_here)
{
    for (const Kind &kind : KINDS)
        for (int batches : {1, 7}) {
            const Batches sent = numbers(batches);
            const From from = from_of(_i * TOS);
            World world;

            const Delivery got = carry(
                world, stream_from(world, from, {sent, kind.status}), To::EACH);

            check_reported(got, code_of(kind, from), text_of(kind, from));
            check_equal(sent, got.batches);
        }
}
END_TEST

/* ---- to Arrow ----------------------------------------------------------- */

/* Checks Arrow's translation of a code: its importer of blocking streams knows
 * a few, its asynchronous one keeps the code. */
void check_status(const arrow::Status &status, To to, int code,
                  const std::string &text)
{
    const auto detail =
        std::dynamic_pointer_cast<arrow::AsyncErrorDetail>(status.detail());

    if (is_driven(to)) {
        ck_assert_ptr_nonnull(detail.get());
        ck_assert_int_eq(detail->code(), code);
        check_text(detail->ToString(), text);
        return;
    }
    ck_assert_int_eq(
        static_cast<int>(status.code()),
        static_cast<int>(code == EINVAL   ? arrow::StatusCode::Invalid
                         : code == ENOMEM ? arrow::StatusCode::OutOfMemory
                         : code == ENOSYS ? arrow::StatusCode::NotImplemented
                                          : arrow::StatusCode::IOError));
    check_text(status.message(), text);
}

/* How many batches Arrow's handler still delivers depends on when the error
 * arrives. */
START_TEST(a_failure_passes_from_Arrow_to_Arrow)
{
    const From from = from_of(_i);
    const To to = to_of(_i);

    if (to == To::EACH)
        return;
    for (const Kind &kind : KINDS) {
        const Batches sent = numbers(4);
        World world;

        const Delivery got =
            carry(world, stream_from(world, from, {sent, kind.status}), to);

        check_status(got.status, to, code_of(kind, from), text_of(kind, from));
        if (is_driven(to))
            check_begins(sent, got.batches);
        else
            check_equal(sent, got.batches);
    }
}
END_TEST

/* ---- errors of a source in uvarrow -------------------------------------- */

/* Where a source of tasks fails. */
enum Place { SCHEMA, NEXT, EXTRACT, PLACES };

/* The ctx of a source that fails at `place`, on reaching batch `at`. */
struct Faulty {
    Batches batches;
    Place place;
    size_t at;
    int code;
    size_t next = 0;

    int fill(uva_error *error) const
    {
        return uva_error_set(error, code, "batch %zu has gone", at);
    }
};

int faulty_schema(void *ctx, ArrowSchema *out, uva_error *error)
{
    auto *f = static_cast<Faulty *>(ctx);

    if (f->place == SCHEMA)
        return f->fill(error);
    ck_assert_arrow(arrow::ExportSchema(*f->batches[0]->schema(), out));
    return 0;
}

int faulty_next(void *ctx, void **item, const char **, uva_error *error)
{
    auto *f = static_cast<Faulty *>(ctx);

    if (f->place == NEXT && f->next == f->at)
        return f->fill(error);
    if (f->next < f->batches.size())
        *item = &f->batches[f->next++];
    return 0;
}

int faulty_extract(void *ctx, void *item, ArrowDeviceArray *out,
                   uva_error *error)
{
    auto *f = static_cast<Faulty *>(ctx);
    auto *batch = static_cast<Batch *>(item);

    if (out == nullptr)
        return 0;
    if (f->place == EXTRACT && batch == &f->batches[f->at])
        return f->fill(error);
    ck_assert_arrow(arrow::ExportDeviceRecordBatch(**batch, nullptr, out));
    return 0;
}

uva_stream *stream_of(World &world, Faulty *faulty)
{
    uva_task_source source{};

    source.schema = faulty_schema;
    source.next = faulty_next;
    source.extract = faulty_extract;
    source.ctx = faulty;
    source.window.batches = 4;
    return uva_stream_from_tasks(world.runtime, &source);
}

START_TEST(what_fails_here_is_told_by_Arrow)
{
    const To to = to_of(_i % TOS);
    const Place place = static_cast<Place>(_i / TOS);

    for (const int code : {EIO, EINVAL, ENOMEM, ENOSYS, EPIPE}) {
        Faulty faulty{numbers(20), place, 3, code};
        World world;

        const Delivery got = carry(world, stream_of(world, &faulty), to);

        if (to == To::EACH)
            check_reported(got, code, "tasks: batch 3 has gone");
        else
            check_status(got.status, to, code, "tasks: batch 3 has gone");
        check_begins(faulty.batches, got.batches);
        if (!is_driven(to))
            ck_assert_uint_eq(got.batches.size(), place == SCHEMA ? 0 : 3);
    }
}
END_TEST

/* ---- metadata ----------------------------------------------------------- */

std::string block_of(const char *key, const char *value)
{
    const uva_pair pair[] = {{key, value, 0, 0}, {}};
    char buffer[64];
    size_t size = sizeof(buffer);

    ck_assert_int_eq(uva_metadata_encode(pair, buffer, &size), 0);
    return {buffer, size};
}

void push(uva_pusher *pusher, const Batch &batch, const char *metadata)
{
    ArrowDeviceArray array;

    ck_assert_arrow(arrow::ExportDeviceRecordBatch(*batch, nullptr, &array));
    ck_assert_int_eq(uva_pusher_push(pusher, &array, metadata, 0), 0);
}

uva_pusher *pusher_of(World &world, const Batch &batch, uva_stream **stream)
{
    uva_pusher *pusher;
    ArrowSchema schema;

    *stream = uva_stream_from_pusher(world.runtime, nullptr, &pusher);
    ck_assert_arrow(arrow::ExportSchema(*batch->schema(), &schema));
    ck_assert_int_eq(uva_pusher_set_schema(pusher, &schema), 0);
    return pusher;
}

START_TEST(metadata_of_a_batch_comes_with_it)
{
    const Batches sent = numbers(3);
    World world;
    uva_stream *stream;
    uva_pusher *pusher = pusher_of(world, sent[0], &stream);

    push(pusher, sent[0], block_of("page", "1").c_str());
    push(pusher, sent[1], nullptr);
    push(pusher, sent[2], block_of("wört", "").c_str());
    uva_pusher_close(pusher, nullptr, nullptr);
    const Delivery got = carry(world, stream, static_cast<To>(_i));

    ck_assert_arrow(got.status);
    check_equal(sent, got.batches);
    ck_assert_uint_eq(got.metadata.size(), 3);
    ck_assert_int_eq(got.metadata[0]->size(), 1);
    check_text(value_of(got.metadata[0]->Get("page")), "1");
    ck_assert(!got.metadata[1] || got.metadata[1]->size() == 0);
    check_text(value_of(got.metadata[2]->Get("wört")), "");
}
END_TEST

/* Arrow reads the block as a C string: only the text after the first NUL is
 * lost. */
START_TEST(metadata_of_an_error_is_cut_by_Arrow)
{
    const std::string block = block_of("line", "17");
    uva_error error{};
    World world;
    uva_stream *stream;
    uva_pusher *pusher = pusher_of(world, numbers(1)[0], &stream);

    uva_error_set(&error, EBADMSG, "no row");
    uva_pusher_close(pusher, &error, block.c_str());
    const Delivery got = carry(world, stream, static_cast<To>(_i));

    const auto detail =
        std::dynamic_pointer_cast<arrow::AsyncErrorDetail>(got.status.detail());
    ck_assert_ptr_nonnull(detail.get());
    ck_assert_int_eq(detail->code(), EBADMSG);
    check_text(detail->ToString(), "no row");
    check_text(detail->ErrorMetadataString(), block.c_str());
    ck_assert(got.ending.metadata == block);
}
END_TEST

} // namespace

int main()
{
    Suite *suite = suite_create("arrow_errors");
    TCase *tcase = new_case(suite, "arrow_errors");
    const int drive = static_cast<int>(To::DRIVE);

    tcase_add_loop_test(tcase, what_fails_in_Arrow_is_told_here, 0, FROMS);
    tcase_add_loop_test(tcase, a_failure_passes_from_Arrow_to_Arrow, 0, ROUTES);
    tcase_add_loop_test(tcase, what_fails_here_is_told_by_Arrow, 0,
                        PLACES * TOS);
    tcase_add_loop_test(tcase, metadata_of_a_batch_comes_with_it, drive,
                        drive + 2);
    tcase_add_loop_test(tcase, metadata_of_an_error_is_cut_by_Arrow, drive,
                        drive + 2);
    return run_suite(suite);
}
