"""`lukasa move`: the memory of an account, between a data folder and a database, whole and unchanged."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from lukasa import Lukasa
from lukasa.app import Settings, moving
from lukasa.model.errors import (
    Conflict,
    InvalidInput,
    Refused,
    StoreBusy,
    StoreError,
    StoreMissing,
    StoreUnfinished,
    StoreUnreachable,
)
from lukasa.spec import preset_text
from lukasa.storage.port import Store
from lukasa.storage.postgres.database import Database
from lukasa.storage.postgres.postgres_store import PostgresStore
from lukasa.storage.sqlite import SqliteStore
from lukasa.storage.transfer import PARTS, Moved
from lukasa.surfaces.langgraph.graph import Agent
from tests.helpers import talk
from tests.helpers.cli import ROOT, Shell
from tests.helpers.making import FixedClock
from tests.helpers.moving import EMBEDDER, answers, everything, live
from tests.helpers.postgres import Postgres

NEARLY = 1e-3  # SQLite searches quantised vectors


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used for everything, closed."""
    data = tmp_path_factory.mktemp("lived") / "data"
    live(data, FixedClock())
    return data


@pytest.fixture
def data(lived: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(lived, tmp_path / "data"))


def settings(data: Path, url: str = "") -> Settings:
    return Settings.resolve(data=data, database=url, embedder="none", env={})


def run(origin: Settings, to: str | Path, **more: Any) -> Moved:
    with moving(origin, str(to), **more) as work:
        return work.run(lambda steps: lambda taken: None)


def opened(data: Path, url: str = "") -> Lukasa:
    return Lukasa.open(data, database=url, embedder=EMBEDDER, clock=FixedClock())


def contents(memory: Lukasa) -> dict[str, Any]:
    stores = {"account": memory.account}
    stores |= {info.name: memory.existing(info.name).ctx.local for info in memory.workspaces()}
    return {name: everything(store) for name, store in stores.items()}


def assert_equal(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert one.keys() == other.keys()
    for store in one:
        for what in one[store]:
            assert one[store][what] == other[store][what], (store, what)


def assert_sound(memory: Lukasa) -> None:
    for store in (memory.account, *(memory.existing(info.name).ctx.local for info in memory.workspaces())):
        assert store.check() == []


def order(found: dict[str, list[tuple[str, float]]]) -> dict[str, list[str]]:
    return {question: [id for id, _ in hits] for question, hits in found.items()}


def scores(found: dict[str, list[tuple[str, float]]]) -> list[float]:
    return [score for hits in found.values() for _, score in hits]


# Whole and unchanged


def test_there_and_back(data: Path, database_url: str, tmp_path: Path) -> None:
    """X3, S4: to a database and into a new folder, every value, digest, vector and answer is the same, and sound."""
    with opened(data) as memory:
        before = contents(memory)
    moved = run(settings(data), database_url)
    assert {part.name for part in PARTS} - moved.rows.keys() == {"unswept"}
    assert moved.findings == ()
    with opened(data, database_url) as memory:
        assert_equal(before, contents(memory))
        assert_sound(memory)
    back = run(settings(data, database_url), tmp_path / "back")
    assert (back.heads, back.rows) == (moved.heads, moved.rows)
    with opened(tmp_path / "back") as memory:
        assert_equal(before, contents(memory))
        assert_sound(memory)


def test_reads_answer_alike(data: Path, database_url: str, tmp_path: Path) -> None:
    """A moved memory answers as its origin: in another folder to the bit, in a database in the same order."""
    run(settings(data), database_url)
    run(settings(data, database_url), tmp_path / "back")
    with opened(data) as here, opened(data, database_url) as there, opened(tmp_path / "back") as back:
        found = answers(here)
        assert found == answers(back)
        moved = answers(there)
        assert order(found) == order(moved)
        assert scores(found) == pytest.approx(scores(moved), abs=NEARLY)


def test_a_moved_memory_goes_on(data: Path, database_url: str, tmp_path: Path) -> None:
    """What was moved can be changed: entries, pages, items, jobs and notes continue where they were, and stay sound."""
    run(settings(data), database_url)
    with opened(data, database_url) as memory:
        use_on(memory)
        assert_sound(memory)
    run(settings(data, database_url), tmp_path / "back")
    with opened(tmp_path / "back") as memory:
        use_on(memory)
        assert_sound(memory)


def use_on(memory: Lukasa) -> None:
    world = memory.existing("novel")
    known = {entry.id for entry in world.entries("workspace", everything=True, limit=1_000)}
    made = world.put("workspace", f"A new line after the move, number {len(known)}")
    assert made.id not in known
    assert world.read(f"new line after the move number {len(known)}").hits[0].entry.id == made.id
    world.update(made.id, content=f"A changed line after the move, number {len(known)}")
    world.forget(world.entries("workspace")[-1].id)
    world.edit_named("VOICE", f"Plain words, {len(known)} times.")
    world.save_document("style", f"Rules of style, {len(known)}.")
    world.start()
    world.create_channel(f"channel-{len(known)}")


def test_every_table_is_moved_or_derived(database_url: str, data: Path) -> None:
    """No column of either schema is forgotten: it moves, or it is made again."""
    Database.open(database_url).close()
    query = "SELECT c.relname, a.attname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
    query += " WHERE c.relnamespace = 'lukasa'::regnamespace AND c.relkind = 'r' AND a.attnum > 0"
    with psycopg.connect(database_url) as db:
        theirs = {(table, column) for table, column in db.execute(query).fetchall()}
    ours = set()
    for file in ("memory.db", "access.db"):
        with closing(apsw.Connection(str(data / "account" / file))) as db:
            names = (
                "SELECT m.name, c.name FROM sqlite_schema AS m, pragma_table_info(m.name) AS c WHERE m.type = 'table'"
            )
            ours |= {(str(table), str(column)) for table, column in db.execute(names)}
    moved = {(part.name, column) for part in PARTS for column in part.columns}
    assert left(theirs, moved) == DERIVED_THERE
    assert left(ours, moved) == DERIVED_HERE


def left(columns: set[tuple[str, str]], moved: set[tuple[str, str]]) -> set[str]:
    """The columns that do not move, apart from numbers of rows, from whose they are and from tables of no truth."""
    numbers = {"place", "rowid", "seq", "store", "keys"}
    own = {"sqlite_sequence", "migrations", "meta", "head", "heads", "accounts", "counters"}
    return {
        f"{table}.{column}"
        for table, column in columns - moved
        if column not in numbers and table not in own and "fts" not in table
    }


_COUNTED = {f"partitions.{name}" for name in ("size", "total_terms", "vectors")}
_PREFIXES = {"item_prefixes.prefix", "item_prefixes.space", "item_vectors.item", "passage_vectors.passage"}
DERIVED_HERE = {
    *_COUNTED,
    *_PREFIXES,
    "partitions.removals",
    "item_spaces.removals",
    *(f"packs.{name}" for name in ("id", "partition_id", "model_id", "last", "seqs", "entries", "scales", "codes")),
}
DERIVED_THERE = {
    *_COUNTED,
    *_PREFIXES,
    *(f"{table}.embedding" for table in ("vectors", "item_vectors", "passage_vectors")),
    *(f"entries.{name}" for name in ("trust", "merged_count")),
    *(f"postings.{name}" for name in ("word", "first", "last", "holders", "rows")),
    *(f"{row}_postings.{name}" for row in ("utterance", "passage") for name in ("word", row, "times")),
    *(f"vector_indexes.{name}" for name in ("partition_id", "model_id", "dimensions", "name", "ready")),
}


# Interrupted

PROGRAM = """
import sys
from lukasa.app import Settings, moving
data, url, to, wait = sys.argv[1:]
told = 0
def tell(taken):
    global told
    told += 1
    print(taken, flush=True)
    if told == int(wait):
        sys.stdin.read()
with moving(Settings.resolve(data=data, database=url, env={}), to) as work:
    work.run(lambda steps: tell)
"""


def killed(data: Path, url: str, to: str, after: int, *, waits: bool = False) -> bool:
    """Move in a process that is killed once it has said so many times how far it is; False if it got through.

    With `waits` it goes no further than that; otherwise the kill meets it wherever it is by then.
    """
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", PROGRAM, str(data), url, to, str(after if waits else 0)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as process:
        assert process.stdout is not None
        for _ in range(after):
            if not process.stdout.readline():
                break
        process.kill()
        process.communicate()
    return process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("back", [False, True], ids=["to-database", "to-folder"])
def test_killed_at_any_moment_it_goes_on(data: Path, database_url: str, tmp_path: Path, back: bool) -> None:
    """Killed again and again, a move never shows a half, and ends with the same as one that nobody killed."""
    to = database_url
    if back:
        run(settings(data), database_url)
        to = str(tmp_path / "back")
    origin, url = settings(data, database_url if back else ""), database_url if back else ""
    target = (tmp_path / "back", "") if back else (data, database_url)
    with opened(data, url) as memory:
        before = contents(memory)
    chance, times = random.Random(7), 0
    for _ in range(6):
        if not killed(data, url, to, chance.randrange(1, 60)):
            break
        times += 1
        try:
            opened(*target).close()
        except StoreUnfinished:
            continue
        break  # it was killed after its end, or before its beginning
    assert times
    with opened_or_moved(origin, to, target) as memory:
        assert_equal(before, contents(memory))
        assert_sound(memory)


def opened_or_moved(origin: Settings, to: str, target: tuple[Path, str]) -> Lukasa:
    with moving(origin, to) as work:
        work.run(lambda steps: lambda taken: None, again=True)
    return opened(*target)


def half(data: Path, to: str, url: str = "", after: int = 8) -> None:
    """Leave a move unfinished."""
    assert killed(data, url, to, after, waits=True)


def test_a_half_is_not_opened(data: Path, database_url: str) -> None:
    """A target that is not whole says what to do, to every command; finished, it opens."""
    half(data, database_url)
    shell = Shell(data, {"LUKASA_EMBEDDER": "none", "LUKASA_DATABASE": database_url})
    error = shell.fails("read", "villain", code=1)
    assert error["code"] == "store-unfinished"
    assert "lukasa move" in error["fix"]
    assert run(settings(data), database_url).resumed
    assert "Malachor" in shell.run("-w", "novel", "read", "villain")


def test_a_half_in_a_folder_is_not_opened(data: Path, database_url: str, tmp_path: Path) -> None:
    """The same for a folder: no new memory begins beside the half."""
    run(settings(data), database_url)
    half(data, str(tmp_path / "back"), database_url)
    with pytest.raises(StoreUnfinished):
        opened(tmp_path / "back")


def test_a_half_can_be_cleared(data: Path, database_url: str, tmp_path: Path) -> None:
    """`--clear` leaves nothing of it, and touches no memory that is whole."""
    half(data, database_url)
    shell = Shell(data, {"LUKASA_EMBEDDER": "none"})
    shell.run("move", "--to", database_url, "--clear")
    with psycopg.connect(database_url) as db:
        for table in ("heads", "entries", "events", "versions", "postings"):
            assert db.execute(f"SELECT count(*) FROM lukasa.{table}".encode()).fetchone() == (0,)
    assert shell.fails("move", "--to", database_url, "--clear", code=1)["code"] == "store-error"
    run(settings(data), database_url)
    shell.fails("move", "--to", database_url, "--clear", code=1)
    with opened(data, database_url) as memory:
        assert_sound(memory)


@pytest.mark.parametrize("change", ["entry", "lease"])
def test_an_origin_that_changed_is_copied_again(data: Path, database_url: str, change: str) -> None:
    """What was written to the origin between two attempts is in the copy, whether its log tells of it or not."""
    half(data, database_url, after=60)
    with opened(data) as memory:
        world = memory.existing("novel")
        if change == "entry":
            world.put("workspace", "Written between two attempts")
        else:
            (job,) = [job for job in world.jobs() if job.state == "running"]
            assert world.ctx.local.renew_lease(job.id, job.claim, world.ctx.now.replace(year=2030))
        before = contents(memory)
    assert run(settings(data), database_url).restarted
    with opened(data, database_url) as memory:
        assert_equal(before, contents(memory))


def test_nobody_writes_to_the_origin_meanwhile(data: Path, database_url: str) -> None:
    """A writer waits for the move, in a folder as in a database, and readers go on."""
    run(settings(data), database_url)
    for url in ("", database_url):
        with opened(data, url) as memory, moving(settings(data, url), str(data.parent / "none")) as work:
            world = memory.existing("novel")
            with work.origin.held(lambda infos: infos):
                assert world.read("villain").hits
                for store in (memory.account, world.ctx.local):
                    with pytest.raises((StoreBusy, psycopg.errors.LockNotAvailable)):
                        write_at_once(store)
            write_at_once(world.ctx.local)


def write_at_once(store: Store) -> None:
    """Begin to write, with hardly any patience."""
    if isinstance(store, SqliteStore):
        with store._writing(0.05):
            return
    assert isinstance(store, PostgresStore)
    with store._open(patience=0.05):
        return


# Refused


def test_a_target_with_memory_is_refused(data: Path, database_url: str, tmp_path: Path) -> None:
    """Memory is never mixed or written over: not in an account of a database, not in a folder."""
    with opened(tmp_path / "other", database_url) as memory:
        memory.workspace("main").put("workspace", "Already here")
    with pytest.raises(Conflict, match="holds memory already"):
        run(settings(data), database_url)
    run(settings(data), database_url, account="second")
    with pytest.raises(Conflict, match="holds memory already"):
        run(settings(data, database_url), data)
    with opened(tmp_path / "other", database_url) as memory:
        assert [entry.content for entry in memory.existing("main").entries("workspace")] == ["Already here"]
    with pytest.raises(Conflict, match="in another account"):
        run(settings(data), database_url, account="third")


def test_a_move_that_was_done_is_refused(data: Path, database_url: str) -> None:
    """The same command again says that it is done."""
    run(settings(data), database_url)
    with pytest.raises(Conflict, match="moved before"):
        run(settings(data), database_url)


def test_the_half_of_another_memory_is_refused(data: Path, database_url: str, tmp_path: Path) -> None:
    """A half-moved target takes only the rest of the same memory."""
    half(data, database_url)
    with opened(tmp_path / "other") as memory:
        memory.workspace("main").put("workspace", "Something else")
    with pytest.raises(Conflict, match="unfinished move of other memory"):
        run(settings(tmp_path / "other"), database_url)
    assert run(settings(data), database_url).resumed


def test_a_move_to_itself_is_refused(data: Path, database_url: str) -> None:
    """The wrong direction: the target is where memory is."""
    run(settings(data), database_url)
    for origin, to in ((settings(data), str(data)), (settings(data, database_url), database_url)):
        with pytest.raises(InvalidInput, match="to itself"):
            run(origin, to)


def test_no_origin_is_refused(database_url: str, tmp_path: Path) -> None:
    """A folder or an account without memory is said to be without, and nothing is made of it."""
    with pytest.raises(StoreMissing):
        run(settings(tmp_path / "nothing"), database_url)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StoreMissing, match="no such account"):
        run(settings(tmp_path / "nothing", database_url), tmp_path / "back")


def test_a_user_without_rights_is_refused(data: Path, database_url: str, postgres: Postgres) -> None:
    """A user who may not use the schema is told so, and nothing is written."""
    Database.open(database_url).close()
    name = f"visitor_{os.getpid()}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'x'")
    try:
        parts = conninfo_to_dict(database_url)
        url = f"postgresql://{name}:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
        with pytest.raises(StoreError, match=r"may not|permission"):
            run(settings(data), url)
    finally:
        postgres.run(f"DROP ROLE {name}")
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT count(*) FROM lukasa.heads").fetchone() == (0,)


def test_the_application_cannot_unmake_memory(data: Path, database_url: str) -> None:
    """The role of the application may not call whole memory unfinished, nor clear it: its log stays."""
    run(settings(data), database_url)
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute("SET search_path = lukasa")
        found = db.execute("SELECT store FROM heads WHERE role = 'account'").fetchone()
        assert found is not None
        db.execute("SET ROLE lukasa_app")
        db.execute("SELECT set_config('lukasa.store', %s, false)", (str(found[0]),))
        for statement in (
            "UPDATE heads SET moving = 'x' WHERE store = %s",
            "SELECT clear_store(%s)",
            "DELETE FROM events WHERE store = %s",
        ):
            with pytest.raises(psycopg.Error, match=r"whole|permission denied"):
                db.execute(statement.encode(), found)


@pytest.mark.parametrize(
    ("to", "error"),
    [
        ("postgresql://127.0.0.1:1/none", StoreUnreachable),
        ("mysql://localhost/memory", InvalidInput),
        ("postgresql://", StoreError),
    ],
)
def test_a_bad_target_is_refused(data: Path, to: str, error: type[Exception]) -> None:
    """An address that is none, or that nobody answers, is a typed error."""
    with pytest.raises(error):
        run(settings(data), to)


def test_a_workspace_for_postgresql_stays_there(database_url: str, tmp_path: Path) -> None:
    """A spec that asks for PostgreSQL is not moved into a folder that could not open it."""
    spec = preset_text("default").replace('store = "sqlite"', 'store = "postgres"')
    with opened(tmp_path / "data", database_url) as memory:
        memory.workspace("server", spec=spec)
    with pytest.raises(Refused, match="keeps it in PostgreSQL"):
        run(settings(tmp_path / "data", database_url), tmp_path / "back")
    assert not (tmp_path / "back" / "account").exists()


def test_damage_comes_along_and_is_told(data: Path, database_url: str) -> None:
    """A text that was changed behind Lukasa's back is not mended or lost: the copy has the same fault."""
    (folder,) = [path.parent for path in (data / "workspaces").glob("*/memory.db") if has_entries(path)][:1]
    with closing(apsw.Connection(str(folder / "memory.db"))) as db:
        db.execute("UPDATE entries SET content = content || '!' WHERE rowid = 1")
    assert "content" in {found.what for found in run(settings(data), database_url).findings}
    with opened(data, database_url) as memory:
        damaged = [
            e
            for i in memory.workspaces()
            for e in everything(memory.existing(i.name).ctx.local)["entries"]
            if e.damaged
        ]
    assert len(damaged) == 1


def has_entries(path: Path) -> bool:
    with closing(apsw.Connection(str(path))) as db:
        return bool(db.execute("SELECT EXISTS (SELECT 1 FROM entries)").get)


# Files, chats, the command


def test_files_come_along_to_another_folder(data: Path, database_url: str, tmp_path: Path) -> None:
    """The curated document with its history, and prompts, are in the new folder; databases are not copied."""
    run(settings(data), database_url)
    (data / "prompts").mkdir(exist_ok=True)
    (data / "prompts" / "reflect.md").write_text("Reflect.")
    run(settings(data, database_url), tmp_path / "back")
    with opened(tmp_path / "back") as memory:
        world = memory.existing("watched")
        file = world.curated.path
        assert file is not None
        assert file.is_relative_to(tmp_path / "back")
        assert "Deploys go through the gate." in file.read_text()
        assert (file.parent / ".git").is_dir()
    assert (tmp_path / "back" / "prompts" / "reflect.md").read_text() == "Reflect."


def test_nothing_is_removed_until_told(data: Path, database_url: str) -> None:
    """A dry run moves nothing; a move leaves its origin as it was; with --remove-origin --yes only the files stay."""
    shell = Shell(data, {"LUKASA_EMBEDDER": "none"})
    planned = shell.json("move", "--to", database_url, "--dry-run")
    assert planned["dry_run"]
    assert planned["rows"]["entries"] > 60
    moved = shell.json("move", "--to", database_url)
    assert (moved["rows"], moved["removed"], moved["findings"]) == (planned["rows"], False, [])
    assert "Malachor" in shell.run("-w", "novel", "read", "villain")
    assert shell.fails("move", "--to", database_url, "--remove-origin", code=2)["code"] == "usage"
    assert shell.json("move", "--to", database_url, "--remove-origin", "--yes")["removed"]
    assert not list(data.glob("**/memory.db*"))
    assert list(data.glob("workspaces/*/curated/MEMORY.md"))
    assert shell.fails("read", "villain", code=1)["code"] == "store-missing"
    there = replace(shell, env={**shell.env, "LUKASA_DATABASE": database_url})
    assert "Malachor" in there.run("-w", "novel", "read", "villain")


def test_an_origin_that_went_on_is_not_removed(data: Path, database_url: str) -> None:
    """What was written to the origin after the move is in no copy, so --remove-origin refuses."""
    run(settings(data), database_url)
    shell = Shell(data, {"LUKASA_EMBEDDER": "none"})
    shell.put("Written after the move")
    error = shell.fails("move", "--to", database_url, "--remove-origin", "--yes", code=1)
    assert error["code"] == "conflict"
    assert "Written after the move" in shell.run("read", "written after the move")


def test_a_database_is_emptied_of_one_account(data: Path, database_url: str, tmp_path: Path) -> None:
    """--remove-origin takes one account out of a database, and leaves the others alone."""
    with opened(tmp_path / "other", database_url) as memory:
        memory.workspace("main").put("workspace", "Somebody else's")
    run(settings(data), database_url, account="mine")
    shell = Shell(data, {"LUKASA_EMBEDDER": "none", "LUKASA_DATABASE": database_url, "LUKASA_ACCOUNT": "mine"})
    told = shell.json("move", "--to", str(tmp_path / "back"), "--remove-origin", "--yes")
    assert told["removed"]
    with psycopg.connect(database_url) as db:
        assert db.execute("SELECT count(*) FROM lukasa.accounts").fetchone() == (1,)
        assert db.execute("SELECT count(DISTINCT store) FROM lukasa.entries").fetchone() == (1,)
    with opened(tmp_path / "other", database_url) as memory:
        assert [entry.content for entry in memory.existing("main").entries("workspace")] == ["Somebody else's"]
        assert_sound(memory)


def test_a_chat_goes_on_elsewhere(tmp_path: Path, database_url: str) -> None:
    """L3: the states of a chat move with the memory: it is resumed with what was said, there and back."""
    data = tmp_path / "data"
    with opened(data) as memory, talk.agent(memory, memory.workspace("main")) as chat:
        chat.turn("My ship is called Vey")
        chat.turn("And it is fast")
        conversation, before = chat.conversation.ref_code, states(chat)
    for origin, to, target in (
        (settings(data), database_url, (data, database_url)),
        (settings(data, database_url), str(tmp_path / "back"), (tmp_path / "back", "")),
    ):
        with moving(origin, to) as work:
            work.run(lambda steps: lambda taken: None)
            assert work.threads == 1
        with opened(*target) as memory:
            world = memory.existing("main")
            with talk.agent(memory, world, resume=conversation) as chat:
                assert states(chat) == before
                assert chat.turn("It is blue").reply
                before = states(chat)


def states(chat: Agent) -> list[tuple[Any, Any]]:
    """All states of a chat, newest first: each with its id and what was said by then."""
    found = chat.graph.get_state_history(chat._config)
    return [
        (one.config["configurable"]["checkpoint_id"], [said.content for said in one.values.get("messages", ())])
        for one in found
    ]


def test_an_application_cannot_remove_an_account(
    data: Path, database_url: str, tmp_path: Path, postgres: Postgres
) -> None:
    """A user with the role of the application alone moves memory out; removing it is for the owner."""
    run(settings(data), database_url)
    name = f"clerk_{os.getpid()}"
    postgres.run(f"CREATE ROLE {name} LOGIN PASSWORD 'x' IN ROLE lukasa_app")
    try:
        parts = conninfo_to_dict(database_url)
        url = f"postgresql://{name}:x@{parts['host']}:{parts['port']}/{parts['dbname']}"
        with moving(settings(data, url), str(tmp_path / "back")) as work:
            done = work.run(lambda steps: lambda taken: None)
            with pytest.raises(StoreError, match="may not remove an account"):
                work.remove_origin(done)
        with opened(data, url) as memory:
            assert_sound(memory)
    finally:
        postgres.run(f"DROP ROLE {name}")
