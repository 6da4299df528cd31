"""What a run was made with: Python, packages, platform and the state of the user's repository."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

PACKAGES = (
    "curvewise",
    "numpy",
    "scipy",
    "scikit-learn",
    "joblib",
    "torch",
    "transformers",
)


def capture_environment() -> dict[str, Any]:
    """Describe the interpreter, the packages and the git state of the working directory.

    Never fails: what cannot be had is None. The answer is kept for the life of the process.

    Returns
    -------
    dict
        python, platform, packages (name to version), git (commit and dirty, or None).

    Examples
    --------
    >>> sorted(capture_environment())
    ['git', 'packages', 'platform', 'python']
    """
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "packages": dict(_packages()),
        "git": _git(_working_directory()),
    }


@cache
def _packages() -> Mapping[str, str]:
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was deleted
        return ""


@cache
def _git(folder: str) -> dict[str, Any] | None:
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    changes = _ask_git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"commit": commit, "dirty": None if changes is None else bool(changes)}


def _ask_git(folder: str, *arguments: str) -> str | None:
    command = ["git", "--no-optional-locks", "-C", folder, *arguments]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None
    return answer.stdout.strip() if answer.returncode == 0 else None
