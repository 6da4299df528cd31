"""The command line: ``curvewise learning …``, ``variance …``, ``ranking …``, ``demo``."""

from __future__ import annotations

import os
import sys

if sys.argv[:1] == ["-m"] and not sys.flags.safe_path:
    # Python looks in the current folder, where a study may lie beside files json.py or torch.py.
    _here = sys.path.pop(0)
    if os.path.realpath(_here) == os.path.realpath(f"{__file__}/../../.."):
        sys.path.append(_here)  # curvewise itself is there, not installed

import warnings
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from curvewise import __version__
from curvewise.cli._completion import register_completion
from curvewise.cli._console import (
    FAILED,
    INTERRUPTED,
    TERMINATED,
    USAGE,
    UsageError,
    fail,
    hear_warnings,
    remember_words,
)
from curvewise.cli._files import STDIN
from curvewise.cli.demo import demo
from curvewise.cli.learning import learning
from curvewise.cli.ranking import ranking
from curvewise.cli.response import response
from curvewise.cli.store import store
from curvewise.cli.study import study
from curvewise.cli.transfer import transfer
from curvewise.cli.variance import variance
from curvewise.errors import CurvewiseError, Terminated, os_reason

app = App(
    name="curvewise",
    help="Judge learners by their curves, not by one number.\n\n"
    "New here? Run `curvewise demo`, then `curvewise learning fit FILE` on a table of errors "
    "with a column for the training size, one for the error and one for the learner.",
    help_epilogue="Results go to stdout, messages to stderr. "
    "Exit status: 0 done, 1 failed, 2 wrong usage, 3 a --fail-if gate was hit, 130 interrupted "
    "(Ctrl-C), 143 terminated (SIGTERM).",
    version=f"curvewise {__version__}",
    version_format="plaintext",
    suppress_keyboard_interrupt=False,
)
app.command(learning)
app.command(variance)
app.command(response)
app.command(transfer)
app.command(ranking)
app.command(study)
app.command(store)
app.command(demo)
register_completion(app)


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
    return code


def _run(arguments: list[str]) -> int:
    remember_words(arguments)
    # cyclopts would take a lone hyphen for an option.
    arguments = [STDIN if word == "-" else word for word in arguments]
    try:
        result = app(arguments, exit_on_error=False, result_action="return_value")
    except CycloptsError:  # cyclopts has told the user
        return USAGE
    except UsageError as error:
        fail(str(error))
        return USAGE
    except BrokenPipeError:
        raise
    except CurvewiseError as error:
        fail(str(error))
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
