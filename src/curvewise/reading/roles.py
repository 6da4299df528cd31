"""One engine that finds the column for each role: a lens gives the table of roles, the user may overrule it.

A role is known by names (``train_size`` is n), by words in a name (``err_valid_mean`` is a value) or by the cells
(a status holds nothing but *finished*, *failed*, …). Where two columns could have a role, that is an error which says
how to choose; nothing is guessed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from curvewise.errors import InputError, arg, brief, list_names, suggest
from curvewise.reading.table import LEADING_ZERO, Column, Table, is_missing, names_in, numbers, parse, texts
from curvewise.types.results import FloatArray, Unit, same_names

ColumnMap: TypeAlias = Mapping[str, str | Sequence[str] | None]
"""The user's choice: the column of each role, several where a role may have them, None to leave it out."""


def synonyms(text: str) -> frozenset[str]:
    """Split a text into a set of names."""
    return frozenset(text.split())


@dataclass(frozen=True)
class Role:
    """A part that a column can play in a table, and how it is recognised.

    Attributes
    ----------
    name : str
        The key in ``columns=``, and what messages call it.
    known : tuple of set of str
        Names as :func:`normal` writes them; those of a later set count only where no column has one of an earlier.
    matches : callable, optional
        Recognises a name by its words instead; ranks are given by several callables.
    percent : bool
        Whether names may say percent: ``Accuracy (%)``.
    holds : callable, optional
        What the cells must hold beside.
    several : bool
        Whether the user may give it more than one column.
    joined : bool
        Whether the entries of several columns are joined into one name.
    required : bool
        Whether a table without it is an error.
    needed : bool
        Whether it cannot be left out although it is not looked for in every form of a table: where several columns
        could have it, taking none of them is no remedy.
    first : bool
        Of several columns with such a name the first counts; otherwise they are an error.
    telling : bool
        A column with the same entry in all rows, or with entries that vary as those of another, does not count beside
        one that tells rows apart.
    noun : str
        Its name in messages, where that is another.
    if_none, if_several : str
        What else the user can do where no column, or more than one, is found.
    """

    name: str
    known: tuple[frozenset[str], ...] = ()
    matches: tuple[Callable[[str], bool], ...] = ()
    percent: bool = False
    holds: Callable[[Column], bool] | None = None
    several: bool = False
    joined: bool = False
    required: bool = False
    needed: bool = False
    first: bool = False
    telling: bool = False
    noun: str = ""
    if_none: str = ""
    if_several: str = ""

    def is_called(self, column: str) -> bool:
        """Return whether a column has one of the names."""
        return any(rule(column) for rule in self._rules())

    def _rules(self) -> list[Callable[[str], bool]]:
        plain = bare if self.percent else normal
        return [*((lambda k, s=s: plain(k) in s) for s in self.known), *self.matches]

    def candidates(self, columns: Mapping[str, Column], free: Iterable[str]) -> list[str]:
        """Columns that could have the role: those that the first rule to find any finds."""
        free = [k for k in free if self.holds is None or self.holds(columns[k])]
        tiers = [found for rule in self._rules() if (found := [k for k in free if rule(k)])]
        # Exports often hold a constant column, such as dataset, beside the one that varies.
        if self.telling:
            tiers = [t for tier in tiers if (t := _telling(columns, tier))] or [tier[:1] for tier in tiers]
        found = tiers[0] if tiers else []
        return found[:1] if self.first else found


@dataclass(frozen=True)
class ColumnRoles:
    """The columns of each role, and those that have none."""

    held: Mapping[str, tuple[str, ...]]
    rest: tuple[str, ...] = ()

    def __contains__(self, role: object) -> bool:
        return bool(self.held.get(str(role)))

    def __getitem__(self, role: str) -> str:
        """Return the column of a role that is there."""
        return self.held[role][0]

    def get(self, role: str) -> str | None:
        """Return the column of a role, or None."""
        return next(iter(self.held.get(role, ())), None)

    def of(self, role: str) -> tuple[str, ...]:
        """Return all columns of a role."""
        return self.held.get(role, ())

    def note(self, *, left_out: bool = True, **details: str) -> str:
        """Say which column has which role; ``details`` stand behind a role, in brackets.

        >>> ColumnRoles({"n": ("size",), "learner": ("model", "width")}, ("lr",)).note(n="examples")
        "n from 'size' (examples); learner from 'model' / 'width'; left out: 'lr'"
        """
        listed = [
            f"{role} from {' / '.join(map(brief, columns))}" + (f" ({details[role]})" if details.get(role) else "")
            for role, columns in self.held.items()
            if columns
        ]
        return "; ".join([*listed, *([f"left out: {list_names(self.rest)}"] if self.rest and left_out else [])])


def find_roles(
    columns: Mapping[str, Column],
    source: str,
    roles: Sequence[Role],
    given_columns: ColumnMap | None = None,
    *,
    used: Collection[str] = (),
    noun: str = "column",
) -> ColumnRoles:
    """Give each role its column: the one the user names, else the one that is called so.

    Parameters
    ----------
    columns : dict of str to cells
        Of a table, or arrays by name.
    source : str
        What messages call it.
    roles : sequence of Role
        In the order in which columns are given away.
    given_columns : dict, optional
        ``columns=`` of the user.
    used : collection of str
        Columns that select rows: they are no part of ``rest``.
    noun : str
        "column" or "array".
    """
    # The user's choice comes first, so that a column it names is not given away by its name.
    by_name, chosen = {role.name: role for role in roles}, column_map(given_columns)
    held = {name: _told(columns, source, by_name, name, given, noun) for name, given in chosen.items()}
    count = Counter(k for given in held.values() for k in given)
    if twice := [k for k, times in count.items() if times > 1]:
        both = {role: twice[0] for role, given in held.items() if twice[0] in given}
        raise InputError(f"{arg('columns', both)} gives a {noun} two roles: it can have one.")
    taken = set(count)
    for role in roles:
        if role.name not in held:
            found = role.candidates(columns, [k for k in columns if k not in taken])
            if len(found) > 1:
                raise InputError(_several(role, found, source, noun))
            held[role.name] = tuple(found)
            taken |= set(found)
        if role.required and not held[role.name]:
            raise InputError(
                f"No {noun} of {source} is known as the {role.noun or role.name}: it has {list_names(columns)}. Say "
                f"which with {ask(role.name)}{role.if_none}."
            )
    ordered = {role.name: held[role.name] for role in roles}
    return ColumnRoles(ordered, tuple(k for k in columns if k not in taken and k not in used))


def column_map(given: Any) -> ColumnMap:
    """Return the columns of roles that the user gives, which must be a dict."""
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{arg('columns', given)} must be a dict of roles, such as {{'learner': 'model'}}.")
    return given or {}


def ask(role: str, column: str | Sequence[str] | None = "COLUMN") -> str:
    """Mention, inside a message, the setting with which the user names the column of a role.

    >>> from curvewise.errors import Message
    >>> Message(f"{ask('n')}, {ask('n', 'size')}, {ask('seed', None)}")
    "columns={'n': 'COLUMN'}, columns={'n': 'size'}, columns={'seed': None}"
    """
    return arg("columns", {role: column if column is None or isinstance(column, str) else list(column)})


def _several(role: Role, found: Sequence[str], source: str, noun: str) -> str:
    ways = [ask(role.name, found[0])]
    if role.joined:
        ways.append(f"{ask(role.name, list(found))} to join them")
    ways += [role.if_several] if role.if_several else []
    if not (role.required or role.needed):
        ways.append(f"{ask(role.name, None)} to take none")
    if len(ways) == 1:
        ways.append("rename one")
    could_be = f"{len(found)} {noun}s of {source} could be the {role.noun or role.name}: {list_names(found)}"
    return f"{could_be}. Choose with {'; or '.join(ways)}."


def _told(
    columns: Mapping[str, Column], source: str, roles: Mapping[str, Role], name: str, given: Any, noun: str
) -> tuple[str, ...]:
    """Columns that the user names for a role, which must be there."""
    if name not in roles:
        close = suggest(name, roles)
        raise InputError(
            f"{arg('columns', {name: given})}: {brief(name)} is no role.{close} Roles are {', '.join(roles)}."
        )
    if given is None:
        return ()
    chosen = (given,) if isinstance(given, str) else tuple(given)
    for column in chosen:
        check_column(columns, source, ask(name, column), column, noun)
    if len(chosen) != 1 and (not roles[name].several or not chosen):
        raise InputError(f"{ask(name, chosen)} must name one {noun}.")
    return chosen


def check_column(columns: Iterable[str], source: str, setting: str, name: str, noun: str = "column") -> None:
    """Raise unless a column that a setting names is there."""
    columns = list(columns)
    if name not in columns:
        raise InputError(
            f"{setting}: {source} has no such {noun}.{suggest(name, columns)} It has {list_names(columns)}."
        )


def _telling(columns: Mapping[str, Column], found: Sequence[str]) -> list[str]:
    """Columns that tell rows apart, one of those that do so alike."""
    kept: dict[tuple[int, ...], str] = {}
    for name in found:
        order: dict[str, int] = {}
        codes = tuple(order.setdefault(word, len(order)) for word in texts(columns[name]))
        kept.setdefault(codes, name)
    return [name for codes, name in kept.items() if any(codes)]


# Names as they are written and as they are compared: in lower case, with every run of other characters than letters
# and digits read as one underscore, so that "Seen Examples" is seen_examples.


def normal(name: str) -> str:
    """Write a name in lower case with underscores.

    >>> normal(" Seen Examples "), normal("train-size")
    ('seen_examples', 'train_size')
    """
    return re.sub(r"[\W_]+", "_", name.strip().lower()).strip("_")


def bare(name: str) -> str:
    """Write a name as :func:`normal` does, without words for percent.

    >>> bare("Test Acc [%]"), bare("gap_pct"), bare("Error rate in %")
    ('test_acc', 'gap', 'error_rate')
    """
    # "Error in %" is the error, "in_dim" is something else.
    unit = _PERCENT | {"in"} if says_percent(name) else _PERCENT
    return "_".join(word for word in normal(name).split("_") if word not in unit)


def says_percent(name: str) -> bool:
    """Return whether a name says that values are percentages.

    >>> says_percent("error (%)"), says_percent("acc_pct"), says_percent("error")
    (True, True, False)
    """
    return "%" in name or bool(_PERCENT & set(normal(name).split("_")))


def words_of(name: str) -> frozenset[str]:
    """Words of a name, without those for percent and ``top_5``."""
    return frozenset(_TOP_K.sub("", bare(name)).split("_")) - {""}


_PERCENT = synonyms("percent percents percentage percentages pct")
_TOP_K = re.compile(r"top_?[0-9]+")

# What more than one lens looks for.
SIZE = synonyms("""
    n size sizes n_train ntrain num_train train_n train_size size_train trainsize n_samples num_samples samples
    sample_size n_train_samples num_train_samples num_training_samples n_training_samples train_samples
    training_samples training_size training_set_size train_set_size dataset_size data_size n_examples num_examples
    examples seen_examples n_train_examples num_train_examples train_examples training_examples anchor""")
LEARNER = synonyms("""
    learner model method estimator algorithm name classifier learner_name model_name method_name estimator_name
    algorithm_name""")
FOLD = synonyms("fold cv_fold fold_id")
SEED = synonyms("seed random_seed rng_seed random_state")
LOWER_IS_BETTER = synonyms("error errors err errs loss losses risk nll")
HIGHER_IS_BETTER = synonyms("accuracy accuracies acc accs f1 auc auroc")
SCORES = synonyms("score scores")
# Metrics that say in which direction they are better, but are not looked for: tables often hold them beside others.
_LOWER = LOWER_IS_BETTER | synonyms("""
    logloss crossentropy xent ce bce mse rmse nrmse msle rmsle mae mape smape medae perplexity ppl bpc bpb bpd wer cer
    ter eer fpr fnr far frr ece brier hinge huber deviance regret fid kid lpips misclassification misclassified mistakes
    incorrect wrong failure failures l1 l2 toxicity toxic hallucination hallucinations hallucinated harmfulness""")
_HIGHER = HIGHER_IS_BETTER | synonyms("""
    precision recall sensitivity specificity tpr tnr ppv npv f2 fbeta fscore map ap auprc aupr prauc rocauc iou miou
    jaccard dice r2 rsquared mcc kappa qwk bleu sacrebleu chrf meteor rouge rougel rougelsum bertscore cider psnr ssim
    ndcg mrr hit hits hitrate em success win wins winrate pass reward rewards return returns correct correlation corr
    pearson spearman kendall likelihood loglik loglikelihood elo""")
_PHRASES = (
    (re.compile(r"(^|_)(cross_entropy|brier_score|miss_rate|bits_per_(?:byte|char|character|token))(_|$)"), "loss"),
    (re.compile(r"(^|_)(exact_match|r_squared|average_precision)(_|$)"), "accuracy"),
)
"""Names of several words, with a word that says the same."""
MEASURED_ON = synonyms("test val valid validation eval train training rate mean avg average")
"""Words that may stand beside error or accuracy: where and how it was measured."""
_VALUE = LOWER_IS_BETTER | HIGHER_IS_BETTER | SCORES | synonyms("value values mean avg average")
SETTINGS = synonyms("""
    depth width layers num_layers n_layers blocks num_blocks filters channels units hidden batch batch_size rate lr
    learning_rate weight_decay wd decay momentum dropout optimiser optimizer batch_norm batchnorm bn norm_layer
    augmentation augment activation kernel_size architecture schedule label_smoothing share augmented""")
"""Usual names of hyperparameters."""
_CHANCE = (
    FOLD
    | SEED
    | synonyms("""
    run run_id run_name run_index run_number trial trial_id repeat repetition rep replicate replication draw subset
    subset_id""")
)


def is_value(name: str) -> bool:
    """Return whether a column holds errors, accuracies, losses or scores by its name.

    >>> is_value("err_valid_mean"), is_value("error_std"), is_value("value")
    (True, False, True)
    """
    words = words_of(name)
    return bool(words & _VALUE) and words <= _VALUE | MEASURED_ON


def is_spread(name: str, kind: frozenset[str]) -> bool:
    """Return whether a column holds the spread of a value, by one of the words in ``kind``.

    >>> is_spread("val_acc_std", synonyms("std sd")), is_spread("test_std_err", synonyms("std sd"))
    (True, False)
    """
    words = words_of(name)
    if normal(name) in _STANDARD_ERROR:  # of the mean, or the deviation of the error? It may be either.
        return False
    return bool(words & kind) and words <= kind | _VALUE | MEASURED_ON


# Spread of runs or of their mean: the name does not say, and the two differ by the square root of the runs.
_STANDARD_ERROR = synonyms("std_err std_error stderr test_std_err test_std_error")


def tells_runs(name: str) -> bool:
    """Return whether a column is called as one that tells runs of one training apart.

    >>> tells_runs("fold"), tells_runs("init_seed"), tells_runs("depth")
    (True, True, False)
    """
    return normal(name) in _CHANCE or normal(name).endswith("_seed")


def direction(name: str) -> bool | None:
    """Return whether higher is better, by the name; None if it does not say.

    >>> direction("val_acc"), direction("error rate"), direction("value")
    (True, False, None)
    >>> direction("top-5"), direction("acc@1"), direction("mAP50"), direction("brier_score"), direction("top1_err")
    (True, True, True, False, False)
    """
    plain = bare(name)
    for phrase, word in _PHRASES:
        plain = phrase.sub(rf"\1{word}\3", plain)
    words = {_root(word) for word in _TOP_K.sub("", plain).split("_")}
    # scikit-learn's neg_log_loss is a loss with the sign of a score.
    if words & {"neg", "negative"}:
        return None
    up, down = words & (_HIGHER | SCORES), words & _LOWER
    if not up and not down and _TOP_K.search(plain):  # top1, val_top_5
        return True if words <= MEASURED_ON | {""} else None
    return None if bool(up) == bool(down) else bool(up)


def has_usual_name(name: str) -> bool:
    """Return whether a column is called error, accuracy, loss or score, whatever else its name says."""
    return direction(name) is not None and bool(words_of(name) & (LOWER_IS_BETTER | HIGHER_IS_BETTER | SCORES))


def _root(word: str) -> str:
    """Return a word without the number at its end, where the rest is a metric: acc1, map50, rouge2."""
    root = word.rstrip("0123456789")
    return root if word not in _HIGHER and root in _HIGHER | _LOWER else word


def check_direction(names: Sequence[str], called: str, unit: str | None, higher_is_better: bool | None) -> None:
    """Raise where neither an argument nor a name of the values, which messages call so, says if higher is better."""
    if higher_is_better is not None or unit in ("loss", "score") or any(direction(k) is not None for k in names):
        return
    raise InputError(
        f"the name of {called} does not say whether higher is better: pass {arg('higher_is_better', True)} for "
        f"accuracies or {arg('higher_is_better', False)} for errors.",
        argument="higher_is_better",
    )


def is_score(name: str) -> bool:
    """Return whether the name says only "score", which can be meant either way."""
    words = words_of(name)
    return bool(words & SCORES) and not words & HIGHER_IS_BETTER


# How runs ended, in the words of trackers: mlflow writes FINISHED, wandb crashed, optuna TrialState.PRUNED.

_STATUS = synonyms("status state run_status run_state trial_state")
FINISHED = synonyms("finished complete completed done success succeeded ok")
FAILED = synonyms("""
    failed fail failure error errored crashed killed aborted pruned diverged oom out_of_memory timeout timed_out
    node_fail""")
UNFINISHED = FAILED | synonyms("""
    cancelled canceled stopped interrupted preempted preempting running scheduled waiting pending queued missing
    outdated damaged""")


def status_word(cell: Any) -> str:
    """Return how a run ended in one lower-case word; empty if the cell says nothing.

    >>> status_word("FINISHED"), status_word("TrialState.PRUNED"), status_word(None)
    ('finished', 'pruned', '')
    """
    return "" if is_missing(cell) else str(cell).strip().rpartition(".")[2].lower()


def is_status(name: str, cells: Column) -> bool:
    """Return whether a column is called a status and holds nothing else: a state may be Ohio.

    >>> is_status("State", ["finished", "crashed"]), is_status("State", ["Ohio", "Utah"])
    (True, False)
    """
    words = set(map(status_word, cells)) - {""} if normal(name) in _STATUS else set()
    return bool(words) and words <= FINISHED | UNFINISHED


STATUS = Role("status", (_STATUS,), holds=lambda cells: is_status("status", cells))


def keep_ended(table: Table, column: str | None, ended: frozenset[str] = FINISHED) -> Table:
    """Leave out the rows of runs that did not end as ``ended`` says, and count them in the notes."""
    if column is None:
        return table
    words = [status_word(cell) for cell in table.columns[column]]
    if unknown := sorted(set(words) - FINISHED - UNFINISHED - {""}):
        raise InputError(
            f"{table.where(column)} says {list_names(unknown)}, which is no known status: use finished, failed, "
            f"running, …, or pass {ask('status', None)} and choose the rows yourself."
        )
    keep = np.array([word in ended for word in words])
    others = Counter(word or "without a status" for word in words if word not in ended)
    listed = ", ".join(f"{count} {word}" for word, count in others.items())
    if not keep.any():
        raise InputError(f"None of the {len(table)} rows of {table.source} is finished: {listed}.")
    left = len(table) - int(keep.sum())
    note = f"{left} of {len(table)} rows left out by column {brief(column)}: {listed}"
    return table.keep(keep, note)


def select_rows(table: Table, where: Mapping[str, Any] | None) -> Table:
    """Take the rows that have these values, or one of a list of them, and say how many in the notes."""
    keep = np.ones(len(table), dtype=np.bool_)
    for name, wanted in (where or {}).items():
        check_column(table.columns, table.source, arg("where", {name: wanted}), name)
        several = wanted if isinstance(wanted, list | tuple | set) else [wanted]
        words = names_in(table, name)
        requested = {_as_value(word): word for word in same_names(texts(list(several)), "where")}
        values = {word: _as_value(word) for word in dict.fromkeys(words)}
        if absent := [word for value, word in requested.items() if value not in values.values()]:
            raise InputError(
                f"{arg('where', {name: absent[0]})} is in no row of {table.source}: it has {list_names(values)}."
            )
        keep &= np.array([values[word] in requested for word in words])
    if not keep.any():
        raise InputError(f"{arg('where', dict(where or {}))}: no row of {table.source} has all of it.")
    return table.keep(keep, f"{int(keep.sum())} of {len(table)} rows, where {brief(dict(where or {}), 200)}")


def _as_value(word: str) -> Any:
    """Return what is the same for all spellings of a value: 1e-3 is 0.001 and true True, but 007 is not 7."""
    number = parse(word)
    if number is not None and abs(number) < 2**53 and not LEADING_ZERO.match(word):
        return number
    return word.lower() if word.lower() in ("true", "false") else word


def select_one(
    table: Table, role: str, column: str | None, wanted: str | None, hint: str = ""
) -> tuple[Table, str | None]:
    """Take the rows of one metric, split or learner, and tell which it is; of several the user must name one."""
    if column is None:
        if wanted is not None:
            raise InputError(
                f"{arg(role, wanted)}: {table.source} has no column of {role}s. Say which with {ask(role)}; it has "
                f"{list_names(table.columns)}."
            )
        return table, None
    words = np.array(names_in(table, column), dtype=np.str_)
    there = list(dict.fromkeys(words.tolist()))
    if wanted is None and len(there) > 1:
        raise InputError(
            f"{table.where(column)} names {len(there)} {role}s: {list_names(there)}. Choose one with "
            f"{arg(role, there[0])}{hint}."
        )
    chosen = there[0] if wanted is None else str(wanted)
    if chosen not in there:
        raise InputError(
            f"{arg(role, wanted)} is not in {table.where(column)}.{suggest(chosen, there)} There are "
            f"{list_names(there)}."
        )
    keep = words == chosen
    return table.keep(keep, f"{int(keep.sum()):,} of {len(table):,} rows taken: {role} is {brief(chosen)}"), chosen


# Error or accuracy, fraction or percent: what names say, held against what the user says.


def decide_unit(
    unit: str | None, higher_is_better: bool | None, columns: Sequence[str], metric: str | None = None
) -> Unit:
    """Make the unit; what the arguments do not say, the names do.

    Parameters
    ----------
    unit, higher_is_better
        As the user gave them.
    columns : sequence of str
        Names of the value columns; empty where names are learners or sizes.
    metric : str, optional
        The one value in the column of metrics.
    """
    check_direction_flag(higher_is_better)
    names = [*columns, metric] if metric else list(columns)
    directions = {direction(name) for name in names} - {None}
    if higher_is_better is None and len(directions) > 1:
        raise InputError(
            f"The names {list_names(names)} disagree on whether higher is better: pass "
            f"{arg('higher_is_better', True)} or {arg('higher_is_better', False)}."
        )
    unit = named_unit(unit, names)
    if higher_is_better is None and unit != "loss":
        return Unit(unit, True in directions)
    chosen = Unit(unit, bool(higher_is_better))
    setting = arg("unit", "loss") if higher_is_better is None else arg("higher_is_better", higher_is_better)
    for name in names:
        check_contradiction(name, direction(name), chosen.higher_is_better, setting)
    return chosen


def check_direction_flag(higher_is_better: bool | None) -> None:
    """Raise unless it is True, False or None."""
    if higher_is_better not in (None, True, False):
        raise InputError(f"{arg('higher_is_better', higher_is_better)} must be True, False or None.")


def check_contradiction(name: str, by_name: bool | None, higher: bool, setting: str) -> None:
    """Raise where a setting says that higher is better and the name of the column that lower is, or the reverse."""
    if by_name is not None and by_name != higher and not is_score(name):
        better = "higher" if by_name else "lower"
        raise InputError(
            f"{setting} contradicts the name {list_names([name])}, for which {better} is better. Leave the setting "
            "out, or give the column its right name."
        )


def named_unit(unit: str | None, columns: Sequence[str]) -> str:
    """Return the unit as given; else percent if a name says so, and fractions if none does.

    >>> named_unit(None, ["error (%)"]), named_unit(None, ["error"]), named_unit("loss", ["x %"])
    ('percent', 'fraction', 'loss')
    """
    percent = [name for name in columns if says_percent(name)]
    if unit == "fraction" and percent:
        raise InputError(
            f"{arg('unit', 'fraction')} contradicts the name {list_names(percent[:1])}, which says percent: pass "
            f"{arg('unit', 'percent')}, or give the column its right name."
        )
    return unit or ("percent" if percent else "fraction")


def check_percent(unit: str | None, chosen: Unit, values: FloatArray, called: str) -> None:
    """Raise where only a name says percent, of accuracies that are all 1 or less: they may be fractions."""
    known = values[np.isfinite(values)]
    if unit is None and chosen.name == "percent" and chosen.higher_is_better and len(known) and known.max() <= 1:
        raise InputError(
            f"{called} says percent, and no value is above 1. If these are fractions, take the percent out of the "
            f"name; if they are percentages, pass {arg('unit', 'percent')}."
        )


def ask_percent(unit: str | None, columns: Sequence[str], what: str, source: str) -> None:
    """Raise where columns are called by learners or the like and one of them has a % in it."""
    found = [name for name in columns if says_percent(name)]
    if unit is None and found:
        raise InputError(
            f"The columns of {source} are {what}, and {list_names(found[:3])} may say that values are percentages: "
            f"pass {arg('unit', 'percent')}, or {arg('unit', 'fraction')} if they are not."
        )


TOPS = {"fraction": 1.0, "percent": 100.0, "score": 1.0}
"""Divisors that make a fraction of a value; a score has no bounds and stays as it is."""


def fractions(table: Table, name: str, unit: str, low: float = 0.0) -> FloatArray:
    """Read a column of accuracies, errors or gaps as fractions from ``low`` to 1; NaN where a cell is empty."""
    # NaN passes all comparisons: a missing accuracy stays missing.
    top = TOPS[unit]
    values = numbers(table, name) / top
    bad = (values < low) | (values > 1) if unit != "score" else np.zeros(len(values), dtype=np.bool_)
    if np.isinf(values).any():
        infinite = values[np.isinf(values)][0]
        raise InputError(f"{table.where(name)} holds {infinite:g}: where there is no value, leave the cell empty.")
    if bad.any():
        kind, right = ("fraction", "percent") if top == 1 else ("percentage", "fraction")
        raise InputError(
            f"{table.where(name)} holds {values[bad][0] * top:g}, which is no {kind}: pass {arg('unit', right)} if "
            "that is what it is" + (f", or {arg('unit', 'score')} for a number without bounds." if low == 0 else ".")
        )
    return values
