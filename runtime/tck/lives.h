/* SPDX-License-Identifier: Apache-2.0 */
/* Whole lives of a producer, each played with a probe that does something else.
 * A case names some of them in its `arg`, by bits. */
#ifndef UVA_TCK_LIVES_H
#define UVA_TCK_LIVES_H

#include "tck/cases.h"

/* Their numbers: bits of a case's `arg`. */
enum {
    EACH = 0,        /* one at a time */
    ALL,             /* all requested at once */
    SOME,            /* three ahead, extracted by other threads */
    AROUND,          /* everything done by other threads */
    NOTHING,         /* nothing is wanted */
    LATER,           /* extracted when the producer has let go */
    KEPT,            /* arrays kept until then */
    EMPTY,           /* no batch */
    LINGERS,         /* slow callbacks */
    SLOW,            /* a slow source */
    SCRIBBLES,       /* the task is written over */
    VANISHES,        /* the handler's memory goes in release */
    LEAVES,          /* the schema is not released */
    LEAVES_REFUSING, /* nor when it is refused */
    TAGGED,          /* with metadata */
    TAGGED_FAILS,
    STOP_SCHEMA, /* cancelled in on_schema */
    STOP_FIRST,
    STOP_THIRD,
    STOP_LAST,
    STOP_ENDLESS, /* by another thread */
    STOP_LATER,   /* with tasks held */
    STOP_FAILS,   /* the cancel itself fails */
    STOP_STAYS,   /* the callback that cancels takes its time */
    NO_SCHEMA,    /* refused */
    NO_FIRST,
    NO_THIRD,
    NO_TAKEN, /* extracted, then refused */
    FAILS,
    FAILS_AT_ONCE, /* without a batch */
    FAILS_FIRST,   /* without a schema */
    FAILS_LATER,   /* with tasks held */
    TASK_FAILS,
    STORIES
};

#define BIT(story) (UINT64_C(1) << (story))
#define QUIET      (UINT64_C(1) << 62) /* listen for late callbacks */
#define LEDGER     (UINT64_C(1) << 63) /* look for what is left behind */

#define WHOLES                                                                 \
    (BIT(EACH) | BIT(ALL) | BIT(SOME) | BIT(AROUND) | BIT(NOTHING) |           \
     BIT(LATER) | BIT(EMPTY) | BIT(LINGERS) | BIT(SLOW))
#define STOPS                                                                  \
    (BIT(STOP_SCHEMA) | BIT(STOP_FIRST) | BIT(STOP_THIRD) | BIT(STOP_LAST) |   \
     BIT(STOP_ENDLESS) | BIT(STOP_LATER))
/* Not NO_TAKEN, at which producers crash: that has a case of its own. */
#define REFUSALS (BIT(NO_FIRST) | BIT(NO_THIRD))
#define FAILURES                                                               \
    (BIT(FAILS) | BIT(FAILS_AT_ONCE) | BIT(FAILS_FIRST) | BIT(FAILS_LATER))
#define EVERY (WHOLES | STOPS | BIT(NO_SCHEMA) | REFUSALS | FAILURES)

/* Plays the stories that the case names. Thread: the case's. */
void uva__lives_run(struct uva__trial *trial);

#endif
