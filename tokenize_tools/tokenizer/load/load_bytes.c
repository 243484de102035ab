/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/load/load_bytes.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/base64.h"

bool bytes_add_base64(byte_vocabulary *v, uint32_t id, const char *text, size_t n_bytes)
{
    if (!array_reserve(&v->buffer, &v->capacity, BASE64_ROOM(n_bytes) + 1, 1))
        return fail_memory(v->err);
    const size_t n = base64_decode(text, n_bytes, v->buffer);
    if (n_bytes == 1 && text[0] == '=') { /* no bytes, for Python; Whisper's file has it */
        const new_token empty = {id, v->buffer, 0, TOKEN_CONTROL, 0};
        return model_set_token(v->m, &empty, v->err);
    }
    if (n == BASE64_BAD || n == 0)
        return model_fail(v->err, 0, "\"%.*s\" is not valid base64", model_shown(n_bytes), text);
    const new_token token = {id, v->buffer, n, TOKEN_NORMAL, 0};
    if (!model_set_token(v->m, &token, v->err))
        return false;
    return model_add_name(&v->tokens, model_view(v->buffer, n), id, "token", v->err);
}

bool bytes_check(byte_vocabulary *v)
{
    for (unsigned i = 0; i < 256; i++) {
        const uint8_t byte = (uint8_t)i;
        if (name_table_find(&v->tokens, &byte, 1) == NAME_TABLE_NONE)
            return model_fail(v->err, 0, "there is no token for the byte 0x%02X", i);
    }
    v->m->kind = MODEL_BYTE_BPE;
    v->m->rule = MERGE_RANKED;
    v->m->whole_word_first = true;
    v->m->family = "byte-level BPE";
    return true;
}

void bytes_free(byte_vocabulary *v)
{
    name_table_free(&v->tokens);
    free(v->buffer);
}
