/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz/check_model.h"

static bool is_token(const model *m, uint32_t id)
{
    return id < m->n_tokens && m->tokens[id].kind != TOKEN_ABSENT;
}

static void check_tokens(const model *m)
{
    require(m->n_tokens <= MODEL_MAX_TOKENS && m->family != NULL);
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        const model_token *t = &m->tokens[id];
        require(t->kind <= TOKEN_BYTE && t->n_bytes <= MODEL_MAX_TOKEN_BYTES);
        require(t->offset <= m->n_bytes && t->n_bytes <= m->n_bytes - t->offset);
        require(t->kind != TOKEN_BYTE || t->n_bytes == 1);
        require(t->kind != TOKEN_NORMAL || t->n_bytes > 0);
    }
    require(m->unknown_id == MODEL_NO_ID || is_token(m, m->unknown_id));
    require(m->bos_id == MODEL_NO_ID || is_token(m, m->bos_id));
    require(m->eos_id == MODEL_NO_ID || is_token(m, m->eos_id));
    require(m->eos_rival == MODEL_NO_ID || is_token(m, m->eos_rival));
}

static int compare_merges(const void *a, const void *b)
{
    return memcmp(a, b, 2 * sizeof(uint32_t));
}

static void check_merges(const model *m)
{
    for (size_t i = 0; i < m->n_merges; i++) {
        const model_merge *g = &m->merges[i];
        const uint32_t ids[3] = {g->left, g->right, g->result};
        for (int k = 0; k < 3; k++)
            require(is_token(m, ids[k]) && m->tokens[ids[k]].kind != TOKEN_CONTROL);
        const model_token *left = &m->tokens[g->left], *result = &m->tokens[g->result];
        require(m->kind != MODEL_BYTE_BPE ||
                result->n_bytes == left->n_bytes + m->tokens[g->right].n_bytes);
    }
    if (m->n_merges > 1)
        qsort(m->merges, m->n_merges, sizeof *m->merges, compare_merges);
    for (size_t i = 1; i < m->n_merges; i++)
        require(compare_merges(&m->merges[i - 1], &m->merges[i]) != 0);
}

static void check_rest(const model *m)
{
    require(m->n_steps <= MODEL_MAX_STEPS && m->split != SPLIT_UNKNOWN);
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *s = &m->steps[i];
        require(s->kind != NORMALIZE_REPLACE || s->from.n_bytes > 0);
    }
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *a = &m->added[i];
        require(a->content.n_bytes > 0 && a->content.s[a->content.n_bytes] == '\0');
        require(is_token(m, a->id));
    }
}

void check_loader(bool (*load)(model *, const model_source *, failure *),
                  const model_source *source)
{
    model m;
    failure err = {.text = ""};
    model_init(&m);
    if (load(&m, source, &err) && model_finish(&m, source, &err)) {
        check_tokens(&m);
        check_merges(&m);
        check_rest(&m);
    } else {
        require(err.text[0] != '\0' && strlen(err.text) < sizeof err.text);
        for (const char *c = err.text; *c; c++)
            require((unsigned char)*c >= ' ');
    }
    model_free(&m);
}
