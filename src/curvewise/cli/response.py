"""``curvewise response``: measure, judge, measures, perturbations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._console import GATE, UsageError
from curvewise.cli._files import quietly, save_plot
from curvewise.cli._options import Drawing, Numbers, Showing, Texts
from curvewise.cli._predictions import Level
from curvewise.cli._response_inputs import DataReading, NetworkReading
from curvewise.cli._response_judged import (
    CorpusReading,
    draw_judgement,
    draw_scatter,
    read_measures,
    show_judgement,
)
from curvewise.cli._response_measured import (
    compute_measures,
    draw_curves,
    draw_sheet,
    find_change,
    measure_all,
    show_responses,
)
from curvewise.cli._response_options import (
    check_outputs,
    check_picture,
    need_torch,
    read_layer,
    worded,
)
from curvewise.cli._response_shown import (
    save_curves,
    show_measures,
    show_perturbations,
    show_shelf,
)

response = App(
    name="response",
    help="How does a network respond to perturbed examples, and will it generalise?\n\n"
    "MODEL is a file of torch.export.save (.pt2), TorchScript, ONNX, or weights (.safetensors, or "
    "a state_dict of torch.save) with --factory. Pickled modules are refused.",
)

Gate = Literal["worse", "better", "undecided"]
Models = Annotated[list[str], Parameter(name="MODEL...", negative="")]
OptionalModels = Annotated[list[str], Parameter(name="MODEL...", negative="", show_default=False)]
Seed = Annotated[int, Parameter(validator=Number(gte=0))]


@response.command
def measure(
    models: Models,
    /,
    *,
    reading: DataReading,
    perturbation: str = "mixup-intra",
    layer: str | None = None,
    magnitudes: Annotated[Numbers, Parameter(allow_leading_hyphen=True)] = [],  # noqa: B006
    examples: Annotated[int, Parameter(validator=Number(gte=2))] = 23_040,
    signs: Literal["fold", "keep"] = "fold",
    padding: int | None = None,
    mask: int | None = None,
    fill: Annotated[float, Parameter(validator=Number(gte=0, lte=1))] = 0.0,
    interpolation: Literal["bilinear", "nearest"] = "bilinear",
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    level: Level = 0.95,
    seed: Seed = 0,
    precision: Literal["float32", "bfloat16", "float16"] = "float32",
    network: NetworkReading | None = None,
    save: Path | None = None,
    sheet: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Measure how accuracy falls as examples are perturbed more and more, with Gi and Pal scores.

    Several models are measured on the same examples, perturbed in the same ways, and compared.

    Example: `curvewise response measure net.pt2 --data digits --perturbation rotation --plot r.png`

    Example: `curvewise response measure a.safetensors b.safetensors --factory cnn --data x.npz`

    Parameters
    ----------
    models
        Files of trained networks.
    perturbation
        What is done to the examples; see `curvewise response perturbations`. module:function for
        one of your own, called with a batch, a magnitude and a random generator.
    layer
        Perturb what this submodule gives instead of the input: its name, or a number for the
        so-many-th activation (name:1 for a submodule that is called 1).
    magnitudes
        How strongly, such as 0,0.1,0.2; by default ten or eleven over the usual range.
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
        Draw a few of the perturbed examples into this .png, .svg or .pdf file.
    """
    page = (showing or Showing()).page()
    check_outputs(save, sheet, layer)
    if fail_if and len(models) != 2:
        raise UsageError(f"--fail-if compares two models: {len(models)} given.")
    if twice := [file for file in models if models.count(file) > 1]:
        raise UsageError(f"{twice[0]} is given twice: give each model once.")
    need_torch()
    change = find_change(perturbation)
    dataset, data = reading.load()
    if sheet is not None and not dataset.is_image:
        raise UsageError(f"--sheet shows images, and {dataset.name} has none.")
    where = read_layer(layer)
    networks = network or NetworkReading()
    loaded = networks.load(models, data, where)
    curves = measure_all(
        loaded,
        data,
        change,
        layer=where,
        magnitudes=list(magnitudes) or None,
        examples=examples,
        batch=networks.batch,
        device=networks.place,
        precision=precision,
        fill=fill,
        padding=padding,
        mask=mask,
        interpolation=interpolation,
        signs=signs,
        rng=seed,
    )
    met = show_responses(page, curves, level, fail_if)
    if save is not None:
        save_curves(save, curves)
    if sheet is not None:
        look = {"fill": fill, "interpolation": interpolation, "rng": seed}
        save_plot(sheet, lambda: draw_sheet(dataset, data, change, magnitudes, **look))
    save_plot(drawing.plot if drawing else None, lambda: draw_curves(curves, level))
    return page.close(GATE if met else 0)


@response.command
def judge(
    corpus: Annotated[str, Parameter(name="CORPUS")],
    /,
    *,
    measure: Texts = [],  # noqa: B006
    shelf: Annotated[bool, Parameter(negative="", show_default=False)] = False,
    least_train_accuracy: Annotated[float | None, Parameter(validator=Number(gte=0, lte=1))] = None,
    mode: Literal[
        "corrected", "pgdl", "kendall", "granulated", "pearson", "spearman"
    ] = "corrected",
    permutations: Annotated[int, Parameter(validator=Number(gte=0))] = 999,
    level: Level = 0.95,
    seed: Seed = 0,
    reading: CorpusReading | None = None,
    scatter: Path | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Judge which measures tell the generalisation gap, on a corpus of trained models.

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
    mode
        What the table of tasks shows and the order of measures follows: the corrected conditional
        mutual information, the competition's, or a correlation.
    permutations
        Draws of the null.
    level
        Coverage of the intervals.
    seed
        Decides the draws.
    scatter
        Draw the best measures against the gap into this .png, .svg or .pdf file.
    """
    page = (showing or Showing()).page()
    check_picture("--scatter", scatter)
    signs = read_measures(measure)
    models = (reading or CorpusReading()).load(corpus, signs, shelf)
    from curvewise.response import judge_measures

    with quietly(), worded():
        result = judge_measures(
            models,
            list(signs) or None,
            least_train_accuracy=least_train_accuracy,
            permutations=permutations,
            level=level,
            rng=seed,
        )
    show_judgement(page, result, mode)
    save_plot(scatter, lambda: draw_scatter(models, result, least_train_accuracy))
    save_plot(drawing.plot if drawing else None, lambda: draw_judgement(result))
    return page.close()


@response.command
def measures(
    models: OptionalModels = [],  # noqa: B006
    /,
    *,
    reading: DataReading | None = None,
    measure: Texts = [],  # noqa: B006
    layer: str = "1",
    examples: Annotated[int, Parameter(validator=Number(gte=2))] = 5000,
    initial: str | None = None,
    twin: str | None = None,
    seed: Seed = 0,
    network: NetworkReading | None = None,
    showing: Showing | None = None,
) -> int:
    """List the measures that may tell how well a network generalises, or compute them.

    Norms, margins, sharpness, flatness, representations and response scores, each with the
    direction in which it should go with the gap between training and test accuracy.

    Example: `curvewise response measures net.safetensors --factory cnn --data digits`

    Parameters
    ----------
    models
        Files of trained networks; without any, the measures are listed.
    measure
        Only this one; may be repeated. By default all that can be computed.
    layer
        Where representations are taken: the so-many-th activation, or a submodule's name.
    examples
        How many to take at random, at most.
    initial
        File with the weights before training, for distances from them.
    twin
        File of the same network trained with another seed, for disagreement.
    seed
        Decides the examples and all noise.
    """
    page = (showing or Showing()).page()
    need_torch()
    if not models:
        if reading is not None or measure or initial or twin:
            raise UsageError("MODEL is missing: give the files of the networks to measure.")
        show_shelf(page)
        return page.close()
    if reading is None:
        raise UsageError("--data is missing: give examples that the networks were trained on.")
    _, data = reading.load()
    found = compute_measures(
        models,
        data,
        network or NetworkReading(),
        measures=list(measure) or None,
        layer=read_layer(layer) or 1,
        examples=examples,
        beside={"initial": initial, "twin": twin},
        seed=seed,
    )
    show_measures(page, found)
    return page.close()


@response.command
def perturbations(*, showing: Showing | None = None) -> int:
    """List the perturbations, what they change, and the magnitudes they take.

    Example: `curvewise response perturbations`
    """
    page = (showing or Showing()).page()
    need_torch()
    show_perturbations(page)
    return page.close()
