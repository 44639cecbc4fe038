/* SPDX-License-Identifier: Apache-2.0 */
/* The order of bytes of this machine. Arrays have it, and a schema of Arrow IPC
 * names it; the headers of IPC are little-endian on all machines, which
 * flatbuffer_reader.c and flatbuffer_writer.h see to. */
#ifndef UVA_IO_BYTE_ORDER_H
#define UVA_IO_BYTE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

/* Whether the highest byte of a number comes first. Thread: any. */
static inline bool uva__is_big_endian(void)
{
    static const uint16_t one = 1;

    return *(const uint8_t *)&one == 0;
}

#endif
