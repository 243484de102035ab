/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz_parquet_footer.c - any bytes as the footer of a Parquet file: refused, or consistent. */
#include "fuzz/fuzz.h"
#include "formats/parquet/footer.h"

static void check_element(const parquet_footer *f, size_t i)
{
    const parquet_element *e = &f->elements[i];
    char path[4096];
    failure err;
    require(e->parent < i || i == 0);
    require(!e->is_leaf || e->leaf < f->n_leaves);
    parquet_path(f, e, path, sizeof path);
    require(strlen(path) < sizeof path);
    const parquet_element *text = parquet_text_column(f, path, &err);
    require(text || strlen(err.text) > 0);
    require(!text || (text->max_repetition == 0 &&
                      (text->type == PARQUET_BYTE_ARRAY || parquet_is_null(f, text))));
    const parquet_element *value = parquet_value_column(f, path, &err);
    require(value || strlen(err.text) > 0);
    require(!text || value == text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parquet_footer f;
    failure err;
    const uint64_t file_bytes = 1 << 20;
    if (!parquet_footer_read(&f, data, size, file_bytes, &err)) {
        require(strlen(err.text) > 0 && strlen(err.text) < sizeof err.text);
        return 0;
    }
    uint64_t n_rows = 0;
    for (size_t i = 0; i < f.n_groups; i++) {
        require(f.groups[i].first_row == n_rows);
        n_rows += f.groups[i].n_rows;
    }
    require(n_rows == f.n_rows);
    for (size_t i = 0; i < f.n_groups * f.n_leaves; i++)
        require(f.chunks[i].offset <= file_bytes && f.chunks[i].stored_bytes <= file_bytes);
    for (size_t i = 0; i < f.n_elements && i < 100; i++)
        check_element(&f, i);
    parquet_footer_free(&f);
    return 0;
}
