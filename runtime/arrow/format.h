/* SPDX-License-Identifier: Apache-2.0 */
/* Format strings, read into layouts: which buffers an array has, and how many
 * children. The sizes of real arrays are left to layout.h. */
#ifndef UVA_ARROW_FORMAT_H
#define UVA_ARROW_FORMAT_H

#include "uvarrow/base.h"

/* Most buffers that every array of a format has. Variadic buffers do not count:
 * their number depends on the data. */
#define UVA__LAYOUT_MAX_BUFFERS 3

/* The contents of a buffer, from which its size follows. */
enum uva__buffer_kind {
    UVA__BUFFER_VALIDITY, /* a bit an item; NULL without nulls */
    UVA__BUFFER_BITS,     /* a bit an item */
    UVA__BUFFER_FIXED,    /* `width` bytes an item */
    UVA__BUFFER_OFFSETS,  /* `width` bytes an item, and one more item */
    UVA__BUFFER_DATA      /* up to the last offset of the buffer before it */
};

/* One buffer that every array of the format has. */
struct uva__layout_buffer {
    enum uva__buffer_kind kind; /* its contents */
    int32_t width;              /* bytes of an item; 0 for bits and data */
};

/* The layout that a format string stands for. */
struct uva__layout {
    struct uva__layout_buffer buffers[UVA__LAYOUT_MAX_BUFFERS]; /* in order */
    int32_t n_buffers;  /* number of those */
    int32_t n_children; /* number of children; -1: any number */
    bool variadic;      /* any number of data buffers follow, and one buffer
                           with their lengths, an int64 each;
                           Clauses: DA-27. */
    bool index;         /* an integer, which may index a dictionary */
};

/* Reads a format string of the Arrow C data interface. 0 with `out`; ENOTSUP
 * for one unknown here; EINVAL for a known one with an impossible parameter,
 * and for NULL. `format` is borrowed. Thread: any. */
UVA_MUST_CHECK int uva__format_read(const char *format,
                                    struct uva__layout *out);

enum { UVA__UNION_IDS = 128 }; /* type ids of a union: from 0 */

/* Reads the type ids of a union, as in "+ud:3,5": for each of them the number
 * of its child, for all other ids -1. Relies on a format that was read. Thread:
 * any. */
void uva__format_members(const char *format, int8_t of_id[UVA__UNION_IDS]);

/* The size of an item in bytes, if `format` is a number or a time; otherwise 0,
 * for valid and invalid formats alike. Fast. Thread: any. */
int32_t uva__format_width(const char *format);

#endif
