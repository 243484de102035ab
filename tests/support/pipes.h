/* SPDX-License-Identifier: Apache-2.0 */
/* pipes.h - what tools read from tests in Python and write to them: little-endian numbers; bytes
 * after their length in 4 bytes; lines of bytes in hexadecimal, lower case. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

void put_number(uint64_t value, int n_bytes);
void put_bytes(const void *bytes, size_t n_bytes);
/* False at the end of stdin. */
bool get_length(size_t *n_bytes);
/* So many bytes of stdin, and `padding` bytes of `fill` behind them. If there are fewer, the tool
 * ends. */
uint8_t *get_bytes(size_t n_bytes, size_t padding, int fill);
/* The next line, and `padding` bytes of 0 behind it; NULL at the end of stdin. */
uint8_t *get_hex_line(size_t *n_bytes, size_t padding);
void put_hex(const void *bytes, size_t n_bytes);
