"""`lukasa install` for MCP clients: what it writes into their settings, and that it is taken back (U3, B11, W9)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters

from lukasa.surfaces.hooks.harness import workspace_name
from lukasa.surfaces.mcp import clients
from tests.helpers.cli import Shell
from tests.helpers.mcp import called, session

# The command, the file it writes, and the way to the servers in it.
PLACES = {
    "desktop": (["claude-desktop"], ".config/Claude/claude_desktop_config.json", ()),
    "cursor": (["cursor"], ".cursor/mcp.json", ()),
    "cursor project": (["cursor", "--scope", "project"], "project/.cursor/mcp.json", ()),
    "code user": (["claude-code", "--mcp"], ".claude.json", ()),
    "code project": (["claude-code", "--mcp", "--scope", "project"], "project/.mcp.json", ()),
    "code local": (["claude-code", "--mcp", "--scope", "local"], ".claude.json", ("projects", "{here}")),
}
THEIRS = """{"theme":"dark",
 "mcpServers": {"files": {"command": "npx", "args": ["-y", "files"]}}, "größe": 1}""".encode()


@dataclass
class Home:
    shell: Shell
    path: Path
    command: Sequence[str]
    file: Path
    where: tuple[str, ...]

    def run(self, *args: str, code: int = 0) -> Result:
        result = self.shell.call("install", *self.command, *args)
        assert result.exit_code == code, result.output
        return result

    def entry(self) -> Any:
        found: Any = json.loads(self.file.read_bytes())
        for key in (*self.where, "mcpServers", "lukasa"):
            found = found[key]
        return found


@pytest.fixture(params=list(PLACES))
def home(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    command, file, where = PLACES[request.param]
    shell = Shell(tmp_path / "data")
    shell.env |= {"HOME": str(tmp_path), "XDG_CONFIG_HOME": "", "CLAUDE_CONFIG_DIR": ""}
    here = tuple(str(tmp_path / "project") if key == "{here}" else key for key in where)
    return Home(shell, tmp_path, command, tmp_path / file, here)


def test_put_in_and_taken_out(home: Home) -> None:
    """U3, W9: a fresh file has one entry, installing again changes nothing, and undo leaves no file behind."""
    home.run("--yes")
    entry = home.entry()
    assert clients.ours(entry)
    assert entry["args"][-2:] == ["--agent", home.command[0]]
    once = home.file.read_bytes()
    assert "nothing to do" in home.run("--yes").stdout
    assert home.file.read_bytes() == once
    home.run("--undo", "--yes")
    assert not home.file.exists()
    assert "nothing to do" in home.run("--undo").stdout


def test_what_was_there_stays_and_comes_back(home: Home) -> None:
    """W9: others' servers and keys keep their places; undo gives back the very bytes; later edits survive it."""
    home.file.parent.mkdir(parents=True, exist_ok=True)
    home.file.write_bytes(THEIRS)
    home.run("--yes")
    now = json.loads(home.file.read_bytes())
    assert list(now)[:3] == ["theme", "mcpServers", "größe"]
    assert now["mcpServers"]["files"] == {"command": "npx", "args": ["-y", "files"]}
    home.run("--undo", "--yes")
    assert home.file.read_bytes() == THEIRS
    home.run("--yes")
    edited = json.loads(home.file.read_bytes()) | {"theme": "light"}
    home.file.write_text(json.dumps(edited))
    home.run("--undo", "--yes")
    assert json.loads(home.file.read_bytes()) == json.loads(THEIRS) | {"theme": "light"}


def test_nothing_is_written_unasked(home: Home) -> None:
    """U3: the change is shown; without a yes nothing is written, and as a document it says so."""
    shown = home.run("--print").stdout
    assert '"lukasa"' in shown
    assert "nothing was written" in shown
    assert "add --yes" in home.run(code=2).stderr
    told = json.loads(home.run("--print", "--json").stdout)
    assert (told["harness"], told["changes"], told["written"]) == (home.command[0], True, False)
    assert not home.file.exists()


def test_anothers_server_of_that_name(home: Home) -> None:
    """W9: an entry that is not ours is neither overwritten nor removed."""
    servers: Any = {"mcpServers": {"lukasa": {"command": "docker", "args": ["run", "lukasa", "mcp"]}}}
    for key in reversed(home.where):
        servers = {key: servers}
    home.file.parent.mkdir(parents=True, exist_ok=True)
    home.file.write_text(json.dumps(servers))
    assert "another server" in home.run("--yes", code=2).stderr
    assert "nothing to do" in home.run("--undo", "--yes").stdout
    assert json.loads(home.file.read_bytes()) == servers


@pytest.mark.parametrize("home", ["desktop", "code project"], indirect=True)
def test_what_is_installed_works(home: Home) -> None:
    """U3, B11: the entry as it was written starts a server; a desktop program gets options from the environment too."""
    home.run("--yes")
    entry = home.entry()
    desktop = home.command[0] == "claude-desktop"
    assert ("--data" in entry["args"]) is desktop  # Claude Code hands its environment on
    env = home.shell.environment(CLAUDE_PROJECT_DIR=str(home.path / "project"))
    start = StdioServerParameters(command=entry["command"], args=entry["args"], env=env)

    async def work(client: Client) -> tuple[str, str]:
        stored = await called(client, "memory_put", content="The villain is called Malachar.")
        (place,) = (await called(client, "workspace_list"))["workspaces"]
        return stored["entry"]["origin"]["principal"], place["name"]

    place = "main" if desktop else workspace_name(str(home.path / "project"))
    assert session(lambda: Client(start), work) == (home.command[0], place)
