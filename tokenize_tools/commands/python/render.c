/* SPDX-License-Identifier: Apache-2.0 */
/* render.c - the command line of tokmap render. */
#include "commands/python/hand_over.h"
#include "commands/python/python_commands.h"

static const cli_option option_table[] = {
    {"tokenizer", 0, CLI_TEXT, 0, "NAME",
     .help = "the folder of a tokenizer of transformers, or the name of one that was downloaded "
             "before",
     .is_required = true},
    {"field", 0, CLI_TEXT, 0, "NAME",
     .help = "the field of the messages, objects with role and content [messages]"},
    {"chat-template", 0, CLI_TEXT, 0, "FILE",
     .help = "the template in place of the tokenizer's, such as one for training of TRL"},
    {"tools", 0, CLI_TEXT, 0, "NAME",
     .help = "the field of the tools, if there is one: a list of schemas, or such a list as text "
             "[tools]"},
    {"mark", 0, CLI_LIST, 0, "NAME=BEGIN...END",
     .help =
         "give what the assistant wrote from BEGIN to END, including both, the role NAME, and the "
         "rest of it the role assistant, such as 'think=<think>...</think>'; may be given several "
         "times; 'tokmap pack --roles' takes the names"},
    {"output", 'o', CLI_TEXT, 0, "OUTPUT",
     .help = "the file to write, complete or not at all [stdout]"},
    {"force", 'f', CLI_FLAG, 0, .help = "replace OUTPUT if it already exists"},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object; needs --output"},
    {"quiet", 'q', CLI_FLAG, 0, .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap render [OPTION]... FILE --tokenizer NAME [-o OUTPUT]",
    .about = "Makes parts of text of the chats in FILE, by the chat template of a tokenizer. FILE "
             "is JSON lines, also as .gz or .zst. Each line becomes {\"parts\": [{\"text\": ..., "
             "\"train\": true or false}, ...]} and its other fields, for 'tokmap pack --parts "
             "parts'. What the template has in {% generation %} blocks is trained on. With --mark, "
             "its parts also have a \"role\", and a Loader chooses which roles count. Nothing is "
             "loaded from the network.",
    .options = option_table,
    .examples = "  tokmap render chats.jsonl --tokenizer models/chat -o parts.jsonl\n"
                "  tokmap render chats.jsonl --tokenizer models/chat -o parts.jsonl \\\n"
                "      --mark 'think=<think>...</think>'\n",
    .operand = "FILE",
    .n_least = 1,
    .n_most = 1,
};

int render_command(int argc, char **argv)
{
    return hand_over(&manual, argc, argv);
}
