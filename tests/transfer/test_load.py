"""Tables of risks as people have them: roles by name, controls by name, hostile cells."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.transfer.load import load_risks
from curvewise.transfer.risks import Control
from curvewise.types import Interval

ROWS: dict[str, list[Any]] = {
    "domain": ["depth"] * 6,
    "method": ["blind-guess", "gold", "scratch", "scratch", "swav", "swav"],
    "train_size": [-1, -1, 100, 1000, 100, 1000],
    "test_loss": [0.9, 0.1, 0.7, 0.4, 0.5, 0.3],
}


def changed(**columns: Any) -> dict[str, list[Any]]:
    """The table with columns of other names or values; None leaves one out."""
    merged = {**ROWS, **columns}
    return {name: cells for name, cells in merged.items() if cells is not None}


def one_method(name: str, **options: Any):
    """A table in which another method stands where swav was."""
    return load_risks(changed(method=["blind", "gold", "scratch", "scratch", name, name]), **options)


@pytest.fixture(scope="module")
def published(data_dir: Path) -> Path:
    return data_dir / "transfer" / "transfer_controls_losses.csv"


def test_the_published_file_reads_out_of_the_box(published):
    found = load_risks(published)
    with published.open() as stream:
        lines = list(csv.DictReader(stream))
    kept = [r for r in lines if r["method"] not in ("blind-guess", "gold")]
    assert found.tasks.tolist() == [r["domain"] for r in kept]
    assert found.methods.tolist() == [r["method"] for r in kept]
    assert found.risk.tolist() == [float(r["test_loss"]) for r in kept]
    assert found.n.tolist() == [float(r["train_size"]) for r in kept]
    assert found.seeds is not None
    assert [float(s) for s in found.seeds] == [float(r["seed"]) for r in kept]
    for name, controls in (("blind-guess", found.blind), ("gold", found.maximal)):
        assert {t: c.risk for t, c in controls.items()} == {
            r["domain"]: float(r["test_loss"]) for r in lines if r["method"] == name
        }
        assert all(np.isnan(c.std) and c.source == "measured" for c in controls.values())
    assert found.scratch == "scratch"
    assert "scratch_orig" in found.method_names
    assert found.unit == "test loss"
    assert "column '' left out: an index without a name" in found.notes
    assert found.notes[0].startswith("task from 'domain'; method from 'method'; n from")


def test_every_form_of_table_is_the_same(tmp_path):
    wanted = load_risks(ROWS)
    records = [dict(zip(ROWS, row, strict=True)) for row in zip(*ROWS.values(), strict=True)]
    sources: list[Any] = [records]
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(ROWS)
    sources.append(frame)
    frame.to_csv(tmp_path / "r.csv")
    frame.to_csv(tmp_path / "r.tsv", sep="\t", index=False)
    (tmp_path / "r.json").write_text(json.dumps(records))
    sources += [tmp_path / name for name in ("r.csv", "r.tsv", "r.json")]
    pytest.importorskip("pyarrow")
    frame.to_parquet(tmp_path / "r.parquet")
    for source in [*sources, tmp_path / "r.parquet"]:
        found = load_risks(source)
        for name, column in wanted.columns().items():
            assert found.columns()[name].tolist() == column.tolist()
        assert (found.blind["depth"].risk, found.unit) == (0.9, wanted.unit)


@pytest.mark.parametrize(
    ("role", "old", "new"),
    [
        ("task", "domain", "Dataset"),
        ("task", "domain", "downstream task"),
        ("method", "method", "Initialisation"),
        ("method", "method", "pretraining"),
        ("method", "method", "weights"),
        ("n", "train_size", "num_train_samples"),
        ("n", "train_size", "n"),
        ("risk", "test_loss", "risk"),
        ("risk", "test_loss", "val L1 loss"),
        ("risk", "test_loss", "top-1 error"),
    ],
)
def test_roles_are_found_by_usual_names_and_by_the_users_word(role, old, new):
    wanted = load_risks(ROWS).columns()
    ways: list[tuple[str, dict[str, Any]]] = [(new, {}), ("x y", {"columns": {role: "x y"}})]
    for name, options in ways:
        rows = {name if k == old else k: v for k, v in ROWS.items()}
        if role == "risk" and options:
            with pytest.raises(InputError, match=r"'x y'\}: the name does not say .*higher_is_better="):
                load_risks(rows, **options)
            options["higher_is_better"] = False
        found = load_risks(rows, **options)
        assert {k: v.tolist() for k, v in found.columns().items()} == {k: v.tolist() for k, v in wanted.items()}
        assert any(repr(name) in note for note in found.notes)


def test_two_readings_are_an_error_that_says_how_to_choose():
    with pytest.raises(InputError, match=r"2 columns .* could be the risk: .*columns=\{'risk': 'test_loss'\}"):
        load_risks(changed(test_error=[0.1] * 6))
    with pytest.raises(InputError, match=r"could be the method: .* Choose with columns=\{'method': 'method'\}"):
        load_risks(changed(learner=list("aabbcc")))
    with pytest.raises(InputError, match=r"could be the task: .*'task': 'domain'\}; or columns=\{'task': None\}"):
        load_risks(changed(dataset=list("ababab"), domain=list("aabbcc")))
    with pytest.raises(InputError, match=r"could be training from scratch: .*scratch='scratch'"):
        one_method("random init")
    with pytest.raises(InputError, match=r"Two methods could be the blind guess of 'depth'"):
        one_method("chance")
    with pytest.raises(InputError, match=r"Choose one with where=\{'split': 'test'\}"):
        load_risks(changed(split=["train", "test"] * 3))
    with pytest.raises(InputError, match="two roles"):
        load_risks(ROWS, columns={"n": "test_loss", "risk": "test_loss"})


def test_the_test_set_goes_before_others_and_training_is_no_risk():
    more = {"train_loss": [0.0] * 6, "val_loss": [2.0] * 6, "loss": [3.0] * 6}
    found = load_risks(changed(**more))
    assert found.risk.tolist() == ROWS["test_loss"][2:]
    assert "left out: 'train_loss', 'val_loss', 'loss'" in found.notes[0]
    with pytest.raises(InputError, match=r"No column .* known as the risk: .*'risk': 'COLUMN'"):
        load_risks(changed(test_loss=None, train_loss=[0.0] * 6))


def test_columns_that_tell_tasks_apart_alike_are_one():
    found = load_risks(changed(dataset=["taskonomy"] * 6, task_name=["DEPTH"] * 6))
    assert found.task_names == ("depth",)
    assert load_risks(ROWS, columns={"task": None}).task_names == ("task",)


@pytest.mark.parametrize(
    ("blind", "maximal", "scratch"),
    [
        ("blind guess", "Maximal supervision", "from-scratch"),
        ("chance", "oracle", "Random init"),
        ("dummy", "full", "random"),
        ("zero-shot", "full fine-tuning", "few-shot"),
        ("Blind-Guess", "GOLD", "Scratch"),
    ],
)
def test_controls_are_known_by_many_names(blind, maximal, scratch):
    names = [blind, maximal, scratch, scratch, "swav", "swav"]
    for n in ([None, "", 100, 1000, 100, 1000], [0, -1, 100, 1000, 100, 1000]):
        found = load_risks(changed(method=names, train_size=n))
        assert found.scratch == scratch
        assert found.method_names == (scratch, "swav")
        assert found.blind["depth"].risk == 0.9
        assert found.maximal["depth"].risk == 0.1


def test_controls_of_any_name_are_named():
    names = ["a", "b", "c", "c", "swav", "swav"]
    found = load_risks(changed(method=names), blind="a", maximal="b", scratch="c")
    assert (found.blind["depth"].risk, found.maximal["depth"].risk) == (0.9, 0.1)
    assert (found.scratch, found.method_names) == ("c", ("c", "swav"))
    with pytest.raises(InputError, match=r"scratch='d' is no method .* It has 'a', 'b'"):
        load_risks(changed(method=names), blind="a", maximal="b", scratch="d")
    with pytest.raises(InputError, match=r"called like training from scratch: name it with scr"):
        load_risks(changed(method=names), blind="a", maximal="b")


def test_a_name_that_only_looks_like_a_control_is_a_method():
    assert one_method("scratch_orig").method_names == ("scratch", "scratch_orig")
    found = one_method("full")  # at two sizes: fine-tuned in full rather than with all the data
    assert found.method_names == ("scratch", "full")
    assert found.maximal["depth"].risk == 0.1
    names = ["blind", "full", "scratch", "scratch", "full", "full"]
    with pytest.raises(InputError, match=r"row 2.*name theirs with blind=… or maximal=…"):
        load_risks(changed(method=names))
    found = load_risks(changed(method=names), maximal="full")
    assert (found.method_names, found.maximal["depth"].risk) == (("scratch",), 0.1)


def test_controls_by_number_interval_and_task():
    rows = {k: v[2:] for k, v in ROWS.items()}
    found = load_risks(rows, blind=0.95, maximal={"depth": Interval(0.2, 0.1, 0.3, level=0.9)})
    assert found.blind == {"depth": Control(0.95)}
    assert found.maximal["depth"].risk == 0.2
    assert found.maximal["depth"].std == pytest.approx(0.1 / 1.6448536269514722)
    control = Control(0.05, 0.01, "asymptote", assumed=True)
    assert load_risks(rows, maximal=control).maximal == {"depth": control}
    assert "no blind guess" in load_risks(rows).notes
    given = load_risks(ROWS, blind=0.95)  # against the rows of the table
    assert given.blind["depth"].risk == 0.95
    assert "blind-guess" not in given.method_names
    assert "rows of 'blind-guess' left out: blind=… is given" in given.notes
    with pytest.raises(InputError, match=r"blind=… names the task 'dpth', .* mean 'depth'"):
        load_risks(rows, blind={"dpth": 0.9})
    for value in (float("nan"), True, [0.1]):
        with pytest.raises(InputError, match=r"maximal=.*give a finite number"):
            load_risks(rows, maximal=value)


def test_runs_of_a_control_are_averaged_at_the_largest_size():
    rows = [
        *({"method": "blind", "n": n, "loss": v} for n, v in ((10, 9), (100, 0.8), (100, 1.0))),
        *({"method": "gold", "n": "", "loss": v} for v in (0.1, 0.3, float("nan"))),
        *({"method": "scratch", "n": n, "loss": 0.5} for n in (10, 100)),
    ]
    found = load_risks(rows)
    assert found.blind["task"].risk == pytest.approx(0.9)
    assert found.blind["task"].std == pytest.approx(np.std([0.8, 1.0], ddof=1) / np.sqrt(2))
    assert found.blind["task"].source == "measured at n = 100"
    assert found.maximal["task"].risk == pytest.approx(0.2)


@pytest.mark.parametrize("unit", [None, "percent"])
def test_accuracies_become_errors(unit):
    percent = [10.0, 90.0, 30.0, 60.0, 50.0, 70.0]
    for name, options in (("test_accuracy", {}), ("result", {"columns": {"risk": "result"}})):
        told = {} if name == "test_accuracy" else {"higher_is_better": True}
        rows = changed(test_loss=None, **{name: percent})
        found = load_risks(rows, unit=unit, **options, **told)
        assert found.risk == pytest.approx([70.0, 40.0, 50.0, 30.0])
        assert (found.blind["depth"].risk, found.maximal["depth"].risk) == (90.0, 10.0)
    assert load_risks(changed(test_loss=None, test_acc=percent)).unit == "test error (%)"
    fractions = changed(test_loss=None, accuracy=[p / 100 for p in percent])
    found = load_risks(fractions, blind=0.2)  # an accuracy, as the others
    assert found.unit == "error"
    assert found.risk == pytest.approx([0.7, 0.4, 0.5, 0.3])
    assert found.blind["depth"].risk == pytest.approx(0.8)
    assert load_risks(fractions, blind=Control(0.85)).blind["depth"].risk == 0.85


def test_scores_without_bounds_turn_round_and_units_are_checked():
    bleu = changed(test_loss=None, bleu=[2.0, 40.0, 10.0, 20.0, 15.0, 30.0])
    for options in ({"unit": "score"}, {"unit": "score", "higher_is_better": True}):
        found = load_risks(bleu, columns={"risk": "bleu"}, **options)
        assert found.risk.tolist() == [-10.0, -20.0, -15.0, -30.0]
        assert (found.maximal["depth"].risk, found.unit) == (-40.0, "−bleu")
    for options in ({"unit": "score"}, {"higher_is_better": True}):
        with pytest.raises(InputError, match="contradicts the name 'test_loss', for which lower"):
            load_risks(ROWS, **options)
    with pytest.raises(InputError, match="higher_is_better=False contradicts the name 'acc'"):
        load_risks(changed(test_loss=None, acc=ROWS["test_loss"]), higher_is_better=False)
    with pytest.raises(InputError, match=r"holds 90, which is no fraction .*Pass unit='percent'"):
        load_risks(changed(test_loss=[90, 10, 70, 40, 50, 30]), unit="fraction", columns={"n": "train_size"})
    for options in ({"unit": "loss", "higher_is_better": True}, {"unit": "points"}):
        with pytest.raises(InputError, match="unit="):
            load_risks(bleu, columns={"risk": "bleu"}, **options)
    with pytest.raises(InputError, match="unit='score' needs higher_is_better=True"):
        load_risks(bleu, columns={"risk": "bleu"}, unit="score", higher_is_better=False)


def test_failed_runs_stay_as_nan_and_are_said():
    losses = [0.9, 0.1, "", 0.4, "inf", 0.3]
    status = ["done", "done", "done", "failed", "done", "done"]
    found = load_risks(changed(test_loss=losses, status=status))
    assert np.isnan(found.risk).tolist() == [True, True, True, False]
    said = " | ".join(found.notes)
    assert "1 of 6 runs taken as failed, failed by their status (row 4)" in said
    assert "1 of 6 runs taken as failed, without a value (row 3)" in said
    assert "1 of 6 runs taken as failed, infinite (row 5)" in said
    kept = load_risks(changed(test_loss=losses, status=status), drop_failed=True)
    assert kept.risk.tolist() == [0.3]
    assert "3 failed runs left out" in kept.notes
    going = ["done", "done", "done", "done", "done", "running"]
    left = load_risks(changed(status=going))
    assert len(left) == 3
    assert "1 of 6 rows left out by column 'status': 1 running" in left.notes
    with pytest.raises(InputError, match="All 4 runs of the dict failed"):
        load_risks(changed(test_loss=[0.9, 0.1, "", "", "", ""]))


def test_a_run_that_is_there_twice_is_an_error():
    twice = changed(train_size=[-1, -1, 100, 100, 100, 1000], seed=[-1, -1, 0, 0, 0, 0])
    with pytest.raises(InputError, match=r"Rows 3 and 4 of the dict are the same run .*remove one"):
        load_risks(twice)
    with pytest.raises(InputError, match=r"choose with where=\{'lr': '1'\}, as they differ in 'lr'"):
        load_risks({**twice, "lr": [1, 1, 1, 2, 1, 1]})
    assert len(load_risks(twice, columns={"seed": None})) == 4
    assert len(load_risks(twice | {"fold": [0, 0, 0, 1, 0, 0]})) == 4
    controls = changed(method=["blind", "blind", "scratch", "scratch", "swav", "swav"], seed=["", "", 0, 0, 0, 0])
    assert load_risks(controls).blind["depth"].risk == pytest.approx(0.5)  # rows of controls may have no seed
    without = {k: v for k, v in twice.items() if k != "seed"}
    assert "no seeds: rows of one task, method and size are taken as runs" in (load_risks(without).notes)


def test_rows_are_chosen():
    rows = changed(split=["test"] * 5 + ["train"])
    found = load_risks(rows, where={"split": "test"})
    assert found.risk.tolist() == [0.7, 0.4, 0.5]
    with pytest.raises(InputError, match="is in no row"):
        load_risks(rows, where={"split": "tst"})


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"train_size": [-1, -1, 100, 1000, -1, 1000]}, r"reads -1 \(row 5\): a training size"),
        ({"train_size": [-1, -1, 100, 1000, 0, ""]}, r"2 rows, the first is row 5"),
        ({"train_size": [-1, -1, "many", 1000, 1, 1]}, "Row 3 in column 'train_size'.*'many'"),
        ({"train_size": [-1, -1, "inf", 1000, 1, 1]}, r"reads 'inf' \(row 3\)"),
        ({"test_loss": [0.9, 0.1, "low", 0.4, 0.5, 0.3]}, "Row 3 in column 'test_loss'.*'low'"),
        ({"method": ["blind", "gold", "", "scratch", "a", "a"]}, "names no method in row 3"),
        ({"domain": ["depth", "", *["depth"] * 4]}, "names no task in row 2"),
        ({"method": None}, "No column .* known as the method: .*'method': 'COLUMN'"),
        ({"train_size": None}, "No column .* known as the training-set size: .*'n': 'COLUMN'"),
        ({"test_loss": [0.9] * 5}, "differ in length"),
        ({"method": ["gold"] * 6}, "controls and no other rows"),
    ],
)
def test_what_cannot_be_read_says_which_row_and_what_to_do(columns, message):
    with pytest.raises(InputError, match=message):
        load_risks(changed(**columns))


def test_nearly_nothing(tmp_path):
    empty = tmp_path / "empty.csv"
    empty.write_text("")
    with pytest.raises(InputError, match=r"empty\.csv"):
        load_risks(empty)
    empty.write_text("method,n,loss\n")
    with pytest.raises(InputError, match="no rows"):
        load_risks(empty)
    with pytest.raises(InputError, match=r"'tst_loss'\}: .* mean 'test_loss'"):
        load_risks(ROWS, columns={"risk": "tst_loss"})
    one = load_risks({"method": ["scratch"], "n": [10], "loss": [1.0]})
    assert (len(one), one.blind, one.maximal) == (1, {}, {})


def test_a_store_of_runs_with_those_that_failed(tmp_path):
    pytest.importorskip("torch")
    from curvewise.store.write import write_run

    for learner, loss in (("blind", 2.0), ("scratch", 1.0), ("net", 0.5)):
        for seed in (0, 1):
            where = {"learner": learner, "n": 50, "fold": 0, "init_seed": seed, "order_seed": seed}
            metrics = {"error": loss / 4, "loss": loss}
            write_run(tmp_path / "runs", where, metrics=metrics)
    lost = {"learner": "net", "n": 50, "fold": 0, "init_seed": 2, "order_seed": 3}
    write_run(tmp_path / "runs", lost, error="out of memory")
    with pytest.raises(InputError, match=r"could be the risk: 'error', 'loss'|'loss', 'error'"):
        load_risks(tmp_path / "runs")
    found = load_risks(tmp_path / "runs", columns={"risk": "loss"})
    assert found.blind["task"].risk == 2.0
    assert sorted(found.of(method="net").risk.tolist())[:2] == [0.5, 0.5]
    assert int(np.isnan(found.risk).sum()) == 1
    assert found.seeds is not None
    assert sorted(found.seeds.tolist()) == ["0", "0", "1", "1", "2/3"]
    assert found.folds is not None


def test_controls_by_task_are_named_as_tasks_are_read() -> None:
    rows = {**ROWS, "task": [1.0] * len(ROWS["method"])}
    rows.pop("domain", None)
    for key in (1, 1.0, "1"):
        assert load_risks(rows, blind={key: 2.5}).blind["1"].risk == 2.5


def test_a_negated_loss_is_asked_about() -> None:
    """scikit-learn's neg_mse is a loss with the sign of a score: it was read as lower-is-better."""
    rows = changed(test_loss=None, neg_mse=[-v for v in ROWS["test_loss"]])
    with pytest.raises(InputError, match="does not say whether lower is better"):
        load_risks(rows, columns={"risk": "neg_mse"})
    assert load_risks(rows, columns={"risk": "neg_mse"}, unit="score").blind["depth"].risk == 0.9


def test_sizes_with_a_letter_and_separators_of_thousands_are_not_guessed() -> None:
    assert load_risks(changed(train_size=["all", "all", "1.281M", "2k", "1,5k", "2000"])).n.max() == 1_281_000
    with pytest.raises(InputError, match="reads '1,000k', which is not a number"):
        load_risks(changed(train_size=["all", "all", "1,000k", "2k", "1k", "2000"]))
