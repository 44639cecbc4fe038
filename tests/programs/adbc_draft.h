/* SPDX-License-Identifier: Apache-2.0 */
/* The asynchronous structs as the draft of ADBC 1.2 declares them in adbc.h
 * (arrow-adbc, pull request 3607), under the guard of the Arrow headers. With
 * the data and device structs of the same header they are the only ones seen by
 * a program that includes adbc.h before uvarrow's headers. */
#ifndef UVA_PROGRAMS_ADBC_DRAFT_H
#define UVA_PROGRAMS_ADBC_DRAFT_H

#include <stdint.h>

/* clang-format off */
#ifndef ARROW_C_ASYNC_STREAM_INTERFACE
#define ARROW_C_ASYNC_STREAM_INTERFACE

struct ArrowSchema;
struct ArrowDeviceArray;

#ifdef __cplusplus
extern "C" {
#endif

struct ArrowAsyncTask {
  int (*extract_data)(struct ArrowAsyncTask* self,
                      struct ArrowDeviceArray* out);
  void* private_data;
};

struct ArrowAsyncProducer {
  int32_t device_type;
  void (*request)(struct ArrowAsyncProducer* self, int64_t n);
  void (*cancel)(struct ArrowAsyncProducer* self);
  void (*release)(struct ArrowAsyncProducer* self);
  const char* additional_metadata;
  void* private_data;
};

struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler* self,
                   struct ArrowSchema* stream_schema);
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler* self,
                      struct ArrowAsyncTask* task, const char* metadata);
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler* self, int code,
                   const char* message, const char* metadata);
  void (*release)(struct ArrowAsyncDeviceStreamHandler* self);
  struct ArrowAsyncProducer* producer;
  void* private_data;
};

#ifdef __cplusplus
}
#endif

#endif
/* clang-format on */

#endif
