"""``curvewise response``: measure, judge, invariance, measures, perturbations."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field, replace
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter
from cyclopts.validators import Number

from curvewise.cli.console import (
    DATA,
    DONE,
    NETWORK,
    PLOT_ENDINGS,
    READING,
    VERDICTS,
    AtLeast0,
    DatasetReading,
    Drawing,
    Flag,
    Level,
    NetworkOptions,
    Numbers,
    Page,
    Showing,
    Texts,
    UsageError,
    Words,
    check_file,
    expand_patterns,
    gate_status,
    in_options,
    named_files,
    need_torch,
    note,
    note_reading,
    options,
    read_options,
    readable_file,
    save_plot,
    warn_each,
    write_csv,
)
from curvewise.errors import InputError, prefix, quietly
from curvewise.text import format_count, format_level, format_number, interval_cell, pvalue_text, readable_columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.nn.files.model import ModelFile
    from curvewise.nn.task import Examples
    from curvewise.response.comparison import ResponseComparison
    from curvewise.response.curve import ResponseCurve
    from curvewise.response.judgement import MeasureJudgement
    from curvewise.response.load import ModelCorpus
    from curvewise.response.networks.measures import ModelMeasures
    from curvewise.study.data.dataset import Dataset
    from curvewise.types.results import Interval


OPTIONS = {
    "architecture": "factory",
    "corpus": "",
    **{f"columns.{role}": role for role in ("gap", "task", "train_accuracy")},
    **dict.fromkeys(("data.name", "data.path", "data.hf", "data.function"), "data"),
    "data.*": "data-option",
    "hyperparameters": "hyperparameter",
    "measures": "measure",
    "source": "",
}
"""Options that stand for arguments of other names."""

response = App(
    name="response",
    help="How does a network respond to perturbed examples, and will it generalise?\n\n"
    "MODEL is a file of torch.export.save (.pt2), TorchScript, ONNX, or weights (.safetensors, or "
    "a state_dict of torch.save) with --factory. Pickled modules are refused.",
    error_formatter=lambda error: _error_panel(error),
)


def _error_panel(error: CycloptsError) -> Any:
    """Show what was not understood; the other lenses compare with a command of its own."""
    from cyclopts import CycloptsPanel, UnknownCommandError

    from curvewise.cli.app import usage_panel

    if isinstance(error, UnknownCommandError) and (error.unused_tokens or [""])[0] == "compare":
        return CycloptsPanel("Models are compared by `curvewise response measure A B`: give two or more to it.")
    return usage_panel(error)


SCORES = {
    "clean_accuracy": "clean accuracy",
    "mean_accuracy": "mean accuracy",
    "gi": "Gi",
    "gi_relative": "relative Gi",
    "pal": "Pal",
}
"""Names of the scores of a curve in tables."""
VALUES = {
    "corrected": ("cmi", "CMI × 100"),
    "pgdl": ("pgdl", "CMI × 100 as in the competition"),
    "kendall": ("kendall", "Kendall's τ"),
    "granulated": ("granulated", "granulated Kendall's τ"),
    "pearson": ("pearson", "Pearson's r"),
    "spearman": ("spearman", "Spearman's ρ"),
}
"""Modes of a judgement: the name of the value, and its title."""
Mode = Literal["corrected", "pgdl", "kendall", "granulated", "pearson", "spearman"]
SHOWN_OF_A_PERTURBATION = ("name", "of", "pairs", "unit", "low", "high", "usual", "coloured")
# Pairs of models that are shown; --json has all of them.
MOST_PAIRS = 20
# Measures that are drawn against the gap.
SCATTERED = 6
# Magnitudes of a sheet.
SHEET_COLUMNS = 7
# Examples that a network is tried on before it is measured, so that a wrong file fails at once.
TRIED = 16

Gate = Literal["worse", "better", "undecided"]
Models = Annotated[list[str], Parameter(name="MODEL...", negative="", show_default=False, converter=expand_patterns)]


@options(DATA)
class DataReading(DatasetReading):
    """Options for reading the examples.

    Parameters
    ----------
    part
        Training or test examples. The scores are meant for those that the network was trained on.
    mean
        What was subtracted from pixels (from 0 to 1) when the network was trained: one number for
        each channel, such as 0.49,0.48,0.45. By default nothing.
    std
        What they were then divided by.
    normalise
        Take mean and std of the training examples, as networks of `curvewise study` do.
    """

    data: str = field()
    mean: Numbers = field(default_factory=list)
    std: Numbers = field(default_factory=list)
    normalise: Flag = False

    def load(self) -> tuple[Dataset, Examples]:
        """Load the data and the examples of the part; note on stderr what was done."""
        from curvewise.nn.task import Examples
        from curvewise.study.data.load import load_dataset

        if bool(self.mean) != bool(self.std):
            raise UsageError("--mean and --std belong together: give both or neither.")
        if self.mean and self.normalise:
            raise UsageError("--normalise computes what --mean and --std say: give one of them.")
        dataset, x, y = self.read(load_dataset)
        mean, std = self._scale(dataset)
        examples = Examples(x, y, len(dataset.classes), mean, std, dataset.padding)
        how = "the network is given pixels from 0 to 1, not normalised (--mean and --std, or --normalise, if it was "
        how += "trained so)"
        if mean is not None and std is not None:
            how = f"normalised with mean {_numbers(mean)} and std {_numbers(std)}"
        elif not dataset.is_image:
            how = "taken as they are"
        # Data without a test part may be a test set.
        kind = "test " if self.part == "test" else "" if dataset.test_y is None else "training "
        shape = " × ".join(map(str, examples.shape))
        note(f"{dataset.name}: {len(y):,} {kind}examples of {examples.classes} classes, {shape}; {how}")
        return dataset, examples

    def _scale(self, dataset: Dataset) -> tuple[tuple[float, ...] | None, tuple[float, ...] | None]:
        if self.normalise and dataset.padding is not None:
            raise UsageError("--normalise is for images and features, not for tokens.")
        if self.normalise:
            return _statistics(dataset.x)
        wanted = dataset.x.shape[1]
        for option, values in (("--mean", self.mean), ("--std", self.std)):
            if values and len(values) != wanted:
                what = "channels" if dataset.is_image else "features"
                raise UsageError(f"{option} has {len(values)} number(s), the data {wanted} {what}: give one for each.")
        if self.std and min(self.std) <= 0:
            raise UsageError(f"--std {_numbers(self.std)}: give numbers above 0.")
        return tuple(self.mean) or None, tuple(self.std) or None


@options(NETWORK)
class NetworkReading(NetworkOptions):
    """Options for loading networks."""

    @property
    def place(self) -> str | None:
        """The given device, or the first GPU; None for the CPU."""
        from curvewise.nn.devices import list_gpus

        return self.device or next(iter(list_gpus()), None)

    def load(self, files: Sequence[str], examples: Examples, layer: str | int | None = None) -> dict[str, ModelFile]:
        """Load each network under its name, and try it on a few examples."""
        from curvewise.nn.data import draw_sample
        from curvewise.nn.devices import find_device
        from curvewise.nn.files.model import check_answers, load_model

        chosen = read_options(self.factory_option)
        if self.device is not None:
            find_device(self.device)
        tried = draw_sample(examples, examples=TRIED)
        networks = {}
        for name, file in named_files(files).items():
            made: dict[str, Any] = {"shape": examples.shape, "classes": examples.classes, "factory": self.factory}
            loaded = load_model(file, **made, options=chosen, layer=layer, device=self.place, folder=Path())
            check_answers(loaded, tried.given(tried.x))
            note("; ".join([f"{file}: {loaded.kind}", *loaded.notes]))
            networks[name] = loaded
        return networks


@options()
class Perturbing:
    """Options for perturbing examples.

    Parameters
    ----------
    perturbation
        What is done to the examples; several may be given, such as rotation noise. See
        `curvewise response perturbations`. module:function for one of your own, called with a
        batch, a magnitude and a random generator.
    layer
        Perturb what this submodule gives instead of the input: its name, or a number that counts
        the activations from 1 on (name:1 for a submodule that is called 1).
    magnitudes
        How strongly, such as 0,0.1,0.2; by default ten or eleven over the usual range. With paper
        over that of Schiff et al. 2021: rotation by up to 180 degrees, not 30.
    examples
        How many to take at random, at most.
    signs
        Magnitudes of both signs: average both directions, or sweep from the lowest to the highest.
    padding
        For tokens: the one that fills short texts up and is never touched.
    mask
        For tokens: what a dropped one becomes; by default the padding.
    fill
        Value from 0 to 1 of what comes in from outside an image.
    interpolation
        For what moves pixels by parts of a pixel.
    """

    perturbation: Annotated[list[str], Parameter(consume_multiple=True, negative="")] = field(
        default_factory=lambda: ["mixup-intra"]
    )
    layer: str | None = None
    magnitudes: Annotated[Words, Parameter(allow_leading_hyphen=True)] = field(default_factory=list)
    examples: Annotated[int, Parameter(validator=Number(gte=2))] = 23_040
    signs: Literal["fold", "keep"] = "fold"
    padding: int | None = None
    mask: int | None = None
    fill: Annotated[float, Parameter(validator=Number(gte=0, lte=1))] = 0.0
    interpolation: Literal["bilinear", "nearest"] = "bilinear"

    def find(self, names: Sequence[str]) -> list[Any]:
        """Find perturbations by their names, or as the user's own functions."""
        from curvewise.nn.own_code import find_function
        from curvewise.response.networks.perturbations import find_perturbation

        how = {name: getattr(self, name) for name in ("fill", "interpolation", "padding", "mask")}
        try:
            found = [find_function("perturbation", name, Path()) if ":" in name else name for name in names]
            return [find_perturbation(one, **how) for one in found]
        except InputError as error:
            raise UsageError(in_options(error.message)) from error


@response.command
def measure(
    models: Models = [],
    /,
    *,
    reading: DataReading,
    perturbing: Perturbing = Perturbing(),
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],
    level: Level = 0.95,
    seed: AtLeast0 = 0,
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    network: NetworkReading = NetworkReading(),
    save: Path | None = None,
    sheet: Path | None = None,
    drawing: Drawing = Drawing(),
) -> int:
    """Measure how accuracy falls as examples are perturbed more and more, with Gi and Pal scores.

    Several models are measured on the same examples, perturbed in the same ways, and compared.

    Example: `curvewise response measure net.pt2 --data digits --perturbation rotation --plot r.png`

    Example: `curvewise response measure a.safetensors b.safetensors --factory cnn --data x.npz`

    Parameters
    ----------
    models
        Files of trained networks, or NAME=FILE.
    fail_if
        With two models: exit with status 3 if the first is shown to have a worse Gi-score than the
        second, a better one, or if nothing is shown. May be repeated.
    level
        Coverage of the intervals.
    seed
        Decides the examples, partners, noise and places.
    precision
        Of the arithmetic.
    save
        Write the curves into this .csv file.
    sheet
        Draw a few of the perturbed examples into this .png, .svg or .pdf file; of several
        perturbations into one each, such as sheet-rotation.png for sheet.png.
    """
    page = drawing.page()
    layer = read_layer(perturbing.layer)
    # Everything that can be refused is refused before networks are loaded and measured.
    check_file("--save", save, (".csv",))
    check_file("--sheet", sheet, PLOT_ENDINGS)
    if sheet is not None and layer is not None:
        raise UsageError("--sheet shows images, which --layer leaves as they are: drop one.")
    models, names = split_perturbations(models, perturbing.perturbation)
    named_files(models)
    magnitudes = read_magnitudes(perturbing.magnitudes)
    if fail_if and len(models) != 2:
        raise UsageError(f"--fail-if compares two models: {len(models)} given.")
    need_torch()
    from curvewise.response.networks.measurement import measure_responses
    from curvewise.response.networks.trial import Execution

    changes = perturbing.find(names)
    dataset, data = reading.load()
    if sheet is not None and not dataset.is_image:
        raise UsageError(f"--sheet shows images, and {dataset.name} has none.")
    loaded = network.load(models, data, layer)
    with quietly(), progress_share(", ".join(change.name for change in changes)) as progress:
        curves = measure_responses(
            {name: file.model for name, file in loaded.items()},
            data,
            changes,
            layer=layer,
            magnitudes=magnitudes,
            examples=perturbing.examples,
            signs=perturbing.signs,
            device=Execution(network.place, network.batch, precision),
            rng=seed,
            progress=progress,
        )
    status = show_responses(page, curves, level, fail_if)
    if save is not None:
        save_curves(save, curves, level)
    if sheet is not None:
        shown = magnitudes if isinstance(magnitudes, list) else []
        for change in changes:
            safe = re.sub(r"[^\w.-]+", "-", change.name)  # a function of the user's may be called anything
            named = sheet.with_stem(f"{sheet.stem}-{safe}")
            save_plot(sheet if len(changes) == 1 else named, partial(draw_sheet, dataset, data, change, shown, seed))
    save_plot(page.plot, lambda: draw_curves(curves, level))
    return page.close(status)


@options(READING)
class CorpusReading:
    """Options for reading a corpus.

    Parameters
    ----------
    gap
        Column with training accuracy minus test accuracy. By default one that is called so, or
        the difference of accuracies or errors.
    hyperparameter
        Column with something that was varied; may be repeated. By default told by names and
        values.
    task
        Column that says to which task a model belongs.
    train_accuracy
        Column of training accuracies.
    unit
        Of gaps, accuracies and errors; by default percent where a column's name says so, else
        fractions.
    predictions
        Folder with further measures in the competition's layout.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    gap: str | None = None
    hyperparameter: Texts = field(default_factory=list)
    task: str | None = None
    train_accuracy: str | None = None
    unit: Literal["fraction", "percent"] | None = None
    predictions: Path | None = None
    allow_large: Flag = False

    def load(self, source: str, signs: dict[str, int | None], shelf: bool) -> ModelCorpus:
        """Read the models; ``signs`` has the measures to judge, and their orientations."""
        from curvewise.reading.table import Table, large_files
        from curvewise.response.load import KNOWN_ORIENTATION, load_corpus, read_source

        with large_files(self.allow_large):
            data, _ = read_source(source)
        # The competition's layout says itself which measures there are; a table in JSON does not.
        laid_out = not isinstance(data, Table)
        usual = KNOWN_ORIENTATION if shelf else {}
        columns = {"gap": self.gap, "task": self.task, "train_accuracy": self.train_accuracy}
        corpus = load_corpus(
            source if laid_out else data,
            columns={role: name for role, name in columns.items() if name is not None},
            hyperparameters=self.hyperparameter or None,
            measures=None if laid_out else list(signs) or None,
            # A column with an orientation is a measure.
            orientation={} if laid_out else {k: usual[k] for k in usual if k in (signs or data.columns)},
            unit=self.unit,
            predictions=self.predictions,
            allow_large=self.allow_large,
        )
        if shelf and not usual.keys() & corpus.measures.keys():
            note(
                "--shelf: no column is called as a measure of curvewise response measures, "
                "so no direction is taken from there"
            )
        known = {**usual, **{name: sign for name, sign in signs.items() if sign is not None}}
        held = {name: sign for name, sign in known.items() if name in corpus.measures}
        corpus = replace(corpus, orientation={**corpus.orientation, **held})
        note_reading(corpus.notes)
        return corpus


@options()
class Judging:
    """Options for judging measures.

    Parameters
    ----------
    mode
        What the table shows beside the corrected conditional mutual information, and the order of
        measures follows: that, the competition's (pgdl, which the paper has), or a correlation.
    permutations
        Draws of the null.
    level
        Coverage of the intervals.
    seed
        Decides all draws.
    """

    mode: Mode = "corrected"
    permutations: AtLeast0 = 999
    level: Level = 0.95
    seed: AtLeast0 = 0

    @property
    def arguments(self) -> dict[str, Any]:
        """Arguments of :func:`judge_measures`."""
        return {"permutations": self.permutations, "level": self.level, "rng": self.seed}


@response.command
def judge(
    corpus: Annotated[str, Parameter(name="CORPUS")],
    /,
    *,
    measure: Texts = [],
    shelf: Flag = False,
    least_train_accuracy: Annotated[float | None, Parameter(validator=Number(gte=0, lte=1))] = None,
    judging: Judging = Judging(),
    reading: CorpusReading = CorpusReading(),
    scatter: Path | None = None,
    drawing: Drawing = Drawing(),
) -> int:
    """Judge which measures predict the generalisation gap, on a corpus of trained models.

    CORPUS is a table (CSV, TSV, JSON or Parquet) with a row for each model: hyperparameters, gap
    (or training and test accuracies) and measures; or a folder in the layout of the PGDL
    competition. For each measure: conditional mutual information with its interval and what
    chance gives, and correlations.

    Example: `curvewise response judge corpus.csv --measure gi:+ --measure pal:- --plot judged.png`

    Parameters
    ----------
    corpus
        The models.
    measure
        Only this one; may be repeated. With :+ if more of it should mean a larger gap, with :- if
        a smaller one; with neither it is as good in either direction.
    shelf
        Measures that are called as those of `curvewise response measures` have their direction.
    least_train_accuracy
        Leave out models with a lower training accuracy; the paper takes 0.8.
    scatter
        Draw the best measures against the gap into this .png, .svg or .pdf file.
    """
    page = drawing.page()
    check_file("--scatter", scatter, PLOT_ENDINGS)
    signs = read_measures(measure)
    with readable_file(corpus) as file:
        models = reading.load(file, signs, shelf)
    from curvewise.response.judgement import judge_measures

    with quietly():
        how = {"least_train_accuracy": least_train_accuracy, **judging.arguments}
        result = judge_measures(models, list(signs) or None, **how)
    show_judgement(page, result, judging.mode)

    def draw_scatter() -> Any:
        """Draw the best measures against the gap, a panel for each task."""
        from curvewise.response.plot.measures import plot_measures

        best = ordered(result, "cmi")[:SCATTERED]
        return plot_measures(models, best, judgement=result, least_train_accuracy=least_train_accuracy)

    save_plot(scatter, draw_scatter)
    save_plot(page.plot, result.plot)
    return page.close()


@response.command
def invariance(
    study: Annotated[Path, Parameter(name="STUDY")],
    /,
    *,
    perturbation: Texts = [],
    hyperparameter: Texts = [],
    magnitudes: Annotated[int, Parameter(validator=Number(gte=2))] = 11,
    examples: Annotated[int | None, Parameter(validator=Number(gte=2))] = None,
    least_train_accuracy: Annotated[float, Parameter(validator=Number(gte=0, lte=1))] = 0.8,
    judging: Judging = Judging(),
    device: str | None = None,
    workers: AtLeast0 = 0,
    trust: Flag = False,
    drawing: Drawing = Drawing(),
) -> int:
    """Judge which measure on training data predicts how well a study's networks tolerate a perturbation.

    STUDY is a study file whose networks were trained without and with a perturbation, evaluated
    over its range, and kept (checkpoints = "end"); see `curvewise study new --recipe response`.
    What is measured is kept beside the runs, and `curvewise study report` shows it.

    Example: `curvewise response invariance study.toml --perturbation rotation --plot judged.png`

    Parameters
    ----------
    study
        The study, run.
    perturbation
        Only this one; may be repeated. By default all that the study trains with and evaluates.
    hyperparameter
        A setting of the grid to hold fixed; may be repeated. By default all but the augmentation.
    magnitudes
        How many, over the range of the evaluation set, from its lowest to its highest.
    examples
        Training examples for the response curve; all by default.
    least_train_accuracy
        Leave out networks with a lower training accuracy; the paper takes 0.8.
    device
        Where to run the networks, such as cpu or cuda. By default a GPU if there is one.
    workers
        Processes that measure side by side; 0 works in this one.
    trust
        Import code that the study names.
    """
    page = drawing.page()
    need_torch()
    from curvewise.response.judgement import judge_measures
    from curvewise.study.response import keep_invariance, list_invariances, measure_invariance
    from curvewise.study.study import load_study
    from curvewise.types.results import interval_lists

    if not study.exists():
        raise UsageError(f"{study}: there is no such file.")
    loaded = load_study(study, trust=trust)
    chosen = list(perturbation) or list_invariances(loaded)
    if not chosen:
        raise UsageError(
            f"{study} trains with no perturbation that it evaluates over a range: add one as an augmentation, and "
            "[evaluate.NAME] with perturbation and magnitude = [low, high]."
        )
    if page.plot is not None and len(chosen) > 1:
        raise UsageError(f"--plot draws one judgement, and there are {len(chosen)}: say which --perturbation.")
    how: dict[str, Any] = {"magnitudes": magnitudes, "examples": examples, "rng": judging.seed}
    where: dict[str, Any] = {"device": device, "workers": workers}
    judged = {}
    for name in chosen:
        with quietly():
            corpus = measure_invariance(loaded, name, hyperparameters=list(hyperparameter) or None, **where, **how)
            keep_invariance(loaded, name, corpus, **how)
            judged[name] = judge_measures(corpus, least_train_accuracy=least_train_accuracy, **judging.arguments)
        for text in corpus.notes:
            note(f"{name}: {text}")
    if len(judged) == 1:
        show_judgement(page, judged[chosen[0]], judging.mode)
    else:
        rows = [(name, row) for name, found in judged.items() for row in found.rows]
        ends = interval_lists("CMI", (row.cmi for _, row in rows))
        columns: dict[str, list[Any]] = {
            "perturbation": [name for name, _ in rows],
            "measure": [row.measure for _, row in rows],
            "models": [row.n for _, row in rows],
            **{name: _shown("cmi", values, 1) for name, values in ends.items()},
            "p": [pvalue_text(row.pvalue) for _, row in rows],
        }
        if judging.mode != "corrected":
            value = VALUES[judging.mode][0]
            columns[value] = _shown(value, (row.value(value) for _, row in rows))
        page.table(f"Measures on training data (CMI × 100, {format_level(judging.level)} intervals)", columns)
        warn_each([prefix(f"{name}: ", text) for name, found in judged.items() for text in found.all_warnings])
        page.document = {"type": "Invariance", "judgements": {k: found.to_dict() for k, found in judged.items()}}
    save_plot(page.plot, judged[chosen[0]].plot)
    return page.close()


@response.command
def measures(
    models: Models = [],
    /,
    *,
    reading: DataReading | None = None,
    measure: Texts = [],
    layer: str = "1",
    examples: Annotated[int, Parameter(validator=Number(gte=2))] = 5000,
    initial: str | None = None,
    twin: str | None = None,
    seed: AtLeast0 = 0,
    network: NetworkReading = NetworkReading(),
    showing: Showing = Showing(),
) -> int:
    """List the measures that may predict how well a network generalises, or compute them.

    Norms, margins, sharpness, flatness, representations and response scores, each with the
    expected sign of its correlation with the gap between training and test accuracy.

    Example: `curvewise response measures net.safetensors --factory cnn --data digits`

    Parameters
    ----------
    models
        Files of trained networks, or NAME=FILE; without any, the measures are listed.
    measure
        Only this one; may be repeated. By default all that can be computed.
    layer
        Where representations are taken: the number of an activation, from 1 on, or a submodule's name.
    examples
        How many to take at random, at most.
    initial
        File with the weights before training, for distances from them.
    twin
        File of the same network trained with another seed, for disagreement.
    seed
        Decides the examples and all noise.
    """
    page = showing.page()
    need_torch()
    if not models:
        if reading is not None or measure or initial or twin:
            raise UsageError("MODEL is missing: give the files of the networks to measure.")
        show_shelf(page)
        return page.close()
    if reading is None:
        raise UsageError("--data is missing: give examples that the networks were trained on.")
    from curvewise.response.networks.measures import measure_model
    from curvewise.response.networks.trial import Execution

    _, data = reading.load()
    where = read_layer(layer) or 1
    loaded = network.load(models, data, where)
    # Exported programs and ONNX files show no modules.
    closed = next((f for f in loaded.values() if not f.kind.startswith("weights")), None)
    if closed is not None:
        why = "measures look at every layer: give weights (.safetensors) with --factory."
        raise UsageError(f"{closed.path} is an {closed.kind}, and {why}")
    how: dict[str, Any] = {"device": Execution(network.place, network.batch), "examples": examples, "rng": seed}
    for key, file in (("initial", initial), ("twin", twin)):
        if file is not None:
            how[key] = next(iter(network.load([file], data, where).values())).model
    results = {}
    for name, model in loaded.items():
        with quietly(), progress_share(name) as progress:
            chosen: Any = list(measure) or None
            found = measure_model(model.model, data, chosen, layer=where, progress=progress, **how)  # type: ignore[arg-type]
        results[name] = replace(found, model=name)
    show_measures(page, results)
    return page.close()


@response.command
def perturbations(*, showing: Showing = Showing()) -> int:
    """List the perturbations, what they change, and the magnitudes they take.

    Example: `curvewise response perturbations`
    """
    page = showing.page()
    need_torch()
    from curvewise.response.networks.perturbations import PERTURBATIONS

    found = list(PERTURBATIONS.values())
    page.document = {
        "type": "Perturbations",
        "perturbations": [{key: getattr(p, key) for key in SHOWN_OF_A_PERTURBATION} for p in found],
    }
    columns = {
        "perturbation": [p.name for p in found],
        "of": ["colour images" if p.coloured else p.of for p in found],
        "magnitudes in": [p.unit for p in found],
        "from": [f"{p.low:g}" for p in found],
        "to": [f"{p.high:g}" for p in found],
        "by default": [
            f"±{high:g}" if low == -high else f"{low:g} … {'<' if p.pairs == 'inter' else ''}{high:g}"
            for p in found
            for low, high in [p.usual]
        ],
    }
    page.table("Perturbations", columns)
    return page.close()


# Networks and examples in: what the commands of ``curvewise response`` share.


def _numbers(values: Sequence[float]) -> str:
    shown = ",".join(f"{value:.4g}" for value in values[:6])
    return shown + (",…" if len(values) > 6 else "")


def _statistics(x: NDArray[Any]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Mean and standard deviation of each feature, or of each channel from 0 to 1; 1 where nothing varies."""
    import numpy as np

    from curvewise.study.data.dataset import level_counts, level_statistics

    if x.ndim > 2:
        return level_statistics(level_counts(x, np.arange(len(x))))
    values = x.astype(np.float64)
    mean, std = values.mean(axis=0), values.std(axis=0)
    return tuple(mean.tolist()), tuple(np.where(std > 0, std, 1.0).tolist())


@contextmanager
def progress_share(text: str) -> Iterator[Any]:
    """Show a bar on stderr; yield a function that is called with the share done."""
    from curvewise.progress import progress_bar

    done = 0.0
    with progress_bar(text, 1.0) as advance:

        def tell(share: float) -> None:
            nonlocal done
            advance(share - done)
            done = share

        yield tell


def split_perturbations(models: Sequence[str], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return models and perturbations; files of models may follow `--perturbation rotation`.

    >>> split_perturbations([], ["rotation", "noise", "net.pt2"])
    (['net.pt2'], ['rotation', 'noise'])
    """
    names = [part for word in words for part in ([word] if ":" in word else word.split(",")) if part]
    files = [name for name in names if ":" not in name and (Path(name).suffix or Path(name).is_file())]
    changes = list(dict.fromkeys(name for name in names if name not in files))
    if not models and not files:
        raise UsageError("MODEL is missing: give the file of a trained network.")
    return [*models, *files], changes or ["mixup-intra"]


def read_magnitudes(words: Sequence[str]) -> list[float] | str | None:
    """Read numbers, or the word that stands for the range of the paper; None for none.

    >>> read_magnitudes(["-10", "10"]), read_magnitudes(["paper"]), read_magnitudes([])
    ([-10.0, 10.0], 'paper', None)
    """
    if list(words) == ["paper"]:
        return "paper"
    try:
        return [float(word) for word in words] or None
    except ValueError:
        raise UsageError(f"--magnitudes {','.join(words)}: give numbers, or paper for its range.") from None


def draw_curves(curves: Mapping[str, Mapping[str, ResponseCurve]], level: float) -> Any:
    """Draw one curve with its cumulative accuracy, or several with a panel for each perturbation."""
    from curvewise.response.plot.curves import plot_response, plot_responses

    found = [curve for by_model in curves.values() for curve in by_model.values()]
    return plot_response(found[0], level=level) if len(found) == 1 else plot_responses(found, level=level)


def draw_sheet(dataset: Dataset, data: Examples, change: Any, magnitudes: Sequence[float], seed: int) -> Any:
    """Draw a few examples at magnitudes of the usual range, or at some of those given."""
    import numpy as np

    from curvewise.response.plot.sheet import plot_perturbed

    places = np.linspace(0, len(magnitudes) - 1, min(len(magnitudes), SHEET_COLUMNS))
    shown = np.sort(np.array(magnitudes))[places.round().astype(int)] if magnitudes else None
    return plot_perturbed(data, change, shown, classes=dataset.classes, rng=seed)


def show_responses(
    page: Page, curves: Mapping[str, Mapping[str, ResponseCurve]], level: float, gates: Sequence[str]
) -> int:
    """Print the curves for one perturbation after another; return the exit status that the gates ask for."""
    documents, statuses = {}, []
    for name, by_model in curves.items():
        statuses.append(show_response(page, by_model, level, gates))
        documents[name] = page.document
    if len(documents) > 1:
        page.document = {"type": "Responses", "perturbations": documents}
    return max(statuses)


def show_response(page: Page, curves: Mapping[str, ResponseCurve], level: float, gates: Sequence[str]) -> int:
    """Print one curve, or several and how they compare; return the exit status that the gates ask for."""
    if len(curves) == 1:
        show_curve(page, next(iter(curves.values())), level)
        return DONE
    show_curves(page, curves, level)
    from curvewise.response.comparison import compare_responses

    with quietly():
        found = [compare_responses(a, b, level=level) for a, b in combinations(curves.values(), 2)]
    page.document["comparisons"] = [result.to_dict() for result in found]
    show_pairs(page, found, level)
    if len(found) == 1:
        page.say(found[0].sentences(), style="bold")
    warn_each([prefix(f"{c.a}, {c.b}: ", w) for c in found for w in c.all_warnings])
    verdict = VERDICTS.get(found[0].verdict, "undecided")
    return gate_status(gates, [verdict], f" for {next(iter(curves.values())).perturbation}")


def read_measures(words: Sequence[str]) -> dict[str, int | None]:
    """Read measures by name, with 1 or -1 where the direction is given.

    >>> read_measures(["gi:+", "pal:-", "norm"])
    {'gi': 1, 'pal': -1, 'norm': None}
    """
    signs = {":+": 1, ":-": -1}
    return {w.removesuffix(w[-2:]) if w[-2:] in signs else w: signs.get(w[-2:]) for w in words}


def show_judgement(page: Page, result: MeasureJudgement, mode: str) -> None:
    """Print how well each measure predicts the gap."""
    value, words = VALUES[mode]
    page.document = result.to_dict()
    if page.markup is not None and not page.as_json:
        sys.stdout.write(result.table(page.markup, value=value) + "\n")
    elif len(result.tasks) > 1:
        counts = ", ".join(f"{task} {result.counts[task]}" for task in result.tasks)
        names = ordered(result, value)
        columns: dict[str, list[Any]] = {"measure": names}
        for task in result.shown_tasks:
            columns[task] = _shown(value, (result.row(name, task).value(value) for name in names))
        page.table(f"{words}, by task (models: {counts})", columns)
    if page.markup is None:
        whole = "on average over the tasks" if len(result.tasks) > 1 else "of " + result.tasks[0]
        title = f"Measures {whole}, {format_count(result.models, 'model')}"
        title += f" (CMI × 100, {format_level(result.level)} intervals)"
        page.table(title, _details(result, value))
        if any(row.directed for row in result.rows):
            page.say("Correlations are in the direction that a measure is held to.")
        if not all(row.directed for row in result.rows):
            page.say("± is judged in either direction: --measure NAME:+ or NAME:- says which.")
    page.say(result.sentences())
    warn_each(result.all_warnings)


def ordered(result: MeasureJudgement, value: str) -> list[str]:
    """Sort the names of the measures, the best first."""
    scores = {name: result.row(name).strength(value) for name in result.measures}
    # No score is above 1, so that 2 puts measures without one last.
    return sorted(scores, key=lambda name: -scores[name] if scores[name] == scores[name] else 2.0)


def _details(result: MeasureJudgement, value: str) -> dict[str, list[Any]]:
    rows = [result.row(name) for name in ordered(result, value)]
    other = "kendall" if value in ("cmi", "pearson") else value  # as many as a terminal has room for
    return {
        "measure": [r.measure if r.directed else f"{r.measure} ±" for r in rows],
        "CMI": [interval_cell([100 * v for v in r.cmi]) for r in rows],
        "null": _shown("cmi", (r.null_mean for r in rows), 1),
        "p": [pvalue_text(r.pvalue) for r in rows],
        other: _shown(other, (r.value(other) for r in rows)),
        "pearson": _shown("pearson", (r.pearson for r in rows)),
    }


def _shown(value: str, scores: Iterable[float], digits: int = 2) -> list[str]:
    """Write information times 100, as the competition does; correlations as they are."""
    factor = 100 if value in ("cmi", "pgdl") else 1
    return [f"{factor * score:.{digits}f}" if score == score else "–" for score in scores]


def show_curve(page: Page, curve: ResponseCurve, level: float) -> None:
    """Print one curve and its scores."""
    page.document = curve.to_dict(level)
    page.table(curve.table_note(level), readable_columns(curve.columns(level), "fraction"))
    scores = curve.scores(level)
    if page.verbose or page.markup:
        rows = {"score": [SCORES[key] for key in scores], "estimate": _cells(scores.items())}
        page.table(f"Scores ({format_level(level)} intervals)", rows)
    page.say(curve.sentences(level))
    warn_each(curve.all_warnings)


def show_curves(page: Page, curves: Mapping[str, ResponseCurve], level: float) -> None:
    """Print the scores of several models, the lowest Gi first."""
    page.document = {"type": "Responses", "curves": {name: curve.to_dict(level) for name, curve in curves.items()}}
    order = sorted(curves, key=lambda name: curves[name].gi)
    scores = {name: curves[name].scores(level) for name in order}
    columns: dict[str, list[Any]] = {
        "model": order,
        "clean": [f"{curves[name].clean_accuracy:.2%}" for name in order],
        "mean": [f"{curves[name].mean_accuracy:.2%}" for name in order],
        "Gi": [interval_cell(scores[name]["gi"], bold=name == order[0]) for name in order],
        "Pal": [interval_cell(scores[name]["pal"]) for name in order],
    }
    first = next(iter(curves.values()))
    title = f"Response to {first.perturbation} at {first.where}"
    title += f" ({format_level(level)} intervals; a low Gi and a high Pal are good)"
    page.table(title, columns)
    warn_each([prefix(f"{name}: ", w) for name, c in curves.items() for w in c.all_warnings])


def show_pairs(page: Page, found: Sequence[ResponseComparison], level: float) -> None:
    """Print how two models differ, or of several the clearest differences of the Gi-score."""
    how = "on the same perturbed examples" if all(c.paired for c in found) else "unpaired"
    if len(found) == 1:
        rows = [(SCORES[key], found[0], key) for key in found[0].differences]
        head, title = "score", f"{found[0].a} minus {found[0].b}, {how}"
    else:
        order = sorted(found, key=lambda c: c.pvalues["gi"])[:MOST_PAIRS]
        rows = [(f"{c.a} − {c.b}", c, "gi") for c in order]
        head, title = "Gi", f"The {len(order)} clearest of {len(found)} differences of Gi, {how}"
    columns = {
        head: [word for word, _, _ in rows],
        "difference": _cells([(key, c.differences[key]) for _, c, key in rows]),
        "p": [pvalue_text(c.pvalues[key]) for _, c, key in rows],
    }
    page.table(f"{title} ({format_level(level)} intervals)", columns)


def save_curves(path: Path, curves: Mapping[str, Mapping[str, ResponseCurve]], level: float) -> None:
    """Write a row for each perturbation, model and magnitude."""
    every = [(name, curve) for by_model in curves.values() for name, curve in by_model.items()]
    rows: list[list[Any]] = [["model", "perturbation", "layer", *every[0][1].columns()]]
    for name, curve in every:
        table = (column.tolist() for column in curve.columns(level).values())
        rows += [[name, curve.perturbation, curve.layer, *row] for row in zip(*table, strict=True)]
    write_csv(path, rows, "curves")


def show_measures(page: Page, found: Mapping[str, ModelMeasures]) -> None:
    """Print the measures of networks."""
    page.document = {"type": "Measures", "models": {name: result.to_dict() for name, result in found.items()}}
    for result in found.values():
        page.say(result.sentences(), close=True)
    names = list(dict.fromkeys(key for result in found.values() for key in result.values))
    signs = {key: sign for result in found.values() for key, sign in result.orientation.items()}
    columns: dict[str, list[Any]] = {"measure": names}
    for model, result in found.items():
        values = [result.values.get(key, float("nan")) for key in names]
        columns[model] = ["–" if v != v else format_number(v) for v in values]
    columns["larger gap if"] = [_higher(signs[key]) for key in names]
    page.table("Measures", columns)
    warn_each([prefix(f"{name}: ", w) for name, result in found.items() for w in result.all_warnings])


def show_shelf(page: Page) -> None:
    """List the measures."""
    from curvewise.response.networks.measures import DESCRIPTION, MEASURES

    shelf = list(MEASURES.values())
    page.document = {"type": "Shelf", "measures": [{k: getattr(m, k) for k in DESCRIPTION} for m in shelf]}
    columns = {
        "measure": [m.name for m in shelf],
        "larger gap if": [_higher(m.orientation) for m in shelf],
        "needs": [", ".join(m.needs) or "–" for m in shelf],
        "cost": [m.cost for m in shelf],
        "what it is": [m.about for m in shelf],
    }
    # A terminal has no room for costs and papers; --table and --json have all of it.
    if page.markup is None:
        del columns["cost"]
        columns["what it is"] = [m.about.partition(" (")[0].rstrip(".") for m in shelf]
    page.table("Measures of a network that may go with its generalisation gap", columns)


def _higher(orientation: int) -> str:
    return "higher" if orientation > 0 else "lower"


def _cells(intervals: Iterable[tuple[str, Interval]]) -> list[Any]:
    """Return estimates with their intervals, accuracies as percentages."""
    return [interval_cell(interval, "fraction" if "accuracy" in score else "") for score, interval in intervals]


def read_layer(text: str | None) -> str | int | None:
    """Read a layer: its name, or the number of an activation; some names are numbers.

    >>> read_layer("1"), read_layer("layer1.0"), read_layer("name:1"), read_layer(None)
    (1, 'layer1.0', '1', None)
    """
    if text is None or text in ("", "input"):
        return None
    if text.startswith("name:"):
        return text.removeprefix("name:")
    return int(text) if text.isdecimal() else text
