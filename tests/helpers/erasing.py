"""A workspace in which people are mentioned everywhere, and the search for a name in files of every kind."""

from __future__ import annotations

import random
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from lukasa import Workspace
from lukasa.model.disclosure import Disclosure, Shown
from lukasa.model.item import ItemAddress
from lukasa.model.telemetry import TelemetryEvent
from lukasa.service.entries import store_items
from lukasa.service.entries.store_items import PutItem
from lukasa.storage.operations import Emit, SaveEntry
from lukasa.storage.port import ItemQuery
from tests.fakes import FakeEmbedder
from tests.helpers.curating import promote
from tests.helpers.sessions import claude
from tests.helpers.stores import entry as made_entry


def holding(folder: Path, words: str) -> list[str]:
    """The files below a folder that hold some words in any usual encoding, in objects of git too."""
    found = []
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        if "objects" in path.parts and path.suffix == "":
            with suppress(zlib.error):
                data += zlib.decompress(data)
        lower = data.lower()
        forms = [words.lower().encode(), words.lower().encode("utf-16-le"), words.split()[-1].lower().encode()]
        if any(form in lower for form in forms):
            found.append(str(path.relative_to(folder)))
    return found


def names(count: int, seed: int = 7) -> list[str]:
    """Names that nobody has: each is unlike every other word."""
    chance, syllables = random.Random(seed), "ba ce di fo gu ha jy ke lo mu na pi qua ri so tu vex wy zo".split()

    def word(size: int) -> str:
        return "".join(chance.choice(syllables) for _ in range(size)).title()

    found: set[str] = set()
    while len(found) < count:
        found.add(f"{word(3)} {word(4)}")
    return sorted(found)


def furnish(world: Workspace, folder: Path, people: list[str], entries: int) -> None:
    """Spread people over all that a workspace keeps."""
    texts = [f"{people[n % len(people)]} keeps jar number {n} of plum jam" for n in range(entries)]
    written = world.put_many("workspace", texts)
    for n, name in enumerate(people):
        first = written[n].entry
        assert first is not None
        world.update(first.id, content=f"{name} keeps jar number {n} of cherry jam")
        summary = made_entry(f"Somebody likes jam, as {n} of us know", scope=first.scope, derived_from=(first.id,))
        world.ctx.apply(world.ctx.local, SaveEntry(summary, 0, "entry.put", "a summary"))
        point = TelemetryEvent(world.ctx.now, "info", "test", "tests", "noted", True, 1.0, {"why": f"about {name}"})
        world.ctx.apply(world.ctx.local, Emit(point))
        world.save_document(f"list-{n}", f"# Guests\n\n{name} comes on Monday. Flowers are on table {n}.\n")
        world.save_document(f"list-{n}", f"# Guests\n\n{name} comes on Tuesday. Flowers are on table {n}.\n")
        world.slog.write("call", "phone", f"{name} was called")
        shown = (Shown(first.id, 1, 9),)
        world.ctx.local.disclose(Disclosure(world.ctx.now, "scribe", "mcp", "stdio", "", "", "read", 9, shown))
        items = (ItemAddress(("guests", str(n)), "who"), ItemAddress(("guests", str(n)), "table"))
        kept = (f"{name} eats no nuts", f"Table {n} is near the door")
        puts = [PutItem(at, {"text": text}, None, (("", text),)) for at, text in zip(items, kept, strict=True)]
        store_items.write(world.ctx, puts, FakeEmbedder())
    for name, other in zip(people[::5], people[1::5], strict=False):
        world.put("workspace", f"{name} and {other} rowed home")
        world.create_channel(f"with {name}", f"what {name} writes to us")
    world.edit_named("VOICE", f"Plain words, as {people[0]} and {people[1]} speak.")
    promote(world, *(f"{name} has key number {n}." for n, name in enumerate(people[::20])), "The gate opens at nine.")
    turns = [
        (role, f"I met {name} at the well. The well is deep.") for name in people for role in ("user", "assistant")
    ]
    world.observe(claude(folder / f"{people[0]}.jsonl", turns, noise=False))
    (folder / f"{people[0]}.jsonl").unlink()
    talk = world.start()
    for n, name in enumerate(people):
        world.write_note(talk.ref_code, f"note-{n}", {"about": name})


def of_others(world: Workspace, named: list[str]) -> dict[str, object]:
    """What a workspace holds in which none of some people is named."""
    surnames = [name.split()[-1] for name in named]

    def without(text: str) -> bool:
        return not any(surname in text for surname in surnames)

    def sentences(text: str) -> list[str]:
        left = re.sub(r"\[erased\]  +", "", text)  # a mark that is as long as the sentences were
        return [one for one in left.split(". ") if without(one) and "[erased]" not in one]

    kept: dict[str, object] = {}
    for e in world.entries("workspace", everything=True):
        if all(without(version.entry.content) for version in world.history(e.id)):
            kept[e.id] = (e.content, e.version, e.tags)
    for transcript in world.transcripts():
        for said in world.ctx.local.utterances(transcript.id):
            kept[f"{transcript.id} {said.place}"] = sentences(said.text)
    for page in world.named():
        kept[f"page {page.name}"] = page.version
    for head in world.ctx.local.list_documents(limit=1000):
        document = world.ctx.local.documents([head.id])[head.id]
        kept[f"document {head.id}"] = (document.version, sentences(document.body))
    for found in world.ctx.local.find_items(ItemQuery(())):
        if without(str(found.item.value)):
            kept[f"item {found.item.place}"] = found.item.value
    return kept


def unpacked(folder: Path) -> Iterator[bytes]:
    """The bytes of every file below a folder, in small letters; what zlib has packed comes unpacked too."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        yield str(path).encode().lower() + data.lower()
        with suppress(zlib.error):
            yield zlib.decompress(data).lower()


def found_in(folder: Path, people: list[str]) -> list[str]:
    """The people of whom a file below a folder has the name, in UTF-8 or UTF-16."""
    forms = {name: [name.split()[-1].lower().encode(code) for code in ("utf-8", "utf-16-le")] for name in people}
    found = set()
    for data in unpacked(folder):
        found |= {name for name, both in forms.items() if any(form in data for form in both)}
    return sorted(found)
