/* SPDX-License-Identifier: Apache-2.0 */
/* tool_model FILE [--pattern NAME] [--specials FILE] [--merges FILE] - loads a vocabulary file and
 * prints its contents as JSON, bytes in hexadecimal. Exit status 1 with the reason
 * on stderr when it is refused. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokenizer/load/model_load.h"

typedef struct file_bytes {
    uint8_t *data;
    size_t n_bytes;
} file_bytes;

static file_bytes read_file(const char *path)
{
    file_bytes file = {malloc(1), 0};
    FILE *f = fopen(path, "rb");
    if (!f || fseek(f, 0, SEEK_END) != 0) {
        perror(path);
        exit(2);
    }
    const long size = ftell(f);
    rewind(f);
    if (size > 0) {
        free(file.data);
        file.data = malloc((size_t)size);
        file.n_bytes = file.data ? fread(file.data, 1, (size_t)size, f) : 0;
    }
    fclose(f);
    return file;
}

static void print_hex(const void *bytes, size_t n_bytes)
{
    putchar('"');
    for (size_t i = 0; i < n_bytes; i++)
        printf("%02x", ((const uint8_t *)bytes)[i]);
    putchar('"');
}

static void print_id(const char *name, uint32_t id)
{
    printf(",\n\"%s\": %" PRId64, name, id == MODEL_NO_ID ? -1 : (int64_t)id);
}

static void print_text(const char *name, const model_text *text)
{
    printf(", \"%s\": ", name);
    print_hex(text->s, text->n_bytes);
}

static void print_tokens(const model *m)
{
    printf(",\n\"tokens\": [");
    for (uint32_t id = 0; id < m->n_tokens; id++) {
        printf("%s\n[%d, ", id ? "," : "", m->tokens[id].kind);
        print_hex(model_token_bytes(m, id), m->tokens[id].n_bytes);
        printf(", %.17g]", m->tokens[id].score);
    }
    printf("],\n\"merges\": [");
    for (size_t i = 0; i < m->n_merges; i++)
        printf("%s\n[%u, %u, %u]", i ? "," : "", m->merges[i].left, m->merges[i].right,
               m->merges[i].result);
    printf("]");
}

static void print_added(const model *m)
{
    printf(",\n\"added\": [");
    for (size_t i = 0; i < m->n_added; i++) {
        const added_token *a = &m->added[i];
        printf("%s\n{\"id\": %u", i ? "," : "", a->id);
        print_text("content", &a->content);
        printf(", \"special\": %d, \"normalized\": %d, \"lstrip\": %d, \"rstrip\": %d, "
               "\"single_word\": %d}",
               a->special, a->normalized, a->lstrip, a->rstrip, a->single_word);
    }
    printf("]");
}

static void print_steps(const model *m)
{
    printf(",\n\"steps\": [");
    for (size_t i = 0; i < m->n_steps; i++) {
        const normalize_step *s = &m->steps[i];
        printf("%s\n{\"kind\": %d", i ? "," : "", s->kind);
        print_text("from", &s->from);
        print_text("to", &s->to);
        printf(", \"left\": %d, \"right\": %d}", s->left, s->right);
    }
    printf("]");
}

static void print_model(const model *m)
{
    printf("{\"kind\": %d, \"rule\": %d, \"split\": \"%s\", \"family\": \"%s\"", m->kind, m->rule,
           split_pattern_name(m->split), m->family);
    printf(",\n\"whole_word_first\": %d, \"byte_fallback\": %d, \"fuse_unknown\": %d",
           m->whole_word_first, m->byte_fallback, m->fuse_unknown);
    printf(",\n\"whitespace_split\": %d, \"metaspace\": %d, \"prepend\": %d, "
           "\"metaspace_split\": %d, \"prefix_space\": %d",
           m->whitespace_split, m->metaspace, m->prepend, m->metaspace_split, m->prefix_space);
    printf(",\n\"dummy_prefix\": %d, \"collapse_spaces\": %d, \"escape_spaces\": %d, "
           "\"whitespace_as_suffix\": %d",
           m->dummy_prefix, m->collapse_spaces, m->escape_spaces, m->whitespace_as_suffix);
    print_text("charsmap", &m->charsmap);
    print_id("unknown_id", m->unknown_id);
    print_id("bos_id", m->bos_id);
    print_id("eos_id", m->eos_id);
    print_steps(m);
    print_added(m);
    print_tokens(m);
    printf("}\n");
}

int main(int argc, char **argv)
{
    model m;
    failure err = {0};
    file_bytes merges = {0}, specials = {0};
    if (argc < 2 || argc % 2 != 0) {
        fprintf(stderr, "tool_model FILE [--pattern NAME] [--specials FILE] [--merges FILE]\n");
        return 2;
    }
    const file_bytes file = read_file(argv[1]);
    model_source source = {.name = argv[1], .data = file.data, .n_bytes = file.n_bytes};
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "--pattern") == 0)
            source.pattern = argv[i + 1];
        else if (strcmp(argv[i], "--merges") == 0)
            merges = read_file(argv[i + 1]);
        else
            specials = read_file(argv[i + 1]);
    }
    source.merges = merges.data;
    source.merges_bytes = merges.n_bytes;
    source.specials = specials.data;
    source.specials_bytes = specials.n_bytes;
    model_init(&m);
    const bool loaded = model_load(&m, &source, &err);
    if (loaded)
        print_model(&m);
    else
        fprintf(stderr, "%s (byte %" PRIu64 ")\n", err.text, err.place);
    model_free(&m);
    free(file.data);
    free(merges.data);
    free(specials.data);
    return loaded ? 0 : 1;
}
