/* SPDX-License-Identifier: Apache-2.0 */
/* The test suite for implementations of Arrow's asynchronous device streams, in
 * any language: what an implementation (the "subject") exports to be tested,
 * and how a program runs the suite. The command is `uvarrow tck FILE.so`. The
 * suite needs no runtime and no loop: link uvarrow-tck alone. docs/tck.md is a
 * guide to it.
 *
 * A subject is a shared object that exports the plain C functions of the first
 * part: uva_subject_version(), and those of each role to be tested. They take
 * and return only integers and pointers. Each case loads the subject into its
 * own process, uses one role, and ends that process without unloading, so no
 * teardown is needed. */
#ifndef UVARROW_TCK_H
#define UVARROW_TCK_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- what a subject exports --------------------------------------------- */

/** Exports the functions of a subject from its shared object. */
#if defined(_WIN32)
#define UVA_SUBJECT_API __declspec(dllexport)
#else
#define UVA_SUBJECT_API __attribute__((visibility("default")))
#endif

/** The value that uva_subject_version() returns: the version of these entry
 * points. */
#define UVA_SUBJECT_VERSION 1

/** The number of rows of a batch. The data never varies. Schema: format "+s";
 * the first child is named "n" and has format "l" (int64). More columns may
 * follow; they are checked against the schema, but their values are not read. A
 * batch has UVA_SUBJECT_ROWS rows, on the CPU; n has no nulls and counts up
 * from 0 through the whole stream, so row r of batch b holds b *
 * UVA_SUBJECT_ROWS + r. */
#define UVA_SUBJECT_ROWS 3

/** Returned for a plan that the subject does not support: cases that need it
 * are skipped. Plans marked "always" must be supported. */
#define UVA_SUBJECT_CANNOT (-1)

/** What a producer or a blocking stream does; `batches` may be 0. */
enum uva_subject_plan {
    UVA_SUBJECT_WHOLE = 0, /* gives `batches` batches, then ends; always */
    UVA_SUBJECT_ENDLESS,   /* gives batches for ever */
    UVA_SUBJECT_SLOW,      /* as WHOLE, but about 5 ms pass before each batch */
    UVA_SUBJECT_FAILS,     /* gives `batches` batches, then fails with EIO */
    UVA_SUBJECT_FAILS_FIRST,  /* fails with EIO before the schema */
    UVA_SUBJECT_TASK_FAILS,   /* as WHOLE, but extracting batch `at`, from 0,
                                 fails with EIO */
    UVA_SUBJECT_CANCEL_FAILS, /* as ENDLESS, but what the producer does on
                                 cancel fails, and it reports EIO */
    UVA_SUBJECT_TAGGED,       /* as WHOLE, with metadata: one pair, key "tck",
                                 in each of additional_metadata (value "about")
                                 and every batch (value: its number, from 0, in
                                 decimal) */
    UVA_SUBJECT_TAGGED_FAILS  /* as FAILS, and the error has metadata: key
                                 "tck", its value the five bytes "a\0b\0c" */
};

/** What a consumer does. It extracts every task that it receives, and reads the
 * rows. */
enum uva_subject_manner {
    UVA_SUBJECT_TAKES_ALL = 0, /* requests more as it receives; always */
    UVA_SUBJECT_TAKES_SOME,    /* requests `k` batches in all */
    UVA_SUBJECT_CANCELS, /* cancels when batch `k`, from 0, has arrived, and
                            also takes that batch */
    UVA_SUBJECT_REFUSES, /* returns EIO for batch `k`, from 0 */
    UVA_SUBJECT_REFUSES_SCHEMA, /* returns EINVAL for the schema */
    UVA_SUBJECT_HOLDS, /* as TAKES_ALL, but extracts later, on another thread */
    UVA_SUBJECT_HOLDS_AND_CANCELS, /* as HOLDS, but when batch `k`, from 0, has
                                      arrived, it cancels outside of callbacks,
                                      and takes none of those that wait */
    UVA_SUBJECT_TAKES_BARE /* as TAKES_ALL, of a stream that is no struct:
                              format "i" (int32), the same values. It may also
                              refuse or cancel the stream, or let it fail */
};

/** How a stream ended for its consumer. */
enum uva_subject_end {
    UVA_SUBJECT_COMPLETE = 0, /* all batches arrived, then the end */
    UVA_SUBJECT_FAILED,       /* with an error, or without any end */
    UVA_SUBJECT_CANCELLED,    /* the consumer cancelled */
    UVA_SUBJECT_REFUSED       /* the consumer rejected a batch or the schema */
};

/** What a consumer received. */
struct uva_subject_outcome {
    int32_t end;      /* an enum uva_subject_end */
    int32_t code;     /* code of the error, if it failed; else 0 */
    int64_t batches;  /* number extracted without an error */
    int64_t rows;     /* number of rows in them */
    int64_t sum;      /* sum of all values of column n */
    int64_t tag_size; /* bytes of `tag`; -1: not reported by this subject */
    char tag[64]; /* value of key "tck" in the last metadata, of a batch or an
                     error */
    char message[256];   /* text of the error, cut if too long; "": none, or not
                            reported by this subject */
    int64_t reserved[4]; /* 0 */
};

/** The counters of uva_subject_count(). */
enum uva_subject_counted {
    UVA_SUBJECT_LIVE = 0, /* batches and schemas made and not freed */
    UVA_SUBJECT_MADE /* batches made by its source so far, requested or not */
};

/** Returns UVA_SUBJECT_VERSION. The first function to be called.
 * Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_version(void);

/** Role producer: makes a producer that follows `plan`, an enum
 * uva_subject_plan, and starts it on `handler`. Returns 0: accepted, and the
 * producer releases `handler` when done. Otherwise UVA_SUBJECT_CANNOT or a
 * positive errno, with `handler` untouched. May make callbacks before it
 * returns. Called on its own thread, so it may take as long as the stream runs.
 * Thread: any. */
UVA_SUBJECT_API int32_t
uva_subject_produce(int32_t plan, int64_t batches, int64_t at,
                    struct ArrowAsyncDeviceStreamHandler *handler);

/** Role handler: makes a consumer that follows `manner`, an enum
 * uva_subject_manner. Gives its handler, which is then passed to a producer,
 * and a number that identifies its outcome. Returns 0; UVA_SUBJECT_CANNOT; a
 * positive errno.
 * Thread: any. */
UVA_SUBJECT_API int32_t
uva_subject_consume(int32_t manner, int64_t k, int64_t *id,
                    struct ArrowAsyncDeviceStreamHandler **handler);

/** Role handler: reports what the consumer received. Returns 0 with `out`
 * filled; EAGAIN until the stream is over, that is while the handler is not
 * released or a batch is being read. Called repeatedly.
 * Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_report(int64_t id,
                                           struct uva_subject_outcome *out);

/** Role stream: gives a blocking stream that follows `plan`. Returns 0;
 * UVA_SUBJECT_CANNOT; a positive errno.
 * Thread: any. */
UVA_SUBJECT_API int32_t uva_subject_open(int32_t plan, int64_t batches,
                                         int64_t at,
                                         struct ArrowDeviceArrayStream *out);

/** Optional, for any role. Returns the counter `what`, an enum
 * uva_subject_counted, of this process; or UVA_SUBJECT_CANNOT. Without it,
 * cases about leaks and reading ahead are skipped.
 * Thread: any. */
UVA_SUBJECT_API int64_t uva_subject_count(int32_t what);

/* ---- running the suite -------------------------------------------------- */

/** The roles of a subject, as bits. */
enum uva_tck_role {
    UVA_TCK_PRODUCER = 1, /* uva_subject_produce() */
    UVA_TCK_HANDLER = 2,  /* uva_subject_consume(), uva_subject_report() */
    UVA_TCK_STREAM = 4    /* uva_subject_open() */
};

/** The verdict on a case. */
enum uva_tck_verdict {
    UVA_TCK_HELD = 0, /* the rule was kept */
    UVA_TCK_BROKEN, /* the rule was broken, or the case crashed or timed out */
    UVA_TCK_SKIPPED /* undecidable, in this environment or in general */
};

/** One case and its result. Borrowed for the call. Results of clauses that were
 * broken only in cases about other clauses follow those of all cases; their
 * names end in "_is_kept_in_all_cases". */
struct uva_tck_result {
    enum uva_tck_role role;       /* the role tested */
    const char *name;             /* "required_AP06_never_more_tasks_..." */
    bool required;                /* false: only recommended */
    enum uva_tck_verdict verdict; /* the verdict on it */
    const char *message;          /* the reason; "" if it held */
    const char *transcript;       /* the last events, one per line; or "" */
    const char *output; /* the end of the output of the process; or "" */
    int64_t took_ms;    /* wall-clock time */
};

/** What to run, and where to report. `file` is mandatory. */
struct uva_tck {
    const char *file;   /* shared object of the subject */
    unsigned roles;     /* bits; 0: all that it exports */
    const char *filter; /* id of a clause, or part of a name; NULL: all */
    const char *tap;    /* a file to write as TAP 14; NULL: none */
    const char *junit;  /* a file to write as JUnit XML; NULL: none */
    /* receives each result, in the order of the list; NULL: no callback */
    void (*on_result)(void *ctx, const struct uva_tck_result *result);
    void *ctx; /* borrows */
    /* For each of these, 0 means the environment variable named in its comment,
     * or else the number given there. */
    int32_t wait_ms;  /* limit for an expected event; UVA_TCK_WAIT_MS, 5000 */
    int32_t quiet_ms; /* time without a forbidden event; UVA_TCK_QUIET_MS, 50 */
    int32_t jobs;     /* cases run at once; UVA_TCK_JOBS, one per processor */
    void *reserved[4];
};

/** The number of results per verdict. */
struct uva_tck_tally {
    int64_t held;               /* rule kept */
    int64_t required_broken;    /* rules that the document states with "must" */
    int64_t recommended_broken; /* rules that it states with "should" */
    int64_t skipped;            /* undecidable */
};

/** Runs the cases, each in its own process, and gives `tally`. Returns 0,
 * whatever the verdicts; otherwise no case was run: EINVAL for a file that is
 * not a subject or crashes when loaded, a role it does not implement, or a
 * filter without a match; ENOENT if the file does not exist; ENOMEM or another
 * errno of the system. In a program with other threads, or one that has loaded
 * `file` itself, cases may hang.
 * Thread: any, one at a time. */
UVA_API UVA_MUST_CHECK int uva_tck_run(const struct uva_tck *options,
                                       struct uva_tck_tally *tally,
                                       struct uva_error *error);

/** Calls `on_result` for every case that `options` would run, as skipped. The
 * file is not read and may be NULL. Returns 0; EINVAL for a filter that matches
 * no case.
 * Thread: any. */
UVA_API UVA_MUST_CHECK int uva_tck_list(const struct uva_tck *options,
                                        struct uva_error *error);

#ifdef __cplusplus
}
#endif

#endif
