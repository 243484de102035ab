/* SPDX-License-Identifier: Apache-2.0 */
/* real.h - doubles as text and back, with a point in every locale.
 *
 * strtod and printf follow the locale of the process, which a program that uses the libraries may
 * set: in German "0.5" is 0, and 0.5 is printed as "0,5". Only this file calls strtod, and in the
 * libraries only this file prints a double; `make lint` checks it. Pure. */
#pragma once

#include <stdarg.h>
#include <stddef.h>

/* Reads a double as strtod does in the C locale. */
double real_read(const char *text, char **end);

/* Print as snprintf and vsnprintf do in the C locale. */
__attribute__((format(printf, 3, 4))) int real_print(char *text, size_t n_bytes, const char *format,
                                                     ...);
__attribute__((format(printf, 3, 0))) int real_print_list(char *text, size_t n_bytes,
                                                          const char *format, va_list args);

enum {
    REAL_BYTES = 32
};

/* Writes a finite double with the fewest digits from which real_read reads the same double. */
void real_write(char text[REAL_BYTES], double value);
