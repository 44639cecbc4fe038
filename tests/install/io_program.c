/* SPDX-License-Identifier: Apache-2.0 */
/* Encodes an empty batch, to check that the library beside the runtime can be
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
    struct uva_encoder *encoder;
    struct uva_error error;
    int64_t bytes = 0;

    if (uva_encoder_new(&schema, NULL, &encoder, &error) != 0 ||
        uva_encoder_begin(encoder, &part) != 0) {
        (void)fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    for (size_t i = 0; i < part.count; i++)
        bytes += (int64_t)part.buffers[i].len;
    uva_encoder_free(encoder);
    if (bytes != part.bytes)
        return 1;
    uva_part_release(&part);
    return uva_version() == UVA_VERSION_HEX ? 0 : 1;
}
