/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking stream in front of another one. Each call is checked as it enters,
 * goes on to the inner stream with the check's storage, and the result of the
 * inner stream is checked and passed on.
 *
 * A call that overlaps another one, or comes after the release, is reported and
 * refused without touching the inner stream. A release that overlaps a call is
 * carried out at the end of that call. */
#include "check/device_stream_check.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "arrow/structs.h"
#include "base/memory.h"
#include "base/utf8.h"
#include "check/array_check.h"
#include "check/error_text.h"
#include "check/release_hook.h"
#include "check/reporter.h"
#include "check/schema_check.h"
#include "uvarrow/arrow.h"

#define BLOCKING_MAGIC UINT64_C(0x75617262636b6e67)
#define BLOCKING_ALIGN 64
#define BLOCKING_MARK  40 /* of `private_data`, in its proxy */

#define BLOCKING_UNSET    0xA5 /* storage that a producer has not filled */
#define BLOCKING_POISONED 0xDD /* storage that must not be read */

/* State of a stream, as bits of an atomic. */
#define BLOCKING_BUSY     UINT64_C(1) /* a call is running */
#define BLOCKING_RELEASED UINT64_C(2) /* release was called */

/* The call that get_last_error would describe. */
enum blocking_last {
    BLOCKING_NOTHING, /* no failed call */
    BLOCKING_FAILED,  /* the inner stream failed */
    BLOCKING_BROKE    /* success without a result to pass on */
};

/* The proxy that `private_data` of a checked stream points to. */
struct blocking {
    struct uva__quarantined block; /* first */
    uint64_t magic;
    struct uva__reporter *reporter; /* referenced until released */
    struct uva__atomic64 facts;
    struct ArrowDeviceArrayStream inner; /* owns: the inner stream */
    ArrowDeviceType first_type;          /* device type at hand-over */
    ArrowDeviceType device_type;         /* device type after the last call */
    struct ArrowSchema schema; /* owns: a copy of the first; may be released */
    bool schema_seen;          /* the first was checked */
    enum blocking_last last;
    int64_t chunks; /* chunks received */
    struct uva__error_texts texts;
};

/* ---- a call enters ------------------------------------------------------ */

/* Returns the proxy of `self`; NULL if it has no proxy. */
static struct blocking *blocking_find(const struct ArrowDeviceArrayStream *self)
{
    const uintptr_t low = (uintptr_t)self->private_data % BLOCKING_ALIGN;
    struct blocking *proxy;

    if ((uintptr_t)self->private_data < BLOCKING_ALIGN)
        return NULL;
    proxy = (void *)((char *)self->private_data - low);
    if (proxy->magic != BLOCKING_MAGIC)
        return NULL;
    if (low != BLOCKING_MARK)
        uva__reporter_breach(proxy->reporter, "DS-17", 0,
                             "private_data was changed by %d",
                             (int)low - BLOCKING_MARK);
    return proxy;
}

/* Enters a call. Returns NULL if it is refused. */
static struct blocking *blocking_enter(struct ArrowDeviceArrayStream *self,
                                       const char *call)
{
    struct blocking *proxy = blocking_find(self);
    uint64_t facts;

    if (proxy == NULL)
        return NULL;
    uva__reporter_note(proxy->reporter, call, 0, 0);
    uva__reporter_perturb(proxy->reporter);
    facts = self->release == NULL
                ? BLOCKING_RELEASED
                : uva__atomic64_or(&proxy->facts, BLOCKING_BUSY);
    if (facts & BLOCKING_RELEASED) {
        uva__reporter_breach(proxy->reporter, "DS-06", 0,
                             "%s on a released stream", call);
        return NULL;
    }
    if (facts & BLOCKING_BUSY) {
        uva__reporter_breach(proxy->reporter, "DS-16", 0,
                             "%s while another call runs", call);
        return NULL;
    }
    uva__error_texts_poison(&proxy->texts);
    return proxy;
}

/* ---- the end ------------------------------------------------------------ */

/* Releases the inner stream. The rest of the proxy goes to the reporter's
 * quarantine, for late calls. */
static void blocking_end(struct blocking *proxy)
{
    struct uva__reporter *reporter = proxy->reporter;

    proxy->inner.release(&proxy->inner);
    if (proxy->inner.release != NULL)
        uva__reporter_breach(reporter, "DS-15", 0,
                             "release did not mark the stream");
    uva_schema_release(&proxy->schema);
    uva__error_texts_fini(&proxy->texts, uva__reporter_quarantine(reporter));
    uva__quarantine_put(uva__reporter_quarantine(reporter), &proxy->block,
                        sizeof(*proxy));
    uva__reporter_release(reporter);
}

/* Leaves a call. */
static void blocking_leave(struct blocking *proxy)
{
    if (proxy->inner.device_type != proxy->device_type) {
        uva__reporter_breach(proxy->reporter, "DS-05", 0,
                             "device_type was %" PRId32 " and is %" PRId32,
                             proxy->device_type, proxy->inner.device_type);
        proxy->device_type = proxy->inner.device_type;
    }
    uva__reporter_perturb(proxy->reporter);
    if (uva__atomic64_and(&proxy->facts, ~BLOCKING_BUSY) & BLOCKING_RELEASED)
        blocking_end(proxy);
}

static void blocking_release(struct ArrowDeviceArrayStream *self)
{
    struct blocking *proxy = blocking_find(self);
    uint64_t facts;

    if (proxy == NULL)
        return;
    uva__reporter_note(proxy->reporter, "release()", 0, 0);
    uva__reporter_perturb(proxy->reporter);
    facts = self->release == NULL
                ? BLOCKING_RELEASED
                : uva__atomic64_or(&proxy->facts, BLOCKING_RELEASED);
    self->release = NULL;
    if (facts & BLOCKING_RELEASED)
        uva__reporter_breach(proxy->reporter, "DS-14", 0,
                             "release of a released stream");
    else if (facts & BLOCKING_BUSY)
        uva__reporter_breach(proxy->reporter, "DS-16", 0,
                             "release while another call runs");
    else
        blocking_end(proxy);
}

/* ---- results ------------------------------------------------------------ */

/* Whether a producer left `release` as the storage was filled before. */
static bool blocking_is_unset(const void *release)
{
    static const unsigned char UNSET[] = {
        BLOCKING_UNSET, BLOCKING_UNSET, BLOCKING_UNSET, BLOCKING_UNSET,
        BLOCKING_UNSET, BLOCKING_UNSET, BLOCKING_UNSET, BLOCKING_UNSET};

    static_assert(sizeof(UNSET) >= sizeof(void (*)(void)), "wide enough");
    return memcmp(release, UNSET, sizeof(void (*)(void))) == 0;
}

/* Reports a failed call; `left`: it gave something nevertheless. */
static int blocking_fail(struct blocking *proxy, const char *call, int code,
                         bool left)
{
    proxy->last = BLOCKING_FAILED;
    uva__reporter_note(proxy->reporter, "it fails with %" PRId64, code, 0);
    if (code < 0)
        uva__reporter_breach(proxy->reporter, "DS-07", 0, "%s returned %d",
                             call, code);
    if (left)
        uva__reporter_breach(proxy->reporter, "DS-19", UVA_PARTY_PRODUCER,
                             "%s returned %d and gave something", call, code);
    return code;
}

/* Reports a call that succeeded and gave no result that could be passed on. */
static int blocking_break(struct blocking *proxy, const char *clause,
                          const char *what)
{
    proxy->last = BLOCKING_BROKE;
    uva__reporter_breach(proxy->reporter, clause, UVA_PARTY_PRODUCER, "%s",
                         what);
    return EPROTO;
}

/* ---- the schema --------------------------------------------------------- */

/* Checks the first schema, and compares later ones with it. */
static void device_stream_check_schema(struct blocking *proxy,
                                       const struct ArrowSchema *schema)
{
    struct uva__tree_walk walk;

    if (!proxy->schema_seen) {
        proxy->schema_seen = true;
        uva__tree_walk_init(&walk, proxy->reporter);
        uva__schema_check(&walk, schema);
        (void)!uva__structs_copy_schema(
            &uva__reporter_options(proxy->reporter)->allocator, schema,
            &proxy->schema);
    } else if (proxy->schema.release != NULL &&
               !uva__schema_equals(&proxy->schema, schema)) {
        uva__reporter_breach(proxy->reporter, "DS-21", 0,
                             "get_schema gave another schema than before");
    }
}

static int blocking_fetch_schema(struct blocking *proxy,
                                 struct ArrowSchema *got)
{
    int code;

    memset(got, BLOCKING_UNSET, sizeof(*got));
    code = proxy->inner.get_schema(&proxy->inner, got);
    if (code != 0)
        return blocking_fail(proxy, "get_schema", code,
                             got->release != NULL &&
                                 !blocking_is_unset(&got->release) &&
                                 !uva__release_hook_schema_is_trap(got));
    if (got->release == NULL || blocking_is_unset(&got->release))
        return blocking_break(proxy, "AB-17",
                              "get_schema succeeded without a schema");
    proxy->last = BLOCKING_NOTHING;
    uva__reporter_note(proxy->reporter, "it gives a schema", 0, 0);
    device_stream_check_schema(proxy, got);
    return 0;
}

static int blocking_get_schema(struct ArrowDeviceArrayStream *self,
                               struct ArrowSchema *out)
{
    struct blocking *proxy = blocking_enter(self, "get_schema()");
    struct ArrowSchema got;
    int code;

    if (proxy == NULL)
        return EINVAL;
    code = blocking_fetch_schema(proxy, &got);
    if (code == 0) { /* without memory for a hook it goes unchecked */
        uva_schema_move(&got, out);
        (void)!uva__release_hook_schema(proxy->reporter, out, 0);
    } else {
        uva__release_hook_trap_schema(proxy->reporter, out, "DS-19");
    }
    blocking_leave(proxy);
    return code;
}

/* ---- chunks ------------------------------------------------------------- */

static void device_stream_check_chunk(struct blocking *proxy,
                                      const struct ArrowDeviceArray *chunk)
{
    const bool known = proxy->schema.release != NULL;
    struct uva__tree_walk walk;

    uva__tree_walk_init(&walk, proxy->reporter);
    if (chunk->device_type > 0 && proxy->first_type > 0 &&
        chunk->device_type != proxy->first_type)
        uva__reporter_breach(proxy->reporter, "DS-03", 0,
                             "chunk %" PRId64 " is of device type %" PRId32
                             ", the stream of %" PRId32,
                             proxy->chunks, chunk->device_type,
                             proxy->first_type);
    uva__array_check(&walk, known ? &proxy->schema : NULL, chunk, "DS-01");
}

static int blocking_fetch_chunk(struct blocking *proxy,
                                struct ArrowDeviceArray *got)
{
    int code;

    memset(got, BLOCKING_UNSET, sizeof(*got));
    code = proxy->inner.get_next(&proxy->inner, got);
    if (code != 0)
        return blocking_fail(proxy, "get_next", code,
                             got->array.release != NULL &&
                                 !blocking_is_unset(&got->array.release) &&
                                 !uva__release_hook_array_is_trap(&got->array));
    if (blocking_is_unset(&got->array.release))
        return blocking_break(proxy, "DS-02",
                              "get_next succeeded without a result");
    proxy->last = BLOCKING_NOTHING;
    if (!uva_array_is_live(got)) {
        uva__reporter_note(proxy->reporter, "it gives the end", 0, 0);
        memset(got, BLOCKING_POISONED, sizeof(*got));
        got->array.release = NULL;
        return 0;
    }
    uva__reporter_note(proxy->reporter, "it gives chunk %" PRId64,
                       proxy->chunks, 0);
    device_stream_check_chunk(proxy, got);
    memset(got->reserved, 0, sizeof(got->reserved)); /* perhaps the fill */
    return 0;
}

static int blocking_get_next(struct ArrowDeviceArrayStream *self,
                             struct ArrowDeviceArray *out)
{
    struct blocking *proxy = blocking_enter(self, "get_next()");
    struct ArrowDeviceArray got;
    int code;

    if (proxy == NULL)
        return EINVAL;
    code = blocking_fetch_chunk(proxy, &got);
    if (code == 0) {
        uva_array_move(&got, out);
        if (uva_array_is_live(out))
            (void)!uva__release_hook_array(proxy->reporter, &out->array,
                                           proxy->chunks++);
    } else {
        uva__release_hook_trap_array(proxy->reporter, &out->array, "DS-19");
    }
    blocking_leave(proxy);
    return code;
}

/* ---- error text --------------------------------------------------------- */

static const char *blocking_fetch_text(struct blocking *proxy)
{
    const char *text;

    if (proxy->last == BLOCKING_BROKE)
        return "the stream succeeded without giving anything";
    if (proxy->last != BLOCKING_FAILED)
        uva__reporter_breach(proxy->reporter, "DS-10", 0,
                             "get_last_error though no call failed before");
    text = proxy->inner.get_last_error(&proxy->inner);
    if (text == NULL)
        return NULL;
    if (!uva__utf8_is_sound(text))
        uva__reporter_breach(proxy->reporter, "DS-11", 0,
                             "the error text is no UTF-8");
    return uva__error_texts_copy(&proxy->texts, text);
}

static const char *blocking_get_last_error(struct ArrowDeviceArrayStream *self)
{
    struct blocking *proxy = blocking_enter(self, "get_last_error()");
    const char *text;

    if (proxy == NULL)
        return NULL;
    text = blocking_fetch_text(proxy);
    blocking_leave(proxy);
    return text;
}

/* ---- start and end ------------------------------------------------------ */

/* Puts the proxy in the place of the stream. */
static void blocking_put(struct blocking *proxy,
                         struct ArrowDeviceArrayStream *stream)
{
    proxy->magic = BLOCKING_MAGIC;
    proxy->inner = *stream;
    proxy->first_type = proxy->device_type = stream->device_type;
    *stream = (struct ArrowDeviceArrayStream){
        .device_type = proxy->device_type,
        .get_schema = blocking_get_schema,
        .get_next = blocking_get_next,
        .get_last_error = blocking_get_last_error,
        .release = blocking_release,
        .private_data = (char *)proxy + BLOCKING_MARK};
    if (proxy->device_type <= 0)
        uva__reporter_breach(proxy->reporter, "DS-05", 0,
                             "device_type is %" PRId32, proxy->device_type);
}

int uva__device_stream_check(struct uva__reporter *reporter,
                             struct ArrowDeviceArrayStream *stream,
                             struct uva_error *error)
{
    struct uva_error why;
    struct blocking *proxy;
    const int code = uva__structs_check_device_stream(stream, &why);

    if (code != 0) {
        if (stream != NULL && stream->release != NULL)
            uva__reporter_breach(reporter, "AB-17", UVA_PARTY_PRODUCER, "%s",
                                 why.message);
        return uva_error_set(error, code, "check: %s", why.message);
    }
    proxy = uva__memory_new_aligned(&uva__reporter_options(reporter)->allocator,
                                    sizeof(*proxy), BLOCKING_ALIGN);
    if (proxy == NULL)
        return uva_error_set(error, ENOMEM, "check: no memory");
    proxy->reporter = uva__reporter_acquire(reporter);
    uva__error_texts_init(&proxy->texts,
                          &uva__reporter_options(reporter)->allocator);
    blocking_put(proxy, stream);
    return 0;
}

int uva_check_device_stream(struct ArrowDeviceArrayStream *stream,
                            const struct uva_check *options,
                            struct uva_error *error)
{
    struct uva__reporter *reporter;
    int code = uva__reporter_new(options, &reporter, error);

    if (code != 0)
        return code;
    uva__reporter_set_once(reporter);
    code = uva__device_stream_check(reporter, stream, error);
    if (code != 0)
        uva__reporter_free_unused(reporter);
    else if (!uva__reporter_options(reporter)->keep)
        uva__reporter_release(reporter);
    return code;
}

int64_t uva_check_conclude_device_stream(struct ArrowDeviceArrayStream *stream)
{
    struct blocking *proxy = blocking_find(stream);
    struct uva__reporter *reporter;
    int64_t count;

    if (proxy == NULL)
        return 0;
    reporter = proxy->reporter;
    if (!uva__reporter_options(reporter)->keep)
        (void)uva__reporter_acquire(reporter);
    stream->release = NULL;
    if (!(uva__atomic64_or(&proxy->facts, BLOCKING_RELEASED) &
          BLOCKING_RELEASED)) {
        uva__reporter_breach_as(reporter, "DS-14", UVA_SEVERITY_ERROR,
                                "the stream was never released");
        blocking_end(proxy);
    }
    (void)uva__reporter_settle(reporter);
    count = uva__reporter_count(reporter);
    uva__reporter_release(reporter);
    return count;
}
