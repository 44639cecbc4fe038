/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the needed part of TOML: tables, dotted keys, strings of one line,
 * integers, inline tables. Other values are skipped. A key is compared as its
 * whole path: "Driver.shared.linux_amd64". */
#include "adbc/manifest.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SIZE_MAX_BYTES = 1 << 20, DEPTH_MAX = 8 };

#if defined(__x86_64__)
#define MACHINE "amd64"
#elif defined(__aarch64__)
#define MACHINE "arm64"
#elif defined(__riscv)
#define MACHINE "riscv"
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__)
#define MACHINE "powerpc64le"
#elif defined(__s390x__)
#define MACHINE "s390x"
#elif defined(__i386__)
#define MACHINE "x86"
#else
#define MACHINE "unknown"
#endif

struct parser {
    const char *at; /* the next character; the text ends with a NUL */
    int line;       /* its number */
    struct uva__adbc_manifest *out;
    bool is_table; /* Driver.shared is one */
    long version;  /* manifest_version */
};

/* ---- characters --------------------------------------------------------- */

static void skip_blanks(struct parser *p)
{
    while (*p->at == ' ' || *p->at == '\t')
        p->at++;
}

static void skip_comment(struct parser *p)
{
    skip_blanks(p);
    if (*p->at == '#')
        while (*p->at != '\0' && *p->at != '\n')
            p->at++;
    if (p->at[0] == '\r' && p->at[1] == '\n')
        p->at++;
}

/* Ends of lines too. */
static void skip_lines(struct parser *p)
{
    for (skip_comment(p); *p->at == '\n'; skip_comment(p)) {
        p->at++;
        p->line++;
    }
}

static bool take(struct parser *p, char wanted)
{
    skip_blanks(p);
    if (*p->at != wanted)
        return false;
    p->at++;
    return true;
}

/* ---- strings and keys --------------------------------------------------- */

static char unescape(char c)
{
    switch (c) {
    case 'n':
        return '\n';
    case 't':
        return '\t';
    case '"':
    case '\\':
        return c;
    default:
        return '\0';
    }
}

/* Takes a string of one line after its first quote. False if it is malformed
 * or too long. */
static bool take_string(struct parser *p, char quote, char *out, size_t size)
{
    size_t used = 0;
    char c;

    for (; *p->at != quote; p->at++) {
        c = *p->at;
        if (quote == '"' && c == '\\')
            c = unescape(*++p->at);
        if (c == '\0' || *p->at == '\n' || used + 1 == size)
            return false;
        out[used++] = c;
    }
    out[used] = '\0';
    p->at++;
    return true;
}

static bool take_bare(struct parser *p, char *out, size_t size)
{
    size_t used = 0;

    while (isalnum((unsigned char)*p->at) || *p->at == '_' || *p->at == '-') {
        if (used + 1 == size)
            return false;
        out[used++] = *p->at++;
    }
    out[used] = '\0';
    return used > 0;
}

/* Appends a key, of one or more words, to the path. */
static bool take_key(struct parser *p, char *path)
{
    size_t used;

    do {
        used = strlen(path);
        if (used > 0 && used + 1 < UVA__ADBC_NAME)
            path[used++] = '.';
        skip_blanks(p);
        if (*p->at == '"' || *p->at == '\'') {
            if (!take_string(p, *p->at++, path + used, UVA__ADBC_NAME - used))
                return false;
        } else if (!take_bare(p, path + used, UVA__ADBC_NAME - used)) {
            return false;
        }
    } while (take(p, '.'));
    return true;
}

/* ---- values ------------------------------------------------------------- */

static bool take_value(struct parser *p, const char *path, int depth);

/* A value that was found. */
static bool note_string(struct parser *p, const char *path, const char *value)
{
    struct uva__adbc_manifest *out = p->out;

    if (strcmp(path, "Driver.entrypoint") == 0) {
        if (strlen(value) >= sizeof(out->entrypoint))
            return false;
        memcpy(out->entrypoint, value, strlen(value) + 1);
    }
    if (strncmp(path, "Driver.shared.", 14) == 0)
        p->is_table = true;
    if (strcmp(path, "Driver.shared") == 0 ||
        strcmp(path, "Driver.shared." UVA_ADBC_SYSTEM MACHINE) == 0)
        memcpy(out->library, value, strlen(value) + 1);
    return true;
}

static bool take_text(struct parser *p, const char *path)
{
    const char quote = *p->at++;
    char value[UVA__ADBC_PATH];

    if (p->at[0] == quote && p->at[1] == quote)
        return false; /* of several lines */
    return take_string(p, quote, value, sizeof(value)) &&
           note_string(p, path, value);
}

static bool take_inline_table(struct parser *p, const char *path, int depth)
{
    char inner[UVA__ADBC_NAME];

    p->at++;
    if (take(p, '}'))
        return true;
    do {
        memcpy(inner, path, strlen(path) + 1);
        if (!take_key(p, inner) || !take(p, '=') ||
            !take_value(p, inner, depth + 1))
            return false;
    } while (take(p, ','));
    return take(p, '}');
}

static bool take_array(struct parser *p, int depth)
{
    p->at++;
    for (;;) {
        skip_lines(p);
        if (take(p, ']'))
            return true;
        if (!take_value(p, "", depth + 1))
            return false;
        skip_lines(p);
        if (*p->at != ']' && !take(p, ','))
            return false;
    }
}

/* A number, a truth value, a date. */
static bool take_other(struct parser *p, const char *path)
{
    const char *begin = p->at;

    if (strcmp(path, "manifest_version") == 0)
        p->version = strtol(begin, NULL, 10);
    while (*p->at != '\0' && strchr(",]}#\r\n", *p->at) == NULL)
        p->at++;
    return p->at > begin;
}

static bool take_value(struct parser *p, const char *path, int depth)
{
    skip_blanks(p);
    if (depth > DEPTH_MAX)
        return false;
    switch (*p->at) {
    case '"':
    case '\'':
        return take_text(p, path);
    case '{':
        return take_inline_table(p, path, depth);
    case '[':
        return take_array(p, depth);
    default:
        return take_other(p, path);
    }
}

/* ---- the file ----------------------------------------------------------- */

/* One line: a table, or a key and its value. */
static bool take_line(struct parser *p, char *table)
{
    char path[UVA__ADBC_NAME];

    if (take(p, '[')) {
        const bool is_list = take(p, '[');

        table[0] = '\0';
        return take_key(p, table) && take(p, ']') && (!is_list || take(p, ']'));
    }
    memcpy(path, table, strlen(table) + 1);
    return take_key(p, path) && take(p, '=') && take_value(p, path, 0);
}

static bool take_all(struct parser *p)
{
    char table[UVA__ADBC_NAME] = "";

    for (skip_lines(p); *p->at != '\0'; skip_lines(p)) {
        if (!take_line(p, table))
            return false;
        skip_comment(p);
        if (*p->at != '\n' && *p->at != '\0')
            return false;
    }
    return true;
}

static int manifest_parse(const char *path, const char *text,
                          struct uva__adbc_manifest *out,
                          struct uva__adbc_failure *failure)
{
    struct parser p = {.at = text, .line = 1, .out = out, .version = 1};

    if (!take_all(&p))
        return uva__adbc_failure_set(failure, EINVAL,
                                     "the manifest %s is malformed in line %d",
                                     path, p.line);
    if (p.version != 1)
        return uva__adbc_failure_set(
            failure, EINVAL,
            "the manifest %s has the version %ld; only 1 is known", path,
            p.version);
    if (out->library[0] != '\0')
        return 0;
    if (p.is_table)
        return uva__adbc_failure_set(
            failure, ENOENT,
            "the manifest %s names no library for this platform, "
            "Driver.shared." UVA_ADBC_SYSTEM MACHINE,
            path);
    return uva__adbc_failure_set(failure, EINVAL,
                                 "the manifest %s names no library: there is "
                                 "no Driver.shared",
                                 path);
}

int uva__adbc_manifest_read(const char *path, struct uva__adbc_manifest *out,
                            struct uva__adbc_failure *failure)
{
    FILE *file = fopen(path, "re");
    char *text = file != NULL ? malloc(SIZE_MAX_BYTES) : NULL;
    size_t size = 0;
    int code;

    memset(out, 0, sizeof(*out));
    if (file == NULL)
        return uva__adbc_failure_set(failure, errno, "cannot read %s", path);
    if (text != NULL)
        size = fread(text, 1, SIZE_MAX_BYTES, file);
    (void)fclose(file);
    if (text == NULL)
        return uva__adbc_failure_set(failure, ENOMEM, "no memory for %s", path);
    if (size == 0 || size == SIZE_MAX_BYTES || memchr(text, '\0', size)) {
        code = uva__adbc_failure_set(failure, EINVAL,
                                     "%s is no manifest: it is %s", path,
                                     size == 0                ? "empty"
                                     : size == SIZE_MAX_BYTES ? "too long"
                                                              : "no text");
    } else {
        text[size] = '\0';
        code = manifest_parse(path, text, out, failure);
    }
    free(text);
    return code;
}
