/* SPDX-License-Identifier: Apache-2.0 */
/* A stream of Arrow that a user's object has given in a capsule, of plain
 * arrays or of device arrays: a source (source.c), or an item of an iterable,
 * such as a table (rows.c). It is called on a worker, which lends the GIL
 * meanwhile. */
#include "core/core.h"

int given_take(struct given *given, PyObject *capsule, bool device,
               const char *name)
{
    struct ArrowDeviceArrayStream *of_device = NULL;
    struct ArrowArrayStream *plain = NULL;

    if (device)
        of_device = checked_capsule(capsule, "arrow_device_array_stream", name);
    else
        plain = checked_capsule(capsule, "arrow_array_stream", name);
    if (of_device != NULL) {
        given->device = *of_device;
        of_device->release = NULL;
    } else if (plain != NULL) {
        given->plain = *plain;
        plain->release = NULL;
    } else {
        return -1;
    }
    given->is_device = device;
    given->is_open = true;
    return 0;
}

int given_schema(struct given *given, struct ArrowSchema *out)
{
    PyThreadState *lent = gil_lend();
    const int code = given->is_device
                         ? given->device.get_schema(&given->device, out)
                         : given->plain.get_schema(&given->plain, out);

    gil_take_back(lent);
    return code;
}

static int plain_next(struct ArrowArrayStream *stream,
                      struct ArrowDeviceArray *out)
{
    struct ArrowArray array = {0};
    const int code = stream->get_next(stream, &array);

    if (code == 0 && array.release != NULL)
        uva_array_from_cpu(&array, out);
    return code;
}

int given_next(struct given *given, struct ArrowDeviceArray *out)
{
    PyThreadState *lent = gil_lend();
    int code;

    uva_array_clear(out);
    code = given->is_device ? given->device.get_next(&given->device, out)
                            : plain_next(&given->plain, out);
    gil_take_back(lent);
    return code;
}

int given_fail(struct given *given, int code)
{
    const char *text = given->is_device
                           ? given->device.get_last_error(&given->device)
                           : given->plain.get_last_error(&given->plain);

    (void)core_raise(code, text, NULL);
    return -1;
}

void given_close(struct given *given)
{
    PyObject *type, *value, *traceback;
    PyThreadState *lent;

    if (!given->is_open)
        return;
    given->is_open = false;
    PyErr_Fetch(&type, &value, &traceback);
    lent = gil_lend();
    if (given->is_device)
        given->device.release(&given->device);
    else
        given->plain.release(&given->plain);
    gil_take_back(lent);
    PyErr_Restore(type, value, traceback);
}
