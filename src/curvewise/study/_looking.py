"""Looking at the networks of a study one by one, in this process or in several."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from curvewise.errors import CurvewiseError, InputError, MissingDependencyError
from curvewise.nn._own_code import installed_only
from curvewise.progress import progress_bar
from curvewise.study.execute.options import choose_devices

if TYPE_CHECKING:
    from curvewise.study.study import Study

SAFE = "PYTHONSAFEPATH"


@dataclass(frozen=True)
class Task:
    """One network to look at: its run, the run of its twin, and where to compute."""

    run: str
    twin: str | None = None
    device: str | None = None


@dataclass(frozen=True, eq=False)
class Measured:
    """What was found for one network.

    Attributes
    ----------
    values : dict of str to float
        By measure; empty for a network that cannot be looked at.
    orientation : dict of str to int
        Whether more means a larger gap (1) or a smaller one (−1).
    notes : tuple of str
        What went wrong.
    """

    values: Mapping[str, float]
    orientation: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


Look = Callable[["Study", Task], Measured]


def tasks_for(
    study: Study,
    runs: Sequence[str],
    device: str | None,
    workers: int,
    twins: Mapping[str, str] | None = None,
) -> list[Task]:
    """A task for each run, spread over the GPUs that the workers may use."""
    devices = choose_devices(study, device, workers)[: max(1, workers)]
    twins = twins or {}
    return [Task(run, twins.get(run), devices[i % len(devices)]) for i, run in enumerate(runs)]


def look_at_runs(
    study: Study,
    look: Look,
    tasks: Sequence[Task],
    workers: int,
    progress: bool | None,
    tell: Callable[[str, Measured], None] | None = None,
) -> list[Measured]:
    """Look at every run and give what was found, in order.

    A network that cannot be looked at has no values, and a note that says why.

    Raises
    ------
    InputError
        If that is so for all of them.
    """
    found: dict[int, Measured] = {}
    each = _in_processes(study, look, tasks, workers) if workers else _here(study, look, tasks)
    with progress_bar("measuring", len(tasks), progress) as advance:
        for index, measured in each:
            found[index] = measured
            if tell is not None:
                tell(tasks[index].run, measured)
            advance(1, f"{len(found)}/{len(tasks)} models")
    if not any(one.values for one in found.values()):
        raise InputError(f"No network can be measured. {found[0].notes[0]}")
    return [found[i] for i in range(len(tasks))]


def _here(study: Study, look: Look, tasks: Sequence[Task]) -> Iterator[tuple[int, Measured]]:
    for index, task in enumerate(tasks):
        yield index, _looked(study, look, task)


def _in_processes(
    study: Study, look: Look, tasks: Sequence[Task], workers: int
) -> Iterator[tuple[int, Measured]]:
    context = multiprocessing.get_context("spawn")
    known = (study, look, os.environ.get(SAFE))
    with _safe_path():
        pool = ProcessPoolExecutor(min(workers, len(tasks)), context, _start, known)
    try:
        with _safe_path():  # submitting is what starts the workers
            waiting = {pool.submit(_look, task): i for i, task in enumerate(tasks)}
        for future in as_completed(waiting):
            yield waiting[future], future.result()
    except BrokenProcessPool as error:
        raise CurvewiseError(
            "A worker died, perhaps for lack of memory, or because the calling script does not "
            "guard what it does by if __name__ == '__main__'. Use fewer workers; workers=0 needs "
            "none."
        ) from error
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _safe_path() -> Iterator[None]:
    """Start processes that do not look for modules in the current folder first.

    Until a new process has been sent our path, it has Python's usual one, with that folder in it.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = "1"
    try:
        yield
    finally:
        del os.environ[SAFE]
        if before is not None:
            os.environ[SAFE] = before


_GIVEN: list[tuple[Study, Look]] = []


def _start(study: Study, look: Look, safe: str | None) -> None:
    os.environ.pop(SAFE, None)  # which programs that a network starts should not inherit
    if safe is not None:
        os.environ[SAFE] = safe
    # Only now: what look holds, perhaps a function of the caller's, was found as the caller does.
    sys.path[:] = installed_only(sys.path, study.folder)
    _GIVEN[:] = [(study, look)]  # its data is loaded once, when the first task needs it


def _look(task: Task) -> Measured:
    return _looked(*_GIVEN[0], task)


def _looked(study: Study, look: Look, task: Task) -> Measured:
    """What is found; whatever is wrong with one network, the others go on."""
    from curvewise.nn.trained import one_thread

    try:
        with one_thread():
            return look(study, task)
    except MissingDependencyError:
        raise
    except Exception as error:
        kind = "" if isinstance(error, CurvewiseError) else f"{type(error).__name__}: "
        return Measured({}, notes=(f"Run {task.run} cannot be measured: {kind}{error}",))
