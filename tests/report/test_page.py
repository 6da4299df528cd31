"""A report as HTML, before any browser reads it."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser

import numpy as np
import pytest

from curvewise.report.content import Figure, Report, ReportTable, Runs, Section, group_warnings, split_sentences
from curvewise.report.page import MOST_ROWS, embedded, page_of, svg_of
from curvewise.report.results import results_report
from curvewise.response.curve import ResponseCurve
from curvewise.transfer.measure import measure_transfer

pytest.importorskip("jinja2")


class Elements(HTMLParser):
    """Every element with its attributes, and the text of scripts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.cdata_elem == "script":
            self.scripts[-1] += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.found if name == tag]


def drawn(names: list[str]) -> Figure:
    def draw() -> object:
        from matplotlib import pyplot

        _, axes = pyplot.subplots()
        for name in names:
            axes.plot([0, 1], [0, 1], label=name)
        axes.legend()
        return axes

    return Figure("picture", "A picture", draw)


def report(**parts: object) -> Report:
    return Report("Title", "Why?", ("Because.",), **parts)  # type: ignore[arg-type]


def test_policy_allows_the_one_script_and_nothing_from_outside() -> None:
    elements = Elements(page_of(report(figure=drawn(["a"]))))
    policy = next(m["content"] for m in elements.of("meta") if "http-equiv" in m)
    code = [
        text
        for text, script in zip(elements.scripts, elements.of("script"), strict=True)
        if script.get("type") != "application/json"
    ]
    assert len(code) == 1
    digest = base64.b64encode(hashlib.sha256(code[0].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'")
    assert "connect-src" not in str(policy)
    for _, attributes in elements.found:
        assert not any(name.startswith("on") for name in attributes)
        for name in ("src", "href", "xlink:href"):
            assert (attributes.get(name) or "#").startswith("#")


def test_ids_are_unique_however_many_pictures_there_are() -> None:
    names = ['a "b" id="c"', "url(#x)", 'href="#y"']
    pictures = tuple(drawn(names) for _ in range(3))
    page = page_of(report(sections=(Section("One", figures=pictures),)))
    ids = [a["id"] for _, a in Elements(page).found if "id" in a]
    assert len(ids) == len(set(ids)) > 20
    referred = re.findall(r'(?:url\(#|href="#)([\w-]+)', page)
    assert set(referred) - set(ids) <= {"x", "y"}
    for name in names:
        assert unescape(page).count(name) >= 3  # names are not taken for ids


def test_style_of_a_picture_stays_in_it() -> None:
    assert "<style" not in svg_of(drawn(["a"]))


def test_a_table_stands_beside_a_picture_where_it_fits_and_else_below() -> None:
    def place_of(cell: str) -> str:
        table = ReportTable("t", "Table", {"a": [cell, "2%"], "b": [cell, "3%"], "c": [cell, "4%"]})
        text = page_of(report(sections=(Section("One", ("So.",), figures=(drawn(["net"]),), tables=(table,)),)))
        return "beside" if text.index("<caption>Table") < text.index('<div class="pictures') else "below"

    assert place_of("1% [0, 2]") == "beside"
    assert place_of("-1.234% [-2.345, -0.123]") == "below"


def test_rows_left_out_are_counted() -> None:
    table = ReportTable("t", "Numbers", {"value": np.arange(MOST_ROWS + 5)})
    page = page_of(report(sections=(Section("One", tables=(table,)),)))
    assert page.count("<td") == MOST_ROWS
    assert "5 further rows are not shown here" in page


def test_numbers_of_cells_are_what_javascript_reads() -> None:
    values = [1.5, math.inf, -math.inf, math.nan, 3, None]
    table = ReportTable("t", "Numbers", {"value": values})
    cells = Elements(page_of(report(sections=(Section("One", tables=(table,)),)))).of("td")
    assert [c.get("data-value") for c in cells] == ["1.5", "Infinity", "-Infinity", "", "3.0", None]


def test_gaps_stand_below_the_numbers_of_their_column() -> None:
    table = ReportTable("t", "Numbers", {"learner": ["a", "b"], "std": [None, 0.5]})
    cells = Elements(page_of(report(sections=(Section("One", tables=(table,)),)))).of("td")
    assert [c["class"] for c in cells] == ["short", "number", "short", "number"]


def test_no_sentence_stands_on_the_page_twice() -> None:
    method = ("It was computed.",)
    picture = drawn(["a"])
    first = Section("Why?", ("One is 1. Two is 2. Four is 4.",), ("a: Few runs.",), (picture,), method=method)
    second = Section("Two", ("Three is 3.", "Two is 2."), ("a: Few runs.", "b: Few runs."), method=method)
    runs = Runs(("Two is 2.", "Five runs."), {"run": ["x"]})
    whole = report(figure=picture, sections=(first, second), runs=runs, warnings=("a: Few runs.", "b: Few runs."))
    page = page_of(replace(whole, answer=("One is 1.", "Two is 2.")))
    for sentence in ("One is 1.", "Two is 2.", "Three is 3.", "Four is 4.", "Five runs.", "It was computed.", "Why?"):
        assert page.count(sentence) == 1, sentence
    assert page.count("Few runs.") == page.count("a, b: Few runs.") == 1
    assert page.count('href="#warnings"') == 2  # from both sections


def test_an_answer_that_opens_with_a_verdict_is_not_repeated_below_it() -> None:
    runs = {"method": ["scratch"] * 4 + ["new"] * 4, "n": [10, 10, 1000, 1000] * 2}
    found = measure_transfer(runs | {"risk": [0.8, 0.82, 0.5, 0.49, 0.6, 0.61, 0.4, 0.41]}, blind=0.9, maximal=0.1)
    page = page_of(results_report(found))
    for sentence in split_sentences(found.sentences()):
        assert page.count(sentence) == 1, sentence


def test_sections_with_one_question_stand_under_it() -> None:
    sections = (
        Section("How much?", ("1.",), label="oak"),
        Section("How much?", ("2.",), label="elm"),
        Section("Why?", ("It is.",)),
    )
    elements = Elements(page_of(report(sections=sections)))
    ids = [a["id"] for _, a in elements.found if "id" in a]
    links = [str(a["href"]) for a in elements.of("a")]
    assert all(link[1:] in ids for link in links)
    assert [k for k in ids if re.fullmatch(r"(section|part)-\d", str(k))] == [
        "section-1",
        "part-1",
        "part-2",
        "section-2",
    ]
    assert links[1:] == ["#main", "#section-1", "#part-1", "#part-2", "#section-2"]


def test_each_learner_has_a_colour_of_its_own_and_trainings_that_of_their_learner() -> None:
    charts = [["net", "net, augmented"], ["net, augmented, n=400", "net, n=400", "tree"]]
    sections = []
    for names in charts:
        figure = replace(drawn(names), chart={"series": [{"name": name} for name in names]})
        sections.append(Section(" or ".join(names), figures=(figure,)))
    elements = Elements(page_of(report(sections=tuple(sections))))
    found = [json.loads(text)["series"] for text in elements.scripts if text.startswith('{"series"')]
    assert [[s["place"] for s in series] for series in found] == [[0, 1], [1, 0, 2]]


def test_what_all_rows_of_a_wide_table_share_is_said_once() -> None:
    columns = {"learner": ["a", "b"], **{f"value {i}": [i, 2 * i] for i in range(1, 7)}, "runs": [15, 15]}
    page = page_of(report(sections=(Section("One", tables=(ReportTable("t", "Numbers", columns),)),)))
    assert "<caption>Numbers. In all rows: runs 15</caption>" in page
    assert page.count("<td") == 14


def test_runs_come_back_from_the_page() -> None:
    columns = {
        "learner": ["a", "</script>", None, "a"],
        "error": [0.123456789, math.inf, None, math.nan],
        "n": [1, 2, 3, 4],
    }
    elements = Elements(page_of(report(runs=Runs(("Four.",), columns))))
    data = json.loads(elements.scripts[0])
    learner = data["columns"]["learner"]
    assert [learner["words"][i] for i in learner["values"]] == ["a", "</script>", "", "a"]
    assert data["columns"]["error (%)"]["values"] == [12.3457, "Infinity", None, None], "as on the rest of the page"
    assert data["columns"]["n"]["values"] == [1, 2, 3, 4]


def test_no_data_ends_its_script() -> None:
    for text in ("</script>", "<!--<script>", "\u2028", "</SCRIPT >", "]]>"):
        written = str(embedded({text: text}))
        assert "<" not in written
        assert json.loads(written) == {text: text}


def test_a_general_warning_is_not_narrowed_to_a_learner() -> None:
    assert group_warnings(["few runs.", "a: few runs."]) == ["few runs.", "a: few runs."]
    assert group_warnings(["a: few runs.", "a: few runs."]) == ["a: few runs."]


def test_sections_count_warnings_as_the_top_does() -> None:
    warnings = ("a: few runs.", "b: few runs.", "c: lost.")
    page = page_of(report(warnings=warnings, sections=(Section("Why?", ("So.",), warnings=warnings),)))
    assert re.findall(r"\d warnings", page) == ["2 warnings", "2 warnings"]


def test_ids_that_parts_of_a_picture_share_are_numbered() -> None:
    def draw(ax: object = None) -> object:
        from matplotlib.figure import Figure as Canvas

        ax = Canvas().subplots()
        for x in range(3):
            ax.axvline(x, gid="mark")
        return ax

    ids = re.findall(r'\bid="([^"]*)"', svg_of(Figure("f", "F", draw), "f1-"))
    assert {"f1-mark", "f1-mark--2", "f1-mark--3"} <= set(ids)
    assert len(ids) == len(set(ids))


def test_cells_say_yes_and_no_and_columns_without_a_value_are_left_out() -> None:
    columns = {name: [True, False] for name in "abcdefg"} | {"empty": [None, float("nan")]}
    page = page_of(report(sections=(Section("Why?", tables=(ReportTable("t", "T", columns),)),)))
    assert "<bdi>yes</bdi>" in page
    assert "<bdi>no</bdi>" in page
    assert "True" not in page[page.index("<main") : page.index("<footer")]
    assert "empty" not in page[page.index("<main") : page.index("<footer")]


def test_a_section_whose_sentence_is_the_answer_points_to_it() -> None:
    table = ReportTable("t", "T", {"a": [1]})
    said = Section("Which is better?", ("Because.",), tables=(table,))
    page = page_of(report(sections=(said, Section("What was measured?", tables=(table,)))))
    assert page.count("Answer at the top") == 1


def test_a_picture_without_a_caption_has_no_note() -> None:
    curve = ResponseCurve.from_counts([0, 0.25, 0.5], [99, 95, 80], 100)
    assert '<p class="note">' not in page_of(results_report(curve))


def test_a_heading_that_begins_another_does_not_cut_its_caption() -> None:
    one = replace(drawn(["a"]), title="How far? Task one")
    sections = (Section("By whom?", ("A.",), label="H"), Section("How far?", ("B.",), figures=(one, drawn(["b"]))))
    assert "<figcaption>Task one</figcaption>" in page_of(report(sections=sections))
