"""The pages of the documentation as programs: run them, compare what they show, and write their outputs anew.

    python -m tools.pages docs/tutorial.md      writes the outputs that no longer match

A page's Python, and its shell where it calls `lukasa` or `python`, run in the order of the page. A fence `output` right
after such a part is what the reader should see. In it,

- an id, a digest, a day that is today, a time and a number of milliseconds may differ. An id that a page shows twice
  must be the same thing twice;
- `…` stands for anything within a line, and a line with `…` alone for any lines, also none.

Everything else is compared, character by character.
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
OUTPUT = "output"
# Pages about programs that are in an environment of their own; `make frameworks` sets it up.
ENVIRONMENTS = {
    "use-with-crewai.md": ".venv-crewai",
    "use-with-google-adk.md": ".venv-frameworks",
    "use-with-llamaindex.md": ".venv-frameworks",
    "use-with-microsoft-agent-framework.md": ".venv-frameworks",
    "use-with-openai.md": ".venv-frameworks",
    "use-with-openai-agents.md": ".venv-frameworks",
    "use-with-pydantic-ai.md": ".venv-frameworks",
    "use-with-strands.md": ".venv-frameworks",
}
ANYTHING = "…"

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CALLED = re.compile(r"\A(?!export ).*?^(?:lukasa|python) ", re.MULTILINE | re.DOTALL)

# The commands as a reader has them on the path, and a way to call them between two parts of one Python program.
_COMMANDS = 'lukasa() { "$PYTHON" -m lukasa.surfaces.cli.main "$@"; }\npython() { "$PYTHON" "$@"; }\n'
_SHELL = """import subprocess as _s
if _s.run(["sh", "-eu", "-c", {script!r}], stdin=_s.DEVNULL).returncode:
    raise SystemExit("a command of this page failed")
"""
_MARK = "\x1e"


class Block(NamedTuple):
    """A part of a page that runs, with what the page shows of its output."""

    language: str
    text: str
    shown: str | None = None
    at: tuple[int, int] = (0, 0)  # where the page has what it shows


def blocks(page: Path) -> list[Block]:
    """Return the parts of a page that run: all Python, and the shell where it calls a command."""
    return parse(page.read_text("utf-8"))


def parse(text: str) -> list[Block]:
    """Return the same of a page's text."""
    found: list[Block] = []
    end = -1  # of the last part that runs, if its output may follow
    for fence in FENCE.finditer(text):
        language, inside = fence.groups()
        if language == OUTPUT:
            if end < 0 or text[end : fence.start()].strip():
                raise ValueError(f"an output follows nothing that runs: {inside.splitlines()[:1]}")
            found[-1] = found[-1]._replace(shown=inside, at=fence.span(2))
            end = -1
        elif language == "python" or (language == "sh" and _CALLED.search(inside)):
            found.append(Block(language, inside))
            end = fence.end()
        else:
            end = -1
    return found


def program(some: list[Block]) -> str:
    """Return the parts as one program, so that each sees what the ones before it did; it marks where each begins.

    Parts in the shell that follow one another are one terminal: its folder and variables last.
    """
    parts = []
    for language, run in groupby(enumerate(some), key=lambda numbered: numbered[1].language):
        if language == "python":
            parts += [f"print({_MARK + str(n)!r}, flush=True)\n{block.text}" for n, block in run]
        else:
            script = "".join(f"printf '\\036%s\\n' {n}\n{block.text}\n" for n, block in run)
            parts.append(_SHELL.format(script=_COMMANDS + script))
    return "\n".join(parts)


@dataclass(frozen=True, slots=True)
class PageRun:
    """A run of a page: its parts, what each printed, and how it ended."""

    blocks: list[Block]
    outputs: list[str]
    code: int
    printed: str


def run(page: Path, folder: Path, env: Mapping[str, str]) -> PageRun:
    """Run a page in a folder of its own, as a reader with an empty memory would."""
    found = blocks(page)
    script = folder / "page.py"
    script.write_text(program(found), "utf-8")
    python, strict = interpreter(page)
    here = {"LUKASA_DATA": str(folder / "data"), "PYTHON": python, "PYTHONUNBUFFERED": "1", **env}
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    ended = subprocess.run(
        [python, *strict, str(script)],
        env={**os.environ, **here, "PYTHONPATH": path},
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    return PageRun(found, _split(ended.stdout, len(found)), ended.returncode, ended.stdout)


def interpreter(page: Path) -> tuple[str, list[str]]:
    """Return the Python of a page. Where the programs are ours, a warning is an error."""
    environment = ENVIRONMENTS.get(page.name)
    if environment is None:
        return sys.executable, ["-W", "error"]
    python = ROOT / environment / "bin" / "python"
    if not python.exists():
        raise FileNotFoundError(f"{page.name} runs in {environment}, which is not here: run `make frameworks`")
    return str(python), ["-W", "ignore"]


def _split(printed: str, count: int) -> list[str]:
    """Return what each part printed."""
    outputs = [""] * count
    for part in printed.split(_MARK)[1:]:
        number, _, text = part.partition("\n")
        outputs[int(number)] = "\n".join(line.rstrip() for line in text.rstrip().splitlines()) + "\n"
    return outputs


# What may differ

_FREE = re.compile(
    r"(?P<uuid>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b)"
    r"|(?P<short>\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}\b)"
    r"|(?P<digest>\b(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{12,64}\b)"
    r"|(?P<day>\b\d{4}-\d\d-\d\d\b)"
    r"|(?P<time>\b\d\d:\d\d(?::\d\d)?\b(?= UTC))"
    r"|(?P<ms>\b\d+(?= ms\b))"
    r"|(?P<any>…)"
)
_FORMS = {
    "uuid": r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
    "digest": r"[0-9a-f]{12,64}",
    "short": r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}",
    "time": r"\d\d:\d\d(?::\d\d)?",
    "ms": r"\d+",
    "any": r"[^\n]*?",
}


@dataclass(slots=True)
class Comparison:
    """Compares what a page shows with what it printed; it remembers which id stands for which, for the whole page."""

    days: tuple[str, ...] = field(default_factory=lambda: _today())
    known: dict[str, str] = field(default_factory=dict)

    def difference(self, shown: str, printed: str) -> str:
        """Return the lines that differ, or nothing if what was printed is what the page shows."""
        names: dict[str, str] = {}  # of an id in the page: its group in the pattern
        pattern = "".join(self._line(line, names) for line in shown.splitlines())
        found = re.fullmatch(pattern, printed)
        met = {} if found is None else {token: found[group] for token, group in names.items()}
        both = {**self.known, **met}
        if found is not None and len(set(both.values())) == len(both):
            self.known = both
            return ""
        return "".join(difflib.unified_diff(shown.splitlines(True), printed.splitlines(True), "shown", "printed"))

    def _line(self, line: str, names: dict[str, str]) -> str:
        """Return the pattern of a line. An id's first place is a group; later ones are the same text again."""
        if line.strip() == ANYTHING:
            return r"(?:[^\n]*\n)*?"
        parts, last = [], 0
        for token in _FREE.finditer(line):
            parts.append(re.escape(line[last : token.start()]))
            parts.append(self._token(str(token.lastgroup), token[0], names))
            last = token.end()
        return "".join(parts) + re.escape(line[last:].rstrip()) + r"\n"

    def _token(self, kind: str, text: str, names: dict[str, str]) -> str:
        if kind == "day":
            return "(?:" + "|".join(map(re.escape, (text, *self.days))) + ")"
        if kind not in ("uuid", "digest"):
            return _FORMS[kind]
        if text in self.known:
            return re.escape(self.known[text])
        if text in names:
            return f"(?P={names[text]})"
        names[text] = f"id{len(names)}"
        return f"(?P<{names[text]}>{_FORMS[kind]})"


def _today() -> tuple[str, ...]:
    """Return today, and yesterday too: a page may run over midnight."""
    now = datetime.now(UTC)
    return tuple(sorted({f"{now - timedelta(hours=hours):%Y-%m-%d}" for hours in (0, 1)}))


def differences(done: PageRun) -> Iterator[tuple[Block, str, str]]:
    """Yield the parts whose output is not what the page shows, with what they printed and the difference."""
    comparison = Comparison()
    for block, printed in zip(done.blocks, done.outputs, strict=True):
        if block.shown is not None and (difference := comparison.difference(block.shown, printed)):
            yield block, printed, difference


def renewed(text: str, done: PageRun) -> str:
    """Return the page with what was printed in place of each output that does not match."""
    for block, printed, _ in reversed(list(differences(done))):
        start, end = block.at
        text = text[:start] + printed + text[end:]
    return text


def main(names: list[str]) -> int:
    """Write the outputs of pages anew; the exit code is 1 if a page does not run."""
    for name in names:
        page = Path(name)
        with TemporaryDirectory() as folder:
            done = run(page, Path(folder), {"LUKASA_EMBEDDER": "auto"})
        if done.code:
            print(done.printed, f"{name} does not run", sep="\n", file=sys.stderr)
            return 1
        before = page.read_text("utf-8")
        after = renewed(before, done)
        page.write_text(after, "utf-8")
        print(f"{name}: {'as it was' if after == before else 'written anew'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
