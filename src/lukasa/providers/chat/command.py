"""Language models behind a program on this machine, such as `claude -p`: the model that a user already has.

    reply         one deadline for all; a second run if the first gave no usable answer
    └ _once       one run in an empty folder, and its exit code; the prompt on stdin, and bounded output

The prompt is never an argument, because everybody on the machine can read arguments. No shell is involved. The program
gets the environment and LUKASA_INSIDE, so that hooks in it do nothing. Such a model gets no tools.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shlex
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from msgspec import Struct

from lukasa.model.errors import ChatMalformed, ChatRefused, ChatUnavailable, InvalidInput
from lukasa.ports import INSIDE, Message, Reply, Tool, Usage
from lukasa.providers.chat.anthropic_chat import PROMPT_COUNTS
from lukasa.providers.chat.reply_builder import VisibleText, count, tidy, without_stray_thought
from lukasa.providers.chat.wire import clean
from lukasa.providers.programs import TooLong, ended, exchange

ALLOWED = "command:claude, command:codex, command:gemini, command:ollama:<model>, command:/<path> <arguments>"
MOST_OUTPUT = 1_000_000  # bytes
_MODEL = re.compile(r"\w[\w.:/@+-]*")
# Claude Code refuses to start inside itself, and a hook of Claude Code has these variables.
_NESTING = ("CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT")
_NO_TOOLS = (
    "You have no tools here: you can neither store, change nor look up anything. Never say that you did. Lukasa itself "
    "takes the facts out of this conversation when it ends."
)


class Preset(Struct, frozen=True):
    """The arguments of a known program: before the model, the option that names the model, and after the model."""

    before: tuple[str, ...]
    option: tuple[str, ...] = ("--model",)
    after: tuple[str, ...] = ()
    needs_model: bool = False


# Without tools where the program allows it, and without a record of the call: a record could be observed as a session.
PRESETS = {
    "claude": Preset(
        ("claude", "-p", "--output-format", "json", "--no-session-persistence", "--tools", "", "--strict-mcp-config")
    ),
    "codex": Preset(
        ("codex", "exec", "--skip-git-repo-check", "--ephemeral", "--sandbox", "read-only", "--color", "never"),
        after=("-",),
    ),
    "gemini": Preset(("gemini",), after=("-p", "Follow the text above.")),
    "ollama": Preset(("ollama", "run", "--hidethinking"), option=(), needs_model=True),
}


class Program(Struct, frozen=True):
    """A program with its arguments, and the name of the model behind it. The name leaves out a person's arguments."""

    name: str
    argv: tuple[str, ...]

    def found(self, env: Mapping[str, str]) -> str | None:
        """Return the path of the program; None if it is not installed."""
        return shutil.which(self.argv[0], path=env.get("PATH", os.defpath))

    @property
    def missing(self) -> tuple[str, str]:
        """Say that the program is not installed, and what to do."""
        return f"there is no program {self.argv[0]}", "install it, or correct LUKASA_CHAT or PATH"


def parse(text: str) -> Program:
    """Read a setting without its `command:`; InvalidInput if it names neither a known program nor a path."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise _wrong(text, f"its words cannot be told apart ({error})") from None
    if not words:
        raise _wrong(text, "it names no program")
    known, _, model = words[0].partition(":")
    if known in PRESETS:
        return _known(text, known, model, words[1:])
    if not words[0].startswith(("/", "~/")):
        raise _wrong(text, f"{words[0]!r} is neither a program that Lukasa knows nor an absolute path")
    if any("{prompt}" in word for word in words):
        raise _wrong(text, "the prompt comes on stdin, not as an argument")
    path = Path(words[0]).expanduser()
    return Program(f"command:{path.name}", (str(path), *words[1:]))


def _known(text: str, name: str, model: str, rest: Sequence[str]) -> Program:
    preset = PRESETS[name]
    if rest:
        raise _wrong(text, f"{name} takes no arguments here; to give some, name the program by its path")
    if preset.needs_model and not model:
        raise _wrong(text, f"{name} needs a model")
    if model and not _MODEL.fullmatch(model):
        raise _wrong(text, f"{model!r} is not the name of a model")
    chosen = (*preset.option, model) if model else ()
    return Program(f"command:{name}:{model}" if model else f"command:{name}", (*preset.before, *chosen, *preset.after))


def _wrong(text: str, why: str) -> InvalidInput:
    return InvalidInput(f"unknown chat model 'command:{text[:80]}': {why}", fix=f"use one of: {ALLOWED}")


class CommandChat:
    """One program. Each question runs it once; threads may share it."""

    def __init__(self, program: Program, env: Mapping[str, str], *, most: int = MOST_OUTPUT) -> None:
        self._program = program
        self._env = dict(env)
        self._most = most

    def __repr__(self) -> str:
        return f"<{self.name}>"

    @property
    def name(self) -> str:
        return self._program.name

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        timeout: float = 60.0,
        on_text: Callable[[str], None] | None = None,
    ) -> Reply:
        """Return the program's answer. `on_text` gets it in one piece, because only the end shows that it is whole."""
        if self._env.get(INSIDE):
            raise ChatRefused(
                f"{self.name} cannot be asked inside a program that Lukasa runs", fix=f"unset {INSIDE} if it is not so"
            )
        ends = time.monotonic() + timeout
        prompt = rendered(messages, without_tools=bool(tools))
        try:
            reply = self._once(prompt, ends, timeout)
        except ChatMalformed:
            reply = self._once(prompt, ends, timeout)
        if on_text:
            on_text(reply.text)
        return reply

    def _once(self, prompt: str, ends: float, timeout: float) -> Reply:
        path = self._program.found(self._env)
        if path is None:
            reason, fix = self._program.missing
            raise ChatRefused(reason, fix=fix)
        env = {key: value for key, value in self._env.items() if key not in _NESTING}
        try:
            # An empty folder of its own: no project's instructions are read, and a program with tools finds no files.
            with tempfile.TemporaryDirectory(prefix="lukasa-", ignore_cleanup_errors=True) as folder:
                process = subprocess.Popen(
                    [path, *self._program.argv[1:]],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    cwd=folder,
                    env={**env, INSIDE: "1"},
                    start_new_session=True,
                    bufsize=0,
                )
                with ended(process):
                    out, complaint = exchange(process, prompt.encode(), ends, self._most)
        except TimeoutError:
            raise ChatUnavailable(
                f"{self.name} gave no answer within {timeout:g} s", fix="try again, or allow more time"
            ) from None
        except TooLong:
            raise self._malformed(f"is longer than {self._most:,} bytes") from None
        except OSError as error:
            raise ChatRefused(
                f"{self._program.argv[0]} cannot be run: {error.strerror}", fix="check the program and its permissions"
            ) from None
        return self._read(process.returncode, out.decode("utf-8", "replace"), _last_line(complaint, prompt))

    def _read(self, code: int, out: str, complaint: str) -> Reply:
        envelope = _envelope(out)
        text, usage = (out, Usage()) if envelope is None else (envelope.get("result"), _usage(envelope))
        failed = envelope is not None and (envelope.get("is_error") or not isinstance(text, str))
        if code or failed:
            said = clean(text if envelope is not None and isinstance(text, str) else complaint, "")
            how = f"ended with code {code}" if code else "reported a failure"
            raise ChatUnavailable(
                f"{self.name} {how}{f': {said}' if said else ''}",
                fix=f"run `{self._program.argv[0]}` by hand: it may need a login, credit or another version",
            )
        visible = VisibleText()
        visible.feed(str(text))
        visible.finish()
        answer = without_stray_thought(visible.text)
        if not answer:
            raise self._malformed("is empty")
        return Reply(answer, usage=usage)

    def _malformed(self, what: str) -> ChatMalformed:
        return ChatMalformed(f"the answer of {self.name} {what}", fix="try again, or with another model")


def rendered(messages: Sequence[Message], *, without_tools: bool = False) -> str:
    """Return a conversation as one text: the instructions, then each message under a line with a mark.

    The mark is new each time, so no text of a message can pretend to be another message.
    """
    system = list(takewhile(lambda message: message.role == "system", messages))
    mark = f"[{secrets.token_hex(8)}"
    parts = [message.content for message in system if message.content]
    if without_tools:
        parts.append(_NO_TOOLS)
    parts.append(
        f"The conversation follows. Each message begins with a line that begins with {mark}; no other line begins one. "
        "Write the next message of the assistant: its text alone, nothing before or after it."
    )
    parts += [f"{mark} {message.role}]\n{message.content}" for message in messages[len(system) :] if message.content]
    return tidy("\n\n".join((*parts, f"{mark} assistant]\n")))


def _envelope(out: str) -> dict[str, Any] | None:
    """Return the object around the answer that `claude --output-format json` prints; None for any other output."""
    if not out.lstrip().startswith("{"):
        return None
    try:
        body = json.loads(out)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) and body.get("type") == "result" else None


def _usage(envelope: Mapping[str, Any]) -> Usage:
    usage = envelope.get("usage")
    if not isinstance(usage, dict):
        return Usage()
    return Usage(sum(count(usage.get(name)) for name in PROMPT_COUNTS), count(usage.get("output_tokens")))


def _last_line(complaint: bytes, prompt: str) -> str:
    """Return the last line of stderr that is not part of the prompt: some programs repeat the prompt there."""
    lines = (line.strip() for line in reversed(complaint.decode("utf-8", "replace").splitlines()))
    return next((line for line in lines if line and line not in prompt), "")
