/* SPDX-License-Identifier: Apache-2.0 */
/* A test of a blocking stream, of each call and each array. This one has a bug,
 * which the checker finds: an array counts a null, and has no bitmap for it.
 *
 *     $ cc check_stream.c integers.c $(pkg-config --cflags --libs uvarrow)
 *     $ ./a.out
 *     DA-22: the top: there is no validity bitmap, and null_count is 1
 *     rules broken: 1
 *     a single array: OK
 */
#include <stdio.h>

#include "integers.h"

static int own_schema(struct ArrowDeviceArrayStream *self,
                      struct ArrowSchema *out)
{
    return integers_schema(self->private_data, out, NULL);
}

static int own_next(struct ArrowDeviceArrayStream *self,
                    struct ArrowDeviceArray *out)
{
    int *left = self->private_data;

    uva_array_clear(out); /* a released array is the end */
    if (*left == 0)
        return 0;
    if (integers_new(10, out) == NULL)
        return ENOMEM;
    out->array.null_count = --*left == 0; /* the bug */
    return 0;
}

static const char *own_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return NULL;
}

static void own_release(struct ArrowDeviceArrayStream *self)
{
    self->release = NULL;
}

static void on_breach(void *ctx, const struct uva_breach *breach)
{
    (void)ctx;
    printf("%s: %s\n", breach->clause, breach->message);
}

int main(void)
{
    int left = 3;
    struct ArrowDeviceArrayStream stream = {.device_type = ARROW_DEVICE_CPU,
                                            .get_schema = own_schema,
                                            .get_next = own_next,
                                            .get_last_error = own_error,
                                            .release = own_release,
                                            .private_data = &left};
    const struct uva_check options = {.report = on_breach, .keep = true};
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    if (uva_check_device_stream(&stream, &options, NULL) != 0 ||
        stream.get_schema(&stream, &schema) != 0)
        return 1;
    while (stream.get_next(&stream, &array) == 0 && uva_array_is_live(&array))
        uva_array_release(&array);
    uva_schema_release(&schema);
    stream.release(&stream);
    printf("rules broken: %d\n",
           (int)uva_check_conclude_device_stream(&stream));
    if (integers_new(10, &array) == NULL || own_schema(&stream, &schema) != 0)
        return 1;
    printf("a single array: %s\n",
           uva_error_name(uva_check_array(&schema, &array, &options, NULL)));
    uva_array_release(&array);
    return 0;
}
