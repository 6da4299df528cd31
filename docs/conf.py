"""Sphinx configuration: every example is executed when the pages are built, without a network."""

import os
import re
import sys
import tempfile
from pathlib import Path

from docutils import nodes
from sphinx import addnodes

from curvewise import __version__
from curvewise.types import Result

HERE = Path(__file__).resolve().parent

project = "curvewise"
author = "The curvewise authors"
copyright = "The curvewise authors"
release = version = __version__
language = "en"

sys.path.insert(0, str(HERE / "_ext"))
extensions = ["myst_nb", "cells", "reference", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
exclude_patterns = ["_build", "_ext", "jupyter_execute"]

# --- executed examples: see _ext/cells.py
nb_output_stderr = "remove"
nb_merge_streams = True
os.environ.update(
    CURVEWISE_EXAMPLES=str(HERE.parent / "examples"),
    PATH=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
    OMP_NUM_THREADS="1",
    COLUMNS="92",
    NO_COLOR="1",
    TERM="dumb",
    MPLBACKEND="agg",
)

# --- text
smartquotes = False  # an option is written --so
myst_enable_extensions = ["deflist", "colon_fence", "attrs_inline", "attrs_block", "dollarmath"]
html_math_renderer = "mathml"  # see _ext/reference.py
myst_heading_anchors = 3
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
copybutton_selector = "div.cell_input pre, div.highlight-console pre"

# --- API
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_preserve_defaults = True
autodoc_member_order = "bysource"
add_module_names = False
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_display_short_literal_types = True

# --- pages: nothing is fetched from elsewhere, at build time or when a page is read
html_theme = "furo"
html_title = f"curvewise {release}"
html_static_path = ["_static"]
html_css_files = ["curvewise.css"]
html_show_sourcelink = False
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"},
    "dark_css_variables": {"color-brand-primary": "#56B4E9", "color-brand-content": "#56B4E9"},
    "footer_icons": [],
}
pygments_style = "default"  # every word at least 4.5 : 1

# --- reports that pages write are copied beside the pages
REPORTS = Path(tempfile.mkdtemp(prefix="curvewise-reports-"))
(REPORTS / "reports").mkdir()
os.environ["CURVEWISE_REPORTS"] = str(REPORTS / "reports")
html_extra_path = [str(REPORTS)]


def _resolve_public_name(app, env, node, contnode):
    """Link `fit_learning_curve` in a docstring to `curvewise.fit_learning_curve`."""
    if node.get("refdomain") != "py" or node["reftarget"].startswith("curvewise."):
        return None
    domain = env.get_domain("py")
    for module in (
        "",
        *(
            f".{lens}"
            for lens in ("learning", "variance", "response", "transfer", "ranking", "evals", "scaling", "study")
        ),
    ):
        name = f"curvewise{module}.{node['reftarget']}"
        if name in domain.objects:
            return domain.resolve_xref(env, node["refdoc"], app.builder, node["reftype"], name, node, contnode)
    return None


def _join_attributes(app, what, name, obj, options, lines):
    """Write `low, high : float` as one word; napoleon would take `low,` for a type."""
    if "Attributes" in lines:
        for i in range(lines.index("Attributes"), len(lines)):
            names, colon, kind = lines[i].partition(" : ")
            if colon and not names.startswith(" "):
                lines[i] = f"{names.replace(', ', ',')} : {kind}"


def _plain_types(app, what, name, obj, options, lines):
    """Write a type without links, unless it names a class: `shape` in one is no attribute of another."""
    for i, line in enumerate(lines):
        field, _, kind = line.partition(": ")
        if (
            line.startswith((":type ", ":vartype "))
            and kind
            and not re.search(r"\b[A-Z][a-z]+[A-Z]|\bInterval|`", kind)
        ):
            lines[i] = f"{field}: *{kind.replace('*', '')}*"


def _unlink_shapes(app, doctree):
    """Take the link from `shape` in a type that names a class too: it is no attribute of another."""
    for link in list(doctree.findall(addnodes.pending_xref)):
        if link.get("reftarget") == "shape":
            link.replace_self(link.children)


def _write_dashes(app, doctree, page):
    """Put a dash between a parameter and its description, where Sphinx writes two hyphens."""
    for text in list(doctree.findall(nodes.Text)):
        if text == " -- ":
            text.parent.replace(text, nodes.Text(" – "))


def _hide_constructor(app, what, name, obj, options, signature, annotation):
    """Results are made by functions: their fields are no arguments for a user."""
    hidden = what == "class" and (issubclass(obj, Result) or name.endswith(("Intervals", "Run", "Check", "Pair")))
    return ("", annotation) if hidden else None


def setup(app):
    app.connect("autodoc-process-docstring", _join_attributes, priority=100)
    app.connect("autodoc-process-docstring", _plain_types, priority=900)
    app.connect("autodoc-process-signature", _hide_constructor)
    app.connect("doctree-read", _unlink_shapes)
    app.connect("doctree-resolved", _write_dashes)
    app.connect("missing-reference", _resolve_public_name)
