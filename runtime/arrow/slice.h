/* SPDX-License-Identifier: Apache-2.0 */
/* Some rows of a batch as a separate batch, which shares the data. */
#ifndef UVA_ARROW_SLICE_H
#define UVA_ARROW_SLICE_H

#include "arrow/share.h"

/* Gives `out` the `count` rows from row `from` on. The data is not copied:
 * `array` becomes a shared array, as by uva__array_share(), and keeps all its
 * rows. The offset goes into the columns of a record batch, since some
 * consumers refuse a batch that has one itself. `array` fits `schema`, and has
 * these rows. 0; ENOMEM; EINVAL if its children are impossible. Thread: any one
 * at a time. */
UVA_MUST_CHECK int uva__slice_array(const struct uva_allocator *allocator,
                                    const struct ArrowSchema *schema,
                                    struct ArrowDeviceArray *array,
                                    int64_t from, int64_t count,
                                    struct ArrowDeviceArray *out);

/* Divides an array, a part at each call: gives `out` its first `count` rows,
 * and leaves it the other ones, which are divided further. All calls for one
 * array have the same `room`, and `parts` states how many parts there are, with
 * the rest, 2 or more. Otherwise as uva__slice_array(). */
UVA_MUST_CHECK int uva__slice_off(const struct uva_allocator *allocator,
                                  const struct ArrowSchema *schema,
                                  struct uva__array_share_room *room,
                                  struct ArrowDeviceArray *array, int64_t count,
                                  int64_t parts, struct ArrowDeviceArray *out);

/* Reduces an array that came from uva__slice_array() or uva__array_share() to
 * the `count` rows from row `from` on. Thread: any one at a time. */
void uva__slice_reduce(const struct ArrowSchema *schema,
                       struct ArrowArray *array, int64_t from, int64_t count);

#endif
