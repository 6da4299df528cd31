"""Predictions of many runs for each test example, and arrays as predictions: the input of the variance lens."""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError, Message, arg, brief, format_path
from curvewise.text import format_count
from curvewise.types.results import as_unmasked, check_labelled, count_missing

KINDS = ("labels", "errors", "correct", "losses", "scores", "probabilities")
"""Predicted classes, 0/1 errors, 0/1 hits, losses (lower is better) and scores (higher is better)
of any size, probabilities of each class."""

BLOCK_BYTES = 2**21
"""A source is read in blocks of runs of about this size, so that it is never held whole."""
BITS_BYTES = 2**18
"""Bytes of packed errors read at once: unpacked they are eight times as many, and should stay in the cache."""

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
    name : str
        Of the training, where it is known: the learner of a store.
    seeds : ndarray of str, optional
        Fold and seeds of each run, as a store records them, by which runs of two trainings can be paired.

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
    name: str = ""
    seeds: AnyArray | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"{arg('kind', self.kind)} is not known: use one of {', '.join(map(repr, KINDS))}.")
        for name in ("values", "labels", "groups", "run_ids", "example_ids", "seeds"):
            if isinstance(given := getattr(self, name), list | tuple):
                object.__setattr__(self, name, as_unmasked(given, name))
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
        if self.groups is not None:
            _entries(self.groups, "groups")  # NaN would be a group of its own
        for name in ("groups", "example_ids"):
            _check_length(name, getattr(self, name), self.examples, "examples")
        for name in ("run_ids", "seeds"):
            _check_length(name, getattr(self, name), self.runs, "runs")
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
        if getattr(self.values.dtype, "kind", "") in ("U", "S"):  # names of classes are numbered by as_predictions
            seen = np.asarray(self.values[:1]).ravel()[0].item()
            remedy = (
                f"For names of predicted classes pass {arg('kind', 'labels')} and {arg('labels')} with the true ones"
            )
            if self.kind == "labels":
                remedy = "as_predictions(values, labels) numbers names of classes"
            raise InputError(
                f"predictions of kind {self.kind!r} holds the text {brief(seen)}, and must hold numbers.",
                argument="predictions",
                value=seen,
                remedy=f"{remedy}.",
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
        shape = f"{format_count(self.runs, 'run')} × {format_count(self.examples, 'example')}"
        return f"Predictions({shape}{more} of {self.kind}{kinds})"

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
        for start, block in self.blocks(BLOCK_BYTES if self.packed is None else BITS_BYTES):
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
            predicted = self._classes_of(block, start)
            # Comparing bytes with bytes spares a copy of the block as int64.
            if predicted.dtype == np.uint8 and truth.max() < 256:
                truth = truth.astype(np.uint8)
            return np.not_equal(predicted, truth).view(np.uint8)
        if self.unit != "fraction":
            values = self._finite(block.astype(np.float64, copy=False), start)
            return -values if self.higher_is_better else values
        flags = block.view(np.uint8) if block.dtype == bool else self._flags(block, start)
        return 1 - flags if self.higher_is_better else flags

    def _flags(self, block: AnyArray, start: int) -> NDArray[np.uint8]:
        self._finite(block, start)
        # 0.5 becomes 0 here and differs from its block, which distinguishes rates from flags.
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
        predicted = self._finite(block, start).astype(np.int64)
        if (predicted != block).any():
            raise InputError(
                f"predictions holds {brief(block[predicted != block][0])}, which is no class. Pass "
                f"{arg('kind', 'losses')} for losses, or {arg('kind', 'probabilities')} with an axis for the classes."
            )
        return predicted

    def _finite(self, block: AnyArray, start: int) -> AnyArray:
        if block.dtype.kind == "f" and not np.isfinite(block).all():
            bad = np.flatnonzero(~np.isfinite(block.reshape(len(block), -1)).all(axis=1)) + start
            names = self.run_ids[bad] if self.run_ids is not None else bad
            listed = ", ".join(map(str, names[:5])) + (" …" if len(bad) > 5 else "")
            raise InputError(
                f"predictions holds NaN or infinite values in run(s) {listed}: a run that diverged? Count it as wrong "
                "on every example, or leave it out on purpose and say so."
            )
        return block

    def subset(self, runs: Any = None, examples: Any = None) -> Predictions:
        """Select some of the runs or examples, by index or mask; they are held in memory."""
        chosen = self
        if runs is not None:
            rows = np.arange(self.runs)[runs]
            named = {k: v[rows] for k in ("run_ids", "seeds") if (v := getattr(self, k)) is not None}
            values = self.values[runs] if isinstance(runs, slice) else np.asarray(self.values)[rows]
            chosen = replace(chosen, values=values, **named)
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


def check_labels(labels: AnyArray, shape: tuple[int, int], axes: Sequence[str] | None = None) -> None:
    """Check that labels belong to the examples, along the second axis; ``axes`` are those that were asked for."""
    if labels.shape == (shape[1],):
        return
    if labels.shape == (shape[0],):
        remedy = f"pass predictions.T, or {arg('axes', ('examples', 'runs'))}"
        if axes is not None:  # which turned it
            remedy = f"leave {arg('axes', tuple(axes))} out"
        raise InputError(
            f"labels has {shape[0]:,} entries and predictions has {shape[0]:,} rows × {shape[1]:,} columns: it looks "
            f"transposed. Rows are runs: {remedy}."
        )
    raise InputError(
        f"labels has shape {labels.shape}; predictions has {shape[0]:,} runs × {shape[1]:,} examples, and needs one "
        "label for each example."
    )


# Arrays as predictions: their meaning is read off the values, and asked for where that leaves a doubt.


def as_predictions(
    predictions: Any,
    labels: ArrayLike | None = None,
    *,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: ArrayLike | None = None,
    argument: str = "predictions",
    directed: bool = False,
) -> Predictions:
    """Make :class:`Predictions` of an array; axes that the shape does not tell apart are asked for.

    Parameters
    ----------
    predictions : Predictions or array_like
        Runs × examples of predicted labels (with ``labels``), 0/1 errors or hits, losses or
        scores.
    labels : array_like, optional
        True classes of the examples.
    kind : str, optional
        One of :data:`KINDS`; needed where the values do not say it.
    axes : sequence of str, optional
        Meaning of each axis, such as ("examples", "runs"); needed where the shape does not say it.
    groups : array_like, optional
        Which examples belong together.
    argument : str
        Its name in messages.
    directed : bool
        Refuse values of which nothing says whether a high one is good. Otherwise 0/1 values are
        read as errors and other numbers as losses, and :attr:`Predictions.assumed` says so.
    """
    if isinstance(predictions, Predictions):
        return _directed(_amended(predictions, labels, kind, axes, groups), directed, argument)
    values = _as_source(predictions, argument)
    truth = None if labels is None else _entries(labels, "labels")
    if truth is not None:
        check_labelled(truth, "labels")
    if axes is not None:
        values = _arranged(values, tuple(axes), argument)
        kind = kind or ("probabilities" if "classes" in axes else None)
    given_kind = kind
    kind = kind or _kind_of(values, truth, axes, argument)
    if len(values.shape) == 3 and axes is None and kind != "probabilities":
        raise InputError(
            f"{argument} has three axes: say what they are, {arg('axes', ('runs', 'examples', 'repeats'))} or "
            f"{arg('axes', ('runs', 'examples', 'classes'))}.",
            argument=argument,
        )
    if axes is None:
        _check_order(values.shape, truth, argument)
    codes, names = None, None
    if truth is not None:
        check_labels(truth, (int(values.shape[0]), int(values.shape[1])), axes)
        values, codes, names = _coded(values, truth, kind, argument)
    members = None if groups is None else _members(groups)
    assumed = given_kind is None and kind in ("errors", "losses")
    made = Predictions(values, kind, labels=codes, classes=names, groups=members, assumed=assumed)
    return _directed(made, directed, argument)


@dataclass(frozen=True, eq=False)
class RawPredictions:
    """Values out of a file or a store, with what came with them, not yet checked against each other.

    Attributes
    ----------
    values : array
        As read.
    source : str
        Its name in messages.
    kind : str, optional
        One of :data:`KINDS` where names say it.
    axes : tuple of str, optional
        Where the form of the source says them.
    labels, groups, run_ids, example_ids, seeds : ndarray, optional
        Held by the source beside the values.
    packed : int, optional
        The number of examples, where ``values`` are bits.
    predicted : bool
        Whether the values were called predictions, which mean nothing without labels.
    arranged : bool
        Whether the user's ``axes`` were used in reading already.
    ordered : bool
        Whether examples have one order in all runs, so that labels may be given by position.
    notes : tuple of str
        How names were interpreted.
    name : str
        Of the training, where the source says it.
    """

    values: Any
    source: str
    kind: str | None = None
    axes: tuple[str, ...] | None = None
    labels: AnyArray | None = None
    groups: AnyArray | None = None
    run_ids: AnyArray | None = None
    example_ids: AnyArray | None = None
    seeds: AnyArray | None = None
    packed: int | None = None
    predicted: bool = False
    arranged: bool = False
    ordered: bool = True
    notes: tuple[str, ...] = ()
    name: str = ""

    def checked(
        self,
        *,
        labels: AnyArray | None = None,
        kind: str | None = None,
        axes: Sequence[str] | None = None,
        groups: AnyArray | None = None,
    ) -> Predictions:
        """Make predictions; what the user gives must not contradict what the source holds."""
        for name, given in (("labels", labels), ("groups", groups)):
            if given is not None and not self.ordered:
                raise InputError(
                    f"{arg(name)} is in the order of the examples, and runs in {self.source} list them in different "
                    f"orders: put {name} in a column of it."
                )
        truth = agreed("labels", self.labels, labels, self.source)
        members = agreed("groups", self.groups, groups, self.source)
        kind = kind or self.kind
        if kind is None and self.predicted and truth is None:
            raise InputError(
                f"{self.source} holds predictions and no labels: pass {arg('labels')}, an array or a file with the "
                f"true class of each example; or, if these are no classes, {arg('kind', 'errors')} or "
                f"{arg('kind', 'correct')} for 0 and 1, {arg('kind', 'losses')} or {arg('kind', 'scores')} for numbers."
            )
        if self.packed is not None:
            made = self._unpackable(kind, truth, members)
        else:
            made = as_predictions(
                self.values, truth, kind=kind, axes=self._axes(axes, kind), groups=members, argument=self.source
            )
        assumed = {
            "errors": f"0 and 1 taken as errors: pass {arg('kind', 'correct')} if 1 means right",
            "losses": f"numbers taken as losses: pass {arg('kind', 'scores')} if high ones are good",
        }
        notes = [note for note in (*self.notes, Message(assumed[made.kind]) if made.assumed else "") if note]
        ids: Any = {name: _printable(getattr(self, name)) for name in ("run_ids", "example_ids", "seeds")}
        return replace(made, notes=tuple(notes), name=format_path(self.name) if self.name else "", **ids)

    def _axes(self, axes: Sequence[str] | None, kind: str | None) -> tuple[str, ...] | None:
        known = self.axes
        if known is not None and axes is None and len(known) < len(self.values.shape):
            return (*known, "classes") if kind == "probabilities" else None
        if self.arranged:
            return known
        if known is None or axes is None or tuple(axes[: len(known)]) == known:
            return known if axes is None else tuple(axes)
        raise InputError(
            f"{arg('axes', tuple(axes))}: {self.source} has {' × '.join(known)} by its form; leave {arg('axes')} out, "
            "or begin with these."
        )

    def _unpackable(self, kind: str | None, labels: AnyArray | None, groups: AnyArray | None) -> Predictions:
        """Keep errors or hits as bits; labels and groups are coded as for any others."""
        if labels is not None:
            labels = np.asarray(labels)
            labels = labels.astype(np.int64) if labels.dtype.kind in "iu" else _codes(labels)[1]
        return Predictions(
            self.values,
            kind or "errors",
            labels=labels,
            groups=None if groups is None else _codes(np.asarray(groups))[1],
            packed=self.packed,
            assumed=kind is None,
        )


def agreed(name: str, there: AnyArray | None, given: AnyArray | None, source: str) -> AnyArray | None:
    """Return what two places say of the examples, which must be the same if both do."""
    if there is None or given is None:
        return there if given is None else given
    if np.shape(there) == np.shape(given) and bool(np.all(np.asarray(there) == np.asarray(given))):
        return there
    raise InputError(
        f"{arg(name)} differs from the {name} that {source} brings along: leave {arg(name)} out, or leave those out "
        f"with {arg('columns', {name[:-1]: None})}."
    )


def _printable(ids: AnyArray | None) -> AnyArray | None:
    """Make names printable: characters that could move a cursor are written out."""
    if ids is None or ids.dtype.kind not in "US":
        return ids
    return np.array([format_path(str(word)) for word in ids.tolist()], dtype=np.str_)


def _directed(given: Predictions, directed: bool, argument: str) -> Predictions:
    """Refuse values that two readings would rank in opposite orders."""
    if not (directed and given.assumed):
        return given
    if given.kind == "errors":
        raise InputError(
            f"{argument} holds 0 and 1, and nothing says whether 1 means wrong or right: pass {arg('kind', 'errors')} "
            f"or {arg('kind', 'correct')}; for predicted classes pass {arg('labels')}.",
            argument=argument,
        )
    raise InputError(
        f"{argument} holds numbers, and nothing says whether low or high ones are better: pass {arg('kind', 'losses')} "
        f"or {arg('kind', 'scores')}.",
        argument=argument,
    )


def asked_of(given: Any, options: Mapping[str, Any]) -> dict[str, Any]:
    """Keep the options that Predictions need: these know their axes and, unless assumed, their kind.

    For analyses of several sets of runs, some of which may be arrays.
    """
    known = ["axes"] if isinstance(given, Predictions) else []
    known += ["kind"] if isinstance(given, Predictions) and not given.assumed else []
    return {name: value for name, value in options.items() if name not in known}


_OPPOSITE = {"errors": "correct", "losses": "scores"}


def _amended(
    given: Predictions, labels: ArrayLike | None, kind: str | None, axes: Sequence[str] | None, groups: ArrayLike | None
) -> Predictions:
    # An assumed direction may still be corrected; one that was given may not.
    if kind is not None and given.assumed and kind == _OPPOSITE.get(given.kind):
        given = replace(given, kind=kind)
    if kind == given.kind:
        given, kind = replace(given, assumed=False), None
    if kind is not None or axes is not None:
        raise InputError(f"predictions already knows its kind and axes: leave {arg('kind')} and {arg('axes')} out.")
    if labels is not None:
        truth = _entries(labels, "labels")
        check_labels(truth, given.shape)
        check_labelled(truth, "labels")
        known = given.true_classes
        if known is not None:
            if not np.array_equal(known, truth):
                raise InputError("labels differs from the labels that predictions brings along.")
        else:
            given = replace(given, labels=_whole(truth, "labels"))
    if groups is not None:
        given = replace(given, groups=_members(groups))
    return given


def _as_source(predictions: Any, argument: str) -> Any:
    as_unmasked(predictions, argument)
    if isinstance(predictions, str | PathLike):
        raise InputError(f"{arg(argument, str(predictions))} is a name, not predictions: pass load_predictions(name).")
    if hasattr(predictions, "columns"):
        raise InputError(
            f"{argument} is a table: pass load_predictions(table), which finds runs, examples and values by the names "
            "of its columns, or table.to_numpy() for runs × examples.",
            argument=argument,
        )
    # A memory map or a stack of files stays on disk.
    lazy = all(hasattr(predictions, name) for name in ("shape", "dtype", "__getitem__"))
    values = predictions if lazy else as_unmasked(predictions, argument)
    if not isinstance(values.dtype, np.dtype):
        values = np.asarray(values)  # a torch tensor has its own dtypes
    if len(values.shape) not in (2, 3) or 0 in values.shape:
        raise InputError(
            f"{argument} has shape {tuple(values.shape)}; it must be runs × examples (× repeats or classes), none of "
            "them empty. One score per run says less: it is enough to compare trainings on one test set.",
            argument=argument,
        )
    if values.dtype.kind == "O":
        values = _plain(np.asarray(values), argument)
    if values.dtype.kind not in "biufUS":
        raise InputError(
            f"{argument} has dtype {values.dtype}, which holds no predictions: save classes as whole numbers, "
            "probabilities or logits as float32.",
            argument=argument,
        )
    return values


def _arranged(values: Any, axes: tuple[str, ...], argument: str) -> Any:
    known = {AXES[:2], AXES, CLASS_AXES}
    order = next((k for k in known if sorted(k) == sorted(axes)), None)
    if order is None or len(axes) != len(values.shape):
        raise InputError(
            f"{arg('axes', axes)} does not name the {len(values.shape)} axes of {argument}: use 'runs', 'examples' "
            "and, for a third, 'repeats' or 'classes'."
        )
    if axes == order:
        return values
    return np.asarray(values).transpose([axes.index(name) for name in order])


def _kind_of(values: Any, labels: AnyArray | None, axes: Sequence[str] | None, argument: str) -> str:
    first = np.asarray(values[:1])
    if labels is not None:
        if len(values.shape) == 3 and axes is None and first.dtype.kind == "f":
            # Softmax in half precision sums to 1 within about 1e-3.
            if np.allclose(first.sum(axis=2), 1, atol=1e-3) and (first >= 0).all():
                return "probabilities"
            return "labels"
        if first.dtype.kind == "f" and (first != np.round(first)).any():
            raise InputError(
                f"{argument} holds numbers that are no classes, and there are labels: pass {arg('kind', 'losses')} or "
                f"{arg('kind', 'scores')}, or {arg('kind', 'probabilities')} with an axis for the classes.",
                argument=argument,
            )
        # 0 and 1 among ten classes are hits or errors far more often than predictions of two classes.
        if len(np.unique(labels)) > 2 and _all_flags(values):
            raise InputError(
                f"{argument} holds only 0 and 1, and labels has {len(np.unique(labels))} classes: pass "
                f"{arg('kind', 'correct')} if 1 means right, {arg('kind', 'errors')} if it means wrong, or "
                f"{arg('kind', 'labels')} if these are predicted classes.",
                argument=argument,
            )
        if first.dtype == bool and labels.dtype != bool:
            raise InputError(
                f"{argument} holds booleans, and labels does not: pass {arg('kind', 'correct')} if True means right,"
                f" {arg('kind', 'errors')} if it means wrong, or {arg('kind', 'labels')} if these are predicted"
                " classes.",
                argument=argument,
            )
        return "labels"
    if first.dtype.kind in "USO":
        raise InputError(
            f"{argument} holds names of classes: pass {arg('labels')} with the true ones.", argument=argument
        )
    if _all_flags(values):
        return "errors"
    if first.dtype.kind == "f":
        return "losses"
    raise InputError(
        f"{argument} holds whole numbers other than 0 and 1: pass {arg('labels')} if these are predicted classes, "
        f"{arg('kind', 'losses')} or {arg('kind', 'scores')} for others.",
        argument=argument,
    )


def _all_flags(values: Any) -> bool:
    """Return whether there is nothing but 0 and 1, or False and True."""
    if values.dtype.kind in "US":
        return False
    # A memory map may be larger than memory: 64 runs at a time, up to the first other value.
    blocks = (np.asarray(values[i : i + 64]) for i in range(0, values.shape[0], 64))
    return all(b.dtype == bool or bool(((b == 0) | (b == 1)).all()) for b in blocks)


def _check_order(shape: tuple[int, ...], labels: AnyArray | None, argument: str) -> None:
    """Check that runs come first; ask where the shape leaves a doubt."""
    rows, columns = shape[:2]
    # A transposed matrix gives plausible wrong numbers, so that nothing is guessed.
    if labels is not None and rows == columns == len(labels):
        raise InputError(
            f"{argument} has as many rows as columns ({rows:,}), so that it is not clear which are the runs: pass "
            f"{arg('axes', ('runs', 'examples'))} or {arg('axes', ('examples', 'runs'))}.",
            argument=argument,
        )
    if labels is None and rows >= columns:
        wide = f"{columns:,} column" + ("" if columns == 1 else "s")
        raise InputError(
            f"{argument} has {rows:,} rows and {wide}. Rows are runs, and there would be at least as many as examples: "
            f"pass {arg('axes', ('runs', 'examples'))} if that is so, or {arg('axes', ('examples', 'runs'))}.",
            argument=argument,
        )


def _coded(
    values: Any, labels: AnyArray, kind: str, argument: str
) -> tuple[Any, NDArray[np.int64], tuple[Any, ...] | None]:
    """Number classes 0, 1, …; names and negative numbers are replaced by their place in order."""
    if kind == "probabilities":
        if len(values.shape) != 3:
            raise InputError(
                f"{argument} of kind 'probabilities' needs an axis for the classes. Of one probability for two classes "
                "make np.stack([1 - p, p], axis=2), or predicted classes, (p > 0.5).astype(int).",
                argument=argument,
            )
        truth = _whole(labels, "labels")
        if truth.max() >= values.shape[2]:
            raise InputError(
                f"labels holds class {truth.max()}, and {argument} has {values.shape[2]} classes along its last axis."
            )
        return values, truth, None
    named = labels.dtype.kind in "USO" or values.dtype.kind in "USO"
    if kind != "labels":
        return values, _whole(labels, "labels") if not named else _codes(labels)[1], None
    if named and (labels.dtype.kind in "USO") != (values.dtype.kind in "USO"):
        raise InputError(f"labels and {argument} must both be names or both be numbers.")
    if not named and labels.min() >= 0:
        # NaN is left for the reading, which names the run.
        blocks = (np.asarray(values[i : i + 1024]) for i in range(0, values.shape[0], 1024))
        if np.dtype(values.dtype).kind in "bu" or not min(float(block.min()) for block in blocks) < 0:
            return values, _whole(labels, "labels"), None
    # np.unique would make a class of NaN.
    held = np.asarray(values)
    if held.dtype.kind == "f" and not np.isfinite(held).all():
        raise InputError(f"{argument} holds NaN or infinite values: a run that diverged?", argument=argument)
    names, codes = _codes(np.concatenate([labels.ravel(), held.ravel()]))
    size = len(labels)
    if named and not np.isin(codes[size:], codes[:size]).any():
        raise InputError(
            f"No name in {argument} is a label: it has {brief(names[codes[size:].min()].item())}, and labels has "
            f"{brief(names[codes[:size].min()].item())}. Write classes alike in both, in case and spaces, too."
        )
    return codes[size:].reshape(held.shape), codes[:size], tuple(names.tolist())


def _members(groups: ArrayLike) -> NDArray[np.int64]:
    """Number the groups."""
    return _codes(_entries(groups, "groups"))[1]


def _entries(given: ArrayLike, argument: str) -> AnyArray:
    """Return labels or groups as an array in which none is missing."""
    values = _plain(np.asarray(as_unmasked(given, argument)), argument)
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{argument} holds NaN or infinite values: every example needs one.", argument=argument)
    return values


def _plain(values: AnyArray, argument: str) -> AnyArray:
    """Make numbers of objects if none is text, else text; nothing may be missing."""
    if values.dtype.kind != "O":
        return values
    held = values.ravel().tolist()
    if missing := count_missing(held):
        raise InputError(f"{argument} holds {missing} missing value(s), such as None or NaN.", argument=argument)
    if any(isinstance(v, str | bytes) for v in held):
        return values.astype(str)
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values.astype(str)


def _codes(names: AnyArray) -> tuple[AnyArray, NDArray[np.int64]]:
    found, codes = np.unique(names, return_inverse=True)
    return found, codes.astype(np.int64).ravel()


def _whole(labels: AnyArray, argument: str) -> NDArray[np.int64]:
    if labels.dtype.kind not in "biuf" or not np.isfinite(labels).all():
        raise InputError(f"{argument} must hold whole numbers: the class of each example.", argument=argument)
    codes = labels.astype(np.int64)
    if (codes != labels).any() or codes.min() < 0:
        odd = labels[(codes != labels) | (codes < 0)][0]
        raise InputError(f"{argument} must hold classes 0, 1, …, not {brief(odd)}.", argument=argument)
    return codes
