/* SPDX-License-Identifier: Apache-2.0 */
/* A socket for each message: there are few. */
#include "notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static const char *notify_path(void)
{
    const char *path = getenv("NOTIFY_SOCKET");

    return path != NULL && *path != '\0' ? path : NULL;
}

bool uva__notify_is_wanted(void)
{
    return notify_path() != NULL;
}

/* Reads a path, or a name of the abstract kind, which begins with '@'. Returns
 * the size of the address; 0: it is none. */
static socklen_t address_read(const char *path, struct sockaddr_un *out)
{
    const size_t size = strlen(path);

    *out = (struct sockaddr_un){.sun_family = AF_UNIX};
    if ((path[0] != '/' && path[0] != '@') || size >= sizeof(out->sun_path))
        return 0;
    memcpy(out->sun_path, path, size);
    if (path[0] == '@')
        out->sun_path[0] = '\0';
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size);
}

/* Returns 0 or an errno. */
static int message_send(const char *path, const char *text)
{
    const struct timeval second = {.tv_sec = 1};
    struct sockaddr_un address;
    const socklen_t size = address_read(path, &address);
    const int fd =
        size == 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int code = 0;

    if (size == 0)
        return EINVAL;
    if (fd < 0)
        return errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second));
    if (sendto(fd, text, strlen(text), MSG_NOSIGNAL,
               (struct sockaddr *)&address, size) < 0)
        code = errno;
    (void)close(fd);
    return code;
}

/* The manager compares the time with the time of its wish to reload. */
static int64_t monotonic_us(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A line of the protocol ends at a line break. */
static void line_keep(char *text)
{
    for (; *text != '\0'; text++)
        if ((unsigned char)*text < ' ')
            *text = ' ';
}

void uva__notify_send(enum uva__notify_state state, const char *status)
{
    static const char *const STATES[] = {[UVA__NOTIFY_READY] = "READY=1",
                                         [UVA__NOTIFY_RELOADING] =
                                             "RELOADING=1",
                                         [UVA__NOTIFY_STOPPING] = "STOPPING=1"};
    const char *path = notify_path();
    char text[512], line[256], time[64] = "";
    int code;

    if (path == NULL)
        return;
    if (state == UVA__NOTIFY_RELOADING)
        (void)snprintf(time, sizeof(time), "MONOTONIC_USEC=%" PRId64 "\n",
                       monotonic_us());
    (void)snprintf(line, sizeof(line), "%.*s", (int)sizeof(line) - 1, status);
    line_keep(line);
    (void)snprintf(text, sizeof(text), "%s\n%sSTATUS=%s\n", STATES[state], time,
                   line);
    code = message_send(path, text);
    if (code != 0)
        (void)fprintf(stderr, "uvarrow: cannot notify %s: %s\n", path,
                      strerror(code));
}
