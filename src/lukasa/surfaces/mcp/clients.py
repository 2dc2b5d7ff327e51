"""The entry of `lukasa mcp` in the settings of an MCP client. Pure functions of values.

    {"mcpServers": {"lukasa": {"command": …, "args": […]}}}
    {"mcp": {"lukasa": {"type": "local", "command": […], "enabled": true}}}      OpenCode
    [mcp_servers.lukasa]                                                         Codex, in TOML

`where` is the path to the servers. Claude Code keeps those of one folder deeper: {"projects": {FOLDER: …}}.
"""

from __future__ import annotations

import copy
import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from lukasa.model.errors import InvalidInput

NAME = "lukasa"
SERVERS = ("mcpServers",)
OPENCODE = ("mcp",)
Settings = dict[str, Any]

_MODULE = "lukasa.surfaces.cli.main"


def entry(program: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    return {"command": program[0], "args": [*program[1:], *options]}


def opencode_entry(program: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    return {"type": "local", "command": [*program, *options], "enabled": True}


def ours(found: object) -> bool:
    """Return whether `installed` wrote an entry, with any program path and options."""
    if not isinstance(found, dict):
        return False
    command, args = found.get("command"), found.get("args", [])
    if isinstance(command, list) and command:
        command, args = command[0], command[1:]
    if not isinstance(command, str) or not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        return False
    program = re.split(r"[/\\]", command)[-1]
    return (program in ("lukasa", "lukasa.exe") or _MODULE in args[:3]) and "mcp" in args


def installed(settings: Settings, wanted: dict[str, Any], where: Sequence[str] = SERVERS) -> Settings:
    """Return the settings with our entry, in its old place if it had one. All other settings stay."""
    changed = copy.deepcopy(settings)
    at = changed
    for key in where:
        at = _inside(at, key)
    if NAME in at and not ours(at[NAME]):
        raise InvalidInput(f"the settings name another server {NAME!r}", fix="rename that server; nothing was written")
    # Additions to the entry, such as an environment, stay.
    at[NAME] = {**at.get(NAME, {}), **wanted}
    return changed


def removed(settings: Settings, where: Sequence[str] = SERVERS) -> Settings:
    """Return the settings without our entry, and without the objects that held nothing else."""
    changed = copy.deepcopy(settings)
    way = [changed]
    for key in where:
        if key not in way[-1]:
            return changed
        way.append(_inside(way[-1], key))
    if not ours(way[-1].get(NAME)):
        return changed
    del way[-1][NAME]
    for outer, key in reversed(list(zip(way[:-1], where, strict=True))):
        if not outer[key]:
            del outer[key]
    return changed


def _inside(at: dict[str, Any], key: str) -> dict[str, Any]:
    inner = at.setdefault(key, {})
    if not isinstance(inner, dict):
        raise InvalidInput(f"`{key[:80]}` in the settings is not an object", fix="repair the file; nothing was written")
    return inner


# Codex keeps its servers in TOML, which holds comments, so the lines are edited and not the values.

_HEADER = re.compile(r"^\[mcp_servers\.(?:lukasa|\"lukasa\")\][ \t]*(?:#[^\n]*)?$", re.MULTILINE)
_NEXT = re.compile(r"^[ \t]*\[", re.MULTILINE)


def toml_installed(text: str, wanted: dict[str, Any]) -> str:
    """Return a TOML document with our entry, in its old place if it had one."""
    found = _toml(text)
    block = f"[mcp_servers.{NAME}]\ncommand = {_toml_text(wanted['command'])}\nargs = [{_toml_list(wanted['args'])}]\n"
    entry = found.get("mcp_servers", {}).get(NAME)
    if entry is not None and not ours(entry):
        raise InvalidInput(f"the settings name another server {NAME!r}", fix="rename that server; nothing was written")
    if entry is not None and (entry["command"], entry.get("args", [])) == (wanted["command"], wanted["args"]):
        return text
    if entry is not None:
        return toml_installed(toml_removed(text), wanted)
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return f"{text}{gap}{block}"


def toml_removed(text: str) -> str:
    """Return a TOML document without our entry and the blank line before it."""
    if not ours(_toml(text).get("mcp_servers", {}).get(NAME)):
        return text
    header = _HEADER.search(text)
    if header is None:
        raise InvalidInput(
            f"our entry is not a table [mcp_servers.{NAME}]", fix="remove it by hand; nothing was written"
        )
    after = _NEXT.search(text, header.end())
    end = after.start() if after else len(text)
    start = header.start() - 1 if text[: header.start()].endswith("\n\n") or header.start() == 1 else header.start()
    return text[:start] + text[end:]


def _toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidInput(
            f"the settings are not valid TOML: {error}", fix="repair them first; nothing was written"
        ) from None


def _toml_text(text: str) -> str:
    return json.dumps(text, ensure_ascii=True)


def _toml_list(texts: Sequence[str]) -> str:
    return ", ".join(map(_toml_text, texts))
