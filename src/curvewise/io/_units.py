"""Error or accuracy, fraction or percent: what the names say, held against what the user says."""

from __future__ import annotations

from collections.abc import Sequence

from curvewise.errors import InputError
from curvewise.io._columns import direction, is_score, says_percent
from curvewise.io._table import brief, listed
from curvewise.types import Unit


def decide_unit(
    unit: str | None, higher_is_better: bool | None, columns: Sequence[str], metric: str | None
) -> Unit:
    """Make the unit; what the arguments do not say, the names do.

    Parameters
    ----------
    unit, higher_is_better
        As the user gave them.
    columns : sequence of str
        Names of the value columns; empty where names are learners or sizes.
    metric : str, optional
        The one value in the column of metrics.
    """
    if higher_is_better not in (None, True, False):
        raise InputError(f"higher_is_better={higher_is_better!r} must be True, False or None.")
    names = [*columns, metric] if metric else list(columns)
    said = {direction(name) for name in names} - {None}
    if higher_is_better is None and len(said) > 1:
        raise InputError(
            f"The names {listed(names)} disagree on whether higher is better: pass "
            "higher_is_better=True or higher_is_better=False."
        )
    unit = named_unit(unit, names)
    if higher_is_better is None and unit != "loss":
        return Unit(unit, True in said)
    chosen = Unit(unit, bool(higher_is_better))
    against = [k for k in names if _contradicts(k, chosen.higher_is_better)]
    if against:
        raise InputError(_contradiction(against[0], chosen, higher_is_better))
    return chosen


def named_unit(unit: str | None, names: Sequence[str]) -> str:
    """The unit as given; else percent if a name says so, and fractions if none does.

    >>> named_unit(None, ["error (%)"]), named_unit(None, ["error"]), named_unit("loss", ["x %"])
    ('percent', 'fraction', 'loss')
    """
    percent = [name for name in names if says_percent(name)]
    if unit == "fraction" and percent:
        raise InputError(
            f"unit='fraction' contradicts the name {listed(percent[:1])}, which says percent: pass "
            "unit='percent', or give the column its right name."
        )
    return unit or ("percent" if percent else "fraction")


def ask_percent(unit: str | None, names: Sequence[str], what: str, source: str) -> None:
    """Raise where columns are called by learners or the like and one of them has a % in it."""
    found = [name for name in names if says_percent(name)]
    if unit is None and found:
        raise InputError(
            f"The columns of {source} are {what}, and {listed(found[:3])} may say that values are "
            "percentages: pass unit='percent', or unit='fraction' if they are not."
        )


def unit_note(unit: Unit, columns: Sequence[str]) -> str:
    """How values were read, in a few words."""
    if unit.higher_is_better and not unit.bounded:
        return "a score, higher is better"
    if unit.higher_is_better:
        what = columns[0] if len(columns) == 1 else "value"
        return f"higher is better, turned into error = {unit.top:g} − {_plain(what)}"
    if unit.name == "loss":
        return "a loss, lower is better"
    loss = any("loss" in name.lower() for name in columns)
    unbounded = "; for an unbounded loss pass unit='loss'" if loss else ""
    return f"an error from 0 to {unit.top:g}{unbounded}"


def _contradicts(name: str, higher_is_better: bool) -> bool:
    hint = direction(name)
    return hint is not None and hint != higher_is_better and not is_score(name)


def _contradiction(name: str, unit: Unit, higher_is_better: bool | None) -> str:
    setting = "unit='loss'" if higher_is_better is None else f"higher_is_better={higher_is_better}"
    better = "lower" if unit.higher_is_better else "higher"
    return (
        f"{setting} contradicts the name {listed([name])}, for which {better} is better. Leave "
        "the setting out, or give the column its right name."
    )


def _plain(name: str) -> str:
    """Write a name inside a formula: as it is if it is a word, else in quotes."""
    return name if name.isidentifier() else brief(name)
