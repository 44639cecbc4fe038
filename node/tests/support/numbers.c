/* SPDX-License-Identifier: Apache-2.0 */
/* An addon that has nothing to do with uvarrow: it gives the address of an
 * ArrowArrayStream of numbers, which may be slow, stuck, or fail. */
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NAPI_VERSION 8
#include <node_api.h>

#include "uvarrow/arrow_abi.h"

static atomic_long live_streams, live_batches;

struct numbers {
    int64_t left, rows, next;
    int64_t ms;   /* that each batch takes; -1: it never comes */
    int64_t fail; /* after so many batches; -1: never */
};

struct batch { /* an array of one column, in one allocation */
    struct ArrowArray column;
    struct ArrowArray *columns[1];
    const void *buffers[2], *none[1];
    int64_t values[];
};

static void column_release(struct ArrowArray *array)
{
    array->release = NULL;
}

static void batch_release(struct ArrowArray *array)
{
    atomic_fetch_sub(&live_batches, 1);
    free(array->private_data);
    array->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    free(schema->private_data);
    schema->release = NULL;
}

static void child_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static int numbers_schema(struct ArrowArrayStream *stream,
                          struct ArrowSchema *out)
{
    struct {
        struct ArrowSchema child, *children[1];
    } *memory = calloc(1, sizeof(*memory));

    (void)stream;
    memory->child = (struct ArrowSchema){.format = "l",
                                         .name = "n",
                                         .flags = ARROW_FLAG_NULLABLE,
                                         .release = child_release};
    memory->children[0] = &memory->child;
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = memory->children,
                                .release = schema_release,
                                .private_data = memory};
    return 0;
}

static void numbers_pause(const struct numbers *n)
{
    const int64_t ms = n->ms < 0 ? 100000000 : n->ms;
    struct timespec left = {.tv_sec = (time_t)(ms / 1000),
                            .tv_nsec = (long)(ms % 1000 * 1000000)};

    while (ms > 0 && nanosleep(&left, &left) != 0)
        continue;
}

static int numbers_next(struct ArrowArrayStream *stream, struct ArrowArray *out)
{
    struct numbers *n = stream->private_data;
    struct batch *batch;

    memset(out, 0, sizeof(*out));
    if (n->left == 0)
        return 0;
    numbers_pause(n);
    if (n->fail == 0)
        return EIO;
    n->fail -= n->fail > 0;
    n->left--;
    batch = calloc(1, sizeof(*batch) + (size_t)n->rows * sizeof(int64_t));
    for (int64_t i = 0; i < n->rows; i++)
        batch->values[i] = n->next++;
    batch->buffers[1] = batch->values;
    batch->column = (struct ArrowArray){.length = n->rows,
                                        .n_buffers = 2,
                                        .buffers = batch->buffers,
                                        .release = column_release};
    batch->columns[0] = &batch->column;
    *out = (struct ArrowArray){.length = n->rows,
                               .n_buffers = 1,
                               .n_children = 1,
                               .buffers = batch->none,
                               .children = batch->columns,
                               .release = batch_release,
                               .private_data = batch};
    atomic_fetch_add(&live_batches, 1);
    return 0;
}

static const char *numbers_error(struct ArrowArrayStream *stream)
{
    (void)stream;
    return "the numbers have run out";
}

static void numbers_release(struct ArrowArrayStream *stream)
{
    atomic_fetch_sub(&live_streams, 1);
    free(stream->private_data);
    stream->release = NULL;
}

/* open(batches, rows, ms, fail) -> the address; its memory is 40 bytes, which
 * are kept, as the reader frees the content alone */
static napi_value numbers_open(napi_env env, napi_callback_info info)
{
    struct ArrowArrayStream *stream = malloc(sizeof(*stream));
    struct numbers *n = calloc(1, sizeof(*n));
    int64_t *const places[] = {&n->left, &n->rows, &n->ms, &n->fail};
    napi_value args[4], out = NULL;
    size_t count = 4;

    (void)napi_get_cb_info(env, info, &count, args, NULL, NULL);
    for (int i = 0; i < 4; i++)
        (void)napi_get_value_int64(env, args[i], places[i]);
    *stream = (struct ArrowArrayStream){.get_schema = numbers_schema,
                                        .get_next = numbers_next,
                                        .get_last_error = numbers_error,
                                        .release = numbers_release,
                                        .private_data = n};
    atomic_fetch_add(&live_streams, 1);
    (void)napi_create_bigint_uint64(env, (uint64_t)(uintptr_t)stream, &out);
    return out;
}

/* release(address): unless it was taken */
static napi_value numbers_free(napi_env env, napi_callback_info info)
{
    struct ArrowArrayStream *stream;
    napi_value arg = NULL;
    uint64_t address = 0;
    bool is_exact = false;
    size_t count = 1;

    (void)napi_get_cb_info(env, info, &count, &arg, NULL, NULL);
    (void)napi_get_value_bigint_uint64(env, arg, &address, &is_exact);
    stream = (struct ArrowArrayStream *)(uintptr_t)address;
    if (stream->release != NULL)
        stream->release(stream);
    free(stream);
    return arg;
}

/* live() -> [streams, batches] that are not released */
static napi_value numbers_live(napi_env env, napi_callback_info info)
{
    napi_value out = NULL, item = NULL;

    (void)info;
    (void)napi_create_array(env, &out);
    (void)napi_create_int64(env, atomic_load(&live_streams), &item);
    (void)napi_set_element(env, out, 0, item);
    (void)napi_create_int64(env, atomic_load(&live_batches), &item);
    (void)napi_set_element(env, out, 1, item);
    return out;
}

#define EXPORTED __attribute__((visibility("default")))

/* The names that each host looks for. The macro of Node-API for them declares
 * one without a prototype. */
EXPORTED int32_t node_api_module_get_api_version_v1(void);
EXPORTED napi_value napi_register_module_v1(napi_env env, napi_value exports);

int32_t node_api_module_get_api_version_v1(void)
{
    return NAPI_VERSION;
}

napi_value napi_register_module_v1(napi_env env, napi_value exports)
{
    static const struct {
        const char *name;
        napi_callback function;
    } all[] = {{"open", numbers_open},
               {"release", numbers_free},
               {"live", numbers_live}};

    for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
        napi_value function = NULL;

        (void)napi_create_function(env, all[i].name, NAPI_AUTO_LENGTH,
                                   all[i].function, NULL, &function);
        (void)napi_set_named_property(env, exports, all[i].name, function);
    }
    return exports;
}
