/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the offset of every member of the Arrow C structs on a 64-bit
 * platform, and the related types and constants: AB-02 to AB-10, AB-13, AB-20.
 * Compiled, not run, by tests/abi/run: as C and as C++, and with another copy
 * of the structs included before or after ours. With UVA_ABI_NOT_OURS only that
 * copy is used. */
#include <stddef.h>
#include <stdint.h>

#ifndef UVA_ABI_NOT_OURS
#include "uvarrow/arrow_abi.h"
#endif

#ifdef __cplusplus
#define HOLDS(what) static_assert(what, #what)
#else
#define HOLDS(what) _Static_assert(what, #what)
#endif
#define SIZE(type, bytes) HOLDS(sizeof(struct type) == (bytes))
#define AT(type, member, offset)                                               \
    HOLDS(offsetof(struct type, member) == (offset))

/* AB-01: the guards of all five blocks are defined */
#if !defined(ARROW_C_DATA_INTERFACE) || !defined(ARROW_C_STREAM_INTERFACE) ||  \
    !defined(ARROW_C_DEVICE_DATA_INTERFACE) ||                                 \
    !defined(ARROW_C_DEVICE_STREAM_INTERFACE) ||                               \
    !defined(ARROW_C_ASYNC_STREAM_INTERFACE)
#error "a guard is missing"
#endif

/* AB-02: pointers to the two are compatible only if the types are equal */
extern const int32_t *const uva_abi_device_type;
const int32_t *const uva_abi_device_type = (const ArrowDeviceType *)0;
HOLDS(sizeof(ArrowDeviceType) == 4);
HOLDS((ArrowDeviceType)-1 < 0);

/* AB-03: macros, so that #if can test them, and their values */
#if !(ARROW_DEVICE_CPU == 1 && ARROW_DEVICE_CUDA == 2 &&                       \
      ARROW_DEVICE_CUDA_HOST == 3 && ARROW_DEVICE_OPENCL == 4 &&               \
      ARROW_DEVICE_VULKAN == 7 && ARROW_DEVICE_METAL == 8 &&                   \
      ARROW_DEVICE_VPI == 9 && ARROW_DEVICE_ROCM == 10 &&                      \
      ARROW_DEVICE_ROCM_HOST == 11 && ARROW_DEVICE_EXT_DEV == 12 &&            \
      ARROW_DEVICE_CUDA_MANAGED == 13 && ARROW_DEVICE_ONEAPI == 14 &&          \
      ARROW_DEVICE_WEBGPU == 15 && ARROW_DEVICE_HEXAGON == 16)
#error "a device type has another value"
#endif
HOLDS(ARROW_FLAG_DICTIONARY_ORDERED == 1 && ARROW_FLAG_NULLABLE == 2 &&
      ARROW_FLAG_MAP_KEYS_SORTED == 4);

/* AB-04 */
SIZE(ArrowSchema, 72);
AT(ArrowSchema, format, 0);
AT(ArrowSchema, name, 8);
AT(ArrowSchema, metadata, 16);
AT(ArrowSchema, flags, 24);
AT(ArrowSchema, n_children, 32);
AT(ArrowSchema, children, 40);
AT(ArrowSchema, dictionary, 48);
AT(ArrowSchema, release, 56);
AT(ArrowSchema, private_data, 64);

/* AB-05 */
SIZE(ArrowArray, 80);
AT(ArrowArray, length, 0);
AT(ArrowArray, null_count, 8);
AT(ArrowArray, offset, 16);
AT(ArrowArray, n_buffers, 24);
AT(ArrowArray, n_children, 32);
AT(ArrowArray, buffers, 40);
AT(ArrowArray, children, 48);
AT(ArrowArray, dictionary, 56);
AT(ArrowArray, release, 64);
AT(ArrowArray, private_data, 72);

/* AB-06 */
SIZE(ArrowDeviceArray, 128);
AT(ArrowDeviceArray, array, 0);
AT(ArrowDeviceArray, device_id, 80);
AT(ArrowDeviceArray, device_type, 88);
AT(ArrowDeviceArray, sync_event, 96);
AT(ArrowDeviceArray, reserved, 104);

/* the plain stream, and AB-07 */
SIZE(ArrowArrayStream, 40);
AT(ArrowArrayStream, get_schema, 0);
AT(ArrowArrayStream, get_next, 8);
AT(ArrowArrayStream, get_last_error, 16);
AT(ArrowArrayStream, release, 24);
AT(ArrowArrayStream, private_data, 32);
SIZE(ArrowDeviceArrayStream, 48);
AT(ArrowDeviceArrayStream, device_type, 0);
AT(ArrowDeviceArrayStream, get_schema, 8);
AT(ArrowDeviceArrayStream, get_next, 16);
AT(ArrowDeviceArrayStream, get_last_error, 24);
AT(ArrowDeviceArrayStream, release, 32);
AT(ArrowDeviceArrayStream, private_data, 40);

/* AB-08 */
SIZE(ArrowAsyncTask, 16);
AT(ArrowAsyncTask, extract_data, 0);
AT(ArrowAsyncTask, private_data, 8);

/* AB-09: the released layout, without the release the document prints */
SIZE(ArrowAsyncProducer, 40);
AT(ArrowAsyncProducer, device_type, 0);
AT(ArrowAsyncProducer, request, 8);
AT(ArrowAsyncProducer, cancel, 16);
AT(ArrowAsyncProducer, additional_metadata, 24);
AT(ArrowAsyncProducer, private_data, 32);

/* AB-10 */
SIZE(ArrowAsyncDeviceStreamHandler, 48);
AT(ArrowAsyncDeviceStreamHandler, on_schema, 0);
AT(ArrowAsyncDeviceStreamHandler, on_next_task, 8);
AT(ArrowAsyncDeviceStreamHandler, on_error, 16);
AT(ArrowAsyncDeviceStreamHandler, release, 24);
AT(ArrowAsyncDeviceStreamHandler, producer, 32);
AT(ArrowAsyncDeviceStreamHandler, private_data, 40);

/* AB-08, AB-10, AB-13: functions of exactly these types can be assigned */
static int extract_data(struct ArrowAsyncTask *self,
                        struct ArrowDeviceArray *out)
{
    return self == NULL || out == NULL;
}

static void request(struct ArrowAsyncProducer *self, int64_t n)
{
    (void)self;
    (void)n;
}

static void cancel(struct ArrowAsyncProducer *self)
{
    (void)self;
}

static int on_schema(struct ArrowAsyncDeviceStreamHandler *self,
                     struct ArrowSchema *stream_schema)
{
    return self == NULL || stream_schema == NULL;
}

static int on_next_task(struct ArrowAsyncDeviceStreamHandler *self,
                        struct ArrowAsyncTask *task, const char *metadata)
{
    return self == NULL || task == NULL || metadata == NULL;
}

static void on_error(struct ArrowAsyncDeviceStreamHandler *self, int code,
                     const char *message, const char *metadata)
{
    (void)self;
    (void)code;
    (void)message;
    (void)metadata;
}

static void release(struct ArrowAsyncDeviceStreamHandler *self)
{
    (void)self;
}

extern const struct ArrowAsyncTask uva_abi_task;
const struct ArrowAsyncTask uva_abi_task = {extract_data, NULL};
extern struct ArrowAsyncProducer uva_abi_producer;
struct ArrowAsyncProducer uva_abi_producer = {ARROW_DEVICE_CPU, request, cancel,
                                              NULL, NULL};
extern const struct ArrowAsyncDeviceStreamHandler uva_abi_handler;
const struct ArrowAsyncDeviceStreamHandler uva_abi_handler = {
    on_schema, on_next_task, on_error, release, &uva_abi_producer, NULL};

/* AB-20: whichever copy came first, the keys of statistics are defined */
extern const char *const uva_abi_keys[];
const char *const uva_abi_keys[] = {
    ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_EXACT,
    ARROW_STATISTICS_KEY_AVERAGE_BYTE_WIDTH_APPROXIMATE,
    ARROW_STATISTICS_KEY_DISTINCT_COUNT_EXACT,
    ARROW_STATISTICS_KEY_DISTINCT_COUNT_APPROXIMATE,
    ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_EXACT,
    ARROW_STATISTICS_KEY_MAX_BYTE_WIDTH_APPROXIMATE,
    ARROW_STATISTICS_KEY_MAX_VALUE_EXACT,
    ARROW_STATISTICS_KEY_MAX_VALUE_APPROXIMATE,
    ARROW_STATISTICS_KEY_MIN_VALUE_EXACT,
    ARROW_STATISTICS_KEY_MIN_VALUE_APPROXIMATE,
    ARROW_STATISTICS_KEY_NULL_COUNT_EXACT,
    ARROW_STATISTICS_KEY_NULL_COUNT_APPROXIMATE,
    ARROW_STATISTICS_KEY_ROW_COUNT_EXACT,
    ARROW_STATISTICS_KEY_ROW_COUNT_APPROXIMATE,
};
