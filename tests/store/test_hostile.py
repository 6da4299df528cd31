"""Stores made to do harm: nothing outside of a store is changed, and nothing in it can hang us."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import signal
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import curvewise as cw
from curvewise.cli import main
from curvewise.errors import CurvewiseError, CurvewiseWarning, StoreError
from curvewise.store.claims import Claims
from curvewise.store.read import list_runs, read_run
from curvewise.store.record import record_checksum, record_text
from curvewise.store.tables import export_store
from curvewise.store.verify import verify_store
from curvewise.store.write import write_labels, write_run

pytestmark = pytest.mark.skipif(not hasattr(os, "O_NOFOLLOW"), reason="needs links and pipes")

STUDY = """
name = "s"
data = "digits"

[learners.bayes]
estimator = "sklearn.naive_bayes:GaussianNB"

[learners.own]
command = "python own.py {data} {out}"

[design]
sizes = [50]
folds = 1
seeds = 1
"""
OWN = """
import sys
import numpy as np
data, out = sys.argv[1:]
np.save(out + "/predictions.npy", np.zeros(len(np.load(data)["test_y"]), int))
"""
MARK = "0123456789ab"
OWNER = "0123456789abcdef" * 2
PARTIAL, CLAIMS, LABELS = ".partial", ".claims", "labels"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a study whose runs are done."""
    folder = tmp_path_factory.mktemp("study")
    (folder / "study.toml").write_text(STUDY)
    (folder / "own.py").write_text(OWN)
    assert cw.load_study(folder / "study.toml").run(workers=0, progress=False).done == 2
    return folder


class Place:
    """A study with its store, and a folder of the user beside it that nobody may touch."""

    def __init__(self, ran: Path, folder: Path) -> None:
        self.folder = Path(shutil.copytree(ran, folder / "study"))
        self.file, self.store = self.folder / "study.toml", self.folder / "s-runs"
        self.jobs = [job.id for job in cw.load_study(self.file).jobs]
        self.digest = next(iter(read_run(self.store / self.jobs[0]).label_digests.values()))
        self.outside = folder / "home"
        self._fill_outside()
        self.before = snapshot(self.outside)

    def _fill_outside(self) -> None:
        """Files under every name that a store makes, and others; all of them years old."""
        run = shutil.copytree(self.store / self.jobs[0], self.outside)
        (run / "thesis.tex").write_text("years of work")
        for job in (*self.jobs, "f" * 20):
            for name in (job, f"{job}-{MARK}", f"{job}.replaced-{MARK}"):
                shutil.copytree(self.store / self.jobs[0], self.outside / name)
            (self.outside / f"{job}.0").write_text("{}")
        (self.outside / f".owner-{OWNER}").write_text("{}")
        (self.outside / f"{self.digest}.npy-{MARK}").write_text("x")
        (self.outside / f"{self.digest}.npy").write_text("x")
        for path in (*self.outside.rglob("*"), self.outside):
            os.utime(path, (0, 0))

    def act(self, action: str) -> None:
        """Do one thing that users do; it may refuse, and may not crash or wait for ever."""
        study = cw.load_study(self.file)
        run, table = self.store / self.jobs[0], self.folder / "table.csv"
        at = {"learner": "mine", "seed": 1}

        def claims() -> None:
            with Claims(self.store) as held:
                held.sweep()
                for job in self.jobs:
                    held.take(job)
                held.forget(OWNER)

        calls: dict[str, Callable[[], object]] = {
            "list_runs": lambda: list_runs(self.store),
            "read_run": lambda: read_run(run).labels(),
            "verify_store": lambda: verify_store(self.store, progress=False),
            "verify_store remove": lambda: verify_store(self.store, remove=True, progress=False),
            "export_store": lambda: export_store(self.store, table, overwrite=True),
            "load_measurements": lambda: cw.load_measurements(self.store),
            "load_predictions": lambda: list(cw.load_predictions(self.store, learner="bayes").blocks()),
            "status": study.status,
            "plan": lambda: study.plan(measure=False),
            "measurements": study.measurements,
            "predictions": lambda: list(study.predictions(learner="bayes").blocks()),
            "frame": study.frame,
            "write_run": lambda: write_run(self.store, at, [1], labels=[1], overwrite=True),
            "overwrite": lambda: write_run(self.store, study.jobs[0].coordinates, [1], labels=[1], overwrite=True),
            "write_labels": lambda: write_labels(self.store, study.evaluation_sets["test"].y),
            "claims": claims,
            "run": lambda: study.run(workers=0, progress=False),
            "run fresh": lambda: study.run(workers=0, progress=False, fresh=True),
        }
        with time_limit(), warnings.catch_warnings(), suppress(CurvewiseError):
            warnings.simplefilter("ignore", CurvewiseWarning)
            calls[action]()

    def command(self, *words: str) -> int:
        names = {"STORE": self.store, "FILE": self.file, "TABLE": self.folder / "table.json"}
        with time_limit():
            return main([str(names.get(word, word)) for word in words])

    def assert_untouched(self) -> None:
        assert snapshot(self.outside) == self.before


READING = (
    *("list_runs", "read_run", "verify_store", "export_store", "load_measurements"),
    *("load_predictions", "status", "plan", "measurements", "predictions", "frame"),
)
WRITING = ("claims", "write_run", "overwrite", "write_labels", "run", "verify_store remove")
COMMANDS = (
    ("store", "list", "STORE"),
    ("store", "verify", "STORE"),
    ("store", "export", "STORE", "TABLE", "--overwrite"),
    ("study", "plan", "FILE", "--no-measure"),
    ("study", "status", "FILE"),
    ("study", "run", "FILE", "--workers", "0"),
    ("store", "verify", "STORE", "--remove"),
    ("study", "run", "FILE", "--workers", "0", "--fresh"),
)


@pytest.fixture
def place(ran: Path, tmp_path: Path) -> Place:
    return Place(ran, tmp_path)


def snapshot(folder: Path) -> dict[str, Any]:
    """All that is in a folder: kind, time and content of each file; links are not followed."""
    found: dict[str, Any] = {}
    for path in sorted([folder, *folder.rglob("*")]):
        about = path.lstat()
        kind, content = about.st_mode, b""
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
        found[str(path.relative_to(folder))] = kind, about.st_mtime_ns, about.st_nlink, content
    return found


@contextmanager
def time_limit(seconds: int = 300) -> Iterator[None]:
    def give_up(*_: object) -> None:
        pytest.fail("it waits for ever")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def links(place: Place) -> dict[str, tuple[Path, Path]]:
    """Every path that a store reads, writes or deletes, and what a link in its place leads to."""
    first, out = place.jobs[0], place.outside
    named = {name: (name, ".") for name in (PARTIAL, CLAIMS, LABELS, ".damaged", ".replaced")}
    named |= {
        "data": ("data", "."),
        "run": (first, "."),
        "record": (f"{first}/record.json", "record.json"),
        "array": (f"{first}/predictions.npy", "predictions.npy"),
        "label file": (f"{LABELS}/{place.digest}.npy", f"{place.digest}.npy"),
        "leftover": (f"{PARTIAL}/{first}-{MARK}", "."),
        "replaced": (f"{PARTIAL}/{first}.replaced-{MARK}", "."),
        "replaced of none": (f"{PARTIAL}/{'f' * 20}.replaced-{MARK}", "f" * 20),
        "claim": (f"{CLAIMS}/{first}.0", f"{first}.0"),
        "claim of all": (f"{CLAIMS}/*.0", f"{first}.0"),
        "owner": (f"{CLAIMS}/.owner-{OWNER}", f".owner-{OWNER}"),
        "inside a leftover": (f"{PARTIAL}/{first}-{MARK}/deep", "."),
    }
    return {k: (place.store / path, out / target) for k, (path, target) in named.items()}


LINKS = (
    *(PARTIAL, CLAIMS, LABELS, ".damaged", ".replaced", "data", "run", "record", "array"),
    *("label file", "leftover", "replaced", "replaced of none", "claim", "claim of all", "owner"),
    "inside a leftover",
)


def put(path: Path, make: Callable[[Path], object]) -> None:
    """Put something in the place of what is there; folders on the way are made, and all is old."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    make(path)
    os.utime(path.parent, (0, 0))
    with suppress(OSError):
        os.utime(path, (0, 0), follow_symlinks=False)


@pytest.mark.parametrize("name", LINKS)
def test_no_link_leads_out_of_the_store(place: Place, name: str) -> None:
    path, target = links(place)[name]
    put(path, lambda p: p.symlink_to(target))
    store = snapshot(place.store)
    for action in READING:
        place.act(action)
        place.assert_untouched()
        assert snapshot(place.store).keys() == store.keys(), action  # nothing of it is deleted
        (place.folder / "table.csv").unlink(missing_ok=True)
    for action in WRITING:
        put(path, lambda p: p.symlink_to(target))
        place.act(action)
        place.assert_untouched()


@pytest.mark.parametrize("name", [PARTIAL, CLAIMS, ".damaged", ".replaced", "run", "claim"])
def test_no_command_follows_a_link(place: Place, name: str) -> None:
    path, target = links(place)[name]
    for words in COMMANDS:
        put(path, lambda p: p.symlink_to(target))
        if "--remove" in words:  # so that there is something to move
            (place.store / place.jobs[1] / "record.json").write_text("{")
        assert place.command(*words) in (0, 1), words
        place.assert_untouched()


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, "pipe") for name in LINKS]
    + [
        (name, kind)
        for name in (PARTIAL, CLAIMS, LABELS, "run", "record", "claim")
        for kind in ("dangling", "loop", "hard link")
    ],
)
def test_nothing_waits_and_nothing_is_written_through(place: Place, name: str, kind: str) -> None:
    path, _ = links(place)[name]
    made: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "dangling": lambda p: p.symlink_to(place.outside.parent / "nothing"),
        "loop": lambda p: p.symlink_to(p),
        "hard link": lambda p: os.link(place.outside / "thesis.tex", p),
    }
    if kind == "hard link":
        os.link(place.outside / "thesis.tex", place.folder / "keep")  # the count stays above one
    for action in ("list_runs", "verify_store", "status", "claims", "write_run", "run"):
        put(path, made[kind])
        place.act(action)
        assert not (place.outside.parent / "nothing").exists()
        assert (place.outside / "thesis.tex").read_text() == "years of work"


def test_links_in_the_place_of_own_folders_are_told(place: Place) -> None:
    for name in (PARTIAL, CLAIMS, LABELS):
        put(place.store / name, lambda p: p.symlink_to(place.outside))
    found = verify_store(place.store)
    assert {PARTIAL, CLAIMS, LABELS} <= {d.file for d in found.damage}
    with pytest.raises(StoreError, match=r"\.partial is a link or a file.*remove it"):
        write_run(place.store, {"n": 1}, [1])
    put(place.store / PARTIAL, Path.mkdir)
    put(place.store / LABELS, Path.mkdir)
    shutil.rmtree(place.store / place.jobs[0])
    with pytest.raises(StoreError, match=r"\.claims is a link or a file.*remove it"):
        cw.load_study(place.file).run(workers=0, progress=False)


def test_folders_that_no_store_makes_are_neither_deleted_nor_runs(place: Place) -> None:
    first, gone = place.jobs
    shutil.rmtree(place.store / gone)
    names = [
        *(f"{PARTIAL}/{job}.replaced-my notes" for job in (first, gone)),
        *(f"{CLAIMS}/.owner-{name}" for name in ("mythesis", OWNER)),
    ]
    for name in names:
        put(place.store / name, lambda p: shutil.copytree(place.store / first, p))
        os.utime(place.store / name, (0, 0))
    before = {name: snapshot(place.store / name) for name in names}
    for action in ("status", "claims", "write_run", "overwrite"):
        place.act(action)
        assert {name: snapshot(place.store / name) for name in names} == before, action
    assert gone not in [run.id for run in list_runs(place.store)]


def test_runs_stay_where_they_are_if_new_ones_could_not_be_written(place: Place) -> None:
    put(place.store / PARTIAL, lambda p: p.symlink_to(place.outside))
    with pytest.raises(StoreError, match=r"\.partial is a link or a file.*remove it"):
        cw.load_study(place.file).run(workers=0, progress=False, fresh=True)
    assert len(list_runs(place.store)) == 2
    assert not (place.store / ".replaced").exists()


def test_runs_stay_where_they_are_on_a_full_disk(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("curvewise.store.write._write", full)
    with pytest.raises(StoreError, match=r"No space left.*Stored runs are unchanged"):
        cw.load_study(place.file).run(workers=0, progress=False, fresh=True)
    assert len(list_runs(place.store)) == 2


def test_a_store_that_the_user_names_by_a_link_is_used(place: Place, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(place.store)
    path = write_run(link, {"n": 1}, [1], labels=[1])
    assert read_run(path).labels().tolist() == [1]
    assert len(list_runs(link)) == 3
    assert verify_store(link).sound


def test_an_export_replaces_a_link_and_not_what_it_leads_to(place: Place) -> None:
    table = place.folder / "table.json"
    table.symlink_to(place.outside / "thesis.tex")
    assert place.command("store", "export", "STORE", "TABLE") == 2  # it is there
    assert place.command("store", "export", "STORE", "TABLE", "--overwrite") == 0
    assert not table.is_symlink()
    place.assert_untouched()


def test_a_report_replaces_links_and_not_what_they_lead_to(place: Place) -> None:
    folder = place.folder / "s-report"
    folder.mkdir()
    for name in ("report.md", "report.html", "runs.csv", "errors.png"):
        (folder / name).symlink_to(place.outside / "thesis.tex")
    assert place.command("study", "report", "FILE") == 0
    assert "#" in (folder / "report.md").read_text()
    place.assert_untouched()


def forge(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change a record and give it the checksum that goes with it."""
    record = json.loads((path / "record.json").read_text())
    del record["sha256"]
    change(record)
    record["sha256"] = record_checksum(record)
    (path / "record.json").write_bytes(record_text(record))


@pytest.mark.parametrize(
    "file", ["../../home/thesis.tex", "/etc/passwd", "C:\\x.npy", "..", "record.json", "other.npy", ""]
)
def test_a_record_names_no_files_but_its_own(place: Place, file: str) -> None:
    run = place.store / place.jobs[0]
    (run / "other.npy").write_bytes((run / "predictions.npy").read_bytes())
    forge(run, lambda record: record["arrays"]["predictions"].update(file=file))
    with pytest.raises(StoreError, match="no arrays or files that a run can have"):
        read_run(run)
    assert [d.run for d in verify_store(place.store).damage] == [run.name]
    assert cw.load_study(place.file).status().damaged == 1


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize(
    "text",
    ["1" * 5_000, "-1e999", nested(100), nested(900), nested(100_000), "[" * 200_000, '"' + "x" * 17_000_000 + '"'],
    ids=["5000 digits", "1e999", "100", "900", "100000", "brackets", "17 MB"],
)
@pytest.mark.parametrize("field", ["coordinates", "environment", "metrics"])
def test_what_no_reader_can_bear_is_damage(place: Place, text: str, field: str) -> None:
    run = place.store / place.jobs[0]
    data = (run / "record.json").read_text()
    checksum = json.loads(data)["sha256"]
    rest = data.replace(f'\n "sha256": "{checksum}",\n', "\n", 1)
    rest = rest.replace(f'"{field}": {{', f'"{field}": {{"odd": {text},', 1)
    digest = hashlib.sha256(rest.encode()).hexdigest()
    whole = rest.replace('\n "status"', f'\n "sha256": "{digest}",\n "status"', 1)
    (run / "record.json").write_text(whole)
    for read in (
        lambda: list_runs(place.store),
        lambda: read_run(run),
        lambda: export_store(place.store, place.folder / "x.json"),
        lambda: cw.load_measurements(place.store),
    ):
        with pytest.raises(StoreError, match=r"record\.json.*Restore it"):
            read()
    assert [d.run for d in verify_store(place.store).damage] == [run.name]
    assert place.command("store", "verify", "STORE") == 1
    assert place.command("study", "status", "FILE") == 0


def test_numbers_beyond_all_floats_break_nothing(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    for n in (10**400, -(10**3900)):
        write_run(place.store, {"learner": "a", "n": n, "seed": n}, [1], {"error": 0.1})
    for words in COMMANDS[:3]:
        assert place.command(*words) == 0, words
    assert "e+400" in capsys.readouterr().out
    with pytest.raises(cw.InputError, match="n"):
        cw.load_measurements(place.store)
    for action in READING:
        place.act(action)


@pytest.mark.parametrize("value", [10**5000, -(10**4000), json.loads(nested(70)), [[1] * 3] * 2], ids=str.__class__)
def test_what_could_not_be_read_again_is_not_written(tmp_path: Path, value: Any) -> None:
    if value == [[1] * 3] * 2:
        assert read_run(write_run(tmp_path, {"n": value})).coordinates["n"] == value
        return
    for arguments in ({"coordinates": {"n": value}}, {"environment": {"n": value}}):
        with pytest.raises(cw.InputError, match=r"\['n'\].*(number|levels)"):
            write_run(tmp_path, **({"coordinates": {"n": 1}} | arguments))
    with pytest.raises(cw.InputError, match="arrays="):
        write_run(tmp_path, {"n": "x" * 17_000_000})
    assert list_runs(tmp_path) == []


def test_a_long_error_is_cut_in_the_middle(tmp_path: Path) -> None:
    text = "first line\n" + "x" * 20_000_000 + "\nlast line"
    kept = read_run(write_run(tmp_path, {"n": 1}, error=text)).error
    assert kept is not None
    assert len(kept) < 1_100_000
    assert kept.startswith("first line")
    assert kept.endswith("last line")


def test_a_sparse_record_is_not_read(place: Place) -> None:
    with open(place.store / place.jobs[0] / "record.json", "r+b") as file:
        file.truncate(1 << 40)
    with pytest.raises(StoreError, match="bytes"):
        list_runs(place.store)


CONTROL = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r\nname"


def test_no_name_commands_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = tmp_path / f"store {CONTROL[:-6]}"
    run = write_run(store, {"learner": CONTROL, "n": 1}, [1], {"error": 0.1})
    write_run(store, {"learner": "b", "n": 1}, error=CONTROL)
    (run / CONTROL.replace("/", "")).write_text("")
    (store / PARTIAL / CONTROL).mkdir()
    (store / CLAIMS).mkdir()
    (store / CLAIMS / CONTROL).write_text("")
    odd = store / CONTROL
    shutil.copytree(run, odd)
    (run / "predictions.npy").write_text("")
    for words in (["list"], ["verify"], ["export"], ["list", "--json"], ["verify", "--json"]):
        target = [str(tmp_path / "x.csv")] if words == ["export"] else []
        main(["store", words[0], str(store), *target, *words[1:]])
    said = "".join(capsys.readouterr())
    assert "owned" in said
    assert not set(said) & set("\x1b\x07\x9b\u202e\r")
    assert all(c.isprintable() or c == "\n" for c in said)
