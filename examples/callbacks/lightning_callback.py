"""Store runs from Lightning: a callback predicts the test set when a training ends.

Trains a small network on 100, 200 and 400 handwritten digits with five seeds each, stores the runs in
``lightning-runs`` in the current folder, fits a learning curve to their errors, and measures the variance between
seeds. Takes seconds. The commands ``curvewise learning fit lightning-runs`` and ``curvewise variance decompose
lightning-runs --where n=400`` read the same folder.
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
    """A small network: your own module."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the logits."""
        return self.layers(x)

    def training_step(self, batch: tuple[torch.Tensor, torch.Tensor], _: int) -> torch.Tensor:
        """Return the loss of a batch."""
        x, y = batch
        return nn.functional.cross_entropy(self(x), y)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        """Use Adam."""
        return torch.optim.Adam(self.parameters(), lr=0.01)


def main(store: str = "lightning-runs", seeds: int = 5) -> None:
    """Train with several sizes and seeds, and analyse the runs."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    digits = load_digits()
    shuffled = torch.randperm(len(digits.target), generator=torch.Generator().manual_seed(0))
    x = torch.tensor(digits.data, dtype=torch.float32)[shuffled] / 16
    y = torch.tensor(digits.target)[shuffled]
    test = DataLoader(TensorDataset(x[800:], y[800:]), batch_size=500)
    for n in (100, 200, 400):
        for seed in range(seeds):
            L.seed_everything(seed, verbose=False)
            rows = torch.randperm(800)[:n]  # every seed draws its own examples
            train = DataLoader(TensorDataset(x[rows], y[rows]), batch_size=25, shuffle=True)
            trainer = L.Trainer(
                max_steps=200,  # the same for every size
                accelerator="cpu",
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
                callbacks=[StoreLightningRun(store, {"learner": "mlp-32"}, test)],  # size and seed are known
            )
            trainer.fit(Network(), train)
    print(cw.fit_learning_curves(cw.load_measurements(store))["mlp-32"].summary())
    print(cw.decompose_variance(cw.load_predictions(store, where={"n": 400})).summary())


if __name__ == "__main__":
    main()
