"""Runs from the Trainer of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from transformers import Trainer, TrainerCallback

from curvewise.store.write import write_run


class StoreTrainerRun(TrainerCallback):
    """Predict the test examples when a training of a classifier ends, and store the run.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer that the callback is added to.
    test : dataset
        Test examples with labels, as ``trainer.predict`` takes them.
    store : str or Path
        Folder of the store.
    coordinates : mapping
        What the run is: learner, n, seed, …

    Examples
    --------
    ``trainer.add_callback(StoreTrainerRun(trainer, test, "runs", {"learner": "bert", "n": 300, "seed": 0}))``
    """

    def __init__(self, trainer: Trainer, test: Any, store: str | Path, coordinates: Mapping[str, Any]) -> None:
        self.trainer, self.test, self.store, self.coordinates = trainer, test, store, coordinates

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Store the predictions of the trained model with its error and loss."""
        out: Any = self.trainer.predict(self.test)
        if not state.is_world_process_zero:  # all must predict, one of them stores
            return
        predictions = out.predictions.argmax(axis=1)
        error = float(np.mean(predictions != out.label_ids))
        metrics = {"error": error, "loss": out.metrics["test_loss"], "epochs": state.epoch}
        write_run(self.store, self.coordinates, predictions, metrics, labels=out.label_ids)
