"""Rank checkpoints of any format: one forward pass each, then measures of their features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike

from curvewise.errors import InputError, prefix
from curvewise.ranking import scoring
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.networks.features import Extraction, TokenFeatures, extract_many
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.rank import (
    DEFAULT_MEASURES,
    RELIABILITY,
    CheckpointRanking,
    RankSettings,
    Reliability,
    rank_candidates,
)
from curvewise.ranking.scoring import Candidate, Named, find_measures
from curvewise.types.results import data_frame

if TYPE_CHECKING:
    import pandas as pd


# All measures by name: those of features and labels alone, and where torch is installed those that train something.
MEASURES: dict[str, RankingMeasure] = {**scoring.MEASURES}
# Empty, or what to say where a measure is unknown because torch is not installed.
NEED_TORCH = 'measures that are trained need torch: pip install "curvewise[torch]"'

if find_spec("torch") is not None:
    from curvewise.ranking.networks import finetuning, information, probes

    trained = (*probes.MEASURES, *information.MEASURES, *finetuning.MEASURES)
    MEASURES.update({measure.name: measure for measure in trained})
    NEED_TORCH = ""


_SCORING = ("test", "resamples", "level", "reliability")


class RankOptions(Extraction, total=False):
    """Keywords of :func:`rank_checkpoints` on how features are scored; all have a default.

    Attributes
    ----------
    test : float, array_like of bool or None
        Which examples measures that split are scored on: a share of each class (0.2), a mask, or None.
    resamples : int
        Parts of the examples drawn for intervals (50); 0 for none.
    level : float
        Coverage of the intervals (0.95).
    reliability : Reliability, float or str, optional
        Correlation of the measure's scores with fine-tuned accuracies, or the name of the measure
        whose reference to take; from published benchmarks by default.
    """

    test: float | ArrayLike | None
    resamples: int
    level: float
    reliability: Reliability | float | str | None


def list_ranking_measures() -> pd.DataFrame:
    """List every measure: its inputs and definition, its cost and known failures, and its correlation elsewhere.

    Returns
    -------
    DataFrame
        A row for each. ``correlation`` is that of its scores with fine-tuned accuracies on a
        typical task of the ``reference``; NaN where there is none.

    Examples
    --------
    >>> table = list_ranking_measures().set_index("measure")
    >>> table.loc["leep", "takes"], round(float(table.loc["nleep", "correlation"]), 2)
    ('probabilities', 0.78)
    """
    found = [RELIABILITY.get(name) for name in MEASURES]
    rows = [measure.columns() for measure in MEASURES.values()]
    return data_frame(
        {
            **{column: [row[column] for row in rows] for column in rows[0]},
            "correlation": [np.nan if r is None else r.correlation for r in found],
            "reference": ["" if r is None else r.source for r in found],
        }
    )


def rank_checkpoints(
    checkpoints: Any,
    data: Any,
    measures: Sequence[Named] | Named | None = None,
    *,
    by: str | None = None,
    k: int = 3,
    layer: str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
    **options: Unpack[RankOptions],
) -> CheckpointRanking:
    """Rank checkpoints for a task: run its examples through each once, and score the features.

    Parameters
    ----------
    checkpoints : mapping or sequence
        Checkpoints, or whatever stands for one: networks, paths, features; a mapping names them.
        See :class:`curvewise.ranking.networks.checkpoints.Checkpoint`.
    data : (inputs, labels), Examples, Dataset or DataLoader
        Labelled examples of the task. Labels are a class for each example, a matrix of 0 and 1
        for several, or numbers; inputs are arrays, tensors, texts or a Dataset.
    measures : sequence of str, RankingMeasure or callable, optional
        Measures to compute; nleep and logme by default.
    by : str, optional
        The measure that ranks; the first by default.
    k : int
        How many checkpoints can be tried.
    layer : str, optional
        Layer whose output is taken, as for :func:`extract_features`.
    rng : int or Generator
        Decides the examples, the split, the parts and what is random in measures.
    progress : bool, optional
        Show bars with the time left; by default where stderr is a terminal.
    **options
        ``test``, ``resamples``, ``level``, ``reliability``: see :class:`RankOptions`; ``examples``,
        ``layout``, ``preprocessing``, ``batch``, ``device``, ``precision``, ``cache``, ``limit``:
        see :class:`curvewise.ranking.networks.features.Extraction`.

    Returns
    -------
    CheckpointRanking
        Checkpoints that could not be run are among its failures, and the others ranked.

    Raises
    ------
    InputError
        If there are no labels, or no checkpoint could be run.

    Examples
    --------
    >>> import torch
    >>> random = np.random.default_rng(0)
    >>> labels = np.arange(200) % 2
    >>> x = random.standard_normal((200, 6)).astype(np.float32) + labels[:, None]
    >>> sees = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 2))
    >>> blind = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.Linear(6, 2))
    >>> _ = torch.nn.init.eye_(sees[0].weight), torch.nn.init.zeros_(blind[0].weight)
    >>> pool = {"blind": blind, "sees": sees}
    >>> rank_checkpoints(pool, (x, labels), "linear-5", resamples=0).checkpoints
    ('sees', 'blind')
    """
    generator = np.random.default_rng(rng)
    chosen = find_measures(measures or DEFAULT_MEASURES, MEASURES, NEED_TORCH)
    extraction: dict[str, Any] = {**options}
    scoring = {name: extraction.pop(name) for name in _SCORING if name in extraction}
    how = RankSettings(by=by, k=k, rng=generator, progress=progress, **scoring)
    reading = {name: extraction.pop(name, None) for name in ("examples", "layout", "preprocessing")}
    inputs = read_inputs(data, rng=generator, **reading)
    found, failures = extract_many(checkpoints, inputs, layer=layer, progress=progress, **extraction)
    given = inputs.labels
    if given is None:
        raise InputError("holds inputs only, and labels are missing. Pass (inputs, labels).", argument="data")
    whole = [one for one in found.values() if not isinstance(one, TokenFeatures)]
    failures |= {
        name: "it has a row for each token, and labels are for whole examples: pool them."
        for name, one in found.items()
        if isinstance(one, TokenFeatures)
    }
    if not whole:
        name, reason = next(iter(failures.items()))
        raise InputError(prefix(f"No checkpoint could be run on the data. {name}: ", reason))
    if how.test is not None and np.ndim(how.test) and np.shape(how.test) == (inputs.total,):
        how = replace(how, test=np.asarray(how.test)[inputs.rows])  # a mask for all examples, of which some were drawn
    networks = {}
    if any(measure.takes == "network" for measure in chosen):
        from curvewise.ranking.networks.finetuning import find_networks

        networks = find_networks(checkpoints, inputs, extraction.get("device"), extraction.get("precision", "float32"))
    candidates = [Candidate.of(one, network=networks.get(one.name)) for one in whole]
    return rank_candidates(candidates, given, chosen, how, failures)
