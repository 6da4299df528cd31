"""Runs from Lightning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import lightning as L
import torch

from curvewise.store.write import write_run


class StoreLightningRun(L.Callback):
    """Predict the test examples when a training of a classifier ends, and store the run; a failed one as well.

    Parameters
    ----------
    store : str or Path
        Folder of the store.
    coordinates : mapping
        What the run is: learner, n, seed, …
    test : iterable of (inputs, labels)
        Batches of test examples, such as a DataLoader that does not shuffle.

    Examples
    --------
    ``L.Trainer(callbacks=[StoreLightningRun("runs", {"learner": "mlp", "n": 400, "seed": 0}, test)])``
    """

    def __init__(
        self, store: str | Path, coordinates: Mapping[str, Any], test: Iterable[tuple[torch.Tensor, torch.Tensor]]
    ) -> None:
        self.store, self.coordinates, self.test = store, coordinates, test

    @torch.no_grad()
    def on_fit_end(self, trainer: L.Trainer, pl_module: L.LightningModule) -> None:
        """Store the predictions of the trained model with its error and loss."""
        if not trainer.is_global_zero:  # one of several processes is enough
            return
        pl_module.eval()
        batches = [(pl_module(x.to(pl_module.device)).cpu(), y) for x, y in self.test]
        logits, labels = (torch.cat(parts) for parts in zip(*batches, strict=True))
        predictions = logits.argmax(dim=1)
        error = (predictions != labels).float().mean().item()
        loss = torch.nn.functional.cross_entropy(logits, labels).item()
        metrics = {"error": error, "loss": loss, "epochs": trainer.current_epoch}
        write_run(self.store, self.coordinates, predictions.numpy(), metrics, labels=labels.numpy())

    def on_exception(self, trainer: L.Trainer, pl_module: L.LightningModule, exception: BaseException) -> None:
        """Store that the run failed, and why."""
        if trainer.is_global_zero:
            write_run(self.store, self.coordinates, error=exception)
