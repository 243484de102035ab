#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every call of the public headers with NULL for each of its pointers, one after another and each in a process of its
own: TOKMAP_ERR_ARGUMENT, or what a comment promises. The calls are read from the headers, so a new one is tested too;
ARGUMENTS says with what a call would succeed."""

import os
import pathlib
import re
import signal
import subprocess
import sys

from ref_protocol import BUILD, Skip, expect, run_in_folders

ROOT = pathlib.Path(__file__).resolve().parents[2]
ERR_ARGUMENT = -1

# By name and type of the parameter.
ARGUMENTS = {
    "int32_t *position_ids": "inputs", "int32_t *document_ids": "inputs", "uint8_t *loss_mask": "room",
    "int32_t *cu_seqlens": "inputs", "uint32_t *longest": "(uint32_t *)room", "uint32_t sequence_length": "8",
    "tokmap_error *err": "&err", "const tokmap_dataset *ds": "ds", "tokmap_dataset *ds": "ds", "tokmap_loader *l": "loader",
    "const tokmap_loader *l": "loader", "tokmap_stage *s": "stage", "const tokmap_stage *s": "stage",
    "tokmap_tokenizer *t": "tokenizer", "const tokmap_tokenizer *t": "tokenizer", "tokmap_writer *w": "writer",
    "const tokmap_writer *w": "writer",
    "const tokmap_byte_source *source": "&byte_source", "tokmap_dataset **out": "(tokmap_dataset *[1]){0}", "tokmap_loader **out": "(tokmap_loader *[1]){0}",
    "tokmap_stage **out": "(tokmap_stage *[1]){0}", "tokmap_tokenizer **out": "(tokmap_tokenizer *[1]){0}",
    "tokmap_writer **out": "(tokmap_writer *[1]){0}",
    "const char *path": '"d"', "const char *prefix": '"new"', "const char *token_path": '"raw.bin"',
    "uint64_t first": "0", "uint64_t n_tokens": "1", "size_t n_tokens": "1", "uint64_t index": "0", "uint64_t token": "0",
    "uint32_t column": "0", "uint64_t document": "0", "uint64_t sample": "0", "size_t source": "0", "uint32_t id": "97",
    "uint32_t rank": "0", "uint32_t n_ranks": "1", "uint32_t batch_rows": "1", "uint64_t checkpoint": "0",
    "size_t n_datasets": "1", "size_t n_ids": "1", "size_t n_bytes": "2", "uint32_t n_columns": "1",
    "uint32_t n_values": "1", "size_t note_bytes": "2", "uint64_t input_bytes": "0", "uint64_t input_checksum": "0",
    "const void **tokens": "(const void *[1]){0}", "void *dst": "room", "tokmap_document *out": "(void *)room",
    "size_t *n_tokens": "(size_t *)(void *)room", "size_t *n_bytes": "(size_t *)(void *)room",
    "tokmap_value *out": "(void *)room", "tokmap_text *out": "(void *)room", "void *note": "room", "void *stream": "NULL",
    "const void *note": "room", "const void *memory": "NULL", "uint32_t lane": "0", "void *values": "room", "const char *name": '"x"', "const char *json": '"{}"',
    "const char *bytes": '"ab"', "const uint32_t *ids": "(uint32_t[1]){7}", "uint32_t *ids": "(uint32_t *)(void *)room", "void *out": "room", "size_t size": "64",
    "const char **json": "(const char *[1]){0}", "tokmap_on_progress *on_progress": "NULL",
    "uint32_t *n_devices": "(uint32_t *)(void *)room",
    "tokmap_span *spans": "(tokmap_span *)(void *)room", "const tokmap_span *span": "&(tokmap_span){0, 1, TOKMAP_SPAN_PROMPT}",
    "const void *tokens": "room", "const uint64_t *lengths": "(uint64_t[1]){1}", "size_t n_documents": "1",
    "size_t n_most": "1", "size_t *n_found": "(size_t *)(void *)room",
    "const char *const *paths": '(const char *[1]){"P"}', "size_t n_paths": "1", "uint8_t *chosen": "(uint8_t[1]){0}",
    "const char *const *names": '(const char *[1]){"score"}', "const tokmap_value *values": "&value",
    "tokmap_dataset *const *datasets": "(tokmap_dataset *[1]){ds}",
    "uint8_t state[TOKMAP_STATE_BYTES]": "room", "const uint8_t state[TOKMAP_STATE_BYTES]": "state",
    "const tokmap_batch *batch": "&batch", "tokmap_batch *batch": "&batch",
    "const tokmap_stage_batch *batch": "&stage_batch", "tokmap_stage_batch *batch": "&stage_batch",
    "const tokmap_loader_options *options": "&loader_options", "const tokmap_stage_options *options": "&stage_options",
    "const tokmap_writer_options *options": "&writer_options", "const uint64_t *documents": "&one", "uint64_t *documents": "(uint64_t *)(void *)room", "uint64_t n_documents": "1", "const tokmap_gather_options *options": "&gather_options",
    "tokmap_status status": "TOKMAP_OK", "const tokmap_loader_options *before": "NULL", "const char *line": '"ab"',
    "char *line": "room", "const char *after": "NULL", "uint64_t first_sample": "0", "size_t n_samples": "1",
    "tokmap_column **out": "(tokmap_column *[1]){0}", "const tokmap_column *column": "column", "tokmap_column *column": "column",
    "tokmap_column_writer **out": "(tokmap_column_writer *[1]){0}", "tokmap_column_writer *w": "column_writer",
    "const tokmap_column_options *options": "&column_options", "uint64_t n_values": "1", "const char *where": '"score > 1"',
    "tokmap_lane **out": "(tokmap_lane *[1]){0}", "const tokmap_lane *lane": "lane", "tokmap_lane *lane": "lane",
    "tokmap_lane_writer **out": "(tokmap_lane_writer *[1]){0}", "tokmap_lane_writer *w": "lane_writer",
    "const tokmap_lane_options *options": "&lane_options", "const void **values": "(const void *[1]){0}",
    "const void *values": "room", "const tokmap_dataset *redacted": "ds",
    "tokmap_view **out": "(tokmap_view *[1]){0}", "const tokmap_view *view": "view", "tokmap_view *view": "view",
    "const tokmap_view_options *options": "&view_options",
    "tokmap_use_kept *use": "use_kept", "void *context": "NULL",
    "const double *weights": "(double[1]){1}", "const uint64_t *limits": "NULL", "uint32_t n_sources": "1", "int32_t is_fused": "0",
    "uint64_t n": "1", "uint64_t timeout_ns": "0", "uint16_t *sources": "(uint16_t *)(void *)room",
    "uint32_t *sources": "(uint32_t *)(void *)room", "uint64_t *counts": "(uint64_t *)(void *)room",
}
# For these structs, one that TOKMAP_INIT has made is enough.
INITIALIZED = re.compile(r"(?:const )?(tokmap_\w*(?:info|options|report|sample|column|tensor|encoding|search|labels|entry)) \*\w+")
# The comments say that these may be NULL, or NULL is a value, as of a stream.
MAY_BE_NULL = {"err", "stream", "on_progress", "memory", "context", "tokmap_dataset_verify.options", "tokmap_dataset_verify.report", "tokmap_lane_verify.options",
               "tokmap_writer_join.options",
               "tokmap_loader_amend.before", "tokmap_loader_ledger_line.line", "tokmap_ledger_check.after",
               "tokmap_writer_get_checkpoint.note", "tokmap_tokenizer_open.options", "tokmap_rows_write.info",
               "tokmap_view_write.info", "position_ids", "document_ids", "loss_mask", "limits"}
# Pointers in structs and arrays, with a number above 0 beside them.
MORE = {
    "sources": "loader_options.sources = NULL; status = tokmap_loader_open(&other_loader, &loader_options, &err);",
    "datasets of a source": "source.datasets = NULL; status = tokmap_loader_open(&other_loader, &loader_options, &err);",
    "a dataset of a source": "datasets[0] = NULL; status = tokmap_loader_open(&other_loader, &loader_options, &err);",
    "phases": "loader_options.n_phases = 1; loader_options.phase_stride = sizeof(tokmap_loader_phase);"
              "status = tokmap_loader_open(&other_loader, &loader_options, &err);",
    "weights of a phase": "tokmap_loader_phase phase = {.first_sample = 1}; loader_options.phases = &phase; loader_options.n_phases = 1;"
                          "loader_options.phase_stride = sizeof phase;"
                          "status = tokmap_loader_open(&other_loader, &loader_options, &err);",
    "rows": "batch.rows = NULL; status = tokmap_batch_gather(&batch, &gather_options, &err);",
    "tokens of a row": "tokmap_row row = *batch.rows; row.tokens = NULL; batch.rows = &row; batch.row_stride = sizeof row;"
                       "status = tokmap_batch_gather(&batch, &gather_options, &err);",
    "inputs and labels": "gather_options.inputs = gather_options.labels = NULL;"
                         "status = tokmap_batch_gather(&batch, &gather_options, &err);",
    "a mask of a view": "view_options.where = NULL; status = tokmap_view_open(&view, ds, &view_options, &err);",
    "a dataset of a list": "datasets[0] = NULL; status = tokmap_dataset_check_tokenizers(datasets, 1, &err);",
    "a dataset of a list of files": "datasets[0] = NULL; status = tokmap_dataset_check_files(datasets, 1, &err);",
    "a path of a list": "uint8_t chosen[1]; status = tokmap_dataset_choose_paths((const char *[1]){0}, 1, chosen, &err);",
    "loader of a stage": "stage_options.loader = NULL; tokmap_stage *other; status = tokmap_stage_open(&other, &stage_options, &err);",
    "name of a column": "status = tokmap_writer_set_meta_columns(writer, (const char *[1]){0}, 1, &err);",
    "text of a value": "tokmap_writer_set_meta_columns(writer, (const char *[1]){\"lang\"}, 1, &err);"
                       "value = (tokmap_value){.type = TOKMAP_VALUE_STRING, .text_bytes = 2};"
                       "status = tokmap_writer_add_meta(writer, &value, 1, &err);",
    "values": "tokmap_writer_set_meta_columns(writer, (const char *[1]){\"lang\"}, 1, &err);"
              "status = tokmap_writer_add_meta(writer, NULL, 1, &err);",
    "a dataset to join": "tokmap_writer *joined; need(tokmap_writer_open_joined(&joined, \"new\", &joined_options, &err), &err);"
                         "status = tokmap_writer_join(joined, NULL, NULL, &err);",
    "tokens of a scan": "tokmap_adopt_options o = TOKMAP_INIT(tokmap_adopt_options); o.n_tokens = 40; o.token_bytes = 2; size_t n;"
                        "need(tokmap_writer_adopt(&writer, \"raw.bin\", &o, &err), &err);"
                        "status = tokmap_writer_scan(writer, NULL, &n, &err);",
    "texts": "tokmap_encode_options o = TOKMAP_INIT(tokmap_encode_options); tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);"
             "o.n_texts = 1; o.text_stride = sizeof(tokmap_text); status = tokmap_tokenizer_encode(tokenizer, &o, &e, &err);",
    "bytes of a text": "tokmap_encode_options o = TOKMAP_INIT(tokmap_encode_options); tokmap_encoding e = TOKMAP_INIT(tokmap_encoding);"
                       "tokmap_text text = {.n_bytes = 2}; o.texts = &text; o.n_texts = 1; o.text_stride = sizeof text;"
                       "status = tokmap_tokenizer_encode(tokenizer, &o, &e, &err);",
}

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "tokmap_stage.h"
#include "tokmap_tokenizer.h"
#include "tokmap_writer.h"

static unsigned char room[1 << 17], state[TOKMAP_STATE_BYTES];

static void need(tokmap_status status, const tokmap_error *err)
{
    if (status) {
        printf("the test itself: %s\n", err->text);
        exit(9);
    }
}

static void make_dataset(const char *prefix, tokmap_error *err)
{
    tokmap_writer_options o = TOKMAP_INIT(tokmap_writer_options);
    tokmap_value value = {.type = TOKMAP_VALUE_INT64, .integer = 3};
    tokmap_writer *w = NULL;
    o.vocab_size = 1000;
    o.replace = 1;
    need(tokmap_writer_open(&w, prefix, &o, err), err);
    need(tokmap_writer_set_meta_columns(w, (const char *[1]){"score"}, 1, err), err);
    for (unsigned id = 0; id < 40; id++)
        need(tokmap_writer_append(w, &id, 1, err), err);
    need(tokmap_writer_add_meta(w, &value, 1, err), err);
    need(tokmap_writer_end_document(w, err), err);
    need(tokmap_writer_end_input(w, "x", 0, 0, err), err);
    need(tokmap_writer_finish(w, err), err);
    tokmap_writer_close(w);
}

static tokmap_status read_nothing(void *context, tokmap_byte_read *reads, size_t n_reads, tokmap_error *err)
{
    err->status = TOKMAP_ERR_IO;
    return TOKMAP_ERR_IO;
}

static const tokmap_byte_source byte_source = {.struct_size = sizeof byte_source, .read = read_nothing};

static tokmap_status use_kept(void *context, uint64_t first, uint32_t n, const uint64_t *kept, tokmap_error *err)
{
    return TOKMAP_OK;
}

int main(int argc, char **argv)
{
    tokmap_error err = {0};
    tokmap_status status = TOKMAP_OK;
    long long number = 0;
    int32_t inputs[8];
    int64_t labels[8];
    if (argc < 2)
        return 9;
    make_dataset("d", &err);
    tokmap_dataset *ds = NULL;
    need(tokmap_dataset_open(&ds, "d", &err), &err);
    tokmap_dataset *datasets[1] = {ds};
    tokmap_loader_source source = {.datasets = datasets, .n_datasets = 1};
    tokmap_loader_options loader_options = TOKMAP_INIT(tokmap_loader_options);
    loader_options.sources = &source;
    loader_options.n_sources = 1;
    loader_options.source_stride = sizeof source;
    loader_options.row_stride = sizeof(tokmap_row);
    loader_options.sequence_length = 8;
    loader_options.batch_rows = 1;
    tokmap_loader *loader = NULL, *of_stage = NULL, *free_loader = NULL, *other_loader = NULL;
    need(tokmap_loader_open(&loader, &loader_options, &err), &err);
    need(tokmap_loader_open(&of_stage, &loader_options, &err), &err);
    need(tokmap_loader_open(&free_loader, &loader_options, &err), &err);
    need(tokmap_loader_save(loader, state, &err), &err);
    tokmap_batch batch = TOKMAP_INIT(tokmap_batch);
    need(tokmap_loader_next(loader, &batch, &err), &err);
    tokmap_gather_options gather_options = TOKMAP_INIT(tokmap_gather_options);
    gather_options.format = TOKMAP_GATHER_I32;
    gather_options.inputs = inputs;
    gather_options.labels = labels;
    tokmap_stage_options stage_options = TOKMAP_INIT(tokmap_stage_options);
    stage_options.loader = of_stage;
    stage_options.device = TOKMAP_STAGE_HOST;
    tokmap_stage *stage = NULL;
    need(tokmap_stage_open(&stage, &stage_options, &err), &err);
    tokmap_stage_batch stage_batch = TOKMAP_INIT(tokmap_stage_batch);
    need(tokmap_stage_next(stage, &stage_batch, NULL, &err), &err);
    stage_options.loader = free_loader;
    tokmap_writer_options writer_options = TOKMAP_INIT(tokmap_writer_options);
    writer_options.vocab_size = 1000;
    writer_options.resumable = 1;
    tokmap_writer *writer = NULL;
    need(tokmap_writer_open(&writer, "w", &writer_options, &err), &err);
    tokmap_writer_options joined_options = writer_options;
    joined_options.resumable = 0;
    const uint64_t one = 0;
    tokmap_value value = {.type = TOKMAP_VALUE_INT64, .integer = 3};
    tokmap_column *column = NULL;
    tokmap_column_writer *column_writer = NULL;
    tokmap_column_options column_options = TOKMAP_INIT(tokmap_column_options);
    column_options.name = "late";
    column_options.replace = 1;
    need(tokmap_column_open(&column, ds, "score", &err), &err);
    need(tokmap_column_writer_open(&column_writer, ds, &column_options, &err), &err);
    column_options.name = "other";
    tokmap_lane *lane = NULL;
    tokmap_lane_writer *lane_writer = NULL;
    tokmap_lane_options lane_options = TOKMAP_INIT(tokmap_lane_options);
    lane_options.name = "x";
    lane_options.type = TOKMAP_LANE_U8;
    lane_options.partial = lane_options.replace = 1;
    need(tokmap_lane_writer_open(&lane_writer, ds, &lane_options, &err), &err);
    need(tokmap_lane_writer_finish(lane_writer, &err), &err);
    tokmap_lane_writer_close(lane_writer);
    need(tokmap_lane_open(&lane, ds, "x", &err), &err);
    lane_options.name = "late";
    need(tokmap_lane_writer_open(&lane_writer, ds, &lane_options, &err), &err);
    lane_options.name = "other";
    tokmap_view *view = NULL;
    tokmap_view_options view_options = TOKMAP_INIT(tokmap_view_options);
    view_options.where = "score > 1";
    need(tokmap_view_open(&view, ds, &view_options, &err), &err);
    tokmap_tokenizer *tokenizer = NULL;
    need(tokmap_tokenizer_open(&tokenizer, "bytes", NULL, &err), &err);
    (void)other_loader;
    switch (atoi(argv[1])) {
CASES
    default:
        return 9;
    }
    printf("%d %lld\n", (int)status, number);
    return 0;
}
"""


def public_calls():
    """(type of the result, name, parameters) of each call."""
    for header in sorted((ROOT / "include").glob("*.h")):
        text = re.sub(r"/\*.*?\*/", "", header.read_text(), flags=re.S)
        for result, name, parameters in re.findall(r"TOKMAP_API ([\w ]+[ *])(\w+)\(([^;{}]*)\);", text):
            parameters = [" ".join(p.split()) for p in parameters.split(",")]
            yield result.strip(), name, [] if parameters == ["void"] else parameters


def name_of(parameter):
    return re.search(r"(\w+)(\[\w+\])?$", parameter).group(1)


def value_of(parameter):
    found = INITIALIZED.fullmatch(parameter)
    if parameter in ARGUMENTS:
        return ARGUMENTS[parameter]
    expect(found, "no value for '%s': add one to ARGUMENTS" % parameter)
    return "&(%s)TOKMAP_INIT(%s)" % (found.group(1), found.group(1))


def make_cases():
    """(what, C statement, what must come of it)."""
    for result, name, parameters in public_calls():
        for i, parameter in enumerate(parameters):
            if "*" not in parameter and "[" not in parameter:
                continue
            values = [value_of(p) for p in parameters]
            values[i] = "NULL"
            may = result == "void" or name_of(parameter) in MAY_BE_NULL or "%s.%s" % (name, name_of(parameter)) in MAY_BE_NULL
            variants = [(values, "any" if may or result != "tokmap_status" else ERR_ARGUMENT)]
            if i + 1 < len(values) and re.search(r" n_\w+$| note_bytes$", parameters[i + 1]) and "*" not in parameters[i + 1]:
                variants.append((values[:i + 1] + ["0"] + values[i + 2:], "any"))
            for arguments, wanted in variants:
                call = "%s(%s)" % (name, ", ".join(arguments))
                assign = {"tokmap_status": "status = %s;", "void": "%s;"}.get(
                    result, "number = (long long)(uintptr_t)%s;" if "*" in result else "number = (long long)%s;")
                yield call, assign % call, wanted
    for what, statement in MORE.items():
        yield what, statement, ERR_ARGUMENT


def null_is_refused(folder):
    if BUILD is None or not os.path.exists(os.path.join(BUILD, "libtokmap.so")):
        raise Skip("the libraries are not built")
    if os.environ.get("TOKMAP_SANITIZED"):
        raise Skip("a program without the sanitizer cannot use its libraries")
    cases = list(make_cases())
    text = "\n".join("    case %d: { %s break; }" % (i, case[1]) for i, case in enumerate(cases))
    (folder / "null.c").write_text(PROGRAM.replace("CASES", text))
    (folder / "raw.bin").write_bytes(bytes(80))
    subprocess.run([*os.environ.get("CC", "cc").split(), "-std=c11", "-w", "-I", str(ROOT / "include"), "-o", str(folder / "null"),
                    str(folder / "null.c"), "-L", BUILD, "-ltokmap", "-ltokmap_tokenizer", "-Wl,-rpath," + BUILD],
                   check=True)
    wrong = []
    for i, (what, _, wanted) in enumerate(cases):
        done = subprocess.run([str(folder / "null"), str(i)], cwd=folder, capture_output=True, text=True, timeout=60)
        for path in folder.glob("[wnr]*.[bt]*"):
            if path.name != "raw.bin":
                path.unlink()
        if done.returncode < 0:
            wrong.append("%s: %s" % (what, signal.Signals(-done.returncode).name))
        elif done.returncode or (wanted != "any" and int(done.stdout.split()[0]) != wanted):
            wrong.append("%s: %s, not %s" % (what, done.stdout.strip(), wanted))
    expect(not wrong, "%d of %d calls:\n" % (len(wrong), len(cases)) + "\n".join(wrong))
    return "%d calls" % len(cases)


if __name__ == "__main__":
    sys.exit(run_in_folders("", [null_is_refused]))
