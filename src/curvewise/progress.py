"""A progress bar on stderr, with the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Advance(Protocol):
    """Moves a bar on, and may say how far it is."""

    def __call__(self, amount: float, text: str | None = None) -> None:
        """Move on by an amount of work."""


@contextmanager
def progress_bar(text: str, total: float, show: bool | None = None) -> Iterator[Advance]:
    """Show a bar while the block runs; yields a function that moves it on.

    Parameters
    ----------
    text : str
        Stands before the bar.
    total : float
        Amount of work; nothing is shown for none. Weighing the parts by their cost makes the time
        left honest.
    show : bool, optional
        By default only when stderr is a terminal.

    Examples
    --------
    >>> with progress_bar("training", total=3, show=False) as advance:
    ...     advance(1)
    """
    if not total or not (sys.stderr.isatty() if show is None else show):
        yield lambda amount, text=None: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(escape(text), total=total)

        def advance(amount: float, text: str | None = None) -> None:
            said = None if text is None else escape(text)
            progress.update(task, advance=amount, description=said)

        yield advance


def say(text: str, show: bool | None) -> None:
    """Say something on stderr, unless it should be quiet."""
    if show is not False:
        # Names out of files must not command the terminal.
        plain = "".join(c if c.isprintable() else " " for c in text)
        sys.stderr.write(f"{plain}\n")
        sys.stderr.flush()


# The progress of a measurement: a bar on stderr, or a function that is called with the share done.

Progress = bool | Callable[[float], None] | None
"""True or False, None for a bar where stderr is a terminal, or a function of the share done."""


@contextmanager
def progressing(text: str, total: float, progress: Progress) -> Iterator[Callable[[float], None]]:
    """Show how far it is while the block runs; yields a function that adds to what is done.

    >>> shares = []
    >>> with progressing("measuring", 4, shares.append) as advance:
    ...     advance(1)
    ...     advance(5)
    >>> shares
    [0.25, 1.0]
    """
    if callable(progress):
        tell, done = progress, 0.0

        def advance(amount: float) -> None:
            nonlocal done
            done = min(done + amount, total)
            tell(done / total)

        yield advance
    else:
        with progress_bar(text, total, progress) as move:
            yield move
