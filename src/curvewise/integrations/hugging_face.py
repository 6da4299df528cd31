"""Runs from the Trainer of Hugging Face."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from curvewise.errors import importing
from curvewise.integrations.runs import check_classifier, store_classifier

with importing("Runs of the Trainer need {}", "hugging-face"):
    from transformers import Trainer, TrainerCallback


class StoreTrainerRun(TrainerCallback):
    """Predict the test examples when the training of a classifier ends, and store the run.

    A training that ends with NaN as its predictions is stored as a failed run. One that raises an exception is not
    stored, because the Trainer does not tell its callbacks: call ``cw.write_run(store, coordinates, error=exception)``
    where you catch it.

    Parameters
    ----------
    trainer : transformers.Trainer
        The trainer that the callback is added to.
    test : dataset
        Test examples with labels, as ``trainer.predict`` takes them.
    store : str or Path
        Folder of the store; made if missing.
    coordinates : mapping
        What identifies the run: learner, n, seed, and whatever else makes it another run. By default ``n`` is the
        number of training examples, and ``seed`` that of the training arguments.

    Examples
    --------
    >>> trainer = Trainer(model, arguments, train_dataset=train)  # doctest: +SKIP
    >>> trainer.add_callback(StoreTrainerRun(trainer, test, "runs", {"learner": "bert"}))  # doctest: +SKIP
    >>> trainer.train()  # doctest: +SKIP
    """

    def __init__(self, trainer: Trainer, test: Any, store: str | Path, coordinates: Mapping[str, Any]) -> None:
        self.trainer, self.test, self.store, self.coordinates = trainer, test, store, dict(coordinates)

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Store the predictions of the trained model with its error and loss."""
        out: Any = self.trainer.predict(self.test)
        if not state.is_world_process_zero:  # all must predict, one of them stores
            return
        examples = getattr(self.trainer.train_dataset, "__len__", None)
        known = {} if examples is None else {"n": examples()}
        coordinates = {**known, "seed": args.seed, **self.coordinates}
        # Some models give hidden states after the logits.
        logits = out.predictions[0] if isinstance(out.predictions, tuple) else out.predictions
        check_classifier(np.shape(logits), np.shape(out.label_ids))
        metrics = {"loss": out.metrics["test_loss"], "epochs": state.epoch}
        store_classifier(self.store, coordinates, logits, out.label_ids, metrics)
