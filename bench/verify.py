"""What checking citations costs: a check, and a context with ten citations beside the same one without.

    python -m bench.verify [--entries 1000] [--edits 200] [--results bench/RESULTS.md]

A generated git repository is cited by so many entries and then edited at random. Every verdict is compared with an
oracle. The contexts are of two workspaces with the same entries, of which one cites nothing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench.section import write_section
from lukasa import Lukasa, Memo, Workspace
from lukasa.model.citation import Citation
from lukasa.service.citations.checking import Look, look
from tests.helpers.repository import Repository

FILES, LINES = 60, 120
TOPICS = "amber birch cedar delta ember fjord grove haven isle juniper".split()
ROUNDS = 40


def entries_of(repository: Repository, count: int, dice: random.Random) -> list[tuple[str, str, list[int]]]:
    """Return texts with what each cites: a line, a span or a whole file, and the identities of its lines."""
    found = []
    for number in range(count):
        path = dice.choice(sorted(repository.files))
        lines, size = repository.files[path], dice.choice([0, 1, 3, 8])
        first = dice.randrange(1, len(lines) - size + 1)
        place = path if not size else f"{path}:{first}-{first + size - 1}"
        cited = lines[first - 1 : first - 1 + size] if size else lines
        found.append((f"Observation {number} about {dice.choice(TOPICS)}", place, [line.number for line in cited]))
    return found


def put(world: Workspace, wanted: list[tuple[str, str, list[int]]], *, cites: bool) -> list[str]:
    ids: list[str] = []
    for at in range(0, len(wanted), 100):
        memos = [Memo(text, cites=[place] if cites else []) for text, place, _ in wanted[at : at + 100]]
        ids += [one.id for one in world.put_many("workspace", memos)]
    return ids


def right(repository: Repository, first_path: str, numbers: list[int], *, whole: bool) -> set[str]:
    """Return the verdicts that are right for what began as these lines of a file."""
    found = repository.of(first_path)
    if found is None:
        return {"gone"}
    now = [line.number for line in found[1]]
    if whole:
        return ({"verified"} if found[0] == first_path else {"moved"}) if now == numbers else {"changed"}
    there = any(now[at : at + len(numbers)] == numbers for at in range(len(now)))
    return {"verified", "moved"} if there else {"changed"}


def per_check(world: Workspace, citations: list[Citation]) -> tuple[list[float], float]:
    """Return the milliseconds of each check in one process, and of all of them again with a warm cache."""
    looks, times = Look(world.ctx), []
    for citation in citations:
        started = time.perf_counter()
        look(looks, citation)
        times.append((time.perf_counter() - started) * 1000)
    started = time.perf_counter()
    for citation in citations:
        look(looks, citation)
    return times, (time.perf_counter() - started) * 1000 / len(citations)


def contexts(cited: Workspace, plain: Workspace) -> tuple[float, float, float]:
    """Return the median milliseconds of a context with citations, of one without, and the citations in it."""
    times: dict[str, list[float]] = {"cited": [], "plain": []}
    seen = []
    for turn in range(ROUNDS):
        question = f"what about {TOPICS[turn % len(TOPICS)]}?"
        for name, world in (("cited", cited), ("plain", plain)):
            started = time.perf_counter()
            found = world.context(question)
            times[name].append((time.perf_counter() - started) * 1000)
            if name == "cited":
                seen.append(sum(len(hit.citations) for hit in found.hits.values()))
    return statistics.median(times["cited"]), statistics.median(times["plain"]), statistics.mean(seen)


def measure(folder: Path, count: int, edits: int) -> str:
    dice = random.Random(11)
    (folder / "project").mkdir()
    repository = Repository(folder / "project", dice)
    repository.begin(FILES, LINES)
    wanted = entries_of(repository, count, dice)
    with Lukasa.open(folder / "data", embedder="none", project=folder / "project") as memory:
        cited, plain = memory.workspace("cited"), memory.workspace("plain")
        ids = put(cited, wanted, cites=True)
        put(plain, wanted, cites=False)
        for _ in range(edits):
            repository.edit()
        started = time.perf_counter()
        found = cited.verify_citations()
        whole = (time.perf_counter() - started) * 1000
        claims = dict(zip(ids, wanted, strict=True))
        verdicts: Counter[str] = Counter()
        wrong = 0
        for one in found.entries:
            _, place, numbers = claims[one.entry.id]
            path, _, lines = place.partition(":")
            verdict = str(one.citations[0].verdict)
            verdicts[verdict] += 1
            wrong += verdict not in right(repository, path, numbers, whole=not lines)
        citations = [one.citations[0].citation for one in found.entries]
        cold = memory.workspace("cited").in_project(str(folder / "project" / "."))
        times, warm = per_check(cold, citations)
        with_them, without, number = contexts(cited, plain)
    times.sort()
    slow = times[int(len(times) * 0.95)]
    more = with_them - without
    return f"""## Verify before use

`make bench-verify`: {count:,} entries cite {FILES} files of {LINES} lines, which are then changed {edits} times: lines
added, changed, removed and moved, files renamed and removed.

| | |
| --- | --- |
| verdicts | {", ".join(f"{value} {name}" for name, value in sorted(verdicts.items()))} |
| wrong verdicts | {wrong} of {len(found.entries):,} |
| `lukasa verify`, with git, and outcomes kept | {whole / count:.2f} ms per entry |
| a check: median, 95th percentile | {statistics.median(times):.3f} ms, {slow:.3f} ms |
| a check, mean with a warm cache | {warm:.3f} ms |
| a context with {number:.1f} citations, and without | {with_them:.1f} ms, {without:.1f} ms: {more:.1f} ms more |
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--entries", type=int, default=1000)
    parser.add_argument("--edits", type=int, default=200)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        told = measure(Path(folder), options.entries, options.edits)
    print(told)
    if options.results is not None:
        write_section(options.results, "verify", told)


if __name__ == "__main__":
    main()
