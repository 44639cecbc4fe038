/* SPDX-License-Identifier: Apache-2.0 */
/* One table of options serves the command line, where a value follows its
 * option as the next argument or after a "=", the file, and the help. */
#include "settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"
#include "guess.h"

static const char HELP[] =
    "Usage: uvarrow serve [--driver NAME] [OPTION]... [DATABASE]\n"
    "\n"
    "Answers HTTP requests with the rows of queries, as Arrow IPC, CSV\n"
    "or JSON lines:\n"
    "\n"
    "    uvarrow serve flights.db\n"
    "    curl 'http://127.0.0.1:8080/query?format=csv&sql=SELECT+1'\n"
    "\n"
    "DATABASE is a file or a URI, and is only read unless --writable is\n"
    "given. docs/server.md describes paths, formats and safety.\n"
    "\n";

static const char HELP_LIMITS[] = "\n"
                                  "Limits, and their defaults:\n"
                                  "\n";

static const char HELP_END[] =
    "\n"
    "SIGTERM and Ctrl-C end it behind the running answers, a second one at\n"
    "once. SIGHUP loads the certificate and the token again. Exit codes: 0\n"
    "ended by a signal; 1 failed; 2 wrong option, driver or address.\n";

/* ---- values -------------------------------------------------------------- */

static int names_add(const char **names, size_t *count, const char *value,
                     struct uva_error *error)
{
    if (*count == UVA__ACCESS_MOST)
        return uva_error_set(error, EINVAL, "more than %d names",
                             UVA__ACCESS_MOST);
    names[(*count)++] = value;
    return 0;
}

static int host_add(struct uva__settings *settings, const char *value,
                    struct uva_error *error)
{
    if (*value == '\0' || strpbrk(value, "/*@ ") != NULL)
        return uva_error_set(error, EINVAL, "'%s' is no NAME or NAME:PORT",
                             value);
    return names_add(settings->access.hosts, &settings->access.n_hosts, value,
                     error);
}

static int origin_add(struct uva__settings *settings, const char *value,
                      struct uva_error *error)
{
    struct uva__access *access = &settings->access;

    if (access->n_origins == UVA__ACCESS_MOST)
        return uva_error_set(error, EINVAL, "more than %d names",
                             UVA__ACCESS_MOST);
    if (uva__origin_normalise(value, access->origins[access->n_origins]) != 0)
        return uva_error_set(
            error, EINVAL,
            "'%s' is not an origin, such as https://example.org, "
            "or null for pages of files",
            value);
    access->n_origins++;
    return 0;
}

static int proxy_add(struct uva__settings *settings, const char *value,
                     struct uva_error *error)
{
    struct uva__proxies *proxies = &settings->proxies;

    if (proxies->count == UVA__PROXIES_MOST)
        return uva_error_set(error, EINVAL, "more than %d --trusted-proxy",
                             UVA__PROXIES_MOST);
    if (!uva__network_parse(value, &proxies->networks[proxies->count]))
        return uva_error_set(
            error, EINVAL,
            "'%s' is neither an address nor a network, such as "
            "10.0.0.0/8 or fd00::/8",
            value);
    proxies->count++;
    return 0;
}

static int text_set(const char **out, const char *value)
{
    *out = value;
    return 0;
}

static int flag_set(bool *out, const char *value, struct uva_error *error)
{
    *out = strcmp(value, "true") == 0;
    if (*out || strcmp(value, "false") == 0)
        return 0;
    return uva_error_set(error, EINVAL,
                         "an option without a value is true or false, not '%s'",
                         value);
}

static int config_set(struct uva__settings *s, const char *value,
                      struct uva_error *error)
{
    (void)error;
    return text_set(&s->config, value);
}

static int driver_set(struct uva__settings *s, const char *value,
                      struct uva_error *error)
{
    (void)error;
    return text_set(&s->database.driver, value);
}

static int entrypoint_set(struct uva__settings *s, const char *value,
                          struct uva_error *error)
{
    (void)error;
    return text_set(&s->database.entrypoint, value);
}

static int database_set(struct uva__settings *s, const char *value,
                        struct uva_error *error)
{
    if (s->database.name != NULL)
        return uva_error_set(error, EINVAL, "more than one database: '%s'",
                             value);
    return text_set(&s->database.name, value);
}

static int option_add(struct uva__settings *s, const char *value,
                      struct uva_error *error)
{
    return uva__database_add(&s->database.options, value, error);
}

static int connection_option_add(struct uva__settings *s, const char *value,
                                 struct uva_error *error)
{
    return uva__database_add(&s->database.connections, value, error);
}

static int statement_option_add(struct uva__settings *s, const char *value,
                                struct uva_error *error)
{
    return uva__database_add(&s->database.statements, value, error);
}

static int writable_set(struct uva__settings *s, const char *value,
                        struct uva_error *error)
{
    return flag_set(&s->database.is_writable, value, error);
}

static int trust_user_set(struct uva__settings *s, const char *value,
                          struct uva_error *error)
{
    return flag_set(&s->database.trusts_user, value, error);
}

static int quiet_set(struct uva__settings *s, const char *value,
                     struct uva_error *error)
{
    return flag_set(&s->is_quiet, value, error);
}

/* Reads "127.0.0.1:8080" or "[::1]:8080". */
static int listen_set(struct uva__settings *settings, const char *text,
                      struct uva_error *error)
{
    const char *colon = strrchr(text, ':');
    const bool is_6 = text[0] == '[';
    char name[64] = "", *end = NULL;
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;
    long port = -1;
    int code = -1;

    settings->listen = text;
    if (colon != NULL && colon[1] >= '0' && colon[1] <= '9')
        port = strtol(colon + 1, &end, 10);
    if (is_6 && size >= 2 && text[size - 1] == ']')
        (void)snprintf(name, sizeof(name), "%.*s", (int)size - 2, text + 1);
    else if (!is_6)
        (void)snprintf(name, sizeof(name), "%.*s", (int)size, text);
    if (port >= 0 && port < 65536 && *end == '\0')
        code = is_6 ? uv_ip6_addr(name, (int)port,
                                  (struct sockaddr_in6 *)&settings->address)
                    : uv_ip4_addr(name, (int)port,
                                  (struct sockaddr_in *)&settings->address);
    return code == 0 ? 0
                     : uva_error_set(error, EINVAL,
                                     "'%s' is not an address and port, such as "
                                     "127.0.0.1:8080 or [::1]:8080",
                                     text);
}

static int token_file_set(struct uva__settings *s, const char *value,
                          struct uva_error *error)
{
    (void)error;
    return text_set(&s->token_file, value);
}

static int certificate_set(struct uva__settings *s, const char *value,
                           struct uva_error *error)
{
    (void)error;
    return text_set(&s->certificate, value);
}

static int key_set(struct uva__settings *s, const char *value,
                   struct uva_error *error)
{
    (void)error;
    return text_set(&s->key, value);
}

static int log_set(struct uva__settings *s, const char *value,
                   struct uva_error *error)
{
    (void)error;
    return text_set(&s->log, value);
}

/* ---- options ------------------------------------------------------------- */

/* An option that is no limit: on the command line by its name, in a file
 * without the "--". */
struct option {
    const char *name;  /* "--driver" */
    const char *value; /* its name in the help; NULL: a flag, true or false */
    const char *help;  /* lines of the help */
    int (*set)(struct uva__settings *settings, const char *value,
               struct uva_error *error);
};

static const struct option OPTIONS[] = {
    {"--config", "FILE",
     "options as lines NAME = VALUE; those of the\n"
     "command line replace them",
     config_set},
    {"--database", "DATABASE", "the same as the argument", database_set},
    {"--driver", "NAME",
     "an ADBC driver: name or shared library (told\n"
     "by the bytes of the file, the scheme of the URI)",
     driver_set},
    {"--entrypoint", "NAME", "its first function", entrypoint_set},
    {"--option", "KEY=VALUE", "sets something on the database", option_add},
    {"--connection-option", "K=V", "the same on each connection",
     connection_option_add},
    {"--statement-option", "K=V", "the same on each statement",
     statement_option_add},
    {"--writable", NULL, "queries may change the database", writable_set},
    {"--trust-user", NULL,
     "PostgreSQL: its user may have rights that\n"
     "reach beyond reading, such as a superuser's",
     trust_user_set},
    {"--listen", "ADDRESS:PORT", "127.0.0.1:8080; port 0 takes a free one",
     listen_set},
    {"--token-file", "FILE",
     "requests need the token in its first line;\n"
     "mandatory beyond this machine",
     token_file_set},
    {"--host", "NAME[:PORT]",
     "a name that clients use for this server;\n"
     "once for each",
     host_add},
    {"--allow-origin", "ORIGIN",
     "a site with pages that may ask, or null:\n"
     "pages of files; once for each",
     origin_add},
    {"--trusted-proxy", "NETWORK",
     "proxies whose X-Forwarded-For states the\n"
     "client: 10.0.0.0/8; once for each",
     proxy_add},
    {"--tls-cert", "FILE", "certificates, PEM: HTTPS", certificate_set},
    {"--tls-key", "FILE", "and their key", key_set},
    {"--log", "FILE",
     "appends the access log to it, instead of\n"
     "standard output; SIGHUP opens it again",
     log_set},
    {"--quiet", NULL, "no access log", quiet_set},
};

/* Options have numbers: those of the table, then the limits. */
enum { OPTIONS_COUNT = sizeof(OPTIONS) / sizeof(*OPTIONS) };

/* Returns the name of an option; NULL after the last. */
static const char *option_name(size_t option)
{
    const struct uva__limit *limit;

    if (option < OPTIONS_COUNT)
        return OPTIONS[option].name;
    limit = uva__limits_at(option - OPTIONS_COUNT);
    return limit != NULL ? limit->option : NULL;
}

/* Finds the option whose name, after its "--", is these bytes. Returns whether
 * there is one. */
static bool option_find(const char *name, size_t size, size_t *out)
{
    const char *other;

    for (*out = 0; (other = option_name(*out)) != NULL; ++*out)
        if (strlen(other) == size + 2 && memcmp(other + 2, name, size) == 0)
            return true;
    return false;
}

static bool option_is_flag(size_t option)
{
    return option < OPTIONS_COUNT && OPTIONS[option].value == NULL;
}

/* Whether one of the first `count` values is an option's. */
static bool option_is_given(const struct uva__settings *settings, size_t count,
                            size_t option)
{
    size_t i;

    for (i = 0; i < count; i++)
        if (settings->given[i].option == option)
            return true;
    return false;
}

static int option_set(struct uva__settings *settings, size_t option,
                      const char *value, struct uva_error *error)
{
    struct uva__given *given =
        realloc(settings->given, (settings->n_given + 1) * sizeof(*given));

    if (given == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    settings->given = given;
    given[settings->n_given++] =
        (struct uva__given){.option = option, .value = value};
    return option < OPTIONS_COUNT
               ? OPTIONS[option].set(settings, value, error)
               : uva__limits_set(&settings->limits, option_name(option), value,
                                 error);
}

static void help_line(const char *name, const char *value, const char *text)
{
    char tag[80];
    const char *end = strchr(text, '\n');

    (void)snprintf(tag, sizeof(tag), "%s%s%s", name, value != NULL ? " " : "",
                   value != NULL ? value : "");
    for (; end != NULL; end = strchr(text, '\n')) {
        (void)printf("  %-27s %.*s\n", tag, (int)(end - text), text);
        tag[0] = '\0';
        text = end + 1;
    }
    (void)printf("  %-27s %s\n", tag, text);
}

void uva__settings_help(void)
{
    const struct uva__limit *limit;
    char normal[32];
    size_t i;

    (void)fputs(HELP, stdout);
    for (i = 0; i < OPTIONS_COUNT; i++)
        help_line(OPTIONS[i].name, OPTIONS[i].value, OPTIONS[i].help);
    help_line("-h, --help", NULL, "prints this");
    (void)fputs(HELP_LIMITS, stdout);
    for (i = 0; (limit = uva__limits_at(i)) != NULL; i++) {
        (void)snprintf(normal, sizeof(normal), "%" PRId64, limit->normal);
        help_line(limit->option, normal, limit->meaning);
    }
    (void)fputs(HELP_END, stdout);
}

/* ---- the command line ---------------------------------------------------- */

/* Reads the option at `*args`, and steps over its value. */
static int option_read(struct uva__settings *settings, char ***args,
                       struct uva_error *error)
{
    const char *arg = **args, *equals = strchr(arg, '='), *value;
    const size_t size = equals != NULL ? (size_t)(equals - arg) : strlen(arg);
    size_t option;

    if (uva__commands_is_help(arg)) {
        settings->help = true;
        return 0;
    }
    if (size < 2 || arg[1] != '-' || !option_find(arg + 2, size - 2, &option))
        return uva_error_set(error, EINVAL,
                             "there is no option '%s'; see --help", arg);
    value = equals != NULL           ? equals + 1
            : option_is_flag(option) ? "true"
                                     : *++*args;
    if (value == NULL)
        return uva_error_set(error, EINVAL, "%s needs a value behind it",
                             option_name(option));
    return option_set(settings, option, value, error);
}

static int args_read(struct uva__settings *settings, char **args,
                     struct uva_error *error)
{
    bool ended = false;
    size_t database;
    int code = 0;

    (void)option_find("database", strlen("database"), &database);
    for (; *args != NULL && code == 0; args++) {
        if (!ended && strcmp(*args, "--") == 0)
            ended = true;
        else if (!ended && (*args)[0] == '-')
            code = option_read(settings, &args, error);
        else
            code = option_set(settings, database, *args, error);
        if (code != 0)
            break; /* `args` may stand at the end */
    }
    return code;
}

/* ---- the file ------------------------------------------------------------ */

/* Takes a line, unless one of the first `count` values has its option. */
static int line_take(struct uva__settings *settings, size_t count,
                     const char *name, const char *value,
                     struct uva_error *error)
{
    size_t option;

    if (!option_find(name, strlen(name), &option))
        return uva_error_set(error, EINVAL,
                             "there is no option '%.40s'; see --help", name);
    if (option < OPTIONS_COUNT && OPTIONS[option].set == config_set)
        return uva_error_set(error, EINVAL, "%s is for the command line", name);
    return option_is_given(settings, count, option)
               ? 0
               : option_set(settings, option, value, error);
}

static int file_read(struct uva__settings *settings, struct uva_error *error)
{
    const size_t count = settings->n_given;
    const char *name, *value;
    int code = uva__config_open(&settings->file, settings->config, error);

    while (code == 0) {
        code = uva__config_next(&settings->file, &name, &value, error);
        if (code != 0 || name == NULL)
            break;
        code = line_take(settings, count, name, value, error);
        if (code != 0)
            code = uva__config_blame(&settings->file, error);
    }
    return code;
}

/* ---- settings that must fit together ------------------------------------- */

static bool is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *four = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *six = (const struct sockaddr_in6 *)address;

    if (address->ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&six->sin6_addr);
    return ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

static int settings_check(struct uva__settings *settings,
                          struct uva_error *error)
{
    if (settings->database.driver == NULL && settings->database.name == NULL)
        return uva_error_set(error, EINVAL,
                             "no database: give --driver, a file or a URI");
    if ((settings->certificate == NULL) != (settings->key == NULL))
        return uva_error_set(error, EINVAL,
                             "--tls-cert and --tls-key go together");
    if (settings->token_file == NULL && !is_loopback(&settings->address))
        return uva_error_set(error, EINVAL,
                             "%s can be reached from other machines: that "
                             "needs --token-file",
                             settings->listen);
    if (settings->is_quiet && settings->log != NULL)
        return uva_error_set(error, EINVAL, "--quiet and --log contradict");
    settings->access.has_tls = settings->certificate != NULL;
    return 0;
}

/* Reads all but the files that options name. */
static int settings_read(struct uva__settings *settings, char **args,
                         struct uva_error *error)
{
    int code;

    memset(settings, 0, sizeof(*settings));
    uva__limits_init(&settings->limits);
    (void)listen_set(settings, "127.0.0.1:8080", error);
    code = args_read(settings, args, error);
    if (code == 0 && !settings->help && settings->config != NULL)
        code = file_read(settings, error);
    return code != 0 || settings->help ? code : settings_check(settings, error);
}

int uva__settings_init(struct uva__settings *settings, char **args,
                       struct uva_error *error)
{
    int code = settings_read(settings, args, error);

    if (code == 0 && !settings->help && settings->database.driver == NULL)
        code = uva__guess_driver(settings->database.name,
                                 &settings->database.driver, error);
    return code != 0 || settings->help || settings->token_file == NULL
               ? code
               : uva__access_load(&settings->access, settings->token_file,
                                  error);
}

/* Gives the next value of an option from number `*at` on; NULL: no more. */
static const char *given_next(const struct uva__settings *settings,
                              size_t option, size_t *at)
{
    while (*at < settings->n_given)
        if (settings->given[(*at)++].option == option)
            return settings->given[*at - 1].value;
    return NULL;
}

static bool is_given_alike(const struct uva__settings *a,
                           const struct uva__settings *b, size_t option)
{
    size_t i = 0, k = 0;
    const char *one, *other;

    do {
        one = given_next(a, option, &i);
        other = given_next(b, option, &k);
    } while (one != NULL && other != NULL && strcmp(one, other) == 0);
    return one == NULL && other == NULL;
}

int uva__settings_compare(const struct uva__settings *settings, char **args,
                          char *out, size_t room, struct uva_error *error)
{
    struct uva__settings fresh;
    const int code = settings_read(&fresh, args, error);
    size_t option, size = 0;

    out[0] = '\0';
    for (option = 0; code == 0 && option_name(option) != NULL; option++) {
        if (size + 32 > room || is_given_alike(settings, &fresh, option))
            continue;
        size +=
            (size_t)snprintf(out + size, room - size, "%s%s",
                             size == 0 ? "" : ", ", option_name(option) + 2);
    }
    uva__settings_fini(&fresh);
    return code;
}

void uva__settings_warn(const struct uva__settings *settings)
{
    struct stat about;

    if (settings->token_file != NULL && settings->certificate == NULL &&
        !is_loopback(&settings->address))
        (void)fprintf(stderr,
                      "uvarrow: warning: %s has no TLS: others on the network "
                      "can read the token and the rows; see --tls-cert\n",
                      settings->listen);
    if (settings->access.is_exposed)
        (void)fprintf(stderr,
                      "uvarrow: warning: other users can read or change %s, "
                      "and so the token; see chmod\n",
                      settings->token_file);
    if (settings->config != NULL && stat(settings->config, &about) == 0 &&
        (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
        (void)fprintf(stderr, "uvarrow: warning: other users can change %s\n",
                      settings->config);
}

void uva__settings_fini(struct uva__settings *settings)
{
    uva__database_fini(&settings->database);
    uva__access_fini(&settings->access);
    uva__config_fini(&settings->file);
    free(settings->given);
    settings->given = NULL;
    settings->n_given = 0;
}
