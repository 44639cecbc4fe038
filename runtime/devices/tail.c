/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  a watch of the last event, which is the result's -> over: the
 *              service releases the source and lets go of the replica.
 *
 * What can fail: memory, at the start. An event that fails is over too: whoever
 *              waits for it on behalf of the result is told. */
#include "devices/tail.h"

#include <stdlib.h>

#include "uvarrow/arrow.h"

struct tail {
    struct uva__devices *devices;   /* uses */
    struct uva__replica *replica;   /* counts: the event is there */
    struct ArrowDeviceArray source; /* owns */
    struct uva_watch *watch;        /* counts */
    struct uva__tail_client client;
    struct uva__errand errand; /* ends it */
};

static void tail_end(struct uva__errand *errand)
{
    struct tail *tail = uva__container_of(errand, struct tail, errand);
    struct uva__devices *devices = tail->devices;

    uva__watch_release(tail->watch);
    if (tail->client.over != NULL)
        tail->client.over(tail->client.ctx, tail->client.weight);
    uva_array_release(&tail->source);
    uva__replica_drop(tail->replica);
    free(tail);
    uva__devices_quit(devices);
}

/* Any thread, a vendor's too. */
static void tail_over(struct uva_watch *watch)
{
    struct tail *tail = watch->client;

    uva__devices_send(tail->devices, &tail->errand);
}

bool uva__tail_new(struct uva__devices *devices,
                   const struct uva_device_event *event,
                   struct uva__replica *replica,
                   struct ArrowDeviceArray *source,
                   const struct uva__tail_client *client)
{
    struct tail *tail = calloc(1, sizeof(*tail));

    if (tail == NULL)
        return false;
    if (uva__watch_new(devices, event, tail_over, tail, &tail->watch) != 0) {
        free(tail);
        return false;
    }
    tail->watch->steady = true;
    uva__devices_use(devices);
    tail->devices = devices;
    tail->client = *client;
    tail->errand.run = tail_end;
    tail->replica = replica;
    uva__replica_mark(replica, event->sync_event);
    uva_array_move(source, &tail->source);
    uva__watch_begin(tail->watch);
    return true;
}
