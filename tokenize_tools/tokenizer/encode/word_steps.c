/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/encode/word_steps.h"

#include "tokenizer/model/byte_alphabet.h"

static bool encode_word(word_steps *s, text_span word, id_buffer *out)
{
    return word.n_bytes == 0 ||
           word_encoder_encode(&s->rules->words, &s->work, word.bytes, word.n_bytes, out);
}

/* ---- Words of a pattern ---- */

static bool append_bytes(text_span text, text_buffer *out)
{
    if (!text_buffer_reserve(out, 2 * text.n_bytes))
        return false;
    out->n_bytes += byte_alphabet_encode(text.bytes, text.n_bytes, out->bytes + out->n_bytes);
    return true;
}

/* Changes a piece. n_first: how many of its bytes come from the first character of the text. */
static bool change_piece(const piece_step *step, text_buffer *out, text_span *text, size_t *n_first)
{
    const model_text blank = model_view(" ", 1), mark = model_view(MODEL_MARK, MODEL_MARK_BYTES);
    const bool after_blank = text->bytes[0] == ' ', begins = *n_first > 0;
    if (step->change == CHANGE_BLANK) {
        *n_first += begins && !after_blank;
        return text_buffer_prefix(out, " ", !after_blank, text);
    }
    const text_span parts[2] = {{text->bytes, *n_first},
                                {text->bytes + *n_first, text->n_bytes - *n_first}};
    const bool after_mark = after_blank || model_begins_with_mark(text->bytes, text->n_bytes);
    bool done = true;
    out->n_bytes = 0;
    if (step->prepend == PREPEND_ALWAYS || (step->prepend == PREPEND_FIRST && begins))
        done = after_mark || text_buffer_append(out, mark.s, mark.n_bytes);
    for (size_t i = 0; done && i < 2; i++) {
        done = step->change == CHANGE_BYTES ? append_bytes(parts[i], out)
                                            : normalize_replace(parts[i], blank, mark, false, out);
        *n_first = i == 0 && begins ? out->n_bytes : *n_first;
    }
    *text = text_buffer_span(out);
    return done;
}

/* Encodes a word that the splitter `k` has found. */
static bool encode_found(word_steps *s, size_t k, text_span text, size_t n_first, id_buffer *out)
{
    const text_rules *r = s->rules;
    const size_t n_dropped = splitter_dropped_blanks(r->splits[k], text.bytes, text.n_bytes);
    text = (text_span){text.bytes + n_dropped, text.n_bytes - n_dropped};
    if (text.n_bytes == 0)
        return true;
    if (k == r->n_steps)
        return encode_word(s, text, out);
    word_list *w = &s->steps[k].words;
    n_first = n_first > n_dropped ? n_first - n_dropped : 0;
    n_first = n_first < text.n_bytes ? n_first : text.n_bytes;
    if (!change_piece(&r->steps[k], &s->steps[k].text, &text, &n_first) ||
        !word_list_find(w, r->splits[k + 1], text.bytes, text.n_bytes, SIZE_MAX))
        return false;
    n_first = word_list_kept(w, n_first);
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_found(s, k + 1, (text_span){w->text + at, end - at},
                          n_first > at ? n_first - at : 0, out))
            return false;
    }
    return true;
}

bool word_steps_encode_first(word_steps *s, text_span word, size_t n_first, id_buffer *out)
{
    return encode_found(s, 0, word, n_first, out);
}

/* ---- Words of characters ---- */

static bool encode_between_marks(word_steps *s, text_span text, id_buffer *out)
{
    const size_t first = out->n;
    size_t start = 0;
    for (size_t at = 0; at < text.n_bytes; at++) {
        if (text_rules_mark_at(s->rules, text, at) == 0)
            continue;
        if (!encode_word(s, (text_span){text.bytes + start, at - start}, out))
            return false;
        start = at;
    }
    if (!encode_word(s, (text_span){text.bytes + start, text.n_bytes - start}, out))
        return false;
    if (s->rules->words.chars)
        char_bpe_fuse_unknown(s->rules->words.chars, first, out);
    return true;
}

/* Encodes a piece, without the blanks that are dropped and with a prefix of its own. */
static bool encode_piece(word_steps *s, text_span text, id_buffer *out)
{
    const text_rules *r = s->rules;
    const size_t n_dropped = splitter_dropped_blanks(r->splits[0], text.bytes, text.n_bytes);
    text = (text_span){text.bytes + n_dropped, text.n_bytes - n_dropped};
    if (text.n_bytes == 0)
        return true;
    if (r->prefix_words && text_rules_mark_at(r, text, 0) == 0 &&
        !text_buffer_prefix(&s->prefixed, MODEL_MARK, MODEL_MARK_BYTES, &text))
        return false;
    return r->splits_at_marks ? encode_between_marks(s, text, out) : encode_word(s, text, out);
}

static bool encode_pieces(word_steps *s, text_span text, id_buffer *out)
{
    const text_rules *r = s->rules;
    const word_list *w = &s->pieces;
    if (!word_list_find(&s->pieces, r->splits[0], text.bytes, text.n_bytes, SIZE_MAX))
        return false;
    for (size_t at = 0, end; at < w->n_bytes; at = end) {
        end = split_next_start(w->starts, at + 1, w->n_bytes);
        if (!encode_piece(s, (text_span){w->text + at, end - at}, out))
            return false;
    }
    return true;
}

/* ---- All ---- */

/* Not inlined, because most tokenizers have no steps. */
__attribute__((noinline)) static bool encode_by_steps(word_steps *s, text_span word, id_buffer *out)
{
    const text_rules *r = s->rules;
    if (r->by_pattern)
        return encode_found(s, 0, word, 0, out);
    return r->sentences == PIECES ? encode_pieces(s, word, out)
                                  : encode_between_marks(s, word, out);
}

bool word_steps_encode(void *context, const uint8_t *word, size_t n_bytes, id_buffer *out)
{
    word_steps *s = context;
    return s->rules->has_steps
               ? encode_by_steps(s, (text_span){word, n_bytes}, out)
               : word_encoder_encode(&s->rules->words, &s->work, word, n_bytes, out);
}

void word_steps_free(word_steps *s)
{
    word_workspace_free(&s->work);
    for (size_t i = 0; i < MAX_PIECE_STEPS; i++) {
        text_buffer_free(&s->steps[i].text);
        word_list_free(&s->steps[i].words);
    }
    text_buffer_free(&s->prefixed);
    word_list_free(&s->pieces);
}

void word_steps_free_large(word_steps *s)
{
    word_workspace_free_large(&s->work);
    for (size_t i = 0; i < s->rules->n_steps; i++) {
        text_buffer_free_large(&s->steps[i].text);
        word_list_free_large(&s->steps[i].words);
    }
    text_buffer_free_large(&s->prefixed);
    word_list_free_large(&s->pieces);
}
