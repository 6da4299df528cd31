"""Have a command of one's own train a model for a study, and read what it predicts."""

from __future__ import annotations

import json
import math
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, StoreError, os_reason, parse_reason
from curvewise.nn.task import Trained
from curvewise.store.read import DATA, is_file
from curvewise.store.record import data_digest, set_name
from curvewise.store.write import own_folder, write_file
from curvewise.study.data.dataset import HARD_NOTE, as_predicted, one_hot
from curvewise.study.spec.design import FIELDS, asked_fields

if TYPE_CHECKING:
    from curvewise.study.spec.study import Job, StudySpec


MEASURED = ("error", "loss", "gap", "seconds")
"""Metrics that a command cannot report itself; error.<set> and loss.<set> neither."""


def run_command(study: StudySpec, job: Job) -> Trained:
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
    >>> from curvewise.study.data.dataset import Dataset
    >>> from curvewise.study.spec.design import Learner
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
            (out := place / "out").mkdir()
            values = _field_values(study, job, place / "rows.npy", out)
            words = fill_command(str(job.learner.command), values)
            np.save(values["rows"], study.rows_of(job.n, job.fold))
        except OSError as trouble:  # no fault of the run's: a full disk, say
            raise StoreError(
                f"What a command is given cannot be written: {os_reason(trouble)}. Run the study "
                "again once that is fixed: it will continue where it stopped."
            ) from trouble
        environment = {f"CURVEWISE_{k.upper()}": str(v) for k, v in values.items() if v != ""}
        error = run_process(words, study.folder.resolve(), environment, job.learner.timeout)
        found: dict[str, Any] = {"error": error}
        if error is None:
            found = _read_outputs(study, out)
    return Trained(seconds=time.perf_counter() - start, path="command", **found)


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
        raise InputError(f"cannot be split into words: {error}.", argument="command", value=command) from error
    for name in asked_fields(command):
        if name not in values:
            problem = f"asks for {{{name}}}: there is {', '.join(values)}. Double the braces for plain ones."
            raise InputError(problem, argument="command", value=command)
    try:
        filled = [word.format_map(values) for word in words]
    except (ValueError, LookupError, AttributeError) as error:
        raise InputError(f"cannot be filled in: {error}.", argument="command", value=command) from error
    if not filled:
        raise InputError("is empty: write a program and its arguments.", argument="command")
    return [sys.executable, *filled[1:]] if filled[0] == "python" else filled


def check_options(options: Mapping[str, Any]) -> None:
    """Refuse settings of a grid that have the names of fields."""
    if taken := sorted(set(options) & set(FIELDS)):
        problem = f"has {', '.join(taken)}, which a command is given already: use another name."
        raise InputError(problem, argument="grid")


def _field_values(study: StudySpec, job: Job, rows: Path, out: Path) -> dict[str, Any]:
    """Give the fields that a command may ask for; the file with the data is only written if it does."""
    settings = {**job.learner.options, **job.settings}
    check_options(settings)
    seeds = {f"{name}_seed": seed for name, seed in job.seeds.items()}
    values = {"n": job.n, "fold": job.fold, "seed": job.seeds["init"], **seeds, "id": job.id}
    values |= {"rows": str(rows), "out": str(out), "data": ""}
    if "data" in asked_fields(str(job.learner.command)):
        values["data"] = str(write_data(study))
    return {**values, **settings}


def write_data(study: StudySpec) -> Path:
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
    # Named by its content: studies that share a store share the file, and other data has another name.
    digest = data_digest([study.data_digest, *sorted(study.label_digests().items())])
    store = study.runs_folder.resolve()
    final = own_folder(store, DATA) / f"{digest}.npz"
    if is_file(final):
        return final
    arrays = {"x": study.examples.x, "y": study.examples.y}
    for name, part in study.evaluation_sets.items():
        arrays |= {f"{name}_x": part.x, f"{name}_y": part.y}
    # Not compressed: commands map it, and photographs do not shrink.
    save: Any = np.savez
    write_file(store, DATA, final.name, lambda file: save(file, **arrays))
    return final


def _read_outputs(study: StudySpec, out: Path) -> dict[str, Any]:
    """Read and check the files that the command left."""
    probabilities, numbers = {}, {}
    hard = False
    try:
        for name, part in study.evaluation_sets.items():
            if study.dataset.is_numbers:
                numbers[name] = read_numbers(out, name, part.y.shape)
                continue
            probabilities[name], only_classes = read_set(out, name, len(part.y), part.classes)
            hard = hard or only_classes
        metrics = read_metrics(out)
    except BadOutput as error:
        return {"error": f"The command succeeded, but {error}"}
    notes: tuple[str, ...] = (HARD_NOTE,) if hard else ()
    if ignored := [name for name in metrics if name.partition(".")[0] in MEASURED]:
        metrics = {name: value for name, value in metrics.items() if name not in ignored}
        notes += (f"metrics.json: {', '.join(ignored)} ignored, as curvewise measures them.",)
    found = {"predictions": numbers} if numbers else {"probabilities": probabilities}
    return {**found, "metrics": metrics, "hard": hard, "notes": notes}


# Read and check what a command of one's own left in its folder.

# A file of metrics that is larger is something else, a log say.
LARGEST_JSON = 1_000_000  # bytes
# Softmax in half precision is off by about a thousandth; logits are off by far more.
SUM_TOLERANCE = 0.01


class BadOutput(Exception):
    """A file is missing or holds something else than expected; the message says what."""


def read_set(out: Path, name: str, examples: int, classes: int) -> tuple[NDArray[np.float32], bool]:
    """Read the predictions for one evaluation set.

    Returns
    -------
    probabilities : ndarray of float32, shape (examples, classes)
        As given, or 0 and 1 from predicted classes.
    hard : bool
        Whether they come from predicted classes.
    """
    by_class, by_probability = (out / f"{set_name(kind, name)}.npy" for kind in ("predictions", "probabilities"))
    if not by_class.exists() and not by_probability.exists():
        raise _left_nothing(out, name, f"neither {by_class.name} nor {by_probability.name}", "write one of them")
    predicted = _read_classes(by_class, examples, classes) if by_class.exists() else None
    if not by_probability.exists():
        assert predicted is not None
        return one_hot(predicted, classes, by_class.name), True
    probabilities = _read_probabilities(by_probability, examples, classes)
    if predicted is not None:
        own = probabilities[np.arange(examples), predicted.astype(np.int64)]
        if against := int((own < probabilities.max(axis=1)).sum()):
            raise BadOutput(
                f"{by_class.name} and {by_probability.name} disagree: for {against} of {examples} examples the "
                "predicted class is not the most probable one. Write only the one that is meant."
            )
    return probabilities, False


def read_numbers(out: Path, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    """Read the predicted numbers for one evaluation set, in the shape of its targets."""
    path = out / f"{set_name('predictions', name)}.npy"
    expected = f"expected finite numbers of shape {shape}, that of the targets"
    if not path.exists():
        raise _left_nothing(out, name, f"no {path.name}", f"{expected}; write them")
    try:
        numbers = as_predicted(_read_array(path, expected), shape, path.name)
    except ValueError as error:
        raise BadOutput(str(error)) from error
    if not np.isfinite(numbers).all():
        raise BadOutput(f"{path.name} holds NaN or infinity: {expected}.")
    return numbers


def _left_nothing(out: Path, name: str, lacking: str, remedy: str) -> BadOutput:
    there = ", ".join(sorted(p.name for p in out.iterdir())) or "nothing"
    return BadOutput(
        f"it left {lacking} for the evaluation set {name!r}: {remedy} to the folder {{out}}. There is {there}."
    )


def read_metrics(out: Path) -> dict[str, float]:
    """Read ``metrics.json``, if there is one."""
    path = out / "metrics.json"
    if not path.exists():
        return {}
    expected = 'expected numbers by name, such as {"train_error": 0.01}'
    if path.stat().st_size > LARGEST_JSON:
        raise BadOutput(f"{path.name} is {path.stat().st_size:,} bytes long: {expected}.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise BadOutput(f"{path.name} is not JSON ({parse_reason(error)}): {expected}.") from error
    if not isinstance(found, dict):
        raise BadOutput(f"{path.name} holds a {type(found).__name__}: {expected}.")
    for name, value in found.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadOutput(f"{path.name} has {name!r}: {value!r:.80}: {expected}.")
        if not math.isfinite(value):
            raise BadOutput(f"{path.name} has {name!r}: {value}: leave out what is not finite.")
    return {name: float(value) for name, value in found.items()}


def _read_classes(path: Path, examples: int, classes: int) -> NDArray[Any]:
    expected = f"expected whole numbers of shape ({examples},), from 0 to {classes - 1}: the class of each example"
    array = _read_array(path, expected, "iu", (examples,))
    if array.min() < 0 or array.max() >= classes:
        raise BadOutput(f"{path.name} holds numbers from {array.min()} to {array.max()}: {expected}.")
    return array


def _read_probabilities(path: Path, examples: int, classes: int) -> NDArray[np.float32]:
    expected = f"expected fractions of shape ({examples}, {classes}), each row with the sum 1"
    wide = _read_array(path, expected, "f", (examples, classes)).astype(np.float64)
    if not np.isfinite(wide).all():
        raise BadOutput(f"{path.name} holds NaN or infinity: {expected}.")
    sums = wide.sum(axis=1)
    if wide.min() < 0 or wide.max() > 1 + SUM_TOLERANCE or abs(sums - 1).max() > SUM_TOLERANCE:
        raise BadOutput(
            f"{path.name} holds values from {wide.min():.4g} to {wide.max():.4g}, with sums from "
            f"{sums.min():.4g} to {sums.max():.4g}: {expected}. Apply a softmax to logits."
        )
    return wide.astype(np.float32)


def _read_array(path: Path, expected: str, kinds: str = "", shape: tuple[int, ...] | None = None) -> NDArray[Any]:
    """Read an array of one of some kinds of types, and of a shape."""
    try:  # mapped first, so that a header that lies about its size costs no memory
        array = np.array(np.lib.format.open_memmap(path, mode="r"))
    except (ValueError, EOFError, OSError, OverflowError) as error:
        raise BadOutput(
            f"{path.name} cannot be read as a .npy file without Python objects ({error}): {expected}."
        ) from error
    if kinds and array.dtype.kind not in kinds:
        raise BadOutput(f"{path.name} holds {array.dtype}: {expected}.")
    if shape is not None and array.shape != shape:
        raise BadOutput(f"{path.name} has shape {array.shape}: {expected}.")
    return array


# Run a program to its end, with everything that it starts, and no longer than we live.

TAIL = 8_000
"""Bytes of a program's output that are kept for the error text."""


def run_process(
    words: Sequence[str], folder: Path, environment: Mapping[str, str], timeout: float | None = None
) -> str | None:
    """Run a program without a shell, in a process group of its own.

    Parameters
    ----------
    words : sequence of str
        The program and its arguments.
    folder : Path
        Where it runs.
    environment : dict of str to str
        Added to our own environment.
    timeout : float, optional
        Seconds after which it is killed.

    Returns
    -------
    str or None
        What went wrong, with the end of what it printed; None if nothing did.

    Examples
    --------
    >>> import sys
    >>> run_process([sys.executable, "-c", "print('done')"], Path(), {})
    >>> print(run_process([sys.executable, "-c", "exit(3)"], Path(), {}))
    $ ... -c 'exit(3)'
    ended with exit status 3. It printed nothing.
    """
    command = f"$ {shlex.join(words)}"
    try:
        process = subprocess.Popen(
            words,
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # A group of its own, so that what it starts can be killed with it.
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        return f"{command}\ncannot be started in {folder}: {error}"
    assert process.stdout is not None
    tail = _Tail(process.stdout)
    late = False
    try:
        with _guarded(process.pid):
            process.wait(timeout)
    except subprocess.TimeoutExpired:
        late = True
    finally:  # also when we are interrupted; and what the program left running ends with it
        kill_group(process)
        tail.finish()
    if late:
        return f"{command}\ntook longer than timeout={timeout:g} seconds and was killed.{tail.text()}"
    if process.returncode != 0:
        return f"{command}\n{_how_it_ended(process.returncode)}.{tail.text()}"
    return None


@contextmanager
def _guarded(group: int) -> Iterator[None]:
    """Have the group killed if we are: by SIGKILL, say, after which we can do nothing ourselves.

    A shell waits for a line that never comes. When we are gone, the other end of the pipe is
    closed, it stops waiting, and kills the group.
    """
    shell = Path("/bin/sh")
    if not shell.exists():
        yield
        return
    script = 'read line; kill -s KILL -- "-$1"'
    with subprocess.Popen(
        [shell, "-c", script, "guard", str(group)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as guard:
        try:
            yield
        finally:
            guard.kill()


class _Tail:
    """The end of what a process prints, read while it runs so that it never waits for us."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._kept, self._cut = b"", False
        self._stream = stream
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while chunk := os.read(self._stream.fileno(), 65_536):
            whole = self._kept + chunk
            self._cut = self._cut or len(whole) > TAIL
            self._kept = whole[-TAIL:]

    def finish(self) -> None:
        """Read what is left; a process that fled its group may hold the other end open."""
        self._thread.join(timeout=5)
        if not self._thread.is_alive():
            self._stream.close()

    def text(self) -> str:
        """The last output, on lines of its own."""
        printed = self._kept.decode(errors="replace").strip()
        if not printed:
            return " It printed nothing."
        return f" The {'end' if self._cut else 'whole'} of what it printed:\n{printed}"


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that leads a group, with everything that it has started."""
    with suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _how_it_ended(status: int) -> str:
    if status > 0:
        return f"ended with exit status {status}"
    with suppress(ValueError):
        return f"was killed by signal {-status} ({signal.Signals(-status).name})"
    return f"was killed by signal {-status}"
