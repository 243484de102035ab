/* SPDX-License-Identifier: Apache-2.0 */
/* try.c - the command line of tokmap try. */
#include "commands/python/hand_over.h"
#include "commands/python/python_commands.h"

static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, 0, "DIR",
     .help = "keep the files that are made in this folder, which must be empty or new [none stay]"},
    {"field", 0, CLI_TEXT, 0, "PATH",
     .help = "as for pack: the field or column that holds the text [text]"},
    {"pattern", 0, CLI_TEXT, 0, "NAME", .help = "as for pack: of files that contain only ranks"},
    {"download", 0, CLI_FLAG, 0,
     .help = "fetch files named hf://... that the cache of the Hub lacks; else nothing uses the "
             "network"},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap try [OPTION]... TOKENIZER TEXT...",
    .about =
        "Proves in half a minute what tokmap does with your own tokenizer and text. It packs up "
        "to 64 MB of the text and compares all ids with those of the package tokenizers, "
        "tiktoken or sentencepiece, if it is installed; kills a run of pack and a training "
        "with signal 9, resumes both, and compares what they have written and read. TOKENIZER "
        "and TEXT are as for 'tokmap pack'. The exit status is 1 if anything differs.",
    .options = option_table,
    .examples = "  tokmap try tokenizer.json corpus.jsonl\n"
                "  tokmap try hf://openai-community/gpt2 'corpus/*.parquet'\n",
    .operand = "TOKENIZER and TEXT",
    .n_least = 2,
};

int try_command(int argc, char **argv)
{
    return hand_over(&manual, argc, argv);
}
