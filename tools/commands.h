/* SPDX-License-Identifier: Apache-2.0 */
/* The sub-commands of uvarrow, each in a file of its name. */
#ifndef UVA_TOOLS_COMMANDS_H
#define UVA_TOOLS_COMMANDS_H

#include <stdbool.h>
#include <string.h>

/* Each reads the arguments after its name, which end in NULL, and returns the
 * exit code of the program. Thread: loop. */
int uva__devices_main(char **args);
int uva__query_main(char **args);
int uva__serve_main(char **args); /* if UVA_HAS_SERVE is defined */
int uva__stall_main(char **args);
int uva__tables_main(char **args);
int uva__tck_main(char **args);
int uva__tck_main_of(const char *program, char **args); /* named in its help */
int uva__timeline_main(char **args);

/* Returns whether an argument requests help. Thread: any. */
static inline bool uva__commands_is_help(const char *arg)
{
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

#endif
