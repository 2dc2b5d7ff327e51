"""`lukasa install` for coding agents: what it writes, that it works there, and that it is taken back (U3, B9, W9)."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from lukasa.surfaces.hooks.targets import TARGETS
from tests.helpers.cli import COMMAND, Shell

KILN = "The kiln firmware is flashed over serial at 57600 baud, never over wifi"
AGENTS = ("claude-code", "codex", "cursor", "gemini", "opencode")
LOOSE = '// our team\n{\n\t"theme": "dark", /* kept */\n\t"list": [1,2,  3],\n}\n'
STRICT = '{"theme":"dark",\n "list": [1,2,  3], "größe": {"a":1}}'
# What stood in each host's files before; formatting and comments as people leave them.
BEFORE = {
    ".claude/settings.json": STRICT,
    ".codex/hooks.json": '{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"say done"}]}]}}',
    ".codex/config.toml": '# my model\nmodel = "gpt-x"   # best\n\n[mcp_servers.files]\ncommand = "npx"\n\n\n',
    ".cursor/hooks.json": '{"version": 1, "hooks": {"stop": [{"command": "./done.sh"}]}}\n',
    ".cursor/mcp.json": '{\n    "mcpServers": {"files": {"command": "npx", "args": ["-y"]}}\n}',
    ".gemini/settings.json": LOOSE,
    ".config/opencode/opencode.jsonc": LOOSE,
}
FILES = {
    "claude-code": [".claude/settings.json"],
    "codex": [".codex/hooks.json", ".codex/config.toml"],
    "cursor": [".cursor/hooks.json", ".cursor/mcp.json"],
    "gemini": [".gemini/settings.json"],
    "opencode": [".config/opencode/opencode.jsonc"],
}


@dataclass
class Machine:
    """Somebody's home with a project in it, and a host."""

    shell: Shell
    home: Path
    host: str

    @property
    def project(self) -> Path:
        return self.home / "kiln"

    def install(self, *args: str, code: int = 0) -> str:
        done = subprocess.run(
            [*COMMAND, "install", self.host, *args],
            capture_output=True,
            cwd=self.project,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done
        return (done.stdout + done.stderr).decode()

    def environment(self) -> dict[str, str]:
        there = {"HOME": str(self.home), "XDG_CONFIG_HOME": "", "CLAUDE_CONFIG_DIR": "", "CODEX_HOME": ""}
        return self.shell.environment(**there, CLAUDE_PROJECT_DIR="", XDG_STATE_HOME="")

    def lays_out(self) -> dict[Path, bytes]:
        """The host's files as somebody has them."""
        for name in FILES[self.host]:
            path = self.home / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(BEFORE[name], "utf-8")
        return self.files()

    def files(self) -> dict[Path, bytes]:
        """All files of the home but the project's."""
        return {path: path.read_bytes() for path in self.home.rglob("*") if path.is_file()}

    def command(self, event: str) -> str:
        """The hook that the host's settings name for an event."""
        settings = json.loads((self.home / FILES[self.host][0]).read_text("utf-8"))
        found = [one for group in settings["hooks"][event] for one in group.get("hooks", [group])]
        (ours,) = [one["command"] for one in found if "hook" in shlex.split(one["command"])]
        return str(ours)

    def sends(self, event: str, **more: Any) -> dict[str, Any]:
        """What our hook answers to an event in the host's own form, run by a shell as the host does."""
        given = {**COMMON[self.host](self), "hook_event_name": event, **more}
        done = subprocess.run(
            ["sh", "-c", self.command(event)],
            input=json.dumps(given).encode(),
            capture_output=True,
            env=self.environment(),
            cwd="/",
            check=False,
            timeout=60,
        )
        assert (done.returncode, done.stderr) == (0, b""), done
        answer: dict[str, Any] = json.loads(done.stdout) if done.stdout.strip() else {}
        return answer

    def workspace(self) -> str:
        return self.shell.run("hook", "workspace", str(self.project)).strip()

    def knows(self, text: str) -> None:
        self.shell.run("workspace", "create", self.workspace())
        self.shell.run("-w", self.workspace(), "put", text)

    def recalls(self, question: str) -> str:
        self.shell.run("worker", "--once")
        return self.shell.run("-w", self.workspace(), "read", question)


# The fields that every event of a host has, as of its documentation.
COMMON: dict[str, Callable[[Machine], dict[str, Any]]] = {
    "claude-code": lambda m: {
        "session_id": "9c1e",
        "transcript_path": str(m.home / "t.jsonl"),
        "cwd": str(m.project),
        "permission_mode": "acceptEdits",
    },
    "codex": lambda m: {
        "session_id": "0199-codex",
        "transcript_path": None,
        "cwd": str(m.project),
        "model": "gpt-x",
        "permission_mode": "default",
        "turn_id": "turn-1",
    },
    "gemini": lambda m: {
        "session_id": "b7aa",
        "transcript_path": str(m.home / "session-1.json"),
        "cwd": str(m.project),
        "timestamp": "2026-11-15T10:00:00Z",
    },
    "cursor": lambda m: {
        "conversation_id": "cur-1",
        "generation_id": "gen-1",
        "model": "auto",
        "cursor_version": "3.2.1",
        "workspace_roots": [str(m.project)],
        "user_email": "ada@example.org",
        "transcript_path": str(m.home / "cursor.jsonl"),
    },
}
STARTS = {"claude-code": "SessionStart", "codex": "SessionStart", "gemini": "SessionStart", "cursor": "sessionStart"}
PROMPTS = {"claude-code": "UserPromptSubmit", "codex": "UserPromptSubmit", "gemini": "BeforeAgent"}
# The only fields that Codex takes from a hook; it refuses others.
CODEX_ANSWER = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "hookSpecificOutput": {
            "type": "object",
            "additionalProperties": False,
            "required": ["hookEventName"],
            "properties": {"hookEventName": {"type": "string"}, "additionalContext": {"type": "string"}},
        }
    },
}


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    home = tmp_path / "home"
    (home / "kiln").mkdir(parents=True)
    return Machine(Shell(tmp_path / "data"), home, request.param)


def each(*hosts: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("machine", hosts, indirect=True)


def heard(answer: dict[str, Any]) -> str:
    return str(answer.get("additional_context") or answer["hookSpecificOutput"]["additionalContext"])


@each(*AGENTS)
def test_connected_and_disconnected_to_the_byte(machine: Machine) -> None:
    """W9: others' lines, comments and formatting stay; a second time changes nothing; undo gives the bytes back."""
    before = machine.lays_out()
    shown = machine.install("--dry-run")
    assert "+++ " in shown
    assert machine.files() == before
    machine.install("--yes")
    once = machine.files()
    assert once != before
    for name in FILES[machine.host]:
        lines = (machine.home / name).read_text("utf-8").splitlines()
        for line in BEFORE[name].splitlines():
            start = line.rstrip("]}, ")[:40]
            assert any(one.startswith(start) for one in lines), (name, line)
    assert "nothing to do" in machine.install("--yes")
    assert machine.files() == once
    machine.install("--undo", "--yes")
    assert machine.files() == before
    assert "nothing to do" in machine.install("--undo")


@each(*AGENTS)
def test_a_fresh_home_is_left_as_it_was(machine: Machine) -> None:
    """W9: files that only we made are gone after an undo."""
    machine.install("--yes")
    assert machine.files()
    machine.install("--undo", "--yes")
    assert machine.files() == {}


@each(*AGENTS)
def test_later_edits_survive_an_undo(machine: Machine) -> None:
    """W9: what somebody wrote after the install stays, and ours goes."""
    machine.lays_out()
    machine.install("--yes")
    path = machine.home / FILES[machine.host][-1]
    text = path.read_text("utf-8")
    edited = text.replace("dark", "light").replace("npx", "bunx")
    assert edited != text
    path.write_text(edited, "utf-8")
    machine.install("--undo", "--yes")
    left = path.read_text("utf-8")
    assert "lukasa" not in left
    assert "light" in left or "bunx" in left
    assert BEFORE[FILES[machine.host][-1]].replace("dark", "light").replace("npx", "bunx").strip() == left.strip()


@each(*AGENTS)
def test_a_broken_file_is_refused(machine: Machine) -> None:
    """W9: in a sentence, with nothing written, also not into the host's other files."""
    machine.lays_out()
    path = machine.home / FILES[machine.host][-1]
    path.write_text(path.read_text("utf-8")[:-4] + ' "x": ]', "utf-8")
    before = machine.files()
    said = machine.install("--yes", code=2)
    assert "is not valid" in said or "not valid" in said
    assert "nothing was written" in said
    assert machine.files() == before


def test_what_is_found_and_connected(tmp_path: Path) -> None:
    """U2: the list says which hosts are here, which are connected and where."""
    machine = Machine(Shell(tmp_path / "data"), tmp_path, "cursor")
    machine.project.mkdir()
    (tmp_path / ".cursor").mkdir()
    machine.install("--yes", "--only", "mcp")

    def listed() -> dict[str, Any]:
        done = subprocess.run(
            [*COMMAND, "install", "--list", "--json"],
            capture_output=True,
            cwd=machine.project,
            env={**machine.environment(), "PATH": "/nowhere"},
            check=True,
            timeout=60,
        )
        return {one["host"]: one for one in json.loads(done.stdout)["hosts"]}

    found = listed()
    assert set(found) == set(TARGETS)
    assert (found["cursor"]["found"], found["codex"]["found"]) == (True, False)
    assert found["cursor"]["connected"] == [str(tmp_path / ".cursor" / "mcp.json")]
    machine.install("--yes", "--undo")
    assert listed()["cursor"]["connected"] == []


@each("claude-code", "codex", "gemini", "cursor")
def test_a_session_gets_memory_in_the_form_of_its_host(machine: Machine) -> None:
    """B9: the start, and where the host can add to a prompt, the prompt; a stop and unknown fields are harmless."""
    machine.install("--yes")
    machine.knows(KILN)
    started = machine.sends(STARTS[machine.host], source="startup", session_id="other")
    assert KILN in heard(started)
    if machine.host in PROMPTS:
        asked = machine.sends(PROMPTS[machine.host], prompt="how do we flash the kiln?", novelty={"a": [1]})
        assert KILN in heard(asked)
        assert asked["hookSpecificOutput"]["hookEventName"] == PROMPTS[machine.host]
        if machine.host == "codex":
            Draft202012Validator(CODEX_ANSWER).validate(asked)
    if machine.host != "gemini":
        stop = "stop" if machine.host == "cursor" else "Stop"
        assert machine.sends(stop, stop_hook_active=False, last_assistant_message="Done.") == {}


@each("claude-code", "codex")
def test_a_subagent_gets_memory_at_its_start(machine: Machine) -> None:
    """B9, C5: it has seen nothing of what its parent was given, and is given it; its parent still has its own."""
    machine.install("--yes")
    machine.knows(KILN)
    assert KILN in heard(machine.sends("SessionStart", source="startup"))
    about = {"agent_id": "agent-7", "agent_type": "Explore"}
    answer = machine.sends("SubagentStart", **about)
    assert answer["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
    assert KILN in heard(answer)
    assert machine.sends("UserPromptSubmit", prompt="how do we flash the kiln?") == {}


SAID = "We decided that kiln releases are signed with the Tallinn key. Please remember that."
TRANSCRIPTS: dict[str, tuple[str, list[Any]]] = {
    "claude-code": (
        "t.jsonl",
        [
            {
                "type": "user",
                "sessionId": "9c1e",
                "uuid": "u1",
                "timestamp": "2026-11-14T10:00:00Z",
                "message": {"role": "user", "content": SAID},
            }
        ],
    ),
    "cursor": (
        "cursor.jsonl",
        [
            {
                "role": "user",
                "message": {"content": [{"type": "text", "text": f"<user_query>\n{SAID}\n</user_query>"}]},
            },
            {"role": "assistant", "message": {"content": [{"type": "text", "text": "Noted."}]}},
        ],
    ),
    "gemini": (
        "session-1.json",
        [
            {
                "sessionId": "b7aa",
                "projectHash": "5f",
                "startTime": "2026-11-14T10:00:00Z",
                "messages": [
                    {"id": "1", "timestamp": "2026-11-14T10:00:00Z", "type": "user", "content": SAID},
                    {"id": "2", "timestamp": "2026-11-14T10:01:00Z", "type": "gemini", "content": "Noted."},
                ],
            }
        ],
    ),
    "codex": (
        "rollout.jsonl",
        [
            {"timestamp": "2026-11-14T10:00:00Z", "type": "session_meta", "payload": {"id": "0199-codex", "cwd": "/"}},
            {
                "timestamp": "2026-11-14T10:00:00Z",
                "type": "response_item",
                "payload": {"type": "message", "role": "user", "content": [{"type": "input_text", "text": SAID}]},
            },
        ],
    ),
}


def recorded(machine: Machine) -> str:
    """The transcript of a session, as the host writes it."""
    name, lines = TRANSCRIPTS[machine.host]
    path = machine.home / name
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    return str(path)


@each("claude-code", "gemini", "cursor")
def test_an_ended_session_is_observed(machine: Machine) -> None:
    """O1: the end event of each host, with its transcript in the host's own form."""
    machine.install("--yes")
    machine.sends(STARTS[machine.host], source="startup")
    recorded(machine)
    end = "sessionEnd" if machine.host == "cursor" else "SessionEnd"
    assert machine.sends(end, reason="exit") == {}
    assert "Tallinn key" in machine.recalls("which key signs the kiln releases?")


@each("claude-code", "codex", "cursor")
def test_a_session_that_crashed_is_observed_at_the_next_start(machine: Machine) -> None:
    """O1: it never said that it ended. The next start queues its observation, once, and leaves itself alone."""
    machine.install("--yes")
    path = str(machine.home / TRANSCRIPTS[machine.host][0])
    ids = {"cursor": "conversation_id"}
    name = ids.get(machine.host, "session_id")
    machine.sends(STARTS[machine.host], source="startup", transcript_path=path)
    recorded(machine)
    before = {name: "the-next", "transcript_path": str(machine.home / "none.jsonl"), "source": "startup"}
    machine.sends(STARTS[machine.host], **before)
    assert "Tallinn key" in machine.recalls("which key signs the kiln releases?")

    def observed() -> int:
        jobs = machine.shell.json("-w", machine.workspace(), "jobs")["jobs"]
        return len([job for job in jobs if job["kind"] == "observe"])

    done = observed()
    machine.sends(STARTS[machine.host], **{**before, name: "a-third"})
    assert observed() == done > 0


def test_an_unknown_moment_is_harmless(tmp_path: Path) -> None:
    """B9: settings of a newer Lukasa may name a hook that this one does not have."""
    done = Shell(tmp_path / "data").process("hook", "moonrise", input=b'{"session_id": "s"}')
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"moonrise" in done.stderr
    assert not (tmp_path / "data").exists()


@each("codex")
def test_codex_reads_the_server_that_was_written(machine: Machine) -> None:
    """U3: the table is TOML, beside others' tables, in whatever place."""
    machine.lays_out()
    machine.install("--yes", "--only", "mcp")
    path = machine.home / ".codex" / "config.toml"
    path.write_text(path.read_text("utf-8") + "\n[profiles.x]\nmodel = 'y'\n", "utf-8")
    machine.install("--yes", "--only", "mcp", "--embedder", "none")
    found = tomllib.loads(path.read_text("utf-8"))
    assert found["mcp_servers"]["lukasa"]["args"][-2:] == ["--agent", "codex"]
    assert "--embedder" in found["mcp_servers"]["lukasa"]["args"]
    assert found["profiles"] == {"x": {"model": "y"}}
    assert "lukasa" not in (machine.home / ".codex" / "hooks.json").read_text("utf-8")


DRIVER = """
const { Lukasa } = await import(process.argv[2])
const messages = [{ info: { id: "m1", role: "user", time: { created: 1763200000000 } },
                    parts: [{ type: "text", text: process.argv[4] }] }]
const client = { session: { messages: async () => ({ data: messages }) } }
const plugin = await Lukasa({ client, directory: process.argv[3] })
const sessionID = "ses_1"
const parts = [{ type: "text", text: "how do we flash the kiln?" }]
await plugin["chat.message"]({ sessionID }, { message: {}, parts })
const output = { system: [] }
await plugin["experimental.chat.system.transform"]({ sessionID }, output)
await plugin.event({ event: { type: "session.idle", properties: { sessionID } } })
await plugin.event({ event: { type: "moon.rises", properties: {} } })
console.log(output.system.join("\\n"))
"""


@each("opencode")
def test_opencode_runs_the_plugin(machine: Machine) -> None:
    """B9, O1: memory is in the system prompt, and the session is observed at the next start."""
    machine.install("--yes")
    machine.knows(KILN)
    plugin = machine.home / ".config" / "opencode" / "plugins" / "lukasa.js"
    module = plugin.with_suffix(".mjs")  # outside OpenCode, Node takes only this ending for a module
    module.write_bytes(plugin.read_bytes())
    driver = machine.home / "driver.mjs"
    driver.write_text(DRIVER)
    done = subprocess.run(
        ["node", str(driver), str(module), str(machine.project), SAID],
        capture_output=True,
        text=True,
        env=machine.environment(),
        cwd="/",
        check=True,
        timeout=60,
    )
    assert KILN in done.stdout
    kept = list((machine.home / ".local" / "state").rglob("*.json"))
    assert [path.stat().st_mode & 0o777 for path in kept] == [0o600]
    event = {"session_id": "ses_2", "cwd": str(machine.project), "hook_event_name": "SessionStart"}
    machine.shell.process("hook", "session-start", input=json.dumps(event).encode(), CLAUDE_PROJECT_DIR="")
    assert "Tallinn key" in machine.recalls("which key signs the kiln releases?")
    assert os.path.exists(kept[0])
