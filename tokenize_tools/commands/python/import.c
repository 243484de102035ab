/* SPDX-License-Identifier: Apache-2.0 */
/* import.c - the command line of tokmap import. */
#include "commands/python/hand_over.h"
#include "commands/python/python_commands.h"

static const cli_word formats[] = {
    {"hdf5"},       {"lmdb"},     {"megatron"}, {"datatrove"}, {"numpy"},   {"tfrecord"},
    {"webdataset"}, {"datasets"}, {"parquet"},  {"mds"},       {"litdata"}, {NULL},
};

static const cli_word *list_formats(void)
{
    return formats;
}

static const cli_word dtypes[] = {{"uint16"}, {"uint32"}, {"int32"}, {"int64"}, {NULL}};

static const cli_option option_table[] = {
    {"output", 'o', CLI_TEXT, 0, "P", .help = "the dataset to write", .is_required = true},
    {"vocab-size", 0, CLI_NUMBER, 0, "N", .help = "ids are below it", .is_required = true},
    {"eod", 0, CLI_NUMBER, 0, "ID", .help = "the id that ends documents"},
    {"field", 0, CLI_TEXT, 0, "NAME",
     .help = "the column, feature, HDF5 dataset or suffix in a tar that has the ids [input_ids, "
             "tokens, or the only one]"},
    {"labels", 0, CLI_TEXT, 0, "NAME",
     .help = "the field of labels: the ids, or -100 where they do not count [labels, if it "
             "exists]"},
    {"loss-mask", 0, CLI_TEXT, 0, "NAME",
     .help = "the field of 1 where an id counts as a label, or 0; without this and --labels, all "
             "of labels, assistant_masks, completion_mask, loss_mask, if any"},
    {"no-mask", 0, CLI_FLAG, 0, .help = "count all ids"},
    {"dtype", 0, CLI_WORD, 0, "WORD",
     .help = "the type of ids that are stored as bytes, as in lmdb; a wrong type gives wrong ids",
     .words = dtypes},
    {"stream", 0, CLI_FLAG, 0,
     .help = "rows are pieces of one stream, in which documents end after --eod; without it, each "
             "row is a document"},
    {"force", 'f', CLI_FLAG, 0, .help = "replace P if it already exists"},
    {"json", 0, CLI_FLAG, 0, .help = "print the result as a JSON object"},
    {"quiet", 'q', CLI_FLAG, 0, .help = "print only errors"},
    {NULL},
};

static const cli_manual manual = {
    .usage = "tokmap import [OPTION]... FORMAT INPUT... -o P --vocab-size N",
    .about = "Makes a dataset P from token files of other libraries. An INPUT is a file; for mds "
             "and litdata a folder; for lmdb and datasets either. Each row of a file becomes a "
             "document. 'tokmap index' makes datasets from files whose tokens need not be "
             "converted.",
    .list_title = "Formats",
    .get_list = list_formats,
    .options = option_table,
    .examples = "  tokmap import parquet rows.parquet -o data/rows --vocab-size 50257\n"
                "  tokmap import numpy tokens.npy -o data/tokens --vocab-size 257 \\\n"
                "      --stream --eod 256\n",
    .operand = "INPUT",
    .n_least = 2, /* FORMAT is the first */
};

int import_command(int argc, char **argv)
{
    return hand_over(&manual, argc, argv);
}
