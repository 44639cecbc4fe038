/* SPDX-License-Identifier: Apache-2.0 */
/* A double of libsycl: the SYCL classes that uvarrow uses, under their own
 * names and with members of their own types, so that a C++ compiler gives them
 * the mangled names by which they are looked up. As in Intel's libsycl, the
 * status of a failed event reads as complete, and a wait for it throws. */
#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "devices/fake_sycl.h"
#include "devices/sycl_driver.h"

/* Without barriers and codes, like an older library; or without anything. */
#define EXPORTED __attribute__((visibility("default")))
#ifdef UVA_FAKE_STRANGE
#define EXPORTED_OLD
#else
#define EXPORTED_OLD EXPORTED
#endif
#ifdef UVA_FAKE_OLD
#define EXPORTED_NEW
#else
#define EXPORTED_NEW EXPORTED_OLD
#endif

static std::atomic<int> broken{FAKE_SYCL_WAIT};
static std::atomic<int> live{0};

namespace sycl
{
inline namespace _V1
{

namespace info
{
enum class event_command_status : int { submitted = 2, complete = 0 };
namespace event
{
struct command_execution_status {
    using return_type = event_command_status;
};
} // namespace event
} // namespace info

namespace detail
{
template <typename T> struct is_event_info_desc {
    using return_type = typename T::return_type;
};

struct code_location {
    const char *file, *function;
    unsigned long line, column;
};

/* Pending, complete or failed; or in the state of the events it depends on. */
class event_impl
{
  public:
    explicit event_impl(bool test, std::vector<std::shared_ptr<event_impl>> all)
        : behind(std::move(all)), of_test(test)
    {
        live += !of_test;
    }
    ~event_impl()
    {
        live -= !of_test;
    }
    event_impl(const event_impl &) = delete;
    event_impl &operator=(const event_impl &) = delete;

    void end(bool with_fault)
    {
        const std::lock_guard<std::mutex> guard(lock);
        ended = true;
        failed = with_fault;
        over.notify_all();
    }
    bool is_over()
    {
        for (const auto &one : behind)
            if (!one->is_over())
                return false;
        const std::lock_guard<std::mutex> guard(lock);
        return ended || !behind.empty();
    }
    bool has_failed()
    {
        bool any = failed;

        for (const auto &one : behind)
            any = any || one->has_failed();
        return any;
    }
    void wait()
    {
        for (const auto &one : behind)
            one->wait();
        std::unique_lock<std::mutex> guard(lock);
        over.wait(guard, [this] { return ended || !behind.empty(); });
    }

  private:
    std::mutex lock;
    std::condition_variable over;
    std::vector<std::shared_ptr<event_impl>> behind;
    bool ended = false, failed = false, of_test;
};
} // namespace detail

class EXPORTED_NEW exception : public virtual std::exception
{
  public:
    explicit exception(const char *what) : text(what)
    {
    }
    const std::error_code &code() const noexcept;
    const char *what() const noexcept final
    {
        return text.c_str();
    }

  private:
    std::string text;
    std::error_code why{42, std::generic_category()};
};

const std::error_code &exception::code() const noexcept
{
    return why;
}

class EXPORTED_OLD event
{
  public:
    explicit event(std::shared_ptr<detail::event_impl> it) : impl(std::move(it))
    {
    }
    template <typename Param>
    typename detail::is_event_info_desc<Param>::return_type get_info() const;
    void wait();

    std::shared_ptr<detail::event_impl> impl;
};

template <typename Param>
typename detail::is_event_info_desc<Param>::return_type event::get_info() const
{
    if (broken == FAKE_SYCL_STATUS)
        throw exception("no status today");
    return impl->is_over() ? info::event_command_status::complete
                           : info::event_command_status::submitted;
}

template EXPORTED_OLD info::event_command_status
event::get_info<info::event::command_execution_status>() const;

void event::wait()
{
    impl->wait();
    switch (broken) {
    case FAKE_SYCL_MEMORY:
        throw std::bad_alloc();
    case FAKE_SYCL_OTHER:
        throw std::runtime_error("of another kind");
    case FAKE_SYCL_INT:
        throw 7;
    default:
        break;
    }
    if (impl->has_failed())
        throw exception("the fake device has failed (-5)");
}

class EXPORTED_NEW queue
{
  public:
    event ext_oneapi_submit_barrier(const detail::code_location &location);
    event ext_oneapi_submit_barrier(const std::vector<event> &events,
                                    const detail::code_location &location);

    std::vector<std::shared_ptr<detail::event_impl>> queued;
};

/* Completes after everything queued; at once if the queue is empty. */
event queue::ext_oneapi_submit_barrier(const detail::code_location &location)
{
    (void)location;
    if (broken == FAKE_SYCL_BARRIER)
        throw exception("no barrier today");
    const auto it = std::make_shared<detail::event_impl>(false, queued);
    if (queued.empty())
        it->end(false);
    return event(it);
}

event queue::ext_oneapi_submit_barrier(const std::vector<event> &events,
                                       const detail::code_location &location)
{
    for (const auto &one : events)
        queued.push_back(one.impl);
    return ext_oneapi_submit_barrier(location);
}

} // namespace _V1
} // namespace sycl

/* ---- for tests ---------------------------------------------------------- */

static sycl::queue the_queue;

static void *event_new()
{
    using impl = sycl::detail::event_impl;

    return new sycl::event(
        std::make_shared<impl>(true, std::vector<std::shared_ptr<impl>>()));
}

static void event_end(void *event, bool failed)
{
    static_cast<sycl::event *>(event)->impl->end(failed);
}

static void event_free(void *event)
{
    delete static_cast<sycl::event *>(event);
}

static void queue_block(void *event)
{
    the_queue.queued.push_back(static_cast<sycl::event *>(event)->impl);
}

static int events_live()
{
    return live;
}

extern "C" EXPORTED const struct sycl_driver fake_sycl_driver;
const struct sycl_driver fake_sycl_driver = {
    false,      &the_queue,  event_new,  event_end,
    event_free, queue_block, events_live};

extern "C" EXPORTED fake_sycl_break_fn fake_sycl_break;
void fake_sycl_break(enum fake_sycl_fault fault)
{
    broken = fault;
}
