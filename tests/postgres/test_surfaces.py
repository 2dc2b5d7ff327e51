"""All surfaces on a PostgreSQL database: one memory for the command line, servers, workers, chats and LangGraph."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, TypedDict

import httpx2
import psycopg
import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore
from mcp.client import Client as McpClient
from mcp.client.streamable_http import streamable_http_client
from psycopg.conninfo import conninfo_to_dict

from lukasa import Lukasa, Memo
from lukasa.langgraph import LukasaStore
from lukasa.model.errors import InvalidInput, StoreError, StoreMissing
from lukasa.providers.chat.offline import OfflineChat
from lukasa.service.jobs import queue
from lukasa.spec import preset_text
from lukasa.surfaces.langgraph.graph import Agent, Making
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.curating import promote
from tests.helpers.making import FixedClock
from tests.helpers.mcp import called, piped, session, wait
from tests.helpers.processes import until
from tests.helpers.server import Client

QUIET = {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"}
NOTES = (
    "The blue lantern was carried to the north attic",
    "Ines oiled the hinge of the cellar door",
    "A letter came from the harbour master about the mooring",
)
ON_POSTGRES = preset_text("default").replace('store = "sqlite"', 'store = "postgres"')


@pytest.fixture
def shell(tmp_path: Path, database_url: str) -> Shell:
    return Shell(tmp_path / "data", {**QUIET, "LUKASA_DATABASE": database_url})


@pytest.fixture
def elsewhere(shell: Shell, tmp_path: Path) -> Shell:
    """Another machine with the same database: its data folder has nothing of the first."""
    return replace(shell, data=tmp_path / "elsewhere")


@contextmanager
def served(shell: Shell, *args: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """A server process, and what it printed when it was ready."""
    command = [*COMMAND, "serve", "--port", "0", "--no-open", "--json", *args]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, env=shell.environment(), stdout=pipe, stderr=pipe, text=True) as process:
        try:
            assert process.stdout is not None
            told = ""
            while not told.endswith("}\n") and (line := process.stdout.readline()):
                told += line
            yield process, json.loads(told)
        finally:
            if process.poll() is None:
                process.kill()


def client(told: dict[str, str], token: str) -> Client:
    return Client(port(told), {"authorization": f"Bearer {token}"})


def port(told: dict[str, str]) -> int:
    return int(told["url"].rpartition(":")[2])


def password(url: str) -> str:
    found = conninfo_to_dict(url)["password"]
    assert isinstance(found, str)
    return found


# One memory


def test_a_text_of_the_command_line_is_read_by_http_and_mcp(shell: Shell) -> None:
    """U2, U3, U4: put by a command, it is found through HTTP and both kinds of MCP, and the page opens."""
    shell.put("The harbour freezes in January")
    token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]

    async def over_http() -> Any:
        async with (
            httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=60) as http,
            McpClient(streamable_http_client(f"{told['url']}/mcp/", http_client=http)) as visitor,
        ):
            return await called(visitor, "memory_read", query="harbour")

    with served(shell) as (_, told):
        asked = client(told, token).post("/v1/workspaces/main/read", {"query": "harbour"}).json
        assert asked["hits"][0]["entry"]["content"] == "The harbour freezes in January"
        assert wait(over_http)["hits"][0]["entry"]["content"] == "The harbour freezes in January"
        code = told["link"].partition("#enter=")[2]
        entered = Client(port(told)).post("/session", {"code": code})
        page = Client(port(told), {"cookie": entered.headers["set-cookie"].partition(";")[0]})
        assert b"<title>" in page.get("/").body
        listed = page.get("/v1/workspaces/main/entries").json["entries"]
        assert [entry["content"] for entry in listed] == ["The harbour freezes in January"]

    async def over_a_pipe(visitor: McpClient) -> Any:
        return await called(visitor, "memory_read", query="harbour")

    found = session(lambda: piped(shell), over_a_pipe)
    assert found["hits"][0]["entry"]["content"] == "The harbour freezes in January"


def test_two_servers_answer_from_one_memory(shell: Shell, elsewhere: Shell) -> None:
    """X3: servers of two machines take the same tokens, and each sees what the other wrote, at once."""
    token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
    path = "/v1/workspaces/main/entries"
    with served(shell, "--no-worker") as (_, one), served(elsewhere, "--no-worker") as (_, two):
        for number, (writer, reader) in enumerate([(one, two), (two, one), (one, two)]):
            made = client(writer, token).post(path, {"content": f"Crate {number} is sealed"}).json
            seen = client(reader, token).post("/v1/workspaces/main/read", {"query": f"crate {number}"}).json
            assert seen["hits"][0]["entry"]["id"] == made["id"]
        elsewhere.run("grant", "revoke", "claude")
        assert [client(server, token).get(path).status for server in (one, two)] == [401, 401]


def test_a_server_stops_and_another_goes_on(shell: Shell, elsewhere: Shell) -> None:
    """U4: SIGTERM ends a server within its time without a word, and what it answered is kept."""
    token = shell.json("grant", "create", "claude", "--can", "read,write")["token"]
    with served(shell) as (process, told):
        made = client(told, token).post("/v1/workspaces/main/entries", {"content": "Sack 1 is full"}).json
        process.send_signal(signal.SIGTERM)
        _, said = process.communicate(timeout=15)
        assert (process.returncode, said) == (0, "")
    assert elsewhere.json("get", made["id"])["content"] == "Sack 1 is full"


def test_a_worker_consolidates(shell: Shell, elsewhere: Shell) -> None:
    """O5: what one machine wrote and asked for, a worker of another does, and all see the result."""
    clock = FixedClock(datetime.now(UTC) - timedelta(days=2))
    with Lukasa.open(shell.data, database=shell.env["LUKASA_DATABASE"], embedder="none", clock=clock) as memory:
        world = memory.workspace("main")
        world.put_many("workspace", [Memo(text, kind="episodic") for text in NOTES])
        queue.ask(world.ctx, "consolidate", None)
    assert '"consolidated": 1' in elsewhere.run("worker", "--once", "--json")
    (made,) = shell.json("list", "--source", "consolidation")["entries"]
    assert all(text in made["content"] for text in NOTES)


def test_the_curated_file_of_another_machine_is_behind_and_no_edit(shell: Shell, elsewhere: Shell) -> None:
    """K1: each machine has a file of the page; an old one takes back nothing, and a person's edit of it is kept."""
    url = shell.env["LUKASA_DATABASE"]
    with (
        Lukasa.open(shell.data, database=url, embedder="none") as one,
        Lukasa.open(elsewhere.data, database=url, embedder="none") as two,
    ):
        here, there = one.workspace("watched", preset="observer"), two.workspace("watched")
        promote(here, "Deploys go through the gate.")
        there.curated.export()
        promote(here, "Backups run at night.")
        promote(there, "The crane lifts forty tonnes.")
        lines = ("Deploys go through the gate.", "Backups run at night.", "The crane lifts forty tonnes.")
        assert all(line in there.curated.text for line in lines)
        file = here.curated.path
        assert file is not None
        file.write_text(f"{file.read_text()}\nMy own note.\n")
        promote(here, "The harbour freezes.")
        assert all(line in there.curated.text for line in (*lines, "My own note.", "The harbour freezes."))


def test_two_accounts_do_not_see_each_other(shell: Shell) -> None:
    """S4: each account of a database has its own workspaces, tiers, pages and grants."""
    other = replace(shell, env={**shell.env, "LUKASA_ACCOUNT": "globex"})
    for one, name in ((shell, "acme"), (other, "globex")):
        one.run("workspace", "create", f"{name}-desk")
        one.put(f"The villain of {name} is Malachar", "--tier", "account")
        one.put(f"The ship of {name} is the Vey")
        one.run("grant", "create", name)
    for one, name in ((shell, "acme"), (other, "globex")):
        assert [w["name"] for w in one.json("workspace", "list")["workspaces"]] == [f"{name}-desk", "main"]
        for question in ("villain Malachar", "ship Vey"):
            found = [hit["entry"]["content"] for hit in one.json("read", question)["hits"]]
            assert found
            assert all(name in text for text in found)
        assert [grant["name"] for grant in one.json("grant", "list")["grants"]] == [name]
    token = shell.json("grant", "create", "reader")["token"]
    with served(other) as (_, told):
        assert client(told, token).get("/v1/workspaces/main/entries").status == 401


def test_the_shipped_presets_are_kept_in_the_database(shell: Shell, elsewhere: Shell) -> None:
    """S4: a database that is named wins over the presets' `sqlite`; no database file is made."""
    for preset in ("default", "observer", "tiered", "workspace"):
        shell.run("workspace", "create", preset, "--preset", preset)
        shell.run("-w", preset, "put", f"The {preset} lantern is green", "--kind", "semantic")
        found = elsewhere.json("-w", preset, "read", "lantern", "--held")["hits"]
        assert [hit["entry"]["content"] for hit in found] == [f"The {preset} lantern is green"]
    assert [path for data in (shell.data, elsewhere.data) for path in data.rglob("*.db*")] == []


def test_memory_in_the_process_stays_there(shell: Shell) -> None:
    """S4: a spec with `store = "memory"` keeps its promise on a database too."""
    spec = preset_text("default").replace('store = "sqlite"', 'store = "memory"')
    url = shell.env["LUKASA_DATABASE"]
    with Lukasa.open(shell.data, database=url, embedder="none") as memory:
        memory.workspace("brief", spec=spec).put("workspace", "The lantern is green")
        assert memory.folder(memory.workspace("brief")) is None
    with Lukasa.open(shell.data, database=url, embedder="none") as memory:
        assert memory.workspace("brief").entries("workspace") == []


# A spec that asks for PostgreSQL


def test_a_spec_that_asks_for_postgresql(shell: Shell, tmp_path: Path) -> None:
    """S4: it is kept in the database; without one nothing is made, where `sqlite` makes a file."""
    without = Shell(tmp_path / "sqlite", dict(QUIET))
    error = without.fails("workspace", "create", "desk", "--spec", "-", input=ON_POSTGRES, code=1)
    assert "LUKASA_DATABASE" in error["fix"]
    assert without.json("workspace", "list")["workspaces"] == []
    without.put("The lantern is red")
    assert len(list(without.data.glob("workspaces/*/memory.db"))) == 1
    shell.run("workspace", "create", "desk", "--spec", "-", input=ON_POSTGRES)
    shell.run("-w", "desk", "put", "The lantern is green")
    assert shell.json("-w", "desk", "read", "lantern")["hits"][0]["entry"]["content"] == "The lantern is green"


def test_a_forgotten_database_begins_no_second_memory(shell: Shell) -> None:
    """S4: files of workspaces without a database are no empty memory; the error names the setting."""
    shell.put("The lantern is green")
    error = Shell(shell.data, dict(QUIET)).fails("read", "lantern", code=1)
    assert (error["code"], "LUKASA_DATABASE" in error["fix"]) == ("store-missing", True)
    with pytest.raises(StoreMissing):
        Lukasa.open(shell.data, embedder="none")
    assert shell.json("read", "lantern")["hits"]


def test_an_account_needs_a_database(tmp_path: Path) -> None:
    """S4: a data folder has one account; a name for another one is refused and not passed over."""
    with pytest.raises(InvalidInput, match="one account"):
        Lukasa.open(tmp_path / "data", account="globex", embedder="none")


# Chat and LangGraph


def test_a_chat_remembers_across_conversations_and_restarts(shell: Shell, elsewhere: Shell) -> None:
    """L3: each call is a process; a later conversation recalls, and a kept one goes on where it was, elsewhere too."""
    told = shell.process("chat", "Remember that the villain is called Malachar", "--json")
    assert told.returncode == 0, told.stderr
    asked = elsewhere.process("chat", "Who is the villain?", "--json")
    assert "Malachar" in json.loads(asked.stdout)["reply"]
    kept = shell.process("chat", "Keep track of this: I have edited 3 pages", "--keep", "--json")
    ref = json.loads(kept.stdout)["conversation"]
    counted = elsewhere.process("chat", "--resume", "last", "I edited 2 more pages. How many is that?", "--json")
    said = json.loads(counted.stdout)
    assert (said["conversation"], "5" in said["reply"]) == (ref, True)
    assert [path.name for path in shell.data.rglob("c*.db")] == []


def test_a_chat_keeps_its_state_in_langgraphs_schema(shell: Shell) -> None:
    """L3, H1: its messages are LangGraph's rows in a schema of their own, and a purge of the thread removes them."""
    url = shell.env["LUKASA_DATABASE"]
    with Lukasa.open(shell.data, database=url, embedder="none") as memory:
        world = memory.workspace("main")
        with Agent(world.acting(agent="assistant"), Making(OfflineChat()), threads=memory.threads(world)) as agent:
            agent.turn("Keep track of this: the marrowgrind has 3 tails")
            agent.leave()
            ref = agent.conversation.ref_code
        with psycopg.connect(url) as db:
            assert db.execute("SELECT count(*) > 0 FROM lukasa_checkpoints.checkpoints").fetchone() == (True,)
        plan = world.purge_plan(ref)
        assert plan.counts["checkpoints"] > 0
        assert world.purge_execute(ref, confirm=plan.digest).swept
        with psycopg.connect(url) as db:
            for table in ("checkpoints", "checkpoint_blobs", "checkpoint_writes"):
                left = db.execute(f"SELECT count(*) FROM lukasa_checkpoints.{table}".encode()).fetchone()
                assert left == (0,), table


def test_a_conversation_has_one_leader_on_all_machines(shell: Shell, elsewhere: Shell) -> None:
    """L3: another machine neither takes up a chat that runs, nor ends it as one that died; later it can take it up."""
    url = shell.env["LUKASA_DATABASE"]
    with (
        Lukasa.open(shell.data, database=url, embedder="none") as here,
        Lukasa.open(elsewhere.data, database=url, embedder="none") as there,
    ):
        world, same = here.workspace("main"), there.workspace("main")
        mine, theirs = here.threads(world), there.threads(same)
        assert mine is not None
        assert theirs is not None
        with Agent(world.acting(agent="assistant"), Making(OfflineChat()), threads=mine) as talk:
            talk.turn("hello")
            assert theirs.led(talk.conversation)
            making = Making(OfflineChat())
            with pytest.raises(StoreError, match="another process"):
                Agent(same.acting(agent="assistant"), making, threads=theirs, resume=talk.conversation.id)
            elsewhere.run("chat", "What have you got so far?")
            assert str(world.conversation(talk.conversation.id).status) == "active"
            talk.leave()
        assert not theirs.led(talk.conversation)
        with Agent(same.acting(agent="assistant"), making, threads=theirs, resume=talk.conversation.id) as again:
            again.end()


def test_a_spec_without_a_checkpointer_makes_no_schema(shell: Shell) -> None:
    """L3: with `checkpointer = "none"` a chat leaves no row of LangGraph's."""
    bare = preset_text("default").replace('checkpointer = "separate-file"', 'checkpointer = "none"')
    shell.run("workspace", "create", "bare", "--spec", "-", input=bare)
    shell.run("-w", "bare", "chat", "Remember that the villain is called Malachar")
    with psycopg.connect(shell.env["LUKASA_DATABASE"]) as db:
        assert db.execute("SELECT to_regnamespace('lukasa_checkpoints')").fetchone() == (None,)


class Counted(TypedDict, total=False):
    count: int


def test_a_graph_with_our_store_and_langgraphs_checkpointer(shell: Shell, elsewhere: Shell) -> None:
    """L3: a graph keeps values in memory and its state beside it; another process finds both."""
    url = shell.env["LUKASA_DATABASE"]

    def step(state: Counted, *, store: BaseStore) -> Counted:
        seen = store.get(("graph",), "runs")
        count = (seen.value["count"] if seen else 0) + 1
        store.put(("graph",), "runs", {"count": count})
        return {"count": state.get("count", 0) + 10}

    for number, data in enumerate((shell.data, elsewhere.data), start=1):
        with (
            Lukasa.open(data, database=url, embedder="none") as memory,
            LukasaStore.open(data, "graphs", database=url, embedder="none") as store,
        ):
            threads = memory.threads(memory.workspace("graphs"))
            assert threads is not None
            with threads.saver() as saver:
                graph = StateGraph(Counted).add_node("step", step).add_edge(START, "step").add_edge("step", END)
                built = graph.compile(checkpointer=saver, store=store)
                before = built.get_state({"configurable": {"thread_id": "t"}}).values.get("count", 0)
                after = built.invoke({"count": before}, {"configurable": {"thread_id": "t"}})
                kept = store.get(("graph",), "runs")
            assert after == {"count": 10 * number}
            assert kept is not None
            assert kept.value == {"count": number}


# Hooks and installing


def test_a_hook_injects_from_the_database(shell: Shell, elsewhere: Shell, tmp_path: Path) -> None:
    """B9: a session on one machine is given what was stored on another."""
    shell.run("workspace", "create", "light")
    shell.run("-w", "light", "put", "Ines repaired the lantern", "--importance", "0.9")
    event = {"hook_event_name": "SessionStart", "source": "startup", "session_id": "s1", "cwd": str(tmp_path)}
    told = elsewhere.process(
        "-w", "light", "hook", "session-start", "--format", "text", input=json.dumps(event).encode()
    )
    assert b"Ines repaired the lantern" in told.stdout


def test_a_hook_starts_a_worker_that_finds_the_database(shell: Shell, tmp_path: Path) -> None:
    """B9: the worker gets the database that the hook was given as an option, though not as an option itself."""
    url = shell.env.pop("LUKASA_DATABASE")
    record = tmp_path / "session.jsonl"
    said = {"type": "user", "uuid": "u1", "message": {"role": "user", "content": "We decided to ship on Mondays."}}
    record.write_text(json.dumps(said) + "\n")
    event = {"hook_event_name": "SessionEnd", "reason": "exit", "session_id": "s1", "transcript_path": str(record)}
    options = ("--database", url, "-w", "light", "hook", "session-end")
    body = json.dumps({**event, "cwd": str(tmp_path)}).encode()
    told = shell.process(*options, input=body, LUKASA_WORKER="on")
    assert (told.returncode, told.stderr) == (0, b"")
    with Lukasa.open(shell.data, database=url, embedder="none") as memory:
        world = memory.workspace("light")
        until(lambda: any(job.kind == "observe" for job in world.jobs(state="done")))


def test_a_password_is_written_into_no_settings(shell: Shell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """U2: the settings of a harness get a URL without a password, and one with a password is refused."""
    monkeypatch.setenv("HOME", str(tmp_path))
    url = shell.env.pop("LUKASA_DATABASE")
    secret = password(url)
    error = shell.fails("--database", url, "install", "cursor", "--yes", code=2)
    assert ".pgpass" in error["fix"]
    assert secret not in json.dumps(error)
    assert not (tmp_path / ".cursor").exists()
    plain = url.replace(f":{secret}@", "@")
    shell.run("--database", plain, "--account-name", "acme", "install", "cursor", "--yes")
    written = json.loads((tmp_path / ".cursor" / "mcp.json").read_text())["mcpServers"]["lukasa"]["args"]
    first = written.index("--database")
    assert written[first : first + 4] == ["--database", plain, "--account-name", "acme"]


# What is shown, and what goes wrong


def test_no_output_shows_the_password(shell: Shell) -> None:
    """T61: doctor, stats, serve and the follow-ups of the log name the database without its password."""
    url = shell.env["LUKASA_DATABASE"]
    secret, shown = password(url), url.replace(f":{password(url)}@", ":***@")
    shell.put("The lantern is green")
    told = shell.run("doctor")
    assert shown in told
    assert shell.json("doctor")["database"] == shown
    said = [told, shell.run("stats"), shell.run("doctor", "--json"), shell.run("slog", "query", "--json")]
    with served(shell) as (_, printed):
        assert printed["database"] == shown
        said.append(json.dumps(printed))
    with Lukasa.open(shell.data, database=url, embedder="none") as memory:
        said.append(repr(memory.settings))
    assert not [text for text in said if secret in text]
    assert not [file for file in shell.data.rglob("*") if file.is_file() and secret.encode() in file.read_bytes()]


WRONG = {
    "another database": ("mysql://ada:{secret}@localhost/memory", 2),
    "no URL": ("host=localhost password={secret}", 2),
    "a line break": ("postgresql://ada:{secret}@local\nhost/memory", 2),
    "nobody there": ("postgresql://ada:{secret}@127.0.0.1:1/memory", 1),
    "a wrong password": ("postgresql://{user}:not-{secret}@{host}:{port}/{dbname}", 1),
    "no such database": ("postgresql://{user}:{secret}@{host}:{port}/nowhere", 1),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_database_that_cannot_be_used(shell: Shell, name: str) -> None:
    """U2: one sentence and a fix, with the exit code of its kind; no traceback, no password, no database file."""
    good = shell.env.pop("LUKASA_DATABASE")
    form, code = WRONG[name]
    url = form.format(secret=password(good), **conninfo_to_dict(good))
    for command in (("put", "The lantern is green"), ("doctor",), ("serve", "--port", "0", "--no-open")):
        error = shell.fails("--database", url, *command, code=code)
        assert error["fix"]
        told = shell.call("--database", url, *command)
        assert len(told.stderr.splitlines()) == 2
        assert password(good) not in told.output
    assert not list(shell.data.rglob("*.db"))


def test_a_database_that_may_not_be_written(shell: Shell) -> None:
    """U2: of a newer Lukasa, or read-only: every command says so in one sentence with a fix, and changes nothing."""
    url = shell.env["LUKASA_DATABASE"]
    shell.put("The lantern is green")
    name = conninfo_to_dict(url)["dbname"]
    put = ("put", "The lantern is red")
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute("INSERT INTO lukasa.migrations VALUES (99, 'next', '', 99, '')")
        assert "upgrade Lukasa" in shell.fails(*put, code=1)["fix"]
        assert len(shell.call(*put).stderr.splitlines()) == 2
        admin.execute("DELETE FROM lukasa.migrations WHERE number = 99")
        admin.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on".encode())
        assert "primary" in shell.fails(*put, code=1)["fix"]
        assert len(shell.call(*put).stderr.splitlines()) == 2
        admin.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only".encode())
    assert [one["content"] for one in shell.json("list")["entries"]] == ["The lantern is green"]
