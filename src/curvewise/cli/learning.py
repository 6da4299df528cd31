"""``curvewise learning``: fit, compare, plan, rank, validate."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from cyclopts import App, Parameter
from cyclopts.validators import Number

from curvewise.cli._answers import ask_curves, check_reach, show_curves, show_validation
from curvewise.cli._console import (
    GATE,
    UsageError,
    digits_of,
    sentences,
    shown_as,
    warn,
    warn_each,
)
from curvewise.cli._files import choose, fit_files, keep_learners, read_files, save_plot
from curvewise.cli._options import (
    FITTING,
    SHOWING,
    CurveDrawing,
    Drawing,
    Files,
    Fitting,
    Form,
    Reading,
    Showing,
    Sizes,
    given,
)
from curvewise.tables import whole

learning = App(
    name="learning",
    help="How does error fall with data? Fit, compare, rank and plan learning curves.\n\n"
    "FILE is a CSV, TSV, JSON or Parquet table with a column for the training size, one for the "
    "error (or accuracy, loss, score) and one for the learner, one row per run. `-` reads CSV "
    "from stdin.",
)

Gate = Literal["worse", "better", "undecided"]


@learning.command
def fit(
    files: Files,
    /,
    *,
    predict: Annotated[Sizes, Parameter(group=SHOWING)] = [],  # noqa: B006
    reach: Annotated[float | None, Parameter(group=SHOWING)] = None,
    cost_per_sample: Annotated[float | None, Parameter(group=SHOWING)] = None,
    interval: Annotated[
        Literal["confidence", "prediction", "conditional"] | None, Parameter(group=FITTING)
    ] = None,
    learner: Annotated[list[str], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    reading: Reading | None = None,
    fitting: Fitting | None = None,
    drawing: CurveDrawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Fit a learning curve to each learner.

    Shows the error e_N, the data-reliance β_N (how much the error would rise with a quarter of
    the data) and the exponent γ, with intervals.

    Example: `curvewise learning fit errors.csv --predict 3000,6000 --plot curves.png`

    Parameters
    ----------
    files
        Tables of measurements.
    predict
        Training sizes at which to predict, such as 800,1600.
    reach
        How many samples does it take to reach this error? An error in the unit of the file, also
        if the file has accuracies: in percent, 5 for an accuracy of 95 percent.
    cost_per_sample
        Price of a sample: shows what more data would cost and bring, at the sizes of --predict,
        or at 2 and 4 times the data.
    interval
        Of the curve itself, of what a new run would measure, or the paper's (too narrow).
    learner
        Only the learner of this name; may be repeated. By default all.
    """
    reading, fitting, showing = given(reading, fitting, showing)
    drawing = drawing or CurveDrawing()
    page = showing.page()
    measurements = keep_learners(read_files(files, reading), learner)
    check_reach(reach, measurements)
    curves = fit_files(measurements, fitting, files)
    page.document = {**curves.to_dict(), "notes": measurements.notes}
    show_curves(page, curves, fitting, interval)
    ask_curves(page, curves, fitting.level, interval, predict, reach, cost_per_sample)

    def draw() -> Any:
        from curvewise.plot import plot_learning_curves

        return plot_learning_curves(
            curves,
            at=fitting.at,
            interval=interval,
            level=fitting.level,
            reach=reach,
            **drawing.options,
        )

    save_plot(drawing.plot, draw)
    return page.close()


@learning.command
def compare(
    files: Files,
    /,
    *,
    a: str | None = None,
    b: str | None = None,
    fail_if: Annotated[list[Gate], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    reading: Reading | None = None,
    fitting: Fitting | None = None,
    drawing: CurveDrawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Tell whether learner a is better than learner b, and how much data that is worth.

    Give one file with both learners, or two files with one each. With exactly two learners, a is
    the first and b the second unless named.

    Example: `curvewise learning compare errors.csv --a new --b old --fail-if worse`

    Parameters
    ----------
    files
        One table, or two.
    a
        Name of the learner to judge, as in the file, or of its file if there are two.
    b
        Name of the learner to judge it against.
    fail_if
        Exit with status 3 if a is significantly worse than b, significantly better, or if it
        cannot be told. May be repeated.
    """
    reading, fitting, showing = given(reading, fitting, showing)
    drawing = drawing or CurveDrawing()
    page = showing.page()
    measurements = read_files(files, reading, same_name="separate")
    names = measurements.learners
    if a is None and b is None and len(names) == 2:
        a, b = names
    one, two = choose("--a", a, names), choose("--b", b, names)
    if one == two:
        raise UsageError(f"Both are {one!r}: a comparison needs two learners, or two files.")
    curves = fit_files(measurements, fitting, files)

    from curvewise.learning import compare_learning_curves

    result = compare_learning_curves(curves[one], curves[two], at=fitting.at, level=fitting.level)
    page.document = result.to_dict()
    page.say(sentences(result), style="bold")
    rows = dict(result.columns())
    rows["quantity"] = [str(q).replace("beta_N", "β_N") for q in rows["quantity"]]
    title = f"{result.a} minus {result.b} ({result.level:.0%} intervals)"
    page.table(title, rows, None)
    warn_each(result.warnings)
    save_plot(drawing.plot, lambda: result.plot(**drawing.options))
    met = {"a better": "better", "b better": "worse"}.get(result.verdict, "undecided")
    if met in fail_if:
        warn(f"--fail-if {met} holds at n = {whole(result.at):,}: exit status {GATE}.")
    return page.close(GATE if met in fail_if else 0)


@learning.command
def plan(
    files: Files,
    /,
    *,
    learner: str | None = None,
    factor: Annotated[float, Parameter(validator=Number(gt=0, lt=1))] = 0.5,
    sizes: Sizes = [],  # noqa: B006
    reading: Reading | None = None,
    fitting: Fitting | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Say which sizes to train next, and how often.

    Chooses the runs that narrow the interval of the error at N with the fewest training samples.

    Example: `curvewise learning plan errors.csv --learner resnet --at 5000 --factor 0.5`

    Parameters
    ----------
    files
        Tables of measurements.
    learner
        Whose curve; not needed if there is only one.
    factor
        Wanted width of the interval, relative to the present one.
    sizes
        Sizes that could be trained, such as 1000,2000,4000; by default those measured.
    """
    reading, fitting, showing = given(reading, fitting, showing)
    page = showing.page()
    measurements = read_files(files, reading)
    curve = fit_files(measurements, fitting, files)[
        choose("--learner", learner, measurements.learners)
    ]

    from curvewise.learning import plan_sizes

    result = plan_sizes(
        curve,  # type: ignore[arg-type]  # refuses other forms in words
        at=fitting.at,
        factor=factor,
        sizes=sizes or None,
        level=fitting.level,
    )
    page.document = result.to_dict()
    page.say(sentences(result))
    columns = {k: [whole(v) for v in c] for k, c in result.columns().items()}
    page.table(f"Runs to add for {result.learner}", columns, digits_of(result.unit))
    warn_each([*curve.warnings, *result.warnings])
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


@learning.command
def rank(
    files: Files,
    /,
    *,
    reading: Reading | None = None,
    fitting: Fitting | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Choose the learner that will be best at N samples, with the chance that it is.

    Beyond the sizes measured choose --form auto, which predicts better there.

    Example: `curvewise learning rank errors.csv --at 10000 --form auto`

    Parameters
    ----------
    files
        Tables of measurements.
    """
    reading, fitting, showing = given(reading, fitting, showing)
    page = showing.page()
    curves = fit_files(read_files(files, reading), fitting, files)

    from curvewise.learning import rank_learners

    result = rank_learners(curves, at=fitting.at, level=fitting.level)
    page.document = result.to_dict()
    page.say(sentences(result))
    columns = dict(result.columns())
    columns["chance best"] = [shown_as(p, ".0%") for p in columns.pop("probability_best")]
    what = f"{result.level:.0%} {result.kind} intervals, form {fitting.form}"
    page.table(f"Predicted at n = {whole(result.at):,} ({what})", columns, digits_of(result.unit))
    warn_each(result.warnings)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()


@learning.command
def validate(
    files: Files,
    /,
    *,
    form: Annotated[list[Form], Parameter(negative="", show_default=False)] = [],  # noqa: B006
    reading: Reading | None = None,
    drawing: Drawing | None = None,
    showing: Showing | None = None,
) -> int:
    """Test how well the forms predict a size they have not seen.

    Leaves out each size in turn, fits the others and compares the prediction with what was
    measured; the last row carries the nearest size over.

    Example: `curvewise learning validate errors.csv`

    Parameters
    ----------
    files
        Tables of measurements; all learners must share the sizes.
    form
        Forms to try; repeat for several. By default those of the paper's table.
    """
    reading, _, showing = given(reading, None, showing)
    page = showing.page()
    result = show_validation(page, read_files(files, reading), form)
    save_plot(drawing.plot if drawing else None, result.plot)
    return page.close()
