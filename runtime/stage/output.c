/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and keeps the schema of a stage's output. */
#include "stage/output.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "uvarrow/arrow.h"

/* Has the user's function replace the schema of the source, and its outline. */
static int output_replace(const struct uva__output *output,
                          struct uva__source *source,
                          uva__output_schema_fn *make, void *ctx,
                          struct uva_error *error)
{
    struct ArrowSchema out = {0};
    int code = uva__error_positive(make(ctx, output->input, &out, error));

    if (code == 0 && uva__structs_check_schema(&out, error) != 0)
        code = uva_error_set(error, EPROTO, "%s: no valid schema was given",
                             source->ops->name);
    if (code != 0) {
        uva_schema_release(&out);
        return code;
    }
    uva_schema_release(&source->schema);
    uva_schema_move(&out, &source->schema);
    uva__outline_release(source->outline);
    source->outline = NULL;
    return uva__source_outline(source);
}

bool uva__output_prepare(struct uva__output *output, struct uva__source *source,
                         uva__output_schema_fn *make, void *ctx)
{
    struct uva_error error;
    int code;

    if (output->measure != NULL || !source->schema_known)
        return output->measure != NULL;
    uva__error_begin(&error);
    code = uva__source_outline(source);
    if (code == 0) {
        output->above = uva__outline_share(source->outline);
        output->input = &uva__outline_measure(output->above)->schema;
        if (make != NULL)
            code = output_replace(output, source, make, ctx, &error);
    }
    if (code == 0) {
        output->measure = uva__outline_measure(source->outline);
    } else {
        source->schema_known = false;
        uva__failure_set(&source->failure, &source->rt->allocator, code, &error,
                         NULL);
    }
    return code == 0;
}

void uva__output_fini(struct uva__output *output)
{
    uva__outline_release(output->above);
}
