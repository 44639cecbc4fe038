/* SPDX-License-Identifier: Apache-2.0 */
/* A fault of every batch of a stream is reported for the first batch, and not
 * again. A case is named after its clause. */
#include <check.h>

#include "support/breach_list.h"
#include "support/case_list.h"
#include "support/reference_run.h"
#include "support/reference_shape.h"
#include "support/reference_stream.h"

enum { BATCHES = 3 };

static const struct wrong {
    const char *clause;   /* reported between producer and handler */
    const char *blocking; /* reported of a blocking stream; NULL: as above */
    const char *variant;
    enum reference_shape shape;
} WRONGS[] = {
    {"DA-04", NULL, "", REFERENCE_ID_UNSET},
    {"DA-05", NULL, "", REFERENCE_CPU_NUMBERED},
    {"DA-08", NULL, "", REFERENCE_RESERVED_SET},
    {"AT-17", "DS-01", "buffers", REFERENCE_BUFFERS_MANY},
    {"AT-17", "DS-01", "children", REFERENCE_CHILDREN_FEW},
    {"AT-17", "DS-01", "dictionary", REFERENCE_WORDS_NONE},
    {"DA-21", NULL, "", REFERENCE_LENGTH_MINUS},
    {"DA-22", NULL, "", REFERENCE_DATA_NONE},
    {"DA-23", NULL, "", REFERENCE_OFFSETS_FALL},
    {"DA-24", NULL, "", REFERENCE_UNALIGNED},
    {"DA-25", NULL, "child", REFERENCE_CHILD_NONE},
    {"DA-26", NULL, "released", REFERENCE_WORDS_DEAD},
    {"EV-04", NULL, "", REFERENCE_EVENT},
    {"LC-07", NULL, "", REFERENCE_MARK_STAYS},
};

static void reported_once(struct breach_list *reports, const char *clause)
{
    breach_list_take(reports, clause, UVA_PARTY_PRODUCER);
    breach_list_is_empty(reports);
}

/* ---- between producer and handler --------------------------------------- */

static bool misshapes_batch(void *peer, void *at)
{
    const struct reference_producer *producer = peer;
    const struct reference_extraction *e = at;

    reference_array_misshape(e->out,
                             (enum reference_shape)producer->how.mutant->arg);
    return false;
}

static void case_of_handler(int i)
{
    const struct reference_mutant mutant = {.point = REFERENCE_AT_FILLED,
                                            .act = misshapes_batch,
                                            .arg = WRONGS[i].shape};
    const struct reference_producer_options gives = {.batches = BATCHES,
                                                     .mutant = &mutant};
    const struct reference_consumer_options takes = {.first = BATCHES + 1};
    struct breach_list reports = {0};
    const struct uva_check options = breach_list_check(&reports);
    struct ArrowAsyncDeviceStreamHandler *checked;
    struct reference_producer producer;
    struct reference_consumer consumer;

    reference_producer_init(&producer, &gives);
    reference_consumer_init(&consumer, &takes);
    ck_assert_int_eq(
        uva_check_handler(&consumer.handler, &options, &checked, NULL), 0);
    reference_producer_start(&producer, checked);
    reference_run(&producer, &consumer);
    reference_consumer_fini(&consumer);
    reference_producer_fini(&producer);
    reported_once(&reports, WRONGS[i].clause);
}

/* ---- of a blocking stream ----------------------------------------------- */

static bool misshapes_chunk(void *peer, void *at)
{
    const struct reference_stream *stream = peer;
    const struct stream_call *call = at;

    reference_array_misshape(call->out,
                             (enum reference_shape)stream->how.mutant->arg);
    return false;
}

static void case_of_blocking(int i)
{
    const struct stream_mutant mutant = {.point = STREAM_AT_CHUNK,
                                         .act = misshapes_chunk,
                                         .arg = WRONGS[i].shape};
    const struct reference_stream_options gives = {.batches = BATCHES,
                                                   .mutant = &mutant};
    const struct reference_reader_options takes = {0};
    struct breach_list reports = {0};
    const struct uva_check options = breach_list_check(&reports);
    struct ArrowDeviceArrayStream checked;
    struct reference_reader reader;
    struct reference_stream stream;

    reference_stream_init(&stream, &gives);
    reference_stream_give(&stream, &checked);
    ck_assert_int_eq(uva_check_device_stream(&checked, &options, NULL), 0);
    reference_reader_init(&reader, &takes, &checked);
    while (reference_reader_step(&reader))
        ;
    reference_reader_fini(&reader);
    reference_stream_fini(&stream);
    reported_once(&reports, WRONGS[i].blocking != NULL ? WRONGS[i].blocking
                                                       : WRONGS[i].clause);
}

int main(void)
{
    TCase *tcase = tcase_create("reported once");

    for (int i = 0; i < (int)(sizeof(WRONGS) / sizeof(WRONGS[0])); i++) {
        case_list_add(tcase, WRONGS[i].clause, WRONGS[i].variant,
                      case_of_handler, i);
        case_list_add(tcase, WRONGS[i].clause, "of_a_blocking_stream",
                      case_of_blocking, i);
    }
    return case_list_run("reported once", tcase);
}
