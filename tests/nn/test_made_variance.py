"""The engine does not make the variance that it measures."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.datasets import load_digits

from curvewise.nn import Assignment, Examples, Training
from curvewise.nn.engine import train
from curvewise.nn.networks import make_network
from curvewise.types import Predictions
from curvewise.variance import decompose_variance

RUNS, ROWS = 60, 300
TRAINING = Training("mlp", options={"width": 32}, batch=50, epochs=8, rate=0.1)


def digits() -> tuple[Examples, Examples]:
    data = load_digits()
    x = (data.images[:, None] * 15.9).astype(np.uint8)
    y = data.target.astype(np.int64)
    return (Examples(x[:1000], y[:1000], 10, (0.3,), (0.37,)), Examples(x[1000:], y[1000:], 10, (0.3,), (0.37,)))


def plain_loop(fit: Examples, test: Examples, seed: int) -> np.ndarray:
    """What everyone writes: torch's own generator, shuffling, optimiser and schedule."""
    torch.manual_seed(seed)
    model = make_network(TRAINING, fit.shape, 10)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    steps = TRAINING.steps_for(ROWS)
    ramp = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / steps)
    x = (torch.from_numpy(fit.x[:ROWS]).float() / 255 - 0.3) / 0.37
    y = torch.from_numpy(fit.y[:ROWS])
    for _ in range(int(TRAINING.epochs)):
        for index in torch.randperm(ROWS).split(TRAINING.batch):
            optimiser.zero_grad()
            torch.nn.functional.cross_entropy(model(x[index]), y[index]).backward()
            optimiser.step()
            ramp.step()
    with torch.no_grad():
        shown = (torch.from_numpy(test.x).float() / 255 - 0.3) / 0.37
        return model(shown).argmax(1).numpy()


def test_engine_and_plain_loop_show_the_same_variance() -> None:
    fit, test = digits()
    rows = np.arange(ROWS)
    tasks = [Assignment(rows, r, r, r) for r in range(RUNS)]
    ours = np.zeros((RUNS, len(test.y)), dtype=np.uint8)
    for i, trained in train(TRAINING, tasks, fit, {"test": test}):
        ours[i] = trained.probabilities["test"].argmax(1)
    with torch.random.fork_rng(devices=[]):
        theirs = np.stack([plain_loop(fit, test, 1000 + r) for r in range(RUNS)])
    a, b = (decompose_variance(Predictions(p, "labels", labels=test.y)) for p in (ours, theirs))
    assert a.distribution_interval.low <= b.distribution_std <= a.distribution_interval.high
    assert b.distribution_interval.low <= a.distribution_std <= b.distribution_interval.high
    spread = a.test_set_std**2 / RUNS + b.test_set_std**2 / RUNS
    assert abs(a.error.estimate - b.error.estimate) < 4 * spread**0.5
