/* SPDX-License-Identifier: Apache-2.0 */
/* What the reference peers hand to each other: batches of three rows, a struct
 * of an int64 column "n" and a dictionary-encoded column "word"; metadata
 * blocks, sound and broken. Knows the Arrow structs and nothing else. */
#ifndef UVA_SUPPORT_REFERENCE_DATA_H
#define UVA_SUPPORT_REFERENCE_DATA_H

#include <stdatomic.h>
#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

enum { REFERENCE_ROWS = 3 };

/* Books of what was made from it. Outlives all of that. */
struct reference_ledger {
    atomic_long live; /* nodes of schemas and arrays not yet released */
    void (*on_release)(void *ctx); /* at the release of a batch; or NULL */
    void *ctx;                     /* borrows: on_release's */
    void *_Atomic lost;            /* nodes that a broken release left behind */
};

/* Zeroes mean: nothing made. Frees what was lost. */
void reference_ledger_fini(struct reference_ledger *ledger);

/* Gives the schema of all batches; `metadata` is copied, may be NULL. Every
 * string and vector of it goes with its release. Thread: any. */
void reference_schema(struct reference_ledger *ledger, const char *metadata,
                      struct ArrowSchema *out);

/* Gives batch `ordinal`, on the CPU. Thread: any. */
void reference_array(struct reference_ledger *ledger, int64_t ordinal,
                     struct ArrowDeviceArray *out);

/* The ordinal of a batch, read from its rows; -1 if they are not those of one.
 * Borrows. Thread: any. */
int64_t reference_array_ordinal(const struct ArrowArray *array);

/* Gives `array` or `schema` a release that leaves the mark set, or, for
 * children, that lets go of none of them. Thread: any. */
void reference_array_unmarked(struct ArrowArray *array);
void reference_array_childless(struct ArrowArray *array);
void reference_schema_unmarked(struct ArrowSchema *schema);

/* Metadata blocks. */
enum reference_block {
    REFERENCE_NONE,       /* NULL */
    REFERENCE_SOUND,      /* kind=fact */
    REFERENCE_OTHER,      /* kind=void, of the same size */
    REFERENCE_EMPTY,      /* no pair, and yet a block (MD-02) */
    REFERENCE_MINUS,      /* -1 pairs (MD-05) */
    REFERENCE_MINUS_KEY,  /* a key of -1 bytes */
    REFERENCE_MINUS_WORD, /* a value of -1 bytes */
    REFERENCE_CROWD,      /* 2^30 pairs (MD-09) */
    REFERENCE_GIANT       /* a key of 2^31-1 bytes */
};

enum { REFERENCE_BLOCK_SIZE = 20 }; /* bytes, each of them, zeroes behind */

/* The block, aligned; NULL for NONE. Constant. Thread: any. */
const char *reference_block(enum reference_block which);

#endif
