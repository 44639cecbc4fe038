/* SPDX-License-Identifier: Apache-2.0 */
/* The command uvarrow-sim-cluster: what thousands of hosts do to the one
 * process that merges their streams, on the virtual clock of the simulator. The
 * library is the real one; the hosts, their network and its link are simulated.
 *
 *   uvarrow-sim-cluster [--NAME NUMBER]...
 *
 *   --hosts N       100 hosts, each with a stream of
 *   --batches N     20 batches, of
 *   --bytes N       1 MiB, which it makes at
 *   --rate N        100 MB/s
 *   --latency N     1,000 us, there and back
 *   --link N        1,250 MB/s, of the link of the merging process
 *   --cpu N         10 us, that this process takes for a batch
 *   --window N      4 batches that it keeps ahead of each host
 *   --slow N        every Nth host makes a tenth of the rate; 0: no host
 *   --killed N      every Nth host is gone after half of its batches
 *   --cut N         every Nth host is silent after half of its batches, and
 * noticed after 5 s
 *   --replicas N    1: a lost host's stream is read on from another host
 *   --seed N        of the order of threads
 *
 * Exit code 0: each batch came once, or was lost with its host and reported; 1:
 * it was not so, or the process hung; 2: bad usage. */
#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "sim/arena.h"
#include "sim/engine.h"
#include "sim/fake_files.h"
#include "sim/fake_threads.h"
#include "sim/fake_uv.h"
#include "uvarrow/uvarrow.h"

#define US_NS UINT64_C(1000)
#define S_NS  UINT64_C(1000000000)
#define STEPS INT64_C(4000000000)
#define TEN_HOURS                                                              \
    (UINT64_C(36000) * S_NS) /* a process that takes longer hangs */

/* ---- what is simulated -------------------------------------------------- */

static struct {
    int64_t hosts, batches, bytes, rate, latency, link, cpu, window, slow,
        killed, cut, between, memory, replicas, seed;
} wish = {.hosts = 100,
          .batches = 20,
          .bytes = 1 << 20,
          .rate = 100,
          .latency = 1000,
          .link = 1250,
          .cpu = 10,
          .window = 4,
          .between = 30,
          .seed = 1};

struct host {
    int64_t taken; /* batches that the consumer got */
    bool bad;      /* it loses its stream, once */
    bool silent;   /* it says nothing of that */
};

/* A stream of a host, of which a replica may be another one. */
struct feed {
    struct feed
        *before; /* opened before; all stay, as the heap may have them */
    struct host *host;
    struct uva_pusher *pusher; /* owns; NULL: closed */
    int64_t left;              /* batches */
    int64_t fails_at;          /* of `left`; -1: never */
    bool blocked;              /* its window is full */
    bool writable;             /* it had room again before the push returned */
    bool over;                 /* the stream wants no more */
};

/* The next batch of a feed, which arrives then. */
struct arrival {
    uint64_t at_ns;
    struct feed *feed;
};

static struct {
    struct host *hosts;
    struct feed *feeds;   /* the last one */
    struct arrival *heap; /* the earliest is first */
    size_t count, room;
    bool changed;      /* since the network looked */
    uint64_t link_ns;  /* when the link is free again */
    uint64_t began_ns; /* of the streams */
    struct uva_runtime *runtime;
    struct uva_outcome outcome;
    bool started, done;
    char *data;              /* of all batches */
    int64_t held, held_most; /* bytes of batches in the process */
    int64_t heap_bytes, heap_most;
    int64_t batches, retries;
    uint64_t last_ns, gap_ns; /* of batches; the longest between two */
    int64_t turns;
} world;

static uint64_t since_ns(void)
{
    return sim_now_ns() - world.began_ns;
}

/* ---- memory of the library ---------------------------------------------- */

static void *counted_alloc(void *ctx, size_t size, size_t align)
{
    (void)ctx;
    world.heap_bytes += (int64_t)size;
    if (world.heap_bytes > world.heap_most)
        world.heap_most = world.heap_bytes;
    return aligned_alloc(align, (size + align - 1) / align * align);
}

static void counted_dealloc(void *ctx, void *block, size_t size)
{
    (void)ctx;
    world.heap_bytes -= (int64_t)size;
    free(block);
}

/* ---- arrivals ----------------------------------------------------------- */

static void heap_swap(size_t a, size_t b)
{
    const struct arrival kept = world.heap[a];

    world.heap[a] = world.heap[b];
    world.heap[b] = kept;
}

static void heap_push(uint64_t at_ns, struct feed *feed)
{
    size_t at = world.count++;

    if (world.count > world.room) {
        world.room = 2 * world.count;
        world.heap = realloc(world.heap, world.room * sizeof(*world.heap));
        if (world.heap == NULL)
            abort();
    }
    world.heap[at] = (struct arrival){at_ns, feed};
    for (; at > 0 && world.heap[(at - 1) / 2].at_ns > at_ns; at = (at - 1) / 2)
        heap_swap(at, (at - 1) / 2);
    world.changed = true;
}

static struct arrival heap_pop(void)
{
    const struct arrival first = world.heap[0];
    size_t at = 0, least;

    world.heap[0] = world.heap[--world.count];
    for (;;) {
        least = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2; child++)
            if (child < world.count &&
                world.heap[child].at_ns < world.heap[least].at_ns)
                least = child;
        if (least == at)
            return first;
        heap_swap(at, least);
        at = least;
    }
}

/* Has the next batch come when the host has made it, and the link is free. */
static void feed_send(struct feed *feed, uint64_t from_ns)
{
    const bool slow =
        wish.slow > 0 && (feed->host - world.hosts) % wish.slow == 0;
    const uint64_t made_ns =
        from_ns + (uint64_t)(wish.bytes * 1000 / wish.rate * (slow ? 10 : 1));
    uint64_t at_ns = made_ns > world.link_ns ? made_ns : world.link_ns;

    world.link_ns = at_ns + (uint64_t)(wish.bytes * 1000 / wish.link);
    heap_push(at_ns, feed);
}

/* ---- batches: one column of bytes, whose length names the host ------------
 */

static void child_release(struct ArrowArray *child)
{
    child->release = NULL;
}

struct batch {
    struct ArrowArray child, *children[1];
    const void *none[1], *buffers[2];
};

static void batch_release(struct ArrowArray *array)
{
    struct batch *batch = array->private_data;

    if (batch->child.release != NULL)
        batch->child.release(&batch->child);
    world.held -= array->length;
    free(batch);
    array->release = NULL;
}

static void batch_make(const struct host *host, struct ArrowDeviceArray *out)
{
    const int64_t length = wish.bytes + (host - world.hosts);
    struct batch *batch = calloc(1, sizeof(*batch));

    if (batch == NULL)
        abort();
    batch->children[0] = &batch->child;
    batch->buffers[1] = world.data;
    batch->child = (struct ArrowArray){.length = length,
                                       .n_buffers = 2,
                                       .buffers = batch->buffers,
                                       .release = child_release};
    *out = (struct ArrowDeviceArray){.device_id = -1,
                                     .device_type = ARROW_DEVICE_CPU,
                                     .array = {.length = length,
                                               .n_buffers = 1,
                                               .n_children = 1,
                                               .buffers = batch->none,
                                               .children = batch->children,
                                               .release = batch_release,
                                               .private_data = batch}};
    world.held += length;
    if (world.held > world.held_most)
        world.held_most = world.held;
}

static void schema_release(struct ArrowSchema *schema)
{
    if (schema->n_children > 0 && schema->children[0]->release != NULL)
        schema->children[0]->release(schema->children[0]);
    if (schema->n_children > 0) {
        free(schema->children[0]);
        free(schema->children);
    }
    schema->release = NULL;
}

static void schema_make(struct ArrowSchema *out)
{
    struct ArrowSchema *child = calloc(1, sizeof(*child));
    struct ArrowSchema **children = calloc(1, sizeof(struct ArrowSchema *));

    if (child == NULL || children == NULL)
        abort();
    *child = (struct ArrowSchema){
        .format = "c", .name = "n", .release = schema_release};
    children[0] = child;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = children,
                                .release = schema_release};
}

/* ---- feeds -------------------------------------------------------------- */

/* Room again: the host hears of it later. */
static void on_writable(void *ctx, struct uva_pusher *pusher)
{
    struct feed *feed = ctx;

    (void)pusher;
    if (!feed->blocked) {
        feed->writable = true;
        return;
    }
    feed->blocked = false;
    feed_send(feed, sim_now_ns() + (uint64_t)wish.latency * US_NS);
}

/* The network closes the pusher, as it may be pushing just now. */
static void on_closed(void *ctx, struct uva_pusher *pusher)
{
    struct feed *feed = ctx;

    (void)pusher;
    feed->over = true;
    heap_push(sim_now_ns(), feed);
}

static struct uva_stream *feed_open(struct host *host, int64_t left, bool again)
{
    struct feed *feed = calloc(1, sizeof(*feed));
    struct ArrowSchema schema;
    struct uva_stream *stream;
    char name[32];

    if (feed == NULL)
        abort();
    *feed = (struct feed){
        .before = world.feeds, .host = host, .left = left, .fails_at = -1};
    world.feeds = feed;
    if (host->bad && !again)
        feed->fails_at = left / 2;
    stream = uva_stream_from_pusher(
        world.runtime,
        &(struct uva_push_source){.on_writable = on_writable,
                                  .on_closed = on_closed,
                                  .ctx = feed,
                                  .window = {.batches = (int32_t)wish.window}},
        &feed->pusher);
    schema_make(&schema);
    if (uva_pusher_set_schema(feed->pusher, &schema) != 0)
        abort();
    (void)snprintf(name, sizeof(name), "host %d", (int)(host - world.hosts));
    (void)!uva_stream_set_name(stream, name);
    feed_send(feed, sim_now_ns() + (uint64_t)wish.latency * US_NS);
    return stream;
}

static void feed_close(struct feed *feed, const struct uva_error *error)
{
    struct uva_pusher *pusher = feed->pusher;

    feed->pusher = NULL;
    if (pusher != NULL)
        uva_pusher_close(pusher, error, NULL);
}

static void feed_push(struct feed *feed)
{
    struct ArrowDeviceArray batch;
    int code;

    batch_make(feed->host, &batch);
    feed->left--;
    feed->writable = false;
    code = uva_pusher_push(feed->pusher, &batch, NULL, 0);
    if (code != 0 && code != EAGAIN && code != EPIPE)
        sim_fail("a push fails: %s", uva_error_name(code));
    if (code == EPIPE || feed->left == 0) {
        feed_close(feed, NULL);
        return;
    }
    if (code == EAGAIN && !feed->writable)
        feed->blocked = true;
    else
        feed_send(feed, sim_now_ns());
}

static void feed_arrive(struct feed *feed)
{
    struct uva_error error;

    if (feed->pusher == NULL)
        return;
    if (feed->over)
        feed_close(feed, NULL);
    else if (feed->left != feed->fails_at)
        feed_push(feed);
    else if (!feed->host->silent &&
             uva_error_set(&error, ECONNRESET, "connection reset") != 0)
        feed_close(feed, &error);
}

/* ---- fibers ------------------------------------------------------------- */

static bool network_has_work(void *arg)
{
    (void)arg;
    return (world.done && world.count == 0) || world.changed ||
           (world.count > 0 && world.heap[0].at_ns <= sim_now_ns());
}

static bool world_is_started(void *arg)
{
    (void)arg;
    return world.started;
}

static void network(void *arg)
{
    sim_wait(world_is_started, arg);
    while (!world.done || world.count > 0) {
        if (world.count > 0 && world.heap[0].at_ns <= sim_now_ns()) {
            feed_arrive(heap_pop().feed);
            continue;
        }
        world.changed = false;
        if (!sim_wait_until(network_has_work, NULL,
                            world.count > 0 ? world.heap[0].at_ns
                                            : TEN_HOURS) &&
            sim_now_ns() >= TEN_HOURS)
            sim_fail(
                "the merge hangs: %d batches, done %d, heap %d, started %d",
                (int)world.batches, world.done, (int)world.count,
                world.started);
    }
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    struct host *host = &world.hosts[batch->data.array.length - wish.bytes];
    uint64_t now;

    (void)ctx;
    sim_pass_time(sim_now_ns() + (uint64_t)wish.cpu * US_NS);
    now = since_ns();
    host->taken++;
    world.batches++;
    if (now - world.last_ns > world.gap_ns)
        world.gap_ns = now - world.last_ns;
    world.last_ns = now;
    return 0;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    world.outcome = *outcome;
    world.last_ns = since_ns();
}

/* Another host goes on with the batches that have not come. */
static struct uva_stream *again(void *ctx, const struct uva_outcome *failed,
                                int32_t attempt, int64_t passed, int64_t rows)
{
    (void)failed;
    (void)attempt;
    (void)rows;
    world.retries++;
    return feed_open(ctx, wish.batches - passed, true);
}

static struct uva_stream *host_open(struct host *host, int64_t number)
{
    struct uva_stream *stream;
    int code = 0;

    host->silent = wish.cut > 0 && number % wish.cut == 1;
    host->bad = host->silent || (wish.killed > 0 && number % wish.killed == 1);
    stream = feed_open(host, wish.batches, false);
    if (wish.cut > 0)
        code = uva_stream_timeout(
            stream, &(struct uva_timeout){.between_ms = wish.between * 1000});
    if (code == 0 && wish.replicas > 0)
        code = uva_stream_retry(
            stream,
            &(struct uva_retry){.again = again, .ctx = host, .resume = true});
    if (code != 0)
        sim_fail("a stream is not built: %s", uva_error_name(code));
    return stream;
}

static void merge_start(void)
{
    const size_t count = (size_t)wish.hosts;
    struct uva_stream **streams = calloc(count, sizeof(*streams));
    struct uva_error error;

    if (streams == NULL)
        abort();
    world.began_ns = sim_now_ns();
    for (size_t i = 0; i < count; i++)
        streams[i] = host_open(&world.hosts[i], (int64_t)i);
    if (uva_stream_merge(
            streams[0], streams + 1, count - 1,
            &(struct uva_merge){.keep_going = true,
                                .window = {.batches = (int32_t)wish.window}}) !=
            0 ||
        uva_stream_for_each(
            streams[0],
            &(struct uva_consumer){.on_batch = on_batch, .on_done = on_done},
            &error) != 0)
        sim_fail("the streams cannot be merged");
    uva_stream_release(streams[0]);
    free(streams);
}

static void merging_process(void *arg)
{
    const struct uva_runtime_options options = {
        .allocator = {.alloc = counted_alloc, .dealloc = counted_dealloc},
        .memory_bytes = wish.memory << 20};
    struct uva_runtime_stats stats;
    uv_loop_t loop;

    (void)arg;
    (void)uv_loop_init(&loop);
    if (uva_runtime_open(&loop, &options, &world.runtime, NULL) != 0)
        sim_fail("the runtime does not open");
    merge_start();
    world.started = true;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    uva_runtime_get_stats(world.runtime, &stats);
    world.turns = stats.turns;
    (void)uva_runtime_close(world.runtime, 0, NULL, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&loop);
    world.done = true;
}

static void first_fiber(void *arg)
{
    arena_begin();
    fake_files_begin();
    fake_uv_begin(0);
    fake_threads_begin(0);
    sim_pass_time(S_NS); /* no clock of a machine reads 0 */
    sim_spawn("network", network, arg);
    sim_spawn("merging process", merging_process, arg);
}

/* ---- figures ------------------------------------------------------------ */

/* The seconds that it takes at least: by the link, or by one host. */
static double least_seconds(void)
{
    const double all = (double)wish.hosts * (double)wish.batches,
                 bytes = (double)wish.bytes,
                 link = all * bytes / (double)wish.link / 1e6,
                 cpu = all * (double)wish.cpu / 1e6,
                 host = (double)wish.batches * bytes / (double)wish.rate / 1e6 *
                        (wish.slow > 0 ? 10 : 1);
    double most = link > cpu ? link : cpu;

    return most > host ? most : host;
}

/* The hosts that did not give all of their batches, or had to be replaced. */
struct losses {
    int64_t hosts;    /* that did not give all */
    int64_t innocent; /* of these: they were well, and a limit was too short */
};

/* Whether each batch came once, or was lost with its host, and reported. */
static bool counts_are_right(struct losses *lost)
{
    for (int64_t i = 0; i < wish.hosts; i++) {
        const struct host *host = &world.hosts[i];
        const bool whole = host->taken == wish.batches;

        lost->hosts += !whole;
        lost->innocent += !whole && !host->bad;
        if (host->taken > wish.batches || (!whole && wish.replicas > 0) ||
            (!whole && !host->bad && wish.cut == 0) ||
            (!whole && host->bad && wish.cut == 0 &&
             host->taken != wish.batches - wish.batches / 2))
            return false;
    }
    return (world.outcome.end == UVA_END_COMPLETE) == (lost->hosts == 0) &&
           world.held == 0 && world.heap_bytes == 0;
}

static void print_figures(const struct losses *lost)
{
    printf("{\"hosts\": %" PRId64 ", \"batches\": %" PRId64
           ", \"lost\": %" PRId64 ", \"innocent\": %" PRId64
           ", \"retries\": %" PRId64 ", \"seconds\": %.1f, \"least\": %.1f, "
           "\"gap\": %.1f, \"held_mb\": %.0f, \"heap_mb\": %.1f, "
           "\"turns\": %" PRId64 "}\n",
           wish.hosts, world.batches, lost->hosts, lost->innocent,
           world.retries, (double)world.last_ns / 1e9, least_seconds(),
           (double)world.gap_ns / 1e9, (double)world.held_most / (1 << 20),
           (double)world.heap_most / (1 << 20), world.turns);
}

static bool wish_read(const char *name, const char *value)
{
    static const struct {
        const char *name;
        int64_t *value;
    } known[] = {{"--hosts", &wish.hosts},     {"--batches", &wish.batches},
                 {"--bytes", &wish.bytes},     {"--rate", &wish.rate},
                 {"--latency", &wish.latency}, {"--link", &wish.link},
                 {"--cpu", &wish.cpu},         {"--window", &wish.window},
                 {"--slow", &wish.slow},       {"--killed", &wish.killed},
                 {"--cut", &wish.cut},         {"--replicas", &wish.replicas},
                 {"--between", &wish.between}, {"--memory", &wish.memory},
                 {"--seed", &wish.seed}};

    for (size_t i = 0; value != NULL && i < sizeof(known) / sizeof(*known); i++)
        if (strcmp(name, known[i].name) == 0) {
            *known[i].value = strtoll(value, NULL, 10);
            return *known[i].value >= 0;
        }
    return false;
}

static bool wishes_are_possible(void)
{
    return wish.hosts > 0 && wish.batches > 1 && wish.bytes > 0 &&
           wish.rate > 0 && wish.link > 0 && wish.window > 0;
}

int main(int argc, char **argv)
{
    struct sim_plan plan = {.scheduler = SIM_UNIFORM, .steps = STEPS};
    struct losses lost = {0};
    enum sim_end end;

    for (int i = 1; i < argc; i += 2)
        if (!wish_read(argv[i], argv[i + 1]))
            return fprintf(stderr, "usage: see the head of cluster.c\n"), 2;
    if (!wishes_are_possible())
        return fprintf(stderr, "a number is not possible\n"), 2;
    plan.seed = (uint64_t)wish.seed;
    world.hosts = calloc((size_t)wish.hosts, sizeof(*world.hosts));
    world.data = calloc(1, (size_t)(wish.bytes + wish.hosts));
    if (world.hosts == NULL || world.data == NULL)
        return 1;
    end = sim_run(&plan, first_fiber, NULL);
    if (end != SIM_DONE) {
        fprintf(stderr, "%s %s\n",
                end == SIM_CUT ? "too many steps" : "failed:", sim_failure());
        return 1;
    }
    if (!counts_are_right(&lost)) {
        fprintf(stderr, "batches are missing, or not released: %s\n",
                world.outcome.error.message);
        return 1;
    }
    print_figures(&lost);
    return 0;
}
