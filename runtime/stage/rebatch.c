/* SPDX-License-Identifier: Apache-2.0 */
/* uva_stream_rebatch(): a transform that keeps batches until their rows are
 * enough for a batch of the wanted size, and then cuts: a slice, if these rows
 * lie in one batch, and a joined copy otherwise.
 *
 * Happy path:  batch -> after the kept ones -> (cut -> emitted)* -> at
 *              the end, the rest is emitted, too.
 *
 * Failures:    no memory. Joining: data that the host cannot read, or offsets
 *              out of range; splitting looks at no offsets. */
#include <assert.h>
#include <errno.h>

#include "arrow/buffer.h"
#include "arrow/concat.h"
#include "arrow/metadata.h"
#include "arrow/row_size.h"
#include "arrow/slice.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/memory.h"
#include "stage/transform.h"
#include "stream/options.h"
#include "stream/stream_impl.h"
#include "uvarrow/arrow.h"

/* A batch of which some rows have not been passed on. */
struct piece {
    struct uva__concat_part part;  /* first: those rows; with its link */
    struct ArrowDeviceArray array; /* owns */
    struct uva__metadata metadata; /* owns: the batch's */
    uint64_t since_ns;             /* when it came, if that matters */
    int64_t bytes;                 /* of the whole batch; -1: not known */
    bool noted;                    /* the values of `part` are filled in */
    const char *values[];          /* those; as many as a batch has columns */
};

struct rebatch {
    const struct uva_allocator *allocator; /* borrows: the stage's */
    int64_t rows_max, bytes_max;
    bool timed;                       /* it matters how long rows are kept */
    struct uva__concat *concat;       /* owns; NULL before the first batch */
    const struct ArrowSchema *schema; /* borrows, during a call */
    struct uva__list pieces;          /* in order */
    struct uva__list spare;           /* pieces that are not in use */
    int64_t rows;                     /* in all pieces */
    int64_t others;                   /* pieces that could not be noted */
    int64_t largest;                  /* rows of the largest batch so far */
    int64_t guess;    /* rows of unequal size that `bytes_max` is likely to
                         hold; 0: not measured */
    int64_t last_cut; /* rows of the last batch passed on */
    int64_t measured; /* rows that `concat` has counted, if those were all at
                         the time; otherwise 0 */
};

static struct piece *piece_of(struct uva__link *link)
{
    return uva__container_of(link, struct piece, part.link);
}

static struct piece *piece_first(const struct rebatch *r)
{
    return piece_of(r->pieces.head);
}

static size_t piece_size(const struct rebatch *r)
{
    return sizeof(struct piece) +
           uva__concat_columns(r->concat) * sizeof(const char *);
}

static int64_t smaller_of(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- pieces ------------------------------------------------------------- */

/* Gives a piece with only its metadata; NULL without memory. */
static struct piece *piece_new(struct rebatch *r, const char *metadata)
{
    struct uva__link *spare = uva__list_pop(&r->spare);
    struct piece *piece = spare != NULL
                              ? piece_of(spare)
                              : uva__memory_new(r->allocator, piece_size(r));

    if (piece == NULL ||
        uva__metadata_copy(r->allocator, metadata, &piece->metadata) != ENOMEM)
        return piece;
    uva__memory_free(r->allocator, piece, piece_size(r));
    return NULL;
}

/* Releases the batch of a piece, but keeps its memory for another batch: there
 * are never more pieces than batches that were joined to one. */
static void piece_put(struct rebatch *r, struct piece *piece)
{
    if (uva_array_is_live(&piece->array))
        uva_array_release(&piece->array);
    if (piece->metadata.block != NULL)
        uva__metadata_fini(&piece->metadata, r->allocator, NULL);
    r->others -= !piece->noted;
    uva__list_push_front(&r->spare, &piece->part.link);
}

/* Keeps a batch; one without rows is dropped. */
static int rebatch_keep(struct rebatch *r, struct uva_batch *in, int64_t bytes,
                        struct uva_error *error)
{
    struct piece *piece;

    if (in->data.array.length == 0)
        return 0;
    if (in->data.array.length > INT64_MAX - r->rows)
        return uva_error_set(error, EOVERFLOW,
                             "rebatch: too many rows wait to be joined");
    piece = piece_new(r, in->metadata);
    if (piece == NULL)
        return ENOMEM;
    if (r->timed)
        piece->since_ns = uva__clock_ns();
    if (in->data.array.length > r->largest)
        r->largest = in->data.array.length;
    piece->bytes = bytes;
    uva_array_move(&in->data, &piece->array);
    piece->part.values = piece->values;
    piece->part.from = 0;
    piece->part.rows = piece->array.array.length;
    piece->noted =
        uva__concat_note(r->concat, &piece->array.array, &piece->part);
    r->others += !piece->noted;
    uva__list_push(&r->pieces, &piece->part.link);
    r->rows += piece->part.rows;
    return 0;
}

/* Notes that the first `count` rows were passed on. */
static void rebatch_consume(struct rebatch *r, int64_t count)
{
    r->rows -= count;
    r->measured = 0;
    while (count > 0) {
        struct piece *piece = piece_first(r);
        const int64_t rows = smaller_of(count, piece->part.rows);

        count -= rows;
        piece->part.from += rows;
        piece->part.rows -= rows;
        if (piece->part.rows == 0)
            piece_put(r, piece_of(uva__list_pop(&r->pieces)));
    }
}

/* ---- how many rows to cut ----------------------------------------------- */

/* Measures the first `count` rows as one batch. Whole batches that were
 * measured before need not be measured again. */
static int rebatch_measure(struct rebatch *r, int64_t count)
{
    int64_t done = 0, rows;
    struct uva__link *link;
    int code = 0;

    if (r->measured > count || r->measured == 0)
        uva__concat_reset(r->concat);
    for (link = r->pieces.head; done < count && code == 0; link = link->next) {
        const struct piece *piece = piece_of(link);
        const bool again = r->measured <= count && done < r->measured;

        rows = smaller_of(count - done, piece->part.rows);
        done += rows;
        if (!again)
            code = uva__concat_measure(r->concat, &piece->array.array,
                                       piece->part.from, rows);
    }
    r->measured = code == 0 && done == r->rows ? done : 0;
    return code;
}

/* Whether the first `count` rows would be joined. */
static bool rebatch_joins(const struct rebatch *r, int64_t count)
{
    return count > piece_first(r)->part.rows;
}

/* Whether the first `count` rows, of one batch, are small enough where they
 * lie: joined, they would have their own dictionary, and all items between the
 * items of list views, but no bitmap without a null. */
static bool rebatch_slice_fits(const struct rebatch *r, int64_t count)
{
    const struct piece *first = piece_first(r);

    return uva__row_size_measure(
               r->schema, &first->array.array, first->part.from, count,
               uva__buffer_on_host(&first->array)) <= r->bytes_max;
}

/* Whether the first `count` rows are small enough for one batch, as they would
 * be passed on. In `code`: an error other than that they are too many. */
static bool rebatch_fits(struct rebatch *r, int64_t count, int *code)
{
    const bool sliced = r->bytes_max > 0 && !rebatch_joins(r, count);
    int measured;

    if (r->others == 0)
        return uva__concat_holds(r->concat, count, r->bytes_max) &&
               (!sliced || rebatch_slice_fits(r, count));
    measured = rebatch_measure(r, count);
    if (measured != 0) {
        *code = measured == EOVERFLOW ? 0 : measured;
        return false;
    }
    return sliced ? rebatch_slice_fits(r, count)
                  : r->bytes_max == 0 ||
                        uva__concat_bytes(r->concat) <= r->bytes_max;
}

/* Finds the largest number of rows that fit into one batch, near the number of
 * the last one, where `too_many` do not fit. A single row is never too many. */
static int rebatch_find(struct rebatch *r, int64_t too_many, int64_t *count)
{
    int64_t fits = 1, probe = r->last_cut;
    int code = 0;

    while (fits + 1 < too_many && code == 0) {
        if (probe <= fits || probe >= too_many)
            probe =
                fits < too_many / 4 ? fits * 2 : fits + (too_many - fits) / 2;
        if (rebatch_fits(r, probe, &code))
            fits = probe;
        else
            too_many = probe;
    }
    *count = fits;
    return code;
}

/* Whether rows of several batches, or their bytes, have to be looked at. */
static bool rebatch_must_measure(const struct rebatch *r, int64_t count)
{
    return r->bytes_max > 0 || rebatch_joins(r, count);
}

/* Whether there are too few rows to look any further. */
static bool rebatch_waits(const struct rebatch *r)
{
    return r->bytes_max == 0 && r->rows < r->rows_max;
}

/* Gives the number of rows of the next batch; 0: there are not enough. EINVAL
 * if offsets, views, ids or run ends point out of range. */
static int rebatch_next(struct rebatch *r, bool final, int64_t *count)
{
    const int64_t most =
        r->rows_max > 0 ? smaller_of(r->rows, r->rows_max) : r->rows;
    int code = 0;

    *count = most;
    if (most == 0 || (!final && rebatch_waits(r))) {
        *count = 0;
        return 0;
    }
    if (rebatch_must_measure(r, most) && !rebatch_fits(r, most, &code) &&
        code == 0)
        code = rebatch_find(r, most, count);
    if (*count == r->rows && *count != r->rows_max && !final)
        *count = 0;
    return code;
}

/* ---- cutting ------------------------------------------------------------ */

static void rebatch_fill(struct rebatch *r, int64_t pass, int64_t count)
{
    struct uva__link *link;

    for (link = r->pieces.head; count > 0; link = link->next) {
        const struct piece *piece = piece_of(link);
        const int64_t rows = smaller_of(count, piece->part.rows);

        uva__concat_fill(r->concat, pass, &piece->array.array, piece->part.from,
                         rows);
        count -= rows;
    }
}

/* Joins rows of any type. */
static int rebatch_join_any(struct rebatch *r, int64_t count,
                            struct ArrowArray *out)
{
    int code = rebatch_measure(r, count);

    if (code == 0)
        code = uva__concat_begin(r->concat);
    if (code != 0)
        return code;
    for (int64_t pass = 0; pass < uva__concat_passes(r->concat); pass++)
        rebatch_fill(r, pass, count);
    uva__concat_finish(r->concat, out);
    return 0;
}

static int rebatch_join(struct rebatch *r, int64_t count,
                        struct ArrowDeviceArray *out, struct uva_error *error)
{
    const struct ArrowDeviceArray *first = &piece_first(r)->array;

    *out = (struct ArrowDeviceArray){.device_type = first->device_type,
                                     .device_id = first->device_id};
    if (first->device_type != ARROW_DEVICE_CPU)
        return uva_error_set(error, ENOTSUP,
                             "rebatch: only data of the CPU can be joined; "
                             "transfer it first");
    if (r->others == 0)
        return uva__concat_join(r->concat, &r->pieces, count, &out->array);
    return rebatch_join_any(r, count, &out->array);
}

/* Gives the first `count` rows, and the size of a batch that is not changed. A
 * batch that is split later is a slice, so that no children are impossible. */
static int rebatch_cut(struct rebatch *r, int64_t count,
                       struct ArrowDeviceArray *out, int64_t *bytes,
                       struct uva_error *error)
{
    struct piece *first = piece_first(r);

    *bytes = -1;
    if (rebatch_joins(r, count))
        return rebatch_join(r, count, out, error);
    if (count < first->array.array.length ||
        (r->rows_max > 0 && count > r->rows_max))
        return uva__slice_array(r->allocator, r->schema, &first->array,
                                first->part.from, count, out);
    *bytes = first->bytes;
    uva_array_move(&first->array, out);
    return 0;
}

/* How many rows of the first batch can be split without a look at their sizes,
 * which is done when they are passed on; 0: not enough for two batches. */
static int64_t rebatch_splits(const struct rebatch *r)
{
    const int64_t rows = r->pieces.head != NULL ? piece_first(r)->part.rows : 0;

    if (r->bytes_max > 0 || rows / 2 < r->rows_max)
        return 0;
    return rows - rows % r->rows_max;
}

/* Emits the first `count` rows as one batch. */
static int rebatch_pass(struct rebatch *r, int64_t count, void *emitter,
                        struct uva_error *error)
{
    struct uva_batch out = {0};
    int64_t bytes;
    int code = rebatch_cut(r, count, &out.data, &bytes, error);

    if (code != 0)
        return code;
    out.metadata = piece_first(r)->metadata.block;
    code = uva__transform_emit(emitter, &out, bytes);
    r->last_cut = count;
    rebatch_consume(r, count);
    return code;
}

/* Emits batches for as long as there are enough rows, and room. Returns as a
 * function of struct uva_transform. */
static int rebatch_emit(struct rebatch *r, bool final, void *emitter,
                        struct uva_error *error)
{
    int64_t count;
    int code = 0;

    while (code == 0) {
        count = rebatch_splits(r);
        if (count == 0)
            code = rebatch_next(r, final, &count);
        if (code != 0)
            return uva_error_set(error, EPROTO,
                                 "rebatch: offsets, views, type ids or run "
                                 "ends of a batch point to nothing");
        if (count == 0)
            return 0;
        code = rebatch_pass(r, count, emitter, error);
    }
    return code == EAGAIN ? EINPROGRESS : code;
}

/* ---- as a transform ----------------------------------------------------- */

/* Notes how many rows make a batch, if all kept rows were measured. Half of it:
 * the next ones may be larger, and to request too few costs little. */
static void rebatch_guess(struct rebatch *r)
{
    if (r->measured > 0 && r->bytes_max > 0)
        r->guess =
            r->bytes_max / (uva__concat_bytes(r->concat) / r->measured + 1) / 2;
}

/* How many rows a whole batch has, as far as known; 0: not at all. */
static int64_t rebatch_whole(const struct rebatch *r)
{
    const int64_t most = r->rows_max > 0 ? r->rows_max : INT64_MAX;
    int64_t fit = r->guess;

    if (r->largest == 0 || r->bytes_max == 0)
        return r->largest == 0 ? 0 : most;
    if (r->others == 0 && uva__concat_columns(r->concat) > 0)
        fit = uva__concat_rows(r->concat, r->bytes_max);
    return smaller_of(most, fit);
}

static struct uva__transform_rows rebatch_rows(const void *ctx)
{
    const struct rebatch *r = ctx;
    const int64_t whole = rebatch_whole(r);

    return (struct uva__transform_rows){
        .since_ns = r->pieces.head != NULL ? piece_first(r)->since_ns : 0,
        .next = whole - r->rows,
        .whole = whole,
        .input = whole > 0 ? r->largest : 0,
    };
}

static int rebatch_batch(void *ctx, struct uva_batch *in, uva_emit_fn *emit,
                         void *emitter, struct uva_error *error)
{
    struct rebatch *r = ctx;
    int code = 0;

    (void)emit;
    r->schema = in->schema;
    if (r->concat == NULL)
        code = uva__concat_new(r->allocator, in->schema, &r->concat);
    if (code == 0 && uva_array_is_live(&in->data))
        code = rebatch_keep(r, in, uva__transform_input_size(emitter), error);
    if (code != 0 || rebatch_waits(r))
        return code;
    code = rebatch_emit(r, false, emitter, error);
    rebatch_guess(r);
    return code;
}

static int rebatch_finish(void *ctx, uva_emit_fn *emit, void *emitter,
                          struct uva_error *error)
{
    (void)emit;
    return rebatch_emit(ctx, true, emitter, error);
}

static void rebatch_free(void *ctx)
{
    struct rebatch *r = ctx;
    struct uva__link *link;

    while ((link = uva__list_pop(&r->pieces)) != NULL)
        piece_put(r, piece_of(link));
    while ((link = uva__list_pop(&r->spare)) != NULL)
        uva__memory_free(r->allocator, piece_of(link), piece_size(r));
    uva__concat_free(r->concat);
}

int uva_stream_rebatch(struct uva_stream *stream,
                       const struct uva_rebatch *options)
{
    static const struct uva__option_limit limits[] = {
        UVA__LIMIT(uva_rebatch, rows, 0, INT64_MAX),
        UVA__LIMIT(uva_rebatch, bytes, 0, INT64_MAX),
        UVA__LIMIT(uva_rebatch, wait_ms, 0, INT64_MAX),
        {0}};
    static const struct uva__options_kind kind = {
        UVA__OPTIONS(uva_rebatch), UVA__OPTIONS_WINDOW(uva_rebatch),
        .follows = true, .mandatory = true, .limits = limits};
    struct uva_transform made = {.batch = rebatch_batch,
                                 .finish = rebatch_finish,
                                 .free_ctx = rebatch_free};
    struct uva__window window;
    const int code = uva__options_accept(&kind, stream, options, &window);
    struct rebatch r;

    if (code != 0)
        return code;
    if (options->rows == 0 && options->bytes == 0)
        return uva__stream_fail(stream, EINVAL,
                                "uva_rebatch: a limit of rows or bytes is "
                                "needed");
    r = (struct rebatch){.allocator = &stream->rt->allocator,
                         .rows_max = options->rows,
                         .bytes_max = options->bytes,
                         .timed = options->wait_ms > 0};
    made.ctx = &r;
    made.window = options->window;
    return uva__transform_add(
        stream,
        &(struct uva__transform_kind){.name = "rebatch",
                                      .state_size = sizeof(r),
                                      .wait_ms = options->wait_ms,
                                      .flush = rebatch_finish,
                                      .slice_rows = options->rows,
                                      .rows = rebatch_rows},
        &made);
}
