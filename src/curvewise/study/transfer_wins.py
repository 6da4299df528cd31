"""Examples won against scratch, out of a study."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.study.reading import choose_runs
from curvewise.types import Predictions

if TYPE_CHECKING:
    from curvewise.study.study import Study
    from curvewise.transfer.wins import WinRates

TEST = "test"


def study_win_rates(
    study: Study,
    method: str,
    *,
    scratch: str = "scratch",
    n: Sequence[int] | int | None = None,
    evaluation: str = TEST,
    paired: bool = False,
    level: float = 0.95,
    **settings: Any,
) -> WinRates:
    """On which share of the test examples a learner has a lower loss than scratch, by size.

    The loss of an example is that of its predicted numbers; for classes its cross-entropy if
    probabilities were kept, else whether it was wrong, with a tie where both are right or both
    wrong.

    Parameters
    ----------
    study : Study
        With runs of both.
    method, scratch : str
        Learners.
    n : int or sequence of int, optional
        Training sizes; by default all that both have.
    evaluation : str
        On which evaluation set.
    paired : bool
        Compare only runs on the same training subset with the same seeds.
    level : float
        Coverage of the intervals.
    **settings
        Only runs with these: ``fold``, ``vary``, names of the grid.

    Returns
    -------
    WinRates

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Design, Learner, Study
    >>> study = Study(
    ...     data="digits",
    ...     learners={
    ...         "scratch": Learner(estimator="sklearn.naive_bayes:GaussianNB"),
    ...         "neighbours": Learner(estimator="sklearn.neighbors:KNeighborsClassifier"),
    ...     },
    ...     design=Design(sizes=[200], folds=2),
    ...     folder=tempfile.mkdtemp(),
    ... )
    >>> study.run(workers=0, progress=False).done
    4
    >>> study_win_rates(study, "neighbours").at(200).rate.estimate > 0.5
    True
    """
    from curvewise.transfer.wins import win_rates

    both = [
        {r.job.n for r in choose_runs(study, learner=name, **settings) if r.state == "done"}
        for name in (method, scratch)
    ]
    asked = sorted(both[0] & both[1]) if n is None else np.atleast_1d(n).tolist()
    if not asked:
        raise InputError(f"{method!r} and {scratch!r} have no training size in common.")
    asked_of: dict[str, Any] = {"evaluation": evaluation, **settings}
    pairs = {}
    for size in asked:
        one, two = (study.predictions(name, n=size, **asked_of) for name in (method, scratch))
        if paired:
            _check_paired(study, one, two, size)
        pairs[size] = tuple(
            _losses(study, name, given, n=size, **asked_of)
            for name, given in ((method, one), (scratch, two))
        )
    return win_rates(pairs, paired=paired, level=level)


def _losses(study: Study, learner: str, given: Predictions, **asked: Any) -> Any:
    """Losses of each example where they are known, else what was predicted."""
    if given.kind == "losses" or not study.keep.probabilities:
        return given
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)  # the same as of ``given``
        kept = study.predictions(learner, probabilities=True, **asked)
    labels = kept.labels
    assert labels is not None
    places = np.arange(len(labels))
    right = np.concatenate([block[:, places, labels] for _, block in kept.blocks()])
    with np.errstate(divide="ignore"):  # sure and wrong: infinite, which can be compared
        return -np.log(right.astype(np.float64))


def _check_paired(study: Study, one: Predictions, two: Predictions, n: int) -> None:
    """Run r of both must be on the same examples with the same seeds."""
    jobs = {job.id: (job.fold, dict(job.seeds)) for job in study.jobs}
    ids = [p.run_ids.tolist() if p.run_ids is not None else [] for p in (one, two)]
    if [jobs[i] for i in ids[0]] != [jobs[i] for i in ids[1]]:
        raise InputError(
            f"paired=True, and at n = {n} the runs of both are not on the same training subsets "
            "with the same seeds: some failed or are missing. Use paired=False."
        )
