/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow tck: runs the test suite for implementations of Arrow's asynchronous
 * streams on a shared object, and prints the result of each case. The suite
 * itself is libuvarrow-tck. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "report.h"
#include "uvarrow/tck.h"

static const char HELP[] =
    "\n"
    "Tests an implementation of Arrow's asynchronous device streams, given as\n"
    "a shared object that exports the functions of uvarrow/tck.h.\n"
    "\n"
    "  --role ROLE    producer, handler or stream; default: all it exports\n"
    "  --filter ID    a clause (AP-06) or a part of the cases' names\n"
    "  --tap FILE     write the results as TAP 14\n"
    "  --junit FILE   write the results as JUnit XML\n"
    "  --list         print the names of the cases; needs no FILE.so\n"
    "\n"
    "In the environment, for slow machines:\n"
    "  UVA_TCK_WAIT_MS   what has to come comes within; 5000\n"
    "  UVA_TCK_QUIET_MS  what must not come does not within; 50\n"
    "  UVA_TCK_JOBS      cases at the same time; one per processor\n"
    "\n"
    "Exit code: 0 all required clauses hold, in every case; 1 not all;\n"
    "2 nothing was run.\n";

/* The command line, and what is told again at the end. */
struct session {
    struct uva_tck what;
    FILE *broken;      /* owns; a line for each clause that does not hold */
    char *broken_text; /* owns; written by `broken` */
    size_t broken_size;
    bool list;
    bool help;
};

/* ---- the command line --------------------------------------------------- */

static int role_read(struct uva_tck *what, const char *text,
                     struct uva_error *error)
{
    if (strcmp(text, "producer") == 0)
        what->roles |= UVA_TCK_PRODUCER;
    else if (strcmp(text, "handler") == 0)
        what->roles |= UVA_TCK_HANDLER;
    else if (strcmp(text, "stream") == 0)
        what->roles |= UVA_TCK_STREAM;
    else
        return uva_error_set(error, EINVAL,
                             "there is no role '%s': producer, handler or "
                             "stream",
                             text);
    return 0;
}

/* Reads an option with a value, which follows as the next argument or after
 * '='. */
static int value_read(struct uva_tck *what, char ***args,
                      struct uva_error *error)
{
    const char *arg = **args;
    const size_t size = strcspn(arg, "=");
    const char *value = arg[size] == '=' ? arg + size + 1 : *++*args;

    if (value == NULL)
        return uva_error_set(error, EINVAL, "%s needs a value behind it", arg);
    if (strncmp(arg, "--role", size) == 0 && size == 6)
        return role_read(what, value, error);
    if (strncmp(arg, "--filter", size) == 0 && size == 8)
        what->filter = value;
    else if (strncmp(arg, "--tap", size) == 0 && size == 5)
        what->tap = value;
    else if (strncmp(arg, "--junit", size) == 0 && size == 7)
        what->junit = value;
    else
        return uva_error_set(error, EINVAL,
                             "there is no option '%s'; see --help", arg);
    return 0;
}

static int args_read(struct session *session, char **args,
                     struct uva_error *error)
{
    for (; *args != NULL; args++) {
        int code = 0;

        if (strcmp(*args, "--list") == 0)
            session->list = true;
        else if (uva__commands_is_help(*args))
            session->help = true;
        else if ((*args)[0] == '-')
            code = value_read(&session->what, &args, error);
        else if (session->what.file == NULL)
            session->what.file = *args;
        else
            code = uva_error_set(error, EINVAL, "more than one FILE.so");
        if (code != 0)
            return code;
    }
    return 0;
}

static int session_init(struct session *session, const char *program,
                        char **args, struct uva_error *error)
{
    int code;

    *session = (struct session){0};
    code = args_read(session, args, error);
    if (code == 0 && session->what.file == NULL && !session->list &&
        !session->help)
        code = uva_error_set(error, EINVAL,
                             "no FILE.so was given; see %s --help", program);
    return code;
}

/* ---- output ------------------------------------------------------------- */

static const char *role_name(enum uva_tck_role role)
{
    return role == UVA_TCK_PRODUCER  ? "producer"
           : role == UVA_TCK_HANDLER ? "handler "
                                     : "stream  ";
}

/* Prints a text with every line indented. */
static void print_block(const char *text)
{
    while (*text != '\0') {
        const size_t size = strcspn(text, "\n");

        printf("        | %.*s\n", (int)size, text);
        text += size + (text[size] == '\n');
    }
}

static void print_result(void *ctx, const struct uva_tck_result *result)
{
    struct session *session = ctx;

    switch (result->verdict) {
    case UVA_TCK_HELD:
        printf("ok      %s %s (%" PRId64 " ms)\n", role_name(result->role),
               result->name, result->took_ms);
        break;
    case UVA_TCK_SKIPPED:
        printf("skip    %s %s: %s\n", role_name(result->role), result->name,
               result->message);
        break;
    default:
        printf("%s  %s %s: %s\n", result->required ? "BROKEN" : "weak  ",
               role_name(result->role), result->name, result->message);
        (void)fprintf(session->broken, "        %s %s: %s\n",
                      role_name(result->role), result->name, result->message);
        print_block(result->transcript);
        print_block(result->output);
        break;
    }
    (void)fflush(stdout);
}

static void print_name(void *ctx, const struct uva_tck_result *result)
{
    (void)ctx;
    printf("%s %s%s%s\n", role_name(result->role), result->name,
           result->message[0] != '\0' ? ": skipped, " : "", result->message);
}

static int tck_list(struct session *session, struct uva_error *error)
{
    session->what.on_result = print_name;
    if (uva_tck_list(&session->what, error) != 0)
        return uva__report_error(error, UVA__EXIT_USAGE);
    return UVA__EXIT_OK;
}

/* Prints the counts, and once more what is broken, because hundreds of lines
 * may stand behind its first mention. */
static void print_end(const struct session *session,
                      const struct uva_tck_tally *tally)
{
    printf("\n%" PRId64 " held, %" PRId64 " required broken, %" PRId64
           " recommended broken, %" PRId64 " skipped\n",
           tally->held, tally->required_broken, tally->recommended_broken,
           tally->skipped);
    if (session->broken_size > 0)
        printf("\nDoes not hold:\n%s", session->broken_text);
}

static int tck_run(struct session *session, struct uva_error *error)
{
    struct uva_tck_tally tally;
    int code;

    session->broken =
        open_memstream(&session->broken_text, &session->broken_size);
    if (session->broken == NULL) {
        (void)uva_error_set(error, ENOMEM, "out of memory");
        return uva__report_error(error, UVA__EXIT_USAGE);
    }
    session->what.ctx = session;
    session->what.on_result = print_result;
    code = uva_tck_run(&session->what, &tally, error);
    (void)fclose(session->broken);
    if (code == 0)
        print_end(session, &tally);
    free(session->broken_text);
    if (code != 0)
        return uva__report_error(error, UVA__EXIT_USAGE);
    return tally.required_broken > 0 ? UVA__EXIT_FAILED : UVA__EXIT_OK;
}

int uva__tck_main_of(const char *program, char **args)
{
    struct session session;
    struct uva_error error;

    if (session_init(&session, program, args, &error) != 0)
        return uva__report_error(&error, UVA__EXIT_USAGE);
    if (session.help) {
        printf("Usage: %s [OPTION]... FILE.so\n%s", program, HELP);
        return UVA__EXIT_OK;
    }
    if (session.list)
        return tck_list(&session, &error);
    return tck_run(&session, &error);
}

int uva__tck_main(char **args)
{
    return uva__tck_main_of("uvarrow tck", args);
}
