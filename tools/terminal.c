/* SPDX-License-Identifier: Apache-2.0 */
/* The variables are read in the order of POSIX: LC_ALL, LC_CTYPE, LANG. */
#include "terminal.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const char *variable(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

bool uva__terminal_is(int fd)
{
    return isatty(fd) == 1;
}

int uva__terminal_columns(int fd)
{
    const char *text = variable("COLUMNS");
    struct winsize size;
    long columns = 0;

    if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    if (text != NULL)
        columns = strtol(text, NULL, 10);
    return columns > 0 && columns < 10000 ? (int)columns : 0;
}

bool uva__terminal_has_colors(int fd)
{
    const char *term = variable("TERM");

    return uva__terminal_is(fd) && variable("NO_COLOR") == NULL &&
           term != NULL && strcmp(term, "dumb") != 0;
}

bool uva__terminal_has_unicode(void)
{
    const char *locale = variable("LC_ALL");
    const char *dot;

    if (locale == NULL)
        locale = variable("LC_CTYPE");
    if (locale == NULL)
        locale = variable("LANG");
    dot = locale != NULL ? strchr(locale, '.') : NULL;
    return dot != NULL && (strncasecmp(dot, ".utf-8", 6) == 0 ||
                           strncasecmp(dot, ".utf8", 5) == 0);
}
