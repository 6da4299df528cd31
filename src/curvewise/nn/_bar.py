"""How far a measurement is: a bar on stderr, or a function that is told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from curvewise.progress import progress_bar

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
