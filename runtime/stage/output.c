/* SPDX-License-Identifier: Apache-2.0 */
/* Makes and keeps the schema of a stage's output. */
#include "stage/output.h"

#include <errno.h>

#include "arrow/structs.h"
#include "base/error.h"
#include "uvarrow/arrow.h"

/* Has the user's function replace the schema of the source. */
static int output_replace(const struct uva__output *output,
                          struct uva__source *source,
                          uva__output_schema_fn *make, void *ctx,
                          struct uva_error *error)
{
    struct ArrowSchema out = {0};
    int code = uva__error_positive(make(ctx, &output->input, &out, error));

    if (code == 0 && uva__structs_check_schema(&out, error) != 0)
        code = uva_error_set(error, EPROTO, "%s: no valid schema was given",
                             source->ops->name);
    if (code == 0) {
        uva_schema_release(&source->schema);
        uva_schema_move(&out, &source->schema);
    } else {
        uva_schema_release(&out);
    }
    return code;
}

bool uva__output_prepare(struct uva__output *output, struct uva__source *source,
                         uva__output_schema_fn *make, void *ctx)
{
    const struct uva_allocator *allocator = &source->rt->allocator;
    struct uva_error error;
    int code;

    if (uva__measure_is_known(&output->measure) || !source->schema_known)
        return uva__measure_is_known(&output->measure);
    uva__error_begin(&error);
    code = uva__structs_copy_schema(allocator, &source->schema, &output->input);
    if (code == 0 && make != NULL)
        code = output_replace(output, source, make, ctx, &error);
    if (code == 0)
        code = uva__measure_init(&output->measure, allocator, &source->schema);
    if (code != 0) {
        source->schema_known = false;
        uva__failure_set(&source->failure, allocator, code, &error, NULL);
    }
    return code == 0;
}

void uva__output_fini(struct uva__output *output)
{
    uva_schema_release(&output->input);
    uva__measure_fini(&output->measure);
}
