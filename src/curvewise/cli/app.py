"""The command line: ``curvewise learning …``, ``variance …``, ``ranking …``, ``demo``, and its first screen."""

from __future__ import annotations

import os
import shlex
import sys
import warnings
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from itertools import takewhile
from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import App, CycloptsError, Parameter, UnusedCliTokensError

from curvewise import __version__
from curvewise.cli.console import (
    DONE,
    FAILED,
    INTERRUPTED,
    STDIN,
    TERMINATED,
    USAGE,
    UsageError,
    check_file,
    console,
    fail,
    hear_warnings,
    note,
    text_of,
    use_options,
)
from curvewise.errors import CurvewiseError, Terminated, os_reason


def usage_panel(error: CycloptsError) -> Any:
    """Show words that were not understood; for one value too many, how to pass it; for an option, one that is near."""
    from cyclopts import CycloptsPanel
    from cyclopts.exceptions import UnknownOptionError

    if isinstance(error, UnknownOptionError) and (option := error.token.keyword or error.token.value).startswith("--"):
        names = [name for argument in error.argument_collection if argument.parse for name in argument.names]
        return CycloptsPanel(f"Unknown option: {option}.{_near_option(option, names)}")
    again = _repeated(error) if isinstance(error, UnusedCliTokensError) else ""
    return CycloptsPanel(f"One value for each option: write {again}." if again else error)


SYNONYMS = {
    "learner": ("model", "models", "method", "network", "algorithm", "name"),
    "plot": ("out", "output", "save", "figure", "picture", "image", "png", "savefig"),
    "table": ("format", "latex", "markdown", "md"),
    "level": ("alpha", "confidence", "ci", "coverage"),
    "reach": ("target", "goal"),
    "at": ("n", "size"),
    "where": ("filter", "query"),
}
"""Options, and what other programs call them."""


def _near_option(option: str, names: Sequence[str]) -> str:
    """Suggest an option of the same meaning, else one that is spelled much alike; nothing where none is.

    >>> _near_option("--model", ["--learner", "--wide"]), _near_option("--lerner", ["--learner"])
    (' Did you mean --learner?', ' Did you mean --learner?')
    >>> _near_option("--colour", ["--column", "--wide"])
    ''
    """
    plain = {name.removeprefix("--"): name for name in names if name.startswith("--")}
    word = option.removeprefix("--").partition("=")[0]
    same = [meant for meant, words in SYNONYMS.items() if word in words and meant in plain]
    # At 0.6, the default of difflib, --model is like --wide.
    close = same or get_close_matches(word, plain, n=1, cutoff=0.75)
    return f" Did you mean {plain[close[0]]}?" if close else ""


def _repeated(error: UnusedCliTokensError) -> str:
    """Write the option before surplus values once for each of them; nothing if it may not be repeated."""
    words, lost = error.root_input_tokens or [], error.unused_tokens or []
    place = words.index(lost[0]) if lost and lost[0] in words else 0
    before = words[max(place - 2, 0) : place]
    if before and before[-1].startswith("--"):  # --option=value is one word
        before = before[-1].split("=", 1)
    known = error.app.assemble_argument_collection() if error.app and len(before) == 2 else ()
    if not any(before[0] in argument.names and argument.token_count()[1] for argument in known):
        return ""
    values = [before[1], *takewhile(lambda word: word in lost, words[place:])]
    return " ".join(f"{before[0]} {shlex.quote(value)}" for value in values)


app = App(
    name="curvewise",
    help="Judge learners by their curves, not by one number.\n\n"
    "New here? Run `curvewise` without arguments for questions and the commands that answer them, or `curvewise demo` "
    "to see them answered.",
    help_epilogue="Results go to stdout, messages to stderr. "
    "Exit status: 0 success, 1 failure, 2 wrong usage, 3 the condition of --fail-if is met, 130 interrupted "
    "(Ctrl-C), 143 terminated (SIGTERM).",
    version=f"curvewise {__version__}",
    version_format="plaintext",
    suppress_keyboard_interrupt=False,
    error_formatter=usage_panel,
)
# By name, so that a command loads its own lens only.
GROUPS = ("learning", "variance", "response", "transfer", "ranking", "evals", "scaling", "study", "store")
for _group in GROUPS:
    app.command(f"curvewise.{_group}.commands:{_group}", name=_group)
app.command("curvewise.cli.demo:demo", name="demo")


QUESTIONS = {
    "How does error fall with data?": "learning fit errors.csv",
    "How much data for 5% error?": "learning fit errors.csv --reach 0.05",
    "Which learner is better?": "learning compare errors.csv",
    "Which is best with n = 10,000?": "learning rank errors.csv --at 10000",
    "Is A better than B on new data?": "variance compare a.npz b.npz",
    "How much do seeds matter?": "variance decompose a.npz",
    "What if the input is perturbed?": "response measure a.pt2 --data x.npz",
    "Does pretraining pay?": "transfer measure risks.csv",
    "Which checkpoint to fine-tune?": "ranking rank nets/ --data x.npz",
    "Is my new language model better?": "evals compare logs/",
    "Which models really differ?": "evals rank logs/",
    "How large a model to train?": "scaling optimal runs.csv --budget 1e22",
    "No runs yet? Train many models:": "study new study.toml",
}
"""Questions of a new user, each with the command that answers it."""

FILES = (
    "errors.csv has a row per trained model: learner, n (the training size), and error or accuracy. risks.csv is "
    "the same with a column method, such as scratch or pretrained. a.npz holds what several runs predicted for "
    "the same test examples, and the labels. x.npz holds inputs x and labels y. logs/ holds evaluation logs of "
    "Inspect, lm-eval or others. runs.csv has params, tokens and loss of language models."
)


def show_questions() -> int:
    """Print questions and the commands that answer them: the first screen of a new user."""
    from rich.table import Table
    from rich.text import Text

    to = console()
    table = Table(box=None, pad_edge=False, show_header=False)
    for question, command in QUESTIONS.items():
        table.add_row(Text(question), Text(f"curvewise {command}", style="bold"))
    to.print(f"curvewise {__version__}: judge learners by their curves, not by one number.\n")
    to.print(table)
    to.print(f"\n{FILES}\n")
    more = {"See it work in two minutes:": "demo", "Options of a command:": "learning fit --help"}
    for text, command in (more | {"All commands:": "--help"}).items():
        to.print(Text.assemble(f"{text:<33}", (f"curvewise {command}", "bold")))
    return DONE


# ``curvewise --install-completion``: completion with the Tab key, into the shell or a file.

Shell = Literal["zsh", "bash", "fish", "powershell"]
STARTUP = {"bash": ".bashrc", "zsh": ".zshrc"}
"""Startup files, in the home folder, of the shells that need a line there."""


@app.command(name="--install-completion")
def install_completion(
    *, shell: Shell | None = None, output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None
) -> int:
    """Set up completion with the Tab key; adds lines to your shell's startup file.

    Without --output this writes a script into your home folder and, once, adds two lines to
    the startup file that load it: ~/.bashrc, ~/.zshrc or the PowerShell profile; fish needs
    none. With --output it only writes the script there and touches nothing else.

    Parameters
    ----------
    shell
        Whose completion; by default that of the shell you are in.
    output
        Only write the script into this file, in a folder that exists; - prints it.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        shell = shell or detect_shell()
    except ShellDetectionError as error:
        raise UsageError("Which shell is this? Name it with --shell.") from error
    if output is None:
        _install(shell)
    elif output in (Path("-"), Path(STDIN)):
        sys.stdout.write(app.generate_completion(shell=shell))
    else:
        check_file("--output", output)
        output.write_text(app.generate_completion(shell=shell), encoding="utf-8")
        note(f"completion for {shell} written to {output}; no startup file was changed.")
    return DONE


def _install(shell: Shell) -> None:
    """Write the script where the shell looks for it; add what loads it, unless it is there."""
    script = app.install_completion(shell=shell, add_to_startup=False)
    note(f"completion for {shell} written to {script}")
    if shell == "powershell":  # cyclopts asks PowerShell for its profile, and adds lines once
        app.install_completion(shell=shell)
        note("the PowerShell profile loads it. Start a new shell.")
    elif shell in STARTUP:
        startup = Path.home() / STARTUP[shell]
        before = _read(startup)
        if shell == "zsh" or str(script).encode() not in before:
            app.install_completion(shell=shell)  # adds nothing that is there already
        done = "left as it was" if _read(startup) == before else "two lines added that load it"
        note(f"{startup}: {done}. Start a new shell.")
    else:
        note("fish finds it there: no startup file was changed. Start a new shell.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Parameters
    ----------
    arguments : sequence of str, optional
        Instead of ``sys.argv[1:]``.
    """
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # a terminal without β still gets its numbers
    try:
        with warnings.catch_warnings():
            hear_warnings()
            code = _run(sys.argv[1:] if arguments is None else list(arguments))
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader went away, as `head` does. Python would complain once more when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    if arguments is None and code in (INTERRUPTED, TERMINATED):
        # Everything is stored and cleaned up; libraries such as torch would take seconds to unload.
        sys.stderr.flush()
        os._exit(code)
    return code


def _run(arguments: list[str]) -> int:
    if not arguments:
        return show_questions()
    group = arguments[0]
    use_options({})
    if group in GROUPS:
        use_options(getattr(import_module(f"curvewise.{group}.commands"), "OPTIONS", {}))
    elif group != "demo":
        app.resolved_commands()  # the help and the completion of all commands need all of them
    # cyclopts would take a lone hyphen for an option.
    arguments = [STDIN if word == "-" else word for word in arguments]
    try:
        result = app(arguments, exit_on_error=False, result_action="return_value")
    except CycloptsError:  # cyclopts has told the user
        return USAGE
    except UsageError as error:
        fail(text_of(error))
        return USAGE
    except BrokenPipeError:
        raise
    except CurvewiseError as error:
        fail(text_of(error))
        return FAILED
    except OSError as error:
        fail(f"{os_reason(error)}.")
        return FAILED
    except Terminated:
        fail("Terminated.")
        return TERMINATED
    except KeyboardInterrupt as stop:
        fail(" ".join(["Interrupted.", *getattr(stop, "__notes__", ())]))
        return INTERRUPTED
    return result if isinstance(result, int) else 0


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
