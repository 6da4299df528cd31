"""Runs of MLflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from numpy.typing import ArrayLike

from curvewise.errors import InputError, brief, list_names, suggest
from curvewise.integrations.runs import import_tracker, is_table_path, measure_runs, runs_table, stack_predictions
from curvewise.reading.roles import ColumnMap
from curvewise.reading.table import Table
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions


def load_measurements(
    experiment: Any,
    *,
    metric: str | None = None,
    size_param: str | None = None,
    learner_param: str | Sequence[str] | None = None,
    where: Mapping[str, Any] | None = None,
    unit: str | None = None,
    higher_is_better: bool | None = None,
    columns: ColumnMap | None = None,
    tracking_uri: str | None = None,
) -> Measurements:
    """Read a metric of every run of an MLflow experiment by training-set size.

    Runs that failed, were killed or logged NaN keep their rows, with NaN and the status "failed", and ``notes`` count
    them; fits leave them out and say so. Runs that still go on are left out and noted.

    Parameters
    ----------
    experiment : str, mlflow experiment or runs, DataFrame or path
        The name or id of an experiment, or several in a list; what ``mlflow.get_experiment_by_name`` or
        ``MlflowClient.search_runs`` returns; or the table of ``mlflow.search_runs()``, also saved to a file, for which
        MLflow is not needed.
    metric : str, optional
        The metric; by default the only one called error, accuracy, loss, …. Its last logged value is taken.
    size_param : str, optional
        The parameter with the training-set size; by default the one called n, train_size, ….
    learner_param : str or list of str, optional
        The parameters that tell learners apart; by default one called model, learner, ….
    where : dict, optional
        Only runs with these parameters: ``{"model": "mlp"}``.
    unit : {"fraction", "percent", "loss", "score"}, optional
        What the values mean; fractions by default.
    higher_is_better : bool, optional
        By default the name of the metric says so; needed where it does not.
    columns : dict, optional
        Further roles, as in :func:`curvewise.load_measurements`: ``{"seed": "init"}``.
    tracking_uri : str, optional
        Where the experiment is; by default where MLflow looks.

    Returns
    -------
    Measurements
        One row per run.

    Raises
    ------
    InputError
        If there is no such experiment, metric or size, or no run finished.

    Examples
    --------
    >>> table = {"run_id": ["a", "b", "c"], "status": ["FINISHED", "FINISHED", "FAILED"],
    ...          "params.n": ["100", "200", "400"], "metrics.val_acc": [0.7, 0.8, None]}
    >>> m = load_measurements(table, metric="val_acc", size_param="n")
    >>> m.n.tolist(), m.labels["status"].tolist()
    ([100.0, 200.0, 400.0], ['done', 'done', 'failed'])
    """
    table = _table(_runs(experiment, tracking_uri), experiment) if _is_native(experiment) else experiment
    return measure_runs(table, "mlflow", metric, size_param, learner_param, where, unit, higher_is_better, columns)


def load_predictions(
    experiment: Any,
    *,
    artifact: str = "predictions.npy",
    labels: ArrayLike | str | PathLike[str] | None = None,
    kind: str | None = None,
    where: Mapping[str, Any] | None = None,
    tracking_uri: str | None = None,
) -> Predictions:
    """Read what the runs of an MLflow experiment predicted for each test example, from an artifact of each.

    Parameters
    ----------
    experiment : str, mlflow experiment or runs
        As in :func:`load_measurements`.
    artifact : str
        Path of the artifact: ``.npy``, ``.npz`` (also with the labels), ``.csv`` or ``.json``, one run each.
    labels : array_like or path, optional
        The true class of each example, where the artifact has none.
    kind : str, optional
        What the values are, as in :func:`curvewise.load_predictions`.
    where : dict, optional
        Parameters of the runs to take, ``{"model": "mlp", "n": 400}``: all must be runs of one training.
    tracking_uri : str, optional
        Where the experiment is; by default where MLflow looks.
    """
    if not _is_native(experiment):
        raise InputError("is a table, which holds no files: pass an experiment or runs.", argument="experiment")
    client = import_tracker("mlflow", "mlflow-skinny").MlflowClient(tracking_uri)
    runs = _runs(experiment, tracking_uri)
    parent = artifact.rpartition("/")[0] or None

    def fetch(row: int, folder: Path) -> Path | None:
        run_id = runs[row].info.run_id
        there = [entry.path for entry in client.list_artifacts(run_id, parent)]
        return Path(client.download_artifacts(run_id, artifact, str(folder))) if artifact in there else None

    table = _table(runs, experiment)
    return stack_predictions(table, "mlflow", fetch, artifact=artifact, labels=labels, kind=kind, where=where)


def _is_native(source: Any) -> bool:
    """Return whether MLflow is needed: an experiment by name or object, or runs, and no table."""
    if isinstance(source, str):
        return not is_table_path(source)
    if hasattr(source, "columns"):  # a frame has a method info, and that of mlflow.search_runs a column experiment_id
        return False
    first = source[0] if isinstance(source, list | tuple) and source else source
    is_run = hasattr(first, "info") and hasattr(first, "data")
    return is_run or hasattr(first, "experiment_id") or (first is not source and isinstance(first, str))


def _runs(source: Any, tracking_uri: str | None) -> list[Any]:
    several = list(source) if isinstance(source, list | tuple) else [source]
    if all(hasattr(run, "info") for run in several):
        return several
    client = import_tracker("mlflow", "mlflow-skinny").MlflowClient(tracking_uri)
    ids = [each.experiment_id if hasattr(each, "experiment_id") else _experiment_id(client, each) for each in several]
    found: list[Any] = []
    page = None
    while True:
        runs = client.search_runs(ids, max_results=1000, order_by=["attributes.start_time ASC"], page_token=page)
        found += runs
        page = runs.token
        if not page:
            return found


def _experiment_id(client: Any, name: str) -> str:
    there = {each.name: each.experiment_id for each in client.search_experiments()}
    if name in there or name in there.values():
        return str(there.get(name, name))
    raise InputError(
        f"is no experiment at {client.tracking_uri}.{suggest(name, there)} There are {list_names(there)}.",
        argument="experiment",
        value=name,
        remedy="Pass tracking_uri= if it is kept elsewhere.",
    )


def _table(runs: Sequence[Any], source: Any) -> Table:
    """Make the table that ``mlflow.search_runs`` gives, in which a metric that was not logged is None and not NaN."""
    name = getattr(source, "name", source)
    label = name if isinstance(name, str) else "learner"
    records = [
        {
            "run_id": run.info.run_id,
            "status": run.info.status,
            **{f"params.{k}": v for k, v in run.data.params.items()},
            **{f"metrics.{k}": v for k, v in run.data.metrics.items()},
            **{f"tags.{k}": v for k, v in run.data.tags.items()},
        }
        for run in runs
    ]
    title = f"the MLflow experiment {brief(name)}" if isinstance(name, str) else "the MLflow runs"
    return runs_table(records, title, label)
