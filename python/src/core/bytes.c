/* SPDX-License-Identifier: Apache-2.0 */
/* Arrow IPC that the library reads by itself, as a stream: a file, a pipe, a
 * socket. No thread needs the GIL for it. */
#include <errno.h>

#include "core/core.h"
#include "uvarrow/io.h"

/* _file(host, path in bytes, empty: none, descriptor, batches, bytes, need_end,
 * mmap) */
PyObject *stream_file(PyObject *object, PyObject *args)
{
    Stream *self = (Stream *)object;
    struct uva_ipc_source how = {0};
    const char *path = NULL;
    PyObject *host, *result;
    long long bytes;
    int need_end, is_mapped;

    if (self->tap != NULL ||
        !PyArg_ParseTuple(args, "O!yiiLpp", host_type, &host, &path, &how.fd,
                          &how.window.batches, &bytes, &need_end, &is_mapped))
        return self->tap != NULL ? core_raise(EBUSY, "opened twice", NULL)
                                 : NULL;
    if (!host_check((Host *)host))
        return NULL;
    how.window.bytes = bytes;
    how.need_end_mark = need_end != 0;
    how.mmap = is_mapped != 0;
    self->host = (Host *)Py_NewRef((PyObject *)host);
    self->window = how.window;
    self->tap = tap_new(self->host);
    if (self->tap == NULL)
        return NULL;
    result = stream_opened(
        self, uva_stream_from_file(self->host->runtime,
                                   path[0] != '\0' ? path : NULL, &how));
    if (result == NULL)
        return NULL;
    Py_DECREF(result);
    return stream_built(self);
}
