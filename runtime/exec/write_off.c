/* SPDX-License-Identifier: Apache-2.0 */
/* Writes threads off that do not return from a job that was given up.
 *
 * Happy path:  a job is given up while it runs -> it returns soon: nothing else
 *              happens.
 *
 * What can fail: it does not return, and other jobs wait while the lane is at
 *              its cap. The thread is written off, and one more may start. When
 *              the job returns after all, the thread counts again, and the lane
 *              has one too many: the first thread without a job exits.
 *
 * On close:    a thread that is written off is one of those that are inside a
 *              job: exec/pool.c abandons it if it does not return. */
#include "exec/write_off.h"

#include "base/clock.h"
#include "base/time_limits.h"

/* ---- what runtimes are notified of -------------------------------------- */

/* The queue of which a turn in `place` is linked into the rounds of a lane. */
static struct uva__jobs *jobs_of(struct uva__link *link, int lane, int place)
{
    struct uva__fair_queue_turn *turn =
        uva__container_of(link, struct uva__fair_queue_turn, link);
    struct uva__fair_queue_client *client =
        uva__container_of(turn - place, struct uva__fair_queue_client, turns);

    return uva__container_of(client - lane, struct uva__jobs, locked.clients);
}

void uva__write_off_report_locked(struct uva__jobs *jobs, enum uva__news news)
{
    const unsigned before = jobs->locked.news;

    jobs->locked.news = before | news;
    if (before != jobs->locked.news && jobs->notify != NULL)
        jobs->notify(jobs);
}

void uva__write_off_retry_locked(struct uva_workers *workers, int lane)
{
    const struct uva__fair_queue *round = &workers->locked.classes[lane].round;

    for (int place = 0; place < UVA__PLACES; place++)
        for (struct uva__link *link = round->rounds[place].head; link != NULL;
             link = link->next)
            uva__write_off_report_locked(jobs_of(link, lane, place),
                                         UVA__NEWS_RETRY);
}

/* Reports to the queue of the job that is next. */
static void report_locked(struct uva_workers *workers, int lane,
                          enum uva__news news)
{
    const struct uva__fair_queue *round = &workers->locked.classes[lane].round;
    const int place = uva__fair_queue_first(round);

    uva__write_off_report_locked(
        jobs_of(round->rounds[place].head, lane, place), news);
}

/* ---- jobs that were given up -------------------------------------------- */

struct uva__worker *
uva__write_off_find_locked(const struct uva__pool_class *pool_class,
                           const struct uva_job *job)
{
    struct uva__link *link = pool_class->workers.head;
    struct uva__worker *worker;

    for (; link != NULL; link = link->next) {
        worker = uva__container_of(link, struct uva__worker, link);
        if (worker->job == job)
            return worker;
    }
    return NULL;
}

static struct uva__pool_class *class_of(const struct uva__worker *worker)
{
    return &worker->workers->locked.classes[worker->lane];
}

void uva__write_off_begin_locked(struct uva__worker *worker)
{
    if (worker->given_up)
        return;
    worker->given_up = true;
    worker->given_up_ns = uva__clock_ns();
    uva__list_push(&class_of(worker)->given_up, &worker->given);
    class_of(worker)->may_return++;
}

void uva__write_off_end_locked(struct uva__worker *worker)
{
    if (!worker->given_up)
        return;
    if (worker->written_off) {
        class_of(worker)->written_off--;
    } else {
        uva__list_remove(&class_of(worker)->given_up, &worker->given);
        class_of(worker)->may_return--;
    }
    worker->given_up = worker->written_off = false;
}

/* The thread that was given up first. One that is blocked does not count
 * against the cap anyway. */
static struct uva__worker *
class_oldest_locked(const struct uva__pool_class *pool_class)
{
    struct uva__link *link = pool_class->given_up.head;
    struct uva__worker *worker;

    for (; link != NULL; link = link->next) {
        worker = uva__container_of(link, struct uva__worker, given);
        if (!worker->blocked)
            return worker;
    }
    return NULL;
}

bool uva__write_off_next_locked(struct uva_workers *workers, int lane)
{
    const uint64_t limit_ns = (uint64_t)UVA__LIMIT_GIVEN_UP_MS * 1000000;
    struct uva__pool_class *pool_class = &workers->locked.classes[lane];
    struct uva__worker *worker = class_oldest_locked(pool_class);

    if (worker == NULL)
        return false;
    if (pool_class->written_off >= workers->stuck_threads) {
        if (!workers->locked.full)
            report_locked(workers, lane, UVA__NEWS_FULL);
        workers->locked.full = true;
        return false;
    }
    if (uva__clock_ns() < worker->given_up_ns + limit_ns) {
        uva__write_off_retry_locked(workers, lane);
        return false;
    }
    uva__list_remove(&pool_class->given_up, &worker->given);
    pool_class->may_return--;
    worker->written_off = true;
    pool_class->written_off++;
    report_locked(workers, lane, UVA__NEWS_WRITTEN_OFF);
    return true;
}
