"""What a reader found, and how it becomes predictions with the user's word beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from curvewise.errors import InputError
from curvewise.io._table import shown
from curvewise.types import Predictions, as_predictions
from curvewise.types.predictions import AnyArray

_ASSUMED = {
    "errors": "0 and 1 taken as errors: pass kind='correct' if 1 means right",
    "losses": "numbers taken as losses: pass kind='scores' if high ones are good",
}


@dataclass(frozen=True, eq=False)
class Found:
    """Values and what came with them, not yet checked against each other.

    ``axes`` says what the axes are where the form of the source says it; ``predicted`` that the
    values were called predictions, which mean nothing without labels; ``arranged`` that what the
    user said of axes was used in reading; ``ordered`` that the examples have one order, so that
    labels may be given by position.
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


def finish(
    found: Found,
    *,
    labels: AnyArray | None = None,
    kind: str | None = None,
    axes: Sequence[str] | None = None,
    groups: AnyArray | None = None,
) -> Predictions:
    """Make predictions of what was found; what the user gives must not contradict it."""
    for name, given in (("labels", labels), ("groups", groups)):
        if given is not None and not found.ordered:
            raise InputError(
                f"{name}= is in the order of the examples, and runs in {found.source} list them in "
                f"different orders: put {name} in a column of it."
            )
    truth = agreed("labels", found.labels, labels, found.source)
    members = agreed("groups", found.groups, groups, found.source)
    kind = kind or found.kind
    if kind is None and found.predicted and truth is None:
        raise InputError(
            f"{found.source} holds predictions and no labels: pass labels=, an array or a file with"
            " the true class of each example; or, if these are no classes, kind='errors' or"
            " kind='correct' for 0 and 1, kind='losses' or kind='scores' for numbers."
        )
    if found.packed is not None:
        made = _unpackable(found, kind, truth, members)
    else:
        made = as_predictions(
            found.values,
            truth,
            kind=kind,
            axes=_axes(found, axes, kind),
            groups=members,
            argument=found.source,
        )
    notes = list(found.notes)
    if made.assumed:
        notes.append(_ASSUMED[made.kind])
    ids: Any = {"run_ids": _safe(found.run_ids), "example_ids": _safe(found.example_ids)}
    return replace(made, notes=tuple(note for note in notes if note), **ids)


def _axes(found: Found, axes: Sequence[str] | None, kind: str | None) -> tuple[str, ...] | None:
    known = found.axes
    if known is not None and axes is None and len(known) < len(found.values.shape):
        return (*known, "classes") if kind == "probabilities" else None
    if found.arranged:
        return known
    if known is None or axes is None or tuple(axes[: len(known)]) == known:
        return known if axes is None else tuple(axes)
    raise InputError(
        f"axes={tuple(axes)!r}: {found.source} has {' × '.join(known)} by its form; leave axes="
        " out, or begin with these."
    )


def agreed(
    name: str, there: AnyArray | None, given: AnyArray | None, source: str
) -> AnyArray | None:
    """What two places say of the examples, which must be the same if both speak."""
    if there is None or given is None:
        return there if given is None else given
    if np.shape(there) == np.shape(given) and bool(np.all(np.asarray(there) == np.asarray(given))):
        return there
    raise InputError(
        f"{name}= differs from the {name} that {source} brings along: leave {name}= out, or leave "
        f"those out with columns={{{name[:-1]!r}: None}}."
    )


def _unpackable(
    found: Found, kind: str | None, labels: AnyArray | None, groups: AnyArray | None
) -> Predictions:
    """Errors or hits as bits; labels and groups are coded as for any others."""

    def codes(values: AnyArray | None, whole: bool) -> Any:
        if values is None or (whole and np.asarray(values).dtype.kind in "iu"):
            return None if values is None else np.asarray(values).astype(np.int64)
        return np.unique(np.asarray(values), return_inverse=True)[1].astype(np.int64)

    return Predictions(
        found.values,
        kind or "errors",
        labels=codes(labels, True),
        groups=codes(groups, False),
        packed=found.packed,
        assumed=kind is None,
    )


def _safe(ids: AnyArray | None) -> AnyArray | None:
    """Names that can be printed: what could move a cursor is written out."""
    if ids is None or ids.dtype.kind not in "US":
        return ids
    words = [str(word) for word in ids.tolist()]
    if all(word.isprintable() and len(word) <= 120 for word in words):
        return np.array(words, dtype=np.str_)
    return np.array([shown(word) for word in words], dtype=np.str_)
