"""Every verdict is right over a repository that changes at random: an oracle follows each line through the edits."""

from __future__ import annotations

import random
from pathlib import Path

from lukasa import Lukasa
from lukasa.model.citation import CitedNow
from lukasa.service.entries.put import Memo
from tests.helpers.processes import TORTURE
from tests.helpers.repository import Line, Repository

ENTRIES, EDITS, FILES, LINES = (1000, 200, 60, 120) if TORTURE else (250, 80, 24, 60)
ROUNDS = 4


class Claim:
    """What one entry cites, by the identity of the lines."""

    def __init__(self, path: str, first: int, lines: list[Line], *, whole: bool) -> None:
        self.path, self.first, self.whole = path, first, whole
        self.numbers = [line.number for line in lines]

    def verdict(self, repository: Repository) -> tuple[str, str]:
        """The right verdict, and the place of what has moved."""
        found = repository.of(self.path)
        if found is None:
            return "gone", ""
        path, lines = found
        numbers = [line.number for line in lines]
        if self.whole:
            if numbers != self.numbers:
                return "changed", path if path != self.path else ""
            return ("verified", "") if path == self.path else ("moved", path)
        size = len(self.numbers)
        at = next((n for n in range(len(numbers) - size + 1) if numbers[n : n + size] == self.numbers), None)
        if at is None:
            return "changed", path if path != self.path else ""
        if path == self.path and at + 1 == self.first:
            return "verified", ""
        last = at + size
        return "moved", f"{path}:{at + 1}-{last}" if size > 1 else f"{path}:{at + 1}"


def test_every_verdict_is_right_after_random_edits(tmp_path: Path) -> None:
    """B16: verified, moved, changed and gone are what an oracle says, for whole files, lines and spans of lines."""
    dice = random.Random(7)
    folder = tmp_path / "project"
    folder.mkdir()
    repository = Repository(folder, dice)
    repository.begin(FILES, LINES)
    with Lukasa.open(tmp_path / "data", embedder="none", project=folder) as memory:
        world = memory.workspace("main")
        claims: dict[str, Claim] = {}
        memos: list[tuple[Claim, str]] = []
        for _ in range(ENTRIES):
            path = dice.choice(sorted(repository.files))
            lines = repository.files[path]
            size = dice.choice([0, 1, 1, 3, 8])
            first = dice.randrange(1, len(lines) - size + 1)
            claim = Claim(path, first, lines[first - 1 : first - 1 + size] if size else list(lines), whole=not size)
            place = path if not size else f"{path}:{first}" if size == 1 else f"{path}:{first}-{first + size - 1}"
            memos.append((claim, place))
        texts = [Memo(f"Observation {n} about a part", cites=[place]) for n, (_, place) in enumerate(memos)]
        for start in range(0, len(texts), 100):
            done = world.put_many("workspace", texts[start : start + 100])
            claims |= {one.id: claim for one, (claim, _) in zip(done, memos[start:], strict=False)}
        seen: set[str] = set()
        for _ in range(ROUNDS):
            for _ in range(EDITS // ROUNDS):
                repository.edit()
            found = world.verify_citations()
            assert len(found.entries) == ENTRIES
            wrong = [
                (one.citations[0].citation.label, told(one.citations[0]), claims[one.entry.id].verdict(repository))
                for one in found.entries
                if told(one.citations[0]) != claims[one.entry.id].verdict(repository)
            ]
            assert wrong == []
            seen.update(str(one.citations[0].verdict) for one in found.entries)
        assert seen == {"verified", "moved", "changed", "gone"}
        waiting = {one.entry.id for one in world.inbox(limit=1000).doubtful}
        assert waiting == {id for id, claim in claims.items() if claim.verdict(repository)[0] in ("changed", "gone")}


def told(one: CitedNow) -> tuple[str, str]:
    """What a check says, in the oracle's words."""
    return str(one.verdict), one.where
