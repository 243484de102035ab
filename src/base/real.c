/* SPDX-License-Identifier: Apache-2.0 */
#include "base/real.h"

#include <float.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

/* Sets the C locale for this thread alone, and returns the one to go back to. The C locale itself
 * is a constant of the C library: neither call allocates. */
static locale_t enter_c_locale(locale_t *c)
{
    *c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    return uselocale(*c);
}

static void leave_c_locale(locale_t c, locale_t before)
{
    uselocale(before);
    freelocale(c);
}

double real_read(const char *text, char **end)
{
    locale_t c, before = enter_c_locale(&c);
    const double value = strtod(text, end);
    leave_c_locale(c, before);
    return value;
}

int real_print_list(char *text, size_t n_bytes, const char *format, va_list args)
{
    locale_t c, before = enter_c_locale(&c);
    const int n = vsnprintf(text, n_bytes, format, args);
    leave_c_locale(c, before);
    return n;
}

int real_print(char *text, size_t n_bytes, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int n = real_print_list(text, n_bytes, format, args);
    va_end(args);
    return n;
}

void real_write(char text[REAL_BYTES], double value)
{
    int n = DBL_DIG;
    do
        real_print(text, REAL_BYTES, "%.*g", n, value);
    while (n++ < DBL_DECIMAL_DIG && real_read(text, NULL) != value);
}
