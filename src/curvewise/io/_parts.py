"""Which array or column is predictions, labels, runs: by its name, or by the user's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from curvewise.errors import InputError
from curvewise.io._columns import SYNONYMS, normal
from curvewise.io._table import brief, listed, suggest

PartMap: TypeAlias = Mapping[str, str | None]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


KIND_OF: dict[str, str | None] = {
    "prediction": None,
    "error": "errors",
    "correct": "correct",
    "loss": "losses",
    "score": "scores",
    "probability": "probabilities",
}
"""Parts that can be the values, and the kind that each is; predictions may be of two kinds."""

# Compared as names of measurements are: in lower case, with underscores for all other characters.
_KNOWN: dict[str, frozenset[str]] = {
    "prediction": _names("""
        prediction predictions pred preds y_pred ypred y_preds y_hat yhat predicted predicted_label
        predicted_labels pred_label pred_labels label_pred labels_pred labels_predicted
        label_predicted predicted_class predicted_classes pred_class pred_classes"""),
    "error": _names("error errors err errs is_error is_wrong wrong mistake mistakes incorrect"),
    "correct": _names("correct is_correct correctness hit hits right"),
    "loss": _names("loss losses nll log_loss cross_entropy example_loss example_losses"),
    "score": _names("pass1 pass_1 pass_at_1 pass_rate"),
    "probability": _names("""
        probability probabilities prob probs proba probas logit logits y_prob y_probs y_proba
        softmax"""),
    "label": _names("""
        label labels target targets y_true ytrue true_label true_labels label_true labels_true
        true_class true_classes truth ground_truth gold gold_label gold_labels y_test test_label
        test_labels"""),
    "group": _names("""
        group groups group_id group_ids passage passage_id passage_ids video video_id video_ids
        cluster cluster_id cluster_ids document document_id doc_id"""),
    "run": _names("run runs run_id run_ids run_name run_names run_index run_number"),
    "example": _names("""
        example example_id example_ids example_index example_idx example_name examples item item_id
        item_ids question question_id question_ids qid instance instance_id instance_ids
        test_index"""),
    "repeat": _names("""
        repeat repeat_id repetition sample sample_id sample_index sample_idx draw generation
        completion attempt"""),
    "learner": SYNONYMS["learner"] | _names("training training_name recipe config"),
    "packed": _names("packed packed_examples n_examples num_examples"),
}
# These are taken only where no better name is there.
_ELSE: dict[str, frozenset[str]] = {
    "label": _names("y"),
    "run": SYNONYMS["seed"] | _names("seeds trial trial_id replicate"),
    "example": _names("id ids index idx uid"),
}
PARTS = tuple(_KNOWN)
IF_WIDE = (
    "If the table is wide, with a row or a column for each run, pass axes=('runs', 'examples') "
    "where rows are runs or axes=('examples', 'runs') where columns are."
)
_OTHERS = {
    "array": ("label", "group", "run", "example", "packed"),
    "column": ("label", "group", "run", "example", "repeat", "learner"),
}


@dataclass(frozen=True)
class Parts:
    """The name of what holds the values, its kind where known, and the names of other parts.

    ``predicted`` says that the name speaks of predictions, which mean nothing without labels.
    """

    value: str
    kind: str | None
    others: Mapping[str, str] = field(default_factory=dict)
    unread: tuple[str, ...] = ()
    predicted: bool = False


def part_of(name: str) -> str | None:
    """What a name is known as.

    >>> part_of("Y_true"), part_of("logits"), part_of("Run ID"), part_of("epoch")
    ('label', 'probability', 'run', None)
    """
    plain = normal(name)
    every = [*_KNOWN.items(), *_ELSE.items()]
    return next((part for part, known in every if plain in known), None)


def find_parts(
    names: Sequence[str],
    source: str,
    *,
    noun: str = "array",
    key: str | None = None,
    kind: str | None = None,
    columns: PartMap | None = None,
) -> Parts:
    """Find the values and whatever comes with them among named arrays or columns."""
    said = check_map(columns, names, source, noun)
    others = find_others(names, source, said, noun)
    chosen = [(part, name) for part in KIND_OF if (name := said.get(part)) is not None]
    if key is not None:
        _check_there(key, names, source, f"key={brief(key)}", noun)
        chosen = [(part_of(key) or "", key)]
    elif len(names) == 1 and not chosen:
        chosen = [(part_of(names[0]) or "", names[0])]
        others = {}
    elif not chosen:
        left = [name for name in names if name not in others.values()]
        chosen = _candidates(left, said, kind)
    if len(chosen) != 1:
        raise _which(chosen, names, source, noun, kind)
    part, value = chosen[0]
    known = kind or KIND_OF.get(part)
    others = {part: name for part, name in others.items() if name != value}
    unread = tuple(name for name in names if name != value and name not in others.values())
    return Parts(value, known, others, unread, part in ("prediction", "label"))


def find_others(names: Sequence[str], source: str, said: PartMap, noun: str) -> dict[str, str]:
    """Find the parts that are not the values: labels, groups, runs and so on."""
    taken = set(said.values())
    found: dict[str, str] = {}
    for part in _OTHERS[noun]:
        if part in said:
            there = [name for name in (said[part],) if name is not None]
        else:
            free = [name for name in names if name not in taken]
            there = [name for name in free if normal(name) in _KNOWN[part]]
            there = there or [n for n in free if normal(n) in _ELSE.get(part, ())]
        if len(there) > 1:
            raise InputError(
                f"{len(there)} {noun}s of {source} could be the {part}: {listed(there)}. Choose "
                f"with columns={{{part!r}: {brief(there[0])}}}, or leave it out with None."
            )
        if there:
            found[part] = there[0]
    return found


def check_map(
    columns: PartMap | None, names: Sequence[str], source: str, noun: str
) -> dict[str, str | None]:
    """Check that the user's map speaks of known parts and of names that are there."""
    said = dict(columns or {})
    for part, name in said.items():
        if part not in PARTS:
            raise InputError(
                f"columns has the key {brief(part)}, which is no part of predictions."
                f"{suggest(part, PARTS)} Parts are {', '.join(PARTS)}."
            )
        if name is not None:
            _check_there(name, names, source, f"columns={{{part!r}: {brief(name)}}}", noun)
    given = [name for name in said.values() if name is not None]
    if len(set(given)) < len(given):
        twice = next(name for name in given if given.count(name) > 1)
        raise InputError(f"columns gives {brief(twice)} two parts to play: it can play one.")
    return said


def _check_there(name: str, names: Sequence[str], source: str, setting: str, noun: str) -> None:
    if name not in names:
        raise InputError(
            f"{setting}: {source} has no such {noun}.{suggest(name, names)} It has {listed(names)}."
        )


def _candidates(names: Sequence[str], said: PartMap, kind: str | None) -> list[tuple[str, str]]:
    """Values by name; where the user says the kind, those that can be of it."""
    found = [(part, name) for name in names if (part := part_of(name)) in KIND_OF]
    found = [(part, name) for part, name in found if part is not None and part not in said]
    if kind is None:
        return found
    exact = [(part, name) for part, name in found if KIND_OF[part] == kind]
    return exact or [(part, name) for part, name in found if part == "prediction"]


def _which(
    chosen: Sequence[tuple[str, str]],
    names: Sequence[str],
    source: str,
    noun: str,
    kind: str | None,
) -> InputError:
    def way(name: str) -> str:
        if noun == "array":
            return f"key={brief(name)}"
        part = part_of(name) if part_of(name) in KIND_OF else "prediction"
        return f"columns={{{part!r}: {brief(name)}}}"

    if chosen:
        there = [name for _, name in chosen]
        more = "" if kind else ", or say which kind= is meant"
        return InputError(
            f"{len(there)} {noun}s of {source} could be the predictions: {listed(there)}. Choose "
            f"with {way(there[0])}{more}."
        )
    wanted = f" of kind={kind!r}" if kind else ""
    choices = [name for name in names if part_of(name) is None] or list(names)
    wide = f" {IF_WIDE}" if noun == "column" else ""
    return InputError(
        f"No {noun} of {source} is known as predictions{wanted}. It has {listed(names)}: say which "
        f"with {way(choices[0])}, or name it preds, errors, correct, losses or probabilities.{wide}"
    )
