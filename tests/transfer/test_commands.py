"""``curvewise transfer`` as a user calls it: tables measured, guesses found, wins counted."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from curvewise.transfer.blind import blind_guess
from curvewise.transfer.load import load_risks
from curvewise.transfer.measure import measure_transfer
from curvewise.transfer.tasks import rank_tasks
from curvewise.transfer.wins import win_rate

# Table 1 of Atanov et al. 2022: normals, depth, ImageNet.
TABLE_1 = {
    "swav": (0.297, 0.379, 0.606),
    "moco": (0.302, 0.375, 0.330),
    "simclr": (0.367, 0.271, 0.520),
    "simsiam": (0.232, 0.235, 0.185),
    "barlow_twins": (0.294, 0.305, 0.580),
    "pirl": (0.230, 0.115, 0.252),
    "jigsaw": (0.257, 0.304, 0.249),
    "color": (0.122, 0.115, 0.058),
}


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture(scope="session")
def published(data_dir: Path) -> Path:
    return data_dir / "transfer" / "transfer_controls_losses.csv"


@pytest.fixture
def losses(tmp_path: Path) -> Path:
    """Two methods, one better and one worse than scratch, three seeds; controls with a task."""
    rng = np.random.default_rng(3)
    lines = ["domain,method,train_size,test_loss,seed", "a,blind-guess,-1,1.0,-1", "a,gold,,0.1,"]
    for method, start in (("scratch", 0.9), ("good", 0.5), ("bad", 0.97)):
        for n in (100, 1000, 10000):
            for seed in range(3):
                risk = start * (n / 100) ** -0.2 + rng.normal(0, 0.005)
                lines.append(f"a,{method},{n},{risk:.5f},{seed}")
    path = tmp_path / "losses.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_methods_in_colour_are_found_before_anything_is_measured(call, losses, tmp_path):
    picture = tmp_path / "curves.png"
    assert call("transfer", "measure", losses, "--plot", picture, "--highlight", "go*").code == 0
    assert picture.exists()
    seen = call("transfer", "measure", losses, "--method", "good", "--plot", picture, "--highlight", "bad")
    assert (seen.code, seen.out) == (2, "")
    assert "--highlight bad" in words(seen.err).replace("'", "")


def test_pairs_need_two_methods(call, tmp_path):
    file = tmp_path / "one.csv"
    rows = [
        f"{m},{n},{s},{0.5 - 0.1 * (m == 'one') + s / 100}" for m in ("scratch", "one") for n in (1, 9) for s in (0, 1)
    ]
    file.write_text("\n".join(["method,n,seed,loss", *rows]) + "\n")
    seen = call("transfer", "measure", file, "--blind", 0.9, "--maximal", 0.1, "--pairs")
    assert (seen.code, seen.out) == (2, "")
    assert "--pairs needs two methods beside scratch: there is 'one'." in words(seen.err)


def test_the_published_table_out_of_the_box(call, published):
    seen = call("transfer", "measure", published, "--seeds", "pooled", "--json")
    assert seen.code == 0, seen.err
    found = {(r["task"], r["method"]): r["cci"]["estimate"] for r in seen.document["improvements"]}
    for method, values in TABLE_1.items():
        for task, value in zip(("normal", "depth", "imgnet_cls"), values, strict=True):
            assert round(found[task, method], 3) == value, (task, method)
    sizes = "100,1000,10000,100000"
    seen = call(
        "transfer",
        "measure",
        published,
        "--seeds",
        "pooled",
        "--json",
        "--sizes",
        sizes,
        "--method",
        "swav_task",
        "--method",
        "moco_task",
        "--task",
        "normal",
        "--task",
        "depth",
    )
    found = {(r["task"], r["method"]): r["cci"]["estimate"] for r in seen.document["improvements"]}
    wanted = {("normal", "swav_task"): 0.473, ("depth", "swav_task"): 0.431}
    wanted |= {("normal", "moco_task"): 0.382, ("depth", "moco_task"): 0.358}
    assert {k: round(v, 3) for k, v in found.items()} == wanted


def test_tables_and_sentences(call, losses):
    seen = call("transfer", "measure", losses)
    assert seen.code == 0, seen.err
    out = words(seen.out)
    assert "a: blind guess 1, maximal supervision 0.1, 3 sizes from 100 to 10,000" in out
    result = measure_transfer(load_risks(losses))
    for method in ("good", "bad"):
        cci = result.improvement("a", method).cci
        assert f"{method} {cci} " in out
    assert seen.out.index("good ") < seen.out.index("bad ")
    assert "task from 'domain'; n from 'train_size'; risk from" in seen.err
    assert "note:" not in seen.out


@pytest.mark.parametrize("markup", ["markdown", "latex", "text"])
def test_only_a_table(call, losses, markup):
    seen = call("transfer", "measure", losses, "--table", markup)
    assert seen.code == 0, seen.err
    assert seen.out == measure_transfer(load_risks(losses)).table(markup) + "\n"


def test_two_methods_and_all_pairs(call, losses):
    seen = call("transfer", "measure", losses, "--compare", "good,bad", "--json")
    wanted = measure_transfer(load_risks(losses)).compare("good", "bad").rows[0]
    row = seen.document["comparison"]["rows"][0]
    assert row["difference"]["estimate"] == pytest.approx(wanted.difference.estimate)
    seen = call("transfer", "measure", losses, "--pairs")
    assert "Differences of CCI (95% intervals; p adjusted by Holm)" in words(seen.out)
    assert call("transfer", "measure", losses, "--compare", "good").code == 2
    seen = call("transfer", "measure", losses, "--compare", "good,goood")
    assert seen.code == 1
    assert "--compare good,goood: 'goood' is no method. Did you mean 'good'?" in words(seen.err)
    assert call("transfer", "measure", losses, "--compare", "good,good").code == 2
    seen = call("transfer", "measure", losses, "--compare", "good,scratch")
    assert seen.code == 1
    assert "the CCI of a method is what it gains on scratch" in words(seen.err)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("--fail-if", "worse"), 3),
        (("--fail-if", "worse", "--method", "good"), 0),
        (("--fail-if", "undecided"), 0),
        (("--fail-if", "worse", "--compare", "good,bad"), 0),
        (("--fail-if", "worse", "--compare", "bad,good"), 3),
        (("--fail-if", "sometimes"), 2),
    ],
)
def test_gates(call, losses, options, code):
    seen = call("transfer", "measure", losses, *options)
    assert seen.code == code, seen.err
    assert ("--fail-if worse holds for bad" in seen.err) == (code == 3)


@pytest.mark.parametrize(
    ("typed", "wanted"),
    [
        ("--sizes a=100,1000 b=100", "write --sizes a=100,1000 --sizes b=100."),
        ("--sizes=a=100,1000 b=100 c=10", "write --sizes a=100,1000 --sizes b=100 --sizes c=10."),
        ("--blind a=1 b=2 --maximal 0", "write --blind a=1 --blind b=2."),
        ("--method good bad", "write --method good --method bad."),
        ("--weight log uniform", "Unused Tokens: ['uniform']."),
        ("good bad", "Unused Tokens: ['good', 'bad']."),
    ],
)
def test_a_value_too_many_is_told_how_to_be_passed(call, losses, typed, wanted):
    seen = call("transfer", "measure", losses, *typed.split())
    assert seen.code == 2
    assert wanted in words(seen.err.replace("│", ""))


def test_an_option_that_is_repeated(call, losses):
    seen = call("transfer", "measure", losses, "--where", "seed=0", "--where", "seed=1", "--json")
    assert any(control["assumed"] for control in seen.document["blind"].values())  # the controls have other seeds
    more = ("--where", "seed=-1", "--where", "seed=", "--maximal", "0.1")
    options = ("--where", "seed=0", "--where", "seed=1", *more)
    seen = call("transfer", "measure", losses, *options, "--json")
    assert seen.code == 0, seen.err
    assert {k for c in seen.document["curves"] for k in c["runs"]} == {2}


@pytest.mark.parametrize("width", [45, 60, 80])
def test_narrow_terminals_break_no_name(call, losses, monkeypatch, width):
    names = {"good": "fashion-mnist-pretrained", "bad": "imagenet21k-supervised"}
    text = losses.read_text()
    for short, long in names.items():
        text = text.replace(f",{short},", f",{long},")
    losses.write_text(text)
    monkeypatch.setenv("COLUMNS", str(width))
    seen = call("transfer", "measure", losses, "--pairs")
    tables = [line for line in seen.out.splitlines() if len(line) <= width]
    for name in names.values():
        assert sum(line.startswith(f"{name} ") for line in tables) > 1
        assert not any(line.startswith(name[:6]) and name not in line for line in tables)
    marks = ("method ", "difference ")
    assert all(any(line.startswith(mark) for line in tables) for mark in marks)


def test_a_control_of_one_row_counts_like_a_number_and_says_so(call, losses):
    rows = call("transfer", "measure", losses)
    kept = [k for k in losses.read_text().splitlines() if "gold" not in k and "blind" not in k]
    losses.write_text("\n".join(kept) + "\n")
    given = call("transfer", "measure", losses, "--blind", "1", "--maximal", "0.1")
    assert rows.out == given.out
    assert "blind guess: rows of 'blind-guess', taken as exact; max" in words(rows.err)
    assert "blind guess: given, taken as exact; maximal supervision: given, taken as exact" in (words(given.err))
    assert given.err.count("warning:") == 0
    assert rows.err.count("warning:") == 1
    assert "maximal supervision, measured once, is not known" in words(rows.err)


def test_maximal_supervision_that_scratch_beats_at_a_size(call, losses):
    seen = call("transfer", "measure", losses, "--maximal", "0.5", "--method", "bad")
    assert seen.code == 0, seen.err
    err = words(seen.err)
    assert "scratch beats maximal supervision (a risk of 0.5) at n = 10,000 (0.35" in err
    assert "Pass --maximal with what all the data gives, or leave it out" in err
    seen = call("transfer", "measure", losses, "--maximal", "0.8", "--method", "bad")
    assert seen.code == 1
    assert "--maximal 0.8: of task 'a' is beaten by scratch on the whole" in words(seen.err)


def test_a_blind_guess_in_percent_beside_losses_is_asked_about(call, losses):
    seen = call("transfer", "measure", losses, "--blind", "90")
    assert seen.code == 0
    assert "--blind 90 is more than 10 times the largest risk" in words(seen.err)
    assert "is it in percent? Then pass 0.9." in words(seen.err)


def test_one_run_of_each_decides_nothing(call, tmp_path):
    path = tmp_path / "once.csv"
    path.write_text("method,n,loss\nscratch,10,0.8\nscratch,100,0.5\nnet,10,0.5\nnet,100,0.3\nchance,,1\n")
    seen = call("transfer", "measure", path, "--maximal", "0.1", "--fail-if", "undecided")
    assert seen.code == 3
    assert "--fail-if undecided holds for net on task" in words(seen.err)


def test_controls_by_name_number_and_task(call, losses):
    options = ("--scratch", "bad", "--blind", "1.5", "--maximal", "a=0.05", "--weight", "log")
    seen = call("transfer", "measure", losses, *options, "--json")
    assert seen.code == 0, seen.err
    found = seen.document
    assert (found["scratch"], found["weight"]) == ("bad", "log")
    assert (found["blind"]["a"]["risk"], found["maximal"]["a"]["risk"]) == (1.5, 0.05)
    assert call("transfer", "measure", losses, "--blind", "b=1").code == 1
    assert call("transfer", "measure", losses, "--blind", "1", "--blind", "a=2").code == 2


def test_columns_rows_and_stdin(call, losses, start, monkeypatch):
    renamed = losses.with_name("renamed.csv")
    text = losses.read_text().replace("domain,method,train_size,test_loss", "t,m,k,v")
    renamed.write_text(text)
    seen = call("transfer", "measure", renamed)
    assert seen.code == 1
    assert "Say which with --method-column COLUMN" in words(seen.err)
    roles = ("--task-column", "t", "--method-column", "m", "--n-column", "k", "--risk-column", "v")
    seen = call("transfer", "measure", renamed, *roles)
    assert seen.code == 1
    assert "pass --lower-is-better for losses or errors" in words(seen.err)
    roles = (*roles, "--lower-is-better")
    seen = call("transfer", "measure", renamed, *roles, "--json")
    assert seen.document["improvements"] == (call("transfer", "measure", losses, "--json").document["improvements"])
    same = ("--column", "task=t", "--column", "method=m", "--column", "n=k", "--column", "risk=v", "--lower-is-better")
    assert call("transfer", "measure", renamed, *same, "--json").document == seen.document
    seen = call("transfer", "measure", renamed, "--column", "method")
    assert (seen.code, "--column 'method' must read ROLE=COLUMN" in words(seen.err)) == (2, True)
    seen = call("transfer", "measure", renamed, *roles, "--seed-column=", "--where", "m=bad")
    assert seen.code == 1
    assert "name it with --scratch." in words(seen.err)
    seen = start("transfer", "measure", "-", "--json", input=losses.read_text())
    assert seen.document["tasks"] == ["a"]
    records = list(csv.DictReader(io.StringIO(losses.read_text())))
    for text in (json.dumps(records), "\n".join(map(json.dumps, records))):
        monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(text.encode())))
        again = call("transfer", "measure", "-", "--json")
        assert again.document["improvements"] == seen.document["improvements"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "empty"),
        ("method,n,loss\n", "no rows"),
        ("method,n,loss\nscratch,10,0.5\n", "blind"),
        ("method,n,loss,error\nscratch,10,0.5,1\n", "Choose with --risk-column loss"),
        ("method,n,loss,seed\nscratch,10,1,0\nscratch,10,2,0\n", "or pass --seed-column= if"),
        ("method,n,loss\nscratch,ten,0.5\n", "'ten', which is not a number"),
        ("method,n,loss\nscratch,1%,0.5\n", "Write 500 for 1% of 50,000"),
        ("n,scratch,other\n10,1,2\n", "pass --lower-is-better for losses"),
        ("n,mine,other\n10,1,2\n", "that of training from scratch with --scratch."),
        ("method,n,loss\nscratch,10,0.5\n", "--blind is missing for task 'task'"),
        (
            "method,n,loss\nscratch,10,0.5\nblind,0,0.1\ngold,0,0.9\n",
            "Exchange --blind and --maximal if they are mixed up, or read the table with "
            "--higher-is-better if higher is better.",
        ),
        (
            "method,n,accuracy\nscratch,10,0.5\nblind,0,0.9\ngold,0,0.1\n",
            "--blind 0.1: of task 'task' (measured) is not above --maximal 0.9 (measured): the "
            "values are turned into risks, as higher were better. Exchange --blind and --maximal "
            "if they are mixed up, or read the table with --lower-is-better if lower is better.",
        ),
    ],
)
def test_what_cannot_be_measured_is_said_with_options(call, tmp_path, text, message):
    path = tmp_path / "bad.csv"
    path.write_text(text)
    seen = call("transfer", "measure", path)
    assert seen.code == 1
    assert seen.out == ""
    assert message in words(seen.err)
    assert "Traceback" not in seen.err


@pytest.mark.parametrize("kind", ["area", "tasks", "spread"])  # one of each way to draw
def test_pictures(call, losses, tmp_path, kind):
    picture = tmp_path / f"{kind}.png"
    seen = call("transfer", "measure", losses, "--plot", picture, "--kind", kind)
    assert seen.code == 0, seen.err
    assert picture.stat().st_size > 5000


def test_tasks_by_their_scratch_curves(call, losses, tmp_path):
    picture = tmp_path / "tasks.svg"
    seen = call("transfer", "tasks", losses, "--levels", "0.6,0.5", "--json", "--plot", picture)
    assert seen.code == 0, seen.err
    wanted = rank_tasks(measure_transfer(load_risks(losses)), levels=(0.6, 0.5))
    reached = seen.document["rows"][0]["reached"]
    assert [r["n"]["estimate"] for r in reached] == pytest.approx(
        [wanted.row("a").at(level).n.estimate for level in (0.6, 0.5)]
    )
    assert picture.exists()
    seen = call("transfer", "tasks", losses, "--levels", "0.6")
    assert str(wanted.row("a").at(0.6)) in words(seen.out)


def test_a_blind_guess_from_files(call, tmp_path):
    rng = np.random.default_rng(0)
    maps, test = rng.exponential(size=(40, 3, 4)), rng.exponential(size=(30, 3, 4))
    maps[0, 0, 0] = test[0, 0, 0] = -1
    np.save(tmp_path / "maps.npy", maps)
    np.savez(tmp_path / "test.npz", targets=test, other=test)
    options = ("--loss", "l1", "--per", "pixel", "--ignore", "-1")
    seen = call("transfer", "blind", tmp_path / "maps.npy", *options, "--json")
    assert seen.code == 0, seen.err
    wanted = blind_guess(maps, "l1", per="pixel", ignore=-1)
    assert seen.document["risk"]["estimate"] == pytest.approx(wanted.risk.estimate)
    seen = call("transfer", "blind", tmp_path / "test.npz", *options)
    assert seen.code == 2
    assert "choose with --key" in seen.err
    (tmp_path / "labels.csv").write_text("id,label\n0,cat\n1,dog\n2,cat\n3,cat\n")
    seen = call("transfer", "blind", tmp_path / "labels.csv", "--key", "label", "--loss", "error")
    assert seen.code == 0, seen.err
    assert "('cat') has a risk of 0.25" in words(seen.out)
    (tmp_path / "rows.csv").write_text("x,y\n1,10\n2,10\n6,40\n")
    head = ("transfer", "blind", tmp_path / "rows.csv", "--key", "x,y", "--loss", "l1", "--json")
    assert call(*head).document["prediction"] == [2.0, 10.0]
    picture = tmp_path / "guess.png"
    seen = call(*head[:-1], "--plot", picture)
    assert f"--blind {np.mean([0.5, 0, 17]):.6g}" in words(seen.out)
    assert picture.stat().st_size > 5000
    assert call("transfer", "blind", tmp_path / "none.npy", "--loss", "l1").code == 1
    assert call("transfer", "blind", tmp_path / "maps.npy", "--loss", "l3").code == 1


def test_wins_from_files(call, tmp_path):
    rng = np.random.default_rng(1)
    hard = rng.normal(size=200)
    scratch = hard + rng.normal(size=(3, 200))
    method = hard - 0.6 + rng.normal(size=(3, 200))
    groups = np.arange(200) // 4
    for name, array in (("m", method), ("s", scratch), ("g", groups), ("short", hard[:9])):
        np.save(tmp_path / f"{name}.npy", array)
    files = [tmp_path / f"{name}.npy" for name in ("m", "s")]
    head = ("transfer", "wins", *files, "--groups", tmp_path / "g.npy")
    seen = call(*head, "--json", "--paired")
    assert seen.code == 0, seen.err
    wanted = win_rate(method, scratch, groups=groups, paired=True)
    for end in ("estimate", "low", "high"):
        assert seen.document["rate"][end] == pytest.approx(getattr(wanted.rate, end))
    assert call(*head, "--fail-if", "worse").code == 0
    assert call("transfer", "wins", *files[::-1], "--fail-if", "worse").code == 3
    assert call("transfer", "wins", files[0], files[0], "--fail-if", "undecided").code == 3
    assert call("transfer", "wins", files[0], tmp_path / "short.npy").code == 1


def test_columns_of_losses_are_runs(call, tmp_path):
    (tmp_path / "m.csv").write_text("one,two\n1,1\n1,5\n1,5\n")
    (tmp_path / "s.csv").write_text("one,two\n2,2\n2,2\n2,2\n")
    files = [tmp_path / "m.csv", tmp_path / "s.csv"]
    seen = call("transfer", "wins", *files)
    assert seen.code == 2
    assert "several, such as --key one,two, are runs" in words(seen.err)
    picture = tmp_path / "wins.svg"
    seen = call("transfer", "wins", *files, "--key", "one,two", "--json", "--plot", picture)
    assert (seen.document["runs"], seen.document["examples"]) == (2, 3)
    assert seen.document["rate"]["estimate"] == pytest.approx((3 + 1) / 6)
    assert picture.exists()


def test_a_study_is_a_table(call, tmp_path):
    pytest.importorskip("sklearn")
    path = tmp_path / "study.toml"
    path.write_text(
        'name = "digits"\ndata = "digits"\n'
        '[learners.scratch]\nestimator = "sklearn.naive_bayes:GaussianNB"\n'
        '[learners.trees]\nestimator = "sklearn.ensemble:ExtraTreesClassifier"\n'
        "n_estimators = 10\n"
        "[design]\nsizes = [100, 200, 400]\nfolds = 2\n"
    )
    assert call("study", "run", path, "--workers", "0").code == 0
    seen = call("transfer", "measure", path, "--maximal", "0.01", "--json")
    assert seen.code == 0, seen.err
    assert seen.document["methods"] == ["trees"]
    assert seen.document["blind"]["digits"]["risk"] == pytest.approx(0.9, abs=0.03)
    assert "blind guess computed" in seen.err
    assert call("transfer", "measure", path, "--n-column", "size").code == 2


def test_help_names_every_command(call: Callable):
    seen = call("transfer", "--help")
    assert all(name in seen.out for name in ("measure", "tasks", "blind", "wins"))
    assert "--maximal" in call("transfer", "measure", "--help").out


@pytest.fixture
def accuracies(tmp_path: Path) -> Path:
    """Accuracies in percent of three methods at four sizes, without tasks."""
    rng = np.random.default_rng(5)
    lines = ["init,train_images,seed,accuracy"]
    for method, start in (("scratch", 30.0), ("dino", 60.0), ("mae", 45.0)):
        for i, n in enumerate((100, 1024, 10000, 100000)):
            for seed in range(3):
                lines.append(f"{method},{n},{seed},{start + 5 * i + rng.normal(0, 0.4):.2f}")
    path = tmp_path / "accuracies.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--blind", "90", "--maximal", "5"), "--blind 90: is not below --maximal 5"),
        (("--blind", "10", "--maximal", "15"), "--maximal 15: is beaten by every run"),
        (("--blind", "0.1"), "pass --blind 10, or --unit percent if 0.1% is meant"),
        (("--blind", "10", "--sizes", "100,500"), "--sizes TASK=100,1000"),
    ],
)
def test_errors_speak_of_what_was_typed(call, accuracies, options, message):
    if "--sizes" in options:  # of tables with tasks
        lines = accuracies.read_text().splitlines()
        rows = [f"{task},{line}" for task in "ab" for line in lines[1:]]
        accuracies.write_text("\n".join([f"task,{lines[0]}", *rows]) + "\n")
    seen = call("transfer", "measure", accuracies, *options)
    assert seen.code == 1
    assert message in words(seen.err)


def test_a_table_without_tasks_and_worth_beyond_what_was_measured(call, accuracies):
    seen = call("transfer", "measure", accuracies, "--blind", "10", "--maximal", "95")
    assert seen.code == 0, seen.err
    text = words(seen.out)
    assert " dino has CCI " in text
    assert "task:" not in text
    assert "To match its n = 100, scratch needs more than the 1,000 times as much data" in text
    assert "> 1,000" in text


def test_assumed_maximal_supervision_is_said_of_tasks(call, accuracies):
    seen = call("transfer", "tasks", accuracies, "--blind", "10", "--json")
    said = [w for w in seen.document["warnings"] if "maximal supervision was not measured" in w]
    assert len(said) == 1
    assert "Pass --maximal" in said[0]
    assert said[0] in words(seen.err)
    given = call("transfer", "tasks", accuracies, "--blind", "10", "--maximal", "95", "--json")
    assert "maximal supervision was not measured" not in given.err
    seen = call("transfer", "tasks", accuracies)
    assert seen.code == 1
    assert "(an accuracy among accuracies)" in words(seen.err)
    assert "If only CCI" not in words(seen.err)


def test_all_warnings_are_shown_when_asked_for(call, published):
    few, every = (call("transfer", "measure", published, *more).err for more in ((), ("--all-warnings",)))
    told = every.count("warning: ")
    assert few.count("warning: ") <= 4 < told
    assert "more: --verbose shows all of them" in few
    assert "more: --verbose" not in every
    assert call("transfer", "measure", published, "--verbose").err.count("warning: ") == told
    document = call("transfer", "measure", published, "--json").document
    assert len(set(document["warnings"])) == told
    assert not any("sizes=" in text or "maximal=" in text for text in document["warnings"])


def test_an_interval_does_not_depend_on_the_methods_that_are_shown(call, published):
    rows = []
    for options in ((), ("--method", "sup"), ("--method", "sup,pirl")):
        seen = call("transfer", "measure", published, "--task", "depth", *options, "--json")
        (row,) = [r for r in seen.document["improvements"] if r["method"] == "sup"]
        rows.append([row[name] for name in ("cci", "pvalue", "gain_low", "gain_high", "gain_ends")])
    assert rows[0] == rows[1] == rows[2]


def test_methods_on_different_sizes_are_not_ranked(call, losses):
    text = losses.read_text()
    losses.write_text("\n".join(line for line in text.splitlines() if not line.startswith("a,bad,10000")) + "\n")
    seen = call("transfer", "measure", losses)
    assert "CCIs rest on different sizes and are not comparable" in words(seen.err)
    assert "CCIs rest on different sizes, and methods are not ranked" in words(seen.out)
    assert "the highest" not in words(seen.out)
    same = call("transfer", "measure", losses, "--sizes", "100,1000")
    assert "the highest; next is bad" in words(same.out)


def test_names_with_commas_and_what_only_a_plot_uses(call, published, losses):
    seen = call("transfer", "measure", published, "--task", "depth,normal", "--method", "swav,moco")
    assert all(f"{task}: swav" in words(seen.out) or f"{task}: moco" in words(seen.out) for task in ("depth", "normal"))
    assert "insdis" not in seen.out
    for options in (("--kind", "cci"), ("--highlight", "good")):
        seen = call("transfer", "measure", losses, *options)
        assert seen.code == 2
        assert "add --plot FILE" in words(seen.err)


def test_cells_that_say_that_a_run_failed(call, accuracies):
    text = accuracies.read_text().splitlines()
    text[1] = text[1].rpartition(",")[0] + ",FAILED"
    accuracies.write_text("\n".join(text) + "\n")
    seen = call("transfer", "measure", accuracies, "--blind", "10", "--drop-failed")
    assert seen.code == 0, seen.err
    assert "1 failed runs left out" in words(seen.err)


@pytest.mark.parametrize("several", [True, False])
def test_rows_of_zeros_and_ones_are_labels(call, tmp_path, several):
    rng = np.random.default_rng(0)
    labels = np.eye(4, dtype=int)[rng.integers(4, size=60)]
    labels[0] = 1 if several else labels[0]
    np.save(tmp_path / "labels.npy", labels)
    seen = call("transfer", "blind", tmp_path / "labels.npy", "--loss", "cross-entropy")
    assert seen.code == 1
    assert ("pass --loss binary" if several else "position of the 1 in each row") in words(seen.err)
    assert call("transfer", "blind", tmp_path / "labels.npy", "--loss", "binary").code == 0


def test_what_to_paste_fits_errors_and_accuracies(call, tmp_path):
    (tmp_path / "labels.csv").write_text("label\n" + "a\n" * 3 + "b\n")
    seen = call("transfer", "blind", tmp_path / "labels.csv", "--loss", "error")
    assert "--blind 0.25 for a table of errors, 25 if they are percentages" in words(seen.out)
    assert "for one of accuracies --blind 0.75 or 75." in words(seen.out)
    assert "standard error" in words(seen.out)
    seen = call("transfer", "blind", tmp_path / "labels.csv", "--loss", "miou")
    assert "a function" not in words(seen.err)


def test_wins_name_the_files(call, tmp_path):
    rng = np.random.default_rng(2)
    for name, shape in (("swav", (300, 3)), ("none", (300, 3)), ("one", 299), ("two", 300)):
        np.save(tmp_path / f"{name}.npy", rng.normal(size=shape))
    file = {k: tmp_path / f"{k}.npy" for k in ("swav", "none", "one", "two")}
    seen = call("transfer", "wins", file["swav"], file["none"])
    assert seen.code == 1
    assert "swav.npy has 300 runs on 3 examples: are they transposed?" in words(seen.err)
    seen = call("transfer", "wins", file["one"], file["two"])
    assert "one.npy has 299 examples and two.npy has 300" in words(seen.err)
    for name in ("swav", "none"):
        np.save(file[name], rng.normal(size=(3, 300)))
    seen = call("transfer", "wins", file["swav"], file["none"])
    assert "swav has a lower loss than none on" in words(seen.out)
    assert "Examples on which swav beats none" in words(seen.out)


def test_a_factor_beyond_what_was_measured_is_a_bound(call):
    path = Path(__file__).parents[2] / "examples" / "transfer" / "risks.csv"
    shown = call("transfer", "tasks", path).out
    assert "> 256" in shown
    assert "∞" not in shown


def test_without_a_blind_guess_the_verdict_is_given(call, tmp_path):
    risks = {("scratch", 10): 0.5, ("scratch", 100): 0.4, ("pre", 10): 0.3, ("pre", 100): 0.2}
    rows = [f"{method},{n},{seed},{risk + 0.01 * seed}" for (method, n), risk in risks.items() for seed in (0, 1)]
    path = tmp_path / "t.csv"
    path.write_text("\n".join(["method,n,seed,error", *rows, ""]))
    seen = call("transfer", "measure", path, "--maximal", "0.1")
    assert seen.code == 0, seen.err
    assert (
        "pre pays off: at n = 100, the largest size of both, its error is 0.205 and that of scratch 0.405" in seen.out
    )
    assert re.search(r"a gain of 0\.2\d* \[[^]]*\] in error\b", words(seen.out)), "not the calibrated one of the table"
    assert "no blind guess" in seen.err
    assert "pass --blind" in seen.err
    assert call("transfer", "tasks", path, "--maximal", "0.1").code == 1


def test_a_gate_does_not_open_for_what_was_not_compared(call, losses):
    """A method at other sizes than scratch has no CCI: neither better nor worse is shown."""
    lines = [line.replace("bad,1", "bad,3") for line in losses.read_text().splitlines()]
    losses.write_text("\n".join(lines) + "\n")
    for options in ((), ("--method", "bad"), ("--compare", "good,bad")):
        seen = call("transfer", "measure", losses, "--fail-if", "undecided", *options)
        assert seen.code == 3
        assert f"undecided holds for {'good − bad' if '--compare' in options else 'bad on a'}" in words(seen.err)
        assert call("transfer", "measure", losses, "--fail-if", "worse", *options).code == 0


def test_the_legend_says_which_gains_are_calibrated(call, losses):
    text = losses.read_text()
    other = [line.replace("a,", "b,", 1) for line in text.splitlines()[3:]]
    losses.write_text(text + "\n".join(other) + "\n")
    said = words(call("transfer", "measure", losses).out)
    assert "gain: calibrated risk of scratch (1 blind guess, 0 maximal supervision) minus that of the method" in said
    assert "(no blind guess for 'b': risk of scratch minus that of the method there)" in said
    alone = words(call("transfer", "measure", losses, "--task", "b").out)
    assert "gain: risk of scratch minus that of the method, at" in alone


def test_wins_by_what_should_be_high_are_refused(call, tmp_path):
    for name, rows in (("a", "1,0.2 0,0.9 1,0.1"), ("b", "0,0.8 0,0.9 1,0.3")):
        (tmp_path / f"{name}.csv").write_text("\n".join(["accuracy,loss", *rows.split()]) + "\n")
    files = (tmp_path / "a.csv", tmp_path / "b.csv")
    seen = call("transfer", "wins", *files, "--key", "accuracy")
    assert seen.code == 2
    assert "--key 'accuracy' of a.csv is better when higher, by its name: a win is a lower loss" in words(seen.err)
    assert call("transfer", "wins", *files, "--key", "loss").code == 0
