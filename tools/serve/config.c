/* SPDX-License-Identifier: Apache-2.0 */
/* The whole file is read first, as its texts live as long as the server. */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define CONFIG_MOST (1 << 20)

/* ---- the file ------------------------------------------------------------ */

static int config_read(struct uva__config *config, FILE *file)
{
    char part[4096];
    size_t size;
    int code = 0;

    do {
        size = fread(part, 1, sizeof(part), file);
        code = uva__bytes_add(&config->text, part, size);
        if (config->text.size > CONFIG_MOST)
            code = EFBIG;
    } while (code == 0 && size > 0);
    return code == 0 && ferror(file) ? errno : code;
}

int uva__config_open(struct uva__config *config, const char *path,
                     struct uva_error *error)
{
    FILE *file = fopen(path, "re");
    int code;

    config->path = path;
    if (file == NULL)
        return uva_error_set(error, errno, "cannot open %s: %s", path,
                             strerror(errno));
    code = config_read(config, file);
    (void)fclose(file);
    if (code != 0)
        return uva_error_set(error, code, "cannot read %s: %s", path,
                             strerror(code));
    if (strlen(config->text.data) != config->text.size)
        return uva_error_set(error, EINVAL, "%s is not text: it has a NUL",
                             path);
    config->at = config->text.data;
    if (strncmp(config->at, "\xef\xbb\xbf", 3) == 0)
        config->at += 3; /* editors write it in front of a file */
    return 0;
}

void uva__config_fini(struct uva__config *config)
{
    uva__bytes_clear(&config->text, 0);
    config->at = NULL;
}

/* ---- lines --------------------------------------------------------------- */

int uva__config_blame(const struct uva__config *config, struct uva_error *error)
{
    const struct uva_error what = *error;

    return uva_error_set(error, what.code, "%s:%d: %s", config->path,
                         config->line, what.message);
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Cuts the blanks at both ends. */
static char *text_trim(char *text)
{
    char *end = text + strlen(text);

    while (is_blank(*text))
        text++;
    while (end > text && is_blank(end[-1]))
        *--end = '\0';
    return text;
}

/* Gives the next line that is no remark; NULL at the end. */
static char *line_next(struct uva__config *config)
{
    char *line, *end;

    while (config->at != NULL && *config->at != '\0') {
        line = config->at;
        end = strchr(line, '\n');
        config->at = end != NULL ? end + 1 : NULL;
        if (end != NULL)
            *end = '\0';
        config->line++;
        line = text_trim(line);
        if (*line != '\0' && *line != '#')
            return line;
    }
    return NULL;
}

/* A value with other control characters could write into a terminal. */
static bool has_control(const char *text)
{
    for (; *text != '\0'; text++)
        if (((unsigned char)*text < ' ' && *text != '\t') || *text == 0x7f)
            return true;
    return false;
}

int uva__config_next(struct uva__config *config, const char **name,
                     const char **value, struct uva_error *error)
{
    char *line = line_next(config), *equals;

    *name = *value = NULL;
    if (line == NULL)
        return 0;
    equals = strchr(line, '=');
    if (has_control(line))
        (void)uva_error_set(error, EINVAL, "a control character");
    else if (equals == NULL || equals == line) /* it may be a secret */
        (void)uva_error_set(error, EINVAL,
                            "no setting; write it as NAME = VALUE");
    else if (*text_trim(equals + 1) == '\0')
        (void)uva_error_set(error, EINVAL, "there is no value behind the '='");
    else {
        *equals = '\0';
        *name = text_trim(line);
        *value = text_trim(equals + 1);
        return 0;
    }
    return uva__config_blame(config, error);
}
