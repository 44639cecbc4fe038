/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of each device type, and the one service that all runtimes on
 * the same workers share. Counted: by the workers, by streams and by watches,
 * the last of which may end long after the workers. */
#ifndef UVA_DEVICES_REGISTRY_H
#define UVA_DEVICES_REGISTRY_H

#include "core/device_traits.h"
#include "devices/attachments.h"
#include "devices/service.h"
#include "uvarrow/device.h"

/* How far the table of a type has come. */
enum uva__loaded {
    UVA__LOADED_NOT,  /* nobody has needed it */
    UVA__LOADED_BUSY, /* the service is about it */
    UVA__LOADED_OK,
    UVA__LOADED_FAILED /* `why` says why */
};

/* What is known of a table that is built in, beside it. */
struct uva__dialect {
    const char *vendor; /* static: in errors */
    const char *asks;   /* static: the call that asks after an event */
    /* why alloc has last given NULL: fills `error`, and gives its code.
     * Service. NULL: it never does. */
    int (*alloc_failed)(void *state, struct uva_error *error);
};

/* One device type. */
struct uva__backend {
    ArrowDeviceType device_type;
    const struct uva_device_ops *ops; /* borrows; NULL: nobody can wait */
    void *ctx;                        /* borrows: of the table */
    const char *library; /* static: names its environment variable, or NULL */
    const struct uva__dialect *dialect; /* static; NULL: of the user's table */
    struct uva__word met;               /* 1: the table is in use, and stays */
    struct uva__word loaded; /* enum uva__loaded; what follows is behind it */
    void *state;             /* owns, through ops->unload */
    struct uva_error why;    /* of a load that failed */
    struct {                 /* memory that is kept; the service's alone */
        struct uva__pinned_block *first; /* owns */
        size_t size_bytes;               /* of all of them */
    } pinned;
};

/* An array of which no event can be had that says when a device is done with
 * it: it is released when the workers are gone. From malloc(). */
struct uva__kept {
    struct uva__kept *next;        /* owns */
    struct ArrowDeviceArray array; /* owns */
};

/* All of them; all zeroes is none. The device thread's alone. */
struct uva__keeper {
    struct uva__kept *first; /* owns */
    bool over;               /* the workers are gone */
};

/* See the top. */
struct uva__devices {
    struct uva__word refs;
    struct uva__word users; /* the workers, and what needs the service after
                               them */
    struct uva__service service;
    struct uva__keeper keeper;        /* of arrays; the service's alone */
    struct uva__errand leave;         /* of the workers */
    struct uva__attachments attached; /* native handles */
    struct uva__lock lock;            /* over `ops` and `ctx` of the types */
    struct uva__backend backends[UVA__DEVICE_TYPES];
};

/* Makes one, with a use by the workers; NULL without memory. Its memory is
 * the C library's, since a vendor may call after all else is gone.
 * Thread: any. */
struct uva__devices *uva__devices_new(void);

/* Counts; the last release frees. Thread: any. */
struct uva__devices *uva__devices_acquire(struct uva__devices *devices);
void uva__devices_release(struct uva__devices *devices);

/* Uses the service, which lasts as long; whoever is done last ends it: for the
 * workers at once, or it would outlive its runtime. Thread: any. */
void uva__devices_use(struct uva__devices *devices);
void uva__devices_quit(struct uva__devices *devices);

/* Sends the service, which is in use, an errand. Thread: any. */
void uva__devices_send(struct uva__devices *devices,
                       struct uva__errand *errand);

/* Takes `kept`, whose giver holds the workers. Thread: service. */
void uva__keeper_take(struct uva__keeper *keeper, struct uva__kept *kept);

/* Releases all that was kept: the workers are gone. Thread: service. */
void uva__keeper_end(struct uva__keeper *keeper);

/* The workers quit, once: the keeper ends. Thread: any. */
void uva__devices_leave(struct uva__devices *devices);

/* What an array's event asks for, by its device type. */
enum uva__event_kind {
    UVA__EVENT_NONE, /* nothing: the data is ready */
    UVA__EVENT_WAIT, /* a watch */
    UVA__EVENT_ALIEN /* nobody here can wait for it: ENOTSUP */
};

/* Looks at the event of an array. Thread: any. */
enum uva__event_kind uva__devices_judge(struct uva__devices *devices,
                                        ArrowDeviceType device_type,
                                        const void *sync_event,
                                        struct uva_error *error);

/* The row of a type; NULL for one unknown here. Thread: any. */
struct uva__backend *uva__devices_backend(struct uva__devices *devices,
                                          ArrowDeviceType device_type);

/* The row of a type for which there is a table, which from now on stays; NULL
 * if there is none. Thread: any. */
struct uva__backend *uva__devices_meet(struct uva__devices *devices,
                                       ArrowDeviceType device_type);

/* How a call of the table has failed: with a text if it gave none, and never
 * with a code that would mean "not yet". Gives the code. Thread: any. */
int uva__backend_failed(const struct uva__backend *backend, int code,
                        const char *what, struct uva_error *error);

/* Asks after an event: 0, EAGAIN, or how it failed. Thread: as its table
 * says. */
int uva__backend_query(const struct uva__backend *backend,
                       const struct uva_device_event *event,
                       struct uva_error *error);

/* Takes an event of the table's; NULL: there is none. Thread: any. */
void uva__backend_event_free(const struct uva__backend *backend, void *event);

/* Opens what the type needs, unless that was tried. 0, or why it failed.
 * Thread: service. */
UVA_MUST_CHECK int uva__backend_load(struct uva__backend *backend,
                                     struct uva_error *error);

/* The same from any thread, which waits for the service to do it: tens of
 * milliseconds, the first time. Starts the service. Also ENOTSUP where nobody
 * knows the type, EAGAIN, ESHUTDOWN; EDEADLK from inside that very load.
 * Thread: any. */
UVA_MUST_CHECK int uva__devices_load(struct uva__devices *devices,
                                     ArrowDeviceType device_type,
                                     struct uva_error *error);

/* Answers uva_device_get_info(). Thread: any. */
UVA_MUST_CHECK int uva__devices_describe(struct uva__devices *devices,
                                         ArrowDeviceType device_type,
                                         struct uva_device_info *out);

/* Puts a table in the place of what is built in: uva_device_register().
 * Thread: any. */
UVA_MUST_CHECK int uva__devices_register(struct uva__devices *devices,
                                         ArrowDeviceType device_type,
                                         const struct uva_device_ops *ops,
                                         void *ctx, struct uva_error *error);

#endif
