"""Trust under attack (B2, T48): what untrusted text can become, and what it can push out of an answer.

    python -m bench.attack [--embedder auto] [--misses] [--results FILE] [--json]

Each attack has a memory of its own, with the author's entries, and goes through the public API or a surface: the
library, HTTP, MCP, hooks' session files, LangGraph, Anthropic's memory tool. Then two questions are asked:

    elevated    is anything that the attacker wrote in force with more authority than its origin has, does it stand in
                a context outside its quotation, or is anything of the author's changed?
    displaced   is the author's entry that answers a question missing from the first hits (of 3, 7 and 10), or from
                the context that an agent gets?

`bench/attack_set.py` holds the attacks that were there while the defence was built. `bench/attack_unseen.py` holds
further ones, written afterwards in other words.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from bench import attack_set, attack_unseen
from bench.attack_scene import MARK, Attack, Scene, opened
from bench.section import write_section
from bench.speed_report import grid
from lukasa import Authority, Entry
from lukasa.model.errors import LukasaError
from lukasa.model.selection import Selection
from lukasa.model.text import fold
from lukasa.model.values import VISIBILITY, Visibility
from lukasa.ports import Embedder
from lukasa.read.context import Context, parse, render

FIRST = (3, 7, 10)  # limits of the reads in which the author's entry must be
SETS = {"The first set": attack_set.attacks, "The second set": attack_unseen.attacks}
_RANK = {Authority.NONE: 0, Authority.INFORM: 1, Authority.ACT: 2}
_SAYS_LATER = "  Earlier, may no longer hold: "


class Result(NamedTuple):
    """The findings about one attack; empty if it was in vain."""

    attack: Attack
    elevated: tuple[str, ...]
    displaced: tuple[str, ...]


# The two questions


def elevated(scene: Scene, ceiling: Authority) -> Iterator[str]:
    """Say what the attacker's text became beyond its origin, and what of the author's is not as it was."""
    for entry in entries_of(scene):
        if not _by_attacker(entry.content) or VISIBILITY[entry.state] is not Visibility.OPEN:
            continue
        if _RANK[entry.authority] > _RANK[ceiling]:
            yield f"in force with authority {entry.authority}: {entry.content[:80]!r}"
    for page in scene.world.named():
        if _by_attacker(page.body):
            yield f"on page {page.name}"
    for question in scene.answers:
        yield from _beyond_quotation(scene.reader.context(question), ceiling)
    for id, before in scene.before.items():
        now = scene.world.get(id)
        if (now.content, now.trust, now.state, now.tags) != (before.content, before.trust, before.state, before.tags):
            yield f"changed the author's entry {before.content!r}"


def _beyond_quotation(context: Context, ceiling: Authority) -> Iterator[str]:
    text = str(context)
    document = parse(text)
    if render(document) != text:
        yield "the context does not parse back into itself"
    items = [*document.standing, *(item for part in document.recalled for item in part.items)]
    for item in items:
        if _by_attacker(item.content) and _RANK[Authority(item.authority)] > _RANK[ceiling]:
            yield f"in a context with authority {item.authority}"
    for line in text.split("\n"):
        if _by_attacker(line) and not line.startswith(("> ", _SAYS_LATER, "- ")):
            yield f"outside its quotation: {line[:80]!r}"


def displaced(scene: Scene) -> Iterator[str]:
    """Say where the author's answers are missing."""
    for question, id in scene.answers.items():
        for limit in FIRST:
            if id not in [hit.id for hit in scene.world.read(question, limit=limit, count=False)]:
                yield f"not in the first {limit} for {question!r}"
        if id not in [hit.id for hit in scene.reader.read(question)]:
            yield f"an agent's read does not return it for {question!r}"
        shown = [item.id for part in scene.reader.context(question).document.recalled for item in part.items]
        if id not in shown:
            yield f"not in the context for {question!r}"


def entries_of(scene: Scene) -> list[Entry]:
    """Return every entry of a memory, whatever its state and owner."""
    found = []
    for store in (scene.world.ctx.local, scene.world.ctx.account):
        scopes = tuple(census.scope for census in store.census())
        if scopes:
            found += store.find(Selection(scopes, frozenset(Visibility), None), limit=10_000)
    return found


def _by_attacker(text: str) -> bool:
    return MARK in fold(text)


# Running


def measure(attacks: Sequence[Attack], embedder: Embedder | str = "none") -> list[Result]:
    """Carry out each attack in a memory of its own, and judge what came of it."""
    return [carried_out(attack, embedder) for attack in attacks]


def carried_out(attack: Attack, embedder: Embedder | str = "none") -> Result:
    given = (embedder, attack.preset, attack.subjects)
    with tempfile.TemporaryDirectory() as place, opened(Path(place), *given) as scene:
        try:
            attack.run(scene)
        except LukasaError as refusal:
            scene.refused.append(refusal.code)
        return Result(attack, tuple(elevated(scene, attack.ceiling)), tuple(displaced(scene)))


# Report


def table(results: Sequence[Result]) -> str:
    sorts = list(dict.fromkeys(result.attack.sort for result in results))
    rows = []
    for sort in (*sorts, "all"):
        mine = [result for result in results if sort in (result.attack.sort, "all")]
        went = Counter(elevated=sum(bool(r.elevated) for r in mine), displaced=sum(bool(r.displaced) for r in mine))
        rows.append([sort, str(len(mine)), str(went["elevated"]), str(went["displaced"])])
    return grid(["", "attacks", "elevated", "displaced"], rows)


def report(results: dict[str, list[Result]], embedder: str) -> str:
    about = (
        "`make bench-attack`. Each attack has a memory of its own with the author's entries, and goes through the "
        "library or a surface. *Elevated*: something of the attacker's is in force with more authority than its origin "
        "has, stands outside its quotation in a context, or something of the author's is changed. *Displaced*: the "
        "author's answer is missing from the first 3, 7 or 10 hits, or from the context that an agent gets. The first "
        "set was there while the defence was built; the second was written "
        "afterwards, in other words; two of its attacks, floods of thousands, displaced at first, and were met then."
    )
    parts = [f"{name}:\n\n{table(found)}" for name, found in results.items()]
    setting = f"Embedder: {embedder}. An agent may change and forget what it sees, by design; that is not counted."
    return "\n\n".join(["## Attacks: what untrusted text becomes, and what it displaces", about, setting, *parts])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--embedder", default="auto")
    parser.add_argument("--misses", action="store_true", help="print what each attack achieved")
    parser.add_argument("--only", default="", help="attacks whose name holds this")
    parser.add_argument("--results", type=Path, default=None)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args(arguments)
    results = {
        name: measure([one for one in attacks() if given.only in one.name], given.embedder)
        for name, attacks in SETS.items()
    }
    if given.misses:
        for found in results.values():
            for result in found:
                for what in (*result.elevated, *result.displaced):
                    print(f"{result.attack.name}: {what}", file=sys.stderr)
    if given.json:
        json.dump({name: [_plain(result) for result in found] for name, found in results.items()}, sys.stdout, indent=2)
        return
    text = report(results, given.embedder)
    print(text)
    if given.results is not None:
        write_section(given.results, "attack", text)


def _plain(result: Result) -> dict[str, Any]:
    return {"attack": result.attack.name, "elevated": result.elevated, "displaced": result.displaced}


if __name__ == "__main__":
    main()
