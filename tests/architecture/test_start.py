"""What a start may load: every prompt of a harness waits for a hook, and every program for its imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from mnemon import Mnemon
from tests.architecture.test_layers import FILES, SOURCE
from tests.helpers.cli import Shell

HEAVY = {
    "numpy",
    "rich",
    "onnxruntime",
    "fastembed",
    "langgraph",
    "langchain_core",
    "httpx",
    "httpx2",
    "ssl",
    "asyncio",
}
# What one verb or another needs, and no hook: each is loaded by its first use.
LATER = {
    "mnemon.adapters.embed.onnx",
    "mnemon.adapters.store.sqlite.checking",
    "mnemon.adapters.store.sqlite.grants",
    "mnemon.adapters.store.sqlite.items",
    "mnemon.adapters.store.sqlite.scrubbing",
    "mnemon.hygiene.manifest",
    "mnemon.model.requests",
    "mnemon.observe.cleaning",
    "mnemon.observe.rules",
    "mnemon.pipeline.task",
    "mnemon.pipeline.worker",
    "mnemon.service.access",
    "mnemon.service.backfilling",
    "mnemon.service.counting",
    "mnemon.service.curated",
    "mnemon.service.curating",
    "mnemon.service.journaling",
    "mnemon.service.queueing",
    "mnemon.service.reviewing",
    "mnemon.service.revising",
    "mnemon.service.scrubbing",
    "mnemon.service.surveying",
    "mnemon.service.tracing",
    "mnemon.service.undoing",
    "ctypes",
    "platformdirs",
    "random",
    "secrets",
    "tempfile",
    "traceback",
}
# What a moment that reads does not write with, and one that ends a session does not read with.
WRITING = {"mnemon.service.writing", "mnemon.service.transcripts", "mnemon.write.screen"}
READING = {"mnemon.service.reading", "mnemon.service.finding", "mnemon.read.context"}
EVENTS = {
    "session-start": {"hook_event_name": "SessionStart", "source": "startup"},
    "prompt": {"hook_event_name": "UserPromptSubmit", "prompt": "who repaired the lantern?"},
    "tool-failure": {
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "error": "no lantern that Ines repaired",
    },
    "session-end": {"hook_event_name": "SessionEnd", "reason": "exit"},
}


def loaded(code: str, env: dict[str, str], given: str = "") -> tuple[set[str], str]:
    """The modules that a fresh process ends with, and what it printed."""
    program = f"import sys\ntry:\n{code}\nfinally:\n    print(*sys.modules, file=sys.stderr)\n"
    done = subprocess.run(
        [sys.executable, "-c", program], input=given, capture_output=True, text=True, env=env, check=True, timeout=60
    )
    return set(done.stderr.split()), done.stdout


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path / "data")


def test_importing_loads_what_all_have_in_common(shell: Shell) -> None:
    """U1: `from mnemon import Mnemon` waits for no verb."""
    modules, _ = loaded("    from mnemon import Mnemon\n", shell.environment())
    assert "mnemon.service.workspace" in modules
    assert not (HEAVY | LATER | WRITING | READING) & modules


def test_importing_and_remembering_loads_little(shell: Shell) -> None:
    """U1: a program without vectors pays neither for numpy nor for what only other surfaces use."""
    code = (
        "    from mnemon import Mnemon\n"
        "    with Mnemon.open(embedder='none') as memory:\n"
        "        world = memory.workspace()\n"
        "        world.put('workspace', 'Ines repaired the lantern')\n"
        "        print(world.read('who repaired the lantern?')[0].content)\n"
    )
    modules, said = loaded(code, shell.environment())
    assert said == "Ines repaired the lantern\n"
    assert not HEAVY & modules
    assert not {"click", "snowballstemmer", "subprocess", "zipfile", "difflib"} & modules
    assert not {"mnemon.adapters.store.memory", "mnemon.adapters.embed.pull", "mnemon.spec.showing"} & modules


@pytest.mark.parametrize("moment", EVENTS)
def test_a_hook_loads_little(shell: Shell, moment: str) -> None:
    """B9: a hook without an embedder answers from memory without numpy, rich, sockets or LangGraph."""
    with Mnemon.open(shell.data, embedder="none") as memory:
        memory.workspace("light").put("workspace", "Ines repaired the lantern", importance=0.9)
    code = (
        "    from mnemon.surfaces.cli.main import main\n"
        f"    sys.argv = ['mnemon', '-w', 'light', 'hook', '{moment}', '--format', 'text']\n"
        "    main()"
    )
    record = shell.data.parent / "session.jsonl"
    record.write_text(json.dumps({"type": "user", "message": {"content": "Who repaired the lantern?"}}) + "\n")
    paths = {"cwd": str(shell.data.parent), "transcript_path": str(record)}
    event = json.dumps({"session_id": "s1", **paths, **EVENTS[moment]})
    modules, said = loaded(code, shell.environment(MNEMON_WORKER="off"), event)
    assert ("Ines repaired the lantern" in said) is (moment != "session-end")
    assert not HEAVY & modules
    assert not LATER & modules
    assert not (READING if moment == "session-end" else WRITING) & modules


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(SOURCE)))
def test_numpy_is_loaded_in_one_place(path: Path) -> None:
    """Layers: whoever computes takes `np` from mnemon.model.arrays; elsewhere numpy is named for annotations alone."""
    tree = ast.parse(path.read_text("utf-8"))
    for_types = {id(inner) for node in tree.body if isinstance(node, ast.If) for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in for_types:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
            packages = {name.partition(".")[0] for name in names}
            assert "numpy" not in packages, f"{path}:{node.lineno} imports numpy at its start"
