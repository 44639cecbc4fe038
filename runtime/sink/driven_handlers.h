/* SPDX-License-Identifier: Apache-2.0 */
/* The foreign handlers that the streams of a runtime are driving now: a handler
 * belongs to one stream until it is released. */
#ifndef UVA_SINK_DRIVEN_HANDLERS_H
#define UVA_SINK_DRIVEN_HANDLERS_H

#include "loop/rt.h"
#include "uvarrow/arrow_abi.h"

/* An entry: a part of the object that drives the handler. */
struct uva__driven_handler {
    struct uva__driven_handler *next;              /* in its bucket */
    struct ArrowAsyncDeviceStreamHandler *handler; /* borrows */
};

/* Makes the runtime's table, unless it exists. 0 or ENOMEM. Thread: any. */
UVA_MUST_CHECK int uva__driven_handlers_ensure(struct uva__rt *rt);

/* Adds `driven` (borrows, until it is removed), after
 * uva__driven_handlers_ensure() has succeeded. False if a stream drives its
 * handler already. Thread: any. Clauses: AH-29. */
UVA_MUST_CHECK bool
uva__driven_handlers_add(struct uva__rt *rt,
                         struct uva__driven_handler *driven);

/* Removes `driven`, if it is among them. Thread: any. */
void uva__driven_handlers_remove(struct uva__rt *rt,
                                 struct uva__driven_handler *driven);

#endif
