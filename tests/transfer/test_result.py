"""Methods against each other on the same sizes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.stats import holm
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.result import TransferResult
from curvewise.transfer.risks import Control

SIZES = (100, 1000, 10000)
CURVES = {
    "scratch": (0.82, 0.54, 0.30),
    "one": (0.52, 0.40, 0.26),
    "two": (0.47, 0.37, 0.25),
    "three": (0.80, 0.55, 0.31),
}


def rows(task: str = "a", seed: int = 0, spread: float = 0.01, runs: int = 4) -> list[dict]:
    rng = np.random.default_rng(seed)
    return [
        {"task": task, "method": m, "n": n, "risk": r + spread * rng.standard_normal()}
        for m, risks in CURVES.items()
        for n, r in zip(SIZES, risks, strict=True)
        for _ in range(runs)
    ]


def measure(given: list[dict], **options) -> TransferResult:
    table = {k: [r[k] for r in given] for k in given[0]}
    return measure_transfer(table, **{"blind": 1.0, "maximal": 0.1, **options})


def test_a_difference_is_that_of_the_improvements() -> None:
    found = measure(rows())
    row = found.compare("two", "one", "a").rows[0]
    values = [found.improvement("a", m).cci.estimate for m in ("two", "one")]
    assert row.difference.estimate == pytest.approx(values[0] - values[1])
    assert row.difference.low < row.difference.estimate < row.difference.high
    assert row.adjusted == row.pvalue
    assert row.n.tolist() == [100, 1000, 10000]


def test_turned_round_it_changes_its_sign() -> None:
    found = measure(rows())
    one, two = (found.compare(*pair, "a").rows[0] for pair in (("one", "two"), ("two", "one")))
    assert one.difference.estimate == -two.difference.estimate
    assert one.difference.low == pytest.approx(-two.difference.high)
    assert one.pvalue == pytest.approx(two.pvalue)


def test_scratch_is_shared_and_does_not_count_twice() -> None:
    """Where scratch alone is unsure, improvements are and their difference is not."""
    rng = np.random.default_rng(1)
    given = [
        {**r, "risk": r["risk"] + 0.05 * rng.standard_normal() * (r["method"] == "scratch")} for r in rows(spread=0.002)
    ]
    found = measure(given)
    row = found.compare("two", "one", "a").rows[0]
    assert row.difference.width < 0.4 * found.improvement("a", "one").cci.width
    assert row.pvalue < 0.01


def test_a_method_against_itself_is_no_different() -> None:
    row = measure(rows()).compare("one", "one", "a").rows[0]
    assert (row.difference.estimate, row.difference.width, row.pvalue) == (0, 0, 1)


def test_all_pairs_of_all_tasks_are_adjusted_together() -> None:
    found = measure([*rows(), *rows("b", seed=1)]).comparisons()
    assert [(r.task, r.one, r.two) for r in found.rows] == [
        (task, one, two) for one, two in (("one", "two"), ("one", "three"), ("two", "three")) for task in ("a", "b")
    ]
    np.testing.assert_allclose([r.adjusted for r in found.rows], holm([r.pvalue for r in found.rows]))
    assert all(r.adjusted >= r.pvalue for r in found.rows)
    assert "for all comparisons together" in found.summary()
    assert {len(v) for v in found.columns().values()} == {6}
    assert json.loads(json.dumps(found.to_dict()))["rows"][0]["one"] == "one"


def test_several_tasks_have_an_average() -> None:
    found = measure([*rows(), *rows("b", seed=1)]).compare("two", "one")
    *each, mean = found.rows
    assert mean.task == "average"
    assert mean.difference.estimate == pytest.approx(np.mean([r.difference.estimate for r in each]))
    # Twice the same task has the error of one over the root of two, and more degrees of freedom.
    same = measure([*rows(), *rows("b")]).compare("two", "one").rows
    assert same[0].difference.width == pytest.approx(same[1].difference.width)
    assert 0.5 < same[2].difference.width / same[0].difference.width < 0.5**0.5


def test_sizes_that_only_one_has_are_left_out() -> None:
    given = [r for r in rows() if not (r["method"] == "two" and r["n"] == 100)]
    with pytest.warns(UserWarning, match="different sizes"):
        found = measure(given)
    compared = found.compare("two", "one", "a")
    assert compared.rows[0].n.tolist() == [1000, 10000]
    assert compared.warnings == ("a: two and one are compared on the 2 sizes that both have.",)
    same = measure(given, sizes=[1000, 10000]).compare("two", "one", "a").rows[0]
    assert compared.rows[0].difference.estimate == pytest.approx(same.difference.estimate)


def test_a_task_that_lacks_one_is_left_out() -> None:
    other = [r for r in rows("b") if r["method"] != "two"]
    found = measure([*rows(), *other]).compare("two", "one")
    assert [r.task for r in found.rows] == ["a"]
    assert found.warnings == ("b: two, one and scratch share no size.",)


def test_without_repeats_there_is_a_difference_and_no_interval() -> None:
    with pytest.warns(UserWarning, match="no method was run twice"):
        found = measure(rows(runs=1))
    row = found.comparisons().rows[0]
    assert np.isfinite(row.difference.estimate)
    assert np.isnan([row.difference.low, row.pvalue, row.adjusted]).all()


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda r: r.compare("one", "tow"), "Did you mean 'two'"),
        (lambda r: r.compare("one", "scratch"), "'scratch': is none of"),
        (lambda r: r.compare("one", "two", "c"), "task='c'"),
    ],
    ids=["method", "scratch", "task"],
)
def test_unknown_names(call, said: str) -> None:
    with pytest.raises(InputError, match=said):
        call(measure(rows()))


def test_one_method_has_no_pairs() -> None:
    with pytest.raises(InputError, match="at least two"):
        measure(rows(), methods=["one"]).comparisons()


class TestRanks:
    def test_places_follow_the_means_at_each_size(self) -> None:
        found = measure(rows())
        ranks = found.ranks()
        for n in SIZES:
            places = {m: r.rank for m, r in ranks.at("a", n).items()}
            risk = {c.method: c.risk[c.n == n][0] for c in found.curves}
            assert sorted(places, key=places.get) == sorted(risk, key=risk.get)
            assert sorted(places.values()) == [1, 2, 3, 4]

    def test_intervals_hold_the_place_and_the_sure_ones_are_narrow(self) -> None:
        ranks = measure(rows(spread=0.001)).ranks().at("a", 100)
        assert all(r.low <= r.rank <= r.high for r in ranks.values())
        assert {m: (r.low, r.high) for m, r in ranks.items()} == {
            "two": (1, 1),
            "one": (2, 2),
            "three": (3, 3),
            "scratch": (4, 4),
        }
        assert ranks["two"].best == pytest.approx(1, abs=1e-3)

    def test_methods_that_cannot_be_told_apart_may_have_any_place(self) -> None:
        ranks = measure(rows(spread=3.0), sizes=[1000, 10000], maximal=-9.0).ranks().at("a", 10000)
        assert {(r.low, r.high) for r in ranks.values()} == {(1, 4)}
        assert sum(r.best for r in ranks.values()) == pytest.approx(1)

    def test_vague_controls_do_not_blur_places(self) -> None:
        """Which of two risks is lower has nothing to do with the scale between the controls."""
        given = rows(spread=0.001)
        sharp, vague = (measure(given, blind=Control(1.0, s), maximal=Control(0.1, s)).ranks() for s in (0.0, 0.4))
        assert vague.columns() == sharp.columns()
        assert any(r.high < r.among for r in vague.rows)

    def test_they_know_who_starts_from_nothing(self) -> None:
        given = [{**r, "method": "random" * (r["method"] == "scratch") or r["method"]} for r in rows()]
        assert measure(given, scratch="random").ranks().scratch == "random"

    def test_ties_share_a_place(self) -> None:
        given = [{**r, "risk": 0.5} for r in rows() if r["n"] == 100]
        with pytest.warns(UserWarning, match="one size"):
            ranks = measure(given).ranks().at("a", 100)
        assert {r.rank for r in ranks.values()} == {2.5}
        assert {(r.low, r.high) for r in ranks.values()} == {(1, 4)}

    def test_means_that_are_equal_but_for_rounding_share_a_place(self) -> None:
        risks = {"scratch": (0.1, 0.5), "one": (0.2, 0.4), "two": (0.3, 0.3), "three": (0.15, 0.45)}
        given = [
            {"task": "a", "method": m, "n": n, "seed": s, "risk": r + (n == 10)}
            for m, pair in risks.items()
            for n in (10, 100)
            for s, r in enumerate(pair)
        ]
        ranks = measure(given, blind=2.0, maximal=0.05).ranks()
        for n in (10, 100):
            assert {r.rank for r in ranks.at("a", n).values()} == {2.5}

    def test_only_methods_that_were_there_are_ranked(self) -> None:
        given = [r for r in rows() if not (r["method"] == "two" and r["n"] == 100)]
        with pytest.warns(UserWarning, match="different sizes"):
            ranks = measure(given).ranks()
        assert "two" not in ranks.at("a", 100)
        assert {r.among for r in ranks.at("a", 100).values()} == {3}
        assert {r.among for r in ranks.at("a", 1000).values()} == {4}

    def test_it_says_who_leads(self) -> None:
        ranks = measure(rows(spread=0.001)).ranks()
        assert ranks.summary().splitlines()[0] == "a, n = 100: two is first of 4, significantly."
        assert {len(v) for v in ranks.columns().values()} == {12}

    def test_without_repeats_nothing_is_sure(self) -> None:
        with pytest.warns(UserWarning, match="no method was run twice"):
            ranks = measure(rows(runs=1)).ranks().at("a", 100)
        assert {(r.low, r.high) for r in ranks.values()} == {(1, 4)}
        assert np.isnan([r.best for r in ranks.values()]).all()

    @pytest.mark.slow
    def test_places_are_held_as_often_as_stated(self) -> None:
        """Places of all methods at a size together, of which two are alike."""
        rng = np.random.default_rng(3)
        true = {"scratch": 0.6, "one": 0.5, "two": 0.5, "three": 0.45}
        held = []
        for _ in range(60):
            given = [
                {"task": "a", "method": m, "n": 10, "risk": r + 0.04 * rng.standard_normal()}
                for m, r in true.items()
                for _ in range(4)
            ]
            with pytest.warns(UserWarning, match="one size"):
                ranks = measure(given).ranks().at("a", 10)
            first = {m: 1 + sum(x < r for x in true.values()) for m, r in true.items()}
            last = {m: sum(x <= r for x in true.values()) for m, r in true.items()}
            held.append(all(r.low <= last[m] and r.high >= first[m] for m, r in ranks.items()))
        assert np.mean(held) >= 0.9


def test_readable_columns_have_words_for_heads() -> None:
    table = measure(rows()).readable()
    assert "CCI" in table
    assert not {"cci", "gain until", "gain from", "borrowed"} & set(table)
    assert table["gain significant at n"][0].startswith("100, ")
