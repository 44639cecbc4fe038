/* SPDX-License-Identifier: Apache-2.0 */
/* The library for C++17 and later: classes that own what the C functions give,
 * and the same calls with options by value.
 *
 *     uva::stream s = uva::stream::from_blocking_cpu(rt.get(), &rows);
 *     s.map({.batch = decode, .ctx = c});                         // C++20
 *     s.map(uva::options<uva_map>()                               // C++17
 *               .set(&uva_map::batch, decode)
 *               .set(&uva_map::ctx, c));
 *     s.map([](uva_batch &in, ArrowDeviceArray &out) { ... });    // a callable
 *     while (uva::array batch = co_await s.next(&error))          // C++20
 *         use(*batch.get());
 *
 * A member function has the name, the threads, the ownership and the codes of
 * the C function that it calls: see the comment there. What a destructor does
 * is stated at each class. Nothing here throws by itself: errors are codes,
 * described in a uva_error, as in C. An exception must not leave a function
 * that the library calls; callables passed to map() and to uva::consumer are
 * wrapped in uva::guard(), which makes it a code. See docs/cpp.md. */
#ifndef UVARROW_UVARROW_HPP
#define UVARROW_UVARROW_HPP

#include <exception>
#include <memory>
#include <new>
#include <poll.h>
#include <type_traits>
#include <utility>

#if __cplusplus >= 202002L &&                                                  \
    (defined(__cpp_impl_coroutine) || defined(__cpp_coroutines))
#include <coroutine>
#endif

#include "uvarrow/uvarrow.h"

#if __has_include("uvarrow/io.h")
#include "uvarrow/io.h" // what is used of it needs libuvarrow-io
#define UVA_HAS_IO 1
#endif

namespace uva
{

// ---- options and callbacks --------------------------------------------------

/** Options that are set one by one: C++17 has no designated initialisers. The
 * members that are not set are 0. */
template <class T> struct options : T {
    options() noexcept : T{}
    {
    }
    template <class M>
    options &set(M T::*member, std::common_type_t<M> value) noexcept
    {
        this->*member = value;
        return *this;
    }
};

/** Calls `f` and returns its code. An exception becomes ENOMEM or EIO, with its
 * text in `error`, which may be NULL. For your own functions that C calls. */
template <class F> int guard(uva_error *error, F &&f) noexcept
{
#if defined(__cpp_exceptions)
    try {
        return std::forward<F>(f)();
    } catch (const std::bad_alloc &) {
        return uva_error_set(error, ENOMEM, "out of memory");
    } catch (const std::exception &e) {
        return uva_error_set(error, EIO, "exception: %s", e.what());
    } catch (...) {
        return uva_error_set(error, EIO, "an exception");
    }
#else
    (void)error;
    return std::forward<F>(f)();
#endif
}

/** A `free_ctx` for a ctx that was made by new. */
template <class T> void delete_ctx(void *ctx) noexcept
{
    delete static_cast<T *>(ctx);
}

/** Two callables as a uva_consumer: int(uva_batch &), and
 * void(const uva_outcome &), which must not throw. The stream borrows this
 * object until on_done has returned, or until stream::drop(): it must outlive
 * them, and therefore can be neither copied nor moved. */
template <class Batch, class Done> class consumer
{
  public:
    consumer(Batch batch, Done done)
        : batch_(std::move(batch)), done_(std::move(done))
    {
    }
    consumer(const consumer &) = delete;
    consumer &operator=(const consumer &) = delete;

    operator uva_consumer() &noexcept
    {
        uva_consumer c{};

        c.on_batch = on_batch;
        c.on_done = on_done;
        c.ctx = this;
        return c;
    }

  private:
    static int on_batch(void *ctx, uva_batch *batch) noexcept
    {
        auto *const self = static_cast<consumer *>(ctx);

        return guard(nullptr, [&] { return self->batch_(*batch); });
    }
    static void on_done(void *ctx, const uva_outcome *outcome) noexcept
    {
        static_cast<consumer *>(ctx)->done_(*outcome);
    }

    Batch batch_;
    Done done_;
};

// ---- Arrow structs ----------------------------------------------------------

/** Owns an Arrow struct. The destructor calls its release, if it is live. */
template <class T> class owned
{
  public:
    owned() noexcept = default;
    /** Takes `from`, which reads as released from then on. */
    explicit owned(T *from) noexcept : value_(*from)
    {
        release_of(*from) = nullptr;
    }
    owned(owned &&from) noexcept : owned(&from.value_)
    {
    }
    owned &operator=(owned &&from) noexcept
    {
        if (this != &from)
            from.move_to(out());
        return *this;
    }
    ~owned()
    {
        (void)out();
    }

    /** Releases what it owns, and returns the place for a function that gives
     * such a struct. */
    T *out() noexcept
    {
        if constexpr (std::is_same_v<T, ArrowDeviceArray>)
            uva_array_release(&value_);
        else if (value_.release != nullptr)
            value_.release(&value_);
        value_ = T{};
        return &value_;
    }
    /** Gives the struct to `to`, and overwrites what was there. */
    void move_to(T *to) noexcept
    {
        *to = value_;
        release_of(value_) = nullptr;
    }
    /** Returns the struct, also for functions that take it. Borrows. */
    T *get() noexcept
    {
        return &value_;
    }
    const T *get() const noexcept
    {
        return &value_;
    }
    T *operator->() noexcept
    {
        return &value_;
    }
    const T *operator->() const noexcept
    {
        return &value_;
    }
    /** Whether it owns anything. */
    explicit operator bool() const noexcept
    {
        return release_of(value_) != nullptr;
    }

  private:
    template <class U> static auto &release_of(U &value) noexcept
    {
        if constexpr (std::is_same_v<T, ArrowDeviceArray>)
            return value.array.release;
        else
            return value.release;
    }

    T value_{};
};

using array = owned<ArrowDeviceArray>;
using cpu_array = owned<ArrowArray>;
using schema = owned<ArrowSchema>;
using blocking_stream = owned<ArrowDeviceArrayStream>;
using blocking_cpu_stream = owned<ArrowArrayStream>;

// ---- workers and runtimes ---------------------------------------------------

/** Workers that several runtimes share. The destructor drops the reference. */
class workers
{
  public:
    /** uva_workers_new() */
    [[nodiscard]] int open(const uva_workers_options &options = {},
                           uva_error *error = nullptr) noexcept
    {
        uva_workers *made = nullptr;
        const int code = uva_workers_new(&options, &made, error);

        if (code == 0)
            workers_.reset(made);
        return code;
    }
    uva_workers *get() const noexcept
    {
        return workers_.get();
    }

  private:
    struct freed {
        void operator()(uva_workers *w) const noexcept
        {
            uva_workers_free(w);
        }
    };
    std::unique_ptr<uva_workers, freed> workers_;
};

/** Owns an open runtime. The destructor closes it at once, without grace, which
 * cancels its streams, and does what C asks of you next:
 *   your loop        nothing; run your loop until the runtime has closed
 *   own thread       joins it; not on that thread
 *   no_thread        takes turns until it has closed; on the loop thread, and
 *                    not in a callback
 * To let streams end, call close() or join() before. */
class runtime
{
  public:
    runtime() noexcept = default;
    runtime(runtime &&from) noexcept
        : runtime_(std::exchange(from.runtime_, nullptr)), host_(from.host_)
    {
    }
    runtime &operator=(runtime &&from) noexcept
    {
        if (this != &from) {
            reset();
            runtime_ = std::exchange(from.runtime_, nullptr);
            host_ = from.host_;
        }
        return *this;
    }
    ~runtime()
    {
        reset();
    }

    /** uva_runtime_open(); EBUSY if it owns a runtime. */
    [[nodiscard]] int open(uv_loop_s *loop,
                           const uva_runtime_options &options = {},
                           uva_error *error = nullptr) noexcept
    {
        uva_runtime *made = nullptr;

        if (runtime_ != nullptr)
            return uva_error_set(error, EBUSY, "the runtime is open");
        host_ = loop != nullptr     ? host::loop
                : options.no_thread ? host::turns
                                    : host::thread;
        const int code = uva_runtime_open(loop, &options, &made, error);

        if (code == 0)
            runtime_ = made;
        return code;
    }
    /** uva_runtime_close(). On a loop of yours, the runtime frees itself after
     * that: this object is empty then. */
    int close(int64_t grace_ms = 0, uva_closed_fn *fn = nullptr,
              void *ctx = nullptr) noexcept
    {
        uva_runtime *const rt = runtime_;

        if (rt == nullptr)
            return EALREADY;
        if (host_ == host::loop)
            runtime_ = nullptr;
        return uva_runtime_close(rt, grace_ms, fn, ctx);
    }
    [[nodiscard]] int drain(int64_t deadline_ms, uva_closed_fn *fn = nullptr,
                            void *ctx = nullptr) noexcept
    {
        return uva_runtime_drain(runtime_, deadline_ms, fn, ctx);
    }
    /** uva_runtime_join(). This object is empty if it returns 0. */
    int join() noexcept
    {
        const int code = runtime_ != nullptr ? uva_runtime_join(runtime_) : 0;

        if (code == 0)
            runtime_ = nullptr;
        return code;
    }
    /** uva_runtime_turn(). This object is empty if it returns false. */
    bool turn() noexcept
    {
        if (runtime_ != nullptr && !uva_runtime_turn(runtime_))
            runtime_ = nullptr;
        return runtime_ != nullptr;
    }
    /** Does what the destructor does. */
    void reset() noexcept
    {
        const host was = host_;

        (void)close();
        if (was == host::thread)
            (void)join();
        while (was == host::turns && turn()) {
            pollfd due{uva_runtime_fd(runtime_), POLLIN, 0};
            (void)poll(&due, 1, -1);
        }
    }
    /** For the functions that have no place here. Borrows. */
    uva_runtime *get() const noexcept
    {
        return runtime_;
    }
    explicit operator bool() const noexcept
    {
        return runtime_ != nullptr;
    }

  private:
    enum class host { loop, thread, turns };

    uva_runtime *runtime_ = nullptr; // owns, unless it has closed itself
    host host_ = host::loop;         // what drives its loop
};

// ---- streams ----------------------------------------------------------------

/** Owns the writing end of a stream of pushed data. The destructor of one that
 * was not closed ends the stream as failed with ECONNABORTED, because its data
 * may not be complete. No thread may use it then. */
class pusher
{
  public:
    pusher() noexcept = default;
    explicit pusher(uva_pusher *from) noexcept : pusher_(from)
    {
    }
    pusher(pusher &&from) noexcept
        : pusher_(std::exchange(from.pusher_, nullptr))
    {
    }
    pusher &operator=(pusher &&from) noexcept
    {
        if (this != &from) {
            abandon();
            pusher_ = std::exchange(from.pusher_, nullptr);
        }
        return *this;
    }
    ~pusher()
    {
        abandon();
    }

    [[nodiscard]] int set_schema(ArrowSchema *from) noexcept
    {
        return uva_pusher_set_schema(pusher_, from);
    }
    [[nodiscard]] int push(ArrowDeviceArray *from, const char *metadata,
                           int64_t timeout_ms) noexcept
    {
        return uva_pusher_push(pusher_, from, metadata, timeout_ms);
    }
    void close(const uva_error *error = nullptr,
               const char *metadata = nullptr) noexcept
    {
        if (pusher_ != nullptr)
            uva_pusher_close(std::exchange(pusher_, nullptr), error, metadata);
    }
    /** Borrows. */
    uva_pusher *get() const noexcept
    {
        return pusher_;
    }

  private:
    void abandon() noexcept
    {
        uva_error error;

        if (pusher_ == nullptr)
            return;
        (void)uva_error_set(&error, ECONNABORTED, "the pusher was not closed");
        close(&error);
    }

    uva_pusher *pusher_ = nullptr; // owns, until closed
};

/** Owns the reply to one batch of stream::map_async(). The destructor of one
 * that was not given ends the stream as failed with ECONNABORTED. Thread: any.
 */
class reply
{
  public:
    reply() noexcept = default;
    explicit reply(uva_reply *from) noexcept : reply_(from)
    {
    }
    /** Gives the result; nullptr: there is no batch in place of this one. */
    void give(ArrowDeviceArray *out) noexcept
    {
        uva_reply_give(reply_.release(), out, nullptr);
    }
    void fail(const uva_error &error) noexcept
    {
        uva_reply_give(reply_.release(), nullptr, &error);
    }
    /** Whether it was not given. */
    explicit operator bool() const noexcept
    {
        return reply_ != nullptr;
    }
    /** Borrows. */
    uva_reply *get() const noexcept
    {
        return reply_.get();
    }

  private:
    struct lost {
        void operator()(uva_reply *r) const noexcept
        {
            uva_error error;

            (void)uva_error_set(&error, ECONNABORTED, "no result was given");
            uva_reply_give(r, nullptr, &error);
        }
    };
    std::unique_ptr<uva_reply, lost> reply_;
};

#if defined(__cpp_lib_coroutine)
/** What stream::next() returns: one batch, to be awaited once. The coroutine
 * goes on inside the callback, on the loop thread. If it is destroyed while it
 * waits, the stream is dropped, which has to be on the loop thread. */
class next_batch
{
  public:
    next_batch(uva_stream *stream, uva_error *error) noexcept
        : stream_(stream), error_(error)
    {
    }
    next_batch(const next_batch &) = delete;
    next_batch &operator=(const next_batch &) = delete;
    ~next_batch()
    {
        if (waiting_) // the owner of the stream keeps its reference
            uva_stream_drop(uva_stream_acquire(stream_));
    }

    bool await_ready() const noexcept
    {
        return false;
    }
    /* Off the loop thread, the coroutine may run before this has returned. */
    bool await_suspend(std::coroutine_handle<> waiting) noexcept
    {
        waiting_ = waiting;
        if (uva_stream_next(stream_, answer, this, error_) == 0)
            return true;
        waiting_ = nullptr;
        return false;
    }
    array await_resume() noexcept
    {
        return std::move(batch_);
    }

  private:
    static void answer(void *ctx, uva_batch *batch,
                       const uva_outcome *outcome) noexcept
    {
        auto *const self = static_cast<next_batch *>(ctx);

        if (batch != nullptr)
            uva_array_move(&batch->data, self->batch_.out());
        else if (outcome->error.code != 0 && self->error_ != nullptr)
            *self->error_ = outcome->error;
        std::exchange(self->waiting_, nullptr).resume();
    }

    uva_stream *stream_; // borrows
    uva_error *error_;   // borrows; NULL: not wanted
    std::coroutine_handle<> waiting_;
    array batch_;
};
#endif

/** Owns one reference to a stream. The destructor releases it, so a stream that
 * was not started is freed and a started one runs to its end. If the ctx of a
 * consumer is about to go, call drop() instead, on the loop thread. */
class stream
{
  public:
    stream() noexcept = default;
    /** Takes one reference. */
    explicit stream(uva_stream *from) noexcept : stream_(from)
    {
    }

    // ---- sources

    static stream from_arrays(uva_runtime *rt, ArrowSchema *of,
                              ArrowDeviceArray *arrays, size_t count) noexcept
    {
        return stream(uva_stream_from_arrays(rt, of, arrays, count));
    }
    static stream from_tasks(uva_runtime *rt,
                             const uva_task_source &source) noexcept
    {
        return stream(uva_stream_from_tasks(rt, &source));
    }
    static stream from_async(uva_runtime *rt,
                             const uva_async_source &source) noexcept
    {
        return stream(uva_stream_from_async(rt, &source));
    }
    static stream
    from_blocking(uva_runtime *rt, ArrowDeviceArrayStream *source,
                  const uva_blocking_source &options = {}) noexcept
    {
        return stream(uva_stream_from_blocking(rt, source, &options));
    }
    static stream
    from_blocking_cpu(uva_runtime *rt, ArrowArrayStream *source,
                      const uva_blocking_source &options = {}) noexcept
    {
        return stream(uva_stream_from_blocking_cpu(rt, source, &options));
    }
    static stream from_pusher(uva_runtime *rt, pusher &out,
                              const uva_push_source &options = {}) noexcept
    {
        uva_pusher *made = nullptr;
        stream s(uva_stream_from_pusher(rt, &options, &made));

        out = pusher(made);
        return s;
    }

#ifdef UVA_HAS_IO
    /** uva_stream_from_socket(): Arrow IPC that arrives on a socket. */
    static stream from_socket(uva_runtime *rt, uv_stream_s *socket,
                              const uva_ipc_source &options = {}) noexcept
    {
        return stream(uva_stream_from_socket(rt, socket, &options));
    }
    /** uva_stream_from_file() */
    static stream from_file(uva_runtime *rt, int fd,
                            const uva_ipc_source &options = {}) noexcept
    {
        return stream(uva_stream_from_file(rt, fd, &options));
    }
#endif

    // ---- stages: the start returns their first error

    stream &map(const uva_map &options) noexcept
    {
        (void)uva_stream_map(get(), &options);
        return *this;
    }
    /** As above, for a callable int(uva_batch &, ArrowDeviceArray &), with a
     * uva_error & as third parameter if it wants one. The stream owns it. It is
     * called by several workers at once, so it has to be callable when const.
     */
    template <class F, class = std::enable_if_t<
                           !std::is_convertible_v<F, const uva_map &>>>
    stream &map(F f, bool on_loop = false)
    {
        auto *const made = new (std::nothrow) F(std::move(f));
        uva_map m{};

        if (made == nullptr) { // makes the start fail
            uva_stream_cancel(get(), ENOMEM, "out of memory");
            return *this;
        }
        m.batch = map_call<F>;
        m.free_ctx = delete_ctx<F>;
        m.ctx = made;
        m.on_loop = on_loop;
        return map(m);
    }
    stream &map_async(const uva_async_map &options) noexcept
    {
        (void)uva_stream_map_async(get(), &options);
        return *this;
    }
    /** As above, for a callable void(uva_batch &, reply), which is called on
     * the loop thread and gives each reply, then or later. The stream owns it,
     * until every reply was given. An exception is given as the error. */
    template <class F, class = std::enable_if_t<
                           !std::is_convertible_v<F, const uva_async_map &>>>
    stream &map_async(F f, int32_t at_once = 1, bool unordered = false)
    {
        auto *const made = new (std::nothrow) F(std::move(f));
        uva_async_map m{};

        if (made == nullptr) { // makes the start fail
            uva_stream_cancel(get(), ENOMEM, "out of memory");
            return *this;
        }
        m.begin = begin_call<F>;
        m.free_ctx = delete_ctx<F>;
        m.ctx = made;
        m.at_once = at_once;
        m.unordered = unordered;
        return map_async(m);
    }
    stream &transform(const uva_transform &options) noexcept
    {
        (void)uva_stream_transform(get(), &options);
        return *this;
    }
    stream &filter(const uva_filter &options) noexcept
    {
        (void)uva_stream_filter(get(), &options);
        return *this;
    }
    stream &rebatch(const uva_rebatch &options) noexcept
    {
        (void)uva_stream_rebatch(get(), &options);
        return *this;
    }
    stream &limit(int64_t batches) noexcept
    {
        (void)uva_stream_limit(get(), batches);
        return *this;
    }
    stream &limit_rows(int64_t rows) noexcept
    {
        (void)uva_stream_limit_rows(get(), rows);
        return *this;
    }
    /** Takes the other stream. For several of them, call the C function. */
    stream &merge(stream other, const uva_merge &options = {}) noexcept
    {
        uva_stream *const one = other.take();

        (void)uva_stream_merge(get(), &one, 1, &options);
        return *this;
    }
    stream &concat(stream other, int32_t ahead = 0) noexcept
    {
        uva_stream *const one = other.take();

        (void)uva_stream_concat(get(), &one, 1, ahead);
        return *this;
    }
    stream &parallel(const uva_parallel &options = {}) noexcept
    {
        (void)uva_stream_parallel(get(), &options);
        return *this;
    }
    stream &ready(const uva_ready &options = {}) noexcept
    {
        (void)uva_stream_ready(get(), &options);
        return *this;
    }
    /** Takes the ctx of `options`. */
    stream &map_device(const uva_device_map &options) noexcept
    {
        (void)uva_stream_map_device(get(), &options);
        return *this;
    }
    stream &transfer(const uva_transfer &options = {}) noexcept
    {
        (void)uva_stream_transfer(get(), &options);
        return *this;
    }
    stream &timeout(const uva_timeout &options) noexcept
    {
        (void)uva_stream_timeout(get(), &options);
        return *this;
    }
    /** Takes the ctx of `options`. */
    stream &retry(const uva_retry &options) noexcept
    {
        (void)uva_stream_retry(get(), &options);
        return *this;
    }
    /** As above, for a callable stream(const uva_outcome &failed, int attempt,
     * int64_t passed, int64_t rows), where an empty stream gives up. The stream
     * owns it, and calls it on the loop thread. An exception gives up, too. The
     * members of `options` that are functions are replaced. */
    template <class F, class = std::enable_if_t<
                           !std::is_convertible_v<F, const uva_retry &>>>
    stream &retry(F f, uva_retry options = {})
    {
        auto *const made = new (std::nothrow) F(std::move(f));

        if (made == nullptr) { // makes the start fail
            uva_stream_cancel(get(), ENOMEM, "out of memory");
            return *this;
        }
        options.again = retry_call<F>;
        options.free_ctx = delete_ctx<F>;
        options.ctx = made;
        return retry(static_cast<const uva_retry &>(options));
    }
    stream &throttle(const uva_throttle &options) noexcept
    {
        (void)uva_stream_throttle(get(), &options);
        return *this;
    }
    /** The new branch. This stream goes on as the first one. */
    [[nodiscard]] stream tee(const uva_tee &options = {}) noexcept
    {
        return stream(uva_stream_tee(get(), &options));
    }
    stream &inspect(const uva_inspect &options) noexcept
    {
        (void)uva_stream_inspect(get(), &options);
        return *this;
    }
    stream &set_name(const char *name) noexcept
    {
        (void)uva_stream_set_name(get(), name);
        return *this;
    }
    stream &set_priority(int32_t priority) noexcept
    {
        (void)uva_stream_set_priority(get(), priority);
        return *this;
    }

    // ---- start: the reference stays here

    [[nodiscard]] int for_each(const uva_consumer &to,
                               uva_error *error = nullptr) noexcept
    {
        return uva_stream_for_each(get(), &to, error);
    }
    /** As above, for two callables as those of a uva::consumer, which the
     * stream owns if this returns 0: it frees them at its end, behind the
     * second one, and also after drop(). ENOMEM without memory for them. */
    template <
        class Batch, class Done,
        class = std::enable_if_t<!std::is_convertible_v<Batch &, uva_consumer>>>
    [[nodiscard]] int for_each(Batch batch, Done done,
                               uva_error *error = nullptr)
    {
        using held = consumer<Batch, Done>;
        std::unique_ptr<held> made(new (std::nothrow)
                                       held(std::move(batch), std::move(done)));

        if (made == nullptr)
            return uva_error_set(error, ENOMEM, "out of memory");
        uva_consumer to = *made;
        to.free_ctx = delete_ctx<held>;
        const int code = uva_stream_for_each(get(), &to, error);

        if (code == 0)
            (void)made.release();
        return code;
    }
    [[nodiscard]] int next(uva_next_fn *fn, void *ctx,
                           uva_error *error = nullptr) noexcept
    {
        return uva_stream_next(get(), fn, ctx, error);
    }
#if defined(__cpp_lib_coroutine)
    /** co_await it for the next batch; an empty one at the end. `error` (NULL
     * is allowed) is written if the stream has failed, or if this call has. */
    [[nodiscard]] next_batch next(uva_error *error = nullptr) noexcept
    {
        return next_batch(get(), error);
    }
#endif
    [[nodiscard]] int start_take(uva_ready_fn *fn, void *ctx,
                                 const uva_window &window = {},
                                 uva_error *error = nullptr) noexcept
    {
        return uva_stream_start_take(get(), &window, fn, ctx, error);
    }
    [[nodiscard]] int collect(int64_t max_bytes, uva_collected_fn *fn,
                              void *ctx, uva_error *error = nullptr) noexcept
    {
        return uva_stream_collect(get(), max_bytes, fn, ctx, error);
    }
    [[nodiscard]] int drive(ArrowAsyncDeviceStreamHandler *handler,
                            const uva_drive &options = {},
                            uva_error *error = nullptr) noexcept
    {
        return uva_stream_drive(get(), handler, &options, error);
    }
    [[nodiscard]] int to_blocking(ArrowDeviceArrayStream *out,
                                  const uva_window &window = {},
                                  uva_error *error = nullptr) noexcept
    {
        return uva_stream_to_blocking(get(), &window, out, error);
    }
    [[nodiscard]] int to_blocking_cpu(ArrowArrayStream *out,
                                      const uva_window &window = {},
                                      uva_error *error = nullptr) noexcept
    {
        return uva_stream_to_blocking_cpu(get(), &window, out, error);
    }

#ifdef UVA_HAS_IO
    /** uva_stream_write(): all of it, to a socket of the runtime's loop. */
    [[nodiscard]] int write(uv_stream_s *socket, const uva_write &options,
                            uva_error *error = nullptr) noexcept
    {
        return uva_stream_write(get(), socket, &options, error);
    }
    /** uva_stream_write_file() */
    [[nodiscard]] int write_file(int fd, const uva_write &options,
                                 uva_error *error = nullptr) noexcept
    {
        return uva_stream_write_file(get(), fd, &options, error);
    }
#endif

    // ---- control

    void cancel(int code = 0, const char *reason = nullptr) noexcept
    {
        uva_stream_cancel(get(), code, reason);
    }
    void resume() noexcept
    {
        uva_stream_resume(get());
    }
    int status(uva_error *error = nullptr) const noexcept
    {
        return uva_stream_status(get(), error);
    }
    const uva_stream_info *get_info() const noexcept
    {
        return uva_stream_get_info(get());
    }
    /** Borrows. */
    uva_runtime *get_runtime() const noexcept
    {
        return uva_stream_get_runtime(get());
    }
    bool is_dropped() const noexcept
    {
        return uva_stream_is_dropped(get());
    }
    /** uva_stream_get_stats(). */
    [[nodiscard]] int get_stats(uva_stage_stats *stages,
                                std::size_t *count) const noexcept
    {
        return uva_stream_get_stats(get(), stages, count);
    }
    /** Returns another reference. */
    stream acquire() const noexcept
    {
        return stream(uva_stream_acquire(get()));
    }
    /** uva_stream_release(), as the destructor. This object is empty then. */
    void release() noexcept
    {
        stream_.reset();
    }
    /** uva_stream_drop(): no callback to the consumer from now on. This object
     * is empty then. */
    void drop() noexcept
    {
        uva_stream_drop(stream_.release());
    }
    /** Gives the reference to the caller. This object is empty then. */
    [[nodiscard]] uva_stream *take() noexcept
    {
        return stream_.release();
    }
    /** For the functions that have no place here. Borrows. */
    uva_stream *get() const noexcept
    {
        return stream_.get();
    }
    explicit operator bool() const noexcept
    {
        return stream_ != nullptr;
    }

  private:
    template <class F>
    static int map_call(void *ctx, uva_batch *in, ArrowDeviceArray *out,
                        uva_error *error) noexcept
    {
        const F &f = *static_cast<const F *>(ctx);

        return guard(error, [&] {
            if constexpr (std::is_invocable_v<const F &, uva_batch &,
                                              ArrowDeviceArray &, uva_error &>)
                return f(*in, *out, *error);
            else
                return f(*in, *out);
        });
    }

    template <class F>
    static int begin_call(void *ctx, uva_batch *in, uva_reply *from) noexcept
    {
        F &f = *static_cast<F *>(ctx);
        uva_error error{};
        reply r(from);
        const int code = guard(&error, [&] {
            f(*in, std::move(r));
            return 0;
        });

        if (code != 0 && r)
            r.fail(error);
        return 0;
    }

    template <class F>
    static uva_stream *retry_call(void *ctx, const uva_outcome *failed,
                                  int32_t attempt, int64_t passed,
                                  int64_t rows) noexcept
    {
        stream next;

        (void)guard(nullptr, [&] {
            next = (*static_cast<F *>(ctx))(*failed, attempt, passed, rows);
            return 0;
        });
        return next.take();
    }

    struct released {
        void operator()(uva_stream *s) const noexcept
        {
            uva_stream_release(s);
        }
    };
    std::unique_ptr<uva_stream, released> stream_;
};

/** Owns a reference to a group of streams. The destructor drops it, which
 * cancels nothing. */
class group
{
  public:
    /** uva_group_new() */
    [[nodiscard]] int open(uva_runtime *rt, bool fail_together = false,
                           uva_error *error = nullptr) noexcept
    {
        uva_group *made = nullptr;
        const int code = uva_group_new(rt, fail_together, &made, error);

        if (code == 0)
            group_.reset(made);
        return code;
    }
    int add(const stream &s) noexcept
    {
        return uva_group_add(get(), s.get());
    }
    void cancel(int code = 0, const char *reason = nullptr) noexcept
    {
        uva_group_cancel(get(), code, reason);
    }
    [[nodiscard]] int on_done(uva_closed_fn *fn, void *ctx) noexcept
    {
        return uva_group_on_done(get(), fn, ctx);
    }
    uva_group *get() const noexcept
    {
        return group_.get();
    }

  private:
    struct released {
        void operator()(uva_group *g) const noexcept
        {
            uva_group_release(g);
        }
    };
    std::unique_ptr<uva_group, released> group_;
};

#ifdef UVA_HAS_IO

// ---- output -----------------------------------------------------------------

/** Owns what an encoder gives: buffers to be written, in order. The destructor
 * releases them, and with them the batch that they are of. */
class encoder_part
{
  public:
    encoder_part() noexcept = default;
    encoder_part(encoder_part &&from) noexcept : part_(from.part_)
    {
        from.part_ = {};
    }
    encoder_part &operator=(encoder_part &&from) noexcept
    {
        std::swap(part_, from.part_);
        return *this;
    }
    ~encoder_part()
    {
        (void)out();
    }
    /** Releases what it owns, and returns the place for a function that gives
     * a part. */
    uva_encoder_part *out() noexcept
    {
        uva_encoder_part_release(&part_);
        return &part_;
    }
    /** Borrows. */
    const uva_encoder_part *get() const noexcept
    {
        return &part_;
    }
    const uva_encoder_part *operator->() const noexcept
    {
        return &part_;
    }

  private:
    uva_encoder_part part_{};
};

/** Owns an encoder. The destructor frees it; its parts stay valid. */
class encoder
{
  public:
    /** uva_encoder_new() */
    [[nodiscard]] int open(const ArrowSchema *of, const uva_write &options = {},
                           uva_error *error = nullptr) noexcept
    {
        uva_encoder *made = nullptr;
        const int code = uva_encoder_new(of, &options, &made, error);

        if (code == 0)
            encoder_.reset(made);
        return code;
    }
    [[nodiscard]] int begin(encoder_part &part) noexcept
    {
        return uva_encoder_begin(get(), part.out());
    }
    [[nodiscard]] int batch(ArrowDeviceArray *from, encoder_part &part,
                            uva_error *error = nullptr) noexcept
    {
        return uva_encoder_batch(get(), from, part.out(), error);
    }
    [[nodiscard]] int end(encoder_part &part) noexcept
    {
        return uva_encoder_end(get(), part.out());
    }
    uva_encoder *get() const noexcept
    {
        return encoder_.get();
    }

  private:
    struct freed {
        void operator()(uva_encoder *e) const noexcept
        {
            uva_encoder_free(e);
        }
    };
    std::unique_ptr<uva_encoder, freed> encoder_;
};

#endif

} // namespace uva

#endif
