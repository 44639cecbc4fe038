/* SPDX-License-Identifier: Apache-2.0 */
/* Some platforms report a command as complete although the command before it
 * has failed: so clWaitForEvents(), which returns at once then, has to confirm
 * it. */
#include "device/opencl_event.h"

#include <errno.h>

#include "arrow/vendor_error.h"
#include "device/shared_library.h"

/* ---- codes -------------------------------------------------------------- */

static int errno_of(uva__cl_int status)
{
    switch (status) {
    case UVA__CL_NO_ALLOCATION:
    case UVA__CL_OUT_OF_HOST_MEMORY:
        return ENOMEM;
    case UVA__CL_DEVICE_NOT_AVAILABLE:
        return ENODEV;
    default:
        return EIO;
    }
}

int uva__opencl_failed(struct uva_error *error, const char *call,
                       uva__cl_int status)
{
    return uva__shared_library_failed(error, errno_of(status),
                                      UVA__OPENCL_VENDOR, call, status);
}

/* ---- events ------------------------------------------------------------- */

static uva__cl_event event_of(const struct uva_device_event *event)
{
    return *(uva__cl_event *)event->sync_event;
}

/* Besides, the status alone does not make the command's writes visible. */
static int event_confirm(struct uva__cl *cl, uva__cl_event event,
                         struct uva_error *error)
{
    const uva__cl_int code = cl->clWaitForEvents(1, &event);

    return code == 0 ? 0 : uva__opencl_failed(error, "clWaitForEvents", code);
}

int uva__opencl_query(void *state, const struct uva_device_event *event,
                      struct uva_error *error)
{
    struct uva__cl *cl = &((struct uva__opencl *)state)->cl;
    uva__cl_int status = 0;
    const uva__cl_int code = cl->clGetEventInfo(
        event_of(event), UVA__CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status),
        &status, NULL);

    if (code != 0)
        return uva__opencl_failed(error, "clGetEventInfo", code);
    if (status > UVA__CL_COMPLETE) {
        error->vendor_code = status;
        return EAGAIN;
    }
    if (status == UVA__CL_COMPLETE)
        return event_confirm(cl, event_of(event), error);
    return uva__vendor_error_set(
        error, EIO, UVA__OPENCL_VENDOR, status,
        "clGetEventInfo failed with %d: so has the command "
        "of an event",
        status);
}

bool uva__opencl_has_failed(struct uva__opencl *opencl,
                            const struct uva_device_event *event)
{
    struct uva__cl *cl = &opencl->cl;
    uva__cl_event handle = event_of(event);
    uva__cl_int status = 0;

    if (cl->clGetEventInfo(handle, UVA__CL_EVENT_COMMAND_EXECUTION_STATUS,
                           sizeof(status), &status, NULL) != 0)
        return false;
    if (status != UVA__CL_COMPLETE)
        return status < UVA__CL_COMPLETE;
    return cl->clWaitForEvents(1, &handle) == UVA__CL_EVENT_FAILED;
}
