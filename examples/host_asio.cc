/* SPDX-License-Identifier: Apache-2.0 */
/* C++20: a program on Asio, Boost's or the one without Boost, hosts the
 * runtime: one coroutine makes its turns, and another awaits batches.
 *
 *     example_host_asio DRIVER URI SQL */
#include <uvarrow/adbc.hpp>

#if __has_include(<asio.hpp>)
#include <asio.hpp>
using asio::error_code;
#else
#include <boost/asio.hpp>
namespace asio = boost::asio;
using boost::system::error_code;
#endif
#include <cstdio>
#include <unistd.h>

/* Makes the turns until the runtime has closed. Asio closes what it watches, so
 * that is a duplicate. */
static asio::awaitable<void> turn(uva::runtime &rt)
{
    asio::posix::stream_descriptor fd(co_await asio::this_coro::executor,
                                      dup(uva_runtime_fd(rt.get())));

    while (rt.turn())
        co_await fd.async_wait(fd.wait_read, asio::use_awaitable);
}

/* Ends the wait of the coroutine that takes. */
static void wake(void *timer)
{
    static_cast<asio::steady_timer *>(timer)->cancel();
}

static asio::awaitable<void> print(uva::runtime &rt, uva::stream s, int &code)
{
    asio::steady_timer ready(co_await asio::this_coro::executor,
                             asio::steady_timer::time_point::max());
    uva_outcome outcome{};
    uva_batch batch;
    error_code ignored;

    code = s.start_take(wake, &ready, {}, &outcome.error);
    while (outcome.error.code == 0 && code != ENOENT) {
        code = uva_stream_take(s.get(), &batch, &outcome);
        if (code == 0)
            uva_array_release(&batch.data); /* to be used before */
        else if (code == EAGAIN)
            co_await ready.async_wait(
                asio::redirect_error(asio::use_awaitable, ignored));
    }
    code = outcome.error.code;
    if (code != 0)
        std::fprintf(stderr, "%s\n", outcome.error.message);
    else
        std::printf("%lld rows\n", static_cast<long long>(outcome.rows));
    s = uva::stream();
    rt.close();
}

int main(int argc, char **argv)
{
    const uva_pair options[] = {
        {.key = "uri", .value = argc > 2 ? argv[2] : ""}, {}};
    asio::io_context io(1);
    uva::runtime rt;
    uva::adbc_pool pool;
    int code = 0;

    if (argc != 4 || rt.open_turned() != 0 ||
        pool.open(rt.get(), {.driver = argv[1], .options = options}) != 0) {
        std::fprintf(stderr, "usage: %s DRIVER URI SQL\n", argv[0]);
        return 2;
    }
    asio::co_spawn(io, turn(rt), asio::detached);
    asio::co_spawn(io, print(rt, pool.query(argv[3]), code), asio::detached);
    io.run();
    return code != 0;
}
