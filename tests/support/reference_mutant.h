/* SPDX-License-Identifier: Apache-2.0 */
/* A way to break one clause: how a reference peer differs, at which point, and
 * a pair of peers for which that shows. The peers call the mutant at each
 * point, and it acts at a single point. */
#ifndef UVA_SUPPORT_REFERENCE_MUTANT_H
#define UVA_SUPPORT_REFERENCE_MUTANT_H

#include "support/reference_consumer.h"
#include "support/reference_producer.h"

/* Points. An act that returns true replaces the operation named here. */
enum reference_point {
    REFERENCE_AT_NOTHING,
    /* in a producer; the operation, then the object of `at` */
    REFERENCE_AT_START,      /* setting handler->producer */
    REFERENCE_AT_SCHEMA,     /* on_schema */
    REFERENCE_AT_ISSUE,      /* after a schema was made; the struct */
    REFERENCE_AT_STARTED,    /* after on_schema returned 0 */
    REFERENCE_AT_OFFER,      /* on_next_task; its struct ArrowAsyncTask */
    REFERENCE_AT_OFFERED,    /* after the call; the task */
    REFERENCE_AT_WAIT,       /* waiting for a request */
    REFERENCE_AT_END,        /* on_next_task(NULL) */
    REFERENCE_AT_ENDED,      /* after the call */
    REFERENCE_AT_FAIL,       /* on_error */
    REFERENCE_AT_FAILED,     /* after the call */
    REFERENCE_AT_REFUSED,    /* after a callback returned an error */
    REFERENCE_AT_RELEASE,    /* release */
    REFERENCE_AT_RELEASED,   /* after the call */
    REFERENCE_AT_REQUEST,    /* counting a request; its int64_t */
    REFERENCE_AT_CANCELLING, /* recording a cancel */
    REFERENCE_AT_CANCEL,     /* after a cancel was recorded */
    REFERENCE_AT_EXTRACT,    /* an extraction; struct reference_extraction */
    REFERENCE_AT_FILLED,     /* after it gave an array; the same struct */
    /* in a consumer; the operation, then the object of `at` */
    REFERENCE_AT_READY,   /* after the handler was filled; the handler */
    REFERENCE_AT_STEP,    /* a step */
    REFERENCE_AT_GREET,   /* taking the schema; its struct ArrowSchema */
    REFERENCE_AT_GREETED, /* after requesting in on_schema */
    REFERENCE_AT_TAKE,    /* keeping a task; its struct ArrowAsyncTask */
    REFERENCE_AT_REFUSE,  /* the code that refuses; its int */
    REFERENCE_AT_PULL,    /* extracting; struct reference_pull */
    REFERENCE_AT_PULLED,  /* after it; the same struct */
    REFERENCE_AT_DROP,    /* releasing an array; its struct ArrowArray */
    REFERENCE_AT_GATE,    /* waiting for calls before a callback returns */
    REFERENCE_AT_ERROR,   /* inside on_error */
    REFERENCE_AT_GO       /* inside release */
};

struct reference_extraction {
    struct reference_item *item;
    struct ArrowDeviceArray *out; /* NULL: not wanted */
    int code;                     /* code to return */
};

struct reference_pull {
    struct ArrowAsyncTask *task; /* copy of the consumer */
    struct ArrowDeviceArray *out;
    int code; /* code that was returned */
};

/* Two peers, one with a mutant. */
struct reference_pair {
    struct reference_producer_options producer;
    struct reference_consumer_options consumer;
};

/* The needs of detecting a mutant, in addition to a check. */
enum reference_shows {
    REFERENCE_SHOWS_DEEP = 1,     /* a deep check */
    REFERENCE_SHOWS_SLOW = 2,     /* short time limits */
    REFERENCE_SHOWS_PERTURBED = 4 /* a perturb_seed */
};

struct reference_mutant {
    const char *clause;  /* the clause it breaks: "AP-06" */
    const char *variant; /* variant; "" if there is only one */
    enum reference_point point;
    bool (*act)(void *peer, void *at); /* `peer` is the producer or consumer */
    int arg;                           /* selects a variant of the act */
    const struct reference_pair *pair; /* peers for which it shows */
    int shows;                         /* flags of enum reference_shows */
    const char *also; /* clause that the other peer then breaks; or NULL */
};

/* Runs the mutant's act if this is its point. */
static inline bool reference_mutant_acts(const struct reference_mutant *mutant,
                                         enum reference_point point, void *peer,
                                         void *at)
{
    return mutant != NULL && mutant->point == point && mutant->act(peer, at);
}

/* Return all mutants of a kind of peer. */
const struct reference_mutant *producer_mutants(int *count);
const struct reference_mutant *consumer_mutants(int *count);

#endif
