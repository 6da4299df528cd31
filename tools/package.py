"""Build the sdist and, from it, the wheel; install the wheel into an empty environment and try it there.

Run ``python tools/package.py`` from the root (``make package``). Nothing of the working tree is used after the sdist is
built: what it lacks, the wheel lacks too. The first example of the README is the test, with the base dependencies only.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "Makefile", "constraints.txt", ".ci/run")
FOLDERS = ("src", "tests", "docs", "examples", "benchmarks", "tools")
COMMANDS = (
    ["curvewise", "--version"],
    ["curvewise", "learning", "fit", "examples/networks.csv", "--plot", "curves.png", "--json"],
    ["curvewise", "variance", "decompose", "examples/units64.npz"],
    ["curvewise", "transfer", "measure", "examples/transfer/risks.csv"],
    ["curvewise", "study", "new", "study.toml"],
)


def main() -> int:
    """Build, look inside, install and try."""
    out = ROOT / "dist"
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        sdist = _build(ROOT, "sdist", place)
        with tarfile.open(sdist) as archive:
            names = archive.getnames()
            archive.extractall(place, filter="data")
        top = names[0].split("/")[0]
        missing = [name for name in (*NEEDED, *_tracked()) if f"{top}/{name}" not in names]
        assert not missing, f"not in the sdist: {missing[:10]}"
        source = place / top
        wheel = _build(source, "wheel", place)
        _look_into(wheel, source)
        _try(wheel, source, place)
        out.mkdir(exist_ok=True)
        for old in out.glob("curvewise-*"):
            old.unlink()
        for built in (sdist, wheel):
            (out / built.name).write_bytes(built.read_bytes())
            print(f"dist/{built.name}: {built.stat().st_size / 1e6:.1f} MB, built, installed and tried")
    return 0


def _tracked() -> list[str]:
    """Files that git knows in the folders that belong into an sdist."""
    listed = subprocess.run(["git", "ls-files", "-z", *FOLDERS], cwd=ROOT, capture_output=True, text=True, check=False)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _build(source: Path, kind: str, into: Path) -> Path:
    """Build one distribution with the build backend of pyproject.toml."""
    before = set(into.glob("curvewise-*.*"))
    backend = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(into)]
    subprocess.run(backend, cwd=source, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    (built,) = set(into.glob("curvewise-*.*")) - before
    return built


def _look_into(wheel: Path, source: Path) -> None:
    """Every file of the package is in the wheel, with the licence and the links to the project."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (info,) = {name.split("/")[0] for name in names if name.split("/")[0].endswith(".dist-info")}
        metadata = archive.read(f"{info}/METADATA").decode()
    files = [p for p in (source / "src").rglob("*") if p.is_file() and p.suffix != ".pyc"]
    missing = [str(p) for p in files if p.relative_to(source / "src").as_posix() not in names]
    assert not missing, f"not in the wheel: {missing}"
    for name in ("curvewise/py.typed", "curvewise/report/assets/report.css", f"{info}/licenses/LICENSE"):
        assert name in names, name
    outside = [name for name in names if not name.startswith(("curvewise/", f"{info}/"))]
    assert not outside, f"the wheel would install {outside}"
    for line in ("License-Expression: Apache-2.0", "Project-URL: Issues", "Requires-Python: >=3.11", "# curvewise"):
        assert line in metadata, line


def _try(wheel: Path, source: Path, place: Path) -> None:
    """Install the wheel where nothing else is, and run the README's first example and some commands."""
    home = place / "venv"
    venv.create(home, with_pip=True)
    settings = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    settings |= {"PATH": f"{home / 'bin'}{os.pathsep}{os.environ['PATH']}", "MPLBACKEND": "agg", "OMP_NUM_THREADS": "1"}
    pip = [str(home / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "-q", "install", "--no-compile"]
    subprocess.run([*pip, str(wheel)], check=True, env=settings)
    trial = place / "trial"  # examples, but no src to import by accident
    trial.mkdir()
    (source / "examples").rename(trial / "examples")
    readme = (source / "README.md").read_text(encoding="utf-8")
    first = re.findall(r"^```python\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)[0]
    for command in (["python", "-W", "error::DeprecationWarning", "-c", first], *COMMANDS):
        done = subprocess.run(command, cwd=trial, env=settings, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


if __name__ == "__main__":
    sys.exit(main())
