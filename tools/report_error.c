/* SPDX-License-Identifier: Apache-2.0 */
/* Prints an error. It is all that the program of tools/tck needs of the
 * messages in report.c, and needs no libuv. */
#include <stdio.h>
#include <string.h>

#include "report.h"

/* A driver's message may have several lines, where tabs and a caret below show
 * the mistake. Other control characters could confuse a terminal. */
static bool is_printed(char c)
{
    return (unsigned char)c >= ' ' || c == '\n' || c == '\t';
}

int uva__report_error(const struct uva_error *error, int exit_code)
{
    char text[sizeof(error->message)];
    size_t size = strlen(error->message), i;

    while (size > 0 && error->message[size - 1] == '\n')
        size--;
    for (i = 0; i < size; i++)
        text[i] = is_printed(error->message[i]) ? error->message[i] : ' ';
    text[size] = '\0';
    if (size == 0)
        (void)snprintf(text, sizeof(text), "it failed: %s",
                       strerror(error->code));
    fprintf(stderr, "uvarrow: %s\n", text);
    return exit_code;
}
