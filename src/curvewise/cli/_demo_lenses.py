"""What the demo asks of the trained networks: one function for each lens."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from curvewise.cli._answers import show_curves
from curvewise.cli._demo_study import A, B, turned_text
from curvewise.cli._demo_told import Told, ask, curves_section
from curvewise.cli._demo_words import (
    about_transfer,
    said_checkpoints,
    said_crossing,
    said_ranking,
    said_reach,
    said_real,
    said_response,
    said_spread,
    said_transfer,
    worth_said,
)
from curvewise.cli._files import fit_files, quietly
from curvewise.cli._options import Fitting

if TYPE_CHECKING:
    from curvewise.learning import LearningCurves
    from curvewise.study import Study
    from curvewise.types import Measurements, Predictions

TARGET = 0.05
MOVED, BY = "shift-x", [-0.25, -0.125, 0, 0.125, 0.25]
TURNED, EXAMPLES = ("nleep", "logme", "knn"), 800
TURNED_STUDY = "turned.toml"
LEGEND = (
    "e_N: error after training on N digits. β_N: how much it would rise with a quarter of them. "
    "γ: how fast it falls."
)


@dataclass
class Shown:
    """What a lens leaves for the end of the demo.

    Attributes
    ----------
    in_short : list of str
        Its answers in plain words, a sentence or two for each.
    python, commands : list of str
        Lines that do the same, after ``study = cw.load_study(…)``, and in a shell.
    """

    in_short: list[str] = field(default_factory=list)
    python: list[str] = field(default_factory=list)
    commands: list[str] = field(default_factory=list)


def show_learning(told: Told, study: Study) -> Shown:
    """Say how error falls with data, and who is better with how much."""
    table = told.folder / "errors.csv"
    measurements = _write_errors(told, study, table)
    curves = fit_files(measurements, Fitting())
    told.page.document["curves"] = curves
    show_curves(told.page, curves, Fitting(), None, LEGEND)
    told.sections.append(curves_section(curves, measurements))
    in_short, four_times = _decide(told, measurements, curves)
    file = shlex.quote(str(table))
    return Shown(
        in_short,
        [
            'errors = study.measurements(seeds="mean")',
            "print(cw.compare_learning_curves(*cw.fit_learning_curves(errors)))",
        ],
        [
            f"curvewise learning compare {file}",
            f"curvewise learning fit {file} --reach {TARGET:g}",
            f"curvewise learning rank {file} --at {four_times:.0f} --form auto",
        ],
    )


def _write_errors(told: Told, study: Study, path: Path) -> Measurements:
    """One row per subset: runs that share one are not independent, so their seeds are averaged."""
    from curvewise.io import load_measurements

    rows = study.measurements(seeds="mean").frame()
    rows[["learner", "n", "fold", "error"]].to_csv(path, index=False, lineterminator="\n")
    told.files.append(str(path))
    return load_measurements(path)


def _decide(
    told: Told, measurements: Measurements, curves: LearningCurves
) -> tuple[list[str], float]:
    """Compare, ask for a target error, rank at four times the data; give that size, too."""
    from curvewise.learning import compare_learning_curves, rank_learners

    a, b = curves[A], curves[B]
    smallest, largest = float(measurements.n.min()), float(measurements.n.max())
    few, many = (compare_learning_curves(a, b, at=n) for n in (smallest, largest))
    reach = [curve.samples_to_reach(TARGET) for curve in curves]
    ranking = rank_learners(fit_files(measurements, Fitting(form="auto")), at=4 * largest)
    told.page.document |= {"comparison": many, "samples_to_reach": reach, "ranking": ranking}
    ask(
        told,
        f"Which is better with {largest:,.0f} digits to learn from?",
        many,
        figures={"comparison": many.plot},
    )
    ask(told, f"How many digits does an error of {TARGET:.0%} take?", *reach)
    ask(told, "Which will be better with four times the data?", ranking)
    return [said_crossing(few, many, curves), said_reach(reach), said_ranking(ranking)], ranking.at


def show_variance(told: Told, study: Study) -> Shown:
    """Say how much of a difference is chance: seeds, and the finite test set."""
    from curvewise.variance import compare_runs, decompose_variance

    n = max(study.partition.sizes)
    runs = {name: study.predictions(name, n=n) for name in (A, B)}
    files = {name: _write_predictions(told, name, found) for name, found in runs.items()}
    with quietly():
        spread = {name: decompose_variance(found) for name, found in runs.items()}
        better = compare_runs(runs[A], runs[B], names=(A, B), paired=False)
    told.page.document |= {"seeds": spread, "better": better}
    question = f"How much of the difference between {runs[A].runs} seeds is real?"
    ask(told, question, *spread.values(), names=list(spread), figures={"spread": spread[A].plot})
    ask(
        told,
        f"Is the {A} better than the {B} on new digits, too?",
        better,
        figures={"seeds": better.plot},
    )
    a, b = (shlex.quote(files[name]) for name in (A, B))
    return Shown(
        [said_spread(spread), said_real(better, n)],
        [
            f'cnn, mlp = (study.predictions(k, n={n}) for k in ("{A}", "{B}"))',
            "print(cw.decompose_variance(cnn))",
            f'print(cw.compare_runs(cnn, mlp, names=("{A}", "{B}"), paired=False))',
        ],
        [
            f"curvewise variance decompose {a}",
            f"curvewise variance compare {a} {b} --fail-if worse",
        ],
    )


def _write_predictions(told: Told, name: str, found: Predictions) -> str:
    """A file that other tools can read, too; the store has the same, run by run."""
    import numpy as np

    path = told.folder / f"{name.lower()}.npz"
    classes = np.asarray(found.values).astype(np.uint8)
    np.savez_compressed(path, preds=classes, labels=np.asarray(found.labels, dtype=np.uint8))
    told.files.append(str(path))
    return str(path)


def show_response(told: Told, study: Study) -> Shown:
    """Say which network holds up when the digits it has learned move."""
    from curvewise.nn.response import measure_responses
    from curvewise.plot import plot_perturbed, plot_responses
    from curvewise.response import compare_responses

    n = max(study.partition.sizes)
    found = {name: study.network(name, n=n) for name in (A, B)}
    networks = {name: one.network for name, one in found.items()}
    examples = found[A].examples
    with quietly():
        curves = measure_responses(networks, examples, MOVED, magnitudes=BY, progress=False)
        better = compare_responses(curves[A], curves[B])
    told.page.document |= {"responses": curves, "response": better}
    ask(
        told,
        "Which holds up when the digits it has learned move?",
        *curves.values(),
        better,
        figures={
            "responses": lambda: plot_responses(curves),
            "moved": lambda: plot_perturbed(examples, MOVED, BY),
        },
    )
    return Shown(
        [said_response(better, curves, "up to two pixels")],
        [
            f'nets = {{k: study.network(k, n={n}) for k in ("{A}", "{B}")}}',
            f'data = nets["{A}"].examples',
            "moved = cw.measure_responses("
            f'{{k: v.network for k, v in nets.items()}}, data, "{MOVED}", magnitudes={BY})',
            f'print(cw.compare_responses(moved["{A}"], moved["{B}"]))',
        ],
        ["curvewise response perturbations", "curvewise response measures"],
    )


def show_ranking(told: Told, study: Study) -> Shown:
    """Say which of the networks is the best start for digits that lie on their side."""
    import numpy as np

    from curvewise.nn.checkpoints import Preprocessing
    from curvewise.nn.ranking import rank_checkpoints

    found = {
        f"{name}, {n} digits": study.network(name, n=n)
        for name in (A, B)
        for n in study.partition.sizes
    }
    seen = next(iter(found.values())).examples
    turned = np.rot90(study.dataset.x, axes=(-2, -1)).copy()
    with quietly():
        ranking = rank_checkpoints(
            {name: one.network for name, one in found.items()},
            (turned, study.dataset.y),
            TURNED,
            preprocessing=Preprocessing(mean=seen.mean or 0, std=seen.std or 1, channels="grey"),
            examples=EXAMPLES,
            progress=False,
        )
    told.page.document["checkpoints"] = ranking
    question = "Which network to start from, if digits come lying on their side?"
    ask(told, question, ranking, figures={"checkpoints": ranking.plot})
    return Shown(
        [said_checkpoints(ranking)],
        [
            "import numpy as np",
            "turned = np.rot90(study.dataset.x, axes=(-2, -1)).copy()",
            'scale = cw.Preprocessing(mean=data.mean, std=data.std, channels="grey")',
            f'starts = [(k, n) for k in ("{A}", "{B}") for n in study.partition.sizes]',
            'pool = {f"{k}, {n} digits": study.network(k, n=n).network for k, n in starts}',
            f"print(cw.rank_checkpoints(pool, (turned, study.dataset.y), {list(TURNED)}, "
            f"preprocessing=scale, examples={EXAMPLES}))",
        ],
        ["curvewise ranking measures"],
    )


def show_transfer(told: Told, study: Study) -> Shown:
    """Say what upright digits are worth to a network that learns them lying on their side."""
    import numpy as np

    from curvewise.study import transfer_risks
    from curvewise.transfer import measure_transfer

    turned = _turned_study(told, study)
    turned.run(device="cpu")
    most = max(study.partition.sizes)
    maximal = round(float(np.mean(study.measurements(n=most).of(A).error)), 4)
    with quietly():
        found = measure_transfer(transfer_risks(turned, metric="error", maximal=maximal))
    told.page.document["transfer"] = found
    question = "Is a network that knows upright digits a better start than none?"
    before = about_transfer(most, "upright", maximal)
    after = [worth_said(found, "upright")]
    figures = {"transfer": found.plot}
    ask(told, question, found, first=before, last=after, figures=figures)
    file = told.folder / TURNED_STUDY
    return Shown(
        [said_transfer(found, "upright")],
        [
            f"turned = cw.load_study({str(file)!r})",
            f'risks = cw.transfer_risks(turned, metric="error", maximal={maximal})',
            "print(cw.measure_transfer(risks))",
        ],
        [
            f"curvewise transfer measure {shlex.quote(str(file))} --risk-column error "
            f"--maximal {maximal}"
        ],
    )


def _turned_study(told: Told, study: Study) -> Study:
    """Write digits that the first study held out, turned, and a study of them."""
    import os

    import numpy as np

    from curvewise.study import checkpoint_files, load_study

    held_out = study.test_examples()
    turned = np.rot90(held_out.x, axes=(-2, -1)).copy()
    np.savez_compressed(told.folder / "turned.npz", x=turned, y=held_out.y)
    weights = next(iter(checkpoint_files(study, A, n=max(study.partition.sizes)).values()))
    training = study.learners[A].training
    assert training is not None
    place = os.path.relpath(weights, told.folder.resolve()).replace(os.sep, "/")
    path = told.folder / TURNED_STUDY
    text = turned_text(study.seed, training.epochs, place)
    path.write_text(text, encoding="utf-8", newline="\n")
    told.files += [str(told.folder / "turned.npz"), str(path)]
    return load_study(path)


LENSES = (show_learning, show_variance, show_response, show_ranking, show_transfer)
"""Every lens there is, in the order of the demo."""
