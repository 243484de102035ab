/* SPDX-License-Identifier: Apache-2.0 */
/* check_model.h - the invariants of every vocabulary loader, for any input. */
#pragma once

#include "fuzz/fuzz.h"
#include "tokenizer/load/model_load.h"

/* Loads by `load` and looks at what came of it. */
void check_loader(bool (*load)(model *, const model_source *, failure *),
                  const model_source *source);
