/* SPDX-License-Identifier: Apache-2.0 */
/* What a format string says about an array: which buffers, how many children.
 * Sizes of real arrays are layout.h. */
#ifndef UVA_CORE_FORMAT_H
#define UVA_CORE_FORMAT_H

#include "uvarrow/base.h"

/* The buffers that every array of a format has; those whose number comes with
 * the data are the variadic ones. */
#define UVA__LAYOUT_MAX_BUFFERS 3

/* What a buffer holds, and so how its size follows from the array. */
enum uva__buffer_kind {
    UVA__BUFFER_VALIDITY, /* a bit an item; NULL if nothing is null */
    UVA__BUFFER_BITS,     /* a bit an item */
    UVA__BUFFER_FIXED,    /* `width` bytes an item */
    UVA__BUFFER_OFFSETS,  /* `width` bytes an item, and one more item */
    UVA__BUFFER_DATA      /* up to the last offset of the buffer before it */
};

/* One buffer that every array of the format has. */
struct uva__layout_buffer {
    enum uva__buffer_kind kind; /* what it holds */
    int32_t width;              /* bytes of an item; 0 for bits and data */
};

/* What a format string says. */
struct uva__layout {
    struct uva__layout_buffer buffers[UVA__LAYOUT_MAX_BUFFERS]; /* in order */
    int32_t n_buffers;  /* how many of them there are */
    int32_t n_children; /* how many there must be; -1: any number */
    bool variadic;      /* then any number of data buffers, and one of their
                           lengths, an int64 each (DA-27) */
    bool index;         /* an integer: may index a dictionary */
};

/* Reads a format string of the Arrow C data interface. 0 with `out`; ENOTSUP
 * for one unknown here; EINVAL for a known one with an impossible parameter,
 * and for NULL. `format` is borrowed. Thread: any. */
UVA_MUST_CHECK int uva__format_read(const char *format,
                                    struct uva__layout *out);

/* The bytes of an item, if `format` is that of a number or a time; otherwise
 * 0, which says nothing. For those in a hurry. Thread: any. */
int32_t uva__format_width(const char *format);

#endif
