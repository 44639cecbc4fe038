/* SPDX-License-Identifier: Apache-2.0 */
/* Variables of the environment with any content: a runtime opens as well with
 * them, a library of a device and a driver are found or refused with a text,
 * and the limits of the suite for implementations are numbers or refused. Also
 * the file that a variable leads to: a manifest of any bytes.
 *
 * Input: which variables there are, and their values; the name of a driver; and
 * the rest is the manifest. No trace is written, as its path leads nowhere, and
 * no name of a driver or library has a slash. */
#define _GNU_SOURCE
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "adbc/find.h"
#include "fuzz/fuzz_input.h"
#include "uvarrow/adbc.h"
#include "uvarrow/device.h"
#include "uvarrow/runtime.h"
#include "uvarrow/tck.h"

enum { MOST = 40, TCK_MOST = 600000 };

static const char *const names[] = {"UVA_LOG",         "UVA_CHECK",
                                    "UVA_TRACE",       "ADBC_DRIVER_PATH",
                                    "XDG_CONFIG_HOME", "HOME"};
static const char *const values[] = {"",      "1",    "0", "debug",
                                     "info",  "warn", ":", "/",
                                     "error", "::/",  ".", "none"};

enum { NAMES = sizeof(names) / sizeof(*names) };

/* The libraries of devices: no vendor's is opened, as each variable is set. */
static const char *const libraries[] = {"UVA_CUDA_LIBRARY", "UVA_HIP_LIBRARY",
                                        "UVA_OPENCL_LIBRARY",
                                        "UVA_ONEAPI_LIBRARY"};
static const ArrowDeviceType types[] = {
    ARROW_DEVICE_CUDA,   ARROW_DEVICE_CUDA_HOST, ARROW_DEVICE_ROCM,
    ARROW_DEVICE_OPENCL, ARROW_DEVICE_ONEAPI,    ARROW_DEVICE_VULKAN};
static const char *const files[] = {"no-such-library", "libc.so.6", "."};

/* The variables that the suite reads as numbers. */
static const char *const limits[] = {"UVA_TCK_WAIT_MS", "UVA_TCK_QUIET_MS"};
static const char *const numbers[] = {
    "1",  "600000", "600001", "0",  "-1", "99999999999999999999",
    "+7", " 8",     "9 ",     "1e", "",   "0x10"};

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

/* ---- devices ------------------------------------------------------------ */

/* An empty variable is as an unset one, so that no variable is empty. */
static void library_set(const char *name, struct fuzz_input *in)
{
    const int kind = fuzz_byte(in);
    char text[MOST];

    bytes_read(in, text, '_');
    if (kind % 4 < 3)
        FUZZ_RULE(setenv(name, files[kind % 4], 1) == 0);
    else
        FUZZ_RULE(setenv(name, text[0] != '\0' ? text : "_", 1) == 0);
}

static void device_play(struct uva_runtime *runtime, int type)
{
    struct uva_device_info info;

    FUZZ_RULE(uva_device_get_info(runtime, types[type], &info) == 0);
    FUZZ_RULE(info.device_type == types[type] && info.name != NULL);
    FUZZ_RULE(memchr(info.library, '\0', sizeof(info.library)) != NULL);
    FUZZ_RULE(info.available == (types[type] == ARROW_DEVICE_VULKAN));
    FUZZ_RULE(info.available || info.library[0] != '\0');
    fuzz_trace("device", info.library, type);
}

/* ---- the suite ---------------------------------------------------------- */

/* Whether strtol() reads it to the end, and within the limits. */
static bool is_number(const char *text)
{
    int64_t number = 0;

    while (isspace((unsigned char)*text))
        text++;
    text += *text == '+';
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (!isdigit((unsigned char)*text))
            return false;
        number = number > TCK_MOST ? number : number * 10 + (*text - '0');
    }
    return number >= 1 && number <= TCK_MOST;
}

/* The number of jobs is refused if no fault comes before. */
static void suite_play(struct fuzz_input *in)
{
    const struct uva_tck options = {.file = "/dev/null"};
    struct uva_error error = {0};
    struct uva_tck_tally tally;
    char text[MOST];
    bool is_good = true;

    FUZZ_RULE(setenv("UVA_TCK_JOBS", "none", 1) == 0);
    for (size_t i = 0; i < 2; i++) {
        const int kind = fuzz_byte(in);

        bytes_read(in, text, '_');
        if (kind % 4 != 0)
            (void)snprintf(text, sizeof(text), "%s", numbers[kind / 4 % 12]);
        FUZZ_RULE(setenv(limits[i], text, 1) == 0);
        is_good = is_good && is_number(text);
    }
    FUZZ_RULE(uva_tck_run(&options, &tally, &error) == EINVAL);
    fuzz_trace("suite", error.message, is_good);
    FUZZ_RULE((strncmp(error.message, "UVA_TCK_JOBS=", 13) == 0) == is_good);
}

/* ---- runtimes ----------------------------------------------------------- */

static void log_nowhere(void *ctx, const struct uva_log_record *record)
{
    FUZZ_RULE(record->message != NULL && strchr(record->message, '\n') == NULL);
    (void)ctx;
}

/* Without a log, the environment names one, which is standard error: then there
 * is no trace that could not be written. */
static void runtime_play(bool logs, int type)
{
    const struct uva_runtime_options options = {
        .log = {.write = logs ? log_nowhere : NULL}};
    struct uva_runtime *runtime;

    if (!logs)
        FUZZ_RULE(unsetenv("UVA_TRACE") == 0);
    FUZZ_RULE(uva_runtime_open_turned(NULL, NULL, &options, &runtime, NULL) ==
              0);
    if (type >= 0)
        device_play(runtime, type);
    FUZZ_RULE(uva_runtime_join(runtime, 0) == 0);
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
    int kind;

    for (int i = 0; i < NAMES; i++)
        variable_set(names[i], &in);
    kind = fuzz_byte(&in); /* a device costs a thread: not each time */
    for (int i = 0; i < 4; i++)
        library_set(libraries[i], &in);
    runtime_play(kind % 2 != 0, kind % 16 < 12 ? kind / 2 % 8 - 2 : -1);
    suite_play(&in);
    driver_play(&in);
    manifest_play(&in);
    return 0;
}
