"""What `lukasa install` changes for each host: its files, and how each is changed and changed back."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

from msgspec import Struct
from platformdirs import user_config_path

from lukasa.surfaces.hooks import hosts
from lukasa.surfaces.hooks.hosts import Host
from lukasa.surfaces.hooks.settings_file import json_change
from lukasa.surfaces.mcp import clients

HOOKS, SERVER = "hooks", "MCP server"
Scope = str  # user, project or local
_PLUGIN = "// lukasa:"


class FileChange(Struct, frozen=True):
    """A change of one file. `take` removes what `put` adds, and nothing else; both return the text."""

    path: Path
    what: str
    put: Callable[[str], str]
    take: Callable[[str], str]


class Wanted(Struct, frozen=True):
    """What to install: the program, the options of the hooks, those of the server, and a language model."""

    program: Sequence[str] = ("lukasa",)
    hook_options: Sequence[str] = ()
    server_options: Sequence[str] = ()
    chat: str = ""


class Target(Struct, frozen=True):
    """A host that Lukasa can be connected with: its name, its program, its folder, and its files in a scope."""

    name: str
    title: str
    binary: str
    folder: Callable[[], Path]
    files: Callable[[Scope, Wanted], list[FileChange]]
    scopes: tuple[Scope, ...] = ("user", "project")

    def only(self, part: str, scope: Scope, wanted: Wanted) -> list[FileChange]:
        """Return the change of only the hooks, or of only the MCP server."""
        return [change for change in self.files(scope, wanted) if (change.what == SERVER) is (part == "mcp")]

    @property
    def found(self) -> bool:
        """Whether the host seems to be on this machine."""
        return self.folder().is_dir() or (bool(self.binary) and shutil.which(self.binary) is not None)


def merged(changes: Sequence[FileChange]) -> list[FileChange]:
    """Return one change for each file."""
    by_path: dict[Path, list[FileChange]] = {}
    for change in changes:
        by_path.setdefault(change.path, []).append(change)
    return [
        FileChange(
            path,
            " and ".join(one.what for one in parts),
            partial(_in_turn, [one.put for one in parts]),
            partial(_in_turn, [one.take for one in parts]),
        )
        for path, parts in by_path.items()
    ]


def _in_turn(steps: Sequence[Callable[[str], str]], text: str) -> str:
    for step in steps:
        text = step(text)
    return text


def _json_file(
    path: Path,
    what: str,
    put: Callable[[dict[str, Any]], dict[str, Any]],
    take: Callable[[dict[str, Any]], dict[str, Any]],
    *,
    comments: bool = False,
) -> FileChange:
    return FileChange(
        path,
        what,
        lambda text: json_change(text, path, put, comments=comments),
        lambda text: json_change(text, path, take, comments=comments),
    )


def _hooks(host: Host, path: Path, wanted: Wanted, *, comments: bool = False) -> FileChange:
    put = partial(_with_hooks, host, wanted)
    return _json_file(path, HOOKS, put, hosts.removed, comments=comments)


def _with_hooks(host: Host, wanted: Wanted, settings: dict[str, Any]) -> dict[str, Any]:
    return hosts.installed(host, settings, wanted.program, wanted.hook_options, wanted.chat)


def server(
    path: Path,
    wanted: Wanted,
    where: Sequence[str] = clients.SERVERS,
    *,
    comments: bool = False,
    environment: Mapping[str, str] | None = None,
) -> FileChange:
    """Return the change that puts our MCP server into a JSON file."""
    make = clients.opencode_entry if tuple(where) == clients.OPENCODE else clients.entry
    entry = {**make(wanted.program, wanted.server_options), **({"env": dict(environment)} if environment else {})}
    put = partial(clients.installed, wanted=entry, where=where)
    return _json_file(path, SERVER, put, partial(clients.removed, where=where), comments=comments)


# Claude Code


def claude_folder() -> Path:
    chosen = os.environ.get("CLAUDE_CONFIG_DIR")
    return Path(chosen).expanduser() if chosen else Path.home() / ".claude"


def _claude_code(scope: Scope, wanted: Wanted) -> list[FileChange]:
    name = "settings.local.json" if scope == "local" else "settings.json"
    settings = (claude_folder() if scope == "user" else Path.cwd() / ".claude") / name
    if scope == "project":
        return [_hooks(hosts.CLAUDE_CODE, settings, wanted), server(Path.cwd() / ".mcp.json", wanted)]
    state = (claude_folder() if os.environ.get("CLAUDE_CONFIG_DIR") else Path.home()) / ".claude.json"
    where = clients.SERVERS if scope == "user" else ("projects", os.getcwd(), *clients.SERVERS)
    return [_hooks(hosts.CLAUDE_CODE, settings, wanted), server(state, wanted, where)]


# Codex


def _codex_folder() -> Path:
    chosen = os.environ.get("CODEX_HOME")
    return Path(chosen).expanduser() if chosen else Path.home() / ".codex"


def _codex(scope: Scope, wanted: Wanted) -> list[FileChange]:
    folder = _codex_folder() if scope == "user" else Path.cwd() / ".codex"
    entry = clients.entry(wanted.program, wanted.server_options)
    settings = FileChange(
        folder / "config.toml", SERVER, lambda text: clients.toml_installed(text, entry), clients.toml_removed
    )
    return [_hooks(hosts.CODEX, folder / "hooks.json", wanted), settings]


# Cursor


def _cursor_folder() -> Path:
    return Path.home() / ".cursor"


def _cursor(scope: Scope, wanted: Wanted) -> list[FileChange]:
    folder = _cursor_folder() if scope == "user" else Path.cwd() / ".cursor"
    # Cursor starts servers in a folder of its own, and replaces this variable by the folder that is open.
    environment = {"CLAUDE_PROJECT_DIR": "${workspaceFolder}"}
    tools = server(folder / "mcp.json", wanted, environment=environment)
    return [_hooks(hosts.CURSOR, folder / "hooks.json", wanted), tools]


# Gemini CLI keeps hooks and servers in one file, which may hold comments


def _gemini_folder() -> Path:
    return Path.home() / ".gemini"


def _gemini(scope: Scope, wanted: Wanted) -> list[FileChange]:
    path = (_gemini_folder() if scope == "user" else Path.cwd() / ".gemini") / "settings.json"
    return [_hooks(hosts.GEMINI, path, wanted, comments=True), server(path, wanted, comments=True)]


# OpenCode runs a plugin instead of hooks


def _opencode_folder() -> Path:
    chosen = os.environ.get("XDG_CONFIG_HOME")
    return (Path(chosen) if chosen else Path.home() / ".config") / "opencode"


def _opencode(scope: Scope, wanted: Wanted) -> list[FileChange]:
    folder = _opencode_folder() if scope == "user" else Path.cwd()
    path = next((folder / name for name in ("opencode.jsonc", "opencode.json") if (folder / name).exists()), None)
    plugins = folder / "plugins" if scope == "user" else folder / ".opencode" / "plugins"
    plugin = FileChange(
        plugins / "lukasa.js",
        "plugin",
        lambda text: opencode_plugin([*wanted.program, *wanted.hook_options]),
        lambda text: "" if text.startswith(_PLUGIN) else text,
    )
    return [plugin, server(path or folder / "opencode.json", wanted, clients.OPENCODE, comments=True)]


def opencode_plugin(command: Sequence[str]) -> str:
    """Return the plugin for OpenCode, which starts the hooks with this command."""
    text = (resources.files("lukasa.surfaces.hooks") / "opencode_plugin.js").read_text("utf-8")
    return text.replace('const LUKASA = ["lukasa"]', f"const LUKASA = {json.dumps(list(command))}")


# Claude Desktop


def _desktop_folder() -> Path:
    return Path(user_config_path("Claude", appauthor=False, roaming=True))


def _claude_desktop(scope: Scope, wanted: Wanted) -> list[FileChange]:
    return [server(_desktop_folder() / "claude_desktop_config.json", wanted)]


TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        Target("claude-code", "Claude Code", "claude", claude_folder, _claude_code, ("user", "project", "local")),
        Target("codex", "Codex", "codex", _codex_folder, _codex),
        Target("cursor", "Cursor", "cursor", _cursor_folder, _cursor),
        Target("gemini", "Gemini CLI", "gemini", _gemini_folder, _gemini),
        Target("opencode", "OpenCode", "opencode", _opencode_folder, _opencode),
        Target("claude-desktop", "Claude Desktop", "", _desktop_folder, _claude_desktop, ("user",)),
    )
}
