"""Predictions of many runs for each test example: the input of the variance lens."""

from __future__ import annotations

import mmap
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError
from curvewise.text import arg

KINDS = ("labels", "errors", "correct", "losses", "scores", "probabilities")
"""Predicted classes, 0/1 errors, 0/1 hits, losses (lower is better) and scores (higher is better)
of any size, probabilities of each class."""

BLOCK_BYTES = 2**21
"""A source is read in blocks of runs of about this size, so that it is never held whole."""

AXES = ("runs", "examples", "repeats")
CLASS_AXES = ("runs", "examples", "classes")

AnyArray: TypeAlias = NDArray[Any]


class PredictionSource(Protocol):
    """Anything array-like that can be read a slice of runs at a time: a memory map, say."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Length of each axis."""

    @property
    def dtype(self) -> Any:
        """Type of an entry, as numpy has it."""

    def __getitem__(self, rows: slice, /) -> Any:
        """Read some of the runs."""


@dataclass(frozen=True, eq=False, repr=False)
class Predictions:
    """Predictions of R runs of a training for n test examples.

    Attributes
    ----------
    values : array or PredictionSource
        Runs × examples, or runs × examples × repeats for several samples of each; for
        ``kind="probabilities"`` runs × examples × classes.
    kind : {"labels", "errors", "correct", "losses", "scores", "probabilities"}
        Meaning of a value: a predicted class; 1 for an error; 1 for a right answer; a number that
        should be low; a number that should be high, such as a pass rate. Probabilities (or logits)
        count as the class of the highest.
    labels : ndarray of int, shape (examples,), optional
        The true classes; needed for predicted labels and probabilities.
    classes : tuple, optional
        Names of the classes 0, 1, …, where they have names.
    groups : ndarray of int, shape (examples,), optional
        Which examples belong together: questions on one passage, frames of one video.
    run_ids, example_ids : ndarray, optional
        Names of runs and examples.
    packed : int, optional
        The number of examples, where ``values`` are 0/1 errors or hits as bits:
        ``np.packbits(errors, axis=1)``.
    assumed : bool
        Whether ``kind`` was assumed: 0/1 values read as errors, or numbers read as losses, though
        nothing says that lower is better. Comparisons refuse these.
    notes : tuple of str
        How names were interpreted.

    Examples
    --------
    >>> p = Predictions(np.array([[0, 1, 1], [0, 1, 0]]), "labels", labels=np.array([0, 1, 0]))
    >>> p
    Predictions(2 runs × 3 examples of labels, 2 classes)
    >>> p.errors().tolist()
    [[0, 0, 1], [0, 0, 0]]
    """

    values: PredictionSource
    kind: str
    labels: NDArray[np.int64] | None = None
    classes: tuple[Any, ...] | None = None
    groups: NDArray[np.int64] | None = None
    run_ids: AnyArray | None = None
    example_ids: AnyArray | None = None
    packed: int | None = None
    assumed: bool = False
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"{arg('kind', self.kind)} is not known: use one of {', '.join(map(repr, KINDS))}.")
        self._check_shape()
        if self.labels is None and self.kind in ("labels", "probabilities"):
            raise InputError(
                f"{arg('kind', self.kind)} needs {arg('labels')}: the true class of each example. For 0/1 errors pass "
                f"{arg('kind', 'errors')}."
            )
        if self.labels is not None:
            check_labels(self.labels, self.shape)
            check_labelled(self.labels, "labels")
            if self.labels.dtype.kind not in "iub" or self.labels.min() < 0:
                raise InputError("labels of Predictions must be whole numbers from 0 on.")
        for name in ("groups", "example_ids"):
            _check_length(name, getattr(self, name), self.examples, "examples")
        _check_length("run_ids", self.run_ids, self.runs, "runs")
        if self.run_ids is not None and len(set(self.run_ids.tolist())) < self.runs:
            raise InputError("run_ids repeats a run: each run may be there only once.")

    def _check_shape(self) -> None:
        shape = tuple(self.values.shape)
        wanted = (3,) if self.kind == "probabilities" else (2, 3)
        if self.packed is not None:
            wanted = (2,)
        if len(shape) not in wanted or 0 in shape:
            names = CLASS_AXES if self.kind == "probabilities" else AXES[: min(wanted[-1], 3)]
            raise InputError(
                f"predictions has shape {shape}; {self.kind} must be {' × '.join(names)}, none of them empty."
            )
        if self.packed is None:
            return
        if self.kind not in ("errors", "correct") or self.values.dtype != np.uint8:
            raise InputError(f"{arg('packed')} is for bits in uint8 of kind 'errors' or 'correct'.")
        if -(-self.packed // 8) != shape[1]:
            raise InputError(
                f"packed={self.packed} examples take {-(-self.packed // 8)} bytes a run; values has {shape[1]}: pack "
                "with np.packbits(errors, axis=1)."
            )

    @property
    def runs(self) -> int:
        """Number of runs."""
        return int(self.values.shape[0])

    @property
    def examples(self) -> int:
        """Number of test examples."""
        return int(self.values.shape[1]) if self.packed is None else self.packed

    @property
    def repeats(self) -> int:
        """Number of samples that each run gives of an example; 1 unless there is an axis for them."""
        plain = len(self.values.shape) == 2 or self.kind == "probabilities"
        return 1 if plain else int(self.values.shape[2])

    @property
    def shape(self) -> tuple[int, int]:
        """Runs and examples."""
        return self.runs, self.examples

    @property
    def unit(self) -> str:
        """Unit of the errors: "fraction", "loss", or "score" for negated scores."""
        return {"losses": "loss", "scores": "score"}.get(self.kind, "fraction")

    @property
    def higher_is_better(self) -> bool:
        """True where higher values are better: hits and scores."""
        return self.kind in ("correct", "scores")

    @property
    def binary(self) -> bool:
        """True where each run is either right or wrong on an example."""
        return self.unit == "fraction" and self.repeats == 1

    @property
    def has_classes(self) -> bool:
        """True where the predicted class is known, not only whether it was right."""
        return self.kind in ("labels", "probabilities")

    @property
    def true_classes(self) -> AnyArray | None:
        """The labels by their names, where classes have names."""
        if self.labels is None or self.classes is None:
            return self.labels
        return np.array(self.classes)[self.labels]

    def __repr__(self) -> str:
        more = f" × {self.repeats} repeats" if self.repeats > 1 else ""
        kinds = f", {len(np.unique(self.labels))} classes" if self.labels is not None else ""
        kinds += f", {len(np.unique(self.groups))} groups" if self.groups is not None else ""
        return f"Predictions({self.runs:,} runs × {self.examples:,} examples{more} of {self.kind}{kinds})"

    def blocks(self, size: int = BLOCK_BYTES) -> Iterator[tuple[int, AnyArray]]:
        """Read the values a block of runs at a time: the first run's index and the block."""
        row = int(np.prod(self.values.shape[1:])) * np.dtype(self.values.dtype).itemsize
        step = max(1, size // max(1, row))
        for start in range(0, self.runs, step):
            block = np.asarray(self.values[start : start + step])
            yield start, block
            if isinstance(self.values, np.memmap):
                del block
                _forget(self.values, start, start + step)

    def error_blocks(self, repeats: bool = False) -> Iterator[tuple[int, AnyArray]]:
        """Yield errors a block of runs at a time: 0/1 as uint8, losses and negated scores as floats.

        Repeats are averaged unless ``repeats`` asks for runs × examples × repeats.
        """
        for start, block in self.blocks():
            errors = self._errors(block, start)
            if errors.ndim == 3 and not repeats:
                errors = errors.mean(axis=2)
            elif errors.ndim == 2 and repeats:
                errors = errors[:, :, None]
            yield start, errors

    def errors_of(self, rows: slice) -> AnyArray:
        """Return errors of some of the runs; repeats averaged."""
        errors = self._errors(np.asarray(self.values[rows]), rows.start or 0)
        return errors.mean(axis=2) if errors.ndim == 3 else errors

    def errors(self) -> AnyArray:
        """Return the whole matrix of errors, runs × examples; repeats averaged."""
        return np.concatenate([block for _, block in self.error_blocks()])

    def label_blocks(self) -> Iterator[tuple[int, AnyArray]]:
        """Yield predicted classes a block of runs at a time: those of highest probability, if need be."""
        if not self.has_classes:
            raise InputError(f"predictions are {self.kind}; this needs predicted labels or probabilities.")
        for start, block in self.blocks():
            yield start, self._classes_of(block, start)

    def _errors(self, block: AnyArray, start: int) -> AnyArray:
        if self.packed is not None:
            bits = np.unpackbits(block, axis=1, count=self.packed)
            return 1 - bits if self.higher_is_better else bits
        if self.has_classes:
            assert self.labels is not None
            truth = self.labels if block.ndim == 2 or self.kind == "probabilities" else None
            truth = self.labels[:, None] if truth is None else truth
            said = self._classes_of(block, start)
            # Comparing bytes with bytes spares a copy of the block as int64.
            if said.dtype == np.uint8 and truth.max() < 256:
                truth = truth.astype(np.uint8)
            return np.not_equal(said, truth).view(np.uint8)
        if self.unit != "fraction":
            values = self._finite(block.astype(np.float64, copy=False), start)
            return -values if self.higher_is_better else values
        flags = block.view(np.uint8) if block.dtype == bool else self._flags(block, start)
        return 1 - flags if self.higher_is_better else flags

    def _flags(self, block: AnyArray, start: int) -> NDArray[np.uint8]:
        self._finite(block, start)
        # 0.5 becomes 0 here and differs from its block, which is how rates are told from flags.
        flags = block.astype(np.uint8)
        if flags.max() > 1 or (flags != block).any():
            bad = block[(block != 0) & (block != 1)][0]
            raise InputError(
                f"predictions of kind {self.kind!r} holds {bad.item()!r}, and may hold only 0 and 1. Pass "
                f"{arg('kind', 'scores')} for rates and other numbers that should be high, {arg('kind', 'losses')} for "
                f"numbers that should be low, or {arg('labels')} for predicted classes."
            )
        return flags

    def _classes_of(self, block: AnyArray, start: int) -> AnyArray:
        if self.kind == "probabilities":
            best: AnyArray = self._finite(block, start).argmax(axis=2)
            return best
        if block.dtype.kind in "iu" or block.dtype == bool:
            return block
        said = self._finite(block, start).astype(np.int64)
        if (said != block).any():
            raise InputError(
                f"predictions holds {block[said != block][0]!r}, which is no class. Pass {arg('kind', 'losses')} for "
                f"losses, or {arg('kind', 'probabilities')} with an axis for the classes."
            )
        return said

    def _finite(self, block: AnyArray, start: int) -> AnyArray:
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            bad = np.flatnonzero(~np.isfinite(block.reshape(len(block), -1)).all(axis=1)) + start
            names = self.run_ids[bad] if self.run_ids is not None else bad
            said = ", ".join(map(str, names[:5])) + (" …" if len(bad) > 5 else "")
            raise InputError(
                f"predictions holds NaN or infinite values in run(s) {said}: a run that diverged? Count it as wrong on "
                "every example, or leave it out on purpose and say so."
            )
        return block

    def subset(self, runs: Any = None, examples: Any = None) -> Predictions:
        """Select some of the runs or examples, by index or mask; they are held in memory."""
        chosen = self
        if runs is not None:
            rows = np.arange(self.runs)[runs]
            ids = None if self.run_ids is None else self.run_ids[rows]
            values = self.values[runs] if isinstance(runs, slice) else np.asarray(self.values)[rows]
            chosen = replace(chosen, values=values, run_ids=ids)
        if examples is not None:
            kept = np.arange(self.examples)[examples]
            values = np.asarray(chosen.values)
            if self.packed is not None:
                values = np.unpackbits(values, axis=1, count=self.packed)
            several = ("labels", "groups", "example_ids")
            parts = {k: getattr(self, k) for k in several}
            parts = {k: None if v is None else v[kept] for k, v in parts.items()}
            chosen = replace(chosen, values=values[:, kept], packed=None, **parts)
        return chosen


def _forget(source: np.memmap[Any, Any], start: int, stop: int) -> None:
    """Let go of the pages of a memory map that were read: they are still in the file."""
    # Pages of a file larger than memory would stay resident and push other programs out.
    view = source._mmap if hasattr(source, "_mmap") else None
    if not isinstance(view, mmap.mmap) or not source.flags.c_contiguous:
        return
    if source.mode != "r":  # what was written to a private map must not be lost
        return
    base = source.ctypes.data - np.frombuffer(view, np.uint8).ctypes.data
    first, last = base + start * source.strides[0], base + stop * source.strides[0]
    first, last = -(-first // mmap.PAGESIZE) * mmap.PAGESIZE, min(last, len(view))
    if hasattr(view, "madvise") and last - first >= mmap.PAGESIZE:
        view.madvise(mmap.MADV_DONTNEED, first, (last - first) // mmap.PAGESIZE * mmap.PAGESIZE)


def _check_length(name: str, values: AnyArray | None, length: int, of: str) -> None:
    if values is not None and np.shape(values) != (length,):
        raise InputError(f"{name} has shape {np.shape(values)}; there are {length:,} {of}.")


UNLABELLED = (-1, -100)
"""Marks of an example without a label, in scikit-learn and data sets, and in PyTorch."""


def check_labelled(labels: AnyArray, argument: str, remedy: str = "") -> None:
    """Refuse marks of examples without a label; −1 beside 1 alone is one of two classes.

    >>> check_labelled(np.array([-1, 1, 1]), "labels")
    """
    if labels.dtype.kind not in "if" or not np.isin(labels, UNLABELLED).any():
        return
    # Support-vector machines call their two classes -1 and 1.
    if set(np.unique(labels).tolist()) == {-1, 1}:
        return
    mark = next(mark for mark in UNLABELLED if (labels == mark).any())
    raise InputError(
        f"{argument} holds {mark}, which usually marks an example without a label: "
        f"{remedy or 'leave these examples out'}, or number the classes from 0."
    )


def check_labels(labels: AnyArray, shape: tuple[int, int]) -> None:
    """Check that labels belong to the examples, along the second axis."""
    if labels.shape == (shape[1],):
        return
    if labels.shape == (shape[0],):
        raise InputError(
            f"labels has {shape[0]:,} entries and predictions has {shape[0]:,} rows × {shape[1]:,} columns: it looks "
            f"transposed. Rows are runs: pass predictions.T, or {arg('axes', ('examples', 'runs'))}."
        )
    raise InputError(
        f"labels has shape {labels.shape}; predictions has {shape[0]:,} runs × {shape[1]:,} examples, and needs one "
        "label for each example."
    )
