"""`lukasa mcp` as a process of its own, used by the official client over a pipe (U3, B11, X4)."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client

from lukasa import Lukasa
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.mcp import called, piped, refused, session

WRITES = 50


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def opened(shell: Shell) -> Lukasa:
    return Lukasa.open(shell.data, embedder="none", principal="ada")


def test_a_life_of_a_memory(shell: Shell) -> None:
    """U3, B11, X4: remember, recall, correct, forget and look at a scrub, as an agent that owns nothing."""

    async def work(client: Client) -> None:
        stored = await called(client, "memory_put", content="The villain is called Malachar.")
        entry = stored["entry"]
        assert (entry["origin"]["surface"], entry["origin"]["transport"]) == ("mcp", "stdio")
        assert (entry["origin"]["principal"], entry["origin"]["trust"]) == ("editor", "agent")
        assert (entry["curator"], entry["authority"]) == ("agent", "inform")
        (hit,) = (await called(client, "memory_read", query="what is the villain called?"))["hits"]
        assert hit["entry"]["id"] == stored["id"]
        await called(client, "memory_update", id=stored["id"], content="The villain is called Morgana.")
        stale = await refused(client, "memory_update", id=stored["id"], importance=0.9, expected_version=1)
        assert "fix: " in stale
        plan = await called(client, "memory_scrub_plan", mode="full", tier="workspace")
        assert plan["lines"]
        assert "does not include 'scrub_full'" in await refused(
            client, "memory_scrub_execute", mode="full", tier="workspace", confirm=plan["digest"]
        )
        assert "account" in await refused(client, "memory_put", content="Ada likes tea.", tier="account")
        assert "no workspace" in await refused(client, "memory_list", workspace="private")
        await called(client, "memory_forget", id=stored["id"])
        assert (await called(client, "memory_read", query="what is the villain called?"))["hits"] == []

    with opened(shell) as memory:
        memory.workspace("private").put("workspace", "Nobody's business but Ada's.")
    can = "read,write,forget,scrub_plan"
    session(lambda: piped(shell, "--agent", "editor", "--can", can), work)


def test_many_writes_at_once(shell: Shell) -> None:
    """U3, T01: fifty writes through one server at the same time, over the older protocol: all are stored."""

    async def work(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for n in range(WRITES):
                group.start_soon(client.call_tool, "memory_put", {"content": f"The ship number {n} is called S{n}x."})

    session(lambda: piped(shell, mode="legacy"), work)
    with opened(shell) as memory:
        stored = memory.workspace("main").entries("workspace", limit=200, everything=True)
        assert {entry.content for entry in stored} == {f"The ship number {n} is called S{n}x." for n in range(WRITES)}


PRINTING = """
import os, sys
from lukasa import Lukasa
from lukasa.surfaces.mcp import server

memory = Lukasa.open(embedder="none")
memory.workspace("main")
given = memory.access.lend("loud", workspaces=["main"], can=["read", "write"], surface="mcp", transport="stdio")

def identify(ctx):
    print("noise on the line", flush=True)
    os.write(1, b"and below Python\\n")
    os.system("echo from a child")
    sys.stderr.write(f"pid {os.getpid()}\\n")
    return given

server.serve_stdio(server.build(server.Dispatcher(memory.access, identify, "main")))
"""


def test_prints_do_not_reach_the_client(shell: Shell) -> None:
    """U3: stdout is the protocol's; what anything prints meanwhile goes to stderr."""

    async def work(client: Client) -> Any:
        await called(client, "memory_put", content="The villain is called Malachar.")
        return await called(client, "memory_list")

    assert len(session(lambda: piped(shell, script=PRINTING), work)["entries"]) == 1


KILLABLE = """
import os
from lukasa import Lukasa
from lukasa.surfaces.mcp import server

memory = Lukasa.open(embedder="none")
memory.workspace("main")
given = memory.access.lend("claude", workspaces=["main"], can=["read", "write"], surface="mcp", transport="stdio")
open(os.environ["PID_FILE"], "w").write(str(os.getpid()))
server.serve_stdio(server.build(server.Dispatcher(memory.access, lambda ctx: given, "main")))
"""


def test_a_killed_server_loses_nothing_it_acknowledged(shell: Shell, tmp_path: Path) -> None:
    """U3, T01: kill -9 right after an acknowledgement; what was acknowledged is there."""
    pid_file = tmp_path / "pid"

    async def work(client: Client) -> list[str]:
        ids = [(await called(client, "memory_put", content=f"The ship {n} is called S{n}x."))["id"] for n in range(5)]
        os.kill(int(pid_file.read_text()), signal.SIGKILL)
        return ids

    ids = session(lambda: piped(shell, script=KILLABLE, PID_FILE=str(pid_file)), work)
    with opened(shell) as memory:
        world = memory.workspace("main")
        assert {entry.id for entry in world.entries("workspace")} == set(ids)
        assert world.check() == []


HELLO = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(shell: Shell, number: signal.Signals) -> None:
    """U3: Ctrl-C and a harness's SIGTERM end a server that waits for its client, without a word on stdout."""
    process = subprocess.Popen(
        [*COMMAND, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell.environment(),
    )
    with process as server:
        assert server.stdin is not None
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdin.write(HELLO)
        server.stdin.flush()
        assert b'"id":1' in server.stdout.readline()
        server.send_signal(number)
        assert server.wait(60) == -number
        assert server.stdout.read() == server.stderr.read() == b""


def test_a_token_is_asked_for_each_time(shell: Shell) -> None:
    """X4: with --token-env the client is the grant's, in the grant's workspace, and is out once it is revoked."""
    with opened(shell) as memory:
        memory.workspace("novel")
        issued = memory.access.create("claude", workspaces=["novel"], can=["read", "write"])

        async def work(client: Client) -> None:
            stored = await called(client, "memory_put", content="The villain is called Malachar.")
            assert stored["entry"]["origin"]["principal"] == "claude"
            assert "does not include 'forget'" in await refused(client, "memory_forget", id=stored["id"])
            memory.access.revoke("claude")
            assert "no valid token" in await refused(client, "memory_list")

        session(lambda: piped(shell, "--token-env", "MY_TOKEN", MY_TOKEN=issued.token), work)
        assert len(memory.workspace("novel").entries("workspace")) == 1


def test_as_the_owner_only_if_told(shell: Shell) -> None:
    """X4, B2: `--as owner` writes as the author; nothing else does."""

    async def work(client: Client) -> Any:
        stored = await called(client, "memory_put", content="Chapters end with a question.", tier="account")
        return stored["entry"]

    entry = session(lambda: piped(shell, "--as", "owner"), work)
    assert (entry["curator"], entry["origin"]["trust"], entry["tier"]) == ("author", "author", "account")


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--can", "fly"], "fly"),
        (["--can", "grants"], "cannot be granted"),
        (["--can", ","], "no capability is given"),
        (["--as", "owner", "--can", ""], "no capability is given"),
        (["--as", "owner", "--can", "fly"], "fly"),
        (["--tier", "nowhere"], "no tier"),
        (["--workspace", "nowhere"], "no workspace"),
        (["--agent", "lukasa"], "that name is taken"),
        (["--token-env", "LUKASA_NOT_SET"], "is empty"),
        (["--token-env", "HOME"], "no valid token"),
        (["--token-env", "HOME", "--as", "owner"], "takes everything from its grant"),
        (["--as", "owner", "--agent", "x"], "remove --agent"),
        (["--scope", "org_id=acme"], "unknown scope key"),
    ],
)
def test_a_wrong_start_is_told(shell: Shell, options: list[str], told: str) -> None:
    """U3, W9: what cannot be is said before anything is served, on stderr, with a fix."""
    result = shell.call("mcp", *options)
    assert result.exit_code in (1, 2)
    assert told in result.stderr
    assert "fix: " in result.stderr
    assert result.stdout == ""
