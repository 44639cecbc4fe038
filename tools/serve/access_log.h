/* SPDX-License-Identifier: Apache-2.0 */
/* One line for each answer, on standard output or in a file:
 *
 *     2026-01-31T12:00:00Z 127.0.0.1 GET /query 200 170321 12.345 whole 17
 *
 * time, client, method, path, status, bytes of the body, milliseconds, whether
 * it was cut, the number of the query or "-", and in quotes the cause of the
 * cut, unless the client left. Parameters are left out, as they may hold
 * secrets. */
#ifndef UVA_SERVE_ACCESS_LOG_H
#define UVA_SERVE_ACCESS_LOG_H

#include <stdint.h>

#include "http.h"
#include "output.h"

/* A log. Zeroes, then uva__access_log_open(). */
struct uva__access_log {
    struct uva__output output; /* never blocks the loop */
    int64_t lost;              /* lines that the reader was too slow for */
};

/* Opens the file at `path`, to which lines are appended, or standard output if
 * it is NULL. `events` as in
 * uva__output_open(). Returns as that does. Thread: loop, as all here. */
UVA_MUST_CHECK int uva__access_log_open(struct uva__access_log *log,
                                        uv_loop_t *loop, const char *path,
                                        const struct uva__output_events *events,
                                        struct uva_error *error);

/* Writes to the file that is at `path` now, and is made if it is missing: the
 * rotation of logs has moved the other one. Returns 0; an errno, without a
 * change; ENOTSUP for a path that is no file. */
UVA_MUST_CHECK int uva__access_log_reopen(struct uva__access_log *log,
                                          const char *path);

/* Writes a line, or counts it as lost. */
void uva__access_log_add(struct uva__access_log *log,
                         const struct uva__answered *entry);

#endif
