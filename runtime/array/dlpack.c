/* SPDX-License-Identifier: Apache-2.0 */
/* uva_array_to_dlpack() and uva_array_from_dlpack(): columns and tensors share
 * their data, and a stream or an event carries over when it is complete.
 *
 * Happy path:  to: the shape is read -> the consumer's stream is made to wait
 * -> the tensor takes the array. From: a tree of arrays is built on the tensor
 * -> an event is recorded on the stream.
 *
 * Failures: the type or shape, memory, the device; no argument was taken then.
 *
 * The structs are from malloc(), as they may outlive every runtime.
 *
 * Clauses: EV-01, DA-20. */
#include "uvarrow/dlpack.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/bits.h"
#include "arrow/device_traits.h"
#include "arrow/layout.h"
#include "base/atomic.h"
#include "device/driver_gate.h"
#include "loop/loop.h"
#include "stream/runtime_devices.h"
#include "uvarrow/arrow.h"
#include "uvarrow/device.h"

/* ---- types -------------------------------------------------------------- */

static const struct {
    char format[2];
    uint8_t code, bits;
} types[] = {
    {"c", kDLInt, 8},    {"C", kDLUInt, 8},   {"s", kDLInt, 16},
    {"S", kDLUInt, 16},  {"i", kDLInt, 32},   {"I", kDLUInt, 32},
    {"l", kDLInt, 64},   {"L", kDLUInt, 64},  {"e", kDLFloat, 16},
    {"f", kDLFloat, 32}, {"g", kDLFloat, 64},
};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

static int type_of_format(const char *format, DLDataType *out,
                          struct uva_error *error)
{
    for (int i = 0; i < TYPES; i++)
        if (strcmp(types[i].format, format) == 0) {
            *out = (DLDataType){types[i].code, types[i].bits, 1};
            return 0;
        }
    return uva_error_set(error, ENOTSUP,
                         "DLPack: a column of format \"%.40s\" is no tensor",
                         format);
}

static const char *format_of_type(DLDataType type)
{
    for (int i = 0; i < TYPES; i++)
        if (types[i].code == type.code && types[i].bits == type.bits &&
            type.lanes == 1)
            return types[i].format;
    return NULL;
}

/* A buffer is a handle, without arithmetic. */
static bool device_has_handles(int device_type)
{
    return device_type == ARROW_DEVICE_OPENCL ||
           device_type == ARROW_DEVICE_VULKAN ||
           device_type == ARROW_DEVICE_METAL ||
           device_type == ARROW_DEVICE_WEBGPU;
}

/* ---- streams ------------------------------------------------------------ */

/* The numbers that the protocol allows: each default stream has one. */
static int stream_check(int device_type, int64_t stream,
                        struct uva_error *error)
{
    const bool cuda = device_type == ARROW_DEVICE_CUDA;
    const bool rocm = device_type == ARROW_DEVICE_ROCM;

    if (stream < UVA_DLPACK_NO_SYNC || (cuda && stream == 0) ||
        (rocm && (stream == 1 || stream == 2)))
        return uva_error_set(error, EINVAL,
                             "DLPack: %lld is no stream of this device",
                             (long long)stream);
    return 0;
}

static int stream_chain(struct uva__devices *devices,
                        const struct uva_device_event *event, void *stream,
                        struct uva_error *error)
{
    int code;

    if (!uva__driver_gate_enter())
        return uva__driver_gate_refuse(error);
    code = uva__devices_load(devices, event->device_type, error);
    if (code == 0)
        code = uva__backend_chain(
            uva__devices_backend(devices, event->device_type), event, stream,
            error);
    uva__driver_gate_leave();
    return code;
}

/* Has `stream` wait for the event of the array, if it has one. */
static int stream_await(struct uva_runtime *runtime,
                        const struct ArrowDeviceArray *array, int64_t stream,
                        struct uva_error *error)
{
    const struct uva_device_event event = {array->device_type, array->device_id,
                                           array->sync_event};
    struct uva__rt *rt = uva__loop_rt(runtime);
    struct uva__devices *devices;
    int code;

    if (event.device_type == ARROW_DEVICE_CPU || event.sync_event == NULL ||
        stream == UVA_DLPACK_NO_SYNC)
        return 0;
    if (rt == NULL)
        return uva_error_set(error, EINVAL,
                             "DLPack: there is an event, and no runtime");
    code = uva__rt_devices_use(rt, &devices);
    if (code != 0)
        return uva_error_set(error, code, "the runtime cannot be used");
    uva__rt_note_device(rt, NULL, event.device_type);
    code = stream_chain(devices, &event, (void *)(intptr_t)stream, error);
    uva__devices_quit(devices);
    return code;
}

/* ---- columns as tensors ------------------------------------------------- */

/* The library's tensor. */
struct tensor {
    DLManagedTensorVersioned abi; /* first */
    int64_t shape[UVA_DLPACK_DIMS], strides[UVA_DLPACK_DIMS];
    struct ArrowDeviceArray array; /* owns */
};

static void tensor_delete(DLManagedTensorVersioned *self)
{
    struct tensor *tensor = self->manager_ctx;

    uva_array_release(&tensor->array);
    free(tensor);
}

static int too_many(struct uva_error *error)
{
    return uva_error_set(error, EOVERFLOW,
                         "DLPack: the shape has too many elements");
}

static int nulls_refuse(struct uva_error *error, const char *what)
{
    return uva_error_set(error, ENOTSUP,
                         "DLPack: a tensor has no nulls, and the column %s",
                         what);
}

/* The place of the tensor in a nested array. */
struct level {
    const struct ArrowSchema *schema;
    const struct ArrowArray *array;
    int64_t first, count; /* the tensor's items of the array */
};

/* Looks for nulls among the tensor's items. An array may not state how many
 * they have: then the host can look. */
static int nulls_check(const struct ArrowDeviceArray *whole,
                       const struct level *level, struct uva_error *error)
{
    const struct ArrowArray *array = level->array;
    const uint8_t *bits = array->buffers[0];

    if (array->null_count == 0 || bits == NULL)
        return 0;
    if (array->null_count > 0 && level->count == array->length)
        return nulls_refuse(error, "has some");
    if (whole->device_type != ARROW_DEVICE_CPU)
        return nulls_refuse(error, "does not state how many it has");
    for (int64_t i = 0; i < level->count; i++)
        if (!uva__bits_get(bits, array->offset + level->first + i))
            return nulls_refuse(error, "has some");
    return 0;
}

static int level_check(const struct ArrowDeviceArray *whole,
                       const struct level *level, struct uva_error *error)
{
    if (level->schema->dictionary != NULL)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: a column with a dictionary is no tensor");
    return nulls_check(whole, level, error);
}

/* Goes to the items of lists of `size` items each. uva__layout_measure() has
 * found that there are as many. */
static int level_descend(struct level *level, int64_t size,
                         struct uva_error *error)
{
    const int64_t first = level->array->offset + level->first;
    int64_t end;

    if (__builtin_mul_overflow(first + level->count, size, &end))
        return too_many(error);
    level->first = first * size;
    level->count *= size;
    level->schema = level->schema->children[0];
    level->array = level->array->children[0];
    return 0;
}

static bool is_list(const char *format)
{
    return strncmp(format, "+w:", 3) == 0;
}

/* Reads the dimensions of lists, and then the type of the data. */
static int tensor_read_levels(struct tensor *tensor, struct level *level,
                              const struct ArrowDeviceArray *whole,
                              struct uva_error *error)
{
    DLTensor *out = &tensor->abi.dl_tensor;
    int code = level_check(whole, level, error);

    tensor->shape[0] = level->count;
    for (out->ndim = 1; code == 0 && is_list(level->schema->format);
         out->ndim++) {
        if (out->ndim == UVA_DLPACK_DIMS)
            return uva_error_set(error, ENOTSUP,
                                 "DLPack: the column has more than %d "
                                 "dimensions",
                                 UVA_DLPACK_DIMS);
        tensor->shape[out->ndim] = strtoll(level->schema->format + 3, NULL, 10);
        code = level_descend(level, tensor->shape[out->ndim], error);
        if (code == 0)
            code = level_check(whole, level, error);
    }
    return code == 0 ? type_of_format(level->schema->format, &out->dtype, error)
                     : code;
}

static void tensor_point(struct tensor *tensor, const struct level *level,
                         const struct ArrowDeviceArray *whole)
{
    DLTensor *out = &tensor->abi.dl_tensor;
    int64_t stride = 1;

    for (int i = out->ndim; i-- > 0;) {
        tensor->strides[i] = stride;
        if (level->count > 0) /* or it might overflow */
            stride *= tensor->shape[i];
    }
    out->shape = tensor->shape;
    out->strides = tensor->strides;
    out->device.device_type = (DLDeviceType)whole->device_type;
    if (whole->device_id > 0)
        out->device.device_id = (int32_t)whole->device_id;
    if (level->count == 0)
        return; /* DLPack wants NULL then */
    out->data = (void *)(uintptr_t)level->array->buffers[1];
    out->byte_offset =
        (uint64_t)(level->array->offset + level->first) * (out->dtype.bits / 8);
}

static int tensor_read(struct tensor *tensor, const struct ArrowSchema *schema,
                       const struct ArrowDeviceArray *array,
                       struct uva_error *error)
{
    struct level level = {schema, &array->array, 0, array->array.length};
    int64_t bytes;
    int code = uva__layout_measure(schema, array, &bytes, error);

    if (code == 0)
        code = tensor_read_levels(tensor, &level, array, error);
    if (code == 0)
        tensor_point(tensor, &level, array);
    return code;
}

int uva_array_to_dlpack(struct uva_runtime *runtime,
                        const struct ArrowSchema *schema,
                        struct ArrowDeviceArray *array, int64_t stream,
                        DLManagedTensorVersioned **out, struct uva_error *error)
{
    struct uva_error why = {0};
    struct tensor *tensor;
    int code;

    if (schema == NULL || schema->release == NULL || array == NULL ||
        array->array.release == NULL || out == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_array_to_dlpack: no schema, or no live "
                             "array");
    tensor = calloc(1, sizeof(*tensor));
    if (tensor == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a tensor");
    code = stream_check(array->device_type, stream, &why);
    if (code == 0)
        code = tensor_read(tensor, schema, array, &why);
    if (code == 0)
        code = stream_await(runtime, array, stream, &why);
    if (code != 0) {
        free(tensor);
        if (error != NULL)
            *error = why;
        return code;
    }
    tensor->abi.version = (DLPackVersion){1, 0};
    tensor->abi.flags = DLPACK_FLAG_BITMASK_READ_ONLY;
    tensor->abi.manager_ctx = tensor;
    tensor->abi.deleter = tensor_delete;
    uva_array_move(array, &tensor->array);
    *out = &tensor->abi;
    return 0;
}

/* ---- tensors as columns ------------------------------------------------- */

/* One array for each dimension, each of which may be moved away and outlive the
 * other arrays. The last one has the data. */
struct column {
    struct uva__atomic64 refs;        /* of the arrays that are not released */
    DLManagedTensorVersioned *tensor; /* owns; NULL: the caller's still */
    struct ArrowArray arrays[UVA_DLPACK_DIMS]; /* [0] is moved to the caller */
    struct ArrowArray *children[UVA_DLPACK_DIMS];
    const void *buffers[UVA_DLPACK_DIMS][2];
};

static void column_release(struct ArrowArray *array)
{
    struct column *column = array->private_data;

    for (int64_t i = 0; i < array->n_children; i++)
        if (array->children[i]->release != NULL)
            array->children[i]->release(array->children[i]);
    array->release = NULL;
    if (uva__atomic64_sub(&column->refs, 1) != 1)
        return;
    if (column->tensor != NULL && column->tensor->deleter != NULL)
        column->tensor->deleter(column->tensor);
    free(column);
}

static bool is_contiguous(const DLTensor *tensor)
{
    int64_t stride = 1;

    for (int i = tensor->ndim; tensor->strides != NULL && i-- > 0;
         stride *= tensor->shape[i])
        if (tensor->shape[i] > 1 && tensor->strides[i] != stride)
            return false;
    return true;
}

static int shape_check(const DLTensor *tensor, struct uva_error *error)
{
    int64_t count = tensor->dtype.bits / 8;
    bool empty = false;

    if (tensor->ndim < 1 || tensor->ndim > UVA_DLPACK_DIMS)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: a tensor of %d dimensions is no column",
                             (int)tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++) {
        if (tensor->shape[i] < 0)
            return uva_error_set(error, EINVAL,
                                 "DLPack: a dimension is negative");
        if (__builtin_mul_overflow(count, tensor->shape[i], &count))
            return too_many(error);
        empty = empty || tensor->shape[i] == 0;
    }
    if (!empty && tensor->data == NULL)
        return uva_error_set(error, EINVAL, "DLPack: the tensor has no data");
    if (!empty && !is_contiguous(tensor))
        return uva_error_set(error, ENOTSUP,
                             "DLPack: the elements are not one behind the "
                             "other; make the tensor contiguous");
    return 0;
}

static int tensor_check(const DLManagedTensorVersioned *tensor,
                        struct uva_error *error)
{
    const DLTensor *t = &tensor->dl_tensor;

    if (tensor->version.major != 1)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: version %u is unknown here",
                             (unsigned)tensor->version.major);
    if (uva__device_traits((ArrowDeviceType)t->device.device_type)->name ==
        NULL)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: device type %d is unknown",
                             (int)t->device.device_type);
    if (format_of_type(t->dtype) == NULL)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: type %d of %d bits in %d lanes is no "
                             "column",
                             t->dtype.code, t->dtype.bits, t->dtype.lanes);
    if (device_has_handles((int)t->device.device_type) &&
        t->byte_offset % (t->dtype.bits / 8) != 0)
        return uva_error_set(error, ENOTSUP,
                             "DLPack: the offset is within an element");
    return shape_check(t, error);
}

static void column_point(struct column *column, const DLTensor *tensor)
{
    const int last = tensor->ndim - 1;
    const char *data = tensor->data;

    if (device_has_handles((int)tensor->device.device_type))
        column->arrays[last].offset =
            (int64_t)(tensor->byte_offset / (tensor->dtype.bits / 8));
    else if (data != NULL)
        data += tensor->byte_offset;
    column->buffers[last][1] = data;
}

static struct column *column_new(const DLTensor *tensor)
{
    struct column *column = calloc(1, sizeof(*column));
    int64_t length = 1;

    if (column == NULL)
        return NULL;
    uva__atomic64_store(&column->refs, (uint64_t)tensor->ndim);
    for (int i = 0; i < tensor->ndim; i++) {
        const bool has_items = i < tensor->ndim - 1;
        length *= tensor->shape[i];
        column->children[i] = &column->arrays[i + has_items];
        column->arrays[i] = (struct ArrowArray){
            .length = length,
            .n_buffers = has_items ? 1 : 2,
            .n_children = has_items,
            .buffers = column->buffers[i],
            .children = has_items ? &column->children[i] : NULL,
            .release = column_release,
            .private_data = column,
        };
    }
    column_point(column, tensor);
    return column;
}

/* Copies a schema that is built on the stack, and never released. */
static int column_schema(const DLTensor *tensor, struct ArrowSchema *out)
{
    struct ArrowSchema levels[UVA_DLPACK_DIMS], *children[UVA_DLPACK_DIMS];
    char formats[UVA_DLPACK_DIMS][32];

    for (int i = 0; i < tensor->ndim; i++) {
        const bool has_items = i < tensor->ndim - 1;
        if (has_items)
            (void)snprintf(formats[i], sizeof(formats[i]), "+w:%lld",
                           (long long)tensor->shape[i + 1]);
        children[i] = &levels[i + has_items];
        levels[i] = (struct ArrowSchema){
            .format = has_items ? formats[i] : format_of_type(tensor->dtype),
            .name = i == 0 ? "" : "item",
            .flags = ARROW_FLAG_NULLABLE,
            .n_children = has_items,
            .children = has_items ? &children[i] : NULL,
            .release = uva_schema_release, /* only to be live */
        };
    }
    return uva_schema_copy(&levels[0], out);
}

static int column_make(struct uva_runtime *runtime,
                       DLManagedTensorVersioned *tensor, int64_t stream,
                       struct ArrowDeviceArray *out, struct uva_error *error)
{
    const DLDevice *device = &tensor->dl_tensor.device;
    struct column *column = column_new(&tensor->dl_tensor);
    int code = 0;

    if (column == NULL)
        return uva_error_set(error, ENOMEM, "no memory for a column");
    *out = (struct ArrowDeviceArray){.array = column->arrays[0],
                                     .device_type =
                                         (ArrowDeviceType)device->device_type,
                                     .device_id = device->device_id};
    column->arrays[0].release = NULL;
    if (out->device_type == ARROW_DEVICE_CPU)
        out->device_id = -1;
    else if (stream != UVA_DLPACK_NO_SYNC)
        code = uva_array_record(runtime, out, (void *)(intptr_t)stream, error);
    if (code != 0)
        uva_array_release(out);
    else
        column->tensor = tensor;
    return code;
}

int uva_array_from_dlpack(struct uva_runtime *runtime,
                          DLManagedTensorVersioned *tensor, int64_t stream,
                          struct ArrowSchema *schema,
                          struct ArrowDeviceArray *array,
                          struct uva_error *error)
{
    int code;

    if (tensor == NULL || schema == NULL || array == NULL)
        return uva_error_set(error, EINVAL,
                             "uva_array_from_dlpack: no tensor, or no place "
                             "for the column");
    memset(schema, 0, sizeof(*schema));
    memset(array, 0, sizeof(*array));
    code = tensor_check(tensor, error);
    if (code == 0)
        code = stream_check((int)tensor->dl_tensor.device.device_type, stream,
                            error);
    if (code != 0)
        return code;
    code = column_schema(&tensor->dl_tensor, schema);
    if (code != 0)
        return uva_error_set(error, code, "no memory for a schema");
    code = column_make(runtime, tensor, stream, array, error);
    if (code != 0)
        uva_schema_release(schema);
    return code;
}
