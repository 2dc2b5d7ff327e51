"""`lukasa serve` as a process: what it leaves in files, in the process list and in its output, and how it stops."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.helpers.cli import COMMAND, Shell
from tests.helpers.processes import until
from tests.helpers.server import Client


@contextmanager
def served(shell: Shell, *args: str) -> Iterator[tuple[subprocess.Popen[str], int, str]]:
    """A server process, its port, and its link."""
    process = subprocess.Popen(
        [*COMMAND, "serve", "--port", "0", "--no-open", *args],
        env=shell.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=0,
    )
    try:
        assert process.stdout is not None
        link = process.stdout.readline().split()[-1]
        yield process, int(link.split(":")[2].partition("/")[0]), link
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=30)


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_a_server_from_start_to_stop(shell: Shell) -> None:
    """T61, U4: private files whatever the umask, tokens and codes nowhere but where they belong, revoked at once."""
    with served(shell) as (process, port, link):
        token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
        client = Client(port, {"authorization": f"Bearer {token}"})
        path = "/v1/workspaces/main/entries"
        assert client.post(path, {"content": "The harbour freezes in January"}, idempotency_key="k").status == 201
        assert client.get(f"{path}?q=harbour").json["entries"][0]["content"] == "The harbour freezes in January"
        assert client.get(f"{path}/nonsense").status == 422

        code = link.partition("#enter=")[2]
        entered = Client(port).post("/session", {"code": code})
        cookie = entered.headers["set-cookie"].partition(";")[0].partition("=")[2]
        secrets = [token[41:], code, cookie, entered.json["csrf"]]
        for name in ("cmdline", "environ"):
            seen = Path(f"/proc/{process.pid}/{name}").read_bytes()
            assert [s for s in secrets if s.encode() in seen] == []
        for file in sorted(shell.data.rglob("*")):
            mode = stat.S_IMODE(file.stat().st_mode)
            assert mode == (0o700 if file.is_dir() else 0o600), f"{file} {mode:o}"
            if file.is_file():
                content = file.read_bytes()
                assert [s for s in secrets if s.encode() in content] == [], file

        shell.run("grant", "revoke", "claude")
        assert client.get(path).status == 401
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert err == ""
    assert [s for s in secrets if s in out] == []
    shell.run("doctor")


def test_a_stop_finishes_what_is_under_way(shell: Shell) -> None:
    """U4: a second server can start at once on the same files and port, and everything answered is there."""
    with served(shell) as (process, port, _):
        token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
        client = Client(port, {"authorization": f"Bearer {token}"})
        made = [client.post("/v1/workspaces/main/entries", {"content": f"Crate {n} is sealed"}) for n in range(5)]
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=10)
        assert process.returncode == 0
    with served(shell, "--port", str(port), "--no-worker") as (_, again, _):
        assert again == port
        for answer in made:
            assert client.get(f"/v1/workspaces/main/entries/{answer.json['id']}").status == 200


def test_a_kill_loses_nothing_that_was_answered(shell: Shell) -> None:
    """U4, T01: a server that is killed has kept every write that it answered."""
    with served(shell) as (process, port, _):
        token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
        client = Client(port, {"authorization": f"Bearer {token}"})
        made = [client.post("/v1/workspaces/main/entries", {"content": f"Sack {n} is full"}).json for n in range(3)]
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert [shell.json("get", one["id"])["content"] for one in made] == [f"Sack {n} is full" for n in range(3)]


def test_the_browser_is_given_no_code(shell: Shell, tmp_path: Path) -> None:
    """T61: what opens the page stands in the process list, so that it names a private file and not the link."""
    told = tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > {told}.new && mv {told}.new {told}\n')
    browser.chmod(0o700)
    shell.env["BROWSER"] = f"{browser} %s"
    with served(shell, "--open") as (process, port, link):
        until(told.exists)
        assert Client(port).get("/health").status == 200
        address = told.read_text().strip()
        assert link.partition("#enter=")[2] not in address
        file = Path(address.removeprefix("file://"))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert link in file.read_text()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    assert not file.exists()


def entered(link: str) -> int:
    """What the page gets for the code of a link."""
    port, _, code = link.removeprefix("http://127.0.0.1:").partition("/#enter=")
    return Client(int(port)).post("/session", {"code": code}).status


def test_another_link_from_a_server_that_runs(shell: Shell) -> None:
    """U5, T61: each link opens the page once, and they are had where nobody but the folder's owner gets."""
    with served(shell) as (process, port, first):
        assert Client(port).get("/health").status == 200
        told = [shell.json("link"), shell.json("link", "--port", str(port))]
        assert {one["url"] for one in told} == {f"http://127.0.0.1:{port}"}
        links = [first, *(one["link"] for one in told), shell.run("link").split()[0]]
        assert len(set(links)) == 4
        assert [entered(link) for link in links] == [201] * 4
        assert [entered(link) for link in links] == [401] * 4
        (where,) = (shell.data / "account").glob("*.sock")
        assert stat.S_IMODE(where.stat().st_mode) == 0o600
        assert stat.S_IMODE(where.parent.stat().st_mode) == 0o700
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    assert not where.exists()


def test_no_server_no_link(shell: Shell) -> None:
    """U5: nothing was ever there, the server was killed, or it is on another port: said, with what to do."""
    for options in ((), ("--port", "7437")):
        assert "no server runs" in shell.fails("link", *options, code=1)["message"]
    assert not shell.data.exists()
    with served(shell) as (process, port, _):
        assert Client(port).get("/health").status == 200
        assert shell.call("link", "--port", str(port - 1)).exit_code == 1
        os.kill(process.pid, signal.SIGKILL)
        process.wait(30)
    assert list((shell.data / "account").glob("*.sock"))
    assert "no server runs" in shell.call("link").stderr
    with served(shell, "--port", str(port)) as (_, again, _):
        assert Client(again).get("/health").status == 200
        assert entered(shell.json("link")["link"]) == 201


def test_several_servers(shell: Shell) -> None:
    """U5: with two servers on one memory the port says which is meant."""
    with served(shell) as (_, one, _), served(shell, "--no-worker") as (_, two, _):
        for port in (one, two):
            assert Client(port).get("/health").status == 200
        told = shell.fails("link", code=2)
        assert f"{min(one, two)}, {max(one, two)}" in told["fix"]
        for port in (one, two):
            assert shell.json("link", "--port", str(port))["url"] == f"http://127.0.0.1:{port}"


def test_a_deep_folder(tmp_path: Path) -> None:
    """U5: the address of a socket is short, and a folder's need not be."""
    shell = Shell(tmp_path / ("deep" * 20) / ("deeper" * 20))
    shell.data.mkdir(parents=True)
    with served(shell) as (_, port, _):
        assert Client(port).get("/health").status == 200
        assert entered(shell.json("link")["link"]) == 201


def test_where_no_socket_can_be(shell: Shell) -> None:
    """U5: a folder that takes no socket costs the further links, which is said, and nothing else."""
    with served(shell) as (process, port, _):
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=10)
    (shell.data / "account" / f"serve-{port}.sock").mkdir()
    with served(shell, "--port", str(port)) as (process, _, first):
        assert entered(first) == 201
        shell.fails("link", code=1)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=10)
    assert process.returncode == 0
    assert "`lukasa link` will not work" in err


def test_without_the_extra_it_says_what_to_install(shell: Shell, tmp_path: Path) -> None:
    """Install: a core without the server's packages names the extra."""
    blocked = tmp_path / "sitecustomize.py"
    blocked.write_text("import sys\nsys.modules['uvicorn'] = None\n")
    env = shell.environment()
    env["PYTHONPATH"] = os.pathsep.join([str(tmp_path), env["PYTHONPATH"]])
    done = subprocess.run(
        [*COMMAND, "serve", "--no-open"], env=env, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert "lukasa[serve]" in done.stderr
