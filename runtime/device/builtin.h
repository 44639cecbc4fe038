/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that are part of the library, by device type. */
#ifndef UVA_DEVICE_BUILTIN_H
#define UVA_DEVICE_BUILTIN_H

#include "device/registry.h"

/* One row. */
struct uva__builtin {
    const char *library; /* UVA_<this>_LIBRARY overrides where it is looked for;
                            or NULL */
    const struct uva_device_ops *ops; /* NULL: not built in */
    const char *why;                  /* there is no table, else NULL */
    const struct uva__vendor_info *vendor_info; /* of the built-in tables */
};

extern const struct uva__vendor_info uva__opencl_info;
extern const struct uva__vendor_info uva__vulkan_info;
extern const struct uva__vendor_info uva__cuda_info;
extern const struct uva__vendor_info uva__hip_info;

extern const struct uva_device_ops uva__opencl_ops;
extern const struct uva_device_ops uva__vulkan_ops;
extern const struct uva_device_ops uva__cuda_ops;
extern const struct uva_device_ops uva__cuda_host_ops;
extern const struct uva_device_ops uva__cuda_managed_ops;
extern const struct uva_device_ops uva__hip_ops;
extern const struct uva_device_ops uva__hip_host_ops;
extern const struct uva_device_ops uva__oneapi_ops;

extern const struct uva__builtin uva__builtins[UVA__DEVICE_TYPES];

#endif
