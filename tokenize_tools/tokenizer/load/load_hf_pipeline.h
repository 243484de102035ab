/* SPDX-License-Identifier: Apache-2.0 */
/* load_hf_pipeline.h - reads the parts of a tokenizer.json around its model: normalizer,
 * pre_tokenizer, the ends that its post_processor names, and its decoder. */
#pragma once

#include "base/json_reader.h"
#include "tokenizer/model/model.h"

/* The reader must be before the value, or at 0 if the file has none. false: err, or the failure of
 * the reader, gives the reason. */
bool hf_read_normalizer(json_reader *r, model *m, failure *err);
/* Sets m->kind to MODEL_BYTE_BPE if of_bytes and the words that a ByteLevel leaves are of bytes.
 * Call after hf_read_normalizer. */
bool hf_read_pre_tokenizer(json_reader *r, model *m, bool of_bytes, failure *err);
/* After the added tokens: without m->split, if m->split_text never occurs. Gemma's normalizer
 * leaves no spaces, ChatGLM's no "<!dummy-prefix!>", and a newline is one of Helium's added tokens.
 */
void hf_drop_absent_split(model *m);
/* Reads a Metaspace, of a pre_tokenizer or a decoder. */
bool hf_read_byte_level(json_reader *r, bool *prefix_space, bool *use_regex);
bool hf_read_metaspace(json_reader *r, prepend_scheme *prepend, bool *split);
/* Sets m->decode, after the model was read. Refuses a decoder that tokenizers does not have. */
bool hf_read_decoder(json_reader *r, model *m, failure *err);
/* Sets bos_id and eos_id if exactly one token is before or after the text. */
bool hf_read_post_processor(json_reader *r, model *m, failure *err);
