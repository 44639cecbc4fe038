/* SPDX-License-Identifier: Apache-2.0 */
/* A vendor's library, opened at run time and never closed, since its own
 * threads may run in it at any time. */
#ifndef UVA_DEVICE_SHARED_LIBRARY_H
#define UVA_DEVICE_SHARED_LIBRARY_H

#include <stddef.h>

#include "uvarrow/base.h"

/* Where to look for the library. */
struct uva__shared_library {
    const char *vendor; /* static: in errors */
    const char *prefix; /* of the file name of a copy that is loaded already,
                           which is preferred, as handles belong to one copy;
                           NULL: any copy will do */
    const char *const *names; /* tried in turn; NULL ends them */
};

/* One function, and the offset of its pointer in a table. */
struct uva__symbol {
    const char *name;
    size_t offset;
    bool optional; /* the pointer may be NULL */
};

/* Opens `path`, or a copy that is loaded, or the first of the names that can be
 * opened. 0 gives a handle that is never closed, and in error->message the
 * file; ENOTSUP with the names that were tried. Thread: the device thread. */
UVA_MUST_CHECK int
uva__shared_library_open(const struct uva__shared_library *library,
                         const char *path, void **out, struct uva_error *error);

/* Fills `table`. 0; ENOSYS with the name of a function that is missing, for the
 * library is too old. Thread: the device thread. */
UVA_MUST_CHECK int
uva__shared_library_resolve(const struct uva__shared_library *library,
                            void *handle, const struct uva__symbol *symbols,
                            size_t count, void *table, struct uva_error *error);

/* Fills `error` with a vendor's code for a failed call, and returns `code`.
 * Thread: any. */
int uva__shared_library_failed(struct uva_error *error, int code,
                               const char *vendor, const char *call,
                               int vendor_code);

#endif
