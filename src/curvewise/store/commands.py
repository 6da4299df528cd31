"""``curvewise store``: list, verify, export."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from curvewise.cli.console import DONE, FAILED, Flag, Showing, UsageError, check_file, note, warn_each
from curvewise.errors import StoreError

store = App(
    name="store",
    help="List, verify and export a store of runs.\n\n"
    "STORE is a folder with one folder for each run, as `curvewise study run` and "
    "`curvewise.write_run` make them.",
)

Store = Annotated[Path, Parameter(name="STORE")]
OPTIONS = {"store": "", "path": ""}
"""Arguments that have no option of their name: both are positional."""


@store.command(name="list")
def list_store(folder: Store, /, *, showing: Showing = Showing()) -> int:
    """Count the runs of a store, by learner and training size.

    Example: `curvewise store list study-runs`

    Parameters
    ----------
    folder
        Folder of the store.
    """
    page = showing.page()
    from curvewise.store.read import list_runs

    _check_store(folder)
    runs = list_runs(folder)
    counts: dict[tuple[str, Any], Counter[str]] = {}
    for run in runs:
        learner, n = run.coordinates.get("learner"), run.coordinates.get("n")
        # Coordinates of one's own may be anything.
        name = "–" if learner is None else learner if isinstance(learner, str) else json.dumps(learner, sort_keys=True)
        size = n if isinstance(n, int | float) and not isinstance(n, bool) else None
        counts.setdefault((name, size), Counter())[run.status] += 1
    order = sorted(counts, key=lambda k: (k[0], k[1] is not None, k[1] or 0))
    columns: dict[str, list[Any]] = {"learner": [name for name, _ in order], "n": [n for _, n in order]}
    columns |= {state: [counts[k][state] for k in order] for state in ("done", "failed")}
    page.document = {"store": str(folder), "runs": len(runs), "counts": columns}
    if runs:
        page.table(f"{len(runs):,} runs in {folder}", columns)
    else:
        page.say(f"{folder} holds no runs.")
    return page.close()


@store.command
def verify(folder: Store, /, *, remove: Flag = False, showing: Showing = Showing()) -> int:
    """Read every file of a store and check it against its checksum.

    Exit status 0 if all are as they were written, 1 if anything is damaged.

    Example: `curvewise store verify study-runs`

    Parameters
    ----------
    folder
        Folder of the store.
    remove
        Move damaged runs to .damaged inside the store, so that the study makes them again.
    """
    page = showing.page()
    from curvewise.store.verify import verify_store

    found = verify_store(folder, remove=remove)
    page.document = found.to_dict() | {"sound": found.sound}
    page.say(found.sentences())
    for number, damage in enumerate(found.damage):
        page.say(f"✗ {damage.file}: {damage.problem}", "red", close=number > 0)
    if found.damaged_runs and not found.removed:
        page.say("With --remove, damaged runs are moved aside, so that the study makes them again.")
    for what, names in (("unfinished writes", found.leftovers), ("claims", found.claims)):
        if names:
            note(f"{len(names)} {what}: {', '.join(names[:5])}{' …' if len(names) > 5 else ''}")
    warn_each(found.warnings)
    return page.close(DONE if found.sound else FAILED)


@store.command
def export(folder: Store, path: Path, /, *, overwrite: Flag = False, showing: Showing = Showing()) -> int:
    """Write a table with a row for each run: its coordinates, metrics and environment.

    Example: `curvewise store export study-runs runs.parquet`

    Parameters
    ----------
    folder
        Folder of the store.
    path
        File to write: .parquet, .csv or .json.
    overwrite
        Replace the file if it is there.
    """
    page = showing.page()
    from curvewise.store.tables import ENDINGS, export_store

    check_file("PATH", path, ENDINGS)
    if path.exists() and not overwrite:
        raise UsageError(f"{path} already exists: choose another name, or pass --overwrite.")
    _check_store(folder)
    export_store(folder, path, overwrite=overwrite)
    note(f"written to {path}")
    page.document = {"store": str(folder), "path": str(path)}
    return page.close()


def _check_store(folder: Path) -> None:
    if not folder.is_dir():
        raise StoreError(f"There is no folder {folder}.")
