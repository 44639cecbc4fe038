/* SPDX-License-Identifier: Apache-2.0 */
/* Bytes of a client are escaped: a line is a line, and no terminal is
 * controlled by it. */
#define _GNU_SOURCE
#include "access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Longest path that is written, with its escapes. */
#define PATH_MOST 512
#define WHY_MOST  512

/* A pipe without a reader is refused, not waited for. */
static int path_open(const char *path)
{
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK,
                0666);
}

int uva__access_log_open(struct uva__access_log *log, uv_loop_t *loop,
                         const char *path,
                         const struct uva__output_events *events,
                         struct uva_error *error)
{
    int fd, code;

    if (path == NULL)
        return uva__output_open(&log->output, loop, path, events, error);
    fd = path_open(path);
    if (fd < 0)
        return uva_error_set(error, errno, "cannot write to %s: %s", path,
                             strerror(errno));
    code = uva__output_open_fd(&log->output, loop, fd, path, events, error);
    (void)close(fd);
    return code;
}

/* Writes that are under way go to either file, and are whole in it. */
int uva__access_log_reopen(struct uva__access_log *log, const char *path)
{
    const int fd = path_open(path);
    int code = 0;

    if (fd < 0)
        return errno;
    if (log->output.kind != UVA__OUTPUT_FILE || uv_guess_handle(fd) != UV_FILE)
        code = ENOTSUP;
    else if (dup3(fd, log->output.fd, O_CLOEXEC) < 0)
        code = errno;
    (void)close(fd);
    return code;
}

/* Copies printable characters, from `least` on; others are escaped. */
static void text_write(const char *text, size_t size, char least, char *out,
                       size_t room)
{
    static const char HEX[] = "0123456789abcdef";
    size_t n = 0;

    for (const char *at = text; at < text + size && n + 5 < room; at++) {
        const unsigned char c = (unsigned char)*at;

        if (c >= (unsigned char)least && c < 0x7f && c != '"' && c != '\\') {
            out[n++] = (char)c;
            continue;
        }
        out[n++] = '\\';
        out[n++] = 'x';
        out[n++] = HEX[c >> 4];
        out[n++] = HEX[c & 15];
    }
    out[n] = '\0';
}

/* Writes the path of a target, up to its parameters. */
static void path_write(const char *target, char *out, size_t room)
{
    text_write(target, strcspn(target, "?"), '!', out, room);
    if (out[0] == '\0')
        (void)snprintf(out, room, "-");
}

/* Writes the number of the query, and why its answer was cut. */
static void query_write(const struct uva__answered *entry, char *out,
                        size_t room)
{
    char why[WHY_MOST];

    if (entry->query == 0) {
        (void)snprintf(out, room, "-");
        return;
    }
    text_write(entry->why == NULL ? "" : entry->why,
               entry->why == NULL ? 0 : strlen(entry->why), ' ', why,
               sizeof(why));
    (void)snprintf(out, room, "%" PRId64 "%s%s%s", entry->query,
                   entry->why == NULL ? "" : " \"", why,
                   entry->why == NULL ? "" : "\"");
}

void uva__access_log_add(struct uva__access_log *log,
                         const struct uva__answered *entry)
{
    const struct uva__request *request = &entry->connection->request;
    const bool has_method = request->phase >= UVA__REQUEST_READY &&
                            request->phase <= UVA__REQUEST_COMPLETE;
    char line[PATH_MOST + WHY_MOST + 256], path[PATH_MOST], date[32];
    char query[WHY_MOST + 32];
    const time_t now = time(NULL);
    struct tm parts;

    uva__output_resume(&log->output); /* there may be space again */
    if (uva__output_is_full(&log->output)) {
        log->lost++;
        return;
    }
    (void)gmtime_r(&now, &parts);
    (void)strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%SZ", &parts);
    path_write(uva__bytes_text(&request->target), path, sizeof(path));
    query_write(entry, query, sizeof(query));
    (void)snprintf(line, sizeof(line),
                   "%s %s %s %s %d %" PRId64 " %.3f %s %s\n", date,
                   entry->connection->client_name,
                   has_method ? llhttp_method_name(llhttp_get_method(
                                    (llhttp_t *)&request->parser))
                              : "-",
                   path, entry->status, entry->bytes, (double)entry->ns / 1e6,
                   entry->is_whole ? "whole" : "cut", query);
    if (uva__output_write(&log->output, line, strlen(line)) != 0)
        log->lost++;
}
