"""Rank checkpoints of any format: one forward pass each, then measures of their features."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking import scoring as catalogue
from curvewise.ranking.certainty import RELIABILITY, Reliability
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.networks.features import TokenFeatures, extract_many
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.rank import DEFAULT_MEASURES, CheckpointRanking, rank_candidates
from curvewise.ranking.scores import CheckpointFeatures
from curvewise.ranking.scoring import Candidate, Named, find_measures
from curvewise.types.results import data_frame

if TYPE_CHECKING:
    import pandas as pd


MEASURES: dict[str, RankingMeasure] = {**catalogue.MEASURES}
"""By name: those of the lens, and where torch is installed those that train something."""

HITS: dict[str, Callable[..., NDArray[Any]]] = {}
"""What each test example adds to a measure that is a mean over them."""

NEED_TORCH = 'measures that are trained need torch: pip install "curvewise[torch]"'

if find_spec("torch") is not None:
    from curvewise.ranking.networks import finetuning, information, probes

    for family in (probes.MEASURES, information.MEASURES, finetuning.MEASURES):
        MEASURES.update({measure.name: measure for measure in family})
    HITS["linear-1"] = partial(probes.linear_hits, epochs=1)
    HITS["linear-5"] = partial(probes.linear_hits, epochs=5)
    HITS["linear"] = probes.linear_hits
    HITS.update(finetuning.HITS)


def list_ranking_measures() -> pd.DataFrame:
    """Every measure: what it takes and is, its cost and known failure, and how it did elsewhere.

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
    labels: Any = None,
    examples: float | None = None,
    layer: str | None = None,
    layout: str | None = None,
    preprocessing: Any = None,
    batch: int | None = None,
    device: str | None = None,
    precision: str = "float32",
    cache: str | os.PathLike[str] | None = None,
    test: float | ArrayLike | None = 0.2,
    by: str | None = None,
    resamples: int = 50,
    level: float = 0.95,
    k: int = 3,
    reliability: Reliability | float | str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
) -> CheckpointRanking:
    """Rank checkpoints for a task: run its examples through each once, and score the features.

    Parameters
    ----------
    checkpoints : mapping or sequence
        Checkpoints, or whatever stands for one: networks, paths, features; a mapping names them.
        See :class:`curvewise.ranking.networks.checkpoints.Checkpoint`.
    data : ndarray, Tensor, list of str, Examples, (inputs, labels), Dataset or DataLoader
        Labelled examples of the task.
    measures : sequence of str, RankingMeasure or callable, optional
        What to compute; the lens's default otherwise.
    labels : array_like, optional
        A class for each example (a matrix of 0 and 1 for several, or numbers), where data holds
        inputs only.
    examples : int or float, optional
        How many examples to draw, or below 1 which share; all by default.
    preprocessing : Preprocessing, optional
        What images get for checkpoints that bring none of their own.
    layer, layout, batch, device, precision, cache
        How features are taken, as for :func:`curvewise.ranking.networks.features.extract_features`.
    test, by, resamples, level, k, reliability
        How they are scored and ranked, as for :func:`curvewise.ranking.rank.rank_features`.
    rng : int or Generator
        Decides the examples, the split, the parts and what is random in measures.
    progress : bool, optional
        Show bars with the time left; by default where stderr is a terminal.

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
    try:
        chosen = find_measures(DEFAULT_MEASURES if measures is None else measures, MEASURES)
    except InputError as error:
        if HITS:
            raise
        raise InputError(f"{error} ({NEED_TORCH})") from error
    inputs = read_inputs(data, labels, examples=examples, layout=layout, preprocessing=preprocessing, rng=generator)
    found, failures = extract_many(
        checkpoints,
        inputs,
        layer=layer,
        batch=batch,
        device=device,
        precision=precision,
        cache=cache,
        progress=progress,
    )
    given = inputs.labels
    if given is None:
        raise InputError("labels is missing: data holds inputs only. Pass labels=.")
    whole, lost = _by_example(found)
    failures |= lost
    if not whole:
        name, reason = next(iter(failures.items()))
        raise InputError(f"No checkpoint could be run on the data. {name}: {reason}")
    networks = {}
    if any(measure.takes == "network" for measure in chosen):
        from curvewise.ranking.networks.finetuning import find_networks

        networks = find_networks(checkpoints, inputs, device, precision)
    return rank_candidates(
        [Candidate.of(one, network=networks.get(one.name)) for one in whole],
        given,
        chosen,
        test=_rows_of(test, inputs.rows, inputs.total),
        by=by,
        resamples=resamples,
        level=level,
        k=k,
        reliability=reliability,
        rng=generator,
        progress=progress,
        failures=failures,
        hits={m.name: HITS[m.name] for m in chosen if m.name in HITS and m is MEASURES[m.name]},
    )


def _by_example(found: Mapping[str, CheckpointFeatures]) -> tuple[list[CheckpointFeatures], dict[str, str]]:
    """Features with a row for each example, and why the others cannot be ranked."""
    whole = [one for one in found.values() if not isinstance(one, TokenFeatures)]
    lost = {
        name: "it has a row for each token, and labels are for whole examples: pool them."
        for name, one in found.items()
        if isinstance(one, TokenFeatures)
    }
    return whole, lost


def _rows_of(test: float | ArrayLike | None, rows: NDArray[np.int64], total: int) -> float | ArrayLike | None:
    """A mask of test examples for those that were drawn, where it is given for all."""
    if test is None or np.ndim(test) == 0 or np.shape(test) != (total,):
        return test
    found: NDArray[Any] = np.asarray(test)[rows]
    return found
