/* table.h - how tables for people are set. */
#ifndef TOKMAP_BENCH_TABLE_H
#define TOKMAP_BENCH_TABLE_H

#include <stdio.h>

typedef struct table_text {
    char s[64];
} table_text;

/* Three digits, and k, M, G for what is large. */
table_text table_number(double value);
/* Columns of the terminal, or $COLUMNS, or 80; between 60 and 160. */
int table_columns(FILE *out);

#endif /* TOKMAP_BENCH_TABLE_H */
