"""A generated git repository whose edits are known: an oracle says what became of every cited place."""

from __future__ import annotations

import random
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

WORDS = "amber birch cedar delta ember fjord grove haven isle juniper kelp larch maple north ochre pine".split()


def git(folder: Path, *words: str) -> str:
    """Run git as somebody with no settings of their own."""
    settings = ("user.email=a@example.org", "user.name=a", "init.defaultBranch=main", "commit.gpgsign=false")
    given = [word for one in settings for word in ("-c", one)]
    done = subprocess.run(["git", *given, *words], cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout.strip()


@dataclass
class Line:
    """One line, which keeps its identity wherever it moves."""

    number: int
    text: str


@dataclass
class Repository:
    """Files as lists of lines, with every edit applied to both the files and the lists."""

    folder: Path
    dice: random.Random
    files: dict[str, list[Line]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict)  # the first path of a file to its present one
    made: int = 0

    def line(self) -> Line:
        self.made += 1
        return Line(self.made, f"    {self.dice.choice(WORDS)}_{self.made} = {self.dice.choice(WORDS)}({self.made})")

    def begin(self, count: int, lines: int) -> None:
        for number in range(count):
            path = f"{self.dice.choice(['src', 'lib', 'app/core'])}/{self.dice.choice(WORDS)}_{number}.py"
            self.files[path] = [self.line() for _ in range(lines)]
            self.renamed[path] = path
        for path in self.files:
            self.write(path)
        git(self.folder, "init", "-q")
        self.commit()

    def write(self, path: str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        end = "\r\n" if self.dice.random() < 0.1 else "\n"  # an editor's line ends say nothing
        file.write_bytes((end.join(line.text for line in self.files[path]) + end).encode())

    def commit(self) -> None:
        git(self.folder, "add", "-A")
        git(self.folder, "commit", "-q", "--allow-empty", "-m", "more")

    def edit(self) -> None:
        """Make one random change: lines added, changed, removed or moved, a file renamed or removed."""
        path = self.dice.choice(sorted(self.files))
        lines = self.files[path]
        at = self.dice.randrange(len(lines))
        match self.dice.choice(["add", "add", "change", "change", "cut", "shift", "rename", "remove", "commit"]):
            case "add":
                lines[at:at] = [self.line() for _ in range(self.dice.randint(1, 4))]
            case "change":
                lines[at] = self.line()
            case "cut" if len(lines) > 20:
                del lines[at : at + self.dice.randint(1, 2)]
            case "shift":
                block = lines[at : at + 3]
                del lines[at : at + 3]
                there = self.dice.randrange(len(lines))
                lines[there:there] = block
            case "rename":
                self.rename(path)
                return
            case "remove" if len(self.files) > 10:
                del self.files[path]
                (self.folder / path).unlink()
                return
            case _:
                self.commit()
        self.write(path)

    def rename(self, path: str) -> None:
        """Move a file: what it had is committed before, as people do who rename; sometimes git is not told."""
        self.commit()
        self.made += 1
        new = f"{self.dice.choice(['src', 'moved'])}/{self.dice.choice(WORDS)}_{self.made}.py"
        self.files[new] = self.files.pop(path)
        (self.folder / new).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).rename(self.folder / new)
        self.commit()
        for first, now in self.renamed.items():
            if now == path:
                self.renamed[first] = new

    def of(self, first_path: str) -> tuple[str, list[Line]] | None:
        """The present path and lines of a file that began at a path; None if it was removed."""
        path = self.renamed[first_path]
        return (path, self.files[path]) if path in self.files else None
