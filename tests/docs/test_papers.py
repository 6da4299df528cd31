"""The tables of what each paper has, against the recipes and the tests they name."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import curvewise as cw
from curvewise.cli import main
from curvewise.study.spec.recipes import recipe_document

ROOT = Path(__file__).resolve().parents[2]
_spec = importlib.util.spec_from_file_location("papers", ROOT / "tools" / "papers.py")
assert _spec is not None
assert _spec.loader is not None
papers = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(papers)
TABLES = papers.tables()
ITEMS = [(name, row) for name, table in TABLES.items() for row in table["item"]]
SETTINGS = [(name, row) for name, table in TABLES.items() for row in table.get("setting", [])]


def test_page_is_what_the_tables_say():
    assert (ROOT / "docs" / "papers.md").read_text("utf-8") == papers.page(), "run python tools/papers.py"


def find_called(node: ast.expr) -> Any:
    """Return what is called: cw.name, cw.lens.name or a method of a study; None for a method of a result."""
    if isinstance(node, ast.Name):
        return {"cw": cw, "study": cw.Study}.get(node.id)
    owner = find_called(node.value) if isinstance(node, ast.Attribute) else None
    return None if owner is None else getattr(owner, node.attr)  # type: ignore[attr-defined]


def check_keywords(call: ast.Call) -> None:
    """Check that a function takes every keyword that it is given; **kwargs take all."""
    called = find_called(call.func)
    if called is None:
        return
    takes = inspect.signature(called).parameters.values()
    if any(p.kind is p.VAR_KEYWORD for p in takes):
        return
    names = {p.name for p in takes if p.kind is not p.POSITIONAL_ONLY}
    for keyword in call.keywords:
        assert keyword.arg is None or keyword.arg in names, f"{ast.unparse(call.func)} takes no {keyword.arg}"


def test_a_keyword_that_a_function_does_not_take_is_found():
    good, bad = (ast.parse(f"cw.gi_score(m, a, {k})").body[0].value for k in ("signs=1", "sings=1"))  # type: ignore[attr-defined]
    check_keywords(good)
    with pytest.raises(AssertionError, match="gi_score takes no sings"):
        check_keywords(bad)


@cache
def functions_in(file: str) -> list[str]:
    source = (ROOT / file).read_text("utf-8")
    return [n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef)]


@pytest.mark.parametrize("row", [row for _, row in ITEMS], ids=[f"{name}-{row['where']}" for name, row in ITEMS])
def test_item_has_a_call_that_is_checked_or_a_reason(row: dict[str, Any]):
    assert ("call" in row) != ("missing" in row)
    if "missing" in row:
        return
    if row["call"].startswith(("cw.", "study.")):
        # Every name in the call is there; what it does is shown by the test of the row.
        for node in ast.walk(ast.parse(row["call"])):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owner = {"cw": cw, "study": cw.Study}.get(node.value.id)
                assert owner is None or hasattr(owner, node.attr), node.attr
            elif (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Attribute)
                and isinstance(node.value.value, ast.Name)
                and node.value.value.id == "cw"
            ):
                assert hasattr(getattr(cw, node.value.attr), node.attr), node.attr
            elif isinstance(node, ast.Call):
                check_keywords(node)
    elif row["call"].startswith("curvewise "):
        group, command = row["call"].split()[1:3]
        assert main([group, command, "--help"]) == 0
    else:
        pytest.fail(f"no call of Python (cw.…, study.…) or of the command line: {row['call']}")
    file, _, name = row["check"].partition("::")
    functions = functions_in(file)
    assert any(f.startswith("test_") for f in functions)
    assert not name or name in functions, f"{file} has no test {name}"


@pytest.mark.parametrize(
    "row", [row for _, row in SETTINGS], ids=[f"{row['recipe']}-{row['key']}" for _, row in SETTINGS]
)
def test_setting_of_a_recipe_is_the_papers_or_differs_for_a_reason(row: dict[str, Any]):
    found: Any = recipe_document({"name": row["recipe"], **row.get("options", {})})
    for key in row["key"].split("."):
        found = found[key]
    if "ours" in row:
        assert row["why"]
        assert row["ours"] != row.get("paper")
    assert found == row.get("ours", row.get("paper"))
