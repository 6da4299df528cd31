"""Options and files of ``curvewise variance``: predictions of many runs, or one score per run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from curvewise.cli._console import UsageError, note
from curvewise.cli._files import STDIN
from curvewise.cli._options import READING, Words

if TYPE_CHECKING:
    from curvewise.types import FloatArray, Predictions

Kind = Literal["labels", "errors", "correct", "losses", "scores", "probabilities"]


@Parameter(name="*", group=READING)
@dataclass
class PredictionReading:
    """How to read predictions.

    Parameters
    ----------
    labels
        File with the true class of each example, where the predictions do not bring them.
    kind
        What the values are, where names do not say it.
    axes
        What the axes are, where the shape does not say it: runs,examples or examples,runs, with
        repeats or classes as a third.
    groups
        File that says which examples belong together.
    key
        The array or column that holds the values.
    column
        Which column plays a part, as PART=COLUMN: run, example, prediction, error, label, …
    learner
        Whose runs to take where a table or a store holds those of several.
    where
        Which runs of a store, as NAME=VALUE: n=300. May be repeated.
    allow_large
        Read a compressed file whatever it unpacks to.
    """

    labels: Path | None = None
    kind: Kind | None = None
    axes: Words = field(default_factory=list)
    groups: Path | None = None
    key: str | None = None
    column: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    learner: str | None = None
    where: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    allow_large: Annotated[bool, Parameter(negative="", show_default=False)] = False

    def load(
        self,
        file: str,
        *,
        alone: bool = True,
        learner: str | None = None,
        directed: bool = False,
    ) -> Predictions:
        """Read a file or folder, telling on stderr what was taken for what.

        With ``directed``, refuse values of which nothing says whether a high one is good.
        """
        from curvewise.io import load_predictions
        from curvewise.types import as_predictions

        if file == STDIN:
            raise UsageError("Predictions are read from a file or a folder, not from stdin.")
        found = load_predictions(
            file,
            labels=self.labels,
            kind=self.kind,
            axes=self.axes or None,
            groups=self.groups,
            key=self.key,
            columns=self._columns(),
            learner=learner or self.learner,
            where=self._where(),
            allow_large=self.allow_large,
        )
        found = as_predictions(found, argument=file, directed=directed)
        note(("" if alone else f"{file}: ") + "; ".join([repr(found), *found.notes]))
        return found

    def _where(self) -> dict[str, Any] | None:
        found = {}
        for pair in self.where:
            name, equals, value = pair.partition("=")
            if not equals or not name.strip():
                raise UsageError(f"--where {pair!r} must read NAME=VALUE, such as n=300.")
            try:
                found[name.strip()] = json.loads(value)  # numbers, true, null; else a text
            except ValueError:
                found[name.strip()] = value
        return found or None

    def _columns(self) -> dict[str, str | None] | None:
        parts: dict[str, str | None] = {}
        for pair in self.column:
            part, equals, name = pair.partition("=")
            if not equals or not part.strip():
                raise UsageError(f"--column {pair!r} must read PART=COLUMN, such as run=seed.")
            parts[part.strip()] = name or None
        return parts or None


@Parameter(name="*", group=READING)
@dataclass
class ScoreReading:
    """How to read one score per run.

    Parameters
    ----------
    scores
        The files hold one score per run and no predictions: only this test set can be judged.
    value_column
        Column of scores, for --scores.
    by
        Column that names the training of a run, for --scores; repeat it to join several.
    unit
        What scores are; by default percent if the column's name says so, else fractions.
    higher_is_better
        Scores are accuracies. By default the column's name says so.
    """

    scores: Annotated[bool, Parameter(negative="", show_default=False)] = False
    value_column: str | None = None
    by: Annotated[list[str], Parameter(negative="", show_default=False)] = field(
        default_factory=list
    )
    unit: Literal["fraction", "percent", "loss", "score"] | None = None
    higher_is_better: Annotated[
        bool | None,
        Parameter(name=("--higher-is-better", "--accuracy"), negative="--lower-is-better"),
    ] = None

    def __post_init__(self) -> None:
        """Options of scores are for scores."""
        asked = self.value_column or self.by or self.unit or self.higher_is_better is not None
        if asked and not self.scores:
            raise UsageError(
                "--value-column, --by, --unit and --higher-is-better are for --scores."
            )

    @property
    def options(self) -> dict[str, Any]:
        """What to pass on: accuracies have become errors when they were read."""
        unit = self.unit or "fraction"
        return {"unit": unit, "higher_is_better": unit == "score"}

    def load(self, files: Sequence[str], allow_large: bool = False) -> dict[str, FloatArray]:
        """Read the scores of every training in the files."""
        from curvewise.io import load_scores

        found: dict[str, FloatArray] = {}
        for file in files:
            part = load_scores(
                file,
                value=self.value_column,
                by=self.by or None,
                unit=self.unit,
                higher_is_better=self.higher_is_better,
                allow_large=allow_large,
            )
            for name, values in part.items():
                if name in found:
                    raise UsageError(f"The training {name!r} is in more than one of the files.")
                found[name] = values
        return found
