"""§14: checking and cleaning text of other people costs time in proportion to its length, for any text."""

from __future__ import annotations

import resource
import subprocess
import sys

import pytest

BUDGET = 10  # seconds of CPU: a search that is quadratic in these texts takes minutes

CHECK = "from lukasa.write.check import signals; signals({text})"
CLEAN = "from lukasa.model.echo import unharnessed as clean; clean({text})"


def bounded() -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (BUDGET, BUDGET))


@pytest.mark.parametrize(
    ("program", "text"),
    [
        (CHECK, "'a/' * 60_000"),
        (CHECK, "'a-' * 60_000"),
        (CLEAN, "chr(10) * 200_000 + 'x'"),
        (CLEAN, "('[Image' + chr(10) * 9) * 20_000"),
    ],
)
def test_the_work_is_bounded(program: str, text: str) -> None:
    code = program.format(text=text)
    done = subprocess.run([sys.executable, "-c", code], preexec_fn=bounded, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()[-500:]
