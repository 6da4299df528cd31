"""A progress bar on stderr, with the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(
    text: str, total: float, show: bool | None = None
) -> Iterator[Callable[[float], None]]:
    """Show a bar while the block runs; yields a function that moves it on.

    Parameters
    ----------
    text : str
        Stands before the bar.
    total : float
        Amount of work. Weighing the parts by their cost makes the time left honest.
    show : bool, optional
        By default only when stderr is a terminal.

    Examples
    --------
    >>> with progress_bar("training", total=3, show=False) as advance:
    ...     advance(1)
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda amount: None
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
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(escape(text), total=total)
        yield lambda amount: progress.advance(task, amount)
