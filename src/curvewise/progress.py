"""Progress on stderr: a bar with the time left in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

LINE_SECONDS = 30.0
"""Between two lines of progress where there is no terminal: in a log file or a notebook."""


class Advance(Protocol):
    """Moves a bar on, and may change the text before it."""

    def __call__(self, amount: float, text: str | None = None) -> None:
        """Move on by an amount of work."""


@contextmanager
def progress_bar(
    text: str, total: float, show: bool | None = None, *, status: Callable[[], str] | None = None
) -> Iterator[Advance]:
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
    status : callable, optional
        Gives the text behind the bar, asked for whenever it is drawn, in place of the percentage and the time left.
        Where stderr is no terminal, the text is printed as a line every half minute, unless ``show`` is False.

    Examples
    --------
    >>> with progress_bar("training", total=3, show=False) as advance:
    ...     advance(1)
    """
    if not total or not (sys.stderr.isatty() if show is None else show):
        yield _lines(status) if status is not None and total and show is None else lambda amount, text=None: None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.text import Text

    class StatusColumn(ProgressColumn):
        def render(self, task: Any) -> Text:
            # On one line whatever the width: a bar of two lines would jump.
            return Text("" if status is None else status(), no_wrap=True, overflow="ellipsis")

    columns: tuple[ProgressColumn, ...] = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(elapsed_when_finished=False),
    )
    if status is not None:
        columns = (TextColumn("{task.description}"), BarColumn(bar_width=10), TimeElapsedColumn(), StatusColumn())
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(escape(text), total=total)

        def advance(amount: float, text: str | None = None) -> None:
            shown = None if text is None else escape(text)
            progress.update(task, advance=amount, description=shown)

        yield advance


@contextmanager
def waiting(text: str, show: bool | None = None) -> Iterator[None]:
    """Show in a terminal what is going on, with no share done; nothing remains of it afterwards."""
    if not sys.stderr.isatty() or show is False:
        yield
        return
    from rich.console import Console
    from rich.text import Text

    with Console(stderr=True).status(Text(f"{text} …")):
        yield


def _lines(status: Callable[[], str]) -> Advance:
    """Print how far it is every half minute."""
    last = time.monotonic()

    def advance(amount: float, text: str | None = None) -> None:
        nonlocal last
        if time.monotonic() - last >= LINE_SECONDS:
            last = time.monotonic()
            say(f"{status()}.", None)

    return advance


def say(text: str, show: bool | None) -> None:
    """Print a line on stderr, unless ``show`` is False."""
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
