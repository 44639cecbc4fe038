/* SPDX-License-Identifier: Apache-2.0 */
/* Happy path:  recorded in on_schema -> request and cancel are checked, and
 *              passed on with no lock held.
 *
 * Failures:    none. A call before on_schema is delayed until then, as the
 *              producer is not known; a call after release was entered is not
 *              passed on, as the producer may be freed. */
#include "check/checked_producer.h"

#include <inttypes.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/sum.h"
#include "check/layout_probe.h"
#include "uvarrow/arrow.h"

enum { METADATA_SMALL = 1024, METADATA_EVERY = 64 };

_Static_assert(offsetof(struct uva__checked, producer.private_data) -
                       offsetof(struct uva__checked, producer) ==
                   32,
               "where the printed layout has additional_metadata");
_Static_assert(offsetof(struct uva__checked, printed_private_data) -
                       offsetof(struct uva__checked, producer) ==
                   40,
               "where the printed layout has private_data");

/* ---- fields ------------------------------------------------------------- */

/* FNV-1a. */
static uint64_t sum_of(const char *bytes, size_t size)
{
    uint64_t sum = UINT64_C(0xcbf29ce484222325);

    for (size_t i = 0; i < size; i++)
        sum = (sum ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return sum;
}

/* Whether the object begins with a function pointer instead of a small number:
 * then it has the early layout without device_type, and its fields are
 * elsewhere. Padding may hold any value, a known type may not. The type lies
 * where an address has its lower half, or, if big-endian, its upper half: this
 * is at least 0x40 in Linux on s390x, which is beyond the first page of a
 * program. Clauses: AB-19. */
static bool is_of_old_layout(const struct ArrowAsyncProducer *real)
{
    const uint32_t type = (uint32_t)real->device_type;
    uint64_t first;
    uint32_t padding;

    memcpy(&first, real, sizeof(first));
    memcpy(&padding, (const char *)real + sizeof(type), sizeof(padding));
    return type > ((uint32_t)first == type ? 0xfff : 0x1f) && padding != 0 &&
           first >> 48 == 0;
}

static const char *metadata_of(const struct uva__checked *c,
                               const struct ArrowAsyncProducer *real)
{
    return uva__structs_producer_metadata(real, c->printed_layout);
}

/* Shows `size` bytes of metadata also to consumers that look for them where the
 * layout printed in the document has them. */
static void show_printed(struct uva__checked *c, const char *metadata,
                         size_t size)
{
    const size_t line = UVA__LAYOUT_PROBE_SIZE;
    char *room = uva__quarantine_alloc(&c->copies, 2 * line + size);

    if (room == NULL) {
        c->probe_address = (void *)(uintptr_t)metadata;
    } else {
        room += (line - (uintptr_t)room % line) % line;
        c->probe_address = uva__layout_probe_set((void *)room, c);
        memcpy(c->probe_address, metadata, size);
    }
    c->producer.private_data = c->probe_address;
}

static void adopt_metadata(struct uva__checked *c, const char *metadata,
                           struct uva__findings *seen)
{
    struct uva__checked_peer *peer = &c->peer;
    char *copy;

    c->producer.additional_metadata = metadata;
    if (uva__checked_metadata(metadata, &peer->size, seen) != 0 ||
        peer->size == 0) {
        peer->size = 0;
        return;
    }
    peer->sum = sum_of(metadata, peer->size);
    show_printed(c, metadata, peer->size);
    copy = uva__quarantine_alloc(&c->copies, peer->size);
    if (copy == NULL)
        return;
    memcpy(copy, metadata, peer->size);
    c->producer.additional_metadata = copy;
}

void uva__checked_producer_adopt(struct uva__checked *c,
                                 struct ArrowAsyncProducer *real,
                                 struct uva__findings *seen)
{
    struct uva__checked_peer *peer = &c->peer;

    peer->device_type = c->producer.device_type = real->device_type;
    peer->metadata = c->producer.additional_metadata = metadata_of(c, real);
    uva__atomic_ptr_store(&peer->producer, real);
    if (is_of_old_layout(real)) {
        uva__findings_add(seen, UVA__RULE_AB_19, 0);
        return;
    }
    if (real->request == NULL || real->cancel == NULL)
        uva__findings_add(seen, UVA__RULE_AB_17, 0);
    if (real->device_type == 0)
        uva__findings_add(seen, UVA__RULE_AP_01, 0);
    adopt_metadata(c, peer->metadata, seen);
}

/* Whether the bytes of its metadata are to be compared again: large ones only
 * at intervals. */
static bool metadata_is_due(struct uva__checked_peer *peer)
{
    return peer->size > 0 && (peer->size <= METADATA_SMALL ||
                              peer->comparisons++ % METADATA_EVERY == 0);
}

void uva__checked_producer_compare(struct uva__checked *c,
                                   struct ArrowAsyncProducer *real, bool alive,
                                   struct uva__findings *seen)
{
    struct uva__checked_peer *peer = &c->peer;
    const void *known = uva__atomic_ptr_load(&peer->producer);

    if (known == NULL || real == NULL)
        return;
    if (real != known) {
        uva__findings_add(seen, UVA__RULE_AH_29, 0);
        return;
    }
    if (!alive)
        return;
    if (real->device_type != peer->device_type)
        uva__findings_add(seen, UVA__RULE_AP_01, real->device_type);
    if (metadata_of(c, real) != peer->metadata)
        uva__findings_add(seen, UVA__RULE_AP_20, 0);
    else if (metadata_is_due(peer) &&
             sum_of(peer->metadata, peer->size) != peer->sum)
        uva__findings_add(seen, UVA__RULE_AP_19, 0);
}

/* ---- a call ------------------------------------------------------------- */

/* One call of the consumer. */
struct producer_call {
    struct uva__checked *stream;
    struct uva__active_call active_call;
    struct ArrowAsyncProducer *real; /* borrows: to call; or NULL */
    int64_t n;                       /* argument of request */
};

/* Returns the stream of the object, or of a copy of it, or of the object after
 * its private_data was altered, which is restored. `rule` gets the broken rule.
 */
static struct uva__checked *stream_of(struct ArrowAsyncProducer *self,
                                      enum uva__rule *rule)
{
    void *const found = uva__layout_probe_read(self->private_data);
    struct uva__checked *c = found;

    *rule = UVA__RULE_COUNT;
    if (c == NULL)
        c = uva__container_of(self, struct uva__checked, producer);
    if (self != &c->producer)
        *rule = UVA__RULE_AP_23;
    else if (found == NULL && self->private_data != c->probe_address) {
        *rule = UVA__RULE_AP_21;
        self->private_data = c->probe_address;
    }
    return c;
}

/* Returns the producer to call now; NULL delays the call. */
static struct ArrowAsyncProducer *call_target_locked(struct producer_call *call)
{
    struct uva__checked *c = call->stream;
    struct ArrowAsyncProducer *real = uva__atomic_ptr_load(&c->peer.producer);
    int64_t *early = &c->locked.early_request;

    if (real != NULL)
        return real;
    if (call->active_call.call == UVA__CALL_CANCEL)
        c->locked.early_cancel = true;
    else if (call->n < 1 || *early < 0)
        *early = -1;
    else
        *early = uva__sum(*early, call->n);
    return NULL;
}

static bool check_locked(struct producer_call *call,
                         const struct uva__call_context *context,
                         struct uva__findings *findings)
{
    struct uva__checker_state *protocol = &call->stream->locked.protocol;

    if (call->active_call.call == UVA__CALL_CANCEL)
        return uva__checker_state_cancel(protocol, context,
                                         call->active_call.thread, findings);
    return uva__checker_state_request(protocol, call->n, context, findings);
}

static void producer_begin(struct producer_call *call, enum uva__rule rule)
{
    struct uva__checked *c = call->stream;
    struct uva__findings findings;
    struct uva__call_context context;

    findings.count = 0;
    uva__lock_take(&c->lock);
    context = uva__checked_enter_locked(c, &call->active_call);
    if (rule != UVA__RULE_COUNT)
        uva__checker_state_find(&c->locked.protocol, &findings, rule, 0);
    if (check_locked(call, &context, &findings))
        call->real = call_target_locked(call);
    uva__lock_drop(&c->lock);
    uva__checked_report_all(c, &findings);
}

static void producer_pass_on(const struct producer_call *call)
{
    struct ArrowAsyncProducer *real = call->real;

    if (call->active_call.call == UVA__CALL_CANCEL) {
        if (real->cancel != NULL)
            real->cancel(real);
    } else if (real->request != NULL) {
        real->request(real, call->n);
    }
}

/* Ends a request inside a callback, which holds the reference. */
static void producer_end_inside(struct producer_call *call, int64_t took_ms)
{
    uva__active_calls_part(&call->active_call);
    if (took_ms > call->stream->times.slow_call_ms)
        uva__checked_report(call->stream, UVA__RULE_AP_28, took_ms);
}

static void producer_end(struct producer_call *call, int64_t took_ms)
{
    struct uva__checked *c = call->stream;
    struct uva__findings findings;

    findings.count = 0;
    uva__lock_take(&c->lock);
    if (call->active_call.call == UVA__CALL_CANCEL)
        uva__checker_state_cancelled(&c->locked.protocol);
    else
        uva__checker_state_requested(&c->locked.protocol, call->n);
    if (took_ms > c->times.slow_call_ms)
        uva__checker_state_find(&c->locked.protocol, &findings, UVA__RULE_AP_28,
                                took_ms);
    uva__checked_leave_unlock(c, &call->active_call, &findings);
}

static void producer_run(struct producer_call *call, enum uva__rule rule)
{
    struct uva__checked *c = call->stream;
    int64_t begun, took_ms = 0;

    uva__checked_perturb(c);
    producer_begin(call, rule);
    if (call->real != NULL) {
        begun = uva__checked_clock(c);
        producer_pass_on(call);
        took_ms = uva__checked_elapsed_ms(c, begun);
    }
    uva__checked_perturb(c);
    if (call->active_call.host != NULL)
        producer_end_inside(call, took_ms);
    else
        producer_end(call, took_ms);
}

/* ---- called by the consumer --------------------------------------------- */

static void producer_request(struct ArrowAsyncProducer *self, int64_t n)
{
    struct producer_call call = {.active_call.call = UVA__CALL_REQUEST, .n = n};
    enum uva__rule rule;

    call.stream = stream_of(self, &rule);
    uva__reporter_note(call.stream->reporter, "request(%" PRId64 ")", n, 0);
    producer_run(&call, rule);
}

static void producer_cancel(struct ArrowAsyncProducer *self)
{
    struct producer_call call = {.active_call.call = UVA__CALL_CANCEL};
    enum uva__rule rule;

    call.stream = stream_of(self, &rule);
    uva__reporter_note(call.stream->reporter, "cancel", 0, 0);
    producer_run(&call, rule);
}

void uva__checked_producer_init(struct uva__checked *c)
{
    c->probe_address = uva__layout_probe_set(&c->probe, c);
    c->producer = (struct ArrowAsyncProducer){.request = producer_request,
                                              .cancel = producer_cancel,
                                              .private_data = c->probe_address};
}

void uva__checked_producer_catch_up(struct uva__checked *c)
{
    struct ArrowAsyncProducer *real = uva__atomic_ptr_load(&c->peer.producer);
    int64_t n;
    bool cancel;

    uva__lock_take(&c->lock);
    n = c->locked.early_request;
    cancel = c->locked.early_cancel;
    c->locked.early_request = 0;
    c->locked.early_cancel = false;
    uva__lock_drop(&c->lock);
    if (real == NULL)
        return;
    if (n != 0 && real->request != NULL)
        real->request(real, n);
    if (cancel && real->cancel != NULL)
        real->cancel(real);
}
