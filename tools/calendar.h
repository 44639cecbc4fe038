/* SPDX-License-Identifier: Apache-2.0 */
/* Dates, times and durations as ISO 8601 text. Each function writes at `at`,
 * where UVA__CALENDAR_ROOM bytes must be free, and returns the end of what it
 * wrote; no NUL follows.
 *
 * `digits` says in what unit a count is: 0 for seconds, 3 for milliseconds, 6
 * for microseconds, 9 for nanoseconds; as many are written after the point. */
#ifndef UVA_TOOLS_CALENDAR_H
#define UVA_TOOLS_CALENDAR_H

#include <stdint.h>

/* The longest text. */
#define UVA__CALENDAR_ROOM 96

/* The zone of a timestamp that has none. */
#define UVA__CALENDAR_NO_ZONE INT32_MIN

/* Writes the date that is `days` after 1970-01-01. Thread: any. */
char *uva__calendar_put_date(char *at, int64_t days);

/* Writes a time of day. Thread: any. */
char *uva__calendar_put_time(char *at, int64_t count, int digits);

/* Writes the moment `count` after 1970-01-01T00:00:00, as a clock shows it that
 * is `zone` minutes ahead of UTC, with the zone behind it ("Z" for 0); or
 * UVA__CALENDAR_NO_ZONE, without. Thread: any. */
char *uva__calendar_put_timestamp(char *at, int64_t count, int digits,
                                  int32_t zone);

/* Writes a duration: "PT12.500S". Thread: any. */
char *uva__calendar_put_duration(char *at, int64_t count, int digits);

/* Writes an interval: "P3DT-1.500S", "P1M2DT0.000000000S", without the months
 * if there are none; or months alone, "P14M", if `digits` is negative.
 * Thread: any. */
char *uva__calendar_put_interval(char *at, int32_t months, int32_t days,
                                 int64_t count, int digits);

/* Reads a zone as Arrow names it. Fixed offsets ("+05:30") are themselves; all
 * other names are shown in UTC, as 0: that is what the data is in.
 * Thread: any. */
int32_t uva__calendar_read_zone(const char *name);

#endif
