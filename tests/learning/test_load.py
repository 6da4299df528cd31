"""What load_measurements makes of tables that are in order."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from curvewise.errors import InputError
from curvewise.learning.load import load_measurements

LONG = {
    "model": ["a", "a", "b", "b"],
    "train_size": [25, 50, 25, 50],
    "seed": [0, 0, 0, 0],
    "error": [0.5, 0.4, 0.6, 0.3],
}


def check_long(m):
    assert m.learner.tolist() == ["a", "a", "b", "b"]
    assert m.n.tolist() == [25, 50, 25, 50]
    assert m.error.tolist() == [0.5, 0.4, 0.6, 0.3]
    assert m.labels["seed"].tolist() == [0, 0, 0, 0]
    assert m.unit.name == "fraction"
    assert not m.unit.higher_is_better


@pytest.mark.parametrize(
    "make",
    [
        dict,
        pd.DataFrame,
        pl.DataFrame,
        pl.LazyFrame,
        pa.table,
        lambda d: pd.DataFrame(d).to_dict("records"),
        lambda d: pd.DataFrame(d).set_index(["model", "train_size"]),
        lambda d: pd.DataFrame(d).convert_dtypes(),
        lambda d: pd.DataFrame(d).astype({"model": "category"}),
        lambda d: pl.DataFrame(d).with_columns(pl.col("model").cast(pl.Categorical)),
        lambda d: {k: np.array(v) for k, v in d.items()},
        lambda d: {k: pd.Series(v) for k, v in d.items()},
    ],
)
def test_every_kind_of_table_in_memory(make):
    check_long(load_measurements(make(LONG)))


@pytest.mark.parametrize("name", ["m.csv", "m.csv.gz", "M.CSV", "m.txt"])
def test_csv(tmp_path, name):
    compression = "gzip" if name.endswith(".gz") else None
    pd.DataFrame(LONG).to_csv(tmp_path / name, index=False, compression=compression)
    check_long(load_measurements(tmp_path / name))
    check_long(load_measurements(str(tmp_path / name)))


def test_tsv_parquet_json_and_json_lines(tmp_path):
    frame = pd.DataFrame(LONG)
    frame.to_csv(tmp_path / "m.tsv", index=False, sep="\t")
    frame.to_parquet(tmp_path / "m.parquet")
    frame.to_json(tmp_path / "records.json", orient="records")
    frame.to_json(tmp_path / "columns.json", orient="split")
    frame.to_json(tmp_path / "m.jsonl", orient="records", lines=True)
    (tmp_path / "dict.json").write_text(pd.io.json.ujson_dumps(LONG))
    for name in ("m.tsv", "m.parquet", "records.json", "m.jsonl", "dict.json"):
        m = load_measurements(tmp_path / name)
        check_long(m)
        assert not any("separated" in note for note in m.notes)


def test_the_index_that_pandas_writes_is_left_out_and_noted(tmp_path):
    pd.DataFrame(LONG).to_csv(tmp_path / "m.csv")
    m = load_measurements(tmp_path / "m.csv")
    check_long(m)
    assert "column '' left out: an index without a name" in m.notes


def test_byte_order_mark_semicolons_and_windows_lines(tmp_path):
    path = tmp_path / "m.csv"
    path.write_bytes(b"\xef\xbb\xbfn;error\r\n25;0.5\r\n50;0.25\r\n")
    m = load_measurements(path)
    assert m.n.tolist() == [25, 50]
    assert m.error.tolist() == [0.5, 0.25]
    assert "fields separated by semicolons" in m.notes


@pytest.mark.parametrize(("name", "mark"), [("m.csv", ";"), ("m.tsv", "\t"), ("m.txt", "\t")])
def test_decimal_commas_between_semicolons_or_tabs(tmp_path, name, mark):
    rows = ["n;Fehler;std;width", "12,5;78,96; 1,5 ;64,32", "25;60;1,5E-01;64,32", "50;;1;8"]
    (tmp_path / name).write_text("\r\n".join(rows).replace(";", mark), encoding="utf-8-sig")
    options = {"unit": "percent", "higher_is_better": False}
    m = load_measurements(tmp_path / name, **options, columns={"value": "Fehler"}, drop_failed=True)
    assert m.n.tolist() == [12.5, 25]
    assert m.error.tolist() == [78.96, 60]
    assert m.variance == pytest.approx([2.25, 0.0225])
    assert m.labels["width"].tolist() == ["64,32", "64,32"], "labels stay as they are written"
    assert "decimal commas read as points: '78,96'" in m.notes
    assert not any("thousands" in note for note in m.notes)


def test_commas_in_other_columns_are_no_decimal_commas(tmp_path):
    (tmp_path / "m.csv").write_text("n;error;model\n25;0.5;64,32\n50.5;0.4;64,32\n")
    m = load_measurements(tmp_path / "m.csv")
    assert m.learners == ("64,32",)
    assert m.error.tolist() == [0.5, 0.4]
    assert not any("decimal" in note for note in m.notes)


def test_thousands_beyond_doubt_are_read_between_tabs(tmp_path):
    (tmp_path / "m.tsv").write_text("n\terror\n1,000,000\t0.5\n2,000,000\t0.4\n")
    m = load_measurements(tmp_path / "m.tsv")
    assert m.n.tolist() == [1_000_000, 2_000_000]
    assert "commas in sizes read as thousands: '1,000,000'" in m.notes


def test_the_learner_is_called_like_the_file(tmp_path):
    path = tmp_path / "my net.v2.csv.gz"
    pd.DataFrame({"n": [1, 2], "error": [0.5, 0.4]}).to_csv(path, index=False)
    m = load_measurements(path)
    assert m.learners == ("my net.v2",)
    assert "all rows are 'my net.v2'" in m.notes[0]


def test_the_first_note_says_what_was_taken_for_what():
    m = load_measurements({"size_train": [25, 400], "accuracy": [0.5, 0.75], "model": ["x", "x"]})
    assert m.notes[0] == (
        "n from 'size_train'; learner from 'model'; value from 'accuracy' (higher is better, turned into error = 1 − "
        "accuracy); 2 rows, 2 sizes from 25 to 400, 1 learner"
    )
    assert m.notes[1] == "sizes taken as given"


@pytest.mark.parametrize(
    ("unit", "higher", "column", "values", "errors"),
    [
        ("fraction", None, "acc", [0.75, 1.0], [0.25, 0.0]),
        ("percent", None, "test_accuracy", [75, 100], [25, 0]),
        ("percent", None, "Top-1 accuracy", [75, 100], [25, 0]),
        ("fraction", None, "score", [0.75, 1.0], [0.25, 0.0]),
        ("fraction", True, "value", [0.75, 1.0], [0.25, 0.0]),
        ("fraction", None, "value", [0.75, 1.0], [0.75, 1.0]),
        (None, None, "error rate", [0.75, 1.0], [0.75, 1.0]),
        ("fraction", False, "score", [0.75, 1.0], [0.75, 1.0]),
        ("loss", None, "val_loss", [7.5, 3.0], [7.5, 3.0]),
        ("loss", None, "score", [7.5, 3.0], [7.5, 3.0]),
        ("score", None, "mean_test_score", [7.5, 30.0], [7.5, 30.0]),
        ("score", True, "value", [-7.5, 3.0], [-7.5, 3.0]),
    ],
)
def test_error_or_accuracy(unit, higher, column, values, errors):
    m = load_measurements({"n": [1, 2], column: values}, unit=unit, higher_is_better=higher)
    assert m.error.tolist() == errors
    assert m.unit.name == (unit or "fraction")


def test_the_metric_column_says_which_way_is_better():
    data = {"n": [1, 1], "metric": ["accuracy", "loss"], "value": [0.75, 2.0]}
    assert load_measurements(data, metric="accuracy").error.tolist() == [0.25]
    m = load_measurements(data, metric="loss", unit="loss")
    assert m.error.tolist() == [2.0]
    assert m.labels["metric"].tolist() == ["loss"]
    assert "1 of 2 rows taken: metric is 'loss'" in m.notes


def test_split_selects_rows_and_row_numbers_stay_those_of_the_source():
    data = {"n": [1, 1, 2, 2], "split": ["train", "test"] * 2, "error": [0, 0.5, 0, float("nan")]}
    with pytest.raises(InputError, match="row 4"):
        load_measurements(data, where={"split": "test"})
    assert load_measurements(data, where={"split": "test"}, drop_failed=True).error.tolist() == [0.5]
    assert load_measurements(data, where={"split": "train"}).error.tolist() == [0.0, 0.0]
    renamed = {("subset" if k == "split" else k): v for k, v in data.items()}
    assert load_measurements(renamed, where={"split": "train"}).error.tolist() == [0.0, 0.0]


def test_columns_override_and_join():
    data = {"openmlid": [3, 6.0], "learner": ["svm", "svm"], "k": [16, 16], "err_a": [0.1, 0.2], "n": [7, 8]}
    m = load_measurements(data, columns={"n": "k", "value": "err_a", "learner": ["openmlid", "learner"]})
    assert m.learners == ("3 / svm", "6 / svm")
    assert m.n.tolist() == [16, 16]
    assert m.labels["n_column"].tolist() == [7, 8]
    assert m.labels["openmlid"].tolist() == [3, 6]
    assert m.frame()["n"].tolist() == [16, 16]
    assert "column 'n' kept as the label 'n_column'" in m.notes


def test_a_role_can_be_left_out():
    data = {"n": [1, 2], "error": [0.5, 0.4], "model": ["a", "b"], "count": ["x", "y"]}
    m = load_measurements(data, columns={"learner": None, "runs": None})
    assert m.learners == ("learner",)
    assert m.runs is None
    assert m.labels["model"].tolist() == ["a", "b"]


def test_runs_and_spread():
    data = {"n": [1, 2], "error": [0.5, 0.4], "n_rep": [5, 1], "std": [0.1, None]}
    m = load_measurements(data)
    np.testing.assert_allclose(m.variance, [0.01, np.nan])
    assert m.runs.tolist() == [5, 1]
    assert "variance from 'std', squared" in m.notes
    assert "1 row without a variance" in m.notes
    assert load_measurements({"n": [1], "err": [0.5], "err_var": [0.1]}).variance.tolist() == [0.1]


def test_a_standard_error_is_not_a_standard_deviation():
    m = load_measurements({"n": [1, 2], "error": [0.5, 0.4], "std_error": [0.1, 0.1]})
    assert m.variance is None
    assert m.labels["std_error"].tolist() == [0.1, 0.1]


def test_per_class_sizes_become_totals():
    m = load_measurements({"n": [5, 10], "error": [0.5, 0.4]}, per_class=100)
    assert m.n.tolist() == [500, 1000]
    assert "sizes multiplied by 100 classes, so that n is the total" in m.notes


def test_thousands_in_sizes_are_read_and_noted(tmp_path):
    (tmp_path / "m.csv").write_text('n,error\n"1,000",0.5\n"2,000,000",0.4\n500,0.6\n')
    m = load_measurements(tmp_path / "m.csv")
    assert m.n.tolist() == [1000, 2_000_000, 500]
    assert "commas in sizes read as thousands: '1,000'" in m.notes


def test_sizes_below_one_are_remarked_on():
    m = load_measurements({"n": [0.1, 0.5], "error": [0.5, 0.4]})
    assert "below 1" in m.notes[1]


def test_failed_runs_are_dropped_on_request_and_named():
    data = {"n": [25, 50, 100], "model": ["a", "a", "b"], "loss": [2.0, float("inf"), None]}
    m = load_measurements(data, unit="loss", drop_failed=True)
    assert m.n.tolist() == [25]
    assert "2 of 3 values dropped as failed: 'a' at n = 50 (row 2), 'b' at n = 100 (row 3)" in m.notes


def test_lists_in_cells_of_records_frames_and_arrays():
    records = [{"num_train_samples": 25, "test_errors": [42.9, 40.5]}]
    records += [{"num_train_samples": 50, "test_errors": [32.0]}]
    records += [{"num_train_samples": 100, "test_errors": []}]
    sources = [records, pl.DataFrame(records), pd.DataFrame(records), pa.Table.from_pylist(records)]
    for source in sources:
        m = load_measurements(source, unit="percent")
        assert m.n.tolist() == [25, 25, 50]
        assert m.error.tolist() == [42.9, 40.5, 32.0]
        assert "'test_errors' held lists: one row per element" in m.notes
        assert "1 empty list(s) taken as not measured" in m.notes
    m = load_measurements({"n": [1, 2], "errors": np.array([[0.5, 0.4], [0.3, 0.2]])})
    assert m.error.tolist() == [0.5, 0.4, 0.3, 0.2]


def test_learners_as_keys():
    data = {
        "A": [{"n": 25, "errors": [0.5, 0.4]}, {"n": 50, "errors": [0.3]}],
        "B": {"n": [25, 50], "errors": [0.6, 0.7]},
    }
    m = load_measurements(data)
    assert m.learner.tolist() == ["A", "A", "A", "B", "B"]
    assert m.error.tolist() == [0.5, 0.4, 0.3, 0.6, 0.7]


@pytest.mark.parametrize("name", ["<script>alert(1)</script>", "a\nb", "🐙", "x" * 500, "a b", "=1+1"])
def test_hostile_names_are_kept_verbatim(tmp_path, name):
    pd.DataFrame({"learner": [name], "n": [1], "error": [0.5]}).to_csv(tmp_path / "m.csv", index=False)
    m = load_measurements(tmp_path / "m.csv")
    assert m.learners == (name,)
    assert all("\n" not in note for note in m.notes)


def test_labels_are_numbers_where_all_are_and_text_elsewhere(tmp_path):
    (tmp_path / "m.csv").write_text("n,error,epoch,lr,id,task,note,run\n1,0.5,3,0.1,007,x,,a_1\n2,0.4,4,,008,y,,1_2\n")
    labels = load_measurements(tmp_path / "m.csv").labels
    assert labels["epoch"].dtype == np.int64
    assert labels["lr"].dtype == np.float64
    assert np.isnan(labels["lr"][1])
    assert labels["id"].tolist() == ["007", "008"]
    assert labels["note"].tolist() == ["", ""]
    assert labels["run"].tolist() == ["a_1", "1_2"]
    assert load_measurements({"n": [1], "error": [0], "ok": [True]}).labels["ok"].dtype == bool


def test_text_columns_outside_the_learner_are_pointed_out():
    data = {"n": [1, 2], "error": [0.5, 0.4], "Model": ["m", "m"], "Task": ["t", "u"]}
    assert "columns={'learner': ['Task', 'Model']}" in load_measurements(data).notes[-1]


def test_importing_loads_no_frame_library():
    heavy = "{'pandas', 'narwhals', 'pyarrow', 'polars', 'scipy'}"
    code = f"import sys, curvewise.learning.load; assert not {heavy} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_pattern_reads_all_files_it_matches(tmp_path):
    for i, factor in enumerate((1.0, 1.2)):
        rows = "".join(f"{n},{factor * n**-0.5}\n" for n in (25, 50, 100))
        (tmp_path / f"net{i}.csv").write_text("n,error\n" + rows)
    m = load_measurements(tmp_path / "net*.csv")
    assert m.learners == ("net0", "net1")  # named by their files
    assert m.error[3] == pytest.approx(0.24)
    for seed in (1, 2, 10):
        (tmp_path / f"run_{seed}.csv").write_text(f"learner,n,seed,error\na,25,{seed},0.{seed}\na,50,{seed},0.1\n")
    pooled = load_measurements(str(tmp_path / "run_*.csv"))
    assert pooled.learners == ("a",)
    assert pooled.labels["seed"].tolist() == [1, 1, 2, 2, 10, 10]  # run_2 before run_10
    with pytest.raises(InputError, match="matches no file"):
        load_measurements(tmp_path / "nothing*.csv")
    (tmp_path / "run_11.csv").write_text("learner,n,seed,error (%)\na,25,11,30\na,50,11,10\n")
    with pytest.raises(InputError, match="different units"):
        load_measurements(tmp_path / "run_*.csv")


@pytest.mark.parametrize(
    "name", ["acc1", "Acc@5", "top1", "val_top-5", "precision", "mAP50", "mIoU", "dice", "r2", "pass@1"]
)
def test_a_chosen_metric_that_should_rise_is_turned_into_an_error(name):
    m = load_measurements({"n": [100, 200], name: [0.7, 0.8]}, columns={"value": name})
    np.testing.assert_allclose(m.error, [0.3, 0.2])


@pytest.mark.parametrize("name", ["top1_err", "WER", "rmse", "brier_score", "cross_entropy", "value", "y", "mean"])
def test_a_chosen_metric_that_should_fall_stays(name):
    m = load_measurements({"n": [100, 200], name: [0.7, 0.6]}, columns={"value": name})
    np.testing.assert_allclose(m.error, [0.7, 0.6])


@pytest.mark.parametrize("name", ["quality", "neg_log_loss", "accuracy_loss"])
def test_a_chosen_metric_whose_direction_is_unknown_must_be_explained(name):
    rows = {"n": [100, 200], name: [0.7, 0.8]}
    with pytest.raises(InputError, match=r"higher_is_better: the name of column .* does not say") as caught:
        load_measurements(rows, columns={"value": name})
    assert caught.value.argument == "higher_is_better"
    m = load_measurements(rows, columns={"value": name}, higher_is_better=True)
    np.testing.assert_allclose(m.error, [0.3, 0.2])
    assert load_measurements(rows, columns={"value": name}, unit="loss").error.tolist() == [0.7, 0.8]
    with pytest.raises(InputError, match=f"the name of the metric '{name}'"):
        load_measurements({"n": [100, 200], "metric": [name] * 2, "value": [0.7, 0.8]})


def test_seeds_that_are_all_different_tell_runs_of_a_fold_apart():
    table = {"n": [50, 50, 100, 100], "fold": [0, 0, 0, 0], "seed": [195, 17, 340, 8], "error": [0.3, 0.31, 0.2, 0.21]}
    assert len(load_measurements(pd.DataFrame(table))) == 4
    with pytest.raises(InputError, match="are the same run"):
        load_measurements(pd.DataFrame(table | {"seed": [195, 195, 340, 8]}))


def test_points_between_thousands_are_asked_about(tmp_path):
    path = tmp_path / "e.csv"
    path.write_text("n,error\n100,0.3\n1.000,0.2\n10.000,0.1\n")
    with pytest.raises(InputError, match="is that 1000, or a decimal number"):
        load_measurements(path)


@pytest.mark.parametrize("name", ["scorer", "eval_metric", "scoring"])
def test_a_column_of_scorers_names_the_metric(name: str) -> None:
    rows = {"n": [25, 50, 100], "value": [0.5, 0.75, 0.875], name: ["accuracy"] * 3}
    assert load_measurements(rows).error.tolist() == [0.5, 0.25, 0.125]


def test_rows_without_a_seed_are_not_read_twice() -> None:
    n = [25, 25, 50, 50, 100, 100]
    rows = {"n": n * 2, "error": [0.51234, 0.52345, 0.41234, 0.42345, 0.31234, 0.32345] * 2, "seed": [""] * 12}
    with pytest.raises(InputError, match="there 2 times"):
        load_measurements(rows)
    known = {"n": n, "error": [0.5, 0.51, 0.4, 0.41, 0.3, 0.31], "seed": [0, 1] * 3}
    with pytest.raises(InputError, match="there 2 times"):
        load_measurements({k: [*rows[k], *known[k]] for k in rows})


@pytest.mark.parametrize(("good", "bad"), [("ok", "OOM"), ("COMPLETED", "TIMEOUT"), ("finished", "diverged")])
def test_runs_that_ran_out_of_memory_or_time_are_left_out(good: str, bad: str) -> None:
    rows = {"n": [25, 25, 50, 50], "error": [0.5, 0.9, 0.4, 0.9], "status": [good, bad, good, bad]}
    m = load_measurements(rows)
    assert m.error.tolist() == [0.5, 0.4]
    assert any("2 of 4 rows left out" in note for note in m.notes)


def test_seeds_of_64_bits_stay_apart(tmp_path) -> None:
    seeds = [2**63 + 1, 2**63 + 2]
    rows = {"n": [25, 25], "error": [0.5, 0.4], "seed": seeds}
    (tmp_path / "e.csv").write_text(f"n,error,seed\n25,0.5,{seeds[0]}\n25,0.4,{seeds[1]}\n")
    for source in (rows, tmp_path / "e.csv"):
        assert load_measurements(source).labels["seed"].tolist() == list(map(str, seeds))
