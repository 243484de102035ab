/* json_number.h - a JSON number, a byte at a time; for json_line.c. */
#ifndef TOKMAP_JSON_NUMBER_H
#define TOKMAP_JSON_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum json_number { /* what the number at hand ends with */
    NUMBER_BEGINS,
    AFTER_MINUS,
    AFTER_ZERO,
    AFTER_DIGITS,
    AFTER_POINT,
    AFTER_DECIMALS,
    AFTER_E,
    AFTER_E_SIGN,
    AFTER_E_DIGITS
} json_number;

/* Whether the number goes on with c. */
bool json_number_step(json_number *n, uint8_t c);
bool json_number_may_end(json_number n);

#endif /* TOKMAP_JSON_NUMBER_H */
