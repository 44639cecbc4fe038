/* SPDX-License-Identifier: Apache-2.0 */
/* Writes dates, times and durations as ISO 8601 text. Each function writes at
 * `at`, where UVA__TEXT_TIME_ROOM bytes must be free, and returns the end of
 * its text; it adds no NUL.
 *
 * `digits` gives the unit of a count: 0 for seconds, 3 for milliseconds, 6 for
 * microseconds, 9 for nanoseconds. It is also the number of digits written
 * after the decimal point. */
#ifndef UVA_IO_TEXT_TIME_H
#define UVA_IO_TEXT_TIME_H

#include <stdint.h>

/* The longest text. */
#define UVA__TEXT_TIME_ROOM 96

/* Stands for a timestamp without a zone. */
#define UVA__TEXT_TIME_NO_ZONE INT32_MIN

/* Writes the date that is `days` after 1970-01-01. Thread: any. */
char *uva__text_time_put_date(char *at, int64_t days);

/* Writes a time of day; an invalid time has more hours, or a minus.
 * Thread: any. */
char *uva__text_time_put_time(char *at, int64_t count, int digits);

/* Writes the moment `count` after 1970-01-01T00:00:00, as shown by a clock
 * `zone` minutes ahead of UTC, followed by the zone ("Z" for 0);
 * UVA__TEXT_TIME_NO_ZONE writes no zone. Thread: any. */
char *uva__text_time_put_timestamp(char *at, int64_t count, int digits,
                                   int32_t zone);

/* Writes a duration: "PT12.500S". Thread: any. */
char *uva__text_time_put_duration(char *at, int64_t count, int digits);

/* Writes an interval: "P3DT-1.500S" or "P1M2DT0.000000000S", where zero months
 * are left out; only months, "P14M", if `digits` is negative. Thread: any. */
char *uva__text_time_put_interval(char *at, int32_t months, int32_t days,
                                  int64_t count, int digits);

/* Reads a zone by its Arrow name. A fixed offset ("+05:30") gives its minutes.
 * Any other name gives 0, because the data itself is in UTC. Thread: any. */
int32_t uva__text_time_read_zone(const char *name);

#endif
