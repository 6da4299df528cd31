"""The pages hang together and ask nothing of the network."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "_startup"} & set(p.parts))


def toctree(page: Path) -> set[Path]:
    """Pages that a page's toctrees name."""
    named = set()
    for body in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        lines = [line.strip() for line in body.splitlines()]
        named |= {page.parent / f"{line}.md" for line in lines if line and not line.startswith(":")}
    return named


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, waiting = set(), {DOCS / "index.md"}
    while waiting:
        page = waiting.pop()
        assert page in PAGES, f"{page} is in a toctree and does not exist"
        reached.add(page)
        waiting |= toctree(page) - reached
    assert reached == set(PAGES)


def test_every_page_with_cells_is_executed() -> None:
    for page in PAGES:
        text = page.read_text()
        if "{code-cell}" in text:
            assert text.startswith("---\nfile_format: mystnb\n"), page
    conf = ast.parse((DOCS / "conf.py").read_text())
    settings = {
        target.id: ast.literal_eval(node.value)
        for node in conf.body
        if isinstance(node, ast.Assign) and _is_literal(node.value)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    assert settings["nb_execution_mode"] == "force"
    assert settings["nb_execution_raise_on_error"] is True


def test_pages_ask_nothing_of_the_network() -> None:
    conf = (DOCS / "conf.py").read_text()
    assert not re.search(r"intersphinx|mathjax|https?://", conf)
    for page in [*PAGES, *DOCS.glob("_static/*")]:
        text = page.read_text()
        assert not re.search(r"\{image\}\s*http|\]\(https?://[^)]*\.(png|svg|js|css)", text), page
        assert not re.search(r"<(script|img|link|iframe)\b|@import|url\(\s*['\"]?http", text), page


def test_built_pages_load_nothing_from_elsewhere() -> None:
    built = sorted((DOCS / "_build" / "html").rglob("*.html"))
    if not built:
        pytest.skip("docs are not built; run `make docs`")
    for page in built:
        text = page.read_text(encoding="utf-8")
        assets = re.findall(r"<(?:script|img|iframe|source)\b[^>]*\bsrc=\"([^\"]*)", text)
        assets += re.findall(r"<link\b[^>]*\bhref=\"([^\"]*)", text)
        outside = [a for a in assets if re.match(r"(https?:)?//", a)]
        assert not outside, f"{page}: {outside}"


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
