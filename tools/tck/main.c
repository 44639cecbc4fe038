/* SPDX-License-Identifier: Apache-2.0 */
/* The command uvarrow-tck: `uvarrow tck` alone, which needs the C library and
 * nothing else. The package uvarrow-tck and the wheel have it. */
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "report.h"
#include "uvarrow/base.h"

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], "--version") == 0) {
        printf("uvarrow-tck %d.%d.%d\n", UVA_VERSION_MAJOR, UVA_VERSION_MINOR,
               UVA_VERSION_PATCH);
        return UVA__EXIT_OK;
    }
    return uva__tck_main_of("uvarrow-tck", argv + 1);
}
