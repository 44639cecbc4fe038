/* SPDX-License-Identifier: Apache-2.0 */
/* A thread-local count; its address is the thread's number. */
#include "uv/turn.h"

#include <assert.h>
#include <stdio.h>
#include <uv.h>

#include "uv/hub.h"

static _Thread_local int turn_depth;

uint64_t uva__thread_self(void)
{
    return (uint64_t)(uintptr_t)&turn_depth;
}

void uva__turn_begin(void)
{
    turn_depth++;
}

void uva__turn_end(void)
{
    assert(turn_depth > 0);
    turn_depth--;
}

int uva__turn_depth(void)
{
    return turn_depth;
}

uint64_t uva__turn_now(void)
{
    return uv_hrtime();
}

void uva__log_to_stderr(void *ctx, const struct uva_log_record *record)
{
    static const char *const levels[] = {"", "error", "warn", "info", "debug"};

    (void)ctx;
    (void)fprintf(stderr, "uvarrow: %s: %s%s%s%s%s\n", levels[record->level],
                  record->stream != NULL ? record->stream : "",
                  record->stream != NULL ? ": " : "", record->message,
                  record->clause != NULL ? " " : "",
                  record->clause != NULL ? record->clause : "");
}
