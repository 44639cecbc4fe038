/* SPDX-License-Identifier: Apache-2.0 */
/* The other stream is pulled batch by batch, so that the failure happens
 * between two of its batches. */
#include "support/fault_fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

/* ---- arrays ------------------------------------------------------------- */

static void counted_release(struct ArrowArray *array)
{
    struct fault_release *release = array->private_data;

    array->private_data = release->private_data;
    array->release = release->release;
    array->release(array);
    atomic_fetch_add(&release->count, 1);
}

void fault_array(struct fault_fixture *s, ArrowDeviceType device_type,
                 int64_t device_id, void *sync_event)
{
    struct ArrowDeviceArray *array = &s->arrays[s->count];
    struct fault_release *release = &s->releases[s->count++];

    fake_source_batch(&s->f.fake, s->count - 1, array);
    array->device_type = device_type;
    array->device_id = device_id;
    array->sync_event = sync_event;
    release->release = array->array.release;
    release->private_data = array->array.private_data;
    array->array.release = counted_release;
    array->array.private_data = release;
}

void fault_open(struct fault_fixture *s)
{
    memset(s, 0, sizeof(*s));
    fixture_open(&s->f, 0);
    for (int k = 0; k < 2; k++)
        fake_source_batch(&s->f.fake, k, &s->others[k]);
}

void fault_load(struct fault_fixture *s, ArrowDeviceType device_type)
{
    struct uva_device_info info;

    ck_assert_int_eq(uva_device_get_info(s->f.loop.runtime, device_type, &info),
                     0);
    ck_assert(info.available);
}

/* ---- the other stream --------------------------------------------------- */

static void on_other(void *ctx, struct uva_batch *batch,
                     const struct uva_outcome *outcome)
{
    struct fault_fixture *s = ctx;

    s->other_asked = false;
    s->other_batches += batch != NULL;
    s->other_done = outcome != NULL;
    if (outcome != NULL)
        s->other_outcome = *outcome;
}

static bool other_has_answered(void *ctx)
{
    return !((struct fault_fixture *)ctx)->other_asked;
}

static void other_ask(struct fault_fixture *s)
{
    s->other_asked = true;
    ck_assert_int_eq(asking_next(&s->asking, s->other, on_other, s), 0);
}

static void other_begin(struct fault_fixture *s)
{
    const struct uva_ready one = {.window = {.batches = 1}};
    const struct uva_transfer back = {.window = {.batches = 1}};
    s->other = fixture_arrays(&s->f, s->others, 2);
    ck_assert_int_eq(s->other_copies ? uva_stream_transfer(s->other, &back)
                                     : uva_stream_ready(s->other, &one),
                     0);
    other_ask(s);
    loop_until(&s->f.loop, other_has_answered, s);
    ck_assert_int_eq(s->other_batches, 1);
    if (s->revive != NULL)
        other_ask(s);
}

static void other_finish(struct fault_fixture *s)
{
    if (s->revive != NULL) {
        ck_assert_int_eq(s->other_batches, 1);
        s->revive(s->ctx);
    } else {
        other_ask(s);
    }
    loop_until(&s->f.loop, other_has_answered, s);
    ck_assert_int_eq(s->other_batches, 2);
    other_ask(s);
    loop_until(&s->f.loop, other_has_answered, s);
    ck_assert(s->other_done);
    ck_assert_int_eq(s->other_outcome.end, UVA_END_COMPLETE);
    uva_stream_release(s->other);
}

/* ---- the stream --------------------------------------------------------- */

static void value_keep(const char *metadata, const char *key, char *out,
                       size_t size)
{
    struct uva_pair pair;

    if (uva_metadata_get(metadata, key, &pair) == 0)
        (void)snprintf(out, size, "%.*s", (int)pair.value_size, pair.value);
}

static void on_done(struct recording_consumer *c,
                    const struct uva_outcome *outcome)
{
    struct fault_fixture *s = c->ctx;

    value_keep(outcome->metadata, "uvarrow.vendor", s->vendor,
               sizeof(s->vendor));
    value_keep(outcome->metadata, "uvarrow.vendor_code", s->vendor_code,
               sizeof(s->vendor_code));
    value_keep(outcome->metadata, "uvarrow.vendor_call", s->call,
               sizeof(s->call));
}

void fault_stream(struct fault_fixture *s)
{
    other_begin(s);
    s->f.stream = fixture_arrays(&s->f, s->arrays, s->count);
}

void fault_start(struct fault_fixture *s)
{
    s->f.got.on_done = on_done;
    s->f.got.ctx = s;
    fixture_start(&s->f);
}

void fault_ready(struct fault_fixture *s, const struct uva_ready *options)
{
    fault_stream(s);
    ck_assert_int_eq(uva_stream_ready(s->f.stream, options), 0);
    fault_start(s);
}

void fault_transfer(struct fault_fixture *s, const struct uva_transfer *options)
{
    fault_stream(s);
    ck_assert_int_eq(uva_stream_transfer(s->f.stream, options), 0);
    fault_start(s);
}

/* ---- the failure -------------------------------------------------------- */

/* Where the vendor is unknown, metadata may contain more than the error does.
 */
static void metadata_says(const struct fault_fixture *s,
                          const struct fault *fault, const char *number)
{
    ck_assert_str_eq(s->call, fault->call != NULL ? fault->call : "");
    if (fault->vendor == NULL)
        return;
    ck_assert_str_eq(s->vendor, fault->vendor);
    ck_assert_str_eq(s->vendor_code, number);
}

static void error_says(const struct uva_error *error, const struct fault *fault,
                       char *number, size_t size)
{
    ck_assert_msg(error->code == fault->code, "%s (%d): %s",
                  uva_error_name(error->code), error->code, error->message);
    ck_assert_pstr_eq(error->vendor, fault->vendor);
    if (fault->vendor_code == FAULT_ANY)
        ck_assert_int_ne(error->vendor_code, 0);
    else
        ck_assert_int_eq(error->vendor_code, fault->vendor_code);
    if (error->vendor_code != 0)
        (void)snprintf(number, size, "%d", error->vendor_code);
    text_contains(error->message, number);
    text_contains(error->message, fault->call != NULL ? fault->call : "");
}

void fault_end(struct fault_fixture *s)
{
    (void)fixture_await(&s->f);
}

void fault_release_all(struct fault_fixture *s)
{
    fixture_release(&s->f);
    other_finish(s);
}

void fault_expect(struct fault_fixture *s, const struct fault *fault)
{
    char number[32] = "";

    fault_end(s);
    ck_assert_int_eq(s->f.got.outcome.end, UVA_END_FAILED);
    error_says(&s->f.got.outcome.error, fault, number, sizeof(number));
    metadata_says(s, fault, number);
    fault_release_all(s);
}

void fault_close(struct fault_fixture *s)
{
    fixture_close(&s->f);
    for (int k = 0; k < s->count; k++)
        ck_assert_int_eq(atomic_load(&s->releases[k].count), 1);
}
