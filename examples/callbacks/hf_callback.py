"""Store runs from the Trainer of Hugging Face: a callback predicts the test set when a training ends.

Trains a very small BERT with random initial weights to decide which of two words is more frequent in a sentence, with
five seeds; stores the runs in ``hf-runs`` in the current folder, and measures the variance between seeds. Nothing is
downloaded. Takes seconds. The command ``curvewise variance decompose hf-runs`` reads the same folder.
"""

import tempfile

import numpy as np
import torch
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    PrinterCallback,
    Trainer,
    TrainingArguments,
    set_seed,
)
from transformers.utils import logging

import curvewise as cw
from curvewise.integrations.hugging_face import StoreTrainerRun


def sentences(count: int, seed: int) -> list[dict[str, torch.Tensor]]:
    """Make sentences of eleven words out of 20, labelled 1 where word 5 is more frequent than word 6."""
    rng = np.random.default_rng(seed)
    words = np.where(rng.random((count, 11)) < 0.7, rng.integers(5, 7, (count, 11)), 0)
    words = np.where(words > 0, words, rng.integers(7, 20, (count, 11)))
    labels = ((words == 5).sum(axis=1) > (words == 6).sum(axis=1)).astype(np.int64)
    return [{"input_ids": torch.tensor(w), "labels": torch.tensor(c)} for w, c in zip(words, labels, strict=True)]


def main(store: str = "hf-runs", seeds: int = 5) -> None:
    """Train with several seeds and measure the variance between them."""
    logging.set_verbosity_error()
    train, test = sentences(300, seed=0), sentences(400, seed=1)
    for seed in range(seeds):
        set_seed(seed)
        config = BertConfig(
            vocab_size=20, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32
        )
        with tempfile.TemporaryDirectory() as folder:
            settings = TrainingArguments(
                folder,
                num_train_epochs=3,
                per_device_train_batch_size=16,
                per_device_eval_batch_size=100,
                learning_rate=3e-3,
                seed=seed,
                use_cpu=True,
                report_to="none",
                save_strategy="no",
                logging_strategy="no",
                disable_tqdm=True,
            )
            model = BertForSequenceClassification(config)
            trainer = Trainer(model, settings, train_dataset=train)
            trainer.remove_callback(PrinterCallback)
            trainer.add_callback(StoreTrainerRun(trainer, test, store, {"learner": "bert-tiny"}))  # size, seed: known
            trainer.train()
    print(cw.decompose_variance(cw.load_predictions(store, learner="bert-tiny")).summary())


if __name__ == "__main__":
    main()
