/* SPDX-License-Identifier: Apache-2.0 */
/* Each mutant of the reference stream and of its reader, with a check around
 * the stream: only the clause that it breaks is reported, with the party that
 * broke it; for the same pair without the mutant, no clause. A case is named
 * after its clause. */
#include <check.h>
#include <errno.h>

#include "support/breach_list.h"
#include "support/case_list.h"
#include "support/reference_stream.h"

static void read_all(struct reference_stream *stream,
                     const struct reference_reader_options *options,
                     struct ArrowDeviceArrayStream *checked)
{
    struct reference_reader reader;

    reference_reader_init(&reader, options, checked);
    reader.behind = stream;
    while (reference_reader_step(&reader))
        ;
    reference_reader_fini(&reader);
    (void)uva_check_conclude_device_stream(&reader.stream);
}

/* Runs the pair with a check in between. */
static void run_pair(const struct stream_pair *pair,
                     const struct uva_check *options, bool sound)
{
    struct reference_stream stream;
    struct ArrowDeviceArrayStream checked;

    reference_stream_init(&stream, &pair->stream);
    reference_stream_give(&stream, &checked);
    if (uva_check_device_stream(&checked, options, NULL) == 0)
        read_all(&stream, &pair->reader, &checked);
    else
        checked.release(&checked);
    ck_assert_int_eq(atomic_load(&stream.faults), 0);
    if (sound) {
        ck_assert_int_eq(atomic_load(&stream.released), 1);
        ck_assert_int_eq(atomic_load(&stream.live_structs.live), 0);
    }
    reference_stream_fini(&stream);
}

static void case_run(int i)
{
    int count;
    const struct stream_mutant *mutant = stream_mutants(&count) + i;
    struct stream_pair pair = *mutant->pair;
    struct breach_list reports = {0}, twin_reports = {0};
    struct uva_check options = breach_list_check(&reports);

    options.deep = mutant->deep;
    options.keep = true;
    if (mutant->of_reader)
        pair.reader.mutant = mutant;
    else
        pair.stream.mutant = mutant;
    run_pair(&pair, &options, false);
    breach_list_take(&reports, mutant->clause,
                     mutant->of_reader ? UVA_PARTY_CONSUMER
                                       : UVA_PARTY_PRODUCER);
    breach_list_is_empty(&reports);

    options.ctx = &twin_reports;
    run_pair(mutant->pair, &options, true);
    breach_list_is_empty(&twin_reports);
}

int main(void)
{
    TCase *tcase = tcase_create("blocking");
    const struct stream_mutant *mutants;
    int count;

    mutants = stream_mutants(&count);
    for (int i = 0; i < count; i++)
        case_list_add(tcase, mutants[i].clause, mutants[i].variant, case_run,
                      i);
    return case_list_run("stream mutants", tcase);
}
