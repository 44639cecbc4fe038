/* SPDX-License-Identifier: Apache-2.0 */
/* The encoder of CSV writes the values, between control characters: they are
 * taken apart again where they lie. */
#include "cells.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "uvarrow/io.h"

#define BETWEEN   '\x1f'
#define NULL_TEXT "\x1e"

/* Gives the bytes of a part in one piece, with a NUL behind. */
static char *part_join(const struct uva_part *part)
{
    char *block = malloc((size_t)part->bytes + 1), *at = block;

    for (size_t i = 0; block != NULL && i < part->count; i++) {
        memcpy(at, part->buffers[i].base, part->buffers[i].len);
        at += part->buffers[i].len;
    }
    if (block != NULL)
        *at = '\0';
    return block;
}

/* Ends a field in quotes with a NUL, and returns its end. */
static char *field_unquote(char *at, char **text)
{
    char *out = at + 1;

    *text = out;
    for (at++; at[0] != '"' || at[1] == '"'; at++) {
        at += at[0] == '"';
        *out++ = *at != '\0' ? *at : '?';
    }
    *out = '\0';
    return at + 1;
}

static char *field_plain(char *at, const char *end, char **text)
{
    *text = at;
    for (; at < end && *at != BETWEEN && *at != '\n'; at++)
        if (*at == '\0')
            *at = '?';
    return at;
}

/* Takes the fields apart. Each is ended by a character that is over then. */
static void cells_split(struct uva__cells *cells, char *at, const char *end)
{
    char *text;

    for (; at < end; at++) {
        const bool is_quoted = *at == '"';

        at = is_quoted ? field_unquote(at, &text) : field_plain(at, end, &text);
        if (!is_quoted)
            *at = '\0';
        cells->texts[cells->count++] =
            !is_quoted && strcmp(text, NULL_TEXT) == 0 ? NULL : text;
    }
}

int uva__cells_init(struct uva__cells *cells, const struct ArrowSchema *schema,
                    struct ArrowDeviceArray *batches, size_t count,
                    bool as_stored, struct uva_error *error)
{
    const struct uva_encode encode = {.format = UVA_FORMAT_CSV,
                                      .csv = {.delimiter = BETWEEN,
                                              .rows_only = true,
                                              .null_text = NULL_TEXT},
                                      .as_stored = as_stored};
    struct uva_part part;
    size_t rows = 0;
    int code;

    *cells = (struct uva__cells){0};
    for (size_t i = 0; i < count; i++)
        rows += (size_t)batches[i].array.length;
    code = uva_array_encode(schema, batches, count, &encode, &part, error);
    if (code != 0)
        return code;
    cells->block = part_join(&part);
    cells->texts =
        calloc(rows * (size_t)schema->n_children + 1, sizeof(*cells->texts));
    if (cells->block != NULL && cells->texts != NULL)
        cells_split(cells, cells->block, cells->block + part.bytes);
    else
        code = uva_error_set(error, ENOMEM, "out of memory");
    uva_part_release(&part);
    if (code != 0)
        uva__cells_fini(cells);
    return code;
}

void uva__cells_fini(struct uva__cells *cells)
{
    free(cells->texts);
    free(cells->block);
    *cells = (struct uva__cells){0};
}
