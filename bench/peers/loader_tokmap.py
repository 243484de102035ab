# SPDX-License-Identifier: Apache-2.0
"""loader_tokmap.py - tokmap inside the frameworks that people train with."""

from loader_adapter import I64, Adapter, Tokmap, variant


class TokmapTorch(Tokmap):
    """A Loader that hands out PyTorch tensors."""

    packages = ("torch", "numpy")
    imports = ("tokmap", "torch", "numpy")
    work = I64
    pages = ("hot",)
    options = {"framework": "torch"}

    tokens_of = Adapter.tokens_of


class TokmapDataLoader(Tokmap):
    """tokmap.torch.IterableDataset in PyTorch's DataLoader."""

    packages = ("torch", "numpy")
    imports = ("tokmap", "torch", "numpy")
    work = I64
    pages = ("hot", "resume")

    def open(self):
        import tokmap.torch

        self.dataset = tokmap.torch.IterableDataset(
            self.data["prefix"], self.length, self.rows, seed=self.seed
        )
        self.state = None

    def source(self):
        import torch

        options = {"num_workers": self.workers}
        if self.workers:
            options["prefetch_factor"] = 4
        return torch.utils.data.DataLoader(self.dataset, batch_size=None, **options)

    def batches(self):
        for batch in self.source():
            self.state = batch["state"]
            yield batch["inputs"], batch["labels"]

    tokens_of = Adapter.tokens_of

    def save(self):
        return self.state

    def restore(self, state):
        self.dataset.load_state_dict(state)

    def close(self):
        del self.dataset


class TokmapLightning(TokmapDataLoader):
    """The batches of a DataModule as Lightning fetches them: one ahead."""

    packages = ("lightning", "torch", "numpy")
    imports = ("tokmap", "lightning", "torch", "numpy")
    pages = ("hot",)

    def source(self):
        import tokmap.lightning
        from lightning.pytorch.loops.fetchers import _PrefetchDataFetcher
        from lightning.pytorch.utilities.combined_loader import CombinedLoader

        data = tokmap.lightning.DataModule(
            self.data["prefix"], sequence_length=self.length, batch_rows=self.rows, seed=self.seed
        )
        fetcher = _PrefetchDataFetcher()
        fetcher.setup(CombinedLoader(data.train_dataloader(), "max_size_cycle"))
        return (batch for batch, _, _ in fetcher)


class TokmapDali(Tokmap):
    """The recipe for DALI: an external source of a pipeline on the CPU."""

    packages = ("nvidia-dali-cuda130", "numpy")
    imports = ("tokmap", "nvidia.dali", "numpy")
    work = I64
    pages = ("hot",)
    note = "DALI copies each batch once more"

    def batches(self):
        from nvidia.dali import fn, pipeline_def

        @pipeline_def(batch_size=self.rows, num_threads=1, device_id=None)
        def make_pipeline():
            read = {"source": lambda: tuple(next(self.loader)), "num_outputs": 2, "batch": True}
            return tuple(fn.external_source(**read))

        pipeline = make_pipeline()
        while True:
            yield tuple(output.as_array() for output in pipeline.run())

    tokens_of = Adapter.tokens_of


ADAPTERS = {
    "tokmap-torch": TokmapTorch,
    "tokmap-dataloader-w0": TokmapDataLoader,
    "tokmap-dataloader-w2": variant(TokmapDataLoader, workers=2),
    "tokmap-lightning": TokmapLightning,
    "tokmap-dali": TokmapDali,
}
