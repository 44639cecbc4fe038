/* SPDX-License-Identifier: Apache-2.0 */
/* Calendar years start on 1 March of the year 0, so that a leap day is the last
 * day of its year, of its 4 years and of its 400 years. */
#include "io/text_time.h"

#include <assert.h>
#include <string.h>

#include "io/text_digits.h"
#include "io/text_number.h"

#define DAY_SECONDS  86400
#define DAYS_YEAR    365
#define DAYS_4       (4 * DAYS_YEAR + 1)
#define DAYS_100     (25 * DAYS_4 - 1)
#define DAYS_400     (4 * DAYS_100 + 1)
#define DAYS_TO_1970 719468 /* from 0000-03-01 */

/* A count as a number of whole units, rounded down, and a remainder. */
struct split {
    int64_t whole; /* may be negative */
    int64_t rest;  /* 0 to unit - 1 */
};

/* Splits `count` by `unit`. */
static inline struct split split(int64_t count, int64_t unit)
{
    struct split s = {count / unit, count % unit};

    if (s.rest < 0) {
        s.whole--;
        s.rest += unit;
    }
    return s;
}

static int64_t power_of_ten(int digits)
{
    int64_t power = 1;

    assert(digits >= 0 && digits <= 9);
    while (digits-- > 0)
        power *= 10;
    return power;
}

/* Splits by a power of ten. Divisions by constants are faster. */
static struct split split_digits(int64_t count, int digits)
{
    switch (digits) {
    case 0:
        return (struct split){count, 0};
    case 3:
        return split(count, 1000);
    case 6:
        return split(count, 1000000);
    default:
        assert(digits == 9);
        return split(count, 1000000000);
    }
}

static int64_t at_most(int64_t value, int64_t limit)
{
    return value < limit ? value : limit;
}

/* ---- dates -------------------------------------------------------------- */

static char *put_year(char *at, int64_t year)
{
    if (year >= 0 && year <= 9999)
        return uva__text_put_four(at, (uint32_t)year);
    *at++ = year < 0 ? '-' : '+';
    if (year < 0)
        year = -year;
    if (year <= 9999)
        return uva__text_put_four(at, (uint32_t)year);
    return uva__text_number_put_uint(at, (uint64_t)year);
}

/* `day` counts from 1 March. */
static char *put_month_and_day(char *at, int64_t day)
{
    static const int64_t BEGINS[] = {0,   31,  61,  92,  122, 153,
                                     184, 214, 245, 275, 306, 337};
    const int month = (int)((5 * day + 2) / 153); /* 5 months have 153 days */

    assert(day >= 0 && day < DAYS_YEAR + 1);
    assert(BEGINS[month] <= day && (month == 11 || BEGINS[month + 1] > day));
    *at++ = '-';
    at = uva__text_put_two(at, (uint32_t)((month + 2) % 12 + 1));
    *at++ = '-';
    return uva__text_put_two(at, (uint32_t)(day - BEGINS[month] + 1));
}

char *uva__text_time_put_date(char *at, int64_t days)
{
    const struct split era = split(days + DAYS_TO_1970, DAYS_400);
    int64_t day = era.rest, hundreds, fours, years;

    hundreds = at_most(day / DAYS_100, 3);
    day -= hundreds * DAYS_100;
    fours = day / DAYS_4;
    day -= fours * DAYS_4;
    years = at_most(day / DAYS_YEAR, 3);
    day -= years * DAYS_YEAR;
    years += 4 * fours + 100 * hundreds + 400 * era.whole;
    at = put_year(at, day >= 306 ? years + 1 : years);
    return put_month_and_day(at, day);
}

/* ---- times -------------------------------------------------------------- */

static char *put_minutes(char *at, int64_t seconds)
{
    *at++ = ':';
    at = uva__text_put_two(at, (uint32_t)(seconds / 60));
    *at++ = ':';
    return uva__text_put_two(at, (uint32_t)(seconds % 60));
}

static char *put_clock(char *at, int64_t seconds)
{
    at = uva__text_put_two(at, (uint32_t)(seconds / 3600));
    return put_minutes(at, seconds % 3600);
}

static char *put_fraction(char *at, int64_t fraction, int digits)
{
    if (digits == 0)
        return at;
    *at++ = '.';
    return uva__text_number_put_digits(at, (uint64_t)fraction, digits);
}

/* Some databases have 24:00:00, and times that are spans. */
char *uva__text_time_put_time(char *at, int64_t count, int digits)
{
    const uint64_t unit = (uint64_t)power_of_ten(digits);
    const uint64_t size = count < 0 ? 0 - (uint64_t)count : (uint64_t)count;
    const uint64_t hours = size / unit / 3600;

    if (count < 0)
        *at++ = '-';
    if (hours > 99) {
        at = uva__text_number_put_uint(at, hours);
        at = put_minutes(at, (int64_t)(size / unit % 3600));
    } else {
        at = put_clock(at, (int64_t)(size / unit));
    }
    return put_fraction(at, (int64_t)(size % unit), digits);
}

static char *put_zone(char *at, int32_t zone)
{
    if (zone == 0) {
        *at++ = 'Z';
        return at;
    }
    *at++ = zone < 0 ? '-' : '+';
    if (zone < 0)
        zone = -zone;
    at = uva__text_put_two(at, (uint32_t)(zone / 60));
    *at++ = ':';
    return uva__text_put_two(at, (uint32_t)(zone % 60));
}

char *uva__text_time_put_timestamp(char *at, int64_t count, int digits,
                                   int32_t zone)
{
    const int64_t ahead = zone == UVA__TEXT_TIME_NO_ZONE ? 0 : zone * 60;
    const struct split s = split_digits(count, digits);
    struct split day = split(s.whole, DAY_SECONDS);
    const struct split shift = split(day.rest + ahead, DAY_SECONDS);

    at = uva__text_time_put_date(at, day.whole + shift.whole);
    *at++ = 'T';
    at = put_clock(at, shift.rest);
    at = put_fraction(at, s.rest, digits);
    return zone == UVA__TEXT_TIME_NO_ZONE ? at : put_zone(at, zone);
}

/* ---- durations ---------------------------------------------------------- */

static char *put_seconds(char *at, int64_t count, int digits)
{
    const int64_t unit = power_of_ten(digits);
    const int64_t whole = count / unit, rest = count % unit;

    *at++ = 'T';
    if (count < 0)
        *at++ = '-';
    at = uva__text_number_put_uint(at, whole < 0 ? 0 - (uint64_t)whole
                                                 : (uint64_t)whole);
    at = put_fraction(at, rest < 0 ? -rest : rest, digits);
    *at++ = 'S';
    return at;
}

char *uva__text_time_put_duration(char *at, int64_t count, int digits)
{
    *at++ = 'P';
    return put_seconds(at, count, digits);
}

char *uva__text_time_put_interval(char *at, int32_t months, int32_t days,
                                  int64_t count, int digits)
{
    *at++ = 'P';
    if (months != 0 || digits < 0) {
        at = uva__text_number_put_int(at, months);
        *at++ = 'M';
    }
    if (digits < 0)
        return at;
    at = uva__text_number_put_int(at, days);
    *at++ = 'D';
    return put_seconds(at, count, digits);
}

/* ---- zones -------------------------------------------------------------- */

static int two_digits(const char *at)
{
    if (at[0] < '0' || at[0] > '9' || at[1] < '0' || at[1] > '9')
        return -1;
    return 10 * (at[0] - '0') + at[1] - '0';
}

int32_t uva__text_time_read_zone(const char *name)
{
    const size_t size = strlen(name);
    int hours, minutes;

    if (*name == '\0')
        return UVA__TEXT_TIME_NO_ZONE;
    if ((*name != '+' && *name != '-') || (size != 6 && size != 5))
        return 0;
    if (size == 6 && name[3] != ':')
        return 0;
    hours = two_digits(name + 1);
    minutes = two_digits(name + size - 2);
    if (hours < 0 || minutes < 0 || hours > 23 || minutes > 59)
        return 0;
    return (*name == '-' ? -1 : 1) * (60 * hours + minutes);
}
