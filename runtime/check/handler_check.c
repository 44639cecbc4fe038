/* SPDX-License-Identifier: Apache-2.0 */
/* The check of an async stream, as the user sees it: put in front of a handler,
 * and concluded. It makes, connects and frees the parts; the calls pass through
 * checked_handler.c and checked_producer.c. */
#include "check/handler_check.h"

#include <assert.h>
#include <errno.h>

#include "arrow/structs.h"
#include "check/checked_handler.h"
#include "check/checked_producer.h"
#include "check/checked_task.h"

/* ---- idle --------------------------------------------------------------- */

static void handler_check_free(struct uva__checked *c)
{
    uva__checked_tasks_fini(c);
    uva__checked_free(c);
}

static void handler_check_on_idle(struct uva__checked *c)
{
    if (c->quarantine != NULL)
        uva__quarantine_put(c->quarantine, &c->quarantined, sizeof(*c));
    else
        handler_check_free(c);
}

static void handler_check_expire(struct uva__quarantined *block)
{
    struct uva__checked *c =
        uva__container_of(block, struct uva__checked, quarantined);

    if (uva__checked_expire(c))
        handler_check_free(c);
}

int uva__handler_check_quarantine(const struct uva_allocator *allocator,
                                  size_t capacity, struct uva__quarantine **out)
{
    return uva__quarantine_new(allocator, capacity, handler_check_expire, out);
}

/* ---- begin -------------------------------------------------------------- */

/* Reports that a function of a handler is NULL, by a reporter that takes
 * no argument. */
static void report_missing_function(const struct uva_check *options,
                                    const struct uva_error *why)
{
    struct uva_check borrowed = {.name = NULL};
    struct uva__reporter *reporter;

    if (options != NULL)
        borrowed = *options;
    borrowed.free_ctx = NULL;
    if (uva__reporter_new(&borrowed, &reporter, NULL) != 0)
        return;
    uva__reporter_breach(reporter, "AH-02", UVA_PARTY_CONSUMER, "%s",
                         why->message);
    uva__reporter_release(reporter);
}

int uva__handler_check_within(const struct uva__check_times *times,
                              struct ArrowAsyncDeviceStreamHandler *handler,
                              const struct uva_check *options,
                              struct ArrowAsyncDeviceStreamHandler **out,
                              struct uva_error *error)
{
    struct uva_error why = {0};
    struct uva__checked *c;
    int code = uva__structs_check_handler(handler, &why);

    if (code != 0) {
        report_missing_function(options, &why);
        return uva_error_set(error, code, "%s", why.message);
    }
    code = uva__checked_new(options, times, handler_check_on_idle, &c, error);
    if (code != 0)
        return code;
    uva__checked_tasks_init(c);
    uva__checked_producer_init(c);
    uva__checked_handler_init(c, handler);
    *out = &c->handler;
    return 0;
}

int uva_check_handler(struct ArrowAsyncDeviceStreamHandler *handler,
                      const struct uva_check *options,
                      struct ArrowAsyncDeviceStreamHandler **out,
                      struct uva_error *error)
{
    return uva__handler_check_within(NULL, handler, options, out, error);
}

int uva__handler_check(struct uva__quarantine *quarantine,
                       struct ArrowAsyncDeviceStreamHandler *handler,
                       const struct uva_check *options,
                       struct ArrowAsyncDeviceStreamHandler **out,
                       struct uva_error *error)
{
    const int code = uva_check_handler(handler, options, out, error);

    if (code != 0)
        return code;
    uva__quarantine_acquire(quarantine);
    uva__checked_handler_stream(*out)->quarantine = quarantine;
    return 0;
}

struct ArrowAsyncDeviceStreamHandler *
uva_check_withdraw(struct ArrowAsyncDeviceStreamHandler *checked)
{
    struct uva__checked *c = uva__checked_handler_stream(checked);
    struct ArrowAsyncDeviceStreamHandler *real = c->real;

    real->producer = NULL;
    uva__lock_take(&c->lock);
    (void)uva__checker_state_close(&c->locked.protocol);
    uva__checked_drop_unlock(c);
    return real;
}

/* ---- conclude ----------------------------------------------------------- */

/* Reports the missing calls. Returns whether the consumer's handler was never
 * released; then it will not be. */
static bool conclude_check(struct uva__checked *c)
{
    struct uva__findings findings;
    int64_t held, first;
    bool forgotten;

    findings.count = 0;
    uva__lock_take(&c->lock);
    held = uva__checked_tasks_held_locked(c, &first);
    uva__checker_state_conclude(&c->locked.protocol,
                                c->handler.producer != NULL, held, first,
                                &findings);
    forgotten = uva__checker_state_close(&c->locked.protocol);
    c->locked.refs -= held; /* they will not be extracted either */
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
    return forgotten;
}

int64_t uva_check_conclude(struct ArrowAsyncDeviceStreamHandler *checked)
{
    struct uva__checked *c = uva__checked_handler_stream(checked);
    const bool forgotten = conclude_check(c);
    int64_t breaches;

    assert(c->keep);
    (void)uva__reporter_settle(c->reporter);
    breaches = uva__reporter_count(c->reporter);
    if (forgotten)
        uva__checked_release_now(c);
    uva__lock_take(&c->lock);
    uva__checked_drop_unlock(c);
    return breaches;
}
