/* SPDX-License-Identifier: Apache-2.0 */
/* Trouble is made by a fiber, which also ends it: so a schedule ends well. */
#include "sim/fake_server.h"

#include <stddef.h>

#include "sim/engine.h"
#include "sim/expectation.h"
#include "sim/peers.h"

void fake_server_begin(struct fake_server *server, int *fibers)
{
    *server = (struct fake_server){.fibers = fibers};
}

static bool server_answers(void *arg)
{
    return !((const struct fake_server *)arg)->hangs;
}

static void server_await(const struct fake_server *server)
{
    if (server->hangs)
        sim_wait(server_answers, (void *)(uintptr_t)server);
}

bool fake_server_reach(const struct fake_server *server, int64_t start)
{
    server_await(server);
    return !server->is_down && server->starts == start;
}

bool fake_server_accepts(const struct fake_server *server)
{
    server_await(server);
    return !server->is_down;
}

/* ---- trouble ------------------------------------------------------------ */

static bool never(void *arg)
{
    (void)arg;
    return false;
}

static void server_pause(void)
{
    static const uint64_t seconds[] = {1, 5, 30};

    if (peers_chance(1, 2)) {
        for (uint64_t steps = sim_choose(1000); steps > 0; steps--)
            sim_point();
        return;
    }
    (void)sim_wait_until(never, NULL,
                         sim_now_ns() +
                             UINT64_C(1000000000) * seconds[sim_choose(3)]);
}

/* Without a pause it is up again before any call was refused. */
static void server_restart(struct fake_server *server)
{
    expectation_note("a server dies");
    server->is_down = true;
    server->starts++;
    if (peers_chance(1, 2))
        server_pause();
    server->is_down = false;
    expectation_note("a server is started");
}

/* Some sessions do not survive that. */
static void server_stop(struct fake_server *server)
{
    expectation_note("a server hangs");
    server->hangs = true;
    server_pause();
    if (peers_chance(1, 3))
        server->starts++;
    server->hangs = false;
    expectation_note("a server goes on");
}

static void server_troubled(void *arg)
{
    struct fake_server *server = arg;

    for (uint64_t n = 1 + sim_choose(2); n > 0; n--) {
        for (uint64_t steps = sim_choose(2000); steps > 0; steps--)
            sim_point();
        if (peers_chance(1, 2))
            server_restart(server);
        else
            server_stop(server);
    }
    --*server->fibers;
}

void fake_server_trouble(struct fake_server *server)
{
    server->has_trouble = true;
    ++*server->fibers;
    peers_spawn("server in trouble", server_troubled, server);
}
