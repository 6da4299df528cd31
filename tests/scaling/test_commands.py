"""``curvewise scaling``: answers are those of the functions, errors name the option."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

import curvewise as cw

pytestmark = pytest.mark.filterwarnings("ignore::curvewise.CurvewiseWarning")


@pytest.fixture
def runs(made, tmp_path):
    """A CSV of runs of two sources, and one of the first alone."""

    def write(name, *tables, **more):
        path = tmp_path / name
        with path.open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow([*tables[0], "source", *more])
            for k, table in enumerate(tables):
                rows = zip(*table.values(), *more.values(), strict=True)
                out.writerows([*map(float, row[:3]), f"s{k}", *row[3:]] for row in rows)
        return path

    return write


def test_fit_prints_parameters_and_predictions(call, runs, made) -> None:
    path = runs("runs.csv", made(noise=0.004))
    done = call("scaling", "fit", path, "--at", "70B,1.4T", "--at", "7B,140B")
    assert done.code == 0
    assert "runs: 36 runs (95% intervals)" in done.out
    assert "α, of parameters" in done.out
    assert "loss of one new run" in done.out
    assert "70B" in done.out
    assert "1.4T" in done.out
    document = call("scaling", "fit", path, "--at", "70B,1.4T", "--level", "0.5", "--json").document
    law = cw.fit_scaling_law(cw.load_scaling_runs(path))
    found = law.interval("alpha", level=0.5)
    assert document["alpha"] == law.alpha
    assert document["intervals"]["alpha"]["low"] == pytest.approx(found.low)
    expected = law.predict(7e10, 1.4e12, interval="prediction", level=0.5)
    assert document["predictions"]["prediction"][0]["high"] == pytest.approx(float(expected["high"][0]))
    assert "50% intervals" in call("scaling", "fit", path, "--level", "0.5").out
    far = call("scaling", "fit", path, "--at", "7T,140T", "--json")
    assert "times the largest run" in far.err
    assert "times the largest run" in far.document["warnings"][0]


def test_fit_reads_stdin(call, made, monkeypatch) -> None:
    table = made(noise=0.004)
    text = "params,tokens,loss\n" + "\n".join(",".join(map(str, row)) for row in zip(*table.values(), strict=True))

    class Stdin:
        buffer = io.BytesIO(text.encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert call("scaling", "fit", "-", "--json").document["count"] == 36


def test_optimal_is_that_of_the_law(call, runs, made, tmp_path) -> None:
    path = runs("runs.csv", made(noise=0.004))
    done = call("scaling", "optimal", path, "--budget", "1e22,1e23", "--sensitivity", "--drop", "2,4")
    assert "without the 2 highest losses" in done.out
    assert "tokens per param" in done.out
    document = call("scaling", "optimal", path, "--budget", "1e23", "--json").document
    law = cw.fit_scaling_law(cw.load_scaling_runs(path))
    found = law.compute_optimal(1e23)
    assert document["params"]["estimate"] == pytest.approx(found.params.estimate)
    assert document["params"]["low"] == pytest.approx(found.params.low)
    for what in ("contours", "sizes", "sensitivity"):
        picture = tmp_path / f"{what}.png"
        assert call("scaling", "optimal", path, "--budget", "1e23", "--what", what, "--plot", picture).code == 0
        assert picture.stat().st_size > 5000
    markdown = call("scaling", "optimal", path, "--budget", "1e23", "--table", "markdown").out
    assert markdown.startswith("| compute")


def _told(err: str) -> list[str]:
    """The warnings on stderr."""
    return [line.removeprefix("warning: ") for line in err.splitlines() if line.startswith("warning: ")]


@pytest.mark.parametrize(
    "options",
    [
        ["optimal", "--budget", "1e23"],
        ["optimal", "--budget", "1e22,1e25", "--level", "0.8"],
        ["optimal", "--budget", "1e23", "--drop", "20"],
        ["fit"],
        ["fit", "--at", "7T,140T"],
        ["backtest", "--hold-out", "2,8"],
        ["plan", "--budget", "1e23", "--most", "2", "--factor", "0.1"],
    ],
)
def test_a_document_holds_every_warning_of_stderr(call, runs, doubtful, options) -> None:
    command, *rest = options
    done = call("scaling", command, runs("runs.csv", doubtful), *rest, "--json", "--verbose")
    assert done.document["warnings"] == _told(done.err)
    assert "Diverged? 4 runs" in done.err
    assert "and 1 more)" in done.err
    assert "`curvewise scaling optimal --sensitivity`" in done.err
    assert "law.sensitivity" not in done.err
    if command == "optimal":
        (text,) = (text for text in done.document["warnings"] if "depends on which runs" in text)
        assert f"at {max(map(float, rest[1].split(','))):.3g} FLOP" in text
        assert ("without the 20 highest" in text) == ("--drop" in rest)


def test_windows_count_the_distinct_tokens_at_hand(call, tmp_path) -> None:
    rng = np.random.default_rng(0)
    n, u = 10 ** rng.uniform(7.3, 9.7, 60), 10 ** rng.uniform(8, 10, 60)
    d = u * np.exp(rng.uniform(0, np.log(60), 60))
    of_d = u * (1 + 15 * (1 - np.exp(-(d / u - 1) / 15)))
    loss = (1.8 + 480 / n**0.35 + 2000 / of_d**0.37) * np.exp(0.002 * rng.standard_normal(60))
    path = tmp_path / "repeated.csv"
    rows = (",".join(map(str, row)) for row in zip(n, d, u, loss, strict=True))
    path.write_text("\n".join(["params,tokens,unique_tokens,loss", *rows]))
    options = ["--budget", "1e22", "--form", "repeated", "--unique-tokens", "1e9", "--sensitivity"]
    document = call("scaling", "optimal", path, *options, "--json").document
    by_all = document["sensitivity"]["tokens_per_param"][0]
    assert by_all == pytest.approx(document["tokens_per_param"]["estimate"], rel=1e-3)


def test_isoflops_speak_of_the_budget_that_was_asked_for(call, tmp_path) -> None:
    budgets, x = np.geomspace(1e18, 1e21, 4), np.linspace(-1.5, 1.5, 9)
    c, off = np.repeat(budgets, 9), np.tile(x, 4)
    n = np.sqrt(c / 120) * np.exp(off)
    loss = 3.0 - 0.1 * np.log(c / 1e18) + 0.1 * off**2
    # The parabola of all rows is exact, and so is the power law; without the highest losses it is another one.
    bent = np.exp(4 * x)
    loss[:9] += 1e-4 * (bent - np.polyval(np.polyfit(x, bent, 2), x))
    path = tmp_path / "iso.csv"
    path.write_text("\n".join(["params,flops,loss", *(f"{a},{b},{v}" for a, b, v in zip(n, c, loss, strict=True))]))
    usual = call("scaling", "isoflops", path, "--json")
    (text,) = (text for text in usual.document["warnings"] if "depends on which runs" in text)
    assert "at 1e+23 FLOP, a hundred times the largest budget fitted, " in text
    for options in ([], ["--sensitivity"], ["--drop", "2"]):
        done = call("scaling", "isoflops", path, "--budget", "2e22", *options, "--json", "--verbose")
        (text,) = (text for text in _told(done.err) if "depends on which runs" in text)
        assert "at 2e+22 FLOP" in text
        assert set(_told(done.err)) <= set(done.document["warnings"])


def test_isoflops_of_a_table(call, tmp_path) -> None:
    c, off = np.repeat([1e18, 1e19, 1e20, 1e21], 5), np.tile([0.3, 0.6, 1.0, 1.8, 3.0], 4)
    n = np.sqrt(c / 120) * off
    loss = 1.8 + 480 / n**0.35 + 2000 / (c / 6 / n) ** 0.37
    path = tmp_path / "iso.csv"
    path.write_text("\n".join(["params,flops,loss", *(f"{a},{b},{v}" for a, b, v in zip(n, c, loss, strict=True))]))
    done = call("scaling", "isoflops", path, "--budget", "1e23", "--sensitivity")
    assert "minima of 4 budgets" in done.out
    assert "Compute-optimal size" in done.out
    document = call("scaling", "isoflops", path, "--budget", "1e23", "--json").document
    found = cw.fit_isoflops(cw.load_scaling_runs(path))
    assert document["params_exponent"]["estimate"] == pytest.approx(found.params_exponent.estimate)
    assert document["optimal"]["params"]["estimate"] == pytest.approx(found.compute_optimal(1e23).params.estimate)
    named = call("scaling", "isoflops", path, "--nominal", "1.1e18,1e19,1e20,9e20", "--json").document
    assert named["budget"] == [1.1e18, 1e19, 1e20, 9e20]


def test_backtests_of_several_factors(call, runs, made) -> None:
    path = runs("runs.csv", made(noise=0.004))
    done = call("scaling", "backtest", path, "--hold-out", "4,8")
    assert "top 4×" in done.out
    assert "top 8×" in done.out
    several = call("scaling", "backtest", path, "--hold-out", "4,8", "--json").document
    law = cw.fit_scaling_law(cw.load_scaling_runs(path))
    assert [b["error"] for b in several["backtests"]] == pytest.approx([law.backtest(4).error, law.backtest(8).error])
    one = call("scaling", "backtest", path, "--hold-out", "8", "--json").document
    assert one["coverage"] == law.backtest(8).coverage
    assert "--hold-out" in call("scaling", "backtest", path, "--hold-out", "1e9").err


def test_plan_lists_each_size_once(call, runs, made) -> None:
    path = runs("runs.csv", made(noise=0.004))
    plan = cw.plan_scaling_runs(cw.fit_scaling_law(cw.load_scaling_runs(path)), 1e23, factor=0.6)
    document = call("scaling", "plan", path, "--budget", "1e23", "--factor", "0.6", "--json").document
    assert document["params"] == pytest.approx(plan.params)
    assert "FLOP in total" in document["summary"]
    assert sum(plan.readable()["runs"]) == len(plan.params)


def test_compare_two_files_or_two_sources(call, runs, made) -> None:
    tables = made(noise=0.003), made(noise=0.003, seed=1, A=300.0)
    both, one, two = runs("both.csv", *tables), runs("one.csv", tables[0]), runs("two.csv", tables[1])
    found = cw.compare_scaling_laws(*tables)
    for files in ((both,), (f"base={one}", f"new={two}")):
        document = call("scaling", "compare", *files, "--json").document
        assert document["efficiency"]["estimate"] == pytest.approx(found.efficiency.estimate)
    assert document["a"] == "base"
    assert call("scaling", "compare", both, "--a", "s1", "--json").document["b"] == "s0"
    assert call("scaling", "compare", one, two, "--fail-if", "worse").code == 3
    assert call("scaling", "compare", one, two, "--fail-if", "better").code == 0
    assert "--column source=COLUMN" in call("scaling", "compare", both, "--column", "source=").err
    assert "'s1'" in call("scaling", "compare", both, "--b", "s2").err
    assert call("scaling", "compare", one, two, both).code == 2
    assert call("scaling", "compare", one, two, "--a", "s0").code == 2


def test_downstream_of_a_task(call, runs, made) -> None:
    table = made(noise=0.002)
    accuracy = 0.25 + 0.75 / (1 + np.exp(4 * (table["loss"] - 2.6)))
    path = runs("runs.csv", table, quiz_acc=accuracy)
    done = call("scaling", "downstream", path, "--task", "quiz", "--at", "10B,1T", "--chance", "0.25")
    assert "10B" in done.out
    assert "loss of the task" in done.out
    document = call("scaling", "downstream", path, "--task", "loss,quiz_acc", "--at", "10B,1T", "--json").document
    found = cw.predict_downstream(cw.load_scaling_runs(path), ("loss", "quiz_acc"), at=(1e10, 1e12))
    assert document["accuracy"]["estimate"] == pytest.approx(found.accuracy.estimate)
    assert "--task" in call("scaling", "downstream", path, "--task", "exam", "--at", "10B,1T").err
    assert call("scaling", "downstream", path, "--task", "quiz", "--at", "10B").code == 2


def test_tuned_by_a_column_or_by_files(call, tmp_path) -> None:
    rng = np.random.default_rng(0)
    scores = {"mlp": 0.8 + 0.01 * rng.standard_normal(40), "lstm": 0.5 + 0.25 * rng.standard_normal(40)}
    path = tmp_path / "trials.csv"
    path.write_text("model,f1\n" + "".join(f"{k},{v}\n" for k, found in scores.items() for v in found))
    files = []
    for name, found in scores.items():
        files.append(tmp_path / f"{name}.csv")
        files[-1].write_text("f1\n" + "".join(f"{v}\n" for v in found))
    expected = cw.compare_tuned(scores["mlp"], scores["lstm"])
    for given in ((path, "--by", "model"), files):
        done = call("scaling", "tuned", *given)
        assert "mlp better" in done.out
        document = call("scaling", "tuned", *given, "--json").document
        assert document["difference"] == pytest.approx(expected.difference.tolist())
    # Trials of two learners are never taken for one search.
    assert "--by model" in call("scaling", "tuned", path).err
    alone = call("scaling", "tuned", path, "--where", "model=mlp", "--budget", "1,5", "--json").document
    assert alone["expected"] == pytest.approx(cw.scaling.expected_best(scores["mlp"], [1, 5]).expected.tolist())
    assert call("scaling", "tuned", path, "--a", "mlp").code == 2
    assert "modell" in call("scaling", "tuned", path, "--by", "modell").err


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["optimal", "--budget", "much"], "such as 5.76e23"),
        (["optimal"], "--budget"),
        (["fit", "--at", "7B"], "such as 7B,4T"),
        (["optimal", "--budget", "1e23", "--drop", "2.5"], "whole number"),
        (["fit", "--column", "params"], "ROLE=COLUMN"),
        (["fit", "--where", "source=none"], "none"),
        (["fit", "--form", "repeated"], "unique_tokens"),
        (["optimal", "--budget", "1e23", "--unique-tokens", "1e9"], "--unique-tokens"),
    ],
)
def test_errors_name_the_option(call, runs, made, options, said) -> None:
    command, *rest = options
    done = call("scaling", command, runs("runs.csv", made(noise=0.004)), *rest)
    assert done.code in (1, 2)
    assert said in " ".join(done.err.replace("│", " ").split())


def test_errors_of_a_column_name_no_option(call, runs, made):
    # --loss is how residuals count.
    table = made()
    done = call("scaling", "fit", runs("runs.csv", table | {"loss": 30 * table["loss"]}))
    assert "loss holds" in done.err
    assert "--loss" not in done.err


def test_chinchilla_depends_on_the_window(call, data_dir) -> None:
    path = data_dir / "scaling" / "chinchilla" / "svg_extracted_data.csv"
    if not path.exists():
        pytest.skip("no published runs among the data")
    drops = ["--drop", "5,20", "--drop", "40"]
    done = call("scaling", "optimal", path, "--budget", "5.76e23", *drops)
    assert all(number in done.out for number in ("6.82", "17.9", "31.1", "63.7"))
    assert "depends on which runs are fitted" in done.err
