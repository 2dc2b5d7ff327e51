"""`lukasa install claude-code`: what it writes into somebody's settings, and that it can be taken back (B9, U2, W9)."""

from __future__ import annotations

import json
import os
import pty
import shlex
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lukasa.surfaces.hooks import hosts
from tests.helpers.cli import COMMAND, ROOT, Shell
from tests.helpers.programs import program

EVENTS = list(hosts.CLAUDE_CODE.events)
THEIRS = {
    "model": "opus",
    "permissions": {"allow": ["Bash(git log:*)"], "deny": []},
    "hooks": {
        "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "~/bin/check.sh"}]}],
        "UserPromptSubmit": [{"hooks": [{"type": "command", "command": "echo lukasa hook prompt | cat"}]}],
    },
    "größe": 1,
}


@dataclass
class Home:
    """Somebody's home folder, with a project in it."""

    shell: Shell
    path: Path

    @property
    def settings(self) -> Path:
        return self.path / ".claude" / "settings.json"

    @property
    def backup(self) -> Path:
        return self.settings.with_name("settings.json.before-lukasa")

    def run(self, *args: str, code: int = 0, **env: str) -> subprocess.CompletedProcess[bytes]:
        done = subprocess.run(
            [*COMMAND, "install", "claude-code", *args],
            capture_output=True,
            cwd=self.path / "project",
            env=self.shell.environment(**{"HOME": str(self.path), "CLAUDE_CONFIG_DIR": "", **env}),
            stdin=subprocess.DEVNULL,
            check=False,
            timeout=60,
        )
        assert done.returncode == code, done
        return done

    def holds(self, content: bytes | str | dict[str, Any]) -> None:
        raw = json.dumps(content, indent=2) if isinstance(content, dict) else content
        self.settings.parent.mkdir(exist_ok=True)
        self.settings.write_bytes(raw.encode() if isinstance(raw, str) else raw)

    def read(self) -> dict[str, Any]:
        found = json.loads(self.settings.read_bytes())
        assert isinstance(found, dict)
        return found

    def commands(self) -> dict[str, list[str]]:
        """Our commands, by event."""
        return {
            event: [hook["command"] for group in groups for hook in group["hooks"] if hosts.ours(hook)]
            for event, groups in self.read()["hooks"].items()
        }


@pytest.fixture
def home(tmp_path: Path) -> Home:
    (tmp_path / "home" / "project").mkdir(parents=True)
    return Home(Shell(tmp_path / "data"), tmp_path / "home")


# Installing


def test_a_fresh_home(home: Home) -> None:
    """B9: five events, each with one command, and a file that Claude Code can read."""
    shown = home.run("--yes").stdout.decode()
    assert "+++ " in shown
    assert "written" in shown
    assert list(home.read()["hooks"]) == EVENTS
    for event, groups in home.read()["hooks"].items():
        assert groups == [{"hooks": [{"type": "command", "command": home.commands()[event][0], "timeout": 30}]}]
    assert not home.backup.exists()


def test_what_is_installed_works(home: Home) -> None:
    """B9: the commands in the file, run by a shell as Claude Code does, from any folder, answer."""
    home.run("--yes")
    home.shell.run("named", "edit", "SOUL", "--file", "-", input="Say what you are sure of.")
    event = {"session_id": "s", "cwd": str(home.path / "project"), "hook_event_name": "SessionStart"}
    for name in EVENTS:
        (command,) = home.commands()[name]
        env = home.shell.environment(CLAUDE_PROJECT_DIR="")
        given = json.dumps({**event, "hook_event_name": name, "prompt": "hello"}).encode()
        done = subprocess.run(["sh", "-c", command], input=given, capture_output=True, env=env, cwd="/", timeout=60)
        assert (done.returncode, done.stderr) == (0, b"")
        assert bool(done.stdout) == (name in ("SessionStart", "SubagentStart"))


def test_a_module_in_the_project_is_not_what_runs(home: Home) -> None:
    """T57: a hook runs in folders that others filled; nothing there is imported."""
    home.run("--yes")
    trap = home.path / "project"
    for name in ("click", "json", "lukasa", "numpy"):
        (trap / f"{name}.py").write_text("raise SystemExit('trapped')")
    (command,) = home.commands()["SessionStart"]
    done = subprocess.run(
        ["sh", "-c", command], input=b"{}", capture_output=True, env=home.shell.environment(), cwd=trap, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_what_was_there_stays_as_it_was(home: Home) -> None:
    """B9: other settings, other hooks, the order of keys, and letters beyond ASCII."""
    home.holds(json.dumps(THEIRS, indent=4, ensure_ascii=False))
    home.run("--yes")
    after = home.read()
    assert list(after) == list(THEIRS)
    assert after["hooks"]["PreToolUse"] == THEIRS["hooks"]["PreToolUse"]  # type: ignore[index]
    assert after["hooks"]["UserPromptSubmit"][0] == THEIRS["hooks"]["UserPromptSubmit"][0]  # type: ignore[index]
    assert list(after["hooks"]) == ["PreToolUse", "UserPromptSubmit", *(e for e in EVENTS if e != "UserPromptSubmit")]
    text = home.settings.read_text()
    assert '"größe"' in text
    assert '\n    "model"' in text
    assert not text.endswith("\n")
    assert json.loads(home.backup.read_text()) == THEIRS


def test_installing_twice_changes_nothing(home: Home) -> None:
    """B9: not a byte, not a time stamp, not the backup."""
    home.holds(THEIRS)
    home.run("--yes")
    before, when = home.settings.read_bytes(), home.settings.stat().st_mtime_ns
    told = home.run("--yes").stdout.decode()
    assert "nothing to do" in told
    assert home.settings.read_bytes() == before
    assert home.settings.stat().st_mtime_ns == when
    assert json.loads(home.backup.read_text()) == THEIRS


def test_another_program_or_option_replaces_the_command(home: Home) -> None:
    """B9: reinstalled from elsewhere, each event still has one of ours; the first backup is kept."""
    home.holds(THEIRS)
    home.run("--yes")
    home.run("--yes", "--workspace", "team space", "--embedder", "none", "--data", "~/memory")
    for commands in (c for c in home.commands().values() if c):
        (command,) = commands
        parts = shlex.split(command)
        assert parts[parts.index("--workspace") + 1] == "team space"
        assert parts[parts.index("--data") + 1] == str(home.path / "memory")
        assert parts[-2] == "hook"
    assert json.loads(home.backup.read_text()) == THEIRS


def test_the_environment_is_not_written_down(home: Home) -> None:
    """B9: what a folder's environment says at the time of installing is not meant for every folder."""
    home.run("--yes", LUKASA_WORKSPACE="only-here")
    assert "only-here" not in home.settings.read_text()


def test_scopes(home: Home) -> None:
    """B9: the person's file, the project's, the person's in the project; or where CLAUDE_CONFIG_DIR says."""
    home.run("--yes", "--scope", "project")
    home.run("--yes", "--scope", "local")
    home.run("--yes", CLAUDE_CONFIG_DIR=str(home.path / "elsewhere"))
    assert sorted(p.name for p in (home.path / "project" / ".claude").iterdir()) == [
        "settings.json",
        "settings.local.json",
    ]
    assert (home.path / "elsewhere" / "settings.json").is_file()
    assert not home.settings.exists()


def test_only_shown(home: Home) -> None:
    """B9: --print shows the change and writes nothing."""
    home.holds(THEIRS)
    before = home.settings.read_bytes()
    shown = home.run("--print").stdout.decode()
    assert "hook session-start" in shown
    assert home.settings.read_bytes() == before
    assert not home.backup.exists()


def test_nothing_is_written_unasked(home: Home) -> None:
    """B9: without a terminal to ask on, --yes is needed; the change is shown all the same."""
    done = home.run(code=2)
    assert b"hook prompt" in done.stdout
    assert b"--yes" in done.stderr
    assert not home.settings.exists()


def test_as_a_document(home: Home) -> None:
    """U2: --json says what changes, where, and whether it was written."""
    home.holds(THEIRS)
    told = json.loads(home.run("--json", "--print").stdout)
    assert (told["changes"], told["written"], told["action"]) == (True, False, "install")
    assert told["backup"] is None
    told = json.loads(home.run("--json", "--yes").stdout)
    assert (told["file"], told["written"], told["scope"]) == (str(home.settings), True, "user")
    assert told["backup"] == str(home.backup)
    assert any("hook prompt" in line for line in told["diff"])
    assert json.loads(home.run("--json", "--undo", code=2).stdout)["error"]["code"] == "usage"
    assert json.loads(home.run("--json", "--undo", "--yes").stdout)["action"] == "undo"


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False), ("", False)])
def test_a_person_is_asked(home: Home, answer: str, written: bool) -> None:
    """B9: on a terminal; no is the default. Without a `claude`, nothing else is asked."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "install", "claude-code"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=home.shell.environment(HOME=str(home.path), CLAUDE_CONFIG_DIR="", PATH=str(home.path)),
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0
    assert b"Write this to" in out
    assert home.settings.exists() == written


def asked(home: Home, answers: str) -> bytes:
    """What a person at a terminal sees who has a `claude` and gives these answers."""
    fake = program(home.path / "bin" / "claude", "")
    path = f"{fake.parent}:{os.environ['PATH']}"
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "install", "claude-code"],
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=home.shell.environment(HOME=str(home.path), CLAUDE_CONFIG_DIR="", PATH=path),
    )
    os.close(theirs)
    os.write(ours, answers.encode())
    out, _ = process.communicate(timeout=60)
    os.close(ours)
    assert process.returncode == 0, out
    return out


def models(home: Home) -> dict[str, bool]:
    """Which of our hooks name the language model."""
    return {event: "LUKASA_CHAT=command:claude " in command for event, (command,) in home.commands().items()}


WITH_MODEL = {event: event in ("PreCompact", "SessionEnd") for event in EVENTS}


@pytest.mark.parametrize(("answer", "expected"), [("y", WITH_MODEL), ("n", dict.fromkeys(EVENTS, False))])
def test_claude_as_the_observer_is_offered(home: Home, answer: str, expected: dict[str, bool]) -> None:
    """B9, O1: one question, which says what is sent and who pays; only the hooks that start a worker get the model."""
    out = asked(home, f"{answer}\ny\n")
    assert out.count(b"Let `claude -p` observe") == 1
    assert b"[y/N]" in out
    assert b"sends its text" in out
    assert b"pays for" in out
    assert models(home) == expected


def test_the_offer_is_off_unless_taken(home: Home) -> None:
    """B9: an empty answer is no."""
    asked(home, "\ny\n")
    assert not any(models(home).values())


def test_the_observer_stays_and_goes(home: Home) -> None:
    """B9: installing again asks nothing about it and keeps it; undo removes it with the hooks, to the byte."""
    home.holds(THEIRS)
    before = home.settings.read_bytes()
    asked(home, "y\ny\n")
    after = home.settings.read_bytes()
    assert b"Let `claude" not in asked(home, "")
    home.run("--yes")
    assert home.settings.read_bytes() == after
    (command,) = home.commands()["SessionEnd"]
    given = json.dumps({"session_id": "s", "hook_event_name": "SessionEnd"}).encode()
    done = subprocess.run(["sh", "-c", command], input=given, capture_output=True, env=home.shell.environment())
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    home.run("--undo", "--yes")
    assert home.settings.read_bytes() == before


def test_the_observer_is_not_offered_to_programs(home: Home) -> None:
    """U2: without a terminal, with --json or with --yes there is no question and no model."""
    path = f"{program(home.path / 'bin' / 'claude', '').parent}:{os.environ['PATH']}"
    for args in (("--print",), ("--json", "--print"), ("--yes",)):
        done = home.run(*args, PATH=path)
        assert b"claude -p" not in done.stdout + done.stderr
    assert not any(models(home).values())


def test_the_file_keeps_its_mode_and_its_link(home: Home) -> None:
    """B9: settings that live in a dotfiles folder stay there, and stay private."""
    real = home.path / "dotfiles" / "claude.json"
    real.parent.mkdir()
    real.write_text("{}\n")
    real.chmod(0o600)
    home.settings.parent.mkdir()
    home.settings.symlink_to(real)
    home.run("--yes")
    assert home.settings.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o600
    assert list(json.loads(real.read_bytes())["hooks"]) == EVENTS
    assert sorted(p.name for p in real.parent.iterdir()) == ["claude.json", "claude.json.before-lukasa"]
    home.run("--undo", "--yes")
    assert real.read_text() == "{}\n"


def test_the_command_is_this_very_program(home: Home, tmp_path: Path) -> None:
    """B9: by its own absolute path where there is one, quoted for the shell."""
    bin = tmp_path / "a bin"
    bin.mkdir()
    script = bin / "lukasa"
    script.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(ROOT / 'src')!r})\n"
        "from lukasa.surfaces.cli.main import main\nmain()\n"
    )
    script.chmod(0o755)
    env = home.shell.environment(HOME=str(home.path), CLAUDE_CONFIG_DIR="", PATH=f"{bin}:{os.environ['PATH']}")
    subprocess.run(["lukasa", "install", "claude-code", "--yes"], env=env, check=True, capture_output=True, timeout=60)
    assert home.commands()["SessionStart"] == [f"'{script}' hook session-start"]
    done = subprocess.run(["sh", "-c", home.commands()["SessionStart"][0]], input=b"{}", capture_output=True, env=env)
    assert (done.returncode, done.stderr) == (0, b"")


# Undoing

SPELLINGS: dict[str, bytes] = {
    "usual": json.dumps(THEIRS, indent=2).encode() + b"\n",
    "on one line": json.dumps(THEIRS).encode(),
    "tabs": json.dumps(THEIRS, indent="\t").encode(),
    "windows": json.dumps(THEIRS, indent=2).replace("\n", "\r\n").encode(),
    "with a byte order mark": b"\xef\xbb\xbf" + json.dumps(THEIRS, indent=2).encode(),
    "its own way": b'{ "hooks" : {\n\n  "Stop": [] , "PreToolUse":[ ]}, "a":1.50, "b":"\\u00e9" }\n\n',
    "no hooks": b'{"model": "opus"}',
    "empty hooks": b'{"hooks": {}}\n',
    "empty object": b"{}",
    "empty file": b"",
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_undo_gives_back_the_very_bytes(home: Home, case: str) -> None:
    """B9: however the file was spelled."""
    home.holds(SPELLINGS[case])
    home.run("--yes")
    assert [bool(c) for e, c in home.commands().items() if e in EVENTS] == [True] * len(EVENTS)
    home.run("--undo", "--yes")
    assert home.settings.read_bytes() == SPELLINGS[case]
    assert not home.backup.exists()


def test_undo_removes_the_file_that_was_made(home: Home) -> None:
    """B9: where there was none, none is left."""
    home.run("--yes")
    home.run("--undo", "--yes")
    assert not home.settings.exists()


def test_undo_after_edits_takes_out_ours_alone(home: Home) -> None:
    """B9: what was added since stays, also inside the lists that hold ours, and with an option added to ours."""
    home.holds(THEIRS)
    home.run("--yes")
    edited = home.read()
    edited["theme"] = "dark"
    edited["hooks"]["SessionStart"][0]["hooks"].append({"type": "command", "command": "date"})
    edited["hooks"]["SessionEnd"][0]["hooks"][0]["command"] += " --embedder none"
    edited["hooks"]["Stop"] = [{"hooks": [{"type": "command", "command": "say done"}]}]
    home.holds(edited)
    home.run("--undo", "--yes")
    hooks = THEIRS["hooks"]
    assert isinstance(hooks, dict)
    assert home.read() == {
        **THEIRS,
        "hooks": {
            **hooks,
            "SessionStart": [{"hooks": [{"type": "command", "command": "date"}]}],
            "Stop": [{"hooks": [{"type": "command", "command": "say done"}]}],
        },
        "theme": "dark",
    }
    assert b"nothing to do" in home.run("--undo", "--yes").stdout


def test_undo_with_nothing_to_undo(home: Home) -> None:
    """B9: not even a file is made."""
    assert b"nothing to do" in home.run("--undo", "--yes").stdout
    assert not home.settings.exists()
    home.holds(THEIRS)
    before = home.settings.read_bytes()
    home.run("--undo", "--yes")
    assert home.settings.read_bytes() == before


# What cannot be touched

MALFORMED: dict[str, bytes] = {
    "not JSON": b"{ model: opus }",
    "a comment": b'{\n  // mine\n  "model": "opus"\n}',
    "cut off": b'{"hooks": {',
    "a list": b"[]",
    "a key twice": b'{"model": "a", "model": "b"}',
    "NaN": b'{"a": NaN}',
    "not UTF-8": b'{"a": "\xff"}',
    "deep": b"[" * 100_000,
    "hooks is a list": b'{"hooks": []}',
    "an event is an object": b'{"hooks": {"SessionStart": {}}}',
    "a group is a string": b'{"hooks": {"SessionStart": ["x"]}}',
    "the hooks of a group are an object": b'{"hooks": {"SessionStart": [{"hooks": {}}]}}',
}


@pytest.mark.parametrize("case", MALFORMED)
@pytest.mark.parametrize("action", ["install", "undo"])
def test_a_malformed_file_is_refused_and_left_alone(home: Home, case: str, action: str) -> None:
    """W9: a typed error that names the file or the key; nothing is written, not even a backup."""
    home.holds(MALFORMED[case])
    done = home.run("--yes", *(["--undo"] if action == "undo" else []), code=2)
    assert done.stderr.startswith(b"error: ")
    assert b"nothing was written" in done.stderr
    assert b"Traceback" not in done.stderr
    assert home.settings.read_bytes() == MALFORMED[case]
    assert [p.name for p in home.settings.parent.iterdir()] == ["settings.json"]


def test_a_folder_in_the_way(home: Home) -> None:
    """W9: settings.json that is a folder, and a .claude that is a file."""
    home.settings.mkdir(parents=True)
    assert b"is not a file" in home.run("--yes", code=2).stderr
    (home.path / "project" / ".claude").write_text("in the way")
    done = home.run("--yes", "--scope", "project", code=2)
    assert b"unexpected" not in done.stderr
    assert (home.path / "project" / ".claude").read_text() == "in the way"


# The pure part

OTHERS = [
    {"type": "command", "command": "echo lukasa hook prompt; rm x"},
    {"type": "command", "command": "lukasa put hook prompt | tee log"},
    {"type": "command", "command": "/opt/other hook session-start"},
    {"type": "command", "command": "lukasa hook workspace"},
    {"type": "command", "command": "lukasa 'unclosed"},
    {"type": "prompt", "prompt": "lukasa hook prompt"},
    "lukasa hook prompt",
    None,
]


@pytest.mark.parametrize("hook", OTHERS, ids=str)
def test_what_is_not_ours_is_not_taken_for_ours(hook: object) -> None:
    """B9: only a plain call of one of our moments is."""
    assert not hosts.ours(hook)


def test_settings_are_never_changed_in_place() -> None:
    """Settings in, settings out: the functions are pure, and the second time there is nothing left to do."""
    before = json.dumps(THEIRS)
    once = hosts.installed(hosts.CLAUDE_CODE, THEIRS, ["/usr/bin/lukasa"])
    assert json.dumps(THEIRS) == before
    assert hosts.installed(hosts.CLAUDE_CODE, once, ["/usr/bin/lukasa"]) == once
    assert hosts.removed(once) == THEIRS
    assert json.dumps(hosts.removed(THEIRS)) == before
