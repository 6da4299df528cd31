"""Tables and figures of a report as files."""

from __future__ import annotations

import csv
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

import curvewise as cw
from curvewise.report.content import Figure, Report, ReportTable, Runs, Section
from curvewise.report.export import export_report, exported_files
from curvewise.report.page import write_report
from curvewise.study import load_study
from curvewise.text import format_interval, format_table

ROOT = Path(__file__).parents[2]


def test_every_table_and_figure_of_a_study_is_written(ran_report, tmp_path):
    report = replace(ran_report, sections=ran_report.sections[:3])  # with pictures and tables
    formats, figures = ("markdown", "latex"), ("svg", "pdf")
    index = export_report(report, tmp_path, formats, figures)
    assert index == tmp_path / "index.md"
    there = {path.name for path in tmp_path.iterdir()}
    assert there == set(exported_files(report, formats, figures))
    tables = [t for s in report.sections for t in s.tables]
    drawn = [f for s in report.sections for f in s.figures]
    assert len(there) == 2 + 2 * len(tables) + 2 * len(drawn)
    for path in tmp_path.glob("*.svg"):
        assert ET.parse(path).getroot().tag.endswith("svg")
    assert all(path.read_bytes().startswith(b"%PDF") for path in tmp_path.glob("*.pdf"))
    text = index.read_text()
    assert set(re.findall(r"!\[.*?\]\((.*?)\)", text)) == {p.name for p in tmp_path.glob("*.svg")}
    assert text.startswith("# tiny\n\n**Which learner is best, and how certain is that?**")
    for path in tmp_path.glob("*.md"):
        if path != index:
            assert path.read_text().strip() in text


def test_runs_are_a_table_that_others_read(ran, ran_report, tmp_path):
    export_report(ran_report, tmp_path, [], [])
    with (tmp_path / "runs.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    frame = load_study(ran).frame()
    assert [row["run"] for row in rows] == frame["run"].tolist()
    assert [float(row["error"]) for row in rows] == pytest.approx(frame["error"].tolist())


def test_a_result_is_exported_with_its_numbers(curves, tmp_path):
    export_report(curves, tmp_path, ["latex"], ["png"])
    (table,) = tmp_path.glob("*.tex")
    text = table.read_text()
    assert text == curves.to_latex() + "\n"
    assert text.startswith("% needs \\usepackage{booktabs}\n\\begin{tabular}")
    shown = format_interval(curves["naive Bayes"].interval_at().error, "fraction").replace("%", r"\%")
    assert f"naive Bayes & 1,437 & {shown} &" in text
    (picture,) = tmp_path.glob("*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_parts_with_one_name_get_files_of_their_own(curves, tmp_path):
    def draw():
        from matplotlib import pyplot

        return pyplot.subplots()[1]

    first = Figure("Same", "one", draw)
    sections = [
        Section("a", figures=(first,), tables=(ReportTable("t", "one", {"x": [1]}),)),
        Section("b", figures=(Figure("same", "two", draw),), tables=(ReportTable("t", "two", {"x": [2]}),)),
    ]
    report = Report("r", "q?", ("a.",), figure=first, sections=tuple(sections))
    text = export_report(report, tmp_path, ["markdown"], ["svg"]).read_text()
    assert {p.name for p in tmp_path.glob("*.svg")} == {"Same.svg", "same-2.svg"}
    assert "| 1" in (tmp_path / "t.md").read_text()
    assert "| 2" in (tmp_path / "t-2.md").read_text()
    assert text.count("Same.svg") == 1
    assert "![two](same-2.svg)" in text


def test_markup_in_names_is_text(tmp_path):
    table = ReportTable("t", "<b>title", {"a & b": ["<img src=x>", "50% & $x_1$"]})
    section = Section("<script>", ("<i>x",), warnings=("<u>y",), tables=(table,))
    report = Report("<h1>", "<q>", ("<a>",), warnings=("<u>y",), sections=(section,))
    text = export_report(report, tmp_path, ["markdown", "latex"], []).read_text()
    assert "<" not in text
    assert text.count("Warning: &lt;u&gt;y") == 1
    assert r"50\% \& \$x\_1\$" in (tmp_path / "t.tex").read_text()


@pytest.mark.parametrize(("given", "message"), [({"formats": ["html"]}, "formats"), ({"figures": "svg"}, "figures")])
def test_what_is_not_known_is_refused(curves, tmp_path, given, message):
    with pytest.raises(cw.InputError, match=f"{message}=.*give a list of"):
        export_report(curves, tmp_path, **given)
    assert not any(tmp_path.iterdir())


def test_a_folder_is_no_page_and_a_file_no_folder(curves, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(cw.InputError, match="is a folder"):
        cw.write_report(curves, tmp_path)
    with pytest.raises(cw.InputError, match="is a file"):
        export_report(curves, tmp_path / "file")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


BAD = ("=1+1", "+cmd", "-cmd", "@sum", "\tx", "![x](http://evil.example/x.png)", "[x](javascript:x)")
CONTROL = "a\n# head\x1b[31m\x9b2J\u202e\u2028b\x85c www.evil.example"


def test_names_open_no_headings_and_steer_no_terminal(tmp_path):
    table = ReportTable("t", CONTROL, {CONTROL: [CONTROL]})
    section = Section(CONTROL, (CONTROL, "# head"), warnings=(CONTROL,), tables=(table,))
    report = Report(CONTROL, CONTROL, (CONTROL,), sections=(section,))
    text = export_report(report, tmp_path, ["markdown"], []).read_text()
    assert len([line for line in text.splitlines() if line.startswith("#")]) == 2
    for path in tmp_path.glob("*.md"):
        assert path.read_text().replace("\n", "").isprintable()
        assert "www." not in path.read_text()


def test_names_are_neither_formulas_nor_links(tmp_path):
    columns = {"learner": [*BAD, "-0.5", "plain"], "=error": [-0.5] * (len(BAD) + 2)}
    text = format_table(columns)
    for name in BAD[-2:]:
        assert name not in text
    assert "]\\(" in text
    table = ReportTable("t", "![x](y)", columns)
    answer = ("see ![x](http://evil.example)",)
    report = Report("[a](b)", "<b>?", answer, sections=(Section("s", tables=(table,)),))
    export_report(report, tmp_path, ["markdown"], [])
    for path in tmp_path.glob("*.md"):
        assert not re.search(r"\]\(|https?://|<", path.read_text())


def test_exports_as_csv_compute_nothing_and_read_back(tmp_path):
    from curvewise.store.tables import export_store
    from curvewise.store.write import write_run

    for seed, name in enumerate(("=1+1", "  =2+2", "@sum", "-cmd", "plain")):
        coordinates = {"learner": name, "n": 10, "seed": seed, "rate": -0.5}
        write_run(tmp_path / "runs", coordinates, metrics={"error": 0.5})
    path = export_store(tmp_path / "runs", tmp_path / "runs.csv")
    with path.open(newline="") as stream:
        cells = [cell for row in csv.reader(stream) for cell in row]
    assert {"'=1+1", "'@sum", "'-cmd", "plain", "-0.5"} <= set(cells)
    assert not [c for c in cells if c.lstrip()[:1] in ("=", "+", "@")]
    m = cw.load_measurements(path, columns={"value": "error"})
    assert set(m.learners) == {"=1+1", "=2+2", "@sum", "-cmd", "plain"}


@dataclass
class Reason:
    count: int
    learners: list[str]
    message: str
    example: str


def test_reasons_of_failures_are_in_the_page_and_in_the_text(tmp_path):
    runs = Runs(("Four runs.",), {"run": ["a", "b"]}, (Reason(2, ["net", "tree"], "out of memory", "a1b2"),))
    report = Report("Failures", "Why?", (), runs=runs)
    text = export_report(report, tmp_path, ["markdown"], []).read_text()
    page = write_report(report, tmp_path / "report.html").read_text()
    for shown in (text, page):
        for word in ("Why runs failed", "net, tree", "out of memory", "a1b2"):
            assert word in shown
