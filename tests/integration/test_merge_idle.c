/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of a merged stream costs the same beside 1,000 idle inputs as beside
 * two: there is no pass over the inputs, and no wake-up of each. Whatever the
 * library does for an input begins at its place in the memory of the merge. So
 * the pages with these places are taken away while batches of two other inputs
 * flow, and each access is counted. */
#define _GNU_SOURCE
#include <check.h>
#include <signal.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stream/inlet.h"
#include "stream/stream_impl.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "uvarrow/stages.h"

enum { INPUTS = 1000, SHARE_USED = 20, ROUNDS = 100 };

static struct loop_fixture loop;
static struct recording_consumer consumer;
static struct uva_pusher *pushers[INPUTS];
static struct uva_stream *streams[INPUTS];

/* The whole pages of the inputs that get no batch. */
static char *idle;
static size_t idle_bytes;
static volatile sig_atomic_t touched;

/* ---- memory ------------------------------------------------------------- */

/* Finds the pages: the merge is one block, with its inputs in order. The first
 * and the last ones may be used. */
static void idle_find(const struct uva__source *merge)
{
    const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
    const uintptr_t begin = (uintptr_t)merge + merge->size / SHARE_USED,
                    end = (uintptr_t)merge + merge->size -
                          merge->size / SHARE_USED;

    ck_assert(merge->size > INPUTS * sizeof(struct uva__inlet));
    idle = (char *)((begin + page - 1) / page * page);
    idle_bytes = end / page * page - (uintptr_t)idle;
}

static void idle_allow(int access)
{
    if (mprotect(idle, idle_bytes, access) != 0)
        _exit(2);
}

/* Counts an access to an idle input, and lets it and those after it through. */
static void on_fault(int number, siginfo_t *info, void *context)
{
    const uintptr_t at = (uintptr_t)info->si_addr, begin = (uintptr_t)idle;

    (void)context;
    if (at < begin || at >= begin + idle_bytes)
        (void)signal(number, SIG_DFL); /* another error ends the process */
    else
        idle_allow(PROT_READ | PROT_WRITE);
    touched++;
}

static void faults_watch(void)
{
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO};

    touched = 0;
    ck_assert_int_eq(sigaction(SIGSEGV, &action, NULL), 0);
    ck_assert_int_eq(sigaction(SIGBUS, &action, NULL), 0);
}

/* ---- streams ------------------------------------------------------------ */

static void set_up(void)
{
    recording_init(&consumer);
    loop_open(&loop);
    for (int i = 0; i < INPUTS; i++) {
        struct ArrowSchema schema;

        batch_schema(&schema);
        streams[i] = uva_stream_from_pusher(
            loop.runtime, &(struct uva_push_source){0}, &pushers[i]);
        ck_assert_int_eq(uva_pusher_set_schema(pushers[i], &schema), 0);
    }
}

static void tear_down(void)
{
    for (int i = 0; i < INPUTS; i++)
        uva_pusher_close(pushers[i], NULL, NULL);
    recording_await_done(&consumer, &loop);
    recording_ended(&consumer, UVA_END_COMPLETE, 0, "");
    loop_close(&loop);
}

static void push(int input)
{
    struct ArrowDeviceArray array;

    batch_make(&array, 1);
    ck_assert_int_eq(uva_pusher_push(pushers[input], &array, NULL, 0), 0);
}

static void merge_start(void)
{
    ck_assert_int_eq(
        uva_stream_merge(streams[0], streams + 1, INPUTS - 1, NULL), 0);
    idle_find(streams[0]->tail->source);
    recording_consume(&consumer, streams[0]);
    push(0);
    push(INPUTS - 1);
    recording_await(&consumer, &loop, 2);
    loop_settle(&loop);
}

/* ---- cases -------------------------------------------------------------- */

START_TEST(a_batch_of_one_input_uses_no_other_input)
{
    merge_start();
    faults_watch();
    idle_allow(PROT_NONE);
    for (int i = 1; i <= ROUNDS; i++) {
        push(0);
        push(INPUTS - 1);
        recording_await(&consumer, &loop, 2 + 2 * i);
    }
    loop_settle(&loop);
    idle_allow(PROT_READ | PROT_WRITE);
    ck_assert_int_eq(touched, 0);
}
END_TEST

START_TEST(a_batch_of_an_idle_input_is_noticed)
{
    merge_start();
    faults_watch();
    idle_allow(PROT_NONE);
    push(INPUTS / 2);
    recording_await(&consumer, &loop, 3);
    ck_assert_int_eq(touched, 1);
}
END_TEST

int main(void)
{
    return suite_main("merge_idle", set_up, tear_down,
                      suite_tests("merge_idle",
                                  a_batch_of_one_input_uses_no_other_input,
                                  a_batch_of_an_idle_input_is_noticed, NULL),
                      NULL);
}
