"""Studies: plan many trainings, run them, and read their store for the lenses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.errors import InputError
from curvewise.store.record import TEST
from curvewise.study.data.dataset import Dataset
from curvewise.study.plan import Plan, plan_study
from curvewise.study.results import StudyNetwork, choose_network, read_frame, read_measurements, read_predictions
from curvewise.study.spec.design import Design
from curvewise.study.spec.document import KEYS, read_document, study_fields, within, write_document
from curvewise.study.spec.study import StudySpec
from curvewise.study.status import Status, after_run, study_status
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd


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
    Measurements(6 rows in fraction, 3 sizes (100 to 400), 1 learner(s): 'bayes')
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
            ``"local"``: processes of this machine. ``"ray"``: a Ray cluster that is found or
            started here; an address: that Ray cluster.
        **options
            As of :func:`curvewise.study.run.local.run_local`: ``device``, ``workers``,
            ``in_flight``, ``compile``, ``fresh``, ``shard``, ``retry_failed``, ``progress``.

        Returns
        -------
        Status
            How far the study is now. A run that failed is counted there, and is no error.
        """
        if on not in ("local", "ray", "auto") and ":" not in on:
            raise InputError(f"on={on!r}: use 'local', 'ray', or an address as 'host:6379'.")
        study = self.trusted()
        if on == "local":
            from curvewise.study.run.local import run_local

            outcome = run_local(study, **options)
        else:
            from curvewise.study.run.ray import run_ray

            outcome = run_ray(study, address=None if on == "ray" else on, **options)
        return after_run(study.status(), outcome)

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
            numbers), or whatever the runs measured.
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
            raise InputError(f"seeds={seeds!r}: use 'each' or 'mean'.")
        asked = metric or ("loss" if self.dataset.is_numbers else "error")
        found = read_measurements(self, asked, evaluation, learner, settings)
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
            Only runs with these: ``fold``, ``vary``, names of the grid.

        Raises
        ------
        InputError
            If the runs are of more than one training; the message says what to choose.
        """
        return read_predictions(self, learner, evaluation, probabilities, {"n": n, **settings})

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
        return choose_network(self, learner, run, {"n": n, **settings})

    def frame(self) -> pd.DataFrame:
        """Return one row per planned run: a corpus of models, a table of losses, a truth to rank by.

        Columns: run (its id), learner, n, fold, the seeds, the settings of the grid, what else the
        learners differ in, status (done, failed, missing, outdated, damaged), then the metrics:
        error, loss, train_error, train_loss, gap, ``error.<set>`` for further evaluation sets,
        seconds, …, and the reason of a failure.
        """
        return read_frame(self)

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
        Options of the recipe (``architecture="resnet18"``); fields of :class:`Design`
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
