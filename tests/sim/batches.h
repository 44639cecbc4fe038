/* SPDX-License-Identifier: Apache-2.0 */
/* The data of simulated streams: schemas, and batches that know their ordinal
 * and how many maps they passed. The arena tracks each until its release, which
 * must happen exactly once. */
#ifndef SIM_BATCHES_H
#define SIM_BATCHES_H

#include <stdbool.h>

#include "uvarrow/arrow_abi.h"

/* Rows of each batch. */
enum { BATCHES_ROWS = 3 };

/* Begins a schedule, in which texts are `large`: with offsets of 64 bits. */
void batches_begin(bool large);

/* Gives the schema of all batches: a column of numbers, and a column of texts,
 * so that batches differ in size. */
void batches_schema(struct ArrowSchema *out);

/* The formats and the order of the columns. */
struct batches_types {
    const char *number, *text;
    bool turned; /* the texts come first */
};

/* Gives a schema to cast batches to, whose columns have the same names. */
void batches_typed_schema(const struct batches_types *types,
                          struct ArrowSchema *out);

/* Gives the types of batches that a cast is needed for; and such a batch. */
struct batches_types batches_other_types(void);
void batches_other_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out);

/* Gives batch number `ordinal`, as after `hops` maps. */
void batches_batch(int64_t ordinal, int64_t hops, struct ArrowArray *out);
void batches_device_batch(int64_t ordinal, int64_t hops,
                          struct ArrowDeviceArray *out);

/* Puts a new batch on the simulated device, with an event, which `let_go`
 * releases together with the batch; may be NULL. */
void batches_keep(struct ArrowDeviceArray *batch, void *event,
                  void (*release_event)(void *event));

/* Returns that event; not for copies. */
void *batches_event(const struct ArrowArray *batch);

/* Read a batch. Any other batch ends the schedule. */
int64_t batches_ordinal(const struct ArrowArray *batch);
int64_t batches_hops(const struct ArrowArray *batch);

/* Whether these are the numbers of a batch: ordinal, maps passed, mark. */
bool batches_are_numbers(const int64_t *numbers);

/* Writes the rows of a batch as lines, of JSON or of CSV, with a NUL. */
void batches_print(int64_t ordinal, int64_t hops, bool json, char *out);

/* Ends the schedule unless the batch has the texts of its ordinal. */
void batches_check_text(const struct ArrowArray *batch);

/* Records that a batch, which only the caller holds, passed a map. */
void batches_add_hop(struct ArrowArray *batch);

/* Ends the schedule unless this is the schema of all batches. */
void batches_check_schema(const struct ArrowSchema *schema);

#endif
