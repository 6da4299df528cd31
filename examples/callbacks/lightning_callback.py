"""Runs from Lightning: a callback puts each finished training into a store.

Trains a small network on handwritten digits with six seeds, stores the runs in ``lightning-runs``
in the current folder, and splits the spread between seeds. Takes seconds.
"""

import logging

import lightning as L
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import curvewise as cw
from curvewise.integrations.lightning import StoreLightningRun


class Network(L.LightningModule):
    """The module that you have already."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Logits."""
        return self.layers(x)

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        """The loss of a batch."""
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main(store: str = "lightning-runs", seeds: int = 6) -> None:
    """Train with several seeds and look at the spread."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    digits = load_digits()
    x = torch.tensor(digits.data, dtype=torch.float32) / 16
    y = torch.tensor(digits.target)
    test = DataLoader(TensorDataset(x[400:], y[400:]), batch_size=500)
    for seed in range(seeds):
        L.seed_everything(seed, verbose=False)
        train = DataLoader(TensorDataset(x[:400], y[:400]), batch_size=50, shuffle=True)
        coordinates = {"learner": "mlp-32", "n": 400, "seed": seed}
        trainer = L.Trainer(
            max_epochs=10,
            accelerator="cpu",
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=[StoreLightningRun(store, coordinates, test)],
        )
        trainer.fit(Network(), train)
    print(cw.decompose_variance(cw.load_predictions(store, learner="mlp-32")).summary())


if __name__ == "__main__":
    main()
