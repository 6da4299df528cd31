"""Runs from Lightning."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from curvewise.errors import importing
from curvewise.integrations.runs import check_classifier, store_classifier
from curvewise.store.write import write_run

with importing("Storing runs of Lightning needs {}", "lightning"):
    import lightning as L
    import torch


class StoreLightningRun(L.Callback):
    """Predict the test examples when the training of a classifier ends, and store the run.

    A training that raises an exception, or that ends with NaN as its predictions, is stored as a failed run.

    Parameters
    ----------
    store : str or Path
        Folder of the store; made if missing.
    coordinates : mapping
        What identifies the run: learner, n, seed, and whatever else makes it another run. By default ``n`` is the
        number of training examples, and ``seed`` the one given to ``lightning.seed_everything``.
    test : iterable of (inputs, labels)
        Batches of test examples, such as a DataLoader that does not shuffle.

    Examples
    --------
    >>> import lightning as L  # doctest: +SKIP
    >>> store = StoreLightningRun("runs", {"learner": "mlp"}, test_loader)  # doctest: +SKIP
    >>> L.Trainer(callbacks=[store]).fit(module, train_loader)  # doctest: +SKIP
    """

    def __init__(
        self, store: str | Path, coordinates: Mapping[str, Any], test: Iterable[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        self.store, self.coordinates, self.test = store, dict(coordinates), test

    def on_train_start(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Fill in the size and the seed where they were not given."""
        examples = getattr(getattr(trainer.train_dataloader, "dataset", None), "__len__", None)
        if "n" not in self.coordinates and examples is not None:
            self.coordinates["n"] = examples()
        seed = os.environ.get("PL_GLOBAL_SEED")  # where seed_everything leaves it
        if "seed" not in self.coordinates and seed is not None:
            self.coordinates["seed"] = int(seed)

    @torch.no_grad()
    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Store the predictions of the trained model with its error and loss."""
        if not trainer.is_global_zero:  # one of several processes is enough
            return
        pl_module.eval()
        batches = [(pl_module(x.to(pl_module.device)).float().cpu(), y.cpu()) for x, y in self.test]
        logits, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        check_classifier(logits.shape, labels.shape)
        metrics = {"loss": torch.nn.functional.cross_entropy(logits, labels).item(), "epochs": trainer.current_epoch}
        store_classifier(self.store, self.coordinates, logits.numpy(), labels.numpy(), metrics)

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Store that the run failed, and why."""
        if trainer.is_global_zero:
            write_run(self.store, self.coordinates, error=exception)
