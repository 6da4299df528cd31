"""What is to be measured: tasks, methods and sizes by what was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from curvewise.errors import InputError
from curvewise.tables import whole
from curvewise.transfer.comparison import AVERAGE
from curvewise.transfer.transfer_result import near
from curvewise.types import FloatArray, TransferRisks, as_floats

Sizes = Sequence[float] | Mapping[str, Sequence[float]]


def chosen_tasks(
    risks: TransferRisks, sizes: Sizes | None, tasks: Sequence[str] | None
) -> tuple[str, ...]:
    """Tasks asked for, or all; their names and those of ``sizes`` must be known."""
    known = risks.task_names
    if AVERAGE in known:
        raise InputError(f"task holds {AVERAGE!r}, which a mean over tasks is called: rename it.")
    if isinstance(tasks, str):
        raise InputError(f"tasks={tasks!r} is one text: give a list of names.")
    for argument, names in (("tasks", tasks), ("sizes", sizes if _by_task(sizes) else None)):
        for name in names or ():
            if name not in known:
                text = near(str(name), known)
                raise InputError(f"{argument} holds {name!r}, none of {list(known)!r}.{text}")
    if tasks is not None and not len(tasks):
        raise InputError("tasks is empty: name at least one, or leave it out for all.")
    return known if tasks is None else tuple(dict.fromkeys(tasks))


def _by_task(sizes: Sizes | None) -> bool:
    return isinstance(sizes, Mapping)


def check_methods(risks: TransferRisks, methods: Sequence[str] | None) -> None:
    """Raise unless methods asked for are there."""
    if isinstance(methods, str):
        raise InputError(f"methods={methods!r} is one text: give a list of names.")
    for name in methods or ():
        if name not in risks.method_names:
            known = list(risks.method_names)
            raise InputError(f"methods holds {name!r}, none of {known!r}.{near(name, known)}")


def chosen_sizes(
    risks: TransferRisks, own: TransferRisks, sizes: Sizes | None, task: str
) -> FloatArray | None:
    """Sizes asked for, of which a task has some."""
    by_task = isinstance(sizes, Mapping)
    wanted = sizes.get(task) if isinstance(sizes, Mapping) else sizes
    if wanted is None:
        return None
    chosen = np.atleast_1d(as_floats(wanted, "sizes"))
    there = np.unique(own.n if by_task else risks.n)
    for size in chosen:
        if size not in there:
            raise InputError(
                f"sizes holds {whole(size)}, which was not measured; there are "
                f"{[whole(n) for n in there]!r}."
            )
    start = own.n[(own.methods == own.scratch) & ~np.isnan(own.risk)]
    if not np.isin(start, chosen).any():
        raise InputError(f"sizes={wanted!r} holds none at which {own.scratch!r} has {task!r}.")
    return chosen
