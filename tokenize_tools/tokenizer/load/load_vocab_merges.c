/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "tokenizer/load/hf_vocabulary.h"
#include "tokenizer/load/model_load.h"
#include "tokenizer/load/presets.h"

#define END_OF_TEXT "<|endoftext|>"

/* The pattern of --pattern with its specials, or GPT-2's; <|endoftext|> is in GPT-2's vocabulary,
 * but is not one of the ranks. */
static bool set_pattern(model *m, const char *pattern, const name_table *names, failure *err)
{
    const uint32_t id = name_table_find(names, END_OF_TEXT, strlen(END_OF_TEXT));
    const uint32_t n_ranks = (uint32_t)names->n_used - (id != NAME_TABLE_NONE);
    preset_choice p;
    if (!preset_find(&p, pattern ? pattern : "gpt2" PRESET_ANY, err) ||
        !preset_apply(p, m, n_ranks, err))
        return false;
    if (id == NAME_TABLE_NONE || m->eos_id != MODEL_NO_ID)
        return true;
    return model_add_special(m, id, model_view(END_OF_TEXT, strlen(END_OF_TEXT)), err);
}

bool load_vocab_merges(model *m, const model_source *source, failure *err)
{
    json_reader r;
    name_table names = {0};
    if (!source->merges)
        return model_fail(err, 0, "a vocab.json needs its merges.txt in the same folder");
    m->kind = MODEL_BYTE_BPE;
    m->rule = MERGE_LISTED;
    m->family = "byte-level BPE";
    json_reader_init(&r, source->data, source->n_bytes);
    const json_string lines = {(const char *)source->merges, source->merges_bytes};
    const bool ok = hf_read_vocabulary(&r, m, &names, err) && json_end(&r) &&
                    hf_read_merge_lines(lines, m, &names, err) &&
                    set_pattern(m, source->pattern, &names, err);
    name_table_free(&names);
    return model_end_json(ok, &r, err);
}
