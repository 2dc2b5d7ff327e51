"""A memory that was lived in, so that every table has rows; and all that a memory holds, to compare two of them."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from lukasa import Lukasa, Memo, Workspace
from lukasa.model.amendment import AmendmentState
from lukasa.model.answer import Answer
from lukasa.model.corpus import DocumentSource, Passage, Watch
from lukasa.model.entry import ClosedScope, Document, Scope
from lukasa.model.item import ItemAddress
from lukasa.model.job import JobDraft
from lukasa.model.selection import Selection
from lukasa.model.telemetry import Spending
from lukasa.model.text import commitment
from lukasa.model.values import State, Visibility
from lukasa.service.entries import store_items
from lukasa.service.entries.store_items import PutItem
from lukasa.storage import tables
from lukasa.storage.codec import Query
from lukasa.storage.operations import (
    CloseScope,
    Embedding,
    Enqueue,
    FailJob,
    JournalStep,
    SaveAnswer,
    SaveDocument,
    SaveEntry,
    SavePassageEmbedding,
    SaveWatch,
    Spend,
)
from lukasa.storage.port import ItemQuery, Store
from lukasa.storage.reads import IndexedReads
from tests.fakes import FakeEmbedder
from tests.helpers import sessions
from tests.helpers.cli import STRICT
from tests.helpers.curating import promote, propose
from tests.helpers.making import RETIRE, FixedClock, make_entry
from tests.helpers.replicas import Machine

EMBEDDER = FakeEmbedder(32)
WORDS = ("harbour", "crane", "lantern", "attic", "mooring", "hinge", "cellar", "gull", "anchor", "rope", "keel", "tide")
QUESTIONS = ("who is the villain?", "what lifts forty tonnes", "crane and lantern", "rope in the cellar", "tide")


def live(data: Path, clock: FixedClock, notes: int = 60) -> None:
    """Use memory in a folder for everything that leaves a row."""
    with Lukasa.open(data, embedder=EMBEDDER, clock=clock) as memory:
        _use(memory.workspace("novel"), clock, notes)
        watched = memory.workspace("watched", preset="observer")
        _observe(watched, data)
        _retire(memory.workspace("strict", spec=STRICT + RETIRE))
        memory.workspace("empty")
        memory.access.create("claude", workspaces=["novel"], can=["read", "write"], expires=timedelta(days=3))
        memory.access.create("gone", workspaces=["novel"])
        memory.access.revoke("gone")
        Machine("laptop", memory, clock).tell()


def _use(world: Workspace, clock: FixedClock, notes: int) -> None:
    def put(text: str, **more: Any) -> str:
        return world.put("workspace", text, **more).id

    world.put_many("workspace", [Memo(_note(n), importance=0.3 + n % 7 / 10, tags=("note",)) for n in range(notes)])
    villain = put("The villain is called Malachar", metadata={"page": 3, "naïve": ["ü", None, 1.5]})
    clock.time += timedelta(hours=1)
    world.update(villain, content="The villain is called Malachor")
    world.update(villain, importance=0.9)
    put("The crane lifts forty tonnes")
    put("The crane lifts forty tonnes")  # stated again
    old, new = put("The harbour master is Ines"), put("The harbour master is Tomas")
    put("The harbour master is Uma", supersedes=old)
    world.forget(put("The lantern is green"))
    world.restore(world.forget(put("The gull sleeps on the mast")).id)
    world.corroborate(new)
    world.corroborate(villain, "failed", "nobody says so")
    world.save_document("style", "Rules of style.", title="Style")
    world.save_document("style", "Rules of good style.", title="Style")
    world.save_document("draft", "A draft.", title="Draft")
    world.remove_document("draft")
    put("Sentences are short", links=["style"], derived_from=[villain, new])
    told = put("The crane is checked every morning")
    world.approve(world.submit("style", memories=[told], derivable=[told], note="how we work").id)
    world.submit("style", "Mornings are for the crane.", memories=[new])
    world.acting(agent="scribe").put("workspace", "A private thought about the keel", owner="scribe")
    world.edit_named("VOICE", "Plain words.")
    world.edit_named("VOICE", "Plain and short words.")
    world.put("account", "Ines likes tea without sugar")
    world.cite(villain, f"memory:{new}", "url:https://harbour.example/ropes")
    world.verify_citations(villain)
    world.disclose(world.read("who is the villain?"))
    world.link_action("deploy-7", [villain, new], "the release rests on these")
    world.link_action("deploy-8", [villain], "so does this")
    channel = world.create_channel("research", "what we read")
    talk = world.start(channel.id)
    world.write_note(talk.id, "plan", {"steps": [1, 2], "done": False})
    world.at(conversation=talk.id).put("conversation", "Right now we talk about ropes")
    world.end(world.start().id)
    gone = world.start()
    world.at(conversation=gone.id).put("conversation", "This conversation will be purged")
    world.write_note(gone.id, "secret", "to be purged")
    world.purge_execute(gone.id, confirm=world.purge_plan(gone.id).digest)
    world.write_note(talk.id, "later", "after the purge")
    _jobs(world, clock)
    _items(world)
    _read(world, clock)
    ctx, now = world.ctx, clock.now()
    ctx.apply(ctx.local, SaveAnswer(Answer("k-1", commitment(b"k", "r"), now, 0)))
    ctx.apply(ctx.local, Spend(Spending("2026-11-15", "model", 3, 100, 20, 0.125)))
    ctx.apply(ctx.local, CloseScope(ClosedScope(Scope("project", (("project", "p1"),)), "ended", now)))
    world.bookmark("here", "half way")
    for question in QUESTIONS:
        world.read(question)


def _read(world: Workspace, clock: FixedClock) -> None:
    """Keep documents that were read from files, with passages and their vectors."""
    ctx, now = world.ctx, clock.now()
    for name in ("harbour", "keel"):
        texts = tuple(f"Chapter {n}: the {name} and the {WORDS[n]}" for n in range(12))
        book = Document(name, name, "\n".join(texts), "file", "current", 1.0, "canonical", 1, now, "books")
        passages = tuple(
            Passage("", 0, 0, one, ("Part", name), page=n, tags=(WORDS[n],)) for n, one in enumerate(texts)
        )
        source = DocumentSource(name, f"/books/{name}.md", "text/markdown", "d1", now, notes=("a page had no text",))
        vectors = EMBEDDER.embed_memories(texts)
        kept = [SavePassageEmbedding(name, 1, n, Embedding(EMBEDDER.model, v)) for n, v in enumerate(vectors)]
        ctx.apply(ctx.local, SaveDocument(book, 0, passages, source), *kept)
    waiting = Document("log", "Log", "Not split yet.", "file", "current", 1.0, "canonical", 1, now, "books")
    ctx.apply(ctx.local, SaveDocument(waiting, 0))
    ctx.apply(ctx.local, SaveWatch(Watch("w1", "folder", "/books", "books", now, now, seen=("ü",)), 0))


def _retire(world: Workspace) -> None:
    """Write where rules hold and retire."""
    world.put("workspace", "The harbour master is Ines")
    world.put("workspace", "The harbour master is Tomas")
    (scope,) = {entry.scope for entry in world.entries("workspace")}
    held = replace(make_entry("The crane may be broken", scope=scope), state=State.HELD)
    old = make_entry("The keel is painted red", scope=scope)
    retired = replace(old, state=State.SUPERSEDED, superseded_by=held.id)
    saved = [SaveEntry(one, 0, "entry.added", "for a test") for one in (held, retired)]
    world.ctx.apply(world.ctx.local, *saved)


def _note(n: int) -> str:
    return f"Note {n}: the {WORDS[n % 12]} was near the {WORDS[(n * 5 + 3) % 12]} on day {n}"


def _jobs(world: Workspace, clock: FixedClock) -> None:
    ctx, store = world.ctx, world.ctx.local
    drafts = (JobDraft("observe", "dies", {"n": 1}, max_attempts=1), JobDraft("reflect", "waits", {"é": [1]}))
    ctx.apply(store, *(Enqueue(draft) for draft in drafts))
    later = clock.now() + timedelta(seconds=30)
    job = store.claim_job("w", now=clock.now(), lease_until=later, kinds=["observe"])
    assert job is not None
    ctx.apply(store, JournalStep(job.id, job.claim, "model", {"facts": [1, "ü"]}))
    ctx.apply(store, FailJob(job.id, job.claim, "no answer", None))
    store.claim_job("w", now=clock.now(), lease_until=later, kinds=["reflect"])


def _items(world: Workspace) -> None:
    for n in range(30):
        place = ItemAddress(("users", f"u{n % 3}"), f"key-{n}")
        text = _note(n)
        texts = (("", text),) if n % 2 else (("title", text), ("body", f"again {text}"))
        store_items.write(world.ctx, [PutItem(place, {"text": text, "n": n}, 60.0 if n % 5 else None, texts)], EMBEDDER)
    store_items.write(world.ctx, [PutItem(ItemAddress(("users", "u0"), "key-0"), None)], EMBEDDER)
    store_items.write(world.ctx, [PutItem(ItemAddress(("users", "u1"), "key-1"), {"text": "changed"}, None)], EMBEDDER)


def _observe(world: Workspace, data: Path) -> None:
    turns = (("user", "From now on the crane is checked every morning"), ("assistant", "Noted: every morning."))
    world.observe(sessions.claude(data.parent / "session.jsonl", turns, "abc"))
    world.observe_by_rules(world.transcripts()[0].id)
    propose(world, "Check the crane", sources=("a", "b"))
    propose(world, "Check the rope", state=AmendmentState.REVIEW)
    promote(world, "Deploys go through the gate.")
    world.put("workspace", "The gate is closed at night")


def everything(store: Store) -> dict[str, Any]:
    """All that a store holds, as values."""
    assert isinstance(store, IndexedReads)
    found: dict[str, Any] = {"head": store.head(), "secret": store.secret()}
    with store._reading() as rows:
        for table in tables.tables():
            placed = table.name not in _UNPLACED
            order = "place" if placed else " ".join(table.key)
            found[table.name] = rows.select(Query(table, order=order))
        scopes = tuple(census.scope for census in store.census())
        entries = {entry.id: entry for entry in _entries(store, scopes)}
        found["entries"] = [entries[id] for id in sorted(entries)]
        found["links"] = rows.linked_entries(list(entries))
        found["traces"] = rows.entry_traces(list(entries))
        found["stored"] = {id: rows.stored_entry(id).salt for id in sorted(entries)}  # type: ignore[union-attr]
    ids = sorted(entries)
    found["versions"] = {id: store.versions(id) for id in ids}
    found["access"] = store.access(ids)
    found["vectors"] = {id: v.tobytes() for id, v in sorted(store.vectors(ids, EMBEDDER.model).items())}
    found["items"] = store.find_items(ItemQuery(()))
    found["near"] = _near(store)
    asked = (EMBEDDER.model, EMBEDDER.embed_query("the keel and the tide"))
    found["passages found"] = store.find_passages(["keel", "tide", "chapter"], 20)
    found["passages near"] = [(one.passage, round(one.score, 4)) for one in store.nearest_passages(*asked, 20)]
    found["adjacent"] = store.adjacent(ids, 2)
    return found


_UNPLACED = frozenset(
    {
        "named",
        "named_versions",
        "document_versions",
        "notes",
        "actions",
        "spending",
        "answers",
        "unswept",
        "events",
        "utterances",
        "passages",
        "unsplit",
        "document_sources",
        "sync_notes",
    }
)


def _entries(store: Store, scopes: tuple[Scope, ...]) -> Iterator[Any]:
    for scope in scopes:
        chosen = Selection((scope,), frozenset(Visibility), None)
        yield from store.find(chosen, limit=100_000, damaged=True)


def _near(store: Store) -> list[Any]:
    vector = EMBEDDER.embed_query("rope in the cellar")
    found = store.find_items(ItemQuery((), near=(EMBEDDER.model, vector)), limit=10)
    return [(one.item.place, None if one.score is None else round(one.score, 4)) for one in found]


def answers(memory: Lukasa) -> dict[str, list[tuple[str, float]]]:
    """What reads of a memory give, in order, with their scores."""
    found = {}
    for name in ("novel", "watched", "strict"):
        world = memory.existing(name)
        for question in QUESTIONS:
            hits = world.read(question, limit=8).hits
            found[f"{name}: {question}"] = [(hit.entry.id, hit.score.final) for hit in hits]
    return found
