"""What a start may load: every prompt of a harness waits for a hook, and every program for its imports."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from lukasa import Lukasa
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
    "lukasa.providers.embed.onnx",
    "lukasa.storage.sqlite.integrity",
    "lukasa.storage.sqlite.item_rows",
    "lukasa.upkeep.scrub_plan",
    "lukasa.model.gitleaks",
    "lukasa.model.requests",
    "lukasa.model.secret_forms",
    "lukasa.observe.classifier",
    "lukasa.observe.noise",
    "lukasa.observe.rules",
    "lukasa.service.jobs.task",
    "lukasa.service.jobs.worker",
    "lukasa.service.admin.access",
    "lukasa.service.upkeep.backfill",
    "lukasa.service.admin.stats",
    "lukasa.service.curation.curated_document",
    "lukasa.service.curation.slog_file",
    "lukasa.service.jobs.queue",
    "lukasa.service.curation.review",
    "lukasa.service.entries.revise",
    "lukasa.service.admin.scrubbing",
    "lukasa.service.admin.overview",
    "lukasa.service.retrieval.explain",
    "lukasa.service.entries.undo",
    "ctypes",
    "platformdirs",
    "random",
    "secrets",
    "tempfile",
    "traceback",
}
# What a moment that reads does not write with, and one that ends a session does not read with.
WRITING = {"lukasa.service.entries.put", "lukasa.service.sessions.transcripts", "lukasa.write.check"}
READING = {"lukasa.service.retrieval.read", "lukasa.service.retrieval.find", "lukasa.read.context"}
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
    """U1: `from lukasa import Lukasa` waits for no verb."""
    modules, _ = loaded("    from lukasa import Lukasa\n", shell.environment())
    assert "lukasa.service.workspace" in modules
    assert not (HEAVY | LATER | WRITING | READING) & modules


def test_importing_and_remembering_loads_little(shell: Shell) -> None:
    """U1: a program without vectors pays neither for numpy nor for what only other surfaces use."""
    code = (
        "    from lukasa import Lukasa\n"
        "    with Lukasa.open(embedder='none') as memory:\n"
        "        world = memory.workspace()\n"
        "        world.put('workspace', 'Ines repaired the lantern')\n"
        "        print(world.read('who repaired the lantern?')[0].content)\n"
    )
    modules, said = loaded(code, shell.environment())
    assert said == "Ines repaired the lantern\n"
    assert not HEAVY & modules
    assert not {"click", "snowballstemmer", "subprocess", "zipfile", "difflib"} & modules
    assert not {"lukasa.storage.memory.memory_store", "lukasa.providers.embed.pull", "lukasa.spec.report"} & modules


@pytest.mark.parametrize("moment", EVENTS)
def test_a_hook_loads_little(shell: Shell, moment: str) -> None:
    """B9: a hook without an embedder answers from memory without numpy, rich, sockets or LangGraph."""
    with Lukasa.open(shell.data, embedder="none") as memory:
        memory.workspace("light").put("workspace", "Ines repaired the lantern", importance=0.9)
    code = (
        "    from lukasa.surfaces.cli.main import main\n"
        f"    sys.argv = ['lukasa', '-w', 'light', 'hook', '{moment}', '--format', 'text']\n"
        "    main()"
    )
    record = shell.data.parent / "session.jsonl"
    record.write_text(json.dumps({"type": "user", "message": {"content": "Who repaired the lantern?"}}) + "\n")
    paths = {"cwd": str(shell.data.parent), "transcript_path": str(record)}
    event = json.dumps({"session_id": "s1", **paths, **EVENTS[moment]})
    modules, said = loaded(code, shell.environment(LUKASA_WORKER="off"), event)
    assert ("Ines repaired the lantern" in said) is (moment != "session-end")
    assert not HEAVY & modules
    assert not LATER & modules
    assert not (READING if moment == "session-end" else WRITING) & modules


def test_numpy_is_loaded_in_one_place() -> None:
    """Layers: code that computes takes `np` from lukasa.model.arrays; elsewhere numpy is imported for types alone."""
    wrong = []
    for path, tree in FILES.items():
        for_types = {id(inner) for node in tree.body if isinstance(node, ast.If) for inner in ast.walk(node)}
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom) and id(node) not in for_types:
                of = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
                if "numpy" in {name.partition(".")[0] for name in of}:
                    wrong.append(f"{path.relative_to(SOURCE)}:{node.lineno}")
    assert not wrong
