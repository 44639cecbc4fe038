/* SPDX-License-Identifier: Apache-2.0 */
/* uvarrow devices: lists every device type of the Arrow specification, and
 * whether and how its events can be waited for on this machine, or why not. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "commands.h"
#include "event_delay.h"
#include "report.h"
#include "uvarrow/device.h"
#include "uvarrow/runtime.h"

static const char HELP[] =
    "Usage: uvarrow devices [--measure]\n"
    "\n"
    "Lists the device types of Arrow: whether their events can be waited for\n"
    "here, by which mechanism, whether batches can be copied from and to "
    "them,\n"
    "and which library that takes, or why there is none.\n"
    "\n"
    "  --measure   also how long it takes from an event to the loop, where an\n"
    "              event can be made by hand: OpenCL\n"
    "\n"
    "UVA_CUDA_LIBRARY, UVA_HIP_LIBRARY and UVA_OPENCL_LIBRARY in the\n"
    "environment say where a library is. Events of oneAPI belong to the SYCL\n"
    "that a program has loaded; this one has none.\n";

enum { TYPES_END = 17 }; /* after the last type of the specification */

static void print_type(const struct uva_device_info *info)
{
    printf("%-13s %-9s %-11s %-6s %s\n", info->name,
           info->available ? "yes" : "no", info->mechanism,
           info->can_copy ? "yes" : "no", info->library);
}

static int print_types(struct uva_runtime *runtime)
{
    struct uva_device_info info;
    int code;

    printf("%-13s %-9s %-11s %-6s %s\n", "type", "available", "mechanism",
           "copies", "library");
    for (ArrowDeviceType type = 1; type < TYPES_END; type++) {
        code = uva_device_get_info(runtime, type, &info);
        if (code == 0)
            print_type(&info);
        else if (code != ENOENT)
            return code;
    }
    return 0;
}

static int measure(struct uva_runtime *runtime)
{
    struct uva__event_delay delay;
    struct uva_error error;

    if (uva__event_delay_opencl(runtime, &delay, &error) != 0)
        return uva__report_error(&error, UVA__EXIT_FAILED);
    printf("\nOPENCL: from an event to the loop in %.1f us (p50), %.1f us "
           "(p99), %lld events\n",
           (double)delay.p50_ns / 1000, (double)delay.p99_ns / 1000,
           (long long)delay.samples);
    return UVA__EXIT_OK;
}

/* Flushes the output and reports an error if that fails, such as a full
 * disk. */
static int print_end(void)
{
    struct uva_error error;
    int code;

    if (fflush(stdout) == 0)
        return UVA__EXIT_OK;
    code = errno;
    (void)uva_error_set(&error, code, "cannot write: %s", strerror(code));
    return uva__report_error(&error, UVA__EXIT_FAILED);
}

static int devices_run(bool measured)
{
    struct uva_runtime *runtime;
    struct uva_error error;
    int code = uva_runtime_open(NULL, NULL, &runtime, &error);

    if (code != 0)
        return uva__report_error(&error, UVA__EXIT_FAILED);
    code = print_types(runtime);
    if (code != 0) {
        (void)uva_error_set(&error, code, "cannot ask for devices");
        code = uva__report_error(&error, UVA__EXIT_FAILED);
    } else if (measured) {
        code = measure(runtime);
    }
    uva_runtime_close(runtime, 0, NULL, NULL);
    (void)uva_runtime_join(runtime, UVA_FOREVER);
    return code == UVA__EXIT_OK ? print_end() : code;
}

int uva__devices_main(char **args)
{
    struct uva_error error;
    bool measured = false;

    for (; *args != NULL; args++) {
        if (uva__commands_is_help(*args)) {
            printf("%s", HELP);
            return UVA__EXIT_OK;
        }
        if (strcmp(*args, "--measure") != 0) {
            (void)uva_error_set(&error, EINVAL,
                                "unknown argument '%s'; see uvarrow devices "
                                "--help",
                                *args);
            return uva__report_error(&error, UVA__EXIT_USAGE);
        }
        measured = true;
    }
    return devices_run(measured);
}
