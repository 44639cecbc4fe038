/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes no batches, to check that the library beside the runtime can be
 * linked. */
#include <stdio.h>
#include <uv.h>
#include <uvarrow/io.h>
#include <uvarrow/uvarrow.h>

static void release_schema(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

int main(void)
{
    const struct ArrowSchema schema = {
        .format = "+s", .name = "", .release = release_schema};
    struct uva_part part;
    struct uva_error error;
    int64_t bytes = 0;

    if (uva_array_encode(&schema, NULL, 0, NULL, &part, &error) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < part.count; i++)
        bytes += (int64_t)part.buffers[i].len;
    if (bytes != part.bytes)
        return 1;
    uva_part_release(&part);
    return uva_version() == UVA_VERSION_HEX ? 0 : 1;
}
