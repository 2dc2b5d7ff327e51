"""The TypeScript client: its types are those of the server, and under Node it works against a real one."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lukasa import Lukasa
from lukasa.model.grant import OWNERS_ALONE, Capability
from tests.helpers.server import running
from tools.typescript import typescript
from tools.typescript_client import CLIENT, compiled

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built() -> Path:
    """The client as the compiler leaves it, which checks its types, those of its tests and those of the AI SDK."""
    return compiled()


def test_the_types_are_those_of_the_server() -> None:
    """U4: api.ts is what `python -m tools.typescript` prints."""
    assert (CLIENT / "src" / "api.ts").read_text("utf-8") == typescript()


@contextmanager
def served(data: Path) -> Iterator[dict[str, str]]:
    """A server with a store on disk; what a program must know of it."""
    with Lukasa.open(data, embedder="none") as memory:
        memory.workspace("novel")
        can = tuple(c for c in Capability if c not in OWNERS_ALONE)
        token = memory.access.create("node", workspaces=["novel"], can=can).token
        with running(memory) as house:
            yield {**os.environ, "LUKASA_URL": f"http://127.0.0.1:{house.port}", "LUKASA_TOKEN": token}


def node(*arguments: str, env: dict[str, str]) -> str:
    run = subprocess.run(["node", *arguments], env=env, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


@pytest.mark.parametrize(("tests", "most"), [("client.test.js", 8), ("ai.test.js", 5)])
def test_the_client_works_against_a_server(built: Path, tests: str, most: int, tmp_path: Path) -> None:
    """U4: Node's own test runner, a server with a store on disk, and for the middleware the real AI SDK."""
    with served(tmp_path / "data") as env:
        told = node("--test", "--test-reporter=tap", str(built / "test" / tests), env=env)
    assert f"# pass {most}" in told, told


OPENAI = """
import { MockLanguageModelV4 } from "ai7/test";
const usage = { inputTokens: { total: 1 }, outputTokens: { total: 1 } };
export const openai = () => new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => ({
    content: [{ type: "text", text: JSON.stringify(prompt).includes("Malachar") ? "Malachar" : "I do not know" }],
    finishReason: { unified: "stop" }, usage, warnings: [],
  }),
});
"""


def test_what_the_page_shows_runs(built: Path, tmp_path: Path) -> None:
    """U1: the programs of the page, in order, with a fake model in the place of OpenAI's."""
    page = (ROOT / "docs" / "how-to" / "use-from-typescript.md").read_text("utf-8")
    program = "\n".join(re.findall(r"^```js\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    shown = {'"@ai-sdk/openai"': '"./openai.mjs"', 'from "ai"': 'from "ai7"'}
    for written, tested in shown.items():
        assert written in program
        program = program.replace(written, tested)
    here = built / "page"
    here.mkdir(exist_ok=True)
    (here / "openai.mjs").write_text(OPENAI, "utf-8")
    (here / "page.mjs").write_text(program, "utf-8")
    with served(tmp_path / "data") as env:
        lines = node(str(here / "page.mjs"), env=env).splitlines()
    assert lines[0].startswith("stored ")
    assert "The villain is called Malachar inform" in lines
    assert lines[-1] == "Malachar"


def test_the_client_needs_no_package() -> None:
    """U4: what a program installs is this package alone."""
    assert '"dependencies"' not in (CLIENT / "package.json").read_text("utf-8")
    for source in (CLIENT / "src").glob("*.ts"):
        sources = [line.partition("from ")[2] for line in source.read_text("utf-8").splitlines() if " from " in line]
        assert all(one.strip().startswith('"./') for one in sources if one.strip().startswith('"')), source.name
