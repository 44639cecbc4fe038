/* SPDX-License-Identifier: Apache-2.0 */
/* Calls libsycl, and catches its exceptions. Only the layout of its classes is
 * known here: an event is one shared pointer, and a queue is only pointed to.
 */
#include "device/oneapi_shim.h"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <system_error>
#include <typeinfo>
#include <vector>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace
{

/* Has the layout of sycl::event, and is returned by value like it. */
struct event {
    std::shared_ptr<void> state;
};

/* Has the layout of sycl::detail::code_location, which is for tracing. */
struct place {
    const char *file, *function;
    unsigned long line, column;
};

using status_fn = int(const event *);
using wait_fn = void(event *);
using barrier_fn = event(void *queue, const place &);
using barrier_behind_fn = event(void *queue, const std::vector<event> &,
                                const place &);
using code_fn = const std::error_code &(const void *exception);

template <typename fn> fn *call(void *address)
{
    return reinterpret_cast<fn *>(address);
}

/* Returns the code of a sycl::exception. No class derives from that. */
int code_of(const uva__sycl *sycl, const std::exception &thrown)
{
    const char exception[] = "N4sycl3_V19exceptionE";

    if (sycl->exception_code == nullptr ||
        std::strcmp(typeid(thrown).name(), exception) != 0)
        return 0;
    return call<code_fn>(sycl->exception_code)(
               dynamic_cast<const void *>(&thrown))
        .value();
}

int describe(uva_error *error, int code, const char *what, const char *text)
{
    error->code = code;
    error->vendor = UVA__SYCL_VENDOR;
    error->vendor_code = 0;
    std::snprintf(error->message, sizeof(error->message), "%s failed: %s", what,
                  text);
    return code;
}

/* Called in a catch block: fills `error` from the exception. */
int fault(const uva__sycl *sycl, const char *what, uva_error *error) noexcept
{
    try {
        throw;
    } catch (const std::bad_alloc &) {
        return describe(error, ENOMEM, what, "no memory");
    } catch (const std::exception &thrown) {
        describe(error, EIO, what, thrown.what());
        error->vendor_code = code_of(sycl, thrown);
    } catch (...) {
        describe(error, EIO, what,
                 "it threw an object that is no std::exception");
    }
    return EIO;
}

} // namespace

/* A failed event has the status of a complete one. Only wait(), which returns
 * at once then, throws for it. wait_and_throw() would also pass the faults of
 * all other work to the program's handler, on this thread. */
EXPORTED int uva_oneapi_query(const uva__sycl *sycl, void *sync_event,
                              uva_error *error) noexcept
{
    const auto it = static_cast<event *>(sync_event);
    const char *what = "sycl::event::get_info";

    try {
        if (call<status_fn>(sycl->event_status)(it) > 0)
            return EAGAIN;
        what = "sycl::event::wait";
        call<wait_fn>(sycl->event_wait)(it);
        return 0;
    } catch (...) {
        return fault(sycl, what, error);
    }
}

EXPORTED int uva_oneapi_record(const uva__sycl *sycl, void *queue,
                               void **event_out, uva_error *error) noexcept
try {
    *event_out = new event(call<barrier_fn>(sycl->barrier)(queue, place()));
    return 0;
} catch (...) {
    return fault(sycl, "sycl::queue::ext_oneapi_submit_barrier", error);
}

EXPORTED int uva_oneapi_stream_wait(const uva__sycl *sycl, void *queue,
                                    void *sync_event, uva_error *error) noexcept
try {
    const std::vector<event> events(1, *static_cast<event *>(sync_event));

    call<barrier_behind_fn>(sycl->barrier_behind)(queue, events, place());
    return 0;
} catch (...) {
    return fault(sycl, "sycl::queue::ext_oneapi_submit_barrier", error);
}

EXPORTED void uva_oneapi_event_free(void *sync_event) noexcept
{
    delete static_cast<event *>(sync_event);
}
