"""Trials of Optuna."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from curvewise.errors import InputError, brief
from curvewise.integrations.runs import import_tracker, measure_runs, runs_table, stack_predictions
from curvewise.reading.roles import ColumnMap
from curvewise.reading.table import Table
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions


def load_measurements(
    study: Any,
    *,
    metric: str | None = None,
    size_param: str | None = None,
    learner_param: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    columns: ColumnMap | None = None,
) -> Measurements:
    """Read the objective of every trial of an Optuna study by training-set size.

    Trials that failed or were pruned keep their rows, with NaN and the status "failed", and ``notes`` count them;
    fits leave them out and say so. Trials that still run are left out and noted.

    Parameters
    ----------
    study : optuna.Study, DataFrame or path
        A study, or the table that ``study.trials_dataframe()`` gives, also saved to a file.
    metric : str, optional
        The objective, where there are several, or a user attribute. By default the only objective.
    size_param : str, optional
        The parameter or user attribute with the training-set size; by default the one called n, train_size, ….
        A user attribute of the study holds for all its trials.
    learner_param : str or list of str, optional
        What tells learners apart; by default a parameter or attribute called model, learner, ….
    where : dict, optional
        Only trials with these parameters or attributes: ``{"model": "mlp"}``.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean; fractions by default.
    higher_is_better : bool, optional
        By default the direction of the study. Needed for a table, which does not hold the direction, unless the name
        of the objective says it.
    columns : dict, optional
        Further roles, as in :func:`curvewise.load_measurements`: ``{"seed": "init"}``.

    Returns
    -------
    Measurements
        One row per trial, in the order of the trials.

    Raises
    ------
    InputError
        If there is no such metric or size, or no trial finished.

    Notes
    -----
    A search chooses its trials by their results. A curve through the best of them is optimistic: use trials whose
    settings were fixed beforehand, or report the search as part of the training.

    Examples
    --------
    >>> table = {"number": [0, 1, 2], "value": [0.3, 0.2, 0.4], "params_n": [100, 200, 200],
    ...          "state": ["COMPLETE", "COMPLETE", "PRUNED"]}
    >>> m = load_measurements(table, higher_is_better=False)
    >>> m.error.tolist(), m.labels["status"].tolist()
    ([0.3, 0.2, nan], ['done', 'done', 'failed'])
    """
    table = study
    if hasattr(study, "get_trials") and hasattr(study, "directions"):
        table, goals = _trials(study)
        metric = metric or (next(iter(goals)) if len(goals) == 1 else None)
        short = {k.partition("_")[2]: k for k in goals}
        metric = short.get(metric, metric) if metric else None
        if metric is None:
            several = ", ".join(brief(k.partition("_")[2]) for k in goals)
            raise InputError(f"is needed: the study has {len(goals)} objectives, {several}.", argument="metric")
        if metric in goals:
            _check_goal(metric, goals[metric], unit, higher_is_better)
            higher_is_better = goals[metric]
    return measure_runs(table, "optuna", metric, size_param, learner_param, where, unit, higher_is_better, columns)


def load_predictions(
    study: Any,
    artifact_store: Any,
    *,
    artifact: str = "predictions.npy",
    labels: ArrayLike | str | PathLike[str] | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
) -> Predictions:
    """Read what the trials of an Optuna study predicted for each test example, from a file that each uploaded.

    Parameters
    ----------
    study : optuna.Study
        A study whose trials called ``optuna.artifacts.upload_artifact``.
    artifact_store : optuna artifact store
        Where they put it, such as ``FileSystemArtifactStore("artifacts")``.
    artifact : str
        Name of the file: ``.npy``, ``.npz`` (also with the labels), ``.csv`` or ``.json``, one run each.
    labels : array_like or path, optional
        The true class of each example, where the file has none.
    kind : str, optional
        What the values are, as in :func:`curvewise.load_predictions`.
    where : dict, optional
        Parameters of the trials to take: all must be runs of one training.
    """
    artifacts = import_tracker("optuna", "optuna").artifacts
    table, _ = _trials(study)
    trials = study.get_trials(deepcopy=False)

    def fetch(row: int, folder: Path) -> Path | None:
        metas = artifacts.get_all_artifact_meta(trials[row], storage=study._storage)
        for meta in (m for m in metas if m.filename == artifact):
            path = folder / artifact
            artifacts.download_artifact(
                artifact_store=artifact_store, artifact_id=meta.artifact_id, file_path=str(path)
            )
            return path
        return None

    return stack_predictions(table, "optuna", fetch, artifact=artifact, labels=labels, kind=kind, where=where)


def _check_goal(metric: str, maximized: bool, unit: str | None, higher_is_better: bool | None) -> None:
    """Raise where the unit or the direction that the user gives contradicts the direction of the study."""
    named = higher_is_better is not None
    wanted = higher_is_better if named else {"loss": False, "score": True}.get(unit or "")
    if wanted is not None and wanted != maximized:
        raise InputError(
            f"contradicts the study, which {'maximizes' if maximized else 'minimizes'} {brief(metric)}.",
            argument="higher_is_better" if named else "unit",
            value=higher_is_better if named else unit,
            remedy="Leave it out.",
        )


def _trials(study: Any) -> tuple[Table, dict[str, bool]]:
    """Return the trials as ``trials_dataframe`` names them, and whether more is better for each objective."""
    directions = [d.name == "MAXIMIZE" for d in study.directions]
    names = study.metric_names or [str(i) for i in range(len(directions))]
    if len(directions) == 1:
        goals = {"value" if study.metric_names is None else f"value_{names[0]}": directions[0]}
    else:
        goals = {f"values_{name}": higher for name, higher in zip(names, directions, strict=True)}
    shared = {f"user_attrs_{k}": v for k, v in study.user_attrs.items()}
    records = [
        {
            "number": trial.number,
            **dict(zip(goals, trial.values or [None] * len(goals), strict=True)),
            **shared,
            **{f"params_{k}": v for k, v in trial.params.items()},
            **{f"user_attrs_{k}": v for k, v in trial.user_attrs.items()},
            "state": trial.state.name,
        }
        for trial in study.get_trials(deepcopy=False)
    ]
    return runs_table(records, f"the Optuna study {brief(study.study_name)}", study.study_name), goals
