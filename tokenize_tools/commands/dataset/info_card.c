/* SPDX-License-Identifier: Apache-2.0 */
#include "commands/dataset/info_card.h"

#include <inttypes.h>
#include <string.h>

#include "base/json_text.h"
#include "cli/cli.h"
#include "cli/json_out.h"
#include "cli/paths.h"
#include "datasets/datasets.h"

/* Returns the word of the Hub for a number of rows. */
static const char *size_category(uint64_t n)
{
    static const char *const words[] = {"n<1K",       "1K<n<10K",   "10K<n<100K", "100K<n<1M",
                                        "1M<n<10M",   "10M<n<100M", "100M<n<1B",  "1B<n<10B",
                                        "10B<n<100B", "100B<n<1T"};
    uint64_t end = 1000;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++, end *= 10)
        if (n < end)
            return words[i];
    return "n>1T";
}

/* Prints a text as code within a line of a table; a character that would end it becomes a question
 * mark. */
static void print_code(const char *s, size_t n_bytes)
{
    putchar('`');
    for (size_t i = 0; i < n_bytes; i++) {
        if (s[i] == '`' || s[i] == '|')
            putchar('?');
        else
            cli_print_plain(stdout, s + i, 1);
    }
    putchar('`');
}

static void print_head(const char *name, const tokmap_dataset_info *info)
{
    fputs("---\npretty_name: ", stdout);
    json_text_print_string(stdout, name, strlen(name));
    printf("\ntags:\n- tokmap\n- tokens\ntask_categories:\n- text-generation\n"
           "size_categories:\n- %s\nviewer: false\n---\n\n# ",
           size_category(info->n_documents ? info->n_documents : info->n_tokens));
    print_code(name, strlen(name));
    fputs("\n\nTokens for the training of language models, in the format of tokmap: a flat file of "
          "token ids and an index.\n\n",
          stdout);
}

static void print_json_value(const char *key, json_text_span value)
{
    if (value.n_bytes < 2 || value.text[0] != '"')
        return;
    printf("%s", key);
    print_code(value.text + 1, value.n_bytes - 2);
}

static void print_tokenizer(const tokmap_dataset *ds)
{
    json_text_span tokenizer, value = {"", 0};
    fputs("| tokenizer | ", stdout);
    if (!dataset_metadata_find(ds, "tokenizer", &tokenizer)) {
        puts("not known |");
        return;
    }
    if (json_text_find(tokenizer, "name", &value))
        print_json_value("", value);
    if (json_text_find(tokenizer, "repository", &value))
        print_json_value(" of ", value);
    if (json_text_find(tokenizer, "file_xxh3", &value))
        print_json_value(", XXH3-64 of the file ", value);
    puts(" |");
}

static void print_ids(const tokmap_dataset_info *info)
{
    fputs("| ids | ", stdout);
    if (info->vocab_size)
        printf("a vocabulary of %s", cli_count(info->vocab_size).s);
    else
        fputs("the size of the vocabulary is not known", stdout);
    printf(", the largest in use is %" PRIu32, info->largest_id);
    if (info->eod_id != TOKMAP_NO_ID)
        printf(", %" PRIu32 " ends a document", info->eod_id);
    puts(" |");
}

static void print_values(const info_card *card)
{
    for (size_t i = 0; i < card->columns->n; i++) {
        const tokmap_meta_column *column = &card->columns->info[i];
        fputs("| column | ", stdout);
        print_code(column->name, column->name_bytes);
        printf(", %s |\n", values_type_name(column->type));
    }
    for (size_t i = 0; i < card->lanes->n; i++) {
        const tokmap_lane_info *lane = &card->lanes->info[i];
        fputs("| lane | ", stdout);
        print_code(lane->name, strlen(lane->name));
        printf(", %s %s for each token |\n", cli_count(lane->count).s, lanes_type_name(lane->type));
    }
}

static void print_table(const info_card *card, const char *name, const tokmap_dataset_info *info)
{
    printf("| | |\n| --- | --- |\n| tokens | %s, %s |\n", cli_count(info->n_tokens).s,
           info->token_bytes == 2 ? "u16" : "u32");
    printf("| documents | %s |\n",
           info->n_documents || !info->n_tokens ? cli_count(info->n_documents).s : "not known");
    print_tokenizer(card->ds);
    print_ids(info);
    print_values(card);
    printf("| dataset id | `%s` |\n| files | ", cli_hex(info->dataset_id).s);
    print_code(path_of(name, ".tmi").s, strlen(name) + strlen(".tmi"));
    if (cli_is_joined(info)) {
        printf(" and %s that it lists", cli_count_of(info->n_segments, "token file").s);
    } else {
        const char *tokens = path_last_part(info->token_path);
        fputs(" and ", stdout);
        print_code(tokens, strlen(tokens));
    }
    printf(", %s |\n", cli_bytes(info->index_bytes + info->token_file_bytes).s);
}

/* Prints a string of Python. */
static void print_string(const char *before, const char *name, const char *after)
{
    fputs(before, stdout);
    json_text_print_string(stdout, name, strlen(name));
    fputs(after, stdout);
}

static void print_use(const char *name, const tokmap_dataset_info *info)
{
    fputs(
        "\n## Use\n\nPut the name of this repository in place of `OWNER/NAME`. Copy it, the index "
        "last, so that a dataset is complete or absent:\n\n```sh\n"
        "hf download OWNER/NAME --repo-type dataset --exclude '*.tmi'\n"
        "hf download OWNER/NAME --repo-type dataset --include '*.tmi'\n```\n\n"
        "Open it, and train on its rows in a shuffled order that does not depend on the number "
        "of ranks:\n\n```python\nimport tokmap\n\n"
        "name = \"hf://datasets/OWNER/NAME/\" + ",
        stdout);
    print_string("", name, "\nds = tokmap.open(name)\n");
    fputs("loader = tokmap.Loader(name, sequence_length=4096, batch_rows=8, seed=1)\n```\n\n",
          stdout);
    if (!cli_is_joined(info) && info->n_tokens > 0) {
        const char *tokens = path_last_part(info->token_path);
        print_string("Without tokmap, in NumPy: `numpy.memmap(", tokens, "");
        printf(", dtype=\"<u%" PRIu32 "\", mode=\"r\", offset=%" PRIu64 ")`.\n\n",
               info->token_bytes, info->token_offset);
    }
    fputs("## Check\n\nWith a copy in the folder `data`, this prints the names of files that are "
          "missing or damaged, and nothing if all are whole:\n\n```sh\n"
          "hf download OWNER/NAME --repo-type dataset --local-dir data\n",
          stdout);
    cli_print_word(stdout, "tokmap verify --files ", path_of("data/", name).s, "");
    fputs("\n```\n", stdout);
}

void info_card_print(const info_card *card)
{
    const tokmap_dataset_info info = cli_dataset_info(card->ds);
    const path_text prefix = path_prefix(path_last_part(info.index_path));
    print_head(prefix.s, &info);
    print_table(card, prefix.s, &info);
    print_use(prefix.s, &info);
}
