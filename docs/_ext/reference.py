"""A page for every public name and for every group of commands, and formulas as MathML.

A block ``{api}`` in docs/api/*.md lists names, one to a line; after a class may stand a colon and the members that its
page shows. The block becomes a table of the names with their first sentences. docs/cli/ has a page for each group of
commands, written from their help. Both kinds of pages are made when the build begins and are not in the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from pathlib import Path
from unittest import mock

from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from sphinx.util.docutils import SphinxDirective

import curvewise

BLOCK = re.compile(r"^```\{api\}\n(.*?)^```", re.DOTALL | re.MULTILINE)
CELL = re.compile(r"^```(?:\{code-cell\} ipython3|python)\n(.*?)^```", re.DOTALL | re.MULTILINE)
FOLDER = "names"


def find(name: str):
    """Return the object that a dotted name stands for."""
    found, path = curvewise, "curvewise"
    for part in name.split(".")[1:]:
        path = f"{path}.{part}"
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(path)
    return found


def parse(block: str) -> dict[str, str]:
    """Return the names of a block with the members to show."""
    lines = [line.partition(":") for line in block.splitlines() if line.strip()]
    return {name.strip(): members.strip() for name, _, members in lines}


def first_sentence(name: str) -> str:
    """Return the first sentence of a docstring, in Markdown."""
    text = (inspect.getdoc(find(name)) or "").partition("\n\n")[0].replace("\n", " ")
    text = re.sub(r":\w+:`~?([\w.]*?)([\w]+)`", r"`\2`", text)
    return text.replace("``", "`").replace("|", r"\|")


class Api(SphinxDirective):
    """A table of names, each with a link to its page."""

    has_content = True

    def run(self):
        rows = [
            f"| [`{name.rpartition('.')[2]}`]({FOLDER}/{name}.rst) | {first_sentence(name)} |"
            for name in parse("\n".join(self.content))
        ]
        table = self.parse_text_to_nodes("\n".join(["| name | what it is for |", "|---|---|", *rows]))
        return [nodes.container("", *table, classes=["api"])]


def write_pages(app):
    """Write the page of every name that a block lists; leave those alone that have not changed."""
    source = Path(app.srcdir)
    folder = source / "api" / FOLDER
    folder.mkdir(exist_ok=True)
    pages = {p: p.read_text("utf-8") for p in source.rglob("*.md") if not {"_build", "api"} & set(p.parts)}
    written = set()
    for page in sorted((source / "api").glob("*.md")):
        for block in BLOCK.findall(page.read_text("utf-8")):
            for name, members in parse(block).items():
                file = folder / f"{name}.rst"
                uses = find_uses(name, pages)
                text = name_page(name, members, page.stem, {p.relative_to(source): text for p, text in uses.items()})
                written.add(file)
                if not file.exists() or file.read_text("utf-8") != text:
                    file.write_text(text, "utf-8")
    for file in set(folder.glob("*.rst")) - written:
        file.unlink()


def name_page(name: str, members: str, group: str, uses: dict[Path, str]) -> str:
    """Return the page of one name, in reStructuredText."""
    found, short = find(name), name.rpartition(".")[2]
    kind = "autofunction" if inspect.isfunction(found) else "autoclass"
    if inspect.isclass(found) and issubclass(found, Exception):
        kind = "autoexception"
    lines = [":orphan:", "", short, "=" * len(short), "", f":doc:`Python API </api/index>` › :doc:`/api/{group}`", ""]
    lines += [f".. {kind}:: {name}"]
    if kind == "autoclass":
        shown = [member for member in re.findall(r"\w+", members) if hasattr(found, member)]
        lines += [f"   :members: {', '.join(shown)}" if shown else "   :no-members:"]
    if kind == "autofunction" and ">>>" not in (found.__doc__ or ""):
        # Without an example of its own: the shortest cell that calls it, which the build runs on its page.
        cells = {cell: use for use, text in uses.items() for cell in CELL.findall(text) if f"{short}(" in cell}
        if cells:
            cell = min(cells, key=len)
            lines += [
                "",
                f"Example, from :doc:`/{cells[cell].with_suffix('').as_posix()}`:",
                "",
                ".. code-block:: python",
                "",
            ]
            lines += [f"   {line}" for line in cell.splitlines() if not line.startswith(":tags:")]
    if uses:
        lines += ["", ".. rubric:: Pages that use it", ""]
        lines += [f"- :doc:`/{use.with_suffix('').as_posix()}`" for use in list(uses)[:6]]
    return "\n".join([*lines, ""])


def find_uses(name: str, pages: dict[Path, str]) -> dict[Path, str]:
    """Return the pages that call a function or make an object of a class, the most frequent use first."""
    pattern = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b\(")
    counts = {page: len(pattern.findall(text)) for page, text in pages.items()}
    found = sorted((page for page, count in counts.items() if count), key=lambda p: (-counts[p], str(p)))
    return {page: pages[page] for page in found}


def write_commands(app):
    """Write the reference of each group of commands."""
    from curvewise.cli.app import GROUPS
    from curvewise.cli.app import app as commands

    folder = Path(app.srcdir) / "cli"
    folder.mkdir(exist_ok=True)
    # cyclopts names the running program, the build, in the usage lines.
    with mock.patch.object(sys, "argv", ["curvewise"]):
        whole = commands.generate_docs(output_format="markdown")
    whole = whole.replace("```console\n", "```text\n")  # usage is no output: it would be grey
    # A level higher than in the whole, where the program itself is the first heading.
    parts = dict(re.findall(r"^## (curvewise [\w-]+)\n(.*?)(?=^## |\Z)", whole, re.DOTALL | re.MULTILINE))
    for group in (*GROUPS, "demo"):
        text = re.sub(r"^##(#*) ", r"#\1 ", parts[f"curvewise {group}"], flags=re.MULTILINE)
        text = f"# curvewise {group}\n{text}"
        file = folder / f"{group}.md"
        if not file.exists() or file.read_text("utf-8") != text:
            file.write_text(text, "utf-8")


def show_formula(self, node):
    """Write a formula as MathML, which browsers typeset without a script or a font from elsewhere."""
    block = isinstance(node, nodes.math_block)
    formula = tex2mathml(node.astext(), as_block=block)
    formula = re.sub(r"<mo\b([^>]*)>/</mo>", r'<mo\1 lspace="0" rspace="0">/</mo>', formula)
    self.body.append(f'<div class="formula">{formula}</div>' if block else formula)
    raise nodes.SkipNode


def reuse_navigation(app, page, template, context, doctree):
    """Make the navigation of all pages of names once: they lie in one folder and are not part of it."""
    if page.startswith(f"api/{FOLDER}/"):
        make = context["toctree"]

        def toctree(**options):
            key = str(sorted(options.items()))
            if key not in NAVIGATION:
                NAVIGATION[key] = make(**options)
            return NAVIGATION[key]

        context["toctree"] = toctree


NAVIGATION: dict[str, str] = {}


def setup(app):
    app.add_directive("api", Api)
    app.connect("builder-inited", write_pages)
    app.connect("builder-inited", write_commands)
    app.connect("html-page-context", reuse_navigation, priority=100)  # before the theme's
    app.add_html_math_renderer("mathml", (show_formula, None), (show_formula, None))
    return {"parallel_read_safe": True}
