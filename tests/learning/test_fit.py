"""Many curves at once: the same as one by one, in any kind of table."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import curvewise as cw
from curvewise.errors import CurvewiseWarning

N5 = np.array([25, 50, 100, 200, 400.0])
RUNS = [16, 8, 4, 2, 1]


@pytest.fixture
def table():
    rng = np.random.default_rng(0)
    n = np.repeat(N5, RUNS)
    curves = {f"m{i}": 10 + i + 120 * n**-0.5 + rng.normal(size=len(n)) * np.sqrt(0.02 + 10 / n) for i in range(6)}
    return {
        "learner": np.repeat(list(curves), len(n)),
        "n": np.tile(n, 6),
        "error": np.concatenate(list(curves.values())),
    }


@pytest.mark.parametrize("form", ["power", "sqrt", "power2", "auto"])
def test_same_as_one_by_one(table, form):
    many = cw.fit_learning_curves(table, unit="percent", form=form)
    assert list(many.curves) == [f"m{i}" for i in range(6)]
    for name, curve in many.curves.items():
        keep = table["learner"] == name
        one = cw.fit_learning_curve(table["n"][keep], table["error"][keep], unit="percent", form=form)
        assert curve.error_at(800) == pytest.approx(one.error_at(800), rel=1e-9)
        assert curve.learner == name


def test_order_of_rows_does_not_matter(table):
    mixed = np.random.default_rng(1).permutation(len(table["n"]))
    a = cw.fit_learning_curves(table, unit="percent")
    b = cw.fit_learning_curves({k: v[mixed] for k, v in table.items()}, unit="percent")
    for name, curve in a.curves.items():
        assert b[name].error_at(400) == pytest.approx(curve.error_at(400))


def test_any_data_frame(table):
    expected = cw.fit_learning_curves(table, unit="percent")["m3"].alpha
    for library in ("pandas", "polars"):
        frame = pytest.importorskip(library).DataFrame(table)
        assert cw.fit_learning_curves(frame, unit="percent")["m3"].alpha == pytest.approx(expected)


def test_tables_with_other_columns_and_files_are_read_as_measurements(table, tmp_path):
    pandas = pytest.importorskip("pandas")
    expected = cw.fit_learning_curves(table, unit="percent", chance=90.0).frame()
    named = pandas.DataFrame({"model": table["learner"], "train_size": table["n"], "error (%)": table["error"]})
    named.to_csv(tmp_path / "errors.csv", index=False)
    for source in (named, tmp_path / "errors.csv", str(tmp_path / "errors.csv"), named.to_dict("records")):
        found = cw.fit_learning_curves(source, unit="percent", chance=90.0)
        pandas.testing.assert_frame_equal(found.frame(), expected)
        assert any("learner from 'model'" in note for note in found["m0"].notes)
    # Accuracies are known by their name; a blind guess is an accuracy where the values are said to be.
    named["acc (%)"] = 100.0 - named.pop("error (%)")
    pandas.testing.assert_frame_equal(cw.fit_learning_curves(named).frame(), expected)
    with pytest.warns(CurvewiseWarning, match="within a tenth of chance"):
        turned = cw.fit_learning_curves(named, unit="percent", higher_is_better=True, chance=64.0)
    with pytest.warns(CurvewiseWarning, match="within a tenth of chance"):
        errors = cw.fit_learning_curves(table, unit="percent", chance=36.0)
    assert [c.warnings for c in turned] == [c.warnings for c in errors]
    with pytest.raises(cw.InputError, match="no such file"):
        cw.fit_learning_curves("absent.csv")
    with pytest.raises(cw.InputError, match="Did you mean 'model'"):
        cw.fit_learning_curves(named, by="modell")
    assert cw.rank_learners(tmp_path / "errors.csv").learners == cw.rank_learners(cw.load_measurements(named)).learners


def test_curves_are_found_as_in_a_dict(table):
    many = cw.fit_learning_curves(table, unit="percent")
    assert list(many.keys()) == [f"m{i}" for i in range(6)]
    assert dict(many) == dict(many.items()) == many.curves
    assert list(many.values()) == list(many)
    assert all(many[curve] is curve and curve in many for curve in many)
    assert "m3" in many
    assert "m9" not in many
    with pytest.raises(cw.InputError, match=r"not the name of a learner.*'m0'.*list\(curves\)\[i\]"):
        many[0]
    with pytest.raises(cw.InputError, match="was not fitted"):
        many["m9"]


def test_pairs_and_measurements(table):
    keep = table["learner"] == "m3"
    pair = (table["n"][keep], table["error"][keep])
    expected = cw.fit_learning_curves(table, unit="percent")["m3"].alpha
    assert cw.fit_learning_curves({"m3": pair}, unit="percent")["m3"].alpha == expected
    m = cw.Measurements(table["learner"], table["n"], table["error"], cw.types.Unit("percent"))
    assert cw.fit_learning_curves(m)["m3"].alpha == pytest.approx(expected)
    assert len(m.of("m3")) == 31
    with pytest.raises(cw.InputError, match="'zzz' is not among"):
        m.of("zzz")
    with pytest.raises(cw.InputError, match="measurements are in"):
        cw.fit_learning_curves(m, unit="loss")


def test_accuracy_measurements_are_not_turned_twice(table):
    unit = cw.types.Unit("percent", higher_is_better=True)
    m = cw.Measurements(table["learner"], table["n"], unit.errors(100 - table["error"]), unit.once_read)
    expected = cw.fit_learning_curves(table, unit="percent")["m0"].error_at(400)
    assert cw.fit_learning_curves(m)["m0"].error_at(400) == pytest.approx(expected)


def test_refits_agree_with_the_profile_and_do_not_depend_on_company(table):
    many = cw.fit_learning_curves(table, unit="percent", refits=2000, at=400)
    keep = table["learner"] == "m2"
    alone = cw.fit_learning_curves({k: v[keep] for k, v in table.items()}, unit="percent", refits=2000, at=400)
    assert many.columns()["e_N_se"][2] == alone.columns()["e_N_se"][0]
    width = many["m2"].interval_at(400).error.width
    columns = many.columns()
    assert columns["e_N_q975"][2] - columns["e_N_q025"][2] == pytest.approx(width, rel=0.35)


def test_failures_are_reported_not_dropped(table):
    table["error"][table["learner"] == "m4"] = np.nan
    with pytest.warns(CurvewiseWarning, match="could not be fitted"):
        many = cw.fit_learning_curves(table, unit="percent")
    assert "m4" in many.failures
    assert "NaN" in many.failures["m4"]
    assert "m4" not in many.curves
    assert "could not be fitted" in many.summary()


def test_the_answer_comes_first(table):
    """Who has the lowest error where all were measured, then how many are flagged."""
    many = cw.fit_learning_curves(table, unit="percent")
    n = min(c.largest_n for c in many)
    best = min(many, key=lambda c: c.error_at(n))
    said = f"{best.learner} has the lowest error of 6 learners at n = {n:.0f}: "
    assert many.summary().startswith(said)
    assert "flagged" not in many.summary()
    two = cw.fit_learning_curves({k: v[np.isin(table["learner"], ["m0", "m1"])] for k, v in table.items()}, unit="loss")
    assert " has the lowest loss of 2 learners at n = " in two.summary()
    keep = table["learner"] == "m2"
    one = cw.fit_learning_curves({k: v[keep] for k, v in table.items()}, unit="percent")
    assert one.summary().startswith("m2: e_N ")


def test_flagged_curves_are_counted(table):
    table["error"][table["learner"] == "m1"] = table["error"][table["learner"] == "m1"][::-1]
    with pytest.warns(CurvewiseWarning, match="1 of 6 curves are flagged"):
        many = cw.fit_learning_curves(table, unit="percent")
    assert " 1 of 6 curves has warnings." in many.summary().split(" Warning")[0]


def test_missing_columns_are_named(table):
    with pytest.raises(cw.InputError, match="No column") as caught:
        cw.fit_learning_curves({"learner": table["learner"], "size": table["n"]})
    assert "cw.load_measurements" in caught.value.__notes__[0]
    with pytest.raises(cw.InputError, match="No curve can be fitted"):
        cw.fit_learning_curves({"a": ([1.0], [np.nan])})


def test_compact_tables(table):
    many = cw.fit_learning_curves(table, unit="percent", at=400)
    assert many.table("markdown").splitlines()[0].startswith("| learner | N")
    assert r"$\beta_N$" in many.table("latex")
    text = many.table("text").splitlines()
    assert len(text) == 9
    assert text[-1] == "Error e_N and data-reliance β_N (95% confidence intervals)"
    with pytest.raises(cw.InputError, match="m9"):
        many["m9"]


def test_lcdb_in_one_call(data_dir):
    pd = pytest.importorskip("pandas")
    frame = pd.read_csv(data_dir / "learning_curves" / "lcdb10_error_mean_var.csv.gz")
    frame = frame[frame.openmlid < 50]
    table = {
        "learner": (frame.openmlid.astype(str) + "/" + frame.learner).to_numpy(),
        "n": frame.size_train.to_numpy(),
        "error": frame.err_valid_mean.to_numpy(),
        "runs": frame.n_rep.to_numpy(),
        "variance": frame.err_valid_var.to_numpy(),
    }
    with pytest.warns(CurvewiseWarning, match="curves are flagged"):
        many = cw.fit_learning_curves(table)
    assert len(many) == len(set(table["learner"]))
    assert all(np.isfinite(c.error_at()) for c in many)


def test_variance_without_runs_and_nameless_learners_are_refused(table):
    with pytest.raises(cw.InputError, match="no 'runs'"):
        cw.fit_learning_curves({**table, "variance": np.ones_like(table["n"])})
    names = table["learner"].astype(object)
    names[3] = None
    with pytest.raises(cw.InputError, match="missing values"):
        cw.fit_learning_curves({**table, "learner": names}, unit="percent")


def test_scores_go_round(table):
    pytest.importorskip("pandas")
    unit = cw.types.Unit("score", higher_is_better=True)
    m = cw.Measurements(table["learner"], table["n"], -table["error"], unit)
    again = cw.fit_learning_curves(m.frame(), unit="score", higher_is_better=True)
    assert again["m0"].error_at(400) == cw.fit_learning_curves(m)["m0"].error_at(400)


def test_tables_hold_the_intervals_at_their_size(table):
    many = cw.fit_learning_curves(table, unit="percent", at=300)
    columns = many.columns()
    for i, curve in enumerate(many):
        at = curve.interval_at(300)
        for name, interval in {"e_N": at.error, "beta_N": at.data_reliance}.items():
            row = [columns[f"{name}{end}"][i] for end in ("", "_low", "_high")]
            assert row == pytest.approx([interval.estimate, interval.low, interval.high])
        assert curve.columns()["e_N"] == [curve.interval_at().error.estimate]
        assert (curve.e_N, curve.beta_N) == (curve.error_at(), curve.data_reliance_at())


def test_more_of_the_largest_sizes_than_there_are_is_noted():
    n, error = [100, 200, 400, 800, 1600], [30.0, 25.0, 21.0, 18.0, 16.0]
    told = "largest=9 was asked for, and there are 5 sizes: all are used, with γ held at −½."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one = cw.learning.fit_learning_curve(n, error, unit="percent", largest=9)
        many = cw.learning.fit_learning_curves({"a": (n, error)}, unit="percent", largest=9)
        all_five = cw.learning.fit_learning_curves({"a": (n, error)}, unit="percent", largest=5)
    assert told in map(str, one.notes)
    assert not any("Only the 9" in note for note in one.notes)
    assert told in map(str, many.warnings)
    assert not any("asked for" in w for w in all_five.warnings)


def _rows_of_two(sizes: tuple[int, ...] = (100, 200, 400, 800)) -> dict[str, list[Any]]:
    rows = [(k, n, seed) for k in "ab" for n in sizes for seed in range(3)]
    error = [0.1 + 0.05 * (k == "b") + n**-0.5 + 0.003 * ((7 * n + 5 * seed) % 11) for k, n, seed in rows]
    return {"learner": [r[0] for r in rows], "n": [r[1] for r in rows], "seed": [r[2] for r in rows], "error": error}


def test_a_frame_with_a_column_of_scores_is_read_by_its_name() -> None:
    pandas = pytest.importorskip("pandas")
    table = _rows_of_two()
    scores = {**{k: table[k] for k in ("learner", "n")}, "score": [1 - e for e in table["error"]]}
    found = cw.compare_learners(pandas.DataFrame(scores))
    assert "a is significantly better than all others" in found.summary()
    fitted = cw.fit_learning_curves(scores, higher_is_better=True)["a"]
    assert fitted.error_at(800) == pytest.approx(cw.fit_learning_curves(scores)["a"].error_at(800))


@pytest.mark.parametrize("further", [{"split": ["train", "test"]}, {"epoch": [1, 2]}, {"seed": None}])
def test_rows_of_a_frame_that_are_no_runs_of_one_curve_are_refused(further: dict[str, Any]) -> None:
    table = _rows_of_two()
    twice = {k: v + v for k, v in table.items()}
    for name, values in further.items():
        if values is not None:
            twice[name] = [values[0]] * len(table["n"]) + [values[1]] * len(table["n"])
    with pytest.raises(cw.InputError, match=r"splits|are the same run"):
        cw.fit_learning_curves(twice)


def test_a_metric_of_a_frame_says_that_higher_is_better() -> None:
    table = _rows_of_two()
    table["metric"] = ["accuracy"] * len(table["n"])
    with pytest.raises(cw.InputError, match="disagree on whether higher is better"):
        cw.fit_learning_curves(table)
    # A second result of the same runs is not the error.
    fitted = cw.fit_learning_curves({**_rows_of_two(), "accuracy": [1 - e for e in table["error"]]})
    assert fitted["a"].error_at(800) == cw.fit_learning_curves(_rows_of_two())["a"].error_at(800)
