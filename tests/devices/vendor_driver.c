/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for the library in the same places as the library under test does. */
#include "devices/vendor_driver.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *library_open(const struct vendor_driver *driver)
{
    const char *path = getenv(driver->variable);
    void *library = NULL;

    if (path != NULL)
        return dlopen(path, RTLD_NOW | RTLD_LOCAL);
    for (const char *const *name = driver->names;
         library == NULL && *name != NULL; name++)
        library = dlopen(*name, RTLD_NOW | RTLD_LOCAL);
    return library;
}

static void find(void *library, const char *name, void *out)
{
    void *address = dlsym(library, name);

    memcpy(out, &address, sizeof(address));
}

void vendor_driver_resolve(void *library, const char *name, void *out)
{
    find(library, name, out);
    if (dlsym(library, name) != NULL)
        return;
    (void)fprintf(stderr, "the library has no %s\n", name);
    abort();
}

bool vendor_driver_open(const struct vendor_driver *driver,
                        struct fake_control *control)
{
    void *library = library_open(driver);

    if (library == NULL)
        return false;
    find(library, "fakegpu_count", &control->fakegpu_count);
    find(library, "fakegpu_excuse", &control->fakegpu_excuse);
    find(library, "fakegpu_fail", &control->fakegpu_fail);
    find(library, "fakegpu_poison", &control->fakegpu_poison);
    if (control->fakegpu_excuse != NULL)
        control->fakegpu_excuse(1);
    return driver->open(library);
}
