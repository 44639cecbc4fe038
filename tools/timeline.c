/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow timeline: a trace in, a page for a browser out. The page is made of
 * the files in tools/timeline/, which the build puts into the program, and of
 * the events as they are in the file. It draws them itself. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"
#include "scan.h"
#include "timeline_page.h"

static const char HELP[] =
    "Usage: uvarrow timeline FILE\n"
    "\n"
    "Reads a trace, and writes a page to standard output that shows it: lanes\n"
    "of threads, batches, queues, and a summary of where the time went. The\n"
    "page is one file and needs no network. A program writes a trace of its\n"
    "streams if UVA_TRACE=FILE is in its environment.\n"
    "\n"
    "  -h, --help                 prints this\n"
    "\n"
    "FILE may also be a trace of another program in Chrome's format. Perfetto\n"
    "(https://ui.perfetto.dev) opens FILE, too.\n"
    "\n"
    "Exit codes: 0 done; 1 the page cannot be written; 2 wrong option, or "
    "FILE\n"
    "is not a trace.\n";

/* A file in memory. */
struct bytes {
    char *data; /* owns */
    size_t size, room;
};

static int bytes_grow(struct bytes *bytes)
{
    const size_t room = bytes->room == 0 ? 1 << 16 : 2 * bytes->room;
    char *data = realloc(bytes->data, room);

    if (data == NULL)
        return ENOMEM;
    bytes->data = data;
    bytes->room = room;
    return 0;
}

/* Reads to the end, also from a pipe, which has no size. */
static int bytes_read(struct bytes *bytes, FILE *file)
{
    int code = 0;

    errno = 0;
    while (code == 0 && !feof(file)) {
        if (bytes->size == bytes->room)
            code = bytes_grow(bytes);
        if (code == 0)
            bytes->size += fread(bytes->data + bytes->size, 1,
                                 bytes->room - bytes->size, file);
        if (code == 0 && ferror(file))
            code = errno != 0 ? errno : EIO;
    }
    return code;
}

/* Gives `out`, also if it fails. */
static int file_read(const char *path, struct bytes *out,
                     struct uva_error *error)
{
    FILE *file = fopen(path, "rb");
    int code;

    if (file == NULL)
        return uva_error_set(error, errno, "cannot open %s: %s", path,
                             strerror(errno));
    code = bytes_read(out, file);
    (void)fclose(file);
    if (code != 0)
        return uva_error_set(error, code, "cannot read %s: %s", path,
                             strerror(code));
    return 0;
}

static void put(const unsigned char *text, size_t size)
{
    (void)fwrite(text, 1, size, stdout);
}

/* In JSON a "<" can only be inside a string, where its escape has an equal
 * meaning. Without any "<" the text cannot end the element that it stands in.
 */
static void put_events(const struct uva__scan *events)
{
    const char *at = events->begin, *end = at + events->size;

    while (at < end) {
        const char *mark = memchr(at, '<', (size_t)(end - at));
        const char *stop = mark != NULL ? mark : end;

        (void)fwrite(at, 1, (size_t)(stop - at), stdout);
        if (mark != NULL)
            (void)fputs("\\u003c", stdout);
        at = stop + (mark != NULL);
    }
}

static int page_write(const struct uva__scan *events, struct uva_error *error)
{
    put(uva__timeline_head, uva__timeline_head_size);
    (void)putchar('[');
    put_events(events);
    (void)putchar(']');
    put(uva__timeline_tail, uva__timeline_tail_size);
    if (fflush(stdout) == 0 && !ferror(stdout))
        return 0;
    return uva_error_set(error, errno, "cannot write the page: %s",
                         strerror(errno));
}

static int timeline_run(const char *path)
{
    struct bytes file = {0};
    struct uva__scan events;
    struct uva_error error = {0}, why;
    int exit_code = UVA__EXIT_USAGE;
    int code = file_read(path, &file, &error);

    if (code == 0 && uva__scan_trace(file.data, file.size, &events, &why) != 0)
        code = uva_error_set(&error, EINVAL, "%s is not a trace: %s", path,
                             why.message);
    if (code == 0 && events.events == 0)
        code = uva_error_set(&error, EINVAL, "%s has no events", path);
    if (code == 0 && events.cut)
        (void)fprintf(stderr,
                      "uvarrow: %s ends before its closing bracket; the page "
                      "shows what it has\n",
                      path);
    if (code == 0) {
        code = page_write(&events, &error);
        exit_code = UVA__EXIT_FAILED;
    }
    free(file.data);
    return code == 0 ? UVA__EXIT_OK : uva__report_error(&error, exit_code);
}

int uva__timeline_main(char **args)
{
    struct uva_error error;

    if (args[0] != NULL && uva__commands_is_help(args[0])) {
        (void)fputs(HELP, stdout);
        return UVA__EXIT_OK;
    }
    if (args[0] == NULL || args[1] != NULL) {
        uva_error_set(&error, EINVAL,
                      "give one file, a trace; see uvarrow timeline --help");
        return uva__report_error(&error, UVA__EXIT_USAGE);
    }
    if (args[0][0] == '-') {
        uva_error_set(&error, EINVAL, "there is no option '%s'; see --help",
                      args[0]);
        return uva__report_error(&error, UVA__EXIT_USAGE);
    }
    return timeline_run(args[0]);
}
