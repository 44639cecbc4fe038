/* SPDX-License-Identifier: Apache-2.0 */
/* Decodes in place: the result is never longer. */
#include "url.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* Decodes a text in place; a plus is a blank in parameters. */
static int decode(char *text, bool plus)
{
    char *out = text;

    for (; *text != '\0'; text++) {
        if (*text == '%') {
            const int high = digit(text[1]);
            const int low = high < 0 ? -1 : digit(text[2]);

            if (low < 0 || high + low == 0)
                return EINVAL;
            *out++ = (char)(high << 4 | low);
            text += 2;
        } else {
            *out++ = plus && *text == '+' ? ' ' : *text;
        }
    }
    *out = '\0';
    return 0;
}

static int parameter_add(struct uva__url *url, char *text)
{
    char *equals = strchr(text, '=');
    const char *value = "";

    if (equals != NULL) {
        *equals = '\0';
        if (decode(equals + 1, true) != 0)
            return EINVAL;
        value = equals + 1;
    }
    if (decode(text, true) != 0 || uva__url_get(url, text) != NULL ||
        url->count == UVA__URL_PARAMETERS)
        return EINVAL;
    url->parameters[url->count].name = text;
    url->parameters[url->count].value = value;
    url->count++;
    return 0;
}

static int parameters_add(struct uva__url *url, char *text)
{
    int code = 0;

    while (code == 0 && text != NULL) {
        char *next = strchr(text, '&');

        if (next != NULL)
            *next++ = '\0';
        if (*text != '\0')
            code = parameter_add(url, text);
        text = next;
    }
    return code;
}

int uva__url_init(struct uva__url *url, const char *target)
{
    char *query;
    int code;

    memset(url, 0, sizeof(*url));
    if (target[0] != '/' || strchr(target, '#') != NULL)
        return EINVAL;
    url->text = strdup(target);
    if (url->text == NULL)
        return ENOMEM;
    url->path = url->text;
    query = strchr(url->text, '?');
    if (query != NULL)
        *query++ = '\0';
    code = decode(url->text, false);
    if (code == 0)
        code = parameters_add(url, query);
    if (code != 0)
        uva__url_fini(url);
    return code;
}

void uva__url_fini(struct uva__url *url)
{
    free(url->text);
    memset(url, 0, sizeof(*url));
}

const char *uva__url_get(const struct uva__url *url, const char *name)
{
    int i;

    for (i = 0; i < url->count; i++)
        if (strcmp(url->parameters[i].name, name) == 0)
            return url->parameters[i].value;
    return NULL;
}
