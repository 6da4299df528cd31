"""Agreement of NLEEP with fine-tuned accuracies over its two settings (figure 2 of Li et al. 2021)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.progress import progress_bar
from curvewise.ranking.measure import Targets, as_targets
from curvewise.ranking.mixture import project
from curvewise.ranking.prediction import NleepSettings, nleep_reduced
from curvewise.ranking.scores import CheckpointFeatures, as_matrix
from curvewise.ranking.scoring import split_rows
from curvewise.stats.correlation import kendall
from curvewise.text import format_number
from curvewise.types.results import Interval, Result, check_level
from curvewise.types.units import FloatArray

# Features by checkpoint, labels of the examples, accuracy by checkpoint.
GridTask = tuple[Mapping[str, Any], ArrayLike, Mapping[str, float]]


@dataclass(frozen=True, eq=False)
class NleepGrid(Result):
    """Kendall's τ-b of NLEEP with accuracies, for each PCA energy and number of components.

    Attributes
    ----------
    energies : tuple of float
        Shares of the variance that principal components keep.
    components : tuple of int
        Gaussians for each class.
    tasks : tuple of str
    kendall : ndarray, shape (tasks, energies, components)
    scores : dict of str to ndarray, shape (checkpoints, energies, components)
        NLEEP by task.
    level : float
        Coverage of intervals.
    """

    energies: tuple[float, ...]
    components: tuple[int, ...]
    tasks: tuple[str, ...]
    kendall: FloatArray
    scores: Mapping[str, FloatArray]
    level: float = 0.95
    warnings: tuple[str, ...] = ()

    @property
    def mean(self) -> FloatArray:
        """Energies × components: the mean over tasks."""
        found: FloatArray = self.kendall.mean(axis=0)
        return found

    def interval_at(self, energy: float, components: int) -> Interval:
        """Return the mean over tasks at one setting, with Student's interval; unknown for one task."""
        from scipy.special import stdtrit

        if energy not in self.energies or components not in self.components:
            raise InputError(
                f"energy={energy!r}, components={components!r}: the grid has energies "
                f"{self.energies} and components {self.components}."
            )
        values = self.kendall[:, self.energies.index(energy), self.components.index(components)]
        count, centre = len(values), float(values.mean())
        if count < 2:
            return Interval(centre, float("nan"), float("nan"), self.level)
        half = float(stdtrit(count - 1, 0.5 + self.level / 2) * values.std(ddof=1) / count**0.5)
        return Interval(centre, max(-1.0, centre - half), min(1.0, centre + half), self.level)

    def columns(self) -> dict[str, list[Any]]:
        """Return a row for each energy, a column for each number of components per class."""
        return {
            "energy": list(self.energies),
            **{f"components_{c}": self.mean[:, i].tolist() for i, c in enumerate(self.components)},
        }

    def sentences(self) -> str:
        """Return the range of agreement over the grid in a sentence."""
        best = np.unravel_index(np.nanargmax(self.mean), self.mean.shape)
        worst = np.unravel_index(np.nanargmin(self.mean), self.mean.shape)
        tasks = f"{len(self.tasks)} task{'' if len(self.tasks) == 1 else 's'}"
        return f"Kendall of NLEEP with accuracies over {tasks}: from {self._at(worst)} to {self._at(best)}."

    def _at(self, place: Sequence[np.intp]) -> str:
        energy, count = self.energies[place[0]], self.components[place[1]]
        return f"{format_number(float(self.mean[tuple(place)]))} ({energy:.0%} energy, {count}× classes)"


def measure_nleep_grid(
    tasks: Mapping[str, GridTask],
    energies: Sequence[float] = (0.5, 0.6, 0.7, 0.8, 0.9),
    components: Sequence[int] = (1, 2, 3, 4, 5, 6, 7, 8),
    *,
    covariance: str = "diagonal",
    test: float | ArrayLike | None = 0.2,
    level: float = 0.95,
    rng: int = 0,
    progress: bool | None = None,
) -> NleepGrid:
    """Measure how NLEEP agrees with fine-tuning at each PCA energy and number of Gaussians.

    Figure 2 of Li et al. 2021: Kendall's τ over the checkpoints of a group, averaged over tasks.

    Parameters
    ----------
    tasks : dict of str to tuple
        By task: features by checkpoint (arrays or CheckpointFeatures), labels of the examples, and
        fine-tuned accuracy by checkpoint.
    energies : sequence of float
        Shares of the variance to keep.
    components : sequence of int
        Gaussians for each class.
    covariance : str
        Of a Gaussian, see :func:`nleep`.
    test : float, array_like of bool or None
        Which examples are scored: a share of each class, a mask, or those that were fitted.
    level : float
        Coverage of intervals over tasks.
    rng : int
        Decides the split and the seeds of k-means; the same at every setting.
    progress : bool, optional
        Show a bar; by default where stderr is a terminal.

    Returns
    -------
    NleepGrid

    Examples
    --------
    >>> random = np.random.default_rng(0)
    >>> labels = np.repeat([0, 1], 60)
    >>> pool = {f"net {i}": random.normal(size=(120, 5)) + i * labels[:, None] for i in range(4)}
    >>> accuracy = {"net 0": 0.5, "net 1": 0.7, "net 2": 0.8, "net 3": 0.9}
    >>> grid = measure_nleep_grid({"toy": (pool, labels, accuracy)}, (0.5, 0.9), (1, 2))
    >>> grid.mean
    array([[1., 1.],
           [1., 1.]])
    """
    check_level(level)
    shares, counts = tuple(map(float, energies)), tuple(map(int, components))
    if not shares or not all(0 < share <= 1 for share in shares):
        raise InputError("give shares above 0 and up to 1.", argument="energies", value=list(energies))
    if not counts or min(counts) < 1:
        raise InputError("give whole numbers of at least 1.", argument="components", value=list(components))
    if not tasks:
        raise InputError("tasks is empty: give at least one.")
    found: dict[str, FloatArray] = {}
    agreement, said = [], []
    total = sum(len(task[0]) for task in tasks.values()) * len(shares) * len(counts)
    with progress_bar("NLEEP", total, progress) as advance, warnings.catch_warnings(record=True) as w:
        warnings.simplefilter("always", CurvewiseWarning)
        for name, (checkpoints, labels, accuracy) in tasks.items():
            if len(checkpoints) < 2:
                raise InputError(f"task {name!r} has {len(checkpoints)} checkpoint(s): it takes two.")
            for key in checkpoints:
                if key not in accuracy or not np.isfinite(accuracy[key]):
                    raise InputError(f"task {name!r} has no accuracy of {key!r}: give one, or leave it out.")
            known = np.array([accuracy[key] for key in checkpoints], dtype=np.float64)
            targets = as_targets(labels, len(np.asarray(labels)), allowed=("classes", "multilabel"))
            rows = split_rows(targets, test, np.random.default_rng(rng))
            scores = []
            for given in checkpoints.values():
                scores.append(_scores(given, np.asarray(labels), targets, rows, shares, counts, covariance, rng))
                advance(len(shares) * len(counts), name)
            found[name] = np.array(scores)
            rows_of_scores = found[name].reshape(len(scores), -1).T  # a row for each setting
            agreement.append(kendall(rows_of_scores, known).reshape(found[name].shape[1:]))
    said = list(dict.fromkeys(str(one.message) for one in w))
    for text in said:
        warnings.warn(text, CurvewiseWarning, stacklevel=2)
    return NleepGrid(shares, counts, tuple(tasks), np.array(agreement), found, level, tuple(said))


def _scores(
    given: Any,
    labels: NDArray[Any],
    targets: Targets,
    rows: tuple[NDArray[np.int64], NDArray[np.int64] | None],
    shares: Sequence[float],
    counts: Sequence[int],
    covariance: str,
    rng: int,
) -> FloatArray:
    """Return energies × components: NLEEP of a checkpoint, with one decomposition for all of them."""
    features = given.features if isinstance(given, CheckpointFeatures) else given
    x = as_matrix(features, "features")
    if len(x) != len(targets):
        raise InputError(f"features have {len(x)} rows and labels {len(targets)}: give the same.")
    train, test = rows
    reduced, projection = project(x[train], max(shares))
    shown = None if test is None else projection.apply(x[test])
    energy = np.cumsum(np.square(reduced, dtype=np.float64).sum(axis=0))
    energy *= projection.kept / energy[-1] if energy[-1] else 0.0
    asked = None if test is None else labels[test]
    found = np.empty((len(shares), len(counts)))
    for e, share in enumerate(shares):
        kept = min(int(np.searchsorted(energy, share * (1 - 1e-9))) + 1, reduced.shape[1])
        part = reduced[:, :kept], None if shown is None else shown[:, :kept]
        for c, count in enumerate(counts):
            settings = NleepSettings(components=count, covariance=covariance)
            found[e, c] = nleep_reduced(part[0], labels[train], part[1], asked, settings, rng)
    return found
