/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/presets.h"

#include <stdio.h>
#include <string.h>

/* The lists are those of the reference implementations: tiktoken's openai_public.py, Meta's
 * tokenizer.py, mistral-common's tekken.py, nanochat's tokenizer.py, and the tokenizer.json of Qwen
 * and DeepSeek. */

static const preset_special gpt2[] = {{50256, 0, "<|endoftext|>", 0, false}};

static const preset_special p50k_edit[] = {{50256, 0, "<|endoftext|>", 0, false},
                                           {50281, 0, "<|fim_prefix|>", 0, false},
                                           {50282, 0, "<|fim_middle|>", 0, false},
                                           {50283, 0, "<|fim_suffix|>", 0, false}};

static const preset_special cl100k[] = {{100257, 0, "<|endoftext|>", 0, false},
                                        {100258, 0, "<|fim_prefix|>", 0, false},
                                        {100259, 0, "<|fim_middle|>", 0, false},
                                        {100260, 0, "<|fim_suffix|>", 0, false},
                                        {100276, 0, "<|endofprompt|>", 0, false}};

static const preset_special o200k[] = {{199999, 0, "<|endoftext|>", 0, false},
                                       {200018, 0, "<|endofprompt|>", 0, false}};

/* tiktoken has two names for 200018. */
static const preset_special o200k_harmony[] = {{199998, 0, "<|startoftext|>", 0, false},
                                               {199999, 0, "<|endoftext|>", 0, false},
                                               {200000, 2, "<|reserved_*|>", 200000, false},
                                               {200002, 0, "<|return|>", 0, false},
                                               {200003, 0, "<|constrain|>", 0, false},
                                               {200004, 1, "<|reserved_*|>", 200004, false},
                                               {200005, 0, "<|channel|>", 0, false},
                                               {200006, 0, "<|start|>", 0, false},
                                               {200007, 0, "<|end|>", 0, false},
                                               {200008, 0, "<|message|>", 0, false},
                                               {200009, 3, "<|reserved_*|>", 200009, false},
                                               {200012, 0, "<|call|>", 0, false},
                                               {200018, 0, "<|endofprompt|>", 0, false},
                                               {200013, 1075, "<|reserved_*|>", 200013, false}};

static const preset_special llama3[] = {{0, 0, "<|begin_of_text|>", 0, false},
                                        {1, 0, "<|end_of_text|>", 0, false},
                                        {2, 2, "<|reserved_special_token_*|>", 0, false},
                                        {4, 0, "<|finetune_right_pad_id|>", 0, false},
                                        {5, 0, "<|step_id|>", 0, false},
                                        {6, 0, "<|start_header_id|>", 0, false},
                                        {7, 0, "<|end_header_id|>", 0, false},
                                        {8, 0, "<|eom_id|>", 0, false},
                                        {9, 0, "<|eot_id|>", 0, false},
                                        {10, 0, "<|python_tag|>", 0, false},
                                        {11, 0, "<|image|>", 0, false},
                                        {12, 244, "<|reserved_special_token_*|>", 2, false}};

static const preset_special llama4[] = {
    {0, 0, "<|begin_of_text|>", 0, false},
    {1, 0, "<|end_of_text|>", 0, false},
    {2, 0, "<|fim_prefix|>", 0, false},
    {3, 0, "<|fim_middle|>", 0, false},
    {4, 0, "<|fim_suffix|>", 0, false},
    {5, 0, "<|header_start|>", 0, false},
    {6, 0, "<|header_end|>", 0, false},
    {7, 0, "<|eom|>", 0, false},
    {8, 0, "<|eot|>", 0, false},
    {9, 0, "<|step|>", 0, false},
    {10, 6, "<|text_post_train_reserved_special_token_*|>", 0, false},
    {16, 0, "<|python_start|>", 0, false},
    {17, 0, "<|python_end|>", 0, false},
    {18, 0, "<|finetune_right_pad|>", 0, false},
    {19, 61, "<|text_post_train_reserved_special_token_*|>", 8, false},
    {80, 0, "<|image_start|>", 0, false},
    {81, 0, "<|image_end|>", 0, false},
    {82, 2, "<|vision_reserved_special_token_*|>", 0, false},
    {84, 0, "<|tile_x_separator|>", 0, false},
    {85, 0, "<|tile_y_separator|>", 0, false},
    {86, 4, "<|vision_reserved_special_token_*|>", 2, false},
    {90, 0, "<|image|>", 0, false},
    {91, 1, "<|vision_reserved_special_token_*|>", 6, false},
    {92, 0, "<|patch|>", 0, false},
    {93, 1041, "<|vision_reserved_special_token_*|>", 7, false},
    {1134, 8, "<|reasoning_reserved_special_token_*|>", 0, false},
    {1142, 0, "<|reasoning_thinking_start|>", 0, false},
    {1143, 0, "<|reasoning_thinking_end|>", 0, false},
    {1144, 904, "<|reserved_special_token_*|>", 0, false}};

/* Qwen 2 has the first 3, Qwen 2.5 the first 22, Qwen 3 all. */
static const preset_special qwen[] = {
    {0, 0, "<|endoftext|>", 0, false},
    {1, 0, "<|im_start|>", 0, false},
    {2, 0, "<|im_end|>", 0, false},
    {3, 0, "<|object_ref_start|>", 0, false},
    {4, 0, "<|object_ref_end|>", 0, false},
    {5, 0, "<|box_start|>", 0, false},
    {6, 0, "<|box_end|>", 0, false},
    {7, 0, "<|quad_start|>", 0, false},
    {8, 0, "<|quad_end|>", 0, false},
    {9, 0, "<|vision_start|>", 0, false},
    {10, 0, "<|vision_end|>", 0, false},
    {11, 0, "<|vision_pad|>", 0, false},
    {12, 0, "<|image_pad|>", 0, false},
    {13, 0, "<|video_pad|>", 0, false},
    {14, 0, "<tool_call>", 0, true},
    {15, 0, "</tool_call>", 0, true},
    {16, 0, "<|fim_prefix|>", 0, true},
    {17, 0, "<|fim_middle|>", 0, true},
    {18, 0, "<|fim_suffix|>", 0, true},
    {19, 0, "<|fim_pad|>", 0, true},
    {20, 0, "<|repo_name|>", 0, true},
    {21, 0, "<|file_sep|>", 0, true},
    {22, 0, "<tool_response>", 0, true},
    {23, 0, "</tool_response>", 0, true},
    {24, 0, "<think>", 0, true},
    {25, 0, "</think>", 0, true},
};

static const preset_special deepseek3[] = {{0, 0, "<｜begin▁of▁sentence｜>", 0, false},
                                           {1, 0, "<｜end▁of▁sentence｜>", 0, false},
                                           {2, 0, "<｜▁pad▁｜>", 0, false},
                                           {128000, 800, "<｜place▁holder▁no▁*｜>", 0, false},
                                           {128800, 0, "<｜fim▁hole｜>", 0, true},
                                           {128801, 0, "<｜fim▁begin｜>", 0, true},
                                           {128802, 0, "<｜fim▁end｜>", 0, true},
                                           {128803, 0, "<｜User｜>", 0, true},
                                           {128804, 0, "<｜Assistant｜>", 0, true},
                                           {128805, 0, "<|EOT|>", 0, false},
                                           {128806, 0, "<｜tool▁calls▁begin｜>", 0, true},
                                           {128807, 0, "<｜tool▁calls▁end｜>", 0, true},
                                           {128808, 0, "<｜tool▁call▁begin｜>", 0, true},
                                           {128809, 0, "<｜tool▁call▁end｜>", 0, true},
                                           {128810, 0, "<｜tool▁outputs▁begin｜>", 0, true},
                                           {128811, 0, "<｜tool▁outputs▁end｜>", 0, true},
                                           {128812, 0, "<｜tool▁output▁begin｜>", 0, true},
                                           {128813, 0, "<｜tool▁output▁end｜>", 0, true},
                                           {128814, 0, "<｜tool▁sep｜>", 0, true}};

static const preset_special tekken[] = {{0, 0, "<unk>", 0, false},
                                        {1, 0, "<s>", 0, false},
                                        {2, 0, "</s>", 0, false},
                                        {3, 0, "[INST]", 0, false},
                                        {4, 0, "[/INST]", 0, false},
                                        {5, 0, "[AVAILABLE_TOOLS]", 0, false},
                                        {6, 0, "[/AVAILABLE_TOOLS]", 0, false},
                                        {7, 0, "[TOOL_RESULTS]", 0, false},
                                        {8, 0, "[/TOOL_RESULTS]", 0, false},
                                        {9, 0, "[TOOL_CALLS]", 0, false},
                                        {10, 0, "[IMG]", 0, false},
                                        {11, 0, "<pad>", 0, false},
                                        {12, 0, "[IMG_BREAK]", 0, false},
                                        {13, 0, "[IMG_END]", 0, false},
                                        {14, 0, "[PREFIX]", 0, false},
                                        {15, 0, "[MIDDLE]", 0, false},
                                        {16, 0, "[SUFFIX]", 0, false},
                                        {17, 0, "[SYSTEM_PROMPT]", 0, false},
                                        {18, 0, "[/SYSTEM_PROMPT]", 0, false},
                                        {19, 0, "[TOOL_CONTENT]", 0, false},
                                        {20, 980, "<SPECIAL_*>", 20, false}};

static const preset_special nanochat[] = {
    {0, 0, "<|bos|>", 0, false},           {1, 0, "<|user_start|>", 0, false},
    {2, 0, "<|user_end|>", 0, false},      {3, 0, "<|assistant_start|>", 0, false},
    {4, 0, "<|assistant_end|>", 0, false}, {5, 0, "<|python_start|>", 0, false},
    {6, 0, "<|python_end|>", 0, false},    {7, 0, "<|output_start|>", 0, false},
    {8, 0, "<|output_end|>", 0, false}};

/* The names of the others differ between models. */
static const preset_special kimi[] = {{0, 0, "[BOS]", 0, false}, {1, 0, "[EOS]", 0, false}};

#define END_OF_TEXT "<|endoftext|>"
#define LLAMA_ENDS "<|begin_of_text|>", "<|end_of_text|>"

#define LIST(specials) specials, sizeof(specials) / sizeof *(specials)

static const preset presets[] = {
    {"gpt2", SPLIT_GPT2, false, 50256, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"gpt2", SPLIT_GPT2, false, 50280, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"p50k", SPLIT_GPT2, false, 50280, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"p50k_edit", SPLIT_GPT2, false, 50280, false, LIST(p50k_edit), NULL, END_OF_TEXT},
    {"cl100k", SPLIT_CL100K, false, 100256, false, LIST(cl100k), NULL, END_OF_TEXT},
    {"cl100k_08", STAGE_CL100K_TIKTOKEN, false, 100256, false, LIST(cl100k), NULL, END_OF_TEXT},
    {"o200k", SPLIT_O200K, false, 199998, false, LIST(o200k), NULL, END_OF_TEXT},
    {"o200k_harmony", SPLIT_O200K, false, 199998, false, LIST(o200k_harmony), "<|startoftext|>",
     END_OF_TEXT},
    {"llama3", SPLIT_CL100K, false, 128000, true, LIST(llama3), LLAMA_ENDS},
    {"llama4", SPLIT_O200K, false, 200000, true, LIST(llama4), LLAMA_ENDS},
    {"qwen2", SPLIT_QWEN2, true, 151643, true, qwen, 3, NULL, END_OF_TEXT},
    {"qwen2.5", SPLIT_QWEN2, true, 151643, true, qwen, 22, NULL, END_OF_TEXT},
    {"qwen3", SPLIT_QWEN2, true, 151643, true, LIST(qwen), NULL, END_OF_TEXT},
    {"qwen3.5", SPLIT_QWEN35, true, PRESET_ANY_RANKS, true, NULL, 0, NULL, NULL},
    {"kimi", STAGE_KIMI, false, 163584, true, LIST(kimi), "[BOS]", "[EOS]"},
    {"nanochat", STAGE_NANOCHAT, false, PRESET_ANY_RANKS, true, LIST(nanochat), "<|bos|>", NULL},
    {"deepseek3", SPLIT_DEEPSEEK3, false, 127997, false, LIST(deepseek3), "<｜begin▁of▁sentence｜>",
     "<｜end▁of▁sentence｜>"},
    {PRESET_TEKKEN, SPLIT_TEKKEN, false, 130072, false, LIST(tekken), "<s>", "</s>"},
};
#undef LIST

#define N_PRESETS (sizeof presets / sizeof *presets)
#define PRESET_NAMES_BYTES 200

bool preset_find(preset_choice *choice, const char *name, failure *err)
{
    const size_t n = name ? strlen(name) : 0, n_any = strlen(PRESET_ANY);
    const bool any = n > n_any && strcmp(name + n - n_any, PRESET_ANY) == 0;
    const size_t n_name = any ? n - n_any : n;
    for (size_t i = 0; name && i < N_PRESETS; i++) {
        if (strlen(presets[i].name) == n_name && memcmp(presets[i].name, name, n_name) == 0) {
            *choice = (preset_choice){&presets[i], any, NULL};
            return true;
        }
    }
    if (name && strpbrk(name, "\\|()[]{}*+?^$")) {
        *choice = (preset_choice){NULL, true, name};
        return true;
    }
    char names[PRESET_NAMES_BYTES] = "";
    for (size_t i = 0, used = 0; preset_name(i) && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 preset_name(i));
    if (!name)
        return model_fail(
            err, 0, "this file has ranks but no pattern; name one with --pattern (%s)", names);
    return model_fail(err, 0,
                      "--pattern %.60s is unknown; the names are %s; anything else is a regular "
                      "expression with a bracket or another special character",
                      name, names);
}

const char *preset_name(size_t index)
{
    for (size_t i = 0; i < N_PRESETS; i++) {
        const bool again = i > 0 && strcmp(presets[i].name, presets[i - 1].name) == 0;
        if (!again && index-- == 0)
            return presets[i].name;
    }
    return NULL;
}

static bool add_special(model *m, const preset_special *s, uint32_t first_id, failure *err)
{
    const char *star = s->n ? strchr(s->text, '*') : NULL;
    for (uint32_t i = 0; i < (star ? s->n : 1); i++) {
        char text[96];
        const int n_bytes = star ? snprintf(text, sizeof text, "%.*s%u%s", (int)(star - s->text),
                                            s->text, s->number + i, star + 1)
                                 : snprintf(text, sizeof text, "%s", s->text);
        if (!model_add_special(m, first_id + s->id + i, (model_text){text, (size_t)n_bytes}, err))
            return false;
        m->added[m->n_added - 1].special = !s->plain;
    }
    return true;
}

static bool add_specials(const preset *p, model *m, uint32_t n_ranks, failure *err)
{
    for (size_t i = 0; i < p->n_specials; i++) {
        if (!add_special(m, &p->specials[i], p->from_ranks ? n_ranks : 0, err))
            return false;
    }
    m->bos_id = model_special_id(m, p->bos);
    m->eos_id = model_special_id(m, p->eos);
    return true;
}

bool preset_add_tekken_specials(model *m, failure *err)
{
    for (size_t i = 0; i < PRESET_N_TEKKEN; i++) {
        if (!add_special(m, &tekken[i], 0, err))
            return false;
    }
    return true;
}

static bool refuse_number(const preset *p, uint32_t n_ranks, failure *err)
{
    char numbers[40], fit[PRESET_NAMES_BYTES] = "";
    const preset *next = p + 1;
    size_t used = 0;
    for (const preset *other = presets; other < presets + N_PRESETS; other++) {
        if (other->n_ranks == n_ranks && used < sizeof fit)
            used += (size_t)snprintf(fit + used, sizeof fit - used, "%s%s",
                                     used > 0 ? " or " : "; that is the number of ", other->name);
    }
    const bool two = next < presets + N_PRESETS && strcmp(next->name, p->name) == 0;
    snprintf(numbers, sizeof numbers, two ? "%u or %u" : "%u", p->n_ranks, two ? next->n_ranks : 0);
    return model_fail(err, 0,
                      "--pattern %s is for files of %s ranks, but this one has %u%s; for another "
                      "vocabulary with the same pattern, without special tokens, use --pattern "
                      "%s" PRESET_ANY,
                      p->name, numbers, n_ranks, fit, p->name);
}

static bool set_expression(model *m, const char *text, failure *err)
{
    split_own *own = &m->own[m->n_own];
    model_text copy = {0};
    expression_error why;
    expression *x = expression_new(text, strlen(text), EXPRESSION_RUST, &why);
    if (!x && why.why[0] != 0)
        return model_fail(err, 0, "--pattern: %s in the expression %.200s is not supported",
                          why.why, text);
    const int everywhere = x ? expression_matches_everywhere(x) : -1;
    const unsigned cuts = x ? expression_cuts(x) : 0;
    expression_free(x);
    if (everywhere < 0 || !model_text_set(&copy, text, strlen(text)))
        return fail_memory(err);
    *own = (split_own){copy.s, copy.n_bytes, EXPRESSION_RUST, JOIN_NONE, cuts};
    m->split = (split_pattern)(STAGE_OWN + m->n_own++);
    return everywhere ||
           model_fail(
               err, 0,
               "--pattern: the expression %.200s leaves characters out, which tiktoken would "
               "lose; with |(?s:.) at its end each of them is a word",
               text);
}

bool preset_apply(preset_choice choice, model *m, uint32_t n_ranks, failure *err)
{
    if (choice.expression)
        return set_expression(m, choice.expression, err);
    const preset *p = choice.preset, *end = presets + N_PRESETS;
    m->split = p->split;
    if (p->nfc && !model_add_step(m, NORMALIZE_NFC, err))
        return false;
    if (choice.any)
        return true;
    for (const preset *same = p; same < end && strcmp(same->name, p->name) == 0; same++) {
        if (same->n_ranks == n_ranks || same->n_ranks == PRESET_ANY_RANKS)
            return add_specials(same, m, n_ranks, err);
    }
    return refuse_number(p, n_ranks, err);
}
