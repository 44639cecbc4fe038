/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a library by path or name, and looks its functions up. */
#include "device/shared_library.h"

#include <errno.h>
#include <string.h>

#include "arrow/vendor_error.h"
#include "base/platform.h"

static void *open_path(const char *path, struct uva_error *error)
{
    char why[sizeof(error->message)] = "";
    void *handle = uva__platform_load(path, why, sizeof(why));

    (void)uva_error_set(error, 0, "%.900s", handle != NULL ? path : why);
    return handle;
}

static void *open_loaded(const char *prefix, struct uva_error *error)
{
    char path[1024];

    if (prefix == NULL ||
        !uva__platform_find_loaded(prefix, path, sizeof(path)))
        return NULL;
    return open_path(path, error);
}

int uva__shared_library_open(const struct uva__shared_library *library,
                             const char *path, void **out,
                             struct uva_error *error)
{
    struct uva_error why = {0};
    void *handle = NULL;

    if (path != NULL)
        handle = open_path(path, &why);
    else
        handle = open_loaded(library->prefix, &why);
    for (const char *const *name = library->names;
         path == NULL && handle == NULL && *name != NULL; name++)
        handle = open_path(*name, &why);
    *out = handle;
    *error = why;
    if (handle != NULL)
        return 0;
    return uva__vendor_error_set(error, ENOTSUP, library->vendor, 0,
                                 "dlopen failed: no library: %.900s",
                                 why.message);
}

int uva__shared_library_resolve(const struct uva__shared_library *library,
                                void *handle, const struct uva__symbol *symbols,
                                size_t count, void *table,
                                struct uva_error *error)
{
    void *address;

    for (size_t i = 0; i < count; i++) {
        address = uva__platform_symbol(handle, symbols[i].name);
        if (address == NULL && !symbols[i].optional)
            return uva__vendor_error_set(
                error, ENOSYS, library->vendor, 0,
                "dlsym failed: the library is too old, or "
                "something else: it has no %s",
                symbols[i].name);
        memcpy((char *)table + symbols[i].offset, &address, sizeof(address));
    }
    return 0;
}

int uva__shared_library_failed(struct uva_error *error, int code,
                               const char *vendor, const char *call,
                               int vendor_code)
{
    return uva__vendor_error_set(error, code, vendor, vendor_code,
                                 "%s failed with %d", call, vendor_code);
}
