"""Fine-tuning of all weights, stopped after some epochs."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from curvewise.errors import InputError
from curvewise.nn._guarding import chosen_device
from curvewise.nn._labelled import TARGETS, Labelled, hits_of, read_test_labels, warn
from curvewise.nn._linear import batch_size
from curvewise.nn._tuning import Tuning, inputs_of, tuned_logits
from curvewise.nn.sample import Sample
from curvewise.progress import progress_bar
from curvewise.ranking._targets import as_targets
from curvewise.ranking.measure import RankingMeasure
from curvewise.types import FloatArray

RATE = 0.01
PAPER_RATES = (0.0001, 0.001, 0.005, 0.01, 0.05, 0.1, 0.2, 0.5)
"""Those among which the paper on ranking takes the best for each checkpoint and task."""


@dataclass(frozen=True, eq=False)
class Tunable:
    """A network and its inputs: what fine-tuning as a ranking measure takes.

    Indexing it with rows gives the same network with those inputs.

    Attributes
    ----------
    network : nn.Module
        Left as it is.
    data : Tensor or ndarray
        Inputs, a row for each example.
    options : dict
        Further arguments of :func:`finetuning_score`, such as ``prepare``, ``features``, ``rate``,
        ``device`` and ``precision``.
    """

    network: nn.Module
    data: Any
    options: Mapping[str, Any] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, rows: Any) -> Tunable:
        return replace(self, data=self.data[rows])


def finetuning_score(
    network: nn.Module,
    data: Any,
    labels: ArrayLike | None = None,
    *,
    test_data: Any = None,
    test_labels: ArrayLike | None = None,
    epochs: int = 5,
    rate: float | Sequence[float] = RATE,
    batch: int | None = None,
    schedule: str = "constant",
    prepare: Callable[[Tensor], Any] | None = None,
    features: Callable[[nn.Module, Any], Tensor] | None = None,
    precision: str = "float32",
    device: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
) -> float:
    """Accuracy of a network on test examples after some epochs of training all its weights.

    A copy is trained by SGD with momentum 0.9 and without weight decay or augmentation, as in the
    paper (Li et al. 2021); the network itself is left as it was. A new linear layer, whose weights
    begin at 0, takes the place of its last. Statistics of batch norm are those of batches while it
    is trained and running ones afterwards; what was frozen is trained, too.

    Parameters
    ----------
    network : nn.Module
        That of the checkpoint.
    data : Tensor, ndarray or Sample
        Inputs of the training examples, as the network takes them, or as ``prepare`` does. Images
        of a Sample are normalised with its mean and spread.
    labels : array_like, optional
        A class for each, or a matrix of 0 and 1 (multi-label); those of a Sample by default.
    test_data, test_labels : optional
        The same for the examples that are scored; without, the training examples are (in-sample).
    epochs : int
        After how many to stop.
    rate : float or sequence of float
        Learning rate. Of several, the one with the best score counts, as in the paper's ground
        truth: chosen on the test examples, which flatters every network alike.
        ``PAPER_RATES`` are the paper's.
    batch : int, optional
        Examples in a batch, at least; a fiftieth by default, from 32 to the paper's 512.
    schedule : {"constant", "linear", "cosine"}
        How the rate falls.
    prepare : callable, optional
        Makes what the network takes out of a batch of data, on the device.
    features : callable, optional
        ``features(network, batch)`` gives what the new layer is put on, shape (examples,
        dimensions); by default what the linear layer that gives the network's scores (also as a
        convolution of one pixel) is given, and the network's output where there is none.
    precision : {"float32", "bfloat16"}
        What it computes in; bfloat16 is for GPUs.
    device : str, optional
        Where the network is by default.
    rng : int or Generator
        Decides the order of examples, and dropout.
    progress : bool, optional
        Show a bar; by default where stderr is a terminal.

    Returns
    -------
    float
        The share of test examples that it gets right, or the mean average precision of their
        classes (see :func:`curvewise.nn.probes.linear_score`). NaN, with a warning, if it diverged.

    Warns
    -----
    CurvewiseWarning
        If training diverged, or has less than ten steps.

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(400) % 2
    >>> x = random.standard_normal((400, 8)).astype(np.float32) + labels[:, None]
    >>> network = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1000))
    >>> finetuning_score(network, x, labels, epochs=2, rate=0.1) > 0.85
    True
    """
    options: dict[str, Any] = {
        "test_data": test_data,
        "test_labels": test_labels,
        "epochs": epochs,
        "rate": rate,
        "batch": batch,
        "schedule": schedule,
        "prepare": prepare,
        "features": features,
        "precision": precision,
        "device": device,
    }
    hits = finetuning_hits(network, data, labels, **options, rng=rng, progress=progress)
    return float(hits.mean())


def finetuning_hits(
    network: nn.Module,
    data: Any,
    labels: ArrayLike | None = None,
    *,
    test_data: Any = None,
    test_labels: ArrayLike | None = None,
    epochs: int = 5,
    rate: float | Sequence[float] = RATE,
    batch: int | None = None,
    schedule: str = "constant",
    prepare: Callable[[Tensor], Any] | None = None,
    features: Callable[[nn.Module, Any], Tensor] | None = None,
    precision: str = "float32",
    device: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
) -> FloatArray:
    """What each test example adds to :func:`finetuning_score`, whose arguments these are.

    Returns
    -------
    ndarray, shape (test examples,)
        1 where the network is right and 0 where it is not; NaN everywhere if it diverged.

    Examples
    --------
    >>> x = np.tile([[-1.0], [-0.5], [0.5], [1.0]], (16, 1))
    >>> labels = np.tile([0, 0, 1, 1], 16)
    >>> finetuning_hits(nn.Linear(1, 3), x, labels, rate=0.5, epochs=20).mean()
    np.float64(1.0)
    """
    rates = [float(one) for one in np.atleast_1d(rate)]
    _check(network, rates, batch)
    place = chosen_device(network, device)
    train, test, prepare = _read(data, labels, test_data, test_labels, prepare, place)
    size = min(batch or batch_size(len(train)), len(train))
    how = Tuning(epochs, size, schedule, precision, place, prepare, features)
    steps = epochs * max(len(train) // size, 1)
    if steps < 10:
        warn(
            f"{len(train)} examples in batches of {size} make {steps} steps: the network has "
            "hardly been fine-tuned. Take a smaller batch, or more epochs."
        )
    seed = int(np.random.default_rng(rng).integers(2**63))
    best, told = np.full(len(test), np.nan), -math.inf
    with progress_bar("fine-tuning", len(rates) * steps, progress) as advance:
        for one in rates:
            logits = tuned_logits(network, train, test, how, one, seed, advance)
            hits = np.full(len(test), np.nan)
            if logits is not None:
                hits = hits_of(logits, test, "accuracy")
            if (mean := float(hits.mean())) > told:
                best, told = hits, mean
    if not math.isfinite(told):
        tried = ", ".join(f"{r:g}" for r in rates)
        warn(f"Fine-tuning diverged at rate {tried}, and its score is NaN: try a lower one.")
    return best


def _read(
    data: Any,
    labels: ArrayLike | None,
    test_data: Any,
    test_labels: ArrayLike | None,
    prepare: Callable[[Tensor], Any] | None,
    place: torch.device,
) -> tuple[Labelled, Labelled, Callable[[Tensor], Any]]:
    """Training and test examples, and what makes the network's inputs of them."""
    if isinstance(data, Sample) and prepare is None:
        prepare = data.take(0).to(place).given
    x, y = _one(data, labels, "data", "labels")
    targets = as_targets(y, len(x), allowed=TARGETS, measure="fine-tuning")
    train = Labelled(inputs_of(x, "data", prepare, place), targets)
    test = train
    if test_data is not None or test_labels is not None:
        shown, truth = _one(test_data, test_labels, "test_data", "test_labels")
        read = read_test_labels(truth, len(shown), train, "fine-tuning")
        test = Labelled(inputs_of(shown, "test_data", prepare, place), read)
    return train, test, prepare or _as_it_is


def _one(data: Any, labels: Any, name: str, said: str) -> tuple[Any, Any]:
    if isinstance(data, Sample):
        return data.x, data.y.cpu().numpy() if labels is None else labels
    if data is None or labels is None:
        raise InputError(f"{name} and {said} belong together: give both.")
    return data, labels.cpu().numpy() if isinstance(labels, Tensor) else labels


def _as_it_is(x: Tensor) -> Tensor:
    return x


def _check(network: Any, rates: list[float], batch: int | None) -> None:
    if not isinstance(network, nn.Module):
        raise InputError(
            f"network is {type(network).__name__}: give a torch.nn.Module. Other formats cannot be "
            "trained; take linear_score of their features."
        )
    if not rates or not all(0 < r < math.inf for r in rates):
        raise InputError(f"rate={rates!r}: give a number above 0, or several.")
    if batch is not None and (int(batch) != batch or batch < 2):
        raise InputError(f"batch={batch!r}: give a whole number of at least 2.")


def _of_tunable(
    given: Tunable,
    labels: ArrayLike,
    *,
    test_features: Tunable | None = None,
    test_labels: ArrayLike | None = None,
    epochs: int,
    rng: int | np.random.Generator = 0,
) -> FloatArray:
    """Hits of a measure that is called as the others are."""
    how: dict[str, Any] = {"progress": False, **given.options, "epochs": epochs, "rng": rng}
    if test_features is not None:
        how |= {"test_data": test_features.data, "test_labels": test_labels}
    return finetuning_hits(given.network, given.data, labels, **how)


def _mean_of_tunable(given: Tunable, labels: ArrayLike, **how: Any) -> float:
    return float(_of_tunable(given, labels, **how).mean())


def _flops(n: int, d: int, classes: int, *, epochs: int) -> float:
    """With d the operations of a forward pass of one example; backwards it costs two of them."""
    return 3.0 * epochs * n * d


MEASURES = tuple(
    RankingMeasure(
        f"finetune-{epochs}",
        functools.partial(_mean_of_tunable, epochs=epochs),
        about=f"Accuracy after fine-tuning all weights for {said} (Li et al. 2021).",
        cost=f"{3 * epochs} times the forward pass over the examples; its operations are for d "
        "operations of the forward pass of one example.",
        fails="The dearest and among the worst in the paper: accuracy early in training says "
        "little of that at its end. It depends on the rate.",
        flops=functools.partial(_flops, epochs=epochs),
        takes="network",
        splits=True,
        guess="share",
        bounds=(0.0, 1.0),
        seeded=True,
        targets=TARGETS,
    )
    for epochs, said in ((1, "one epoch"), (5, "five epochs"))
)

HITS: dict[str, Callable[..., NDArray[Any]]] = {
    f"finetune-{epochs}": functools.partial(_of_tunable, epochs=epochs) for epochs in (1, 5)
}
"""What each test example adds to a measure, by its name."""
