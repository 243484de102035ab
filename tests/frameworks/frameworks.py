# SPDX-License-Identifier: Apache-2.0
"""What the checks of this folder share: the package, a dataset, and a small GPT."""

import importlib
import itertools
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/oracles"), str(ROOT / "tests/pack")]
INSTALLED = "TOKMAP_INSTALLED" in os.environ  # the wheel, in this virtual environment; else the checkout
if not INSTALLED:
    sys.path.insert(0, str(ROOT / "python"))
os.environ.update(TORCHINDUCTOR_CACHE_DIR=str(ROOT / "build/inductor"), TOKENIZERS_PARALLELISM="false",
                  HF_HUB_OFFLINE="1", CUDA_VISIBLE_DEVICES="", JAX_PLATFORMS="cpu")

EOD = 256


def need(check, *names):
    """Ends the check if a package is missing."""
    for name in names:
        try:
            importlib.import_module(name)
        except ImportError as error:
            print(f"skip {check}: {error}")
            sys.exit(77)


def write_text(folder):
    """Fifteen texts of docs/ as bytes, each with the id 256 at its end: under 250 batches of four rows of 64 tokens."""
    import tokmap

    with tokmap.Writer(folder / "train", vocab_size=257, eod_id=EOD) as w:
        for path in sorted((ROOT / "docs").glob("*.md"))[:15]:
            w.document(list(path.read_bytes()[:4000]) + [EOD])
            w.end_input(path.name)
    with tokmap.Writer(folder / "val", vocab_size=257, eod_id=EOD) as w:
        w.document(list((ROOT / "README.md").read_bytes()) + [EOD])


def redact(folder):
    """folder / "train" with its documents 1 and 4 redacted, as a source that goes on with its order."""
    import tokmap
    from documents import environment

    subprocess.run(["tokmap", "redact", "-q", folder / "train", "--documents", "@-", "-o", folder / "redacted"], check=True,
                   input=b"1\n4\n", env=environment())
    return tokmap.Source(folder / "redacted", order_of=tokmap.open(folder / "train").dataset_id)


def run_checks(prefix):
    """Runs the tests of the script. Returns the exit status."""
    from ref_protocol import run_in_folders

    return run_in_folders(prefix, prepare=write_text)


def take(n, iterable):
    return list(itertools.islice(iterable, n))


def make_gpt(seed=0, width=32):
    """A GPT of one block that takes ids and returns logits, and its optimizer."""
    import torch

    class Gpt(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = torch.nn.Embedding(257, width)
            self.block = torch.nn.TransformerEncoderLayer(width, 2, 2 * width, dropout=0.0, batch_first=True)
            self.head = torch.nn.Linear(width, 257)

        def forward(self, ids):
            mask = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
            return self.head(self.block(self.embed(ids), mask, is_causal=True))

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    gpt = Gpt()
    return gpt, torch.optim.AdamW(gpt.parameters(), 1e-3)


def loss_of(gpt, inputs, labels):
    import torch

    return torch.nn.functional.cross_entropy(gpt(inputs).flatten(0, 1), labels.flatten())
