/* load_hf_pipeline.h - what a tokenizer.json does before its model: normalizer, pre_tokenizer; the
 * ends that its post_processor names; and its decoder. */
#ifndef TOKMAP_LOAD_HF_PIPELINE_H
#define TOKMAP_LOAD_HF_PIPELINE_H

#include "text/json_reader.h"
#include "tokenizer/model/model.h"

/* The reader stands before the value. false: err, or the reader's failure, says why. */
bool hf_read_normalizer(json_reader *r, model *m, model_error *err);
/* Sets m->kind to MODEL_BYTE_BPE when there is a ByteLevel. After hf_read_normalizer. */
bool hf_read_pre_tokenizer(json_reader *r, model *m, model_error *err);
/* What a Metaspace says, before the words or in a decoder. */
bool hf_read_metaspace(json_reader *r, prepend_scheme *prepend, bool *split);
/* Sets m->decode. After the model. A decoder that tokenizers does not know is refused. */
bool hf_read_decoder(json_reader *r, model *m, model_error *err);
/* Sets bos_id and eos_id where exactly one token stands before or after the text. */
bool hf_read_post_processor(json_reader *r, model *m, model_error *err);

#endif /* TOKMAP_LOAD_HF_PIPELINE_H */
