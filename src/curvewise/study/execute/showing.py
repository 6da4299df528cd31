"""A line at the start, a bar while it goes on, a line at the end; all on stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Advance = Callable[[float, str], None]


@contextmanager
def show_progress(total: float, show: bool | None) -> Iterator[Advance]:
    """Show a bar while the block runs; yields a function that moves it on and says how far it is.

    Parameters
    ----------
    total : float
        Amount of work; weighing the runs by their cost makes the time left honest.
    show : bool, optional
        By default only when stderr is a terminal.

    Examples
    --------
    >>> with show_progress(3, show=False) as advance:
    ...     advance(1, "1 run done")
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda amount, text: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task("starting", total=total)

        def advance(amount: float, text: str) -> None:
            progress.update(task, advance=amount, description=escape(text))

        yield advance


def say(text: str, show: bool | None) -> None:
    """Say something on stderr, unless it should be quiet."""
    if show is not False:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
