/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and schemas on pages that are unmapped by their release. */
#define _GNU_SOURCE
#include "tck/guarded_data.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Rows before the first one of a slice: so many in front of the struct's and of
 * the column's. */
enum { STRUCT_OFFSET = 1, COLUMN_OFFSET = 2 };
enum { SLICE_BEGIN = STRUCT_OFFSET + COLUMN_OFFSET };

/* The memory of the consumer's struct, on a page that is unmapped by the
 * release. */
struct guarded_data_data {
    struct ArrowArray *children[1];
    struct ArrowArray n;
    const void *no_buffers[1];
    const void *buffers[2];
    int64_t values[UVA_SUBJECT_ROWS];
    int32_t bare[UVA_SUBJECT_ROWS]; /* values of an array that is no struct */
    int64_t sliced[SLICE_BEGIN + UVA_SUBJECT_ROWS]; /* values of a slice */
};

/* One array. Lives as long as the process. */
struct guarded_data_array {
    struct uva__guarded_data *books;
    int64_t ordinal;
    bool is_unknown; /* on a device of an unknown type */
    struct uva__atomic64 parent_gone;
    struct uva__atomic64 child_gone;
    struct uva__atomic64 parts_gone; /* how many of the two are finished */
    struct ArrowArray as_given;      /* to compare the consumer's struct with */
    const void *values;              /* what the column points to */
    struct guarded_data_data *data;
};

/* The memory of the consumer's schema, on such a page. */
struct guarded_data_column {
    struct ArrowSchema *children[1];
    struct ArrowSchema n;
};

/* One schema. Lives as long as the process. */
struct guarded_data_schema {
    struct uva__guarded_data *books;
    struct uva__atomic64 gone;
    struct guarded_data_column *data;
};

static void *guarded_data_page(struct uva__guarded_data *books, int access)
{
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), access,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        uva__case_run_fail(books->run, "out of memory");
    return page;
}

static void guarded_data_count(struct uva__guarded_data *books)
{
    (void)uva__atomic64_add(&books->released, 1);
    uva__case_run_changed(books->run);
}

bool uva__guarded_data_is_released(void *ctx)
{
    struct uva__guarded_data *books = ctx;

    return uva__atomic64_load(&books->released) ==
           uva__atomic64_load(&books->given);
}

/* ---- arrays ------------------------------------------------------------- */

/* Checks that the array is unchanged since the consumer got it. */
static void guarded_data_check(const struct guarded_data_array *own,
                               const struct ArrowArray *array)
{
    struct uva__case_run *run = own->books->run;
    const struct ArrowArray *was = &own->as_given;

    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        if (own->data->values[row] != own->ordinal * UVA_SUBJECT_ROWS + row ||
            own->data->bare[row] != own->data->values[row])
            uva__case_run_breach(run, "DA-18",
                                 "the consumer wrote to the values of batch "
                                 "%" PRId64,
                                 own->ordinal);
    if (array->buffers != was->buffers || array->children != was->children ||
        own->data->children[0] != &own->data->n ||
        own->data->buffers[1] != own->values ||
        own->data->no_buffers[0] != NULL)
        uva__case_run_breach(run, "LC-11",
                             "the consumer changed pointers of batch %" PRId64,
                             own->ordinal);
}

/* One part is finished; the pages are unmapped with the second. */
static void guarded_data_close(struct guarded_data_array *own)
{
    struct uva__guarded_data *books = own->books;

    if (uva__atomic64_add(&own->parts_gone, 1) == 0)
        return;
    if (mprotect(own->data, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) != 0)
        uva__case_run_fail(books->run, "mprotect failed");
    if (own->is_unknown)
        (void)uva__atomic64_add(&books->unknown, UINT64_MAX);
    guarded_data_count(books);
}

static void child_release(struct ArrowArray *array)
{
    struct guarded_data_array *own = array->private_data;

    if (uva__atomic64_exchange(&own->child_gone, 1) != 0)
        uva__case_run_breach(own->books->run, "LC-02",
                             "a child was released twice");
    if (array == &own->data->n && uva__atomic64_load(&own->parent_gone) == 0)
        uva__case_run_breach(
            own->books->run, "LC-03",
            "the consumer released a child that its parent owns");
    array->release = NULL;
    guarded_data_close(own);
}

static void array_release(struct ArrowArray *array)
{
    struct guarded_data_array *own = array->private_data;

    uva__case_run_note(own->books->run, "   released batch %" PRId64,
                       own->ordinal);
    if (array->release != array_release)
        uva__case_run_breach(own->books->run, "DA-13",
                             "release was called with another struct");
    if (uva__atomic64_exchange(&own->parent_gone, 1) != 0)
        uva__case_run_fail(own->books->run,
                           "LC-02: batch %" PRId64 " was released twice",
                           own->ordinal);
    guarded_data_check(own, array);
    array->release = NULL;
    if (own->data->n.release != NULL)
        own->data->n.release(&own->data->n);
    guarded_data_close(own);
}

static void array_fill(struct guarded_data_array *own)
{
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++) {
        own->data->values[row] = own->ordinal * UVA_SUBJECT_ROWS + row;
        own->data->bare[row] = (int32_t)own->data->values[row];
    }
    own->values = own->data->values;
    own->data->n = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                       .n_buffers = 2,
                                       .buffers = own->data->buffers,
                                       .release = child_release,
                                       .private_data = own};
    own->data->children[0] = &own->data->n;
    own->as_given = (struct ArrowArray){.length = UVA_SUBJECT_ROWS,
                                        .n_buffers = 1,
                                        .buffers = own->data->no_buffers,
                                        .n_children = 1,
                                        .children = own->data->children,
                                        .release = array_release,
                                        .private_data = own};
}

/* Puts rows that do not belong to the batch in front of it. */
static void array_slice(struct guarded_data_array *own)
{
    for (int i = 0; i < SLICE_BEGIN; i++)
        own->data->sliced[i] = -1000000;
    memcpy(own->data->sliced + SLICE_BEGIN, own->data->values,
           sizeof(own->data->values));
    own->values = own->data->sliced;
    own->data->n.length = STRUCT_OFFSET + UVA_SUBJECT_ROWS;
    own->data->n.offset = COLUMN_OFFSET;
    own->as_given.offset = STRUCT_OFFSET;
}

/* Gives the column itself as the array, without a struct around it. */
static void array_strip(struct guarded_data_array *own)
{
    own->values = own->data->bare;
    own->data->n.release = NULL;
    own->as_given.n_buffers = 2;
    own->as_given.buffers = own->data->buffers;
    own->as_given.n_children = 0;
    own->as_given.children = NULL;
    (void)uva__atomic64_add(&own->parts_gone, 1);
}

void uva__guarded_data_array(struct uva__guarded_data *books, int64_t ordinal,
                             enum uva__guarded_data_kind kind,
                             struct ArrowDeviceArray *out)
{
    struct guarded_data_array *own =
        uva__case_run_alloc(books->run, sizeof(*own));

    own->books = books;
    own->data = guarded_data_page(books, PROT_READ | PROT_WRITE);
    own->ordinal = ordinal;
    own->is_unknown = kind == UVA__GUARDED_DATA_UNKNOWN_DEVICE ||
                      kind == UVA__GUARDED_DATA_SEALED;
    array_fill(own);
    if (kind == UVA__GUARDED_DATA_BARE)
        array_strip(own);
    if (kind == UVA__GUARDED_DATA_SLICED)
        array_slice(own);
    if (kind == UVA__GUARDED_DATA_SEALED)
        own->values = guarded_data_page(books, PROT_NONE);
    if (own->is_unknown)
        (void)uva__atomic64_add(&books->unknown, 1);
    own->data->buffers[1] = own->values;
    (void)uva__atomic64_add(&books->given, 1);
    memset(out, 0, sizeof(*out));
    out->array = own->as_given;
    out->device_id = kind == UVA__GUARDED_DATA_FIRST ? 0 : -1;
    out->device_type = own->is_unknown ? 9999 : ARROW_DEVICE_CPU;
    out->reserved[0] = kind == UVA__GUARDED_DATA_FUTURE;
}

/* ---- the schema --------------------------------------------------------- */

static void column_release(struct ArrowSchema *schema)
{
    struct guarded_data_schema *own = schema->private_data;

    if (uva__atomic64_load(&own->gone) == 0 && schema == &own->data->n)
        uva__case_run_breach(
            own->books->run, "LC-03",
            "the consumer released a child that its parent owns");
    schema->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    struct guarded_data_schema *own = schema->private_data;
    struct uva__guarded_data *books = own->books;

    uva__case_run_note(books->run, "   released the schema");
    if (uva__atomic64_exchange(&own->gone, 1) != 0)
        uva__case_run_breach(books->run, "LC-02",
                             "the schema was released twice");
    schema->release = NULL;
    if (own->data->n.release != NULL)
        own->data->n.release(&own->data->n);
    (void)mprotect(own->data, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    guarded_data_count(books);
}

void uva__guarded_data_schema(struct uva__guarded_data *books, bool bare,
                              struct ArrowSchema *out)
{
    struct guarded_data_schema *own =
        uva__case_run_alloc(books->run, sizeof(*own));

    own->books = books;
    own->data = guarded_data_page(books, PROT_READ | PROT_WRITE);
    own->data->n = (struct ArrowSchema){.format = "l",
                                        .name = "n",
                                        .release = column_release,
                                        .private_data = own};
    own->data->children[0] = &own->data->n;
    (void)uva__atomic64_add(&books->given, 1);
    if (bare)
        own->data->n.release = NULL;
    *out = (struct ArrowSchema){.format = bare ? "i" : "+s",
                                .name = "",
                                .n_children = !bare,
                                .children = bare ? NULL : own->data->children,
                                .release = schema_release,
                                .private_data = own};
}
