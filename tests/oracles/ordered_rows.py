# SPDX-License-Identifier: Apache-2.0
"""The rows of a Loader beside those of docs/ORDER.md."""


def check_rows(batch, order, tokens_of, case):
    """Compares each row of a batch of all outputs, and its state, with an Order of ref_order. tokens_of: the tokens of a
    dataset of a source. Returns for each row its sample, and the numbers of its tokens."""
    found = []
    for i, g in enumerate(batch.sample_ids.tolist()):
        wanted, row = order.sample(g), batch.rows[i]
        n, about, numbers = wanted.row.n_inputs, order.about(wanted), order.tokens(wanted)
        ids = tokens_of(row.source, row.dataset)
        assert (row.source, row.dataset, row.epoch, row.window, row.first_token) == (
            wanted.source, wanted.row.dataset, wanted.epoch, wanted.window, numbers[0]), (case, g)
        assert row.tokens.tolist() == [0 if k is None else ids[k] for k in numbers], (case, g)
        assert batch.inputs[i][:n].tolist() == row.tokens[:n].tolist()
        assert batch.loss_mask[i].tolist() == about.loss_mask and row.cu_seqlens.tolist() == about.starts, (case, g)
        assert batch.position_ids[i][:n].tolist() == about.position_ids
        assert batch.document_ids[i][:n].tolist() == about.document_ids
        found.append((wanted, numbers))
    assert batch.state == order.state(batch.next_sample), case
    return found
