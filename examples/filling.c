/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of the batch is that of the reads. */
#include "filling.h"

enum { ROWS = 4096, BYTES = ROWS * sizeof(int64_t) };

uv_buf_t filling_room(struct filling *f)
{
    if (!uva_array_is_live(&f->batch))
        f->to = (char *)integers_new(ROWS, &f->batch);
    return f->to == NULL
               ? uv_buf_init(NULL, 0)
               : uv_buf_init(f->to + f->bytes, (unsigned)(BYTES - f->bytes));
}

bool filling_add(struct filling *f, ssize_t size)
{
    f->bytes += size > 0 ? (size_t)size : 0;
    if (f->bytes < BYTES && (size != UV_EOF || f->bytes == 0))
        return false;
    f->batch.array.length = (int64_t)(f->bytes / sizeof(int64_t));
    f->bytes = 0;
    return true;
}
