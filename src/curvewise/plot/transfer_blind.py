"""The blind guess: its constant for each class, or the losses that it makes."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from curvewise.plot.style import NEUTRAL, colour, new_axes, style
from curvewise.plot.text import clean, safe_names, safe_text, shorten
from curvewise.plot.transfer_parts import warned
from curvewise.plot.variance_axes import is_narrow, rows_of
from curvewise.plot.variance_parts import finish, note
from curvewise.tables import number
from curvewise.transfer.blind import BlindGuess

FREQUENCY = "curvewise-frequency"
LOSSES = "curvewise-losses"
RISK = "curvewise-risk"
MOST_CLASSES = 30


def plot_blind_guess(
    result: BlindGuess,
    ax: Axes | None = None,
    *,
    caption: bool | None = None,
) -> Axes:
    """Draw the frequencies that are guessed; where there are none, the losses of the examples.

    Parameters
    ----------
    result : BlindGuess
        What to draw.
    ax : Axes, optional
        Where; a new figure by default.
    caption : bool, optional
        Say what is shown under the picture; by default where there is room.

    Returns
    -------
    Axes
        The Axes given, or the new ones.

    Examples
    --------
    >>> from curvewise.transfer.blind import blind_guess
    >>> ax = plot_blind_guess(blind_guess(["cat", "dog", "dog", "dog"] * 20, "cross-entropy"))
    >>> [name.get_text() for name in ax.get_yticklabels()]
    ['dog', 'cat']
    """
    shares = _shares(result)
    with style():
        own = ax is None
        if shares is not None:
            ax = ax or new_axes(height=1.7 + 0.24 * min(len(shares), MOST_CLASSES))
            indent = _draw_frequencies(ax, result, shares) / 14
        else:
            ax = ax or new_axes(height=3.6)
            indent = 0.0
            _draw_losses(ax, result)
        finish(ax, own, [], _caption(result, shares), caption=caption, indent=indent)
    return ax


def _shares(result: BlindGuess) -> Any:
    """A frequency for each class, if that is the constant."""
    value = np.asarray(result.prediction)
    fits = value.dtype.kind == "f" and value.shape == (len(result.classes),)
    return value if fits and len(value) > 1 else None


def _draw_frequencies(ax: Axes, result: BlindGuess, shares: Any) -> int:
    """Bars from the most frequent class on; the length of the longest name."""
    order = np.argsort(-shares, kind="stable")[:MOST_CLASSES]
    names = safe_names([str(result.classes[i]) for i in order], 14 if is_narrow(ax) else 28)
    ax.barh(np.arange(len(order)), 100 * shares[order], height=0.72, color=colour(0), gid=FREQUENCY)
    rows_of(ax, names)
    ax.set_xlabel("guessed frequency (%)")
    return max(map(len, names))


def _draw_losses(ax: Axes, result: BlindGuess) -> None:
    """How the losses of examples are spread around the risk."""
    known = result.losses[np.isfinite(result.losses)]
    if len(known):
        bins = int(np.clip(np.sqrt(len(known)), 8, 60))
        ax.hist(known, bins=bins, color=NEUTRAL, alpha=0.55, gid=LOSSES)
    risk = result.risk
    if np.isfinite(risk.width):
        ax.axvspan(risk.low, risk.high, color=colour(0), alpha=0.25, linewidth=0.0, gid=RISK)
    ax.axvline(risk.estimate, color=colour(0), lw=1.8, gid=RISK, label="_risk")
    at: dict[str, Any] = {"xycoords": ax.get_xaxis_transform(), "va": "top", "color": colour(0)}
    text = f"risk {number(risk.estimate, 3)}"
    note(ax, text, (risk.estimate, 0.98), xytext=(4, 0), textcoords="offset points", **at)
    ax.set_xlabel(safe_text(f"loss of an example ({result.unit})", 60))
    ax.set_ylabel("examples")
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))


def _caption(result: BlindGuess, shares: Any) -> list[str]:
    r = result.risk
    said = f"The best constant for {shorten(clean(result.loss), 30)} has a risk of "
    said += f"{number(r.estimate)} [{number(r.low)}, {number(r.high)}]"
    said += f" ({100 * r.level:.4g}% interval, {result.examples:,} examples)."
    lines = [said]
    if shares is not None and len(shares) > MOST_CLASSES:
        lines.append(f"The {MOST_CLASSES} most frequent of {len(shares)} classes.")
    return [*lines, *warned(result)]
