"""``curvewise variance`` as a user calls it."""

from __future__ import annotations

import csv
import re

import numpy as np
import pytest

import curvewise as cw


@pytest.fixture
def files(tmp_path):
    """Predictions of three trainings on one test set; c is worse by two points."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 3000)
    hard = rng.random(3000) ** 5

    def train(name, runs, more):
        wrong = rng.random((runs, 3000)) < np.minimum(1, hard + more)
        preds = np.where(wrong, (labels + 1) % 5, labels).astype(np.uint8)
        np.savez_compressed(tmp_path / f"{name}.npz", preds=preds, labels=labels)
        return tmp_path / f"{name}.npz"

    return {"a": train("a", 12, 0), "b": train("b", 14, 0), "c": train("c", 12, 0.02)}


def test_decompose(call, files):
    seen = call("variance", "decompose", files["a"])
    assert seen.code == 0
    assert "The standard deviation between runs is" in seen.out
    assert "std on new data" in seen.out
    assert "… not assuming normal runs" in seen.out
    assert "_" not in seen.out
    assert "values from 'preds'" not in seen.err
    assert "values from 'preds'" in call("variance", "decompose", files["a"], "--verbose").err
    told = call("variance", "decompose", files["a"], "--json").document
    assert told["type"] == "VarianceDecomposition"
    assert told["runs"] == 12
    assert told["distribution_interval"]["low"] <= told["distribution_std"]


def test_decompose_draws(call, files, tmp_path):
    seen = call("variance", "decompose", files["a"], "--plot", tmp_path / "v.png")
    assert seen.code == 0
    assert (tmp_path / "v.png").stat().st_size > 5000


def test_decompose_from_totals(call, tmp_path):
    rng = np.random.default_rng(1)
    errors = rng.random((20, 300)) < rng.random(300) ** 3
    (tmp_path / "runs.csv").write_text(
        "run,accuracy\n" + "".join(f"{i},{1 - e.mean()}\n" for i, e in enumerate(errors))
    )
    rows = "".join(f'"he said\t{i}\t{c}\n' for i, c in enumerate((~errors).sum(axis=0)))
    (tmp_path / "right.tsv").write_text(f"text\tindex\tright\n{rows}")
    options = ("--scores", "--counts-column", "right")
    seen = call(
        "variance",
        "decompose",
        tmp_path / "runs.csv",
        "--counts",
        tmp_path / "right.tsv",
        *options,
        "--value-column",
        "accuracy",
        "--json",
    )
    assert seen.code == 0, seen.err
    covariance = np.cov(errors.T)
    expected = (covariance.sum() - np.trace(covariance)) / (300 * 299)
    assert seen.document["distribution_variance"] == pytest.approx(expected)
    np.save(tmp_path / "y.npy", np.arange(300))
    refused = call("variance", "decompose", tmp_path / "runs.csv", "--scores", "--counts", tmp_path / "y.npy")
    assert refused.code == 2
    assert "y.npy has an ending that is not known" in refused.err


def test_a_first_line_that_may_be_names_is_asked_about(call, tmp_path):
    (tmp_path / "x.csv").write_text("0,1,2\n1,1,0\n")
    seen = call("variance", "decompose", tmp_path / "x.csv", "--axes", "runs,examples", "--kind", "losses")
    assert seen.code == 1
    assert "if they are values, add a line of names above it" in " ".join(seen.err.split())
    assert "header" not in seen.err


def test_compare_as_a_gate(call, files):
    worse = call("variance", "compare", files["c"], files["a"], "--fail-if", "worse")
    assert worse.code == 3
    assert "a is significantly better than c on new data" in " ".join(worse.out.split())
    assert "exit status 3" in worse.err
    gate = ("--margin", 0.005, "--fail-if", "worse")
    assert call("variance", "compare", files["c"], files["a"], *gate).code == 3
    assert call("variance", "compare", files["a"], files["c"], *gate).code == 0
    assert call("variance", "compare", files["b"], files["a"], *gate).code == 0
    lax = call("variance", "compare", files["c"], files["a"], "--margin", 0.2, "--fail-if", "worse")
    assert lax.code == 0
    same = call("variance", "compare", files["b"], files["a"], "--margin", 0.05, "--fail-if", "equivalent")
    assert same.code == 3
    never = call("variance", "compare", files["b"], files["a"], "--fail-if", "equivalent")
    assert never.code == 2
    assert "give --margin" in never.err
    unsure = call("variance", "compare", files["b"], files["a"], "--fail-if", "maybe-worse")
    assert unsure.code == 3


def test_tables_have_headings_for_people(call, files):
    pair = call("variance", "compare", files["a"], files["c"], "--table", "markdown")
    for name in ("difference on new data", "difference on this test set"):
        assert f"| {name} " in pair.out
    assert "| chance that a beats c, this test set " in pair.out
    assert "| chance that a beats c, new data " in pair.out
    assert pair.out.splitlines()[0].split()[-2] == "p"
    many = call("variance", "compare", *files.values(), "--table", "markdown")
    assert "adjusted p " in many.out.splitlines()[0]
    plan = call("variance", "plan", files["a"], "--difference", 0.01, "--table", "latex")
    assert "power for 1\\% & 80\\% power for & std error & half-width & narrowed by one more" in " ".join(
        plan.out.split()
    )
    assert "_" not in pair.out + many.out + plan.out


def test_compare_many(call, files):
    seen = call("variance", "compare", *files.values())
    assert seen.code == 0
    assert "3 pairs (a minus b" in seen.out
    better = {tuple(line.split()[:2]): line.split()[-1] for line in seen.out.splitlines()[3:6]}
    assert better["a", "c"] == "a"
    assert better["b", "c"] == "b"
    assert better["a", "b"] == "significant"  # not significant
    told = call("variance", "compare", *files.values(), "--baseline", "a", "--json").document
    assert told["pairs"] == [["b", "a"], ["c", "a"]]
    assert told["verdicts"] == ["undecided", "b better"]
    refused = call("variance", "compare", *files.values(), "--fail-if", "worse")
    assert refused.code == 2
    two = call("variance", "compare", *files.values(), "--a", "c", "--b", "a", "--fail-if", "worse")
    assert two.code == 3


def test_compare_scores(call, tmp_path):
    rng = np.random.default_rng(2)
    path = tmp_path / "losses.csv"
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["recipe", "val_loss"])
        for recipe, mean, runs in (("old", 3.28, 10), ("new", 3.27, 12), ("lone", 3.0, 1)):
            rows.writerows([recipe, rng.normal(mean, 0.001)] for _ in range(runs))
    options = ("--scores", "--by", "recipe", "--unit", "loss")
    lone = call("variance", "compare", path, *options)
    assert lone.code == 2
    assert "--min-runs 2" in " ".join(lone.err.split())
    seen = call("variance", "compare", path, *options, "--min-runs", 2, "--json")
    assert seen.code == 0
    assert "1 training(s) have fewer than 2 runs and are left out: 'lone'" in seen.err
    assert seen.document["scope"] == "test set"
    assert seen.document["verdict"] == "b better"
    assert "scores alone" in seen.err


def test_one_table_of_two_trainings(call, tmp_path):
    rng = np.random.default_rng(3)
    with open(tmp_path / "both.csv", "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["model", "run", "example", "prediction", "label"])
        for model, rate in (("old", 0.3), ("new", 0.1)):
            for run in range(6):
                for i, wrong in enumerate(rng.random(200) < rate):
                    rows.writerow([model, run, i, (i + wrong) % 3, i % 3])
    seen = call("variance", "compare", tmp_path / "both.csv", "--a", "new", "--b", "old", "--json")
    assert seen.code == 0, seen.err
    assert seen.document["verdict"] == "a better"
    assert not seen.document["paired"]
    pairs = call("variance", "compare", tmp_path / "both.csv", "--a", "new", "--b", "old", "--paired")
    assert "Runs are paired by names, as asked." in pairs.out


def test_tables_of_what_is_examined(call, files):
    seen = call("variance", "examine", files["a"], "--what", "luck", "--table", "markdown")
    assert "| correlation " in seen.out
    assert "%" not in seen.out.split("| correlation")[1].splitlines()[0]


@pytest.mark.parametrize(
    "what", ["accuracy", "luck", "calibration", "disagreement", "ensemble", "pairs", "bipartitions"]
)
def test_every_question_has_a_table(call, files, what):
    seen = call("variance", "examine", files["a"], "--what", what, "--table", "markdown")
    assert seen.code == 0
    assert seen.out.startswith("| ")
    assert "_" not in seen.out


def test_shared_folders_of_names_are_left_out(call, tmp_path):
    rng = np.random.default_rng(4)
    rows = ["recipe,loss"]
    for name in ("x", "y", "z"):
        rows += [f"records/short/{name},{v:.4f}" for v in rng.normal(3, 0.1, 5)]
    (tmp_path / "l.csv").write_text("\n".join(rows))
    options = ("--scores", "--by", "recipe", "--unit", "loss", "--baseline", "records/short/y")
    seen = call("variance", "compare", tmp_path / "l.csv", *options, "--json")
    assert seen.code == 0, seen.err
    assert seen.document["pairs"] == [["x", "y"], ["z", "y"]]
    assert "names without records/short/" in seen.err


def test_plan(call, files):
    seen = call("variance", "plan", files["a"], files["c"], "--difference", 0.01)
    assert seen.code == 0
    assert "runs of each training" in seen.out
    told = call(
        "variance", "plan", "--difference", 0.002, "--test-set-std", 0.002, "--target", "test set", "--json"
    ).document
    assert told["runs"] == 17
    refused = call("variance", "plan")
    assert refused.code == 1
    assert "--difference" in refused.err
    assert "--difference needs a FILE of pilot runs, or" in call("variance", "plan", "--difference", 0.01).err


def test_examine(call, files, tmp_path):
    seen = call("variance", "examine", files["a"])
    assert seen.code == 0
    for word in ("luckiest", "correlation", "disagree", "ensemble", "violate"):
        assert word in seen.out
    one = call("variance", "examine", files["a"], "--what", "luck", "--json").document
    assert set(one) == {"luck"}
    assert call("variance", "examine", files["a"], "--plot", tmp_path / "x.png").code == 2


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("decompose", "absent.npz"), 1, "no such file"),
        (("decompose", "-"), 2, "not from stdin"),
        (("compare", "{a}"), 2, "one training"),
        (("compare", "{a}", "{a}"), 2, "is given twice"),
        (("compare", "{a}", "{b}", "--unit", "loss"), 2, "for --scores"),
        (("compare", "{a}", "{b}", "--margin", "-1"), 2, "margin"),
        (("decompose", "{a}", "--level", "95"), 2, "level"),
        (("decompose", "{a}", "--column", "run"), 2, "ROLE=COLUMN"),
        (("decompose", "{a}", "--axes", "examples,runs"), 1, "label"),
        (("decompose", "{a}", "--counts", "{b}"), 2, "--scores"),
        (("plan", "{a}", "{b}", "{c}"), 2, "one file or two"),
        (("decompose", "{a}", "--scores"), 2, "cannot be decomposed"),
        (("compare", "{a}", "{b}", "--margin", "1"), 1, "half a percentage point"),
    ],
)
def test_wrong_calls_say_what_to_do(call, files, arguments, code, message):
    seen = call("variance", *(a.format(**{k: str(v) for k, v in files.items()}) for a in arguments))
    assert seen.code == code
    assert message in " ".join(seen.err.split()) + " ".join(seen.out.split())


def test_runs_of_a_store_are_chosen_by_their_coordinates(call, tmp_path):
    from curvewise.store.write import write_run

    for n in (50, 300):
        for seed in range(6):
            wrong = (np.arange(40) + seed) % (n // 10) == 0
            coordinates = {"learner": "a", "n": n, "seed": seed}
            write_run(tmp_path, coordinates, wrong.astype(int), labels=np.zeros(40, dtype=int))
    refused = call("variance", "decompose", tmp_path)
    assert refused.code == 1
    assert "--where n=" in refused.err
    assert call("variance", "decompose", tmp_path, "--where", "n=300").code == 0
    assert call("variance", "decompose", tmp_path, "--where", "n").code == 2


def test_hits_and_errors_are_asked_for_and_give_one_answer(call, tmp_path):
    """The same verdict from Python and from files, however the values are given."""
    import curvewise as cw

    rng = np.random.default_rng(5)
    hits = {name: rng.random((6, 900)) < p for name, p in (("new", 0.66), ("old", 0.56))}
    for name, right in hits.items():
        np.save(tmp_path / f"{name}.npy", right)
        np.savez(tmp_path / f"{name}.npz", correct=right)
        np.savez(tmp_path / f"{name}_wrong.npz", wrong=~right)
    new, old = tmp_path / "new.npy", tmp_path / "old.npy"
    refused = call("variance", "compare", new, old)
    assert refused.code == 1
    assert "pass --kind errors or --kind correct" in " ".join(refused.err.split())
    expected = cw.compare_runs(hits["new"], hits["old"], kind="correct", names=("new", "old"))
    assert expected.verdict == "a better"
    for files in (
        (new, old, "--kind", "correct"),
        (tmp_path / "new.npz", tmp_path / "old.npz"),
        (tmp_path / "new_wrong.npz", tmp_path / "old_wrong.npz"),
    ):
        found = call("variance", "compare", *files, "--json").document
        assert found["verdict"] == "a better"
        assert found["difference"]["estimate"] == pytest.approx(expected.difference.estimate)


def test_a_leaderboard_is_not_turned_round(call, tmp_path):
    path = tmp_path / "board.csv"
    path.write_text("model,outcome\n" + "a,0.80\na,0.81\na,0.82\n" + "b,0.60\nb,0.61\nb,0.62\n")
    asked = ("variance", "compare", path, "--scores", "--by", "model", "--value-column", "outcome")
    refused = call(*asked)
    assert refused.code == 1
    assert "--higher-is-better for accuracies or --lower-is-better for errors" in refused.err
    assert call(*asked, "--accuracy", "--json").document["verdict"] == "a better"
    path.write_text(path.read_text().replace("outcome", "pass1"))  # a name that tells
    assert call(*asked[:-1], "pass1", "--json").document["verdict"] == "a better"
    rows = [f"{m},{s},{q},{r}" for m, r in (("a", 0.8), ("b", 0.6)) for s in "xyz" for q in range(9)]
    path.write_text("model,run,question,pass1\n" + "\n".join(rows))
    wrong = call("variance", "compare", path, "--a", "a", "--b", "b", "--kind", "correct")
    assert wrong.code == 1
    found = call("variance", "compare", path, "--a", "a", "--b", "b", "--json").document
    assert found["unit"] == "score"
    assert found["difference"]["estimate"] == pytest.approx(-0.2)


def test_names_of_users_are_not_rewritten(call, tmp_path):
    rng = np.random.default_rng(6)
    names = ("compare_runs", "plan_runs", "lr=3,paired=True", "key= of runs")
    for name in names:
        np.savez(tmp_path / f"{name}.npz", correct=rng.random((6, 90)) < 0.5)
    files = [tmp_path / f"{name}.npz" for name in names]
    seen = call("variance", "compare", *files)
    assert seen.code == 0
    said = " ".join(seen.err.split())
    for name in names:
        assert f"{name}.npz: 6 runs × 90 examples" in said
    np.savez(tmp_path / "odd.npz", **{"paired=True": np.eye(3, 9), "kind='errors'": np.eye(3, 9)})
    odd = " ".join(call("variance", "decompose", tmp_path / "odd.npz").err.split())
    assert "'paired=True'" in odd
    assert "kind='errors'" in odd


def test_single_runs_of_several_trainings(call, files, tmp_path):
    for name in ("one", "two"):
        held = np.load(files["c"])
        np.savez(tmp_path / f"{name}.npz", preds=held["preds"][:1], labels=held["labels"])
    seen = call("variance", "compare", files["a"], tmp_path / "one.npz", tmp_path / "two.npz")
    assert seen.code == 0
    assert "one run only, which is weak evidence" in " ".join(seen.err.split())
    sure = ("--distribution-std", "0", "--json")
    pair = call("variance", "compare", files["a"], tmp_path / "one.npz", *sure).document
    assert pair["verdict"] == "a better"


def test_what_is_asked_of_hits_names_the_file_and_the_option(call, tmp_path):
    rng = np.random.default_rng(7)
    paths = [tmp_path / f"bool{name}.npy" for name in "AB"]
    for path in paths:
        np.save(path, rng.random((12, 300)) < 0.9)
    for refused in (call("variance", "examine", paths[0]), call("variance", "compare", *paths)):
        said = " ".join(refused.err.split())
        assert refused.code == 1
        assert "boolA.npy holds 0 and 1, and nothing says" in said
        assert "taken as errors" not in said
    seen = call("variance", "decompose", paths[0])
    assert "pass --kind correct if it means right" in " ".join(seen.out.split())
    assert call("variance", "examine", paths[0], "--what", "pairs").code == 0


@pytest.mark.parametrize("models", ["ab", "abc"])
def test_one_score_per_training_cannot_be_compared(call, tmp_path, models):
    path = tmp_path / "leader.csv"
    path.write_text("model,pass1\n" + "".join(f"{m},0.{i + 5}\n" for i, m in enumerate(models)))
    asked = ("--scores", "--by", "model", "--value-column", "pass1", "--higher-is-better")
    refused = call("variance", "compare", path, *asked)
    said = " ".join(refused.err.split())
    assert refused.code == 2
    assert "one score per training cannot be compared" in said
    assert "--min-runs" not in said


def test_sweep_along_files(call, files, tmp_path):
    given = (f"0.25={files['a']}", f"0.5={files['b']}", f"1={files['c']}")
    told = call("variance", "sweep", *given, "--json").document
    assert told["type"] == "VarianceSweep"
    assert (told["values"], told["name"], told["runs"]) == ([0.25, 0.5, 1.0], "hyperparameter", [12, 14, 12])
    assert told["best"] in (0.25, 0.5)
    for what in ("std", "error", "runs"):
        picture = tmp_path / f"{what}.png"
        seen = call("variance", "sweep", *given, "--what", what, "--name", "width", "--plot", picture)
        assert seen.code == 0
        assert "values of the width" in seen.out
        assert picture.stat().st_size > 5000
    assert "such as 0.5=usual.npz" in call("variance", "sweep", files["a"]).err
    for odd in ("slow", "nan"):
        assert f"'{odd}' is no number" in call("variance", "sweep", f"{odd}={files['a']}").err
    twice = call("variance", "sweep", f"0.5={files['a']}", f"0.50={files['b']}")
    assert twice.code == 2
    assert "'0.5' and '0.50' are the same number" in twice.err
    assert "--by goes with one store" in call("variance", "sweep", files["a"], "--by", "rate").err


def test_twins_of_files(call, tmp_path):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 500)
    runs = np.where(rng.random((6, 500)) < 0.2, rng.integers(0, 5, (6, 500)), labels)
    poked = {
        w: np.where(rng.random((6, 500)) < c, rng.integers(0, 5, (6, 500)), runs) for w, c in ((0, 0.1), (4, 0.05))
    }
    made = {"alone": runs, "at0": poked[0], "at4": poked[4], "moved": np.roll(poked[0], 1, axis=0)}
    for name, values in made.items():
        np.savez(tmp_path / f"{name}.npz", preds=values, labels=labels)
    base = tmp_path / "alone.npz"
    seen = call("variance", "twins", base, f"4={tmp_path / 'at4.npz'}", f"0={tmp_path / 'at0.npz'}", "--json")
    assert seen.document["when"] == [0, 4]
    rates = [d["estimate"] for d in seen.document["disagreement"]]
    assert rates == pytest.approx([(runs != poked[w]).mean() for w in (0, 4)])
    named = call("variance", "twins", base, f"bfloat16={tmp_path / 'at0.npz'}", "--plot", tmp_path / "t.png")
    assert named.code == 0
    assert "(bfloat16) disagree" in named.out
    wrong = call("variance", "twins", base, f"0={tmp_path / 'moved.npz'}")
    assert wrong.code == 1
    assert "`curvewise variance twins` on its store" in wrong.err
    assert "is no store of runs" in call("variance", "twins", base).err
    twice = call("variance", "twins", base, f"4={tmp_path / 'at4.npz'}", f"4.0={tmp_path / 'at0.npz'}")
    assert "'4' and '4.0' are the same number" in twice.err


def test_test_sets_of_files(call, tmp_path):
    rng = np.random.default_rng(1)
    skill = rng.normal(size=(30, 1)) * 0.04
    for name in ("plain", "sketch"):
        np.savez(tmp_path / f"{name}.npz", errors=rng.random((30, 800)) < 0.3 + skill)
    plain, sketch = (tmp_path / f"{name}.npz" for name in ("plain", "sketch"))
    told = call("variance", "test-sets", plain, f"drawn={sketch}", "--json").document
    assert told["names"] == ["plain", "drawn"]
    assert told["pairs"][0]["correlation"]["estimate"] > 0.5
    draw = ("--plot", tmp_path / "p.png", "--pair", "plain,drawn")
    assert call("variance", "test-sets", plain, f"drawn={sketch}", *draw).code == 0
    assert "one test set, 'plain'" in call("variance", "test-sets", plain).err
    assert "is given twice" in call("variance", "test-sets", plain, plain).err
    assert "given twice" in call("variance", "test-sets", f"a={plain}", f"a={sketch}").err


def test_files_are_named_on_the_command_line(call, files, tmp_path):
    seen = call("variance", "compare", f"wide={files['a']}", f"narrow={files['c']}", "--json").document
    assert (seen["a"], seen["b"]) == ("wide", "narrow")
    many = call("variance", "compare", f"x={files['a']}", files["b"], f"z={files['c']}", "--json").document
    assert set(many["names"]) == {"x", "b", "z"}
    assert call("variance", "compare", f"x={files['a']}", f"z={files['c']}", "--a", "z", "--b", "x").code == 0
    assert call("variance", "decompose", f"x={files['a']}").code == 0
    for name, runs in (("one", 3), ("two", 4)):
        (tmp_path / name).mkdir()
        for i in range(runs):
            np.save(tmp_path / name / f"{i}.npy", np.load(files["a"])["preds"][i])
    labels = tmp_path / "labels.npy"
    np.save(labels, np.load(files["a"])["labels"])
    told = call("variance", "compare", f"one={tmp_path}/one/*.npy", f"b={tmp_path}/two", "--labels", labels, "--json")
    assert told.document["runs"] == [3, 4]
    assert told.document["a"] == "one"
    lost = call("variance", "compare", "x=nothing.npy", files["b"])
    assert lost.code == 1
    assert "nothing.npy: there is no such file" in lost.err


def test_scores_are_named_on_the_command_line(call, tmp_path):
    for name, mean in (("one", 0.8), ("two", 0.9)):
        (tmp_path / f"{name}.csv").write_text("accuracy\n" + "".join(f"{mean + i / 1000}\n" for i in range(5)))
    seen = call("variance", "compare", f"a={tmp_path}/one.csv", f"b={tmp_path}/two.csv", "--scores", "--json")
    assert (seen.document["a"], seen.document["b"]) == ("a", "b")


def test_a_pair_of_examples_by_index(call, files):
    told = call("variance", "examine", files["a"], "--what", "pairs", "--pair", "3,70", "--json").document["pairs"]
    assert (told["first"], told["second"], told["pairs"]) == ([3], [70], 1)
    assert "goes with --what pairs" in call("variance", "examine", files["a"], "--what", "luck", "--pair", "3,70").err
    assert (
        "no example is called so" in call("variance", "examine", files["a"], "--what", "pairs", "--pair", "3,9999").err
    )


@pytest.mark.filterwarnings("ignore:3 runs of a training")
def test_two_trainings_of_a_store_are_named_in_one_go_and_in_python_too(call, tmp_path):
    from curvewise.store.write import write_run

    rng = np.random.default_rng(0)
    for learner, chance in (("mlp2", 0.6), ("mlp16", 0.2)):
        for n in (50, 200):
            for seed in range(3):
                wrong = rng.random(100) < chance
                about = {"learner": learner, "n": n, "seed": seed}
                write_run(tmp_path, about, wrong.astype(int), labels=np.zeros(100, dtype=int))
    done = call("variance", "compare", tmp_path)
    assert done.code == 2
    options = re.search(r"such as (--a .*)\.$", done.err.strip()).group(1)
    assert {*options.split()[1:4:2]} == {"mlp2", "mlp16"}
    assert options.endswith("--where n=200")
    assert "mlp16 is significantly better than mlp2" in call("variance", "compare", tmp_path, *options.split()).out
    asked = call("variance", "plan", tmp_path, "--difference", "0.1")
    assert "such as --a" in asked.err
    planned = call("variance", "plan", tmp_path, *options.split(), "--difference", "0.1", "--json").document
    assert call("variance", "plan", tmp_path, "--a", "mlp2", "--difference", "0.1").code == 2
    runs = [cw.load_predictions(tmp_path, learner=k, where={"n": 200}) for k in ("mlp2", "mlp16")]
    with pytest.warns(cw.CurvewiseWarning, match="3 runs are too few"):
        pilot = tuple(cw.decompose_variance(each) for each in runs)
    assert planned["runs"] == cw.plan_runs(difference=0.1, pilot=pilot).runs
    assert str(cw.compare_runs(*runs)).startswith("mlp16 is significantly better than mlp2")
    assert "b is significantly better than a" in str(cw.compare_runs(runs[0], runs[1].errors(), kind="errors"))


def test_options_of_predictions_are_refused_for_scores(call, tmp_path):
    """``--where n=300`` was ignored, and the runs of all sizes compared."""
    table = tmp_path / "scores.csv"
    table.write_text("model,n,loss\n" + "".join(f"{m},{n},{n + i}\n" for m in "ab" for n in (1, 2) for i in range(3)))
    options = ("variance", "compare", table, "--scores", "--by", "model", "--unit", "loss")
    assert call(*options).code == 0
    for option, value in (("where", "n=1"), ("learner", "a"), ("kind", "losses"), ("groups", table)):
        seen = call(*options, f"--{option}", value)
        assert seen.code == 2
        assert f"--{option} is for predictions" in seen.err
    totals = ("variance", "decompose", table, "--scores", "--counts", table, "--interval", "robust")
    assert "--interval robust needs the predictions" in call(*totals).err


def test_groups_count_for_the_twins_of_a_store(call, tmp_path):
    from curvewise.store.write import write_run

    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 30)
    for seed in range(6):
        answers = rng.integers(0, 3, 10)[groups]
        for poke in (None, {"epoch": 0, "factor": 1.001}):
            coordinates = {"learner": "a", "seed": seed} | ({"poke": poke} if poke else {})
            write_run(tmp_path / "store", coordinates, answers, labels=np.zeros(300, dtype=int))
    np.savetxt(tmp_path / "groups.txt", groups, fmt="%d")
    seen = call("variance", "twins", tmp_path / "store", "--groups", tmp_path / "groups.txt", "--json")
    assert seen.code == 0, seen.err
    assert seen.document["groups"] == 10
