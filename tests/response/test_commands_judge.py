"""``curvewise response judge`` as a user calls it."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from scipy import stats


def models(tasks: tuple[str, ...]) -> list[dict[str, object]]:
    """Models of which gi-intra and pal-intra tell the gap, and noise does not."""
    rng = np.random.default_rng(0)
    rows: list[dict[str, object]] = []
    for task in tasks:
        for i in range(36):
            gap = 0.1 + 0.02 * (i % 3) + 0.02 * rng.normal()
            train = 0.7 if i % 12 == 5 else 0.99
            rows.append(
                {
                    "task": task,
                    "model": f"{task}-{i}",
                    "depth": 2 + i % 3,
                    "lr": (0.1, 0.01)[i // 3 % 2],
                    "train_acc": train,
                    "test_acc": train - gap,
                    "gi-intra": gap + 0.01 * rng.normal(),
                    "pal-intra": 80 - 30 * gap + 0.3 * rng.normal(),
                    "noise": rng.normal(),
                }
            )
    return rows


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    with open(path, "w", newline="") as stream:
        table = csv.DictWriter(stream, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    return path


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return write(tmp_path / "one.csv", models(("cnn",)))


@pytest.fixture
def two(tmp_path: Path) -> Path:
    return write(tmp_path / "two.csv", models(("cnn", "nin")))


def test_correlations_are_those_of_scipy(call, one):
    seen = call("response", "judge", one, "--json")
    assert seen.code == 0, seen.err
    assert "hyperparameters from 'depth', 'lr'" in " ".join(seen.err.split())
    rows = models(("cnn",))
    gap = [r["train_acc"] - r["test_acc"] for r in rows]  # type: ignore[operator]
    told = {r["measure"]: r for r in seen.document["rows"]}
    assert list(told) == ["gi-intra", "pal-intra", "noise"]
    for name, found in told.items():
        values = [r[name] for r in rows]
        assert found["kendall"] == pytest.approx(stats.kendalltau(values, gap).statistic)
        assert found["pearson"] == pytest.approx(stats.pearsonr(values, gap).statistic)
        assert found["n"] == 36


def test_directions_are_told_by_suffix_or_taken_from_the_shelf(call, one):
    def scores(*options):
        rows = call("response", "judge", one, *options, "--json").document["rows"]
        return {r["measure"]: (r["directed"], r["cmi"]["estimate"]) for r in rows}

    right = scores("--measure", "gi-intra:+", "--measure", "pal-intra:-", "--measure", "noise")
    assert [right[k][0] for k in ("gi-intra", "pal-intra", "noise")] == [True, True, False]
    assert right["gi-intra"][1] > 0.1 < right["pal-intra"][1]
    wrong = scores("--measure", "gi-intra:-")
    assert list(wrong) == ["gi-intra"]
    assert wrong["gi-intra"][1] < 0
    assert scores("--shelf") == right


def test_a_table_for_people(call, one, two, tmp_path):
    pictures = tmp_path / "judged.png", tmp_path / "scatter.png"
    seen = call("response", "judge", two, "--shelf", "--plot", pictures[0], "--scatter", pictures[1])
    assert seen.code == 0, seen.err
    assert "CMI × 100, by task (models: cnn 36, nin 36)" in seen.out
    assert "noise ±" in seen.out
    assert all(p.stat().st_size > 5000 for p in pictures)
    alone = call("response", "judge", one, "--mode", "granulated")
    assert "Measures of cnn, 36 models" in alone.out
    assert "granulated" in alone.out
    assert max(map(len, alone.out.splitlines()[2:])) <= 80


def test_tables_for_papers_have_the_best_in_bold(call, two):
    chosen = ("--measure", "gi-intra:+", "--measure", "noise:+")
    markdown = call("response", "judge", two, *chosen, "--table", "markdown")
    lines = markdown.out.splitlines()
    assert lines[0].split() == ["|", "measure", "|", "cnn", "|", "nin", "|", "All", "Avg", "|"]
    assert next(line for line in lines if "gi-intra" in line).count("**") == 6
    assert "judged on 72 models" in " ".join(markdown.err.split())
    latex = call("response", "judge", two, *chosen, "--table", "latex", "--mode", "pgdl")
    assert latex.out.startswith(r"\begin{tabular}{lrrr}")
    assert r"\textbf{" in latex.out


def test_models_that_are_not_trained_are_left_out(call, one):
    seen = call("response", "judge", one, "--least-train-accuracy", "0.8", "--json")
    assert {r["n"] for r in seen.document["rows"]} == {33}
    assert "n = 33" in seen.err
    assert call("response", "judge", one, "--least-train-accuracy", "80").code == 2


def test_the_layout_of_the_competition(call, tmp_path):
    rows = models(("cnn",))
    specifications = {
        r["model"]: {
            "hparams": {
                "depth": {"possible_values": [2, 3, 4], "current_value": r["depth"]},
                "rate": {"possible_values": [0.1, 0.01], "current_value": r["lr"]},
            },
            "metrics": {"train_acc": r["train_acc"], "test_acc": r["test_acc"]},
        }
        for r in rows
    }
    (tmp_path / "corpus" / "task1").mkdir(parents=True)
    path = tmp_path / "corpus" / "task1" / "model_configs.json"
    path.write_text(json.dumps(specifications))
    guesses = tmp_path / "corpus" / "gi"
    guesses.mkdir()
    (guesses / "task1.predict").write_text(json.dumps({r["model"]: r["gi-intra"] for r in rows}))
    seen = call("response", "judge", tmp_path / "corpus", "--measure", "gi:+", "--json")
    assert seen.code == 0, seen.err
    (row,) = seen.document["rows"]
    table = call("response", "judge", write(tmp_path / "t.csv", rows), "--shelf", "--json")
    same = next(r for r in table.document["rows"] if r["measure"] == "gi-intra")
    assert row["cmi"]["estimate"] == pytest.approx(same["cmi"]["estimate"])
    assert row["pgdl"] == pytest.approx(same["pgdl"])


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (("--measure", "gi-intro"), 1, "Did you mean 'gi-intra'?"),
        (("--gap", "gpa"), 1, "has no such column"),
        (("--hyperparameter", "deepth"), 1, "has no such column"),
        (("--unit", "score"), 2, "percent"),
        (("--mode", "pgdll"), 2, "pgdl"),
        (("--plot", "judged.txt"), 2, "must end in"),
        (("--scatter", "judged.txt"), 2, "must end in"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_judged(call, one, options, code, words):
    seen = call("response", "judge", one, *options)
    assert seen.code == code
    assert seen.out == ""
    assert words in " ".join(seen.err.replace("│", " ").split())


def test_files_that_are_no_corpus(call, tmp_path):
    (tmp_path / "empty.csv").touch()
    (tmp_path / "words.csv").write_text("a,b\nhello,world\n")
    for name in ("empty.csv", "words.csv", "absent.csv"):
        seen = call("response", "judge", tmp_path / name)
        assert seen.code == 1
        assert name in " ".join(seen.err.split())
    unclear = tmp_path / "unclear.csv"
    unclear.write_text("gap,thing\n0.1,1\n0.2,1\n0.3,2\n0.2,2\n0.1,3\n0.1,3\n")
    seen = call("response", "judge", unclear)
    assert seen.code == 1
    assert "--hyperparameter … or --measure …" in " ".join(seen.err.split())
