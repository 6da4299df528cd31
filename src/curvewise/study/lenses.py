"""Studies for two lenses: risks with their controls for transfer, and ground truth for ranking checkpoints."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, StoreError, UntrustedCodeError, arg
from curvewise.ranking.load import ONE_GROUP, CheckpointScores
from curvewise.reading.roles import normal
from curvewise.store.read import array_of, is_file
from curvewise.store.record import REMEDY, TEST, part_file, set_name
from curvewise.study.spec.design import CLASSES
from curvewise.study.spec.study import Job
from curvewise.study.study import check_evaluation, choose_runs, label_of
from curvewise.transfer.blind import BlindGuess, blind_guess
from curvewise.transfer.images import ANY, PredictedImages, compare_images
from curvewise.transfer.load import BLIND, MAXIMAL, SCRATCH, ControlNames, RiskRows, find_control, find_scratch
from curvewise.transfer.result import check_name
from curvewise.transfer.risks import Control, TransferRisks
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions

if TYPE_CHECKING:
    from curvewise.ranking.networks.checkpoints import Checkpoint
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
        raise InputError(f"use one of {', '.join(map(repr, METRICS))}.", argument="metric", value=metric)
    measured = {task: s.measurements(metric, evaluation) for task, s in by_task.items()}
    rows = RiskRows(
        np.concatenate([np.full(len(m), task) for task, m in measured.items()]),
        np.concatenate([m.learner for m in measured.values()]),
        np.concatenate([m.n for m in measured.values()]),
        np.concatenate([m.error for m in measured.values()]),
    )
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
        raise InputError("is empty: give at least one.", argument="studies")
    for study in by_task.values():
        if not isinstance(study, Study):
            problem = f"holds {study!r:.60}: give a study, as load_study('….toml') reads it, or a dict of them by task."
            raise InputError(problem, argument="studies")
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
    return _blind_guess(study, metric, evaluation).control()


def _blind_guess(study: Study, metric: str, evaluation: str) -> BlindGuess:
    if CLASSES in study.design.settings:
        problem = "groups the classes of each run otherwise, so that there is no one blind guess."
        raise InputError(problem, argument=f"grid.{CLASSES}", remedy=f"Pass {arg('blind')} with its risk.")
    targets = study.examples.y[study.train_rows]
    test = study.test_examples() if evaluation == TEST else study.evaluation_sets[evaluation]
    if not study.dataset.is_numbers:
        loss = "error" if metric == "error" else "cross-entropy"
        classes = len(study.dataset.classes)
        return blind_guess(targets, loss, test_targets=test.y, classes=classes)
    losses = {job.learner.loss for job in study.jobs if not job.is_search} - {None}
    if metric == "error" or len(losses) != 1:
        raise InputError(
            f"metric={metric!r}, and learners are judged by {sorted(map(str, losses))}: a blind "
            f"guess is for one loss of numbers. Pass {arg('blind')} with its risk."
        )
    per = "pixel" if targets.ndim > 2 else "output"
    return blind_guess(targets, str(losses.pop()), test_targets=test.y, per=per)


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
    jobs = [(study, job) for study in studies.values() for job in study.jobs if not job.is_search]
    free = dict.fromkeys(label_of(study, job) for study, job in jobs if _starts_from_nothing(job))
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
    own = training is not None and (training.weights is not None or training.options.get("pretrained"))
    return training is None or not (own or training.architecture.startswith("hf:"))


# Predicted images side by side.


def predicted_images(
    study: Study,
    *,
    methods: Sequence[str] | None = None,
    n: Sequence[int] | int | None = None,
    examples: Sequence[int] | int = 3,
    evaluation: str = TEST,
    **settings: Any,
) -> PredictedImages:
    """Images that the learners of a study predicted for the same inputs, beside the blind guess.

    Of several runs of a learner at a size, the first is shown. The columns are the blind guess (a
    constant for each pixel, for the loss in use), scratch, the other learners, and maximal
    supervision, which is shown at its largest size in every row.

    Parameters
    ----------
    study : Study
        One whose targets are images, and that kept what was predicted: ``[keep] predictions = true``.
    methods : sequence of str, optional
        Only these learners.
    n : int or sequence of int, optional
        Training sizes; all by default.
    examples : int or sequence of int
        How many examples, evenly spaced over the evaluation set, or their positions.
    evaluation : str
        On which evaluation set.
    **settings
        Only runs with these: ``fold``, ``vary``, names of the grid.

    Returns
    -------
    PredictedImages
        ``.plot()`` draws the grid (:func:`curvewise.transfer.plot_predictions`).

    Raises
    ------
    InputError
        If the study predicts no images, or no run kept them.
    """
    if study.dataset.y.ndim != 4:
        problem = "The study predicts classes or rows of numbers, and no images."
        raise InputError(problem, remedy="Give one whose targets are images.")
    check_evaluation(study, evaluation)
    test = study.evaluation_sets[evaluation]
    count = len(test.y)
    if np.ndim(examples) == 0:
        several = min(int(np.asarray(examples)), count)
        rows = [i * count // several for i in range(several)]
    else:
        rows = np.asarray(examples).tolist()
    if not rows or min(rows) < 0 or max(rows) >= count:
        problem = f"give how many, or positions from 0 to {count - 1}."
        raise InputError(problem, argument="examples", value=examples)
    name = set_name("predictions", evaluation)
    asked = None if n is None else np.atleast_1d(n).tolist()
    found: dict[str, dict[int, Any]] = {}
    runs = choose_runs(study, **settings)
    known = [*dict.fromkeys(name for run in runs for name in (run.job.name, label_of(study, run.job)))]
    methods = [methods] if isinstance(methods, str) else methods
    for learner in methods or ():
        check_name("methods", learner, known)
    for run in runs:
        label, size = label_of(study, run.job), run.job.n
        chosen = methods is None or run.job.name in methods or label in methods
        if run.state != "done" or name not in run.record["arrays"] or not chosen or size in found.get(label, ()):
            continue
        if asked is None or size in asked or _is_called(label, MAXIMAL):
            found.setdefault(label, {})[size] = array_of(study.runs_folder / run.job.id, run.record, name)[rows]
    if not found or any(all(size not in by for by in found.values()) for size in asked or ()):
        problem = "No finished run of these learners and sizes has kept the images that it predicted."
        raise InputError(problem, remedy="Say [keep] predictions = true, and run the study.")
    guess = _blind_guess(study, "loss", evaluation)
    order = [
        *(k for k in found if _is_called(k, SCRATCH)),
        *(k for k in found if not _is_called(k, SCRATCH) and not _is_called(k, MAXIMAL)),
    ]
    columns: dict[str, Any] = {"blind guess": {ANY: np.repeat(np.asarray(guess.prediction)[None], len(rows), axis=0)}}
    columns |= {k: found[k] for k in order}
    columns |= {k: {ANY: by[max(by)]} for k, by in found.items() if _is_called(k, MAXIMAL)}
    made = compare_images(columns, test.y[rows], test.x[rows], loss=guess.loss)
    places = tuple(replace(row, example=int(rows[row.example])) for row in made.rows)
    return replace(made, rows=places)


def _is_called(name: str, control: ControlNames) -> bool:
    return normal(name) in control.plain


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

    chosen = [choose_runs(study, learner=name, **settings) for name in (method, scratch)]
    both = [{r.job.n for r in runs if r.state == "done"} for runs in chosen]
    asked = sorted(both[0] & both[1]) if n is None else np.atleast_1d(n).tolist()
    if not asked:
        raise InputError(f"{method!r} and {scratch!r} have no training size in common.")
    # Where probabilities are kept, runs that have none are left out before runs are paired.
    kept = study.keep.probabilities and not study.dataset.is_numbers
    asked_of: dict[str, Any] = {"evaluation": evaluation, "probabilities": kept, **settings}
    pairs = {}
    for size in asked:
        one, two = (study.predictions(name, n=size, **asked_of) for name in (method, scratch))
        if paired:
            _check_paired(study, one, two, size)
        pairs[size] = (_losses(one), _losses(two))
    return win_rates(pairs, paired=paired, level=level)


def _losses(given: Predictions) -> Any:
    """Losses of each example where they are known, else what was predicted."""
    if given.kind != "probabilities":
        return given
    labels = given.labels
    assert labels is not None
    places = np.arange(len(labels))
    right = np.concatenate([block[:, places, labels] for _, block in given.blocks()])
    with np.errstate(divide="ignore"):  # sure and wrong: infinite, which can be compared
        return -np.log(right.astype(np.float64))


def _check_paired(study: Study, one: Predictions, two: Predictions, n: int) -> None:
    """Run r of both must be on the same examples with the same seeds."""
    jobs = {job.id: (job.fold, dict(job.seeds)) for job in study.jobs}
    ids = [p.run_ids.tolist() if p.run_ids is not None else [] for p in (one, two)]
    if [jobs[i] for i in ids[0]] != [jobs[i] for i in ids[1]]:
        both = f"at n = {n} the runs of both are not on the same training subsets with the same seeds"
        problem = f"{both}: some failed or are missing. Use paired=False."
        raise InputError(problem, argument="paired", value=True)


def checkpoint_files(
    study: Study, learner: str | None = None, *, n: int | None = None, **settings: Any
) -> dict[str, str]:
    """Files of the weights that a study kept, by name: what :func:`study_recipe` fine-tunes.

    Parameters
    ----------
    study : Study
        With ``[keep] checkpoints = "drops"`` (at every drop of the learning rate, and at the end)
        or ``"end"``, and run.
    learner : str, optional
        Only this one's.
    n : int, optional
        Only of this training size.
    **settings
        Only runs with these: ``fold``, ``vary``, names of the grid.

    Returns
    -------
    dict of str to str
        Paths by names such as ``"resnet50 drop-1"``; runs that differ by chance alone are
        numbered.

    Raises
    ------
    InputError
        If no run has weights.
    """
    runs = choose_runs(study, learner=learner, n=n, **settings)
    kept = [r for r in runs if r.state in ("done", "outdated") and r.record.get("files")]
    if not kept:
        raise InputError(
            f'None of the {len(runs)} runs has kept weights: say [keep] checkpoints = "drops" and run the study.'
        )
    labels = [label_of(study, r.job) for r in kept]
    found: dict[str, str] = {}
    for place, (run, label) in enumerate(zip(kept, labels, strict=True)):
        several = labels.count(label) > 1
        name = f"{label} #{labels[: place + 1].count(label)}" if several else label
        folder = (study.runs_folder / run.job.id).resolve()
        for moment in sorted(run.record["files"], key=_moment):
            path = folder / part_file("files", moment)
            if not is_file(path):
                raise StoreError(f"{path} is missing, or is no plain file. {REMEDY}")
            found[f"{name} {moment}"] = str(path)
    return found


def stage_checkpoints(
    study: Study, learner: str | None = None, *, n: int | None = None, **settings: Any
) -> list[Checkpoint]:
    """Stages of a study's networks as checkpoints that :func:`rank_checkpoints` takes: one at each drop and the end.

    Each knows its architecture and the normalisation it was trained with, so that
    ``rank_checkpoints(stage_checkpoints(study), data)`` ranks the stages for another task.

    Parameters
    ----------
    study, learner, n, **settings
        As of :func:`checkpoint_files`.

    Returns
    -------
    list of Checkpoint
        In the order of the training.

    Raises
    ------
    InputError
        If no run has weights.
    UntrustedCodeError
        If a network is made by code that the study may not import.
    """
    from curvewise.ranking.networks.checkpoints import Checkpoint
    from curvewise.ranking.networks.preprocessing import Preprocessing

    root, whole = study.runs_folder.resolve(), study.examples
    jobs = {job.id: job for job in study.jobs}
    channels = whole.shape[0] if len(whole.shape) == 3 else 0
    as_trained = None
    if channels in (1, 3) and whole.mean is not None and whole.std is not None:
        as_trained = Preprocessing(mean=whole.mean, std=whole.std, channels="grey" if channels == 1 else "rgb")
    found = []
    for name, path in checkpoint_files(study, learner, n=n, **settings).items():
        job = jobs[PurePath(path).relative_to(root).parts[0]]
        training = job.learner.training
        assert training is not None  # only networks have weights
        if (place := study.unimported(job.learner)) is not None:
            raise UntrustedCodeError(
                f"{job.name!r} is made by {place}: its code is not imported unless the study is loaded with trust=True."
            )
        made: dict[str, Any] = {"factory": training.architecture, "options": training.options, "folder": study.folder}
        found.append(Checkpoint(name, path, preprocessing=as_trained, shape=whole.shape, **made))
    return found


def _moment(name: str) -> tuple[bool, int, str]:
    """Drops in their order, then the end."""
    number = name.rpartition("-")[2]
    return name == "end", int(number) if number.isdigit() else 0, name


def ranking_table(
    studies: Study | Mapping[str, Study],
    *,
    evaluation: str = TEST,
    n: int | None = None,
    groups: Mapping[str, Sequence[str]] | None = None,
) -> CheckpointScores:
    """Accuracies after fine-tuning for every checkpoint and task, as in Li et al. 2021.

    A checkpoint is a learner with ``weights``; runs of a grid that varies ``weights`` are
    checkpoints called by their files. Its accuracy is the best over all other settings, of the
    mean over folds and seeds of each. Learners without weights are trained from scratch, which is
    a reference.

    Parameters
    ----------
    studies : Study or dict of str to Study
        By task; a single one is called by its name.
    evaluation : str
        Accuracy on which evaluation set. The best on the test set is what the paper takes, and is
        a little too good for every checkpoint alike.
    n : int, optional
        Training size; by default the largest of each study.
    groups : dict of str to sequence of str, optional
        Learners of each group; a reference belongs to all of them.

    Returns
    -------
    CheckpointScores
        Without scores: add them with :func:`add_rankings` or ``with_scores``. Its notes name what
        failed or is missing.

    Raises
    ------
    InputError
        If no run is done, or a group names a learner that is not there.

    Warns
    -----
    CurvewiseWarning
        If runs failed or are missing.
    """
    by_task = _by_task(studies)
    rows: list[tuple[str, str, str, float]] = []
    references: dict[str, None] = {}
    notes: list[str] = []
    for task, study in by_task.items():
        best, scratch, remarks = _best_of(study, evaluation, n)
        notes += [f"{task}: {text}" for text in remarks]
        references |= dict.fromkeys(scratch)
        for (learner, name), accuracy in best.items():
            found = [ONE_GROUP] if groups is None else [g for g, names in groups.items() if learner in names]
            if name in scratch and not found:  # a reference belongs to all groups
                found = list(groups or ())
            rows += [(group, task, name, accuracy) for group in found]
    _check_groups(groups, by_task)
    if not rows:
        raise InputError("groups names no learner that has runs: there is nothing to rank.")
    in_group, in_task, names, accuracies = (np.array(column) for column in zip(*rows, strict=True))
    return CheckpointScores(
        names, accuracies, tasks=in_task, groups=in_group, reference=tuple(references), notes=tuple(notes)
    )


def _best_of(study: Study, evaluation: str, n: int | None) -> tuple[dict[tuple[str, str], float], list[str], list[str]]:
    """Best accuracy by learner and checkpoint, which of them are from scratch, and notes."""
    size = max(job.n for job in study.jobs if not job.is_search) if n is None else n
    measured = study.measurements(evaluation=evaluation, n=size)
    jobs = {job.id: job for job in study.jobs}
    names = _names(study.jobs)
    errors: dict[tuple[str, str], dict[str, list[float]]] = {}
    scratch: list[str] = []
    for run, error in zip(measured.labels["run"].tolist(), measured.error.tolist(), strict=True):
        job = jobs[run]
        key = (job.name, names[job.id])
        if _weights(job) is None:
            scratch.append(key[1])
        settings = json.dumps(dict(job.settings), sort_keys=True, default=str)
        errors.setdefault(key, {}).setdefault(settings, []).append(error)
    # The best over settings of the mean over folds and seeds, of those that did not fail; NaN if all did.
    best = {}
    for key, found in errors.items():
        known = [[e for e in values if not math.isnan(e)] for values in found.values()]
        best[key] = max((1 - math.fsum(values) / len(values) for values in known if values), default=math.nan)
    tried = max(len(found) for found in errors.values())
    notes = [f"n = {size}", *measured.notes]
    if tried > 1:
        notes.append(f"best of up to {tried} settings on {evaluation!r}")
    return best, list(dict.fromkeys(scratch)), notes


def _weights(job: Job) -> str | None:
    return None if job.learner.training is None else job.learner.training.weights


def _names(jobs: Sequence[Job]) -> dict[str, str]:
    """Name what was fine-tuned: the learner, and the file where a grid varies it.

    Files of one name in several folders are called by their whole paths.
    """
    found = {}
    files = {w for job in jobs if "weights" in job.settings and (w := _weights(job))}
    stems = [PurePath(file).stem for file in files]
    for job in jobs:
        file = _weights(job) if "weights" in job.settings else None
        stem = "" if file is None else PurePath(file).stem
        own = file if stems.count(stem) > 1 else stem
        found[job.id] = f"{job.name} {own}" if own else job.name
    return found


def _check_groups(groups: Mapping[str, Sequence[str]] | None, studies: Mapping[str, Study]) -> None:
    known = {name for study in studies.values() for name in study.learners}
    for group, names in (groups or {}).items():
        if isinstance(names, str):
            raise InputError(f"groups[{group!r}] is one text: give a list of learners.")
        for name in names:
            if name not in known:
                raise InputError(
                    f"groups[{group!r}] names {name!r}, which is not a learner: there are {', '.join(sorted(known))}."
                )
