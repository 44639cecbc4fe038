/* SPDX-License-Identifier: Apache-2.0 */
/* For cast_tables.py: casts a stream of Python's, and gives it back. */
#include "uvarrow/uvarrow.h"

/* Python calls these by name. */
struct uva_runtime *cast_open(void);
void cast_close(struct uva_runtime *runtime);
int cast_play(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              struct ArrowSchema *target, struct ArrowArrayStream *out);

struct uva_runtime *cast_open(void)
{
    struct uva_runtime *runtime = NULL;

    return uva_runtime_open(NULL, NULL, &runtime, NULL) == 0 ? runtime : NULL;
}

void cast_close(struct uva_runtime *runtime)
{
    uva_runtime_close(runtime, 0, NULL, NULL);
}

/* Takes `in` and `target`, and gives `out`. */
int cast_play(struct uva_runtime *runtime, struct ArrowArrayStream *in,
              struct ArrowSchema *target, struct ArrowArrayStream *out)
{
    struct uva_stream *stream = uva_stream_from_arrow_stream(runtime, in, NULL);
    int code;

    (void)uva_stream_cast(stream, target);
    code = uva_stream_to_arrow_stream(stream, NULL, out, NULL);
    uva_stream_release(stream);
    return code;
}
