/* SPDX-License-Identifier: Apache-2.0 */
/* Checks what must hold in every schedule: no batch twice, none out of order,
 * none lost from a stream that reports completion, no end without a reason. */
#include "sim/expectation.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "sim/arena.h"
#include "sim/batches.h"
#include "sim/device_stages.h"
#include "sim/engine.h"
#include "sim/fake_threads.h"

static bool is_aloud;

void expectation_tell(bool aloud)
{
    is_aloud = aloud;
}

void expectation_note(const char *format, ...)
{
    va_list args;

    sim_flush();
    if (!is_aloud)
        return;
    (void)printf("%8.3f ms  fiber %-3d ", (double)sim_now_ns() / 1e6,
                 sim_self());
    va_start(args, format);
    (void)vprintf(format, args);
    va_end(args);
    (void)putchar('\n');
    (void)fflush(stdout); /* the next step may be the last one */
}

void expectation_see_schema(const struct story *story,
                            const struct ArrowSchema *schema)
{
    if (story->foreign)
        return;
    batches_check_schema(schema);
}

static void expectation_take_foreign(struct story *story)
{
    expectation_note("chain %d: a batch arrives", story->number);
    if (story->over && !story->partial)
        sim_fail("a batch arrived behind the end");
    if (++story->seen > story->limit)
        sim_fail("a batch arrived beyond the limit");
}

void expectation_take(struct story *story, const struct ArrowDeviceArray *given)
{
    const struct ArrowArray *batch = &given->array;
    int64_t ordinal;

    if (story->foreign) {
        expectation_take_foreign(story);
        return;
    }
    device_see(story, given);
    ordinal = batches_ordinal(batch);
    expectation_note("chain %d: batch %" PRId64 " arrives", story->number,
                     ordinal);
    if (story->over && !story->partial)
        sim_fail("a batch arrived behind the end");
    if (ordinal < 0 || ordinal >= story->total || ordinal >= story->fails_at)
        sim_fail("batch %" PRId64 " arrived, which there is not", ordinal);
    if (story->has[ordinal])
        sim_fail("batch %" PRId64 " arrived twice", ordinal);
    if (!story->unordered &&
        (story->partial ? ordinal < story->next : ordinal != story->next))
        sim_fail("batch %" PRId64 " arrived in place of %" PRId64, ordinal,
                 story->next);
    story->next = ordinal + 1;
    if (batches_hops(batch) != story->hops)
        sim_fail("batch %" PRId64 " went through %" PRId64 " maps of %" PRId64,
                 ordinal, batches_hops(batch), story->hops);
    story->has[ordinal] = true;
    if (++story->seen > story->limit)
        sim_fail("a batch arrived beyond the limit");
}

/* ---- assertions of the library ------------------------------------------ */

_Noreturn void __wrap___assert_fail(const char *what, const char *file,
                                    unsigned line, const char *function);

_Noreturn void __wrap___assert_fail(const char *what, const char *file,
                                    unsigned line, const char *function)
{
    const char *name = strrchr(file, '/');

    sim_fail("assertion in %s, %s:%u: %s", function,
             name != NULL ? name + 1 : file, line, what);
}

/* ---- the end ------------------------------------------------------------ */

static bool has_excuse(const struct story *story, unsigned excuses)
{
    if ((excuses & EXCUSE_MEMORY) &&
        (arena_has_failed() || fake_threads_have_failed()))
        return true;
    return (story->excuses & excuses) != 0;
}

static void end_well(const struct story *story)
{
    int64_t due = story->total < story->limit ? story->total : story->limit;

    if (has_excuse(story, EXCUSE_HOSTILE | EXCUSE_ODD_END))
        return;
    if (story->fails_at < due)
        sim_fail("the failure of the source was not told");
    if (story->seen != due && !story->partial)
        sim_fail("complete with %" PRId64 " batches of %" PRId64, story->seen,
                 due);
}

static void end_failed(const struct story *story, int code)
{
    const unsigned others = EXCUSE_MEMORY | EXCUSE_MAP | EXCUSE_CANCEL |
                            EXCUSE_CLOSE | EXCUSE_HOSTILE | EXCUSE_REJECT |
                            EXCUSE_ODD_END;

    if (code == 0)
        sim_fail("failed without a code");
    if (has_excuse(story, others) || device_may_end(story, code))
        return;
    if (!(story->excuses & EXCUSE_SOURCE))
        sim_fail("failed for no reason: %s", uva_error_name(code));
    if (code != story->fail_code)
        sim_fail("failed with %s instead of %s", uva_error_name(code),
                 uva_error_name(story->fail_code));
    if (!story->unordered && !story->partial && story->seen != story->fails_at)
        sim_fail("the failure overtook batches: %" PRId64 " of %" PRId64,
                 story->seen, story->fails_at);
}

static void end_once(struct story *story)
{
    if (story->over)
        sim_fail("the end was told twice");
    story->over = true;
}

void expectation_end(struct story *story, enum uva_end end, int code)
{
    expectation_note("chain %d ends: %d, %s", story->number, (int)end,
                     uva_error_name(code));
    end_once(story);
    if ((code == 0) != (end == UVA_END_COMPLETE))
        sim_fail("an end with a code that does not fit");
    switch (end) {
    case UVA_END_COMPLETE:
        end_well(story);
        break;
    case UVA_END_FAILED:
        end_failed(story, code);
        break;
    case UVA_END_CANCELLED:
        if (!has_excuse(story, EXCUSE_CANCEL | EXCUSE_CLOSE | EXCUSE_HOSTILE))
            sim_fail("cancelled by nobody");
        break;
    default:
        if (!has_excuse(story, EXCUSE_REJECT))
            sim_fail("rejected by nobody");
    }
}

void expectation_end_unstarted(struct story *story, int code)
{
    const unsigned reasons =
        EXCUSE_MEMORY | EXCUSE_CANCEL | EXCUSE_CLOSE | EXCUSE_HOSTILE;

    end_once(story);
    if (!has_excuse(story, reasons))
        sim_fail("a chain does not start for no reason: %s",
                 uva_error_name(code));
}

void expectation_end_read(struct story *story, int code)
{
    expectation_note("chain %d ends: %s", story->number, uva_error_name(code));
    end_once(story);
    if (code == 0)
        end_well(story);
    else
        end_failed(story, code);
}
