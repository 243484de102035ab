/* SPDX-License-Identifier: Apache-2.0 */
/* test_real.c - doubles as text and back. test_locale.py also runs this with a decimal comma. */
#include "base/real.h"

#include <locale.h>

#include "base/error.h"
#include "base/number.h"
#include "support/check.h"

TEST(a_double_is_read_up_to_the_first_byte_that_does_not_belong_to_it)
{
    char *end;
    CHECK(real_read("0.5,5", &end) == 0.5);
    CHECK_STR(end, ",5");
    CHECK(real_read("-1.25e2", NULL) == -125);
    CHECK(number_read("1234.5", 6).real == 1234.5);
}

TEST(a_double_is_written_with_the_fewest_digits)
{
    static const struct {
        double value;
        const char *text;
    } rows[] = {{0.1, "0.1"},      {0.1 + 0.2, "0.30000000000000004"}, {-2, "-2"},
                {1e300, "1e+300"}, {1 / 3.0, "0.3333333333333333"},    {123456.75, "123456.75"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char text[REAL_BYTES];
        real_write(text, rows[i].value);
        CHECK_STR(text, rows[i].text);
    }
}

TEST(messages_have_a_point)
{
    tokmap_error err;
    failure f;
    CHECK_REFUSED(FAIL(&err, TOKMAP_ERR_ARGUMENT, "%g is", 0.5), TOKMAP_ERR_ARGUMENT, err,
                  "0.5 is");
    CHECK(!fail(&f, "%g is", 0.5));
    CHECK_STR(f.text, "0.5 is");
}

TEST(the_locale_stays_as_it_was)
{
    const locale_t before = uselocale((locale_t)0);
    const char *point = localeconv()->decimal_point;
    char text[8];
    real_print(text, sizeof text, "%.1f", real_read("2.5", NULL));
    CHECK_STR(text, "2.5");
    CHECK(uselocale((locale_t)0) == before && localeconv()->decimal_point == point);
}
