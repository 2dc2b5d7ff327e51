"""The command as a real process: start-up, exit codes, pipes, terminals, interrupts, nonsense (U2, W9, T56)."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import apsw
import pytest

from lukasa import __version__
from tests.helpers.cli import COMMAND, Shell

NASTY = "red \x1b[31;1m bell \x07 title \x1b]0;owned\x07 csi \x9b2J back \x08 bidi \u202e del \x7f"


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def on_a_terminal(shell: Shell, *args: str, **env: str) -> bytes:
    """What a terminal receives: stdout and stderr of a process that has one."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, *args],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**shell.environment(TERM="xterm-256color", **env)},
    )
    os.close(theirs)
    received = b""
    while True:
        try:
            part = os.read(ours, 65536)
        except OSError:  # Linux's way to say that the other end has closed
            break
        if not part:
            break
        received += part
    os.close(ours)
    assert process.wait(timeout=60) == 0, received
    return received


@pytest.mark.parametrize("flag", ["--version", "--help"])
def test_the_version_loads_no_engine(shell: Shell, flag: str) -> None:
    """U2: what a shell prompt or a hook asks for must not pay for numpy, the database or rich."""
    code = (
        "import sys\n"
        "from lukasa.surfaces.cli.main import main\n"
        f"sys.argv = ['lukasa', '{flag}']\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=shell.environment(), check=True, timeout=60
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "click" in loaded
    assert not {"numpy", "apsw", "rich", "onnxruntime", "snowballstemmer"} & loaded
    assert not {
        name for name in done.stderr.split() if name.startswith(("lukasa.app", "lukasa.providers", "lukasa.storage"))
    }
    assert __version__ in done.stdout or "Quick start" in done.stdout


def test_version_and_help(shell: Shell) -> None:
    assert shell.process("--version").stdout.decode() == f"lukasa {__version__}\n"
    bare = shell.process()
    assert bare.returncode == 0
    assert len(bare.stdout.decode().strip().splitlines()) == 5
    assert "lukasa --help" in bare.stdout.decode()
    assert "Usage: lukasa" in shell.process("--help").stdout.decode()
    assert not shell.data.exists()


def test_exit_codes(shell: Shell) -> None:
    """U2: 0 done, 1 refused or not found, 2 the call is wrong; messages on stderr, stdout empty."""
    assert shell.process("put", "The villain is called Malachar").returncode == 0
    missing = shell.process("get", "01a1e1bf-8e8f-7c44-9d82-37fb6b6b1339")
    assert (missing.returncode, missing.stdout) == (1, b"")
    assert missing.stderr.startswith(b"error: no entry")
    assert shell.process("get", "not-an-id").returncode == 2
    assert shell.process("no-such-command").returncode == 2
    assert shell.process("put").returncode == 2


def test_json_errors_are_documents_on_stdout(shell: Shell) -> None:
    """U2: also for a command line that could not even be parsed."""
    for args, code in ((("get", "x"), "invalid-input"), (("put", "--nonsense"), "usage"), (("nothing",), "usage")):
        done = shell.process(*args, "--json")
        assert done.returncode == 2
        assert done.stderr == b""
        assert json.loads(done.stdout)["error"]["code"] == code


def test_an_unexpected_failure_says_so_and_how_to_report_it(shell: Shell) -> None:
    """U2: no traceback unless asked for."""
    code = "from lukasa.surfaces.cli.output import report\nreport(RuntimeError('boom'), as_json=False)"
    command = [sys.executable, "-c", code]
    plain = subprocess.run(command, capture_output=True, text=True, env=shell.environment(), check=True)
    assert "unexpected RuntimeError: boom" in plain.stderr
    assert "LUKASA_DEBUG=1" in plain.stderr
    assert "Traceback" not in plain.stderr


def test_debug_shows_the_traceback(shell: Shell) -> None:
    assert b"Traceback" not in shell.process("get", "x").stderr
    assert b"Traceback" in shell.process("get", "x", LUKASA_DEBUG="1").stderr


NONSENSE: dict[str, tuple[tuple[str, ...], bytes | None]] = {
    "empty": (("put", ""), None),
    "blank": (("put", " \n\t "), None),
    "empty stdin": (("put", "-"), b""),
    "ten megabytes": (("put", "-"), b"x" * 10_000_000),
    "more than any input": (("put", "-"), b"x" * 33_000_000),
    "NUL": (("put", "-"), b"a memory with \x00 in it"),
    "not UTF-8": (("put", "-"), b"\xff\xfe latin \xe9 text"),
    "surrogate argument": (("put", os.fsdecode(b"a memory with \xff\xfe in it")), None),
    "NaN importance": (("put", "A proper statement here", "--importance", "nan"), None),
    "infinite importance": (("put", "A proper statement here", "--importance", "inf"), None),
    "importance in words": (("put", "A proper statement here", "--importance", "high"), None),
    "unknown tier": (("put", "A proper statement here", "--tier", "attic"), None),
    "unknown kind": (("put", "A proper statement here", "--kind", "magic"), None),
    "unknown lifetime": (("put", "A proper statement here", "--lifetime", "forever"), None),
    "bad time": (("put", "A proper statement here", "--valid-at", "yesterday"), None),
    "bad metadata": (("put", "A proper statement here", "--metadata", "[1]"), None),
    "deep metadata": (("put", "A proper statement here", "--metadata", "[" * 100_000), None),
    "bad supersedes": (("put", "A proper statement here", "--supersedes", "x"), None),
    "empty agent": (("--agent", "shared", "put", "A proper statement here"), None),
    "empty patch": (("update", "01a1e1bf-8e8f-7c44-9d82-37fb6b6b1339"), None),
    "limit zero": (("list", "--limit", "0"), None),
    "limit below zero": (("read", "x", "--limit", "-5"), None),
    "unknown profile": (("read", "x", "--profile", "psychic"), None),
    "long query": (("read", "x" * 30_000), None),
    "unknown state": (("list", "--state", "gone"), None),
    "budget zero": (("context", "--budget", "0"), None),
    "event limit": (("events", "list", "--limit", "0"), None),
    "bad name": (("named", "edit", "9 lives", "--file", "-"), b"x"),
    "empty workspace name": (("workspace", "create", " "), None),
}


@pytest.mark.parametrize("case", NONSENSE)
def test_nonsense_is_a_typed_error_and_writes_nothing(shell: Shell, case: str) -> None:
    """W9: exit code 2, a message that says what to change, no traceback, no trace in the log."""
    args, given = NONSENSE[case]
    shell.put("What was there before stays there")
    before = shell.json("events", "head")
    done = shell.process(*args, input=given)
    assert done.returncode == 2, done
    assert done.stderr.startswith(b"error: ")
    assert b"Traceback" not in done.stderr
    assert b"unexpected" not in done.stderr
    assert len(done.stderr) < 2000
    assert done.stdout == b""
    assert shell.json("events", "head") == before


def test_stored_escape_codes_never_reach_a_terminal(shell: Shell) -> None:
    """T56: memory cannot ring, clear, retitle or recolour; rich markup in it is just brackets."""
    id = shell.put(f"[bold red]{NASTY}[/]", "--tag", "plain")
    shell.run("channel", "create", "plain")
    named_before_names_were_plain(shell, tag="\x1b[2J", channel="evil \x1b[31;1m name")
    shell.run("named", "edit", "EVIL", "--file", "-", input=NASTY)
    commands = (("get", id), ("list",), ("read", "bell"), ("why", id), ("history", id), ("channel", "list"))
    for args in (*commands, ("named", "show", "EVIL"), ("context", "bell", "--why"), ("get", id, "--json")):
        received = on_a_terminal(shell, *args).decode()
        for code in ("\x1b[31;1m", "\x1b]0;", "\x07", "\x9b", "\x08", "\u202e", "\x7f", "\x1b[2J"):
            assert code not in received, (args, code)
    assert "[bold red]" in on_a_terminal(shell, "get", id).decode()


def named_before_names_were_plain(shell: Shell, *, tag: str, channel: str) -> None:
    """Put names into the store that no surface takes any more."""
    (file,) = (shell.data / "workspaces").glob("*/memory.db")
    db = apsw.Connection(str(file))
    db.execute("UPDATE entries SET tags = json_array(?)", (tag,))
    db.execute("UPDATE channels SET name = ? WHERE name = 'plain'", (channel,))
    db.close()


def test_errors_cannot_drive_a_terminal_either(shell: Shell) -> None:
    """T56: what a caller typed is shown harmless in the message."""
    done = shell.process("-w", "x\x1b[31m", "list")
    assert done.returncode == 1
    assert b"\x1b" not in done.stderr


def test_colour_only_on_a_terminal(shell: Shell) -> None:
    """U2: a pipe, NO_COLOR, --no-color and a dumb terminal get plain text."""
    shell.put("The villain is called Malachar")
    assert b"\x1b[" in on_a_terminal(shell, "list")
    assert b"\x1b" not in shell.process("list").stdout
    assert b"\x1b" not in on_a_terminal(shell, "list", NO_COLOR="1")
    assert b"\x1b" not in on_a_terminal(shell, "list", "--no-color")
    assert b"\x1b" not in on_a_terminal(shell, "list", "--json")


def test_rich_is_not_loaded_for_a_pipe(shell: Shell) -> None:
    code = (
        "import sys\n"
        "from lukasa.surfaces.cli.main import main\n"
        "sys.argv = ['lukasa', 'list']\n"
        "try:\n    main()\n"
        "finally:\n    print(*sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=shell.environment(), check=True, timeout=60
    )
    assert "rich" not in done.stderr.split()


def test_a_broken_pipe_is_silent(shell: Shell) -> None:
    """U2: `lukasa … | head` leaves no complaint, whether the reader goes early or late."""
    for args in (("list",), ("spec", "diff", "default", "anchored"), ("--help",)):
        process = subprocess.Popen(
            [*COMMAND, *args], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=shell.environment()
        )
        assert process.stdout is not None
        process.stdout.close()
        _, complaint = process.communicate(timeout=60)
        assert complaint == b""


def test_an_interrupt_ends_with_130(shell: Shell) -> None:
    """U2: Ctrl-C at a question."""
    process = subprocess.Popen(
        [*COMMAND, "spec", "new"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=shell.environment(PYTHONUNBUFFERED="1"),
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a suite in the background ignores it
    )
    assert process.stderr is not None
    asked = b""
    while b"called?" not in asked:
        part = process.stderr.read(1)
        assert part, asked
        asked += part
    for _ in range(60):  # a signal just before the read begins is seen only after it; a person presses Ctrl-C again
        process.send_signal(signal.SIGINT)
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=1)
            break
    out, rest = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"Traceback" not in rest
    assert out == b""


def test_any_locale_can_print_any_memory(shell: Shell) -> None:
    """B14: a terminal that cannot show a character gets an escape, not a crash."""
    shell.put("東京の港は一月に凍る。毎年のことです。")
    done = shell.process("list", PYTHONIOENCODING="ascii", PYTHONUTF8="0")
    assert done.returncode == 0
    assert b"\\u6771" in done.stdout


def test_a_folder_that_cannot_be_used_is_an_error(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("in the way")
    done = shell.process("--data", str(file), "list")
    assert done.returncode == 1
    assert b"unexpected" not in done.stderr
