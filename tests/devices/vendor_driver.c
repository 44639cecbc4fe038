/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the library in the same places as the library under test does. */
#include "devices/vendor_driver.h"

#include <check.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library_open(const struct vendor_driver *driver)
{
    const char *path = getenv(driver->variable);
    void *library = NULL;

    if (path != NULL)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (const char *const *name = driver->names;
         library == NULL && *name != NULL; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
}

void vendor_driver_resolve(void *library,
                           const struct vendor_function *functions)
{
    for (; functions->name != NULL; functions++) {
        find(library, functions->name, functions->out);
        if (dlsym(library, functions->name) != NULL)
            continue;
        (void)fprintf(stderr, "the library has no %s\n", functions->name);
        abort();
    }
}

bool vendor_driver_open(const struct vendor_driver *driver,
                        struct fake_control *control)
{
    void *library = library_open(driver);

    if (library == NULL)
        return false;
    find(library, "fakegpu_count", &control->fakegpu_count);
    find(library, "fakegpu_excuse", &control->fakegpu_excuse);
    find(library, "fakegpu_fail", &control->fakegpu_fail);
    find(library, "fakegpu_poison", &control->fakegpu_poison);
    find(library, "fakegpu_hold", &control->fakegpu_hold);
    find(library, "fakegpu_refuse", &control->fakegpu_refuse);
    if (control->fakegpu_excuse != NULL)
        control->fakegpu_excuse(1);
    return driver->open(library);
}

bool vendor_driver_is(const char *mode)
{
    const char *modes = getenv("UVA_FAKE_MODE");

    return modes != NULL && strstr(modes, mode) != NULL;
}

/* ---- calls that the vendors have in common ------------------------------ */

struct uva__gpu_calls vendor_calls;

void vendor_must(int code)
{
    ck_assert_int_eq(code, 0);
}

void *vendor_stream_known(void *stream)
{
    return (uintptr_t)stream == UVA__GPU_STREAM_LEGACY ? NULL : stream;
}

void *vendor_stream_new(void)
{
    void *stream;

    vendor_must(
        vendor_calls.stream_create(&stream, UVA__GPU_STREAM_NON_BLOCKING));
    return stream;
}

void vendor_stream_free(void *stream)
{
    vendor_must(vendor_calls.stream_destroy(stream));
}

void vendor_stream_drain(void *stream)
{
    vendor_must(vendor_calls.stream_synchronize(vendor_stream_known(stream)));
}

void *vendor_event_new(void)
{
    void *event;

    vendor_must(
        vendor_calls.event_create(&event, UVA__GPU_EVENT_DISABLE_TIMING));
    return event;
}

void vendor_event_free(void *event)
{
    vendor_must(vendor_calls.event_destroy(event));
}

void vendor_event_record(void *event, void *stream)
{
    vendor_must(vendor_calls.event_record(event, vendor_stream_known(stream)));
}

void *vendor_host_alloc(size_t size)
{
    void *memory;

    vendor_must(vendor_calls.host_alloc(&memory, size, UVA__GPU_HOST_PORTABLE));
    return memory;
}

void vendor_host_free(void *memory)
{
    vendor_must(vendor_calls.host_free(memory));
}
