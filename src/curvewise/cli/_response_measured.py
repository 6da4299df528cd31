"""Networks measured: the calls behind ``curvewise response measure`` and ``measures``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import GATE, Page, UsageError, sentences, warn, warn_each
from curvewise.cli._files import quietly
from curvewise.cli._response_inputs import NetworkReading
from curvewise.cli._response_options import as_options, worded
from curvewise.cli._response_shown import show_curve, show_curves, show_pairs
from curvewise.errors import InputError

if TYPE_CHECKING:
    from curvewise.nn import Examples
    from curvewise.nn.measures import ModelMeasures
    from curvewise.nn.model_files import ModelFile
    from curvewise.response import ResponseCurve
    from curvewise.response.compare import ResponseComparison
    from curvewise.study.dataset import Dataset


SHEET_COLUMNS = 7


def find_change(name: str) -> Any:
    """A perturbation by its name, or a function out of a module."""
    from curvewise.nn._own_code import find_function
    from curvewise.nn.perturbations import find_perturbation

    try:
        made: Any = find_function("perturbation", name, Path()) if ":" in name else name
        return find_perturbation(made)
    except InputError as error:
        raise UsageError(as_options(str(error))) from error


@contextmanager
def bar(text: str) -> Iterator[Any]:
    """A bar on stderr, moved by telling it the share that is done."""
    from curvewise.progress import progress_bar

    done = 0.0
    with progress_bar(text, 1.0) as advance:

        def tell(share: float) -> None:
            nonlocal done
            advance(share - done)
            done = share

        yield tell


def compute_measures(
    files: Sequence[str],
    data: Examples,
    network: NetworkReading,
    *,
    measures: Sequence[str] | None,
    layer: str | int,
    examples: int,
    beside: Mapping[str, str | None],
    seed: int,
) -> dict[str, ModelMeasures]:
    """The measures of each network; ``beside``: files of initial weights and of a twin."""
    from curvewise.nn.measures import measure_model

    loaded = network.load(files, data, layer)
    closed = next((f for f in loaded.values() if not f.kind.startswith("weights")), None)
    if closed is not None:
        raise UsageError(
            f"{closed.path} is an {closed.kind}, and measures look at every layer: give weights "
            "(.safetensors) with --factory."
        )
    more: dict[str, Any] = {
        key: next(iter(network.load([file], data, layer).values())).model
        for key, file in beside.items()
        if file is not None
    }
    if network.batch is not None:
        more["batch"] = network.batch
    found = {}
    for name, file in loaded.items():
        with quietly(), worded(), bar(name) as progress:
            found[name] = measure_model(
                file.model,  # type: ignore[arg-type]
                data,
                measures,
                layer=layer,
                examples=examples,
                device=network.place,
                rng=seed,
                progress=progress,
                name=name,
                **more,
            )
    return found


def measure_all(
    loaded: Mapping[str, ModelFile], data: Examples, change: Any, **options: Any
) -> dict[str, ResponseCurve]:
    """The curve of each network, all on the same examples and the same draws."""
    from curvewise.nn.response import measure_responses

    with quietly(), worded(), bar(change.name) as progress:
        found: dict[str, ResponseCurve] = measure_responses(
            {name: file.model for name, file in loaded.items()},
            data,
            change,
            progress=progress,
            **options,
        )
    return found


def draw_curves(curves: Mapping[str, ResponseCurve], level: float) -> Any:
    """One curve with its cumulative accuracy, or several in one picture."""
    from curvewise.plot.response_curves import plot_response, plot_responses

    if len(curves) == 1:
        return plot_response(next(iter(curves.values())), level=level)
    return plot_responses(dict(curves), level=level)


def draw_sheet(
    dataset: Dataset,
    data: Examples,
    change: Any,
    magnitudes: Sequence[float],
    **options: Any,
) -> Any:
    """A few examples at magnitudes of the usual range, or at some of those asked for."""
    import numpy as np

    from curvewise.plot.response_sheet import plot_perturbed

    places = np.linspace(0, len(magnitudes) - 1, min(len(magnitudes), SHEET_COLUMNS))
    shown = np.sort(np.array(magnitudes))[places.round().astype(int)] if magnitudes else None
    with worded():
        return plot_perturbed(data, change, shown, classes=dataset.classes, **options)


def show_responses(
    page: Page, curves: Mapping[str, ResponseCurve], level: float, gates: Sequence[str]
) -> bool:
    """Print one curve, or several and how they compare; tell whether a gate holds."""
    if len(curves) == 1:
        show_curve(page, next(iter(curves.values())), level)
        return False
    show_curves(page, curves, level)
    found = compare_all(curves, level)
    page.document["comparisons"] = [result.to_dict() for result in found]
    if len(found) == 1:
        page.say(sentences(found[0]), style="bold")
    show_pairs(page, found, level)
    warn_each([f"{c.a}, {c.b}: {w}" for c in found for w in c.all_warnings])
    verdict = {"a better": "better", "b better": "worse"}.get(found[0].verdict, "undecided")
    if verdict in gates:
        warn(f"--fail-if {verdict} holds: exit status {GATE}.")
    return verdict in gates


def compare_all(curves: Mapping[str, ResponseCurve], level: float) -> list[ResponseComparison]:
    """Every two models, the earlier one against the later."""
    from curvewise.response.compare import compare_responses

    with quietly():
        return [compare_responses(a, b, level=level) for a, b in combinations(curves.values(), 2)]
