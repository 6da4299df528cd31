"""Studies: plan many trainings, run them, and read their store for the lenses."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, UntrustedCodeError, arg, either, list_names, suggest, warn_all
from curvewise.nn.task import Examples
from curvewise.store.read import read_run
from curvewise.store.record import TEST, set_name
from curvewise.store.tables import (
    LOSSES,
    all_failed,
    curve_name,
    failure_notes,
    measured_rows,
    reason_of,
    run_files,
    seeds_of,
    setting_text,
    shared_labels,
    twin_records,
)
from curvewise.study.data.dataset import Dataset
from curvewise.study.plan import Plan, plan_study
from curvewise.study.spec.design import Design, within
from curvewise.study.spec.document import KEYS, read_document, study_fields, write_document
from curvewise.study.spec.study import Job, StudySpec
from curvewise.study.status import Planned, Status, evaluation_digests, planned_runs, study_status
from curvewise.text import format_count
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions
from curvewise.types.results import Unit, data_frame

if TYPE_CHECKING:
    import pandas as pd
    from torch import nn

    from curvewise.variance.sources import SourceShares, TwinDisagreement


@dataclass(frozen=True)
class Study(StudySpec):
    """Data, learners and a design: many trainings, their store, and its contents for the lenses.

    Nothing is loaded, imported or trained before it is needed. :func:`load_study` reads one from a
    file, :func:`study_recipe` makes one by the protocol of a paper.

    Attributes
    ----------
    data : Dataset, dict or str
        What to learn: loaded data, or how to load it as :func:`load_dataset` takes it.
    learners : dict of str to Learner
        Who learns.
    design : Design
        Sizes, folds, seeds, grid.
    evaluate : dict of str to Evaluation
        Further sets to predict, beside the test set.
    keep : Keep
        What to keep of each run.
    seed : int
        Decides the held-out examples, the subsets and the seeds of the runs.
    name : str
        What the study is called.
    folder : Path
        Where relative paths start.
    store : Path, optional
        Folder of the runs; by default ``<name>-runs`` in ``folder``.
    trust : bool
        Whether code that the study names (``"module:function"``) may be imported before
        :meth:`run`. True for a study made in Python, False for one of :func:`load_study`.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Learner
    >>> study = Study(
    ...     data="digits",
    ...     learners={"bayes": Learner(estimator="sklearn.naive_bayes:GaussianNB")},
    ...     design=Design(sizes=[100, 200, 400], folds=2),
    ...     folder=Path(tempfile.mkdtemp()),
    ... )
    >>> study.plan().total_to_do
    6
    >>> study.run(workers=0, progress=False).done
    6
    >>> study.measurements()
    Measurements(6 rows in fraction, 3 sizes (100 to 400), 1 learner: 'bayes')
    """

    def plan(self, *, measure: bool = True, device: str | None = None, trust: bool = False) -> Plan:
        """Return what :meth:`run` would do: runs, time, disk space, and warnings.

        Of a study that is not trusted, no code is imported: warnings name what cannot be known without it.

        Parameters
        ----------
        measure : bool
            Whether to train networks for a few steps where no stored run tells how long they take.
        device : str, optional
            Where it would be done; by default as :meth:`run` chooses.
        trust : bool
            Whether code that the study names may be imported, although the study is not trusted.
        """
        return plan_study(self.trusted() if trust else self, measure=measure, device=device)

    def run(self, on: str = "local", **options: Any) -> Status:
        """Make the runs that the store lacks; stored runs stay.

        This imports the code that the study names, and starts its commands, trusted or not.

        Parameters
        ----------
        on : str
            ``"local"``: processes of this machine. ``"ray"``: a Ray cluster that is started here;
            ``"auto"``: the one that this machine belongs to; ``"host:6379"``: that Ray cluster.
        **options
            As of :func:`curvewise.study.run.drive.run_local`: ``device``, ``workers``,
            ``in_flight``, ``compile``, ``stream``, ``fresh``, ``shard``, ``retry_failed``, ``progress``.
            On Ray, those of :func:`curvewise.study.run.ray.run_ray`: ``cpus``, ``gpus``, ``memory``,
            ``resources``, ``runtime_env``, ``workers``, ``logs`` in place of ``device``.

        Returns
        -------
        Status
            How far the study is now. A run that failed is counted there, and is no error.
        """
        if on not in ("local", "ray", "auto") and ":" not in on:
            raise InputError("use 'local', 'ray', or an address as 'host:6379'.", argument="on", value=on)
        study = self.trusted()
        if on == "local":
            from curvewise.study.run.drive import run_local

            outcome = run_local(study, **options)
        else:
            from curvewise.study.run.ray import run_ray

            outcome = run_ray(study, address=None if on == "ray" else on, **options)
        study.lend_data(self)  # results are asked for next: large images are not decoded again for them
        notes = list(outcome.notes)
        if outcome.interrupted:
            notes.append(f"{format_count(len(outcome.interrupted), 'interrupted run')} started again.")
        if outcome.redone:
            notes.append(
                f"{format_count(len(outcome.redone), 'run')} repeated after a failure, damage or a change of the study."
            )
        found = study.status()
        return replace(found, warnings=(*found.warnings, *notes))

    def status(self) -> Status:
        """Return how far the study is: done, failed and why, being made by whom, left."""
        return study_status(self)

    def measurements(
        self,
        metric: str | None = None,
        evaluation: str = TEST,
        *,
        learner: str | None = None,
        seeds: str = "each",
        **settings: Any,
    ) -> Measurements:
        """Return one value per run, for the learning lens.

        Settings of the grid make a learner another one: they are part of its name. Failed runs are
        NaN with status ``"failed"``; notes name what failed or is missing.

        Parameters
        ----------
        metric : str, optional
            ``"error"`` (the default for classes), ``"loss"`` (for numbers), ``"train_error"``,
            ``"train_loss"``, ``"gap"`` (error minus train_error; loss minus train_loss for
            numbers), or whatever the runs measured; ``"error.<set>"`` is the error on that evaluation set.
        evaluation : str
            On which evaluation set.
        learner : str, optional
            Only this one.
        seeds : {"each", "mean"}
            A row for each run, or for each training subset the mean over its seeds: the second
            for learning curves, whose intervals take rows as independent.
        **settings
            Only runs with these: ``n``, ``fold``, ``vary``, names of the grid.
        """
        if seeds not in ("each", "mean"):
            raise InputError("use 'each' or 'mean'.", argument="seeds", value=seeds)
        metric = metric or ("loss" if self.dataset.is_numbers else "error")
        kind, dot, of = metric.partition(".")
        if dot and evaluation == TEST and of in self.evaluate:  # error.<set>, as the columns of frame() are called
            metric, evaluation = kind, of
        check_evaluation(self, evaluation)
        runs = choose_runs(self, learner=learner, **settings)
        name = set_name(metric, evaluation)
        digest = evaluation_digests(self).get(evaluation)
        kept = []
        for run in runs:
            measured = name in run.standing.metrics and _was_evaluated(run, evaluation, digest)
            kept += [run] if run.state == "failed" or measured else []
        there = dict.fromkeys(k for r in runs for k in r.standing.metrics if r.state == "done")
        if there and name not in there:
            raise InputError(
                f"{arg('metric', name)} was measured in none of the {len(runs)} runs.{suggest(name, there)} "
                f"There are {list_names(there)}."
            )
        if not kept:
            raise _nothing(runs, f"a measured {name}", _RUN)
        notes = [*_notes(runs, kept, name), *_mixed(kept, metric), *self.leaks(evaluation)]
        warn_all(notes)
        rows = measured_rows({r.job.id: r.record for r in kept}, name)
        labels = {k: _column(v) for k, v in _coordinates(self, kept).items()}
        found = Measurements(
            learner=np.array([label_of(self, r.job) for r in kept]),
            n=np.array([row["n"] for row in rows], dtype=np.float64),
            error=np.array([row[name] for row in rows], dtype=np.float64),
            unit=Unit("fraction" if metric in FRACTIONS else "loss"),
            labels={**labels, "run": np.array([row["run"] for row in rows])},
            notes=(*notes, *self.assumptions, *self.partition.warnings),
        )
        return found.subset_means() if seeds == "mean" else found

    def predictions(
        self,
        learner: str | None = None,
        *,
        n: int | None = None,
        evaluation: str = TEST,
        probabilities: bool = False,
        **settings: Any,
    ) -> Predictions:
        """Return what the runs of one training predicted, for the variance lens.

        Where targets are numbers, the loss of each example (``kind="losses"``). Runs are read a few
        at a time when they are needed, so that they need not fit into memory.

        Parameters
        ----------
        learner : str, optional
            Whose; not needed if there is one.
        n : int, optional
            Training size; not needed if there is one.
        evaluation : str
            For which evaluation set.
        probabilities : bool
            Probabilities of the classes, if they were kept, instead of the predicted class.
        **settings
            Only runs with these: ``fold``, ``vary``, ``poke`` (the epoch of the nudge), names of the
            grid.

        Raises
        ------
        InputError
            If the runs are of more than one training; the message says what to choose.
        """
        check_evaluation(self, evaluation)
        runs = choose_runs(self, learner=learner, n=n, **settings)
        _check_one_training(self, runs)
        numbers = self.dataset.is_numbers
        if numbers and probabilities:
            raise InputError(f"{arg('probabilities', True)} is for classes, and the targets are numbers.")
        kind = "probabilities" if probabilities else LOSSES if numbers else "predictions"
        name = set_name(kind, evaluation)
        way = f"Say [keep] probabilities = true and {_RUN}" if probabilities else _RUN
        done = _predicted(self, runs, evaluation, name, way)
        ids = {r.job.id for r in done}
        lost = [
            f"{count} of {len(runs)} planned runs are {'missing' if state == 'missing' else f'left out: {state}'}."
            for state, count in Counter(r.state for r in runs if r.job.id not in ids).items()
        ]
        warn_all(lost)
        notes = [f"{len(done):,} of {len(runs):,} planned runs", *lost]
        if (folds := len({r.job.fold for r in done})) > 1:
            notes.append(f"runs on {folds} different training subsets")
        records = {self.runs_folder / r.job.id: r.record for r in done}
        return _mapped(self, done[0].job, records, evaluation, name, notes)

    def predictions_by(
        self, name: str, learner: str | None = None, *, n: int | None = None, evaluation: str = TEST, **settings: Any
    ) -> dict[Any, Predictions]:
        """Return the predictions of several trainings, by what they differ in.

        Parameters
        ----------
        name : str
            A setting of the grid (``"epochs"``, ``"rate"``), ``"n"``, ``"learner"``, ``"vary"``, or
            ``"evaluation"``: the same runs on every evaluation set.
        learner, n, evaluation, **settings
            As of :meth:`predictions`.

        Returns
        -------
        dict of value to Predictions
            For :func:`~curvewise.variance.measure_sweep`, :func:`~curvewise.variance.measure_sources`
            and :func:`~curvewise.variance.compare_test_sets`. Values that are lists are texts.
        """
        asked: dict[str, Any] = {"learner": learner, "n": n, **settings}
        if name == "evaluation":
            found = {each: self.predictions(evaluation=each, **asked) for each in (TEST, *self.evaluate)}
            # Perturbed copies of the test set are the same examples, which a comparison of test sets has to know.
            own = {k: k for k, e in self.evaluate.items() if e.data is not None}
            ids = {k: np.array([f"{own.get(k, TEST)} {i}" for i in range(p.examples)]) for k, p in found.items()}
            return {each: replace(p, example_ids=ids[each]) for each, p in found.items()}
        given = {k: v for k, v in asked.items() if k != name and v is not None}
        runs = choose_runs(self, **{name: asked.get(name)}, **given)
        values = {setting_text(v): v for v in (_coordinate(r.job, name) for r in runs) if v is not None}
        keys = {text: text if isinstance(v, list | tuple) else v for text, v in values.items()}
        return {keys[text]: self.predictions(evaluation=evaluation, **given, **{name: v}) for text, v in values.items()}

    def twins(
        self,
        learner: str | None = None,
        *,
        n: int | None = None,
        evaluation: str = TEST,
        level: float = 0.95,
        **settings: Any,
    ) -> TwinDisagreement:
        """Measure how often runs disagree with their twins, in which one weight was nudged.

        Runs and twins are joined by their seeds, over all experiments of ``vary``; see ``poke`` of
        :class:`Design`. A run of which several weights were nudged in copies counts with the first.

        Parameters
        ----------
        learner, n, evaluation, **settings
            As of :meth:`predictions`; one training has to be left.
        level : float
            Coverage of the intervals.

        Returns
        -------
        TwinDisagreement
            By the epoch of the nudge. Its notes say how many runs are left out, also those that went
            back to a best epoch before the nudge.

        Raises
        ------
        InputError
            If no run has a twin, or the runs are of more than one training.
        """
        from curvewise.variance.sources import measure_twins

        if wrong := {"vary", "poke"} & set(settings):
            raise InputError("twins are joined over all experiments: leave it out.", argument=min(wrong))
        check_evaluation(self, evaluation)
        runs = choose_runs(self, learner=learner, n=n, **settings)
        if self.dataset.is_numbers:
            raise InputError("The targets are numbers: disagreement is of predicted classes.")
        _check_one_training(self, runs, ("learner", *self.design.settings, "n"))
        name = set_name("predictions", evaluation)
        done = _predicted(self, runs, evaluation, name)
        records = {self.runs_folder / r.job.id: r.record for r in done}
        joined = twin_records(records)
        notes = [f"{note}." for note in joined.notes]
        notes += [f"{lost} planned runs are not done."] if (lost := len(runs) - len(done)) else []
        warn_all(notes)
        mapped = partial(_mapped, self, done[0].job, evaluation=evaluation, name=name)
        base = mapped({path: records[path] for path in joined.reference})
        # A twin has the name of its run, by which they are matched.
        others = {
            epoch: replace(mapped({path: records[path] for path in paths}), run_ids=base.run_ids)
            for epoch, paths in joined.twins.items()
        }
        found = measure_twins(base, others, level=level)
        return replace(found, warnings=(*found.warnings, *notes))

    def sources(
        self,
        learner: str | None = None,
        *,
        n: int | None = None,
        evaluation: str = TEST,
        level: float = 0.95,
        **settings: Any,
    ) -> SourceShares:
        """Measure how much runs differ when only one source of randomness is varied.

        Needs several lists in ``vary``; the longest is that of all sources. A nudge is one of them
        where nothing else varies with it, at the first of its epochs that the training reaches.

        Parameters
        ----------
        learner, n, evaluation, **settings
            As of :meth:`predictions`.
        level : float
            Coverage of the intervals.
        """
        from curvewise.variance.sources import measure_sources

        if len(self.design.sources) < 2:
            problem = 'holds one experiment: vary each source alone, [["init", "order"], ["init"], ["order"]].'
            raise InputError(problem, argument="vary")
        found = {}
        for name, variation in self.design.sources.items():
            asked = {"n": n, "vary": "+".join(variation), **settings}
            if self.design.is_poked(variation) and "poke" not in settings:
                planned = choose_runs(self, learner=learner, **asked)
                reached = {r.job.poke.epoch for r in planned if r.job.poke is not None}
                asked["poke"] = next(epoch for epoch in self.design.poke_epochs if epoch in reached)
            found[name] = self.predictions(learner, evaluation=evaluation, **asked)
        return measure_sources(found, level=level)

    def network(
        self, learner: str | None = None, *, run: str | None = None, n: int | None = None, **settings: Any
    ) -> StudyNetwork:
        """Return a trained network with its weights, and the examples it was trained on.

        Needs ``[keep] checkpoints = "end"``.

        Parameters
        ----------
        learner : str, optional
            Whose; the first one's if there are several.
        run : str, optional
            Id of a run, instead of its coordinates.
        n : int, optional
            Training size.
        **settings
            As of :meth:`predictions`.
        """
        if run is None:  # the first that is stored with these coordinates
            runs = choose_runs(self, learner=learner, n=n, **settings)
            run = next((found.job.id for found in runs if has_network(found)), None)
        if run is None:
            raise InputError(
                f"None of the {len(runs)} runs has the weights of a single network: say [keep] "
                'checkpoints = "end" and run the study.'
            )
        return load_model(self, run)

    def frame(self) -> pd.DataFrame:
        """Return one row per planned run: a corpus of models, a table of losses, a truth to rank by.

        Columns: run (its id), learner, n, fold, the seeds, the settings of the grid, what else the
        learners differ in, status (done, failed, missing, outdated, damaged), then the metrics:
        error, loss, train_error, train_loss, gap, ``error.<set>`` for further evaluation sets,
        seconds, …, and the reason of a failure.
        """
        runs = [r for r in planned_runs(self) if not r.job.is_search]
        columns: dict[str, Any] = {
            "run": [r.job.id for r in runs],
            "learner": [r.job.name for r in runs],
            "n": [r.job.n for r in runs],
            **{k: _column(v) for k, v in _coordinates(self, runs).items()},
        }
        for name, values in _differing(runs).items():
            columns.setdefault(name, _column(values))
        if "loss" in columns:  # of the grid; the measured loss has this name
            columns.setdefault("judged", columns.pop("loss"))
        for name in dict.fromkeys(name for r in runs for name in r.standing.metrics):
            measured = [r.standing.metrics.get(name) for r in runs]
            values = [math.nan if v is None else float(v) for v in measured]
            if name == "rate" and name in columns and name not in self.design.settings:
                # One that was searched is a list in the settings, and a number once it is found.
                found = zip(columns[name], values, strict=True)
                columns[name] = [rates if math.isnan(v) else v for rates, v in found]
            else:
                columns[f"trained_{name}" if name in columns else name] = values
        columns["reason"] = [reason_of(r.standing.text) if r.state == "failed" else "" for r in runs]
        return data_frame(columns)

    def parameters(self) -> dict[str, int]:
        """Count the weights that each network trains, of all members of an ensemble together.

        Learners are named as in :meth:`measurements`; those that are no networks are left out.
        """
        from curvewise.nn.networks import head_of, make_network

        found: dict[str, int] = {}
        for job in self.jobs:
            label, training = label_of(self, job), job.learner.training
            if job.is_search or label in found or training is None:
                continue
            if (code := self.unimported(job.learner)) is not None:
                raise UntrustedCodeError(f"{label} is made by {code}, which is imported with trust=True only.")
            bare = replace(training, weights=None, weights_into=None)
            examples = self.grouped(job).examples
            network = make_network(bare, examples.shape, examples.outputs, self.folder)
            trained = head_of(network)[1] if training.trained == "head" else network
            weights = (p.numel() for p in trained.parameters() if p.requires_grad)
            found[label] = job.learner.members * sum(weights)
        return found

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a study file that :func:`load_study` reads as the same study.

        Raises
        ------
        InputError
            If the data is in memory, which a file cannot name.
        """
        return write_document(self, path)


def load_study(path: str | PathLike[str], *, trust: bool = False) -> Study:
    """Read a study file.

    Nothing is trained, and nothing that the file names is imported or read. Code that it names is
    imported by :meth:`~Study.run`, and before that only if the file is trusted: see the page on
    studies from others. Relative paths in it start at the file's folder.

    Parameters
    ----------
    path : path
        A TOML file, see the guide to studies; ``curvewise study new`` writes one to begin with.
    trust : bool
        Whether code that the file names may be imported by whatever needs it, such as
        :meth:`~Study.plan` and :meth:`~Study.network`, and not by :meth:`~Study.run` only.

    Returns
    -------
    Study
        Ready for :meth:`~Study.plan` and :meth:`~Study.run`.

    Raises
    ------
    InputError
        If the file cannot be read as a study; the message names the table and the key.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "study.toml"
    >>> _ = path.write_text('''
    ... data = "digits"
    ... [learners.small]
    ... architecture = "mlp"
    ... width = 32
    ... [design]
    ... sizes = [100, 400]
    ... ''')
    >>> study = load_study(path)
    >>> study.learners["small"].training.options, study.design.sizes
    ({'width': 32}, (100, 400))
    """
    file = Path(path)
    return replace(study_from_document(read_document(file), file.parent, file.name), trust=trust)


def study_recipe(recipe: str, data: Dataset | Mapping[str, Any] | str, /, **changes: Any) -> Study:
    """Make a study that follows the protocol of a paper.

    Parameters
    ----------
    recipe : str
        A name of :data:`curvewise.study.RECIPES`; the function behind it says what the
        paper did, where it is silent, and which options there are.
    data : Dataset, dict or str
        What to learn.
    **changes
        Options of the recipe (``architecture="resnet18"``) and, as ``options={"width": 32}``, of the
        architecture of all its networks; fields of :class:`Design`
        (``seeds=20``); or tables as in a study file: ``learners={"mine": {"rate": 0.1}}``,
        ``design``, ``evaluate``, ``keep``, ``seed``, ``name``, ``store``, ``folder``. Learners
        named here are trained instead of the recipe's, each from the recipe's settings.

    Returns
    -------
    Study
        Ready to be planned and run.

    Examples
    --------
    >>> study = study_recipe("variance", "cifar10", seeds=200)
    >>> study.design.grid["epochs"], study.learners["resnet9"].training.batch
    ([0, 4, 16, 64], 500)
    """
    tables = {k: v for k, v in changes.items() if k in KEYS and k not in ("recipe", "data")}
    designed = {f.name for f in fields(Design)}
    design = {k: v for k, v in changes.items() if k in designed}
    options = {k: v for k, v in changes.items() if k not in tables and k not in designed}
    tables["design"] = {**tables.get("design", {}), **design}
    folder = Path(tables.pop("folder", "."))
    store = {"store": str(tables.pop("store"))} if tables.get("store") is not None else {}
    document = {"name": recipe, **tables, **store, "recipe": {"name": recipe, **options}}
    named = data if isinstance(data, str) or not isinstance(data, Dataset) else "data"
    study = study_from_document({**document, "data": named}, folder, f"recipe {recipe!r}")
    return replace(study, data=data)


def study_from_document(document: Mapping[str, Any], folder: Path, source: str = "study") -> Study:
    """Make a study of the tables of a study file; nothing named in them is imported or read.

    Parameters
    ----------
    document : dict
        As ``tomllib`` reads a study file.
    folder : Path
        Where the file lies, and relative paths start.
    source : str
        Its name in messages.
    """
    found = study_fields(document, folder, source)
    with within(source):
        return Study(**found)


FRACTIONS = ("error", "train_error")
_RUN = either("study.run()", "`curvewise study run`")


def _was_evaluated(run: Planned, evaluation: str, digest: str | None) -> bool:
    """Return whether a run is stored and predicted this evaluation set as it is now."""
    return run.state in ("done", "outdated") and run.has_evaluation(evaluation, digest)


def _notes(runs: Sequence[Planned], kept: Sequence[Planned], name: str) -> list[str]:
    """Report what failed and what is missing; nothing is dropped in silence."""
    failed = [(r.job.name, reason_of(r.standing.text)) for r in kept if r.state == "failed"]
    ids = {r.job.id for r in kept}
    absent = Counter(r.state for r in runs if r.job.id not in ids)
    why = {
        "missing": "are not finished yet",
        "damaged": "are damaged and left out",
        "outdated": f"have no {name} for the current evaluation set, and are left out",
        "done": f"have no {name}, and are left out",
    }
    lost = [f"{k} of {len(runs)} planned runs {why[s]}." for s, k in absent.items()]
    return failure_notes(failed, len(runs)) + lost


def _mixed(kept: Sequence[Planned], metric: str) -> list[str]:
    """Report losses of different kinds side by side."""
    losses = sorted({str(r.job.learner.loss) for r in kept if r.job.learner.loss is not None})
    if len(losses) < 2 or metric not in ("loss", "train_loss", "gap"):
        return []
    return [
        f"The learners are judged by different losses ({', '.join(losses)}), whose values cannot "
        "be compared: choose with learner=."
    ]


def mixed_losses(study: StudySpec) -> list[str]:
    """Report learners of a study that are judged by different losses; empty if there are none."""
    return _mixed([r for r in planned_runs(study) if not r.job.is_search], "loss")


def _predicted(study: StudySpec, runs: Sequence[Planned], evaluation: str, name: str, way: str = _RUN) -> list[Planned]:
    """Select the runs that predicted an evaluation set as it is now; none is an error."""
    digest = evaluation_digests(study).get(evaluation)
    if found := [r for r in runs if _was_evaluated(r, evaluation, digest) and name in r.record["arrays"]]:
        return found
    raise _nothing(runs, name, way)


def _mapped(
    study: StudySpec,
    job: Job,
    records: Mapping[Path, Mapping[str, Any]],
    evaluation: str,
    name: str,
    notes: Sequence[str] = (),
) -> Predictions:
    """Map an array of several runs as predictions with their labels; nothing is read yet."""
    numbers, kind = study.dataset.is_numbers, name.partition(".")[0]
    labels = None
    if not numbers:
        labels = shared_labels(records, evaluation, study.runs_folder)
        labels = labels.astype(np.int64) if labels is not None else study.grouped(job).evaluation_sets[evaluation].y
    return Predictions(
        run_files(records, name),
        "labels" if kind == "predictions" else kind,
        labels=labels,
        classes=None if numbers else study.class_names(job),
        run_ids=np.array([path.name for path in records]),
        seeds=seeds_of(records.values()),
        notes=(*notes, *study.assumptions),
        name=label_of(study, job),
    )


def _check_one_training(study: StudySpec, runs: Sequence[Planned], names: Sequence[str] = ()) -> None:
    """Refuse runs that differ in more than chance: they are not runs of one training."""
    left, differ, ways = list(runs), [], []
    for name in names or ("learner", *study.design.settings, "n", "vary", "poke"):
        values = [_coordinate(r.job, name) for r in left]
        several = list({json.dumps(v, default=str): v for v in values}.values())
        if len(several) > 1:
            differ.append(f"{name} is {', '.join(map(repr, several[:8]))}")
            chosen = several[-1] if name == "n" else several[0]
            ways.append(arg(name, chosen))
            left = [r for r in left if _coordinate(r.job, name) == chosen]
    if differ:
        raise InputError(
            f"These runs are of more than one training: {'; '.join(differ)}. Choose one, such as {', '.join(ways)}."
        )


def _differing(runs: Sequence[Planned]) -> dict[str, list[Any]]:
    """Settings and options in which the learners differ."""
    about = []
    for job in (r.job for r in runs):
        own = job.learner.as_dict()
        options = own.pop("options", {})
        if job.learner.loss is not None:  # numbers: the measured loss has this name
            own = {k: v for k, v in own.items() if k != "loss"} | {"judged": job.learner.loss}
        about.append({**own, **options})
    names = dict.fromkeys(name for settings in about for name in settings)
    several = {name: {json.dumps(s[name], default=str) for s in about if name in s} for name in names}
    differ = [name for name, values in several.items() if len(values) > 1]
    return {name: [settings.get(name) for settings in about] for name in differ}


def _coordinates(study: StudySpec, runs: Sequence[Planned]) -> dict[str, list[Any]]:
    seeds = dict.fromkeys(k for r in runs for k in r.job.seeds)
    columns: dict[str, list[Any]] = {"fold": [r.job.fold for r in runs]}
    columns |= {f"{k}_seed": [r.job.seeds[k] for r in runs] for k in seeds}
    if any(r.job.poke for r in runs):
        columns["poke_seed"] = [-1 if r.job.poke is None else r.job.poke.seed for r in runs]
    columns |= {k: [r.job.settings.get(k) for r in runs] for k in study.design.settings}
    if len(study.design.variations) > 1:
        columns["vary"] = [r.job.varies for r in runs]
    if len(study.design.poke_epochs) > 1:
        columns["poke"] = [math.nan if r.job.poke is None else float(r.job.poke.epoch) for r in runs]
    return columns | {"status": [r.state for r in runs]}


def _column(values: Sequence[Any]) -> NDArray[Any]:
    """Numbers and words as they are, lists as text."""
    if any(isinstance(v, list | tuple | Mapping) for v in values):
        return np.array([setting_text(v) for v in values])
    kinds = {bool if isinstance(v, bool) else float if isinstance(v, int | float) else type(v) for v in values}
    plain = len(kinds) <= 1 and kinds <= {bool, float, str}
    return np.array(values) if plain else np.array(values, dtype=object)


def label_of(study: StudySpec, job: Job) -> str:
    """Name a curve: the learner, and the settings of the grid that make it another one."""
    varies: dict[str, Any] = {"vary": job.varies} if len(study.design.variations) > 1 else {}
    if job.poke is not None and len(study.design.poke_epochs) > 1:
        varies["poke"] = job.poke.epoch
    # Sorted, as in the records of a store, so that both give a curve the same name.
    return curve_name(job.name, {**dict(sorted(job.settings.items())), **varies})


def choose_runs(study: StudySpec, *, learner: str | None = None, **wanted: Any) -> list[Planned]:
    """Choose the planned runs with the given learner, size, fold, variation or settings of the grid."""
    known = ("n", "fold", "vary", *(("poke",) if study.design.poke is not None else ()), *study.design.settings)
    for name in wanted:
        if name not in known:
            raise InputError(f"{name}= is not a coordinate of this study: it has {', '.join(known)}.")
    runs = [r for r in planned_runs(study) if not r.job.is_search]
    asked = {"learner": learner, **wanted}
    for name, value in asked.items():
        if value is None:
            continue
        there = [_coordinate(r.job, name) for r in runs]
        runs = [r for r, v in zip(runs, there, strict=True) if _same(v, value)]
        if not runs:
            values = ", ".join(dict.fromkeys(map(repr, there)))
            raise InputError(f"no run of the study has it; there is {values}.", argument=name, value=value)
    return runs


def _coordinate(job: Job, name: str) -> Any:
    fixed = {"learner": job.name, "n": job.n, "fold": job.fold, "vary": job.varies}
    fixed["poke"] = None if job.poke is None else job.poke.epoch
    return fixed[name] if name in fixed else job.settings.get(name)


def _same(value: Any, asked: Any) -> bool:
    asked = asked.tolist() if isinstance(asked, np.ndarray) else asked
    if isinstance(value, list | tuple) and isinstance(asked, list | tuple):
        return list(value) == list(asked)
    if isinstance(value, str) and not isinstance(asked, str) and isinstance(asked, Iterable):
        return value == "+".join(asked)  # vary=["init", "order"]
    return bool(value == asked)


def check_evaluation(study: StudySpec, evaluation: str) -> None:
    """Refuse a name that no evaluation set of the study has."""
    known = [TEST, *study.evaluate]
    if evaluation not in known:
        problem = f"not an evaluation set of the study; it has {', '.join(known)}."
        raise InputError(problem, argument="evaluation", value=evaluation)


def _nothing(runs: Sequence[Planned], what: str, way: str) -> InputError:
    """Make an error that says why no run has what was asked for."""
    failed = [r.standing.text for r in runs if r.state == "failed"]
    status = f"{either('study.status()', '`curvewise study status`')} lists the reasons."
    if len(failed) == len(runs):
        return all_failed(failed, status)
    states = ", ".join(f"{k} {s}" for s, k in Counter(r.state for r in runs).items())
    first = f" The first that failed: {reason_of(failed[0]).removesuffix('.')}. {status}" if failed else ""
    return InputError(f"None of the {len(runs)} runs has {what} ({states}): {way} first.{first}")


# ---- Trained networks


@dataclass(frozen=True, eq=False)
class StudyNetwork:
    """A trained network of a study, and what belongs to it.

    Attributes
    ----------
    run : str
        Id of the run.
    network : nn.Module
        With its weights, in evaluation mode, on the CPU. It takes images as ``examples.mean`` and
        ``examples.std`` normalise them.
    initial : nn.Module, optional
        With the weights that it started from; None where only its last layer was trained.
    examples : Examples
        Its training subset, with the share that a schedule held out for validation.
    """

    run: str
    network: nn.Module
    initial: nn.Module | None
    examples: Examples


def has_network(run: Planned) -> bool:
    """Return whether the store holds a network of this run: an ensemble has several, others none."""
    return run.state in ("done", "outdated") and "end" in run.record.get("files", {})


def load_model(study: StudySpec, identity: str) -> StudyNetwork:
    """A trained network of a study, with its weights, its first weights and its examples."""
    from curvewise.nn.networks import initial_network, restore_network

    job = next((job for job in study.jobs if job.id == identity), None)
    if job is None:
        raise InputError("is not a run of this study: study.frame() lists them.", argument="run", value=identity)
    training = job.learner.training
    if training is None or job.learner.members > 1:
        remedy = "choose a learner with an architecture and one member."
        problem = f"is of {job.name!r}, which is not a single network: {remedy}"
        raise InputError(problem, argument="run", value=identity)
    if job.is_search:
        raise InputError("is a search for a learning rate, and has no network.", argument="run", value=identity)
    if (place := study.unimported(job.learner)) is not None:
        raise UntrustedCodeError(
            f"run={identity!r} is of {job.name!r}, which is made by {place}: its code is not "
            "imported unless the study is loaded with trust=True."
        )
    rows, whole = study.rows_of(job.n, job.fold), study.grouped(job).examples
    weights = read_run(study.runs_folder / identity).checkpoint("end")
    shape, classes, seed = whole.shape, whole.outputs, job.seeds["init"]
    first = training.trained == "all"
    initial = initial_network(training, shape, classes, seed, study.folder) if first else None
    network = restore_network(training, shape, classes, weights, study.folder, seed)
    if initial is not None and training.first_layer is not None:
        # Filters that come from the images and are never trained: those of the end are those of the beginning.
        initial.get_buffer("first_layer.weight").copy_(network.get_buffer("first_layer.weight"))
    return StudyNetwork(identity, network, initial, replace(whole, x=whole.x[rows], y=whole.y[rows]))
