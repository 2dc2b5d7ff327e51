"""The command line for tests: in this process for the many small ones, as a real process where that matters."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from lukasa.spec import preset_text
from lukasa.surfaces.cli.main import cli

ROOT = Path(__file__).parents[2]
BASE = {"LUKASA_WORKER": "off"}  # no test leaves a process behind unless it means to
COMMAND = [sys.executable, "-m", "lukasa.surfaces.cli.main"]


STRICT = preset_text("default").replace("[behaviour.write]\n", '[behaviour.write]\nform_rules = "all"\n')


@dataclass(slots=True)
class Shell:
    """Somebody's terminal: a data folder, and what they set in their environment."""

    data: Path
    env: dict[str, str] = field(default_factory=lambda: {"LUKASA_EMBEDDER": "none"})

    def call(self, *args: str, input: str | bytes | None = None) -> Result:
        return CliRunner().invoke(cli, list(args), input=input, env={**BASE, "LUKASA_DATA": str(self.data), **self.env})

    def run(self, *args: str, input: str | bytes | None = None) -> str:
        """What a call that must succeed prints."""
        result = self.call(*args, input=input)
        assert result.exit_code == 0, f"{args}: {result.output}"
        return result.stdout

    def json(self, *args: str, input: str | bytes | None = None, code: int = 0) -> Any:
        """The one JSON document that a call prints."""
        result = self.call(*args, "--json", input=input)
        assert result.exit_code == code, f"{args}: {result.output}"
        return json.loads(result.stdout)

    def fails(self, *args: str, input: str | bytes | None = None, code: int) -> dict[str, str]:
        """The error of a call that must fail: typed, with the same exit code whether for people or for programs."""
        human = self.call(*args, input=input)
        assert human.exit_code == code, f"{args}: {human.output}"
        assert human.stderr.startswith("error: ")
        assert "Traceback" not in human.output
        error: dict[str, str] = self.json(*args, input=input, code=code)["error"]
        assert set(error) == {"code", "message", "fix"}
        return error

    def put(self, text: str, *args: str) -> str:
        """Remember something, and give its id."""
        return str(self.json("put", text, *args)["id"])

    def process(self, *args: str, input: bytes | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            [*COMMAND, *args], input=input, capture_output=True, env=self.environment(**env), check=False, timeout=60
        )

    def environment(self, **more: str) -> dict[str, str]:
        """Return the environment of a process: without settings of Lukasa but these, and the engine of the test."""
        kept = {key: value for key, value in os.environ.items() if key == "LUKASA_DATABASE"}
        base = {key: value for key, value in os.environ.items() if not key.startswith("LUKASA_")} | kept
        return {**base, **BASE, "PYTHONPATH": str(ROOT / "src"), "LUKASA_DATA": str(self.data), **self.env, **more}

    @contextmanager
    def running(self, code: str, *args: str) -> Iterator[None]:
        """Run a Python program that prints a line when it is ready, and ends when its stdin closes."""
        command = [sys.executable, "-c", code, *args]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=self.environment()
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            process.stdout.readline()
            yield
            process.stdin.write(b"\n")


def strict(shell: Shell) -> None:
    """Make a workspace whose spec applies the gate's rules of form to every write, and work in it."""
    shell.run("workspace", "create", "strict", "--spec", "-", input=STRICT)
    shell.env["LUKASA_WORKSPACE"] = "strict"


_SUPPORT = """
# What a tenant knows, what it knows of a customer, and one conversation.
name = support
like = anchored
anchor = workspace, tenant_id, customer_id, conversation
tiers = conversation, customer, tenant
tiers.conversation.anchor = workspace, tenant_id, customer_id, conversation
tiers.customer.anchor = workspace, tenant_id, customer_id
tiers.tenant.anchor = workspace, tenant_id
typology.customer = semantic, procedural, episodic
typology.tenant = semantic, procedural, episodic
behaviour.write = all
behaviour.write.all = mode = auto, confidence = 0.0
behaviour.write.all.reason = What a customer says counts at once.
visibility.conversation.agents = participants
visibility.conversation.external = participants
visibility.customer.external = granted
visibility.tenant.external = granted
"""


@cache
def support_spec() -> str:
    """The spec of a support agent for several tenants, as `lukasa spec new` writes it."""
    made = CliRunner().invoke(cli, ["spec", "new", "--answers", "-"], input=_SUPPORT)
    assert made.exit_code == 0, made.output
    return made.stdout
