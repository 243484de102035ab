/* SPDX-License-Identifier: Apache-2.0 */
/* test_numbers - numbers of the command line: units in the ways in which people write them. */
#include "cli/cli.h"
#include "support/check.h"

TEST(numbers_may_have_units)
{
    static const struct {
        const char *text;
        uint64_t value;
    } numbers[] = {
        {"0", 0},
        {"18446744073709551615", UINT64_MAX},
        {"300k", 300000}, /* as 0.1.0 has it */
        {"7M", 7000000},
        {"7G", 7000000000},
        {"2T", 2000000000000},
        {"300K", 300000},
        {"1GB", 1000000000},
        {"1gb", 1000000000},
        {"5kB", 5000},
        {"5KB", 5000},
        {"5m", 5000000},
        {"64MiB", 64 << 20},
        {"64mib", 64 << 20},
        {"64Mi", 64 << 20},
        {"1KiB", 1024},
        {"3GiB", (uint64_t)3 << 30},
        {"16777215TiB", (uint64_t)16777215 << 40},
    };
    static const char *const wrong[] = {"",
                                        "k",
                                        "-1",
                                        "+1",
                                        " 1",
                                        "1 ",
                                        "1 k",
                                        "1kk",
                                        "1x",
                                        "1iB",
                                        "10B",
                                        "10b",
                                        "1KiBB",
                                        "1.5G",
                                        "0x1",
                                        "1Bk",
                                        "1kBi",
                                        "1E",
                                        "1\xff",
                                        "16777216TiB",
                                        "18446744073709551616",
                                        "18446744073709552k"};
    uint64_t value;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (!cli_parse_u64(numbers[i].text, &value))
            CHECK_FAIL("%s is refused", numbers[i].text);
        CHECK_EQ(value, numbers[i].value);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        if (cli_parse_u64(wrong[i], &value))
            CHECK_FAIL("'%s' is taken", wrong[i]);
}
