/* SPDX-License-Identifier: Apache-2.0 */
/* Producer runs from start to release, each played with a recording consumer
 * that behaves in another way. A case names some of them by bits in its `arg`.
 */
#ifndef UVA_TCK_PRODUCER_RUNS_H
#define UVA_TCK_PRODUCER_RUNS_H

#include "tck/cases.h"

/* Numbers of the scenarios: bits of a case's `arg`. */
enum {
    EACH = 0,        /* requested one at a time */
    ALL,             /* all requested at once */
    SOME,            /* three requested ahead, extracted by other threads */
    AROUND,          /* requested and extracted by other threads */
    NOTHING,         /* every task is extracted to NULL */
    LATER,           /* tasks are extracted after release */
    KEPT,            /* arrays are kept until after release */
    EMPTY,           /* a stream without batches */
    LINGERS,         /* slow callbacks */
    SLOW,            /* a slow source */
    SCRIBBLES,       /* the task is overwritten once it is copied */
    VANISHES,        /* the handler's memory is unmapped in release */
    LEAVES,          /* the consumer does not release the schema */
    LEAVES_REFUSING, /* it does not accept or release the schema */
    TAGGED,          /* tasks with metadata */
    TAGGED_FAILS,
    STOP_SCHEMA, /* cancelled in on_schema */
    STOP_FIRST,
    STOP_THIRD,
    STOP_LAST,
    STOP_ENDLESS, /* cancelled by another thread */
    STOP_LATER,   /* cancelled while tasks are held */
    STOP_FAILS,   /* the cancel itself fails */
    STOP_STAYS,   /* the callback that cancels returns late */
    NO_SCHEMA,    /* the consumer refuses the schema */
    NO_FIRST,
    NO_THIRD,
    NO_LATER, /* a task is refused while others are held */
    NO_TAKEN, /* a task is extracted, then refused */
    FAILS,
    FAILS_AT_ONCE, /* fails before any batch */
    FAILS_FIRST,   /* fails before the schema */
    FAILS_LATER,   /* fails while tasks are held */
    FAILS_ASKED,   /* fails after batches that were all requested before */
    TASK_FAILS,
    TASK_FAILS_LAST, /* the last task of the stream */
    SCENARIO_COUNT
};

#define BIT(scenario) (UINT64_C(1) << (scenario))
#define QUIET         (UINT64_C(1) << 62) /* also wait for late callbacks */
#define ALL_FREED     (UINT64_C(1) << 63) /* also check that all was freed */

#define WHOLES                                                                 \
    (BIT(EACH) | BIT(ALL) | BIT(SOME) | BIT(AROUND) | BIT(NOTHING) |           \
     BIT(LATER) | BIT(EMPTY) | BIT(LINGERS) | BIT(SLOW))
#define STOPS                                                                  \
    (BIT(STOP_SCHEMA) | BIT(STOP_FIRST) | BIT(STOP_THIRD) | BIT(STOP_LAST) |   \
     BIT(STOP_ENDLESS) | BIT(STOP_LATER))
/* Leaves NO_TAKEN out, which makes producers crash: it has its own case. */
#define REFUSALS (BIT(NO_FIRST) | BIT(NO_THIRD))
#define FAILURES                                                               \
    (BIT(FAILS) | BIT(FAILS_AT_ONCE) | BIT(FAILS_FIRST) | BIT(FAILS_LATER))
#define EVERY (WHOLES | STOPS | BIT(NO_SCHEMA) | REFUSALS | FAILURES)

/* Plays the scenarios that the case names. Thread: the case's. */
void uva__producer_runs_play(struct uva__case_run *run);

#endif
