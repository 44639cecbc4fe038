/* SPDX-License-Identifier: Apache-2.0 */
/* Columns as tensors of DLPack, and tensors as columns: shapes and types,
 * refused columns, the streams on which data is used or made, and the releases
 * if there is no memory. */
#include "uvarrow/dlpack.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "support/check_suite.h"
#include "support/faulty_libc.h"
#include "support/fixture.h"

static struct fixture f;

static void tear_down(void)
{
    if (f.open)
        fixture_close(&f);
}

/* ---- columns ------------------------------------------------------------ */

enum { LEVELS = UVA_DLPACK_DIMS + 2 };

/* A column of nested lists, of which the last level has the data. */
static struct {
    struct ArrowSchema schemas[LEVELS], *schema_children[LEVELS], index;
    struct ArrowArray arrays[LEVELS], *array_children[LEVELS];
    const void *buffers[LEVELS][2];
    char formats[LEVELS][16];
    int64_t values[64];
    uint8_t bits[8]; /* all valid */
    int released, deleted;
    struct ArrowDeviceArray array; /* the column */
    struct uva_error error;
} c;

static void schema_release(struct ArrowSchema *schema)
{
    schema->release = NULL;
}

static void column_release(struct ArrowArray *array)
{
    c.released++;
    array->release = NULL;
}

/* Makes a column of `levels` levels of lists of `size` items of `format`. */
static void column_open(const char *format, int levels, int64_t length,
                        int64_t size)
{
    memset(&c, 0, sizeof(c));
    memset(c.bits, 0xff, sizeof(c.bits));
    for (int i = 0; i < 64; i++)
        c.values[i] = i;
    for (int i = 0; i <= levels; i++) {
        const bool last = i == levels;
        c.schema_children[i] = &c.schemas[i + !last];
        c.array_children[i] = &c.arrays[i + !last];
        if (last)
            (void)snprintf(c.formats[i], sizeof(c.formats[i]), "%s", format);
        else
            (void)snprintf(c.formats[i], sizeof(c.formats[i]), "+w:%d",
                           (int)size);
        c.schemas[i] = (struct ArrowSchema){.format = c.formats[i],
                                            .name = "",
                                            .n_children = !last,
                                            .children = &c.schema_children[i],
                                            .release = schema_release};
        c.buffers[i][1] = c.values;
        c.arrays[i] = (struct ArrowArray){.length = length,
                                          .n_buffers = last ? 2 : 1,
                                          .n_children = !last,
                                          .buffers = c.buffers[i],
                                          .children = &c.array_children[i],
                                          .release = column_release};
        length *= size;
    }
}

static void column_take(ArrowDeviceType device_type, void *event)
{
    c.array = (struct ArrowDeviceArray){.array = c.arrays[0],
                                        .device_type = device_type,
                                        .device_id = -1,
                                        .sync_event = event};
}

static int to_dlpack(struct uva_runtime *runtime, int64_t stream,
                     DLManagedTensorVersioned **out)
{
    return uva_array_to_dlpack(runtime, &c.schemas[0], &c.array, stream, out,
                               &c.error);
}

/* No argument was taken. */
static void refused(int code, const char *text)
{
    DLManagedTensorVersioned *tensor = NULL;

    ck_assert_int_eq(to_dlpack(NULL, UVA_DLPACK_NO_SYNC, &tensor), code);
    text_contains(c.error.message, text);
    ck_assert_ptr_null(tensor);
    ck_assert_int_eq(c.released, 0);
    ck_assert(c.array.array.release == column_release);
}

START_TEST(a_column_of_each_number_is_a_tensor_and_comes_back)
{
    static const struct {
        const char *format;
        DLDataType type;
    } all[] = {
        {"c", {kDLInt, 8, 1}},    {"C", {kDLUInt, 8, 1}},
        {"s", {kDLInt, 16, 1}},   {"S", {kDLUInt, 16, 1}},
        {"i", {kDLInt, 32, 1}},   {"I", {kDLUInt, 32, 1}},
        {"l", {kDLInt, 64, 1}},   {"L", {kDLUInt, 64, 1}},
        {"e", {kDLFloat, 16, 1}}, {"f", {kDLFloat, 32, 1}},
        {"g", {kDLFloat, 64, 1}},
    };
    DLManagedTensorVersioned *tensor;
    struct ArrowDeviceArray back;
    struct ArrowSchema schema;

    column_open(all[_i].format, 0, 5, 0);
    c.arrays[0].offset = 2;
    column_take(ARROW_DEVICE_CPU, &c); /* the event has no meaning there */
    ck_assert_int_eq(to_dlpack(NULL, 0, &tensor), 0);
    ck_assert_int_eq(tensor->version.major, 1);
    ck_assert(tensor->flags == DLPACK_FLAG_BITMASK_READ_ONLY);
    ck_assert_mem_eq(&tensor->dl_tensor.dtype, &all[_i].type,
                     sizeof(DLDataType));
    ck_assert_int_eq(tensor->dl_tensor.ndim, 1);
    ck_assert_int_eq(tensor->dl_tensor.shape[0], 5);
    ck_assert_int_eq(tensor->dl_tensor.strides[0], 1);
    ck_assert_int_eq(tensor->dl_tensor.device.device_id, 0);
    ck_assert_ptr_eq(tensor->dl_tensor.data, c.values);
    ck_assert_int_eq(tensor->dl_tensor.byte_offset, 2 * all[_i].type.bits / 8);
    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, tensor, 0, &schema, &back, NULL), 0);
    ck_assert_str_eq(schema.format, all[_i].format);
    ck_assert_int_eq(back.device_id, -1);
    ck_assert_int_eq(back.array.length, 5);
    ck_assert_ptr_eq(back.array.buffers[1],
                     (char *)c.values + 2 * all[_i].type.bits / 8);
    uva_schema_release(&schema);
    ck_assert_int_eq(c.released, 0);
    uva_array_release(&back);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

START_TEST(lists_of_a_fixed_size_are_dimensions)
{
    DLManagedTensorVersioned *tensor;
    struct ArrowDeviceArray back;
    struct ArrowSchema schema;
    struct ArrowArray middle;

    column_open("l", 2, 4, 2);
    c.arrays[0].offset = 1;
    c.arrays[0].length = 2;
    c.arrays[1].offset = 1;
    c.arrays[2].offset = 3;
    c.arrays[2].length = 18;
    column_take(ARROW_DEVICE_CPU, NULL);
    ck_assert_int_eq(to_dlpack(NULL, UVA_DLPACK_NO_SYNC, &tensor), 0);
    ck_assert_int_eq(tensor->dl_tensor.ndim, 3);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(tensor->dl_tensor.shape[i], 2);
        ck_assert_int_eq(tensor->dl_tensor.strides[i], 4 >> i);
    }
    ck_assert_int_eq(tensor->dl_tensor.byte_offset, 8 * ((2 + 1) * 2 + 3));
    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, tensor, 0, &schema, &back, NULL), 0);
    ck_assert_str_eq(schema.format, "+w:2");
    ck_assert_str_eq(schema.children[0]->format, "+w:2");
    ck_assert_str_eq(schema.children[0]->name, "item");
    ck_assert_int_eq(schema.children[0]->flags, ARROW_FLAG_NULLABLE);
    ck_assert_str_eq(schema.children[0]->children[0]->format, "l");
    uva_schema_release(&schema);
    middle = *back.array.children[0]; /* moved away */
    back.array.children[0]->release = NULL;
    uva_array_release(&back);
    ck_assert_int_eq(c.released, 0);
    ck_assert_int_eq(middle.length, 4);
    ck_assert_int_eq(middle.children[0]->length, 8);
    ck_assert_int_eq(((const int64_t *)middle.children[0]->buffers[1])[7], 16);
    middle.release(&middle);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

START_TEST(a_column_without_items_has_no_data)
{
    DLManagedTensorVersioned *tensor;
    struct ArrowDeviceArray back;
    struct ArrowSchema schema;

    column_open("i", _i, 0, 3);
    column_take(ARROW_DEVICE_CPU, NULL);
    ck_assert_int_eq(to_dlpack(NULL, 0, &tensor), 0);
    ck_assert_ptr_null(tensor->dl_tensor.data);
    tensor->dl_tensor.strides = NULL;
    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, tensor, 0, &schema, &back, NULL), 0);
    ck_assert_int_eq(back.array.length, 0);
    uva_schema_release(&schema);
    uva_array_release(&back);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

START_TEST(what_is_no_tensor_is_refused)
{
    static const struct {
        const char *format;
        int levels, code;
        const char *text;
    } all[] = {{"b", 0, ENOTSUP, "\"b\""},
               {"tdD", 0, ENOTSUP, "\"tdD\""},
               {"?", 0, ENOTSUP, ""},
               {"i", 8, ENOTSUP, "more than 8 dimensions"}};

    column_open(all[_i].format, all[_i].levels, 1, 1);
    column_take(ARROW_DEVICE_CPU, NULL);
    refused(all[_i].code, all[_i].text);
}
END_TEST

START_TEST(nulls_are_refused)
{
    DLManagedTensorVersioned *tensor;

    column_open("i", _i, 4, 2);
    c.buffers[_i][0] = c.bits;
    c.arrays[_i].null_count = 1;
    column_take(ARROW_DEVICE_CPU, NULL);
    refused(ENOTSUP, "has some");
    c.array.array.null_count = c.arrays[_i].null_count = -1;
    c.bits[0] = 0xf7;
    refused(ENOTSUP, "has some");
    c.array.device_type = ARROW_DEVICE_EXT_DEV;
    refused(ENOTSUP, "does not state");
    c.array.device_type = ARROW_DEVICE_CPU;
    c.bits[0] = 0xff;
    ck_assert_int_eq(to_dlpack(NULL, 0, &tensor), 0);
    tensor->deleter(tensor);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

/* Nulls outside the tensor: before the column's rows, and after them. */
START_TEST(nulls_of_other_rows_do_not_count)
{
    DLManagedTensorVersioned *tensor;

    column_open("i", 1, 4, 2);
    c.buffers[1][0] = c.bits;
    c.arrays[1].null_count = 4;
    c.bits[0] = 0x3c; /* of eight items, rows 1 and 2 have values */
    c.arrays[0].offset = 1;
    c.arrays[0].length = 2;
    column_take(ARROW_DEVICE_CPU, NULL);
    ck_assert_int_eq(to_dlpack(NULL, 0, &tensor), 0);
    ck_assert_int_eq(tensor->dl_tensor.shape[0], 2);
    ck_assert_uint_eq(tensor->dl_tensor.byte_offset, 2 * sizeof(int32_t));
    tensor->deleter(tensor);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

START_TEST(a_column_that_does_not_fit_is_refused)
{
    column_open("c", 1, 4, 2);
    switch (_i) {
    case 0:
        c.arrays[0].n_buffers = 2;
        break;
    case 1:
        c.arrays[1].length = 7;
        break;
    case 2:
        c.schemas[0].dictionary = &c.index;
        c.index = c.schemas[1];
        c.arrays[0].dictionary = &c.arrays[1];
        break;
    case 3:
        c.schemas[1].dictionary = &c.index;
        c.index = c.schemas[1];
        c.index.dictionary = NULL;
        c.arrays[1].dictionary = &c.arrays[2];
        c.arrays[2] = c.arrays[1];
        c.arrays[2].dictionary = NULL;
        break;
    case 4:
        c.schemas[0].format = "+w:2147483647";
        c.arrays[0].length = INT64_C(1) << 33;
        c.arrays[1].length = INT64_MAX;
        break;
    }
    column_take(ARROW_DEVICE_CPU, NULL);
    refused(_i == 3 ? ENOTSUP : _i == 4 ? EOVERFLOW : EINVAL, "");
}
END_TEST

START_TEST(without_an_array_there_is_no_tensor)
{
    DLManagedTensorVersioned *tensor;
    struct ArrowSchema none = {0};

    column_open("i", 0, 4, 2);
    ck_assert_int_eq(to_dlpack(NULL, 0, &tensor), EINVAL);
    column_take(ARROW_DEVICE_CPU, NULL);
    ck_assert_int_eq(to_dlpack(NULL, 0, NULL), EINVAL);
    ck_assert_int_eq(
        uva_array_to_dlpack(NULL, NULL, &c.array, 0, &tensor, NULL), EINVAL);
    ck_assert_int_eq(
        uva_array_to_dlpack(NULL, &none, &c.array, 0, &tensor, NULL), EINVAL);
    ck_assert_int_eq(
        uva_array_to_dlpack(NULL, &c.schemas[0], NULL, 0, &tensor, NULL),
        EINVAL);
    ck_assert_int_eq(c.released, 0);
}
END_TEST

/* ---- tensors ------------------------------------------------------------ */

static int64_t shape[UVA_DLPACK_DIMS + 1], strides[UVA_DLPACK_DIMS + 1];

static void tensor_delete(DLManagedTensorVersioned *self)
{
    (void)self;
    c.deleted++;
}

/* A tensor of 2 x 3 numbers. */
static DLManagedTensorVersioned tensor_of(DLDeviceType device_type)
{
    memset(&c, 0, sizeof(c));
    shape[0] = 2;
    shape[1] = strides[0] = 3;
    strides[1] = 1;
    return (DLManagedTensorVersioned){
        .version = {1, 3},
        .deleter = tensor_delete,
        .dl_tensor = {.data = c.values,
                      .device = {device_type, 1},
                      .ndim = 2,
                      .dtype = {kDLInt, 32, 1},
                      .shape = shape,
                      .strides = strides},
    };
}

static int from_dlpack(DLManagedTensorVersioned *tensor, int64_t stream,
                       struct ArrowDeviceArray *out)
{
    struct ArrowSchema schema;
    const int code = uva_array_from_dlpack(f.loop.runtime, tensor, stream,
                                           &schema, out, &c.error);

    ck_assert_int_eq(schema.release != NULL, code == 0);
    ck_assert_int_eq(out->array.release != NULL, code == 0);
    uva_schema_release(&schema);
    return code;
}

START_TEST(what_is_no_column_is_refused)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLCPU);
    DLTensor *t = &tensor.dl_tensor;
    struct ArrowDeviceArray array;
    int code = ENOTSUP;

    switch (_i) {
    case 0:
        tensor.version.major = 2;
        break;
    case 1:
        t->dtype.code = kDLBool;
        break;
    case 2:
        t->dtype.lanes = 4;
        break;
    case 3:
        t->dtype.bits = 24;
        break;
    case 4:
        t->ndim = 0;
        break;
    case 5:
        t->ndim = UVA_DLPACK_DIMS + 1;
        break;
    case 6:
        strides[0] = 4;
        break;
    case 7:
        t->device.device_type = (DLDeviceType)99;
        break;
    case 8:
        t->device.device_type = kDLOpenCL;
        t->byte_offset = 2;
        break;
    case 9:
        shape[1] = -1;
        code = EINVAL;
        break;
    case 10:
        t->data = NULL;
        code = EINVAL;
        break;
    case 11:
        shape[0] = INT64_MAX / 4;
        code = EOVERFLOW;
        break;
    }
    ck_assert_int_eq(from_dlpack(&tensor, UVA_DLPACK_NO_SYNC, &array), code);
    text_contains(c.error.message, "DLPack: ");
    ck_assert_int_eq(c.deleted, 0);
}
END_TEST

START_TEST(a_handle_keeps_its_offset)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLOpenCL);
    struct ArrowDeviceArray array;

    tensor.dl_tensor.byte_offset = 8;
    ck_assert_int_eq(from_dlpack(&tensor, UVA_DLPACK_NO_SYNC, &array), 0);
    ck_assert(array.device_type == ARROW_DEVICE_OPENCL);
    ck_assert_int_eq(array.device_id, 1);
    ck_assert_ptr_null(array.sync_event);
    ck_assert_int_eq(array.array.children[0]->offset, 2);
    ck_assert_ptr_eq(array.array.children[0]->buffers[1], c.values);
    uva_array_release(&array);
    ck_assert_int_eq(c.deleted, 1);
}
END_TEST

/* Whoever walks the arrays follows the counts, and not the schema. */
START_TEST(the_last_dimension_is_the_values)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLCPU);
    struct ArrowDeviceArray array;
    const struct ArrowArray *values;

    ck_assert_int_eq(from_dlpack(&tensor, UVA_DLPACK_NO_SYNC, &array), 0);
    ck_assert_int_eq(array.array.n_buffers, 1);
    ck_assert_int_eq(array.array.n_children, 1);
    values = array.array.children[0];
    ck_assert_int_eq(values->n_buffers, 2);
    ck_assert_int_eq(values->n_children, 0);
    ck_assert_ptr_null(values->children);
    ck_assert_int_eq(values->length, 6);
    uva_array_release(&array);
}
END_TEST

/* The stride of a dimension of one item has no meaning. */
START_TEST(a_tensor_may_have_no_strides_and_no_deleter)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLCPU);
    struct ArrowDeviceArray array;

    tensor.deleter = NULL;
    shape[0] = 1;
    strides[0] = 77;
    if (_i == 1)
        tensor.dl_tensor.strides = NULL;
    ck_assert_int_eq(from_dlpack(&tensor, 0, &array), 0);
    uva_array_release(&array);
}
END_TEST

START_TEST(without_a_tensor_there_is_no_column)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLCPU);
    struct ArrowDeviceArray array;
    struct ArrowSchema schema;

    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, NULL, 0, &schema, &array, NULL), EINVAL);
    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, &tensor, 0, NULL, &array, NULL), EINVAL);
    ck_assert_int_eq(
        uva_array_from_dlpack(NULL, &tensor, 0, &schema, NULL, NULL), EINVAL);
}
END_TEST

/* ---- streams ------------------------------------------------------------ */

START_TEST(the_consumers_stream_waits_for_the_event)
{
    atomic_long stream = 0;
    const int64_t streams[] = {(int64_t)(intptr_t)&stream, UVA_DLPACK_NO_SYNC};
    DLManagedTensorVersioned *tensor;

    fixture_open_device(&f, SOFT_COPIES, 1);
    column_open("i", 0, 4, 0);
    column_take(ARROW_DEVICE_EXT_DEV, &f.device.events[0]);
    c.array.device_id = 3;
    ck_assert_int_eq(to_dlpack(f.loop.runtime, streams[_i], &tensor), 0);
    ck_assert_int_eq(atomic_load(&stream), _i == 0);
    ck_assert_int_eq(tensor->dl_tensor.device.device_type, kDLExtDev);
    ck_assert_int_eq(tensor->dl_tensor.device.device_id, 3);
    tensor->deleter(tensor);
    ck_assert_int_eq(c.released, 1);
}
END_TEST

START_TEST(a_stream_that_cannot_wait_is_refused)
{
    DLManagedTensorVersioned *tensor;

    fixture_open_device(&f, SOFT_CALLS, 1);
    column_open("i", 0, 4, 0);
    column_take(ARROW_DEVICE_EXT_DEV, &f.device.events[0]);
    ck_assert_int_eq(to_dlpack(f.loop.runtime, 8, &tensor), ENOTSUP);
    text_contains(c.error.message, "cannot be made to wait");
    ck_assert_int_eq(to_dlpack(NULL, 8, &tensor), EINVAL);
    text_contains(c.error.message, "no runtime");
    ck_assert_int_eq(
        uva_array_to_dlpack(NULL, &c.schemas[0], &c.array, 8, &tensor, NULL),
        EINVAL);
    f.device.load_code = ENODEV;
    c.array.device_type = ARROW_DEVICE_METAL;
    ck_assert_int_eq(to_dlpack(f.loop.runtime, 8, &tensor), ENOTSUP);
    ck_assert_int_eq(c.released, 0);
}
END_TEST

static int failing_load(void *ctx, const char *path, void **state,
                        struct uva_error *error)
{
    (void)path, (void)error;
    *state = ctx;
    return 0;
}

static int failing_query(void *state, const struct uva_device_event *event,
                         struct uva_error *error)
{
    (void)state, (void)event, (void)error;
    return 0;
}

static int failing_stream_wait(void *state,
                               const struct uva_device_event *event,
                               void *device_stream, struct uva_error *error)
{
    (void)state, (void)event, (void)device_stream, (void)error;
    return ENXIO;
}

START_TEST(the_failure_of_a_stream_is_returned)
{
    static const struct uva_device_ops ops = {.version = UVA_DEVICE_OPS_VERSION,
                                              .name = "failing",
                                              .load = failing_load,
                                              .query = failing_query,
                                              .stream_wait =
                                                  failing_stream_wait};
    DLManagedTensorVersioned *tensor;

    fixture_open(&f, 1);
    ck_assert_int_eq(uva_device_register(f.loop.runtime, ARROW_DEVICE_EXT_DEV,
                                         &ops, NULL, NULL),
                     0);
    column_open("i", 0, 4, 0);
    column_take(ARROW_DEVICE_EXT_DEV, &c);
    ck_assert_int_eq(to_dlpack(f.loop.runtime, 8, &tensor), ENXIO);
    text_contains(c.error.message, "cannot make the stream wait");
    ck_assert_int_eq(c.released, 0);
}
END_TEST

START_TEST(a_default_stream_has_one_number)
{
    static const struct {
        DLDeviceType device_type;
        int64_t stream;
    } all[] = {{kDLCUDA, 0}, {kDLROCM, 1}, {kDLROCM, 2}, {kDLExtDev, -2}};
    DLManagedTensorVersioned *out, tensor = tensor_of(all[_i].device_type);
    struct ArrowDeviceArray array;

    ck_assert_int_eq(from_dlpack(&tensor, all[_i].stream, &array), EINVAL);
    column_open("i", 0, 4, 0);
    column_take((ArrowDeviceType)all[_i].device_type, NULL);
    ck_assert_int_eq(to_dlpack(NULL, all[_i].stream, &out), EINVAL);
    text_contains(c.error.message, "no stream of this device");
}
END_TEST

START_TEST(the_producers_stream_gets_an_event)
{
    DLManagedTensorVersioned tensor = tensor_of(kDLExtDev);
    struct ArrowDeviceArray array;
    atomic_long stream = 0;

    fixture_open_device(&f, SOFT_COPIES, 1);
    f.device.record_code = _i == 0 ? 0 : ENXIO;
    ck_assert_int_eq(from_dlpack(&tensor, (int64_t)(intptr_t)&stream, &array),
                     f.device.record_code);
    ck_assert_int_eq(c.deleted, 0);
    if (_i != 0)
        return;
    ck_assert_ptr_nonnull(array.sync_event);
    uva_array_release(&array);
    ck_assert_int_eq(c.deleted, 1);
}
END_TEST

/* ---- no memory ---------------------------------------------------------- */

START_TEST(without_memory_nothing_is_taken)
{
    DLManagedTensorVersioned *out;
    atomic_long stream = 0;
    bool again = true;
    long k;
    int code;

    for (k = 1; again; k++) {
        fixture_open_device(&f, SOFT_COPIES, 1);
        column_open("i", 2, 2, 2);
        column_take(ARROW_DEVICE_EXT_DEV, &f.device.events[0]);
        faulty_libc_fail(k);
        code = to_dlpack(f.loop.runtime, (int64_t)(intptr_t)&stream, &out);
        again = faulty_libc_stop();
        ck_assert_int_eq(code, again ? ENOMEM : 0);
        ck_assert_int_eq(c.array.array.release == NULL, code == 0);
        if (code == 0)
            out->deleter(out);
        ck_assert_int_eq(c.released, code == 0);
        fixture_close(&f);
    }
    ck_assert_int_ge(k, 3);
}
END_TEST

START_TEST(without_memory_for_devices_nothing_is_taken)
{
    DLManagedTensorVersioned *out;
    int code;

    fixture_open(&f, 1); /* without a device, so far */
    column_open("i", 0, 4, 0);
    column_take(ARROW_DEVICE_EXT_DEV, &c);
    faulty_libc_fail(2);
    code = to_dlpack(f.loop.runtime, 8, &out);
    ck_assert(faulty_libc_stop());
    ck_assert_int_eq(code, ENOMEM);
    text_contains(c.error.message, "cannot be used");
    ck_assert_int_eq(c.released, 0);
}
END_TEST

START_TEST(without_memory_a_tensor_is_not_taken)
{
    DLManagedTensorVersioned tensor;
    struct ArrowDeviceArray array;
    atomic_long stream = 0;
    bool again = true;
    long k;
    int code;

    for (k = 1; again; k++) {
        fixture_open_device(&f, SOFT_COPIES, 1);
        tensor = tensor_of(kDLExtDev);
        faulty_libc_fail(k);
        code = from_dlpack(&tensor, (int64_t)(intptr_t)&stream, &array);
        again = faulty_libc_stop();
        ck_assert_int_eq(code, again ? ENOMEM : 0);
        ck_assert_int_eq(c.deleted, 0);
        uva_array_release(&array);
        ck_assert_int_eq(c.deleted, code == 0);
        fixture_close(&f);
    }
    ck_assert_int_ge(k, 4);
}
END_TEST

int main(void)
{
    TCase *tc = tcase_create("tensors");

    tcase_set_timeout(tc, 60);
    suite_add(tc, lists_of_a_fixed_size_are_dimensions,
              without_an_array_there_is_no_tensor, a_handle_keeps_its_offset,
              without_a_tensor_there_is_no_column,
              a_stream_that_cannot_wait_is_refused,
              the_failure_of_a_stream_is_returned,
              without_memory_nothing_is_taken, nulls_of_other_rows_do_not_count,
              without_memory_for_devices_nothing_is_taken,
              without_memory_a_tensor_is_not_taken, NULL);
    tcase_add_loop_test(tc, a_column_of_each_number_is_a_tensor_and_comes_back,
                        0, 11);
    tcase_add_test(tc, the_last_dimension_is_the_values);
    suite_add_loops(tc, 0, 2, a_column_without_items_has_no_data,
                    nulls_are_refused,
                    a_tensor_may_have_no_strides_and_no_deleter,
                    the_consumers_stream_waits_for_the_event,
                    the_producers_stream_gets_an_event, NULL);
    suite_add_loops(tc, 0, 4, what_is_no_tensor_is_refused,
                    a_default_stream_has_one_number, NULL);
    tcase_add_loop_test(tc, a_column_that_does_not_fit_is_refused, 0, 5);
    tcase_add_loop_test(tc, what_is_no_column_is_refused, 0, 12);
    return suite_main("dlpack", NULL, tear_down, tc, NULL);
}
