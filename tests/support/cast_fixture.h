/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of one column, x, made by the test, and its cast to another schema.
 * Thread: any, one at a time. */
#ifndef UVA_SUPPORT_CAST_FIXTURE_H
#define UVA_SUPPORT_CAST_FIXTURE_H

#include "support/faulty_allocator.h"
#include "uvarrow/arrow_abi.h"
#include "uvarrow/base.h"

extern struct faulty_allocator cast_memory;
extern struct ArrowSchema cast_from, cast_to; /* structs with one child */
extern struct ArrowDeviceArray cast_array, cast_out;
extern struct uva_error cast_error;

/* 1, 5000000000, -2, 3, 5000000000. */
extern const int64_t CAST_LARGE[5];

/* Of five items, the second and the fifth are null. */
extern const uint8_t CAST_SECOND_IS_NULL[1];

/* Texts of the errors of such a null. */
extern const char CAST_NULL_AT_0[], CAST_NULL_AT_1[];

void cast_set_up(void);
void cast_tear_down(void);
void cast_again(void); /* the one, then the other */

/* Gives both schemas and the array so many children instead of one. */
void cast_columns(int before, int after, int64_t rows);

/* Adds a field, which may be null, to a schema. */
struct ArrowSchema *cast_field(struct ArrowSchema *parent, int i,
                               const char *format, const char *name,
                               int children);

/* Adds x of these formats to both schemas. */
void cast_fields(const char *before, const char *after, int children);

/* Adds an array to its parent, with two buffers, or three. */
struct ArrowArray *cast_values(struct ArrowArray *parent, int i, int64_t length,
                               const void *validity, const void *second,
                               const void *third);

/* Adds x, of which the batch gets the length. */
struct ArrowArray *cast_column(int64_t length, const void *validity,
                               const void *second, const void *third);

/* Casts the batch. Returns the code, which the error has as well. */
int cast_run(void);

/* Casts, releases what remains of the batch, and returns the first column. */
const struct ArrowArray *cast_result(void);

/* Casts, and expects this error. */
void cast_refuses(int code, const char *text);

#endif
