"""What coding agents leave on a disk: their sessions, their memories and their rules.

    ~/.claude      projects/<folder>/<session>.jsonl · projects/<folder>/memory/*.md · CLAUDE.md
    ~/.codex       sessions/<year>/<month>/<day>/rollout-*.jsonl · memories/*.md · AGENTS.md

Any folder with such session files will do, and a single one.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence

import msgspec

from lukasa.model.errors import InvalidInput
from lukasa.model.past import PastSkipped, PastStatement
from lukasa.ports import PastTalk, Recording
from lukasa.providers.past import rules_files
from lukasa.providers.past.bundle import Bundle
from lukasa.providers.transcripts import FileReader, claude_code, codex

CLAUDE, CODEX, SESSION = claude_code.NAME, codex.NAME, "session"
CLAUDE_TITLE = "Claude Code: ~/.claude or ~/.claude/projects (sessions, auto-memory, CLAUDE.md)"
CODEX_TITLE = "Codex: ~/.codex or its sessions (sessions, memories, AGENTS.md)"
SESSION_TITLE = "one recorded session, as `lukasa observe` reads it"
_LOOKED_AT = 12  # files that decide the format
_FIRST = 50  # lines of each


def _of_format(bundle: Bundle, name: str) -> str:
    """Say which agent wrote a session file; empty for another file."""
    for line in bundle.head(name).splitlines()[:_FIRST]:
        try:
            record = msgspec.json.decode(line)
        except (msgspec.MsgspecError, RecursionError):
            continue
        if isinstance(record, dict):
            for module in (claude_code, codex):
                if module.fits(record):
                    return str(module.NAME)
    return ""


def _sessions(bundle: Bundle, agent: str) -> list[str]:
    """Return the session files: those in the agent's own folder for them, if there is one, or else all."""
    own = "projects/" if agent == CLAUDE else ("sessions/", "archived_sessions/")
    found = bundle.ending(".jsonl")
    return [name for name in found if name.startswith(own)] or found


def _fits(bundle: Bundle, agent: str) -> bool:
    if not bundle.is_folder:
        return False
    return any(_of_format(bundle, name) == agent for name in _sessions(bundle, agent)[:_LOOKED_AT])


def fits_claude(bundle: Bundle) -> bool:
    return _fits(bundle, CLAUDE)


def fits_codex(bundle: Bundle) -> bool:
    return _fits(bundle, CODEX)


def read_claude(bundle: Bundle) -> Iterator[PastTalk | PastSkipped | PastStatement]:
    folders: dict[str, str] = {}
    for name, found in _recorded(bundle, _sessions(bundle, CLAUDE)):
        if isinstance(found, PastSkipped):
            yield found
            continue
        folders.setdefault(_project(name), found.folder)
        yield PastTalk(found, bundle.place(name))
    memory: dict[str, list[str]] = {}
    for name in bundle.ending(".md"):
        if posixpath.basename(posixpath.dirname(name)) == "memory":
            memory.setdefault(_project(posixpath.dirname(name)), []).append(name)
    for project, names in sorted(memory.items()):
        yield from rules_files.memories(bundle, names, CLAUDE, by=CLAUDE, folder=folders.get(project, ""))
    if "CLAUDE.md" in bundle.names:
        yield from rules_files.rules(bundle, "CLAUDE.md", CLAUDE)


def _project(name: str) -> str:
    """Return the folder of a project that a file is in; Claude Code names it after the path of the project."""
    parts = posixpath.dirname(name).split("/")
    return "/".join(parts[: parts.index("projects") + 2]) if "projects" in parts else parts[0]


def read_codex(bundle: Bundle) -> Iterator[PastTalk | PastSkipped | PastStatement]:
    for name, found in _recorded(bundle, _sessions(bundle, CODEX)):
        yield found if isinstance(found, PastSkipped) else PastTalk(found, bundle.place(name))
    notes = [name for name in bundle.ending(".md") if name.startswith("memories/")]
    # The summaries and raw notes are what the notes were made of.
    final = [name for name in notes if posixpath.basename(name) == rules_files.MEMORY] or notes
    yield from rules_files.memories(bundle, final, CODEX, by=CODEX)
    if "AGENTS.md" in bundle.names:
        yield from rules_files.rules(bundle, "AGENTS.md", CODEX)


def _recorded(bundle: Bundle, names: Sequence[str]) -> Iterator[tuple[str, Recording | PastSkipped]]:
    """Yield the sessions of files; a file that is none, as some are beside the sessions, is passed over."""
    reader = FileReader()
    for name in names:
        place = bundle.place(name)
        try:
            found = reader.read(bundle.file(name))
        except InvalidInput as error:
            yield name, PastSkipped(place, error.message)
            continue
        if found.format in (CLAUDE, CODEX):
            yield name, found
        else:
            yield name, PastSkipped(place, "it is not a session of a coding agent")


def fits_session(bundle: Bundle) -> bool:
    if not bundle.is_file or bundle.names[0].lower().endswith((".md", ".mdc")):
        return False
    try:
        FileReader().read(bundle.path)
    except InvalidInput:
        return False
    return True


def read_session(bundle: Bundle) -> Iterator[PastTalk]:
    yield PastTalk(FileReader().read(bundle.path), bundle.shown)
