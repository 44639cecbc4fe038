/* SPDX-License-Identifier: Apache-2.0 */
/* Parses options. They may stand before and after the query; "--" ends them. A
 * value follows as the next argument or after a '='. */
#include "options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "commands.h"
#include "guess.h"
#include "sql.h"

/* The options, by number. */
enum name {
    NAME_DRIVER,
    NAME_ENTRYPOINT,
    NAME_URI,
    NAME_FILE,
    NAME_FROM,
    NAME_MAX_BYTES,
    NAME_TOKEN_FILE,
    NAME_TLS_CA,
    NAME_OUTPUT,
    NAME_FORMAT,
    NAME_COMPRESSION,
    NAME_LIMIT,
    NAME_NULL,
    NAME_DELIMITER,
    NAME_PARAM,
    NAME_TRACE,
    NAME_BATCH_BYTES,
    NAME_PARTITIONS,
    NAME_RETRY,
    NAME_OPTION,
    NAME_CONNECTION_OPTION,
    NAME_STATEMENT_OPTION,
    NAME_LAST_WITH_VALUE = NAME_STATEMENT_OPTION,
    NAME_IN_PLACE,
    NAME_NO_HEADER,
    NAME_AS_STORED,
    NAME_PLAIN_TYPES,
    NAME_EXPLAIN,
    NAME_MERGE,
    NAME_CAST,
    NAME_QUIET,
    NAME_VERBOSE,
    NAME_HELP,
    NAME_SYNC,
    NAME_ASYNC,
    NAMES
};

static const char *const TEXTS[NAMES] = {
    [NAME_DRIVER] = "--driver",
    [NAME_ENTRYPOINT] = "--entrypoint",
    [NAME_URI] = "--uri",
    [NAME_FILE] = "--file",
    [NAME_FROM] = "--from",
    [NAME_MAX_BYTES] = "--max-bytes",
    [NAME_BATCH_BYTES] = "--batch-bytes",
    [NAME_PARTITIONS] = "--partitions",
    [NAME_RETRY] = "--retry",
    [NAME_TOKEN_FILE] = "--token-file",
    [NAME_TLS_CA] = "--tls-ca",
    [NAME_OUTPUT] = "--output",
    [NAME_FORMAT] = "--format",
    [NAME_COMPRESSION] = "--compression",
    [NAME_LIMIT] = "--limit",
    [NAME_PLAIN_TYPES] = "--plain-types",
    [NAME_EXPLAIN] = "--explain",
    [NAME_NULL] = "--null",
    [NAME_DELIMITER] = "--delimiter",
    [NAME_PARAM] = "--param",
    [NAME_TRACE] = "--trace",
    [NAME_OPTION] = "--option",
    [NAME_CONNECTION_OPTION] = "--connection-option",
    [NAME_STATEMENT_OPTION] = "--statement-option",
    [NAME_IN_PLACE] = "--in-place",
    [NAME_NO_HEADER] = "--no-header",
    [NAME_AS_STORED] = "--as-stored",
    [NAME_MERGE] = "--merge",
    [NAME_CAST] = "--cast",
    [NAME_QUIET] = "--quiet",
    [NAME_VERBOSE] = "--verbose",
    [NAME_HELP] = "--help",
    [NAME_SYNC] = "--sync",
    [NAME_ASYNC] = "--async",
};

/* Returns the option that `arg` names, and in `value` the text after its '=',
 * or NULL. Returns NAMES for an unknown option. The only short one is -h. */
static enum name name_find(const char *arg, const char **value)
{
    int name;

    *value = NULL;
    if (uva__commands_is_help(arg))
        return NAME_HELP;
    for (name = 0; name < NAMES; name++) {
        const size_t size = strlen(TEXTS[name]);

        if (strncmp(arg, TEXTS[name], size) != 0)
            continue;
        if (arg[size] == '=')
            *value = arg + size + 1;
        if (arg[size] == '=' || arg[size] == '\0')
            break;
    }
    return (enum name)name;
}

/* The sub-commands that take an option: bits of enum uva__options_set. Those
 * that are not here are of the output. */
enum {
    OF_QUERY = 1 << UVA__OPTIONS_OUTPUT,
    OF_STALL = 1 << UVA__OPTIONS_RUNS,
    OF_TABLES = 1 << UVA__OPTIONS_TABLES,
    OF_ALL = OF_QUERY | OF_STALL | OF_TABLES
};

static const unsigned TAKERS[NAMES] = {
    [NAME_DRIVER] = OF_ALL,
    [NAME_ENTRYPOINT] = OF_ALL,
    [NAME_URI] = OF_ALL,
    [NAME_OPTION] = OF_ALL,
    [NAME_CONNECTION_OPTION] = OF_ALL,
    [NAME_HELP] = OF_ALL,
    [NAME_FILE] = OF_QUERY | OF_STALL,
    [NAME_STATEMENT_OPTION] = OF_QUERY | OF_STALL,
    [NAME_FROM] = OF_QUERY,
    [NAME_MERGE] = OF_QUERY,
    [NAME_CAST] = OF_QUERY,
    [NAME_MAX_BYTES] = OF_QUERY,
    [NAME_TOKEN_FILE] = OF_QUERY,
    [NAME_TLS_CA] = OF_QUERY,
    [NAME_PARAM] = OF_QUERY,
    [NAME_BATCH_BYTES] = OF_QUERY,
    [NAME_PARTITIONS] = OF_QUERY,
    [NAME_RETRY] = OF_QUERY,
    [NAME_EXPLAIN] = OF_QUERY,
    [NAME_SYNC] = OF_STALL,
    [NAME_ASYNC] = OF_STALL,
};

static bool name_is_known(const struct uva__options *options, enum name name)
{
    const unsigned takers = name == NAMES       ? 0
                            : TAKERS[name] != 0 ? TAKERS[name]
                                                : OF_QUERY | OF_TABLES;

    return (takers >> options->set & 1) != 0;
}

/* Stores a "KEY=VALUE" setting. */
static int setting_add(struct uva__options *options,
                       enum uva__setting_place place, const char *text,
                       struct uva_error *error)
{
    const char *equals = strchr(text, '=');
    struct uva__setting *setting = &options->settings[options->n_settings];

    if (equals == NULL || equals == text)
        return uva_error_set(error, EINVAL,
                             "'%s' is not a setting; write it as KEY=VALUE",
                             text);
    if (options->n_settings == UVA__OPTIONS_SETTINGS)
        return uva_error_set(error, EINVAL, "more than %d settings",
                             UVA__OPTIONS_SETTINGS);
    setting->key = calloc((size_t)(equals - text) + 1, 1);
    if (setting->key == NULL)
        return uva_error_set(error, ENOMEM, "out of memory");
    memcpy(setting->key, text, (size_t)(equals - text));
    setting->place = place;
    setting->value = equals + 1;
    options->n_settings++;
    return 0;
}

static int from_add(struct uva__options *options, const char *text,
                    struct uva_error *error)
{
    if (options->n_froms == UVA__OPTIONS_FROMS)
        return uva_error_set(error, EINVAL, "more than %d --from",
                             UVA__OPTIONS_FROMS);
    options->froms[options->n_froms++] = text;
    options->from = options->froms[0];
    return 0;
}

static int param_add(struct uva__options *options, const char *text,
                     struct uva_error *error)
{
    int code;

    if (options->n_params == UVA__OPTIONS_PARAMS)
        return uva_error_set(error, EINVAL, "more than %d parameters",
                             UVA__OPTIONS_PARAMS);
    code =
        uva__parameter_read(text, &options->params[options->n_params], error);
    options->n_params += code == 0;
    return code;
}

/* The formats, by their names and by the endings of files. */
static const struct {
    const char *name;
    const char *endings[4]; /* ended by NULL */
    enum uva_format format;
    enum uva__view view;
} FORMATS[] = {
    {"arrow", {".arrows"}, UVA_FORMAT_ARROW, UVA__VIEW_ENCODED},
    {"arrow-file",
     {".arrow", ".feather"},
     UVA_FORMAT_ARROW_FILE,
     UVA__VIEW_ENCODED},
    {"csv", {".csv"}, UVA_FORMAT_CSV, UVA__VIEW_ENCODED},
    {"json",
     {".json", ".jsonl", ".ndjson"},
     UVA_FORMAT_JSON,
     UVA__VIEW_ENCODED},
    {"json-array", {NULL}, UVA_FORMAT_JSON, UVA__VIEW_ARRAY},
    {"table", {NULL}, UVA_FORMAT_CSV, UVA__VIEW_TABLE},
};

#define FORMATS_COUNT (sizeof(FORMATS) / sizeof(*FORMATS))

static int format_set(struct uva__options *options, const char *value,
                      struct uva_error *error)
{
    size_t i;

    for (i = 0; i < FORMATS_COUNT; i++) {
        if (strcmp(FORMATS[i].name, value) == 0) {
            options->encode.format = FORMATS[i].format;
            options->view = FORMATS[i].view;
            options->has_format = true;
            return 0;
        }
    }
    return uva_error_set(error, EINVAL,
                         "there is no format '%s'; --format takes arrow, "
                         "arrow-file, csv, json, json-array or table",
                         value);
}

static int compression_set(struct uva__options *options, const char *value,
                           struct uva_error *error)
{
    static const char *const VALUES[] = {[UVA_COMPRESSION_NONE] = "none",
                                         [UVA_COMPRESSION_LZ4] = "lz4",
                                         [UVA_COMPRESSION_ZSTD] = "zstd"};

    for (size_t i = 0; i < sizeof(VALUES) / sizeof(*VALUES); i++) {
        if (strcmp(VALUES[i], value) == 0) {
            options->encode.compression = (enum uva_compression)i;
            return 0;
        }
    }
    return uva_error_set(error, EINVAL,
                         "--compression takes none, lz4 or zstd, not '%s'",
                         value);
}

static int limit_set(struct uva__options *options, const char *value,
                     struct uva_error *error)
{
    char *end;
    long long rows;

    errno = 0;
    rows = strtoll(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0)
        return uva_error_set(error, EINVAL,
                             "--limit takes a number of rows, not '%s'", value);
    options->limit = rows;
    return 0;
}

/* Also takes "\\t", as a tab is difficult to type. */
static int delimiter_set(struct uva__options *options, const char *value,
                         struct uva_error *error)
{
    const char *text = strcmp(value, "\\t") == 0 ? "\t" : value;

    if (text[0] == '\0' || text[1] != '\0')
        return uva_error_set(error, EINVAL,
                             "--delimiter takes one ASCII character, not '%s'",
                             value);
    options->encode.csv.delimiter = text[0];
    return 0;
}

static int bytes_set(int64_t *out, enum name name, const char *value,
                     struct uva_error *error)
{
    char *end;
    long long bytes;

    errno = 0;
    bytes = strtoll(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || bytes < 1 ||
        errno != 0)
        return uva_error_set(error, EINVAL,
                             "%s takes a number of bytes, not '%s'",
                             TEXTS[name], value);
    *out = bytes;
    return 0;
}

/* Sets how many there may be of something, at least `least` of it. */
static int count_set(int32_t *out, enum name name, const char *value, int least,
                     struct uva_error *error)
{
    char *end;
    long long count;

    errno = 0;
    count = strtoll(value, &end, 10);
    if (value[0] < '0' || value[0] > '9' || *end != '\0' || count < least ||
        count > UVA__OPTIONS_PARTS || errno != 0)
        return uva_error_set(error, EINVAL,
                             "%s takes a number from %d to %d, not '%s'",
                             TEXTS[name], least, UVA__OPTIONS_PARTS, value);
    *out = (int32_t)count;
    return 0;
}

/* Returns where the value of an option is kept as it stands, or NULL. */
static const char **text_find(struct uva__options *options, enum name name)
{
    switch (name) {
    case NAME_DRIVER:
        return &options->driver;
    case NAME_ENTRYPOINT:
        return &options->entrypoint;
    case NAME_URI:
        return &options->uri;
    case NAME_FILE:
        return &options->file;
    case NAME_TOKEN_FILE:
        return &options->token_file;
    case NAME_TLS_CA:
        return &options->tls_ca;
    case NAME_OUTPUT:
        return &options->output;
    case NAME_NULL:
        return &options->encode.csv.null_text;
    case NAME_TRACE:
        return &options->trace;
    default:
        return NULL;
    }
}

static int value_set(struct uva__options *options, enum name name,
                     const char *value, struct uva_error *error)
{
    const char **text = text_find(options, name);

    assert(value != NULL);
    if (text != NULL) {
        *text = value;
        return 0;
    }
    switch (name) {
    case NAME_FROM:
        return from_add(options, value, error);
    case NAME_FORMAT:
        return format_set(options, value, error);
    case NAME_COMPRESSION:
        return compression_set(options, value, error);
    case NAME_LIMIT:
        return limit_set(options, value, error);
    case NAME_MAX_BYTES:
        return bytes_set(&options->max_bytes, name, value, error);
    case NAME_BATCH_BYTES:
        return bytes_set(&options->batch_bytes, name, value, error);
    case NAME_PARTITIONS:
        return count_set(&options->partitions, name, value, 1, error);
    case NAME_RETRY:
        return count_set(&options->retries, name, value, 0, error);
    case NAME_DELIMITER:
        return delimiter_set(options, value, error);
    case NAME_PARAM:
        return param_add(options, value, error);
    case NAME_OPTION:
        return setting_add(options, UVA__SETTING_DATABASE, value, error);
    case NAME_CONNECTION_OPTION:
        return setting_add(options, UVA__SETTING_CONNECTION, value, error);
    default:
        return setting_add(options, UVA__SETTING_STATEMENT, value, error);
    }
}

static void flag_set(struct uva__options *options, enum name name)
{
    options->in_place |= name == NAME_IN_PLACE;
    options->encode.csv.rows_only |= name == NAME_NO_HEADER;
    options->encode.as_stored |= name == NAME_AS_STORED;
    options->extras |= name == NAME_PLAIN_TYPES ? UVA__EXTRA_PLAIN_TYPES : 0;
    options->extras |= name == NAME_EXPLAIN ? UVA__EXTRA_EXPLAIN : 0;
    options->together |= name == NAME_MERGE ? UVA__TOGETHER_MERGE : 0;
    options->together |= name == NAME_CAST ? UVA__TOGETHER_CAST : 0;
    options->quiet |= name == NAME_QUIET;
    options->verbose |= name == NAME_VERBOSE;
    options->help |= name == NAME_HELP;
    options->runs |= name == NAME_SYNC ? UVA__RUN_SYNC : 0;
    options->runs |= name == NAME_ASYNC ? UVA__RUN_ASYNC : 0;
}

/* Reads the option at `*args`, and steps over its value. */
static int option_read(struct uva__options *options, char ***args,
                       struct uva_error *error)
{
    const char *value;
    const enum name name = name_find(**args, &value);

    if (!name_is_known(options, name))
        return uva_error_set(error, EINVAL,
                             "there is no option '%s'; see --help", **args);
    if (name > NAME_LAST_WITH_VALUE) {
        if (value != NULL)
            return uva_error_set(error, EINVAL, "%s takes no value",
                                 TEXTS[name]);
        flag_set(options, name);
        return 0;
    }
    if (value == NULL) {
        value = (*args)[1];
        if (value == NULL)
            return uva_error_set(error, EINVAL, "%s needs a value behind it",
                                 TEXTS[name]);
        ++*args;
    }
    return value_set(options, name, value, error);
}

static int options_read(struct uva__options *options, char **args,
                        struct uva_error *error)
{
    bool ended = false;
    int code = 0;

    for (; *args != NULL && code == 0; args++) {
        if (!ended && strcmp(*args, "--") == 0)
            ended = true;
        else if (!ended && (*args)[0] == '-' && (*args)[1] != '\0')
            code = option_read(options, &args, error);
        else if (options->sql == NULL)
            options->sql = *args;
        else if (options->uri == NULL) { /* it was the database */
            options->uri = options->sql;
            options->sql = *args;
        } else
            code = uva_error_set(error, EINVAL,
                                 "more than one database and one query; put "
                                 "them in quotes");
    }
    if ((options->file != NULL || options->set == UVA__OPTIONS_TABLES) &&
        options->uri == NULL) {
        options->uri = options->sql;
        options->sql = NULL;
    }
    return code;
}

/* Without --driver the database tells. A stall loads one by its name. */
static int options_find_driver(struct uva__options *options,
                               struct uva_error *error)
{
    int code;

    if (options->driver != NULL)
        return 0;
    if (options->uri == NULL)
        return uva_error_set(error, EINVAL,
                             options->set == UVA__OPTIONS_TABLES
                                 ? "no driver and no database"
                                 : "no driver and no database; the query "
                                   "comes after its database, as in: uvarrow "
                                   "query a.db 'SELECT 1'");
    code = uva__guess_driver(options->uri, &options->driver, error);
    if (code != 0 || options->driver != NULL ||
        options->set != UVA__OPTIONS_RUNS)
        return code;
    return uva_error_set(error, EINVAL,
                         "no driver; name an ADBC driver with --driver");
}

static bool ending_is(const char *const *endings, const char *ending)
{
    for (; *endings != NULL; endings++)
        if (strcasecmp(*endings, ending) == 0)
            return true;
    return false;
}

/* Without --format, the ending of the output's name is the format. A name
 * without an ending, such as a device's, has no format. */
static int options_read_ending(struct uva__options *options,
                               struct uva_error *error)
{
    const char *slash, *name, *ending;
    size_t i;

    if (options->output == NULL || options->has_format)
        return 0;
    slash = strrchr(options->output, '/');
    name = slash != NULL ? slash + 1 : options->output;
    ending = strrchr(name, '.');
    if (ending == NULL || ending == name)
        return 0;
    for (i = 0; i < FORMATS_COUNT; i++) {
        if (ending_is(FORMATS[i].endings, ending)) {
            options->encode.format = FORMATS[i].format;
            return 0;
        }
    }
    return uva_error_set(error, EINVAL,
                         "no format is known by the ending of '%s'; name one "
                         "with --format",
                         options->output);
}

/* Checks the options of the output, and reads its format. */
static int options_check_output(struct uva__options *options,
                                struct uva_error *error)
{
    if (options->in_place && options->output == NULL)
        return uva_error_set(error, EINVAL, "%s is for --output",
                             TEXTS[NAME_IN_PLACE]);
    return options_read_ending(options, error);
}

/* Checks that options of Arrow IPC are for that. */
static int options_check_arrow(const struct uva__options *options,
                               struct uva_error *error)
{
    const enum name name =
        (options->extras & UVA__EXTRA_PLAIN_TYPES) != 0       ? NAME_PLAIN_TYPES
        : options->encode.compression != UVA_COMPRESSION_NONE ? NAME_COMPRESSION
                                                              : NAMES;

    if (name == NAMES || options->encode.format <= UVA_FORMAT_ARROW_FILE)
        return 0;
    return uva_error_set(error, EINVAL,
                         "%s is for the formats arrow and arrow-file",
                         TEXTS[name]);
}

/* Checks that options of text are for text, and options of CSV for CSV. */
static int options_check_text(const struct uva__options *options,
                              struct uva_error *error)
{
    const struct uva_csv *csv = &options->encode.csv;
    const enum name name = csv->null_text != NULL   ? NAME_NULL
                           : csv->delimiter != '\0' ? NAME_DELIMITER
                           : csv->rows_only         ? NAME_NO_HEADER
                                                    : NAMES;

    if (options->encode.as_stored &&
        options->encode.format <= UVA_FORMAT_ARROW_FILE)
        return uva_error_set(error, EINVAL, "%s is for CSV and JSON",
                             TEXTS[NAME_AS_STORED]);
    if (name == NAMES || (options->encode.format == UVA_FORMAT_CSV &&
                          options->view == UVA__VIEW_ENCODED))
        return 0;
    return uva_error_set(error, EINVAL, "%s is for CSV alone", TEXTS[name]);
}

/* Reads the query from its file, if it is in one. */
static int options_read_sql(struct uva__options *options,
                            struct uva_error *error)
{
    int code;

    if (options->sql != NULL && options->file != NULL)
        return uva_error_set(error, EINVAL,
                             "more than one query: one with --file, and '%s'",
                             options->sql);
    if (options->sql == NULL && options->file == NULL)
        return uva_error_set(error, EINVAL,
                             "no query; give it as the last argument, in "
                             "quotes, or with --file");
    if (options->sql != NULL && strcmp(options->sql, "-") == 0)
        options->file = "-";
    if (options->file == NULL)
        return 0;
    code = uva__sql_read(options->file, &options->sql_text, error);
    options->sql = options->sql_text;
    return code;
}

static bool is_url(const char *from)
{
    return strncasecmp(from, "http://", 7) == 0 ||
           strncasecmp(from, "https://", 8) == 0;
}

bool uva__options_from_server(const struct uva__options *options)
{
    return options->from != NULL && is_url(options->from);
}

/* Several inputs are of one kind, and each can be read. */
static int options_check_froms(const struct uva__options *options,
                               struct uva_error *error)
{
    size_t urls = 0, inputs = 0;

    for (size_t i = 0; i < options->n_froms; i++) {
        urls += is_url(options->froms[i]);
        inputs += strcmp(options->froms[i], "-") == 0;
    }
    if (options->together != 0 && options->n_froms < 2)
        return uva_error_set(
            error, EINVAL, "%s is for more than one --from",
            TEXTS[options->together & UVA__TOGETHER_MERGE ? NAME_MERGE
                                                          : NAME_CAST]);
    if (inputs > 1)
        return uva_error_set(error, EINVAL,
                             "standard input can only be read once: more than "
                             "one --from is -");
    if (urls > 0 && urls < options->n_froms)
        return uva_error_set(error, EINVAL,
                             "each --from is a file, or each is a URL");
    return 0;
}

/* A server may have a query in its URL. */
static int options_check_server(struct uva__options *options,
                                struct uva_error *error)
{
    if (options->driver != NULL || options->uri != NULL ||
        options->entrypoint != NULL || options->n_settings > 0 ||
        options->batch_bytes > 0)
        return uva_error_set(error, EINVAL,
                             "--from asks a server: it takes a query, but no "
                             "driver and no database");
    if (options->sql != NULL || options->file != NULL)
        return options_read_sql(options, error);
    if (options->n_params > 0)
        return uva_error_set(error, EINVAL,
                             "--param is for a query beside the URL; in a URL "
                             "they are an array of JSON");
    return 0;
}

/* A file with rows needs no driver and no query. */
static int options_check_from(struct uva__options *options,
                              struct uva_error *error)
{
    if (uva__options_from_server(options))
        return options_check_server(options, error);
    if (options->driver != NULL || options->sql != NULL ||
        options->file != NULL || options->uri != NULL ||
        options->n_settings > 0 || options->batch_bytes > 0 ||
        options->n_params > 0)
        return uva_error_set(error, EINVAL,
                             "--from reads rows from a file: it takes no "
                             "driver, no database and no query");
    return 0;
}

/* A plan is that of a database. */
static int options_check_explain(const struct uva__options *options,
                                 struct uva_error *error)
{
    if ((options->extras & UVA__EXTRA_EXPLAIN) == 0 || options->from == NULL)
        return 0;
    return uva_error_set(error, EINVAL,
                         "--explain is for a database, not for --from");
}

/* A result in parts is that of a database. */
static int options_check_parts(const struct uva__options *options,
                               struct uva_error *error)
{
    const char *other = options->from != NULL ? TEXTS[NAME_FROM]
                        : (options->extras & UVA__EXTRA_EXPLAIN) != 0
                            ? TEXTS[NAME_EXPLAIN]
                            : NULL;

    if (options->retries > 0 && options->partitions == 0)
        return uva_error_set(error, EINVAL, "%s is for %s", TEXTS[NAME_RETRY],
                             TEXTS[NAME_PARTITIONS]);
    if (options->partitions == 0 || other == NULL)
        return 0;
    return uva_error_set(error, EINVAL,
                         "%s is for the rows of a database, not "
                         "for %s",
                         TEXTS[NAME_PARTITIONS], other);
}

/* Checks that options of a server are for one. */
static int options_check_access(const struct uva__options *options,
                                struct uva_error *error)
{
    const enum name name = options->token_file != NULL ? NAME_TOKEN_FILE
                           : options->tls_ca != NULL   ? NAME_TLS_CA
                                                       : NAMES;

    if (name == NAMES || uva__options_from_server(options))
        return 0;
    return uva_error_set(error, EINVAL, "%s is for --from with a URL",
                         TEXTS[name]);
}

int uva__options_init(struct uva__options *options, char **args,
                      enum uva__options_set set, struct uva_error *error)
{
    int code;

    *options = (struct uva__options){
        .set = set, .encode.format = UVA_FORMAT_CSV, .limit = -1};
    code = options_read(options, args, error);
    if (code != 0 || options->help)
        return code;
    code = options_check_output(options, error);
    if (code == 0)
        code = options_check_text(options, error);
    if (code == 0)
        code = options_check_arrow(options, error);
    if (code == 0)
        code = options_check_froms(options, error);
    if (code == 0)
        code = options_check_explain(options, error);
    if (code == 0)
        code = options_check_parts(options, error);
    if (code == 0)
        code = options_check_access(options, error);
    if (code != 0)
        return code;
    if (options->from != NULL)
        return options_check_from(options, error);
    if (options->max_bytes != 0)
        return uva_error_set(error, EINVAL, "%s is for --from",
                             TEXTS[NAME_MAX_BYTES]);
    code = options_find_driver(options, error);
    if (code != 0 || set == UVA__OPTIONS_TABLES)
        return code;
    return options_read_sql(options, error);
}

void uva__options_fini(struct uva__options *options)
{
    size_t i;

    for (i = 0; i < options->n_settings; i++)
        free(options->settings[i].key);
    options->n_settings = 0;
    for (i = 0; i < options->n_params; i++)
        uva__parameter_fini(&options->params[i]);
    options->n_params = 0;
    free(options->sql_text);
    options->sql_text = NULL;
}
