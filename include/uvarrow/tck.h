/* SPDX-License-Identifier: Apache-2.0 */
/* The test suite for implementations of Arrow's asynchronous device streams,
 * in any language: what an implementation exports to be tested ("subject"),
 * and how a program runs the suite; the command is `uvarrow tck FILE.so`.
 * Needs no runtime and no loop: link uvarrow-tck alone. docs/tck.md leads
 * through it.
 *
 * A subject is a shared object that exports the plain C functions of the first
 * part: uva_subject_version(), and those of each role it wants tested. They
 * take and return integers and pointers only. Each case loads it into a
 * process of its own, uses one role, and ends that process without unloading:
 * nothing has to be torn down. */
#ifndef UVARROW_TCK_H
#define UVARROW_TCK_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a subject exports --------------------------------------------- */

/** Marks the functions of a subject, so that the shared object shows them. */
#if defined(_WIN32)
#define UVA_SUBJECT_API __declspec(dllexport)
#else
#define UVA_SUBJECT_API __attribute__((visibility("default")))
#endif

/** What uva_subject_version() returns: which entry points these are. */
#define UVA_SUBJECT_VERSION 1

/** The rows of a batch. The data is always the same. Schema: format "+s"; its
 * first child is named "n" and has format "l" (int64); more columns may follow,
 * which are checked against the schema and not looked into. A batch has
 * UVA_SUBJECT_ROWS rows, on the CPU; n has no nulls and counts up from 0
 * through the whole stream, so row r of batch b holds b * UVA_SUBJECT_ROWS + r.
 */
#define UVA_SUBJECT_ROWS 3

/** Returned for a plan that the subject cannot follow: what needs it is
 * skipped. No subject may say so of a plan that is marked "always". */
#define UVA_SUBJECT_CANNOT (-1)

/** What a producer or a blocking stream does. */
enum uva_subject_plan {
    UVA_SUBJECT_WHOLE = 0,    /* gives `batches` batches (0: none), then ends;
                                 always */
    UVA_SUBJECT_ENDLESS,      /* gives batches for ever */
    UVA_SUBJECT_SLOW,         /* as WHOLE, but some 5 ms pass before each */
    UVA_SUBJECT_FAILS,        /* gives `batches` batches, then fails with EIO */
    UVA_SUBJECT_FAILS_FIRST,  /* fails with EIO before there is a schema */
    UVA_SUBJECT_TASK_FAILS,   /* as WHOLE, but extracting batch `at`, from 0,
                                 fails with EIO */
    UVA_SUBJECT_CANCEL_FAILS, /* as ENDLESS, but what cancel has to do fails
                                 with EIO */
    UVA_SUBJECT_TAGGED,       /* as WHOLE, with metadata: one pair, key "tck",
                                 in each of additional_metadata (value "about")
                                 and every batch (value: its number, from 0, in
                                 decimal) */
    UVA_SUBJECT_TAGGED_FAILS  /* as FAILS, and the error has metadata: key
                                 "tck", its value the five bytes "a\0b\0c" */
};

/** What a consumer does. It extracts every task it takes, and reads the rows.
 */
enum uva_subject_manner {
    UVA_SUBJECT_TAKES_ALL = 0,  /* asks for more as it takes; always */
    UVA_SUBJECT_TAKES_SOME,     /* asks for `k` batches, and never for more */
    UVA_SUBJECT_CANCELS,        /* cancels when batch `k`, from 0, has come; it
                                   takes that batch as well */
    UVA_SUBJECT_REFUSES,        /* returns EIO for batch `k`, from 0 */
    UVA_SUBJECT_REFUSES_SCHEMA, /* returns EINVAL for the schema */
    UVA_SUBJECT_HOLDS           /* as TAKES_ALL, but extracts on another thread,
                                   later */
};

/** How a stream ended, for its consumer. */
enum uva_subject_end {
    UVA_SUBJECT_COMPLETE = 0, /* all batches came, then the end */
    UVA_SUBJECT_FAILED,       /* with an error, or without saying how */
    UVA_SUBJECT_CANCELLED,    /* the consumer cancelled */
    UVA_SUBJECT_REFUSED       /* the consumer refused something */
};

/** What a consumer saw. */
struct uva_subject_outcome {
    int32_t end;       /* an enum uva_subject_end */
    int32_t code;      /* the error's, where it failed; else 0 */
    int64_t batches;   /* extracted well */
    int64_t rows;      /* in them */
    int64_t sum;       /* of all values of column n */
    int64_t tag_size;  /* bytes of `tag`; -1: this subject does not tell */
    char tag[64];      /* value of key "tck" of the metadata that came last,
                          with a batch or an error */
    char message[256]; /* the error's text, cut where it does not fit; "": none,
                          or this subject does not tell */
    int64_t reserved[4]; /* 0 */
};

/** What uva_subject_count() counts. */
enum uva_subject_counted {
    UVA_SUBJECT_LIVE = 0, /* batches and schemas of the subject's making that
                             nobody has freed yet */
    UVA_SUBJECT_MADE      /* batches that its source has made so far, asked for
                             or not */
};

/** Returns UVA_SUBJECT_VERSION. The first that is called. Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_version(void);

/** Role producer: makes a producer that follows `plan`, an enum
 * uva_subject_plan, and starts it on `handler`. Returns 0: accepted, the
 * producer releases it when done; UVA_SUBJECT_CANNOT, or a positive errno: it
 * was not touched. May make callbacks before it returns. Called on a thread of
 * its own, so it may also take as long as the stream. Thread: any. */
UVA_SUBJECT_API int32_t
uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                    struct ArrowAsyncDeviceStreamHandler *handler);

/** Role handler: makes a consumer that follows `manner`, an enum
 * uva_subject_manner; gives its handler, which is then handed to a producer,
 * and a number by which to ask for its outcome. Returns 0; UVA_SUBJECT_CANNOT;
 * a positive errno. Thread: any. */
UVA_SUBJECT_API int32_t
uva_subject_consume(int32_t manner, int64_t k, int64_t *id,
                    struct ArrowAsyncDeviceStreamHandler **handler);

/** Role handler: what the consumer saw. Returns 0 with `out` filled; EAGAIN as
 * long as it is not over: it was not released yet, or a batch is still being
 * read. Asked again and again. Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_report(int64_t id,
                                           struct uva_subject_outcome *out);

/** Role stream: gives a blocking stream that follows `plan`. Returns 0;
 * UVA_SUBJECT_CANNOT; a positive errno. Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_open(int32_t plan, int64_t batches,
                                         int64_t at,
                                         struct ArrowDeviceArrayStream *out);

/** Optional, any role. Returns how many `what`, an enum uva_subject_counted,
 * there are in this process; or UVA_SUBJECT_CANNOT. Without it, cases about
 * leaks and about reading ahead are skipped. Thread: any. */
UVA_SUBJECT_API int64_t uva_subject_count(int32_t what);

/* ---- running the suite -------------------------------------------------- */

/** The parts that a subject can play. Bits. */
enum uva_tck_role {
    UVA_TCK_PRODUCER = 1, /* uva_subject_produce() */
    UVA_TCK_HANDLER = 2,  /* uva_subject_consume(), uva_subject_report() */
    UVA_TCK_STREAM = 4    /* uva_subject_open() */
};

/** How a case went. */
enum uva_tck_verdict {
    UVA_TCK_HELD = 0, /* as it should be */
    UVA_TCK_BROKEN,   /* not so, or it crashed, or it took too long */
    UVA_TCK_SKIPPED   /* not to be decided, here or ever */
};

/** One case and its result. Borrowed, for the call. */
struct uva_tck_result {
    enum uva_tck_role role;       /* it was run in */
    const char *name;             /* "required_AP06_never_more_tasks_..." */
    bool required;                /* or else only recommended */
    enum uva_tck_verdict verdict; /* how it went */
    const char *message;          /* why not; "" if it held */
    const char *transcript;       /* the last events, one a line; "" */
    const char *output;           /* the end of what the process printed; "" */
    int64_t took_ms;              /* of a clock on the wall */
};

/** What is run, and who hears of it. Needed: `file`. */
struct uva_tck {
    const char *file;   /* the subject's shared object */
    unsigned roles;     /* bits; 0: all that it exports */
    const char *filter; /* a clause ("AP-06") or a part of names; NULL: all */
    const char *tap;    /* a file to write as TAP 14; NULL: none */
    const char *junit;  /* a file to write as JUnit XML; NULL: none */
    /* each result, in the order of the list; NULL: no */
    void (*on_result)(void *ctx, const struct uva_tck_result *result);
    void *ctx; /* borrows */
    /* 0: what the environment has under the name behind, or else the number */
    int32_t wait_ms;  /* what has to come comes within; UVA_TCK_WAIT_MS, 5000 */
    int32_t quiet_ms; /* what must not come does not within; UVA_TCK_QUIET_MS,
                         50 */
    int32_t jobs;     /* cases at the same time; UVA_TCK_JOBS, one per processor
                       */
    void *reserved[4];
};

/** How many cases went how. */
struct uva_tck_tally {
    int64_t held;               /* as it should be */
    int64_t required_broken;    /* of the clauses that say must */
    int64_t recommended_broken; /* of those that say should */
    int64_t skipped;            /* not to be decided */
};

/** Runs the cases, each in a process of its own, and gives `tally`. Returns 0,
 * whatever their verdicts were; otherwise none was run, and it is EINVAL for a
 * file that is no subject or crashes when it is loaded, a role it does not
 * play, a filter that fits no case; ENOENT without a file; ENOMEM or another
 * errno for what the system refuses. In a program with other threads, or one
 * that has loaded `file` itself, cases may hang. Thread: any, one at a time. */
UVA_API UVA_MUST_CHECK int uva_tck_run(const struct uva_tck *what,
                                       struct uva_tck_tally *tally,
                                       struct uva_error *error);

/** Tells `on_result` of all cases that `what` would run, as skipped; the file
 * is not looked at and may be NULL. Returns 0; EINVAL for a filter that fits
 * none. Thread: any. */
UVA_API UVA_MUST_CHECK int uva_tck_list(const struct uva_tck *what,
                                        struct uva_error *error);

#ifdef __cplusplus
}
#endif

#endif
