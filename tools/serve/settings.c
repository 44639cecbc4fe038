/* SPDX-License-Identifier: Apache-2.0 */
/* A value follows its option as the next argument or after a "=". */
#include "settings.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

static const char HELP[] =
    "Usage: uvarrow serve [--driver NAME] [OPTION]... [DATABASE]\n"
    "\n"
    "Answers HTTP requests with the rows of queries, as Arrow IPC, CSV\n"
    "or JSON lines:\n"
    "\n"
    "    uvarrow serve --driver sqlite flights.db\n"
    "    curl 'http://127.0.0.1:8080/query?format=csv&sql=SELECT+1'\n"
    "\n"
    "DATABASE is a file or a URI, and is only read unless --writable is\n"
    "given. docs/server.md describes paths, formats and safety.\n"
    "\n"
    "  --driver NAME              an ADBC driver: name or shared library;\n"
    "                             not needed if DATABASE is a URI\n"
    "  --entrypoint NAME          its first function\n"
    "  --option KEY=VALUE         sets something on the database\n"
    "  --connection-option K=V    the same on each connection\n"
    "  --statement-option K=V     the same on each statement\n"
    "  --writable                 queries may change the database\n"
    "  --trust-user               PostgreSQL: its user may have rights that\n"
    "                             reach beyond reading, such as a superuser's\n"
    "  --listen ADDRESS:PORT      127.0.0.1:8080; port 0 takes a free one\n"
    "  --token-file FILE          requests need the token in its first line;\n"
    "                             mandatory beyond this machine\n"
    "  --host NAME[:PORT]         a name that clients use for this server;\n"
    "                             once for each\n"
    "  --allow-origin ORIGIN      a site with pages that may ask, or null:\n"
    "                             pages of files; once for each\n"
    "  --trusted-proxy NETWORK    proxies whose X-Forwarded-For states the\n"
    "                             client: 10.0.0.0/8; once for each\n"
    "  --tls-cert FILE            certificates, PEM: HTTPS\n"
    "  --tls-key FILE             and their key\n"
    "  --log FILE                 appends the access log to it, instead of\n"
    "                             standard output; SIGHUP opens it again\n"
    "  --quiet                    no access log\n"
    "  -h, --help                 prints this\n"
    "\n"
    "Limits, and their defaults:\n"
    "\n";

static const char HELP_END[] =
    "\n"
    "SIGTERM and Ctrl-C end it behind the running answers, a second one at\n"
    "once. Exit codes: 0 ended by a signal; 1 failed; 2 wrong option, driver "
    "or\naddress.\n";

void uva__settings_help(void)
{
    const struct uva__limit *limit;
    char text[80];
    size_t i;

    (void)fputs(HELP, stdout);
    for (i = 0; (limit = uva__limits_at(i)) != NULL; i++) {
        (void)snprintf(text, sizeof(text), "%s %" PRId64, limit->option,
                       limit->normal);
        (void)printf("  %-27s %s\n", text, limit->meaning);
    }
    (void)fputs(HELP_END, stdout);
}

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
        return uva_error_set(error, EINVAL,
                             "'%s' is no origin, such as https://example.org, "
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
        return uva_error_set(error, EINVAL,
                             "'%s' is no address and no network, such as "
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

static int listen_set(struct uva__settings *s, const char *value,
                      struct uva_error *error)
{
    (void)error;
    return text_set(&s->listen, value);
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

struct option {
    const char *name;
    int (*set)(struct uva__settings *settings, const char *value,
               struct uva_error *error);
};

static const struct option OPTIONS[] = {
    {"--driver", driver_set},
    {"--entrypoint", entrypoint_set},
    {"--option", option_add},
    {"--connection-option", connection_option_add},
    {"--statement-option", statement_option_add},
    {"--listen", listen_set},
    {"--token-file", token_file_set},
    {"--host", host_add},
    {"--allow-origin", origin_add},
    {"--trusted-proxy", proxy_add},
    {"--tls-cert", certificate_set},
    {"--tls-key", key_set},
    {"--log", log_set},
};

static bool flag_set(struct uva__settings *settings, const char *name)
{
    if (uva__commands_is_help(name))
        settings->help = true;
    else if (strcmp(name, "--quiet") == 0)
        settings->is_quiet = true;
    else if (strcmp(name, "--writable") == 0)
        settings->database.is_writable = true;
    else if (strcmp(name, "--trust-user") == 0)
        settings->database.trusts_user = true;
    else
        return false;
    return true;
}

static bool is_known(const char *name)
{
    size_t i;

    for (i = 0; i < sizeof(OPTIONS) / sizeof(*OPTIONS); i++)
        if (strcmp(name, OPTIONS[i].name) == 0)
            return true;
    for (i = 0; uva__limits_at(i) != NULL; i++)
        if (strcmp(name, uva__limits_at(i)->option) == 0)
            return true;
    return false;
}

static int value_set(struct uva__settings *settings, const char *name,
                     const char *value, struct uva_error *error)
{
    size_t i;

    for (i = 0; i < sizeof(OPTIONS) / sizeof(*OPTIONS); i++)
        if (strcmp(name, OPTIONS[i].name) == 0)
            return OPTIONS[i].set(settings, value, error);
    return uva__limits_set(&settings->limits, name, value, error);
}

/* Reads the option at `*args`, and steps over its value. */
static int option_read(struct uva__settings *settings, char ***args,
                       struct uva_error *error)
{
    char name[32];
    const char *arg = **args, *value = strchr(arg, '=');
    const size_t size = value != NULL ? (size_t)(value - arg) : strlen(arg);

    if (flag_set(settings, arg))
        return 0;
    (void)snprintf(name, sizeof(name), "%.*s",
                   (int)(size < sizeof(name) ? size : sizeof(name) - 1), arg);
    if (size >= sizeof(name) || !is_known(name))
        return uva_error_set(error, EINVAL,
                             "there is no option '%s'; see --help", arg);
    if (value == NULL) {
        value = *++*args;
        if (value == NULL)
            return uva_error_set(error, EINVAL, "%s needs a value behind it",
                                 name);
    } else {
        value++;
    }
    return value_set(settings, name, value, error);
}

static int args_read(struct uva__settings *settings, char **args,
                     struct uva_error *error)
{
    bool ended = false;
    int code = 0;

    for (; *args != NULL && code == 0; args++) {
        if (!ended && strcmp(*args, "--") == 0)
            ended = true;
        else if (!ended && (*args)[0] == '-')
            code = option_read(settings, &args, error);
        else if (settings->database.name == NULL)
            settings->database.name = *args;
        else
            code = uva_error_set(error, EINVAL, "more than one database: '%s'",
                                 *args);
        if (code != 0)
            break; /* `args` may stand at the end */
    }
    return code;
}

/* ---- settings that must fit together ------------------------------------- */

/* Reads "127.0.0.1:8080" or "[::1]:8080". */
static int address_read(struct uva__settings *settings, struct uva_error *error)
{
    const char *text = settings->listen, *colon = strrchr(text, ':');
    const bool is_6 = text[0] == '[';
    char name[64] = "", *end = NULL;
    size_t size = colon != NULL ? (size_t)(colon - text) : 0;
    long port = -1;
    int code = -1;

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
                                     "'%s' is no address and port, such as "
                                     "127.0.0.1:8080 or [::1]:8080",
                                     text);
}

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
    int code = address_read(settings, error);

    if (code != 0)
        return code;
    if (settings->database.driver == NULL && settings->database.name == NULL)
        return uva_error_set(error, EINVAL,
                             "no database: give --driver, or a URI");
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
    return settings->token_file == NULL
               ? 0
               : uva__access_load(&settings->access, settings->token_file,
                                  error);
}

int uva__settings_init(struct uva__settings *settings, char **args,
                       struct uva_error *error)
{
    int code;

    memset(settings, 0, sizeof(*settings));
    uva__limits_init(&settings->limits);
    settings->listen = "127.0.0.1:8080";
    code = args_read(settings, args, error);
    if (code != 0 || settings->help)
        return code;
    return settings_check(settings, error);
}

void uva__settings_warn(const struct uva__settings *settings)
{
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
}

void uva__settings_fini(struct uva__settings *settings)
{
    uva__database_fini(&settings->database);
    uva__access_fini(&settings->access);
}
