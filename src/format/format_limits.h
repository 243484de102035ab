/* SPDX-License-Identifier: Apache-2.0 */
/* format_limits.h - the limits of the format, as numbers: docs/FORMAT.md section 5. */
#pragma once

#define TOKMAP_I_MAX_TOKENS (1ull << 48)
#define TOKMAP_I_MAX_DOCUMENTS (1ull << 40)
#define TOKMAP_I_MAX_VOCAB (1ull << 31)
#define TOKMAP_I_MAX_TOKEN_OFFSET (1ull << 30)

enum {
    TOKMAP_I_MAX_SECTIONS = 32,
    TOKMAP_I_MAX_INPUTS = 1 << 24,
    TOKMAP_I_MAX_INPUT_NAME = 4096,
    TOKMAP_I_MAX_METADATA_BYTES = 64 << 20,
    TOKMAP_I_MAX_SEGMENTS = 1 << 20,
    TOKMAP_I_MAX_SEGMENT_NAME = 4096,
    TOKMAP_I_MAX_META_COLUMNS = 64,
    TOKMAP_I_MAX_META_NAME = 255,
    TOKMAP_I_MAX_META_STRING = 64 << 10,
    TOKMAP_I_MAX_META_DICTIONARY = 64 << 10
};
