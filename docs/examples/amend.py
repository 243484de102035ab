# SPDX-License-Identifier: Apache-2.0
"""amend.py WEB CODE - a mixture that is changed in mid-run; what was trained on stays as it was."""

import sys

import tokmap

web, code = sys.argv[1:]
with tokmap.Loader({web: 0.9, code: 0.1}, sequence_length=64, batch_rows=4, seed=1, ledger="run.ledger") as loader:
    for step, batch in zip(range(10), loader):
        print(f"step {step}: samples of {batch.source_ids.tolist()}")
    state = loader.state()

# From here on half of the samples are code, and three of them are left out.
with tokmap.Loader({web: 0.5, code: 0.5}, sequence_length=64, batch_rows=4, seed=1, ledger="run.ledger",
                   order=tokmap.Order(skip=[(50, 53)]), resume=tokmap.Resume(amend=state)) as loader:
    print(f"phases: {loader.phases}")
    for step, batch in zip(range(10), loader):
        print(f"step {step}: samples of {batch.source_ids.tolist()}")
    state = loader.state()

# A later start of the same run has the phases that the amended Loader said.
with tokmap.Loader({web: 0.5, code: 0.5}, sequence_length=64, batch_rows=4, seed=1, ledger="run.ledger",
                   order=tokmap.Order(phases={0: [0.9, 0.1], 40: [0.5, 0.5]}, skip=[(50, 53)])) as loader:
    loader.restore(state)
    print(f"goes on at sample {next(loader).first_sample}")

run = tokmap.Run("run.ledger")
print(f"step 12 had the samples {[row.sample for row in run.step(12)]}")
for share in run.report("source"):
    print(f"{share.name}: {share.n_labels} tokens of {share.n_documents} documents")
