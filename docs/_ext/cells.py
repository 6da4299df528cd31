"""Run the cells of all pages in the process of the build: packages are loaded once, and no kernel is started.

Every page has an empty namespace, a folder of its own with the files of examples/, and default settings of matplotlib
and of warnings. A line ``!curvewise …`` calls the command line in this process, too; other commands are run by a shell.
"""

from __future__ import annotations

import contextlib
import io
import os
import random
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib as mpl
import nbformat
import numpy as np
from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.text import SList
from matplotlib import pyplot as plt
from myst_nb.core.execute.base import ExecutionError, NotebookClientBase

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FILES = [*EXAMPLES.glob("*.csv"), *EXAMPLES.glob("*.npz"), *EXAMPLES.glob("*/*.csv")]
FILES += EXAMPLES.glob("evals/logs/**/*.json*")
REDIRECTED = re.compile(r"\s(2>&1|2>|>)\s*(\S*)")


class Transcript(io.TextIOBase):
    """Collect what a cell prints and displays, in order, as outputs of a notebook."""

    def __init__(self) -> None:
        self.outputs: list[nbformat.NotebookNode] = []

    def write(self, text: str) -> int:
        if text:
            if not self.outputs or self.outputs[-1]["output_type"] != "stream":
                self.outputs.append(nbformat.v4.new_output("stream", name="stdout", text=""))
            self.outputs[-1]["text"] += text
        return len(text)

    def show(self, data: dict, metadata: dict | None = None) -> None:
        self.outputs.append(nbformat.v4.new_output("display_data", data=data, metadata=metadata or {}))

    def show_figures(self) -> None:
        for number in plt.get_fignums():
            drawn = io.StringIO()
            plt.figure(number).savefig(drawn, format="svg", bbox_inches="tight", metadata={"Date": None})
            self.show({"image/svg+xml": drawn.getvalue()})
        plt.close("all")


class Publisher(DisplayPublisher):
    def publish(self, data, metadata=None, **_):
        sys.stdout.show(data, metadata)


class Hook(DisplayHook):
    source = ""

    def quiet(self):
        return self.semicolon_at_end_of_expression(self.source)

    def write_output_prompt(self):
        pass

    def write_format_data(self, format_dict, md_dict=None):
        # Before the figures that are drawn in the same cell, as Jupyter does.
        sys.stdout.show(format_dict, md_dict)

    def finish_displayhook(self):
        self._is_active = False

    def flush(self):
        """Forget no results, since none are kept: collecting garbage for them takes half a second on each page."""


class Shell(InteractiveShell):
    """IPython without a terminal, whose ``!curvewise …`` needs no process."""

    displayhook_class = Hook
    display_pub_class = Publisher

    def init_history(self):
        super().init_history()
        self.history_manager.enabled = False

    def enable_gui(self, gui=None):
        pass

    def system(self, command):
        self.user_ns["_exit_code"] = self._run(command)

    def getoutput(self, command, split=True, depth=0):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.system(command)
        return SList(printed.getvalue().splitlines()) if split else printed.getvalue()

    def _run(self, command: str) -> int:
        command = self.var_expand(command, depth=2)
        bare = REDIRECTED.sub("", command)
        if not bare.startswith("curvewise ") or re.search(r"[|;&<>`$]", bare):
            # The command of this environment, which need not be active.
            path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
            done = subprocess.run(
                ["bash", "-c", command],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
                env={**os.environ, "PATH": path},
            )
            sys.stdout.write(done.stdout)
            return done.returncode
        from curvewise.cli import main

        with contextlib.ExitStack() as stack:
            stack.enter_context(contextlib.redirect_stderr(sys.stdout))  # a terminal shows both
            for stream, target in REDIRECTED.findall(command):
                if stream == "2>&1":
                    stack.enter_context(contextlib.redirect_stderr(sys.stdout))
                    continue
                file = stack.enter_context(open(target, "w", encoding="utf-8"))
                stack.enter_context(
                    (contextlib.redirect_stderr if stream == "2>" else contextlib.redirect_stdout)(file)
                )
            return main(shlex.split(bare)[1:])


SHELL: list[Shell] = []


def page_shell() -> Shell:
    """Return the shell, emptied of what the last page left in it."""
    if not SHELL:
        SHELL.append(Shell.instance(colors="nocolor", xmode="Plain"))
    shell = SHELL[0]
    shell.reset(new_session=True)
    shell.user_ns["get_ipython"] = lambda: shell
    mpl.rcdefaults()
    mpl.use("agg")
    # Plain text stays text, which a browser draws sharply and a reader can select.
    mpl.rcParams.update({"svg.hashsalt": "curvewise", "figure.max_open_warning": 0})
    random.seed(0)
    np.random.seed(0)  # noqa: NPY002
    return shell


@contextlib.contextmanager
def page_folder():
    """Work in an empty folder with the files of examples/; forget modules that were imported from it."""
    with TemporaryDirectory(prefix="curvewise-page-") as folder, contextlib.chdir(folder):
        for file in FILES:
            copy = Path(file.relative_to(EXAMPLES))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copy)
        path, before, loaded = list(sys.path), dict(os.environ), set(sys.modules)
        sys.path.insert(0, "")
        try:
            yield
        finally:
            sys.path[:] = path
            os.environ.clear()
            os.environ.update(before)
            root = os.path.realpath(folder)
            for name in set(sys.modules) - loaded:
                file = getattr(sys.modules[name], "__file__", None)
                if file and os.path.realpath(file).startswith(root):
                    del sys.modules[name]


class Client(NotebookClientBase):
    """Fill in the outputs of a page's cells; a cell that raises stops the build."""

    def start_client(self):
        if not any(cell["cell_type"] == "code" for cell in self.notebook.cells):
            return
        with page_folder(), warnings.catch_warnings():
            warnings.resetwarnings()
            warnings.simplefilter("ignore", DeprecationWarning)
            shell = page_shell()
            for cell in self.notebook.cells:
                if cell["cell_type"] == "code":
                    cell["outputs"] = self._run(shell, cell["source"])
            plt.close("all")
            for report in Path().glob("*.html"):  # a reader may open what a page has written
                shutil.copy(report, os.environ["CURVEWISE_REPORTS"])
        self.notebook.metadata["language_info"] = {"name": "python", "pygments_lexer": "ipython3"}

    def _run(self, shell: Shell, source: str) -> list[nbformat.NotebookNode]:
        transcript = Transcript()
        # Warnings are shown where a page is about them, by printing them.
        with contextlib.redirect_stdout(transcript), contextlib.redirect_stderr(io.StringIO()):
            shell.displayhook.source = source
            result = shell.run_cell(source, store_history=False)
            transcript.show_figures()
        if not result.success:
            error = result.error_in_exec or result.error_before_exec
            raise ExecutionError(f"{self.path}: {source}\n{error!r}") from error
        return transcript.outputs


TABLE = re.compile(r"[^\n>]*\n[^\n>]*─{5,}[^\n]*\n(?:[^\n<]*[^\s<][^\n<]*\n)+")
"""A printed table: the line of heads, the rule, and the rows up to an empty line."""


def mark_tables(app, pagename, templatename, context, doctree):
    """Mark printed tables, which a narrow screen scrolls; sentences around them are wrapped."""
    body = context.get("body")
    if body:
        context["body"] = TABLE.sub(lambda found: f'<span class="printed">{found[0]}</span>', body)


def setup(app):
    from myst_nb import sphinx_

    sphinx_.create_client = lambda notebook, source, config, logger, *_: Client(notebook, Path(source), config, logger)
    app.connect("html-page-context", mark_tables)
    return {"parallel_read_safe": False}
