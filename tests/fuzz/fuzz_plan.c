/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_plan.c - any bytes as a plan: refused at one of its lines, or printed as they were. The
 * checksum at the end is first made right, or hardly any input would be a plan. */
#include "fuzz/fuzz.h"
#include "support/exact_copy.h"

#include <inttypes.h>

#include <xxhash.h>

#include "plan/plan_file.h"

#define CHECKSUM_BYTES 26 /* of its line */

static void check_cells(const plan_file *plan)
{
    size_t next = 0;
    for (size_t i = 0; i < plan->n_cells; i++) {
        plan_part part = plan_file_part(plan, i);
        if (part.end_input > part.first_input) { /* else the cell is empty */
            require(part.first_input <= next && part.first_input + (part.begin_offset > 0) >= next);
            require(part.end_input <= plan->n_inputs);
            next = part.end_input;
        }
        require(strlen(plan_file_cell_path(plan, i, "valid", "").s) < PATH_PREFIX_BYTES - 1);
    }
    require(next == plan->n_inputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    plan_file plan = {0};
    failure err;
    char *text = exact_copy(data, size), line[CHECKSUM_BYTES + 1];
    if (size >= CHECKSUM_BYTES && data[0] % 4) {
        size_t n = size - CHECKSUM_BYTES;
        snprintf(line, sizeof line, "checksum %016" PRIx64 "\n", XXH3_64bits(text, n));
        memcpy(text + n, line, CHECKSUM_BYTES);
    }
    if (plan_file_parse(&plan, text, size, &err)) {
        size_t n;
        char *printed = plan_file_print(&plan, &n);
        require(printed && n == size && memcmp(printed, text, n) == 0);
        check_cells(&plan);
        free(printed);
    } else {
        require(err.place > 0 && err.text[0]);
    }
    plan_file_free(&plan);
    free(text);
    return 0;
}
