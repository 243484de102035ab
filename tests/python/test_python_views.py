#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Views in the Python package: a source of some documents gives the rows of a dataset that has only these; masks, paths
of view files, runs that go on with them, and what ledgers say. test_views.c tries the loader itself."""

import dataclasses
import gc
import itertools
import os
import pickle
import random
import subprocess
import sys

from grouped import open_loader
from package import raises
from ref_protocol import need, program, run_in_folders

import numpy as np
import tokmap
from tokmap._frameworks import blends
from tokmap._tools import notebook

OUTPUTS = ["inputs", "labels", "position_ids", "document_ids", "loss_mask", "cu_seqlens"]
WHERE, RESPELT = "quality >= 3 and not dup", "not (dup or quality < 3 or quality is null)"
N = 400


def prepare(folder):
    rng = random.Random(5)
    for k, name in enumerate(("a", "b")):
        documents = [([rng.randrange(1000) for _ in range(rng.choice((0, 1, 2, 9, 40)))],
                      {"quality": rng.choice((1, 2, 3, 4, None)), "dup": int(rng.random() < 0.2)}) for _ in range(N + k)]
        kept = [one for one in documents if (one[1]["quality"] or 0) >= 3 and not one[1]["dup"]]
        for prefix, some in ((name, documents), (f"{name}-kept", kept)):
            with tokmap.Writer(folder / prefix, vocab_size=1000, meta=["quality", "dup"]) as w:
                for ids, meta in some:
                    w.document(ids, meta={key: value for key, value in meta.items() if value is not None})


def mask_of(ds):
    return np.array([(one["quality"] or 0) >= 3 and not one["dup"] for one in map(ds.document_meta, range(len(ds)))])


def rows_of(sources, **options):
    """What an epoch has, as plain lists, and the state at its end."""
    with open_loader(sources, 16, batch_rows=3, outputs=OUTPUTS, max_epochs=1, **options) as loader:
        return [[np.asarray(batch[name]).tolist() for name in OUTPUTS] + [[row.tokens.tolist() for row in batch.rows]]
                for batch in loader], loader.state()


def rows_are_those_of_a_dataset_of_the_documents(folder):
    n = 0
    for windows in ("concat", "within_document", "best_fit"):
        for options in ({}, {"random_offset": windows == "concat", "io": "read"}):
            options = {"windows": windows, "shuffle": "none", "drop_last": False, **options}
            for names in ("a", "ab"):
                found = rows_of(tokmap.Source([folder / name for name in names], where=WHERE), **options)[0]
                wanted = rows_of(tokmap.Source([folder / f"{name}-kept" for name in names]), **options)[0]
                if not options.get("random_offset"):  # the offset depends on the id
                    assert found == wanted, (options, names)
                assert len(found) == len(wanted)
                n += len(found)
    return f"{n} batches"


def whole_rows_are_put_together(folder):
    """Also rows of several places, with and without another type, and rows that are asked for one by one."""
    sources = [tokmap.Source(folder / "a", where=WHERE), tokmap.Source(folder / "a-kept")]
    for dtype in ("uint16", "int32", "int64"):
        given = {"dtype": dtype, "rows": tokmap.Rows(contiguous=False), "shuffle": "none", "max_epochs": 1, "batch_rows": 5}
        loaders = [tokmap.Loader(one, 16, reading=tokmap.Reading(io="map"), **given) for one in sources]
        n = 0
        for a, b in zip(*loaders):
            np.testing.assert_array_equal(a.inputs, b.inputs)
            np.testing.assert_array_equal(a.labels, b.labels)
            for x, y in zip(a.rows, b.rows):
                np.testing.assert_array_equal(x.tokens, y.tokens)
                n += 1
        assert n > 60, n


def each_way_gives_the_same_rows(folder):
    path, mask = folder / "a", mask_of(tokmap.open(folder / "a"))
    wanted = rows_of(tokmap.Source(path, where=WHERE))
    ds = tokmap.open(path)
    written = ds.write_view(where=WHERE)
    assert written.paths == [written.paths[0]] and os.path.exists(written.paths[0]) and written.where == WHERE
    quality = ds.meta("quality")  # masked where there is none
    late = (quality >= 3) & (ds.meta("dup") == 0)
    assert isinstance(late, np.ma.MaskedArray)
    sources = [ds.where(RESPELT), written.paths[0], [written.paths[0]], {written.paths[0]: 1.0}, tokmap.Source(path, view=written.paths[0]),
               *(tokmap.Source(path, keep=keep) for keep in (mask, mask.astype("u1"), mask.tolist(), bytes(mask), memoryview(mask),
                                                             [mask], late, mask.astype(int), mask.astype(object)))]
    for source in sources:
        assert rows_of(source) == wanted, source
    path = ds.write_view(folder / "own.tmw", keep=mask).paths[0]
    assert rows_of(tokmap.Source(ds, view=path)) == wanted
    assert "P.HHHHHHHHHHHHHHHH.tmw (16 hex digits)" in str(raises(ValueError, tokmap.Loader, path, 16))
    path = ds.write_view(keep=mask).paths[0]
    assert path == f"{folder}/a.{written.set_hashes[0]:016x}.tmw" and rows_of(path) == wanted
    both = tokmap.open([folder / "a", folder / "b"])
    wanted = rows_of(tokmap.Source([folder / "a", folder / "b"], where=WHERE))
    for keep in ([mask, mask_of(both.shards[1])], mask_of(both)):
        assert rows_of(tokmap.Source(both, keep=keep)) == rows_of(tokmap.Source([folder / "a", folder / "b"], keep=keep)) == wanted
    files = both.write_view(keep=mask_of(both)).paths
    assert len(files) == 2 and rows_of(files) == rows_of(tokmap.Source(both, view=files)) == wanted
    for file in folder.glob("*.tmw"):
        file.unlink()


def masks_of_frames(folder):
    for name in ("pandas", "polars", "pyarrow"):
        need(name)
    import pandas
    import polars
    import pyarrow

    ds = tokmap.open(folder / "a")
    quality = [ds.document_meta(i)["quality"] for i in range(N)]
    wanted = ds.where("quality >= 3").set_hashes
    masks = [polars.Series(quality) >= 3, pandas.Series(quality, dtype="Int64") >= 3, pandas.Series(quality) >= 3,
             pyarrow.array([None if one is None else one >= 3 for one in quality]),
             polars.Series([one is not None and one >= 3 for one in quality])]
    for mask in masks:
        assert tokmap.Source(ds, keep=mask).views[0].set_hashes == wanted, type(mask)


def wrong_arguments_are_named(folder):
    path = folder / "a"
    for words, kind, arguments in (
            ("shape (399,): must be one truth value for each of the 400", ValueError, {"keep": [True] * (N - 1)}),
            ("float64 values other than 0 and 1", TypeError, {"keep": np.zeros(N)}),
            ("int64 values other than 0 and 1", TypeError, {"keep": np.arange(N)}),
            ("2 masks for 1 datasets", ValueError, {"keep": [b"\1" * 200] * 2}),
            ("exclude each other", ValueError, {"keep": b"\1" * N, "where": WHERE}),
            ("must be an expression", TypeError, {"where": 3}), ("zero byte", ValueError, {"where": "a\0"}),
            ("qualty", tokmap.ArgumentError, {"where": "qualty >= 3"}), ("2 view for 1 datasets", ValueError, {"view": ["x", "y"]}),
            ("none.tmw: cannot open", FileNotFoundError, {"view": folder / "none.tmw"})):
        error = raises(kind, tokmap.Source, path, **arguments)
        assert words in str(error), error
    ds = tokmap.open(path)
    file = tokmap.open(folder / "b").write_view(folder / "b.tmw", where=WHERE).paths[0]
    assert "is a view of other documents than those of" in str(raises(tokmap.MismatchError, tokmap.Source, ds, view=file))
    assert "one of where and keep" in str(raises(tokmap.ArgumentError, ds.write_view, folder / "x.tmw"))
    error = raises(ValueError, tokmap.Source, ds.write_view(where=WHERE).paths[0], where=WHERE)
    assert "exclude each other" in str(error)
    raises(ValueError, tokmap.open([path, folder / "b"]).write_view, folder / "x.tmw", where=WHERE)
    ds.where("quality >= 9")  # has no documents
    error = raises(ValueError, tokmap.Loader, tokmap.Source(ds, where="quality >= 9"), 16)
    assert "0 tokens of its view are too few" in str(error), error


def a_view_says_what_it_has(folder):
    ds, mask = tokmap.open(folder / "a"), mask_of(tokmap.open(folder / "a"))
    view = ds.where(WHERE)
    with tokmap.open(folder / "a-kept") as kept:
        assert (len(view), view.n_documents, view.n_tokens) == (len(kept), len(kept), kept.n_tokens)
    assert view.n_runs == np.count_nonzero(np.diff(np.r_[0, mask]) == 1)
    assert repr(view) == f"<tokmap.View where {WHERE!r}, {len(view)} documents ({len(view) / N:.2%}), {view.n_tokens} tokens>"
    page = notebook.of_view(view)
    assert page == view._repr_html_() and f"documents: {len(view):,}" in page and f"{view.n_tokens / ds.n_tokens:.2%}" in page
    lengths = f"lengths of {len(view)} documents"
    assert "quality &gt;= 3" in page and lengths in page and lengths in tokmap.Loader(view, 16)._repr_html_()
    mean = sum(ds.document(i).n_tokens for i in view.documents()) / len(view)
    assert f"{mean:,.1f}" in page and f"{np.mean([len(ds[i]) == 9 for i in np.flatnonzero(mask)]):.1%}" in page
    assert "lengths of" not in notebook.of_view(ds.where("quality > 9"))
    assert f"Loader of a ({len(view)} of {N} documents): " in repr(tokmap.Loader(view, 16)), repr(tokmap.Loader(view, 16))
    assert "documents)" not in repr(tokmap.Loader(ds, 16)) and ds.write_view(folder / "own.tmw", where=WHERE).where == WHERE
    assert repr(tokmap.Source(ds, where=WHERE)) == f"tokmap.Source([{view!r}], 1.0)"
    for one in (view, tokmap.Source(ds, keep=mask).views[0], ds.write_view(where=WHERE), ds.write_view(folder / "p.tmw", keep=mask)):
        again = pickle.loads(pickle.dumps(one))
        assert (again.set_hashes, len(again)) == (view.set_hashes, len(view))
    own = ds.write_view(folder / "own.tmw", where="quality > 1")
    pickled = pickle.dumps(own)
    ds.add_column("other", np.arange(N))
    own = ds.write_view(folder / "other.tmw", where="other > 7")
    pickled_other, _ = pickle.dumps(own), os.unlink(folder / "a.other.tmc")
    for one in map(pickle.loads, (pickled, pickled_other)):  # by the file, also without the column
        assert one.where in ("quality > 1", "other > 7") and one.paths[0].endswith((f"own.tmw", "other.tmw"))
    pickled = pickle.dumps(ds.where("late >= 3") if "late" in ds.meta() else _with_late(ds))
    ds.add_column("late", np.zeros(N), replace=True)
    assert "than when it was pickled" in str(raises(tokmap.MismatchError, pickle.loads, pickled))


def _with_late(ds):
    ds.add_column("late", np.arange(N) % 7)
    return ds.where("late >= 3")


def the_documents_of_a_view_are_listed(folder):
    both, rng = tokmap.open([folder / "a", folder / "b"]), random.Random(7)
    masks = [mask_of(both), np.zeros(len(both), bool), np.ones(len(both), bool), np.arange(len(both)) == N, np.arange(len(both)) < N]
    for mask in masks:
        view, wanted = tokmap.Source(both, keep=mask).views[0], np.flatnonzero(mask)
        for first, n in [(0, None), (0, 0), (len(wanted), None), *((rng.randrange(len(wanted) + 1), None) for _ in range(20))]:
            found = view.documents(first) if n is None else view.documents(first, n)
            assert found.dtype == np.int64 and found.tolist() == wanted[first:].tolist()[:n]
            n = rng.randrange(len(wanted) - first + 1)
            assert view.documents(first, n).tolist() == wanted[first:first + n].tolist()
        for first, n in ((-1, 1), (0, -1), (len(wanted), 1), (len(wanted) + 1, None)):
            assert f"there are {len(wanted)}" in str(raises(IndexError, view.documents, first, n))
    raises(TypeError, view.documents, 0.5)


def a_run_goes_on_with_the_same_documents(folder):
    ds = tokmap.open(folder / "a")
    ds.add_column("score", np.arange(N) % 5)
    options = {"sequence_length": 16, "batch_rows": 2, "seed": 4, "on_mismatch": "error"}
    then = ds.write_view(folder / "then.tmw", where="score >= 2").paths[0]
    for ledger in (None, folder / "run.ledger"):
        ds.add_column("score", np.arange(N) % 5, replace=True)
        run = open_loader(tokmap.Source(ds, where="score >= 2"), ledger=ledger, **options)
        loader = pickle.loads(pickle.dumps(run))
        next(run)
        state, wanted = run.state(), next(run).inputs.tolist()
        next(loader)
        assert next(loader).inputs.tolist() == wanted
        for source in (tokmap.Source(ds, where="not score < 2"), tokmap.Source(ds, keep=ds.meta("score") > 1), tokmap.Source(ds, view=then)):
            again = open_loader(source, ledger=ledger, **options)
            again.restore(state)
            assert next(again).inputs.tolist() == wanted
            again.close()
        ds.add_column("score", np.arange(N) % 4, replace=True)
        changed = tokmap.Source(ds, where="score >= 2")
        for on_mismatch in ("error", "amend"):
            error = raises(tokmap.MismatchError, open_loader(changed, ledger=ledger, **{**options, "on_mismatch": on_mismatch}).restore, state)
            assert f"{folder}/a.tmi" in str(error) and "'score >= 2'" in str(error) and "restore the columns" in str(error), error
            assert ledger is None or "the run had the view " in str(error), error
        raises(tokmap.MismatchError, open_loader, changed, ledger=ledger, amend=state, **options)
        if ledger:
            error = raises(tokmap.MismatchError, next, open_loader(changed, ledger=ledger, **options))
            assert "is the ledger of another run: " in str(error) and "and this loader has the view 'score >= 2'" in str(error), error
        sources = [tokmap.Source(ds, 0, view=then), tokmap.Source(ds, 1, where="score >= 2")]
        amended = open_loader(sources, amend=state, amend_from={"weights": [1]}, **options)
        assert {row.source for row in next(amended).rows} == {1} and amended.sample == int.from_bytes(state[24:32], "little") + 2
    run.close()


def views_live_as_long_as_the_loader(folder):
    path = tokmap.open(folder / "a").write_view(where=WHERE).paths[0]
    wanted, n_open = rows_of(path)[0], lambda: sum(".tmw" in os.path.realpath(f"/proc/self/fd/{fd}") for fd in os.listdir("/proc/self/fd"))
    loader = open_loader(path, 16, batch_rows=3, max_epochs=1)
    loader._sources.clear()
    loader._opener._sources = []
    loader._options.sources.clear()
    gc.collect()
    batches = list(loader)
    assert [batch.inputs.tolist() for batch in batches] == [batch[0] for batch in wanted] and n_open() == 1
    loader.close()
    del loader, batches
    gc.collect()
    assert n_open() == 0


def ledgers_have_views(folder):
    ds, ledger = tokmap.open(folder / "a"), folder / "views.ledger"
    ds.add_column("score", np.arange(N) % 3, replace=True)
    mask = np.arange(N) % 5 < 2
    wanted = ds.write_view(keep=mask)
    sources = [tokmap.Source(ds, where="score >= 1"), tokmap.Source(ds, 2, keep=mask), tokmap.Source(folder / "b")]
    with open_loader(sources, 16, batch_rows=4, ledger=ledger) as loader:
        rows = [row for _ in range(30) for row in next(loader).rows]
    run = tokmap.Run(ledger)
    counted, n_parts = {}, 0
    for row in rows:
        traced = run.row(row.sample)
        n_parts += len(traced.parts) > 1
        data = run._by_path[traced.dataset]
        documents = run.documents(traced)
        ids = [id for one in documents for id in data[one.number][one.first_token:one.first_token + one.n_tokens].tolist()]
        assert ids == row.tokens.tolist() and traced.pieces == ()
        assert all(traced.source == 2 or (one.number % 3 >= 1 if traced.source == 0 else mask[one.number]) for one in documents)
        counted[row.source] = counted.get(row.source, 0) + 16
        if traced.source < 2:
            assert row.sample in [one.sample for one in run.samples(folder / "a", documents[-1].number)]
    assert n_parts > 20 and {share.name: share.n_labels for share in run.report()} == counted
    assert sum(share.n_labels for share in run.report("value", "score")) == len(rows) * 16
    printed = printed_by("report", "--ledger", ledger)
    assert "a.tmi where score >= 1 " in printed and "a.tmi through a view " in printed
    gathered = next(row.sample for row in rows if len(run.row(row.sample).parts) > 2)
    assert " more ranges\n" in printed_by("trace", "--ledger", ledger, "--sample", gathered)
    for source in (sources[1], tokmap.Source([folder / "a", folder / "b"], keep=[mask, mask_of(tokmap.open(folder / "b"))])):
        with open_loader(source, 16) as loader:  # whose mask is in no file
            os.unlink(wanted.paths[0])
            found = tokmap.Run(loader, until=9)
            assert [found.loader._sources[0]._used_views()[0][0], sum(share.n_labels for share in found.report())] == [wanted.set_hashes[0], 144]
            ds.write_view(keep=mask)
    ds.add_column("score", np.arange(N) % 4, replace=True)
    words = "a.tmi: the run had a view 'score >= 1' with the set ", "has other documents now, and no view file ", "restore the columns"
    error = raises(tokmap.MismatchError, tokmap.Run, ledger)
    assert all(word in str(error) for word in words), error
    ds.write_view(keep=np.arange(N) % 3 >= 1)  # the same documents
    assert tokmap.Run(ledger).report() == run.report()
    os.unlink(wanted.paths[0])
    assert "but there is no expression" in str(raises(tokmap.MismatchError, tokmap.Run, ledger))


def a_live_loader_is_traced_after_its_column_changed(folder):
    ds = tokmap.open(folder / "a")
    ds.add_column("score", np.arange(N) % 5)
    for view in (ds.where("score >= 2"), ds.write_view(where="score >= 2")):
        loader = open_loader(view, 16)
        for _ in range(3):
            next(loader)

        def traced(loader=loader):
            run = tokmap.Run(loader)
            return [(row, [one.number for one in run.documents(row)]) for sample in range(run.end) for row in run.rows(sample)]

        wanted = traced()
        ds.add_column("score", np.arange(N) % 7, replace=True)
        assert wanted and traced() == wanted
        ds.add_column("score", np.arange(N) % 5, replace=True)
    loader = open_loader(folder / "a", 16)
    next(loader)
    with tokmap.Writer(folder / "a", vocab_size=1000, replace=True) as w:
        w.document([1] * 5000)
    error = str(raises(tokmap.MismatchError, tokmap.Run, loader))
    assert error.startswith("the Loader: ") and "is another dataset now" in error, error


def printed_by(*arguments):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(tokmap.__file__))}
    return subprocess.run([sys.executable, "-m", "tokmap", *map(str, arguments)], check=True, capture_output=True, text=True, env=environment).stdout


def documents_that_come_twice_are_refused(folder):
    ds, other = tokmap.open(folder / "a"), tokmap.open(folder / "a")
    some, more = ds.write_view(keep=np.arange(N) < N // 2), ds.write_view(keep=np.arange(N) > N // 3)
    path, whole = some.paths[0], os.fspath(folder / "a")
    for source in ([path, path], [path, some], [path, whole], [some, ds], [ds, other], [ds, whole], [more, ds.where("dup is null or dup is not null")]):
        error = raises(ValueError, open_loader, source, 16, batch_rows=3, outputs=OUTPUTS, max_epochs=1)
        assert "named twice" in str(error), error
    for source in ([some, more], whole + "*", [whole + ".bin", whole + ".tmi"], {some: 1, more: 2, ds: 1}):
        rows_of(source)
    ranges = tokmap.Source([some, some], documents=[(0, 10), (10, N)])
    assert rows_of(ranges)[0] and rows_of(tokmap.Source([ds, other], documents=[(0, 10), (10, N)]))[0]


def view_by_refuses_what_no_expression_can_name(folder):
    def views_by(column, values):
        with tokmap.Writer(folder / "by", vocab_size=10, meta=[column], replace=True) as w:
            for value in values:
                w.document([1], {column: value})
        done = subprocess.run([program("tokmap"), "view", folder / "by", "--by", column, "-q"], capture_output=True, text=True)
        return done.returncode, done.stderr, len(list(folder.glob("by.*.tmw")))

    for column, values, texts in (("k", ["x", "caf\udce9", "y"], ("by.tmi: 'k' of document 1 is not UTF-8, and no view",)),
                                  ("s", ["a", "b", "z" * 20000], ("by.tmi: 's' of document 2 cannot be in an expression: ", "longer than 16384 bytes")),
                                  ("a`b", ["x", "y"], ("the name 'a`b' has a backquote",))):
        code, error, n_views = views_by(column, values)
        assert (code, n_views) == (3, 0) and all(text in error for text in texts), (code, n_views, error)
    assert views_by("k", ["\ufffd", "\0", "\U0001f600"]) == (0, "", 3)


def redacted_data_keep_their_view(folder):
    ds = tokmap.open(folder / "a")
    ds.add_column("score", np.arange(N) % 5)
    path = ds.write_view(where="score >= 2").paths[0]
    subprocess.run([program("tokmap"), "redact", "-q", folder / "a", "--where", "score == 3", "-o", folder / "q"], check=True)
    options = {"outputs": ["inputs", "loss_mask"], "sequence_length": 16}
    loader = open_loader(path, **options)
    next(loader)
    now = open_loader(tokmap.Source(folder / "q", order_of=ds.dataset_id, view=path), **options)
    now.restore(loader.state())
    for one, other in itertools.islice(zip(now, loader), 50):
        differs = one.inputs != other.inputs
        assert one.state == other.state and not one.loss_mask[0, :-1][differs[0, 1:]].any()
    error = raises(tokmap.MismatchError, open_loader(tokmap.Source(folder / "q", order_of=ds.dataset_id, where="score >= 2"), **options).restore, now.state())
    assert "This loader has <tokmap.View where 'score >= 2', " in str(error), error


def rows_of_transformers_know_where_documents_begin(folder):
    from tokmap._frameworks.rows import row_of

    ds = tokmap.open(folder / "a")
    loader = open_loader(tokmap.Source(ds, where=WHERE), 16, outputs=["inputs", "labels", "position_ids"], shuffle="none", max_epochs=1)
    kept = open_loader(folder / "a-kept", 16, outputs=["inputs", "labels", "position_ids"], shuffle="none", max_epochs=1)
    for one, other in zip(loader, kept):
        assert {name: values.tolist() for name, values in row_of(one, loader).items()} == {
            name: values.tolist() for name, values in row_of(other, kept).items()}


def prefixes_of_megatron_may_be_views(folder):
    @dataclasses.dataclass
    class Config:
        tokenizer: object = None

    ds = tokmap.open(folder / "a")
    path = ds.write_view(where=WHERE).paths[0]
    opened = blends.open_prefixes([path, str(folder / "b")])
    blends.check_prefixes(opened, Config(), False)
    blend = [path, str(folder / "b")], [0.5, 0.5]
    assert [rows_of(one) for one in blends.sources_of(blend, opened, (0, 1), "train")] == [rows_of(path), rows_of(folder / "b")]
    part = blends.sources_of(blend, opened, (0, 0.5), "train")[0]
    assert part.documents == [(0, N // 2)]
    mask = mask_of(ds)
    mask[N // 2:] = False
    assert rows_of(part, shuffle="none")[0] == rows_of(tokmap.Source(ds, keep=mask), shuffle="none")[0]


sys.exit(run_in_folders("python_views_", prepare=prepare))
