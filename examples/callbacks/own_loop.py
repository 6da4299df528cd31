"""Store runs from your own training loop: plain PyTorch, six seeds, one folder.

Trains on handwritten digits, stores each run in ``own-loop-runs`` in the current folder, and measures the variance
between seeds. Takes seconds. The command ``curvewise variance decompose own-loop-runs`` reads the same folder.
"""

import torch
from sklearn.datasets import load_digits
from torch import nn

import curvewise as cw

STORE = "own-loop-runs"
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
train_x, train_y, test_x, test_y = x[:400], y[:400], x[400:], y[400:]


def train(seed: int) -> nn.Module:
    """Train a network: your own loop."""
    torch.manual_seed(seed)
    network = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(15):
        for rows in torch.randperm(len(train_x)).split(50):
            loss = nn.functional.cross_entropy(network(train_x[rows]), train_y[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return network


for seed in range(6):
    coordinates = {"learner": "mlp-32", "n": len(train_x), "seed": seed}
    network = train(seed)
    with torch.no_grad():
        probabilities = network(test_x).softmax(dim=1)
        loss = nn.functional.nll_loss(probabilities.log(), test_y)
    predictions = probabilities.argmax(dim=1)
    cw.write_run(
        STORE,
        coordinates,
        predictions.numpy(),
        {"error": (predictions != test_y).float().mean().item(), "loss": loss.item()},
        labels=test_y.numpy(),
        arrays={"probabilities": probabilities.numpy()},
    )

runs = cw.load_predictions(STORE, learner="mlp-32")
print(cw.decompose_variance(runs).summary())
