"""Training and test examples with their labels, and how well test examples were told."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.ranking._targets import Targets, as_targets
from curvewise.types import FloatArray, as_matrix

TARGETS = ("classes", "multilabel")


@dataclass(frozen=True, eq=False)
class Labelled:
    """Examples and what they are labelled with.

    Attributes
    ----------
    x : array or Tensor
        Their features or inputs, a row for each.
    targets : Targets
        Classes, or several classes each.
    """

    x: Any
    targets: Targets

    def __len__(self) -> int:
        return self.targets.count

    @property
    def several(self) -> bool:
        """Whether an example can have several classes."""
        return self.targets.kind == "multilabel"

    def target(self, place: torch.device) -> Tensor:
        """Examples × classes on a device, 1 where an example has the class."""
        return torch.from_numpy(self.targets.one_hot()).to(place, torch.float32)


def read_labelled(
    features: ArrayLike,
    labels: ArrayLike,
    test_features: ArrayLike | None,
    test_labels: ArrayLike | None,
    measure: str,
) -> tuple[Labelled, Labelled]:
    """Check features with their labels; without test examples, the training ones twice."""
    x = as_matrix(features, "features")
    train = Labelled(x, as_targets(labels, len(x), allowed=TARGETS, measure=measure))
    if (test_features is None) != (test_labels is None):
        raise InputError("test_features and test_labels belong together: give both or neither.")
    if test_features is None or test_labels is None:
        return train, train
    shown = as_matrix(test_features, "test_features")
    if shown.shape[1] != x.shape[1]:
        raise InputError(
            f"test_features has {shown.shape[1]} dimensions and features {x.shape[1]}: give those "
            "of the same checkpoint and layer."
        )
    return train, Labelled(shown, read_test_labels(test_labels, len(shown), train, measure))


def read_test_labels(labels: ArrayLike, count: int, train: Labelled, measure: str) -> Targets:
    """Labels of test examples, of the kind and among the classes of the training examples."""
    return as_targets(
        labels,
        count,
        allowed=(train.targets.kind,),
        measure=f"{measure} with such training labels",
        argument="test_labels",
        classes=train.targets.classes,
    )


def scale_of(x: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Mean and spread of each dimension in double precision, 1 for what does not vary."""
    mean, spread = x.mean(axis=0, dtype=np.float64), x.std(axis=0, dtype=np.float64)
    rounding = 10 * np.finfo(x.dtype).eps
    return mean, np.where(spread > rounding * np.abs(mean), spread, 1)


@contextlib.contextmanager
def own_terms(place: torch.device) -> Iterator[None]:
    """Have gradients, and the precision that values have, whatever was set around the block."""
    exact = torch.autocast(place.type, enabled=False)
    with torch.inference_mode(mode=False), exact:
        yield


def fifth(
    order: NDArray[np.int64], targets: Targets
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Examples but for a fifth of them, and that fifth, in which classes have the same shares.

    Parameters
    ----------
    order : ndarray of int
        Some examples in a random order.
    targets : Targets
        What all are labelled with; with several classes each, a fifth regardless of them.
    """
    out = np.arange(len(order)) % 5 == 4
    if targets.kind == "classes":
        _, first, which = np.unique(targets.codes[order], return_index=True, return_inverse=True)
        by_class = np.argsort(first[which], kind="stable")  # not by their names
        out[by_class] = out.copy()
    if not out.any():
        raise InputError(f"{len(order)} training examples are too few: give at least 5.")
    return order[~out], order[out]


def hits_of(logits: Tensor, test: Labelled, metric: str) -> FloatArray:
    """How well each example was told; NaN where its logits are not finite.

    Parameters
    ----------
    logits : Tensor, shape (examples, classes)
        What a classifier says.
    test : Labelled
        What is right.
    metric : {"accuracy", "log-likelihood"}
        Accuracy is whether the largest logit is right or, with several classes, the average
        precision of the right ones in the order of the logits.
    """
    z, target = logits.double(), test.target(logits.device).double()
    if metric == "log-likelihood":
        if test.several:
            found = (z * target - torch.nn.functional.softplus(z)).sum(dim=1)
        else:
            found = ((z - z.logsumexp(dim=1, keepdim=True)) * target).sum(dim=1)
    elif test.several:
        found = _average_precision(z, target > 0)
    else:
        found = target.gather(1, z.argmax(dim=1, keepdim=True))[:, 0]
    found = torch.where(z.isfinite().all(dim=1), found, torch.nan)
    return np.asarray(found.cpu().numpy(), dtype=np.float64)


def _average_precision(z: Tensor, right: Tensor) -> Tensor:
    """Mean over an example's classes of the share of right ones among those put as high.

    1 for an example without any class, which no order can get wrong.
    """
    total = torch.zeros(len(z), dtype=torch.float64, device=z.device)
    for code in range(z.shape[1]):
        above = z >= z[:, code : code + 1]
        total += right[:, code] * (above & right).sum(dim=1) / above.sum(dim=1).clamp(min=1)
    count = right.sum(dim=1)
    return torch.where(count > 0, total / count.clamp(min=1), torch.ones_like(total))


def warn(text: str) -> None:
    """Warn whoever called a measure."""
    warnings.warn(text, CurvewiseWarning, stacklevel=4)
