/* SPDX-License-Identifier: Apache-2.0 */
#include "loader/look_ahead.h"

#include "support/check.h"

TEST(a_step_is_slow_if_it_waited_for_a_read)
{
    CHECK(!tokmap_i_is_slow(32000, 1, 0));
    CHECK(tokmap_i_is_slow(32001, 1, 0));
    CHECK(!tokmap_i_is_slow(30000 + 64 * 2000 + 1000, 64, 4000));
    CHECK(tokmap_i_is_slow(30000 + 64 * 2000 + 1001, 64, 4003));
}

TEST(the_look_ahead_doubles_as_long_as_steps_come_faster)
{
    tokmap_i_look_ahead a = {.n_steps = 4, .most_steps = 32};
    CHECK(!tokmap_i_adapt(&a, 15, 1000)); /* too few steps to measure */
    CHECK_EQ(a.n_steps, 4);
    CHECK(tokmap_i_adapt(&a, 16, 16000));
    CHECK_EQ(a.n_steps, 8);
    CHECK(tokmap_i_adapt(&a, 32, 16000)); /* twice as fast */
    CHECK_EQ(a.n_steps, 16);
    CHECK(tokmap_i_adapt(&a, 64, 64 * 450)); /* a tenth more */
    CHECK_EQ(a.n_steps, 32);
    CHECK(!tokmap_i_adapt(&a, 128, 128 * 100)); /* there are no more */
    CHECK_EQ(a.n_steps, 32);
}

TEST(a_look_ahead_that_does_not_help_goes_back_for_good)
{
    tokmap_i_look_ahead a = {.n_steps = 4, .most_steps = 32};
    CHECK(tokmap_i_adapt(&a, 16, 16000));
    CHECK(tokmap_i_adapt(&a, 32, 32 * 920));
    CHECK_EQ(a.n_steps, 4);
    CHECK_EQ(a.most_steps, 0);
    CHECK(!tokmap_i_adapt(&a, 1000, 1));
    CHECK_EQ(a.n_steps, 4);
}

TEST(without_room_the_look_ahead_stays)
{
    tokmap_i_look_ahead a = {.n_steps = 4, .most_steps = 7}, fixed = {.n_steps = 4};
    CHECK(!tokmap_i_adapt(&a, 100, 1000));
    CHECK(!tokmap_i_adapt(&fixed, 100, 1000));
    CHECK_EQ(a.n_steps, 4);
    CHECK_EQ(fixed.n_steps, 4);
}

TEST(steps_of_a_store_are_those_of_two_seconds_or_of_twice_the_slowest)
{
    const uint64_t second = 1000000000;
    CHECK_EQ(tokmap_i_steps_ahead(second / 10, 0, 1000), 21);
    CHECK_EQ(tokmap_i_steps_ahead(second / 10, 3 * second, 1000), 61);
    CHECK_EQ(tokmap_i_steps_ahead(second / 10, 3 * second, 50), 50);
    CHECK_EQ(tokmap_i_steps_ahead(100 * second, 0, 1000), 4);
    CHECK_EQ(tokmap_i_steps_ahead(100 * second, 0, 2), 2);
    CHECK_EQ(tokmap_i_steps_ahead(0, 0, 64), 64);
}
