"""``curvewise --install-completion``: completion with the Tab key, into the shell or a file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from curvewise.cli._console import DONE, UsageError, check_folder, note
from curvewise.cli._files import STDIN

Shell = Literal["zsh", "bash", "fish", "powershell"]
STARTUP = {"bash": ".bashrc", "zsh": ".zshrc"}
"""Startup files, in the home folder, of the shells that need a line there."""


def register_completion(app: App) -> None:
    """Give the application the command ``--install-completion``."""

    @app.command(name="--install-completion")
    def install_completion(
        *,
        shell: Shell | None = None,
        output: Annotated[Path | None, Parameter(name=("--output", "-o"))] = None,
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
        shell = shell or _shell()
        if output is None:
            _install(app, shell)
        elif output in (Path("-"), Path(STDIN)):
            sys.stdout.write(app.generate_completion(shell=shell))
        else:
            check_folder("--output", output)
            output.write_text(app.generate_completion(shell=shell), encoding="utf-8")
            note(f"completion for {shell} written to {output}; no startup file was changed.")
        return DONE


def _shell() -> Shell:
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    try:
        return detect_shell()
    except ShellDetectionError as error:
        raise UsageError("Which shell is this? Name it with --shell.") from error


def _install(app: App, shell: Shell) -> None:
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


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""
