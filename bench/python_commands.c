/* SPDX-License-Identifier: Apache-2.0 */
#include "python_commands.h"

#include "cli/options.h"
#include "commands/python/hand_over.h"

static const cli_option loader_options[] = {
    {"The step"},
    {"step-ms", 0, CLI_TEXT, 0, "N",
     .help = "the milliseconds of a simulated step, which sleeps; this or --model-step is needed",
     .group = "step"},
    {"model-step", 0, CLI_TEXT, 0, "MODULE:NAME",
     .help = "a function of a batch that is the step. One that only gives work to a GPU has "
             "to wait for it",
     .group = "step"},
    {"The measurement"},
    {"steps", 0, CLI_NUMBER, 0, "N", .help = "steps that count [200]", .lowest = 1,
     .highest = 1 << 24},
    {"warm-up", 0, CLI_NUMBER, 0, "N", .help = "steps before them that do not [8]",
     .highest = 1 << 24},
    {"tokens", 0, CLI_NUMBER, 0, "N",
     .help = "tokens of a batch [those of its inputs, input_ids, tokens or text, or of its first "
             "array]",
     .lowest = 1},
    {"replay", 0, CLI_NUMBER, 0, "N",
     .help = "keep N batches, and take the steps again with them: what is lost then is not lost "
             "by the loader",
     .lowest = 1, .highest = 1 << 20},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object, for tokbench compare"},
    {NULL},
};

static const cli_manual loader_manual = {
    .usage = "tokbench loader MODULE:NAME --step-ms N [OPTION]...\n"
             "       tokbench loader MODULE:NAME --model-step MODULE:NAME [OPTION]...",
    .about = "Says how long a training waits for the batches of a loader, by the measure of "
             "'tokbench fit'. NAME is a function of a Python module, of this folder or installed, "
             "that returns the loader: any iterable of batches, of any framework. Its name may "
             "also be that of the loader itself.",
    .options = loader_options,
    .notes = "In a program or a notebook, tokmap.measure(loader, step_ms=20) does the same.\n\n"
             "Exit status: 0 fed, or the loader was not asked to keep up with steps; 6 the "
             "training would wait for more than one percent of the time; 1 the loader failed; 2 "
             "the command line is wrong; 3 there is no such module or name.",
    .examples = "  tokbench loader my_training:make_loader --step-ms 180\n"
                "  tokbench loader my_training:make_loader --model-step my_training:step \\\n"
                "      --replay 8 --json > loader.json\n",
    .operand = "MODULE:NAME",
    .n_least = 1,
    .n_most = 1,
};

static const cli_option compare_options[] = {
    {"json", 0, CLI_FLAG, 0, .help = "print the rows as a JSON object"},
    {NULL},
};

static const cli_manual compare_manual = {
    .usage = "tokbench compare [--json] OLD NEW",
    .about = "Compares two results of one kind, row by row: of pages (tokbench --json), of "
             "tokbench fit, of tokbench loader and tokmap.measure, of make bench-peers. It prints "
             "both medians, how many times the old one the new one is, and, of rounds, between "
             "what that is with the smallest and the largest one of each; where that leaves out "
             "1, what the new one is.",
    .options = compare_options,
    .notes = "Exit status: 0 done; 1 no row is in both; 2 the results are of two kinds; 3 a file "
             "cannot be read, is not a result, or is of another machine.",
    .examples = "  tokbench compare before.json after.json\n",
    .operand = "FILE",
    .n_least = 2,
    .n_most = 2,
};

int loader_command(int argc, char **argv)
{
    return hand_over(&loader_manual, argc, argv);
}

int compare_command(int argc, char **argv)
{
    return hand_over(&compare_manual, argc, argv);
}
