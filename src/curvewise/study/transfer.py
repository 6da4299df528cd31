"""Transfer out of studies: risks of their learners, with the controls."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.reading.roles import normal
from curvewise.store.record import TEST
from curvewise.study.results import choose_runs, label_of
from curvewise.text import arg
from curvewise.transfer.blind import blind_guess
from curvewise.transfer.load import BLIND, MAXIMAL, SCRATCH, RiskRows, find_control, find_scratch
from curvewise.transfer.risks import Control, TransferRisks
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions

if TYPE_CHECKING:
    from curvewise.study.study import Study
    from curvewise.transfer.wins import WinRates


SOURCE = "the studies"
METRICS = ("loss", "error")


def transfer_risks(
    studies: Study | Mapping[str, Study],
    *,
    metric: str | None = None,
    evaluation: str = TEST,
    scratch: str | None = None,
    blind: Any = None,
    maximal: Any = None,
) -> TransferRisks:
    """Risks of every learner by training size, with the controls, for :func:`measure_transfer`.

    Parameters
    ----------
    studies : Study or dict of str to Study
        By task; a single one is called by its name.
    metric : {"loss", "error"}, optional
        Cross-entropy or what numbers are trained with, or the share of wrong classes. By default
        the error, and the loss where a study predicts numbers.
    evaluation : str
        On which evaluation set.
    scratch : str, optional
        The learner that starts from nothing; by default the only one without ``weights`` that is
        no other control, or of several the one called scratch, random, ….
    blind, maximal : str, number, Interval, Control, or dict of these by task, optional
        The controls: a learner, or its risk. By default learners called blind, dummy, …, and gold,
        maximal, …; of their sizes the largest counts. Without such a learner the blind guess is
        computed: the best constant for the targets that may be trained on, measured on the
        evaluation set; for images a constant for each pixel.

    Returns
    -------
    TransferRisks
        A row for each run; failed ones have NaN. Settings of a grid make a learner another method.

    Raises
    ------
    InputError
        If no run is done, or scratch cannot be told.

    Warns
    -----
    CurvewiseWarning
        If runs failed or are missing.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Design, Learner, Study
    >>> study = Study(
    ...     data="digits",
    ...     learners={
    ...         "scratch": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
    ...         "trees": Learner(estimator="sklearn.tree:DecisionTreeClassifier"),
    ...     },
    ...     design=Design(sizes=[100, 200, 400], folds=2),
    ...     folder=tempfile.mkdtemp(),
    ... )
    >>> study.run(workers=0, progress=False).done
    12
    >>> risks = transfer_risks(study)
    >>> risks, round(risks.blind["study"].risk, 2)
    (TransferRisks(12 runs, 1 task, 2 methods, 3 sizes from 100 to 400), 0.9)
    """
    by_task = _by_task(studies)
    if metric is None:
        metric = "loss" if any(s.dataset.is_numbers for s in by_task.values()) else "error"
    if metric not in METRICS:
        raise InputError(f"metric={metric!r}: use one of {', '.join(map(repr, METRICS))}.")
    measured = {task: s.measurements(metric, evaluation) for task, s in by_task.items()}
    rows = _rows(measured)
    given = find_control(rows, BLIND, blind, float, SOURCE, scratch)
    best = find_control(rows, MAXIMAL, maximal, float, SOURCE, scratch)
    gone = [*given.methods, *best.methods]
    start = _scratch(rows, by_task, scratch, gone)
    # A blind learner that was trained comes before a computed guess.
    without = [task for task in by_task if task not in given.control]
    guesses = {task: blind_control(by_task[task], metric, evaluation) for task in without}
    keep = ~np.isin(rows.methods, gone)
    return TransferRisks(
        tasks=rows.tasks[keep],
        methods=rows.methods[keep],
        n=rows.n[keep],
        risk=rows.risk[keep],
        seeds=_joined(measured, "_seed")[keep],
        folds=_joined(measured, "fold")[keep],
        scratch=start,
        blind={**given.control, **guesses},
        maximal=best.control,
        unit=f"{evaluation} {metric}",
        notes=(
            *(f"{task}: {text}" for task, m in measured.items() for text in m.notes),
            f"scratch: {start!r}",
            *(given.notes if given.control else ()),
            *(f"{task}: blind guess computed, {c.source}" for task, c in guesses.items()),
            *best.notes,
        ),
    )


def _by_task(studies: Any) -> dict[str, Study]:
    from curvewise.study.study import Study

    by_task = dict(studies) if isinstance(studies, Mapping) else {None: studies}
    if not by_task:
        raise InputError("studies is empty: give at least one.")
    for study in by_task.values():
        if not isinstance(study, Study):
            raise InputError(
                f"studies holds {study!r:.60}: give a study, as load_study('….toml') reads it, or "
                "a dictionary of them by task."
            )
    return {study.name if task is None else str(task): study for task, study in by_task.items()}


def blind_control(study: Study, metric: str = "loss", evaluation: str = TEST) -> Control:
    """The blind guess of a study: the best constant of its training targets, on an evaluation set.

    Parameters
    ----------
    study : Study
        Its data, and the loss of its learners where targets are numbers.
    metric : {"loss", "error"}
        Of classes: cross-entropy, or the share of wrong ones.
    evaluation : str
        Where it is measured.
    """
    targets = study.examples.y[study.train_rows]
    test = study.test_examples() if evaluation == TEST else study.evaluation_sets[evaluation]
    if not study.dataset.is_numbers:
        loss = "error" if metric == "error" else "cross-entropy"
        classes = len(study.dataset.classes)
        return blind_guess(targets, loss, test_targets=test.y, classes=classes).control()
    losses = {job.learner.loss for job in study.jobs if not job.is_search} - {None}
    if metric == "error" or len(losses) != 1:
        raise InputError(
            f"metric={metric!r}, and learners are judged by {sorted(map(str, losses))}: a blind "
            f"guess is for one loss of numbers. Pass {arg('blind')} with its risk."
        )
    per = "pixel" if targets.ndim > 2 else "output"
    return blind_guess(targets, str(losses.pop()), test_targets=test.y, per=per).control()


def _rows(measured: Mapping[str, Measurements]) -> RiskRows:
    return RiskRows(
        np.concatenate([np.full(len(m), task) for task, m in measured.items()]),
        np.concatenate([m.learner for m in measured.values()]),
        np.concatenate([m.n for m in measured.values()]),
        np.concatenate([m.error for m in measured.values()]),
    )


def _joined(measured: Mapping[str, Measurements], ending: str) -> NDArray[np.str_]:
    """Coordinates of each run whose names end so, as one text."""
    found = []
    for m in measured.values():
        columns = [m.labels[name].tolist() for name in m.labels if name.endswith(ending)]
        found += ["/".join(map(str, values)) for values in zip(*columns, strict=True)]
    return np.array(found)


def _scratch(rows: RiskRows, studies: Mapping[str, Study], given: str | None, taken: Sequence[str]) -> str:
    """The learner without weights, or of several the one that is called scratch."""
    if given is not None:
        return find_scratch(rows, given, taken, SOURCE)
    free = dict.fromkeys(
        label_of(study, job)
        for study in studies.values()
        for job in study.jobs
        if not job.is_search and _starts_from_nothing(job)
    )
    found = [name for name in free if name in rows.names and name not in taken]
    called = [name for name in found if normal(name) in SCRATCH.plain]
    if len(called or found) != 1:
        there = ", ".join(map(repr, called or found)) or "none"
        raise InputError(
            f"Which learner starts from nothing? Without weights there are: {there}. Name it with {arg('scratch')}."
        )
    return (called or found)[0]


def _starts_from_nothing(job: Any) -> bool:
    """Return whether a learner has no weights to begin with."""
    training = job.learner.training
    if training is None:
        return True
    from_a_folder = training.architecture.startswith("hf:")
    return training.weights is None and not from_a_folder and not training.options.get("pretrained")


# Examples won against scratch, out of a study.


def study_win_rates(
    study: Study,
    method: str,
    *,
    scratch: str = "scratch",
    n: Sequence[int] | int | None = None,
    evaluation: str = TEST,
    paired: bool = False,
    level: float = 0.95,
    **settings: Any,
) -> WinRates:
    """On which share of the test examples a learner has a lower loss than scratch, by size.

    The loss of an example is that of its predicted numbers; for classes its cross-entropy if
    probabilities were kept, else whether it was wrong, with a tie where both are right or both
    wrong.

    Parameters
    ----------
    study : Study
        With runs of both.
    method, scratch : str
        Learners.
    n : int or sequence of int, optional
        Training sizes; by default all that both have.
    evaluation : str
        On which evaluation set.
    paired : bool
        Compare only runs on the same training subset with the same seeds.
    level : float
        Coverage of the intervals.
    **settings
        Only runs with these: ``fold``, ``vary``, names of the grid.

    Returns
    -------
    WinRates

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Design, Learner, Study
    >>> study = Study(
    ...     data="digits",
    ...     learners={
    ...         "scratch": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
    ...         "neighbours": Learner(estimator="sklearn.neighbors:KNeighborsClassifier"),
    ...     },
    ...     design=Design(sizes=[200], folds=2),
    ...     folder=tempfile.mkdtemp(),
    ... )
    >>> study.run(workers=0, progress=False).done
    4
    >>> study_win_rates(study, "neighbours").at(200).rate.estimate > 0.5
    True
    """
    from curvewise.transfer.wins import win_rates

    both = [
        {r.job.n for r in choose_runs(study, learner=name, **settings) if r.state == "done"}
        for name in (method, scratch)
    ]
    asked = sorted(both[0] & both[1]) if n is None else np.atleast_1d(n).tolist()
    if not asked:
        raise InputError(f"{method!r} and {scratch!r} have no training size in common.")
    asked_of: dict[str, Any] = {"evaluation": evaluation, **settings}
    pairs = {}
    for size in asked:
        one, two = (study.predictions(name, n=size, **asked_of) for name in (method, scratch))
        if paired:
            _check_paired(study, one, two, size)
        pairs[size] = tuple(
            _losses(study, name, given, n=size, **asked_of) for name, given in ((method, one), (scratch, two))
        )
    return win_rates(pairs, paired=paired, level=level)


def _losses(study: Study, learner: str, given: Predictions, **asked: Any) -> Any:
    """Losses of each example where they are known, else what was predicted."""
    if given.kind == "losses" or not study.keep.probabilities:
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # the same as of ``given``
        kept = study.predictions(learner, probabilities=True, **asked)
    labels = kept.labels
    assert labels is not None
    places = np.arange(len(labels))
    right = np.concatenate([block[:, places, labels] for _, block in kept.blocks()])
    with np.errstate(divide="ignore"):  # sure and wrong: infinite, which can be compared
        return -np.log(right.astype(np.float64))


def _check_paired(study: Study, one: Predictions, two: Predictions, n: int) -> None:
    """Run r of both must be on the same examples with the same seeds."""
    jobs = {job.id: (job.fold, dict(job.seeds)) for job in study.jobs}
    ids = [p.run_ids.tolist() if p.run_ids is not None else [] for p in (one, two)]
    if [jobs[i] for i in ids[0]] != [jobs[i] for i in ids[1]]:
        raise InputError(
            f"paired=True, and at n = {n} the runs of both are not on the same training subsets "
            "with the same seeds: some failed or are missing. Use paired=False."
        )
