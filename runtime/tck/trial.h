/* SPDX-License-Identifier: Apache-2.0 */
/* A case while it runs, in a process of its own: its verdict, its transcript
 * and its two patiences. What it writes lies in memory that the runner shares,
 * so that a crash or a hang leaves it behind. The first verdict ends the
 * process, on whichever thread it is given. */
#ifndef UVA_TCK_TRIAL_H
#define UVA_TCK_TRIAL_H

#include <stdnoreturn.h>

#include "core/sync.h"
#include "tck/subject.h"
#include "uvarrow/tck.h"

enum {
    UVA__TRIAL_LINES = 256, /* of the transcript that are kept */
    UVA__TRIAL_LINE = 160,  /* bytes of one, with its NUL */
    UVA__TRIAL_MESSAGE = 1024
};

/* How far it is. The order is that of enum uva_tck_verdict, behind the first
 * two. */
enum uva__trial_state {
    UVA__TRIAL_RUNS = 0,
    UVA__TRIAL_SPEAKS, /* somebody writes the message */
    UVA__TRIAL_HELD,
    UVA__TRIAL_BROKEN,
    UVA__TRIAL_SKIPPED
};

/* What the runner sees. Shared between processes; all zeroes to begin with. */
struct uva__trial_page {
    struct uva__word state; /* an enum uva__trial_state */
    struct uva__word lines; /* written so far */
    char message[UVA__TRIAL_MESSAGE];
    char line[UVA__TRIAL_LINES][UVA__TRIAL_LINE];
};

/* One case. Outlives all threads of its process. */
struct uva__trial {
    struct uva__trial_page *page; /* borrows */
    const struct uva__tck_case *what;
    struct uva__subject subject;
    char clause[8];             /* that it decides: "AP-06" */
    int64_t wait_ms;            /* what has to come comes within */
    int64_t quiet_ms;           /* what must not come does not within */
    int64_t began_ms;           /* by the monotonic clock */
    struct uva__lock writing;   /* over the lines of the page */
    struct uva__signal changed; /* raised by whatever may end a wait */
    struct uva__word skipped;   /* parts that the subject cannot follow */
    struct uva__word played;    /* parts that were played */
    int64_t columns;            /* of the last schema that was seen */
    bool let_down;              /* something that had to come did not */
    bool checked;               /* the checker stands in between */
};

/* A condition that is waited for. Must not block. */
typedef bool uva__trial_fn(void *ctx);

/* The clause that a case is named after: "AP-06" of "required_AP06_...".
 * Thread: any. */
void uva__trial_clause(const char *name, char clause[8]);

/* Milliseconds of a clock that only goes forward. Thread: any. */
int64_t uva__trial_now_ms(void);

/* Makes a '?' of every byte that is neither printable ASCII nor a line's end:
 * what a subject says goes to terminals and files. Thread: any. */
void uva__trial_clean(char *text);

/* Adds a line to the transcript. Thread: any. */
void uva__trial_note(struct uva__trial *trial, const char *format, ...)
    UVA_PRINTF(2, 3);

/* Gives the verdict and ends the process. Thread: any. */
noreturn void uva__trial_fail(struct uva__trial *trial, const char *format, ...)
    UVA_PRINTF(2, 3);
noreturn void uva__trial_skip(struct uva__trial *trial, const char *format, ...)
    UVA_PRINTF(2, 3);
noreturn void uva__trial_hold(struct uva__trial *trial);

/* `clause` was broken: fails the case if it is the one it decides, and is a
 * line of the transcript otherwise. Thread: any. */
void uva__trial_breach(struct uva__trial *trial, const char *clause,
                       const char *format, ...) UVA_PRINTF(3, 4);

/* Waits until `fn` says true, asking at each change. False after wait_ms.
 * Thread: any. */
bool uva__trial_soon(struct uva__trial *trial, uva__trial_fn *fn, void *ctx);

/* The same, and fails the case if it does not come. `what` completes "... did
 * not come". Thread: any. */
void uva__trial_await(struct uva__trial *trial, uva__trial_fn *fn, void *ctx,
                      const char *what);

/* Waits quiet_ms; true if `fn` said false all the while. Thread: any. */
bool uva__trial_quiet(struct uva__trial *trial, uva__trial_fn *fn, void *ctx);

/* Something that a wait may look at has changed. Thread: any. */
void uva__trial_changed(struct uva__trial *trial);

/* Starts a thread that nobody joins. Fails the case if there is none.
 * Thread: any. */
void uva__trial_thread(struct uva__trial *trial, void *(*fn)(void *),
                       void *ctx);

/* A block of zeroes that lives as long as the process. Thread: any. */
void *uva__trial_alloc(struct uva__trial *trial, size_t size);

/* What a part of a case got from the subject: 0 goes on; UVA_SUBJECT_CANNOT
 * says false, once noted; another errno fails. Thread: any. */
bool uva__trial_can(struct uva__trial *trial, int code, bool always,
                    const char *what);

#endif
