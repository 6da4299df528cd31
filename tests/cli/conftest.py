from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@dataclass
class Outcome:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Strict JSON: NaN and Infinity are refused."""

        def refuse(token: str) -> None:
            raise AssertionError(f"{token} is not JSON")

        return json.loads(self.out, parse_constant=refuse)


@pytest.fixture
def errors() -> Path:
    """Measurements of bagged trees and naive Bayes, 94 rows."""
    return ROOT / "examples" / "errors.csv"


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Outcome]:
    """Call the command line in this process."""
    from curvewise.cli import main

    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(a) for a in arguments])
        return Outcome(code, *capsys.readouterr())

    return run


@pytest.fixture
def start() -> Callable[..., Outcome]:
    """Start the command line as a user would, in a process of its own."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "COLUMNS": "80"}

    def run(*arguments: object, python: bool = False, **options: Any) -> Outcome:
        head = [sys.executable] + ([] if python else ["-m", "curvewise.cli"])
        done = subprocess.run(
            [*head, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=1800,
            env=environment,
            check=False,
            **options,
        )
        return Outcome(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def table(tmp_path: Path) -> Callable[..., Path]:
    """Write a CSV of curves that fall as a + b/√n."""

    def write(name: str, learners: dict[str, tuple[float, float]], column: bool = True) -> Path:
        path = tmp_path / name
        lines = ["learner,n,error" if column else "n,error"]
        for learner, (a, b) in learners.items():
            for n in (100, 200, 400, 800):
                for wiggle in (-0.004, 0.001, 0.003):
                    head = f'"{learner}",' if column else ""
                    lines.append(f"{head}{n},{a + b * n**-0.5 + wiggle:.5f}")
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path

    return write
