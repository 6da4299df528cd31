"""The pages hang together and ask nothing of the network."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
# Pages of commands are written by the build: docs/_ext/reference.py.
PAGES = sorted(p for p in DOCS.rglob("*.md") if not {"_build", "cli"} & set(p.relative_to(DOCS).parts))


def toctree(page: Path) -> set[Path]:
    """Pages that a page's toctrees name."""
    named = set()
    for body in re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE):
        lines = [re.sub(r".*<(.*)>", r"\1", line.strip()) for line in body.splitlines()]
        named |= {page.parent / f"{line}.md" for line in lines if line and not line.startswith((":", "cli/"))}
    return named


def test_every_page_can_be_reached_from_the_index() -> None:
    reached, waiting = set(), {DOCS / "index.md"}
    while waiting:
        page = waiting.pop()
        assert page in PAGES, f"{page} is in a toctree and does not exist"
        reached.add(page)
        waiting |= toctree(page) - reached
    assert reached == set(PAGES)


def test_every_page_with_cells_is_executed(extensions: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for page in PAGES:
        text = page.read_text()
        if "{code-cell}" in text:
            assert text.startswith("---\nfile_format: mystnb\n"), page
    cells, nbformat = pytest.importorskip("cells"), pytest.importorskip("nbformat")
    monkeypatch.setenv("CURVEWISE_REPORTS", str(tmp_path))

    def run(*sources: str) -> list[Any]:
        page = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
        cells.Client(page, Path("page.md"), None, None).start_client()
        return [cell["outputs"] for cell in page.cells]

    command = "!curvewise learning fit errors.csv --json 2> /dev/null | head -c 1\nprint(_exit_code)"
    printed, shown, hidden, piped = run("import math\nprint(1)\nmath.pi", "[1, 2]", "3;", command)
    assert printed[0]["text"] == "1\n"
    assert printed[1]["data"]["text/plain"].startswith("3.14")
    assert shown[0]["data"]["text/plain"] == "[1, 2]"
    assert hidden == []
    assert piped[0]["text"] == "{0\n"
    with pytest.raises(Exception, match="math"):  # nothing is left of the page before
        run("math.pi")
    with pytest.raises(Exception, match="wrong"):
        run("raise ValueError('wrong')")


def test_printed_tables_are_marked_and_sentences_are_not(extensions: None) -> None:
    cells = pytest.importorskip("cells")
    head, rule, rows = "learner   error\n", "─" * 15 + "\n", "a       1.2%\nb       1.3%\n"
    context = {"body": f"<pre><span></span>note: read\nError at n = 9\n{head}{rule}{rows}\na is better.\n</pre>"}
    last = {"body": f"<pre><span></span>{head}{rule}{rows}</pre>\n</div>\n"}
    cells.mark_tables(None, "page", "page.html", last, None)
    assert last["body"] == f'<pre><span></span><span class="printed">{head}{rule}{rows}</span></pre>\n</div>\n'
    cells.mark_tables(None, "page", "page.html", context, None)
    assert context["body"] == (
        f'<pre><span></span>note: read\nError at n = 9\n<span class="printed">{head}{rule}{rows}</span>'
        "\na is better.\n</pre>"
    )


@pytest.fixture
def extensions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the extensions of the pages importable."""
    pytest.importorskip("myst_nb")
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])  # which IPython replaces


def test_api_pages_list_every_public_name(extensions: None) -> None:
    reference = pytest.importorskip("reference")
    listed = {
        id(reference.find(name))
        for page in (DOCS / "api").glob("*.md")
        for block in reference.BLOCK.findall(page.read_text())
        for name in reference.parse(block)
    }
    for package in (
        "",
        *(
            f".{lens}"
            for lens in (
                "learning",
                "variance",
                "response",
                "transfer",
                "ranking",
                "evals",
                "scaling",
                "study",
                "store",
            )
        ),
    ):
        module = importlib.import_module(f"curvewise{package}")
        public = [name for name in module.__all__ if callable(getattr(module, name)) and not name.startswith("plot_")]
        missing = [name for name in public if id(getattr(module, name)) not in listed]
        assert not missing, f"curvewise{package}: {missing} in no page of docs/api"


def test_pages_of_commands_do_not_name_the_build(
    extensions: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    reference = pytest.importorskip("reference")
    spec = SimpleNamespace(name="sphinx.__main__", origin="sphinx/__main__.py", parent="sphinx")
    monkeypatch.setattr(sys.modules["__main__"], "__spec__", spec, raising=False)
    monkeypatch.setattr(sys, "argv", [spec.origin])
    reference.write_commands(SimpleNamespace(srcdir=tmp_path))
    page = (tmp_path / "cli/learning.md").read_text()
    assert "```text\ncurvewise learning fit [OPTIONS] FILE...\n```" in page
    assert "sphinx" not in page


def test_formulas_are_typeset(extensions: None) -> None:
    from docutils.utils.math.latex2mathml import tex2mathml

    for page in PAGES:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        assert 'class="formula"' not in text, page
        for formula in re.findall(r"\$\$(.*?)\$\$", text, flags=re.DOTALL):
            assert "<math" in tex2mathml(formula, as_block=True)


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
