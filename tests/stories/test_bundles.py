"""What catalogues of hosts take: made from the tables, of today, and in the form that a host reads (U3)."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest

from lukasa import __version__
from lukasa.surfaces.api.table import VERBS
from lukasa.surfaces.hooks import hosts
from lukasa.surfaces.mcp import clients
from tests.helpers.cli import ROOT
from tools import bundles


@pytest.mark.parametrize("path", bundles.tracked())
def test_a_tracked_file_is_of_today(path: str) -> None:
    """U3: `python -m tools.bundles` writes it; nobody edits it."""
    assert (ROOT / path).read_text("utf-8") == bundles.tracked()[path], "python -m tools.bundles"


@pytest.mark.parametrize("host", ["claude-code", "codex"])
def test_a_plugin_calls_the_lukasa_of_the_path(host: str) -> None:
    """U3: a plugin is for other machines: no path of this one is in it; its hooks and its server are ours."""
    folder = ROOT / "plugins" / host
    text = "".join(path.read_text("utf-8") for path in folder.rglob("*.json"))
    assert str(ROOT) not in text
    settings = json.loads((folder / "hooks" / "hooks.json").read_text("utf-8"))
    assert list(settings["hooks"]) == list(hosts.HOSTS[host].events)
    assert hosts.removed(settings) == {}
    assert clients.ours(json.loads((folder / ".mcp.json").read_text("utf-8"))["mcpServers"]["lukasa"])


def test_the_registry_entry_keeps_to_its_rules() -> None:
    """U3: a name in reverse DNS that the README repeats, a short description, exact versions, a transport."""
    entry = bundles.registry_entry()
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert f"<!-- mcp-name: {entry['name']} -->" in (ROOT / "README.md").read_text("utf-8")
    assert len(entry["description"]) <= 100
    (package,) = entry["packages"]
    assert entry["version"] == package["version"] == __version__
    assert package["transport"] == {"type": "stdio"}


def test_the_bundle_lists_the_tools_that_a_client_gets(tmp_path: Path) -> None:
    """U3: one file with a manifest that names every listed tool; the same content gives the same bytes."""
    path = bundles.write_bundle(tmp_path)
    once = path.read_bytes()
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        compile(archive.read("server.py"), "server.py", "exec")
        assert manifest["server"]["entry_point"] in archive.namelist()
    daily = [verb.name for verb in VERBS if verb.everyday]
    assert [tool["name"] for tool in manifest["tools"]] == [*daily, "more"]
    assert bundles.write_bundle(tmp_path).read_bytes() == once
