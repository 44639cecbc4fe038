/* SPDX-License-Identifier: Apache-2.0 */
/* The body is made first: its length stands in the head. */
#include "ask.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "access.h"

/* ---- the body ------------------------------------------------------------ */

/* Returns NULL without memory, and for a text that is not UTF-8. */
static json_t *json_of(const struct uva_value *value)
{
    switch (value->type) {
    case UVA_VALUE_INT:
        return json_integer(value->integer);
    case UVA_VALUE_DOUBLE:
        return json_real(value->number);
    case UVA_VALUE_BOOL:
        return json_boolean(value->integer);
    case UVA_VALUE_TEXT:
        return json_stringn(value->data, value->size);
    default:
        return json_null();
    }
}

static int body_build(const struct uva__options *options, json_t *body,
                      struct uva_error *error)
{
    json_t *sql = json_string(options->sql), *list = NULL;
    size_t i;

    if (sql == NULL)
        return uva_error_set(error, EINVAL, "the query is not UTF-8");
    if (json_object_set_new(body, "sql", sql) != 0)
        return uva_error_set(error, ENOMEM, "out of memory");
    if (options->n_params == 0)
        return 0;
    list = json_array();
    if (json_object_set_new(body, "parameters", list) != 0)
        return uva_error_set(error, ENOMEM, "out of memory");
    for (i = 0; i < options->n_params; i++)
        if (json_array_append_new(list, json_of(&options->params[i])) != 0)
            return uva_error_set(error, EINVAL, "parameter %zu is not UTF-8",
                                 i + 1);
    return 0;
}

/* Gives the text of the body, freed by free(). */
static int body_write(const struct uva__options *options, char **out,
                      struct uva_error *error)
{
    json_t *body = json_object();
    int code = body == NULL ? uva_error_set(error, ENOMEM, "out of memory")
                            : body_build(options, body, error);

    if (code == 0) {
        *out = json_dumps(body, JSON_COMPACT);
        if (*out == NULL)
            code = uva_error_set(error, ENOMEM, "out of memory");
    }
    json_decref(body);
    return code;
}

/* ---- the head ------------------------------------------------------------ */

/* Appends texts, the last of which is followed by NULL. */
static int texts_add(struct uva__bytes *out, const char *const *texts)
{
    int code = 0;

    for (; *texts != NULL && code == 0; texts++)
        code = uva__bytes_add(out, *texts, strlen(*texts));
    return code;
}

static int token_add(const char *path, struct uva__bytes *out,
                     struct uva_error *error)
{
    struct uva__access access = {0};
    int code = uva__access_load(&access, path, error);

    if (code != 0)
        return code;
    code = texts_add(out, (const char *const[]){"Authorization: Bearer ",
                                                access.token, "\r\n", NULL});
    uva__access_fini(&access);
    return code == 0 ? 0 : uva_error_set(error, code, "out of memory");
}

/* A server of queries has them at this path. */
static const char *target_of(const struct uva__address *address,
                             const char *body)
{
    return body != NULL && strcmp(address->target, "/") == 0 ? "/query"
                                                             : address->target;
}

static int head_write(const struct uva__address *address, const char *body,
                      struct uva__bytes *out)
{
    char more[96] = "";

    if (body != NULL)
        (void)snprintf(more, sizeof(more),
                       "Content-Type: application/json\r\n"
                       "Content-Length: %zu\r\n",
                       strlen(body));
    return texts_add(out, (const char *const[]){
                              body != NULL ? "POST " : "GET ",
                              target_of(address, body),
                              " HTTP/1.1\r\nHost: ", address->authority,
                              "\r\nUser-Agent: uvarrow\r\n"
                              "Accept: application/vnd.apache.arrow.stream\r\n"
                              "Accept-Encoding: identity\r\n"
                              "Connection: close\r\n",
                              more, NULL});
}

int uva__ask_write(const struct uva__address *address,
                   const struct uva__options *options, struct uva__bytes *out,
                   struct uva_error *error)
{
    char *body = NULL;
    int code = options->sql != NULL ? body_write(options, &body, error) : 0;

    if (code == 0 && head_write(address, body, out) != 0)
        code = uva_error_set(error, ENOMEM, "out of memory");
    if (code == 0 && options->token_file != NULL)
        code = token_add(options->token_file, out, error);
    if (code == 0 &&
        texts_add(out, (const char *const[]){"\r\n", body, NULL}) != 0)
        code = uva_error_set(error, ENOMEM, "out of memory");
    free(body);
    if (code != 0)
        uva__bytes_clear(out, 0);
    return code;
}
