"""Take memory out and bring it in: whole into a new place, merged into one that is used, with nothing lost."""

from __future__ import annotations

import gzip
import json
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa
from lukasa.model.errors import Unauthenticated
from lukasa.model.values import Trust
from lukasa.service.admin import merging
from lukasa.storage import export_file
from lukasa.storage.export_records import KINDS
from lukasa.storage.port import ItemQuery
from tests.helpers.cli import ROOT, Shell
from tests.helpers.making import FixedClock
from tests.helpers.moving import live

KEY = "ghp_" + "a1B2c3D4e5F6" * 3  # it looks like a secret, and is none


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder that was used for everything, closed."""
    data = tmp_path_factory.mktemp("lived") / "data"
    live(data, FixedClock(), 20)
    return data


def shell(data: Path) -> Shell:
    return Shell(data, {"LUKASA_EMBEDDER": "none", "NO_COLOR": "1"})


def body(path: Path) -> list[bytes]:
    """The lines of an export behind its header."""
    return path.read_bytes().splitlines()[1:]


# Whole


def test_all_memory_goes_out_and_comes_in(lived: Path, tmp_path: Path) -> None:
    """H4: a new folder gets everything as it was: the same logs, and an export of it is the same but for its header."""
    out, again = tmp_path / "all.jsonl", tmp_path / "again.jsonl"
    told = shell(lived).json("export", "--all", str(out))
    assert (told["stores"], told["counts"]["entries"] > 25) == (5, True)
    here = shell(tmp_path / "new")
    done = here.json("import", str(out))
    assert (done["way"], done["counts"]) == ("whole", told["counts"])
    here.run("export", "--all", str(again))
    assert body(again) == body(out)
    assert "Malachor" in here.run("-w", "novel", "read", "villain")
    assert here.json("doctor")["healthy"]


def test_only_the_owner_can_read_an_export(lived: Path, tmp_path: Path) -> None:
    """H4, S4: the file is closed to others, and the command says that it holds sensitive texts."""
    home = shell(tmp_path / "data")
    home.put(f"The key of the safe is {KEY}")
    out = tmp_path / "out.jsonl.gz"
    assert "1 sensitive texts are in it" in home.run("export", str(out))
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert KEY.encode() in gzip.decompress(out.read_bytes())


def test_no_export_holds_a_credential(lived: Path, tmp_path: Path) -> None:
    """H4, A2: grants come along without what opens memory, and a token of before opens nothing afterwards."""
    home, out = shell(tmp_path / "data"), tmp_path / "out.jsonl"
    home.put("Something")
    token = home.json("grant", "create", "claude", "-w", "main")["token"]
    home.run("export", "--all", str(out))
    assert "digest" not in next(json.loads(line) for line in body(out) if b'"record":"grants"' in line)
    shell(tmp_path / "new").run("import", str(out))
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        assert memory.access.admit(token, surface="http", transport="test").grant is not None
    with Lukasa.open(tmp_path / "new", embedder="none") as memory:
        assert memory.account.check() == []
        with pytest.raises(Unauthenticated):
            memory.access.admit(token, surface="http", transport="test")


def test_a_workspace_comes_whole_beside_others(lived: Path, tmp_path: Path) -> None:
    """H4: a workspace that is not here is added with its own log; the same export comes out of it again."""
    out, again, here = tmp_path / "novel.jsonl.gz", tmp_path / "again.jsonl.gz", shell(tmp_path / "here")
    shell(lived).run("-w", "novel", "export", str(out))
    here.put("Something of my own")
    planned = here.json("import", "--dry-run", str(out))
    assert (planned["stores"][0]["way"], planned["done"]) == ("whole", False)
    assert [one["name"] for one in here.json("workspace", "list")["workspaces"]] == ["main"]
    assert "1 folders or feeds of the file are followed here" in here.run("import", "--dry-run", str(out))
    done = here.json("import", str(out), "--confirm", planned["digest"])
    assert (done["digest"], done["done"]) == (planned["digest"], True)
    here.run("-w", "novel", "export", str(again))
    assert gzip.decompress(out.read_bytes()).splitlines()[1:] == gzip.decompress(again.read_bytes()).splitlines()[1:]
    assert here.json("doctor")["healthy"]
    assert "Something of my own" in here.run("read", "something")
    assert "Malachor" in here.run("-w", "novel", "read", "villain")


def test_memory_in_this_process_goes_out_and_in(tmp_path: Path) -> None:
    """H4: also a memory that keeps no file: a workspace of it comes out and in the same."""
    with Lukasa.open(in_memory=True, embedder="none") as one, Lukasa.open(in_memory=True, embedder="none") as other:
        one.workspace("main").put("workspace", "The harbour is closed on Mondays")
        one.export(tmp_path / "a.jsonl", workspace="main")
        other.import_file(tmp_path / "a.jsonl")
        assert [e.content for e in other.existing("main").entries("workspace")] == ["The harbour is closed on Mondays"]
        other.export(tmp_path / "b.jsonl", workspace="main")
    assert body(tmp_path / "a.jsonl") == body(tmp_path / "b.jsonl")


# Merged


@pytest.fixture
def two(tmp_path: Path) -> tuple[Shell, Shell, Path]:
    """Two machines that share a past: the second one came out of an export of the first."""
    first, second, out = shell(tmp_path / "first"), shell(tmp_path / "second"), tmp_path / "out.jsonl"
    first.put("The crane lifts forty tonnes")
    first.run("export", "--all", str(out))
    second.run("import", str(out))
    return first, second, out


def only(found: dict[str, Any], kind: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for store in found["stores"]:
        for outcome, count in store["counts"].get(kind, {}).items():
            counts[outcome] = counts.get(outcome, 0) + count
    return counts


def test_what_is_here_already_is_left_as_it_is(two: tuple[Shell, Shell, Path]) -> None:
    """H4: the same file a second time changes nothing, not even the log."""
    _, second, out = two
    before = second.json("events", "list", "--limit", "1000")
    done = second.json("import", str(out))
    assert only(done, "entries") == {"known": 1}
    assert second.json("events", "list", "--limit", "1000") == before


def test_new_things_come_in_as_imported(two: tuple[Shell, Shell, Path]) -> None:
    """H4, T3: with their origin, trust and history; the curator is the import, and the log says whence."""
    first, second, out = two
    id = first.put("The gull sleeps on the mast", "--importance", "0.8")
    first.run("update", id, "--content", "The gull sleeps on the roof")
    first.run("export", "--all", str(out))
    planned = second.json("import", "--dry-run", str(out))
    assert only(planned, "entries") == {"new": 1, "known": 1}
    assert any("gull" in sample["what"] for store in planned["stores"] for sample in store["samples"])
    assert "gull" not in second.run("list")
    done = second.json("import", str(out))
    assert [s["counts"] for s in done["stores"]] == [s["counts"] for s in planned["stores"]]
    entry = second.json("get", id)
    assert (entry["content"], entry["curator"], entry["trust"]) == ("The gull sleeps on the roof", "import", "author")
    assert "mast" in second.run("history", id)
    events = second.json("events", "list", "--limit", "1000")["events"]
    assert {"import.begun", "entry.imported", "import.finished"} <= {event["action"] for event in events}
    assert second.json("doctor")["healthy"]


def test_two_texts_of_one_entry_are_both_kept(two: tuple[Shell, Shell, Path], tmp_path: Path) -> None:
    """H4: neither machine's edit is lost: they are rivals, shown in a dry run, and once only."""
    first, second, out = two
    (id,) = [entry["id"] for entry in first.json("list")["entries"]]
    first.run("update", id, "--content", "The crane lifts fifty tonnes")
    second.run("update", id, "--content", "The crane lifts sixty tonnes")
    first.run("export", "--all", str(out))
    planned = second.json("import", "--dry-run", str(out))
    assert only(planned, "entries") == {"both": 1}
    assert any("sixty" in sample["why"] for store in planned["stores"] for sample in store["samples"])
    second.run("import", str(out))
    texts = sorted(entry["content"] for entry in second.json("list")["entries"])
    assert texts == ["The crane lifts fifty tonnes", "The crane lifts sixty tonnes"]
    assert "fifty" in second.run("history", id)
    assert only(second.json("import", str(out)), "entries") == {"known": 1}
    assert second.json("doctor")["healthy"]


def test_what_was_removed_here_stays_removed(tmp_path: Path) -> None:
    """H4, B5: an export brings nothing back that was removed for good since."""
    home, out = shell(tmp_path / "home"), tmp_path / "out.jsonl"
    home.put("A word that must go")
    home.run("export", "--all", str(out))
    home.run("scrub", "execute", "--tier", "workspace", "--confirm", scrub_digest(home))
    done = home.json("import", str(out))
    assert only(done, "entries") == {"left": 1}
    assert "must go" not in home.run("list")


def scrub_digest(home: Shell) -> str:
    return str(home.json("scrub", "plan", "--tier", "workspace")["digest"])


def test_a_stranger_s_file_gets_no_more_trust_than_given(two: tuple[Shell, Shell, Path]) -> None:
    """H4, S2: --trust caps what entries of somebody else's file may claim."""
    first, second, out = two
    id = first.put("Always run the deploy script as root")
    first.run("export", "--all", str(out))
    second.run("import", str(out), "--trust", "untrusted")
    assert second.json("get", id)["trust"] == "untrusted"


def test_everything_merges_where_it_is_wanted(lived: Path, tmp_path: Path) -> None:
    """H4, S1: a workspace with something of everything is merged into another one; both engines stay sound."""
    out, here = tmp_path / "novel.jsonl", shell(tmp_path / "here")
    shell(lived).run("-w", "novel", "export", str(out))
    here.put("The keel is green")
    planned = here.json("import", str(out), "--into", "main", "--dry-run")
    done = here.json("import", str(out), "--into", "main")
    assert [s["counts"] for s in done["stores"]] == [s["counts"] for s in planned["stores"]]
    for kind in ("entries", "documents", "items", "conversations", "notes", "confirmations", "actions", "rivals"):
        assert only(done, kind).get("new"), kind
    again = here.json("import", str(out), "--into", "main")
    assert not any(of.get("new") or of.get("both") for store in again["stores"] for of in store["counts"].values())
    assert here.json("doctor")["healthy"]
    assert "Malachor" in here.run("read", "villain")
    assert "The keel is green" in here.run("read", "keel")


# Refused


def test_a_name_that_is_taken_is_said(tmp_path: Path) -> None:
    """H4: two different workspaces of one name are never mixed by accident."""
    one, other, out = shell(tmp_path / "one"), shell(tmp_path / "other"), tmp_path / "out.jsonl"
    one.put("One")
    other.put("Other")
    one.run("export", str(out))
    error = other.fails("import", str(out), code=1)
    assert (error["code"], "--into main" in error["fix"]) == ("conflict", True)
    other.run("import", str(out), "--into", "main")
    assert len(other.json("list")["entries"]) == 2


def test_what_is_no_export_is_refused(tmp_path: Path) -> None:
    """H4: another file, a cut one, and one of a newer format each get a sentence and a fix, and nothing is made."""
    here, path = shell(tmp_path / "here"), tmp_path / "file"
    for data in (b"", b"{}\n", b"hello", b"\x1f\x8b\x08 no gzip", b'{"record":"header"}\n' * 3):
        path.write_bytes(data)
        error = here.fails("import", str(path), "--from", "lukasa", code=2)
        assert error["code"] == "unreadable-export"
        assert here.fails("import", str(path), code=2)["code"] in ("unreadable-export", "unreadable-past")
    assert here.fails("import", str(tmp_path / "none"), code=2)["code"] == "invalid-input"
    assert not list((tmp_path / "here").rglob("memory.db")) if (tmp_path / "here").exists() else True


def test_a_cut_archive_is_refused_with_its_line(lived: Path, tmp_path: Path) -> None:
    """H4: also a packed file says at which line it ends."""
    out = tmp_path / "out.jsonl.gz"
    shell(lived).run("-w", "novel", "export", str(out))
    out.write_bytes(out.read_bytes()[:-2000])
    assert "line " in shell(tmp_path / "here").fails("import", str(out), code=2)["message"]


def test_a_plan_that_no_longer_holds_is_refused(two: tuple[Shell, Shell, Path]) -> None:
    """H4: what was accepted is what was shown, or nothing happens."""
    first, second, out = two
    first.put("The anchor is heavy")
    first.run("export", "--all", str(out))
    digest = second.json("import", "--dry-run", str(out))["digest"]
    second.put("The anchor is heavy")
    assert second.fails("import", str(out), "--confirm", digest, code=1)["code"] == "conflict"


# Killed

PROGRAM = """
import sys
from lukasa.storage import transfer, export_file
from lukasa.service.admin import merging
from lukasa.surfaces.cli.main import cli

def tell(where, name):
    real = getattr(where, name)
    def told(*args, **more):
        found = real(*args, **more)
        print("done", flush=True)
        sys.stdin.readline()
        return found
    setattr(where, name, told)

what, args = sys.argv[1], sys.argv[2:]
if what == "rows":
    transfer._MANY = 10
    tell(transfer, "_take_in")
elif what == "steps":
    from lukasa.storage.sqlite import SqliteStore
    tell(SqliteStore, "apply")
else:
    tell(export_file, "spelled")
cli.main(args)
"""


def killed(home: Shell, what: str, after: int, *args: str) -> bool:
    """Give a command and kill it after so many pages, transactions or lines; return whether it was still at it."""
    command = [sys.executable, "-c", PROGRAM, what, *args]
    environment = {**home.environment(), "PYTHONPATH": str(ROOT / "src")}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=environment, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for _ in range(after):
            if "done" not in process.stdout.readline():
                break
            process.stdin.write("\n")
            process.stdin.flush()
        process.kill()
        process.communicate()
    return process.returncode == -signal.SIGKILL


def test_a_killed_export_leaves_no_half(lived: Path, tmp_path: Path) -> None:
    """H4: the file that was there stays until the new one is whole."""
    out = tmp_path / "out.jsonl"
    out.write_bytes(b"what was there")
    for after in (1, 40):
        assert killed(shell(lived), "lines", after, "-w", "novel", "export", str(out))
        assert out.read_bytes() == b"what was there"
    shell(lived).run("-w", "novel", "export", str(out))
    with export_file.ExportFile.open(out) as file:
        assert file.survey.counts["entries"] > 20


@pytest.mark.parametrize("args", [["--all"], []], ids=["all", "workspace"])
def test_a_killed_import_goes_on(lived: Path, tmp_path: Path, args: list[str]) -> None:
    """H4: killed again and again while rows come in, an import ends with the same as one that nobody killed."""
    out, again, here = tmp_path / "out.jsonl", tmp_path / "again.jsonl", shell(tmp_path / "here")
    shell(lived).run("-w", "novel", "export", *args, str(out))
    if not args:
        here.put("In use")
    for after in (1, 3, 6):
        assert killed(here, "rows", after, "import", str(out))
        if not args:
            assert [one["name"] for one in here.json("workspace", "list")["workspaces"]] == ["main"]
    assert here.run("import", str(out))
    here.run("-w", "novel", "export", *args, str(again))
    assert body(again) == body(out)
    assert here.json("doctor")["healthy"]


@pytest.mark.parametrize("args", [[], ["--all"]])
def test_what_a_killed_import_left_can_be_cleared(lived: Path, tmp_path: Path, engine: str, args: list[str]) -> None:
    """H4: nobody has to finish an import: one command removes what came in, and what is in use stays."""
    out, here = tmp_path / "out.jsonl", shell(tmp_path / "here")
    with Lukasa.open(lived, database="", embedder="none") as memory:
        memory.export(out, workspace=None if args else "novel")
    if not args:
        here.put("In use")
    assert killed(here, "rows", 3, "import", str(out))
    assert here.json("import", str(out), "--clear")["cleared"] == (["all memory"] if args else ["novel"])
    assert here.json("import", str(out), "--clear")["cleared"] == []
    if not args:
        assert here.json("doctor")["healthy"]
        assert "In use" in here.run("list")
    assert here.run("import", str(out))
    assert here.json("import", str(out), "--clear")["cleared"] == []
    assert here.json("doctor")["healthy"]


def test_a_killed_merge_goes_on(lived: Path, tmp_path: Path) -> None:
    """H4: killed again and again while things are merged, it ends with the same entries, each once."""
    out = tmp_path / "out.jsonl"
    shell(lived).run("-w", "novel", "export", str(out))
    ended = []
    for name, stops in (("straight", ()), ("killed", (2, 4, 6))):
        here = shell(tmp_path / name)
        here.put("In use")
        for after in stops:
            assert killed(here, "steps", after, "import", str(out), "--into", "main")
        here.run("import", str(out), "--into", "main")
        with Lukasa.open(here.data, embedder="none") as memory:
            store = memory.existing("main").ctx.local
            found = {one.action for one in store.events(limit=5000)}
            entries = sorted((e.id, e.content, e.version, str(e.state)) for e in every(memory))
            documents = [(head.id, head.version) for head in store.list_documents()]
            items = sorted((one.item.place.key, str(one.item.value)) for one in store.find_items(ItemQuery(())))
            ended.append((entries, documents, items, sorted(c.ref_code for c in store.conversations(archived=True))))
            assert "import.finished" in found
            assert store.check() == []
    assert ended[0] == ended[1]


def every(memory: Lukasa) -> list[Any]:
    """All entries of the workspace main, whatever their state, but for the one that each test writes itself."""
    store = memory.existing("main").ctx.local
    ids = {event.subject for event in store.events(limit=5000, action="entry.imported")}
    return list(store.entries(ids).values())


# Pages


def test_pages_can_be_read(lived: Path, tmp_path: Path) -> None:
    """H4: a folder with an index, a page for each entry with its front matter, and names that any system takes."""
    home, folder = shell(tmp_path / "data"), tmp_path / "pages"
    home.put("Ines: the harbour master? <b>bold</b> [[link]] CON")
    home.put("../../etc/passwd is a path")
    home.put(f"The key of the safe is {KEY}")
    with Lukasa.open(home.data, embedder="none") as memory:
        world = memory.existing("main").acting(trust=Trust.UNTRUSTED)
        world.put("workspace", "Seen on a page:\n```dataviewjs\nsteal()\n```")
    told = home.json("export", "--as", "markdown", str(folder))
    assert (told["entries"], told["masked"]) == (4, 1)
    texts = {path.relative_to(folder): path.read_text() for path in folder.rglob("*.md")}
    whole = "\n".join(texts.values())
    assert KEY not in whole
    assert all(path.is_relative_to(folder) for path in folder.rglob("*"))
    (ines,) = [text for path, text in texts.items() if path.parts[0] == "entries" and "Ines" in text]
    assert ines.startswith('---\nid: "')
    assert 'origin: "' in ines
    (seen,) = [text for path, text in texts.items() if "steal" in text and path.parts[0] == "entries"]
    assert "````text\nSeen" in seen
    index = texts[Path("index.md")]
    for group in ("Tiers", "Categories", "People", "Pages"):
        assert f"## {group}" in index
    assert home.fails("export", "--as", "markdown", str(folder), code=1)["code"] == "conflict"
    assert home.json("export", "--as", "markdown", str(tmp_path / "open"), "--sensitive")["masked"] == 0


def test_the_schema_describes_every_line(lived: Path, tmp_path: Path) -> None:
    """H4: the published JSON Schema accepts each line of a real export, and knows each kind of line."""
    home, out = shell(lived), tmp_path / "out.jsonl"
    home.run("export", "--all", "--vectors", str(out))
    schema = json.loads(home.run("export", "--schema"))
    kinds = {one["properties"]["record"]["const"]: one for one in schema["oneOf"]}
    for line in out.read_bytes().splitlines():
        record = json.loads(line)
        kind = kinds[record["record"]]
        assert set(record) == set(kind["required"]) == set(kind["properties"])


def test_only_the_owner_takes_memory_out(tmp_path: Path) -> None:
    """H4, S2: there is no way to an export for an agent: the handle of one has none."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        agent = memory.workspace("main").acting(agent="claude")
        assert not hasattr(agent, "export")


def test_no_kind_is_dropped_without_a_word() -> None:
    """H4: each kind of record is merged, comes along with another, or is counted as left out with its reason."""
    kinds = {*merging.MERGED, *merging.ALONG, *(part.name for part in merging.HERE_ONLY)}
    assert kinds == set(KINDS)


def test_a_file_is_packed_as_its_name_says(tmp_path: Path) -> None:
    """H4: .gz always, .zst where Python or a package has it, and otherwise an error that says what is missing."""
    home, there = shell(tmp_path / "data"), shell(tmp_path / "there")
    home.put("The keel is green")
    packed = tmp_path / "out.jsonl.zst"
    if home.call("export", "--all", str(packed)).exit_code:
        assert home.fails("export", "--all", str(packed), code=1)["code"] == "missing-extra"
        packed = tmp_path / "out.jsonl.gz"
        home.run("export", "--all", str(packed))
    assert packed.stat().st_mode & 0o777 == 0o600
    assert there.json("import", str(packed))["way"] == "whole"
    assert "The keel is green" in there.run("read", "keel")
