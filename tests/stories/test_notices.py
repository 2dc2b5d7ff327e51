"""Reviews in a person's task manager: a command or a URL is told when a proposal comes to need a person."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import threading
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Workspace
from lukasa.model.amendment import AmendmentState
from lukasa.model.errors import InvalidInput, NoticeFailed
from lukasa.model.job import JobState
from lukasa.model.telemetry import TelemetryQuery
from lukasa.ports import Notice
from lukasa.providers.notices import CommandChannel, UrlChannel, open_channels
from lukasa.service.jobs.handlers import run_next
from lukasa.service.jobs.queue import reflect_now
from tests.helpers.cli import Shell
from tests.helpers.curating import work
from tests.helpers.making import FixedClock

KEEPS = 'cat >> "$1"; printf "\\n%s\\n" "$LUKASA_NOTICE" >> "$1.ids"; echo >> "$1"'


def program(folder: Path, body: str, name: str = "task-manager") -> Path:
    file = folder / name
    file.write_text(f"#!/bin/sh\n{body}\n")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def told(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line] if file.exists() else []


class Listener:
    """A real server on loopback that keeps each request, and answers with the statuses it is given, then 204."""

    def __init__(self, *statuses: int) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        left = list(statuses)
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append((dict(self.headers), body))
                self.send_response(left.pop(0) if left else 204)
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/tasks?list=memory"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> Listener:
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def places(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in [name for name in os.environ if name.startswith("LUKASA_REVIEW")]:
        monkeypatch.delenv(name)
    return monkeypatch


def opened(tmp_path: Path, clock: FixedClock) -> Workspace:
    return Lukasa.open(tmp_path / "data", embedder="none", clock=clock, chat=None).workspace("pier", preset="observer")


def doubtful(world: Workspace, text: str = "Ruben may close the northern pier in winter storms") -> str:
    """Remember something that no rule puts on the page, and reflect: its proposal needs a person."""
    world.put("workspace", text, kind="semantic", importance=0.9)
    (made,) = reflect_now(world.ctx, chat=None).proposals
    assert made.state is AmendmentState.REVIEW
    return made.id


def test_a_command_is_told_once(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4: it gets the proposal as JSON on stdin, with the commands that decide, and an id; never twice."""
    file = tmp_path / "tasks"
    places.setenv("LUKASA_REVIEW_COMMAND", f"{program(tmp_path, KEEPS)} '{file}'")
    world = opened(tmp_path, clock)
    id = doubtful(world)
    assert told(file) == []  # triage waits for nobody
    work(world)
    (notice,) = told(file)
    (job,) = world.jobs(kind="notify")
    assert notice["summary"] == "Review memory proposal: Ruben may close the northern pier in winter storms"
    assert (notice["id"], notice["event"], notice["proposal"]["id"]) == (job.id, "review.needed", id)
    assert notice["approve"] == f"lukasa -w pier review approve {id}"
    assert (tmp_path / "tasks.ids").read_text().split() == [job.id]
    clock.time += timedelta(days=1)
    work(world)
    assert len(told(file)) == 1
    world.approve(id)
    world.undo(id)  # it waits for a person again
    work(world)
    assert [n["proposal"]["id"] for n in told(file)] == [id, id]
    assert len({n["id"] for n in told(file)}) == 2


def test_a_submission_is_told(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4, K5: a change of a document waits for a person as well; one that was decided is not told."""
    file = tmp_path / "tasks"
    places.setenv("LUKASA_REVIEW_COMMAND", f"{program(tmp_path, KEEPS)} '{file}'")
    world = opened(tmp_path, clock)
    pier = world.put("workspace", "The northern pier is closed in winter storms").id
    first = world.acting(agent="claude").submit("piers", memories=[pier], note="ships ask").id
    world.reject(world.submit("quays", memories=[pier]).id)
    work(world)
    (notice,) = told(file)
    assert notice["summary"].startswith("Review change of document piers: - The northern pier")
    assert (notice["submission"]["id"], notice["submission"]["by"]) == (first, "claude")
    assert notice["approve"] == f"lukasa -w pier review approve {first}"
    world.approve(first)
    world.undo(first)  # it waits for a person again
    work(world)
    assert [n["submission"]["id"] for n in told(file)] == [first, first]


def test_what_rules_decide_is_not_told(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4: only what needs a person; and without a command or URL there is no job at all."""
    file = tmp_path / "tasks"
    places.setenv("LUKASA_REVIEW_COMMAND", f"{program(tmp_path, KEEPS)} '{file}'")
    world = opened(tmp_path, clock)
    world.put("workspace", "The sluice is opened with `make sluice`", importance=0.9)
    (made,) = reflect_now(world.ctx, chat=None).proposals
    assert made.state is AmendmentState.PROMOTED
    work(world)
    assert (told(file), world.jobs(kind="notify")) == ([], [])
    places.delenv("LUKASA_REVIEW_COMMAND")
    silent = opened(tmp_path, clock)
    doubtful(silent)
    assert silent.jobs(kind="notify") == []


def test_a_failure_is_reported_and_tried_again(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4, T1: triage is done all the same; the failure is telemetry, and the next attempt has the same id."""
    file, up = tmp_path / "tasks", tmp_path / "up"
    tool = program(tmp_path, f"test -e '{up}' || exit 3\n{KEEPS}")
    places.setenv("LUKASA_REVIEW_COMMAND", f"{tool} '{file}'")
    world = opened(tmp_path, clock)
    id = doubtful(world)
    run = run_next(world.ctx)
    assert run is not None
    assert (run.outcome, "ended with code 3" in run.error) == ("failed", True)
    assert [a.amendment.id for a in world.inbox().proposals] == [id]
    (point,) = world.ctx.local.points(TelemetryQuery(action="notify.failed"))
    assert (point.level, point.metadata["channel"], point.metadata["error"]) == ("error", "command", "notice-failed")
    up.touch()
    assert run.next_run is not None
    clock.time = run.next_run
    work(world)
    assert [n["id"] for n in told(file)] == [run.job.id]


def test_a_url_is_told_with_a_signature(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4: POST with the id and an HMAC of the body; an answer of 500 is tried again, with the same id and body."""
    with Listener(500) as listener:
        places.setenv("LUKASA_REVIEW_URL", listener.url)
        places.setenv("LUKASA_REVIEW_SECRET", "tide")
        world = opened(tmp_path, clock)
        doubtful(world)
        run = run_next(world.ctx)
        assert run is not None
        assert "answered 500" in run.error
        assert run.next_run is not None
        clock.time = run.next_run
        work(world)
        (_, first), (headers, second) = listener.got
    assert first == second
    assert headers["X-Lukasa-Notice"] == run.job.id == json.loads(second)["id"]
    assert headers["X-Lukasa-Signature"] == "sha256=" + hmac.new(b"tide", second, hashlib.sha256).hexdigest()


def test_each_of_two_channels_gets_it_once(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4: the URL fails and is tried again; the command, which had taken the notice, is not run again."""
    file = tmp_path / "tasks"
    with Listener(503) as listener:
        places.setenv("LUKASA_REVIEW_COMMAND", f"{program(tmp_path, KEEPS)} '{file}'")
        places.setenv("LUKASA_REVIEW_URL", listener.url)
        world = opened(tmp_path, clock)
        doubtful(world)
        run = run_next(world.ctx)
        assert run is not None
        assert run.next_run is not None
        clock.time = run.next_run
        work(world)
        assert (len(told(file)), len(listener.got)) == (1, 2)


def test_a_decision_made_meanwhile_needs_no_task(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """O4: somebody decided before the worker came: nobody is asked any more."""
    file = tmp_path / "tasks"
    places.setenv("LUKASA_REVIEW_COMMAND", f"{program(tmp_path, KEEPS)} '{file}'")
    world = opened(tmp_path, clock)
    world.reject(doubtful(world))
    work(world)
    assert told(file) == []
    assert [job.state for job in world.jobs(kind="notify")] == [JobState.DONE]


def test_a_wrong_setting_is_told_by_the_job(tmp_path: Path, clock: FixedClock, places: pytest.MonkeyPatch) -> None:
    """W9: the review itself is not touched by it."""
    places.setenv("LUKASA_REVIEW_URL", "http://example.com/hook")
    world = opened(tmp_path, clock)
    doubtful(world)
    run = run_next(world.ctx)
    assert run is not None
    assert "unencrypted" in run.error
    assert len(world.inbox().proposals) == 1


def test_from_the_command_line(tmp_path: Path) -> None:
    """U2: the environment of the process that triages and of the worker is enough."""
    file = tmp_path / "tasks"
    command = f"{program(tmp_path, KEEPS)} '{file}'"
    shell = Shell(
        tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none", "LUKASA_REVIEW_COMMAND": command}
    )
    shell.put("Ruben closes the northern pier in winter storms")
    shell.run("reflect")
    assert "notify" in shell.run("worker", "--once")
    assert [n["workspace"] for n in told(file)] == ["main"]


# Limits

NOTICE = Notice("n-1", b"{}")


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("sleep 60", "did not end within"),
        ("sleep 60 & exit 1", "ended with code 1"),
        ("yes", "wrote more than"),
    ],
)
def test_a_command_cannot_hold_a_worker(tmp_path: Path, body: str, complaint: str) -> None:
    """O4: one that does not end, leaves a process behind, or writes without end is stopped."""
    channel = CommandChannel((str(program(tmp_path, body)),), os.environ, seconds=2.0)
    with pytest.raises(NoticeFailed, match=complaint):
        channel.send(NOTICE)


def test_a_missing_command_is_a_failure(tmp_path: Path) -> None:
    """O4: it says what to correct."""
    with pytest.raises(NoticeFailed, match="is not there") as failure:
        CommandChannel((str(tmp_path / "nothing"),), os.environ).send(NOTICE)
    assert "LUKASA_REVIEW_COMMAND" in failure.value.fix


def test_a_server_that_sends_a_byte_at_a_time_cannot_hold_a_worker() -> None:
    """O4: the deadline is for the whole exchange, whatever arrives meanwhile."""
    over = threading.Event()

    class Drip(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
            while not over.wait(0.05):
                try:
                    self.wfile.write(b"a")
                    self.wfile.flush()
                except OSError:
                    return

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Drip)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    (channel,) = open_channels({"LUKASA_REVIEW_URL": f"http://localhost:{server.server_address[1]}/"})
    assert isinstance(channel, UrlChannel)
    channel._seconds = 0.5
    try:
        with pytest.raises(NoticeFailed, match="gave no answer"):
            channel.send(NOTICE)
    finally:
        over.set()
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize(
    "url", ["ftp://h/x", "https://", "https://u:p@h/x", "http://example.com/x", "https://h:x/", "https://h/a b"]
)
def test_what_is_no_address_is_refused(url: str) -> None:
    """W9: only http(s), and plain http only to this machine, unless the owner says that the network is theirs."""
    with pytest.raises(InvalidInput):
        open_channels({"LUKASA_REVIEW_URL": url})
    assert open_channels({"LUKASA_REVIEW_URL": "http://example.com/x", "LUKASA_REVIEW_INSECURE": "1"})


def test_a_command_that_cannot_be_read_is_refused() -> None:
    """W9: an open quote is an error, not another program."""
    with pytest.raises(InvalidInput):
        open_channels({"LUKASA_REVIEW_COMMAND": "tool 'open"})
