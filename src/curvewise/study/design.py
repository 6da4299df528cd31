"""Which runs a study makes: sizes × folds × seeds, and a grid of settings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from curvewise.errors import InputError

CHANCES = ("init", "order", "augmentation", "poke")
"""Sources of randomness that can be varied one by one."""


@dataclass(frozen=True)
class Design:
    """Which runs a study makes of each learner.

    Attributes
    ----------
    sizes : sequence of int or float, optional
        Training-set sizes; numbers up to 1.0 are fractions of the training part. By default all.
    folds : int or sequence of int, optional
        Subsets of each size; by default as many as fit without overlap, at most 16.
    seeds : int
        Runs on each subset.
    vary : sequence of {"init", "order", "augmentation", "poke"}
        What differs between these runs; the rest stays fixed.
    poke : dict, optional
        ``epoch`` (0) and ``factor`` (1.001): one weight is nudged then.
    grid : dict of str to sequence
        Settings of the learners, every combination of which is trained.
    test : float or int
        Share or number of examples held out, where the data has no test set of its own.
    nested, stratify, per_class : bool
        As in :func:`curvewise.partition_training_set`.
    """

    sizes: Sequence[float] | None = None
    folds: Sequence[int] | int | None = None
    seeds: int = 1
    vary: Sequence[str] = ("init", "order", "augmentation")
    poke: Mapping[str, float] | None = None
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    test: float = 0.2
    nested: bool = False
    stratify: bool = True
    per_class: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.seeds, bool) or not isinstance(self.seeds, int) or self.seeds < 1:
            raise InputError(f"seeds={self.seeds!r}: give the number of runs on each subset.")
        if isinstance(self.vary, str):
            object.__setattr__(self, "vary", (self.vary,))
        for name in self.vary:
            if name not in CHANCES:
                raise InputError(f"vary has {name!r}: use some of {', '.join(CHANCES)}.")
        if self.seeds > 1 and not self.vary:
            raise InputError(
                f"seeds={self.seeds} with vary=[] would make the same run {self.seeds} times: name "
                "what varies, or use seeds=1."
            )
        if "poke" in self.vary and self.poke is None:
            raise InputError("vary has 'poke', but poke= is not given: use poke={'epoch': 0}.")
        if unknown := set(self.poke or ()) - {"epoch", "factor"}:
            raise InputError(f"poke has {sorted(unknown)}: it takes epoch and factor.")
        for name, values in self.grid.items():
            if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
                raise InputError(f"grid[{name!r}]={values!r}: give a list of values to try.")

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Every combination of the grid; one empty one when there is no grid."""
        for values in product(*self.grid.values()):
            yield dict(zip(self.grid, values, strict=True))

    def seeds_of(self, entropy: int, n: int, fold: int, replicate: int) -> dict[str, int]:
        """Seeds of one run, each from a stream of its own; what does not vary is replicate 0's."""
        found = {}
        for i, name in enumerate(CHANCES):
            if name == "poke" and self.poke is None:
                continue
            which = replicate if name in self.vary else 0
            state = np.random.SeedSequence([entropy, i, n, fold, which]).generate_state(1)
            found[name] = int(state[0])
        return found
