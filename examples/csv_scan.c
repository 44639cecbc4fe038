/* SPDX-License-Identifier: Apache-2.0 */
/* Reads CSV without quotes. The fields of the scan that extraction reads are
 * written before the first piece is given, and do not change afterwards. */
#include "csv_scan.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "numbers.h"

#define PIECE_BYTES ((size_t)256 << 10)

struct csv_scan {
    const char *path, *column; /* borrows */
    FILE *file;                /* owns */
    int skip;                  /* fields before the column */
};

/* A piece of the file: whole lines. */
struct piece {
    size_t size;
    char bytes[]; /* `size` bytes, then a NUL */
};

struct csv_scan *csv_scan_new(const char *path, const char *column)
{
    struct csv_scan *scan = calloc(1, sizeof(*scan));

    if (scan != NULL) {
        scan->path = path;
        scan->column = column;
    }
    return scan;
}

/* Counts the fields before the column with this name. Returns -1 if there is no
 * such column. */
static int find_column(const char *line, const char *name)
{
    const size_t size = strlen(name);

    for (int i = 0;; i++) {
        const size_t length = strcspn(line, ",\r\n");
        if (length == size && memcmp(line, name, size) == 0)
            return i;
        if (line[length] != ',')
            return -1;
        line += length + 1;
    }
}

int csv_scan_schema(void *ctx, struct ArrowSchema *out, struct uva_error *error)
{
    struct csv_scan *scan = ctx;
    char line[4096];

    if (scan == NULL)
        return ENOMEM;
    scan->file = fopen(scan->path, "r");
    if (scan->file == NULL) {
        const int code = errno;
        return uva_error_set(error, code, "%s: %s", scan->path, strerror(code));
    }
    if (fgets(line, sizeof(line), scan->file) == NULL)
        return uva_error_set(error, EIO, "%s has no first line", scan->path);
    scan->skip = find_column(line, scan->column);
    if (scan->skip < 0)
        return uva_error_set(error, ENOENT, "%s has no column %s", scan->path,
                             scan->column);
    return numbers_schema(scan->column, out);
}

int csv_scan_next(void *ctx, void **item, const char **metadata,
                  struct uva_error *error)
{
    struct csv_scan *scan = ctx;
    const size_t line_bytes = 4096;
    struct piece *piece = malloc(sizeof(*piece) + PIECE_BYTES + line_bytes + 1);

    (void)metadata;
    if (piece == NULL)
        return ENOMEM;
    piece->size = fread(piece->bytes, 1, PIECE_BYTES, scan->file);
    piece->bytes[piece->size] = '\0';
    if (piece->size == PIECE_BYTES && /* and up to the end of the last line */
        fgets(piece->bytes + piece->size, (int)line_bytes, scan->file) != NULL)
        piece->size += strlen(piece->bytes + piece->size);
    if (piece->size > 0) {
        *item = piece;
        return 0;
    }
    free(piece);
    if (ferror(scan->file))
        return uva_error_set(error, EIO, "%s cannot be read", scan->path);
    return 0; /* no item: the end */
}

/* Returns the number in a field, which ends at a comma or at the end of the
 * line. */
static double number_at(const char *field)
{
    char *end;
    const double value = strtod(field, &end);

    return end != field && (*end == '\0' || strchr(",\r\n", *end) != NULL)
               ? value
               : NAN;
}

static int64_t piece_lines(const struct piece *piece)
{
    const char *at = piece->bytes;
    int64_t lines = 0;

    for (; (at = strchr(at, '\n')) != NULL; at++)
        lines++;
    return lines + (piece->bytes[piece->size - 1] != '\n');
}

static int piece_decode(const struct piece *piece, int skip,
                        struct ArrowDeviceArray *out)
{
    const int64_t lines = piece_lines(piece);
    double *values = numbers_new(lines, out);
    const char *at = piece->bytes;

    if (values == NULL)
        return ENOMEM;
    for (int64_t i = 0; i < lines; i++) {
        for (int field = 0; field < skip; field++) {
            at += strcspn(at, ",\n");
            at += *at == ',';
        }
        values[i] = number_at(at);
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    return 0;
}

int csv_scan_extract(void *ctx, void *item, struct ArrowDeviceArray *out,
                     struct uva_error *error)
{
    const struct csv_scan *scan = ctx;
    struct piece *piece = item;
    int code = 0;

    if (out != NULL)
        code = piece_decode(piece, scan->skip, out);
    free(piece);
    return code == 0 ? 0 : uva_error_set(error, code, "no memory to decode");
}

void csv_scan_free(void *ctx)
{
    struct csv_scan *scan = ctx;

    if (scan == NULL)
        return;
    if (scan->file != NULL)
        (void)fclose(scan->file);
    free(scan);
}
