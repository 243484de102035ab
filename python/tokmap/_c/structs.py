# SPDX-License-Identifier: Apache-2.0
"""The C library through ctypes. tests/python/test_python.py compares these structs with the headers."""

import ctypes
import struct
from ctypes import (CFUNCTYPE, POINTER, c_char, c_char_p, c_double, c_int, c_int32, c_int64, c_size_t,
                    c_uint8, c_uint32, c_uint64, c_void_p, pointer)
from typing import Any, Iterator, List, Sequence, Tuple

from . import find as _native


# tokmap_reason
OTHER_DATA, OTHER_MIXTURE, EXPRESSION, REPLACEABLE, EDIT = 1, 2, 3, 4, 5


class Sized(ctypes.Structure):
    """Begins with its size in bytes, by which the library knows which fields there are."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(self), **fields)


def array_of(kind: Any, items: Sequence[Any]) -> Any:
    """A pointer to the items, or None. For one of them without a type of its own, which is quicker to make."""
    return (kind * len(items))(*items) if len(items) > 1 else pointer(items[0]) if items else None


class ErrorDetail(ctypes.Structure):
    _fields_ = [("status", c_int), ("sys_errno", c_int), ("reason", c_int), ("file_bytes", c_uint32), ("file_offset", c_uint64),
                ("text", c_char * 512)]


class ByteRead(ctypes.Structure):
    _fields_ = [("name", c_char_p), ("version", c_void_p), ("offset", c_uint64), ("n_bytes", c_size_t), ("dst", c_void_p),
                ("n_read", c_size_t), ("object_bytes", c_uint64)]


# Addresses in place of pointers: the reads are an array, by whose address they are cancelled.
ByteSourceRead = CFUNCTYPE(c_int, c_void_p, c_void_p, c_size_t, c_void_p)
ByteSourceCancel = CFUNCTYPE(None, c_void_p, c_void_p)


class ByteSource(Sized):
    _fields_ = [("struct_size", c_size_t), ("context", c_void_p), ("read", ByteSourceRead), ("cancel", ByteSourceCancel),
                ("index_path", c_char_p)]


class Info(Sized):
    _fields_ = [("struct_size", c_size_t), ("n_tokens", c_uint64), ("n_documents", c_uint64),
                ("n_inputs", c_uint64), ("vocab_size", c_uint64), ("token_offset", c_uint64),
                ("token_file_bytes", c_uint64), ("index_bytes", c_uint64),
                ("documents_bytes", c_uint64), ("token_bytes", c_uint32), ("largest_id", c_uint32),
                ("eod_id", c_uint32), ("format_version", c_uint32), ("lowest_reader", c_uint32),
                ("dataset_id", c_uint8 * 16), ("index_path", c_char_p), ("token_path", c_char_p),
                ("n_meta_columns", c_uint32), ("n_segments", c_uint64), ("n_spans", c_uint64), ("spans_hash", c_uint64),
                ("spans_role", c_uint64)]


class Segment(Sized):
    _fields_ = [("struct_size", c_size_t), ("path", c_char_p), ("path_bytes", c_size_t), ("first_token", c_uint64),
                ("n_tokens", c_uint64), ("token_offset", c_uint64)]


class Document(ctypes.Structure):
    _fields_ = [("index", c_uint64), ("first_token", c_uint64), ("n_tokens", c_uint64)]


class Input(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_void_p), ("name_bytes", c_size_t), ("first_document", c_uint64),
                ("n_documents", c_uint64), ("first_token", c_uint64), ("n_tokens", c_uint64),
                ("input_bytes", c_uint64), ("input_checksum", c_uint64)]


class MetaColumn(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_void_p), ("name_bytes", c_size_t), ("type", c_int),
                ("code_bytes", c_uint32), ("n_nulls", c_uint64), ("n_strings", c_uint64), ("validity", c_void_p),
                ("values", c_void_p), ("codes", c_void_p), ("offsets", c_void_p), ("text", c_void_p),
                ("text_bytes", c_uint64), ("number_bytes", c_uint32), ("path", c_char_p)]


class ColumnOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("replace", c_int32), ("reserved", c_int32)]


class LaneInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("path", c_char_p), ("about", c_char_p), ("type", c_int),
                ("count", c_uint32), ("token_bytes", c_uint32), ("goes_with", c_int), ("n_tokens", c_uint64),
                ("offset", c_uint64), ("hash", c_uint64)]


class LaneOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("name", c_char_p), ("about", c_char_p), ("type", c_int), ("count", c_uint32),
                ("goes_with", c_int), ("replace", c_int32), ("partial", c_int32)]


class Value(ctypes.Structure):
    _fields_ = [("type", c_int), ("integer", c_int64), ("real", c_double), ("text", c_void_p),
                ("text_bytes", c_size_t)]


class VerifyOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("n_threads", c_uint32), ("fraction", c_double),
                ("seed", c_uint64), ("context", c_void_p), ("on_progress", c_void_p),
                ("on_damage", c_void_p), ("first_segment", c_uint64), ("n_segments", c_uint64)]


class WriterOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("vocab_size", c_uint64), ("has_eod", c_int32),
                ("eod_id", c_uint32), ("token_bytes", c_uint32), ("replace", c_int32), ("resumable", c_int32),
                ("unfinished", c_int), ("resume_checkpoint", c_uint64), ("has_spans", c_int32), ("n_threads", c_uint32),
                ("context", c_void_p), ("on_progress", c_void_p)]


class Span(ctypes.Structure):
    _fields_ = [("first_token", c_uint64), ("n_tokens", c_uint64), ("role", c_int)]


class ViewOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("where", c_char_p), ("keep", c_void_p), ("n_keep", c_uint64), ("path", c_char_p),
                ("context", c_void_p), ("on_progress", c_void_p)]


class ViewInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("n_documents", c_uint64), ("n_tokens", c_uint64), ("n_runs", c_uint64),
                ("set_hash", c_uint64), ("n_bytes", c_uint64), ("path", c_char_p)]


class DocumentList(ctypes.Structure):
    _fields_ = [("documents", c_void_p), ("n_documents", c_uint64), ("starts", c_void_p), ("n_windows", c_uint64),
                ("document_bytes", c_uint32), ("start_bytes", c_uint32), ("keeps_rest", c_int32),
                ("reserved", c_int32)]


class LoaderSource(ctypes.Structure):
    _fields_ = [("datasets", POINTER(c_void_p)), ("n_datasets", c_uint32), ("masked", c_int32),
                ("weight", c_double), ("max_epochs", c_uint64), ("rows_files", POINTER(c_char_p)),
                ("order_of", POINTER(c_char_p)), ("documents", POINTER(c_uint64)), ("views", POINTER(c_void_p)),
                ("document_lists", POINTER(DocumentList)), ("window_list", c_void_p), ("n_window_list", c_uint64),
                ("window_list_bytes", c_uint32), ("lacks_lanes", c_uint32), ("train_roles", c_char_p)]


class LoaderPhase(ctypes.Structure):
    _fields_ = [("first_sample", c_uint64), ("weights", POINTER(c_double))]


class LoaderSkip(ctypes.Structure):
    _fields_ = [("first_sample", c_uint64), ("end_sample", c_uint64)]


class LoaderOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("sources", POINTER(LoaderSource)),
                ("n_sources", c_uint32), ("source_stride", c_uint32), ("sequence_length", c_uint32), ("batch_rows", c_uint32),
                ("seed", c_uint64), ("shuffle", c_int), ("windows", c_int), ("block_windows", c_uint64), ("group_blocks", c_uint64),
                ("random_offset", c_int32), ("weigh_tokens", c_int32),
                ("phases", POINTER(LoaderPhase)), ("n_phases", c_uint32), ("phase_stride", c_uint32),
                ("skips", POINTER(LoaderSkip)), ("n_skips", c_uint32), ("skip_stride", c_uint32),
                ("row_stride", c_uint32), ("row_parts", c_uint32), ("align", c_uint32), ("max_documents", c_uint32),
                ("whole_documents", c_int), ("view_pieces", c_int32),
                ("rank", c_uint32), ("n_ranks", c_uint32), ("cp_rank", c_uint32), ("cp_size", c_uint32), ("cp_mode", c_int),
                ("io", c_int), ("look_ahead", c_uint32), ("drop_behind", c_int32), ("mixed_tokenizers", c_int32),
                ("verify_blocks", c_int32), ("lanes", POINTER(c_char_p)), ("n_lanes", c_uint64)]


class Row(ctypes.Structure):
    _fields_ = [("tokens", c_void_p), ("n_tokens", c_uint32), ("token_bytes", c_uint32),
                ("source", c_uint32), ("dataset", c_uint32), ("epoch", c_uint64),
                ("window", c_uint64), ("first_token", c_uint64), ("cu_seqlens", c_void_p),
                ("n_documents", c_uint32), ("longest_document", c_uint32),
                ("position_ids", c_void_p), ("document_ids", c_void_p), ("loss_mask", c_void_p), ("sample", c_uint64),
                ("pieces", c_void_p), ("n_pieces", c_size_t)]


_LETTERS = {c_void_p: "P", c_uint32: "I", c_uint64: "Q"}
_ROW = struct.Struct("".join(_LETTERS[kind] for _, kind, *_bits in Row._fields_))


def unpack_rows(rows: Any, n: int) -> Iterator[Tuple[Any, ...]]:
    """All fields of each row at once, which is faster than one by one."""
    return _ROW.iter_unpack(ctypes.string_at(rows, n * _ROW.size))


class Batch(Sized):
    _fields_ = [("struct_size", c_size_t), ("rows", POINTER(Row)), ("n_rows", c_uint32),
                ("row_stride", c_uint32), ("sequence_length", c_uint32), ("token_bytes", c_uint32),
                ("largest_id", c_uint32), ("first_sample", c_uint64), ("step_sample", c_uint64)]


class Piece(ctypes.Structure):
    _fields_ = [("tokens", c_void_p), ("document", c_uint64), ("first_token", c_uint64), ("n_tokens", c_uint32),
                ("place", c_uint32), ("n_inputs", c_uint32), ("continues", c_uint32)]


class LoaderSample(Sized):
    _fields_ = [("struct_size", c_size_t), ("source", c_uint32), ("dataset", c_uint32), ("epoch", c_uint64),
                ("window", c_uint64), ("first_token", c_uint64), ("n_tokens", c_uint32), ("pieces", POINTER(Piece)),
                ("n_pieces", c_size_t)]


class LoaderSearch(Sized):
    _fields_ = [("struct_size", c_size_t), ("source", c_uint32), ("dataset", c_uint32), ("epoch", c_uint64),
                ("first_token", c_uint64), ("n_tokens", c_uint64), ("samples", c_void_p), ("max_samples", c_uint64),
                ("n_found", c_uint64)]


class LoaderLabels(Sized):
    _fields_ = [("struct_size", c_size_t), ("source", c_uint32), ("dataset", c_uint32), ("first_document", c_uint64),
                ("n_documents", c_uint64), ("end_sample", c_uint64), ("labels", c_void_p)]


class LedgerEntry(Sized):
    _fields_ = [("struct_size", c_size_t), ("event", c_char_p), ("time", c_char_p), ("host", c_char_p),
                ("folder", c_char_p), ("after", c_char_p), ("sample", c_uint64), ("micro_batches", c_uint64)]


class LoaderSourceInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("n_windows", c_uint64), ("quota", c_uint64), ("period", c_uint64),
                ("n_samples_before", c_uint64)]


class LoaderInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("n_sources", c_uint32), ("direct_failed", c_int32), ("n_samples", c_uint64),
                ("resident_bytes", c_uint64), ("io", c_int), ("look_ahead", c_uint32),
                ("bytes_read", c_uint64), ("n_waits", c_uint64), ("waited_ns", c_uint64),
                ("wait_p50_ns", c_uint64), ("wait_p99_ns", c_uint64), ("wait_p999_ns", c_uint64),
                ("wait_max_ns", c_uint64), ("io_reason", c_char_p)]


class GatherOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("format", c_int), ("mask_labels", c_int32),
                ("ignore_index", c_int64), ("has_ignore_index", c_int32), ("pad_id", c_uint32),
                ("inputs", c_void_p), ("labels", c_void_p), ("loader", c_void_p)]


StageLog = CFUNCTYPE(None, c_void_p, c_char_p)
StageEdit = CFUNCTYPE(None, c_void_p, POINTER(Row), POINTER(Batch))


class StageOptions(Sized):
    _fields_ = [("struct_size", c_size_t), ("loader", c_void_p), ("device", c_int32),
                ("n_slots", c_uint32), ("n_host_slots", c_uint32), ("outputs", c_uint32),
                ("input_bytes", c_uint32), ("label_bytes", c_uint32), ("ignore_index", c_int64),
                ("has_ignore_index", c_int32), ("pad_id", c_uint32), ("max_boundaries", c_uint32), ("no_thread", c_int32),
                ("context", c_void_p), ("log", StageLog), ("edit", StageEdit)]


class StageBatch(Sized):
    _fields_ = [("struct_size", c_size_t), ("inputs", c_void_p), ("labels", c_void_p),
                ("position_ids", c_void_p), ("document_ids", c_void_p), ("cu_seqlens", c_void_p),
                ("n_rows", c_uint32), ("sequence_length", c_uint32), ("n_documents", c_uint32),
                ("max_seqlen", c_uint32), ("first_sample", c_uint64), ("step_sample", c_uint64),
                ("id", c_uint64)]


class StageTensor(Sized):
    _fields_ = [("struct_size", c_size_t), ("output", c_uint32), ("stream", c_void_p),
                ("managed", c_void_p)]


class StageInfo(Sized):
    _fields_ = [("struct_size", c_size_t), ("device", c_int32), ("pinned", c_int32),
                ("n_slots", c_uint32), ("n_host_slots", c_uint32), ("n_rows", c_uint32), ("sequence_length", c_uint32), ("max_boundaries", c_uint32),
                ("device_bytes", c_uint64), ("host_bytes", c_uint64), ("n_batches", c_uint64),
                ("n_tokens", c_uint64), ("bytes_moved", c_uint64), ("n_waits", c_uint64),
                ("waited_ns", c_uint64), ("wait_p50_ns", c_uint64), ("wait_p99_ns", c_uint64),
                ("wait_p999_ns", c_uint64), ("wait_max_ns", c_uint64), ("n_late", c_uint64)]


NO_ID = 2**32 - 1


def _call(*arguments: Any, of: Any = c_void_p) -> Tuple[Any, List[Any]]:
    """Of a function that says at last what is wrong, of the object that is its first argument."""
    return c_int, [of, *arguments, POINTER(ErrorDetail)]


# name: (result, arguments)
SIGNATURES = {
    "tokmap_version": (c_char_p, []),
    "tokmap_dataset_open": _call(c_char_p, of=POINTER(c_void_p)),
    "tokmap_dataset_open_from": _call(c_char_p, POINTER(ByteSource), of=POINTER(c_void_p)),
    "tokmap_dataset_open_index": _call(c_char_p, of=POINTER(c_void_p)),
    "tokmap_dataset_close": (None, [c_void_p]),
    "tokmap_dataset_get_info": (c_int, [c_void_p, POINTER(Info)]),
    "tokmap_dataset_tokens": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_void_p)]),
    "tokmap_dataset_read": _call(c_uint64, c_uint64, c_void_p),
    "tokmap_dataset_get_segment": (c_int, [c_void_p, c_uint64, POINTER(Segment)]),
    "tokmap_dataset_document": (c_int, [c_void_p, c_uint64, POINTER(Document)]),
    "tokmap_dataset_get_spans": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(Span), c_size_t, POINTER(c_size_t)]),
    "tokmap_dataset_find_document": (c_int, [c_void_p, c_uint64, POINTER(Document)]),
    "tokmap_dataset_get_input": (c_int, [c_void_p, c_uint64, POINTER(Input)]),
    "tokmap_dataset_get_meta_column": (c_int, [c_void_p, c_uint32, POINTER(MetaColumn)]),
    "tokmap_column_open": _call(c_void_p, c_char_p, of=POINTER(c_void_p)),
    "tokmap_column_close": (None, [c_void_p]),
    "tokmap_column_get_info": (c_int, [c_void_p, POINTER(MetaColumn)]),
    "tokmap_column_get_value": (c_int, [c_void_p, c_uint64, POINTER(Value)]),
    "tokmap_column_verify": _call(c_void_p, c_void_p),
    "tokmap_column_writer_open": _call(c_void_p, POINTER(ColumnOptions), of=POINTER(c_void_p)),
    "tokmap_column_writer_put": _call(c_uint64, c_void_p, c_uint64),
    "tokmap_column_writer_finish": _call(),
    "tokmap_column_writer_close": (None, [c_void_p]),
    "tokmap_lane_open": _call(c_void_p, c_char_p, of=POINTER(c_void_p)),
    "tokmap_lane_close": (None, [c_void_p]),
    "tokmap_lane_get_info": (c_int, [c_void_p, POINTER(LaneInfo)]),
    "tokmap_lane_values": (c_int, [c_void_p, c_uint64, c_uint64, POINTER(c_void_p)]),
    "tokmap_lane_read": _call(c_uint64, c_uint64, c_void_p),
    "tokmap_lane_verify": _call(POINTER(VerifyOptions)),
    "tokmap_lane_writer_open": _call(c_void_p, POINTER(LaneOptions), of=POINTER(c_void_p)),
    "tokmap_lane_writer_put": _call(c_uint64, c_void_p, c_uint64),
    "tokmap_lane_writer_finish": _call(),
    "tokmap_lane_writer_close": (None, [c_void_p]),
    "tokmap_dataset_metadata": (c_void_p, [c_void_p, POINTER(c_size_t)]),
    "tokmap_dataset_check_tokenizers": _call(c_size_t, of=POINTER(c_void_p)),
    "tokmap_dataset_check_files": _call(c_size_t, of=POINTER(c_void_p)),
    "tokmap_dataset_choose_paths": _call(c_size_t, c_char_p, of=POINTER(c_char_p)),
    "tokmap_dataset_verify": _call(POINTER(VerifyOptions), c_void_p),
    "tokmap_writer_open": _call(c_char_p, POINTER(WriterOptions), of=POINTER(c_void_p)),
    "tokmap_writer_append": _call(c_void_p, c_size_t),
    "tokmap_writer_end_document": _call(),
    "tokmap_writer_end_input": _call(c_char_p, c_uint64, c_uint64),
    "tokmap_writer_set_metadata": _call(c_char_p, c_size_t),
    "tokmap_writer_set_meta_columns": _call(POINTER(c_char_p), c_uint32),
    "tokmap_writer_add_meta": _call(POINTER(Value), c_uint32),
    "tokmap_writer_add_span": _call(POINTER(Span)),
    "tokmap_writer_finish": _call(),
    "tokmap_writer_close": (None, [c_void_p]),
    "tokmap_view_open": _call(c_void_p, POINTER(ViewOptions), of=POINTER(c_void_p)),
    "tokmap_view_close": (None, [c_void_p]),
    "tokmap_view_documents": _call(c_uint64, c_uint64, c_void_p),
    "tokmap_view_get_info": (c_int, [c_void_p, POINTER(ViewInfo)]),
    "tokmap_view_verify": _call(c_void_p, c_void_p),
    "tokmap_view_write": _call(POINTER(ViewOptions), POINTER(ViewInfo)),
    "tokmap_loader_open": _call(POINTER(LoaderOptions), of=POINTER(c_void_p)),
    "tokmap_loader_close": (None, [c_void_p]),
    "tokmap_loader_next": _call(POINTER(Batch)),
    "tokmap_loader_seek": _call(c_uint64),
    "tokmap_loader_wait": _call(c_uint64),
    "tokmap_loader_position": (c_uint64, [c_void_p]),
    "tokmap_loader_save_at": _call(c_uint64, c_uint8 * 128),
    "tokmap_loader_set_batch": _call(c_uint32, c_uint32, c_uint32),
    "tokmap_loader_set_parts": _call(c_void_p, c_void_p, c_void_p),
    "tokmap_loader_get_source": (c_int, [c_void_p, c_size_t, POINTER(LoaderSourceInfo)]),
    "tokmap_loader_restore": _call(c_uint8 * 128),
    "tokmap_loader_amend": _call(c_uint8 * 128, POINTER(LoaderOptions)),
    "tokmap_loader_find": _call(POINTER(LoaderSearch)),
    "tokmap_loader_gather_lane": _call(c_uint32, c_void_p),
    "tokmap_loader_get_lane": (c_int, [c_void_p, c_uint32, POINTER(LaneInfo)]),
    "tokmap_loader_count_labels": _call(POINTER(LoaderLabels)),
    "tokmap_loader_sources_of": _call(c_uint64, c_size_t, c_void_p),
    "tokmap_loader_count_samples": _call(c_uint64, c_void_p),
    "tokmap_loader_ledger_line": _call(POINTER(LedgerEntry), c_char_p, POINTER(c_size_t)),
    "tokmap_ledger_check": _call(c_size_t, c_char_p, of=c_char_p),
    "tokmap_loader_locate": _call(c_uint64, POINTER(LoaderSample)),
    "tokmap_loader_get_info": (c_int, [c_void_p, POINTER(LoaderInfo)]),
    "tokmap_blend_by_error": _call(c_void_p, c_uint32, c_int32, c_uint64, c_void_p),
    "tokmap_batch_gather": _call(POINTER(GatherOptions), of=POINTER(Batch)),
    "tokmap_batch_cu_seqlens": (c_size_t, [POINTER(Batch), c_uint32, c_void_p, POINTER(c_uint32)]),
}

STAGE_SIGNATURES = {  # of tokmap_stage.h
    "tokmap_stage_count_devices": _call(of=POINTER(c_uint32)),
    "tokmap_stage_open": _call(POINTER(StageOptions), of=POINTER(c_void_p)),
    "tokmap_stage_close": (None, [c_void_p]),
    "tokmap_stage_next": _call(POINTER(StageBatch), c_void_p),
    "tokmap_stage_wait": _call(POINTER(StageBatch), c_void_p),
    "tokmap_stage_release": _call(POINTER(StageBatch), c_void_p),
    "tokmap_stage_fill": _call(POINTER(StageBatch), c_void_p),
    "tokmap_stage_save": _call(c_uint8 * 128),
    "tokmap_stage_restore": _call(c_uint8 * 128),
    "tokmap_stage_seek": _call(c_uint64),
    "tokmap_stage_position": (c_uint64, [c_void_p]),
    "tokmap_stage_export": _call(POINTER(StageBatch), POINTER(StageTensor)),
    "tokmap_stage_get_info": (c_int, [c_void_p, POINTER(StageInfo)]),
}

lib = _native.load("libtokmap.so", {**SIGNATURES, **STAGE_SIGNATURES})
