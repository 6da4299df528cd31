"""Have a command of one's own train a model for a study, and read what it predicts."""

from __future__ import annotations

import shlex
import string
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import InputError, StoreError, os_reason
from curvewise.io._stored import DATA, is_file
from curvewise.nn.task import Trained
from curvewise.study._classes import HARD_NOTE
from curvewise.study._files import own_folder, write_file
from curvewise.study._outputs import BadOutput, read_metrics, read_numbers, read_set
from curvewise.study._process import run_process
from curvewise.study.digest import data_digest
from curvewise.study.learner import FIELDS

if TYPE_CHECKING:
    from curvewise.study.jobs import Job
    from curvewise.study.study import Study

MEASURED = ("error", "loss", "gap", "seconds")
"""What a command cannot say of itself; error.<set> and loss.<set> neither."""


def run_command(study: Study, job: Job) -> Trained:
    """Run the command of a job and read the predictions that it leaves.

    The command line is split into words as a shell would, then the fields in braces are filled in;
    no shell is involved, so that a value with spaces stays one word. ``python`` as the first word
    is the Python that runs curvewise. The command runs in the study's folder, in a process group of
    its own, which is killed whole when the time is up, or the study is interrupted or killed. Its
    fields are also in the environment: ``CURVEWISE_N``, ``CURVEWISE_OUT``, ….

    Fields: ``n``, ``fold``, ``init_seed``, ``order_seed``, ``augmentation_seed``, ``seed`` (the
    same as ``init_seed``), ``id`` of the run, the settings of the grid by name, and three paths:

    - ``rows``: a ``.npy`` file with the positions of the training examples;
    - ``data``: an ``.npz`` file, written once per store, with ``x``, ``y`` (which ``rows`` points
      into) and ``test_x``, ``test_y``, and the like for each further evaluation set. A command that
      has its own data need not ask for it;
    - ``out``: an empty folder.

    To ``out`` the command writes ``predictions.npy`` with the class of each test example, or
    ``probabilities.npy`` of shape (examples, classes), or both; for a further evaluation set,
    ``predictions.<set>.npy`` or ``probabilities.<set>.npy``; and, if it likes, ``metrics.json``
    with numbers by name, such as ``{"train_error": 0.01}``; those that are measured here (errors
    and losses of evaluation sets, ``gap``, ``seconds``) are ignored, and a note says so. Without
    probabilities the result is ``hard``: it has errors and no losses. Where targets are numbers,
    ``predictions.npy`` holds numbers in the shape of the targets, and nothing else is read.

    Parameters
    ----------
    study : Study
        Data and evaluation sets.
    job : Job
        One of its runs, whose learner has a ``command``.

    Returns
    -------
    Trained
        If the command fails, takes too long or leaves something else, ``error`` says so, with the
        end of what it printed.

    Raises
    ------
    InputError
        If the command asks for a field that there is not: no run of this learner can be made.
    StoreError
        If what the command is given cannot be written.

    Examples
    --------
    >>> import numpy as np
    >>> from curvewise.study.dataset import Dataset
    >>> from curvewise.study.learner import Learner
    >>> from curvewise.study.study import Study
    >>> code = "import numpy as np; np.save('{out}/predictions.npy', np.zeros(2, int))"
    >>> learner = Learner(command=f'python -c "{code}"')
    >>> data = Dataset(np.zeros((10, 1)), np.arange(10) % 2)
    >>> study = Study(data, {"constant": learner})
    >>> run_command(study, study.jobs[0]).probabilities["test"].tolist()
    [[1.0, 0.0], [1.0, 0.0]]
    """
    start = time.perf_counter()
    with ExitStack() as stack:
        try:
            place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="curvewise-")))
            words, environment, out = _prepare(study, job, place)
        except OSError as trouble:  # no fault of the run's: a full disk, say
            raise StoreError(
                f"What a command is given cannot be written: {os_reason(trouble)}. Run the study "
                "again once that is mended: it goes on where it stopped."
            ) from trouble
        error = run_process(words, study.folder.resolve(), environment, job.learner.timeout)
        found: dict[str, Any] = {"error": error}
        if error is None:
            found = _read_outputs(study, out)
    return Trained(seconds=time.perf_counter() - start, path="command", **found)


def _prepare(study: Study, job: Job, place: Path) -> tuple[list[str], dict[str, str], Path]:
    """Write what the command is given; gives its words, its environment and its folder."""
    out = place / "out"
    out.mkdir()
    values = _field_values(study, job, place / "rows.npy", out)
    words = fill_command(str(job.learner.command), values)
    np.save(values["rows"], study.rows_of(job.n, job.fold))
    environment = {f"CURVEWISE_{k.upper()}": str(v) for k, v in values.items() if v != ""}
    return words, environment, out


def fill_command(command: str, values: Mapping[str, Any]) -> list[str]:
    """Split a command line into words and fill in the fields.

    Parameters
    ----------
    command : str
        With fields in braces.
    values : dict
        Values of the fields.

    Returns
    -------
    list of str
        The program and its arguments.

    Raises
    ------
    InputError
        If a field is not known, or the line cannot be split.

    Examples
    --------
    >>> fill_command("train --n {n} --out {out}", {"n": 25, "out": "my folder"})
    ['train', '--n', '25', '--out', 'my folder']
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"command={command!r} cannot be split into words: {error}.") from error
    for name in asked_fields(command):
        if name not in values:
            raise InputError(
                f"command={command!r} asks for {{{name}}}: there is {', '.join(values)}. Double "
                "the braces for plain ones."
            )
    try:
        filled = [word.format_map(values) for word in words]
    except (ValueError, LookupError, AttributeError) as error:
        raise InputError(f"command={command!r} cannot be filled in: {error}.") from error
    if not filled:
        raise InputError("command is empty: write a program and its arguments.")
    return [sys.executable, *filled[1:]] if filled[0] == "python" else filled


def asked_fields(command: str) -> list[str]:
    """Names in braces, each once.

    >>> asked_fields("train {n} {out} {{not}} {n:05d}")
    ['n', 'out']
    """
    try:
        parsed = [name for _, name, _, _ in string.Formatter().parse(command) if name is not None]
    except ValueError as error:
        raise InputError(f"command={command!r}: {error}.") from error
    return list(dict.fromkeys(parsed))


def _field_values(study: Study, job: Job, rows: Path, out: Path) -> dict[str, Any]:
    """What a command may ask for; the file with the data is only written if it does."""
    settings = {**job.learner.options, **job.settings}
    if taken := sorted(set(settings) & set(FIELDS)):
        raise InputError(
            f"grid has {', '.join(taken)}, which a command is given already: use another name."
        )
    seeds = {f"{name}_seed": seed for name, seed in job.seeds.items()}
    values = {"n": job.n, "fold": job.fold, "seed": job.seeds["init"], **seeds, "id": job.id}
    values |= {"rows": str(rows), "out": str(out), "data": ""}
    if "data" in asked_fields(str(job.learner.command)):
        values["data"] = str(write_data(study))
    return {**values, **settings}


def write_data(study: Study) -> Path:
    """Write a study's examples to an ``.npz`` file in its store, unless they are there.

    Parameters
    ----------
    study : Study
        What to write.

    Returns
    -------
    Path
        The file, with ``x``, ``y`` and for each evaluation set ``<set>_x``, ``<set>_y``.
    """
    digest = data_digest([study.data_digest, *sorted(study.label_digests().items())])
    store = study.runs_folder.resolve()
    final = own_folder(store, DATA) / f"{digest}.npz"
    if is_file(final):
        return final
    arrays = {"x": study.examples.x, "y": study.examples.y}
    for name, part in study.evaluation_sets.items():
        arrays |= {f"{name}_x": part.x, f"{name}_y": part.y}
    save: Any = np.savez
    write_file(store, DATA, final.name, lambda file: save(file, **arrays))
    return final


def _read_outputs(study: Study, out: Path) -> dict[str, Any]:
    """What the command left, checked."""
    probabilities, numbers = {}, {}
    hard = False
    try:
        for name, part in study.evaluation_sets.items():
            if part.is_numbers:
                numbers[name] = read_numbers(out, name, part.y.shape)
                continue
            probabilities[name], only_classes = read_set(out, name, len(part.y), part.classes)
            hard = hard or only_classes
        metrics = read_metrics(out)
    except BadOutput as error:
        return {"error": f"The command ended well, but {error}"}
    notes: tuple[str, ...] = (HARD_NOTE,) if hard else ()
    if ignored := [name for name in metrics if name.partition(".")[0] in MEASURED]:
        metrics = {name: value for name, value in metrics.items() if name not in ignored}
        notes += (f"metrics.json: {', '.join(ignored)} ignored, as curvewise measures them.",)
    found = {"predictions": numbers} if numbers else {"probabilities": probabilities}
    return {**found, "metrics": metrics, "hard": hard, "notes": notes}
