from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from curvewise.errors import StoreError
from curvewise.store import claims as module
from curvewise.store.claims import FOLDER, STALE_SECONDS, Claims
from curvewise.store.read import ASIDE

ID, OTHER = "a" * 20, "b" * 20


def files(store: Path) -> list[str]:
    return sorted(p.name for p in (store / FOLDER).iterdir())


def claim_of(store: Path, **changes: object) -> Path:
    """Leave a claim behind, as a process does that is killed."""
    (store / FOLDER).mkdir(exist_ok=True)
    owner = {"token": "t", "host": "h", "where": "elsewhere", "pid": 1, "started": "1"}
    path = store / FOLDER / f"{ID}.0"
    path.write_text(json.dumps(owner | changes))
    return path


def make_old(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def dead_owner() -> dict[str, object]:
    """A process of this machine that has ended."""
    code = "import json; from curvewise.store.claims import this_process; print(json.dumps(this_process()))"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return dict(json.loads(answer.stdout))


def test_one_of_two_gets_a_run_and_the_other_after_it(tmp_path: Path) -> None:
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.take(ID)
        assert first.take(ID)  # it is ours already
        assert not second.take(ID)
        assert second.take(OTHER)
        assert first.holds(ID)
        assert not second.holds(ID)
        assert first.is_held(OTHER)
        first.release(ID)
        assert second.take(ID)
        first.release(ID)  # not ours any more
        assert second.holds(ID)
    assert files(tmp_path) == []


def test_claim_of_a_process_that_is_gone_is_taken_over(tmp_path: Path) -> None:
    claim_of(tmp_path, **dead_owner())
    left = tmp_path / ".partial" / f"{ID}-0123456789ab"
    left.mkdir(parents=True)
    (left / "record.json").write_text("{")
    with Claims(tmp_path) as claims:
        assert claims.is_stale(ID)
        assert not claims.is_held(ID)
        assert claims.take(ID)
        assert not left.exists()
        assert claims.holds(ID)
    assert files(tmp_path) == []


def test_same_number_but_later_start_is_another_process(tmp_path: Path) -> None:
    me = module.this_process()
    claim_of(tmp_path, **me)
    with Claims(tmp_path) as claims:
        assert not claims.take(ID)  # the process, this one, is alive
        claim_of(tmp_path, **(me | {"started": "1"}))
        assert claims.take(ID)


def test_a_zombie_counts_as_gone(tmp_path: Path) -> None:
    code = "import json; from curvewise.store.claims import this_process; print(json.dumps(this_process()))"
    child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
    assert child.stdout is not None
    claim_of(tmp_path, **json.loads(child.stdout.read()))
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # ended, and still in the table
    with Claims(tmp_path) as claims:
        assert claims.is_stale(ID)
    child.wait()
    child.stdout.close()


@pytest.mark.parametrize("content", ["", "{", "[]", '{"token": "t"}', None])
def test_elsewhere_only_age_tells(tmp_path: Path, content: str | None) -> None:
    path = claim_of(tmp_path)
    if content is not None:  # cut off by a crash, where there are no hard links
        path.write_text(content)
    with Claims(tmp_path) as claims:
        make_old(path, STALE_SECONDS - 300)
        assert not claims.take(ID)
        make_old(path, STALE_SECONDS + 300)
        assert claims.take(ID)


def test_age_is_measured_by_the_clock_of_the_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = claim_of(tmp_path)
    monkeypatch.setattr(time, "time", lambda: 4e9)  # this machine's clock is years ahead
    with Claims(tmp_path) as claims:
        assert not claims.take(ID)
        os.utime(path, (1e9, 1e9))
        assert claims.take(ID)


def test_heartbeat_keeps_claims_fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HEARTBEAT_SECONDS", 0.02)
    with Claims(tmp_path) as claims:
        claims.take(ID)
        path = tmp_path / FOLDER / f"{ID}.0"
        make_old(path, 3600)
        limit = time.monotonic() + 300
        while time.time() - path.stat().st_mtime > 1800 and time.monotonic() < limit:
            time.sleep(0.02)
        assert time.time() - path.stat().st_mtime < 1800


def test_who_slept_too_long_loses_its_claim(tmp_path: Path) -> None:
    sleeper, other = Claims(tmp_path), Claims(tmp_path)
    assert sleeper.take(ID)
    path = tmp_path / FOLDER / f"{ID}.0"
    owner = json.loads(path.read_text()) | {"where": "elsewhere"}
    path.unlink()
    path.write_text(json.dumps(owner))
    make_old(path, STALE_SECONDS + 60)
    assert other.take(ID)
    assert not sleeper.holds(ID)
    sleeper.close()
    assert other.holds(ID)
    other.close()


def test_sweep_removes_what_the_dead_left_and_nothing_else(tmp_path: Path) -> None:
    claim_of(tmp_path, **dead_owner())
    with Claims(tmp_path) as alive, Claims(tmp_path) as claims:
        alive.take(OTHER)
        assert claims.sweep() == [ID]
        assert claims.sweep() == []
        assert alive.holds(OTHER)
        assert not claims.is_stale(ID)


def test_forget_removes_the_claims_of_one_owner(tmp_path: Path) -> None:
    claim_of(tmp_path)
    with Claims(tmp_path, "mine") as claims:
        claims.take(OTHER)
        assert claims.forget("t") == [ID]
        assert claims.holds(OTHER)


def test_half_written_runs_are_removed_though_who_removes_them_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    claim_of(tmp_path, **dead_owner())
    half = tmp_path / ASIDE / f"{ID}-0123456789ab"
    half.mkdir(parents=True)
    with monkeypatch.context() as patch, Claims(tmp_path, "mine") as claims:
        patch.setattr(module, "remove_partial", killed)
        with pytest.raises(KeyboardInterrupt):
            claims.forget("t")
    with Claims(tmp_path, "next") as claims:
        assert claims.sweep() == [ID]
    assert not half.exists()
    assert files(tmp_path) == []


def test_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "no hard links here")

    monkeypatch.setattr(os, "link", refuse)
    with Claims(tmp_path) as first, Claims(tmp_path) as second:
        assert first.take(ID)
        assert not second.take(ID)
        first.release(ID)
        assert second.take(ID)
    assert files(tmp_path) == []


def test_a_full_disk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    claims = Claims(tmp_path)
    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StoreError, match="No space left"):
        claims.take(ID)
    claims.close()
    assert files(tmp_path) == []


RACE = """
import sys, time
from pathlib import Path
from curvewise.store.claims import Claims
store, ids = Path(sys.argv[1]), sys.argv[2:]
print("ready", flush=True)
sys.stdin.readline()
with Claims(store) as claims:
    print(*[i for i in ids if claims.take(i)], flush=True)
    sys.stdin.readline()  # nobody gives back before all have tried
"""


def test_of_several_processes_exactly_one_takes_over_a_stale_claim(tmp_path: Path) -> None:
    content = json.dumps({"token": "t", **dead_owner()})
    (tmp_path / FOLDER).mkdir()
    ids = [f"{i:020x}" for i in range(60)]
    for i, identity in enumerate(ids):
        if i % 4:  # the others are free
            (tmp_path / FOLDER / f"{identity}.0").write_text(content)
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", RACE, str(tmp_path), *ids]
    racers = [subprocess.Popen(command, **pipes) for _ in range(3)]  # type: ignore[call-overload]
    assert [racer.stdout.readline() for racer in racers] == ["ready\n"] * 3
    for racer in racers:
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.stdout.readline().split() for racer in racers]
    for racer in racers:
        racer.communicate("done\n")
    assert sorted(identity for ids_won in won for identity in ids_won) == ids
    assert files(tmp_path) == []


def test_an_interrupt_right_after_claiming_leaves_no_claim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make = Claims._make

    def interrupted(self: Claims, path: Path) -> bool:
        make(self, path)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), Claims(tmp_path) as claims:  # noqa: PT012
        monkeypatch.setattr(Claims, "_make", interrupted)
        claims.take(ID)
    assert files(tmp_path) == []


def test_a_claim_that_cannot_be_written_is_not_taken_for_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Claims, path: Path) -> bool:
        raise StoreError("full")

    with Claims(tmp_path) as claims:
        monkeypatch.setattr(Claims, "_make", full)
        for _ in range(2):
            with pytest.raises(StoreError):
                claims.take(ID)
