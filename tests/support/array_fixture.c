/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture has one device, one array and one result at a time. */
#include "support/array_fixture.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static void log_write(void *ctx, const struct uva_log_record *record)
{
    struct array_fixture *s = ctx;

    if (record->clause == NULL || strcmp(record->clause, "EV-17") != 0)
        return;
    (void)snprintf(s->warning, sizeof(s->warning), "%s", record->message);
    atomic_fetch_add(&s->warnings, 1);
}

void array_open(struct array_fixture *s, enum soft_mode mode)
{
    const struct uva_runtime_options options = {
        .log = {.level = UVA_LOG_WARN, .write = log_write, .ctx = s}};

    memset(s, 0, sizeof(*s));
    s->wanted = 1;
    fixture_open_with(&s->f, 8, &options);
    fixture_device(&s->f, mode);
    soft_device_batch(&s->f.device, &s->f.fake, 0, &s->array);
}

void array_close(struct array_fixture *s)
{
    uva_array_release(&s->array);
    fixture_close_now(&s->f);
}

void array_on_answer(void *ctx, struct ArrowDeviceArray *array,
                     const struct uva_error *error)
{
    struct array_fixture *s = ctx;

    ck_assert_ptr_eq(array, &s->array);
    fixture_on_answer(&s->f, array, error);
}

int array_wait(struct array_fixture *s, int64_t timeout_ms)
{
    return uva_array_wait(s->f.loop.runtime, &s->array, timeout_ms,
                          array_on_answer, s);
}

int array_outcome(struct array_fixture *s)
{
    return fixture_await_answers(&s->f, s->wanted);
}
