"""Rank checkpoints of any format: one forward pass each, then measures of their features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from curvewise.errors import InputError
from curvewise.ranking import scoring
from curvewise.ranking.measure import RankingMeasure
from curvewise.ranking.networks.features import Extraction, TokenFeatures, extract_many
from curvewise.ranking.networks.inputs import read_inputs
from curvewise.ranking.rank import DEFAULT_MEASURES, RELIABILITY, CheckpointRanking, Reliability, rank_candidates
from curvewise.ranking.scoring import Candidate, Named, find_measures
from curvewise.text import prefix
from curvewise.types.results import data_frame

if TYPE_CHECKING:
    import pandas as pd


# All measures by name: those of features and labels alone, and where torch is installed those that train something.
MEASURES: dict[str, RankingMeasure] = {**scoring.MEASURES}
# By measure that is a mean over test examples: the function that gives the value of each.
HITS: dict[str, Callable[..., NDArray[Any]]] = {}
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
    test: float | ArrayLike | None = 0.2,
    by: str | None = None,
    resamples: int = 50,
    level: float = 0.95,
    k: int = 3,
    reliability: Reliability | float | str | None = None,
    rng: int | np.random.Generator = 0,
    progress: bool | None = None,
    layer: str | None = None,
    **extraction: Unpack[Extraction],
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
    test, by, resamples, level, k, reliability
        Scoring and ranking, as for :func:`curvewise.ranking.rank.rank_features`.
    rng : int or Generator
        Decides the examples, the split, the parts and what is random in measures.
    progress : bool, optional
        Show bars with the time left; by default where stderr is a terminal.
    layer : str, optional
        Layer whose output is taken, as for :func:`extract_features`.
    **extraction
        ``examples``, ``layout``, ``preprocessing``, ``batch``, ``device``, ``precision``,
        ``cache``, ``limit``: see :class:`curvewise.ranking.networks.features.Extraction`.

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
        raise InputError(f"{error.message.marked} ({NEED_TORCH})") from error
    reading = {name: extraction.pop(name, None) for name in ("examples", "layout", "preprocessing")}  # type: ignore[misc]
    inputs = read_inputs(data, rng=generator, **reading)
    found, failures = extract_many(checkpoints, inputs, layer=layer, progress=progress, **extraction)
    given = inputs.labels
    if given is None:
        raise InputError("labels are missing: data holds inputs only. Pass (inputs, labels).")
    whole = [one for one in found.values() if not isinstance(one, TokenFeatures)]
    failures |= {
        name: "it has a row for each token, and labels are for whole examples: pool them."
        for name, one in found.items()
        if isinstance(one, TokenFeatures)
    }
    if not whole:
        name, reason = next(iter(failures.items()))
        raise InputError(prefix(f"No checkpoint could be run on the data. {name}: ", reason))
    if test is not None and np.ndim(test) and np.shape(test) == (inputs.total,):
        test = np.asarray(test)[inputs.rows]  # a mask for all examples, of which some were drawn
    networks = {}
    if any(measure.takes == "network" for measure in chosen):
        from curvewise.ranking.networks.finetuning import find_networks

        networks = find_networks(checkpoints, inputs, extraction.get("device"), extraction.get("precision", "float32"))
    return rank_candidates(
        [Candidate.of(one, network=networks.get(one.name)) for one in whole],
        given,
        chosen,
        test=test,
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
