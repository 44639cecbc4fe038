/* SPDX-License-Identifier: Apache-2.0 */
/* A case run, in a separate process: its verdict, its transcript and its two
 * time limits. It writes to memory shared with the runner, so that the record
 * survives a crash or a hang. The first verdict ends the process, on whichever
 * thread gives it. */
#ifndef UVA_TCK_CASE_RUN_H
#define UVA_TCK_CASE_RUN_H

#include <stdnoreturn.h>

#include "base/atomic.h"
#include "tck/subject.h"
#include "uvarrow/tck.h"

enum {
    UVA__CASE_RUN_LINES = 256, /* lines of the transcript that are kept */
    UVA__CASE_RUN_LINE = 168,  /* bytes of a line, with its NUL */
    UVA__CASE_RUN_MESSAGE = 1024,
    UVA__CASE_RUN_BREACHES = 64, /* clauses with breaches that are counted */
    UVA__CASE_RUN_BEFORE = 16    /* lines up to a breach that are kept */
};

/* The breaches of a clause that did not fail the case. */
struct uva__case_run_breach {
    char clause[8];
    uint32_t required; /* 0: it is only recommended */
    uint64_t count;
    char text[UVA__CASE_RUN_LINE]; /* of the first one */
    char transcript[UVA__CASE_RUN_BEFORE * UVA__CASE_RUN_LINE + 1]; /* to it */
};

/* The progress of a run. The states after the first two are in the order of
 * enum uva_tck_verdict. */
enum uva__case_run_state {
    UVA__CASE_RUN_RUNS = 0,
    UVA__CASE_RUN_CLAIMED, /* a thread is writing the message */
    UVA__CASE_RUN_HELD,
    UVA__CASE_RUN_BROKEN,
    UVA__CASE_RUN_SKIPPED
};

/* The results for the runner. Shared between processes; initially all zeroes.
 */
struct uva__case_run_page {
    struct uva__atomic64 state;    /* an enum uva__case_run_state */
    struct uva__atomic64 lines;    /* lines written so far */
    struct uva__atomic64 breached; /* clauses in `breaches` */
    struct uva__case_run_breach breaches[UVA__CASE_RUN_BREACHES];
    char message[UVA__CASE_RUN_MESSAGE];
    char line[UVA__CASE_RUN_LINES][UVA__CASE_RUN_LINE];
};

/* One run. Outlives all threads of its process. */
struct uva__case_run {
    struct uva__case_run_page *page; /* borrows */
    const struct uva__tck_case *what;
    struct uva__subject subject;
    enum uva_tck_role role;
    char clause[8];            /* the id of the clause it decides */
    int64_t wait_ms;           /* time limit for required events */
    int64_t quiet_ms;          /* how long to wait for forbidden events */
    int64_t began_ms;          /* monotonic clock */
    struct uva__lock writing;  /* guards the page's lines and breaches */
    struct uva__futex changed; /* raised by every change that may end a wait */
    struct uva__atomic64 skipped; /* parts that the subject does not support */
    struct uva__atomic64 played;  /* parts that were played */
    int64_t columns;              /* of the last schema received */
    int failed_waits;             /* for required events */
    bool checked;                 /* the checker is in between */
};

/* A condition to wait for. Must not block. */
typedef bool uva__case_run_fn(void *ctx);

/* Returns the milliseconds of a monotonic clock. Thread: any. */
int64_t uva__case_run_now_ms(void);

/* Joins the lines of the transcript up to line `end`: the last ones, as many as
 * fit into `size` bytes. No other thread may write lines meanwhile. Thread:
 * any. */
void uva__case_run_page_join(struct uva__case_run_page *page, uint64_t end,
                             char *to, size_t size);

/* Replaces by '?' every byte that is not printable ASCII or a newline, because
 * a subject's text goes to terminals and files. Thread: any. */
void uva__case_run_clean(char *text);

/* Adds a line to the transcript. Thread: any. */
void uva__case_run_note(struct uva__case_run *run, const char *format, ...)
    UVA_PRINTF(2, 3);

/* Gives the verdict and ends the process. Thread: any. */
noreturn void uva__case_run_fail(struct uva__case_run *run, const char *format,
                                 ...) UVA_PRINTF(2, 3);
noreturn void uva__case_run_skip(struct uva__case_run *run, const char *format,
                                 ...) UVA_PRINTF(2, 3);
noreturn void uva__case_run_hold(struct uva__case_run *run);

/* `clause` was broken: fails the case if the case decides this clause,
 * otherwise adds a line to the transcript, and counts the breach, which fails
 * the whole run if the clause is required. Thread: any. */
void uva__case_run_breach(struct uva__case_run *run, const char *clause,
                          const char *format, ...) UVA_PRINTF(3, 4);

/* As uva__case_run_breach(), for a part of a required clause that is only
 * recommended: it does not fail a required case. Thread: any. */
void uva__case_run_shortfall(struct uva__case_run *run, const char *clause,
                             const char *format, ...) UVA_PRINTF(3, 4);

/* Waits until `fn` returns true, calling it at each change. Returns false after
 * wait_ms. Thread: any. */
bool uva__case_run_soon(struct uva__case_run *run, uva__case_run_fn *fn,
                        void *ctx);

/* As uva__case_run_soon(), but each wait of the run that fails shortens the
 * next ones, so that a case can go on. Thread: the case's. */
bool uva__case_run_soon_again(struct uva__case_run *run, uva__case_run_fn *fn,
                              void *ctx);

/* As uva__case_run_soon(), but fails the case at the time limit. `what`
 * completes
 * "... did not come". Thread: any. */
void uva__case_run_await(struct uva__case_run *run, uva__case_run_fn *fn,
                         void *ctx, const char *what);

/* Waits quiet_ms; returns true if `fn` returned false all the time. Thread:
 * any. */
bool uva__case_run_quiet(struct uva__case_run *run, uva__case_run_fn *fn,
                         void *ctx);

/* Wakes the waits: a condition may have changed. Thread: any. */
void uva__case_run_changed(struct uva__case_run *run);

/* Starts a detached thread. Fails the case if that is impossible. Thread:
 * any. */
void uva__case_run_thread(struct uva__case_run *run, void *(*fn)(void *),
                          void *ctx);

/* Returns zeroed memory that is never freed. Thread: any. */
void *uva__case_run_alloc(struct uva__case_run *run, size_t size);

/* Checks the return code of a subject's function: true for 0; false for
 * UVA_SUBJECT_CANNOT, which is recorded once; another errno fails the case.
 * Thread: any. */
bool uva__case_run_can(struct uva__case_run *run, int code, bool always,
                       const char *what);

#endif
