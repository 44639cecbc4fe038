/* SPDX-License-Identifier: Apache-2.0 */
/* How the values of a column are read and written, determined from its schema
 * before the first batch arrives. text_value.h reads the single values. */
#ifndef UVA_IO_TEXT_FIELD_H
#define UVA_IO_TEXT_FIELD_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "io/text.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The layouts of Arrow, as far as they are written differently. The first one
 * has no values, the last ones have them in their children. */
enum uva__text_field_kind {
    UVA__TEXT_FIELD_NULL, /* has no values */
    UVA__TEXT_FIELD_BOOL,
    UVA__TEXT_FIELD_INT,     /* of `width` bytes */
    UVA__TEXT_FIELD_UINT,    /* of `width` bytes */
    UVA__TEXT_FIELD_HALF,    /* 16 bits of floating point */
    UVA__TEXT_FIELD_FLOAT,   /* 32 bits */
    UVA__TEXT_FIELD_DOUBLE,  /* 64 bits */
    UVA__TEXT_FIELD_DECIMAL, /* of `width` bytes, `scale` */
    UVA__TEXT_FIELD_DATE,    /* days, of `width` bytes, or milliseconds of 8 */
    UVA__TEXT_FIELD_TIME,    /* of `width` bytes, to `digits` */
    UVA__TEXT_FIELD_TIMESTAMP,   /* to `digits`, in `zone` */
    UVA__TEXT_FIELD_DURATION,    /* to `digits` */
    UVA__TEXT_FIELD_MONTHS,      /* an interval of months */
    UVA__TEXT_FIELD_DAYS_MS,     /* of days and milliseconds */
    UVA__TEXT_FIELD_MONTHS_NS,   /* of months, days and nanoseconds */
    UVA__TEXT_FIELD_TEXT,        /* offsets of `width` bytes, UTF-8 */
    UVA__TEXT_FIELD_BYTES,       /* offsets of `width` bytes */
    UVA__TEXT_FIELD_TEXT_VIEW,   /* views of 16 bytes, UTF-8 */
    UVA__TEXT_FIELD_BYTES_VIEW,  /* views of 16 bytes */
    UVA__TEXT_FIELD_FIXED_BYTES, /* of `width` bytes */
    UVA__TEXT_FIELD_LIST,        /* offsets of `width` bytes; maps too */
    UVA__TEXT_FIELD_LIST_VIEW,   /* offsets and sizes of `width` bytes */
    UVA__TEXT_FIELD_FIXED_LIST,  /* `width` values each */
    UVA__TEXT_FIELD_STRUCT,
    UVA__TEXT_FIELD_DENSE_UNION, /* type ids in `ids`, offsets */
    UVA__TEXT_FIELD_SPARSE_UNION,
    UVA__TEXT_FIELD_RUNS, /* ends of runs, and their values */
    UVA__TEXT_FIELD_KINDS /* number of kinds */
};

/* After its key there are so many bytes that may be copied with it. */
#define UVA__TEXT_FIELD_KEY_BLOCK 16

/* One column or a part of one. */
struct uva__text_field {
    enum uva__text_field_kind kind; /* how values are stored */
    bool quoted;                    /* a string in JSON */
    bool is_uuid;     /* 16 bytes, written as a UUID: uva__text_field_mark() */
    bool is_json;     /* text that is JSON, if it is valid; so, too */
    bool is_loose;    /* may need quotes in CSV: free text, fields that may be
                         empty, JSON; or any value */
    int32_t width;    /* bytes, or values of a fixed list */
    int32_t scale;    /* scale of decimals */
    int32_t digits;   /* digits after the second: 0, 3, 6 or 9 */
    int32_t zone;     /* zone of timestamps, see text_time.h */
    int8_t ids[128];  /* unions: index of the child of a type id, or -1 */
    const char *name; /* borrows from the schema; "" without one */
    struct uva__text key; /* owns: a comma, the name in JSON, a colon */
    int64_t n_children;   /* of lists, structs, unions and runs */
    struct uva__text_field *children; /* owns; an array */
    struct uva__text_field
        *dictionary; /* owns; if set, this column holds indexes */
};

/* Fills `field` from `schema`, a copy by uva_schema_copy(), which bounds how
 * deep it is; it must outlive the field. `is_loose`: also numbers and times may
 * need quotes. Returns 0; EINVAL for an invalid schema; ENOTSUP for a type that
 * cannot be written as text; ENOMEM. The error names the column. On failure
 * it need not be freed. Thread: any. */
UVA_MUST_CHECK int uva__text_field_init(struct uva__text_field *field,
                                        const struct ArrowSchema *schema,
                                        bool is_loose, struct uva_error *error);

/* Marks the extension types of `schema`, of which `field` was made: arrow.uuid
 * and arrow.json. Without it they are written as their storage. Thread: any. */
void uva__text_field_mark(struct uva__text_field *field,
                          const struct ArrowSchema *schema);

/* Frees the memory of `field`. Thread: any. */
void uva__text_field_fini(struct uva__text_field *field);

/* Reads the integer of `width` bytes at index `at`. Uses memcpy, because Arrow
 * recommends aligned buffers but does not require them. Thread: any. */
static inline int64_t uva__text_field_load(const void *data, int32_t width,
                                           int64_t at)
{
    const char *from = (const char *)data + width * at;
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;

    switch (width) {
    case 1:
        memcpy(&i8, from, sizeof(i8));
        return i8;
    case 2:
        memcpy(&i16, from, sizeof(i16));
        return i16;
    case 4:
        memcpy(&i32, from, sizeof(i32));
        return i32;
    default:
        memcpy(&i64, from, sizeof(i64));
        return i64;
    }
}

/* Checks that `array` has the layout of `field`, so that values can be read
 * without further checks. Of the contents of buffers, only the ends of offsets
 * are looked at. Returns 0; EINVAL with an error that names the column. Thread:
 * any. */
UVA_MUST_CHECK int uva__text_field_check(const struct uva__text_field *field,
                                         const struct ArrowArray *array,
                                         struct uva_error *error);

#endif
