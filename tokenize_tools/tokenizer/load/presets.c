/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/presets.h"

#include <stdio.h>
#include <string.h>

/* The lists are those of the reference implementations: tiktoken's openai_public.py, Meta's
 * tokenizer.py, mistral-common's tekken.py, nanochat's tokenizer.py, and the tokenizer.json of Qwen
 * and DeepSeek. */

static const preset_special gpt2[] = {{50256, "<|endoftext|>"}};

static const preset_special p50k_edit[] = {{50256, "<|endoftext|>"},
                                           {50281, "<|fim_prefix|> <|fim_middle|> <|fim_suffix|>"}};

static const preset_special cl100k[] = {
    {100257, "<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|>"},
    {100276, "<|endofprompt|>"}};

static const preset_special o200k[] = {{199999, "<|endoftext|>"}, {200018, "<|endofprompt|>"}};

/* tiktoken has two names for 200018. */
static const preset_special o200k_harmony[] = {
    {199998, "<|startoftext|> <|endoftext|>"},
    {200000, "<|reserved_*|>", 2, 200000},
    {200002, "<|return|> <|constrain|>"},
    {200004, "<|reserved_*|>", 1, 200004},
    {200005, "<|channel|> <|start|> <|end|> <|message|>"},
    {200009, "<|reserved_*|>", 3, 200009},
    {200012, "<|call|>"},
    {200018, "<|endofprompt|>"},
    {200013, "<|reserved_*|>", 1075, 200013},
};

static const preset_special llama3[] = {
    {0, "<|begin_of_text|> <|end_of_text|>"},
    {2, "<|reserved_special_token_*|>", 2, 0},
    {4, "<|finetune_right_pad_id|> <|step_id|> <|start_header_id|> <|end_header_id|> <|eom_id|> "
        "<|eot_id|> <|python_tag|> <|image|>"},
    {12, "<|reserved_special_token_*|>", 244, 2},
};

static const preset_special llama4[] = {
    {0, "<|begin_of_text|> <|end_of_text|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> "
        "<|header_start|> <|header_end|> <|eom|> <|eot|> <|step|>"},
    {10, "<|text_post_train_reserved_special_token_*|>", 6, 0},
    {16, "<|python_start|> <|python_end|> <|finetune_right_pad|>"},
    {19, "<|text_post_train_reserved_special_token_*|>", 61, 8},
    {80, "<|image_start|> <|image_end|>"},
    {82, "<|vision_reserved_special_token_*|>", 2, 0},
    {84, "<|tile_x_separator|> <|tile_y_separator|>"},
    {86, "<|vision_reserved_special_token_*|>", 4, 2},
    {90, "<|image|>"},
    {91, "<|vision_reserved_special_token_*|>", 1, 6},
    {92, "<|patch|>"},
    {93, "<|vision_reserved_special_token_*|>", 1041, 7},
    {1134, "<|reasoning_reserved_special_token_*|>", 8, 0},
    {1142, "<|reasoning_thinking_start|> <|reasoning_thinking_end|>"},
    {1144, "<|reserved_special_token_*|>", 904, 0},
};

/* Qwen 2 has the first row, Qwen 2.5 the first three, Qwen 3 all. */
static const preset_special qwen[] = {
    {0, "<|endoftext|> <|im_start|> <|im_end|>"},
    {3, "<|object_ref_start|> <|object_ref_end|> <|box_start|> <|box_end|> <|quad_start|> "
        "<|quad_end|> <|vision_start|> <|vision_end|> <|vision_pad|> <|image_pad|> <|video_pad|>"},
    {14,
     "<tool_call> </tool_call> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> "
     "<|repo_name|> <|file_sep|>",
     .plain = true},
    {22, "<tool_response> </tool_response> <think> </think>", .plain = true},
};

static const preset_special deepseek3[] = {
    {0, "<｜begin▁of▁sentence｜> <｜end▁of▁sentence｜> <｜▁pad▁｜>"},
    {128000, "<｜place▁holder▁no▁*｜>", 800, 0},
    {128800, "<｜fim▁hole｜> <｜fim▁begin｜> <｜fim▁end｜> <｜User｜> <｜Assistant｜>",
     .plain = true},
    {128805, "<|EOT|>"},
    {128806,
     "<｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <｜tool▁call▁begin｜> <｜tool▁call▁end｜> "
     "<｜tool▁outputs▁begin｜> <｜tool▁outputs▁end｜> <｜tool▁output▁begin｜> "
     "<｜tool▁output▁end｜> <｜tool▁sep｜>",
     .plain = true},
};

static const preset_special tekken[] = {
    {0, "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
        "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] "
        "[SUFFIX] [SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"},
    {20, "<SPECIAL_*>", 980, 20},
};

static const preset_special nanochat[] = {
    {0, "<|bos|> <|user_start|> <|user_end|> <|assistant_start|> <|assistant_end|> "
        "<|python_start|> <|python_end|> <|output_start|> <|output_end|>"},
};

/* The names of the others differ between models. */
static const preset_special kimi[] = {{0, "[BOS] [EOS]"}};

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
    {"qwen2", STAGE_QWEN2, true, 151643, true, qwen, 1, NULL, END_OF_TEXT},
    {"qwen2.5", STAGE_QWEN2, true, 151643, true, qwen, 3, NULL, END_OF_TEXT},
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

static bool add_text(model *m, uint32_t id, model_text text, bool plain, failure *err)
{
    if (!model_add_special(m, id, text, err))
        return false;
    m->added[m->n_added - 1].special = !plain;
    return true;
}

static bool add_special(model *m, const preset_special *s, uint32_t first_id, failure *err)
{
    const char *star = s->n ? strchr(s->texts, '*') : NULL, *next = s->texts;
    uint32_t id = first_id + s->id;
    bool added = true;
    for (uint32_t i = 0; star && i < s->n && added; i++) {
        char text[96];
        const int n_bytes = snprintf(text, sizeof text, "%.*s%u%s", (int)(star - s->texts),
                                     s->texts, s->number + i, star + 1);
        added = add_text(m, id++, model_view(text, (size_t)n_bytes), s->plain, err);
    }
    for (size_t n; !star && *next && added; next += n + (next[n] == ' ')) {
        n = strcspn(next, " ");
        added = add_text(m, id++, model_view(next, n), s->plain, err);
    }
    return added;
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
    return add_special(m, &tekken[0], 0, err);
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
