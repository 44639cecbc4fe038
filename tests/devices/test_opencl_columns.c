/* SPDX-License-Identifier: Apache-2.0 */
/* Columns of many types in buffers of a real OpenCL device, with one filled by
 * a kernel, must be equal after a transfer to the host. Also tests columns that
 * cannot be copied. Skipped without a platform. */
#include <check.h>
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "devices/opencl_device.h"
#include "support/check_suite.h"
#include "support/fixture.h"
#include "support/plain_tree.h"

enum { ROWS = 6, BATCHES = 8, SLOTS = 48, DEVICE_ID = 3 };

/* ---- columns ------------------------------------------------------------ */

/* The host array with the content that a buffer holds. */
struct slot {
    const struct ArrowArray *array; /* borrows */
    int index;
    size_t size;
};

/* A batch: on the host, with literal values; or on the device. */
struct columns {
    struct opencl_device *cl; /* borrows; NULL: on the host */
    struct ArrowDeviceArray array;
    struct slot slots[SLOTS];
    cl_mem memory[SLOTS]; /* owns */
    int used;             /* number of these in use */
};

static void slot_fill(struct columns *c, struct ArrowArray *array, int index,
                      const void *data, size_t size)
{
    cl_int code = CL_SUCCESS;

    ck_assert_int_lt(c->used, SLOTS);
    c->slots[c->used] = (struct slot){array, index, size};
    array->buffers[index] = data;
    if (c->cl != NULL) {
        c->memory[c->used] = clCreateBuffer(
            c->cl->context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR, size,
            (void *)(uintptr_t)data, &code);
        array->buffers[index] = c->memory[c->used];
    }
    ck_assert_int_eq(code, CL_SUCCESS);
    c->used++;
}

#define FILL(c, array, index, data)                                            \
    slot_fill(c, array, index, data, sizeof(data))

/* A kernel computes the values, which must be `values`. */
static void column_numbers(struct columns *c, struct ArrowArray *out,
                           const int64_t *values)
{
    plain_array(out, ROWS, 2, 0);
    slot_fill(c, out, 1, values, ROWS * sizeof(int64_t));
}

/* Starts at an offset; two values are null. */
static void column_nulls(struct columns *c, struct ArrowArray *out)
{
    static const uint8_t valid[] = {0xD7, 0x01};
    static const int32_t values[] = {0, 0, 0, 1, -2, 3, -4, 5, INT32_MIN};

    plain_array(out, ROWS, 2, 0);
    out->offset = 3;
    out->null_count = 2;
    FILL(c, out, 0, valid);
    FILL(c, out, 1, values);
}

static void column_text(struct columns *c, struct ArrowArray *out)
{
    static const int32_t offsets[] = {0, 3, 3, 8, 9, 9, 20};
    static const char text[20] = "one"
                                 "fiver"
                                 "x"
                                 "and so on..";

    plain_array(out, ROWS, 3, 0);
    FILL(c, out, 1, offsets);
    FILL(c, out, 2, text);
}

static void column_large_bytes(struct columns *c, struct ArrowArray *out)
{
    static const int64_t offsets[] = {0, 0, 1, 2, 4, 4, 4};
    static const uint8_t bytes[] = {0, 0xFF, 1, 2};

    plain_array(out, ROWS, 3, 0);
    FILL(c, out, 1, offsets);
    FILL(c, out, 2, bytes);
}

/* Two levels of lists; the lengths of the inner one depend on the outer one. */
static void column_lists(struct columns *c, struct ArrowArray *out)
{
    static const int32_t outer[] = {0, 1, 1, 3, 3, 4, 4};
    static const int32_t inner[] = {0, 2, 2, 5, 6};
    static const int16_t values[] = {1, 2, 3, 4, 5, -6};
    struct ArrowArray *list;

    plain_array(out, ROWS, 2, 1);
    FILL(c, out, 1, outer);
    list = out->children[0];
    plain_array(list, 4, 2, 1);
    FILL(c, list, 1, inner);
    plain_array(list->children[0], 6, 2, 0);
    FILL(c, list->children[0], 1, values);
}

static void column_dictionary(struct columns *c, struct ArrowArray *out)
{
    static const int8_t keys[] = {0, 1, 0, 2, 1, 0};
    static const int32_t offsets[] = {0, 3, 8, 8};
    static const char text[8] = {'r', 'e', 'd', 'g', 'r', 'e', 'e', 'n'};
    struct ArrowArray *words;

    plain_array(out, ROWS, 2, 0);
    FILL(c, out, 1, keys);
    words = plain_array_dictionary(out);
    plain_array(words, 3, 3, 0);
    FILL(c, words, 1, offsets);
    FILL(c, words, 2, text);
}

/* One value is too long for its view, so it is in a buffer. */
static void column_views(struct columns *c, struct ArrowArray *out)
{
    static const struct {
        int32_t size;
        char text[12];
    } views[ROWS] = {{3, "abc"}, {0, ""}, {13, "thir\0\0\0\0\2\0\0"},
                     {1, "z"},   {0, ""}, {12, "twelve chars"}};
    static const char text[15] = "..thirteen, yes";
    static const int64_t lengths[] = {sizeof(text)};

    plain_array(out, ROWS, 4, 0);
    FILL(c, out, 1, views);
    FILL(c, out, 2, text);
    FILL(c, out, 3, lengths);
}

static void column_pairs(struct columns *c, struct ArrowArray *out)
{
    static const float values[2 * ROWS] = {0, 1, 2, 3, 4,  5,
                                           6, 7, 8, 9, 10, 11};
    static const uint8_t bits[] = {0x2A, 0x0F};

    plain_array(out, ROWS, 1, 1);
    plain_array(out->children[0], 2 * ROWS, 2, 0);
    out->children[0]->null_count = -1;
    FILL(c, out->children[0], 0, bits);
    FILL(c, out->children[0], 1, values);
}

static void column_flags(struct columns *c, struct ArrowArray *out)
{
    static const uint8_t bits[] = {0x2D};

    plain_array(out, ROWS, 2, 0);
    FILL(c, out, 1, bits);
}

enum { COLUMNS = 9 };

static void columns_make(struct columns *c, struct opencl_device *cl,
                         const int64_t *values)
{
    struct ArrowArray *root = &c->array.array;

    memset(c, 0, sizeof(*c));
    c->cl = cl;
    plain_array(root, ROWS, 1, COLUMNS);
    column_numbers(c, root->children[0], values);
    column_nulls(c, root->children[1]);
    column_text(c, root->children[2]);
    column_large_bytes(c, root->children[3]);
    column_lists(c, root->children[4]);
    column_dictionary(c, root->children[5]);
    column_views(c, root->children[6]);
    column_pairs(c, root->children[7]);
    column_flags(c, root->children[8]);
    c->array.device_type = cl != NULL ? ARROW_DEVICE_OPENCL : ARROW_DEVICE_CPU;
    c->array.device_id = cl != NULL ? DEVICE_ID : -1;
}

static void columns_free(struct columns *c)
{
    uva_array_release(&c->array);
    for (int i = 0; i < c->used && c->cl != NULL; i++)
        clReleaseMemObject(c->memory[i]);
}

static void columns_schema(struct ArrowSchema *out)
{
    static const char *const formats[COLUMNS] = {"l", "i",  "u",    "Z", "+l",
                                                 "c", "vu", "+w:2", "b"};

    plain_schema(out, "+s", "", COLUMNS);
    for (int i = 0; i < COLUMNS; i++)
        plain_schema(out->children[i], formats[i], formats[i],
                     formats[i][0] == '+');
    plain_schema(out->children[4]->children[0], "+l", "item", 1);
    plain_schema(out->children[4]->children[0]->children[0], "s", "item", 0);
    plain_schema(plain_schema_dictionary(out->children[5]), "u", "", 0);
    plain_schema(out->children[7]->children[0], "f", "item", 0);
}

/* ---- comparing ---------------------------------------------------------- */

static size_t slot_size(const struct columns *c, const struct ArrowArray *array,
                        int index)
{
    for (int i = 0; i < c->used; i++)
        if (c->slots[i].array == array && c->slots[i].index == index)
            return c->slots[i].size;
    return 0;
}

static void expect_same(const struct columns *wanted,
                        const struct ArrowArray *left,
                        const struct ArrowArray *right)
{
    ck_assert_int_eq(left->length, right->length);
    ck_assert_int_eq(left->offset, right->offset);
    ck_assert_int_eq(left->null_count, right->null_count);
    ck_assert_int_eq(left->n_buffers, right->n_buffers);
    ck_assert_int_eq(left->n_children, right->n_children);
    for (int i = 0; i < left->n_buffers; i++) {
        ck_assert((left->buffers[i] == NULL) == (right->buffers[i] == NULL));
        if (left->buffers[i] != NULL)
            ck_assert_mem_eq(left->buffers[i], right->buffers[i],
                             slot_size(wanted, left, i));
    }
    for (int i = 0; i < left->n_children; i++)
        expect_same(wanted, left->children[i], right->children[i]);
    ck_assert((left->dictionary == NULL) == (right->dictionary == NULL));
    if (left->dictionary != NULL)
        expect_same(wanted, left->dictionary, right->dictionary);
}

/* ---- the fixture -------------------------------------------------------- */

static struct fixture f;

static struct {
    struct opencl_device device;
    struct columns given[BATCHES];
    int64_t values[BATCHES][ROWS]; /* values of the column of numbers */
    struct ArrowDeviceArray arrays[BATCHES];
    struct ArrowDeviceArray kept; /* if `keeps`: the last one delivered */
    bool keeps;
} cl;

static void on_batch(struct recording_consumer *c, struct uva_batch *batch)
{
    struct columns wanted;

    if (cl.keeps) {
        uva_array_release(&cl.kept);
        uva_array_move(&batch->data, &cl.kept);
        return;
    }
    ck_assert_int_eq(batch->data.device_type, ARROW_DEVICE_CPU);
    ck_assert_ptr_null(batch->data.sync_event);
    columns_make(&wanted, NULL, cl.values[c->taken]);
    expect_same(&wanted, &wanted.array.array, &batch->data.array);
    columns_free(&wanted);
}

static void set_up(void)
{
    memset(&cl, 0, sizeof(cl));
    opencl_device_open(&cl.device);
    fixture_open(&f, 0);
    f.got.on_batch = on_batch;
    for (int k = 0; k < BATCHES; k++)
        for (int i = 0; i < ROWS; i++)
            cl.values[k][i] = 1000 * k + i * i;
}

static void tear_down(void)
{
    if (!f.open)
        return;
    fixture_close(&f);
    for (int k = 0; k < BATCHES; k++)
        columns_free(&cl.given[k]);
    ck_assert_int_eq(plain_live(), 0);
    opencl_device_close(&cl.device);
}

/* Makes a stream of the given columns, moves them into it, and consumes it. */
static void make_stream(int count)
{
    struct ArrowSchema schema;

    columns_schema(&schema);
    for (int k = 0; k < count; k++)
        uva_array_move(&cl.given[k].array, &cl.arrays[k]);
    f.stream = uva_stream_from_arrays(f.loop.runtime, &schema, cl.arrays,
                                      (size_t)count);
}

static void attach(const struct uva_opencl_device *handles)
{
    struct uva_error error;

    ck_assert_int_eq(uva_device_attach(f.loop.runtime, ARROW_DEVICE_OPENCL,
                                       DEVICE_ID, handles, &error),
                     0);
}

/* ---- a kernel ----------------------------------------------------------- */

static const char SOURCE[] = "kernel void fill(global long *out, long base)\n"
                             "{\n"
                             "    const long i = (long)get_global_id(0);\n"
                             "\n"
                             "    out[i] = base + i * i;\n"
                             "}\n";

static cl_kernel kernel_make(struct opencl_device *on, cl_program *program)
{
    const char *source = SOURCE;
    cl_kernel kernel;
    cl_int code;

    *program = clCreateProgramWithSource(on->context, 1, &source, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    code = clBuildProgram(*program, 1, &on->device, "", NULL, NULL);
    ck_assert_int_eq(code, CL_SUCCESS);
    kernel = clCreateKernel(*program, "fill", &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    return kernel;
}

/* Queues the kernel that fills the numbers of a batch, and its event. */
static void kernel_fill(cl_kernel kernel, int k)
{
    const size_t rows = ROWS;
    const cl_long base = 1000 * k;
    struct uva_error error;

    ck_assert_int_eq(
        clSetKernelArg(kernel, 0, sizeof(cl_mem), &cl.given[k].memory[0]), 0);
    ck_assert_int_eq(clSetKernelArg(kernel, 1, sizeof(base), &base), 0);
    ck_assert_int_eq(clEnqueueNDRangeKernel(cl.device.queue, kernel, 1, NULL,
                                            &rows, NULL, 0, NULL, NULL),
                     0);
    ck_assert_int_eq(uva_array_record(f.loop.runtime, &cl.given[k].array,
                                      cl.device.queue, &error),
                     0);
}

START_TEST(columns_that_a_kernel_fills_arrive_on_the_host)
{
    static const int64_t nothing[ROWS] = {0};
    cl_program program;
    cl_kernel kernel;
    cl_event gate;

    set_up();
    kernel = kernel_make(&cl.device, &program);
    gate = opencl_device_gate(&cl.device);
    ck_assert_int_eq(
        clEnqueueBarrierWithWaitList(cl.device.queue, 1, &gate, NULL), 0);
    for (int k = 0; k < BATCHES; k++) {
        columns_make(&cl.given[k], &cl.device, nothing);
        kernel_fill(kernel, k);
    }
    make_stream(BATCHES);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_start(&f);
    loop_settle(&f.loop);
    ck_assert_int_eq(f.got.batches, 0);
    clSetUserEventStatus(gate, CL_COMPLETE);
    fixture_await(&f);
    ck_assert_msg(f.got.outcome.end == UVA_END_COMPLETE, "%s",
                  f.got.outcome.error.message);
    ck_assert_int_eq(f.got.batches, BATCHES);
    clReleaseEvent(gate);
    clReleaseKernel(kernel);
    clReleaseProgram(program);
}
END_TEST

/* ---- round trips -------------------------------------------------------- */

START_TEST(columns_go_to_the_device_and_come_back)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = DEVICE_ID};

    if (!opencl_device_may(_i % 2 == 1))
        return;
    set_up();
    attach(&(struct uva_opencl_device){.context = cl.device.context,
                                       .queue =
                                           _i / 2 == 1 ? cl.device.queue : NULL,
                                       .svm = _i % 2 == 1});
    for (int k = 0; k < BATCHES; k++)
        columns_make(&cl.given[k], NULL, cl.values[k]);
    make_stream(BATCHES);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_run(&f);
    ck_assert_msg(f.got.outcome.end == UVA_END_COMPLETE, "%s",
                  f.got.outcome.error.message);
    ck_assert_int_eq(f.got.batches, BATCHES);
}
END_TEST

START_TEST(what_was_copied_to_a_device_outlives_its_detaching)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = DEVICE_ID};

    if (!opencl_device_may(_i == 1))
        return;
    set_up();
    attach(&(struct uva_opencl_device){.context = cl.device.context,
                                       .svm = _i == 1});
    columns_make(&cl.given[0], NULL, cl.values[0]);
    make_stream(1);
    cl.keeps = true;
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    fixture_run(&f);
    ck_assert_int_eq(f.got.batches, 1);
    ck_assert_int_eq(cl.kept.device_type, ARROW_DEVICE_OPENCL);
    ck_assert_int_eq(
        uva_device_detach(f.loop.runtime, ARROW_DEVICE_OPENCL, DEVICE_ID), 0);
    uva_array_release(&cl.kept);
}
END_TEST

/* The queue of a context is made for one device; PoCL has two here. */
START_TEST(a_context_may_have_several_devices)
{
    struct opencl_device *one;
    cl_platform_id platform;
    cl_device_id devices[8];
    cl_uint count = 0;
    cl_int code;

    set_up();
    one = &cl.device;
    clGetDeviceInfo(one->device, CL_DEVICE_PLATFORM, sizeof(platform),
                    &platform, NULL);
    clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 8, devices, &count);
    opencl_device_close(one);
    one->context = clCreateContext(NULL, count, devices, NULL, NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    one->queue = clCreateCommandQueueWithProperties(one->context, devices[0],
                                                    NULL, &code);
    ck_assert_int_eq(code, CL_SUCCESS);
    for (int k = 0; k < BATCHES; k++)
        columns_make(&cl.given[k], one, cl.values[k]);
    make_stream(BATCHES);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_run(&f);
    ck_assert_msg(f.got.outcome.end == UVA_END_COMPLETE, "%s",
                  f.got.outcome.error.message);
    ck_assert_int_eq(f.got.batches, BATCHES);
}
END_TEST

/* Drivers release the objects of a command some time after its end. */
static void context_await_last(cl_context context)
{
    cl_uint count = 0;

    while (count != 1) {
        ck_assert_int_eq(clGetContextInfo(context, CL_CONTEXT_REFERENCE_COUNT,
                                          sizeof(count), &count, NULL),
                         0);
        sched_yield();
    }
}

START_TEST(contexts_that_were_copied_from_are_let_go)
{
    struct opencl_device others[BATCHES];

    set_up();
    for (int k = 0; k < BATCHES; k++) {
        opencl_device_open(&others[k]);
        columns_make(&cl.given[k], &others[k], cl.values[k]);
    }
    make_stream(BATCHES);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_run(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_COMPLETE);
    ck_assert_int_eq(f.got.batches, BATCHES);
    for (int k = 0; k < BATCHES; k++) {
        columns_free(&cl.given[k]);
        cl.given[k] = (struct columns){0};
        clReleaseCommandQueue(others[k].queue);
        context_await_last(others[k].context);
        clReleaseContext(others[k].context);
    }
}
END_TEST

/* ---- failures ----------------------------------------------------------- */

static void expect_failure(int code)
{
    fixture_await(&f);
    ck_assert_int_eq(f.got.outcome.end, UVA_END_FAILED);
    ck_assert_msg(f.got.outcome.error.code == code, "%d: %s",
                  f.got.outcome.error.code, f.got.outcome.error.message);
    ck_assert_int_eq(f.got.batches, 0);
    loop_close_runtime(&f.loop, 0);
}

START_TEST(shared_virtual_memory_needs_a_context)
{

    set_up();
    attach(&(struct uva_opencl_device){.svm = true});
    columns_make(&cl.given[0], NULL, cl.values[0]);
    cl.given[0].array.device_type = ARROW_DEVICE_OPENCL;
    cl.given[0].array.device_id = DEVICE_ID;
    make_stream(1);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_start(&f);
    expect_failure(ENODEV);
    text_contains(f.got.outcome.error.message, "uva_device_attach");
}
END_TEST

START_TEST(a_device_that_nobody_attached_gives_no_memory)
{
    const struct uva_transfer there = {.device_type = ARROW_DEVICE_OPENCL,
                                       .device_id = DEVICE_ID};

    set_up();
    columns_make(&cl.given[0], NULL, cl.values[0]);
    make_stream(1);
    ck_assert_int_eq(uva_stream_transfer(f.stream, &there), 0);
    fixture_start(&f);
    expect_failure(ENODEV);
    ck_assert_str_eq(f.got.outcome.error.vendor, "opencl");
    text_contains(f.got.outcome.error.message, "uva_device_attach");
}
END_TEST

START_TEST(an_event_of_another_context_is_refused_by_the_platform)
{
    struct opencl_device other;
    cl_event event;

    set_up();
    opencl_device_open(&other);
    event = opencl_device_gate(&other);
    columns_make(&cl.given[0], &cl.device, cl.values[0]);
    cl.given[0].array.sync_event = &event;
    make_stream(1);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    fixture_start(&f);
    expect_failure(EIO);
    ck_assert_str_eq(f.got.outcome.error.vendor, "opencl");
    ck_assert_int_eq(f.got.outcome.error.vendor_code, CL_INVALID_CONTEXT);
    clSetUserEventStatus(event, CL_COMPLETE);
    clReleaseEvent(event);
    opencl_device_close(&other);
}
END_TEST

/* The device thread runs commands in order, so all earlier commands are done
 * once this array is released. */
static void device_thread_await(void)
{
    struct ArrowDeviceArray last = {.device_type = ARROW_DEVICE_OPENCL};
    const int before = plain_live();

    plain_array(&last.array, 0, 0, 0);
    uva_array_release_after(f.loop.runtime, &last, cl.device.queue);
    while (plain_live() > before)
        sched_yield();
}

/* The event has failed when the copy is queued, or fails afterwards. PoCL never
 * completes a command that follows a failed event, and it has a race if an
 * event fails while the command is queued. */
START_TEST(a_failed_kernel_fails_the_copy_behind_it)
{
    cl_event gate;

    set_up();
    gate = opencl_device_gate(&cl.device);
    columns_make(&cl.given[0], &cl.device, cl.values[0]);
    cl.given[0].array.sync_event = &gate;
    make_stream(1);
    ck_assert_int_eq(uva_stream_transfer(f.stream, NULL), 0);
    if (_i == 0)
        clSetUserEventStatus(gate, -5);
    fixture_start(&f);
    loop_settle(&f.loop);
    if (_i == 1) {
        device_thread_await();
        clSetUserEventStatus(gate, -5);
    }
    expect_failure(EIO);
    ck_assert_str_eq(f.got.outcome.error.vendor, "opencl");
    ck_assert_int_lt(f.got.outcome.error.vendor_code, 0);
    clReleaseEvent(gate);
}
END_TEST

static void add_cases(TCase *tc)
{
    tcase_add_test(tc, columns_that_a_kernel_fills_arrive_on_the_host);
    tcase_add_loop_test(tc, columns_go_to_the_device_and_come_back, 0, 4);
    tcase_add_loop_test(tc, what_was_copied_to_a_device_outlives_its_detaching,
                        0, 2);
    suite_add(tc, a_context_may_have_several_devices,
              contexts_that_were_copied_from_are_let_go,
              shared_virtual_memory_needs_a_context,
              a_device_that_nobody_attached_gives_no_memory,
              an_event_of_another_context_is_refused_by_the_platform, NULL);
    tcase_add_loop_test(tc, a_failed_kernel_fails_the_copy_behind_it, 0, 2);
}

int main(void)
{
    Suite *suite;
    cl_device_id device;
    TCase *tc;

    setenv("POCL_DEVICES", "pthread pthread", 0);
    if (!opencl_device_find(&device))
        return 77;
    suite = suite_create("opencl columns");
    tc = suite_case(suite, "platform", NULL, tear_down);
    tcase_set_timeout(tc, 60);
    add_cases(tc);
    return suite_run_alone(suite);
}
