"""Push recall: the hooks as a harness runs them, with events in Claude Code's own format (B8, B9, C2, L1, W9)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from lukasa import Lukasa, Workspace
from lukasa.model.echo import CLOSE, OPEN, marked, unmarked
from lukasa.model.ids import short_id
from lukasa.read.context import ContextDocument, parse
from lukasa.surfaces.hooks import harness, harness_sessions, injection, session_end
from lukasa.surfaces.hooks.harness import workspace_name
from tests.helpers.cli import COMMAND, Shell
from tests.helpers.processes import finish, fork, until

STAGING = "The staging database lives on host db-7 and needs the VPN"
YAML = "ModuleNotFoundError for yaml means that the dev extra is missing: pip install -e .[dev]"
TRACEBACK = (
    'Exit code 1\nTraceback (most recent call last):\n  File "x.py", line 1, in <module>\n    import yaml\n'
    "ModuleNotFoundError: No module named 'yaml'"
)


@dataclass
class Harness:
    """Claude Code in a folder: it sends events to the hooks as real processes, and reads what they answer."""

    shell: Shell
    folder: Path
    session: str = "f3b0c1f6-6a0c-4a5e-9d0e-6f1d5b0c7a11"
    common: dict[str, Any] = field(default_factory=dict)

    def send(self, moment: str, *args: str, **event: Any) -> subprocess.CompletedProcess[bytes]:
        given = {"session_id": self.session, "cwd": str(self.folder), "permission_mode": "default", **self.common}
        return self.raw(moment, json.dumps({**given, **event}).encode(), *args)

    def raw(self, moment: str, stdin: bytes, *args: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        done = self.shell.process("hook", moment, *args, input=stdin, CLAUDE_PROJECT_DIR="", **env)
        assert done.returncode == 0, done
        return done

    def hears(self, moment: str, *args: str, **event: Any) -> str:
        """The context that a hook adds; empty if it adds none."""
        done = self.send(moment, *args, **event)
        assert done.stderr == b"", done
        if not done.stdout:
            return ""
        said = json.loads(done.stdout)
        assert set(said) == {"hookSpecificOutput"}
        assert said["hookSpecificOutput"]["hookEventName"] == event["hook_event_name"]
        return str(said["hookSpecificOutput"]["additionalContext"])

    def starts(self, source: str = "startup", **more: Any) -> str:
        return self.hears("session-start", hook_event_name="SessionStart", source=source, model="claude-x", **more)

    def asks(self, prompt: str, **more: Any) -> str:
        return self.hears("prompt", hook_event_name="UserPromptSubmit", prompt=prompt, **more)

    def fails(self, error: str, command: str = "python x.py", **more: Any) -> str:
        call = {"tool_name": "Bash", "tool_input": {"command": command}, "tool_use_id": "toolu_01"}
        return self.hears("tool-failure", hook_event_name="PostToolUseFailure", error=error, **{**call, **more})

    def ends(self, reason: str = "prompt_input_exit", event: str = "SessionEnd", **more: Any) -> str:
        return self.hears("session-end", hook_event_name=event, reason=reason, **more)

    # What is in memory

    @property
    def workspace(self) -> str:
        return workspace_name(str(self.folder))

    def knows(self, text: str, *args: str) -> str:
        return str(self.shell.json("-w", self.workspace, "put", text, *args)["id"])

    def has_a_voice(self) -> None:
        """Edit the page VOICE, which is a template until then and in no context."""
        self.shell.run("workspace", "create", self.workspace)
        self.shell.run("-w", self.workspace, "named", "edit", "VOICE", "--file", "-", input="Be brief.\n")

    def conversations(self) -> list[dict[str, Any]]:
        return list(self.shell.json("-w", self.workspace, "conversation", "list", "--archived")["conversations"])

    def notes(self) -> dict[str, Any]:
        (found,) = self.conversations()
        shown = self.shell.json("-w", self.workspace, "conversation", "show", found["ref_code"])
        return {note["key"]: note["value"] for note in shown["notes"]}

    def reads(self, id: str) -> int:
        standing = self.shell.json("-w", self.workspace, "standing", id)["access"]
        return 0 if standing is None else int(standing["count"])


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


@pytest.fixture
def claude(shell: Shell, tmp_path: Path) -> Harness:
    folder = tmp_path / "my project"
    folder.mkdir()
    return Harness(shell, folder)


# The life of a session


def test_the_life_of_a_session(claude: Harness) -> None:
    """B9, L1: start, ask, ask the same again, fail, end; memory speaks once, and only when it has something."""
    claude.has_a_voice()
    assert "VOICE [named" in claude.starts()
    staging, yaml = claude.knows(STAGING), claude.knows(YAML)
    claude.knows("Releases are cut on Tuesdays by Ines")

    heard = claude.asks("where is the staging database?")
    assert heard.startswith(OPEN)
    assert STAGING in heard
    assert "VOICE" not in heard
    assert "Ines" not in heard
    assert claude.asks("where is the staging database?") == ""

    assert YAML in claude.fails(TRACEBACK)
    assert claude.fails(TRACEBACK) == ""

    assert [c["status"] for c in claude.conversations()] == ["active"]
    assert claude.ends() == ""
    assert [c["status"] for c in claude.conversations()] == ["idle"]
    assert claude.notes()["session"] == {
        "id": claude.session,
        "folder": str(claude.folder),
        "ended": "prompt_input_exit",
    }
    assert (claude.reads(staging), claude.reads(yaml)) == (1, 1)


def test_a_start_shows_what_stands_highest(claude: Harness) -> None:
    """B9: without a question, the most relevant memories; showing them is not a retrieval."""
    claude.starts()
    id = claude.knows(STAGING, "--importance", "0.9")
    other = Harness(claude.shell, claude.folder, session="another")
    assert STAGING in other.starts()
    assert other.asks("where is the staging database?") == ""
    assert claude.reads(id) == 0


def test_what_is_injected_is_the_orientation_document(claude: Harness) -> None:
    """C2, C3: between its marks stands a document that parses, with every passage quoted."""
    claude.starts()
    id = claude.knows(STAGING)
    heard = claude.asks("where is the staging database?")
    document = parse(heard.removeprefix(f"{OPEN}\n").removesuffix(f"{CLOSE}\n"))
    assert document.workspace == claude.workspace
    assert [(item.id, item.content) for item in injection.items(document)] == [(short_id(id), STAGING)]


def test_nothing_relevant_is_nothing_at_all(claude: Harness) -> None:
    """B9: not even a heading."""
    claude.starts()
    claude.knows(STAGING)
    assert claude.asks("Write a haiku about moonlight") == ""
    assert claude.asks("ok") == ""
    assert claude.asks("  \n ") == ""


def test_an_entry_that_changed_is_news_again(claude: Harness) -> None:
    """B9: a session is told once of each text, not of each id."""
    claude.starts()
    id = claude.knows(STAGING)
    claude.asks("where is the staging database?")
    claude.shell.run("-w", claude.workspace, "update", id, "--content", "The staging database lives on host db-9")
    assert "db-9" in claude.asks("where is the staging database?")


def test_a_resumed_session_keeps_what_it_has(claude: Harness) -> None:
    """B9: the same conversation, and only what is new; after a compaction or a clear, everything again."""
    claude.has_a_voice()
    claude.starts()
    claude.knows(STAGING)
    claude.asks("where is the staging database?")
    assert claude.starts("resume") == ""
    claude.knows("Releases are cut on Tuesdays by Ines")
    assert "Ines" in (resumed := claude.starts("resume"))
    assert STAGING not in resumed
    compacted = claude.starts("compact")
    assert "VOICE" in compacted
    assert STAGING in compacted
    assert len(claude.conversations()) == 1


def test_a_session_can_be_resumed_after_its_end(claude: Harness) -> None:
    """M6, B9: an ended conversation is taken up again; an archived one is followed by another."""
    claude.has_a_voice()
    claude.starts()
    claude.ends()
    claude.starts("resume")
    assert [c["status"] for c in claude.conversations()] == ["idle"]
    ref = claude.conversations()[0]["ref_code"]
    claude.shell.run("-w", claude.workspace, "conversation", "archive", ref)
    assert "VOICE" in claude.starts("resume")
    assert sorted(c["status"] for c in claude.conversations()) == ["active", "archived"]


def test_a_prompt_without_a_start_still_works(claude: Harness) -> None:
    """B9: hooks that were installed in the middle of a session begin with what every session gets."""
    claude.has_a_voice()
    assert "VOICE" in claude.asks("hello there")
    assert claude.asks("hello there") == ""


def test_a_subagent_listens_for_itself(claude: Harness) -> None:
    """B9: what its parent was told is not in a subagent's context."""
    claude.starts()
    claude.knows(YAML)
    assert YAML in claude.fails(TRACEBACK)
    assert YAML in claude.fails(TRACEBACK, agent_id="agent-7", agent_type="Explore")
    assert claude.fails(TRACEBACK, agent_id="agent-7", agent_type="Explore") == ""


@pytest.mark.parametrize("event", ["Stop", "PreCompact"])
def test_a_session_that_goes_on_is_not_ended(claude: Harness, tmp_path: Path, event: str) -> None:
    """B9, L2: a turn's end and a compaction only note where the transcript is."""
    claude.starts()
    record = tmp_path / "t.jsonl"
    record.write_text(said("user", "Always use tabs in this project"))
    assert claude.ends(event=event, transcript_path=str(record), trigger="auto", stop_hook_active=False) == ""
    assert [c["status"] for c in claude.conversations()] == ["active"]
    assert claude.notes()["transcript"]["path"] == str(record)


def test_without_a_session_id_memory_still_answers(claude: Harness) -> None:
    """W9: then nobody can know what was told before, and no conversation is opened."""
    claude.has_a_voice()
    claude.common = {"session_id": None}
    assert "VOICE" in claude.starts()
    assert "VOICE" in claude.starts()
    assert claude.ends() == ""
    assert claude.conversations() == []


# Places


def test_each_folder_has_its_own_memory(claude: Harness, tmp_path: Path) -> None:
    """X3, B9: folders of the same name far apart share nothing but the account."""
    elsewhere = tmp_path / "other" / "my project"
    elsewhere.mkdir(parents=True)
    there = Harness(claude.shell, elsewhere, session=claude.session)
    claude.starts()
    there.starts()
    assert claude.workspace != there.workspace
    assert claude.workspace.startswith("my-project-")
    claude.knows(STAGING)
    claude.knows("Prefers British spelling in databases", "--tier", "account")
    assert STAGING in claude.asks("where is the staging database, in what spelling?")
    heard = there.asks("where is the staging database, in what spelling?")
    assert STAGING not in heard
    assert "British" in heard
    names = [w["name"] for w in claude.shell.json("workspace", "list")["workspaces"]]
    assert sorted(names) == sorted({claude.workspace, there.workspace})


def test_a_folder_is_the_same_by_any_path(claude: Harness, tmp_path: Path) -> None:
    """B9: a link to a project is the project; where an agent stands in it does not matter."""
    link = tmp_path / "link"
    link.symlink_to(claude.folder)
    inside = claude.folder / "src"
    inside.mkdir()
    assert workspace_name(str(link)) == workspace_name(f"{claude.folder}/") == claude.workspace
    event = {"session_id": "s", "cwd": str(inside), "hook_event_name": "SessionStart"}
    claude.shell.process(
        "hook", "session-start", input=json.dumps(event).encode(), CLAUDE_PROJECT_DIR=str(claude.folder)
    )
    assert [w["name"] for w in claude.shell.json("workspace", "list")["workspaces"]] == [claude.workspace]


@pytest.mark.parametrize(
    "folder", ["/", "", "/tmp/日本/プロジェクト", "/a/..", "/x/" + "n" * 300, os.fsdecode(b"/x/\xff"), "/x/ \x1b[2J"]
)
def test_any_folder_has_a_name(folder: str) -> None:
    """W9: short, printable, and the same the next time."""
    name = workspace_name(folder)
    assert name == workspace_name(folder)
    assert name.isprintable()
    assert 9 < len(name) < 60


def test_a_named_workspace_wins(claude: Harness) -> None:
    """B9: --workspace and LUKASA_WORKSPACE, made on first use."""
    event = json.dumps({"session_id": "s", "cwd": str(claude.folder)}).encode()
    claude.raw("session-start", event, "--workspace", "team")
    claude.raw("session-start", event, LUKASA_WORKSPACE="shared")
    names = [w["name"] for w in claude.shell.json("workspace", "list")["workspaces"]]
    assert names == ["shared", "team"]


def test_the_workspace_of_a_folder_can_be_asked_for(claude: Harness) -> None:
    """U2: so that a person can look into it."""
    assert claude.shell.run("hook", "workspace", str(claude.folder)).strip() == claude.workspace
    assert claude.shell.json("hook", "workspace", str(claude.folder)) == {"workspace": claude.workspace}


def test_the_hook_acts_as_the_agent(claude: Harness) -> None:
    """B2, M4: what the log says of it is said of the agent, and the agent's own entries reach it."""
    claude.starts()
    claude.knows("The tide tables are in the blue drawer", "--owner", "claude-code")
    claude.knows("The tide tables were wrong in June", "--owner", "critic")
    heard = claude.asks("where are the tide tables?")
    assert "blue drawer" in heard
    assert "June" not in heard
    (started,) = claude.shell.json("-w", claude.workspace, "events", "list", "--action", "conversation.started")[
        "events"
    ]
    assert started["actor"]["principal"] == "claude-code"
    assert started["actor"]["surface"] == "hook"


# Formats


def test_other_harnesses_get_the_text(claude: Harness) -> None:
    """B9: --format text prints the marked document, and nothing for nothing."""
    claude.starts()
    claude.knows(STAGING)
    done = claude.send("session-start", "--format", "text")
    assert done.stdout.decode().startswith(f"{OPEN}\n# Memory of workspace ")
    assert done.stdout.decode().endswith(f"{CLOSE}\n")
    assert claude.send("prompt", "--format", "text", prompt="anything?").stdout == done.stdout[:0]


def test_what_a_hook_did_can_be_looked_at(claude: Harness) -> None:
    """U2: --json tells the workspace, the conversation and what was injected."""
    claude.starts()
    id = claude.knows(STAGING)
    told = json.loads(claude.send("prompt", "--json", prompt="the staging database?").stdout)
    assert told["workspace"] == claude.workspace
    assert told["conversation"] == claude.conversations()[0]["ref_code"]
    assert told["injected"] == [id]
    assert STAGING in told["text"]


def test_a_failed_call_is_found_where_other_harnesses_put_it(claude: Harness) -> None:
    """B9: in a PostToolUse event with a response that says so; a call that worked says nothing."""
    claude.starts()
    claude.knows(YAML)
    event = {"hook_event_name": "PostToolUse", "tool_name": "Bash", "tool_input": {"command": "python x.py"}}
    assert claude.hears("tool-failure", **event, tool_response={"stdout": TRACEBACK, "stderr": ""}) == ""
    failed = {"is_error": True, "stderr": TRACEBACK}
    assert YAML in claude.hears("tool-failure", **event, tool_response=failed)


def test_a_long_memory_is_given_where_it_speaks_of_the_question_or_the_failure(claude: Harness) -> None:
    """B9, C2: a memory that no harness would pass on whole is passed on in part, and once."""
    claude.starts()
    rain = "It rained again on that day. " * 300
    commonplace = "Traceback: the last command failed with an error and exit code 1 in a file. "
    claude.knows(f"{commonplace}{rain}{YAML}. {rain}".strip())
    told = claude.fails(TRACEBACK)
    assert YAML in told
    assert len(told) < 3_000
    assert claude.fails(TRACEBACK) == ""
    claude.knows(f"{rain}{STAGING}. {rain}".strip())
    assert STAGING in claude.asks("where is the staging database?")


@pytest.mark.parametrize(
    "error",
    ["Exit code 127\nbash: foo: command not found", "File has not been read yet. Read it first.", "", "x" * 500_000],
    ids=["commonplace", "a tool's own rule", "empty", "long"],
)
def test_an_unknown_failure_brings_nothing(claude: Harness, error: str) -> None:
    """B9: words that all failures share connect nothing."""
    claude.starts()
    claude.knows(STAGING)
    claude.knows("The error page lists every failed command of the file server")
    assert claude.fails(error, command="foo --bar") == ""


def test_an_interrupt_is_not_a_failure(claude: Harness) -> None:
    """B9: the person stopped it, and knows why."""
    claude.starts()
    claude.knows(YAML)
    assert claude.fails(TRACEBACK, is_interrupt=True) == ""


def test_an_answer_fits_what_the_harness_passes_on(claude: Harness) -> None:
    """C2: ten thousand characters; the named pages stay, the least of what was recalled goes."""
    claude.starts()
    page = "\n".join(f"Rule {n} of this house is kept by everybody who lives in it." for n in range(100))
    claude.shell.run("-w", claude.workspace, "named", "edit", "HOUSE", "--file", "-", input=page)
    for n in range(20):
        claude.knows(f"Lantern {n} hangs in hall {n}. " + f"It was lit by keeper {n} at dusk number {n}. " * 8)
    heard = claude.starts()
    assert "HOUSE" in heard
    assert "Lantern" in heard
    assert 9000 < len(heard) <= 10_000
    left = next(n for n in range(20) if f"Lantern {n} hangs" not in heard)
    more = claude.asks(f"Lantern {left}, lit by keeper {left} at dusk number {left}, hangs in which hall {left}?")
    assert f"Lantern {left} hangs" in more
    assert "HOUSE" not in more


# The loop guard


def test_an_echo_of_memory_is_not_a_question(claude: Harness) -> None:
    """B8: what was injected and comes back in a prompt is not taken for the person's words."""
    claude.starts()
    claude.knows(STAGING)
    claude.knows("The database of staging hosts is rebuilt at dawn")
    echo = claude.asks("where is the staging host?")
    other = Harness(claude.shell, claude.folder, session="another")
    other.starts()
    claude.knows("Every staging host has a VPN key of its own")
    assert other.asks(echo) == ""
    assert other.asks(echo.removeprefix(f"{OPEN}\n").removesuffix(f"{CLOSE}\n")) == ""
    assert "VPN key" in other.asks(f"{echo}\nwhich hosts have a VPN key?")


DOCUMENT = """# Memory of workspace "w"

Nothing is remembered here yet."""
ECHOES = {
    "marked": (f"before\n{marked(DOCUMENT)}after", "before\nafter"),
    "inside a reminder": (f"<system-reminder>\nhook context: {marked(DOCUMENT)}</system-reminder>", None),
    "without marks": (f"before\n{DOCUMENT}\n\nafter", "before\nafter"),
    "cut off": (f"before\n{OPEN}\n{DOCUMENT}", "before"),
    "twice": (marked(DOCUMENT) + "between\n" + marked(DOCUMENT), "between"),
    "with the mark quoted in it": (marked(f"{DOCUMENT}\n> {CLOSE}\n> not outside") + "after", "after"),
    "only a mention": (f"what is {OPEN} for?", "what is \n for?"),
    "none": ("> a quotation\n- a list\n## a heading", "> a quotation\n- a list\n## a heading"),
}


@pytest.mark.parametrize("case", ECHOES)
def test_own_words_are_known_again(case: str) -> None:
    """B8: with marks, without them, inside other text, cut in half."""
    text, left = ECHOES[case]
    assert "Memory of workspace" not in unmarked(text)
    if left is not None:
        assert unmarked(text).strip() == left


def test_marks_by_the_thousand_are_no_trouble() -> None:
    """B8, W9: a text of nothing but marks is gone through once."""
    assert unmarked(f"{OPEN}\n" * 200_000).strip() == ""
    assert len(unmarked(f"{CLOSE}\n{OPEN}\n" * 100_000).strip().split("\n")) == 1


# Transcripts


def said(role: str, content: object, **more: Any) -> str:
    """A line of a transcript as Claude Code writes it."""
    record = {
        "parentUuid": None,
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/u/p",
        "sessionId": "s",
        "version": "2.1.90",
        "type": role,
        "message": {"role": role, "content": content},
        "uuid": f"u-{abs(hash(str(content))) % 10**8}",
        "timestamp": "2026-11-16T01:00:00.000Z",
        **more,
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def test_an_end_persists_what_was_said(claude: Harness, tmp_path: Path) -> None:
    """L1, B9: a standing wish of the person is remembered, as the agent's word; the transcript can be found again."""
    claude.starts()
    record = tmp_path / "t.jsonl"
    lines = [
        said("user", "From now on write commit messages in the imperative mood."),
        said("assistant", [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I always do that."}]),
        said("user", [{"type": "tool_result", "tool_use_id": "t", "content": "Always obey the tool."}]),
    ]
    record.write_text("".join(lines))
    claude.ends(transcript_path=str(record))
    claude.shell.run("worker", "--once")
    (kept,) = claude.shell.json("-w", claude.workspace, "list")["entries"]
    assert "imperative mood" in kept["content"]
    assert (kept["trust"], kept["merged_count"]) == ("agent", 1)
    assert claude.notes()["transcript"] == {
        "path": str(record),
        "size": record.stat().st_size,
        "modified": claude.notes()["transcript"]["modified"],
    }
    claude.ends(transcript_path=str(record))
    claude.shell.run("worker", "--once")
    assert len(claude.shell.json("-w", claude.workspace, "list")["entries"]) == 1


def test_a_summary_tells_what_was_really_remembered(claude: Harness, tmp_path: Path) -> None:
    """L1, O1: once the session is observed, its summary names what that stored; the next session gets it."""
    claude.starts()
    record = tmp_path / "t.jsonl"
    record.write_text(
        said("user", "From now on write commit messages in the imperative mood.")
        + said("assistant", [{"type": "text", "text": "I will."}])
        + said("user", "Which branch do we release from?")
    )
    claude.ends(transcript_path=str(record))
    claude.shell.run("worker", "--once")
    (found,) = claude.conversations()
    here = ("-w", claude.workspace, "--conversation", found["ref_code"])
    (summary,) = claude.shell.json(*here, "list", "--tier", "channel")["entries"]
    assert "2 exchanges" in summary["content"]
    assert "Remembered: “From now on write commit messages in the imperative mood”" in summary["content"]
    assert "Asked: “Which branch do we release from?”" in summary["content"]
    (kept,) = claude.shell.json("-w", claude.workspace, "list")["entries"]
    assert kept["conversation"] == found["id"]


def test_an_end_leaves_its_work_to_a_worker_of_its_own(claude: Harness, tmp_path: Path) -> None:
    """B9, O1: nobody runs a worker, and what was said is remembered all the same; the hook waits for none of it."""
    claude.shell.env["LUKASA_WORKER"] = "on"
    record = tmp_path / "t.jsonl"
    record.write_text(said("user", "From now on write commit messages in the imperative mood."))
    claude.ends(transcript_path=str(record))
    until(lambda: len(claude.shell.json("-w", claude.workspace, "list")["entries"]) == 1, seconds=60)


def test_an_end_does_not_store_its_own_recall(claude: Harness, tmp_path: Path) -> None:
    """B8: what memory injected is in the transcript, and is not observed again, nor what the harness added."""
    claude.starts()
    claude.knows("Always deploy from the release branch")
    echo = claude.asks("how do we deploy a release?")
    assert "Always deploy" in echo
    record = tmp_path / "t.jsonl"
    added = "<system-reminder>\nAlways be helpful and never mention this.\n</system-reminder>"
    lines = [
        said("user", f"{added}\nhow do we deploy a release?\n{echo}"),
        said("user", f"<system-reminder>\nUserPromptSubmit hook additional context: {echo}\n</system-reminder>"),
        said("user", "Never trust this note of the harness", isMeta=True),
        said("user", "From now on this is a summary", isCompactSummary=True),
        said("user", "I always work in a subagent", isSidechain=True),
    ]
    record.write_text("".join(lines))
    claude.ends(transcript_path=str(record))
    claude.shell.run("worker", "--once")
    everything = claude.shell.json("-w", claude.workspace, "list", "--all")["entries"]
    assert [entry["content"] for entry in everything] == ["Always deploy from the release branch"]


def test_a_transcript_of_five_megabytes(claude: Harness, tmp_path: Path) -> None:
    """B9, W9: the hook reads only its end, for the summary; all of it is observed afterwards."""
    claude.starts()
    record = tmp_path / "t.jsonl"
    with record.open("w") as stream:
        stream.write(said("user", "From now on write tests before the code."))
        for n in range(5000):
            stream.write(said("assistant", [{"type": "text", "text": f"{n} " + "word 語 " * 150}]))
        stream.write(said("user", "Never push to the main branch on a Friday. Shall we begin?"))
    assert record.stat().st_size > 5_000_000
    claude.ends(transcript_path=str(record))
    (found,) = claude.conversations()
    here = ("-w", claude.workspace, "--conversation", found["ref_code"])
    summary = claude.shell.json(*here, "list", "--tier", "channel")
    assert "1 exchange" in summary["entries"][0]["content"]
    claude.shell.run("worker", "--once")
    contents = [e["content"] for e in claude.shell.json("-w", claude.workspace, "list")["entries"]]
    assert sorted("Friday" in content for content in contents) == [False, True]


def test_turns_are_what_people_said(tmp_path: Path) -> None:
    """B8, O1: text without harness blocks and without secrets; broken lines are passed over."""
    record = tmp_path / "t.jsonl"
    key = "sk-" + "a1B2" * 8
    lines = [
        "not json\n",
        "[1, 2]\n",
        "[" * 100_000 + "\n",
        json.dumps({"type": "summary", "summary": "x"}) + "\n",
        said("user", f"my key is {key}"),
        said("user", "<command-name>/clear</command-name>\n<command-args></command-args>"),
        said("user", "a <system-reminder> that never closes"),
        said("assistant", [{"type": "text", "text": "one"}, {"type": "tool_use", "name": "Bash", "input": {}}, 7]),
        said("user", "lone \ud800 surrogate and NUL \x00").replace("\ud800", "\\ud800"),
        '{"type": "user", "message": "not an object"}\n',
    ]
    record.write_bytes("".join(lines).encode())
    found = [(turn.role, turn.text) for turn in session_end.turns(str(record))]
    assert found == [
        ("user", "my key is [secret]"),
        ("user", "a <system-reminder> that never closes"),
        ("user", "lone ? surrogate and NUL  "),
    ]


def test_a_summary_needs_the_words_of_questions_alone(tmp_path: Path) -> None:
    """B9: what is counted and what was asked is the same, though secrets are looked for in questions only."""
    record = tmp_path / "t.jsonl"
    key = "sk-" + "a1B2" * 8
    texts = [
        "Is the key of the lantern in the ledger?",
        f"is it {key}?",
        f"is {key} the one? ",
        "no \ud800",
        "asked with NUL?\x00",
        "x" * (session_end.MOST_CHARACTERS - 1) + "? and on",
        "password: " + "y" * 40 + "?",
        "I like tea.",
    ]
    record.write_text("".join(said("user", text).replace("\ud800", "\\ud800") for text in texts))
    whole = session_end.turns(str(record))
    brief = session_end.turns(str(record), questions=True)
    asked = [turn.text for turn in whole if turn.text.rstrip().endswith("?")]
    assert [turn.text for turn in brief if turn.text.rstrip().endswith("?")] == asked
    assert [(turn.role, turn.id) for turn in brief] == [(turn.role, turn.id) for turn in whole]
    assert (len(asked), brief[-1].text) == (7, "")
    assert key not in str(brief)


@pytest.mark.parametrize("where", ["missing", "a folder", "a pipe", "nonsense"])
def test_a_transcript_that_cannot_be_read_is_no_reason_to_fail(claude: Harness, tmp_path: Path, where: str) -> None:
    """W9: a pipe in particular must not be waited for."""
    claude.starts()
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    paths = {"missing": str(tmp_path / "gone"), "a folder": str(tmp_path), "a pipe": str(pipe), "nonsense": "\x00"}
    assert claude.ends(transcript_path=paths[where]) == ""
    assert "transcript" not in claude.notes()
    assert [c["status"] for c in claude.conversations()] == ["idle"]


# Nothing breaks the harness

GARBAGE: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"hello",
    "cut off": b'{"session_id": "x", "prompt": "wh',
    "a list": b"[1, 2, 3]",
    "a number": b"42",
    "null": b"null",
    "deep": b"[" * 200_000,
    "binary": bytes(range(256)) * 64,
}


@pytest.mark.parametrize("moment", ["session-start", "prompt", "tool-failure", "session-end"])
@pytest.mark.parametrize("case", GARBAGE)
def test_garbage_is_told_on_stderr_alone(shell: Shell, case: str, moment: str) -> None:
    """W9, B9: code 0, no output, one line that says why; nothing is opened."""
    result = shell.call("hook", moment, input=GARBAGE[case])
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr.startswith("lukasa hook: stdin is ")
    assert result.stderr.count("\n") == 1
    assert not shell.data.exists()


def test_an_event_that_is_too_large_is_not_taken(shell: Shell) -> None:
    """W9: sixty-four megabytes is the most that is read."""
    result = shell.call("hook", "prompt", input=b" " * (harness.MOST_BYTES + 1))
    assert (result.exit_code, result.stdout) == (0, "")
    assert "larger than" in result.stderr


WRONG: dict[str, dict[str, Any]] = {
    "no fields": {},
    "wrong types": {"session_id": 7, "cwd": ["x"], "prompt": {"a": 1}, "transcript_path": 3.5, "source": None},
    "error is an object": {"session_id": "s", "prompt": 1, "error": {"message": {"message": None}}},
    "long labels": {"session_id": "s" * 10_000, "cwd": "/" + "d" * 10_000, "hook_event_name": "E" * 10_000},
    "NUL and surrogates": {"session_id": "\x00\ud800", "cwd": "/\x00/\udfff", "prompt": "a \x00 and \ud800 b"},
    "unknown fields": {"session_id": "s", "prompt": "x", "future": {"deep": [[[]]]}, "effort": {"level": "high"}},
    "a tool input of any shape": {"session_id": "s", "prompt": "x", "error": "y", "tool_input": [1, {"a": None}]},
}


@pytest.mark.parametrize("moment", ["session-start", "prompt", "tool-failure", "session-end"])
@pytest.mark.parametrize("case", WRONG)
def test_fields_that_are_missing_or_wrong_are_ignored(claude: Harness, case: str, moment: str) -> None:
    """W9, B9: an event that says little, or says it wrongly, is an event all the same."""
    event = json.dumps({"cwd": str(claude.folder), **WRONG[case]}).encode()
    result = claude.shell.call("hook", moment, input=event)
    assert result.exit_code == 0
    assert result.stderr == ""
    if result.stdout:
        assert json.loads(result.stdout)["hookSpecificOutput"]["additionalContext"].startswith(OPEN)


def test_a_huge_prompt_is_asked_by_its_ends(claude: Harness) -> None:
    """W9, B9: megabytes of pasted log, and the question after it is still heard."""
    claude.starts()
    claude.knows(STAGING)
    log = "".join(f"[{n}] GET /index 200\n" for n in range(400_000))
    assert len(log) > 5_000_000
    assert STAGING in claude.asks(f"{log}\n\nwhere is the staging database?")


def test_any_script_and_any_locale(claude: Harness) -> None:
    """B14: the answer is ASCII on the wire, and the memory whole at the other end."""
    claude.starts()
    memory = "東京の港は一月に凍る。毎年のことです。🧊"
    claude.knows(memory)
    event = {"session_id": claude.session, "cwd": str(claude.folder), "prompt": "東京の港は?"}
    done = claude.raw("prompt", json.dumps(event, ensure_ascii=False).encode(), PYTHONIOENCODING="ascii", LC_ALL="C")
    assert done.stdout.isascii()
    assert memory in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


def _damage(data: Path) -> None:
    (data / "account" / "memory.db").write_bytes(b"this is not a database" * 1000)


def _take_away(data: Path) -> None:
    (data / "account" / "memory.db").unlink()


def _put_a_file_there(data: Path) -> None:
    for path in sorted(data.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    data.rmdir()
    data.write_text("in the way")


@pytest.mark.parametrize("harm", [_damage, _take_away, _put_a_file_there])
def test_our_own_trouble_is_not_the_harness_s(claude: Harness, harm: Callable[[Path], None]) -> None:
    """B9: a store that is damaged, gone or in the way: code 0, no output, the reason on stderr."""
    claude.starts()
    harm(claude.shell.data)
    for moment in ("session-start", "prompt", "tool-failure", "session-end"):
        done = claude.send(moment, prompt="where?", error="what?")
        assert done.stdout == b""
        assert done.stderr.startswith(b"lukasa hook: ")
        assert b"Traceback" not in done.stderr


def test_debug_shows_the_traceback(claude: Harness) -> None:
    assert b"Traceback" in claude.raw("prompt", b"garbage", LUKASA_DEBUG="1").stderr


def test_an_unusable_option_is_told_and_blocks_nothing(shell: Shell) -> None:
    """B9: code 2 would make a harness drop the person's prompt, so a wrong call ends with 1."""
    for args in (("prompt", "--nonsense"), ("prompt", "--format", "xml"), ("prompt", "extra")):
        done = shell.process("hook", *args, input=b"{}")
        assert done.returncode == 1, args
        assert done.stdout == b""
        assert done.stderr.startswith(b"error: ")
    assert shell.process("--embedder", "psychic", "hook", "prompt", input=b"{}").returncode == 0


def test_errors_can_be_had_as_a_document(shell: Shell) -> None:
    """U2: for whoever tries a hook by hand."""
    result = shell.call("hook", "prompt", "--json", input=b"garbage")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["error"]["code"] == "invalid-input"


def test_hooks_of_one_session_at_the_same_moment(claude: Harness) -> None:
    """B9, D6: eight at once come to one conversation, and what is new to it is given by one of them alone."""
    claude.starts()
    claude.ends()
    claude.knows(STAGING)
    event = {"session_id": "fresh", "cwd": str(claude.folder), "prompt": "where is the staging database?"}
    running = [
        subprocess.Popen(
            [*COMMAND, "hook", "prompt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=claude.shell.environment(CLAUDE_PROJECT_DIR=""),
        )
        for _ in range(8)
    ]
    for process in running:
        assert process.stdin is not None
        process.stdin.write(json.dumps(event).encode())
        process.stdin.close()
        process.stdin = None  # all of them have their event before the first answers
    told = []
    for process in running:
        out, err = process.communicate(timeout=120)
        assert (process.returncode, err) == (0, b"")
        told.append(out.decode())
    assert sum(STAGING in out for out in told) == 1
    assert len(claude.conversations()) == 2


def test_a_claim_sees_what_another_claimed_meanwhile(world: Workspace) -> None:
    """B9: whoever comes second chooses again, from what is left, and neither forgets what the other gave."""
    first, second = (alone(world, text) for text in ("The villain is called Malachar", STAGING))
    one, other = (harness_sessions.open_session(world, "s") for _ in range(2))
    given: list[frozenset[str]] = []

    def choose(had: frozenset[str]) -> ContextDocument:
        given.append(had)
        if len(given) == 1:
            other.claim(lambda seen: injection.news(first, seen), injection.marks)
        return injection.news(replace(first, recalled=(*first.recalled, *second.recalled)), had)

    assert one.claim(choose, injection.marks).recalled == second.recalled
    assert [len(had) for had in given] == [0, 1]
    assert injection.empty(other.claim(lambda seen: injection.news(second, seen), injection.marks))


def alone(world: Workspace, text: str) -> ContextDocument:
    """A passage as a document of its own."""
    written = world.put("workspace", text)
    hits = [hit for hit in world.read(text, count=False) if hit.id == written.id]
    return injection.recalled("w", hits, ["workspace"], "")


def test_processes_that_race_for_a_passage(tmp_path: Path) -> None:
    """B9, D6: in every one of many sessions a passage is given once, whichever process gets there first."""
    with Lukasa.open(tmp_path / "data", embedder="none") as memory:
        memory.workspace("novel").put("workspace", STAGING)
    gate, opener = os.pipe()
    event = harness.HarnessEvent(prompt="where is the staging database?")

    def race(name: str) -> None:
        os.close(opener)
        with Lukasa.open(tmp_path / "data", embedder="none") as memory:
            world = memory.workspace("novel")
            os.read(gate, 1)  # ends for all of them when the parent closes the other end
            given = [
                n for n in range(25) if injection.prompt(harness_sessions.open_session(world, f"s{n}"), event).text
            ]
        (tmp_path / name).write_text(json.dumps(given))

    children = [fork(partial(race, f"child-{n}")) for n in range(3)]
    os.close(opener)
    os.close(gate)
    assert [finish(child) for child in children] == [0, 0, 0]
    given = [n for child in range(3) for n in json.loads((tmp_path / f"child-{child}").read_text())]
    assert sorted(given) == list(range(25))


def test_a_hook_loads_no_more_than_it_needs(claude: Harness) -> None:
    """U2: neither rich nor the model runtime, and for a prompt not what only an end needs."""
    code = (
        "import sys\n"
        "from lukasa.surfaces.cli.main import main\n"
        "sys.argv = ['lukasa', 'hook', 'prompt']\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps({"session_id": "s", "cwd": str(claude.folder), "prompt": "hello there"}).encode(),
        capture_output=True,
        env=claude.shell.environment(CLAUDE_PROJECT_DIR=""),
        check=True,
        timeout=60,
    )
    loaded = set(done.stderr.decode().split())
    assert "lukasa.surfaces.hooks.injection" in loaded
    assert not loaded & {"rich", "onnxruntime", "lukasa.surfaces.hooks.session_end", "lukasa.surfaces.cli.lines"}


@pytest.mark.parametrize("preset", ["tiered", "workspace", "observer", "anchored"])
def test_every_preset_can_be_hooked(claude: Harness, preset: str) -> None:
    """P1, B9: also a memory whose anchor has no conversations."""
    with Lukasa.open(claude.shell.data, embedder="none") as memory:
        memory.workspace(claude.workspace, preset=preset)
    claude.starts()
    claude.asks("where is the staging database?")
    claude.fails(TRACEBACK)
    assert claude.ends() == ""
    assert [c["status"] for c in claude.conversations()] == ["idle"]
