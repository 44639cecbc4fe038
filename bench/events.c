/* SPDX-License-Identifier: Apache-2.0 */
/* Events of a device without costs: the loop time that `ready` takes for a
 * batch with a completed event; for 4,096 outstanding events, the loop time,
 * the number of wake-ups if they complete together, and whether they need
 * threads; and the cost of waiting 100 ms for one event.
 *
 * `window` is the number of events of a stream, `more` the number of streams;
 * events complete by callback unless BY_POLLING. */
#define _GNU_SOURCE
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "event.h"
#include "host.h"

enum { BY_POLLING = 1 << 8, WAITS_MS = 100 };

/* ---- completed events --------------------------------------------------- */

/* `window`: 0: no stage; 1: a stage, but no events; 2: a stage and events. */
static double run_complete(const struct bench_case *self,
                           const struct bench_how *how)
{
    const struct uva_arrow_source on_loop = {.on_loop = true};
    struct event_counts counts = {0};
    struct uva_stream *stream;
    struct event_input input;
    struct tally tally = {0};
    struct event event = {NULL};
    struct host host;
    double begun;

    event_end(&event);
    host_open(&host, how, 0);
    event_register(host.runtime, true, &counts);
    if (self->window == 2)
        event_input_init(&input, how->batches, &event, 0);
    else
        input_init(&input.input, how->batches);
    stream =
        uva_stream_from_device_stream(host.runtime, &input.input.abi, &on_loop);
    if (self->window > 0)
        bench_check(uva_stream_ready(stream, NULL) == 0, "ready");
    begun = bench_now_ns(how);
    host_for_each(&host, stream, &tally);
    begun = host_run(&host) - begun;
    host_close(&host);
    tally_check(&tally, how->batches);
    bench_check(atomic_load(&counts.queries) == 0, "an event was pending");
    return begun;
}

/* ---- outstanding -------------------------------------------------------- */

struct group {
    struct host host;
    struct event_counts counts;
    int64_t each;    /* events for each stream */
    int64_t streams; /* number of streams */
    struct member {
        struct event_input input;
        struct tally tally;
    } * members;          /* owns */
    struct event *events; /* owns: events of all streams */
    bool by_callback;
    int pause_ms; /* from the last arming to the first completion */
    int threads;  /* threads of the process while all events were outstanding */
    double waited_ns;   /* CPU time used in the pause */
    atomic_bool ending; /* completions are about to begin */
    int64_t wakes;      /* wake-ups of the loop from then on */
    pthread_t ender;    /* thread that completes all events */
    uv_check_t check;
};

static double cpu_ns(clockid_t clock)
{
    struct timespec now;

    (void)clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int threads_now(void)
{
    DIR *folder = opendir("/proc/self/task");
    int count = -2; /* leaves out . and .. */

    bench_check(folder != NULL, "/proc");
    while (readdir(folder) != NULL)
        count++;
    (void)closedir(folder);
    return count;
}

static void pause_ms(int ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000,
                                   .tv_nsec = ms % 1000 * 1000000L};

    (void)nanosleep(&pause, NULL);
}

static bool group_is_waited_for(struct group *group)
{
    const long all = (long)(group->each * group->streams);

    return group->by_callback ? atomic_load(&group->counts.arms) == all
                              : atomic_load(&group->counts.queries) >= 2 * all;
}

static void *group_end(void *arg)
{
    struct group *group = arg;

    while (!group_is_waited_for(group))
        pause_ms(1);
    group->threads = threads_now();
    group->waited_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID);
    pause_ms(group->pause_ms);
    group->waited_ns = cpu_ns(CLOCK_PROCESS_CPUTIME_ID) - group->waited_ns;
    atomic_store(&group->ending, true);
    for (int64_t i = 0; i < group->each * group->streams; i++)
        event_end(&group->events[i]);
    return NULL;
}

static void group_on_wake(uv_check_t *check)
{
    struct group *group = check->data;

    group->wakes += atomic_load(&group->ending);
}

static void group_open(struct group *group, const struct bench_case *self,
                       const struct bench_how *how)
{
    *group = (struct group){.each = self->window,
                            .streams = self->more,
                            .by_callback = (self->flags & BY_POLLING) == 0,
                            .pause_ms = group->pause_ms};
    group->members = calloc((size_t)group->streams, sizeof(*group->members));
    group->events =
        calloc((size_t)(group->streams * group->each), sizeof(*group->events));
    bench_check(group->members != NULL && group->events != NULL, "memory");
    host_open(&group->host, how, 0);
    event_register(group->host.runtime, group->by_callback, &group->counts);
    bench_check(uv_check_init(&group->host.loop, &group->check) == 0, "check");
    group->check.data = group;
    (void)uv_check_start(&group->check, group_on_wake);
    uv_unref((uv_handle_t *)&group->check);
}

static void group_start(struct group *group)
{
    const struct uva_arrow_source on_loop = {.on_loop = true};
    const struct uva_ready options = {
        .window = {.batches = (int32_t)group->each, .bytes = INT64_MAX}};

    for (int64_t i = 0; i < group->streams; i++) {
        struct member *member = &group->members[i];
        struct uva_stream *stream;

        event_input_init(&member->input, group->each,
                         &group->events[i * group->each], -1);
        stream = uva_stream_from_device_stream(
            group->host.runtime, &member->input.input.abi, &on_loop);
        bench_check(uva_stream_ready(stream, &options) == 0, "ready");
        host_for_each(&group->host, stream, &member->tally);
    }
}

static void group_close(struct group *group)
{
    uv_close((uv_handle_t *)&group->check, NULL);
    host_close(&group->host);
    for (int64_t i = 0; i < group->streams; i++)
        tally_check(&group->members[i].tally, group->each);
    free(group->members);
    free(group->events);
}

/* Returns the CPU time of the loop thread in nanoseconds. */
static double group_run(struct group *group, const struct bench_case *self,
                        const struct bench_how *how)
{
    double begun;

    group_open(group, self, how);
    bench_check(pthread_create(&group->ender, NULL, group_end, group) == 0,
                "thread");
    begun = cpu_ns(CLOCK_THREAD_CPUTIME_ID);
    group_start(group);
    (void)host_run(&group->host);
    begun = cpu_ns(CLOCK_THREAD_CPUTIME_ID) - begun;
    (void)pthread_join(group->ender, NULL);
    group_close(group);
    return begun;
}

static void print_below(const char *name, const char *what, double value,
                        const char *unit)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "%s/%s", name, what);
    bench_print(path, value, unit);
}

/* Loop time is the mean of several runs, the number of wake-ups their
 * maximum. */
static double run_outstanding(const struct bench_case *self,
                              const struct bench_how *how)
{
    const int64_t all = (int64_t)self->window * self->more;
    const int64_t runs = how->batches / all + 1;
    struct group group = {.pause_ms = 1};
    double loop_ns = 0;
    int64_t wakes = 0;

    for (int64_t i = 0; i < runs; i++) {
        loop_ns += group_run(&group, self, how) / (double)(runs * all);
        wakes = group.wakes > wakes ? group.wakes : wakes;
    }
    print_below(self->name, "loop", loop_ns, "ns");
    print_below(self->name, "wakes", (double)wakes, "wakes");
    print_below(self->name, "threads", group.threads, "threads");
    return 0;
}

/* Returns the share of a core that an idle process uses. */
static double run_waiting(const struct bench_case *self,
                          const struct bench_how *how)
{
    struct group group = {.pause_ms = WAITS_MS};

    (void)group_run(&group, self, how);
    bench_print(self->name, group.waited_ns / (WAITS_MS * 1e4), "%");
    return 0;
}

static const struct bench_case cases[] = {
    {"events/complete/no-stage", 1000000, run_complete, 0, 0, 0},
    {"events/complete/no-event", 1000000, run_complete, 1, 0, 0},
    {"events/complete/event", 1000000, run_complete, 2, 0, 0},
    {"events/1/callback", 1, run_outstanding, 1, 1, BENCH_PRINTS},
    {"events/1/polling", 1, run_outstanding, 1, 1, BENCH_PRINTS | BY_POLLING},
    {"events/4096/callback", 100000, run_outstanding, 4096, 1, BENCH_PRINTS},
    {"events/4096/polling", 100000, run_outstanding, 4096, 1,
     BENCH_PRINTS | BY_POLLING},
    {"events/64x64/callback", 100000, run_outstanding, 64, 64, BENCH_PRINTS},
    {"events/waiting/callback", 1, run_waiting, 1, 1, BENCH_PRINTS},
    {"events/waiting/polling", 1, run_waiting, 1, 1, BENCH_PRINTS | BY_POLLING},
};

int main(int argc, char **argv)
{
    return bench_main(argc, argv, cases, sizeof(cases) / sizeof(cases[0]));
}
