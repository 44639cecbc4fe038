/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the invariants of every schedule: no batch twice, out of order, or
 * lost from a stream that reports completion, no end without a reason. */
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
#include "sim/fake_uv.h"
#include "sim/parts_stage.h"
#include "uvarrow/io.h"

static bool is_aloud;

void expectation_trace(bool aloud)
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

void expectation_see_schema(const struct expectation *expectation,
                            const struct ArrowSchema *schema)
{
    if (expectation->encoded && schema->n_children != 0)
        sim_fail("parts have columns");
    if (!expectation->foreign && !expectation->encoded)
        batches_check_schema(schema);
}

static void expectation_take_foreign(struct expectation *expectation)
{
    expectation_note("chain %d: a batch arrives", expectation->number);
    if (expectation->over && !expectation->partial)
        sim_fail("a batch arrived after the end");
    if (++expectation->seen > expectation->limit)
        sim_fail("a batch arrived beyond the limit");
}

/* All batches but one burst must have taken their time. A clock that ticks may
 * be ahead of the engine's. */
static void expectation_take_time(const struct expectation *expectation)
{
    const int64_t rate = expectation->rate;
    const int64_t burst = rate >= 20 ? rate / 10 : 1;
    const uint64_t took_ns = sim_now_ns() - expectation->made_ns;

    if (rate > 0 && !fake_uv_ticks() &&
        (double)(expectation->seen - burst) * 1e9 / (double)rate >
            (double)took_ns)
        sim_fail("%" PRId64 " batches in %" PRIu64 " ns at %" PRId64
                 " a second",
                 expectation->seen, took_ns, rate);
}

/* Batch number `ordinal` has arrived, after `hops` maps. */
static void expectation_count(struct expectation *expectation, int64_t ordinal,
                              int64_t hops)
{
    expectation_note("chain %d: batch %" PRId64 " arrives", expectation->number,
                     ordinal);
    if (ordinal < 0 || ordinal >= expectation->total + expectation->added ||
        (ordinal >= expectation->fails_at &&
         (ordinal < expectation->total || !expectation->unordered)))
        sim_fail("batch %" PRId64 " arrived, which there is not", ordinal);
    if (expectation->has[ordinal])
        sim_fail("batch %" PRId64 " arrived twice", ordinal);
    if (!expectation->unordered &&
        (expectation->partial ? ordinal < expectation->next
                              : ordinal != expectation->next))
        sim_fail("batch %" PRId64 " arrived in place of %" PRId64, ordinal,
                 expectation->next);
    expectation->next = ordinal + 1;
    if (hops != expectation->hops)
        sim_fail("batch %" PRId64 " went through %" PRId64 " maps of %" PRId64,
                 ordinal, hops, expectation->hops);
    expectation->has[ordinal] = true;
    if (++expectation->seen > expectation->limit)
        sim_fail("a batch arrived beyond the limit");
    expectation_take_time(expectation);
}

void expectation_take(struct expectation *expectation,
                      const struct ArrowDeviceArray *given)
{
    int64_t ordinal, hops;

    if (expectation->foreign) {
        expectation_take_foreign(expectation);
        return;
    }
    if (expectation->over && !expectation->partial)
        sim_fail("a batch arrived after the end");
    if (expectation->encoded) {
        if (parts_read(expectation, given, &ordinal, &hops))
            expectation_count(expectation, ordinal, hops);
        return;
    }
    device_see(expectation, given);
    ordinal = batches_ordinal(&given->array);
    expectation_count(expectation, ordinal, batches_hops(&given->array));
    batches_check_text(&given->array);
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

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The batches of a chain that ends well. */
static int64_t batches_due(const struct expectation *expectation)
{
    return least(expectation->total + expectation->added, expectation->limit);
}

bool expectation_is_held(const struct expectation *expectation)
{
    const bool any = expectation->unordered && expectation->added > 0;
    const int64_t all = batches_due(expectation);
    const int64_t due = any ? all : least(all, expectation->fails_at);

    return expectation->held && !expectation->over &&
           (expectation->seen < due || expectation->partial ||
            expectation->encoded || expectation->foreign);
}

static bool has_excuse(const struct expectation *expectation, unsigned excuses)
{
    if ((excuses & EXCUSE_MEMORY) &&
        (arena_has_failed() || fake_threads_have_failed()))
        return true;
    return (expectation->excuses & excuses & ~(unsigned)EXCUSE_MEMORY) != 0;
}

/* Whether the batches of other streams, and those before the failure of the
 * source, are as many as a limit takes. */
static bool any_are_enough(const struct expectation *expectation)
{
    return expectation->unordered &&
           expectation->fails_at + expectation->added >= expectation->limit;
}

static void end_well(const struct expectation *expectation)
{
    const int64_t due = batches_due(expectation);

    if (has_excuse(expectation, EXCUSE_HOSTILE | EXCUSE_ODD_END))
        return;
    if (expectation->fails_at < due && !any_are_enough(expectation))
        sim_fail("the failure of the source was not reported");
    if (expectation->encoded && expectation->format == UVA_FORMAT_ARROW &&
        !expectation->part_ended && !expectation->partial)
        sim_fail("the output has no end");
    if (expectation->overflows && due > 0 && !expectation->unordered &&
        !expectation->partial) /* a task that is discarded is not cast */
        sim_fail("a cast has not failed");
    if (expectation->seen != due && !expectation->partial)
        sim_fail("complete with %" PRId64 " batches of %" PRId64,
                 expectation->seen, due);
}

void expectation_end_held(struct expectation *expectation)
{
    expectation->partial = false;
    end_well(expectation);
}

static void end_failed(const struct expectation *expectation, int code)
{
    const unsigned others = EXCUSE_MEMORY | EXCUSE_MAP | EXCUSE_CANCEL |
                            EXCUSE_CLOSE | EXCUSE_HOSTILE | EXCUSE_REJECT |
                            EXCUSE_ODD_END;

    if (code == 0)
        sim_fail("failed without a code");
    if (has_excuse(expectation, others) || device_may_end(expectation, code))
        return;
    if (!(expectation->excuses & EXCUSE_SOURCE))
        sim_fail("failed for no reason: %s", uva_error_name(code));
    if (code != expectation->fail_code)
        sim_fail("failed with %s instead of %s", uva_error_name(code),
                 uva_error_name(expectation->fail_code));
    if (!expectation->unordered && !expectation->partial &&
        (expectation->seen > expectation->fails_at ||
         expectation->seen < expectation->fails_at - expectation->keepers))
        sim_fail("the failure overtook batches: %" PRId64 " of %" PRId64,
                 expectation->seen, expectation->fails_at);
}

static void end_once(struct expectation *expectation)
{
    if (expectation->over)
        sim_fail("the end was reported twice");
    expectation->over = true;
}

void expectation_end(struct expectation *expectation, enum uva_end end,
                     int code)
{
    expectation_note("chain %d ends: %d, %s", expectation->number, (int)end,
                     uva_error_name(code));
    end_once(expectation);
    if ((code == 0) != (end == UVA_END_COMPLETE))
        sim_fail("an end with a code that does not fit");
    switch (end) {
    case UVA_END_COMPLETE:
        end_well(expectation);
        break;
    case UVA_END_FAILED:
        end_failed(expectation, code);
        break;
    case UVA_END_CANCELLED:
        if (!has_excuse(expectation,
                        EXCUSE_CANCEL | EXCUSE_CLOSE | EXCUSE_HOSTILE))
            sim_fail("cancelled without a cause");
        break;
    default:
        if (!has_excuse(expectation, EXCUSE_REJECT))
            sim_fail("rejected without a cause");
    }
}

void expectation_end_unstarted(struct expectation *expectation, int code)
{
    const unsigned reasons =
        EXCUSE_MEMORY | EXCUSE_CANCEL | EXCUSE_CLOSE | EXCUSE_HOSTILE;

    end_once(expectation);
    if (!has_excuse(expectation, reasons))
        sim_fail("a chain does not start for no reason: %s",
                 uva_error_name(code));
}

void expectation_end_read(struct expectation *expectation, int code)
{
    expectation_note("chain %d ends: %s", expectation->number,
                     uva_error_name(code));
    end_once(expectation);
    if (code == 0)
        end_well(expectation);
    else
        end_failed(expectation, code);
}
