"""The entry of `lukasa mcp` in the settings of an MCP client. Pure functions of values.

    {"mcpServers": {"lukasa": {"command": …, "args": […]}}}

Claude Code keeps the entry of one folder deeper: {"projects": {FOLDER: {"mcpServers": …}}}. `where` is the path to it.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from lukasa.model.errors import InvalidInput

NAME = "lukasa"
SERVERS = "mcpServers"
Settings = dict[str, Any]

_MODULE = "lukasa.surfaces.cli.main"


def entry(program: Sequence[str], options: Sequence[str]) -> dict[str, Any]:
    return {"command": program[0], "args": [*program[1:], *options]}


def ours(found: object) -> bool:
    """Return whether `installed` wrote an entry, with any program path and options."""
    if not isinstance(found, dict) or not isinstance(found.get("command"), str):
        return False
    args = found.get("args")
    if not isinstance(args, list) or not all(isinstance(arg, str) for arg in args):
        return False
    program = re.split(r"[/\\]", found["command"])[-1]
    return (program in ("lukasa", "lukasa.exe") or _MODULE in args[:3]) and "mcp" in args


def installed(settings: Settings, wanted: dict[str, Any], where: Sequence[str] = ()) -> Settings:
    """Return the settings with our entry, in its old place if it had one. All other settings stay."""
    changed = copy.deepcopy(settings)
    at = changed
    for key in (*where, SERVERS):
        at = _inside(at, key)
    if NAME in at and not ours(at[NAME]):
        raise InvalidInput(f"the settings name another server {NAME!r}", fix="rename that server; nothing was written")
    # Additions to the entry, such as an environment, stay.
    at[NAME] = {**at.get(NAME, {}), **wanted}
    return changed


def removed(settings: Settings, where: Sequence[str] = ()) -> Settings:
    """Return the settings without our entry, and without the objects that held nothing else."""
    changed = copy.deepcopy(settings)
    way = [changed]
    for key in (*where, SERVERS):
        if key not in way[-1]:
            return changed
        way.append(_inside(way[-1], key))
    if not ours(way[-1].get(NAME)):
        return changed
    del way[-1][NAME]
    for outer, key in reversed(list(zip(way[:-1], (*where, SERVERS), strict=True))):
        if not outer[key]:
            del outer[key]
    return changed


def _inside(at: dict[str, Any], key: str) -> dict[str, Any]:
    inner = at.setdefault(key, {})
    if not isinstance(inner, dict):
        raise InvalidInput(f"`{key[:80]}` in the settings is not an object", fix="repair the file; nothing was written")
    return inner
