#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make_content_hash_tables.py - prints content_hash_tables.h: for content_hash.c, what each value of a byte adds to a
remainder when 0 to 3 bytes follow it."""

POLYNOMIALS = {"CRC-64/NVME": 0x9A6C9329AC4BC9B5, "CRC-64/REDIS": 0x95AC9329AC4BC9B5}  # reflected, without x^64


def shift(crc, polynomial, n_bits):
    for _ in range(n_bits):
        crc = crc >> 1 ^ (polynomial if crc & 1 else 0)
    return crc


def main():
    print("/* SPDX-License-Identifier: Apache-2.0 */\n/* content_hash_tables.h - made by make_content_hash_tables.py. */\n"
          "#ifndef TOKMAP_CONTENT_HASH_TABLES_H\n#define TOKMAP_CONTENT_HASH_TABLES_H\n\n#include <stdint.h>\n\n"
          "/* [modulus][bytes that follow][byte] */\n"
          "static const uint64_t content_hash_tables[2][4][256] = {")
    for name, polynomial in POLYNOMIALS.items():
        print("    { /* %s */" % name)
        for n_follow in range(4):
            print("        {")
            values = ["0x%016x" % shift(byte, polynomial, 8 * (n_follow + 1)) for byte in range(256)]
            for i in range(0, 256, 4):
                print("            %s," % ", ".join(values[i:i + 4]))
            print("        },")
        print("    },")
    print("};\n\n#endif /* TOKMAP_CONTENT_HASH_TABLES_H */")


if __name__ == "__main__":
    main()
