from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import curvewise as cw
from curvewise.text import format_interval


def test_fit_prints_what_the_library_fits(call, errors):
    done = call("learning", "fit", errors)
    curve = cw.fit_learning_curves(cw.load_measurements(errors))["naive Bayes"]
    at = curve.interval_at().error
    assert done.code == 0
    assert format_interval(at, "fraction") in done.out
    assert "naive Bayes: at n = 1,437 the error is" in call("learning", "fit", errors, "--verbose").out
    assert max(map(len, done.out.split("\n\n")[0].splitlines())) <= 80


def test_what_was_read_is_said_on_stderr_only(call, errors):
    done = call("learning", "fit", errors)
    assert done.err.startswith("note: value from 'error' (an error from 0 to 1); 94 rows")
    assert "note:" not in done.out
    assert "n from 'n'; learner from 'learner'" in call("learning", "fit", errors, "--verbose").err


def test_fit_at_another_size_and_level(call, errors):
    done = call("learning", "fit", errors, "--at", 400, "--level", 0.8, "--json")
    row = done.document["table"][0]
    curve = cw.fit_learning_curves(cw.load_measurements(errors))[row["learner"]]
    at = curve.interval_at(400, level=0.8)
    assert row["values"]["error"]["low"] == pytest.approx(at.error.low)
    assert row["values"]["data_reliance"]["high"] == pytest.approx(at.data_reliance.high)
    assert row["gamma"]["level"] == 0.8


def test_answers_to_predict_reach_and_cost(call, errors):
    arguments = ("--predict", "3000,5000", "--reach", "0.05", "--cost-per-sample", "2")
    document = call("learning", "fit", errors, *arguments, "--json").document
    curves = cw.fit_learning_curves(cw.load_measurements(errors))
    trees = curves["bagged trees"]
    first = document["predictions"][0]
    assert (first["n"], first["error"]) == (3000, pytest.approx(trees.error_at(3000)))
    assert len(document["predictions"]) == 4
    assert document["samples_to_reach"][0]["estimate"] == pytest.approx(trees.samples_to_reach(0.05).estimate)
    assert document["budget"][0]["cost"] == 2 * (3000 - 1437)
    text = call("learning", "fit", errors, *arguments).out
    assert "Training examples needed for 5%" in text
    assert "3,126.00" in text


@pytest.mark.parametrize(
    ("command", "option", "value", "message"),
    [
        ("fit", "--predict", "0", "0 is no training size"),
        ("fit", "--predict", "800,-5", "-5 is no training size"),
        ("plan", "--sizes", "0,100", "0 is no training size"),
        ("fit", "--reach", "-1", "--reach -1 must be an error above 0 and up to 1"),
        ("fit", "--reach", "5", "--reach 5 must be an error above 0 and up to 1"),
        ("fit", "--reach", "nan", "--reach nan must be an error above 0 and up to 1"),
    ],
)
def test_questions_are_checked_before_any_output(call, errors, command, option, value, message):
    done = call("learning", command, errors, f"{option}={value}")
    said = " ".join((done.out + done.err).replace("│", " ").split())
    assert done.code != 0
    assert message in said
    assert option in said
    assert "intervals" not in done.out


def test_help_of_rank_says_where_learners_are_ranked(call):
    shown = " ".join(call("learning", "rank", "--help").out.replace("│", " ").split())
    assert "the smallest of their largest sizes" in shown


def test_a_file_without_a_curve_is_named(call, tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("n,error\n10,0.5\n10,0.4\n")
    for command in ("fit", "rank", "plan"):
        done = call("learning", command, path)
        assert done.code != 0
        assert "frame" not in done.err
        assert "one.csv: No curve can be fitted" in done.err.replace("\n", "")


def test_remedies_on_the_command_line_work(call, tmp_path):
    rows = [(n, t) for n in (10, 20, 40, 80) for t in (0, 0, 1)]
    path = tmp_path / "r.csv"
    lines = [f"{n},{1 / n**0.5 + i / 999:.6f},{t},a,b" for i, (n, t) in enumerate(rows)]
    path.write_text("\n".join(["n,error,trial,learner,model", *lines]))
    assert "or --column learner= to take none" in call("learning", "fit", path).err
    done = call("learning", "fit", path, "--column", "learner=")
    assert "pass --column ignore=trial" in done.err
    assert call("learning", "fit", path, "--column", "learner=", "--column", "ignore=trial").code == 0


def test_rows_that_are_alike_are_runs_by_the_users_word_in_several_files(call, tmp_path):
    lines = [f"{n},{1 / n**0.5:.6f},a" for n in (10, 20, 40, 80)]
    paths = [tmp_path / "x.csv", tmp_path / "y.csv"]
    for path in paths:
        path.write_text("\n".join(["n,error,learner", *lines]))
    done = call("learning", "fit", *paths, "--same-name", "pool")
    assert done.code != 0
    assert "or pass --column seed=, if these are different runs" in done.err
    assert call("learning", "fit", *paths, "--same-name", "pool", "--column", "seed=").code == 0


def test_budget_defaults_to_twice_and_four_times_the_data(call, errors):
    document = call("learning", "fit", errors, "--cost-per-sample", "1", "--json").document
    assert [r["n"] for r in document["budget"][:2]] == [2 * 1437, 4 * 1437]


def test_infinity_is_a_string_in_json(call, errors):
    document = call("learning", "fit", errors, "--reach", "0.0001", "--json").document
    assert document["samples_to_reach"][0]["high"] == "Infinity"


@pytest.mark.parametrize(
    ("markup", "start"), [("markdown", "| learner"), ("latex", r"% needs \usepackage{booktabs}"), ("text", "l")]
)
def test_markup_leaves_only_tables_on_stdout(call, errors, markup, start):
    done = call("learning", "fit", errors, "--table", markup)
    assert done.out.startswith(start)
    assert "data-reliance:" not in done.out
    assert "data-reliance:" in done.err
    name = {"markdown": "markdown", "latex": "latex", "text": "text"}[markup]
    assert done.out == cw.fit_learning_curves(cw.load_measurements(errors)).table(name) + "\n"


def test_latex_has_no_characters_latex_lacks(call, errors):
    out = call("learning", "fit", errors, "--reach", "0.0001", "--table", "latex").out
    assert r"$\beta_N$" in out
    assert r"$\infty$" in out
    assert out.isascii()


def test_reading_options_reach_the_reader(call, tmp_path):
    path = tmp_path / "odd.csv"
    path.write_text(
        "size,quality,net,width,part\n"
        + "".join(
            f"{n},{80 - 100 / n**0.5:.3f},{net},{width},{part}\n"
            for n in (10, 20, 40)
            for net in "ab"
            for width in (1, 2)
            for part in ("train", "test")
        )
    )
    options = ["--unit", "percent", "--accuracy", "--n-column", "size", "--value-column", "quality"]
    options += ["--learner-column", "net", "--learner-column", "width", "--per-class", "10"]
    options += ["--column", "split=part", "--split", "test", "--json"]
    document = call("learning", "fit", path, *options).document
    assert list(document["curves"]) == ["a / 1", "a / 2", "b / 1", "b / 2"]
    curve = document["curves"]["a / 1"]
    assert curve["n"] == [100, 200, 400]
    assert curve["unit"]["name"] == "percent"
    assert curve["mean"][0] == pytest.approx(20 + 100 / 10**0.5, abs=1e-3)


def test_means_with_runs_and_variance(call, tmp_path):
    path = tmp_path / "means.csv"
    path.write_text("n,error,k,v\n" + "".join(f"{n},{2 / n**0.5},5,1e-4\n" for n in (50, 100, 200)))
    options = ["--runs-column", "k", "--variance-column", "v", "--json"]
    curve = call("learning", "fit", path, *options).document["curves"]["means"]
    assert curve["runs"] == [5, 5, 5]


def test_errors_speak_of_options_not_of_python(call, tmp_path):
    path = tmp_path / "percent.csv"
    path.write_text("n,error\n100,30.5\n200,22.1\n")
    done = call("learning", "fit", path)
    assert done.code == 1
    assert done.err.startswith("curvewise: ")
    assert "--unit percent" in done.err
    assert "unit='" not in done.err
    assert done.out == ""


def test_warnings_are_lines_and_come_once(call, tmp_path):
    path = tmp_path / "few.csv"
    path.write_text("n,error\n100,0.3\n200,0.25\n")
    err = call("learning", "fit", path).err
    lines = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert lines
    assert len(lines) == len(set(lines))
    assert "CurvewiseWarning" not in err


def test_many_warnings_are_counted(call, tmp_path):
    path = tmp_path / "many.csv"
    rows = [f"l{k},{n},{0.3 - n / 1000}" for k in range(30) for n in (100, 200)]
    path.write_text("learner,n,error\n" + "\n".join(rows) + "\n")
    err = call("learning", "fit", path).err
    assert err.count("warning:") <= 4
    assert "The same holds for l1, l2, l3, l4 and 25 more" in err
    assert len(err.splitlines()) < 20
    assert call("learning", "fit", path, "--verbose").err.count("2 sizes") >= 30


def test_standard_input(start, errors):
    done = start("learning", "rank", "-", "--json", input=errors.read_text())
    assert done.code == 0
    assert set(done.document["learners"]) == {"bagged trees", "naive Bayes"}


def test_compare_defaults_to_the_two_learners(call, errors):
    document = call("learning", "compare", errors, "--json").document
    assert (document["a"], document["b"]) == ("bagged trees", "naive Bayes")


GATES = [("worse", 3, 0), ("better", 0, 3), ("undecided", 0, 0)]


@pytest.mark.parametrize(("gate", "bad_first", "good_first"), GATES)
def test_gates(call, table, gate, bad_first, good_first):
    path = table("two.csv", {"bad": (0.3, 1.0), "good": (0.1, 1.0)})
    names = [("--a", "bad", "--b", "good"), ("--a", "good", "--b", "bad")]
    codes = [call("learning", "compare", path, *n, "--fail-if", gate).code for n in names]
    assert codes == [bad_first, good_first]


def test_one_learner_cannot_pass_a_gate_against_itself(call, table):
    path = table("one.csv", {"only": (0.3, 1.0)})
    done = call("learning", "compare", path, "--fail-if", "worse")
    assert done.code == 2
    assert "two learners" in done.err


def test_gate_on_undecided(call, errors):
    done = call("learning", "compare", errors, "--fail-if", "worse", "--fail-if", "undecided")
    assert done.code == 3
    assert "bagged trees and naive Bayes are not significantly different" in done.out
    assert "exit status 3" in done.err


def test_gate_with_json_still_prints_the_document(call, errors):
    done = call("learning", "compare", errors, "--fail-if", "undecided", "--json")
    assert done.code == 3
    assert done.document["verdict"] == "undecided"


def test_compare_takes_all_pairs_of_many(call, table):
    path = table("three.csv", {"resnet-18": (0.1, 1), "resnet-50": (0.1, 1.2), "vit": (0.3, 1)})
    done = call("learning", "compare", path)
    known = cw.learning.compare_learners(cw.fit_learning_curves(cw.load_measurements(path)))
    assert done.code == 0
    assert "3 pairs at n = " in done.out
    assert known.sentences() in " ".join(done.out.split())
    document = call("learning", "compare", path, "--json").document
    assert document["pairs"] == [list(pair) for pair in known.pairs]
    assert call("learning", "compare", path, "--table", "latex").out == known.to_latex() + "\n"
    refused = call("learning", "compare", path, "--fail-if", "worse")
    assert refused.code == 2
    assert "name it with --a" in refused.err
    for name, gate, code in (("vit", "worse", 3), ("vit", "better", 0), ("resnet-18", "worse", 0)):
        assert call("learning", "compare", path, "--a", name, "--fail-if", gate).code == code, (name, gate)
    done = call("learning", "compare", path, "--a", "VIT", "--b", "vit")
    assert done.code == 2
    assert "Did you mean 'vit'?" in done.err


def test_compare_two_files_of_one_learner_each(call, table):
    new = table("new.csv", {"net": (0.1, 1.0)})
    old = table("old.csv", {"net": (0.3, 1.0)})
    document = call("learning", "compare", new, old, "--json").document
    assert (document["a"], document["b"], document["verdict"]) == ("new", "old", "a better")


def test_learner_in_two_files_is_asked_for(call, table):
    files = [table(f"{name}.csv", {"net": (a, 1)}) for name, a in (("one", 0.1), ("two", 0.11))]
    done = call("learning", "fit", *files)
    assert done.code == 2
    assert "--same-name pool" in done.err
    pooled = call("learning", "fit", *files, "--same-name", "pool", "--json").document["curves"]
    assert pooled["net"]["runs"] == [6, 6, 6, 6]
    apart = call("learning", "fit", *files, "--same-name", "separate", "--json").document["curves"]
    assert list(apart) == ["one", "two"]


def test_copies_of_a_file_are_not_pooled(call, table):
    files = [table(name, {"net": (0.1, 1.0)}) for name in ("one.csv", "two.csv")]
    done = call("learning", "fit", *files, "--same-name", "pool")
    assert done.code == 1
    assert "Every row of 'net'" in done.err
    assert "is there 2 times" in done.err


def test_folds_of_several_files_are_kept(call, tmp_path):
    """Seeds that share a fold are not independent, in one file or in two."""
    rows = [
        f"net,{n},{fold},{seed},{0.1 + n**-0.5 + 0.01 * fold + 0.001 * seed}"
        for n in (50, 100, 200)
        for fold in (0, 1)
        for seed in (0, 1)
    ]
    head = "learner,n,fold,seed,error\n"
    (tmp_path / "all.csv").write_text(head + "\n".join(rows) + "\n")
    for half in (0, 1):
        (tmp_path / f"{half}.csv").write_text(head + "\n".join(rows[half::2]) + "\n")
    whole = call("learning", "fit", tmp_path / "all.csv")
    parts = call("learning", "fit", tmp_path / "0.csv", tmp_path / "1.csv", "--same-name", "pool")
    assert "6 training subsets with several runs (seeds) each: their mean counts as one run" in whole.err
    assert "6 training subsets with several runs (seeds) each" in parts.err


def test_files_without_learners_are_named_after_the_file(call, table):
    files = [table(name, {"": (0.1, 1.0)}, column=False) for name in ("one.csv", "two.csv")]
    assert list(call("learning", "fit", *files, "--json").document["curves"]) == ["one", "two"]


def test_plan(call, errors):
    done = call("learning", "plan", errors, "--learner", "naive Bayes", "--sizes", "718,1437,2000")
    assert done.code == 0
    assert "add" in done.out
    document = call("learning", "plan", errors, "--learner", "naive Bayes", "--factor", "0.8", "--json").document
    assert document["width_then"] <= 0.8 * document["width_now"] * (1 + 1e-9)


def test_plan_asks_whose_curve(call, errors):
    done = call("learning", "plan", errors)
    assert done.code == 2
    assert "--learner" in done.err


def test_plan_of_a_form_without_parameters_fails_in_words(call, errors):
    done = call("learning", "plan", errors, "--learner", "naive Bayes", "--form", "auto")
    assert done.code == 1
    assert "--form power" in done.err


def test_rank(call, errors):
    document = call("learning", "rank", errors, "--at", "5748", "--json").document
    assert document["at"] == 5748
    assert sum(document["probability_best"]) == pytest.approx(1, abs=0.02)
    curves = cw.fit_learning_curves(cw.load_measurements(errors))
    best = curves[document["learners"][0]]
    assert document["error"][0] == pytest.approx(best.error_at(5748))


def test_validate(call, errors, monkeypatch):
    m = cw.load_measurements(errors)
    expected = cw.leave_one_size_out(m.n, m.error, learner=m.learner)
    document = call("learning", "validate", errors, "--json").document
    assert np.allclose(document["average"], expected.average)
    narrow = call("learning", "validate", errors).out
    assert "average" in narrow
    assert " 359 " not in narrow
    monkeypatch.setenv("COLUMNS", "140")
    assert " 359 " in call("learning", "validate", errors).out


def test_validate_chosen_forms(call, errors):
    done = call("learning", "validate", errors, "--form", "power", "--form", "sqrt", "--json")
    assert done.document["forms"] == ["power", "sqrt"]


def test_hostile_names_stay_text(call, tmp_path):
    path = tmp_path / "hostile.csv"
    name = "[red]x[/red]\x1b[31m\x07\u202e:smile:"
    rows = [f"{name},{n},{2 / n**0.5}" for n in (100, 200, 400, 800)]
    path.write_text("learner,n,error\n" + "\n".join(rows) + "\n", encoding="utf-8")
    for options in ((), ("--table", "markdown"), ("--table", "latex")):
        done = call("learning", "fit", path, *options)
        assert done.code == 0
        assert not set("\x1b\x07\u202e") & set(done.out + done.err)
    out = call("learning", "fit", path).out
    assert "[red]x[/red][31m:smile:" in "".join(out.split())
    assert list(call("learning", "fit", path, "--json").document["curves"]) == [name]


def test_column_must_be_a_pair(call, errors):
    done = call("learning", "fit", errors, "--column", "fold")
    assert done.code == 2
    assert "ROLE=COLUMN" in done.err


def test_long_names_never_cut_numbers(call, table):
    path = table("long.csv", {"a rather long name of a learner " * 3: (0.1, 1.0), "y" * 90: (0.2, 1)})
    out = call("learning", "fit", path).out
    assert Path(path).exists()
    document = call("learning", "fit", path, "--json").document
    for row in document["table"]:
        interval = row["values"]["error"]
        assert format_interval([interval[key] for key in ("estimate", "low", "high")], "fraction") in out


def test_largest_holds_gamma_unless_a_form_is_named(call, errors):
    m = cw.load_measurements(errors).of("naive Bayes")
    light = call("learning", "fit", errors, "--largest", 3, "--json").document["curves"]["naive Bayes"]
    known = cw.fit_learning_curves(m, largest=3)["naive Bayes"]
    assert (light["form"], light["gamma"], light["alpha"]) == ("sqrt", -0.5, pytest.approx(known.alpha))
    assert light["notes"] == ["Only the 3 largest sizes are used, and γ is held at −½."]
    free = call("learning", "fit", errors, "--largest", 5, "--form", "power", "--json").document["curves"][
        "naive Bayes"
    ]
    assert (free["form"], len(free["n"])) == ("power", 5)
    assert "form sqrt" in call("learning", "rank", errors, "--largest", 3).out
    refused = call("learning", "fit", errors, "--largest", 1)
    assert refused.code == 2
    assert "--largest" in refused.err


def test_stability_says_what_the_library_measures(call, errors):
    m = cw.load_measurements(errors).of("naive Bayes")
    asked = ("--learner", "naive Bayes", "--sizes", "179,359,718", "--form", "power", "--draws", 50, "--seed", 4)
    done = call("learning", "stability", errors, *asked, "--json")
    known = cw.learning.measure_stability(m.n, m.error, sizes=[179, 359, 718], forms=["power"], draws=50, rng=4)
    assert done.document == known.to_dict()
    text = call("learning", "stability", errors, *asked).out
    assert f"{100 * known.error_std[0]:.3g}%" in text
    assert "RMSE at 1437" in " ".join(text.split())
    assert "Which learner?" in call("learning", "stability", errors).err
    wrong = call("learning", "stability", errors, "--learner", "naive Bayes", "--sizes", "5,6")
    assert "--sizes must be at least two of the sizes that were measured: 44, 89," in wrong.err


def test_stability_of_means_is_that_of_their_runs(call, errors, tmp_path):
    m = cw.load_measurements(errors).of("naive Bayes")
    lines = ["n,error,runs,variance"]
    for n in np.unique(m.n):
        e = m.error[m.n == n]
        lines.append(f"{n:g},{e.mean():.17g},{len(e)},{e.var(ddof=1) if len(e) > 1 else ''}")
    path = tmp_path / "means.csv"
    path.write_text("\n".join(lines))
    means = call("learning", "stability", path, "--json").document
    runs = call("learning", "stability", errors, "--learner", "naive Bayes", "--json").document
    assert means["error_std"] == pytest.approx(runs["error_std"])


def test_check_tests_the_variance_of_all_learners(call, errors, tmp_path):
    known = cw.learning.check_variance_model(
        list(cw.fit_learning_curves(cw.load_measurements(errors))), draws=99, rng=2
    )
    done = call("learning", "check", errors, "--draws", 99, "--seed", 2, "--json")
    assert done.document == known.to_dict()
    shown = call("learning", "check", errors).out
    assert "Variance of one run in %²" in shown
    assert f"{1e4 * known.measured[0]:.3g}" in shown, "in the unit of the picture"
    single = tmp_path / "single.csv"
    single.write_text("n,error\n10,0.5\n20,0.4\n40,0.3\n")
    refused = call("learning", "check", single)
    assert refused.code == 1
    assert "no replicated size" in refused.err


def test_several_targets_and_what_the_intervals_are_of(call, errors):
    done = call("learning", "fit", errors, "--form", "auto", "--reach", "0.05,0.1", "--predict", "800")
    assert "needed for 5%" in done.out
    assert "needed for 10%" in done.out
    words = " ".join(done.out.split())
    assert "e_N (mean of runs)" in words
    assert "error (mean of runs) error (one new run)" in words
    assert "γ" not in words
