"""The columns that are neither size nor value: kept beside the measurements, under safe names."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from curvewise.io._columns import Roles
from curvewise.io._numbers import label_array
from curvewise.io._readings import Readings
from curvewise.io._table import listed

# What a frame of measurements calls its own columns.
_RESERVED = ("learner", "n", "error", "runs", "variance")
_COORDINATES = ("fold", "seed", "split", "metric")


def labels_of(readings: Readings, roles: Roles) -> tuple[dict[str, NDArray[Any]], list[str]]:
    """Make labels by name, and notes on those that a reader would not expect."""
    cells = readings.table.columns
    notes: list[str] = []
    several: list[str] = []
    labels = {role: label_array(cells[roles[role][0]]) for role in _COORDINATES if roles[role]}
    if readings.run is not None:
        labels["run"] = readings.run
    for name in _unclaimed(readings, roles):
        key = name
        while key in _RESERVED or key in labels:
            key += "_column"
        if key != name:
            notes.append(f"column {name!r} kept as the label {key!r}")
        labels[key] = label_array(cells[name])
        if name not in roles["learner"] and labels[key].dtype.kind == "U":
            kinds = len(set(labels[key].tolist()))  # a name of each row tells no curves apart
            several += [name] if 1 < kinds < max(len(labels[key]), 3) else []
    return labels, notes + _unjoined_note(several, roles)


def _unclaimed(readings: Readings, roles: Roles) -> list[str]:
    """Columns without a role, and the parts of a joined learner."""
    parts = roles["learner"] if len(roles["learner"]) > 1 else ()
    claimed = {name for names in roles.values() for name in names} - set(parts)
    return [name for name in readings.table.columns if name not in claimed]


def _unjoined_note(several: list[str], roles: Roles) -> list[str]:
    """Say which columns of text may separate curves but are not in the learner's name."""
    if not several:
        return []
    joined = [*several, *roles["learner"]]
    return [
        f"kept as labels and not part of the learner's name: {listed(several)}; to tell curves "
        f"apart by them pass columns={{'learner': [{listed(joined)}]}}"
    ]
