"""The live page of a study: what it answers, to whom, and what it shows while runs come in."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from curvewise.report import live
from curvewise.report.live import LivePage, live_page, state_of
from curvewise.study import Study


@pytest.fixture
def served() -> Iterator[Callable[[Study], LivePage]]:
    """Serve a study until the test is done."""
    running: list[tuple[LivePage, threading.Thread]] = []

    def start(study: Study) -> LivePage:
        page = LivePage(study)
        thread = threading.Thread(target=page.serve)
        thread.start()
        running.append((page, thread))
        return page

    yield start
    for page, thread in running:
        page.stop()
        thread.join()
        page.__exit__(None, None, None)


def asked(
    page: LivePage, path: str, method: str = "GET", host: str | None = None, with_token: bool = True
) -> tuple[int, http.client.HTTPMessage, bytes]:
    place, token, _ = page.url.removeprefix("http://").split("/")
    connection = http.client.HTTPConnection(place, timeout=60)
    where = f"/{token}{path}" if with_token else path
    connection.request(method, where, headers={"Host": host or place})
    answer = connection.getresponse()
    found = answer.status, answer.headers, answer.read()
    connection.close()
    return found


def test_state_counts_the_runs_and_their_means(copied):
    study = copied(keep=20)
    frame = study.frame()
    state = state_of(study)
    assert state["counts"]["finished"] == 20
    assert state["counts"]["remaining"] == 10
    assert state["planned"] == 30
    means = frame[frame.status == "done"].groupby(["learner", "n"])["error"].agg(["mean", "size"])
    shown = {(s["name"], m["n"]): (m["value"], m["runs"]) for s in state["series"] for m in s["means"]}
    assert shown.keys() == set(means.index)
    for key, (mean, size) in zip(means.index, means.to_numpy(), strict=True):
        assert shown[key] == (pytest.approx(100 * mean), size)


def test_the_page_grows_with_the_study(copied, served, monkeypatch):
    monkeypatch.setattr(live, "FRESH_SECONDS", 0.0)
    monkeypatch.setattr(live.time, "monotonic", lambda: 0.0)
    study = copied(keep=5)
    page = served(study)

    def counts() -> Any:
        return json.loads(asked(page, "/state.json")[2])["counts"]

    assert counts()["finished"] == 5
    study.run(workers=0, progress=False)
    assert counts()["finished"] == 30


def test_what_was_read_is_kept_for_a_while(copied, monkeypatch):
    times = iter([0.0, 1.0, 5.9, 6.0, 6.1])
    monkeypatch.setattr(live.time, "monotonic", lambda: next(times))
    reads: list[Study] = []
    monkeypatch.setattr(live, "state_of", lambda study: reads.append(study) or {})
    watched = live.Watched(copied(keep=0))
    watched.text()  # begun at 0 and done at 1: good until 6
    watched.text()
    assert len(reads) == 1
    watched.text()
    assert len(reads) == 2


def test_only_two_things_are_there_and_only_for_this_machine(copied, served):
    study = copied(keep=0)
    page = served(study)
    assert page.url.startswith("http://127.0.0.1:")
    status, headers, body = asked(page, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert b"http://" not in body.replace(b"http://www.w3.org/2000/svg", b"")
    assert b"https://" not in body
    port = page.url.split(":")[2].split("/")[0]
    for path in ("/study.toml", "/../study.toml", "/tiny-runs", "/state.json?x", "/%2e%2e/"):
        assert asked(page, path)[0] == 404, path
    for host in ("evil.example", f"evil.example:{port}", "127.0.0.1:1", f"127.0.0.1:{port}.evil"):
        for path in ("/", "/state.json"):
            assert asked(page, path, host=host)[0] == 403, host
    assert asked(page, "/state.json", host=f"localhost:{port}")[0] == 200


def test_nothing_is_answered_without_the_token(copied, served):
    study = copied(keep=0)
    page, other = served(study), served(study)
    token = page.url.split("/")[3]
    assert len(token) >= 22  # 128 bits
    assert token not in other.url
    wrong = [
        *("/", "/state.json", "", "//", f"/{token}", f"{token}/", f"/{token[:-1]}/", f"/{token}x/"),
        *(f"/{token.swapcase()}/", f"/x/{token}/state.json", f"/?{token}/", "/%C3%A9/"),
        *(f"/{other.url.split('/')[3]}/", "/favicon.ico", f"/%{token}/state.json"),
    ]
    for path in wrong:
        status, _, body = asked(page, path, with_token=False)
        assert status == 403, path
        assert token.encode() not in body
        assert study.name.encode() not in body
    assert asked(page, "/")[0] == 200
    assert token.encode() not in asked(page, "/")[2]


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"])
def test_nothing_but_get_is_answered(copied, served, method):
    status, headers, _ = asked(served(copied(keep=0)), "/", method)
    assert (status, headers["Allow"]) == (405, "GET")


def test_damaged_and_half_written_runs_are_counted(copied, served):
    study = copied(keep=10)
    ids = [job.id for job in study.jobs]
    (study.runs_folder / ids[0] / "record.json").write_bytes(b"\xff\x00 not JSON")
    (study.runs_folder / ids[1] / "record.json").unlink()
    state = json.loads(asked(served(study), "/state.json")[2])
    assert state["counts"]["damaged"] == 2
    assert state["counts"]["finished"] == 8
    assert any("damaged" in text for text in state["warnings"])


def test_a_store_that_cannot_be_read_is_a_message(copied, monkeypatch):
    study = copied(keep=0)

    def refuse(*_: Any) -> None:
        raise PermissionError("not for you")

    monkeypatch.setattr(type(study), "status", refuse)
    assert "not for you" in state_of(study)["problem"]


def test_failures_are_told(copied):
    study = copied(("max_features = 8", "max_features = -1"))
    study.run(workers=0, progress=False)
    state = state_of(study)
    assert state["counts"]["failed"] == 15
    assert state["failures"][0]["learners"] == "tree"
    assert "max_features" in state["failures"][0]["message"]


def test_a_name_is_no_markup_and_no_place_for_parts():
    page, policy = live_page("</title><script>[[script]]")
    head = page.decode().split("<style>")[0]
    assert "&lt;/title&gt;&lt;script&gt;[[script]]" in head
    assert page.count(b"<script>") == 1
    assert "connect-src 'self'" in policy


def test_ctrl_c_ends_the_command(copied):
    study = copied(keep=0)
    file = str(study.folder / "study.toml")
    command = [sys.executable, "-m", "curvewise.cli", "study", "report", file, "--watch"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as started:
        assert started.stderr is not None
        line = started.stderr.readline()
        assert re.search(r"http://127\.0\.0\.1:\d+/[\w-]{32}/\s", line)
        started.send_signal(signal.SIGINT)
        rest = started.stderr.read()
        assert started.wait(timeout=600) == 0
    assert "Traceback" not in rest
    assert not Path(study.folder, "tiny-report").exists()


def test_in_a_browser(copied, served):
    playwright = pytest.importorskip("playwright.sync_api")
    import shutil

    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser"))), None)
    if program is None and not os.environ.get("CI"):
        pytest.skip("no chromium here: `make chromium` installs it")
    name = "<img src=x onerror='window.ran = 1'> & 🦉"
    study = copied(("[learners.tree]", f'[learners."{name}"]'))
    study.run(workers=0, progress=False)
    page = served(study)
    complaints: list[str] = []
    requests: list[str] = []
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        tab = browser.new_page()
        tab.set_default_timeout(60_000)
        tab.on("console", lambda m: complaints.append(m.text))
        tab.on("pageerror", lambda e: complaints.append(str(e)))
        tab.on("request", lambda r: requests.append(r.url))
        tab.goto(page.url)
        tab.wait_for_selector("body[data-ready]")
        assert "30 runs: 30 finished, 0 remaining" in tab.text_content("#summary")
        assert tab.text_content("#counts li") == "30 finished"
        assert tab.locator("#legend bdi").all_text_contents() == ["bayes", name]
        assert tab.locator("#chart path.line").count() == 2
        assert tab.locator("#means tbody tr").count() == 6
        cell = tab.locator("#means tbody tr").first.locator("td").last.text_content()
        frame = study.frame().query("learner == 'bayes' and n == 50")
        assert float(cell) == pytest.approx(100 * frame["error"].mean(), abs=0.05)
        assert tab.evaluate("window.ran") is None
        assert tab.title() == "100% tiny"
        browser.close()
    assert complaints == []
    assert set(requests) == {page.url, f"{page.url}state.json"}
