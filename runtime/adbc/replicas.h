/* SPDX-License-Identifier: Apache-2.0 */
/* The places from which a partition can be read, if it is one of Flight SQL: a
 * FlightInfo of Arrow Flight with one endpoint, which lists locations. Of any
 * other partition nothing is known. Any thread. */
#ifndef UVA_ADBC_REPLICAS_H
#define UVA_ADBC_REPLICAS_H

#include <stddef.h>

/* Writes the hosts, as "one:8815 or two:8815", ended by a NUL and cut to `room`
 * bytes; an empty text if none is known. */
void uva__replicas_hosts(const void *partition, size_t size, char *text,
                         size_t room);

/* Copies the partition to `out`, of the same size, with the location number
 * `first` in the first place, counted from 0 and again and again, and the
 * others in turn behind it. */
void uva__replicas_rotate(const void *partition, size_t size, size_t first,
                          void *out);

#endif
