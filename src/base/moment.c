/* SPDX-License-Identifier: Apache-2.0 */
#include "base/moment.h"

#include "base/number.h"

enum {
    DAY = 24 * 60 * 60, /* seconds */
    SECOND = 1000000000 /* nanoseconds */
};

typedef struct cursor {
    const char *at, *end;
} cursor;

static bool take(cursor *c, char byte)
{
    const bool found = c->at < c->end && *c->at == byte;
    c->at += found;
    return found;
}

static bool take_digits(cursor *c, size_t n, uint64_t most, uint64_t *value)
{
    if ((size_t)(c->end - c->at) < n || !number_read_digits(c->at, n, value))
        return false;
    c->at += n;
    return *value <= most;
}

/* ---- Days ---- */

static bool is_leap_year(uint64_t year)
{
    return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
}

/* Counts the days since the year 0. */
static uint64_t days_before_year(uint64_t year)
{
    return year == 0 ? 0 : 365 * year + (year - 1) / 4 - (year - 1) / 100 + (year - 1) / 400 + 1;
}

static bool take_date(cursor *c, moment *m)
{
    static const unsigned in_month[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    uint64_t year, month, day;
    if (!take_digits(c, 4, 9999, &year) || !take(c, '-') || !take_digits(c, 2, 12, &month) ||
        month == 0 || !take(c, '-') ||
        !take_digits(c, 2, in_month[month - 1] + (month == 2 && is_leap_year(year)), &day) ||
        day == 0)
        return false;
    uint64_t n = days_before_year(year) + day - 1 + (month > 2 && is_leap_year(year));
    for (uint64_t i = 1; i < month; i++)
        n += in_month[i - 1];
    m->seconds = ((int64_t)n - (int64_t)days_before_year(1970)) * DAY;
    return true;
}

/* ---- The time of a day ---- */

/* Reads the digits after a point. */
static bool take_fraction(cursor *c, moment *m)
{
    uint64_t digit;
    uint32_t unit = SECOND;
    while (unit > 1 && take_digits(c, 1, 9, &digit)) {
        unit /= 10;
        m->nanoseconds += (uint32_t)digit * unit;
    }
    return unit < SECOND;
}

static bool take_time(cursor *c, moment *m)
{
    uint64_t hour, minute, second = 0;
    if (!take_digits(c, 2, 23, &hour) || !take(c, ':') || !take_digits(c, 2, 59, &minute))
        return false;
    if (take(c, ':') && (!take_digits(c, 2, 59, &second) || (take(c, '.') && !take_fraction(c, m))))
        return false;
    m->seconds += (int64_t)((hour * 60 + minute) * 60 + second);
    return true;
}

/* Reads "Z", or the difference to UTC. */
static bool take_zone(cursor *c, moment *m)
{
    uint64_t hours, minutes = 0;
    const bool is_ahead = take(c, '+');
    if (!is_ahead && !take(c, '-'))
        return take(c, 'Z');
    if (!take_digits(c, 2, 23, &hours))
        return false;
    if ((take(c, ':') || c->at < c->end) && !take_digits(c, 2, 59, &minutes))
        return false;
    const int64_t seconds = (int64_t)(hours * 60 + minutes) * 60;
    m->seconds -= is_ahead ? seconds : -seconds;
    return true;
}

/* ---- Moments ---- */

bool moment_read(const char *text, size_t n_bytes, moment *m)
{
    cursor c = {text, n_bytes ? text + n_bytes : text};
    *m = (moment){0};
    if (!take_date(&c, m))
        return false;
    if (c.at == c.end)
        return true;
    if ((!take(&c, 'T') && !take(&c, ' ')) || !take_time(&c, m))
        return false;
    return c.at == c.end || (take_zone(&c, m) && c.at == c.end);
}

moment moment_of(int64_t number, time_unit unit)
{
    static const int64_t in_second[] = {[TIME_SECONDS] = 1,
                                        [TIME_MILLISECONDS] = 1000,
                                        [TIME_MICROSECONDS] = 1000000,
                                        [TIME_NANOSECONDS] = SECOND};
    if (unit == TIME_DAYS)
        return (moment){number * DAY, 0};
    const int64_t n = in_second[unit], rest = number % n < 0 ? number % n + n : number % n;
    return (moment){number / n - (number % n < 0), (uint32_t)(rest * (SECOND / n))};
}

int moment_compare(moment a, moment b)
{
    if (a.seconds != b.seconds)
        return a.seconds < b.seconds ? -1 : 1;
    return (a.nanoseconds > b.nanoseconds) - (a.nanoseconds < b.nanoseconds);
}
