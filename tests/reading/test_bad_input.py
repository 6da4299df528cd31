"""Input that cannot be read: each message names what is wrong and what to do."""

import gzip
import json
import pickle
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from curvewise.cli.console import read_where
from curvewise.errors import InputError, MissingDependencyError
from curvewise.learning.load import load_measurements
from curvewise.reading.arrays import read_vector

NAN = float("nan")
GOOD = b"n,error\n25,0.5\n50,0.4\n"


def fails(tmp_path, name, data, message, **options):
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(InputError, match=message) as caught:
        load_measurements(path, **options)
    assert name in str(caught.value)


def parquet(tmp_path):
    path = tmp_path / "good.parquet"
    pd.DataFrame({"n": [25, 50], "error": [0.5, 0.4]}).to_parquet(path)
    return path.read_bytes()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("m.csv", b"", "is empty"),
        ("m.csv", b" \n\n", "is empty"),
        ("m.csv", b"n,error\n", r"has a header \('n', 'error'\) but no rows"),
        ("m.csv", b"n\n1\n", "single column, 'n': fields must be separated by commas"),
        ("m.csv", b"n error\n1 0.5\n", "single column"),
        ("m.csv", bytes(range(256)), "NUL bytes: it is a binary file"),
        ("m.csv", b"n,error\n1,caf\xe9\n", r"not UTF-8 text \(line 2\)"),
        ("m.csv", "n,error\n1,0.5\n".encode("utf-16"), "UTF-16 text: save it as UTF-8"),
        ("m.csv", gzip.compress(GOOD, mtime=0), "gzip-compressed: add .gz"),
        ("m.csv", b"PK\x03\x04...", "ZIP or Excel file: export the sheet as CSV"),
        ("m.csv", b"PAR1....", "a Parquet file: name it .parquet"),
        ("m.csv", b'[{"n": 1}]', "looks like JSON, not CSV: name it .json"),
        ("m.csv", b"n,error,error\n1,0.5,0.4\n", "more than one column called 'error'"),
        ("m.csv", b"n,error\n1,0.5\n2\n", r"Line 3 of m.csv has 1 field\(s\), the header has 2"),
        ("m.csv", b"n,error\n1,0,5\n", "decimal commas, write 0.25 instead of 0,25"),
        ("m.csv", b'n,error\n1,"0,5"\n', "'0,5', which is not a number. For a decimal .* 0.5"),
        ("m.csv", b"n;error\n50;0,5\n1,000;0,4\n", "Row 2 .* '1,000': is that 1000, or a decimal"),
        ("m.csv", b"n;error\n1.000;0,5\n", "'1.000': is that 1000, .* without separators"),
        ("m.csv", b"n;error\n1.000.000;0,5\n", "'1.000.000': is that 1000000"),
        ("m.tsv", b"n\terror\n1,000\t0.5\n", "'1,000': is that 1000"),
        ("m.csv", b"learner;25;1.000\na;0,5;0,4\n", "name of a column of m.csv is '1.000'"),
        ("m.csv", b"n;error;runs\n25;0,5;1,000\n", "column 'runs' of m.csv reads '1,000'"),
        ("m.csv", b"n;error\n1;0,5\n2;0.4\n", "commas and points .* '0,5' in row 1, '0.4' in row"),
        ("m.csv", b"n;loss\n1;0,5\n2;1.234,5\n", "'1.234,5' in row 2. Write all of them with a"),
        ("m.csv", b"n;error\n1;0,5\n2;n.a.\n", "'n.a.', which is not a number"),
        ("m.csv", b'n,error\n1,"0.5\n2,0.4\n', "quotation mark that is not closed"),
        ("m.csv", b"n,error\n1,0.5\n\n2,oops\n", "Row 2 in column 'error' of m.csv reads 'oops'"),
        ("m.csv", b"n,error\n1,5%\n2,6%\n", r"\(2 such cells\). Remove the percent signs"),
        ("m.csv", b"n,error\n1,True\n", "reads 'True', which is not a number"),
        ("m.csv", b"n,error\n1,1_0\n", "reads '1_0', which is not a number"),
        ("m.csv", b"n,error\nten,0.5\n", "Row 1 in column 'n' of m.csv reads 'ten'"),
        ("m.csv", b"n,error\n1,NA\n2,0.5\n3,\n", "2 of 3 values .* row 1.*drop_failed=True"),
        ("m.csv.gz", gzip.compress(GOOD, mtime=0)[:-12], "not a whole gzip file"),
        ("m.csv.gz", GOOD, "not a whole gzip file .* take .gz off"),
        ("m.csv.gz", gzip.compress(b"", mtime=0), "is empty"),
        ("m.json", b'[{"n": 25, "error"', "not whole JSON .*cut short"),
        ("m.json", GOOD, "not whole JSON"),
        ("m.json", b"[" * 200_000, "not whole JSON"),
        ("m.json", b"[]", "is an empty list"),
        ("m.json", b"{}", "has no columns"),
        ("m.json", b"3", "holds 3: a list of records"),
        ("m.json", b"[1, 2]", "entry 1 is 1"),
        ("m.json", b'{"n": 3, "error": [0.5]}', "'n' in m.json is 3, not a list of cells"),
        ("m.json", b'{"A": {"25": 0.5}}', "'25' in 'A' in m.json is 0.5, not a list of cells"),
        ("m.json", b'{"n": [1, 2], "error": [0.5]}', "differ in length: 'n' has 2, 'error' has 1"),
        ("m.json", b'[{"n": 1, "n": 2, "error": 0.5}]', "more than one column called 'n'"),
        ("m.json", b'[{"n": 1, "e": [1, 2], "f": [1]}]', "row 1 of m.json differ in length"),
        ("m.json", b'[{"n": 1, "error": []}]', "All lists in m.json are empty"),
        ("m.json", b'[{"n": 1, "error": [[0.5]]}]', r"reads \[0.5\], which is not a number"),
        ("m.json", b'{"A": [{"n": 1, "error": 0.5}], "B": []}', r"'B' in m.json is \[\]"),
        ("m.json", b'{"A": [{"n": 1, "error": 0.5, "learner": "x"}]}', "names learners twice"),
        ("m.json", b'[{"n": 1' + b"0" * 400 + b', "error": 0.5}]', "which is not a number"),
        ("m.json", b'[{"n": ' + b"1" * 5000 + b"}]", "^m.json cannot be read: .* digits.$"),
        ("m.parquet", GOOD, "not a whole Parquet file"),
        ("m.xlsx", b"PK", "ending that is not known"),
        ("m.pkl", pickle.dumps([1]), "Pickles are never read"),
        ("m", GOOD, "ending that is not known. Known are .csv"),
        ("m.parquet.gz", GOOD, "ending that is not known"),
    ],
)
def test_files(tmp_path, name, data, message):
    fails(tmp_path, name, data, message)


def test_truncated_parquet(tmp_path):
    fails(tmp_path, "m.parquet", parquet(tmp_path)[:-20], "not a whole Parquet file")


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    parquet(tmp_path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingDependencyError, match=r'pip install "curvewise\[parquet\]"'):
        load_measurements(tmp_path / "good.parquet")


def test_a_frame_without_narwhals(monkeypatch):
    monkeypatch.setitem(sys.modules, "narwhals", None)
    with pytest.raises(MissingDependencyError, match="pip install narwhals"):
        load_measurements(pd.DataFrame({"n": [1], "error": [0.5]}))


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("no/such/errors.csv", "'no/such/errors.csv': there is no such file in 'no/such'"),
        ("nothing.xyz", "'nothing.xyz': there is no such file"),
        ("bad\0name.csv", "no such file"),
        ("x" * 5000 + ".csv", "name too long|no such file"),
        ("https://example.org/errors", "is an address: download it"),
        ("https://example.org/errors.csv", "is an address: download it"),
    ],
)
def test_paths(path, message):
    with pytest.raises(InputError, match=f"(?i){message}"):
        load_measurements(path)


def test_a_directory(tmp_path):
    (tmp_path / "runs.csv").mkdir()
    for path in (tmp_path, tmp_path / "runs.csv"):
        with pytest.raises(InputError, match="is a directory: pass one file in it"):
            load_measurements(path)


def test_a_file_that_cannot_be_read(tmp_path, monkeypatch):
    (tmp_path / "m.csv").write_bytes(GOOD)

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.read_bytes", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        load_measurements(tmp_path / "m.csv")


def test_pickles_are_never_opened(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    for name in ("m.csv", "m.json", "m.parquet", "m.pkl"):
        (tmp_path / name).write_bytes(pickle.dumps(Bomb()))
        with pytest.raises(InputError):
            load_measurements(tmp_path / name)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (None, "source of type NoneType"),
        (3, "source of type int"),
        (np.zeros((3, 2)), r"array of shape \(3, 2\)"),
        (pd.Series([1, 2]), "pandas Series: pass a DataFrame"),
        (pl.Series([1, 2]), "source of type Series"),
        ([], "is an empty list"),
        (pd.DataFrame({"n": [], "error": []}), "but no rows"),
        (pd.DataFrame([[1, 2, 3]], columns=["n", "error", "error"]), "called 'error'"),
        (pd.DataFrame([[1, 2]], columns=[["n", "error"], ["", "mean"]]), "2 levels of column"),
    ],
)
def test_sources(source, message):
    with pytest.raises(InputError, match=message):
        load_measurements(source)


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (0, "is not positive: 0 .*row 2"),
        (-5, "is not positive: -5"),
        (NAN, "is empty: nan"),
        (None, "is empty"),
        (np.inf, "is infinite: inf"),
        (True, "True, which is not a number"),
        ("1,00", "'1,00', which is not a number"),
    ],
)
def test_sizes(size, message):
    with pytest.raises(InputError, match=message):
        load_measurements({"n": [25, size], "error": [0.5, 0.4]})


DATA = {"n": [25, 50], "error": [0.5, 0.4]}


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (DATA, {"unit": "permille"}, "unit='permille' is not known"),
        ({"n": [1], "error": [42.9]}, {}, "'error' in the dict holds 42.9.*unit='percent'"),
        ({"n": [1], "error": [-0.1]}, {}, "holds -0.1"),
        ({"n": [1], "loss": [np.inf]}, {"unit": "loss"}, "missing, NaN or infinite"),
        ({"n": [1], "loss": [NAN]}, {"drop_failed": True}, "All 1 values of the dict failed"),
        ({"n": [1], "error": [True]}, {}, "True and False are not measurements"),
        (DATA, {"per_class": 0}, "per_class=0: must be the number of classes"),
        (DATA, {"per_class": True}, "per_class=True"),
        (DATA, {"per_class": 2.5}, "per_class=2.5"),
        (DATA, {"higher_is_better": "yes"}, "higher_is_better='yes'"),
        (DATA, {"higher_is_better": True}, "contradicts the name 'error', for which lower"),
        ({"n": [1], "acc": [0.5]}, {"higher_is_better": False}, "'acc', for which higher is"),
        ({"n": [1], "acc": [0.5]}, {"unit": "loss"}, "unit='loss' contradicts the name 'acc'"),
        ({"n": [1], "loss": [0.5]}, {"unit": "score"}, "unit='score' needs higher_is_better"),
        ({"n": [1], "loss": [0.5]}, {"unit": "score", "higher_is_better": True}, "contradicts the name 'loss'"),
        (DATA, {"unit": "loss", "higher_is_better": True}, "contradicts itself"),
        ({"n": [1], "acc": [0.5], "metric": ["loss"]}, {}, "'acc', 'loss' disagree"),
        (DATA, {"metric": "acc"}, "metric='acc': the dict has no column of metrics"),
        ({**DATA, "metric": ["a", "b"]}, {}, "names 2 metrics: 'a', 'b'. Choose one with metric='a'"),
        ({**DATA, "split": [0, 1]}, {}, r"numbers folds, pass columns=\{'fold': 'split'\}"),
        ({**DATA, "split": ["a", "b"]}, {"where": {"split": "c"}}, r"where=\{'split': 'c'\} is in no row"),
        (DATA, {"columns": {"n": "N"}}, r"no such column. Did you mean 'n'\? It has 'n', 'error'"),
        (DATA, {"columns": {"value": "eror"}}, "Did you mean 'error'"),
        (DATA, {"columns": {"vlaue": "error"}}, "'vlaue' is no role. Did you mean 'value'"),
        (DATA, {"columns": {"n": "error", "value": "error"}}, "gives a column two roles"),
        (DATA, {"columns": {"n": ["n", "error"]}}, "must name one column"),
        (DATA, {"columns": {"learner": []}}, "must name one column"),
        (
            {"n": [1], "err_valid_mean": [0.5], "err_test_mean": [0.4]},
            {},
            r"value: 'err_valid_mean', 'err_test_mean'. Choose with columns=\{'value': 'err_valid_mean'\}; or wide=",
        ),
        (
            {**DATA, "size": [1, 2]},
            {},
            r"training-set size: 'n', 'size'. Choose with columns=\{'n': 'n'\}; or rename one\.$",
        ),
        ({**DATA, "model": ["a", "b"], "method": ["a", "b"]}, {}, "to join them"),
        ({**DATA, "std": [1, 1], "var": [1, 1]}, {}, r"Leave one out: columns=\{'std': None\}"),
        ({**DATA, "err_var": [1, 1], "var": [1, 1]}, {}, "could be the variance"),
        ({"x": [1], "error": [0.5]}, {}, "training-set size: it has 'x', 'error'"),
        ({"n": [1], "x": ["a"]}, {}, "known as the value: it has 'n', 'x'"),
        ({**DATA, "model": ["a", None]}, {}, "names no learner in row 2"),
        ({**DATA, "runs": [1, 0]}, {}, r"at least 1: it reads 0 \(row 2\)"),
        ({**DATA, "runs": [1, None]}, {}, r"at least 1: it reads None .*\{'runs': None\}"),
        ({**DATA, "runs": ["a", "b"]}, {}, r"reads 'a'.*\{'runs': None\} if it is not the runs"),
        ({**DATA, "variance": [0.1, -1]}, {}, "at least 0: it reads -1"),
        ({**DATA, "std": [0.1, np.inf]}, {}, "at least 0: it reads inf"),
    ],
)
def test_tables_and_settings(data, options, message):
    with pytest.raises(InputError, match=message):
        load_measurements(data, **options)


def test_messages_stay_short_and_on_one_line():
    data = {"n": [1], "error": ["<b>\n" * 10_000]}
    with pytest.raises(InputError) as caught:
        load_measurements(data)
    assert len(str(caught.value)) < 400
    assert "\n" not in str(caught.value)


@given(st.binary(max_size=300), st.sampled_from(["csv", "csv.gz", "json", "jsonl", "parquet"]))
def test_junk_is_an_input_error(tmp_path_factory, data, ending):
    path = tmp_path_factory.mktemp("junk") / f"m.{ending}"
    path.write_bytes(data)
    with pytest.raises(InputError):
        load_measurements(path)


json_values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from(["n", "error", "learner", "25", "std", ""]), inner)
    ),
    max_leaves=12,
)


@given(json_values)
def test_any_json_is_an_input_error_or_sound_measurements(tmp_path_factory, value):
    path = tmp_path_factory.mktemp("json") / "m.json"
    path.write_text(json.dumps(value))
    try:
        m = load_measurements(path)
    except InputError:
        return
    assert len(m.n) == len(m.error) == len(m.learner) > 0
    assert (m.n > 0).all()
    assert np.isfinite(m.error).all()


def test_columns_of_one_name_and_arrays_without_an_axis(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    twice = pyarrow.table([[10, 20], [0.5, 0.4], [0.1, 0.2]], names=["n", "error", "error"])
    parquet.write_table(twice, tmp_path / "twice.parquet")
    for source in (twice, tmp_path / "twice.parquet"):
        with pytest.raises(InputError, match="more than one column called 'error'"):
            load_measurements(source)
    with pytest.raises(InputError, match="'n' in the dict is 10, not a list"):
        load_measurements({"n": np.array(10), "error": np.array(0.5)})


@pytest.mark.parametrize("form", ["frame", "levels", "csv", "parquet", "wide"])
def test_names_in_an_index_without_a_name_are_not_dropped(form, tmp_path):
    """Left out, the runs of both networks would be those of one learner."""
    frame = pd.DataFrame({"n": [10, 20], "error": [0.5, 0.4]}, index=["resnet", "vgg"])
    source = frame
    if form == "levels":
        source = frame.set_index(pd.MultiIndex.from_tuples([("resnet", 1), ("vgg", 2)]))
    elif form == "csv":
        frame.to_csv(source := tmp_path / "m.csv")
    elif form == "parquet":
        pytest.importorskip("pyarrow")
        frame.to_parquet(source := tmp_path / "m.parquet")
    elif form == "wide":
        source = pd.DataFrame({25: [0.5, 0.4], 50: [0.4, 0.3]}, index=["resnet", "vgg"])
    with pytest.raises(InputError, match=r"names \('resnet', 'vgg'\) in a column or an index that itself has no name"):
        load_measurements(source)
    named = frame.rename_axis("learner")
    assert load_measurements(named).learners == ("resnet", "vgg")


@pytest.mark.parametrize("form", ["frame", "csv"])
def test_names_of_single_rows_beside_named_learners_are_left_out_and_noted(form, tmp_path):
    rows = {"learner": ["a", "a", "b", "b"], "n": [10, 20, 10, 20], "error": [0.5, 0.4, 0.3, 0.2]}
    frame = pd.DataFrame(rows, index=["run 1", "run 2", "run 3", "run 4"])
    again = pd.DataFrame(rows, index=["mine", "mine", "theirs", "theirs"])
    if form == "csv":
        frame.to_csv(tmp_path / "m.csv")
        again.to_csv(tmp_path / "again.csv")
        frame, again = tmp_path / "m.csv", tmp_path / "again.csv"
    found = load_measurements(frame)
    assert found.learners == ("a", "b")
    assert "left out" in " ".join(found.notes)
    with pytest.raises(InputError, match="itself has no name"):  # a name that comes again says of what the rows are
        load_measurements(again)


def test_an_index_of_times_is_left_out_and_noted(tmp_path):
    frame = pd.DataFrame({"n": [10, 20], "error": [0.5, 0.4]}, index=pd.to_datetime(["2024-01-01", "2024-01-02"]))
    assert "an index without a name left out (Timestamp" in " ".join(load_measurements(frame).notes)
    frame.to_csv(tmp_path / "m.csv")
    assert "column '' left out" in " ".join(load_measurements(tmp_path / "m.csv").notes)
    assert "index" not in " ".join(load_measurements(frame.reset_index(drop=True)).notes)


def test_a_line_of_blanks_is_no_row(tmp_path):
    (tmp_path / "e.csv").write_text("n,error\n10,0.5\n   \n20,0.4\n")
    assert load_measurements(tmp_path / "e.csv").n.tolist() == [10, 20]


def test_short_floats_have_their_own_digits():
    """As doubles they are 0.10000000149011612, which no one asks for."""
    frame = pd.DataFrame({"n": [10, 10], "error": [0.5, 0.4], "lr": np.array([0.1, 0.3], dtype=np.float32)})
    assert load_measurements(frame, where={"lr": 0.1}).error.tolist() == [0.5]
    assert load_measurements(frame, columns={"learner": "lr"}).learners == ("0.1", "0.3")


def test_choices_of_rows_are_shown_as_plain_values() -> None:
    table = {"learner": ["a", "a"], "n": [1, 2], "error": [0.1, 0.2]}
    assert "1 of 2 rows, where {'n': [1]}" in load_measurements(table, where={"n": [np.int64(1)]}).notes
    with pytest.raises(InputError, match=r"where={'zz': 7}: the dict has no such column"):
        load_measurements(table, where={np.str_("zz"): np.int64(7)})


@pytest.mark.parametrize(
    ("cells", "wanted", "found"),
    [
        (["1e-3", "0.01"], 0.001, [0.5]),
        (["0.10", "0.1"], 0.1, [0.5, 0.4]),
        (["1.0", "2.0"], 1, [0.5]),
        (["true", "false"], True, [0.5]),
        (["007", "7"], 7, [0.4]),
        (["007", "7"], "007", [0.5]),
        (["9007199254740993", "9007199254740992"], 9007199254740993, [0.5]),
        ([0.001, 0.01], "1e-3", [0.5]),
        ([True, False], "true", [0.5]),
    ],
)
def test_rows_are_chosen_by_value_whatever_its_spelling(cells, wanted, found):
    table = {"n": [10, 20], "error": [0.5, 0.4], "tag": cells}
    assert load_measurements(table, where={"tag": wanted}).error.tolist() == found


def test_rows_are_chosen_as_the_file_writes_them(tmp_path):
    """The command line reads true and 1e-3 as values, and a file has them as text."""
    (tmp_path / "m.csv").write_text("n,error,lr,aug\n10,0.5,1e-3,true\n20,0.4,0.01,false\n")
    for pair in ("lr=1e-3", "lr=0.001", "aug=true", "aug=True"):
        assert load_measurements(tmp_path / "m.csv", where=read_where([pair])).error.tolist() == [0.5]


def test_sizes_in_thousands_between_semicolons_are_asked_back(tmp_path):
    """Read as they stand, 1.000 and 2.000 would be the sizes 1 and 2."""
    (tmp_path / "m.csv").write_text("n;error\n1.000;40\n2.000;30\n")
    with pytest.raises(InputError, match=r"'1\.000': is that 1000, or a decimal number"):
        load_measurements(tmp_path / "m.csv", unit="percent")


def test_what_spreadsheets_add_to_a_table(tmp_path):
    """Empty columns behind it, a line that names the separator, and #N/A for a failed run."""
    (tmp_path / "m.csv").write_text("n,error,,\n10,0.5,,\n20,#N/A,,\n")
    assert load_measurements(tmp_path / "m.csv", drop_failed=True).error.tolist() == [0.5]
    (tmp_path / "m.csv").write_bytes(b"\xef\xbb\xbfsep=;\r\nn;error\r\n10;0,5\r\n20;0,4\r\n")
    assert load_measurements(tmp_path / "m.csv").error.tolist() == [0.5, 0.4]


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_a_class_that_is_called_like_a_column_is_no_header(tmp_path, ending):
    """Taken as the name of the column, the first example would be lost in every run."""
    (tmp_path / f"a.{ending}").write_text("y\nn\nn\ny\n")
    assert read_vector(tmp_path / f"a.{ending}", "label").tolist() == ["y", "n", "n", "y"]
    (tmp_path / f"a.{ending}").write_text("label\nn\nn\ny\n")
    assert read_vector(tmp_path / f"a.{ending}", "label").tolist() == ["n", "n", "y"]


@pytest.mark.parametrize("ending", ["txt", "csv"])
def test_an_empty_line_among_predictions_is_not_skipped(tmp_path, ending):
    """Two runs that lack different examples would have one length, and be shifted against each other."""
    (tmp_path / f"a.{ending}").write_text("label\n3\n\n5\n\n")
    with pytest.raises(InputError, match="no value in row 2"):
        read_vector(tmp_path / f"a.{ending}", "label")


def test_whole_numbers_beside_empty_cells_keep_their_digits():
    columns = {"n": [10, 10, 20], "error": [0.5, 0.4, 0.3], "seed": [2**60 + 1, 2**60 + 2, None]}
    pandas = pd.DataFrame(columns | {"seed": pd.array(columns["seed"], dtype="Int64")})
    for frame in (pandas, pl.DataFrame(columns)):
        assert load_measurements(frame).labels["seed"].tolist() == [str(2**60 + 1), str(2**60 + 2), ""]
    assert load_measurements(pl.DataFrame(columns, schema_overrides={"n": pl.Int128})).n.tolist() == [10, 10, 20]


def test_a_set_has_no_rows():
    with pytest.raises(InputError, match="not a list of cells"):
        load_measurements({"n": {10, 20}, "error": {0.5, 0.4}})


def test_a_decimal_comma_after_zero_is_no_separator_of_thousands(tmp_path):
    """Sizes may be shares of a data set: "0,125" is no 125."""
    with pytest.raises(InputError, match=r"write 0\.125 instead"):
        load_measurements({"n": ["0,125", "0,250"], "error": [0.5, 0.4]})
    (tmp_path / "m.csv").write_text("n;error\n0,125;0,5\n0,250;0,4\n")
    assert load_measurements(tmp_path / "m.csv").n.tolist() == [0.125, 0.25]
    (tmp_path / "m.csv").write_text("n;error\n0.125;0.5\n0.250;0.4\n")
    assert load_measurements(tmp_path / "m.csv").n.tolist() == [0.125, 0.25]
