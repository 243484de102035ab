/* SPDX-License-Identifier: Apache-2.0 */
/* Dates and points in time: days of each month of 10,000 years as libc counts them, and texts that
 * moment_read refuses. */
#include "support/check.h"

#include <time.h>

#include "base/moment.h"

static bool reads(const char *text, int64_t seconds, uint32_t nanoseconds)
{
    moment m;
    return moment_read(text, strlen(text), &m) && m.seconds == seconds &&
           m.nanoseconds == nanoseconds;
}

/* libc carries the 31st of a short month into the next one, which is then no such day. */
static void check_day(int year, int month, int day)
{
    struct tm tm = {.tm_year = year - 1900, .tm_mon = month - 1, .tm_mday = day};
    const int64_t seconds = timegm(&tm);
    char text[32];
    moment m;
    snprintf(text, sizeof text, "%04d-%02d-%02d", year, month, day);
    if (tm.tm_mday == day)
        CHECK(reads(text, seconds, 0));
    else
        CHECK(!moment_read(text, strlen(text), &m));
}

TEST(days_are_those_of_libc)
{
    static const int days[] = {1, 2, 27, 28, 29, 30, 31};
    for (int i = 0; i < 10000 * 12; i++)
        for (size_t k = 0; k < sizeof days / sizeof *days; k++)
            check_day(i / 12, i % 12 + 1, days[k]);
}

TEST(times_of_a_day_and_zones)
{
    CHECK(reads("1970-01-01T00:00", 0, 0));
    CHECK(reads("1970-01-02 23:59:59", 2 * 86400 - 1, 0));
    CHECK(reads("1970-01-01T00:00:01.5Z", 1, 500000000));
    CHECK(reads("1970-01-01T00:00:01.000000001", 1, 1));
    CHECK(reads("1969-12-31T23:59:59.123456789Z", -1, 123456789));
    CHECK(reads("1970-01-01T02:00:00+02:00", 0, 0));
    CHECK(reads("1970-01-01T02:30+0230", 0, 0));
    CHECK(reads("1969-12-31T18-06", 0, 0) == false);
    CHECK(reads("1969-12-31T18:00-06", 0, 0));
}

TEST(anything_else_is_refused)
{
    static const char *const texts[] = {
        "",
        "1970",
        "1970-01",
        "1970-1-1",
        "70-01-01",
        "1970-00-01",
        "1970-13-01",
        "1970-01-00",
        "1970-01-32",
        "1970/01/01",
        "1970-01-01T",
        "1970-01-01T01",
        "1970-01-01T24:00",
        "1970-01-01T00:60",
        "1970-01-01T00:00:60",
        "1970-01-01T00:00:00.",
        "1970-01-01T00:00:00.1234567891",
        "1970-01-01T00:00:00,5",
        "1970-01-01t00:00",
        "1970-01-01T00:00z",
        "1970-01-01T00:00 Z",
        "1970-01-01T00:00+",
        "1970-01-01T00:00+1",
        "1970-01-01T00:00+01:",
        "1970-01-01T00:00+24:00",
        "1970-01-01Z",
        " 1970-01-01",
        "1970-01-01 ",
        "-1970-01-01",
        "+1970-01-01",
    };
    moment m;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        CHECK(!moment_read(texts[i], strlen(texts[i]), &m));
    CHECK(!moment_read(NULL, 0, &m));
}

static bool is(moment m, int64_t seconds, uint32_t nanoseconds)
{
    return m.seconds == seconds && m.nanoseconds == nanoseconds;
}

TEST(numbers_of_units)
{
    CHECK(is(moment_of(-1, TIME_DAYS), -86400, 0));
    CHECK(is(moment_of(INT32_MIN, TIME_DAYS), INT32_MIN * (int64_t)86400, 0));
    CHECK(is(moment_of(INT64_MIN, TIME_SECONDS), INT64_MIN, 0));
    CHECK(is(moment_of(-1, TIME_MILLISECONDS), -1, 999000000));
    CHECK(is(moment_of(-1000000, TIME_MICROSECONDS), -1, 0));
    CHECK(is(moment_of(1999999, TIME_MICROSECONDS), 1, 999999000));
    CHECK(is(moment_of(INT64_MIN, TIME_NANOSECONDS), -9223372037, 145224192));
    CHECK(is(moment_of(INT64_MAX, TIME_NANOSECONDS), 9223372036, 854775807));
}

TEST(order)
{
    const moment moments[] = {{INT64_MIN, 0}, {-1, 0}, {-1, 999999999}, {0, 0}, {0, 1}, {5, 0}};
    const int n = sizeof moments / sizeof *moments;
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            const int c = moment_compare(moments[i], moments[k]);
            CHECK_EQ((c > 0) - (c < 0), (i > k) - (i < k));
        }
}
