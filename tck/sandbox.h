/* SPDX-License-Identifier: Apache-2.0 */
/* A sandbox: runs a function in a separate process, with a time limit. It
 * catches the output and distinguishes a crash or a hang from a normal end. It
 * does not know cases. */
#ifndef UVA_TCK_SANDBOX_H
#define UVA_TCK_SANDBOX_H

#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "uvarrow/base.h"

/* How the process ended. */
enum uva__sandbox_end {
    UVA__SANDBOX_EXITED = 0,
    UVA__SANDBOX_CRASHED, /* ended by a signal */
    UVA__SANDBOX_HUNG     /* exceeded its time limit and was killed */
};

/* One process. All zeroes: no process. */
struct uva__sandbox {
    pid_t pid;    /* process and process group; 0: not running */
    int alive;    /* descriptor at its end of file once the process is gone */
    FILE *output; /* owns: the process's output */
    int64_t began_ms;          /* monotonic */
    int64_t limit_ms;          /* monotonic: when it is killed */
    enum uva__sandbox_end end; /* set once it has ended */
    int code;                  /* exit code, or the number of the signal */
    int64_t took_ms;           /* run time, set once it has ended */
};

/* Starts a process that calls `fn` and exits. Returns 0 or an errno. Thread:
 * any. */
UVA_MUST_CHECK int uva__sandbox_open(struct uva__sandbox *sandbox,
                                     void (*fn)(void *ctx), void *ctx,
                                     int64_t limit_ms);

/* Waits until at least one of `count` processes has ended, kills those past
 * their time limit, and returns the index of an ended one; -1 if no process is
 * running. Thread: the one that opened them. */
int uva__sandbox_wait(struct uva__sandbox *sandboxes, int count);

/* Copies the end of the output to `text`, with a NUL, and closes the sandbox.
 * Thread: any. */
void uva__sandbox_fini(struct uva__sandbox *sandbox, char *text, size_t size);

#endif
