"""What the catalogues of hosts take: plugin folders, a bundle for Claude Desktop, an entry for the MCP registry.

    python -m tools.bundles            write what is tracked
    python -m tools.bundles DIR        write the bundle lukasa-VERSION.mcpb into a folder

All of it comes from the tables of hosts and of tools; a test compares the tracked files with what this writes.
"""

from __future__ import annotations

import json
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.hooks import hosts
from lukasa.surfaces.mcp import clients
from lukasa.surfaces.mcp.tools import more, tool

ROOT = Path(__file__).parents[1]
NAMESPACE = "io.github.lukasa-memory/lukasa"  # also in a comment of the README, which the registry looks for
SHORT = "Long-term memory that you can question: local files, no key, no cloud, no model needed."
LONG = (
    "What one session learns, the next one knows. Each remembered sentence tells who said it, when, and why it was "
    "found. Memory stays in files on this machine."
)
_PROGRAM = ["lukasa"]
_ABOUT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
VERSION = str(_ABOUT["version"])
_AUTHOR = {"name": str(_ABOUT["authors"][0]["name"])}


def _server(agent: str) -> dict[str, Any]:
    """Return the entry of the MCP server, for a plugin of this host."""
    entry = clients.entry(_PROGRAM, ["mcp", "--project", "--agent", agent])
    return {clients.SERVERS[0]: {clients.NAME: entry}}


def _plugin(**more: Any) -> dict[str, Any]:
    return {
        "name": "lukasa",
        "version": VERSION,
        "description": SHORT,
        "author": _AUTHOR,
        "license": _ABOUT["license"],
        "keywords": _ABOUT["keywords"],
        **more,
    }


def _hooks(host: hosts.Host) -> dict[str, Any]:
    return hosts.installed(host, {}, _PROGRAM)


def _marketplace() -> dict[str, Any]:
    plugin = {"name": "lukasa", "source": "./plugins/claude-code", "description": SHORT, "version": VERSION}
    return {"name": "lukasa", "owner": _AUTHOR, "plugins": [plugin]}


def _codex_marketplace() -> dict[str, Any]:
    plugin = {
        "name": "lukasa",
        "source": {"source": "local", "path": "./plugins/codex"},
        "policy": {"installation": "AVAILABLE", "authentication": "ON_INSTALL"},
        "category": "Productivity",
    }
    return {"name": "lukasa", "interface": {"displayName": "Lukasa"}, "plugins": [plugin]}


def registry_entry() -> dict[str, Any]:
    """Return server.json, the entry of the MCP registry."""
    return {
        "$schema": "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json",
        "name": NAMESPACE,
        "title": "Lukasa",
        "description": SHORT,
        "version": VERSION,
        "packages": [
            {
                "registryType": "pypi",
                "identifier": "lukasa",
                "version": VERSION,
                "runtimeHint": "uvx",
                "runtimeArguments": [{"type": "named", "name": "--with", "value": f"lukasa[server]=={VERSION}"}],
                "packageArguments": [
                    {"type": "positional", "value": "mcp"},
                    {
                        "type": "named",
                        "name": "--workspace",
                        "description": "Workspace, the memory of one project",
                        "default": "main",
                    },
                ],
                "environmentVariables": [
                    {"name": "LUKASA_DATA", "description": "Folder that holds all memory", "format": "filepath"}
                ],
                "transport": {"type": "stdio"},
            }
        ],
    }


def manifest() -> dict[str, Any]:
    """Return the manifest of the bundle for Claude Desktop."""
    listed = [tool(verb, brief=True) for verb in VERBS if verb.tool and verb.everyday]
    listed.append(more([verb for verb in VERBS if verb.tool and not verb.everyday and not verb.owner_only]))
    return {
        "manifest_version": "0.4",
        "name": "lukasa",
        "display_name": "Lukasa",
        "version": VERSION,
        "description": SHORT,
        "long_description": LONG,
        "author": _AUTHOR,
        "license": _ABOUT["license"],
        "keywords": _ABOUT["keywords"],
        "server": {
            "type": "uv",
            "entry_point": "server.py",
            "mcp_config": {
                "command": "uv",
                "args": ["run", "--directory", "${__dirname}", "server.py", "${user_config.workspace}"],
                "env": {},
            },
        },
        "tools": [{"name": one.name, "description": _sentence(str(one.description))} for one in listed],
        "tools_generated": False,
        "compatibility": {"platforms": ["darwin", "linux", "win32"], "runtimes": {"python": _ABOUT["requires-python"]}},
        "user_config": {
            "workspace": {
                "type": "string",
                "title": "Workspace",
                "description": "The memory to use. It is made when it is first used.",
                "default": "main",
                "required": True,
            }
        },
    }


def _sentence(text: str) -> str:
    return text.partition(". ")[0].rstrip(".") + "."


_START = '''"""Start Lukasa's MCP server for Claude Desktop."""

import sys

from lukasa.surfaces.cli.main import cli

cli.main(["--workspace", sys.argv[1], "mcp", "--agent", "claude-desktop"])
'''
_NEEDS = f'[project]\nname = "lukasa-bundle"\nversion = "{VERSION}"\nrequires-python = "{_ABOUT["requires-python"]}"\n'


def bundle() -> Mapping[str, str]:
    """Return the files of the bundle, by name."""
    return {
        "manifest.json": _json(manifest()),
        "pyproject.toml": f'{_NEEDS}dependencies = ["lukasa[embed,server]=={VERSION}"]\n',
        "server.py": _START,
    }


def tracked() -> Mapping[str, str]:
    """Return the tracked files, by their path in the repository."""
    made: dict[str, dict[str, Any]] = {
        ".claude-plugin/marketplace.json": _marketplace(),
        "plugins/claude-code/.claude-plugin/plugin.json": _plugin(),
        "plugins/claude-code/hooks/hooks.json": _hooks(hosts.CLAUDE_CODE),
        "plugins/claude-code/.mcp.json": _server("claude-code"),
        ".agents/plugins/marketplace.json": _codex_marketplace(),
        # Named, because Codex would else take hooks that are meant for Claude Code.
        "plugins/codex/.codex-plugin/plugin.json": _plugin(hooks="./hooks/hooks.json", mcpServers="./.mcp.json"),
        "plugins/codex/hooks/hooks.json": _hooks(hosts.CODEX),
        "plugins/codex/.mcp.json": _server("codex"),
        "server.json": registry_entry(),
    }
    return {path: _json(value) for path, value in made.items()}


def _json(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def write_bundle(folder: Path) -> Path:
    """Write the bundle, whose bytes depend on its content alone."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"lukasa-{VERSION}.mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in bundle().items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), text)
    return path


if __name__ == "__main__":
    for name, text in tracked().items():
        (ROOT / name).parent.mkdir(parents=True, exist_ok=True)
        (ROOT / name).write_text(text, "utf-8")
    if sys.argv[1:]:
        print(write_bundle(Path(sys.argv[1])))
