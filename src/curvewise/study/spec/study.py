"""A study: data, learners and a design, and the runs that follow from them."""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError, UntrustedCodeError
from curvewise.learning.partition import Partition, Subset, partition_training_set
from curvewise.nn.own_code import names_own_code
from curvewise.nn.task import Examples, Keep, Outputs, Poke
from curvewise.store.record import data_digest, run_id
from curvewise.study.data.dataset import Dataset, scaled, target_scale
from curvewise.study.spec.design import Design
from curvewise.study.spec.evaluation import Evaluation
from curvewise.study.spec.learner import Learner, settle_learner
from curvewise.types.measurements import Measurements
from curvewise.types.predictions import Predictions

if TYPE_CHECKING:
    import pandas as pd

    from curvewise.study.data.load import MadeCopy
    from curvewise.study.plan import Plan
    from curvewise.study.results import StudyNetwork
    from curvewise.study.status import Status


TEST = "test"
"""The evaluation set that every study has."""


@dataclass(frozen=True)
class Study:
    """Data, learners and a design: many trainings, their store, and what the lenses read of it.

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

    data: Dataset | Mapping[str, Any] | str
    learners: Mapping[str, Learner]
    design: Design = field(default_factory=Design)
    evaluate: Mapping[str, Evaluation] = field(default_factory=dict)
    keep: Keep = field(default_factory=Keep)
    seed: int = 0
    name: str = "study"
    folder: Path = field(default_factory=Path)
    store: Path | None = None
    trust: bool = field(default=True, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.learners:
            raise InputError("learners is empty: name at least one.")
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError(f"seed={self.seed!r}: give a whole number from 0 on.")
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"name={self.name!r}: give the study a name.")
        for name, values in self.design.grid.items():
            if isinstance(values, Mapping) and name not in self.learners:
                raise InputError(
                    f"grid has settings for {name!r}, which is no learner: there are {', '.join(self.learners)}."
                )
        object.__setattr__(self, "folder", Path(self.folder))
        if self.store is not None:
            object.__setattr__(self, "store", Path(self.store))
        if len({name.lower() for name in self.evaluate}) < len(self.evaluate):
            raise InputError(
                f"evaluate has sets that differ only by case ({', '.join(self.evaluate)}), which "
                "some file systems cannot keep apart: rename one."
            )
        for name in self.evaluate:
            if name.lower() in (TEST, "train") or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
                raise InputError(
                    f"evaluate has a set called {name!r}: use letters, digits, '_', '.' and '-', "
                    "and neither 'test' nor 'train', which there are always."
                )

    def __getstate__(self) -> dict[str, Any]:
        """What is sent to workers: how the study was given, not what was loaded or computed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def plan(self, *, measure: bool = True, device: str | None = None, trust: bool = False) -> Plan:
        """Say what :meth:`run` would do: runs, time, disk space, and what to beware of.

        Of a study that is not trusted, no code is imported: what cannot be known without it is
        said in the warnings.

        Parameters
        ----------
        measure : bool
            Whether to train networks for a few steps where no stored run tells how long they take.
        device : str, optional
            Where it would be done; by default as :meth:`run` chooses.
        trust : bool
            Whether code that the study names may be imported, although the study is not trusted.
        """
        from curvewise.study.plan import plan_study

        return plan_study(self._trusted() if trust else self, measure=measure, device=device)

    def run(self, on: str = "local", **options: Any) -> Status:
        """Make the runs that the store lacks; what is there stays.

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
        if not self.trust:
            return self._trusted().run(on, **options)
        if on == "local":
            from curvewise.study.run.local import run_local

            outcome = run_local(self, **options)
        else:
            from curvewise.study.run.ray import run_ray

            outcome = run_ray(self, address=None if on == "ray" else on, **options)
        from curvewise.study.status import after_run

        return after_run(self.status(), outcome)

    def status(self) -> Status:
        """Say how far the study is: done, failed and why, being made by whom, left."""
        from curvewise.study.status import study_status

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
        """One value per run, for the learning lens.

        Settings of the grid make a learner another one: they are part of its name. Failed runs are
        NaN with status ``"failed"``; what failed or is missing is said in the notes.

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
        from curvewise.study.results import read_measurements

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
        """What the runs of one training predicted, for the variance lens.

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
        from curvewise.study.results import read_predictions

        return read_predictions(self, learner, evaluation, probabilities, {"n": n, **settings})

    def network(
        self, learner: str | None = None, *, run: str | None = None, n: int | None = None, **settings: Any
    ) -> StudyNetwork:
        """A trained network with its weights, and the examples it was trained on.

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
        from curvewise.study.results import choose_network

        return choose_network(self, learner, run, {"n": n, **settings})

    def frame(self) -> pd.DataFrame:
        """One row per planned run: a corpus of models, a table of losses, a truth to rank by.

        Columns: run (its id), learner, n, fold, the seeds, the settings of the grid, what else the
        learners differ in, status (done, failed, missing, outdated, damaged), then the metrics:
        error, loss, train_error, train_loss, gap, ``error.<set>`` for further evaluation sets,
        seconds, …, and the reason of a failure.
        """
        from curvewise.study.results import read_frame

        return read_frame(self)

    def save(self, path: str | PathLike[str]) -> Path:
        """Write a study file that :func:`load_study` reads as the same study.

        Raises
        ------
        InputError
            If the data is in memory, which a file cannot name.
        """
        from curvewise.study.spec.document import write_study

        return write_study(self, path)

    @property
    def runs_folder(self) -> Path:
        """Where the runs are kept."""
        if self.store is not None:
            return self.folder / self.store
        return self.folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.name)}-runs"

    @cached_property
    def dataset(self) -> Dataset:
        """The data, loaded."""
        return self.load_data(self.data, "data")

    def load_data(self, spec: Dataset | Mapping[str, Any] | str, key: str) -> Dataset:
        """Load data of the study; of a study that is not trusted, call no function to make it.

        Parameters
        ----------
        spec : Dataset, dict or str
            What to load.
        key : str
            Where the study has it, for messages.

        Raises
        ------
        UntrustedCodeError
            If a function makes the data, and no run has left a copy of it in the store.
        """
        if isinstance(spec, Dataset):
            return spec
        from curvewise.study.data.load import load_dataset

        copy = self._copy_of(spec)
        if self.trust or copy is None:
            return load_dataset(spec, folder=self.folder)
        if not copy.is_there:
            raise UntrustedCodeError(
                f"{key} is made by {copy.options['function']}, which is not imported without "
                "--trust (in Python trust=True), and no run has left a copy of the data in "
                f"{self.runs_folder}: the examples, and so the runs, are unknown. Read the code, "
                "then pass --trust, or run the study."
            )
        return copy.read()

    def _copy_of(self, spec: Dataset | Mapping[str, Any] | str | None) -> MadeCopy | None:
        """The copy in the store of what a function makes; None for data that is read."""
        from curvewise.study.data.load import made_by, made_copy

        options = None if spec is None else made_by(spec, self.folder)
        return None if options is None else made_copy(options, self.runs_folder, self.folder)

    def keep_made_data(self) -> None:
        """Keep a copy of data that functions make in the store, which is read without trust."""
        sets = [self.data, *(e.data for e in self.evaluate.values())]
        for i, spec in enumerate(sets):
            copy = self._copy_of(spec)
            if copy is not None and spec is not None:
                copy.write(self.dataset if i == 0 else self.load_data(spec, "data"))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What is taken for granted because code of the study was not imported."""
        if self.trust:
            return ()
        copies = [self._copy_of(s) for s in (self.data, *(e.data for e in self.evaluate.values()))]
        there = [copy for copy in copies if copy is not None and copy.is_there]
        return tuple(dict.fromkeys(copy.assumption() for copy in there))

    def unimported(self, learner: Learner) -> str | None:
        """What a learner is made by that may not be imported; None if it can be made."""
        name, options = learner.estimator, learner.options
        if learner.training is not None:
            name, options = learner.training.architecture, learner.training.options
        own = name is not None and names_own_code(name, options)
        return name if own and not self.trust else None

    def _trusted(self) -> Study:
        """The study, whose code may be imported; what was read from files is not read again."""
        trusted = replace(self, trust=True)
        if "dataset" in self.__dict__ and self._copy_of(self.data) is None:
            trusted.__dict__["dataset"] = self.dataset
        return trusted

    @cached_property
    def train_rows(self) -> NDArray[np.int64]:
        """Positions of the examples that may be trained on."""
        data = self.dataset
        if data.test_x is not None:
            return np.arange(len(data.y), dtype=np.int64)
        return np.setdiff1d(np.arange(len(data.y), dtype=np.int64), self._held_out)

    @cached_property
    def _held_out(self) -> NDArray[np.int64]:
        from curvewise.study.curves import hold_out

        data = self.dataset
        _, split, _ = hold_out(data.x, data.y, self.design.test, self._stratify, self.seed)
        return split.test

    @property
    def _stratify(self) -> bool:
        """Whether subsets keep the shares of the classes; numbers have none."""
        return self.design.stratify and not self.dataset.is_numbers

    @cached_property
    def partition(self) -> Partition:
        """The training subsets; their indices count within :attr:`train_rows`."""
        design, labels = self.design, self.dataset.y[self.train_rows]
        if self.dataset.is_numbers and design.per_class:
            raise InputError("per_class=True counts examples of a class, and targets are numbers.")
        sizes = [len(self.train_rows)] if design.sizes is None else list(design.sizes)
        with warnings.catch_warnings():
            # Said in the plan and in notes, rather than by each worker that draws the subsets.
            warnings.simplefilter("ignore", CurvewiseWarning)
            return partition_training_set(
                labels if self._stratify or design.per_class else len(labels),
                sizes,
                design.folds,
                nested=design.nested,
                stratify=self._stratify,
                per_class=design.per_class,
                rng=self.seed,
            )

    @cached_property
    def _subsets(self) -> dict[tuple[int, int], tuple[NDArray[np.int64], str]]:
        found = {}
        for subset in self.partition:
            rows = self.train_rows[subset.indices]
            found[subset.n, subset.fold] = rows, data_digest(rows)
        return found

    def rows_of(self, n: int, fold: int) -> NDArray[np.int64]:
        """Positions of the examples of one training subset."""
        return self._subsets[n, fold][0]

    def subset_digest(self, subset: Subset) -> str:
        """Hash of the examples of one training subset."""
        return self._subsets[subset.n, subset.fold][1]

    @cached_property
    def jobs(self) -> list[Job]:
        """Every run that the study asks for, searches for learning rates first."""
        return plan_jobs(self)

    @cached_property
    def data_digest(self) -> str:
        """Hash of the training inputs, their targets and how they are normalised."""
        data = self.dataset
        about: tuple[Any, ...] = (self._channel_statistics, len(data.classes), data.padding)
        if data.is_numbers:
            about = (*about, "numbers", self._target_scale)
        return data_digest([data.digest, repr(about)])

    @cached_property
    def examples(self) -> Examples:
        """What networks are trained on."""
        return self._examples(self.dataset.x, self.dataset.y)

    @cached_property
    def evaluation_sets(self) -> dict[str, Examples]:
        """What every trained model predicts, by name; the test set first."""
        from curvewise.study.spec.evaluation import make_evaluation_sets

        if self.keep.probabilities and self.dataset.is_numbers:
            raise InputError(
                "keep has probabilities, which numbers have not: use predictions = true to keep the predicted numbers."
            )
        return make_evaluation_sets(self)

    def test_examples(self) -> Examples:
        """The test set: the data's own, or the examples held out."""
        data = self.dataset
        if data.test_x is not None and data.test_y is not None:
            return self._examples(data.test_x, data.test_y)
        return self._examples(data.x[self._held_out], data.y[self._held_out])

    def label_digests(self) -> dict[str, str]:
        """For each evaluation set, the hash of its inputs and targets."""
        return {name: examples_digest(s) for name, s in self.evaluation_sets.items()}

    def _examples(self, x: NDArray[Any], y: NDArray[Any]) -> Examples:
        mean, std = self._channel_statistics
        data = self.dataset
        targets = self.scaled_targets(y) if data.is_numbers else y.astype(np.int64)
        return Examples(x, targets, len(data.classes), mean=mean, std=std, padding=data.padding)

    @property
    def outputs(self) -> Outputs:
        """What is predicted of one input: the number of classes, or the shape of its numbers."""
        data = self.dataset
        return tuple(data.y.shape[1:]) if data.is_numbers else len(data.classes)

    def scaled_targets(self, y: NDArray[np.float32]) -> NDArray[np.float32]:
        """Numbers as the study predicts them: standardised if the data asks for it."""
        return y if self._target_scale is None else scaled(y, *self._target_scale)

    @cached_property
    def _target_scale(self) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
        data = self.dataset
        return target_scale(data.y[self.train_rows]) if data.standardise else None

    @cached_property
    def _channel_statistics(self) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        """Mean and spread of each feature, or channel from 0 to 1, over the training part."""
        data = self.dataset
        if data.padding is not None:  # tokens
            return None, None
        if not data.is_image:
            features = data.x[self.train_rows].astype(np.float64)
            return _as_tuples(features.mean(axis=0), features.std(axis=0))
        counts = np.stack(
            [np.bincount(data.x[self.train_rows, c].ravel(), minlength=256) for c in range(data.x.shape[1])]
        )
        levels = np.arange(256) / 255
        share = counts / counts.sum(axis=1, keepdims=True)
        mean = share @ levels
        std = np.sqrt(np.maximum(share @ levels**2 - mean**2, 0))
        return _as_tuples(mean, std)


def _as_tuples(mean: NDArray[np.float64], std: NDArray[np.float64]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Plain numbers; what does not vary is not scaled."""
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


def examples_digest(examples: Examples) -> str:
    """Hash of the inputs and targets of an evaluation set."""
    return data_digest([data_digest(examples.x), data_digest(examples.y)])


# The runs that a study plans, each with the coordinates that name it in the store.

RECIPE = "study/1"  # counts up when the same coordinates would train otherwise
SEARCH = "rate-search/1"


@dataclass(frozen=True, eq=False)
class Job:
    """One run to be made.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's folder in the store.
    coordinates : dict
        What identifies the run.
    name : str
        Name of the learner in the study.
    learner : Learner
        With the settings of the grid; its rate may still be several, see ``needs``.
    settings : dict
        The settings that the grid gave.
    n, fold : int
        Which training subset.
    seeds : dict of str to int
        init, order, augmentation.
    poke : Poke, optional
        Whether and when a weight is nudged.
    needs : str, optional
        Id of the search for the learning rate, which must be in the store before this run.
    is_search : bool
        Whether this is such a search.
    varies : str
        What differs between the runs it belongs with, as ``"init+order"``; no part of its
        coordinates, which say how it was trained and not why.
    """

    id: str
    coordinates: Mapping[str, Any]
    name: str
    learner: Learner
    settings: Mapping[str, Any]
    n: int
    fold: int
    seeds: Mapping[str, int]
    poke: Poke | None = None
    needs: str | None = None
    is_search: bool = False
    varies: str = ""

    @property
    def cost(self) -> float:
        """How long it takes, in examples looked at: only good for comparing runs of a learner."""
        training = self.learner.training
        if training is None:
            return float(self.n)
        looks = training.steps_for(self.n) * training.batch_for(self.n) + 1.0
        return looks * self.learner.members * (len(training.rates) if self.is_search else 1)


def plan_jobs(study: Study) -> list[Job]:
    """List the runs of a study: searches for rates first, then learner by learner."""
    searches: list[Job] = []
    runs: list[Job] = []
    digests: dict[str, str] = {}
    for name, learner in study.learners.items():
        for settings in study.design.combinations(name, learner.takes):
            about = settle_learner(learner.with_settings(settings), study.outputs, name)
            weights = _weights_digest(about, study.folder, digests)
            shared = {
                "recipe": RECIPE,
                "data": study.data_digest,
                "learner": name,
                "training": about.as_dict(),
                **settings,
                **({"weights": weights} if weights else {}),
            }
            search = _search(study, name, about, settings, shared)
            searches += [] if search is None else [search]
            needs = None if search is None else search.id
            runs += _runs(study, name, about, settings, shared, needs)
    return searches + runs


def _runs(
    study: Study, name: str, learner: Learner, settings: Mapping[str, Any], shared: Mapping[str, Any], needs: str | None
) -> list[Job]:
    jobs = []
    for subset in study.partition:
        where = {"n": subset.n, "fold": subset.fold, "subset": study.subset_digest(subset)}
        for varies, seeds, poke in _chances(study, subset):
            coordinates = {**shared, **where, **{f"{k}_seed": v for k, v in seeds.items()}}
            if poke is not None:
                coordinates["poke"] = {"epoch": float(poke.epoch), "factor": float(poke.factor)}
                coordinates["poke_seed"] = poke.seed
            if needs is not None:
                coordinates["search"] = needs
            jobs.append(
                Job(
                    id=run_id(coordinates),
                    coordinates=coordinates,
                    name=name,
                    learner=learner,
                    settings=settings,
                    n=subset.n,
                    fold=subset.fold,
                    seeds=seeds,
                    poke=poke,
                    needs=needs,
                    varies=varies,
                )
            )
    return jobs


def _chances(study: Study, subset: Subset) -> Iterator[tuple[str, dict[str, int], Poke | None]]:
    """What varies, the seeds and the poke of each run on one subset.

    The run in which everything stays at its first seed would belong to every variation. It counts
    in the first one only, and the others go on to the next replicate, so that no run is in two.
    """
    design, taken = study.design, set()
    for variation in design.variations:
        left = design.seeds
        for replicate in count():
            seeds = design.seeds_of(study.seed, subset.n, subset.fold, replicate, variation)
            if (key := tuple(seeds.items())) in taken:
                continue
            taken.add(key)
            poke = Poke(seeds.pop("poke"), **(design.poke or {})) if "poke" in seeds else None
            yield "+".join(variation), seeds, poke
            left -= 1
            if not left:
                break


def _search(
    study: Study, name: str, learner: Learner, settings: Mapping[str, Any], shared: Mapping[str, Any]
) -> Job | None:
    """The search for the learning rate, on the first subset of the middle size."""
    if learner.training is None or len(learner.training.rates) < 2:
        return None
    sizes = study.partition.sizes
    subset = study.partition.at(sizes[len(sizes) // 2])[0]
    seeds = study.design.seeds_of(study.seed, subset.n, subset.fold, 0)
    seeds.pop("poke", None)
    coordinates = {
        **shared,
        "recipe": SEARCH,
        "n": subset.n,
        "subset": study.subset_digest(subset),
        **{f"{k}_seed": v for k, v in seeds.items()},
    }
    return Job(
        id=run_id(coordinates),
        coordinates=coordinates,
        name=name,
        learner=replace(learner, members=1),
        settings=settings,
        n=subset.n,
        fold=subset.fold,
        seeds=seeds,
        is_search=True,
    )


def _weights_digest(learner: Learner, folder: Path, known: dict[str, str]) -> str | None:
    """Hash of what the network starts from, so that other weights are another run."""
    training = learner.training
    if training is None:
        return None
    found = []
    if training.architecture.startswith("hf:"):
        place = folder / training.architecture.removeprefix("hf:")
        found += sorted(p for p in place.glob("*") if p.is_file())
    if training.weights is not None:
        path = folder / training.weights
        if not path.is_file():
            raise InputError(f"weights={training.weights!r}: there is no file {path}.")
        found.append(path)
    for path in found:
        if str(path) not in known:
            with path.open("rb") as stream:
                known[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    hashes = [known[str(path)] for path in found]
    return hashes[0] if len(hashes) == 1 else data_digest(hashes) if hashes else None
