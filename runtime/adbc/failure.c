/* SPDX-License-Identifier: Apache-2.0 */
/* A driver's report of a failure: its status, SQLSTATE, vendor code and details
 * become metadata, which outcomes and handlers receive. */
#include "adbc/failure.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "uvarrow/arrow.h"

enum {
    DETAILS_MAX = 64, /* of a driver's details, the first */
    PAIRS_MAX = DETAILS_MAX + 5,
    KEY_SIZE = 128 /* of a detail's name; a longer one is cut */
};

static const struct {
    const char *name;
    int code;
} statuses[] = {
    [ADBC_STATUS_OK] = {"OK", 0},
    [ADBC_STATUS_UNKNOWN] = {"UNKNOWN", EIO},
    [ADBC_STATUS_NOT_IMPLEMENTED] = {"NOT_IMPLEMENTED", ENOTSUP},
    [ADBC_STATUS_NOT_FOUND] = {"NOT_FOUND", ENOENT},
    [ADBC_STATUS_ALREADY_EXISTS] = {"ALREADY_EXISTS", EEXIST},
    [ADBC_STATUS_INVALID_ARGUMENT] = {"INVALID_ARGUMENT", EINVAL},
    [ADBC_STATUS_INVALID_STATE] = {"INVALID_STATE", EBUSY},
    [ADBC_STATUS_INVALID_DATA] = {"INVALID_DATA", EIO},
    [ADBC_STATUS_INTEGRITY] = {"INTEGRITY", EIO},
    [ADBC_STATUS_INTERNAL] = {"INTERNAL", EIO},
    [ADBC_STATUS_IO] = {"IO", EIO},
    [ADBC_STATUS_CANCELLED] = {"CANCELLED", ECANCELED},
    [ADBC_STATUS_TIMEOUT] = {"TIMEOUT", ETIMEDOUT},
    [ADBC_STATUS_UNAUTHENTICATED] = {"UNAUTHENTICATED", EACCES},
    [ADBC_STATUS_UNAUTHORIZED] = {"UNAUTHORIZED", EACCES},
};

/* A later version of ADBC may have more. */
static AdbcStatusCode status_known(AdbcStatusCode status)
{
    return status < sizeof(statuses) / sizeof(*statuses) ? status
                                                         : ADBC_STATUS_UNKNOWN;
}

/* ---- metadata ----------------------------------------------------------- */

/* Pairs while they are collected, and the texts that they borrow. */
struct notes {
    struct uva_pair pairs[PAIRS_MAX + 1]; /* and their end */
    size_t count;
    char vendor_code[16];
    char sqlstate[6];
    char keys[DETAILS_MAX][KEY_SIZE];
};

static void notes_add(struct notes *notes, const char *key, const char *value,
                      size_t size)
{
    notes->pairs[notes->count++] = (struct uva_pair){
        .key = key, .value = size > 0 ? value : "", .value_size = size};
}

static void notes_add_details(struct notes *notes,
                              const struct AdbcError *error,
                              const struct AdbcDriver *driver)
{
    struct AdbcErrorDetail detail;
    int count;

    if (error->vendor_code != ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA ||
        error->private_data == NULL || /* the driver has not filled it in */
        driver->ErrorGetDetailCount == NULL || driver->ErrorGetDetail == NULL)
        return;
    count = driver->ErrorGetDetailCount(error);
    for (int i = 0; i < count && i < DETAILS_MAX; i++) {
        detail = driver->ErrorGetDetail(error, i);
        if (detail.key == NULL ||
            (detail.value == NULL && detail.value_length > 0))
            continue;
        (void)snprintf(notes->keys[i], KEY_SIZE, "adbc.detail.%s", detail.key);
        notes_add(notes, notes->keys[i], (const char *)detail.value,
                  detail.value_length);
    }
}

/* Gives the block, which the caller frees, or NULL without memory. */
static char *notes_encode(const struct notes *notes)
{
    size_t size = 0;
    char *block;

    (void)!uva_metadata_encode(notes->pairs, NULL, &size);
    block = malloc(size);
    if (block != NULL && uva_metadata_encode(notes->pairs, block, &size) != 0) {
        free(block); /* details of 2 GiB */
        block = NULL;
    }
    return block;
}

/* Whether the text of `error` was cut in `set`, after "what: ". */
static bool text_is_cut(const struct uva_error *set, const char *what,
                        const struct AdbcError *error)
{
    return error->message != NULL &&
           strlen(what) + 2 + strlen(error->message) >= sizeof(set->message);
}

static char *notes_of(AdbcStatusCode status, const struct AdbcError *error,
                      const struct AdbcDriver *driver, bool has_text)
{
    struct notes *notes = calloc(1, sizeof(*notes));
    const char *name = statuses[status_known(status)].name;
    char *block;

    if (notes == NULL)
        return NULL;
    notes_add(notes, "adbc.status", name, strlen(name));
    memcpy(notes->sqlstate, error->sqlstate, sizeof(error->sqlstate));
    if (notes->sqlstate[0] != '\0')
        notes_add(notes, "adbc.sqlstate", notes->sqlstate,
                  strlen(notes->sqlstate));
    if (error->vendor_code != 0 &&
        error->vendor_code != ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA) {
        (void)snprintf(notes->vendor_code, sizeof(notes->vendor_code), "%d",
                       (int)error->vendor_code);
        notes_add(notes, "adbc.vendor_code", notes->vendor_code,
                  strlen(notes->vendor_code));
    }
    if (has_text)
        notes_add(notes, "adbc.message", error->message,
                  strlen(error->message));
    notes_add_details(notes, error, driver);
    block = notes_encode(notes);
    free(notes);
    return block;
}

/* ---- failures ----------------------------------------------------------- */

struct AdbcError uva__adbc_error(struct AdbcDriver *driver)
{
    struct AdbcError error = ADBC_ERROR_INIT;

    error.private_driver = driver;
    return error;
}

void uva__adbc_error_drop(struct AdbcError *error)
{
    if (error->release != NULL)
        error->release(error);
    error->release = NULL;
}

int uva__adbc_failure_copy(struct uva__adbc_failure *failure, const char *what,
                           AdbcStatusCode status, const struct AdbcError *error,
                           const struct AdbcDriver *driver)
{
    const int code = uva_error_set(
        &failure->error, statuses[status_known(status)].code, "%s: %s", what,
        error->message != NULL ? error->message : "the driver gives no reason");

    failure->error.vendor = "adbc";
    if (error->vendor_code != ADBC_ERROR_VENDOR_CODE_PRIVATE_DATA)
        failure->error.vendor_code = error->vendor_code;
    free(failure->metadata);
    failure->loss = uva__loss_of(status, error);
    failure->metadata = notes_of(status, error, driver,
                                 text_is_cut(&failure->error, what, error));
    return code;
}

int uva__adbc_failure_take(struct uva__adbc_failure *failure, const char *what,
                           AdbcStatusCode status, struct AdbcError *error,
                           const struct AdbcDriver *driver)
{
    int code = 0;

    if (status != ADBC_STATUS_OK)
        code = uva__adbc_failure_copy(failure, what, status, error, driver);
    uva__adbc_error_drop(error);
    return code;
}

int uva__adbc_failure_set(struct uva__adbc_failure *failure, int code,
                          const char *format, ...)
{
    char text[sizeof(failure->error.message)];
    va_list args;

    va_start(args, format);
    (void)vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    free(failure->metadata);
    failure->metadata = NULL;
    failure->loss = UVA__LOSS_NONE;
    return uva_error_set(&failure->error, code, "%s", text);
}

void uva__adbc_failure_note(struct uva__adbc_failure *failure, const char *key,
                            const char *value)
{
    struct notes *notes = calloc(1, sizeof(*notes));
    struct uva_metadata_at at = {0};
    char *block = NULL;

    if (notes == NULL)
        return;
    while (notes->count < PAIRS_MAX - 1 &&
           uva_metadata_next(failure->metadata, &at,
                             &notes->pairs[notes->count]) == 0)
        notes->count++;
    notes_add(notes, key, value, strlen(value));
    block = notes_encode(notes);
    free(notes);
    if (block == NULL)
        return;
    free(failure->metadata);
    failure->metadata = block;
}

void uva__adbc_failure_fini(struct uva__adbc_failure *failure)
{
    free(failure->metadata);
    *failure = (struct uva__adbc_failure){0};
}
