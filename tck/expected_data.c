/* SPDX-License-Identifier: Apache-2.0 */
/* Checks of schemas, arrays and metadata; each breach names its clause. A value
 * that cannot be read ends the check. */
#include "tck/expected_data.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arrow/layout.h"
#include "tck/cases.h"
#include "uvarrow/arrow.h"

void uva__expected_data_fill(void *memory, size_t size)
{
    memset(memory, UVA__EXPECTED_DATA_FILL, size);
}

bool uva__expected_data_is_filled(const void *memory, size_t size)
{
    const unsigned char *bytes = memory;

    for (size_t i = 0; i < size; i++)
        if (bytes[i] != UVA__EXPECTED_DATA_FILL)
            return false;
    return true;
}

void uva__expected_data_check_schema(struct uva__case_run *run,
                                     const struct ArrowSchema *schema,
                                     const char *clause)
{
    const struct ArrowSchema *n;

    if (schema->format == NULL || strcmp(schema->format, "+s") != 0 ||
        schema->n_children < 1 || schema->children == NULL)
        uva__case_run_fail(run, "the schema is not a struct with a column, as "
                                "uvarrow/tck.h wants it");
    run->columns = schema->n_children;
    n = schema->children[0];
    if (n == NULL || n->release == NULL)
        uva__case_run_breach(run, "LC-01", "the schema's child is not live");
    else if (n->format == NULL || strcmp(n->format, "l") != 0 ||
             n->name == NULL || strcmp(n->name, "n") != 0)
        uva__case_run_fail(run, "the first column is not \"n\" of int64, as "
                                "uvarrow/tck.h wants it");
    if (schema->dictionary != NULL)
        uva__case_run_breach(run, clause, "the schema has a dictionary");
    uva__expected_data_check_metadata(run, schema->metadata, "MD-01", NULL,
                                      NULL);
}

/* ---- arrays ------------------------------------------------------------- */

static void check_device(struct uva__case_run *run,
                         const struct ArrowDeviceArray *array)
{
    if (array->device_type != ARROW_DEVICE_CPU)
        uva__case_run_breach(run, "DA-03", "device_type is %d, not CPU (1)",
                             (int)array->device_type);
    if (array->device_id != -1)
        uva__case_run_breach(run, "DA-05",
                             "device_id is %" PRId64 ", not -1, for the CPU",
                             array->device_id);
    if (array->sync_event != NULL)
        uva__case_run_breach(run, "EV-04", "sync_event is not NULL on the CPU");
    if ((array->reserved[0] | array->reserved[1] | array->reserved[2]) != 0)
        uva__case_run_breach(run, "DA-08", "reserved bytes are not zero");
}

static void check_numbers(struct uva__case_run *run,
                          const struct ArrowArray *array)
{
    if (array->length < 0 || array->offset < 0 || array->null_count < -1 ||
        array->null_count > array->length)
        uva__case_run_breach(run, "DA-21",
                             "length %" PRId64 ", offset %" PRId64
                             ", null_count %" PRId64,
                             array->length, array->offset, array->null_count);
}

/* Returns the first child of a struct array, if it can be read. */
static const struct ArrowArray *check_child(struct uva__case_run *run,
                                            const struct ArrowArray *array,
                                            const char *shape)
{
    const struct ArrowArray *n;

    if (array->n_children != run->columns) {
        uva__case_run_breach(
            run, shape, "%" PRId64 " columns, not %" PRId64 " as the schema",
            array->n_children, run->columns);
        uva__case_run_breach(run, "DA-20", "wrong number of children");
        return NULL;
    }
    if (array->children == NULL || array->children[0] == NULL) {
        uva__case_run_breach(run, "DA-25", "no pointer to the children");
        return NULL;
    }
    n = array->children[0];
    if (n->release == NULL) {
        uva__case_run_breach(run, "LC-01", "the array's child is not live");
        return NULL;
    }
    return n;
}

static bool check_shape(struct uva__case_run *run,
                        const struct ArrowArray *array, const char *shape)
{
    const struct ArrowArray *n;

    check_numbers(run, array);
    n = check_child(run, array, shape);
    if (n == NULL)
        return false;
    check_numbers(run, n);
    if (array->dictionary != NULL || n->dictionary != NULL)
        uva__case_run_breach(run, "DA-26",
                             "a dictionary that the schema lacks");
    if (array->n_buffers != 1 || n->n_buffers != 2) {
        uva__case_run_breach(run, shape,
                             "%" PRId64 " and %" PRId64 " buffers, "
                             "not 1 and 2",
                             array->n_buffers, n->n_buffers);
        uva__case_run_breach(run, "DA-20", "wrong numbers of buffers");
        return false;
    }
    if (array->buffers == NULL || n->buffers == NULL ||
        (n->buffers[1] == NULL && array->length > 0) ||
        (n->buffers[0] == NULL && n->null_count > 0)) {
        uva__case_run_breach(run, "DA-22", "a buffer is NULL that may not be");
        return false;
    }
    if ((uintptr_t)n->buffers[1] % sizeof(int64_t) != 0)
        uva__case_run_breach(run, "DA-24", "the values are not aligned");
    return true;
}

static int64_t value_at(const struct ArrowArray *array, int64_t row)
{
    const struct ArrowArray *n = array->children[0];
    int64_t value;

    memcpy(&value,
           (const char *)n->buffers[1] +
               (size_t)(array->offset + n->offset + row) * sizeof(value),
           sizeof(value));
    return value;
}

bool uva__expected_data_is(const struct ArrowArray *array, int64_t ordinal)
{
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        if (value_at(array, row) != ordinal * UVA_SUBJECT_ROWS + row)
            return false;
    return true;
}

bool uva__expected_data_check_array(struct uva__case_run *run,
                                    const struct ArrowDeviceArray *array,
                                    int64_t ordinal, const char *order,
                                    const char *shape)
{
    check_device(run, array);
    if (array->device_type != ARROW_DEVICE_CPU) {
        uva__case_run_breach(run, shape[0] == 'D' ? "DS-03" : "AT-16",
                             "device_type of the batch is not the stream's");
        return false;
    }
    if (!check_shape(run, &array->array, shape))
        return false;
    if (array->array.length != UVA_SUBJECT_ROWS ||
        array->array.children[0]->length <
            array->array.offset + array->array.length) {
        uva__case_run_breach(run, shape, "%" PRId64 " rows, not %d",
                             array->array.length, UVA_SUBJECT_ROWS);
        return false;
    }
    if (!uva__expected_data_is(&array->array, ordinal))
        uva__case_run_breach(run, order,
                             "batch %" PRId64 " begins with value %" PRId64,
                             ordinal, value_at(&array->array, 0));
    return true;
}

/* The clauses about how long the memory of an array stays valid. */
static const char *const LASTING[] = {"DA-15", "DA-18", "AT-18", "DS-13",
                                      "LC-12"};

void uva__expected_data_release_array(struct uva__case_run *run,
                                      struct ArrowDeviceArray *array,
                                      int64_t ordinal)
{
    if (!uva__expected_data_is(&array->array, ordinal))
        for (size_t i = 0; i < sizeof(LASTING) / sizeof(*LASTING); i++)
            if (uva__cases_level(run->role, LASTING[i]) != UVA__CASES_UNLISTED)
                uva__case_run_breach(run, LASTING[i],
                                     "the values of batch %" PRId64
                                     " changed before it was released",
                                     ordinal);
    array->array.release(&array->array);
    if (array->array.release == NULL)
        return;
    uva__case_run_breach(run, "LC-07", "release left an array's release set");
    uva__case_run_breach(run, "DA-12", "release left an array's release set");
}

/* ---- metadata ----------------------------------------------------------- */

/* Metadata without pairs must be passed as NULL. */
static void check_not_empty(struct uva__case_run *run, const char *block)
{
    int32_t pairs = 0;

    memcpy(&pairs, block, sizeof(pairs));
    if (pairs == 0)
        uva__case_run_breach(run, "MD-02", "metadata without a pair, not NULL");
}

void uva__expected_data_check_metadata(struct uva__case_run *run,
                                       const char *block, const char *clause,
                                       char tag[64], int64_t *size)
{
    struct uva_pair pair = {0};
    size_t bytes = 0;
    int code;

    if (size != NULL)
        *size = -1;
    if (block == NULL)
        return;
    code = uva_metadata_size(block, &bytes);
    if (code == EMSGSIZE) {
        uva__case_run_breach(run, "MD-09", "metadata beyond all bounds");
        return;
    }
    if (code != 0) {
        uva__case_run_breach(run, clause, "malformed metadata");
        uva__case_run_breach(run, "MD-01", "malformed metadata");
        uva__case_run_breach(run, "MD-05", "malformed metadata");
        return;
    }
    check_not_empty(run, block);
    if (tag == NULL || uva_metadata_get(block, "tck", &pair) != 0)
        return;
    *size = (int64_t)pair.value_size;
    memset(tag, 0, 64);
    memcpy(tag, pair.value, pair.value_size < 64 ? pair.value_size : 64);
}
