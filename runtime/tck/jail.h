/* SPDX-License-Identifier: Apache-2.0 */
/* A function run in a process of its own, with a time limit. What it prints is
 * caught, a crash or a hang is told from an end. Knows nothing of cases. */
#ifndef UVA_TCK_JAIL_H
#define UVA_TCK_JAIL_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "uvarrow/base.h"

/* How the process ended. */
enum uva__jail_end {
    UVA__JAIL_EXITED = 0,
    UVA__JAIL_CRASHED, /* by a signal */
    UVA__JAIL_HUNG     /* past its limit; it was killed */
};

/* One process. All zeroes: none. */
struct uva__jail {
    pid_t pid;              /* of it, and of its group; 0: none */
    int alive;              /* reads as ended when the process has gone */
    FILE *output;           /* owns: what it prints */
    int64_t began_ms;       /* monotonic */
    int64_t limit_ms;       /* likewise: when it is killed */
    enum uva__jail_end end; /* once it is over */
    int code;               /* its exit code, or the signal's number */
    int64_t took_ms;        /* likewise */
};

/* Starts one that calls `fn` and exits. 0 or an errno. Thread: any. */
UVA_MUST_CHECK int uva__jail_open(struct uva__jail *jail, void (*fn)(void *ctx),
                                  void *ctx, int64_t limit_ms);

/* Waits until at least one of `count` jails is over, ends those past their
 * limit, and returns its index; -1 if none runs. Thread: that of the opening.
 */
int uva__jail_wait(struct uva__jail *jails, int count);

/* Copies the end of what it has printed to `text`, with a NUL; closes what it
 * has. Thread: any. */
void uva__jail_fini(struct uva__jail *jail, char *text, size_t size);

#endif
