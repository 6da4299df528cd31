"""Checkpoints scored and ranked: the calls behind ``curvewise ranking rank``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import redirect_stdout
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import quietly
from curvewise.cli._ranking_found import Found
from curvewise.cli._ranking_inputs import FeatureReading, TargetReading
from curvewise.cli._ranking_words import as_options, worded
from curvewise.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from curvewise.ranking.measure import RankingMeasure
    from curvewise.ranking.ranking_result import CheckpointRanking
    from curvewise.types.features import CheckpointFeatures


def listed_measures() -> dict[str, RankingMeasure]:
    """All measures by name, and a word on what is missing without torch."""
    from curvewise.nn.ranking import HITS, NEED_TORCH

    if not HITS:
        note(NEED_TORCH)
    return known_measures()


def known_measures() -> dict[str, RankingMeasure]:
    """All measures by name; those that are trained where torch is installed."""
    from curvewise.nn.ranking import MEASURES

    return dict(MEASURES)


def find_wanted(names: Sequence[str]) -> list[RankingMeasure]:
    """Measures by name; the usual ones if none is named."""
    from curvewise.nn.ranking import HITS, NEED_TORCH
    from curvewise.ranking._scoring import FUNCTIONS, find_measures
    from curvewise.ranking.rank import DEFAULT_MEASURES

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
    from curvewise.nn.checkpoints import Checkpoint
    from curvewise.nn.ranking import rank_checkpoints

    more = {**extracting.running, "examples": reading.examples}
    _check_keys("--preprocess", more["preprocessing"])
    for one in found:
        _check_keys(f"preprocessing of {one.name}", one.about.get("preprocessing"))
    with quietly(), worded(), redirect_stdout(sys.stderr):  # stdout is for results alone
        given = [
            Checkpoint(one.name, one.path, **{**extracting.making, **one.about}, folder=Path())
            for one in found
        ]
        return rank_checkpoints(given, (data, labels), measures, **more, **ranking)


def _check_keys(where: str, given: Any) -> None:
    """Name a key that no preprocessing has, and the nearest one."""
    from curvewise.nn._own_preprocessing import as_preprocessing
    from curvewise.nn.checkpoints import Preprocessing

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
    from curvewise.nn.ranking import HITS
    from curvewise.ranking._scoring import Candidate
    from curvewise.ranking.rank import rank_candidates

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
    from curvewise.io._arrays import map_npy, named_arrays
    from curvewise.types.features import CheckpointFeatures

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


def _picked(
    path: Path, names: Sequence[str], get: Callable[[str], Any]
) -> tuple[NDArray[Any], NDArray[Any] | None]:
    if "features" not in names and len(names) != 1:
        raise InputError(f"{path} holds {', '.join(names)}: call the matrix features.")
    key = "features" if "features" in names else names[0]
    return get(key), get("probabilities") if "probabilities" in names else None
