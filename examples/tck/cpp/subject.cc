/* SPDX-License-Identifier: Apache-2.0 */
/* A subject of the test suite in C++17, in the role producer:
 *
 *     c++ -std=c++17 -shared -fPIC -pthread -I"$INCLUDE" -o libsubject.so \
 *         subject.cc
 *
 * The functions at the end are those that every subject exports. The rest is a
 * small producer, the implementation under test: put yours in its place. It
 * makes all callbacks on the thread that starts it. */
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>

#include "uvarrow/tck.h"

namespace
{

const int EIO_CODE = 5;
const int EINVAL_CODE = 22;
const int64_t MOST = std::numeric_limits<int64_t>::max();

std::atomic<int64_t> live{0}; // batches and schemas that are not freed
std::atomic<int64_t> made{0};

// ---- data

// The memory of a struct and its child, which each have a reference: a consumer
// may keep the child alone.
struct SchemaMemory {
    SchemaMemory()
    {
        live++;
    }
    ~SchemaMemory()
    {
        live--;
    }
    ArrowSchema child{};
    ArrowSchema *children[1] = {&child};
};

struct BatchMemory {
    BatchMemory()
    {
        live++, made++;
    }
    ~BatchMemory()
    {
        live--;
    }
    ArrowArray child{};
    ArrowArray *children[1] = {&child};
    const void *no_buffers[1] = {nullptr};
    const void *buffers[2] = {nullptr, values};
    int64_t values[UVA_SUBJECT_ROWS] = {};
};

template <typename Memory, typename Struct> void release(Struct *at)
{
    for (int64_t i = 0; i < at->n_children; i++)
        if (at->children[i]->release != nullptr)
            at->children[i]->release(at->children[i]);
    at->release = nullptr;
    delete static_cast<std::shared_ptr<Memory> *>(at->private_data);
}

ArrowSchema make_schema()
{
    auto own = std::make_shared<SchemaMemory>();
    ArrowSchema out{};

    own->child.format = "l";
    own->child.name = "n";
    own->child.release = release<SchemaMemory, ArrowSchema>;
    own->child.private_data = new std::shared_ptr<SchemaMemory>(own);
    out.format = "+s";
    out.name = "";
    out.n_children = 1;
    out.children = own->children;
    out.release = release<SchemaMemory, ArrowSchema>;
    out.private_data = new std::shared_ptr<SchemaMemory>(own);
    return out;
}

ArrowDeviceArray make_batch(int64_t ordinal)
{
    auto own = std::make_shared<BatchMemory>();
    ArrowDeviceArray out{};

    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        own->values[row] = ordinal * UVA_SUBJECT_ROWS + row;
    own->child.length = UVA_SUBJECT_ROWS;
    own->child.n_buffers = 2;
    own->child.buffers = own->buffers;
    own->child.release = release<BatchMemory, ArrowArray>;
    own->child.private_data = new std::shared_ptr<BatchMemory>(own);
    out.array.length = UVA_SUBJECT_ROWS;
    out.array.n_buffers = 1;
    out.array.buffers = own->no_buffers;
    out.array.n_children = 1;
    out.array.children = own->children;
    out.array.release = release<BatchMemory, ArrowArray>;
    out.array.private_data = new std::shared_ptr<BatchMemory>(own);
    out.device_id = -1;
    out.device_type = ARROW_DEVICE_CPU;
    return out;
}

// ---- a task

// The task has a reference, and so has the callback that offers it.
struct Payload {
    explicit Payload(int64_t ordinal) : batch(make_batch(ordinal))
    {
    }
    ~Payload()
    {
        if (batch.array.release != nullptr)
            batch.array.release(&batch.array);
    }
    ArrowDeviceArray batch;
    std::atomic<bool> taken{false};
};

int extract_data(ArrowAsyncTask *task, ArrowDeviceArray *out)
{
    auto *own = static_cast<std::shared_ptr<Payload> *>(task->private_data);

    (*own)->taken = true;
    if (out != nullptr) {
        *out = (*own)->batch;
        (*own)->batch.array.release = nullptr;
    }
    delete own;
    return 0;
}

// ---- the producer

class Producer
{
  public:
    Producer(int32_t plan, int64_t batches, ArrowAsyncDeviceStreamHandler *to)
        : plan(plan), batches(batches), handler(to)
    {
        object.device_type = ARROW_DEVICE_CPU;
        object.request = [](ArrowAsyncProducer *self, int64_t n) {
            static_cast<Producer *>(self->private_data)->request(n);
        };
        object.cancel = [](ArrowAsyncProducer *self) {
            static_cast<Producer *>(self->private_data)->cancel();
        };
        object.private_data = this;
    }

    void run()
    {
        handler->producer = &object;
        play();
        handler->release(handler);
    }

  private:
    enum class Step { stop, complain, finish, offer };

    void request(int64_t n)
    {
        std::lock_guard<std::mutex> guard(lock);
        if (n <= 0)
            bad_request = true;
        else
            demand = n > MOST - demand ? MOST : demand + n;
        changed.notify_all();
    }

    void cancel()
    {
        std::lock_guard<std::mutex> guard(lock);
        cancelled = true;
        changed.notify_all();
    }

    // Waits for the next callback to make; no lock is held in it.
    Step wait(bool is_over)
    {
        std::unique_lock<std::mutex> guard(lock);
        changed.wait(guard, [&] {
            return is_over || cancelled || bad_request || demand > 0;
        });
        if (cancelled)
            return Step::stop;
        if (bad_request)
            return Step::complain;
        if (is_over)
            return Step::finish;
        if (demand < MOST)
            demand--;
        return Step::offer;
    }

    bool offer(int64_t ordinal)
    {
        auto payload = std::make_shared<Payload>(ordinal);
        auto *own = new std::shared_ptr<Payload>(payload);
        ArrowAsyncTask task{};

        task.extract_data = extract_data;
        task.private_data = own;
        if (handler->on_next_task(handler, &task, nullptr) == 0)
            return true;
        if (!payload->taken) // it was refused, and not extracted
            delete own;
        return false;
    }

    void play()
    {
        if (plan == UVA_SUBJECT_FAILS_FIRST)
            return fail(EIO_CODE, "there is no schema");
        ArrowSchema schema = make_schema();
        const int code = handler->on_schema(handler, &schema);
        if (schema.release != nullptr)
            schema.release(&schema);
        for (int64_t n = 0; code == 0; n++) {
            const bool over = plan != UVA_SUBJECT_ENDLESS && n == batches;
            const Step step = wait(over);

            if (step == Step::complain)
                return fail(EINVAL_CODE, "a request must be for 1 or more");
            if (step == Step::finish && plan == UVA_SUBJECT_FAILS)
                return fail(EIO_CODE, "the source failed");
            if (step == Step::finish)
                (void)handler->on_next_task(handler, nullptr, nullptr);
            if (plan == UVA_SUBJECT_SLOW)
                std::this_thread::sleep_for(std::chrono::milliseconds(5));
            if (step != Step::offer || !offer(n))
                return;
        }
    }

    void fail(int code, const char *text)
    {
        handler->on_error(handler, code, text, nullptr);
    }

    const int32_t plan;
    const int64_t batches;
    ArrowAsyncDeviceStreamHandler *const handler;
    ArrowAsyncProducer object{};
    std::mutex lock;
    std::condition_variable changed;
    int64_t demand = 0;
    bool cancelled = false;
    bool bad_request = false;
};

} // namespace

// ---- the functions of the subject

int32_t uva_subject_version(void)
{
    return UVA_SUBJECT_VERSION;
}

int32_t uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                            ArrowAsyncDeviceStreamHandler *handler)
{
    (void)at; // of UVA_SUBJECT_TASK_FAILS
    switch (plan) {
    case UVA_SUBJECT_WHOLE:
    case UVA_SUBJECT_ENDLESS:
    case UVA_SUBJECT_SLOW:
    case UVA_SUBJECT_FAILS:
    case UVA_SUBJECT_FAILS_FIRST:
        Producer(plan, batches, handler).run();
        return 0;
    default:
        return UVA_SUBJECT_CANNOT;
    }
}

int64_t uva_subject_count(int32_t what)
{
    return what == UVA_SUBJECT_LIVE   ? live.load()
           : what == UVA_SUBJECT_MADE ? made.load()
                                      : UVA_SUBJECT_CANNOT;
}
