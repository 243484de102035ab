/* SPDX-License-Identifier: Apache-2.0 */
/* table_runs.h - long runs in the tables of make_unicode_tables.py. R4(x) to R2048(x) stand for 4
 * to 2048 elements with the value x, I4(x) to I32(x) for the values x, x + 1 and so on. */
#pragma once

#define R4(x) x, x, x, x
#define R8(x) R4(x), R4(x)
#define R16(x) R8(x), R8(x)
#define R32(x) R16(x), R16(x)
#define R64(x) R32(x), R32(x)
#define R128(x) R64(x), R64(x)
#define R256(x) R128(x), R128(x)
#define R512(x) R256(x), R256(x)
#define R1024(x) R512(x), R512(x)
#define R2048(x) R1024(x), R1024(x)

#define I4(x) x, x + 1, x + 2, x + 3
#define I8(x) I4(x), I4(x + 4)
#define I16(x) I8(x), I8(x + 8)
#define I32(x) I16(x), I16(x + 16)
