"""Arrays as predictions: their meaning is read off the values, and asked for where that leaves a doubt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.text import Message, arg, format_path
from curvewise.types.predictions import AXES, CLASS_AXES, AnyArray, Predictions, check_labelled, check_labels
from curvewise.types.units import as_unmasked


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
    truth = None if labels is None else _known(_plain(np.asarray(as_unmasked(labels, "labels")), "labels"), "labels")
    if truth is not None:
        check_labelled(truth, "labels")
    if axes is not None:
        values = _arranged(values, tuple(axes), argument)
        kind = kind or ("probabilities" if "classes" in axes else None)
    said = kind
    kind = kind or _kind_of(values, truth, axes, argument)
    if len(values.shape) == 3 and axes is None and kind != "probabilities":
        raise InputError(
            f"{argument} has three axes: say what they are, {arg('axes', ('runs', 'examples', 'repeats'))} or "
            f"{arg('axes', ('runs', 'examples', 'classes'))}."
        )
    if axes is None:
        _check_order(values.shape, truth, argument)
    codes, names = None, None
    if truth is not None:
        check_labels(truth, (int(values.shape[0]), int(values.shape[1])))
        values, codes, names = _coded(values, truth, kind, argument)
    members = None if groups is None else _members(groups)
    assumed = said is None and kind in ("errors", "losses")
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
    labels, groups, run_ids, example_ids : ndarray, optional
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
    """

    values: Any
    source: str
    kind: str | None = None
    axes: tuple[str, ...] | None = None
    labels: AnyArray | None = None
    groups: AnyArray | None = None
    run_ids: AnyArray | None = None
    example_ids: AnyArray | None = None
    packed: int | None = None
    predicted: bool = False
    arranged: bool = False
    ordered: bool = True
    notes: tuple[str, ...] = ()

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
        ids: Any = {"run_ids": _printable(self.run_ids), "example_ids": _printable(self.example_ids)}
        return replace(made, notes=tuple(notes), **ids)

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
            f"or {arg('kind', 'correct')}; for predicted classes pass {arg('labels')}."
        )
    raise InputError(
        f"{argument} holds numbers, and nothing says whether low or high ones are better: pass {arg('kind', 'losses')} "
        f"or {arg('kind', 'scores')}."
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
        truth = np.asarray(as_unmasked(labels, "labels"))
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
            "of its columns, or table.to_numpy() for runs × examples."
        )
    # A memory map or a stack of files stays on disk.
    lazy = all(hasattr(predictions, name) for name in ("shape", "dtype", "__getitem__"))
    values = predictions if lazy else as_unmasked(predictions, argument)
    if not isinstance(values.dtype, np.dtype):
        values = np.asarray(values)  # a torch tensor has its own dtypes
    if len(values.shape) not in (2, 3) or 0 in values.shape:
        raise InputError(
            f"{argument} has shape {tuple(values.shape)}; it must be runs × examples (× repeats or classes), none of "
            "them empty. One score per run says less: it is enough to compare trainings on one test set."
        )
    if values.dtype.kind == "O":
        values = _plain(np.asarray(values), argument)
    if values.dtype.kind not in "biufUS":
        raise InputError(
            f"{argument} has dtype {values.dtype}, which holds no predictions: save classes as whole numbers, "
            "probabilities or logits as float32."
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
                f"{arg('kind', 'scores')}, or {arg('kind', 'probabilities')} with an axis for the classes."
            )
        # 0 and 1 among ten classes are hits or errors far more often than predictions of two classes.
        if len(np.unique(labels)) > 2 and _all_flags(values):
            raise InputError(
                f"{argument} holds only 0 and 1, and labels has {len(np.unique(labels))} classes: pass "
                f"{arg('kind', 'correct')} if 1 means right, {arg('kind', 'errors')} if it means wrong, or "
                f"{arg('kind', 'labels')} if these are predicted classes."
            )
        if first.dtype == bool and labels.dtype != bool:
            raise InputError(
                f"{argument} holds booleans, and labels does not: pass {arg('kind', 'correct')} if True means right, "
                f"{arg('kind', 'errors')} if it means wrong, or {arg('kind', 'labels')} if these are predicted classes."
            )
        return "labels"
    if first.dtype.kind in "USO":
        raise InputError(f"{argument} holds names of classes: pass {arg('labels')} with the true ones.")
    if _all_flags(values):
        return "errors"
    if first.dtype.kind == "f":
        return "losses"
    raise InputError(
        f"{argument} holds whole numbers other than 0 and 1: pass {arg('labels')} if these are predicted classes, "
        f"{arg('kind', 'losses')} or {arg('kind', 'scores')} for others."
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
            f"{argument} has as many rows as columns ({rows:,}), so that runs and examples cannot be told apart: pass "
            f"{arg('axes', ('runs', 'examples'))} or {arg('axes', ('examples', 'runs'))}."
        )
    if labels is None and rows >= columns:
        wide = f"{columns:,} column" + ("" if columns == 1 else "s")
        raise InputError(
            f"{argument} has {rows:,} rows and {wide}. Rows are runs, and there would be at least as many as examples: "
            f"pass {arg('axes', ('runs', 'examples'))} if that is so, or {arg('axes', ('examples', 'runs'))}."
        )


def _coded(
    values: Any, labels: AnyArray, kind: str, argument: str
) -> tuple[Any, NDArray[np.int64], tuple[Any, ...] | None]:
    """Number classes 0, 1, …; names and negative numbers are replaced by their place in order."""
    if kind == "probabilities":
        if len(values.shape) != 3:
            raise InputError(
                f"{argument} of kind 'probabilities' needs an axis for the classes. Of one probability for two classes "
                "make np.stack([1 - p, p], axis=2), or predicted classes, (p > 0.5).astype(int)."
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
        whole = np.dtype(values.dtype).kind in "bu" or not _smallest(values) < 0
        if whole:
            return values, _whole(labels, "labels"), None
    # np.unique would make a class of NaN.
    held = np.asarray(values)
    if held.dtype.kind == "f" and not np.isfinite(held).all():
        raise InputError(f"{argument} holds NaN or infinite values: a run that diverged?")
    names, codes = _codes(np.concatenate([labels.ravel(), held.ravel()]))
    size = len(labels)
    return codes[size:].reshape(held.shape), codes[:size], tuple(names.tolist())


def _smallest(values: Any) -> float:
    return min(float(np.asarray(values[i : i + 1024]).min()) for i in range(0, values.shape[0], 1024))


def _members(groups: ArrayLike) -> NDArray[np.int64]:
    """Number the groups."""
    values = _plain(np.asarray(as_unmasked(groups, "groups")), "groups")
    return _codes(_known(values, "groups"))[1]


def _known(values: AnyArray, argument: str) -> AnyArray:
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise InputError(f"{argument} holds NaN or infinite values: every example needs one.")
    return values


def _plain(values: AnyArray, argument: str) -> AnyArray:
    """Make numbers of objects if none is text, else text; nothing may be missing."""
    if values.dtype.kind != "O":
        return values
    held = values.ravel().tolist()
    missing = sum(1 for v in held if v is None or v != v or str(v) in ("<NA>", "NaT"))
    if missing:
        raise InputError(f"{argument} holds {missing} missing value(s), such as None or NaN.")
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
        raise InputError(f"{argument} must hold whole numbers: the class of each example.")
    codes = labels.astype(np.int64)
    if (codes != labels).any() or codes.min() < 0:
        raise InputError(f"{argument} must hold classes 0, 1, …, not {labels[codes != labels][:1]}.")
    return codes
