/* SPDX-License-Identifier: Apache-2.0 */
/* Each mutant of a reference peer, with a check between it and its partner:
 * only the clause that it breaks is reported, with the party that broke it; for
 * the same pair without the mutant, no clause. A case is named after its
 * clause. */
#include <check.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "check/handler_check.h"
#include "support/breach_list.h"
#include "support/case_list.h"
#include "support/reference_run.h"
#include "uvarrow/check.h"

enum { SLOW_MS = 40 };

/* The clock that limits use: only a mutant that sleeps takes time, however busy
 * this machine is. */
static atomic_llong now_ns;

int64_t __wrap_uva__checker_host_clock_ns(bool fine);
int64_t __wrap_uva__checker_host_clock_ns(bool fine)
{
    (void)fine;
    return atomic_load(&now_ns);
}

/* The short pauses of perturbed runs are real. */
int __real_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left);
int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    if (time->tv_sec == 0 && time->tv_nsec < SLOW_MS * 1000000)
        return __real_nanosleep(time, left);
    atomic_fetch_add(&now_ns, time->tv_sec * 1000000000LL + time->tv_nsec);
    return 0;
}

/* One mutant, and its party. */
struct subject {
    const struct reference_mutant *mutant;
    enum uva_party party;
};

static struct subject subject_at(int i)
{
    struct subject subject = {NULL, UVA_PARTY_PRODUCER};
    int count;

    subject.mutant = producer_mutants(&count);
    if (i < count) {
        subject.mutant += i;
        return subject;
    }
    i -= count;
    subject.mutant = consumer_mutants(&count);
    subject.party = UVA_PARTY_CONSUMER;
    subject.mutant = i < count ? subject.mutant + i : NULL;
    return subject;
}

/* A mutant must be found in each of these, if it is in the first. */
enum way { PLAIN, DEEP, PERTURBED, BOTH, WAYS };

/* Only a mutant that is slow has a limit of time, and only in the calls where
 * it is slow. */
static struct uva__check_times limits_of(const struct reference_mutant *mutant,
                                         bool mutated)
{
    const bool slow = mutated && (mutant->shows & REFERENCE_SHOWS_SLOW) != 0;
    const bool extracts = strcmp(mutant->clause, "AT-09") == 0;

    return (struct uva__check_times){
        .slow_call_ms = slow && !extracts ? SLOW_MS : INT64_MAX,
        .slow_extract_ms = slow && extracts ? SLOW_MS : INT64_MAX};
}

static struct uva_check how_to_see(const struct reference_mutant *mutant,
                                   enum way way, struct breach_list *reports)
{
    struct uva_check options = breach_list_check(reports);

    options.keep = true;
    options.deep = way == DEEP || way == BOTH ||
                   (mutant->shows & REFERENCE_SHOWS_DEEP) != 0;
    if (way == PERTURBED || way == BOTH ||
        (mutant->shows & REFERENCE_SHOWS_PERTURBED) != 0)
        options.perturb_seed = 1 + (uint64_t)way;
    return options;
}

/* Called once the handler is accepted. */
static void run_checked(struct reference_producer *producer,
                        struct reference_consumer *consumer,
                        struct ArrowAsyncDeviceStreamHandler *checked)
{
    reference_producer_start(producer, checked);
    reference_run(producer, consumer);
    reference_consumer_release(consumer);
    uva_check_conclude(checked);
}

static void run_pair(const struct reference_pair *pair,
                     const struct uva_check *options,
                     const struct uva__check_times *times, bool sound)
{
    struct ArrowAsyncDeviceStreamHandler *checked = NULL;
    struct reference_producer producer;
    struct reference_consumer consumer;
    int code;

    reference_producer_init(&producer, &pair->producer);
    reference_consumer_init(&consumer, &pair->consumer);
    code = uva__handler_check_within(times, &consumer.handler, options,
                                     &checked, NULL);
    if (code == 0)
        run_checked(&producer, &consumer, checked);
    reference_consumer_fini(&consumer);
    if (sound) {
        ck_assert_int_eq(code, 0);
        ck_assert_int_eq(atomic_load(&producer.faults), 0);
        ck_assert_int_eq(atomic_load(&consumer.faults), 0);
        ck_assert_int_eq(atomic_load(&producer.live_structs.live), 0);
    }
    reference_producer_fini(&producer);
}

static void see_mutant(const struct subject *subject, enum way way)
{
    const struct reference_mutant *mutant = subject->mutant;
    const enum uva_party other = subject->party == UVA_PARTY_PRODUCER
                                     ? UVA_PARTY_CONSUMER
                                     : UVA_PARTY_PRODUCER;
    struct reference_pair pair = *mutant->pair;
    struct breach_list reports = {0};
    struct uva_check options = how_to_see(mutant, way, &reports);
    const struct uva__check_times times = limits_of(mutant, true);

    if (subject->party == UVA_PARTY_PRODUCER)
        pair.producer.mutant = mutant;
    else
        pair.consumer.mutant = mutant;
    run_pair(&pair, &options, &times, false);
    breach_list_take(&reports, mutant->clause, subject->party);
    if (mutant->also != NULL)
        breach_list_take(&reports, mutant->also, other);
    breach_list_is_empty(&reports);
}

static void see_twin(const struct subject *subject, enum way way)
{
    const struct reference_mutant *mutant = subject->mutant;
    struct reference_pair pair = *mutant->pair;
    struct breach_list reports = {0};
    struct uva_check options = how_to_see(mutant, way, &reports);
    const struct uva__check_times times = limits_of(mutant, false);

    pair.producer.steps_in_request = false;
    run_pair(&pair, &options, &times, mutant->also == NULL);
    if (mutant->also != NULL)
        breach_list_take(&reports, mutant->also, UVA_PARTY_CONSUMER);
    breach_list_is_empty(&reports);
}

static void case_run(int i)
{
    const struct subject subject = subject_at(i);

    for (int way = PLAIN; way < WAYS; way++) {
        see_mutant(&subject, (enum way)way);
        see_twin(&subject, (enum way)way);
    }
}

int main(void)
{
    TCase *tcase = tcase_create("handler");
    const struct reference_mutant *mutant;

    tcase_set_timeout(tcase, 60);
    for (int i = 0; (mutant = subject_at(i).mutant) != NULL; i++)
        case_list_add(tcase, mutant->clause, mutant->variant, case_run, i);
    return case_list_run("mutants", tcase);
}
