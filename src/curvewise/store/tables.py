"""A store of runs as tables: measurements, risks, predictions of one training, and a file with a row for each run."""

from __future__ import annotations

import csv
import io
import json
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from os.path import isdir
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, arg, brief, either, format_path, importing, list_names, suggest
from curvewise.reading.arrays import RunFiles
from curvewise.reading.table import Table, table_from_records
from curvewise.store.read import (
    AnyPath,
    Run,
    array_of,
    is_store,
    list_runs,
    read_labels,
    read_records,
    without_collecting,
)
from curvewise.store.record import PREDICTIONS, is_search
from curvewise.store.write import replace_file
from curvewise.text import csv_cell
from curvewise.types.predictions import RawPredictions

LOSSES = "losses"
"""The array that a run has where targets are numbers, in place of predicted classes."""
# Runs of one training may differ in these coordinates, and in any that end in _seed.
_CHANCE = ("seed", "fold", "subset", "run", "repeat", "replicate", "trial")
# Coordinates that tell runs apart and mean nothing to a reader.
HASHES = ("data", "subset", "recipe", "search", "weights")
_NUMBER_LOSSES = ("l1", "l2")
# Parts of a nudge, by which runs may be chosen.
_NUDGES = ("poke_epoch", "poke_factor")
# The order in which a study names its coordinates; records have theirs sorted by name.
_FIRST = ("learner", "n", "fold", "seed", "init_seed", "order_seed", "augmentation_seed", "poke_seed")


def measured_rows(records: Mapping[str, Mapping[str, Any]], metric: str) -> list[dict[str, Any]]:
    """Give one row per run: its coordinates, its status, its id, and a metric.

    :meth:`Study.measurements` and :func:`load_measurements` both read a store through this function. The value of
    a failed run is NaN. Nested coordinates are left out, except lists, which a grid may vary; learners of a study
    are named with the settings of its grid, which make them another one.

    Parameters
    ----------
    records : dict of str to record
        By id.
    metric : str
        Which; runs that are done must have it.
    """
    rows = []
    for identity, record in records.items():
        given = record["coordinates"]
        plain = {k: v for k, v in given.items() if k not in HASHES and not isinstance(v, Mapping)}
        row = {k: plain[k] for k in _FIRST if k in plain}
        row |= {k: setting_text(v) if isinstance(v, list) else v for k, v in plain.items() if k not in row}
        if str(given.get("recipe", "")).startswith("study/"):
            # What is left when the coordinates are gone that every run of a study has: the settings of its grid.
            usual = (*HASHES, *_CHANCE, "learner", "n", "training", "poke")
            settings = {k: v for k, v in given.items() if k not in usual and not k.endswith("_seed")}
            row["learner"] = curve_name(str(given["learner"]), settings)
        if metric == "loss":
            row["judged"] = _judged(record)
        value = record["metrics"].get(metric) if record["status"] == "done" else None
        row = {**row, "status": record["status"]} | ({} if "run" in row else {"run": identity})
        rows.append({**row, metric: math.nan if value is None else float(value)})
    return rows


def failure_notes(failed: Sequence[tuple[str, str]], total: int) -> list[str]:
    """Say how many of the runs of each learner failed, and why.

    >>> failure_notes([("net", "ValueError: no"), ("net", "ValueError: no")], 6)
    ['2 of 6 runs failed (net): ValueError: no']
    """
    return [
        f"{count} of {total} runs failed ({learner}): {reason}" for (learner, reason), count in Counter(failed).items()
    ]


def reason_of(text: str) -> str:
    r"""Return the line of an error that says what happened: of a traceback the one below its calls.

    >>> reason_of("Traceback (most recent call last):\n  File …\nValueError: no\n\nSet DEBUG=1 for more.")
    'ValueError: no'
    """
    lines = [line for line in text.strip().splitlines() if line.strip()]
    _, header, raised = text.rpartition("Traceback (most recent call last):\n")
    below = [line for line in raised.splitlines() if line.strip() and not line[0].isspace()]
    line = below[0] if header and below else lines[-1].strip() if lines else "no reason given"
    return line if len(line) <= 300 else f"{line[:300]}…"


def all_failed(errors: Sequence[str], place: str) -> InputError:
    """Make an error that says that every run failed, with the first reason and the place of the others.

    >>> print(all_failed(["ValueError: no", "ValueError: never"], "See study.status()."))
    All 2 runs failed. The first: ValueError: no. See study.status().
    """
    first = reason_of(errors[0]).removesuffix(".")
    return InputError(f"All {len(errors):,} runs failed. The first: {first}. {place}")


def store_folder(source: Any) -> Path | None:
    """Return the folder that a user names if it is a store of runs; None for any other source."""
    if not isinstance(source, str | PathLike) or not isdir(source):
        return None
    path = Path(source).resolve()  # "." and ".." have no names of their own
    return path if is_store(path) else None


def store_table(folder: Path, metric: str | None = None) -> Table:
    """Make a table with a metric of each run of a store, and its plain coordinates.

    By default the error; where runs predict numbers and none has an error, their loss. Failed runs have NaN.
    Searches for learning rates are left out, as are runs that are done and lack the metric; these are counted.
    """
    runs = {path.name: record for path, record in _trained_runs(folder).items()}
    errors = any(r["metrics"].get("error") is not None for r in runs.values())
    metric = metric or ("loss" if not errors and any(map(_judged, runs.values())) else "error")
    failed = {k: r for k, r in runs.items() if r["status"] == "failed"}
    done = {k: r for k, r in runs.items() if k not in failed and r["metrics"].get(metric) is not None}
    if runs and len(failed) == len(runs):
        raise _all_failed_in(folder, failed.values())
    if not done:
        there = dict.fromkeys(k for r in runs.values() for k, v in r["metrics"].items() if v is not None)
        raise InputError(
            f"None of the {len(runs)} run(s) in {format_path(folder)} has a metric {metric!r}."
            + (f"{suggest(metric, there)} There are {list_names(there)}." if there else "")
        )
    kept = {k: r for k, r in runs.items() if k in done or k in failed}
    rows = measured_rows(kept, metric)
    table = table_from_records(rows, format_path(folder), folder.name)
    named = [str(r["coordinates"].get("learner", folder.name)) for r in failed.values()]
    reasons = [reason_of(r.get("error") or "") for r in failed.values()]
    notes = failure_notes(list(zip(named, reasons, strict=True)), len(runs))
    if lost := len(runs) - len(kept):
        notes.append(f"{lost} run(s) have no {metric}, and are left out")
    kinds = sorted({str(row["judged"]) for row in rows}) if metric == "loss" else []
    if len(kinds) > 1:
        notes.append(f"losses of the kinds {', '.join(kinds)}, whose values cannot be compared")
    return replace(table, notes=(*table.notes, *notes))


def _all_failed_in(folder: Path, records: Iterable[Mapping[str, Any]]) -> InputError:
    errors = [record.get("error") or "" for record in records]
    return all_failed(errors, f"The whole error of each run is in its record.json in {format_path(folder)}.")


def holds_losses(folder: Path, table: Table) -> bool:
    """Return whether the table of a store is one of losses: its runs predict numbers, or a loss was asked for."""
    values = {name.partition(".")[0] for name in table.columns}
    return is_store(folder) and not {"error", "train_error"} & values


def curve_name(learner: str, settings: Mapping[str, Any]) -> str:
    """Name a curve: the learner, and the settings of the grid that make it another one.

    >>> curve_name("net", {"rate": 0.1, "augment": ["flip", "crop"]})
    'net, rate=0.1, augment=flip, crop'
    """
    return ", ".join([learner, *(f"{name}={setting_text(v)}" for name, v in settings.items())])


def setting_text(value: Any) -> str:
    """Write a setting for people.

    >>> setting_text(["flip", "cutout:12"]), setting_text([]), setting_text(0.1)
    ('flip, cutout:12', 'none', '0.1')
    """
    if isinstance(value, list | tuple):
        return ", ".join(map(setting_text, value)) or "none"
    return str(value)


def _judged(record: Mapping[str, Any]) -> str | None:
    """Return the loss by which a run was judged that predicts numbers; None where it predicts classes."""
    training = record["coordinates"].get("training")
    found = (training.get("loss") or training.get("judged")) if isinstance(training, dict) else None
    return found if found in _NUMBER_LOSSES else None


def risk_table(folder: Path) -> Table:
    """Make a table with the coordinates, status and metrics of each run of a store; seeds are joined into one."""
    runs = [*_trained_runs(folder).values()]
    if not runs:
        raise InputError(f"{format_path(folder)} holds no runs.")
    if all(record["status"] == "failed" for record in runs):
        raise _all_failed_in(folder, runs)
    rows = []
    for record in runs:
        given = record["coordinates"].items()
        plain = {k: v for k, v in given if k not in HASHES and not isinstance(v, Mapping)}
        plain = {k: setting_text(v) if isinstance(v, list) else v for k, v in plain.items()}
        seeds = {k: v for k, v in plain.items() if k.endswith("_seed")}
        if seeds and "seed" not in plain:
            plain = {k: v for k, v in plain.items() if k not in seeds}
            plain["seed"] = "/".join(str(v) for v in dict.fromkeys(seeds.values()))
        metrics = {k: v for k, v in record["metrics"].items() if k not in plain}
        rows.append({**plain, "status": record["status"], **metrics})
    return table_from_records(rows, format_path(folder), folder.name)


def read_store(
    folder: Path, learner: str | None, where: Mapping[str, Any] | None, key: str | None = None
) -> RawPredictions:
    """Take the predictions of the runs of one training; runs that failed are left out and counted.

    ``key`` names the array: predictions for the test set by default, or losses where the runs predict numbers.
    Searches for learning rates are no runs of a training.
    """
    records = _trained_runs(folder)
    kept = _matching(records, where, folder, learner)
    _check_one_training(kept, folder)
    numbers = any(_judged(r) and LOSSES in r["arrays"] for r in kept.values())
    name = key or (LOSSES if numbers else PREDICTIONS)
    kind = name.partition(".")[0]
    done = {p: r for p, r in kept.items() if r["status"] == "done" and name in r["arrays"]}
    if kept and all(record["status"] == "failed" for record in kept.values()):
        raise _all_failed_in(folder, kept.values())
    if not done:
        there = sorted({k for r in kept.values() for k in r["arrays"]})
        which = f" There are {list_names(there)}: choose with {arg('key', there[0])}." if there else ""
        raise InputError(f"None of the {len(kept)} run(s) in {format_path(folder)} has {name}.{which}")
    lost = len(kept) - len(done)
    notes = [f"{len(done):,} of the {len(records):,} runs in {format_path(folder)}"]
    notes += [f"{lost} run(s) failed or have no {name}, and are left out"] if lost else []
    notes += ["the runs predict numbers: the loss of each example"] if numbers and not key else []
    return _raw_predictions(
        folder,
        done,
        name,
        kind=kind if kind in ("probabilities", LOSSES) else None,
        run_ids=np.array([path.name for path in done], dtype=np.str_),
        seeds=seeds_of(done.values()),
        notes=tuple(notes),
        name=str(next(iter(kept.values()))["coordinates"].get("learner", "")),  # one training has one learner
    )


def _raw_predictions(
    folder: Path, records: Mapping[Path, Mapping[str, Any]], array: str, **about: Any
) -> RawPredictions:
    """Map an array of several runs, with the true classes of its examples."""
    labels = shared_labels(records, array.partition(".")[2] or "test", folder)
    axes = ("runs", "examples")
    return RawPredictions(
        run_files(records, array), format_path(folder), axes=axes, labels=labels, predicted=True, **about
    )


def seeds_of(records: Iterable[Mapping[str, Any]]) -> NDArray[Any] | None:
    """Write the fold and the seeds of each run, by which it has a partner in another training; None if some are alike.

    >>> seeds_of([{"coordinates": {"learner": "net", "n": 100, "fold": 1, "init_seed": 7}}])
    array(['fold=1, init_seed=7'], dtype='<U19')
    """
    found = []
    for record in records:
        about = record["coordinates"].items()
        found.append(", ".join(f"{k}={v}" for k, v in sorted(about) if _is_chance(k) and k not in HASHES))
    return np.array(found) if "" not in found and len(set(found)) == len(found) else None


def _is_undone(record: Mapping[str, Any]) -> bool:
    """Tell whether the result of a poked run is as if no weight had been nudged.

    A note says so; of runs that were stored before there was one, the best epoch of early stopping does.
    """
    about, measured = record["coordinates"], record["metrics"]
    if about.get("poke") is None:
        return False
    if any(note.startswith("No weight was nudged") for note in record["notes"]):
        return True
    training = about.get("training") or {}
    steps, epochs, best = (measured.get(name) for name in ("steps", "epochs", "best_epoch"))
    if training.get("schedule") != "early-stop" or training.get("members", 1) > 1 or not epochs or best is None:
        return False
    per_epoch = steps / epochs
    step = measured.get("best_step")
    step = math.ceil(round(best * per_epoch, 6)) if step is None else step
    at = round(about["poke"]["epoch"] * per_epoch)
    return bool(at >= step and not at == step == steps)  # weights of the last step are nudged if they are the best


def twin_records(records: Mapping[Path, Mapping[str, Any]]) -> TwinRecords:
    """Join runs of which a weight was nudged to those that were left alone, by all their other coordinates.

    Parameters
    ----------
    records : dict of Path to record
        By folder; those that are done. Both kinds of runs, of one training or of several.

    Raises
    ------
    InputError
        If no run has a twin, the runs that have are of more than one training, or nudges have several factors.
    """
    plain: dict[str, Path] = {}
    nudged: dict[float, dict[str, Path]] = {}
    undone = {path for path, record in records.items() if _is_undone(record)}
    vain = (
        f"{len(undone)} poked run(s) are left out: they went back to a best epoch before the nudge, or ended before it"
    )
    factors: dict[float, None] = {}
    # Several weights may have been nudged in copies of one run. One counts, as pairs must not share a run: that of
    # the lowest seed, which depends neither on the order of a plan nor on the names of folders.
    weights = {path: int(record["coordinates"].get("poke_seed") or 0) for path, record in records.items()}
    for path, record in sorted(records.items(), key=lambda item: (weights[item[0]], item[0].name)):
        if path in undone:
            continue
        about = dict(record["coordinates"])
        poke = about.pop("poke", None)
        about.pop("poke_seed", None)
        key = json.dumps(about, sort_keys=True)
        epoch = None if poke is None else float(poke["epoch"])
        (plain if epoch is None else nudged.setdefault(epoch, {})).setdefault(key, path)
        factors |= {} if poke is None else {float(poke["factor"]): None}
    if not nudged and not undone:
        raise InputError(
            f"None of the {len(records)} run(s) had a weight nudged: there are no twins.",
            remedy='Add runs with vary = [["init", "order", "augmentation"], ["init", "order", "augmentation", "poke"]]'
            " and poke = { epoch = 0 }, or use the recipe variance-sources.",
        )
    if len(factors) > 1:
        raise InputError(
            f"The nudges multiply a weight by several factors, which must not be mixed: {list_names(sorted(factors))}.",
            remedy=f"Choose one with {arg('where', {'poke_factor': min(factors)})}.",
        )
    epochs = sorted(nudged)
    joined = [key for key in plain if all(key in nudged[epoch] for epoch in epochs)] if epochs else []
    if not joined and undone and not nudged:
        raise InputError(f"{vain}. Nudge at an earlier epoch, or use a schedule that does not go back.")
    if not joined:
        raise InputError(
            f"{len(records)} run(s) hold {len(plain)} that were left alone and {sum(map(len, nudged.values()))} of"
            " which a weight was nudged, and none of them have the same seeds. Vary the same seeds with and without"
            ' the nudge: vary = [["init", "order", "augmentation"], ["init", "order", "augmentation", "poke"]].'
        )
    reference = [plain[key] for key in joined]
    _check_one_training({path: dict(records[path]) for path in reference}, reference[0].parent)
    lost = len({key for found in nudged.values() for key in found} - set(joined))
    notes = [f"{lost} poked run(s) have no twin with the same seeds at every epoch, and are left out"] if lost else []
    notes += [vain] if undone else []
    runs = [records[path]["coordinates"] for path in reference]
    named = ["init", "order", *(["augmentation"] if (runs[0].get("training") or {}).get("augmentation") else [])]
    fixed = [k for k in named if len({run.get(f"{k}_seed") for run in runs}) == 1]
    if fixed and len(runs) > 1:
        shared = " and ".join(fixed)
        notes.append(f"the runs share their seed of {shared}: different seeds are those of the other sources only")
    twins = {int(e) if e.is_integer() else e: [nudged[e][key] for key in joined] for e in epochs}
    return TwinRecords(reference, twins, notes)


@dataclass(frozen=True)
class TwinRecords:
    """Folders of runs that were left alone; at each epoch of a nudge those of their twins, in the same order."""

    reference: list[Path]
    twins: dict[float, list[Path]]
    notes: list[str]


def read_twins(
    folder: Path, learner: str | None, where: Mapping[str, Any] | None, key: str | None = None
) -> tuple[RawPredictions, dict[float, RawPredictions]]:
    """Take the predictions of runs that were left alone, and by epoch of the nudge those of their twins.

    ``poke_epoch`` and ``poke_factor`` in ``where`` choose among the nudges.
    """
    every, wanted = _trained_runs(folder), dict(where or {})
    nudge = wanted.pop("poke", None)
    chosen = {f"poke_{k}": v for k, v in nudge.items()} if isinstance(nudge, Mapping) else {}
    chosen |= {k: wanted.pop(k) for k in _NUDGES if k in wanted}
    kept = _matching(every, wanted, folder, learner)
    alone = {p: r for p, r in kept.items() if r["coordinates"].get("poke") is None}
    if chosen and len(alone) < len(kept):
        kept = alone | _matching({p: r for p, r in kept.items() if p not in alone}, chosen, folder)
    name = key or PREDICTIONS
    joined = twin_records({p: r for p, r in kept.items() if r["status"] == "done" and name in r["arrays"]})

    def read(paths: list[Path], notes: Sequence[str] = ()) -> RawPredictions:
        # A twin has the name of its run.
        ids = np.array([path.name for path in joined.reference], dtype=np.str_)
        return _raw_predictions(folder, {p: kept[p] for p in paths}, name, run_ids=ids, notes=tuple(notes))

    pairs = f"{len(joined.reference):,} runs in {format_path(folder)} with their twins, joined by their seeds"
    return read(joined.reference, [pairs, *joined.notes]), {e: read(paths) for e, paths in joined.twins.items()}


def values_in_store(folder: Path, name: str, where: Mapping[str, Any] | None) -> list[Any]:
    """List the values of a coordinate among the runs of a store, in order where they can be ordered."""
    every = _trained_runs(folder)
    there = dict.fromkeys(k for r in every.values() for k in r["coordinates"])
    if name not in there:
        plain = [k for k in there if k not in HASHES and not k.endswith("_seed")]
        raise InputError(
            f"is not a coordinate of the runs in {format_path(folder)}: {list_names(plain)}.", argument="by"
        )
    found = _distinct([r["coordinates"].get(name) for r in _matching(every, where, folder).values()])
    return sorted(found) if all(isinstance(v, int | float) for v in found) else found


def evaluations_in_store(folder: Path, where: Mapping[str, Any] | None) -> dict[str, str]:
    """Name the evaluation sets that runs of a store predicted, with the array of each."""
    runs = _matching(_trained_runs(folder), where, folder)
    arrays = dict.fromkeys(k for r in runs.values() for k in r["arrays"])
    kind = PREDICTIONS if PREDICTIONS in arrays else LOSSES
    return {k.partition(".")[2] or "test": k for k in arrays if k.partition(".")[0] == kind}


def run_files(records: Mapping[Path, Mapping[str, Any]], name: str) -> RunFiles:
    """Map an array of several runs, each read from its file when it is asked for; all must have one shape."""
    (first, about), *_ = ((path, record["arrays"][name]) for path, record in records.items())
    shape, dtype = tuple(about["shape"]), _dtype(first, about, name)
    for path, record in records.items():
        about = record["arrays"][name]
        here = _dtype(path, about, name)
        if tuple(about["shape"]) != shape or (here.kind == "U") != (dtype.kind == "U"):
            raise InputError(
                f"Run {path.name} has {name} of shape {tuple(about['shape'])} ({here}), run "
                f"{first.name} of {shape} ({dtype}): all runs must be on the same examples."
            )
        dtype = np.result_type(dtype, here)
    return RunFiles(list(records), partial(_array, records=records, name=name), shape, dtype)


def _dtype(path: Path, about: Mapping[str, Any], name: str) -> np.dtype[Any]:
    if re.match(r"[\[{]", about["dtype"]):
        raise InputError(
            f"Run {path.name} has {name} of {brief(about['dtype'])}, an array with fields: "
            "predictions are numbers or texts."
        )
    dtype: np.dtype[Any] = np.dtype(about["dtype"])
    return dtype


def _array(path: Path, records: Mapping[Path, Any], name: str) -> NDArray[Any]:
    # A function of the module, since predictions may be sent to other processes.
    return array_of(path, records[path], name)


def shared_labels(records: Mapping[Path, Mapping[str, Any]], evaluation: str, folder: Path) -> NDArray[Any] | None:
    """Read the true classes of the examples that runs were evaluated on, where they were stored."""
    digests = {r["labels"][evaluation]: p for p, r in records.items() if evaluation in r["labels"]}
    if len(digests) > 1:
        one, other = (path.name for path in list(digests.values())[:2])
        raise InputError(
            f"The runs in {format_path(folder)} were evaluated on different examples: {one} and {other} "
            f"have other labels for {brief(evaluation)}. Choose runs with where=, or run the study again."
        )
    return read_labels(folder, next(iter(digests))) if digests else None


def _trained_runs(folder: Path) -> dict[Path, dict[str, Any]]:
    """Read the records of a store by folder; searches for learning rates are no runs of a training."""
    return {Path(path): record for path, record in read_records(folder).items() if not is_search(record)}


def _matching(
    records: Mapping[Path, dict[str, Any]], where: Mapping[str, Any] | None, folder: Path, learner: str | None = None
) -> dict[Path, dict[str, Any]]:
    kept = dict(records)
    for name, value in {**(where or {}), **({} if learner is None else {"learner": learner})}.items():
        there = [_coordinate(r, name) for r in kept.values()]
        kept = {p: r for p, r in kept.items() if _coordinate(r, name) == value}
        if not kept:
            close = suggest(value, [t for t in there if isinstance(t, str)])
            raise InputError(
                f"No run of {format_path(folder)} has {brief(name)} = {brief(value)}.{close} There are "
                f"{list_names(_distinct(there))}."
            )
    return kept


def _coordinate(record: Mapping[str, Any], name: str) -> Any:
    """Return a coordinate of a run, or a part of its nudge; None where it has none."""
    about = record["coordinates"]
    if name in _NUDGES and name not in about:
        return (about.get("poke") or {}).get(name.removeprefix("poke_"))
    return about.get(name)


def _check_one_training(kept: Mapping[Path, dict[str, Any]], folder: Path) -> None:
    """Refuse runs that differ in more than chance: they are not runs of one training."""
    runs = [r["coordinates"] for r in kept.values()]
    names = [k for k in dict.fromkeys(k for about in runs for k in about) if not _is_chance(k)]
    differ, chosen = [], {}
    for name in sorted(names, key=lambda k: (_FIRST.index(k) if k in _FIRST else len(_FIRST), k)):
        there = _distinct([about.get(name) for about in runs])
        if len(there) < 2:
            continue
        there = sorted(there) if all(isinstance(v, int | float) for v in there) else there
        differ.append(f"{brief(name)} is {list_names(there)}")
        # One choice that works, all of it at once: the largest size, and what runs of that have.
        chosen[name] = there[-1] if name == "n" else there[0]
        runs = [about for about in runs if about.get(name) == chosen[name]]
    if differ:
        where = {k: v for k, v in chosen.items() if k != "learner"}
        ways = [arg("learner", chosen["learner"])] if "learner" in chosen else []
        ways += [arg("where", where)] if where else []
        raise InputError(
            f"The runs in {format_path(folder)} are of more than one training: {'; '.join(differ)}. Choose "
            f"one, such as {either(', ', ' ').join(ways)}."
        )


def _is_chance(name: str) -> bool:
    """Return whether runs of one training may differ in a coordinate."""
    return name in _CHANCE or name.endswith("_seed")


def trainings_in_store(folder: Path, where: Mapping[str, Any] | None) -> tuple[list[str], dict[str, Any]]:
    """List the learners of a store, and what else tells its trainings apart, with one value that all learners have."""
    kept = [r["coordinates"] for r in _matching(_trained_runs(folder), where, folder).values()]
    learners = _distinct([about["learner"] for about in kept if isinstance(about.get("learner"), str)])
    apart: dict[str, Any] = {}
    for name in dict.fromkeys(key for about in kept for key in about):
        if name in (*HASHES, "learner", "training") or _is_chance(name):
            continue
        there = [_distinct([about.get(name) for about in kept if about.get("learner") == k]) for k in learners]
        shared = [value for value in there[0] if all(value in values for values in there)] if there else []
        plain = bool(shared) and all(isinstance(v, int | float | str) for v in shared)
        if plain and any(len(values) > 1 for values in there):
            apart[name] = max(shared) if all(isinstance(v, int | float) for v in shared) else shared[0]
    return learners, apart


def _distinct(values: list[Any]) -> list[Any]:
    return list({json.dumps(value, sort_keys=True): value for value in values}.values())


ENDINGS = (".parquet", ".csv", ".json")
PACKAGES = ("curvewise", "numpy", "torch")
"""Packages whose versions stand in the table; records have more."""
_RENAMED: dict[tuple[str, ...], str] = {("coordinates", "subset"): "subset_digest"}
"""A hash, which readers of tables would take for the name of a split."""
Cells: TypeAlias = "dict[tuple[str, ...], Any]"
Columns: TypeAlias = "dict[str, list[Any]]"


def export_store(store: AnyPath, path: AnyPath, *, overwrite: bool = False) -> Path:
    """Write a table with a row for each run of a store.

    Its columns are id and status; the coordinates, with the keys of nested ones joined by dots, and
    ``subset``, the hash of the training examples, called ``subset_digest``;
    the metrics, called ``metrics.…`` where a coordinate has their name; ``failure``, the first line
    of the error, or the last of a traceback; ``notes``; and what it was made with,
    ``environment.…``. Lists are JSON text, and so is all of a column that holds values of several
    types. In a CSV file, texts that a spreadsheet would take for formulas get an apostrophe.

    Parameters
    ----------
    store : path
        Folder of the store.
    path : path
        File to write; ``.parquet``, ``.csv`` or ``.json`` says how.
    overwrite : bool
        Whether to replace a file that is there.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    InputError
        If the file is there already, or its ending is not known, or the store has no runs.
    StoreError
        If a record is damaged, or the file cannot be written.
    MissingDependencyError
        For Parquet without pyarrow: ``pip install "curvewise[parquet]"``.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.store.write import write_run
    >>> store = tempfile.mkdtemp()
    >>> coordinates = {"learner": "a, b", "n": 100, "training": {"rate": 0.1}}
    >>> path = write_run(store, coordinates, metrics={"error": 0.2})
    >>> print(export_store(store, f"{store}/runs.csv").read_text())
    id,status,learner,n,training.rate,error,failure,notes,...
    ...,done,"a, b",100,0.1,0.2,,,...
    """
    target = Path(path)
    if target.suffix.lower() not in ENDINGS:
        raise InputError(f"must end in {', '.join(ENDINGS)}.", argument="path", value=str(target))
    if target.is_dir() or (os.path.lexists(target) and not overwrite):
        problem = f"already exists: choose another name, or pass {arg('overwrite', True)}."
        raise InputError(problem, argument="path", value=str(target))
    if not target.parent.is_dir():
        raise InputError(f"there is no folder {target.parent}. Make it first.", argument="path", value=str(target))
    with without_collecting():
        runs = list_runs(store)
        if not runs:
            raise InputError("holds no runs: nothing to export.", argument="store", value=str(store))
        columns = run_columns(runs)
    rows = zip(*columns.values(), strict=True)
    if target.suffix.lower() == ".parquet":
        data = _as_parquet(columns)
    elif target.suffix.lower() == ".csv":
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\r\n")  # texts with either of the two are quoted
        writer.writerow(map(csv_cell, columns))
        writer.writerows(map(csv_cell, row) for row in rows)
        data = buffer.getvalue().encode(errors="backslashreplace")
    else:
        lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
        data = ("[\n" + ",\n".join(lines) + "\n]\n").encode()
    replace_file(target, data)
    return target


def run_columns(runs: Sequence[Run]) -> Columns:
    """Make the columns of the table, of plain values; None where a run has no such entry."""
    rows = [_cells(run) for run in runs]
    every = dict.fromkeys(key for row in rows for key in row)
    groups = ("", "coordinates", "metrics", "end", "environment")
    order = dict.fromkeys(sorted(every, key=lambda key: groups.index(key[0])))
    return {name: _of_one_type([row.get(key) for row in rows]) for key, name in _names(order).items()}


def _cells(run: Run) -> Cells:
    about = dict(run.environment)
    packages = about.pop("packages", None)
    if isinstance(packages, Mapping):
        about |= {f"packages.{k}": packages[k] for k in PACKAGES if k in packages}
    told = (run.error or "").strip().partition("\n")[0].rstrip()
    return {
        ("", "id"): run.id,
        ("", "status"): run.status,
        **_flat(("coordinates",), run.coordinates),
        **{("metrics", k): None if math.isnan(v) else v for k, v in run.metrics.items()},
        # The first line of a traceback says nothing.
        ("end", "failure"): reason_of(run.error or "") if told.startswith("Traceback ") else told or None,
        ("end", "notes"): " ".join(run.notes) or None,
        **_flat(("environment",), about),
    }


def _flat(head: tuple[str, ...], values: Mapping[str, Any]) -> Cells:
    found: Cells = {}
    for key, value in values.items():
        if isinstance(value, Mapping) and value:
            found |= _flat((*head, key), value)
        else:
            is_plain = not isinstance(value, Mapping | list)
            found[*head, key] = value if is_plain else json.dumps(value, sort_keys=True)
    return found


def _names(keys: Mapping[tuple[str, ...], None]) -> dict[tuple[str, ...], str]:
    """Name every column once; a later one of the same name is called by its group, too."""
    names: dict[tuple[str, ...], str] = {}
    taken: set[str] = {"failure", "notes"}
    for key in keys:
        group, *rest = key
        plain = _RENAMED.get(key) or ".".join(rest)
        tries = [plain] if group != "environment" else []
        tries += [f"{group}.{plain}", json.dumps(list(key), ensure_ascii=False)]
        names[key] = plain if group == "end" else next(name for name in tries if name not in taken)
        taken.add(names[key])
    return names


def _of_one_type(values: list[Any]) -> list[Any]:
    """Give a column one type, as Parquet needs; mixed values become JSON text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} and len(kinds) == 2:
        with suppress(OverflowError):  # whole numbers beyond all floats stay as they are, in text
            return [None if value is None else float(value) for value in values]
    if len(kinds) > 1:
        return [value if value is None or isinstance(value, str) else json.dumps(value) for value in values]
    return values


def _as_parquet(columns: Columns) -> bytes:
    with importing("Writing Parquet (rather than .csv) needs pyarrow", "parquet"):
        import pyarrow as pa
        import pyarrow.parquet as pq
    arrays = {}
    for name, values in columns.items():
        try:
            arrays[_unicode(name)] = pa.array([_unicode(v) for v in values])
        except (pa.ArrowInvalid, OverflowError):  # whole numbers beyond 64 bits
            arrays[_unicode(name)] = pa.array([None if v is None else str(v) for v in values])
    buffer = io.BytesIO()
    pq.write_table(pa.table(arrays), buffer)
    return buffer.getvalue()


def _unicode(value: Any) -> Any:
    """Write out halves of characters, which have no encoding."""
    if not isinstance(value, str):
        return value
    return value.encode(errors="backslashreplace").decode()
