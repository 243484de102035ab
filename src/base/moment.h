/* SPDX-License-Identifier: Apache-2.0 */
/* moment.h - dates and points in time, as columns store them and as ISO 8601 writes them; all in
 * UTC. Pure. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum time_unit { /* the unit of the number that a column stores */
    TIME_NONE,           /* the number is not a point in time */
    TIME_DAYS,
    TIME_SECONDS,
    TIME_MILLISECONDS,
    TIME_MICROSECONDS,
    TIME_NANOSECONDS
} time_unit;

typedef struct moment {
    int64_t seconds; /* since 1970 */
    uint32_t nanoseconds;
} moment;

/* Reads a date, or a date, "T" or a space, and a time of the day:
 *     2026-11-25   2026-11-25T08:30   2026-11-25 08:30:00.25Z   2026-11-25T08:30:00+02:00
 * with up to nine digits after the point. Returns false for any other text, and for a day that does
 * not exist. */
bool moment_read(const char *text, size_t n_bytes, moment *m);
/* Converts a number of these units since 1970, at most 2^31 days. The unit must not be
 * TIME_NONE. */
moment moment_of(int64_t number, time_unit unit);
/* Returns a number below, equal to or above 0. */
int moment_compare(moment a, moment b);
