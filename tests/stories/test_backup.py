"""Back memory up while it is in use, and bring it back: all of it, killed or damaged too, and nothing erased."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lukasa import Lukasa
from lukasa.surfaces.langgraph.graph import Agent
from tests.helpers import talk
from tests.helpers.cli import ROOT, Shell
from tests.helpers.making import FixedClock
from tests.helpers.moving import EMBEDDER, answers, everything, live


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used for everything, closed."""
    data = tmp_path_factory.mktemp("lived") / "data"
    live(data, FixedClock(), 20)
    return data


def shell(data: Path, **env: str) -> Shell:
    return Shell(data, {"LUKASA_EMBEDDER": "none", "NO_COLOR": "1", **env})


def whole(memory: Lukasa) -> dict[str, dict[str, Any]]:
    """All that all stores of a memory hold."""
    stores = {"account": memory.account}
    stores |= {info.name: memory.existing(info.name).ctx.local for info in memory.workspaces()}
    return {name: everything(store) for name, store in stores.items()}


def opened(data: Path, database: str = "") -> Lukasa:
    return Lukasa.open(data, database=database, embedder=EMBEDDER, clock=FixedClock())


def held(backups: Path) -> bytes:
    """Every byte that a folder of backups holds, unpacked."""
    pieces = b"".join(zlib.decompress(path.read_bytes()) for path in sorted(backups.glob("pieces/*/*")))
    return pieces + b"".join(path.read_bytes() for path in backups.rglob("*") if path.is_file())


def state(backups: Path) -> set[str]:
    """What is in a folder of backups, but for the names of backups, which are times."""
    return {path.name for path in backups.rglob("*") if path.is_file() and path.suffix != ".json"}


# Whole


def test_all_memory_comes_back(lived: Path, tmp_path: Path) -> None:
    """H4: every row, the log, vectors and answers are as they were, and the copy is sound."""
    backups, new = tmp_path / "backups", tmp_path / "new"
    made = shell(lived).json("backup", str(backups))
    assert (made["stores"], made["findings"], made["entries"] > 25) == (5, [], True)
    done = shell(new).json("restore", str(backups))
    assert (done["entries"], done["events"], done["done"]) == (made["entries"], made["events"], True)
    with opened(lived) as one, opened(new) as other:
        assert whole(one) == whole(other)
        assert answers(one) == answers(other)
    assert shell(new).json("doctor")["healthy"]


def test_files_and_grants_come_back(tmp_path: Path) -> None:
    """H4: the log, decisions, prompts and the curated document with its history; and a token opens what it opened."""
    home, backups, new = shell(tmp_path / "data"), tmp_path / "backups", tmp_path / "new"
    home.put("The harbour is closed on Mondays")
    home.run("slog", "write", "deploy", "crane", "on both hosts")
    token = home.json("grant", "create", "claude", "-w", "main")["token"]
    workspace = next((home.data / "workspaces").iterdir())
    curated = workspace / "curated"
    curated.mkdir(mode=0o700)
    (curated / "MEMORY.md").write_text("Cranes are checked.\n")
    subprocess.run(["git", "init", "-q"], cwd=curated, check=True)
    (home.data / "prompts").mkdir()
    (home.data / "prompts" / "observer.md").write_text("Observe.\n")
    assert "holds all memory in clear" in home.run("backup", str(backups))
    for path in (backups, *backups.rglob("*")):
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
    shell(new).run("backup", "restore", str(backups))
    there = new / workspace.relative_to(home.data)
    files = [path.relative_to(home.data) for path in home.data.rglob("*") if path.suffix in (".md", ".jsonl")]
    assert len(files) == 3
    for path in files:
        assert (new / path).read_bytes() == (home.data / path).read_bytes()
    assert (there / "curated" / ".git" / "HEAD").read_bytes() == (curated / ".git" / "HEAD").read_bytes()
    with Lukasa.open(new, embedder="none") as memory:
        assert memory.access.admit(token, surface="http", transport="test").grant is not None


def test_only_what_is_new_is_written(tmp_path: Path) -> None:
    """H4: a second backup of the same memory writes nothing, and one more entry writes a small part of all."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    with Lukasa.open(home.data, embedder="none") as memory:
        world = memory.workspace()
        for n in range(400):
            world.put("workspace", f"Crate {n} holds the lantern {n * 7} of the harbour")
    first = home.json("backup", str(backups))
    assert home.json("backup", str(backups))["written"] == 0
    home.put("One more")
    third = home.json("backup", str(backups))
    assert 0 < third["written"] < first["written"] / 3


@pytest.mark.parametrize("to", ["folder", "database"])
def test_between_a_folder_and_postgresql(lived: Path, tmp_path: Path, database_url: str, to: str) -> None:
    """H4: what was backed up out of a folder comes back into PostgreSQL, and the other way."""
    backups, url = tmp_path / "backups", database_url
    shell(lived).run("backup", str(tmp_path / "first"))
    shell(tmp_path / "server", LUKASA_DATABASE=url).run("restore", str(tmp_path / "first"))
    if to == "database":
        with opened(lived) as one, opened(tmp_path / "server", url) as other:
            assert whole(one) == whole(other)
        return
    made = shell(tmp_path / "server", LUKASA_DATABASE=url).json("backup", str(backups))
    assert made["findings"] == []
    shell(tmp_path / "new").run("restore", str(backups))
    with opened(lived) as one, opened(tmp_path / "new") as other:
        assert whole(one) == whole(other)
    error = shell(tmp_path / "server", LUKASA_DATABASE=url).fails("restore", str(backups), code=1)
    assert "holds this memory already" in error["message"]


def states(chat: Agent) -> list[Any]:
    """All states of a chat, newest first."""
    found = chat.graph.get_state_history(chat._config)
    return [[said.content for said in one.values.get("messages", ())] for one in found]


def test_chats_go_on(tmp_path: Path, database_url: str) -> None:
    """H4: a chat of a folder goes on in a database that a backup of it was restored into, and back in a folder."""
    backups = tmp_path / "backups"
    with opened(tmp_path / "data") as memory, talk.agent(memory, memory.workspace("main")) as chat:
        chat.turn("My ship is called Vey")
        conversation, before = chat.conversation.ref_code, states(chat)
    first, server = shell(tmp_path / "data"), shell(tmp_path / "server", LUKASA_DATABASE=database_url)
    for home, new, url, place in ((first, server, database_url, "1"), (server, shell(tmp_path / "new"), "", "2")):
        home.run("backup", str(backups / place))
        new.run("restore", str(backups / place))
        with opened(new.data, url) as memory, talk.agent(memory, memory.existing("main"), resume=conversation) as chat:
            assert states(chat) == before
            assert chat.turn("It is blue").reply
            before = states(chat)


WORDS = st.sampled_from(
    ["harbour", "crane", "lantern", "attic", "gull", "rope", "Malachor", "naïve ü", "\x1b[31m", "'"]
)
STEPS = st.lists(
    st.tuples(st.sampled_from(["put", "update", "forget", "page", "document", "backup"]), st.lists(WORDS, min_size=1)),
    min_size=1,
    max_size=12,
)


@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture])
@given(steps=STEPS)
def test_any_memory_comes_back(steps: list[tuple[str, list[str]]], tmp_path_factory: pytest.TempPathFactory) -> None:
    """H4: whatever was done, and whichever backup is taken: the memory is the one that was there then."""
    place = tmp_path_factory.mktemp("any")
    then: dict[Any, Any] = {}
    with opened(place / "data") as memory:
        world, ids = memory.workspace(), list[str]()
        for number, (step, words) in enumerate([*steps, ("backup", [])]):
            text = f"{' '.join(words)} {number}"
            if step == "put" or (step in ("update", "forget") and not ids):
                ids.append(world.put("workspace", text).id)
            elif step == "update":
                ids.append(world.update(ids.pop(), content=text).id)
            elif step == "forget":
                world.forget(ids.pop())
            elif step == "page":
                world.edit_named("VOICE", text)
            elif step == "document":
                world.save_document("style", text, title="Style")
            else:
                then[memory.backup(place / "backups").at] = whole(memory)
    for number, (at, expected) in enumerate(then.items()):
        shell(place / str(number)).run("restore", str(place / "backups"), "--at", at.isoformat())
        with opened(place / str(number)) as memory:
            assert whole(memory) == expected


# While it is in use

WRITER = """
import sys
from lukasa import Lukasa
name, data, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
with Lukasa.open(data, embedder="none") as memory:
    world = memory.workspace(f"w{int(name) % 3}")
    print("ready", flush=True)
    sys.stdin.readline()
    for n in range(count):
        print(world.put("workspace", f"Crate {n} of writer {name} holds lantern {name}-{n}").id, flush=True)
"""


def test_under_load_of_eight_writers(tmp_path: Path) -> None:
    """H4: nobody's write fails, and each backup holds every write that was acknowledged before it began."""
    home, backups, pipe = shell(tmp_path / "data"), tmp_path / "backups", subprocess.PIPE
    for n in range(3):
        home.run("workspace", "create", f"w{n}")
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*command, str(n), str(home.data), "30"], stdin=pipe, stdout=pipe, env=home.environment())
        for n in range(8)
    ]
    acknowledged: list[list[str]] = [[] for _ in writers]
    made: list[tuple[str, set[str]]] = []
    try:
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == b"ready\n"
        for writer in writers:
            assert writer.stdin is not None
            writer.stdin.write(b"\n")
            writer.stdin.flush()
        for count in (2, 8):
            for writer, ids in zip(writers, acknowledged, strict=True):
                assert writer.stdout is not None
                while len(ids) < count:
                    ids.append(writer.stdout.readline().decode().strip())
            before = {id for ids in acknowledged for id in ids}
            made.append((home.json("backup", str(backups))["at"], before))
        for writer, ids in zip(writers, acknowledged, strict=True):
            assert writer.stdout is not None
            ids += [row.decode().strip() for row in writer.stdout]
            assert writer.wait(timeout=60) == 0
    finally:
        for writer in writers:
            writer.kill()
            writer.communicate()
    assert [len(ids) for ids in acknowledged] == [30] * 8
    for number, (at, before) in enumerate(made):
        new = shell(tmp_path / str(number))
        new.run("restore", str(backups), "--at", at)
        with Lukasa.open(new.data, embedder="none") as memory:
            found = {e.id for n in range(3) for e in memory.existing(f"w{n}").entries("workspace", limit=1000)}
        assert before <= found
        assert new.json("doctor")["healthy"]


# Killed

PROGRAM = """
import sys
what, *args = sys.argv[1:]
if what == "pieces":
    from lukasa.storage.backup_folder import BackupFolder as Place
    name = "put"
elif what == "manifests":
    from lukasa.storage.backup_folder import BackupFolder as Place
    name = "save"
elif what == "files":
    from lukasa.providers import backup_files as Place
    name = "put"
else:
    from lukasa.storage.sqlite.transfer import SqlitePages as Place
    name = "take_in"
was = getattr(Place, name)
def slow(*given):
    print("at it", flush=True)
    sys.stdin.readline()
    done = was(*given)
    print("done", flush=True)
    return done
setattr(Place, name, slow)
from lukasa.surfaces.cli.main import cli
cli.main(args)
"""


def killed(home: Shell, what: str, after: int, *args: str) -> bool:
    """Give a command, and kill it as it is about to do something for the n-th time; say whether it was at it."""
    environment = {**home.environment(), "PYTHONPATH": str(ROOT / "src")}
    command, pipe = [sys.executable, "-c", PROGRAM, what, *args], subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(after):
            if "at it" not in process.stdout.readline():
                break
            process.stdin.write("\n")
            process.stdin.flush()
            process.stdout.readline()
        process.kill()
        process.communicate()
    return process.returncode == -signal.SIGKILL


def test_a_killed_backup_does_not_count(lived: Path, tmp_path: Path) -> None:
    """H4: a half backup is never listed; the next one ends as one that nobody killed, and leaves no rest."""
    straight, backups, home = tmp_path / "straight", tmp_path / "backups", shell(lived)
    home.run("backup", str(straight))
    for what, after in (("pieces", 1), ("pieces", 30), ("rows", 2), ("manifests", 0)):
        assert killed(home, what, after, "backup", str(backups))
        assert home.json("backup", "list", str(backups))["backups"] == []
        assert home.fails("backup", "check", str(backups), code=1)["code"] == "not-found"
    home.run("backup", str(backups))
    assert state(backups) == state(straight)
    assert home.json("backup", "check", str(backups))["sound"]


def test_a_killed_restore_goes_on(lived: Path, tmp_path: Path) -> None:
    """H4: nobody opens a half-restored place; given again, it ends as one that nobody killed."""
    backups, new = tmp_path / "backups", shell(tmp_path / "new")
    shell(lived).run("backup", str(backups))
    for what, after in (("rows", 1), ("rows", 3), ("files", 2)):
        assert killed(new, what, after, "restore", str(backups))
        assert new.fails("stats", code=1)["code"] == "store-unfinished"
    new.run("restore", str(backups))
    with opened(lived) as one, opened(new.data) as other:
        assert whole(one) == whole(other)


# Which ones stay, and which one is taken


def test_old_backups_go_and_the_last_good_one_stays(tmp_path: Path) -> None:
    """H4: --keep-last removes what is older, with its pieces; a damaged newer one does not count as the last good."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    for n in range(4):
        home.put(f"Text number {n}")
        home.run("backup", str(backups), "--keep-last", "2")
    found = home.json("backup", "list", str(backups))["backups"]
    assert [one["entries"] for one in found] == [4, 3]
    assert {one["state"] for one in found} == {"good"}
    assert home.json("backup", str(backups), "--keep", "1d")["removed"] == [found[1]["at"], found[0]["at"]]
    error = home.fails("backup", str(backups), "--keep", "7 days", code=2)
    assert "7d/4w/12m" in error["fix"]


def test_at_takes_the_newest_that_is_not_later(tmp_path: Path) -> None:
    """H4: --at says which one is taken; a time before all of them is an error that names the oldest."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    times = []
    for n in range(3):
        home.put(f"Text number {n}")
        times.append(home.json("backup", str(backups))["at"])
    shown = shell(tmp_path / "new").json("backup", "restore", str(backups), "--at", times[1], "--dry-run")
    assert (shown["at"], shown["entries"], shown["done"]) == (times[1], 2, False)
    assert not (tmp_path / "new").exists()
    shell(tmp_path / "new").run("restore", str(backups), "--at", times[1])
    assert len(shell(tmp_path / "new").json("list")["entries"]) == 2
    error = shell(tmp_path / "other").fails("backup", "restore", str(backups), "--at", "2020-01-01", code=1)
    assert "the oldest is of" in error["message"]


# Refused


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    """H4: neither memory that is there nor a file, and the place stays as it was."""
    home, backups, other = shell(tmp_path / "data"), tmp_path / "backups", shell(tmp_path / "other")
    home.put("Something")
    home.run("slog", "write", "deploy", "crane", "on both hosts")
    home.run("backup", str(backups))
    other.put("Something of my own")
    error = other.fails("restore", str(backups), code=1)
    assert "never overwrites" in error["message"]
    assert "Something of my own" in other.run("read", "something")
    log = next(home.data.rglob("log.jsonl")).relative_to(home.data)
    place = tmp_path / "third" / log
    place.parent.mkdir(parents=True)
    place.write_text("mine")
    assert str(place) in shell(tmp_path / "third").fails("restore", str(backups), code=1)["message"]
    assert place.read_text() == "mine"
    assert [path for path in (tmp_path / "third").rglob("*") if path.is_file()] == [place]


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    """H4: a backup goes into a folder of its own: not among other files, not into memory, not beside other memory."""
    home, other = shell(tmp_path / "data"), shell(tmp_path / "other")
    home.put("Something")
    other.put("Something else")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    assert "other files" in home.fails("backup", str(tmp_path / "full"), code=1)["message"]
    assert "in the data folder" in home.fails("backup", str(home.data / "backups"), code=2)["message"]
    home.run("backup", str(tmp_path / "backups"))
    assert "other memory" in other.fails("backup", str(tmp_path / "backups"), code=1)["message"]
    assert "holds no backups" in home.fails("backup", "list", str(tmp_path / "full"), code=1)["message"]


def test_a_damaged_backup_is_told_with_its_file(tmp_path: Path) -> None:
    """H4: check names each piece that is gone or altered; restore refuses, and an older backup still comes back."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    home.put("The first text")
    old = home.json("backup", str(backups))
    there = set(backups.glob("pieces/*/*"))
    home.put("The second text")
    home.run("backup", str(backups))
    broken = sorted(set(backups.glob("pieces/*/*")) - there)[0]
    data = bytearray(broken.read_bytes())
    data[len(data) // 2] ^= 1
    broken.write_bytes(data)
    told = home.json("backup", "check", str(backups), code=3)
    assert [bool(one["wrong"]) for one in told["backups"]] == [True, False]
    assert str(broken) in told["backups"][0]["wrong"][0]
    assert str(broken) in shell(tmp_path / "new").fails("restore", str(backups), code=1)["message"]
    broken.unlink()
    assert [one["state"] for one in home.json("backup", "list", str(backups))["backups"]] == ["damaged", "good"]
    shell(tmp_path / "old").run("restore", str(backups), "--at", old["at"])
    assert "The first text" in shell(tmp_path / "old").run("read", "text")
    home.run("backup", str(backups), "--keep-last", "5")  # writes again what it can
    assert home.json("backup", "check", str(backups), "--all")["sound"]


def test_memory_with_faults_is_backed_up_and_does_not_count_as_good(tmp_path: Path) -> None:
    """H4: a backup of damaged memory is better than none, says what is wrong, and never displaces the last good one."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    home.put("The first text")
    home.put("The crane lifts forty tonnes")
    good = home.json("backup", str(backups))["at"]
    file = next((home.data / "workspaces").glob("*/memory.db"))
    db = apsw.Connection(str(file))
    db.execute("UPDATE entries SET content = 'Another text' WHERE content = 'The first text'")
    db.close()
    told = home.json("backup", str(backups), "--keep-last", "1", code=3)
    assert "not the one that was written" in told["findings"][0]
    found = home.json("backup", "list", str(backups))["backups"]
    assert [(one["state"], one["at"] == good) for one in found] == [("faults", False), ("good", True)]
    restored = shell(tmp_path / "new").json("restore", str(backups))
    assert restored["findings"] == len(told["findings"])
    assert not shell(tmp_path / "new").json("doctor", code=3)["healthy"]


# Erased

SECRET = "Quintessa"


def tell_of(home: Shell) -> None:
    """Write about somebody in every place that a scrub or a removal reaches."""
    with Lukasa.open(home.data, embedder=EMBEDDER, clock=FixedClock()) as memory:
        world = memory.workspace("private")
        for n in range(5):
            world.put("workspace", f"{SECRET} likes tea number {n}")
        world.edit_named("VOICE", f"As {SECRET} speaks.")
        world.read(f"what does {SECRET} like?")
        main = memory.workspace("main")
        for n in range(30):
            main.put("workspace", f"The crane {n} lifts forty tonnes")
        gone = main.start()
        main.at(conversation=gone.id).put("conversation", f"{SECRET} said so in passing")
        main.write_note(gone.id, "who", f"it was {SECRET}")
        memory.workspace("other").put("workspace", f"{SECRET} was here too")


def erase(home: Shell) -> None:
    with Lukasa.open(home.data, embedder=EMBEDDER, clock=FixedClock()) as memory:
        world, main = memory.existing("private"), memory.existing("main")
        world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
        (gone,) = main.conversations()
        main.purge_execute(gone.id, confirm=main.purge_plan(gone.id).digest)
        memory.remove_workspace("other", confirm=memory.removal_plan("other").digest)


def test_a_backup_holds_nothing_that_was_erased_before(tmp_path: Path) -> None:
    """H4, B5: of what was scrubbed, purged and removed, not a byte is in a backup that is made afterwards."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    tell_of(home)
    erase(home)
    home.run("backup", str(backups))
    assert SECRET.encode() not in held(backups)


def test_purge_applies_erasures_to_older_backups(tmp_path: Path, engine: str) -> None:
    """H4, B5: after --purge, not a byte of it is in any backup; all else of the older ones is there, and sound."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    tell_of(home)
    old = home.json("backup", str(backups))["at"]
    erase(home)
    home.run("backup", str(backups))
    assert SECRET.encode() in held(backups)
    told = home.json("backup", str(backups), "--purge")
    assert [(one["at"], one["wrong"]) for one in told["purged"]] == [(old, "")]
    assert SECRET.encode() not in held(backups)
    assert home.json("backup", "check", str(backups), "--all")["sound"]
    assert home.json("backup", str(backups), "--purge")["purged"] == []
    new = shell(tmp_path / "new", LUKASA_DATABASE="")
    new.run("restore", str(backups), "--at", old)
    assert new.json("doctor")["healthy"]
    assert len(new.json("-w", "main", "list", "--limit", "100")["entries"]) == 30
    assert [one["name"] for one in new.json("workspace", "list")["workspaces"]] == ["main", "private"]


def test_purge_leaves_what_only_changed(tmp_path: Path) -> None:
    """H4: an older backup stays as it is if texts were changed, forgotten or added since, and logs have grown."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    id, other = home.put("The villain is called Malachar"), home.put("The crane lifts forty tonnes")
    home.run("slog", "write", "deploy", "crane", "on both hosts")
    old = home.json("backup", str(backups))
    home.run("update", id, "--content", "The villain is called Malachor")
    home.run("forget", other)
    home.put("One more")
    home.run("slog", "write", "deploy", "crane", "once more")
    assert home.json("backup", str(backups), "--purge")["purged"] == []
    new = shell(tmp_path / "new")
    new.run("restore", str(backups), "--at", old["at"])
    assert {e["content"] for e in new.json("list")["entries"]} == {
        "The villain is called Malachar",
        "The crane lifts forty tonnes",
    }
    assert "once more" not in new.run("slog", "tail")


def test_purge_takes_lines_and_files_that_are_gone(tmp_path: Path) -> None:
    """H4, B5: a line that was taken out of a log, a prompt that was removed, and a git history that was rewritten."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    home.put("Something")
    home.run("slog", "write", "call", SECRET, "on both hosts")
    home.run("slog", "write", "deploy", "crane", "on both hosts")
    log = next(home.data.rglob("log.jsonl"))
    curated, prompt = log.parent / "curated", home.data / "prompts" / "observer.md"
    objects = curated / ".git" / "objects" / "ab"
    objects.mkdir(parents=True)
    prompt.parent.mkdir()
    for path in (objects / "old", curated / "MEMORY.md", prompt):
        path.write_text(f"{SECRET} {path.name}")
    old = home.json("backup", str(backups))["at"]
    log.write_text("".join(row for row in log.read_text().splitlines(keepends=True) if SECRET not in row))
    prompt.unlink()
    (objects / "old").rename(objects / "new")
    (objects / "new").write_text("another")
    (curated / "MEMORY.md").write_text("Cranes are checked.")
    home.run("backup", str(backups), "--purge")
    assert SECRET.encode() not in held(backups)
    shell(tmp_path / "new").run("restore", str(backups), "--at", old)
    there = tmp_path / "new" / log.relative_to(home.data)
    assert there.read_text() == log.read_text()
    assert (there.parent / "curated" / "MEMORY.md").read_text() == "Cranes are checked."


def test_purge_takes_out_the_states_of_a_chat(tmp_path: Path) -> None:
    """H4, H1: those of a conversation that was purged go from older backups; another chat goes on from one."""
    home, backups, refs = shell(tmp_path / "data"), tmp_path / "backups", list[str]()
    with opened(home.data) as memory:
        world = memory.workspace("main")
        for said in (f"My friend is called {SECRET}", "My ship is called Vey"):
            with talk.agent(memory, world) as chat:
                chat.turn(said)
                refs.append(chat.conversation.ref_code)
    old = home.json("backup", str(backups))["at"]
    assert SECRET.encode() in held(backups)
    with opened(home.data) as memory:
        world = memory.existing("main")
        world.purge_execute(refs[0], confirm=world.purge_plan(refs[0]).digest)
        world.scrub_execute("workspace", confirm=world.scrub_plan("workspace").digest)
    home.run("backup", str(backups), "--purge")
    assert SECRET.encode() not in held(backups)
    new = shell(tmp_path / "new")
    new.run("restore", str(backups), "--at", old)
    with opened(new.data) as memory, talk.agent(memory, memory.existing("main"), resume=refs[1]) as chat:
        assert "My ship is called Vey" in str(states(chat))


def test_a_killed_purge_goes_on(tmp_path: Path) -> None:
    """H4: killed between two backups, a purge given again ends with none of it left."""
    home, backups = shell(tmp_path / "data"), tmp_path / "backups"
    tell_of(home)
    home.run("backup", str(backups))
    home.run("backup", str(backups))
    erase(home)
    assert killed(home, "manifests", 2, "backup", str(backups), "--purge")
    home.run("backup", str(backups), "--purge")
    assert SECRET.encode() not in held(backups)
    assert home.json("backup", "check", str(backups), "--all")["sound"]
