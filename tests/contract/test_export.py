"""An export holds all of a store, and makes the same store again on every engine, to the byte."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lukasa.model.corpus import Passage
from lukasa.model.entry import Confirmation, Rivalry
from lukasa.model.errors import StoreDamaged, UnreadableExport
from lukasa.model.ids import new_id
from lukasa.model.item import Item, ItemAddress
from lukasa.model.values import Relation, State
from lukasa.storage.export_file import _Lines
from lukasa.storage.export_records import KINDS, fields_of
from lukasa.storage.memory.memory_store import MemoryStore
from lukasa.storage.operations import (
    DropEntry,
    Embedding,
    LinkAction,
    Operation,
    SaveConfirmation,
    SaveDocument,
    SaveItem,
    SaveNamed,
    SavePassageEmbedding,
    SaveRivalry,
)
from lukasa.storage.port import Store
from lukasa.storage.postgres.database import Database
from lukasa.storage.sqlite import SqliteStore
from tests.helpers.exporting import exported, read, settled
from tests.helpers.full_store import fill
from tests.helpers.stores import (
    MODEL,
    NOW,
    OTHER_MODEL,
    change,
    commit,
    document,
    entry,
    later,
    move,
    named,
    put,
    vector_of,
)

ENGINES = ("memory", "sqlite", "postgres")


def id_of(store: Store) -> str:
    """Return an id for a store; in a database it has one."""
    return str(getattr(store, "id", "") or new_id())


@pytest.fixture
def ground(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """Return a function that makes a store of an export on an engine; in a new database, for ids are in it once."""

    def make(data: bytes, engine: str) -> Store:
        if engine != "postgres":
            return settled(data, engine, tmp_path / new_id())
        opened = Database.open(request.getfixturevalue("database_url"))
        request.addfinalizer(opened.close)
        return settled(data, engine, tmp_path, opened)

    return make


@pytest.mark.parametrize("vectors", [False, True], ids=["without-vectors", "with-vectors"])
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("store", ["memory", "sqlite", "postgres"], indirect=True)
def test_an_export_of_an_import_is_the_same(store: Store, ground: Any, engine: str, vectors: bool) -> None:
    """X1: out of one engine and into another, everything is the same to the byte, and sound; and so is the log."""
    fill(store, "mill")
    id = id_of(store)
    first = exported(store, id, vectors=vectors)
    copy = ground(first, engine)
    assert exported(copy, id, vectors=vectors) == first
    assert (copy.check(), copy.head(), copy.verify() if hasattr(copy, "verify") else []) == ([], store.head(), [])
    copy.close()


@st.composite
def writes(draw: st.DrawFn) -> list[list[Operation]]:
    """Transactions as anybody could make them, with texts, times and values of all sorts."""
    texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=40)
    values = st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts, st.lists)
    found: list[list[Operation]] = []
    entries = []
    for n in range(draw(st.integers(0, 6))):
        made = entry(
            f"{n} {draw(texts)}",
            tags=tuple(draw(st.lists(texts, max_size=2))),
            metadata=draw(st.dictionaries(texts, values, max_size=2)),
            importance=draw(st.floats(0, 1)),
            owner=draw(st.sampled_from(["shared", "scribe"])),
            valid_at=draw(st.none() | st.just(later(5))),
        )
        entries.append(made)
        model = draw(st.sampled_from([None, MODEL, OTHER_MODEL]))
        found.append([put(made, vector_of(made.content), model) if model else put(made)])
    for made in entries:
        match draw(st.sampled_from(["keep", "change", "drop", "forget", "confirm", "link"])):
            case "change":
                found.append([change(made, content=f"{made.content} {draw(texts)}")])
            case "drop":
                found.append([DropEntry(made.id, 1, draw(texts))])
                continue
            case "forget":
                found.append([move(made, State.FORGOTTEN)])
            case "confirm":
                found.append([SaveConfirmation(Confirmation(made.id, NOW, "ada", draw(texts), "", draw(texts)))])
            case "link":
                found.append([LinkAction(draw(texts), draw(texts), (made.id,))])
    kept = [e for e in entries if not any(isinstance(o, DropEntry) and o.id == e.id for group in found for o in group)]
    if len(kept) > 1:
        found.append([SaveRivalry(Rivalry(kept[1].id, kept[0].id, Relation.CLOSE, draw(texts), NOW))])
    for key in draw(st.lists(texts, max_size=3, unique=True)):
        place = ItemAddress(tuple(draw(st.lists(texts, max_size=2))), key)
        found.append([SaveItem(Item(place, draw(st.dictionaries(texts, values, max_size=2)), NOW, NOW))])
    for n, body in enumerate(draw(st.lists(texts, max_size=2))):
        name = f"d{n}"
        found.append([SaveDocument(document(name, body), 0, (Passage("", 0, 0, body),))])
        found.append([SavePassageEmbedding(name, 1, 0, Embedding(MODEL, vector_of(body)))])
        found.append([SaveNamed(named(f"N{n}", body), 0)])
    return found


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=writes())
@pytest.mark.parametrize("engine", ["memory", "sqlite"])
def test_whatever_is_stored_comes_back(tmp_path: Path, engine: str, writes: list[list[Operation]]) -> None:
    """X1: generated stores come out of one engine and into the other, and the same bytes come out of that."""
    id, folder = new_id(), tmp_path / new_id()
    store: Store = MemoryStore() if engine == "sqlite" else SqliteStore(folder / "a", role="workspace", create=True)
    for group in writes:
        commit(store, *group)
    first = exported(store, id, vectors=True)
    copy = settled(first, engine, folder)
    assert exported(copy, id, vectors=True) == first
    assert copy.check() == []
    store.close()
    copy.close()


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(writes=writes())
def test_whatever_is_stored_comes_back_from_a_database(database: Database, tmp_path: Path, writes: Any) -> None:
    """X1: generated stores go from PostgreSQL into a folder and from memory into PostgreSQL, with the same bytes."""
    id = new_id()
    for store, engine in (
        (database.store(id, account=new_id(), role="workspace", create=True), "sqlite"),
        (MemoryStore(), "postgres"),
    ):
        for group in writes:
            commit(store, *group)
        named_as = id if engine == "sqlite" else new_id()
        first = exported(store, named_as, vectors=True)
        copy = settled(first, engine, tmp_path / new_id(), database)
        assert exported(copy, named_as, vectors=True) == first
        assert copy.check() == []
        store.close()
        copy.close()


@pytest.fixture(scope="module")
def whole() -> bytes:
    """An export of a store with something of everything."""
    store = MemoryStore()
    fill(store, "mill")
    return exported(store, new_id())


def test_every_altered_line_is_named(whole: bytes) -> None:
    """X1: a line that was changed, dropped, doubled or moved is refused, and the error says which line it is."""
    lines = whole.splitlines(keepends=True)
    for n in range(1, len(lines), 7):
        for changed in (
            [*lines[:n], lines[n].replace(b"a", b"e", 1), *lines[n + 1 :]],
            [*lines[:n], *lines[n + 1 :]],
            [*lines[:n], lines[n], *lines[n:]],
        ):
            if changed == lines:
                continue
            with pytest.raises(UnreadableExport, match=rf"line ({n}|{n + 1}|{n + 2})\b"):
                read(b"".join(changed))


def test_a_cut_is_named(whole: bytes) -> None:
    """X1: wherever a file was cut off, the error says where it ends."""
    for cut in range(1, len(whole) - 1, 997):
        ends = whole[:cut].count(b"\n") + (0 if whole[:cut].endswith(b"\n") else 1)
        with pytest.raises(UnreadableExport, match=rf"line {ends}\b|is not an export"):
            read(whole[:cut])


def test_the_page_about_the_format_has_every_field() -> None:
    """X1, U1: the reference lists each kind of record, in the order of the file, with each of its members."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "export-format.md").read_text("utf-8")
    rows = [line.split(" | ") for line in page.splitlines() if line.startswith("| `")]
    told = {row[0].strip("| `"): re.findall(r"`(\w+)`", row[2]) for row in rows}
    assert {kind: told[kind] for kind in KINDS} == {
        kind: [field.name for field in fields_of(part)] for kind, part in KINDS.items()
    }
    assert [kind for kind in told if kind in KINDS] == list(KINDS)


def resealed(lines: list[bytes], change: Any) -> bytes:
    """Return an export that somebody altered and gave new digests, as a forger would."""
    made, head = _Lines(), lines[0]
    records = [json.loads(line) for line in lines[1:]]
    for record in records:
        del record["sum"]
    found = change(records)
    out = [head]
    for record in found:
        if record["record"] == "end":
            record |= {"lines": made.count, "sha256": made.total.hexdigest()}
        out.append(made.line(record))
    return b"".join(out)


def _set(of: str, **values: Any) -> Any:
    def change(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
        for record in records:
            if record["record"] == of:
                record.update(values)
        return records

    return change


@pytest.mark.parametrize(
    "change",
    [
        _set("entries", kind="no such kind"),
        _set("entries", content=7),
        _set("entries", extra="field"),
        _set("entries", rest={"trust": 9}),
        _set("versions", entry="unknown"),
        _set("store", id="../../etc"),
        _set("store", role="owner"),
        _set("grants", digest="0" * 64),
        _set("entries", importance=7.0),
        _set("documents", weight=10**400),
        _set("events", seq="one"),
        _set("events", seq=10**30),
        lambda records: [{"record": "no such kind"}, *records],
        lambda records: [records[0], *reversed(records[1:-1]), records[-1]],
        lambda records: [records[0], records[0], *records[1:]],
    ],
)
def test_a_forged_record_is_refused(whole: bytes, change: Any) -> None:
    """X1: a file with digests that fit may still hold what no store holds: it is refused, with the line."""
    with pytest.raises(UnreadableExport, match="line "):
        read(resealed(whole.splitlines(keepends=True), change))


@pytest.mark.parametrize(
    "change",
    [_set("entries", content="Another text"), _set("events", detail={"forged": True}), _set("named", body="x")],
)
def test_a_forged_text_is_not_settled(whole: bytes, tmp_path: Path, change: Any) -> None:
    """X1: a text for which the log of the file does not vouch does not come in whole, and nothing is left of it."""
    with pytest.raises((StoreDamaged, UnreadableExport)):
        settled(resealed(whole.splitlines(keepends=True), change), "sqlite", tmp_path)
    assert not list(tmp_path.rglob("memory.db"))
