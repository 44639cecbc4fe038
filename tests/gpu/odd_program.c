/* SPDX-License-Identifier: Apache-2.0 */
/* A program that ends badly in the way that its argument names, for the test of
 * the runner: fail, crash, hang or skip. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    const char *way = count > 1 ? arguments[1] : "";

    for (int line = 1; line <= 40; line++)
        (void)printf("line %d of \"%s\"\\\t\x01\xff\n", line, way);
    (void)fflush(stdout);
    if (strcmp(way, "crash") == 0)
        abort();
    while (strcmp(way, "hang") == 0)
        (void)pause();
    if (strcmp(way, "skip") == 0)
        return 77;
    return strcmp(way, "fail") == 0 ? 3 : 0;
}
