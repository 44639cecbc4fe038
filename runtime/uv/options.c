/* SPDX-License-Identifier: Apache-2.0 */
/* Whether what a program asks for makes sense, before anything is opened. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "uv/shell.h"

int uva__options_check(const struct uva_runtime_options *o, bool guest,
                       struct uva_error *error)
{
    if (o->reserved[0] != NULL || o->reserved[1] != NULL)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: reserved members must be "
                             "NULL; clear the struct before filling it in");
    if (o->turn_batches < 0 || o->turn_us < 0)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: turn_batches and turn_us "
                             "must not be negative");
    if ((o->allocator.alloc == NULL) != (o->allocator.dealloc == NULL))
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: give both functions of the "
                             "allocator, or none");
    if (guest && o->no_thread)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: no_thread is for a runtime "
                             "without a loop; pass NULL as loop");
    if (o->post != NULL && !o->no_thread)
        return uva_error_set(error, EINVAL,
                             "uva_runtime_options: post needs no_thread");
    return 0;
}

/* Two copies of libuv in one process do not mix: their structs may differ. */
int uva__options_check_uv(const struct uva_runtime_options *o, uv_loop_t *loop,
                          struct uva_error *error)
{
    Dl_info ours, theirs;
    void *own = NULL, *init = NULL;
    int (*run)(uv_loop_t *, uv_run_mode) = uv_run;
    void (*async)(uv_async_t *) = loop != NULL ? loop->wq_async.async_cb : NULL;

    if (o->uv_version != 0 && o->uv_version != uv_version())
        return uva_error_set(
            error, EINVAL,
            "the program uses libuv %u.%u, uvarrow uses %u.%u; link both "
            "with one libuv, or open the runtime without a loop",
            o->uv_version >> 16, o->uv_version >> 8 & 255, uv_version() >> 16,
            uv_version() >> 8 & 255);
    if (async == NULL)
        return 0;
    memcpy(&own, &run, sizeof(own));
    memcpy(&init, &async, sizeof(init));
    /* not covered: needs a second copy of libuv in the process */
    if (dladdr(own, &ours) != 0 && dladdr(init, &theirs) != 0 &&
        ours.dli_fbase != theirs.dli_fbase)
        return uva_error_set(error, EINVAL,
                             "the loop was made by another copy of libuv (%s, "
                             "ours is %s); link both with one libuv, or open "
                             "the runtime without a loop",
                             theirs.dli_fname, ours.dli_fname);
    return 0;
}
