"""``curvewise ranking``: rank, judge, measures."""

from __future__ import annotations

import ast
import csv
import re
import shlex
import sys
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    DONE,
    FAILED,
    Page,
    UsageError,
    check_folder,
    keeping_user_text,
    note,
    sentences,
    table_in_parts,
    warn_each,
)
from curvewise.cli.options import (
    DATA,
    NETWORK,
    READING,
    Drawing,
    Level,
    Numbers,
    Showing,
    Texts,
    Words,
    check_picture,
    names_of,
    read_options,
    read_where,
    save_plot,
)
from curvewise.errors import InputError, quietly

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.ranking.comparison import ComparisonRow
    from curvewise.ranking.judgement import JudgementRow, RankingJudgement
    from curvewise.ranking.measure import RankingMeasure
    from curvewise.ranking.rank import CheckpointRanking
    from curvewise.ranking.scores import CheckpointFeatures, CheckpointScores
    from curvewise.study.data.dataset import Dataset


ranking = App(
    name="ranking",
    help="Which checkpoint should I fine-tune?\n\n"
    "CHECKPOINT is a file of a network (.pt2, TorchScript, ONNX, TFLite, or weights with "
    "--factory), a folder of Hugging Face, an array of features (.npy, .npz), a folder of such "
    "files, NAME=FILE, or a .toml file that lists them.",
)
# Measures that are drawn against accuracies, the best ones.
SCATTERED = 6
Checkpoints = Annotated[list[str], Parameter(name="CHECKPOINT...", negative="")]
Share = Annotated[float, Parameter(validator=Number(gte=0, lt=1))]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]


@Parameter(name="*", group=DATA)
@dataclass
class TargetReading:
    """What to rank for.

    Parameters
    ----------
    data
        Examples with their classes: an .npz file, a table, a folder of IDX files, of CIFAR's
        binary files or of images with a subfolder for each class; or a name, such as digits,
        fashion-mnist or cifar10. Not needed where all checkpoints are files of features.
    labels
        File with the label of each example, for files of features: .npy, .npz, or text with one
        in each line. A class, several of 0 and 1, or a number; whole numbers in text are classes.
    part
        Training or test examples.
    data_option
        How to read them, as KEY=VALUE, such as size=32 for a folder of images, or x=images for an
        .npz file; may be repeated.
    examples
        How many to take at random, at most.
    """

    data: str | None = None
    labels: Path | None = None
    part: Literal["train", "test"] = "train"
    data_option: Texts = field(default_factory=list)
    examples: Annotated[int | None, Parameter(validator=Number(gte=4))] = None

    def check(self, found: Sequence[Found]) -> None:
        """Refuse what cannot be ranked."""
        network = next((one for one in found if not one.is_array), None)
        if self.data is None and network is not None:
            raise UsageError(f"--data is missing: {network.path} is a network, which needs examples.")
        if self.data is None and self.labels is None:
            raise UsageError("--labels is missing: give the label of each example.")
        if self.data is not None and self.labels is not None:
            raise UsageError("--data brings its labels: leave --labels out, or --data.")

    def told(self) -> dict[str, str]:
        """What is ranked for, in words."""
        what = {"data": f"{self.data} ({self.part})"} if self.data else {"labels": str(self.labels)}
        many = {} if self.examples is None else {"examples": f"at most {self.examples:,}"}
        return {**what, **many}

    def load(self) -> tuple[Any, NDArray[Any], str]:
        """Examples (None for features alone), labels, and what to call them."""
        if self.data is None:
            assert self.labels is not None
            return None, read_labels(self.labels), self.labels.name
        from curvewise.study.data.load import load_dataset

        with worded():
            dataset = load_dataset(self._spec())
        for text in dataset.notes:
            note(text)
        x, y = self._part(dataset)
        note(f"{dataset.name}: {len(y):,} examples of {len(dataset.classes)} classes")
        return x, y, dataset.name

    def _part(self, dataset: Dataset) -> tuple[Any, NDArray[Any]]:
        if self.part == "train":
            return dataset.x, dataset.y
        if dataset.test_x is None or dataset.test_y is None:
            raise UsageError(f"--part test: {dataset.name} has training examples only.")
        return dataset.test_x, dataset.test_y

    def _spec(self) -> str | dict[str, Any]:
        assert self.data is not None
        if not self.data_option:
            return self.data
        options = read_options(self.data_option)
        if self.data.startswith("hf:"):
            return {"hf": self.data.removeprefix("hf:"), **options}
        return {"path" if Path(self.data).exists() else "name": self.data, **options}


@Parameter(name="*", group=NETWORK)
@dataclass
class FeatureReading:
    """How to get features out of checkpoints.

    Parameters
    ----------
    layer
        Where features are taken: a submodule, or a tensor of ONNX and TFLite. By default what the
        last linear layer is given.
    preprocess
        What is done to images where a file does not say it, as KEY=VALUE: size=224, crop=224,
        mean=[0.5,0.5,0.5], std=…, interpolation=bicubic, channels=grey; may be repeated. What a
        .toml file says of a checkpoint comes first.
    cache
        Folder for features, which are found again there.
    factory
        What makes the network for a file of weights: module:function, called with shape, classes
        and options (installed, or a file in the current folder), or a name such as cnn
        or resnet18.
    factory_option
        An option of the factory, as KEY=VALUE; may be repeated.
    device
        Where to run networks, such as cpu, cuda or cuda:1. By default a GPU if there is one.
    batch
        Examples at a time; by default what is quick.
    precision
        Of the arithmetic.
    """

    layer: str | None = None
    preprocess: Texts = field(default_factory=list)
    cache: Path | None = None
    factory: str | None = None
    factory_option: Texts = field(default_factory=list)
    device: str | None = None
    batch: Annotated[int | None, Parameter(validator=Number(gte=1))] = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"

    @property
    def making(self) -> dict[str, Any]:
        """What holds for every checkpoint of which nothing else is said."""
        given = {"factory": self.factory, "options": read_options(self.factory_option) or None, "layer": self.layer}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def running(self) -> dict[str, Any]:
        """How networks are run."""
        return {
            "batch": self.batch,
            "device": self.device,
            "precision": self.precision,
            "cache": self.cache,
            "preprocessing": read_options(self.preprocess) or None,
        }


@ranking.command
def rank(
    checkpoints: Checkpoints,
    /,
    *,
    reading: TargetReading | None = None,
    measures: Words = [],  # noqa: B006
    by: str | None = None,
    k: Annotated[int, Parameter(validator=Number(gte=1))] = 3,
    test: Share = 0.2,
    resamples: Annotated[int, Parameter(validator=Number(gte=0))] = 50,
    reliability: str | None = None,
    level: Level = 0.95,
    seed: Seed = 0,
    extracting: FeatureReading | None = None,
    dry_run: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    trust: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    save: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Rank checkpoints for a task before any of them is fine-tuned.

    Each is run over the examples once; measures of its features say how promising it is. One
    that fails is reported, the others are ranked, and the exit status is 1.

    Example: `curvewise ranking rank nets/ --data fashion-mnist --examples 2000 --cache features`

    Example: `curvewise ranking rank a=a.npy b=b.npy --labels labels.npy --measures nleep,logme`

    Example: `curvewise ranking rank pool.toml --data photos/ --trust`, where pool.toml has a table
    for each checkpoint and paths begin at its folder:

    ```
    [mine]
    path = "mine.pth"
    factory = "nets:make"
    options = {width = 64}
    preprocessing = {size = 256, crop = 224, mean = 0.5, std = 0.5}

    [other]
    path = "other.onnx"
    ```

    Parameters
    ----------
    checkpoints
        Files, folders, or NAME=FILE.
    measures
        What to compute, such as nleep,logme,knn; see `curvewise ranking measures`.
    by
        The measure that ranks; the first by default.
    k
        How many can be tried.
    test
        Share of the examples that measures which are fitted are scored on; 0 for those that they
        were fitted on.
    resamples
        Halves of the examples that are drawn for intervals; 0 for none.
    reliability
        Correlation of the measure's scores with accuracies, where you know it, or the measure
        whose reference to take; from published benchmarks by default.
    level
        Coverage of the intervals.
    seed
        Decides the examples, the split, the halves, and what is random in measures.
    dry_run
        Only say what would be done.
    trust
        Import code that a .toml file names as the factory of a checkpoint.
    save
        Write the scores into this .csv file, which `curvewise ranking judge` reads.
    """
    page = (showing or Showing()).page()
    target = reading or TargetReading()
    check_scores(save)
    found = find_checkpoints(checkpoints, target.labels)
    target.check(found)
    wanted = find_wanted(measures)
    names = [measure.name for measure in wanted]
    if by is not None and by not in names:
        raise UsageError(f"--by {by} is none of the measures {', '.join(names)}: add it.")
    if dry_run:
        show_plan(page, plan_rows(found), {"measures": ", ".join(names), **target.told()})
        return page.close()
    if not trust:
        refuse_own_code(found)
    scoring: dict[str, Any] = {
        "test": test or None,
        "by": by,
        "resamples": resamples,
        "level": level,
        "k": k,
        "reliability": as_told(reliability),
        "rng": seed,
    }
    result = rank_found(found, target, wanted, extracting or FeatureReading(), scoring)
    show_ranking(page, result)
    if save is not None:
        save_scores(save, result)
    save_plot(drawing.plot if drawing else None, lambda: result.plot())
    lost = result.failures or result.missing.get(result.by)
    return page.close(FAILED if lost else DONE)


@Parameter(name="*", group=READING)
@dataclass
class PoolReading:
    """How to read checkpoints with accuracies and scores.

    Parameters
    ----------
    accuracy
        Second file, with the accuracies; checkpoints (and tasks and groups) are matched by name.
    checkpoint
        Column that names the checkpoint. Columns with usual names are found by themselves.
    task
        Column that names the task that was fine-tuned for.
    group
        Column that names the group in which checkpoints are ranked.
    accuracy_column
        Column of accuracies after fine-tuning.
    measure
        Column that names the measure, where scores are in one column.
    score
        Column of scores, where they are in one.
    reference
        A checkpoint that is shown and never ranked, such as training from scratch; may be
        repeated.
    baseline
        A measure that is a plain baseline; may be repeated. By default those that are called like
        a number of parameters or a source accuracy.
    unit
        Of the accuracies; by default percent if the column's name says so, else fractions. A
        score is any number of which more is better.
    wide
        Each column of numbers is a checkpoint and holds its accuracies.
    repeats
        What to take of several rows of a checkpoint and task: the best accuracy, as over
        hyperparameters, or the mean, as over seeds.
    where
        Only rows with this, as COLUMN=VALUE; may be repeated.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    accuracy: Path | None = None
    checkpoint: str | None = None
    task: str | None = None
    group: str | None = None
    accuracy_column: str | None = None
    measure: str | None = None
    score: str | None = None
    reference: Texts = field(default_factory=list)
    baseline: Texts = field(default_factory=list)
    unit: Literal["fraction", "percent", "score"] | None = None
    wide: Literal["checkpoints"] | None = None
    repeats: Literal["best", "mean"] | None = None
    where: Texts = field(default_factory=list)
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(self, source: str, measures: Sequence[str]) -> CheckpointScores:
        """Read the table; says on stderr what was taken for what."""
        from curvewise.ranking.load import load_checkpoint_scores

        with worded():
            found = load_checkpoint_scores(
                source,
                accuracies=self.accuracy,
                checkpoint=self.checkpoint,
                task=self.task,
                group=self.group,
                accuracy=self.accuracy_column,
                measures=list(measures) or None,
                measure=self.measure,
                score=self.score,
                wide=self.wide,
                unit=self.unit,
                reference=tuple(self.reference),
                baselines=tuple(self.baseline) or None,
                where=read_where(self.where),
                repeats=self.repeats,
                allow_large=self.allow_large,
            )
        note("; ".join([repr(found), *found.notes]))
        return found


@ranking.command
def judge(
    table: Annotated[str, Parameter(name="TABLE")],
    /,
    *,
    measures: Words = [],  # noqa: B006
    k: Numbers = [],  # noqa: B006
    union: bool = True,
    value: str = "kendall",
    by_task: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    level: Level = 0.95,
    permutations: Annotated[int, Parameter(validator=Number(gte=0))] = 9999,
    seed: Seed = 0,
    reading: PoolReading | None = None,
    heat: Path | None = None,
    cost: Path | None = None,
    scatter: Path | None = None,
    bars: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Judge which measures rank checkpoints as fine-tuning does.

    TABLE (CSV, TSV, JSON or Parquet) has a row for each checkpoint and task: the accuracy after
    fine-tuning and a column for each measure; or a row for each score. For each measure, within
    each group and in their union: Recall@k, Rel@k, Pearson and Kendall on average over tasks.

    Example: `curvewise ranking judge pool.csv --unit percent --reference From-Scratch`

    Example: `curvewise ranking judge scores.csv --accuracy tuned.csv --measures nleep,logme`

    Parameters
    ----------
    table
        The checkpoints.
    measures
        Only these, such as nleep,logme.
    k
        How many checkpoints can be tried, such as 1,3 (the default).
    union
        Judge all groups as one, too.
    value
        What pairs of measures are compared by, and tasks shown by: kendall, weighted_kendall,
        pearson, recall@1, rel@1, …
    by_task
        Show the tasks one by one.
    level
        Coverage of the intervals.
    permutations
        Draws of the paired tests, at most.
    seed
        Decides the draws.
    heat
        Draw measures × tasks into this .png, .svg or .pdf file.
    cost
        Draw the cost of measures against their Kendall into this file.
    scatter
        Draw scores against accuracies into this file.
    bars
        Draw accuracies less their mean into this file; no scores are needed for it alone.
    """
    page = (showing or Showing()).page()
    outputs = {"--heat": heat, "--cost": cost, "--scatter": scatter, "--bars": bars}
    for option, path in outputs.items():
        check_picture(option, path)
    pool = (reading or PoolReading()).load(table, measures)
    plot = drawing.plot if drawing else None
    if not pool.scores:
        check_bars_alone(table, bars, [plot, heat, cost, scatter])
        page.document = {"type": "CheckpointScores", **pool.columns()}
        _draw_pool(pool, [], None, bars)
        return page.close()
    if cost is not None and not pool.gflops:
        raise UsageError(f"--cost {cost}: {table} has no costs, such as a column nleep_gflops.")
    from curvewise.ranking.judgement import judge_rankings

    with quietly(), worded():
        result = judge_rankings(
            pool,
            list(measures) or None,
            **({"k": _counts(k)} if k else {}),
            union=union,
            level=level,
            permutations=permutations,
            rng=seed,
        )
    if value not in result.values:
        raise UsageError(f"--value {value}: use one of {', '.join(result.values)}.")
    with worded():
        show_judgement(page, result, value, by_task)
    whose = drawn_groups(result) if plot or heat or cost else []
    with worded():
        save_plot(plot, lambda: result.plot(score=value, group=whose))
        save_plot(heat, lambda: result.plot(kind="heat", score=value, group=whose))
        save_plot(cost, lambda: result.plot(kind="cost", score=value, group=whose))
    _draw_pool(pool, best_first(result)[:SCATTERED], scatter, bars)
    return page.close()


def _draw_pool(pool: CheckpointScores, measures: list[str], scatter: Path | None, bars: Path | None) -> None:
    """Scores against accuracies, and accuracies alone."""

    def dots() -> Any:
        from curvewise.ranking.plot.scores import plot_checkpoint_scores

        return plot_checkpoint_scores(pool, measures)

    def accuracies() -> Any:
        from curvewise.ranking.plot.scores import plot_fine_tuning

        return plot_fine_tuning(pool)

    save_plot(scatter, dots)
    save_plot(bars, accuracies)


def _counts(k: Numbers) -> tuple[int, ...]:
    for number in k:
        if number != int(number) or number < 1:
            raise UsageError(f"--k {number:g}: give whole numbers from 1 on, such as 1,3.")
    return tuple(int(number) for number in k)


@ranking.command
def measures(*, showing: Showing | None = None) -> int:
    """List the measures, what they need and cost, and when they fail.

    Example: `curvewise ranking measures --table markdown`
    """
    page = (showing or Showing()).page()
    show_shelf(page, listed_measures())
    return page.close()


# Checkpoints by their names: files, folders, and .toml files that list them.

# Endings of files that hold features.
ARRAYS = (".npy", ".npz")
# Endings of the files that a folder of checkpoints is searched for.
ENDINGS = (".pt2", ".pt", ".pth", ".th", ".onnx", ".tflite", ".safetensors", *ARRAYS)
# What a .toml file may say of a checkpoint.
KEYS = (
    *("path", "layer", "factory", "options", "preprocessing", "pool", "tokenizer", "length"),
    *("shape", "classes", "source_accuracy"),
)


@dataclass(frozen=True)
class Found:
    """A checkpoint by its name, its file, and what is said of it."""

    name: str
    path: Path
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """Whether it is a file of features."""
        return self.path.suffix.lower() in ARRAYS


def find_checkpoints(words: Sequence[str], labels: Path | None = None) -> list[Found]:
    """Checkpoints out of files, folders, NAME=FILE, and .toml files that list them.

    A file of labels in one of the folders is none of them.
    """
    named: list[Found] = []
    plain: list[str] = []
    for word in words:
        name, equals, path = word.partition("=")
        if equals and not Path(word).exists():
            named.append(Found(name.strip(), there(Path(path))))
        elif Path(word).suffix.lower() == ".toml":
            named += _listed(there(Path(word)))
        else:
            plain += _files(there(Path(word)), labels)
    found = [Found(name, Path(file)) for file, name in names_of(_once(plain)).items()] + named
    for one in found:
        if not one.name or sum(other.name == one.name for other in found) > 1:
            raise UsageError(f"{one.path}: {one.name!r} names another checkpoint, too. Name it with NAME={one.path}.")
    return found


def refuse_own_code(found: Sequence[Found]) -> None:
    """Refuse checkpoints of a .toml file whose network is made by code that the file names."""
    from curvewise.nn.own_code import names_own_code

    for one in found:
        factory = one.about.get("factory")
        if isinstance(factory, str) and names_own_code(factory, one.about.get("options")):
            raise UsageError(
                f"{one.name} is made by factory={factory!r}, code that a .toml file names: read "
                "it, and pass --trust to have it imported."
            )


def _once(files: Sequence[str]) -> list[str]:
    """Each file once, however it was written; those that were given again are told."""
    kept: dict[Path, str] = {}
    for file in files:
        place = Path(file).resolve()
        if place in kept:
            note(f"{file} is given more than once, and ranked once: NAME={file} ranks it again")
        kept.setdefault(place, file)
    return list(kept.values())


def there(path: Path) -> Path:
    """A path that exists."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder.")
    return path


def _files(path: Path, labels: Path | None) -> list[str]:
    """The file itself; of a folder what is in it, unless it is one checkpoint."""
    if not path.is_dir() or (path / "config.json").exists():
        return [str(path)]
    inside = [p for p in sorted(path.iterdir()) if labels is None or not _same(p, labels)]
    found = [str(p) for p in inside if p.suffix.lower() in ENDINGS or (p.is_dir() and (p / "config.json").exists())]
    if not found:
        raise UsageError(f"{path}: no checkpoint is in this folder ({', '.join(ENDINGS)}).")
    _tell_left(path, [p for p in inside if str(p) not in found and not p.name.startswith(".")])
    return found


def _tell_left(path: Path, left: Sequence[Path]) -> None:
    """Say what in a folder is taken for no checkpoint, and why."""
    reasons = {
        f"no ending of a checkpoint ({', '.join(ENDINGS)})": [p for p in left if not p.is_dir()],
        "a folder without config.json": [p for p in left if p.is_dir()],
    }
    for why, paths in reasons.items():
        if paths:
            names = ", ".join(p.name for p in paths[:5]) + (" …" if len(paths) > 5 else "")
            note(f"{path}: left out {names}: {why}")


def _same(one: Path, other: Path) -> bool:
    return other.exists() and one.samefile(other)


def _listed(path: Path) -> list[Found]:
    """Checkpoints of a .toml file: a table for each, named by its key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is no TOML file: {error}.") from error
    found = []
    for name, table in tables.items():
        if not isinstance(table, dict) or "path" not in table:
            raise UsageError(
                f'{path}: {name} must be a table with the file of a checkpoint, such as [{name}] path = "net.onnx".'
            )
        if odd := set(table) - set(KEYS):
            raise UsageError(f"{path}: {name} has {min(odd)!r}: use {', '.join(KEYS)}.")
        about = {key: value for key, value in table.items() if key != "path"}
        found.append(Found(name, there(path.parent / table["path"]), about))
    return found


# Checkpoints, examples and labels in: what ``curvewise ranking rank`` reads.

_LABELS = ("labels", "label", "y", "targets", "target", "classes")
_WHOLE = re.compile(r"[+-]?[0-9]+")


def read_labels(path: Path) -> NDArray[Any]:
    """Labels out of .npy, .npz or lines of text."""
    import numpy as np

    there(path)
    from curvewise.reading.arrays import map_npy
    from curvewise.reading.files import read_text

    try:
        if path.suffix.lower() == ".npy":
            return np.asarray(map_npy(path))
        if path.suffix.lower() == ".npz":
            return _one_array(path)
        lines = [line.strip() for line in read_text(path).splitlines()]
    except InputError as error:
        raise UsageError(f"--labels {path} cannot be read: {error}") from error
    lines = [line for line in lines if line]
    if lines and lines[0].strip('"').lower() in _LABELS:
        lines = lines[1:]
    if not lines or any("," in line for line in lines):
        raise UsageError(f"--labels {path}: give one label in each line, or an .npy file.")
    try:
        if all(_WHOLE.fullmatch(line) for line in lines):
            return np.array([int(line) for line in lines], dtype=np.int64)
        return np.array([float(line) for line in lines])
    except (ValueError, OverflowError):
        return np.array(lines)


def _one_array(path: Path) -> NDArray[Any]:
    import numpy as np

    from curvewise.reading.arrays import named_arrays

    every, get = named_arrays(path)
    names = [name for name in _LABELS if name in every] or every
    if len(names) != 1 and (not names or names[0] not in _LABELS):
        raise UsageError(f"--labels {path} holds {', '.join(names)}: call one of them labels.")
    return np.asarray(get(names[0]))


# Checkpoints scored and ranked: the calls behind ``curvewise ranking rank``.


def listed_measures() -> dict[str, RankingMeasure]:
    """All measures by name, and a word on what is missing without torch."""
    from curvewise.ranking.networks.rank import HITS, NEED_TORCH

    if not HITS:
        note(NEED_TORCH)
    return known_measures()


def known_measures() -> dict[str, RankingMeasure]:
    """All measures by name; those that are trained where torch is installed."""
    from curvewise.ranking.networks.rank import MEASURES

    return dict(MEASURES)


def find_wanted(names: Sequence[str]) -> list[RankingMeasure]:
    """Measures by name; the usual ones if none is named."""
    from curvewise.ranking.networks.rank import HITS, NEED_TORCH
    from curvewise.ranking.rank import DEFAULT_MEASURES
    from curvewise.ranking.scoring import FUNCTIONS, find_measures

    try:
        return list(find_measures(list(names) or DEFAULT_MEASURES, known_measures()))
    except InputError as error:
        said = as_options(str(error)).replace(FUNCTIONS, "")
        more = "" if HITS else f" ({NEED_TORCH})"
        raise UsageError(said + more) from error


def as_told(reliability: str | None) -> float | str | None:
    """A correlation, or the measure whose reference is meant."""
    from curvewise.ranking.certainty import as_reliability

    if reliability is None:
        return None
    try:
        told: float | str = float(reliability)
    except ValueError:
        told = reliability
    try:
        as_reliability(told)
    except InputError as error:
        raise UsageError(as_options(str(error))) from error
    return told


def plan_rows(found: Sequence[Found]) -> list[dict[str, Any]]:
    """What is known of checkpoints before they are read."""
    return [
        {
            "checkpoint": one.name,
            "file": str(one.path),
            "size": _size(one.path),
            "as": "features" if one.is_array else "network",
        }
        for one in found
    ]


def _size(path: Path) -> str:
    files = [path] if path.is_file() else [p for p in path.rglob("*") if p.is_file()]
    total = sum(p.stat().st_size for p in files)
    return f"{total / 1e6:,.1f} MB" if total >= 1e5 else f"{total / 1e3:,.1f} kB"


def rank_found(
    found: Sequence[Found],
    reading: TargetReading,
    measures: Sequence[RankingMeasure],
    extracting: FeatureReading,
    ranking: Mapping[str, Any],
) -> CheckpointRanking:
    """Features once for each checkpoint, then every measure."""
    data, labels, _ = reading.load()
    if data is None:
        return rank_stored(found, labels, measures, reading.examples, ranking)
    from curvewise.ranking.networks.checkpoints import Checkpoint
    from curvewise.ranking.networks.rank import rank_checkpoints

    more = {**extracting.running, "examples": reading.examples}
    _check_keys("--preprocess", more["preprocessing"])
    for one in found:
        _check_keys(f"preprocessing of {one.name}", one.about.get("preprocessing"))
    with quietly(), worded(), redirect_stdout(sys.stderr):  # stdout is for results alone
        given = [Checkpoint(one.name, one.path, **{**extracting.making, **one.about}, folder=Path()) for one in found]
        return rank_checkpoints(given, (data, labels), measures, **more, **ranking)


def _check_keys(where: str, given: Any) -> None:
    """Name a key that no preprocessing has, and the nearest one."""
    from curvewise.ranking.networks.preprocessing import Preprocessing, as_preprocessing

    keys = list(Preprocessing.__dataclass_fields__)
    odd = [key for key in given or {} if key not in keys]
    if not odd:
        return
    try:
        as_preprocessing(given)  # may be a configuration of timm or Hugging Face
    except InputError as error:
        near = get_close_matches(odd[0], keys, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(f"{where} has {odd[0]!r}.{hint} Use {', '.join(keys)}.") from error


def rank_stored(
    found: Sequence[Found],
    labels: NDArray[Any],
    measures: Sequence[RankingMeasure],
    examples: int | None,
    ranking: Mapping[str, Any],
) -> CheckpointRanking:
    """Features that are on disk: no network is run, and torch is not needed."""
    from curvewise.ranking.networks.rank import HITS
    from curvewise.ranking.rank import rank_candidates
    from curvewise.ranking.scoring import Candidate

    read, failures = [], {}
    for one in found:
        try:
            read.append(_read(one, len(labels)))
        except InputError as error:
            failures[one.name] = str(error)
    if not read:
        raise InputError("no checkpoint could be read: " + next(iter(failures.values())))
    if examples is not None and examples < len(labels):
        rows = _drawn(len(labels), examples, ranking["rng"])
        read, labels = [one.take(rows) for one in read], labels[rows]
    options: dict[str, Any] = {"failures": failures, "hits": HITS, **ranking}
    with quietly(), worded():
        return rank_candidates([Candidate.of(one) for one in read], labels, measures, **options)


def _drawn(total: int, examples: int, seed: int) -> NDArray[Any]:
    """Rows of examples at random, in their order."""
    import numpy as np

    return np.sort(np.random.default_rng(seed).permutation(total)[:examples])


def _read(one: Found, count: int) -> CheckpointFeatures:
    """Features of an .npy file, or of an .npz file, with probabilities maybe."""
    from curvewise.ranking.scores import CheckpointFeatures
    from curvewise.reading.arrays import map_npy, named_arrays

    about = {k: v for k, v in one.about.items() if k == "source_accuracy"}
    features: NDArray[Any]
    if one.path.suffix.lower() == ".npy":
        features, own = map_npy(one.path), None
    else:
        features, own = _picked(one.path, *named_arrays(one.path))
    if not features.ndim:
        raise InputError(f"{one.path} holds a single value, no features.")
    if len(features) != count:
        raise InputError(f"{one.path} has {len(features):,} rows, and there are {count:,} labels.")
    return CheckpointFeatures(one.name, features, own, **about)


def _picked(path: Path, names: Sequence[str], get: Callable[[str], Any]) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if "features" not in names and len(names) != 1:
        raise InputError(f"{path} holds {', '.join(names)}: call the matrix features.")
    key = "features" if "features" in names else names[0]
    return get(key), get("probabilities") if "probabilities" in names else None


# Rankings and measures out: tables on stdout, scores into files.


def show_ranking(page: Page, result: CheckpointRanking) -> None:
    """Print the ranked table, agreement among measures, cost, certainty and failures."""
    page.document = result.to_dict()
    page.document["top"] = list(result.top)
    page.say(sentences(result))
    title = f"Checkpoints by {result.by}, {result.examples:,} examples"
    if result.resamples:
        title += f" ({result.level:.0%} intervals)"
    table_in_parts(page, title, _ranked(result))
    _show_agreement(page, result)
    _show_costs(page, result)
    _show_lost(page, result)
    if page.markup is None and len(result.top) < result.ranked:
        names = ", ".join(result.top)
        page.say(f"To try: {names}. Trying {result.enough()} would be enough for 90% certainty.")
    warn_each([as_options(text) for text in result.all_warnings])


def _ranked(result: CheckpointRanking) -> dict[str, list[Any]]:
    """A row for each checkpoint."""
    columns: dict[str, list[Any]] = {"checkpoint": list(result.checkpoints), "rank": [_place(v) for v in result.ranks]}
    if result.resamples:
        columns["from"] = [_place(v) for v in result.rank_low]
        columns["to"] = [_place(v) for v in result.rank_high]
    columns[result.by] = _numbers(result.scores[result.by])
    if result.resamples:
        columns["low"] = _numbers(result.score_low)
        columns["high"] = _numbers(result.score_high)
    columns["P(best)"] = [f"{p:.0%}" if p == p else "–" for p in result.chance_best]
    others = [name for name in result.measures if name != result.by]
    return {**columns, **{name: _numbers(result.scores[name]) for name in others}}


def _show_agreement(page: Page, result: CheckpointRanking) -> None:
    if len(result.measures) < 2:
        return
    columns: dict[str, list[Any]] = {"measure": list(result.measures)}
    for j, name in enumerate(result.measures):
        values = result.agreement[:, j]
        columns[name] = ["–" if i == j else f"{v:.2f}" if v == v else "–" for i, v in enumerate(values)]
    table_in_parts(page, "Agreement of measures (Kendall's τ-b)", columns)


def _show_costs(page: Page, result: CheckpointRanking) -> None:
    costs = result.costs()
    columns = {"part": costs["part"], "seconds": _numbers(costs["seconds"], 3), "GFLOPs": _numbers(costs["gflops"], 3)}
    page.table("Cost over all checkpoints", columns, None)
    page.document["costs"] = costs


def _show_lost(page: Page, result: CheckpointRanking) -> None:
    """Which checkpoints have no features, or no score, those of one reason together."""
    lost: dict[tuple[str, str], list[str]] = {}
    for name, why in result.failures.items():
        lost.setdefault(("features", why), []).append(name)
    for measure, found in result.missing.items():
        for name, why in found.items():
            lost.setdefault((measure, why), []).append(name)
    if not lost:
        return
    columns = {
        "checkpoint": [", ".join(names) for names in lost.values()],
        "has no": [what for what, _ in lost],
        "because": [as_options(why) for _, why in lost],
    }
    page.table("Failed", columns, None)


def show_shelf(page: Page, shelf: Mapping[str, RankingMeasure]) -> None:
    """Print which measures there are, what they need, what they cost and when they fail."""
    found = list(shelf.values())
    page.document = {
        "type": "RankingMeasures",
        "measures": [
            {**m.columns(), "targets": list(m.targets), "splits": m.splits, "seeded": m.seeded} for m in found
        ],
    }
    columns: dict[str, list[Any]] = {
        "measure": [m.name for m in found],
        "takes": [m.takes for m in found],
        "targets": [", ".join(m.targets) for m in found],
        "what it is": [m.about for m in found],
        "cost": [m.cost for m in found],
        "fails": [m.fails for m in found],
    }
    if page.markup is None:  # --table and --json have all of it
        for name in ("targets", "what it is"):
            del columns[name]
    page.table("Measures of a checkpoint, more is better", columns, None)


def check_scores(path: Path | None) -> None:
    """Refuse a file of scores that cannot be written, before anything is computed."""
    if path is None:
        return
    if path.suffix.lower() != ".csv":
        raise UsageError(f"--save {path} must end in .csv.")
    check_folder("--save", path)


def save_scores(path: Path, result: CheckpointRanking) -> None:
    """Write a row for each checkpoint, as ``curvewise ranking judge`` reads it."""
    from curvewise.tables import csv_cell

    columns = {"checkpoint": list(result.checkpoints), **result.scores}
    with open(path, "w", encoding="utf-8", newline="") as stream:
        rows = csv.writer(stream, lineterminator="\n")
        rows.writerow(map(csv_cell, columns))
        rows.writerows(
            ["" if value != value else csv_cell(value) for value in row] for row in zip(*columns.values(), strict=True)
        )
    note(f"scores written to {path}")


def show_plan(page: Page, rows: Sequence[Mapping[str, Any]], about: Mapping[str, Any]) -> None:
    """Print what would be done."""
    page.document = {"type": "RankingPlan", **about, "checkpoints": list(rows)}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    page.table("Checkpoints", columns, None)
    page.say("; ".join(f"{key}: {value}" for key, value in about.items()))
    note("--dry-run: nothing was computed")


def _place(value: float) -> str:
    return "–" if value != value else f"{value:g}"


def _numbers(values: Iterable[float], digits: int = 4) -> list[str]:
    from curvewise.text import format_number

    return ["–" if v != v else format_number(float(v), digits) for v in values]


# Tables of checkpoints in, judged measures out: what is behind ``curvewise ranking judge``.

# Comparisons that are shown; --json has all of them.
MOST_PAIRS = 20
# Groups that are drawn in one picture.
MOST_PANELS = 6
HEADS = {"pearson": "Pearson", "kendall": "Kendall", "weighted_kendall": "weighted"}


def check_bars_alone(source: str, bars: Path | None, others: Sequence[Path | None]) -> None:
    """Refuse a table without scores, unless accuracies alone are to be drawn."""
    if bars is None or any(others):
        raise UsageError(
            f"{source} has no scores of measures: name their columns with --measures (or, where "
            "each row is one score, with --measure COLUMN --score COLUMN), or pass the table that "
            "has them as TABLE and this one as --accuracy. --bars alone needs none."
        )
    note(f"{source} has no scores of measures: accuracies are drawn, nothing is judged")


def drawn_groups(result: RankingJudgement) -> list[str]:
    """Groups that get a panel of a picture: all, or of many the first few and their union."""
    groups = list(result.groups)
    if len(groups) <= MOST_PANELS:
        return groups
    chosen = [*groups[: MOST_PANELS - 1], groups[-1]]
    note(f"{len(chosen)} of {len(groups)} groups are drawn: {', '.join(chosen)}; --where COLUMN=NAME chooses another")
    return chosen


def show_judgement(page: Page, result: RankingJudgement, value: str, by_task: bool) -> None:
    """Print the columns of the paper's tables for each group, comparisons and references."""
    page.document = result.to_dict()
    page.say(sentences(result))
    for group in result.groups:
        _show_group(page, result, group)
        if by_task and page.markup is None and len(result.tasks) > 1:
            _show_tasks(page, result, group, value)
    pairs = result.comparisons(value=value) if len(result.measures) > 1 else None
    page.document["comparisons"] = None if pairs is None else pairs.to_dict()
    if page.markup is None:
        if pairs is not None:
            _show_pairs(page, result, pairs.rows, value)
        _show_references(page, result)
    elif result.references and not page.as_json:
        sys.stdout.write("\n" + result.reference_table(page.markup) + "\n")
    warn_each([as_options(text) for text in result.all_warnings])


def best_first(result: RankingJudgement, group: str | None = None) -> list[str]:
    """Measures by their Kendall in a group, the last by default."""
    found = {name: result.row(name, group=group).kendall.estimate for name in result.measures}
    return sorted(found, key=lambda name: -found[name] if found[name] == found[name] else 2.0)


def _show_group(page: Page, result: RankingJudgement, group: str) -> None:
    if page.markup is not None and not page.as_json:
        sys.stdout.write(f"{'' if group == result.groups[0] else chr(10)}")
        page.say(f"{group}:")
        sys.stdout.write(result.table(page.markup, group=group) + "\n")
        return
    rows = [result.row(name, group=group) for name in best_first(result, group)]
    tasks = len({r.task for r in result.rows if r.group == group}) - 1
    where = f"{group}, {tasks} task{'' if tasks == 1 else 's'}"
    title = f"{where} (× 100, {result.level:.0%} interval of Kendall)"
    table_in_parts(page, title, _details(result, rows))


def _details(result: RankingJudgement, rows: Sequence[JudgementRow]) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {"measure": [f"{r.measure} (baseline)" if r.baseline else r.measure for r in rows]}
    for value in result.values:
        columns[HEADS.get(value, value.capitalize())] = _hundredfold(r.value(value) for r in rows)
        if value == "kendall":
            columns["low"] = _hundredfold(r.kendall.low for r in rows)
            columns["high"] = _hundredfold(r.kendall.high for r in rows)
    if any(r.gflops == r.gflops for r in rows):
        columns["GFLOPs"] = [_cost(r.gflops) for r in rows]
    return columns


def _show_tasks(page: Page, result: RankingJudgement, group: str, value: str) -> None:
    rows = {(r.measure, r.task): r for r in result.rows if r.group == group}
    tasks = list(dict.fromkeys(task for _, task in rows))
    columns: dict[str, list[Any]] = {"task": tasks}
    for name in result.measures:
        columns[name] = _hundredfold(rows[name, task].value(value) for task in tasks)
    table_in_parts(page, f"{group}: {HEADS.get(value, value)} by task (× 100)", columns)


def _show_pairs(page: Page, result: RankingJudgement, rows: Sequence[ComparisonRow], value: str) -> None:
    order = sorted(rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)[:MOST_PAIRS]
    columns = {
        "measures": [f"{r.one} − {r.two}" for r in order],
        "difference": _hundredfold(r.difference.estimate for r in order),
        "low": _hundredfold(r.difference.low for r in order),
        "high": _hundredfold(r.difference.high for r in order),
        "p": [_chance(r.pvalue) for r in order],
        "adjusted": [_chance(r.adjusted) for r in order],
    }
    what = "Differences" if len(order) == len(rows) else f"The {len(order)} clearest differences"
    title = f"{what} of {HEADS.get(value, value)}, {result.groups[-1]} (× 100, p by Holm adjusted)"
    page.table(title, columns, None)


def _show_references(page: Page, result: RankingJudgement) -> None:
    if not result.references:
        return
    rows = result.references
    columns: dict[str, list[Any]] = {"reference": [r.reference for r in rows]}
    if len(result.groups) > 1:
        columns["group"] = [r.group for r in rows]
    columns |= {
        "task": [r.task for r in rows],
        "accuracy": _hundredfold((r.accuracy for r in rows), 2),
        "best checkpoint": _hundredfold((r.best for r in rows), 2),
        "below it": [f"{r.below} of {r.n}" for r in rows],
    }
    page.table("References, which are never ranked (× 100)", columns, None)


def _hundredfold(values: Iterable[float], digits: int = 1) -> list[str]:
    return [f"{100 * v:.{digits}f}" if v == v else "–" for v in values]


def _cost(value: float) -> str:
    from curvewise.text import format_number

    return "–" if value != value else format_number(value, 3)


def _chance(p: float) -> str:
    return "–" if p != p else "<1e-12" if p < 1e-12 else f"{p:.2g}"


# Words of the command line for ``curvewise ranking``: what messages say, with options.

_ARGUMENTS = {
    "accuracies": "accuracy",
    "accuracy": "accuracy-column",
    "architecture": "factory",
    "baselines": "baseline",
    "rng": "seed",
    "preprocessing": "preprocess",
    **{
        name: name
        for name in (
            *("batch", "by", "cache", "checkpoint", "data", "device", "examples", "factory"),
            *("group", "k", "labels", "layer", "level", "measure", "measures", "permutations"),
            *("precision", "pool", "reference", "reliability", "repeats", "resamples", "score"),
            *("task", "test", "unit", "value", "wide"),
        )
    },
}
_NAMES = "|".join(sorted(_ARGUMENTS, key=len, reverse=True))
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_PAIR = re.compile(
    rf"(?<![\w.-])({_NAMES})="
    rf"(?:({_QUOTED})|(\([^)]*\)|\[[^\]]*\]|[^\s;,:]*[^\s;,:.)])|(?=[\s;,:.)]|$))"
)
_HOLDS = re.compile(rf"(?<![\w.-])({_NAMES}|where) (?:holds|names) ({_QUOTED})")
_WHERE = re.compile(rf"where=\{{({_QUOTED}): ({_QUOTED}|[^}}]*)\}}")
# Options that are given once for each value.
_REPEATED = ("reference", "baseline")

_PREPROCESSING = re.compile(r"(?:preprocessing=)?Preprocessing\(((?:[^()]|\([^()]*\))*)\)")


@contextmanager
def worded() -> Iterator[None]:
    """Say with options what an error says with arguments."""
    try:
        yield
    except UsageError:
        raise
    except InputError as error:
        raise InputError(as_options(str(error))) from error


@keeping_user_text
def as_options(message: str) -> str:
    """Say with options of ``curvewise ranking`` what a message says with Python arguments.

    >>> as_options("by='logme' is none of the measures: pass measures=…, or test=0.2.")
    '--by logme is none of the measures: pass --measures …, or --test 0.2.'
    >>> as_options("name it with accuracy=…, or pass the table as accuracies=….")
    'name it with --accuracy-column …, or pass the table as --accuracy ….'
    >>> as_options("where={'task': 'pets'} is in no row")
    "--where 'task=pets' is in no row"
    >>> as_options("preprocessing=Preprocessing(size=256, mean=(.5, .5)); Preprocessing() brings")
    '--preprocess size=256 --preprocess mean=[0.5,0.5]; --preprocess scale=1 brings'
    >>> as_options("make it the group with group='Trainable Backbone', or pass union=False.")
    "make it the group with --group 'Trainable Backbone', or pass --no-union."
    >>> as_options("measures holds 'nlep'; pass measures=['a b', 'c'], or test=None.")
    "--measures nlep; pass --measures 'a b,c', or --test 0."
    """
    message = message.replace("the folder of the study", "the current folder")
    message = re.sub(r"\bunion=(True|False)", _flag, message)
    message = message.replace("test=None", "test=0")  # no test examples are a share of 0
    message = _PREPROCESSING.sub(_preprocess, message)
    message = _WHERE.sub(_where, message)
    message = _HOLDS.sub(_option, message)
    message = re.sub(r"\bdata\.(path|name)=", "data=", message)
    message = re.sub(r"\bdata\.(\w+)='?(\w*)'?", r"--data-option \1≡\2", message)
    return _PAIR.sub(_option, message).replace("≡", "=")  # which is no argument's, and must stay


def _preprocess(found: re.Match[str]) -> str:
    """The fields of a Preprocessing as options, whose values are written as in TOML."""
    fields = re.findall(r"(\w+)=(\([^()]*\)|[^,\s]+)", found[1]) or [("scale", "1")]
    tidy = [(k, re.sub(r"(?<!\d)\.(?=\d)", "0.", v.replace(" ", ""))) for k, v in fields]
    said = [f"--preprocess {k}≡{v.replace('(', '[').replace(')', ']')}" for k, v in tidy]
    return " ".join(said)


def _flag(found: re.Match[str]) -> str:
    return "--union" if found[1] == "True" else "--no-union"


def _where(found: re.Match[str]) -> str:
    """A condition on rows, in quotes in any case."""
    column, value = _unquoted(found[1]), _unquoted(found[2])
    both = f"{column}≡{value}"
    return f"--where {shlex.quote(both)}"


def _option(found: re.Match[str]) -> str:
    """An argument and its value as an option, in quotes where the shell needs them."""
    name = _ARGUMENTS.get(found[1], found[1])
    given = found[2] or (found[3] if len(found.groups()) > 2 else None) or ""
    if not given.startswith(("(", "[")):
        return f"--{name} {_for_shell(_unquoted(given))}".rstrip()
    values = [_unquoted(word) for word in re.findall(rf"{_QUOTED}|[^\s,()\[\]]+", given)]
    if name in _REPEATED:
        return " ".join(f"--{name} {_for_shell(value)}" for value in values)
    return f"--{name} {_for_shell(','.join(values))}".rstrip()


def _unquoted(text: str) -> str:
    """What a text of Python stands for; other words as they are.

    >>> _unquoted("'two words'"), _unquoted("0.2")
    ('two words', '0.2')
    """
    return str(ast.literal_eval(text)) if re.fullmatch(_QUOTED, text) else text


def _for_shell(value: str) -> str:
    """In quotes where a shell would split or read it otherwise; dots stand for what is open.

    >>> _for_shell("nleep"), _for_shell("Trainable Backbone"), _for_shell("…")
    ('nleep', "'Trainable Backbone'", '…')
    """
    return shlex.quote(value) if value and re.search(r"[^\w…/@%+:,.-]", value) else value
