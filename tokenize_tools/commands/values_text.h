/* SPDX-License-Identifier: Apache-2.0 */
/* values_text.h - values of documents as text. */
#ifndef TOKMAP_VALUES_TEXT_H
#define TOKMAP_VALUES_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "tokmap.h"

/* "int64", "float64", "string", or "null" for a column without values. */
const char *values_type_name(tokmap_value_type type);
/* Prints the values of a document as a JSON object. False if one is damaged. JSON has no NaN
 * and no infinities: they are the strings "NaN", "Infinity" and "-Infinity". */
bool values_print_row(FILE *out, const tokmap_dataset *ds, uint64_t document);

#endif /* TOKMAP_VALUES_TEXT_H */
