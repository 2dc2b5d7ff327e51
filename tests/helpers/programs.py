"""Programs for tests that behave like `claude -p` and its kind: they read a prompt from stdin and print an answer."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HEAD = f"""#!{sys.executable} -S
import json, os, sys
prompt = sys.stdin.read()
with open(__file__ + ".calls", "a") as calls:
    calls.write(json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ), prompt]) + "\\n")
calls = sum(1 for _ in open(__file__ + ".calls"))
"""


def program(path: Path, body: str) -> Path:
    """Write an executable that notes each call beside itself and then runs `body`.

    The body may use `prompt` and `calls`, which counts from 1.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD + body, "utf-8")
    path.chmod(0o755)
    return path


def shell_program(path: Path, body: str) -> Path:
    """Write an executable for the shell, which starts faster than Python."""
    path.write_text(f"#!/bin/sh\n{body}", "utf-8")
    path.chmod(0o755)
    return path


def calls(path: Path) -> list[tuple[list[str], str, dict[str, str], str]]:
    """Return the arguments, folder, environment and prompt of each call of a program."""
    file = Path(f"{path}.calls")
    return [tuple(json.loads(line)) for line in file.read_text("utf-8").splitlines()] if file.exists() else []


def says(text: str) -> str:
    """Return a body that prints this text."""
    return f"sys.stdout.write({text!r})\n"


def envelope(text: str, **more: object) -> str:
    """Return an answer as `claude -p --output-format json` prints it."""
    usage = {"input_tokens": 3, "cache_creation_input_tokens": 20, "cache_read_input_tokens": 100, "output_tokens": 7}
    body = {"type": "result", "subtype": "success", "is_error": False, "num_turns": 1, "result": text}
    return json.dumps({**body, "usage": usage, "total_cost_usd": 0.01, "session_id": "s", **more}) + "\n"
