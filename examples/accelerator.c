/* SPDX-License-Identifier: Apache-2.0 */
/* Each wait has a thread: the shortest back end. */
#include "accelerator.h"

#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

struct wait {
    pthread_t thread;
    struct uva_watch *watch;
    struct pollfd one; /* owns: the array may be released before the wait */
};

static int load(void *ctx, const char *path, void **state,
                struct uva_error *error)
{
    (void)path, (void)error;
    *state = ctx; /* there is no library to open */
    return 0;
}

static int query(void *state, const struct uva_device_event *event,
                 struct uva_error *error)
{
    struct pollfd one = {*(int *)event->sync_event, POLLIN, 0};

    (void)state, (void)error;
    return poll(&one, 1, 0) > 0 ? 0 : EAGAIN; /* also if a signal came */
}

static void *wait_run(void *ctx)
{
    struct wait *wait = ctx;
    int count;

    while ((count = poll(&wait->one, 1, -1)) < 0 && errno == EINTR)
        continue;
    uva_watch_notify(wait->watch, count < 0 ? errno : 0, 0, NULL);
    return NULL;
}

static int arm(void *state, const struct uva_device_event *event,
               struct uva_watch *watch, struct uva_error *error)
{
    struct wait *wait = malloc(sizeof(*wait));

    (void)state, (void)error;
    if (wait == NULL)
        return ENOMEM;
    wait->watch = watch;
    wait->one = (struct pollfd){dup(*(int *)event->sync_event), POLLIN, 0};
    uva_watch_slots(watch)[0] = wait;
    if (wait->one.fd >= 0 &&
        pthread_create(&wait->thread, NULL, wait_run, wait) == 0)
        return EINPROGRESS;
    (void)close(wait->one.fd);
    free(wait);
    return EAGAIN; /* the library polls by query */
}

static void settle(void *state, struct uva_watch *watch)
{
    struct wait *wait = uva_watch_slots(watch)[0];

    (void)state;
    (void)pthread_join(wait->thread, NULL);
    (void)close(wait->one.fd);
    free(wait);
}

const struct uva_device_ops accelerator_ops = {.version =
                                                   UVA_DEVICE_OPS_VERSION,
                                               .host_readable = true,
                                               .name = "accelerator",
                                               .load = load,
                                               .query = query,
                                               .arm = arm,
                                               .settle = settle};
