/* SPDX-License-Identifier: Apache-2.0 */
/* oneAPI. sync_event is a sycl::event *, a class of the libsycl that the
 * program has loaded: its functions are looked up there, and called through a
 * small library in C++ (oneapi_shim.cc). An event cannot call back, so it is
 * polled. A program may load its libsycl late: until then a load is tried
 * again.
 *
 * Clauses: EV-12. */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "arrow/vendor_error.h"
#include "device/builtin.h"
#include "device/oneapi_shim.h"
#include "device/shared_library.h"

/* The state of the table. */
struct oneapi {
    struct uva__oneapi shim;
    struct uva__sycl sycl;
};

static const char *const none[] = {NULL};

static const struct uva__shared_library shim_library = {
    .vendor = UVA__SYCL_VENDOR,
    .names = (const char *const[]){UVA_ONEAPI_SHIM, NULL},
};

/* The program's events belong to the libsycl that it has loaded. */
static const struct uva__shared_library sycl_libraries[] = {
    {.vendor = UVA__SYCL_VENDOR, .prefix = "libsycl.so", .names = none},
    {.vendor = UVA__SYCL_VENDOR, .prefix = "libsycl-preview.so", .names = none},
};

#define SHIM(name)                                                             \
    {                                                                          \
#name, offsetof(struct uva__oneapi, name), false                       \
    }

static const struct uva__symbol shim_symbols[] = {
    SHIM(uva_oneapi_query),
    SHIM(uva_oneapi_record),
    SHIM(uva_oneapi_stream_wait),
    SHIM(uva_oneapi_event_free),
};

#undef SHIM

#define SYCL(member, name, optional)                                           \
    {                                                                          \
        name, offsetof(struct uva__sycl, member), optional                     \
    }

static const struct uva__symbol sycl_symbols[] = {
    SYCL(event_status,
         "_ZNK4sycl3_V15event8get_infoINS0_4info5event24command_execution_"
         "statusEEENS0_6detail18is_event_info_descIT_E11return_typeEv",
         false),
    SYCL(event_wait, "_ZN4sycl3_V15event4waitEv", false),
    SYCL(barrier,
         "_ZN4sycl3_V15queue25ext_oneapi_submit_barrierERKNS0_6detail13code_"
         "locationE",
         true),
    SYCL(barrier_behind,
         "_ZN4sycl3_V15queue25ext_oneapi_submit_barrierERKSt6vectorINS0_"
         "5eventESaIS3_EERKNS0_6detail13code_locationE",
         true),
    SYCL(exception_code, "_ZNK4sycl3_V19exception4codeEv", true),
};

#undef SYCL

/* ---- the libraries ------------------------------------------------------ */

static int shim_open(struct uva__oneapi *shim, const char *path,
                     struct uva_error *error)
{
    void *handle;
    int code = uva__shared_library_open(&shim_library, path, &handle, error);

    if (code != 0)
        return code;
    return uva__shared_library_resolve(
        &shim_library, handle, shim_symbols,
        sizeof(shim_symbols) / sizeof(shim_symbols[0]), shim, error);
}

/* EAGAIN: the program has not loaded a runtime so far; `error` has ENOTSUP. */
static int sycl_open(struct uva__sycl *sycl, struct uva_error *error)
{
    void *handle = NULL;

    if (uva__shared_library_open(&sycl_libraries[0], NULL, &handle, error) !=
            0 &&
        uva__shared_library_open(&sycl_libraries[1], NULL, &handle, error) !=
            0) {
        (void)uva__vendor_error_set(
            error, ENOTSUP, UVA__SYCL_VENDOR, 0,
            "dlopen failed: this program has loaded no libsycl");
        return EAGAIN;
    }
    return uva__shared_library_resolve(
        &sycl_libraries[0], handle, sycl_symbols,
        sizeof(sycl_symbols) / sizeof(sycl_symbols[0]), sycl, error);
}

static int oneapi_load(void *ctx, const char *path, void **state,
                       struct uva_error *error)
{
    struct oneapi *oneapi = calloc(1, sizeof(*oneapi));
    struct uva_error why = {0};
    int code;

    (void)ctx;
    if (oneapi == NULL)
        return uva_error_set(error, ENOMEM, "no memory for SYCL");
    code = sycl_open(&oneapi->sycl, error);
    if (code == 0)
        code = shim_open(&oneapi->shim, path, &why);
    if (code != 0 && why.code != 0)
        *error = why;
    *state = oneapi;
    if (code != 0)
        free(oneapi);
    return code;
}

static void oneapi_unload(void *state)
{
    free(state);
}

/* ---- events ------------------------------------------------------------- */

static int oneapi_query(void *state, const struct uva_device_event *event,
                        struct uva_error *error)
{
    const struct oneapi *oneapi = state;

    return oneapi->shim.uva_oneapi_query(&oneapi->sycl, event->sync_event,
                                         error);
}

static int oneapi_unable(struct uva_error *error)
{
    return uva__vendor_error_set(error, ENOTSUP, UVA__SYCL_VENDOR, 0,
                                 "dlsym failed: this libsycl has no barriers");
}

static int queue_missing(struct uva_error *error)
{
    return uva_error_set(error, EINVAL,
                         "SYCL: `device_stream` is NULL; pass a "
                         "sycl::queue *");
}

static int oneapi_record(void *state, const struct uva_device_event *device,
                         void *device_stream, void **event_out,
                         struct uva_error *error)
{
    const struct oneapi *oneapi = state;

    (void)device;
    if (device_stream == NULL)
        return queue_missing(error);
    if (oneapi->sycl.barrier == NULL)
        return oneapi_unable(error);
    return oneapi->shim.uva_oneapi_record(&oneapi->sycl, device_stream,
                                          event_out, error);
}

static int oneapi_stream_wait(void *state, const struct uva_device_event *event,
                              void *device_stream, struct uva_error *error)
{
    const struct oneapi *oneapi = state;

    if (device_stream == NULL)
        return queue_missing(error);
    if (oneapi->sycl.barrier_behind == NULL)
        return oneapi_unable(error);
    return oneapi->shim.uva_oneapi_stream_wait(&oneapi->sycl, device_stream,
                                               event->sync_event, error);
}

static void oneapi_event_free(void *state, void *event)
{
    const struct oneapi *oneapi = state;

    oneapi->shim.uva_oneapi_event_free(event);
}

const struct uva_device_ops uva__oneapi_ops = {
    .version = UVA_DEVICE_OPS_VERSION,
    .name = "ONEAPI",
    .load = oneapi_load,
    .unload = oneapi_unload,
    .query = oneapi_query,
    .record = oneapi_record,
    .stream_wait = oneapi_stream_wait,
    .event_free = oneapi_event_free,
};
