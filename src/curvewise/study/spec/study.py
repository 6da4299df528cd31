"""The specification of a study: data, learners and a design, and the runs that follow from them.

Nothing here trains or reads results: :class:`~curvewise.study.study.Study` adds that on top.
"""

from __future__ import annotations

import hashlib
import math
import re
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import CurvewiseWarning, InputError, StoreError, UntrustedCodeError, arg, either, importing
from curvewise.learning.partition import Partition, Subset, partition_training_set, read_size
from curvewise.nn.own_code import find_function, names_own_code
from curvewise.nn.task import Examples, Keep, Outputs, Poke
from curvewise.nn.training import (
    IMAGE_ARCHITECTURES,
    ROW_ARCHITECTURES,
    Training,
    behind_first_layer,
    check_sides,
    check_torchvision_options,
)
from curvewise.store.read import read_record, run_folders
from curvewise.store.record import TEST, data_digest, run_id
from curvewise.study.data.dataset import (
    Dataset,
    class_groups,
    earlier_statistics,
    hold_out,
    level_counts,
    level_statistics,
    scaled,
    target_scale,
)
from curvewise.study.data.load import DataCopy, load_dataset, made_by
from curvewise.study.spec.design import CLASSES, Design, Learner, check_learner, settle_learner, within
from curvewise.study.spec.evaluation import (
    Evaluation,
    check_perturbation,
    check_views,
    match_examples,
    perturb_examples,
)

RECIPE = "study/1"  # counts up when the same coordinates would train otherwise
SEARCH = "rate-search/1"
TEST_SHARE = 0.2
"""Of the examples, held out where a design does not say how many."""
HOLDING = ("early-stop", "plateau")
"""Schedules that hold out ``validation`` of a subset."""
CHECKPOINTS = ("none", "end", "drops")
"""Choices of the weights to keep; each includes the ones before it."""


@dataclass(frozen=True)
class StudySpec:
    """Data, learners and a design; see :class:`~curvewise.study.study.Study` for its fields."""

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
        kinds: dict[str, Any] = {"learners": Mapping, "design": Design, "evaluate": Mapping, "keep": Keep}
        for name, kind in kinds.items():
            if not isinstance(value := getattr(self, name), kind):
                what = "dict of them by name" if kind is Mapping else f"curvewise.study.{kind.__name__}"
                raise InputError(f"is a {type(value).__name__}: give a {what}.", argument=name)
        for argument, every, each in (("learners", self.learners, Learner), ("evaluate", self.evaluate, Evaluation)):
            for key, value in every.items():
                if not isinstance(value, each):
                    problem = f"is a {type(value).__name__}: give a curvewise.study.{each.__name__}."
                    raise InputError(problem, argument=f"{argument}.{key}")
        if not self.learners:
            raise InputError("is empty: name at least one.", argument="learners")
        if isinstance(self.seed, np.integer):
            object.__setattr__(self, "seed", int(self.seed))
        if isinstance(self.seed, bool) or not isinstance(self.seed, int) or self.seed < 0:
            raise InputError("give a whole number from 0 on.", argument="seed", value=self.seed)
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError("give the study a name.", argument="name", value=self.name)
        for name, values in self.design.grid.items():
            if isinstance(values, Mapping) and name not in self.learners:
                problem = f"has settings for {name!r}, which is not a learner: there are {', '.join(self.learners)}."
                raise InputError(problem, argument="grid")
        object.__setattr__(self, "folder", Path(self.folder))
        if self.store is not None:
            object.__setattr__(self, "store", Path(self.store))
        if len({name.lower() for name in self.evaluate}) < len(self.evaluate):
            names = ", ".join(self.evaluate)
            problem = (
                f"has sets that differ only by case ({names}), which some file systems cannot keep apart: rename one."
            )
            raise InputError(problem, argument="evaluate")
        for name in self.evaluate:
            if name.lower() in (TEST, "train") or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
                raise InputError(
                    f"has a set called {name!r}: use letters, digits, '_', '.' and '-', and neither 'test' nor "
                    "'train', which there are always.",
                    argument="evaluate",
                )

    def __getstate__(self) -> dict[str, Any]:
        """Send the fields to workers, and nothing that was loaded or computed."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    @property
    def runs_folder(self) -> Path:
        """The folder in which the runs are kept."""
        if self.store is not None:
            return self.folder / self.store
        return self.folder / f"{re.sub(r'[^A-Za-z0-9_.-]+', '-', self.name)}-runs"

    # ---- Data, and code that may be imported only if the study is trusted

    @cached_property
    def dataset(self) -> Dataset:
        """The data, loaded."""
        return self.load_data(self.data, "data")

    def load_data(self, spec: Dataset | Mapping[str, Any] | str, key: str) -> Dataset:
        """Load data of the study; ``key`` is its place in the study, for messages.

        Raises
        ------
        UntrustedCodeError
            If a function makes the data, the study is not trusted, and no run has left a copy in the store.
        """
        if isinstance(spec, Dataset):
            return spec
        copy = self._copy_of(spec)
        if self.trust or copy is None:
            return load_dataset(spec, folder=self.folder)
        if not copy.is_there:
            raise UntrustedCodeError(
                f"{key} is made by {copy.options['function']}, which is not imported without "
                f"{either('trust=True', '--trust')}, and no run has left a copy of the data in "
                f"{self.runs_folder}: the examples, and so the runs, are unknown. Read the code, "
                f"then pass {either('trust=True', '--trust')}, or run the study."
            )
        return copy.read()

    def _copy_of(self, spec: Dataset | Mapping[str, Any] | str | None) -> DataCopy | None:
        """The copy in the store of data that a function makes; None for data that is read."""
        options = None if spec is None else made_by(spec, self.folder)
        return None if options is None else DataCopy(options, self.runs_folder, self.folder)

    def keep_made_data(self) -> None:
        """Copy data that functions make to the store, where it can be read without trust."""
        for i, spec in enumerate((self.data, *(e.data for e in self.evaluate.values()))):
            copy = self._copy_of(spec)
            if copy is not None and spec is not None:
                copy.write(self.dataset if i == 0 else self.load_data(spec, "data"))

    @property
    def assumptions(self) -> tuple[str, ...]:
        """Assumptions made because code of the study was not imported."""
        if self.trust:
            return ()
        copies = [self._copy_of(s) for s in (self.data, *(e.data for e in self.evaluate.values()))]
        there = [copy for copy in copies if copy is not None and copy.is_there]
        return tuple(dict.fromkeys(copy.assumption() for copy in there))

    def unimported(self, learner: Learner) -> str | None:
        """The code that makes a learner and may not be imported; None if it can be made."""
        name, options = learner.estimator, learner.options
        if learner.training is not None:
            name, options = learner.training.architecture, learner.training.options
        own = name is not None and names_own_code(name, options)
        return name if own and not self.trust else None

    def trusted(self) -> Self:
        """The same study with permission to import its code; files that were read are not read again."""
        if self.trust:
            return self
        trusted = replace(self, trust=True)
        self.lend_data(trusted)
        return trusted

    def lend_data(self, other: Self) -> None:
        """Let a copy of this study use the data that was read; data that a function made depends on who may call it."""
        if "dataset" in self.__dict__ and self._copy_of(self.data) is None:
            other.__dict__["dataset"] = self.dataset

    # ---- Training part, test set and subsets

    @cached_property
    def train_rows(self) -> NDArray[np.int64]:
        """Positions of the examples that may be trained on."""
        rows = np.arange(len(self.dataset.y), dtype=np.int64)
        return rows if self.has_own_test else np.setdiff1d(rows, self._held_out)

    @property
    def has_own_test(self) -> bool:
        """True if the study is tested on the data's own test set."""
        return self.dataset.test_x is not None and not self.design.hold_out

    @cached_property
    def _held_out(self) -> NDArray[np.int64]:
        test = TEST_SHARE if self.design.test is None else self.design.test
        try:
            return hold_out(self.dataset.y, test, self._stratify, self.seed)[1]
        except InputError as error:
            if error.argument != "test":
                raise
            problem = f"design.test = {test}: cannot be held out of {len(self.dataset.y)} examples."
            raise InputError(problem, remedy="Give a fraction between 0 and 1, or a smaller number.") from error

    @property
    def _stratify(self) -> bool:
        """True if subsets keep the shares of the classes; numbers have none."""
        return self.design.stratify and not self.dataset.is_numbers

    @cached_property
    def partition(self) -> Partition:
        """The training subsets; their indices count within :attr:`train_rows`."""
        design, labels = self.design, self.dataset.y[self.train_rows]
        if self.dataset.is_numbers and design.per_class:
            raise InputError("counts examples of a class, and targets are numbers.", argument="per_class", value=True)
        sizes = [len(self.train_rows)] if design.sizes is None else list(design.sizes)
        for size in sizes:
            self._check_classes_of(size)
        with warnings.catch_warnings():
            # They stand in the plan and in notes, rather than coming from each worker that draws the subsets.
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

    def _check_classes_of(self, size: float | str) -> None:
        """Refuse a size per class that a class cannot give, by its name."""
        read = read_size(size) if isinstance(size, str) else None
        if read is None:
            return
        if self.dataset.is_numbers:
            raise InputError(f"holds {size!r}, and targets are numbers: give numbers or shares.", argument="sizes")
        count, each, held = read
        names, there = self.dataset.classes, np.bincount(self.dataset.y[self.train_rows], minlength=1)
        there = np.pad(there, (0, len(names) - len(there)))
        few = np.flatnonzero(there < (count if each else 1) + held)
        if len(few):
            lacking = ", ".join(f"{names[i]!r} ({there[i]})" for i in few[:5])
            problem = f"holds {size!r}, and there are fewer training examples of {len(few)} class(es): {lacking}."
            raise InputError(problem, argument="sizes", remedy="Ask for fewer, or leave these classes out of the data.")
        if held and not each and count < len(names):
            problem = f"holds {size!r}, which leaves {count} example(s) to train on for {len(names)} classes."
            raise InputError(problem, argument="sizes", remedy=f"Ask for '{len(names)} + {held}/class' or more.")

    @cached_property
    def _subsets(self) -> dict[tuple[int, int], tuple[NDArray[np.int64], str]]:
        """For each size and fold, the positions of its examples and their hash."""
        found = {}
        for subset in self.partition:
            rows = self.train_rows[subset.indices]
            found[subset.n, subset.fold] = rows, data_digest(rows)
        return found

    def rows_of(self, n: int, fold: int) -> NDArray[np.int64]:
        """Positions of the examples of one training subset."""
        return self._subsets[n, fold][0]

    def held_of(self, n: int) -> int:
        """Examples of each class that a size sets aside to validate on."""
        return self.partition.at(n)[0].held

    def subset_digest(self, subset: Subset) -> str:
        """Hash of the examples of one training subset."""
        return self._subsets[subset.n, subset.fold][1]

    # ---- Examples as networks take them

    @cached_property
    def examples(self) -> Examples:
        """The examples that networks are trained on."""
        return self.as_examples(self.dataset.x, self.dataset.y)

    @cached_property
    def evaluation_sets(self) -> dict[str, Examples]:
        """The sets that every trained model predicts, by name; the test set first.

        Other data must have inputs of the study's shape. Its classes are matched by name; by number
        where either side has only numbers for names. Perturbed copies are drawn from the study's seed
        and the perturbation, so that several magnitudes of one perturbation share their noise. For a
        range of magnitudes each example's own is drawn from the seed, the perturbation and the
        example's position, whatever the range. Where targets are numbers, other data must have numbers
        of the same shape; where they are images, no perturbation may move the pixels of an input.
        """
        if self.keep.probabilities and self.dataset.is_numbers:
            raise InputError(
                "keep has probabilities, but the targets are numbers: use predictions = true to keep predicted numbers."
            )
        for name, evaluation in self.evaluate.items():  # before anything is loaded or perturbed
            check_perturbation(name, evaluation, self.dataset)
            check_views(name, evaluation, self)
        sets = {TEST: self.test_examples()}
        for name, evaluation in self.evaluate.items():
            examples = sets[TEST]
            if evaluation.data is not None:
                other = self.load_data(evaluation.data, f"evaluate.{name}.data")
                examples = self.as_examples(*match_examples(name, other, self.dataset))
            sets[name] = replace(perturb_examples(examples, evaluation, self.seed), views=tuple(evaluation.views))
        return sets

    def leaks(self, *names: str) -> list[str]:
        """Warn of the evaluation sets among these names that hold the very data that learners are trained on."""
        return [
            f"evaluate.{name} is the data of the study, and its learners are trained on a part of that: their error on "
            "it is lower than on new examples."
            for name in names
            if name != TEST and np.array_equal(self.evaluation_sets[name].x, self.dataset.x)
        ]

    def test_examples(self) -> Examples:
        """The test set: the data's own, or the examples held out."""
        data = self.dataset
        if self.has_own_test and data.test_x is not None and data.test_y is not None:
            return self.as_examples(data.test_x, data.test_y)
        return self.as_examples(data.x[self._held_out], data.y[self._held_out])

    def label_digests(self) -> dict[str, str]:
        """For each evaluation set, the hash of its inputs and targets."""
        return {name: examples_digest(s) for name, s in self.evaluation_sets.items()}

    def as_examples(self, x: NDArray[Any], y: NDArray[Any]) -> Examples:
        """Inputs and targets as the study normalises them."""
        mean, std = self._channel_statistics
        data = self.dataset
        if data.is_numbers:
            targets = y if self._target_scale is None else scaled(y, *self._target_scale)
        else:
            targets = y.astype(np.int64)
        return Examples(x, targets, len(data.classes), mean=mean, std=std, padding=data.padding)

    @property
    def outputs(self) -> Outputs:
        """The prediction for one input: the number of classes, or the shape of its numbers."""
        data = self.dataset
        return tuple(data.y.shape[1:]) if data.is_numbers else len(data.classes)

    @cached_property
    def data_digest(self) -> str:
        """Hash of the training inputs, their targets and how they are normalised.

        Runs that a version up to 0.2 has stored remain valid: where the store has runs of the same images under
        statistics that were rounded otherwise, their hash is kept.
        """
        data, own = self.dataset, self._digest_with(self._channel_statistics)
        if not data.is_image or not self.runs_folder.is_dir():
            return own
        earlier: set[str] | None = None
        for path in run_folders(self.runs_folder):
            with suppress(StoreError):  # reported where runs are read
                stored = read_record(path)["coordinates"].get("data")
                if stored == own:
                    break
                if earlier is None:
                    counts = level_counts(data.x, self.train_rows)
                    earlier = {self._digest_with(statistics) for statistics in earlier_statistics(counts)}
                if stored in earlier:
                    return str(stored)
        return own

    def _digest_with(self, statistics: tuple[Any, Any]) -> str:
        """Hash of the training data with these statistics of the inputs."""
        data = self.dataset
        about: tuple[Any, ...] = (statistics, len(data.classes), data.padding)
        if data.is_numbers:
            about = (*about, "numbers", self._target_scale)
        return data_digest([data.digest, repr(about)])

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
        if data.is_image:
            return level_statistics(level_counts(data.x, self.train_rows))
        return target_scale(data.x[self.train_rows].astype(np.float64))

    def grouped(self, job: Job) -> Self:
        """The study with the classes that a run is trained for, where the grid groups them."""
        groups = job.settings.get(CLASSES)
        if groups is None:
            return self
        new, study = class_groups(groups, len(self.dataset.classes)), replace(self)

        def regroup(examples: Examples) -> Examples:
            return replace(examples, y=new[examples.y], classes=int(new.max()) + 1)

        sets = {name: regroup(examples) for name, examples in self.evaluation_sets.items()}
        study.__dict__.update(self.__dict__, examples=regroup(self.examples), evaluation_sets=sets)
        return study

    def class_names(self, job: Job) -> tuple[str, ...]:
        """Names of the classes that a run tells apart."""
        groups = job.settings.get(CLASSES)
        return self.dataset.classes if groups is None else self.dataset.grouped(groups).classes

    # ---- Runs

    @cached_property
    def jobs(self) -> list[Job]:
        """Every run that the study asks for, searches for learning rates first."""
        searches: list[Job] = []
        runs: list[Job] = []
        # Several learners may start from one file, which is hashed once.
        digests: dict[str, str] = {}
        opened: dict[str, Training] = {}
        for name, learner in self.learners.items():
            for settings in self.design.combinations(name, learner.takes):
                outputs = self.outputs
                if CLASSES in settings:
                    outputs = int(class_groups(settings[CLASSES], len(self.dataset.classes)).max()) + 1
                    if learner.kind == "command":
                        problem = f"{name!r} is a command, which reads its classes from a file of the data."
                        remedy = f"Say {arg('data.classes')} instead."
                        raise InputError(problem, argument=f"grid.{CLASSES}", remedy=remedy)
                about = settle_learner(learner.with_settings(settings), outputs, name, max(self.partition.sizes))
                about = _settle_weights(self, about, name, opened)
                weights = _weights_digest(about, self.folder, digests)
                shared = {"recipe": RECIPE, "data": self.data_digest, "learner": name, "training": about.as_dict()}
                shared |= {**settings, **({"weights": weights} if weights else {})}
                search = _search(self, name, about, settings, shared)
                searches += [] if search is None else [search]
                runs += _runs(self, name, about, settings, shared, None if search is None else search.id)
        poked = {job.poke.epoch for job in runs if job.poke is not None}
        late = [epoch for epoch in self.design.poke_epochs if epoch not in poked]
        if late and any(map(self.design.is_poked, self.design.variations)):
            problem = f"has epoch {late[0]:g}, and every training of the study ends before it: leave it out."
            raise InputError(problem, argument="poke")
        return searches + runs

    def check_trainings(self, names: Collection[str]) -> None:
        """Refuse settings of learners that do not fit the data, or that none of their runs would use.

        Before runs are made, and not before stored ones are read.
        """
        versions: dict[str, list[Learner]] = {}
        for job in self.jobs:
            if job.name not in names or job.learner.training is None:
                continue
            versions.setdefault(job.name, []).append(job.learner)
            with within(f"learners.{job.name}"):
                if self.unimported(job.learner) is None:
                    _check_factory(job.learner.training, self.folder)
                    self._check_groups(job)
        for name, found in versions.items():
            check_learner(name, list({id(learner): learner for learner in found}.values()), self.examples.shape)

    def _check_groups(self, job: Job) -> None:
        """Refuse groups of parameters, or Muon, that the network of a run has no parameters for."""
        training = job.learner.training
        assert training is not None
        if training.groups is None and training.optimiser != "muon":
            return
        # Networks of a grid mostly differ in what has nothing to do with the names of their parameters.
        about = (training.architecture, training.options, training.first_layer, training.optimiser, training.groups)
        checked = self.__dict__.setdefault("_checked_groups", set())
        if repr(about) in checked or training.trained == "head":
            return
        with suppress(ModuleNotFoundError):  # of torch
            from curvewise.nn.networks import check_groups

            check_groups(training, self.examples.shape, self.grouped(job).examples.outputs, self.folder)
        checked.add(repr(about))


def _check_factory(training: Training, folder: Path) -> None:
    """Refuse options that a factory, ours or one's own, does not take: every run would fail."""
    name = training.architecture
    with suppress(ModuleNotFoundError):  # of torch: options are known where networks can be made
        from curvewise.nn.architectures import ARCHITECTURES
        from curvewise.nn.networks import check_factory_options

        factory = ARCHITECTURES.get(name)
        if factory is None and names_own_code(name):
            with suppress(InputError):  # what cannot be imported here is reported by the plan, and by the runs
                factory = find_function("architecture", name, folder)
        if factory is not None:
            check_factory_options(name, factory, training.options)


def check_inputs(jobs: Iterable[Job], data: Dataset) -> None:
    """Refuse networks that the inputs of the data do not fit, before any of their runs is made.

    Raises
    ------
    InputError
        Names learner, setting and a remedy.
    """
    text, channels = data.padding is not None, data.x.shape[1]
    kind = "tokens of texts" if text else "rows of features"
    kind = f"images with {channels} channel{'s' if channels > 1 else ''}" if data.is_image else kind
    for job in {(job.name, repr(job.settings)): job for job in jobs}.values():
        training = job.learner.training
        if training is None:
            continue
        name, problem, remedy = training.architecture, "", ""
        route, _, rest = name.partition(":")
        known = route in ("hf", "timm", "torchvision") if rest else name in (*ROW_ARCHITECTURES, *IMAGE_ARCHITECTURES)
        plain = name in ("linear", "mlp")
        if not known:  # a factory of one's own may take anything; an unknown name is reported elsewhere
            continue
        if not (data.is_image or (text and route == "hf") or (plain and not text)):
            takes = "images or features" if plain else "images or texts" if route == "hf" else "images"
            problem = f"takes {takes}, and the data has {kind}."
            remedy = "Use 'hf:FOLDER', an encoder of texts." if text else "Use 'linear' or 'mlp'."
        elif rest and data.y.ndim > 2:
            problem = f"gives a row of numbers, and the targets are images of shape {data.y.shape[1:]}."
            remedy = "Use 'unet', or 'module:function' for a factory of your own."
        if problem:
            raise InputError(problem, argument=f"learners.{job.name}.architecture", value=name, remedy=remedy)
        with within(f"learners.{job.name}"):
            if data.is_image:
                inner = behind_first_layer(training, data.x.shape[1:])
                check_sides(name, training.options.get("stem", "small"), inner[1:])
            if route == "torchvision":
                check_torchvision_options(rest, training.options)


def check_precision(jobs: Iterable[Job]) -> None:
    """Refuse to train on a CPU what is to be computed in half precision, before any run fails for it."""
    for job in jobs:
        precision = "float32" if job.learner.training is None else job.learner.training.precision
        if precision != "float32":
            problem = "is for GPUs, and this study would be run on a CPU."
            remedy = f"Run it on {arg('device', 'cuda')}, or use {arg('precision', 'float32')}."
            place = f"learners.{job.name}.precision"
            raise InputError(problem, argument=place, value=precision, remedy=remedy)


def half_coloured(jobs: Iterable[Job], data: Dataset) -> list[str]:
    """Warn of colour augmentation that changes only a part of what it names: such images have no colours."""
    channels, found = data.x.shape[1], {}
    for job in jobs if data.is_image and channels != 3 else ():
        for spec in job.learner.training.augmentation if job.learner.training is not None else ():
            if spec.partition(":")[0] == "colour":
                found[job.name, spec] = (
                    f"learners.{job.name}.{arg('augmentation', spec)} changes brightness and contrast only: the images "
                    f"have {channels} channel{'s' if channels > 1 else ''}, and so no saturation and hue."
                )
    return list(found.values())


def examples_digest(examples: Examples) -> str:
    """Hash the inputs and targets of an evaluation set, and how it is looked at."""
    views = [repr(examples.views)] if examples.views else []
    return data_digest([data_digest(examples.x), data_digest(examples.y), *views])


# ---- Runs


@dataclass(frozen=True, eq=False)
class Job:
    """One run to be made.

    Attributes
    ----------
    id : str
        Hash of the coordinates, and the name of the run's folder in the store.
    coordinates : dict
        Identify the run.
    name : str
        Name of the learner in the study.
    learner : Learner
        With the settings of the grid; its rate may still be several, see ``needs``.
    settings : dict
        The settings that the grid gave.
    n, fold : int
        The training subset.
    seeds : dict of str to int
        init, order, augmentation.
    poke : Poke, optional
        Nudge of one weight.
    needs : str, optional
        Id of the search for the learning rate, which must be in the store before this run.
    is_search : bool
        True for such a search.
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
        """Number of examples looked at: only good for comparing runs of one learner."""
        training = self.learner.training
        if training is None:
            return float(self.n)
        looks = training.steps_for(self.n) * training.batch_for(self.n) + 1.0
        return looks * self.learner.members * (len(training.rates) if self.is_search else 1)


def _runs(
    study: StudySpec, name: str, learner: Learner, settings: Any, shared: Any, needs: str | None
) -> Iterator[Job]:
    as_given, about = learner, shared
    for subset in study.partition:
        n, fold = subset.n, subset.fold
        learner, shared = as_given, about
        if subset.held and learner.training is not None:
            learner = _validated(learner, name, subset)
            shared = {**about, "training": learner.as_dict()}
        where = {"n": n, "fold": fold, "subset": study.subset_digest(subset)}
        training = learner.training
        length = math.inf if training is None else training.steps_for(n) * training.batch_for(n) / n
        for varies, seeds, poke in _chances(study, subset):
            # Of several epochs, those after the end of this training would leave it as it was.
            if poke is not None and len(study.design.poke_epochs) > 1 and poke.epoch > length:
                continue
            at = {**shared, **where, **{f"{k}_seed": v for k, v in seeds.items()}}
            if poke is not None:
                at["poke"] = {"epoch": float(poke.epoch), "factor": float(poke.factor)}
                at["poke_seed"] = poke.seed
            if needs is not None:
                at["search"] = needs
            yield Job(run_id(at), at, name, learner, settings, n, fold, seeds, poke, needs, varies=varies)


def _validated(learner: Learner, name: str, subset: Subset) -> Learner:
    """Let a network validate on so many examples of each class as the size of its subset says."""
    training = learner.training
    assert training is not None
    if training.schedule not in HOLDING:
        problem = (
            f"validates on {subset.held} of each class, which schedule={training.schedule!r} of {name!r} does not."
        )
        remedy = f"Use a schedule that holds out a part ({', '.join(HOLDING)}), or add these examples to the others."
        raise InputError(f"at n={subset.n} {problem}", argument="sizes", remedy=remedy)
    return replace(learner, training=replace(training, validation=f"{subset.held}/class"))


def _chances(study: StudySpec, subset: Subset) -> Iterator[tuple[str, dict[str, int], Poke | None]]:
    """Give for each run on one subset what varies, its seeds and its poke.

    The run in which everything stays at its first seed would belong to every variation. It counts
    in the first one only, and the others go on to the next replicate, so that no run is in two.
    """
    design, taken = study.design, set()
    seeds_here: Any = design.seeds
    if isinstance(design.seeds, tuple):
        seeds_here = design.seeds[study.partition.sizes.index(subset.n)]
    for variation in design.variations:
        left = seeds_here
        for replicate in count():
            seeds = design.seeds_of(study.seed, subset.n, subset.fold, replicate, variation)
            if (key := tuple(seeds.items())) in taken:
                continue
            taken.add(key)
            if "poke" in seeds:
                weight, about = seeds.pop("poke"), {k: v for k, v in (design.poke or {}).items() if k != "epoch"}
                for epoch in design.poke_epochs:
                    yield "+".join(variation), seeds, Poke(weight, epoch, **about)
            else:
                yield "+".join(variation), seeds, None
            left -= 1
            if not left:
                break


def _search(study: StudySpec, name: str, learner: Learner, settings: Any, shared: Any) -> Job | None:
    """Plan the search for the learning rate, on the first subset of the middle size."""
    if learner.training is None or len(learner.training.rates) < 2:
        return None
    sizes = study.partition.sizes
    subset = study.partition.at(sizes[len(sizes) // 2])[0]
    if subset.held:
        learner = _validated(learner, name, subset)
        shared = {**shared, "training": learner.as_dict()}
    seeds = study.design.seeds_of(study.seed, subset.n, subset.fold, 0)
    seeds.pop("poke", None)
    # No fold: the id of a search must not depend on how many folds the study has.
    at = {**shared, "recipe": SEARCH, "n": subset.n, "subset": study.subset_digest(subset)}
    at |= {f"{k}_seed": v for k, v in seeds.items()}
    alone = replace(learner, members=1)  # the rate of one network serves its ensemble
    return Job(run_id(at), at, name, alone, settings, subset.n, subset.fold, seeds, is_search=True)


def _settle_weights(study: StudySpec, learner: Learner, name: str, opened: dict[str, Training]) -> Learner:
    """Open the file of weights that a network starts from: it decides some options, and must fit."""
    training = learner.training
    if training is None or (training.weights or training.like) is None:
        return learner
    with importing(f"learners.{name} starts from a file of weights, and to open it needs {{}}", "torch"):
        from curvewise.nn.networks import settle_weights
    # Combinations of a grid mostly differ in what has nothing to do with the network.
    about = (training.architecture, training.options, training.weights, training.weights_into, training.like)
    if (key := repr(about)) not in opened:
        try:
            opened[key] = settle_weights(training, tuple(study.dataset.x.shape[1:]), study.outputs, study.folder)
        except InputError as error:
            place = f"learners.{name}"
            if training.weights is None:  # the file is that of another learner, whose form this one has
                others = {k: v.training for k, v in study.learners.items() if v.training is not None}
                owner = next((k for k, other in others.items() if other.weights == training.like), None)
                place = f"learners.{name}.like" if owner is None else f"learners.{owner}"
            raise InputError(f"{place}: {error}") from error
    return replace(learner, training=replace(training, options=opened[key].options, like=opened[key].like))


def _weights_digest(learner: Learner, folder: Path, known: dict[str, str]) -> str | None:
    """Hash the weights that a network starts from, so that other weights are another run."""
    training = learner.training
    if training is None:
        return None
    files = []
    if training.architecture.startswith("hf:"):
        place = folder / training.architecture.removeprefix("hf:")
        files += sorted(p for p in place.glob("*") if p.is_file())
    if training.weights is not None:
        files.append(folder / training.weights)
    for path in files:
        if str(path) not in known:
            with path.open("rb") as stream:
                known[str(path)] = hashlib.file_digest(stream, "sha256").hexdigest()[:32]
    hashes = [known[str(path)] for path in files]
    return hashes[0] if len(hashes) == 1 else data_digest(hashes) if hashes else None
