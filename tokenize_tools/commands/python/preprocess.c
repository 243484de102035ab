/* SPDX-License-Identifier: Apache-2.0 */
/* preprocess.c - the command line of tokmap preprocess. */
#include "commands/python/hand_over.h"
#include "commands/python/python_commands.h"

static const cli_word tokenizers[] = {
    {"HuggingFaceTokenizer"},      {"GPT2BPETokenizer"}, {"SentencePieceTokenizer"},
    {"GPTSentencePieceTokenizer"}, {"Llama2Tokenizer"},  {NULL},
};

static const cli_option option_table[] = {
    {"input", 0, CLI_TEXT, 0, "FILE",
     .help = "JSON lines, also as .gz or .zst; with --partitions a pattern", .is_required = true},
    {"json-keys", 0, CLI_LIST, 0, "KEY", .help = "the fields; a dataset is made of each [text]",
     .takes_more = true},
    {"output-prefix", 0, CLI_TEXT, 0, "PREFIX", .help = "how the names of the files begin",
     .is_required = true},
    {"append-eod", 0, CLI_FLAG, 0,
     .help = "end each document that has tokens with the end token of the tokenizer"},
    {"tokenizer-type", 0, CLI_WORD, 0, "NAME", .help = "Megatron's class of the tokenizer",
     .words = tokenizers, .is_required = true},
    {"tokenizer-model", 0, CLI_TEXT, 0, "NAME",
     .help = "the folder of a tokenizer of transformers, the name of one that was downloaded "
             "before, or a model of sentencepiece"},
    {"vocab-file", 0, CLI_TEXT, 0, "FILE", .help = "the vocabulary of GPT2BPETokenizer"},
    {"merge-file", 0, CLI_TEXT, 0, "FILE", .help = "the merges of GPT2BPETokenizer"},
    {"tokenizer-hf-no-include-special-tokens", 0, CLI_FLAG, 0,
     .help = "leave out the template of the tokenizer", .group = "template"},
    {"tokenizer-hf-include-special-tokens", 0, CLI_FLAG, 0, .help = "apply it [default]",
     .group = "template"},
    {"legacy-tokenizer", 0, CLI_FLAG, 0,
     .help = "do as Megatron-LM before megatron-core 0.15, and 0.16 with this argument: "
             "Llama2Tokenizer begins each document with BOS, GPT2BPETokenizer encodes "
             "<|endoftext|> in a text as plain text, and HuggingFaceTokenizer takes no eos_token "
             "for a missing sep_token, nor the like"},
    {"workers", 0, CLI_NUMBER, 0, "N", .help = "the number of threads [one per processor]"},
    {"memory", 0, CLI_TEXT, 0, "SIZE", .help = "as for 'tokmap pack'"},
    {"restart", 0, CLI_FLAG, 0, .help = "discard what a killed run has done"},
    {"partitions", 0, CLI_NUMBER, 0, "N",
     .help = "more than 1 only with --keep-sequential-samples, because otherwise Megatron changes "
             "the order of documents; files are then packed in the order of their names"},
    {"keep-sequential-samples", 0, CLI_FLAG, 0,
     .help = "keep the order of documents, which tokmap always does"},
    {"log-interval", 0, CLI_TEXT, 0, "VALUE", .help = "no effect"},
    {"lang", 0, CLI_TEXT, 0, "VALUE", .help = "no effect"},
    {"max-documents", 0, CLI_TEXT, 0, "VALUE", .help = "no effect"},
    {"use-gigatoken", 0, CLI_FLAG, 0, .help = "no effect"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap preprocess OPTION...",
    .about =
        "Takes the arguments of Megatron-LM's tools/preprocess_data.py, and writes the same "
        "PREFIX_KEY_document.bin and .idx, and a .tmi for tokmap. Like it, it replaces them. A run "
        "that was killed is resumed by the same command. Other arguments of that tool are refused. "
        "Nothing is loaded from the network.\n\n"
        "The files are those of Megatron-LM with megatron-core 0.17. Versions 0.15 and 0.16 make "
        "the same, but a HuggingFaceTokenizer leaves out the template, such as BOS: give "
        "--tokenizer-hf-no-include-special-tokens, unless 0.16 had "
        "--tokenizer-hf-include-special-tokens. --legacy-tokenizer makes the files of 0.14 and "
        "before.",
    .options = option_table,
    .most_used =
        " input json-keys output-prefix append-eod tokenizer-type tokenizer-model workers ",
    .examples = "  tokmap preprocess --input corpus.jsonl --output-prefix data/web \\\n"
                "      --append-eod --tokenizer-type HuggingFaceTokenizer \\\n"
                "      --tokenizer-model models/llama\n",
};

int preprocess_command(int argc, char **argv)
{
    return hand_over(&manual, argc, argv);
}
