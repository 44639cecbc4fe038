/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays with one fault, checked alone: only its clause is reported; for a
 * sound array, no clause. A case is named after its clause. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "support/breach_list.h"
#include "support/case_list.h"
#include "support/plain_tree.h"
#include "support/reference_shape.h"

/* ---- one fault ---------------------------------------------------------- */

static const struct wrong {
    const char *clause;
    const char *variant;
    enum reference_shape shape;
    ArrowDeviceType device_type; /* 0: CPU */
} WRONGS[] = {
    {"DA-03", "", REFERENCE_TYPE_NONE, 0},
    {"DA-04", "", REFERENCE_ID_UNSET, 0},
    {"DA-05", "", REFERENCE_CPU_NUMBERED, 0},
    {"DA-08", "", REFERENCE_RESERVED_SET, 0},
    {"DA-20", "buffers", REFERENCE_BUFFERS_MANY, 0},
    {"DA-20", "children", REFERENCE_CHILDREN_FEW, 0},
    {"DA-21", "length", REFERENCE_LENGTH_MINUS, 0},
    {"DA-21", "offset", REFERENCE_OFFSET_MINUS, 0},
    {"DA-21", "nulls", REFERENCE_NULLS_MINUS, 0},
    {"DA-21", "many_nulls", REFERENCE_NULLS_MANY, 0},
    {"DA-22", "data", REFERENCE_DATA_NONE, 0},
    {"DA-22", "bitmap", REFERENCE_BITMAP_NONE, 0},
    {"DA-23", "", REFERENCE_OFFSETS_FALL, 0},
    {"DA-24", "", REFERENCE_UNALIGNED, 0},
    {"DA-25", "children", REFERENCE_CHILDREN_NONE, 0},
    {"DA-25", "child", REFERENCE_CHILD_NONE, 0},
    {"DA-25", "released", REFERENCE_CHILD_DEAD, 0},
    {"DA-26", "missing", REFERENCE_WORDS_NONE, 0},
    {"DA-26", "released", REFERENCE_WORDS_DEAD, 0},
    {"DA-26", "unexpected", REFERENCE_WORDS_MANY, 0},
    {"DA-21", "batch_length", REFERENCE_BATCH_MINUS, 0},
    {"DA-21", "batch_offset", REFERENCE_BATCH_BEHIND, 0},
    {"DA-22", "batch_nulls", REFERENCE_BATCH_NULLS, 0},
    {"DA-22", "batch_buffers", REFERENCE_BATCH_BARE, 0},
    {"DA-20", "batch_bitmap", REFERENCE_BATCH_FEW, 0},
    {"EV-04", "", REFERENCE_EVENT, ARROW_DEVICE_CPU},
    {"EV-09", "vpi", REFERENCE_EVENT, ARROW_DEVICE_VPI},
    {"EV-09", "webgpu", REFERENCE_EVENT, ARROW_DEVICE_WEBGPU},
    {"EV-09", "hexagon", REFERENCE_EVENT, ARROW_DEVICE_HEXAGON},
};
enum { WRONGS_COUNT = sizeof(WRONGS) / sizeof(WRONGS[0]) };

/* Checks one batch; returns the check's result. */
static int check_batch(const enum reference_shape *shape, ArrowDeviceType type,
                       struct breach_list *reports)
{
    const struct uva_check options = breach_list_check(reports);
    struct reference_counts live_structs = {0};
    struct ArrowSchema schema;
    struct ArrowDeviceArray array;
    int code;

    reference_schema(&live_structs, reference_block(REFERENCE_SOUND), &schema);
    reference_array(&live_structs, 3, &array);
    if (type != 0)
        array.device_type = type;
    if (shape != NULL)
        reference_array_misshape(&array, *shape);
    else
        array.sync_event = type != 0 ? &array : NULL;
    code = uva_check_array(&schema, &array, &options, NULL);
    array.array.release(&array.array);
    schema.release(&schema);
    ck_assert_int_eq(atomic_load(&live_structs.live), 0);
    return code;
}

static void wrong_run(int i)
{
    const struct wrong *wrong = &WRONGS[i];
    struct breach_list reports = {0};
    const int code = check_batch(&wrong->shape, wrong->device_type, &reports);

    breach_list_take(&reports, wrong->clause, UVA_PARTY_PRODUCER);
    breach_list_is_empty(&reports);
    ck_assert_int_eq(
        code, reports.entries[0].severity >= UVA_SEVERITY_ERROR ? EPROTO : 0);
}

/* ---- faults that no batch of the reference has -------------------------- */

static void views_run(int i)
{
    struct breach_list reports = {0};
    const struct uva_check options = breach_list_check(&reports);
    struct ArrowDeviceArray array = {.device_id = -1, .device_type = 1};
    struct ArrowSchema schema;
    int64_t views[2] = {0};

    (void)i;
    plain_schema(&schema, "vu", "", 0);
    plain_array(&array.array, 1, 2, 0);
    array.array.buffers[1] = views;
    ck_assert_int_eq(uva_check_array(&schema, &array, &options, NULL), EPROTO);
    breach_list_take(&reports, "DA-27", UVA_PARTY_PRODUCER);
    breach_list_is_empty(&reports);
    array.array.release(&array.array);
    schema.release(&schema);
}

static void released_run(int i)
{
    struct breach_list reports = {0};
    const struct uva_check options = breach_list_check(&reports);
    struct reference_counts live_structs = {0};
    struct ArrowDeviceArray array = {.device_id = -1, .device_type = 1};
    struct ArrowSchema schema;

    (void)i;
    reference_schema(&live_structs, NULL, &schema);
    ck_assert_int_eq(uva_check_array(&schema, &array, &options, NULL), EPROTO);
    breach_list_take(&reports, "LC-01", UVA_PARTY_EITHER);
    breach_list_is_empty(&reports);
    schema.release(&schema);
}

/* ---- no fault ----------------------------------------------------------- */

START_TEST(a_sound_batch_breaks_nothing)
{
    struct breach_list reports = {0};

    ck_assert_int_eq(check_batch(NULL, 0, &reports), 0);
    breach_list_is_empty(&reports);
}
END_TEST

/* Clauses: AB-15, DA-10, EV-18. */
START_TEST(devices_that_have_events_break_nothing)
{
    static const ArrowDeviceType TYPES[] = {ARROW_DEVICE_CUDA,
                                            ARROW_DEVICE_CUDA_HOST,
                                            ARROW_DEVICE_OPENCL,
                                            ARROW_DEVICE_VULKAN,
                                            ARROW_DEVICE_METAL,
                                            ARROW_DEVICE_ROCM,
                                            ARROW_DEVICE_ROCM_HOST,
                                            ARROW_DEVICE_EXT_DEV,
                                            ARROW_DEVICE_ONEAPI,
                                            ARROW_DEVICE_CUDA_MANAGED,
                                            9999};
    struct breach_list reports = {0};

    ck_assert_int_eq(check_batch(NULL, TYPES[_i], &reports), 0);
    breach_list_is_empty(&reports);
}
END_TEST

int main(void)
{
    TCase *tcase = tcase_create("array");

    for (int i = 0; i < WRONGS_COUNT; i++)
        case_list_add(tcase, WRONGS[i].clause, WRONGS[i].variant, wrong_run, i);
    case_list_add(tcase, "DA-27", "", views_run, 0);
    case_list_add(tcase, "LC-01", "", released_run, 0);
    tcase_add_test(tcase, a_sound_batch_breaks_nothing);
    tcase_add_loop_test(tcase, devices_that_have_events_break_nothing, 0, 11);
    return case_list_run("array mutants", tcase);
}
