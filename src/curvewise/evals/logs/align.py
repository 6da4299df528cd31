"""Blocks of scores into one array of models × questions × samples, aligned by question."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from curvewise.errors import InputError, Message, arg, brief, either, list_names
from curvewise.evals.evals import Evals
from curvewise.evals.logs.block import Block, Names, one_name
from curvewise.evals.logs.choice import EvalChoice, Selection, choose_filters, choose_metrics, code_of, used
from curvewise.reading.roles import direction
from curvewise.reading.table import natural
from curvewise.text import format_count
from curvewise.types.results import FloatArray

Question = tuple[str, str]
"""A task and the id of a question in it."""


@dataclass
class _Rows:
    """Rows of all blocks, as codes: the model, the question, the training seed, the sample, the log; and the score.

    ``models``, ``questions`` and ``seeds`` are what the codes stand for, ``logs`` the name and the model of each log;
    ``numbered`` says that samples have numbers.
    """

    model: NDArray[np.int32]
    question: NDArray[np.int32]
    seed: NDArray[np.int32]
    sample: NDArray[np.int32]
    score: FloatArray
    log: NDArray[np.int32]
    models: Sequence[str]
    questions: Sequence[Question]
    logs: list[tuple[str, str]]
    seeds: list[str]
    numbered: bool

    def keep(self, rows: NDArray[np.bool_]) -> None:
        for name in ("model", "question", "seed", "sample", "score", "log"):
            setattr(self, name, getattr(self, name)[rows])


def align(selection: Selection, choice: EvalChoice) -> Evals:
    """Align the blocks, of one metric and one filter for each task."""
    order = selection.order
    metrics = choose_metrics(selection.blocks, choice.metric)
    filters, notes = choose_filters(selection.blocks, choice.filter)
    blocks, logs = _chosen_rows(selection, metrics, filters)
    tasks, questions, columns = align_questions(blocks)
    if any(not id_ for _, id_ in questions):
        raise InputError(f"{blocks[0].source} or a log beside it has samples without an id: they cannot be aligned.")
    warnings = [*selection.warnings, *_dated(order), *_differences(blocks, columns, questions)]
    names = sorted(set(metrics.values()))
    rows = _concatenate(blocks, logs, metrics, order, questions, columns)
    of_task = np.array([tasks.index(task) for task, _ in questions])[rows.question] if len(tasks) > 1 else None
    higher, guessed = _direction(blocks, names, choice)
    if np.isinf(rows.score).any():
        raise InputError("a score is infinite: correct it, or leave the sample without a score.")
    if np.isnan(rows.score).all():
        raise InputError(f"no sample has a score of the metric {list_names(names)}.")
    owners = [(rows.model, order)] if of_task is None else [(rows.model, order), (of_task, tasks)]
    mixed = next(filter(None, (_two_scales(rows.score, *each) for each in owners)), "")
    low, high = _scale(rows.score, blocks, names, choice, higher, mixed)
    if mixed and np.isfinite(high):  # a loss has no such scale
        warnings.append(f"{mixed}: are they on one scale?")
    worst = low if higher else high
    _check_repeats(rows, selection.merged, choice.repeats)
    unscored = np.flatnonzero(np.isnan(rows.score))
    lost = ""
    if unscored.size:
        model, question = order[rows.model[unscored[0]]], questions[rows.question[unscored[0]]][1]
        lost = (
            f"{format_count(len(unscored), 'sample')} without a score, the first of {brief(model)} on {brief(question)}"
        )
    if unscored.size and choice.missing == "wrong":
        rows.score = np.nan_to_num(rows.score, nan=_finite(worst))
    elif unscored.size and choice.missing == "drop":
        rows.keep(~np.isnan(rows.score))
    scores, seeds = _place(rows, choice.repeats)
    fields: dict[str, Any] = {
        "questions": _shown(questions, tasks),
        "groups": _groups(blocks, columns, questions),
        "tasks": np.array([task for task, _ in questions]) if len(tasks) > 1 else None,
    }
    scores, fields, filled = _fill(scores, seeds, fields, rows, lost, choice.missing, worst)
    names = list(dict.fromkeys(metrics.values()))
    about = [*selection.notes, f"metric {list_names(names)}"]
    about += [f"filter {list_names(dict.fromkeys(filters.values()))}"] if set(filters.values()) - {"none"} else []
    about += [f"task {brief(tasks[0])}"] if len(tasks) == 1 and tasks[0] else []
    return Evals(
        scores,
        order,
        **fields,
        seeds=seeds,
        range=(low, high),
        higher_is_better=higher,
        metric=", ".join(names),
        notes=tuple(map(Message, filter(None, [*about, *notes, guessed, filled]))),
        warnings=tuple(dict.fromkeys(map(Message, warnings))),
    )


def _chosen_rows(
    selection: Selection, metrics: Mapping[str, str], filters: Mapping[str, str]
) -> tuple[list[Block], list[tuple[str, ...]]]:
    """Keep the rows of the chosen metric and filter of each task."""
    kept = []
    for block, log in zip(selection.blocks, selection.logs, strict=True):
        # A table with a column of metrics is a block for each of them.
        has = np.array([metrics.get(task) in block.scores for task in block.task.names])
        rows = block if has.all() else block.keep(has[block.task.codes])
        if rows.filter is not None:
            wanted = np.array([code_of(rows.filter.names, filters.get(task, "")) for task in rows.task.names])
            rows = rows.keep(rows.filter.codes == wanted[rows.task.codes])
        if len(rows):
            kept.append((rows, log))
    return [block for block, _ in kept], [log for _, log in kept]


def align_questions(blocks: Sequence[Block]) -> tuple[list[str], list[Question], list[NDArray[np.int32]]]:
    """Return the tasks and all questions, in natural order, and for each block the question of each row."""
    pairs = [_pair_codes(block) for block in blocks]
    questions = sorted({key for _, keys in pairs for key in keys}, key=lambda key: (natural(key[0]), natural(key[1])))
    place = {key: i for i, key in enumerate(questions)}
    columns = [np.array([place[key] for key in keys], dtype=np.int32)[codes] for codes, keys in pairs]
    return list(dict.fromkeys(task for task, _ in questions)), questions, columns


def _pair_codes(block: Block) -> tuple[NDArray[Any], list[Question]]:
    """Return a code for the task and question of each row, and the pair that each code stands for."""
    tasks, ids = block.task.names, block.question.names
    pair = block.task.codes.astype(np.int64) * len(ids) + block.question.codes
    if len(tasks) * len(ids) > 4 * len(pair):
        there, codes = np.unique(pair, return_inverse=True)
    else:  # counting is several times quicker than sorting millions of rows
        there = np.flatnonzero(np.bincount(pair, minlength=len(tasks) * len(ids)))
        place = np.zeros(len(tasks) * len(ids), dtype=np.int32)
        place[there] = np.arange(len(there))
        codes = place[pair]
    return codes, [(tasks[i // len(ids)], ids[i % len(ids)]) for i in there.tolist()]


def _shown(questions: Sequence[Question], tasks: Sequence[str]) -> NDArray[np.str_]:
    """Return the ids of questions, which begin with their task where there are several."""
    # A table that was written from such ids has the task in them already.
    bare = {task for task, id_ in questions if task and not id_.startswith(f"{task}/")} if len(tasks) > 1 else set()
    return np.array([f"{task}/{id_}" if task in bare else id_ for task, id_ in questions])


_DAY = r"(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12]\d|3[01])"
_DATE = re.compile(rf"[-_@:. ]?(?:20\d\d[-_.]?{_DAY}|(?<!\d){_DAY})(?=$|[-_@:. /])")
"""A day at the end of a word: 2024-08-06, 20240806, or 0613."""


def _dated(models: Sequence[str]) -> list[str]:
    """Warn of models whose names differ only by a date or by capital letters."""
    alike: dict[str, list[str]] = {}
    for name in models:
        alike.setdefault(_DATE.sub("", name).lower(), []).append(name)
    return [
        f"{list_names(names, 4)} differ only by a date or by capital letters: they are taken as different models."
        for names in alike.values()
        if len(names) > 1
    ]


def _differences(
    blocks: Sequence[Block], columns: Sequence[NDArray[np.int32]], questions: Sequence[Question]
) -> list[str]:
    """Warn where models were given different versions of a task, or different questions under the same id."""
    found = []
    settings: dict[tuple[str, str], dict[str, str]] = {}
    for block in blocks:
        for name, value in block.settings.items():
            for task in used(block.task):
                settings.setdefault((task, name), {}).setdefault(value, used(block.model)[0])
    for (task, name), values in settings.items():
        if len(values) > 1:
            versions = " and ".join(f"{brief(value)} for {brief(model)}" for value, model in list(values.items())[:2])
            found.append(f"the task {brief(task)} is not the same for all models: {name} is {versions}.")
    for kind in dict.fromkeys(kind for block in blocks for kind in block.hashes):
        found += _different_hashes(kind, blocks, columns, questions)
    return found


def _different_hashes(
    kind: str, blocks: Sequence[Block], columns: Sequence[NDArray[np.int32]], questions: Sequence[Question]
) -> list[str]:
    """Warn of questions whose hash is not the same in all logs."""
    hashed = [(block, where) for block, where in zip(blocks, columns, strict=True) if kind in block.hashes]
    hashes, _ = _one_column([block.hashes[kind] for block, _ in hashed])
    owner, models = _one_column([block.model for block, _ in hashed])
    first, other = _first_and_other(np.concatenate([where for _, where in hashed]), hashes, len(questions))
    differ = np.flatnonzero(other != -1)
    if not differ.size:
        return []
    question = int(differ[0])
    a, b = (models[int(owner[int(rows[question])])] for rows in (first, other))
    pair = f"{brief(a)} and {brief(b)}" if a != b else f"two logs of {brief(a)}"
    count = f"{len(differ):,} of {format_count(len(questions), 'question')}"
    example = f"{kind}; the first is {brief(questions[question][1])}"
    if kind == "prompt_hash":
        return [
            f"{count} were asked with other prompts of {pair} ({example}): the few-shot examples or the chat template "
            "differ."
        ]
    return [f"{count} have the same id and another text for {pair} ({example}): are these the same data?"]


def _one_column(columns: Sequence[Names]) -> tuple[NDArray[np.int32], list[str]]:
    """Put columns of names below one another; an empty name is -1."""
    codes: dict[str, int] = {"": -1}
    own = [[codes.setdefault(name, len(codes) - 1) for name in names.names] for names in columns]
    parts = [np.array(place, dtype=np.int32)[names.codes] for place, names in zip(own, columns, strict=True)]
    return np.concatenate(parts), list(codes)[1:]


def _first_and_other(
    where: NDArray[np.int32], value: NDArray[np.int32], count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return for each question the first row with a value, and the first one with another value; -1 for none."""
    first, other = np.full((2, count), -1)
    rows = np.flatnonzero(value != -1)[::-1]
    first[where[rows]] = rows  # of several rows the last written stays, which is the first one here
    odd = rows[value[rows] != value[first[where[rows]]]]
    other[where[odd]] = odd
    return first, other


def _groups(
    blocks: Sequence[Block], columns: Sequence[NDArray[np.int32]], questions: Sequence[Question]
) -> NDArray[np.str_] | None:
    """Return the group of each question, on which all rows must agree."""
    grouped = [(block.group, where) for block, where in zip(blocks, columns, strict=True) if block.group is not None]
    if not grouped:
        return None
    group, names = _one_column([own for own, _ in grouped])
    first, other = _first_and_other(np.concatenate([where for _, where in grouped]), group, len(questions))
    if (bad := np.flatnonzero(other != -1)).size:
        question = int(bad[0])
        both = sorted(names[int(group[int(rows[question])])] for rows in (first, other))
        raise InputError(
            f"the question {brief(questions[question][1])} is in the groups {list_names(both)}: a question belongs to "
            "one group."
        )
    lost = np.flatnonzero(first == -1)
    if len(lost) == len(questions):
        return None
    if lost.size:
        raise InputError(
            f"{len(lost):,} of {format_count(len(questions), 'question')} have no group, the first is "
            f"{brief(questions[lost[0]][1])}: name a group for each, its own id where it stands alone."
        )
    groups: NDArray[np.str_] = np.array(names)[group[first]]
    return groups


def _concatenate(
    blocks: Sequence[Block],
    logs: Sequence[Sequence[str]],
    metrics: Mapping[str, str],
    order: Sequence[str],
    questions: Sequence[Question],
    columns: Sequence[NDArray[np.int32]],
) -> _Rows:
    """Put the rows of all blocks below one another."""

    def column(name: str) -> tuple[NDArray[np.int32], list[str]]:
        codes, names = _one_column([getattr(block, name) or one_name("", len(block)) for block in blocks])
        return codes + 1, ["", *names]

    (model, models), (seed, seeds), (sample, samples) = map(column, ("model", "seed", "sample"))
    place = {name: i for i, name in enumerate(sorted(samples, key=natural))}
    starts = np.cumsum([0, *map(len, logs)]).tolist()
    return _Rows(
        model=np.array([code_of(order, name) for name in models], dtype=np.int32)[model],
        question=np.concatenate(columns),
        seed=seed,
        sample=np.array([place[name] for name in samples], dtype=np.int32)[sample],
        score=np.concatenate([_chosen_scores(block, metrics) for block in blocks]),
        models=order,
        questions=questions,
        log=np.concatenate([block.model.codes + np.int32(start) for block, start in zip(blocks, starts, strict=False)]),
        logs=[
            pair for block, log in zip(blocks, logs, strict=True) for pair in zip(log, block.model.names, strict=True)
        ],
        seeds=seeds,
        numbered=len(samples) > 1,
    )


def _chosen_scores(block: Block, metrics: Mapping[str, str]) -> FloatArray:
    wanted = [metrics.get(task, "") for task in block.task.names]
    if len(block.scores) == 1 or len(set(wanted)) == 1:
        return block.scores[next(name for name in wanted if name in block.scores)]
    scores = np.full(len(block), np.nan)
    for metric, values in block.scores.items():
        rows = np.array([name == metric for name in wanted])[block.task.codes]
        scores[rows] = values[rows]
    return scores


def _finite(worst: float) -> float:
    if not np.isfinite(worst):
        raise InputError(
            f"{arg('missing', 'wrong')} gives the worst possible score, and this one has no bound: pass "
            f"{arg('range', (0, 1))} with the right numbers."
        )
    return worst


def _direction(blocks: Sequence[Block], names: Sequence[str], choice: EvalChoice) -> tuple[bool, str]:
    """Return whether high scores are better, as asked or as the logs or the names of the metrics say; with a note."""
    if choice.higher_is_better is not None:
        return choice.higher_is_better, ""
    known: dict[str, set[bool | None]] = {m: {b.higher[m] for b in blocks if m in b.higher} for m in names}
    known = {m: values or {direction(m)} for m, values in known.items()}
    directions = {value for values in known.values() for value in values if value is not None}
    if len(directions) > 1:
        raise InputError(f"of the metrics {list_names(names)} some are better high and some low: read them apart.")
    higher = directions.pop() if directions else True
    unknown = [m for m, values in known.items() if values == {None}]
    if not unknown:
        return higher, ""
    name = f"name {brief(unknown[0])} does" if len(unknown) == 1 else f"names {list_names(unknown)} do"
    return higher, (
        f"{'high' if higher else 'low'} scores are taken to be better (the {name} not say): otherwise pass"
        f" {arg('higher_is_better', not higher)}"
    )


def _scale(
    score: FloatArray, blocks: Sequence[Block], names: Sequence[str], choice: EvalChoice, higher: bool, mixed: str
) -> tuple[float, float]:
    """Return the range of the score: as asked, as the logs say, or 0 to 1."""
    least, most = float(np.nanmin(score)), float(np.nanmax(score))
    if mixed and choice.range is None:
        wide = arg("range", (0, _round_top(most))) if higher else either("range=(0, np.inf)", "--range=0,inf")
        raise InputError(
            f"{mixed}: are some fractions and some percentages? Bring them to one scale, or pass {wide} if they are on "
            "one."
        )
    declared = {block.ranges[m] for block in blocks for m in names if m in block.ranges}
    if choice.range is not None:
        low, high = choice.range
    elif len(declared) == 1:
        low, high = declared.pop()
    elif declared:
        raise InputError(
            f"the logs give the score the ranges {list_names(sorted(declared))}: pass one as {arg('range')}."
        )
    else:
        low, high = 0.0, 1.0
    if least < low or most > high:
        top = _round_top(most)
        guess = (-_round_top(-least), top) if least < 0 else (int(least >= 1), top)
        raise InputError(
            f"scores go from {least:g} to {most:g}, outside of {low:g} to {high:g}: pass the lowest and the highest "
            f"possible score, such as {arg('range', guess)}, or "
            f"{either('range=(-np.inf, np.inf)', '--range=-inf,inf')} if it has no bounds."
        )
    return low, high


def _two_scales(score: FloatArray, owner: NDArray[Any], names: Sequence[str]) -> str:
    """Say that some models or tasks have scores up to 1 and others far beyond, where it is so."""
    most = float(np.nanmax(score))
    if most <= 1 or np.nanmin(score) < 0:
        return ""
    top = np.zeros(len(names))
    np.fmax.at(top, owner, score)  # NaN is never the larger one
    small = (top <= 1) & (top > 0)
    if not small.any():
        return ""
    a, b = names[int(np.argmax(small))], names[int(np.argmax(top))]
    return f"scores of {brief(a)} go up to {top[small].max():g} and those of {brief(b)} to {most:g}"


def _round_top(value: float) -> int:
    return next((top for top in (1, 2, 5, 10, 100) if value <= top), int(np.ceil(value)))


# Several logs of one model, and samples of one cell.


def _check_repeats(rows: _Rows, merged: Collection[str], repeats: str | None) -> None:
    """Make seeds or samples of several logs of one model on the same questions, or refuse them."""
    of_model: dict[str, list[int]] = {}
    for log, (_, name) in enumerate(rows.logs):
        of_model.setdefault(name, []).append(log)
    for m, name in enumerate(rows.models):
        own = of_model.get(name, [])
        if len(own) < 2:
            continue
        mine = rows.model == m
        taken = np.zeros((len(own), len(rows.questions)), dtype=np.bool_)
        taken[np.searchsorted(own, rows.log[mine]), rows.question[mine]] = True
        both = np.count_nonzero(taken, axis=0) > 1
        if not both.any():  # parts of a benchmark in several files
            continue
        how = repeats or ("seeds" if name in merged else None)
        if how is None:
            hit = [i for i, row in zip(own, taken, strict=True) if row[both].any()]
            raise _twice(name, [rows.logs[i][0] for i in hit], int(both.sum()))
        for log in own if how == "seeds" else ():  # a seed of each log, and of each seed within it
            here = mine & (rows.log == log)
            for seed in np.unique(rows.seed[here]).tolist():
                rows.seeds.append(" ".join(filter(None, (rows.logs[log][0], rows.seeds[seed]))))
                rows.seed[here & (rows.seed == seed)] = len(rows.seeds) - 1


def _twice(name: str, sources: Sequence[str], count: int) -> InputError:
    pair = {f"{name} {i}": source for i, source in enumerate(sources[:2], 1)}
    return InputError(
        f"{brief(name)} is in {len(sources)} logs with the same {format_count(count, 'question')}: "
        f"{list_names(sources, 4)}. Read one of them; or say that they are further samples, "
        f"{arg('repeats', 'samples')}, or trainings with different seeds, {arg('repeats', 'seeds')}; or name them "
        f"apart: {arg('models', pair)}."
    )


def _place(rows: _Rows, repeats: str | None) -> tuple[FloatArray, NDArray[np.str_] | None]:
    """Put each score into its place: models × questions × samples, those of one seed side by side."""
    M, Q = len(rows.models), len(rows.questions)
    # The training seeds of each model, in natural order, and the place of each row's seed among them.
    taken = np.zeros((M, len(rows.seeds)), dtype=np.bool_)
    taken[rows.model, rows.seed] = True
    ranked = sorted(range(len(rows.seeds)), key=lambda i: natural(rows.seeds[i]))
    names = [[rows.seeds[i] for i in ranked if own[i]] for own in taken]
    place = np.empty_like(taken, dtype=np.int32)
    place[:, ranked] = np.cumsum(taken[:, ranked], axis=1) - 1
    seed, S = place[rows.model, rows.seed], max(map(len, names))
    cell = (rows.model.astype(np.int64) * Q + rows.question) * S + seed
    # Samples of several logs, where that is what these are, stand behind one another.
    many = len(rows.logs), int(rows.sample.max(initial=0)) + 1
    keys = (cell * many[0] + rows.log) * many[1] + rows.sample
    together = np.argsort(keys, kind="stable")
    keys = keys[together]
    same = np.flatnonzero(keys[1:] == keys[:-1])
    if same.size and (rows.numbered or repeats != "samples"):
        raise _duplicate(together[same[0]], together[same[0] + 1], rows)
    places = np.arange(len(cell), dtype=np.int32)
    keys //= many[0] * many[1]
    starts = np.r_[True, keys[1:] != keys[:-1]]
    slot = np.empty_like(places)
    slot[together] = places - np.maximum.accumulate(np.where(starts, places, 0))
    counts = np.bincount(cell, minlength=M * Q * S).reshape(M, Q, S).max(axis=1)
    before = np.cumsum(counts, axis=1) - counts
    K = max(1, int(counts.sum(axis=1).max()))
    scores = np.full((M, Q, K), np.nan)
    scores[rows.model, rows.question, before[rows.model, seed] + slot] = rows.score
    if S == 1:  # one training of each model, whatever its seed: nothing varies
        return scores, None
    seeds = np.full((M, K), "", dtype=object)
    for m, own in enumerate(names):
        for s, name in enumerate(own):
            # A model of which one training is known has one seed, whatever it was.
            seeds[m, before[m, s] : before[m, s] + counts[m, s]] = name or "0"
    return scores, seeds.astype(np.str_)


def _duplicate(first: int, second: int, rows: _Rows) -> InputError:
    task, question = rows.questions[rows.question[first]]
    of_task = f" of the task {brief(task)}" if task else ""
    remedy = (
        "Remove one of them; or name the column that tells them apart: "
        f"{arg('columns', {'sample': 'COLUMN'})}, {arg('columns', {'task': 'COLUMN'})} or "
        f"{arg('columns', {'filter': 'COLUMN'})}"
    )
    again = "" if rows.numbered else f"; or pass {arg('repeats', 'samples')} if they are samples of the same question"
    what = "the same sample of the question" if rows.numbered else "the question"
    files = list(dict.fromkeys(rows.logs[rows.log[row]][0] for row in (first, second)))
    return InputError(
        f"{brief(rows.models[rows.model[first]])} has {what} {brief(question)}{of_task} twice, in "
        f"{' and in '.join(files)}. {remedy}{again}."
    )


# Cells without a score.


def _fill(
    scores: FloatArray,
    seeds: NDArray[np.str_] | None,
    fields: dict[str, Any],
    rows: _Rows,
    lost: str,
    missing: str,
    worst: float,
) -> tuple[FloatArray, dict[str, Any], str]:
    """Treat pairs of model and question without a score as asked, and say how many there were."""
    present = np.isfinite(scores)
    everything = np.ones(scores.shape[2], dtype=np.bool_)
    slots = [[everything]] * len(scores)
    if seeds is not None:  # a question that one training of a model lacks is missing as well
        slots = [[own == s for s in dict.fromkeys(own.tolist()) if s] or [everything] for own in seeds]
    gaps = [(m, slot, ~present[m][:, slot].any(axis=1)) for m, own in enumerate(slots) for slot in own]
    empty = np.zeros(present.shape[:2], dtype=np.bool_)
    for m, _, gap in gaps:
        empty[m] |= gap
    count = int(empty.sum())
    if not count and not lost:
        return scores, fields, ""
    cells = f"{count:,} of {empty.size:,} pairs of model and question without a score" if count else ""
    what = ", ".join(filter(None, (cells, lost)))
    if missing == "wrong" and not empty.all(axis=1).any():  # a model without any score has none to correct
        value = _finite(worst)
        for m, slot, gap in gaps:
            # As many samples as the model has of most questions, at least one.
            usual = present[m][~gap][:, slot].sum(axis=0) * 2 >= max(1, int((~gap).sum()))
            usual[0] |= not usual.any()
            scores[m, np.flatnonzero(gap)[:, None], np.flatnonzero(slot)[usual]] = value
        return scores, fields, f"{what}: counted as {value:g}"
    kept = ~np.any(empty, axis=0)
    if missing == "drop" and np.any(kept):
        fields = {name: None if values is None else values[kept] for name, values in fields.items()}
        dropped = f", and {format_count(int((~kept).sum()), 'question')} of {len(kept):,} dropped" if count else ""
        return scores[:, kept], fields, f"{what}: left out{dropped}"
    what = f"no question is left: {what}" if missing == "drop" else what
    raise _refuse_missing(what, empty, rows.models, rows.questions, seeds is not None)


def _refuse_missing(
    what: str, empty: NDArray[np.bool_], order: Sequence[str], questions: Sequence[Question], seeded: bool
) -> InputError:
    """Say which models lack which questions, and what can be done."""
    left = int((~empty.any(axis=0)).sum())
    apart = not seeded and len(order) > 1 and not np.any((~empty).sum(axis=0) > 1)
    tasks = np.array([task for task, _ in questions])
    names = list(dict.fromkeys(tasks.tolist()))
    whole = {task: [m for m in range(len(order)) if not empty[m][tasks == task].all()] for task in names}
    if not seeded and len(names) > 1 and any(len(having) < len(order) for having in whole.values()):
        listed = "; ".join(
            f"{brief(task)}: {list_names([order[m] for m in having], 2) or 'no model'}"
            for task, having in list(whole.items())[:5]
        )
        more = f"; and {len(names) - 5} more tasks" if len(names) > 5 else ""
        common = max(names, key=lambda task: len(whole[task]))
        drop = f"; or pass {arg('missing', 'drop')} to leave out questions that not all models have" if left else ""
        remedy = f"Choose with {arg('task', common)}, or {arg('models')}{drop}."
        if apart:
            remedy = f"Give logs of the same tasks, or read one model by itself with {arg('models', order[0])}."
        same = "the models were not given the same tasks" + (", and no two share a question" if apart else "")
        return InputError(f"{what}: {same}. {listed}{more}. {remedy}")
    none = [name for name, own in zip(order, empty, strict=True) if own.all()]
    if not seeded and none and len(order) > 1:
        others = [name for name in order if name not in none]
        remedy = (
            f"Choose models that were given the same questions, such as {arg('models', others[:5])}." if others else ""
        )
        verb = "has" if len(none) == 1 else "have"
        return InputError(
            f"{what}: {list_names(none, 3)} {verb} none of the {len(questions):,} questions, or not with this metric "
            f"and filter. {remedy}".strip()
        )
    where = " in one of its trainings" if seeded else ""
    lacking = [m for m in range(len(order)) if empty[m].any()]
    first = {m: questions[int(np.argmax(empty[m]))][1] for m in lacking[:3]}
    each = "; ".join(
        f"{brief(order[m])} lacks {int(empty[m].sum()):,}{where}, the first {brief(name)}" for m, name in first.items()
    )
    more = f"; and {len(lacking) - 3} more models" if len(lacking) > 3 else ""
    remain = f"{left:,} of {format_count(len(questions), 'question')} would remain"
    drop = f", or {arg('missing', 'drop')} to leave them out ({remain})" if left else ""
    hint = ""
    if apart:
        return InputError(
            f"{what}: {each}{more}. No two models share a question: are the ids of the same questions written alike? "
            f"If they are, each model can only be read by itself, with {arg('models', order[0])}."
        )
    if not left and seeded:
        hint = f" If seeds are not those of trainings, pass {arg('columns', {'seed': None})}."
    elif not left and len(order) > 1:
        hint = " No question has a score of every model: are the ids of the same questions written alike?"
    return InputError(
        f"{what}{f': {each}{more}' if lacking else ''}.{hint} Pass "
        f"{arg('missing', 'wrong')} to count them as wrong{drop}."
    )
