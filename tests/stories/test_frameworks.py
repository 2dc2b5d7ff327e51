"""Agent frameworks: their real packages run real agent loops with memory, in environments of their own."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lukasa import frameworks
from lukasa.model.errors import MissingExtra

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "frameworks"
GUARD = ROOT / "tests" / "helpers" / "offline_guard"
CREWAI = TESTS / "test_crewai.py"
OTHERS = sorted(set(TESTS.glob("test_*.py")) - {CREWAI})
# What a framework would send home by itself.
QUIET = {"CREWAI_DISABLE_TELEMETRY": "true", "CREWAI_TRACING_ENABLED": "false", "OTEL_SDK_DISABLED": "true"}


@pytest.mark.parametrize(
    ("environment", "files", "count"), [(".venv-frameworks", OTHERS, 32), (".venv-crewai", [CREWAI], 6)]
)
def test_frameworks_remember_over_sessions(environment: str, files: list[Path], count: int, tmp_path: Path) -> None:
    """Frameworks: the second session's prompt holds what the first one was told; users, trust, errors; no network."""
    python, log = ROOT / environment / "bin" / "python", tmp_path / "network"
    assert python.exists(), f"{environment} is not here: run `make frameworks`"
    paths = os.pathsep.join([str(GUARD), str(ROOT)])
    done = subprocess.run(
        [python, "-m", "pytest", "-q", "-W", "ignore", "-c", TESTS / "pytest.ini", "--rootdir", ROOT, *files],
        cwd=tmp_path,
        env={**os.environ, **QUIET, "HOME": str(tmp_path), "PYTHONPATH": paths, "OFFLINE_LOG": str(log)},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    assert f"{count} passed" in done.stdout
    assert log.read_text() == ""


PACKAGES = {
    "AdkMemoryService": "google-adk",
    "AgentFrameworkProvider": "agent-framework-core",
    "CrewAIMemory": "crewai",
    "LlamaIndexMemoryBlock": "llama-index-core",
    "OpenAIAgentsMemory": "openai-agents",
    "PydanticAIMemory": "pydantic-ai-slim",
    "StrandsMemoryStore": "strands-agents",
}


def test_a_missing_framework_is_named_with_the_line_that_installs_it() -> None:
    """Errors: without a framework, its name raises a typed error with the pip line; the rest stays usable."""
    assert {*PACKAGES, "by_model_or_rules", "for_users", "remember"} == set(frameworks.__all__)
    for name, package in PACKAGES.items():
        with pytest.raises(MissingExtra, match=name) as missing:
            getattr(frameworks, name)
        assert missing.value.fix == f"pip install --upgrade {package}"


def test_the_core_imports_no_framework() -> None:
    """Install: nothing but a framework's own adapter imports it, so a memory without frameworks loads none."""
    named = [path.stem for path in (ROOT / "src" / "lukasa" / "surfaces" / "frameworks").glob("*.py")]
    assert len(named) == 9
    for path in (ROOT / "src" / "lukasa").rglob("*.py"):
        text = path.read_text("utf-8")
        if path.parent.name != "frameworks" and path.name != "frameworks.py":
            assert "surfaces.frameworks" not in text, path
