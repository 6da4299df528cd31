"""Judges corrected by labels: against ppi-python's figures, and the truth of judges that err in one direction."""

from __future__ import annotations

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.evals import Evals, correct_judge

quiet = pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")


def made(seed=0, n=400, labels=80, high=0.95, low=0.4, rate=0.7):
    rng = np.random.default_rng(seed)
    right = rng.random(n) < rate
    seen = rng.random(n) < np.where(right, high, low)
    return right.astype(float), seen.astype(float), rng.permutation(n)[:labels]


def evals(right, seen, chosen, **fields):
    judge = Evals(seen[None], ("a",), np.arange(len(seen)), **fields)
    return judge, Evals(right[None, chosen], ("a",), chosen)


PUBLISHED = {
    # ppi_mean_pointestimate and half of ppi_mean_ci(alpha=.05) of ppi-python 0.2.3 on made(seed), by λ.
    (0, None): (0.628094893577, 0.091290367220),
    (0, 0.0): (0.637500000000, 0.105340941966),
    (0, 0.5): (0.628125000000, 0.091294087644),
    (0, 1.0): (0.618750000000, 0.103234337527),
    (1, None): (0.754263978371, 0.084908700928),
    (1, 0.0): (0.725000000000, 0.097844957227),
    (1, 0.5): (0.753125000000, 0.084801909076),
    (1, 1.0): (0.781250000000, 0.101234495899),
}


@pytest.mark.parametrize("lam", [None, 0.0, 0.5, 1.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_estimate_and_standard_error_are_those_of_ppi_python(seed, lam):
    right, seen, chosen = made(seed)
    c = correct_judge(*evals(right, seen, chosen), weight=lam)
    estimate, half = PUBLISHED[seed, lam]
    assert c.scores[0] == pytest.approx(estimate, abs=1e-9)
    # They divide by n where n − 1 is unbiased: less than 1% with 80 labels.
    assert c.standard_errors[0] == pytest.approx(half / 1.959964, rel=0.008)


def test_no_weight_is_the_labels_alone_and_all_labelled_needs_no_judge():
    right, seen, chosen = made()
    c = correct_judge(*evals(right, seen, chosen), weight=0.0)
    own = right[chosen]
    assert c.scores[0] == pytest.approx(own.mean())
    assert c.standard_errors[0] == pytest.approx(own.std(ddof=1) / np.sqrt(80))
    assert c.human_scores[0] == pytest.approx(own.mean())
    full = correct_judge(*evals(right, seen, np.arange(400)))
    assert full.scores[0] == pytest.approx(right.mean())
    assert full.weight[0] == 0


def test_a_good_judge_is_worth_labels_and_its_bias_is_named():
    right, seen, chosen = made(2, n=2000, labels=150, high=0.97, low=0.1)
    c = correct_judge(*evals(right, seen, chosen))
    assert c.standard_errors[0] < 0.8 * c.human_standard_errors[0]
    assert c.judge_bias[0] == pytest.approx((seen - right)[chosen].mean())
    assert c.judge_scores[0] == pytest.approx(seen.mean())
    assert "times as many labels" in c.sentences()
    assert list(c.columns())[:4] == ["model", "score", "low", "high"]
    assert repr(c).startswith("JudgeCorrection('a'")


def test_groups_widen_the_interval():
    rng = np.random.default_rng(3)
    groups = np.repeat(np.arange(80), 5)
    rate = np.clip(0.6 + 0.35 * rng.normal(size=80), 0, 1)[groups]
    right = (rng.random(400) < rate).astype(float)
    seen = np.where(rng.random(400) < 0.1, 1 - right, right)
    chosen = np.flatnonzero(np.isin(groups, rng.permutation(80)[:30]))
    alone = correct_judge(*evals(right, seen, chosen))
    grouped = correct_judge(*evals(right, seen, chosen, groups=groups))
    assert grouped.scores[0] == pytest.approx(alone.scores[0])
    assert grouped.standard_errors[0] > 1.3 * alone.standard_errors[0]


@quiet
def test_a_judge_that_agrees_with_every_label_still_leaves_a_width():
    right = np.ones(60)
    c = correct_judge(*evals(right, right, np.arange(15)))
    assert c.high[0] > c.low[0]


def test_graded_scores_stay_in_their_range():
    rng = np.random.default_rng(4)
    true = np.clip(rng.normal(8.8, 1, 200), 1, 10)
    seen = np.clip(true + rng.normal(0.5, 0.5, 200), 1, 10)
    chosen = rng.permutation(200)[:40]
    judge = Evals(seen[None], ("a",), np.arange(200), range=(1, 10))
    human = Evals(true[None, chosen], ("a",), chosen, range=(1, 10))
    c = correct_judge(judge, human)
    assert c.interval("a").high <= 10
    assert abs(c.scores[0] - true.mean()) < 0.4
    assert c.judge_bias[0] > 0.2


def test_what_does_not_fit():
    right, seen, chosen = made()
    judge, human = evals(right, seen, chosen)
    with pytest.raises(InputError, match="weight"):
        correct_judge(judge, human, weight=2)
    with pytest.raises(InputError, match="no labels of 'a'"):
        correct_judge(judge, Evals(human.scores, ("b",), human.questions))
    with pytest.raises(InputError, match="1 question that the judge did not score, the first 'x'"):
        correct_judge(judge, Evals(np.ones((1, 2)), ("a",), np.array(["0", "x"])))
    with pytest.raises(InputError, match="another scale"):
        correct_judge(judge, Evals(10 * human.scores, ("a",), human.questions, range=(0, 10)))
    with pytest.raises(InputError, match="one labelled question"):
        correct_judge(judge, human.select(questions=[0]))
    with pytest.warns(CurvewiseWarning, match="10 labels of each model"):
        correct_judge(judge, human.select(questions=np.arange(10)))


@pytest.mark.slow
@pytest.mark.parametrize(("high", "low"), [(0.95, 0.1), (0.98, 0.5), (0.6, 0.6)])
def test_coverage_with_a_judge_that_is_good_lenient_or_useless(high, low):
    held = []
    for seed in range(400):
        c = correct_judge(*evals(*made(seed, high=high, low=low)))
        held.append(c.low[0] <= 0.7 <= c.high[0])
    assert np.mean(held) > 0.915


@quiet
def test_a_judge_that_gives_low_losses_overrates():
    right, seen, chosen = made(high=1.0, low=0.5)
    assert "the judge overrates" in correct_judge(*evals(right, seen, chosen)).sentences()
    losses = correct_judge(
        *(Evals(1 - e.scores, e.models, e.questions, higher_is_better=False) for e in evals(right, seen, chosen))
    )
    assert "the judge overrates" in losses.sentences()


@pytest.mark.parametrize("ends", [(0.0, 100.0), (-1.0, 1.0)])
def test_right_and_wrong_are_corrected_alike_on_any_scale(ends):
    rng = np.random.default_rng(3)
    right = rng.random(200) < 0.9
    judge = np.where(rng.random(200) < 0.02, ~right, right)

    def corrected(low, high):
        both = [low + (high - low) * x[None, :n] for x, n in ((judge, 200), (right, 30))]
        made = [Evals(x, ("a",), np.arange(x.shape[1]), range=(low, high)) for x in both]
        return correct_judge(*made).interval("a")

    scaled = [(x - ends[0]) / (ends[1] - ends[0]) for x in corrected(*ends)]
    np.testing.assert_allclose(scaled, [*corrected(0.0, 1.0)], rtol=1e-9)
