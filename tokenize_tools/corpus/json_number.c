#include "corpus/json_number.h"

bool json_number_may_end(json_number n)
{
    return n == AFTER_ZERO || n == AFTER_DIGITS || n == AFTER_DECIMALS || n == AFTER_E_DIGITS;
}

bool json_number_step(json_number *n, uint8_t c)
{
    static const struct {
        uint8_t digit, zero, point, e, plus, minus; /* what follows; 0: it cannot */
    } next[] = {
        [NUMBER_BEGINS] = {AFTER_DIGITS, AFTER_ZERO, 0, 0, 0, AFTER_MINUS},
        [AFTER_MINUS] = {AFTER_DIGITS, AFTER_ZERO, 0, 0, 0, 0},
        [AFTER_ZERO] = {0, 0, AFTER_POINT, AFTER_E, 0, 0},
        [AFTER_DIGITS] = {AFTER_DIGITS, AFTER_DIGITS, AFTER_POINT, AFTER_E, 0, 0},
        [AFTER_POINT] = {AFTER_DECIMALS, AFTER_DECIMALS, 0, 0, 0, 0},
        [AFTER_DECIMALS] = {AFTER_DECIMALS, AFTER_DECIMALS, 0, AFTER_E, 0, 0},
        [AFTER_E] = {AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, AFTER_E_SIGN, AFTER_E_SIGN},
        [AFTER_E_SIGN] = {AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, 0, 0},
        [AFTER_E_DIGITS] = {AFTER_E_DIGITS, AFTER_E_DIGITS, 0, 0, 0, 0},
    };
    uint8_t to = NUMBER_BEGINS;
    if (c >= '0' && c <= '9')
        to = c == '0' ? next[*n].zero : next[*n].digit;
    else if (c == '.')
        to = next[*n].point;
    else if (c == 'e' || c == 'E')
        to = next[*n].e;
    else if (c == '+')
        to = next[*n].plus;
    else if (c == '-')
        to = next[*n].minus;
    if (to != NUMBER_BEGINS)
        *n = (json_number)to;
    return to != NUMBER_BEGINS;
}
