"""``curvewise ranking``: rank, judge, measures."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    DATA,
    DONE,
    FAILED,
    NETWORK,
    PLOT_ENDINGS,
    READING,
    AtLeast0,
    AtLeast1,
    Counts,
    DatasetReading,
    Drawing,
    Flag,
    Level,
    NetworkOptions,
    Page,
    Showing,
    Texts,
    UsageError,
    Words,
    check_file,
    in_options,
    named_files,
    note,
    note_table,
    options,
    read_options,
    read_where,
    readable_file,
    save_plot,
    split_name,
    table_in_parts,
    warn_each,
    write_csv,
)
from curvewise.errors import InputError, list_names, prefix, quietly, suggest
from curvewise.text import format_count, format_level, format_number, interval_cell, pvalue_text

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.ranking.judgement import ComparisonRow, JudgementRow, RankingJudgement
    from curvewise.ranking.load import CheckpointScores
    from curvewise.ranking.measure import CheckpointFeatures, RankingMeasure
    from curvewise.ranking.rank import CheckpointRanking, RankSettings


ranking = App(
    name="ranking",
    help="Which checkpoint should I fine-tune?\n\nCHECKPOINT is a file of a network (.pt2, TorchScript, ONNX, TFLite, "
    "or weights with --factory), a folder of Hugging Face, an array of features (.npy, .npz), a folder of such files, "
    "NAME=FILE, or a .toml file that lists them.",
)

# Options for arguments of another name.
OPTIONS = {
    "accuracies": "accuracy",
    "architecture": "factory",
    "baselines": "baseline",
    "groups": "group",
    "tasks": "task",
    **{f"columns.{role}": role for role in ("checkpoint", "task", "group", "measure", "score")},
    "columns.accuracy": "accuracy-column",
    **dict.fromkeys(("data.name", "data.path", "data.hf", "data.function"), "data"),
    "data.*": "data-option",
    "options": "factory-option",
    "preprocessing": "preprocess",
    "rng": "seed",
    "table": "",
    "source": "",
}
# Endings of files of features.
ARRAYS = (".npy", ".npz")
# Endings of the files that a folder of checkpoints is searched for.
ENDINGS = (".pt2", ".pt", ".pth", ".th", ".onnx", ".tflite", ".safetensors", *ARRAYS)
# Keys that a .toml file may have for a checkpoint.
KEYS = (
    *("path", "layer", "factory", "options", "preprocessing", "pool", "tokenizer", "length"),
    *("shape", "classes", "source_accuracy"),
)
# Measures that are drawn against accuracies, the best ones.
SCATTERED = 6
# Comparisons that are shown; --json has all of them.
MOST_PAIRS = 20
# Groups that are drawn in one picture.
MOST_PANELS = 6
Checkpoints = Annotated[list[str], Parameter(name="CHECKPOINT...", negative="")]
Share = Annotated[float, Parameter(validator=Number(gte=0, lt=1))]


@options(DATA)
class TargetReading(DatasetReading):
    """Examples and labels of the task to rank for.

    Parameters
    ----------
    data
        Examples with their classes: an .npz file, a table, a folder of IDX files, of CIFAR's
        binary files or of images with a subfolder for each class; or a name, such as digits,
        fashion-mnist or cifar10. Not needed where all checkpoints are files of features.
    labels
        File with the label of each example, for files of features: .npy, .npz, or text with one
        in each line. A class, several of 0 and 1, or a number; whole numbers in text are classes.
    examples
        Maximum number of examples, drawn at random.
    """

    data: str | None = None
    labels: Path | None = None
    examples: Annotated[int | None, Parameter(validator=Number(gte=4))] = None

    def check(self, found: Sequence[CheckpointFile]) -> None:
        """Raise unless there are examples and labels for the checkpoints."""
        network = next((one for one in found if not one.is_array), None)
        if self.data is None and network is not None:
            raise UsageError(f"--data is missing: {network.path} is a network, which needs examples.")
        if self.data is None and self.labels is None and not any(one.path.suffix.lower() == ".npz" for one in found):
            raise UsageError(
                "--labels is missing: give the label of each example, or save it with the features in an .npz file, as "
                "an array called labels."
            )
        if self.data is not None and self.labels is not None:
            raise UsageError("--data brings its labels: leave --labels out, or --data.")

    def plan(self) -> dict[str, str]:
        """Return what would be ranked for, to be shown."""
        what = {"data": f"{self.data} ({self.part})"} if self.data else {"labels": str(self.labels or "in the files")}
        return what if self.examples is None else {**what, "examples": f"at most {self.examples:,}"}

    def load(self) -> tuple[Any, NDArray[Any] | None]:
        """Return examples (None for features alone) and labels (None for those in the files of features)."""
        if self.data is None:
            if self.labels is None:
                return None, None
            from curvewise.ranking.load import read_target

            try:
                return None, read_target(_existing(self.labels))
            except InputError as error:
                raise UsageError(prefix(f"--labels {self.labels} cannot be read: ", error.message)) from error
        from curvewise.study.data.load import load_dataset

        dataset, x, y = self.read(load_dataset)
        note(f"{dataset.name}: {len(y):,} examples of {len(dataset.classes)} classes")
        return x, y


@options(NETWORK)
class FeatureReading(NetworkOptions):
    """Extraction of features from checkpoints.

    Parameters
    ----------
    layer
        Layer whose output is taken: a submodule, or a tensor of ONNX and TFLite. By default the
        input of the last linear layer.
    preprocess
        Preprocessing of images where a file does not specify it, as KEY=VALUE: size=224, crop=224,
        mean=[0.5,0.5,0.5], std=…, interpolation=bicubic, channels=grey; may be repeated. What a
        .toml file says of a checkpoint comes first.
    cache
        Folder for features, which are found again there.
    precision
        Precision of the arithmetic.
    """

    layer: str | None = None
    preprocess: Texts = field(default_factory=list)
    cache: Path | None = None
    precision: Literal["float32", "bfloat16", "float16"] = "float32"

    @property
    def making(self) -> dict[str, Any]:
        """Options of every checkpoint that has none of its own."""
        given = {"factory": self.factory, "options": read_options(self.factory_option) or None, "layer": self.layer}
        return {key: value for key, value in given.items() if value is not None}

    @property
    def running(self) -> dict[str, Any]:
        """Options of the extraction."""
        return {
            "batch": self.batch,
            "device": self.device,
            "precision": self.precision,
            "cache": self.cache,
            "preprocessing": read_options(self.preprocess) or None,
        }


@options()
class RankingOptions:
    """Options for ranking.

    Parameters
    ----------
    by
        The measure that ranks; the first by default.
    k
        Number of checkpoints to try.
    test
        Share of the examples that measures which are fitted are scored on; 0 for those that they
        were fitted on.
    resamples
        Random halves of the examples that are drawn for intervals; 0 for none.
    reliability
        Correlation of the measure's scores with accuracies, where you know it, or the measure
        whose reference to take; from published benchmarks by default.
    level
        Coverage of the intervals.
    seed
        Decides the examples, the split, the halves, and what is random in measures.
    """

    by: str | None = None
    k: AtLeast1 = 3
    test: Share = 0.2
    resamples: AtLeast0 = 50
    reliability: str | None = None
    level: Level = 0.95
    seed: AtLeast0 = 0

    def settings(self) -> RankSettings:
        """Return them as :func:`rank_checkpoints` takes them."""
        from curvewise.ranking.rank import RankSettings, as_reliability

        try:  # a correlation, or the name of the measure whose reference is meant
            reliability: float | str | None = self.reliability and float(self.reliability)
        except ValueError:
            reliability = self.reliability
        known = None if reliability is None else as_reliability(reliability)
        return RankSettings(self.test or None, self.by, self.resamples, self.level, self.k, known, self.seed)


@ranking.command
def rank(
    checkpoints: Checkpoints,
    /,
    *,
    reading: TargetReading = TargetReading(),
    measures: Words = [],
    how: RankingOptions = RankingOptions(),
    extracting: FeatureReading = FeatureReading(),
    dry_run: Flag = False,
    trust: Flag = False,
    save: Path | None = None,
    drawing: Drawing = Drawing(),
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
        Measures to compute, such as nleep,logme,knn; see `curvewise ranking measures`.
    dry_run
        Show what would be done, and do nothing.
    trust
        Import code that a .toml file names as the factory of a checkpoint.
    save
        Write the scores into this .csv file, which `curvewise ranking judge` reads.
    """
    page = drawing.page()
    check_file("--save", save, (".csv",))  # before anything is computed
    found = find_checkpoints(checkpoints, reading.labels)
    reading.check(found)
    from curvewise.ranking.networks.rank import MEASURES, NEED_TORCH
    from curvewise.ranking.rank import DEFAULT_MEASURES
    from curvewise.ranking.scoring import find_measures

    try:
        wanted = find_measures(measures or DEFAULT_MEASURES, MEASURES, NEED_TORCH)
        settings = how.settings()
    except InputError as error:
        raise UsageError(error.message) from error
    names = [measure.name for measure in wanted]
    if how.by is not None and how.by not in names:
        raise UsageError(f"--by {how.by} is none of the measures {', '.join(names)}: add it.")
    if dry_run:
        show_plan(page, found, {"measures": ", ".join(names), **reading.plan()})
        return page.close()
    if not trust:
        refuse_own_code(found)
    result = rank_found(found, reading, wanted, extracting, settings)
    show_ranking(page, result)
    if save is not None:
        columns = {"checkpoint": list(result.checkpoints), **result.scores}
        write_csv(save, [list(columns), *zip(*columns.values(), strict=True)], "scores")
    save_plot(page.plot, lambda: result.plot())
    lost = result.failures or result.missing.get(result.by)
    return page.close(FAILED if lost else DONE)


@options(READING)
class PoolReading:
    """Columns and conventions of a table of checkpoints with accuracies and scores.

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
        Rule for several rows of a checkpoint and task: the best accuracy, as over
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
    allow_large: Flag = False

    def load(self, source: str, measures: Sequence[str]) -> CheckpointScores:
        """Read the table, and report on stderr how its columns were interpreted."""
        from curvewise.ranking.load import load_checkpoint_scores

        columns = {role: getattr(self, role) for role in ("checkpoint", "task", "group", "measure", "score")}
        columns["accuracy"] = self.accuracy_column
        same = {name: getattr(self, name) for name in ("wide", "unit", "repeats", "allow_large")}
        with readable_file(source) as path:
            pool = load_checkpoint_scores(
                path,
                accuracies=self.accuracy,
                columns={role: name for role, name in columns.items() if name is not None},
                measures=list(measures) or None,
                reference=tuple(self.reference),
                baselines=tuple(self.baseline) or None,
                where=read_where(self.where),
                **same,
            )
        note_table(pool)
        return pool


@options()
class Pictures:
    """Further pictures of a judgement.

    Parameters
    ----------
    heat
        Draw measures × tasks into this .png, .svg or .pdf file.
    cost
        Draw the cost of measures against their Kendall into this file.
    scatter
        Draw scores against accuracies into this file.
    bars
        Draw accuracies less their mean into this file; no scores are needed for it alone.
    """

    heat: Path | None = None
    cost: Path | None = None
    scatter: Path | None = None
    bars: Path | None = None

    def __post_init__(self) -> None:
        """Refuse files that cannot be drawn before anything is read."""
        for name, path in vars(self).items():
            check_file(f"--{name}", path, PLOT_ENDINGS)


@ranking.command
def judge(
    table: Annotated[str, Parameter(name="TABLE")],
    /,
    *,
    measures: Words = [],
    k: Counts = [],
    union: bool = True,
    value: str = "kendall",
    by_task: Flag = False,
    level: Level = 0.95,
    permutations: AtLeast0 = 9999,
    seed: AtLeast0 = 0,
    reading: PoolReading = PoolReading(),
    pictures: Pictures = Pictures(),
    drawing: Drawing = Drawing(),
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
        Numbers of checkpoints that can be tried, such as 1,3 (the default).
    union
        Judge all groups as one, too.
    value
        Metric by which pairs of measures are compared and tasks shown: kendall, weighted_kendall,
        pearson, recall_at_1, rel_at_1, …
    by_task
        Show the tasks one by one.
    level
        Coverage of the intervals.
    permutations
        Draws of the paired tests, at most.
    seed
        Decides the draws.
    """
    page = drawing.page()
    pool = reading.load(table, measures)
    if not pool.scores:
        # Accuracies alone can be drawn, and nothing else.
        if pictures.bars is None or any((page.plot, pictures.heat, pictures.cost, pictures.scatter)):
            raise UsageError(
                f"{table} has no scores of measures: name their columns with --measures (or, where each row is one "
                "score, with --measure COLUMN --score COLUMN), or pass the table that has them as TABLE and this one "
                "as --accuracy. --bars alone needs none."
            )
        note(f"{table} has no scores of measures: accuracies are drawn, nothing is judged")
        page.document = {"type": "CheckpointScores", **pool.columns()}
        _draw_pool(pool, [], pictures)
        return page.close()
    if pictures.cost is not None and not pool.gflops:
        raise UsageError(f"--cost {pictures.cost}: {table} has no costs, such as a column nleep_gflops.")
    from curvewise.ranking.judgement import judge_rankings

    with quietly():
        result = judge_rankings(
            pool,
            list(measures) or None,
            **({"k": k} if k else {}),
            union=union,
            level=level,
            permutations=permutations,
            rng=seed,
        )
    if value not in result.values:
        raise UsageError(f"--value {value}: use one of {', '.join(result.values)}.")
    show_judgement(page, result, value, by_task)
    drawn = ((page.plot, "dots"), (pictures.heat, "heat"), (pictures.cost, "cost"))
    groups = drawn_groups(result) if any(path for path, _ in drawn) else []
    for path, kind in drawn:
        save_plot(path, partial(result.plot, kind=kind, score=value, group=groups))
    _draw_pool(pool, best_first(result)[:SCATTERED], pictures)
    return page.close()


def _draw_pool(pool: CheckpointScores, measures: list[str], pictures: Pictures) -> None:
    """Draw scores against accuracies, and accuracies alone."""
    from curvewise import ranking as lens  # which loads its pictures when they are drawn

    save_plot(pictures.scatter, lambda: lens.plot_checkpoint_scores(pool, measures))
    save_plot(pictures.bars, lambda: lens.plot_fine_tuning(pool))


@ranking.command
def measures(*, showing: Showing = Showing()) -> int:
    """List the measures, what they need and cost, and when they fail.

    Example: `curvewise ranking measures --table markdown`
    """
    from curvewise.ranking.networks.rank import MEASURES, NEED_TORCH

    page = showing.page()
    if NEED_TORCH:
        note(NEED_TORCH)
    show_measures(page, list(MEASURES.values()))
    return page.close()


@dataclass(frozen=True)
class CheckpointFile:
    """A checkpoint on the command line: its name, its file, and its options."""

    name: str
    path: Path
    about: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_array(self) -> bool:
        """True for a file of features."""
        return self.path.suffix.lower() in ARRAYS


def find_checkpoints(words: Sequence[str], labels: Path | None = None) -> list[CheckpointFile]:
    """Find the checkpoints among files, folders, NAME=FILE, and .toml files that list them.

    A file of labels in one of the folders is not a checkpoint.
    """
    named: list[CheckpointFile] = []
    plain: list[str] = []
    for word in words:
        name, path = split_name(word)
        if name:
            named.append(CheckpointFile(name, _existing(Path(path))))
        elif Path(word).suffix.lower() == ".toml":
            named += _listed(_existing(Path(word)))
        else:
            plain += _files(_existing(Path(word)), labels)
    once: dict[Path, str] = {}
    for file in plain:
        if (place := Path(file).resolve()) in once:
            note(f"{file} is given more than once, and ranked once: NAME={file} ranks it again")
        once.setdefault(place, file)
    found = [CheckpointFile(name, Path(file)) for name, file in named_files(list(once.values())).items()] + named
    for one in found:
        if not one.name or sum(other.name == one.name for other in found) > 1:
            raise UsageError(f"{one.path}: {one.name!r} names another checkpoint, too. Name it with NAME={one.path}.")
    return found


def refuse_own_code(found: Sequence[CheckpointFile]) -> None:
    """Refuse checkpoints of a .toml file whose network is made by code that the file names."""
    from curvewise.nn.own_code import names_own_code

    for one in found:
        factory = one.about.get("factory")
        if isinstance(factory, str) and names_own_code(factory, one.about.get("options")):
            raise UsageError(
                f"{one.name} is made by factory={factory!r}, code that a .toml file names: read "
                "it, and pass --trust to have it imported."
            )


def _existing(path: Path) -> Path:
    """Return the path; raise unless it exists."""
    if not path.exists():
        raise UsageError(f"{path}: there is no such file or folder.")
    return path


def _files(path: Path, labels: Path | None) -> list[str]:
    """Return the file itself, or the checkpoints in a folder, unless the folder is one checkpoint."""
    if not path.is_dir() or (path / "config.json").exists():
        return [str(path)]
    is_labels = labels.samefile if labels is not None and labels.exists() else lambda _: False
    inside = [p for p in sorted(path.iterdir()) if not is_labels(p)]
    found = [str(p) for p in inside if p.suffix.lower() in ENDINGS or (p.is_dir() and (p / "config.json").exists())]
    if not found:
        raise UsageError(f"{path}: no checkpoint is in this folder ({', '.join(ENDINGS)}).")
    left = [p for p in inside if str(p) not in found and not p.name.startswith(".")]
    reasons = {
        f"no ending of a checkpoint ({', '.join(ENDINGS)})": [p for p in left if not p.is_dir()],
        "a folder without config.json": [p for p in left if p.is_dir()],
    }
    for why, paths in reasons.items():
        if paths:
            names = ", ".join(p.name for p in paths[:5]) + (" …" if len(paths) > 5 else "")
            note(f"{path}: left out {names}: {why}")
    return found


def _listed(path: Path) -> list[CheckpointFile]:
    """Read the checkpoints of a .toml file: a table for each, named by its key."""
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{path} is not a TOML file: {error}.") from error
    found = []
    for name, table in tables.items():
        if not isinstance(table, dict) or not isinstance(table.get("path"), str):
            raise UsageError(
                f'{path}: {name} must be a table with the file of a checkpoint, such as [{name}] path = "net.onnx".'
            )
        if odd := set(table) - set(KEYS):
            raise UsageError(f"{path}: {name} has {min(odd)!r}: use {', '.join(KEYS)}.")
        about = {key: value for key, value in table.items() if key != "path"}
        found.append(CheckpointFile(name, _existing(path.parent / table["path"]), about))
    if not found:
        raise UsageError(f'{path} lists no checkpoint: add a table for each, such as [mine] path = "net.onnx".')
    return found


def rank_found(
    found: Sequence[CheckpointFile],
    reading: TargetReading,
    measures: Sequence[RankingMeasure],
    extracting: FeatureReading,
    how: RankSettings,
) -> CheckpointRanking:
    """Extract features once for each checkpoint, then compute every measure."""
    data, labels = reading.load()
    if data is None or labels is None:
        return rank_stored(found, labels, measures, reading.examples, how)
    from curvewise.ranking.networks.checkpoints import Checkpoint
    from curvewise.ranking.networks.rank import rank_checkpoints

    more = {**vars(how), **extracting.running, "examples": reading.examples}
    _check_keys("--preprocess", more["preprocessing"])
    for one in found:
        _check_keys(f"preprocessing of {one.name}", one.about.get("preprocessing"))
    with quietly(), redirect_stdout(sys.stderr):  # stdout is for results alone
        given = [Checkpoint(one.name, one.path, **{**extracting.making, **one.about}, folder=Path()) for one in found]
        return rank_checkpoints(given, (data, labels), measures, **more)


def _check_keys(where: str, given: Any) -> None:
    """Raise for a key that no preprocessing has, and name the nearest one."""
    from curvewise.ranking.networks.preprocessing import Preprocessing, as_preprocessing

    keys = list(Preprocessing.__dataclass_fields__)
    odd = [key for key in given if key not in keys] if isinstance(given, Mapping) else []
    if not odd:
        return
    try:
        as_preprocessing(given)  # may be a configuration of timm or Hugging Face
    except InputError as error:
        raise UsageError(f"{where} has {odd[0]!r}.{suggest(odd[0], keys)} Use {', '.join(keys)}.") from error


def rank_stored(
    found: Sequence[CheckpointFile],
    labels: NDArray[Any] | None,
    measures: Sequence[RankingMeasure],
    examples: int | None,
    how: RankSettings,
) -> CheckpointRanking:
    """Rank by features that are on disk: no network is run, and torch is not needed."""
    import numpy as np

    from curvewise.ranking.load import common_labels, read_features
    from curvewise.ranking.rank import rank_candidates
    from curvewise.ranking.scoring import Candidate

    stored: dict[str, CheckpointFeatures] = {}
    inside: dict[str, NDArray[Any] | None] = {}
    failures: dict[str, str] = {}
    for one in found:
        try:
            about = {k: v for k, v in one.about.items() if k == "source_accuracy"}
            stored[one.name], inside[one.name] = read_features(one.path, one.name, **about)
        except InputError as error:
            failures[one.name] = error.message
    if labels is None and stored:
        labels = common_labels(inside)
        note(f"labels from {list_names([name for name, held in inside.items() if held is not None], 3)}")
    count = 0 if labels is None else len(labels)
    for one in found:
        if one.name in stored and (rows := len(stored[one.name].features)) != count:
            failures[one.name] = f"{one.path} has {rows:,} rows, and there are {count:,} labels."
            del stored[one.name]
    read = list(stored.values())
    if not read:
        raise InputError(prefix("no checkpoint could be read: ", next(iter(failures.values()))))
    assert labels is not None
    if examples is not None and examples < count:
        chosen = np.sort(np.random.default_rng(how.rng).permutation(count)[:examples])
        read, labels = [each.take(chosen) for each in read], labels[chosen]
    with quietly():
        return rank_candidates([Candidate.of(one) for one in read], labels, measures, how, failures)


def show_ranking(page: Page, result: CheckpointRanking) -> None:
    """Print the ranked table, agreement among measures, cost, certainty and failures."""
    page.document = result.to_dict()
    page.document["top"] = list(result.top)
    page.result(result, result.table_note())
    if len(result.measures) > 1 and page.verbose:
        agreement = {
            name: ["–" if i == j or v != v else f"{v:.2f}" for i, v in enumerate(result.agreement[:, j])]
            for j, name in enumerate(result.measures)
        }
        table_in_parts(page, "Agreement of measures (Kendall's τ-b)", {"measure": list(result.measures), **agreement})
    costs = result.costs()
    numbers = {"seconds": _numbers(costs["seconds"], 3), "GFLOPs": _numbers(costs["gflops"], 3)}
    if page.verbose:
        page.table("Cost over all checkpoints", {"part": costs["part"], **numbers})
    page.document["costs"] = costs
    _show_lost(page, result)
    page.say(result.sentences())
    if page.markup is None and result.ranked > 1 and result.chance_best[0] >= 0:  # NaN where it is unknown
        few = len(result.top) < result.ranked
        first = f"Fine-tune {', '.join(result.top)}; for" if few else "For"
        many = format_count(result.enough(), "checkpoint")
        advice = f"fine-tune the first {many}."
        if result.enough() == result.ranked:
            advice = f"fine-tune all {many}: the examples do not narrow the choice."
        page.say(f"{first} 90% certainty that the best is among them, {advice}")
    warn_each(result.all_warnings)


def _show_lost(page: Page, result: CheckpointRanking) -> None:
    """Print the checkpoints without features or without a score, those of one reason together."""
    from curvewise.ranking.measure import grouped

    every = {"features": result.failures, **result.missing}
    lost = grouped(((what, why), name) for what, reasons in every.items() for name, why in reasons.items())
    if not lost:
        return
    columns = {
        "checkpoint": [", ".join(names) for names in lost.values()],
        "has no": [what for what, _ in lost],
        "because": [in_options(why) for _, why in lost],
    }
    page.table("Failed", columns)


def show_measures(page: Page, found: Sequence[RankingMeasure]) -> None:
    """Print the measures with their inputs, costs and known failures."""
    page.document = {
        "type": "RankingMeasures",
        "measures": [
            {**m.columns(), "targets": list(m.targets), "splits": m.splits, "seeded": m.seeded} for m in found
        ],
    }
    rows = [{"what it is" if k == "about" else k: text for k, text in m.columns().items()} for m in found]
    # A terminal has no room for costs and failures; --verbose, --table and --json have all of it.
    brief = ("measure", "takes", "what it is")
    shown = [head for head in rows[0] if page.markup is not None or page.verbose or head in brief]
    page.table("Measures of a checkpoint, more is better", {head: [row[head] for row in rows] for head in shown})


def show_plan(page: Page, found: Sequence[CheckpointFile], about: Mapping[str, Any]) -> None:
    """Print what would be done, and what is known of checkpoints before they are read."""
    rows = [
        {
            "checkpoint": one.name,
            "file": str(one.path),
            "size": f"{size / 1e6:,.1f} MB" if size >= 1e5 else f"{size / 1e3:,.1f} kB",
            "as": "features" if one.is_array else "network",
        }
        for one in found
        for size in [sum(p.stat().st_size for p in [one.path, *one.path.rglob("*")] if p.is_file())]
    ]
    page.document = {"type": "RankingPlan", **about, "checkpoints": rows}
    columns = {key: [row[key] for row in rows] for key in rows[0]}
    page.table("Checkpoints", columns)
    page.say("; ".join(f"{key}: {value}" for key, value in about.items()))
    note("--dry-run: nothing was computed")


def _numbers(values: Iterable[float], digits: int = 4) -> list[str]:
    return ["–" if v != v else format_number(float(v), digits) for v in values]


def drawn_groups(result: RankingJudgement) -> list[str]:
    """Return the groups that get a panel of a picture: all, or of many the first few and their union."""
    groups = list(result.groups)
    if len(groups) <= MOST_PANELS:
        return groups
    chosen = [*groups[: MOST_PANELS - 1], groups[-1]]
    note(f"{len(chosen)} of {len(groups)} groups are drawn: {', '.join(chosen)}; --where COLUMN=NAME chooses another")
    return chosen


def show_judgement(page: Page, result: RankingJudgement, value: str, by_task: bool) -> None:
    """Print the columns of the paper's tables for each group, comparisons and references."""
    page.document = result.to_dict()
    for group in result.groups:
        _show_group(page, result, group)
        if by_task and page.markup is None and len(result.tasks) > 1:
            _show_tasks(page, result, group, value)
    pairs = result.comparisons(value=value) if len(result.measures) > 1 else None
    page.document["comparisons"] = None if pairs is None else pairs.to_dict()
    if page.markup is None:
        if pairs is not None and page.verbose:
            _show_pairs(page, result, pairs.rows, value)
        if result.references:
            unit = " (%)" if result.in_percent else ""
            page.table(f"References, which are never ranked{unit}", result.reference_columns())
    elif result.references and not page.as_json:
        sys.stdout.write("\n" + result.reference_table(page.markup) + "\n")
    page.say(result.sentences())
    warn_each(result.all_warnings)


def best_first(result: RankingJudgement, group: str | None = None) -> list[str]:
    """Return measures by their Kendall in a group, the last by default."""
    found = {name: result.row(name, group=group).kendall.estimate for name in result.measures}
    return sorted(found, key=lambda name: -found[name] if found[name] == found[name] else 2.0)


def _show_group(page: Page, result: RankingJudgement, group: str) -> None:
    """Print the columns of the paper's tables for a group."""
    if page.markup is not None and not page.as_json:
        sys.stdout.write(f"{'' if group == result.groups[0] else chr(10)}")
        page.say(f"{group}:")
        sys.stdout.write(result.table(page.markup, group=group) + "\n")
        return
    rows = [result.row(name, group=group) for name in best_first(result, group)]
    tasks = len({r.task for r in result.rows if r.group == group}) - 1
    title = f"{group}, {format_count(tasks, 'task')} ({format_level(result.level)} interval of Kendall)"
    table_in_parts(page, title, _details(result, rows))


def _details(result: RankingJudgement, rows: Sequence[JudgementRow]) -> dict[str, list[Any]]:
    """Return every number of some rows as columns."""
    columns: dict[str, list[Any]] = {"measure": [f"{r.measure} (baseline)" if r.baseline else r.measure for r in rows]}
    for value in result.values:
        columns[_head(value)] = _agreements(r.value(value) for r in rows)
        if value == "kendall":
            columns[_head(value)] = [interval_cell(r.kendall) for r in rows]
    if any(r.gflops == r.gflops for r in rows):
        columns["GFLOPs"] = _numbers((r.gflops for r in rows), 3)
    return columns


def _show_tasks(page: Page, result: RankingJudgement, group: str, value: str) -> None:
    """Print one metric of every measure, task by task."""
    rows = {(r.measure, r.task): r for r in result.rows if r.group == group}
    tasks = list(dict.fromkeys(task for _, task in rows))
    columns: dict[str, list[Any]] = {"task": tasks}
    for name in result.measures:
        columns[name] = _agreements(rows[name, task].value(value) for task in tasks)
    table_in_parts(page, f"{group}: {_head(value)} by task", columns)


def _show_pairs(page: Page, result: RankingJudgement, rows: Sequence[ComparisonRow], value: str) -> None:
    """Print the clearest differences between measures."""
    order = sorted(rows, key=lambda r: r.pvalue if r.pvalue == r.pvalue else 2.0)[:MOST_PAIRS]
    columns: dict[str, list[Any]] = {
        "measures": [f"{r.one} - {r.two}" for r in order],
        "difference": [interval_cell(r.difference) for r in order],
        "p": [pvalue_text(r.pvalue) for r in order],
        "adjusted": [pvalue_text(r.adjusted) for r in order],
    }
    what = "Differences" if len(order) == len(rows) else f"The {len(order)} clearest differences"
    title = f"{what} of {_head(value)}, {result.groups[-1]} (p adjusted by Holm for all pairs)"
    page.table(title, columns)


def _agreements(values: Iterable[float]) -> list[str]:
    return [f"{v:.3f}" if v == v else "–" for v in values]


def _head(value: str) -> str:
    """Return the heading of a metric."""
    from curvewise.ranking.agreement import metric_title

    return "weighted" if value == "weighted_kendall" else metric_title(value)
