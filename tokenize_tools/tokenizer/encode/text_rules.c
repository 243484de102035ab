/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/text_rules.h"

#include <stdlib.h>
#include <string.h>

#include "tokenizer/split/splitter.h"

/* ---- Words of a pattern ---- */

/* Whether words are those of a pattern, not of characters. */
static bool has_pattern(const model *m)
{
    if ((m->kind != MODEL_CHAR_BPE && m->kind != MODEL_UNIGRAM) || m->n_later > 0 ||
        m->word_suffix.n_bytes > 0)
        return true;
    return m->split != SPLIT_NONE &&
           (m->split == STAGE_WHITESPACE_SPLIT || (m->metaspace && m->prepend == PREPEND_FIRST) ||
            (m->kind == MODEL_CHAR_BPE && !m->metaspace));
}

static bool load_splits(text_rules *r, const model *m)
{
    r->n_steps = m->n_later;
    memcpy(r->steps, m->later, sizeof m->later);
    if (m->metaspace)
        r->steps[r->n_steps++] =
            (piece_step){CHANGE_MARKS, m->prepend, m->metaspace_split ? STAGE_MARKS : SPLIT_NONE};
    bool made = true;
    r->drops_blanks = split_drops_blanks(m->split);
    for (size_t i = 0; i <= r->n_steps; i++) {
        const split_pattern p = i > 0 ? r->steps[i - 1].split : m->split;
        r->splits[i] = splitter_new(p, m->own);
        r->finds_first |= i > 0 && r->steps[i - 1].prepend == PREPEND_FIRST;
        made &= r->splits[i] != NULL;
    }
    return made;
}

static bool load_pattern(text_rules *r, const model *m, const vocabulary *words,
                         const model *normalized, failure *err)
{
    r->prefix_space = m->prefix_space;
    if (!load_splits(r, m))
        return fail_memory(err);
    return word_encoder_load(&r->words, m, words, false, err) &&
           (r->added[1] = added_tokens_new(normalized, true, err)) != NULL;
}

/* ---- Words of characters ---- */

/* Whether no word has a blank, and the words on both sides of one do not depend on each other: the
 * first stage drops them. */
static bool first_drops_blanks(const model *m)
{
    return split_drops_blanks(m->split & 0xFF);
}

/* The same as first_drops_blanks, but of U+2581. */
static bool is_at_punctuation(const model *m)
{
    return m->split == STAGE_EACH_PUNCTUATION && m->metaspace_split;
}

static bool blank_content(model_text *content)
{
    text_buffer blanked = {0};
    const text_span text = {(const uint8_t *)content->s, content->n_bytes};
    bool done = normalize_marks(text, false, &blanked);
    const text_span span = text_buffer_span(&blanked);
    done = done && model_text_set(content, span.bytes, span.n_bytes);
    text_buffer_free(&blanked);
    return done;
}

/* Loads the added tokens that are searched for in normalized text. */
static bool load_added(text_rules *r, const model *normalized, failure *err)
{
    model added;
    bool loaded = true;
    model_init(&added);
    for (size_t i = 0; loaded && i < normalized->n_added; i++) {
        loaded = model_add_added(&added, &normalized->added[i], err);
        if (loaded && r->blanks_only)
            loaded = blank_content(&added.added[i].content) || fail_memory(err);
    }
    if (loaded && added.n_added > 0)
        loaded = (r->added[1] = added_tokens_new(&added, true, err)) != NULL;
    model_free(&added);
    return loaded;
}

/* Whether the text may be searched with blanks in place of U+2581: if the normalizer replaces all
 * blanks by U+2581, and blanks mean nothing to the tokens that are searched for. */
static bool may_be_blanked(const model *m)
{
    bool replaced = false;
    for (size_t i = 0; i < m->n_steps; i++)
        replaced |= model_step_marks_blanks(&m->steps[i]);
    for (size_t i = 0; i < m->n_added; i++)
        replaced &= !(m->added[i].normalized && (m->added[i].lstrip || m->added[i].rstrip));
    return replaced && !m->metaspace && m->split == SPLIT_NONE;
}

static bool load_normalizer(text_rules *r, const model *m, bool has_tokens, failure *err)
{
    bool all_steps =
        (m->split != SPLIT_NONE && !is_at_punctuation(m)) || (has_tokens && !may_be_blanked(m));
    r->normalizer = normalizer_new(m, all_steps, err);
    if (r->normalizer && has_tokens && !all_steps) {
        r->blanks_only = normalizer_form(r->normalizer).spaces_are_marks;
        all_steps = !r->blanks_only; /* the blanks are replaced, but not by the last step */
        if (all_steps) {
            normalizer_free(r->normalizer);
            r->normalizer = normalizer_new(m, true, err);
        }
    }
    if (!r->normalizer)
        return false;
    r->form = normalizer_form(r->normalizer);
    return true;
}

static void choose_words(text_rules *r, const model *m)
{
    r->chars =
        r->words.chars ? *char_bpe_words(r->words.chars) : *unigram_char_words(r->words.unigram);
    if (m->split != SPLIT_NONE) {
        r->sentences = PIECES;
        r->prefix_words = m->metaspace && m->prepend == PREPEND_ALWAYS;
        r->splits_at_marks = m->metaspace && m->metaspace_split;
        char_words_init(&r->chars, r->form.spaces_are_marks);
        if (first_drops_blanks(m) || is_at_punctuation(m))
            char_words_join_all_but_blanks(&r->chars);
        else
            char_words_join_all(&r->chars);
    } else if (m->rule == MERGE_NONE && m->whole_word_first) {
        r->sentences = BETWEEN_MARKS;
    } else if (m->metaspace && m->metaspace_split) {
        r->sentences = BETWEEN_MARKS;
        if (r->words.unigram) {
            char_words_init(&r->chars, r->form.spaces_are_marks);
            char_words_join_all_but_blanks(&r->chars);
        }
    }
}

static bool load_characters(text_rules *r, const model *m, const vocabulary *words,
                            const model *normalized, failure *err)
{
    normalizer_free(r->normalizer); /* this one may leave steps to the encoder */
    r->normalizer = NULL;
    if (!load_normalizer(r, m, normalized->n_added > 0, err) ||
        !word_encoder_load(&r->words, m, words, r->form.spaces_are_marks, err) ||
        !load_added(r, normalized, err))
        return false;
    if (m->split != SPLIT_NONE && !(r->splits[0] = splitter_new(m->split, m->own)))
        return fail_memory(err);
    choose_words(r, m);
    r->sums_over_text = r->words.unigram && r->sentences == WHOLE_TEXT;
    return true;
}

/* ---- All ---- */

bool text_rules_load(text_rules *r, const model *m, const vocabulary *words, model *normalized,
                     failure *err)
{
    r->by_pattern = has_pattern(m);
    bool wanted = r->by_pattern;
    for (size_t i = 0; i < m->n_added; i++)
        wanted |= m->added[i].normalized;
    if (wanted && m->n_steps > 0 && !(r->normalizer = normalizer_new(m, true, err)))
        return false;
    const bool loaded = normalizer_add_tokens(r->normalizer, m, normalized, err) &&
                        (r->added[0] = added_tokens_new(m, false, err)) != NULL &&
                        (r->by_pattern ? load_pattern(r, m, words, normalized, err)
                                       : load_characters(r, m, words, normalized, err));
    r->has_steps = r->n_steps > 0 || r->drops_blanks || r->sentences != WHOLE_TEXT;
    return loaded;
}

void text_rules_free(text_rules *r)
{
    normalizer_free(r->normalizer);
    added_tokens_free(r->added[0]);
    added_tokens_free(r->added[1]);
    word_encoder_free(&r->words);
    for (size_t i = 0; i <= r->n_steps; i++)
        splitter_free(r->splits[i]);
}

bool text_rules_take_bytes(const text_rules *r)
{
    return r->words.bytes && !r->normalizer && byte_bpe_takes_bytes(r->words.bytes);
}
