/* SPDX-License-Identifier: Apache-2.0 */
/* Loads a subject by dlopen(). */
#include "tck/subject.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <string.h>

/* Finds an entry point, or gives NULL. POSIX lets a function pointer be stored
 * in a void pointer; ISO C does not, hence the copy. */
static void subject_find(void *library, const char *name, void *function)
{
    void *found = dlsym(library, name);

    memcpy(function, &found, sizeof(found));
}

static void subject_find_all(struct uva__subject *subject, void *library)
{
    subject_find(library, "uva_subject_version", &subject->version);
    subject_find(library, "uva_subject_produce", &subject->produce);
    subject_find(library, "uva_subject_consume", &subject->consume);
    subject_find(library, "uva_subject_report", &subject->outcome);
    subject_find(library, "uva_subject_open", &subject->open);
    subject_find(library, "uva_subject_count", &subject->count);
    subject_find(library, "uva_subject_knows", &subject->knows);
}

int uva__subject_load(struct uva__subject *subject, const char *file,
                      struct uva_error *error)
{
    void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    int32_t version;

    *subject = (struct uva__subject){0};
    if (library == NULL)
        return uva_error_set(error, EINVAL, "cannot be loaded: %s", dlerror());
    subject_find_all(subject, library);
    if (subject->version == NULL)
        return uva_error_set(error, EINVAL,
                             "%s is no subject: it exports no "
                             "uva_subject_version(); see uvarrow/tck.h",
                             file);
    version = subject->version();
    if (version != UVA_SUBJECT_VERSION)
        return uva_error_set(error, EINVAL,
                             "%s has entry points of version %" PRId32
                             ", not %d: build it "
                             "against this uvarrow/tck.h",
                             file, version, UVA_SUBJECT_VERSION);
    if (uva__subject_roles(subject) == 0)
        return uva_error_set(error, EINVAL,
                             "%s plays no role: it exports none of "
                             "uva_subject_produce(), uva_subject_consume() "
                             "with uva_subject_report(), uva_subject_open()",
                             file);
    return 0;
}

unsigned uva__subject_roles(const struct uva__subject *subject)
{
    unsigned roles = 0;

    if (subject->produce != NULL)
        roles |= UVA_TCK_PRODUCER;
    if (subject->consume != NULL && subject->outcome != NULL)
        roles |= UVA_TCK_HANDLER;
    if (subject->open != NULL)
        roles |= UVA_TCK_STREAM;
    return roles;
}

/* ---- calls -------------------------------------------------------------- */

/* Returns whether entry `number` of a list existed when the subject was
 * written. Subjects without uva_subject_knows() have those of its first form,
 * which end with `usual`. */
static bool subject_knows(const struct uva__subject *subject,
                          enum uva_subject_list what, int32_t number,
                          int32_t usual)
{
    const int32_t last = subject->knows != NULL ? subject->knows((int32_t)what)
                                                : UVA_SUBJECT_CANNOT;

    return number <= (last != UVA_SUBJECT_CANNOT ? last : usual);
}

static bool subject_knows_plan(const struct uva__subject *subject,
                               enum uva_subject_plan plan)
{
    return subject_knows(subject, UVA_SUBJECT_PLANS, (int32_t)plan,
                         UVA_SUBJECT_TAGGED_FAILS);
}

int32_t uva__subject_produce(const struct uva__subject *subject,
                             enum uva_subject_plan plan, int64_t batches,
                             int64_t at,
                             struct ArrowAsyncDeviceStreamHandler *handler)
{
    return subject_knows_plan(subject, plan)
               ? subject->produce((int32_t)plan, batches, at, handler)
               : UVA_SUBJECT_CANNOT;
}

int32_t uva__subject_consume(const struct uva__subject *subject,
                             enum uva_subject_manner manner, int64_t k,
                             int64_t *id,
                             struct ArrowAsyncDeviceStreamHandler **handler)
{
    return subject_knows(subject, UVA_SUBJECT_MANNERS, (int32_t)manner,
                         UVA_SUBJECT_HOLDS)
               ? subject->consume((int32_t)manner, k, id, handler)
               : UVA_SUBJECT_CANNOT;
}

int32_t uva__subject_open(const struct uva__subject *subject,
                          enum uva_subject_plan plan, int64_t batches,
                          struct ArrowDeviceArrayStream *out)
{
    return subject_knows_plan(subject, plan)
               ? subject->open((int32_t)plan, batches, 0, out)
               : UVA_SUBJECT_CANNOT;
}
