// SPDX-License-Identifier: Apache-2.0
// A C++17 binding on one page: two owning classes, lambdas for callbacks, one
// exception.
#pragma once

#include <functional>
#include <memory>
#include <stdexcept>

#include "uvarrow/uvarrow.h"

namespace uva
{

struct error : std::runtime_error {
    int code;
    error(int c, const uva_error &e) : std::runtime_error(e.message), code(c)
    {
    }
    static void check(int c, const uva_error &e)
    {
        if (c != 0)
            throw error(c, e);
    }
};

// No exception crosses C (AB-16).
template <class F> int guarded(F &&f) noexcept
{
    try {
        return f();
    } catch (const std::bad_alloc &) {
        return ENOMEM;
    } catch (...) {
        return EIO;
    }
}

// Embeds a runtime in a libuv loop. Run the loop once more after destroying it.
class runtime
{
    uva_runtime *rt_ = nullptr;

  public:
    explicit runtime(uv_loop_s *loop, const uva_runtime_options *o = nullptr)
    {
        uva_error e;
        error::check(uva_runtime_open(loop, o, &rt_, &e), e);
    }
    runtime(const runtime &) = delete;
    ~runtime()
    {
        uva_runtime_close(rt_, 0, nullptr, nullptr);
    }
    uva_runtime *get() const
    {
        return rt_;
    }
};

// For the loop thread: no callback runs after ~stream.
class stream
{
    struct calls {
        std::function<int(uva_batch &)> batch;
        std::function<void(const uva_outcome &)> done;
    };
    struct drop {
        void operator()(uva_stream *s) const
        {
            uva_stream_drop(s);
        }
    };
    std::unique_ptr<calls> calls_; // outlives s_, which is destroyed first
    std::unique_ptr<uva_stream, drop> s_;

  public:
    explicit stream(uva_stream *s) : s_(s)
    {
    }

    // For every stage that is not wrapped here.
    uva_stream *get() const
    {
        return s_.get();
    }

    // F is int(uva_batch &in, ArrowDeviceArray &out), called on a worker.
    template <class F> stream &map(F f)
    {
        uva_map m{};
        m.ctx = new F(std::move(f));
        m.free_ctx = [](void *c) { delete static_cast<F *>(c); };
        m.batch = [](void *c, uva_batch *in, ArrowDeviceArray *out,
                     uva_error *) {
            return guarded([&] { return (*static_cast<F *>(c))(*in, *out); });
        };
        uva_stream_map(get(), &m);
        return *this;
    }

    void for_each(std::function<int(uva_batch &)> batch,
                  std::function<void(const uva_outcome &)> done)
    {
        calls_ =
            std::make_unique<calls>(calls{std::move(batch), std::move(done)});
        uva_consumer c{};
        c.ctx = calls_.get();
        c.on_batch = [](void *x, uva_batch *b) {
            return guarded([&] { return static_cast<calls *>(x)->batch(*b); });
        };
        c.on_done = [](void *x, const uva_outcome *o) {
            guarded([&] { return static_cast<calls *>(x)->done(*o), 0; });
        };
        uva_error e;
        error::check(uva_stream_for_each(get(), &c, &e), e);
    }
};

} // namespace uva
