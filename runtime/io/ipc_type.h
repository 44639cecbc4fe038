/* SPDX-License-Identifier: Apache-2.0 */
/* The types of Arrow: format strings of the C data interface, read into the
 * layout of the buffers and the type of the IPC format. */
#ifndef UVA_IO_IPC_TYPE_H
#define UVA_IO_IPC_TYPE_H

#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

/* The content of the buffers of an array. */
enum uva__ipc_kind {
    UVA__IPC_NULL,      /* no buffer */
    UVA__IPC_BITS,      /* a bit an item */
    UVA__IPC_FIXED,     /* `width` bytes an item */
    UVA__IPC_BINARY,    /* offsets of `width` bytes, and data */
    UVA__IPC_VIEW,      /* views of 16 bytes, and any number of data buffers */
    UVA__IPC_LIST,      /* offsets of `width` bytes into the child; a map too */
    UVA__IPC_LIST_VIEW, /* offsets and sizes of `width` bytes */
    UVA__IPC_FIXED_LIST,   /* `width` items of the child for each item */
    UVA__IPC_STRUCT,       /* children beside each other */
    UVA__IPC_SPARSE_UNION, /* types of a byte; children beside each other */
    UVA__IPC_DENSE_UNION,  /* types of a byte, offsets of 4 bytes */
    UVA__IPC_RUN_END       /* run ends and values, as children */
};

/* The union `Type` of Arrow's Schema.fbs. */
enum uva__ipc_tag {
    UVA__IPC_TAG_NULL = 1,
    UVA__IPC_TAG_INT,
    UVA__IPC_TAG_FLOAT,
    UVA__IPC_TAG_BINARY,
    UVA__IPC_TAG_UTF8,
    UVA__IPC_TAG_BOOL,
    UVA__IPC_TAG_DECIMAL,
    UVA__IPC_TAG_DATE,
    UVA__IPC_TAG_TIME,
    UVA__IPC_TAG_TIMESTAMP,
    UVA__IPC_TAG_INTERVAL,
    UVA__IPC_TAG_LIST,
    UVA__IPC_TAG_STRUCT,
    UVA__IPC_TAG_UNION,
    UVA__IPC_TAG_FIXED_BINARY,
    UVA__IPC_TAG_FIXED_LIST,
    UVA__IPC_TAG_MAP,
    UVA__IPC_TAG_DURATION,
    UVA__IPC_TAG_LARGE_BINARY,
    UVA__IPC_TAG_LARGE_UTF8,
    UVA__IPC_TAG_LARGE_LIST,
    UVA__IPC_TAG_RUN_END,
    UVA__IPC_TAG_BINARY_VIEW,
    UVA__IPC_TAG_UTF8_VIEW,
    UVA__IPC_TAG_LIST_VIEW,
    UVA__IPC_TAG_LARGE_LIST_VIEW
};

/* Most children of a union. */
enum { UVA__IPC_MOST_CODES = 128 };

/* A type. The numbers come from its table in Schema.fbs, in its order: decimals
 * have three, most types have no number. */
struct uva__ipc_type {
    enum uva__ipc_kind kind;
    enum uva__ipc_tag tag;
    int32_t width;      /* see the kinds */
    int32_t numbers[3]; /* parameters of the type */
    int32_t n_children; /* -1: any number */
    const char *text;   /* time zone, or codes of a union; borrows from the
                           format; NULL for other types */
};

/* Reads `format`, which is borrowed for as long as `out` is used. Returns 0;
 * EINVAL for impossible parameters; ENOTSUP for an unknown format.
 * Thread: any. */
int uva__ipc_type_read(const char *format, struct uva__ipc_type *out);

/* Reads the next code of a union from `*text`, and advances. False at the end.
 * Thread: any. */
bool uva__ipc_type_next_code(const char **text, int32_t *code);

/* How many bytes the parameters of a type have in its table in Schema.fbs; 0:
 * there are no more. */
extern const int8_t uva__ipc_parameters[][3];

/* Writes the format of a type whose tag and numbers are known; for a union,
 * `codes` are its children's, at most UVA__IPC_MOST_CODES. A timestamp's zone,
 * of `room` - 8 bytes at most, is in `text`. Returns 0; EPROTO for impossible
 * numbers. Thread: any. */
int uva__ipc_type_write(const struct uva__ipc_type *type, const int32_t *codes,
                        int32_t n_codes, char *format, size_t room);

/* Whether arrays of that kind have a bitmap of nulls. Thread: any. */
static inline bool uva__ipc_has_validity(enum uva__ipc_kind kind)
{
    return kind != UVA__IPC_NULL && kind != UVA__IPC_SPARSE_UNION &&
           kind != UVA__IPC_DENSE_UNION && kind != UVA__IPC_RUN_END;
}

/* The number of buffers that an array of that kind has; views have at least
 * this number. Thread: any. */
int32_t uva__ipc_type_buffers(enum uva__ipc_kind kind);

#endif
