/* SPDX-License-Identifier: Apache-2.0 */
/* made_text.h - a corpus for those who have none at hand. */
#pragma once

#include "core/bench.h"

/* Writes n_bytes, or a document more, of JSON lines: the same on every machine. The words are
 * common ones of English, and others made of syllables. How often each one occurs follows Zipf's
 * law, as in a language; so an encoder meets common words again and again, and always some that
 * are new. */
void made_text_write(const char *path, uint64_t n_bytes);
