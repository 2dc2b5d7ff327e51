"""`lukasa observe`, `backfill` and `transcripts`, and the hooks that ask for it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from lukasa.ports import Reply
from lukasa.surfaces.hooks.harness import workspace_name
from tests.helpers import chat_server, sessions
from tests.helpers.chat_server import ChatServer
from tests.helpers.cli import Shell

TALK = (("user", "The ferry database runs on db-7 port 5432."), ("assistant", "I see."))


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data", {"LUKASA_EMBEDDER": "none", "LUKASA_CHAT": "none"})


@pytest.fixture
def server(shell: Shell) -> Iterator[ChatServer]:
    with ChatServer(lambda asked: Reply('{"segments": []}')) as opened:
        shell.env |= {**opened.env, "LUKASA_CHAT": "openai:fake"}
        yield opened


def test_observing_a_file(shell: Shell, tmp_path: Path) -> None:
    """O1, O9: the answer says what was kept, what was found and by what; the second time nothing is."""
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK))
    said = shell.json("observe", file)
    assert (said["messages"], said["how"], said["allowed"], said["pending"]) == (2, "rules", 1, 0)
    assert said["stripped"]["tool-call"] == 1
    assert [e["content"] for e in shell.json("list")["entries"]] == [TALK[0][1]]
    assert shell.json("list")["entries"][0]["evidence"][0]["end"] == len(TALK[0][1])
    assert "had nothing new" in shell.run("observe", file)
    assert shell.json("observe", file)["messages"] == 0


def test_an_entry_shows_the_words_it_rests_on(shell: Shell, tmp_path: Path) -> None:
    """O7: `get` quotes the session for people and for programs; an entry that somebody put rests on none."""
    shell.run("observe", str(sessions.claude(tmp_path / "s.jsonl", TALK)))
    (entry,) = shell.json("list")["entries"]
    (quote,) = shell.json("get", entry["id"])["quotes"]
    assert (quote["text"], quote["role"]) == (TALK[0][1], "user")
    (said,) = [row for row in shell.run("get", entry["id"]).splitlines() if row.startswith("said ")]
    assert f"“{TALK[0][1]}”  user · " in said
    put = shell.json("put", "Vell has three lighthouses")["id"]
    assert shell.json("get", put)["quotes"] == []
    assert "said " not in shell.run("get", put)


def test_taking_in_only(shell: Shell, tmp_path: Path) -> None:
    """O9: with --queue-only the words are there, and the rest waits."""
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK, "abc"))
    assert shell.json("observe", "--queue-only", file)["pending"] == 1
    assert shell.json("list")["entries"] == []
    (found,) = shell.json("transcripts", "search", "ferry")["messages"]
    assert found["key"] == "claude-code:abc"
    assert "ferry database" in shell.run("transcripts", "show", "claude-code:abc")
    assert "pending" in shell.run("transcripts", "list")
    assert shell.json("transcripts", "list", "--progress", "observed")["transcripts"] == []
    assert "No stored session" in shell.run("transcripts", "search", "zeppelin")


def test_a_folder_of_old_sessions(shell: Shell, tmp_path: Path) -> None:
    """O9: all formats, idempotent; what is no session is passed over and named."""
    sessions.twenty(tmp_path / "old")
    (tmp_path / "old" / "notes.txt").write_text("Dear diary,\nnothing happened.\n")
    done = shell.json("backfill", str(tmp_path / "old"))
    assert (done["files"], done["pending"], len(done["refused"])) == (20, 0, 1)
    assert done["allowed"] >= len(sessions.TALKS)
    again = shell.json("backfill", str(tmp_path / "old"))
    assert (again["messages"], again["observations_extracted"]) == (0, 0)
    assert "skipped" in shell.run("backfill", str(tmp_path / "old"))
    assert shell.json("backfill", str(tmp_path / "old"), "--glob", "log-*.txt")["files"] == 2


def test_a_backfill_that_was_stopped_goes_on(shell: Shell, tmp_path: Path) -> None:
    """O9: what was taken in and not observed is observed by the next run."""
    old = tmp_path / "old"
    files = sessions.twenty(old)
    shell.run("observe", "--queue-only", *map(str, files[:7]))
    done = shell.json("backfill", str(old))
    assert done["pending"] == 0
    assert all(t["progress"] == "observed" for t in shell.json("transcripts", "list")["transcripts"])


def test_a_model_that_fails_is_told(shell: Shell, server: ChatServer, tmp_path: Path) -> None:
    """T05: exit code 1, the reason, and the way on; the words are kept."""
    server.always(chat_server.status(401))
    file = str(sessions.claude(tmp_path / "s.jsonl", TALK, "abc"))
    told = shell.call("observe", file)
    assert told.exit_code == 1
    assert "chat-refused" in told.stdout
    assert "--rules" in told.stdout
    assert len(shell.json("transcripts", "search", "ferry")["messages"]) == 1
    said = shell.json("observe", "--rules", "claude-code:abc")
    assert (said["how"], said["allowed"]) == ("rules", 1)
    server.always(None)


def test_a_model_observes_when_it_is_set(shell: Shell, server: ChatServer, tmp_path: Path) -> None:
    """O1: the answer names it; finding nothing is an answer, too."""
    said = shell.json("observe", str(sessions.claude(tmp_path / "s.jsonl", TALK)))
    assert (said["how"], said["observations_extracted"]) == ("model openai:fake", 0)
    assert "copied letter by letter" in server.asked[0].system


def test_an_own_prompt_is_used(shell: Shell, server: ChatServer, tmp_path: Path) -> None:
    """O1: a person can replace what the observer is told."""
    (shell.data / "prompts").mkdir(parents=True)
    (shell.data / "prompts" / "observer.md").write_text("Answer with JSON about {categories} and the data.")
    shell.run("observe", str(sessions.claude(tmp_path / "s.jsonl", TALK)))
    assert server.asked[0].system.startswith("Answer with JSON about preferences,")


def test_wrong_calls(shell: Shell, tmp_path: Path) -> None:
    """W9: a missing file, a file that is no session, a folder that is none, an unknown transcript."""
    assert "cannot be read" in shell.fails("observe", str(tmp_path / "gone"), code=2)["message"]
    (tmp_path / "x.txt").write_text("hello")
    assert "Claude Code" in shell.fails("observe", str(tmp_path / "x.txt"), code=2)["fix"]
    assert "not a folder" in shell.fails("backfill", str(tmp_path / "gone"), code=2)["message"]
    assert shell.fails("transcripts", "show", "gone", code=1)["code"] == "not-found"


# Hooks


def hook(shell: Shell, moment: str, folder: Path, **event: object) -> str:
    body = json.dumps({"session_id": "abc", "cwd": str(folder), **event})
    return shell.run("hook", moment, input=body)


@pytest.fixture
def workspace(shell: Shell, tmp_path: Path) -> str:
    shell.env |= {"CLAUDE_PROJECT_DIR": str(tmp_path)}
    return workspace_name(str(tmp_path))


@pytest.mark.parametrize(
    ("moment", "event"),
    [("pre-compact", "PreCompact"), ("session-end", "PreCompact"), ("session-end", "SessionEnd")],
)
def test_a_hook_asks_for_observation(shell: Shell, tmp_path: Path, workspace: str, moment: str, event: str) -> None:
    """O1, B9: before a compaction and at the end; it prints nothing, and a worker does the rest."""
    record = sessions.claude(tmp_path / "t.jsonl", TALK, "abc")
    common = {"transcript_path": str(record), "hook_event_name": event}
    assert hook(shell, moment, tmp_path, **common) == ""
    assert hook(shell, moment, tmp_path, **common) == ""
    (noted,) = shell.json("-w", workspace, "transcripts", "list")["transcripts"]
    assert (noted["key"], noted["progress"], noted["kept"]) == ("claude-code:abc", "pending", 0)
    said = shell.json("-w", workspace, "observe", str(record))
    assert said["pending"] == 0
    assert TALK[0][1] in [e["content"] for e in shell.json("-w", workspace, "list")["entries"]]


def test_the_end_of_a_turn_asks_for_nothing(shell: Shell, tmp_path: Path, workspace: str) -> None:
    """O1: a session is observed when it ends or is compacted, not all the time."""
    record = sessions.claude(tmp_path / "t.jsonl", TALK, "abc")
    hook(shell, "session-end", tmp_path, transcript_path=str(record), hook_event_name="Stop")
    assert shell.json("-w", workspace, "transcripts", "list")["transcripts"] == []


def test_a_session_that_goes_on_after_compaction(shell: Shell, tmp_path: Path, workspace: str) -> None:
    """O1, O9: observed at the compaction and at the end; each message once."""
    record = sessions.claude(tmp_path / "t.jsonl", TALK, "abc")
    hook(shell, "pre-compact", tmp_path, transcript_path=str(record), hook_event_name="PreCompact")
    assert shell.json("-w", workspace, "observe", str(record))["messages"] == 2
    sessions.claude(record, (*TALK, ("user", "Marta is our designer.")), "abc")
    hook(shell, "session-end", tmp_path, transcript_path=str(record), hook_event_name="SessionEnd")
    shell.run("-w", workspace, "observe", str(record))
    (now,) = shell.json("-w", workspace, "transcripts", "list")["transcripts"]
    assert (now["kept"], now["observed"], now["progress"]) == (3, 3, "observed")


def test_a_pipe_is_not_waited_for(shell: Shell, tmp_path: Path, workspace: str) -> None:
    """W9: what is no file is not asked to be observed."""
    os.mkfifo(tmp_path / "pipe")
    assert hook(shell, "pre-compact", tmp_path, transcript_path=str(tmp_path / "pipe")) == ""
    assert shell.json("-w", workspace, "transcripts", "list")["transcripts"] == []


def test_backfill_goes_by_the_times_in_the_sessions(shell: Shell, tmp_path: Path) -> None:
    """O9: a copied file has a new time of its own; what was said first still comes first."""
    talks = tmp_path / "talks"
    talks.mkdir()
    for name, day, changed in (("late", 9, 1_000_000_000), ("early", 2, 1_700_000_000)):
        line = sessions.claude_line("user", "Hello", 0, name, timestamp=f"2026-0{day}-01T09:00:00.000Z")
        (talks / f"{name}.jsonl").write_text(line, "utf-8")
        os.utime(talks / f"{name}.jsonl", (changed, changed))
    found = shell.json("backfill", str(talks), "--rules")
    assert [t["key"] for t in found["transcripts"]] == ["claude-code:early", "claude-code:late"]
