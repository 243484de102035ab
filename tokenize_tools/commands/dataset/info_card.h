/* SPDX-License-Identifier: Apache-2.0 */
/* info_card.h - the card of a dataset for the Hugging Face Hub: the text of README.md. */
#pragma once

#include "datasets/lanes.h"
#include "datasets/values.h"
#include "tokmap.h"

typedef struct info_card {
    const tokmap_dataset *ds;
    const value_columns *columns;
    const lane_list *lanes;
} info_card;

/* Prints the card to stdout. It depends on the dataset and the name of its index alone. */
void info_card_print(const info_card *card);
