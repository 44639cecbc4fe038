/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile blocking stream of either kind at uva_stream_from_device_stream()
 * and uva_stream_from_arrow_stream(), or as the result of an ADBC driver that
 * lies: it fails with any code, gives schemas and arrays that are malformed or
 * empty, and changes its device. Its owner cancels, drops, closes and runs out
 * of memory as the bytes decide.
 *
 * Input: how the stream is made, the acts of the owner, and then a step for
 * each call of the peer. Delivered batches must be sound, in order, and
 * reported once; whatever the peer gave must be released once; and no call
 * comes after the end, after an error, or beside another one. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "fuzz/fixture.h"
#include "uvarrow/adbc.h"
#include "uvarrow/adbc_abi.h"
#include "uvarrow/arrow.h"
#include "uvarrow/sources.h"

enum { OWNER_STEPS = 6, ROWS = 2 };

/* The acts of get_next. */
enum step {
    STEP_SOUND = 7, /* up to here */
    STEP_END,
    STEP_FAILS, /* with any code, and garbage in `out` */
    /* arrays that are refused: */
    STEP_NO_CHILD,      /* it lacks its column */
    STEP_NO_BUFFER,     /* the column lacks a buffer */
    STEP_NEGATIVE,      /* the length is negative */
    STEP_RELEASED,      /* the column is released */
    STEP_NO_BUFFERS,    /* there is no vector of buffers */
    STEP_OTHER_COLUMNS, /* one column too many is announced */
    /* arrays that are passed on, as their claims cannot be checked: */
    STEP_HUGE,         /* the length fits no array */
    STEP_OTHER_DEVICE, /* it is on another device */
    STEPS
};

static struct scenario {
    struct fixture fixture;
    struct uva_stream *stream; /* NULL once released or dropped */
    struct fuzz_input in;      /* the peer's: one call at a time reads it */
    bool plain;                /* an ArrowArrayStream */
    bool hook;                 /* it is given by the hook */
    bool query;                /* it is given by a driver */
    atomic_int statements;     /* of the driver, not released */
    atomic_bool bare;          /* the driver gave no result */
    atomic_int inside;         /* calls of the peer in progress */
    atomic_int live;           /* blocks that it gave */
    atomic_int opened, released, freed;
    atomic_bool over;    /* it has ended or failed */
    atomic_bool unsound; /* it has given something malformed */
    atomic_bool unknown; /* its column is of a format that cannot be checked */
    int64_t ordinal;     /* sound batches given */
    int verdict;         /* return value of the next on_batch */
    int64_t batches;     /* batches accepted */
    int schemas, dones;  /* calls of callbacks */
    bool waits;          /* the last on_batch returned EAGAIN */
    bool paused;         /* the owner has paused the stream */
    bool started, dropped, stopped, refused;
    struct uva_outcome outcome;
} s;

/* ---- the peer's objects ------------------------------------------------- */

struct block {
    struct ArrowSchema column;
    struct ArrowSchema *columns[1];
    struct ArrowArray child;
    struct ArrowArray *children[1];
    const void *none[1], *buffers[2];
    int64_t values[ROWS];
};

static struct block *block_new(void)
{
    struct block *block = calloc(1, sizeof(*block));

    FUZZ_RULE(block != NULL);
    atomic_fetch_add(&s.live, 1);
    return block;
}

static void block_free(void *block)
{
    free(block);
    FUZZ_RULE(atomic_fetch_sub(&s.live, 1) > 0);
}

static void column_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    block_free(schema->private_data);
    schema->release = NULL;
}

static void child_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void array_release(struct ArrowArray *array)
{
    block_free(array->private_data);
    array->release = NULL;
}

static void schema_make(struct ArrowSchema *out)
{
    struct block *block = block_new();

    block->column = (struct ArrowSchema){
        .format = "l", .name = "n", .release = column_release};
    block->columns[0] = &block->column;
    *out = (struct ArrowSchema){.format = "+s",
                                .n_children = 1,
                                .children = block->columns,
                                .release = schema_release,
                                .private_data = block};
}

static struct block *array_make(struct ArrowArray *out)
{
    struct block *block = block_new();

    block->values[0] = block->values[1] = s.ordinal;
    block->buffers[1] = block->values;
    block->child = (struct ArrowArray){.length = ROWS,
                                       .n_buffers = 2,
                                       .buffers = block->buffers,
                                       .release = child_release};
    block->children[0] = &block->child;
    *out = (struct ArrowArray){.length = ROWS,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = block->none,
                               .children = block->children,
                               .release = array_release,
                               .private_data = block};
    return block;
}

static void array_spoil(enum step step, struct block *block,
                        struct ArrowArray *out)
{
    atomic_store(&s.unsound, true);
    switch (step) {
    case STEP_NO_CHILD:
        out->n_children = 0;
        break;
    case STEP_NO_BUFFER:
        block->child.n_buffers = 1;
        break;
    case STEP_NEGATIVE:
        out->length = block->child.length = -1;
        break;
    case STEP_RELEASED:
        block->child.release = NULL;
        break;
    case STEP_NO_BUFFERS:
        block->child.buffers = NULL;
        break;
    default:
        out->n_children = 2;
        break;
    }
}

/* ---- calls of the peer -------------------------------------------------- */

static void peer_enter_late(void)
{
    fixture_see();
    FUZZ_RULE(atomic_fetch_add(&s.inside, 1) == 0);
    FUZZ_RULE(atomic_load(&s.freed) == 0);
}

static void peer_enter(void)
{
    peer_enter_late();
    FUZZ_RULE(atomic_load(&s.released) == 0);
}

static int peer_leave(int code)
{
    FUZZ_RULE(atomic_fetch_sub(&s.inside, 1) == 1);
    return code;
}

static int peer_fail(void)
{
    const int code = (int)fuzz_strange(&s.in);

    atomic_store(&s.over, true);
    return code == 0 ? EIO : code;
}

static int peer_get_schema(struct ArrowSchema *out)
{
    const int step = fuzz_below(&s.in, 16);
    int code = 0;

    peer_enter();
    FUZZ_RULE(!atomic_load(&s.over));
    schema_make(out);
    atomic_store(step == 13 ? &s.unknown : &s.unsound, step >= 12);
    if (step == 11) {
        out->release(out);
        memset(out, 0xDD, sizeof(*out));
        code = peer_fail();
    } else if (step == 12) {
        out->format = NULL;
    } else if (step == 13) {
        out->children[0]->format = fuzz_below(&s.in, 2) != 0 ? "?" : "";
    } else if (step == 14) {
        out->children[0] = NULL;
    } else if (step == 15) {
        out->release(out);
    }
    return peer_leave(code);
}

static int peer_get_next(struct ArrowArray *out, ArrowDeviceType *device_type)
{
    const enum step step =
        s.in.size == 0 ? STEP_END : (enum step)fuzz_below(&s.in, STEPS);
    struct block *block;
    int code = 0;

    peer_enter();
    FUZZ_RULE(!atomic_load(&s.over));
    fuzz_trace("peer", "step", (int)step);
    if (step == STEP_END) {
        atomic_store(&s.over, true);
        out->release = NULL;
    } else if (step == STEP_FAILS) {
        memset(out, 0xDD, sizeof(*out));
        code = peer_fail();
    } else {
        block = array_make(out);
        if (step > STEP_FAILS && step < STEP_HUGE)
            array_spoil(step, block, out);
        else
            s.ordinal++;
        if (step == STEP_HUGE)
            out->length = block->child.length = INT64_MAX;
        if (step == STEP_OTHER_DEVICE && device_type != NULL)
            *device_type = ARROW_DEVICE_EXT_DEV;
    }
    return peer_leave(code);
}

static const char *peer_get_last_error(void)
{
    static const char *const texts[] = {NULL, "", "it failed", "two\nlines",
                                        "\xff\xfe%s%n"};
    const char *text = texts[fuzz_below(&s.in, 5)];

    peer_enter();
    (void)peer_leave(0);
    return text;
}

static void peer_release(void)
{
    peer_enter();
    atomic_fetch_add(&s.released, 1);
    (void)peer_leave(0);
}

/* ---- as either kind of stream ------------------------------------------- */

static int plain_get_schema(struct ArrowArrayStream *self,
                            struct ArrowSchema *out)
{
    (void)self;
    return peer_get_schema(out);
}

static int plain_get_next(struct ArrowArrayStream *self, struct ArrowArray *out)
{
    (void)self;
    return peer_get_next(out, NULL);
}

static const char *plain_get_last_error(struct ArrowArrayStream *self)
{
    (void)self;
    return peer_get_last_error();
}

static void plain_release(struct ArrowArrayStream *self)
{
    self->release = NULL;
    peer_release();
}

static int device_get_schema(struct ArrowDeviceArrayStream *self,
                             struct ArrowSchema *out)
{
    (void)self;
    return peer_get_schema(out);
}

static int device_get_next(struct ArrowDeviceArrayStream *self,
                           struct ArrowDeviceArray *out)
{
    (void)self;
    memset(out, 0, sizeof(*out));
    out->device_id = -1;
    out->device_type = ARROW_DEVICE_CPU;
    return peer_get_next(&out->array, &out->device_type);
}

static const char *device_get_last_error(struct ArrowDeviceArrayStream *self)
{
    (void)self;
    return peer_get_last_error();
}

static void device_release(struct ArrowDeviceArrayStream *self)
{
    self->release = NULL;
    peer_release();
}

static void plain_make(struct ArrowArrayStream *out)
{
    *out = (struct ArrowArrayStream){.get_schema = plain_get_schema,
                                     .get_next = plain_get_next,
                                     .get_last_error = plain_get_last_error,
                                     .release = plain_release};
    atomic_fetch_add(&s.opened, 1);
}

static void device_make(struct ArrowDeviceArrayStream *out)
{
    *out =
        (struct ArrowDeviceArrayStream){.device_type = ARROW_DEVICE_CPU,
                                        .get_schema = device_get_schema,
                                        .get_next = device_get_next,
                                        .get_last_error = device_get_last_error,
                                        .release = device_release};
    atomic_fetch_add(&s.opened, 1);
}

/* ---- hooks -------------------------------------------------------------- */

static int hook_fails(void)
{
    int code = 0;

    peer_enter();
    if (fuzz_below(&s.in, 8) == 7)
        code = peer_fail();
    return peer_leave(code);
}

static int hook_open(void *ctx, struct ArrowArrayStream *out,
                     struct uva_error *error)
{
    const int code = hook_fails();

    (void)ctx;
    (void)error;
    if (code == 0)
        plain_make(out);
    return code;
}

static int hook_open_device(void *ctx, struct ArrowDeviceArrayStream *out,
                            struct uva_error *error)
{
    const int code = hook_fails();

    (void)ctx;
    (void)error;
    if (code == 0)
        device_make(out);
    return code;
}

static void hook_free(void *ctx)
{
    (void)ctx;
    fixture_see();
    FUZZ_RULE(atomic_load(&s.statements) == 0);
    FUZZ_RULE(atomic_load(&s.inside) == 0);
    FUZZ_RULE(atomic_load(&s.released) == atomic_load(&s.opened));
    FUZZ_RULE(atomic_fetch_add(&s.freed, 1) == 0);
}

/* ---- a driver ----------------------------------------------------------- */

static void error_release(struct AdbcError *error)
{
    block_free(error->private_data);
    error->release = NULL;
}

/* Fails with any status, with or without a text and something to release. */
static AdbcStatusCode driver_fail(struct AdbcError *error)
{
    static char *const texts[] = {NULL, "", "it failed", "\xff\xfe%s%n"};
    const int way = fuzz_byte(&s.in);
    AdbcStatusCode status = (AdbcStatusCode)peer_fail();

    if (status == ADBC_STATUS_OK)
        status = ADBC_STATUS_INTERNAL;
    if (error == NULL || way % 8 == 7)
        return status;
    error->message = texts[way / 8 % 4];
    memset(error->sqlstate, way, sizeof(error->sqlstate));
    if (way % 2 != 0) {
        error->private_data = block_new();
        error->release = error_release;
    }
    return status;
}

static AdbcStatusCode driver_execute(struct AdbcStatement *statement,
                                     struct ArrowArrayStream *out,
                                     int64_t *rows, struct AdbcError *error)
{
    const int step = fuzz_below(&s.in, 16);
    AdbcStatusCode status = ADBC_STATUS_OK;

    (void)statement;
    peer_enter();
    FUZZ_RULE(!atomic_load(&s.over) && atomic_load(&s.statements) == 1);
    if (rows != NULL)
        *rows = fuzz_strange(&s.in);
    if (step >= 13) {
        status = driver_fail(error);
    } else if (step == 12 || out == NULL) {
        atomic_store(&s.bare, true);
        atomic_store(&s.unknown, true);
        atomic_store(&s.over, true);
    } else {
        plain_make(out);
        if (step == 11) /* the result lacks a function */
            out->get_next = NULL;
        atomic_store(&s.unsound, step == 11);
    }
    (void)peer_leave(0);
    return status;
}

static AdbcStatusCode driver_cancel(struct AdbcStatement *statement,
                                    struct AdbcError *error)
{
    (void)statement;
    (void)error;
    fixture_see();
    FUZZ_RULE(atomic_load(&s.statements) == 1);
    return ADBC_STATUS_INVALID_STATE;
}

static AdbcStatusCode driver_release(struct AdbcStatement *statement,
                                     struct AdbcError *error)
{
    peer_enter_late();
    FUZZ_RULE(atomic_fetch_sub(&s.statements, 1) == 1);
    statement->private_data = NULL;
    (void)peer_leave(0);
    return fuzz_below(&s.in, 4) == 3 ? driver_fail(error) : ADBC_STATUS_OK;
}

static struct AdbcDriver driver = {.StatementExecuteQuery = driver_execute,
                                   .StatementCancel = driver_cancel,
                                   .StatementRelease = driver_release};

static struct uva_stream *query_stream(const struct uva_window *window)
{
    const struct uva_adbc_source options = {.free_ctx = hook_free,
                                            .window = *window};
    struct AdbcStatement statement = {.private_data = &s,
                                      .private_driver = &driver};

    atomic_store(&s.statements, 1);
    return uva_stream_from_adbc(s.fixture.runtime, &statement, &options);
}

/* ---- the consumer ------------------------------------------------------- */

static int on_schema(void *ctx, const struct uva_stream_info *info)
{
    (void)ctx;
    fixture_see();
    FUZZ_RULE(++s.schemas == 1 && s.dones == 0 && !s.dropped);
    FUZZ_RULE(info->schema->release != NULL);
    FUZZ_RULE(info->schema->n_children == !atomic_load(&s.bare));
    FUZZ_RULE(atomic_load(&s.bare) ||
              info->schema->children[0]->format != NULL);
    return 0;
}

static void check_array(const struct ArrowArray *array)
{
    FUZZ_RULE(array->length == ROWS || array->length == INT64_MAX);
    FUZZ_RULE(array->n_children == 1);
    FUZZ_RULE(array->children[0]->release != NULL);
    FUZZ_RULE(((const int64_t *)array->children[0]->buffers[1])[0] ==
              s.batches);
}

static int on_batch(void *ctx, struct uva_batch *batch)
{
    const struct ArrowArray *array = &batch->data.array;
    const int verdict = s.verdict;

    (void)ctx;
    fixture_see();
    FUZZ_RULE(s.schemas == 1 && s.dones == 0 && !s.dropped && !s.refused);
    if (!atomic_load(&s.unknown))
        check_array(array);
    FUZZ_RULE(batch->ordinal == s.batches);
    s.verdict = 0;
    s.waits = verdict == EAGAIN;
    s.refused = verdict != 0 && verdict != EAGAIN;
    s.batches += verdict != EDOM;
    return verdict;
}

static void on_done(void *ctx, const struct uva_outcome *outcome)
{
    (void)ctx;
    fixture_see();
    FUZZ_RULE(++s.dones == 1 && s.started && !s.dropped);
    FUZZ_RULE((outcome->error.code == 0) == (outcome->end == UVA_END_COMPLETE));
    s.outcome = *outcome;
    fuzz_trace("owner", outcome->error.message, (int)outcome->end);
}

/* ---- the owner ---------------------------------------------------------- */

static void stream_build(struct fuzz_input *in)
{
    const int way = fuzz_byte(in);
    struct ArrowArrayStream plain = {0};
    struct ArrowDeviceArrayStream device = {0};
    struct uva_arrow_source options = {.free_ctx = hook_free};

    s.plain = way & 1;
    s.hook = way & 2;
    s.query = s.plain && s.hook && (way & 32) != 0;
    options.on_loop = way & 4;
    options.window.batches = 1 + way / 8 % 4;
    if (s.hook && s.plain)
        options.open = hook_open;
    else if (s.hook)
        options.open_device = hook_open_device;
    else if (s.plain)
        plain_make(&plain);
    else
        device_make(&device);
    fixture_fail(&s.fixture, way >= 224 ? fuzz_byte(in) : 0);
    if (s.query)
        s.stream = query_stream(&options.window);
    else if (s.plain)
        s.stream = uva_stream_from_arrow_stream(
            s.fixture.runtime, s.hook ? NULL : &plain, &options);
    else
        s.stream = uva_stream_from_device_stream(
            s.fixture.runtime, s.hook ? NULL : &device, &options);
}

static void owner_drop(void *ctx)
{
    (void)ctx;
    if (s.stream == NULL)
        return;
    s.stopped = true;
    s.dropped = s.dones == 0;
    uva_stream_drop(s.stream);
    s.stream = NULL;
}

static void owner_step(int way)
{
    static const int verdicts[] = {0, EAGAIN, ECANCELED, EDOM};

    fuzz_trace("owner", "does", way);
    if (s.fixture.runtime == NULL)
        return;
    if (way < 96) {
        s.verdict = verdicts[way % 4];
    } else if (way < 144) {
        s.paused = way >= 132;
        if (s.paused)
            uva_stream_pause(s.stream);
        else
            uva_stream_resume(s.stream);
    } else if (way < 192) {
        fixture_fail(&s.fixture, way % 16);
    } else if (way < 216 && s.stream != NULL) {
        s.stopped = true;
        uva_stream_cancel(s.stream, way % 3, NULL);
    } else if (way < 232 && s.stream != NULL) {
        fixture_post(&s.fixture, owner_drop, NULL);
    } else if (way >= 248) {
        s.stopped = true;
        fixture_close(&s.fixture);
    }
}

static bool is_open(void)
{
    return s.started && s.dones == 0 && !s.dropped && s.fixture.runtime != NULL;
}

static void check_outcome(void)
{
    FUZZ_RULE(s.dones == (s.started && !s.dropped));
    FUZZ_RULE(atomic_load(&s.freed) == 1);
    FUZZ_RULE(atomic_load(&s.released) == atomic_load(&s.opened));
    FUZZ_RULE(atomic_load(&s.live) == 0);
    if (s.dones == 0)
        return;
    FUZZ_RULE(s.outcome.batches == s.batches);
    if (s.outcome.end == UVA_END_COMPLETE)
        FUZZ_RULE(atomic_load(&s.over) &&
                  (atomic_load(&s.unknown) ||
                   (!atomic_load(&s.unsound) && s.batches == s.ordinal)));
    if (s.outcome.end == UVA_END_REJECTED)
        FUZZ_RULE(s.refused && s.outcome.error.code == EDOM);
}

static void play(struct fuzz_input in)
{
    const struct uva_consumer consumer = {
        .on_schema = on_schema, .on_batch = on_batch, .on_done = on_done};
    uint8_t steps[OWNER_STEPS];

    memset(&s, 0, sizeof(s));
    fixture_open(&s.fixture);
    stream_build(&in);
    for (int i = 0; i < OWNER_STEPS; i++)
        steps[i] = fuzz_byte(&in);
    s.in = in;
    s.started = true; /* on_done may be called before this returns */
    s.started = uva_stream_for_each(s.stream, &consumer, NULL) == 0;
    for (int i = 0; i < OWNER_STEPS; i++) {
        owner_step(steps[i]);
        fixture_pause(&s.fixture);
    }
    fixture_settle(&s.fixture);
    if (is_open() && (s.waits || s.paused) && s.stream != NULL) {
        s.verdict = 0;
        uva_stream_resume(s.stream);
        fixture_settle(&s.fixture);
    }
    s.stopped = s.stopped || is_open();
    uva_stream_release(s.stream);
    fixture_finish(&s.fixture);
    check_outcome();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fixture_play(play, (struct fuzz_input){data, size});
    return 0;
}
