/* SPDX-License-Identifier: Apache-2.0 */
/* Asks each driver for its version and the names of its devices, by few
 * functions that all versions have. The declarations are taken from the
 * vendors' headers, which are not needed. */
#include "gpu/facts.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fact(const char *vendor, const char *what, const char *value)
{
    (void)printf("%s\t%s\t%s\n", vendor, what, value);
    (void)fflush(stdout); /* the driver may crash in the next call */
}

/* Opens a vendor's library and prints which; NULL, after printing why. */
static void *library_open(const char *vendor, const char *variable,
                          const char *name)
{
    const char *path = getenv(variable);
    const char *chosen = path != NULL ? path : name;
    void *library = dlopen(chosen, RTLD_NOW | RTLD_LOCAL);

    fact(vendor, library != NULL ? "library" : "missing",
         library != NULL ? chosen : dlerror());
    if (library != NULL && dlsym(library, "fakegpu_count") != NULL)
        fact(vendor, "double", "yes");
    return library;
}

/* Finds a function; `out` points to the pointer. */
static int find(void *library, const char *name, void *out)
{
    void *found = dlsym(library, name);

    memcpy(out, &found, sizeof(found));
    return found != NULL;
}

static void say_version(const char *vendor, int version)
{
    char text[32];

    (void)snprintf(text, sizeof(text), "%d.%d", version / 1000,
                   version % 1000 / 10);
    fact(vendor, "version", text);
}

/* ---- CUDA ---------------------------------------------------------------- */

static void cuda_device(void *library, int device)
{
    int (*name)(char *, int, int);
    int (*attribute)(int *, int, int);
    char text[256] = "without a name", all[300];
    int major = 0, minor = 0;

    if (find(library, "cuDeviceGetName", &name))
        (void)name(text, sizeof(text), device);
    if (find(library, "cuDeviceGetAttribute", &attribute)) {
        (void)attribute(&major, 75, device);
        (void)attribute(&minor, 76, device);
    }
    (void)snprintf(all, sizeof(all), "%s, compute capability %d.%d", text,
                   major, minor);
    fact("cuda", "device", all);
}

static void cuda_print(void)
{
    void *library = library_open("cuda", "UVA_CUDA_LIBRARY", "libcuda.so.1");
    int (*init)(unsigned), (*get)(int *, int), (*version)(int *);
    int number = 0, device;

    if (library == NULL || !find(library, "cuInit", &init) ||
        !find(library, "cuDeviceGet", &get))
        return;
    if (find(library, "cuDriverGetVersion", &version) && version(&number) == 0)
        say_version("cuda", number);
    if (init(0) != 0)
        return;
    for (int i = 0; get(&device, i) == 0; i++)
        cuda_device(library, device);
}

/* NVIDIA's kernel module, which has its own version. */
static void nvidia_kernel_print(void)
{
    FILE *file = fopen("/proc/driver/nvidia/version", "r");
    char line[256];

    if (file == NULL)
        return;
    if (fgets(line, sizeof(line), file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        fact("cuda", "kernel", line);
    }
    (void)fclose(file);
}

/* ---- HIP ----------------------------------------------------------------- */

static void hip_print(void)
{
    void *library = library_open("hip", "UVA_HIP_LIBRARY", "libamdhip64.so");
    int (*count)(int *), (*name)(char *, int, int), (*version)(int *);
    int devices = 0, number = 0;

    if (library == NULL)
        return;
    if (find(library, "hipRuntimeGetVersion", &version) &&
        version(&number) == 0)
        say_version("hip", number / 100);
    if (!find(library, "hipGetDeviceCount", &count) || count(&devices) != 0)
        return;
    for (int i = 0; i < devices; i++) {
        char text[256] = "without a name";

        if (find(library, "hipDeviceGetName", &name))
            (void)name(text, sizeof(text), i);
        fact("hip", "device", text);
    }
}

/* ---- OpenCL -------------------------------------------------------------- */

enum {
    CL_CPU = 2,
    CL_ALL = -1,
    CL_TYPE = 0x1000,
    CL_NAME = 0x102B,
    CL_VERSION = 0x0901,
    CL_MOST = 8
};

static void opencl_device(void *library, void *device)
{
    int (*info)(void *, unsigned, size_t, void *, size_t *);
    char name[256] = "without a name";
    uint64_t type = 0;

    if (!find(library, "clGetDeviceInfo", &info))
        return;
    (void)info(device, CL_TYPE, sizeof(type), &type, NULL);
    (void)info(device, CL_NAME, sizeof(name), name, NULL);
    fact("opencl", (type & CL_CPU) != 0 ? "processor" : "device", name);
}

static void opencl_print(void)
{
    void *library =
        library_open("opencl", "UVA_OPENCL_LIBRARY", "libOpenCL.so.1");
    int (*platforms)(unsigned, void **, unsigned *);
    int (*info)(void *, unsigned, size_t, void *, size_t *);
    int (*devices)(void *, uint64_t, unsigned, void **, unsigned *);
    void *platform[CL_MOST], *device[CL_MOST];
    unsigned count = 0;

    if (library == NULL || !find(library, "clGetPlatformIDs", &platforms) ||
        !find(library, "clGetPlatformInfo", &info) ||
        !find(library, "clGetDeviceIDs", &devices) ||
        platforms(CL_MOST, platform, &count) != 0)
        return;
    for (unsigned i = 0; i < count && i < CL_MOST; i++) {
        char version[256] = "";
        unsigned found = 0;

        (void)info(platform[i], CL_VERSION, sizeof(version), version, NULL);
        fact("opencl", "version", version);
        (void)devices(platform[i], (uint32_t)CL_ALL, CL_MOST, device, &found);
        for (unsigned k = 0; k < found && k < CL_MOST; k++)
            opencl_device(library, device[k]);
    }
}

/* ---- Vulkan -------------------------------------------------------------- */

enum { VK_CPU = 4, VK_MOST = 8 };

/* The output of vkGetPhysicalDeviceProperties(); the rest is not looked at. */
struct vulkan_properties {
    uint32_t api, driver, vendor, device, type;
    char name[256];
    char rest[2048];
};

static void vulkan_print(void)
{
    void *library =
        library_open("vulkan", "UVA_VULKAN_LIBRARY", "libvulkan.so.1");
    const uint32_t create[16] = {1}; /* a VkInstanceCreateInfo without more */
    int (*make)(const void *, const void *, void **);
    int (*list)(void *, uint32_t *, void **);
    void (*describe)(void *, struct vulkan_properties *);
    static struct vulkan_properties found;
    void *instance, *devices[VK_MOST];
    uint32_t count = VK_MOST;

    if (library == NULL || !find(library, "vkCreateInstance", &make) ||
        !find(library, "vkEnumeratePhysicalDevices", &list) ||
        !find(library, "vkGetPhysicalDeviceProperties", &describe) ||
        make(create, NULL, &instance) != 0 ||
        list(instance, &count, devices) < 0)
        return;
    for (uint32_t i = 0; i < count; i++) {
        describe(devices[i], &found);
        fact("vulkan", found.type == VK_CPU ? "processor" : "device",
             found.name);
    }
}

int facts_print(void)
{
    nvidia_kernel_print();
    cuda_print();
    hip_print();
    opencl_print();
    vulkan_print();
    return 0;
}
