/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/presets.h"

#include <stdio.h>
#include <string.h>

/* The lists are those of the reference implementations: tiktoken's openai_public.py, Meta's
 * tokenizer.py, mistral-common's tekken.py, nanochat's tokenizer.py, and the tokenizer.json of Qwen
 * and DeepSeek. */

static const preset_special gpt2[] = {{50256, "<|endoftext|>"}};

static const preset_special p50k_edit[] = {{50256, "<|endoftext|>"},
                                           {50281, "<|fim_prefix|>"},
                                           {50282, "<|fim_middle|>"},
                                           {50283, "<|fim_suffix|>"}};

static const preset_special cl100k[] = {{100257, "<|endoftext|>"},
                                        {100258, "<|fim_prefix|>"},
                                        {100259, "<|fim_middle|>"},
                                        {100260, "<|fim_suffix|>"},
                                        {100276, "<|endofprompt|>"}};

static const preset_special o200k[] = {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}};

/* tiktoken has two names for 200018. */
static const preset_special o200k_harmony[] = {{199998, "<|startoftext|>"},
                                               {199999, "<|endoftext|>"},
                                               {200000, "<|reserved_*|>", 2, 200000},
                                               {200002, "<|return|>"},
                                               {200003, "<|constrain|>"},
                                               {200004, "<|reserved_*|>", 1, 200004},
                                               {200005, "<|channel|>"},
                                               {200006, "<|start|>"},
                                               {200007, "<|end|>"},
                                               {200008, "<|message|>"},
                                               {200009, "<|reserved_*|>", 3, 200009},
                                               {200012, "<|call|>"},
                                               {200018, "<|endofprompt|>"},
                                               {200013, "<|reserved_*|>", 1075, 200013}};

static const preset_special llama3[] = {{0, "<|begin_of_text|>"},
                                        {1, "<|end_of_text|>"},
                                        {2, "<|reserved_special_token_*|>", 2, 0},
                                        {4, "<|finetune_right_pad_id|>"},
                                        {5, "<|step_id|>"},
                                        {6, "<|start_header_id|>"},
                                        {7, "<|end_header_id|>"},
                                        {8, "<|eom_id|>"},
                                        {9, "<|eot_id|>"},
                                        {10, "<|python_tag|>"},
                                        {11, "<|image|>"},
                                        {12, "<|reserved_special_token_*|>", 244, 2}};

static const preset_special llama4[] = {{0, "<|begin_of_text|>"},
                                        {1, "<|end_of_text|>"},
                                        {2, "<|fim_prefix|>"},
                                        {3, "<|fim_middle|>"},
                                        {4, "<|fim_suffix|>"},
                                        {5, "<|header_start|>"},
                                        {6, "<|header_end|>"},
                                        {7, "<|eom|>"},
                                        {8, "<|eot|>"},
                                        {9, "<|step|>"},
                                        {10, "<|text_post_train_reserved_special_token_*|>", 6, 0},
                                        {16, "<|python_start|>"},
                                        {17, "<|python_end|>"},
                                        {18, "<|finetune_right_pad|>"},
                                        {19, "<|text_post_train_reserved_special_token_*|>", 61, 8},
                                        {80, "<|image_start|>"},
                                        {81, "<|image_end|>"},
                                        {82, "<|vision_reserved_special_token_*|>", 2, 0},
                                        {84, "<|tile_x_separator|>"},
                                        {85, "<|tile_y_separator|>"},
                                        {86, "<|vision_reserved_special_token_*|>", 4, 2},
                                        {90, "<|image|>"},
                                        {91, "<|vision_reserved_special_token_*|>", 1, 6},
                                        {92, "<|patch|>"},
                                        {93, "<|vision_reserved_special_token_*|>", 1041, 7},
                                        {1134, "<|reasoning_reserved_special_token_*|>", 8, 0},
                                        {1142, "<|reasoning_thinking_start|>"},
                                        {1143, "<|reasoning_thinking_end|>"},
                                        {1144, "<|reserved_special_token_*|>", 904, 0}};

/* Qwen 2 has the first 3, Qwen 2.5 the first 22, Qwen 3 all. */
static const preset_special qwen[] = {
    {0, "<|endoftext|>"},
    {1, "<|im_start|>"},
    {2, "<|im_end|>"},
    {3, "<|object_ref_start|>"},
    {4, "<|object_ref_end|>"},
    {5, "<|box_start|>"},
    {6, "<|box_end|>"},
    {7, "<|quad_start|>"},
    {8, "<|quad_end|>"},
    {9, "<|vision_start|>"},
    {10, "<|vision_end|>"},
    {11, "<|vision_pad|>"},
    {12, "<|image_pad|>"},
    {13, "<|video_pad|>"},
    {14, "<tool_call>", .plain = true},
    {15, "</tool_call>", .plain = true},
    {16, "<|fim_prefix|>", .plain = true},
    {17, "<|fim_middle|>", .plain = true},
    {18, "<|fim_suffix|>", .plain = true},
    {19, "<|fim_pad|>", .plain = true},
    {20, "<|repo_name|>", .plain = true},
    {21, "<|file_sep|>", .plain = true},
    {22, "<tool_response>", .plain = true},
    {23, "</tool_response>", .plain = true},
    {24, "<think>", .plain = true},
    {25, "</think>", .plain = true},
};

static const preset_special deepseek3[] = {{0, "<｜begin▁of▁sentence｜>"},
                                           {1, "<｜end▁of▁sentence｜>"},
                                           {2, "<｜▁pad▁｜>"},
                                           {128000, "<｜place▁holder▁no▁*｜>", 800, 0},
                                           {128800, "<｜fim▁hole｜>", .plain = true},
                                           {128801, "<｜fim▁begin｜>", .plain = true},
                                           {128802, "<｜fim▁end｜>", .plain = true},
                                           {128803, "<｜User｜>", .plain = true},
                                           {128804, "<｜Assistant｜>", .plain = true},
                                           {128805, "<|EOT|>"},
                                           {128806, "<｜tool▁calls▁begin｜>", .plain = true},
                                           {128807, "<｜tool▁calls▁end｜>", .plain = true},
                                           {128808, "<｜tool▁call▁begin｜>", .plain = true},
                                           {128809, "<｜tool▁call▁end｜>", .plain = true},
                                           {128810, "<｜tool▁outputs▁begin｜>", .plain = true},
                                           {128811, "<｜tool▁outputs▁end｜>", .plain = true},
                                           {128812, "<｜tool▁output▁begin｜>", .plain = true},
                                           {128813, "<｜tool▁output▁end｜>", .plain = true},
                                           {128814, "<｜tool▁sep｜>", .plain = true}};

static const preset_special tekken[] = {{0, "<unk>"},
                                        {1, "<s>"},
                                        {2, "</s>"},
                                        {3, "[INST]"},
                                        {4, "[/INST]"},
                                        {5, "[AVAILABLE_TOOLS]"},
                                        {6, "[/AVAILABLE_TOOLS]"},
                                        {7, "[TOOL_RESULTS]"},
                                        {8, "[/TOOL_RESULTS]"},
                                        {9, "[TOOL_CALLS]"},
                                        {10, "[IMG]"},
                                        {11, "<pad>"},
                                        {12, "[IMG_BREAK]"},
                                        {13, "[IMG_END]"},
                                        {14, "[PREFIX]"},
                                        {15, "[MIDDLE]"},
                                        {16, "[SUFFIX]"},
                                        {17, "[SYSTEM_PROMPT]"},
                                        {18, "[/SYSTEM_PROMPT]"},
                                        {19, "[TOOL_CONTENT]"},
                                        {20, "<SPECIAL_*>", 980, 20}};

static const preset_special nanochat[] = {{0, "<|bos|>"},           {1, "<|user_start|>"},
                                          {2, "<|user_end|>"},      {3, "<|assistant_start|>"},
                                          {4, "<|assistant_end|>"}, {5, "<|python_start|>"},
                                          {6, "<|python_end|>"},    {7, "<|output_start|>"},
                                          {8, "<|output_end|>"}};

/* The names of the others differ between models. */
static const preset_special kimi[] = {{0, "[BOS]"}, {1, "[EOS]"}};

#define END_OF_TEXT "<|endoftext|>"
#define LLAMA_ENDS "<|begin_of_text|>", "<|end_of_text|>"

#define LIST(specials) specials, sizeof(specials) / sizeof *(specials)

static const preset presets[] = {
    {"gpt2", STAGE_GPT2, false, 50256, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"gpt2", STAGE_GPT2, false, 50280, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"p50k", STAGE_GPT2, false, 50280, false, LIST(gpt2), NULL, END_OF_TEXT},
    {"p50k_edit", STAGE_GPT2, false, 50280, false, LIST(p50k_edit), NULL, END_OF_TEXT},
    {"cl100k", STAGE_CL100K, false, 100256, false, LIST(cl100k), NULL, END_OF_TEXT},
    {"cl100k_08", STAGE_CL100K_TIKTOKEN, false, 100256, false, LIST(cl100k), NULL, END_OF_TEXT},
    {"o200k", STAGE_O200K, false, 199998, false, LIST(o200k), NULL, END_OF_TEXT},
    {"o200k_harmony", STAGE_O200K, false, 199998, false, LIST(o200k_harmony), "<|startoftext|>",
     END_OF_TEXT},
    {"llama3", STAGE_CL100K, false, 128000, true, LIST(llama3), LLAMA_ENDS},
    {"llama4", STAGE_O200K, false, 200000, true, LIST(llama4), LLAMA_ENDS},
    {"qwen2", STAGE_QWEN2, true, 151643, true, qwen, 3, NULL, END_OF_TEXT},
    {"qwen2.5", STAGE_QWEN2, true, 151643, true, qwen, 22, NULL, END_OF_TEXT},
    {"qwen3", STAGE_QWEN2, true, 151643, true, LIST(qwen), NULL, END_OF_TEXT},
    {"qwen3.5", STAGE_QWEN35, true, PRESET_ANY_RANKS, true, NULL, 0, NULL, NULL},
    {"kimi", STAGE_KIMI, false, 163584, true, LIST(kimi), "[BOS]", "[EOS]"},
    {"nanochat", STAGE_NANOCHAT, false, PRESET_ANY_RANKS, true, LIST(nanochat), "<|bos|>", NULL},
    {"deepseek3", SPLIT_DEEPSEEK3, false, 127997, false, LIST(deepseek3), "<｜begin▁of▁sentence｜>",
     "<｜end▁of▁sentence｜>"},
    {PRESET_TEKKEN, STAGE_TEKKEN, false, 130072, false, LIST(tekken), "<s>", "</s>"},
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
    expression_error why;
    expression *x = expression_new(text, strlen(text), EXPRESSION_RUST, &why);
    if (!x)
        return why.why[0] == 0
                   ? fail_memory(err)
                   : model_fail(err, 0, "--pattern: %s in the expression %.200s is not supported",
                                why.why, text);
    m->split = (split_pattern)(STAGE_OWN + m->n_own);
    m->own[m->n_own++] = (split_own){x, JOIN_NONE};
    const int everywhere = expression_matches_everywhere(x);
    if (everywhere < 0)
        return fail_memory(err);
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
