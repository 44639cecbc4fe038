/* SPDX-License-Identifier: Apache-2.0 */
/* The command uvarrow: finds the sub-command and runs it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"
#include "report.h"

/* A sub-command. */
struct command {
    const char *name;         /* the first argument */
    const char *purpose;      /* for --help */
    int (*main)(char **args); /* as in commands.h */
};

static const struct command COMMANDS[] = {
    {"devices", "list device types, and how their events are waited for",
     uva__devices_main},
    {"query", "run a query through an ADBC driver, write its rows",
     uva__query_main},
#ifdef UVA_HAS_SERVE
    {"serve", "answer queries over HTTP", uva__serve_main},
#endif
    {"stall", "measure how long a query holds up a loop", uva__stall_main},
    {"tables", "list the tables of a database, or the columns of one",
     uva__tables_main},
    {"tck", "test an implementation of Arrow's async streams", uva__tck_main},
    {"timeline", "show a trace of UVA_TRACE as a page", uva__timeline_main},
};

#define COMMANDS_COUNT (sizeof(COMMANDS) / sizeof(*COMMANDS))

static const struct command *command_find(const char *name)
{
    size_t i;

    for (i = 0; name != NULL && i < COMMANDS_COUNT; i++)
        if (strcmp(name, COMMANDS[i].name) == 0)
            return &COMMANDS[i];
    return NULL;
}

static int help(void)
{
    size_t i;

    printf("Usage: uvarrow COMMAND [OPTION]... [ARGUMENT]...\n\n");
    for (i = 0; i < COMMANDS_COUNT; i++)
        printf("  %-8s %s\n", COMMANDS[i].name, COMMANDS[i].purpose);
    printf("\nuvarrow COMMAND --help, or uvarrow help COMMAND, explains one.\n"
           "uvarrow --version says which this is.\n");
    return UVA__EXIT_OK;
}

static int version(void)
{
    const unsigned number = uva_version();

    printf("uvarrow %u.%u.%u\n", number >> 16, number >> 8 & 255, number & 255);
    return UVA__EXIT_OK;
}

static int unknown(const char *name)
{
    struct uva_error error;

    if (name == NULL)
        uva_error_set(&error, EINVAL, "no command; see uvarrow --help");
    else
        uva_error_set(&error, EINVAL,
                      "there is no command '%s'; see uvarrow --help", name);
    return uva__report_error(&error, UVA__EXIT_USAGE);
}

/* "help" alone explains the program; "help COMMAND" is the same as "COMMAND
 * --help". */
static int help_on(const char *name)
{
    char option[] = "--help";
    const struct command *command = command_find(name);

    if (name == NULL || uva__commands_is_help(name))
        return help();
    return command != NULL ? command->main((char *[]){option, NULL})
                           : unknown(name);
}

/* If a standard descriptor is closed, the next file opened would get its number
 * and be written to by mistake. This opens a stand-in that cannot be written
 * to. */
static void fill_descriptors(void)
{
    int fd;

    do
        fd = open("/dev/null", O_RDONLY);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        (void)close(fd);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : NULL;
    const struct command *command = command_find(name);

    fill_descriptors();
    (void)setenv("UV_THREADPOOL_SIZE", "1", 0); /* keeps file writes in order */
    (void)signal(SIGPIPE, SIG_IGN); /* the write returns EPIPE instead */
    (void)signal(SIGXFSZ, SIG_IGN); /* and EFBIG */
    if (name != NULL && uva__commands_is_help(name))
        return help();
    if (name != NULL && strcmp(name, "help") == 0)
        return help_on(argv[2]);
    if (name != NULL && strcmp(name, "--version") == 0)
        return version();
    return command != NULL ? command->main(argv + 2) : unknown(name);
}
