/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and schemas on pages that are unmapped by their release. */
#define _GNU_SOURCE
#include "tck/guarded_data.h"

#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* What the consumer's struct points to, on a page that is unmapped by the
 * release. */
struct ration_data {
    struct ArrowArray *children[1];
    struct ArrowArray n;
    const void *no_buffers[1];
    const void *buffers[2];
    int64_t values[UVA_SUBJECT_ROWS];
};

/* One array. Lives as long as the process. */
struct ration_array {
    struct uva__rations *books;
    int64_t ordinal;
    struct uva__word parent_gone;
    struct uva__word child_gone;
    struct uva__word parts_gone; /* how many of the two are finished */
    struct ArrowArray as_given;  /* to compare the consumer's struct with */
    struct ration_data *data;
};

/* What the consumer's schema points to, on such a page. */
struct ration_column {
    struct ArrowSchema *children[1];
    struct ArrowSchema n;
};

/* One schema. Lives as long as the process. */
struct ration_schema {
    struct uva__rations *books;
    struct uva__word gone;
    struct ration_column *data;
};

static void *ration_page(struct uva__rations *books)
{
    void *page =
        mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    if (page == MAP_FAILED)
        uva__trial_fail(books->trial, "out of memory");
    return page;
}

static void ration_count(struct uva__rations *books)
{
    (void)uva__word_add(&books->released, 1);
    uva__trial_changed(books->trial);
}

bool uva__rations_are_back(void *ctx)
{
    struct uva__rations *books = ctx;

    return uva__word_load(&books->released) == uva__word_load(&books->given);
}

/* ---- arrays ------------------------------------------------------------- */

/* Checks that the array is unchanged since the consumer got it. */
static void ration_check(const struct ration_array *own,
                         const struct ArrowArray *array)
{
    struct uva__trial *trial = own->books->trial;
    const struct ArrowArray *was = &own->as_given;

    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        if (own->data->values[row] != own->ordinal * UVA_SUBJECT_ROWS + row)
            uva__trial_breach(trial, "DA-18",
                              "the consumer wrote to the values of batch "
                              "%" PRId64,
                              own->ordinal);
    if (array->buffers != was->buffers || array->children != was->children ||
        own->data->children[0] != &own->data->n ||
        own->data->buffers[1] != own->data->values ||
        own->data->no_buffers[0] != NULL)
        uva__trial_breach(trial, "LC-11",
                          "the consumer changed pointers of batch %" PRId64,
                          own->ordinal);
}

/* One part is finished; the pages are unmapped with the second. */
static void ration_close(struct ration_array *own)
{
    struct uva__rations *books = own->books;

    if (uva__word_add(&own->parts_gone, 1) == 0)
        return;
    if (mprotect(own->data, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE) != 0)
        uva__trial_fail(books->trial, "mprotect failed");
    ration_count(books);
}

static void child_release(struct ArrowArray *array)
{
    struct ration_array *own = array->private_data;

    if (uva__word_exchange(&own->child_gone, 1) != 0)
        uva__trial_breach(own->books->trial, "LC-02",
                          "a child was released twice");
    if (array == &own->data->n && uva__word_load(&own->parent_gone) == 0)
        uva__trial_breach(own->books->trial, "LC-03",
                          "the consumer released a child that its parent owns");
    array->release = NULL;
    ration_close(own);
}

static void array_release(struct ArrowArray *array)
{
    struct ration_array *own = array->private_data;

    uva__trial_note(own->books->trial, "   released batch %" PRId64,
                    own->ordinal);
    if (array->release != array_release)
        uva__trial_breach(own->books->trial, "DA-13",
                          "release was called with another struct");
    if (uva__word_exchange(&own->parent_gone, 1) != 0)
        uva__trial_fail(own->books->trial,
                        "LC-02: batch %" PRId64 " was released twice",
                        own->ordinal);
    ration_check(own, array);
    array->release = NULL;
    if (own->data->n.release != NULL)
        own->data->n.release(&own->data->n);
    ration_close(own);
}

static void array_fill(struct ration_array *own)
{
    for (int64_t row = 0; row < UVA_SUBJECT_ROWS; row++)
        own->data->values[row] = own->ordinal * UVA_SUBJECT_ROWS + row;
    own->data->buffers[1] = own->data->values;
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

void uva__ration_array(struct uva__rations *books, int64_t ordinal,
                       enum uva__ration_kind kind, struct ArrowDeviceArray *out)
{
    struct ration_array *own = uva__trial_alloc(books->trial, sizeof(*own));

    own->books = books;
    own->data = ration_page(books);
    own->ordinal = ordinal;
    array_fill(own);
    (void)uva__word_add(&books->given, 1);
    memset(out, 0, sizeof(*out));
    out->array = own->as_given;
    out->device_id = kind == UVA__RATION_FIRST ? 0 : -1;
    out->device_type = kind == UVA__RATION_ALIEN ? 9999 : ARROW_DEVICE_CPU;
    out->reserved[0] = kind == UVA__RATION_FUTURE;
}

/* ---- the schema --------------------------------------------------------- */

static void column_release(struct ArrowSchema *schema)
{
    struct ration_schema *own = schema->private_data;

    if (uva__word_load(&own->gone) == 0 && schema == &own->data->n)
        uva__trial_breach(own->books->trial, "LC-03",
                          "the consumer released a child that its parent owns");
    schema->release = NULL;
}

static void schema_release(struct ArrowSchema *schema)
{
    struct ration_schema *own = schema->private_data;
    struct uva__rations *books = own->books;

    uva__trial_note(books->trial, "   released the schema");
    if (uva__word_exchange(&own->gone, 1) != 0)
        uva__trial_breach(books->trial, "LC-02",
                          "the schema was released twice");
    schema->release = NULL;
    if (own->data->n.release != NULL)
        own->data->n.release(&own->data->n);
    (void)mprotect(own->data, (size_t)sysconf(_SC_PAGESIZE), PROT_NONE);
    ration_count(books);
}

void uva__ration_schema(struct uva__rations *books, struct ArrowSchema *out)
{
    struct ration_schema *own = uva__trial_alloc(books->trial, sizeof(*own));

    own->books = books;
    own->data = ration_page(books);
    own->data->n = (struct ArrowSchema){.format = "l",
                                        .name = "n",
                                        .release = column_release,
                                        .private_data = own};
    own->data->children[0] = &own->data->n;
    (void)uva__word_add(&books->given, 1);
    *out = (struct ArrowSchema){.format = "+s",
                                .name = "",
                                .n_children = 1,
                                .children = own->data->children,
                                .release = schema_release,
                                .private_data = own};
}
