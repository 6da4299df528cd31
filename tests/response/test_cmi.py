"""Conditional mutual information: against the competition's program, and by hand."""

from __future__ import annotations

import json
import math
import warnings
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest

from curvewise.errors import CurvewiseWarning, InputError
from curvewise.response.cmi import cmi_score, measure_cmi, upper_tail


def case_arrays(case: dict) -> tuple[np.ndarray, np.ndarray, dict[str, np.ndarray]]:
    specs = case["model_specs"]
    measure = np.array([case["prediction"][k] for k in specs])
    gap = np.array([s["metrics"]["train_acc"] - s["metrics"]["test_acc"] for s in specs.values()])
    names = next(iter(specs.values()))["hparams"]
    settings = {h: np.array([s["hparams"][h]["current_value"] for s in specs.values()]) for h in names}
    return measure, gap, settings


@pytest.fixture(scope="module")
def cases(data_dir: Path) -> list[dict]:
    return json.loads((data_dir / "pgdl" / "cmi_cases.json").read_text())["cases"]


@pytest.fixture(scope="module")
def real(data_dir: Path) -> dict[str, dict]:
    return json.loads((data_dir / "pgdl" / "pgdl_tasks12_real.json").read_text())["tasks"]


def test_pgdl_equals_the_programs_score_on_every_case(cases: list[dict]) -> None:
    assert len(cases) == 54
    for case in cases:
        measure, gap, settings = case_arrays(case)
        found = cmi_score(measure, gap, settings, mode="pgdl")
        assert found == pytest.approx(case["kit_score"], abs=1e-12, rel=0), case["name"]


@pytest.mark.filterwarnings("ignore::curvewise.errors.CurvewiseWarning")
def test_pgdl_equals_the_programs_value_of_every_pair(cases: list[dict]) -> None:
    without = 0
    for case in cases:
        found = measure_cmi(*case_arrays(case), mode="pgdl")
        told = {" | ".join(s): v for s, v in zip(found.sets, found.values, strict=True)}
        wanted = {k.replace("|", " | "): v for k, v in case["per_pair"].items()}
        assert list(told) == list(wanted)
        for key, value in wanted.items():
            if value is None:
                without += 1
                assert math.isnan(told[key])
            else:
                assert told[key] == pytest.approx(value, abs=1e-12, rel=0)
    assert without == 2


def test_pgdl_reports_pairs_without_a_value(cases: list[dict]) -> None:
    case = next(c for c in cases if None in c["per_pair"].values())
    with pytest.warns(CurvewiseWarning, match=r"2 pair\(s\) of hyperparameters have no value"):
        found = measure_cmi(*case_arrays(case), mode="pgdl")
    assert set(found.skipped) == {("depth", "weight_decay"), ("weight_decay", "depth")}
    assert found.score == pytest.approx(case["kit_score"], abs=1e-12)
    empty = dict(zip(found.sets, found.empty, strict=True))
    assert empty["depth", "weight_decay"] > 0
    assert empty["weight_decay", "batch_size"] == 0


def test_pgdl_equals_26_of_28_recorded_scores_of_real_models(real: dict[str, dict]) -> None:
    hit, missed = 0, []
    for name, task in real.items():
        settings = {a["name_guess"]: np.array(a["index"]) for a in task["axes"]}
        if task["has_constant_hparam"]:
            settings["constant"] = np.zeros(len(task["gen_gap"]))
        for measure, told in task["measures"].items():
            score = cmi_score(told["values"], task["gen_gap"], settings, mode="pgdl")
            assert score == pytest.approx(told["kit_score_run_here"], abs=1e-12)
            if told["recorded_scores"]:
                # Recorded with 12 decimals; smooth_2 was submitted twice.
                same = any(abs(score - s) < 1e-11 for s in told["recorded_scores"])
                hit += same
                missed += [] if same else [(name, measure)]
    assert hit == 26
    assert missed == [("task1_v4", "rbf_mixup"), ("task2_v1", "rbf_mixup")]


def test_pgdl_names_cells_as_the_program_does() -> None:
    """1 and 11 after 11 and 1 read alike, so that the program has one cell for two."""
    rng = np.random.default_rng(0)
    grid = np.array(list(product((1, 11), (0, 1), (0, 1)))).T
    measure, gap = rng.random((2, 8))
    hit = {"a": grid[0], "b": grid[1], "c": grid[2]}
    with pytest.warns(CurvewiseWarning, match="two cells have one name"):
        found = measure_cmi(measure, gap, hit, mode="pgdl")
    assert set(found.skipped) == {("a", "b"), ("a", "c"), ("b", "a"), ("c", "a")}
    free = hit | {"a": np.where(grid[0] == 11, 2, 1)}
    values = dict(zip(found.sets, found.values, strict=True))
    other = measure_cmi(measure, gap, free, mode="pgdl")
    assert values["b", "c"] == dict(zip(other.sets, other.values, strict=True))["b", "c"]
    # Two names can also run into each other: "1" + "21" and "12" + "1".
    across = {"a": np.repeat(["1", "12"], 4), "b": np.tile(["x", "2x"], 4)}
    with pytest.warns(CurvewiseWarning, match="no value"):
        found = measure_cmi(measure, gap, across, mode="pgdl")
    assert ("a", "b") in found.skipped


def by_hand(measure: np.ndarray, gap: np.ndarray, settings: dict, directed: bool, size: int = 2) -> float:
    """Every ordered pair of two models looked at alone."""
    found = []
    for names in combinations(settings, size):
        cells: dict[tuple, list[tuple[int, int]]] = {}
        for i, j in product(range(len(gap)), repeat=2):
            if i == j or gap[i] == gap[j]:
                continue
            key = tuple((settings[k][i], settings[k][j]) for k in names)
            pair = (int(np.sign(gap[i] - gap[j])), int(np.sign(measure[i] - measure[j])))
            cells.setdefault(key, []).append(pair)
        told = known = 0.0
        for pairs in cells.values():
            untied = [p for p in pairs if p[1]]
            share = {
                (g, m): sum(p == (g, m) for p in untied) / max(len(untied), 1) for g, m in product((-1, 1), repeat=2)
            }
            bits = 0.0
            for (g, m), p in share.items():
                if p:
                    bits += p * math.log2(p / (share[g, -1] + share[g, 1]) / (share[-1, m] + share[1, m]))
            sign = np.sign(share[1, 1] * share[-1, -1] - share[1, -1] * share[-1, 1])
            told += bits * len(untied) / len(pairs) * (sign if directed else 1)
            up = sum(p[0] > 0 for p in pairs) / len(pairs)
            known -= sum(p * math.log2(p) for p in (up, 1 - up) if p)
        if known:
            found.append(told / known)
    return min(found)


def corpus(seed: int, count: int = 24, ties: bool = False) -> tuple:
    rng = np.random.default_rng(seed)
    settings = {
        "depth": rng.integers(0, 3, count),
        "norm": rng.choice(["batch", "layer", ""], count),
        "wide": rng.integers(0, 2, count).astype(bool),
    }
    gap = rng.normal(size=count) + settings["depth"]
    measure = gap + rng.normal(size=count)
    return (np.round(measure), np.round(gap, 1), settings) if ties else (measure, gap, settings)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_corrected_equals_the_sum_over_single_pairs(seed: int, ties: bool) -> None:
    measure, gap, settings = corpus(seed, ties=ties)
    assert cmi_score(measure, gap, settings) == pytest.approx(
        by_hand(measure, gap, settings, directed=False), abs=1e-12
    )
    for sign in (1, -1):
        assert cmi_score(measure, gap, settings, orientation=sign) == pytest.approx(
            by_hand(sign * measure, gap, settings, directed=True), abs=1e-12
        )
    assert cmi_score(measure, gap, settings, given=1) == pytest.approx(
        by_hand(measure, gap, settings, directed=False, size=1), abs=1e-12
    )


def test_corrected_has_no_preferred_direction_where_pgdl_has(cases: list[dict]) -> None:
    for case in cases:
        if case["name"].endswith("_perfect"):
            measure, gap, settings = case_arrays(case)
            assert cmi_score(-measure, gap, settings, mode="pgdl") < 0.94
            assert cmi_score(measure, gap, settings) == pytest.approx(1.0)
            assert cmi_score(-measure, gap, settings) == pytest.approx(1.0)
            assert cmi_score(-measure, gap, settings, orientation=-1) == pytest.approx(1.0)
            assert cmi_score(-measure, gap, settings, orientation=1) == pytest.approx(-1.0)


def test_order_of_columns_and_models_does_not_matter() -> None:
    measure, gap, settings = corpus(5)
    score = cmi_score(measure, gap, settings, orientation=1)
    turned = dict(reversed(settings.items()))
    assert cmi_score(measure, gap, turned, orientation=1) == pytest.approx(score, abs=1e-12)
    order = np.random.default_rng(0).permutation(len(gap))
    mixed = {k: v[order] for k, v in settings.items()}
    again = cmi_score(measure[order], gap[order], mixed, orientation=1)
    assert again == pytest.approx(score, abs=1e-12)


def test_a_measure_that_hardly_ever_differs_tells_little() -> None:
    """Dropping tied pairs altogether would make this one perfect."""
    gap = np.arange(20.0)
    measure = np.where(gap == 19, 1.0, 0.0)
    assert 0 < cmi_score(measure, gap, {}) < 0.11
    assert cmi_score(np.zeros(20), gap, {}) == 0.0


def test_without_hyperparameters_only_agreement_matters() -> None:
    """19 of 21 pairs agree: 1 − h(2/21) bits of 1."""
    gap = np.arange(7.0)
    measure = np.array([1.0, 0, 2, 3, 4, 6, 5])
    p = 2 / 21
    wanted = 1 + p * math.log2(p) + (1 - p) * math.log2(1 - p)
    assert cmi_score(measure, gap, {}) == pytest.approx(wanted)
    assert cmi_score(measure, gap, {"same": ["x"] * 7}) == pytest.approx(wanted)
    assert cmi_score(-measure, gap, {}, orientation=1) == pytest.approx(-wanted)


def test_one_hyperparameter_is_held_alone() -> None:
    measure, gap, settings = corpus(2)
    one = {"depth": settings["depth"]}
    assert cmi_score(measure, gap, one) == pytest.approx(by_hand(measure, gap, one, directed=False, size=1), abs=1e-12)


def test_smaller_sets_are_held_where_pairs_leave_nothing() -> None:
    grid = np.array(list(product(range(3), range(3)))).T
    rng = np.random.default_rng(0)
    measure, gap = rng.random((2, 9))
    settings = {"a": grid[0], "b": grid[1]}
    with pytest.warns(CurvewiseWarning, match="With 2 hyperparameters held at a time"):
        found = measure_cmi(measure, gap, settings, permutations=0)
    assert set(found.sets) == {("a",), ("b",), ("a", "b")}
    assert found.skipped == (("a", "b"),)
    wanted = by_hand(measure, gap, settings, directed=False, size=1)
    assert found.score == pytest.approx(wanted, abs=1e-12)


def test_empty_cells_are_counted() -> None:
    measure, gap, settings = corpus(1, 60)
    there = ~((settings["depth"] == 2) & settings["wide"])
    settings = {k: v[there] for k, v in settings.items()}
    found = measure_cmi(measure[there], gap[there], settings, permutations=0)
    rows = dict(zip(found.sets, zip(found.cells, found.empty, strict=True), strict=True))
    # 5 of 6 combinations are there: 25 of 36 pairs of them.
    assert rows["depth", "wide"] == (36, 11)
    assert any("cells hold no pair of models" in text for text in found.warnings)


def test_nothing_to_tell_is_nan_and_said() -> None:
    with pytest.warns(CurvewiseWarning, match="All gaps are equal"):
        found = measure_cmi([1.0, 2.0, 3.0], [0.1, 0.1, 0.1], {"a": [0, 1, 1]})
    assert math.isnan(found.score)
    assert math.isnan(found.pvalue)
    assert "unknown" in found.summary()


def test_a_continuous_hyperparameter_is_warned_of() -> None:
    measure, gap, settings = corpus(0)
    rates = settings | {"rate": np.linspace(0.1, 0.2, len(gap))}
    with pytest.warns(CurvewiseWarning, match="'rate' has nearly as many values"):
        cmi_score(measure, gap, rates)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        (([1.0], [1.0], {}), {}, "takes two models"),
        (([1.0, 2.0], [1.0], {}), {}, r"measure has shape \(2,\) and gap \(1,\)"),
        (([1.0, np.nan], [1.0, 2.0], {}), {}, "measure holds 1 value.*leave those models out"),
        (([1.0, 2.0], [1.0, np.inf], {}), {}, "gap holds 1 value"),
        (([1.0, 2.0], [1.0, 2.0], {"a": [1]}), {}, r"hyperparameters\['a'\] has shape \(1,\)"),
        (([1.0, 2.0], [1.0, 2.0], [[1, 2]]), {}, "hyperparameters is a list: give a dict"),
        (([1.0, 2.0], [1.0, 2.0], {}), {"mode": "kit"}, "mode='kit': use one of"),
        (([1.0, 2.0], [1.0, 2.0], {}), {"mode": "pgdl"}, "there are 0: add a constant one"),
        (([1.0, 2.0], [1.0, 2.0], {}), {"orientation": 0}, "orientation=0: use 1"),
        (([1.0, 2.0], [1.0, 2.0], {}), {"given": -1}, "given=-1"),
        (([1.0, 2.0], [1.0, 2.0], {"a": "ab"}), {}, r"hyperparameters\['a'\] is 'ab': give a value for each model"),
        (([1.0, 2.0], [1.0, 2.0], {"a": 3}), {}, r"hyperparameters\['a'\] is 3"),
    ],
)
def test_bad_input_is_named(arguments: tuple, options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        cmi_score(*arguments, **options)


@pytest.mark.parametrize("permutations", [-1, 9.5, True])
def test_permutations_are_a_whole_number(permutations: object) -> None:
    with pytest.raises(InputError, match=f"permutations={permutations}: must be a whole number"):
        measure_cmi(*corpus(0), permutations=permutations)  # type: ignore[arg-type]


def test_hyperparameters_of_any_kind_are_the_same_setting() -> None:
    measure, gap, settings = corpus(0)
    wanted = cmi_score(measure, gap, settings)
    depth = settings["depth"].tolist()
    mixed = [np.int64(d) if i % 2 else float(d) for i, d in enumerate(depth)]
    huge = [10**400 if d == depth[0] else d for d in depth]
    for column in (mixed, huge, list(map(str, depth))):
        assert cmi_score(measure, gap, settings | {"depth": column}) == wanted
    pandas = pytest.importorskip("pandas")
    assert cmi_score(measure, gap, pandas.DataFrame(settings)) == wanted


def test_sentences_count_the_sets_that_have_a_value() -> None:
    with pytest.warns(CurvewiseWarning, match="none is held instead"):
        found = measure_cmi([1.0, 2.0], [0.1, 0.2], {"a": [1, 2]}, permutations=0)
    assert found.sentences() == "CMI 1 over 2 models, given nothing."


def simulated(rng: np.random.Generator, shared: float) -> tuple:
    """Gap and measure that depend on the same four hyperparameters, and on each other or not."""
    grid = np.array(list(product(range(3), range(3), range(3), range(2)))).T
    effect = (grid / grid.max(axis=1, keepdims=True)).sum(axis=0)
    own, other = rng.normal(size=(2, grid.shape[1]))
    settings = {f"h{k}": column for k, column in enumerate(grid)}
    return effect + shared * own + other, effect + own, settings


@pytest.mark.slow
def test_the_null_keeps_its_level_where_both_follow_the_hyperparameters() -> None:
    """Models dealt anew at random would be rejected in 64% of such corpora."""
    rng = np.random.default_rng(3)
    found = [measure_cmi(*simulated(rng, 0.0), orientation=1, permutations=99, rng=rng) for _ in range(100)]
    pvalues = np.array([f.pvalue for f in found])
    assert np.mean(pvalues <= 0.05) <= 0.1  # 5% give or take two standard errors
    assert 0.4 < pvalues.mean() < 0.6
    # The score itself is well above 0, and so is its mean under the null.
    assert np.mean([f.score for f in found]) > 0.02
    assert np.mean([f.null_mean - f.score for f in found]) == pytest.approx(0, abs=0.01)


def test_the_null_is_rejected_where_the_measure_tells_more() -> None:
    rng = np.random.default_rng(4)
    found = [measure_cmi(*simulated(rng, 2.0), orientation=1, permutations=99, rng=rng).pvalue for _ in range(10)]
    assert max(found) <= 0.05


def test_a_measure_made_of_hyperparameters_alone_is_not_significant() -> None:
    rng = np.random.default_rng(5)
    _, gap, settings = simulated(rng, 0.0)
    count = 10 * (settings["h0"] + 1) * (settings["h1"] + 2) + 3 * settings["h2"] + settings["h3"]
    assert measure_cmi(count, gap, settings, orientation=1).pvalue > 0.05


@pytest.mark.slow
@pytest.mark.parametrize("orientation", [1, None])
def test_the_interval_holds_the_score_of_a_large_corpus(orientation: int | None) -> None:
    rng = np.random.default_rng(6)
    parts = [simulated(rng, 1.0) for _ in range(16)]
    settings = {k: np.concatenate([p[2][k] for p in parts]) for k in parts[0][2]}
    measure, gap = (np.concatenate([p[i] for p in parts]) for i in (0, 1))
    truth = cmi_score(measure, gap, settings, orientation=orientation)
    found = [
        measure_cmi(*simulated(rng, 1.0), orientation=orientation, permutations=0, rng=rng).value for _ in range(80)
    ]
    assert np.mean([truth in interval for interval in found]) >= 0.92
    assert np.mean([interval.width for interval in found]) < 0.35


def test_rng_decides_everything() -> None:
    pytest.importorskip("pandas")
    measure, gap, settings = corpus(7, 40)
    one, two, other = (measure_cmi(measure, gap, settings, rng=seed) for seed in (1, 1, 2))
    assert (one.value, one.pvalue) == (two.value, two.pvalue)
    assert one.null_mean != other.null_mean
    assert one.to_dict()["pvalue"] == one.pvalue
    assert "given" in one.frame()


@pytest.mark.parametrize("seed", range(25))
def test_few_models_give_possible_numbers(seed: int) -> None:
    """Small corpora, in which some draws of the null have no score."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 8))
    settings = {"a": rng.integers(0, 2, n), "b": rng.integers(0, 3, n)}
    gap = rng.integers(0, 3, n) / 4 if seed % 2 else np.arange(n) / n
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CurvewiseWarning)
        found = measure_cmi(gap if seed % 3 else rng.random(n), gap, settings, permutations=49)
    interval = found.value
    assert math.isnan(interval.low) == math.isnan(interval.high)
    assert not interval.low > interval.estimate
    assert not interval.high < interval.estimate
    assert math.isnan(found.pvalue) or 0 < found.pvalue <= 1
    assert not (math.isnan(found.pvalue) ^ math.isnan(found.null_mean))


def test_draws_without_a_score_do_not_count() -> None:
    assert upper_tail(np.array([0.1, 0.3, np.nan, np.nan]), 0.2) == 2 / 3
    assert math.isnan(upper_tail(np.array([0.1]), math.nan))
    assert math.isnan(upper_tail(np.array([math.nan]), 0.2))
