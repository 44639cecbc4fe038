/* SPDX-License-Identifier: Apache-2.0 */
/* Any reader or driver gives such a stream; this one makes it by hand. */
#include "thermometer.h"

#include <stdlib.h>

#include "readings.h"

static int get_schema(struct ArrowArrayStream *self, struct ArrowSchema *out)
{
    (void)self;
    return readings_schema(out);
}

static int get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    FILE *pipe = self->private_data;
    struct ArrowDeviceArray batch;
    int64_t *readings = readings_new(4, &batch);
    int64_t n = 0;
    char line[64];

    if (readings == NULL)
        return ENOMEM;
    while (n < 4 && fgets(line, sizeof(line), pipe) != NULL) /* waits */
        readings[n++] = strtoll(line, NULL, 10);
    batch.array.length = batch.array.children[0]->length = n;
    if (n > 0)
        return uva_array_to_cpu(&batch, out);
    uva_array_release(&batch);
    out->release = NULL; /* the end */
    return ferror(pipe) ? EIO : 0;
}

static const char *get_last_error(struct ArrowArrayStream *self)
{
    return ferror((FILE *)self->private_data) ? "cannot read" : NULL;
}

static void release(struct ArrowArrayStream *self)
{
    self->release = NULL; /* the pipe is the program's */
}

void thermometer_open(FILE *pipe, struct ArrowArrayStream *out)
{
    *out = (struct ArrowArrayStream){get_schema, get_next, get_last_error,
                                     release, pipe};
}
