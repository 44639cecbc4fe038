/* SPDX-License-Identifier: Apache-2.0 */
/* The data of the reference peers: batches of three rows, a struct of an int64
 * column "n" and a dictionary-encoded column "word"; metadata blocks, valid and
 * invalid. Uses only the Arrow structs. */
#ifndef UVA_SUPPORT_REFERENCE_DATA_H
#define UVA_SUPPORT_REFERENCE_DATA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

enum { REFERENCE_ROWS = 3 };

/* Counts the data that was made with it, and outlives it. */
struct reference_counts {
    atomic_long live; /* nodes of schemas and arrays not released so far */
    void (*on_release)(void *ctx); /* called at a batch's release; or NULL */
    void *ctx;                     /* borrows: argument of on_release */
    void *_Atomic lost;            /* nodes leaked by a broken release */
};

/* All zeroes: no data was made. Frees the leaked nodes. */
void reference_counts_fini(struct reference_counts *live_structs);

/* Gives the schema of all batches; `metadata` is copied, and may be NULL. The
 * release frees every string and vector. Thread: any. */
void reference_schema(struct reference_counts *live_structs,
                      const char *metadata, struct ArrowSchema *out);

/* Gives batch `ordinal`, on the CPU. Thread: any. */
void reference_array(struct reference_counts *live_structs, int64_t ordinal,
                     struct ArrowDeviceArray *out);

/* Returns the ordinal of a batch, read from its rows; -1 if the rows fit no
 * batch. Borrows. Thread: any. */
int64_t reference_array_ordinal(const struct ArrowArray *array);

/* Replace the release of `array` or `schema` by a release that leaves `release`
 * set, or that does not release the children. Thread: any. */
void reference_array_unmarked(struct ArrowArray *array);
void reference_array_childless(struct ArrowArray *array);
void reference_schema_unmarked(struct ArrowSchema *schema);

/* Kinds of metadata blocks. */
enum reference_block {
    REFERENCE_NONE,       /* NULL */
    REFERENCE_SOUND,      /* kind=fact */
    REFERENCE_OTHER,      /* kind=void, of the same size */
    REFERENCE_EMPTY,      /* a block without pairs (MD-02) */
    REFERENCE_MINUS,      /* -1 pairs (MD-05) */
    REFERENCE_MINUS_KEY,  /* a key of -1 bytes */
    REFERENCE_MINUS_WORD, /* a value of -1 bytes */
    REFERENCE_CROWD,      /* 2^30 pairs (MD-09) */
    REFERENCE_GIANT       /* a key of 2^31-1 bytes */
};

enum { REFERENCE_BLOCK_SIZE = 20 }; /* size, with trailing zeroes */

/* Returns the block, aligned; NULL for NONE. Constant. Thread: any. */
const char *reference_block(enum reference_block which);

#endif
