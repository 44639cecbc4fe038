/* SPDX-License-Identifier: Apache-2.0 */
/* Stands between a producer and a handler, passes every call on, and records
 * each of them: for deviations that leave no trace if they are survived. */
#ifndef INTEROP_HANDLER_SPY_HPP
#define INTEROP_HANDLER_SPY_HPP

#include <atomic>
#include <cstring>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "uvarrow/arrow_abi.h"

namespace interop
{

/* Outlives the producer and all tasks. The handler that it shows is freed with
 * its release, so that a sanitizer finds accesses after that. */
class HandlerSpy
{
  public:
    std::string transcript;         /* callbacks; complete once all is over */
    std::atomic<int64_t> least = 1; /* smallest number requested */
    std::atomic<int64_t> open = 0;  /* requested, and not offered */
    std::atomic<int64_t> most = 0;  /* the largest value of `open` */
    std::atomic<int> refused = 0;   /* callbacks that returned an error */
    std::atomic<int> late = 0;      /* calls to the ended producer */
    std::atomic<int> cancels = 0;
    std::atomic<int> dirty = 0; /* extractions that left bytes unwritten */
    bool garble = false;        /* tasks get malformed metadata */

    /* Returns the handler to call in place of `inner`. */
    ArrowAsyncDeviceStreamHandler *tap(ArrowAsyncDeviceStreamHandler *inner)
    {
        inner_ = inner;
        shown_ = std::make_unique<ArrowAsyncDeviceStreamHandler>();
        *shown_ = {on_schema,  on_next_task, on_error,
                   on_release, nullptr,      this};
        return shown_.get();
    }

  private:
    using Handler = ArrowAsyncDeviceStreamHandler;

    struct Task {
        HandlerSpy *spy;
        ArrowAsyncTask inner;
    };

    Handler *inner_ = nullptr;
    std::unique_ptr<Handler> shown_;
    ArrowAsyncProducer producer_{}; /* the producer that the handler gets */
    ArrowAsyncProducer *source_ = nullptr; /* the producer it forwards to */
    std::atomic<bool> over_ = false;
    std::list<Task> tasks_; /* all tasks: some are never extracted */
    std::mutex lock_;       /* guards `transcript` */

    static HandlerSpy *of(const Handler *handler)
    {
        return static_cast<HandlerSpy *>(handler->private_data);
    }

    void record(const std::string &what)
    {
        const std::lock_guard<std::mutex> held(lock_);

        transcript += (transcript.empty() ? "" : " ") + what;
    }

    int answered(int code)
    {
        refused += code != 0;
        return code;
    }

    static int on_schema(Handler *self, ArrowSchema *schema)
    {
        HandlerSpy *spy = of(self);

        spy->record("schema");
        spy->source_ = self->producer;
        spy->producer_ = *self->producer;
        spy->producer_.request = request;
        spy->producer_.cancel = cancel;
        spy->producer_.private_data = spy;
        spy->inner_->producer = &spy->producer_;
        return spy->answered(spy->inner_->on_schema(spy->inner_, schema));
    }

    static int on_next_task(Handler *self, ArrowAsyncTask *task,
                            const char *metadata)
    {
        HandlerSpy *spy = of(self);
        const char bad[8] = {-1, -1, -1, -1};

        if (task == nullptr) {
            spy->record("end");
            spy->over_ = true;
            return spy->answered(
                spy->inner_->on_next_task(spy->inner_, nullptr, metadata));
        }
        spy->open--;
        spy->record("task");
        ArrowAsyncTask outer = {extract,
                                &spy->tasks_.emplace_back(Task{spy, *task})};
        return spy->answered(spy->inner_->on_next_task(
            spy->inner_, &outer, spy->garble ? bad : metadata));
    }

    static void on_error(Handler *self, int code, const char *message,
                         const char *metadata)
    {
        HandlerSpy *spy = of(self);

        spy->record("error");
        spy->over_ = true;
        spy->inner_->on_error(spy->inner_, code, message, metadata);
    }

    static void on_release(Handler *self)
    {
        HandlerSpy *spy = of(self);

        spy->record("release");
        spy->over_ = true;
        spy->inner_->release(spy->inner_);
        spy->shown_.reset();
    }

    static HandlerSpy *of(const ArrowAsyncProducer *producer)
    {
        return static_cast<HandlerSpy *>(producer->private_data);
    }

    static void request(ArrowAsyncProducer *self, int64_t n)
    {
        HandlerSpy *spy = of(self);
        const int64_t now = spy->open += n;

        spy->late += spy->over_;
        if (n < spy->least)
            spy->least = n;
        if (now > spy->most)
            spy->most = now;
        spy->source_->request(spy->source_, n);
    }

    static void cancel(ArrowAsyncProducer *self)
    {
        HandlerSpy *spy = of(self);

        spy->late += spy->over_;
        spy->cancels++;
        spy->source_->cancel(spy->source_);
    }

    /* Passes a struct full of old bytes, instead of the caller's. */
    static int extract(ArrowAsyncTask *self, ArrowDeviceArray *out)
    {
        auto *task = static_cast<Task *>(self->private_data);
        ArrowDeviceArray array;

        if (out == nullptr)
            return task->inner.extract_data(&task->inner, nullptr);
        std::memset(&array, 0xab, sizeof(array));
        array.array.release = nullptr;
        const int code = task->inner.extract_data(&task->inner, &array);
        for (const int64_t word : array.reserved)
            task->spy->dirty += code == 0 && word != 0;
        task->spy->record(code == 0 ? "data" : "nodata");
        *out = array;
        return code;
    }
};

} // namespace interop

#endif
