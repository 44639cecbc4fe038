/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment with any content: a runtime opens as well with
 * them, and a driver is found or refused with a text. Also the file that a
 * variable leads to: a manifest of any bytes.
 *
 * Input: which variables there are, and what they hold; the name of a driver;
 * and the rest is the manifest. No trace is written, as its path leads nowhere,
 * and no name of a driver has a slash. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adbc/find.h"
#include "fuzz/fuzz_input.h"
#include "uvarrow/adbc.h"
#include "uvarrow/runtime.h"

enum { MOST = 40 };

static const char *const names[] = {"UVA_LOG",         "UVA_CHECK",
                                    "UVA_TRACE",       "ADBC_DRIVER_PATH",
                                    "XDG_CONFIG_HOME", "HOME"};
static const char *const values[] = {"",      "1",    "0", "debug",
                                     "info",  "warn", ":", "/",
                                     "error", "::/",  ".", "none"};

enum { NAMES = sizeof(names) / sizeof(*names) };

/* ---- the input ---------------------------------------------------------- */

static void bytes_read(struct fuzz_input *in, char text[MOST], char instead)
{
    int size = fuzz_below(in, MOST);

    memset(text, 0, MOST);
    for (int i = 0; i < size; i++) {
        const char byte = (char)fuzz_byte(in);

        text[i] = byte == '\0' || byte == '/' ? instead : byte;
    }
}

static void variable_set(const char *name, struct fuzz_input *in)
{
    const int kind = fuzz_byte(in);
    char text[MOST], path[MOST + 16];

    if (kind % 4 == 0) {
        FUZZ_RULE(unsetenv(name) == 0);
        return;
    }
    if (kind % 4 == 1 && strcmp(name, "UVA_TRACE") != 0) {
        FUZZ_RULE(setenv(name, values[kind / 4 % 12], 1) == 0);
        return;
    }
    bytes_read(in, text, ':');
    (void)snprintf(path, sizeof(path), "%s%s",
                   strcmp(name, "UVA_TRACE") == 0 ? "/no/such/" : "", text);
    FUZZ_RULE(setenv(name, path, 1) == 0);
}

/* ---- runtimes ----------------------------------------------------------- */

static void log_nowhere(void *ctx, const struct uva_log_record *record)
{
    FUZZ_RULE(record->message != NULL && strchr(record->message, '\n') == NULL);
    (void)ctx;
}

/* Without a log of its own the environment names one, which is standard error:
 * then there is no trace that could not be written. */
static void runtime_play(bool logs)
{
    const struct uva_runtime_options options = {
        .no_thread = true, .log = {.write = logs ? log_nowhere : NULL}};
    struct uva_runtime *runtime;

    if (!logs)
        FUZZ_RULE(unsetenv("UVA_TRACE") == 0);
    FUZZ_RULE(uva_runtime_open(NULL, &options, &runtime, NULL) == 0);
    FUZZ_RULE(uva_runtime_close(runtime, 0, NULL, NULL) == 0);
    while (uva_runtime_turn(runtime))
        ;
}

/* ---- drivers ------------------------------------------------------------ */

static void check_failure(int code, struct uva__adbc_failure *failure)
{
    FUZZ_RULE(code > 0);
    fuzz_trace("adbc", "refused", code);
    uva__adbc_failure_fini(failure);
}

static void driver_play(struct fuzz_input *in)
{
    static struct uva__adbc_found found;
    struct uva__adbc_failure failure = {0};
    char name[MOST];
    int code;

    bytes_read(in, name, '_');
    code = uva__adbc_find(name, &found, &failure);
    if (code != 0)
        check_failure(code, &failure);
}

static void manifest_play(const struct fuzz_input *in)
{
    static struct uva__adbc_manifest manifest;
    struct uva__adbc_failure failure = {0};
    const int fd = memfd_create("manifest", MFD_CLOEXEC);
    char path[40];
    int code;

    FUZZ_RULE(fd >= 0);
    FUZZ_RULE(write(fd, in->data, in->size) == (ssize_t)in->size);
    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    code = uva__adbc_manifest_read(path, &manifest, &failure);
    fuzz_trace("manifest", code == 0 ? manifest.library : "", code);
    if (code != 0)
        check_failure(code, &failure);
    else
        FUZZ_RULE(manifest.library[0] != '\0' &&
                  strlen(manifest.library) < UVA__ADBC_PATH &&
                  strlen(manifest.entrypoint) < UVA__ADBC_NAME);
    (void)close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};

    for (int i = 0; i < NAMES; i++)
        variable_set(names[i], &in);
    runtime_play(fuzz_below(&in, 2) != 0);
    driver_play(&in);
    manifest_play(&in);
    return 0;
}
