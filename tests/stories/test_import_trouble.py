"""Files that nobody trusts, and imports that are cut short: typed errors with the place, and nothing by half."""

from __future__ import annotations

import io
import json
import os
import pickle
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lukasa import Lukasa, Memo
from lukasa.model.errors import InvalidInput, Refused
from tests.helpers import pasts, sessions
from tests.helpers.cli import Shell
from tests.helpers.pasts import MADE
from tests.helpers.processes import Tripwire, finish, fork


def text(name: str, words: str) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        path = folder / name
        path.write_text(words, "utf-8")
        return path

    return made


def zipped(files: dict[str, str]) -> Callable[[Path], Path]:
    def made(folder: Path) -> Path:
        with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, words in files.items():
                archive.writestr(name, words)
        return folder / "export.zip"

    return made


def broken_point(folder: Path) -> Path:
    root = pasts.mem0_qdrant(folder).path
    with sqlite3.connect(root / "collection" / "mem0" / "storage.sqlite") as db:
        db.execute("INSERT INTO points VALUES ('z', x'00ff')")
    db.close()
    return root


def broken_store(folder: Path) -> Path:
    path = pasts.langgraph_store(folder).path
    with sqlite3.connect(path) as db:
        db.execute("INSERT INTO store (prefix, key, value) VALUES ('a', 'bad', '{not json')")
    db.close()
    return path


def cut_chroma(folder: Path) -> Path:
    path = pasts.mem0_chroma(folder).path / "chroma.sqlite3"
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    return path


GOOD = json.dumps(pasts.chatgpt_chats()[0])
MALFORMED = {
    "chatgpt": (zipped({"conversations.json": f'[{GOOD}, {{"title": "x"}}, {{"mapping": '}), "conversations.json"),
    "chatgpt-item": (zipped({"conversations.json": f'[{GOOD}, {{"title": "x"}}]'}), "conversation 2"),
    "claude-ai": (
        zipped({"conversations.json": '[{"uuid": "a", "chat_messages": [{"sender": "ghost"}]}]'}),
        "conversation 1, message 1",
    ),
    "mcp-memory": (
        text("memory.jsonl", '{"type":"entity","name":"a","entityType":"b","observations":["c"]}\n{"type":"en'),
        "line 2",
    ),
    "mcp-memory-item": (
        text("memory.jsonl", '{"type":"entity","name":"a","entityType":"b","observations":["c", 7]}'),
        "line 1",
    ),
    "mem0": (text("mem0.json", '{"results": [{"id": "1", "memory": "a"}, {"id": "2"}]}'), "memory 2"),
    "mem0-qdrant": (broken_point, "point 3"),
    "mem0-chroma": (cut_chroma, "chroma.sqlite3"),
    "langgraph": (broken_store, "item a/bad"),
    "letta": (text("a.af", '{"agents": [{"messages": [{"role": "user"}, {}]}], "blocks": []}'), "agent 1, message 2"),
    "letta-json": (text("a.af", '{"agents": [\n  oops'), "line 2"),
    "graphiti": (text("g.json", '{"episodes": [{"name": "n", "episode_body": "b"}, {"name": "n"}]}'), "item 2"),
    "markdown": (text("note.md", "a\0b"), "note.md"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_is_a_typed_error_with_the_place(name: str, tmp_path: Path) -> None:
    """Each format: damage anywhere in a file is found before anything is written, and the error says where it is."""
    make, place = MALFORMED[name]
    user, path = Shell(tmp_path / "data"), make(tmp_path)
    error = user.fails("import", str(path), *(("--from", "mem0") if name == "mem0-chroma" else ()), code=2)
    assert error["code"] == "unreadable-past"
    assert place in error["message"]
    assert error["fix"]
    assert user.json("list", "--all")["entries"] == []
    assert user.json("transcripts", "list")["transcripts"] == []


def test_what_is_in_no_known_format_is_told_what_is_understood(tmp_path: Path) -> None:
    """An unknown file, an empty folder and a missing path: one sentence with every format."""
    user = Shell(tmp_path / "data")
    (tmp_path / "empty").mkdir()
    for path in (text("a.bin", "\x01\x02")(tmp_path), tmp_path / "empty"):
        error = user.fails("import", str(path), code=2)
        assert error["code"] == "unreadable-past"
        assert all(one in error["fix"] for one in ("chatgpt", "mem0", "Obsidian", "memory.jsonl", ".mdc", "*.af"))
    assert user.fails("import", str(tmp_path / "gone"), code=2)["code"] == "invalid-input"
    assert not (tmp_path / "data").exists()
    assert user.fails("import", str(tmp_path / "empty"), "--from", "fax", code=2)["code"] == "unreadable-past"


def test_an_archive_that_grows_without_end_is_refused(tmp_path: Path) -> None:
    """A zip bomb: what comes out is counted, and reading stops at the bound."""
    make = zipped({"conversations.json": '[{"mapping": {}, "x": "' + " " * 30_000_000 + '"}]'})
    error = Shell(tmp_path / "data").fails("import", str(make(tmp_path)), "--from", "chatgpt", code=2)
    assert "200-fold" in error["message"]


def test_names_in_an_archive_lead_nowhere(tmp_path: Path) -> None:
    """Path traversal: an archive is never unpacked, so `../` in a name is only a label, and nothing is written."""
    make = zipped({"../../conversations.json": json.dumps(pasts.chatgpt_chats()), "/etc/conversations.json": "[]"})
    user = Shell(tmp_path / "data")
    done = user.json("import", str(make(tmp_path)), "--dry-run")
    assert done["conversations"] == {"new": 1}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["data", "export.zip"]


def test_a_link_in_a_folder_is_not_followed(tmp_path: Path) -> None:
    """A folder from somewhere else may hold links to this person's files: those of files are refused, those of folders
    are passed over."""
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "secret.md").write_text("Nobody may read this.")
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "note.md").write_text("A note.")
    (vault / "more").symlink_to(tmp_path / "private", target_is_directory=True)
    user = Shell(tmp_path / "data")
    assert user.json("import", str(vault), "--dry-run")["memories"] == {"new": 1}
    (vault / "link.md").symlink_to(tmp_path / "private" / "secret.md")
    error = user.fails("import", str(vault), code=2)
    assert "link.md" in error["message"]
    assert user.json("list", "--all")["entries"] == []


def test_a_link_among_sessions_is_passed_over(tmp_path: Path) -> None:
    """A link in a folder of sessions is skipped and named; the other sessions come in."""
    root = MADE["claude_code"](tmp_path).path
    (tmp_path / "other").mkdir()
    other = sessions.claude(tmp_path / "other" / "o.jsonl", [("user", "I always hide the key.")], "s-9")
    (root / "projects" / "-home-ana-harbour" / "link.jsonl").symlink_to(other)
    done = Shell(tmp_path / "data").json("import", str(root), "--dry-run")
    assert done["conversations"] == {"new": 1}
    assert "link.jsonl" in done["skipped"][0]["file"]


def test_a_pickle_runs_nothing(tmp_path: Path) -> None:
    """A point of a local Qdrant is a pickle: what it names is never called."""
    trace = tmp_path / "ran"

    class Evil:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(trace),)

    root = pasts.mem0_qdrant(tmp_path).path
    with sqlite3.connect(root / "collection" / "mem0" / "storage.sqlite") as db:
        db.execute("INSERT INTO points VALUES ('z', ?)", (pickle.dumps({"payload": {"data": "x"}, "id": Evil()}),))
    db.close()
    Shell(tmp_path / "data").json("import", str(root), "--dry-run")
    assert not trace.exists()
    bomb = b"\x80\x05" + b"\x96" + (2**40).to_bytes(8, "little") + b"."
    with sqlite3.connect(root / "collection" / "mem0" / "storage.sqlite") as db:
        db.execute("INSERT INTO points VALUES ('zz', ?)", (bomb,))
    db.close()
    assert "point 4" in Shell(tmp_path / "data").fails("import", str(root), code=2)["message"]


def test_a_view_of_a_database_is_not_read(tmp_path: Path) -> None:
    """A database from somewhere else may call its view `store`: only plain tables count."""
    with sqlite3.connect(tmp_path / "x.db") as db:
        db.execute("CREATE VIEW store AS SELECT 'a' AS prefix, 'b' AS key, '{}' AS value")
    db.close()
    assert Shell(tmp_path / "data").fails("import", str(tmp_path / "x.db"), code=2)["code"] == "unreadable-past"


def test_secrets_of_an_import_are_replaced_by_marks(tmp_path: Path) -> None:
    """Secrets are treated by the rules: the dry run counts them, and no entry, sample or file of the store has one."""
    key = "ghp_" + "A1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q7r8"
    path = text("memory.jsonl", json.dumps(
        {"type": "entity", "name": "Ana", "entityType": "person", "observations": [f"her token is {key}"]}
    ))(tmp_path)  # fmt: skip
    user = Shell(tmp_path / "data")
    planned = user.json("import", str(path), "--dry-run")
    assert planned["secrets"] == 1
    assert key not in json.dumps(planned)
    user.json("import", str(path))
    assert [e["content"] for e in user.json("list", "--all")["entries"]] == ["Ana — her token is [secret]"]
    assert all(key.encode() not in file.read_bytes() for file in (tmp_path / "data").rglob("*") if file.is_file())
    assert user.json("import", str(path))["memories"] == {"known": 1}


def many(tmp_path: Path) -> Path:
    """A past of some batches and some conversations."""
    chats = []
    for number in range(6):
        chat = json.loads(GOOD.replace("chat-1", f"chat-{number}").replace("window seat", f"window seat {number}"))
        chats.append(chat)
    context = [f"{n}. [2024-05-02]. Owns boat number {n}." for n in range(1, 251)]
    chats[0]["mapping"]["mem"]["message"]["content"]["model_set_context"] = "\n".join(context)
    path = tmp_path / "conversations.json"
    path.write_text(json.dumps(chats))
    return path


@pytest.mark.parametrize("at", [40, 90, 150, 220, 300, 380])
def test_an_import_that_was_killed_goes_on(at: int, tmp_path: Path) -> None:
    """kill -9 anywhere in an import: the next run brings the rest, and nothing twice."""
    path = many(tmp_path)

    def work() -> None:
        wire = Tripwire(at)
        wire.install()
        with Lukasa.open(tmp_path / "data", embedder="none") as memory:
            made = memory.importing(path)
            made.plan()
            wire.armed = True
            made.run()

    assert finish(fork(work)) == -9
    user = Shell(tmp_path / "data")
    user.json("import", str(path))
    again = user.json("import", str(path))
    assert set(again["memories"]) | set(again["conversations"]) == {"known"}
    found = [e for e in user.json("list", "--limit", "1000")["entries"] if "boat" in e["content"]]
    assert len(found) == len({e["content"] for e in found}) == 250
    assert all(e["merged_count"] == 1 for e in found)
    assert len(user.json("transcripts", "list")["transcripts"]) == 6
    assert user.run("doctor")


def test_what_one_program_repeats_is_confirmed_once(tmp_path: Path) -> None:
    """A memory that says what an entry says confirms it, once; the second run changes nothing."""
    user = Shell(tmp_path / "data")
    user.json("put", "Likes oat milk")
    path = MADE["mem0_export"](tmp_path).path
    assert user.json("import", str(path))["memories"] == {"merged": 1, "stored": 1}
    assert user.json("import", str(path))["memories"] == {"known": 2}
    entry = next(e for e in user.json("list")["entries"] if e["content"] == "Likes oat milk")
    assert (entry["merged_count"], entry["trust"]) == (2, "author")


def test_an_old_fact_does_not_outrank_a_newer_one(tmp_path: Path) -> None:
    """A fact of years ago that is imported today comes after the one that was said since."""
    user = Shell(tmp_path / "data")
    user.json("put", "The staging host is birch.example.org")
    old = {"id": "m", "memory": "The staging host is alder.example.org", "created_at": "2023-01-05T10:00:00Z"}
    user.json("import", str(text("old.json", json.dumps({"results": [old]}))(tmp_path)))
    hits = user.json("read", "what is the staging host?")["hits"]
    assert hits[0]["entry"]["content"] == "The staging host is birch.example.org"
    imported = next(e for e in user.json("list", "--all")["entries"] if "alder" in e["content"])
    assert imported["confirmed_at"].startswith("2023-01-05")


def test_what_somebody_forgot_is_not_imported_again(tmp_path: Path) -> None:
    """An imported memory that its owner forgot or changed stays as they left it."""
    user, path = Shell(tmp_path / "data"), MADE["mem0_export"](tmp_path).path
    user.json("import", str(path))
    one, two = user.json("list")["entries"]
    user.json("forget", one["id"])
    user.json("update", two["id"], "--content", "Something else")
    assert user.json("import", str(path))["memories"] == {"known": 2}
    assert [e["content"] for e in user.json("list")["entries"]] == ["Something else"]


def test_since_leaves_out_what_is_older(tmp_path: Path) -> None:
    """--since: what was said before that day stays away, and the answer counts it."""
    user, path = Shell(tmp_path / "data"), MADE["chatgpt"](tmp_path).path
    done = user.json("import", str(path), "--since", "2024-05-20", "--dry-run")
    assert (done["memories"], done["conversations"], done["earlier"]) == ({"new": 3}, {"new": 1}, 1)
    done = user.json("import", str(path), "--since", "2025-06-01")
    assert (done["memories"], done["conversations"], done["earlier"]) == ({}, {}, 5)
    assert user.fails("import", str(path), "--since", "lately", code=2)["fix"]


def test_rules_are_the_authors_only_on_request(tmp_path: Path) -> None:
    """CLAUDE.md of a repository may be anybody's: it informs. With --mine it is the owner's word."""
    user, path = Shell(tmp_path / "data"), MADE["rules"](tmp_path).path
    user.json("import", str(path))
    assert {(e["kind"], e["trust"]) for e in user.json("list")["entries"]} == {("procedural", "imported")}
    other = Shell(tmp_path / "other")
    other.json("import", str(path), "--mine")
    found = other.json("list")["entries"]
    assert {(e["kind"], e["trust"], e["curator"]) for e in found} == {("procedural", "author", "import")}


def test_one_workspace_for_everything_must_exist(tmp_path: Path) -> None:
    """--workspace: a mistyped name makes no workspace; a right one takes all, whatever project it is of."""
    user, path = Shell(tmp_path / "data"), MADE["claude_code"](tmp_path).path
    assert user.fails("-w", "hrbour", "import", str(path), code=1)["code"] == "not-found"
    user.json("workspace", "create", "harbour")
    assert user.json("-w", "harbour", "import", str(path))["workspaces"] == {"harbour": 5}
    apart = Shell(tmp_path / "apart").json("import", str(path))["workspaces"]
    assert apart.pop("main") == 2
    assert [name.rsplit("-", 1)[0] for name in apart] == ["harbour"]


def test_half_of_an_archive_is_refused(tmp_path: Path) -> None:
    """A download that was cut short is a typed error."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        archive.writestr("conversations.json", json.dumps(pasts.chatgpt_chats()))
    data = bytearray(made.getvalue())
    (tmp_path / "cut.zip").write_bytes(data[: len(data) // 2])
    assert Shell(tmp_path / "data").fails("import", str(tmp_path / "cut.zip"), code=2)["code"] == "unreadable-past"


def test_a_date_in_the_future_counts_as_now(tmp_path: Path) -> None:
    """A clock that was wrong, or a file that lies, cannot put a memory before everything that will be said."""
    late = {"id": "m", "memory": "The regatta is over", "created_at": "2199-01-01T00:00:00Z"}
    user = Shell(tmp_path / "data")
    user.json("import", str(text("late.json", json.dumps({"results": [late]}))(tmp_path)))
    entry = user.json("list")["entries"][0]
    assert entry["confirmed_at"] <= entry["created_at"]


def test_only_an_import_dates_a_statement_back(tmp_path: Path) -> None:
    """`said_at` is refused for anything but an import, and an agent imports nothing."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        world = memory.workspace()
        with pytest.raises(InvalidInput):
            world.put_many("workspace", [Memo("The regatta is over", said_at="2020-01-01")])
        with pytest.raises(Refused):
            world.acting(agent="claude").import_past(MADE["mcp_memory"](tmp_path).path)
        assert world.entries("workspace") == []
