"""A page on this machine that shows a study while it runs."""

from __future__ import annotations

import hmac
import html
import json
import math
import re
import secrets
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np

from curvewise.errors import CurvewiseError, quietly
from curvewise.report.lenses import error_columns
from curvewise.report.page import read_asset, script_hash, script_of
from curvewise.report.results import first_sentences
from curvewise.types.results import plain

if TYPE_CHECKING:
    from curvewise.study.status import Status
    from curvewise.study.study import Study


HOST = "127.0.0.1"
FRESH_SECONDS = 2.0
"""Seconds for which what was read is shown again, at least, and five times as long as reading it took."""
MOST_POINTS = 2_000
"""Runs that are drawn one by one; of more, the mean at each size."""


class Watched:
    """Progress of a study, read again when it is asked for and what is known is old.

    Parameters
    ----------
    study : Study
        Another process may be running it. What is damaged or half-written is counted, no error.
    """

    def __init__(self, study: Study) -> None:
        self.study = study
        self._lock = threading.Lock()
        self._text = b"{}"
        self._until = -math.inf

    def text(self) -> bytes:
        """The state as JSON."""
        # Several windows may ask at once; one of them reads, the others wait for what it found.
        with self._lock:
            begun = time.monotonic()
            if begun >= self._until:
                found = json.dumps(plain(state_of(self.study)), allow_nan=False)
                self._text = found.encode("utf-8")
                now = time.monotonic()
                # A large store on a slow disk is not read again and again while the page is open.
                self._until = now + max(FRESH_SECONDS, 5 * (now - begun))
            return self._text


def state_of(study: Study) -> dict[str, Any]:
    """Collect what the live page shows: counts, time left, means by learner and size, failures."""
    from curvewise.study.status import looked_up_once

    try:
        with looked_up_once(study), quietly():
            status = study.status()
            return {"name": study.name, **_progress(status), **_measured(study)}
    except (CurvewiseError, OSError) as error:
        return {"name": study.name, "problem": f"The store cannot be read now: {error}"}


def _progress(status: Status) -> dict[str, Any]:
    others = {state: getattr(status, state) for state in ("failed", "running", "outdated", "damaged")}
    remaining = status.planned - status.done - sum(others.values())
    return {
        "summary": " ".join(first_sentences(status.sentences(), 2)),
        "finished": status.is_finished,
        "planned": status.planned,
        "counts": {"finished": status.done, **others, "remaining": remaining},
        "left": _left(status),
        "workers": [f"{who}: {count:,} runs" for who, count in status.workers.items()],
        "failures": [
            {"count": f.count, "learners": ", ".join(f.learners), "message": f.message} for f in status.failures
        ],
        "warnings": list(status.warnings),
    }


def _left(status: Status) -> str:
    """Estimate the time left if the processes at work now continue."""
    from curvewise.study.status import duration

    if status.is_finished:
        return "all runs are made"
    at_work = len(status.workers)
    processes = "process" if at_work == 1 else "processes"
    if not math.isfinite(status.seconds_left):
        return "the time left is not known yet"
    if not at_work:
        return f"no process is running; one would need about {duration(status.seconds_left)}"
    return f"about {duration(status.seconds_left / at_work)} left with {at_work} running {processes}"


def _measured(study: Study) -> dict[str, Any]:
    """Means by learner and size, and the runs behind them."""
    try:
        runs = study.measurements()
    except CurvewiseError:  # nothing yet
        return {"word": "error", "suffix": "%", "series": []}
    columns = error_columns(runs)
    word = "loss" if "loss" in columns else "error"
    times, suffix = (100.0, "%") if runs.unit.name == "fraction" else (1.0, runs.unit.suffix)
    series: dict[str, dict[str, Any]] = {name: {"name": name, "means": [], "points": []} for name in runs.learners}
    rows = zip(*(columns[k] for k in ("learner", "n", "runs", word)), strict=True)
    for learner, n, count, mean in rows:
        if mean is not None:
            series[learner]["means"].append({"n": n, "value": times * mean, "runs": count})
    # Of many runs only the means are drawn: thousands of points would slow the browser and hide each other.
    good = np.isfinite(runs.error) & (len(runs) <= MOST_POINTS)
    for learner, n, value in zip(*(v[good].tolist() for v in (runs.learner, runs.n, runs.error)), strict=True):
        series[learner]["points"].append({"n": n, "value": times * value})
    for one in series.values():
        one["means"].sort(key=lambda mean: mean["n"])
    return {"word": word, "suffix": suffix, "series": list(series.values())}


class LivePage:
    """A server on this machine alone, which shows one study and can change nothing.

    Its address holds a token, drawn anew for each page, without which nothing is answered: other
    users of the machine reach the port, but do not know the address.

    Parameters
    ----------
    study : Study
        What to show.
    port : int
        Where; 0 takes one that is free.

    Examples
    --------
    >>> import tempfile
    >>> from curvewise.study import Learner, Study
    >>> bayes = Learner(estimator="sklearn.naive_bayes:GaussianNB")
    >>> study = Study("digits", {"bayes": bayes}, folder=tempfile.mkdtemp())
    >>> with LivePage(study) as page:
    ...     page.url.startswith("http://127.0.0.1:")
    True
    """

    def __init__(self, study: Study, port: int = 0) -> None:
        self._token = secrets.token_urlsafe(24)
        self._server = _Server((HOST, port), _handler(Watched(study), *live_page(study.name), self._token))

    @property
    def url(self) -> str:
        """Address for a browser on this machine, with the token; only for who may see the study."""
        return f"http://{HOST}:{self._server.server_address[1]}/{self._token}/"

    def serve(self) -> None:
        """Answer until :meth:`stop` is called from another thread, or an interrupt."""
        self._server.serve_forever(poll_interval=0.2)

    def stop(self) -> None:
        """Make :meth:`serve` return."""
        self._server.shutdown()

    def __enter__(self) -> LivePage:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    """Does not complain of browsers that hang up."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError | TimeoutError):
            super().handle_error(request, client_address)


def _handler(watched: Watched, page: bytes, policy: str, token: str) -> type[BaseHTTPRequestHandler]:
    """Make the class that answers: the study, the page and its policy, and the token that grants access."""

    class Handler(BaseHTTPRequestHandler):
        """Two answers, the page and its state, for this machine and to GET alone."""

        timeout = 20
        server_version, sys_version = "curvewise", ""

        def do_GET(self) -> None:
            port = self.server.server_address[1]  # type: ignore[index]
            # What is asked for below the token; None without it.
            parts = self.path.split("/", 2)
            place = None
            if len(parts) == 3 and not parts[0]:
                # In constant time, so that the token cannot be found letter by letter.
                known = hmac.compare_digest(parts[1].encode(errors="replace"), token.encode())
                place = parts[2] if known else None
            # Another site cannot reach this page by a name that it resolves to this machine (DNS rebinding).
            if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
                self._answer(HTTPStatus.FORBIDDEN, b"This page is for this machine only.\n")
            elif place is None:
                self._answer(HTTPStatus.FORBIDDEN, b"Use the whole address that the command printed.\n")
            elif place == "":
                self._answer(HTTPStatus.OK, page, "text/html")
            elif place == "state.json":
                self._answer(HTTPStatus.OK, watched.text(), "application/json")
            else:
                self._answer(HTTPStatus.NOT_FOUND, b"There is nothing here.\n")

        def _refuse(self) -> None:
            self._answer(HTTPStatus.METHOD_NOT_ALLOWED, b"Only GET is answered.\n")

        do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = _refuse

        def _answer(self, status: HTTPStatus, body: bytes, kind: str = "text/plain") -> None:
            self.send_response(status)
            self.send_header("Content-Type", f"{kind}; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("Cache-Control", "no-store")
            self.send_header("Content-Security-Policy", policy)
            self.send_header("X-Content-Type-Options", "nosniff")
            self.send_header("Cross-Origin-Resource-Policy", "same-origin")
            self.send_header("Referrer-Policy", "no-referrer")
            if status is HTTPStatus.METHOD_NOT_ALLOWED:
                self.send_header("Allow", "GET")
                self.close_connection = True
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the terminal is for the user."""

    return Handler


def live_page(name: str) -> tuple[bytes, str]:
    """The page, and the policy that lets it run its own script and ask its own server only."""
    script = script_of(("base.js", "curves.js", "live.js"))
    policy = (
        f"default-src 'none'; style-src 'unsafe-inline'; script-src '{script_hash(script)}'; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    styles = read_asset("report.css") + read_asset("live.css")
    parts = {"name": html.escape(name), "css": styles, "script": script}
    text = re.sub(r"\[\[(name|css|script)\]\]", lambda found: parts[found[1]], read_asset("live.html"))
    return text.encode("utf-8", errors="replace"), policy
