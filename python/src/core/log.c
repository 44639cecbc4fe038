/* SPDX-License-Identifier: Apache-2.0 */
/* The log of the runtimes, for the logging of Python. Lines come from any
 * thread, inside the library; so they are kept, and passed on after the next
 * turn of a runtime, on its thread. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/core.h"

/* Beyond so many, lines are only counted. */
enum { MOST_LINES = 4096 };

struct line {
    struct line *next;
    double at; /* seconds since the epoch */
    int level;
    char *message, *stream, *clause; /* owns each; the last two may be NULL */
};

static _Atomic(struct line *) kept; /* the newest first */
static atomic_int n_kept;
static atomic_int n_lost;
static PyObject *passed_to; /* owns; under the GIL */

static char *copy_of(const char *text)
{
    return text != NULL ? strdup(text) : NULL;
}

static void line_free(struct line *line)
{
    free(line->message);
    free(line->stream);
    free(line->clause);
    free(line);
}

void log_write(void *ctx, const struct uva_log_record *record)
{
    struct line *line = NULL;
    struct timespec now;

    (void)ctx;
    if (atomic_fetch_add(&n_kept, 1) < MOST_LINES)
        line = calloc(1, sizeof(*line));
    if (line == NULL) {
        atomic_fetch_sub(&n_kept, 1);
        atomic_fetch_add(&n_lost, 1);
        return;
    }
    clock_gettime(CLOCK_REALTIME, &now);
    line->at = (double)now.tv_sec + (double)now.tv_nsec / 1e9;
    line->level = (int)record->level;
    line->message = copy_of(record->message);
    line->stream = copy_of(record->stream);
    line->clause = copy_of(record->clause);
    line->next = atomic_load(&kept);
    while (!atomic_compare_exchange_weak(&kept, &line->next, line))
        ;
}

/* An exception cannot be passed on: it is reported. */
static void line_pass_on(const struct line *line)
{
    PyObject *done = NULL;

    if (passed_to == NULL)
        return;
    done = PyObject_CallFunction(passed_to, "iszzd", line->level,
                                 line->message != NULL ? line->message : "",
                                 line->stream, line->clause, line->at);
    if (done == NULL)
        PyErr_WriteUnraisable(passed_to);
    Py_XDECREF(done);
}

/* The lines in the order in which they came. */
static struct line *lines_take(void)
{
    struct line *newest = atomic_exchange(&kept, NULL), *oldest = NULL;

    while (newest != NULL) {
        struct line *next = newest->next;

        newest->next = oldest;
        oldest = newest;
        newest = next;
    }
    return oldest;
}

void log_pass_on(void)
{
    struct line *line;
    int lost;

    if (atomic_load(&kept) == NULL)
        return;
    lost = atomic_exchange(&n_lost, 0);
    for (line = lines_take(); line != NULL;) {
        struct line *next = line->next;

        atomic_fetch_sub(&n_kept, 1);
        line_pass_on(line);
        line_free(line);
        line = next;
    }
    if (lost > 0) {
        char text[64];

        (void)snprintf(text, sizeof(text), "%d lines of the log were lost",
                       lost);
        line_pass_on(&(struct line){.level = UVA_LOG_WARN, .message = text});
    }
}

PyObject *log_set(PyObject *module, PyObject *function)
{
    (void)module;
    Py_XDECREF(passed_to);
    passed_to = Py_NewRef(function);
    Py_RETURN_NONE;
}
