/* SPDX-License-Identifier: Apache-2.0 */
/* The tables that are part of the library, by device type. */
#ifndef UVA_DEVICES_BUILTIN_H
#define UVA_DEVICES_BUILTIN_H

#include "device/registry.h"

/* One row. */
struct uva__builtin {
    const char *library; /* UVA_<this>_LIBRARY overrides where it is looked for;
                            or NULL */
    const struct uva_device_ops *ops;   /* NULL: none is built in */
    const char *why;                    /* there is no table, else NULL */
    const struct uva__dialect *dialect; /* of those that are built in */
};

extern const struct uva__dialect uva__opencl_dialect;
extern const struct uva__dialect uva__vulkan_dialect;
extern const struct uva__dialect uva__cuda_dialect;
extern const struct uva__dialect uva__hip_dialect;

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
