"""Train softmax regression in plain numpy: an example of a script that a study calls, see study.toml.

The study passes a file with the data, the rows to train on, a seed and a folder for the predictions. Everything else is
up to the script.
"""

import argparse
import json
from pathlib import Path

import numpy as np

asked = argparse.ArgumentParser(description=__doc__)
asked.add_argument("--data", required=True, help="file with x, y, test_x, test_y")
asked.add_argument("--rows", required=True, help="file with the positions of the training examples")
asked.add_argument("--seed", type=int, required=True)
asked.add_argument("--rate", type=float, default=0.5)
asked.add_argument("--out", type=Path, required=True, help="folder for the predictions")
given = asked.parse_args()

rows = np.load(given.rows)
with np.load(given.data) as data:
    x, y = data["x"][rows].reshape(len(rows), -1) / 255, data["y"][rows]
    test = data["test_x"].reshape(len(data["test_x"]), -1) / 255
    classes = int(data["y"].max()) + 1

rng = np.random.default_rng(given.seed)
weights = rng.normal(0, 0.01, (x.shape[1] + 1, classes))


def probabilities(inputs: np.ndarray) -> np.ndarray:
    """Return the softmax of a linear layer; the last row of the weights is the bias."""
    scores = inputs @ weights[:-1] + weights[-1]
    scores = np.exp(scores - scores.max(axis=1, keepdims=True))
    return scores / scores.sum(axis=1, keepdims=True)


for _ in range(20):
    order = rng.permutation(len(x))
    for batch in np.array_split(order, max(1, len(x) // 20)):
        slope = (probabilities(x[batch]) - np.eye(classes)[y[batch]]) / len(batch)
        weights[:-1] -= given.rate * x[batch].T @ slope
        weights[-1] -= given.rate * slope.sum(axis=0)

np.save(given.out / "probabilities.npy", probabilities(test))
train_error = float(np.mean(probabilities(x).argmax(axis=1) != y))
(given.out / "metrics.json").write_text(json.dumps({"train_error": train_error}))
