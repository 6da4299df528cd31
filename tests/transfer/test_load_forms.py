"""Tables of risks in other forms: methods or sizes as columns, sizes in words."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from curvewise.errors import InputError
from curvewise.transfer.load import load_risks
from curvewise.transfer.risks import TransferRisks

LOSSES = {
    ("scratch", 100): [0.8, 0.82],
    ("scratch", 1000): [0.5, 0.49],
    ("swav", 100): [0.6, 0.61],
    ("swav", 1000): [0.45, 0.44],
}


def long_form(sizes: Any = lambda n: n) -> dict[str, list[Any]]:
    runs = [(m, n, seed) for m, n in LOSSES for seed in (0, 1)]
    return {
        "method": ["blind", *(m for m, _, _ in runs)],
        "n": [sizes(-1), *(sizes(n) for _, n, _ in runs)],
        "seed": [None, *(seed for _, _, seed in runs)],
        "loss": [0.9, *(LOSSES[m, n][seed] for m, n, seed in runs)],
    }


def cells(risks: TransferRisks) -> dict[tuple[str, float, str], float]:
    assert risks.seeds is not None
    keys = zip(risks.methods.tolist(), risks.n.tolist(), risks.seeds.tolist(), strict=True)
    return dict(zip(keys, risks.risk.tolist(), strict=True))


def test_methods_as_columns():
    table = {
        "n": [100, 100, 1000, 1000],
        "seed": [0, 1, 0, 1],
        **{m: [*LOSSES[m, 100], *LOSSES[m, 1000]] for m in ("scratch", "swav")},
        "comment": list("abcd"),
        "swav_std": [0.1] * 4,
    }
    found = load_risks(table, higher_is_better=False, blind=0.9)
    assert cells(found) == cells(load_risks(long_form()))
    assert any("columns 'scratch', 'swav' taken as methods" in note for note in found.notes)
    accuracies = table | {m: [1 - v for v in table[m]] for m in ("scratch", "swav")}
    turned = load_risks(accuracies, higher_is_better=True, blind=0.1)
    assert turned.risk == pytest.approx(found.risk)
    renamed = {k.replace("scratch", "mine"): v for k, v in table.items()}
    with pytest.raises(InputError, match="that of training from scratch with scratch=…"):
        load_risks(renamed, higher_is_better=False)
    assert load_risks(renamed, higher_is_better=False, scratch="mine").scratch == "mine"


@pytest.mark.parametrize("name", ["{}", "n={}", "{:,}"])
def test_sizes_as_columns(name):
    table: dict[str, list[Any]] = {
        "method": ["blind", "scratch", "scratch", "swav", "swav"],
        "seed": ["", 0, 1, 0, 1],
        name.format(100): [0.9, *LOSSES["scratch", 100], *LOSSES["swav", 100]],
        name.format(1000): [None, *LOSSES["scratch", 1000], *LOSSES["swav", 1000]],
    }
    with pytest.raises(InputError, match=r"has sizes as columns .*pass higher_is_better=False"):
        load_risks(table)
    found = load_risks(table, higher_is_better=False)
    assert cells(found) == cells(load_risks(long_form()))
    assert found.blind["task"].risk == 0.9
    assert "1 empty cells left out" in found.notes


def test_columns_without_any_value():
    table = {"method": ["scratch", "swav"], "100": [None, None], "1000": ["", "nan"]}
    with pytest.raises(InputError, match="no value in '100', '1000'"):
        load_risks(table, higher_is_better=False)


def test_a_table_with_a_column_of_sizes_or_methods_is_not_turned():
    by_fold = {"method": ["scratch", "a"], "n": [10, 10], "1": [0.1, 0.2], "2": [0.1, 0.2]}
    with pytest.raises(InputError, match="known as the risk"):
        load_risks(by_fold, higher_is_better=False)


def test_sizes_in_words():
    wanted = cells(load_risks(long_form()))
    words = {-1: "all", 100: "100", 1000: "1k"}
    assert cells(load_risks(long_form(words.get))) == wanted
    assert cells(load_risks(long_form({-1: "-", 100: "0.1K", 1000: "1,000"}.get))) == wanted
    with pytest.raises(InputError, match=r"Row 2 .* reads '1%': .* Write 500 for 1% of 50,000"):
        load_risks(long_form({-1: "", 100: "1%", 1000: "10%"}.get))
    table = long_form(words.get) | {"method": ["blind", *["scratch"] * 4, *["all of it"] * 4]}
    table["n"][-1] = "full"
    with pytest.raises(InputError, match=r"reads 'full' \(row 9\): a training size is a positive"):
        load_risks(table)


def test_a_name_that_all_rows_share_is_no_method():
    table = long_form()
    rows = len(table["n"])
    prompts = table | {"prompting": table["method"], "model": ["llama"] * rows}
    del prompts["method"]
    assert load_risks(prompts).method_names == ("scratch", "swav")
    tuned = table | {"backbone": table["method"], "method": ["fine-tuning"] * rows}
    assert load_risks(tuned).method_names == ("scratch", "swav")


@pytest.mark.parametrize(("name", "up"), [("mIoU", True), ("test_dice", True), ("MAE", False), ("val ppl", False)])
def test_usual_measures_say_which_way_is_better(name, up):
    table = long_form()
    table[name] = [1 - v if up else v for v in table.pop("loss")]
    assert load_risks(table).risk == pytest.approx(load_risks(long_form()).risk)
    with pytest.raises(InputError, match="contradicts the name"):
        load_risks(table, higher_is_better=not up)


def test_what_a_cell_lacks_is_said():
    table = long_form()
    table["loss"] = [f"{v} ± 0.1" for v in table["loss"]]
    with pytest.raises(InputError, match="Of a mean ± a spread give the mean"):
        load_risks(table)
    table = long_form()
    table["loss"][0] = np.nan
    found = load_risks(table)
    assert found.blind == {}
    assert "rows of 'blind' have no value for 'task'" in found.notes


def test_runs_as_columns_are_not_one_column_of_risks():
    """loss_1 was taken as a top-1 loss, and the other two thirds of the runs left out."""
    table = {"method": ["scratch"] * 2 + ["swav"] * 2, "n": [100, 1000] * 2}
    table |= {f"loss_{k}": [0.8 + k / 100, 0.5, 0.6, 0.4] for k in range(3)}
    with pytest.raises(InputError, match=r"has 'loss_0', 'loss_1', 'loss_2': .*'risk': 'loss_1'.*a row for each run"):
        load_risks(table)
    assert load_risks(table, columns={"risk": "loss_2"}).risk[0] == pytest.approx(0.82)
    assert load_risks({**table, "loss_0": table["loss_0"]} | {"loss": [1] * 4}, columns={"risk": "loss"}).risk[0] == 1


@pytest.mark.parametrize(("name", "words", "one"), [("set", ("train", "test"), "test"), ("epoch", (1, 2, 3), "3")])
def test_rows_without_seeds_that_differ_in_a_further_column_are_asked_about(name, words, one):
    """Training and test losses, or the epochs of a run, were averaged as if they were runs."""
    rows = [
        {"method": method, "n": n, "loss": risk + i / 10 + run / 100, name: word}
        for (method, n), risk in {
            ("scratch", 100): 0.8,
            ("scratch", 1000): 0.5,
            ("a", 100): 0.6,
            ("a", 1000): 0.4,
        }.items()
        for i, word in enumerate(words)
        for run in range(2 + (n > 100))
    ]
    with pytest.raises(
        InputError, match=rf"differ in '{name}', .*where={{'{name}': '{one}'}}, .*seed.*if these are runs"
    ):
        load_risks(rows)
    assert len(load_risks(rows, where={name: one})) == 10
    assert len(load_risks(rows, columns={"seed": None})) == 10 * len(words)
    apart = [{**row, name: f"{row[name]}{k}"} for k, row in enumerate(rows)]
    assert len(load_risks(apart)) == 10 * len(words)  # a column of its own for each row, such as seconds


@pytest.mark.parametrize("role", ["blind", "maximal"])
def test_scratch_is_no_control(role):
    table = {"method": ["scratch"] * 2 + ["a"] * 2, "n": [100, 1000] * 2, "loss": [0.8, 0.5, 0.6, 0.4]}
    for options in ({}, {"scratch": "scratch"}):
        with pytest.raises(InputError, match=f"{role}='scratch': is the method that starts from nothing.* as a number"):
            load_risks(table, **{role: "scratch"}, **options)
    assert load_risks(table, scratch="a", **{role: "scratch"}).method_names == ("a",)


def test_a_point_between_thousands_is_asked_about():
    """100, 1.000 and 10.000 were the sizes 100, 1 and 10, so that curves ran backwards."""
    table = {"method": ["scratch"] * 3 + ["a"] * 3, "n": ["100", "1.000", "10.000"] * 2, "loss": [0.8, 0.5, 0.3] * 2}
    with pytest.raises(InputError, match=r"Row 2 .*'1\.000': is that 1000, or a decimal number\? Write sizes without"):
        load_risks(table)
    assert load_risks(table | {"n": ["100.000", "200.000", "1000.000"] * 2}).n.max() == 1000  # as "%.3f" writes floats
    assert load_risks(table | {"n": ["100", "1,000", "10k"] * 2}).n.max() == 10000


def test_an_empty_column_of_seeds_is_none():
    """All runs of a method counted as of one seed, and a run that is there twice was not noticed."""
    table = {"method": ["scratch"] * 4 + ["a"] * 4, "n": [100, 100, 1000, 1000] * 2, "loss": [0.8, 0.7, 0.5, 0.4] * 2}
    found = load_risks(table | {"seed": [""] * 8, "fold": [None] * 8})
    assert found.seeds is None
    assert found.folds is None
    assert found.notes[-1] == "no seeds: rows of one task, method and size are taken as runs"
